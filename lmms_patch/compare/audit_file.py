"""Does a results file agree with itself? This needs no sample log. Pure.

Flat numbers must be those of the ``patch`` object, ends of intervals on the right sides of the value, the index
1 − MPP/FIP, the gate's verdict what its terms give, the grids those that were asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lmms_patch.ask.kinds import Key, end
from lmms_patch.ask.spec import WrapSpec, parse
from lmms_patch.errors import PatchError, RecordError
from lmms_patch.runs import catalogue
from lmms_patch.runs import numbers as outcome
from lmms_patch.runs.numbers import Analysis, Grid
from lmms_patch.runs.results import IMPORTED, objects_file
from lmms_patch.runs.run import Result, Run
from lmms_patch.runs.trees import TOLERANCE, estimates, parts, same, written_by
from lmms_patch.stats.resample import Estimate

CHANGED = "the file was changed, or the log is of another run"
NO_COUNT = "whether all docs were asked (the file lacks the harness's count, n-samples)"
UNPROVEN = (
    "that all docs were asked is what the file says: nothing that the log's digest covers tells how many there are"
)
NO_DIGEST = "settings, model and date (an earlier version recorded no digest of them)"


def refuse(where: str, name: str, reported: Any, given: Any, by: str = "the sample log") -> RecordError:
    """Return an error which says that a run reported one value, and that another source, ``by``, gives another."""
    return RecordError(f"{where}: {by} gives {name} {_said(given)}, but the run reported {_said(reported)}; {CHANGED}")


def check_same(where: str, name: str, reported: Any, given: Any, by: str = "the sample log") -> None:
    """Check a reported value against the value from another source."""
    if not same(reported, given):
        raise refuse(where, name, reported, given, by)


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = "none" if value is None else str(outcome.to_json(value))
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_objects(run: Run) -> None:
    """Check the SHA-256 of the file with the tasks' objects against the digest in the results file."""
    if run.digests and run.digests[0] != run.digests[1]:
        told, found = run.digests
        raise RecordError(
            f"{objects_file(run.path)}: its SHA-256 is {found[:16]}..., but {run.path.name} says {told[:16]}...; the file was changed"
        )


def check_results_file(run: Run) -> list[str]:
    """Check the digest over settings, model and date of a results file.

    This comes last: of a number that was changed another check says more.

    Returns:
        What cannot be checked.
    """
    if run.digest is None:
        return [NO_DIGEST]
    told, found = run.digest
    if told != found:
        raise RecordError(
            f"{run.path}: its digest is {found}, but the run reported {told}; its settings, its model or its date were changed"
        )
    return []


def check_file(result: Result, where: str) -> list[str]:
    """Check what needs no log; return what cannot be checked, in words."""
    stored, analysis = result.stored, result.analysis
    check_version(result, written_by(stored), where)
    flat = {name: value for name, value in result.details.items() if value is None or isinstance(value, (int, float))}
    check_columns(result, flat, where, "the object of all its numbers")
    for path, one in estimates(stored):
        _check_estimate(path, one, where)
    lacking = _check_size(result, where)
    method = result.kind.method
    check_columns(result, method.flat(result.magic or result.tst), where, method.held)
    if not result.kind.suffix:
        return lacking
    _check_settings(result, where)
    if analysis is None:
        return lacking
    _check_grids(result, analysis, where)
    check_columns(result, flat_of(result, analysis), where, "the analysis in the same file")
    for key, grid in analysis.sets.items():
        _check_index(grid, f"{where}, {key if str(key).isalpha() else f'grid {key}'}")
    _check_gate(analysis, where)
    if analysis.n_docs > result.docs:
        raise refuse(where, "n_docs", analysis.n_docs, f"at most {result.docs}", "the number of its records")
    for key, grid in analysis.sets.items():
        if grid.excluded > analysis.n_docs:
            raise refuse(
                where, f"n_excluded{key}", grid.excluded, f"at most {analysis.n_docs}", "the number of its docs"
            )
    return lacking


def check_columns(result: Result, flat: Mapping[str, Any], where: str, by: str) -> None:
    """Check the columns of a result against the values in another part of the file.

    A file may lack some of the columns.
    """
    for name, value in flat.items():
        if name in result.metrics:
            check_same(where, name, result.metrics[name], value, by)


def check_version(result: Result, first: int, where: str) -> None:
    """Refuse a run that holds what its stated version could not write: older versions are checked less, so a false one hides changes.

    Args:
        result: the result.
        first: the first version that wrote what the run holds.
        where: what an error starts with.
    """
    # A run with a separate file of objects is of version 1 or later.
    first = max(first, 1 if result.run.digests else 0)
    if result.version < first:
        raise RecordError(
            f"{where}: made.numbers is {result.version}, but it holds what version {first} was the first to write; the file was changed"
        )


def _check_estimate(path: str, one: Estimate, where: str) -> None:
    value, low, high = one.value, one.low, one.high
    if (low is None) != (high is None):
        raise RecordError(
            f"{where}: {path} has an interval with one end; the file was changed or written by another program"
        )
    # Rounding may put a value a hair outside an interval without width.
    slack = TOLERANCE * max([1.0, *(abs(end) for end in (value, low, high) if end is not None)])
    if low is not None and high is not None and (value is None or not low - slack <= value <= high + slack):
        raise RecordError(
            f"{where}: {path} is {_said(value)}, outside its own interval from {low:.6g} to {high:.6g}; the file was changed"
        )
    if (one.se or 0) < 0:
        raise RecordError(
            f"{where}: {path} has a standard error or level that cannot be; the file was changed or written by another program"
        )


def _check_size(result: Result, where: str) -> list[str]:
    """Check the number of docs against the harness's count; return what the count leaves open, in words."""
    run, counts = result.run, result.run.counted(result.task)
    if counts is None:
        return [NO_COUNT]
    there = counts.original - run.offset
    asked = min(counts.effective, there)
    if asked < there and run.limit is None:
        raise refuse(where, "limit", run.limit, f"{asked} (of {there} docs)", "the harness's count of its samples")
    # A task on docs' own boxes skips docs without boxes, so fewer records than docs are right there.
    if result.docs > asked or (result.docs < asked and not result.kind.own_boxes):
        raise RecordError(
            f"{where}: {result.docs} docs have a record, but the harness asked {asked}; a rank's part is missing, or {CHANGED}"
        )
    return []


def unproven(result: Result) -> tuple[str, ...]:
    """Return a note where only the results file says whether the whole benchmark was asked; else nothing."""
    claims = result.run.limit is None and result.run.counted(result.task) is not None
    return (UNPROVEN,) if claims and result.all_docs is None and result.run.adapter != IMPORTED else ()


def _check_settings(result: Result, where: str) -> None:
    """Check the settings of the statistics against the task's options."""
    options, settings = result.options, parts(result.stored.settings)
    said = {name: getattr(options, name) for name in ("seed", "delta", "scale", "chance", "signed")}
    for name, value in {**said, "form": options.form(result.metric)}.items():
        # Files of the first versions may lack settings.
        if result.version or settings[name]:
            check_same(where, f"settings.{name}", settings[name], value, "its configuration")


def _check_grids(result: Result, analysis: Analysis, where: str) -> None:
    """Check grids and metric of an analysis against the task's name, kind and columns."""
    kind, named = result.kind, _spec_of(result.task)
    if named and (named.base, named.kind) == (result.base, kind) and list(named.grids) != list(result.grids):
        raise refuse(where, "grids", _listed(result.grids), _listed(named.grids), "its name")
    check_same(where, "metric", result.metric, analysis.metric, "the analysis in the same file")
    wanted = kind.sets(result.grids) if kind.prefix else analysis.sets
    if sorted(map(str, analysis.sets)) != sorted(map(str, wanted)):
        raise refuse(where, "grids", _listed(analysis.sets), _listed(wanted), "what was asked")


def _spec_of(name: str) -> WrapSpec | None:
    try:
        return parse(name)
    except PatchError:
        return None


def _listed(names: Iterable[Key]) -> str:
    return ", ".join(map(str, names)) or "none"


def flat_of(result: Result, analysis: Analysis) -> dict[str, Any]:
    """Return the columns of an analysis."""
    out: dict[str, Any] = catalogue.columns(analysis, result.kind)
    failed, metric = analysis.failed, analysis.metric
    # With failed calls or several orders the harness's number is not FIP.
    if not (failed and failed.first) and not result.kind.every_order:
        out[metric] = analysis.fip.value
    if result.kind.prefix:
        out |= {f"{metric}_mpp{end(key)}": grid.mpp.value for key, grid in analysis.sets.items()}
    # Files without a version may lack both.
    unknown = () if result.version else ((failed, ("n_failed",)), (analysis.gate.looks, ("n_null", "fip0")))
    return {
        name: value for name, value in out.items() if not any(name in names for there, names in unknown if not there)
    }


def _check_index(grid: Grid, where: str) -> None:
    """Check the index against 1 − MPP/FIP, and the gap against FIP − MPP."""
    fip, mpp = grid.fip, grid.mpp.value
    for name, own in (("index", grid.index.value), ("gap", grid.gap.value)):
        if own is None:
            continue
        # An index on FIP 0 would divide by zero: no run writes such an index.
        if fip is None or mpp is None or (name == "index" and not fip):
            raise refuse(where, name, own, None, "FIP and MPP")
        check_same(
            where, name, own, 1 - mpp / fip if name == "index" else fip - mpp, f"FIP {fip:.6g} and MPP {mpp:.6g}"
        )


def _check_gate(analysis: Analysis, where: str) -> None:
    """Check the gate's verdict against the gate's terms, and refuse an index behind a failed gate."""
    gate = analysis.gate
    fip, chance, threshold = gate.fip, gate.chance, gate.threshold
    check_same(where, "gate.fip", fip, analysis.fip.value, "the analysis in the same file")
    check_same(where, "gate.chance", chance, analysis.chance.value, "the analysis in the same file")
    if (
        fip is not None
        and chance is not None
        and threshold is not None
        and gate.delta is not None
        and gate.se is not None
    ):
        check_same(where, "gate.threshold", threshold, chance + max(gate.delta, 2 * gate.se), "the gate's own terms")
    unseen = any(look.value is False for look in gate.looks)
    above = 0.0 if fip is None or threshold is None else (fip - threshold) / max(1.0, abs(threshold))
    # Within the tolerance of the threshold rounding alone could turn the verdict, so both stand.
    if gate.valid and (unseen or above < -TOLERANCE):
        raise refuse(where, "gate", "valid", "not valid", "the gate's own terms")
    if gate.valid is False:
        if not unseen and fip is not None and threshold is not None and above >= TOLERANCE:
            raise refuse(where, "gate", "not valid", "valid", "the gate's own terms")
        for key, grid in analysis.sets.items():
            if grid.index.value is not None:
                raise refuse(where, f"an index ({key})", grid.index.value, None, "the gate, which fails,")


def check_range(result: Result, where: str) -> None:
    """Refuse scores far outside the metric's scale; used where no log tells the true scores.

    The scale is a guess, so this is generous: 0 to 1 (of a percentage to 100) where the gold answers score no more,
    else to twice what they score, since a scorer may give an answer more than it gives the gold.
    """
    analysis = result.analysis
    if analysis is None or analysis.form not in ("mean", "percent", "macro") or not result.better(analysis.metric):
        return
    top = analysis.ceiling
    if not top or top < 0:
        return
    unit, top = (100.0 if analysis.form == "percent" else 1.0), max(top, result.options.scale or top)
    bound = unit if top <= unit else 2 * top
    scores = {"FIP": analysis.fip.value}
    for key, grid in analysis.sets.items():
        scores |= {f"FIP over the docs of {key}": grid.fip, f"MPP {key}": grid.mpp.value}
    for name, value in scores.items():
        if value is not None and value > bound * (1 + TOLERANCE):
            raise RecordError(
                f"{where}: {name} is {value:.6g}, but the gold answers score {top:.6g}; the file was changed"
            )
