"""Plain pipelines that anyone would try first, on the folds of the diagnostic: n-grams into a regression, a forest, gradient boosting."""

from collections.abc import Callable, Sequence

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.sparse import hstack
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import OneHotEncoder

from lmms_patch.ask.answers import as_number
from lmms_patch.tst.diagnosis import deal
from lmms_patch.tst.folds import Grouping
from lmms_patch.tst.items import Item
from tests.tst.worlds import rewards_of

QUIET = {"verbose": -1, "n_jobs": 1, "random_state": 0}
RIVALS = {
    "character n-gram regression": ("char_wb", (2, 5), lambda: LogisticRegression(max_iter=300), lambda: Ridge()),
    "TF-IDF forest": (
        "word",
        (1, 2),
        lambda: RandomForestClassifier(100, max_depth=30, n_jobs=-1, random_state=0),
        lambda: RandomForestRegressor(100, max_depth=30, max_features=0.3, n_jobs=-1, random_state=0),
    ),
    "TF-IDF boosting": ("word", (1, 2), lambda: LGBMClassifier(**QUIET), lambda: LGBMRegressor(**QUIET)),
}


def rival_scores(items: Sequence[Item], name: str, grouped: Grouping, seed: int = 0, folds: int = 5) -> np.ndarray:
    """Return the native score of a rival's held-out answer to each item, on the folds of a fold seed."""
    everyone, rewards = np.arange(len(items)), rewards_of(items)
    fold, out = deal(items, everyone, grouped, folds, seed), np.full(len(items), np.nan)
    for k in range(folds):
        for choice in (True, False):
            own = np.array([item.is_choice == choice for item in items])
            train, test = np.flatnonzero(own & (fold != k)), np.flatnonzero(own & (fold == k))
            if len(test):
                answers = (_options if choice else _numbers)(items, train, test, name)
                out[test] = [rewards.of(int(place), answer) for place, answer in zip(test, answers, strict=True)]
    return out


def _reader(name: str, texts: Sequence[str], categories: Sequence[str]) -> Callable:
    analyzer, ngrams, *_ = RIVALS[name]
    words = TfidfVectorizer(analyzer=analyzer, ngram_range=ngrams, sublinear_tf=True).fit(texts)
    kinds = OneHotEncoder(handle_unknown="ignore").fit([[one] for one in categories])
    return lambda texts, categories: hstack(
        [words.transform(texts), kinds.transform([[one] for one in categories])]
    ).tocsr()


def _options(items: Sequence[Item], train: np.ndarray, test: np.ndarray, name: str) -> list[str]:
    """Is this option right? Of yes and no one row says it all: is it the first?"""
    two = len({items[place].options for place in train}) == 1 and len(items[train[0]].options) == 2

    def rows(places: np.ndarray) -> list[tuple[int, int]]:
        return [(int(place), option) for place in places for option in range(1 if two else len(items[place].options))]

    def texts(rows: Sequence[tuple[int, int]]) -> list[str]:
        return [
            items[place].question if two else f"{items[place].question} = {items[place].options[option]}"
            for place, option in rows
        ]

    def categories(rows: Sequence[tuple[int, int]]) -> list[str]:
        return [items[place].category for place, _ in rows]

    known, asked = rows(train), rows(test)
    read = _reader(name, texts(known), categories(known))
    model = RIVALS[name][2]().fit(
        read(texts(known), categories(known)), [option in items[place].rights for place, option in known]
    )
    chance = dict(zip(asked, model.predict_proba(read(texts(asked), categories(asked)))[:, -1], strict=True))
    if two:
        return [items[place].answers[int(chance[int(place), 0] < 0.5)] for place in test]
    return [
        items[place].answers[
            int(np.argmax([chance[int(place), option] for option in range(len(items[place].options))]))
        ]
        for place in test
    ]


def _numbers(items: Sequence[Item], train: np.ndarray, test: np.ndarray, name: str) -> list[str]:
    read = _reader(name, [items[place].question for place in train], [items[place].category for place in train])
    known, asked = (read([items[i].question for i in own], [items[i].category for i in own]) for own in (train, test))
    model = RIVALS[name][3]().fit(known, np.log1p([as_number(items[place].golds[0]) for place in train]))
    return [f"{value:.2f}" for value in np.expm1(model.predict(asked))]
