"""The differences of all numbers of two results, from the same random draws of docs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.kinds import REGIONS, end
from lmms_patch.compare.checks import (
    failed,
)
from lmms_patch.compare.engine import plain_name
from lmms_patch.compare.pair import Pair
from lmms_patch.compare.withheld import withhold, withhold_refused
from lmms_patch.errors import RecordError
from lmms_patch.rci.kinds.orders import orders_of, turn_sets
from lmms_patch.runs.numbers import EXTRA
from lmms_patch.runs.tables import range_of
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import forms, paired
from lmms_patch.stats.forms import Form
from lmms_patch.stats.intervals import ends_of
from lmms_patch.stats.paired import Difference, McNemar, Number
from lmms_patch.stats.resample import Bools


def changes_of(pair: Pair, draws: int, level: float, seed: int) -> dict[str, Difference]:
    """Return the differences of all numbers of two results by name.

    Unpaired, from the runs' own numbers, where the aggregation cannot be computed from sums.
    """
    if pair.form is None:
        return _as_run(pair, level)
    return Drawn(pair, pair.form, {"draws": draws, "level": level, "seed": seed}).every()


@dataclass(frozen=True)
class Drawn:
    """Computes the differences of two results, all from the same random draws of docs.

    Attributes:
        pair: the docs of both.
        form: of the aggregation.
        how: ``draws``, ``level`` and ``seed`` of ``stats.paired.differences``.
    """

    pair: Pair
    form: Form
    how: Mapping[str, Any]

    def every(self) -> dict[str, Difference]:
        """Return the differences by name."""
        pair, kind = self.pair, self.pair.kind
        name = "tst" if kind.folds else "score"
        score = self.of_first_views(name)
        changes = {"fip": score, name: score} if kind.full and not kind.folds else {name: score}
        for key in [key for key in pair.tables[0].points if key in pair.tables[1].points]:
            sets, numbers = {"own": pair.at(key)}, {f"{kind.name}{end(key)}": Number(("own",))}
            if kind.full:
                sets["full"], numbers[f"drop{end(key)}"] = pair.firsts, Number(("full", "own"), np.subtract)
            changes |= self._over_common(sets, numbers)
        if kind.hides:
            changes |= self._over_common(
                {key: pair.at(key) for key in REGIONS}, {EXTRA: Number(REGIONS[::-1], np.subtract)}
            )
        if kind.turns:
            changes |= self._of_orders()
        for number in kind.own:
            one, two = (Chosen([None] * len(table), number.values(table)) for table in pair.tables)
            changes |= self._over_common({"own": (one, two)}, {number.name: Number(("own",))}, forms.MEAN)
        # Before the grids: their own gate decides what of index and gap may be read.
        withhold_refused(pair, changes)
        if kind.index:
            ours, theirs = (side.grids for side in pair.sides)
            if ours != theirs:
                pair.warnings.append(
                    f"grids {_listed(ours)} in the first run, {_listed(theirs)} in the second: only those of both are compared"
                )
            for n in pair.shared_grids:
                changes |= self._grid(n)
        return changes

    def _of_orders(self) -> dict[str, Difference]:
        """Return the differences over orders of the options, and by the place of the gold, over docs with equal orders."""
        tables = [table.in_orders for table in self.pair.tables]
        ours, theirs = (turn_sets(table, self.form, self.how["seed"]) for table in tables)
        ends = {key: (ours[f"turns_{key}"][0], theirs[f"turns_{key}"][0]) for key in ("once", "mean", "every")}
        counts = [np.array([len(own) for own in orders_of(table)]) for table in tables]
        used = (counts[0] == counts[1]) & (counts[0] > 0)
        if not used.any():
            return {}
        numbers = {
            "rotate_every": Number(("every",)),
            "rotate_once": Number(("once",)),
            "rotate_lost": Number(("once", "every"), np.subtract),
        }
        # The mean over orders is of several draws where the form is not linear, so there is no single difference.
        if self.form.linear:
            numbers["rotate_mean"] = Number(("mean",))
        changes = self._resampled(ends, used, numbers)
        often = int(np.bincount(counts[0][used]).argmax())
        for place in range(1, often + 1):
            one = {"own": (ours[f"turns_{often}_{place}"][0], theirs[f"turns_{often}_{place}"][0])}
            changes |= self._resampled(one, used & (counts[0] == often), {f"rotate_at{place}": Number(("own",))})
        return changes

    def _over_common(
        self,
        sets: Mapping[str, tuple[Chosen, Chosen]],
        numbers: Mapping[str, Number],
        form: Form | None = None,
    ) -> dict[str, Difference]:
        """Return the differences of some numbers over the docs with every score on both sides.

        None where there are no such docs. The form is that of the task's aggregation unless another is given.
        """
        used = np.asarray(
            np.logical_and.reduce([np.isfinite(side.scores) for chosen in sets.values() for side in chosen])
        )
        return self._resampled(sets, used, numbers, form) if used.any() else {}

    def of_first_views(self, name: str = "score") -> Difference:
        """Return the difference of the scores of the first views."""
        test = self.pair.mcnemar() if self.form.plain else None
        exact = {} if test is None else {name: test}
        every = np.ones(len(self.pair.ids), bool)
        return self._resampled({"full": self.pair.firsts}, every, {name: Number(("full",))}, exact=exact)[name]

    def _grid(self, n: int) -> dict[str, Difference]:
        """Return MPP, index and gap of a grid, over the docs with all cells scored in both runs."""
        one, two = (table.best(n) for table in self.pair.tables)
        used = one.known & two.known
        records = zip(*(table.records for table in self.pair.tables), strict=True)
        broken = used & np.array([any(failed(record, n) for record in pair) for pair in records], bool)
        # Under an aggregation of whole clusters a lost doc takes its partners along.
        used &= ~self.pair.with_partners(broken)
        docs, index = int(used.sum()), f"{self.pair.kind.index}{n}"
        if docs < len(used):
            words = self.pair.kind.words
            why = f", {int(broken.sum())} of them since a {words.part} could not be scored" if broken.any() else ""
            self.pair.warnings.append(f"{words.grid(n)}: {len(used) - docs} docs are left out{why}")
        numbers = {
            f"mpp{n}": Number(("best",)),
            index: Number(("full", "best"), _index),
            f"gap{n}": Number(("full", "best"), np.subtract),
        }
        changes = self._resampled({"full": self.pair.firsts, "best": (one, two)}, used, numbers)
        withhold(self.pair, changes, n, used)
        return changes | self._corrected(n, docs)

    def _resampled(
        self,
        sets: Mapping[str, tuple[Chosen, Chosen]],
        used: Bools,
        numbers: Mapping[str, Number],
        form: Form | None = None,
        exact: Mapping[str, McNemar] = {},
    ) -> dict[str, Difference]:
        """Return the differences of some numbers, all from the same draws of the used docs."""
        # what has a form of its own is no score, so what a gold scores is no end of it
        marks = self._marks() if form is None else None
        form, rows = form or self.form, {}
        for name, chosen in sets.items():
            one, two = (form.rows(table.picked(side)) for table, side in zip(self.pair.tables, chosen, strict=True))
            rows[name] = _known(one)[used], _known(two)[used]
        clusters = None if self.pair.clusters is None else self.pair.clusters[used]
        scores = np.concatenate([side.scores[used] for chosen in sets.values() for side in chosen])
        # With sampling, estimates of docs may leave the scale, while those of all docs are clipped to it.
        if any(table.sampling.used for table in self.pair.tables):
            low, high = range_of(self.pair.tables)
            scores, form = scores.clip(low, high), form.within(min(low, 0.0), high)
        ours, theirs = (table.sampling.stands_for(2, used) for table in self.pair.tables)
        return paired.differences(
            form,
            rows,
            numbers,
            clusters,
            exact=exact,
            ends=ends_of(scores, marks),
            stands_for=(ours, theirs),
            **self.how,
        )

    def _marks(self) -> float | None:
        """Return what a doc with full marks scores, as its gold answers say."""
        return max((best for table in self.pair.tables if (best := table.references.highest) is not None), default=None)

    def _corrected(self, n: int, docs: int) -> dict[str, Difference]:
        """Return the difference of the luck-corrected indices, computed as if each run had asked separate docs.

        Only where luck is measured in both, on the same docs.
        """
        if any((grid := side.run.result.grid(n)) is None or grid.adj is None for side in self.pair.sides):
            return {}
        names = [f"{side.kind.index}{n}_adj" for side in self.pair.sides]
        first, second = (side.run.result.measures[name] for side, name in zip(self.pair.sides, names, strict=True))
        # The stored indices are of all docs of each run: comparable only where these are the compared docs.
        if not first.n == second.n == docs:
            return {}
        self.pair.warnings.append(
            f"{names[1]}: the runs' own numbers, compared as if on other docs each; the interval is too wide where both share luck"
        )
        return {names[1]: paired.unpaired(first, second, level=self.how["level"])}


def _as_run(pair: Pair, level: float) -> dict[str, Difference]:
    """Return the differences of the runs' stored numbers, computed as if each run had asked separate docs."""
    metric = pair.sides[1].run.result.metric
    if pair.only[0] or pair.only[1]:
        raise RecordError(
            f"{pair.sides[1].run.name}: the aggregation of {metric} can only be computed in the run, and the two runs have other docs"
        )
    pair.warnings.append(
        f"the aggregation of {metric} can only be computed in the run: the runs' own numbers, compared as if on other docs each; "
        "the intervals are too wide where the same docs are hard for both"
    )
    ours, theirs = (
        {plain_name(name): (name, one) for name, one in side.run.result.measures.items()} for side in pair.sides
    )
    starts = (
        "score",
        "fip",
        "mpp",
        "gap",
        *((pair.kind.name, "drop") if pair.kind.has_points else ()),
        *(("rotate",) if pair.kind.turns else ()),
        plain_name(pair.kind.index) if pair.kind.index else "tst",
    )
    shared = [name for name in ours if name in theirs and name.startswith(starts)]
    return {theirs[name][0]: paired.unpaired(ours[name][1], theirs[name][1], level=level) for name in shared}


def _known(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows of sums, with zeros for docs without a finite row."""
    return np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)


def _index(full: Any, best: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(full) > 0, 1 - best / full, np.nan)


def _listed(grids: Sequence[int]) -> str:
    return " and ".join(map(str, grids)) or "none"
