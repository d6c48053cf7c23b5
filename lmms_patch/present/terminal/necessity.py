"""The necessity map, in plain text: which share of the docs needs no image, one cell, the whole image, or more than the model can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lmms_patch.ask.kinds import Words, by_medium
from lmms_patch.present import sheets
from lmms_patch.present.sheets import NOT_DEFINED, Cells
from lmms_patch.present.terminal.folding import fold
from lmms_patch.runs.need import NEEDS
from lmms_patch.runs.numbers import Necessity
from lmms_patch.runs.run import Labelled
from lmms_patch.stats.resample import Estimate

TITLE = "What the docs need, in %, luck removed by asking again (docs/statistics.md)"
BOTH = "text and one cell are not told apart: all cells know docs that wrong images do not"


def table(shown: Sequence[Labelled], width: int | None = None) -> str:
    """Return a row per task with the share of each class at the finest grid, in percent.

    Empty where no task has a map.

    Args:
        shown: the tasks; each medium has a table of its own.
        width: characters in a line; None: any.
    """
    by_words = by_medium(shown, lambda s: s.result.kind.words)
    maps = [
        (
            words,
            {
                s.label: s.result.analysis.necessity[0]
                for s in some
                if s.result.analysis and s.result.analysis.necessity
            },
        )
        for words, some in by_words
    ]
    return "\n\n".join(_table(words, of_tasks, width) for words, of_tasks in maps if of_tasks)


def _table(words: Words, maps: Mapping[str, Necessity], width: int | None) -> str:
    """Return the table of the tasks of a medium."""
    rows: list[Cells] = [
        [name, *(percent(found.shares[need]) for need in NEEDS), percent(found.whole), f"{found.again}/{found.docs}"]
        for name, found in maps.items()
    ]
    said = [f"{name}: {why}" for name, found in maps.items() if (why := found.shares["text"].reason)]
    said += [f"{name}: {words.say(BOTH)}" for name, found in maps.items() if not found.told_apart]
    notes = ["\n" + fold(line, width, rest="") for line in said]
    heads = ["task", *map(words.say, NEEDS), "whole/solved", "asked again"]
    return "".join([f"{TITLE}\n", sheets.table(heads, rows).to_text(width), *notes])


def percent(share: Estimate, unit: str = "") -> str:
    """Return a share with its interval in whole percent, the unit behind the share.

    >>> percent(Estimate(0.244, None, 0.19, 0.31, 9, 9, 9)), percent(Estimate(1.0, None, None, None, 9, 9, 9))
    ('24 [19, 31]', '100')
    """
    if share.value is None:
        return NOT_DEFINED
    return f"{100 * share.value:.0f}{unit}{sheets.ends_in_percent(share)}"
