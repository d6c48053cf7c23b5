"""``tst_rf``: a text-only diagnostic with trees, on features that nobody wrote by hand.

- Choice formats: "is this option right?" for each option, normalised within the item.
- Numbers whose scorer rewards nearness: a distribution over the training golds of the category, and the answer that the
  scorer rewards most under it.
- Open answers, and numbers that are right or wrong: a few training golds as options (``tst.candidates``); "none of them"
  is also possible.

Source: TsT paper (https://arxiv.org/abs/2511.04655), 3.3 and B.2.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lmms_patch.ask.answers import as_number
from lmms_patch.errors import OptionError, require
from lmms_patch.stats.resample import generator
from lmms_patch.tst.candidates import CANDIDATES, Candidates
from lmms_patch.tst.features import Features, NumberTable, OptionTable
from lmms_patch.tst.items import AnswerScores, Item, Places, Prediction
from lmms_patch.tst.linear import MOST_ROWS as MOST_LINEAR
from lmms_patch.tst.options import OptionRows
from lmms_patch.tst.rewards import Values, rewards_nearness, values_of
from lmms_patch.tst.target_encoding import inner_folds
from lmms_patch.tst.trees import ModelSettings, fit_number, fit_right

Array = NDArray[np.float64]

MOST_PERMUTED = 8
"""How many groups of features get a permutation importance, per kind of item."""
ROWS_AT_ONCE = 400_000
"""The most rows of all folds in work at the same time (about 5 kB each): bounds the memory whatever the number of threads."""


@dataclass(frozen=True)
class RfDiagnostic:
    """The tree diagnostic with its settings.

    Attributes:
        settings: the model class and its size.

    Raises:
        PatchError: LightGBM or scikit-learn is not installed.
    """

    settings: ModelSettings = field(default_factory=ModelSettings)

    def __post_init__(self) -> None:
        require("tst")

    @property
    def name(self) -> str:
        return "rf"

    def prepare(self, items: Sequence[Item], rewards: AnswerScores) -> PreparedRf:
        return PreparedRf(items, rewards, self.settings)


@dataclass(frozen=True)
class Importance:
    """The importance of a group of features.

    Attributes:
        kind: kind of items: options, numbers, open answers.
        feature: the group.
        gain: its share of all gain (boosting) or of Gini importance (forest), 0..1.
        permutation: native score lost when it is shuffled among held-out rows (fraction); None where it was not
            computed.
    """

    kind: str
    feature: str
    gain: float
    permutation: float | None


@dataclass(frozen=True)
class Ready:
    """A model fitted on a kind of item.

    Attributes:
        kind: the kind of items.
        features: of all rows.
        importance: of each feature.
        rows: a function from places of items to their rows.
        predict: a function from the values of all rows and the asked places to predictions, by place among all items.
    """

    kind: str
    features: Features
    importance: Array
    rows: Callable[[Places], Places]
    predict: Callable[[NDArray[np.float32], Places], dict[int, Prediction]]


class PreparedRf:
    """Items divided into kinds and rows; nothing here depends on folds."""

    def __init__(self, items: Sequence[Item], rewards: AnswerScores, settings: ModelSettings) -> None:
        self.items, self._rewards, self._settings = items, rewards, settings
        self._choice = np.array([i for i, item in enumerate(items) if item.is_choice], np.intp)
        # Where the scorer gives nothing for being near, a number is an open answer like any other.
        near = {category for category, places in _numbers_of(items).items() if rewards_nearness(rewards, places)}
        self._number = np.array(
            [i for i, item in enumerate(items) if item.format == "number" and item.category in near], np.intp
        )
        self._open = np.setdiff1d(np.arange(len(items)), np.union1d(self._choice, self._number))
        self._has_gold = np.array([bool(item.golds) for item in items], bool)
        self._has_gold[self._choice] &= np.array([items[i].right is not None for i in self._choice], bool)
        self._has_gold[self._number] &= np.array(
            [bool(items[i].golds) and as_number(items[i].golds[0]) is not None for i in self._number], bool
        )
        rows = sum(len(items[i].options) for i in self._choice) + len(self._number) + len(self._open) * CANDIDATES
        if settings.model == "linear" and rows > MOST_LINEAR:
            raise OptionError(
                f"model=linear reads at most {MOST_LINEAR:,} docs times options, this task has {rows:,}; type model=boosting"
            )
        # Each fold holds a table of all rows, so large tasks run fewer folds at a time.
        self._room = threading.Semaphore(max(1, ROWS_AT_ONCE // max(1, rows)))

    @cached_property
    def _options(self) -> OptionTable:
        return OptionTable(OptionRows([self.items[i] for i in self._choice]))

    @cached_property
    def _numbers(self) -> NumberTable:
        return NumberTable([self.items[i] for i in self._number])

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates([self.items[i] for i in self._open])

    def _fit_choice(self, train: Places, seed: int, groups: Places, settings: ModelSettings) -> Ready:
        features = self._options.features(train, groups, seed, **settings.parts)
        answers = [item.answers for item in self._options.rows.items]
        return _ready("options", self._options.rows, features, settings, seed, self._choice, answers)

    def _fit_number(self, train: Places, seed: int, groups: Places, settings: ModelSettings) -> Ready | None:
        table = self._numbers
        if not len(train):
            return None
        features = table.features(train, groups, seed, **settings.parts)
        value, spans, count = np.zeros(len(table.items), np.intp), {}, 0
        # Values of all categories share one numbering; a category's part of it is its span.
        for category in np.unique(table.category[train]):
            own = train[table.category[train] == category]
            values = values_of(self._rewards, self._number[own])
            value[own] = count + values.place
            spans[int(category)] = count, values
            count += len(values.texts)
        target, _ = table.standardised(train)
        density = fit_number(features, target, value, count, settings, seed)

        def predict(values: NDArray[np.float32], asked: Places) -> dict[int, Prediction]:
            rows = density.of(values[asked])
            return {
                int(self._number[i]): _rewarded(row, spans.get(int(table.category[i])))
                for i, row in zip(asked, rows, strict=True)
            }

        return Ready("numbers", features, density.importance, lambda asked: asked, predict)

    def _fit_open(self, train: Places, seed: int, groups: Places, settings: ModelSettings) -> Ready | None:
        items = [self.items[i] for i in self._open]
        candidates, right = self._candidates.of(train, inner_folds(train, groups, len(items), seed))
        if not len(train) or not any(candidates):
            return None
        table = OptionTable(OptionRows(items, candidates, right))
        features = table.features(train, groups, seed, **settings.parts)
        return _ready("open answers", table.rows, features, settings, seed, self._open, candidates)

    def _fits(
        self, train: Places, test: Places, seed: int, groups: Places, settings: ModelSettings | None = None
    ) -> Iterator[tuple[Places, Places, Ready | None]]:
        """Yield for each kind of item in ``test``: all its items, the asked items (places among all), and the fit.

        ``settings``: others than its own.
        """
        train = train[self._has_gold[train]]
        for places, fit in (
            (self._choice, self._fit_choice),
            (self._number, self._fit_number),
            (self._open, self._fit_open),
        ):
            asked = np.flatnonzero(np.isin(places, test))
            if len(asked):
                yield (
                    places,
                    asked,
                    fit(np.flatnonzero(np.isin(places, train)), seed, groups[places], settings or self._settings),
                )

    def predict(self, train: Places, test: Places, *, seed: int, groups: Places) -> list[Prediction]:
        """Predict as ``items.Prepared`` says. Training items without a gold are left out."""
        predictions: dict[int, Prediction] = {}
        with self._room:
            for places, asked, ready in self._fits(train, test, seed, groups):
                predictions |= (
                    {int(places[i]): _nothing() for i in asked}
                    if ready is None
                    else ready.predict(ready.features.values, asked)
                )
        return [predictions[int(place)] for place in test]

    def features(self, train: Places, seed: int, groups: Places) -> list[Features]:
        """Return the models' features, a table for each kind of item, for the leak checks (``checks``)."""
        return [
            ready.features
            for _, _, ready in self._fits(train, np.arange(len(self.items)), seed, groups)
            if ready is not None
        ]

    def explain(self, jobs: Sequence[tuple[Places, Places, int]], groups: Places) -> list[Importance]:
        """Return the features behind the diagnostic's answers, over the folds of a cross-validation.

        Trees are asked without the linear model beside them, which reads the same words and could not say which.

        Args:
            jobs: the folds: places to train on, places to predict, seed.
            groups: the group of every item.

        Returns:
            Importances by kind of item and feature, the most important first.
        """
        gain: Counter[tuple[str, str]] = Counter()
        lost: dict[tuple[str, str], list[float]] = defaultdict(list)
        items: Counter[str] = Counter()
        # Trees alone: the linear model reads the same words and could not say which of them counts.
        alone = dataclasses.replace(self._settings, beside=False)
        for train, test, seed in jobs:
            for places, asked, ready in self._fits(train, test, seed, groups, alone):
                if ready is None:
                    continue
                items[ready.kind] += len(asked)
                for name, share in zip(ready.features.names, ready.importance, strict=True):
                    gain[ready.kind, group_of(name)] += share * len(asked)
                for name, drop in self._permuted(places, asked, ready, seed).items():
                    lost[ready.kind, name].append(drop * len(asked))
        rows = [
            Importance(
                kind,
                name,
                float(total / items[kind]),
                float(sum(lost[kind, name]) / items[kind]) if (kind, name) in lost else None,
            )
            for (kind, name), total in gain.items()
            if total > 0
        ]
        return sorted(rows, key=lambda row: (row.kind, -row.gain, row.feature))

    def _permuted(self, places: Places, asked: Places, ready: Ready, seed: int) -> dict[str, float]:
        """Return the accuracy lost by shuffling each of the most important groups of features among held-out rows."""
        groups: Counter[str] = Counter()
        for name, share in zip(ready.features.names, ready.importance, strict=True):
            groups[group_of(name)] += share
        rows, stream = ready.rows(asked), generator(seed)
        whole = self._accuracy(ready.predict(ready.features.values, asked))
        out = {}
        for group, share in groups.most_common(MOST_PERMUTED):
            if share <= 0:
                break
            columns = [j for j, name in enumerate(ready.features.names) if group_of(name) == group]
            values = ready.features.values.copy()
            # Whole rows of a group of columns are shuffled together, which keeps how the columns belong together.
            values[rows[:, None], columns] = values[stream.permutation(rows)[:, None], columns]
            out[group] = whole - self._accuracy(ready.predict(values, asked))
        return out

    def _accuracy(self, predictions: Mapping[int, Prediction]) -> float:
        scores = [self._rewards.of(place, p.answer) for place, p in predictions.items() if self.items[place].golds]
        return float(np.nanmean(scores)) if scores else 0.0


def group_of(feature: str) -> str:
    """Return the group of a feature: its name without the statistic."""
    if "(TF-IDF)" in feature:
        return "TF-IDF of the texts"
    return feature.removesuffix(", relative").partition(":")[0]


def _ready(
    kind: str,
    rows: OptionRows,
    features: Features,
    settings: ModelSettings,
    seed: int,
    places: Places,
    answers: Sequence[Sequence[str]],
) -> Ready:
    """Fit a model of which options are right.

    Args:
        kind: the kind of items.
        rows: their options.
        features: of the rows.
        settings: the model class and its size.
        seed: of the fit.
        places: the places of the items among all items.
        answers: what each option of an item answers.
    """
    fitted = fit_right(features, rows.target, rows.owner, settings, seed)
    # Of an item's own options one is right; the candidates for an open answer may all be wrong.
    whole = kind == "options"

    def predict(values: NDArray[np.float32], asked: Places) -> dict[int, Prediction]:
        own = rows.of(asked)
        chance = np.zeros(rows.count)
        chance[own] = fitted.probability(values[own], rows.owner[own], whole)
        return {int(places[i]): _chosen(answers[i], chance[rows.of_item(i)], whole) for i in asked}

    return Ready(kind, features, fitted.importance, rows.of, predict)


def _chosen(answers: Sequence[str], chance: Array, whole: bool) -> Prediction:
    """Return the most probable answer, by the probability of each; ``whole``: they add up to 1."""
    if not answers:
        return _nothing()
    chance = chance / chance.sum() if whole else chance
    return Prediction(answers[int(chance.argmax())], tuple(answers), chance)


def _rewarded(density: Array, span: tuple[int, Values] | None) -> Prediction:
    """Return the answer with the highest expected native score under a distribution over a category's values."""
    if span is None:
        return _nothing()
    start, values = span
    weights = density[start : start + len(values.texts)]
    weights = (
        weights / weights.sum()
        if weights.sum() > 0
        else np.bincount(values.place, minlength=len(values.texts)) / len(values.place)
    )
    return Prediction(values.texts[int((values.reward @ weights).argmax())], values.texts, weights)


def _nothing() -> Prediction:
    """Return an empty prediction, for an item about which no training gold says anything."""
    return Prediction("", ("",), np.ones(1))


def _numbers_of(items: Sequence[Item]) -> dict[str, list[int]]:
    """Return the places of the items with a number as gold, by category."""
    out: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        if item.format == "number" and item.golds and as_number(item.golds[0]) is not None:
            out[item.category].append(place)
    return out
