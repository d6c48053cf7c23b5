"""Two results of one benchmark, doc by doc: what differs between them, from both sample logs. Pure.

Docs are joined by their id. The same random draws of docs serve both runs, so what a doc is like (hard, easy) cancels
out of the difference. Both sides are computed over the docs that both runs have scored. Where these are not all docs, a
side is not the run's own number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.kinds import REGIONS, Key, Kind, end
from lmms_patch.compare.audit import check_points
from lmms_patch.compare.checks import (
    check_digest,
    check_golds,
    failed,
    in_words,
    load,
    options_apart,
    sources,
    tst_score,
    view_sets,
)
from lmms_patch.compare.engine import Compared, fingerprints, plain_name
from lmms_patch.errors import RecordError
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.kinds.orders import orders_of, turn_sets
from lmms_patch.rci.recompute import Changes, Logged, TaskRun, form_of, table_of
from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.details import Settings
from lmms_patch.runs.failures import has_failed
from lmms_patch.runs.numbers import EXTRA
from lmms_patch.runs.record import Record
from lmms_patch.runs.run import Result, differences, not_compared
from lmms_patch.runs.tables import Table, range_of
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import forms, paired
from lmms_patch.stats.forms import Form
from lmms_patch.stats.index import SIGNED
from lmms_patch.stats.intervals import ends_of
from lmms_patch.stats.paired import Difference, McNemar, Number
from lmms_patch.stats.resample import LEVEL, Bools, Ints, cluster_numbers

MANY_DOCS, FEWER_DRAWS = 20_000, 2_000
SAME = ("benchmark", "kind", "metric", "filter", "views")
"""Settings that two results must share to be compared at all; other differences are told."""
_OF_DOCS = ("docs", "prompts", "number of docs", "limit", "image sizes", "images")
"""Settings that differ anyway where the docs do."""
_COUNTS = ("f1", "precision", "recall")
_BY_CATEGORY = ("mme", "macro")
WHICH = ("first", "second")
_OF_CELLS = ("mpp{key}", "{index}{key}", "{index}{key}_adj", "gap{key}")
"""The numbers (``catalogue.Number.name``) that are made of the cells of a grid."""


def compare(first: Result, second: Result, *, level: float = LEVEL, draws: int = 0, seed: int = 0) -> Compared:
    """Return the differences of all numbers of two results, paired by doc.

    Args:
        first: a result.
        second: the result of the other side.
        level: nominal coverage of the intervals, 0..1.
        draws: bootstrap draws; 0: 10,000, and 2,000 for more than 20,000 docs.
        seed: of the bootstrap.

    Raises:
        RecordError: results of different benchmarks, metrics or views; a log that is missing, cut or of another run;
            other golds.
    """
    if not second.kind.suffix:
        # here, since most comparisons need none of it
        from lmms_patch.compare import magic

        return magic.compare(first, second, level=level, draws=draws, seed=seed)
    prints = fingerprints(first, second, SAME)
    pair = join(load(first), load(second))
    other_docs = bool(pair.only[0] or pair.only[1])
    # The digest of docs covers all golds, so between runs of different docs it always differs.
    if not other_docs:
        check_digest(second.task, prints, (first, second))
    draws = draws or (FEWER_DRAWS if len(pair.ids) > MANY_DOCS else paired.DRAWS)
    changes = pair.differences(draws, level, seed)
    settings = in_words(differences(*prints, (*SAME, *(_OF_DOCS if other_docs else ()))))
    if other_docs and (other_images := pair.other_images()):
        settings.append(f"images (of {other_images} of the docs)")
    return Compared(
        first=first.label,
        second=second.label,
        metric=second.metric,
        docs=len(pair.ids),
        only_first=pair.only[0],
        only_second=pair.only[1],
        unscored=pair.unscored,
        differences=changes,
        mcnemar=pair.mcnemar(),
        settings=tuple(options_apart(setting, first.described, second.described) for setting in settings),
        warnings=tuple(dict.fromkeys(filter(None, [*pair.warnings, not_compared(*prints)]))),
        base=second.base,
        kind=second.kind.name,
        index=pair.kind.index,
        higher=pair.higher,
        clusters=None if pair.clusters is None else int(pair.clusters.max()) + 1,
        draws=draws,
        identical=pair.identical(),
        marks=pair.marks(),
        unchanged=pair.unchanged(),
    )


def gain(blind: Result, full: Result) -> Difference | None:
    """Return the first-view score of a task less the score of its blind task, paired by doc: what the image adds.

    None where the aggregation cannot be computed from sums over docs.

    Raises:
        RecordError: a log that is missing, cut or of another run; other docs or golds.
    """
    pair = join(load(blind), load(full))
    if pair.only[0] or pair.only[1]:
        raise RecordError(f"{full.task}: the blind run was asked other docs")
    return None if pair.form is None else pair.of_first_views(pair.form, "score")


# --- joining docs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """The first or the second result, with its records as a table.

    Attributes:
        run: its result and records.
        settings: of its statistics.
        table: all its docs.
        form: of its aggregation; None: only the run can compute it.
    """

    run: TaskRun
    settings: Settings
    table: Table
    form: Form | None

    @property
    def kind(self) -> Kind:
        """The kind of its task."""
        return self.run.result.kind

    @property
    def grids(self) -> list[int]:
        """The grids of its index."""
        return list(self.run.result.grids) if self.kind.index else []

    @property
    def records(self) -> dict[int, Record]:
        """Its records by doc id."""
        return {record.doc_id: record for record in self.run.records}

    def first_views(self, table: Table) -> Chosen:
        """Return the item of each doc at the first view.

        Of a text-only cross-validation its score, the mean over fold seeds.
        """
        if not self.kind.folds:
            return table.full
        return Chosen([None] * len(table), np.array([tst_score(record) for record in table.records], float))


def join(first: TaskRun, second: TaskRun) -> Pair:
    """Join two runs by doc id, and return the docs scored in both, in order.

    Raises:
        RecordError: no such doc; other golds or categories; a log that does not give the run's own numbers.
    """
    ids = [{record.doc_id for record in run.records} for run in (first, second)]
    common = sorted(ids[0] & ids[1])
    if not common:
        raise RecordError(f"{first.result.task}: the two runs have no doc in common; both must be asked the same docs")
    check_golds(first, second, set(common))
    sides = _sides(first, second)
    form = sides[0].form if sides[0].form is sides[1].form else None
    warnings: list[str] = []
    for side in sides:
        warnings += check_points(side.run, side.table, side.form, side.grids, folds=bool(sides[1].kind.folds))
    scored = _scored(sides, form, common)
    unscored = len(common) - len(scored) - _of_another_metric(sides, common)
    if any(side.table.groups.whole for side in sides):
        whole = scored - _of_broken_clusters(sides, scored)
        if len(whole) < len(scored):
            warnings.append(
                f"{len(scored) - len(whole)} docs are left out: not all docs of their cluster are scored in both runs"
            )
        scored = whole
    compared = [doc_id for doc_id in common if doc_id in scored]
    if not compared:
        raise RecordError(f"{first.result.task}: no doc is scored in both runs")
    tables = sides[0].table.of(compared), sides[1].table.of(compared)
    kinds = [(table.groups.categories, table.groups.merged) for table in tables]
    if form is not None and form.name in _BY_CATEGORY and kinds[0] != kinds[1]:
        raise RecordError(
            f"{second.name}: {tables[1].metric} is made of categories, and the two runs put docs in other categories"
        )
    only = tuple(sorted(ids[0] - ids[1])), tuple(sorted(ids[1] - ids[0]))
    form = None if form is None else forms.on(form, tables[0].groups.merged)
    return Pair(sides, form, compared, tables, _clusters(sides, tables, warnings), only, unscored, warnings)


def _sides(first: TaskRun, second: TaskRun) -> tuple[Side, Side]:
    """Return both sides, each with the form of its aggregation.

    A run that could not score some docs may have no number to recognize its form by. Then it has the form of the other
    run.
    """
    sides = []
    for run in (first, second):
        settings, _, table = table_of(run, Changes())
        sides.append(Side(run, settings, table, None))
    if sides[1].kind.folds:
        known: list[Form | None] = [forms.MEAN, forms.MEAN]
    else:
        known = [form_of(side.run, side.table, side.settings, side.grids) for side in sides]
    numberless = [side.run.result.metrics.get(side.table.metric) is None for side in sides]
    one, two = (known[1 - k] if known[k] is None and numberless[k] else known[k] for k in (0, 1))
    return dataclasses.replace(sides[0], form=one), dataclasses.replace(sides[1], form=two)


def _scored(sides: Sequence[Side], form: Form | None, common: Sequence[int]) -> set[int]:
    """Return the docs with a score on the first view in both runs; with an item, for aggregations of items."""
    scored = set(common)
    for side in sides:
        firsts = side.first_views(side.table)
        known = firsts.known if _of_items(form) else np.isfinite(firsts.scores)
        scored &= {
            record.doc_id for record, is_known in zip(side.table.records, known.tolist(), strict=True) if is_known
        }
    return scored


def _of_items(form: Form | None) -> bool:
    """Return whether an aggregation goes by whole items, not by their scores."""
    return form is None or form.name in _COUNTS


def _of_another_metric(sides: Sequence[Side], common: Sequence[int]) -> int:
    """Count the docs in neither table though no call failed: their scorer gave another metric than the task's."""
    absent = {doc_id for doc_id in common if all(doc_id not in side.table.place for side in sides)}
    records = [record for side in sides for record in side.run.records if record.doc_id in absent]
    return len(
        {
            record.doc_id
            for record in records
            if not any(view.error is not None or has_failed(view) for view in record.views)
        }
    )


def _of_broken_clusters(sides: Sequence[Side], scored: set[int]) -> set[int]:
    """Return the docs of each cluster with an unscored doc."""
    docs: set[int] = set()
    for side in sides:
        table = side.table
        labels = (table.groups.clusters if table.groups.clusters is not None else np.arange(len(table))).tolist()
        missing = {label for record, label in zip(table.records, labels, strict=True) if record.doc_id not in scored}
        docs |= {record.doc_id for record, label in zip(table.records, labels, strict=True) if label in missing}
    return docs


def _clusters(sides: Sequence[Side], tables: Sequence[Table], warnings: list[str]) -> Ints | None:
    """Return what is drawn together: the second run's clusters, unless only the first has clusters, or has fewer."""
    labels = [cluster_numbers(sources(table)) if sides[1].kind.folds else table.groups.clusters for table in tables]
    known = [one for one in labels if one is not None]
    if len(known) == 2 and len(np.unique(np.stack(known), axis=1).T) != max(len(np.unique(one)) for one in known):
        warnings.append("the two runs name other clusters of docs: the ones with fewer clusters are used")
    return min(reversed(known), key=lambda one: len(np.unique(one))) if known else None


# --- comparing --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """The docs scored in both runs, in the order of their ids.

    Attributes:
        sides: the two results.
        form: of the aggregation; None where the two differ, or only the run can compute it.
        ids: of the docs.
        tables: the docs of each side.
        clusters: shape (docs,), what is drawn together; None: docs are independent.
        only: ids of docs that only the first, and only the second run asked.
        unscored: number of docs that both asked and that one of them could not score.
        warnings: what a reader must know; grows as numbers are computed.
    """

    sides: tuple[Side, Side]
    form: Form | None
    ids: list[int]
    tables: tuple[Table, Table]
    clusters: Ints | None
    only: tuple[tuple[int, ...], tuple[int, ...]]
    unscored: int
    warnings: list[str]

    @property
    def kind(self) -> Kind:
        """The kind of the second task."""
        return self.sides[1].kind

    @property
    def higher(self) -> bool:
        """Whether higher scores are better."""
        return self.sides[1].table.higher

    @property
    def firsts(self) -> tuple[Chosen, Chosen]:
        """The first views of both sides."""
        one, two = (side.first_views(table) for side, table in zip(self.sides, self.tables, strict=True))
        return one, two

    # --- numbers ----------------------------------------------------------------------------------

    def mcnemar(self) -> McNemar | None:
        """Return McNemar's test of the first views' scores; where lower is better, 0 counts as right."""
        return paired.mcnemar(*(side.scores if self.higher else 1 - side.scores for side in self.firsts))

    def differences(self, draws: int, level: float, seed: int) -> dict[str, Difference]:
        """Return the differences by name.

        Unpaired, from the runs' own numbers, where the aggregation cannot be computed from sums.
        """
        if self.form is None:
            return self._as_run(level)
        options = {"draws": draws, "level": level, "seed": seed}
        name = "tst" if self.kind.folds else "score"
        score = self.of_first_views(self.form, name, **options)
        changes = {"fip": score, name: score} if self.kind.full and not self.kind.folds else {name: score}
        for key in [key for key in self.tables[0].points if key in self.tables[1].points]:
            sets, numbers = {"own": self._at(key)}, {f"{self.kind.name}{end(key)}": Number(("own",))}
            if self.kind.full:
                sets["full"], numbers[f"drop{end(key)}"] = self.firsts, Number(("full", "own"), np.subtract)
            changes |= self._over_common(sets, numbers, options)
        if self.kind.hides:
            changes |= self._over_common(
                {key: self._at(key) for key in REGIONS}, {EXTRA: Number(REGIONS[::-1], np.subtract)}, options
            )
        if self.kind.turns:
            changes |= self._of_orders(self.form, options)
        for number in self.kind.own:
            one, two = (Chosen([None] * len(table), number.values(table)) for table in self.tables)
            changes |= self._over_common({"own": (one, two)}, {number.name: Number(("own",))}, options, forms.MEAN)
        # Before the grids: their own gate decides what of index and gap may be read.
        self._withhold_refused(changes)
        if self.kind.index:
            ours, theirs = (side.grids for side in self.sides)
            if ours != theirs:
                self.warnings.append(
                    f"grids {_listed(ours)} in the first run, {_listed(theirs)} in the second: only those of both are compared"
                )
            for n in self._shared_grids():
                changes |= self._grid(self.form, n, options)
        return changes

    def _of_orders(self, form: Form, options: Mapping[str, Any]) -> dict[str, Difference]:
        """Return the differences over orders of the options, and by the place of the gold, over docs with equal orders."""
        tables = [table.in_orders for table in self.tables]
        ours, theirs = (turn_sets(table, form, options["seed"]) for table in tables)
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
        if form.linear:
            numbers["rotate_mean"] = Number(("mean",))
        changes = self._resampled(form, ends, used, numbers, **options)
        often = int(np.bincount(counts[0][used]).argmax())
        for place in range(1, often + 1):
            one = {"own": (ours[f"turns_{often}_{place}"][0], theirs[f"turns_{often}_{place}"][0])}
            changes |= self._resampled(
                form, one, used & (counts[0] == often), {f"rotate_at{place}": Number(("own",))}, **options
            )
        return changes

    def _at(self, key: Key) -> tuple[Chosen, Chosen]:
        """Return what both sides score at a point."""
        one, two = (table.points[key] for table in self.tables)
        return one, two

    def _over_common(
        self,
        sets: Mapping[str, tuple[Chosen, Chosen]],
        numbers: Mapping[str, Number],
        options: Mapping[str, Any],
        form: Form | None = None,
    ) -> dict[str, Difference]:
        """Return the differences of some numbers over the docs with every score on both sides.

        None where there are no such docs. The form is that of the task's aggregation unless another is given.
        """
        form = form or self.form
        used = np.asarray(
            np.logical_and.reduce([np.isfinite(side.scores) for chosen in sets.values() for side in chosen])
        )
        assert form is not None
        return self._resampled(form, sets, used, numbers, **options) if used.any() else {}

    def of_first_views(self, form: Form, name: str = "score", **options: Any) -> Difference:
        """Return the difference of the scores of the first views."""
        test = self.mcnemar() if form.plain else None
        exact = {} if test is None else {name: test}
        every = np.ones(len(self.ids), bool)
        return self._resampled(form, {"full": self.firsts}, every, {name: Number(("full",))}, exact=exact, **options)[
            name
        ]

    def _shared_grids(self) -> list[int]:
        return [n for n in self.sides[0].grids if n in self.sides[1].grids]

    def _grid(self, form: Form, n: int, options: Mapping[str, Any]) -> dict[str, Difference]:
        """Return MPP, index and gap of a grid, over the docs with all cells scored in both runs."""
        one, two = (table.best(n) for table in self.tables)
        used = one.known & two.known
        records = zip(*(table.records for table in self.tables), strict=True)
        broken = used & np.array([any(failed(record, n) for record in pair) for pair in records], bool)
        # Under an aggregation of whole clusters a lost doc takes its partners along.
        used &= ~self._with_partners(broken)
        docs, index = int(used.sum()), f"{self.kind.index}{n}"
        if docs < len(used):
            words = self.kind.words
            why = f", {int(broken.sum())} of them since a {words.part} could not be scored" if broken.any() else ""
            self.warnings.append(f"{words.grid(n)}: {len(used) - docs} docs are left out{why}")
        numbers = {
            f"mpp{n}": Number(("best",)),
            index: Number(("full", "best"), _index),
            f"gap{n}": Number(("full", "best"), np.subtract),
        }
        changes = self._resampled(form, {"full": self.firsts, "best": (one, two)}, used, numbers, **options)
        self._withhold(changes, n, used)
        return changes | self._corrected(n, docs, options["level"])

    def _with_partners(self, docs: Bools) -> Bools:
        """Return these docs; where the aggregation works on whole clusters, with all docs of their clusters."""
        clusters = next((table.groups.clusters for table in self.tables if table.groups.whole), None)
        return docs if clusters is None else np.asarray(np.isin(clusters, clusters[docs]))

    def _resampled(
        self,
        form: Form,
        sets: Mapping[str, tuple[Chosen, Chosen]],
        used: Bools,
        numbers: Mapping[str, Number],
        **options: Any,
    ) -> dict[str, Difference]:
        """Return the differences of some numbers, all from the same draws of the used docs."""
        rows = {}
        for name, chosen in sets.items():
            one, two = (form.rows(table.picked(side)) for table, side in zip(self.tables, chosen, strict=True))
            rows[name] = _known(one)[used], _known(two)[used]
        clusters = None if self.clusters is None else self.clusters[used]
        scores = np.concatenate([side.scores[used] for chosen in sets.values() for side in chosen])
        # With sampling, estimates of docs may leave the scale, while those of all docs are clipped to it.
        if any(table.sampling.used for table in self.tables):
            low, high = range_of(self.tables)
            scores, form = scores.clip(low, high), form.within(min(low, 0.0), high)
        ours, theirs = (table.sampling.stands_for(2, used) for table in self.tables)
        return paired.differences(
            form, rows, numbers, clusters, ends=ends_of(scores, self._marks()), stands_for=(ours, theirs), **options
        )

    def _marks(self) -> float | None:
        """Return what a doc with full marks scores, as its gold answers say."""
        return max((best for table in self.tables if (best := table.references.highest) is not None), default=None)

    def _corrected(self, n: int, docs: int, level: float) -> dict[str, Difference]:
        """Return the difference of the luck-corrected indices, computed as if each run had asked separate docs.

        Only where both nulls are measured, on the same docs.
        """
        if not all(reading.null_of(side.run.result.grid(n)) == reading.MEASURED for side in self.sides):
            return {}
        names = [f"{side.kind.index}{n}_adj" for side in self.sides]
        first, second = (side.run.result.measures[name] for side, name in zip(self.sides, names, strict=True))
        # The stored indices are of all docs of each run: comparable only where these are the compared docs.
        if not first.n == second.n == docs:
            return {}
        self.warnings.append(
            f"{names[1]}: the runs' own numbers, compared as if on other docs each; the interval is too wide where both share luck"
        )
        return {names[1]: paired.unpaired(first, second, level=level)}

    def _as_run(self, level: float) -> dict[str, Difference]:
        """Return the differences of the runs' stored numbers, computed as if each run had asked separate docs."""
        metric = self.sides[1].run.result.metric
        if self.only[0] or self.only[1]:
            raise RecordError(
                f"{self.sides[1].run.name}: the aggregation of {metric} can only be computed in the run, and the two runs have other docs"
            )
        self.warnings.append(
            f"the aggregation of {metric} can only be computed in the run: the runs' own numbers, compared as if on other docs each; "
            "the intervals are too wide where the same docs are hard for both"
        )
        ours, theirs = (
            {plain_name(name): (name, one) for name, one in side.run.result.measures.items()} for side in self.sides
        )
        starts = (
            "score",
            "fip",
            "mpp",
            "gap",
            *((self.kind.name, "drop") if self.kind.has_points else ()),
            *(("rotate",) if self.kind.turns else ()),
            plain_name(self.kind.index) if self.kind.index else "tst",
        )
        shared = [name for name in ours if name in theirs and name.startswith(starts)]
        shared = [name for name in shared if not any(reading.assumed(side[name][1]) for side in (ours, theirs))]
        return {theirs[name][0]: paired.unpaired(ours[name][1], theirs[name][1], level=level) for name in shared}

    # --- what may be read -------------------------------------------------------------------------

    def _withhold_refused(self, changes: dict[str, Difference]) -> None:
        """Remove differences of curves, hidden boxes and orders where a run gives no value itself."""
        known = [side.run.result.measures for side in self.sides]
        for name, change in changes.items():
            if name in ("fip", "score", "tst"):
                continue
            refused = [
                one.reason if (one := of_run.get(name)) is not None and one.value is None else "" for of_run in known
            ]
            for which, why in zip(WHICH, refused, strict=True):
                if why:
                    changes[name] = _without(change, [not one for one in refused], f"in the {which} run: {why}")
                    break

    def _withhold(self, changes: dict[str, Difference], n: int, used: Bools) -> None:
        """Remove index and gap where a gate fails, and the index where 1 - MPP/FIP has no meaning."""
        index, gap = f"{self.kind.index}{n}", f"gap{n}"
        gates = [self._gate(side, used) for side in self.sides]
        for which, (valid, why) in zip(WHICH, gates, strict=True):
            if valid is None:
                self.warnings.append(
                    f"the gate of the {which} run is {why or 'unknown'}; whether its index may be read is not known"
                )
            elif not valid:
                reason = f"near chance: the gate of the {which} run does not let it be read"
                for name in (index, gap):
                    changes[name] = _without(changes[name], [valid is not False for valid, _ in gates], reason)
                break
        if not self.higher:
            changes[index] = _without(
                changes[index], [False, False], "the metric is better when lower: 1 - MPP/FIP has no meaning"
            )
        elif any(side.settings.signed or side.table.signed for side in self.sides):
            changes[index] = _without(changes[index], [False, False], SIGNED)

    def _gate(self, side: Side, used: Bools) -> tuple[bool | None, str]:
        """Return a run's gate and the reason, computed anew where only some of the run's docs are compared."""
        result = side.run.result
        valid = result.metrics.get("gate")
        if valid == 0 or int(used.sum()) == len(side.table):
            return None if valid is None else bool(valid), result.analysis.gate.reason if result.analysis else ""
        part = side.table.of(doc_id for doc_id, keep in zip(self.ids, used, strict=True) if keep)
        if not len(part) or self.form is None:
            return None, "no doc is compared"
        gate = analyse(part, Logged(side.run, part, self.form, whole=False), side.settings).gate
        return gate.valid, gate.reason

    def marks(self) -> dict[str, tuple[str, ...]]:
        """Name the indices whose luck-corrected value contradicts them in a run (``Compared.marks``)."""
        out = {}
        for n in self._shared_grids():
            grids = (side.run.result.grid(n) for side in self.sides)
            said = [reading.explained(reading.mark_of(grid), reading.null_of(grid)) for grid in grids]
            if any(said):
                out[f"{self.kind.index}{n}"] = tuple(
                    f"of the {which} run is {mark}" for which, mark in zip(WHICH, said, strict=True) if mark
                )
        return out

    # --- what is the same -------------------------------------------------------------------------

    def other_images(self) -> int:
        """Count the docs asked with different images in the two runs; unknown images count as equal."""
        ours, theirs = (side.records for side in self.sides)
        images = [(record.images, theirs[doc_id].images) for doc_id, record in ours.items() if doc_id in theirs]
        return sum(bool(first) and bool(second) and first != second for first, second in images)

    def identical(self) -> bool:
        """Return whether every doc has the same scores in every view."""
        if self.only[0] or self.only[1]:
            return False
        if self.kind.folds:
            return np.array_equal(self.firsts[0].scores, self.firsts[1].scores)
        ours, theirs = (
            [[view.scores for view in record.views] for record in table.in_orders.records] for table in self.tables
        )
        return ours == theirs

    def unchanged(self) -> tuple[str, ...]:
        """Return the numbers of the second run of which no answer changed (``Compared.unchanged``)."""
        if self.only[0] or self.only[1]:
            return ()
        ours, theirs = (side.records for side in self.sides)
        result = self.sides[1].run.result
        names = tuple(result.measures)
        if self.kind.folds:
            return names if all(record.tst == theirs[doc_id].tst for doc_id, record in ours.items()) else ()
        changed = {change for doc_id, record in ours.items() for change in _changes(record, theirs[doc_id])}
        if self.sides[0].run.lent != self.sides[1].run.lent:
            changed.add(("lent", "", ""))
        natives = {metric for record in ours.values() for metric in record.views[0].items}
        primary = result.metric

        def alike(name: str) -> bool:
            metric = name if name in natives else primary
            parts = {"scores", "items"} if metric != primary or _of_items(self.form) else {"scores"}
            sets = {""} if name in (*natives, "score", "fip") else _sets_of(name, result)
            # Chance and numbers of boxes may be made of any view, so any change counts.
            if sets is None:
                return not changed
            return not any(key in sets and (not of or (of == metric and part in parts)) for key, of, part in changed)

        return tuple(name for name in names if alike(name))


def _known(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows of sums, with zeros for docs without a finite row."""
    return np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)


def _sets_of(name: str, result: Result) -> set[str] | None:
    """Return the sets of views behind a number of a grid; None for numbers of no grid."""
    grids, number = catalogue.grids_of(result.kind, result.grids), catalogue.named(result.kind, result.grids).get(name)
    if name not in grids or (number is not None and number.name not in _OF_CELLS):
        return None
    first_view = set() if number is None or number.name == _OF_CELLS[0] else {""}
    return {str(grids[name])} | first_view | ({"lent"} if number is not None and number.words == "corrected" else set())


def _changes(one: Record, other: Record) -> Iterator[tuple[str, str, str]]:
    """Yield the differences of a doc between two runs as (set of views, metric, ``scores`` or ``items``).

    The metric is empty where the views themselves differ, or what excludes them, or what was lent to other docs.
    """
    if one.wrong_image != other.wrong_image or one.lent != other.lent:
        yield "lent", "", ""
    ours, theirs = view_sets(one), view_sets(other)
    if one.asked != other.asked:
        yield from ((key, "", "") for key in {"", *ours, *theirs, *one.asked_grids, *other.asked_grids})
    for key in {*ours, *theirs}:
        views = list(zip(ours.get(key, ()), theirs.get(key, ()), strict=False))
        left_out = one.excluded.get(key), other.excluded.get(key)
        # earlier versions asked the boxes of docs that are left out, too
        if left_out[0] != left_out[1] or (len(ours.get(key, ())) != len(theirs.get(key, ())) and not left_out[0]):
            yield key, "", ""
        for a, b in views:
            for part, ours_of, theirs_of in (("scores", a.scores, b.scores), ("items", a.items, b.items)):
                if ours_of != theirs_of:
                    yield from ((key, m, part) for m in {*ours_of, *theirs_of} if ours_of.get(m) != theirs_of.get(m))


def _index(full: Any, best: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(full) > 0, 1 - best / full, np.nan)


def _without(change: Difference, keep: Sequence[bool], reason: str) -> Difference:
    """Return a difference without a value, with a reason, and only with the readable sides."""
    nothing = change.estimate.without(reason)
    return Difference(
        change.first if keep[0] else None, change.second if keep[1] else None, nothing, None, change.differing
    )


def _listed(grids: Sequence[int]) -> str:
    return " and ".join(map(str, grids)) or "none"
