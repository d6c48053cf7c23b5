"""The docs of a ``_tst<k>`` task as a text-only diagnostic sees them, and what it finds out about them."""

from __future__ import annotations

import dataclasses
import importlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lmms_patch.ask.answers import Answer, without_options
from lmms_patch.ask.boxes import within
from lmms_patch.ask.references import Doc
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness.wrap.cross_validation import CrossValidation
from lmms_patch.harness.wrap.golds import Golds
from lmms_patch.harness.wrap.golds import field as field_of
from lmms_patch.harness.wrap.scorer import own_stream
from lmms_patch.harness.wrap.scores import Scores
from lmms_patch.runs.frames import text
from lmms_patch.runs.numbers import Null, to_json
from lmms_patch.runs.scoring import Scalar, plain
from lmms_patch.tst.causes import causes
from lmms_patch.tst.context import contexts
from lmms_patch.tst.copies import Copies, Repeats, unnamed_copies
from lmms_patch.tst.diagnosis import Diagnosis, Runner, jobs_of, model_seed
from lmms_patch.tst.folds import GROUPINGS, Grouping, folds
from lmms_patch.tst.folds import headline as choose_headline
from lmms_patch.tst.items import Diagnostic, Item
from lmms_patch.tst.keys import keys_of
from lmms_patch.tst.rewards import Rewards
from lmms_patch.tst.target_encoding import Array


@dataclass(frozen=True)
class Diagnosed:
    """What a diagnostic found out about a task.

    Attributes:
        diagnostic: its name.
        described: its settings, in plain JSON types.
        headline: the grouping whose answers are scored: by source, where sources are known.
        by_grouping: the cross-validations by grouping, the headline first.
        unusable: why a grouping was left out, by its name.
        zero_shot: bias scores and native scores of the untrained model, shape (n,) each, where it answers.
        repeats: repeated texts and label conflicts.
        copies: the class of each doc among its copies.
        texts: the number that the copies share which are resampled together (``copies.unnamed_copies``).
        importance: rows of ``tree_diagnostic.Importance``; empty where the diagnostic has no features.
        causes: rows of ``causes.Cause``.
        null: the same on shuffled golds, where they decide.
        seconds: how long the diagnosis took.
    """

    diagnostic: str
    described: Mapping[str, Any]
    headline: str
    by_grouping: Mapping[str, Diagnosis]
    unusable: Mapping[str, str]
    repeats: Repeats
    copies: Sequence[str]
    texts: Sequence[int | None]
    zero_shot: tuple[Array, Array] | None
    importance: Sequence[Mapping[str, Any]]
    causes: Sequence[Mapping[str, Any]]
    null: Null | None
    seconds: float

    def row_of(self, at: int, item: Item) -> dict[str, Any]:
        """Return the column ``tst`` of a doc (docs/tables.md).

        Args:
            at: the doc's place among the items.
            item: the doc.
        """
        head = self.by_grouping[self.headline]
        assert head.folds is not None
        zero = None if self.zero_shot is None else [float(values[at]) for values in self.zero_shot]
        s = float(head.s[at])
        return {
            "fold": int(head.folds[0][at]),
            "source": text(item.source),
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
                for name, found in self.by_grouping.items()
                for seed, (score, baseline) in enumerate(
                    zip(found.scores[:, at].tolist(), found.baseline[:, at].tolist(), strict=True)
                )
            ],
            "copies": self.copies[at],
            "text": self.texts[at],
        }

    def about(self, folds: int) -> dict[str, Any]:
        """Return what was found out about the task as a whole, for the results file.

        Args:
            folds: the number of folds.
        """
        return {
            "diagnostic": self.diagnostic,
            "settings": self.described,
            "folds": folds,
            "grouping": self.headline,
            "unusable": self.unusable,
            "texts": dataclasses.asdict(self.repeats),
            "importance": self.importance,
            "causes": self.causes,
            "shuffled": None if self.null is None else to_json(self.null),
            "seconds": round(self.seconds, 1),
        }


class TextOnly:
    """The items of a task, their native scores, and what a diagnostic found out about them.

    Args:
        spec: what was asked.
        base: the native task.
        golds: gives golds, options and prompts of the docs.
        scores: scores answers that no model gave.
        rows: gives the docs without media, by doc id.
    """

    def __init__(self, spec: WrapSpec, base: Any, golds: Golds, scores: Scores, rows: Callable[[], Any]) -> None:
        self.spec, self._base, self._golds, self._scores, self._rows = spec, base, golds, scores, rows
        self.run_id = f"{time.time_ns()}-{os.getpid()}"
        """Makes the harness's response cache ask again: a cached answer would come without a diagnosis."""
        self.found: Diagnosed | None = None
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
        extra, rows = _features_function(spec), self._rows()
        out = [_item(doc, plan.answers[doc.doc_id], rows[doc.doc_id], spec, extra) for doc in self._golds.docs]
        beside = contexts([item.prompt for item in out], [item.question for item in out])
        out = [dataclasses.replace(item, context=context) for item, context in zip(out, beside, strict=True)]
        # without golds there is nothing to train on
        if not any(item.golds for item in out):
            raise CannotWrapError(
                f"{spec.name}: no doc of {spec.base} has a gold answer, so nothing can be learned from them; name its field with 'gold'"
            )
        return out

    @cached_property
    def place(self) -> dict[int, int]:
        """The place of each doc id among the items."""
        return {item.doc_id: place for place, item in enumerate(self.items)}

    @cached_property
    def rewards(self) -> Rewards:
        """The native scores of answers on the items."""
        return Rewards(self.items, self.score, costly=self.spec.options.allow_judge)

    @cached_property
    def _headline(self) -> tuple[Grouping, dict[str, str]]:
        """The grouping of the headline number, and by name why another was not taken."""
        try:
            return choose_headline(
                self.copies, self.rewards, self.rewards.scale, self.spec.folds, self.spec.options.grouping
            )
        except OptionError as error:
            raise OptionError(f"{self.spec.name}: {error}") from None

    @property
    def headline(self) -> Grouping:
        """The grouping of the headline number.

        Raises:
            OptionError: the grouping that the options name groups nothing.
        """
        return self._headline[0]

    @cached_property
    def copies(self) -> Copies:
        """The copies among the items."""
        return Copies(self.items)

    @cached_property
    def folds(self) -> Any:
        """The fold of each item at the first fold seed, shape (n,).

        Raises:
            OptionError: the docs, or their groups, are too few.
        """
        self.check()
        groups = self.headline.groups
        try:
            return folds(self.items, self.spec.folds, groups, self.spec.options.fold_seed)
        except OptionError as error:
            raise OptionError(f"{self.spec.name}: {error}") from None

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
            raise CannotWrapError(
                f"{self.spec.name}: the scorer of {self.spec.base} gives golds no more than any other answer (doc {self.items[some[0]].doc_id}: "
                f"gold {self.items[some[0]].golds[0]!r} scores {marks[0][0]}); name the field that it compares with, with 'gold'"
            )

    def keyed_items(self, field: str | None = None) -> list[Item]:
        """Return the items with their stable keys (``tst.keys``).

        Args:
            field: the doc field that holds the keys; default: the option ``key``, else a hash of the doc.
        """
        keys = keys_of(self._base.eval_docs, field or self.spec.options.key)
        return [dataclasses.replace(item, key=keys[item.doc_id]) for item in self.items]

    def column(self, name: str) -> list[Any]:
        """Return a doc field, such as ``meta.removed``, of every item."""
        rows = self._rows()
        return [within(rows[item.doc_id], name) for item in self.items]

    def score(self, place: int, answer: str) -> Scalar:
        """Return the native score of an answer on an item (``items.Score``)."""
        with self._lock:
            return self._scores.scalar_of(self.items[place].doc_id, answer)

    def diagnose(
        self,
        diagnostic: Diagnostic,
        described: Mapping[str, Any],
        runner: Runner,
        *,
        everything: bool = True,
        check: bool = False,
        shuffles: int = 0,
    ) -> Diagnosed:
        """Cross-validate the task, and keep the result for the records.

        Args:
            diagnostic: the text-only model class.
            described: its settings, for the results file.
            runner: trains and predicts the folds.
            everything: whether to do the other groupings too, and not the headline alone.
            shuffles: on at most how many sets of shuffled golds the diagnostic is cross-validated too, where they
            decide (``tst.null``).
            check: whether to check first, on the first fold, that nothing leaks (``tst.checks``).

        Raises:
            OptionError: the docs cannot be dealt to folds.
            CannotWrapError: the diagnostic leaks.
        """
        start, options, headline = time.monotonic(), self.spec.options, self.headline
        everyone = np.arange(len(self.items))
        # a diagnosis draws random numbers, and must leave the process's generators as they were
        with own_stream(f"{self.spec.name}/tst"):
            jobs = jobs_of(everyone, self.folds, self.spec.folds, model_seed(options.seed, options.fold_seed))
            validation = CrossValidation(self.spec, self.items, self.rewards, headline, jobs, diagnostic, runner)
            if check:
                validation.check()
            by_grouping, others = validation.by_grouping(GROUPINGS if everything else ())
            zero_shot, importance = validation.zero_shot(), validation.importance()
            head = by_grouping[headline.name]
            null = validation.null(head, shuffles)
        self.found = Diagnosed(
            diagnostic=diagnostic.name,
            described=described,
            headline=headline.name,
            by_grouping=by_grouping,
            unusable={**self._headline[1], **others},
            repeats=self.copies.repeats(),
            copies=self.copies.classes(everyone, self.rewards, self.rewards.scale),
            texts=unnamed_copies(self.items),
            zero_shot=zero_shot,
            importance=importance,
            causes=[dataclasses.asdict(row) for row in causes(self.items, head.s, head.chance)],
            null=null,
            seconds=time.monotonic() - start,
        )
        return self.found

    def answer(self, doc_id: int) -> str:
        """Return the held-out answer of a doc at the first fold seed."""
        assert self.found is not None
        return self.found.by_grouping[self.found.headline].answers[0][self.place[doc_id]]

    def row_of(self, doc_id: int) -> dict[str, Any] | None:
        """Return the column ``tst`` of a doc; None where there is no diagnosis, or the doc is not evaluated."""
        place = self.place.get(doc_id)
        if self.found is None or place is None:
            return None
        # a score that is missing is null in a table, and not a number that is none
        return dict(plain(self.found.row_of(place, self.items[place])))

    def about(self) -> dict[str, Any]:
        """Return what was found out about the task as a whole, for the results file; empty where there is no diagnosis."""
        return {} if self.found is None else self.found.about(self.spec.folds)


_NO_ANSWER = "\N{SNOWMAN}"
"""A text that is the gold of no doc."""


def _item(
    doc: Doc, answer: Answer, row: Any, spec: WrapSpec, extra: Callable[[Any], Mapping[str, float | str]] | None
) -> Item:
    """Return what a text-only model may know of a doc, as an item."""
    options = spec.options
    category = field_of(row, options.category) if options.category else field_of(row, options.stratum)
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
    module, _, name = spec.options.features.rpartition(".")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(
            f"{spec.name}: features names {spec.options.features!r}, which cannot be imported ({error}); write module.function"
        ) from None
    return function
