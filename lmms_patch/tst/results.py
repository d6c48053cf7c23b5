"""The numbers of a Test-set Stress-Test, from the records of a run. NumPy only; needs neither model nor data.

Source: TsT paper (https://arxiv.org/abs/2511.04655), 3.1 (accuracy, s(x)), Tables 2 and 3 (zero-shot, Δ, majority,
chance).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lmms_patch.errors import RecordError
from lmms_patch.runs.numbers import ALPHA, APART, Category, Copied, Grouped, Stress
from lmms_patch.runs.record import CopyClass, Record
from lmms_patch.stats import intervals
from lmms_patch.stats.resample import Estimate, Seed, cluster_numbers, generator

Array = NDArray[np.float64]
Withheld = Literal["agreeing", "conflicting"]

FLIPS = 2000
"""The number of random sign flips of a permutation test."""


def stress(records: Sequence[Record], *, draws: int = 1000, level: float = 0.95, seed: int = 0) -> Stress | None:
    """Compute the numbers of a finished run.

    Args:
        records: the ``patch`` objects of all docs.
        draws: number of bootstrap draws.
        level: nominal coverage of the intervals, 0..1.
        seed: of the bootstrap.

    Returns:
        None where no record has a text-only cross-validation.
    """
    # Ranks hand records on in another order than a single process.
    records = sorted((r for r in records if r.tst is not None), key=lambda r: r.doc_id)
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
    # A cluster flips as a whole, since its docs rise and fall together.
    totals = differences if clusters is None else np.bincount(np.unique(clusters, return_inverse=True)[1], differences)
    observed = totals.sum()
    # In steps of 4 million signs, so that memory stays small for large sets.
    step = max(1, 4_000_000 // max(1, len(totals)))
    at_least = 0
    for start in range(0, flips, step):
        signs = stream.integers(0, 2, (min(step, flips - start), len(totals)), dtype=np.int8) * 2 - 1
        # the same sum in another order may differ by float error
        at_least += int((signs @ totals >= observed - 1e-12).sum())
    return (1 + at_least) / (1 + flips)


def withheld(above: Array, copies: Sequence[str], clusters: NDArray[np.intp] | None, seed: Seed = 0) -> Withheld | None:
    """Return why a gain over the majority answer is no shortcut of the language; None where nothing contradicts.

    A prior of the text ("a car" is mostly wrong) answers the docs whose copies have the same gold. If these fall below
    the majority answer while the others, or all docs, rise above it, the training copies are answered in reverse:
    ``agreeing``. The same holds where docs with conflicting copies rise above the majority answer, and all others
    together do not: ``conflicting``. "Above" and "below" are one-sided sign-flip tests at 5 %.

    Args:
        above: score less frequency baseline of each doc, shape (n,); nan: unscored.
        copies: the class of each doc (``copies.CLASSES``).
        clusters: labels of shape (n,); None: each doc alone.
        seed: of the flips.
    """
    known, classes = np.isfinite(above), np.array(copies)

    def beyond(values: Array, own: NDArray[np.bool_]) -> bool:
        own = own & known
        return bool(own.any()) and sign_flip_p(values[own], None if clusters is None else clusters[own], seed) < ALPHA

    if not {"agreeing", "conflicting"} & set(copies):
        return None
    conflicting = classes == "conflicting"
    rise = beyond(above, known)
    rise_in_conflict = beyond(above, conflicting)
    if (rise or rise_in_conflict) and beyond(-above, classes == "agreeing"):
        return "agreeing"
    return "conflicting" if rise and rise_in_conflict and not beyond(above, ~conflicting) else None


class _Records:
    """The records as arrays."""

    def __init__(self, records: Sequence[Record], draws: int, level: float, seed: int) -> None:
        self.records = records
        self._options: dict[str, Any] = {"draws": draws, "level": level, "seed": seed}
        self.tested = [record.tst for record in records if record.tst is not None]
        self.headline = self.tested[0].grouping
        self.names = list(self.tested[0].scores)
        self._check()
        self.copies = ["single" if tested.copies is None else tested.copies for tested in self.tested]
        labels = [record.tested_with for record in records]
        self.clusters = (
            None
            if all(label is None for label in labels)
            else cluster_numbers([(i,) if c is None else c for i, c in enumerate(labels)])
        )
        self.scores = {name: self._by_seed([tested.scores[name] for tested in self.tested]) for name in self.names}
        self.baseline = {name: self._by_seed([tested.baseline[name] for tested in self.tested]) for name in self.names}
        self.ends = intervals.ends_of(
            np.concatenate([np.ravel(one) for one in (*self.scores.values(), *self.baseline.values())])
        )

    def _check(self) -> None:
        """Raise RecordError where docs differ in their cross-validations or fold seeds: no mean over them exists."""
        wanted = dict.fromkeys(self.names, len(self.tested[0].scores.get(self.headline, ())))
        for record in self.records:
            for given in (record.tst.scores, record.tst.baseline) if record.tst else ():
                if {name: len(scores) for name, scores in given.items()} != wanted:
                    raise RecordError(
                        f"doc {record.doc_id}: its cross-validations or fold seeds are not those of the other docs"
                    )

    @staticmethod
    def _by_seed(scores: Sequence[Sequence[float | None]]) -> Array:
        """Return the scores of docs with shape (seeds, docs)."""
        return np.array([[np.nan if score is None else score for score in of_doc] for of_doc in scores], float).T

    def _mean(self, values: Array, known: NDArray[np.bool_] | None = None, *, difference: bool = False) -> Estimate:
        """Return the mean of some docs' values: of scores, or of differences of two scores."""
        used = np.isfinite(values) if known is None else known & np.isfinite(values)
        low, high = self.ends
        # A difference of scores reaches from low - high to high - low.
        ends = (low - high, high - low) if difference else (low, high)
        return intervals.mean(
            values[used], None if self.clusters is None else self.clusters[used], ends=ends, **self._options
        )

    def grouped(self, name: str) -> Grouped:
        """Return the numbers of a cross-validation."""
        scores, baseline = self.scores[name], self.baseline[name]
        per_seed = np.array([np.nanmean(row) if np.isfinite(row).any() else np.nan for row in scores])
        above = scores.mean(axis=0) - baseline.mean(axis=0)
        known = np.isfinite(above)
        clusters = None if self.clusters is None else self.clusters[known]
        p = sign_flip_p(above[known], clusters, self._options["seed"]) if known.any() else None
        sd = float(per_seed.std(ddof=1)) if len(per_seed) > 1 and np.isfinite(per_seed).all() else None
        reason = withheld(above, self.copies, self.clusters, self._options["seed"]) if name in APART else None
        return Grouped(
            self._mean(scores.mean(axis=0)),
            sd,
            len(scores),
            _known_mean(baseline.mean(axis=0)),
            self._mean(above, difference=True),
            p,
            self._by_class(scores.mean(axis=0), baseline.mean(axis=0)),
            reason,
        )

    def _by_class(self, scores: Array, baseline: Array) -> dict[CopyClass, Copied] | None:
        """Return the numbers by class of copies; None where no doc has a copy."""
        classes = np.array(self.copies)
        if (classes == "single").all():
            return None
        out: dict[CopyClass, Copied] = {}
        for name in get_args(CopyClass):
            own = classes == name
            above = self._mean(scores - baseline, own, difference=True)
            out[name] = Copied(int(own.sum()), _known_mean(scores[own]), _known_mean(baseline[own]), above)
        return out

    def stress(self) -> Stress:
        head = self.scores[self.headline].mean(axis=0)
        zero = _array(None if tested.zero_shot is None else tested.zero_shot.score for tested in self.tested)
        has_zero = bool(np.isfinite(zero).any())
        both = {"none", "source"} <= set(self.names)
        s = _array(tested.s for tested in self.tested)
        chance = _array(tested.chance for tested in self.tested)
        return Stress(
            self.headline,
            {name: self.grouped(name) for name in self.names},
            self._mean(self.scores["none"].mean(axis=0) - self.scores["source"].mean(axis=0), difference=True)
            if both
            else None,
            self._mean(zero) if has_zero else None,
            self._mean(head - zero, difference=True) if has_zero else None,
            _known_mean(chance),
            _known_mean(s),
            self._categories(head, self.baseline[self.headline].mean(axis=0), chance, s),
            int((~np.isfinite(head)).sum()),
        )

    def _categories(self, head: Array, baseline: Array, chance: Array, s: Array) -> dict[str, Category]:
        given = [r.fields.get("category") for r in self.records]
        names = np.array(["" if name is None else str(name) for name in given])
        out = {}
        for name in sorted(set(names)):
            own = names == name
            accuracy = self._mean(head, own)
            means = (_known_mean(values[own]) for values in (baseline, chance, s))
            out[name] = Category(int(own.sum()), accuracy.value, accuracy.low, accuracy.high, *means)
        return out if len(out) > 1 else {}


def _array(values: Iterable[float | None]) -> Array:
    return np.array([np.nan if value is None else value for value in values], float)


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
    for name, estimate in (
        ("tst_leakage", found.leakage),
        ("tst_zero_shot", found.zero_shot),
        ("tst_delta", found.delta),
    ):
        out |= {name: None if estimate is None else estimate.value}
    return out


ROWS = ("tst", "tst_majority", "tst_zero_shot", "tst_delta")
"""The flat numbers that appear as rows in the harness's table."""
