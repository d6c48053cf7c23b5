"""The numbers of one task, and how they are written down."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lmms_patch.stats import gate, luck, spatial
from lmms_patch.stats.chance import Chance
from lmms_patch.stats.resample import Estimate


@dataclass(frozen=True)
class Grid:
    """The numbers of one grid; scores on the metric's own scale. Not valid: index, gap and luck are None.

    Attributes:
        n: grid size.
        excluded: docs left out.
        fip, mpp: over the same docs.
        index: 1 − MPP/FIP with its interval.
        gap: FIP − MPP with its interval.
        adj: the index with luck removed.
        adj_blind: the same, with a blind run as null too; None without such a run.
        luck_ceiling: the best of n² uniform guesses, 0..1; None where docs have no options.
        band: the band of the index; its span over the interval.
        shares: where in the image the score comes from.
        warnings: what to mind.
        reason: why there is no index; empty otherwise.
    """

    n: int
    excluded: int
    fip: float | None
    mpp: Estimate
    index: Estimate
    gap: Estimate
    adj: luck.Luck | None
    adj_blind: luck.Luck | None
    luck_ceiling: float | None
    band: str | None
    span: str | None
    shares: spatial.CellShares | None
    warnings: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Analysis:
    """The numbers of one task.

    Attributes:
        metric: the metric they are of.
        n_docs: docs with this metric.
        clusters: number of clusters; None where docs are independent.
        form: the aggregation's form; None where only its own code can compute it.
        fip: M on full images with its interval.
        chance: the floors.
        ceiling: M of the gold answers; None where unknown.
        gold_below: docs whose gold does not get full marks.
        gate: whether the index may be read, with every term.
        grids: by grid size.
        relative_change: from the coarsest grid to the finest (PCRI §A.4.6), a fraction; None with one grid.
        warnings: what to mind.
    """

    metric: str
    n_docs: int
    clusters: int | None
    form: str | None
    fip: Estimate
    chance: Chance
    ceiling: float | None
    gold_below: int
    gate: gate.Gate
    grids: Mapping[int, Grid] = field(default_factory=dict)
    relative_change: float | None = None
    warnings: tuple[str, ...] = ()


def metrics(analysis: Analysis, name: str | None) -> dict[str, float | int | None]:
    """The flat numbers of a task by the names of DESIGN §8; None where not defined.

    Args:
        analysis: the numbers.
        name: ``rci`` or ``pcri``; None for a kind without an index.
    """
    out: dict[str, float | int | None] = {
        "chance": analysis.chance.value,
        "ceiling": analysis.ceiling,
        "gate": analysis.gate.number,
        "n_docs": analysis.n_docs,
    }
    if name is None:
        del out["gate"]
    for n, grid in analysis.grids.items():
        out |= _with_ends(f"{name}{n}", grid.index)
        out |= _with_ends(f"{name}{n}_adj", grid.adj.estimate if grid.adj else None)
        if grid.adj_blind is not None:
            out |= _with_ends(f"{name}{n}_adj_blind", grid.adj_blind.estimate)
        out |= _with_ends(f"gap{n}", grid.gap)
        out[f"n_excluded{n}"] = grid.excluded
    return out


def flat_names(name: str | None, grids: Sequence[int]) -> list[str]:
    """The names of ``metrics``, in their order; without those of a blind run."""
    names = ["chance", "ceiling", *(["gate"] if name else []), "n_docs"]
    for n in grids if name else ():
        names += [f"{stem}{end}" for stem in (f"{name}{n}", f"{name}{n}_adj", f"gap{n}") for end in ("", "_low", "_high")]
        names.append(f"n_excluded{n}")
    return names


def _with_ends(name: str, estimate: Estimate | None) -> dict[str, float | int | None]:
    if estimate is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def sentences(analysis: Analysis, name: str | None) -> tuple[list[str], list[str]]:
    """What to say of a task while it runs: its numbers, and what to mind (an index that is null among it)."""
    fip, chance = number(analysis.fip.value), number(analysis.chance.value)
    told = [f"{analysis.metric} {fip}, chance {chance} ({analysis.chance.floor or analysis.chance.reason}), {analysis.n_docs} docs"]
    mind: list[str] = list(analysis.warnings)
    for n, grid in analysis.grids.items():
        if grid.index.value is None:
            mind.append(f"{name}{n} is null: {grid.reason}")
            continue
        ends = f" [{number(grid.index.low)}, {number(grid.index.high)}]" if grid.index.low is not None else f" (no interval: {grid.index.reason})"
        adj = grid.adj.estimate if grid.adj else None
        luck_free = "" if adj is None else f"; luck removed: {number(adj.value) if adj.value is not None else adj.reason}"
        told.append(f"{name}{n} {number(grid.index.value)}{ends}, {grid.span or grid.band}{luck_free}")
        mind += grid.warnings
    return told, list(dict.fromkeys(mind))


def number(value: float | None) -> str:
    """A score with three decimals; n/a where there is none."""
    return "n/a" if value is None else f"{value:.3f}"


def to_json(value: Any) -> Any:
    """An analysis (or any part of one) in plain JSON types: dataclasses as objects, arrays as lists, nan as null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return to_json(value.tolist())
    if isinstance(value, (list, tuple)):
        return [to_json(inner) for inner in value]
    if isinstance(value, np.generic):
        return to_json(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value
