"""``mosaic_reader``: what it sees is what is in the pixels, and parts of a clip answer what was planted in them."""

from __future__ import annotations

import shutil
from fractions import Fraction
from types import SimpleNamespace

import av
import numpy as np
import pytest
import yaml
from PIL import Image
from sklearn.datasets import load_digits

from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness.models.mosaic_reader import MosaicReader, MosaicReaderChat, Reader, frames_of
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


# --- the reader on pictures made here -------------------------------------------------------------


def paper(*shown, box=None):
    """A light frame of 100 x 140 px with scans at places, each 20 px high, and a frame of a colour around one place."""
    frame, digits = np.full((100, 140, 3), 205, np.uint8), load_digits()
    if box:
        colour, (x, y) = box
        frame[y - 20 : y + 20, x - 20 : x + 20] = {"red": (230, 20, 30), "blue": (30, 50, 230)}[colour]
        frame[y - 17 : y + 17, x - 17 : x + 17] = 205
    for digit, x, y in shown:
        scan = digits.images[np.flatnonzero(digits.target == digit)[3]]
        ink = np.asarray(Image.fromarray((scan * 15).astype(np.uint8)).resize((20, 20), Image.Resampling.BICUBIC)) / 240
        part = frame[y - 10 : y + 10, x - 10 : x + 10]
        part[:] = (part * (1 - ink[..., None]) + 35 * ink[..., None]).astype(np.uint8)
    return frame


@pytest.mark.parametrize("digit", range(10))
def test_a_digit_is_read_at_its_place(reader, digit):
    (sighting,) = reader.see(paper((digit, 70, 40)))
    assert sighting.value == digit
    assert abs(sighting.x - 70) < 4
    assert abs(sighting.y - 40) < 2
    assert sighting.box == ""


def test_a_clip_is_remembered_by_places(reader):
    """A 3 at frames 1 and 2, a 7 at frames 2 and 4: it is one 7 however often it vanishes, and another one elsewhere."""
    frames = [
        paper(),
        paper((3, 20, 20)),
        paper((3, 20, 20), (7, 100, 60)),
        paper(),
        paper((7, 100, 60)),
        paper((7, 20, 70)),
    ]
    assert [(place.value, place.first) for place in reader.places(frames)] == [(3, 1), (7, 2), (7, 5)]
    assert reader.answer(COUNT, frames) == "3"
    assert reader.answer(COUNT, frames[:3]) == "2"
    assert reader.answer(ORDER.format(3, 7), frames) == "yes"
    assert reader.answer(ORDER.format(7, 3), frames) == "no"
    assert reader.answer(ORDER.format(7, 3), frames[::-1]) == "yes"


def test_a_box_tells_digits_apart(reader):
    frames = [paper((5, 30, 30), (2, 100, 60), box=("red", (100, 60)))]
    assert reader.answer(RED, frames) == "2"
    assert reader.answer(BLUE, frames) == "unknown"
    assert reader.answer(COUNT, frames) == "2"


def test_plain_shapes_and_dirt_are_no_digits(reader):
    frame = paper()
    y, x = np.mgrid[:100, :140]
    frame[10:28, 10:28] = 30
    frame[(x - 60) ** 2 + (y - 40) ** 2 < 90] = 30
    frame[70:76, 20:42] = 30
    frame[60:65, 100:105] = 30
    assert reader.see(frame) == []


def test_what_is_painted_grey_is_no_digit_and_hides_none(reader):
    """As a blank and an occluded view are: the whole frame, and one of four cells."""
    frame = paper((3, 30, 30), (7, 110, 30))
    frame[50:, 70:] = 128
    assert [sighting.value for sighting in reader.see(frame)] == [3, 7]
    frame[:] = 128
    assert reader.see(frame) == []


def test_it_says_so_where_it_sees_nothing(reader):
    for frames in ([], [paper()]):
        asked = [
            reader.answer(question, frames)
            for question in (RED, BLUE, COUNT, ORDER.format(1, 2), "Which colour is the sky?")
        ]
        assert asked == ["unknown", "unknown", "0", "no", "unknown"]
    assert reader.answer("Which digit is written as the word four?", []) == "4"
    assert reader.answer("Which digit is written as the word fjord?", []) == "unknown"


def test_seeing_one_of_two_digits_says_nothing_of_their_order(reader):
    assert [reader.answer(ORDER.format(*pair), [paper((3, 20, 20))]) for pair in ((3, 7), (7, 3))] == ["no", "no"]


# --- what it is handed ----------------------------------------------------------------------------


def video(path, frames, codec="libx264rgb", **options):
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=Fraction(4), options={"qp": "0", **options})
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "rgb24" if codec.endswith("rgb") else "yuv420p"
        for pixels in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return str(path)


@pytest.mark.parametrize("ending", ["mp4", "mkv"])
def test_frames_are_taken_uniformly_and_exactly(tmp_path, ending):
    """By hand: 4 of 10 frames are 0, 3, 6, 9.

    An odd size is no trouble; Matroska does not say how many frames there are.
    """
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (10, 33, 47, 3), dtype=np.uint8)
    path = video(tmp_path / f"noise.{ending}", frames)
    for most, numbers in ((4, [0, 3, 6, 9]), (1, [0]), (10, range(10)), (99, range(10))):
        assert np.array_equal(frames_of(path, most), frames[list(numbers)])


def test_a_clip_its_frames_and_a_picture_are_read_alike(tmp_path):
    frames = [paper((4, 30, 30))] * 3 + [paper((9, 80, 50))] * 3
    path, images = video(tmp_path / "clip.mp4", frames), [Image.fromarray(frame) for frame in frames]
    images[0].save(tmp_path / "first.png")
    model = MosaicReader()
    for media, seen in (
        ([path], "2"),
        (images, "2"),
        ([str(tmp_path / "first.png")], "1"),
        (images[:1], "1"),
        ([], "0"),
        (frames[2:4], "2"),
    ):
        assert model._reader.answer(COUNT, model._frames(media)) == seen
    with pytest.raises(CannotWrapError, match="paths of videos and images, and images, not a float"):
        model._frames([0.5])


def test_fewer_frames_are_taken_of_clips_and_of_lists_of_images():
    model = MosaicReader(max_num_frames=3, batch_size=1, device="cpu")
    images = [Image.fromarray(np.full((8, 8, 3), number, np.uint8)) for number in range(9)]
    assert [int(frame[0, 0, 0]) for frame in model._frames(images)] == [0, 4, 8]


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
