"""The contact sheet: sizes, colours and captions; how it looks is a matter for eyes."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageFont

from lmms_patch.magic.build.contact_sheet import Entry, caption, preview_of, sheet
from lmms_patch.magic.draw import RED
from lmms_patch.magic.items import Box, MagicItem, shown

BOXES = (Box(10, 10, 60, 60, True, "cup"), Box(100, 10, 150, 60, False), Box(10, 100, 60, 150, True, "plate"))


def item(name: str = "q1", question: str = "Where is the cup?", boxes: tuple[Box, ...] = BOXES) -> MagicItem:
    return MagicItem(name, "a.png", question, "query", "left", "", boxes)


def test_a_caption_tells_relevant_from_adversarial_by_the_numbers_that_are_drawn() -> None:
    one = item()
    numbered = shown(one.boxes, one.id)
    lines = caption(one, [one.boxes[place] for place in numbered.places], 380)
    where = {place: number for number, place in enumerate(numbered.places, 1)}
    first, second = sorted((0, 2), key=lambda place: where[place])
    labels = {0: "cup", 2: "plate"}
    assert [text for text, _ in lines] == [
        "q1 · query",
        "Where is the cup?",
        "Answer: left",
        f"relevant: R{where[first]} {labels[first]}, R{where[second]} {labels[second]}",
        f"adversarial: R{where[1]}",
    ]
    assert lines[3][1] != lines[4][1]
    assert caption(item(boxes=()), [], 380)[-1][0] == "adversarial: none"


def test_long_texts_are_cut_to_the_width() -> None:
    font = ImageFont.load_default(15)
    for text in ("What is " + "very " * 60 + "red?", "W" * 300, ""):
        lines = [line for line, _ in caption(item(text or "q", text), [], 200)]
        assert len(lines) <= 9
        assert max(font.getlength(line) for line in lines) <= 200


@pytest.mark.parametrize(("count", "columns", "rows"), [(1, 1, 1), (4, 4, 1), (5, 4, 2), (9, 4, 3)])
def test_a_grid_of_thumbnails(count: int, columns: int, rows: int) -> None:
    image = Image.new("RGB", (200, 160), (90, 90, 90))
    before = image.tobytes()
    out = sheet([Entry(image, item(f"q{n}")) for n in range(count)], width=200)
    assert out.width == columns * 228  # a margin of 14 on either side
    assert out.height == rows * (160 + 28 + 5 * 20)
    assert image.tobytes() == before
    red = (np.asarray(out) == RED).all(axis=2)
    assert red[:188, :228].any()
    assert not red[188:288].any()  # captions hold no boxes


def test_any_shape_and_mode() -> None:
    odd = [
        Entry(Image.new("L", (3000, 40)), item(boxes=())),
        Entry(Image.new("RGBA", (9, 900)), item(boxes=(Box(0, 0, 1, 1, True), Box(8, 899, 9, 900, False)))),
    ]
    assert sheet(odd).mode == "RGB"
    with pytest.raises(ValueError, match="at least one"):
        sheet([])


def test_names_of_previews_differ_and_fit_any_file_system() -> None:
    names = ["q1", "q" * 260, "q" * 261, "猫" * 100, "猫" * 101, "a/b", "a_b", "a b", "...", "q" * 5000]
    files = [preview_of(name) for name in names]
    assert len(set(files)) == len(names)
    assert all(len(f"{file}.part".encode()) <= 255 and "/" not in file and file.endswith(".png") for file in files)
    assert files[0] == "q1.png"
