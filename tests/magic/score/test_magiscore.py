import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from lmms_patch.magic.score.magiscore import RegionError, magiscore, score_item
from tests.sizes import examples


def test_appendix_d():
    item = score_item({1, 2, 3}, {1, 4}, 5)
    assert (item.tp, item.fp, item.tn, item.fn) == (1, 2, 1, 1)
    assert item.precision == pytest.approx(1 / 3)
    assert item.recall == pytest.approx(1 / 2)
    assert item.f1 == pytest.approx(0.4)
    assert item.exhaustive is False


def test_undefined_by_the_convention():
    silent = score_item((), {1}, 3)
    assert (silent.precision, silent.recall, silent.f1) == (0, 0, 0)
    nothing_to_find = score_item((), (), 3)
    assert (nothing_to_find.precision, nothing_to_find.recall, nothing_to_find.f1) == (None, None, None)
    misled = score_item({2}, (), 3)
    assert (misled.precision, misled.recall, misled.f1) == (0, None, None)
    assert score_item((), (), 0, {1, 2}).exhaustive is None
    assert score_item((), (), 0, {1, 2}).invented == 2


def test_sets_by_hand():
    # A: appendix D        TP 1 FP 2 FN 1   P 1/3  R 1/2  F 2/5
    # B: perfect           TP 2 FP 0 FN 0   P 1    R 1    F 1
    # C: nothing used      TP 0 FP 0 FN 1   P 0 (convention) R 0 F 0
    # D: nothing relevant, one used  FP 1   P 0, no R, no F; it used all of its one box
    # E: nothing relevant, none used        left out of P, R and F
    # F: no box at all, one invented
    items = [
        score_item({1, 2, 3}, {1, 4}, 5),
        score_item({2, 3}, {2, 3}, 4),
        score_item((), {1}, 3, {7}),
        score_item({1}, (), 1),
        score_item((), (), 3),
        score_item((), (), 0, {1}),
    ]
    score = magiscore(items, draws=10)
    assert score.precision_micro.value == pytest.approx(3 / 6)  # 1+2 of 3+2+1
    assert score.recall_micro.value == pytest.approx(3 / 5)  # 1+2 of 2+2+1
    assert score.f1_micro.value == pytest.approx(6 / (6 + 3 + 2))
    assert score.precision_macro.value == pytest.approx((1 / 3 + 1 + 0 + 0) / 4)
    assert score.recall_macro.value == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert score.f1_macro.value == pytest.approx((2 / 5 + 1 + 0) / 3)
    assert score.precision_micro.low is None  # six items are too few for an interval


def test_nothing_is_no_number():
    score = magiscore([])
    assert score.f1_macro.value is None
    score = magiscore([score_item((), (), 0)] * 20)
    assert score.recall_macro.value is None
    assert "not defined" in score.recall_macro.reason


@pytest.mark.parametrize(("used", "relevant"), [({6}, {1}), ({0}, {1}), ({1}, {6})])
def test_numbers_outside_are_refused(used, relevant):
    with pytest.raises(RegionError, match="5 boxes"):
        score_item(used, relevant, 5)


BOXES = st.integers(1, 7).flatmap(
    lambda k: st.tuples(st.just(k), st.sets(st.integers(1, k)), st.sets(st.integers(1, k)))
)


@examples(100)
@given(st.lists(BOXES.filter(lambda one: one[2]), min_size=1, max_size=12))
def test_against_scikit_learn(items):
    truth = [[int(n in relevant) for n in range(1, count + 1)] for count, _, relevant in items]
    said = [[int(n in used) for n in range(1, count + 1)] for count, used, _ in items]
    score = magiscore([score_item(used, relevant, count) for count, used, relevant in items], draws=2)
    each = [
        precision_recall_fscore_support(t, s, average="binary", zero_division=0)[:3]
        for t, s in zip(truth, said, strict=True)
    ]
    macro = np.mean(each, axis=0)
    assert [score.precision_macro.value, score.recall_macro.value, score.f1_macro.value] == pytest.approx(list(macro))
    pooled = precision_recall_fscore_support(
        np.concatenate(truth), np.concatenate(said), average="binary", zero_division=math.nan
    )[:3]
    seen = [score.precision_micro.value, score.recall_micro.value, score.f1_micro.value]
    for ours, theirs in zip(seen, pooled, strict=True):
        assert (ours is None) == math.isnan(theirs)
        assert ours is None or ours == pytest.approx(theirs)


@given(BOXES)
def test_one_more_irrelevant_box_never_raises_precision(boxes):
    count, used, relevant = boxes
    more = set(range(1, count + 1)) - used - relevant
    assume(more)
    before, after = score_item(used, relevant, count), score_item(used | {min(more)}, relevant, count)
    assert after.precision <= (1 if before.precision is None else before.precision)
    assert (before.f1 is None and after.f1 is None) or after.f1 <= before.f1
    assert before.recall == after.recall
    micro = [magiscore([one, score_item({1}, {1}, 2)], draws=1).precision_micro.value for one in (before, after)]
    assert micro[1] <= micro[0]


@given(BOXES)
def test_one_more_relevant_box_never_lowers_recall_precision_or_f1(boxes):
    count, used, relevant = boxes
    more = relevant - used
    assume(more)
    before, after = score_item(used, relevant, count), score_item(used | {min(more)}, relevant, count)
    assert after.recall > before.recall
    assert after.precision >= before.precision
    assert after.f1 > before.f1


@examples(50)
@given(st.lists(BOXES, min_size=12, max_size=15), st.randoms(use_true_random=False))
def test_the_order_of_items_and_the_names_of_boxes_do_not_matter(items, random):
    def values(boxes):
        score = magiscore([score_item(used, relevant, count) for count, used, relevant in boxes], draws=2)
        return [getattr(score, name).value for name in ("precision_micro", "recall_macro", "f1_macro")]

    shuffled, renamed = list(items), []
    random.shuffle(shuffled)
    for count, used, relevant in items:
        names = list(range(1, count + 1))
        random.shuffle(names)
        renamed.append((count, {names[n - 1] for n in used}, {names[n - 1] for n in relevant}))
    for other in (shuffled, renamed):
        assert values(other) == pytest.approx(values(items), nan_ok=True)


def test_same_seed_same_interval_and_clusters_widen_it():
    rng = np.random.default_rng(0)
    items = []
    for _ in range(60):
        used = set(np.flatnonzero(rng.random(5) < rng.random()) + 1)
        items += [score_item(used, {1, 2}, 5)] * 4  # four questions on one image, answered alike
    images = [i // 4 for i in range(240)]
    one, two, free = magiscore(items, images, seed=3), magiscore(items, images, seed=3), magiscore(items, seed=3)
    assert one == two
    assert one.f1_macro.clusters == 60
    # four copies of each: the clustered standard error is twice the naive one
    assert one.f1_macro.se / free.f1_macro.se == pytest.approx(2, rel=0.15)


def test_intervals_cover_the_truth():
    # Each image has a propensity q ~ U(0,1); each of its 3 questions (5 boxes, 2 relevant) uses each box with
    # probability q for relevant boxes and q/2 for others. Micro precision of the population: 2 E q / (2 E q + 3 E q/2)
    # = 2 / 3.5; recall: 1/2.
    rng = np.random.default_rng(1)
    hits = np.zeros(2)
    runs = 120
    for _ in range(runs):
        items, images = [], []
        for image in range(60):
            q = rng.random()
            for _ in range(3):
                use = rng.random(5) < np.array([q, q, q / 2, q / 2, q / 2])
                items.append(score_item(set(np.flatnonzero(use) + 1), {1, 2}, 5))
                images.append(image)
        score = magiscore(items, images, draws=300, seed=int(rng.integers(1 << 30)))
        for place, (estimate, truth) in enumerate([(score.precision_micro, 2 / 3.5), (score.recall_micro, 0.5)]):
            hits[place] += estimate.low <= truth <= estimate.high
    print("\ncoverage of micro precision and recall:", hits / runs)
    assert ((hits / runs > 0.88) & (hits / runs <= 1)).all()  # 0.95 less three standard errors of 120 runs


def test_clusters_must_match():
    with pytest.raises(ValueError, match="clusters"):
        magiscore([score_item({1}, {1}, 1)], ["a", "b"])
