"""The leak checks find a leak that is put in, and none where there is none."""

from dataclasses import replace

import numpy as np
import pytest

from lmms_patch.tst import checks
from lmms_patch.tst.features import Features
from tests.tst.worlds import planted_choice, planted_number, prepare

TRAIN, HELD = np.arange(10, 60), np.arange(10)


class Peeking:
    """Features that are all the same, but for one that knows what it should not."""

    def __init__(self, items, peek):
        self.items, self.peek = items, peek

    def features(self, train, seed, groups):
        values = np.zeros((len(self.items), 2), np.float32)
        values[:, 1] = self.peek(self.items)
        inner = np.full(len(self.items), -1)
        inner[train] = 0
        return [Features(values, ("honest", "peeking"), inner)]


def leaks(items, make):
    return checks.leaks(items, make, TRAIN, HELD, 0, np.arange(len(items)))


@pytest.mark.parametrize("world", [planted_choice, planted_number])
def test_the_rf_diagnostic_does_not_leak(world):
    assert leaks(world(60)[0], lambda items: prepare(items)[0]) == []


@pytest.mark.parametrize(
    ("peek", "line"),
    [
        (
            lambda items: [hash(item.golds) % 1000 for item in items],
            "the golds of held-out docs move the feature 'peeking'",
        ),
        (
            lambda items: [len({item.question for item in items})] * len(items),
            "the texts of held-out docs move the feature of training docs 'peeking'",
        ),
    ],
)
def test_a_leak_is_named(peek, line):
    assert leaks(planted_choice(60)[0], lambda items: Peeking(items, peek)) == [line]


def test_a_held_out_doc_may_know_its_own_text():
    assert (
        leaks(planted_choice(60)[0], lambda items: Peeking(items, lambda own: [len(item.question) for item in own]))
        == []
    )


def test_what_is_changed_is_held_out_and_nothing_else():
    items = planted_choice(60)[0]
    for changed in (checks.other_golds(items, HELD), checks.other_texts(items, TRAIN, HELD)):
        assert changed[10:] == items[10:]
        assert changed[:10] != items[:10]
    assert [replace(item, golds=()) for item in checks.other_golds(items, HELD)] == [
        replace(item, golds=()) for item in items
    ]
