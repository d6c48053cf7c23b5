"""Every form against the aggregation it stands for: lmms-eval's own code, or plain Python."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lmms_eval.tasks.mme import utils as mme
from lmms_eval.tasks.pope import utils as pope

from lmms_patch.stats.forms import (
    F1,
    FORMS,
    MEAN,
    MME,
    PERCENT,
    PRECISION,
    RECALL,
    SUM,
    Picked,
    on,
    recognise,
    same,
    value_of,
)
from tests.sizes import size

scalars = st.lists(st.floats(0, 1), min_size=1, max_size=30)
labels = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


def of_scores(*scores):
    return Picked(np.array(scores, float))


def of_labels(pairs):
    """Answers and golds as (said yes, gold is yes)."""
    said, gold = (np.array([pair[k] for pair in pairs], bool) for k in (0, 1))
    return Picked((said == gold).astype(float), said, gold)


def numbers(values):
    known = sorted(set(values))
    return np.array([known.index(value) for value in values], np.intp)


# --- means and sums ----------------------------------------------------------------------------------


@given(scalars)
def test_mean_percent_sum(scores):
    picked = of_scores(*scores)
    assert value_of(SUM, picked) == pytest.approx(math.fsum(scores))
    assert value_of(MEAN, picked) == pytest.approx(math.fsum(scores) / len(scores))
    assert value_of(PERCENT, picked) == pytest.approx(100 * math.fsum(scores) / len(scores))


def test_nothing_has_no_mean():
    assert math.isnan(value_of(MEAN, of_scores()))
    assert math.isnan(value_of(PERCENT, of_scores()))
    assert value_of(SUM, of_scores()) == 0


# --- counts ------------------------------------------------------------------------------------------


@given(labels)
def test_counts_by_their_definitions(pairs):
    hits = sum(said and gold for said, gold in pairs)
    wrong_yes = sum(said and not gold for said, gold in pairs)
    wrong_no = sum(gold and not said for said, gold in pairs)
    for form, above, below in (
        (PRECISION, hits, hits + wrong_yes),
        (RECALL, hits, hits + wrong_no),
        (F1, 2 * hits, 2 * hits + wrong_yes + wrong_no),
    ):
        value = value_of(form, of_labels(pairs))
        assert math.isnan(value) if below == 0 else value == pytest.approx(above / below)


@given(labels)
def test_counts_against_pope(pairs):
    """lmms-eval gives 0 where nothing is counted.

    There the form is not defined (a draw that is not made up of zeros).
    """
    items = [
        {"prediction": "yes" if said else "no", "ground_truth": "yes" if gold else "no", "score": float(said == gold)}
        for said, gold in pairs
    ]
    picked = of_labels(pairs)
    for form, native in (
        (PRECISION, pope.pope_aggregate_precision),
        (RECALL, pope.pope_aggregate_recall),
        (F1, pope.pope_aggregate_f1_score),
        (MEAN, pope.pope_aggregate_accuracy),
    ):
        value = value_of(form, picked)
        assert native(items) == 0 if math.isnan(value) else same(value, native(items))


def test_by_hand():
    """3 yes said, 2 of them right; 4 golds are yes.

    Precision 2/3, recall 2/4, F1 = 2 * (2/3 * 1/2) / (2/3 + 1/2) = 4/7.
    """
    picked = of_labels([(1, 1), (1, 1), (1, 0), (0, 1), (0, 1), (0, 0)])
    assert value_of(PRECISION, picked) == pytest.approx(2 / 3)
    assert value_of(RECALL, picked) == pytest.approx(1 / 2)
    assert value_of(F1, picked) == pytest.approx(4 / 7)


@pytest.mark.parametrize("form", [F1, PRECISION, RECALL])
def test_counts_need_labels(form):
    assert math.isnan(value_of(form, of_scores(1, 0, 1)))


# --- MME ----------------------------------------------------------------------------------------------


def mme_items(pairs):
    """Items as lmms-eval makes them, two to a question.

    ``pairs`` are (category, question, first right, second right).
    """
    return [
        {"question_id": question, "category": category, "score": float(right)}
        for category, question, *both in pairs
        for right in both
    ]


def mme_picked(items):
    clusters = [f"{item['category']}/{item['question_id']}" for item in items]
    return Picked(
        np.array([item["score"] for item in items]),
        clusters=numbers(clusters),
        categories=numbers([item["category"] for item in items]),
    )


def test_mme_by_hand():
    """Fu et al. 2023, section 2.2. OCR: pairs (1, 1) and (1, 0): accuracy 3/4, both right 1/2, so 75 + 50.

    Count: (0, 1): 50 + 0.
    """
    items = mme_items([("OCR", 1, 1, 1), ("OCR", 2, 1, 0), ("count", 1, 0, 1)])
    assert value_of(MME, mme_picked(items)) == pytest.approx(75 + 50 + 50)


@given(
    st.lists(
        st.tuples(st.sampled_from(["OCR", "count", "scene"]), st.integers(0, 6), st.booleans(), st.booleans()),
        min_size=1,
        max_size=20,
    ),
    st.randoms(),
)
@settings(deadline=None)
def test_mme_against_lmms_eval(pairs, shuffler):
    """Also where the two questions of a pair do not follow each other, and where categories share question ids."""
    once = {(category, question): (category, question, *both) for category, question, *both in pairs}
    items = mme_items(once.values())
    shuffler.shuffle(items)
    assert value_of(MME, mme_picked(items)) == pytest.approx(mme.mme_aggregate_results(items))


def test_mme_needs_pairs_and_categories():
    assert math.isnan(value_of(MME, of_scores(1, 1)))
    assert math.isnan(value_of(MME, Picked(np.ones(2), clusters=np.zeros(2, np.intp))))
    assert math.isnan(
        value_of(MME, Picked(np.zeros(0), clusters=np.zeros(0, np.intp), categories=np.zeros(0, np.intp)))
    )


# --- a weighted sum is M of docs that are taken so often ------------------------------------------------


@given(labels, st.data())
@settings(deadline=None)
def test_sums_under_weights_are_m_of_a_resample(pairs, data):
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs))))
    picked = of_labels(pairs)
    again = picked.where(np.ones(len(pairs), bool))
    taken = Picked(*(np.repeat(part, weights) for part in (again.scores, again.said, again.gold)))
    for form in (MEAN, PERCENT, SUM, F1, PRECISION, RECALL):
        assert form.value(weights @ form.rows(picked)) == pytest.approx(value_of(form, taken), nan_ok=True)


def test_pairs_under_weights_are_mme_of_a_resample():
    """A pair that is taken twice counts as two questions.

    A category that is not drawn is not in the sum, as lmms-eval has it.
    """
    stream = random.Random(5)
    pairs = [
        (category, question, stream.random() < 0.7, stream.random() < 0.5)
        for category in ("OCR", "count", "scene")
        for question in range(5)
    ]
    picked = mme_picked(mme_items(pairs))
    for _ in range(50):
        times = [stream.choice([0, 0, 1, 2, 3]) for _ in pairs]
        taken = [(c, f"{q} again {k}", a, b) for (c, q, a, b), n in zip(pairs, times, strict=True) for k in range(n)]
        if not taken:
            continue
        weights = np.repeat(times, 2)
        assert float(MME.value(weights @ MME.rows(picked))) == pytest.approx(
            mme.mme_aggregate_results(mme_items(taken))
        )


def test_values_of_many_draws_at_once():
    """A draw in which nothing is counted has no mean; a category that is missing from a draw adds nothing."""
    sums = np.array([[[2.0, 4.0], [0.0, 0.0]], [[3.0, 4.0], [1.0, 1.0]]])
    assert MEAN.value(sums).ravel() == pytest.approx([0.5, math.nan, 0.75, 1.0], nan_ok=True)
    assert PERCENT.value(sums).ravel() == pytest.approx([50, math.nan, 75, 100], nan_ok=True)
    pairs = np.array([[150.0, 50.0, 1.0, 1.0], [150.0, 0.0, 1.0, 0.0], [0, 0, 0, 0]])
    assert MME.value(pairs) == pytest.approx([200, 150, math.nan], nan_ok=True)


def test_macro_by_hand_and_against_mmstar():
    """Two categories: (1 + 0) / 2 and (1 + 1 + 0.5) / 3; their mean. And lmms-eval's own MMStar aggregation."""
    from lmms_eval.tasks.mmstar.utils import mmstar_aggregate_results

    scores, kinds = [1.0, 0.0, 1.0, 1.0, 0.5], ["a", "a", "b", "b", "b"]
    by_hand = (1 / 2 + 2.5 / 3) / 2
    items = [{"l2_category": kind, "score": score} for kind, score in zip(kinds, scores, strict=True)]
    value = value_of(FORMS["macro"], Picked(np.array(scores), categories=np.array([0, 0, 1, 1, 1])))
    assert value == pytest.approx(by_hand)
    assert mmstar_aggregate_results(items) == pytest.approx(by_hand)
    missing = FORMS["macro"].value(
        FORMS["macro"].rows(Picked(np.array(scores), categories=np.array([0, 0, 2, 2, 2]))).sum(axis=0)
    )
    assert float(missing) == pytest.approx(by_hand)  # a category without docs does not count


KINDS_OF_VSI = {
    "object_rel_direction_easy": 0,
    "object_rel_direction_medium": 0,
    "object_rel_direction_hard": 0,
    "object_rel_distance": 1,
    "route_planning": 2,
    "obj_appearance_order": 3,
    "object_abs_distance": 4,
    "object_counting": 5,
    "object_size_estimation": 6,
    "room_size_estimation": 7,
}
"""VSI-Bench's kinds of questions, and which of eight parts each counts in."""


def test_merged_categories_against_vsibench():
    """On resamples of 40 docs, most of which lack a kind: where one of the three kinds of directions is missing, neither gives a number."""
    from lmms_eval.tasks.vsibench import utils

    stream = np.random.default_rng(4)
    names, merged = list(KINDS_OF_VSI), tuple(KINDS_OF_VSI.values())
    numeric = set(utils.NA_QUESTION_TYPES)
    kinds = stream.integers(0, 10, 80)
    scores = np.where(
        [names[kind] in numeric for kind in kinds], stream.integers(0, 11, 80) / 10, stream.integers(0, 2, 80)
    )
    every = Picked(scores, categories=kinds, merged=merged)
    form, seen = on(FORMS["macro"], merged), {"both": 0, "neither": 0, "other kinds lack": 0}
    for _ in range(size(120, 300)):
        drawn = stream.integers(0, 80, 40)
        docs = [
            {
                "question_type": names[kinds[i]],
                ("MRA:.5:.95:.05" if names[kinds[i]] in numeric else "accuracy"): float(scores[i]),
            }
            for i in drawn
        ]
        sums = form.rows(every)[drawn].sum(axis=0)
        try:
            native = utils._compute_all_subscores(docs)["overall"]
        except KeyError:
            seen["neither"] += 1
            assert np.isnan(form.value(sums))
            continue
        seen["both"] += 1
        seen["other kinds lack"] += len({names[kinds[i]] for i in drawn}) < 10
        assert float(form.value(sums)) == pytest.approx(native, abs=1e-12)
    assert min(seen.values()) > 10, seen
    assert value_of(FORMS["macro"], every) != pytest.approx(
        value_of(FORMS["macro"], Picked(scores, categories=kinds)), abs=1e-3
    )


def test_merged_categories_of_some_docs_keep_their_parts():
    """(1 + 0) / 2 is the mean of the merged kinds 0 and 1, and 1 that of kind 2.

    Without kind 1 there is no mean, without kind 2 there is.
    """
    picked = Picked(np.array([1.0, 0.0, 1.0]), categories=np.array([0, 1, 2]), merged=(0, 0, 1))
    without = {kind: value_of(FORMS["macro"], picked.where(picked.categories != kind)) for kind in (0, 1, 2)}
    assert value_of(FORMS["macro"], picked) == pytest.approx((1 / 2 + 1) / 2)
    assert np.isnan(without[0])
    assert np.isnan(without[1])
    assert without[2] == pytest.approx(1 / 2)
    assert on(FORMS["macro"], ()) is FORMS["macro"]
    assert on(FORMS["mean"], (0, 0, 1)) is FORMS["mean"]


# --- recognising ----------------------------------------------------------------------------------------

DOCS = of_scores(0.2, 0.9, 0.4, 0.8, 0.8, 0.9, 1.0)  # mean 5/7 = 0.714285714...


@pytest.mark.parametrize(
    ("native", "name"), [(5 / 7, "mean"), (500 / 7, "percent"), (5.0, "sum"), (5 / 7 + 1e-12, "mean")]
)
def test_recognised(native, name):
    form, warning = recognise([(DOCS, native), (of_scores(1, 0), {"mean": 0.5, "percent": 50.0, "sum": 1.0}[name])])
    assert (form.name, warning) == (name, "")


@pytest.mark.parametrize("decimals", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("scale", [1, 100])
def test_rounding_to_2_to_6_decimals_is_seen_through(decimals, scale):
    form, _ = recognise([(DOCS, round(scale * 5 / 7, decimals))])
    assert form is (MEAN if scale == 1 else PERCENT)


def test_rounding_is_seen_through_where_a_number_happens_to_end_in_0():
    """M rounds to two decimals: 0.4967 and 2/7 give 0.5 and 0.29. The second tells how the first was rounded."""
    checks = [(of_scores(0.49, 0.5, 0.5), round(1.49 / 3, 2)), (of_scores(1, 1, 0, 0, 0, 0, 0), round(2 / 7, 2))]
    assert [native for _, native in checks] == [0.5, 0.29]
    assert recognise(checks)[0] is MEAN


@pytest.mark.parametrize(
    ("value", "native", "equal"),
    [
        (0.714285714, 0.714285714, True),
        (0.7142857142857, 0.7143, True),
        (0.71434, 0.7143, True),
        (0.71436, 0.7143, False),  # would have been rounded up
        (0.7143, 0.714285714, False),  # nine decimals are no rounding
        (0.71, 0.7, False),
        (66.666, 66.67, True),
        (66.66, 66.67, False),
        (0.0, 0.0, True),
        (1e-12, 0.0, True),
        (math.nan, 0.5, False),
        (math.inf, 0.55, False),
        (1234567.0, 1234567.0004, True),
        (3.0, 3, True),
    ],
)
def test_same(value, native, equal):
    assert same(value, native) == equal


@given(st.floats(-1000, 1000), st.integers(2, 6))
def test_a_rounded_number_is_the_same_unless_it_ends_in_0(value, decimals):
    rounded = round(value, decimals)
    if len(repr(rounded).partition(".")[2]) == decimals and "e" not in repr(rounded):
        assert same(value, rounded)


PAIRS = [
    (1, 1),
    (1, 1),
    (1, 0),
    (0, 1),
    (0, 1),
    (0, 0),
    (0, 0),
]  # accuracy 4/7, F1 4/7 by accident: 2TP/(2TP+FP+FN) = 4/7
UNEVEN = [(1, 1), (1, 1), (1, 0), (0, 1), (0, 1)]  # accuracy 2/5, F1 4/7


def test_f1_is_no_mean():
    found, warning = recognise([(of_labels(UNEVEN), 4 / 7)])
    assert (found, warning) == (None, "")
    assert recognise([(of_labels(UNEVEN), 4 / 7)], "f1") == (F1, "")


def test_one_set_may_fit_by_accident_two_do_not():
    """On PAIRS accuracy and F1 are both 4/7. So M is asked for several sets."""
    assert recognise([(of_labels(PAIRS), 4 / 7)])[0] is MEAN
    assert recognise([(of_labels(PAIRS), 4 / 7), (of_labels(UNEVEN), 4 / 7)])[0] is None


@pytest.mark.parametrize("declared", ["mean", "percent", "sum", "precision", "recall", "mme"])
def test_a_declared_form_that_does_not_fit_is_refused_and_said(declared):
    found, warning = recognise([(of_labels(UNEVEN), 4 / 7)], declared)
    assert found is None
    assert f"declared as {declared}" in warning


def test_a_declared_form_that_does_not_fit_gives_way_to_one_that_does():
    found, warning = recognise([(of_labels(UNEVEN), 2 / 5)], "f1")
    assert found is MEAN
    assert "declared as f1" in warning


def test_popes_recall_where_an_answer_is_neither():
    """lmms-eval counts only a "no" to a gold "yes" as a miss; a "maybe" is none.

    Then M is not the form, and is not taken for it.
    """
    items = [
        {"prediction": said, "ground_truth": "yes", "score": float(said == "yes")} for said in ("yes", "no", "maybe")
    ]
    picked = of_labels([(1, 1), (0, 1), (0, 1)])
    native = pope.pope_aggregate_recall(items)
    assert (native, value_of(RECALL, picked)) == (0.5, pytest.approx(1 / 3))
    found, warning = recognise([(picked, native)], "recall")
    assert found is None
    assert "recall" in warning
