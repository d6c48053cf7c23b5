"""Two results of one MAGIC task, doc by doc: what differs between them, from both sample logs. Pure.

Docs are joined by their names. Every metric is a ratio of sums over docs: of a mean what a doc counts over 1, of a micro metric its own
counts (docs/magic.md). The same draws of images serve both runs, so what a doc is like leaves the difference. A doc without a verdict of
the judge in one of the runs is left out of that metric on both sides. What is not defined by what a model did (the precision of a doc without
relevant box on which it used none) is no part of that side's mean, as in the run itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lmms_patch.compare.checks import in_words
from lmms_patch.compare.engine import Compared
from lmms_patch.errors import RecordError
from lmms_patch.magic.score import logs, results
from lmms_patch.magic.score.results import Record
from lmms_patch.runs.results import TaskResult
from lmms_patch.runs.run import Run, differences, fingerprint, not_compared, task_label
from lmms_patch.stats import paired
from lmms_patch.stats.paired import Difference, McNemar
from lmms_patch.stats.resample import LEVEL, Array, cluster_numbers, totals

Result = tuple[Run, TaskResult]
Part = tuple[float, float]

SAME = ("benchmark", "kind", "filter", "views")
_OF_DOCS = ("docs", "prompts", "number of docs", "limit")
"""What differs anyway where the docs do."""
BY_JUDGE = (*results.JUDGED, "self_heal")
"""Metrics that are a judge's verdicts."""
NO_JUDGE = "none"
"""What ``runs.fingerprint`` says of a run without one."""
_FLAGS = (*results.HEALED, *results.REGIONS, *results.JUDGED, *results.ANSWERS, "answer_found")
"""Metrics in which a doc counts 0 or 1."""
_NOTHING: Part = (0.0, 0.0)
_TOLERANCE = 1e-9


# --- one result -----------------------------------------------------------------------------------


def part(record: Record, metric: str) -> Part | None:
    """What a doc adds above and below the line of a metric; None where it does not count.

    Args:
        record: the ``magic`` object of a line of the log.
        metric: one of ``results.metrics``.
    """
    if "failed" in record:
        return None
    if metric.endswith("_micro"):
        one = results.item_score(record)
        what = metric.removeprefix("magiscore_").removesuffix("_micro")
        above, below = {
            "precision": (one.tp, one.tp + one.fp),
            "recall": (one.tp, one.tp + one.fn),
            "f1": (2 * one.tp, 2 * one.tp + one.fp + one.fn),
        }[what]
        return float(above), float(below)
    value = results.score(record, metric)
    return None if value is None else (value, 1.0)


def read(run: Run, result: TaskResult) -> dict[str, Mapping[str, Any]]:
    """The lines of a result's sample log by the name of their doc; each has its record under ``magic``.

    Raises:
        RecordError: there is no log; it is cut, of another variant, of another number of docs, or gives other numbers than the run reported.
    """
    log = run.log(result)
    if log is None:
        raise RecordError(f"{run.path}: no sample log of {result.task} beside it; run with --log_samples")
    about = stored(run, result)
    lines: dict[str, Mapping[str, Any]] = {str(line["magic"]["id"]): line for line in logs.lines(log, result.place)}
    records = [line["magic"] for line in lines.values()]
    if len(lines) != result.docs:
        raise RecordError(f"{log}: {len(lines)} docs, but the run scored {result.docs}; the file is not whole, or of another run")
    if other := sorted({str(record["variant"]) for record in records} - {about["variant"]}):
        raise RecordError(f"{log}: records of the variant {other[0]}, but {result.task} is {about['variant']}; the file is of another run")
    for name, found in about["numbers"].items():
        _check_own(log, name, value_of(records, name), found["value"])
    return lines


def stored(run: Run, result: TaskResult) -> Mapping[str, Any]:
    """The ``magic`` object of a result (docs/records.md).

    Raises:
        RecordError: it is not there, or has a metric that this version does not know.
    """
    about: Mapping[str, Any] = result.details.get("magic") or {}
    known = results.metrics(str(about.get("variant")), True) if about.get("variant") in results.VARIANTS else ()
    if not about or not set(about["numbers"]) <= set(known):
        raise RecordError(f"{run.path}: {result.task} has no numbers as a MAGIC task writes them; the file was changed or written by another program")
    return about


def value_of(records: Sequence[Record], metric: str) -> float | None:
    """A metric of some docs; None where it is not defined."""
    above, below = np.array([found for record in records if (found := part(record, metric)) is not None], float).reshape(-1, 2).sum(axis=0)
    return float(above / below) if below else None


def _check_own(log: object, name: str, value: float | None, own: float | None) -> None:
    if (value is None) != (own is None) or (value is not None and own is not None and abs(value - own) > _TOLERANCE):
        said = ["none" if one is None else f"{one:.4g}" for one in (value, own)]
        raise RecordError(f"{log}: the sample log gives {name} {said[0]}, but the run reported {said[1]}; the log is of another run, or was changed")


# --- two results ----------------------------------------------------------------------------------


def compare(first: Result, second: Result, *, level: float = LEVEL, draws: int = 0, seed: int = 0) -> Compared:
    """The differences of all numbers that two results share, paired by doc.

    Args:
        first, second: a result and its run each.
        level: nominal coverage of the intervals, 0..1.
        draws: bootstrap draws; 0: 10,000.
        seed: of the bootstrap.

    Raises:
        RecordError: results of different benchmarks; a log that is missing, cut or of another run; other data under the same name.
    """
    prints = [fingerprint(*side) for side in (first, second)]
    apart = differences({key: prints[0][key] for key in SAME}, prints[1])
    if apart:
        raise RecordError(f"{first[1].task} and {second[1].task} cannot be compared: other {', other '.join(in_words(apart))}")
    sides = [read(*side) for side in (first, second)]
    ids = sorted(sides[0].keys() & sides[1].keys())
    only = [tuple(sorted(sides[k].keys() - sides[1 - k].keys())) for k in (0, 1)]
    if not ids:
        raise RecordError(f"{second[1].task}: the two runs have no doc in common; both must be asked the same docs")
    asked = len(ids)
    ids = [name for name in ids if not any("failed" in side[name]["magic"] for side in sides)]
    if not ids:
        raise RecordError(f"{second[1].task}: no doc is scored in both runs")
    shown_alike = prints[0].get("boxes shown") == prints[1].get("boxes shown")
    for name in ids:
        _check_doc(second[1].task, name, sides[0][name], sides[1][name], shown_alike)
    records = [[side[name]["magic"] for name in ids] for side in sides]
    variant = str(records[1][0]["variant"])
    names, warnings = _shared(first, second)
    draws = draws or paired.DRAWS
    found = {name: _difference(name, records[0], records[1], warnings, level=level, draws=draws, seed=seed) for name in names}
    lower = tuple(name for name in names if not results.higher_is_better(name, variant))
    others = bool(only[0] or only[1])
    settings = in_words(differences(prints[0], prints[1], (*SAME, *(_OF_DOCS if others or not shown_alike else ()))))
    groups = len(set(results.clusters(records[1])))
    return Compared(
        task=task_label(*second),
        metric=second[1].described["metric"],
        docs=len(ids),
        only_first=only[0],
        only_second=only[1],
        unscored=asked - len(ids),
        differences=found,
        mcnemar=None,
        settings=tuple(settings),
        warnings=(*warnings, *([unknown] if (unknown := not_compared(*prints)) else [])),
        base=second[1].described["base"],
        kind="magic",
        higher=second[1].described["metric"] not in lower,
        clusters=None if groups == len(ids) else groups,
        draws=draws,
        identical=not others and all(_alike(one, other) for one, other in zip(*records, strict=True)),
        tests=_tests(names, records, lower),
        lower=lower,
        unchanged=() if others else _unchanged(names, second[1].described["metric"], *records),
    )


def _check_doc(task: str, name: str, first: Mapping[str, Any], second: Mapping[str, Any], shown_alike: bool) -> None:
    """Whether a name stands for the same doc in both; where boxes are shown otherwise (another seed), as far as that leaves it to be seen."""
    one, other = first["magic"], second["magic"]
    seen = [(line.get("target"), line["magic"]["group"], line["magic"]["boxes"], len(line["magic"]["relevant"])) for line in (first, second)]
    asked = [record["asked"].get("doc") if isinstance(record.get("asked"), dict) else None for record in (one, other)]
    if seen[0] != seen[1] or (shown_alike and None not in asked and asked[0] != asked[1]):
        raise RecordError(f"{task}: doc {name} is another in the two runs (its image, boxes or answer): the data have changed")


def _shared(first: Result, second: Result) -> tuple[list[str], list[str]]:
    """The metrics to compare, and what to mind: verdicts of two judges, or of one judge and none, are not set against each other."""
    ours, theirs = (stored(*side) for side in (first, second))
    names = [name for name in ours["numbers"] if name in theirs["numbers"]]
    judges = [fingerprint(*side).get("judge") for side in (first, second)]
    if judges[0] == judges[1]:
        return names, []
    said = ["by nobody" if judge in (None, NO_JUDGE) else f"by {judge}" for judge in judges]
    judged = [name for name in (*ours["numbers"], *theirs["numbers"]) if name in BY_JUDGE]
    line = f"{', '.join(dict.fromkeys(judged))}: not compared, since the first run was judged {said[0]} and the second {said[1]}"
    return [name for name in names if name not in BY_JUDGE], [line]


def _difference(metric: str, first: Sequence[Record], second: Sequence[Record], warnings: list[str], **options: Any) -> Difference:
    """One metric, over the docs that count in it in both."""
    pairs = [(part(one, metric), part(other, metric)) for one, other in zip(first, second, strict=True)]
    judged = metric in BY_JUDGE
    kept = [place for place, pair in enumerate(pairs) if (None not in pair if judged else pair != (None, None))]
    if judged and len(kept) < len(pairs):
        warnings.append(f"{metric}: {len(pairs) - len(kept)} of {len(pairs)} docs are left out: without a verdict in one of the runs")
    rows = np.array([[*(pairs[place][0] or _NOTHING), *(pairs[place][1] or _NOTHING)] for place in kept], float).reshape(-1, 4)
    labels = cluster_numbers(results.clusters([second[place] for place in kept])) if kept else np.zeros(0, int)
    per_cluster = totals(rows, labels) if kept else rows
    differing = int(np.any(~np.isclose(per_cluster[:, :2], per_cluster[:, 2:], rtol=0, atol=1e-12), axis=1).sum())
    options |= {"extremes": {metric: paired.unseen_ratios(rows)}, "differing": {metric: differing}}
    if metric in _FLAGS and kept and all(None not in pairs[place] for place in kept) and (test := paired.mcnemar(rows[:, 0], rows[:, 2])):
        options["tests"] = {metric: test}
    return paired.differences(rows, {metric: _sides}, labels, **options)[metric]


def _sides(sums: Array) -> tuple[Any, Any]:
    return sums[..., 0] / sums[..., 1], sums[..., 2] / sums[..., 3]


def _tests(names: Sequence[str], records: Sequence[Sequence[Record]], lower: Sequence[str]) -> dict[str, McNemar]:
    """McNemar's test of each metric of flags; where lower is better, 0 is right."""
    out = {}
    for name in names:
        pairs = [(results.score(one, name), results.score(other, name)) for one, other in zip(*records, strict=True)] if name in _FLAGS else []
        sides = np.array([pair for pair in pairs if None not in pair], float).reshape(-1, 2).T
        if (found := paired.mcnemar(*(1 - sides if name in lower else sides))) is not None:
            out[name] = found
    return out


def _unchanged(names: Sequence[str], primary: str, first: Sequence[Record], second: Sequence[Record]) -> tuple[str, ...]:
    """Return the metrics in which each doc counts the same in both; ``score`` is the primary one."""
    alike = [name for name in names if all(part(one, name) == part(other, name) for one, other in zip(first, second, strict=True))]
    return (*alike, *(["score"] if primary in alike else []))


def _alike(one: Record, other: Record) -> bool:
    """Whether two records count the same in everything."""
    keys = ("boxes", "relevant", "used", "invented", "answer_found", *results.ANSWERS.values(), *results.JUDGED.values(), *results.HEALED.values())
    return all(one.get(key) == other.get(key) for key in keys)
