"""Does the model need to look? A run with images against its blind run, and whether pruning widened the gap between them.

The vision-blind gap is the mean over docs of (score with the image − score without). Pruning removes docs that can be
answered without looking, so the remaining subset should have a wider gap. But any subset has another gap than all docs,
by luck. Two tests guard against that: the gap of the kept docs is compared with the gaps of random subsets that have as
many docs of every group, and its difference to the gap of all docs gets a paired interval. A widening is claimed only
where both show it.

Source: TsT paper, 4.2, Table 4; DESIGN 7.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lmms_patch.compare import alike
from lmms_patch.compare.pair import Pair, join
from lmms_patch.errors import RecordError
from lmms_patch.runs.numbers import ALPHA
from lmms_patch.runs.run import RECORDED, find, newest, not_compared
from lmms_patch.stats import intervals
from lmms_patch.stats.resample import DRAWS, LEVEL, Array, Estimate, Ints, generator
from lmms_patch.text import line
from lmms_patch.tst import pruned
from lmms_patch.tst.controls import matched_random

CONTROLS = 200
_ROUNDING = 1e-9
"""Gaps this close are equal: means of the same scores differ by rounding when they are summed in another order."""
_ASKED = [name for name in (*RECORDED, "limit", "generation") if name not in ("image sizes", "images")]
"""Settings that both runs should share; images differ by design."""


@dataclass(frozen=True)
class Row:
    """The scores and the gap over a set of docs.

    Attributes:
        name: of the set.
        full, blind: mean scores, on the metric's own scale.
        gap: full − blind, paired by doc (blind − full where lower is better: above 0, looking helps). Of random
            subsets, the mean and the central 95 % of their gaps.
    """

    name: str
    full: float
    blind: float
    gap: Estimate


@dataclass(frozen=True)
class Gap:
    """The vision-blind gap, and whether pruning widened the gap.

    Attributes:
        rows: of all docs that both runs scored; with a subset, also of those that it has, and of random subsets.
        verdict: in one sentence.
        widened: gap of the subset − gap of all docs, paired by doc, over docs in their clusters.
        p: (1 + random subsets with at least the gap of the kept docs) / (1 + their number).
        claimed: whether "pruning widened the gap" can be said: p < 0.05, and the interval of ``widened`` above 0.
        warnings: one line each.
    """

    rows: tuple[Row, ...]
    verdict: str
    widened: Estimate | None = None
    p: float | None = None
    claimed: bool = False
    warnings: tuple[str, ...] = ()


# --- of scores ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scores:
    """The docs scored in both runs.

    Attributes:
        ids: of the docs.
        full, blind: shape (docs,), on the metric's own scale.
        clusters: shape (docs,), what is drawn together; None: docs are independent.
        groups: what random subsets have as many docs of; empty: only the size is matched.
        higher: whether higher scores are better.
    """

    ids: Sequence[int]
    full: Array
    blind: Array
    clusters: Ints | None = None
    groups: Sequence[Hashable] = ()
    higher: bool = True

    @property
    def gaps(self) -> Array:
        """What looking gives, shape (docs,)."""
        return (self.full - self.blind) * (1 if self.higher else -1)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the most possible gap of a doc."""
        low, high = intervals.ends_of(np.concatenate([self.full, self.blind]))
        return low - high, high - low

    def row(self, name: str, places: Ints | slice = slice(None), **how: Any) -> Row:
        """Return means and gap of some docs, clusters of docs together."""
        clusters = None if self.clusters is None else self.clusters[places]
        gap = intervals.mean(self.gaps[places], clusters, ends=self.ends, **how)
        return Row(name, float(self.full[places].mean()), float(self.blind[places].mean()), gap)


def gap(
    scores: Scores,
    kept: Collection[int] | None = None,
    *,
    circular: bool = False,
    controls: int = CONTROLS,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: int = 0,
) -> Gap:
    """Return the gap on all docs and, with a subset, on the kept docs and on random subsets.

    Args:
        scores: of both runs.
        kept: doc ids of the subset; None: no subset.
        circular: whether the blind answers are those that pruning went by: they cannot also prove its effect.
        controls: number of random subsets.
        draws: of the bootstrap.
        level: nominal coverage of the intervals, 0..1.
        seed: of the bootstrap and the random subsets.
    """
    how: dict[str, Any] = {"draws": draws, "level": level, "seed": seed}
    whole = scores.row("original", **how)
    if kept is None:
        return Gap((whole,), _seeing(whole.gap))
    inside = np.isin(scores.ids, list(kept))
    places, gaps = np.flatnonzero(inside), scores.gaps
    if not len(places):
        raise RecordError(
            f"none of the {len(kept)} doc ids of the subset is scored in both runs; is it of another benchmark?"
        )
    own = scores.row("pruned", places, **how)
    rows = np.column_stack([gaps * inside, inside, gaps, np.ones(len(gaps))])
    # A doc that was never drawn may be of the subset or not, at either end of the gap.
    unseen = np.array([[end * within, within, end, 1.0] for end in scores.ends for within in (0.0, 1.0)])
    widened = intervals.estimate(
        rows, lambda s: s[..., 0] / s[..., 1] - s[..., 2] / s[..., 3], scores.clusters, extremes=unseen, **how
    )
    stream = generator(seed)
    groups = scores.groups or [None] * len(gaps)
    drawn = [matched_random(groups, places, stream) for _ in range(controls)]
    random = np.array([gaps[one].mean() for one in drawn])
    low, high = np.quantile(random, [0.025, 0.975]).tolist()
    full, blind = (float(np.mean([side[one].mean() for one in drawn])) for side in (scores.full, scores.blind))
    subsets = Estimate(float(random.mean()), None, low, high, len(places), len(places), controls)
    # The observed gap counts as one of the subsets, so p is never 0.
    p = (1 + int((random >= gaps[places].mean() - _ROUNDING).sum())) / (1 + controls)
    claimed = p < ALPHA and widened.low is not None and widened.low > 0 and not circular
    warnings = []
    if len(kept) > len(places):
        warnings.append(f"{len(kept) - len(places)} of the {len(kept)} docs of the subset are not scored in both runs")
    if inside.all():
        warnings.append("the subset has every doc: there is nothing to compare")
    said = "pruning widened the gap" if claimed else "no widening is shown"
    if circular:
        said += " (the blind answers are those of a text-only diagnostic, which is what pruning goes by)"
    said += f": {signed(widened)} against all docs; {own.gap.value:.3f} against {subsets.value:.3f} in random subsets (p = {p:.3f})"
    rows_of = (whole, own, Row(f"random ({controls})", full, blind, subsets))
    return Gap(rows_of, said, widened, p, claimed, tuple(warnings))


# --- of runs --------------------------------------------------------------------------------------


def of_runs(full: Path, blind: Path, subset: Path | None = None, task: str | None = None) -> Gap:
    """Return the gap between two runs.

    Args:
        full: of a wrapped task that asks the full image.
        blind: of a blind task, or of a text-only cross-validation; may be the same run.
        subset: see ``read_subset``.
        task: name of a task on either side, or of the base, where there are several pairs.

    Raises:
        RecordError: no pair of tasks of one benchmark, or several; no doc that both, or the subset, have.
    """
    seeing, unseeing = (newest(one for run in find([path]) for one in run.results)[0] for path in (full, blind))
    seeing = [one for one in seeing if one.kind.full]
    unseeing = [one for one in unseeing if one.kind.name in ("blind", "tst")]
    pairs = [(a, b) for a in seeing for b in unseeing if (a.base, a.filter) == (b.base, b.filter)]
    pairs = [(a, b) for a, b in pairs if task in (None, a.task, a.base, b.task)]
    pairs = [pair for pair in pairs if pair[0].run.identity == pair[1].run.identity] or pairs
    # all full sides of a benchmark show the same images: the first counts
    sides = {(b.task, b.filter, b.run.identity): (a, b) for a, b in reversed(pairs)}
    if len(sides) != 1:
        names = [", ".join(dict.fromkeys(one.task for one in side)) or "none" for side in (seeing, unseeing)]
        what = f"{len(sides)} pairs of a task and its blind task" if sides else "no task and its blind task"
        raise RecordError(
            f"{what}: {full} has {names[0]}, {blind} {names[1]}; ask for both, such as gqa_rci3,gqa_blind, or choose with --task"
        )
    ((one, other),) = sides.values()
    alike.check(other, one, ("benchmark", "metric", "filter"))
    pair = join(other, one)
    groups = pair.tables[1].docs.select("label", "category").rows()
    blind_scores, full_scores = (side.scores for side in pair.firsts)
    scores = Scores(pair.ids, full_scores, blind_scores, pair.clusters, groups, pair.higher)
    kept = None if subset is None else read_subset(subset, one.base)
    found = gap(scores, kept, circular=bool(other.kind.folds))
    return dataclasses.replace(found, warnings=(*_minds(pair), *found.warnings))


def _minds(pair: Pair) -> list[str]:
    """Return what a reader must know of two runs, beside the image."""
    blind, full = (side.result for side in pair.sides)
    out, prints = list(pair.warnings), [{name: one.fingerprint.get(name) for name in _ASKED} for one in (full, blind)]
    if blind.run.model != full.run.model and not blind.kind.folds:
        out.append(
            f"the runs are of two models, {full.run.model} and {blind.run.model}: the gap is also one between models"
        )
    left_out = [len(pair.only[1]), len(pair.only[0]), pair.unscored]
    said = "left out: {} docs that only the full run asked, {} only the blind run, {} unscored in one"
    out += [said.format(*left_out)] * any(left_out)
    out += ["a quick run did not ask every doc: what it did not ask is estimated"] * any(
        table.sampling.used for table in pair.tables
    )
    out += [f"{full.metric} is no mean over docs; gaps are those of means"] * (pair.form is None or not pair.form.plain)
    if told := alike.apart(*prints):
        out.append(f"the full and the blind run differ in {', '.join(told)} too: the gap is not of the image alone")
    return [*out, *filter(None, [not_compared(*prints)])]


def read_subset(path: Path, base: str | None = None) -> set[int]:
    """Read the doc ids of a subset.

    Args:
        path: the folder of a pruning, its ``pruned.json``, or a text file with one doc id a line (``kept_ids.txt``).
        base: the benchmark that it must be of, where the pruning names its benchmark.

    Raises:
        RecordError: none of these, or of another benchmark.
    """
    if path.is_dir() or path.suffix == ".json":
        pruning = pruned.read(path / "pruned.json" if path.is_dir() else path)
        if base is not None and pruning.base not in ("", base):
            raise RecordError(f"{path}: a pruning of {pruning.base}, but the runs are of {base}")
        return {one.doc_id for one in pruning.kept}
    try:
        lines = [said for text in path.read_text(encoding="utf-8").split("\n") if (said := text.strip())]
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read ({type(error).__name__})") from None
    # ``int`` would take digits of other scripts, too
    wrong = [said for said in lines if not re.fullmatch(r"\d{1,15}", said, re.ASCII)]
    if wrong or not lines:
        what = f"{line(wrong[0], 40)!r} is no doc id" if wrong else "no doc ids"
        raise RecordError(f"{path}: {what}; write one whole number a line, or give the folder of the pruning")
    return set(map(int, lines))


# --- in words -------------------------------------------------------------------------------------


def signed(number: Estimate) -> str:
    """Return a difference with its interval."""
    if number.value is None or number.low is None or number.high is None:
        value = "N/A" if number.value is None else f"{number.value:+.3f}"
        return f"{value} without an interval ({number.reason})"
    return f"{number.value:+.3f} [{number.low:+.3f}, {number.high:+.3f}]"


def _seeing(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return f"unknown: the gap is {signed(found)}"
    if found.low > 0:
        return f"looking helps: the gap is {signed(found)}"
    return f"{'looking hurts' if found.high < 0 else 'no gap is shown'}: {signed(found)}"
