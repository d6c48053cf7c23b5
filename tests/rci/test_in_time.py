"""RCI in time: k segments of a clip in place of n² cells of an image; and the curve of few frames.

By hand, or against the same answers in space.
"""

import json

import numpy as np
import pytest

from lmms_patch.ask.kinds import KINDS
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.recompute import load
from lmms_patch.runs.catalogue import columns
from lmms_patch.runs.details import Settings
from lmms_patch.runs.numbers import to_json, to_mind
from lmms_patch.runs.run import find
from tests.making.recordings import FakeNative, guesses, mean, record, table
from tests.making.runs import again_run, guesses_on_cells, knows, never_looks, views_run, world_run, write_run

SCORES = {"first": [1.0, 0.0, 0.0, 0.0, 0.0], "last": [0.0, 0.0, 0.0, 0.0, 1.0], "none": [0.0] * 5}


def docs():
    """200 docs of four options in 5 segments: of each 20, the full clip is right on 16, segment 1 on 8, segment 5 on 4, the others on none."""
    out = []
    for i in range(200):
        which = "first" if i % 20 < 8 else "last" if i % 20 < 12 else "none"
        gold = "ABCD"[i // 50]
        about = {"answer": ("mc", 4, gold), "baselines": guesses(gold, "ABCD", stratum="A")}
        out.append(record(i, float(i % 20 < 16), {5: SCORES[which]}, kind="trci", **about))
    return out


def numbers(records, sets=(5,), **settings):
    return analyse(table(records), FakeNative(records), Settings(**settings), sets)


def test_the_index_of_five_segments_by_hand():
    found = numbers(docs())
    grid = found.grids[5]
    assert (found.fip.value, grid.mpp.value) == pytest.approx((0.8, 0.6))
    assert (grid.index.value, grid.gap.value) == pytest.approx((1 - 0.6 / 0.8, 0.2))
    assert grid.band == "moderate global"
    assert grid.shares.score == pytest.approx([8 / 12, 0, 0, 0, 4 / 12])
    assert grid.shares.win == pytest.approx([8 / 12, 0, 0, 0, 4 / 12])
    assert grid.shares.centre == 0  # of the middle one of five
    assert not any(
        "context" in line for line in grid.warnings
    )  # a fifth of a clip is no small cell, as 1/25 of an image is
    assert found.warnings == (
        "not checked whether the answers depend on the clip: no doc was asked on a wrong clip (null: 0)",
    )


@pytest.mark.parametrize("say", [guesses_on_cells, knows(0.8, 0.85, lucky=True), never_looks])
def test_four_segments_have_the_numbers_of_four_cells(say):
    """The same answers on 2×2 cells and on 4 segments: every number, interval and p-value is the same, but for where the middle is."""
    space, time = (
        analyse(table(records), FakeNative(records), Settings(draws=300), (grid,)).grids[grid]
        for grid, (_, records, _) in (
            (2, world_run(say, n=120, grid=2)),
            (4, world_run(say, n=120, grid=4, kind="trci")),
        )
    )
    ours, theirs = to_json(time), to_json(space)
    assert ours["shares"].pop("centre") is not None
    assert theirs["shares"].pop("centre") is None
    for one in (ours, theirs):
        one.pop("n"), one.pop("reason"), one.pop("mark")
        for estimate in (one["index"], one["gap"]):
            estimate.pop("reason")
    assert ours == theirs


def test_the_best_of_k_guesses_is_told_from_knowledge_by_asking_again():
    """Every segment guesses among four options: MPP is 1 - (3/4)^4 by luck alone, and asked again no segment knows anything."""
    (_, records, _) = again_run(("whole", "unsolved"), n=300, grid=4, kind="trci")
    found = analyse(table(records), FakeNative(records), Settings(draws=300), (4,))
    (need,), grid = found.necessity, found.grids[4]
    assert grid.mpp.value == pytest.approx(1 - 0.75**4, abs=0.07)
    assert grid.index.value < 0.1
    assert need.index.low > 0.9
    assert need.shares["one cell"].high < 0.1
    assert grid.mark.endswith("(strong global): the first is mostly luck")


def test_a_clip_that_is_too_short_is_left_out_and_counted():
    records = [
        *docs(),
        *(
            record(
                i,
                1.0,
                {5: [1.0] * 5},
                kind="trci",
                excluded=(5,),
                answer=("mc", 4, "A"),
                baselines=guesses("A", "ABCD"),
            )
            for i in range(200, 210)
        ),
    ]
    grid = numbers(records).grids[5]
    assert (grid.excluded, grid.mpp.n) == (10, 200)
    assert grid.mpp.value == pytest.approx(0.6)


# --- records --------------------------------------------------------------------------------------


def segments():
    return json.loads(json.dumps(world_run(guesses_on_cells, n=2, grid=4, kind="trci")[1][0]))


def test_a_segment_is_one_row_without_boxes():
    views = [view for view in segments()["views"] if view["kind"] == "segment"]
    assert [(view["n"], view["cell"], view["row"], view["col"]) for view in views] == [
        (4, i + 1, 0, i) for i in range(4)
    ]
    assert not any("boxes" in view for view in views)
    assert segments()["clips"] == [{"frames": 32, "seconds": 8.0}]


# --- a finished run -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    write_run(
        folder,
        {
            "film_trci4": world_run(knows(0.9, 0.0), n=80, grid=4, kind="trci", base="film"),
            "film_frames": views_run(
                "frames", [0.3, 0.45, 0.6, 0.8], n=80, grids=(1, 2, 4, 8), base="film", short=(0, 1)
            ),
            "film_treverse": views_run("treverse", [0.5], n=80, base="film"),
        },
    )
    return folder


def test_a_task_of_clips_has_another_fingerprint_than_one_of_images(run):
    assert {one.result.kind.name: one.result.fingerprint["kind"] for one in load(find([run])[0])} == {
        "trci": "trci",
        "frames": "frames",
    }


# --- the curve ------------------------------------------------------------------------------------


def test_the_curve_has_a_number_for_each_count_of_frames_in_order():
    """``views_run`` plants 0.3, 0.45, 0.6 and 0.8 of 200 docs; two clips are too short for 8 frames."""
    short = (3, 7)
    _, records, _ = views_run("frames", [0.3, 0.45, 0.6, 0.8], n=200, grids=(1, 2, 4, 8), short=short)
    found = analyse(table(records), FakeNative(records), Settings(draws=200))
    right = np.array(
        [[view["scores"]["acc"] for view in one["views"]] for one in records if one["doc_id"] not in short]
    )
    assert list(found.curve) == [1, 2, 4, 8]
    assert [found.curve[n].value for n in (1, 2, 4)] == pytest.approx([0.3, 0.45, 0.6])
    assert (found.curve[8].value, found.curve[8].n) == (pytest.approx(right[:, 3].mean()), 198)
    assert all(one.low < one.value < one.high for one in found.curve.values())
    flat = columns(found, KINDS["frames"])
    assert [flat[f"n_excluded{n}"] for n in (1, 2, 4, 8)] == [0, 0, 0, 2]
    assert not to_mind(found, KINDS["frames"])


def test_a_count_of_frames_that_no_clip_has_says_so():
    _, records, _ = views_run("frames", [0.3, 0.45], n=20, grids=(4, 64), short=range(20))
    found = analyse(table(records), FakeNative(records), Settings(draws=50))
    assert (found.curve[64].value, found.curve[64].reason) == (None, "no doc has so many frames and a score")


def test_the_curve_of_an_aggregation_that_must_be_called():
    """A metric that is no function of sums: the largest of the means of odd and even docs."""
    _, records, _ = views_run("frames", [0.25, 0.5], n=40, grids=(1, 2))

    def odd(items):
        return max(mean(items[::2]), mean(items[1::2]))

    found = analyse(table(records), FakeNative(records, odd), Settings(draws=20))
    assert found.curve[2].value == odd([one["views"][1]["items"]["acc"] for one in records])
