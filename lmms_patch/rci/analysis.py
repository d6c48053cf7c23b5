"""The analysis of one task, from its records to its numbers: chance, gate, index with interval, luck, cells.

The same code serves the run itself, where the native aggregation can be called, and ``lmms-patch analyze``, which has
only the files of a finished run. It computes; it prints and reads nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.kinds import Key
from lmms_patch.rci.draws import Draws, Native, minus
from lmms_patch.rci.kinds import PARTS
from lmms_patch.rci.kinds.orders import guessed
from lmms_patch.rci.necessity import necessity
from lmms_patch.runs import failures, reading
from lmms_patch.runs.details import Settings
from lmms_patch.runs.numbers import Analysis, Grid, asked_part
from lmms_patch.runs.reading import NOT_CHECKED
from lmms_patch.runs.tables import Chosen, Table
from lmms_patch.stats import asking, forms, gate, intervals, luck, spatial
from lmms_patch.stats.chance import FLOORS, Chance, constants, decide, floors_for, majority_share, pick, published
from lmms_patch.stats.forms import Form, Picked
from lmms_patch.stats.index import Index, band, disagreement, fragmentation, index, relative_change, span
from lmms_patch.stats.resample import Array, Estimate, cluster_numbers, generator

ASSUMED = (
    "the luck-corrected index rests on an assumed null: it may still contain text shortcuts, and must not be ranked by"
)
GOLDS_BEATEN = 0.05
"""The share of docs with an answer above their gold from which on the scorer is assumed to compare with something other than the golds."""
PARTIAL = 0.1
"""The share of docs whose best cell earns some of the marks from which on a warning is due."""
NO_ENDS = "the few docs that are right decide what a full pass would print: type the task's name without _quick, or leave out the budget"
"""Why a quick run has no interval of the full pass."""
GUESSES = 20
"""How many uniform guesses are drawn where their expectation has no closed form (MME, F1)."""


def analyse(
    table: Table,
    native: Native,
    settings: Settings | None = None,
    sets: Sequence[Key] = (),
    blind: Mapping[int, float] | None = None,
    *,
    part: bool = False,
) -> Analysis:
    """Compute all numbers of one task.

    Args:
        table: its records.
        native: its aggregation.
        settings: see ``Settings``.
        sets: the sets of views with an index: grids, or the two sets of boxes (``WrapSpec.sets``).
        blind: by doc id, the scores of a blind run of the same base task.
        part: whether the records are only a part of the task's (``gate.with_looks``).
    """
    return Task(table, native, settings or Settings(), sets, blind, part).analysis()


class Task:
    """An analysis in progress."""

    def __init__(
        self,
        table: Table,
        native: Native,
        settings: Settings,
        sets: Sequence[Key],
        blind: Mapping[int, float] | None,
        part: bool,
    ) -> None:
        self.table, self.native, self.settings, self.blind, self.part = table, native, settings, blind, part
        self.fip = native.whole() if len(table) else None
        self.say = table.kind.words.say
        self.parts = [part for part in PARTS if part.of(table.kind)]
        self.cells = {n: native.over_cells(n) for n in sets}
        self.best = {n: table.best(n) for n in sets}
        self.pointing = self.table.pointing
        self.used = {n: np.array([item is not None for item in self.best[n].items], bool) for n in sets}
        form, self.warnings = self._form()
        self.form = None if form is None else forms.on(form, table.merged)
        self.failed = failures.count(table.logged)
        self.too_many = {
            key: failures.too_many(table.asked_records, key) if self.failed else "" for key in (*sets, *table.points)
        }
        if self.failed and self.failed.many:
            self.warnings.append(self.failed.sentence)
        if table.unscored:
            what = (
                f"the full {table.kind.words.medium}" if table.kind.full or not table.kind.curve else "the first view"
            )
            self.warnings.append(
                f"{len(table.unscored)} of {len(table.asked_records)} docs have no {table.metric} on {what}: the scorer gave none; they are left out"
            )
        self.warnings += filter(None, [failures.unfinished(table.logged), failures.unread(table.logged)])
        self.constants = constants(table.asked)
        self.draws = Draws(self._sets(), table, self.form, native, self.settings)
        self.unread = self._unread()

    def analysis(self) -> Analysis:
        fip = self._estimate("fip", self.fip, None)
        chance = self._chance()
        ceiling = self._ceiling()
        scale = self.settings.scale or ceiling
        judged = self._gate(fip, chance, scale)
        below = self._gold_below()
        by_set = {n: self._grid(n, judged, scale or 1.0) for n in self.cells}
        grids = {n: grid for n, grid in by_set.items() if isinstance(n, int)}
        ends = [grids[n].index.value for n in (min(grids), max(grids))] if len(grids) > 1 else [None, None]
        clusters = self.table.clusters
        found = Analysis(
            metric=self.table.metric,
            n_docs=len(self.table),
            clusters=None if clusters is None or not len(clusters) else int(clusters.max()) + 1,
            form=self.form.name if self.form else None,
            fip=fip,
            chance=chance,
            ceiling=ceiling,
            gold_below=below,
            gate=judged,
            grids=grids,
            relative_change=relative_change(*ends),
            warnings=tuple(self.warnings),
            failed=self.failed,
            asked=asked_part(self.table.records),
            necessity=necessity(
                self.table,
                list(grids),
                self.settings,
                self.blind,
                form=self.form,
                refused=self._without_shares(grids, judged),
            ),
            pointing=self.draws.estimate("pointing", None, self.pointing) if self.pointing.any() else None,
        )
        for part in self.parts:
            found = part.add(self, found, by_set)
        return found

    @staticmethod
    def _without_shares(grids: Mapping[int, Grid], judged: gate.Gate) -> dict[int, str]:
        """Return, by grid, why there are no shares of what docs need: the gate refuses the index, or luck cannot be removed from it."""
        if judged.valid is False:
            return dict.fromkeys(grids, judged.reason)
        luck_of = {n: one.adj for n, one in grids.items() if one.adj is not None and one.adj.null == reading.MEASURED}
        return {n: one.estimate.reason for n, one in luck_of.items() if one.estimate.value is None}

    def nothing(self, why: str) -> Estimate:
        """Return a number without a value, with the reason."""
        return Estimate(None, None, None, None, 0, 0, 0, self.settings.level, why)

    def _gate(self, fip: Estimate, chance: Chance, scale: float | None) -> gate.Gate:
        """Judge whether an index may be read; add warnings where the golds are not read, or the image was not checked.

        Args:
            fip: FIP of all docs.
            chance: the floor.
            scale: the metric's scale; None: unknown.
        """
        delta = (
            self.settings.delta
            if self.settings.delta is not None
            else None
            if scale is None
            else gate.DELTA * abs(scale)
        )
        uniform = chance.floors.get("uniform")
        judged = gate.gate(
            self.fip,
            chance.value,
            se=self._se_above(chance, fip, "fip", "", scale or 1.0, None),
            se_fip=fip.se,
            se_chance=chance.se,
            delta=delta,
            uniform=uniform.value if uniform else None,
            se_uniform=self.draws.estimate_of(minus, ("fip", "uniform")).se if uniform else None,
        )
        if judged.valid is None and chance.reason:
            judged = dataclasses.replace(judged, reason=f"{judged.reason} ({chance.reason})")
        judged = gate.with_looks(judged, self._looks(scale or 1.0, delta or 0.0), part=self.part)
        looks = tuple(dataclasses.replace(one, reason=self.say(one.reason)) for one in judged.looks)
        judged = dataclasses.replace(judged, reason=self.say(judged.reason), looks=looks)
        if self.unread:
            self.warnings.append(self.unread)
            if not self._without_golds and judged.valid is not False:
                judged = dataclasses.replace(
                    judged, valid=None, threshold=None, marginal=False, reason=f"unknown: {self.unread}"
                )
        if not self.table.higher:
            return dataclasses.replace(judged, valid=None, reason="unknown: the metric is better when lower")
        if self.cells and not judged.looks:
            self.warnings.append(self.say(NOT_CHECKED))
        return judged

    def _se_above(
        self, chance: Chance, fip: Estimate, name: str, end: str, scale: float, used: NDArray[np.bool_] | None
    ) -> float | None:
        """Return the standard error of FIP − floor, paired by doc where the floor is an answer to each doc.

        Args:
            chance: the floor.
            fip: FIP over the docs at hand.
            name: name of their set of full images.
            end: suffix in the names of the floors' sets over these docs.
            scale: the metric's scale.
            used: shape (docs,), the docs at hand; None: all.
        """
        if chance.floor in FLOORS:
            se = self.draws.estimate_of(minus, (name, f"{chance.floor}{end}"), None, used).se
        else:
            se = None if chance.se is None or fip.se is None else math.hypot(fip.se, chance.se)
        # A floor without a standard error: a lucky model has a smaller standard error than the one it had to beat.
        return se if se is None or chance.se else max(se, gate.se_at_chance(fip.se, fip.value, chance.value, scale))

    def _looks(self, scale: float, delta: float) -> tuple[gate.Looks, ...]:
        """Judge whether the full image beats a wrong image, and no image where there is a blind run; paired by doc."""
        out = []
        sorts: tuple[tuple[gate.Against, str], ...] = (("wrong images", "wrong"), ("blind", "blind"))
        for against, name in sorts:
            if f"{name}_full" not in self.draws.sets:
                continue
            used = np.isfinite(self.draws.sets[f"{name}_full"][0].scores)
            docs = int(used.sum())
            whole, difference = f"{name}_full", self.draws.estimate_of(minus, (f"{name}_full", name), None, used)
            wanted = gate.wanted(difference, docs, step := abs(scale) / max(1, docs))
            if (
                not used.all() and difference.se and (difference.effective or 0) >= intervals.FEW_CLUSTERS
            ):  # FIP of all docs is more precise
                of_all = self.draws.estimate_of(minus, ("fip", name))
                if of_all.se is not None and of_all.se < difference.se:
                    whole, difference = "fip", of_all
            full, other = (
                self.draws.estimate(whole, used=used if whole != "fip" else None).value,
                self.draws.estimate(name, used=used).value,
            )
            everyone = len(self.table)
            out.append(
                gate.looks(
                    difference,
                    full,
                    other,
                    docs,
                    against=against,
                    everyone=everyone,
                    step=step,
                    delta=delta,
                    wanted=wanted,
                )
            )
        return tuple(out)

    def _estimate(self, name: str, value: float | None, used: NDArray[np.bool_] | None) -> Estimate:
        """Return M of one set with its interval; empty where M itself returned nothing (a doc could not be scored)."""
        estimate = self.draws.estimate(name, value, used)
        return (
            estimate
            if value is not None
            else dataclasses.replace(estimate, value=None, se=None, low=None, high=None, draws=0)
        )

    # --- the aggregation --------------------------------------------------------------------------

    def _form(self) -> tuple[Form | None, list[str]]:
        if self.native.form is not None:
            return forms.FORMS.get(self.native.form), []
        if not len(self.table):
            return None, []
        checks: list[tuple[Picked, float | None]] = [(self._picked(self.table.full, None), self.fip)]
        for n, (full, best, _) in self.cells.items():
            checks += [
                (self._picked(self.table.full, self.used[n]), full),
                (self._picked(self.best[n], self.used[n]), best),
            ]
        known = [check for check in checks if check[1] is not None]
        if not self.native.no_calls:
            known += self._random_checks()
        form, warning = forms.recognise(known, self.settings.form)
        if (
            form is None
            and all(doc.format == "caption" for doc in self.table.asked)
            and forms.fits_nearly(forms.MEAN, known)
        ):
            return forms.MEAN, [
                "intervals, chance and luck rest on per-caption scores, whose mean is within 2 % of the corpus metric"
            ]
        return form, [warning] if warning else []

    def _random_checks(self) -> list[tuple[Picked, float | None]]:
        """Return M of three random halves of the docs (whole clusters): a form may fit all docs by accident.

        A half on which the declared form is not defined is left out: M fails on it too, and would be reported.
        """
        declared = forms.FORMS.get(self.settings.form or "")
        stream = generator(self.settings.seed)
        clusters = self.table.clusters
        places = np.arange(len(self.table)) if clusters is None else clusters
        out = []
        for _ in range(3):
            half = (stream.random(int(places.max()) + 1) < 0.5)[places]
            picked = self._picked(self.table.full, half)
            if half.any() and (declared is None or math.isfinite(forms.value_of(declared, picked))):
                out.append(
                    (
                        picked,
                        self.native.aggregate(
                            [
                                item
                                for item, keep in zip(self.table.full.items, half, strict=True)
                                if keep and item is not None
                            ]
                        ),
                    )
                )
        return [(picked, value) for picked, value in out if value is not None]

    def _picked(self, chosen: Chosen, mask: NDArray[np.bool_] | None) -> Picked:
        picked = self.table.picked(chosen)
        if mask is None:
            return picked
        return picked.where(mask)

    # --- sets of items ----------------------------------------------------------------------------

    def _sets(self) -> dict[str, list[Chosen]]:
        """Return the sets of items: ``fip``; the floors; ``full<n>`` and ``best<n>`` over the docs that grid n uses."""
        sets = {"fip": [self.table.full]}
        sets |= {name: floor for name in FLOORS if (floor := self._floor(name))}
        for n, used in self.used.items():
            sets[f"full{n}"], sets[f"best{n}"] = [self.table.full.where(used)], [self.best[n].where(used)]
            if not used.all():  # then the gate is computed for these docs too
                sets |= {f"{name}{n}": [chosen.where(used) for chosen in sets[name]] for name in FLOORS if name in sets}
        if self.pointing.any():
            sets["pointing"] = [self.table.full.where(self.pointing)]
        if self.cells:
            sets |= self._without_the_image()
        for part in self.parts:
            sets |= part.sets(self)
        return sets

    def _without_the_image(self) -> dict[str, list[Chosen]]:
        """Return the sets of items without the right image.

        They are ``wrong``, the docs that were asked on a wrong image, and ``wrong_full``, the same docs on their own
        image; likewise ``blind`` and ``blind_full``.
        """
        full = self.table.full
        sets: dict[str, list[Chosen]] = {}
        others = {"wrong": self.table.wrong_full}
        if self.blind is not None and self.form is not None and self.form.of_scores:
            others["blind"] = Chosen([None] * len(self.table), self._blind_scores())
        for name, other in others.items():
            both = np.isfinite(other.scores) & np.isfinite(full.scores)
            if both.any():
                sets |= {name: [other.where(both)], f"{name}_full": [full.where(both)]}
        if self.form is None:  # otherwise luck is computed from sums (``luck.measured``)
            for n, used in self.used.items():
                wrong = self.table.wrong_best(n)
                both = used & np.isfinite(wrong.scores) & np.isfinite(self.table.wrong_full.scores)
                if both.any() and self.table.ceiling is not None:
                    sets |= {f"ceiling{n}": [self.table.ceiling.where(used)], f"null_best{n}": [wrong.where(both)]}
                    sets[f"null_full{n}"] = [self.table.wrong_full.where(both)]
        return sets

    def _blind_scores(self) -> Array:
        blind = self.blind or {}
        return np.array([blind.get(record.doc_id, math.nan) for record in self.table.records])

    def _floor(self, name: str) -> list[Chosen]:
        asked = self.table.asked
        if name == "uniform" and not any(doc.of("option") for doc in asked):
            return []
        if name == "uniform" and self.table.kind.every_order:
            scores = self.table.marks * guessed(np.array([doc.options for doc in asked]))
            return [Chosen(self.table.full.items, scores)] if self.form is not None and self.form.linear else []
        of_doc = {id(doc): pick(doc, name, self.constants) for doc in failures.different(asked)}
        picks = [of_doc[id(doc)] for doc in asked]
        if not picks or not all(picks):
            return []
        if name != "uniform" or (self.form is not None and self.form.linear):
            means = {
                key: _mean([one.score for one in answers if one.score is not None]) for key, answers in of_doc.items()
            }
            scores = np.array([means[id(doc)] for doc in asked])
            return [Chosen([answers[0].item for answers in picks], scores)]
        stream = generator(self.settings.seed)
        guesses = [
            [answers[k] for answers, k in zip(picks, stream.integers(0, [len(f) for f in picks]), strict=True)]
            for _ in range(GUESSES)
        ]
        return [Chosen([one.item for one in guess], np.array([one.score for one in guess], float)) for guess in guesses]

    # --- chance and ceiling -----------------------------------------------------------------------

    def _chance(self) -> Chance:
        given = self.settings.chance
        asked = self.table.asked
        every = {name: self.draws.estimate(name) for name in FLOORS}
        floors = {name: estimate for name, estimate in every.items() if estimate.value is not None}
        rule = self._rule()
        if isinstance(given, str):
            return self._majority(floors, rule)
        if given is not None:
            return Chance(float(given), 0.0, "documented", floors, rule, self.constants)
        name, floor = decide(floors, floors_for(asked))
        if floor is None or name is None:
            why = (
                "no doc has a gold answer"
                if not any(doc.gold for doc in asked)
                else "the scorer may not be asked for chance; set 'chance' in a profile"
            )
            return Chance(None, None, None, floors, rule, self.constants, why)
        return Chance(floor.value, floor.se, name, floors, rule, self.constants)

    def _rule(self) -> float | None:
        """Return the published chance rule on the metric's own scale.

        None where the metric is not a mean, or the rule is of one order.
        """
        asked = self.table.asked
        if not asked or self.form is None or not self.form.plain or self.table.kind.every_order:
            return None
        factor = {"percent": 100.0, "sum": float(len(asked))}.get(
            self.form.name, 1.0
        )  # from the mean of scores to the metric
        full = self.settings.scale or self._ceiling()
        rule = published(asked, full / factor if full else 1.0)
        return None if rule is None else factor * rule

    def _majority(self, floors: Mapping[str, Estimate], rule: float | None) -> Chance:
        """Return the share of the most frequent gold as the chance floor; at least 1/2 for yes/no."""
        golds = [doc.gold for doc in self.table.asked if doc.gold is not None]
        if not golds:
            return Chance(None, None, None, floors, rule, self.constants, "no doc has a gold answer")
        scale = self.settings.scale or self._ceiling() or 1.0
        typical = max(sorted(set(golds)), key=golds.count)
        clusters, s = self.table.clusters if len(golds) == len(self.table) else None, self.settings
        se = intervals.mean([gold == typical for gold in golds], clusters, draws=s.draws, level=s.level, seed=s.seed).se
        share = majority_share(Counter(golds))
        even = all(doc.format == "yesno" for doc in self.table.asked)
        value = max(share, 0.5) if even else share
        return Chance(scale * value, None if se is None else scale * se, "majority", floors, rule, {"": typical})

    def _ceiling(self) -> float | None:
        if self.table.ceiling is None:
            return None
        return self._value(self.table.ceiling)

    @property
    def _without_golds(self) -> bool:
        """Whether neither the floor nor the scale comes from golds: both are documented."""
        return isinstance(self.settings.chance, float | int) and self.settings.scale is not None

    def _unread(self) -> str:
        """Describe the evidence that the scorer does not compare with the golds, and the remedy.

        Empty where there is none.

        Chance, scale and luck are computed from golds: where the scorer does not use them, a pure guesser passes the
        gate.
        """
        golds, ceiling = self.table.ceiling, self._ceiling()
        if golds is None or not self.table.higher or all(doc.format == "caption" for doc in self.table.asked):
            return ""
        tiny = 1e-9 * max(1.0, abs(self.fip or 0.0))
        best = np.fmax.reduce([self.table.full_seen.scores, *(self.table.best_seen(n).scores for n in self.best)])
        beaten = int((best > golds.scores + 1e-9).sum())
        if ceiling is not None and ceiling <= 0:
            shown = "the gold answers score 0"
        elif ceiling is not None and self.fip is not None and ceiling < self.fip - tiny:
            shown = f"the gold answers score {ceiling:.4g}, less than the model ({self.fip:.4g})"
        elif beaten > GOLDS_BEATEN * len(golds.scores) and not self.part:
            shown = f"{beaten} of {len(golds.scores)} docs have an answer that scores above their gold"
        else:
            return ""
        s = self.settings
        mend = f"metadata: {{lmms_patch: {{gold: {s.read or 'FIELD'}}}}} in the task file, or gold: {s.read or 'FIELD'} in a profile"
        told = f", but with the field {s.read!r}" if s.read else ""
        return f"{shown}: the scorer does not compare with {s.gold or 'doc_to_target'}{told}; name the field that it compares with ({mend})"

    def _value(self, chosen: Chosen) -> float | None:
        if self.form is not None:
            value = forms.value_of(self.form, self.table.picked(chosen))
            return value if math.isfinite(value) else None
        return self.native.aggregate(list(chosen.items))

    def _gold_below(self) -> int:
        golds = self.table.ceiling
        if golds is None or not len(golds.scores) or all(doc.format == "caption" for doc in self.table.asked):
            return 0
        below = int((golds.scores < golds.scores.max() - 1e-9).sum())
        if below:
            self.warnings.append(
                f"the scorer does not give full marks to the gold answer of {below} of {len(golds.scores)} docs"
            )
        return below

    # --- grids ------------------------------------------------------------------------------------

    def _grid(self, n: Key, judged: gate.Gate, scale: float) -> Grid:
        """Compute the numbers of one set of views.

        Args:
            n: the set.
            judged: the gate of all docs.
            scale: the metric's scale.
        """
        full, best, why = self.cells[n]
        used = self.used[n]
        judged = self._gate_of(n, judged)
        point = (
            Index(None, None, why)
            if why
            else index(full, best, higher_is_better=self.table.higher, signed=self._signed(judged))
        )
        unread = "" if self._without_golds else self.unread
        reason = self.too_many[n] or self.say(point.reason) or (judged.reason if judged.valid is False else unread)
        warnings = self._warnings_of(n, judged)
        count, sets = int(used.sum()), (f"full{n}", f"best{n}")
        nothing = Estimate(None, None, None, None, count, count, 0, self.settings.level, reason)
        value, gap, adj = nothing, nothing, None
        if judged.valid is not False and point.gap is not None and not self.too_many[n]:
            gap = self.draws.estimate_of(minus, sets, point.gap, used)
        if not reason and point.value is not None:
            value = self.draws.estimate_of(lambda full, best: 1 - best / full, sets, point.value, used)
            adj = self._corrected(n, used, scale)
        corrected = None if adj is None else adj.estimate.value
        if adj is not None and adj.null == "assumed" and corrected is not None:
            warnings.append(ASSUMED)
        if adj is not None and adj.tests is not None and corrected is not None and adj.tests.unlike:
            warnings.append(adj.tests.said)
        best_scores, marks = self.table.best_seen(n).scores[used], self.table.marks[used]
        partial = float(np.mean((best_scores > 0) & (best_scores < marks - 1e-9))) if used.any() else 0.0
        if (
            adj is not None
            and adj.null == reading.MEASURED
            and adj.tests is None
            and corrected is not None
            and partial > PARTIAL
        ):
            warnings.append(
                f"partial marks in {partial:.0%} of docs: that wrong {self.table.kind.words.medium}s earn as many by luck is assumed, not tested"
            )
        banded = not self.table.kind.regions  # the papers' bands are of grids
        return Grid(
            n=n,
            excluded=int((~used).sum()),
            fip=full,
            mpp=self._estimate(f"best{n}", best, used),
            index=value,
            gap=gap,
            adj=adj,
            luck_ceiling=self._luck_ceiling(n),
            band=band(value.value) if banded and value.value is not None else None,
            span=span(value.low, value.high) if banded and value.low is not None and value.high is not None else None,
            shares=self._shares(n, used) if isinstance(n, int) else None,
            warnings=tuple(warnings),
            reason=reason,
            mark=disagreement(value.value, corrected)
            if banded and value.value is not None and corrected is not None
            else "",
            full_pass=self._full_pass(n, used, value),
        )

    def _full_pass(self, n: Key, used: NDArray[np.bool_], value: Estimate) -> Estimate | None:
        """Estimate the index that a run over all docs would print, with an interval.

        None if this run asked all docs, or has no index.
        """
        if not self.table.sampled or value.value is None:
            return None
        found = asking.interval(
            self.table.how_asked(n).take(used), level=self.settings.level, most=max(self.table.range_seen[1], 1e-9)
        )
        if not math.isfinite(found.half):
            return dataclasses.replace(value, se=None, low=None, high=None, draws=0, reason=NO_ENDS)
        se = found.half / intervals.normal_quantile((1 + self.settings.level) / 2)
        moved = value.value - found.value  # FIP or MPP may have been moved to the end of the scale
        low, high = found.low + moved, max(min(found.high + moved, 1.0), value.value)  # no index is above 1
        return dataclasses.replace(value, se=se, low=low, high=high, draws=0, reason="")

    def _warnings_of(self, n: Key, judged: gate.Gate) -> list[str]:
        """Return what a reader of one set's numbers must know: cells that are too small, failed calls, an unknown gate."""
        warnings = list(filter(None, [fragmentation(n, self.table.kind.cells(n))])) if isinstance(n, int) else []
        if self.too_many[n]:
            warnings.append(f"no index: {self.too_many[n]}")
        if judged.valid is None:
            warnings.append(f"the gate is {judged.reason}")
        return warnings

    def _corrected(self, n: Key, used: NDArray[np.bool_], scale: float) -> luck.Luck | None:
        """Return the luck-corrected index: by a measured null where there is one, else by an assumed null."""
        if self.unread:
            return None
        measured = self._measured(n, used, scale)
        return self._assumed(n, used, scale) if measured is None else measured

    def _signed(self, judged: gate.Gate) -> bool:
        """Return whether the metric's scale goes below 0: a profile says so, or an answer or the chance floor shows it."""
        return self.settings.signed or self.table.signed or (judged.chance is not None and judged.chance < 0)

    def _gate_of(self, n: Key, judged: gate.Gate) -> gate.Gate:
        """Return the gate of the docs that grid n uses, where it leaves some out: the used docs may be the easy ones."""
        used = self.used[n]
        if judged.valid is not True or used.all() or not used.any():
            return judged
        fip = self.draws.estimate(f"full{n}", self.cells[n][0], used)
        chance = Chance(judged.chance, judged.se_chance, "documented")
        if self.settings.chance is None:
            asked = [doc for doc, keep in zip(self.table.asked, used, strict=True) if keep]
            floors = {name: self.draws.estimate(f"{name}{n}", used=used) for name in FLOORS}
            name, floor = decide(floors, floors_for(asked))
            chance = Chance(None, None, None) if floor is None else Chance(floor.value, floor.se, name)
        se = self._se_above(chance, fip, f"full{n}", str(n), self.settings.scale or self._ceiling() or 1.0, used)
        own = gate.gate(fip.value, chance.value, se=se, se_fip=fip.se, se_chance=chance.se, delta=judged.delta)
        own = dataclasses.replace(own, looks=judged.looks)
        return (
            own
            if own.valid is True
            else dataclasses.replace(
                own, reason=f"of the {int(used.sum())} docs that {self._named(n)} uses: {own.reason}"
            )
        )

    def _named(self, n: Key) -> str:
        return self.table.kind.words.grid(n) if isinstance(n, int) else f"the set of {n} boxes"

    def _of_docs(self, scale: float) -> tuple[Form | None, float]:
        """Return the form and the scale with which luck is computed.

        A sum over docs becomes their mean, since the null has fewer docs.
        """
        if self.form is forms.SUM:
            return forms.MEAN, scale / max(1, len(self.table))
        return self.form, scale

    def _measured(self, n: Key, used: NDArray[np.bool_], scale: float) -> luck.Luck | None:
        """Return the index corrected by a measured null.

        None where no doc was asked on a wrong image, or no gold has a score.
        """
        s = self.settings
        form, scale = self._of_docs(scale)
        if form is None:
            return self._measured_by_calls(n, used, scale)
        scores = self.table.measured_scores(n, form, used)
        if scores is None:
            return None
        clusters = None if self.table.clusters is None else cluster_numbers(self.table.clusters[used].tolist())
        return luck.measured(scores, form.value, clusters, scale=scale, draws=s.draws, level=s.level, seed=s.seed)

    def _measured_by_calls(self, n: Key, used: NDArray[np.bool_], scale: float) -> luck.Luck | None:
        """Return the index corrected by a measured null where M must be called: over all docs together, without answer classes."""
        names = (f"full{n}", f"best{n}", f"ceiling{n}", f"null_full{n}", f"null_best{n}")
        if any(name not in self.draws.sets for name in names) or not len(self.draws.drawn.get(names[0], ())):
            return None
        full, best, ceiling, null_full, null_best = names

        def numbers(found: Mapping[str, Any]) -> luck.Numbers:
            parts = {name: np.atleast_1d(found[name])[:, None] for name in names}
            docs = np.full(parts[full].shape, float(used.sum()))
            return luck.Numbers(parts[full], parts[best], parts[ceiling], parts[null_full], parts[null_best], docs)

        point, drawn = numbers(self.draws.point), numbers(self.draws.drawn)
        found = luck.judge(
            ("all",), point, drawn, *self.draws.counts(used), scale=scale, level=self.settings.level, null="measured"
        )
        return dataclasses.replace(found, asked=int(np.isfinite(self.draws.sets[null_best][0].scores).sum()))

    def _assumed(self, n: Key, used: NDArray[np.bool_], scale: float) -> luck.Luck | None:
        """Return the index corrected by donors' answers; None where there are none."""
        form, scale = self._of_docs(scale)
        if form is None or not form.of_scores:
            return None
        scores = self.table.luck_scores(n, form, used)
        if scores is None:
            return None
        clusters = None if self.table.clusters is None else self.table.clusters[used]
        s = self.settings
        return luck.adjusted(scores, form.value, clusters, scale=scale, draws=s.draws, level=s.level, seed=s.seed)

    def _luck_ceiling(self, n: Key) -> float | None:
        options = np.array([doc.options for doc in self.table.asked if doc.options], float)
        if len(options) != len(self.table) or not len(options):
            return None
        if isinstance(n, int):
            return luck.luck_ceiling(
                guessed(options) if self.table.kind.every_order else 1 / options, self.table.kind.cells(n)
            )
        tries = np.array([len(places) for places in self.table.set_places(n)])
        used = self.used[n]
        return luck.luck_ceiling(1 / options[used], tries[used]) if used.any() else None

    def _shares(self, n: int, used: NDArray[np.bool_]) -> spatial.CellShares | None:
        cells = self.table.cells(n)
        keep = used & np.isfinite(cells).all(axis=1)
        if not keep.any() or cells[keep].min() < 0 or not self.table.higher:
            return None
        clusters = None if self.table.clusters is None else self.table.clusters[keep]
        return spatial.cell_shares(cells[keep], clusters, shape=self.table.kind.shape(n), seed=self.settings.seed)


def _mean(values: Sequence[float]) -> float:
    """Return the mean; ``np.mean`` takes ten times as long for a few numbers."""
    return math.fsum(values) / len(values)
