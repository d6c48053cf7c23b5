"""How long the views of a video take, against decoding the video once; and how much of the disk they take.

    python benchmarks/video.py [--clips 200] [--rounds 3] [--seconds 30]

A clip is ``--seconds`` of 320×240 pixels at 25 frames per second, H.264.
Its views are those of ``_trci4``: 32 uniform frames, and four segments of 8. Two ways, with the same number of threads:

``views``   read the clip, write the five views into the folder of a run, drop them when the doc is done
``decode``  decode every frame of the clip once, and do nothing with them

The ways take turns, ``--rounds`` times, and the least processor time of each counts. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import parse
from lmms_patch.ask.views import View
from lmms_patch.harness.video import cache, clip, reading

FPS, WIDTH, HEIGHT = 25, 320, 240
DISTINCT = 20
"""How many different clips are made. Docs beyond that number show them again."""
K = 4
VIEWS = (View("full"), *(View("segment", K, 0, i) for i in range(K)))

OF_DECODE = 2.5
"""The target: the most that ``views`` may take of the time of ``decode``."""


def scene(seed: int) -> np.ndarray:
    """A photograph-like picture, twice as wide and high as a frame: smooth random fields of four scales."""
    stream = np.random.default_rng(seed)
    total = np.zeros((2 * HEIGHT, 2 * WIDTH, 3))
    for cells, weight in ((4, 60), (16, 30), (64, 15), (160, 8)):
        field = [Image.fromarray(stream.normal(0, weight, (cells, cells)).astype(np.float32)) for _ in range(3)]
        total += np.stack(
            [np.asarray(band.resize((2 * WIDTH, 2 * HEIGHT), Image.Resampling.BICUBIC)) for band in field], axis=-1
        )
    return (128 + total).clip(0, 255).astype(np.uint8)


def make(path: Path, seed: int, seconds: int) -> None:
    """A camera that moves over a picture, another picture every 10 seconds; noise as a sensor gives it."""
    stream = np.random.default_rng(seed)
    with av.open(str(path), "w") as out:
        video = out.add_stream("libx264", rate=FPS, options={"preset": "veryfast", "crf": "23"})
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for i in range(seconds * FPS):
            if i % (10 * FPS) == 0:
                picture = scene(1000 * seed + i)
            x, y = (int(size / 2 * (1 + np.sin(i / pace))) for size, pace in ((WIDTH, 40), (HEIGHT, 55)))
            noisy = picture[y : y + HEIGHT, x : x + WIDTH] + stream.integers(-3, 4, (HEIGHT, WIDTH, 1))
            frame = av.VideoFrame.from_ndarray(noisy.clip(0, 255).astype(np.uint8), format="rgb24")
            frame.pts, frame.time_base = i, Fraction(1, FPS)
            out.mux(video.encode(frame))
        out.mux(video.encode())


def decode(path: Path) -> int:
    """How many frames a clip has: each is decoded."""
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "AUTO"
        return sum(1 for _ in container.decode(video=0))


def views(path: Path, doc: int, store: cache.Cache) -> int:
    """Bytes of the five views of a clip; each is written."""
    full = reading.read(path)
    for view in VIEWS:
        store.path_of(doc, view, lambda view=view: clip.encode(clip.shown(full, view)))
    used = store.used
    store.drop(doc)
    return used


def check(path: Path, store: cache.Cache) -> None:
    """The written views are the frames of the clip, bit for bit."""
    full = reading.read(path)
    parts = []
    for view in VIEWS:
        written = store.path_of("check", view, lambda view=view: clip.encode(clip.shown(full, view)))
        parts.append(reading.read(written, clip.Sampling(None)).frames)
    assert np.array_equal(parts[0], full.frames), "the full clip changed"
    assert np.array_equal(np.concatenate(parts[1:]), full.frames), "the segments changed"
    store.drop("check")


def timed(way: Callable[[], object]) -> np.ndarray:
    """Seconds of wall and of processor."""
    start = np.array([time.perf_counter(), time.process_time()])
    way()
    return np.array([time.perf_counter(), time.process_time()]) - start


def main() -> int:
    """Measures; 0 where the target is met, else 1."""
    parser = argparse.ArgumentParser(description="Speed of the views of a video; see the head of this file.")
    parser.add_argument("--clips", type=int, default=200, help="number of clips (default 200)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each way is timed (default 3)")
    parser.add_argument("--seconds", type=int, default=30, help="how long a clip is (default 30)")
    arguments = parse(parser, clips=1, rounds=1, seconds=2)
    print(
        f"{arguments.clips} clips of {arguments.seconds} s, {WIDTH}x{HEIGHT}, {FPS} frames per second; least of {arguments.rounds} rounds"
    )
    met = measure(arguments.clips, arguments.rounds, arguments.seconds)
    return 0 if met or arguments.tiny else 1


def measure(clips: int, rounds: int, length: int) -> bool:
    """Prints the table; whether the target is met."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{seed}.mp4" for seed in range(min(DISTINCT, clips))]
        for seed, path in enumerate(paths):
            make(path, seed, length)
        docs = [paths[doc % len(paths)] for doc in range(clips)]
        store = cache.Cache(folder=Path(folder))
        check(paths[0], store)
        most = 0

        def write_all() -> None:
            nonlocal most
            most = max(most, *(views(path, doc, store) for doc, path in enumerate(docs)))

        seconds = {"decode": [], "views": []}
        for _ in range(rounds):
            seconds["decode"].append(timed(lambda: [decode(path) for path in docs]))
            seconds["views"].append(timed(write_all))
        size = np.mean([path.stat().st_size for path in paths])
    least = {name: np.min(times, axis=0) for name, times in seconds.items()}
    wall, processor = least["views"] / least["decode"]
    for name, (of_wall, of_processor) in least.items():
        print(
            f"{name:<8}{of_wall:8.2f} s wall{of_processor:8.2f} s processor{1000 * of_wall / clips:8.0f} ms wall per clip"
        )
    met = bool(processor <= OF_DECODE)
    print(
        f"views / decode: {wall:.2f} wall; {processor:.2f} processor, at most {OF_DECODE}: {'met' if met else 'MISSED'}"
    )
    print(
        f"disk: at most {most / 1e6:.1f} MB for the views of a doc; the clip itself takes {size / 1e6:.2f} MB on average"
    )
    return met


if __name__ == "__main__":
    sys.exit(main())
