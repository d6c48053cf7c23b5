"""Folds: groups stay whole, classes are spread evenly, and what cannot be done says so in one line."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.errors import OptionError
from lmms_patch.tst import folds as module
from lmms_patch.tst.copies import Copies
from lmms_patch.tst.folds import check_folds, folds, grouping
from tests.sizes import examples
from tests.tst.worlds import balanced, free, mc, number, planted_yesno, rewards_of, vocabulary, yesno


def alone(items):
    return np.arange(len(items))


grouped = st.integers(2, 6).flatmap(
    lambda k: st.tuples(
        st.just(k),
        st.lists(
            st.tuples(st.integers(0, 9), st.sampled_from("abcde"), st.sampled_from(["x", "y"])), min_size=k, max_size=60
        ),
        st.integers(0, 5),
    )
)


@examples(60)
@given(grouped)
def test_no_group_is_in_two_folds_and_no_fold_is_empty(case):
    k, rows, seed = case
    items = [
        free(i, f"q{i}", gold, category=category, source=source) for i, (source, gold, category) in enumerate(rows)
    ]
    groups = grouping(items, "source").groups
    if len(set(groups.tolist())) < k:
        with pytest.raises(OptionError, match=f"cannot be dealt to {k} folds"):
            folds(items, k, groups, seed)
        return
    fold = folds(items, k, groups, seed)
    assert set(fold.tolist()) == set(range(k))
    seen = {}
    for (source, *_), number_ in zip(rows, fold.tolist(), strict=True):
        assert seen.setdefault(source, number_) == number_
    check_folds(fold, groups)


@examples(60)
@given(st.integers(2, 7), st.lists(st.sampled_from("aaaabbc"), min_size=7, max_size=120), st.integers(0, 3))
def test_without_groups_each_class_is_spread_to_within_one(k, golds, seed):
    items = [free(i, "q", gold) for i, gold in enumerate(golds)]
    fold = folds(items, k, alone(items), seed)
    for gold in set(golds):
        counts = np.bincount(fold[[g == gold for g in golds]], minlength=k)
        assert counts.max() - counts.min() <= 1
    assert np.ptp(np.bincount(fold, minlength=k)) <= 2  # three classes: remainders go to the smallest folds


@pytest.mark.parametrize(("k", "m"), [(2, 1), (5, 1), (5, 13), (10, 7)])
def test_one_class_of_k_times_m_items_has_m_in_each_fold(k, m):
    items = [yesno(i, f"q{i}", "yes") for i in range(k * m)]
    assert np.bincount(folds(items, k, alone(items), 3)).tolist() == [m] * k


def test_a_class_smaller_than_k_is_in_different_folds():
    spellings = ("rare", "Rare", "RARE ")
    items = [free(i, "q", spellings[i] if i < 3 else "common") for i in range(23)]
    fold = folds(items, 5, alone(items), 0)
    assert len(set(fold[:3].tolist())) == 3
    assert np.ptp(np.bincount(fold)) <= 1


def test_open_answers_that_are_all_different_still_fill_the_folds_evenly():
    items = [free(i, "q", f"gold {i}") for i in range(52)]
    assert sorted(np.bincount(folds(items, 5, alone(items), 0)).tolist()) == [10, 10, 10, 11, 11]


def test_categories_are_strata_of_their_own():
    items = [yesno(i, "q", "yes", category=f"c{i % 4}") for i in range(40)]
    fold = folds(items, 5, alone(items), 1)
    for category in range(4):
        assert np.bincount(fold[category::4]).tolist() == [2] * 5


def test_numbers_are_spread_by_tenths_of_their_category():
    """0..99: the quantiles 9.9, 19.8, ... 89.1 cut them into tens; each ten has 2 in each of 5 folds."""
    items = [number(i, "q", i) for i in range(100)]
    fold = folds(items, 5, alone(items), 0)
    for ten in range(10):
        assert np.bincount(fold[ten * 10 : ten * 10 + 10], minlength=5).tolist() == [2] * 5


def test_odd_numbers_are_dealt():
    items = [
        number(i, "q", text) for i, text in enumerate(["1,000", "50%", "inf", "nan", "²", "", "-3", "1e400", "0", "$7"])
    ]
    items[5] = number(5, "q", None)
    assert sorted(np.bincount(folds(items, 5, alone(items), 0)).tolist()) == [2] * 5


def test_groups_of_one_size_are_balanced_by_class():
    """20 groups of 4, each of one class: 2 groups of each class in each fold is possible, so it is done."""
    items = [free(i, "q", "ab"[i // 4 % 2], source=i // 4) for i in range(80)]
    fold = folds(items, 5, grouping(items, "source").groups, 0)
    assert np.bincount(fold).tolist() == [16] * 5
    assert all(Counter(items[i].golds[0] for i in np.flatnonzero(fold == f)) == {"a": 8, "b": 8} for f in range(5))


def test_large_groups_are_dealt_first():
    """Groups of 10, 9, 2 and 1 ... in two folds: 10 | 9 first, and the small ones level them out."""
    sizes = [1, 2, 10, 9]
    items = [free(0, "q", "a", source=source) for source, size in enumerate(sizes) for _ in range(size)]
    assert sorted(np.bincount(folds(items, 2, grouping(items, "source").groups, 0)).tolist()) == [11, 11]


def test_same_seed_same_folds_other_seed_other_folds():
    items = [yesno(i, f"q{i}", ("yes", "no")[i % 2]) for i in range(60)]
    first = folds(items, 5, alone(items), 7)
    np.testing.assert_array_equal(first, folds(items, 5, alone(items), 7))
    assert (first != folds(items, 5, alone(items), 8)).any()


def test_one_group_over_everything_is_one_clear_line():
    items = [free(i, f"q{i}", "a", source="one video") for i in range(20)]
    found = grouping(items, "source")
    assert not found.usable
    assert "the same for all docs" in found.reason
    with pytest.raises(OptionError, match="groups of docs cannot be dealt to 5 folds; use fewer folds"):
        folds(items, 5, found.groups, 0)


@pytest.mark.parametrize(
    ("sources", "reason"),
    [
        ([None] * 4, "no source is known"),
        (["a"] * 4, "the same for all docs"),
        (["a", "b", "c", "d"], "different for every doc"),
        (["a", "a", "b", "c"], ""),
        ([None, "a", "a", "b"], ""),  # known of some: those that share one stay together
        (["a", "a", "b", None], ""),
        ([None, "a", "b", "c"], "different for every doc"),
        ([None, None, None, "a"], "different for every doc"),
    ],
)
def test_why_a_source_groups_nothing(sources, reason):
    found = grouping([free(i, "q", "a", source=source) for i, source in enumerate(sources)], "source")
    assert found.usable is not bool(reason)
    assert reason in found.reason
    assert found.reason.startswith("no grouping") is bool(reason)


def test_docs_without_a_source_are_groups_of_their_own():
    found = grouping([free(i, "q", "a", source=source) for i, source in enumerate(["a", None, "a", None])], "source")
    assert len(set(found.groups.tolist())) == 3
    assert found.groups[0] == found.groups[2]


def test_sources_of_different_types_are_different():
    found = grouping(
        [free(i, "q", "a", source=source) for i, source in enumerate([1, "1", (1,), 1, "own", None])], "source"
    )
    assert found.groups[0] == found.groups[3]
    assert len(set(found.groups.tolist())) == 5


def test_texts_group_by_question_and_options_in_any_case_and_order():
    items = [
        mc(0, "Which? ", ["Cat", "dog"], 0),
        mc(1, "which", ["cat", "Dog"], 1),
        mc(2, "which?", ["dog", "cat"], 0),
        mc(3, "which?", ["cat", "rat"], 0),
    ]
    assert grouping(items, "text").groups.tolist() == [0, 0, 0, 1]


def test_check_folds_finds_a_group_in_two_folds():
    with pytest.raises(AssertionError, match="two folds"):
        check_folds(np.array([0, 1, 1]), np.array([0, 0, 1]))


# ---- source and text together ----


@examples(80)
@given(
    st.lists(st.tuples(st.sampled_from([None, "a", "b", "c", "d", "e"]), st.integers(0, 8)), min_size=1, max_size=25)
)
def test_joined_groups_are_what_a_walk_from_doc_to_doc_reaches(rows):
    """Brute force: from each doc, go to every doc of the same source or text, until nothing new is reached."""
    items = [free(i, f"q{text}", "a", source=source) for i, (source, text) in enumerate(rows)]
    groups = grouping(items, "joined").groups
    for start in range(len(rows)):
        reached, waiting = {start}, [start]
        while waiting:
            source, text = rows[waiting.pop()]
            new = {
                i
                for i, (s, t) in enumerate(rows)
                if i not in reached and (t == text or (s is not None and s == source))
            }
            reached |= new
            waiting += new
        assert set(np.flatnonzero(groups == groups[start]).tolist()) == reached


def headline(items, k, wanted="auto"):
    return module.headline(Copies(items), rewards_of(items), 1.0, k, wanted)


def copies_of(rows, format_=yesno):
    return [format_(i, f"q{text}", gold, source=source) for i, (source, text, gold) in enumerate(rows)]


def test_the_headline_joins_source_and_text_where_copies_have_different_golds():
    """20 scenes of two captions.

    Caption j of scene s stands again in scene s + 1 only for even s: ten groups of four docs.
    """
    rows = [(scene, f"{scene // 2} {j}", "yes" if scene % 2 else "no") for scene in range(20) for j in range(2)]
    found, why = headline(copies_of(rows), 5)
    assert (found.name, why) == ("joined", {})
    assert np.bincount(found.groups).tolist() == [4] * 10


def test_the_headline_stays_by_source_where_copies_agree():
    asked = vocabulary(20, np.random.default_rng(0))
    rows = [(scene, asked[scene // 2 * 2 + j], "yes" if j else "no") for scene in range(20) for j in range(2)]
    found, why = headline(copies_of(rows), 5)
    assert (found.name, why) == ("source", {})


def test_the_headline_stays_by_source_where_a_chain_connects_everything():
    found, why = headline(balanced(40, chained=True), 5)
    assert found.name == "source"
    assert why == {
        "joined": "copies with different golds cannot be kept in one fold: a chain of shared sources and texts connects 80 of 80 docs, "
        "more than a fold can hold"
    }


@pytest.mark.parametrize(("large", "joined"), [(6, True), (7, False)])
def test_a_group_may_be_half_again_as_large_as_a_fold(large, joined):
    """20 docs in 5 folds: 4 in an average fold, so that a group of 6 is kept together, and one of 7 is not."""
    rows = [(None, 0, "yes" if i % 2 else "no") for i in range(large)] + [
        (None, i, "yes") for i in range(1, 21 - large)
    ]
    found, why = headline(copies_of(rows), 5)
    assert (found.name == "text", bool(why)) == (joined, not joined)


def test_without_sources_copies_with_different_golds_are_kept_together_by_text():
    found, _ = headline([replace(item, source=None) for item in balanced(20)], 5)
    assert (found.name, len(set(found.groups.tolist()))) == ("text", 20)
    found, _ = headline(balanced(20), 5)
    assert found.name == "text", "a source for every doc groups nothing"


def test_one_text_for_all_docs_leaves_the_headline_as_it_is():
    rows = [(scene, "?", "yes" if scene % 2 else "no") for scene in range(30)]
    found, why = headline(copies_of(rows), 5)
    assert found.name == "none"
    assert why["joined"].endswith("one text is shared by 30 of 30 docs, more than a fold can hold")
    found, why = headline(copies_of([(scene // 2, text, gold) for scene, text, gold in rows]), 5)
    assert found.name == "source"


def test_a_prior_of_repeated_questions_is_not_hidden():
    """Twenty questions on 400 images; ten of them are nearly always yes, or nearly always no.

    Folds by text could be dealt, and would show nothing.
    """
    items, _, _ = planted_yesno(400, purity=0.95)
    found, why = headline(items, 5)
    assert found.name == "none"
    same, other = map(
        int,
        re.search(r"the same answer in (\d+) % of cases, two docs of a category in (\d+) %", why["joined"]).groups(),
    )
    assert abs(same - 100 * (0.5 * (0.95**2 + 0.05**2) + 0.5 * 0.5)) < 4
    assert abs(other - 50) < 4
    assert headline(balanced(200), 5)[0].name == "text"


def test_coins_have_no_prior():
    """200 sets of pairs with the golds of a coin: copies agree more than docs of a category in one of twenty."""
    stream = np.random.default_rng(0)
    kept = 0
    for _ in range(200):
        items = copies_of([(None, i // 2, ("yes", "no")[stream.integers(2)]) for i in range(60)])
        kept += headline(items, 5)[0].name == "none"
    assert kept <= 19  # 10 expected; P(more than 19) < 0.003


def test_a_grouping_that_was_asked_for_is_taken():
    assert headline(balanced(20, chained=True), 5, "none")[0].name == "none"
    with pytest.raises(
        OptionError,
        match="grouping joined: no grouping: the source or text is the same for all docs; allowed: auto, none",
    ):
        headline(balanced(20, chained=True), 5, "joined")
