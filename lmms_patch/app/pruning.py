"""Pruning a task from loading to writing: what ``lmms-patch prune`` does.

The parts are in ``tst``; this puts them together.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from msgspec import to_builtins

from lmms_patch import files
from lmms_patch.app import blind, hub
from lmms_patch.app.blind import GOLDS
from lmms_patch.app.options import PruneArguments as Arguments
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.runs.numbers import APART, REVERSED
from lmms_patch.runs.run import Result, Run, newest_of
from lmms_patch.tst import controls, pruned
from lmms_patch.tst.diagnosis import DEALS, Diagnose, diagnose, in_threads
from lmms_patch.tst.folds import Grouping
from lmms_patch.tst.formats import Blind
from lmms_patch.tst.items import Item, Places
from lmms_patch.tst.prune import Pruned, fingerprint, prune
from lmms_patch.tst.results import NEEDED, stress
from lmms_patch.tst.selection import PruneSettings, Selector
from lmms_patch.tst.shuffle import shuffle_golds

if TYPE_CHECKING:
    from lmms_patch.harness.tst.pruned_task import PrunedTask
    from lmms_patch.harness.wrap.text_only import TextOnly
    from lmms_patch.tst.rewards import Rewards
    from lmms_patch.tst.trees import ModelSettings

# each round of a pruning fits the model anew, for which the usual 1000 trees take too long
FOREST_TREES = 50

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Pruning:
    """What a pruning left.

    Attributes:
        arguments: what was asked.
        items: all docs of the task.
        found: which of them are kept and removed, and the rounds.
        judged: what an independent judge says of it; None where nothing went.
        blind: what blind answers of several models say; None where not pruned by them.
        folder: everything that was written (``tst.pruned``).
        pushed: the address of the folder on the hub; "" where it was not sent.
    """

    arguments: Arguments
    items: Sequence[Item]
    found: Pruned
    judged: controls.Judged | None
    folder: Path
    blind: Blind | None = None
    pushed: str = ""

    @property
    def task_file(self) -> Path:
        """The task of the kept docs, for ``--include_path``."""
        return self.folder / "task" / f"{self.arguments.task}_pruned.yaml"

    @property
    def categories(self) -> list[tuple[str, int, int, float, int]]:
        """By category: its name, docs, removed, percent removed, kept; the last row is the total."""
        return pruned.categories(self.items, self.found)


def _settings(arguments: Arguments) -> PruneSettings:
    """Return the settings of the pruning itself.

    Raises:
        OptionError: values that are not allowed, alone or together.
    """
    if arguments.by == "delta" and arguments.scores_of is None:
        raise OptionError("--by delta needs --from OUT, a finished _tst run with --model tst_lora")
    blind.check(arguments)
    # All of this is checked before the task is loaded.
    _check_output(arguments.folder)
    return PruneSettings(
        budget=arguments.budget,
        batch=arguments.batch,
        tau=arguments.tau,
        near_chance=arguments.near_chance_stop,
        by=arguments.by,
        strategy=arguments.strategy,
        allocation=_allocation(arguments.allocate) if isinstance(arguments.allocate, str) else arguments.allocate,
        fold_seeds=arguments.fold_seeds,
    )


def _allocation(text: str) -> str | dict[str, float]:
    """Return ``category`` unchanged, and ``a=0.3,b=20`` as a mapping.

    Raises:
        OptionError: a budget is no number.
    """
    if "=" not in text:
        return text
    out = {}
    for part in text.split(","):
        # From the right, since a category's name may hold "=".
        name, _, number = part.rpartition("=")
        try:
            out[name.strip()] = float(number)
        except ValueError:
            raise OptionError(
                f"--allocate: {part!r} is no budget; write category=share, such as counting=0.3,size=20"
            ) from None
    return out


def settings_of(model: str) -> ModelSettings:
    """Return the settings of a selecting or judging model.

    The linear model judges the trees, so it is neither a feature of theirs nor a member of their ensemble.
    """
    from lmms_patch.tst.trees import ModelSettings

    return ModelSettings(model, FOREST_TREES if model == "forest" else None, beside=False)


@dataclass(frozen=True)
class _Work:
    """What is pruned, and by which model classes.

    Attributes:
        selects: the model that selects.
        judges: the model that judges.
        about: what a history depends on beside docs and settings.
    """

    items: Sequence[Item]
    grouping: Grouping
    folds: int
    selects: ModelSettings
    judges: ModelSettings
    about: str

    def diagnose(self, items: Sequence[Item], rewards: Rewards, settings: ModelSettings, deals: int = 0) -> Diagnose:
        """Return a diagnostic of items, possibly with new golds, as a function of places and fold seeds."""
        from lmms_patch.tst.tree_diagnostic import RfDiagnostic

        prepared = RfDiagnostic(settings).prepare(items, rewards)
        workers = in_threads(os.cpu_count() or 1)
        return lambda places, seeds: diagnose(
            prepared, items, rewards, places, self.grouping, k=self.folds, seeds=seeds, runner=workers, deals=deals
        )


def run(arguments: Arguments, tell: Tell) -> Pruning:
    """Prune a task, judge what pruning changed, and write both into the folder of the pruning.

    Args:
        arguments: what to prune, and how.
        tell: told of every round, and of every number of the judge.

    Raises:
        PatchError: a user's mistake.
    """
    from lmms_patch.harness.load import text_only
    from lmms_patch.harness.tst import pruned_task

    settings, out = _settings(arguments), arguments.folder
    if arguments.push is not None:
        hub.check(arguments.push)
    task = text_only(
        arguments.task, folds=arguments.folds, include_path=arguments.include_path, grouping=arguments.grouping
    )
    key = arguments.key or task.spec.options.key
    items = task.keyed_items(key)
    # Checked before hours of work: the task file must find the docs by their ids.
    written = pruned_task.prepare(
        arguments.task, out / "task", arguments.include_path, key, [item.key for item in items]
    )
    if arguments.blind:
        found, told = blind.pruned(arguments, items, _check_golds, tell)
        described = _described(arguments, settings, "none") | {"by": "blind"}
        return _written(Pruning(arguments, items, found, None, out, told), described, written, tell)
    _check_budget(items, settings, arguments.folds)
    given = None if arguments.scores_of is None else given_scores(arguments, items, tell)
    about, selects, judges = arguments.about, settings_of(arguments.model), settings_of(arguments.judge_model)
    work = _Work(items, task.headline, arguments.folds, selects, judges, about)
    selector = None if given is not None else work.diagnose(items, task.rewards, selects, DEALS)
    copies = (
        None
        if task.headline.name not in APART
        else partial(task.copies.classes, rewards=task.rewards, full_marks=task.rewards.scale)
    )
    state = out / "history.json"
    found = prune(
        items,
        settings,
        selector,
        given=given,
        copies=copies,
        state=state,
        about=about,
        fresh=arguments.fresh,
        tell=tell,
    )
    judged = None
    if len(found.removed):
        judged = _judge(arguments, work, task, settings, found, given, tell)
    described = _described(arguments, settings, task.headline.name)
    return _written(Pruning(arguments, items, found, judged, out), described, written, tell)


def _written(done: Pruning, described: dict[str, Any], task: PrunedTask, tell: Tell) -> Pruning:
    """Write a pruning into its folder, hand the result on, and send the folder where asked."""
    from lmms_patch.present.card import card

    asked, items, out = done.arguments, done.items, done.folder
    parts = {"judged": done.judged, "blind": done.blind}
    pruned.write(
        out,
        asked.task,
        items,
        done.found,
        described,
        {name: to_builtins(part) for name, part in parts.items() if part is not None},
    )
    task.write([items[int(i)].key for i in done.found.kept])
    about = card(asked.task, described, done.found.stopped, done.categories, done.judged, done.blind)
    files.write(out / "README.md", about)
    # Told before sending, which may fail: the pruning itself is done and written.
    if asked.push is None:
        return done
    tell(f"sending {out} to {asked.push}")
    message = f"{asked.task} pruned by lmms-patch: {len(done.found.kept)} of {len(items)} docs"
    return dataclasses.replace(done, pushed=hub.push(out, asked.push, message))


def _described(arguments: Arguments, settings: PruneSettings, grouping: str) -> dict[str, Any]:
    own = {
        "by": arguments.by,
        "model": arguments.model,
        "judge": arguments.judge_model,
        "folds": arguments.folds,
        "grouping": grouping,
    }
    return {**dataclasses.asdict(settings), **own}


def _judge(
    arguments: Arguments, work: _Work, task: TextOnly, settings: PruneSettings, found: Pruned, given: Any, tell: Tell
) -> controls.Judged:
    """Compare the effect of a pruning with prunings of the same task under shuffled golds."""
    state = arguments.folder / "judge.json"
    # With --fresh nothing of an earlier judge may be taken over.
    if arguments.fresh and state.exists():
        state.unlink()

    def world(seed: int) -> tuple[Places, Diagnose]:
        items = shuffle_golds(work.items, seed)
        rewards = task.rewards.regold(items)
        # Golds that mean nothing would stop at once, and leave nothing to compare with. So all stops are off.
        alike = dataclasses.replace(settings, near_chance=False, over_pruned=False, tau=None, seed=seed)
        if isinstance(settings.allocation, str):
            # as many as really went, since the pruning may have stopped before its budget
            alike = dataclasses.replace(alike, budget=float(len(found.removed)))
        select = work.diagnose(items, rewards, work.selects)
        # Given scores come from real golds, so under shuffled golds a round of our own stands in.
        if given is not None:
            alike = dataclasses.replace(alike, batch=float(max(1, len(found.removed))), by="s_minus_chance")
        return prune(items, alike, select).removed, work.diagnose(items, rewards, work.judges)

    return controls.judge(
        work.items,
        found.removed,
        work.diagnose(work.items, task.rewards, work.judges),
        world,
        controls=arguments.controls,
        shuffles=arguments.shuffles,
        state=state,
        fingerprint=fingerprint(work.items, settings, f"{work.about}/{arguments.judge_model}", given),
        tell=tell,
    )


def given_scores(arguments: Arguments, items: Sequence[Item], tell: Tell) -> Any:
    """Return the scores of a finished run, in the order of the items; nan for docs without a score.

    Raises:
        RecordError: the run is of another task or kind, or has no such scores.
    """
    run = arguments.scores_of
    assert run is not None

    def fitting(run: Run) -> list[Result]:
        return [r for r in run.results if r.base == arguments.task and r.kind.folds]

    taken = newest_of(run, lambda run: bool(fitting(run)), f"with a tst task of {arguments.task}")
    path = taken.path
    wanted = fitting(taken.run)
    if not wanted:
        raise RecordError(f"{path}: no {arguments.task}_tst5 in this run")
    if taken.said:
        tell(taken.said)
    log, docs = wanted[0].path or path, wanted[0].frame([*GOLDS, *NEEDED]).filter(view=0)
    _check_golds(log, docs, items)
    _check_copies(log, docs, wanted[0].about.tst.get("grouping", "none"))
    values = docs["tst"].struct.field(arguments.by)
    by_doc = {doc_id: value for doc_id, value in zip(docs["doc_id"], values, strict=True) if value is not None}
    scores = np.array([by_doc.get(item.doc_id, np.nan) for item in items], float)
    if not np.isfinite(scores).any():
        raise RecordError(f"{log}: no doc has a score {arguments.by!r}")
    return scores


def _check_copies(log: Path, docs: pl.DataFrame, headline: str) -> None:
    """Refuse the scores of a run with copies answered in reverse.

    Raises:
        RecordError: what it found is no shortcut.
    """
    found = stress(docs, headline)
    reason = None if found is None else found.by_grouping[found.headline].withheld
    if reason is not None:
        raise RecordError(f"{log}: nothing is pruned: {REVERSED[reason]}")


def _check_golds(log: Path, docs: pl.DataFrame, items: Sequence[Item]) -> None:
    """Refuse a run on docs with different golds than the task has now, as docs are joined by number.

    Raises:
        RecordError: a gold has changed.
    """
    golds = {item.doc_id: item.golds[0] for item in items if item.golds}
    for doc_id, gold, label in docs.select(GOLDS).iter_rows():
        if label is not None and gold is not None and golds.get(doc_id, gold) != gold:
            raise RecordError(
                f"{log}: doc {doc_id} has the gold {gold!r} in this run and {golds[doc_id]!r} in the task: the dataset has changed since"
            )


def _check_output(out: Path) -> None:
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise OptionError(f"--output {out}: {there} is no folder that can be written to; give another --output")


def _check_budget(items: Sequence[Item], settings: PruneSettings, folds: int) -> None:
    """Refuse a budget leaving fewer docs than folds."""
    left = len(items) - Selector(items, settings).budget
    if left < folds:
        raise OptionError(
            f"a budget that leaves {left} of {len(items)} docs leaves nothing to cross-validate in {folds} folds; give a smaller --budget"
        )
