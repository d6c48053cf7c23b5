"""The numbers of a Test-set Stress-Test, from the samples of a run. Needs neither model nor data.

Source: TsT paper (https://arxiv.org/abs/2511.04655), 3.1 (accuracy, s(x)), Tables 2 and 3 (zero-shot, Δ, majority,
chance).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lmms_patch.errors import RecordError
from lmms_patch.runs.numbers import ALPHA, APART, Category, Copied, CopyClass, Grouped, Stress
from lmms_patch.stats import intervals
from lmms_patch.stats.resample import Estimate, Seed, cluster_numbers, generator

Array = NDArray[np.float64]
Withheld = Literal["agreeing", "conflicting"]

NEEDED = ("doc_id", "view", "category", "cluster", "tst")
"""The columns that the numbers are computed from."""
FLIPS = 2000
"""The number of random sign flips of a permutation test."""


def stress(
    samples: pl.DataFrame, headline: Any, *, draws: int = 1000, level: float = 0.95, seed: int = 0
) -> Stress | None:
    """Compute the numbers of a finished run.

    Args:
        samples: the rows of its docs, with the columns ``NEEDED``.
        headline: how the docs of the headline number are grouped into folds.
        draws: number of bootstrap draws.
        level: nominal coverage of the intervals, 0..1.
        seed: of the bootstrap.

    Returns:
        None where no doc has a text-only cross-validation.

    Raises:
        RecordError: docs differ in their cross-validations or fold seeds: no mean over them exists.
    """
    docs = samples.filter(pl.col("view") == 0, pl.col("tst").is_not_null()).sort("doc_id")
    return _Docs(docs, headline, draws, level, seed).stress() if len(docs) else None


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


class _Docs:
    """The docs as arrays."""

    def __init__(self, docs: pl.DataFrame, headline: Any, draws: int, level: float, seed: int) -> None:
        self._options: dict[str, Any] = {"draws": draws, "level": level, "seed": seed}
        self.headline, self._categories_of = headline, docs["category"].fill_null("").to_numpy()
        self.tested = docs.select("doc_id", "cluster", pl.col("tst").struct.unnest())
        folds = self.tested.select("doc_id", "folds").explode("folds").unnest("folds")
        self.names = folds["grouping"].unique(maintain_order=True).to_list()
        layout = folds.group_by("doc_id", maintain_order=True).agg(pl.format("{} {}", "grouping", "seed").str.join(","))
        odd = layout.filter(pl.col("grouping") != pl.col("grouping").first())
        if len(odd) or headline not in self.names:
            first = layout["doc_id"][0] if odd.is_empty() else odd["doc_id"][0]
            raise RecordError(f"doc {first}: its cross-validations or fold seeds are not those of the other docs")
        self.copies = self.tested["copies"].fill_null("single").to_list()
        self.clusters = clusters_of(docs)
        by_name = {name: folds.filter(grouping=name) for name in self.names}
        # shape (seeds, docs)
        self.scores, self.baseline = (
            {name: _array(own[column]).reshape(len(docs), -1).T for name, own in by_name.items()}
            for column in ("score", "baseline")
        )
        self.ends = intervals.ends_of(
            np.concatenate([np.ravel(one) for one in (*self.scores.values(), *self.baseline.values())])
        )

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
        zero, s, chance = (_array(self.tested[name]) for name in ("zero_score", "s", "chance"))
        has_zero = bool(np.isfinite(zero).any())
        both = {"none", "source"} <= set(self.names)
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
        names, out = self._categories_of, {}
        for name in sorted(set(names)):
            own = names == name
            accuracy = self._mean(head, own)
            means = (_known_mean(values[own]) for values in (baseline, chance, s))
            out[name] = Category(int(own.sum()), accuracy.value, accuracy.low, accuracy.high, *means)
        return out if len(out) > 1 else {}


def _array(values: pl.Series) -> Array:
    return values.cast(pl.Float64).fill_null(np.nan).to_numpy()


def clusters_of(docs: pl.DataFrame) -> NDArray[np.intp] | None:
    """Return the number of what each doc is resampled with: its source, else its cluster, else its copies.

    None where each doc stands alone.
    """
    tst = pl.col("tst").struct
    labels = [
        # marked, so that the number of a text is not taken for a source or cluster of the same value
        next((one for one in (source, cluster, None if text is None else ("copies", text)) if one is not None), None)
        for source, cluster, text in docs.select(tst.field("source"), "cluster", tst.field("text")).iter_rows()
    ]
    alone = all(label is None for label in labels)
    return None if alone else cluster_numbers([(i,) if one is None else one for i, one in enumerate(labels)])


def _known_mean(values: Array) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def flat(found: Stress | None) -> dict[str, float | None]:
    """Return the flat numbers by name (docs/tables.md); empty without a cross-validation."""
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
