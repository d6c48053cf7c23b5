"""Windows between the cells through the real evaluator: what they show, and what is known only there."""

import re
import zlib

import numpy as np
import pytest
from PIL import Image

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import Options, WrapSpec, parse
from lmms_patch.errors import OptionError
from tests.harness.toys import Model, metrics, run, write_task

SIDE = 96
COLOURS = {"red": (200, 0, 0), "green": (0, 200, 0), "blue": (0, 0, 200), "white": (250, 250, 250)}
PLACES = {
    "cell": [(43, 43, 10)],
    "line": [(27, 43, 10)],  # over the line at 32
    "crossing": [(27, 59, 10)],  # over the lines at 32 and 64
    "whole": [(5, 5, 6), (80, 80, 6)],
}
"""By what a doc needs, its marks: left and upper edge, and side (pixels)."""
AREAS = (100, 72)
"""The pixels of a whole mark, and of two small marks together."""
DOCS = {"cell": 24, "line": 24, "crossing": 18, "whole": 30}
NEEDS = [need for need, count in DOCS.items() for _ in range(count)]
OPTIONS = "\n".join(f"{letter}. {name}" for letter, name in zip("ABCD", COLOURS, strict=True))


def sheet(doc: int) -> Image.Image:
    """A grey image whose noise is the doc's own, with the doc's marks in the colour of its gold."""
    array = np.random.default_rng(doc).integers(90, 110, (SIDE, SIDE, 3), np.uint8)
    for left, top, side in PLACES[NEEDS[doc]]:
        array[top : top + side, left : left + side] = list(COLOURS.values())[gold(doc)]
    return Image.fromarray(array)


def gold(doc: int) -> int:
    return zlib.crc32(f"gold {doc}".encode()) % 4


def reads(prompt, images):
    """Name the colour of what is seen whole; else guess in an eighth of all views, by their pixels."""
    pixels = np.asarray(images[0])
    for letter, name in re.findall(r"^(\w)\. (\w+)$", prompt, re.M):
        if (pixels == COLOURS[name]).all(axis=2).sum() in AREAS:
            return letter
    drawn = zlib.crc32(pixels.tobytes()) // 7
    return "ABCD"[drawn % 4] if drawn // 4 % 8 == 0 else "none"


TASKS = ("marks_shift3", "marks_rci3")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shift")
    data = [
        {"image": sheet(i), "question": f"Which colour has the mark?\n{OPTIONS}", "answer": "ABCD"[gold(i)]}
        for i in range(len(NEEDS))
    ]
    write_task(folder, "marks", data, metadata={"version": 0.0})
    model = Model(reads)
    results = run(model, ",".join(TASKS), folder)
    return model, {name: metrics(results, f"marks_{name}") for name in ("shift3", "rci3")}


def test_every_window_is_shown_once_and_holds_the_pixels_between_the_cells(found):
    """By brute force: squares of 32 pixels at each multiple of 16, of which those at multiples of 32 are cells.

    Views that are asked again show the options in another order.
    """
    first = [(task, image) for task, _, (image,), prompt in found[0].seen if prompt.endswith(OPTIONS)]
    own = {name: [image.tobytes() for task, image in first if task == name] for name in TASKS}
    whole = sheet(0)
    squares = {
        (left, top): whole.crop((left, top, left + 32, top + 32)).tobytes()
        for left in range(0, 65, 16)
        for top in range(0, 65, 16)
    }
    between = [square for (left, top), square in squares.items() if left % 32 or top % 32]
    assert len(between) == 16
    assert {own["marks_shift3"].count(square) for square in squares.values()} == {1}  # doc 0 is nobody's wrong image
    assert not set(between) & set(own["marks_rci3"])


def test_all_other_numbers_are_those_of_the_cells_alone(found):
    shift, plain = (found[1][name] for name in ("shift3", "rci3"))
    same = [key for key in plain if key != "patch"]
    assert {key: shift[key] for key in same} == {key: plain[key] for key in same}


def test_what_is_known_only_between_the_cells_is_found(found):
    """By construction: 24 of 96 docs by a cell, 42 more by a window, 30 by the whole image alone."""
    shift = found[1]["shift3"]
    for name, truth in (("one3", 24 / 96), ("one_windows3", 66 / 96)):
        assert shift["patch"][f"{name}_low"] <= truth <= shift["patch"][f"{name}_high"]
        assert abs(shift[name] - truth) < 0.1
    assert shift["patch"]["analysis"]["lines"]["3"]["mpp"]["value"] >= 66 / 96


def test_windows_are_always_asked_whole():
    """Early exit would leave out the windows of docs that a cell answers."""
    with pytest.raises(OptionError, match="rci, pcri"):
        parse("marks_shift3_quick")
    assert not WrapSpec("marks", KINDS["shift"], (3,), options=Options(exit=True)).leaves_out
