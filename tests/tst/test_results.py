"""The numbers of a run from its records: by hand, by simulation, and with holes."""

import json
import math

import numpy as np
import pytest

from lmms_patch.errors import RecordError
from lmms_patch.runs.scoring import plain
from lmms_patch.tst.results import flat, sign_flip_p
from tests.making.tst import stress_of


def stress(records, **options):
    return stress_of([{**one, "doc_id": i} for i, one in enumerate(plain(records))], **options)


def record(
    scores, baseline=None, *, s=0.5, above=0.25, source=None, category=None, zero=None, cluster=None, grouping=None
):
    """scores, baseline: by grouping, a list over the fold seeds."""
    grouping = grouping or ("source" if "source" in scores else "none")
    baseline = baseline or {name: [0.0] * len(own) for name, own in scores.items()}
    fields = {key: value for key, value in (("category", category), ("cluster", cluster)) if value is not None}
    zero_shot = None if zero is None else {"s": zero, "score": zero}
    return {
        "tst": {
            "diagnostic": "rf",
            "grouping": grouping,
            "source": source,
            "s": s,
            "s_minus_chance": above,
            "chance": None if s is None else s - above,
            "zero_shot": zero_shot,
            "scores": scores,
            "baseline": baseline,
        },
        "fields": fields,
    }


def test_no_cross_validation_is_none():
    assert stress([]) is None
    assert stress([{}, {"tst": None}]) is None
    assert flat(None) == {}


@pytest.mark.parametrize(
    "odd",
    [
        record({"source": [1]}, {"source": [0, 0]}),
        record({"none": [1, 1]}),
        record({"source": [1, 1], "none": [1, 1]}, {"source": [0, 0]}),
    ],
)
def test_docs_that_differ_in_their_cross_validations_are_refused(odd):
    with pytest.raises(RecordError, match="doc 1: its cross-validations or fold seeds"):
        stress([record({"source": [1, 0]}), odd])


def test_by_hand():
    """Two fold seeds, four docs. Source-grouped: seed 0 scores 1 0 1 0, seed 1 scores 1 0 0 0: accuracies 1/2 and 1/4.

    Mean 3/8, SD over the seeds √(2 · (1/8)²) = 1/(4√2). Majority 1 0 0 0 at both seeds: 1/4, so 1/8 above it.
    Random folds: 1 1 1 0 twice: 3/4; leakage 3/4 - 3/8. Zero-shot 0 0 1 0: 1/4, delta 1/8.
    """
    source = [[1, 1], [0, 0], [1, 0], [0, 0]]
    random = [[1, 1], [1, 1], [1, 1], [0, 0]]
    majority = [[1, 1], [0, 0], [0, 0], [0, 0]]
    zero = [0.0, 0.0, 1.0, 0.0]
    records = [
        record({"source": a, "none": b}, {"source": m, "none": m}, s=0.2 * i, above=0.2 * i - 0.25, zero=z)
        for i, (a, b, m, z) in enumerate(zip(source, random, majority, zero, strict=True))
    ]
    found = stress(records)
    head = found.by_grouping["source"]
    assert found.headline == "source"
    assert head.accuracy.value == pytest.approx(3 / 8)
    assert head.accuracy.n == 4
    assert head.sd == pytest.approx(1 / (4 * math.sqrt(2)))
    assert (head.seeds, head.majority) == (2, 0.25)
    assert head.above.value == pytest.approx(1 / 8)
    assert head.p == pytest.approx(0.5, abs=0.05)  # one doc of 4 differs: its sign is + in half of the flips
    assert found.by_grouping["none"].accuracy.value == 0.75
    assert found.leakage.value == pytest.approx(3 / 8)
    assert (found.zero_shot.value, found.delta.value) == (0.25, pytest.approx(1 / 8))
    assert (found.s, found.chance) == (pytest.approx(0.3), pytest.approx(0.25))
    assert (found.categories, found.unscored) == ({}, 0)
    numbers = flat(found)
    assert numbers["tst"] == numbers["tst_source"] == pytest.approx(3 / 8)
    assert (numbers["tst_none"], numbers["tst_majority"]) == (0.75, 0.25)
    assert (numbers["tst_leakage"], numbers["tst_delta"]) == (pytest.approx(3 / 8), pytest.approx(1 / 8))
    assert numbers["tst_low"] is None  # four docs are too few for an interval
    json.dumps(numbers, allow_nan=False)


def test_one_seed_has_no_spread_and_one_grouping_no_leakage():
    found = stress([record({"none": [i % 2]}) for i in range(20)])
    assert found.by_grouping["none"].sd is None
    assert (found.leakage, found.zero_shot, found.delta) == (None, None, None)
    assert flat(found)["tst_zero_shot"] is None


def test_categories_by_hand():
    records = [record({"none": [i % 2]}, {"none": [1.0]}, s=0.1, above=-0.1, category="a") for i in range(10)]
    records += [record({"none": [1]}, {"none": [0.0]}, s=0.6, above=0.1, category="b") for _ in range(30)]
    found = stress(records)
    assert {name: (c.docs, c.accuracy, c.majority) for name, c in found.categories.items()} == {
        "a": (10, 0.5, 1),
        "b": (30, 1, 0),
    }
    assert found.categories["a"].chance == pytest.approx(0.2)
    assert found.categories["b"].s == pytest.approx(0.6)
    assert found.categories["a"].low < 0.5 < found.categories["a"].high


def test_docs_without_a_score_are_counted_and_left_out():
    """nan (in the process) and None (from a file) are the same.

    A doc that one seed left unscored is left out of the mean over docs.
    """
    holes = [None, math.nan]
    for hole in holes:
        records = [
            record({"none": [1.0, 1.0]}),
            record({"none": [0.0, 0.0]}),
            record({"none": [hole, hole]}, {"none": [hole, hole]}, s=hole, above=hole),
        ]
        found = stress(records)
        assert found.by_grouping["none"].accuracy.value == 0.5
        assert found.by_grouping["none"].accuracy.n == 2
        assert found.unscored == 1
        assert found.s == 0.5
    found = stress([record({"none": [1.0, hole]}), record({"none": [0.0, 0.0]}), record({"none": [1.0, 1.0]})])
    assert found.by_grouping["none"].accuracy.value == 0.5
    assert found.unscored == 1


def test_nothing_scored_at_all():
    found = stress([record({"none": [None]}, {"none": [None]}, s=None, above=None) for _ in range(12)])
    head = found.by_grouping["none"]
    assert (head.accuracy.value, head.majority, head.p, found.unscored) == (None, None, None, 12)
    json.dumps(flat(found), allow_nan=False)


def clustered(seed, clusters=60, size=8):
    stream = np.random.default_rng(seed)
    chance = stream.beta(0.5, 0.5, clusters)
    return [(int(stream.random() < chance[c]), c) for c in range(clusters) for _ in range(size)]


def test_intervals_are_wider_where_docs_share_a_source():
    """Beta(½, ½) success rates by source: intraclass correlation ½, so 8 docs a source give √(1 + 7/2) ≈ 2.1 times the width."""
    rows = clustered(0)
    apart = stress([record({"none": [hit]}) for hit, _ in rows]).by_grouping["none"].accuracy
    together = stress([record({"none": [hit]}, source=f"s{c}") for hit, c in rows]).by_grouping["none"].accuracy
    named = stress([record({"none": [hit]}, cluster=c) for hit, c in rows]).by_grouping["none"].accuracy
    ratio = (together.high - together.low) / (apart.high - apart.low)
    assert 1.6 < ratio < 2.6
    assert (apart.clusters, together.clusters, named.clusters) == (480, 60, 60)
    assert together.value == apart.value


def test_the_source_wins_over_the_cluster_and_docs_without_either_stand_alone():
    records = [record({"none": [1.0]}, source="a", cluster=i) for i in range(4)] + [
        record({"none": [0.0]}) for _ in range(3)
    ]
    assert stress(records).by_grouping["none"].accuracy.clusters == 4


def test_the_interval_covers_the_truth():
    """95 % intervals on 60 clustered worlds of true accuracy ½: at least 51 cover it (P(fewer) < 10⁻³ at a coverage of 0.95)."""
    covered = 0
    for seed in range(60):
        found = (
            stress([record({"none": [hit]}, source=c) for hit, c in clustered(seed, 60, 4)], draws=300)
            .by_grouping["none"]
            .accuracy
        )
        covered += found.low <= 0.5 <= found.high
    assert covered >= 51


# ---- the permutation test ----


@pytest.mark.parametrize("size", [1, 5])
def test_p_is_uniform_under_the_null_also_with_clusters(size):
    """400 worlds of 40 clusters whose docs all say the same: Kolmogorov–Smirnov distance below 1.63 / √400 (1 %)."""
    stream = np.random.default_rng(0)
    p = np.sort(
        [
            sign_flip_p(np.repeat(stream.standard_normal(40), size), np.repeat(np.arange(40), size), seed, flips=199)
            for seed in range(400)
        ]
    )
    distance = np.abs(p - np.arange(1, 401) / 400).max()
    assert distance < 1.63 / 20


def test_clusters_matter_to_p():
    """Docs that only repeat their cluster are no evidence: without the clusters far more than 5 % of null worlds look significant."""
    stream = np.random.default_rng(1)
    worlds = [np.repeat(stream.standard_normal(20), 10) for _ in range(100)]
    labels = np.repeat(np.arange(20), 10)
    naive = np.mean([sign_flip_p(world, None, 0, 199) < 0.05 for world in worlds])
    assert naive > 0.2
    assert np.mean([sign_flip_p(world, labels, 0, 199) < 0.05 for world in worlds]) < 0.13


def test_p_by_enumeration():
    """Totals 3, 2, 1: of the 8 sign patterns only + + + reaches 6: p → 1/8. Totals 1, 1, -1 (sum 1): 4 of 8 reach 1."""
    assert sign_flip_p(np.array([3.0, 2.0, 1.0]), None, 0, 20000) == pytest.approx(1 / 8, abs=0.01)
    assert sign_flip_p(np.array([1.0, 1.0, -1.0]), None, 0, 20000) == pytest.approx(4 / 8, abs=0.015)
    assert sign_flip_p(np.zeros(5), None, 0, 50) == 1
    assert sign_flip_p(np.array([1.0]), None, 0, 9) >= 1 / 10


def test_ties_count_whatever_the_rounding():
    """Thirds do not add up exactly: a flip that reaches the observed sum but for rounding does reach it.

    Here all n docs differ by 1/3 · c.
    """
    stream = np.random.default_rng(0)
    thirds = stream.integers(-3, 4, 3000)
    exact = sign_flip_p(thirds.astype(float), None, 5, 400)
    for scale in (1 / 3, 0.1, 1e6 / 7):
        assert sign_flip_p(thirds * scale, None, 5, 400) == exact
