"""Rows of the page's large tables as markup. A board has tens of thousands of them: templates would take most of its time.

Numbers are written here, texts are escaped here (``markupsafe.escape``); classes only, no inline styles: the page's policy allows none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from lmms_patch.present.board.board import Entry, Group
from lmms_patch.present.board.overall import Overall
from lmms_patch.present.board.ranks import Place
from lmms_patch.present.board.store import Result
from lmms_patch.present.board.tables import NEAR_ZERO, bands, index_name, mean_of, overall_head
from lmms_patch.present.report import wording
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import clean

_GATES = {1: ("right", "✓"), 0: ("wrong", "✕"), None: ("unknown", "?")}
_NONE = '<span class="none">—</span>'


@dataclass(frozen=True)
class Listed:
    """An entry in its table: its place, or why it has none."""

    entry: Entry
    place: Place | None
    reason: str


@dataclass(frozen=True)
class Col:
    """A column: its head, what it is, whether it is of numbers, and its cell of a row as markup."""

    title: str
    help: str
    num: bool
    cell: Callable[[Listed], str]


def estimate(found: Estimate | None, signed: bool = False) -> str:
    """A number with its interval; a dash, or N/A with the first words of the reason, where there is none."""
    if found is None:
        return _NONE
    if found.value is None:
        why = f' <span class="why">{escape(clean(wording.short_reason(found.reason)))}</span>' if found.reason else ""
        return f'<span class="na">N/A</span>{why}'
    ends, words = wording.ends(found, signed), wording.words(found)
    parts = [f'<span class="v">{wording.value(found, signed)}</span>']
    parts += [f'<span class="ci">{ends}</span>'] if ends else []
    return " ".join([*parts, *([f'<span class="why">{words}</span>'] if words else [])])


def cell(found: Estimate | None, signed: bool = False, coloured: bool = False) -> str:
    """A cell with a number; an index is coloured by its band. Sorted by six digits."""
    value = found.value if found is not None else None
    colour = f" {wording.colour(found)}".rstrip() if coloured else ""
    return f'<td class="num{colour}" data-value="{"" if value is None else f"{value:.6g}"}">{estimate(found, signed)}</td>'


def rank(place: Place | None) -> str:
    """A cell with a range of places; sorted by the first, then the last."""
    return (
        f'<td class="num" data-value="{place.first + place.last / 1e6:.6f}">{place}</td>' if place else f'<td class="num" data-value="">{_NONE}</td>'
    )


def name(text: str) -> str:
    """The head of a row."""
    return f'<th scope="row">{escape(clean(text))}</th>'


def text(words: str | None) -> str:
    """A cell with words."""
    return f"<td>{escape(clean(words)) if words else _NONE}</td>"


def gate(result: Result) -> str:
    """Return a cell with the state of the gate: a mark and a word, never colour alone."""
    style, mark = ("unknown", "!") if result.gate == 1 and result.marginal else _GATES[result.gate]
    word = result.gate_word
    return f'<td><span class="mark {style}"><span aria-hidden="true">{mark}</span> {word}</span></td>'


def count(n: int, less: int = 0) -> str:
    """A cell with a whole number; how many are left out in small."""
    return f'<td class="num" data-value="{n}">{n:,}' + (f' <span class="what">−{less:,}</span></td>' if less else "</td>")


def _index(one: Listed, coloured: bool) -> str:
    found = one.entry.number("index")
    if one.entry.result.gate == 0 or found.value is None:
        reason = escape(clean(wording.short_reason(one.reason or found.reason or "not defined")))
        return f'<td class="num" data-value=""><span class="na">N/A</span> <span class="why">{reason}</span></td>'
    return cell(found, True, coloured)


def _fip_used(one: Listed) -> str:
    value = one.entry.notes.fip
    shown = _NONE if value is None else f'<span class="v">{wording.number(value, False, 3, abs(value))}</span>'
    return f'<td class="num" data-value="{"" if value is None else f"{value:.6g}"}">{shown}</td>'


def index_columns(group: Group, short: bool) -> list[Col]:
    """Return the columns of a table of indices.

    Args:
        group: what it lists.
        short: only the most important ones, for boards of very many results.
    """
    index, left_out = index_name(group), any(entry.notes.excluded for entry in group.entries)  # then with FIP over the others
    luck_free = group.headline == "adj"
    columns = [
        Col("Model", "", False, lambda one: name(one.entry.model)),  # first: it stays in sight on narrow screens
        Col("Rank", "The range of places that noise leaves open", True, lambda one: rank(one.place)),
        Col(index, "1 − MPP / FIP, with its interval", True, lambda one: _index(one, not luck_free)),
        Col(
            "Luck removed",
            "The index with what answers earn without the right picture removed",
            True,
            lambda one: cell(one.entry.number("adj"), True, luck_free),
        ),
        Col("Band", "The bands that the interval of the coloured index reaches", False, lambda one: text(bands(one.entry, group)[1])),
        Col("FIP", "The native metric on full images, over all docs", True, lambda one: cell(one.entry.number("fip"))),
        *(
            [Col("FIP, used docs", "FIP over the docs that the index does not leave out: index = 1 − MPP / this", True, _fip_used)]
            if left_out
            else []
        ),
        Col("MPP", "The native metric on each doc’s best cell", True, lambda one: cell(one.entry.number("mpp"))),
        Col("Gap", "FIP − MPP", True, lambda one: cell(one.entry.number("gap"), True)),
        Col("Chance", "What the best uninformed answer scores", True, lambda one: cell(one.entry.number("chance"))),
        Col("Gate", "Whether the full image beats chance, and a wrong image", False, lambda one: gate(one.entry.result)),
        Col("Docs", "In small: those that the index leaves out", True, lambda one: count(one.entry.result.docs, one.entry.notes.excluded)),
        Col("Runs", "How many runs there are; the newest counts", True, lambda one: count(one.entry.runs)),
        Col("Date", "", False, lambda one: text(one.entry.date)),
    ]
    kept = ("Rank", "Model", index, *(["Luck removed"] if luck_free else []), "FIP", "FIP, used docs", "MPP", "Docs", "Date")
    return [column for column in columns if not short or column.title in kept]


def group_rows(group: Group, columns: Sequence[Col]) -> Markup:
    """The body of a group's table."""
    listed = [*(Listed(e, place, "") for place, e in group.ranked), *(Listed(e, None, reason) for e, reason in group.unranked)]
    return Markup("\n".join("<tr>" + "".join(column.cell(one) for column in columns) + "</tr>" for one in listed))


def overall_heads(table: Overall) -> list[tuple[str, str, str]]:
    """Title, what stands under it, and help of each column of models × benchmarks."""
    means = [
        ("Model", "", ""),
        ("Rank", "", ""),
        (f"Mean {mean_of(table.by, size=True)}", "", NEAR_ZERO),
        (f"Mean {mean_of(table.by)}", "", "With its sign"),
    ]
    bases = [(overall_head(table, base), "" if base in table.shared else "not in the mean", "") for base in table.benchmarks]
    return [*means, *bases, ("Lacks", "", "Benchmarks of the mean that it has no index for")]


def overall_rows(table: Overall) -> Markup:
    """The body of models × benchmarks."""
    out = []
    for line in table.lines:
        cells = "".join(cell(line.cells.get(base), True, True) for base in table.benchmarks)
        means = cell(line.mean_abs) + cell(line.mean, True)
        out.append(f"<tr>{name(line.model)}{rank(line.place)}{means}{cells}{text(', '.join(line.lacks))}</tr>")
    return Markup("\n".join(out))
