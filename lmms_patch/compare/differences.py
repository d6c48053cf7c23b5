"""The differences of all numbers of two results, from the same random draws of docs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from lmms_patch.ask.kinds import end
from lmms_patch.compare.alike import plain_name
from lmms_patch.compare.pair import Pair
from lmms_patch.errors import RecordError
from lmms_patch.runs.tables import range_of
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import forms, paired
from lmms_patch.stats.forms import Form
from lmms_patch.stats.intervals import ends_of
from lmms_patch.stats.paired import Difference, McNemar, Number
from lmms_patch.stats.resample import Array, Bools

Sets = Mapping[str, tuple[Chosen, Chosen]]
Changes = dict[str, Difference]
_OWN, _DROP = Number(("own",)), Number(("full", "own"), np.subtract)
OF_DOCS = ("chance",)
"""Numbers that say nothing of the model."""


def mcnemar(pair: Pair) -> McNemar | None:
    """Return McNemar's test of the first views' scores; where lower is better, 0 counts as right."""
    return paired.mcnemar(*(one.scores if pair.higher else 1 - one.scores for one in pair.firsts))


def first_views(pair: Pair, form: Form, **how: Any) -> Difference:
    """Return the difference of the scores of the first views."""
    test = mcnemar(pair) if form.plain else None
    every = np.ones(len(pair.ids), bool)
    return _drawn(pair, {"own": pair.firsts}, {"": _OWN}, every, form, {"": test} if test else {}, **how)[""]


def changes_of(pair: Pair, *, level: float, **how: Any) -> Changes:
    """Return the differences of all numbers by name, the first views' difference first.

    Where a run gives no such number itself, a difference has no value. What is not computed doc by doc is the difference
    of the runs' own numbers.

    Args:
        pair: the docs of both.
        level: of the intervals.
        how: ``draws`` of ``stats.paired.differences``.

    Raises:
        RecordError: other docs, and an aggregation that cannot be computed from sums.
    """
    result = pair.sides[1].result
    primary = "tst" if pair.kind.folds else "fip" if pair.kind.full else "score"
    if pair.form is not None:
        changes = {primary: first_views(pair, pair.form, level=level, **how), **_by_doc(pair, level=level, **how)}
    elif any(pair.only):
        raise RecordError(
            f"{result.label}: the aggregation of {result.metric} can only be computed in the run, and the two runs have other docs"
        )
    else:
        scores = (side.measures[primary] for side in pair.sides)
        changes = {primary: paired.unpaired(*scores, level=level)}
    own = []
    for name, theirs in result.measures.items():
        ours = pair.sides[0].measures.get(plain_name(name))
        if ours is None or name in OF_DOCS or theirs is result.measures[primary]:
            continue
        undefined = ours.value is None or theirs.value is None
        # what is of other docs in each run, such as a measured null, is compared only where these are as many
        alike = ours.low is not None is not theirs.low and ours.n == theirs.n
        if undefined if name in changes else alike:
            changes[name] = paired.unpaired(ours, theirs, level=level)
            own += [] if undefined else [name]
    if own or pair.form is None:
        names = ", ".join([primary] * (pair.form is None) + own)
        pair.warnings.append(
            f"{names}: the runs' own numbers, compared as if on other docs each: the interval is too wide"
        )
    return changes


def _by_doc(pair: Pair, **how: Any) -> Changes:
    """Return the differences, paired by doc, of all numbers but the score of the first views."""
    kind, tables = pair.kind, pair.tables
    draw: Callable[..., Changes] = partial(_drawn, pair, **how)
    changes = Changes()
    for key in [key for key in tables[0].points if key in tables[1].points]:
        sets, numbers = {"own": (tables[0].points[key], tables[1].points[key])}, {f"{kind.name}{end(key)}": _OWN}
        if kind.full:
            sets, numbers = {**sets, "full": pair.firsts}, {**numbers, f"drop{end(key)}": _DROP}
        changes |= draw(sets, numbers)
    for number in kind.own:
        one, two = (Chosen(number.values(table)) for table in tables)
        changes |= draw({"own": (one, two)}, {number.name: _OWN}, own_form=forms.MEAN)
    for n in pair.grids:
        changes |= _of_grid(pair, n, draw)
    return changes


def _drawn(
    pair: Pair,
    sets: Sets,
    numbers: Mapping[str, Number],
    used: Bools | None = None,
    own_form: Form | None = None,
    exact: Mapping[str, McNemar] = {},
    **how: Any,
) -> Changes:
    """Return the differences of some numbers, all from the same draws of docs; none without a doc to draw.

    Args:
        pair: the docs of both.
        sets: what both sides score, by name.
        numbers: what to compare, by name.
        used: shape (docs,); None: the docs with every score on both sides.
        own_form: of the numbers; None: of the task's aggregation.
        exact: by name, McNemar's test.
        how: as of ``changes_of``.
    """
    tables, form = pair.tables, own_form or pair.form
    assert form is not None
    sides = [side for chosen in sets.values() for side in chosen]
    used = np.logical_and.reduce([np.isfinite(side.scores) for side in sides]) if used is None else used
    if not used.any():
        return {}

    def rows(side: int, chosen: tuple[Chosen, Chosen], of: Form = form) -> Array:
        found = of.rows(tables[side].picked(chosen[side]))[used]
        return np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)

    # what has a form of its own is no score, so what a gold scores is no end of it
    golds = [] if own_form is forms.MEAN and own_form is not pair.form else [one.references.highest for one in tables]
    marks = max((one for one in golds if one is not None), default=None)
    scores = np.concatenate([side.scores[used] for side in sides])
    # With sampling, estimates of docs may leave the scale, while those of all docs are clipped to it.
    if any(table.sampling.used for table in tables):
        low, high = range_of(tables)
        scores, form = scores.clip(low, high), form.within(min(low, 0.0), high)
    return paired.differences(
        form,
        {name: (rows(0, chosen), rows(1, chosen)) for name, chosen in sets.items()},
        numbers,
        None if pair.clusters is None else pair.clusters[used],
        exact=exact,
        ends=ends_of(scores, marks),
        stands_for=(tables[0].sampling.stands_for(2, used), tables[1].sampling.stands_for(2, used)),
        **how,
    )


def _of_grid(pair: Pair, n: int, draw: Callable[..., Changes]) -> Changes:
    """Return MPP, index and gap of a grid, over the docs with all cells scored in both runs."""
    best = pair.tables[0].best(n), pair.tables[1].best(n)
    used = best[0].known & best[1].known
    if not used.all():
        pair.warnings.append(f"{pair.kind.words.grid(n)}: {int((~used).sum())} docs are left out")
    numbers = {
        f"mpp{n}": Number(("best",)),
        f"{pair.kind.index}{n}": Number(("full", "best"), _index),
        f"gap{n}": Number(("full", "best"), np.subtract),
    }
    return draw({"full": pair.firsts, "best": best}, numbers, used)


def _index(full: Any, best: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(full) > 0, 1 - best / full, np.nan)
