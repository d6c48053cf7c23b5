"""A gate on quick runs: a doc that was not asked is not lost, and does not count as a doc."""

import functools

import pytest

from tests.making.runs import failing, mc_run, quick, write_run

DOCS = 400
WHOLE, DRAWN = range(100), range(100, 400, 4)
ASKED = 100 + 75


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Write a run of 400 docs once: whole, or with 100 docs asked whole and 75 of the others drawn.

    The calls of some docs fail.
    """

    @functools.cache
    def written(whole, lost=()):
        spec, records, plan = mc_run(n=DOCS, categories=("a",))
        records = failing(records if whole else quick(records, WHOLE, DRAWN), set(lost))
        folder = tmp_path_factory.mktemp("made")
        write_run(
            folder, {"toy_rci2": (spec, records, plan)}, **({"date": "2025-01-01T00-00-00.000000"} if whole else {})
        )
        return folder

    return written


@pytest.mark.parametrize(("least", "status"), [(ASKED, 0), (ASKED + 1, 1)])
def test_the_docs_that_were_asked_count(asked, made, least, status):
    ended = asked(made(whole=False), {"min_docs": least})
    assert ended.status == status
    assert ended.out.startswith(f"{'PASS' if status == 0 else 'FAIL'} toy_rci2: n_docs 175 (allowed >= {least})")


@pytest.mark.parametrize("metric", ["fip", "mpp2", "rci2", "gap2"])
def test_a_doc_that_was_not_asked_is_not_lost(asked, made, metric):
    assert asked(made(whole=False), {"metric": metric, "min": -1}).calls == ["pass"]


def test_nor_is_it_lost_in_a_comparison_with_a_whole_run(asked, made):
    rule = {"metric": "fip", "max_drop": 1}
    assert asked(made(whole=False), rule, baseline=made(whole=True)).calls == ["pass"]
    assert asked(made(whole=True), rule, baseline=made(whole=False)).calls == ["pass"]
