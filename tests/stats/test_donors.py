"""Donors: of the same kind, never the same doc, cluster or image (DESIGN section 6)."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_patch.stats.donors import draw, draw_clusters, strata
from tests.sizes import size

# --- strata --------------------------------------------------------------------------------------------


def test_small_kinds_are_merged_into_their_parent():
    """20 "what" docs stand alone; 19 "why" docs and 1 "who" doc go to "open", whose members are all 40.

    The number doc is alone.
    """
    kinds = [("open", "what")] * 20 + [("open", "why")] * 19 + [("open", "who")] + [("number", "how")]
    found = strata(kinds)
    assert found.labels == [("open", "what")] * 20 + [("open",)] * 20 + [("number",)]
    assert found.members == {("open", "what"): list(range(20)), ("open",): list(range(40)), ("number",): [40]}


def test_merging_goes_up_as_far_as_it_must():
    """Four levels: the finest kind has 5 docs, its parent 10, the next 30."""
    kinds = (
        [("mc", 4, "ab", "x")] * 5
        + [("mc", 4, "ab", "y")] * 5
        + [("mc", 4, "cd", "z")] * 20
        + [("mc", 5, "ab", "x")] * 5
    )
    found = strata(kinds, least=20)
    assert found.labels == [("mc", 4)] * 10 + [("mc", 4, "cd", "z")] * 20 + [("mc",)] * 5
    assert found.members[("mc", 4)] == list(range(30))
    assert found.members[("mc",)] == list(range(35))


kinds_of_docs = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(1, 2), st.sampled_from("xyz")), min_size=1, max_size=60
)


@given(kinds_of_docs, st.integers(1, 12))
def test_strata_by_their_definition(kinds, least):
    found = strata(kinds, least)
    for kind, label in zip(kinds, found.labels, strict=True):
        assert label == kind[: len(label)]
        alike = [place for place, other in enumerate(kinds) if other[: len(label)] == label]
        assert found.members[label] == alike
        assert len(alike) >= least or len(label) == 1
        for depth in range(len(label) + 1, len(kind) + 1):  # nothing finer would do
            assert sum(other[:depth] == kind[:depth] for other in kinds) < least


# --- donors ----------------------------------------------------------------------------------------------


def one_kind(n):
    return strata([("open",)] * n)


@given(kinds_of_docs, st.data())
@settings(deadline=None)
def test_who_may_be_a_donor(kinds, data):
    """Every row: a set of allowed docs, as many as there are up to P, the empty places last."""
    n = len(kinds)
    units = data.draw(st.lists(st.integers(0, 20), min_size=n, max_size=n))
    sources = data.draw(st.none() | st.lists(st.none() | st.integers(0, 10), min_size=n, max_size=n))
    p = data.draw(st.integers(1, 12))
    found = strata(kinds, least=5)
    drawn = draw(found, units, sources, donors=p, seed=data.draw(st.integers(0, 100)))
    assert drawn.shape == (n, p)
    for i, row in enumerate(drawn.tolist()):
        allowed = {
            d
            for d in found.members[found.labels[i]]
            if d != i and units[d] != units[i] and (sources is None or sources[i] is None or sources[d] != sources[i])
        }
        chosen = [d for d in row if d >= 0]
        assert set(chosen) <= allowed
        assert len(chosen) == len(set(chosen)) == min(p, len(allowed))
        assert row[len(chosen) :] == [-1] * (p - len(chosen))


def test_same_image_in_another_cluster_is_no_donor():
    """Three docs: 0 and 1 show the same image, but are of different clusters."""
    drawn = draw(one_kind(3), ["a", "b", "c"], ["img", "img", "other"], donors=2)
    assert [sorted(row) for row in drawn.tolist()] == [[-1, 2], [-1, 2], [0, 1]]


def test_docs_without_a_known_image_may_lend_to_each_other():
    drawn = draw(one_kind(3), ["a", "b", "c"], [None, None, "img"], donors=2)
    assert [sorted(row) for row in drawn.tolist()] == [[1, 2], [0, 2], [0, 1]]


def test_one_cluster_has_no_donors():
    assert (draw(one_kind(30), ["a"] * 30, donors=10) == -1).all()


def test_the_seed_decides_and_a_generator_is_taken_too():
    found, units = one_kind(100), list(range(100))
    one, same, other = (draw(found, units, donors=10, seed=seed) for seed in (1, 1, 2))
    assert one.shape == (100, 10)
    assert (one == same).all()
    assert (one != other).any()
    assert (draw(found, units, donors=10, seed=np.random.default_rng(1)) == one).all()


@pytest.mark.parametrize(("n", "p"), [(6, 2), (30, 3)])
def test_every_allowed_doc_is_as_likely(n, p):
    """Doc 0 has n - 1 possible donors and takes p of them: each is taken with p / (n - 1), within 4.5 standard errors."""
    found, runs = one_kind(n), size(1000, 3000)
    stream = np.random.default_rng(5)
    counts = Counter(d for _ in range(runs) for d in draw(found, list(range(n)), donors=p, seed=stream)[0].tolist())
    share = p / (n - 1)
    assert set(counts) == set(range(1, n))
    for count in counts.values():
        assert count / runs == pytest.approx(share, abs=4.5 * (share * (1 - share) / runs) ** 0.5)


def test_donors_are_found_where_hardly_any_doc_is_allowed():
    """All but two of 500 docs are of one cluster: guessing would miss the two others."""
    units = ["same"] * 498 + ["x", "y"]
    drawn = draw(one_kind(500), units, donors=3)
    assert all(sorted(row) == [-1, 498, 499] for row in drawn[:498].tolist())
    assert sorted(drawn[498][:3].tolist())[0] >= 0


# --- whole clusters ----------------------------------------------------------------------------------------


def test_pairs_lend_to_pairs():
    """Pairs that do not follow each other: docs 0 and 3, 1 and 2, 4 and 5."""
    units = ["a", "b", "b", "a", "c", "c"]
    drawn = draw_clusters(one_kind(6), units, donors=2)
    pairs = {"a": (0, 3), "b": (1, 2), "c": (4, 5)}
    for name, (first, second) in pairs.items():
        lenders = {tuple(sorted(pair)) for pair in zip(drawn[first].tolist(), drawn[second].tolist(), strict=True)}
        assert lenders == {pair for other, pair in pairs.items() if other != name}


def test_pairs_lend_in_either_order():
    """By position, a pair that is asked for yes, then no, would have its own golds from any other such pair: half of 2,000 loans are turned."""
    drawn = draw_clusters(one_kind(400), [i // 2 for i in range(400)], donors=10)
    turned = np.mean(drawn[::2] > drawn[1::2])
    assert turned == pytest.approx(0.5, abs=4 * 0.5 / 2000**0.5)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=25), st.data())
@settings(deadline=None)
def test_clusters_lend_to_clusters_of_their_size(sizes, data):
    units = [name for name, size in enumerate(sizes) for _ in range(size)]
    order = data.draw(st.permutations(range(len(units))))
    units = [units[k] for k in order]
    images = {name: data.draw(st.none() | st.integers(0, 5)) for name in set(units)}
    sources = [images[unit] for unit in units]
    p = data.draw(st.integers(1, 4))
    drawn = draw_clusters(one_kind(len(units)), units, sources, donors=p, seed=data.draw(st.integers(0, 50)))
    members = {name: [i for i, unit in enumerate(units) if unit == name] for name in set(units)}
    for name, docs in members.items():
        allowed = [
            other
            for other in members
            if other != name
            and len(members[other]) == len(docs)
            and (images[name] is None or images[other] != images[name])
        ]
        lenders = []
        for k in range(p):
            column = [int(drawn[doc, k]) for doc in docs]
            if column[0] >= 0:
                lenders.append(units[column[0]])
                assert sorted(column) == members[units[column[0]]]
            else:
                assert set(column) == {-1}
        assert set(lenders) <= set(allowed)
        assert len(lenders) == len(set(lenders)) == min(p, len(allowed))


def test_clusters_stay_in_their_stratum():
    """20 pairs about colours and 20 about numbers: a donor pair is of the same kind."""
    kinds = [("yesno", "colour")] * 40 + [("yesno", "number")] * 40
    drawn = draw_clusters(strata(kinds), [i // 2 for i in range(80)], donors=5)
    assert (drawn[:40] < 40).all()
    assert (drawn[40:] >= 40).all()
    assert (drawn >= 0).all()
