"""Chooses among the scored views of a doc: the best of a set, and the worst order of the options."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from lmms_patch.ask.kinds import Key
from lmms_patch.harness.wrap.scorer import Scored
from lmms_patch.runs.scoring import Scalar

V = TypeVar("V")


def best(scores: Sequence[Scalar], higher_is_better: bool = True) -> int | None:
    """Return the index of the best score; ties go to the lowest index; unscored views never win.

    Returns:
        The index, or None where all are unscored.

    >>> best([0.0, 1.0, 1.0, None])
    1
    """
    scored = {place: score for place, score in enumerate(scores) if score is not None}
    return max(scored, key=lambda place: scored[place] if higher_is_better else -scored[place], default=None)


def worst_orders(
    views: Sequence[V], of: Callable[[V], Hashable], score: Callable[[V], Scalar], higher_is_better: bool = True
) -> list[int]:
    """Return the place of each view's worst order, for views asked in several orders of the options.

    A view is right only if every order of it is. One that lacks a score in some order has none: that order decides.
    Ties go to the first order.

    Args:
        views: views of one doc, each once for each order.
        of: tells which view it is, whatever the order.
        score: its score in that order.
        higher_is_better: of the metric.

    >>> worst_orders([("full", 1.0), ("cell", 0.0), ("full", 0.0), ("cell", 0.0)], lambda one: one[0], lambda one: one[1])
    [2, 1]
    """
    places: dict[Hashable, list[int]] = {}
    for place, view in enumerate(views):
        places.setdefault(of(view), []).append(place)

    def rank(place: int) -> float:
        found = score(views[place])
        return -math.inf if found is None else found if higher_is_better else -found

    return [min(own, key=rank) for own in places.values()]


def best_of(
    scored: Sequence[Scored], key: Key, metric: str, higher_is_better: bool, *, every_order: bool
) -> int | None:
    """Return the place of a doc's best view of a set by a metric; None where none is scored.

    Args:
        scored: all views of the doc.
        key: the set.
        metric: the metric.
        higher_is_better: whether the highest is the best.
        every_order: whether each view was asked in every order of the options, and counts as its worst order.
    """
    places = [place for place, one in enumerate(scored) if one.view.set == key]
    if every_order:
        views = [scored[place] for place in places]
        worst = worst_orders(views, lambda one: one.view.place, lambda one: one.scores.get(metric), higher_is_better)
        places = [places[at] for at in worst]
    at = best([scored[place].scores.get(metric) for place in places], higher_is_better)
    return None if at is None else places[at]
