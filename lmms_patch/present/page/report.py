"""What a page is made of, and how it is written: a folder with the page, its figures and its tables."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import io
import itertools
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from lmms_patch import __version__, files
from lmms_patch.compare import magic
from lmms_patch.errors import OptionError, PatchError, RecordError, nearest, require
from lmms_patch.present import look
from lmms_patch.present.findings import Finding, case, findings
from lmms_patch.present.page import gather, published, tables
from lmms_patch.present.page.examples import Example
from lmms_patch.present.page.gather import Tell
from lmms_patch.present.page.rows import Entry, Row, check_ignored, labelled, ranked, rows_of
from lmms_patch.present.ranking import By, by_of
from lmms_patch.present.sheets import FORMS, Sheet, of_methods
from lmms_patch.present.sheets import Row as Line
from lmms_patch.present.sheets import to_json as cell_json
from lmms_patch.runs import run as runs
from lmms_patch.runs.numbers import Analysis
from lmms_patch.runs.run import Run
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import harmless
from lmms_patch.tst import pruned

PICTURE, QUALITY = 480, 80
"""Longest side in pixels, and JPEG quality, of an example's image."""
EXAMPLES, MANY = 2, 100
"""Docs that are picked by each rule; and the most results whose docs are read: of more there are no details, categories and examples."""
MARK = "report.json"
"""The file by which a folder is known to be a page of ours, and may be replaced."""
Images = Callable[[str, Sequence[Any]], Mapping[Any, Any]]
"""From a base task and doc ids (of a MAGIC task: digests of what docs show) to PIL images; raises PatchError where they cannot be had."""


@dataclass(frozen=True)
class Report:
    """A page.

    Attributes:
        title: of the page.
        made: what made it: versions, and when.
        entries: the results.
        rows: their numbers at each grid with their ranks, and published numbers.
        sheets: the tables by section.
        figures: the drawings (``figures.Figure``).
        examples: picked docs.
        notes: what is to be said of the groups of comparable results.
        warnings: of the page as a whole, one line each.
        findings: what to know first; their cases are labels of entries.
        runs: the runs behind it.
        details: whether it tells of single results.
    """

    title: str
    made: Mapping[str, str]
    entries: tuple[Entry, ...]
    rows: tuple[Row, ...] = ()
    sheets: Mapping[str, tuple[Sheet, ...]] = field(default_factory=dict)
    figures: tuple[Any, ...] = ()
    examples: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    runs: int = 0
    details: bool = True

    @property
    def models(self) -> list[str]:
        """Its models."""
        return list(dict.fromkeys(row.model for row in self.rows))


def build(
    paths: Sequence[Path],
    output: Path,
    *,
    by: str = "fip",
    ignore: Collection[str] = (),
    over: Collection[str] = (),
    every_setting: bool = False,
    from_csv: Sequence[Path] = (),
    count: int | None = None,
    images: Images | None = None,
    tell: Tell = lambda line: None,
) -> Report:
    """Read the runs, and write their page.

    Args:
        paths: folders of runs, or results files; may be empty where tables are given.
        output: the folder to write; an earlier page there is replaced, anything else is refused.
        by: what to rank by (``ranking.NAMES``).
        ignore: settings in which runs may differ and still be ranked together.
        over: the benchmarks to take means over; none: chosen by who has what (``ranking.shared_benchmarks``).
        every_setting: whether a model's earlier results under other settings are shown too.
        from_csv: published tables of indices.
        count: examples by rule and result; None: two.
        images: gives the examples' images; None: their grids are drawn without.
        tell: is handed a line as work goes on.

    Raises:
        PatchError: a file cannot be read, an option is not possible, the folder cannot be written, or what draws is missing.
    """
    require("report")
    from lmms_patch.present.page import figures, html  # here, because other commands do without what draws

    how = by_of(by)
    files.check_folder(output, MARK, "--output", "an earlier page")
    # A folder with a pruning and no run would be refused as a folder of runs.
    found = _once(
        runs.find(
            path for path in paths if not (path / "pruned.json").is_file() or any(path.rglob("*_samples_*.parquet"))
        )
    )
    check_ignored(ignore, found)
    results, older = [result for run in found for result in run.results], 0
    if not every_setting:
        results, older = runs.newest(results)
    warnings = [f"{older} older results of the same model and task are not shown"] * (older > 0)
    warnings += [f"{result.run.path}: {result.task} scored nothing" for result in results if not result.docs]
    every = labelled(result for result in results if result.docs)
    rows, notes = ranked([row for entry in every for row in rows_of(entry)], how, ignore)
    first = {row.entry.label: row.group == 1 for row in rows[::-1] if row.entry}
    entries = [entry for entry in every if entry.label in first]
    rows = _with_published(rows, [row for path in from_csv for row in published.read(path)])
    _check_over(over, rows)
    if not rows:
        told = "no wrapped task that scored a doc in these runs; ask for one, such as --tasks gqa_rci3"
        raise RecordError(
            f"nothing to report: {told if paths else 'give the --output_path of a run, or a published table with --from-csv'}"
        )
    examples: list[Example] = []
    if details := len(entries) <= MANY:
        entries, shown, more = gather.gather(entries, EXAMPLES if count is None else count, tell)
        examples, unseen = _pictures(shown, {entry.label: entry.result.base for entry in entries}, images, tell)
        warnings += [*more, *unseen]
    else:
        warnings.append(
            f"no details, categories and examples, because there are more than {MANY} results; give runs of fewer models or benchmarks"
        )
    contrasts, untold = _contrasts(entries)
    sheets = _sheets(entries, rows, how, over, contrasts, paths, found)
    # a board has several results of a model on a benchmark, and sentences are about the first
    cases = [
        case(entry.result, entry.model, entry.label) for entry in entries if first[entry.label] or not every_setting
    ]
    title, made = (
        _title(rows),
        {"lmms-patch": __version__, "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M UTC}"},
    )
    told_first = tuple(findings(cases)) if cases else ()
    with files.folder(output, "--output") as folder:
        (folder / "figures").mkdir()
        tell("drawing figures")
        drawn = tuple(figures.write(one, folder / "figures") for one in figures.drawings(entries, rows, sheets))
        report = Report(
            *(
                title,
                made,
                tuple(entries),
                tuple(rows),
                sheets,
                drawn,
                tuple(examples),
                tuple(notes),
                (*warnings, *untold),
            ),
            *(told_first, len(found), details),
        )
        tell("writing tables and page")
        _write(folder, report)
        (folder / "index.html").write_text(html.page(report), encoding="utf-8", errors="replace")
    return report


# --- what is shown --------------------------------------------------------------------------------


def _once(found: Sequence[Run]) -> list[Run]:
    """Return the runs with a wrapped task; of copies the first."""
    kept = {
        tuple((result.origin, *result.fingerprint.values()) for result in run.results): run
        for run in reversed(found)
        if run.results
    }
    return list(kept.values())[::-1]


def _with_published(rows: Sequence[Row], given: Sequence[Row]) -> list[Row]:
    """Return our rows and published rows, the same number once; a model with two numbers is named with its table."""
    known, out = {(row.benchmark, row.model, row.n): row.numbers.get("index") for row in rows}, list(rows)
    for row in given:
        key, index = (row.benchmark, row.model, row.n), row.numbers["index"]
        other = known.setdefault(key, None)
        if other is None or other.value != index.value:
            out.append(row if other is None else dataclasses.replace(row, model=f"{row.model} ({row.source})"))
            known[key] = other or index
    return out


def _check_over(over: Collection[str], rows: Sequence[Row]) -> None:
    """Refuse names of no benchmark with an index.

    Raises:
        OptionError: one is not.
    """
    known = sorted({row.benchmark for row in rows if row.n is not None})
    for name in over:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean {' or '.join(close)}?" if close else f"allowed: {', '.join(known[:20])}"
            raise OptionError(f"no benchmark {name!r} with an index on this board; {hint}")


def _contrasts(entries: Sequence[Entry]) -> tuple[list[magic.Contrast], list[str]]:
    """Return the effects of changed boxes, for each model with two variants of the same data, and why some are missing."""
    places = list(dict.fromkeys(entry.result.run.path for entry in entries if entry.result.magic))
    if not places:
        return [], []
    gathered = magic.gather(places)
    models = {entry.result.run.identity: entry.model for entry in entries}
    named = {task.model: models.get(task.result.run.identity, task.model) for task in gathered.tasks}
    shown = [dataclasses.replace(one, model=named[one.model]) for one in gathered.contrasts]
    return shown, [note for note in gathered.notes if "is not compared with" in note]


def _sheets(
    entries: Sequence[Entry],
    rows: Sequence[Row],
    by: By,
    over: Collection[str],
    contrasts: Sequence[magic.Contrast],
    paths: Sequence[Path],
    found: Sequence[Run],
) -> dict[str, tuple[Sheet, ...]]:
    """Return the tables by section; a section without tables is not there."""
    by_kind = {sheet.name: sheet for sheet in tables.results(rows)}
    text, regions = (by_kind.pop(name, None) for name in ("results_tst", "results_magic"))
    names = {entry.result.run.identity: entry.model for entry in entries}
    some: dict[str, list[Sheet | None]] = {
        "results": [*by_kind.values(), tables.categories(entries), *of_methods(entries)],
        "models": [*tables.overall(rows, by, over), tables.changes(rows)],
        "benchmarks": [*tables.benchmarks(rows), tables.cells(entries)],
        "text": [text, tables.blind(entries), _prunings(paths)],
        "magic": [regions, tables.contrasts(contrasts)],
        "about": [tables.made([run for run in found if run.identity in names], names)],
    }
    return {section: kept for section, sheets in some.items() if (kept := tuple(one for one in sheets if one))}


def _prunings(paths: Sequence[Path]) -> Sheet | None:
    """Return the prunings in some folders; None without any."""
    found = (pruned.read(file) for path in paths for file in sorted(path.rglob("pruned.json")))
    lines: list[Line] = [
        {
            "benchmark": one.base,
            "before": len(one.kept) + len(one.removed),
            "removed": len(one.removed),
            "kept": len(one.kept),
            "stopped because": one.stopped,
            "verdict": one.judged.sentence if one.judged else None,
        }
        for one in found
    ]
    note = "Docs that a text-only model answers, removed (docs/tst.md). The verdict is an independent judge's."
    return tables.sheet("prunings", "Pruned benchmarks", lines, note)


def _title(rows: Sequence[Row]) -> str:
    bases, models = (sorted({getattr(row, what) for row in rows}) for what in ("benchmark", "model"))
    few = ", ".join(bases) if len(bases) <= 3 else f"{len(bases)} benchmarks"
    return f"{few} with {models[0] if len(models) == 1 else f'{len(models)} models'}"


def _pictures(
    shown: Sequence[Example], bases: Mapping[str, str], images: Images | None, tell: Tell
) -> tuple[list[Example], list[str]]:
    """Return the picked docs, with their images where those can be had; and warnings."""
    if images is None:
        return list(shown), []
    taken, warnings = dict[str, Mapping[Any, Any]](), []
    for base in dict.fromkeys(bases[one.entry] for one in shown):
        keys = sorted(
            {one.key for one in shown if bases[one.entry] == base and one.key is not None},
            key=lambda key: (str(type(key)), key),
        )
        tell(f"taking {len(keys)} images of {base}")
        try:
            taken[base] = images(base, keys)
        except PatchError as error:
            warnings.append(f"examples of {base} have no images: {error}")
    out = []
    for one in shown:
        image = taken.get(bases[one.entry], {}).get(one.key)
        # An image of another size is not the image of this run.
        fits = image is not None and (not one.grids or tuple(image.size) == one.size)
        out.append(dataclasses.replace(one, image=picture(image)) if fits else one)
    return out, warnings


def picture(image: Any) -> str:
    """Return a small JPEG of an image, as a ``data:`` URI; transparent parts on white."""
    out = io.BytesIO()
    look.on_white(image, PICTURE).save(out, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}"


# --- files ----------------------------------------------------------------------------------------


def _write(folder: Path, report: Report) -> None:
    """Write every table in every form into ``tables/`` of a folder, and ``report.json``."""
    (folder / "tables").mkdir()
    for sheet, ending in itertools.product(itertools.chain(*report.sheets.values()), FORMS):
        path = folder / "tables" / f"{sheet.name}.{ending}"
        path.write_text(sheet.written(ending), encoding="utf-8", errors="replace")
    text = json.dumps(harmless(to_json(report)), indent=1, allow_nan=False, ensure_ascii=False)
    (folder / MARK).write_text(f"{text}\n", encoding="utf-8", errors="replace")


def to_json(report: Report) -> dict[str, Any]:
    """Return the data of ``report.json``: findings, all results with all numbers, tables."""
    return {
        "schema": 1,
        "title": report.title,
        "made": dict(report.made),
        "warnings": [*report.warnings, *report.notes],
        "findings": to_builtins(report.findings),
        "results": [_entry_json(entry, report.rows) for entry in report.entries],
        "tables": {section: [sheet.to_json() for sheet in sheets] for section, sheets in report.sheets.items()},
        "figures": [
            {key: getattr(one, key) for key in ("name", "title", "caption", "section")} for one in report.figures
        ],
        "examples": [{"result": one.entry, "rule": one.rule, "doc_id": one.doc} for one in report.examples],
    }


def _entry_json(entry: Entry, rows: Sequence[Row]) -> dict[str, Any]:
    """Return a result in plain JSON types."""

    def numbers(measures: Mapping[str, Estimate], analysis: Analysis | None) -> dict[str, Any]:
        gate = analysis.gate.number if analysis and entry.kind.index else None
        return {"gate": gate, "measures": {name: cell_json(one) for name, one in measures.items()}}

    result = entry.result
    own = [row for row in rows if row.entry and row.entry.label == entry.label]
    ranks = [
        {"n": row.n, "group": row.group, "rank": row.place and [row.place.first, row.place.last], "why": row.why}
        for row in own
    ]
    return {
        "id": entry.label,
        "model": entry.model,
        "base": result.base,
        "task": result.label,
        "kind": entry.kind.name,
        "metric": result.metric,
        "type": result.type,
        "date": result.run.date,
        "path": str(result.run.path),
        "grids": list(result.indexed),
        "docs": result.docs,
        **numbers(result.measures, result.analysis),
        "ranks": ranks,
        "categories": {
            name: {"docs": part.docs, **numbers(part.measures, part.analysis)}
            for name, part in entry.categories.items()
        },
        "warnings": list(entry.notes),
    }
