"""An analysis in progress: the records of a task, the form of its aggregation, and M of every set of items on each bootstrap draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from string import ascii_uppercase

import numpy as np

from lmms_patch.ask.kinds import Key
from lmms_patch.rci.draws import Draws, Native
from lmms_patch.rci.kinds import PARTS
from lmms_patch.runs import failures
from lmms_patch.runs.details import Settings
from lmms_patch.runs.tables import Table
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import forms, intervals
from lmms_patch.stats.chance import FLOORS, constants, expected, guess, pick
from lmms_patch.stats.forms import Form, Picked
from lmms_patch.stats.resample import Array, Bools, Estimate, generator
from lmms_patch.text import clean

GUESSES = 20
"""How many uniform guesses are drawn where their expectation has no closed form (MME, F1)."""


class Work:
    """The inputs of a task's numbers, prepared once (arguments as in ``analysis.analyse``)."""

    def __init__(
        self,
        table: Table,
        native: Native,
        settings: Settings,
        sets: Sequence[Key],
        blind: Mapping[int, float],
        part: bool,
    ) -> None:
        self.table, self.native, self.settings, self.blind, self.part = table, native, settings, blind, part
        self.fip = native.whole() if len(table) else None
        self.say = table.kind.words.say
        self.parts = [part for part in PARTS if part.of(table.kind)]
        self.cells = {n: native.over_cells(n) for n in sets}
        self.best = {n: table.best(n) for n in sets}
        self.used = {n: self.best[n].known for n in sets}
        form, warnings = self._form()
        self.form = None if form is None else forms.on(form, table.groups.merged)
        self.failed = failures.count(table)
        self.too_many = {key: failures.too_many(table, key) if self.failed else "" for key in (*sets, *table.points)}
        self.notices = [*warnings, self.failed.sentence if self.failed and self.failed.many else ""]
        """What to mind of all numbers; empty ones say nothing."""
        if table.unscored:
            what = (
                f"the full {table.kind.words.medium}" if table.kind.full or not table.kind.curve else "the first view"
            )
            self.notices.append(
                f"{table.unscored} of {table.asked_docs} docs have no {table.metric} on {what}: the scorer gave none; they are left out"
            )
        self.notices += failures.cut_or_unread(table)
        if table.groups.by_image and table.groups.clusters is not None:
            ends = [(one.low, one.high) for one in (self.mean(table.full.scores, together=of) for of in (True, False))]
            widths = [high - low for low, high in ends if low is not None and high is not None]
            wider = f": the score's interval is {widths[0] / widths[1]:.1f} times as wide" if len(widths) > 1 else ""
            self.notices.append(
                f"{len(table)} docs show {table.groups.clusters.max() + 1} different images, so docs of one image are drawn together{wider} "
                "(to draw others together: option cluster)"
            )
        self.constants = constants(table.references.uninformed)
        self.draws = Draws(self._sets(), table, self.form, native, self.settings)

    def nothing(self, why: str) -> Estimate:
        """Return a number without a value, with the reason."""
        return Estimate.nothing(0, why, self.settings.level)

    def estimate(self, name: str, value: float | None, used: Bools | None) -> Estimate:
        """Return M of a set with an interval; empty where M returned nothing (a doc could not be scored)."""
        estimate = self.draws.estimate(name, value, used)
        return estimate if value is not None else estimate.without()

    def mean(self, values: Array, *, together: bool = True) -> Estimate:
        """Return the mean of a value of each doc, shape (docs,); docs with nan are left out.

        Args:
            values: of the docs.
            together: whether docs of a cluster are drawn together.
        """
        known = np.isfinite(values)
        if self.table.sampling.used or not known.any():
            return self.nothing("views were left out" if self.table.sampling.used else "no doc has a value")
        kept, clusters = np.asarray(values, float)[known], self.table.groups.clusters_of(known) if together else None
        return intervals.mean(kept, clusters, ends=intervals.ends_of(kept), **self.settings.how)

    def value(self, chosen: Chosen) -> float | None:
        """Return M of some items; None where M is not defined."""
        if self.form is not None:
            value = forms.value_of(self.form, self.table.picked(chosen))
            return value if math.isfinite(value) else None
        return self.native.aggregate(list(chosen.items or []))

    @cached_property
    def ceiling(self) -> float | None:
        """M of the gold answers; None where not known."""
        golds = self.table.references.ceiling
        return None if golds is None else self.value(golds)

    @property
    def without_golds(self) -> bool:
        """Whether neither the floor nor the scale comes from golds: both are documented."""
        return isinstance(self.settings.chance, float | int) and self.settings.scale is not None

    def _form(self) -> tuple[Form | None, list[str]]:
        if self.native.form is not None:
            return forms.FORMS.get(self.native.form), []
        if not len(self.table):
            return None, []
        whole = self.table.picked(self.table.full)
        checks: list[tuple[Picked, float | None]] = [(whole, self.fip)]
        for n, (full, best, _) in self.cells.items():
            used = self.used[n]
            checks += [(whole.where(used), full), (self.table.picked(self.best[n]).where(used), best)]
        known = [check for check in checks if check[1] is not None]
        # A finished run cannot call the aggregation, so its stored numbers are the only checks. Of captions too: in a
        # half of them words are rarer than in the corpus.
        if not self.native.no_calls and not self.table.references.captions:
            known += self._random_checks()
        form, warning = forms.recognise(known, self.settings.form)
        if form is None and self.table.references.captions and forms.fits_nearly(forms.MEAN, known):
            return forms.MEAN, [
                "intervals and chance rest on per-caption scores, whose mean is within 2 % of the corpus metric"
            ]
        return form, [warning] if warning else []

    def _random_checks(self) -> list[tuple[Picked, float | None]]:
        """Return M of three random halves of the docs (whole clusters): a form may fit all docs by accident.

        A half on which the declared form is not defined is left out: M fails on it too, and would be reported.
        """
        declared = forms.FORMS.get(self.settings.form or "")
        stream = generator(self.settings.seed)
        clusters = self.table.groups.clusters
        places = np.arange(len(self.table)) if clusters is None else clusters
        out = []
        for _ in range(3):
            half = (stream.random(int(places.max()) + 1) < 0.5)[places]
            picked = self.table.picked(self.table.full).where(half)
            if half.any() and (declared is None or math.isfinite(forms.value_of(declared, picked))):
                items = self.table.full.where(half).items or []
                out.append((picked, self.native.aggregate([item for item in items if item is not None])))
        return [(picked, value) for picked, value in out if value is not None]

    def _sets(self) -> dict[str, list[Chosen]]:
        """Return the sets of items: ``fip``; the floors; ``full<n>`` and ``best<n>`` over the docs used by grid n."""
        sets = {"fip": [self.table.full]}
        sets |= {name: floor for name in FLOORS if (floor := self._floor(name))}
        for n, used in self.used.items():
            sets[f"full{n}"], sets[f"best{n}"] = [self.table.full.where(used)], [self.best[n].where(used)]
            # where docs are left out, the gate is computed for the docs that stay, too
            if not used.all():
                sets |= {f"{name}{n}": [chosen.where(used) for chosen in sets[name]] for name in FLOORS if name in sets}
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
        others = {"wrong": self.table.wrong.full}
        if self.blind and self.form is not None and self.form.of_scores:
            others["blind"] = Chosen(np.array([self.blind.get(doc_id, math.nan) for doc_id in self.table.place]))
        for name, other in others.items():
            # The full image counts over the same docs, so that the difference is paired.
            both = np.isfinite(other.scores) & np.isfinite(full.scores)
            if both.any():
                sets |= {name: [other.where(both)], f"{name}_full": [full.where(both)]}
        return sets

    def _floor(self, name: str) -> list[Chosen]:
        """Return what makes up a floor: an answer of each doc, or several guesses; nothing where some doc has none."""
        references = self.table.references
        of, linear = references.uninformed, self.form is not None and self.form.linear
        if name != "uniform":
            answers = pick(of, name, self.constants)
            return [references.at(answers)] if len(answers) and (answers >= 0).all() else []
        if not of.roles["option"].any():
            return []
        scores = expected(of, self.constants)
        if not np.isfinite(scores).all():
            return []
        if linear:
            return [Chosen(scores)]
        # A form that is not linear cannot be averaged doc by doc, so whole guesses are drawn.
        stream = generator(self.settings.seed)
        return [references.at(guess(of, self.constants, stream)) for _ in range(GUESSES)]


_MANY = 10
"""From how many docs on it is worth telling what is the same in all of them."""


def the_same(table: Table) -> tuple[str, ...]:
    """Say what is the same in all docs, and may stand behind the numbers: one gold, one prompt."""
    golds, places, prompts = (table.docs[name].unique().to_list() for name in ("gold", "gold_at", "prompt_digest"))
    if (n := len(table)) < _MANY:
        return ()
    # of options that are not called by letters, the gold may always stand at one place
    gold = golds[0] if len(golds) == 1 else ascii_uppercase[places[0] - 1] if len(places) == 1 and places[0] else None
    option = f"option {gold}" if str(gold) in ascii_uppercase else repr(clean(gold, 40))
    return (
        *[f"the gold is {option} in {n} of {n} docs"] * (gold is not None),
        *["all docs have one prompt: a cell may hide the question itself"]
        * (table.kind.has_index and len(prompts) == 1 and prompts[0] is not None),
    )
