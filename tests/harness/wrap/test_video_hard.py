"""Docs that no view in time can be made of: the run goes on where one doc is lost, and is refused in one line where the whole task is of that kind."""

import pytest
from lmms_eval.tasks import TaskManager
from PIL import Image

from lmms_patch.errors import CannotWrapError
from tests.harness import toys
from tests.harness.adapters import per_request
from tests.harness.cinema import SHAPES, Watching, WatchingChat, frames_of, said, write, write_videos
from tests.making.videos import make
from tests.sizes import each

BROKEN = 3
GREY = "image 224x224 (128, 128, 128)"
MODELS = [Watching, WatchingChat]


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    return write_videos(tmp_path_factory.mktemp("videos"))


def run(model, folder, tasks, **options):
    manager = TaskManager("ERROR", include_path=str(folder), include_defaults=False)
    return toys.simple_evaluate(
        model=model, tasks=tasks, task_manager=manager, log_samples=True, bootstrap_iters=0, **options
    )


def answers(results, task, doc):
    return [resps[0] for resps in results["samples"][task][doc]["resps"]]


def broken(how, whole, place):
    """Write a damaged video, or none; return its path."""
    content = {
        "missing": None,
        "cut short": whole.read_bytes()[:-200],
        "no video": b"<html>404 Not Found</html>",
        "empty": b"",
    }[how]
    if content is not None:
        place.write_bytes(content)
    return place


@pytest.mark.parametrize(("how", "model"), each(["missing", "cut short", "no video", "empty"], MODELS))
def test_a_video_that_cannot_be_read_is_left_out_and_counted(tmp_path, videos, told, model, how):
    """The model gets a grey image in the place of each view; in messages it is an image part, not a video."""
    shown = list(videos)
    shown[BROKEN] = broken(how, videos[0], tmp_path / "broken.mp4")
    write(tmp_path, "toy", shown)
    results = run(model(per_request), tmp_path, ["toy_trci4"])
    assert answers(results, "toy_trci4", BROKEN) == [GREY] * 5
    record = results["samples"]["toy_trci4"][BROKEN]["patch"]
    assert "cannot be read" in record["excluded"]["4"]
    assert "\n" not in record["excluded"]["4"]
    numbers = results["results"]["toy_trci4"]["patch,none"]
    assert (numbers["n_docs"], numbers["n_failed"]) == (len(SHAPES) - 1, 1)
    assert any("1 of 6 docs" in line for line in told)
    assert all(GREY not in answers(results, "toy_trci4", doc) for doc in range(len(SHAPES)) if doc != BROKEN)


def test_a_folder_without_its_videos_is_refused(tmp_path):
    write(tmp_path, "toy", [tmp_path / f"{i}.mp4" for i in range(4)])
    with pytest.raises(
        CannotWrapError, match=r"none of the 4 docs asked shows an image or a video \(doc 0: .*no such file"
    ) as caught:
        run(Watching(per_request), tmp_path, ["toy_trci4"])
    assert "\n" not in str(caught.value)


def test_a_clip_of_too_few_frames_is_left_out_and_its_full_view_is_scored(tmp_path, videos):
    """Of one frame, of three, and whole: neither of the first two has four segments.

    The native metric counts all docs.
    """
    short = [make(tmp_path / f"{frames}.mp4", frames) for frames in (1, 3)]
    write(tmp_path, "toy", [videos[0], *short])
    results = run(Watching(per_request), tmp_path, ["toy_trci4"])
    excluded = [sample["patch"]["excluded"] for sample in results["samples"]["toy_trci4"]]
    assert excluded == [{}, {"4": "the clip has 1 frame, too few for 4"}, {"4": "the clip has 3 frames, too few for 4"}]
    for doc, video in enumerate(short, start=1):
        assert set(answers(results, "toy_trci4", doc)) == {said(frames_of(video, 8))}, (
            "where no segment can be made, the whole is shown"
        )
    numbers = results["results"]["toy_trci4"]["patch,none"]
    assert (numbers["n_docs"], numbers["n_excluded4"]) == (3, 2)


@pytest.mark.parametrize(
    ("show", "why"),
    [
        ({"doc_to_visual": "!function utils.still"}, "still image"),
        ({"doc_to_visual": "!function utils.sound"}, "holds audio"),
        ({"doc_to_messages": "!function utils.stretch", "doc_to_visual": None}, "stretch of a video"),
    ],
    ids=["still", "audio", "stretch"],
)
def test_what_has_no_segments_is_refused_in_one_line(tmp_path, videos, show, why):
    write(tmp_path, "toy", videos, **show)
    model = WatchingChat(per_request) if "doc_to_messages" in show else Watching(per_request)
    with pytest.raises(CannotWrapError, match=why) as caught:
        run(model, tmp_path, ["toy_trci4"])
    assert "\n" not in str(caught.value)
    assert not model.seen


@pytest.mark.parametrize("show", ["message", "url"])
def test_messages_of_the_benchmarks_own(tmp_path, videos, show):
    """A video part, and a ``video_url`` part that holds the bytes."""

    class Reading(WatchingChat):
        def media(self, shown):
            parts = [part for message in shown for part in message["content"] if part["type"] != "text"]
            return [part["video_url"]["url"] if part["type"] == "video_url" else part["url"] for part in parts]

        def watch(self, medium):
            if not medium.startswith("data:"):
                return super().watch(medium)
            import base64

            (tmp_path / "inside.mp4").write_bytes(base64.b64decode(medium.partition(",")[2]))
            return super().watch(str(tmp_path / "inside.mp4"))

        def answers(self, batch):
            columns = list(zip(*batch, strict=True))
            return [
                " | ".join(map(self.watch, self.media(one)))
                for one in self.fetch(self.task_dict, columns[1], *columns[3:])
            ]

    write(tmp_path, "toy", videos[:2], doc_to_messages=f"!function utils.{show}", doc_to_visual=None)
    results = run(Reading(per_request), tmp_path, ["toy_trci4"])
    for doc, video in enumerate(videos[:2]):
        frames = frames_of(video, 8)
        assert answers(results, "toy_trci4", doc) == [said(frames), *(said(frames[i : i + 2]) for i in range(0, 8, 2))]


def test_of_an_image_and_a_video_only_the_video_is_cut_in_time(tmp_path, videos):
    write(tmp_path, "toy", videos[:2], doc_to_visual="!function utils.both")
    results = run(Watching(per_request), tmp_path, ["toy_trci2", "toy_rci2"])
    frames, image = frames_of(videos[0], 8), "image 40x30 (1, 2, 3) | "
    assert answers(results, "toy_trci2", 0) == [image + said(part) for part in (frames, frames[:4], frames[4:])]
    height, width = frames[0].shape[:2]
    corner = "image 20x15 (1, 2, 3) | " + said([frame[: height // 2, : width // 2] for frame in frames])
    assert answers(results, "toy_rci2", 0)[1] == corner


def test_grey_images_are_of_one_size():
    """What tests here take for the grey image is what the model is shown."""
    from lmms_patch.harness.wrap import media

    assert Watching(per_request).watch(media.stand_in()) == GREY
    assert isinstance(media.stand_in(), Image.Image)
