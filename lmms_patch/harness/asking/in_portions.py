"""Asks the requests of wrapped tasks in portions, and keeps each answer as soon as its portion is answered."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from lmms_patch.harness import compat
from lmms_patch.harness.asking import journal, keys, probe
from lmms_patch.harness.asking.complete import Complete
from lmms_patch.harness.asking.portions import Portions
from lmms_patch.harness.asking.ranks import Ranks
from lmms_patch.harness.video import short
from lmms_patch.harness.wrap.session import was_shown
from lmms_patch.text import log

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

    from lmms_patch.harness.wrap.task import WrappedTask

_LEAST_SIDE = 28
"""The shortest side in pixels of an image that Qwen's models take, and with them most that have a limit."""
Place = tuple[str, int, int]
"""What identifies a request in this process: task, doc id, number among the doc's requests. Copies of a request, as the host pads with, share it."""


class InPortions:
    """Asks a model portion by portion for what earlier runs of the command have not answered.

    Args:
        tasks: the wrapped tasks of the run, by name.
        cache: the host's response cache; None where there is none. It is asked portion by portion, and keeps each.
        kept: the journal; None where the run has none.
        cli: the host's command-line arguments.
    """

    def __init__(self, tasks: Mapping[str, WrappedTask], cache: Any, kept: journal.Journal | None, cli: Any) -> None:
        self._tasks, self._cache, self._journal = tasks, cache, kept
        self._batch = getattr(cli, "batch_size", None)
        self._model = keys.of_model(cli)
        self._adapter = compat.adapter_of(getattr(cli, "model", None))
        self._digests = {name: keys.Digests(task) for name, task in tasks.items()}
        self._told, self._probed, self._faults = False, False, set[str]()
        self.seconds: float | None = 0.0
        """How long the model took to answer; None where earlier answers stand for some of its own."""

    def tell_the_frames(self) -> None:
        """Make the host's cache go by the frames of the clips, in tasks with clips.

        Why now: the host makes its keys from the tasks' settings before the model has said which frames it takes, and
        before a video is decoded.
        """
        known: dict[str, str] = getattr(self._cache, compat.SETTINGS_OF_TASKS, {})
        for name, task in self._tasks.items():
            frames = f" frames {task.table.shelf.sampling}"
            if task.table.shelf.shows_clips and not known.get(name, "").endswith(frames):
                known[name] = known.get(name, "") + frames

    def at_once(self, model: Any, kind: str, requests: Sequence[Instance]) -> list[Any]:
        """Ask a model for the answers to requests, through the host's cache where there is one."""
        if not requests:
            return []
        return list(
            getattr(model, kind)(requests) if self._cache is None else self._cache.execute(model, kind, requests)
        )

    def failure(self, answer: Any) -> str:
        """Say why the call behind an answer failed; "" where the call went well."""
        return compat.failure(compat.text_of(answer), self._adapter)

    def ask(
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
        first = {place_of(request): request for request in reversed(requests)}
        # back in the order in which they were asked
        wanted = dict(reversed(first.items()))
        answers = self._kept(wanted)
        todo = [place for place in wanted if place not in answers]
        ranks = Ranks.here()
        for name, task in self._tasks.items():
            task.session.state.keep(ranks.sum(sum(place[0] == name for place in answers)))
        total, kept, planned = ranks.most(len(todo)), ranks.sum(len(answers)), ranks.sum(len(wanted))
        if kept and ranks.first and self._journal is not None and not self._told:
            # what else will be asked is not known yet
            told = f"{kept:,} of {planned:,}" if bar is None else f"{self._journal.count():,}"
            log().info(f"{told} answers are kept from an earlier run of this command ({self._journal.folder})")
            self._told = bar is not None
        # without any request there is nothing to repeat
        again = [todo[-1]] if todo else list(wanted)[-1:] or [place_of(request) for request in spare]
        wanted |= {place_of(request): request for request in spare if place_of(request) in again}
        todo += again * (total - len(todo))
        whole = Complete(model, self._adapter, ranks, self._faults, catches=catches)
        keeps = ranks.most(int(self._journal is not None or self._cache is not None))
        portions = Portions(self._batch, getattr(model, "batch_size", None))
        for task in self._tasks.values():
            task.table.files.batch = portions.batch
        with (
            contextlib.nullcontext(bar)
            if bar is not None
            else progress(ranks, planned // ranks.world, len(answers)) as line
        ):
            line.update(len(answers) if bar is not None else 0)
            at = lost = 0
            while at < total:
                # where nothing keeps answers, portions would only cost time; each rank measures another speed
                size = ranks.told(portions.size(total - at) if keeps else total)
                # before each portion, since a reader may have been imported in the last
                if any(task.table.shelf.shows_clips for task in self._tasks.values()):
                    short.read_whole()
                part, began = todo[at : at + size], time.monotonic()
                try:
                    got = dict(zip(part, self.at_once(whole, kind, [wanted[place] for place in part]), strict=True))
                except Exception:
                    self._tell_of_small_cells([wanted[place] for place in part])
                    raise
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
        return [answers.get(place_of(request)) for request in requests]

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
        usable = (place for place, (_, answer) in answered.items() if counts.get(place[0]) and not self.failure(answer))
        some = {place: answered[place] for place in usable}
        if some and not self._probed:
            self._probed = True
            if told := probe.differences(ask, some, max(counts.values())):
                log().warning(f"{told}; no number of this run can be trusted: run it with --batch_size 1")

    def _tell_of_small_cells(self, requests: Sequence[Instance]) -> None:
        """Say what to type where a call failed with cells among its images that are too small for many models."""
        sides: dict[str, int] = {}
        for request in requests:
            side = self._tasks[request.task_name].table.shortest_side(request.doc_id, request.metadata["view"])
            if side is not None:
                sides[request.task_name] = min(side, sides.get(request.task_name, side))
        for name, side in sides.items():
            if max(side, self._tasks[name].spec.options.min_cell) < _LEAST_SIDE:
                log().error(
                    f"{name}: the model's adapter failed, and some of the cells shown have a side of {side} pixels: many models take none below "
                    f"{_LEAST_SIDE}; to enlarge such cells write in a task file: min_cell: {_LEAST_SIDE} (docs/options.md)"
                )

    def _settle(self, names: Set[str]) -> None:
        """Remove the clips that were written for a portion's tasks."""
        for task in (self._tasks[name] for name in names & self._tasks.keys()):
            if task.table.shelf.shows_clips:
                task.table.files.forget()

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
            if not self.failure(answer) and was_shown(place[0], wanted[place].doc_id)
        }
        if self._journal is not None:
            self._journal.write((key, answer) for place, answer in good.items() if (key := self._key(wanted[place])))
        return len(good)

    def _key(self, request: Instance) -> bytes:
        return keys.of_request(self._model, request, self._digests[request.task_name])


def place_of(request: Instance) -> Place:
    """Return what identifies a request in this process."""
    return request.task_name, int(request.doc_id), request.idx


def progress(ranks: Ranks, planned: int, kept: int, task: str = "") -> tqdm[Any]:
    """Return the progress line of asking.

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
