"""Does the model need to look? A run with images against its blind run, on all docs and on those that a pruning kept.

The vision-blind gap is the mean over docs of (score with the image − score without). Pruning removes docs that can be
answered without looking, so the kept docs should have a wider gap: that difference has an interval of its own, over the
same draws of docs.

Source: TsT paper, 4.2, Table 4; DESIGN 7.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmms_patch.compare import alike
from lmms_patch.compare.pair import Pair, join
from lmms_patch.errors import RecordError
from lmms_patch.runs import reading
from lmms_patch.runs.run import RECORDED, Result, find, newest, not_compared
from lmms_patch.stats import forms, paired
from lmms_patch.stats.intervals import ends_of
from lmms_patch.stats.paired import Number
from lmms_patch.stats.resample import Estimate
from lmms_patch.tst import pruned

_ASKED = [name for name in (*RECORDED, "limit", "generation") if name not in ("image sizes", "images")]
"""Settings that both runs should share; images differ by design."""


@dataclass(frozen=True)
class Row:
    """The scores and the gap over some docs.

    Attributes:
        name: ``original`` (all docs that both runs scored) or ``pruned``.
        docs: their number.
        full, blind: mean scores, on the metric's own scale.
        gap: full − blind, paired by doc (blind − full where lower is better: above 0, looking helps).
    """

    name: str
    docs: int
    full: float
    blind: float
    gap: Estimate


@dataclass(frozen=True)
class Gap:
    """The vision-blind gap, and whether it is wider on what a pruning kept.

    Attributes:
        rows: of all docs, and of the kept ones.
        verdict: in one sentence.
        widened: gap of the kept docs − gap of all docs, paired by doc.
        warnings: one line each.
    """

    rows: tuple[Row, ...]
    verdict: str
    widened: Estimate | None
    warnings: tuple[str, ...]


def of_runs(full: Path, blind: Path, pruning: Path | None = None, task: str | None = None) -> Gap:
    """Return the gap between two runs.

    Args:
        full: of a wrapped task that asks the full image.
        blind: of its blind task; may be the same run.
        pruning: the folder of a pruning, or its ``pruned.json``.
        task: name of a task on either side, or of the base, where there are several pairs.

    Raises:
        RecordError: no pair of tasks of one benchmark, or several; no doc that both, or the pruning, have.
    """
    seeing, unseeing = _sides(full, blind, task)
    alike.check(unseeing, seeing, ("benchmark", "metric", "filter"))
    pair = join(unseeing, seeing)
    warnings = _minds(pair)
    inside = {"original": np.ones(len(pair.ids), bool)}
    if pruning is not None:
        kept = np.isin(pair.ids, list(_kept(pruning, seeing.base)))
        if not kept.any():
            raise RecordError(f"{pruning}: none of the kept docs is scored in both runs")
        inside |= {"pruned": kept}
    sign = 1 if pair.higher else -1
    without, with_image = (sign * side.scores for side in pair.firsts)
    sets = {
        name: (np.column_stack([without * docs, docs]), np.column_stack([with_image * docs, docs]))
        for name, docs in inside.items()
    }
    numbers = {name: Number((name,)) for name in sets}
    if pruning is not None:
        numbers |= {"widened": Number(("pruned", "original"), np.subtract)}
    ends = ends_of(np.concatenate([without, with_image]))
    found = paired.differences(forms.RATIO, sets, numbers, pair.clusters, ends=ends)
    rows = tuple(
        Row(
            name,
            docs=int(docs.sum()),
            full=sign * float(with_image[docs].mean()),
            blind=sign * float(without[docs].mean()),
            gap=found[name].estimate,
        )
        for name, docs in inside.items()
    )
    widened = None if pruning is None else found["widened"].estimate
    return Gap(rows, _verdict(rows[0].gap, widened), widened, tuple(warnings))


def _sides(full: Path, blind: Path, task: str | None) -> tuple[Result, Result]:
    """Return the task with the full image and its blind task.

    Raises:
        RecordError: there is no such pair, or several.
    """
    seeing, unseeing = (newest(one for run in find([path]) for one in run.results)[0] for path in (full, blind))
    seeing = [one for one in seeing if one.kind.full]
    unseeing = [one for one in unseeing if one.kind.name == "blind"]
    pairs = [(a, b) for a in seeing for b in unseeing if (a.base, a.filter) == (b.base, b.filter)]
    pairs = [pair for pair in pairs if task in (None, *(name for one in pair for name in (one.task, one.base)))]
    # all full sides of a benchmark show the same images: the first counts
    sides = {(b.task, b.filter, b.run.identity): (a, b) for a, b in reversed(pairs)}
    if len(sides) != 1:
        there = ", ".join(dict.fromkeys(one.task for one in (*seeing, *unseeing))) or "none"
        what = f"{len(sides)} pairs of a task and its blind task" if sides else "no task and its blind task"
        raise RecordError(f"{what}; ask for both, such as gqa_rci3,gqa_blind, or choose with --task; there is {there}")
    return next(iter(sides.values()))


def _kept(path: Path, base: str) -> Collection[int]:
    """Return the doc ids kept by a pruning of a benchmark.

    Raises:
        RecordError: it is none, or of another benchmark.
    """
    pruning = pruned.read(path / "pruned.json" if path.is_dir() else path)
    if pruning.base not in ("", base):
        raise RecordError(f"{path}: a pruning of {pruning.base}, but the runs are of {base}")
    return {one.doc_id for one in pruning.kept}


def _minds(pair: Pair) -> list[str]:
    """Return in what two runs differ beside the image: models, docs left out, settings."""
    blind, full = (side.result for side in pair.sides)
    told, prints = list(pair.warnings), [{name: one.fingerprint.get(name) for name in _ASKED} for one in (full, blind)]
    if blind.run.model != full.run.model:
        told.append(
            f"the runs are of two models, {full.run.model} and {blind.run.model}: the gap is also one between models"
        )
    if any(left_out := [len(pair.only[1]), len(pair.only[0]), pair.unscored]):
        said = "left out: {} docs that only the full run asked, {} only the blind run, {} unscored in one"
        told.append(said.format(*left_out))
    if settings := alike.apart(*prints):
        told.append(
            f"the full and the blind run differ in {', '.join(settings)} too: the gap is not of the image alone"
        )
    return [*told, *filter(None, [not_compared(*prints)])]


def _verdict(gap: Estimate, widened: Estimate | None) -> str:
    judged = gap if widened is None else widened
    value = reading.text(judged, "{:+.3f}".format)
    if judged.low is None or judged.high is None:
        return f"unknown: the gap is {value} without an interval ({judged.reason})"
    wider = judged.low > 0
    if widened is not None:
        return f"{'the gap is wider' if wider else 'no wider gap is shown'} on the kept docs: {value} against all docs"
    return f"{'looking helps: the gap is' if wider else 'looking hurts:' if judged.high < 0 else 'no gap is shown:'} {value}"
