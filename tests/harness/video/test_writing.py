"""Written clips, read back by every reader that is installed: their frames, bit for bit, in order, at their rate."""

import importlib
import importlib.util
from fractions import Fraction

import av
import cv2
import numpy as np
import pytest
from lmms_eval.models.model_utils import load_video as host

from lmms_patch.ask.views import View
from lmms_patch.harness.video.clip import Clip, encode, segment, shown
from lmms_patch.harness.video.reading import read
from tests.making.decoders import DECODERS, decord_reader
from tests.making.videos import make, numbers_of

# --- readers: each takes a path and how many frames to ask for -----------------------------------------


def by_opencv_jumping(path, count):
    """Read frames by setting the position of each one first, as some adapters do."""
    capture, frames = cv2.VideoCapture(path), {}
    for i in reversed(range(count)):
        capture.set(cv2.CAP_PROP_POS_FRAMES, i)
        frames[i] = capture.read()[1][..., ::-1]
    return [frames[i] for i in range(count)]


def by_torchvision(path, count):
    io = importlib.import_module("torchvision.io")
    if not hasattr(io, "read_video"):
        pytest.skip("this torchvision has no video reader")
    return io.read_video(path, pts_unit="sec", output_format="THWC")[0].numpy()


def by_host(path, count):
    return host.read_video(path, num_frm=count)


def by_host_stream(path, count):
    with av.open(path) as container:
        return [frame.to_ndarray(format="rgb24") for frame in host.load_video_stream(container, count)]


def by_host_packet(path, count):
    with av.open(path) as container:
        return [frame.to_ndarray(format="rgb24") for frame in host.load_video_packet(container, count)]


def by_host_decord(path, count):
    decord_reader()
    return host.load_video_decord(path, count)


def frames_by(decoder):
    return lambda path, count: decoder(path)[0]


READERS = {decoder.__name__: frames_by(decoder) for decoder in DECODERS} | {
    reader.__name__: reader
    for reader in (by_opencv_jumping, by_torchvision, by_host, by_host_stream, by_host_packet, by_host_decord)
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write a view of a clip of 32 of 60 frames once.

    Give its path, the clip of the view, and the numbers of its frames.
    """
    folder = tmp_path_factory.mktemp("views")
    full = read(make(folder / "source.mp4", 60, rate=10))
    numbers = np.linspace(0, 59, 32, dtype=int).tolist()
    assert numbers_of(full.frames) == numbers
    made = {}

    def view(which):
        if which not in made:
            path, clip = folder / f"{len(made)}.mp4", shown(full, which, seed="s")
            path.write_bytes(encode(clip))
            made[which] = (str(path), clip)
        return made[which]

    return view, numbers


@pytest.mark.parametrize("reader", READERS)
def test_every_segment_holds_its_frames_in_order(written, reader):
    view, numbers = written
    path, full = view(View("full"))
    np.testing.assert_array_equal(READERS[reader](path, 32), full.frames)
    for k in range(2, 10):
        seen = []
        for i in range(k):
            path, clip = view(View("segment", k, 0, i))
            frames = READERS[reader](path, len(clip))
            np.testing.assert_array_equal(frames, clip.frames)
            assert numbers_of(frames) == numbers[segment(32, k, i)]
            seen += numbers_of(frames)
        assert seen == numbers, "a frame is missing, or in two segments"


@pytest.mark.parametrize("reader", READERS)
def test_other_views_in_time(written, reader):
    view, numbers = written
    for which in (View("frame"), View("frames", 8), View("tshuffle", 4), View("treverse")):
        path, clip = view(which)
        np.testing.assert_array_equal(READERS[reader](path, len(clip)), clip.frames)
    assert numbers_of(view(View("treverse"))[1].frames) == numbers[::-1]
    assert set(numbers_of(view(View("frame"))[1].frames)) == {numbers[16]}


def test_rate_and_duration_of_full_and_segments(written):
    view, _ = written
    for which in (
        View("full"),
        *(View("segment", k, 0, i) for k in (2, 3, 4, 9) for i in range(k)),
        View("tshuffle", 4),
    ):
        path, clip = view(which)
        with av.open(path) as container:
            stream = container.streams.video[0]
            assert stream.average_rate == Fraction(32, 6)
            assert stream.frames == len(clip)
            assert stream.duration * stream.time_base == Fraction(len(clip) * 6, 32)
            assert container.duration == pytest.approx(len(clip) * 6e6 / 32, abs=1)
            assert [frame.time for frame in container.decode(stream)] == pytest.approx(
                [i * 6 / 32 for i in range(len(clip))]
            )
        assert cv2.VideoCapture(path).get(cv2.CAP_PROP_FPS) == pytest.approx(32 / 6, rel=1e-6)
        if importlib.util.find_spec("decord"):
            assert importlib.import_module("decord").VideoReader(path).get_avg_fps() == pytest.approx(32 / 6, rel=1e-6)


SIZES = [(161, 121), (320, 240), (33, 1), (2, 97), (1, 1)]


@pytest.mark.parametrize(
    ("reader", "size"),
    [
        (reader, size)
        for reader in ("by_pyav", "by_opencv", "by_host", "by_decord")
        for size in SIZES
        if reader != "by_decord" or size[0] > 100
    ],
)  # decord reads no frame that is narrower than about 32 pixels, in any file
def test_every_colour_comes_back(tmp_path, size, reader):
    frames = np.random.default_rng(7).integers(0, 256, (5, size[1], size[0], 3), dtype=np.uint8)
    (tmp_path / "v.mp4").write_bytes(encode(Clip(frames, Fraction(5))))
    np.testing.assert_array_equal(READERS[reader](str(tmp_path / "v.mp4"), 5), frames)


# --- qwen_vl_utils ---------------------------------------------------------------------------------------


@pytest.fixture
def fetch(monkeypatch):
    """The reader of Qwen's adapters, with the first backend that is installed."""
    vision = pytest.importorskip("qwen_vl_utils.vision_process")
    backend = next((name for name in ("decord", "torchcodec") if importlib.util.find_spec(name)), None)
    if backend is None and not hasattr(importlib.import_module("torchvision.io"), "read_video"):
        pytest.skip(
            "qwen_vl_utils has no backend here: neither decord, torchcodec nor torchvision's video reader is installed"
        )
    monkeypatch.setattr(vision, "FORCE_QWENVL_VIDEO_READER", backend or "torchvision")
    vision.get_video_reader_backend.cache_clear()
    yield vision.fetch_video
    vision.get_video_reader_backend.cache_clear()


def test_qwen_sees_the_frames_of_a_segment(written, fetch):
    """It takes an even number of frames."""
    view, numbers = written
    for k in (2, 4, 8):
        for i in range(k):
            path, clip = view(View("segment", k, 0, i))
            shown_to_model = fetch({"video": path, "nframes": len(clip)}).permute(0, 2, 3, 1).numpy()
            assert numbers_of(shown_to_model) == numbers[segment(32, k, i)]
