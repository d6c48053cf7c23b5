"""Every name known to the installed lmms-eval: whether it can be wrapped, why not, and at what cost."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from loguru import logger

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import SUFFIXES, Options, WrapSpec, parse
from lmms_patch.errors import PatchError, UnknownNameError, nearest
from lmms_patch.harness import task_files
from lmms_patch.harness.names import configs
from lmms_patch.harness.names.facts import Facts, leaves

Watch = Callable[[Sequence[str], str], Iterable[str]]
"""Passes names on one by one, to show progress; the text says what is done with them."""


@dataclass(frozen=True)
class Entry:
    """A name known to the harness, with its verdict.

    Attributes:
        name: task, group or tag.
        type: what the name is: ``task``, ``python_task``, ``group`` or ``tag``.
        verdict: ``wraps``; ``judge`` (wraps with ``allow_judge``); ``data`` (its code does not tell, so the first doc
        decides); ``no``.
        reason: why it does not wrap, or what it needs; "" where it simply wraps.
        docs: the number of docs; None where it is not known.
        in_time: verdict and reason of ``_trci4``, which cuts clips in time.
        on_wrong_images: how many of the docs are also asked on another doc's image; None where ``docs`` is not known.
        again: how many of the docs are asked again; None where none is, or ``docs`` is not known.
    """

    name: str
    type: str
    verdict: str
    reason: str
    docs: int | None
    on_wrong_images: int | None = None
    again: int | None = None
    in_time: tuple[str, str] = ("no", "")


@contextlib.contextmanager
def quietly(*, bars: bool = True) -> Iterator[None]:
    """Hide the harness's log while names are looked up and loaded.

    Args:
        bars: whether the datasets library shows progress bars.
    """
    import datasets

    # bars that somebody has disabled must stay so afterwards
    hidden = not bars and not datasets.are_progress_bars_disabled()
    logger.disable("lmms_eval")
    if hidden:
        datasets.disable_progress_bars()
    try:
        yield
    finally:
        logger.enable("lmms_eval")
        if hidden:
            datasets.enable_progress_bars()


def task_manager(include_path: str | os.PathLike[str] | None = None) -> Any:
    """Return the host's task manager, with the plugin installed and the plugin's tasks indexed."""
    from lmms_eval.tasks import TaskManager

    from lmms_patch.harness.plugin import install

    # before the manager is made, whose index must hold the plugin's tasks
    install()
    # the host's own index would not name a file that it cannot read
    for folder in task_files.folders_of(include_path):
        task_files.indexed(folder)
    # the host takes a text, or a list
    return TaskManager(verbosity="ERROR", include_path=None if include_path is None else str(include_path))


def entry(manager: Any, name: str, spec: WrapSpec) -> Entry:
    """Return the verdict on a name, for a way of wrapping."""
    row = manager.task_index[name]
    members = list(leaves(manager, name))
    verdict, reason = _verdict(members, spec.of(name))
    # no config tells whether docs carry boxes, or have options
    if spec.kind.own_boxes and verdict == "wraps":
        verdict, reason = "data", "its docs must carry boxes (docs/regions.md)"
    if spec.kind.turns and verdict == "wraps":
        verdict, reason = "data", "its docs must have options (docs/rotate.md)"
    # the docs of a group are known only where those of every member are
    known = [facts.docs for facts in members if facts.docs is not None]
    docs = sum(known) if known and len(known) == len(members) else None
    wrong = again = None
    if docs is not None and verdict != "no":
        options = [configs.options_over(facts.metadata, spec, facts.name) for facts in members]
        each = [(facts.docs or 0, one) for facts, one in zip(members, options, strict=True)]
        wrong = sum(min(count, one.null) for count, one in each) if spec.kind.has_index else 0
        if spec.asks_again:
            again = sum(_asked_again(spec, one, count) for count, one in each)
    in_time = _verdict(members, spec_of_suffix(_IN_TIME).of(name))
    return Entry(name, row["type"], verdict, reason, docs, wrong, again, in_time)


def _asked_again(spec: WrapSpec, options: Options, docs: int) -> int:
    """Return how many docs of a task are asked again (``Session.again``)."""
    # these need NumPy and SciPy, which the list of names does not
    from lmms_patch.stats.asking import pilot_of
    from lmms_patch.stats.composition import LEAST

    null = min(docs, options.null)
    most = null if options.steady == "all" else min(null, options.steady)
    if spec.leaves_out:
        most = min(most, pilot_of(options.pilot, docs))
    if most < LEAST:
        return 0
    return docs if options.steady == "all" and not spec.leaves_out else most


def _verdict(members: list[Facts], spec: WrapSpec) -> tuple[str, str]:
    """Return the worst verdict among the tasks under a name, with the first reason."""
    if not members:
        return "no", "it has no member that lmms-eval knows"
    verdicts = [(*_leaf_verdict(facts, spec), facts.name) for facts in members]
    # a group wraps only as well as its worst member
    worst, reason, name = min(verdicts, key=lambda one: ("no", "judge", "data", "wraps").index(one[0]))
    return worst, f"{name}: {reason}" if reason and len(members) > 1 else reason


def _leaf_verdict(facts: Facts, spec: WrapSpec) -> tuple[str, str]:
    """Return the verdict on a task, with the reason."""
    try:
        found, reason = configs.verdict(facts, spec)
    except PatchError as error:
        return "no", str(error)
    return "no" if found == "unfit" else found, reason


def entries(manager: Any, pattern: str | None, kind: str, watch: Watch = lambda names, _: names) -> list[Entry]:
    """Return the entries of all names matching a pattern.

    Args:
        manager: the host's task manager, or a ``task_files.Index``.
        pattern: a name or wildcard of base tasks; None stands for all.
        kind: a suffix such as ``rci3``.
        watch: shows progress.

    Raises:
        UnknownNameError: no name matches, or the suffix is not one of ours.
    """
    spec = spec_of_suffix(kind)
    names = [name for name in manager.all_tasks if pattern is None or fnmatchcase(name, pattern)]
    if not names:
        close = configs.meant(manager.all_tasks, pattern or "") or nearest(pattern or "", manager.all_tasks)
        hint = f"did you mean {' or '.join(close)}?" if close else "leave the pattern out to see all"
        raise UnknownNameError(f"{pattern}: lmms-eval knows no such task, group or tag; {hint}")
    return [entry(manager, name, spec) for name in watch(names, "looking at tasks")]


def spec_of_suffix(kind: str) -> WrapSpec:
    """Return a spec for a suffix such as ``rci3``. Its base means nothing.

    Raises:
        UnknownNameError: it is not a suffix of wrapped names.
    """
    spec = parse(f"x_{kind}")
    if spec is None:
        raise UnknownNameError(
            f"{kind!r} is no way of wrapping; allowed: {', '.join(KINDS[name].written for name in SUFFIXES)}"
        )
    return spec


_IN_TIME = "trci4"
