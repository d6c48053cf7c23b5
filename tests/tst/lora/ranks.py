"""Folds shared among ranks, by a stand-in for the diagnostic.

Apart from the tests, so that each rank's process need not import transformers.
"""

import numpy as np

from lmms_patch.errors import OptionError


def places(*numbers) -> np.ndarray:
    return np.arange(*numbers)


class Stub:
    """Stands for a prepared diagnostic: says which rank did what."""

    def __init__(self, rank: int, fails: bool = False) -> None:
        self.rank, self.fails = rank, fails

    def predict(self, train, test, *, seed):
        if self.fails:
            raise OptionError("no memory")
        return [("trained", self.rank, int(at), seed) for at in test]

    def zero_shot(self, test):
        return [("zero", self.rank, int(at)) for at in test]


JOBS = [(None, places(2), 0), (places(1), places(1, 2), 4), (places(1), places(2, 4), 5)]
WHOLE = [[("zero", 0, 0), ("zero", 0, 1)], [("trained", 1, 1, 4)], [("trained", 0, 2, 5), ("trained", 0, 3, 5)]]
