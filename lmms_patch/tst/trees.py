"""The model classes of the ``rf`` diagnostic: gradient boosting on histograms, the published random forest, and a linear model.

Boosting (LightGBM) is as accurate as the forest or better on the benchmarks of docs/tst.md, in a tenth of the time, so
it is the default. Beside the trees a linear model stands in the ensemble; how much it counts is decided on training
items that neither has seen.

Source: TsT paper (https://arxiv.org/abs/2511.04655), B.2 (RandomForestClassifier, 1000 trees, depth 20).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.errors import OptionError
from lmms_patch.tst.features import Features
from lmms_patch.tst.items import Places
from lmms_patch.tst.linear import items_of, shares

Array = NDArray[np.float64]

MODELS = ("boosting", "forest", "linear")
_BINS = 128
"""Bins of predictions; items in one bin share a kernel."""
_WIDTH = 0.1
"""Width of the kernel over predictions, in SDs of the golds."""
_JUDGED = 0
"""The inner fold that decides how much the linear model counts."""
_POOLS = [
    pool
    for pool in itertools.product((0.0, 0.5, 0.75, 1.0, 1.25, 1.5), (0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0))
    if any(pool)
]
"""The weights of the trees and of the linear model that are tried."""
_USUAL = 0.45
"""The weight of the linear model, beside trees of weight 1, that is taken unless the inner fold speaks against it."""


@dataclass(frozen=True)
class ModelSettings:
    """A model class and its size.

    Attributes:
        model: one of ``MODELS``.
        trees: number of trees; default 100 for boosting, 1000 for the forest.
        depth: greatest depth of a tree; default 20 (boosting is limited by 7 leaves a tree instead).
        threads: number of threads of one fit.
        beside: whether the linear model stands beside the trees: its scores are a feature, and it is a member of the
        ensemble.
    """

    model: str = "boosting"
    trees: int | None = None
    depth: int = 20
    threads: int = 1
    beside: bool = True

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise OptionError(f"model {self.model!r} is not known; allowed: {', '.join(MODELS)}")
        for name, value in (("trees", self.size), ("depth", self.depth), ("threads", self.threads)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise OptionError(f"{name} must be a whole number of at least 1, not {value!r}")

    @property
    def size(self) -> int:
        """Number of trees, the default filled in."""
        return self.trees if self.trees is not None else 100 if self.model == "boosting" else 1000

    @property
    def parts(self) -> dict[str, bool]:
        """Which features the model needs, as ``OptionTable.features`` takes them."""
        return {"trees": self.model != "linear", "linear_model": self.model == "linear" or self.beside}


@dataclass(frozen=True)
class Right:
    """A fitted ensemble of "is this option right?".

    Attributes:
        model: a function from values to the probability of each row by the trees; None: the linear model alone.
        share: the place of the feature that holds the linear model's probability; None where there is none.
        pool: the weights of the log-probabilities of the trees and of the linear model.
        importance: Gini importance (forest) or total gain (boosting) of each feature; sums to 1, or to 0 where nothing
            was learned.
    """

    model: Callable[[NDArray[np.float32]], Array] | None
    share: int | None
    pool: tuple[float, float]
    importance: Array

    def probability(self, values: NDArray[np.float32], owner: Places, whole: bool) -> Array:
        """Return the probability of each row.

        Args:
            values: shape (rows, features), all rows of some items.
            owner: the item of each row, shape (rows,), ascending.
            whole: whether one of an item's rows is right for sure. Else the rows of an item may sum to less than 1.
        """
        if not len(values):
            return np.zeros(0)
        linear = np.zeros(len(values)) if self.share is None else values[:, self.share].astype(float)
        if self.model is None:
            return linear
        trees = _shared(self.model(values), owner, whole)
        return trees if self.share is None else _pooled(trees, linear, owner, self.pool)


def _pooled(trees: Array, linear: Array, owner: Places, pool: tuple[float, float]) -> Array:
    """Return the logarithmic pool of two members within each item (Genest and Zidek 1986), with the trees' sum kept."""
    starts, item = items_of(owner)
    # a probability of 0 would rule an option out whatever the other member says
    logs = pool[0] * np.log(np.maximum(trees, 1e-9)) + pool[1] * np.log(np.maximum(linear, 1e-9))
    return shares(logs, owner) * np.add.reduceat(trees, starts)[item]


def _shared(probability: Array, owner: Places, whole: bool) -> Array:
    """Divide the probabilities of an item's rows by their sum: always, or only for sums above 1."""
    # an item whose rows are all 0 has no sum to divide by
    probability = np.maximum(probability, 1e-9) if whole else probability
    starts, item = items_of(owner)
    total = np.add.reduceat(probability, starts)
    return probability / (total if whole else np.maximum(1.0, total))[item]


def fit_right(features: Features, target: Array, owner: Places, settings: ModelSettings, seed: int) -> Right:
    """Fit "is this option right?" on the training rows.

    How much the linear model counts is decided on one inner fold: by trees that were fitted without it, and by the
    linear model's scores, which are out-of-fold already.

    Args:
        features: of all rows.
        target: shape (rows,), 1 where the option is right.
        owner: the item of each row, shape (rows,), ascending.
        settings: the model.
        seed: of the model.
    """
    rows = np.flatnonzero(features.inner >= 0)
    share = features.share
    if settings.model == "linear":
        none = np.zeros(len(features.names))
        if share is not None:
            # Without trees the linear model's share is the only feature that counts.
            none[share] = 1.0
        return Right(None, share, (0.0, 1.0), none)
    model, importance = _fitted(features, target, rows, settings, seed)
    # The linear model's scores are out-of-fold, so one inner fold can judge it; the trees must not have seen that fold.
    judged = features.inner[rows] == _JUDGED
    if share is None or judged.all() or not judged.any():
        return Right(model, share, (1.0, 0.0), importance)
    # to weigh the two members, half of the trees are enough
    half, _ = _fitted(
        features, target, rows[~judged], dataclasses.replace(settings, trees=max(1, settings.size // 2)), seed
    )
    seen, owners, golds = features.values[rows[judged]], owner[rows[judged]], target[rows[judged]]
    trees, linear = _shared(half(seen), owners, True), seen[:, share].astype(float)
    return Right(model, share, _best_pool(trees, linear, owners, golds), importance)


def _best_pool(trees: Array, linear: Array, owner: Places, target: Array) -> tuple[float, float]:
    """Return the weights of two members for items seen by neither.

    One fold says little. So of the pools whose likelihood is within one standard error of the best one's (paired by
    item), the one that is nearest to the usual mixture is taken: two members that err differently are better together,
    also where one fold happens to prefer one of them.

    Args:
        trees: probabilities by the trees, shape (rows,).
        linear: by the linear model.
        owner: the item of each row, ascending.
        target: 1 where the row is right.
    """
    starts, _ = items_of(owner)
    likely = np.array(
        [
            # not the log of 0: one item would then rule a pool out
            np.add.reduceat(np.log(np.maximum(_pooled(trees, linear, owner, pool), 1e-6)) * target, starts)
            for pool in _POOLS
        ]
    )
    sums = likely.sum(axis=1)
    less = likely[sums.argmax()] - likely
    # Paired by item: the standard error of the difference of likelihoods, not of each.
    error = np.sqrt(((less - less.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))
    far = [abs(np.arctan2(beside, own) - np.arctan(_USUAL)) for own, beside in _POOLS]
    # rounded, so that float error decides no tie
    return min((round(far[i], 9), -sums[i], pool) for i, pool in enumerate(_POOLS) if less[i].sum() <= error[i])[2]


def _fitted(
    features: Features, target: Array, rows: Places, settings: ModelSettings, seed: int
) -> tuple[Callable[[NDArray[np.float32]], Array], Array]:
    """Return trees fitted on some rows, as a function from values to probabilities, and the importance of each feature."""
    y = target[rows]
    # Nothing to separate: the classifiers would raise on a single class.
    if not len(y) or y.min() == y.max():
        constant = float(y.mean()) if len(y) else 0.0
        return (lambda values: np.full(len(values), constant)), np.zeros(len(features.names))
    known, model = features.values[rows], _classifier(settings, seed)
    if settings.model == "forest":
        filled = _filler(known)
        model.fit(filled(known), y.astype(int))
        # Several threads would sum trees in the order of finishing, which changes the last bits.
        model.n_jobs = 1
        return (lambda values: np.asarray(model.predict_proba(filled(values))[:, 1])), _importance(model, settings)
    model.fit(known, y.astype(int))
    return (lambda values: np.asarray(model.booster_.predict(values, num_threads=settings.threads))), _importance(
        model, settings
    )


@dataclass(frozen=True)
class Density:
    """A fitted predictive distribution of numbers.

    Attributes:
        of: a function from values of held-out items to shape (items, count): the weight of each value of the training
        golds, not normalised.
        importance: Gini importance (forest) or total gain (boosting) of each feature; sums to 1, or to 0 where nothing
            was learned.
    """

    of: Callable[[NDArray[np.float32]], Array]
    importance: Array


def fit_number(
    features: Features, target: Array, value: Places, count: int, settings: ModelSettings, seed: int
) -> Density:
    """Fit the distribution of numbers on the training items.

    Trees: the training golds in an item's leaves, averaged over the trees. Boosted leaves form no distribution, so in
    place of boosting there are extremely randomised trees here. The linear model: the training golds whose own
    out-of-fold prediction is near the item's (Gaussian kernel).

    Args:
        features: of all items.
        target: shape (n,), standardised golds; read for training items only.
        value: shape (n,), which of ``count`` values a training item's gold is; read for training items only.
        count: number of values (of all categories together: a value belongs to one category).
        settings: the model.
        seed: of the model.

    Source: Meinshausen, Quantile Regression Forests, JMLR 7, 2006; Geurts, Ernst and Wehenkel, Machine Learning 63(1),
    2006, 3-42.
    """
    train = np.flatnonzero(features.inner >= 0)
    known, target, value = features.values[train], target[train], value[train]
    if settings.model == "linear":
        return _kernel_weights(known[:, 0].astype(float), value, count)
    return _leaf_weights(known, target, value, count, settings, seed)


def _leaf_weights(
    known: NDArray[np.float32], target: Array, value: Places, count: int, settings: ModelSettings, seed: int
) -> Density:
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

    kind = RandomForestRegressor if settings.model == "forest" else ExtraTreesRegressor
    filled = _filler(known)
    seen = filled(known)
    forest = kind(
        settings.size,
        max_depth=settings.depth,
        min_samples_leaf=10,
        max_features=0.4,
        n_jobs=settings.threads,
        random_state=seed,
    ).fit(seen, target)

    def of(values: NDArray[np.float32]) -> Array:
        asked = filled(values)
        out = np.zeros((len(asked), count))
        # One tree at a time: the leaves of all trees would need nodes x values x trees of memory.
        for tree in forest.estimators_:
            nodes = tree.tree_.node_count
            share = np.bincount(tree.apply(seen) * count + value, minlength=nodes * count).reshape(nodes, count)
            out += (share / np.maximum(share.sum(axis=1, keepdims=True), 1))[tree.apply(asked)]
        return out

    return Density(of, np.asarray(forest.feature_importances_))


def _kernel_weights(own: Array, value: Places, count: int) -> Density:
    """Return the weights of training golds by nearness of predictions.

    ``own``: shape (training items,), their out-of-fold predictions.
    """
    # Golds are held by bins of the prediction, so that memory does not grow with items × items.
    edges = np.unique(np.quantile(own, np.linspace(0, 1, _BINS + 1)))
    bins = max(1, len(edges) - 1)
    place = np.clip(np.searchsorted(edges, own, side="right") - 1, 0, bins - 1)
    held = np.bincount(place * count + value, minlength=bins * count).reshape(bins, count).astype(float)
    centre = np.bincount(place, own, bins) / np.maximum(np.bincount(place, minlength=bins), 1)

    def of(values: NDArray[np.float32]) -> Array:
        # a little of every gold, or an item far from all predictions would have none
        return np.asarray((np.exp(-(((values[:, :1].astype(float) - centre[None]) / _WIDTH) ** 2) / 2) + 1e-3) @ held)

    return Density(of, np.ones(1))


def _classifier(settings: ModelSettings, seed: int) -> Any:
    if settings.model == "boosting":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(
            n_estimators=settings.size,
            learning_rate=0.04,
            num_leaves=7,
            max_depth=settings.depth,
            min_child_samples=20,
            colsample_bytree=0.5,
            subsample=0.8,
            subsample_freq=1,
            reg_lambda=1.0,
            random_state=seed,
            n_jobs=settings.threads,
            deterministic=True,
            # LightGBM sums in a fixed order only with both of these.
            force_row_wise=True,
            verbose=-1,
        )
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        settings.size,
        max_depth=settings.depth,
        min_samples_leaf=10,
        max_features=0.2,
        n_jobs=settings.threads,
        random_state=seed,
    )


def _importance(model: Any, settings: ModelSettings) -> Array:
    raw = model.booster_.feature_importance("gain") if settings.model == "boosting" else model.feature_importances_
    total = float(np.sum(raw))
    return np.asarray(raw, float) / total if total else np.zeros(len(raw))


def _filler(known: NDArray[np.float32]) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """Return a function to replace nan by a number below each feature's known values, as random-cut trees refuse nan.

    The number is not far below: a random cut between the lowest and the highest value would else nearly never fall
    among the others.
    """
    finite = np.isfinite(known)
    low = np.where(finite, known, np.inf).min(axis=0, initial=np.inf)
    high = np.where(finite, known, -np.inf).max(axis=0, initial=-np.inf)
    below = np.where(np.isfinite(low), low - np.maximum(high - low, 1) / 2, 0).astype(np.float32)
    return lambda values: np.where(np.isnan(values), below, values)
