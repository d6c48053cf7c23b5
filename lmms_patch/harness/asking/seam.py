"""The seam: what stands between the host's evaluator and any adapter.

The host hands all requests of a run to ``response_cache.execute(model, kind, requests)`` where ``--use_cache`` is
given, else to the model. An ``Asker`` takes the place of that cache. So every adapter is reached, and the model itself
is not wrapped: the host sets attributes on it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from lmms_patch.errors import OptionError
from lmms_patch.harness import compat
from lmms_patch.harness.asking import journal, keys, probe
from lmms_patch.harness.asking.complete import Complete
from lmms_patch.harness.asking.portions import Portions
from lmms_patch.harness.asking.ranks import Ranks
from lmms_patch.harness.refuse import on_command_line, refuse
from lmms_patch.harness.video import watch
from lmms_patch.harness.wrap.session import was_shown
from lmms_patch.harness.wrap.task import WrappedTask
from lmms_patch.harness.written import TOOK, add_errors
from lmms_patch.text import log

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

Place = tuple[str, int, int]
"""What identifies a request in this process: task, doc id, number among the doc's requests. Copies of a request, as the host pads with, share it."""


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
    tasks = {name: task for name, task in _by_name(given["task_dict"]).items() if _is_ours(task)}
    if not tasks:
        return original(*args, **kwargs)
    cli, cache = given["cli_args"], given["response_cache"]
    _check_output(getattr(cli, "output_path", None))
    for task in tasks.values():
        task.show_frames_of(given["lm"])
    kept = journal.open_for(cli, sorted(tasks), Ranks.here())
    agentic = {
        name
        for name, task in _by_name(given["task_dict"]).items()
        if getattr(task, "OUTPUT_TYPE", None) == "generate_until_agentic"
    }
    given["response_cache"] = asker = Asker(tasks, agentic, cache, kept, cli)
    with kept or contextlib.nullcontext(), watch.watching() as asker.look_again, _one_line_if_stopped(kept):
        results = original(*call.args, **call.kwargs)
        if kept is not None:
            kept.done()
    if results is not None and asker.seconds:
        results[TOOK] = asker.seconds
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
def _one_line_if_stopped(kept: journal.Journal | None) -> Iterator[None]:
    """End the run on Ctrl-C, on the command line, with status 130 and a line about the kept answers."""
    try:
        yield
    except KeyboardInterrupt:
        if not on_command_line():
            raise
        told = "no answer is kept: the run has no --output_path" if kept is None else kept.told()
        print(f"\nlmms-patch: stopped; {told}", file=sys.stderr)
        raise SystemExit(130) from None


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
        cache: the host's response cache; None where there is none. It is asked portion by portion, and keeps each.
        kept: the journal; None where the run has none.
        cli: the host's command-line arguments.
    """

    def __init__(
        self, tasks: dict[str, WrappedTask], agentic: set[str], cache: Any, kept: journal.Journal | None, cli: Any
    ) -> None:
        self._tasks, self._agentic, self._cache, self._journal = tasks, agentic, cache, kept
        self._cli, self._batch = cli, getattr(cli, "batch_size", None)
        self._model = keys.of_model(cli)
        self._adapter = compat.adapter_of(getattr(cli, "model", None))
        self._digests = {name: keys.Digests(task) for name, task in tasks.items()}
        self._told, self._probed, self._faults = False, False, set[str]()
        self.seconds: float | None = 0.0
        """How long the model took to answer; None where earlier answers stand for some of its own."""
        self.look_again: Callable[[], None] = lambda: None
        """Finds readers of videos in modules that were imported since; called before each portion."""

    def execute(self, model: Any, kind: str, requests: Sequence[Instance]) -> list[Any]:
        """Return the answers to requests, in their order. The host calls this once for each kind of request."""
        if requests and all(request.task_name in self._agentic for request in requests):
            return self._ask(model, kind, requests)
        _tell_the_frames(self._cache, self._tasks)
        answers: list[Any] = [None] * len(requests)
        for ask, places in self._shares(kind, requests):
            # an asker that stops early returns fewer answers
            for place, answer in zip(places, ask(model, kind, [requests[place] for place in places]), strict=False):
                answers[place] = answer
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
        parts += [(self._ask, others), (self._in_portions, places(self._tasks.keys() - {*less, *bare, *told}))]
        parts += [(functools.partial(self._described, self._tasks[name]), places([name])) for name in told]
        return parts + [(functools.partial(self._less, self._tasks[name]), places([name])) for name in less]

    def _ask(self, model: Any, kind: str, requests: Sequence[Instance]) -> list[Any]:
        if not requests:
            return []
        return list(
            getattr(model, kind)(requests) if self._cache is None else self._cache.execute(model, kind, requests)
        )

    def _less(self, task: WrappedTask, model: Any, kind: str, requests: Sequence[Instance]) -> list[Any]:
        """Ask a task no more than necessary (``quick``); an empty text stands for every question left out."""
        ranks = Ranks.here()
        if ranks.world > 1 and not ranks.several:
            log().warning(
                f"{task.spec.name}: the ranks are not connected, so they cannot agree on what to leave out: all is asked"
            )
            return self._in_portions(model, kind, requests)
        # reversed, so that of the copies of a request, as the host pads with, the first stays
        own = {_place(request): request for request in reversed(requests)}
        # the host hands its arguments over before it scores, but answers are scored here already
        if task.args is None:
            task.args = self._cli
        asking, answers = task.quick(list(reversed(own.values())), ranks), dict[Place, Any]()
        with _bar(ranks, 1, 0, task.spec.name) as bar:
            rounds = asking.rounds()
            wanted: Sequence[Instance] | None = next(rounds, None)
            while wanted is not None:
                # most often one that was asked before
                spare = [own[place] for place in [*answers, *own][:1]]
                found = dict(zip(map(_place, wanted), self._in_portions(model, kind, wanted, bar, spare), strict=True))
                answers |= found
                try:
                    wanted = rounds.send(found)
                except StopIteration:
                    wanted = None
                bar.total = max(bar.n, -(-asking.planned // ranks.world))
                bar.set_postfix_str(asking.told)
        task.take(asking.plan)
        return [answers.get(_place(request), "") for request in requests]

    def _described(self, task: WrappedTask, model: Any, kind: str, requests: Sequence[Instance]) -> list[Any]:
        """Ask a task first for descriptions of images, then its questions: with the images, and with the descriptions in their place.

        Where a call for a description failed, its answer stands for the one that could not be asked.
        """
        describing = task.describing({int(request.doc_id) for request in requests})
        spare = requests[:1]
        said = dict(
            zip(
                (one.doc_id for one in describing), self._in_portions(model, kind, describing, None, spare), strict=True
            )
        )
        texts = {doc_id: compat.text_of(answer) for doc_id, answer in said.items()}
        failed = {doc_id for doc_id, text in texts.items() if compat.failure(text, self._adapter)}
        task.describe(requests, {doc_id: text.strip() for doc_id, text in texts.items() if doc_id not in failed})
        # the full image needs no description
        first = [place for place, request in enumerate(requests) if request.metadata["view"] == 0]
        rest = [place for place in range(len(requests)) if place not in set(first)]
        able = [place for place in rest if requests[place].doc_id not in failed]
        answers = {place: said.get(requests[place].doc_id) for place in rest}
        answers |= dict(zip(first, self._in_portions(model, kind, [requests[place] for place in first]), strict=True))
        asked = self._without_images(model, kind, [requests[place] for place in able])
        answers |= dict(zip(able, asked, strict=True))
        return [answers[place] for place in range(len(requests))]

    def _in_portions(
        self,
        model: Any,
        kind: str,
        requests: Sequence[Instance],
        bar: tqdm[Any] | None = None,
        spare: Sequence[Instance] = (),
        *,
        catches: bool = False,
    ) -> list[Any]:
        """Ask for what the journal does not have, portion by portion, and keep each answer.

        All at once where nothing keeps them.

        All ranks ask equally many portions of equal size: a sharded model (FSDP) waits for the others at every call. A
        rank with less to ask repeats its last request, and drops those answers.

        Args:
            model: the host's.
            kind: of the requests.
            requests: those of wrapped tasks.
            bar: the progress line; None: one of its own.
            spare: what to repeat where there is no request at all.
            catches: whether a portion that raises is one of failed calls. Else the exception ends the run.
        """
        first = {_place(request): request for request in reversed(requests)}
        # back in the order in which they were asked
        wanted = dict(reversed(first.items()))
        answers = self._kept(wanted)
        todo = [place for place in wanted if place not in answers]
        ranks = Ranks.here()
        for name, task in self._tasks.items():
            task.note_kept(ranks.sum(sum(place[0] == name for place in answers)))
        total, kept, planned = ranks.most(len(todo)), ranks.sum(len(answers)), ranks.sum(len(wanted))
        if kept and ranks.first and self._journal is not None and not self._told:
            # what else will be asked is not known yet
            told = f"{kept:,} of {planned:,}" if bar is None else f"{self._journal.count():,}"
            log().info(f"{told} answers are kept from an earlier run of this command ({self._journal.folder})")
            self._told = bar is not None
        # without any request there is nothing to repeat
        again = [todo[-1]] if todo else list(wanted)[-1:] or [_place(request) for request in spare]
        wanted |= {_place(request): request for request in spare if _place(request) in again}
        todo += again * (total - len(todo))
        whole = Complete(model, self._adapter, ranks, self._faults, catches=catches)
        keeps = ranks.most(int(self._journal is not None or self._cache is not None))
        portions = Portions(self._batch, getattr(model, "batch_size", None))
        for task in self._tasks.values():
            task.table.files.batch = portions.batch
        with (
            contextlib.nullcontext(bar)
            if bar is not None
            else _bar(ranks, planned // ranks.world, len(answers)) as line
        ):
            line.update(len(answers) if bar is not None else 0)
            at = lost = 0
            while at < total:
                # where nothing keeps answers, portions would only cost time
                size = ranks.same(portions.size(total - at) if keeps else total)
                # only then a reader of videos may have been imported since
                if any(task.table.shelf.shows_clips for task in self._tasks.values()):
                    self.look_again()
                part, began = todo[at : at + size], time.monotonic()
                got = dict(zip(part, self._ask(whole, kind, [wanted[place] for place in part]), strict=True))
                self._settle({place[0] for place in part})
                took = time.monotonic() - began
                portions.took(size, took)
                self.seconds = None if kept or self.seconds is None else self.seconds + took
                fresh = {place: answer for place, answer in got.items() if place not in answers and place in first}
                answers |= fresh
                lost += len(fresh) - self._keep(wanted, fresh)
                at += size
                line.update(len(fresh))
        whole.tell()
        if ranks.sum(lost) and self._journal is not None:
            self._journal.keep()
        if ranks.world == 1 and portions.batch > 1 and kind == "generate_until":
            self._ask_some_alone(
                getattr(whole, kind),
                {place: (wanted[place], answers[place]) for place in dict.fromkeys(todo) if place in answers},
            )
        return [answers.get(_place(request)) for request in requests]

    def _ask_some_alone(
        self, ask: Callable[[Sequence[Instance]], list[Any]], answered: dict[Place, tuple[Instance, Any]]
    ) -> None:
        """Ask some requests again, each in a call alone, and warn where batches have changed answers.

        A run does this once. It asks the model and not the response cache, which holds the answers from the batches.

        Args:
            ask: calls the model.
            answered: requests with the answers that came in batches.
        """
        counts = {name: task.spec.options.probe for name, task in self._tasks.items() if task.spec.kind.needs_image}
        usable = (
            place
            for place, (_, answer) in answered.items()
            if counts.get(place[0]) and not compat.failure(compat.text_of(answer), self._adapter)
        )
        some = {place: answered[place] for place in usable}
        if some and not self._probed:
            self._probed = True
            if told := probe.differences(ask, some, max(counts.values())):
                log().warning(f"{told}; no number of this run can be trusted: run it with --batch_size 1")

    def _without_images(self, model: Any, kind: str, requests: Sequence[Instance]) -> list[Any]:
        """Ask requests without an image.

        Where an adapter raises on them, these calls failed, and it goes on with the requests that have one.
        """
        answers, ranks = self._in_portions(model, kind, requests, catches=True), Ranks.here()
        by_task: dict[str, list[str]] = {}
        for request, answer in zip(requests, answers, strict=True):
            by_task.setdefault(request.task_name, []).append(compat.failure(compat.text_of(answer), self._adapter))
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

    def _settle(self, names: Set[str]) -> None:
        """Compare what the model read of clips with what was shown, and remove the written clips, for a portion's tasks."""
        for task in (self._tasks[name] for name in names & self._tasks.keys()):
            if task.table.shelf.shows_clips:
                task.table.files.forget()
            task.tell_frames_read()
        watch.forget()

    # --- the journal ------------------------------------------------------------------------------

    def _kept(self, wanted: dict[Place, Instance]) -> dict[Place, Any]:
        """Return the answers kept by earlier runs of this command."""
        if self._journal is None or not self._journal.has_earlier:
            return {}
        by_key = {self._key(request): place for place, request in wanted.items()}
        return {by_key[key]: answer for key, answer in self._journal.find([key for key in by_key if key]).items()}

    def _keep(self, wanted: dict[Place, Instance], fresh: dict[Place, Any]) -> int:
        """Write new answers down, except for failed calls and for images not shown.

        Returns:
            How many are answers, written or not.
        """
        good = {
            place: answer
            for place, answer in fresh.items()
            if not compat.failure(compat.text_of(answer), self._adapter) and was_shown(place[0], wanted[place].doc_id)
        }
        if self._journal is not None:
            self._journal.write((key, answer) for place, answer in good.items() if (key := self._key(wanted[place])))
        return len(good)

    def _key(self, request: Instance) -> bytes:
        return keys.of_request(self._model, request, self._digests[request.task_name])


def _tell_the_frames(cache: Any, tasks: Mapping[str, WrappedTask]) -> None:
    """Make the host's cache go by the frames of the clips, in tasks with clips.

    Why here: the host makes its keys from the tasks' settings before the model has said which frames it takes, and
    before a video is decoded.
    """
    known: dict[str, str] = getattr(cache, compat.SETTINGS_OF_TASKS, {})
    for name, task in tasks.items():
        frames = f" frames {task.table.shelf.sampling}"
        if task.table.shelf.shows_clips and not known.get(name, "").endswith(frames):
            known[name] = known.get(name, "") + frames


def _place(request: Instance) -> Place:
    return request.task_name, int(request.doc_id), request.idx


def _bar(ranks: Ranks, planned: int, kept: int, task: str = "") -> tqdm[Any]:
    """Return the progress line.

    It starts at the number of answers that an earlier run saved, and shows the time left.
    """
    told = f"asking {task}".rstrip() + ("" if ranks.world == 1 else f", of {ranks.world} ranks the first")
    return tqdm(
        total=planned,
        initial=kept,
        desc=told,
        unit=" answers",
        disable=not ranks.first or not planned,
        smoothing=0.1,
        dynamic_ncols=True,
    )
