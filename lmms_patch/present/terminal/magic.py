"""The tables of the MAGIC tasks of finished runs, in plain text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_patch.compare.magic import CONTRASTS, Contrast, MagicRuns
from lmms_patch.magic.score import results
from lmms_patch.present import sheets
from lmms_patch.present.sheets import Cells, Column, or_na, signed
from lmms_patch.runs import reading
from lmms_patch.runs.numbers import to_json as as_json
from lmms_patch.runs.run import Result

_ORDER = (*results.HEALED, *results.JUDGED, *results.ANSWERS, "answer_found", *results.MAGISCORE, *results.REGIONS)
_WHAT = {
    "distraction": "without adversarial boxes",
    "boxes": "with boxes",
    "hints": "with the relevant boxes alone",
}


def text(runs: MagicRuns, width: int | None = None) -> str:
    """Return everything, for people; ``width`` characters in a line of a table (None: any)."""
    blocks = []
    models = list(dict.fromkeys(task.model for task in runs.tasks))
    for model in models:
        tasks = [task.result for task in runs.tasks if task.model == model]
        blocks += [*([model] if len(models) > 1 else []), table(tasks, width), "\n".join(minds(tasks))]
        blocks += [contrast_table(one, width) for one in runs.contrasts if one.model == model]
    return "\n\n".join(block for block in [*blocks, "\n".join(runs.notes)] if block)


def table(tasks: Sequence[Result], width: int | None = None) -> str:
    """Return a table with a row per metric and a column per task; fractions with intervals.

    Args:
        tasks: MAGIC tasks in which something was scored.
        width: characters in a line; None: any.
    """
    numbers = [task.measures for task in tasks]
    names = [name for name in _ORDER if any(name in own for own in numbers)]
    rows: list[Cells] = [["docs", *(task.docs for task in tasks)]]
    rows += [[name, *(own.get(name) for own in numbers)] for name in names]
    level = next((own[name].level for own in numbers for name in names if name in own), 0.95)
    judges = sorted({str(judge) for task in tasks if (judge := task.magic and task.magic.judge)})
    judged = f" Judge: {', '.join(judges)}." if judges else ""
    shown = sheets.table(["metric", *(task.task for task in tasks)], rows).to_text(width)
    return f"{shown}\n\nFractions with {100 * level:g} % intervals, images resampled.{judged}"


def minds(tasks: Sequence[Result]) -> list[str]:
    """Return the cautions in the runs; a caution of all tasks appears once."""
    said = {task.task: task.magic.warnings if task.magic else [] for task in tasks}
    common = [line for line in next(iter(said.values()), []) if all(line in lines for lines in said.values())]
    own = [f"mind: {name}: {line}" for name, lines in said.items() for line in lines if line not in common]
    return [*(f"mind: {line}" for line in common), *own]


def contrast_table(one: Contrast, width: int | None = None) -> str:
    """Return the table of a contrast, and what its first accuracy says."""
    rows = []
    for d in one.found.numbers:
        rows.append([d.name, or_na(d.first), or_na(d.second), d.difference, reading.p_text(d.p)])
    heads = ("metric", one.found.first, one.found.second, Column("difference", signed=True), "p")
    head = f"{one.found.second} - {one.found.first}, {_WHAT[one.name]}: {one.found.docs} items in both"
    return "\n".join(
        [head, sheets.table(heads, rows).to_text(width), *(f"mind: {line}" for line in one.minds), *sentence(one)]
    )


def sentence(one: Contrast) -> list[str]:
    """Say in a sentence what a contrast's accuracy shows: by the judge where available, else by synonyms."""
    numbers = one.found.by_name
    name = next((name for name in ("acc_short", "acc_synonym") if name in numbers), None)
    if name is None:
        return []
    difference, where = numbers[name].difference, _WHAT[one.name]
    value, low, high = difference.value, difference.low, difference.high
    if value is None or low is None or high is None:
        return [f"{name}: nothing can be said: {difference.reason or 'no interval'}."]
    said = f"{signed(difference)}, p {reading.p_text(numbers[name].p)}"
    if low <= 0 <= high:
        return [f"No difference is shown in {name} {where}: {said}."]
    return [f"The model is {'more' if value > 0 else 'less'} often right {where} ({name}): {said}."]


def to_json(runs: MagicRuns) -> dict[str, object]:
    """Return what ``lmms-patch magic show --json`` writes (schema ``magic-show``)."""
    return {
        "schema": 1,
        "tasks": [
            {
                "model": task.model,
                "task": task.label,
                "variant": about.variant,
                "dataset": about.dataset,
                "judge": about.judge,
                "docs": task.result.docs,
                "results": str(task.result.run.path),
                "numbers": {name: as_json(one) for name, one in task.result.measures.items() if name in about.numbers},
                **({"bounds": as_json(about.bounds)} if about.bounds else {}),
                "counts": about.counts,
                "warnings": about.warnings,
            }
            for task in runs.tasks
            if (about := task.result.magic)
        ],
        "contrasts": [
            {
                "model": one.model,
                "contrast": one.name,
                "first": one.found.first,
                "second": one.found.second,
                "variants": list(CONTRASTS[one.name]),
                "items": one.found.docs,
                "only_first": len(one.found.only_first),
                "only_second": len(one.found.only_second),
                "differences": {
                    d.name: {
                        "first": d.first,
                        "second": d.second,
                        "difference": as_json(d.difference),
                        "p": d.p,
                        "differing": d.differing,
                    }
                    for d in one.found.numbers
                },
                "minds": list(one.minds),
            }
            for one in runs.contrasts
        ],
        "notes": list(runs.notes),
    }
