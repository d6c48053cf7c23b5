"""Luck-corrected RCI, against its definition in plain Python and against simulations whose truth is known (DESIGN section 6)."""

import itertools
import math
import random

import numpy as np
import pytest
from scipy import stats

from lmms_patch.stats import luck
from lmms_patch.stats.forms import MEAN, MME, Picked
from lmms_patch.stats.luck import Scores, adjusted, luck_ceiling
from tests.sizes import size


def mean_rows(scores):
    return np.column_stack([scores, np.ones(len(scores))])


def scores_of(full, best, null_full, null_best, donors, classes=None, labels=("mc4",), ceiling=None):
    """Rows of a mean, from scalars: ``full`` and ``best`` of each doc, ``null_*`` of shape (P, docs), ``donors`` (docs, P)."""
    n = len(full)
    return Scores(
        mean_rows(full),
        mean_rows(best),
        mean_rows(np.ones(n) if ceiling is None else ceiling),
        np.stack([mean_rows(row) for row in null_full]),
        np.stack([mean_rows(row) for row in null_best]),
        np.asarray(donors),
        np.zeros(n, np.intp) if classes is None else np.asarray(classes),
        tuple(labels),
    )


# --- the definition ---------------------------------------------------------------------------------------


class Plain:
    """The definition for a mean, doc by doc: X per class, X0 over the frozen pairs, kappa, and 1 - kappa_MPP / kappa_FIP."""

    def __init__(self, full, best, ceiling, null_full, null_best, donors, classes, clusters):
        self.observed = {"fip": full, "mpp": best, "ceiling": ceiling}
        self.null = {"fip0": null_full, "mpp0": null_best}
        self.donors, self.classes, self.clusters = donors, classes, clusters
        self.docs = range(len(full))

    def of_class(self, c, weight_of_cluster):
        w = [weight_of_cluster[self.clusters[i]] for i in self.docs]
        mine = [i for i in self.docs if self.classes[i] == c]
        out = {"docs": sum(w[i] for i in mine)}
        for name, values in self.observed.items():
            out[name] = sum(w[i] * values[i] for i in mine) / out["docs"] if out["docs"] else math.nan
        for name, values in self.null.items():
            above = below = 0.0
            for i in mine:
                for p, d in enumerate(self.donors[i]):
                    if d >= 0:
                        above += w[i] * w[d] * values[p][i]
                        below += w[i] * w[d]
            out[name] = above / below if below else math.nan
        return out

    def kappas(self, used, weight_of_cluster):
        found = [self.of_class(c, weight_of_cluster) for c in used]
        docs = sum(one["docs"] for one in found)
        return tuple(
            sum(one["docs"] / docs * (one[x] - one[null]) / (one["ceiling"] - one[null]) for one in found)
            for x, null in (("fip", "fip0"), ("mpp", "mpp0"))
        )

    def index(self, used, weight_of_cluster):
        full, best = self.kappas(used, weight_of_cluster)
        return 1 - best / full


def example(seed):
    """30 docs in 12 clusters, classes of 8, 10 and 12, four donors each of the same class and another cluster, some missing."""
    stream = random.Random(seed)
    clusters = stream.choices(range(12), k=18) + list(range(12))
    classes = [0] * 8 + [1] * 10 + [2] * 12
    stream.shuffle(clusters)
    stream.shuffle(classes)
    donors = []
    for i, own in enumerate(classes):
        pool = [d for d, other in enumerate(classes) if other == own and clusters[d] != clusters[i]]
        found = stream.sample(pool, min(4, len(pool)))
        if i % 7 == 0:
            found = found[:2]
        if i == 4:
            found = []
        donors.append(found + [-1] * (4 - len(found)))
    full = [stream.uniform(0.5, 1) for _ in clusters]
    best = [stream.uniform(0.6, 1) for _ in clusters]
    ceiling = [stream.uniform(0.9, 1) for _ in clusters]
    null_full = [[stream.uniform(0, 0.3) for _ in clusters] for _ in range(4)]
    null_best = [[stream.uniform(0.1, 0.5) for _ in clusters] for _ in range(4)]
    return full, best, ceiling, null_full, null_best, donors, classes, clusters


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_term_and_every_draw_against_the_definition(monkeypatch, seed):
    """Also the interval: 300 draws with weights that are given (those in which each class has a pair), so that it is known too."""
    full, best, ceiling, null_full, null_best, donors, classes, clusters = example(seed)
    plain = Plain(full, best, ceiling, null_full, null_best, donors, classes, clusters)
    stream = random.Random(100 + seed)
    samples = []
    while len(samples) < 300:
        draw = stream.choices(range(12), k=12)
        sample = [draw.count(c) for c in range(12)]
        if not math.isnan(plain.index([0, 1, 2], sample)):
            samples.append(sample)
    asked = {}

    def given(units, draws, seed, columns):
        asked.update(units=units, draws=draws)
        yield np.array(samples[:200], np.float32)
        yield np.array(samples[200:], np.float32)

    monkeypatch.setattr(luck, "unit_weights", given)
    scores = scores_of(full, best, null_full, null_best, donors, classes, ("mc4", "open", "yesno"), ceiling)
    found = adjusted(scores, MEAN.value, np.array(clusters), draws=300)
    assert asked == {"units": 12, "draws": 300}

    once = [1] * 12
    for c, one in enumerate(found.classes):
        expected = plain.of_class(c, once)
        assert (one.label, one.docs, one.state) == (("mc4", "open", "yesno")[c], expected["docs"], "used")
        for name in ("fip", "mpp", "ceiling", "fip0", "mpp0"):
            assert getattr(one, name) == pytest.approx(expected[name], rel=1e-9)
    assert (found.kappa_full, found.kappa_best) == pytest.approx(plain.kappas([0, 1, 2], once))
    assert found.estimate.value == pytest.approx(plain.index([0, 1, 2], once))
    assert found.fip0 == pytest.approx(sum(one.docs * one.fip0 for one in found.classes) / 30)
    assert found.mpp0 == pytest.approx(sum(one.docs * one.mpp0 for one in found.classes) / 30)
    assert found.without_donor == 1
    assert found.saturated_docs == 0

    drawn = np.array([plain.index([0, 1, 2], weights) for weights in samples])
    assert found.estimate.draws == 300
    assert found.estimate.se == pytest.approx(drawn.std(ddof=1), rel=1e-4)
    sizes = np.bincount(clusters)
    worth = sizes.sum() ** 2 / (sizes**2).sum()  # 12 clusters of uneven sizes
    factor = stats.t.ppf(0.975, worth - 1) / stats.norm.ppf(0.975) * math.sqrt(worth / (worth - 1))
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.estimate.value - found.estimate.low == pytest.approx(factor * (found.estimate.value - low), rel=1e-4)
    assert found.estimate.high - found.estimate.value == pytest.approx(factor * (high - found.estimate.value), rel=1e-4)


def test_by_hand():
    """100 docs of one class.

    FIP 0.8, MPP 0.9, donors' answers 0.25 and 0.5, gold 1: kappa 0.55/0.75 = 11/15 and 0.4/0.5 = 4/5.
    """
    full, best = np.repeat([1.0, 0.0], [80, 20]), np.repeat([1.0, 0.0], [90, 10])
    donors = (np.arange(100)[:, None] + [1, 2]) % 100
    found = adjusted(scores_of(full, best, np.full((2, 100), 0.25), np.full((2, 100), 0.5), donors), MEAN.value)
    assert (found.kappa_full, found.kappa_best) == pytest.approx((11 / 15, 4 / 5))
    assert found.estimate.value == pytest.approx(1 - 12 / 11)
    assert (found.fip0, found.mpp0) == pytest.approx((0.25, 0.5))
    assert (found.estimate.n, found.estimate.clusters, found.without_donor) == (100, 100, 0)
    assert found.estimate.low < found.estimate.value < found.estimate.high


def test_the_scale_of_the_metric_changes_nothing():
    """A metric in percent: all scores, and the scale, times 100."""
    full, best, ceiling, null_full, null_best, donors, classes, clusters = example(1)
    parts = [np.array(part) for part in (full, best, ceiling, null_full, null_best)]
    one, hundred = (
        adjusted(
            scores_of(
                k * parts[0], k * parts[1], k * parts[3], k * parts[4], donors, classes, ("a", "b", "c"), k * parts[2]
            ),
            MEAN.value,
            np.array(clusters),
            scale=float(k),
            seed=3,
        )
        for k in (1, 100)
    )
    assert one.estimate.value == pytest.approx(hundred.estimate.value)
    assert (one.estimate.low, one.estimate.high) == pytest.approx(
        (hundred.estimate.low, hundred.estimate.high), rel=1e-4
    )
    assert [c.state for c in one.classes] == [c.state for c in hundred.classes]


@pytest.mark.parametrize("rubbish", [0.0, 1.0, 1e6])
def test_what_stands_where_there_is_no_donor_counts_for_nothing(rubbish):
    full, best, ceiling, null_full, null_best, donors, classes, clusters = example(2)
    values = []
    for filler in (0.0, rubbish):
        nulls = [
            [[filler if donors[i][p] < 0 else row[i] for i in range(30)] for p, row in enumerate(null)]
            for null in (null_full, null_best)
        ]
        values.append(
            adjusted(
                scores_of(full, best, *nulls, donors, classes, ("a", "b", "c"), ceiling),
                MEAN.value,
                np.array(clusters),
                seed=1,
            )
        )
    assert values[0].estimate == values[1].estimate
    assert values[0].fip0 == values[1].fip0


# --- MME: rows that stand for whole clusters -----------------------------------------------------------------


def test_pairs_against_the_definition():
    """60 pairs in two categories, one donor pair each.

    FIP0 is the sum over categories of the mean of the donors' pair scores.
    """
    stream = random.Random(4)
    pairs = 60
    clusters, categories = np.repeat(np.arange(pairs), 2), np.repeat(np.arange(pairs) % 2, 2)
    donor_pair = [(k + 2) % pairs for k in range(pairs)]
    right = {
        name: [stream.random() < p for _ in clusters]
        for name, p in (("full", 0.8), ("best", 0.9), ("null_full", 0.3), ("null_best", 0.5))
    }

    def rows(values):
        return MME.rows(Picked(np.array(values, float), clusters=clusters, categories=categories))

    def pair_score(values, k):
        both = values[2 * k] + values[2 * k + 1]
        return 100 * (both / 2 + (both == 2))

    def mme(values):
        return sum(sum(pair_score(values, k) for k in range(c, pairs, 2)) / (pairs / 2) for c in (0, 1))

    donors = np.array([[2 * donor_pair[k] + place] for k in range(pairs) for place in (0, 1)])
    scores = Scores(
        rows(right["full"]),
        rows(right["best"]),
        rows([1] * 120),
        rows(right["null_full"])[None],
        rows(right["null_best"])[None],
        donors,
        np.zeros(120, np.intp),
        ("yesno",),
    )
    found = adjusted(scores, MME.value, clusters, scale=400.0)
    (one,) = found.classes
    assert (one.fip, one.mpp, one.ceiling) == pytest.approx((mme(right["full"]), mme(right["best"]), 400))
    assert (one.fip0, one.mpp0) == pytest.approx((mme(right["null_full"]), mme(right["null_best"])))
    kappa_full, kappa_best = ((x - x0) / (400 - x0) for x, x0 in ((one.fip, one.fip0), (one.mpp, one.mpp0)))
    assert found.estimate.value == pytest.approx(1 - kappa_best / kappa_full)
    assert (found.estimate.n, found.estimate.clusters) == (120, 60)


# --- why there is none ---------------------------------------------------------------------------------------


def plain_case(
    n=200, *, full=0.8, best=0.9, fip0=0.25, mpp0=0.5, classes=None, labels=("mc4",), donors=None, clusters=None, **more
):
    """Docs of which the first are right; donors' answers all score the same."""
    rate = [np.arange(n) % 20 < 20 * x for x in (full, best)]
    if donors is None:
        donors = (np.arange(n)[:, None] + [1, 2]) % n
    nulls = [np.tile(np.broadcast_to(np.asarray(x, float), n), (2, 1)) for x in (fip0, mpp0)]
    return adjusted(scores_of(*rate, *nulls, donors, classes, labels, **more), MEAN.value, clusters)


def is_null(found, reason):
    assert found.estimate.value is found.estimate.low is found.estimate.high is found.estimate.se is None
    assert reason in found.estimate.reason


def test_no_donors():
    found = plain_case(donors=np.full((200, 2), -1))
    is_null(found, "no donors")
    assert (found.fip0, found.mpp0, found.classes, found.without_donor) == (None, None, (), 200)


def test_no_docs():
    is_null(
        adjusted(scores_of([], [], np.zeros((1, 0)), np.zeros((1, 0)), np.zeros((0, 1), int)), MEAN.value), "no donors"
    )


@pytest.mark.parametrize(("clusters", "known"), [(9, False), (10, True)])
def test_few_clusters(clusters, known):
    found = plain_case(clusters=np.arange(200) % clusters)
    if known:
        assert found.estimate.value is not None
        assert "widened" in found.estimate.reason
    else:
        is_null(found, "9 clusters are too few")


def test_no_variety():
    """ceiling - FIP0 < 0.02 of the scale: any answer of the kind is right."""
    found = plain_case(full=1.0, fip0=0.981, mpp0=0.981)
    is_null(found, "no variety")
    assert "200 of 200 docs" in found.estimate.reason
    assert [one.state for one in found.classes] == ["no variety"]
    assert found.saturated_docs == 0
    assert plain_case(full=1.0, best=1.0, fip0=0.979, mpp0=0.97).estimate.value is not None


def test_luck_saturates():
    """ceiling - MPP0 < 0.02 of the scale, though MPP has no error at all."""
    found = plain_case(best=1.0, mpp0=0.981)
    is_null(found, "luck saturates")
    assert [one.state for one in found.classes] == ["saturated"]
    assert found.saturated_docs == 200
    assert found.fip0 == pytest.approx(0.25)  # known, and shown
    assert plain_case(best=1.0, mpp0=0.979).estimate.value is not None


@pytest.mark.parametrize(("n", "saturated"), [(100, True), (1000, False)])
def test_luck_saturates_within_its_error(n, saturated):
    """MPP 0.9 +- 0.3/sqrt(n), MPP0 0.92 without error: 0.08 is below 4 SE = 0.12 for 100 docs, and above 0.038 for 1000."""
    found = plain_case(n, mpp0=0.92)
    assert found.classes[0].state == ("saturated" if saturated else "used")
    assert (found.estimate.value is None) == saturated


def test_yes_or_no_with_nine_free_guesses_always_saturates():
    """Nine coins: at least one of each answer but once in 256, so any gold is matched: MPP0 = 1 - 2^-9."""
    found = simulated(2, 3, lambda know, guess, blind: guess, docs=1000)
    is_null(found, "luck saturates")
    assert found.mpp0 == pytest.approx(1 - 2**-9, abs=0.005)


def test_no_signal():
    """FIP 0.3 +- 0.032, FIP0 0.25: 0.05 is below 2 SE = 0.065. kappas are told all the same."""
    found = plain_case(full=0.3)
    is_null(found, "no signal")
    assert found.kappa_full == pytest.approx(0.05 / 0.75)
    assert plain_case(full=0.35).estimate.value is not None


def two_classes(saturated, n=200):
    """The first docs are of a class whose luck saturates."""
    classes = (np.arange(n) >= saturated).astype(int)
    starts = np.where(classes == 0, 0, saturated)
    sizes = np.where(classes == 0, saturated, n - saturated)
    donors = starts[:, None] + (np.arange(n) - starts)[:, None] % sizes[:, None]
    donors = starts[:, None] + (donors - starts[:, None] + [1, 2]) % sizes[:, None]
    return plain_case(n, classes=classes, labels=("mc4", "open"), donors=donors, mpp0=np.where(classes == 0, 1.0, 0.5))


def test_saturated_classes_leave_both_sides():
    """80 of 200 docs saturate: what is left is the class of 0.8, 0.9, 0.25, 0.5, whose index is 1 - 12/11 as above."""
    found = two_classes(80)
    assert [one.state for one in found.classes] == ["saturated", "used"]
    assert found.saturated_docs == 80
    assert found.estimate.value == pytest.approx(1 - 12 / 11)
    assert found.estimate.n == 200
    assert found.mpp0 == pytest.approx((80 * 1.0 + 120 * 0.5) / 200)


def test_over_half_saturated():
    found = two_classes(120)
    is_null(found, "luck saturates")
    assert "120 of 200 docs" in found.estimate.reason
    assert found.saturated_docs == 120


def test_a_class_without_donors_leaves_both_sides():
    classes = (np.arange(200) >= 40).astype(int)
    donors = np.where(classes[:, None] == 0, -1, 40 + (np.arange(200)[:, None] - 40 + [1, 2]) % 160)
    found = plain_case(classes=classes, labels=("number", "open"), donors=donors)
    assert [one.state for one in found.classes] == ["no donors", "used"]
    assert (found.without_donor, found.saturated_docs) == (40, 0)
    assert math.isnan(found.classes[0].fip0)
    assert (found.fip0, found.mpp0) == pytest.approx((0.25, 0.5))
    assert found.estimate.value == pytest.approx(1 - 12 / 11)


def test_a_class_of_two_docs_does_not_take_the_interval_away():
    """2 of 302 docs are of a format of their own: some 60 % of the draws miss one of them, and have 300 docs all the same."""
    classes = (np.arange(302) >= 300).astype(int)
    donors = (np.arange(302)[:, None] + [1, 2]) % 300
    donors[300:] = [[301, -1], [300, -1]]
    found = plain_case(302, classes=classes, labels=("mc4", "number"), donors=donors)
    assert found.estimate.value is not None
    assert found.estimate.low is not None


# --- simulations with a known truth ----------------------------------------------------------------------------


def simulated(options, n, cells, docs=3000, seed=0, know=0.8, blind_right=None, draws=200):
    """A model on questions of ``options`` equally likely golds.

    The full image knows ``know`` of them and guesses the rest.

    Args:
        cells: from (gold, guesses, blind answer), shapes (docs, 1), (docs, n²), (docs, 1), to the answers of the cells.
    """
    stream = np.random.default_rng(seed)
    gold = stream.integers(0, options, (docs, 1))
    full = np.where(stream.random((docs, 1)) < know, gold, stream.integers(0, options, (docs, 1)))
    blind = stream.integers(0, options, (docs, 1))
    if blind_right is not None:
        wrong = (gold + stream.integers(1, options, (docs, 1))) % options
        blind = np.where(stream.random((docs, 1)) < blind_right, gold, wrong)
    answers = cells(gold, stream.integers(0, options, (docs, n * n)), blind)
    donors = (np.arange(docs)[:, None] + stream.permuted(np.tile(np.arange(1, docs), (docs, 1)), axis=1)[:, :10]) % docs
    null_full = [(full[d] == gold)[:, 0] for d in donors.T]
    null_best = [(answers[d] == gold).any(axis=1) for d in donors.T]
    rows = scores_of(
        (full == gold)[:, 0].astype(float),
        (answers == gold).any(axis=1).astype(float),
        np.array(null_full, float),
        np.array(null_best, float),
        donors,
    )
    return adjusted(rows, MEAN.value, draws=draws)


def one_knows(share, rest):
    """Cell 1 knows a share of the answers, else it does as the rest: guess, or say answer 0."""

    def cells(gold, guess, blind):
        out = guess if rest == "guess" else np.zeros_like(guess)
        knows = np.random.default_rng(9).random(len(gold)) < share
        return np.column_stack([np.where(knows, gold[:, 0], out[:, 0]), out[:, 1:]])

    return cells


@pytest.mark.parametrize(
    ("cells", "options", "n", "expected"),
    [  # DESIGN section 6, the last column of its table (20,000 docs there; these intervals are a good 0.1 wide)
        (lambda gold, guess, blind: guess, 4, 3, 1.01),
        (one_knows(0.4, "guess"), 4, 3, 0.47),
        (one_knows(0.85, "guess"), 4, 3, -0.07),
        (one_knows(0.85, "constant"), 4, 3, -0.05),
        (lambda gold, guess, blind: np.repeat(blind, 9, axis=1), 4, 3, 1.00),
        (lambda gold, guess, blind: guess, 2, 2, 0.97),
        (one_knows(0.85, "guess"), 2, 2, -0.06),
    ],
)
def test_the_table_of_the_design(cells, options, n, expected):
    found = simulated(options, n, cells)
    assert found.estimate.low - 0.02 <= expected <= found.estimate.high + 0.02
    assert found.estimate.high - found.estimate.low < 0.5


def test_an_assumed_null_leaves_text_priors_in():
    """All cells repeat a blind answer that is right 40 % of the time; the full image knows 0.8 and guesses: FIP 0.85.

    Donors say.
    1/4 on both sides: kappas 0.6/0.75 and 0.15/0.75, index 1 - 0.15/0.6 = 0.75, where 1 is true.
    """

    def repeat(gold, guess, blind):
        return np.repeat(blind, 9, axis=1)

    assert simulated(4, 3, repeat, blind_right=0.4).estimate.value == pytest.approx(0.75, abs=0.06)


def test_the_interval_covers_the_truth():
    """One cell knows 0.4 of 4-way answers, the rest guess: MPP = 1 - 0.6 (3/4)^9, MPP0 = 1 - (3/4)^9, FIP 0.85, FIP0 1/4.

    kappa_MPP = 0.4 exactly, kappa_FIP = 0.8: the truth is 1/2. Of all runs of 500 docs, 95 % +- 4 SE should cover it.
    """

    def cells(seed):
        def make(gold, guess, blind):
            knows = np.random.default_rng(1000 + seed).random(len(gold)) < 0.4
            return np.column_stack([np.where(knows, gold[:, 0], guess[:, 0]), guess[:, 1:]])

        return make

    runs = size(50, 100)
    found = [simulated(4, 2, cells(seed), docs=500, seed=seed) for seed in range(runs)]
    hits = sum(one.estimate.low <= 0.5 <= one.estimate.high for one in found)
    assert hits >= 0.95 * runs - 4 * math.sqrt(runs * 0.95 * 0.05)


# --- the analytic ceiling ---------------------------------------------------------------------------------------


def test_ceiling_of_luck_by_enumeration():
    """Four coins: 15 of 16 outcomes hold a right guess. Nine guesses of 4 options: 1 - (3/4)^9."""
    assert luck_ceiling(np.array([0.5]), 4) == pytest.approx(15 / 16)
    assert luck_ceiling(np.array([0.25]), 9) == pytest.approx(1 - 0.75**9)
    assert luck_ceiling(np.array([0.5, 0.25]), 4) == pytest.approx((15 / 16 + 1 - 0.75**4) / 2)
    assert luck_ceiling(np.array([1.0, 0.0]), 9) == 0.5


@pytest.mark.parametrize(("options", "tries"), [(2, 2), (3, 4), (4, 5), (2, 9)])
def test_the_luck_of_k_segments_by_every_way_to_guess(options, tries):
    ways = list(itertools.product(range(options), repeat=tries))  # option 0 is right
    assert luck_ceiling(np.array([1 / options]), tries) == pytest.approx(sum(0 in way for way in ways) / len(ways))


def test_docs_may_have_other_numbers_of_tries():
    assert luck_ceiling(np.array([0.5, 0.5]), np.array([1, 2])) == pytest.approx((0.5 + 0.75) / 2)


# --- windows between the cells --------------------------------------------------------------------


def answers_of_windows(rng, docs, guesses, *, wrong_is_read=False, prior=0.0):
    """Return golds, and the options that a made-up model names on its own and on a wrong image, shape (docs, 26).

    The first view is the full image, the next nine are cells, the others windows. A quarter of the docs is known from a
    cell, 7/16 from windows only, the rest from the full image alone. Where the model knows nothing it names the gold
    with probability ``prior``, else one of four options with probability ``guesses``, else nothing (-1).
    """
    kind, gold = rng.choice(3, docs, p=(4 / 16, 7 / 16, 5 / 16)), rng.integers(0, 4, docs)
    every = np.arange(docs)

    def seen():
        named = np.where(rng.random((docs, 26)) < guesses, rng.integers(0, 4, (docs, 26)), -1)
        return np.where(rng.random((docs, 26)) < prior, gold[:, None], named)

    own, wrong = seen(), seen()
    for out, whose in ((own, every), (wrong, rng.permutation(docs)))[: 1 + wrong_is_read]:
        out[:, 0] = gold[whose]
        cell, window = rng.integers(1, 10, docs), rng.integers(10, 26, docs)
        from_cell, from_window = kind[whose] == 0, kind[whose] <= 1
        out[every[from_cell], cell[from_cell]] = gold[whose][from_cell]
        out[every[from_window], window[from_window]] = gold[whose][from_window]
    return gold, own, wrong


def of_windows(gold, own, wrong, *, full, views, habits=True):
    """Return the input of the correction over some views of ``answers_of_windows``, with or without the full image."""
    docs, cols = len(gold), [*views, *([0] if full else [])]
    right, right_wrong = own == gold[:, None], wrong == gold[:, None]

    def rows(scores):
        return np.column_stack([scores.astype(float), np.ones(docs)])

    def named(view):
        return np.stack([(view[:, cols] == option).sum(axis=1) for option in range(4)], axis=1)

    said = luck.Habits(
        np.full(docs, 4), gold, named(own), own[:, 0], np.full(docs, len(cols)), named(wrong), wrong[:, 0],
        np.full((docs, 4), math.nan), np.ones(docs, bool),
    )  # fmt: skip
    return luck.Measured(
        rows(right[:, 0]), rows(right[:, cols].max(axis=1)), rows(np.ones(docs)), rows(right_wrong[:, 0]),
        rows(right_wrong[:, cols].max(axis=1)), np.ones(docs, bool), np.zeros(docs, np.intp), ("mc4",),
        np.array([[0.0, 1.0], [1.0, 1.0]]), 1.0, said if habits else None,
    )  # fmt: skip


@pytest.mark.parametrize(
    "world",
    [
        pytest.param({"guesses": 1 / 8}, id="a wrong picture is answered as a cell that shows nothing"),
        pytest.param({"guesses": 1 / 8, "wrong_is_read": True}, id="wrong pictures are read"),
        pytest.param({"guesses": 0.1, "prior": 0.02}, id="the text alone says a little"),
    ],
)
def test_windows_answer_what_lies_on_lines(world):
    """Planted: 7/16 of all docs, and 7/12 of those that no cell answers, are known from a window between the cells."""
    rng, runs, inside, values = np.random.default_rng(5), size(10, 100), [], []
    for _ in range(runs):
        given = answers_of_windows(rng, 400, **world)
        cells, windows, *with_full = (
            of_windows(*given, full=full, views=views) for full in (0, 1) for views in (range(1, 10), range(1, 26))
        )
        rise, share = luck.on_lines(cells, windows, tuple(with_full), draws=200)
        inside.append((rise.low <= 7 / 16 <= rise.high, share.low <= 7 / 12 <= share.high))
        values.append((rise.value, share.value))
    mean, spread = np.mean(values, axis=0), np.std(values, axis=0, ddof=1) / math.sqrt(runs)
    assert np.all(np.abs(mean - (7 / 16, 7 / 12)) < 4 * spread + 0.01)
    assert np.mean(inside, axis=0).min() >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs)


def test_where_no_doc_needs_more_than_a_cell_there_is_no_share():
    """The text answers all: a cell, a window and the full image are right alike."""
    rng = np.random.default_rng(6)
    given = rng.integers(0, 4, 300), *(rng.integers(0, 4, (300, 26)) for _ in "ab")
    cells, windows, *with_full = (
        of_windows(*given, full=full, views=views) for full in (0, 1) for views in (range(1, 3), range(1, 4))
    )
    assert luck.on_lines(cells, windows, tuple(with_full), draws=200)[1].value is None
