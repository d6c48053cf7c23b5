"""The views of a doc: which there are, and how each is cut from an image. Pillow and the standard library only.

Views of a clip in time are cut elsewhere (``harness.video``).

Sizes and boxes are in pixels; boxes are half-open, ``(left, top, right, bottom)``. Cells are numbered row by row from
1, as in the papers (patch 5 is the centre of 3×3): RCI (https://arxiv.org/abs/2509.23673) and PCRI
(https://arxiv.org/abs/2509.23879).
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from PIL import Image

from lmms_patch.ask.kinds import KINDS, REGIONS, Key, shape, windows
from lmms_patch.ask.spec import WrapSpec

Size = tuple[int, int]
Box = tuple[int, int, int, int]

GREY = (128, 128, 128)

TEXTS = ("blind", "caption")
"""The kinds of views without an image."""
CELLS = ("cell", "occlude", "segment")
"""The kinds of views that are of one cell of a grid."""
PIXELS = 1
"""The version of the pixels of views. Raise it when a view's pixels change, so that the harness's response cache asks again."""
PIXELS_RESAMPLED = 2
"""The same for views that are resampled (``pixels``). In version 1 what is transparent became black in them."""


_BROUGHT = {kind.view: kind.brought for kind in KINDS.values()}
"""The method that cuts a kind of view; None of our kinds."""


@dataclass(frozen=True)
class View:
    """What is shown with a doc's question, such as the whole image, a cell of the image, or a segment of a clip.

    Attributes:
        kind: ``full``, ``cell``, ``window`` (a cell moved by half its sides), ``occlude``, ``blind``, ``blank``,
            ``caption``, ``shuffle``, ``lowres``, ``region`` (see ``Region``) or ``hidden`` (see ``HiddenView``); of a clip in time
            ``segment``, ``frame``, ``frames``, ``tshuffle`` or ``treverse``.
        n: the grid size, how many segments or frames, or by what the size is divided; 0 where there is no number.
        row: the cell's row, from 0; 0 where the view is not of one cell. Of a window it counts half cells.
        col: the cell's column, likewise.
        swapped: whether it is cut from another doc's image. Left out of a view's ``repr``: that text names the random
            streams of scorers, so a wrong image is scored with the stream of the right one. So are the next three.
        turn: by how many places the doc's options are moved (``ask.orders``); 0 where they stand as the doc has them.
        gold: the place of the gold among the options that are shown, from 1; 0 where the doc is not asked in several
        orders.
        adds: of a blind view, a line after the prompt (``Kind.adds``); of a ``caption`` view, the description that
            stands before it.
        repeat: which asking it is, from 1, where a doc is asked again; 0: the first (``again``).
        trim: how often its crop was trimmed before, for an image that differs.
        donor: of a swapped view, which of the doc's wrong images it shows, from 0.
    """

    kind: str
    n: int = 0
    row: int = 0
    col: int = 0
    swapped: bool = field(default=False, repr=False, kw_only=True)
    turn: int = field(default=0, repr=False, kw_only=True)
    gold: int = field(default=0, repr=False, kw_only=True)
    adds: str = field(default="", repr=False, kw_only=True)
    repeat: int = field(default=0, repr=False, kw_only=True)
    trim: int = field(default=0, repr=False, kw_only=True)
    donor: int = field(default=0, repr=False, kw_only=True)

    @property
    def cell(self) -> int | None:
        """The number of the cell or segment that the view shows, row by row from 1; None where the view shows neither."""
        return self.row * self.n + self.col + 1 if self.kind in CELLS else None

    def box(self, size: Size) -> Box | None:
        """Return the box of the cell or window on an image of this size (pixels).

        None where the view is neither.
        """
        if self.kind == "window":
            return window_box(size, self.n, self.row, self.col)
        return cell_box(size, self.n, self.row, self.col) if self.cell is not None and self.kind != "segment" else None

    @property
    def set(self) -> Key | None:
        """The set of views among which the doc's best is chosen; None where the view is in no set."""
        if self.kind == "window":
            return windows(self.n)
        return self.n if self.cell is not None else None

    @property
    def place(self) -> tuple[str, int, int, int]:
        """What the view shows of the doc's image, in whatever order the doc's options stand."""
        return self.kind, self.n, self.row, self.col


@dataclass(frozen=True)
class Region(View):
    """A view of a box given with the doc, cut from the doc's image.

    Attributes:
        number: its place in the doc's list, from 1.
        area: the box on the image as the base task shows it (pixels).
        relevant: whether the answer needs the box; otherwise it is adversarial.
    """

    kind: str = "region"
    number: int = 0
    area: Box = (0, 0, 0, 0)
    relevant: bool = True

    def box(self, size: Size) -> Box:
        """Return the box; the size of the image does not matter."""
        return self.area

    @property
    def set(self) -> Key:
        """The set of relevant or of adversarial boxes (``kinds.REGIONS``)."""
        return REGIONS[0] if self.relevant else REGIONS[1]


@dataclass(frozen=True)
class HiddenView(View):
    """A view of a doc's image with all relevant boxes, or all adversarial boxes, painted grey.

    Attributes:
        relevant: whether the relevant boxes are hidden; otherwise the adversarial ones.
        areas: the rectangles that are painted grey (pixels); no two share a pixel.
        share: what part of the image they hide, above 0 and below 1.
    """

    kind: str = "hidden"
    relevant: bool = True
    areas: tuple[Box, ...] = ()
    share: float = 0.0

    @property
    def set(self) -> Key:
        """The set of hidden boxes (``kinds.REGIONS``)."""
        return REGIONS[0] if self.relevant else REGIONS[1]


DESCRIBE = View("describe")
"""The full image with a request to describe it; its answer is no answer to the doc's question, and is not scored."""


def views_of(spec: WrapSpec) -> tuple[View, ...]:
    """Return all views of a doc in request order; the full image, if asked, comes first.

    A doc's own boxes are not among them, nor are the orders of its options: only the doc knows those.

    >>> from lmms_patch.ask.spec import parse
    >>> len(views_of(parse("gqa_rci")))
    14
    """
    kind = spec.kind
    if kind.swapped:
        return swapped(
            [View("full"), *(View("cell", n, row, col) for n in spec.grids for row in range(n) for col in range(n))]
        )
    views = [View("full")] if kind.full else []
    if kind.own_boxes or kind.turns:
        return tuple(views)
    for n in spec.grids or (0,):
        if kind.per_cell:
            rows, columns = shape(kind.view, n)
            views += [View(kind.view, n, row, col) for row in range(rows) for col in range(columns)]
            if kind.shifted:
                views += between(n)
        else:
            views.append(View(kind.view, n, adds=kind.adds))
    return (*views, DESCRIBE) if kind.captions and not spec.options.captions else tuple(views)


def pixels(spec: WrapSpec) -> int:
    """Return the version of the pixels of a task's views.

    Views that are resampled have a version of their own, so that answers to all other views stay known to response
    caches.
    """
    view = spec.kind.view
    resampled = view in ("lowres", "shuffle") or (view in ("cell", "swap", "region") and spec.options.min_cell > 0)
    return PIXELS_RESAMPLED if resampled else PIXELS


def asked_per_doc(spec: WrapSpec) -> int | None:
    """Return how many views of a doc are asked at most, wrong images aside; log-likelihood tasks ask each per choice.

    None where the doc's boxes or options decide.
    """
    kind = spec.kind
    return None if kind.regions or kind.turns else len(views_of(spec)) + len(REGIONS) * kind.hides


def swapped(views: Sequence[View]) -> tuple[View, ...]:
    """Return the same views, marked as cut from another doc's image."""
    return tuple(dataclasses.replace(view, swapped=True) for view in views)


MOST_TIMES = 8
"""How often a view is asked at most."""


def times_of(options: int) -> int:
    """Return how often to ask a view: guesses are then steady in a 240th of docs; four times without options.

    >>> [times_of(options) for options in (0, 2, 3, 4, 10)]
    [4, 8, 5, 4, 4]
    """
    return {2: MOST_TIMES, 3: 5}.get(options, 4)


def again(views: Sequence[View], times: int, golds: Sequence[int] = (0,), *, wrong: bool = True) -> tuple[View, ...]:
    """Return the views by which a doc is asked again, beside its views and the same on a wrong image.

    Each time its options stand in their next order; where all orders were asked, its crops are trimmed. The views on a
    wrong image keep that image; the full view is also asked on another wrong image each time, and on a uniform image.

    Args:
        views: the doc's own; the first is the full image.
        times: how often each view is asked, the first time among them.
        golds: the place of the gold in each order of the options, the doc's own order first.
        wrong: whether the doc was asked on a wrong image.
    """
    out: list[View] = []
    for time in range(times):
        trim, turn = divmod(time, len(golds))
        own = [
            dataclasses.replace(view, turn=turn, trim=trim, gold=golds[turn], repeat=time + 1)
            for view in (*views, View("blank"))
        ]
        if time:
            out += own[:-1]
            out += [*swapped(own[:-1]), dataclasses.replace(own[0], swapped=True, donor=time)] * wrong
        out += own[-1:] * wrong
    return tuple(out)


def trimmed(box: Box, trim: int) -> Box:
    """Return a box without a strip of a sixty-fourth of its side: of the left, the top, the right, the bottom, or of several.

    >>> trimmed((0, 0, 128, 128), 0), trimmed((0, 0, 128, 128), 1), trimmed((0, 0, 128, 128), 6)
    ((0, 0, 128, 128), (2, 0, 128, 128), (0, 2, 126, 128))
    """
    left, top, right, bottom = box
    # a side of one pixel cannot be trimmed
    x, y = (min(max(1, side // 64), side - 1) for side in (right - left, bottom - top))
    cut = _STRIPS[trim % len(_STRIPS)]
    return left + x * cut[0], top + y * cut[1], right - x * cut[2], bottom - y * cut[3]


_STRIPS = (
    *((0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)),
    *((1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1), (1, 0, 0, 1)),
)
"""Which sides ``trimmed`` cuts: left, top, right, bottom."""


def cell_box(size: Size, n: int, row: int, col: int) -> Box:
    """Return the box of cell (row, col) of the n×n grid: ``[W·c//n, H·r//n, W·(c+1)//n, H·(r+1)//n)``.

    The boxes cover the image exactly, without overlap; their sides differ by at most 1 pixel.

    >>> cell_box((10, 4), 3, 1, 2)
    (6, 1, 10, 2)
    """
    width, height = size
    return (width * col // n, height * row // n, width * (col + 1) // n, height * (row + 1) // n)


def window_box(size: Size, n: int, row: int, col: int) -> Box:
    """Return the box of a window as large as a cell whose corner is (row, col) on the grid of half cells.

    With row and column even it is the box of a cell: ``window_box(size, n, 2 * r, 2 * c) == cell_box(size, n, r, c)``.

    >>> window_box((12, 6), 3, 1, 2)
    (4, 1, 8, 3)
    """
    left, top, _, _ = cell_box(size, 2 * n, row, col)
    _, _, right, bottom = cell_box(size, 2 * n, row + 1, col + 1)
    return left, top, right, bottom


def between(n: int) -> list[View]:
    """Return the windows half a cell away from the cells of an n×n grid: (2n − 1)² less the n² cells.

    >>> len(between(3))
    16
    """
    places = [(row, col) for row in range(2 * n - 1) for col in range(2 * n - 1)]
    return [View("window", n, row, col) for row, col in places if row % 2 or col % 2]


def is_usable(size: Size, n: int, min_side: int = 1) -> bool:
    """Return whether every cell of an n×n grid has sides of at least ``min_side`` pixels."""
    return min(size) >= n * min_side


def cut(image: Image.Image, view: View, *, min_cell: int = 0, seed: str = "") -> Image.Image:
    """Cut a view from an image; always returns a new image.

    Args:
        image: any PIL image; it is not changed.
        view: the view; ``full`` gives a copy, ``blind`` has no image and is not allowed.
        min_cell: cells whose shorter side is below this (pixels) are upsampled (bicubic), keeping their shape.
        seed: decides the permutation of ``shuffle``.

    Raises:
        ValueError: the view has no image.
    """
    if view.kind == "full":
        return _trimmed(image, view.trim)
    if view.kind == "cell":
        cell = image.crop(cell_box(image.size, view.n, view.row, view.col))
        return _upsample(_trimmed(cell, view.trim), min_cell)
    if view.kind == "window":
        window = image.crop(window_box(image.size, view.n, view.row, view.col))
        return _upsample(_trimmed(window, view.trim), min_cell)
    if isinstance(view, Region):
        return _upsample(image.crop(view.area), min_cell)
    if isinstance(view, HiddenView):
        return occlude(image, *view.areas)
    if view.kind == "blank":
        left, top, right, bottom = trimmed((0, 0, *image.size), view.trim)
        return Image.new("RGB", (right - left, bottom - top), GREY)
    if view.kind == "occlude":
        return occlude(image, cell_box(image.size, view.n, view.row, view.col))
    if view.kind == "shuffle":
        return shuffle(image, view.n, seed)
    if view.kind == "lowres":
        return lowres(image, view.n)
    if method := _BROUGHT.get(view.kind):
        return method.cut(image, view)
    raise ValueError(f"a {view.kind!r} view is not an image")


def _trimmed(image: Image.Image, trim: int) -> Image.Image:
    """Return the image without a strip of its side, at unchanged size; a copy where nothing is trimmed."""
    if not trim:
        return image.copy()
    # of another size it would be cut into other patches, which is another question to some models
    return _resized(_paintable(image).crop(trimmed((0, 0, *image.size), trim)), image.size)


def _upsample(image: Image.Image, min_cell: int) -> Image.Image:
    short = min(image.size)
    if short >= min_cell:
        return image
    scale = min_cell / short
    return _resized(_paintable(image), (round(image.width * scale), round(image.height * scale)))


def _resized(image: Image.Image, size: Size) -> Image.Image:
    """Return the image at another size (bicubic)."""
    return _by_bands(image, lambda bands: bands.resize(size, Image.Resampling.BICUBIC))


def _by_bands(image: Image.Image, change: Callable[[Image.Image], Image.Image]) -> Image.Image:
    """Return the image with its colours and its alpha changed apart.

    Pillow weighs colours by alpha where it resamples, which makes black of all that is transparent. Most models are
    shown the colours without alpha (``convert("RGB")``): in the full image they see the colours that the file has
    there.
    """
    colours = {"RGBA": "RGB", "LA": "L"}.get(image.mode)
    if colours is None:
        return change(image)
    out = change(image.convert(colours))
    out.putalpha(change(image.getchannel("A")))
    return out


def _paintable(image: Image.Image) -> Image.Image:
    """Return a copy in a mode for painting and resampling: palette and bilevel images are converted."""
    if image.mode in ("P", "PA"):
        return image.convert("RGBA" if image.has_transparency_data else "RGB")
    if image.mode == "1":
        return image.convert("L")
    return image.copy()


def lowres(image: Image.Image, k: int) -> Image.Image:
    """Return the image at unchanged size, with only the detail left at 1/k of the size.

    Each block of k × k pixels becomes its mean (at the right and bottom edge, the mean of the part of a block that is
    left), which no detail finer than a block survives. The means are then enlarged smoothly (bicubic), since edges of
    blocks would be detail that the image does not have.

    Args:
        image: any PIL image; it is not changed.
        k: the divisor of both sides, at least 2.
    """
    out = _paintable(image)
    modes = (out.mode, *_AVERAGED_AS.get(out.mode, ()))
    for mode in modes[1:]:
        out = out.convert(mode)
    # the last block may be cut by the edge of the image: without a box the means would be spread too wide
    box = (0, 0, out.width / k, out.height / k)
    out = _by_bands(out, lambda bands: bands.reduce(k).resize(bands.size, Image.Resampling.BICUBIC, box=box))
    for mode in modes[-2::-1]:
        out = out.convert(mode)
    return out


_DEEP = dict.fromkeys(("I;16", "I;16L", "I;16B", "I;16N"), ("I", "F"))
_AVERAGED_AS = {"HSV": ("RGB",), "I": ("F",), **_DEEP}
"""The modes that are averaged in another mode, and how they get there: a hue is an angle, and sums of whole numbers would overflow in Pillow."""


def _grey(mode: str) -> float | tuple[int, ...]:
    """Return opaque mid-grey in a Pillow mode."""
    if mode.startswith("I;16"):
        return 1 << 15
    # Pillow shows these modes as if white were 255
    if mode in ("I", "F", "L"):
        return GREY[0]
    return {
        # the grey of RGB in each mode: 127 of black ink leaves 128, and its lightness in LAB is 54 %, 137 of 255
        "LA": (128, 255),
        "La": (128, 255),
        "RGBA": (*GREY, 255),
        "RGBa": (*GREY, 255),
        "CMYK": (0, 0, 0, 127),
        "HSV": (0, 0, 128),
        "LAB": (137, 128, 128),
    }.get(mode, GREY)


def occlude(image: Image.Image, *boxes: Box) -> Image.Image:
    """Return a copy of the image with some boxes painted grey."""
    out = _paintable(image)
    for left, top, right, bottom in boxes:
        out.paste(Image.new(out.mode, (right - left, bottom - top), _grey(out.mode)), (left, top))
    return out


def derangement(count: int, seed: str) -> list[int]:
    """Return a permutation of ``range(count)`` in which nothing stays in its place, decided by ``seed``.

    Uniform over all such permutations. Drawn by rejection: about one draw in e is kept.

    Raises:
        ValueError: fewer than 2 things, which no permutation moves.
    """
    if count < 2:
        raise ValueError(f"{count} thing cannot be deranged; at least 2 are needed")
    # a text as seed gives the same permutation in every process, which hash() of a text does not
    stream = random.Random(seed)
    order = list(range(count))
    while any(i == place for place, i in enumerate(order)):
        stream.shuffle(order)
    return order


def shuffle(image: Image.Image, n: int, seed: str) -> Image.Image:
    """Return the image with its n×n cells permuted, none left in its place.

    Sides of cells differ by at most 1 pixel. A cell that lands in a place of another size is resampled to it (bicubic),
    so the result covers the image exactly.
    """
    out = _paintable(image)
    # a copy, since a piece is pasted over a place from which a later piece is cut
    source = out.copy()
    boxes = [cell_box(image.size, n, row, col) for row in range(n) for col in range(n)]
    for target, index in zip(boxes, derangement(n * n, seed), strict=True):
        piece = source.crop(boxes[index])
        size = (target[2] - target[0], target[3] - target[1])
        if piece.size != size:
            piece = _resized(piece, size)
        out.paste(piece, target[:2])
    return out
