"""The table of a finished run, in plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_patch import text
from lmms_patch.ask.spec import KINDS, REGIONS, Key, end
from lmms_patch.rci.analysis import ASSUMED
from lmms_patch.rci.pooling import Averaged, Pooled
from lmms_patch.rci.recompute import Analyzed
from lmms_patch.runs import failures, reading
from lmms_patch.runs.numbers import DIFFERENCES, Analysis, metrics, sets_in, to_json
from lmms_patch.runs.results import TaskResult, read_results
from lmms_patch.stats.gate import NOT_SHOWN
from lmms_patch.stats.index import band
from lmms_patch.stats.resample import Estimate

Row = list[str]
_OF_EARLIER_VERSIONS = {"text priors not removed from the adjusted index: run the blind task too": ASSUMED}
"""Lines in results files of earlier versions, by what is said now: the blind task may be in the same run."""
BLIND_IS_HERE = f"{ASSUMED}; lmms-patch analyze, or report, takes the blind run of this folder as null too"


@dataclass(frozen=True)
class Shown:
    """One wrapped task, as the table shows it.

    Attributes:
        name: its name, with the filter where the task has several.
        described: what was wrapped and how.
        metrics: its numbers by name.
        analysis: what they are made of (``outcome.Analysis`` in plain JSON types); empty where there is none.
    """

    name: str
    described: Mapping[str, Any]
    metrics: Mapping[str, float | None]
    analysis: Mapping[str, Any] = field(default_factory=dict)

    @property
    def index(self) -> str | None:
        """``rci`` or ``pcri``; None for a kind without an index."""
        return KINDS[self.described["kind"]].index

    @property
    def grids(self) -> list[int]:
        """The grids with an index."""
        return list(self.described["grids"]) if self.index else []

    @property
    def regions(self) -> bool:
        """Whether docs' own boxes are shown in place of cells."""
        return KINDS[self.described["kind"]].regions

    @property
    def refused(self) -> str:
        """Why the gate does not let the index be read, in a word or two; empty where it does."""
        if self.metrics.get("gate") != 0:
            return ""
        return reading.refusal(str(reading.gate_of(self.analysis).get("reason") or ""))

    def set(self, key: Key) -> Mapping[str, Any]:
        """Return what is stored of a grid, or of a set of boxes; empty where nothing is."""
        return sets_in(self.analysis).get(str(key)) or {}


def load(path: Path) -> list[Shown]:
    """The wrapped tasks of a results file that show the image in some way, with the numbers of the run.

    Raises:
        RecordError: the file cannot be read.
    """
    results = [result for result in read_results(path) if not KINDS[result.described["kind"]].folds and result.described["kind"] != "magic"]
    filters = Counter(r.task for r in results)
    return [_of(r, r.task if filters[r.task] == 1 else f"{r.task}, {r.filter}") for r in results]


def _of(result: TaskResult, name: str) -> Shown:
    return Shown(name, result.described, result.metrics, result.details.get("analysis") or {})


def recomputed(analyzed: Sequence[Analyzed]) -> list[Shown]:
    """The same rows, with recomputed numbers."""
    out = []
    for a in analyzed:
        stored = _of(a.run.result, a.run.name)
        analysis = stored.analysis if a.analysis is None else to_json(a.analysis)
        metric = analysis.get("metric", stored.described["metric"])
        numbers: dict[str, Any] = {**stored.metrics, **a.metrics}
        if a.analysis is not None:
            numbers |= _of_metric(metric, a.analysis)
        out.append(Shown(stored.name, {**stored.described, "metric": metric}, numbers, analysis))
    return out


def _of_metric(metric: str, analysis: Analysis) -> dict[str, float | None]:
    """The metric on full images and on best cells or boxes, by the names that the harness writes."""
    return {metric: analysis.fip.value, **{f"{metric}_mpp{end(key)}": grid.mpp.value for key, grid in analysis.sets.items()}}


def table(shown: Sequence[Shown]) -> str:
    """Return one row per wrapped task: chance, FIP, MPP_n, the index with its interval, and the index with luck removed.

    Scores are on the metric's own scale; ``n/a`` where a number is not defined, ``near chance`` or ``does not look`` where the gate
    says that the index means nothing. FIP, MPP and the index leave out the docs that the third column counts: where they are not the
    same docs at every grid, there is a FIP for each. Of docs with a failed call, all or some numbers are missing. What stands beside an
    index (``assumed null``, ``contradicted``, ...) is explained by ``warnings``. Tasks that show docs' own boxes have a table of their own.
    """
    parts = [_grid_table([s for s in shown if not s.regions]) if not all(s.regions for s in shown) else ""]
    parts.append(_region_table([s for s in shown if s.regions]))
    return "\n\n".join(part for part in parts if part)


def _region_table(shown: Sequence[Shown]) -> str:
    """One row per task and set of boxes, and one per task with what sets the two apart."""
    if not shown:
        return ""
    level = next((s.analysis["fip"]["level"] for s in shown if s.analysis), 0.95)
    header = ["task", "boxes", "docs", "chance", "full (FIP)", "best box (MPP)", f"RCI [{100 * level:.3g} %]", "luck removed", "one box, on average"]
    rows = []
    for s in shown:
        for key in REGIONS:
            found = s.set(key)
            docs = (
                f"{found['mpp']['n']} ({found['excluded']} left out)" if found and found["excluded"] else str(found["mpp"]["n"]) if found else "n/a"
            )
            ends = [number(s.metrics.get("chance")), number(found.get("fip")), number(s.metrics.get(f"{s.described['metric']}_mpp{end(key)}"))]
            name = f"rci{end(key)}"
            rows.append([s.name, key, docs, *ends, _index(s, name, key), _adjusted(s, name, key), _with_span(s, f"mean_{key}")])
    return "\n\n".join([aligned([header, *rows]), _difference_table(shown)])


def _difference_table(shown: Sequence[Shown]) -> str:
    header = ["task", "relevant minus adversarial", "docs with both", "best boxes", "best of equally many", "one box, on average"]
    rows = []
    for s in shown:
        docs = s.metrics.get("n_both")
        differences = [_with_span(s, name) for name in DIFFERENCES]
        rows.append([s.name, s.described["metric"], "n/a" if docs is None else str(int(docs)), *differences])
    return aligned([header, *rows])


def _with_span(shown: Shown, name: str) -> str:
    numbers, signed = shown.metrics, name in DIFFERENCES
    low, high = numbers.get(f"{name}_low"), numbers.get(f"{name}_high")
    return number(numbers.get(name), signed=signed) + _span(low, high, signed)


def _grid_table(shown: Sequence[Shown]) -> str:
    grids = sorted({n for s in shown for n in s.grids})
    name = next((s.index for s in shown if s.index), None) or "rci"
    hidden = sorted({n for s in shown for n in s.described["grids"] if s.described["kind"] == "occlude"})
    level = next((s.analysis["fip"]["level"] for s in shown if s.analysis), 0.95)
    header = ["task", "metric", "docs", "chance", "full (FIP)"]
    header += [f"best of {n * n} (MPP_{n})" for n in grids]
    header += [text for n in grids for text in (f"{name.upper()}_{n} [{100 * level:.3g} %]", "luck removed")]
    header += [f"drop_{n}" for n in hidden]
    rows = [[s.name, s.described["metric"], _docs(s), number(s.metrics.get("chance")), _fip_text(s), *_cells(s, grids, hidden)] for s in shown]
    return aligned([header, *rows])


def _fip(shown: Shown) -> float | None:
    metric = shown.described["metric"]
    if shown.metrics.get("n_failed"):  # what the harness prints counts failed calls as answers
        return (shown.analysis.get("fip") or {}).get("value")
    return None if metric == "bypass" else shown.metrics.get(metric)  # the host's mark of --predict_only


def _fips_of_used_docs(shown: Shown) -> list[float]:
    """FIP over the docs that MPP and the index use, grid by grid; empty where they use all docs, or the run does not say."""
    grids = [shown.set(n) for n in shown.grids]
    known = [grid["fip"] for grid in grids if grid.get("fip") is not None]
    return known if len(known) == len(grids) and any(grid.get("excluded") for grid in grids) else []


def _fip_text(shown: Shown) -> str:
    """FIP over the docs of the index, so that 1 - MPP / FIP is the index beside it."""
    used = dict.fromkeys(map(number, _fips_of_used_docs(shown)))
    return " / ".join(used) or number(_fip(shown))


def _fip_of_used_docs(shown: Shown) -> str:
    """Say what FIP is over all docs, where the table shows that of the docs that the index uses; "" where it shows that of all."""
    own = number(_fip(shown))
    if not (used := _fips_of_used_docs(shown)) or set(map(number, used)) == {own}:
        return ""
    return f"full (FIP) is over the docs that the index uses; over all {int(shown.metrics.get('n_docs') or 0)} docs it is {own}"


def _docs(shown: Shown) -> str:
    failed = int(shown.metrics.get("n_failed") or 0)
    docs = int(shown.metrics.get("n_docs") or (0 if failed else shown.metrics.get("records")) or 0)
    out = max([int(shown.metrics.get(f"n_excluded{n}") or 0) for n in shown.grids], default=0)
    notes = [*([f"{out} left out"] if out else []), *([f"{failed} failed"] if failed else [])]
    return f"{docs} ({', '.join(notes)})" if notes else str(docs)


def _cells(shown: Shown, grids: Sequence[int], hidden: Sequence[int]) -> Row:
    numbers, m, index = shown.metrics, shown.described["metric"], shown.index
    best = [number(numbers[f"{m}_mpp{n}"]) if f"{m}_mpp{n}" in numbers else "" for n in grids]
    values = [text for n in grids for text in (_index(shown, f"{index}{n}", n), _adjusted(shown, f"{index}{n}", n))]
    drops = [number(numbers[f"{m}_drop{n}"]) if f"{m}_drop{n}" in numbers else "" for n in hidden]
    return best + values + drops


def _index(shown: Shown, name: str, key: Key) -> str:
    if name not in shown.metrics:
        return ""
    found = _estimate(shown, name)
    if found.value is None:
        return shown.refused or "n/a"
    return _text(reading.raw(found, reading.mark_of(shown.set(key)), _marginal(shown)))


def _adjusted(shown: Shown, name: str, key: Key) -> str:
    if name not in shown.metrics or shown.metrics[name] is None:
        return ""
    found, adj = _estimate(shown, f"{name}_adj"), shown.set(key).get("adj") or {}
    if found.value is None:
        return str(adj.get("estimate", {}).get("reason", "")).partition(":")[0] or "n/a"
    return _text(reading.corrected(found, reading.null_of(shown.set(key)), _marginal(shown), isinstance(key, str)))


def _marginal(shown: Shown) -> bool:
    return bool(reading.gate_of(shown.analysis).get("marginal"))


def _estimate(shown: Shown, name: str) -> Estimate:
    """A number of the table with the ends of its interval."""
    value, low, high = (shown.metrics.get(f"{name}{ending}") for ending in ("", "_low", "_high"))
    return Estimate(value, None, low, high, 0, 0, 0)


def _text(estimate: Estimate) -> str:
    return reading.text(estimate, lambda value: number(value, signed=True))


def _span(low: float | None, high: float | None, signed: bool = True) -> str:
    """Return an interval as it stands behind a number; empty where there is none, or one without width, as runs of earlier versions have it."""
    return "" if low is None or high is None or low == high else f" [{number(low, signed=signed)}, {number(high, signed=signed)}]"


def number(value: float | None, signed: bool = False) -> str:
    """A score with three decimals; n/a where there is none."""
    if value is None:
        return "n/a"
    return f"{value:+.3f}" if signed else f"{value:.3f}"


def aligned(rows: Sequence[Row]) -> str:
    """Rows as a table, the first one its header."""
    rows = [[text.line(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))) for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def warnings(shown: Sequence[Shown]) -> list[str]:
    """What to mind, one line each, with the tasks that it is true of."""
    found: dict[str, list[str]] = {}
    blind = {s.described["base"] for s in shown if s.described["kind"] == "blind"}
    for s in shown:
        lines = [*s.analysis.get("warnings", ()), *(w for grid in sets_in(s.analysis).values() for w in grid["warnings"]), *_left_out(s)]
        lines += [str(reading.gate_of(s.analysis).get("reason") or "")] if s.refused else []
        lines += reading.minds(s.analysis) if s.index or s.regions else []
        lines += _of_failures(s)
        lines += [_fip_of_used_docs(s)]
        if s.described["metric"] == "bypass":  # --predict_only: of numbers that nobody asked for there is nothing to say
            lines = _of_failures(s)
        for line in dict.fromkeys(_OF_EARLIER_VERSIONS.get(line, line) for line in lines if line):
            found.setdefault(BLIND_IS_HERE if line == ASSUMED and s.described["base"] in blind else line, []).append(s.name)
    return [text.line(f"{', '.join(names)}: {line}") for line, names in found.items()]


def _left_out(shown: Shown) -> list[str]:
    """Of a task with boxes: why docs are left out, and how many."""
    out = []
    for key, reasons in ((shown.analysis.get("regions") or {}).get("left_out") or {}).items():
        told = ", ".join(f"{count} with {why}" for why, count in sorted(reasons.items(), key=lambda item: -item[1]))
        out += [f"docs left out of the numbers of {key} boxes: {told}"] if told else []
    return out


def _of_failures(shown: Shown) -> list[str]:
    """Return how many calls failed, and what the harness's own number makes of them; nothing where each was answered."""
    failed, metric = failures.from_json(shown.analysis.get("failed")), shown.described["metric"]
    if failed is None:
        return []
    return [failed.sentence, *filter(None, [failed.native(metric) if shown.metrics.get(metric) is not None else ""])]


def chances(shown: Sequence[Shown]) -> str:
    """Return every chance floor of every task, and the gate: what the full image had to beat, a wrong image among it."""
    header = ["task", "metric", "full (FIP)", "needs", "gate", "wrong image", "full - wrong", "docs asked"]
    header += ["uniform", "constant", "by stratum", "other gold", "published rule", "ceiling"]
    rows = []
    for s in shown:
        chance, gate = s.analysis.get("chance", {}), s.analysis.get("gate", {})
        floors = [number((chance.get("floors", {}).get(name) or {}).get("value")) for name in ("uniform", "constant", "stratum", "other")]
        looked: Mapping[str, Any] = next(iter(gate.get("looks") or ()), {})
        image = [number(looked.get("other")), _difference(looked), str(looked.get("docs") or "n/a")]
        ends = [number(chance.get("published")), number(s.metrics.get("ceiling"))]
        rows.append([s.name, s.described["metric"], number(_fip(s)), number(gate.get("threshold")), reading.gate_word(gate), *image, *floors, *ends])
    return aligned([header, *rows])


def _difference(looked: Mapping[str, Any]) -> str:
    found = looked.get("difference") or {}
    return number(found.get("value"), signed=True) + _span(found.get("low"), found.get("high"))


def cell_tables(shown: Sequence[Shown]) -> str:
    """For each task and grid: the share of the score that each cell earns, in percent, and whether it could be even."""
    tables = [_cell_table(s, n, s.analysis["grids"][str(n)].get("shares")) for s in shown if s.analysis for n in s.grids]
    return "\n\n".join([*tables, *(f"{s.name}: no shares of cells; the boxes of a doc are no places that all docs have" for s in shown if s.regions)])


def _cell_table(shown: Shown, n: int, shares: Mapping[str, Any] | None) -> str:
    title = f"{shown.name}, {n}x{n}: share of the cells' score"
    if not shares or shares["score"] is None:
        return f"{title}: no cell scores"
    marked = [f"{100 * s:.0f}{'*' if p < 0.05 else ' '}" for s, p in zip(shares["score"], shares["p_cells"], strict=True)]
    rows = ["  ".join(cell.rjust(4) for cell in marked[row * n : (row + 1) * n]) for row in range(n)]
    middle = "" if shares["centre"] is None else f"; the middle earns {shares['centre']:.1f} times its share of the area"
    return "\n".join([f"{title}, in % (even: p = {shares['p']:.3f}; * a cell that is not even, Holm-corrected{middle})", *rows])


def category_table(analyzed: Analyzed) -> str:
    """One row per category of a task."""
    described = {**analyzed.run.result.described, "metric": analyzed.analysis.metric if analyzed.analysis else ""}
    rows = []
    for name, found in analyzed.categories.items():
        flat: dict[str, Any] = metrics(found, KINDS[described["kind"]].prefix) | _of_metric(found.metric, found)
        rows.append(Shown(name, described, flat, to_json(found)))
    return f"{analyzed.run.name}, by category\n{table(rows)}"


def pooled_table(pooled: Sequence[Pooled]) -> str:
    """One row per group and grid: the index of the pooled FIP and MPP."""
    header = ["group", "grid", "docs", "full (FIP)", "best cell (MPP)", "RCI [interval]"]
    rows = []
    for p in pooled:
        value = p.index.reason if p.index.value is None else number(p.index.value, signed=True) + _span(p.index.low, p.index.high)
        rows.append([p.group, f"{p.n}x{p.n}", str(p.index.n), number(p.fip), number(p.mpp), value])
    return aligned([header, *rows])


def averaged_table(averaged: Sequence[Averaged], runs: Sequence[Sequence[Analyzed]] = ()) -> str:
    """Return one row per task and number: mean over runs, standard deviation between runs, and the interval over docs.

    Args:
        averaged: the tasks.
        runs: what they are averaged of; an index that must not be read as it stands in one of them is marked.
    """
    header = ["task", "number", "runs", "mean", "SD between runs", "interval over docs"]
    rows = []
    for a in averaged:
        said = _in_any(a.task, runs)
        for name, value in a.metrics.items():
            if name.endswith(("_low", "_high")):
                continue
            estimate = a.intervals.get(name)
            span = _span(estimate.low, estimate.high).strip() if estimate else ""
            rows.append([a.task, ", ".join([name, *said.get(name, ())]), str(a.runs), number(value), number(a.spread[name]), span])
        for name, split in a.split.items():
            rows.append([a.task, f"{name}, cell chosen on another run", str(a.runs), number(split.value), "", _span(split.low, split.high).strip()])
    return aligned([header, *rows])


def _in_any(task: str, runs: Sequence[Sequence[Analyzed]]) -> dict[str, tuple[str, ...]]:
    """Return what stands beside the indices of a task in any of some runs, by the names of the indices."""
    out: dict[str, tuple[str, ...]] = {}
    for a in (one for run in runs for one in run if one.run.result.task == task and one.analysis is not None):
        name = KINDS[a.run.result.described["kind"]].prefix
        for key, grid in a.analysis.sets.items() if a.analysis else ():
            if grid.mark:
                out[f"{name}{end(key)}"] = (reading.CONTRADICTED,)
            if grid.adj is not None and grid.adj.null != reading.MEASURED:
                out[f"{name}{end(key)}_adj"] = (reading.ASSUMED,)
    return out


def meaning(shown: Sequence[Shown]) -> str:
    """Return one sentence: which tasks one cell answers as well as the whole image, and which need the whole image.

    "As well" is an interval of the index up to 0 at most, at every grid. "Need" is an interval from 0.30 on, at every grid (the papers'
    band for strong global reasoning). The index is the corrected one where its null is measured; else the raw one, of which nothing is
    said where the corrected one contradicts it or is shown to be above 0. A task whose gate fails is said to show nothing, and why.
    Where no task has an index, that is said.
    """
    if shown and not any(s.grids or s.regions for s in shown):
        kinds = _listed(sorted({s.described["kind"] for s in shown}))
        return f"In words: tasks of the kind {kinds} have no index; set them beside the full image: lmms-patch gap FULL BLIND, or lmms-patch report."
    said: dict[str, list[str]] = {phrase: [] for phrase in _PHRASES}
    for s in shown:
        if phrase := _phrase(s) if s.grids else "":
            said[phrase].append(_named(s))
    parts = _words_of_regions([s for s in shown if s.regions]) + [phrase.format(_listed(names)) for phrase, names in said.items() if names]
    if not parts and not any(s.grids for s in shown):
        return "In words: neither relevant nor adversarial boxes are clearly worth more than the other."
    return f"In words: {'; '.join(parts)}." if parts else "In words: no task is clearly answered by one cell, and none clearly needs the whole image."


_LOCAL = ("one cell is enough for {} (RCI at or below 0)", "one cell is enough for {} (RCI with luck removed at or below 0)")
_WHOLE = ("only the whole image answers {} (RCI of 0.30 or more)", "only the whole image answers {} (RCI with luck removed of 0.30 or more)")
_MISLEAD = "cells mislead in {}: a single cell does worse than a wrong picture"
_REFUSED = {
    reading.DOES_NOT_LOOK: "{} cannot be read: the answers do not depend on the image",
    NOT_SHOWN: "{} cannot be read: it is not shown that the answers depend on the image",
    reading.NEAR_CHANCE: "{} cannot be read: the full image does not beat an uninformed answer",
}
_PHRASES = (*_LOCAL, *_WHOLE, _MISLEAD, *_REFUSED.values())
"""What ``meaning`` may say of tasks, in its order."""


def _phrase(shown: Shown) -> str:
    """Return what is true of a task, of ``_PHRASES``; empty where nothing is clear."""
    if shown.refused:
        return _REFUSED[shown.refused]
    found = [shown.set(n) for n in shown.grids]
    measured = bool(found) and all(reading.null_of(grid) == reading.MEASURED for grid in found)
    names = [f"{shown.index}{n}{'_adj' * measured}" for n in shown.grids]
    low, high = ([end for name in names if (end := shown.metrics.get(f"{name}_{ending}")) is not None] for ending in ("low", "high"))
    if len(low) + len(high) < 2 * len(names) or (not measured and any(reading.mark_of(grid) for grid in found)):
        return ""
    if any(a == b for a, b in zip(low, high, strict=True)):  # of an earlier version: an interval without width says nothing
        return ""
    if measured and all(end > 1 for end in low):
        return _MISLEAD
    if all(band(end) == "strong global" for end in low):
        return _WHOLE[measured]
    lucky = not measured and any((shown.metrics.get(f"{name}_adj_low") or 0) > 0 for name in names)
    return _LOCAL[measured] if all(end <= 0 for end in high) and not lucky else ""


def _words_of_regions(shown: Sequence[Shown]) -> list[str]:
    """Whether one relevant box is worth more than one adversarial box, where the interval of their means says so."""
    more = [_named(s) for s in shown if (s.metrics.get("regions_mean_low") or 0) > 0]
    less = [_named(s) for s in shown if (s.metrics.get("regions_mean_high") or 0) < 0]
    out = [f"a relevant box answers more than an adversarial one in {_listed(more)}"] if more else []
    return out + ([f"an adversarial box answers more than a relevant one in {_listed(less)}"] if less else [])


def _named(shown: Shown) -> str:
    return shown.name if "," in shown.name else shown.described["base"]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
