"""A native task object, wrapped: V requests per doc, one scored doc, and the prompts and scorers of the base."""

from __future__ import annotations

import copy
import dataclasses
import functools
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from lmms_eval.api.instance import Instance
from lmms_eval.api.task import Task
from lmms_eval.utils import create_iterator

from lmms_patch.ask.kinds import Key
from lmms_patch.ask.references import own_question
from lmms_patch.ask.spec import UNWRITTEN, WrapSpec
from lmms_patch.ask.subtitles import with_subtitles
from lmms_patch.ask.timeline import asked_times, points_into_clip, questions_in
from lmms_patch.ask.views import View, pixels, views_of
from lmms_patch.errors import CannotWrapError, OptionError, PatchError
from lmms_patch.harness import compat
from lmms_patch.harness.asking import quick
from lmms_patch.harness.names.configs import OUTPUT_TYPES, judge_refusal, options_over, vision_refusal
from lmms_patch.harness.names.effects import calls_judge
from lmms_patch.harness.refuse import refuse
from lmms_patch.harness.video.adapter import sampling_of
from lmms_patch.harness.wrap.aggregate import Aggregations, PatchItem
from lmms_patch.harness.wrap.boxes import BoxTable
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.delegate import Delegate
from lmms_patch.harness.wrap.docs import Cutting, TaggedDoc, TaggedDocs, VariantDocs
from lmms_patch.harness.wrap.filters import apply_filters, as_the_host_will, is_unfinished
from lmms_patch.harness.wrap.late import late
from lmms_patch.harness.wrap.media import blind_prompt
from lmms_patch.harness.wrap.orders import OrderTable
from lmms_patch.harness.wrap.references import CaptionScore, References, check_fields, field, fields
from lmms_patch.harness.wrap.scorer import Scorer, Unanswered
from lmms_patch.harness.wrap.swap import WrongImages, said
from lmms_patch.harness.wrap.text_only import TextOnly
from lmms_patch.runs import failures, reading
from lmms_patch.runs.record import SCHEMA, TURNS, Asked, Clip
from lmms_patch.runs.scored import SampleRecord, ScoredView, WrongImage
from lmms_patch.runs.scoring import Scalar
from lmms_patch.text import log

_DOCS_TO_LOOK_AT = 16
"""How many docs without a readable image, or without a wrong one, are looked at before the run is refused."""
_tables: weakref.WeakValueDictionary[str, VariantDocs] = weakref.WeakValueDictionary()
"""The table of the last wrapped task of each name, which is that of the current run."""
_NO_WRONG_IMAGE = "not asked: no other doc shows other images in the same number"
_NO_REPEATS = "--repeats above 1 is not possible (views would be read as repeats); run it several times instead"


class WrappedTask(Delegate):
    """A task of the harness that asks every doc in several views.

    It has a name of its own, but shares the config object of its base. What it does not answer itself, its base answers
    (``compat.OVERRIDDEN`` and ``compat.DELEGATED`` list both).

    Attributes:
        spec: what was asked, with all options filled in.
        aggregations: the aggregations of the task.
        text_only: the docs of a ``_tst`` task as a text-only diagnostic sees them; None for other kinds.
        args: the host's command-line arguments, which the host sets before it scores.
    """

    def __init__(self, base: Task, spec: WrapSpec) -> None:
        """Wrap a native task; nothing of its data is read yet.

        Args:
            base: the native task object, loaded by the harness for the model at hand.
            spec: how to wrap it. The base's profiles give what the spec leaves open.

        Raises:
            CannotWrapError: the base cannot be shown in views, or its scorer calls a judge.
            OptionError: the base's inline profile is wrong.
        """
        self._base = base
        self._chat = hasattr(base, "doc_to_messages")
        self.spec = dataclasses.replace(spec, options=options_over(base.config.metadata, spec, base.config.task))
        self._check_base()
        self._rename()
        self._instances: list[Instance] | None = None
        self._predict_only = False
        self._about_metric = ""
        self.args: Any = None
        split = base.config.test_split if base.has_test_docs() else base.config.validation_split
        options = self.spec.options
        cutting = Cutting(
            options.images == "first", options.min_side, options.min_cell, options.seed, options.box_image == "last"
        )
        own_messages = (
            callable(getattr(base.config, "doc_to_messages", None))
            or getattr(base.config, "doc_to_visual", None) is None
        )
        prompt = None if own_messages else base.doc_to_text
        self._own_messages = self._chat and own_messages
        self._boxes = BoxTable(self.spec, self._rows_without_media) if spec.kind.own_boxes else None
        self._table = VariantDocs(
            base.eval_docs, base, views_of(self.spec), cutting, prompt, self._boxes, self._rows_without_media
        )
        if spec.kind.view == "segment":
            self._table.pointing = self._points_into_clip
        _tables[self.spec.name] = self._table
        kind = spec.kind
        if kind.swapped or (kind.takes_null and self.spec.options.null):
            self._table.wrong = WrongImages(
                self.spec, self._rows_without_media, lambda: self._references.read(), self._table.look
            )
        self._dataset = {**{k: base.dataset[k] for k in base.dataset}, split: self._table}
        self.text_only: TextOnly | None = None
        self.evaluated: list[int] = []
        """The docs of all ranks that are evaluated; set with the requests."""
        self.asked: dict[int, Asked] = {}
        """How each doc was asked, in a run that left views out. Docs that are not in it were asked whole."""
        self._numbers: dict[int, list[int]] = {}
        """Of docs in ``asked``, the numbers of the views that were asked."""
        self._known: dict[tuple[int, int], tuple[str, ScoredView]] = {}
        """Views that were scored while the model was still asked, by doc id and number, with the answers that were scored."""
        self._warned = False
        self._told_of_frames = set[str]()
        self._kept = 0
        self._unfinished = set[tuple[int, int]]()
        self._frames_from = ""
        """What says how many frames of a video the model takes; "" where nothing does."""
        self._wire()

    def _wire(self) -> None:
        """Build the parts that depend on the primary metric, and connect them.

        Called when the task is made, so that an option which names no metric is refused at once; and again where
        ``--predict_only`` replaces the metrics.

        Raises:
            CannotWrapError: the base reports no metric, or a ``_tst`` task one whose lower values are better.
            OptionError: the option ``metric`` names none of the base's metrics.
        """
        native, higher = dict(self._base.aggregation()), dict(self._base.higher_is_better())
        primary = self._choose_primary(list(native))
        # Functions stand for what is known later: the host sets ``args`` before it scores; plan, golds and diagnosis
        # need the docs.
        self.aggregations = Aggregations(
            self.spec,
            native,
            higher,
            primary,
            args=lambda: self.args,
            plan=lambda: self._references.plan,
            about_tst=lambda: {} if self.text_only is None else self.text_only.about(),
            golds=lambda: self._references.golds_from(),
            frames_read=lambda: self._table.watch.record(),
            kept=lambda: self._kept,
        )
        self._scorer = Scorer(self.spec, self._base, self.aggregations)
        judged = calls_judge(self._base) is not None
        self._references = References(
            self.spec,
            self._base,
            self._scored_rows,
            self._scorer.score_answers,
            primary,
            judged,
            self._scorer.score_plainly,
        )
        if self.spec.options.scorer == "cider_d":  # set afterwards: document frequencies come from the references
            self._scorer.caption_score = CaptionScore(self._references)
        if self.spec.kind.turns:
            self._table.orders = OrderTable(
                self.spec,
                self._base,
                self._rows_without_media,
                lambda: self._base.eval_docs,
                self._references,
                messages=self._own_messages,
                judged=judged,
            )
            self._scorer.as_shown = lambda doc, view: self._as_shown(doc, view)
            if self.spec.kind.every_order:
                self._references.moved = self._in_other_orders
        if self.spec.kind.folds:
            if higher.get(primary) is False:
                told = "a text-only diagnostic chooses what scores highest; name another metric with 'metric'"
                raise CannotWrapError(f"{self.spec.name}: lower {primary} is better, and {told}")
            self.text_only = self._table.text_only = TextOnly(
                self.spec, self._base, self._references, self._scored_rows
            )

    def _as_shown(self, doc: Any, view: View) -> Any:
        """Return a doc with its options in the order of a view."""
        return doc if self._table.orders is None else self._table.orders.as_shown(doc, doc.doc_id, view.turn)

    def _in_other_orders(self, doc_id: int) -> list[Any]:
        """Return a doc's row, as scorers take it, with its options in each order but its own.

        None where they cannot be moved.
        """
        assert self._table.orders is not None
        row = self._scored_rows()[doc_id]
        return [
            self._table.orders.as_shown(row, doc_id, turn)
            for turn in range(1, len(self._table.orders.of(doc_id).orders))
        ]

    def _rows_without_media(self) -> Any:
        return getattr(self._base, "eval_docs_no_media", self._base.eval_docs)

    # --- what cannot be wrapped ---------------------------------------------------------------

    def _check_base(self) -> None:
        """Refuse a base whose requests or scorer cannot be asked in views."""
        name, output_type = self._base.config.task, self._base.OUTPUT_TYPE or self._base.config.output_type
        if output_type not in OUTPUT_TYPES:
            raise CannotWrapError(
                f"{self.spec.name}: {name} has output type {output_type}; allowed: {', '.join(OUTPUT_TYPES)}"
            )
        if self._chat and output_type == "multiple_choice":
            raise CannotWrapError(
                f"{self.spec.name}: {name} is multiple_choice (log-likelihoods), and the chat model {self._base.model_name} cannot give any; "
                "use a model with a simple adapter, or --force_simple where the model has one"
            )
        if (self._base.config.repeats or 1) > 1:
            raise CannotWrapError(f"{self.spec.name}: {_NO_REPEATS}")
        if not self.spec.options.allow_judge and (judge := calls_judge(self._base)):
            raise CannotWrapError(judge_refusal(self.spec, judge))

    def _rename(self) -> None:
        """Give the config, which base and wrapper share, the wrapped name.

        A config that belongs to the base's class is copied first.
        """
        config = self._base.config
        if getattr(type(self._base), "CONFIG", None) is config:
            config = copy.copy(config)
            self._base._config = config
        self._config = config
        config.task = self.spec.name
        if config.task_alias:
            config.task_alias = f"{config.task_alias}_{self.spec.suffix}"
        if self.spec.leaves_out and self.spec.options.quick:
            config.task_alias = f"{config.task_alias or self.spec.name} (estimates)"

    # --- settings -----------------------------------------------------------------------------

    @property
    def task_name(self) -> str:
        return self.spec.name

    def set_config(self, key: str, value: Any, update: bool = False) -> None:
        """Set a key of the base's config. Refuse ``repeats`` above 1, since the host would take views for repeats."""
        if key == "repeats" and value != 1:
            refuse(CannotWrapError(f"{self.spec.name}: {_NO_REPEATS}"))
        self._base.set_config(key, value, update)

    def dump_config(self) -> dict[str, Any]:
        """Return the base's config; under ``lmms_patch``, everything that changes a view or the index.

        The host's response cache goes by this config: a run with a larger ``null`` must find the answers of an earlier
        run.
        """
        described = {"schema": SCHEMA, "pixels": pixels(self.spec), **self.spec.described(), "metric": self.primary}
        for name in UNWRITTEN:
            described["options"].pop(name)
        if self._table.wrong is not None:
            described["wrong_images"] = self._table.wrong.digest
        if self.spec.kind.needs_video or self._table.shows_clips:
            described["clip"] = {
                name: value
                for name, value in dataclasses.asdict(self._table.sampling).items()
                if name != "reader" or value
            }
        if self._subtitled:
            described["subtitles"] = self._subtitled
        run = {} if self.text_only is None else {"run": self.text_only.run_id}
        boxes = {} if self._boxes is None else {"boxes": self._boxes.digest}
        return {**_text_keys(self._base.dump_config()), "lmms_patch": {**described, **run, **boxes}}

    def override_metric(self, metric_name: str) -> None:
        """Keep answers only, and score nothing: the host calls this for ``--predict_only``."""
        self._predict_only = True
        self._base.override_metric(metric_name)
        self._wire()

    # --- docs ---------------------------------------------------------------------------------

    @property
    def table(self) -> VariantDocs:
        """All views of all docs."""
        return self._table

    @property
    def dataset(self) -> Mapping[str, Any]:
        """The splits by name, as adapters index them. The eval split is the table of all views."""
        return self._dataset

    @property
    def eval_docs(self) -> Any:
        return TaggedDocs(self._base.eval_docs, self._rows_without_media)

    @property
    def eval_docs_no_media(self) -> Any:
        return TaggedDocs(self._rows_without_media())

    def test_docs(self) -> Any:
        return TaggedDocs(self._base.test_docs()) if self.has_test_docs() else None

    def validation_docs(self) -> Any:
        return TaggedDocs(self._base.validation_docs()) if self.has_validation_docs() else None

    def doc_iterator(
        self, *, rank: int = 0, limit: int | None = None, world_size: int = 1, offset: int = 0
    ) -> Iterator[Any]:
        return create_iterator(
            enumerate(self.eval_docs),
            rank=int(rank),
            limit=int(limit) if limit else None,
            world_size=int(world_size),
            offset=offset,
        )

    # --- requests -----------------------------------------------------------------------------

    def show_frames_of(self, model: Any) -> None:
        """Make clips of the frames that a model takes from a video, and note how it hears them."""
        self._table.sampling, self._frames_from = sampling_of(model, self.spec.options.frames)
        self._table.watch.adapter = f"{type(model).__module__}.{type(model).__qualname__}"

    def build_all_requests(self, **kwargs: Any) -> None:
        """Let the base build its requests, and clone each of them once per view.

        Before the first request, refuse what only the data shows, such as docs whose media are not images.
        """
        if kwargs.get("cache_requests"):
            log().warning(f"{self.spec.name}: --cache_requests is ignored: its key does not know the views")
        if (
            self._about_metric and not self._predict_only
        ):  # not said earlier, because only now it is known whether there is an index
            log().warning(f"{self.spec.name}: {self._about_metric.removesuffix('; ')}")
        self._base.build_all_requests(**{**kwargs, "cache_requests": False, "rewrite_requests_cache": False})
        native = _by_doc(self._base._instances or [])
        self._base._instances = None
        everyone = [
            i
            for i, _ in create_iterator(
                enumerate(range(len(self.eval_docs))), 0, 1, kwargs.get("limit"), kwargs.get("offset")
            )
        ]
        self.evaluated, self.asked, self._numbers, self._known = everyone, {}, {}, {}
        self._references.evaluate(everyone)
        if self._table.wrong is not None:
            self._table.wrong.evaluate(everyone)
        try:
            self._look_at_first_docs(everyone)
            self._look_at_boxes(everyone)
            self._look_at_orders(everyone, list(native))
            self._look_at_wrong_images(everyone)
            if self.spec.leaves_out and everyone:
                self._check_asking(everyone)
            if self.text_only is not None:
                _ = (
                    self.text_only.folds
                )  # dealt now, so that docs which cannot be cross-validated are refused before the model answers
            self._instances = [clone for per_doc in native.values() for clone in self._clones(per_doc)]
        except PatchError as error:
            refuse(error)
        if self.spec.options.allow_judge and calls_judge(self._base):
            docs, answers = len(native), sum(map(len, map(self._numbers_of, native)))
            views = f"x {len(self._table.views)} views" if self._boxes is None else "and their boxes"
            views += ", and their wrong images" if self.spec.kind.takes_null and self._table.wrong is not None else ""
            log().warning(f"{self.spec.name}: the judge is called for {docs} docs {views} = {answers} answers")

    def _check_asking(self, everyone: Sequence[int]) -> None:
        """Log what it costs to leave views out.

        Where that is not possible, refuse it if it was asked for; else ask all views, and say why.

        Raises:
            CannotWrapError, OptionError: it was asked for, and is not possible.
        """
        options, why = self.spec.options, quick.why_not(self, predict_only=self._predict_only)
        if not why or options.quick or "exit" in options.given:
            log().info(quick.check(self, why))
            return
        log().info(f"{self.spec.name}: all {self.spec.kind.words.parts} of each doc are asked: {why}")
        self.spec = dataclasses.replace(self.spec, options=options.model_copy(update={"exit": False}))
        self._wire()
        self._references.evaluate(everyone)

    def _look_at_first_docs(self, doc_ids: Sequence[int]) -> None:
        """Refuse what only the data shows.

        The first doc that shows anything decides; a doc whose image cannot be loaded does not.

        Args:
            doc_ids: the docs of all ranks, so that either all ranks go on or none.
        """
        refused, unreadable = f"{self.spec.name}: {self.spec.base} cannot be wrapped", []
        for doc_id in doc_ids:
            try:
                if not isinstance(row := self._table.row(doc_id), Mapping):
                    raise CannotWrapError(f"its docs are {type(row).__name__}, not rows with named fields")
                check_fields(row, self.spec)
            except PatchError as error:
                raise CannotWrapError(f"{refused} (doc {doc_id}): {error}") from None
            if not self.spec.kind.needs_image:
                return
            sizes, problem = self._table.sizes(doc_id), self._table.problem(doc_id)
            if problem and self._table.unreadable(doc_id):
                unreadable.append(f"doc {doc_id}: {problem}")
                if len(unreadable) == min(_DOCS_TO_LOOK_AT, len(doc_ids)):
                    raise CannotWrapError(
                        f"{refused}: no image of the first {len(unreadable)} docs can be loaded ({unreadable[0]})"
                    )
            elif problem:
                raise CannotWrapError(f"{refused} (doc {doc_id}): {problem}")
            elif sizes:
                if self._table.shows_clips:
                    self._tell_frames()
                return
        if doc_ids:
            some = len(doc_ids) < len(self.eval_docs)
            asked = f"none of the {len(doc_ids)} docs asked" if some else "none of its docs"
            broken = f" ({unreadable[0]})" if unreadable else ""
            more = "raise --limit" if some else f"possible for it: {self.spec.base}_tst5"
            raise CannotWrapError(
                f"{refused}: {asked} shows an image or a video{broken}, so there is nothing to look at; {more}"
            )

    def _points_into_clip(self, doc_id: int) -> str:
        """Return what in a doc's question points into the clip's own time; "" where nothing does."""
        return self._pointing.get(doc_id, "")

    @functools.cached_property
    def _pointing(self) -> dict[int, str]:
        """What points into the clip's own time, by doc id: the category, where the option ``timeline`` names it, or words of the question.

        All docs are read together, since what most prompts say is no question.
        """
        options, rows = self.spec.options, self._rows_without_media()
        out: dict[int, str] = {}
        named = set(map(str, options.timeline or ()))
        docs = self._references.read()
        prompts = questions_in([doc.asked.prompt for doc in docs], [doc.asked.choices for doc in docs])
        for doc, asked in zip(docs, prompts, strict=True):
            category = str(field(rows[doc.doc_id], options.category)) if named else ""
            question = own_question(rows[doc.doc_id]) or asked
            words = (
                f"category {category}"
                if category in named
                else points_into_clip(question, doc.asked.choices) or asked_times(doc.asked.prompt)
            )
            out |= {doc.doc_id: words} if words else {}
        return out

    @functools.cached_property
    def _subtitled(self) -> int:
        """How many docs' prompts hold the subtitles of the whole clip, where parts of clips are asked: each part is asked with all of them."""
        if not self.spec.kind.needs_video:
            return 0
        try:
            docs, rows = self._references.read(), self._rows_without_media()
            return sum(
                with_subtitles([doc.asked.prompt for doc in docs], [own_question(rows[doc.doc_id]) for doc in docs])
            )
        except Exception as error:
            log().warning(
                f"{self.spec.name}: its prompts cannot be read, so nobody knows whether they hold subtitles: {one_line(error)}"
            )
            return 0

    def _numbers_of(self, doc_id: int) -> Sequence[int]:
        """Return the numbers of the views of a doc that are asked, or were asked.

        Where a doc's question points into the clip's own time, the segments are not asked: the doc is left out of the
        index, so what a segment earns would count for nothing. A run that leaves views out by a plan of its own asks
        them.
        """
        if doc_id in self._numbers:
            return self._numbers[doc_id]
        views = self._table.views_of(doc_id)
        return (
            [number for number, view in enumerate(views) if not view.n]
            if self._spares_segments(doc_id)
            else range(len(views))
        )

    def _spares_segments(self, doc_id: int) -> bool:
        """Return whether the segments of a doc are not asked."""
        return self._table.pointing is not None and not self.spec.leaves_out and bool(self._table.pointing(doc_id))

    def _asked_at_most(self, doc_id: int) -> int:
        """Return how many views of its own a doc is asked at most. Decodes nothing."""
        return (
            sum(not view.n for view in self._table.views)
            if self._spares_segments(doc_id)
            else self._table.asked_at_most(doc_id)
        )

    def _tell_frames(self) -> None:
        """Log which frames of a video make a clip."""
        name, sampling = self.spec.name, self._table.sampling
        frames = "all frames" if sampling.count is None else f"{sampling.count} uniform frames"
        frames += f", at most {sampling.fps:g} a second" if sampling.fps else ""
        frames += f", chosen as {sampling.reader} does" if sampling.reader else ""
        if self._frames_from:
            log().info(f"{name}: its clips are of {frames}, as the model takes them ({self._frames_from})")
        else:
            log().warning(
                f"{name}: the model does not say how many frames of a video it takes, so its clips are of {frames}; "
                "if it takes others, write that number in a task file: frames: 64"
            )
        if self._subtitled:
            log().warning(f"{name}: {reading.subtitled_in_words(self._subtitled)}")

    def note_kept(self, answers: int) -> None:
        """Take note of how many of the task's answers an earlier process gave: whoever could write its journal could have written them."""
        self._kept += answers

    def tell_frames_read(self) -> None:
        """Log, each of it once, where the model's adapter reads other frames than the views of a clip hold, or where that cannot be noticed."""
        read = self._table.watch.record()
        if read is None:
            return
        for about, line in reading.frames({"frames_read": read}).items():
            if about not in self._told_of_frames:
                log().warning(f"{self.spec.name}: {line}")
            self._told_of_frames.add(about)
        if not read["checked"] and not self._told_of_frames:
            log().info(f"{self.spec.name}: {reading.FRAMES_UNCHECKED}")
            self._told_of_frames.add("unchecked")

    def _look_at_boxes(self, doc_ids: list[int]) -> None:
        """Refuse docs without boxes. Log how many boxes there are, since they decide what the run costs.

        Args:
            doc_ids: the docs of all ranks. A rank that went on alone would wait for the others for ever.
        """
        if self._boxes is not None and doc_ids:
            self._boxes.check(doc_ids)
            log().info(f"{self.spec.name}: {self._boxes.counts(doc_ids)}")

    def _look_at_orders(self, everyone: Sequence[int], doc_ids: Sequence[int]) -> None:
        """Refuse docs whose options cannot be moved. Log how many can, since that decides what the run costs.

        Args:
            everyone: the docs of all ranks, as above.
            doc_ids: those of this rank.
        """
        if self._table.orders is None:
            return
        if self._predict_only:
            raise CannotWrapError(
                f"{self.spec.name}: --predict_only scores nothing, and only the scorer shows whether options can be moved"
            )
        if everyone:
            self._table.orders.check(everyone)
            if self._table.wrong is not None:  # the null is of docs that count
                self._table.wrong.evaluate([doc_id for doc_id in everyone if self._table.orders.of(doc_id).orders])
            part = " of this process" if len(doc_ids) < len(everyone) else ""
            log().info(f"{self.spec.name}: {self._table.orders.counts(doc_ids, self._table.views, part)}")
            if judge := calls_judge(self._base):
                told = (
                    "its prompts and targets follow the order of the options, but whether its scorer does was not tried"
                )
                log().warning(f"{self.spec.name}: {told}, since it calls a judge or the network ({judge})")

    def _look_at_wrong_images(self, everyone: Sequence[int]) -> None:
        """Log what the null costs. Refuse a ``_swap`` task none of whose docs has a wrong image.

        Args:
            everyone: the docs of all ranks, as above.
        """
        wrong, name = self._table.wrong, self.spec.name
        if wrong is None or not everyone:
            return
        if not self.spec.kind.swapped:
            sampled = wrong.sampled
            if sampled:
                views = sum(map(self._asked_at_most, sampled))
                total = f"{'up to ' if self._boxes else ''}{views + sum(map(self._asked_at_most, everyone)):,}"
                log().info(
                    f"{name}: {len(sampled)} of {len(everyone)} docs are also asked on another doc's image, to measure what answers earn without "
                    f"the right picture: {views:,} of {total} requests (option null: {self.spec.options.null}; null: 0 turns it off)"
                )
            return
        if all(wrong.donor(doc_id) is None for doc_id in everyone[:_DOCS_TO_LOOK_AT]):
            why = "no other doc shows other images in the same number"
            raise CannotWrapError(f"{name}: {self.spec.base} has no wrong images to show (doc {everyone[0]}): {why}")

    def _clones(self, native: Sequence[Instance]) -> list[Instance]:
        """Return the requests of one doc: view by view, each with all choices, ``idx = view · C + choice``."""
        views = self._numbers_of(native[0].doc_id)
        return [self._clone(inst, view, choice, len(native)) for view in views for choice, inst in enumerate(native)]

    def _clone(self, native: Instance, view: int, choice: int, choices: int) -> Instance:
        """Return a native request for one view: with our function to show the doc, and a ``ViewId`` for its doc id."""
        doc_id = native.doc_id
        shown = self.doc_to_messages if self._chat else self.doc_to_visual
        place = 1 if self._chat else 2
        arguments = list(native.arguments)
        if len(arguments) < 6 or arguments[3] != doc_id or not callable(arguments[place]):
            raise CannotWrapError(
                f"{self.spec.name}: {self.spec.base} builds its requests in a form that lmms-patch does not know"
            )
        if self._table.orders is not None:
            arguments = self._table.orders.asked(doc_id, self._table.views_of(doc_id)[view].turn, arguments, choice)
        arguments[place], arguments[3] = shown, self._table.id(doc_id, view)
        arguments = [_copied(a) if isinstance(a, dict) else a for a in arguments]
        if (shows := self._table.views_of(doc_id)[view]).kind == "blind" and isinstance(arguments[0], str):
            arguments[0] = blind_prompt(arguments[0], shows.adds)
        metadata = {
            **native.metadata,
            "doc_id": doc_id,
            "task": self.spec.name,
            "repeats": 1,
            "view": view,
            "choice": choice,
        }
        return Instance(
            request_type=native.request_type, arguments=tuple(arguments), idx=view * choices + choice, metadata=metadata
        )

    def doc_to_visual(self, doc: Any) -> list[Any]:
        """Return the images of a doc's view, whichever wrapped task the doc belongs to."""
        table, doc = self._owner(doc)
        return table.visuals(doc)

    def doc_to_messages(self, doc: Any) -> list[dict[str, Any]]:
        """Return the messages of a doc's view, whichever wrapped task the doc belongs to."""
        table, doc = self._owner(doc)
        return table.messages(doc)

    def _owner(self, doc: Any) -> tuple[VariantDocs, TaggedDoc]:
        """Return the table that a doc came from, and the doc. Refuse a doc that an adapter did not fetch by its id."""
        if not isinstance(doc, TaggedDoc) or doc.table is None:
            unknown = (
                "the model's adapter shows a doc that it did not fetch by its id; this adapter cannot run wrapped tasks"
            )
            refuse(CannotWrapError(f"{self.spec.name}: {unknown}"))
        if doc.table.text_only is not None:
            refuse(vision_refusal(self.spec, str(getattr(self._base, "model_name", None) or "this model")))
        return doc.table, doc

    # --- scoring ------------------------------------------------------------------------------

    def apply_filters(self) -> None:
        """Apply the base's filters once per view and choice.

        Where one fails, report the cause and keep the raw answers.
        """
        adapter = compat.adapter_of(getattr(self._base, "model_name", None))
        rows, with_media = self.eval_docs_no_media, self._base.eval_docs
        self._unfinished = {(one.doc_id, one.metadata["view"]) for one in self._instances or [] if is_unfinished(one)}
        apply_filters(self._instances or [], self._filters, rows, with_media, adapter, self._table.as_shown)

    def process_results(self, doc: Any, results: Sequence[Any], **kwargs: Any) -> dict[str, Any]:
        """Score every view of a doc with the base's own scorer.

        Args:
            doc: a row that knows its number (from ``eval_docs`` or ``eval_docs_no_media``).
            results: the filtered answers, view by view, each with all choices.
            kwargs: handed on to the native scorer.

        Returns:
            Three groups of metrics, in this order. ``patch``: the record. Our derived metrics, from every doc: the
            native item of its best cell, or None. The native metrics: the items of the full view. Where that view could
            not be scored they are None, so that the metric is null and not that of the other docs; where its call
            failed they are what the base's scorer makes of the text that stands for the answer. Native metrics come
            last, because the host takes the number of docs from the metric that it aggregates last.
        """
        if not isinstance(doc, TaggedDoc):
            raise CannotWrapError(f"{self.spec.name}: a doc without a number cannot be scored; take it from eval_docs")
        every = self._table.views_of(doc.doc_id)
        numbers = self._numbers_of(doc.doc_id)
        results = results if numbers else []
        if numbers and len(results) % len(numbers):
            raise CannotWrapError(
                f"{self.spec.name}: {len(results)} answers for {len(numbers)} views of doc {doc.doc_id}"
            )
        size, views = len(results) // max(1, len(numbers)), [every[number] for number in numbers]
        answers = [self._answers(doc.doc_id, view, results[i * size : (i + 1) * size]) for i, view in enumerate(views)]
        unscored = [ScoredView(view) for view in views]
        known = [self._known.get((doc.doc_id, number), ("", None)) for number in numbers]
        scored = [
            one for (told, one), got in zip(known, answers, strict=True) if one is not None and told == repr(list(got))
        ]
        if len(scored) < len(views):
            if all(one is not None for _, one in known) and known and not self._warned:
                self._warned = True
                log().warning(
                    f"{self.spec.name}: lmms-eval filters answers otherwise than when they came, so other cells might have been asked"
                )
            scored = (
                unscored
                if self._predict_only
                else self._scorer.score(doc, views, answers, from_first=0 in numbers, **kwargs)
            )
        cut = [(doc.doc_id, number) in self._unfinished for number in numbers]
        scored = [
            msgspec.structs.replace(one, unfinished=True) if ends else one
            for one, ends in zip(scored, cut, strict=True)
        ]
        if not self._predict_only:
            scored = self._references.named(doc.doc_id, scored, answers)
        if (
            0 not in numbers
        ):  # nothing was asked about the doc's own image, so its record begins with a view without scores
            scored, answers = [ScoredView(every[0]), *scored], [(), *answers]
        saw_its_own_image = self.spec.kind.swapped and self._table.wrong_image_of(doc.doc_id) is None
        if saw_its_own_image and not self._table.not_shown(doc.doc_id, views[0]):
            scored = [ScoredView(view, failed=_NO_WRONG_IMAGE) for view in views]
        return self._metrics_of(self._record(doc, scored, answers))

    # --- views that are left out ------------------------------------------------------------------

    @property
    def references(self) -> References:
        """What is known of the docs beside the model's answers: golds, uninformed answers, clusters."""
        return self._references

    @property
    def request_type(self) -> str:
        """What lmms-eval calls the task's requests: ``loglikelihood`` or ``generate_until``."""
        return (
            "loglikelihood"
            if (self._base.OUTPUT_TYPE or self._base.config.output_type) == "multiple_choice"
            else "generate_until"
        )

    @property
    def filters(self) -> Sequence[Any]:
        """The base's filter pipelines."""
        return list(self._base._filters or ())

    @property
    def null_docs(self) -> list[int]:
        """The evaluated docs that are also asked on another doc's image."""
        return (
            []
            if self._table.wrong is None
            else [doc_id for doc_id in self.evaluated if self._table.wrong_image_of(doc_id) is not None]
        )

    def rows(self) -> Any:
        """Return the docs of the split, without media where the base can."""
        return self._rows_without_media()

    def filter_now(self, instances: Sequence[Instance]) -> None:
        """Apply the base's filters to some requests while the model is still asked."""
        adapter = compat.adapter_of(getattr(self._base, "model_name", None))
        as_the_host_will(
            instances,
            self.filters,
            self.eval_docs_no_media,
            self._base.eval_docs,
            adapter,
            self._base.config,
            self.args,
        )

    def score_now(self, doc_id: int, filtered: Mapping[int, Sequence[Any]]) -> dict[int, Scalar]:
        """Score some views of a doc while the model is still asked; return the scalar of each by the primary metric.

        ``process_results`` takes these scores as they are, so what was decided by them holds.

        Args:
            doc_id: the doc.
            filtered: by number of the view, the filtered answers: one, or one per choice.
        """
        every, numbers = self._table.views_of(doc_id), sorted(filtered)
        answers = [self._answers(doc_id, every[number], filtered[number]) for number in numbers]
        docs = self.eval_docs if getattr(self.args, "process_with_media", False) else self.eval_docs_no_media
        scored = self._scorer.score(
            docs[doc_id], [every[number] for number in numbers], answers, from_first=0 in filtered
        )
        out: dict[int, Scalar] = {}
        for number, got, one in zip(numbers, answers, scored, strict=True):
            self._known[doc_id, number] = repr(list(got)), one
            usable = not every[number].n or self._table.why_unusable(doc_id, every[number].n) is None
            out[number] = one.scores.get(self.primary) if usable and not one.unscored else None
        return out

    def leave_out(self, asked: Mapping[int, Asked], numbers: Mapping[int, Sequence[int]]) -> None:
        """Take note of how docs were asked, and drop the requests that were not.

        A doc without any keeps those of its first view.

        Args:
            asked: by doc id, how each evaluated doc was asked.
            numbers: by doc id, the numbers of the views that were asked, for the docs of this rank.
        """
        self.asked, self._numbers = dict(asked), {doc_id: sorted(views) for doc_id, views in numbers.items()}
        kept = {doc_id: set(views) or {0} for doc_id, views in self._numbers.items()}
        self._instances = [
            one for one in self._instances or [] if one.doc_id not in kept or one.metadata["view"] in kept[one.doc_id]
        ]

    def _answers(self, doc_id: int, view: View, filtered: Sequence[Any]) -> Sequence[Any]:
        """Return the answers of one view, marked as failed calls where the model saw a grey image in place of the doc's."""
        why = self._table.not_shown(doc_id, view)
        return (
            [one if isinstance(one, Unanswered) else Unanswered(one, why, failed=True, native=one) for one in filtered]
            if why
            else filtered
        )

    def _record(self, doc: TaggedDoc, scored: Sequence[ScoredView], answers: Sequence[Sequence[Any]]) -> SampleRecord:
        """Return the record of a doc: its scored views, best cells and references, and why it is left out of a set."""
        mine = len(self._table.own_views_of(doc.doc_id))
        own = max(1, sum(number < mine for number in self._numbers_of(doc.doc_id)))
        wrong = self._wrong_image(doc.doc_id, *(of_wrong := (scored[own:], answers[own:])))
        scored, answers = scored[:own], answers[:own]
        shown = (
            asked := self.asked.get(doc.doc_id)
        ) is None or asked.steps > 0  # the image of another doc is not decoded for its record
        excluded: dict[Key, str] = {
            key: why for key in self.spec.parts if shown and (why := self._table.why_unusable(doc.doc_id, key))
        }
        failed = {one.view.set for one in scored if one.failed}
        if self._table.orders is not None and (fault := self._table.orders.of(doc.doc_id).fault):
            excluded |= dict.fromkeys((TURNS, *self.spec.sets), fault)
        no_score = {
            one.view.set
            for one in scored
            if self._scorer.says_unscored(one.items.get(self.primary)) and not one.unscored
        }
        for sets, why in (
            (failed, failures.REASON),
            (no_score if any(self.primary in one.items for one in scored) else set(), failures.UNSCORED),
        ):
            excluded |= {
                key: why for key in self.spec.sets if key not in excluded and sets & {None, key}
            }  # None: the full image
        sizes = self._table.sizes(doc.doc_id) if shown and self.spec.kind.needs_image else ()
        best = self._scorer.best_cells(scored, excluded)
        said_of = (scored, answers) if shown else ((), ())
        beside = (
            {}
            if self._predict_only
            else self._references.of(doc.doc_id, *said_of, of_wrong, list(best), self._scorer.keeps_apart)
        )
        tst = {} if self.text_only is None else self.text_only.record_of(doc.doc_id)
        return SampleRecord(
            self.spec.name,
            self.spec,
            doc.doc_id,
            sizes,
            tuple(scored),
            best,
            excluded,
            fields(doc, self.spec.options),
            **beside,
            tst=tst,
            wrong_image=wrong,
            images=self._table.sight(doc.doc_id) if sizes else "",
            clips=tuple(Clip(frames, round(seconds, 3)) for frames, seconds in self._table.clips(doc.doc_id))
            if sizes
            else (),
            asked=asked,
        )

    def _wrong_image(
        self, doc_id: int, scored: Sequence[ScoredView], answers: Sequence[Sequence[Any]]
    ) -> WrongImage | None:
        """Return the part of a record that holds the views on another doc's image; None where the doc has none."""
        source = self._table.wrong_image_of(doc_id)
        return (
            None
            if source is None
            else WrongImage(source, self._table.sizes(source), tuple(scored), tuple(map(said, answers)))
        )

    def _metrics_of(self, record: SampleRecord) -> dict[str, Any]:
        """Return what ``process_results`` returns for a record."""
        full, chosen = dict(record.views[0].items), self._scorer.chosen(record)
        from_m = next((view.from_m for view in record.views if view.from_m), None)
        patch = PatchItem(record.record(), full, self._scorer.whole(record), chosen, from_m)
        if self._predict_only:
            return {"patch": patch, **dict.fromkeys(self._base.aggregation())}
        ours: dict[str, Any] = dict.fromkeys(self.aggregations.derived)
        if any(
            min(asked.p) < 1 for asked in self.asked.values()
        ):  # the host would take a sample for the whole, in its own standard errors
            return {"patch": patch, **ours, **dict.fromkeys(self.aggregations.native)}
        if self.spec.kind.keeps_best:
            # The host's --baseline compares the first number in a log line whose key holds "score". That number must be
            # the full image's.
            ours |= {
                name: item
                for name, item in chosen.items()
                if not self._scorer.says_unscored(item) and "score" not in name.lower()
            }
        return {
            "patch": patch,
            **ours,
            **(full if full or not record.views[0].unscored else dict.fromkeys(self.aggregations.native)),
        }

    # --- metrics ------------------------------------------------------------------------------

    @property
    def primary(self) -> str:
        """The metric that the index is built on: the option's, else the only one, else the first."""
        return self.aggregations.primary

    def _scored_rows(self) -> Any:
        """Return the docs in the form that the host hands to scorers."""
        with_media = getattr(self.args, "process_with_media", False) or not hasattr(self._base, "eval_docs_no_media")
        return late(self._base.eval_docs if with_media else self._base.eval_docs_no_media)

    def _choose_primary(self, native: list[str]) -> str:
        """Return the metric that the index is built on, and prepare the line that says how it was chosen."""
        wanted, self._about_metric = self.spec.options.metric, ""
        if not native:
            raise CannotWrapError(f"{self.spec.name}: {self.spec.base} reports no metric")
        if wanted is not None and not self._predict_only:
            if wanted not in native and "metric" in self.spec.options.given:
                raise OptionError(
                    f"{self.spec.name}: {self.spec.base} has no metric {wanted!r}; allowed: {', '.join(native)}"
                )
            if wanted in native:
                return wanted
            self._about_metric = f"its profile's metric {wanted!r} is not there; "
        if len(native) > 1 and self.spec.sets:
            self._about_metric += f"{len(native)} metrics; the index is built on the first, {native[0]!r} (option 'metric' chooses another)"
        return native[0]

    def aggregation(self) -> dict[str, Any]:
        functions = self.aggregations.functions()
        return {"patch": functions["patch"], **self._base.aggregation()} if self._predict_only else functions

    def higher_is_better(self) -> dict[str, Any]:
        return self.aggregations.higher_is_better()

    def __deepcopy__(self, _: Any) -> WrappedTask:
        """Return the task itself: requests hold its methods, and a copied request must not copy the dataset."""
        return self

    def __repr__(self) -> str:
        return f"WrappedTask({self.spec.name}: {len(self._table.views)} views{' and the boxes' if self._boxes else ''} of {self._base!r})"


def was_shown(task: str, doc_id: int) -> bool:
    """Return whether a wrapped task could show all images of a doc, as far as it was asked; True for other tasks."""
    table = _tables.get(task)
    return table is None or not table.has_stand_in(doc_id)


def _copied(value: Any) -> Any:
    """Return a deep copy of a request's settings, ten times as fast as ``copy.deepcopy``: it is made for each view of each doc."""
    if isinstance(value, str | int | float | None):
        return value
    if type(value) is dict:
        return {key: _copied(one) for key, one in value.items()}
    return [_copied(one) for one in value] if type(value) is list else copy.deepcopy(value)


def _by_doc(instances: Sequence[Instance]) -> dict[int, list[Instance]]:
    out: dict[int, list[Instance]] = {}
    for inst in instances:
        out.setdefault(inst.doc_id, []).append(inst)
    return out


def _text_keys(value: Any) -> Any:
    """Return a config with the text "null" for each key None. YAML reads the bare word null as None.

    Why: the host sorts the keys of a config, which fails with None among texts.
    """
    if not isinstance(value, dict):
        return value
    return {"null" if key is None else key: _text_keys(inner) for key, inner in value.items()}
