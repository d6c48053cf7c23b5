"""What is looked at before the first request is made: refusals where docs cannot be asked, and lines on what a run will cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import CannotWrapError, PatchError
from lmms_patch.harness.names.configs import OUTPUT_TYPES, judge_refusal
from lmms_patch.harness.names.effects import calls_judge
from lmms_patch.harness.wrap.golds import check_fields
from lmms_patch.harness.wrap.session import Session
from lmms_patch.text import log

_DOCS_TO_LOOK_AT = 16
"""How many docs without a wrong image are looked at before the run is refused."""
NO_REPEATS = "--repeats above 1 is not possible (views would be read as repeats); run it several times instead"


def look(session: Session, frames_from: str, everyone: Sequence[int], mine: Sequence[int]) -> None:
    """Look at the docs of a session, and log what is worth a line.

    Args:
        session: the parts of the task.
        frames_from: what says how many frames of a video the model takes; "" where nothing does.
        everyone: the docs of all ranks, so that either all ranks go on or none. A rank that went on alone would
            wait for the others for ever.
        mine: those of this rank.

    Raises:
        PatchError: the docs cannot be asked.
    """
    if not everyone:
        return
    table, name = session.table, session.known.spec.name
    _look_at_first_docs(session, everyone)
    if table.shelf.shows_clips:
        _tell_frames(session, frames_from)
    if table.boxes is not None:
        # they decide what the run costs
        log().info(f"{name}: {table.boxes.check(everyone)}")
    if table.orders is not None and session.known.spec.kind.turns:
        _look_at_orders(session, everyone, mine)
    if table.wrong is not None:
        _look_at_wrong_images(session, everyone)


def _look_at_first_docs(session: Session, doc_ids: Sequence[int]) -> None:
    """Refuse what only the data shows.

    The first doc that shows anything decides; a doc whose image cannot be loaded does not.
    """
    spec, table, broken = session.known.spec, session.table, ""
    refused = f"{spec.name}: {spec.base} cannot be wrapped"
    for doc_id in doc_ids:
        try:
            if not isinstance(row := table.row(doc_id), Mapping):
                raise CannotWrapError(f"its docs are {type(row).__name__}, not rows with named fields")
            check_fields(row, spec)
            if not spec.kind.needs_image:
                return
            facts = table.shelf.known(doc_id)
            if facts.problem and not facts.unreadable:
                raise CannotWrapError(facts.problem)
        except PatchError as error:
            raise CannotWrapError(f"{refused} (doc {doc_id}): {error}") from None
        if not facts.no_image:
            return
        # a broken file or two are no reason to refuse
        broken = broken or (f" (doc {doc_id}: {facts.problem})" if facts.problem else "")
    raise CannotWrapError(
        f"{refused}: none of the {len(doc_ids)} docs asked shows an image or a video{broken}, so there is nothing to look at; "
        f"if others do, raise --limit; possible for it: {spec.base}_tst5"
    )


def _tell_frames(session: Session, frames_from: str) -> None:
    """Say which frames of a video make a clip."""
    name, sampling = session.known.spec.name, session.table.shelf.sampling
    frames = "all frames" if sampling.count is None else f"{sampling.count} uniform frames"
    frames += f", at most {sampling.fps:g} a second" if sampling.fps else ""
    frames += f", chosen as {sampling.reader} does" if sampling.reader else ""
    if frames_from:
        log().info(f"{name}: its clips are of {frames}, as the model takes them ({frames_from})")
    else:
        log().warning(
            f"{name}: the model does not say how many frames of a video it takes, so its clips are of {frames}; "
            "if it takes others, write that number in a task file: frames: 64"
        )


def _look_at_orders(session: Session, everyone: Sequence[int], mine: Sequence[int]) -> None:
    """Refuse docs whose options cannot be moved. Say how many can be, for the run's price."""
    name, orders, wrong = session.known.spec.name, session.table.orders, session.table.wrong
    assert orders is not None
    if session.known.predict_only:
        raise CannotWrapError(
            f"{name}: --predict_only scores nothing, and only the scorer shows whether options can be moved"
        )
    orders.check(everyone)
    # the null is of docs that count
    if wrong is not None:
        wrong.evaluate([doc_id for doc_id in everyone if orders.of(doc_id).orders])
    part = " of this process" if len(mine) < len(everyone) else ""
    log().info(f"{name}: {orders.counts(mine, session.table.views, part)}")
    if judge := session.known.judge:
        told = "its prompts and targets follow the order of the options, but whether its scorer does was not tried"
        log().warning(f"{name}: {told}, since it calls a judge or the network ({judge})")


def _look_at_wrong_images(session: Session, everyone: Sequence[int]) -> None:
    """Say what the null costs. Refuse a ``_swap`` task none of whose docs has a wrong image."""
    wrong, spec = session.table.wrong, session.known.spec
    assert wrong is not None
    if spec.kind.swapped:
        # finding a donor decodes images, so only the first docs are tried
        if all(wrong.donor(doc_id) is None for doc_id in everyone[:_DOCS_TO_LOOK_AT]):
            why = "no other doc shows other images in the same number"
            raise CannotWrapError(f"{spec.name}: {spec.base} has no wrong images to show (doc {everyone[0]}): {why}")
    elif sampled := wrong.sampled:
        log().info(
            f"{spec.name}: {len(sampled)} of {len(everyone)} docs are also asked on another doc's image, to measure what answers earn without "
            f"the right picture (option null: {spec.options.null}; null: 0 turns it off)"
        )
        if session.asks_again and session.times:
            steady, again = spec.options.steady, session.again
            docs = len(everyone) if again is None else len(again)
            log().info(
                f"{spec.name}: {docs} of them are asked again, a view up to {session.times} times while it says one thing, to tell what docs need: "
                f"most often one to two times their requests more (option steady: {steady}; steady: 0 turns it off)"
            )


def check_base(base: Any, spec: WrapSpec) -> None:
    """Check the requests and the scorer of a base: can they be asked in views?

    Raises:
        CannotWrapError: they cannot.
    """
    name, output_type = base.config.task, base.OUTPUT_TYPE or base.config.output_type
    by_likelihood, judge = output_type == "multiple_choice", calls_judge(base)
    why = ""
    if output_type not in OUTPUT_TYPES:
        why = f"{name} has output type {output_type}; allowed: {', '.join(OUTPUT_TYPES)}"
    # the host would stop at an assertion
    elif by_likelihood and hasattr(base, "doc_to_messages"):
        why = (
            f"{name} is multiple_choice (log-likelihoods), and the chat model {base.model_name} cannot give any; "
            "use a model with a simple adapter, or --force_simple where the model has one"
        )
    elif by_likelihood and spec.kind.captions and not spec.options.captions:
        why = (
            f"{name} asks for log-likelihoods, so it writes no description; take those of a run with option 'captions'"
        )
    elif (base.config.repeats or 1) > 1:
        why = NO_REPEATS
    elif judge and not spec.options.allow_judge:
        raise CannotWrapError(judge_refusal(spec, judge))
    if why:
        raise CannotWrapError(f"{spec.name}: {why}")


def tell_judged(session: Session, mine: Sequence[int]) -> None:
    """Say how often a judge will be called for the docs of this rank."""
    spec, table = session.known.spec, session.table
    if not spec.options.allow_judge or not session.known.judge:
        return
    answers = sum(len(session.numbers_of(doc_id)) for doc_id in mine)
    views = f"x {len(table.views)} views" if table.boxes is None else "and their boxes"
    views += ", and their wrong images" if spec.kind.has_index and table.wrong is not None else ""
    log().warning(f"{spec.name}: the judge is called for {len(mine)} docs {views} = {answers} answers")
