"""A benchmark's index over several models: what the benchmark asks for, rather than how one model gets by.

RCI is a property of a benchmark as one model shows it (RCI paper, https://arxiv.org/abs/2509.23673). Several models
tell how much of the number is the model's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmms_patch.errors import RecordError
from lmms_patch.rci.pooling import joint, together
from lmms_patch.rci.recompute import Analyzed, Changes
from lmms_patch.runs.numbers import Grid
from lmms_patch.stats.bounds import GridSize, Number
from lmms_patch.stats.resample import Estimate


@dataclass(frozen=True)
class OverModels:
    """An index over several models.

    Attributes:
        of: by model; one that cannot be read has no value, but a reason.
        mean: over the models that can be read. Its interval is over docs: the models stay the same ones.
        sd: the standard deviation between those models (n − 1); None with fewer than two.
        least: the least of those models; None where none can be read.
        most: the most of those models; None likewise.
    """

    of: Mapping[str, Estimate]
    mean: Estimate
    sd: Number | None
    least: Number | None
    most: Number | None


@dataclass(frozen=True)
class Ensemble:
    """A task at a grid, over several models.

    Attributes:
        task: its name.
        index: the name of its index, such as ``rci3``.
        n: the grid.
        raw: the index, 1 − MPP / FIP.
        steady: the steady index, of models that were asked again.
    """

    task: str
    index: str
    n: GridSize
    raw: OverModels
    steady: OverModels


def ensembles(runs: Mapping[str, Sequence[Analyzed]], changes: Changes | None = None) -> list[Ensemble]:
    """Return the numbers over several models, for each shared task and grid.

    Args:
        runs: by model, the tasks of its run.
        changes: other settings than those of the runs.

    Raises:
        RecordError: no task with an index is in all runs, or a task was asked of other docs, on other grids or with
            left-out views.
    """
    out: list[Ensemble] = []
    for task, of_task in together(list(runs.values())):
        if not of_task[0].run.result.kind.index:
            continue
        grids = [tuple(a.run.result.grids) for a in of_task]
        if len(set(grids)) > 1:
            raise RecordError(
                f"{task}: the runs have other grids ({' and '.join(map(str, dict.fromkeys(grids)))}); ask all models alike"
            )
        out += [_ensemble(dict(zip(runs, of_task, strict=True)), n, changes or Changes()) for n in grids[0]]
    if not out:
        raise RecordError(
            "no task with an index over cells is in all runs; ask each model for one, such as --tasks gqa_rci3"
        )
    return out


def _ensemble(of: Mapping[str, Analyzed], n: int, changes: Changes) -> Ensemble:
    result = next(iter(of.values())).run.result
    raws, steadies = ({model: index(a, n) for model, a in of.items()} for index in (_raw, _steady))
    readable = [of[model] for model, one in raws.items() if one.value is not None]
    whole = joint(readable, n, changes) if len(readable) > 1 else None
    return Ensemble(result.task, f"{result.kind.index}{n}", n, over_models(raws, whole), over_models(steadies))


def _raw(analyzed: Analyzed, n: int) -> Estimate:
    grid = _grid(analyzed, n)
    return Estimate.nothing(0, "its aggregation must be called") if grid is None else grid.index


def _steady(analyzed: Analyzed, n: int) -> Estimate:
    needs = () if analyzed.analysis is None else analyzed.analysis.necessity
    return next((one.index for one in needs if one.n == n), Estimate.nothing(0, "no doc was asked again"))


def _grid(analyzed: Analyzed, n: int) -> Grid | None:
    return None if analyzed.analysis is None else analyzed.analysis.grids.get(n)


def over_models(of: Mapping[str, Estimate], mean: Estimate | None = None) -> OverModels:
    """Return an index over models.

    Args:
        of: by model, the index.
        mean: the mean with an interval made of all models' docs together; None: the interval is the mean of the models'
            intervals. The models answer the same docs, and the standard error of a mean is at most the mean of the
            standard errors, however their answers depend on each other.
    """
    known = [one for one in of.values() if one.value is not None]
    values = np.array([one.value for one in known], float)
    if not known:
        return OverModels(of, Estimate.nothing(0, "no model has an index that can be read"), None, None, None)
    if mean is None:
        ends = np.array([[np.nan if end is None else end for end in (one.low, one.high)] for one in known], float).mean(
            axis=0
        )
        low, high = (None if np.isnan(end) else float(end) for end in ends)
        mean = dataclasses.replace(known[0], value=float(values.mean()), low=low, high=high, se=None, reason="")
    return OverModels(
        of, mean, float(values.std(ddof=1)) if len(values) > 1 else None, float(values.min()), float(values.max())
    )
