"""Numbers of several tasks or runs together: the pooled index of a group, and the average of repeated runs.

Source of the average: RCI paper (https://arxiv.org/abs/2509.23673), A.3.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmms_patch.ask.kinds import KINDS, Kind
from lmms_patch.errors import RecordError, nearest
from lmms_patch.rci.recompute import Analyzed, Changes, table_of
from lmms_patch.runs.failures import too_many
from lmms_patch.runs.tables import Table, range_of
from lmms_patch.stats import forms, gate, intervals
from lmms_patch.stats.bounds import GridSize, Number
from lmms_patch.stats.index import index
from lmms_patch.stats.resample import Bools, Estimate


@dataclass(frozen=True)
class Pooled:
    """The pooled index of a group: RCI of the pooled FIP and MPP with docs as weights, not a mean of ratios.

    Attributes:
        group: the group's name.
        tasks: the pooled members.
        n: grid.
        fip: FIP over all docs of all members, as a share of each member's scale.
        mpp: MPP likewise.
        index: 1 − MPP/FIP with its interval, clusters kept together; None with its reason where the pooled gate fails.
        gate: the gate of the pooled FIP against the members' floors, docs as weights.
        kind: of its members (``ask.kinds.KINDS``).
    """

    group: str
    tasks: tuple[str, ...]
    n: GridSize
    fip: Number | None
    mpp: Number | None
    index: Estimate
    gate: gate.Gate
    kind: str = "rci"

    @property
    def asked(self) -> Kind:
        """The kind as a row of the grammar."""
        return KINDS[self.kind]


def pool(group: str, members: Sequence[Analyzed], settings: Changes | None = None) -> list[Pooled]:
    """Return the pooled index of a group's members, for each shared grid.

    Empty for tasks without an index over cells.
    """
    settings = settings or Changes()
    if not members or not members[0].run.result.kind.index:
        return []
    grids = sorted(set.intersection(*({int(n) for n in m.run.result.grids} for m in members)))
    return [_pool(group, members, n, settings) for n in grids]


def _pool(group: str, members: Sequence[Analyzed], n: int, changes: Changes) -> Pooled:
    names, kind = tuple(m.run.name for m in members), members[0].run.result.kind.name
    rows, labels, docs, floor, variance, lost = [], [], 0, 0.0, 0.0, ""
    tables: list[tuple[Table, Bools]] = []
    for member in members:
        analysis = member.analysis
        form = forms.FORMS.get(analysis.form or "") if analysis else None
        if analysis is None or form is None or not form.plain or analysis.chance.value is None:
            what = "chance is unknown" if form and form.plain else "aggregation is no mean of its docs"
            nothing = Estimate.nothing(0, f"{member.run.name}: its {what}")
            return Pooled(group, names, n, None, None, nothing, gate.gate(None, None, se=None), kind)
        settings, _, table = table_of(member.run, changes)
        if not lost and (why := too_many(table, n)):
            lost = f"{member.run.name}: {why}"
        best = table.best(n)
        used = best.known
        tables.append((table, used))
        scale = 100.0 if form is forms.PERCENT else float(len(table)) if form is forms.SUM else 1.0
        rows.append(np.column_stack([table.full.scores[used], best.scores[used], np.ones(used.sum())]))
        place = np.arange(len(table)) if table.groups.clusters is None else table.groups.clusters
        # Clusters of different tasks must stay apart, even where their numbers are equal.
        labels += [f"{member.run.name}/{cluster}" for cluster in place[used]]
        docs += int(used.sum())
        # A percent or a sum is turned into the scale of a doc's score, which is what is pooled.
        floor += used.sum() * analysis.chance.value / scale
        variance += (used.sum() * (analysis.chance.se or 0.0) / scale) ** 2
    stacked = np.vstack(rows)
    clusters = np.unique(labels, return_inverse=True)[1]
    how = settings.how
    low, high = range_of([table for table, _ in tables])
    # With sampling, estimates of docs may lie outside the scale.
    sampled = any(table.sampling.used for table, _ in tables)
    ends = intervals.ends_of(stacked[:, :2].clip(low, high) if sampled else stacked[:, :2])
    fip = intervals.mean(stacked[:, 0], clusters, ends=ends, **how)
    mpp = float(np.clip(stacked[:, 1].mean(), min(0.0, low), high)) if docs else None
    chance = floor / docs if docs else None
    # Chances of tasks are independent, so their variances add.
    own = variance**0.5 / docs if docs else None
    se = fip.se
    if se is not None:
        se = math.hypot(se, own) if own else max(se, gate.se_at_chance(se, fip.value, chance))
    judged = gate.gate(fip.value, chance, se=se, se_fip=fip.se, se_chance=own)
    refused = [(m.run.name, one) for m in members if m.analysis for one in m.analysis.gate.looks if one.value is False]
    judged = gate.with_looks(
        judged, tuple(dataclasses.replace(one, reason=f"{name}: {one.reason}") for name, one in refused)
    )
    signed = any(table.signed for table, _ in tables) if sampled else bool((stacked < 0).any())
    point = index(fip.value, mpp, signed=signed)
    # the widest: an unseen doc may be of the task of which the fewest docs were asked
    each = max(table.sampling.stands_for(2, used) for table, used in tables)
    extremes = [[each * whole, each * best, each] for whole in ends for best in ends]
    how |= {"extremes": extremes, "unseen": intervals.UNSEEN_OF_PAIRS}
    value = intervals.estimate(stacked, lambda s: 1 - s[..., 1] / s[..., 0], clusters, **how)
    reason = lost or (judged.reason if judged.valid is not True else point.reason)
    if reason:
        value = Estimate(None, None, None, None, docs, value.clusters, 0, settings.level, reason)
    return Pooled(group, names, n, fip.value, mpp, value, judged, kind)


def groups(analyzed: Sequence[Analyzed], changes: Changes | None = None) -> list[Pooled]:
    """Return the pooled indices of the groups of a run."""
    out = []
    for group, members in analyzed[0].run.result.about.groups.items():
        pooled_tasks = [a for a in analyzed if a.run.result.task in members]
        if len(pooled_tasks) > 1:
            out += pool(group, pooled_tasks, changes)
    return out


@dataclass(frozen=True)
class Averaged:
    """The average of several runs of a task (the papers average three; RCI A.3).

    Attributes:
        task: its name.
        runs: number of runs.
        metrics: the mean over runs of each number; None where a run lacks it.
        spread: the standard deviation between runs (n − 1) of each number; None likewise.
        intervals: for each index, the interval of the mean of the runs' indices; docs are resampled alike in all runs.
    """

    task: str
    runs: int
    metrics: Mapping[str, Number | None]
    spread: Mapping[str, Number | None]
    intervals: Mapping[str, Estimate]


def average(runs: Sequence[Sequence[Analyzed]], changes: Changes | None = None) -> list[Averaged]:
    """Average the tasks shared by all runs.

    Raises:
        RecordError: no task is in all runs, or a task was run with other settings or docs.
    """
    return [_average(task, of_task, changes or Changes()) for task, of_task in together(runs)]


def together(runs: Sequence[Sequence[Analyzed]]) -> list[tuple[str, list[Analyzed]]]:
    """Return each task shared by all runs, with the results.

    Raises:
        RecordError: no task is in all runs, or a task was asked of other docs in one of them, or with left-out views.
    """
    by_task = [{(a.run.result.task, a.run.result.filter): a for a in run} for run in runs]
    shared = [key for key in by_task[0] if all(key in run for run in by_task)]
    if not shared:
        close = nearest(next(iter(by_task[0]))[0], [task for run in by_task[1:] for task, _ in run])
        raise RecordError(f"no task is in all {len(runs)} runs" + (f"; nearest: {', '.join(close)}" if close else ""))
    out = [(key[0], [run[key] for run in by_task]) for key in shared]
    for task, of_task in out:
        samples = [a.run.samples for a in of_task]
        if any(one["quick"].count() for one in samples):
            raise RecordError(
                f"{task}: a run that left views out cannot be taken together with others; compare two of them: lmms-patch compare"
            )
        docs = [set(one["doc_id"]) for one in samples]
        if any(own != docs[0] for own in docs):
            raise RecordError(
                f"{task}: the runs are of different docs ({', '.join(str(len(own)) for own in docs)}); give runs of the same"
            )
    return out


def _average(task: str, runs: Sequence[Analyzed], changes: Changes) -> Averaged:
    described = [a.run.result.described for a in runs]
    if any(d != described[0] for d in described):
        raise RecordError(f"{task}: the runs were made with different settings; average only runs of the same")
    names = [name for name in runs[0].metrics if all(name in a.metrics for a in runs)]
    values = {name: [a.metrics[name] for a in runs] for name in names}
    known = {
        name: np.array([float(v) for v in found if v is not None])
        for name, found in values.items()
        if None not in found
    }
    mean = {name: float(known[name].mean()) if name in known else None for name in names}
    spread = {name: float(known[name].std(ddof=1)) if name in known and len(runs) > 1 else None for name in names}
    kind = KINDS[described[0]["kind"]].index
    grids = [n for n in described[0]["grids"] if mean.get(f"{kind}{n}") is not None]
    same = {f"{kind}{n}": found for n in grids if (found := joint(runs, n, changes)) is not None}
    return Averaged(task, len(runs), mean, spread, same)


def joint(runs: Sequence[Analyzed], n: int, changes: Changes) -> Estimate | None:
    """Return the mean index of several runs, docs resampled alike in all of them.

    None where the aggregation must be called.

    Args:
        runs: of the same docs.
        n: grid.
        changes: other settings than those of the runs.
    """
    form = forms.FORMS.get((runs[0].analysis.form or "") if runs[0].analysis else "")
    if form is None or any(a.analysis is None or a.analysis.form != form.name for a in runs):
        return None
    settings = table_of(runs[0].run, changes)[0]
    tables = alike([table_of(a.run, changes)[2] for a in runs])
    form = forms.on(form, tables[0].groups.merged)
    parts, scores, decides = [], [], np.zeros(len(tables[0]), bool)
    for table in tables:
        best = table.best(n)
        decides |= best.known
        for chosen in (table.full, best):
            rows = form.rows(table.picked(chosen))
            # docs that the run cannot use add zeros, as in ``draws``
            rows[~(best.known & np.isfinite(rows).all(axis=1))] = 0
            parts.append(rows)
            scores.append(chosen.scores)
    width, docs = parts[0].shape[1], int(decides.sum())

    def mean_index(sums: Any) -> Any:
        values = [form.of_weighted(sums[..., k * width : (k + 1) * width], docs) for k in range(len(parts))]
        return sum(1 - best / full for full, best in zip(values[::2], values[1::2], strict=True)) / len(tables)

    # A doc that no run drew is alike in all runs.
    unseen = np.tile(form.unseen(intervals.ends_of(np.concatenate(scores)), width, 2), (1, len(tables)))
    how = settings.how
    sample = intervals.Sample(np.hstack(parts), tables[0].groups.clusters, used=decides, whole=form.whole, **how)
    return sample.estimate(mean_index, unseen, unseen=intervals.UNSEEN_OF_PAIRS)


def alike(tables: Sequence[Table]) -> list[Table]:
    """Return tables of the shared docs; a doc with a failed first call in any run is left out of all."""
    ids = sorted(set.intersection(*(set(table.place) for table in tables)))
    return [table.of(ids) for table in tables]
