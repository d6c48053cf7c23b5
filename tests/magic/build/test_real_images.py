"""MAGIC items over real benchmark images (NLVR: 400x100, RGBA; BlindTest: 384² to 2000²): read, checked, drawn on."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image

from lmms_patch.magic.dataset import read
from lmms_patch.magic.draw import draw, upright
from tests.magic.faults import check
from tests.places import SHARED

DATA = SHARED
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data beside the project")
MARGIN = 2  # of a box, in pixels: an outline at the image's edge lies inside


def dataset(folder, count):
    """Every image with three boxes: NLVR's grey squares, or thirds of the width."""
    lines = []
    for kind in ("nlvr_images", "blindtest_images"):
        for path in sorted((DATA / kind).iterdir())[:count]:
            with Image.open(path) as image:
                width, height = image.size
            lefts = [0, 150, 300] if kind.startswith("nlvr") else [0, width // 3, 2 * width // 3]
            wide = 100 if kind.startswith("nlvr") else width // 3
            boxes = [{"box": [left, height // 4, left + wide, height], "relevant": left == 0} for left in lefts]
            shutil.copyfile(path, folder / path.name)
            lines.append(
                {
                    "id": path.stem,
                    "image": path.name,
                    "question": "What is there?",
                    "answer": "yes",
                    "full_answer": "Yes.",
                    "boxes": boxes,
                }
            )
    file = folder / "items.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_real_images_are_read_checked_and_drawn_on(tmp_path):
    file = dataset(tmp_path, 12)
    assert check(file) == []
    found = read(file)
    assert len(found.items) == 24
    modes = set()
    for item in found.items:
        image = found.image(item)
        modes.add(image.mode)
        rects = [(box.left, box.top, box.right, box.bottom) for box in item.boxes]
        seen, plain = np.asarray(draw(image, rects, [1, 2, 3])), np.asarray(upright(image))
        changed = (seen != plain).any(axis=2)
        assert seen.shape == plain.shape
        for left, top, right, bottom in rects:
            assert changed[max(0, top - 1), left:right].mean() > 0.9  # its outline
            inside = changed[top + MARGIN + 8 : bottom - MARGIN - 8, left + MARGIN + 8 : right - MARGIN - 8]
            assert inside.mean() < 0.1
    assert "RGBA" in modes
