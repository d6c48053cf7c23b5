"""From saliency to boxes, against blobs whose boxes are known; overlap rules and synthesis, against brute force."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lmms_patch.magic.build.saliency import (
    Rect,
    RegionSettings,
    candidates,
    coverage,
    hotspots,
    iou,
    load_saliency,
    merge,
    overlaps,
    remove_overlap,
    sample,
    synthesise,
)
from tests.sizes import examples

DEFAULT = RegionSettings()


def blobs(size: tuple[int, int], rects: list[Rect], soft: bool = True) -> np.ndarray:
    """A map with ellipses inscribed in the given boxes. Soft ones fall off so that they pass 0.5 at the box's sides."""
    ys, xs = np.mgrid[0 : size[1], 0 : size[0]] + 0.5
    out = np.zeros((size[1], size[0]))
    for left, top, right, bottom in rects:
        radius2 = ((xs - (left + right) / 2) / ((right - left) / 2)) ** 2 + (
            (ys - (top + bottom) / 2) / ((bottom - top) / 2)
        ) ** 2
        out = np.maximum(out, 0.5**radius2 if soft else (radius2 <= 1).astype(float))
    return out


def pixels(rect: Rect) -> set[tuple[int, int]]:
    return set(itertools.product(range(rect[0], rect[2]), range(rect[1], rect[3])))


rects = st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(1, 12), st.integers(1, 12)).map(
    lambda r: (r[0], r[1], r[0] + r[2], r[1] + r[3])
)


@examples(100)
@given(rects, rects)
def test_iou_and_coverage_are_what_counting_pixels_gives(first: Rect, second: Rect) -> None:
    a, b = pixels(first), pixels(second)
    assert iou(first, second) == pytest.approx(len(a & b) / len(a | b))
    assert coverage(first, second) == pytest.approx(len(a & b) / min(len(a), len(b)))


def test_overlap_of_empty_boxes_is_0() -> None:
    assert (
        iou((3, 3, 3, 9), (0, 0, 9, 9)) == coverage((3, 3, 3, 9), (0, 0, 9, 9)) == iou((1, 1, 1, 1), (1, 1, 1, 1)) == 0
    )


# saliency


@pytest.mark.parametrize("size", [(320, 240), (640, 480), (500, 375)])
def test_boxes_of_known_blobs_are_recovered(size: tuple[int, int], tmp_path: Path) -> None:
    w, h = size
    known = [
        (w // 20, h // 10, w // 4, h // 3),
        (w // 2, h // 8, w * 3 // 4, h // 2),
        (w // 8, h * 5 // 8, w // 3, h * 7 // 8),
        (w * 3 // 5, h * 3 // 5, w - 1, h - 1),
    ]
    Image.fromarray((blobs(size, known) * 255).round().astype(np.uint8)).save(tmp_path / "m.png")
    found = hotspots(load_saliency(tmp_path / "m.png", size), DEFAULT)
    assert len(found) == len(known)
    for rect in known:
        assert max(iou(rect, other) for other in found) >= 0.8


def test_a_small_map_is_brought_to_the_size_of_the_image(tmp_path: Path) -> None:
    small, size = (80, 60), (640, 480)
    known = [(10, 10, 30, 25), (45, 30, 70, 55)]
    Image.fromarray((blobs(small, known) * 255).round().astype(np.uint8)).save(tmp_path / "m.png")
    found = hotspots(load_saliency(tmp_path / "m.png", size), DEFAULT)
    for rect in known:
        assert max(iou(tuple(8 * v for v in rect), other) for other in found) >= 0.8
    assert len(found) == 2


def test_blobs_below_the_area_filter_and_specks_go_and_pinholes_close() -> None:
    size = (400, 300)  # the filter: 0.002 * 120000 = 240 pixels
    saliency = blobs(size, [(50, 50, 150, 150), (300, 50, 312, 62)], soft=False)  # the second: about 113 pixels
    saliency[250, 350] = saliency[20, 20] = 1
    saliency[100, 100] = 0
    assert hotspots(saliency, DEFAULT) == [(50, 50, 150, 150)]
    lax = RegionSettings(min_area=0.0005)
    assert sorted(hotspots(saliency, lax)) == [(50, 50, 150, 150), (300, 50, 312, 62)]


def test_the_area_filter_counts_pixels_and_not_the_box() -> None:
    saliency = np.zeros((100, 100))
    for at in range(80):  # a diagonal, 3 wide: 240 pixels in a box of 6400
        saliency[10 + at, 10 + at : 13 + at] = 1
    rules = RegionSettings(clean=0, min_area=0.025)
    assert hotspots(saliency, rules) == []
    assert hotspots(saliency, RegionSettings(clean=0, min_area=0.024)) == [(10, 10, 92, 90)]


@examples(40)
@given(st.lists(st.lists(st.booleans(), min_size=9, max_size=9), min_size=7, max_size=7))
def test_connected_regions_are_those_of_a_flood_fill(grid: list[list[bool]]) -> None:
    left = {(x, y) for y in range(7) for x in range(9) if grid[y][x]}
    expected = []
    while left:
        todo, region = [left.pop()], []
        while todo:
            x, y = todo.pop()
            region.append((x, y))
            near = {(x + dx, y + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)} & left
            left -= near
            todo += near
        xs, ys = [x for x, _ in region], [y for _, y in region]
        expected.append((min(xs), min(ys), max(xs) + 1, max(ys) + 1))
    found = hotspots(np.array(grid, float), RegionSettings(clean=0, min_area=0))
    assert sorted(found) == sorted(expected)
    assert found == sorted(found, key=lambda r: (r[1], r[0], r[3], r[2]))


def test_scales(tmp_path: Path) -> None:
    dim = np.zeros((10, 10), np.uint8)
    dim[:, 5:] = 51  # a fifth of the range
    Image.fromarray(dim).save(tmp_path / "dim.png")
    assert load_saliency(tmp_path / "dim.png", (10, 10)).max() == 1
    Image.fromarray(dim.astype(np.uint16) * 257).save(tmp_path / "deep.png")
    assert np.allclose(load_saliency(tmp_path / "deep.png", (10, 10)), load_saliency(tmp_path / "dim.png", (10, 10)))
    Image.new("L", (10, 10), 200).save(tmp_path / "flat.png")
    assert hotspots(load_saliency(tmp_path / "flat.png", (10, 10)), DEFAULT) == []  # it points nowhere


# overlap


def test_remove_overlap_by_hand() -> None:
    big, inside, beside, half = (0, 0, 10, 10), (2, 2, 5, 5), (20, 0, 30, 10), (5, 0, 15, 10)
    # inside: IoU with big 0.09, coverage 1; half: IoU 50 / 150, coverage 0.5
    assert remove_overlap([inside, big, beside, half], 0.5, 0.8) == [1, 2, 3]
    assert remove_overlap([big, half], 0.33, 1) == [0]
    assert remove_overlap([big, half], 0.34, 1) == [0, 1]
    assert remove_overlap([half, big], 0.33, 1) == [0]  # equally large: the earlier
    assert remove_overlap([big, big, (3, 3, 3, 3)], 1, 1) == [0, 1]  # 1 allows all but the empty
    assert remove_overlap([], 0, 0) == []


@examples(100)
@given(st.lists(rects, max_size=8), st.sampled_from([0.0, 0.3, 0.7]), st.sampled_from([0.0, 0.5, 0.9]))
def test_no_two_that_stay_overlap_and_each_that_goes_overlaps_one_of_higher_rank(
    boxes: list[Rect], most_iou: float, most_coverage: float
) -> None:
    staying = remove_overlap(boxes, most_iou, most_coverage)
    for a, b in itertools.combinations(staying, 2):
        assert not overlaps(boxes[a], boxes[b], most_iou, most_coverage)
    for gone in set(range(len(boxes))) - set(staying):
        better = [s for s in staying if len(pixels(boxes[s])) >= len(pixels(boxes[gone]))]
        assert any(overlaps(boxes[gone], boxes[s], most_iou, most_coverage) for s in better)


def test_a_hotspot_that_is_an_object_is_merged_into_it() -> None:
    objects = [(0, 0, 10, 10)]
    assert merge(objects, [(0, 0, 10, 9), (0, 0, 10, 4), (50, 50, 60, 60)], 0.5) == [1, 2]
    assert merge([], [(0, 0, 1, 1)], 0.5) == [0]


# adversarial boxes


@examples(60)
@given(st.lists(rects, max_size=8), st.lists(rects, max_size=4))
def test_candidates_have_no_pixel_in_common_with_relevant_boxes(objects: list[Rect], relevant: list[Rect]) -> None:
    rules = RegionSettings(min_size=0.1, max_size=0.4, min_pixels=2)
    size = (24, 24)  # sides from 3 (0.1 * 24 rounded up) to 9
    found = candidates(objects, relevant, size, rules)
    good = [
        at
        for at, box in enumerate(objects)
        if 3 <= box[2] - box[0] <= 9
        and 3 <= box[3] - box[1] <= 9
        and not any(pixels(box) & pixels(other) for other in relevant)
    ]
    assert set(found) <= set(good)
    assert bool(found) == bool(good)


def test_a_wall_does_not_remove_what_stands_before_it() -> None:
    cup, wall = (50, 50, 70, 70), (0, 0, 100, 100)
    assert candidates([wall, cup], [], (100, 100), DEFAULT) == [1]


def test_samples_are_uniform_and_without_replacement() -> None:
    boxes = [(at, 0, at + 1, 1) for at in range(5)]
    draws = [tuple(sorted(sample(boxes, 3, seed))) for seed in range(2000)]
    counts = [draws.count(three) for three in itertools.combinations(range(5), 3)]  # 10 sets, 200 each; SD 13.4
    assert sum(counts) == 2000
    assert max(abs(count - 200) for count in counts) < 60
    assert sorted(sample(boxes, 9, 0)) == [0, 1, 2, 3, 4]
    assert sample(boxes, 3, 7) == sample(boxes, 3, 7)


small = RegionSettings(min_size=0.1, max_size=0.5, min_pixels=2)


@examples(80)
@given(st.lists(rects, max_size=6), st.lists(rects, max_size=2), st.integers(0, 10**6))
def test_a_synthetic_box_meets_nothing_and_is_missing_only_where_there_is_no_room(
    taken: list[Rect], like: list[Rect], seed: int
) -> None:
    size = (20, 16)  # sides from 2 to 10, and from 2 to 8
    box = synthesise(taken, like, size, small, seed)
    covered = set().union(*map(pixels, taken)) if taken else set()
    if box is None:
        places = itertools.product(range(size[0] - 1), range(size[1] - 1))
        assert all(pixels((x, y, x + 2, y + 2)) & covered for x, y in places)
        return
    assert not pixels(box) & covered
    assert 0 <= box[0] < box[2] <= size[0]
    assert 0 <= box[1] < box[3] <= size[1]
    assert 2 <= box[2] - box[0] <= 10
    assert 2 <= box[3] - box[1] <= 8
    assert box == synthesise(taken, like, size, small, seed)


def test_a_synthetic_box_is_as_large_as_its_model_and_lies_anywhere() -> None:
    # free: a strip of 6 x 3 right of what is taken; sides of 2 varied by up to 30 % are 1.4 to 2.6: rounded to 1, 2 or
    # 3
    rules = RegionSettings(min_size=0, max_size=1, min_pixels=1)
    seen = [synthesise([(0, 0, 4, 3)], [(0, 0, 2, 2)], (10, 3), rules, seed) for seed in range(3000)]
    widths = [b[2] - b[0] for b in seen if b]
    assert {side: round(widths.count(side) / 3000, 1) for side in (1, 2, 3)} == {
        1: 0.1,
        2: 0.8,
        3: 0.1,
    }  # 1/12, 10/12, 1/12
    corners = [b[:2] for b in seen if b and (b[2] - b[0], b[3] - b[1]) == (2, 2)]
    counts = [corners.count(place) for place in itertools.product(range(4, 9), range(2))]  # 10 places
    assert min(counts) > 0.6 * len(corners) / 10
    assert max(counts) < 1.4 * len(corners) / 10


def test_no_room_for_the_smallest_box() -> None:
    assert synthesise([(0, 0, 100, 97)], [], (100, 100), DEFAULT, 0) is None  # 8 pixels are the least
    assert synthesise([], [], (5, 5), DEFAULT, 0) is None
    assert synthesise([(0, 0, 100, 92)], [], (100, 100), DEFAULT, 0) is not None
    one = RegionSettings(min_size=0, max_size=1, min_pixels=1)
    assert synthesise([(0, 0, 9, 9), (9, 0, 10, 9), (1, 9, 10, 10)], [(0, 0, 9, 9)], (10, 10), one, 0) == (
        0,
        9,
        1,
        10,
    )  # shrinks to the one free pixel
