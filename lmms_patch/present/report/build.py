"""Builds the folder of a report: page, figures, tables. Written whole or not at all."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import io
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from lmms_patch import __version__, files
from lmms_patch.errors import PatchError, RecordError, require
from lmms_patch.present import look
from lmms_patch.present.findings import findings
from lmms_patch.present.report import across, gather, magic, magic_examples, page, published, shapes
from lmms_patch.present.report.data import Entry, Example, Part, RegionExample, Report
from lmms_patch.present.report.gather import Tell
from lmms_patch.present.sheets import FORMS, Column, Row, Sheet
from lmms_patch.present.sheets import to_json as cell_json
from lmms_patch.runs import run
from lmms_patch.text import harmless
from lmms_patch.tst import pruned

PICTURE, QUALITY = 480, 80
"""Longest side in pixels, and JPEG quality, of an example's image."""
MARK = "report.json"
"""The file by which a folder is known to be a report, and may be replaced."""

Shown = tuple[Entry, str, Any]
"""A doc that is shown: its result, the rule that picked it, and the example, or of MAGIC tasks its record."""
Images = Callable[[str, Sequence[Any]], Mapping[Any, Any]]
"""From a base task and doc ids (of a MAGIC task: digests of what docs show) to PIL images; raises PatchError where they cannot be had."""


def build(
    paths: Sequence[Path],
    output: Path,
    *,
    from_csv: Sequence[Path] = (),
    count: int | None = None,
    images: Images | None = None,
    tell: Tell = lambda line: None,
) -> Report:
    """Read the runs, and write their report.

    Args:
        paths: folders of runs, or results files; may be empty where tables are given.
        output: the folder to write; an earlier report there is replaced, anything else is refused.
        from_csv: published tables of indices.
        count: examples by rule and result; None: two, and none where there are many results (``gather``).
        images: gives the examples' images; None: their grids are drawn without.
        tell: is handed a line as work goes on.

    Raises:
        PatchError: a file cannot be read, the folder cannot be written, or what draws is missing.
    """
    require("report")
    from lmms_patch.present.report import figures  # here, because other commands do without what draws

    check_output(output)
    # A folder with a pruning and no run would be refused as a folder of runs.
    runs = run.find(path for path in paths if not (path / "pruned.json").is_file() or any(path.rglob("*_results.json")))
    entries, picked, warnings = gather.gather(runs, examples=count, tell=tell) if runs else ([], [], [])
    points = [*across.points_of(entries), *(point for path in from_csv for point in published.read(path))]
    if not entries and not points:
        raise RecordError("nothing to report: give the --output_path of a run, or a published table with --from-csv")
    to_show = [
        (entry, rule, line)
        for entry, of_rules in zip(entries, picked, strict=True)
        for rule, lines in of_rules.items()
        for line in lines
    ]
    shown, more = _examples([one for one in to_show if not one[0].result.magic], images, tell)
    regions, unseen = _regions([one for one in to_show if one[0].result.magic], images, tell)
    contrasts, untold = magic.contrasts(runs, {entry.result.run.identity: entry.model for entry in entries})
    with files.folder(output, "--output") as folder:
        (folder / "figures").mkdir()
        tell("drawing figures")
        drawn = figures.figures(entries, points, folder / "figures")
        sheets = dict(across.sheets(entries, points))
        if of_magic := magic.sheets(entries, contrasts):
            sheets["magic"] = tuple(of_magic)
        if prunings := pruned_sheet(paths):
            sheets["tst"] = (*sheets.get("tst", ()), prunings)
        title = _title(entries, points)
        told = (*warnings, *more, *unseen, *untold)
        found = tuple(findings(shapes.cases(entries)))
        report = Report(title, _made(), tuple(entries), sheets, tuple(drawn), tuple(shown), tuple(regions), told, found)
        tell("writing tables and page")
        _tables(folder, report)
        (folder / "index.html").write_text(page.page(report), encoding="utf-8", errors="replace")
    return report


def _title(entries: Sequence[Entry], points: Sequence[across.Point]) -> str:
    """Return the title of a report: benchmarks and models, or their numbers."""
    models = sorted({one.model for one in entries} | {point.model for point in points})
    bases = sorted({one.base for one in entries} | {point.benchmark for point in points})
    few = ", ".join(bases) if len(bases) <= 3 else f"{len(bases)} benchmarks"
    return f"{few} with {models[0] if len(models) == 1 else f'{len(models)} models'}"


def _made() -> dict[str, str]:
    """Return what made the report: versions, and the date."""

    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "unknown"

    return {
        "lmms-patch": __version__,
        "altair": installed("altair"),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }


# --- examples -------------------------------------------------------------------------------------


def _examples(picked: Sequence[Shown], images: Images | None, tell: Tell) -> tuple[list[Example], list[str]]:
    """Return the picked docs, with their images where those can be had; and warnings."""
    pictures, warnings = _pictures([(entry.base, made.doc_id) for entry, _, made in picked], images, tell)
    out = []
    for entry, _, made in picked:
        image = pictures.get(entry.base, {}).get(made.doc_id)
        # An image of another size is not the image of this run.
        fits = image is not None and tuple(image.size) == made.size
        out.append(dataclasses.replace(made, image=picture(image)) if fits else made)
    return out, warnings


def _regions(picked: Sequence[Shown], images: Images | None, tell: Tell) -> tuple[list[RegionExample], list[str]]:
    """Return the picked docs of MAGIC tasks, with the model's view where available, and warnings."""
    digests = [magic_examples.asked(line) for _, _, line in picked]
    pictures, warnings = _pictures(
        [(entry.base, digest) for (entry, _, _), digest in zip(picked, digests, strict=True) if digest], images, tell
    )
    out = []
    for (entry, rule, line), digest in zip(picked, digests, strict=True):
        seen = pictures.get(entry.base, {}).get(digest)
        out.append(magic_examples.example(entry.label, rule, line, None if seen is None else picture(seen)))
    return out, warnings


def _pictures(
    wanted: Sequence[tuple[str, Any]], images: Images | None, tell: Tell
) -> tuple[dict[str, Mapping[Any, Any]], list[str]]:
    """Return the images of some docs, by base task and doc, as far as they can be had; and warnings."""
    pictures: dict[str, Mapping[Any, Any]] = {}
    warnings = []
    for base in dict.fromkeys(base for base, _ in wanted) if images is not None else ():
        docs = sorted({doc for other, doc in wanted if other == base})
        tell(f"taking {len(docs)} images of {base}")
        try:
            pictures[base] = images(base, docs) if images is not None else {}
        except PatchError as error:
            warnings.append(f"examples of {base} have no images: {error}")
    return pictures, warnings


def picture(image: Any) -> str:
    """Return a small JPEG of an image, as a ``data:`` URI; transparent parts on white."""
    out = io.BytesIO()
    look.on_white(image, PICTURE).save(out, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}"


# --- files ----------------------------------------------------------------------------------------


def _tables(folder: Path, report: Report) -> None:
    """Write every table in every form into ``tables/`` of a folder."""
    (folder / "tables").mkdir()
    for sheets in report.sheets.values():
        for sheet in sheets:
            for ending in FORMS:
                text = sheet.written(ending)
                (folder / "tables" / f"{sheet.name}.{ending}").write_text(text, encoding="utf-8", errors="replace")
    (folder / MARK).write_text(
        json.dumps(harmless(to_json(report)), indent=1, allow_nan=False, ensure_ascii=False) + "\n",
        encoding="utf-8",
        errors="replace",
    )


def to_json(report: Report) -> dict[str, Any]:
    """Return the data of ``report.json``: schema, versions, results, tables (``lmms-patch config schemas/report``)."""
    return {
        "schema": 1,
        "title": report.title,
        "made": dict(report.made),
        "warnings": list(report.warnings),
        "findings": to_builtins(report.findings),
        "results": [_entry_json(entry) for entry in report.entries],
        "tables": {section: [sheet.to_json() for sheet in sheets] for section, sheets in report.sheets.items()},
        "figures": [
            {"name": f.name, "title": f.title, "caption": f.caption, "section": f.section} for f in report.figures
        ],
        "examples": [
            *({"result": one.entry, "rule": one.rule, "doc_id": one.doc_id} for one in report.examples),
            *({"result": region.entry, "rule": region.rule, "doc_id": region.doc} for region in report.regions),
        ],
    }


def _entry_json(entry: Entry) -> dict[str, Any]:
    """Return a result of the report in plain JSON types."""

    def numbers(part: Part) -> dict[str, Any]:
        measures = {name: cell_json(one) for name, one in part.measures.items()}
        return {"docs": part.docs, "gate": part.gate, "measures": measures}

    result = entry.result
    plain = {
        "id": entry.label,
        "model": entry.model,
        "base": entry.base,
        "task": result.label,
        "kind": entry.kind.name,
        "metric": result.metric,
    }
    plain |= {"type": result.type, "date": result.run.date, "path": str(result.run.path)}
    excluded = {str(n): dict(reasons) for n, reasons in entry.excluded.items()}
    counts = {"excluded": excluded, "failures": dict(entry.failures), "warnings": list(entry.warnings)}
    categories = {name: numbers(part) for name, part in entry.categories.items()}
    return {**plain, "grids": list(entry.grids), **numbers(entry.whole), "categories": categories, **counts}


def check_output(output: Path) -> None:
    """Check whether a report may be written to a folder.

    Raises:
        OptionError: a file, a folder with other things in it, or no right to write.
    """
    files.check_folder(output, MARK, "--output", "an earlier report")


# --- prunings -------------------------------------------------------------------------------------


def pruned_sheet(paths: Sequence[Path]) -> Sheet | None:
    """Return a table of the prunings in some folders; None without any."""
    rows: list[Row] = []
    for path in paths:
        for file in sorted(path.rglob("pruned.json")):
            found = pruned.read(file)
            kept, removed = len(found.kept), len(found.removed)
            verdict = found.judged.sentence if found.judged else ""
            rows.append(
                {
                    "base": found.base,
                    "docs": kept + removed,
                    "removed": removed,
                    "kept": kept,
                    "stopped": found.stopped,
                    "verdict": verdict,
                }
            )
    if not rows:
        return None
    columns = (
        Column("base", "benchmark"),
        Column("docs", help="before pruning"),
        Column("removed"),
        Column("kept"),
        Column("stopped", "stopped because"),
        Column("verdict", help="of an independent judge, beside matched-random removal and shuffled golds"),
    )
    return Sheet(
        "prunings",
        "Pruned benchmarks",
        columns,
        rows,
        "Docs that a text-only model answers, removed (docs/tst.md).",
    )
