"""The differences of all numbers of two results, from the same random draws of docs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from lmms_patch.ask.kinds import REGIONS, Kind, end
from lmms_patch.compare.alike import plain_name
from lmms_patch.compare.pair import Pair
from lmms_patch.errors import RecordError
from lmms_patch.rci.kinds.orders import orders_of, turn_sets
from lmms_patch.runs.numbers import EXTRA
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
WHICH = ("first", "second")


def mcnemar(pair: Pair) -> McNemar | None:
    """Return McNemar's test of the first views' scores; where lower is better, 0 counts as right."""
    return paired.mcnemar(*(one.scores if pair.higher else 1 - one.scores for one in pair.firsts))


def first_views(pair: Pair, form: Form, **how: Any) -> Difference:
    """Return the difference of the scores of the first views."""
    test = mcnemar(pair) if form.plain else None
    every = np.ones(len(pair.ids), bool)
    return _drawn(pair, {"own": pair.firsts}, {"": _OWN}, every, form, {"": test} if test else {}, **how)[""]


def changes_of(pair: Pair, **how: Any) -> Changes:
    """Return the differences of all numbers by name, that of the first views first.

    Unpaired, from the runs' own numbers, where the aggregation cannot be computed from sums.

    Args:
        pair: the docs of both.
        how: ``draws``, ``level`` and ``seed`` of ``stats.paired.differences``.
    """
    if pair.form is None:
        return _as_run(pair, how["level"])
    kind, tables = pair.kind, pair.tables
    draw: Callable[..., Changes] = partial(_drawn, pair, **how)
    score = first_views(pair, pair.form, **how)
    changes = Changes()
    for key in [key for key in tables[0].points if key in tables[1].points]:
        sets, numbers = {"own": (tables[0].points[key], tables[1].points[key])}, {f"{kind.name}{end(key)}": _OWN}
        if kind.full:
            sets, numbers = {**sets, "full": pair.firsts}, {**numbers, f"drop{end(key)}": _DROP}
        changes |= draw(sets, numbers)
    if kind.hides:
        hidden = {key: (tables[0].points[key], tables[1].points[key]) for key in REGIONS}
        changes |= draw(hidden, {EXTRA: Number(REGIONS[::-1], np.subtract)})
    if kind.turns:
        changes |= _of_orders(pair, pair.form, draw, how["seed"])
    for number in kind.own:
        one, two = (Chosen(number.values(table)) for table in tables)
        changes |= draw({"own": (one, two)}, {number.name: _OWN}, own_form=forms.MEAN)
    grids = [" and ".join(map(str, side.result.indexed)) or "none" for side in pair.sides]
    if grids[0] != grids[1]:
        pair.warnings.append(
            f"grids {grids[0]} in the first run, {grids[1]} in the second: only those of both are compared"
        )
    changes = {name: _as_defined(pair, name, change) for name, change in changes.items()}
    for n in pair.grids:
        changes |= _of_grid(pair, n, draw, how["level"])
    return {_primary(kind): score, **changes}


def _primary(kind: Kind) -> str:
    return "tst" if kind.folds else "fip" if kind.full else "score"


def _as_defined(pair: Pair, name: str, change: Difference) -> Difference:
    """Return a difference; without a value, and with the reason, where a run gives no such number itself."""
    own = [side.measures.get(plain_name(name)) for side in pair.sides]
    lacks = [one is not None and one.value is None for one in own]
    for which, lacking, one in zip(WHICH, lacks, own, strict=True):
        if lacking and one is not None:
            estimate = change.estimate.without(f"in the {which} run: {one.reason or 'not defined'}")
            first, second = (
                None if gone else end for gone, end in zip(lacks, (change.first, change.second), strict=True)
            )
            return dataclasses.replace(change, first=first, second=second, estimate=estimate, p=None)
    return change


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


def _of_orders(pair: Pair, form: Form, draw: Callable[..., Changes], seed: int) -> Changes:
    """Return the differences over orders of the options, over docs asked in as many orders by both."""
    tables = [table.in_orders for table in pair.tables]
    ours, theirs = (turn_sets(table, form, seed) for table in tables)
    counts = [table.views.per_doc(orders_of(table)) for table in tables]
    sets = {name: (ours[f"turns_{name}"][0], theirs[f"turns_{name}"][0]) for name in ("once", "mean", "every")}
    numbers = {f"rotate_{name}": Number((name,)) for name in ("every", "once")}
    numbers["rotate_lost"] = Number(("once", "every"), np.subtract)
    # The mean over orders is of several draws where the form is not linear, so there is no single difference.
    if form.linear:
        numbers["rotate_mean"] = Number(("mean",))
    return draw(sets, numbers, (counts[0] == counts[1]) & (counts[0] > 0))


def _of_grid(pair: Pair, n: int, draw: Callable[..., Changes], level: float) -> Changes:
    """Return MPP, index and gap of a grid, over the docs with all cells scored in both runs."""
    index = f"{pair.kind.index}{n}"
    best = pair.tables[0].best(n), pair.tables[1].best(n)
    used = best[0].known & best[1].known & ~pair.broken(n)
    if not used.all():
        pair.warnings.append(f"{pair.kind.words.grid(n)}: {int((~used).sum())} docs are left out")
    numbers = {
        f"mpp{n}": Number(("best",)),
        index: Number(("full", "best"), _index),
        f"gap{n}": Number(("full", "best"), np.subtract),
    }
    changes = draw({"full": pair.firsts, "best": best}, numbers, used)
    if index in changes:
        changes[index] = _as_defined(pair, index, changes[index])
    # Luck is measured on other docs in each run, so corrected indices are set side by side only over all docs of both.
    ours, theirs = (side.measures.get(plain_name(f"{index}_adj")) for side in pair.sides)
    both = ours and theirs and ours.value is not None and theirs.value is not None
    if ours and theirs and both and ours.n == theirs.n == int(used.sum()):
        pair.warnings.append(
            f"{index}_adj: the runs' own numbers, compared as if on other docs each; the interval is too wide where both share luck"
        )
        changes[f"{index}_adj"] = paired.unpaired(ours, theirs, level=level)
    return changes


def _as_run(pair: Pair, level: float) -> Changes:
    """Return the differences of the runs' own numbers, computed as if each run had asked separate docs."""
    result, ours, primary = pair.sides[1].result, pair.sides[0].measures, _primary(pair.kind)
    only = f"the aggregation of {result.metric} can only be computed in the run"
    if any(pair.only):
        raise RecordError(f"{result.label}: {only}, and the two runs have other docs")
    pair.warnings.append(
        f"{only}: the runs' own numbers, compared as if on other docs each; the intervals are too wide where the same docs are hard for both"
    )
    score = result.measures[primary]
    # the score has several names
    names = [primary, *(name for name, one in result.measures.items() if plain_name(name) in ours and one is not score)]
    return {name: paired.unpaired(ours[plain_name(name)], result.measures[name], level=level) for name in names}


def _index(full: Any, best: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(full) > 0, 1 - best / full, np.nan)
