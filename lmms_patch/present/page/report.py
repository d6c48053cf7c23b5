"""What a page is made of, and how it is written: a folder with the page, its figures and its tables."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import io
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
from lmms_patch.present.page.rows import Entry, Part, Row, check_ignored, labelled, ranked, rows_of
from lmms_patch.present.ranking import by_of
from lmms_patch.present.sheets import FORMS, Column, Sheet, of_methods
from lmms_patch.present.sheets import to_json as cell_json
from lmms_patch.runs import run as runs
from lmms_patch.runs.run import Run
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
    entries, rows, warnings = _of_runs(found, every_setting)
    rows, notes = ranked(rows, how, ignore)
    kept = {row.entry.label for row in rows if row.entry}
    entries = [entry for entry in entries if entry.label in kept]
    rows = _with_published(rows, [row for path in from_csv for row in published.read(path)])
    _check_over(over, rows)
    if not rows:
        told = (
            "no wrapped task that scored a doc in these runs; ask for one, such as --tasks gqa_rci3"
            if paths
            else "give the --output_path of a run, or a published table with --from-csv"
        )
        raise RecordError(f"nothing to report: {told}")
    picked: list[gather.Picked] = []
    if details := len(entries) <= MANY:
        entries, picked, more = gather.gather(entries, EXAMPLES if count is None else count, tell)
        warnings += more
    else:
        warnings.append(
            f"no details, categories and examples, because there are more than {MANY} results; give runs of fewer models or benchmarks"
        )
    shown = [one for of_rules in picked for some in of_rules.values() for one in some]
    contrasts, untold = _contrasts(entries)
    bases = {entry.label: entry.result.base for entry in entries}
    examples, unseen = _pictures(shown, bases, images, tell)
    names = {entry.result.run.identity: entry.model for entry in entries}
    sheets = _sheets(entries, rows, how, over, contrasts, paths)
    if found:
        sheets["about"] = (tables.made([run for run in found if run.identity in names], names),)
    known = [
        dataclasses.replace(case(entry.result, entry.model, entry.label))
        for entry in (_first(entries, rows) if every_setting else entries)
    ]
    report = Report(
        _title(rows), _made(), tuple(entries), tuple(rows), sheets, (), tuple(examples), tuple(notes), (*warnings, *unseen, *untold),
        tuple(findings(known)) if known else (), len(found), details,
    )  # fmt: skip
    with files.folder(output, "--output") as folder:
        (folder / "figures").mkdir()
        tell("drawing figures")
        drawn = tuple(figures.write(one, folder / "figures") for one in figures.drawings(entries, rows))
        report = dataclasses.replace(report, figures=drawn)
        tell("writing tables and page")
        _write(folder, report)
        (folder / "index.html").write_text(html.page(report), encoding="utf-8", errors="replace")
    return report


# --- what is shown --------------------------------------------------------------------------------


def _once(found: Sequence[Run]) -> list[Run]:
    kept = {
        tuple((result.origin, *result.fingerprint.values()) for result in run.results): run
        for run in reversed(found)
        if run.results
    }
    return list(kept.values())[::-1]


def _of_runs(found: Sequence[Run], every_setting: bool) -> tuple[list[Entry], list[Row], list[str]]:
    """Return the results to show, their rows, and warnings about results left out."""
    results, older = [result for run in found for result in run.results], 0
    if not every_setting:
        results, older = runs.newest(results)
    warnings = [f"{older} older results of the same model and task are not shown"] * (older > 0)
    warnings += [f"{result.run.path}: {result.task} scored nothing" for result in results if not result.docs]
    entries = labelled(result for result in results if result.docs)
    return entries, [row for entry in entries for row in rows_of(entry)], warnings


def _with_published(rows: Sequence[Row], given: Sequence[Row]) -> list[Row]:
    """Return our rows and published rows, the same number once; a model with two numbers is named with its table."""
    known = {(row.benchmark, row.model, row.n): row.numbers.get("index") for row in rows}
    out = list(rows)
    for row in given:
        key, index = (row.benchmark, row.model, row.n), row.numbers["index"]
        other = known.get(key)
        if other is None or other.value != index.value:
            out.append(row if other is None else dataclasses.replace(row, model=f"{row.model} ({row.source})"))
            known.setdefault(key, index)
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
            allowed = f"allowed: {', '.join(known[:20])}{', ...' if len(known) > 20 else ''}"
            hint = f"did you mean {' or '.join(close)}?" if close else allowed
            raise OptionError(f"no benchmark {name!r} with an index on this board; {hint}")


def _first(entries: Sequence[Entry], rows: Sequence[Row]) -> list[Entry]:
    """Return the results of the first group of each benchmark, kind and grid."""
    first = {row.entry.label for row in rows if row.entry and row.group == 1}
    return [entry for entry in entries if entry.label in first]


def _contrasts(entries: Sequence[Entry]) -> tuple[list[magic.Contrast], list[str]]:
    """Return the effects of changed boxes, for each model with two variants of the same data, and why some are missing."""
    places = list(dict.fromkeys(entry.result.run.path for entry in entries if entry.result.magic))
    if not places:
        return [], []
    gathered = magic.gather(places)
    named = {task.model: task.result.run.identity for task in gathered.tasks}
    models = {entry.result.run.identity: entry.model for entry in entries}
    shown = [dataclasses.replace(one, model=models.get(named[one.model], one.model)) for one in gathered.contrasts]
    return shown, [note for note in gathered.notes if "is not compared with" in note]


def _sheets(
    entries: Sequence[Entry],
    rows: Sequence[Row],
    by: Any,
    over: Collection[str],
    contrasts: Sequence[magic.Contrast],
    paths: Sequence[Path],
) -> dict[str, tuple[Sheet, ...]]:
    """Return the tables by section; a section without tables is not there."""
    by_kind = tables.results(rows)
    own = "results_tst", "results_magic"
    some: dict[str, list[Sheet | None]] = {
        "results": [*(one for one in by_kind if one.name not in own), tables.categories(entries), *of_methods(entries)],
        "models": [*tables.overall(rows, by, over), tables.changes(rows)],
        "benchmarks": [*tables.benchmarks(rows), tables.cells(entries)],
        "text": [*(one for one in by_kind if one.name == "results_tst"), tables.blind(entries), prunings(paths)],
        "magic": [
            *(one for one in by_kind if one.name == "results_magic"),
            tables.contrasts(contrasts),
            tables.counts(entries),
        ],
    }
    return {section: kept for section, sheets in some.items() if (kept := tuple(one for one in sheets if one))}


def prunings(paths: Sequence[Path]) -> Sheet | None:
    """Return a table of the prunings in some folders; None without any."""
    found = [pruned.read(file) for path in paths for file in sorted(path.rglob("pruned.json"))]
    lines: list[dict[str, Any]] = [
        {
            "base": one.base,
            "docs": len(one.kept) + len(one.removed),
            "removed": len(one.removed),
            "kept": len(one.kept),
            "stopped": one.stopped,
            "verdict": one.judged.sentence if one.judged else None,
        }
        for one in found
    ]
    heads = (
        Column("base", "Benchmark"),
        Column("docs", "Docs", help="before pruning"),
        Column("removed", "Removed"),
        Column("kept", "Kept"),
        Column("stopped", "Stopped because"),
        Column("verdict", "Verdict", help="of an independent judge, beside matched-random removal and shuffled golds"),
    )
    note = "Docs that a text-only model answers, removed (docs/tst.md)."
    return Sheet("prunings", "Pruned benchmarks", heads, lines, note) if lines else None


def _title(rows: Sequence[Row]) -> str:
    bases, models = (sorted({getattr(row, what) for row in rows}) for what in ("benchmark", "model"))
    few = ", ".join(bases) if len(bases) <= 3 else f"{len(bases)} benchmarks"
    return f"{few} with {models[0] if len(models) == 1 else f'{len(models)} models'}"


def _made() -> dict[str, str]:
    return {
        "lmms-patch": __version__,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _pictures(
    shown: Sequence[Example], bases: Mapping[str, str], images: Images | None, tell: Tell
) -> tuple[list[Example], list[str]]:
    """Return the picked docs, with their images where those can be had; and warnings."""
    taken: dict[str, Mapping[Any, Any]] = {}
    warnings = []
    for base in dict.fromkeys(bases[one.entry] for one in shown) if images is not None else ():
        keys = sorted({one.key for one in shown if bases[one.entry] == base and one.key is not None})
        tell(f"taking {len(keys)} images of {base}")
        try:
            taken[base] = images(base, keys) if images is not None else {}
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
    for sheet in (sheet for sheets in report.sheets.values() for sheet in sheets):
        for ending in FORMS:
            path = folder / "tables" / f"{sheet.name}.{ending}"
            path.write_text(sheet.written(ending), encoding="utf-8", errors="replace")
    text = json.dumps(harmless(to_json(report)), indent=1, allow_nan=False, ensure_ascii=False)
    (folder / MARK).write_text(f"{text}\n", encoding="utf-8", errors="replace")


def to_json(report: Report) -> dict[str, Any]:
    """Return the data of ``report.json``: findings, all results with all numbers, tables."""
    places: dict[str, list[Any]] = {}
    for row in report.rows:
        if row.entry:
            place = [row.place.first, row.place.last] if row.place else None
            places.setdefault(row.entry.label, []).append(
                {"n": row.n, "group": row.group, "rank": place, "why": row.why}
            )
    return {
        "schema": 1,
        "title": report.title,
        "made": dict(report.made),
        "warnings": [*report.warnings, *report.notes],
        "findings": to_builtins(report.findings),
        "results": [{**_entry_json(entry), "ranks": places.get(entry.label, [])} for entry in report.entries],
        "tables": {section: [sheet.to_json() for sheet in sheets] for section, sheets in report.sheets.items()},
        "figures": [
            {"name": one.name, "title": one.title, "caption": one.caption, "section": one.section}
            for one in report.figures
        ],
        "examples": [{"result": one.entry, "rule": one.rule, "doc_id": one.doc} for one in report.examples],
    }


def _entry_json(entry: Entry) -> dict[str, Any]:
    """Return a result in plain JSON types."""

    def numbers(part: Part, gate: int | None) -> dict[str, Any]:
        return {
            "docs": part.docs,
            "gate": gate,
            "measures": {name: cell_json(one) for name, one in part.measures.items()},
        }

    result, analysis = entry.result, entry.result.analysis
    plain = {
        "id": entry.label,
        "model": entry.model,
        "base": result.base,
        "task": result.label,
        "kind": entry.kind.name,
        "metric": result.metric,
    }
    plain |= {"type": result.type, "date": result.run.date, "path": str(result.run.path), "grids": list(result.indexed)}  # type: ignore[dict-item]
    whole = numbers(Part(result.docs, result.measures), analysis.gate.number if analysis and entry.kind.index else None)
    parts = {
        name: numbers(part, part.analysis.gate.number if part.analysis and entry.kind.index else None)
        for name, part in entry.categories.items()
    }
    return {**plain, **whole, "categories": parts, "warnings": list(entry.notes)}
