"""Contrasts between variants: by hand, and against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.compare.contrast import CONTRASTS, compared, contrast
from lmms_patch.errors import RecordError
from lmms_patch.magic.score.results import Record
from tests.making.magic import doc, record
from tests.sizes import examples

DOG, CAT = "It is a dog.\n**Answer**: dog", "It is a cat.\n**Answer**: cat"


def records(variant, *docs):
    return [Record(**record(one, variant)) for one in docs]


def said(right, regions=()):
    """A response that names regions and is right or not (the gold is dog)."""
    return " ".join(f"R{number} is there." for number in regions) + (DOG if right else CAT)


def test_the_cost_of_distraction_by_hand():
    # all: right on q0 alone (1/4); relevant: right on q0, q1, q2 (3/4). Difference 1/2
    first = records("all", *(doc(f"q{i}", said(i == 0)) for i in range(4)))
    second = records("relevant", *(doc(f"q{i}", said(i < 3), boxes=1) for i in range(4)))
    found = contrast("distraction", first, second, draws=200)
    assert (found.items, found.only_first, found.only_second) == (4, 0, 0)
    one = found.differences["acc_synonym"]
    assert (one.first, one.second, one.estimate.value, one.differing) == (0.25, 0.75, 0.5, 2)
    assert one.estimate.low is None  # four items are too few


def test_recall_by_hand_micro_and_macro():
    # all: uses 1 of 2 relevant on q0, 0 of 1 on q1: micro 1/3, macro 1/4. relevant: 2 of 2, and 0 of 1: micro 2/3,
    # macro 1/2
    first = records("all", doc("q0", said(True, [1, 3]), relevant=(1, 2)), doc("q1", said(True, [3])))
    second = records(
        "relevant", doc("q0", said(True, [1, 2]), boxes=2, relevant=(1, 2)), doc("q1", said(True), boxes=1)
    )
    found = contrast("distraction", first, second, draws=200).differences
    assert (found["magiscore_recall_micro"].first, found["magiscore_recall_micro"].second) == pytest.approx(
        (1 / 3, 2 / 3)
    )
    assert (found["magiscore_recall_macro"].first, found["magiscore_recall_macro"].second) == pytest.approx(
        (1 / 4, 1 / 2)
    )
    # precision would rise by construction: it is no part of a contrast
    assert not any("precision" in name or "f1" in name for name in found)


def test_what_boxes_give_has_no_recall():
    first = records("none", *(doc(f"q{i}", said(False), boxes=0, relevant=()) for i in range(3)))
    second = records("all", *(doc(f"q{i}", said(True)) for i in range(3)))
    found = contrast("boxes", first, second, draws=200)
    assert set(found.differences) == {"acc_exact", "acc_synonym"}
    assert found.differences["acc_exact"].estimate.value == 1


def test_items_are_joined_by_id_and_what_is_unjudged_is_left_out():
    # judged in both: q1 (right, wrong) and q2 (wrong, wrong); q0 is unjudged on one side, q3 is only on one side
    first = records(
        "all", *(doc(f"q{i}", said(True), short=value, full=None) for i, value in enumerate([None, True, False, True]))
    )
    second = records(
        "relevant",
        *(
            doc(f"q{i}", said(True), boxes=1, short=value, full=None)
            for i, value in [(2, False), (1, False), (0, True)]
        ),
    )
    found = contrast("distraction", first, second, draws=200)
    assert (found.items, found.only_first, found.only_second) == (3, 1, 0)
    short = found.differences["acc_short"]
    assert (short.first, short.second, short.estimate.n) == (0.5, 0.0, 2)
    assert found.differences["acc_exact"].estimate.n == 3
    assert "acc_full" not in found.differences  # nobody has a verdict
    assert "acc_short" not in contrast("distraction", first, second, skip=["acc_short"], draws=200).differences


def test_nothing_judged_in_both_is_not_defined_and_says_why():
    first = records("all", doc("q0", said(True), short=True), doc("q1", said(True), short=None))
    second = records("relevant", doc("q0", said(True), boxes=1, short=None), doc("q1", said(True), boxes=1, short=True))
    one = contrast("distraction", first, second, draws=200).differences["acc_short"]
    assert (one.first, one.estimate.value, one.estimate.n) == (None, None, 0)
    assert one.estimate.reason


def test_other_data_is_refused():
    ours = records("all", doc("q0", said(True)))
    with pytest.raises(RecordError, match="no item in common"):
        contrast("distraction", ours, records("relevant", doc("q1", said(True))))
    with pytest.raises(RecordError, match="1 relevant boxes in one variant and 2 in the other"):
        contrast("distraction", ours, records("relevant", doc("q0", said(True), relevant=(1, 2))))
    with pytest.raises(RecordError, match="on image 'q0' in one variant and on 'other'"):
        contrast("distraction", ours, records("relevant", doc("q0", said(True), group="other")))
    with pytest.raises(RecordError, match="is of all and relevant, not of none"):
        contrast("distraction", ours, records("none", doc("q0", said(True))))


BITS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=12, max_size=30)


@examples(25)
@given(BITS)
def test_the_value_is_the_difference_of_the_means_whatever_the_order(pairs):
    first = records("all", *(doc(f"q{i}", said(a)) for i, (a, _) in enumerate(pairs)))
    second = records("relevant", *(doc(f"q{i}", said(b), boxes=1) for i, (_, b) in enumerate(pairs)))
    found = contrast("distraction", first, second, draws=200)
    one = found.differences["acc_exact"]
    assert one.estimate.value == pytest.approx(np.mean([float(b) - float(a) for a, b in pairs]))
    assert one.differing == sum(a != b for a, b in pairs)
    assert contrast("distraction", first[::-1], second, draws=200) == found


def test_images_are_kept_together():
    # four items on each of 20 images, answered alike: four times the docs, not four times the knowledge
    rng = np.random.default_rng(0)
    bits = rng.random((20, 2)) < (0.4, 0.7)
    first = records(
        "all", *(doc(f"q{i}-{k}", said(bits[i, 0]), group=f"g{i}") for i, k in itertools.product(range(20), range(4)))
    )
    second = records(
        "relevant",
        *(
            doc(f"q{i}-{k}", said(bits[i, 1]), boxes=1, group=f"g{i}")
            for i, k in itertools.product(range(20), range(4))
        ),
    )
    one = contrast("distraction", first, second, draws=2000).differences["acc_exact"]
    assert one.estimate.clusters == 20
    assert one.differing == int((bits[:, 0] != bits[:, 1]).sum())
    spread = (bits[:, 1].astype(float) - bits[:, 0]).std() / np.sqrt(20)  # the standard error of 20 independent images
    assert one.estimate.se == pytest.approx(spread, rel=0.1)


def test_the_table_of_contrasts():
    assert CONTRASTS == {"distraction": ("all", "relevant"), "boxes": ("none", "all"), "hints": ("none", "relevant")}
    judged = records("all", doc("q", said(True), short=True, full=False))
    assert compared(judged, judged)[:4] == ["acc_short", "acc_full", "acc_exact", "acc_synonym"]
