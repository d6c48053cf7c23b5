"""The differences of all numbers of two results, from the same random draws of docs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from lmms_patch.ask.kinds import REGIONS, end
from lmms_patch.compare.alike import plain_name
from lmms_patch.compare.pair import Pair, Side
from lmms_patch.errors import RecordError
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.draws import ByForm
from lmms_patch.rci.kinds.orders import orders_of, turn_sets
from lmms_patch.runs.numbers import EXTRA
from lmms_patch.runs.tables import range_of
from lmms_patch.runs.views import Chosen
from lmms_patch.stats import forms, paired
from lmms_patch.stats.forms import Form
from lmms_patch.stats.index import SIGNED
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
    """Return the differences of all numbers by name.

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
    named = ("tst",) if kind.folds else ("fip", "score") if kind.full else ("score",)
    changes: Changes = dict.fromkeys(named, score)
    points = {key: (tables[0].points[key], own) for key, own in tables[1].points.items() if key in tables[0].points}
    for key, both in points.items():
        sets, numbers = {"own": both}, {f"{kind.name}{end(key)}": _OWN}
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
    # where a run gives no value itself, there is no difference
    for name in changes.keys() - {*named}:
        own = [side.result.measures.get(name) for side in pair.sides]
        why = [one.reason or "not defined" if one is not None and one.value is None else "" for one in own]
        if any(why):
            which = int(not why[0])
            said = f"in the {WHICH[which]} run: {why[which]}"
            changes[name] = _without(changes[name], [not one for one in why], said)
    grids = [" and ".join(map(str, side.result.indexed)) or "none" for side in pair.sides]
    if grids[0] != grids[1]:
        pair.warnings.append(
            f"grids {grids[0]} in the first run, {grids[1]} in the second: only those of both are compared"
        )
    for n in pair.grids:
        changes |= _of_grid(pair, n, draw, how["level"])
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


def _of_orders(pair: Pair, form: Form, draw: Callable[..., Changes], seed: int) -> Changes:
    """Return the differences over orders of the options, and by the place of the gold, over docs with equal orders."""
    tables = [table.in_orders for table in pair.tables]
    ours, theirs = (turn_sets(table, form, seed) for table in tables)
    counts = [table.views.per_doc(orders_of(table)) for table in tables]
    used = (counts[0] == counts[1]) & (counts[0] > 0)
    if not used.any():
        return {}
    sets = {name.removeprefix("turns_"): (ours[name][0], theirs[name][0]) for name in ours if name in theirs}
    numbers = {f"rotate_{name}": Number((name,)) for name in ("every", "once")}
    numbers["rotate_lost"] = Number(("once", "every"), np.subtract)
    # The mean over orders is of several draws where the form is not linear, so there is no single difference.
    if form.linear:
        numbers["rotate_mean"] = Number(("mean",))
    changes = draw({name: sets[name] for name in ("once", "mean", "every")}, numbers, used)
    often = int(np.bincount(counts[0][used]).argmax())
    for place in range(1, often + 1):
        own = {"own": sets[f"{often}_{place}"]}
        changes |= draw(own, {f"rotate_at{place}": _OWN}, used & (counts[0] == often))
    return changes


def _of_grid(pair: Pair, n: int, draw: Callable[..., Changes], level: float) -> Changes:
    """Return MPP, index and gap of a grid, over the docs with all cells scored in both runs."""
    index, gap = f"{pair.kind.index}{n}", f"gap{n}"
    best, broken = (pair.tables[0].best(n), pair.tables[1].best(n)), pair.broken(n)
    known = best[0].known & best[1].known
    used, lost = known & ~broken, int((known & broken).sum())
    if not used.all():
        words = pair.kind.words
        why = f", {lost} of them since a {words.part} could not be scored" if lost else ""
        pair.warnings.append(f"{words.grid(n)}: {int((~used).sum())} docs are left out{why}")
    numbers = {
        f"mpp{n}": Number(("best",)),
        index: Number(("full", "best"), _index),
        gap: Number(("full", "best"), np.subtract),
    }
    changes = draw({"full": pair.firsts, "best": best}, numbers, used)
    if not changes:
        return {}
    gates = {which: _gate(pair, side, used) for which, side in zip(WHICH, pair.sides, strict=True)}
    readable = [valid is not False for valid, _ in gates.values()]
    for which, (valid, why) in gates.items():
        if valid is None:
            said = f"the gate of the {which} run is {why or 'unknown'}; whether its index may be read is not known"
            pair.warnings.append(said)
    if refused := [which for which, (valid, _) in gates.items() if valid is False]:
        why = f"near chance: the gate of the {refused[0]} run does not let it be read"
        changes |= {name: _without(changes[name], readable, why) for name in (index, gap)}
    why = "" if pair.higher else "the metric is better when lower: 1 - MPP/FIP has no meaning"
    why = why or SIGNED * any(side.settings.signed or side.table.signed for side in pair.sides)
    changes[index] = _without(changes[index], [False, False], why) if why else changes[index]
    # Luck is measured on other docs in each run, so corrected indices are set side by side only over all docs of both.
    grids = [side.result.grid(n) for side in pair.sides]
    found = [grid.adj.estimate for grid in grids if grid is not None and grid.adj is not None]
    if len(found) == 2 and found[0].n == found[1].n == int(used.sum()):
        pair.warnings.append(
            f"{index}_adj: the runs' own numbers, compared as if on other docs each; the interval is too wide where both share luck"
        )
        changes[f"{index}_adj"] = paired.unpaired(*found, level=level)
    return changes


def _as_run(pair: Pair, level: float) -> Changes:
    """Return the differences of the runs' stored numbers, computed as if each run had asked separate docs."""
    kind, result = pair.kind, pair.sides[1].result
    only = f"the aggregation of {result.metric} can only be computed in the run"
    if any(pair.only):
        raise RecordError(f"{result.label}: {only}, and the two runs have other docs")
    pair.warnings.append(
        f"{only}: the runs' own numbers, compared as if on other docs each; the intervals are too wide where the same docs are hard for both"
    )
    starts = ("score", "fip", "mpp", "gap", "rotate", "drop", "tst", kind.name, str(kind.index))
    ours = {plain_name(name): one for name, one in pair.sides[0].result.measures.items()}
    return {
        name: paired.unpaired(ours[plain_name(name)], one, level=level)
        for name, one in result.measures.items()
        if plain_name(name) in ours and name.startswith(starts)
    }


def _gate(pair: Pair, side: Side, used: Bools) -> tuple[bool | None, str]:
    """Return a run's gate and the reason, computed anew where only some of the run's docs are compared."""
    gate = side.result.analysis.gate if side.result.analysis else None
    if int(used.sum()) < len(side.table) and (gate is None or gate.valid is not False):
        part = side.table.of(np.array(pair.ids)[used].tolist())
        gate = analyse(part, ByForm(part, pair.form), side.settings).gate
    return (None, "") if gate is None else (gate.valid, gate.reason)


def _without(change: Difference, keep: list[bool], reason: str) -> Difference:
    """Return a difference without a value, with a reason, and only with the readable sides."""
    first, second = change.first if keep[0] else None, change.second if keep[1] else None
    return dataclasses.replace(change, first=first, second=second, estimate=change.estimate.without(reason), p=None)


def _index(full: Any, best: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(full) > 0, 1 - best / full, np.nan)
