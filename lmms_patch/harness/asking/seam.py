"""The seam: what stands between the host's evaluator and any adapter.

The host hands all requests of a run to ``response_cache.execute(model, kind, requests)`` where ``--use_cache`` is
given, else to the model. An ``Asker`` takes the place of that cache. So every adapter is reached, and the model itself
is not wrapped: the host sets attributes on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_patch.errors import OptionError, PatchError
from lmms_patch.harness import compat
from lmms_patch.harness.asking import journal
from lmms_patch.harness.asking.in_portions import InPortions, Place, place_of, progress
from lmms_patch.harness.asking.ranks import Ranks
from lmms_patch.harness.refuse import fail_at_exit, on_command_line, refuse
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.task import WrappedTask
from lmms_patch.harness.written import PROBE, TOOK, add_errors
from lmms_patch.text import log

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

    from lmms_patch.harness.asking.steady import Again

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
    """Stands in for the host's response cache: asks wrapped tasks in portions, and hands on all native requests.

    Args:
        tasks: the wrapped tasks of the run, by name.
        agentic: the names of the native tasks whose requests the host asks one by one, each after the answer before.
        in_portions: asks the model.
        cli: the host's command-line arguments.
    """

    def __init__(self, tasks: Mapping[str, WrappedTask], agentic: set[str], in_portions: InPortions, cli: Any) -> None:
        self._tasks, self._agentic, self._in_portions, self._cli = tasks, agentic, in_portions, cli

    def execute(self, model: Any, kind: str, requests: Sequence[Instance]) -> list[Any]:
        """Return the answers to requests, in their order. The host calls this once for each kind of request."""
        if requests and all(request.task_name in self._agentic for request in requests):
            return self._in_portions.at_once(model, kind, requests)
        self._in_portions.tell_the_frames()
        answers: list[Any] = [None] * len(requests)
        for ask, places in self._shares(kind, requests):
            # an asker that stops early returns fewer answers
            for place, answer in zip(places, ask(model, kind, [requests[place] for place in places]), strict=False):
                answers[place] = answer
        if self._in_portions.probe.failed:
            # those asked before it was known too
            lost = compat.Lost(self._in_portions.probe.why)
            answers = [
                lost if one.task_name in self._tasks else said for one, said in zip(requests, answers, strict=True)
            ]
        return answers

    def _shares(self, kind: str, requests: Sequence[Instance]) -> list[tuple[Callable[..., list[Any]], list[int]]]:
        """Split native and wrapped requests by their places: adapters take the first request's task for a whole batch.

        Tasks without an image are asked by themselves, and first: where an adapter cannot do so, that is known at once,
        and none of them gets what the adapter left from a request with an image. Tasks that leave views out are asked
        one after the other. All ranks ask in the same steps, also one that has no doc of such a task.
        """
        asked = [name for name in sorted(self._tasks) if self._tasks[name].session.request_type == kind]
        less = [name for name in asked if self._tasks[name].spec.leaves_out]
        bare = [name for name in asked if not self._tasks[name].spec.kind.needs_image]

        def places(names: Collection[str]) -> list[int]:
            return [place for place, request in enumerate(requests) if request.task_name in names]

        told = [name for name in asked if self._tasks[name].spec.kind.captions]
        others = [place for place, request in enumerate(requests) if request.task_name not in self._tasks]
        parts: list[tuple[Callable[..., list[Any]], list[int]]] = [(self._without_images, places(bare))] if bare else []
        parts += [
            (self._in_portions.at_once, others),
            (self._and_again, places(self._tasks.keys() - {*less, *bare, *told})),
        ]
        parts += [(functools.partial(self._described, self._tasks[name]), places([name])) for name in told]
        return parts + [(functools.partial(self._less, self._tasks[name]), places([name])) for name in less]

    def _and_again(self, model: Any, kind: str, requests: Sequence[Instance]) -> list[Any]:
        """Ask tasks, and then some of their docs again (``steady``); an empty text stands for what could change no number."""
        own = {place_of(request): request for request in reversed(requests)}
        again = {
            name: task.again([one for one in reversed(own.values()) if one.task_name == name])
            for name, task in sorted(self._tasks.items())
            if task.session.asks_again and task.session.times and kind == task.session.request_type
        }
        if not again:
            return self._in_portions.ask(model, kind, requests)
        answers: dict[Place, Any] = {}
        with progress(Ranks.here(), len(own), 0) as bar:
            self._rounds(model, kind, again, own, answers, bar)
        return [answers.get(place_of(request), "") for request in requests]

    def _rounds(
        self,
        model: Any,
        kind: str,
        again: Mapping[str, Again],
        own: Mapping[Place, Instance],
        answers: dict[Place, Any],
        bar: Any,
        first: int = 0,
    ) -> None:
        """Ask the rounds of docs that are asked again, and put the answers to the others; round 0 is of everything asked once.

        Args:
            model: the adapter.
            kind: of the requests.
            again: by task.
            own: this rank's requests.
            answers: those so far.
            bar: shows progress.
            first: the first round.
        """
        # every rank asks as often, also one without such docs
        for time in range(first, max(self._tasks[name].session.times for name in again)):
            wanted = [one for name in again for one in again[name].wanted(time)]
            wanted += [one for one in reversed([*own.values()]) if not time and one.task_name not in again]
            bar.total = bar.n + len(wanted)
            spare = [own[place] for place in [*answers, *own][:1]]
            found = self._in_portions.ask(model, kind, wanted, bar, spare)
            answers |= zip(map(place_of, wanted), found, strict=True)
            for name, asking in again.items():
                # the host hands its arguments over before it scores, but answers are scored here already
                if self._tasks[name].args is None:
                    self._tasks[name].args = self._cli
                asking.take([one for one in wanted if one.task_name == name], answers)
        for name, asking in again.items():
            task = self._tasks[name]
            task.take(asking.plan(task.session.known.state.plan))

    def _less(self, task: WrappedTask, model: Any, kind: str, requests: Sequence[Instance]) -> list[Any]:
        """Ask a task no more than necessary (``quick``); an empty text stands for every question left out."""
        ranks = Ranks.here()
        if ranks.world > 1 and not ranks.several:
            log().warning(
                f"{task.spec.name}: the ranks are not connected, so they cannot agree on what to leave out: all is asked"
            )
            return self._in_portions.ask(model, kind, requests)
        # reversed, so that of the copies of a request, as the host pads with, the first stays
        own = {place_of(request): request for request in reversed(requests)}
        # the host hands its arguments over before it scores, but answers are scored here already
        if task.args is None:
            task.args = self._cli
        asking, answers = task.quick(list(reversed(own.values())), ranks), dict[Place, Any]()
        with progress(ranks, 1, 0, task.spec.name) as bar:
            rounds = asking.rounds()
            wanted: Sequence[Instance] | None = next(rounds, None)
            while wanted is not None:
                # most often one that was asked before
                spare = [own[place] for place in [*answers, *own][:1]]
                found = dict(
                    zip(map(place_of, wanted), self._in_portions.ask(model, kind, wanted, bar, spare), strict=True)
                )
                answers |= found
                try:
                    wanted = rounds.send(found)
                except StopIteration:
                    wanted = None
                bar.total = max(bar.n, -(-asking.planned // ranks.world))
                bar.set_postfix_str(asking.told)
            if not (task.session.asks_again and task.session.times):
                task.take(asking.plan)
            else:
                task.session.known.state.note(plan=asking.plan)
                again = task.again([*own.values()])
                again.take([one for one in own.values() if place_of(one) in answers], answers)
                self._rounds(model, kind, {task.spec.name: again}, own, answers, bar, first=1)
        return [answers.get(place_of(request), "") for request in requests]

    def _described(self, task: WrappedTask, model: Any, kind: str, requests: Sequence[Instance]) -> list[Any]:
        """Ask a task first for descriptions of images, then its questions: with the images, and with the descriptions in their place.

        Where a call for a description failed, its answer stands for the one that could not be asked.
        """
        describing = [
            one
            for one in task.describing
            if one.doc_id in {int(request.doc_id) for request in requests} - task.table.captions.keys()
        ]
        spare = requests[:1]
        said = dict(
            zip(
                (one.doc_id for one in describing),
                self._in_portions.ask(model, kind, describing, None, spare),
                strict=True,
            )
        )
        failed = {doc_id for doc_id, answer in said.items() if self._in_portions.failure(answer)}
        texts = {doc_id: compat.text_of(answer).strip() for doc_id, answer in said.items() if doc_id not in failed}
        task.requests.put(requests, texts)
        # the full image needs no description
        first = [place for place, request in enumerate(requests) if request.metadata["view"] == 0]
        rest = [place for place in range(len(requests)) if place not in set(first)]
        able = [place for place in rest if requests[place].doc_id not in failed]
        answers = {place: said.get(requests[place].doc_id) for place in rest}
        answers |= dict(
            zip(first, self._in_portions.ask(model, kind, [requests[place] for place in first]), strict=True)
        )
        asked = self._without_images(model, kind, [requests[place] for place in able])
        answers |= dict(zip(able, asked, strict=True))
        return [answers[place] for place in range(len(requests))]

    def _without_images(self, model: Any, kind: str, requests: Sequence[Instance]) -> list[Any]:
        """Ask requests without an image.

        Where an adapter raises on them, these calls failed, and it goes on with the requests that have one.
        """
        answers, ranks = self._in_portions.ask(model, kind, requests, catches=True), Ranks.here()
        by_task: dict[str, list[str]] = {}
        for request, answer in zip(requests, answers, strict=True):
            by_task.setdefault(request.task_name, []).append(self._in_portions.failure(answer))
        of_ranks = ranks.all({name: (all(failures), failures[0]) for name, failures in by_task.items()})
        for name in sorted({name for of_rank in of_ranks for name in of_rank}) if ranks.first else ():
            every, why = zip(*(of_rank[name] for of_rank in of_ranks if name in of_rank), strict=True)
            if all(every):
                instead = " or ".join(f"{self._tasks[name].spec.base}_{kind}" for kind in ("blank", "swap"))
                log().warning(
                    f"{name}: every call without an image fails ({why[0]}), so this adapter cannot be asked so; type --tasks {instead}, "
                    "a grey image or that of another doc"
                )
        return answers
