"""The design of a quick run: what it asks, and what the answers say.

Truth comes from populations whose every answer is known.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom
from scipy.stats import t as student

from lmms_patch.stats.asking import (
    FLOOR,
    Asking,
    Docs,
    Goal,
    best_rates,
    logistic,
    overlap,
)
from lmms_patch.stats.sampled import Sampled, clusters_that_decide, interval
from tests.sizes import size

GOAL = Goal(0.08)


def world(docs=400, cells=(9,), seed=0, per_cluster=1, pilot=60, marks=1.0):
    """A population: scores of shape (docs, views), and its docs."""
    stream = np.random.default_rng(seed)
    clusters = np.arange(docs) // per_cluster
    trait = stream.normal(size=clusters.max() + 1)[clusters] * 0.5 + stream.normal(size=docs)
    parts = [trait + 0.4, *(trait[:, None] - 1 + 0.8 * np.eye(n)[stream.integers(0, n, docs)] for n in cells)]
    scores = (np.column_stack(parts) + stream.normal(size=(docs, 1 + sum(cells))) > 0).astype(float)
    order = np.lexsort(
        (
            np.arange(docs),
            stream.random(clusters.max() + 1)[clusters],
        )
    )
    return scores, Docs(order, stream.random(docs), clusters, np.full(docs, marks), cells, pilot)


def asked(scores, docs, goal=GOAL, known=None, most=math.inf):
    """Run a design on a population, and return what it asked.

    ``known`` remembers answers between runs, ``most`` is where the run is killed.
    """
    asking, store = Asking(docs, goal), {} if known is None else known
    rounds, got = asking.rounds(), None
    try:
        wanted = next(rounds)
        while True:
            got = []
            for doc, view in zip(*wanted, strict=True):
                if (doc, view) not in store:
                    if len(store) >= most:
                        raise InterruptedError
                    store[doc, view] = scores[doc, view]
                got.append(store[doc, view])
            wanted = rounds.send(np.array(got))
    except StopIteration:
        return asking.answers


def index(scores, cells=slice(1, None)):
    return 1 - scores[:, cells].max(axis=1).sum() / scores[:, 0].sum()


# --- estimates --------------------------------------------------------------------------------------


def sampled(stream, full, best, guess, before, after, p):
    """Take the two steps of each doc by one hash."""
    u = stream.random(len(full))
    return Sampled(full, best, (u <= p[:, 0]).astype(int) + (u <= p[:, 1]), p, guess, before, after)


def test_estimates_and_their_variances_have_no_bias_whatever_was_predicted():
    """Brute force over hashes: the mean of the estimates is the truth, and the mean of the variances is their variance."""
    stream = np.random.default_rng(1)
    n, turns = 40, size(1_500, 20_000)
    full, best = (stream.random((2, n)) > 0.4).astype(float)
    first = stream.uniform(0.2, 1, n)
    p = np.column_stack([first, first * stream.uniform(0.3, 1, n)])
    wrong = 1 - full, stream.random(n), 1 - best  # predictions that are as bad as can be
    found = [sampled(stream, full, best, *wrong, p) for _ in range(turns)]
    for values, truth in (
        ([one.whole.sum() for one in found], full.sum()),
        ([one.cells.sum() for one in found], best.sum()),
    ):
        assert abs(np.mean(values) - truth) < 4 * np.std(values) / math.sqrt(turns)
    for x, y in ((1, 0), (0, 1), (1, -0.7)):
        sums = [x * one.cells.sum() + y * one.whole.sum() for one in found]
        told = [one.variances(x, y).sum() for one in found]
        assert abs(np.mean(told) - np.var(sums)) < 5 * np.std(told) / math.sqrt(turns) + 5 * np.var(sums) * math.sqrt(
            2 / turns
        )


def test_docs_asked_in_full_say_what_they_are():
    full, best = np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0])
    one = Sampled(full, best, np.full(3, 2), np.ones((3, 2)), *np.full((3, 3), 0.3))
    assert one.whole.tolist() == full.tolist()
    assert one.cells == pytest.approx(best)
    assert not one.variances(1, -1).any()
    ends = interval(one)
    assert ends.value == ends.low == ends.high == index(np.column_stack([full, best]))


def test_the_interval_of_the_population_is_that_of_ratios_in_text_books():
    """All docs asked: Cochran 1977, (6.13), by clusters, with Student's quantile; and half a doc that was not seen."""
    scores, docs = world(2000, per_cluster=4)
    full, best = scores[:, 0], scores[:, 1:].max(axis=1)
    n = len(full)
    one = Sampled(full, best, np.full(n, 2), np.ones((n, 2)), *np.zeros((3, n)))
    ends = interval(one, "population", docs.clusters)
    ratio = best.mean() / full.mean()
    sums = np.bincount(docs.clusters, best - ratio * full)
    se = math.sqrt((sums**2).sum() * 500 / 499) / full.sum()
    df = 2 * (sums**2).sum() ** 2 / (sums**4).sum()
    assert ends.half == pytest.approx(student.ppf(0.975, df) * se, rel=0.02)
    assert ends.low < 1 - ratio < ends.high


def test_where_all_docs_seen_are_alike_the_interval_still_has_a_width():
    """100 of 1,000 docs asked, no cell right: up to 3 in 100 may be (the rule of three), so the lower end is near 0.97, not 1."""
    n = 1000
    steps = np.where(np.arange(n) < 100, 2, 0)
    one = Sampled(np.ones(n), np.zeros(n), steps, np.full((n, 2), 0.1), np.ones(n), np.zeros(n), np.zeros(n))
    assert interval(one).low == pytest.approx(0.977, abs=0.001)
    assert interval(one, "population").low == pytest.approx(0.975, abs=0.001)


def test_the_index_has_no_unit():
    """The same scores out of 1, 5 and 100: the same interval."""
    n = 400
    stream = np.random.default_rng(4)
    full, best = (stream.random((2, n)) < 0.99).astype(float)
    p = np.where(np.arange(n)[:, None] < 100, 1.0, 0.2) * np.ones((1, 2))
    steps = np.where(stream.random(n) < p[:, 0], 2, 0)
    ends = [interval(Sampled(k * full, k * best, steps, p, *np.full((3, n), 0.9 * k)), most=k) for k in (1, 5, 100)]
    assert all(one.low == pytest.approx(ends[0].low) and one.high == pytest.approx(ends[0].high) for one in ends)


def test_a_few_docs_that_were_left_out_may_be_anything():
    """40 of 41 docs asked whole: the interval holds what the last one makes of it, whatever that is (within 0.01: it was predicted, too)."""
    full, best = np.r_[np.ones(29), np.zeros(11)], np.r_[np.ones(17), np.zeros(23)]
    p = np.r_[np.ones(40), 0.5][:, None] * np.ones((1, 2))
    ends = interval(Sampled(np.r_[full, 0], np.r_[best, 0], np.r_[np.full(40, 2), 0], p, *np.full((3, 41), 0.5)))
    for last in itertools.product((0, 1), (0, 1)):
        assert ends.low - 0.01 <= 1 - (17 + last[1]) / (29 + last[0]) <= ends.high + 0.01


@pytest.mark.parametrize("shape", ["nearly all right", "rarely right"])
def test_small_benchmarks_near_the_ends_of_the_scale(shape):
    """200 docs, the default pilot of 100: few docs are sampled, and few of them differ. 90 % of intervals or more hold the truth."""
    held, turns = 0, size(10, 60)
    for seed in range(turns):
        stream = np.random.default_rng(seed)
        levels = (0.97, 0.9) if shape == "nearly all right" else (0.8, 0.03)
        scores = np.column_stack(
            [
                stream.random(200) < levels[0],
                stream.random((200, 9)) < levels[1] / (1 if shape == "nearly all right" else 3),
            ]
        )
        docs = Docs(stream.permutation(200), stream.random(200), np.arange(200), np.ones(200), (9,), 100)
        ends = asked(scores.astype(float), docs, Goal(0.05)).interval(0)
        held += ends.low <= index(scores) <= ends.high
    assert held >= 0.9 * turns


@pytest.mark.parametrize("full", [np.zeros(4), np.array([1.0, 0, 0, 0])])
def test_where_there_is_no_index_there_is_none(full):
    p = np.full((4, 2), 0.1)
    one = Sampled(full, np.zeros(4), np.array([1, 0, 0, 0]), p, *np.zeros((3, 4)))
    ends = interval(one)
    assert not math.isfinite(ends.half)


# --- the design ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [(9,), (4, 9)], ids=["one grid", "two grids"])
def test_intervals_hold_what_the_full_pass_prints(cells):
    """Populations: the interval has the wanted width, and holds the truth in all but a few."""
    held, turns = 0, size(6, 60)
    for seed in range(turns):
        scores, docs = world(600, cells, seed)
        asking = asked(scores, docs)
        for g, place in enumerate(asking.docs.places):
            ends = asking.interval(g)
            assert ends.half <= GOAL.half + 1e-12
            held += ends.low <= index(scores, place) <= ends.high
        assert asking.calls < scores.size
    assert held >= len(cells) * binom.ppf(0.01, turns, 0.95), "a fair coin of 95 % falls below in 1 of 100 tries"


def test_the_pilot_is_asked_whole_and_clusters_stay_together():
    scores, docs = world(400, per_cluster=7)
    asking = asked(scores, docs)
    assert (asking.asked.all(axis=1) >= (asking.block == 0)).all()
    assert 60 <= (asking.block == 0).sum() < 60 + 7
    assert all(len(set(asking.block[docs.clusters == c])) == 1 for c in set(docs.clusters))
    assert sorted(np.concatenate(docs.blocks())) == list(range(400))
    assert (asking.p >= FLOOR).all()
    assert (asking.p[:, 1] <= asking.p[:, 0]).all()


def test_a_killed_run_comes_to_the_same_decisions_and_asks_nothing_twice():
    scores, docs = world(600)
    whole = asked(scores, docs)
    for most in (10, 700, whole.calls - 3):
        store = {}
        with pytest.raises(InterruptedError):
            asked(scores, docs, known=store, most=most)
        again = asked(scores, docs, known=store)
        assert len(store) == whole.calls
        assert np.array_equal(again.asked, whole.asked)
        assert again.interval(0) == whole.interval(0)


def test_the_order_of_the_docs_in_the_benchmark_changes_nothing():
    scores, docs = world(500)
    back = np.random.default_rng(5).permutation(500)
    place = np.argsort(back)
    other = Docs(place[docs.order], docs.u[back], docs.clusters[back], docs.marks[back], docs.cells, docs.pilot)
    one, two = asked(scores, docs), asked(scores[back], other)
    assert np.array_equal(one.asked[back], two.asked)


def test_early_exit_loses_nothing():
    """All docs, fewer cells: the best cell of each doc and set is the best of all, by brute force."""
    scores, docs = world(300, (4, 9))
    asking = asked(scores, docs, None)
    for g, place in enumerate(asking.docs.places):
        assert asking.best[:, g].tolist() == scores[:, place].max(axis=1).tolist()
        assert asking.interval(g).value == pytest.approx(index(scores, place))
    assert asking.calls < 0.85 * scores.size
    assert (asking.p == 1).all()


def test_graded_scores_stop_at_full_marks_alone():
    scores, docs = world(300)
    graded = scores * np.random.default_rng(0).choice([0.3, 1.0], scores.shape)
    asking = asked(graded, docs, None)
    assert asking.best[:, 0].tolist() == graded[:, 1:].max(axis=1).tolist()


@pytest.mark.parametrize("change", ["above", "unknown"])
def test_without_known_marks_all_cells_are_asked(change):
    """Golds earn less than the scale, or have no score: a cell that earns the gold's marks need not be the best."""
    scores, docs = world(200, marks=0.5 if change == "above" else math.nan)
    assert asked(scores, docs, None).calls == scores.size


def worlds_of_uneven_golds(seed):
    """By the docs' golds and answers: golds of 0.9 and 1.0 with graded answers up to 1.0, or with one cell of one doc that earns more than its gold."""
    stream = np.random.default_rng(seed)
    n, cells = int(stream.integers(12, 80)), (4, 9, 16)[: int(stream.integers(1, 4))]
    marks = np.where(stream.random(n) < 0.5, 0.9, 1.0)
    if seed % 3 == 2:
        marks[stream.random(n) < 0.2] = math.nan
    if seed % 3 == 1:
        scores = (stream.random((n, 1 + sum(cells))) < stream.random() * 0.5) * marks[:, None]
        doc, (first, *others) = int(stream.integers(n)), stream.permutation(np.arange(1, 1 + sum(cells)))[:4]
        marks[doc], scores[doc] = 0.9, 0.0
        scores[doc, others], scores[doc, first] = 0.9, 1.0
    else:
        scores = np.round(stream.random((n, 1 + sum(cells))), 1)
    clusters = np.unique(stream.integers(0, max(2, n // 2), n), return_inverse=True)[1]
    shapes = tuple((math.isqrt(count), math.isqrt(count)) for count in cells)
    return scores, Docs(
        np.argsort(clusters, kind="stable"), stream.random(n), clusters, marks, cells, 10, shapes=shapes
    )


def test_no_cell_is_left_out_that_may_earn_more_than_its_docs_gold():
    """Brute force: the best cell of every doc, whatever was left out, is that of all its cells."""
    spared = 0
    for seed in range(size(30, 150)):
        scores, docs = worlds_of_uneven_golds(seed)
        asking, at = asked(scores, docs, None), 1
        spared += scores.size - asking.calls
        for g, count in enumerate(docs.cells):
            assert asking.best[:, g] == pytest.approx(scores[:, at : at + count].max(axis=1)), (seed, g)
            at += count
    assert spared > 0


def test_a_budget_is_kept():
    for seed in range(size(6, 30)):
        scores, docs = world(800, seed=seed)
        asking = asked(scores, docs, Goal(0.01, budget=2000))
        assert asking.calls <= 2000
        assert asking.calls > 1600, "and used"


def test_where_a_later_answer_beats_its_gold_all_cells_are_asked_after_all():
    scores, docs = world(300)
    odd = docs.order[-5:]
    scores[odd, 1:] = 2 * scores[odd, 1:]
    for goal in (None, GOAL):
        asking = asked(scores, docs, goal)
        done = asking.steps == 2
        assert not asking.exits or not (asking.asked[odd, 1:] & (scores[odd, 1:] > 1)).any()
        if goal is None:
            assert asking.best[done, 0].tolist() == scores[done, 1:].max(axis=1).tolist()


def test_where_an_answer_beats_its_gold_and_all_docs_are_in_the_pilot_nothing_is_left_to_ask():
    scores, docs = world(5, pilot=5)
    scores[:, 1] = 2
    assert asked(scores, docs).calls == scores.size


@pytest.mark.parametrize("half", [1e-6, 1e-3])
def test_where_the_width_cannot_be_reached_everything_is_asked(half):
    scores, docs = world(300)
    asking = asked(scores, docs, Goal(half, "population"))
    assert (asking.p == 1).all()
    assert asking.best[:, 0].tolist() == scores[:, 1:].max(axis=1).tolist()


def test_models_that_are_always_right_or_always_wrong():
    """Always right: no answer differs, and the index is 0.

    Always wrong: there is no index, and no part of the docs shows that.
    """
    scores, docs = world(400)
    asking = asked(np.ones_like(scores), docs)
    assert asking.calls < 0.6 * scores.size
    assert asking.interval(0).value == pytest.approx(0, abs=0.005)
    asking = asked(np.zeros_like(scores), docs)
    assert asking.calls == scores.size
    assert math.isnan(asking.interval(0).value)


# --- where an interval cannot hold ---------------------------------------------------------------------


def kinds_of_docs(seed, docs, right=1.0, sizes="one", mixed=None):
    """A population that is not made of traits: each doc is of one of four kinds, or is never right.

    Args:
        seed: of the answers.
        docs: how many there are, about.
        right: the share of docs that may be right.
        sizes: of clusters: ``one`` doc, or ``heavy``: two docs, and in 3 of 100 clusters a twelfth of all docs.
        mixed: how evenly a cluster mixes the kinds; None: its docs are independent.
    """
    stream = np.random.default_rng(seed)
    levels = np.array([(0.92, 0.85, 0.8), (0.9, 0.85, 0.08), (0.85, 0.1, 0.06), (0.25, 0.12, 0.08), (0, 0, 0)])
    share = np.array([0.25, 0.3, 0.2, 0.25])
    often = np.ones(docs, int) if sizes == "one" else stream.choice([2, docs // 12], docs, p=[0.97, 0.03])
    clusters = np.repeat(np.arange(len(often)), often)[:docs]
    of_cluster = np.tile(share, (len(often), 1)) if mixed is None else stream.dirichlet(share * mixed, len(often))
    kind = (stream.random((docs, 1)) > of_cluster[clusters].cumsum(axis=1)).sum(axis=1).clip(0, 3)
    kind[stream.random(docs) >= right] = 4
    chance = np.repeat(levels[kind, 2:], 10, axis=1)
    chance[:, 0] = levels[kind, 0]
    chance[np.arange(docs), stream.integers(1, 10, docs)] = levels[kind, 1]
    scores = (stream.random(chance.shape) < chance).astype(float)
    order = np.lexsort((clusters, stream.random(len(often))[clusters]))
    return scores, Docs(order, stream.random(docs), clusters, np.ones(docs), (9,), 30 if docs < 500 else 100)


@pytest.mark.parametrize(("docs", "right", "half"), [(400, 0.018, 0.15), (400, 0.036, 0.15), (800, 0.036, 0.1)])
def test_where_few_docs_are_right_all_are_asked_and_an_interval_of_a_part_holds(docs, right, half):
    """Intervals of a part held in 86 to 90 of 100, and the run stopped at them.

    The rest is asked: what a full pass prints, exactly.
    """
    exact, held, given = 0, 0, 0
    for seed in range(turns := size(8, 150)):
        scores, design = kinds_of_docs(seed, docs, right)
        asking = asked(scores, design, Goal(half))
        ends = asking.interval(0)
        if asking.p.min() == 1:
            exact += (
                math.isnan(ends.value)
                if not scores[:, 0].any()
                else ends.value == pytest.approx(index(scores), abs=1e-9)
            )
        else:
            given += 1
            held += ends.low <= index(scores) <= ends.high
    assert exact + given == turns
    assert exact >= 0.5 * turns
    assert held >= binom.ppf(0.01, given, 0.95)


def test_a_budget_that_leaves_few_right_docs_has_no_interval_finer_than_three_docs():
    for seed in range(size(10, 60)):
        scores, design = kinds_of_docs(seed, 400, 0.03)
        asking = asked(scores, design, Goal(0.01, budget=3_800))
        ends, right = asking.interval(0), scores[:, 0].sum()
        assert asking.calls <= 3_800
        if right and (asking.steps < 2).sum() >= 3:
            assert ends.half * asking.sampled(0).whole.sum() >= 3


def test_few_docs_that_are_left_are_asked_after_all():
    """A level of F that no doc seen has was never asked whole, however often the plan was raised."""
    for seed in range(size(8, 100)):
        scores, design = kinds_of_docs(seed, 400, 0.06)
        asking = asked(scores, design, Goal(0.05))
        assert asking.p.min() == 1 or (asking.steps < 2).mean() > 0.02


@pytest.mark.parametrize("mixed", size([5.0], [1.0, 5.0]))
def test_the_population_of_few_heavy_clusters_is_not_told_from_a_part(mixed):
    """Eight clusters with most docs: intervals at which a run stopped held in 79 of 100.

    Truth: many times as many docs.
    """
    sums = np.zeros(2)
    for seed in range(size(60, 200)):
        scores = kinds_of_docs(10_000 + seed, 1500, mixed=mixed)[0]
        sums += scores[:, 1:].max(axis=1).sum(), scores[:, 0].sum()
    truth, held, turns = 1 - sums[0] / sums[1], 0, size(12, 200)
    for seed in range(turns):
        scores, design = kinds_of_docs(seed, 1500, sizes="heavy", mixed=mixed)
        asking = asked(scores, design, Goal(0.05, "population"))
        sizes = np.bincount(design.clusters).astype(float)
        if (sizes**2).sum() ** 2 / (sizes**4).sum() < 50:
            assert asking.p.min() == 1
        if sizes.sum() ** 2 / (sizes**2).sum() < 10:
            assert not math.isfinite(asking.interval(0).half)
            held += 1
        else:
            held += asking.interval(0).low <= truth <= asking.interval(0).high
    assert held >= binom.ppf(0.01, turns, 0.95)


def test_fewer_than_ten_clusters_have_no_interval_of_the_population():
    scores = kinds_of_docs(0, 400)[0]
    whole = Sampled(scores[:, 0], scores[:, 1:].max(axis=1), np.full(400, 2), np.ones((400, 2)), *np.zeros((3, 400)))
    for count, given in ((9, False), (11, True)):
        assert math.isfinite(interval(whole, "population", np.arange(400) % count).half) == given
        assert math.isfinite(interval(whole, "benchmark", np.arange(400) % count).half)


def test_clusters_that_decide_are_all_where_docs_differ_and_the_large_where_they_do_not():
    places = np.repeat(np.arange(110), [100] * 10 + [1] * 100)
    alike, apart = np.where(places < 10, (-1.0) ** places, 0.0), (-1.0) ** np.arange(len(places))
    assert clusters_that_decide(alike, places) == pytest.approx(10, abs=0.1)
    assert clusters_that_decide(apart, places) == pytest.approx(1100**2 / (10 * 100**2 + 100), rel=0.01)
    assert clusters_that_decide(alike[:1000], np.arange(1000)) == 1000


# --- parts --------------------------------------------------------------------------------------------


def test_rates_are_the_cheapest():
    """Against a numerical optimum of v / W + sum p v / W' under one budget, with W' <= W."""
    stream = np.random.default_rng(2)
    for _ in range(size(6, 20)):
        image, finish = (
            stream.uniform(0.05, 1),
            [(p, stream.uniform(0.01, 1), stream.uniform(1, 9)) for p in (0.3, 0.2, 0.5)],
        )
        first, rest = best_rates(image, finish)

        def spent(w, finish=finish):
            return w[0] + sum(p * k * x for (p, _, k), x in zip(finish, w[1:], strict=True))

        def variance(w, finish=finish, image=image):
            return image / w[0] + sum(p * v / x for (p, v, _), x in zip(finish, w[1:], strict=True))

        ours = np.array([first, *rest])
        limits = [{"type": "ineq", "fun": lambda w, k=k: w[0] - w[k]} for k in (1, 2, 3)]
        budget = spent(ours)
        limits += [{"type": "eq", "fun": lambda w, budget=budget, spent=spent: spent(w) - budget}]
        best = minimize(variance, np.full(4, 0.3), constraints=limits, bounds=[(1e-3, 50)] * 4)
        assert variance(ours) <= best.fun * (1 + 1e-4)


def test_the_regression_is_that_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    stream = np.random.default_rng(3)
    features = np.column_stack([np.ones(300), stream.normal(size=(300, 3))])
    scores = (stream.random(300) < 1 / (1 + np.exp(-features @ [0.3, 1, -1, 0.2]))).astype(float)
    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(features, scores).coef_[0]
    assert logistic(features, scores, turns=50) == pytest.approx(theirs, abs=1e-4)


# --- where to look in a finer grid --------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "other"), [((2, 2), (3, 3)), ((4, 4), (2, 2)), ((1, 5), (1, 3)), ((9, 9), (8, 8))])
def test_the_overlap_of_cells_is_that_of_their_points(shape, other):
    """By the definition, on a lattice of points so fine that each cell of both holds whole numbers of them."""
    side = [math.lcm(*pair) for pair in zip(shape, other, strict=True)]
    rows, columns = (np.arange(count) for count in side)

    def numbers(of):
        return (rows * of[0] // side[0])[:, None] * of[1] + columns * of[1] // side[1]

    want = np.zeros((math.prod(shape), math.prod(other)))
    np.add.at(want, (numbers(shape).ravel(), numbers(other).ravel()), 1)
    np.testing.assert_allclose(overlap(shape, other), want / want.sum(axis=1, keepdims=True), atol=1e-12)


def spots(docs=500, grids=(2, 3, 4, 5), size=0.08, seed=0):
    """A cell is right if it holds the doc's spot, which lies anywhere, and in one of 50 by luck."""
    stream = np.random.default_rng(seed)
    start = stream.uniform(0, 1 - size, (2, docs))
    parts = [np.ones((docs, 1), bool)]
    for n in grids:
        down, across = ((n * at).astype(int)[:, None] == np.arange(n) for at in start)
        inside = [(n * at).astype(int) == (n * (at + size)).astype(int) for at in start]
        held = (down[:, :, None] & across[:, None, :] & (inside[0] & inside[1])[:, None, None]).reshape(docs, -1)
        parts.append(held | (stream.random(held.shape) < 0.02))
    scores = np.concatenate(parts, axis=1).astype(float)
    order = (
        stream.permutation(docs),
        stream.random(docs),
        np.arange(docs),
        np.ones(docs),
        tuple(n * n for n in grids),
        60,
    )
    return scores, Docs(*order), Docs(*order, shapes=tuple((n, n) for n in grids))


@pytest.mark.parametrize("seed", range(size(1, 3)))
def test_a_right_cell_says_where_to_look_in_the_next_grid(seed):
    """Early exit keeps each doc's best cells exactly, and asks less if it knows where cells lie.

    Where spots are mixed up between grids, no more.
    """
    scores, plain, placed = spots(seed=seed)
    without, known = (asked(scores, docs, None) for docs in (plain, placed))
    for asking in (without, known):
        for g, place in enumerate(asking.docs.places):
            np.testing.assert_array_equal(asking.best[:, g], scores[:, place].max(axis=1))
    assert known.calls < 0.85 * without.calls
    mixed = scores.copy()
    for g, place in enumerate(known.docs.places):
        mixed[:, place] = scores[np.random.default_rng([seed, g]).permutation(len(scores)), place]
    without, known = (asked(mixed, docs, None) for docs in (plain, placed))
    assert known.calls < 1.02 * without.calls
