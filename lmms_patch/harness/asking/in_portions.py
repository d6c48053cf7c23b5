"""Asks the requests of wrapped tasks in portions, and keeps each answer as soon as its portion is answered."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from lmms_patch.harness import compat
from lmms_patch.harness.asking import journal, keys, probe
from lmms_patch.harness.asking.complete import Complete
from lmms_patch.harness.asking.portions import Portions
from lmms_patch.harness.asking.ranks import Ranks
from lmms_patch.harness.refuse import fail_at_exit
from lmms_patch.harness.video import short
from lmms_patch.harness.wrap.session import was_shown
from lmms_patch.runs.details import Probe
from lmms_patch.text import log

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

    from lmms_patch.harness.wrap.golds import Golds
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
        self._told, self._faults = False, set[str]()
        self._texts: dict[str, set[str]] = {}
        self._probed = False
        self.probe = Probe(why="nothing was asked")
        """Whether batches garble answers. Where they do, every call of the run counts as failed."""
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
        if self.probe.failed:
            return [compat.Lost(self.probe.why)] * len(requests)
        first = {place_of(request): request for request in reversed(requests)}
        # back in the order in which they were asked
        wanted = dict(reversed(first.items()))
        answers = self._kept(wanted)
        todo = [place for place in wanted if place not in answers]
        ranks = Ranks.here()
        for name, task in self._tasks.items():
            task.session.known.state.kept += ranks.sum(sum(place[0] == name for place in answers))
        total, kept, planned = ranks.most(len(todo)), ranks.sum(len(answers)), ranks.sum(len(wanted))
        self._tell_kept(kept, planned, ranks, whole=bar is None)
        # without any request there is nothing to repeat
        again = [todo[-1]] if todo else list(wanted)[-1:] or [place_of(request) for request in spare]
        wanted |= {place_of(request): request for request in spare if place_of(request) in again}
        todo += again * (total - len(todo))
        whole = Complete(model, self._adapter, ranks, self._faults, self._knows, catches=catches)
        keeps = ranks.most(int(self._journal is not None or self._cache is not None))
        portions = Portions(self._batch, getattr(model, "batch_size", None))
        for task in self._tasks.values():
            task.table.cutter.batch = portions.batch
        with (
            contextlib.nullcontext(bar)
            if bar is not None
            else progress(ranks, planned // ranks.world, len(answers)) as line
        ):
            line.update(len(answers) if bar is not None else 0)
            at = lost = 0
            while at < total and not self.probe.failed:
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
                if at >= probe.ENOUGH:
                    self._probe(whole, kind, wanted, answers, portions.batch, ranks)
        self._probe(whole, kind, wanted, answers, portions.batch, ranks)
        if self.probe.failed:
            return [compat.Lost(self.probe.why)] * len(requests)
        if ranks.sum(lost) and self._journal is not None:
            self._journal.keep()
        return [answers.get(place_of(request)) for request in requests]

    def _knows(self, request: Instance, text: str) -> bool:
        """Return whether a text is the gold or an option of a doc of a request's task, or stands in a prompt."""
        name, said = request.task_name, text.strip().casefold()
        if name not in self._texts:
            self._texts[name] = _texts_of(self._tasks[name].session.golds)
        return said in self._texts[name] or said in str(request.arguments[0]).casefold()

    def _tell_kept(self, kept: int, planned: int, ranks: Ranks, *, whole: bool) -> None:
        """Say once how many answers are kept from earlier.

        Args:
            kept: how many of those that are asked for now.
            planned: how many are asked for now.
            ranks: this process, and how many share the run.
            whole: whether nothing else will be asked.
        """
        if not kept or not ranks.first or self._journal is None or self._told:
            return
        told = f"{kept:,} of {planned:,}" if whole else f"{self._journal.count():,}"
        log().info(f"{told} answers are kept from an earlier run of this command ({self._journal.folder})")
        self._told = not whole

    def _probe(
        self,
        model: Any,
        kind: str,
        wanted: Mapping[Place, Instance],
        answers: Mapping[Place, Any],
        batch: int,
        ranks: Ranks,
    ) -> None:
        """Ask some requests again, each in a call alone; where batches garble answers, say so, and forget what is kept.

        A run does this once. It asks the model and not the response cache, which holds the answers from the batches.
        """
        if self._probed:
            return
        counts = {name: task.spec.options.probe for name, task in self._tasks.items() if task.spec.kind.needs_image}
        most = ranks.most(batch)
        kept = ranks.sum(int(self._journal is not None and self._journal.of_batches))
        reasons = {
            "no task shows images": not counts,
            # what an earlier process kept may have come in batches
            "answers come one by one": most == 1 and not kept,
            "log-likelihoods are not compared": kind != "generate_until",
            "the option 'probe' is 0": not max(counts.values(), default=0),
        }
        if why := next((why for why, holds in reasons.items() if holds), ""):
            self.probe = Probe(why=why)
            return
        given = [(request, answers[place]) for place, request in wanted.items() if place in answers]
        every = probe.answered(self._tasks, given, most)
        some = [one for one in every if counts.get(one.request.task_name) and not self.failure(one.answer)]
        if not ranks.most(len(some)):
            self.probe = Probe(why="no answer can be compared")
            return
        self._probed = True
        self.probe = probe.verdict(getattr(model, kind), some, max(counts.values()), ranks)
        if self.probe.failed:
            if self._journal is not None:
                self._journal.forget()
            if ranks.first:
                cached = "" if self._cache is None else ", and another --use_cache"
                fail_at_exit(f"{self.probe.why}{cached}; this run has no numbers, and asks no further")

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
                task.table.cutter.forget()

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


def _texts_of(golds: Golds) -> set[str]:
    """Return the golds and options of all docs."""
    # they are read with the plan
    known = [doc.asked for doc in golds.docs] if golds.plan is not None else []
    targets = [one.target if isinstance(one.target, (list, tuple)) else [one.target] for one in known]
    return {
        str(text).strip().casefold()
        for one, of_doc in zip(known, targets, strict=True)
        for text in (*one.choices, *of_doc)
    }


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
