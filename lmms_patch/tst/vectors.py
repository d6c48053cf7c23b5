"""Embeddings of texts: whole, or reduced to a few components that come from the training texts alone.

Without torch: the caller brings the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lmms_patch.tst.items import Places

COMPONENTS = 16
_ROWS = 10_000
"""Rows in work at the same time: bounds the memory."""

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""A function from texts to vectors, shape (texts, dimensions), each of length 1 or 0. It is called again with known texts, so it should remember."""


class VectorSpace:
    """Embeddings of texts.

    Attributes:
        place: the place of each text among the distinct texts, shape (texts,).
        vectors: of the distinct texts, shape (distinct texts, dimensions).
    """

    def __init__(self, embed: Embed, texts: Sequence[str]) -> None:
        number: dict[str, int] = {}
        self.place = np.array([number.setdefault(text, len(number)) for text in texts], np.intp)
        self.vectors = np.asarray(embed(list(number)), np.float32)

    def components(self, train: Places, seed: int) -> NDArray[np.float32]:
        """Return the leading principal components of the embeddings, fitted on the distinct training texts, for all texts.

        Args:
            train: places of the training texts.
            seed: of the randomised decomposition.

        Returns:
            Shape (texts, at most ``COMPONENTS``); no components where there are too few different training texts.
        """
        from sklearn.utils.extmath import randomized_svd

        shown, first = np.unique(self.place[train], return_index=True)
        count = min(COMPONENTS, self.vectors.shape[1])
        if len(shown) <= count:
            return np.empty((len(self.place), 0), np.float32)
        # In the order of the training texts: held-out texts must not decide how rows are sorted.
        known = self.vectors[shown[np.argsort(first)]]
        mean = known.mean(axis=0)
        _, _, axes = randomized_svd(known - mean, count, n_iter=2, random_state=seed)
        # not by BLAS, where the number of held-out texts would move the last bits of training texts
        return np.asarray(
            (np.einsum("ij,kj->ik", self.vectors, axes) - np.einsum("j,kj->k", mean, axes))[self.place], np.float32
        )

    def cosines(self, place: Places, other: VectorSpace, beside: Places) -> NDArray[np.float32]:
        """Return the cosine of each text at ``place`` of the texts with the text at ``beside`` of the other's texts, shape (rows,)."""
        mine, theirs = self.place[place], other.place[beside]
        parts = [slice(start, start + _ROWS) for start in range(0, len(mine), _ROWS)]
        found = [np.einsum("ij,ij->i", self.vectors[mine[part]], other.vectors[theirs[part]]) for part in parts]
        return np.concatenate(found) if found else np.zeros(0, np.float32)
