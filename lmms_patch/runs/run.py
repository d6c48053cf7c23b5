"""Finished runs: which model, which benchmark, under which settings. Pure: from results files alone.

Two results may be set side by side only where everything but the model is the same. What that is, is the
fingerprint of a result; boards, comparisons and gates all go by it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from msgspec import UNSET

from lmms_patch.ask.kinds import KINDS, Kind
from lmms_patch.ask.references import digest
from lmms_patch.ask.spec import Options
from lmms_patch.errors import OTHER_VERSION, RecordError, shown
from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.details import Details, Made, MagicDetails, MagicNumbers, TstDetails, wrong
from lmms_patch.runs.details import read as read_details
from lmms_patch.runs.logs import Line, read_lines
from lmms_patch.runs.measures import measures
from lmms_patch.runs.numbers import Analysis, Grid
from lmms_patch.runs.numbers import read as read_analysis
from lmms_patch.runs.record import SCHEMA, Record
from lmms_patch.runs.results import by_filter, check_docs, read_json, results_files, sample_log, samples_file
from lmms_patch.runs.typed import convert
from lmms_patch.stats import bounds
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import arguments, clean, html_table, masked, unique
from lmms_patch.text import line as one_line

MAGIC_SCHEMA = 1
"""Of the ``magic`` objects that MAGIC tasks leave in place of ``patch`` (``magic.results``)."""
OBJECTS = ("patch", "magic")

_VIEW_OPTIONS = ("images", "min_side", "min_cell")
_NUMBER_OPTIONS = (
    "score",
    "scorer",
    "aggregation",
    "chance",
    "scale",
    "delta",
    "format",
    "gold",
    "cluster",
    "group",
    "stratum",
)
_MAGIC = ("variant", "seed", "examples", "prefill", "prompts", "pixels")
_TST_OPTIONS = ("grouping", "fold_seed", "fold_seeds", "features")
RECORDED = (
    *("docs", "prompts", "dataset", "revision", "split", "image sizes", "images"),
    *("few-shot", "system instruction", "benchmark version", "lmms-eval version"),
)
"""Settings that every run has. Where a file does not say one (an older version wrote it) it is unknown: not compared, and told."""
_LOADERS = ("parquet", "json", "csv", "text", "imagefolder", "arrow", "webdataset", "pandas")
"""Dataset paths that name a loader, not a dataset."""


class Counted(NamedTuple):
    """How many docs a task has, and how many of them were asked, as the harness counts them."""

    original: int
    effective: int


@dataclass(frozen=True)
class Run:
    """A finished run of the harness.

    Attributes:
        path: its results file.
        model: what names the model: its checkpoint (of a local folder the name), or else the adapter.
        adapter: what ``--model`` was.
        model_args: what ``--model_args`` was, without secrets: runs that differ in these alone are runs of one model.
        date: as the harness writes it; sorts by time.
        configs: of every task (also plain ones), the harness's own description.
        written: of every task, what the harness wrote of it.
        about: other facts: ``limit``, ``offset``, ``gen_kwargs``, ``start_time``; ``typed``: the options of the command; by task ``n-shot``,
            ``versions``, ``n-samples``, ``higher_is_better``; ``system_instruction``: its digest, ``none`` where none
            was given, None where the file does not say.
        results: of its wrapped tasks, in order; a task with several filter pipelines has one for each.
    """

    path: Path
    model: str = ""
    adapter: str = ""
    model_args: str = ""
    date: str = ""
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    written: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)
    results: tuple[Result, ...] = field(init=False)

    def __post_init__(self) -> None:
        # a frozen dataclass can set its computed field only this way
        object.__setattr__(self, "results", tuple(_results(self)))

    @property
    def identity(self) -> tuple[str, str, str]:
        """Checkpoint, adapter and arguments: two runs with the same three are runs of the same model."""
        return self.model, self.adapter, self.model_args

    @property
    def limit(self) -> Any:
        """The harness's ``--limit``: the most docs of a task, or a share of them; None where all were asked."""
        limit = self.about.get("limit")
        # lmms-eval takes -1 for all docs
        return None if limit == -1 else limit

    @property
    def offset(self) -> int:
        """The harness's ``--offset``: how many docs at the beginning of a task were skipped."""
        return int(self.about.get("offset") or 0)

    @property
    def logged(self) -> bool:
        """Whether the run was told to write sample logs."""
        return bool(self.about.get("typed", {}).get("log_samples"))

    def counted(self, task: str) -> Counted | None:
        """Return the harness's count of a task's docs (``n-samples``); None where the file is silent."""
        counts = _object(self.about.get("n-samples", {}).get(task))
        numbers = [counts[name] for name in ("original", "effective") if bounds.is_number(counts.get(name))]
        return Counted(*numbers) if len(numbers) == 2 else None

    def aggregation(self, task: str, metric: str) -> str | None:
        """Return the aggregation of a native metric as a task's config names it; None where it names none."""
        listed = self.configs[task].get("metric_list")
        named = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
        return next((one.get("aggregation") for one in named if one.get("metric") == metric), None)

    def _repr_html_(self) -> str:
        """Return a table of the run's tasks for a notebook: the score of each, its indices, and whether they may be read."""
        lines = []
        for result in self.results:
            known = {name: number for name, estimate in result.measures.items() if (number := _shown(estimate))}
            rows = catalogue.keyed(result.kind, result.grids).items()
            indices = "; ".join(
                f"{row.index(result.kind, key)} {known[name]}"
                for name, (row, key) in rows
                if row.words and name in known
            )
            gate = reading.gate_word(result.analysis.gate if result.analysis else None) if result.kind.has_index else ""
            lines.append(
                [result.label, str(result.docs), result.metric, _shown(result.measures["score"]), indices, gate]
            )
        return html_table(
            ["task", "docs", "metric", "score", "index", "gate"], lines, f"{self.model or self.adapter}, {self.date}"
        )


@dataclass(frozen=True)
class Result:
    """A wrapped task of a finished run; every reader of finished runs works on this class.

    Attributes:
        run: the run.
        task: the task's name.
        described: what was wrapped and how (``WrapSpec.described``, plus the primary metric).
        metrics: aggregated metrics by name (filter left out), those of the metric ``patch`` among them; null where not
        defined.
        filter: the name of the harness's filter pipeline.
        details: the whole value of the metric ``patch`` (docs/records.md); empty where nothing was scored.
        place: the place of the filter pipeline among those of the task.
    """

    # a run holds its results, so to print or compare it here would go round in a circle
    run: Run = field(repr=False, compare=False)
    task: str
    described: Mapping[str, Any]
    metrics: Mapping[str, float | None]
    filter: str
    details: Mapping[str, Any] = field(default_factory=dict)
    place: int = 0

    @property
    def docs(self) -> int:
        """How many docs have a record."""
        return int(self.metrics.get("records") or 0)

    @property
    def base(self) -> str:
        """The benchmark."""
        return str(self.described["base"])

    @property
    def metric(self) -> str:
        """The primary metric."""
        return str(self.described["metric"])

    @property
    def grids(self) -> Sequence[int]:
        """The numbers after the kind: grid sizes, numbers of segments or frames, reductions."""
        grids: Sequence[int] = self.described["grids"]
        return grids

    @property
    def kind(self) -> Kind:
        """The kind of task."""
        return KINDS[self.described["kind"]]

    @property
    def indexed(self) -> Sequence[int]:
        """The grids with an index."""
        return self.grids if self.kind.index else ()

    @property
    def failed(self) -> int:
        """The number of docs with a failed call."""
        return int(self.metrics.get("n_failed") or 0)

    @property
    def scored(self) -> int:
        """The number of docs with a score on their first view."""
        return self.analysis.n_docs if self.analysis else 0

    @property
    def type(self) -> str:
        """The papers' task type (``mcq``, ``yesno``, ``vqa``, ``caption``); empty where no profile names a type."""
        return str(self.described["options"].get("type") or "")

    @property
    def size(self) -> int | None:
        """The number of docs of the benchmark; None where unknown."""
        # nobody knows how many more docs have options that can be moved
        if self.kind.every_order:
            return None
        found = _object(self.run.about.get("n-samples", {}).get(self.task)).get("original")
        return found if isinstance(found, int) else None

    @property
    def hub(self) -> str | None:
        """The name of the data on the Hub; None where the task's config names a loader or local files."""
        path = self.run.configs[self.task].get("dataset_path")
        return path if is_hub(path) else None

    @property
    def revision(self) -> Any:
        """The commit of the data, as the task's config pins the data; None where the config pins nothing."""
        return _object(self.run.configs[self.task].get("dataset_kwargs")).get("revision")

    @property
    def pipelines(self) -> int:
        """The number of filter pipelines of the task."""
        return sum(other.task == self.task for other in self.run.results)

    @property
    def label(self) -> str:
        """The task's name, with the filter where the task has several."""
        return f"{self.task}, {self.filter}" if self.pipelines > 1 else self.task

    @property
    def higher_is_better(self) -> bool:
        """Whether the primary metric is better when higher."""
        return self.better(self.metric)

    @cached_property
    def options(self) -> Options:
        """The options of the task."""
        return Options.of_file(self.described["options"], self.task)

    @cached_property
    def stored(self) -> Details | MagicDetails:
        """Every number of the task, as its file has them."""
        return read_details(self.details, self.kind.name)

    @property
    def made(self) -> Made:
        """By what versions the numbers were made, and of which docs."""
        return Made() if self.stored.made is UNSET else self.stored.made

    @property
    def all_docs(self) -> int | None:
        """The number of the benchmark's docs, asked or not; None where the run does not say."""
        return None if self.made.all_docs is UNSET else self.made.all_docs

    @cached_property
    def tst(self) -> TstDetails | None:
        """The numbers of a text-only cross-validation; None for tasks of another kind."""
        stored = self.details.get("tst_details")
        return convert(stored, TstDetails) if stored else None

    @property
    def magic(self) -> MagicNumbers | None:
        """The numbers of a MAGIC task; None for tasks of another kind."""
        return self.stored.magic if isinstance(self.stored, MagicDetails) else None

    def better(self, metric: str) -> bool:
        """Return whether a native metric is better when higher."""
        return bool(self.details.get("higher_is_better", {}).get(metric, True))

    @cached_property
    def analysis(self) -> Analysis | None:
        """What the numbers are made of; None of a task without any."""
        stored = self.details.get("analysis")
        return read_analysis(stored) if stored else None

    def grid(self, n: int) -> Grid | None:
        """Return the numbers of a grid; None where there are none."""
        return self.analysis.grids.get(n) if self.analysis else None

    @cached_property
    def measures(self) -> dict[str, Estimate]:
        """Every number by its name (``runs.measures``), each with its interval."""
        return measures(self)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """All settings, apart from model and grids, on which the result depends (``_fingerprint``)."""
        return _fingerprint(self)

    @property
    def origin(self) -> str:
        """A digest of date, model and numbers, unique to the result wherever its file lies and however the file is laid out."""
        written = json.dumps(self.run.written.get(self.task), sort_keys=True, default=str)
        return digest(
            [self.run.date, self.run.about.get("start_time"), *self.run.identity, self.task, self.filter, written]
        )

    def is_same(self, other: Result) -> bool:
        """Return whether two results are the same: from the same file, or from a copy of the file."""
        place, theirs = ((one.run.path.resolve(), one.task, one.place) for one in (self, other))
        return place == theirs or self.origin == other.origin

    def _repr_html_(self) -> str:
        """Return a table of all numbers for a notebook."""
        rows = [[name, _shown(one), one.reason if one.value is None else ""] for name, one in self.measures.items()]
        return html_table(
            ["number", "value", "why there is none"],
            rows,
            f"{self.label}, {self.docs} docs: {self.run.model or self.run.adapter}",
        )

    # --- its sample log ---------------------------------------------------------------------------

    @property
    def log(self) -> Path | None:
        """The sample log; None where the task was not logged."""
        return samples_file(self.run.path, self.task)

    def lines(self, *, lean: bool = True) -> Iterator[Line]:
        """Yield the sample log's lines of this filter pipeline (``logs.read_lines``).

        Raises:
            RecordError: there is no log; it is cut, of another benchmark or of another run.
        """
        docs, log, base = 0, sample_log(self.run.path, self.task), self.base
        for line in read_lines(log, self.place, filters=self.pipelines, lean=lean):
            if line.record.base != base:
                raise RecordError(
                    f"{log}: records of {clean(line.record.base)}, but {self.task} asks {base}; the file is of another run"
                )
            docs += 1
            yield line
        # only at the end is it known that no line is missing
        check_docs(log, docs, self.docs)

    def records(self, *, lean: bool = True) -> Iterator[Record]:
        """Yield the records of the sample log, read and checked as ``lines``."""
        return (line.record for line in self.lines(lean=lean))


@dataclass(frozen=True)
class Labelled:
    """A result and its names, for a page or table of several results.

    Attributes:
        result: the result.
        model: the model's name as it is shown (``labels``).
        label: the text that tells the result from the other results of that place: the name of its task, or the key
            that a page links to.
    """

    result: Result
    model: str
    label: str


def _shown(estimate: Estimate) -> str:
    """Return a number with its interval and words; empty where undefined."""
    return "" if estimate.value is None else reading.text(estimate, "{:.3f}".format)


def read(path: Path) -> Run:
    """Read a run from its results file.

    Raises:
        RecordError: the file is truncated, not a results file of lmms-eval, or of another schema.
    """
    data = read_json(path)
    config = data.get("config", {})
    adapter = str(config.get("model") or data.get("model_source") or "")
    about = {key: config.get(key) for key in ("limit", "offset", "gen_kwargs")} | {"start_time": data.get("start_time")}
    by_task = ("n-shot", "versions", "n-samples", "higher_is_better")
    about |= {"system_instruction": _system_instruction(data), **{key: data.get(key, {}) for key in by_task}}
    about["typed"] = _object(config.get("resolved_cli_args"))
    run = Run(
        Path(path),
        # without secrets, which arguments of a model may hold
        _name(masked(str(data.get("model_name") or adapter or Path(path).parent.name))),
        adapter,
        arguments(_arguments(config.get("model_args"))),
        str(data.get("date") or Path(path).name.removesuffix("_results.json")),
        data["configs"],
        data["results"],
        about,
    )
    for result in run.results:
        _check_whole(result)
    return run


def _results(run: Run) -> Iterator[Result]:
    """Yield the results of a run's wrapped tasks.

    Raises:
        RecordError: what describes a wrapped task is not as this version writes it.
    """
    changed = "the file was changed or written by another program"
    for task, config in run.configs.items():
        described = _description(config)
        # a task of the harness, or one without results
        if described is None or task not in run.written:
            continue
        schema, known = described.get("schema"), MAGIC_SCHEMA if described.get("kind") == "magic" else SCHEMA
        if schema != known:
            raise RecordError(f"{run.path}: records of schema {shown(schema)}; {OTHER_VERSION}")
        if missing := [key for key in ("base", "kind", "grids", "metric", "options") if key not in described]:
            raise RecordError(f"{run.path}: {task} is described without its {missing[0]!r}; {changed}")
        if str(described["kind"]) not in KINDS:
            raise RecordError(
                f"{run.path}: {task} is of the unknown kind {shown(described['kind'])}; allowed: {', '.join(KINDS)}"
            )
        # what was asked comes first, since the numbers are read by it
        if said := wrong(described, {}):
            raise RecordError(f"{run.path}: {task}: {said}; {changed}")
        for place, (name, values) in enumerate(by_filter(run.written[task]).items()):
            # a wrapped MAGIC task has both
            objects = {name: values.pop(name, None) for name in OBJECTS}
            own = objects["magic" if described["kind"] == "magic" else "patch"]
            details: Mapping[str, Any] = own if isinstance(own, dict) else {}
            if said := wrong(described, details):
                raise RecordError(f"{run.path}: {task}: {said}; {changed}")
            # the object's plain numbers are metrics too; a column of the same name wins
            flat = {**{key: value for key, value in details.items() if not isinstance(value, dict)}, **values}
            metrics = {key: float(value) if bounds.is_number(value) else None for key, value in flat.items()}
            # A judge changes what a MAGIC task is about, and its config, which the response cache goes by, does not
            # know of the judge.
            about = {**described, "metric": details.get("magic", {}).get("metric") or described["metric"]}
            yield Result(run, task, about, metrics, name, details, place)


def _check_whole(result: Result) -> None:
    """Refuse a result whose docs are not as many as the harness says that it asked.

    Raises:
        RecordError: a part passes for the whole: the part of a rank is missing, or some docs were never asked.
    """
    counts, where = result.run.counted(result.task), f"{result.run.path}: {result.task}"
    if counts is None or not result.docs:
        return
    there = counts.original - result.run.offset
    asked = min(counts.effective, there)
    if asked < there and result.run.limit is None:
        raise RecordError(f"{where}: {asked} of {there} docs were asked, but the run had no --limit; it is not whole")
    # a task on docs' own boxes skips docs without boxes
    if result.docs > asked or (result.docs < asked and not result.kind.own_boxes):
        raise RecordError(
            f"{where}: {result.docs} docs have a record, but the harness asked {asked}; a rank's part is missing"
        )


def _description(config: Any) -> dict[str, Any] | None:
    """Return what a config says of a task of ours, wrapped or MAGIC; None for a task of the harness."""
    if not isinstance(config, dict):
        return None
    metadata = config.get("metadata")
    found = config.get("lmms_patch")
    if (
        found is None
        and isinstance(metadata, dict)
        and isinstance(metadata.get("magic"), dict)
        and metadata["magic"].get("kind") == "magic"
    ):
        found = metadata["magic"]
    return found if isinstance(found, dict) else None


def _name(model: str) -> str:
    """Return a model's Hub id unchanged; of a local folder only the last name, without where the folder lies."""
    return PurePath(model).name or model if model.startswith(("/", "~", ".")) else model


def _system_instruction(data: Mapping[str, Any]) -> str | None:
    """Return a digest of the system instruction.

    ``none`` where none was given (the harness writes null), None where the file does not say.
    """
    known = [data[key] for key in ("system_instruction_sha", "system_instruction") if key in data]
    given = next((one for one in known if one), None)
    return (digest([given]) if given else "none") if known else None


def _object(value: Any) -> dict[str, Any]:
    """Return a JSON object; an empty object in place of anything else."""
    return value if isinstance(value, dict) else {}


def _arguments(given: Any) -> str:
    return ",".join(f"{key}={value}" for key, value in given.items()) if isinstance(given, dict) else str(given or "")


def find(paths: Iterable[Path]) -> list[Run]:
    """Return the runs in some folders (at any depth) or of some results files, each once, oldest first.

    Raises:
        RecordError: a path without a run, or a file that cannot be read.
    """
    files: dict[Path, Path] = {}
    for path in paths:
        for file in [Path(path)] if Path(path).is_file() else results_files(Path(path)):
            # resolve() raises where a link leads to itself
            files.setdefault(Path(os.path.realpath(file)), file)
    return sorted(
        (read(file) for file in files.values()),
        # digits alone, since harness and imports write different marks between them
        key=lambda run: (re.sub(r"\D", "", run.date), run.path.name, str(run.path)),
    )


def newest(results: Iterable[Result]) -> tuple[list[Result], int]:
    """Return of each model, task and filter the last result, in the order of the results.

    And how many earlier ones there are.
    """
    last: dict[tuple[str, ...], Result] = {}
    count = 0
    for result in results:
        count += 1
        key = (*result.run.identity, result.task, result.filter)
        # removed first, so that the last result stands at its own place in the order and not at the place of the first
        last.pop(key, None)
        last[key] = result
    return list(last.values()), count - len(last)


def labels(runs: Iterable[Run]) -> dict[tuple[str, str, str], str]:
    """Return a name for each model, told apart by adapter and arguments only where the checkpoint's name is not enough; safe to show, and unique."""
    known = sorted({run.identity for run in runs})
    names = Counter(model for model, _, _ in known)
    adapters = Counter((model, adapter) for model, adapter, _ in known)
    out = {}
    for model, adapter, args in known:
        parts = [
            part
            for part, needed in (
                (adapter, adapters[model, adapter] < names[model]),
                (args, adapters[model, adapter] > 1),
            )
            if needed
        ]
        # a run without arguments must have a name too, beside runs with some
        more = ", ".join(part or "default" for part in parts)
        out[model, adapter, args] = f"{model} ({more})" if more else model
    return unique(out)


def command(adapter: str, model_args: str, tasks: Iterable[str], limit: str = "all") -> str:
    """Return the lmms-eval command that asks a model for some tasks, and writes results and sample logs.

    Args:
        adapter: the model, as ``--model`` takes it.
        model_args: as ``--model_args`` takes it; secrets are masked, and must be put back by who types the command.
        tasks: names.
        limit: which docs, as fingerprints have it: ``all``, ``40``, ``40 from 80``.
    """
    most, _, start = limit.partition(" from ")
    parts = [
        "lmms-eval",
        "--model",
        adapter or "MODEL",
        *(["--model_args", model_args] if model_args else []),
        "--tasks",
        ",".join(tasks),
    ]
    parts += [*(["--limit", most] if most != "all" else []), *(["--offset", start] if start else [])]
    return one_line(f"{shlex.join(parts)} --output_path out --log_samples")


# --- what must be the same ------------------------------------------------------------------------


def _fingerprint(result: Result) -> dict[str, Any]:
    """Return every setting, apart from model and grids, on which a result depends; None where the run is silent.

    The keys are words for people: ``benchmark``, ``docs`` (which docs with which golds), ``prompts``, ``limit``,
    ``few-shot``, ``system instruction``, ``generation``, ``kind``, ``metric``, ``filter``, ``views``, ``statistics``,
    ``benchmark version``, ``lmms-eval version``, ``dataset``, ``revision``, ``split``, ``image sizes`` and ``images``
    (what the full views show); of a MAGIC task also ``boxes shown`` and ``judge``.
    """
    described, made = result.described, result.details.get("made", {})
    kind, options = result.kind, described["options"]
    statistics = {name: options.get(name) for name in _NUMBER_OPTIONS}
    settings = result.details.get("settings", {})
    magic = result.details.get("magic", {})
    return {
        "benchmark": described["base"],
        "kind": kind.way,
        "metric": described["metric"],
        "filter": result.filter,
        "docs": made.get("docs"),
        "number of docs": result.docs,
        "prompts": made.get("prompts"),
        **_images(kind, made),
        **asked(result.run, result.task),
        "views": digest(
            [
                described.get("pixels"),
                {
                    n: options.get(n)
                    for n in (*_VIEW_OPTIONS, *(["seed"] if kind.name in ("shuffle", "tshuffle") else []))
                },
            ]
        ),
        **({"boxes shown": digest([magic.get(name) for name in _MAGIC]), "judge": _judge(magic)} if magic else {}),
        "statistics": digest(
            [statistics, settings.get("level"), {n: options.get(n) for n in _TST_OPTIONS} if kind.folds else None]
        ),
        "folds": described.get("folds"),
        "lmms-eval version": made.get("lmms_eval"),
    }


def asked(run: Run, task: str) -> dict[str, Any]:
    """Return the part of a fingerprint known of every task of the harness, wrapped or not."""
    config, about = run.configs.get(task, {}), run.about
    version = about.get("versions", {}).get(task)
    return {
        **_data(config),
        "limit": _limit(run),
        "few-shot": about.get("n-shot", {}).get(task),
        "system instruction": about.get("system_instruction"),
        "generation": digest([config.get("generation_kwargs"), about.get("gen_kwargs") or None]),
        "benchmark version": None if version is None else str(version),
    }


def _data(config: Mapping[str, Any]) -> dict[str, str | None]:
    """Return which data a task's config names; where a file lies on somebody's disk is left out."""
    if "dataset_path" not in config:
        return dict.fromkeys(("dataset", "revision", "split"))
    path, name = config["dataset_path"], config.get("dataset_name")
    where = "none named" if not path else str(path) if is_hub(path) else "local files"
    revision = _object(config.get("dataset_kwargs")).get("revision")
    return {
        "dataset": f"{where}, {name}" if name else where,
        "revision": str(revision or "none"),
        "split": split_of(config) or "none",
    }


def is_hub(path: Any) -> bool:
    """Return whether a dataset's path is a name on the Hub, rather than a loader or a place on somebody's disk."""
    return (
        isinstance(path, str)
        and re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", path) is not None
        and path not in _LOADERS
    )


def split_of(config: Mapping[str, Any]) -> str | None:
    """Return the split evaluated by the harness: test, else validation, else training; None where none is named."""
    return next(
        (str(config[key]) for key in ("test_split", "validation_split", "training_split") if config.get(key)), None
    )


def _images(kind: Kind, made: Mapping[str, Any]) -> dict[str, str | None]:
    """Return digests of what the full views show: their sizes, and their pixels."""
    if kind.name == "magic":
        # their digest covers the images
        return dict.fromkeys(("image sizes", "images"), "of the docs")
    if not kind.needs_image:
        return dict.fromkeys(("image sizes", "images"), "none shown")
    return {"image sizes": made.get("image_sizes"), "images": made.get("images")}


def _judge(magic: Mapping[str, Any]) -> str:
    """Return the judge of a MAGIC task and a digest of how the judge was asked; the server does not matter."""
    asked = magic.get("judged_by", {})
    return (
        f"{magic['judge']} {digest([asked.get('sampling'), asked.get('prompts')])[:6]}"
        if magic.get("judge")
        else "none"
    )


def _limit(run: Run) -> str:
    limit, offset = run.limit, run.offset
    said = f"{limit:g}" if isinstance(limit, (int, float)) else str(limit)
    return f"{'all' if limit is None else said}{f' from {offset}' if offset else ''}"


def differences(one: Mapping[str, Any], other: Mapping[str, Any], ignore: Iterable[str] = ()) -> list[str]:
    """Return in what two fingerprints differ, in words.

    What one of them does not say is not compared: see ``not_compared``.
    """
    skip = set(ignore)
    out = []
    for key, value in one.items():
        theirs = other.get(key)
        if key not in skip and value is not None and theirs is not None and value != theirs:
            out.append(f"{key} ({value} and {theirs})" if len(f"{value}{theirs}") < 60 else key)
    return out


def not_compared(one: Mapping[str, Any], other: Mapping[str, Any], ignore: Iterable[str] = ()) -> str:
    """Say which settings cannot be compared because a fingerprint lacks them; empty where all can."""
    skip = set(ignore)
    unknown = [
        key
        for key in RECORDED
        if key not in skip and (key in one or key in other) and (one.get(key) is None or other.get(key) is None)
    ]
    return f"not recorded in both runs, so not compared: {', '.join(unknown)}" if unknown else ""


def check_keys(keys: Iterable[str], known: Mapping[str, Any]) -> None:
    """Refuse names that are not keys of a fingerprint.

    Raises:
        RecordError: a name is no key; the error lists the keys.
    """
    for key in keys:
        if key not in known:
            raise RecordError(f"no setting {key!r} to ignore; allowed: {', '.join(known)}")
