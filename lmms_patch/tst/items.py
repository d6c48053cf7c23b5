"""Items, what a text-only diagnostic sees of docs, and predictions, what it says about them. Pure.

Source: TsT paper (https://arxiv.org/abs/2511.04655), 3.1: a diagnostic is trained on the non-visual features of k - 1
folds of the test set itself and predicts the held-out fold.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]
"""Places of items in a list of items, shape (m,)."""

Score = Callable[[int, str], float | None]
"""A function (place of the item, answer) -> native score on the metric's own scale; None where the scorer gives none."""

CHOICE = ("mc", "yesno")
"""Formats whose answer is one of the item's options."""


@dataclass(frozen=True)
class Item:
    """The parts of a doc shown to a text-only model, and the gold.

    Attributes:
        doc_id: its row in the base task's eval split.
        prompt: the whole prompt as the base task builds it, options and instructions included.
        question: the question without the words that all prompts of the task start with, and without the options where
        they are a field.
        format: one of ``answers.FORMATS``: mc, yesno, number, open, caption.
        options: for choice formats the option texts (``("left", "right")``, ``("yes", "no")``); empty otherwise.
        answers: for choice formats the answer for each option, spelled as the gold is (``("A", "B")``); as long as
        ``options``.
        golds: the gold answers, most frequent first, spelled as in ``answers``; empty where the doc has none.
        category: its question type; "" where the task names none.
        source: what it shows (image, scene, video); None where unknown.
        cluster: docs that are resampled together; None: each doc alone.
        key: the stable id: a text that stays the same when docs are added or reordered (``tst.keys``).
        extra: features that a profile function adds: name -> number or text.
        context: what the prompt says beside question, options and instructions (``tst.context``): a hint, a passage,
            earlier turns.
    """

    doc_id: int
    prompt: str
    question: str
    format: str
    options: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    golds: tuple[str, ...] = ()
    category: str = ""
    source: Hashable = None
    cluster: Hashable = None
    key: str = ""
    extra: Mapping[str, float | str] = field(default_factory=dict)
    context: str = ""

    @property
    def is_choice(self) -> bool:
        """Whether the item has options to choose the answer from."""
        return self.format in CHOICE and len(self.answers) > 0

    @property
    def right(self) -> int | None:
        """The place of the gold among the answers of a choice format; None where there is none."""
        return self.answers.index(self.golds[0]) if self.golds and self.golds[0] in self.answers else None

    @property
    def said(self) -> tuple[str, ...]:
        """What a language model says for each option of a choice format: the answers, or the option texts where the answers are mere places.

        Places (0, 1, ...) are the answers of tasks that are scored by log-likelihoods; their prompts list no options.
        """
        places = tuple(str(place) for place in range(len(self.answers)))
        return self.options if self.answers == places and len(self.options) == len(places) else self.answers

    @property
    def chance(self) -> float:
        """The probability of guessing right among the options (fraction); 0 without options."""
        return max(1, len(self.rights)) / len(self.answers) if self.is_choice else 0.0

    @property
    def rights(self) -> list[int]:
        """The places of all answers equal to the gold of a choice item; several where options are spelled alike."""
        return [place for place, answer in enumerate(self.answers) if answer == self.golds[0]] if self.golds else []


@dataclass(frozen=True)
class Prediction:
    """A diagnostic's prediction for a held-out item.

    Attributes:
        answer: the answer that goes to the native scorer.
        answers: the answers of the predictive distribution: for choice formats those of the item, in their order;
            otherwise golds of the training folds (rf), or the one answer that was given (lora).
        probabilities: their probabilities, same length; they sum to 1, or to less where the answer may be none of
            these.
    """

    answer: str
    answers: tuple[str, ...]
    probabilities: NDArray[np.float64]


class AnswerScores(Protocol):
    """What the native scorer gives for answers, as far as a diagnostic may ask (``rewards.Rewards``)."""

    @property
    def items(self) -> Sequence[Item]:
        """All items."""
        ...

    def of(self, place: int, answer: str) -> float:
        """Return the score of an answer on the item at a place; nan for an unscorable answer."""
        ...

    def vector(self, place: int, answers: tuple[str, ...]) -> NDArray[np.float64]:
        """Return the scores of several answers on the item at a place, shape (answers,)."""
        ...


class Prepared(Protocol):
    """A diagnostic after reading all items."""

    def predict(self, train: Places, test: Places, *, seed: int, groups: Places) -> list[Prediction]:
        """Fit on the items at ``train`` and return predictions for the items at ``test``, in their order.

        Args:
            train: places of the training items.
            test: places of the items to predict; none of them is in ``train``.
            seed: of everything random.
            groups: the group of every item, shape (n,): inner folds keep groups whole, as the folds do.
        """
        ...


class Diagnostic(Protocol):
    """A class of text-only models for training on a test set."""

    @property
    def name(self) -> str:
        """``rf`` or ``lora``."""
        ...

    def prepare(self, items: Sequence[Item], rewards: AnswerScores) -> Prepared:
        """Read the items once.

        Args:
            items: all items, in any order.
            rewards: the native scores, for diagnostics that choose the answer with the highest score.
        """
        ...
