"""The types of what ``lmms-patch analyze --json`` writes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lmms_patch.rci.ensemble import Ensemble
from lmms_patch.rci.pooling import Averaged, Pooled
from lmms_patch.runs.numbers import Analysis
from lmms_patch.stats.bounds import Number


class AnalysedTask(Struct, kw_only=True):
    """The recomputed numbers of one task.

    Attributes:
        metrics: the flat numbers of docs/metrics.md
        analysis: null: only the run itself could compute it
        note: why nothing was recomputed
    """

    task: str
    filter: str
    base: str
    metrics: dict[str, Number | None]
    analysis: Analysis | None
    categories: dict[str, Analysis] | UnsetType = UNSET
    note: str | UnsetType = UNSET


class AnalysedRun(Struct, kw_only=True):
    """The recomputed numbers of one run."""

    tasks: list[AnalysedTask]
    groups: list[Pooled]


class AnalyzeJson(Struct, kw_only=True):
    """What `lmms-patch analyze --json` writes: recomputed numbers of finished runs.

    Attributes:
        average: with several runs of one model
        ensemble: with runs of several models, where it was asked for
        warnings: what to mind of the average, or of the ensemble
    """

    schema: Literal[1]
    runs: Annotated[list[AnalysedRun], Meta(min_length=1)]
    average: list[Averaged] | UnsetType = UNSET
    ensemble: list[Ensemble] | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET
