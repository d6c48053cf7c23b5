"""lmms-patch from Python: a function for each command, of the same name, which returns data and prints nothing.

Those of a group of commands are in a module of its name: ``api.magic.check`` (``api_magic``), ``api.init.gate``
(``api_init``), ``api.import_.vlmevalkit`` (``api_import``; Python keeps the word without underscore for itself).

>>> from lmms_patch import api
>>> sorted(api.schema("patch")["properties"])[:3]
['answer', 'asked', 'base']

A path is a text or a ``Path``; where several are taken, one is enough.

Numbers are those that the commands show: scores on the metric's own scale (fractions where the metric is one), shares
as fractions, None where not defined (docs/metrics.md). A user's mistake raises ``lmms_patch.errors.PatchError``, whose
message is one line. ``compare`` is ``lmms_patch.compare.tasks.compare``, and ``gate`` is
``lmms_patch.gate.judge.gate``. What a function needs is imported when it is called: importing this module is cheap.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from lmms_patch.app import api_import, api_init, api_magic
from lmms_patch.errors import OptionError, RecordError, read_as
from lmms_patch.stats.bounds import LARGEST, check_bootstrap, is_number

if TYPE_CHECKING:
    from pyarrow import Table

    from lmms_patch.app.doctor.lines import Line
    from lmms_patch.app.export import Published
    from lmms_patch.app.pruning import Pruning
    from lmms_patch.compare.gap import Gap
    from lmms_patch.compare.gap_sides import GapSide
    from lmms_patch.compare.tasks import compare as compare
    from lmms_patch.gate.judge import gate as gate
    from lmms_patch.harness.names.catalog import Entry
    from lmms_patch.present.board.build import Built
    from lmms_patch.present.findings import Finding
    from lmms_patch.present.report.data import Report
    from lmms_patch.rci.ensemble import Ensemble
    from lmms_patch.rci.pooling import Averaged, Pooled
    from lmms_patch.rci.recompute import Analyzed, Changes, TaskRun
    from lmms_patch.runs.costs import Cost
    from lmms_patch.runs.results import Taken
    from lmms_patch.runs.run import Labelled, Result

Paths = str | Path | Sequence[str | Path]
"""One path, or several."""
Tell = Callable[[str], None]
Watch = Callable[[Sequence[Any], str], Iterable[Any]]

magic = api_magic
"""The functions of the ``lmms-patch magic`` commands."""
init = api_init
"""The functions of the ``lmms-patch init`` commands."""
import_ = api_import
"""The functions of the ``lmms-patch import`` commands."""


_ELSEWHERE = {"compare": "lmms_patch.compare.tasks", "gate": "lmms_patch.gate.judge"}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_ELSEWHERE]


def _silent(line: str) -> None:
    """Do nothing: the ``Tell`` of callers that show no lines."""


def _listed(names: str | Path | Sequence[str | Path]) -> list[Any]:
    """Return names or paths as a list.

    A text or path becomes a list of one, since ``list("out")`` would give its characters.
    """
    return [names] if isinstance(names, (str, os.PathLike)) else list(names)


def _unwatched(items: Sequence[Any], label: str) -> Iterable[Any]:
    """Return the items as they are: the ``Watch`` of callers that show no progress."""
    return items


def _unseen(what: str, done: int, of: int) -> None:
    """Do nothing: the ``watch`` of ``demo`` and ``tst`` for callers that show no progress."""


@dataclass(frozen=True)
class Catalogue:
    """The names that can be wrapped, with their verdicts and costs.

    Attributes:
        entries: the names that were asked for, each with its verdict.
        kind: the suffix that they are priced for, such as ``rci3``.
        asked: how often each doc is asked under it (once more per choice for log-likelihood tasks); None where its own
        boxes decide.
        cost: what a finished run took, by which prices are told; None: there is none.
    """

    entries: list[Entry]
    kind: str
    asked: int | None
    cost: Cost | None = None


@dataclass(frozen=True)
class Run:
    """The wrapped tasks of a finished run, with the numbers of the run.

    Attributes:
        taken: its results file, and how many others the folder holds.
        shown: tasks that show the image in some way, as the table has them.
        tested: text-only cross-validations; ``tst`` has their numbers.
        magic: MAGIC tasks; ``magic.show`` has more of them.
        findings: what to know first, at most six sentences (``present.findings``).
        unchecked: what of the numbers could not be held to the sample logs, one line each.
    """

    taken: Taken
    shown: list[Labelled]
    tested: list[Result]
    magic: list[Result] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """The results file."""
        return self.taken.path

    def _repr_html_(self) -> str:
        """Return the findings and a table of the tasks as HTML, for a notebook."""
        from lmms_patch.runs import run
        from lmms_patch.text import html_list

        return html_list([*(one.text for one in self.findings), *self.unchecked]) + run.read(self.path)._repr_html_()


@dataclass(frozen=True)
class Recomputed:
    """Recomputed numbers.

    Attributes:
        runs: by run, its tasks.
        pooled: by run, the pooled indices of its groups.
        averaged: the tasks of all runs, averaged; empty with one run, and of an ensemble.
        ensembles: the tasks of all runs over their models; empty but for an ensemble.
        warnings: what to mind of the average, one line each.
        taken: by run, its results file, and how many others its folder holds.
    """

    runs: list[list[Analyzed]]
    pooled: list[list[Pooled]]
    averaged: list[Averaged] = field(default_factory=list)
    ensembles: list[Ensemble] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that ``lmms-patch analyze --json`` writes (schema ``analysis``)."""
        from lmms_patch.runs import numbers
        from lmms_patch.runs.record import SCHEMA

        runs = [
            {"tasks": [a.to_json() for a in run], "groups": numbers.to_json(groups)}
            for run, groups in zip(self.runs, self.pooled, strict=True)
        ]
        average = {"average": numbers.to_json(self.averaged)} if self.averaged else {}
        ensemble = {"ensemble": numbers.to_json(self.ensembles)} if self.ensembles else {}
        return {
            "schema": SCHEMA,
            "runs": runs,
            **average,
            **ensemble,
            **({"warnings": list(self.warnings)} if self.warnings else {}),
        }


RUNS = Path("out")
"""The folder of runs that ``tasks`` takes times and tokens from, where none is named and this one is there."""


def tasks(
    pattern: str | None = None,
    kind: str | None = None,
    *,
    include_path: str | Path | None = None,
    run: str | Path | None = None,
    quiet: bool = True,
    watch: Watch = _unwatched,
) -> Catalogue:
    """List the tasks that can be wrapped, those that cannot with the reason, and the requests that each costs.

    Args:
        pattern: a base task, group, tag or wildcard (``gqa*``), or a wrapped name (``gqa_rci3``); None: all.
        kind: the suffix to price, such as ``rci3`` or ``blind``; None: that of the pattern, else ``rci3``.
        include_path: a folder with more task files.
        run: a finished run, whose times and tokens a call is taken to need: its ``--output_path`` (of several runs the
            newest that asked one of the names, else the newest), or its results file; None: of those in ``out``, where
            there are some.
        quiet: keep back what lmms-eval logs; False: it goes to stderr.
        watch: passes the names on one by one, to show progress.

    Raises:
        UnknownNameError: nothing matches, or ``kind`` is no way of wrapping.
        RecordError: there is no such run, or a file of it cannot be read.
    """
    from lmms_patch.harness.names import catalog

    with catalog.quietly() if quiet else contextlib.nullcontext():
        found = _catalogue(catalog.task_manager(include_path), pattern, kind, watch)
    return dataclasses.replace(found, cost=_cost(run, {entry.name for entry in found.entries}))


def _cost(path: str | Path | None, names: set[str]) -> Cost | None:
    """Return the time and tokens of the newest run that asked one of the given benchmarks, else of the newest run.

    Args:
        path: a run, or a folder of runs; None: ``RUNS``, whose faults are nobody's mistake.
        names: benchmarks.
    """
    from lmms_patch.runs import costs
    from lmms_patch.runs import results as files
    from lmms_patch.runs import run as runs

    def fits(file: Path) -> bool:
        return any(one.base in names for one in runs.read(file).results)

    try:
        return costs.cost(runs.read(files.newest(Path(path or RUNS), fits).path), names)
    except RecordError:
        # Nobody named a run: a fault in the default folder must not fail the listing.
        if path is not None:
            raise
        return None


def _catalogue(manager: Any, pattern: str | None, kind: str | None, watch: Watch) -> Catalogue:
    """Return the names that match a pattern, priced for the suffix in the pattern where ``kind`` is None."""
    from lmms_patch.ask.spec import parse
    from lmms_patch.ask.views import asked_per_doc
    from lmms_patch.harness.names import catalog

    # A task of the harness may itself end like a wrapped name: then it is the base, not a wrapped name.
    wrapped = None if pattern is None or pattern in manager.all_tasks or kind is not None else parse(pattern)
    if wrapped is not None:
        pattern, kind = wrapped.base, wrapped.suffix
    kind = kind or "rci3"
    asked = asked_per_doc(catalog.spec_of_suffix(kind))
    return Catalogue(catalog.entries(manager, pattern, kind, watch), kind, asked)


def coverage(*, quiet: bool = True, watch: Watch = _unwatched) -> list[Entry]:
    """List which tasks of the installed lmms-eval wrap under ``_rci3``, from their configs alone: no data is loaded.

    Args:
        quiet: as in ``tasks``.
        watch: as in ``tasks``.
    """
    from lmms_patch.harness.names import catalog

    with catalog.quietly() if quiet else contextlib.nullcontext():
        return catalog.coverage(catalog.task_manager(), watch)


def show(folder: str | Path) -> Run:
    """Read the wrapped tasks of a finished run.

    Args:
        folder: the ``--output_path`` of the run (of several the newest with a task of ours), or one ``*_results.json``.

    Raises:
        RecordError: there is no such run, its files cannot be read, or it has no wrapped task.
    """
    from lmms_patch.compare import audit
    from lmms_patch.present import findings
    from lmms_patch.present.terminal import rci as tables
    from lmms_patch.runs import run as runs

    taken = newest_wrapped(folder)
    path = taken.path
    results = runs.read(path).results
    unchecked = audit.told(results)
    shown = tables.load(path)
    tested = [result for result in results if result.tst]
    magic = [result for result in results if result.magic]
    # Cross-validations and MAGIC tasks without scores are in none of these lists: say so, and show no empty table.
    if not shown and not tested and not magic:
        asked = ", ".join(result.task for result in results)
        none = (
            f"nothing of {asked} was scored"
            if asked
            else "no wrapped task in this run; ask for one, such as --tasks gqa_rci3"
        )
        raise RecordError(f"{path}: {none}")
    found = findings.findings([findings.case(result) for result in results])
    return Run(taken, shown, tested, magic, found, unchecked)


def samples(run: str | Path, task: str | None = None, columns: Sequence[str] | None = None) -> Table:
    """Return the answers and scores of a finished run as an Arrow table: one row for each doc and view (docs/tables.md).

    The table comes from the Parquet file beside a task's sample log, or from the log itself where that file is missing
    or does not fit the log.

    Args:
        run: the ``--output_path`` of the run, or one ``*_results.json``. Of several runs, the newest with a wrapped
        task is taken.
        task: one of the run's tasks; None: all but MAGIC tasks, whose docs have no views.
        columns: their names, in the order wanted; None: all.

    Raises:
        OptionError: the run has no such task, or its table no such column.
        RecordError: there is no such run, no task with views, or a sample log that is missing or cannot be read.
    """
    from lmms_patch.runs import run as runs
    from lmms_patch.runs.samples import joined

    return joined(runs.read(newest_wrapped(run).path), task, columns)


def newest_wrapped(folder: str | Path) -> Taken:
    """Return the newest run with a wrapped task under a path.

    Raises:
        RecordError: there is no run, or one that was looked at cannot be read.
    """
    from lmms_patch.runs import results as files
    from lmms_patch.runs import run as runs

    return files.newest(Path(folder), lambda file: bool(runs.read(file).results), "with a task of lmms-patch")


def export(
    run: str | Path,
    task: str | None = None,
    *,
    to: str | None = None,
    output: str | Path | None = None,
    force: bool = False,
) -> tuple[Path, int]:
    """Write the answers of a finished run to a file, one row per doc and view; return the file's path and number of rows.

    Args:
        run: as in ``samples``.
        task: as in ``samples``.
        to: ``parquet``, ``csv`` or ``jsonl``; None: by the ending of ``output``, else Parquet.
        output: the file; None: ``samples.parquet``, ``samples.csv`` or ``samples.jsonl`` in the working folder.
        force: replace a file that is there and no earlier export.

    Raises:
        OptionError: an unknown form, a file of the run itself or of somebody else, or no such task.
        RecordError: as in ``samples``, or the file cannot be written.
    """
    from lmms_patch.app import export as forms
    from lmms_patch.runs import run as runs
    from lmms_patch.runs.samples import joined

    form = forms.form_of(to, None if output is None else Path(output))
    path = Path(output or f"samples.{form}")
    found = runs.read(newest_wrapped(run).path)
    # Refused before the table is read, which takes long for a large log.
    forms.check_output(path, found, force=force)
    table = joined(found, task)
    forms.write(table, path, form)
    return path, table.num_rows


def publish(
    run: str | Path,
    to: str,
    task: str | None = None,
    *,
    output: str | Path | None = None,
    organization: str = "unknown",
    relationship: str = "other",
    force: bool = False,
) -> Published:
    """Write the numbers of a finished run as a file for another site (``every-eval-ever``, the Hub).

    Args:
        run: as in ``samples``.
        to: ``every-eval-ever`` or ``eval-results`` (the Hub's ``.eval_results/*.yaml``).
        task: one of the run's tasks; None: all wrapped tasks.
        output: the file; None: ``every_eval_ever.json`` or ``eval_results.yaml`` in the working folder.
        organization: who ran the evaluation (``every-eval-ever``).
        relationship: of that organization to the model: ``first_party``, ``third_party``, ``collaborative`` or
        ``other``.
        force: replace a file that is there and no earlier export.

    Raises:
        OptionError: an unknown form or relationship, a file of the run itself or of somebody else, or no such task.
        RecordError: there is no such run, its numbers are not those of its log, none can be published, or the file
            cannot be written.
    """
    from lmms_patch.app import export as forms
    from lmms_patch.runs import run as runs

    found = runs.read(newest_wrapped(run).path)
    path = None if output is None else Path(output)
    return forms.publish(found, to, task, path, organization=organization, relationship=relationship, force=force)


def results(runs: Paths) -> Table:
    """Return the numbers of finished runs as an Arrow table with one row per task and number (docs/tables.md).

    Args:
        runs: folders with runs, at any depth, or single ``*_results.json``.

    Raises:
        RecordError: a path without a run, or a file that cannot be read.
    """
    from lmms_patch.runs.run import find
    from lmms_patch.runs.tabular import numbers_of

    return numbers_of(find([Path(path) for path in _listed(runs)]))


DEMO = (
    "--model",
    "mosaic_vlm",
    "--batch_size",
    "16",
    "--tasks",
    "mosaic_rci,mosaic_blind",
    "--log_samples",
    "--verbosity",
    "WARNING",
)
"""What lmms-eval is asked in a demo: the embedded benchmark on both grids of the papers, on wrong images, and without any."""
DEMO_VIDEO = ("--model", "mosaic_reader", "--tasks", "mosaic_video_trci4", "--log_samples", "--verbosity", "WARNING")
"""What lmms-eval is asked in a demo of videos: each embedded question on its clip, on its four segments, and for some on another question's clip."""


def demo(
    output: str | Path = "out/demo",
    *,
    video: bool = False,
    quiet: bool = True,
    watch: Callable[[str, int, int], None] = _unseen,
) -> Run:
    """Run the embedded benchmark with the embedded model, and write a report to ``report/`` in the output folder.

    Args:
        output: the folder of the run.
        video: run the embedded clips with the model that reads them, instead of the images.
        quiet: keep back what lmms-eval prints, in a new ``lmms-eval.log`` or ``lmms-eval-<number>.log`` in the output
            folder; False: it goes to stdout and stderr.
        watch: handed what is being done, how much of it is done, and how much there is.

    Raises:
        PatchError: lmms-eval ended with an error, or the folder cannot be written.
    """
    from lmms_patch.app.watched import lmms_eval

    output = Path(output)
    lmms_eval([*(DEMO_VIDEO if video else DEMO), "--output_path", str(output)], output, quiet=quiet, watch=watch)
    run = show(output)
    report(run.path, output / "report", with_images=True)
    return run


def tst(task: str, *, quiet: bool = True, watch: Callable[[str, int, int], None] = _unseen, **options: Any) -> Run:
    """Run a Test-set Stress-Test: can a text-only model, cross-validated on the test set, answer without looking?

    lmms-eval runs as a command of its own, and writes results and sample log into ``output``.

    Args:
        task: a base task, group or tag.
        quiet: keep back what lmms-eval prints, in a new ``lmms-eval.log`` or ``lmms-eval-<number>.log`` in the output
            folder; False: it goes to stdout and stderr.
        watch: handed what is being done, how much of it is done, and how much there is.
        options: the other fields of ``lmms_patch.app.options.StressArguments``.

    Raises:
        PatchError: an option out of range, or lmms-eval ended with an error.
    """
    from lmms_patch.app import stress
    from lmms_patch.app.options import StressArguments

    return show(stress.run(read_as(StressArguments, {"task": task, **options}, "tst"), quiet, watch))


def prune(
    task: str, *, tell: Tell = _silent, finished: Callable[[Pruning], None] = lambda done: None, **options: Any
) -> Pruning:
    """Remove docs that can be answered without looking, and say whether the removal was more than noise.

    After an interruption, the same call goes on where the first one stopped.

    Args:
        task: a base task.
        tell: told of every round, and of every number of the judge.
        finished: called with the pruning when it is judged and saved, before a dataset is written or sent.
        options: the other fields of ``lmms_patch.app.options.PruneArguments``.

    Raises:
        PatchError: an option out of range, a task that cannot be pruned, or a folder of another pruning.
    """
    from lmms_patch.app import pruning
    from lmms_patch.app.options import PruneArguments
    from lmms_patch.harness.names import catalog

    # Bars of lmms-eval only where somebody watches: from Python, ``prune`` prints nothing.
    with catalog.quietly(bars=tell is not _silent):
        return pruning.run(read_as(PruneArguments, {"task": task, **options}, "prune"), tell, finished)


def gap(
    full: str | Path,
    blind: str | Path,
    *,
    subset: str | Path | None = None,
    language_model: str | Path | None = None,
    task: str | None = None,
    metric: str | None = None,
    match: str = "category",
) -> Gap:
    """Measure the vision-blind gap of two finished runs: the score with images less the score without, on the metric's own scale.

    Args:
        full: run with images, of the plain task or a wrapped one that asks the full image: its folder or results file.
        blind: run of the ``_blind`` task.
        subset: folder of a pruning, its ``kept_ids.txt``, or a file of doc ids: the gap on these docs, beside random
        ones.
        language_model: run, without images, of the language model that the model was made from: gives MMStar's
        multi-modal leakage.
        task: the base task, where the runs have several.
        metric: None: the primary one.
        match: what random removals keep the counts of: ``category``, ``format`` or ``none``.

    Raises:
        PatchError: the runs cannot be compared, or a file cannot be read.
    """
    from lmms_patch.compare import gap as gaps
    from lmms_patch.compare import gap_sides

    one, other = gap_sides.read_pair(Path(full), Path(blind), task=task, metric=metric)
    one = dataclasses.replace(one, warnings=(*one.warnings, *_asked_apart(one, other)))
    found = gaps.gap(one, other, None if subset is None else gap_sides.read_subset(Path(subset), one.base), match=match)
    if language_model is None:
        return found
    text = gap_sides.read_side(Path(language_model), "blind", task=other.base, metric=other.metric)
    return dataclasses.replace(found, leakage=gaps.leakage(other, text), warnings=(*found.warnings, *text.warnings))


def _asked_apart(full: GapSide, blind: GapSide) -> list[str]:
    """Name the settings, beside the image, in which the full and the blind run differ or are not known."""
    from lmms_patch.compare.checks import in_words
    from lmms_patch.runs import run as runs

    prints = []
    for side in (full, blind):
        assert side.file is not None
        run = runs.read(side.file)
        wrapped = next((result for result in run.results if result.task == side.task and not result.place), None)
        settings = runs.asked(run, side.task) if wrapped is None else wrapped.fingerprint
        prints.append(
            {
                key: settings.get(key)
                for key in (*runs.RECORDED, "limit", "generation")
                # Images differ by design between the two runs; a warning about them would be true of every gap.
                if key not in ("image sizes", "images")
            }
        )
    apart, unknown = in_words(runs.differences(*prints)), runs.not_compared(*prints)
    said = (
        [f"the full and the blind run differ in {', '.join(apart)} too: the gap is not of the image alone"]
        if apart
        else []
    )
    return [*said, *([unknown] if unknown else [])]


def analyze(
    folders: Paths,
    changes: Changes | None = None,
    *,
    by_category: bool = False,
    ensemble: bool = False,
    watch: Watch = _unwatched,
) -> Recomputed:
    """Recompute the numbers of finished runs, with other settings where given.

    Average several runs, or sum up those of several models.

    Args:
        folders: of each run its ``--output_path`` (of several runs the newest with an index), or its
        ``*_results.json``.
        changes: what to compute otherwise than the runs did (``recompute.Changes``).
        by_category: also each category by itself.
        ensemble: the runs are of different models (``rci.ensemble``); else several runs are of one model, and are
        averaged.
        watch: hands the tasks of a run on one by one, for a bar of progress.

    Raises:
        OptionError: a setting out of range, or an ensemble of one run.
        RecordError: a file that is missing or not whole, a field that the log does not have, or runs that cannot be
            taken together.
    """
    from lmms_patch.compare import audit
    from lmms_patch.rci import ensemble as models
    from lmms_patch.rci import pooling, recompute

    changes = changes or recompute.Changes()
    _check_changes(changes)
    folders = _listed(folders)
    # All paths first: a wrong path must fail before the resampling, which takes long.
    taken = [recompute.one_run(Path(folder)) for folder in folders]
    paths = [one.path for one in taken]
    if ensemble and len(paths) < 2:
        raise OptionError(
            "an ensemble is of at least two models: give a run of each, such as 'lmms-patch analyze --ensemble RUN1 RUN2 RUN3'"
        )
    if ensemble and by_category:
        raise OptionError("an ensemble is not split by category: ask for one category with --category NAME")
    warnings = _check_runs(paths, ensemble) if len(paths) > 1 else []
    loaded: list[list[TaskRun]] = [recompute.load(path) for path in paths]
    runs = [
        [recompute.recompute(one, changes, by_category) for one in watch(run, str(folder))]
        for folder, run in zip(folders, loaded, strict=True)
    ]
    warnings += audit.told(one.run.result for run in runs for one in run if one.analysis is None)
    pooled = [pooling.groups(path, run, changes) for path, run in zip(paths, runs, strict=True)]
    if ensemble:
        return Recomputed(
            runs, pooled, [], models.ensembles(dict(zip(_models(paths), runs, strict=True)), changes), warnings, taken
        )
    return Recomputed(runs, pooled, pooling.average(runs, changes) if len(runs) > 1 else [], [], warnings, taken)


_OF_ADAPTERS = ("prompts", "generation", "system instruction")
"""Settings that tasks may choose for each adapter."""


def _models(paths: Sequence[Path]) -> list[str]:
    """Return the model name of each run, else its adapter, else its path."""
    from lmms_patch.runs import run as runs

    return [one.model or one.adapter or str(path) for path, one in zip(paths, map(runs.read, paths), strict=True)]


def _check_runs(paths: Sequence[Path], ensemble: bool) -> list[str]:
    """Check that runs asked the same docs in the same way, so that they can be averaged or form an ensemble.

    Runs to be averaged are of one model; only the model's arguments may differ, as a seed does. Runs of an ensemble are
    of as many models, and what tasks may choose for an adapter may differ.

    Returns:
        Warnings: what differs all the same, and what could not be checked.

    Raises:
        RecordError: one run twice, several models (of an ensemble: one model twice), or tasks that were asked
            otherwise.
    """
    from lmms_patch.compare.checks import in_words
    from lmms_patch.runs import run as runs

    read = [runs.read(path) for path in paths]
    models = {(run.model, run.adapter) for run in read if run.adapter}
    if ensemble:
        named = _models(paths)
        if twice := next((name for name in named if named.count(name) > 1), None):
            raise RecordError(
                f"two of these runs are of the model {twice}; give one run of each model, or leave out --ensemble to average them"
            )
    elif len(models) > 1:
        names = ", ".join(sorted(model for model, _ in models))
        raise RecordError(
            f"these are runs of {len(models)} models ({names}); only runs of one model are averaged: "
            "type 'lmms-patch analyze --ensemble ...' for the index over models, or 'lmms-patch compare A B'"
        )
    warnings: dict[str, None] = {}
    first = {(result.task, result.filter): result for result in read[0].results}
    seen: dict[str, Path] = {}
    for path, run in zip(paths, read, strict=True):
        for result in run.results:
            # Copies of a results file in two folders would count as two runs and shrink the spread.
            if (origin := result.origin) in seen:
                raise RecordError(
                    f"{seen[origin]} and {path} are one run, not two: {result.task} has the same date, model and numbers; give each once"
                )
            seen[origin] = path
            if run is read[0] or (result.task, result.filter) not in first:
                continue
            prints = [first[result.task, result.filter].fingerprint, result.fingerprint]
            # a new version of lmms-eval need not have changed these tasks, so it is told and not refused
            told = ["lmms-eval version", *(_OF_ADAPTERS if ensemble else ())]
            apart = in_words(runs.differences(prints[0], prints[1], ignore=told))
            if apart:
                what = "an ensemble is of runs" if ensemble else "average only runs"
                raise RecordError(
                    f"{result.task}: {paths[0]} and {path} differ in {', '.join(apart)}; {what} that were asked alike"
                )
            version = in_words(runs.differences({key: prints[0].get(key) for key in told}, prints[1]))
            said = [*(f"the runs differ in {one}" for one in version), runs.not_compared(*prints)]
            warnings |= {f"{result.task}: {line}": None for line in said if line}
    return list(warnings)


def _check_changes(changes: Changes) -> None:
    """Refuse settings of ``analyze`` that are out of range."""
    check_bootstrap(changes.draws, changes.level, changes.seed)
    chance = changes.chance
    if chance is not None and chance != "majority" and not is_number(chance):
        raise OptionError(
            f"chance must be a number on the metric's own scale, at most ±{LARGEST:g}, or 'majority', not {chance!r}"
        )
    if changes.delta is not None and not is_number(changes.delta):
        raise OptionError(
            f"delta must be a number on the metric's own scale, at most ±{LARGEST:g}, not {changes.delta}"
        )


def report(
    folders: Paths,
    output: str | Path = "out/report",
    *,
    from_csv: Paths = (),
    title: str = "",
    examples: int | None = None,
    categories: bool | None = None,
    with_images: bool = False,
    include_path: str | Path | None = None,
    tell: Tell = _silent,
) -> Report:
    """Write a report on finished runs into a folder (``index.html``, ``figures/``, ``tables/``); return its data.

    Args:
        folders: of each run its ``--output_path``, or its ``*_results.json``; models, benchmarks, grids and kinds may
        be mixed.
        output: the folder; an earlier report there is replaced.
        from_csv: published tables with the columns dataset, model, n and rci (or pcri), set beside the runs.
        title: of the page; made from what is in it where empty.
        examples: docs to show by rule and result; None: 2, and none of more than 100 results.
        categories: also each category by itself; None: of up to 100 results.
        with_images: take the examples' images through the harness; where a dataset cannot be reached, their grids are
        drawn without.
        include_path: a folder with more task files, for ``with_images``.
        tell: is handed a line as work goes on.

    Raises:
        PatchError: a file is missing or not whole, nothing to report, more than 400 results, or the folder cannot be
            written.
    """
    from lmms_patch.present.report.build import build

    images = None
    if with_images:
        from lmms_patch.harness.images import first_images
        from lmms_patch.harness.names.catalog import quietly

        def images(base: str, ids: Sequence[int]) -> dict[int, Any]:
            with quietly(bars=tell is not _silent):
                return first_images(base, ids, include_path)

    paths = [Path(folder) for folder in _listed(folders)]
    csv = [Path(path) for path in _listed(from_csv)]
    return build(
        paths, Path(output), from_csv=csv, title=title, count=examples, categories=categories, images=images, tell=tell
    )


def explore(
    runs: Paths,
    output: str | Path,
    *,
    with_images: bool = True,
    include_path: str | Path | None = None,
    tell: Tell = _silent,
) -> int:
    """Write the docs of one or two finished runs as a page that opens from disk; return the number of docs.

    At most 2,000.

    Args:
        runs: of each run its ``--output_path``, or its ``*_results.json``.
        output: the folder; an earlier one there is replaced.
        with_images: take the docs' images through the harness; where a dataset cannot be reached, their grids are drawn
        without.
        include_path: a folder with more task files, for ``with_images``.
        tell: is handed a line as work goes on.

    Raises:
        PatchError: more than two runs, more docs, a file that is missing or not whole, or the folder cannot be written.
    """
    from lmms_patch.app.serving import pictures_of
    from lmms_patch.present.explore.explorer import open_runs
    from lmms_patch.present.explore.static import write

    return write(
        open_runs([Path(run) for run in _listed(runs)]), pictures_of(with_images, include_path), Path(output), tell
    )


def leaderboard(
    folders: Paths,
    output: str | Path = "leaderboard",
    *,
    by: str = "pcri",
    ignore: str | Sequence[str] = (),
    over: str | Sequence[str] = (),
    fresh: bool = False,
    title: str = "Leaderboard",
    tell: Tell = _silent,
) -> Built:
    """Add runs to a board and write its page; results files that the board knows are not read again.

    Args:
        folders: of runs, at any depth, or results files; none: the board is written again from what it knows.
        output: the board's folder.
        by: the number to rank by: ``pcri`` (nearer 0 is better), ``adj``, ``gap``, ``fip`` or ``mpp``.
        ignore: settings (keys of ``Result.fingerprint``) in which runs may differ and still be ranked together.
        over: the benchmarks to take overall means over; none: those that most models have.
        fresh: forget all runs but those in ``folders``.
        title: of the page.
        tell: is handed a line as work goes on.

    Raises:
        PatchError: a file is damaged, an option is not possible, or the folder cannot be written. The board is as it
            was.
    """
    from lmms_patch.present.board import build

    paths = [Path(folder) for folder in _listed(folders)]
    return build.leaderboard(
        paths, Path(output), by=by, ignore=_listed(ignore), over=_listed(over), fresh=fresh, title=title, tell=tell
    )


def doctor(run: str | Path | None = None, *, model: str | None = None) -> list[Line]:
    """Check the installation and the machine; return a line for each check.

    Args:
        run: the ``--output_path`` of a run, or one ``*_results.json``, that is checked too.
        model: an adapter of lmms-eval that is checked too, from its source.
    """
    from lmms_patch.app.doctor import installed, machine

    env = dict(os.environ)
    found = [*installed.package(), *installed.python(), *installed.versions(), *installed.host(), *installed.plugin()]
    found += installed.adapter(model) if model else []
    found += [*machine.caches(env), *machine.disk(Path(run or "."), env), *machine.variables(env), *machine.hub(env)]
    if run is not None:
        from lmms_patch.app.doctor.finished import finished

        found += finished(Path(run))
    return found


@overload
def config(name: str) -> str: ...


@overload
def config(name: None = None) -> dict[str, str]: ...


def config(name: str | None = None) -> str | dict[str, str]:
    """Return the text of a shipped file by name (run config, gate rules, benchmark profile, JSON schema); without a name, all.

    Args:
        name: ``rci_suite_lite``, ``runs/rci_suite_lite`` or ``configs/runs/rci_suite_lite.yaml``; of a schema
            ``schemas/patch`` (``schema``); None: all by name but the schemas.

    Raises:
        UnknownNameError: there is none of this name, or several.
    """
    from lmms_patch import resources
    from lmms_patch.errors import UnknownNameError, nearest

    root = resources.folder("configs")
    files = {path.relative_to(root).with_suffix("").as_posix(): path for path in sorted(root.glob("*/*.yaml"))}
    if name is None:
        return {one: path.read_text(encoding="utf-8") for one, path in files.items()}
    if name.startswith("schemas/"):
        return json.dumps(schema(name.partition("/")[2]), indent=2, ensure_ascii=False) + "\n"
    asked = name.removesuffix(".yaml").removeprefix("configs/")
    matching = [one for one in files if asked in (one, one.partition("/")[2])]
    if len(matching) > 1:
        raise UnknownNameError(
            f"{name!r} is the name of {len(matching)} shipped files; write one of {', '.join(matching)}"
        )
    if not matching:
        close = nearest(asked, [*files, *(one.partition("/")[2] for one in files)])
        hint = f"did you mean {' or '.join(close)}?" if close else "type 'lmms-patch config' for what there is"
        raise UnknownNameError(f"no shipped file {name!r}; {hint}")
    return files[matching[0]].read_text(encoding="utf-8")


def schema(name: str | None = None) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a name.

    Without a name: all schemas by name, each with its ``title`` and ``description``.

    Raises:
        UnknownNameError: there is none of this name.
    """
    from lmms_patch.app import schemas

    return {one: schemas.load(one) for one in schemas.names()} if name is None else schemas.load(name)
