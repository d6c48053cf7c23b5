"""Small video tasks, and adapters that say which frames they decode from what they are handed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import av
import datasets
import numpy as np
from lmms_eval.models.model_utils.load_video import load_video_stream
from PIL import Image

from tests.harness.adapters import Adapter, ChatAdapter
from tests.harness.toys import write_task
from tests.making.videos import make

UTILS = '''
"""Ways in which tasks show a doc."""

def path(doc):
    return [doc["video"]]

def mapping(doc):
    return [{"path": doc["video"]}]

def both(doc):
    from PIL import Image
    return [Image.new("RGB", (40, 30), (1, 2, 3)), doc["video"]]

def sound(doc):
    return [{"array": [0.0], "sampling_rate": 8000}]

def still(doc):
    from PIL import Image
    return [Image.new("RGB", (40, 30), (1, 2, 3))]

def parts(part):
    return lambda doc: [{"role": "user", "content": [part(doc), {"type": "text", "text": doc["question"]}]}]

def data_url(doc):
    import base64, pathlib
    return "data:video/mp4;base64," + base64.b64encode(pathlib.Path(doc["video"]).read_bytes()).decode()

message = parts(lambda doc: {"type": "video", "url": doc["video"]})
stretch = parts(lambda doc: {"type": "video", "url": doc["video"], "start_time": 1.0, "end_time": 2.0})
url = parts(lambda doc: {"type": "video_url", "video_url": {"url": data_url(doc)}})
'''
SHAPES = [(40, (160, 120)), (33, (97, 61)), (11, (64, 48)), (8, (81, 60)), (5, (60, 81)), (4, (64, 64))]
"""Frames, and width and height, of the video of each doc; two sides are odd."""
FEATURES = {name: datasets.Value("string") for name in ("video", "question", "answer")}


def write(
    folder: Path, name: str, videos: Sequence[Path | str], questions: Sequence[str] | None = None, **config: Any
) -> None:
    """Write a task whose docs show videos; ``config`` replaces parts of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "utils.py").write_text(UTILS)
    asked = questions or [f"question {i % 3}?" for i in range(len(videos))]
    rows = [{"video": str(video), "question": asked[i], "answer": str(i)} for i, video in enumerate(videos)]
    write_task(folder, name, rows, FEATURES, **{"doc_to_visual": "!function utils.path", **config})


def write_videos(folder: Path, shapes: Sequence[tuple[int, tuple[int, int]]] = SHAPES) -> list[Path]:
    """Write a video per shape, with numbered frames, and return their paths. No two are of one shape."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        make(
            folder / f"{i}.mp4",
            frames,
            size,
            codec="libx264" if size[0] % 2 == size[1] % 2 == 0 else "libx264rgb",
            g="5",
        )
        for i, (frames, size) in enumerate(shapes)
    ]


def frames_of(path: str | Path, most: int) -> list[np.ndarray]:
    """Return the frames that lmms-eval's own loader takes from a file."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in load_video_stream(container, most)]


def said(frames: Sequence[np.ndarray]) -> str:
    """Return the digests of frames, in their order."""
    return "video " + " ".join(
        hashlib.blake2b(np.ascontiguousarray(frame).tobytes(), digest_size=4).hexdigest() for frame in frames
    )


class Watching(Adapter):
    """Opens what a batch shows, once all of it is there, and answers with the digests of the frames.

    Attributes:
        paths: the paths of all videos that were handed over, in order.
    """

    def __init__(self, fetch: Any, in_order: bool = True, batch_size: int = 8, frames: int = 8) -> None:
        super().__init__(fetch, in_order, batch_size)
        self.max_num_frames = frames
        self.paths: list[str] = []
        self.seen: list[tuple[str, int, list[Any]]] = []

    def answers(self, batch: Any) -> list[str]:
        columns = list(zip(*batch, strict=True))
        shown = [self.media(one) for one in self.fetch(self.task_dict, columns[self._place_of_function], *columns[3:])]
        here = [medium for media in shown for medium in media if isinstance(medium, str)]
        assert all(Path(path).is_file() for path in here), "a file went while the adapter held its batch"
        self.paths += here
        self.seen += list(zip(columns[4], map(int, columns[3]), shown, strict=True))
        return [" | ".join(map(self.watch, media)) or "nothing" for media in shown]

    def media(self, shown: Any) -> list[Any]:
        return list(shown)

    def watch(self, medium: Any) -> str:
        if isinstance(medium, Image.Image):
            return f"image {medium.width}x{medium.height} {medium.getpixel((0, 0))}"
        return said(frames_of(medium, self.max_num_frames))


class WatchingChat(ChatAdapter, Watching):
    """The same, of the chat protocol. A video part holds a path, an image part an image."""

    def media(self, shown: Any) -> list[Any]:
        parts = [part for message in shown for part in message["content"] if part["type"] != "text"]
        for part in parts:
            assert isinstance(part["url"], str if part["type"] == "video" else Image.Image)
        return [part["url"] for part in parts]
