"""The seam: what stands between the host's evaluator and any adapter.

The host hands all requests of a run to ``response_cache.execute(model, kind, requests)`` where ``--use_cache`` is
given, else to the model. An ``Asker`` takes the place of that cache. So every adapter is reached, and the model itself
is not wrapped: the host sets attributes on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from lmms_patch.errors import OptionError, PatchError
from lmms_patch.harness import compat
from lmms_patch.harness.asking import journal
from lmms_patch.harness.asking.in_portions import InPortions
from lmms_patch.harness.asking.quick import Quick
from lmms_patch.harness.asking.rounds import Place, Ranks, Rounds, described, place_of, together, without_images
from lmms_patch.harness.refuse import fail_at_exit, on_command_line, refuse
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.task import WrappedTask
from lmms_patch.harness.written import PROBE, TOOK, add_errors

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

NOTHING_KEPT = "no answer is kept: the run has no --output_path"
"""Said where there is no journal. The host merges what --use_cache has of a run only when the run is whole."""


def evaluate(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Evaluate as the host does; in a run with wrapped tasks, with an ``Asker`` in place of the response cache.

    The host computes the standard errors of the results in there, and has none for our numbers: ours are put in their
    places.
    """
    results = _evaluate(original, *args, **kwargs)
    # None on all ranks but the first
    if results is not None:
        add_errors(results)
    return results


def _evaluate(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Evaluate as the host does, but ask wrapped tasks in portions."""
    call = inspect.signature(original).bind(*args, **kwargs)
    # the caller may leave out the arguments that are read below
    call.apply_defaults()
    given = call.arguments
    every = _by_name(given["task_dict"])
    tasks = {name: task for name, task in every.items() if _is_ours(task)}
    if not tasks:
        return original(*args, **kwargs)
    cli, cache = given["cli_args"], given["response_cache"]
    _check_output(getattr(cli, "output_path", None))
    for task in tasks.values():
        task.show_frames_of(given["lm"])
    kept = journal.open_for(cli, sorted(tasks), Ranks.here())
    agentic = {name for name, task in every.items() if getattr(task, "OUTPUT_TYPE", None) == "generate_until_agentic"}
    with _one_line_if_it_ends(kept), _one_event_loop():
        in_portions = InPortions(tasks, cache, kept, cli)
        given["response_cache"] = Asker(tasks, agentic, in_portions, cli)
        results = original(*call.args, **call.kwargs)
        if kept is not None:
            kept.done()
    if results is not None:
        results[TOOK], results[PROBE] = in_portions.seconds or None, in_portions.probe
    return results


def _check_output(output: str | None) -> None:
    """Refuse an output folder in which nothing can be written, before anything is asked.

    The host finds out after the last answer, and ends with status 0.

    Raises:
        SystemExit, OptionError: they cannot; one line.
    """
    if not output:
        return
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
        # a full disk still lets a file be made; only writing shows that it is full
        with tempfile.TemporaryFile(dir=output) as file:
            file.write(b" " * 4096)
    except OSError as error:
        refuse(
            OptionError(f"--output_path {output}: nothing can be written there ({error.strerror}); type another folder")
        )


@contextlib.contextmanager
def _one_line_if_it_ends(kept: journal.Journal | None) -> Iterator[None]:
    """Say what is kept where a run ends on Ctrl-C (status 130), or on an exception (2; the host prints the exception, and ends with 0)."""
    told: Callable[[], str] = (lambda: NOTHING_KEPT) if kept is None else kept.told
    try:
        yield
    except KeyboardInterrupt:
        if not on_command_line():
            raise
        print(f"\nlmms-patch: stopped; {told()}", file=sys.stderr)
        raise SystemExit(130) from None
    except PatchError:
        raise
    except Exception as error:
        fail_at_exit(f"the run ended: {one_line(error)}; {told()}")
        raise


@contextlib.contextmanager
def _one_event_loop() -> Iterator[None]:
    """Let what this thread runs by ``asyncio.run`` share an event loop: clients keep connections of the first portion's loop."""
    run, thread = asyncio.run, threading.get_ident()
    loop: asyncio.AbstractEventLoop | None = None

    def in_one_loop(main: Any, **options: Any) -> Any:
        nonlocal loop
        # a notebook has a loop of its own
        if threading.get_ident() != thread or asyncio._get_running_loop() is not None:
            return run(main, **options)
        loop = loop or asyncio.new_event_loop()
        return loop.run_until_complete(main)

    asyncio.run = in_one_loop
    try:
        yield
    finally:
        asyncio.run = run
        if loop is not None:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


def _by_name(tasks: Any) -> dict[str, Any]:
    """Return the tasks of a run by name, out of groups of groups."""
    out: dict[str, Any] = {}
    for name, value in tasks.items():
        out |= _by_name(value) if isinstance(value, dict) else {name: value[-1] if isinstance(value, tuple) else value}
    return out


def _is_ours(task: Any) -> bool:
    """Return whether a task is asked in portions: a wrapped task, except ``_tst``, whose model answers all docs at once."""
    return isinstance(task, WrappedTask) and not task.spec.kind.folds


class Asker:
    """Stands in for the host's response cache: asks wrapped tasks in rounds and portions, and hands on all native requests.

    Args:
        tasks: the wrapped tasks of the run, by name.
        agentic: the names of the native tasks whose requests the host asks one by one, each after the answer before.
        in_portions: asks the model.
        cli: the host's command-line arguments.
    """

    def __init__(self, tasks: Mapping[str, WrappedTask], agentic: set[str], in_portions: InPortions, cli: Any) -> None:
        self._tasks, self._agentic, self._in_portions = tasks, agentic, in_portions
        # the host hands its arguments over before it scores, but some answers are scored while others are asked
        for task in tasks.values():
            task.args = task.args or cli

    def execute(self, model: Any, kind: str, requests: Sequence[Instance]) -> list[Any]:
        """Return the answers to requests, in their order; an empty text stands for what could change no number.

        The host calls this once for each kind of request. Native and wrapped requests are asked apart: adapters take
        the first request's task for a whole batch. Tasks without an image are asked by themselves, and first: where an
        adapter cannot do so, that is known at once, and none of them gets what the adapter left from a request with an
        image. All ranks ask in the same steps, also one that has no doc of a task.
        """
        if requests and all(request.task_name in self._agentic for request in requests):
            return self._in_portions.at_once(model, kind, requests)
        self._in_portions.tell_the_frames()
        # copies of a request, as the host pads with, are asked once
        own = list({place_of(one): one for one in requests if one.task_name in self._tasks}.values())
        others = [one for one in requests if one.task_name not in self._tasks]
        asked = [self._tasks[name] for name in sorted(self._tasks) if self._tasks[name].session.request_type == kind]
        bare = [task for task in asked if not task.spec.kind.needs_image]
        less = [task for task in asked if task not in bare and task.spec.leaves_out]
        told = [task for task in asked if task.spec.kind.captions]
        answers = self._in_rounds(model, kind, bare, own, without_images) if bare else {}
        native = iter(self._in_portions.at_once(model, kind, others))
        rest = [task for task in asked if task not in (*bare, *less, *told)]
        answers |= self._in_rounds(model, kind, rest, own, together)
        for task in told:
            answers |= self._in_rounds(model, kind, [task], own, lambda tasks, own: described(tasks[0], own))
        for task in less:
            answers |= self._in_rounds(model, kind, [task], own, lambda tasks, own: Quick(tasks[0], own).rounds())
        if self._in_portions.probe.failed:
            # those asked before it was known too
            answers = dict.fromkeys(answers, compat.Lost(self._in_portions.probe.why))
        return [answers.get(place_of(one), "") if one.task_name in self._tasks else next(native) for one in requests]

    def _in_rounds(
        self,
        model: Any,
        kind: str,
        tasks: Sequence[WrappedTask],
        requests: Sequence[Instance],
        way: Callable[[Sequence[WrappedTask], Sequence[Instance]], Rounds],
    ) -> dict[Place, Any]:
        """Return the answers to the requests of some tasks, asked in a way."""
        names = {task.spec.name for task in tasks}
        own, ranks = [one for one in requests if one.task_name in names], Ranks.here()
        answers, rounds, title = dict[Place, Any](), way(tasks, own), tasks[0].spec.name if len(tasks) == 1 else ""
        with tqdm(
            desc=f"asking {title}".rstrip() + ("" if ranks.world == 1 else f", of {ranks.world} ranks the first"),
            unit=" answers",
            disable=not ranks.first or not own,
            smoothing=0.1,
            dynamic_ncols=True,
        ) as bar:
            try:
                asked = next(rounds)
                while True:
                    answers |= self._in_portions.ask(model, kind, asked, bar, own)
                    asked = rounds.send(answers)
            except StopIteration:
                return answers
