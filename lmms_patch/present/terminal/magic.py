"""The tables of the MAGIC tasks of finished runs, in plain text and for files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lmms_patch.compare.contrast import CONTRASTS
from lmms_patch.compare.variants import Contrasted, MagicRuns, numbers_of
from lmms_patch.magic.score import results
from lmms_patch.present.sheets import Cell, Column, Sheet, shown
from lmms_patch.runs.results import TaskResult
from lmms_patch.stats.resample import Estimate

_ORDER = (*results.HEALED, *results.JUDGED, *results.ANSWERS, "answer_found", *results.MAGISCORE, *results.REGIONS)
_SIGNED = Column("", "", signed=True)
_WHAT = {
    "distraction": "without adversarial boxes",
    "boxes": "with boxes",
    "hints": "with the relevant boxes alone",
}


def text(found: MagicRuns) -> str:
    """Everything, for people."""
    blocks = []
    models = list(dict.fromkeys(task.model for task in found.tasks))
    for model in models:
        tasks = [task.result for task in found.tasks if task.model == model]
        blocks += [*([model] if len(models) > 1 else []), table(tasks), "\n".join(minds(tasks))]
        blocks += [contrast_table(one) for one in found.contrasts if one.model == model]
    return "\n\n".join(block for block in [*blocks, "\n".join(found.notes)] if block)


def table(tasks: Sequence[TaskResult]) -> str:
    """One row per metric, one column per task; fractions with their intervals.

    Args:
        tasks: MAGIC tasks in which something was scored.
    """
    numbers = [numbers_of(task) for task in tasks]
    names = [name for name in _ORDER if any(name in own for own in numbers)]
    columns = (Column("metric", "metric"), *(Column(str(place), task.task) for place, task in enumerate(tasks)))
    rows: list[Mapping[str, Cell]] = [{"metric": "docs", **{str(place): task.docs for place, task in enumerate(tasks)}}]
    rows += [{"metric": name, **{str(place): own.get(name) for place, own in enumerate(numbers)}} for name in names]
    level = next((one.level for own in numbers for one in own.values()), 0.95)
    judges = sorted({str(judge) for task in tasks if (judge := task.details["magic"].get("judge"))})
    judged = f" Judge: {', '.join(judges)}." if judges else ""
    return f"{Sheet('', '', columns, tuple(rows)).to_text()}\n\nFractions with {100 * level:g} % intervals, images resampled.{judged}"


def minds(tasks: Sequence[TaskResult]) -> list[str]:
    """What to know of the numbers, as the runs said it; what all tasks say comes once."""
    said = {task.task: [str(line) for line in task.details["magic"].get("warnings", [])] for task in tasks}
    common = [line for line in next(iter(said.values()), []) if all(line in lines for lines in said.values())]
    own = [f"mind: {name}: {line}" for name, lines in said.items() for line in lines if line not in common]
    return [*(f"mind: {line}" for line in common), *own]


def contrast_table(one: Contrasted) -> str:
    """One contrast: its table, and what its first accuracy says."""
    found = one.found
    columns = (
        Column("metric", "metric"),
        Column("first", one.first),
        Column("second", one.second),
        Column("difference", "difference", signed=True),
        Column("p", "p"),
    )
    rows = tuple(
        {
            "metric": name,
            "first": "N/A" if d.first is None else d.first,
            "second": "N/A" if d.second is None else d.second,
            "difference": d.estimate,
            "p": _p(d.p),
        }
        for name, d in found.differences.items()
    )
    head = f"{one.second} - {one.first}, {_WHAT[found.name]}: {found.items} items in both"
    lines = [head, Sheet("", "", columns, rows).to_text(), *(f"mind: {line}" for line in one.minds), *sentence(one)]
    return "\n".join(lines)


def sentence(one: Contrasted) -> list[str]:
    """What the accuracy of a contrast says, in one sentence: by the judge where there is one, else by synonyms."""
    name = next((name for name in ("acc_short", "acc_synonym") if name in one.found.differences), None)
    if name is None:
        return []
    found = one.found.differences[name]
    value, low, high = found.estimate.value, found.estimate.low, found.estimate.high
    if value is None or low is None or high is None:
        return [f"{name}: nothing can be said: {found.estimate.reason or 'no interval'}."]
    if low <= 0 <= high:
        return [f"No difference is shown in {name} {_WHAT[one.found.name]}: {shown(found.estimate, _SIGNED)}, p {_p(found.p)}."]
    more = "more" if value > 0 else "less"
    return [f"The model is {more} often right {_WHAT[one.found.name]} ({name}): {shown(found.estimate, _SIGNED)}, p {_p(found.p)}."]


def _p(p: float | None) -> str:
    return "" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def sheet(found: MagicRuns) -> Sheet:
    """All numbers and contrasts, one row each."""
    columns = (
        Column("model", "model"),
        Column("task", "task", help="of a contrast: the second task - the first"),
        Column("variant", "variant", help="of a contrast: its name"),
        Column("metric", "metric", help="docs/magic.md"),
        Column("value", "value", help="fraction; of a contrast the difference"),
        Column("first", "first", help="of a contrast: the fraction of the first task"),
        Column("second", "second", help="of a contrast: the fraction of the second task"),
        Column("p", "p", digits=4, help="of a contrast: two-sided, paired clustered bootstrap"),
        Column("docs", "docs", help="that count in the number"),
        Column("judge", "judge"),
    )
    rows: list[Mapping[str, Cell]] = []
    for task in found.tasks:
        about: dict[str, Cell] = {"model": task.model, "task": task.task, "variant": task.variant, "judge": task.about.get("judge")}
        rows += [{**about, "metric": name, "value": task.numbers[name], "docs": task.numbers[name].n} for name in _ORDER if name in task.numbers]
    for one in found.contrasts:
        about = {"model": one.model, "task": f"{one.second} - {one.first}", "variant": one.found.name}
        for name, d in one.found.differences.items():
            rows.append({**about, "metric": name, "value": d.estimate, "first": d.first, "second": d.second, "p": d.p, "docs": d.estimate.n})
    return Sheet("magic", "MAGIC", columns, tuple(rows), "Intervals from a bootstrap over images; contrasts are paired by item.")


def to_json(found: MagicRuns) -> dict[str, object]:
    """What ``lmms-patch magic show --json`` writes (schema ``magic-show``)."""
    return {
        "schema": 1,
        "tasks": [
            {
                "model": task.model,
                "task": task.task,
                "variant": task.variant,
                "dataset": task.about.get("dataset"),
                "judge": task.about.get("judge"),
                "docs": task.result.docs,
                "results": str(task.run.path),
                "numbers": {name: _estimate(one) for name, one in task.numbers.items()},
                "counts": task.about.get("counts", {}),
                "warnings": list(task.about.get("warnings", [])),
            }
            for task in found.tasks
        ],
        "contrasts": [
            {
                "model": one.model,
                "contrast": one.found.name,
                "first": one.first,
                "second": one.second,
                "variants": list(CONTRASTS[one.found.name]),
                "items": one.found.items,
                "only_first": one.found.only_first,
                "only_second": one.found.only_second,
                "differences": {
                    name: {"first": d.first, "second": d.second, "difference": _estimate(d.estimate), "p": d.p, "differing": d.differing}
                    for name, d in one.found.differences.items()
                },
                "minds": list(one.minds),
            }
            for one in found.contrasts
        ],
        "notes": list(found.notes),
    }


def _estimate(one: Estimate) -> dict[str, object]:
    return results.to_json(one)
