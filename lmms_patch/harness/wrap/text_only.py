"""The docs of a ``_tst<k>`` task as a text-only diagnostic sees them, and what it finds out about them.

A diagnostic is trained on all folds of a task but the last, and asked about that; so for each fold, for each grouping
of docs, and where need be on shuffled golds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pkgutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lmms_patch.ask.answers import Answer, without_options
from lmms_patch.ask.boxes import within
from lmms_patch.ask.references import Doc
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness.wrap.known import Golds, value_of
from lmms_patch.harness.wrap.references import References
from lmms_patch.harness.wrap.scorer import own_stream
from lmms_patch.runs.frames import text
from lmms_patch.runs.numbers import FOLDS, Null, to_json
from lmms_patch.runs.scoring import Scalar, plain
from lmms_patch.text import log
from lmms_patch.tst.causes import causes
from lmms_patch.tst.checks import leaks
from lmms_patch.tst.context import contexts
from lmms_patch.tst.copies import Copies, cluster_of, unnamed_copies
from lmms_patch.tst.diagnosis import Diagnosis, Job, Runner, diagnose, fold_seeds, jobs_of, model_seed, scored
from lmms_patch.tst.folds import GROUPINGS, Grouping, folds, grouping
from lmms_patch.tst.folds import headline as choose_headline
from lmms_patch.tst.items import Diagnostic, Item
from lmms_patch.tst.keys import keys_of
from lmms_patch.tst.null import has_many_categories, p_beyond_kinds, shuffled_null
from lmms_patch.tst.rewards import Rewards


@dataclass
class Found:
    """What a diagnostic found out about a task; empty before the diagnosis.

    Attributes:
        answers: by doc id, the held-out answer at the first fold seed of the headline.
        about: what goes into the footer of the task's table.
        columns: by doc id, the column ``tst``.
    """

    answers: Mapping[int, str] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


class TextOnly:
    """The items of a task, and their native scores.

    Attributes:
        found: what a diagnostic found out about them.

    Args:
        golds: gives golds, options and prompts of the docs.
        references: scores answers that no model gave.
    """

    def __init__(self, golds: Golds, references: References) -> None:
        self.spec, self._known, self._golds, self._references = golds.known.spec, golds.known, golds, references
        self.run_id = f"{time.time_ns()}-{os.getpid()}"
        """Makes the harness's response cache ask again: a cached answer would come without a diagnosis."""
        self.found = Found()
        self._lock = threading.Lock()

    @cached_property
    def items(self) -> list[Item]:
        """The evaluated docs.

        Raises:
            CannotWrapError: the docs cannot be read, or none has a gold.
        """
        plan, spec = self._golds.plan, self.spec
        if plan is None:
            raise CannotWrapError(
                f"{spec.name}: the prompts or golds of {spec.base} cannot be read (see the warning above)"
            )
        extra, rows = _features_function(spec), self._known.scored_rows
        out = [_item(doc, plan.answers[doc.doc_id], rows[doc.doc_id], spec, extra) for doc in self._golds.docs]
        # without golds there is nothing to train on
        if not any(item.golds for item in out):
            raise CannotWrapError(
                f"{spec.name}: no doc of {spec.base} has a gold answer, so nothing can be learned from them; name its field with 'gold'"
            )
        beside = contexts([item.prompt for item in out], [item.question for item in out])
        return [dataclasses.replace(item, context=context) for item, context in zip(out, beside, strict=True)]

    @cached_property
    def rewards(self) -> Rewards:
        """The native scores of answers on the items."""
        return Rewards(self.items, self.score, costly=self.spec.options.allow_judge)

    @cached_property
    def copies(self) -> Copies:
        """The copies among the items."""
        return Copies(self.items)

    @cached_property
    def headlines(self) -> tuple[Grouping, dict[str, str]]:
        """The grouping of the headline number, and by name why another was not taken.

        Raises:
            OptionError: the grouping that the options name groups nothing.
        """
        with _naming(self.spec):
            return choose_headline(
                self.copies, self.rewards, self.rewards.scale, self.spec.folds, self.spec.options.grouping
            )

    @property
    def headline(self) -> Grouping:
        """The grouping of the headline number."""
        return self.headlines[0]

    @cached_property
    def folds(self) -> Any:
        """The fold of each item at the first fold seed, shape (n,).

        Raises:
            OptionError: the docs, or their groups, are too few.
        """
        self.check()
        groups = self.headline.groups
        with _naming(self.spec):
            return folds(self.items, self.spec.folds, groups, self.spec.options.fold_seed)

    def check(self) -> None:
        """Refuse a task without scores of single docs, or whose golds score no more than a wrong answer. No judge is asked.

        Raises:
            CannotWrapError: no doc has a score of its own, or golds score no more than other answers.
        """
        if self.spec.options.allow_judge:
            return
        golds = [place for place, item in enumerate(self.items) if item.golds]
        # about a hundred golds, spread over the docs, tell enough
        some = golds[:: max(1, len(golds) // 100)]
        marks = [(self.score(place, self.items[place].golds[0]), self.score(place, _NO_ANSWER)) for place in some]
        if all(mark is None for mark, _ in marks):
            raise CannotWrapError(
                f"{self.spec.name}: no doc of {self.spec.base} has a score of its own; name the key of its items that holds one with 'score', "
                "or another metric with 'metric'"
            )
        if all(mark == other for mark, other in marks):
            first = self.items[some[0]]
            raise CannotWrapError(
                f"{self.spec.name}: the scorer of {self.spec.base} gives golds no more than any other answer (doc {first.doc_id}: "
                f"gold {first.golds[0]!r} scores {marks[0][0]}); name the field that it compares with, with 'gold'"
            )

    def keyed_items(self, field: str | None = None) -> list[Item]:
        """Return the items with their stable keys (``tst.keys``).

        Args:
            field: the doc field that holds the keys; default: the option ``key``, else a hash of the doc.
        """
        keys = keys_of(self._known.rows, field or self.spec.options.key)
        return [dataclasses.replace(item, key=keys[item.doc_id]) for item in self.items]

    def column(self, name: str) -> list[Any]:
        """Return a doc field, such as ``meta.removed``, of every item."""
        rows = self._known.scored_rows
        return [within(rows[item.doc_id], name) for item in self.items]

    def score(self, place: int, answer: str) -> Scalar:
        """Return the native score of an answer on an item (``items.Score``)."""
        with self._lock:
            return self._references.scalar_of(self.items[place].doc_id, answer)


@contextlib.contextmanager
def _naming(spec: WrapSpec) -> Iterator[None]:
    """Put the task's name before the message of an ``OptionError`` that is raised inside."""
    try:
        yield
    except OptionError as error:
        raise OptionError(f"{spec.name}: {error}") from None


def diagnosed(
    task: TextOnly,
    diagnostic: Diagnostic,
    described: Mapping[str, Any],
    runner: Runner,
    *,
    everything: bool = True,
    check: bool = False,
    shuffles: int = 0,
) -> Found:
    """Cross-validate a task.

    Args:
        task: the task.
        diagnostic: the text-only model class.
        described: its settings, for the results file.
        runner: trains and predicts the folds.
        everything: whether to do the other groupings too, and not the headline alone.
        check: whether to check first, on the first fold, that nothing leaks (``tst.checks``).
        shuffles: on at most how many sets of shuffled golds the diagnostic is cross-validated too, where they
            decide (``tst.null``).

    Raises:
        OptionError: the docs cannot be dealt to folds.
        CannotWrapError: the diagnostic leaks.
    """
    start, options, name, k = time.monotonic(), task.spec.options, task.spec.name, task.spec.folds
    (headline, unusable), items, rewards = task.headlines, task.items, task.rewards
    everyone = np.arange(len(items))
    # a diagnosis draws random numbers, and must leave the process's generators as they were
    with own_stream(f"{name}/tst"):
        jobs = jobs_of(everyone, task.folds, k, model_seed(options.seed, options.fold_seed))
        if check:
            _check_leaks(task, diagnostic, jobs[0])
        prepared: Any = diagnostic.prepare(items, rewards)
        done, more = _by_grouping(task, prepared, runner, GROUPINGS if everything else ())
        head, zero = done[headline.name], None
        # nothing is held out from a model without training: the parts only share the work
        if hasattr(prepared, "zero_shot"):
            parts = runner(prepared, [(None, part, 0) for part in np.array_split(everyone, k)], headline.groups)
            zero = scored(items, rewards, everyone, [one for part in parts for one in part])
        importance = prepared.explain(jobs, headline.groups) if hasattr(prepared, "explain") else ()
        null = _null(task, diagnostic, runner, head, shuffles)
    seconds = time.monotonic() - start
    log().info(f"{name}: TsT {head.accuracy:.3f} ({diagnostic.name}, {headline.name} grouping), {seconds:.0f} s")
    about = {
        "diagnostic": diagnostic.name,
        "settings": described,
        "folds": k,
        "grouping": headline.name,
        "unusable": {**unusable, **more},
        "texts": dataclasses.asdict(task.copies.repeats()),
        "importance": [dataclasses.asdict(row) for row in importance],
        "causes": [dataclasses.asdict(row) for row in causes(items, head.s, head.chance)],
        "shuffled": None if null is None else to_json(null),
        "seconds": round(seconds, 1),
    }
    copies = task.copies.classes(everyone, rewards, rewards.scale), unnamed_copies(items), items
    columns = {
        item.doc_id: _column(at, head, done, zero, source=text(item.source), copies=of, text=shared)
        for at, (of, shared, item) in enumerate(zip(*copies, strict=True))
    }
    return Found(dict(zip(columns, head.answers[0], strict=True)), about, columns)


def _by_grouping(
    task: TextOnly, prepared: Any, runner: Runner, others: Sequence[str]
) -> tuple[dict[str, Diagnosis], dict[str, str]]:
    """Return the cross-validations by grouping, the headline's first, and why a grouping was left out.

    Raises:
        OptionError: the docs cannot be dealt to the folds of the headline.
    """
    options, done, unusable = task.spec.options, dict[str, Diagnosis](), dict[str, str]()
    count = options.fold_seeds or fold_seeds(len(task.items))
    how: Any = {"k": task.spec.folds, "seeds": range(options.fold_seed, options.fold_seed + count), "runner": runner}
    for name in dict.fromkeys([task.headline.name, *others]):
        groups = grouping(task.items, name)
        try:
            if not groups.usable:
                raise OptionError(groups.reason)
            everyone = np.arange(len(task.items))
            done[name] = diagnose(prepared, task.items, task.rewards, everyone, groups, seed=options.seed, **how)
            log().info(f"{task.spec.name}, {FOLDS[name]}: {done[name].accuracy:.3f}")
        except OptionError as error:
            # without the headline there is no number; any further grouping may be missing
            if name == task.headline.name:
                raise OptionError(f"{task.spec.name}: {error}") from None
            unusable[name] = str(error)
    return done, unusable


def _check_leaks(task: TextOnly, diagnostic: Diagnostic, job: Job) -> None:
    """Check on a fold whether features tell the golds, or the texts, of held-out docs.

    Raises:
        CannotWrapError: they do.
    """

    def prepare(items: Sequence[Item]) -> Any:
        return diagnostic.prepare(items, task.rewards.regold(items))

    train, held, seed = job
    assert train is not None
    if moved := leaks(task.items, prepare, train, held, seed, task.headline.groups):
        more = f" (and {len(moved) - 1} more)" if len(moved) > 1 else ""
        raise CannotWrapError(f"{task.spec.name}: leak: {moved[0]}{more}; no number of this diagnostic can be trusted")
    log().info(
        f"{task.spec.name}: no leak: golds of held-out docs change no feature, and their texts change no feature of a training doc"
    )


def _null(task: TextOnly, diagnostic: Diagnostic, runner: Runner, found: Diagnosis, shuffles: int) -> Null | None:
    """Return what the diagnostic scores on shuffled golds; None where these decide nothing."""
    asked: list[Null] = []

    def null() -> Null:
        log().info(
            f"{task.spec.name}: the golds are shuffled and cross-validated, at most {shuffles} times, each as long as one fold seed"
        )
        options, k = task.spec.options, task.spec.folds
        how = {"k": k, "fold_seed": options.fold_seed, "seed": options.seed, "shuffles": shuffles}
        asked.append(shuffled_null(diagnostic, task.items, task.rewards, task.headline, found, **how, runner=runner))
        return asked[0]

    # the golds are shuffled only if the test comes to need them
    if shuffles:
        p_beyond_kinds(found, cluster_of(task.items), has_many_categories(task.items), null)
    return next(iter(asked), None)


def _column(
    at: int, head: Diagnosis, by_grouping: Mapping[str, Diagnosis], zero_shot: Any, **known: Any
) -> dict[str, Any]:
    """Return the column ``tst`` of the item at a place.

    Args:
        at: the place.
        head: the cross-validation whose answers are scored.
        by_grouping: all of them.
        zero_shot: bias scores and native scores of the untrained model, shape (n,) each; None where it gives no answers.
        known: what the column says beside.
    """
    assert head.folds is not None
    s = float(head.s[at])
    zero = None if zero_shot is None else [float(values[at]) for values in zero_shot]
    column = {
        **known,
        "fold": int(head.folds[0][at]),
        "answers": [text(answers[at]) for answers in head.answers],
        "s": s,
        "chance": float(head.floor[at]),
        # on the scale of s, which the metric's own floor need not be
        "s_minus_chance": s - float(head.chance[at]),
        "delta": None if zero is None else s - zero[0],
        "zero_s": zero and zero[0],
        "zero_score": zero and zero[1],
        "folds": [
            {"grouping": name, "seed": seed, "score": score, "baseline": baseline}
            for name, found in by_grouping.items()
            for seed, (score, baseline) in enumerate(
                zip(found.scores[:, at].tolist(), found.baseline[:, at].tolist(), strict=True)
            )
        ],
    }
    # a score that is missing is null in a table, and not a number that is none
    return dict(plain(column))


_NO_ANSWER = "\N{SNOWMAN}"
"""A text that is the gold of no doc."""


def _item(
    doc: Doc, answer: Answer, row: Any, spec: WrapSpec, extra: Callable[[Any], Mapping[str, float | str]] | None
) -> Item:
    """Return what a text-only model may know of a doc, as an item."""
    options = spec.options
    category = value_of(row, options.category) if options.category else value_of(row, options.stratum)
    choice = answer.format in ("mc", "yesno")
    texts = answer.texts if len(answer.texts) == len(answer.options) else answer.options
    return Item(
        doc_id=doc.doc_id,
        prompt=doc.asked.prompt,
        question=without_options(doc.question) if choice and answer.texts else doc.question,
        format=answer.format,
        options=texts if choice else (),
        answers=answer.options if choice else (),
        golds=answer.golds,
        category="" if category is None else str(category),
        source=doc.source,
        # docs that show the same are resampled together
        cluster=doc.cluster if doc.cluster is not None else doc.source,
        extra=extra(row) if extra else {},
    )


def _features_function(spec: WrapSpec) -> Callable[[Any], Mapping[str, float | str]] | None:
    """Import the feature function named by the profile.

    Raises:
        OptionError: the function cannot be imported.
    """
    if spec.options.features is None:
        return None
    try:
        return pkgutil.resolve_name(spec.options.features)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(
            f"{spec.name}: features names {spec.options.features!r}, which cannot be imported ({error}); write module.function"
        ) from None
