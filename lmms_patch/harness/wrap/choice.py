"""Chooses the best of a set among the scored views of a doc."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_patch.ask.kinds import Key
from lmms_patch.harness.wrap.scorer import Scored
from lmms_patch.runs.scoring import Scalar


def best(scores: Sequence[Scalar], higher_is_better: bool = True) -> int | None:
    """Return the index of the best score; ties go to the lowest index; unscored views never win.

    Returns:
        The index, or None where all are unscored.

    >>> best([0.0, 1.0, 1.0, None])
    1
    """
    scored = {place: score for place, score in enumerate(scores) if score is not None}
    return max(scored, key=lambda place: scored[place] if higher_is_better else -scored[place], default=None)


def best_of(scored: Sequence[Scored], key: Key, metric: str, higher_is_better: bool) -> int | None:
    """Return the place of a doc's best view of a set by a metric; None where none is scored.

    Args:
        scored: all views of the doc.
        key: the set.
        metric: the metric.
        higher_is_better: whether the highest is the best.
    """
    places = [place for place, one in enumerate(scored) if one.view.set == key]
    at = best([scored[place].scores.get(metric) for place in places], higher_is_better)
    return None if at is None else places[at]
