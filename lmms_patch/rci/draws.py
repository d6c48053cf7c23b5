"""The native aggregation M of every set of items, on the data and on each bootstrap draw; all sets use the same draws.

Where M is a function of sums, a draw is arithmetic (``stats.intervals``). Otherwise M itself is called on bootstrap
samples, for as long as the time budget allows. Where it may not be called, there are no draws.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from lmms_patch.ask.kinds import Key
from lmms_patch.runs.details import Settings
from lmms_patch.runs.numbers import none_used
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen
from lmms_patch.stats.forms import Form
from lmms_patch.stats.intervals import (
    TOO_FEW_CLUSTERS,
    UNSEEN,
    UNSEEN_OF_PAIRS,
    Sample,
    effective_clusters,
    ends_of,
    of_right_or_wrong,
    places_of,
    summarise,
)
from lmms_patch.stats.resample import Array, Bools, Estimate, Ints, bootstrap_by_calls

UNIFORM = "uniform"
"""The beginning of the names of sets of expected guesses."""
_OF_ALL = ("fip", "full", "best")
"""The beginnings of the names of sets that are estimates in a run that left docs out."""
_GUESSES = 3
"""How many draws of a random guess are averaged where M must be called for each."""


class Native(Protocol):
    """The native aggregation M of a metric, as far as available."""

    @property
    def form(self) -> str | None:
        """The aggregation's form from a finished run; None where unknown."""

    @property
    def no_calls(self) -> str:
        """The reason against repeated calls of M; empty where calls are allowed."""

    def whole(self) -> float | None:
        """Return M on full images, all docs."""

    def over_cells(self, key: Key) -> tuple[float | None, float | None, str]:
        """Return FIP and MPP over the docs of a set of views, and the reason where these are missing."""

    def aggregate(self, items: list[Any]) -> float | None:
        """Return M of any items, without side effects; None where not possible."""


class ByForm:
    """A native aggregation by its form, on the rows of a table: of a finished run, and of a run that left docs out.

    Args:
        table: the docs.
        form: of the aggregation; None: without a reason there is no number.
    """

    no_calls = "the native aggregation can only be called in the run"

    def __init__(self, table: Table, form: Form | None) -> None:
        self._table, self._form = table, form

    @property
    def form(self) -> str | None:
        return None if self._form is None else self._form.name

    def whole(self) -> float | None:
        first = self._table.frame.filter(view=0)["error"]
        # a number of the docs that could be scored would pass for that of all
        if self._form is None or first.null_count() < len(first):
            return None
        return self._table.value(self._form, self._table.full)

    def over_cells(self, key: Key) -> tuple[float | None, float | None, str]:
        table = self._table
        best = table.best(key)
        used = best.known
        if not used.any():
            return None, None, table.sampling.no_best or none_used(key)
        if table.views.faulty:
            return None, None, "some docs could not be scored"
        if self._form is None:
            return None, None, ""
        return table.value(self._form, table.full, used), table.value(self._form, best, used), ""

    def aggregate(self, items: list[Any]) -> float | None:
        return None


class Draws:
    """M of every set of items, with its draws.

    Args:
        sets: the sets of items by name; several under one name are averaged (draws of a guess).
        table: the records to which they belong.
        form: the aggregation's form; None: it must be called.
        native: the aggregation.
        settings: see ``Settings``.
    """

    def __init__(
        self, sets: Mapping[str, list[Chosen]], table: Table, form: Form | None, native: Native, settings: Settings
    ) -> None:
        form = None if form is None else table.fitted(form)
        self.sets, self.table, self.form, self.native, self.settings = sets, table, form, native, settings
        self.n = len(table)
        self.point: dict[str, float] = {}
        self.drawn: dict[str, Array] = {}
        """M of each set on each draw, where M is called."""
        self.reason = "no docs" if not self.n else ""
        self._samples: dict[bytes, Sample] = {}
        if self.n and form is not None:
            self._by_sums(form)
        elif self.n:
            self._by_calls()

    def _by_sums(self, form: Form) -> None:
        rows = [form.rows(self.table.picked(chosen)) for choices in self.sets.values() for chosen in choices]
        # Docs without a row add zeros to every sum, so a draw of them changes nothing.
        known = [np.where(np.isfinite(part).all(axis=1, keepdims=True), part, 0.0) for part in rows]
        self._rows = np.hstack(known) if rows else np.zeros((self.n, 0))
        self._width, at = rows[0].shape[1] if rows else 0, 0
        self._places: dict[str, list[slice]] = {}
        """Of each set, the columns of each of its choices of items."""
        sums = self._rows.sum(axis=0)
        for name, choices in self.sets.items():
            self._places[name] = [slice(at + k * self._width, at + (k + 1) * self._width) for k in range(len(choices))]
            at += len(choices) * self._width
            self.point[name] = float(np.mean([form.value(sums[place]) for place in self._places[name]]))
        scores = np.concatenate(
            [self.table.full.scores, *(chosen.scores for choices in self.sets.values() for chosen in choices)]
        )
        # With sampling, estimates of docs may lie outside the scale of scores.
        if self.table.sampling.used:
            scores = scores.clip(*self.table.range_seen)
        self._ends = ends_of(scores, self._marks(form))

    def _marks(self, form: Form) -> float | None:
        """Return the score of a doc with full marks: the golds' score, else the settings' scale.

        None where there is neither.
        """
        if (highest := self.table.references.highest) is not None:
            return highest
        per_doc = {"mean": 1.0, "percent": 100.0, "sum": float(self.n)}.get(form.name)
        return None if self.settings.scale is None or per_doc is None else self.settings.scale / per_doc

    def _by_calls(self) -> None:
        native, names = self.native, list(self.sets)
        for name in names:
            self.point[name] = _mean_of([native.aggregate(_known(chosen)) for chosen in self.sets[name][:_GUESSES]])
        self.reason = native.no_calls
        # Where M fails on all docs it fails on every draw too.
        failed = all(map(math.isnan, self.point.values()))
        # With too few clusters there is no interval, so the calls are spared.
        if self.reason or failed or self.counts(np.ones(self.n, bool))[2] < TOO_FEW_CLUSTERS:
            self.drawn = {name: np.empty(0) for name in names}
            return

        def values(docs: Ints) -> list[float]:
            return [
                _mean_of([native.aggregate(_known(chosen, docs)) for chosen in self.sets[name][:_GUESSES]])
                for name in names
            ]

        s = self.settings
        drawn = bootstrap_by_calls(
            values, self.n, self.table.groups.clusters, draws=s.draws, seconds=s.seconds, seed=s.seed
        )
        self.drawn = {name: drawn[:, k] for k, name in enumerate(names)}

    def counts(self, used: Bools) -> tuple[int, int, float]:
        """Return how many docs are used, how many clusters have a used doc, and the effective number of these clusters.

        Args:
            used: shape (docs,).
        """
        clusters, docs = self.table.groups.clusters, int(used.sum())
        sizes = np.ones(docs) if clusters is None else np.bincount(clusters[used])
        return docs, int((sizes > 0).sum()), effective_clusters(sizes)

    def estimate(self, name: str, value: float | None = None, used: Bools | None = None) -> Estimate:
        """Return M of a set with an interval.

        Args:
            name: the set.
            value: M's own number, where it is known.
            used: as in ``estimate_of``.
        """
        return self.estimate_of(lambda one: one, (name,), value, used)

    def estimate_of(
        self,
        statistic: Callable[..., Any],
        names: tuple[str, ...],
        value: float | None = None,
        used: Bools | None = None,
    ) -> Estimate:
        """Estimate a function of M of some sets, computed draw by draw.

        Args:
            statistic: the function.
            names: the sets.
            value: its value, where M gave it.
            used: shape (docs,), the docs of which the sets have items; None: all. Clusters without a used doc have no
                influence.
        """
        mask = np.ones(self.n, bool) if used is None else used
        docs, groups, effective = self.counts(mask)
        none = Estimate(None, None, None, None, docs, groups, 0, self.settings.level, self.reason, effective)
        if any(name not in self.point for name in names):
            return none
        with np.errstate(divide="ignore", invalid="ignore"):
            # a division by 0 gives NumPy's floats inf or nan, where Python's would raise
            point = float(statistic(*(np.float64(self.point[name]) for name in names))) if value is None else value
            if self.reason or not docs:
                return dataclasses.replace(none, value=point if math.isfinite(point) else None)
            if self.form is not None:
                return self._of_sums(self.form, statistic, names, point, mask)
            drawn = np.asarray(statistic(*(self.drawn[name] for name in names)), float)
        what = "docs" if self.table.groups.clusters is None else "clusters"
        return summarise(
            point, drawn, docs, groups, effective, level=self.settings.level, draws=self.settings.draws, what=what
        )

    def _of_sums(
        self, form: Form, statistic: Callable[..., Any], names: tuple[str, ...], point: float, used: Bools
    ) -> Estimate:
        # Right-or-wrong answers of independent docs have an exact interval; draws would only add noise.
        if (
            form.plain
            and len(names) == 1
            and places_of(self.table.groups.clusters) is None
            and (exact := self._exact(form, names[0], used)) is not None
        ):
            # the run's own number may be rounded, and its interval must hold it
            return dataclasses.replace(
                exact, value=point, low=min(point, exact.low or 0.0), high=max(point, exact.high or 0.0)
            )
        sample, width = self._sample(used, form), self._width
        columns = np.concatenate([np.arange(place.start, place.stop) for name in names for place in self._places[name]])
        counts = [len(self._places[name]) for name in names]
        starts = np.cumsum([0, *counts])

        def of(sums: Array) -> Any:
            values = [form.of_weighted(sums[..., k * width : (k + 1) * width], sample.n) for k in range(starts[-1])]
            return statistic(*(np.mean(values[a:b], axis=0) for a, b in itertools.pairwise(starts)))

        part = sample.take(columns)
        unseen = form.unseen(self._ends, width, len(names))
        extremes = np.hstack(
            [np.tile(unseen[:, k * width : (k + 1) * width], (1, count)) for k, count in enumerate(counts)]
        )
        for k, name in enumerate(names):
            # The expected score of a uniform guess is known, also for docs never drawn.
            if name.startswith(UNIFORM):
                extremes[:, starts[k] * width : starts[k + 1] * width] = (
                    part.sums[starts[k] * width : starts[k + 1] * width] / sample.n
                )
            # where a sample was asked, each doc stands for several, and so does an unseen one
            elif name.startswith(_OF_ALL):
                extremes[:, starts[k] * width : starts[k + 1] * width] *= self.table.sampling.stands_for(
                    2 if name.startswith("best") else 1, used
                )
        return part.estimate(of, extremes, unseen=UNSEEN if len(names) == 1 else UNSEEN_OF_PAIRS, value=point)

    def _exact(self, form: Form, name: str, used: Bools) -> Estimate | None:
        """Return M of right-or-wrong answers to independent docs; None for graded scores."""
        scores = self.sets[name][0].scores[used]
        # The factor turns a mean of scores into the metric's own scale.
        unit = {"percent": 100.0, "sum": float(len(scores))}.get(form.name, 1.0)
        return of_right_or_wrong(unit * scores, (unit * self._ends[0], unit * self._ends[1]), self.settings.level)

    def _sample(self, used: Bools, form: Form) -> Sample:
        """Return the sample of some docs, from a cache, since many numbers need the sample of all docs."""
        # Keyed by the mask's bytes: many numbers share the same used docs.
        key, s = used.tobytes(), self.settings
        if key not in self._samples:
            rows = np.where(used[:, None], self._rows, 0.0)
            self._samples[key] = Sample(rows, self.table.groups.clusters, used=used, whole=form.whole, **s.how)
        return self._samples[key]


def _known(chosen: Chosen, docs: Ints | None = None) -> list[Any]:
    """Return the native items of some docs, or of all; none after the run."""
    items = chosen.items or []
    drawn = items if docs is None or not items else [items[doc] for doc in docs]
    return [item for item in drawn if item is not None]


def _mean_of(values: Sequence[float | None]) -> float:
    return math.nan if not values or None in values else float(np.mean([v for v in values if v is not None]))


def minus(first: Any, second: Any) -> Any:
    """Return a difference, for ``Draws.estimate_of``."""
    return first - second
