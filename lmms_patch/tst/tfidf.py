"""TF-IDF of words and characters, whole or reduced to a few components.

Weights and components come from the training texts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.tst.items import Places

COMPONENTS = 8
_WORDS, _CHARACTERS = 2**13, 2**13


class TextSpace:
    """Counts of words, word pairs and character n-grams of texts; hashed, so that no text changes how another is read.

    Attributes:
        place: the place of each text among the distinct texts, shape (texts,).
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._distinct = list(dict.fromkeys(texts))
        number = {text: i for i, text in enumerate(self._distinct)}
        self.place = np.array([number[text] for text in texts], np.intp)

    @property
    def _counts(self) -> Any:
        return _counted(tuple(self._distinct))

    def weighted(self, train: Places) -> Any:
        """Return the TF-IDF of the distinct texts, sparse, rows of length 1, float64.

        Document frequencies are those of the training texts.

        Args:
            train: places of the training texts.
        """
        from sklearn.feature_extraction.text import TfidfTransformer

        return (
            TfidfTransformer(sublinear_tf=True)
            .fit(self._counts[np.unique(self.place[train])])
            .transform(self._counts)
            .astype(np.float64)
        )

    def components(self, train: Places, seed: int) -> NDArray[np.float32]:
        """Return the leading components of TF-IDF, fitted on the training texts, for all texts.

        Args:
            train: places of the training texts.
            seed: of the randomised decomposition.

        Returns:
            Shape (at most ``COMPONENTS``, texts); no components where there are too few different training texts.
        """
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.utils.extmath import randomized_svd

        shown, first, times = np.unique(self.place[train], return_index=True, return_counts=True)
        # In the order of the training texts: held-out texts must not decide how rows are sorted.
        order = np.argsort(first)
        shown, times = shown[order], times[order]
        if len(shown) <= COMPONENTS:
            return np.empty((0, len(self.place)), np.float32)
        # rows are repeated in memory: a question that thousands share need not be there thousands of times
        weights = TfidfTransformer(sublinear_tf=True).fit(self._counts[np.repeat(shown, np.minimum(times, 20))])
        known = weights.transform(self._counts[shown])
        _, _, axes = randomized_svd(known, COMPONENTS, n_iter=2, random_state=seed)
        return np.asarray((weights.transform(self._counts) @ axes.T)[self.place].T, np.float32)


@lru_cache(maxsize=6)
def _counted(texts: tuple[str, ...]) -> Any:
    """Return the counts of n-grams, shape (texts, n-grams).

    Remembered, because every fold and every set of shuffled golds has the same questions.
    """
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import HashingVectorizer

    # without signs, which would cancel counts of n-grams that share a place: TF-IDF takes their logarithm
    settings: dict[str, Any] = {"norm": None, "alternate_sign": False, "lowercase": True, "dtype": np.float32}
    by_word = HashingVectorizer(n_features=_WORDS, ngram_range=(1, 2), token_pattern=r"(?u)\w+", **settings)
    by_character = HashingVectorizer(n_features=_CHARACTERS, analyzer="char_wb", ngram_range=(3, 4), **settings)
    return hstack([by_word.transform(texts), by_character.transform(texts)]).tocsr()
