"""The pictures of the pages, as SVG: ``python scripts/docs/pictures.py`` draws them into ``docs/pictures``.

Images are sheets of the embedded benchmark. Answers and numbers are those of the run that ``scripts/docs/runs.tar.xz``
keeps, so a picture shows what the model really said. A picture has its own ground for light and for dark, as a page's
ground is not known to it.
"""

from __future__ import annotations

import base64
import itertools
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import outputs
import pyarrow.parquet as parquet

from lmms_patch.app import tables
from lmms_patch.present import palette, sheets
from lmms_patch.runs import reading
from lmms_patch.runs import run as runs
from lmms_patch.runs.run import Result
from lmms_patch.stats.index import BANDS
from lmms_patch.stats.resample import Estimate

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
SIDE = 168
"""Side of a drawn sheet; sheets are 168 or 336 pixels."""
LOCAL, COUNT = ("mosaic_local", 2), ("mosaic_count", 0)
"""The docs that the pictures show: tasks and numbers of docs."""


def _rules(ground: int) -> str:
    """Return the style rules of all pictures, with the palette's colours for light (0) or dark (1) ground."""
    page = {name: pair[ground] for name, pair in palette.PAGE.items()}
    on_band = (palette.TEXT_LIGHT, palette.TEXT_DARK)[ground]
    dot = (palette.SERIES_LIGHT, palette.SERIES_DARK)[ground][0]
    bands = (palette.BAND_LIGHT, palette.BAND_DARK)[ground]
    rules = (
        f".ground {{ fill: {page['bg']} }} text {{ fill: {page['text']} }} .on {{ fill: {on_band} }} .quiet {{ fill: {page['muted']} }}",
        f".right {{ fill: {page['right']} }} .wrong {{ fill: {page['wrong']} }} .hit {{ stroke: {page['right']} }}",
        f".edge {{ stroke: {page['strong-line']} }} .line, .dash {{ stroke: {page['muted']} }} .dot {{ fill: {dot} }} .span {{ stroke: {dot} }}",
        " ".join(f".band{i} {{ fill: {colour} }}" for i, colour in enumerate(bands)),
    )
    return "\n".join(rules)


STYLE = f"""
text {{ font: 13px system-ui, sans-serif }} .big {{ font-size: 15px; font-weight: 600 }}
.edge, .hit, .line, .span {{ fill: none }} .hit {{ stroke-width: 3 }} .span {{ stroke-width: 2 }} .dash {{ stroke-dasharray: 3 3 }}
{_rules(0)}
@media (prefers-color-scheme: dark) {{
{_rules(1)}
}}
"""


@dataclass(frozen=True)
class Doc:
    """A doc of the run, and the sheets it was asked on.

    Attributes:
        question: its first line.
        gold: the right answer.
        sheet: the PNG of its own sheet.
        other: the PNG of the sheet that the wrong-image views show; empty where none was asked.
        answers: full image, then the cells of the 3×3 grid.
        wrong: the same on the other doc's sheet.
    """

    question: str
    gold: str
    sheet: bytes
    other: bytes
    answers: tuple[str, ...]
    wrong: tuple[str, ...]


def doc(run: Path, task: str, number: int) -> Doc:
    """Return a doc of the run."""
    rows = parquet.read_table(ROOT / "tasks" / "mosaic" / "data" / f"{task}.parquet").to_pylist()
    views = [one for one in tables.samples(run, f"{task}_rci").to_dicts() if one.get("repeat") is None]
    asked = [one for one in views if one["doc_id"] == number and (one["kind"] == "full" or one["n"] == 3)]
    own, other = ([one for one in asked if bool(one["swapped"]) == swapped] for swapped in (False, True))
    lent = rows[other[0]["wrong_from"]]["image"]["bytes"] if other else b""
    row = rows[number]
    return Doc(
        row["question"].splitlines()[0],
        row["answer"],
        row["image"]["bytes"],
        lent,
        tuple(one["answer"] for one in own),
        tuple(one["answer"] for one in other),
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> str:
    """Return a line of text."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


def picture(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """Return a whole SVG with its title, styles and ground."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
    ground = f'<rect class="ground" width="{width}" height="{height}" rx="8"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", ground, *parts, "</svg>", ""])


def sheet(name: str, png: bytes) -> str:
    """Define a sheet that ``cut`` shows parts of."""
    data = base64.b64encode(png).decode()
    return f'<defs><image id="{name}" width="{SIDE}" height="{SIDE}" href="data:image/png;base64,{data}"/></defs>'


def cut(name: str, x: float, y: float, size: float, box: tuple[float, float, float] = (0, 0, SIDE)) -> str:
    """Show a square of a sheet (left, top, side) in a square of the picture."""
    left, top, side = box
    inner = f'<svg x="{x:g}" y="{y:g}" width="{size:g}" height="{size:g}" viewBox="{left:g} {top:g} {side:g} {side:g}"><use href="#{name}"/></svg>'
    return inner + f'<rect class="edge" x="{x:g}" y="{y:g}" width="{size:g}" height="{size:g}"/>'


def said(x: float, y: float, answer: str, gold: str) -> str:
    """Write what the model answered, marked right or wrong."""
    right = answer == gold
    return text(x, y, f"{answer} {'✓' if right else '✗'}", "right" if right else "wrong")


def views(name: str, answers: Sequence[str], gold: str, x: float, y: float) -> list[str]:
    """Draw the full image and its nine cells, each with the answer below: 520 wide, 320 high."""
    full, size, step, down = 220, 78, 94, 104
    out = [
        text(x + full / 2, y - 10, "the full image", "quiet"),
        cut(name, x, y, full),
        said(x + full / 2, y + full + 20, answers[0], gold),
    ]
    left = x + full + 34
    out.append(text(left + 1.5 * step - 8, y - 10, "its nine cells", "quiet"))
    for at, answer in enumerate(answers[1:]):
        row, column = divmod(at, 3)
        a, b = left + column * step, y + row * down
        out.append(cut(name, a, b, size, (column * SIDE / 3, row * SIDE / 3, SIDE / 3)))
        if answer == gold:
            out.append(f'<rect class="hit" x="{a:g}" y="{b:g}" width="{size}" height="{size}"/>')
        out.append(said(a + size / 2, b + size + 16, answer, gold))
    return out


def cells(run: Path) -> str:
    """Draw a doc that one cell answers."""
    one = doc(run, *LOCAL)
    parts = [sheet("own", one.sheet), text(20, 30, f"{one.question} (right: {one.gold})", "big", "start")]
    return picture(
        560, 400, f"{one.question} One cell is enough.", [*parts, *views("own", one.answers, one.gold, 20, 70)]
    )


def whole(run: Path) -> str:
    """Draw a doc that only the whole image answers."""
    one = doc(run, *COUNT)
    parts = [sheet("own", one.sheet), text(20, 30, f"{one.question} (right: {one.gold})", "big", "start")]
    return picture(
        560, 400, f"{one.question} No cell is enough.", [*parts, *views("own", one.answers, one.gold, 20, 70)]
    )


def wrong(run: Path) -> str:
    """Draw a doc on another doc's image."""
    one = doc(run, *LOCAL)
    parts = [
        sheet("other", one.other),
        text(20, 30, f"{one.question} (right on its own image: {one.gold})", "big", "start"),
    ]
    return picture(
        560, 400, "The same question on another doc's image.", [*parts, *views("other", one.wrong, one.gold, 20, 70)]
    )


def line(run: Path) -> str:
    """Draw the index that the run's first lines tell, of each task, over the bands: the steady one where docs were asked again."""
    known = {
        task.removeprefix("mosaic_").removesuffix("_rci"): index
        for task, found in results(run).items()
        if (index := leading(found))
    }
    low, high, left, wide, top, step = -0.2, 1.2, 90, 570, 74, 26
    bottom = top + step * len(known) + 6

    def at(value: float) -> float:
        return left + wide * (value - low) / (high - low)

    edges = [low, *(edge for edge, _ in BANDS if edge > low), high]
    out = [
        text(20, 28, "steady RCI_3: of what is solved with the image, the share that needs all of it", "big", "start")
    ]
    for i, (start, end) in enumerate(itertools.pairwise(edges), len(BANDS) + 2 - len(edges)):
        out.append(
            f'<rect class="band{i}" x="{at(start):.1f}" y="{top}" width="{at(end) - at(start):.1f}" height="{bottom - top}"/>'
        )
    out += [text(at(value), top - 10, name, "quiet") for value, name in ((0, "balanced"), (0.7, "global"))]
    for value in (0.0, 0.1, 0.3, 1.0):
        out += [
            f'<path class="line" d="M{at(value):.1f} {bottom}v6"/>',
            text(at(value), bottom + 22, sheets.said(value, signed=True, digits=1), "quiet"),
        ]
    out.append(text(at(low), bottom + 46, "a cell is enough", "quiet", "start"))
    out.append(text(at(high), bottom + 46, "no cell is enough", "quiet", "end"))
    for i, (task, index) in enumerate(sorted(known.items(), key=lambda pair: pair[1].value or 0.0)):
        y = top + 16 + i * step
        value = index.value or 0.0
        ends = [value, value]
        if index.low is not None and index.high is not None:
            ends = [index.low, index.high]
            out.append(f'<path class="span" d="M{at(ends[0]):.1f} {y}H{at(ends[1]):.1f}"/>')
        out += [f'<circle class="dot" cx="{at(value):.1f}" cy="{y}" r="5"/>', text(left - 10, y + 4, task, "", "end")]
        x, anchor = (at(ends[0]) - 12, "end") if value > 0.5 else (at(ends[1]) + 12, "start")
        out.append(
            text(x, y + 4, reading.text(index, lambda number: sheets.said(number, signed=True, digits=2)), "on", anchor)
        )
    return picture(
        680, bottom + 60, "Steady RCI of five tasks of the embedded benchmark, over the bands of the paper", out
    )


def leading(found: Result) -> Estimate | None:
    """Return the index at 3×3 to go by, as the tool tells it; None where the gate refuses it, or the kind has none."""
    numbers = found.measures
    if "rci3" not in numbers:
        return None
    index = reading.headline(numbers["rci3"], numbers.get("rci3_steady"))
    return index if index is not None and index.value is not None else None


def gate(run: Path) -> str:
    """Draw for each task the score of the full image against what is needed, and against the wrong image."""
    shown = {task.removesuffix("_rci"): found for task, found in results(run).items() if "rci3" in found.measures}
    left, wide, top, step = 150, 420, 76, 32
    out = [text(20, 30, "Does the full image beat chance, and a wrong image?", "big", "start")]
    out += ['<circle class="dot" cx="26" cy="50" r="5"/>', text(38, 54, "full image", "quiet", "start")]
    out += [
        '<path class="line" stroke-width="3" d="M126 43v14"/>',
        text(134, 54, "chance and its margin", "quiet", "start"),
    ]
    out += [
        '<rect class="line" x="290" y="44" width="12" height="12"/>',
        text(310, 54, "a wrong image", "quiet", "start"),
    ]
    for i, (task, found) in enumerate(shown.items()):
        y, passed = top + 16 + i * step, found.analysis.gate
        out += [text(left - 12, y + 4, task, "", "end"), f'<path class="dash" d="M{left} {y}h{wide}"/>']
        out.append(f'<path class="line" stroke-width="3" d="M{left + wide * passed.threshold:.1f} {y - 9}v18"/>')
        out.append(
            f'<rect class="line" x="{left + wide * found.analysis.gate.looks[0].other - 8:.1f}" y="{y - 8}" width="16" height="16"/>'
        )
        out.append(f'<circle class="dot" cx="{left + wide * passed.fip:.1f}" cy="{y}" r="5"/>')
        verdict = "valid" if passed.valid else "near chance" if passed.fip < passed.threshold else "does not look"
        out.append(text(left + wide + 14, y + 4, verdict, "right" if passed.valid else "wrong", "start"))
    bottom = top + 16 + len(shown) * step
    out += [text(left + wide * value, bottom + 6, f"{value:g}", "quiet") for value in (0, 0.5, 1)]
    return picture(690, bottom + 24, "Full image, chance and wrong image by task", out)


def results(run: Path) -> dict[str, Result]:
    """Return the results of a run by task."""
    (found,) = runs.find([run])
    return {one.task: one for one in found.results}


def folds(run: Path) -> str:
    """Draw how the held-out answers of five folds come about."""
    out = [text(20, 30, "Each fold is answered by a model trained on the other four", "big", "start")]
    for i in range(5):
        y = 54 + i * 30
        for j in range(5):
            x = 20 + j * 84
            kind = "band4" if i == j else "band2"
            out.append(f'<rect class="{kind}" x="{x}" y="{y}" width="78" height="22" rx="3"/>')
            out.append(text(x + 39, y + 15, "answered" if i == j else "training", "on"))
        out.append(text(452, y + 15, f"→ answers of fold {i + 1}", "", "start"))
    out.append(
        text(
            20,
            222,
            "The benchmark's own scorer scores all of them: questions and options only, no image.",
            "quiet",
            "start",
        )
    )
    return picture(600, 240, "Cross-validation on the test set, without images", out)


DRAWN: dict[str, Callable[[Path], str]] = {
    "cells": cells,
    "whole": whole,
    "wrong": wrong,
    "line": line,
    "gate": gate,
    "folds": folds,
}


def main() -> None:
    """Draw all pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run = outputs.unpacked(Path(folder)) / "demo"
        for name, draw in DRAWN.items():
            (PICTURES / f"{name}.svg").write_text(draw(run), encoding="utf-8")


if __name__ == "__main__":
    main()
