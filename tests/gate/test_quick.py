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
    assert ended.out.startswith(f"{'PASS' if status == 0 else 'FAIL'} toy: 175 docs (at least {least})")


@pytest.mark.parametrize("metric", ["fip", "mpp2", "rci2", "gap2"])
def test_a_doc_that_was_not_asked_is_not_lost(asked, made, metric):
    """225 of 400 docs were not asked, and no doc at all may be lost."""
    assert asked(made(whole=False), {"metric": metric, "min": -1, "max_lost": 0}).status == 0


@pytest.mark.parametrize(("most", "status"), [(0.023, 0), (0.022, 1)])
def test_of_the_docs_that_were_asked_those_without_an_answer_are_lost(asked, made, most, status):
    """4 of the 175 docs asked, which is 2.29 %: two of those asked whole, two of those drawn."""
    ended = asked(made(whole=False, lost=(3, 5, 100, 104)), {"metric": "fip", "min": -1, "max_lost": most})
    assert ended.status == status
    if status:
        assert ended.of()["reason"] == "4 of 175 docs are lost (2.3%, more than max_lost 2.2%)"


def test_nor_is_it_lost_in_a_comparison_with_a_whole_run(asked, made):
    rules = {"metric": "fip", "max_drop": 1, "max_lost": 0}
    assert asked(made(whole=False), rules, baseline=made(whole=True)).status == 0
    assert asked(made(whole=True), rules, baseline=made(whole=False)).status == 0


@pytest.mark.parametrize(("most", "status"), [(0.023, 0), (0.022, 1)])
def test_but_a_doc_without_an_answer_is_on_either_side(asked, made, most, status):
    """4 of 175 in the quick run; in the whole one 8 of 400 docs, 2 %, none of them asked by the quick one."""
    rules = {"metric": "fip", "max_drop": 1, "max_lost": most}
    ended = asked(
        made(whole=False, lost=(3, 5, 100, 104)), rules, baseline=made(whole=True, lost=tuple(range(101, 117, 2)))
    )
    assert ended.status == status
    if status:
        assert ended.of()["reason"].startswith("4 of 175 docs are lost (2.3%, more than max_lost 2.2%)")
