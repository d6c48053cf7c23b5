"""The numbers of a Test-set Stress-Test, from the records of a run. NumPy only; needs neither model nor data.

Source: TsT paper (https://arxiv.org/abs/2511.04655), 3.1 (accuracy, s(x)), Tables 2 and 3 (zero-shot, Δ, majority, chance).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.stats import intervals
from lmms_patch.stats.resample import Estimate, Seed, cluster_numbers, generator

Array = NDArray[np.float64]

FLIPS = 2000
"""The number of random sign flips of a permutation test."""


@dataclass(frozen=True)
class Grouped:
    """The numbers of one cross-validation, whose folds have one grouping.

    Attributes:
        accuracy: TsT accuracy, mean over docs and fold seeds. Its interval resamples docs in their clusters: it covers new items from the same
            sources, given the folds.
        sd: standard deviation over fold seeds; None with one seed.
        seeds: number of fold seeds.
        majority: the frequency baseline of the training folds, mean over docs and seeds.
        above: accuracy less majority, paired by doc.
        p: permutation p-value of ``above`` > 0: signs of whole clusters flipped at random; None with nothing to compare.
    """

    accuracy: Estimate
    sd: float | None
    seeds: int
    majority: float | None
    above: Estimate
    p: float | None


@dataclass(frozen=True)
class Category:
    """The headline numbers of one category.

    Attributes:
        docs: number of docs.
        accuracy: mean TsT accuracy (fraction).
        low: lower end of its interval; None where there are too few clusters.
        high: upper end of its interval; None where there are too few clusters.
        majority: mean frequency baseline (fraction).
        chance: mean of what an uninformed guess earns (fraction).
        s: mean bias score (fraction).
    """

    docs: int
    accuracy: float | None
    low: float | None
    high: float | None
    majority: float | None
    chance: float | None
    s: float | None


@dataclass(frozen=True)
class Stress:
    """All numbers of a Test-set Stress-Test.

    Attributes:
        headline: the name of the grouping to which the answers, s(x) and the categories belong.
        by_grouping: numbers for source, none (random folds) and text, as far as they could be computed.
        leakage: accuracy with random folds less accuracy with source-grouped folds, paired by doc: how much a diagnostic recognises the source
            instead of the question; None without both.
        zero_shot: accuracy of the same model before training; None where the diagnostic has none.
        delta: headline accuracy less zero-shot, paired by doc; None without it.
        chance: mean of what an uninformed guess earns, on the metric's own scale.
        s: mean bias score.
        categories: the headline numbers by category.
        unscored: number of docs without a score.
    """

    headline: str
    by_grouping: Mapping[str, Grouped]
    leakage: Estimate | None
    zero_shot: Estimate | None
    delta: Estimate | None
    chance: float | None
    s: float | None
    categories: Mapping[str, Category] = field(default_factory=dict)
    unscored: int = 0


def stress(records: Sequence[Mapping[str, Any]], *, draws: int = 1000, level: float = 0.95, seed: int = 0) -> Stress | None:
    """Compute the numbers of a finished run.

    Args:
        records: the ``patch`` objects of all docs.
        draws: number of bootstrap draws.
        level: nominal coverage of the intervals, 0..1.
        seed: of the bootstrap.

    Returns:
        None where no record has a text-only cross-validation.
    """
    records = sorted((r for r in records if r.get("tst")), key=lambda r: r.get("doc_id", 0))  # several ranks write records in another order
    if not records:
        return None
    return _Records(records, draws, level, seed).stress()


def sign_flip_p(differences: Array, clusters: NDArray[np.intp] | None, seed: Seed = 0, flips: int = FLIPS) -> float:
    """Return the p-value of a mean above 0, paired: under the null, the signs of whole clusters are exchangeable.

    Args:
        differences: shape (n,).
        clusters: labels of shape (n,); None: each doc alone.
        seed: of the flips.
        flips: number of flips; the smallest p-value is 1 / (flips + 1).
    """
    stream = generator(seed)
    totals = differences if clusters is None else np.bincount(np.unique(clusters, return_inverse=True)[1], differences)
    observed = totals.sum()
    step = max(1, 4_000_000 // max(1, len(totals)))
    at_least = 0
    for start in range(0, flips, step):
        signs = stream.integers(0, 2, (min(step, flips - start), len(totals)), dtype=np.int8) * 2 - 1
        at_least += int((signs @ totals >= observed - 1e-12).sum())
    return (1 + at_least) / (1 + flips)


class _Records:
    """The records as arrays."""

    def __init__(self, records: Sequence[Mapping[str, Any]], draws: int, level: float, seed: int) -> None:
        self.records, self._options = records, {"draws": draws, "level": level, "seed": seed}
        self.headline = str(records[0]["tst"]["grouping"])
        self.names = list(records[0]["tst"]["scores"])
        labels = [_cluster(r) for r in records]
        self.clusters = None if all(label is None for label in labels) else cluster_numbers([(i,) if c is None else c for i, c in enumerate(labels)])
        self.scores = {name: self._by_seed("scores", name) for name in self.names}
        self.baseline = {name: self._by_seed("baseline", name) for name in self.names}
        self.ends = intervals.ends_of(np.concatenate([np.ravel(one) for one in (*self.scores.values(), *self.baseline.values())]))

    def _by_seed(self, key: str, name: str) -> Array:
        """Return the values by fold seed, shape (seeds, docs)."""
        rows = [[np.nan if v is None else v for v in r["tst"][key][name]] for r in self.records]
        return np.array(rows, float).T

    def _column(self, *keys: str) -> Array:
        out = []
        for r in self.records:
            value: Any = r["tst"]
            for key in keys:
                value = None if value is None else value.get(key)
            out.append(np.nan if value is None else value)
        return np.array(out, float)

    def _mean(self, values: Array, known: NDArray[np.bool_] | None = None, *, difference: bool = False) -> Estimate:
        """Return the mean of some docs' values: of scores, or of differences of two scores."""
        used = np.isfinite(values) if known is None else known & np.isfinite(values)
        low, high = self.ends
        ends = (low - high, high - low) if difference else (low, high)
        return intervals.mean(values[used], None if self.clusters is None else self.clusters[used], ends=ends, **self._options)

    def grouped(self, name: str) -> Grouped:
        """Return the numbers of one cross-validation."""
        scores, baseline = self.scores[name], self.baseline[name]
        per_seed = np.array([np.nanmean(row) if np.isfinite(row).any() else np.nan for row in scores])
        above = scores.mean(axis=0) - baseline.mean(axis=0)
        known = np.isfinite(above)
        clusters = None if self.clusters is None else self.clusters[known]
        p = sign_flip_p(above[known], clusters, self._options["seed"]) if known.any() else None  # type: ignore[arg-type]
        sd = float(per_seed.std(ddof=1)) if len(per_seed) > 1 and np.isfinite(per_seed).all() else None
        return Grouped(self._mean(scores.mean(axis=0)), sd, len(scores), _known_mean(baseline.mean(axis=0)), self._mean(above, difference=True), p)

    def stress(self) -> Stress:
        head = self.scores[self.headline].mean(axis=0)
        zero = self._column("zero_shot", "score")
        has_zero = bool(np.isfinite(zero).any())
        both = {"none", "source"} <= set(self.names)
        s = self._column("s")
        chance = self._column("chance")
        return Stress(
            self.headline,
            {name: self.grouped(name) for name in self.names},
            self._mean(self.scores["none"].mean(axis=0) - self.scores["source"].mean(axis=0), difference=True) if both else None,
            self._mean(zero) if has_zero else None,
            self._mean(head - zero, difference=True) if has_zero else None,
            _known_mean(chance),
            _known_mean(s),
            self._categories(head, self.baseline[self.headline].mean(axis=0), chance, s),
            int((~np.isfinite(head)).sum()),
        )

    def _categories(self, head: Array, baseline: Array, chance: Array, s: Array) -> dict[str, Category]:
        given = [(r.get("fields") or {}).get("category") for r in self.records]
        names = np.array(["" if name is None else str(name) for name in given])
        out = {}
        for name in sorted(set(names)):
            own = names == name
            accuracy = self._mean(head, own)
            means = (_known_mean(values[own]) for values in (baseline, chance, s))
            out[name] = Category(int(own.sum()), accuracy.value, accuracy.low, accuracy.high, *means)
        return out if len(out) > 1 else {}


def _cluster(record: Mapping[str, Any]) -> Any:
    """Return what a doc is resampled with: its source, else its cluster; None where neither is known."""
    source = record["tst"].get("source")
    return source if source is not None else (record.get("fields") or {}).get("cluster")


def _known_mean(values: Array) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def flat(found: Stress | None) -> dict[str, float | None]:
    """Return the flat numbers by name (docs/records.md); empty without a cross-validation."""
    if found is None:
        return {}
    head = found.by_grouping[found.headline]
    out: dict[str, float | None] = {
        "tst": head.accuracy.value,
        "tst_low": head.accuracy.low,
        "tst_high": head.accuracy.high,
        "tst_sd": head.sd,
        "tst_majority": head.majority,
        "tst_above": head.above.value,
        "tst_above_low": head.above.low,
        "tst_above_high": head.above.high,
        "tst_p": head.p,
        "tst_chance": found.chance,
        "tst_s": found.s,
    }
    out |= {f"tst_{name}": grouped.accuracy.value for name, grouped in found.by_grouping.items()}
    for name, estimate in (("tst_leakage", found.leakage), ("tst_zero_shot", found.zero_shot), ("tst_delta", found.delta)):
        out |= {name: None if estimate is None else estimate.value}
    return out


ROWS = ("tst", "tst_majority", "tst_zero_shot", "tst_delta")
"""The flat numbers that appear as rows in the harness's table."""
