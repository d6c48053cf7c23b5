"""Iterative Bias Pruning against cases worked out by hand, and properties that any pruning must have."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from lmms_patch.tst.diagnosis import DEALS, Diagnosis, deal_golds, diagnose
from lmms_patch.tst.folds import grouping
from lmms_patch.tst.items import Item
from lmms_patch.tst.prune import OVER_PRUNED, against_baseline, by_luck, prune
from lmms_patch.tst.selection import PruneSettings, Selector, amount, hashed, shares
from lmms_patch.tst.shuffle import shuffle_golds
from lmms_patch.tst.tree_diagnostic import RfDiagnostic
from lmms_patch.tst.trees import ModelSettings
from tests.sizes import examples
from tests.tst.worlds import given_away, rewards_of

ANSWERS = ("A", "B", "C", "D")


def choice(i, gold="A", category="c", source=None):
    return Item(i, f"q{i}", f"q{i}", "mc", ANSWERS, ANSWERS, (gold,), category, source, source, key=f"k{i:03}")


def pruned_keys(items, result):
    return [items[i].key for i in result.removed]


# --- amounts and shares -------------------------------------------------------------------------


def test_an_amount_is_a_number_or_a_share():
    assert (amount(0.3, 10), amount(3, 10), amount(30, 10), amount(0.25, 10)) == (3, 3, 10, 2)  # 2.5 rounds to even


def test_shares_are_largest_remainders():
    # 10 in proportion to 1 : 1 : 1 is 3.33 each: one gets the missing one, the first by name
    assert shares({"b": 1, "a": 1, "c": 1}, 10) == {"b": 1, "a": 1, "c": 1}  # never more than there is
    assert shares({"b": 10, "a": 10, "c": 10}, 10) == {"a": 4, "b": 3, "c": 3}
    assert shares({"a": 60, "b": 30, "c": 10}, 10) == {"a": 6, "b": 3, "c": 1}
    assert shares({"a": 0, "b": 0}, 5) == {"a": 0, "b": 0}


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 50), min_size=1), st.integers(0, 100))
def test_shares_add_up_and_exceed_nothing(weights, total):
    found = shares({k: float(v) for k, v in weights.items()}, total)
    assert sum(found.values()) == min(total, sum(weights.values()))
    assert all(0 <= found[k] <= weights[k] for k in weights)


# --- one round ----------------------------------------------------------------------------------


def test_top_takes_the_highest_and_breaks_ties_by_a_hash_of_the_key():
    items = [choice(i) for i in range(6)]
    scores = {0: 0.1, 1: 0.9, 2: 0.5, 3: 0.5, 4: 0.5, 5: 0.2}
    tied = sorted(["k002", "k003", "k004"], key=lambda key: hashed(7, key))
    chosen = Selector(items, PruneSettings(budget=3, seed=7)).choose(scores, [], 3, 1)
    assert list(chosen) == ["k001", *tied[:2]]
    assert chosen["k001"] == 0.9


def test_hash_is_known():
    # sha256("0/x") begins with 6ae8a755...: computed with the sha256sum program
    import hashlib

    assert hashed(0, "x") == int.from_bytes(hashlib.sha256(b"0/x").digest()[:8], "big") / 2**64
    assert 0 <= hashed(3, "y") < 1


def test_allocation_by_category_is_in_proportion():
    items = [choice(i, category="a" if i < 60 else "b") for i in range(90)]
    scores = {i: 1.0 if i >= 60 else 0.5 for i in range(90)}  # all of b is worse than all of a
    for allocation, want in (
        ("global", {"a": 0, "b": 9}),
        ("category", {"a": 6, "b": 3}),
        ({"a": 0.05, "b": 2}, {"a": 3, "b": 2}),
    ):
        selector = Selector(items, PruneSettings(budget=9, allocation=allocation))
        chosen = selector.choose(scores, [], selector.budget, 1)
        found = {name: sum(items[int(key[1:])].category == name for key in chosen) for name in "ab"}
        assert found == want, allocation
    assert Selector(items, PruneSettings(budget=0.3, allocation={"a": 0.5})).budget == 30


def test_allocation_by_format():
    items = [choice(i) for i in range(20)] + [
        dataclasses.replace(choice(i), format="number", options=(), answers=(), golds=("1",)) for i in range(20, 30)
    ]
    chosen = Selector(items, PruneSettings(budget=6, allocation="format")).choose(
        dict.fromkeys(range(30), 0.5), [], 6, 1
    )
    assert sum(int(key[1:]) < 20 for key in chosen) == 4


def test_balanced_takes_from_the_most_frequent_gold_first():
    """Golds 6 x A, 3 x B, 1 x C.

    The removals must bring A down to B before B is touched: A A A, then A and B in turn.
    """
    golds = "AAAAAABBBC"
    items = [choice(i, gold) for i, gold in enumerate(golds)]
    scores = {i: 0.1 if gold == "A" else 0.9 for i, gold in enumerate(golds)}
    chosen = Selector(items, PruneSettings(budget=7, strategy="balanced")).choose(scores, [], 7, 1)
    taken = "".join(golds[int(key[1:])] for key in chosen)
    assert taken[:3] == "AAA"
    left = {gold: golds.count(gold) - taken.count(gold) for gold in "ABC"}
    assert left == {"A": 1, "B": 1, "C": 1}


def test_weighted_draws_in_proportion():
    """Two items with weights 3 : 1 (and a third of weight 0): the first goes first three times in four."""
    first = 0
    for seed in range(2000):
        items = [choice(i) for i in range(3)]
        chosen = Selector(items, PruneSettings(budget=1, strategy="weighted", seed=seed)).choose(
            {0: 0.3, 1: 0.1, 2: 0.0}, [], 1, 1
        )
        first += "k000" in chosen
        assert "k002" not in chosen
    assert abs(first / 2000 - 0.75) < 3 * (0.75 * 0.25 / 2000) ** 0.5


# --- the whole procedure ------------------------------------------------------------------------


def world(items, biased, noise=0.0, floor=0.25):
    """A diagnostic that knows the planted items, as long as any is there, and guesses at the others."""
    biased = set(biased)

    def diagnose(places, seeds):
        stream = np.random.default_rng(list(seeds))
        knows = np.array([items[i].key in biased for i in places])
        s = np.where(knows, 0.9, floor) + noise * stream.normal(size=len(places))
        scores = np.array([np.where(knows, 1.0, stream.random(len(places)) < floor) for _ in seeds], float)
        baseline = np.array([stream.random(len(places)) < floor for _ in seeds], float)
        dealt = np.where(knows, 0.1 / 3, floor) + noise * stream.normal(size=(2, len(places)))
        return Diagnosis(s, np.full(len(places), floor), scores, baseline, dealt=(dealt, np.ones(dealt.shape)))

    return diagnose


def test_planted_items_go_first_and_it_stops_near_chance():
    items = [choice(i) for i in range(300)]
    planted = [f"k{i:03}" for i in range(0, 300, 6)]  # 50
    found = prune(items, PruneSettings(budget=0.5, batch=25), world(items, planted))
    assert set(pruned_keys(items, found)) == set(planted)
    assert found.stopped == "text-only scores are not significantly above those under golds dealt anew"
    assert [len(done.removed) for done in found.rounds] == [25, 25, 0]
    assert found.innocent == 0


def test_budget_and_batch():
    items = [choice(i) for i in range(100)]
    found = prune(items, PruneSettings(budget=10, batch=4), world(items, [f"k{i:03}" for i in range(50)]))
    assert [len(done.removed) for done in found.rounds] == [4, 4, 2, 0]
    assert found.stopped == "the budget is used up"
    assert len(found.kept) == 90
    assert found.scores == pytest.approx([0.65] * 10)  # 0.9 less a guess


def test_tau_stops():
    items = [choice(i) for i in range(100)]
    found = prune(items, PruneSettings(budget=0.9, batch=10, tau=0.95), world(items, ["k001"]))
    assert len(found.removed) == 0
    assert found.stopped.startswith("the highest score is below tau (0.650 < 0.95)")


def test_over_pruning_is_taken_back():
    """After the first round what is left is answered against the pattern: always wrong where a guess is right one time in four."""
    items = [choice(i) for i in range(200)]

    def diagnose(places, seeds):
        n = len(places)
        right = 1.0 if n == 200 else 0.0
        return Diagnosis(np.linspace(1, 0, n), np.full(n, 0.25), np.full((1, n), right), np.full((1, n), 0.25))

    found = prune(items, PruneSettings(budget=100, batch=50), diagnose)
    assert found.over_pruned
    assert found.stopped == OVER_PRUNED
    assert len(found.removed) == 0  # the round that did it is taken back


def test_every_round_has_new_fold_seeds():
    items = [choice(i) for i in range(60)]
    seen = []

    def diagnose(places, seeds):
        seen.append(list(seeds))
        return world(items, [f"k{i:03}" for i in range(30)])(places, seeds)

    prune(items, PruneSettings(budget=12, batch=4, fold_seeds=2), diagnose)
    flat = [seed for seeds in seen for seed in seeds]
    assert len(flat) == len(set(flat)) == 2 * len(seen)


@given(
    st.permutations(range(40)),
    st.sampled_from(["top", "weighted", "balanced"]),
    st.sampled_from(["global", "category"]),
)
@examples(25)
def test_the_order_of_the_items_changes_nothing(order, strategy, allocation):
    items = [choice(i, gold="ABCD"[i % 3], category="xy"[i % 2]) for i in range(40)]
    scores = np.array([(i * 37 % 11) / 11 for i in range(40)])
    chosen = PruneSettings(budget=15, strategy=strategy, allocation=allocation)
    one = prune(items, chosen, None, given=scores)
    other_items = [items[i] for i in order]
    other = prune(other_items, chosen, None, given=scores[list(order)])
    assert pruned_keys(items, one) == pruned_keys(other_items, other)


@given(
    st.lists(st.one_of(st.none(), st.floats(-1, 1)), min_size=1, max_size=40),
    st.integers(1, 30),
    st.sampled_from(["top", "weighted", "balanced"]),
    st.sampled_from(["global", "category", "format"]),
)
@examples(60)
def test_budgets_and_unscored(scores, budget, strategy, allocation):
    items = [choice(i, gold="ABCD"[i % 4], category="xyz"[i % 3]) for i in range(len(scores))]
    values = np.array([np.nan if s is None else s for s in scores])
    found = prune(items, PruneSettings(budget=budget, strategy=strategy, allocation=allocation), None, given=values)
    assert len(found.removed) <= budget
    assert np.isfinite(values[found.removed]).all()
    assert sorted([*found.kept, *found.removed]) == list(range(len(items)))


# --- the tests that stop it ---------------------------------------------------------------------


def test_luck_is_what_scores_without_a_shortcut_are():
    """400 items of 2,000 have scores about 2, the others about 0, as dealt golds have: Bayes' rule says how likely each is to be of the others."""
    stream = np.random.default_rng(0)
    planted = np.arange(2000) < 400
    scores, dealt = stream.normal(2.0 * planted), stream.normal(size=(3, 2000))
    luck = by_luck(np.append(scores, np.nan), np.column_stack([dealt, [np.nan] * 3]), np.ones((3, 2001)))
    assert luck[-1] == 1, "an unscored item never goes"
    order = np.argsort(-scores)
    assert (np.diff(luck[order]) >= 0).all(), "a lower score is never less likely luck"
    planted_height, height = 0.2 * norm.pdf(scores - 2), norm.pdf(scores)
    assert abs(luck[:-1] - np.minimum(1, height / (planted_height + 0.8 * height))).mean() < 0.05, (
        "every item may be luck, so 1 stands for 0.8"
    )
    goes = luck[:-1] < 0.5  # also of a part: as many by luck as are expected
    assert (~planted)[goes].sum() == pytest.approx(luck[:-1][goes].sum(), abs=15)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.7, 0.3), (0.1, 0.2, 0.3, 0.4)])
def test_a_dealt_gold_counts_as_often_as_the_own_one_would(shares):
    """Of a text that says nothing: whatever is made of the gold alone has the same sum under own golds and, weighted, under dealt ones."""
    golds = [gold for gold, share in zip(ANSWERS, shares, strict=False) for _ in range(round(share * 200))]
    items, places = [choice(i, gold) for i, gold in enumerate(golds)], np.arange(200)
    lenders, weights = deal_golds(items, places, 400, 0)
    lent = np.array(golds)[lenders]
    assert (lent != golds).all(), "what is known of the own gold does not count"
    for gold, share in zip(ANSWERS, shares, strict=False):
        assert (weights * (lent == gold)).sum() / 400 == pytest.approx(200 * share, rel=0.03)


def test_open_answers_that_are_typical_of_their_category_are_no_luck():
    """Nine in ten objects are counted as 2: dealt golds score as the own ones do, and yet these docs are what pruning is for."""
    items = [
        dataclasses.replace(choice(i, "2" if i % 10 else "7"), format="number", options=(), answers=())
        for i in range(100)
    ]

    def diagnose(places, seeds):
        s = np.array([0.9 if items[i].golds == ("2",) else 0.1 for i in places])
        marks = np.ones((1, len(places)))
        return Diagnosis(s, 0 * s, marks, 0 * marks, dealt=(np.stack([s - 0.05, s - 0.05]), np.ones((2, len(places)))))

    found = prune(items, PruneSettings(budget=30, batch=10), diagnose)
    assert len(found.removed) == 30
    assert found.innocent is None


def test_golds_are_dealt_within_category_and_format():
    kinds = [choice(i, "AB"[i % 2], category="xy"[i // 10]) for i in range(20)]
    kinds += [
        dataclasses.replace(choice(20 + i), format="number", options=(), answers=(), golds=(str(i),)) for i in range(5)
    ]
    kinds += [choice(25, "A", category="alone"), dataclasses.replace(choice(26), golds=())]
    lenders, weights = deal_golds(kinds, np.arange(27), 5, 0)
    for at in range(25):
        assert all(
            (kinds[i].category, kinds[i].format) == (kinds[at].category, kinds[at].format) for i in lenders[:, at]
        )
        assert at not in lenders[:, at]
    assert (lenders[:, 25:] == [25, 26]).all(), "nobody to lend: its own"
    assert (weights == 1).all(), "golds that are as frequent as each other"


def test_a_pruning_of_words_that_give_answers_away_removes_hardly_any_other_doc():
    """80 of 400 questions hold one of 8 words that stand for yes or no; golds that mean nothing are not pruned."""
    items, told = given_away(400, 80, 8)
    kept, none = (
        prune(own, PruneSettings(budget=0.3, fold_seeds=2), trees_of(own)) for own in (items, shuffle_golds(items, 0))
    )  # fmt: skip
    assert told[kept.removed].sum() >= 40
    innocent = (~told[kept.removed]).sum()
    assert innocent <= 0.25 * len(kept.removed)
    assert kept.innocent == pytest.approx(innocent, abs=10)
    assert len(none.removed) == 0


def trees_of(items):
    """The trees as ``lmms-patch prune`` has them."""
    rewards = rewards_of(items)
    prepared = RfDiagnostic(ModelSettings(trees=30, beside=False)).prepare(items, rewards)
    by = grouping(items, "none")
    return lambda places, seeds: diagnose(prepared, items, rewards, places, by, seeds=seeds, deals=DEALS)


def test_below_is_below_the_lower_of_baseline_and_chance():
    """A baseline that knows the test set (0.35 where a guess earns 0.25) does not make honest guesses over-pruned."""
    stream = np.random.default_rng(0)
    scores = (stream.random((1, 4000)) < 0.25).astype(float)
    baseline = (stream.random((1, 4000)) < 0.35).astype(float)
    told, above, below = against_baseline(Diagnosis(scores[0], np.full(4000, 0.25), scores, baseline), None)
    assert told == baseline.mean()
    assert above > 0.9
    assert below > 0.05
    _, _, below = against_baseline(Diagnosis(scores[0], np.full(4000, 0.25), scores * 0, baseline), None)
    assert below < 0.001
