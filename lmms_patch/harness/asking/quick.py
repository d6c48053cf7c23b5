"""Asks a wrapped task no more than it needs: ``stats.asking`` decides, this module scores the answers as they come, and ranks ask in step.

The first rank alone decides, so that all ranks ask the same. In each round every rank asks for what is wanted of its
own docs, and the scores go to all. Answers are the only state: a run that was killed finds them in its journal, and
comes to the same decisions.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from lmms_patch.ask.references import unit_of
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.ask.wrong_images import hashed
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness import compat
from lmms_patch.harness.asking.rounds import (
    Again,
    Place,
    Ranks,
    Round,
    Rounds,
    again_and_again,
    by_view,
    filtered_now,
    place_of,
    repeated,
)
from lmms_patch.harness.names.effects import client_of
from lmms_patch.harness.wrap.calls import CallError
from lmms_patch.harness.wrap.forms import stable_keys
from lmms_patch.harness.wrap.known import AskPlan
from lmms_patch.runs.scoring import Scalar
from lmms_patch.stats import forms
from lmms_patch.stats.asking import Answers, Asking, Docs, Goal, pilot_of
from lmms_patch.stats.forms import Form, Picked
from lmms_patch.stats.intervals import TOO_FEW_CLUSTERS, effective_clusters
from lmms_patch.stats.resample import Ints
from lmms_patch.stats.sampled import Ends
from lmms_patch.text import log

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

    from lmms_patch.harness.wrap.session import Session
    from lmms_patch.harness.wrap.task import WrappedTask

View = tuple[int, int]
"""A doc id, and the number of a view among the doc's."""
LEAST_PILOT = 10
"""How many docs must be asked whole, at least."""
MEANS = (forms.MEAN, forms.PERCENT, forms.SUM)
"""What an aggregation must be to be estimated from a part of the docs."""
_TRIED = 64
"""On how many docs it is tried whether an aggregation is a mean."""


def form_of(session: Session, docs: Sequence[int]) -> Form | None:
    """Return the form of the primary metric's aggregation, found before any model is asked.

    None where it has no known form.

    It is tried on uninformed answers: on golds, on others, and on both together.
    """
    known = session.known
    metric, declared = known.primary, known.spec.options.form(known.primary)
    function = known.native[metric]
    if declared:
        return forms.FORMS[declared]
    if compat.has_stderr(function):
        return forms.MEAN
    # an aggregation that asks somebody must not be tried
    if client_of(function):
        return None
    golds, others = session.references.items(docs[:_TRIED])
    checks: list[tuple[Picked, float | None]] = []
    for some in (golds, others, golds[::2] + others[1::2], others[::3]):
        scores = np.array([math.nan if score is None else score for _, score in some], float)
        if some and np.isfinite(scores).all():
            try:
                checks.append((Picked(scores), session.calls(metric, [item for item, _ in some])))
            except CallError:
                return None
    # values that are all equal would fit any form
    varied = len({value for _, value in checks}) > 1
    return next((form for form in MEANS if varied and forms.fits(form, checks)), None)


def plan(session: Session, docs: Sequence[int]) -> tuple[AskPlan, str]:
    """Return a plan before anything is asked, and why a task cannot be asked in part, as far as known; "" where possible.

    Args:
        session: the parts of the task.
        docs: the ids of the docs that are evaluated.
    """
    known, options, base = session.known, session.known.spec.options, session.known.spec.base
    if known.predict_only:
        return AskPlan(), f"--predict_only scores nothing, and '{'quick' if options.quick else 'exit'}' goes by scores"
    if len(session.filters) > 1:
        return AskPlan(), f"{base} scores each answer in {len(session.filters)} ways (filters), so none decides"
    if not known.higher.get(known.primary, True):
        return AskPlan(), f"lower {known.primary} is better, so it has no index"
    if session.golds.plan is None:
        return AskPlan(), "its docs cannot be read for golds and clusters, so nothing can be left out"
    form = form_of(session, docs)
    if form is None or (options.quick and form not in MEANS):
        told = "no mean of docs' scores" if form is None else f"a {form.name}, no mean of docs' scores"
        so = "estimated from a part of the docs" if options.quick else "known to stay the same without some cells"
        return AskPlan(form), f"{known.primary} is {told}, so it cannot be {so}"
    return AskPlan(form), ""


def check(session: Session, evaluated: Sequence[int], plan: AskPlan, why: str) -> str:
    """Check a task before asking in part; say in a line what the run will cost.

    Args:
        session: the parts of the task.
        evaluated: the ids of the docs that are evaluated.
        plan: what is known of it.
        why: why it cannot be asked so; "" where it can.

    Raises:
        CannotWrapError, OptionError: it cannot; one line that says why, and what to type.
    """
    spec, docs = session.known.spec, len(evaluated)
    options, name, views, pilot = spec.options, spec.name, 1 + sum(cells_of(spec)), pilot_of(spec.options.pilot, docs)
    if why:
        whole = name.removesuffix("_quick") if options.quick else WrapSpec(spec.base, spec.kind, spec.grids).name
        part = f", or set exit: true in a task file to leave out cells alone: {{task: my_{spec.kind.name}, base: {spec.base}, exit: true}}"
        raise CannotWrapError(f"{name}: {why}; type --tasks {whole}{part if options.quick and plan.form else ''}")
    if pilot < min(docs, LEAST_PILOT):
        raise OptionError(
            f"{name}: a pilot of {pilot} docs shows too little of the others; allowed: {LEAST_PILOT} or more"
        )
    null = session.calls_on_wrong_images(evaluated)
    beside = f"; {null:,} more on wrong images" if null else ""
    price = f"{name}: a full pass is {docs * views:,} calls{beside}"
    if not options.quick:
        return f"{price}; {spec.kind.words.parts} that cannot change a number are left out"
    if options.budget is not None and options.budget < (least := pilot * views + null):
        raise OptionError(
            f"{name}: a budget of {options.budget:,} calls is too small: {pilot} docs asked whole are {pilot * views:,} calls"
            f"{f', and those on wrong images {null:,}' if null else ''}; allowed: {least:,} or more, or a smaller 'pilot' or 'null'"
        )
    sizes = Counter(map(unit_of, session.golds.docs))
    # clusters of unequal sizes are worth fewer of equal sizes
    worth = effective_clusters(list(sizes.values()))
    if options.target == "population" and pilot < docs and worth < TOO_FEW_CLUSTERS:
        raise OptionError(
            f"{name}: {len(sizes):,} clusters of docs, by their sizes worth {worth:.1f}, are too few for the interval of 'target: population'; "
            "type target: benchmark (LMMS_PATCH_TARGET=benchmark)"
        )
    until = f"until the 95 % interval of {spec.kind.name.upper()} is ± {options.precision:g} or less"
    most = "" if options.budget is None else f", at most {options.budget:,} calls"
    return f"{price}; asked {until}{most}: {pilot * views:,} calls or more"


def cells_of(spec: WrapSpec) -> tuple[int, ...]:
    """Return how many cells, or segments of a clip, each grid of a task has."""
    return tuple(map(spec.kind.cells, spec.grids))


class Quick:
    """The asking of a wrapped task, on a single rank.

    Args:
        task: the task.
        requests: this rank's requests of the task.
    """

    def __init__(self, task: WrappedTask, requests: Iterable[Instance]) -> None:
        self._task, self._session, self._recorder, self._evaluated = task, task.session, task.recorder, task.evaluated
        self._spec, self._ranks, self._requests = task.spec, Ranks.here(), by_view(requests)
        self._plan, self._form = task.session.known.state.plan, task.session.known.state.plan.form
        self._answered: dict[int, set[int]] = {}
        self._own, self._scale = len(task.table.views), 1.0

    def rounds(self) -> Rounds:
        """Yield the requests of each round; afterwards the task knows how its docs were asked."""
        ranks, every = self._ranks, [one for of_doc in self._requests.values() for one in chain(*of_doc.values())]
        if ranks.world > 1 and not ranks.several:
            log().warning(
                f"{self._spec.name}: the ranks are not connected, so they cannot agree on what to leave out: all is asked"
            )
            yield Round(every)
            return
        # the first rank decides for all
        decided = self._decided() if ranks.first else None
        step, extra, answers = ranks.told(decided and next(decided)), self._on_wrong_images(), dict[Place, Any]()
        while isinstance(step, tuple):
            wanted, planned, told = step
            views = [view for view in wanted if view[0] in self._requests] + extra
            # the views on wrong images are asked in the first round alone
            extra = []
            asked = [request for doc_id, view in sorted(views) for request in self._requests[doc_id][view]]
            answers = yield Round(asked, planned, told)
            scores = {view: score for part in ranks.all(self._scored(asked, answers)) for view, score in part.items()}
            step = ranks.told(decided and decided.send(scores))
        columns = step
        numbers = {doc_id: sorted(self._answered.get(doc_id, ())) for doc_id in self._requests}
        sampled = any(min(one["p_full"], one["p_cells"]) < 1 for one in columns.values())
        plan = dataclasses.replace(self._plan, asked=columns, numbers=numbers, sampled=sampled)
        if not (self._session.asks_again and self._session.times):
            self._task.take(plan)
            return
        self._session.known.state.note(plan=plan)
        again = Again(self._task, every)
        again.take([one for one in every if place_of(one) in answers], answers)
        yield from again_and_again({self._task: again}, first=1)

    # --- the design -------------------------------------------------------------------------------

    def _decided(self) -> Generator[Any, Mapping[View, Scalar], None]:
        """Yield what each round asks, how many calls are expected, and what is known; wants to be sent the scores. At last, how docs were asked."""
        options, null = self._spec.options, self._session.calls_on_wrong_images(self._evaluated)
        design = self._design()
        # wrong images are paid from the same budget
        budget = None if options.budget is None else max(0, options.budget - null)
        asking = Asking(design, Goal(options.precision, options.target, budget) if options.quick else None)
        turns, told, planned = asking.rounds(), "", design.pilot * design.views
        wanted: Any = next(turns, None)
        while wanted is not None:
            views = [(self._evaluated[doc], int(view)) for doc, view in zip(*wanted, strict=True)]
            scores = yield views, planned + null, told
            got = [math.nan if (score := scores.get(view)) is None else score / self._scale for view in views]
            try:
                wanted = turns.send(np.array(got, float))
            except StopIteration:
                wanted = None
            planned, told = asking.expected_calls(), self._told(asking, told)
        yield self._as_columns(asking.answers)

    def _design(self) -> Docs:
        """Return what the design goes by: what is known of the docs before any is asked."""
        session, spec, options = self._session, self._spec, self._spec.options
        docs, keys = session.golds.docs, stable_keys(session.known.plain_rows, options.key)
        units = [unit_of(doc) if doc.cluster is not None else keys[doc.doc_id] for doc in docs]
        # an order by hash, which no order of the rows changes
        names = {
            unit: i
            for i, unit in enumerate(sorted(set(units), key=lambda unit: (hashed(options.seed, "null", unit), unit)))
        }
        clusters = np.array([names[unit] for unit in units], np.intp)
        # a draw by the doc alone, so that every run and every rank draws the same
        # and half a step up, so that no draw is 0
        u = np.array([(hashed(options.seed, "ask", keys[doc.doc_id]) + 0.5) / 2.0**64 for doc in docs])
        scored = [session.references.marks(doc.doc_id) for doc in docs]
        # a gold that earns nothing shows nothing
        marks = np.array([score if score is not None and score > 0 else math.nan for score in scored], float)
        known = marks[np.isfinite(marks)]
        per_doc = {"percent": 100.0, "sum": float(len(docs))}.get(self._form.name if self._form else "", 1.0)
        stated = float(options.scale or per_doc) / per_doc
        # scores are divided by full marks, so that the plan works on 0 to 1
        self._scale = max(float(known.max()), stated if options.scale else 0.0) if len(known) else stated
        return Docs(
            np.argsort(clusters, kind="stable"),
            u,
            clusters,
            marks / self._scale,
            cells_of(spec),
            pilot_of(options.pilot, len(docs)),
            self._kinds(),
            tuple(spec.kind.shape(n) for n in spec.grids),
        )

    def _kinds(self) -> Ints:
        """Return the kind of question of each evaluated doc (its stratum), as numbers, the most frequent kind first."""
        plan = self._session.golds.plan
        assert plan is not None
        names = [plan.strata[doc_id] for doc_id in self._evaluated]
        # by name where two are equally frequent, so that every run has the same order
        often = sorted(Counter(names).items(), key=lambda one: (-one[1], one[0]))
        place = {name: i for i, (name, _) in enumerate(often)}
        return np.array([place[name] for name in names], np.intp)

    def _on_wrong_images(self) -> list[View]:
        """Return the views of the first round that no plan decides on: of wrong images, and of a grey image."""
        later = {doc_id: repeated(self._session, doc_id) for doc_id in self._requests}
        return [
            (doc_id, view)
            for doc_id, views in self._requests.items()
            for view in views
            if view >= self._own and view not in later[doc_id]
        ]

    def _told(self, asking: Asking, before: str) -> str:
        """Return how far the asking is, for the progress line; tell once what to mind."""
        name, options = self._spec.name, self._spec.options
        if asking.looks and not before:
            if not asking.answers.exits:
                log().warning(
                    f"{name}: an answer of the docs asked whole scores above every gold, so all cells of a doc are asked"
                )
            if options.quick and asking.too_many_lost:
                so = "no doc is left out" if options.budget is None else "the numbers are of the others alone"
                log().warning(f"{name}: too many of the docs asked whole have no score, so {so}")
        stem = self._spec.kind.name.upper()
        return ", ".join(f"{stem}{n} {_shown(look)}" for n, look in zip(self._spec.grids, asking.looks, strict=False))

    def _as_columns(self, answers: Answers) -> dict[int, dict[str, Any]]:
        """Return how each doc was asked, as column ``quick`` says, by doc id."""
        out: dict[int, dict[str, Any]] = {}
        for i, doc_id in enumerate(self._evaluated):
            p_full, p_cells = answers.p[i].tolist()
            out[doc_id] = {
                "block": int(answers.block[i]),
                "steps": int(answers.steps[i]),
                "p_full": p_full,
                "p_cells": p_cells,
                "unasked": int(answers.docs.views - answers.asked[i].sum()),
                "expected": [],
            }
            # a doc that was certain to be asked needs no expectation
            if min(p_full, p_cells) < 1:
                out[doc_id]["full"] = self._scale * float(answers.guess[i])
                out[doc_id]["expected"] = [
                    {"set": str(n)}
                    | {
                        name: self._scale * float(of[i, g])
                        for name, of in (("before", answers.before), ("after", answers.after))
                    }
                    for g, n in enumerate(self._spec.grids)
                ]
        return out

    # --- scores -----------------------------------------------------------------------------------

    def _scored(self, asked: Sequence[Instance], answers: Mapping[Place, Any]) -> dict[View, Scalar]:
        """Score the answers of a round as the harness will: with the base's filters and scorer."""
        out: dict[View, Scalar] = {}
        for doc_id, of_doc in filtered_now(self._recorder, asked, answers).items():
            self._answered.setdefault(doc_id, set()).update(of_doc)
            out |= {(doc_id, view): score for view, score in self._recorder.score_now(doc_id, of_doc).items()}
        return out


def _shown(look: Ends) -> str:
    return f"{look.value:+.3f} ± {look.half:.3f}" if math.isfinite(look.half) else f"{look.value:+.3f}"
