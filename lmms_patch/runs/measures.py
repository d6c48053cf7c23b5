"""Every number of a wrapped task by its name, each with its interval: what reports, boards, comparisons and gates show. Pure.

| name | of | what |
|---|---|---|
| ``score`` | every task | the primary metric of the task's own first view; of a tst task ``tst``, a mean over fold seeds |
| ``fip`` | tasks with a full view | the same number: the native metric on full images |
| ``<metric>`` | every task | each native metric under its own name; only the primary one has an interval |
| ``chance``, ``ceiling`` | | the floor of the gate, and what the gold answers score |
| ``mpp<n>``, ``gap<n>`` | rci, pcri | the native metric on best cells; FIP − MPP |
| ``rci<n>`` / ``pcri<n>``, ``..._adj`` | rci, pcri | the index, and with luck removed |
| ``mpp<k>``, ``gap<k>``, ``trci<k>``, ``..._adj`` | trci | the same of the k segments of a clip |
| ``frames<k>`` | frames | the native metric on k frames |
| ``lowres<k>``, ``drop<k>`` | lowres | the native metric at 1/k of the size; on the full image less that, over the same docs |
| ``rotate_every``, ``rotate_mean``, ``rotate_once``, ``rotate_lost`` | rotate | in every order of the options, on average, ... (docs/rotate.md) |
| ``rotate_at<p>`` | rotate | the native metric where the gold stands at place p |
| ``hidden_relevant``, ``hidden_adversarial``, ``drop_relevant``, ``drop_adversarial``, ``drop_extra`` | hidden | docs/regions.md |
| ``mpp_relevant``, ``rci_relevant``, ``mean_relevant``, ..., ``regions_best``, ``regions_even``, ``regions_mean`` | regions | docs/regions.md |
| ``drop<n>`` | occlude | the native metric with the worst cell hidden |
| ``tst``, ``tst_majority``, ``tst_above``, ``tst_over_chance`` | tst | the text-only cross-validation (docs/tst.md) |
| ``tst_leakage``, ``tst_zero_shot``, ``tst_delta``, ``tst_s`` | tst | where the diagnostic has them |
| ``magiscore_...``, ``regions_...``, ``acc_...``, ``self_heal...`` | magic | docs/magic.md; all with intervals |

All on the metric's own scale (fractions where it is one), indices without unit. An index that must not be read as it stands is a
``reading.Noted``: it brings the words that every table sets beside it (``assumed null``, ``contradicted``, ...).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from lmms_patch.ask.spec import ANY_INDEX
from lmms_patch.errors import RecordError
from lmms_patch.runs import reading
from lmms_patch.runs.numbers import point_estimates, region_estimates, sets_in, turned_estimates
from lmms_patch.runs.unjudged import stored_bounds
from lmms_patch.stats.index import SIGNED
from lmms_patch.stats.intervals import of_file
from lmms_patch.stats.resample import Estimate

if TYPE_CHECKING:
    from lmms_patch.ask.spec import Kind
    from lmms_patch.runs.run import Result

_INDEX = re.compile(r"^(?:rci|pcri)(?=\d)")
_OURS = re.compile(
    rf"^(records|patch|chance|ceiling|gate|n_docs|n_failed|n_null|fip0|n_excluded\d+|({ANY_INDEX}|frames|lowres|gap|drop)\d+\w*|tst\w*|rotate_\w+|n_rotated|\w+_(mpp|drop)\d+)$"
)
_OF_HIDDEN = re.compile(r"^((hidden|drop|n_excluded)_(relevant|adversarial)|drop_extra)(_low|_high)?$|^n_both$")
_OF_BOXES = re.compile(r"^(\w+_mpp|rci|gap|mean|n_excluded)_(relevant|adversarial)|^regions_(best|even|mean)(_low|_high)?$|^n_both$")
NO_INTERVAL = "the harness's own number: no interval"


def measures(result: Result) -> dict[str, Estimate]:
    """Return the numbers of a task of a finished run, in the order of the table above.

    Returns:
        An estimate for each number that this kind of task has; its value is None, with the reason, where it is not defined.

    Raises:
        RecordError: a MAGIC task without its numbers.
    """
    kind, metric, numbers = result.kind, result.described["metric"], result.metrics
    analysis = result.details.get("analysis")
    out = of_analysis(analysis, kind) if analysis else {}
    if "score" not in out:
        out["score"] = _bare(numbers.get(metric), result.docs, "nothing was scored" if not result.docs else "")
    if kind.full:
        out["fip"] = out["score"]
    if analysis and kind.regions:
        out |= {name: of_file(one) for name, one in region_estimates(analysis).items()}
        for key, grid in ((analysis.get("regions") or {}).get("sets") or {}).items():
            out |= _indices(f"rci_{key}", grid, analysis, "boxes")
    for name, value in numbers.items():
        of_boxes = (kind.regions and _OF_BOXES.match(name)) or (kind.hides and _OF_HIDDEN.match(name))
        if of_boxes or (kind.name == "magic" and _is_end(name, numbers)):
            continue
        if name == metric and not kind.every_order:
            out[name] = out["score"]
        elif name.startswith(f"{metric}_drop"):
            out[name.removeprefix(f"{metric}_")] = _bare(value, result.docs)
        elif not _OURS.match(name):
            out[name] = _bare(value, result.docs)
    magic = result.details.get("magic")
    if kind.name == "magic" and not magic and any(value is not None for value in numbers.values()):  # bare numbers would pass for the task's own
        raise RecordError(f"{result.task} has no 'magic' object with its numbers; the results file was changed or written by another program")
    if magic:
        out |= _of_magic(magic)
        out["score"] = out[metric]
    found = result.details.get("tst_details")
    if found:  # means over fold seeds; the harness's own number is of the first seed
        out |= _of_tst(found, numbers)
        out |= {"score": out["tst"], metric: _bare(numbers.get(metric), result.docs), "chance": _bare(found["chance"], out["tst"].n)}
    return out


def _is_end(name: str, numbers: Mapping[str, Any]) -> bool:
    """Return whether a number is an end of the interval of another."""
    of, _, side = name.rpartition("_")
    return side in ("low", "high") and of in numbers


def full_marks(analysis: Mapping[str, Any], scale: float | None = None, *, signed: bool = False) -> float | None:
    """Return full marks on the metric's own scale, where the metric is a mean of scores from 0 up; None where that is not known.

    Args:
        analysis: docs/records.md, ``analysis``.
        scale: what the task's options say; else what the gold answers score counts.
        signed: whether the run's settings say that the scale goes below 0; the analysis may say so too.
    """
    if signed or any(grid.get("reason") == SIGNED for grid in sets_in(analysis).values()):
        return None
    top = scale if isinstance(scale, (int, float)) else analysis.get("ceiling")
    if analysis.get("form") not in ("mean", "percent") or not isinstance(top, (int, float)) or not math.isfinite(top) or top <= 0:
        return None
    return float(top)


def of_analysis(analysis: Mapping[str, Any], kind: Kind) -> dict[str, Estimate]:
    """Return the numbers of an analysis in plain JSON types (``numbers.to_json``).

    Args:
        analysis: docs/records.md, ``analysis``.
        kind: of the task.
    """
    index = kind.index
    top, chance = full_marks(analysis), analysis["chance"]
    scale = None if top is None or reading.is_sampled(analysis) else (0.0, top)  # the exact interval of a share is of docs that were all asked
    score = of_file(analysis["fip"], scale)
    out = {"score": score, **({"fip": score} if index else {})}
    floor = next((one for name, one in chance["floors"].items() if name == chance["floor"]), None)
    if floor is not None and floor["value"] == chance["value"]:
        out["chance"] = of_file(floor)
    else:
        out["chance"] = dataclasses.replace(_bare(chance["value"], score.n), reason=chance["reason"] or NO_INTERVAL)
    out["ceiling"] = _bare(analysis["ceiling"], score.n)
    for n, grid in analysis["grids"].items() if index else ():
        out[f"mpp{n}"] = of_file(grid["mpp"], scale)
        out |= _indices(f"{index}{n}", grid, analysis, kind.words.parts)
        if f"{index}{n}_adj" not in out:
            out[f"{index}{n}_adj"] = dataclasses.replace(of_file(grid["index"]), value=None, se=None, low=None, high=None, draws=0)
        out[f"gap{n}"] = of_file(grid["gap"])
    out |= {name: of_file(one, None if name == "rotate_lost" else scale) for name, one in turned_estimates(analysis.get("turned")).items()}
    out |= {name: of_file(one, None if name.startswith("drop") else scale) for name, one in point_estimates(analysis, kind).items()}
    return out


def _indices(name: str, grid: Mapping[str, Any], analysis: Mapping[str, Any], parts: str) -> dict[str, Estimate]:
    """Return the index of a set of views and the corrected index, each with the words that stand beside it (``reading``)."""
    marginal = bool(reading.gate_of(analysis).get("marginal"))
    sampled = reading.is_sampled(analysis)
    out = {name: reading.raw(of_file(grid["index"]), reading.mark_of(grid), marginal, sampled)}
    if grid.get("adj") is not None:
        out[f"{name}_adj"] = reading.corrected(of_file(grid["adj"]["estimate"]), reading.null_of(grid), marginal, parts, sampled)
    return out


def _of_magic(magic: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return the numbers of a MAGIC task; one by a judge that lacks verdicts brings its bounds."""
    said = {name: one.span for name, one in stored_bounds(magic).items() if one.matter}
    out = {name: of_file(one, (0.0, 1.0)) for name, one in magic["numbers"].items()}
    return {name: reading.noted(one, said[name]) if name in said else one for name, one in out.items()}


def _of_tst(found: Mapping[str, Any], numbers: Mapping[str, float | None]) -> dict[str, Estimate]:
    """Return the numbers of a text-only cross-validation by name, with their intervals."""
    head = found["by_grouping"][found["headline"]]
    value = head["accuracy"]["value"]
    tst, chance = of_file(head["accuracy"], (0.0, 1.0) if value is not None and 0 <= value <= 1 else None), found["chance"]
    out = {"tst": tst, "tst_majority": _bare(head["majority"], tst.n), "tst_above": of_file(head["above"])}
    out["tst_over_chance"] = _bare(None, tst.n, "chance is unknown") if chance is None else _moved(tst, -chance)
    for name in ("leakage", "zero_shot", "delta"):
        if found.get(name) is not None:
            out[f"tst_{name}"] = of_file(found[name])
    out["tst_s"] = _bare(numbers.get("tst_s"), tst.n)
    return out


def _moved(found: Estimate, by: float) -> Estimate:
    value, low, high = (None if end is None else end + by for end in (found.value, found.low, found.high))
    return dataclasses.replace(found, value=value, low=low, high=high)


def _bare(value: float | None, docs: int, reason: str = "") -> Estimate:
    return Estimate(value, None, None, None, docs, docs, 0, reason=reason or ("not defined" if value is None else NO_INTERVAL))


def matching(names: Mapping[str, Any], pattern: str) -> list[str]:
    """Return the names that a wildcard means; ``rci`` and ``pcri`` are one: the task's own name stands for either.

    >>> matching({"fip": 0, "pcri3": 0, "pcri3_adj": 0}, "rci3*")
    ['pcri3', 'pcri3_adj']
    """
    other = {name: _INDEX.sub("pcri" if name.startswith("rci") else "rci", name) for name in names}
    return [name for name in names if fnmatchcase(name, pattern) or fnmatchcase(other[name], pattern)]
