"""``tst_rf``: a text-only diagnostic on features that nobody wrote by hand.

Choice formats: "is this option right?" for each option, normalised within the item. Numbers: a distribution
over the training golds of the category, and the answer that the native scorer then rewards most.
Open answers: the most frequent training golds of the category as options, none of them also possible.

Source: TsT paper, §3.3 and §B.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lmms_patch.answers import as_number
from lmms_patch.tst.features import Features, NumberTable, OptionTable
from lmms_patch.tst.items import Item, Places, Prediction
from lmms_patch.tst.models import ModelSettings, fit_right, number_densities
from lmms_patch.tst.rewards import Rewards, values_of
from lmms_patch.tst.statistics import inner_folds

Array = NDArray[np.float64]

MOST_CANDIDATES = 16
MOST_ROWS = 400_000
"""Rows of candidates for open answers: bounds the memory."""


@dataclass(frozen=True)
class RfDiagnostic:
    """The diagnostic with its settings.

    Attributes:
        settings: the model.
    """

    settings: ModelSettings = field(default_factory=ModelSettings)

    @property
    def name(self) -> str:
        """``rf``."""
        return "rf"

    def prepare(self, items: Sequence[Item], rewards: Rewards) -> PreparedRf:
        """See ``items.Diagnostic``."""
        return PreparedRf(items, rewards, self.settings)


class PreparedRf:
    """Items cut into rows; nothing here depends on folds."""

    def __init__(self, items: Sequence[Item], rewards: Rewards, settings: ModelSettings) -> None:
        self.items, self._rewards, self._settings = items, rewards, settings
        usable = [i for i, item in enumerate(items) if item.golds]
        self._choice = np.array([i for i in range(len(items)) if items[i].is_choice], np.intp)
        self._number = np.array([i for i in range(len(items)) if not items[i].is_choice and items[i].format == "number"], np.intp)
        self._open = np.setdiff1d(np.arange(len(items)), np.union1d(self._choice, self._number))
        self._has_gold = np.isin(np.arange(len(items)), usable)
        self._has_gold[self._choice] &= np.array([items[i].right is not None for i in self._choice], bool)
        self._has_gold[self._number] &= np.array([bool(items[i].golds) and as_number(items[i].golds[0]) is not None for i in self._number], bool)
        self.importances: list[dict[str, float]] = []

    @cached_property
    def _options(self) -> OptionTable:
        return OptionTable([self.items[i] for i in self._choice])

    @cached_property
    def _numbers(self) -> NumberTable:
        return NumberTable([self.items[i] for i in self._number])

    def predict(self, train: Places, test: Places, *, seed: int, groups: Places) -> list[Prediction]:
        """See ``items.Prepared``. Training items without a gold are left out."""
        train = train[self._has_gold[train]]
        found: dict[int, Prediction] = {}
        for places, predict in ((self._choice, self._predict_choice), (self._number, self._predict_number), (self._open, self._predict_open)):
            asked = np.flatnonzero(np.isin(places, test))
            if len(asked):
                found |= predict(np.flatnonzero(np.isin(places, train)), asked, seed, groups[places])
        return [found[int(place)] for place in test]

    def _keep(self, names: Sequence[str], importance: Array) -> None:
        self.importances.append(dict(zip(names, importance.tolist(), strict=True)))

    def _predict_choice(self, train: Places, asked: Places, seed: int, groups: Places) -> dict[int, Prediction]:
        table = self._options
        features = table.features(train, groups, seed)
        fitted = fit_right(features, table.target, self._settings, seed)
        self._keep(features.names, fitted.importance)
        rows = np.flatnonzero(np.isin(table.owner, asked))
        chance = np.zeros(table.rows)
        chance[rows] = np.maximum(fitted.probability(features.values[rows]), 1e-9)
        out = {}
        for i in asked:
            own = chance[table.start[i] : table.start[i] + table.sizes[i]]
            own = own / own.sum()
            item = table.items[i]
            out[int(self._choice[i])] = Prediction(item.answers[int(own.argmax())], item.answers, own)
        return out

    def _predict_number(self, train: Places, asked: Places, seed: int, groups: Places) -> dict[int, Prediction]:
        table = self._numbers
        if not len(train):
            return {int(self._number[i]): _nothing() for i in asked}
        features = table.features(train, groups, seed)
        value, spans = np.zeros(len(table.items), np.intp), {}
        count = 0
        for category in np.unique(table.category[train]):
            own = train[table.category[train] == category]
            values = values_of(self._rewards, self._number[own])
            value[own] = count + values.place
            spans[int(category)] = count, values
            count += len(values.texts)
        target, _ = table.standardised(train)
        density, importance = number_densities(features, target, value, count, asked, self._settings, seed)
        self._keep(features.names, importance)
        out = {}
        for i, row in zip(asked, density, strict=True):
            found = spans.get(int(table.category[i]))
            if found is None:
                out[int(self._number[i])] = _nothing()
                continue
            start, values = found
            weights = row[start : start + len(values.texts)]
            weights = weights / weights.sum() if weights.sum() > 0 else np.bincount(values.place, minlength=len(values.texts)) / len(values.place)
            best = int((values.reward @ weights).argmax())
            out[int(self._number[i])] = Prediction(values.texts[best], values.texts, weights)
        return out

    def _predict_open(self, train: Places, asked: Places, seed: int, groups: Places) -> dict[int, Prediction]:
        items = [self.items[i] for i in self._open]
        candidates, right = _candidates(items, train, inner_folds(train, groups, len(items), seed))
        if not len(train) or not any(candidates):
            return {int(self._open[i]): _nothing() for i in asked}
        table = OptionTable(items, candidates, right)
        features = table.features(train, groups, seed)
        fitted = fit_right(features, table.target, self._settings, seed)
        self._keep(features.names, fitted.importance)
        rows = np.flatnonzero(np.isin(table.owner, asked))
        chance = np.zeros(table.rows)
        chance[rows] = fitted.probability(features.values[rows])
        out = {}
        for i in asked:
            own = chance[table.start[i] : table.start[i] + table.sizes[i]]
            own = own / max(1.0, own.sum())
            answers = tuple(candidates[i])
            out[int(self._open[i])] = Prediction(answers[int(own.argmax())], answers, own) if len(own) else _nothing()
        return out


def _nothing() -> Prediction:
    """No training gold says anything about this item."""
    return Prediction("", ("",), np.ones(1))


def _candidates(items: Sequence[Item], train: Places, inner: Places) -> tuple[list[list[str]], list[list[int]]]:
    """Of each item the most frequent golds of the training items of its category that it may see, and which of them are right.

    A training item sees the golds of the other inner folds only: a gold that is its own alone is not among its candidates.
    """
    most = int(np.clip(MOST_ROWS // max(1, len(items)), 4, MOST_CANDIDATES))
    lists: dict[tuple[str, int], list[str]] = {}
    for category in {item.category for item in items}:
        own = [i for i in train if items[i].category == category] or list(train)
        for fold in [-1, *np.unique(inner[train])]:
            counts = Counter(items[i].golds[0] for i in own if inner[i] != fold)
            lists[category, int(fold)] = [gold for gold, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:most]]
    candidates = [lists[item.category, int(inner[i])] for i, item in enumerate(items)]
    right = [[p for p, text in enumerate(own) if text in item.golds[:10]] for own, item in zip(candidates, items, strict=True)]
    return candidates, right


def features_of(prepared: PreparedRf, train: Places, seed: int, groups: Places) -> list[Features]:
    """The features of choice and number items, as ``predict`` makes them: for the leak checks."""
    out = []
    for places, table in ((prepared._choice, prepared._options), (prepared._number, prepared._numbers)):
        if len(places):
            usable = train[prepared._has_gold[train]]
            out.append(table.features(np.flatnonzero(np.isin(places, usable)), groups[places], seed))
    return out
