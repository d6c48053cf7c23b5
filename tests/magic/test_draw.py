"""Boxes and labels, pixel by pixel. Where a ring must be is worked out here, from the rule that it lies around the box."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lmms_patch.magic.draw import RED, WHITE, BoxError, draw, layout, upright

GREY = (100, 110, 120)


def plain(width: int, height: int) -> Image.Image:
    return Image.new("RGB", (width, height), GREY)


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    """No pixel of it is one of the colours that are painted."""
    return Image.fromarray(np.random.default_rng(seed).integers(20, 200, (height, width, 3), dtype=np.uint8))


def test_a_box_in_the_middle_has_a_red_ring_around_it_and_nothing_on_it() -> None:
    # side 200: the line is max(2, round(200 * 0.0045)) = 2 pixels, the white hairline 1
    out = np.array(draw(plain(200, 200), [(50, 60, 120, 130)], [1]))
    assert (out[60:130, 50:120] == GREY).all()
    for x in (48, 49, 120, 121):
        assert (out[58:132, x] == RED).all()
    for y in (58, 59, 130, 131):
        assert (out[y, 48:122] == RED).all()
    assert (out[60:130, 47] == WHITE).all()
    assert (out[132, 50:120] == WHITE).all()
    plate = layout((200, 200), [(50, 60, 120, 130)], [1]).plates[0].rect
    assert plate[3] <= 58  # above the box
    out[57:133, 47:123] = GREY
    out[plate[1] : plate[3], plate[0] : plate[2]] = GREY
    assert (out == GREY).all()  # nothing else is painted


def test_at_the_edge_of_the_image_the_line_lies_inside() -> None:
    out = np.asarray(draw(plain(200, 200), [(0, 0, 40, 40)], [1]))
    assert (out[0:42, 0:2] == RED).all()
    assert (out[0:2, 0:42] == RED).all()
    assert (out[0:42, 40:42] == RED).all()
    assert (out[2:40, 2:40] == GREY).all()


@pytest.mark.parametrize(
    ("box", "side"),
    [
        ((80, 80, 120, 120), "above"),
        ((80, 0, 120, 50), "below"),
        ((60, 0, 140, 200), "left"),
        ((0, 0, 100, 200), "right"),
        ((0, 0, 200, 200), "inside"),
    ],
)
def test_where_the_label_stands(box: tuple[int, int, int, int], side: str) -> None:
    left, top, right, bottom = layout((200, 200), [box], [7]).plates[0].rect
    found = "above" if bottom <= box[1] else "below" if top >= box[3] else "left" if right <= box[0] else "right" if left >= box[2] else "inside"
    assert found == side
    if side == "inside":  # in a corner: within two label heights of two sides
        near = 2 * (bottom - top)
        assert left < near or right > 200 - near
        assert top < near or bottom > 200 - near


@st.composite
def scenes(draw_: st.DrawFn) -> tuple[tuple[int, int], list[tuple[int, int, int, int]]]:
    size = (draw_(st.integers(40, 260)), draw_(st.integers(40, 260)))
    boxes = []
    for _ in range(draw_(st.integers(1, 9))):
        left, top = draw_(st.integers(0, size[0] - 1)), draw_(st.integers(0, size[1] - 1))
        boxes.append((left, top, draw_(st.integers(left + 1, size[0])), draw_(st.integers(top + 1, size[1]))))
    return size, boxes


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_only_rings_and_plates_are_painted_and_all_lie_inside(scene: tuple[tuple[int, int], list[tuple[int, int, int, int]]]) -> None:
    size, boxes = scene
    image = noise(*size)
    before = image.tobytes()
    out = draw(image, boxes, range(1, len(boxes) + 1))
    assert image.tobytes() == before
    assert (out.size, out.mode) == (size, "RGB")
    drawing = layout(size, boxes, range(1, len(boxes) + 1))
    side = (size[0] * size[1]) ** 0.5
    width = max(1 if side < 150 else 2, round(side * 0.0045))
    painted = np.zeros((size[1], size[0]), bool)
    for plate in drawing.plates:
        left, top, right, bottom = plate.rect
        assert 0 <= left < right <= size[0]
        assert 0 <= top < bottom <= size[1]
        painted[top:bottom, left:right] = True
    for left, top, right, bottom in boxes:
        frame = np.zeros_like(painted)
        frame[max(0, top - width - 1) : bottom + width + 1, max(0, left - width - 1) : right + width + 1] = True
        edges = (left < width, top < width, size[0] - right < width, size[1] - bottom < width)  # there the line moves inwards, by at most its width
        frame[top + width * edges[1] : bottom - width * edges[3], left + width * edges[0] : right - width * edges[2]] = False
        painted |= frame
    changed = (np.asarray(out) != np.asarray(image)).any(axis=2)
    assert not (changed & ~painted).any()
    assert draw(image, boxes, range(1, len(boxes) + 1)).tobytes() == out.tobytes()


def boxes_on_a_lattice(size: tuple[int, int], columns: int, rows: int) -> list[tuple[int, int, int, int]]:
    """Boxes with as much room between them as they take."""
    wide, high = size[0] / columns, size[1] / rows
    return [
        (int((c + 0.25) * wide), int((r + 0.4) * high), int((c + 0.75) * wide), int((r + 0.8) * high)) for r in range(rows) for c in range(columns)
    ]


@pytest.mark.parametrize(("side", "columns", "rows"), [(200, 3, 4), (640, 6, 10), (4000, 6, 10), (4000, 1, 1), (200, 1, 1)])
def test_labels_keep_off_each_other_and_off_the_regions_where_there_is_room(side: int, columns: int, rows: int) -> None:
    boxes = boxes_on_a_lattice((side, side), columns, rows)
    plates = [plate.rect for plate in layout((side, side), boxes, range(1, len(boxes) + 1)).plates]

    def meet(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]

    assert not [(i, j) for i in range(len(plates)) for j in range(i) if meet(plates[i], plates[j])]
    assert not [(i, j) for i in range(len(plates)) for j in range(len(boxes)) if meet(plates[i], boxes[j])]


def test_a_crowd_of_60_overlapping_boxes_keeps_its_labels_apart() -> None:
    stream = np.random.default_rng(5)
    boxes = []
    for _ in range(60):
        wide, high = (int(stream.integers(25, 160)) for _ in range(2))
        left, top = int(stream.integers(0, 640 - wide)), int(stream.integers(0, 480 - high))
        boxes.append((left, top, left + wide, top + high))
    canvas = np.zeros((480, 640), int)
    for plate in layout((640, 480), boxes, range(1, 61)).plates:
        left, top, right, bottom = plate.rect
        canvas[top:bottom, left:right] += 1
    assert canvas.max() == 1


def test_labels_and_lines_grow_with_the_image() -> None:
    sizes = {side: layout((side, side), [(side // 4, side // 4, side // 2, side // 2)], [1]) for side in (200, 640, 4000)}
    points = {side: drawing.plates[0].size for side, drawing in sizes.items()}
    assert points[200] >= 11  # pixels: what can be read at all
    assert 18 <= points[640] <= 24
    assert points[4000] >= 100  # an adapter that shrinks the image to 640 leaves 16
    lines = {side: drawing.outlines[0].inner[0] - drawing.outlines[0].outer[0] for side, drawing in sizes.items()}
    assert lines == {200: 2, 640: 3, 4000: 18}


def test_the_number_stands_in_the_middle_of_a_red_plate() -> None:
    out = np.asarray(draw(plain(640, 640), [(200, 200, 400, 400)], [28]))
    left, top, right, bottom = layout((640, 640), [(200, 200, 400, 400)], [28]).plates[0].rect
    plate = out[top:bottom, left:right]
    white = (plate == WHITE).all(axis=2)
    assert all(edge.all() for edge in (white[0], white[-1], white[:, 0], white[:, -1]))
    inner = white[2:-2, 2:-2]
    assert inner.sum() > 20
    assert not any(edge.any() for edge in (inner[0], inner[-1], inner[:, 0], inner[:, -1]))
    columns = np.flatnonzero(inner.any(axis=0))
    assert abs(columns[0] - (inner.shape[1] - 1 - columns[-1])) <= 3


def test_a_number_is_drawn_as_another_one_is_not() -> None:
    seen = {draw(plain(200, 200), [(50, 60, 120, 130)], [n]).tobytes() for n in range(1, 60)}
    assert len(seen) == 59


def test_an_image_smaller_than_a_label_is_drawn_all_the_same() -> None:
    for size in ((1, 1), (3, 50), (8, 8)):
        assert draw(plain(*size), [(0, 0, *size)], [12]).size == size


def test_refusals() -> None:
    for box in ((5, 5, 5, 9), (-1, 0, 5, 5), (0, 0, 11, 5), (0, 0, 5, 11), (6, 0, 2, 5)):
        with pytest.raises(BoxError, match="R3"):
            draw(plain(10, 10), [box], [3])
    with pytest.raises(ValueError, match="1 boxes, but 2 numbers"):
        draw(plain(10, 10), [(0, 0, 5, 5)], [1, 2])


def corner(image: Image.Image) -> tuple[int, ...]:
    return tuple(int(v) for v in np.asarray(upright(image))[0, 0])


def test_modes_become_rgb_as_a_person_sees_them() -> None:
    assert corner(Image.new("L", (4, 4), 77)) == (77, 77, 77)
    assert corner(Image.new("1", (4, 4), 1)) == (255, 255, 255)
    assert corner(Image.new("LA", (4, 4), (10, 0))) == (255, 255, 255)
    assert corner(Image.new("RGBA", (4, 4), (0, 0, 200, 255))) == (0, 0, 200)
    assert corner(Image.new("RGBA", (4, 4), (0, 0, 200, 0))) == (255, 255, 255)  # nothing of what is hidden
    assert corner(Image.new("CMYK", (4, 4), (0, 0, 0, 0))) == (255, 255, 255)
    assert corner(Image.fromarray(np.full((4, 4), 65535, np.uint16))) == (255, 255, 255)
    assert corner(Image.fromarray(np.full((4, 4), 128 * 257, np.uint16))) == (128, 128, 128)
    assert corner(Image.fromarray(np.full((4, 4), 0.5, np.float32))) == (128, 128, 128)
    assert corner(Image.new("I", (4, 4), 90)) == (90, 90, 90)
    assert corner(Image.new("LAB", (4, 4), (255, 128, 128)))[0] > 250
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([0, 0, 0, 9, 8, 7])
    assert corner(palette) == (9, 8, 7)
    palette.info["transparency"] = 1
    assert corner(palette) == (255, 255, 255)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I;16", "I", "F", "HSV"])
def test_every_mode_can_be_drawn_on(mode: str) -> None:
    image = Image.new(mode, (120, 90))
    before = image.tobytes()
    out = np.asarray(draw(image, [(30, 30, 60, 60)], [1]))
    assert (out[30:60, 29] == RED).all()
    assert (image.mode, image.tobytes()) == (mode, before)


def test_boxes_are_on_the_upright_image() -> None:
    image = plain(100, 60)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    image.info["exif"] = exif.tobytes()
    turned = draw(image, [(10, 70, 50, 95)], [1])  # only on 60 x 100
    assert turned.size == (60, 100)
    assert "exif" not in turned.info  # else it would be turned once more
    assert image.size == (100, 60)


def test_without_boxes_the_image_is_a_copy() -> None:
    image = noise(30, 20)
    out = draw(image, [], [])
    assert out.tobytes() == image.tobytes()
    assert out is not image
