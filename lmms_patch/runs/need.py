"""What each doc needs to be answered: no image of its own, one cell, the whole image, or more than the model can do.

NumPy only.

A doc is ``text`` if it is answered rightly on another doc's image, or blind. Else it is ``one cell`` if some cell is
answered rightly, ``whole image`` if only the full image is, and ``unsolved`` if neither is. Right is at least half of
what the doc's gold scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lmms_patch.runs.docs import used_for
from lmms_patch.runs.tables import Table
from lmms_patch.stats.resample import Array, Bools

if TYPE_CHECKING:
    from lmms_patch.runs.run import Result

Need = Literal["text", "one cell", "whole image", "unsolved"]
Source = Literal["wrong images", "blind"]
NEEDS: Final[tuple[Need, ...]] = get_args(Need)
TEXT, ONE_CELL, WHOLE, UNSOLVED = range(4)
UNKNOWN = -1


@dataclass(frozen=True)
class DocNeeds:
    """What the answers say of each doc of a table, at a grid. All arrays have shape (docs,).

    Attributes:
        by_image: the doc's class by the answers to its own image: ``ONE_CELL``, ``WHOLE``, ``UNSOLVED``, or
        ``UNKNOWN``.
        text: whether the doc is answered without its image: 1, 0, or ``UNKNOWN`` where it was not, and was not asked in
        every way that the run has.
        tried: whether the doc was asked without its image, in any way.
        alike: the docs whose ``text`` tells of the docs where it is unknown.
        planned: the docs that the others can be judged by: all, or in a run that left docs out those that were asked
        whole.
        used: the docs that the grid uses.
        graded: docs of which a score that decides lies between nothing and full marks.
        sources: how the run asked without the doc's image; empty where it did not.
    """

    by_image: NDArray[np.int8]
    text: NDArray[np.int8]
    tried: Bools
    alike: Bools
    planned: Bools
    used: Bools
    graded: Bools
    sources: tuple[Source, ...]

    @property
    def classes(self) -> NDArray[np.int8]:
        """The class of each doc, as far as known.

        The place of its name in ``NEEDS``; ``UNKNOWN`` for a doc that was not asked without its image, or has a view without a score.
        """
        return np.where(self.text == 1, TEXT, np.where(self.tried, self.by_image, UNKNOWN)).astype(np.int8)


def has_classes(result: Result) -> bool:
    """Return whether the docs of a finished task have classes.

    They have none where no cells were asked for an index, where the metric is better when lower, and where the
    necessity map is empty: ``rci.necessity`` makes none of captions, which are not right or wrong.
    """
    asked = result.kind.index and result.grids and result.higher_is_better and result.metric in result.about.metrics
    return bool(asked and (result.analysis is None or result.analysis.necessity))


def find(table: Table, n: int, blind: Mapping[int, float] = {}) -> DocNeeds:
    """Return what the answers say of each doc of a table, whose metric is better when higher.

    Args:
        table: the docs.
        n: the grid.
        blind: by doc id, the scores of a blind run of the same docs.
    """
    # right is at least half of what the gold scores
    half = table.marks / 2
    used = used_for(table.docs, n)
    full, wrong, without = table.full_seen.scores, table.wrong.full.scores, table.by_id(blind)
    best = np.where(used, table.best_seen(n).scores, math.nan)
    # nan stays nan: no score is no wrong answer
    is_right, lost, blindly = (
        np.where(np.isfinite(scores), scores >= half, math.nan) for scores in (full, wrong, without)
    )
    text, alike, sources = without_image(lost, blindly)
    graded = np.zeros(len(table), bool)
    for scores in (full, best, wrong, without):
        # between nothing and full marks, but for rounding
        graded |= (scores > 0) & (scores < table.marks - 1e-9)
    # in a run that left docs out, only the docs asked whole stand for the rest
    planned = table.sampling.pilot | (not (table.sampling.used or table.sampling.no_best))
    tried = np.isfinite(wrong) | np.isfinite(without)
    image = by_image(is_right, best >= half, np.isfinite(best) & (table.views.scored(n) == table.kind.cells(n)))
    return DocNeeds(image, text, tried, alike, planned, used, graded & used, sources)


def by_image(full: Array, cell: Bools, scored: Bools) -> NDArray[np.int8]:
    """Return the class of each doc by the answers to its image.

    A right cell decides alone. A doc without one has a class only if all its views have a score: the view without a
    score may be the right one.

    Args:
        full: shape (docs,), whether the doc is right on its full image: 1, 0, or nan where it has no score there.
        cell: shape (docs,), whether the doc is right on some cell of the grid.
        scored: shape (docs,), whether all cells of the grid have a score.
    """
    known = np.isfinite(full) & scored
    return np.select([cell, known & (full == 1), known], [ONE_CELL, WHOLE, UNSOLVED], UNKNOWN).astype(np.int8)


def without_image(wrong: Array, blind: Array) -> tuple[NDArray[np.int8], Bools, tuple[Source, ...]]:
    """Return ``Found.text``, ``Found.alike`` and ``Found.sources``.

    Where a run has both, a doc that is right blind is known to be text. One that is wrong blind is known only if it was
    asked on a wrong image, too. The docs of which nothing is known then are all wrong blind, so those that are right
    blind do not tell of them.

    Args:
        wrong: shape (docs,), whether the doc is right on a wrong image: 1, 0, or nan.
        blind: shape (docs,), the same of a blind run.
    """
    ways: dict[Source, Array] = {"wrong images": wrong, "blind": blind}
    asked = {name: np.isfinite(right) for name, right in ways.items() if np.isfinite(right).any()}
    right = (wrong == 1) | (blind == 1)
    everywhere = np.logical_and.reduce([*asked.values()]) if asked else np.zeros(len(wrong), bool)
    text = np.select([right, everywhere], [1, 0], UNKNOWN).astype(np.int8)
    return text, everywhere & (blind != 1) if len(asked) == 2 else everywhere, tuple(asked)
