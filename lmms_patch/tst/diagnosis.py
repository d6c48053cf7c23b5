"""Cross-validation of a text-only diagnostic on a test set, over several fold seeds. Pure.

Source: TsT paper (https://arxiv.org/abs/2511.04655), 3.1; s(x): 3.1 and B.1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from lmms_patch.ask.answers import as_number, counted
from lmms_patch.tst.folds import Grouping, check_folds, folds
from lmms_patch.tst.items import Item, Places, Prediction, Prepared
from lmms_patch.tst.rewards import Rewards, values_of

Array = NDArray[np.float64]

FOLD_SEEDS = (0, 1, 2)
DEALS = 3
"""How often golds are dealt anew: the share of luck among thousands of scores is known well from three."""


def fold_seeds(docs: int) -> int:
    """Return over how many fold seeds a number is averaged: few docs are dealt to folds in more different ways, and take less time."""
    return 5 if docs < 5000 else 3


@dataclass(frozen=True)
class Diagnosis:
    """The scores of some items under cross-validation over R fold seeds.

    Attributes:
        s: shape (n,), the bias score: held-out credit for the gold, averaged over the seeds. It is the probability of
            the gold option, or the expected native score of a draw from the predictive distribution with full marks as
            1; nan: unscored.
        chance: shape (n,), what an uninformed guess earns on this item, on the scale of ``s``: 1 / options, or for open
            formats the expected native score of a draw from the golds of the training folds.
        scores: shape (R, n), native score of the held-out answer; nan: unscored.
        baseline: shape (R, n), native score of the training folds' most frequent answer. It knows the test set
            (``tst.null``), so no verdict rests on it alone.
        answers: the held-out answers, one tuple for each seed.
        folds: shape (R, n), the fold of each item.
        uninformed: shape (n,), what an uninformed guess earns on the metric's own scale; None: as ``chance``.
        dealt: shape (D, n), the bias score under the golds of D other items, and their weights (``deal_golds``); None
            where not asked for.
    """

    s: Array
    chance: Array
    scores: Array
    baseline: Array
    answers: tuple[tuple[str, ...], ...] = ()
    folds: Places | None = None
    uninformed: Array | None = None
    dealt: tuple[Array, Array] | None = None

    @property
    def floor(self) -> Array:
        """The score of an uninformed guess on the metric's own scale, shape (n,)."""
        return self.chance if self.uninformed is None else self.uninformed

    @property
    def means(self) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Scores and baselines as means over seeds, and which items have both and a floor; each of shape (n,)."""
        scores, baseline = self.scores.mean(axis=0), self.baseline.mean(axis=0)
        return scores, baseline, np.isfinite(scores) & np.isfinite(baseline) & np.isfinite(self.floor)

    @property
    def accuracy(self) -> float:
        """TsT accuracy: mean over items and seeds (fraction); nan where nothing is scored."""
        return float(np.nanmean(self.scores)) if np.isfinite(self.scores).any() else float("nan")


Diagnose = Callable[[Places, Sequence[int]], Diagnosis]
"""A function (places of the kept items, fold seeds) -> diagnosis in the order of the places."""


Job = tuple[Places | None, Places, int]
"""One fold: places to train on (None: the untrained model is asked), places to predict, seed of the model."""

Runner = Callable[[Prepared, Sequence[Job], Places], list[list[Prediction]]]
"""A function (prepared, jobs, group of every item) -> the predictions of each job, in order."""


def in_threads(workers: int = 1, what: str = "") -> Runner:
    """Return a runner for several jobs at a time in threads.

    Args:
        workers: how many jobs.
        what: text beside the progress bar; empty: no bar.
    """

    def run(prepared: Prepared, jobs: Sequence[Job], groups: Places) -> list[list[Prediction]]:
        def one(job: Job) -> list[Prediction]:
            train, test, seed = job
            assert train is not None
            return prepared.predict(train, test, seed=seed, groups=groups)

        # the folds share the cores; threads of BLAS on top would only wait for each other
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(max(1, workers)) as pool:
            return list(tqdm(pool.map(one, jobs), total=len(jobs), desc=what, disable=not what, leave=False))

    return run


def model_seed(*parts: int) -> int:
    """Return a seed from all parts, within the range of scikit-learn and LightGBM."""
    # the sequence takes no negative numbers, and both libraries no more than 31 bits
    return int(np.random.SeedSequence([abs(part) for part in parts]).generate_state(1)[0] >> 1)


def jobs_of(places: Places, fold: Places, k: int, seed: int) -> list[Job]:
    """Return the folds of a cross-validation as jobs.

    Args:
        places: the items that take part, shape (n,).
        fold: the fold of each, shape (n,).
        k: number of folds.
        seed: of the models; each fold derives its own.
    """
    return [(places[fold != number], places[fold == number], model_seed(seed, number)) for number in range(k)]


def deal(items: Sequence[Item], places: Places, grouping: Grouping, k: int, fold_seed: int) -> Places:
    """Return the fold of each of ``places``; refuse folds with a split group."""
    _, groups = np.unique(grouping.groups[places], return_inverse=True)
    fold = folds([items[i] for i in places], k, groups, fold_seed)
    check_folds(fold, groups)
    return fold


def diagnose(
    prepared: Prepared,
    items: Sequence[Item],
    rewards: Rewards,
    places: Places,
    grouping: Grouping,
    *,
    k: int = 5,
    seeds: Sequence[int] = FOLD_SEEDS,
    seed: int = 0,
    runner: Runner | None = None,
    deals: int = 0,
) -> Diagnosis:
    """Cross-validate over fold seeds and score each item by a model trained on the remaining folds.

    Args:
        prepared: the diagnostic.
        items: all items that it has read.
        rewards: the native scores.
        places: the items that take part, shape (n,).
        grouping: groups of all items; no group is in two folds.
        k: number of folds.
        seeds: the fold seeds.
        seed: of the models, together with the fold seed.
        runner: runs the folds; default: one after the other.
        deals: how often golds are dealt anew against the same held-out predictions (``Diagnosis.dealt``).
    """
    # Seeded by all fold seeds, so that a diagnosis with other seeds deals anew.
    lenders, weights = deal_golds(items, places, deals, model_seed(seed, *seeds))
    borrowed = np.zeros((deals, len(places)))
    dealt = [deal(items, places, grouping, k, fold_seed) for fold_seed in seeds]
    jobs = [
        job
        for fold, fold_seed in zip(dealt, seeds, strict=True)
        for job in jobs_of(places, fold, k, model_seed(seed, fold_seed))
    ]
    by_job = (runner or in_threads())(prepared, jobs, grouping.groups)
    s, floor, scores, baseline = (np.full((len(seeds), len(places)), np.nan) for _ in range(4))
    answers = []
    for at, fold in enumerate(dealt):
        predictions = _in_place(fold, by_job[at * k : (at + 1) * k])
        typical, floor[at] = frequency_baseline(items, rewards, places, fold, k)
        s[at], scores[at] = scored(items, rewards, places, predictions)
        baseline[at] = [
            rewards.exact(int(place), a) if a is not None and items[place].golds else np.nan
            for place, a in zip(places, typical, strict=True)
        ]
        answers.append(tuple(p.answer for p in predictions))
        for own, theirs in zip(borrowed, lenders, strict=True):
            own += [credit(items, rewards, int(j), p) / len(seeds) for j, p in zip(theirs, predictions, strict=True)]
    uninformed = _mean(floor)
    options = np.array([items[place].chance if items[place].is_choice else np.nan for place in places])
    # Chance is on the scale of ``s`` (full marks 1), the uninformed guess on the metric's own.
    chance = np.where(np.isfinite(options), options, uninformed / rewards.scale)
    return Diagnosis(
        _mean(s),
        chance,
        scores,
        baseline,
        tuple(answers),
        np.array(dealt, np.intp),
        uninformed,
        (borrowed, weights) if deals else None,
    )


def deal_golds(items: Sequence[Item], places: Places, deals: int, seed: int) -> tuple[Places, Array]:
    """Draw foreign golds for each item, with weights to make up for never drawing an equal gold.

    Where the text says nothing of the gold but what its category says, a score under the own gold and a weighted score
    under a dealt one have the same mean. Why never the own gold: a prediction that knows the gold is to lend none of
    its certainty to the null. With q the share of a gold in its category, a dealt gold o in place of g weighs (1 -
    q(g)) / (1 - q(o)). An item keeps its gold where its category has no other.

    Args:
        items: all items.
        places: the items that take part, shape (n,).
        deals: number of draws for each item.
        seed: of the draws.

    Returns:
        Places of the lenders and weights, shape (deals, n) each.
    """
    stream = np.random.default_rng(seed)
    lenders, weights = np.tile(places, (deals, 1)), np.ones((deals, len(places)))
    kinds: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for at, place in enumerate(places):
        if (item := items[place]).golds and (not item.is_choice or item.right is not None):
            kinds[item.category, item.format, len(item.answers)].append(at)
    for members in kinds.values():
        own = np.array(members)
        _, gold, counts = np.unique([items[places[at]].golds[0] for at in own], return_inverse=True, return_counts=True)
        rest = 1 - counts[gold] / len(own)
        for label in range(len(counts)) if len(counts) > 1 else ():
            mine, others = np.flatnonzero(gold == label), np.flatnonzero(gold != label)
            drawn = stream.choice(others, (deals, len(mine)))
            lenders[:, own[mine]], weights[:, own[mine]] = places[own[drawn]], rest[mine[0]] / rest[drawn]
    return lenders, weights


def _in_place(fold: Places, by_fold: Sequence[Sequence[Prediction]]) -> list[Prediction]:
    """Return the predictions of all folds in the order of the items."""
    waiting = [iter(predictions) for predictions in by_fold]
    return [next(waiting[number]) for number in fold]


def scored(
    items: Sequence[Item], rewards: Rewards, places: Places, predictions: Sequence[Prediction]
) -> tuple[Array, Array]:
    """Return bias score and native score of each prediction, shape (n,) each; nan for items without a gold."""
    s = [credit(items, rewards, int(place), p) for place, p in zip(places, predictions, strict=True)]
    scores = [
        rewards.exact(int(place), p.answer) if items[place].golds else np.nan
        for place, p in zip(places, predictions, strict=True)
    ]
    return np.array(s, float), np.array(scores, float)


def _mean(values: Array) -> Array:
    """Return the mean over the seeds; nan for an item unscored under any seed."""
    return np.asarray(values.mean(axis=0))


def credit(items: Sequence[Item], rewards: Rewards, place: int, prediction: Prediction) -> float:
    """Return s(x) of a prediction; nan without a gold.

    It is the probability of the gold option, or the expected native score of a draw from the prediction with full marks
    as 1.
    """
    item = items[place]
    if item.is_choice:
        return float(prediction.probabilities[item.rights].sum()) if item.rights else np.nan
    if not item.golds:
        return np.nan
    # what the scorer cannot score earns nothing
    return float(np.nan_to_num(rewards.vector(place, prediction.answers)) @ prediction.probabilities) / rewards.scale


def frequency_baseline(
    items: Sequence[Item], rewards: Rewards, places: Places, fold: Places, k: int
) -> tuple[list[str | None], Array]:
    """Return the most frequent gold by category as a baseline answer, and the score of a guess.

    For choices it is the most frequent gold (a letter) of the training items of the category with as many options; for
    numbers the training gold of the category that the native score rewards most; else the most frequent training gold
    of the category, whose spellings count together. Where no training item is of the category, training items of the
    same format (and number of options) stand in.

    Returns:
        The answer for each of ``places`` (None where no training item has a gold), and what a guess earns, shape (n,),
        on the metric's own scale: the mean score of the options, or the expected score of a draw from these training
        golds.
    """
    answers: list[str | None] = [None] * len(places)
    guess = np.full(len(places), np.nan)
    kinds: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for at, place in enumerate(places):
        item = items[place]
        kinds[item.category, item.format, len(item.answers)].append(at)
    for members in kinds.values():
        own = np.array(members)
        for number in range(k):
            train = [int(places[at]) for at in own[fold[own] != number] if items[places[at]].golds]
            # A category may lie in a single fold: items of the same format stand in.
            train = train or [
                int(i) for i in places[fold != number] if items[i].golds and _alike(items[i], items[places[own[0]]])
            ]
            for at, answer, earned in _typical(
                items, rewards, train, [int(places[at]) for at in own[fold[own] == number]]
            ):
                where = own[fold[own] == number][at]
                answers[where], guess[where] = answer, earned
    return answers, guess


def _alike(item: Item, other: Item) -> bool:
    return item.format == other.format and len(item.answers) == len(other.answers)


def _typical(
    items: Sequence[Item], rewards: Rewards, train: Sequence[int], test: Sequence[int]
) -> list[tuple[int, str | None, float]]:
    """Return for each item of a fold and kind: place in ``test``, baseline answer, score of a guess."""
    if not test:
        return []
    if items[test[0]].is_choice:
        counts = Counter(items[i].right for i in train if items[i].right is not None)
        place = counts.most_common(1)[0][0] if counts else 0
        floors = [
            float(np.mean([rewards.exact(i, a) for a in items[i].answers])) if items[i].golds else np.nan for i in test
        ]
        return [
            (at, items[i].answers[place or 0], floor) for at, (i, floor) in enumerate(zip(test, floors, strict=True))
        ]
    if items[test[0]].format == "number":
        train = [i for i in train if as_number(items[i].golds[0]) is not None]
    if not train:
        return [(at, None, np.nan) for at in range(len(test))]
    if items[test[0]].format == "number":
        values = values_of(rewards, np.array(train))
        weights = np.bincount(values.place, minlength=len(values.texts)) / len(train)
        answer, texts = values.texts[int((values.reward @ weights).argmax())], values.texts
    else:
        # each further gold would cost a call of the scorer for every doc
        common = counted(items[i].golds[0] for i in train)[:20]
        texts, weights = tuple(text for text, _ in common), np.array([count for _, count in common]) / len(train)
        answer = texts[0]
    return [
        (at, answer, float(np.nan_to_num(rewards.vector(i, texts)) @ weights) if items[i].golds else np.nan)
        for at, i in enumerate(test)
    ]
