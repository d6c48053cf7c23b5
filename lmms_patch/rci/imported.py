"""Runs of VLMEvalKit as finished runs of lmms-patch: records, numbers and the two files that every command reads.

What the files of VLMEvalKit do not tell stays unknown, and the numbers say so: nobody was asked on a wrong image, sizes
of images are not known, and what an uninformed answer scores is known only where answers are options (their letters, or
yes and no).
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lmms_patch import __version__, files
from lmms_patch.ask.answers import Answer, Asked
from lmms_patch.ask.kinds import RCI, Key
from lmms_patch.ask.references import Doc, Plan, plan
from lmms_patch.ask.spec import Options, WrapSpec
from lmms_patch.ask.views import views_of
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.rci.analysis import analyse
from lmms_patch.runs import digests
from lmms_patch.runs import vlmevalkit as kit
from lmms_patch.runs.catalogue import columns
from lmms_patch.runs.details import Settings
from lmms_patch.runs.failures import BY_KIT
from lmms_patch.runs.numbers import NUMBERS, to_json
from lmms_patch.runs.reading import CIRCULAR
from lmms_patch.runs.record import Record, hashed, log_digest
from lmms_patch.runs.record import circular as circular_of
from lmms_patch.runs.results import IMPORTED
from lmms_patch.runs.scored import Baseline, SampleRecord, ScoredView, best_cell
from lmms_patch.runs.tables import Table
from lmms_patch.runs.vlmevalkit import Benchmark, Scored
from lmms_patch.text import line


@dataclass(frozen=True)
class Stated:
    """What the user says of the docs; None: not said.

    Attributes:
        cluster: the column whose equal values make docs one cluster.
        category: the column of categories.
        chance: what an uninformed answer scores, on the metric's own scale.
        scale: full marks.
    """

    cluster: str | None = None
    category: str | None = "category"
    chance: float | None = None
    scale: float = 1.0


@dataclass(frozen=True)
class Imported:
    """An imported benchmark.

    Attributes:
        task: the name of the task in the written run.
        model: the model's name.
        docs: how many.
        grids: grid sizes; none for a run on full images alone.
        path: the results file.
        notes: what is not known or was left out, in words.
    """

    task: str
    model: str
    docs: int
    grids: tuple[int, ...]
    path: Path
    notes: tuple[str, ...]


class _Means:
    """The mean of docs' scores, as the native aggregation.

    Our numbers leave docs with a failed call out; ``printed`` counts them as wrong.
    """

    form = None
    no_calls = ""

    def __init__(self, table: Table, records: Sequence[Record]) -> None:
        self._table = table
        self._firsts = [record.views[0] for record in records]
        self._unscored = any(view.error is not None for record in records for view in record.views)

    def whole(self) -> float | None:
        return (
            None
            if any(view.error is not None for view in self._firsts)
            else self.aggregate(list(self._table.full.items))
        )

    def printed(self) -> float | None:
        """Return what a harness prints under the metric's name: the mean over all docs, a failed call being a wrong answer."""
        scores = [0.0 if view.failed is not None else view.scores.get(self._table.metric) for view in self._firsts]
        return self.aggregate(scores)

    def over_cells(self, key: Key) -> tuple[float | None, float | None, str]:
        if self._unscored:
            return None, None, "some answers have no score"
        best = self._table.best(key)
        pairs = [(full, one) for full, one in zip(self._table.full.items, best.items, strict=True) if one is not None]
        if not pairs:
            return None, None, "no doc has all cells"
        return self.aggregate([full for full, _ in pairs]), self.aggregate([one for _, one in pairs]), ""

    def aggregate(self, items: list[Any]) -> float | None:
        known = [one for one in items if one is not None]
        return float(np.mean(known)) if known and len(known) == len(items) else None


def write(found: Sequence[Benchmark], stated: Stated, output: Path) -> list[Imported]:
    """Write a run for each model: a results file, and a sample log for each benchmark.

    Args:
        found: the benchmarks, of one model or several.
        stated: what the user says of the docs.
        output: the folder; each model gets a folder of its own in it.

    Raises:
        PatchError: scores that are no numbers or lie outside the scale, a column that is not there, two models or tasks
            of one name on the disk, or a folder that cannot be written.
    """
    out = []
    folders = _folders(dict.fromkeys(one.model for one in found), output)
    for model, folder in folders.items():
        own = [one for one in found if one.model == model]
        # the date of the files, so that importing them again writes the same run over itself
        newest = max(part.path.stat().st_mtime for one in own for part in _parts(one))
        date = datetime.fromtimestamp(newest, timezone.utc).strftime("%Y-%m-%dT%H-%M-%S.%f")
        made = [_task(one, stated) for one in own]
        if twice := [name for name, count in Counter(one.spec.name for one in made).items() if count > 1]:
            raise RecordError(
                f"{model}: two datasets become the task {twice[0]}; import them one by one, each with its own --output"
            )
        contents: dict[Path, str | bytes] = {
            folder / f"{date}_samples_{one.spec.name}.jsonl": "".join(json.dumps(row) + "\n" for row in one.lines)
            for one in made
        }
        path = folder / f"{date}_results.json"
        results = _results(model, date, made)
        contents[path] = json.dumps({**results, "lmms_patch": {"digest": digests.of_file(results)}}, indent=1) + "\n"
        files.write_all(contents)
        out += [Imported(one.spec.name, model, len(one.lines), one.spec.grids, path, one.notes) for one in made]
    return out


def _folders(models: Iterable[str], output: Path) -> dict[str, Path]:
    """Return each model's folder: the name in letters, digits and ``_.-``, inside the output folder only.

    Raises:
        RecordError: two models have the same folder, where one would overwrite the other.
    """
    out: dict[str, Path] = {}
    taken: dict[str, str] = {}
    for model in models:
        name = re.sub(r"[^\w.-]", "_", model)
        # A name of dots alone would be a folder above the output.
        name = name.replace(".", "_") if not name.strip(".") else name
        folder = output / name
        other = next(
            (said for path in sorted(folder.glob("*_results.json")) if (said := _model_of(path)) not in (None, model)),
            None,
        )
        # Many file systems do not tell capitals apart.
        other = taken.get(name.lower(), other)
        if other is not None:
            names = " and ".join(repr(line(one, 80)) for one in (other, model))
            raise RecordError(
                f"the models {names} have the same folder, {folder}; import them one by one, each with its own --output"
            )
        taken[name.lower()], out[model] = model, folder
    return out


def _model_of(path: Path) -> str | None:
    """Return the model of an imported run; None where the file says none."""
    try:
        data = files.parse_json(path.read_text(encoding="utf-8"))
        return str(data["model_name"])
    except (OSError, ValueError, TypeError, LookupError):
        return None


@dataclass(frozen=True)
class _Task:
    """A benchmark as a task of a run."""

    spec: WrapSpec
    metric: str
    values: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]
    notes: tuple[str, ...]


def _results(model: str, date: str, made: Sequence[_Task]) -> dict[str, Any]:
    """Return a results file in lmms-eval's layout."""
    described = {
        one.spec.name: {
            "task": one.spec.name,
            "lmms_patch": {"schema": 2, "pixels": 1, **one.spec.described(), "metric": one.metric},
        }
        for one in made
    }
    counts = {one.spec.name: {"original": len(one.lines), "effective": len(one.lines)} for one in made}
    return {
        "results": {one.spec.name: {f"{key},none": value for key, value in one.values.items()} for one in made},
        "group_subtasks": {},
        "configs": described,
        "n-samples": counts,
        "higher_is_better": {one.spec.name: {one.metric: True} for one in made},
        "config": {"model": IMPORTED, "model_args": None, "limit": None},
        "model_source": IMPORTED,
        "model_name": model,
        "date": date,
    }


def _parts(one: Benchmark) -> list[Scored]:
    return [one.full, *(part for cells in one.grids.values() for part in cells.values())]


def _task(one: Benchmark, stated: Stated) -> _Task:
    """Make the records of a benchmark, and its numbers."""
    parts = _parts(one)
    category = (
        stated.category
        if stated.category is not None and any(stated.category.lower() in row for row in one.full.rows.values())
        else None
    )
    if stated.cluster is not None and not all(
        row.get(stated.cluster.lower()) is not None for row in one.full.rows.values()
    ):
        columns = ", ".join(dict.fromkeys(name for row in one.full.rows.values() for name in row))
        raise RecordError(
            f"{one.full.path}: --cluster {stated.cluster}: not every row has it; columns: {line(columns, 200)}"
        )
    if stated.category not in (None, "category") and category is None:
        raise RecordError(f"{one.full.path}: --category {stated.category}: no such column")
    scores = {id(part): {key: _score(part, key, row, stated.scale) for key, row in part.rows.items()} for part in parts}
    metric = "acc" if {score for own in scores.values() for score in own.values()} <= {0.0, 1.0, None} else "score"
    turning, turned = kit.turned(one.full.rows)
    options = Options(
        cluster=stated.cluster or turning or None,
        group=turning or None,
        category=category,
        chance=stated.chance,
        scale=None if stated.scale == 1 else stated.scale,
    )
    name = "" if one.grids else one.dataset
    spec = WrapSpec(one.dataset, RCI, tuple(sorted(one.grids)), options, name)
    keys = _ordered(one.full.rows)
    clusters = (
        turned if stated.cluster is None else {key: row[stated.cluster.lower()] for key, row in one.full.rows.items()}
    )
    opened = kit.open_golds(one.full.rows)
    docs = [_doc(doc_id, one.full.rows[key], clusters.get(key), opened.get(key)) for doc_id, key in keys.items()]
    together = _scored_together(one.full.rows, turned, scores[id(one.full)])
    made = plan(docs, declared="open" if together else None)
    if opened:
        made = _with_open(made, {doc_id: opened[key] for doc_id, key in keys.items() if key in opened})
    records = [
        _record(spec, one, key, doc_id, made, scores, metric, stated, category, clusters, turned, key in opened)
        for doc_id, key in keys.items()
    ]
    rows = [
        {
            "doc_id": record.doc_id,
            "input": str(one.full.rows[key].get("question") or ""),
            "target": str(one.full.rows[key].get("answer") or ""),
            "filtered_resps": [_said(part.rows[key]) if key in part.rows else "" for part in _shown(one, record)],
            "patch": msgspec.to_builtins(record),
        }
        for record, key in zip(records, keys.values(), strict=True)
    ]
    values = _numbers(spec, records, metric, made, options, digests.of_lines(rows))
    notes = _notes(one, records, made, stated, spec, keys, opened)
    if turned:
        circular = circular_of(records, metric)
        values[f"{metric}{CIRCULAR}"] = circular
        notes.append(_of_turns(turned, circular, metric, own_clusters=stated.cluster is None))
    return _Task(spec, metric, values, rows, tuple(notes))


def _scored_together(
    rows: Mapping[str, Mapping[str, Any]], turned: Mapping[str, str], scores: Mapping[str, Any]
) -> bool:
    """Return whether all turns of a question share a score, so that no single letter has a score.

    Circular evaluation makes such scores. Where rows of one question are scored differently, each has its own.
    """
    own: dict[str, set[Any]] = defaultdict(set)
    for key, question in turned.items():
        own[question].add(scores[key])
    return any(kit.GROUP in row for row in rows.values()) and all(len(some) == 1 for some in own.values())


def _of_turns(turned: Mapping[str, str], circular: float | None, metric: str, *, own_clusters: bool) -> str:
    """Explain the score of rows with turned options, and VLMEvalKit's circular score."""
    theirs = (
        "some rows have no score, so the circular score is not known"
        if circular is None
        else f"{metric}{CIRCULAR} ({circular:.3f}) counts a question only where all its rows are right, as VLMEvalKit does"
    )
    return (
        f"circular evaluation: the {len(turned)} rows are {len(set(turned.values()))} questions with their options turned; "
        f"{metric} is the mean over rows, and {theirs}{'; each question is one cluster' if own_clusters else ''}"
    )


def _with_open(made: Plan, golds: Mapping[int, str]) -> Plan:
    """Return a plan with new constant answers to open questions: golds shared by several questions, and no answer.

    A gold of one question alone is that question's answer, and no habit of the benchmark.
    """
    shared = {gold for gold, count in Counter(golds.values()).items() if count > 1}
    baselines = dict(made.baselines)
    for doc_id in golds:
        kept = {
            text: [role for role in roles if role != "constant" or text in shared]
            for text, roles in made.baselines[doc_id].items()
        }
        baselines[doc_id] = {**kept, "": ["constant"]}
    return dataclasses.replace(made, baselines=baselines)


def _shown(one: Benchmark, record: Record) -> list[Scored]:
    """Return the tables of a record's views, in their order."""
    return [one.full if view.cell is None else one.grids[view.n or 0][view.cell] for view in record.views]


def _ordered(rows: Mapping[str, Any]) -> dict[int, str]:
    """Return the index of each row by its doc id.

    Doc ids are the indices where all are whole numbers, else places in their sorted order.
    """
    # With leading zeros two indices could be the same number.
    if all(re.fullmatch(r"0|[1-9]\d{0,14}", key) for key in rows):
        return {int(key): key for key in sorted(rows, key=int)}
    return dict(enumerate(sorted(rows)))


def _doc(doc_id: int, row: Mapping[str, Any], cluster: Any, open_gold: str | None) -> Doc:
    """Return what is known of a doc.

    Args:
        doc_id: its id.
        row: its row.
        cluster: its cluster.
        open_gold: the gold of an open question whose options VLMEvalKit made when it evaluated; None for any other doc.
    """
    question, answer = str(row.get("question") or ""), row.get("answer")
    if open_gold is not None:
        return Doc(doc_id, Asked(question, open_gold, format="open"), question, cluster=cluster)
    letters = kit.letters(row)
    choices = tuple(str(row[letter]) for letter in letters)
    asked = Asked(question, None if answer is None else str(answer), choices, letters=letters)
    return Doc(doc_id, asked, question, cluster=cluster)


def _score(part: Scored, key: str, row: Mapping[str, Any], scale: float) -> float | None:
    """Return the score of a row; None where its cell is empty.

    Raises:
        RecordError: no number.
        OptionError: outside the scale.
    """
    value = row.get(part.column)
    if value is None:
        return None
    try:
        score = float(value)
    except ValueError:
        raise RecordError(
            f"{part.path}: index {key} has the {part.column} {line(value, 40)!r}, which is no number; name a column with --score"
        ) from None
    if not 0 <= score <= scale:
        raise OptionError(
            f"{part.path}: index {key} has the {part.column} {score:g}, outside 0 to {scale:g}; type --scale with full marks"
        )
    return score


def _said(row: Mapping[str, Any]) -> str:
    """Return the answer of a row; an empty cell is an empty answer."""
    return "" if row.get("prediction") is None else str(row["prediction"])


def _record(
    spec: WrapSpec,
    one: Benchmark,
    key: str,
    doc_id: int,
    made: Plan,
    scores: Mapping[int, Mapping[str, float | None]],
    metric: str,
    stated: Stated,
    category: str | None,
    clusters: Mapping[str, Any],
    turned: Mapping[str, str],
    matched: bool,
) -> Record:
    """Return the record of a doc."""
    row = one.full.rows[key]
    missing = {n: [number for number, part in cells.items() if key not in part.rows] for n, cells in one.grids.items()}
    lost: dict[Key, str] = {n: f"cell {numbers[0]} was not asked" for n, numbers in missing.items() if numbers}
    views = []
    for view in views_of(spec):
        if view.n in lost:
            continue
        part = one.full if view.cell is None else one.grids[view.n][view.cell]
        views.append(_view(view, part, key, scores[id(part)][key], metric))
    failing: dict[Key, str] = {}
    best: dict[Key, int] = {}
    for n in one.grids:
        if n in lost:
            continue
        # A failed cell might have been the best, so the doc has no best cell.
        if views[0].failed or any(seen.failed for seen in views if seen.view.n == n):
            failing[n] = "a call failed"
        elif (place := best_cell(views, n, metric)) is not None:
            best[n] = place
    answer = made.answers[doc_id]
    about = {"format": answer.format, "label": answer.label, "options": len(answer.options), "gold": answer.gold}
    fields = {"cluster": clusters[key]} if clusters else {}
    if turned:
        fields[kit.QUESTION] = turned[key]
    if category is not None:
        fields["category"] = str(row.get(category.lower()) or "")
    earned = [
        (text, *_earned(text, roles, answer, stated.scale, matched)) for text, roles in made.baselines[doc_id].items()
    ]
    baselines = tuple(Baseline(text, roles, {metric: value}, {metric: value}) for text, roles, value in earned if roles)
    record = SampleRecord(
        spec.name,
        spec,
        doc_id,
        (),
        tuple(views),
        best,
        {**lost, **failing},
        fields,
        about,
        made.strata[doc_id],
        baselines,
    ).record()
    for seen in record.views:
        # sizes of images are not known
        seen.boxes = None
    return record


def _view(view: Any, part: Scored, key: str, score: float | None, metric: str) -> ScoredView:
    """Return a view with its score; a failed call has none."""
    said = _said(part.rows[key])
    # VLMEvalKit writes this text for a failed call and may still score it, by drawing a letter.
    if said.startswith(BY_KIT):
        return ScoredView(view, failed=line(said, 80))
    if score is None:
        return ScoredView(view, error=f"no {part.column} in {part.path.name}")
    return ScoredView(view, {metric: score}, {metric: score})


def _earned(
    text: str, roles: Sequence[str], answer: Answer, scale: float, matched: bool
) -> tuple[tuple[str, ...], float]:
    """Return the score of an uninformed answer or the gold, and the roles with a known score.

    An option is right or wrong, and a letter that is none of the doc's options is wrong. An open question of MMMU is
    matched: VLMEvalKit looks for the gold's text in the answer (``can_infer_text``). Of any other answer but the gold,
    only VLMEvalKit's own scorer could say what it earns.
    """
    if matched and answer.gold:
        return tuple(roles), scale if answer.gold.lower() in text.lower() else 0.0
    known = answer.format in ("mc", "yesno") and answer.gold in answer.options
    letters = all(re.fullmatch("[A-Z]", one or "") for one in (text, answer.gold))
    if known and (text in answer.options or letters):
        return tuple(roles), scale if text == answer.gold else 0.0
    return (("gold",) if "gold" in roles else ()), scale


def _numbers(
    spec: WrapSpec, records: Sequence[Record], metric: str, made: Plan, options: Options, answers: str
) -> dict[str, Any]:
    """Return the values of the task in a results file: its metrics, and all numbers under ``patch``.

    ``answers`` is the digest of what its log has beside the records.
    """
    settings = Settings(seed=options.seed, scale=options.scale, chance=options.chance, seconds=options.seconds)
    table = Table(records, metric, higher=True)
    native = _Means(table, records)
    found = analyse(table, native, settings, spec.sets)
    flat = columns(found, RCI)
    details = {
        "records": len(records),
        **flat,
        "made": {
            "lmms_patch": __version__,
            "lmms_eval": None,
            "numbers": NUMBERS,
            "log": log_digest(hashed(msgspec.to_builtins(record)) for record in records),
            "answers": answers,
            **made.digests,
        },
        "settings": to_json(settings),
        "higher_is_better": {metric: True},
        "donors": {
            "strata": len(set(made.strata.values())),
            "merged_strata": made.merged,
            "merged_docs": made.merged_docs,
        },
        "analysis": to_json(found),
    }
    own = {f"{metric}_mpp{n}": found.grids[n].mpp.value for n in found.grids}
    return {
        metric: native.printed(),
        **own,
        **{key: value for key, value in flat.items() if key != metric},
        "patch": details,
    }


def _notes(
    one: Benchmark,
    records: Sequence[Record],
    made: Plan,
    stated: Stated,
    spec: WrapSpec,
    keys: Mapping[int, str],
    opened: Mapping[str, str],
) -> list[str]:
    """Say what is not known, and what was left out."""
    out = [f"scores: {one.full.column} of {one.full.path.name}; the score of the task is their mean"]
    failed = sum(any(view.failed for view in record.views) for record in records)
    if failed:
        out.append(
            f"{failed} docs with a failed call ({BY_KIT} ...): wrong answers in the task's own metric, left out of FIP, chance and index"
        )
        given = [
            one.full.rows[key].get(one.full.column)
            for key in one.full.rows
            if _said(one.full.rows[key]).startswith(BY_KIT)
        ]
        if luck := sum(value not in (None, 0, "0", "0.0") for value in given):
            out.append(
                f"{luck} failed calls have a score above 0 in {one.full.path.name}: VLMEvalKit draws a letter; here they are wrong"
            )
    for n, cells in one.grids.items():
        lost = sum(any(key not in part.rows for part in cells.values()) for key in one.full.rows)
        if lost:
            out.append(
                f"{n}x{n}: {lost} of {len(records)} docs are not in all cells' files; they are left out of that grid"
            )
    unscored = sum(view.error is not None for record in records for view in record.views)
    if unscored:
        what = "neither score nor index" if any(record.views[0].error is not None for record in records) else "no index"
        out.append(f"{unscored} answers without a score: {what}, until VLMEvalKit has judged all of them")
    unknown = [made.answers[doc_id] for doc_id, key in keys.items() if key not in opened]
    if stated.chance is None and not all(answer.format in ("mc", "yesno") for answer in unknown):
        out.append(
            "what an uninformed answer scores is not known of answers that are no options; type --chance if it is documented"
        )
    if opened:
        out.append(
            f"{len(opened)} of {len(records)} questions are open: VLMEvalKit wrote the gold and {kit.OTHER!r} as their options when it evaluated, "
            "and no model saw these; an uninformed answer to them is right only where it has the gold in it"
        )
    if spec.grids:
        out.append("nothing was asked on wrong images, so the gate cannot say whether the model looks")
    return out
