"""A gate on quick runs: a doc that was not asked is not lost, and does not count as a doc."""

import pytest

from tests.making.runs import failing, mc_run, quick, write_run

DOCS = 400
WHOLE, DRAWN = range(100), range(100, 400, 4)
ASKED = 100 + 75


def written(folder, change=lambda records: records, **about):
    """A run of 400 docs, of which 100 were asked whole and 75 of the others drawn."""
    spec, records, made = mc_run(n=DOCS, categories=("a",))
    write_run(folder, {"toy_rci2": (spec, change(quick(records, WHOLE, DRAWN)), made)}, **about)
    return folder


def whole(folder, change=lambda records: records, **about):
    """A whole run of the same docs and answers."""
    spec, records, made = mc_run(n=DOCS, categories=("a",))
    write_run(folder, {"toy_rci2": (spec, change(records), made)}, date="2025-01-01T00-00-00.000000", **about)
    return folder


@pytest.mark.parametrize(("least", "status"), [(ASKED, 0), (ASKED + 1, 1)])
def test_the_docs_that_were_asked_count(asked, tmp_path, least, status):
    ended = asked(written(tmp_path / "run"), {"min_docs": least})
    assert ended.status == status
    assert ended.out.startswith(f"{'PASS' if status == 0 else 'FAIL'} toy: 175 docs (at least {least})")


@pytest.mark.parametrize("metric", ["fip", "mpp2", "rci2", "gap2"])
def test_a_doc_that_was_not_asked_is_not_lost(asked, tmp_path, metric):
    """225 of 400 docs were not asked, and no doc at all may be lost."""
    assert asked(written(tmp_path / "run"), {"metric": metric, "min": -1, "max_lost": 0}).status == 0


@pytest.mark.parametrize(("most", "status"), [(0.023, 0), (0.022, 1)])
def test_of_the_docs_that_were_asked_those_without_an_answer_are_lost(asked, tmp_path, most, status):
    """4 of the 175 docs asked, which is 2.29 %: two of those asked whole, two of those drawn."""
    ended = asked(written(tmp_path / "run", lambda records: failing(records, {3, 5, 100, 104})), {"metric": "fip", "min": -1, "max_lost": most})
    assert ended.status == status
    if status:
        assert ended.of()["reason"] == "4 of 175 docs are lost (2.3%, more than max_lost 2.2%)"


def test_nor_is_it_lost_in_a_comparison_with_a_whole_run(asked, tmp_path):
    rules = {"metric": "fip", "max_drop": 1, "max_lost": 0}
    assert asked(written(tmp_path / "run"), rules, baseline=whole(tmp_path / "before")).status == 0
    assert asked(whole(tmp_path / "new"), rules, baseline=written(tmp_path / "last")).status == 0


@pytest.mark.parametrize(("most", "status"), [(0.023, 0), (0.022, 1)])
def test_but_a_doc_without_an_answer_is_on_either_side(asked, tmp_path, most, status):
    """4 of 175 in the quick run; in the whole one 8 of 400 docs, 2 %, none of them asked by the quick one."""
    rules = {"metric": "fip", "max_drop": 1, "max_lost": most}
    lossy = written(tmp_path / "run", lambda records: failing(records, {3, 5, 100, 104}))
    ended = asked(lossy, rules, baseline=whole(tmp_path / "before", lambda records: failing(records, set(range(101, 117, 2)))))
    assert ended.status == status
    if status:
        assert ended.of()["reason"].startswith("4 of 175 docs are lost (2.3%, more than max_lost 2.2%)")
