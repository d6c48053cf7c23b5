"""Copies: which docs count as the same question, what the others of them suggest, and where a gain over the majority is only their reverse."""

import itertools
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.present import text_only
from lmms_patch.runs.details import TstDetails
from lmms_patch.runs.numbers import ALPHA
from lmms_patch.runs.typed import convert
from lmms_patch.tst import results
from lmms_patch.tst.copies import Copies, cluster_of, gold_of, normal, text_of, unnamed_copies
from lmms_patch.tst.diagnosis import Diagnosis
from lmms_patch.tst.folds import grouping, headline
from lmms_patch.tst.prune import prune
from lmms_patch.tst.results import withheld
from lmms_patch.tst.selection import PruneError, PruneSettings
from lmms_patch.tst.trees import ModelSettings
from tests.making.docs import frame_of
from tests.making.tst import details_of, stress_of
from tests.sizes import examples, size
from tests.tst.worlds import (
    balanced,
    constant_gold,
    copied,
    cross_validate,
    free,
    mc,
    number,
    paraphrases,
    planted_yesno,
    rewards_of,
    vocabulary,
    vsr_like,
    yesno,
)

RNG = np.random.default_rng


def classes(items):
    return Copies(items).classes(np.arange(len(items)), rewards_of(items))


# --- the same text ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Is there a Car?", "is  there a car"),
        ("Is it 1,000 m?", "Is it 1000.0 m"),
        ("a well-known place", "a well known place"),
        ("don't", "don\N{RIGHT SINGLE QUOTATION MARK}t"),
        ("\N{FULLWIDTH DIGIT FIVE} m", "5 m"),
        ("\N{LATIN SMALL LIGATURE FI}ne", "fine"),
        ("'red', (blue) ...", "red blue"),
        ("STRASSE", "straße"),
        ("\N{MINUS SIGN}3", "-3.0"),
    ],
)
def test_what_does_not_change_a_text(one, other):
    assert normal(one) == normal(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x < 2", "x > 2"),
        ("-3", "3"),
        ("3-4", "34"),
        ("50 %", "50"),
        ("C++", "C"),
        ("1.5", "15"),
        ("?", "!"),
        ("a car", "a cart"),
        ("1,2", "12"),
        ("", "?"),
    ],
)
def test_what_does(one, other):
    assert normal(one) != normal(other)


def test_options_count_in_any_order_and_the_rest_of_the_prompt_too():
    one, other = mc(0, "Which?", ["a cat", "A dog."], 0), mc(1, "which", ["a dog", "a cat"], 1)
    assert text_of(one) == text_of(other)
    assert gold_of(one) == gold_of(other), "the option's text, not its letter"
    told = [replace(item, prompt=f"Hint: it barks. {item.prompt}") for item in (one, other)]
    assert text_of(told[0]) == text_of(told[1]) != text_of(one), "another passage makes another question"


# --- what is one piece of evidence --------------------------------------------------------------------


def parts(labels):
    """Which items stand together, whatever their labels."""
    return {frozenset(j for j, other in enumerate(labels) if other == label) for label in labels}


def test_clusters():
    others = [yesno(i, f"Is number {word} here?", "no") for i, word in enumerate(vocabulary(10, RNG(0)))]
    assert cluster_of(others) is None
    items = [
        *others,
        yesno(10, "Does it rain?", "no", source="a"),
        yesno(11, "Does it snow?", "no", source="a"),
        yesno(12, "Does it rain?", "yes", source="b"),
        yesno(13, "Does it rain?", "yes"),
        yesno(14, "does it  rain", "no"),
        replace(yesno(15, "Does it hail?", "no"), cluster="c"),
        replace(yesno(16, "Does it rain?", "no"), cluster="c"),
    ]
    alone = {frozenset([i]) for i in (*range(10), 12)}
    assert parts(cluster_of(items)) == alone | {frozenset(own) for own in ((10, 11), (13, 14), (15, 16))}
    asked = [yesno(20 + i, "Is it so?", "no") for i in range(5)]
    assert len(parts(cluster_of([*items, *asked]))) == 14 + 5, "five of 22 docs: the task's own question"
    assert len(parts(cluster_of([*items, *asked[:4]]))) == 14 + 1


ROWS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([None, "x", "y"]), st.sampled_from([None, None, "z"])),
    min_size=1,
    max_size=25,
)


@examples(100)
@given(ROWS)
def test_records_have_the_clusters_of_items(rows):
    """What a finished run says of its docs, and what pruning sees of them, stand together alike."""
    items = [
        replace(yesno(i, f"Is the {text * 9} here?", "no", source=source), cluster=cluster)
        for i, (text, source, cluster) in enumerate(rows)
    ]
    records = [
        {
            "doc_id": i,
            "tst": {"grouping": "none", "scores": {"none": [1.0]}, "source": item.source, "text": text},
            "fields": {} if item.cluster is None else {"cluster": item.cluster},
        }
        for i, (item, text) in enumerate(zip(items, unnamed_copies(items), strict=True))
    ]
    found, told = cluster_of(items), results.clusters_of(frame_of(records))
    assert (found is None) == (told is None)
    assert found is None or parts(found.tolist()) == parts(told.tolist())


@pytest.mark.parametrize("known", [True, False])
def test_copies_of_random_golds_are_one_piece_of_evidence(known):
    """60 questions of four options, each four times with one gold, and answers that are coins, alike for all copies.

    Taken for 240 docs they are above a guess by interval and p in far more than 2.5 % of the sets; taken for 60 they are not.
    """
    items, stream, claimed, sets = copied(60, 4, rotated=True), RNG(0), 0, size(60, 300)
    texts = unnamed_copies(items) if known else [None] * len(items)
    for seed in range(sets):
        right = np.repeat(stream.random(60) < 0.25, 4).astype(float)
        tests = [
            {"grouping": "none", "scores": {"none": [score]}, "baseline": {"none": [0.25]}, "text": text}
            for score, text in zip(right.tolist(), texts, strict=True)
        ]
        found = stress_of([{"doc_id": i, "tst": one} for i, one in enumerate(tests)], draws=300, seed=seed).by_grouping[
            "none"
        ]
        claimed += found.above.low > 0 and found.p < ALPHA
        assert found.above.clusters == (60 if known else 240)
    assert claimed <= 0.025 * sets + 2 * np.sqrt(0.025 * sets) if known else claimed > 0.08 * sets


def test_golds_are_compared_by_text_and_by_value():
    assert gold_of(number(0, "q", "1,000")) == gold_of(number(1, "q", "1000.0")) != gold_of(number(2, "q", 100))
    assert gold_of(free(0, "q", "Red.")) == gold_of(free(1, "q", "red", "crimson"))
    assert gold_of(yesno(0, "q", None)) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Is the crimson umbrella behind the wooden bench?", "Is the crimson umbrela behind the wooden bench?"),
        ("Is the crimson umbrella behind the wooden bench?", "Behind the wooden bench, is there the crimson umbrella?"),
    ],
)
def test_near_copies(one, other):
    """A typo, and another order of the words, among questions on other things."""
    others = [
        yesno(i, f"Is the {a} {b} behind the {c} {d}?", "no")
        for i, (a, b, c, d) in enumerate(zip(*[iter(vocabulary(80, RNG(0)))] * 4, strict=True))
    ]
    found = Copies([*others, yesno(50, one, "yes"), yesno(51, other, "no")])
    assert found.texts[-1] == found.texts[-2]
    assert len(set(found.texts)) == len(others) + 1
    assert (found.repeats().repeated, found.repeats().near, found.conflict) == (0, 2, True)


def test_questions_of_one_template_are_no_near_copies():
    """One word differs of nine; and the same question on another passage is another question."""
    items = [
        yesno(i, f"Is there a {word} in the middle of this picture?", "no")
        for i, word in enumerate(vocabulary(60, RNG(0)))
    ]
    assert Copies(items).repeats().near == 0
    told = [
        replace(items[0], context=text, prompt=f"{text} {items[0].prompt}") for text in ("It rained.", "It snowed.")
    ]
    assert len(set(Copies([*items, *told]).texts)) == len(items) + 2
    orders = [
        free(i, " ".join(order), "a")
        for i, order in enumerate(itertools.permutations(["red", "blue", "green", "white", "black"]))
    ]
    assert Copies(orders).repeats().near == 0, "they have no rare n-grams at all"
    empty = [free(0, "", "a"), replace(free(1, "", "a"), prompt="It rained.", context="It rained.")]
    assert len(set(Copies(empty).texts)) == 2


@pytest.mark.parametrize("rotated", [False, True])
def test_copies_that_agree_are_one_item(rotated):
    """No source tells them apart, so they stay in one fold, and random golds are not learned."""
    items = copied(size(60, 150), 4, rotated=rotated)
    kept, why = headline(Copies(items), rewards_of(items), 1.0, 5)
    assert (kept.name, why) == ("none", {})
    np.testing.assert_array_equal(kept.groups, np.repeat(np.arange(len(items) // 4), 4))
    assert abs(cross_validate(items).accuracy - 0.25) < 3 * np.sqrt(0.25 * 0.75 / (len(items) / 4))


def test_copies_that_may_be_other_items_stay_apart():
    """With different golds, with a source, or of a question that a third of the docs share."""
    items = copied(20, 2)
    for some, groups in ((2, 22), (3, 40)):  # one in ten of the docs, or more
        other = [
            replace(item, golds=(next(a for a in item.answers if a not in item.golds),))
            for item in items[: 2 * some : 2]
        ]
        apart = [
            *(item for pair in zip(other, items[1 : 2 * some : 2], strict=True) for item in pair),
            *items[2 * some :],
        ]
        assert len(set(grouping(apart, "none").groups)) == groups
    assert len(set(grouping([replace(item, source=i) for i, item in enumerate(items)], "none").groups)) == 40
    assert len(set(grouping([free(i, f"q {i % 3}", f"a {i % 3}") for i in range(30)], "none").groups)) == 30


def test_near_copies_with_opposite_golds_are_kept_together():
    items = paraphrases(100, opposite=True)
    kept, _ = headline(Copies(items), rewards_of(items), 1.0, 5)
    assert (kept.name, kept.usable) == ("text", True)
    np.testing.assert_array_equal(kept.groups, np.repeat(np.arange(100), 2))


def test_repeats_by_hand():
    """q1 three times with the golds a, b, a (conflict: 3 items); q2 twice, both c; q3 once."""
    items = [
        free(i, q, gold)
        for i, (q, gold) in enumerate([("q1", "a"), ("q1", "b"), ("Q1", "a"), ("q2", "c"), ("q2 ", "c"), ("q3", "d")])
    ]
    found = Copies(items).repeats()
    assert (found.different, found.repeated, found.conflicting) == (3, 5, 3)
    no_gold = Copies([replace(items[0], golds=()), items[1]]).repeats()
    assert (no_gold.different, no_gold.repeated, no_gold.conflicting) == (1, 2, 0)
    assert Copies([]).repeats().different == 0
    several = [replace(items[0], golds=golds) for golds in (("a", "b"), ("a", "c"))]
    assert Copies(several).repeats().conflicting == 0, "the first gold is the label; others are ways to say it"


# --- what the others suggest ------------------------------------------------------------------------


@examples(80)
@given(st.lists(st.tuples(st.sampled_from("pqr"), st.sampled_from(["red", "blue", "green"])), max_size=14))
def test_classes_are_those_of_a_count_of_the_others(rows):
    """Brute force, doc by doc: the golds that most others have; all of them right, none, or both."""
    found = classes([free(i, text, gold) for i, (text, gold) in enumerate(rows)])
    for i, (text, gold) in enumerate(rows):
        others = Counter(g for j, (t, g) in enumerate(rows) if j != i and t == text)
        top = {g for g, count in others.items() if count == max(others.values())}
        assert found[i] == (
            "single" if not top or (gold in top and len(top) > 1) else "agreeing" if top == {gold} else "conflicting"
        )


def test_only_the_docs_that_are_left_count():
    items = [yesno(i, "q", gold) for i, gold in enumerate(["yes", "no", "no"])]
    assert Copies(items).classes(np.array([1, 2]), rewards_of(items)) == ["agreeing", "agreeing"]
    assert Copies(items).classes(np.array([0]), rewards_of(items)) == ["single"]


def test_numbers_agree_where_the_scorer_gives_half_of_the_marks():
    """Golds 100, 110, 115 and 300 of one text.

    Without itself, 110 is best for each of the first three: within 25 %, so half of the thresholds.

    For 300 it earns nothing. Under an exact scorer no two agree.
    """
    items = [number(i, "How long?", gold) for i, gold in enumerate([100, 110, 115, 300])]
    assert classes(items) == ["agreeing", "agreeing", "agreeing", "conflicting"]
    exact = [replace(item, format="open") for item in items]
    assert classes(exact) == ["conflicting"] * 4
    same = [number(i, "How many?", gold) for i, gold in enumerate(["1,000", "1000", 2])]
    assert classes(same) == ["single", "single", "conflicting"], "each 1000 sees one 1000 and one 2: a tie"


def test_letters_of_shuffled_options_agree_by_their_texts():
    items = [mc(0, "q", ["cat", "dog"], 0), mc(1, "q", ["dog", "cat"], 1)]
    assert classes(items) == ["agreeing", "agreeing"]


# --- a gain that is no shortcut -----------------------------------------------------------------------


def test_the_reverse_of_copies_by_hand():
    """40 docs of each class. Score less majority: +1 right where the majority is wrong, -1 the other way."""
    names = ["agreeing"] * 40 + ["conflicting"] * 40 + ["single"] * 40
    gain = {
        name: np.repeat(values, 40)
        for name, values in {"reverse": (-1, 1, 0.0), "prior": (1, -1, 0.0), "single": (0.0, 0, 1)}.items()
    }
    assert withheld(gain["reverse"], names, None) == "agreeing"
    assert withheld(gain["prior"], names, None) is None
    assert withheld(gain["single"], names, None) is None
    only = np.repeat([0.0, 1, 0], 40)
    assert withheld(only, names, None) == "conflicting"
    assert withheld(only, ["single"] * 120, None) is None, "without copies there is nothing to reverse"
    assert withheld(-only, names, None) is None
    assert withheld(np.full(120, np.nan), names, None) is None
    assert withheld(gain["reverse"], names, np.repeat([0, 1, 2], 40)) is None, "three sources are no evidence"


def test_meaningless_answers_are_seldom_withheld():
    """300 sets of 100 pairs whose golds and answers are coins: 5 % rise above the majority by luck, and few of those by copies alone."""
    stream = np.random.default_rng(0)
    fired = 0
    for seed in range(300):
        golds = stream.integers(0, 2, (100, 2))
        names = np.repeat(np.where(golds[:, 0] == golds[:, 1], "agreeing", "conflicting"), 2).tolist()
        fired += withheld(stream.choice([-1.0, 0.0, 0.0, 1.0], 200), names, None, seed) is not None
    assert fired <= 22  # 0.05 x 300 = 15; P(more than 22) < 0.03 for 15 expected, and less are expected


def judged(items, by, **options):
    found = cross_validate(items, by, seeds=size((0,), (0, 1)), **options)
    return found, withheld((found.scores - found.baseline).mean(axis=0), classes(items), None)


def test_balanced_copies_are_no_shortcut():
    """No text says of which image it is true.

    Folds by source answer the reverse of the training copy, far above one half; folds by text cannot.
    """
    items = balanced(120, chained=True)
    found, why = judged(items, "source")
    assert found.accuracy > 0.75
    assert why == "conflicting"
    assert abs(judged(balanced(120), "text")[0].accuracy - 0.5) < 3 * np.sqrt(0.25 / 240)


def notes_of(items, *names, headline, seeds=(0, 1)):
    found = {
        name: cross_validate(items, name, seeds=seeds, settings=ModelSettings("boosting", 40, beside=False))
        for name in names
    }
    details = details_of(items, found, headline)
    told = convert(details, TstDetails)
    return text_only.shortcut(told), text_only.copies(told)


def test_captions_on_two_images_of_many_captions_are_withheld():
    """As VSR: 85 % of the pairs are opposite, and the images connect all.

    By source the number is far above one half, and only the reverse makes it so.
    """
    items = vsr_like(150)
    found, why = headline(Copies(items), rewards_of(items), 1.0, 5)
    assert (found.name, "a chain of shared sources and texts connects" in why["joined"]) == ("source", True)
    said, more = notes_of(items, "source", "text", headline="source")
    assert said.state == "withheld"
    assert "the training copies are answered in reverse, which is no shortcut of the language" in said.sentence
    scores = {name: float(score) for name, score in re.findall(r"(agreeing|conflicting|single) (\d\.\d+)", more[1])}
    assert scores["agreeing"] < 0.35 < 0.65 < scores["conflicting"]
    assert abs(scores["single"] - 0.5) < 0.2


def test_a_constant_gold_is_no_text_shortcut_and_both_numbers_are_said():
    said, more = notes_of(constant_gold(300), "none", headline="none")
    assert said.state == "not learned"
    majority = re.fullmatch(
        r"no text shortcut beyond the constant answer: .* where a guess gets 0\.250 and the constant answer (0\.\d+)",
        said.sentence,
    )[1]
    assert abs(float(majority) - 0.7) < 0.06
    assert more == []


def test_a_prior_of_repeated_questions_stands():
    """Twenty questions, each on twenty images, ten of them mostly yes or mostly no: docs whose copies agree are answered, and nothing is withheld."""
    items, best, _ = planted_yesno(400, purity=0.95)
    found, why = judged(items, "none")
    assert found.accuracy > best - 0.08
    assert why is None
    names = np.array(classes(items))
    scores = found.scores.mean(axis=0)
    assert scores[names == "agreeing"].mean() > 0.7 > scores[names == "conflicting"].mean() + 0.1


def pruning(items, by, **options):
    copies = Copies(items)
    rewards = rewards_of(items)
    return prune(
        items,
        PruneSettings(budget=0.2, batch=0.2),
        lambda places, seeds: cross_validate(items, by, places=places, seeds=seeds[:1]),
        copies=lambda places: copies.classes(places, rewards),
        **options,
    )


def test_pruning_refuses_the_reverse_of_copies(tmp_path):
    items = balanced(100, chained=True)
    with pytest.raises(
        PruneError,
        match=r"^nothing is pruned: only docs whose copies have another answer rise above the constant answer",
    ) as error:
        pruning(items, "source", state=tmp_path / "history.json")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "history.json").exists()


def test_pruning_stops_where_what_is_left_is_answered_in_reverse():
    """A made diagnostic: 60 docs with a rule are right at first, 60 of balanced pairs always.

    Without the first, only the pairs rise.
    """
    items = [*(yesno(i, f"q{i}", "yes") for i in range(60)), *balanced(30)]
    items = [replace(item, key=f"k{i}", source=None, cluster=None) for i, item in enumerate(items)]
    copies, rewards = Copies(items), rewards_of(items)

    def diagnose(places, seeds):
        right = np.ones((1, len(places)))
        return Diagnosis(np.where(places < 60, 0.9, 0.6), np.full(len(places), 0.5), right, right / 2)

    settings = PruneSettings(budget=90, batch=60)
    done = prune(items, settings, diagnose, copies=lambda places: copies.classes(places, rewards))
    assert sorted(done.removed.tolist()) == list(range(60))
    assert done.stopped.startswith("only docs whose copies have another answer rise above the constant answer")
