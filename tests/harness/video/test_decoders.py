"""Videos that decoders are known to trip over: each decoder shows the frames that were counted, and each segment holds its own of them, at their times."""

import itertools
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from lmms_patch.ask.views import View
from lmms_patch.harness.video import cache
from lmms_patch.harness.video.clip import Sampling
from lmms_patch.harness.video.reading import read
from tests.making.decoders import DECODERS, by_opencv
from tests.making.videos import make, numbered, numbers_of
from tests.sizes import size

COUNT = 8
"""Frames of a clip."""

# --- videos ----------------------------------------------------------------------------------------------

TICKS = np.cumsum(np.random.default_rng(3).choice([17, 40, 900], 50)).tolist()
"""When the frames of a video of variable rate are shown, in milliseconds."""


@dataclass(frozen=True)
class Source:
    """A video with numbered frames.

    Attributes:
        make: writes the file into a folder.
        frames: how many there are.
        turned: degrees, anticlockwise, that take the frames as they are shown back to how they are numbered.
        times: seconds from the first frame to each.
    """

    make: Callable[[Path], Path]
    frames: int
    times: list[float]
    turned: int = 0


def turned(path: Path, degrees: int) -> Path:
    """Let a file say that its film is to be turned clockwise."""
    cos, sin = round(math.cos(math.radians(degrees))), round(math.sin(math.radians(degrees)))
    data = bytearray(path.read_bytes())
    at = data.find(b"tkhd") + 44
    data[at : at + 36] = struct.pack(">9i", cos << 16, sin << 16, 0, -sin << 16, cos << 16, 0, 0, 0, 1 << 30)
    path.write_bytes(data)
    return path


def even(count: int, rate: float) -> list[float]:
    return [i / rate for i in range(count)]


VARIABLE = [(tick - TICKS[0]) / 1000 for tick in TICKS]
NOISE = [
    np.random.default_rng(i).integers(0, 56, (62, 98, 3), np.uint8) + numbered(i, (98, 62)) // 255 * 200
    for i in range(20)
]
"""Coloured noise over the squares: what a decoder makes of colours shows in each pixel."""
SOURCES = {
    "variable rate in mp4": Source(lambda folder: make(folder / "v.mp4", 50, ticks=TICKS), 50, VARIABLE),
    "variable rate in mkv": Source(lambda folder: make(folder / "v.mkv", 50, ticks=TICKS), 50, VARIABLE),
    "one frame": Source(lambda folder: make(folder / "v.mp4", 1), 1, [0.0]),
    "two frames": Source(lambda folder: make(folder / "v.mp4", 2, rate=1), 2, [0.0, 1.0]),
    "odd sides": Source(lambda folder: make(folder / "v.mp4", 13, (97, 61), codec="libx264rgb"), 13, even(13, 10)),
    "coloured noise": Source(lambda folder: make(folder / "v.mp4", NOISE, crf="4"), 20, even(20, 10)),
    "frames stored in another order": Source(
        lambda folder: make(folder / "v.mp4", 40, preset="medium", bf="3", g="12"), 40, even(40, 10)
    ),
    "vp9": Source(lambda folder: make(folder / "v.webm", 20, codec="libvpx-vp9"), 20, even(20, 10)),
    **{
        f"turned by {degrees}": Source(
            lambda folder, degrees=degrees: turned(make(folder / "v.mp4", 12), degrees), 12, even(12, 10), degrees
        )
        for degrees in (90, 180, 270)
    },
}


@pytest.fixture(scope="module", params=SOURCES)
def source(request, tmp_path_factory):
    one = SOURCES[request.param]
    return one, str(one.make(tmp_path_factory.mktemp("source")))


@pytest.fixture(scope="module")
def written(source):
    """The clip of a video as numbers of frames; and the files of its views with those that each must hold."""
    one, path = source
    clip = read(path, Sampling(COUNT))
    numbers = np.linspace(0, one.frames - 1, min(COUNT, one.frames), dtype=int).tolist()
    cuts = {View("frame"): [numbers[len(numbers) // 2]] * 2, View("full"): numbers if len(numbers) > 1 else numbers * 2}
    for k in range(2, min(COUNT, one.frames) + 1):
        bounds = [len(numbers) * i // k for i in range(k + 1)]
        for i in range(k):
            part = numbers[bounds[i] : bounds[i + 1]]
            cuts[View("segment", k, 0, i)] = part if len(part) > 1 else part * 2
    yield (
        {cache.written("here", repr(view), clip, view, min_cell=0, seed="s"): held for view, held in cuts.items()},
        clip,
    )
    cache.forget("here")


def upright(frames, one):
    return np.rot90(frames, one.turned // 90, axes=(1, 2))


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_decoder_shows_the_frames_that_are_counted(source, decoder):
    """In number, order, turn and colours: so the full clip, which is the file itself, and its segments are of the same frames."""
    one, path = source
    frames, _ = decoder(path)
    ours = read(path, Sampling(None))
    assert numbers_of(upright(frames, one)) == list(range(one.frames))
    if decoder is by_opencv:  # its conversion of colours rounds otherwise
        np.testing.assert_allclose(frames.astype(int), ours.frames.astype(int), atol=4)
    else:
        np.testing.assert_array_equal(frames, ours.frames)


def test_each_view_holds_its_frames_at_the_rate_of_the_clip(source, written):
    """Our writer makes files of one form: in ``make test`` each video's views are read by two decoders, and each decoder reads some."""
    one, path = source
    views, clip = written
    every = read(path, Sampling(None)).frames
    duration = one.times[-1] * one.frames / (one.frames - 1) if one.frames > 1 else 0.1
    seconds = duration / min(COUNT, one.frames)
    turn = list(SOURCES.values()).index(one)
    for decoder, (view, held) in itertools.product(
        (DECODERS * 2)[turn % len(DECODERS) :][: size(2, len(DECODERS))], views.items()
    ):
        frames, times = decoder(view)
        np.testing.assert_array_equal(frames, every[held], str(held))
        assert times is None or times == pytest.approx([i * seconds for i in range(len(held))], rel=1e-3, abs=2e-3)
    assert float(clip.rate) == pytest.approx(1 / seconds, rel=1e-3)
