"""StepSense: the share of reasoning steps that annotators mark correct, and how far annotators agree. NumPy only.

Labels come from files (``labels``). Labels by a judge model are a separate source and are never mixed with human ones
in a score; ``across`` reports how far a judge agrees with people.

Where several annotators labelled a step, each label counts a share of that step, so that every step counts once.
*Micro* is the mean over steps, *macro* the mean over items of each item's mean over steps (MAGIC paper, 3.3, 5.2, Table
3). Cohen's kappa is over the steps that both annotators of a pair labelled: κ = (p_o − p_e) / (1 − p_e). With several
pairs it is also computed over the label pairs of all pairs, p_e being each pair's own, weighted by its steps.

Source: Cohen (1960), A coefficient of agreement for nominal scales.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import structs

from lmms_patch.magic.score.labels import LabelError, Row
from lmms_patch.stats import intervals
from lmms_patch.stats.resample import DRAWS, Array, Estimate, cluster_numbers

MOST_ANNOTATORS = 20
"""The most annotators of a source whose agreement is computed: memory grows with the fourth power of their number."""


@dataclass(frozen=True)
class Agreement:
    """The agreement of two annotators, or of all pairs of them.

    Attributes:
        annotators: the two names; empty for all pairs together.
        kappa: Cohen's kappa in −1..1, bootstrap over clusters of items; its n is the number of items. None where both
            gave one and the same label throughout (nothing could have differed), or no step is shared.
        agreed: share of shared steps with equal labels.
        steps: number of shared steps (over pairs: of label pairs).
    """

    annotators: tuple[str, ...]
    kappa: Estimate
    agreed: Estimate
    steps: int


@dataclass(frozen=True)
class StepBounds:
    """What the scores of a judge would be, were all steps without a verdict wrong (low), or all right (high).

    Attributes:
        micro_low, micro_high: share of correct steps.
        macro_low, macro_high: mean over items of their share of correct steps.
        unjudged: number of steps without a verdict.
    """

    micro_low: float
    micro_high: float
    macro_low: float
    macro_high: float
    unjudged: int


@dataclass(frozen=True)
class StepSense:
    """The score from a source of labels; fractions in 0..1.

    Above ``MOST_ANNOTATORS`` annotators there are neither ``pairs`` nor ``agreement``.

    Attributes:
        source: one of ``SOURCES``.
        micro: share of correct steps; its n is the number of items.
        macro: mean over items of their share of correct steps.
        items: number of items with a label.
        steps: number of steps with a label.
        annotators: their names.
        disputed: number of steps with both verdicts.
        pairs: agreement of each pair that shares a step.
        agreement: over all pairs; None where no two annotators share a step.
        bounds: of a judge that gave no verdict on some steps; else None. People's empty lines are not labelled yet, and
            have no bounds.
    """

    source: str
    micro: Estimate
    macro: Estimate
    items: int
    steps: int
    annotators: tuple[str, ...]
    disputed: int
    pairs: tuple[Agreement, ...]
    agreement: Agreement | None
    bounds: StepBounds | None = None


@dataclass(frozen=True)
class StepSenses:
    """The scores of some files of labels.

    Attributes:
        scores: of each source that has labels, people first.
        across: how far each judge agrees with each person.
        unlabelled: number of steps without a verdict, by source.
        clustered: whether the files say which items share an image; intervals then keep these together.
        notes: further notes, a line each.
    """

    scores: tuple[StepSense, ...]
    across: tuple[Agreement, ...]
    unlabelled: Mapping[str, int]
    clustered: bool
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the scores in plain JSON types (schema ``magic-stepsense``)."""
        return {"schema": 1, **dataclasses.asdict(self)}


def stepsense(
    labels: Iterable[Row],
    clusters: Mapping[str, Hashable] | None = None,
    draws: int = DRAWS,
    unjudged: Sequence[tuple[str, int]] = (),
) -> StepSense:
    """Compute the score from the labels of a source.

    Args:
        labels: of one source.
        clusters: for each item id, what it is resampled with (its image); where None or without the id, the item alone.
        draws: B.
        unjudged: item and number of the steps that a judge gave no verdict on.

    Raises:
        LabelError: there are no labels, labels of both sources, or two labels of one annotator for a step.
    """
    labels = list(labels)
    source = _one_source(labels)
    by_item = _by_item(labels)
    groups = _groups(by_item, clusters)
    shares = {
        item: [float(np.mean(list(verdicts.values()))) for verdicts in steps.values()]
        for item, steps in by_item.items()
    }
    rows = [[sum(own), len(own)] for own in shares.values()]
    bounds: dict[str, Any] = {"draws": draws}
    annotators = tuple(sorted({label.annotator for label in labels}))
    # The number of pairs grows with the square of the annotators.
    pairs = list(itertools.combinations(annotators, 2)) if len(annotators) <= MOST_ANNOTATORS else []
    tables = {pair: np.array([_table(steps, pair) for steps in by_item.values()], float) for pair in pairs}
    shared = {pair: table for pair, table in tables.items() if table.any()}
    together = _agreement((), list(shared.values()), groups, bounds) if shared else None
    return StepSense(
        source,
        intervals.ratio([right for right, _ in rows], [steps for _, steps in rows], groups, **bounds),
        intervals.mean([right / steps for right, steps in rows], groups, **bounds),
        len(by_item),
        sum(len(steps) for steps in by_item.values()),
        annotators,
        sum(len(set(verdicts.values())) > 1 for steps in by_item.values() for verdicts in steps.values()),
        tuple(_agreement(pair, [table], groups, bounds) for pair, table in shared.items()),
        together,
        _step_bounds(shares, unjudged) if unjudged and source == "judge" else None,
    )


def _step_bounds(shares: Mapping[str, Sequence[float]], unjudged: Sequence[tuple[str, int]]) -> StepBounds:
    """Return the scores with the unjudged steps all wrong, and all right.

    Args:
        shares: of each item, the share of each labelled step.
        unjudged: item and number of the others.
    """
    micro, macro = [], []
    for worth in (0.0, 1.0):
        whole = {item: list(own) for item, own in shares.items()}
        for item, _ in unjudged:
            whole.setdefault(item, []).append(worth)
        micro.append(float(np.mean([share for own in whole.values() for share in own])))
        macro.append(float(np.mean([np.mean(own) for own in whole.values()])))
    return StepBounds(micro[0], micro[1], macro[0], macro[1], len(unjudged))


def across(
    human: Iterable[Row],
    judge: Iterable[Row],
    clusters: Mapping[str, Hashable] | None = None,
    draws: int = DRAWS,
) -> tuple[Agreement, ...]:
    """Compute each judge's agreement with each person over steps labelled by both.

    Args:
        human: labels by people.
        judge: labels by judges; names may be the same on both sides.
        clusters: as in ``stepsense``.
        draws: as in ``stepsense``.

    Returns:
        One for each (person, judge) that share a step; none where either side has more than ``MOST_ANNOTATORS`` names.
    """
    sides = [
        # A prefix keeps a person and a judge of the same name apart.
        [structs.replace(one, annotator=f"{place}{one.annotator}") for one in side]
        for place, side in enumerate((human, judge))
    ]
    by_item = _by_item([*sides[0], *sides[1]])
    groups = _groups(by_item, clusters)
    names = [sorted({label.annotator for label in side}) for side in sides]
    out: list[Agreement] = []
    if max(map(len, names)) > MOST_ANNOTATORS:
        return ()
    for person, model in itertools.product(*names):
        pair = (person, model)
        table: Array = np.array([_table(steps, pair) for steps in by_item.values()], float)
        if table.any():
            agreement = _agreement(pair, [table], groups, {"draws": draws})
            out.append(dataclasses.replace(agreement, annotators=tuple(name[1:] for name in pair)))
    return tuple(out)


def _groups(by_item: Mapping[str, Any], clusters: Mapping[str, Hashable] | None) -> Any:
    """Return what each item is resampled with, as numbers; None: each item alone."""
    return (
        None
        if clusters is None
        # a tuple of one never equals a tuple of two: no item without a cluster falls into another's
        else cluster_numbers([(clusters[item],) if item in clusters else ("", item) for item in by_item])
    )


def _one_source(labels: Sequence[Row]) -> str:
    sources = sorted({label.source for label in labels})
    if not sources:
        raise LabelError("no step labels; StepSense needs at least one")
    if len(sources) > 1:
        raise LabelError(f"step labels of several sources ({', '.join(sources)}): score each by itself")
    return sources[0]


def _by_item(labels: Iterable[Row]) -> dict[str, dict[int, dict[str, bool]]]:
    """Return item -> step -> annotator -> verdict, items in sorted order."""
    by_item: dict[str, dict[int, dict[str, bool]]] = defaultdict(lambda: defaultdict(dict))
    for label in labels:
        step = by_item[label.item][label.step]
        if label.annotator in step:
            raise LabelError(f"{label.annotator} labelled step {label.step} of {label.item} twice; keep one")
        step[label.annotator] = bool(label.correct)
    # sorted: the order of files and lines must not change what the bootstrap draws
    return {item: by_item[item] for item in sorted(by_item)}


def _table(steps: Mapping[int, Mapping[str, bool]], pair: tuple[str, str]) -> list[int]:
    """Count the steps of an item labelled (0,0), (0,1), (1,0), (1,1) by a pair."""
    out = [0, 0, 0, 0]
    for verdicts in steps.values():
        if pair[0] in verdicts and pair[1] in verdicts:
            out[2 * verdicts[pair[0]] + verdicts[pair[1]]] += 1
    return out


def _agreement(pair: tuple[str, ...], tables: Sequence[Array], groups: Any, bounds: Mapping[str, Any]) -> Agreement:
    """Return the agreement from 2×2 tables, a table per pair, each of shape (items, 4)."""
    together = np.hstack(tables)
    # an item without a step that both labelled says nothing of how far they agree
    used = together.any(axis=1)
    kept, labels = together[used], None if groups is None else np.asarray(groups)[used]
    # The extreme unseen item has all its steps in a single cell of the table.
    unseen = np.eye(together.shape[1]) * kept.sum() / max(1, len(kept))
    estimate = intervals.estimate(kept, kappa, labels, extremes=unseen, **bounds)
    # the cells (0, 0) and (1, 1) of each pair's table
    alike = kept[:, [i for i in range(together.shape[1]) if i % 4 in (0, 3)]].sum(axis=1)
    agreed = intervals.ratio(alike, kept.sum(axis=1), labels, **bounds)
    return Agreement(pair, estimate, agreed, int(together.sum()))


def kappa(tables: Array) -> Array:
    """Return Cohen's kappa of 2×2 tables.

    Args:
        tables: shape (..., 4·pairs): counts of (0,0), (0,1), (1,0), (1,1) for each pair. Over several pairs, observed
            and expected agreement are means weighted by each pair's steps; a pair without steps has no weight.

    Returns:
        Shape (...); nan where expected agreement is 1 (one label throughout), or there is no step.

    >>> round(float(kappa(np.array([20.0, 5, 10, 15]))), 3)
    0.4
    """
    cells = np.asarray(tables, float).reshape(*np.shape(tables)[:-1], -1, 4)
    n = cells.sum(-1)
    # a draw may hold no step of some pair, which then weighs nothing
    safe = np.where(n > 0, n, 1.0)
    first, second = (cells[..., 2] + cells[..., 3]) / safe, (cells[..., 1] + cells[..., 3]) / safe
    total = n.sum(-1)
    # Where both always give the same verdict, kappa is 0 / 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = (cells[..., 0] + cells[..., 3]).sum(-1) / total
        expected = (n * (first * second + (1 - first) * (1 - second))).sum(-1) / total
        # a sum that is 1 in truth may come out a trace below, and would divide by nearly 0
        return np.asarray(np.where(expected < 1 - 1e-12, (observed - expected) / (1 - expected), np.nan), float)
