"""Two results of one benchmark, doc by doc: what differs between them, from both sample logs. Pure.

Docs are joined by their id. The same draws of docs serve both runs, so that what a doc is like (hard, easy) leaves the difference.
Both sides are computed over the docs that both runs have scored; where those are not all, a side is not the run's own number.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.spec import KINDS
from lmms_patch.compare import magic
from lmms_patch.compare.audit import check_points
from lmms_patch.compare.checks import (
    Sums,
    check_digest,
    check_golds,
    check_result,
    failed,
    in_words,
    load,
    of_docs,
    options_apart,
    sources,
    tst_score,
    view_scores,
    view_sets,
)
from lmms_patch.compare.engine import Compared, plain_name
from lmms_patch.errors import RecordError
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.recompute import Changes, TaskRun, form_of, table_of
from lmms_patch.runs import reading
from lmms_patch.runs.failures import has_failed
from lmms_patch.runs.measures import measures
from lmms_patch.runs.record import Record
from lmms_patch.runs.results import TaskResult
from lmms_patch.runs.run import Run, differences, fingerprint, not_compared, task_label
from lmms_patch.runs.tables import Chosen, Table
from lmms_patch.stats import forms, paired
from lmms_patch.stats.forms import Form
from lmms_patch.stats.index import SIGNED
from lmms_patch.stats.intervals import ends_of
from lmms_patch.stats.paired import Difference, McNemar
from lmms_patch.stats.resample import LEVEL, Array, cluster_numbers, totals

MANY_DOCS, FEWER_DRAWS = 20_000, 2_000
SAME = ("benchmark", "kind", "metric", "filter", "views")
"""What two results must share to be compared at all; other differences are told."""
_OF_DOCS = ("docs", "prompts", "number of docs", "limit", "image sizes", "images")
"""What differs anyway where the docs do."""
_COUNTS = ("f1", "precision", "recall")
_BY_CATEGORY = ("mme", "macro")
WHICH = ("first", "second")
_OF_GRID = re.compile(r"^(mpp|rci|pcri|gap|drop)(\d+)(_adj|_adj_blind)?$")

Bools = NDArray[np.bool_]
Sides = tuple[Chosen, Chosen]


def matches(one: TaskResult, other: TaskResult) -> bool:
    """Whether two results are of one benchmark, asked in one way (rci and pcri are one way)."""
    kinds = [KINDS[result.described["kind"]] for result in (one, other)]
    ways = [kind.index is not None or kind.name for kind in kinds]
    return one.described["base"] == other.described["base"] and ways[0] == ways[1] and one.filter == other.filter


def compare(first: tuple[Run, TaskResult], second: tuple[Run, TaskResult], *, level: float = LEVEL, draws: int = 0, seed: int = 0) -> Compared:
    """The differences of all numbers of two results, paired by doc.

    Args:
        first, second: a result and its run each.
        level: nominal coverage of the intervals, 0..1.
        draws: bootstrap draws; 0: 10,000, and 2,000 for more than 20,000 docs.
        seed: of the bootstrap.

    Raises:
        RecordError: results of different benchmarks, metrics or views; a log that is missing, cut or of another run; other golds.
    """
    for side in (first, second):
        check_result(*side)
    if second[1].described["kind"] == "magic":
        return magic.compare(first, second, level=level, draws=draws, seed=seed)
    prints = [fingerprint(*side) for side in (first, second)]
    apart = differences({key: prints[0][key] for key in SAME}, prints[1])
    if apart:
        raise RecordError(f"{first[1].task} and {second[1].task} cannot be compared: other {', other '.join(in_words(apart))}")
    both = _Both(load(*first, lent=False), load(*second, lent=False))
    others = bool(both.only[0] or both.only[1])
    check_digest(second[1].task, prints, (first[1], second[1]), others)
    draws = draws or (FEWER_DRAWS if len(both.ids) > MANY_DOCS else paired.DRAWS)
    found = both.differences(draws, level, seed)
    settings = in_words(differences(prints[0], prints[1], (*SAME, *(_OF_DOCS if others else ()))))
    if others and (other_images := both.other_images()):
        settings.append(f"images (of {other_images} of the docs)")
    unknown = not_compared(*prints)
    return Compared(
        task_label(*second),
        second[1].described["metric"],
        len(both.ids),
        *both.only,
        both.unscored,
        found,
        both.mcnemar(),
        tuple(options_apart(one, first[1].described, second[1].described) for one in settings),
        tuple(dict.fromkeys([*both.warnings, *([unknown] if unknown else [])])),
        second[1].described["base"],
        second[1].described["kind"],
        both.index,
        both.higher,
        None if both.clusters is None else int(both.clusters.max()) + 1,
        draws,
        both.identical(),
        marks=both.marks(),
        unchanged=both.unchanged(),
    )


def gain(blind: tuple[Run, TaskResult], full: tuple[Run, TaskResult]) -> Difference | None:
    """Return what the image adds to the score: a task's first view less its blind task's, paired by doc, over the docs that both scored.

    None where the aggregation cannot be computed from sums over docs.

    Raises:
        RecordError: a log that is missing, cut or of another run; other docs or golds.
    """
    both = _Both(load(*blind, lent=False), load(*full, lent=False))
    if both.only[0] or both.only[1]:
        raise RecordError(f"{full[1].task}: the blind run was asked other docs")
    return None if both.form is None else both.first_views(both.form, "score", {})["score"]


class _Both:
    """The docs that both have, as arrays in one order."""

    def __init__(self, first: TaskRun, second: TaskRun) -> None:
        self.runs = (first, second)
        kinds = [KINDS[run.result.described["kind"]] for run in self.runs]
        self.index, self.folds, self.has_full = kinds[1].index, kinds[1].folds, kinds[1].full
        ids = [{record.doc_id for record in run.records} for run in self.runs]
        self.only = tuple(sorted(ids[0] - ids[1])), tuple(sorted(ids[1] - ids[0]))
        self.warnings: list[str] = []
        self.unscored = 0
        common = sorted(ids[0] & ids[1])
        if not common:
            raise RecordError(f"{first.result.task}: the two runs have no doc in common; both must be asked the same docs")
        check_golds(first, second, set(common))
        found_tables = [table_of(run, Changes()) for run in self.runs]
        self.settings, self.whole_runs = [one[0] for one in found_tables], [one[2] for one in found_tables]
        self.higher = self.whole_runs[1].higher
        found = self._forms()
        self.form: Form | None = found[0] if found[0] is found[1] else None
        for run, table, form in zip(self.runs, self.whole_runs, found, strict=True):
            self.warnings += check_points(run, table, form, run.result.described["grids"] if self.index else (), folds=bool(self.folds))
        self.ids = self._scored(common)
        if not self.ids:
            raise RecordError(f"{first.result.task}: no doc is scored in both runs")
        self.tables = tuple(of_docs(table, self.ids) for table in self.whole_runs)
        self._check_categories()
        self.full = self._firsts(self.tables)
        self.clusters = self._clusters()

    def _forms(self) -> list[Form | None]:
        """Of each run; a run without a number of its own, of which some docs were not scored, could not check it: then the other's."""
        if self.folds:
            return [forms.MEAN, forms.MEAN]
        sides = list(zip(self.runs, self.whole_runs, self.settings, strict=True))
        found = [form_of(run, table, settings, run.result.described["grids"] if self.index else ()) for run, table, settings in sides]
        return [
            found[1 - k] if found[k] is None and run.result.metrics.get(table.metric) is None else found[k] for k, (run, table, _) in enumerate(sides)
        ]

    # --- which docs -------------------------------------------------------------------------------

    def _scored(self, common: list[int]) -> list[int]:
        """The docs that both have scored; whole clusters where the aggregation works on those."""
        firsts = self._firsts(self.whole_runs)
        counted = self.form is None or self.form.name in _COUNTS  # then items count, not their scalars
        scored, other = set(common), set()
        for run, table, chosen in zip(self.runs, self.whole_runs, firsts, strict=True):
            known = np.array([item is not None for item in chosen.items]) if counted else np.isfinite(chosen.scores)
            scored &= {record.doc_id for record, is_known in zip(table.records, known.tolist(), strict=True) if is_known}
            broken = {record.doc_id for record in run.records if any(view.error is not None or has_failed(view) for view in record.views)}
            other |= {doc_id for doc_id in common if doc_id not in table.place and doc_id not in broken}
        neither = {doc_id for doc_id in other if all(doc_id not in table.place for table in self.whole_runs)}  # docs of another metric
        self.unscored = len(common) - len(scored) - len(neither)
        if any(table.whole for table in self.whole_runs):
            kept = scored - self._halved(scored)
            if len(kept) < len(scored):
                self.warnings.append(f"{len(scored) - len(kept)} docs are left out: not all docs of their cluster are scored in both runs")
            scored = kept
        return [doc_id for doc_id in common if doc_id in scored]

    def _halved(self, scored: set[int]) -> set[int]:
        """The docs of clusters of which not all are among the scored ones."""
        halved: set[int] = set()
        for table in self.whole_runs:
            labels = (table.clusters if table.clusters is not None else np.arange(len(table))).tolist()
            missing = {label for record, label in zip(table.records, labels, strict=True) if record.doc_id not in scored}
            halved |= {record.doc_id for record, label in zip(table.records, labels, strict=True) if label in missing}
        return halved

    def _firsts(self, tables: Sequence[Table]) -> Sides:
        """The item of each doc at the first view; of a text-only cross-validation its score, mean over fold seeds."""
        if not self.folds:
            return tables[0].full, tables[1].full
        one, two = (Chosen([None] * len(table), np.array([tst_score(record) for record in table.records], float)) for table in tables)
        return one, two

    def _clusters(self) -> NDArray[np.intp] | None:
        """What is drawn together: by the second run's labels, unless only the first has some, or has fewer clusters."""
        labels = [cluster_numbers(sources(table)) if self.folds else table.clusters for table in self.tables]
        known = [one for one in labels if one is not None]
        if len(known) == 2 and len(np.unique(np.stack(known), axis=1).T) != max(len(np.unique(one)) for one in known):
            self.warnings.append("the two runs name other clusters of docs: the ones with fewer clusters are used")
        return min(reversed(known), key=lambda one: len(np.unique(one))) if known else None

    def _check_categories(self) -> None:
        if self.form is None or self.form.name not in _BY_CATEGORY:
            return
        if self.tables[0].categories != self.tables[1].categories:
            raise RecordError(f"{self.runs[1].name}: {self.tables[1].metric} is made of categories, and the two runs put docs in other categories")

    def other_images(self) -> int:
        """Count the docs that both asked with other images; a record of an earlier version does not say."""
        ours, theirs = ({record.doc_id: record.images for record in run.records} for run in self.runs)
        return sum(bool(seen) and bool(theirs.get(doc_id)) and seen != theirs[doc_id] for doc_id, seen in ours.items())

    def identical(self) -> bool:
        """Whether every doc has the same scores in every view."""
        if self.only[0] or self.only[1]:
            return False
        if self.folds:
            return np.array_equal(self.full[0].scores, self.full[1].scores)
        return all(view_scores(a) == view_scores(b) for a, b in zip(self.tables[0].records, self.tables[1].records, strict=True))

    def unchanged(self) -> tuple[str, ...]:
        """Return the numbers of the second run of which no answer changed (``Compared.unchanged``)."""
        if self.only[0] or self.only[1]:
            return ()
        ours, theirs = ({record.doc_id: record for record in run.records} for run in self.runs)
        pairs = [(record, theirs[doc_id]) for doc_id, record in ours.items()]
        names = tuple(measures(self.runs[1].result))
        if self.folds:
            return names if all(one.tst == other.tst for one, other in pairs) else ()
        changed = {change for pair in pairs for change in _changes(*pair)}
        if self.runs[0].lent != self.runs[1].lent:
            changed.add(("lent", "", ""))
        primary = self.runs[1].result.described["metric"]
        exact = self.form is None or self.form.name in _COUNTS  # then items count, not their scalars
        natives = {metric for record in ours.values() for metric in record.views[0].items}

        def alike(name: str) -> bool:
            metric = name if name in natives else primary
            where = {"scores", "items"} if exact or metric != primary else {"scores"}
            if name in (*natives, "score", "fip"):
                made_of = {""}
            elif match := _OF_GRID.match(name):
                made_of = {match[2], *(() if match[1] in ("mpp", "drop") else ("",)), *(("lent",) if match[3] else ())}
            else:  # of boxes, chance: whatever changed
                return not changed
            return not any(key in made_of and (not of or (of == metric and part in where)) for key, of, part in changed)

        return tuple(name for name in names if alike(name))

    def marks(self) -> dict[str, tuple[str, ...]]:
        """Return how corrected indices contradict those as published (``Compared.marks``), by the runs' own numbers."""
        found = {
            f"{self.index}{n}": tuple(
                f"of the {which} run is {line}" for which, grid in zip(WHICH, self._stored(n), strict=True) if (line := _mark(grid))
            )
            for n in self._shared_grids()
        }
        return {name: lines for name, lines in found.items() if lines}

    def _stored(self, n: int) -> list[Mapping[str, Any]]:
        """Return what the two runs store of a grid."""
        return [((run.result.details.get("analysis") or {}).get("grids") or {}).get(str(n)) or {} for run in self.runs]

    def _shared_grids(self) -> list[int]:
        ours, theirs = (run.result.described["grids"] if self.index else () for run in self.runs)
        return [n for n in ours if n in theirs]

    # --- numbers ----------------------------------------------------------------------------------

    def mcnemar(self) -> McNemar | None:
        """By the scores of the first view; for a metric that is better when lower, 0 is right."""
        return paired.mcnemar(*(side.scores if self.higher else 1 - side.scores for side in self.full))

    def differences(self, draws: int, level: float, seed: int) -> dict[str, Difference]:
        """By name; unpaired, from the runs' own numbers, where the aggregation cannot be computed from sums."""
        if self.form is None:
            return self._as_run(level)
        options = {"draws": draws, "level": level, "seed": seed}
        found = self.first_views(self.form, "tst" if self.folds else "score", options)
        if self.has_full and not self.folds:
            found = {"fip": found["score"], **found}
        for n in self._grids():
            found |= self._grid(self.form, n, options)
        return found

    def first_views(self, form: Form, name: str, options: Mapping[str, Any]) -> dict[str, Difference]:
        """Return the difference of the scores of the first views, under a name."""
        test = self.mcnemar() if form.plain else None
        tests = {} if test is None else {name: test}
        every = np.ones(len(self.ids), bool)
        return self._resampled(form, {"full": self.full}, every, {name: (("full",), _same)}, {**options, "tests": tests})

    def _grids(self) -> list[int]:
        if not self.index:
            return []
        ours, theirs = (run.result.described["grids"] for run in self.runs)
        if ours != theirs:
            self.warnings.append(f"grids {_listed(ours)} in the first run, {_listed(theirs)} in the second: only those of both are compared")
        return self._shared_grids()

    def _grid(self, form: Form, n: int, options: Mapping[str, Any]) -> dict[str, Difference]:
        """MPP, index and gap of one grid, over the docs that both use and of which all cells are scored."""
        places = [table.best_places(n) for table in self.tables]
        one, two = (table.at(place) for table, place in zip(self.tables, places, strict=True))
        used = np.array([a is not None and b is not None for a, b in zip(one.items, two.items, strict=True)], bool)
        pairs = zip(*(table.records for table in self.tables), strict=True)
        broken = used & np.array([any(failed(record, n) for record in pair) for pair in pairs], bool)
        used &= ~self._with_partners(broken)
        out = len(used) - int(used.sum())
        if out:
            why = f", {int(broken.sum())} of them since a cell could not be scored" if broken.any() else ""
            self.warnings.append(f"grid {n}: {out} docs are left out{why}")
        wanted: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
            f"mpp{n}": (("best",), _same),
            f"{self.index}{n}": (("full", "best"), _index),
            f"gap{n}": (("full", "best"), np.subtract),
        }
        found = self._resampled(form, {"full": self.full, "best": (one, two)}, used, wanted, options)
        return self._gated(found, n, used) | self._corrected(n, int(used.sum()), options["level"])

    def _corrected(self, n: int, docs: int, level: float) -> dict[str, Difference]:
        """Return the difference of the corrected indices: the runs' own, as if on other docs each. Only of two measured nulls and the same docs."""
        names = [f"{KINDS[run.result.described['kind']].index}{n}_adj" for run in self.runs]
        if not all(reading.null_of(grid) == reading.MEASURED for grid in self._stored(n)):
            return {}
        first, second = (measures(run.result)[name] for run, name in zip(self.runs, names, strict=True))
        if not first.n == second.n == docs:
            return {}
        self.warnings.append(f"{names[1]}: the runs' own numbers, compared as if on other docs each; the interval is too wide where both share luck")
        return {names[1]: paired.unpaired(first, second, level=level)}

    def _with_partners(self, docs: Bools) -> Bools:
        """These docs, with all of their clusters where the aggregation works on those."""
        clusters = next((table.clusters for table in self.tables if table.whole), None)
        return docs if clusters is None else np.asarray(np.isin(clusters, clusters[docs]))

    def _resampled(
        self,
        form: Form,
        sets: Mapping[str, Sides],
        used: Bools,
        wanted: Mapping[str, tuple[tuple[str, ...], Callable[..., Any]]],
        options: Mapping[str, Any],
    ) -> dict[str, Difference]:
        """Differences of functions of M of some sets of items, all from the same draws of the used docs."""
        clusters = None if self.clusters is None else self.clusters[used]
        rows = {name: [self._rows(form, table, one)[used] for table, one in zip(self.tables, sides, strict=True)] for name, sides in sets.items()}
        width, docs = next(iter(rows.values()))[0].shape[1], int(used.sum())
        at = {name: 2 * width * k for k, name in enumerate(rows)}
        apart = {name: np.any(~np.isclose(totals(a, clusters), totals(b, clusters), rtol=0, atol=1e-12), axis=1) for name, (a, b) in rows.items()}

        def both(names: tuple[str, ...], number: Callable[..., Any]) -> Callable[[Array], tuple[Any, Any]]:
            def of(sums: Array) -> tuple[Any, Any]:
                sides = [[form.of_weighted(sums[..., a : a + width], docs) for a in (at[name] + k * width for name in names)] for k in (0, 1)]
                return number(*sides[0]), number(*sides[1])

            return of

        statistics = {name: both(*how) for name, how in wanted.items()}
        differing = {name: int(np.any([apart[one] for one in names], axis=0).sum()) for name, (names, _) in wanted.items()}
        stacked = np.hstack([side for sides in rows.values() for side in sides])
        ends = ends_of(np.concatenate([one.scores[used] for sides in sets.values() for one in sides]), self._marks())
        extremes = {}
        for name, (names, _) in wanted.items():  # zeros in the columns of sets that the number is not made of
            places = [list(rows).index(one) for one in names]
            unseen = form.unseen(ends, width, 2 * len(names))
            extremes[name] = np.zeros((len(unseen), stacked.shape[1]))
            for k, place in enumerate(places):
                extremes[name][:, 2 * width * place : 2 * width * (place + 1)] = unseen[:, 2 * width * k : 2 * width * (k + 1)]
        return paired.differences(stacked, statistics, clusters, extremes=extremes, whole=form.whole, **options, differing=differing)

    def _marks(self) -> float | None:
        """What a doc with full marks scores, as its gold answers say."""
        found = [table.ceiling.scores for table in self.tables if table.ceiling is not None]
        return float(np.nanmax(np.concatenate(found))) if found and np.isfinite(np.concatenate(found)).any() else None

    def _rows(self, form: Form, table: Table, chosen: Chosen) -> Array:
        """What the form sums; 0 where there is nothing."""
        out = form.rows(table.picked(chosen))
        return np.where(np.isfinite(out).all(axis=1, keepdims=True), out, 0.0)

    # --- what may be read -------------------------------------------------------------------------

    def _gated(self, found: dict[str, Difference], n: int, used: Bools) -> dict[str, Difference]:
        """Without index and gap where a gate does not let them be read, and without the index where it has no meaning."""
        index, gap = f"{self.index}{n}", f"gap{n}"
        gates = [self._gate(k, used) for k in (0, 1)]
        for which, (valid, why) in zip(WHICH, gates, strict=True):
            if valid is None:
                self.warnings.append(f"the gate of the {which} run is {why or 'unknown'}; whether its index may be read is not known")
            elif not valid:
                reason = f"near chance: the gate of the {which} run does not let it be read"
                found[index], found[gap] = (_without(found[name], [valid is not False for valid, _ in gates], reason) for name in (index, gap))
                break
        if not self.higher:
            found[index] = _without(found[index], [False, False], "the metric is better when lower: 1 - MPP/FIP has no meaning")
        elif any(settings.signed or table.signed for settings, table in zip(self.settings, self.whole_runs, strict=True)):
            found[index] = _without(found[index], [False, False], SIGNED)
        return found

    def _gate(self, k: int, used: Bools) -> tuple[bool | None, str]:
        """Of one run: its own gate, asked again of the compared docs where those are not all."""
        run, table = self.runs[k], self.whole_runs[k]
        own, stored = run.result.metrics.get("gate"), (run.result.details.get("analysis") or {}).get("gate") or {}
        if own == 0 or int(used.sum()) == len(table):
            return None if own is None else bool(own), stored.get("reason", "")
        part = of_docs(table, [doc_id for doc_id, keep in zip(self.ids, used, strict=True) if keep])
        if not len(part) or self.form is None:
            return None, "no doc is compared"
        asked = analyse(part, Sums(part, self.form), self.settings[k]).gate
        return asked.valid, asked.reason

    def _as_run(self, level: float) -> dict[str, Difference]:
        metric = self.runs[1].result.described["metric"]
        if self.only[0] or self.only[1]:
            raise RecordError(f"{self.runs[1].name}: the aggregation of {metric} can only be computed in the run, and the two runs have other docs")
        self.warnings.append(
            f"the aggregation of {metric} can only be computed in the run: the runs' own numbers, compared as if on other docs each; "
            "the intervals are too wide where the same docs are hard for both"
        )
        ours, theirs = ({plain_name(name): (name, one) for name, one in measures(run.result).items()} for run in self.runs)
        starts = ("score", "fip", "mpp", "gap", "rci" if self.index else "tst")
        shared = [name for name in ours if name in theirs and name.startswith(starts)]
        shared = [name for name in shared if not any(reading.assumed(side[name][1]) for side in (ours, theirs))]
        return {theirs[name][0]: paired.unpaired(ours[name][1], theirs[name][1], level=level) for name in shared}


def _changes(one: Record, other: Record) -> Iterator[tuple[str, str, str]]:
    """Yield what is not the same of one doc in two runs: (set of views, metric, scores or items).

    The metric is empty where the views themselves, what excludes them, or what was lent to other docs, are not the same.
    """
    if one.wrong_image != other.wrong_image or one.lent != other.lent:
        yield "lent", "", ""
    ours, theirs = view_sets(one), view_sets(other)
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


def _mark(grid: Mapping[str, Any]) -> str:
    return reading.explained(reading.mark_of(grid), reading.null_of(grid))


def _same(value: Any) -> Any:
    return value


def _index(full: Any, best: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(full) > 0, 1 - best / full, np.nan)


def _without(found: Difference, keep: Sequence[bool], reason: str) -> Difference:
    """No difference, for a reason; only the sides that may be read."""
    nothing = dataclasses.replace(found.estimate, value=None, se=None, low=None, high=None, draws=0, reason=reason)
    return Difference(found.first if keep[0] else None, found.second if keep[1] else None, nothing, None, found.differing)


def _listed(grids: Sequence[int]) -> str:
    return " and ".join(map(str, grids)) or "none"
