"""Docs' own boxes without the harness: how they are read, and numbers against hand derivation, brute force and planted truth."""

import itertools
import math
import random
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lmms_patch.ask.answers import Asked
from lmms_patch.ask.boxes import disjoint, hide, misfit, read
from lmms_patch.ask.kinds import KINDS, REGIONS
from lmms_patch.ask.references import Doc, plan
from lmms_patch.ask.views import Region, cut
from lmms_patch.rci.kinds.regions import expected_best
from lmms_patch.runs import catalogue
from tests.making.boxes import numbers, planted, record
from tests.making.recordings import METRIC, mean
from tests.sizes import examples, size

TWO = [(1, 2, 9, 8), (0, 0, 5, 5)]

# --- reading boxes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        {"boxes": [[1, 2, 9, 8], [0, 0, 5, 5]], "relevant": [True, False]},
        {"boxes": ((1.0, 2.0, 9.0, 8.0), (0, 0, 5, 5)), "relevant": [1, 0]},
        {"boxes": np.array([[1, 2, 9, 8], [0, 0, 5, 5]]), "relevant": np.array([True, False])},
        {"boxes": "[[1, 2, 9, 8], [0, 0, 5, 5]]", "relevant": "[true, false]"},
        {"boxes": [[1, 2, 9, 8], [0, 0, 5, 5]], "relevant": ["relevant", "adversarial"]},
        {"boxes": [{"box": [1, 2, 9, 8], "relevant": True}, {"bbox": [0, 0, 5, 5], "adversarial": True}]},
        {
            "boxes": [{"left": 1, "top": 2, "right": 9, "bottom": 8}, {"x": 0, "y": 0, "w": 5, "h": 5}],
            "relevant": [True, False],
        },
        {
            "boxes": [
                {"x": 1, "y": 2, "width": 8, "height": 6, "adversarial": False},
                {"box": [0, 0, 5, 5], "relevant": False},
            ]
        },
        {"boxes": {"box": [[1, 2, 9, 8], [0, 0, 5, 5]], "relevant": [True, False]}},
        {"boxes": {"left": [1, 0], "top": [2, 0], "right": [9, 5], "bottom": [8, 5]}, "relevant": [True, False]},
        {"meta": {"boxes": [[1, 2, 9, 8], [0, 0, 5, 5]], "relevant": [True, False]}},
    ],
)
def test_forms_of_boxes(row):
    boxes, relevant = ("meta.boxes", "meta.relevant") if "meta" in row else ("boxes", "relevant")
    found = read(row, boxes, relevant)
    assert found.fault == ""
    assert [one.area for one in found.boxes] == TWO
    assert [(one.number, one.relevant, one.set) for one in found.boxes] == [
        (1, True, "relevant"),
        (2, False, "adversarial"),
    ]


def test_four_numbers_as_coco_writes_them_only_where_it_is_said():
    row = {"boxes": [[1, 2, 8, 6]], "relevant": [True]}
    assert read(row).boxes[0].area == (1, 2, 8, 6)
    assert read(row, form="ltwh").boxes[0].area == (1, 2, 9, 8)


def test_a_single_box_and_boxes_that_are_all_relevant():
    assert read({"bbox": [1, 2, 8, 6], "relevant": [False]}, "bbox", form="ltwh").boxes == (
        Region(number=1, area=(1, 2, 9, 8), relevant=False),
    )
    assert [one.relevant for one in read({"boxes": [[0, 0, 5, 5], [1, 1, 2, 2]]}, relevant="all").boxes] == [True, True]
    assert read({"bbox": "[0, 0, 5, 5]"}, "bbox", "all").boxes == (Region(number=1, area=(0, 0, 5, 5), relevant=True),)
    assert [one.relevant for one in read({"boxes": [[0, 0, 5, 5]], "all": [False]}, relevant="all").boxes] == [
        False
    ]  # a field of this name counts
    assert read({"boxes": []}, relevant="all") == read({})


@pytest.mark.parametrize("row", [{}, {"boxes": None}, {"boxes": []}, {"boxes": ""}, {"boxes": [], "relevant": []}])
def test_docs_without_boxes_are_no_fault(row):
    assert read(row) == read({"boxes": []})
    assert read(row).fault == ""


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"boxes": [[0, 0, 5, 5]]}, "boxes of which it is not known whether they are relevant"),
        ({"boxes": [[0, 0, 5, 5]], "relevant": [True, False]}, "lists that are not equally long"),
        ({"boxes": [[0, 0, 5, 5], [0, 0, 4, 4]], "relevant": [True, None]}, "a box that is neither relevant nor not"),
        ({"boxes": [[0, 0, 5, 5]], "relevant": ["maybe"]}, "a box that is neither relevant nor not"),
        ({"boxes": [[0, 0, 5]], "relevant": [True]}, "a box that is not four numbers"),
        ({"boxes": [0, 0, 5, 5], "relevant": [True] * 4}, "lists that are not equally long"),
        ({"boxes": [0, 0, 5], "relevant": [True] * 3}, "a box that is not four numbers"),
        ({"boxes": [[0, 0, 5, math.nan]], "relevant": [True]}, "a box that is not four numbers"),
        ({"boxes": [[0, 0, 5, True]], "relevant": [True]}, "a box that is not four numbers"),
        ({"boxes": [{"left": 1, "top": 2, "right": 9, "relevant": True}]}, "a box that is not four numbers"),
        ({"boxes": [[5, 0, 5, 5]], "relevant": [True]}, "a box without area"),
        ({"boxes": [[5, 0, 4, 5]], "relevant": [True]}, "a box without area"),
        ({"boxes": [[-1, 0, 4, 5]], "relevant": [True]}, "a box that leaves the image"),
        ({"boxes": [[0.1, 0.2, 0.5, 1.0]], "relevant": [True]}, "boxes that are not in pixels"),
        ({"boxes": "nine", "relevant": [True]}, "boxes that cannot be read"),
        ({"boxes": 9, "relevant": [True]}, "boxes that cannot be read"),
        ({"boxes": {"box": [[0, 0, 5, 5]], "relevant": [True, False]}}, "boxes that cannot be read"),
    ],
)
def test_a_doc_with_a_wrong_box_has_none_and_says_why(row, says):
    found = read(row)
    assert found.boxes == ()
    assert found.fault.partition(":")[0] == says


def test_the_smallest_box_in_pixels_is_no_fraction():
    assert read({"boxes": [[0, 0, 1, 1]], "relevant": [True]}).boxes[0].area == (0, 0, 1, 1)


# --- hiding boxes ---------------------------------------------------------------------------------

SPANS = st.tuples(st.integers(0, 11), st.integers(1, 6))
AREAS = st.lists(st.builds(lambda x, y: (x[0], y[0], x[0] + x[1], y[0] + y[1]), SPANS, SPANS), max_size=6)


def pixels(boxes):
    """How many of the boxes each pixel lies in."""
    out = np.zeros((18, 18), int)
    for left, top, right, bottom in boxes:
        out[top:bottom, left:right] += 1
    return out


@given(AREAS, AREAS)
def test_disjoint_rectangles_cover_each_pixel_of_the_boxes_once_and_no_other(boxes, without):
    found = disjoint(boxes, without)
    np.testing.assert_array_equal(pixels(found), (pixels(boxes) > 0) & (pixels(without) == 0))
    assert all(left < right and top < bottom for left, top, right, bottom in found)


@given(AREAS, AREAS)
def test_what_is_hidden_of_a_doc(relevant, adversarial):
    """By the definition, pixel by pixel: the adversarial view shows all that is relevant."""
    boxes = [
        Region(number=i, area=area, relevant=i <= len(relevant)) for i, area in enumerate([*relevant, *adversarial], 1)
    ]
    want = {"relevant": pixels(relevant) > 0, "adversarial": (pixels(adversarial) > 0) & (pixels(relevant) == 0)}
    for name, given_boxes in (("relevant", relevant), ("adversarial", adversarial)):
        found = hide(boxes, name, (18, 18))
        if not given_boxes:
            assert found == (f"no {name} box" if boxes else "no box")
        elif not want[name].any():
            assert found == "adversarial boxes that lie within relevant ones"
        else:
            assert found.set == name
            assert found.share == pytest.approx(want[name].mean())
            np.testing.assert_array_equal(pixels(found.areas), want[name])
            shown = np.asarray(cut(Image.new("L", (18, 18), 0), found))
            np.testing.assert_array_equal(shown == 128, want[name])
    assert (
        hide([Region(number=1, area=(0, 0, 9, 5))], "relevant", (9, 5)) == "relevant boxes that cover the whole image"
    )


@given(st.floats(0, 50), st.floats(0, 50), st.floats(0.01, 50), st.floats(0.01, 50))
def test_a_box_is_the_whole_pixels_that_it_touches(left, top, width, height):
    row = {"boxes": [[left, top, left + width, top + height], [0, 0, 2, 2]], "relevant": [True, True]}
    a, b, c, d = read(row).boxes[0].area
    assert a <= left + 1e-5
    assert c >= left + width - 1e-5
    assert 0 <= left - a + 1e-5 < 1.001
    assert 0 <= c - (left + width) + 1e-5 < 1.001
    assert b <= top + 1e-5
    assert d >= top + height - 1e-5
    assert c > a
    assert d > b


def test_boxes_that_do_not_fit_the_image():
    boxes = read({"boxes": [[0, 0, 5, 5], [1, 0, 9, 4]], "relevant": [True, False]}).boxes
    assert misfit(boxes, (9, 5)) == ""
    assert misfit(boxes, (8, 5)) == "a box that leaves the image: box 2 is [1, 0, 9, 4], the image has 8x5 pixels"
    assert misfit(boxes, (9, 4)).startswith("a box that leaves the image: box 1")
    assert misfit(boxes, (9, 5), min_side=5) == "a box that is too small: box 2 has 8x4 pixels, min_side is 5"


def test_a_region_is_cut_as_it_is_and_upsampled_where_asked():
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8))
    view = Region(number=1, area=(3, 4, 17, 11))
    assert np.array_equal(np.asarray(cut(image, view)), np.asarray(image)[4:11, 3:17])
    assert cut(image, view, min_cell=14).size == (28, 14)
    assert (view.kind, view.cell, view.box((99, 99)), view.set) == ("region", None, (3, 4, 17, 11), "relevant")


# --- numbers --------------------------------------------------------------------------------------


@examples(60)
@given(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=6), st.data(), st.booleans())
def test_the_best_of_some_boxes_is_that_of_all_choices(scores, data, higher):
    k = data.draw(st.integers(1, len(scores)))
    every = [(max if higher else min)(some) for some in itertools.combinations(scores, k)]
    assert expected_best(scores, k, higher) == pytest.approx(statistics.mean(every))


def test_numbers_by_hand():
    """Best relevant: 1, 0, 1, -, 1. Best adversarial: 0, 1, -, 1, 1. Both: kinds 1, 2 and 5."""
    found = numbers(planted(), chance=0.0)
    regions = found.regions
    relevant, adversarial = (regions.sets[key] for key in REGIONS)
    assert (found.fip.value, relevant.fip, adversarial.fip) == pytest.approx((0.8, 0.75, 1.0))
    assert (relevant.mpp.value, adversarial.mpp.value) == pytest.approx((0.75, 0.75))
    assert (relevant.index.value, adversarial.index.value) == pytest.approx((0.0, 0.25))
    assert (relevant.gap.value, adversarial.gap.value) == pytest.approx((0.0, 0.25))
    # means over boxes: relevant 1/2, 0, 1, 1/3; adversarial 0, 1/3, 1, 1/2
    assert regions.mean["relevant"].value == pytest.approx((1 / 2 + 0 + 1 + 1 / 3) / 4)
    assert regions.mean["adversarial"].value == pytest.approx((0 + 1 / 3 + 1 + 1 / 2) / 4)
    assert regions.best.value == pytest.approx((1 + 0 + 1) / 3 - (0 + 1 + 1) / 3)
    # the best of equally many: kind 1 one of two (1/2) against 0, kind 2 0 against one of three (1/3), kind 5 two of
    # three (2/3) against both (1)
    assert regions.even.value == pytest.approx((1 / 2 + 0 + 2 / 3) / 3 - (0 + 1 / 3 + 1) / 3)
    assert regions.average.value == pytest.approx((1 / 2 + 0 + 1 / 3) / 3 - (0 + 1 / 3 + 1 / 2) / 3)
    assert (regions.both, regions.boxes) == (120, {"relevant": 40 * 7, "adversarial": 40 * 7})
    assert regions.left_out == {"relevant": {"no relevant box": 40}, "adversarial": {"no adversarial box": 40}}
    assert (relevant.excluded, adversarial.excluded, regions.best.n, relevant.mpp.n) == (40, 40, 120, 160)
    flat = catalogue.columns(found, KINDS["regions"])
    assert (flat["rci_relevant"], flat["gap_adversarial"], flat["n_excluded_relevant"], flat["n_both"]) == (
        relevant.index.value,
        0.25,
        40,
        120,
    )
    own = {name for name, (one, _) in catalogue.keyed(KINDS["regions"], []).items() if one.columns}
    assert {name for name in flat if not name.endswith(("_low", "_high"))} == own


def random_records(seed=3, n=200, per_cluster=2):
    stream = random.Random(seed)

    def some(least):
        return [float(stream.random() < 0.5) for _ in range(stream.randrange(least, 4))]

    return [record(i, float(stream.random() < 0.7), some(0), some(0), cluster=i // per_cluster) for i in range(n)]


def of_doc(one, key):
    return [view["scores"][METRIC] for view in one["views"] if view.get("relevant") is (key == "relevant")]


def even_best(scores, other):
    k = min(len(scores), len(other))
    return mean([max(some) for some in itertools.combinations(scores, k)])


def resampled(values, clusters, draws=3000, seed=1):
    """The mean of what is known, in a plain loop over clusters drawn with replacement: standard error, 2.5 % and 97.5 % points."""
    stream, groups = random.Random(seed), {}
    for value, cluster in zip(values, clusters, strict=True):
        groups.setdefault(cluster, []).append(value)
    members = list(groups.values())
    drawn = [mean([v for _ in members for v in stream.choice(members) if v is not None]) for _ in range(draws)]
    return statistics.stdev(drawn), *np.quantile(drawn, [0.025, 0.975])


def test_every_number_and_its_interval_by_plain_loops():
    """Differences are resampled by whole clusters, docs without both among them."""
    records = random_records()
    regions = numbers(records, chance=0.0, draws=4000).regions
    both = [one for one in records if of_doc(one, "relevant") and of_doc(one, "adversarial")]
    sides = [(of_doc(one, "relevant"), of_doc(one, "adversarial")) for one in both]
    ways = {
        "best": [max(r) - max(a) for r, a in sides],
        "even": [even_best(r, a) - even_best(a, r) for r, a in sides],
        "average": [mean(r) - mean(a) for r, a in sides],
    }
    for name, differences in ways.items():
        ours = getattr(regions, name)
        assert (ours.value, ours.n) == (pytest.approx(mean(differences)), len(both))
        by_id = {one["doc_id"]: d for one, d in zip(both, differences, strict=True)}
        se, low, high = resampled(
            [by_id.get(one["doc_id"]) for one in records], [one["fields"]["cluster"] for one in records]
        )
        assert ours.se == pytest.approx(se, rel=0.08)
        assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.25 * se)
    for key in REGIONS:
        found = [of_doc(one, key) for one in records if of_doc(one, key)]
        assert regions.sets[key].mpp.value == pytest.approx(mean([max(scores) for scores in found]))
        assert regions.mean[key].value == pytest.approx(mean([mean(scores) for scores in found]))
        assert regions.boxes[key] == sum(map(len, found))


@examples(25)
@given(
    st.lists(
        st.tuples(st.booleans(), *[st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=3)] * 2),
        min_size=12,
        max_size=20,
    )
)
def test_boxes_called_the_other_way_swap_the_sets_and_turn_the_differences(docs):
    one, other = (
        numbers(
            [record(i, float(full), *sides[::step]) for i, (full, *sides) in enumerate(docs)], chance=0.0, draws=200
        ).regions
        for step in (1, -1)
    )
    for key, swapped in zip(REGIONS, REGIONS[::-1], strict=True):
        assert one.sets[key].mpp.value == other.sets[swapped].mpp.value
        assert one.mean[key].value == pytest.approx(other.mean[swapped].value)
        if one.mean[key].value is not None:
            assert one.mean[key].value <= one.sets[key].mpp.value + 1e-12
    for name in ("best", "even", "average"):
        ours, theirs = getattr(one, name).value, getattr(other, name).value
        assert ours is theirs is None or ours == pytest.approx(-theirs)


LETTERS = "ABCD"


def guesser(n=400, relevant=(3,), adversarial=(1,), know=0.0, full=0.8, seed=5):
    """Four options; the full image knows 0.8 of the answers, one relevant box knows some, every other box guesses.

    Args:
        relevant, adversarial: the numbers of boxes that docs have, drawn for each doc.
        know: what one relevant box knows.
    """
    stream = np.random.default_rng(seed)
    golds = [LETTERS[i] for i in stream.integers(0, 4, n)]
    made = plan(
        [Doc(i, Asked("Which?\nA. u\nB. v\nC. w\nD. x", gold), "Which?", cluster=i) for i, gold in enumerate(golds)]
    )

    def say(chance, gold):
        return gold if stream.random() < chance else LETTERS[stream.integers(0, 4)]

    def boxes(counts, chance, gold):
        return [say(chance if k == 0 else 0, gold) for k in range(counts[stream.integers(0, len(counts))])]

    said = [say(full, gold) for gold in golds]
    sides = {
        "relevant": [boxes(relevant, know, gold) for gold in golds],
        "adversarial": [boxes(adversarial, 0, gold) for gold in golds],
    }

    def right(i, answers):
        return [float(answer == golds[i]) for answer in answers]

    return [
        record(i, right(i, [said[i]])[0], *(right(i, own[i]) for own in sides.values()), answer=("mc", 4, gold),
               baselines=[(answer, roles, float(answer == gold)) for answer, roles in made.baselines[i].items()])
        for i, gold in enumerate(golds)
    ]  # fmt: skip


def test_more_boxes_are_more_luck_and_three_numbers_do_not_reward_it():
    """All boxes guess: the best of three looks better than the best of one."""
    found = numbers(guesser())
    regions = found.regions
    assert found.gate.valid is True
    assert regions.sets["relevant"].mpp.value == pytest.approx(1 - 0.75**3, abs=0.07)
    assert regions.sets["adversarial"].mpp.value == pytest.approx(0.25, abs=0.07)
    assert regions.best.low > 0.2
    for fair in (regions.even, regions.average):
        assert fair.low < 0 < fair.high
        assert fair.value == pytest.approx(0, abs=0.05)


def test_the_mean_box_does_not_rise_with_the_number_of_boxes():
    """One of 1, 2 or 5 relevant boxes knows 0.4 where the full image knows 0.8, the others guess."""
    regions = numbers(guesser(size(1200, 2000), (1, 2, 5), (1, 2, 5), know=0.4), draws=300).regions
    for key, truth in (("relevant", 0.5), ("adversarial", 1.0)):
        assert regions.sets[key].index.value < truth - 0.2  # of one pass: luck makes any box look good
    # one box drawn of k: knows 0.4/k on average, mean of 1, 1/2 and 1/5; where it does not know, it guesses like the
    # adversarial one
    assert regions.average.value == pytest.approx(0.4 * 0.75 * (1 + 1 / 2 + 1 / 5) / 3, abs=0.03)


def test_a_set_that_few_docs_have_gets_no_interval():
    """The other 95 docs decide nothing about it."""
    records = [record(i, 1.0, [float(i % 2)], [float(i % 3 == 0)] if i < 5 else []) for i in range(100)]
    regions = numbers(records, chance=0.0).regions
    assert regions.sets["relevant"].mpp.low is not None
    for estimate in (
        regions.sets["adversarial"].mpp,
        regions.sets["adversarial"].index,
        regions.mean["adversarial"],
        regions.best,
        regions.even,
    ):
        assert estimate.value is not None
        assert (estimate.low, estimate.n) == (None, 5)
        assert estimate.reason == "5 docs are too few for an interval; about 10 docs would do"


def test_the_gate_is_asked_of_the_docs_of_each_set():
    """The docs with an adversarial box are those that the full image cannot answer."""
    hard = [record(i, float(i % 10 == 0), [1.0], [1.0]) for i in range(60)]
    easy = [record(60 + i, 1.0, [1.0], []) for i in range(140)]
    found = numbers(hard + easy, chance=0.25, scale=1.0)
    assert found.gate.valid is True
    assert found.regions.sets["relevant"].index.value == pytest.approx(1 - 1 / (146 / 200))
    lost = found.regions.sets["adversarial"]
    assert lost.index.value is lost.gap.value is None
    assert lost.reason.startswith("of the 60 docs that the set of adversarial boxes uses: near chance")
    assert lost.mpp.value == 1.0
    assert found.regions.best.value == pytest.approx(0.0)  # a difference of two scores needs no gate


def f1(items):
    hits = sum(one["prediction"] == one["ground_truth"] == "yes" for one in items)
    return (
        2
        * hits
        / (sum(one["prediction"] == "yes" for one in items) + sum(one["ground_truth"] == "yes" for one in items))
    )


def test_an_aggregation_that_is_no_mean_runs_on_boxes_that_are_drawn():
    """F1: M of one box of each doc drawn at random, averaged over draws; here against 600 draws of a plain loop."""
    stream = random.Random(1)
    records = []
    for i in range(100):
        gold = "yes" if i % 2 else "no"

        def item(score, gold=gold):
            return {"prediction": gold if score else ("no" if gold == "yes" else "yes"), "ground_truth": gold}

        boxes = [[float(stream.random() < p) for _ in range(1 + i % 3)] for p in (0.8, 0.4)]
        records.append(record(i, 1.0, *boxes, items=item))
    regions = numbers(records, f1, form="f1", chance=0.0).regions

    def draws(key, size):
        out = []
        for _ in range(600):
            chosen = []
            for one in records:
                own = [view for view in one["views"] if view.get("relevant") is (key == "relevant")]
                some = stream.sample(own, size(own))
                chosen.append(max(some, key=lambda view: view["scores"][METRIC])["items"][METRIC])
            out.append(f1(chosen))
        return statistics.mean(out), statistics.stdev(out)

    truth = {key: draws(key, lambda own: 1) for key in REGIONS}
    for key in REGIONS:
        value, spread = truth[key]
        assert regions.mean[key].value == pytest.approx(value, abs=4 * spread / math.sqrt(20))
    spread = 4 * math.hypot(*(truth[key][1] for key in REGIONS)) / math.sqrt(20)
    assert regions.average.value == pytest.approx(truth["relevant"][0] - truth["adversarial"][0], abs=spread)
    assert regions.even.value == pytest.approx(regions.best.value)  # as many of each: all of them
