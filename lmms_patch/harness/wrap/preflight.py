"""What is looked at before the first request is made: refusals where docs cannot be asked, and lines on what a run will cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import CannotWrapError, PatchError
from lmms_patch.harness.names.configs import OUTPUT_TYPES, judge_refusal
from lmms_patch.harness.names.effects import calls_judge
from lmms_patch.harness.wrap.golds import check_fields
from lmms_patch.harness.wrap.requests import Requests
from lmms_patch.harness.wrap.session import Session
from lmms_patch.text import log

_DOCS_TO_LOOK_AT = 16
"""How many docs without a readable image, or without a wrong one, are looked at before the run is refused."""


NO_REPEATS = "--repeats above 1 is not possible (views would be read as repeats); run it several times instead"


class Notice(NamedTuple):
    """A line for the log, and whether it is a warning."""

    line: str
    warns: bool = False

    def log(self) -> None:
        """Write the line to the log."""
        (log().warning if self.warns else log().info)(self.line)


class Preflight:
    """Looks at the docs of a session.

    Args:
        session: the parts of the task.
        requests: which views are asked.
        frames_from: what says how many frames of a video the model takes; "" where nothing does.
    """

    def __init__(self, session: Session, requests: Requests, frames_from: str) -> None:
        self._session, self._requests, self._frames_from = session, requests, frames_from
        self._spec, self._table = session.spec, session.table

    def notices(self, everyone: Sequence[int], mine: Sequence[int]) -> Iterator[Notice]:
        """Yield what is worth a line, look by look.

        Args:
            everyone: the docs of all ranks, so that either all ranks go on or none. A rank that went on alone would
                wait for the others for ever.
            mine: those of this rank.

        Raises:
            PatchError: the docs cannot be asked.
        """
        yield from self._look_at_first_docs(everyone)
        yield from self._look_at_boxes(everyone)
        yield from self._look_at_orders(everyone, mine)
        yield from self._look_at_wrong_images(everyone)

    def _look_at_first_docs(self, doc_ids: Sequence[int]) -> Iterator[Notice]:
        """Refuse what only the data shows.

        The first doc that shows anything decides; a doc whose image cannot be loaded does not.
        """
        refused, unreadable = f"{self._spec.name}: {self._spec.base} cannot be wrapped", []
        for doc_id in doc_ids:
            try:
                if not isinstance(row := self._table.row(doc_id), Mapping):
                    raise CannotWrapError(f"its docs are {type(row).__name__}, not rows with named fields")
                check_fields(row, self._spec)
            except PatchError as error:
                raise CannotWrapError(f"{refused} (doc {doc_id}): {error}") from None
            if not self._spec.kind.needs_image:
                return
            sizes, problem = self._table.sizes(doc_id), self._table.shelf.of(doc_id).problem
            # a broken file or two are no reason to refuse; many are
            if problem and self._table.shelf.of(doc_id).unreadable:
                unreadable.append(f"doc {doc_id}: {problem}")
                if len(unreadable) == min(_DOCS_TO_LOOK_AT, len(doc_ids)):
                    raise CannotWrapError(
                        f"{refused}: no image of the first {len(unreadable)} docs can be loaded ({unreadable[0]})"
                    )
            elif problem:
                raise CannotWrapError(f"{refused} (doc {doc_id}): {problem}")
            elif sizes:
                if self._table.shelf.shows_clips:
                    yield from self._frames()
                return
        if doc_ids:
            some = len(doc_ids) < len(self._table.rows)
            asked = f"none of the {len(doc_ids)} docs asked" if some else "none of its docs"
            broken = f" ({unreadable[0]})" if unreadable else ""
            more = f"{'raise --limit; ' * some}possible for it: {self._spec.base}_tst5"
            raise CannotWrapError(
                f"{refused}: {asked} shows an image or a video{broken}, so there is nothing to look at; {more}"
            )

    def _frames(self) -> Iterator[Notice]:
        """Say which frames of a video make a clip."""
        name, sampling = self._spec.name, self._table.shelf.sampling
        frames = "all frames" if sampling.count is None else f"{sampling.count} uniform frames"
        frames += f", at most {sampling.fps:g} a second" if sampling.fps else ""
        frames += f", chosen as {sampling.reader} does" if sampling.reader else ""
        if self._frames_from:
            yield Notice(f"{name}: its clips are of {frames}, as the model takes them ({self._frames_from})")
        else:
            yield Notice(
                f"{name}: the model does not say how many frames of a video it takes, so its clips are of {frames}; "
                "if it takes others, write that number in a task file: frames: 64",
                warns=True,
            )

    def _look_at_boxes(self, doc_ids: Sequence[int]) -> Iterator[Notice]:
        """Refuse docs without boxes. Say how many boxes there are, since they decide what the run costs."""
        if self._session.boxes is not None and doc_ids:
            self._session.boxes.check(list(doc_ids))
            yield Notice(f"{self._spec.name}: {self._session.boxes.counts(list(doc_ids))}")

    def _look_at_orders(self, everyone: Sequence[int], doc_ids: Sequence[int]) -> Iterator[Notice]:
        """Refuse docs whose options cannot be moved. Say how many can be, for the run's price."""
        if self._table.orders is None or not self._spec.kind.turns:
            return
        if self._session.predict_only:
            raise CannotWrapError(
                f"{self._spec.name}: --predict_only scores nothing, and only the scorer shows whether options can be moved"
            )
        if everyone:
            self._table.orders.check(everyone)
            # the null is of docs that count
            if self._table.wrong is not None:
                self._table.wrong.evaluate([doc_id for doc_id in everyone if self._table.orders.of(doc_id).orders])
            part = " of this process" if len(doc_ids) < len(everyone) else ""
            yield Notice(f"{self._spec.name}: {self._table.orders.counts(doc_ids, self._table.views, part)}")
            if judge := calls_judge(self._session.base):
                told = (
                    "its prompts and targets follow the order of the options, but whether its scorer does was not tried"
                )
                yield Notice(f"{self._spec.name}: {told}, since it calls a judge or the network ({judge})", warns=True)

    def _look_at_wrong_images(self, everyone: Sequence[int]) -> Iterator[Notice]:
        """Say what the null costs. Refuse a ``_swap`` task none of whose docs has a wrong image."""
        wrong, name = self._table.wrong, self._spec.name
        if wrong is None or not everyone:
            return
        if not self._spec.kind.swapped:
            sampled = wrong.sampled
            if sampled:
                views = sum(map(self._table.asked_at_most, sampled))
                total = f"{'up to ' if self._session.boxes else ''}{views + sum(map(self._table.asked_at_most, everyone)):,}"
                yield Notice(
                    f"{name}: {len(sampled)} of {len(everyone)} docs are also asked on another doc's image, to measure what answers earn without "
                    f"the right picture: {views:,} of {total} requests (option null: {self._spec.options.null}; null: 0 turns it off)"
                )
            if self._session.asks_again and self._session.times:
                steady = self._spec.options.steady
                docs = len(everyone) if steady == "all" else min(steady, len(sampled))
                yield Notice(
                    f"{name}: {docs} of them are asked again, a view up to {self._session.times} times while it says one thing, to tell what docs "
                    f"need: most often one to two times their requests more (option steady: {steady}; steady: 0 turns it off)"
                )
            return
        # finding a donor decodes images, so only the first docs are tried
        if all(wrong.donor(doc_id) is None for doc_id in everyone[:_DOCS_TO_LOOK_AT]):
            why = "no other doc shows other images in the same number"
            raise CannotWrapError(f"{name}: {self._spec.base} has no wrong images to show (doc {everyone[0]}): {why}")


def check_base(base: Any, spec: WrapSpec) -> None:
    """Check the requests and the scorer of a base: can they be asked in views?

    Raises:
        CannotWrapError: they cannot.
    """
    name, output_type = base.config.task, base.OUTPUT_TYPE or base.config.output_type
    if output_type not in OUTPUT_TYPES:
        raise CannotWrapError(f"{spec.name}: {name} has output type {output_type}; allowed: {', '.join(OUTPUT_TYPES)}")
    # the host would stop at an assertion
    if hasattr(base, "doc_to_messages") and output_type == "multiple_choice":
        raise CannotWrapError(
            f"{spec.name}: {name} is multiple_choice (log-likelihoods), and the chat model {base.model_name} cannot give any; "
            "use a model with a simple adapter, or --force_simple where the model has one"
        )
    if spec.kind.captions and output_type == "multiple_choice" and not spec.options.captions:
        raise CannotWrapError(
            f"{spec.name}: {name} asks for log-likelihoods, so it writes no description; take those of a run with option 'captions'"
        )
    if (base.config.repeats or 1) > 1:
        raise CannotWrapError(f"{spec.name}: {NO_REPEATS}")
    if not spec.options.allow_judge and (judge := calls_judge(base)):
        raise CannotWrapError(judge_refusal(spec, judge))


def judged(session: Session, requests: Requests, mine: Sequence[int]) -> Iterator[Notice]:
    """Yield a line on how often a judge will be called for the docs of this rank."""
    if not session.spec.options.allow_judge or not calls_judge(session.base):
        return
    answers = sum(map(len, map(requests.numbers_of, mine)))
    views = f"x {len(session.table.views)} views" if session.boxes is None else "and their boxes"
    views += ", and their wrong images" if session.spec.kind.takes_null and session.table.wrong is not None else ""
    yield Notice(
        f"{session.spec.name}: the judge is called for {len(mine)} docs {views} = {answers} answers", warns=True
    )
