"""The frames that an adapter reads from a video are compared with those that its attributes promise, of which segments are made."""

import av
import numpy as np
import pytest
from lmms_eval.models.model_utils import load_video
from lmms_eval.tasks import TaskManager
from loguru import logger

from lmms_patch.harness.video import watch
from lmms_patch.runs import reading
from lmms_patch.runs.details import FramesRead
from lmms_patch.runs.typed import fault
from tests.harness import toys
from tests.harness.adapters import per_request
from tests.harness.cinema import Watching, WatchingChat, said, write, write_videos
from tests.making.videos import make, numbers_of

SHAPES = [(40, (64, 48)), (24, (128, 96)), (8, (64, 64))]
"""Frames and sizes. An adapter that says 8 frames and takes 16 takes 16, 16 and 8."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("frames")
    videos = write_videos(where / "videos", SHAPES)
    write(where, "one", videos)
    write(where, "told", videos, metadata={"version": 0.0, "lmms_patch": {"null": 0, "frames": 16}})
    return where


def run(model, folder, task="one_trci2"):
    """Run one task; return what its results file says of frames, and the warnings about them."""
    lines = []
    sink = logger.add(lambda line: lines.append(line.strip()), level="INFO", format="{level} {message}")
    try:
        manager = TaskManager("ERROR", include_path=str(folder), include_defaults=False)
        results = toys.simple_evaluate(
            model=model, tasks=[task], task_manager=manager, log_samples=True, bootstrap_iters=0
        )
    finally:
        logger.remove(sink)
    details = results["results"][task]["patch,none"]
    found = dict(details.items()).get("frames_read")
    assert not fault(found, FramesRead)
    assert load_video.load_video_stream.__module__ == load_video.__name__
    assert not hasattr(load_video.load_video_stream, "__watched__"), "the reader is put back"
    return found, [line for line in lines if "the adapter reads" in line]


class Lying(Watching):
    """Says that it takes 8 frames, and takes another number."""

    taken = 16

    def watch(self, medium):
        return said(
            [frame.to_ndarray(format="rgb24") for frame in load_video.load_video_stream(av.open(medium), self.taken)]
        )


@pytest.mark.parametrize("model", [Watching, WatchingChat])
def test_an_adapter_that_tells_the_truth(folder, model):
    assert run(model(per_request), folder) == ({"checked": True}, [])


def test_an_adapter_that_takes_more_than_it_says(folder):
    found, lines = run(Lying(per_request, batch_size=2), folder)
    assert found == {"checked": True, "held": 8, "read": 16}
    assert len(lines) == 1
    told = "WARNING one_trci2: the adapter reads 16 frames from the file of a clip, and its segments and other views hold 8"
    assert lines[0].startswith(told)
    assert lines[0].endswith("frames: 16")
    assert run(Lying(per_request), folder, "told_trci2") == ({"checked": True}, []), "what the line says to type helps"


def test_an_adapter_that_takes_fewer_than_it_says(folder):
    """Of 8 frames it takes 3, and 3 of the 4 in each of six segments."""
    model = Lying(per_request)
    model.taken = 3
    found, lines = run(model, folder)
    assert found == {"checked": True, "held": 8, "read": 3, "part_held": 4, "part_read": 3}
    assert [line.partition(": ")[2].partition(",")[0] for line in lines] == [
        "the adapter reads 3 frames from the file of a clip",
        "the adapter reads 3 of the 4 frames of a view",
    ]


def test_as_many_frames_but_others(folder):
    """The middles of 8 equal stretches, in two calls of one reader: of the video of 8 frames, and of segments, these are all frames."""
    decord = pytest.importorskip("decord")

    class Middles(Watching):
        def watch(self, medium):
            reader = decord.VideoReader(medium)
            count = min(8, len(reader))
            middles = [(2 * i + 1) * len(reader) // (2 * count) for i in range(count)]
            frames = [
                *reader.get_batch(middles[: count // 2]).asnumpy(),
                *(reader[i].asnumpy() for i in middles[count // 2 :]),
            ]
            return said(frames)

    found, lines = run(Middles(per_request), folder)
    assert found == {"checked": True, "held": 8, "read": 8}
    assert len(lines) == 1
    assert "reads other frames from the file of a clip than its segments" in lines[0]
    assert decord.VideoReader.get_batch.__qualname__ == "VideoReader.get_batch"
    assert not hasattr(decord.VideoReader.get_batch, "__wrapped__")


def by_qwen_32(path):
    from qwen_vl_utils import vision_process

    found = vision_process.fetch_video(
        {"type": "video", "video": path, "nframes": 32, "resized_height": 112, "resized_width": 140}
    )
    return found.permute(0, 2, 3, 1).numpy()


def by_internvl_32(path):
    """As lmms-eval's ``internvl_hf`` asks its processor, by which transformers reads a video."""
    from functools import partial

    from transformers import InternVLVideoProcessor
    from transformers.video_utils import load_video as load

    return load(
        path, sample_indices_fn=partial(InternVLVideoProcessor().sample_frames, num_frames=32), backend="decord"
    )[0]


@pytest.mark.parametrize("read", [by_qwen_32, by_internvl_32])
def test_readers_that_refuse_a_video_with_too_few_frames_give_a_segment_whole(tmp_path, read):
    pytest.importorskip("decord", reason="lmms-eval's readers take it where torchcodec is missing")

    class Fixed(Watching):
        def watch(self, medium):
            return " ".join(map(str, numbers_of(read(medium))))

    short, long = (make(tmp_path / f"{frames}.mp4", frames, (140, 112)) for frames in (20, 64))
    with pytest.raises(Exception, match=r"frames|read_video"):
        read(str(short))
    write(tmp_path, "one", [long])
    results = toys.run(Fixed(per_request, frames=32), ["one_trci4"], tmp_path)
    full, *segments = [list(map(int, resps[0].split())) for resps in results["samples"]["one_trci4"][0]["resps"]]
    assert len(full) == 32
    clip = np.linspace(0, 63, 32, dtype=int)
    assert segments == [clip[8 * i : 8 * (i + 1)].tolist() for i in range(4)]
    with pytest.raises(Exception, match=r"frames|read_video"):
        read(str(short))


def test_an_adapter_whose_reading_cannot_be_noticed(folder):
    lines = []

    class Own(Watching):
        def watch(self, medium):
            with av.open(medium) as container:
                return said([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])

    sink = logger.add(lines.append, level="INFO", format="{message}")
    found, _ = run(Own(per_request), folder)
    logger.remove(sink)
    assert found == {"checked": False}
    assert sum(reading.FRAMES_UNCHECKED in line for line in lines) == 1
    assert reading.frames({"frames_read": found}) == {}


# --- what each reader says ------------------------------------------------------------------------


def by_read_video(path):
    return load_video.read_video(path, num_frm=6)


def by_decord_of_the_host(path):
    return load_video.load_video_decord([path], 6)


def by_qwen(path):
    from qwen_vl_utils import vision_process

    return vision_process.fetch_video(
        {"type": "video", "video": f"file://{path}", "nframes": 6, "resized_height": 112, "resized_width": 168}
    )


def by_process_vision_info(path):
    from qwen_vl_utils import process_vision_info

    part = {"type": "video", "video": path, "nframes": 6, "resized_height": 112, "resized_width": 168}
    return process_vision_info([{"role": "user", "content": [part]}], return_video_metadata=True)[1][0][0]


def by_transformers(path):
    from transformers.video_utils import load_video as load

    return load(path, num_frames=6, backend="decord")[0]


@pytest.mark.parametrize(
    "read", [by_read_video, by_decord_of_the_host, by_qwen, by_process_vision_info, by_transformers]
)
def test_what_is_noted_is_what_was_read(tmp_path, read):
    """The frames carry their numbers: what a reader returned says itself which frames these are."""
    path = str(make(tmp_path / "v.mp4", 30))
    read(path)  # imports what it needs
    with watch.watching() as begin:
        begin()
        frames = np.asarray(read(path))
        noted = watch._readings[path]
    if frames.shape[1] == 3:
        frames = frames.transpose(0, 2, 3, 1)
    true = numbers_of(frames)
    assert noted.count == len(true) == 6
    if noted.indices is not None:
        assert list(noted.indices) == true
    expected = watch.Expected(tuple(true), tuple((np.array(true) / 10).tolist()))
    assert expected.agrees(noted)
    assert not watch.Expected(tuple(range(8)), tuple((np.arange(8) / 10).tolist())).agrees(noted)
    if noted.exact:
        shifted = [number + (number == 6) for number in true if number != true[-1]] + [true[-1] - 1]
        assert not watch.Expected(tuple(shifted), tuple((np.array(shifted) / 10).tolist())).agrees(noted)
    assert not watch._readings


def test_webm_is_read_whole_by_the_host(tmp_path):
    """lmms-eval's reader takes all frames of such files, whatever number it is told."""
    path = str(make(tmp_path / "v.webm", 20, codec="libvpx-vp9"))
    with watch.watching() as begin:
        begin()
        assert len(load_video.read_video(path, num_frm=6)) == 20
        assert watch._readings[path].count == 20


def test_modules_that_imported_a_reader_by_name_are_watched(tmp_path, monkeypatch):
    """Under any name; and a module that came later."""
    path = str(make(tmp_path / "v.mp4", 12))
    module = type(load_video)("an_adapter")
    monkeypatch.setitem(__import__("sys").modules, "an_adapter", module)
    with watch.watching() as begin:
        module.own = load_video.read_video
        begin()
        assert len(module.own(path, num_frm=5)) == 5
        assert watch._readings[path].count == 5
    assert module.own is load_video.read_video
    assert not hasattr(module.own, "__watched__")
