"""The leak checks of DESIGN 7: held-out golds move no feature at all, held-out texts no training feature. Bitwise."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.tst.features import Features, NumberTable, OptionTable
from lmms_patch.tst.options import OptionRows, numbered
from tests.sizes import examples, size
from tests.tst.worlds import (
    FEW_TREES,
    free,
    load,
    mc,
    number,
    planted_choice,
    planted_number,
    planted_open,
    planted_yesno,
    prepare,
    regold,
    subset,
)

WORLDS = {
    "choice": lambda: planted_choice(90)[0],
    "yesno": lambda: planted_yesno(90)[0],
    "number": lambda: planted_number(90)[0],
    "open": lambda: planted_open(90)[0],
    "lists": lambda: [
        mc(i, f"Which order, {i % 7}?", (f"a{i % 3}, b, c", f"b, a{i % 3}, c", "c"), i % 3, category=f"c{i % 2}")
        for i in range(90)
    ],
}
REAL = {
    "vsi_bench": size(140, 700),
    "pope_coco": size(120, 500),
    "scienceqa_test": size(80, 300),
    "videomme": size(80, 300),
    "nlvr": size(100, 400),
}


def option_table(items) -> OptionTable:
    return OptionTable(OptionRows(items))


def all_features(items, train, groups, seed=0) -> list[Features]:
    """What each kind of item among all is fitted on, candidates for open answers included, as ``predict`` makes it."""
    prepared, _ = prepare(items)
    return prepared.features(train, seed, groups)


def same(a: Features, b: Features, *, training_only: bool = False) -> None:
    assert a.names == b.names
    first, second = (f.values[f.inner >= 0] if training_only else f.values for f in (a, b))
    moved = [
        name
        for j, name in enumerate(a.names)
        if not np.allclose(first[:, j], second[:, j], rtol=0, atol=1e-6, equal_nan=True)
    ]
    assert not moved
    np.testing.assert_array_equal(a.inner[a.inner >= 0], b.inner[b.inner >= 0])


def split(items, seed=0):
    """Four in five train; every other held-out item comes before them all in the list."""
    held = np.random.default_rng(seed).random(len(items)) < 0.2
    held[0] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def check_golds(items, groups=None):
    train, held = split(items)
    groups = np.arange(len(items)) if groups is None else groups
    golds = [item.golds for item in items]
    for kind in {(item.format, item.answers) for item in items}:
        own = [i for i in held if (items[i].format, items[i].answers) == kind]
        for i, j in zip(own, own[1:] + own[:1], strict=True):
            golds[i] = items[j].golds
    changed = regold(items, golds)
    assert any(a.golds != b.golds for a, b in zip(items, changed, strict=True))
    for a, b in zip(all_features(items, train, groups), all_features(changed, train, groups), strict=True):
        same(a, b)


def check_texts(items, groups=None):
    """Held-out questions get the text of a training item, or a new one.

    Held-out options turn round, and one gets a text of its own.
    """
    train, held = split(items)
    groups = np.arange(len(items)) if groups is None else groups
    changed = list(items)
    for turn, i in enumerate(held):
        question = items[train[-1 - turn % len(train)]].question if turn % 2 else f"A question of its own {i} 猫?"
        options = (*items[i].options[:0:-1], f"an option {i}, of its own") if items[i].options else ()
        changed[i] = replace(items[i], question=question, prompt=question, options=options)
    for a, b in zip(all_features(items, train, groups), all_features(changed, train, groups), strict=True):
        same(a, b, training_only=True)


@pytest.mark.parametrize("world", WORLDS)
def test_held_out_golds_move_no_feature(world):
    check_golds(WORLDS[world]())


@pytest.mark.parametrize("world", WORLDS)
def test_held_out_texts_move_no_training_feature(world):
    check_texts(WORLDS[world]())


@pytest.mark.parametrize("name", REAL)
def test_held_out_golds_move_no_feature_of_real_items(name):
    items = subset(load(name), REAL[name])
    check_golds(items, numbered(item.source if item.source is not None else i for i, item in enumerate(items)))


@pytest.mark.parametrize("name", REAL)
def test_held_out_texts_move_no_training_feature_of_real_items(name):
    items = subset(load(name), REAL[name])
    check_texts(items, numbered(item.source if item.source is not None else i for i, item in enumerate(items)))


@examples(25, least=6)
@given(
    st.lists(st.text("ab ,猫3", max_size=8), min_size=24, max_size=24),
    st.lists(st.integers(0, 2), min_size=8, max_size=8),
)
def test_held_out_texts_and_golds_of_any_kind(texts, rights):
    """Eight held-out items of any text and gold, and of any (known) number of options, beside twelve of training."""
    known = [mc(100 + i, f"Which {'xyz'[i % 3]} is a{i % 4}?", (f"a{i % 2}", "b", f"c{i}"), i % 3) for i in range(12)]
    held = [mc(i, f"Which {i}?", ("a0", "b", "c"), 0) for i in range(8)]
    other = [mc(i, texts[i], tuple(texts[8 + i : 11 + i]), rights[i]) for i in range(8)]
    train = np.arange(8, 20)
    a, b = (option_table([*out, *known]).features(train, np.arange(20), 0) for out in (held, other))
    same(a, b, training_only=True)


def test_a_held_out_item_with_another_number_of_options_moves_no_training_feature():
    """Not even the number that stands for a training item's category."""
    items = WORLDS["choice"]()
    train = np.arange(10, len(items))
    changed = [mc(0, items[0].question, ("yes", "perhaps"), 1), replace(items[1], category="its own"), *items[2:]]
    a, b = (option_table(own).features(train, np.arange(len(items)), 0) for own in (items, changed))
    same(a, b, training_only=True)
    numbers = WORLDS["number"]()
    a, b = (
        NumberTable([replace(numbers[0], category=own), *numbers[1:]]).features(train, np.arange(len(numbers)), 0)
        for own in ("", "its own")
    )
    same(a, b, training_only=True)


@pytest.mark.parametrize("world", WORLDS)
def test_ids_sources_clusters_and_keys_never_enter(world):
    items = WORLDS[world]()
    train, _ = split(items)
    groups = np.arange(len(items)) // 2
    renamed = [
        replace(item, doc_id=900 - 7 * i, source=f"s{i % 5}", cluster=i % 3, key=f"other{i * i}")
        for i, item in enumerate(items)
    ]
    for a, b in zip(all_features(items, train, groups), all_features(renamed, train, groups), strict=True):
        same(a, b)


def test_a_training_gold_moves_features_of_others_but_not_of_its_own_inner_fold():
    items, *_ = planted_choice(90)
    train, _ = split(items)
    groups = np.arange(90)
    before = option_table(items).features(train, groups, 0)
    one = int(train[3])
    changed = [*items]
    changed[one] = replace(items[one], golds=(items[one].answers[(items[one].right + 1) % 4],))
    after = option_table(changed).features(train, groups, 0)
    owner = OptionRows(items).owner
    own_fold = np.isin(before.inner, before.inner[owner == one])
    assert np.array_equal(before.values[own_fold], after.values[own_fold], equal_nan=True)
    assert not np.array_equal(before.values[~own_fold], after.values[~own_fold], equal_nan=True)


def test_an_item_never_sees_the_golds_of_its_own_group():
    """Four items share a source: the gold of one moves no feature of the other three."""
    items = [replace(item, source=i // 4) for i, item in enumerate(planted_number(80)[0])]
    groups = np.arange(80) // 4
    train = np.arange(60)
    before = NumberTable(items).features(train, groups, 0)
    target_free = [replace(item, golds=(item.golds[0],)) for item in items]
    # the golds of a group trade places: means and spreads of the category stay as they are
    for i, j in ((8, 9), (9, 10), (10, 11), (11, 8)):
        target_free[i] = replace(items[i], golds=items[j].golds)
    after = NumberTable(target_free).features(train, groups, 0)
    assert np.array_equal(before.values[8:12], after.values[8:12], equal_nan=True)
    assert not np.array_equal(before.values[60:], after.values[60:], equal_nan=True)


def test_candidates_for_open_answers_are_those_of_the_other_inner_folds():
    """A gold that only one training item has is a candidate of others, never its own."""
    items = [free(i, f"What is it, {i % 5}?", "common" if i else "its own alone") for i in range(30)]
    prepared, _ = prepare(items)
    ready = prepared._fit_open(np.arange(25), 0, np.arange(30), FEW_TREES)
    predictions = ready.predict(ready.features.values, np.arange(30))
    assert predictions[0].answers == ("common",)
    assert set(predictions[29].answers) == {"common", "its own alone"}


def test_values_of_static_features_by_hand():
    items = [
        mc(0, "Is the red cup left of the table?", ("red cup, table", "Table.", "12"), 0),
        mc(1, "How many?", ("12", "13", "table"), 1),
        mc(2, "", ("x", "x", "y"), 2),
    ]
    found = option_table(items).features(np.arange(3), np.arange(3), 0)
    value = dict(zip(found.names, found.values.T, strict=True))
    assert value["option.characters"].tolist() == [14, 5, 2, 2, 2, 5, 1, 1, 1]
    assert value["option.words"][:3].tolist() == [3, 1, 1]
    assert value["option.segments"][:3].tolist() == [2, 1, 1]
    np.testing.assert_array_equal(value["option.number"][:5], [np.nan, np.nan, 12, 12, 13])
    np.testing.assert_allclose(
        value["option.in question"][:3], [3 / 4, 1, 0]
    )  # of red, cup, the comma and table; table; 12
    np.testing.assert_allclose(value["option.like others"][0], (1 / 4 + 0) / 2)
    assert value["option.place"].tolist() == [0, 1, 2] * 3
    assert value["question.options"].tolist() == [3] * 9
    np.testing.assert_allclose(value["option.times offered"], np.log1p([0, 1, 1, 1, 0, 1, 1, 1, 0]))  # itself left out


def test_relative_numbers_are_relative_to_the_options_that_are_numbers():
    """Options 10, 20 and "none": relative to the mean 15 of the two."""
    found = option_table([mc(0, "How many?", ("10", "20", "none"), 0)]).features(np.arange(1), np.arange(1), 0)
    value = dict(zip(found.names, found.values.T, strict=True))
    np.testing.assert_array_equal(value["option.number, relative"], [-5, 5, np.nan])


def test_options_with_equal_text_have_equal_statistics_but_for_their_place():
    items = [mc(i, f"which {i % 5}", ("x", "y", "X "), i % 3) for i in range(40)]
    found = option_table(items).features(np.arange(30), np.arange(40), 0)
    for name, column in zip(found.names, found.values.T, strict=True):
        if not name.startswith(("letter", "option.place", "linear model")):  # the linear model reads the place, too
            np.testing.assert_array_equal(column[0::3], column[2::3], err_msg=name)


def test_numbers_are_standardised_by_training_golds_of_their_category():
    """Category a: 1, 3 in training: mean 2, SD 1, so the held-out 5 is 3 SDs up. Category b: all 7: everything 0."""
    items = [
        number(i, "q", gold, category=c)
        for i, (gold, c) in enumerate([(1, "a"), (3, "a"), (5, "a"), (7, "b"), (7, "b"), (None, "a")])
    ]
    out, logarithmic = NumberTable(items).standardised(np.array([0, 1, 3, 4]))
    assert not logarithmic.any()
    np.testing.assert_allclose(out, [-1, 1, 3, 0, 0, 0])


def test_the_logarithm_is_for_skewed_golds_above_0():
    stream = np.random.default_rng(0)
    golds = {
        "lognormal": np.exp(stream.standard_normal(200)),
        "normal": 50 + 10 * stream.standard_normal(200),
        "with zeros": np.exp(stream.standard_normal(200)),
    }
    golds["with zeros"][0] = 0.0
    golds["uniform"] = stream.uniform(1, 100, 200)
    for name, values in golds.items():
        _, logarithmic = NumberTable([number(i, "q", repr(float(v))) for i, v in enumerate(values)]).standardised(
            np.arange(200)
        )
        assert logarithmic.all() == (name == "lognormal"), name
