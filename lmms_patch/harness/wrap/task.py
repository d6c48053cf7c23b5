"""A native task object, wrapped: V requests per doc, one scored doc, and the prompts and scorers of the base. This is what lmms-eval calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from lmms_eval.api.instance import Instance
from lmms_eval.api.task import Task
from lmms_eval.utils import create_iterator

from lmms_patch.ask.spec import WrapSpec
from lmms_patch.ask.views import DESCRIBE
from lmms_patch.errors import CannotWrapError, PatchError
from lmms_patch.harness import compat
from lmms_patch.harness.asking import quick
from lmms_patch.harness.names.configs import options_over, vision_refusal
from lmms_patch.harness.refuse import refuse
from lmms_patch.harness.video.clip import sampling_of
from lmms_patch.harness.wrap.docs import TaggedDoc, TaggedDocs, VariantDocs
from lmms_patch.harness.wrap.known import AskPlan, Known, RunState
from lmms_patch.harness.wrap.requests import NO_REPEATS, Requests, by_doc, check_base, descriptions, look, tell_judged
from lmms_patch.harness.wrap.rows import Recorder
from lmms_patch.harness.wrap.session import Session
from lmms_patch.text import log

_OfBase: Any = type("_OfBase", (), {name: property(attrgetter(f"_base.{name}")) for name in compat.HANDED_ON})
"""What ``Task`` defines would hide what the base has, so this class stands before it."""


class Delegate(_OfBase, Task):
    """A task which hands every undefined attribute to ``_base``; a subclass sets ``_base`` first.

    ``compat.HANDED_ON`` lists what the base answers by name; tests/harness/wrap/test_task.py what a subclass answers, and
    what reaches the base through ``__getattr__``.
    """

    _base: Any

    def __getattr__(self, name: str) -> Any:
        # while a copy is being made there is no base, and looking for it here would never end
        if name.startswith("__") or name == "_base":
            raise AttributeError(name)
        return getattr(self._base, name)

    def test_docs(self) -> Any:
        return TaggedDocs(self._base.test_docs()) if self.has_test_docs() else None

    def validation_docs(self) -> Any:
        return TaggedDocs(self._base.validation_docs()) if self.has_validation_docs() else None

    def doc_iterator(
        self, *, rank: int = 0, limit: int | None = None, world_size: int = 1, offset: int = 0
    ) -> Iterator[Any]:
        most = int(limit) if limit else None
        return create_iterator(
            enumerate(self.eval_docs), rank=int(rank), limit=most, world_size=int(world_size), offset=offset
        )


class WrappedTask(Delegate):
    """A task of the harness which asks every doc in several views.

    The task has a name of its own, but shares the config object of its base.

    Attributes:
        spec: what was asked, with all options filled in.
        session: the parts of the task.
        dataset: the splits by name, as adapters index them. The eval split is the table of all views.
        evaluated: the docs of all ranks that are evaluated; known with the requests.
        recorder: scores its docs.
        requests: clones the base's requests.
        describing: a request for a description of each doc; none where no description is asked for.
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
        self.spec = dataclasses.replace(spec, options=options_over(base.config.metadata, spec, base.config.task))
        check_base(base, self.spec)
        self._config = renamed(compat.own_config(base), self.spec)
        self._instances: list[Instance] | None = None
        self.evaluated: list[int] = []
        self.describing: list[Instance] = []
        self._state = RunState()
        self._frames_from = ""
        """What says how many frames of a video the model takes; "" where nothing does."""
        self._split = base.config.test_split if base.has_test_docs() else base.config.validation_split
        self._use(Session(Known.of(base, self.spec, self._state)))

    def _use(self, session: Session) -> None:
        """Take the parts of a session in place of those before."""
        self.session, self.recorder = session, Recorder(session)
        # a chat request has the function as its second argument, a simple request as its third
        shown, place = (self.doc_to_messages, 1) if session.known.chat else (self.doc_to_visual, 2)
        self.requests = Requests(session, shown, place)
        # a new mapping: the base's dataset must keep its split
        self.dataset = {**{k: self._base.dataset[k] for k in self._base.dataset}, self._split: session.table}

    def _remake(self, *, predict_only: bool) -> None:
        """Make all parts anew, for changed options; clips stay of the same frames."""
        session = Session(Known.of(self._base, self.spec, self._state, predict_only=predict_only))
        session.table.shelf.take(self.table.shelf.sampling)
        self._use(session)

    @property
    def task_name(self) -> str:
        return self.spec.name

    def set_config(self, key: str, value: Any, update: bool = False) -> None:
        """Set a key of the base's config. Refuse ``repeats`` above 1, since the host would take views for repeats."""
        if key == "repeats" and value != 1:
            refuse(CannotWrapError(f"{self.spec.name}: {NO_REPEATS}"))
        self._base.set_config(key, value, update)

    def dump_config(self) -> dict[str, Any]:
        """Return the base's config; under ``lmms_patch``, all settings with an effect on views or index."""
        return {**_text_keys(self._base.dump_config()), "lmms_patch": self.session.described()}

    def override_metric(self, metric_name: str) -> None:
        """Keep answers only, and score nothing: the host calls this for ``--predict_only``."""
        self._base.override_metric(metric_name)
        self._remake(predict_only=True)

    @property
    def args(self) -> Any:
        """The host's command-line arguments, set by the host before scoring."""
        return self._state.args

    @args.setter
    def args(self, given: Any) -> None:
        self._state.note(args=given)

    @property
    def table(self) -> VariantDocs:
        """All views of all docs."""
        return self.session.table

    @property
    def eval_docs(self) -> Any:
        return self.session.docs

    @property
    def eval_docs_no_media(self) -> Any:
        return TaggedDocs(self.session.known.plain_rows)

    # --- requests -----------------------------------------------------------------------------

    def show_frames_of(self, model: Any) -> None:
        """Make clips of the frames taken by a model from a video."""
        sampling, self._frames_from = sampling_of(model, self.spec.options.frames)
        self.table.shelf.take(sampling)

    def build_all_requests(self, **kwargs: Any) -> None:
        """Let the base build its requests, and clone each of them once per view.

        Before the first request, refuse what only the data shows, such as docs whose media are not images.
        """
        name, known = self.spec.name, self.session.known
        if kwargs.get("cache_requests"):
            log().warning(f"{name}: --cache_requests is ignored: its key does not know the views")
        # only now it is known whether there is an index
        if known.about_primary and not known.predict_only:
            log().warning(f"{name}: {known.about_primary}")
        self._base.build_all_requests(**{**kwargs, "cache_requests": False, "rewrite_requests_cache": False})
        native = by_doc(compat.taken_requests(self._base))
        limits = kwargs.get("limit"), kwargs.get("offset")
        # the docs of all ranks, as a single process would count them
        self.evaluated = [i for i, _ in create_iterator(enumerate(range(len(self.eval_docs))), 0, 1, *limits)]
        # the plan of an earlier run does not hold, nor its scores
        self._state.note(plan=AskPlan())
        self.recorder = Recorder(self.session)
        self.session.evaluate(self.evaluated)
        try:
            look(self.session, self._frames_from, self.evaluated, list(native))
            if self.spec.leaves_out and self.evaluated:
                self._check_asking()
            if self.session.text_only is not None:
                # docs that cannot be cross-validated are refused before the model answers
                _ = self.session.text_only.folds
            if self.spec.options.captions and self.spec.kind.captions:
                self.table.captions.update(descriptions(self.session, self.evaluated))
            self._instances = [one for of_doc in native.values() for one in self.requests.of_views(of_doc)]
            asked = native.values() if DESCRIBE in self.table.views else ()
            self.describing = list(map(self.requests.describing, asked))
        except PatchError as error:
            refuse(error)
        tell_judged(self.session, list(native))

    def _check_asking(self) -> None:
        """Log the cost of leaving views out.

        Where nothing can be left out, refuse if the user asked to leave views out; else ask all views, and say why.

        Raises:
            CannotWrapError, OptionError: the user asked for what is not possible.
        """
        options, known = self.spec.options, self.session.known
        plan, why = quick.plan(self.session, self.evaluated)
        if not why or options.quick or "exit" in options.given:
            self._state.note(plan=plan)
            log().info(quick.check(self.session, self.evaluated, plan, why))
            return
        log().info(f"{self.spec.name}: all {self.spec.kind.words.parts} of each doc are asked: {why}")
        self.spec = dataclasses.replace(self.spec, options=options.model_copy(update={"exit": False}))
        self._remake(predict_only=known.predict_only)
        self.session.evaluate(self.evaluated)

    def take(self, plan: AskPlan) -> None:
        """Note how docs were asked, and drop the requests not made.

        A doc without any keeps those of its first view.
        """
        self._state.note(plan=plan)
        kept = {doc_id: set(views) or {0} for doc_id, views in plan.numbers.items()}
        self._instances = [
            one for one in self._instances or [] if one.doc_id not in kept or one.metadata["view"] in kept[one.doc_id]
        ]

    def doc_to_visual(self, doc: Any) -> list[Any]:
        """Return the images of a doc's view, whichever wrapped task the doc belongs to."""
        return _table_of(doc, self.spec, self._base).visuals(doc)

    def doc_to_messages(self, doc: Any) -> list[dict[str, Any]]:
        """Return the messages of a doc's view, whichever wrapped task the doc belongs to."""
        return _table_of(doc, self.spec, self._base).messages(doc)

    # --- scoring ------------------------------------------------------------------------------

    def apply_filters(self) -> None:
        self.recorder.apply_filters(self._instances or [], self._filters)

    def process_results(self, doc: Any, results: Sequence[Any], **kwargs: Any) -> dict[str, Any]:
        return self.recorder.process_results(doc, results, **kwargs)

    def aggregation(self) -> dict[str, Any]:
        functions = self.session.aggregations.functions()
        only_kept = self.session.known.predict_only
        return {"patch": functions["patch"], **self._base.aggregation()} if only_kept else functions

    def higher_is_better(self) -> dict[str, Any]:
        return self.session.aggregations.higher_is_better()

    def __deepcopy__(self, _: Any) -> WrappedTask:
        """Return the task itself: requests hold its methods, and a copied request must not copy the dataset."""
        return self

    def __repr__(self) -> str:
        boxes = " and the boxes" * (self.table.boxes is not None)
        return f"WrappedTask({self.spec.name}: {len(self.table.views)} views{boxes} of {self._base!r})"


def _table_of(doc: Any, spec: WrapSpec, base: Any) -> VariantDocs:
    """Return a doc's table.

    Refuse a doc that the adapter did not fetch by its id, and a ``_tst`` task for a model that looks.
    """
    if not isinstance(doc, TaggedDoc) or doc.table is None:
        unknown = (
            "the model's adapter shows a doc that it did not fetch by its id; this adapter cannot run wrapped tasks"
        )
        refuse(CannotWrapError(f"{spec.name}: {unknown}"))
    if doc.table.text_only is not None:
        refuse(vision_refusal(spec, str(getattr(base, "model_name", None) or "this model")))
    return doc.table


def renamed(config: Any, spec: WrapSpec) -> Any:
    """Give a config, which base and wrapper share, the wrapped name."""
    config.task = spec.name
    if config.task_alias:
        config.task_alias = f"{config.task_alias}_{spec.suffix}"
    if spec.leaves_out and spec.options.quick:
        config.task_alias = f"{config.task_alias or spec.name} (estimates)"
    return config


def _text_keys(value: Any) -> Any:
    """Return a config with the text "null" for each key None. YAML reads the bare word null as None.

    Why: the host sorts the keys of a config, which fails with None among texts.
    """
    if not isinstance(value, dict):
        return value
    return {"null" if key is None else key: _text_keys(inner) for key, inner in value.items()}
