"""The necessity map, in plain text: which share of the docs needs no image, one cell, the whole image, or more than the model can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lmms_patch.ask.spec import Words, by_medium
from lmms_patch.present import sheets
from lmms_patch.present.sheets import NOT_DEFINED, Cell
from lmms_patch.present.terminal.folding import fold
from lmms_patch.runs.need import NEEDS

UNCHECKED = "text is not known, and is among the others, where no doc was asked without its image (option null, or the _blind task)"


def table(analyses: Iterable[tuple[str, Mapping[str, Any], Words]], width: int | None = None) -> str:
    """Return one row per task with the share of each class at its finest grid, in percent; empty where no task has a map.

    Args:
        analyses: of each task its name, its analysis in plain JSON types, and its words (``Kind.words``); each medium has a table of its own.
        width: characters in a line; None: any.
    """
    maps = ((name, found[0], words) for name, analysis, words in analyses if (found := analysis.get("necessity")))
    return "\n\n".join(_table(words, [(name, found) for name, found, _ in some], width) for words, some in by_medium(maps, lambda one: one[2]))


def _table(words: Words, maps: list[tuple[str, Mapping[str, Any]]], width: int | None) -> str:
    """Return the table of the tasks of one medium."""
    rows: list[list[Cell]] = [
        [name, *(percent(found["shares"][need]) for need in NEEDS), f"{found['checked']}/{found['docs']}"] for name, found in maps
    ]
    shown = [(name, found) for name, found in maps if found["shares"]["one cell"]["value"] is not None]
    with_luck = [name for name, found in shown if found["sources"] and not found.get("without_luck")]
    said = [words.say(UNCHECKED)] if any(not found["sources"] for _, found in shown) else []
    said += [f"counted as the docs answer, lucky guesses among them: {', '.join(with_luck)}"] if with_luck else []
    notes = ["\n" + fold(line, width, rest="") for line in said]
    heads = ["task", *map(words.say, NEEDS), "checked"]
    return "".join(["What the docs need, in % (docs/explore.md)\n", sheets.table(heads, rows).to_text(width), *notes])


def percent(share: Mapping[str, Any]) -> str:
    """Return a share with its interval in whole percent.

    >>> percent({"value": 0.244, "low": 0.19, "high": 0.31}), percent({"value": 1.0, "low": None, "high": None})
    ('24 [19, 31]', '100')
    """
    if share["value"] is None:
        return NOT_DEFINED
    ends = "" if share["low"] is None else f" [{100 * share['low']:.0f}, {100 * share['high']:.0f}]"
    return f"{100 * share['value']:.0f}{ends}"
