"""Which docs are asked on a wrong image, and on whose: decided by hashes, whatever the order, the limit or the sharding."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.ask.wrong_images import ACCEPTED, LOOKED_AT, Look, Ring, choose, sample
from lmms_patch.stats.donors import strata
from tests.sizes import examples


def ring(kinds, units=None, sources=None, seed=0, keys=None):
    count = len(kinds)
    found = strata([kind if isinstance(kind, tuple) else (kind,) for kind in kinds])
    return Ring(
        found, keys or [f"key {i}" for i in range(count)], units or list(range(count)), sources or [None] * count, seed
    )


def look(size=(100, 100), prints="a", count=1, usable=True):
    return Look((size,) * count, tuple(f"{prints}{i}" for i in range(count)), usable)


# --- the sample ------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.integers(1, 40), st.integers(0, 3), st.randoms())
@examples(80)
def test_whole_clusters_until_there_are_enough(clusters, least, seed, shuffler):
    units = {i: f"cluster {cluster}" for i, cluster in enumerate(clusters)}
    chosen = sample(units, least, seed)
    taken = {units[i] for i in chosen}
    assert chosen == {i for i in units if units[i] in taken}, "half a cluster"
    assert len(chosen) >= min(least, len(units))
    if len(units) > least:  # without the cluster that came last there were too few
        sizes = sorted((sum(unit == one for unit in units.values()) for one in taken), reverse=True)
        assert len(chosen) - sizes[0] < least
    order = list(units)
    shuffler.shuffle(order)
    assert sample({i: units[i] for i in order}, least, seed) == chosen, "the order of docs matters"


def test_a_doc_of_a_larger_run_was_asked_in_the_smaller_one():
    """With --limit, only the docs at hand compete: whoever is in the sample of all is in the sample of those among which it is."""
    every = sample({i: f"key {i}" for i in range(500)}, 50, 0)
    some = sample({i: f"key {i}" for i in range(200)}, 50, 0)
    assert {i for i in every if i < 200} <= some
    assert len(every) == len(some) == 50


def test_all_docs_of_a_small_benchmark_and_none_for_nothing():
    assert sample({i: str(i // 3) for i in range(30)}, 30, 0) == set(range(30))
    assert sample({i: str(i) for i in range(30)}, 300, 0) == set(range(30))
    assert sample({}, 300, 0) == frozenset()


def test_docs_of_large_clusters_are_no_likelier_than_others():
    """100 clusters of 1 and 100 of 9 docs, samples of 100 docs over 300 seeds: 10 % of either kind, within 4 standard errors."""
    units = {i: f"small {i}" for i in range(100)} | {100 + i: f"large {i // 9}" for i in range(900)}
    taken = [sample(units, 100, seed) for seed in range(300)]
    small, large = (
        sum(sum((i < 100) == is_small for i in one) for one in taken) / 300 / size
        for is_small, size in ((True, 100), (False, 900))
    )
    error = math.sqrt(0.1 * 0.9 / 100 / 300)
    assert abs(small - large) < 4 * error + 0.01  # the last cluster overshoots by up to 8 docs of 1,000


def test_another_seed_chooses_others():
    units = {i: str(i) for i in range(1000)}
    one, other = sample(units, 100, 0), sample(units, 100, 1)
    assert len(one & other) < 25  # 10 are expected: hypergeometric, more than 25 in fewer than 1 of 10^5


# --- the ring --------------------------------------------------------------------------------------------------------


def test_candidates_are_of_the_own_stratum_first_then_of_coarser_ones():
    """Two kinds of 20 docs within each of two formats: 19 of the kind, 20 of the format, 40 others; each once."""
    kinds = [("mc", "what")] * 20 + [("mc", "why")] * 20 + [("open", "who")] * 20 + [("open", "how")] * 20
    found = list(ring(kinds).candidates(3))
    assert sorted(found) == [i for i in range(80) if i != 3]
    assert set(found[:19]) == set(range(20)) - {3}
    assert set(found[19:39]) == set(range(20, 40))


def test_never_the_same_cluster_or_source():
    kinds = ["open"] * 12
    units = [i // 3 for i in range(12)]
    sources = ["a" if i in (0, 1, 2, 9) else None for i in range(12)]
    assert set(ring(kinds, units, sources).candidates(0)) == set(range(3, 12)) - {9}
    assert set(ring(kinds, units).candidates(5)) == set(range(12)) - {3, 4, 5}


def test_the_order_of_docs_changes_nothing():
    """By key, not by place: reversed docs see reversed candidates."""
    keys = [f"key {i}" for i in range(40)]
    there = [keys[i] for i in ring(["a"] * 40, keys=keys).candidates(7)]
    back = keys[::-1]
    assert [back[i] for i in ring(["a"] * 40, keys=back).candidates(back.index("key 7"))] == there


def test_docs_that_are_added_leave_most_first_choices_alone():
    """Consistent hashing: of 100 docs, one more takes the first place before about one of them."""
    keys = [f"key {i}" for i in range(101)]
    before = [next(ring(["a"] * 100, keys=keys[:100]).candidates(i)) for i in range(100)]
    after = [next(ring(["a"] * 101, keys=keys).candidates(i)) for i in range(100)]
    assert sum(a != b for a, b in zip(before, after, strict=True)) <= 8


def test_first_choices_are_spread_over_docs():
    """Each doc starts at a place of its own: one doc is the first choice of few others."""
    first = [next(ring(["a"] * 200).candidates(i)) for i in range(200)]
    assert len(set(first)) > 80


# --- the choice ------------------------------------------------------------------------------------------------------


def test_the_nearest_shape_among_the_first_that_fit():
    shapes = {1: (300, 100), 2: (100, 200), 3: (210, 100), 4: (100, 100), 5: (200, 90), 6: (200, 100)}
    own = look((400, 200), "own")
    assert choose(own, iter(shapes), lambda i: look(shapes[i], str(i))) == (3,), "doc 6 is nearer, but comes sixth"
    assert ACCEPTED == 5


def test_ties_go_to_the_first():
    assert choose(look(), iter([4, 2, 3]), lambda i: look((50, 50), str(i))) == (4,)


@pytest.mark.parametrize(
    "other",
    [None, look(count=2, prints="b"), look(usable=False, prints="b"), look(prints="own")],
    ids=["cannot be had", "other number of images", "too small", "the same picture"],
)
def test_what_does_not_fit(other):
    own = look(prints="own")
    assert choose(own, iter([1]), lambda _: other) == ()
    assert choose(own, iter([1, 2]), lambda i: other if i == 1 else look(prints="c")) == (2,)


def test_not_every_doc_is_decoded_for_one_that_fits():
    asked = []
    found = choose(look(prints="own"), itertools.count(1), lambda i: asked.append(i))
    assert found == ()
    assert len(asked) == LOOKED_AT


def test_several_images_count_together():
    """|log 2| + |log 1| against |log 1.5| + |log 1.5|: 0.69 against 0.81."""
    own = Look(((100, 100), (100, 100)), ("p", "q"), True)
    others = {1: Look(((150, 100), (100, 150)), ("r", "s"), True), 2: Look(((200, 100), (50, 50)), ("t", "u"), True)}
    assert math.log(2) < 2 * math.log(1.5)
    assert choose(own, iter([1, 2]), others.get) == (2,)


def test_a_clip_is_never_lent_in_place_of_an_image():
    own = Look(((100, 100),), ("p",), True, clips=1)
    others = {1: Look(((100, 100),), ("q",), True), 2: Look(((300, 100),), ("r",), True, clips=1)}
    assert choose(own, iter(others), others.get) == (2,)
    assert choose(Look(((100, 100),), ("p",), True), iter(others), others.get) == (1,)


def test_further_docs_show_images_that_no_other_shows():
    prints = {1: "a", 2: "b", 3: "b", 4: "c", 5: "a", 6: "d"}
    found = choose(look(prints="own"), iter(prints), lambda i: look(prints=prints[i]), most=4)
    assert [prints[doc] for doc in found] == ["a", "b", "c", "d"]
    assert found[0] == choose(look(prints="own"), iter(prints), lambda i: look(prints=prints[i]))[0]
    assert len(choose(look(prints="own"), iter([1, 5]), lambda i: look(prints=prints[i]), most=4)) == 1
