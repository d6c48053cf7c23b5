"""Phrases of writers who had not read the rules, each set measured once: no later rule may read one worse than it was read then."""

import pytest

from benchmarks.phrases import figures, from_lines
from tests.places import ROOT

REACHED = {
    "second": (150, {"precision": 1.0, "recall": 0.940, "exact": 0.953, "dismissals": 0.789}),
    "third": (220, {"precision": 0.994, "recall": 0.975, "exact": 0.964, "dismissals": 0.697}),
    "fourth": (150, {"precision": 1.0, "recall": 1.0, "exact": 1.0, "dismissals": 0.642}),
    "fifth": (150, {"precision": 1.0, "recall": 0.937, "exact": 0.933, "dismissals": 0.753}),
    "sixth": (150, {"precision": 1.0, "recall": 0.950, "exact": 0.940, "dismissals": 0.884}),
    "seventh": (150, {"precision": 1.0, "recall": 0.971, "exact": 0.960, "dismissals": 0.891}),
}


@pytest.mark.parametrize("name", REACHED)
def test_a_strangers_set_is_read_no_worse_than_when_it_was_measured(name):
    count, reached = REACHED[name]
    phrases = list(from_lines(ROOT / f"tests/magic/score/phrases_{name}.jsonl"))
    found = figures(phrases)
    assert len(phrases) == count
    assert {key: round(found[key], 3) >= least for key, least in reached.items()} == dict.fromkeys(reached, True)
