"""The text-only side of a ``_tst<k>`` task: its docs as items, and what a diagnostic finds out about them."""

from __future__ import annotations

import dataclasses
import importlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lmms_patch.ask.answers import Answer, without_options
from lmms_patch.ask.references import Doc
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness.wrap.references import References, within
from lmms_patch.harness.wrap.references import field as field_of
from lmms_patch.harness.wrap.scorer import own_stream
from lmms_patch.runs.scoring import Scalar
from lmms_patch.text import log
from lmms_patch.tst.causes import causes
from lmms_patch.tst.checks import leaks
from lmms_patch.tst.diagnosis import Diagnosis, Job, Runner, diagnose, jobs_of, model_seed, scored
from lmms_patch.tst.folds import GROUPINGS, Grouping, Repeats, folds, grouping, repeats
from lmms_patch.tst.items import Diagnostic, Item, Prediction, Prepared
from lmms_patch.tst.keys import keys_of
from lmms_patch.tst.rewards import Rewards

MODELS = ("tst_rf", "tst_lora")
"""The harness models that answer ``_tst`` tasks."""


def vision_refusal(name: str, base: str, model: str) -> CannotWrapError:
    """The line for a model that cannot be cross-validated."""
    return CannotWrapError(
        f"{name}: {model} is not trained on the folds of a test set; allowed models: {' and '.join(MODELS)}; "
        f"to ask {model} without images, type --tasks {base}_blind"
    )


@dataclass(frozen=True)
class Found:
    """What a diagnostic found out about a task.

    Attributes:
        diagnostic: its name.
        described: its settings, in plain JSON types.
        headline: the grouping whose answers are scored: source where one is known.
        by_grouping: the cross-validations by grouping, the headline first.
        unusable: why a grouping was not done, by name.
        zero_shot: the untrained model's predictions, where it has any.
        zero_shot_s, zero_shot_scores: their bias scores and native scores, shape (n,).
        repeats: repeated texts and label conflicts.
        importance: rows of ``rf.Importance``; empty where the diagnostic has no features.
        causes: rows of ``causes.Cause``.
        seconds: how long it took.
    """

    diagnostic: str
    described: Mapping[str, Any]
    headline: str
    by_grouping: Mapping[str, Diagnosis]
    unusable: Mapping[str, str]
    repeats: Repeats
    zero_shot: Sequence[Prediction] | None = None
    zero_shot_s: Any = None
    zero_shot_scores: Any = None
    importance: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    causes: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    seconds: float = 0.0


class TextOnly:
    """The items of one task, their native scores, and what was found.

    Args:
        spec: what was asked.
        base: the native task.
        references: gives golds, options and prompts of the docs.
        rows: gives the docs without media, by doc id.
    """

    def __init__(self, spec: WrapSpec, base: Any, references: References, rows: Callable[[], Any]) -> None:
        self.spec, self._base, self._references, self._rows = spec, base, references, rows
        self.run_id = f"{time.time_ns()}-{os.getpid()}"
        """Makes the harness's response cache ask again: its answers would come without what is known of them."""
        self.found: Found | None = None
        self._lock = threading.Lock()

    @cached_property
    def items(self) -> list[Item]:
        """The evaluated docs.

        Raises:
            CannotWrapError: they cannot be read, or none has a gold.
        """
        plan, spec = self._references.plan, self.spec
        if plan is None:
            raise CannotWrapError(f"{spec.name}: the prompts or golds of {spec.base} cannot be read (see the warning above)")
        extra, rows = _features_function(spec), self._rows()
        out = [_item(doc, plan.answers[doc.doc_id], rows[doc.doc_id], spec, extra) for doc in self._references.docs]
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
        """Native scores of answers."""
        return Rewards(self.items, self.score, costly=self.spec.options.allow_judge)

    @cached_property
    def headline(self) -> Grouping:
        """The grouping of the headline number.

        Raises:
            OptionError: the grouping that the options name groups nothing.
        """
        wanted = self.spec.options.grouping
        found = grouping(self.items, "source" if wanted == "auto" else wanted)
        if not found.usable and wanted != "auto":
            raise OptionError(f"{self.spec.name}: grouping {wanted}: {found.reason}; allowed: auto, none")
        return found if found.usable else grouping(self.items, "none")

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
        """Whether docs have scores of their own that tell golds from other answers; not asked of a judge.

        Raises:
            CannotWrapError: they have not.
        """
        if self.spec.options.allow_judge:
            return
        golds = [place for place, item in enumerate(self.items) if item.golds]
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

    def item_of(self, doc_id: int) -> Item | None:
        """The item of a doc; None where it is not evaluated."""
        place = self.place.get(doc_id)
        return None if place is None else self.items[place]

    def keyed_items(self, field: str | None = None) -> list[Item]:
        """The items with their stable keys (``tst.keys``).

        Args:
            field: the doc field that holds them; default: the option ``key``, else a hash of the doc.
        """
        keys = keys_of(self._base.eval_docs, field or self.spec.options.key)
        return [dataclasses.replace(item, key=keys[item.doc_id]) for item in self.items]

    def column(self, name: str) -> list[Any]:
        """A doc field (``meta.removed``) of every item."""
        rows = self._rows()
        return [within(rows[item.doc_id], name) for item in self.items]

    def score(self, place: int, answer: str) -> Scalar:
        """The native score of an answer on an item; see ``items.Score``."""
        with self._lock:
            return self._references.scalar_of(self.items[place].doc_id, answer)

    def prepare(self, diagnostic: Diagnostic) -> Prepared:
        """A diagnostic that has read the items."""
        return diagnostic.prepare(self.items, self.rewards)

    def diagnose(
        self, diagnostic: Diagnostic, described: Mapping[str, Any], runner: Runner, *, everything: bool = True, check: bool = False
    ) -> Found:
        """Cross-validate; the result is kept for the records.

        Args:
            diagnostic: the text-only model class.
            described: its settings, for the results file.
            runner: does the folds.
            everything: the side-by-side groupings too, not the headline alone.
            check: first see on the first fold that nothing leaks (``tst.checks``).

        Raises:
            OptionError: the docs cannot be dealt to folds.
            CannotWrapError: something leaks.
        """
        start = time.monotonic()
        options = self.spec.options
        seeds = range(options.fold_seed, options.fold_seed + options.fold_seeds)
        with own_stream(f"{self.spec.name}/tst"):
            prepared = self.prepare(diagnostic)
            everyone = np.arange(len(self.items))
            jobs = jobs_of(everyone, self.folds, self.spec.folds, model_seed(options.seed, options.fold_seed))
            if check:
                self._check(diagnostic, jobs[0])
            found, unusable = {}, {}
            for name in dict.fromkeys([self.headline.name, *(GROUPINGS if everything else ())]):
                groups = grouping(self.items, name)
                if not groups.usable:
                    unusable[name] = groups.reason
                    continue
                try:
                    found[name] = diagnose(
                        prepared,
                        self.items,
                        self.rewards,
                        everyone,
                        groups,
                        k=self.spec.folds,
                        seeds=seeds,
                        seed=options.seed,
                        runner=runner,
                    )
                    log().info(f"{self.spec.name}, {_AS[name]}: {found[name].accuracy:.3f}")
                except OptionError as error:
                    if name == self.headline.name:
                        raise OptionError(f"{self.spec.name}: {error}") from None
                    unusable[name] = str(error)
            zero = self._zero_shot(prepared, runner)
            explain = getattr(prepared, "explain", None)
            importance = explain(jobs, self.headline.groups) if explain else []
            head = found[self.headline.name]
        self.found = Found(
            diagnostic.name,
            described,
            self.headline.name,
            found,
            unusable,
            repeats(self.items),
            *zero,
            [dataclasses.asdict(row) for row in importance],
            [dataclasses.asdict(row) for row in causes(self.items, head.s, head.chance)],
            time.monotonic() - start,
        )
        return self.found

    def _check(self, diagnostic: Diagnostic, fold: Job) -> None:
        def prepare(items: Sequence[Item]) -> Any:
            return diagnostic.prepare(items, self.rewards.regold(items))

        train, held, seed = fold
        assert train is not None
        moved = leaks(self.items, prepare, train, held, seed, self.headline.groups)
        if moved:
            more = f" (and {len(moved) - 1} more)" if len(moved) > 1 else ""
            raise CannotWrapError(f"{self.spec.name}: leak: {moved[0]}{more}; no number of this diagnostic can be trusted")
        log().info(f"{self.spec.name}: checked: golds of held-out docs move no feature, their texts none of a training doc")

    def _zero_shot(self, prepared: Prepared, runner: Runner) -> tuple[Any, Any, Any]:
        if not hasattr(prepared, "zero_shot"):
            return None, None, None
        everyone = np.arange(len(self.items))
        parts = runner(prepared, [(None, part, 0) for part in np.array_split(everyone, self.spec.folds)], self.headline.groups)
        predictions = [prediction for part in parts for prediction in part]
        return predictions, *scored(self.items, self.rewards, everyone, predictions)

    def answer(self, doc_id: int) -> str:
        """The held-out answer of a doc at the first fold seed."""
        assert self.found is not None
        return self.found.by_grouping[self.found.headline].answers[0][self.place[doc_id]]

    def record_of(self, doc_id: int) -> dict[str, Any]:
        """The object ``tst`` of a doc's record (docs/records.md); empty where nothing was found."""
        if self.found is None or doc_id not in self.place:
            return {}
        at, found = self.place[doc_id], self.found
        head, item = found.by_grouping[found.headline], self.items[at]
        assert head.folds is not None
        zero = None if found.zero_shot_s is None else float(found.zero_shot_s[at])
        s, chance = float(head.s[at]), float(head.chance[at])
        return {
            "diagnostic": found.diagnostic,
            "grouping": found.headline,
            "fold": int(head.folds[0][at]),
            "source": item.source,
            "answers": [answers[at] for answers in head.answers],
            "s": s,
            "s_minus_chance": s - chance,
            "chance": float(head.floor[at]),
            "delta": None if zero is None else s - zero,
            "zero_shot": None if zero is None else {"s": zero, "score": float(found.zero_shot_scores[at])},
            "scores": {name: d.scores[:, at].tolist() for name, d in found.by_grouping.items()},
            "baseline": {name: d.baseline[:, at].tolist() for name, d in found.by_grouping.items()},
        }

    def about(self) -> dict[str, Any]:
        """What was found about the task as a whole, for the results file; empty where nothing was."""
        if self.found is None:
            return {}
        found = self.found
        return {
            "diagnostic": found.diagnostic,
            "settings": dict(found.described),
            "folds": self.spec.folds,
            "grouping": found.headline,
            "unusable": dict(found.unusable),
            "texts": {"different": found.repeats.texts, "repeated": found.repeats.repeated, "conflicting": found.repeats.conflicting},
            "importance": list(found.importance),
            "causes": list(found.causes),
            "seconds": round(found.seconds, 1),
        }


_NO_ANSWER = "\N{SNOWMAN}"

_AS = {"none": "random folds", "source": "folds grouped by source", "text": "folds grouped by text"}


def _item(doc: Doc, answer: Answer, row: Any, spec: WrapSpec, extra: Callable[[Any], Mapping[str, float | str]] | None) -> Item:
    options = spec.options
    category = field_of(row, options.category) if options.category else field_of(row, options.stratum)
    source = doc.source
    choice = answer.format in ("mc", "yesno")
    texts = answer.texts if len(answer.texts) == len(answer.options) else answer.options
    return Item(
        doc.doc_id,
        doc.asked.prompt,
        without_options(doc.question) if choice and answer.texts else doc.question,
        answer.format,
        texts if choice else (),
        answer.options if choice else (),
        answer.golds,
        "" if category is None else str(category),
        source,
        doc.cluster if doc.cluster is not None else source,
        extra=extra(row) if extra else {},
    )


def _features_function(spec: WrapSpec) -> Callable[[Any], Mapping[str, float | str]] | None:
    """The profile's feature function.

    Raises:
        OptionError: it cannot be imported.
    """
    if spec.options.features is None:
        return None
    module, _, name = spec.options.features.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(
            f"{spec.name}: features names {spec.options.features!r}, which cannot be imported ({error}); write module.function"
        ) from None
    return found
