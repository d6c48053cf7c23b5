"""``mosaic_reader``: what it sees is what is in the pixels; what parts of a clip answer is in ``wrap/test_video_planted``."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
import yaml
from lmms_patch.harness.models.mosaic_reader import MosaicReader, MosaicReaderChat, Reader, frames_of

from lmms_patch.resources import folder
from tests.harness.command import lmms_eval, samples
from tests.places import ROOT

HERE = folder("tasks") / "mosaic_video"
FAMILIES = ("moment", "count", "order", "still", "text")


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


# --- what it is handed ----------------------------------------------------------------------------


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
