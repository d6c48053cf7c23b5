"""A page for each model of a board: what was found, its numbers on every benchmark, its runs and the commands that made them. Pure."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from lmms_patch import __version__
from lmms_patch.ask.references import digest
from lmms_patch.present.board.board import Board, Entry, Group
from lmms_patch.present.board.memory import NO_NOTES, BoardResult, BoardRun, Identity, day
from lmms_patch.present.board.tables import CHANCE, DATE, DOCS, GATE
from lmms_patch.present.findings import Case
from lmms_patch.present.sheets import Column, Row, Sheet, used
from lmms_patch.runs.catalogue import without_interval
from lmms_patch.runs.numbers import Analysis, AskedPart, Grid
from lmms_patch.runs.run import command
from lmms_patch.stats.chance import Chance
from lmms_patch.stats.gate import Gate, Looks
from lmms_patch.stats.luck import Luck
from lmms_patch.text import clean, file_names

FOLDER = "models"
FORM = 3
"""Of a page: raised where a page of the same numbers comes out otherwise, so that a board writes its pages again."""
NAMED = 5
"""Tasks of a run that are named; of more the number, as the command names them all."""
RUNS = 50
"""Runs that a page lists; the newest of more."""
_COLUMNS = (
    Column("benchmark", "Benchmark"),
    Column("shown", "Shown", help="What the model saw."),
    Column(
        "index", "Index", signed=True, help="1 − MPP / FIP (RCI, PCRI), without unit, with its interval.", index=True
    ),
    Column(
        "adj",
        "Luck-corrected index",
        signed=True,
        help="The index less what answers earn without the right picture.",
        index=True,
    ),
    Column("score", "Score", help="The benchmark's own metric on what the model saw: FIP for full images."),
    Column("mpp", "MPP", help="The metric on each doc's best cell."),
    CHANCE,
    GATE,
    DOCS,
    DATE,
    Column("apart", "Other settings", help="In what the run differs from those that the board ranks first."),
)


@dataclass(frozen=True)
class Ran:
    """A run in the list on the model's page.

    Attributes:
        day: the day of the run.
        tasks: the names of its tasks, or how many there are.
        command: the lmms-eval command that asks the same again.
        file: the path of its results file, relative to the board's folder where that is possible.
        report: the address, from the page, of a report that lies beside the results file; empty where none does.
    """

    day: str
    tasks: str
    command: str
    file: str
    report: str


def paths(board: Board) -> dict[Identity, str]:
    """Return the path of each model's page in the board's folder."""
    return {identity: f"{FOLDER}/{name}" for identity, name in file_names(board.models, ".html").items()}


def of_models(board: Board) -> dict[Identity, list[tuple[Group, Entry]]]:
    """Return the entries of each model, with their groups, in the order of the board."""
    out: dict[Identity, list[tuple[Group, Entry]]] = {identity: [] for identity in board.models}
    for group in board.groups:
        for entry in group.entries:
            out[entry.identity].append((group, entry))
    return out


def signed(title: str, name: str, entries: Sequence[tuple[Group, Entry]], ran: Sequence[Ran], more: int) -> str:
    """Return a digest of a model page's contents; a changed digest means the page is written again.

    A run's hash stands for its numbers. What the board makes of them is digested itself, as other models' runs change
    it: in what a group differs from the first one, for example.

    Args:
        title: the title of the board.
        name: the model's name.
        entries: its entries, with their groups.
        ran: its runs.
        more: how many older runs are not listed.
    """
    made = [
        [
            entry.run,
            entry.result.task,
            entry.result.filter,
            entry.grid,
            group.number,
            group.differs,
            entry.result.nonsense,
        ]
        for group, entry in entries
    ]
    return digest([__version__, FORM, title, name, made, [dataclasses.astuple(one) for one in ran], more])


def told(entries: Sequence[tuple[Group, Entry]]) -> list[tuple[Group, Entry]]:
    """Return the entries for a model's findings: of each kind, benchmark and grid the entry in the foremost group.

    So a benchmark that was run under several settings is in one sentence, with the numbers that the board ranks first.
    Entries that contradict themselves are left out.
    """
    foremost: dict[tuple[str, str, int], tuple[Group, Entry]] = {}
    for group, entry in entries:
        place = group.kind, group.base, group.grid
        if not entry.result.nonsense and (place not in foremost or group.number < foremost[place][0].number):
            foremost[place] = group, entry
    return list(foremost.values())


def numbers(entries: Sequence[tuple[Group, Entry]]) -> Sheet:
    """Return a model's numbers, a row for each benchmark, kind and grid."""
    rows = [_row(group, entry) for group, entry in entries]
    return Sheet("numbers", "Numbers", used(_COLUMNS, rows), rows)


def _row(group: Group, entry: Entry) -> Row:
    """Return the row of an entry in the table of a model's numbers."""
    result, grid = entry.result, f", {group.words.size(entry.grid)}" if entry.grid else ""
    kind = result.asked
    about: Row = {
        "benchmark": clean(f"{group.base}{grid}"),
        "shown": f"{kind.shows} and {kind.words.parts}" if kind.index else kind.shows,
        "score": entry.score,
        "chance": result.numbers.get("chance"),
        "docs": result.docs,
        "date": day(entry.date),
        "apart": clean("; ".join(filter(None, [*group.differs, result.nonsense]))) or None,
    }
    if not kind.index:
        return about
    adj = entry.number("adj")
    return {
        **about,
        "index": entry.number("index"),
        "adj": None if adj.value is None else adj,
        "mpp": entry.number("mpp"),
        "gate": result.gate_word,
    }


def runs_of(stored: Sequence[BoardRun], folder: Path) -> tuple[list[Ran], int]:
    """Return a model's newest ``RUNS`` runs with results, newest first, and the number of older runs.

    Args:
        stored: the runs that the board knows of the model. Those without results have nothing to ask again, and are
        left out.
        folder: the board's folder.
    """
    newest = sorted((run for run in stored if run.results), key=lambda run: run.order, reverse=True)
    out = []
    for run in newest[:RUNS]:
        tasks = list(dict.fromkeys(result.task for result in run.results))
        limit = str(run.results[0].fingerprint.get("limit") or "all")
        named = clean(", ".join(tasks)) if len(tasks) <= NAMED else f"{len(tasks)} tasks"
        again = command(run.adapter, run.model_args, tasks, limit)
        out.append(Ran(day(run.date), named, again, run.files[0].path, _report(run, folder)))
    return out, max(0, len(newest) - RUNS)


def _report(run: BoardRun, folder: Path) -> str:
    """Return the address of a report near a results file, from the model's page; empty where none is found."""
    if os.path.isabs(run.files[0].path):
        return ""
    place = PurePosixPath(run.files[0].path).parent
    for near in (place, place / "..", place / ".." / ".."):
        found = near / "report"
        if all((folder / found / name).is_file() for name in ("index.html", "report.json")):
            return quote(os.path.normpath(PurePosixPath("..") / found / "index.html").replace(os.sep, "/"))
    return ""


# --- findings -------------------------------------------------------------------------------------


def case(model: str, result: BoardResult, key: str) -> Case:
    """Return a stored result as a case for findings."""
    named = clean(result.base), clean(result.task), result.asked, clean(result.metric)
    numbers = {
        **result.numbers,
        **{name: one for n in result.grids if result.index for name, one in result.noted(n).items()},
    }
    return Case(key, model, *named, numbers, _analysis(result) if result.index else None, higher=result.higher)


def _analysis(result: BoardResult) -> Analysis:
    """Return the stored parts of a result with an index as an analysis.

    Nothing is known of the rest.
    """
    docs = result.docs
    fip, chance = (result.numbers.get(name, without_interval(None, docs)) for name in ("fip", "chance"))
    looks = (Looks("wrong images", True, None, None, without_interval(None, docs), docs),) if result.looks else ()
    valid = None if result.gate is None else bool(result.gate)
    gate = Gate(
        valid,
        fip.value,
        chance.value,
        None,
        None,
        None,
        None,
        result.gate_reason,
        marginal=result.marginal,
        looks=looks,
    )
    asked = AskedPart(docs, docs, docs, docs, True) if result.sampled else None
    grids = {n: _grid(result, n) for n in result.grids}
    return Analysis(
        result.metric, docs, None, None, fip, Chance(chance.value, None, None), None, 0, gate, grids, asked=asked
    )


def _grid(result: BoardResult, n: int) -> Grid:
    """Return what a board keeps of a grid."""
    notes, nothing = result.notes.get(n, NO_NOTES), without_interval(None, result.docs)
    mpp, index, gap = (result.numbers.get(f"{name}{n}", nothing) for name in ("mpp", result.index, "gap"))
    adj = result.numbers.get(f"{result.index}{n}_adj")
    luck = None if adj is None else Luck(adj, None, None, None, None, (), 0, 0, notes.null or "assumed")
    words = notes.band, notes.span, None, (), notes.reason, result.mark(n)
    return Grid(n, notes.excluded, notes.fip, mpp, index, gap, luck, None, *words)
