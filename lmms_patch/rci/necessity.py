"""The necessity map: which share of the docs needs no image, one cell, the whole image, or more than the model can do.

Where docs were asked on wrong images, are right or wrong, and the gate passes, the shares are luck-corrected
(``stats.luck.needs``). Elsewhere docs are counted as they answer, lucky guesses among them:

Whether a doc is ``text`` is known only of the docs that were asked without their image, by default a random sample of
300. What its own image and cells say is known of all. So each class by the image is counted over all docs, and the
share of text within it is taken from the sample (post-stratification: Holt & Smith 1979, *Post Stratification*). Docs
whose ``text`` is known are counted as they are; only the others are estimated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lmms_patch.runs import luck_rows
from lmms_patch.runs.details import Settings
from lmms_patch.runs.need import NEEDS, ONE_CELL, TEXT, UNKNOWN, UNSOLVED, DocNeeds, find
from lmms_patch.runs.numbers import Necessity
from lmms_patch.runs.tables import Table
from lmms_patch.stats import intervals, luck
from lmms_patch.stats.forms import MEAN, Form
from lmms_patch.stats.resample import Array, Bools, Estimate

NOT_ASKED = "no doc was asked without its image, on a wrong one or blind: docs that need none are among the others"
_IMAGE = range(ONE_CELL, UNSOLVED + 1)
"""The classes by the image."""
_STATES = 4
"""What is known of text: unknown, not text, text among the docs that are alike, text among others."""


def necessity(
    table: Table,
    grids: Sequence[int],
    settings: Settings,
    blind: Mapping[int, float] = {},
    *,
    form: Form | None = None,
    refused: Mapping[int, str] = {},
) -> tuple[Necessity, ...]:
    """Return the necessity map at each grid, the finest first.

    Empty where docs are not right or wrong, or no grid was asked.

    Args:
        table: the docs.
        grids: sizes n.
        settings: draws, level and seed of the intervals.
        blind: by doc id, the scores of a blind run of the same docs.
        form: the aggregation; luck can be removed where it is a mean.
        refused: by grid, why there is no luck-corrected index; then there are no shares either.
    """
    if not table.higher or not len(table) or table.references.captions:
        return ()
    return tuple(_map(table, n, settings, blind, form, refused.get(n, "")) for n in sorted(grids, reverse=True))


def _map(
    table: Table, n: int, settings: Settings, blind: Mapping[int, float], form: Form | None, refused: str
) -> Necessity:
    """Return the necessity map at one grid."""
    found = find(table, n, blind)
    of = found.planned & (found.by_image != UNKNOWN)
    checked = of & (found.text != UNKNOWN)
    how = settings.how
    # Luck is counted on right and wrong answers of all docs: not on graded scores, not on a sample.
    without_luck = (
        None
        if table.sampling.used or refused or not of.any() or found.graded[of].any()
        else _without_luck(table, n, of, form, how)
    )
    nothing = Estimate.nothing(int(of.sum()), refused, settings.level)
    counted = (
        dict.fromkeys(map(str, NEEDS), nothing)
        if refused
        else without_luck or shares(found, of, table.groups.clusters, how)
    )
    return Necessity(
        n=n,
        docs=int(of.sum()),
        checked=int(checked.sum()),
        sources=found.sources,
        shares=counted,
        counts={need: int((found.classes[of] == number).sum()) for number, need in enumerate(NEEDS)},
        by_image={NEEDS[image]: int((found.by_image[of] == image).sum()) for image in _IMAGE},
        unscored=int((found.planned & found.used & (found.by_image == UNKNOWN)).sum()),
        graded=int((of & found.graded).sum()),
        luck=_luck(table, n, of, how),
        without_luck=without_luck is not None,
    )


def _without_luck(
    table: Table, n: int, of: Bools, form: Form | None, how: Mapping[str, Any]
) -> dict[str, Estimate] | None:
    """Return the share of each class, luck-corrected.

    None where no doc was asked on a wrong image, or the metric is not a mean of scores.

    Args:
        table: the docs.
        n: the grid.
        of: shape (docs,), the docs that the shares are of.
        form: the aggregation.
        how: ``draws``, ``level`` and ``seed`` of the intervals.
    """
    if form is None or not form.plain:
        return None
    cells, either = (luck_rows.measured(table, n, MEAN, of, with_full=with_full) for with_full in (False, True))
    if cells is None or either is None:
        return None
    clusters = table.groups.clusters_of(of, renumbered=True)
    return dict(zip(map(str, NEEDS), luck.needs(cells, either, clusters, **how), strict=True))


def shares(found: DocNeeds, of: Bools, labels: ArrayLike | None, how: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return the share of each class with its interval.

    Args:
        found: what the answers say of each doc.
        of: shape (docs,), the docs that the shares are of; each has a class by its image.
        labels: shape (docs,), clusters; None: docs are independent.
        how: ``draws``, ``level`` and ``seed`` of the intervals.
    """
    clusters = None if labels is None else np.asarray(labels)[of]
    image, text = found.by_image[of], found.text[of]
    if not found.sources or not (text != UNKNOWN).any():
        nothing = Estimate.nothing(int(of.sum()), NOT_ASKED, how["level"])
        return {str(NEEDS[TEXT]): nothing} | {
            NEEDS[c]: intervals.mean((image == c).astype(float), clusters, **how) for c in _IMAGE
        }
    if (text != UNKNOWN).all():
        final = np.where(text == 1, TEXT, image)
        return {str(need): intervals.mean((final == c).astype(float), clusters, **how) for c, need in enumerate(NEEDS)}
    state = np.select([text == UNKNOWN, text == 0, found.alike[of]], range(_STATES - 1), _STATES - 1)
    rows = np.zeros((len(image), len(_IMAGE) * _STATES))
    # A doc is a 1 in the column of its class and text state, so sums over docs are counts.
    rows[np.arange(len(image)), (image - ONE_CELL) * _STATES + state] = 1
    sample = intervals.Sample(rows, clusters, used=text != UNKNOWN, **how)
    # the text of an unseen doc is known: it is none, or it is text and alike
    unseen = np.eye(rows.shape[1])[[c * _STATES + known for c in range(len(_IMAGE)) for known in (1, 2)]]

    def estimate(number: int) -> Estimate:
        return dataclasses.replace(sample.estimate(lambda sums: shares_of(sums)[..., number], unseen), n=len(image))

    return {str(need): estimate(number) for number, need in enumerate(NEEDS)}


def shares_of(counts: Array) -> Array:
    """Return the shares of the four classes from counts of docs.

    Within a class by the image, docs whose text is unknown are text as often as the docs are that are alike. Where a
    class has no such docs, the docs of all classes count.

    Args:
        counts: shape (..., 12): for each class by the image, the docs whose text is unknown, that are not text, that
            are text and alike, and that are text and not alike.

    Returns:
        Shape (..., 4), in the order of ``NEEDS``.

    >>> shares_of(np.array([80.0, 15, 5, 0, 60, 40, 0, 0, 0, 0, 0, 0])).tolist()  # a quarter of the docs that one cell answers is text
    [0.125, 0.375, 0.5, 0.0]
    """
    unknown, no, yes, others = np.moveaxis(
        np.asarray(counts, float).reshape(*np.shape(counts)[:-1], len(_IMAGE), _STATES), -1, 0
    )
    overall = yes.sum(axis=-1, keepdims=True) / (yes + no).sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        # A class without any known doc takes the rate of all classes.
        rate = np.where(yes + no > 0, yes / (yes + no), overall)
    text = yes + others + unknown * rate
    image = no + unknown * (1 - rate)
    total = (text + image).sum(axis=-1, keepdims=True)
    return np.asarray(np.concatenate([text.sum(axis=-1, keepdims=True), image], axis=-1) / total)


def _luck(table: Table, n: int, of: Any, how: Mapping[str, Any]) -> Estimate | None:
    """Return how often a cell of a wrong image is right where the whole wrong image is not.

    None where no doc was asked on cells of wrong images.

    So many docs would be called ``one cell`` though their image is not to be seen.
    """
    half, wrong, cells = table.marks / 2, table.wrong.full.scores, table.wrong.best(n).scores
    tried = of & (wrong < half) & np.isfinite(cells)
    if not tried.any():
        return None
    return intervals.mean((cells >= half)[tried].astype(float), table.groups.clusters_of(tried), **how)
