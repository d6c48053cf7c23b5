"""Finished runs: which model, which benchmark, under which settings, with which numbers: from the samples tables of their tasks.

Two results may be set side by side only where everything but the model is the same. What that is, is the
fingerprint of a result; boards, comparisons and gates all go by it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

import polars as pl

from lmms_patch.ask.kinds import KINDS, Kind
from lmms_patch.ask.references import digest
from lmms_patch.errors import RecordError
from lmms_patch.runs import cache, catalogue, samples
from lmms_patch.runs.details import About, Computed, Made, MagicNumbers, Of, TstDetails
from lmms_patch.runs.measures import measures
from lmms_patch.runs.numbers import Analysis, Grid
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import line as one_line
from lmms_patch.text import unique

_VIEW_OPTIONS = ("images", "min_side", "min_cell")
_NUMBER_OPTIONS = (
    *("score", "scorer", "aggregation", "chance", "scale", "delta", "format", "gold", "cluster", "group", "stratum"),
)
_MAGIC = ("variant", "seed", "examples", "prefill", "prompts", "pixels")
_TST_OPTIONS = ("grouping", "fold_seed", "fold_seeds", "features")
RECORDED = (
    *("docs", "prompts", "dataset", "revision", "split", "image sizes", "images"),
    *("few-shot", "system instruction", "benchmark version", "lmms-eval version"),
)
"""Settings that every run has. Where a table does not say one (another program wrote it) it is unknown: not compared, and told."""
_LOADERS = ("parquet", "json", "csv", "text", "imagefolder", "arrow", "webdataset", "pandas")
"""Dataset paths that name a loader, not a dataset."""


@dataclass(frozen=True)
class Run:
    """A finished run of the harness: the samples tables of its tasks.

    Attributes:
        path: the place of its results file; it names the run, and nothing is read from it.
        tables: footer and file of each table, in the order of the tasks; None: it is not written.
    """

    path: Path
    tables: tuple[tuple[About, Path | None], ...] = field(repr=False)

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """Those of its wrapped tasks, in order; a task with several filter pipelines has a result for each."""
        return tuple(Result(self, about, name, table) for about, table in self.tables for name in about.filters)

    @property
    def about(self) -> About:
        """What the first of its tables says of itself."""
        return self.tables[0][0]

    @property
    def model(self) -> str:
        """What names the model: its checkpoint (of a local folder the name), or else the adapter, or else the run's folder."""
        return self.about.model.name or self.path.parent.name

    @property
    def adapter(self) -> str:
        """What ``--model`` was."""
        return self.about.model.adapter

    @property
    def model_args(self) -> str:
        """What ``--model_args`` was, without secrets: runs that differ in these alone are runs of one model."""
        return self.about.model.args

    @property
    def date(self) -> str:
        """When it was, as the harness writes it; sorts by time."""
        return self.about.model.date or self.path.name.removesuffix("_results.json")

    @property
    def identity(self) -> tuple[str, str, str]:
        """Checkpoint, adapter and arguments: two runs with the same three are runs of the same model."""
        return self.model, self.adapter, self.model_args


@dataclass(frozen=True)
class Result:
    """A wrapped task of a finished run; every reader of finished runs works on this class.

    Attributes:
        run: the run.
        about: what the task's table says of itself.
        filter: the name of the harness's filter pipeline.
        path: the table; None where it is not written.
        given: the numbers, where they need not be computed: in the run itself, or after ``recompute``.
        fresh: whether numbers are computed, whatever is kept beside the table.
    """

    # a run holds its results, so to print or compare it here would go round in a circle
    run: Run = field(repr=False, compare=False)
    about: About = field(repr=False)
    filter: str
    path: Path | None
    given: Computed | None = field(default=None, repr=False)
    fresh: bool = field(default=False, repr=False, compare=False)

    @property
    def task(self) -> str:
        """The task's name."""
        return self.about.task

    @property
    def place(self) -> int:
        """The place of the filter pipeline among those of the task."""
        return self.about.filters.index(self.filter)

    @property
    def described(self) -> Mapping[str, Any]:
        """What was wrapped and how (``WrapSpec.described``, plus the primary metric)."""
        return self.about.asked

    @property
    def docs(self) -> int:
        """How many docs have a row."""
        return self.about.docs

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
        if self.magic is not None:
            return self.magic.failed
        return self.analysis.failed.docs if self.analysis and self.analysis.failed else 0

    @property
    def scored(self) -> int:
        """The number of docs with a score on their first view."""
        return self.analysis.n_docs if self.analysis else 0

    @property
    def type(self) -> str:
        """The papers' task type (``mcq``, ``yesno``, ``vqa``, ``caption``); empty where no profile names a type."""
        return str(self.described["options"].get("type") or "")

    @property
    def label(self) -> str:
        """The task's name, with the filter where the task has several."""
        return f"{self.task}, {self.filter}" if len(self.about.filters) > 1 else self.task

    @property
    def higher_is_better(self) -> bool:
        """Whether the primary metric is better when higher."""
        return self.better(self.metric)

    @property
    def made(self) -> Made:
        """By what versions the answers were made, and of which docs."""
        return self.about.made

    @property
    def native(self) -> Of:
        """What only the run could compute."""
        return self.about.native.get(self.filter, Of())

    def better(self, metric: str) -> bool:
        """Return whether a native metric is better when higher."""
        return self.about.metrics.get(metric, True)

    # --- its numbers ------------------------------------------------------------------------------

    @cached_property
    def computed(self) -> Computed:
        """Every number, by the method of the task's kind: as the run left them beside the table, else computed from it."""
        if self.about.probe.failed:
            return Computed()
        if self.given is not None:
            return self.given
        return cache.compute(self) if self.fresh else cache.computed(self)

    @property
    def analysis(self) -> Analysis | None:
        """What the numbers are made of; None of a task without any."""
        return self.computed.analysis

    @property
    def tst(self) -> TstDetails | None:
        """The numbers of a text-only cross-validation; None for tasks of another kind."""
        return self.computed.tst

    @property
    def magic(self) -> MagicNumbers | None:
        """The numbers of a MAGIC task; None for tasks of another kind."""
        return self.computed.magic

    def grid(self, n: int) -> Grid | None:
        """Return the numbers of a grid; None where there are none."""
        return self.analysis.grids.get(n) if self.analysis else None

    @cached_property
    def measures(self) -> dict[str, Estimate]:
        """Every number by its name (``runs.measures``), each with its interval; none where batches garbled the answers."""
        found, probe = measures(self), self.about.probe
        if not probe.failed:
            return found
        rows = catalogue.keyed(self.kind, self.grids).items()
        names = dict.fromkeys([*(name for name, (row, _) in rows if row.measured), *found])
        return {name: catalogue.without_interval(None, self.docs, probe.why) for name in names}

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """Every setting, apart from model and grids, on which the result depends; None where the run is silent.

        The keys are words for people: ``benchmark``, ``docs`` (which docs with which golds), ``prompts``, ``limit``,
        ``few-shot``, ``system instruction``, ``generation``, ``kind``, ``metric``, ``filter``, ``views``, ``statistics``,
        ``benchmark version``, ``lmms-eval version``, ``dataset``, ``revision``, ``split``, ``image sizes`` and ``images``
        (what the full views show); of a MAGIC task also ``boxes shown`` and ``judge``.
        """
        return _fingerprint(self)

    @property
    def origin(self) -> str:
        """A digest of the table, unique to the result wherever its file lies."""
        return digest([self.task, self.filter, self.path and samples.digest_of(self.path)])

    # --- its docs ---------------------------------------------------------------------------------

    def frame(self, columns: Sequence[str] | None = None, *, again: bool = False) -> pl.DataFrame:
        """Return the rows of this filter pipeline, by doc and view; columns that the table lacks are null.

        Args:
            columns: which to read; None: all.
            again: whether the views of docs that were asked again are among them.

        Raises:
            RecordError: the table is not written, cut, or not as this version writes it.
        """
        if self.path is None:
            raise RecordError(f"{self.task}: its answers were not kept; run with --output_path OUT")
        several = len(self.about.filters) > 1
        wanted = None if columns is None else list(dict.fromkeys([*columns, "repeat", *["filter"] * several]))
        found = samples.frame_of(self.path, wanted)
        found = found.filter(filter=self.filter) if several else found
        found = (
            found if again or found["repeat"].null_count() == len(found) else found.filter(pl.col("repeat").is_null())
        )
        return found if columns is None else found.select([*dict.fromkeys(columns)])


def _fingerprint(result: Result) -> dict[str, Any]:
    about, kind, asked, made, host = result.about, result.kind, result.described, result.made, result.about.host
    magic, drawn = about.magic, ("seed",) * (kind.name in ("shuffle", "tshuffle"))
    views, statistics, tst = (
        {name: asked["options"].get(name) for name in names}
        for names in ((*_VIEW_OPTIONS, *drawn), _NUMBER_OPTIONS, _TST_OPTIONS * bool(kind.folds))
    )
    # the digest of docs of a MAGIC task covers the images
    images = "of the docs" if kind.name == "magic" else "" if kind.needs_image else "none shown"
    limit = "all" if host.limit is None else f"{host.limit:g}"
    return {
        "benchmark": result.base,
        "kind": kind.way,
        "metric": result.metric,
        "filter": result.filter,
        "docs": made.docs,
        "number of docs": result.docs,
        "prompts": made.prompts,
        "image sizes": images or made.image_sizes,
        "images": images or made.images,
        "dataset": host.dataset,
        "revision": host.revision,
        "split": host.split,
        "limit": f"{limit} from {host.offset}" if host.offset else limit,
        "few-shot": host.few_shot,
        "system instruction": host.system_instruction,
        "generation": None if host.generation is None else digest(host.generation),
        "benchmark version": host.benchmark_version,
        "views": digest([asked.get("pixels"), views]),
        **({"boxes shown": digest([magic.get(name) for name in _MAGIC]), "judge": _judge(magic)} if magic else {}),
        "statistics": digest([statistics, about.settings.level, tst]),
        "folds": asked.get("folds"),
        "lmms-eval version": made.lmms_eval,
    }


@dataclass(frozen=True, eq=False)
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


# --- where runs lie -------------------------------------------------------------------------------


def read(path: Path) -> Run:
    """Read a run: the samples tables that lie where its results file does.

    Args:
        path: its results file, or one of its tables.

    Raises:
        RecordError: there is none, or one is cut, of another version, or a part that passes for the whole.
    """
    path = Path(path)
    results = place_of(path) if samples.NAME in path.name else path
    tables = [one for one in _tables(results.parent, "*") if place_of(one) == results]
    if not tables:
        if not results.is_file():
            raise RecordError(f"{path}: no such run; give the folder that was --output_path of one")
        where = f"{results.name.removesuffix('_results.json')}{samples.NAME}*.parquet"
        raise RecordError(f"{path}: no samples tables beside it ({where}); copy them too, or run it again")
    found = sorted(((samples.about_of(one), one) for one in tables), key=lambda one: one[0].place)
    run = Run(results, tuple(found))
    for result in run.results:
        _check_whole(result)
    return run


def _tables(folder: Path, where: str) -> Iterator[Path]:
    return filter(samples.is_table, Path(folder).glob(f"{where}{samples.NAME}*.parquet"))


def place_of(table: Path) -> Path:
    """Return the place of the results file of a table's run."""
    return table.with_name(f"{table.name.partition(samples.NAME)[0]}_results.json")


def places(folder: Path) -> list[Path]:
    """Return the places of the results files of the runs under a folder, at any depth, oldest first.

    Raises:
        RecordError: there is none.
    """
    found = {place_of(one) for one in _tables(folder, "**/*")}
    if not found:
        told = "give the folder that was --output_path of a run"
        raise RecordError(f"{folder}: no samples tables (*{samples.NAME}*.parquet) here; {told}")
    # the names begin with the date
    return sorted(found, key=lambda path: (path.name, str(path)))


@dataclass(frozen=True)
class Taken:
    """The run chosen for a path.

    Attributes:
        run: the run.
        aside: how many other runs lie in the folder; 0 where a file was given.
        what: what it is the newest of, in a word or two; empty: of all.
    """

    run: Run
    aside: int = 0
    what: str = ""

    @property
    def path(self) -> Path:
        """The place of its results file."""
        return self.run.path

    @property
    def said(self) -> str:
        """A line about which run was taken, and how to name another; empty where there is only a single run."""
        if not self.aside:
            return ""
        which = f"the newest {self.what}" if self.what else "the newest"
        return f"{self.path}: taken as {which} of {self.aside + 1} runs here ({self.aside} left aside); to take another, give its *_results.json"


def newest_of(path: Path, fits: Any = lambda run: True, what: str = "") -> Taken:
    """Return the newest run under a path of the right kind.

    Where no run is of that kind, return the newest of all, so that its reader can say what the run lacks.

    Args:
        path: the ``--output_path`` of runs, one results file, or one table.
        fits: whether a run is of the right kind.
        what: the kind in a word or two, such as "with an index".

    Raises:
        RecordError: there is no run, or one that was looked at cannot be read.
    """
    if not Path(path).is_dir():
        return Taken(read(path))
    found = places(path)
    runs = (read(file) for file in reversed(found))
    taken = next((run for run in runs if len(found) == 1 or fits(run)), None) or read(found[-1])
    return Taken(taken, len(found) - 1, what)


def _check_whole(result: Result) -> None:
    """Refuse a result whose docs are not as many as the harness says that it asked.

    Raises:
        RecordError: a part passes for the whole: the part of a rank is missing, or some docs were never asked.
    """
    host, where = result.about.host, f"{result.run.path}: {result.task}"
    if host.original is None or host.effective is None or not result.docs:
        return
    there = host.original - host.offset
    asked = min(host.effective, there)
    if asked < there and host.limit is None:
        raise RecordError(f"{where}: {asked} of {there} docs were asked, but the run had no --limit; it is not whole")
    # a task on docs' own boxes skips docs without boxes
    if result.docs > asked or (result.docs < asked and not result.kind.own_boxes):
        raise RecordError(
            f"{where}: {result.docs} docs have rows, but the harness asked {asked}; a rank's part is missing"
        )


def find(paths: Iterable[Path]) -> list[Run]:
    """Return the runs in some folders (at any depth) or of some results files or tables, each once, oldest first.

    Raises:
        RecordError: a path without a run, or a file that cannot be read.
    """
    runs: dict[str, Run] = {}
    for path in paths:
        for file in places(path) if Path(path).is_dir() else [Path(path)]:
            run = read(file)
            # resolve() raises where a link leads to itself
            runs.setdefault(os.path.realpath(run.path), run)
    # digits alone, since harness and imports write different marks between them
    return sorted(runs.values(), key=lambda run: (re.sub(r"\D", "", run.date), run.path.name, str(run.path)))


def newest(results: Iterable[Result]) -> tuple[list[Result], int]:
    """Return of each model, task and filter the last result, in the order of the results.

    And how many earlier ones there are.
    """
    found = list(results)
    keys = [(*one.run.identity, one.task, one.filter) for one in found]
    last = dict(zip(keys, found, strict=True))
    kept = [one for key, one in zip(keys, found, strict=True) if last[key] is one]
    return kept, len(found) - len(kept)


def labels(runs: Iterable[Run]) -> dict[tuple[str, str, str], str]:
    """Return a name for each model, told apart by adapter and arguments only where the checkpoint's name is not enough; safe to show, and unique."""
    known = sorted({run.identity for run in runs})
    names = Counter(model for model, _, _ in known)
    adapters = Counter((model, adapter) for model, adapter, _ in known)
    out = {}
    for model, adapter, args in known:
        parts = [adapter] * (adapters[model, adapter] < names[model]) + [args] * (adapters[model, adapter] > 1)
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
    options = {
        "--model": adapter or "MODEL",
        "--model_args": model_args,
        "--tasks": ",".join(tasks),
        "--limit": most if most != "all" else "",
        "--offset": start,
    }
    words = (word for option, value in options.items() if value for word in (option, value))
    return one_line(f"{shlex.join(['lmms-eval', *words])} --output_path out")


# --- what must be the same ------------------------------------------------------------------------


def dataset_of(config: Mapping[str, Any]) -> dict[str, str | None]:
    """Return which data a task's config names; where a file lies on somebody's disk is left out."""
    if "dataset_path" not in config:
        return {}
    path, name, given = (config.get(f"dataset_{what}") for what in ("path", "name", "kwargs"))
    # a loader, or a place on somebody's disk, is no name on the Hub
    is_hub = isinstance(path, str) and re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", path)
    hub = path if is_hub and path not in _LOADERS else None
    where = hub or ("local files" if path else "none named")
    splits = (config.get(f"{name}_split") for name in ("test", "validation", "training"))
    return {
        "dataset": f"{where}, {name}" if name else where,
        "hub": hub,
        "config": str(name) if name else None,
        "revision": str((given.get("revision") if isinstance(given, dict) else None) or "none"),
        "split": str(next(filter(None, splits), "none")),
    }


def name_of(model: str) -> str:
    """Return a model's Hub id unchanged; of a local folder only the last name, without where the folder lies."""
    return PurePath(model).name or model if model.startswith(("/", "~", ".")) else model


def _judge(magic: Mapping[str, Any]) -> str:
    """Return the judge of a MAGIC task and a digest of how the judge was asked; the server does not matter."""
    asked = magic.get("judged_by", {})
    return (
        f"{magic['judge']} {digest([asked.get('sampling'), asked.get('prompts')])[:6]}"
        if magic.get("judge")
        else "none"
    )


def differences(one: Mapping[str, Any], other: Mapping[str, Any], ignore: Collection[str] = ()) -> list[str]:
    """Return in what two fingerprints differ, in words.

    What one of them does not say is not compared: see ``not_compared``.
    """
    both = ((key, value, other.get(key)) for key, value in one.items() if key not in ignore)
    return [
        f"{key} ({value} and {theirs})" if len(f"{value}{theirs}") < 60 else key
        for key, value, theirs in both
        if value is not None and theirs is not None and value != theirs
    ]


def not_compared(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Say which settings cannot be compared because a fingerprint lacks them; empty where all can."""
    unknown = [key for key in RECORDED if (key in one or key in other) and None in (one.get(key), other.get(key))]
    return f"not recorded in both runs, so not compared: {', '.join(unknown)}" if unknown else ""


def check_keys(keys: Iterable[str], known: Mapping[str, Any]) -> None:
    """Refuse names beside the keys of a fingerprint.

    Raises:
        RecordError: a name is no key; the error lists the keys.
    """
    for key in keys:
        if key not in known:
            raise RecordError(f"no setting {key!r} to ignore; allowed: {', '.join(known)}")
