"""The files of a finished run, by the writer that a run has: every made run is written here."""

import json

import polars as pl
from msgspec import structs

from lmms_patch.harness import written
from lmms_patch.harness.wrap.aggregate import Details
from lmms_patch.magic.score import rows
from lmms_patch.magic.score.results import Record as MagicRecord
from lmms_patch.runs import samples
from lmms_patch.runs.details import Computed, Made, MagicNumbers, Of, Settings, TstDetails
from lmms_patch.runs.frames import frame_of
from lmms_patch.runs.numbers import Analysis
from lmms_patch.runs.schema import TYPES
from lmms_patch.runs.typed import convert
from tests.making.docs import as_docs

DATE = "2026-01-01T00-00-00.000000"


def described(spec, metric="acc"):
    """What the config of a wrapped task says of it."""
    return {"lmms_patch": {"schema": 1, "pixels": 1, **spec.described(), "metric": metric}}


def lines_of(records, **more):
    """Return the docs of a wrapped task; ``more`` gives further keys, which are the same for every doc."""
    return [{"doc_id": one["doc_id"], **more, "patch": one} for one in records]


def write_files(folder, tasks, *, date=DATE, change=None, **about):
    """Write the tables of a run and the host's results file; the results file's path.

    ``tasks`` is ``{name: (values, config, lines)}``: values by metric, of the filter pipeline ``none`` where a name
    tells no other; lines None: as many docs as the numbers say, of which nothing is known. ``change`` may alter what
    the host has of the run before it is written; ``about`` is more of that. The harness's count of its samples is that
    of the docs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts = {name: len({line.get("doc_id") for line in lines}) for name, (_, _, lines) in tasks.items() if lines}
    offset = int((about.get("config") or {}).get("offset") or 0)
    samples = {name: {"original": docs + offset, "effective": docs + offset} for name, docs in counts.items()}
    data = {"results": {}, "configs": {}, "group_subtasks": {}, "date": date, "n-samples": samples, **about}
    for name, (values, config, _) in tasks.items():
        data["results"][name] = {
            key if "," in key or key == "alias" else f"{key},none": value for key, value in values.items()
        }
        data["configs"][name] = config
    if change:
        change(data)
    path = folder / f"{date}_results.json"
    write_data(path, data, {name: lines for name, (_, _, lines) in tasks.items()})
    return path


def write_data(path, data, lines):
    """Write what the host has of a run, in plain JSON types, and the tables of its tasks.

    Args:
        path: of the results file.
        data: with the objects ``patch`` or ``magic`` among its numbers.
        lines: by task its docs; None, or no such task: not known.
    """
    for name, values in data["results"].items():
        config = data["configs"][name]
        asked = config.get("lmms_patch") or config.get("metadata", {}).get("magic")
        for key, value in values.items():
            if key.partition(",")[0] in ("patch", "magic"):
                values[key] = as_details(value, asked, lines.get(name))
    written.save(lambda results: path.write_text(json.dumps(results, default=str), encoding="utf-8"), data, path)


def as_details(given, asked, lines):
    """What a run computed of a task, from its numbers in plain JSON types and its docs."""
    out = given if isinstance(given, Details) else Details({k: v for k, v in given.items() if not isinstance(v, dict)})
    higher = given.get("higher_is_better") or {asked["metric"]: True} if not isinstance(given, Details) else {}
    if not isinstance(given, Details):
        analysis = convert(given["analysis"], Analysis) if given.get("analysis") else None
        tst = convert(given["tst_details"], TstDetails) if given.get("tst_details") else None
        magic = convert(given["magic"], MagicNumbers) if given.get("magic") else None
        out.computed = Computed(analysis, tst, magic)
        settings = {k: v for k, v in (given.get("settings") or {}).items() if k in Settings.__dataclass_fields__}
        made = {k: v for k, v in (given.get("made") or {}).items() if k in Made.__struct_fields__}
        out.of = Of(given.get("form"))
        kept = ("unusable", "texts", "importance", "causes", "shuffled", "diagnostic", "folds", "settings", "seconds")
        found = given.get("tst_details") or {}
        out.about = {
            "metrics": {asked["metric"]: higher.get(asked["metric"], True), **higher},
            "settings": Settings(**settings),
            "made": Made(**made),
            "tst": {k: found[k] for k in kept if k in found}
            | ({"grouping": found["headline"]} if found else given.get("about_tst", {})),
            "magic": {k: v for k, v in (given.get("magic") or {}).items() if k not in ("numbers", "bounds", "by_type")},
        }
        if analysis is not None:
            out.of = Of(analysis.form, analysis=analysis if analysis.form is None else None)
    if lines is not None and lines and "magic" in lines[0]:
        out.frame = lambda: rows.frame_of([as_magic(line) for line in lines])
    elif lines is not None:
        names = list(out.about["metrics"])
        docs = as_docs((line["patch"] for line in lines), names[0])
        out.frame = lambda: frame_of(docs, names)
    elif out.frame is None:
        out.frame = lambda: unknown_docs(int(given.get("records") or 0))
    return out


def reworked(table, *columns, keep=True, **facts):
    """Write a samples table again, with other columns, only some of its rows, or other facts in its footer.

    Args:
        table: the file.
        columns: expressions, as ``with_columns`` takes them.
        keep: an expression, as ``filter`` takes it.
        facts: parts of the footer.
    """
    frame = samples.frame_of(table).with_columns(columns).filter(keep)
    samples.write(table, frame, structs.replace(samples.about_of(table), **facts))


def as_magic(line):
    """A doc of a MAGIC task from what a test says of it."""
    response = line.get("filtered_resps")
    response = response[0] if isinstance(response, list) else response
    about = {"doc_id": line["doc_id"], "response": response or "", "target": str(line.get("target") or "")}
    return convert({**line["magic"], **about}, MagicRecord)


def unknown_docs(count):
    """Rows of docs of which nothing is known."""
    columns = {"doc_id": range(count), "view": [0] * count, "kind": ["full"] * count}
    return pl.DataFrame({name: pl.Series(list(values), dtype=TYPES[name]) for name, values in columns.items()})
