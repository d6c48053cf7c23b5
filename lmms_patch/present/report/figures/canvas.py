"""How every figure looks, and how it is written: for one and for two columns of a paper, for slides, for the page. matplotlib, by its objects alone.

Text and axes are drawn in one colour, ``INK``, that nothing else has; in a page it becomes ``currentColor``, and colours
of the palette become the page's custom properties (``safe.drawing``), so that a figure reads on light and on dark ground.

All places are in inches. We lay out by ourselves, because matplotlib's layout takes most of the time of a drawing, and
cannot know how wide the reader's fonts are for characters that ours lacks.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, TypeVar

from lmms_patch import files
from lmms_patch.present import palette
from lmms_patch.present.report.data import Figure
from lmms_patch.present.report.figures.lettering import FONT, SIZE, SMALL, fit, height, width
from lmms_patch.text import latex, line

T = TypeVar("T")

INK = palette.INK
ONE, TWO = 3.3, 6.9
"""Width of one and of two columns of a paper."""
PAGE = 9.2
"""Height of a page of a paper: of a taller drawing for one column there is no file."""
EDGE = 0.06
"""Room that is left free around everything."""
DPI = 140
EASTERN = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Source Han Sans SC", "WenQuanYi Zen Hei"),
    *("PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Arial Unicode MS"),
)
"""Fonts for Chinese, Japanese and Korean, used where they are installed."""
_TIP, SPAN = "tip:", "span:"
SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "lmms-patch",
    "svg.id": None,
    "pdf.fonttype": 42,
    "text.parse_math": False,
    "text.usetex": False,
    "font.family": "sans-serif",
    "font.sans-serif": [FONT],
    "font.size": SIZE,
    "axes.titlesize": SIZE,
    "axes.labelsize": SIZE,
    "axes.labelpad": 3,
    "axes.titlepad": 4,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.2,
    "path.simplify": True,
    "axes.unicode_minus": True,
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK
    ),
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@dataclass(frozen=True)
class Sketch:
    """The parts of a figure before drawing: texts, draw function, widths.

    Attributes:
        name: of its files.
        title: for people.
        caption: what is drawn.
        alt: what it shows, in words.
        section: of the page.
        draw: takes a width in inches (``ONE``, ``TWO``), and returns matplotlib's figure.
        entries: ids of the results that it shows.
        papers: widths of its PDFs: not every drawing has room in one column, and a PDF takes longer than all the rest
        of a drawing.
        on_phones: whether the page also has the drawing for one column, for screens that the wide one does not fit.
    """

    name: str
    title: str
    caption: str
    alt: str
    section: str
    draw: Callable[[float], Any]
    entries: tuple[str, ...] = ()
    papers: tuple[float, ...] = (ONE, TWO)
    on_phones: bool = False


@dataclass(frozen=True)
class Mark:
    """How a mark looks, in a drawing or as an entry of its legend.

    Attributes:
        label: what the legend says; empty for a mark in the drawing.
        shape: matplotlib's marker; ``patch``: a patch of colour.
        colour: of the mark.
        hollow: whether only its outline is drawn.
        size: in points.
        alpha: opacity of a patch, from 0 to 1.
    """

    label: str
    shape: str
    colour: str
    hollow: bool = False
    size: float = 4.8
    alpha: float = 1.0

    @property
    def looks(self) -> dict[str, Any]:
        """The same in matplotlib's words."""
        fill = "none" if self.hollow else self.colour
        return {"color": self.colour, "marker": self.shape, "markersize": self.size, "markerfacecolor": fill}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Hold our settings while figures are drawn; those of the process come back.

    Characters that no font here has are left to the reader's fonts; pictures have a box in their place.
    """
    import matplotlib
    from matplotlib.font_manager import fontManager

    known: Any = {name: value for name, value in SETTINGS.items() if name in matplotlib.rcParams}
    installed = {font.name for font in fontManager.ttflist}
    known["font.sans-serif"] = [FONT, *(font for font in EASTERN if font in installed)]
    with matplotlib.rc_context(known), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        yield


# --- places ---------------------------------------------------------------------------------------


def new(across: float, tall: float) -> Any:
    """Return an empty figure of so many inches."""
    from matplotlib.figure import Figure as Drawing

    return Drawing(figsize=(across, tall))


def axes(drawing: Any, left: float, bottom: float, across: float, tall: float) -> Any:
    """Return new axes at a place in inches, from the lower left."""
    whole, high = drawing.get_size_inches()
    return drawing.add_axes((left / whole, bottom / high, across / whole, tall / high))


def write_at(drawing: Any, x: float, y: float, text: str, size: float = SMALL, **more: Any) -> Any:
    """Write a text at a place in inches from the lower left."""
    return drawing.text(x, y, text, transform=drawing.dpi_scale_trans, fontsize=size, **more)


# --- legends --------------------------------------------------------------------------------------

_ROW, _SIGN, _GAP = 0.165, 0.2, 0.16
"""Height of a row of a legend, room of its sign, and room between two entries."""


def key_height(marks: Sequence[Mark], across: float) -> float:
    """Return how tall a legend is; 0 without entries."""
    return _ROW * len(_rows(marks, across)) + (0.04 if marks else 0.0)


def _rows(marks: Sequence[Mark], across: float) -> list[list[Mark]]:
    """Return the rows of a legend; colour patches begin a new row, to keep a scale together."""
    out: list[list[Mark]] = []
    used, before = across, None
    for one in marks:
        room = _SIGN + width(one.label, SMALL) + _GAP
        new_kind = before is not None and (before == "patch") != (one.shape == "patch")
        before = one.shape
        if used + room - _GAP > across or not out or new_kind:
            out.append([])
            used = 0.0
        out[-1].append(one)
        used += room
    return out


def key(drawing: Any, marks: Sequence[Mark], left: float, bottom: float, across: float) -> None:
    """Draw a legend, wrapped into as many rows as its entries need."""
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    rows = _rows(marks, across)
    for i, row in enumerate(rows):
        x, y = left, bottom + _ROW * (len(rows) - i - 0.5)
        for one in row:
            if one.shape == "patch":
                fill = to_rgba(one.colour, one.alpha)
                sign: Any = Rectangle((x + 0.01, y - 0.045), 0.14, 0.09, linewidth=0.4, facecolor=fill, edgecolor=INK)
            else:
                sign = Line2D([x + 0.08], [y], linestyle="", **one.looks)
            sign.set_transform(drawing.dpi_scale_trans)
            drawing.add_artist(sign)
            write_at(drawing, x + _SIGN, y, one.label, va="center_baseline")
            x += _SIGN + width(one.label, SMALL) + _GAP


# --- what a reader points at ----------------------------------------------------------------------


def tip(artist: Any, text: str, sign: str = _TIP) -> Any:
    """Attach a text to a mark, shown by browsers to whoever points at the mark.

    The text travels through matplotlib as the mark's id; in hexadecimal, because matplotlib changes its quotes with
    what is in it.
    """
    artist.set_gid(sign + line(text).encode().hex())
    return artist


def told(identifier: str) -> str:
    """Return the text of a mark's id."""
    return bytes.fromhex(identifier.rpartition(":")[2]).decode()


# --- writing --------------------------------------------------------------------------------------

_NOTHING: dict[str, Any] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
"""What matplotlib would write of time and version: the same figure has the same bytes."""


def write(sketch: Sketch, folder: Path) -> Figure:
    """Draw a figure, write the figure's files, and return the data for the page.

    ``<name>.svg``, ``.pdf`` and ``.png`` are two columns wide, ``<name>-1col.pdf`` is one, where that fits a page;
    ``<name>.tex`` places them in a paper. The PNG has its title in the picture, for slides; papers have it in the
    caption.
    """
    # XML has no place for control characters.
    title, caption, alt = (line(words) for words in (sketch.title, sketch.caption, sketch.alt))
    drawing = sketch.draw(TWO)
    plain = _svg(drawing)
    made = {f"{sketch.name}.svg": on_white(plain).encode()}
    if TWO in sketch.papers:
        made[f"{sketch.name}.pdf"] = _bytes(drawing, "pdf")
    made[f"{sketch.name}.png"] = _png(drawing, title)
    drawing.clear()
    papers = [paper for paper in sketch.papers if paper == TWO]
    narrow = ""
    if ONE in sketch.papers or sketch.on_phones:
        drawing = sketch.draw(ONE)
        narrow = _svg(drawing) if sketch.on_phones else ""
        if ONE in sketch.papers and drawing.get_figheight() <= PAGE:
            made[f"{sketch.name}-1col.pdf"] = _bytes(drawing, "pdf")
            papers.insert(0, ONE)
        drawing.clear()
    if papers:
        made[f"{sketch.name}.tex"] = snippet(sketch.name, f"{title}. {caption}", papers).encode()
    for name, content in made.items():
        files.write(folder / name, content)
    return Figure(
        sketch.name,
        title,
        caption,
        alt,
        plain,
        sketch.section,
        sketch.entries,
        tuple(made),
        narrow,
    )


def _bytes(drawing: Any, form: str, **more: Any) -> bytes:
    """Return a drawing as a file of a form: ``svg``, ``pdf`` or ``png``."""
    out = io.BytesIO()
    drawing.savefig(out, format=form, metadata=_NOTHING[form], **more)
    return out.getvalue()


def _svg(drawing: Any) -> str:
    """Return a drawing as SVG, its tips as titles."""
    svg = _bytes(drawing, "svg").decode()
    svg = re.sub(rf'<g id="({_TIP}[^"]*)">', lambda found: f"<g>{_title(found[1])}", svg)
    return re.sub(rf'<g id="({SPAN}[^"]*)">\s*<path d="([^"]*)" ([^>]*)/>', _widened, svg)


def _png(drawing: Any, title: str) -> bytes:
    """Return the drawing as a PNG picture with the title above the drawing."""
    from matplotlib.transforms import Bbox

    across, tall = drawing.get_size_inches()
    shown = fit(title, across - 2 * EDGE, SIZE + 1)
    above = height(shown.count("\n") + 1, SIZE + 1) + EDGE
    write_at(drawing, across / 2, tall + above - EDGE / 2, shown, SIZE + 1, ha="center", va="top")
    return _bytes(drawing, "png", dpi=DPI, facecolor="white", bbox_inches=Bbox([[0, 0], [across, tall + above]]))


def snippet(name: str, caption: str, papers: Sequence[float]) -> str:
    r"""Return LaTeX for a figure with ``\caption`` and ``\label``; needs ``graphicx``.

    Of two widths, the second is a comment.
    """
    forms = {ONE: ("figure", "columnwidth", f"{name}-1col"), TWO: ("figure*", "textwidth", name)}
    label = re.sub(r"[^A-Za-z0-9-]", "-", name)
    out = [f"% \\usepackage{{graphicx}}{'; for one column, and for two' if len(papers) > 1 else ''}"]
    for k, (environment, room, file) in enumerate(forms[paper] for paper in papers):
        lines = (
            f"\\begin{{{environment}}}[t]",
            "  \\centering",
            f"  \\includegraphics[width=\\{room}]{{figures/{file}.pdf}}",
            f"  \\caption{{{latex(caption)}}}",
            f"  \\label{{fig:{label}}}",
            f"\\end{{{environment}}}",
        )
        out += [f"{'% ' * bool(k)}{one}" for one in lines]
    return "\n".join(out) + "\n"


def _title(identifier: str) -> str:
    """Return the title element of a mark, from its id."""
    return f"<title>{escape(told(identifier))}</title>"


def _widened(match: re.Match[str]) -> str:
    """Return an interval's SVG with a title, under an invisible wide line, easy to point at."""
    identifier, way, looks = match.groups()
    wide = f'<path d="{way}" style="fill: none; stroke: {INK}; stroke-opacity: 0; stroke-width: 7"/>'
    return f'<g>{_title(identifier)}<path d="{way}" {looks}/>{wide}'


def on_white(svg: str) -> str:
    """Return a drawing for a file: on white ground."""
    return re.sub("<svg[^>]*>", r'\g<0><rect width="100%" height="100%" fill="#ffffff"/>', svg, count=1)
