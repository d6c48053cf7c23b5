"""Before docs are asked: what is looked at, refused and told; and each native request once per view, with a ``ViewId`` for its doc id."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import Instance

from lmms_patch.ask.spec import WrapSpec
from lmms_patch.ask.views import DESCRIBE, TEXTS
from lmms_patch.errors import CannotWrapError, OptionError, PatchError
from lmms_patch.harness.names.configs import OUTPUT_TYPES, judge_refusal
from lmms_patch.harness.names.effects import calls_judge
from lmms_patch.harness.wrap.known import check_fields
from lmms_patch.harness.wrap.media import blind_prompt
from lmms_patch.harness.wrap.scorer import fresh
from lmms_patch.harness.wrap.session import Session
from lmms_patch.runs.run import find
from lmms_patch.text import line, log

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


# --- requests -------------------------------------------------------------------------------------


class Requests:
    """Clones the base's requests of docs.

    Args:
        session: the parts of the task.
        shown: our function that shows a doc.
        place: where such a function stands among a request's arguments.
    """

    def __init__(self, session: Session, shown: Callable[..., Any], place: int) -> None:
        self._session, self._spec, self._table = session, session.known.spec, session.table
        self._shown, self._place = shown, place

    def of_views(self, native: Sequence[Instance]) -> list[Instance]:
        """Return the requests of a doc: view by view, each with all choices, ``idx = view · C + choice``.

        Args:
            native: the base's requests of the doc.
        """
        views = self._session.numbers_of(native[0].doc_id)
        return [self._clone(one, view, choice, len(native)) for view in views for choice, one in enumerate(native)]

    def describing(self, native: Sequence[Instance]) -> Instance:
        """Return the request for a description of a doc's images."""
        return self._clone(native[0], self._table.views_of(native[0].doc_id).index(DESCRIBE), 0, 1)

    def _clone(self, native: Instance, view: int, choice: int, choices: int) -> Instance:
        """Return a native request for a view."""
        doc_id, options = native.doc_id, self._spec.options
        arguments = list(native.arguments)
        # adapters read the doc id in the fourth place
        if len(arguments) < 6 or arguments[3] != doc_id or not callable(arguments[self._place]):
            raise CannotWrapError(
                f"{self._spec.name}: {self._spec.base} builds its requests in a form that lmms-patch does not know"
            )
        shows = self._table.views_of(doc_id)[view]
        if self._table.orders is not None:
            arguments = self._table.orders.asked(doc_id, shows.turn, arguments, choice)
        # our function and our id, so that an adapter gets this view through whichever task it asks
        arguments[self._place], arguments[3] = self._shown, self._table.id(doc_id, view)
        arguments = [fresh(a) if isinstance(a, dict) else a for a in arguments]
        if shows.kind in TEXTS and isinstance(arguments[0], str):
            arguments[0] = blind_prompt(arguments[0], shows)
        if shows == DESCRIBE:
            # nothing ends a description early: the harness's default is a blank line
            settings = {"max_new_tokens": options.caption_tokens, "until": []}
            arguments = [{**one, **settings} if isinstance(one, dict) else one for one in arguments]
            arguments[0] = options.caption_prompt
        own = {"doc_id": doc_id, "task": self._spec.name, "repeats": 1, "view": view, "choice": choice}
        return Instance(
            request_type=native.request_type,
            arguments=tuple(arguments),
            idx=view * choices + choice,
            metadata={**native.metadata, **own},
        )

    def put(self, requests: Iterable[Instance], captions: Mapping[int, str]) -> None:
        """Put descriptions in place of docs' images, in the table and in all requests without an image."""
        self._table.captions.update(captions)
        for one in requests:
            view = self._table.views_of(one.doc_id)[one.metadata["view"]]
            if view.kind == "caption" and one.doc_id in captions:
                one.arguments = (blind_prompt(one.arguments[0], view), *one.arguments[1:])


def by_doc(instances: Iterable[Instance]) -> dict[int, list[Instance]]:
    """Return requests by their doc."""
    out: dict[int, list[Instance]] = {}
    for inst in instances:
        out.setdefault(inst.doc_id, []).append(inst)
    return out


def descriptions(session: Session, evaluated: Collection[int]) -> dict[int, str]:
    """Return the descriptions of the docs of a task by doc id, from the newest run of the option's folder on the same docs.

    Raises:
        OptionError: there is no such run, or it lacks docs; one line that says what to type.
    """
    spec, plan = session.known.spec, session.golds.plan
    folder, docs = str(spec.options.captions), "" if plan is None else plan.digests["docs"]
    try:
        found = [
            one
            for run in find([Path(folder).expanduser()])
            for one in run.results
            if one.kind.captions and one.base == spec.base and one.made.docs == docs
        ]
        newest = max(found, key=lambda one: one.run.date, default=None)
        known = {} if newest is None else dict(newest.frame(["doc_id", "caption"]).drop_nulls().iter_rows())
    except (PatchError, OSError) as error:
        raise OptionError(f"{spec.name}: captions {folder}: {line(error)}") from None
    if lacking := [doc_id for doc_id in evaluated if doc_id not in known]:
        raise OptionError(
            f"{spec.name}: {folder} holds no description of {len(lacking)} of {len(evaluated)} docs; type first: lmms-eval --tasks "
            f"{spec.base}_caption --output_path {folder}, with the model that describes, and the same --limit"
        )
    return known
