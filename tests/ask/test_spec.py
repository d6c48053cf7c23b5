import dataclasses

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lmms_patch.ask.kinds import KINDS, MAX_GRID, MIN_GRID
from lmms_patch.ask.spec import DESCRIBING, SUFFIXES, Options, WrapSpec, from_file, parse
from lmms_patch.ask.views import views_of
from lmms_patch.errors import OptionError, PatchError, UnknownNameError, nearest


@pytest.mark.parametrize(
    ("name", "base", "kind", "grids", "requests"),
    [  # requests: DESIGN 3, column "requests per doc"
        ("gqa_rci3", "gqa", "rci", (3,), 1 + 9),
        ("gqa_rci2", "gqa", "rci", (2,), 1 + 4),
        ("gqa_rci", "gqa", "rci", (2, 3), 1 + 4 + 9),
        ("gqa_pcri3", "gqa", "pcri", (3,), 1 + 9),
        ("gqa_pcri", "gqa", "pcri", (2, 3), 1 + 4 + 9),
        ("gqa_blind", "gqa", "blind", (), 1),
        ("gqa_blindguess", "gqa", "blindguess", (), 1),
        ("gqa_blank", "gqa", "blank", (), 1),
        ("gqa_shuffle3", "gqa", "shuffle", (3,), 1),
        ("gqa_occlude3", "gqa", "occlude", (3,), 1 + 9),
        ("gqa_lite_rci9", "gqa_lite", "rci", (9,), 1 + 81),
        ("mosaic_*_rci3", "mosaic_*", "rci", (3,), 10),
        ("refcoco+_bbox_pcri", "refcoco+_bbox", "pcri", (2, 3), 14),
        ("videomme_trci", "videomme", "trci", (4,), 1 + 4),
        ("videomme_trci4", "videomme", "trci", (4,), 1 + 4),
        ("videomme_trci9", "videomme", "trci", (9,), 1 + 9),
        ("videomme_frame", "videomme", "frame", (), 1),
        ("videomme_frames", "videomme", "frames", (1, 2, 4, 8), 4),
        ("videomme_frames1", "videomme", "frames", (1,), 1),
        ("videomme_frames64", "videomme", "frames", (64,), 1),
        ("videomme_tshuffle4", "videomme", "tshuffle", (4,), 1),
        ("videomme_treverse", "videomme", "treverse", (), 1),
    ],
)
def test_every_form_of_name(name, base, kind, grids, requests):
    spec = parse(name)
    assert (spec.base, spec.kind.name, spec.grids, spec.name) == (base, kind, grids, name)
    assert len(views_of(spec)) == requests


@pytest.mark.parametrize(
    "name", ["gqa", "gqa_lite", "rci3", "_rci3", "gqa_rci3_lite", "gqarci3", "gqa_tst_5", "", "gqa_rci-3", "gqa_rci3x"]
)
def test_other_names_are_left_to_the_harness(name):
    assert parse(name) is None


@pytest.mark.parametrize(
    "name", ["gqa_rci1", "gqa_rci10", "gqa_rci0", "gqa_rci03", "gqa_shuffle", "gqa_occlude", "gqa_blind3", "gqa_blank2"]
)
def test_impossible_grids_are_one_clear_line(name):
    with pytest.raises(UnknownNameError) as caught:
        parse(name)
    message = str(caught.value)
    assert name in message
    assert "\n" not in message
    assert any(word in message for word in ("2 to 9", "takes no grid", "leading zeros"))


def test_a_task_in_time_can_be_asked_quickly():
    assert parse("videomme_trci4_quick").options.quick
    with pytest.raises(
        OptionError,
        match="'frames' has no cells to leave out, so it cannot be asked with 'quick'; allowed: rci, pcri, rcicurve, trci",
    ):
        parse("videomme_frames_quick")


@pytest.mark.parametrize(
    ("kind", "grid", "shape", "cells"),
    [("rci", 3, (3, 3), 9), ("occlude", 2, (2, 2), 4), ("trci", 4, (1, 4), 4), ("swap", 2, (2, 2), 4)],
)
def test_a_grid_in_space_is_square_and_one_in_time_is_a_row(kind, grid, shape, cells):
    assert (KINDS[kind].shape(grid), KINDS[kind].cells(grid)) == (shape, cells)
    if kind != "swap":
        spec = WrapSpec("x", KINDS[kind], (grid,))
        assert [(view.row, view.col) for view in views_of(spec)[1:]] == [
            (row, col) for row in range(shape[0]) for col in range(shape[1])
        ]


@pytest.mark.parametrize(("name", "folds"), [("gqa_tst", 5), ("gqa_tst5", 5), ("gqa_tst10", 10)])
def test_the_number_of_a_cross_validation_is_of_folds(name, folds):
    spec = parse(name)
    assert (spec.base, spec.kind.name, spec.grids, spec.folds, spec.name) == ("gqa", "tst", (), folds, name)
    assert spec.of("mmmu").name == name.replace("gqa", "mmmu")
    assert spec.described()["folds"] == folds


def test_folds_in_a_task_file():
    assert from_file({"task": "mine", "base": "gqa", "kind": "tst", "folds": 3, "fold_seed": 7}).folds == 3
    with pytest.raises(OptionError, match="folds must be a whole number"):
        from_file({"task": "mine", "base": "gqa", "kind": "tst", "folds": "three"})
    with pytest.raises(OptionError, match="unknown option 'folds'"):
        from_file({"task": "mine", "base": "gqa", "kind": "rci", "folds": 3})


@given(st.text("abc_+-", min_size=1, max_size=12), st.sampled_from(sorted(SUFFIXES)), st.integers(MIN_GRID, MAX_GRID))
def test_name_and_spec_are_inverse(base, kind, n):
    """A spec without a name is given one that is read as the same spec."""
    row = KINDS[kind]
    assume(row.grid == "none" or row.folds or row.sizes[0] <= n <= row.sizes[1])
    name = f"{base}_{kind}" if row.grid == "none" else f"{base}_{kind}{n}"
    spec = parse(name)
    assert (spec.base, spec.kind.name) == (base, kind)
    unnamed = dataclasses.replace(spec, name="").name
    assert unnamed in (name, f"{base}_{kind}")
    again = parse(unnamed)
    assert (again.base, again.kind, again.grids, again.folds) == (spec.base, spec.kind, spec.grids, spec.folds)


@pytest.mark.parametrize(
    "name", ["x_trci", "x_trci4", "x_trci6", "x_trci4_quick", "x_trci_quick", "x_rci", "x_rci3_quick"]
)
def test_members_of_a_group_are_asked_under_the_suffix_that_was_typed(name):
    assert parse(name).of("y").name == name.replace("x", "y")


def test_members_of_a_group_take_the_suffix():
    assert parse("mmmu_rci3").of("mmmu_val").name == "mmmu_val_rci3"
    assert parse("mmmu_rci").of("mmmu_val").name == "mmmu_val_rci"


def test_members_of_a_task_file_carry_its_own_name():
    """Its options may differ: under the plain name two tasks would overwrite each other."""
    assert (
        from_file({"task": "mine", "base": "mmmu", "grids": [3], "min_cell": 28}).of("mmmu_val").name == "mmmu_val_mine"
    )


def test_explicit_file():
    spec = from_file(
        {
            "task": "my",
            "class": object,
            "base": "gqa",
            "kind": "pcri",
            "grids": [3, 2],
            "metric": "exact_match",
            "min_cell": 28,
        }
    )
    assert spec == WrapSpec("gqa", KINDS["pcri"], (2, 3), Options(metric="exact_match", min_cell=28), "my")
    assert from_file({"task": "my", "base": "gqa", "grids": 4}).grids == (4,)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"kind": "rci"}, "base"),
        ({"base": "gqa", "kind": "ci"}, "allowed: rci"),
        ({"base": "gqa", "grids": ["3"]}, "whole numbers"),
        ({"base": "gqa", "grids": [1]}, "2 to 9"),
        ({"base": "gqa", "metrik": "acc"}, "metrik"),
        ({"base": "gqa", "images": "some"}, "'all' or 'first'"),
        ({"base": "gqa", "min_cell": -1}, "at least 0"),
        ({"base": "gqa", "min_side": 0}, "at least 1"),
        ({"base": "gqa", "min_side": True}, "at least 1"),
        ({"base": "gqa", "allow_judge": "yes"}, "true or false"),
        ({"base": "gqa", "chance": "half"}, "number"),
        ({"base": "gqa", "chance": float("nan")}, "number"),
        ({"base": "gqa", "kind": ["rci"]}, "allowed: rci"),
        ({"base": "gqa", "grids": 3.0}, "whole numbers"),
        ({"base": "gqa", "cluster": 3}, "name"),
    ],
)
def test_wrong_files_are_one_clear_line(config, says):
    with pytest.raises(PatchError) as caught:
        from_file({"task": "my_task", **config})
    assert says in str(caught.value)
    assert "my_task" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_spec_wins_over_an_inline_profile_only_where_it_says_something():
    inline = Options.from_mapping({"metric": "acc", "min_cell": 28, "allow_judge": True}, "inline")
    mine = Options.from_mapping({"metric": "f1", "allow_judge": False}, "file")  # also back to the default
    assert mine.over(inline) == Options(metric="f1", min_cell=28, allow_judge=False)


def test_every_option_is_described():
    spec = WrapSpec("gqa", KINDS["rci"], (3,), Options(min_cell=28, seed=7, images="first"))
    described = spec.described()
    assert {*described["options"], *DESCRIBING} == set(Options.model_fields)
    assert described["options"]["min_cell"] == 28
    of_captions = WrapSpec("gqa", KINDS["caption"]).described()["options"]
    assert set(of_captions) == set(Options.model_fields)


def test_unknown_option_names_the_allowed_ones():
    with pytest.raises(OptionError, match="allowed: metric, score"):
        Options.from_mapping({"x": 1}, "here")


def test_nearest():
    assert nearest("gqaa", ["gqa", "pope"]) == ["gqa"]
