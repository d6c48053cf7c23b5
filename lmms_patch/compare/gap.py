"""Does the model need to look? The gap between a full and a blind run, and whether pruning widened it.

Needs neither model nor data.

The vision-blind gap is the mean over docs of (score with the image − score without). Docs are joined by their id.
Pruning removes docs that can be answered without looking, so the remaining subset should have a wider gap. But any
subset has another gap than all docs, by luck. Two tests guard against that: the gap of the kept docs is compared with
the gaps of random subsets that have as many docs of every group, and its difference to the gap of all docs gets a
paired interval. A widening is claimed only where both show it.

Source: TsT paper, 4.2, Table 4; DESIGN 7.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmms_patch.compare.gap_sides import GapSide
from lmms_patch.errors import RecordError
from lmms_patch.runs.numbers import ALPHA
from lmms_patch.runs.scoring import Scalar
from lmms_patch.stats import intervals
from lmms_patch.stats.resample import DRAWS, LEVEL, Array, Estimate, Ints, cluster_numbers, generator
from lmms_patch.tst.controls import matched_random

CONTROLS = 200
_ROUNDING = 1e-9
"""Gaps this close are equal: means of the same scores differ by rounding when they are summed in another order."""


@dataclass(frozen=True)
class GapRow:
    """The scores and the gap over a set of docs.

    Attributes:
        name: ``original`` or ``pruned``.
        docs: number of docs, scored in both runs.
        full, blind: mean scores, on the metric's own scale.
        gap: full − blind, paired by doc (blind − full where lower is better: above 0, looking helps).
    """

    name: str
    docs: int
    full: Estimate
    blind: Estimate
    gap: Estimate


@dataclass(frozen=True)
class Controls:
    """Random subsets of the pruned subset's size, with as many docs of every group.

    Attributes:
        subsets: R, their number.
        groups: number of groups that are matched; 1: only the size is matched.
        full, blind: mean scores over docs and subsets.
        low, mean, high: of the subsets' gaps; low and high are the ends of the central 95 %.
    """

    subsets: int
    groups: int
    full: float
    blind: float
    low: float
    mean: float
    high: float


@dataclass(frozen=True)
class Leakage:
    """Multi-modal leakage: the blind score beyond the score of the underlying language model.

    Source: MMStar, https://arxiv.org/abs/2403.20330, "Multi-modal Gain/Leakage":
    ML = max(0, S_wv − S_t). Multi-modal gain, MG = S_v − S_wv, is the gap itself.

    Attributes:
        model: the language model, as its run names it.
        docs: number of docs, scored in both runs.
        blind: S_wv, the mean score of the multimodal model without images, on the metric's own scale.
        text: S_t, the mean score of the language model.
        difference: blind − text, paired by doc (text − blind where lower is better).
        value: ML, the difference or 0, whichever is larger.
    """

    model: str
    docs: int
    blind: Estimate
    text: Estimate
    difference: Estimate
    value: float | None


@dataclass(frozen=True)
class Gap:
    """The vision-blind gap, and whether pruning widened the gap.

    Attributes:
        base, metric: the benchmark, and its metric.
        original: on all docs that are scored in both runs.
        kept: on those of these docs that the subset has; None where no subset was given.
        controls: on random subsets; None without a subset.
        widened: gap(kept) − gap(original), paired by doc, over docs in their clusters; None without a subset.
        p: (1 + random subsets with at least the gap of the kept docs) / (1 + R); None without a subset.
        claimed: whether "pruning widened the gap" can be said: p < 0.05, and the interval of ``widened`` above 0.
        verdict: in one sentence.
        n_only_full, n_only_blind: docs that only one of the two runs asked.
        warnings: one line each.
        leakage: against the language model; None where no run of it was given.
    """

    base: str
    metric: str
    original: GapRow
    kept: GapRow | None
    controls: Controls | None
    widened: Estimate | None
    p: float | None
    claimed: bool
    verdict: str
    n_only_full: int
    n_only_blind: int
    warnings: tuple[str, ...]
    leakage: Leakage | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the gap in plain JSON types."""
        return dataclasses.asdict(self)


# --- the gap ------------------------------------------------------------------------------------


def gap(
    full: GapSide,
    blind: GapSide,
    kept: Iterable[int] | None = None,
    *,
    controls: int = CONTROLS,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: int = 0,
) -> Gap:
    """Return the gap on all docs and, with a subset, on the kept docs and on random subsets.

    Args:
        full: the run with the image.
        blind: the run without.
        kept: doc ids of the subset; None: no subset.
        controls: R, number of random subsets.
        draws: of the bootstrap.
        level: nominal coverage of the intervals, 0..1.
        seed: of the bootstrap and the random subsets.

    Raises:
        RecordError: runs of different benchmarks or metrics, or no doc that both (and the subset) have.
    """
    paired = _Paired(full, blind, {"draws": draws, "level": level, "seed": seed})
    whole = paired.whole()
    if kept is None:
        return whole
    wanted = set(kept)
    own = np.flatnonzero([doc_id in wanted for doc_id in paired.ids])
    if not len(own):
        raise RecordError(
            f"{full.base}: none of the {len(wanted)} doc ids of the subset is scored in both runs; is it of another benchmark?"
        )
    row, widened = paired.row("pruned", own), paired.widened(own)
    gaps, random = paired.controls(own, controls, seed)
    # The observed gap counts as one of the subsets, so p is never 0.
    p = (1 + int((gaps >= paired.mean_gap(own) - _ROUNDING).sum())) / (1 + controls)
    # A text-only cross-validation is what pruning goes by: its answers cannot also prove the effect of pruning.
    circular = blind.kind == "tst"
    claimed = p < ALPHA and widened.low is not None and widened.low > 0 and not circular
    verdict = _widening(row, random, widened, p, claimed, circular)
    warnings = (*whole.warnings, *_subset_warnings(len(wanted), len(own), len(paired.ids)))
    return dataclasses.replace(
        whole, kept=row, controls=random, widened=widened, p=p, claimed=claimed, verdict=verdict, warnings=warnings
    )


def leakage(blind: GapSide, text: GapSide, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0) -> Leakage:
    """Return the multi-modal leakage.

    Args:
        blind: the multimodal model's run without images.
        text: the run of the language model that it was made from.
        draws: of the bootstrap.
        level: nominal coverage of the intervals, 0..1.
        seed: of the bootstrap.

    Raises:
        RecordError: runs of different benchmarks or metrics or of one model, a text-only cross-validation, or no doc
            that both have.
    """
    for side in (blind, text):
        if side.kind == "tst":
            raise RecordError(
                f"{side.task} is a text-only cross-validation, which was trained on this benchmark; leakage needs runs of the _blind task"
            )
    if text.model and blind.model == text.model:
        raise RecordError(
            f"both runs without images are of {blind.model}; give as language model a run of the model that it was made from"
        )
    paired = _Paired(blind, text, {"draws": draws, "level": level, "seed": seed}, names=("blind", "language model's"))
    row = paired.row("leakage", np.arange(len(paired.ids)))
    return Leakage(
        text.model, row.docs, row.full, row.blind, row.gap, None if row.gap.value is None else max(0.0, row.gap.value)
    )


def _subset_warnings(wanted: int, kept: int, docs: int) -> list[str]:
    out = []
    if wanted > kept:
        out.append(f"{wanted - kept} of the {wanted} docs of the subset are not scored in both runs")
    if kept == docs:
        out.append("the subset has every doc: there is nothing to compare")
    return out


class _Paired:
    """The docs scored in both runs, as arrays."""

    def __init__(
        self, full: GapSide, blind: GapSide, options: Mapping[str, Any], names: tuple[str, str] = ("full", "blind")
    ) -> None:
        _check_pair(full, blind, names)
        self.sides, self.options = (full, blind), options
        common = [doc_id for doc_id in sorted(full.scores) if doc_id in blind.scores]
        self.only = len(full.scores) - len(common), len(blind.scores) - len(common)
        self.ids = [doc_id for doc_id in common if full.scores[doc_id] is not None and blind.scores[doc_id] is not None]
        self.unscored = len(common) - len(self.ids)
        if not self.ids:
            why = (
                "all are unscored in one of them"
                if common
                else f"doc ids {_span(full.scores)} and {_span(blind.scores)}"
            )
            raise RecordError(
                f"{full.base}: no doc is scored in both the {names[0]} and the {names[1]} run ({why}); both must be asked the same docs"
            )
        self.scores = np.array([[side.scores[doc_id] for side in self.sides] for doc_id in self.ids], float)
        # where lower is better, a gap above 0 still says that the images help
        self.gaps = (self.scores[:, 0] - self.scores[:, 1]) * (1 if full.higher else -1)
        self.ends = intervals.ends_of(self.scores)
        self.clusters = self._clusters()

    def _clusters(self) -> Ints | None:
        """Return cluster numbers, None for independent docs; a doc without a label is a cluster alone."""
        known = self._known([side.clusters for side in self.sides])
        # marked, so that the id of a doc is never the label of a cluster
        labels = [("of", known[doc_id]) if doc_id in known else ("doc", doc_id) for doc_id in self.ids]
        return cluster_numbers(labels) if any(doc_id in known for doc_id in self.ids) else None

    def _known(self, labels: Sequence[Mapping[int, Any]]) -> Mapping[int, Any]:
        """Return the labels of the run with labels for more docs."""
        return max(labels, key=lambda known: sum(doc_id in known for doc_id in self.ids))

    def mean_gap(self, places: Ints) -> float:
        """Return the mean gap of some docs."""
        return float(self.gaps[places].mean())

    @property
    def _ends_of_gap(self) -> tuple[float, float]:
        width = self.ends[1] - self.ends[0]
        return -width, width

    def row(self, name: str, places: Ints) -> GapRow:
        """Return the means and the gap of some docs, clusters of docs together."""
        clusters = None if self.clusters is None else self.clusters[places]
        full, blind = (intervals.mean(self.scores[places, k], clusters, ends=self.ends, **self.options) for k in (0, 1))
        return GapRow(
            name,
            len(places),
            full,
            blind,
            intervals.mean(self.gaps[places], clusters, ends=self._ends_of_gap, **self.options),
        )

    def widened(self, places: Ints) -> Estimate:
        """Return the gap of some docs less the gap of all docs, both on the same draws of clusters."""
        kept = np.isin(np.arange(len(self.ids)), places).astype(float)
        rows = np.column_stack([self.gaps * kept, kept, self.gaps, np.ones(len(kept))])
        # A doc that was never drawn may be of the subset or not, at either end of the gap.
        unseen = [[gap * own, own, gap, 1.0] for gap in self._ends_of_gap for own in (0.0, 1.0)]
        return intervals.estimate(
            rows,
            lambda s: s[..., 0] / s[..., 1] - s[..., 2] / s[..., 3],
            self.clusters,
            extremes=unseen,
            **self.options,
        )

    def controls(self, places: Ints, subsets: int, seed: int) -> tuple[Array, Controls]:
        """Return the gaps of random subsets, shape (R,), and their summary."""
        known, stream = self._known([side.groups for side in self.sides]), generator(seed)
        groups: list[Hashable] = [known.get(doc_id) for doc_id in self.ids]
        drawn = [matched_random(groups, places, stream) for _ in range(subsets)]
        gaps = np.array([self.mean_gap(own) for own in drawn])
        full, blind = np.mean([self.scores[own].mean(axis=0) for own in drawn], axis=0).tolist()
        low, high = np.quantile(gaps, [0.025, 0.975]).tolist()
        return gaps, Controls(subsets, len(set(groups)), full, blind, low, float(gaps.mean()), high)

    def whole(self) -> Gap:
        """Return the gap on all docs, with warnings about the two runs."""
        full, blind = self.sides
        warnings = [*full.warnings, *blind.warnings]
        if full.model and blind.model and full.model != blind.model and blind.kind != "tst":
            warnings.append(
                f"the full run is of the model {full.model}, the blind run of {blind.model}: the gap is also one between models"
            )
        warnings += [
            f"{n} docs are only in the {name} run and are left out"
            for n, name in zip(self.only, ("full", "blind"), strict=True)
            if n
        ]
        if self.unscored:
            warnings.append(f"{self.unscored} docs are unscored in one of the runs and are left out")
        row = self.row("original", np.arange(len(self.ids)))
        return Gap(
            full.base, full.metric, row, None, None, None, None, False, _seeing(row.gap), *self.only, tuple(warnings)
        )


def _check_pair(full: GapSide, blind: GapSide, names: tuple[str, str]) -> None:
    one, other = names
    if full.base != blind.base:
        raise RecordError(
            f"the {one} run is of {full.base} ({full.task}), the {other} run of {blind.base} ({blind.task}); give runs of one benchmark"
        )
    if full.metric != blind.metric:
        raise RecordError(
            f"{full.base}: the {one} run's metric is {full.metric}, the {other} run's {blind.metric}; name one that both have with --metric"
        )
    if full.higher != blind.higher:
        raise RecordError(
            f"{full.base}: higher {full.metric} is better in one run and worse in the other; they are not the same metric"
        )


def _span(scores: Mapping[int, Scalar]) -> str:
    return f"{min(scores)} to {max(scores)}" if scores else "none"


# --- in words -----------------------------------------------------------------------------------


def rows(result: Gap) -> list[list[str]]:
    """Return the table, header first.

    A row has six cells: the set of docs, their number, full, blind, gap, interval of the gap.

    For the random subsets the interval is the central 95 % of their gaps.
    """
    out = [["docs", "n", "full", "blind", "gap", "interval"]]
    for row in (result.original, result.kept):
        if row is not None:
            out.append(
                [
                    row.name,
                    str(row.docs),
                    *(_value(e.value) for e in (row.full, row.blind, row.gap)),
                    _interval(row.gap),
                ]
            )
    if result.controls is not None and result.kept is not None:
        random = result.controls
        numbers = [_value(number) for number in (random.full, random.blind, random.mean)]
        out.append(
            [f"random ({random.subsets})", str(result.kept.docs), *numbers, f"[{random.low:.3f}, {random.high:.3f}]"]
        )
    return out


def _value(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.3f}"


def _interval(estimate: Estimate) -> str:
    return "N/A" if estimate.low is None or estimate.high is None else f"[{estimate.low:.3f}, {estimate.high:.3f}]"


def _signed(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None or estimate.value is None:
        return f"{_value(estimate.value)} without an interval ({estimate.reason})"
    return f"{estimate.value:+.3f} [{estimate.low:+.3f}, {estimate.high:+.3f}]"


def _seeing(gap: Estimate) -> str:
    if gap.low is None or gap.high is None:
        return f"unknown: the gap is {_signed(gap)}"
    if gap.low > 0:
        return f"looking helps: the gap is {_signed(gap)}"
    return f"{'looking hurts' if gap.high < 0 else 'no gap is shown'}: {_signed(gap)}"


def _widening(kept: GapRow, random: Controls, widened: Estimate, p: float, claimed: bool, circular: bool) -> str:
    numbers = f"{_signed(widened)} against all docs; {_value(kept.gap.value)} against {random.mean:.3f} in random subsets (p = {p:.3f})"
    if claimed:
        return f"pruning widened the gap: {numbers}"
    why = ["the blind answers are those of a text-only diagnostic, which is what pruning goes by"] if circular else []
    why += [] if p < ALPHA else ["random subsets have gaps as wide"]
    if widened.low is None:
        why.append("there is no interval")
    elif widened.low <= 0:
        why.append(
            "the interval reaches 0"
            if widened.high is not None and widened.high >= 0
            else "the gap is narrower than before"
        )
    return f"no widening is shown ({', and '.join(why)}): {numbers}"


def leaked(found: Leakage) -> str:
    """Return what the leakage says, in a sentence."""
    ends = (
        ""
        if found.difference.low is None or found.difference.high is None
        else _ends(found.difference.low, found.difference.high)
    )
    numbers = f"{_value(found.value)}{ends}; without images the model scores {_value(found.blind.value)}, {found.model or 'its language model'} "
    numbers += f"{_value(found.text.value)}, over {found.docs} docs"
    if found.difference.low is not None and found.difference.low > 0:
        return f"multi-modal leakage {numbers}: it knows answers that its language model does not, or reads the questions better"
    return f"no multi-modal leakage is shown: {numbers}"


def _ends(low: float, high: float) -> str:
    return f" [{max(0.0, low):.3f}, {max(0.0, high):.3f}]"
