"""M of every set of items that is needed, on the data and on each bootstrap draw, all from the same draws.

Where M is a function of sums, a draw is arithmetic; else M itself is called, for as long as the
time allows; where it may not be called, there are no draws.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lmms_patch.spec import Key
from lmms_patch.stats.forms import Form
from lmms_patch.stats.resample import DRAWS, LEVEL, TOO_FEW_CLUSTERS, Array, Estimate, bootstrap_by_calls, resampled_sums, summarise, totals
from lmms_patch.tables import Chosen, Table

_GUESSES = 3
"""Draws of a random guess that are averaged where M must be called for each."""


@dataclass(frozen=True)
class Settings:
    """What may be set of the statistics; every default serves.

    Attributes:
        draws: B, number of bootstrap draws.
        level: nominal coverage of intervals, 0..1.
        seed: of the bootstrap, the permutations and the guesses.
        delta: the gate's margin δ on the metric's own scale; None: 1 % of the scale.
        scale: the metric's full marks; None: what the gold answers score.
        chance: a documented floor, ``majority``, or None: asked of the scorer.
        seconds: time budget where the native aggregation is called for each draw.
        form: the aggregation's declared form, by a profile.
        signed: whether a profile says that the metric's scale goes below 0, so that it has no index.
    """

    draws: int = DRAWS
    level: float = LEVEL
    seed: int = 0
    delta: float | None = None
    scale: float | None = None
    chance: float | str | None = None
    seconds: float = 60.0
    form: str | None = None
    signed: bool = False


class Native(Protocol):
    """The native aggregation M of one metric, as far as it is at hand."""

    @property
    def form(self) -> str | None:
        """The form that is known already (of a finished run); None: find out."""

    @property
    def no_calls(self) -> str:
        """Why M may not be called again and again; empty where it may."""

    def whole(self) -> float | None:
        """M on full images, all docs."""

    def over_cells(self, key: Key) -> tuple[float | None, float | None, str]:
        """FIP, and MPP of a set of views, over the docs that are used for it; and why they are missing."""

    def aggregate(self, items: list[Any]) -> float | None:
        """M of other items, without a trace; None where that is not possible."""


class Draws:
    """See the module.

    Args:
        sets: the sets of items by name; several under one name are averaged (draws of a guess).
        table: the records they are of.
        form: the aggregation's form; None: it must be called.
        native: the aggregation.
        settings: see ``Settings``.
    """

    def __init__(self, sets: Mapping[str, list[Chosen]], table: Table, form: Form | None, native: Native, settings: Settings) -> None:
        self.sets, self.table, self.form, self.native, self.settings = sets, table, form, native, settings
        self.n = len(table)
        self.groups = self.n if table.clusters is None else int(table.clusters.max()) + 1 if self.n else 0
        self.point: dict[str, float] = {}
        self.drawn: dict[str, Array] = {}
        self.reason = "no docs" if not self.n else ""
        if self.n and form is not None:
            self._by_sums(form)
        elif self.n:
            self._by_calls()

    def _by_sums(self, form: Form) -> None:
        table = self.table
        rows = [form.rows(table.picked(chosen)) for found in self.sets.values() for chosen in found]
        width = [part.shape[1] for part in rows]
        stacked = np.nan_to_num(np.hstack(rows)) if rows else np.zeros((self.n, 0))
        for part, at in zip(rows, np.cumsum([0, *width[:-1]]), strict=True):
            stacked[~np.isfinite(part).all(axis=1), at : at + part.shape[1]] = 0
        per_cluster = totals(stacked, table.clusters)
        drawn = (
            resampled_sums(per_cluster, self.settings.draws, self.settings.seed)
            if self.groups >= TOO_FEW_CLUSTERS
            else np.empty((0, stacked.shape[1]))
        )
        sums, at = per_cluster.sum(axis=0), 0
        for name, found in self.sets.items():
            size = width[0]
            places = [slice(at + k * size, at + (k + 1) * size) for k in range(len(found))]
            self.point[name] = float(np.mean([form.value(sums[s]) for s in places]))
            self.drawn[name] = np.mean([form.value(drawn[:, s]) for s in places], axis=0)
            at += len(found) * size

    def _by_calls(self) -> None:
        native, names = self.native, list(self.sets)
        for name in names:
            self.point[name] = _mean_of([native.aggregate(_known(chosen.items)) for chosen in self.sets[name][:_GUESSES]])
        self.reason = native.no_calls
        if self.reason or self.groups < TOO_FEW_CLUSTERS:
            self.drawn = {name: np.empty(0) for name in names}
            return

        def values(docs: NDArray[np.intp]) -> list[float]:
            return [_mean_of([native.aggregate(_known([chosen.items[i] for i in docs])) for chosen in self.sets[name][:_GUESSES]]) for name in names]

        s = self.settings
        drawn = bootstrap_by_calls(values, self.n, self.table.clusters, draws=s.draws, seconds=s.seconds, seed=s.seed)
        self.drawn = {name: drawn[:, k] for k, name in enumerate(names)}

    def estimate(self, name: str, value: float | None = None, used: NDArray[np.bool_] | None = None) -> Estimate:
        """M of one set; ``value`` is M's own number, where it is at hand."""
        return self.estimate_of(lambda one: one, (name,), value, used)

    def estimate_of(
        self, statistic: Callable[..., Any], names: tuple[str, ...], value: float | None = None, used: NDArray[np.bool_] | None = None
    ) -> Estimate:
        """A function of M of some sets, computed draw by draw.

        Args:
            statistic: the function.
            names: the sets.
            value: the number itself, where M gave it.
            used: shape (docs,), the docs that the sets have items of; None: all. Clusters without any of them decide nothing.
        """
        docs, groups = (self.n, self.groups) if used is None else (int(used.sum()), self._groups_of(used))
        none = Estimate(None, None, None, None, docs, groups, 0, self.settings.level, self.reason)
        if any(name not in self.point for name in names):
            return none
        with np.errstate(divide="ignore", invalid="ignore"):
            point = float(statistic(*(np.float64(self.point[name]) for name in names))) if value is None else value
            drawn = np.asarray(statistic(*(self.drawn[name] for name in names)), float)
        if self.reason:
            return dataclasses.replace(none, value=point if math.isfinite(point) else None)
        what = "docs" if self.table.clusters is None else "clusters"
        return summarise(point, drawn, docs, groups, level=self.settings.level, draws=self.settings.draws, what=what)

    def _groups_of(self, used: NDArray[np.bool_]) -> int:
        """The number of clusters that have a used doc."""
        return int(used.sum()) if self.table.clusters is None else len(np.unique(self.table.clusters[used]))


def _known(items: Sequence[Any]) -> list[Any]:
    return [item for item in items if item is not None]


def _mean_of(values: Sequence[float | None]) -> float:
    return math.nan if not values or None in values else float(np.mean([v for v in values if v is not None]))
