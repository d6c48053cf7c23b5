"""What the embedded clips plant is what wrapped video tasks measure: through the real evaluator, with the reader that needs no GPU.

A question of a moment needs one quarter of the clip; of a count, all quarters; of an order, the direction of time; a
still shows the same all the time; a text names its answer without the clip.
"""

import pytest
from lmms_patch.harness.models.mosaic_reader import MosaicReader, MosaicReaderChat

from tests.harness.toys import metrics, run
from tests.sizes import size

DOCS, FEW = 10, size(3, 4)
"""Docs of each family: as many as an interval and a gate need, and as many as tell where every doc is answered alike."""
TASKS = {
    DOCS: {"moment": ["trci4"], "count": ["trci4"], "order": ["trci4", "tshuffle4", "treverse", ""], "text": ["trci4"]},
    FEW: {
        "count": ["tshuffle4", "treverse", "frames", "frames3", "frame", "swap", "blind"],
        "still": ["trci4", "frames", "frame", "rci2"],
        "text": ["swap", "blind"],
    },
}


@pytest.fixture(scope="module")
def found():
    """All tasks of one number of docs in one run, so that portions mix tasks and views."""
    out = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_PATCH_JOURNAL", "off")
        for docs, families in TASKS.items():
            names = [
                f"mosaic_video_{family}{'_' * bool(kind)}{kind}" for family, kinds in families.items() for kind in kinds
            ]
            results = run(MosaicReaderChat(), names, limit=docs)
            out |= {name.removeprefix("mosaic_video_"): metrics(results, name) for name in names}
    return out


@pytest.fixture(scope="module")
def indices(found):
    return {family: found[f"{family}_trci4"] for family in ("moment", "count", "order", "still", "text")}


def test_a_question_of_one_moment_needs_no_more_than_one_segment(indices):
    assert indices["moment"]["acc"] == 1
    assert indices["moment"]["trci4"] <= 0
    assert indices["moment"]["gate"] == 1


@pytest.mark.parametrize("family", ["count", "order"])
def test_questions_of_all_moments_need_the_full_clip(indices, family):
    """Digits come and go in different quarters, so no quarter holds the answer.

    "no" is half of the golds of an order.
    """
    assert indices[family]["acc"] >= 0.9
    assert indices[family]["trci4"] > 0.3
    assert indices[family]["patch"]["trci4_low"] > 0


def test_a_still_needs_no_moment(indices):
    assert indices["still"]["trci4"] == pytest.approx(0, abs=0.1)


def test_a_text_is_refused_since_a_wrong_clip_serves_as_well(indices):
    assert indices["text"]["acc"] == 1
    assert indices["text"]["gate"] == 0
    assert indices["text"]["trci4"] is None


def test_a_count_rises_with_the_frames_and_a_still_does_not(found):
    curves = {family: [found[f"{family}_frames"][f"frames{k}"] for k in (1, 2, 4, 8)] for family in ("count", "still")}
    assert curves["count"] == sorted(curves["count"])
    assert curves["count"][3] - curves["count"][0] > 0.5
    assert curves["still"] == [1] * 4
    assert curves["count"][1] <= found["count_frames3"]["acc"] <= curves["count"][3]
    assert found["count_frame"]["acc"] == curves["count"][0], "one frame is the middle frame"
    assert found["still_frame"]["acc"] == 1


def test_order_is_lost_in_permuted_and_reversed_clips_and_a_count_is_not(found, indices):
    whole = found["order"]["acc"]
    assert whole == indices["order"]["acc"], "the full view is the native task"
    assert found["order_treverse"]["acc"] == pytest.approx(1 - whole), (
        "the digits are there in the other order, so yes becomes no"
    )
    assert found["order_tshuffle4"]["acc"] < whole - 0.2
    for changed in ("tshuffle4", "treverse"):
        assert found[f"count_{changed}"]["acc"] >= indices["count"]["acc"] - 0.1


def test_cells_of_every_frame(found):
    """The digit of a still lies in one cell of all frames."""
    assert found["still_rci2"]["acc"] == 1
    assert found["still_rci2"]["acc_mpp2"] >= 0.9


def test_without_the_clip_or_with_another_only_the_text_is_left(found):
    assert (found["text_swap"]["acc"], found["text_blind"]["acc"]) == (1, 1)
    assert found["count_swap"]["acc"] < 0.5
    assert found["count_blind"]["acc"] == 0


def test_a_model_of_few_frames_has_clips_of_few_frames():
    """Of four frames each quarter holds one: the clip still partitions, and a still is still read in each."""
    told = run(MosaicReader(max_num_frames=4), ["mosaic_video_still_trci4"], limit=FEW)
    assert metrics(told, "mosaic_video_still_trci4")["acc_mpp4"] == 1
    assert told["configs"]["mosaic_video_still_trci4"]["lmms_patch"]["clip"] == {"count": 4, "fps": None}
