"""From finished runs to the entries of a page: what stands beside each result, and the docs that are shown of it.

Reads the docs of each: to count, to pair them with a blind run, and to pick examples.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import polars as pl

from lmms_patch.compare import result as paired
from lmms_patch.errors import RecordError
from lmms_patch.present.page import examples, magic_examples
from lmms_patch.present.page.rows import Entry, Part
from lmms_patch.rci.recompute import TaskRun, by_category
from lmms_patch.runs import reading
from lmms_patch.runs.catalogue import estimates
from lmms_patch.runs.details import TstDetails
from lmms_patch.runs.run import Result
from lmms_patch.stats.resample import Estimate

Tell = Callable[[str], None]
Picked = Mapping[str, Sequence[examples.Example]]
"""The docs that are shown as examples, by rule."""


def gather(entries: Sequence[Entry], count: int, tell: Tell) -> tuple[list[Entry], list[examples.Example], list[str]]:
    """Return entries with what their docs say, examples, and warnings.

    Args:
        entries: the results of a page.
        count: docs to pick by each rule.
        tell: is handed a line when a table is being read.

    Raises:
        RecordError: a table is cut.
    """
    out: list[Entry] = []
    picked: list[examples.Example] = []
    warnings: list[str] = []
    for entry in entries:
        tell(f"reading {entry.result.label} of {entry.model}")
        made, docs = _read(entry, count)
        blind = _blind(entry.result, entries, warnings)
        score, gain = (None, None) if blind is None else (blind.measures["score"], _gain(blind, entry.result))
        out.append(dataclasses.replace(made, blind=score, gain=gain, tst=_tst(entry.result, entries)))
        picked += [one for some in docs.values() for one in some]
    return out, picked, warnings


def _same_docs(one: Result, other: Result) -> bool:
    """Return whether two results have the same docs of the same benchmark, as far as known."""
    ours, theirs = (result.fingerprint["docs"] for result in (one, other))
    return one.base == other.base and one.docs == other.docs and (None in (ours, theirs) or ours == theirs)


def _blind(result: Result, entries: Sequence[Entry], warnings: list[str]) -> Result | None:
    """Return the same model's result on the same docs without the image.

    None without, and a warning where it was asked other docs.
    """
    if result.kind.name == "blind":
        return None
    asked = [
        one.result
        for one in entries
        if one.kind.name == "blind"
        and one.result.run.identity == result.run.identity
        and (one.result.filter, one.result.base, one.result.metric) == (result.filter, result.base, result.metric)
    ]
    # A difference of scores over other docs would not be the gain by the image.
    same = [one for one in asked if _same_docs(one, result)]
    if asked and not same:
        told = f"the blind run was asked other docs ({asked[-1].docs} and {result.docs}) and is not set beside it"
        warnings.append(f"{result.task}: {told}")
    return same[-1] if same else None


def _gain(blind: Result, full: Result) -> Estimate | None:
    """Return what the image adds, paired by doc; None where the docs do not match, or there is no full image."""
    with contextlib.suppress(RecordError):
        gained = paired.gain(blind, full) if full.kind.full else None
        return None if gained is None else gained.estimate
    return None


def _tst(result: Result, entries: Sequence[Entry]) -> Estimate | None:
    """Return the best text-only cross-validation of the same docs; None without any, and for such a result itself."""
    known = [one.result.measures["tst"] for one in entries if one.kind.folds and _same_docs(one.result, result)]
    known = [] if result.kind.folds else [one for one in known if one.value is not None]
    return max(known, key=lambda one: one.value or 0.0, default=None)


def _read(entry: Entry, count: int) -> tuple[Entry, Picked]:
    """Return an entry with its categories and notes, and its picked docs."""
    result, analysis = entry.result, entry.result.analysis
    if found := result.magic:
        parts = {
            name: Part(max(one.n for one in numbers.values()), {"score": numbers[found.metric], **numbers})
            for name, numbers in (found.by_type.items() if found.by_type else ())
            if found.metric in numbers
        }
        notes = tuple(dict.fromkeys(found.warnings))
        return dataclasses.replace(entry, categories=parts, notes=notes), magic_examples.picked(
            entry.label, result, count
        )
    samples = result.frame(examples.COLUMNS)
    parts = _of_tst(result.tst) if result.tst else {}
    told = [*_left_out(result, samples)]
    if analysis:
        told += analysis.warnings
        told += [analysis.failed.sentence, analysis.failed.native(result.metric)] if analysis.failed else []
    if analysis and entry.kind.index:
        told += [line for grid in analysis.grids.values() for line in grid.warnings]
        told += reading.minds(analysis, entry.words)
        by_name, why = by_category(TaskRun(result))
        parts = {name: Part(one.n_docs, estimates(one, entry.kind), one) for name, one in by_name.items()}
        told.append(why)
    notes = tuple(dict.fromkeys(filter(None, told)))
    return dataclasses.replace(entry, categories=parts, notes=notes), examples.picked(
        entry.label, result, samples, count
    )


def _left_out(result: Result, samples: pl.DataFrame) -> Iterator[str]:
    """Yield how many docs each grid leaves out, and why."""
    left_out = samples.filter(view=0).select(pl.col("excluded").explode()).drop_nulls().unnest("excluded")
    for key, why, count in left_out.group_by("set", "why", maintain_order=True).len().iter_rows():
        if key.isdigit():  # else a set of boxes, or the orders of the options
            size = result.kind.words.size(int(key))
            yield f"{count:,} {'doc is' if count == 1 else 'docs are'} not used at {size}: {why}"


def _of_tst(found: TstDetails) -> dict[str, Part]:
    """Return the categories into which a text-only cross-validation splits by itself."""
    out = {}
    for name, one in found.categories.items():
        score = Estimate(one.accuracy, None, one.low, one.high, one.docs, one.docs, 0)
        bare = (("tst_majority", one.majority), ("chance", one.chance), ("tst_s", one.s))
        others = {key: Estimate(value, None, None, None, one.docs, one.docs, 0) for key, value in bare}
        out[name] = Part(one.docs, {"score": score, "tst": score, **others})
    return out
