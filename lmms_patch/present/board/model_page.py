"""A page for each model of a board: what was found, its numbers on every benchmark, its runs and the commands that made them. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from lmms_patch.present.board.board import Board, Entry, Group, Identity, date_order, day
from lmms_patch.present.board.tables import CHANCE, DATE, DOCS, GATE
from lmms_patch.present.sheets import Column, Row, Sheet, used
from lmms_patch.runs import reading
from lmms_patch.runs.run import Run, command
from lmms_patch.text import clean, file_names

FOLDER = "models"
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
        "steady",
        "Steady index",
        signed=True,
        help="Of the docs answered with their image, the share that needs all of it: guesses are not said again.",
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


def told(entries: Sequence[tuple[Group, Entry]]) -> list[tuple[Group, Entry]]:
    """Return the entries for a model's findings: of each kind, benchmark and grid the entry in the foremost group.

    So a benchmark that was run under several settings is in one sentence, with the numbers that the board ranks first.
    """
    foremost: dict[tuple[str, str, int], tuple[Group, Entry]] = {}
    for group, entry in entries:
        place = group.kind, group.base, group.grid
        if place not in foremost or group.number < foremost[place][0].number:
            foremost[place] = group, entry
    return list(foremost.values())


def numbers(entries: Sequence[tuple[Group, Entry]]) -> Sheet:
    """Return a model's numbers, a row for each benchmark, kind and grid."""
    rows = [_row(group, entry) for group, entry in entries]
    return Sheet("numbers", "Numbers", used(_COLUMNS, rows), rows)


def _row(group: Group, entry: Entry) -> Row:
    """Return the row of an entry in the table of a model's numbers."""
    result, grid = entry.result, f", {group.words.size(entry.grid)}" if entry.grid else ""
    kind = result.kind
    about: Row = {
        "benchmark": clean(f"{group.base}{grid}"),
        "shown": f"{kind.shows} and {kind.words.parts}" if kind.index else kind.shows,
        "score": entry.score,
        "chance": result.measures.get("chance"),
        "docs": result.docs,
        "date": day(entry.date),
        "apart": clean("; ".join(group.differs)) or None,
    }
    if not kind.index:
        return about
    steady = entry.number("steady")
    return {
        **about,
        "index": entry.number("index"),
        "steady": None if steady.value is None else steady,
        "mpp": entry.number("mpp"),
        "gate": reading.gate_word(entry.gate),
    }


def runs_of(found: Sequence[Run], folder: Path) -> tuple[list[Ran], int]:
    """Return a model's newest ``RUNS`` runs, newest first, and the number of older runs.

    Args:
        found: the runs of the model.
        folder: the board's folder.
    """
    newest = sorted(found, key=lambda run: date_order(run.date), reverse=True)
    out = []
    for run in newest[:RUNS]:
        tasks = list(dict.fromkeys(result.task for result in run.results))
        limit = str(run.results[0].fingerprint.get("limit") or "all")
        named = clean(", ".join(tasks)) if len(tasks) <= NAMED else f"{len(tasks)} tasks"
        again = command(run.adapter, run.model_args, tasks, limit)
        out.append(Ran(day(run.date), named, again, _place(run.path, folder), _report(run.path, folder)))
    return out, max(0, len(newest) - RUNS)


def _place(path: Path, folder: Path) -> str:
    """Return a path relative to a folder, with forward slashes; absolute on another drive."""
    whole = os.path.realpath(path)
    try:
        return Path(os.path.relpath(whole, os.path.realpath(folder))).as_posix()
    except ValueError:
        return Path(whole).as_posix()


def _report(path: Path, folder: Path) -> str:
    """Return the address of a report near a results file, from the model's page; empty where none is found."""
    for near in list(path.resolve().parents)[:3]:
        report = near / "report"
        if all((report / name).is_file() for name in ("index.html", "report.json")):
            return quote(_place(report / "index.html", folder / FOLDER))
    return ""
