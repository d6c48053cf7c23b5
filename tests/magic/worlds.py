"""A small world whose boxes and questions are known, to build datasets from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lmms_patch.magic.build.builder import BuildSettings, Built, Progress, build

SIZE = (160, 120)
LATTICE = {
    f"o{place}": (8 + 40 * (place % 4), 8 + 40 * (place // 4)) for place in range(12)
}  # corners of 12 objects of 24 x 24, none near another


def scene() -> dict[str, Any]:
    objects = {key: {"name": f"thing {key}", "x": x, "y": y, "w": 24, "h": 24} for key, (x, y) in LATTICE.items()}
    return {"width": SIZE[0], "height": SIZE[1], "objects": objects}


def question(image: str, *objects: str, **changes: Any) -> dict[str, Any]:
    spans = {str(place): key for place, key in enumerate(objects[:-1])}
    return {
        "imageId": image,
        "question": f"Where is {objects[0] if objects else 'it'}?",
        "answer": "left",
        "fullAnswer": "It is left.",
        "types": {"structural": "query"},
        "annotations": {"question": spans, "answer": {}, "fullAnswer": {"0": objects[-1]} if objects else {}},
        **changes,
    }


QUESTIONS = {
    "1a": question("1", "o0", "o1"),
    "1b": question("1", "o2", "o3", "o4"),
    "1c": question("1", "o5", "o6"),
    "2a": question("2", "o0"),
    "2b": question("2", "o1"),
}


class World:
    """Inputs of a build in a folder."""

    def __init__(self, folder: Path, questions: Any = None, scenes: Any = None):
        self.folder = folder
        self.images, self.maps = folder / "images", folder / "maps"
        self.images.mkdir(parents=True)
        self.maps.mkdir()
        for number in (1, 2):
            noise = np.random.default_rng(number).integers(60, 190, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
            Image.fromarray(noise).save(self.images / f"{number}.png")
        self.put(
            QUESTIONS if questions is None else questions, {"1": scene(), "2": scene()} if scenes is None else scenes
        )
        for qid in QUESTIONS:
            for t in (0, 1, 2):
                self.map(f"{qid}_{t}")

    def put(self, questions: Any, scenes: Any) -> None:
        (self.folder / "questions.json").write_text(json.dumps(questions))
        (self.folder / "scenes.json").write_text(json.dumps(scenes))

    def map(self, name: str, rect: tuple[int, int, int, int] = (128, 88, 152, 112)) -> None:
        values = np.zeros((SIZE[1], SIZE[0]), np.uint8)
        values[rect[1] : rect[3], rect[0] : rect[2]] = 255
        Image.fromarray(values).save(self.maps / f"{name}.png")

    def build(self, out: str = "out", tell: Callable[[Progress], None] | None = None, **changes: Any) -> Built:
        options = {"saliency": self.maps, **changes}
        if options.get("weak"):
            options["saliency"] = None
        return build(
            self.folder / "questions.json",
            self.folder / "scenes.json",
            self.images,
            self.folder / out,
            BuildSettings(**options),
            tell,
        )


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class KilledError(Exception):
    """Stands for a kill."""
