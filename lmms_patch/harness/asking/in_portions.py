"""Asks the requests of wrapped tasks in portions, and keeps each answer as soon as its portion is answered."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from lmms_patch.harness import compat
from lmms_patch.harness.asking import journal, probe
from lmms_patch.harness.asking.complete import Complete
from lmms_patch.harness.asking.rounds import Place, Ranks, Round, place_of
from lmms_patch.harness.refuse import fail_at_exit
from lmms_patch.harness.video import cache
from lmms_patch.harness.wrap.session import was_shown
from lmms_patch.runs.details import Probe
from lmms_patch.text import log

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

    from lmms_patch.harness.wrap.known import Golds
    from lmms_patch.harness.wrap.task import WrappedTask

_LEAST_SIDE = 28
"""The shortest side in pixels of an image that Qwen's models take, and with them most that have a limit."""


class InPortions:
    """Asks a model portion by portion for what earlier runs of the command have not answered.

    Attributes:
        probe: whether batches garble answers. Where they do, every call of the run counts as failed.
        seconds: how long the model took to answer; None where earlier answers stand for some of its own.

    Args:
        tasks: the wrapped tasks of the run, by name.
        cache: the host's response cache; None where there is none. It is asked portion by portion, and keeps each.
        kept: the journal; None where the run has none.
        cli: the host's command-line arguments.
    """

    def __init__(self, tasks: Mapping[str, WrappedTask], cache: Any, kept: journal.Journal | None, cli: Any) -> None:
        self._tasks, self._cache, self._journal = tasks, cache, kept
        self._batch, self._model = getattr(cli, "batch_size", None), journal.of_model(cli)
        self._adapter = compat.adapter_of(getattr(cli, "model", None))
        self._digests = {name: journal.Digests(task) for name, task in tasks.items()}
        self._faults, self._texts, self._probed = set[str](), dict[str, set[str]](), False
        self.probe = Probe(why="nothing was asked")
        self.seconds: float | None = 0.0

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
        cached = self._cache is not None
        return list(self._cache.execute(model, kind, requests) if cached else getattr(model, kind)(requests))

    def ask(
        self, model: Any, kind: str, asked: Round, bar: tqdm[Any], spare: Sequence[Instance] = ()
    ) -> dict[Place, Any]:
        """Ask for what the journal does not have, portion by portion, and keep each answer; all at once where nothing keeps them.

        All ranks ask equally many portions of equal size: a sharded model (FSDP) waits for the others at every call. A
        rank with less to ask repeats a request, and drops those answers.

        Args:
            model: the host's.
            kind: of the requests.
            asked: requests of wrapped tasks.
            bar: the progress line.
            spare: what to repeat where there is no request at all.
        """
        wanted, ranks = {place_of(one): one for one in asked.requests}, Ranks.here()
        answers = {} if self.probe.failed else self._kept(wanted)
        todo = [place for place in wanted if place not in answers]
        for name, task in self._tasks.items():
            task.session.known.state.kept += ranks.sum(sum(place[0] == name for place in answers))
        total, kept = ranks.most(len(todo)), ranks.sum(len(answers))
        again = [*spare[:1], *wanted.values()][-1:]
        todo += [place_of(one) for one in again] * (total - len(todo))
        every = {**{place_of(one): one for one in again}, **wanted}
        whole = Complete(model, self._adapter, ranks, self._faults, self._knows, catches=asked.catches)
        keeps = ranks.most(int(self._journal is not None or self._cache is not None))
        portions = Portions(self._batch, getattr(model, "batch_size", None))
        for task in self._tasks.values():
            task.table.cutter.batch = portions.batch
        bar.total = max(bar.n + len(wanted), -(-(asked.planned or 0) // ranks.world))
        bar.set_postfix_str(asked.told)
        bar.update(len(answers))
        at = lost = 0
        while at < total and not self.probe.failed:
            # where nothing keeps answers, portions would only cost time; each rank measures another speed
            size = ranks.told(portions.size(total - at) if keeps else total)
            # before each portion, since a reader may have been imported in the last
            if any(task.table.shelf.shows_clips for task in self._tasks.values()):
                cache.read_whole()
            part, began = todo[at : at + size], time.monotonic()
            try:
                got = dict(zip(part, self.at_once(whole, kind, [every[place] for place in part]), strict=True))
            except Exception:
                self._tell_of_small_cells([every[place] for place in part])
                raise
            # the clips that were written for the portion
            for name in {place[0] for place in part} & self._tasks.keys():
                if self._tasks[name].table.shelf.shows_clips:
                    self._tasks[name].table.cutter.forget()
            took = time.monotonic() - began
            portions.took(size, took)
            self.seconds = None if kept or self.seconds is None else self.seconds + took
            fresh = {place: answer for place, answer in got.items() if place not in answers and place in wanted}
            answers |= fresh
            lost += len(fresh) - self._keep(wanted, fresh)
            at += size
            bar.update(len(fresh))
            if at >= probe.ENOUGH:
                self._probe(whole, kind, wanted, answers, ranks.most(portions.batch), ranks)
        # also where all answers are kept from earlier: they may have come in batches
        self._probe(whole, kind, wanted, answers, ranks.most(portions.batch), ranks)
        if self.probe.failed:
            return dict.fromkeys(wanted, compat.Lost(self.probe.why))
        if ranks.sum(lost) and self._journal is not None:
            self._journal.keep()
        return answers

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
        kept = ranks.sum(int(self._journal is not None and self._journal.of_batches))
        reasons = {
            "no task shows images": not counts,
            # what an earlier process kept may have come in batches
            "answers come one by one": batch == 1 and not kept,
            "log-likelihoods are not compared": kind != "generate_until",
            "the option 'probe' is 0": not max(counts.values(), default=0),
        }
        why, some = next((why for why, holds in reasons.items() if holds), ""), list[probe.Answered]()
        if not why:
            given = [(request, answers[place]) for place, request in wanted.items() if place in answers]
            every = probe.answered(self._tasks, given, batch)
            some = [one for one in every if counts.get(one.request.task_name) and not self._failure(one.answer)]
            why = "" if ranks.most(len(some)) else "no answer can be compared"
        if why:
            self.probe = Probe(why=why)
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
        """Say what to type where a call failed with a cell among its images that is too small for many models."""
        for one in requests:
            task = self._tasks[one.task_name]
            side = task.table.shortest_side(one.doc_id, one.metadata["view"])
            if side is not None and max(side, task.spec.options.min_cell) < _LEAST_SIDE:
                log().error(
                    f"{one.task_name}: the model's adapter failed, and some of the cells shown have a side of {side} pixels: many models take none "
                    f"below {_LEAST_SIDE}; to enlarge such cells write in a task file: min_cell: {_LEAST_SIDE} (docs/options.md)"
                )
                return

    # --- what is kept -----------------------------------------------------------------------------

    def _kept(self, wanted: Mapping[Place, Instance]) -> dict[Place, Any]:
        """Return the answers kept by earlier runs of this command."""
        if self._journal is None or not self._journal.count():
            return {}
        by_key = {self._key(request): place for place, request in wanted.items()}
        return {by_key[key]: answer for key, answer in self._journal.find([key for key in by_key if key]).items()}

    def _keep(self, wanted: Mapping[Place, Instance], fresh: Mapping[Place, Any]) -> int:
        """Write new answers down, except for failed calls and for images not shown.

        Returns:
            How many are answers, written or not.
        """
        good = {
            place: answer
            for place, answer in fresh.items()
            if not self._failure(answer) and was_shown(place[0], wanted[place].doc_id)
        }
        if self._journal is not None:
            self._journal.write((key, answer) for place, answer in good.items() if (key := self._key(wanted[place])))
        return len(good)

    def _failure(self, answer: Any) -> str:
        return compat.failure(compat.text_of(answer), self._adapter)

    def _key(self, request: Instance) -> bytes:
        return journal.of_request(self._model, request, self._digests[request.task_name])

    def _knows(self, request: Instance, text: str) -> bool:
        """Return whether a text is the gold or an option of a doc of a request's task, or stands in a prompt."""
        name, said = request.task_name, text.strip().casefold()
        if name not in self._texts:
            self._texts[name] = _texts_of(self._tasks[name].session.golds)
        return said in self._texts[name] or said in str(request.arguments[0]).casefold()


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


# --- how many requests are asked at once ----------------------------------------------------------

SECONDS = 60.0
"""How long one portion should take; 30 s to 2 minutes are fine.

Why not shorter: at the end of each portion a server's queue runs empty, and adapters that sort requests by length have fewer to sort.
"""
BATCHES = 8
"""The smallest portion, in batches."""
FIRST = 64
"""The least number of requests in the first portion.

Why not ``BATCHES`` alone: threaded adapters give batch size 1, but ask many requests at once.
"""
GROWTH = 4
"""The largest ratio of a portion to the one before. Why a limit: the first calls load weights and compile, so their speed says little."""


class Portions:
    """The sizes of a run's portions, following the measured speed.

    Attributes:
        batch: the largest batch size that was given.

    Args:
        batch_sizes: the batch sizes that the command line and the adapter give. The largest number counts; text such as
            ``auto`` is ignored.
    """

    def __init__(self, *batch_sizes: Any) -> None:
        known = [int(size) for size in batch_sizes if str(size).isdecimal()]
        self.batch = max(1, *known) if known else 1
        self._least = BATCHES * self.batch
        self._next = max(FIRST, self._least)

    def size(self, left: int) -> int:
        """Return how many requests to ask next: whole batches, or all if less than half a portion would remain.

        Args:
            left: how many requests are left.

        >>> portions = Portions(16)
        >>> portions.size(1000), portions.size(190), portions.size(5)
        (128, 190, 5)
        """
        # a batch that is not full takes about as long as a full one
        size = -(-self._next // self.batch) * self.batch
        return left if left < 1.5 * size else size

    def took(self, size: int, seconds: float) -> None:
        """Note how long a portion took.

        >>> portions = Portions(1)
        >>> portions.took(64, 32.0)
        >>> portions.size(10**6)
        120
        """
        # a clock of coarse steps may tell no time at all
        wanted = size * SECONDS / max(seconds, 1e-6)
        self._next = int(max(self._least, min(wanted, GROWTH * size)))
