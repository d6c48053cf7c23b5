"""``mosaic_reader``: what it sees is what is in the pixels, and parts of a clip answer what was planted in them."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
import yaml
from lmms_patch.harness.models.mosaic_reader import MosaicReader, MosaicReaderChat, Reader, frames_of

from lmms_patch.errors import OptionError
from lmms_patch.resources import folder
from tests.harness.command import lmms_eval, samples
from tests.places import ROOT

HERE = folder("tasks") / "mosaic_video"
FAMILIES = ("moment", "count", "order", "still", "text")
COUNT, ORDER, RED, BLUE = (
    "How many digits appear in the clip?",
    "Does the {} appear before the {}?",
    "What digit appears in the red box?",
    "What digit is in the blue box?",
)


@pytest.fixture(scope="module")
def reader():
    return Reader()


@pytest.fixture(scope="module")
def truth():
    """The module of the script that cuts clips with NumPy."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(ROOT / "scripts" / "mosaic_video"))
    import truth

    yield truth
    patch.undo()


# --- what was planted ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(truth):
    """The share of right answers by family and view, over the first 20 docs of each family: five moments in each quarter, each count four times."""
    return truth.scores(20)


def test_full_clips_are_read(found):
    assert all(found[family]["full"] >= 0.9 for family in FAMILIES)


@pytest.mark.parametrize("family", ["moment", "still", "text"])
def test_one_segment_is_enough_for_a_moment_and_for_what_stays(found, family):
    assert all(found[family][f"best of {k}"] >= found[family]["full"] for k in (2, 4, 9))
    assert found[family]["best 2×2"] >= found[family]["full"]


def test_no_segment_shows_the_count_or_the_order(found):
    """No part holds the evidence: a count is never right, and an order is right where the answer is the constant guess, "no", half of the golds."""
    for view in ("best of 2", "best of 4", "best of 9", "middle", "best 2×2"):
        assert found["count"][view] == 0
        assert found["order"][view] == 0.5


def test_only_the_order_depends_on_the_order(found):
    for view in ("shuffled", "reversed"):
        assert all(found[family][view] == found[family]["full"] for family in FAMILIES if family != "order")
    assert found["order"]["reversed"] <= 0.1
    assert found["order"]["shuffled"] < 0.8


def test_frames_add_up_for_a_count_and_a_moment_but_not_for_what_stays(found):
    curves = {
        family: [found[family][name] for name in ("middle", "2 frames", "4 frames", "8 frames", "full")]
        for family in FAMILIES
    }
    for family in ("count", "moment"):
        assert curves[family] == sorted(curves[family])
        assert curves[family][-1] > curves[family][0] + 0.5
    assert curves["still"] == curves["text"] == [1.0] * 5


def test_without_a_clip_only_the_text_is_left(found):
    assert {family: found[family]["no clip"] for family in FAMILIES} == {
        "moment": 0,
        "count": 0,
        "order": 0.5,
        "still": 0,
        "text": 1,
    }


# --- what it is handed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_frames": 8}, "--model_args of mosaic_reader: unknown option 'max_frames'; did you mean max_num_frames?"),
        (
            {"max_num_frames": 0},
            "--model_args of mosaic_reader: max_num_frames must be a whole number of at least 1, not 0",
        ),
        (
            {"max_num_frames": "many"},
            "--model_args of mosaic_reader: max_num_frames must be a whole number of at least 1, not 'many'",
        ),
    ],
)
def test_wrong_arguments_are_one_line(given, said):
    with pytest.raises(OptionError) as error:
        MosaicReader(**given)
    assert str(error.value) == said


def test_simple_and_chat_requests_are_answered_from_the_clip_alone(tmp_path, truth):
    """The rows say nothing but the question, and the clips have other names, each that of its neighbour."""
    rows = [truth.rows(family)[number] for family in FAMILIES for number in (0, 1)]
    docs = []
    for number, row in enumerate(rows):
        shutil.copy(HERE / "clips" / row["video"], tmp_path / f"{rows[number - 1]['group']}.{number}.mp4")
        docs.append({"question": row["question"], "video": str(tmp_path / f"{rows[number - 1]['group']}.{number}.mp4")})

    def messages(doc):
        return [
            {
                "role": "user",
                "content": [{"type": "video", "url": doc["video"]}, {"type": "text", "text": doc["question"]}],
            }
        ]

    asked = {
        MosaicReader: [
            (doc["question"], {}, lambda doc: [doc["video"]], number, "clips", "test")
            for number, doc in enumerate(docs)
        ],
        MosaicReaderChat: [("", messages, {}, number, "clips", "test") for number in range(len(docs))],
    }
    for kind, requests in asked.items():
        model = kind()
        model.task_dict["clips"] = {"test": docs}
        assert model.generate_until([SimpleNamespace(args=args) for args in requests]) == [
            row["answer"] for row in rows
        ]


@pytest.mark.cli
def test_the_real_command_line(tmp_path, truth, reader):
    """As a chat model, which is the default, and as a simple one that takes fewer frames."""
    common = {"model": "mosaic_reader", "tasks": "mosaic_video", "limit": 4, "log_samples": True}
    runs = [
        {**common, "output_path": str(tmp_path / "chat")},
        {**common, "force_simple": True, "model_args": "max_num_frames=5", "output_path": str(tmp_path / "simple")},
    ]
    (tmp_path / "runs.yaml").write_text(yaml.safe_dump(runs))
    lmms_eval("--config", tmp_path / "runs.yaml")
    for name, most in (("chat", 32), ("simple", 5)):
        for family in FAMILIES:
            rows = truth.rows(family)[:4]
            expected = [
                reader.answer(row["question"], frames_of(str(HERE / "clips" / row["video"]), most)) for row in rows
            ]
            lines = samples(tmp_path / name, f"mosaic_video_{family}")
            assert [lines[number]["filtered_resps"] for number in range(4)] == expected
            assert [lines[number]["acc"] for number in range(4)] == [
                answer == row["answer"] for answer, row in zip(expected, rows, strict=True)
            ]
            assert name == "simple" or all(line["acc"] for line in lines.values())
