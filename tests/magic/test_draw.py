"""Boxes and labels, pixel by pixel.

Where a ring must be is worked out here, from the rule that it lies around the box.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lmms_patch.magic.draw import (
    RED,
    WHITE,
    BoxError,
    Drawing,
    Rect,
    _plate_size,
    draw,
    hidden_shares,
    in_other_boxes,
    layout,
    upright,
)
from tests.sizes import examples

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
    found = (
        "above"
        if bottom <= box[1]
        else "below"
        if top >= box[3]
        else "left"
        if right <= box[0]
        else "right"
        if left >= box[2]
        else "inside"
    )
    assert found == side
    if side == "inside":  # in a corner: within two label heights of two sides
        near = 2 * (bottom - top)
        assert left < near or right > 200 - near
        assert top < near or bottom > 200 - near


def tiles(size: tuple[int, int], columns: int, rows: int) -> list[Rect]:
    """Boxes that cover an image, edge to edge."""
    xs, ys = (
        [round(at * side / many) for at in range(many + 1)] for side, many in zip(size, (columns, rows), strict=True)
    )
    return [(xs[c], ys[r], xs[c + 1], ys[r + 1]) for r in range(rows) for c in range(columns)]


def in_others(boxes: list[Rect], own: int, size: tuple[int, int]) -> np.ndarray:
    """Which pixels of an image lie in a box that does not hold box ``own``, painted one by one."""
    canvas = np.zeros((size[1], size[0]), bool)
    for box in boxes:
        if not (
            box[0] <= boxes[own][0] and box[1] <= boxes[own][1] and box[2] >= boxes[own][2] and box[3] >= boxes[own][3]
        ):
            canvas[box[1] : box[3], box[0] : box[2]] = True
    return canvas


@pytest.mark.parametrize("size", [(640, 480), (300, 300), (200, 150)])
@pytest.mark.parametrize(("columns", "rows"), [(2, 2), (3, 3), (2, 1), (1, 4), (4, 4)])
def test_where_boxes_abut_each_number_stands_in_its_own(size: tuple[int, int], columns: int, rows: int) -> None:
    boxes = tiles(size, columns, rows)
    for box, plate in zip(boxes, layout(size, boxes, range(1, len(boxes) + 1)).plates, strict=True):
        assert box[0] <= plate.rect[0] < plate.rect[2] <= box[2]
        assert box[1] <= plate.rect[1] < plate.rect[3] <= box[3]


def test_a_strip_between_boxes_is_enough_for_a_number() -> None:
    # the whole image is covered but for 20 rows between the boxes: plates 11 pixels high fit there, beside their own
    # box
    boxes = [(0, 0, 200, 90), (0, 110, 200, 200)]
    for own, plate in enumerate(layout((200, 200), boxes, [1, 2]).plates):
        left, top, right, bottom = plate.rect
        assert not in_others(boxes, own, (200, 200))[top:bottom, left:right].any()


def test_a_large_box_in_another_has_its_number_in_it_and_a_small_one_beside_it() -> None:
    outer = (20, 40, 300, 290)
    large, small = (
        layout((320, 320), [outer, (60, 90, 250, 250)], [1, 2]),
        layout((320, 320), [outer, (60, 90, 80, 110)], [1, 2]),
    )
    plate = large.plates[1].rect
    assert plate[0] >= 60
    assert plate[1] >= 90
    assert plate[2] <= 250
    assert plate[3] <= 250
    plate = small.plates[1].rect
    assert plate[2] <= 60 or plate[3] <= 90 or plate[0] >= 80 or plate[1] >= 110
    assert large.plates[0].rect[3] <= 40  # the outer box's own number stands outside, as ever


def test_a_number_for_which_there_is_no_place_is_told() -> None:
    boxes = tiles((60, 60), 10, 10)  # of 6 x 6 pixels, smaller than any number
    drawing = layout((60, 60), boxes, range(1, 101))
    assert in_other_boxes(boxes, drawing) == list(range(100))
    assert in_other_boxes(boxes[:1], layout((60, 60), boxes[:1], [1])) == []
    assert in_other_boxes([], layout((60, 60), [], [])) == []


@st.composite
def crowded(draw_: st.DrawFn) -> tuple[tuple[int, int], list[Rect]]:
    """Boxes that abut, nest, overlap, touch the image's edges, or are tiny: their corners come from a few lines."""
    size = (draw_(st.integers(30, 220)), draw_(st.integers(30, 220)))
    lines = []
    for side in size:
        some = draw_(st.lists(st.integers(0, side), min_size=1, max_size=4))
        lines.append(sorted({0, side, *some, *(min(side, at + draw_(st.integers(1, 30))) for at in some)}))
    boxes = []
    for _ in range(draw_(st.integers(1, 12))):
        (left, right), (top, bottom) = (
            sorted(draw_(st.lists(st.sampled_from(at), min_size=2, max_size=2, unique=True))) for at in lines
        )
        boxes.append((left, top, right, bottom))
    return size, boxes


def free_places(taken: np.ndarray, box: Rect, halo: Rect, wide: int, high: int) -> list[tuple[int, int]]:
    """Left and top of every plate of a size on free pixels that touches the frame of a box from outside, or lies in the box."""
    if high > taken.shape[0] or wide > taken.shape[1]:
        return []
    sums = np.pad(taken.astype(int).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    free = sums[high:, wide:] - sums[:-high, wide:] - sums[high:, :-wide] + sums[:-high, :-wide] == 0
    left, top, right, bottom = halo
    out = []
    for y, x in np.argwhere(free).tolist():
        beside = (
            left - wide <= x <= right
            and top - high <= y <= bottom
            and (x in (left - wide, right) or y in (top - high, bottom))
        )
        if beside or (box[0] <= x and box[1] <= y and x + wide <= box[2] and y + high <= box[3]):
            out.append((x, y))
    return out


@examples(60, least=10)
@given(crowded())
def test_a_number_stands_in_a_strange_box_only_where_no_place_is_free(
    scene: tuple[tuple[int, int], list[Rect]],
) -> None:
    size, boxes = scene
    drawing = layout(size, boxes, range(1, len(boxes) + 1))
    told = in_other_boxes(boxes, drawing)
    for own, (plate, frame) in enumerate(zip(drawing.plates, drawing.outlines, strict=True)):
        taken = in_others(boxes, own, size)
        left, top, right, bottom = plate.rect
        assert (own in told) == taken[top:bottom, left:right].any()
        if own not in told:
            continue
        wide, high = _plate_size(plate.text, min(plate.size, 8))
        for at, other in enumerate(drawing.plates):
            if at != own:
                taken[other.rect[1] : other.rect[3], other.rect[0] : other.rect[2]] = True
        assert not free_places(taken, boxes[own], frame.halo, wide, high)


def mask(rect: Rect, size: tuple[int, int], more: int = 0) -> np.ndarray:
    """Which pixels lie in a rectangle that grows by some pixels on each side."""
    out = np.zeros((size[1], size[0]), bool)
    out[max(0, rect[1] - more) : rect[3] + more, max(0, rect[0] - more) : rect[2] + more] = True
    return out


def line(size: tuple[int, int]) -> tuple[int, int]:
    """Width of an outline without and with its white hairline, in pixels."""
    side = (size[0] * size[1]) ** 0.5
    width = max(1 if side < 150 else 2, round(side * 0.0045))
    return width, width + max(1, width // 4)


def ring(box: Rect, size: tuple[int, int]) -> np.ndarray:
    """Which pixels an outline and its hairline are painted on: around the box, but no nearer to the image's edge than an outline is wide."""
    width, reach = line(size)
    unpainted = (max(box[0], width), max(box[1], width), min(box[2], size[0] - width), min(box[3], size[1] - width))
    return mask(box, size, reach) & ~mask(unpainted, size)


def other_rings(boxes: list[Rect], own: int, size: tuple[int, int]) -> np.ndarray:
    """Which pixels the outlines of boxes unlike box ``own`` are painted on."""
    return np.any([mask((0, 0, 0, 0), size), *(ring(box, size) for box in set(boxes) - {boxes[own]})], axis=0)


def other_plates(drawing: Drawing, own: int, size: tuple[int, int]) -> np.ndarray:
    return np.any(
        [mask((0, 0, 0, 0), size), *(mask(plate.rect, size) for at, plate in enumerate(drawing.plates) if at != own)],
        axis=0,
    )


def grown(pixels: np.ndarray) -> np.ndarray:
    """The pixels and their eight neighbours."""
    wide = np.pad(pixels, 1)
    rows, columns = pixels.shape
    return np.any([wide[y : y + rows, x : x + columns] for y in range(3) for x in range(3)], axis=0)


def places_that_hide_little(
    taken: np.ndarray, boxes: list[Rect], own: int, plate: tuple[int, int], share: float
) -> list[tuple[int, int]]:
    """Left and top of every plate on free pixels, in or beside its box, that hides at most a share of each box."""
    size = (taken.shape[1], taken.shape[0])
    left, top, right, bottom = boxes[own]
    reach = line(size)[1]
    halo = (max(0, left - reach), max(0, top - reach), min(size[0], right + reach), min(size[1], bottom + reach))
    out = []
    for x, y in free_places(taken, boxes[own], halo, *plate):
        inside = [(min(x + plate[0], b[2]) - max(x, b[0]), min(y + plate[1], b[3]) - max(y, b[1])) for b in boxes]
        shares = [
            max(0, wide) * max(0, high) / ((b[2] - b[0]) * (b[3] - b[1]))
            for (wide, high), b in zip(inside, boxes, strict=True)
        ]
        if max(shares) <= share:
            out.append((x, y))
    return out


@examples(80, least=10)
@given(crowded(), st.sampled_from([1, 88, 1234567]))
def test_a_number_meets_another_number_or_outline_only_where_no_place_is_free(
    scene: tuple[tuple[int, int], list[Rect]], first: int
) -> None:
    size, boxes = scene
    numbers = range(first, first + len(boxes))  # R1234567 is wider than many of the images
    drawing = layout(size, boxes, numbers)
    smallest = max(11, round((size[0] * size[1]) ** 0.5 * 0.032 * 0.65))
    for own, plate in enumerate(drawing.plates):
        here, rings, plates = mask(plate.rect, size), other_rings(boxes, own, size), other_plates(drawing, own, size)
        strange = in_others(boxes, own, size)
        small, tiny = (_plate_size(plate.text, min(plate.size, points)) for points in (smallest, 8))
        if (here & (rings | strange | plates)).any():
            assert not places_that_hide_little(rings | strange | plates, boxes, own, small, 0.5)
        elif (here & grown(rings)).any():  # beside another outline
            assert not places_that_hide_little(grown(rings | strange) | plates, boxes, own, small, 0.1)
        if (here & strange).any() and (here & rings).any():
            assert not places_that_hide_little(rings | plates, boxes, own, tiny, 1)
        if (here & plates).any():
            assert not places_that_hide_little(plates, boxes, own, tiny, 1)
    image = noise(*size)
    painted = np.any(
        [*(ring(box, size) for box in boxes), *(mask(plate.rect, size) for plate in drawing.plates)], axis=0
    )
    changed = (np.asarray(draw(image, boxes, numbers)) != np.asarray(image)).any(axis=2)
    np.testing.assert_array_equal(changed, painted)
    hidden = [painted[top:bottom, left:right].mean() for left, top, right, bottom in boxes]
    assert hidden_shares(boxes, drawing) == pytest.approx(hidden)


def touched(boxes: list[Rect], size: tuple[int, int]) -> list[set[Rect]]:
    """The boxes whose outlines lie under each plate or beside it; none of the plates may meet another."""
    drawing = layout(size, boxes, range(1, len(boxes) + 1))
    assert not any(
        (mask(plate.rect, size) & other_plates(drawing, own, size)).any() for own, plate in enumerate(drawing.plates)
    )
    return [
        {box for box in boxes if (grown(mask(plate.rect, size)) & ring(box, size)).any()} for plate in drawing.plates
    ]


SHARED = [(100, 100, 500, 500), (100, 100, 300, 300), (100, 100, 180, 180), (400, 400, 500, 500), (100, 420, 220, 500)]


@pytest.mark.parametrize(
    "boxes",
    [
        [(20 + 24 * at, 20 + 24 * at, 620 - 24 * at, 620 - 24 * at) for at in range(12)],  # one in the other
        [(20, 40, 40 + 50 * at, 600) for at in range(1, 12)],  # all share three sides
        SHARED,
        [*SHARED, *SHARED],
        [(0, 0, 640, 640), (0, 0, 320, 640), (0, 0, 320, 320), (0, 0, 160, 320)],
        tiles((640, 640), 3, 4),
        tiles((640, 640), 12, 1),
        [(200, 500, 460, 530), (200, 532, 460, 562)],  # two strips, less apart than an outline is wide
    ],
    ids=["concentric", "three sides", "corners", "corners twice", "halves", "tiles", "strips", "two strips"],
)
def test_each_number_of_nested_and_abutting_boxes_touches_its_own_outline_alone(boxes: list[Rect]) -> None:
    for own, outlines in enumerate(touched(boxes, (640, 640))):
        assert outlines <= {boxes[own]}


def test_a_number_makes_room_for_another_that_has_one_place_only() -> None:
    # Above R1 are 3 free pixels, left of it 8, and below it 13 to R2's outline: a plate of 16 x 12 pixels and a pixel's
    # distance fit only on its right, where R2's number stands if R2 comes first.
    boxes = [(10, 5, 30, 10), (15, 25, 45, 70)]
    assert _plate_size("R1", 11) == (16, 12)
    assert touched(boxes, (70, 80)) == [{boxes[0]}, {boxes[1]}]


def test_labels_and_lines_grow_with_the_image() -> None:
    sizes = {
        side: layout((side, side), [(side // 4, side // 4, side // 2, side // 2)], [1]) for side in (200, 640, 4000)
    }
    points = {side: drawing.plates[0].size for side, drawing in sizes.items()}
    assert points[200] >= 11  # pixels: what can be read at all
    assert 18 <= points[640] <= 24
    assert points[4000] >= 100  # an adapter that shrinks the image to 640 leaves 16
    lines = {side: drawing.outlines[0].inner[0] - drawing.outlines[0].outer[0] for side, drawing in sizes.items()}
    assert lines == {200: 2, 640: 3, 4000: 18}


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
