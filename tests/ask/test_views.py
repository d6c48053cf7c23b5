"""Cells tile the image exactly, every image mode is cut as it is, and no view changes the image given."""

import dataclasses
import io
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import WrapSpec, parse
from lmms_patch.ask.views import (
    Region,
    View,
    cell_box,
    cut,
    derangement,
    is_usable,
    lowres,
    occlude,
    shuffle,
    views_of,
)

GRIDS = range(2, 10)

unhurried = settings(deadline=None)
"""A busy machine is no failure."""


@st.composite
def grid_and_size(draw):
    """A grid n, and an image size with at least one pixel per cell."""
    n = draw(st.integers(2, 9))
    return n, (draw(st.integers(n, 1000)), draw(st.integers(n, 1000)))


def cells(n: int) -> list[View]:
    return [View("cell", n, row, col) for row in range(n) for col in range(n)]


def noise(mode: str, size: tuple[int, int] = (37, 29)) -> Image.Image:
    """An image of random pixels in any mode that can be made from bytes."""
    depth = len(Image.new(mode, (1, 1)).tobytes())
    stream = np.random.default_rng(0)
    if mode == "1":
        return Image.fromarray(stream.random(size[::-1]) < 0.5)
    if mode == "F":
        return Image.fromarray(stream.normal(size=size[::-1]).astype(np.float32))
    return Image.frombytes(mode, size, stream.integers(0, 256, size[0] * size[1] * depth, np.uint8).tobytes())


def palette(mode: str = "P", transparency: int | None = None) -> Image.Image:
    noise = np.random.default_rng(0).integers(0, 256, (29, 37), np.uint8)
    image = Image.fromarray(noise).quantize(16)
    if transparency is not None:
        image.info["transparency"] = transparency
    return image if mode == "P" else image.convert(mode)


def palette_with_alpha() -> Image.Image:
    """A palette whose entries hold their own alpha; nothing in ``info`` says so."""
    return noise("RGBA").quantize(16, method=Image.Quantize.FASTOCTREE)


IMAGES = {
    **{
        mode: lambda mode=mode: noise(mode)
        for mode in ("RGB", "RGBA", "RGBX", "L", "LA", "CMYK", "YCbCr", "HSV", "LAB", "1", "I", "F", "I;16")
    },
    "P": palette,
    "P transparent": lambda: palette(transparency=3),
    "P with alpha": palette_with_alpha,
    "PA": lambda: palette("PA", transparency=3),
}
"""Makers of small images in all the modes that datasets hold."""

all_images = pytest.mark.parametrize("make", IMAGES.values(), ids=IMAGES.keys())


def colours(image: Image.Image) -> np.ndarray:
    """What is seen: palettes and bilevel images resolved, other modes as they are."""
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA")
    return np.asarray(image.convert("L") if image.mode == "1" else image)


def as_seen(image: Image.Image) -> np.ndarray:
    """Colours as RGBA, to compare a palette image with one that lost its palette."""
    return np.asarray(image.convert("RGBA")) if image.mode in ("P", "PA", "RGB", "RGBA") else colours(image)


# --- boxes --------------------------------------------------------------------------------------


@unhurried
@given(grid_and_size())
def test_cells_cover_the_image_exactly_once(case):
    n, (width, height) = case
    covered = np.zeros((height, width), np.uint8)
    for row, col in itertools.product(range(n), range(n)):
        left, top, right, bottom = cell_box((width, height), n, row, col)
        covered[top:bottom, left:right] += 1
    assert (covered == 1).all()


@unhurried
@given(grid_and_size())
def test_cell_sides_differ_by_one_pixel_at_most(case):
    n, size = case
    boxes = [cell_box(size, n, row, col) for row in range(n) for col in range(n)]
    widths = {right - left for left, _, right, _ in boxes}
    heights = {bottom - top for _, top, _, bottom in boxes}
    assert max(widths) - min(widths) <= 1
    assert max(heights) - min(heights) <= 1
    assert min(widths | heights) >= 1


@unhurried
@given(grid_and_size(), st.integers(0, 80))
def test_boxes_are_those_of_the_formula(case, index):
    n, (width, height) = case
    row, col = divmod(index % (n * n), n)
    want = (width * col // n, height * row // n, width * (col + 1) // n, height * (row + 1) // n)
    assert View("cell", n, row, col).box((width, height)) == want


@pytest.mark.parametrize("n", GRIDS)
def test_cells_are_numbered_row_by_row_from_1(n):
    views = views_of(parse(f"gqa_rci{n}"))
    assert views[0] == View("full")
    assert [view.cell for view in views] == [None, *range(1, n * n + 1)]
    boxes = [view.box((n * 10, n * 10)) for view in views[1:]]
    assert boxes == sorted(boxes, key=lambda box: (box[1], box[0]))


def test_patch_5_is_the_centre_of_3x3():
    image = Image.new("L", (9, 9))
    image.putpixel((4, 4), 255)
    lit = [view.cell for view in cells(3) if np.asarray(cut(image, view)).any()]
    assert lit == [5]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("gqa_rci", ["full"] + 13 * ["cell"]),
        ("gqa_pcri2", ["full"] + 4 * ["cell"]),
        ("gqa_occlude3", ["full"] + 9 * ["occlude"]),
        ("gqa_shuffle3", ["shuffle"]),
        ("gqa_lowres", ["full"] + 3 * ["lowres"]),
        ("gqa_lowres16", ["full", "lowres"]),
        ("gqa_blind", ["blind"]),
        ("gqa_blindguess", ["blind"]),
        ("gqa_blank", ["blank"]),
    ],
)
def test_views_of_each_kind(name, kinds):
    assert [view.kind for view in views_of(parse(name))] == kinds


@pytest.mark.parametrize(
    ("size", "n", "min_side", "usable"),
    [
        ((1, 1), 2, 1, False),
        ((3, 2), 3, 1, False),
        ((3, 3), 3, 1, True),
        ((20_000, 50), 9, 1, True),
        ((20_000, 8), 9, 1, False),
        ((84, 84), 3, 28, True),
        ((84, 83), 3, 28, False),
    ],
)
def test_an_image_is_usable_where_every_cell_has_the_pixels(size, n, min_side, usable):
    assert is_usable(size, n, min_side) is usable
    boxes = [cell_box(size, n, row, col) for row in range(n) for col in range(n)]
    assert usable == (min(min(right - left, bottom - top) for left, top, right, bottom in boxes) >= min_side)


# --- cells --------------------------------------------------------------------------------------


@all_images
@pytest.mark.parametrize("n", [2, 3, 7])
def test_cells_stitched_back_give_the_original(make, n):
    image = make()
    pieces = [colours(cut(image, view)) for view in cells(n)]
    rows = [np.concatenate(pieces[n * row : n * (row + 1)], axis=1) for row in range(n)]
    np.testing.assert_array_equal(np.concatenate(rows), colours(image))


@all_images
def test_cells_keep_the_mode(make):
    assert {cut(make(), view).mode for view in cells(3)} == {make().mode}


ALL_KINDS = [
    View("window", 3, 1, 2),
    View("full"),
    View("cell", 3, 1, 2),
    View("blank"),
    View("occlude", 3, 1, 2),
    View("shuffle", 3),
    View("lowres", 4),
]


"""Views without an image, of another doc's image, of a doc's own boxes, and of clips: other tests have them."""


@all_images
@pytest.mark.parametrize("view", ALL_KINDS, ids=lambda view: view.kind)
def test_the_image_given_is_never_changed_nor_shared(make, view):
    image = make()
    before = image.mode, image.size, image.tobytes(), image.getpalette(), dict(image.info)
    shown = cut(image, view, min_cell=64, seed="s")
    assert shown is not image
    _overwrite(shown)
    assert (image.mode, image.size, image.tobytes(), image.getpalette(), dict(image.info)) == before


def _overwrite(image: Image.Image) -> None:
    image.paste(Image.new(image.mode, image.size), (0, 0))
    if image.mode == "P":
        image.putpalette([7] * 768)
    image.info["mark"] = "changed"


@pytest.mark.parametrize("view", [View("full"), View("cell", 3, 1, 2), View("window", 3, 1, 2)])
def test_a_view_asked_again_has_its_size_and_other_pixels_each_time(view):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (128, 192, 3), np.uint8))
    shown = [cut(image, dataclasses.replace(view, trim=trim)) for trim in range(9)]
    assert len({one.size for one in shown}) == 1
    assert len({one.tobytes() for one in shown}) == 9


def test_a_blind_view_is_not_an_image():
    with pytest.raises(ValueError, match="blind"):
        cut(Image.new("RGB", (9, 9)), View("blind"))


# --- files as they come -------------------------------------------------------------------------


def reopened(image: Image.Image, **save) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, **save)
    return Image.open(io.BytesIO(buffer.getvalue()))


def test_an_animated_gif_is_cut_at_its_first_frame():
    frames = [Image.new("RGB", (6, 6), colour) for colour in ("red", "blue")]
    image = reopened(frames[0], format="GIF", save_all=True, append_images=frames[1:])
    shown = [cut(image, view).convert("RGB").getcolors() for view in cells(2)]
    assert shown == [[(9, (255, 0, 0))]] * 4


def test_an_animated_gif_is_cut_at_the_frame_that_the_base_chose():
    frames = [Image.new("RGB", (6, 6), colour) for colour in ("red", "blue")]
    image = reopened(frames[0], format="GIF", save_all=True, append_images=frames[1:])
    image.seek(1)
    assert cut(image, View("cell", 2)).convert("RGB").getcolors() == [(9, (0, 0, 255))]


def rotated_jpeg() -> Image.Image:
    """A JPEG of 40×20 raw pixels, the left half white, that its EXIF says to show rotated."""
    pixels = np.zeros((20, 40), np.uint8)
    pixels[:, :20] = 255
    exif = Image.Exif()
    exif[0x0112] = 6
    return reopened(Image.fromarray(pixels), format="JPEG", exif=exif)


def test_a_rotated_jpeg_is_cut_in_its_raw_frame():
    """The frame that a base task sees that does not rotate either."""
    image = rotated_jpeg()
    left, right = (cut(image, View("cell", 2, 0, col)) for col in (0, 1))
    assert left.size == right.size == (20, 10)
    assert np.asarray(left).min() > 250
    assert np.asarray(right).max() < 5


def test_a_cell_of_a_rotated_jpeg_says_so_too():
    """So that an adapter which rotates by EXIF turns each cell as it turns the full image."""
    assert cut(rotated_jpeg(), View("cell", 2)).getexif()[0x0112] == 6


def test_a_truncated_jpeg_is_cut_as_pillow_shows_it(monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)  # as lmms_eval.api.task does
    buffer = io.BytesIO()
    noise("RGB", (64, 64)).save(buffer, "JPEG")
    cropped = buffer.getvalue()[: len(buffer.getvalue()) // 2]
    whole = np.asarray(Image.open(io.BytesIO(cropped)))
    assert len(np.unique(whole[-8:])) == 1, "the end is missing, so Pillow fills it"
    image = Image.open(io.BytesIO(cropped))
    for view in cells(3):
        left, top, right, bottom = view.box((64, 64))
        np.testing.assert_array_equal(np.asarray(cut(image, view)), whole[top:bottom, left:right])


# --- occlude, blank -----------------------------------------------------------------------------

GREYS = {
    "L": 128, "LA": (128, 255), "RGB": (128, 128, 128), "RGBA": (128, 128, 128, 255), "RGBX": (128, 128, 128, 255), "CMYK": (0, 0, 0, 127),
    "YCbCr": (128, 128, 128), "HSV": (0, 0, 128), "LAB": (137, 0, 0), "1": 128, "I": 128, "F": 128.0, "I;16": 32768,
    "P": (128, 128, 128, 255), "P transparent": (128, 128, 128, 255), "P with alpha": (128, 128, 128, 255), "PA": (128, 128, 128, 255),
}  # fmt: skip
"""Mid-grey, opaque, as each mode says it (LAB: lightness 255 · 0.536, that of sRGB 128; a and b as NumPy sees them, signed)."""


@pytest.mark.parametrize("name", IMAGES)
def test_occlude_greys_its_box_and_nothing_else(name):
    image = IMAGES[name]()
    left, top, right, bottom = box = cell_box(image.size, 3, 1, 2)
    want = as_seen(image).copy()
    want[top:bottom, left:right] = GREYS["RGBA" if image.mode == "RGB" else name]
    np.testing.assert_array_equal(as_seen(occlude(image, box)), want)


@pytest.mark.parametrize("mode", ["CMYK", "HSV", "LAB", "YCbCr"])
def test_the_greys_are_grey(mode):
    image = Image.new(mode, (4, 4))
    shown = occlude(image, (0, 0, 4, 4))
    if mode == "LAB":
        from PIL import ImageCms

        to_rgb = ImageCms.buildTransform(ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB"), "LAB", "RGB")
        shown = ImageCms.applyTransform(shown, to_rgb)
    pixel = shown.convert("RGB").getpixel((0, 0))
    assert pixel == pytest.approx((128, 128, 128), abs=2)


# --- shuffle ------------------------------------------------------------------------------------


def pieces_of(image: Image.Image, n: int) -> list[bytes]:
    return [image.crop(cell_box(image.size, n, row, col)).tobytes() for row in range(n) for col in range(n)]


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "CMYK", "I", "F", "I;16"])
@pytest.mark.parametrize("n", [2, 3, 9])
def test_shuffle_permutes_the_cells_and_leaves_none_in_its_place(mode, n):
    image = noise(mode, (n * 7, n * 5))
    before, after = pieces_of(image, n), pieces_of(shuffle(image, n, "0/17"), n)
    assert Counter(after) == Counter(before), "the very same pieces"
    assert not any(a == b for a, b in zip(before, after, strict=True))


def test_shuffle_is_decided_by_the_seed():
    image = noise("RGB")
    shown = [cut(image, View("shuffle", 3), seed=seed).tobytes() for seed in ("0/1", "0/1", "0/2", "1/1")]
    assert shown[0] == shown[1]
    assert len(set(shown)) == 3


@unhurried
@given(st.integers(2, 81), st.text(max_size=8))
def test_a_derangement_is_a_permutation_without_a_fixed_point(count, seed):
    order = derangement(count, seed)
    assert sorted(order) == list(range(count))
    assert all(i != place for place, i in enumerate(order))
    assert order == derangement(count, seed)


def test_all_derangements_of_4_occur_about_equally_often():
    every = {order for order in itertools.permutations(range(4)) if all(i != place for place, i in enumerate(order))}
    assert len(every) == 9
    counts = Counter(tuple(derangement(4, f"0/{doc}")) for doc in range(1800))
    assert set(counts) == every
    assert all(140 <= count <= 260 for count in counts.values()), "200 expected, SD 13"


# --- lowres -------------------------------------------------------------------------------------


def block_means(pixels: np.ndarray, k: int) -> np.ndarray:
    """The mean of each block of k × k pixels, one by one; blocks at the right and bottom edge may be smaller."""
    height, width = pixels.shape
    return np.array([[pixels[y : y + k, x : x + k].mean() for x in range(0, width, k)] for y in range(0, height, k)])


def enlarged(small: np.ndarray, size: tuple[int, int], k: int) -> np.ndarray:
    """The bicubic surface (Keys 1981, a = -1/2) through the centres of blocks, at the centre of each pixel.

    Weights beyond the edge are left out.
    """

    def weights(count: int, there: int) -> np.ndarray:
        d = np.abs((np.arange(count)[:, None] + 0.5) / k - (np.arange(there)[None, :] + 0.5))
        w = np.where(d < 1, 1.5 * d**3 - 2.5 * d**2 + 1, np.where(d < 2, -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2, 0))
        return w / w.sum(axis=1, keepdims=True)

    return weights(size[1], small.shape[0]) @ small @ weights(size[0], small.shape[1]).T


@pytest.mark.parametrize(
    ("size", "k"), [((12, 8), 2), ((12, 8), 4), ((24, 16), 8), ((64, 64), 64), ((37, 29), 4), ((9, 5), 3)]
)
def test_lowres_is_the_mean_of_each_block_enlarged_smoothly(size, k):
    image = noise("F", size)
    pixels = np.asarray(image, float)
    np.testing.assert_allclose(np.asarray(lowres(image, k)), enlarged(block_means(pixels, k), size, k), atol=1e-5)


@all_images
def test_lowres_keeps_size_and_mode(make):
    image, shown = make(), cut(make(), View("lowres", 4))
    assert shown.size == image.size
    assert shown.mode == {"P": "RGBA" if image.has_transparency_data else "RGB", "PA": "RGBA", "1": "L"}.get(
        image.mode, image.mode
    )


@pytest.mark.parametrize(
    "name", [name for name in IMAGES if name not in ("P", "P transparent", "P with alpha", "PA", "1")]
)
@pytest.mark.parametrize("size", [(16, 16), (37, 29)])
def test_lowres_leaves_one_colour_as_it_is(name, size):
    pixel = noise(name, (1, 1))
    image = pixel.resize(size, Image.Resampling.NEAREST)
    shown = lowres(image, 8)
    np.testing.assert_allclose(
        colours(shown).astype(float), colours(image).astype(float), atol=2 if name == "HSV" else 1, rtol=1e-6
    )


@pytest.mark.parametrize("size", [(24, 16), (37, 29)])
@pytest.mark.parametrize("name", ["RGBA", "LA", "P transparent", "P with alpha", "PA"])
def test_a_model_that_is_shown_no_alpha_sees_means_of_what_it_sees_in_full(name, size):
    """Adapters call ``convert("RGB")``: colours that a file has under alpha 0 are seen in the full image, so they are in the means."""
    image = IMAGES[name]().resize(size, Image.Resampling.NEAREST)
    assert image.has_transparency_data
    full, seen = (np.asarray(one.convert("RGB"), float) for one in (image, lowres(image, 4)))
    for band in range(3):
        np.testing.assert_allclose(
            seen[..., band], enlarged(block_means(full[..., band], 4), size, 4).clip(0, 255), atol=1.5
        )
    alpha = image.convert("RGBA").getchannel("A")
    assert lowres(image, 4).convert("RGBA").getchannel("A").tobytes() == lowres(alpha, 4).tobytes()


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
@pytest.mark.parametrize(
    "shown",
    [
        lambda image: lowres(image, 8),
        lambda image: cut(image, View("cell", 3, 1, 1), min_cell=28),
        lambda image: cut(image, Region(area=(3, 3, 12, 9)), min_cell=28),
        lambda image: shuffle(image, 3, "0/17"),
    ],
    ids=["lowres", "cell", "box", "shuffle"],
)
def test_a_transparent_ground_keeps_its_colour_in_views_that_are_resampled(shown, mode):
    """A white ground of alpha 0, as logos and diagrams have it, with nothing on it: white in every view."""
    ground = Image.new("RGBA", (37, 29), (255, 255, 255, 0)).convert(mode)
    assert shown(ground).mode == mode
    assert shown(ground).convert("RGBA").getcolors() == [
        (shown(ground).width * shown(ground).height, (255, 255, 255, 0))
    ]


def test_stripes_as_fine_as_the_blocks_are_gone_and_coarser_ones_stay():
    """Stripes of 4 pixels, one black and one white in every 8: blocks of 8 hold one of each, so nothing is left of them; blocks of 4 hold one."""
    stripes = Image.fromarray(np.tile(np.repeat(np.array([0, 255], np.uint8), 4), (64, 8)))
    assert np.ptp(np.asarray(lowres(stripes, 8))) <= 1
    assert np.asarray(lowres(stripes, 4), float).std() > 80


# --- min_cell -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "min_cell", "want"),
    [
        ((60, 90), 0, (20, 30)),
        ((60, 90), 20, (20, 30)),
        ((60, 90), 28, (28, 42)),
        ((90, 60), 28, (42, 28)),
        ((60, 60), 28, (28, 28)),
        ((3, 300), 28, (28, 2800)),
    ],
)
def test_min_cell_upsamples_only_where_needed_and_keeps_the_aspect(size, min_cell, want):
    image = noise("RGB", size)
    shown = cut(image, View("cell", 3), min_cell=min_cell)
    assert shown.size == want
    if want == (size[0] // 3, size[1] // 3):
        np.testing.assert_array_equal(np.asarray(shown), np.asarray(image)[: want[1], : want[0]])


def test_min_cell_is_bicubic():
    image = noise("L", (6, 6))
    want = image.crop((0, 0, 3, 3)).resize((9, 9), Image.Resampling.BICUBIC)
    assert cut(image, View("cell", 2), min_cell=9).tobytes() == want.tobytes()


def test_segments_are_numbered_in_the_order_of_time_and_have_no_box():
    full, *segments = views_of(WrapSpec("v", KINDS["trci"], (4,)))
    assert full == View("full")
    assert segments == [View("segment", n=4, row=0, col=i) for i in range(4)]
    assert [(one.cell, one.set, one.box((160, 120))) for one in segments] == [(i + 1, 4, None) for i in range(4)]


@pytest.mark.parametrize("kind", ["segment", "frame", "frames", "tshuffle", "treverse"])
def test_a_view_in_time_is_not_cut_from_an_image(kind):
    with pytest.raises(ValueError, match="is not an image"):
        cut(Image.new("RGB", (9, 9)), View(kind, n=2))
