"""An index over several models, in plain text."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_patch.present import sheets
from lmms_patch.present.sheets import Cell, Column, Heads, number
from lmms_patch.present.terminal.folding import fold
from lmms_patch.present.terminal.rci import percent
from lmms_patch.rci.ensemble import Ensemble, OneCell, OverModels
from lmms_patch.runs import reading
from lmms_patch.runs.catalogue import indices
from lmms_patch.stats.resample import Estimate

_MOST_NAMED = 20
"""Docs that are named; a file has all."""


def block(ensemble: Ensemble, width: int | None = None) -> str:
    """Return what several models say of one task at one grid: which docs one cell answers, then a row per model, their mean and their spread.

    Args:
        ensemble: the numbers.
        width: characters in a line; None: any.
    """
    words = indices()[ensemble.index].words
    models = list(ensemble.raw.of)
    rows: list[Sequence[Cell]] = [
        [name, _cell(ensemble.raw.of[name]), _cell(ensemble.steady.of[name])] for name in models
    ]
    rows.append(["mean over models", _cell(ensemble.raw.mean), _cell(ensemble.steady.mean)])
    rows.append(["SD between models", _sd(ensemble.raw), _sd(ensemble.steady)])
    rows.append(["least to most", _range(ensemble.raw), _range(ensemble.steady)])
    if ensemble.other is not None:
        rows.append([f"{words.part} chosen by another model", ensemble.other, None])
    level = f"[{sheets.levels(cell for row in rows for cell in row) or '95 %'}]"
    names = _names(ensemble)
    heads: Heads = ["model", *(Column(f"{name} {level}", signed=True) for name in names)]
    said = "\n".join(fold(line, width, "- ") for line in _sentences(ensemble, len(models), words.part))
    title = f"{ensemble.task} at {words.grid(ensemble.n)}, over {len(models)} models"
    return "\n\n".join(filter(None, [title, said, sheets.table(heads, rows).to_text(width)]))


def _names(ensemble: Ensemble) -> list[str]:
    """Return what the two indices are called."""
    return [reading.name(str(indices()[ensemble.index].index), ensemble.n, steady=which) for which in (False, True)]


def _sentences(ensemble: Ensemble, models: int, part: str) -> list[str]:
    """Return what the docs say, and which models an index leaves out."""
    out = _docs(ensemble.one_cell, models, part) if ensemble.one_cell is not None else []
    for what, over in zip(_names(ensemble), (ensemble.raw, ensemble.steady), strict=True):
        left = [f"{name} ({one.reason})" for name, one in over.of.items() if one.value is None]
        if left and len(left) < len(over.of):
            out.append(f"the mean of {what} leaves out {', '.join(left)}")
    return out


def _docs(found: OneCell, models: int, part: str) -> list[str]:
    both = "both" if models == 2 else f"all {models}"
    if found.same.value is None:
        return [f"no doc was asked on every {part} by {both} models"]
    out = [f"{percent(found.same, ' %')} of {found.docs} docs are answered from the same {part} by {both} models"]
    if found.wrong is not None and found.wrong.value is not None:
        out[0] += (
            f"; from the same {part} of a wrong {'clip' if part == 'segment' else 'image'}: {percent(found.wrong, ' %')} of {found.wrong.n}"
        )
    out.append(f"{percent(found.each, ' %')} are answered by each model from some {part}")
    named = list(found.cells)
    if named:
        more = f", and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        out.append(
            f"the same {part} answers docs {', '.join(named[:_MOST_NAMED])}{more} (--json FILE has all, with the {part}s)"
        )
    return out


def _cell(one: Estimate) -> Cell:
    return one.reason if one.value is None else one


def _sd(over: OverModels) -> str:
    return number(over.sd)


def _range(over: OverModels) -> str:
    return (
        ""
        if over.least is None or over.most is None
        else f"{number(over.least, signed=True)} to {number(over.most, signed=True)}"
    )
