"""How every figure looks, and how it is written: SVG for the page, SVG and PNG for files. matplotlib, by its objects alone (no pyplot).

Text and axes are drawn in one colour, ``INK``, that nothing else has; in the page's SVG it becomes ``currentColor``, so that a
figure reads on light and on dark ground.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.present.report.data import Figure
from lmms_patch.text import line

INK = "#010203"
"""All but black, so that it serves as black in the files."""
FAINT = 0.35
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
"""Okabe & Ito's colours that can be told apart by colour-blind readers on light and dark ground."""
MARKERS = ("o", "s", "D", "^", "v", "P")
DPI = 130
SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "lmms-patch",
    "svg.id": None,
    "text.parse_math": False,
    "text.usetex": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "lines.linewidth": 1.2,
    "path.simplify": True,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK),
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Hold our settings while figures are drawn; those of the process come back.

    Characters without a glyph are left to the reader's fonts.
    """
    import matplotlib

    known: Any = {name: value for name, value in SETTINGS.items() if name in matplotlib.rcParams}
    with matplotlib.rc_context(known), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        yield


def new(width: float, height: float, rows: int = 1, columns: int = 1, fixed: bool = False, **more: Any) -> tuple[Any, Any]:
    """Return a figure and its axes, shape (rows, columns); sizes in inches. ``fixed``: the caller places the axes."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(width, height), layout=None if fixed else "constrained")
    return drawing, drawing.subplots(rows, columns, squeeze=False, **more)


def name(given: str, most: int = 36) -> str:
    """Return a name as it is drawn: on one line, its middle left out where it is long.

    Both ends stay equally long: names of models differ near their end (``-7B-Instruct``, ``-72B-Instruct``).

    >>> name("Qwen/Qwen2.5-VL-72B-Instruct", 24)
    'Qwen/Qwen2.…72B-Instruct'
    """
    shown = line(given)
    if len(shown) <= most:
        return shown
    head = (most - 1) // 2
    return f"{shown[:head]}…{shown[len(shown) - (most - 1 - head) :]}"


def key(drawing: Any, marks: Sequence[Any]) -> None:
    """Draw a legend below all axes, in as many columns as there is room for."""
    if marks:
        longest = max(len(mark.get_label()) for mark in marks)
        room = int(drawing.get_figwidth() * 12.5 / (longest + 8))
        drawing.legend(handles=list(marks), loc="outside lower center", ncols=max(1, min(room, len(marks), 6)))


def mark(label: str, shape: str, colour: str, **more: Any) -> Any:
    """Return an entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **{"linestyle": "", "marker": shape, "color": colour, "markersize": 5, "label": label, **more})


def plain_bar(bar: Any) -> None:
    """Take the frame off a colour bar, and the seams between its colours."""
    bar.outline.set_visible(False)
    bar.solids.set_edgecolor("face")
    bar.solids.set_linewidth(0.4)


def in_cells(mesh_colour: Sequence[float]) -> str:
    """Return black or white, whichever is read better on a colour (WCAG relative luminance)."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in mesh_colour[:3])
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"


# --- writing --------------------------------------------------------------------------------------


def write(drawing: Any, folder: Path, name: str, title: str, caption: str, alt: str, section: str, entries: Sequence[str] = ()) -> Figure:
    """Return the figure's files, and what the page shows of it.

    Args:
        drawing: matplotlib's figure.
        folder: where ``<name>.svg`` and ``<name>.png`` go.
        name: of the files; this and the following are the fields of ``data.Figure``.
        title: for people.
        caption: what is drawn.
        alt: what it shows, in words.
        section: of the page.
        entries: ids of the results that it shows.
    """
    title, caption, alt = (line(words) for words in (title, caption, alt))  # XML has no place for control characters
    drawing.suptitle(line(title, int(11 * drawing.get_figwidth())), fontsize=10.5)
    if drawing.get_layout_engine() is not None:
        drawing.get_layout_engine().execute(drawing)
    drawing.set_layout_engine("none")  # the places stay: laying out again for each file would take most of the time
    out = io.StringIO()
    drawing.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}, transparent=True)
    plain = _plain(out.getvalue())
    picture = io.BytesIO()
    drawing.savefig(picture, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
    files.write(folder / f"{name}.svg", on_white(plain).encode())
    files.write(folder / f"{name}.png", picture.getvalue())
    return Figure(name, title, caption, alt, for_page(plain, name, alt), section, tuple(entries))


def _plain(svg: str) -> str:
    """Return a drawing without declaration, doctype, metadata and style sheet. Its style goes to the root: a sheet would hold for the whole page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>\s*", "", svg, count=1, flags=re.DOTALL)
    return svg.replace("<svg ", '<svg style="stroke-linejoin:round;stroke-linecap:butt" ', 1)


def on_white(svg: str) -> str:
    """Return a drawing for a file: on white ground."""
    head, rest = svg.split(">", 1)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}><rect width="100%" height="100%" fill="#ffffff"/>{rest}'


def for_page(svg: str, name: str, alt: str) -> str:
    """Return a drawing for a page: no size of its own, no ground, ink in the page's colour, own ids, and what it shows in words."""
    head, rest = svg.split(">", 1)
    head = re.sub(r'\s(width|height|version|xmlns:xlink)="[^"]*"', "", head)
    used = set(re.findall(r'(?:url\(|xlink:href=")#([^)"]*)', rest))

    def tag(match: re.Match[str]) -> str:
        """Return what is between < and >; names in texts are left as they are."""
        one = match[0].replace(INK, "currentColor").replace("xlink:href=", "href=")
        one = re.sub(r'\sid="([^"]*)"', lambda known: f' id="{name}-{known[1]}"' if known[1] in used else "", one)
        return re.sub(r'(url\(|href=")#([^)"]*)', lambda known: f"{known[1]}#{name}-{known[2]}", one)

    rest = re.sub(r"<[^>]*>", tag, rest)
    rest = re.sub(r">\s+<", "><", rest)
    return f'{head} role="img" aria-label="{escape(alt, quote=True)}">{rest}'.strip()
