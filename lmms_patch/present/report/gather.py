"""From finished runs to the entries of a report.

Reads the docs of each: to count, and to pair them with a blind run. Pure.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from lmms_patch.compare import result as paired
from lmms_patch.errors import RecordError
from lmms_patch.present.report import magic, magic_examples
from lmms_patch.present.report.data import Entry, Part
from lmms_patch.present.report.examples import COLUMNS, picked
from lmms_patch.rci.recompute import TaskRun, by_category, recompute, scores
from lmms_patch.runs import reading
from lmms_patch.runs import run as runs
from lmms_patch.runs.catalogue import estimates
from lmms_patch.runs.numbers import Analysis
from lmms_patch.runs.run import Labelled, Result, Run
from lmms_patch.runs.schema import OTHER_METRIC
from lmms_patch.stats.resample import Estimate

Tell = Callable[[str], None]
EXAMPLES = 2
"""Docs that are picked by each rule."""
MANY, MOST = 100, 400
"""Of more results a page has no categories, and examples only where they are asked for; and the most results of a page, which are 10 MB."""


Picked = Mapping[str, Sequence[Any]]
"""The docs that are shown as examples, by rule."""


def gather(
    given: Sequence[Run], *, examples: int | None = None, tell: Tell = lambda line: None
) -> tuple[list[Entry], list[Picked], list[str]]:
    """Return the newest result of each model, task and filter.

    Args:
        given: the runs.
        examples: how many docs to pick by each rule; None: ``EXAMPLES``, and none of more than ``MANY`` results.
        tell: is handed a line when a table is being read.

    Returns:
        Entries, the examples of each, and warnings.

    Raises:
        RecordError: a table is cut; no run has a wrapped task that scored a doc, or there are
            more than ``MOST`` results.
    """
    latest, older = runs.newest(result for run in given for result in run.results)
    warnings = [f"{older} older results of the same model and task are not shown"] if older else []
    warnings += [f"{result.run.path}: {result.task} scored nothing" for result in latest if not result.docs]
    latest = [result for result in latest if result.docs]
    if not latest:
        where = ", ".join(str(run.path) for run in given[:3])
        raise RecordError(
            f"{where}: no wrapped task that scored a doc in these runs; ask for one, such as --tasks gqa_rci3"
        )
    if len(latest) > MOST:
        said = "give runs of fewer models or benchmarks, or rank them all: lmms-patch leaderboard"
        raise RecordError(f"{len(latest)} results are too many for one page, which has at most {MOST}; {said}")
    if many := len(latest) > MANY:
        left = "categories" if examples is not None else f"categories, and no examples without --examples {EXAMPLES}"
        warnings.append(f"no {left}, because there are more than {MANY} results")
    examples = (0 if many else EXAMPLES) if examples is None else examples
    labels = runs.labels(result.run for result in latest)
    ids = _ids([f"{labels[result.run.identity]}-{result.label}" for result in latest])
    entries, examples_of = [], []
    for name, result in zip(ids, latest, strict=True):
        one = Labelled(result, labels[result.run.identity], name)
        tell(f"reading {result.label} of {one.model}")
        entry, docs = _read(one, examples, not many)
        blind = _blind(result, latest, warnings)
        score, gain = (None, None) if blind is None else (blind.measures["score"], _gain(blind, result))
        entries.append(dataclasses.replace(entry, blind=score, gain=gain, tst=_tst(result, latest)))
        examples_of.append(docs)
    return entries, examples_of, warnings


def _same_docs(one: Result, other: Result) -> bool:
    """Return whether two results have the same docs of the same benchmark, as far as known."""
    ours, theirs = (result.fingerprint["docs"] for result in (one, other))
    return one.base == other.base and one.docs == other.docs and (None in (ours, theirs) or ours == theirs)


def _blind(result: Result, latest: Sequence[Result], warnings: list[str]) -> Result | None:
    """Return the same model's result on the same docs without the image.

    None without, and a warning where it was asked other docs.
    """
    if result.kind.name == "blind":
        return None
    of_model = [one for one in latest if one.run.identity == result.run.identity and one.kind.name == "blind"]
    asked = [
        one for one in of_model if (one.filter, one.base, one.metric) == (result.filter, result.base, result.metric)
    ]
    # A difference of scores over other docs would not be the gain by the image.
    same = [one for one in asked if _same_docs(one, result)]
    if asked and not same:
        warnings.append(
            f"{result.task}: the blind run was asked other docs ({asked[-1].docs} and {result.docs}) and is not set beside it"
        )
    return same[-1] if same else None


def _gain(blind: Result, full: Result) -> Estimate | None:
    """Return what the image adds, paired by doc.

    None where the docs do not match, or there is no full image.
    """
    if not full.kind.full:
        return None
    with contextlib.suppress(RecordError):
        gained = paired.gain(blind, full)
        return None if gained is None else gained.estimate
    return None


def _tst(result: Result, latest: Sequence[Result]) -> Estimate | None:
    """Return the best text-only cross-validation of the same docs: a finding of any diagnostic counts."""
    scores = [one.measures["score"] for one in latest if one.tst and _same_docs(one, result)]
    return (
        None
        if result.kind.folds
        else max(scores, key=lambda one: -1.0 if one.value is None else one.value, default=None)
    )


def _ids(texts: Sequence[str]) -> list[str]:
    """Return names for use in a page: letters, digits and hyphens; each once."""
    out: list[str] = []
    # Ids become parts of addresses and file names: letters, digits and hyphens only.
    for text in texts:
        plain = "e-" + (re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "entry")
        taken = sum(one == plain or re.fullmatch(re.escape(plain) + r"-\d+", one) is not None for one in out)
        out.append(f"{plain}-{taken + 1}" if taken else plain)
    return out


def _read(one: Labelled, examples: int, categories: bool) -> tuple[Entry, Picked]:
    """Read the docs of a result, and pick its examples."""
    result, kind = one.result, one.result.kind
    if not kind.suffix:
        return _read_magic(one, examples, categories)
    analysis = result.analysis
    whole = Part(result.docs, result.measures, analysis.gate.number if analysis and kind.has_index else None, analysis)
    parts, told = dict[str, Part](), ""
    others = [f"{OTHER_METRIC}{name}" for name in [*result.about.metrics][1:]]
    samples = result.frame([*COLUMNS, "failed", "error", "unfinished", *others])
    excluded, failures = _counts(result, samples)
    if kind.index:
        whole, parts, told = _numbers(whole, TaskRun(result, _blind_scores(result)), categories)
    return Entry(
        *(result, one.model, one.label, whole, parts or _tst_categories(result)),
        excluded=excluded,
        failures=failures,
        warnings=tuple(dict.fromkeys(filter(None, [*_warnings(result, whole.analysis), told]))),
    ), picked(one.label, result, samples, examples)


def _warnings(result: Result, analysis: Analysis | None) -> list[str]:
    """Return what to mind of a result's numbers."""
    told = list(analysis.warnings) if analysis else []
    if analysis and result.kind.index:
        told += [line for grid in analysis.grids.values() for line in grid.warnings]
        told += reading.minds(analysis, result.kind.words)
    return told


def _read_magic(one: Labelled, examples: int, categories: bool) -> tuple[Entry, Picked]:
    """Return a MAGIC task with the run's numbers, and its picked docs."""
    result = one.result
    told = magic_examples.warnings(result)
    whole, parts = (
        Part(result.docs, result.measures, None),
        magic.parts(result.magic) if result.magic and categories else {},
    )
    warned = tuple(dict.fromkeys(filter(None, told)))
    return Entry(result, one.model, one.label, whole, parts, warnings=warned), magic_examples.picked(result, examples)


def _counts(result: Result, samples: pl.DataFrame) -> tuple[dict[int, dict[str, int]], dict[str, int]]:
    """Return for each grid why docs are left out of it, and how many; and how many answers are not whole and scored."""
    docs = samples.filter(view=0)
    left_out = docs.select(pl.col("excluded").explode()).drop_nulls().unnest("excluded")
    excluded: dict[int, dict[str, int]] = {}
    for key, why, count in left_out.group_by("set", "why", maintain_order=True).len().iter_rows():
        if key.isdigit():  # else a set of boxes, or the orders of the options
            excluded.setdefault(int(key), {})[why] = count
    asked = docs.filter(pl.col("quick").struct.field("steps").fill_null(2) > 0).select("doc_id")
    own = samples if result.kind.name == "swap" else samples.filter(~pl.col("swapped").fill_null(False))
    own = own.join(asked, on="doc_id", how="semi")
    failed, unscored = pl.col("failed").is_not_null(), pl.col("score").is_null()
    # with --predict_only lmms-eval names the metric "bypass", and nothing is scored; a doc may have another metric alone
    counted = pl.lit(result.metric != "bypass")
    if other := [name for name in own.columns if name.startswith(OTHER_METRIC)]:
        counted &= (~unscored).any().over("doc_id") | pl.all_horizontal(pl.col(other).is_null()).all().over("doc_id")
    lost, cell = failed | pl.col("error").is_not_null(), (pl.col("view") > 0) & pl.col("cell").is_not_null()
    found = own.select(
        views=pl.len(),
        failed=(counted & failed).sum(),
        unscored=(counted & ~failed & unscored).sum(),
        unfinished=(counted & ~failed & ~unscored & pl.col("unfinished").fill_null(False)).sum(),
        cells=(lost & cell).sum(),
        full=(lost & ~cell).sum(),
        empty=((pl.col("view") == 0) & ~failed & (pl.col("answer").str.strip_chars() == "")).sum(),
    ).row(0, named=True)
    return excluded, {name: count for name, count in found.items() if count}


def _blind_scores(result: Result) -> Mapping[int, float]:
    """Return by doc id the scores of the base's blind task in the same run; empty without."""
    blind = (
        one
        for one in result.run.results
        if one.kind.name == "blind" and one.base == result.base and one.filter == result.filter
    )
    return next((scores(one, result.metric) for one in blind), {})


def _numbers(whole: Part, run: TaskRun, categories: bool) -> tuple[Part, dict[str, Part], str]:
    """Return the numbers of all docs and of each category, and why there are no categories.

    With a blind run beside it, the gate and the necessity map of all docs are held against that run too.
    """
    kind = run.result.kind
    # The stored analysis does not know the blind run, to which gate and necessity map are held here.
    if run.blind and (again := recompute(run).analysis) is not None:
        whole = Part(whole.docs, {**whole.measures, **estimates(again, kind)}, again.gate.number, again)
    by_name, why = by_category(run) if categories else ({}, "")
    return (
        whole,
        {name: Part(one.n_docs, estimates(one, kind), one.gate.number, one) for name, one in by_name.items()},
        why,
    )


def _tst_categories(result: Result) -> dict[str, Part]:
    """Return the categories into which a text-only cross-validation splits by itself."""
    out = {}
    for name, stored in result.tst.categories.items() if result.tst else ():
        docs = stored.docs
        score = Estimate(stored.accuracy, None, stored.low, stored.high, docs, docs, 0)
        majority, chance, s = (
            Estimate(value, None, None, None, docs, docs, 0) for value in (stored.majority, stored.chance, stored.s)
        )
        out[name] = Part(
            docs, {"score": score, "tst": score, "tst_majority": majority, "chance": chance, "tst_s": s}, None
        )
    return out
