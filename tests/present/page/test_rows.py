"""Who stands in one ranking, and where: ranks are ranges, and rows of one group differ in the model alone."""

import pytest

from lmms_patch.errors import OptionError, RecordError
from lmms_patch.present.page.rows import NEEDED, labelled, rows_of
from lmms_patch.runs import catalogue
from lmms_patch.runs.run import find
from tests.making.boards import blind_task, board_of, document, groups, index_task, shown, tst_task
from tests.making.runs import magic_doc, write_magic
from tests.stored import unpack


def run(model, index=-0.1, low=-0.2, high=-0.05, date="20260101_000000", about=None, grids=None, **task):
    ends = (low, high) if index is None or low is None else (min(low, index), max(high, index))
    grids = {3: None if index is None else (index, *ends)} if grids is None else grids
    return document(model, [index_task(grids=grids, **task)], date, **(about or {}))


# --- ranks ----------------------------------------------------------------------------------------


def test_ranks_go_by_the_score_with_ranges(tmp_path):
    """Each score ± 0.05: 0.9 overlaps 0.85, which overlaps 0.76; 0.6 is last."""
    runs = [run(model, fip=fip) for model, fip in (("a", 0.6), ("b", 0.9), ("c", 0.85), ("d", 0.76))]
    rows, notes = board_of(tmp_path, *runs)
    assert shown(rows) == {"b": (1, 2), "c": (1, 3), "d": (2, 3), "a": (4, 4)}
    assert [row.model for row in rows] == ["b", "c", "d", "a"]
    assert notes == []


def test_asked_for_the_index_ranks_go_by_its_distance_from_0(tmp_path):
    """|index|: b 0.02 in [0, 0.04] (it straddles 0), a 0.10 in [0.05, 0.15], c 0.12 in [0.11, 0.13], d 0.5 in [0.4, 0.6].
    b is surely before all; a and c overlap; d is last."""
    rows, _ = board_of(
        tmp_path, run("a", -0.1, -0.15, -0.05), run("b", 0.02, -0.01, 0.04), run("c", 0.12, 0.11, 0.13), run("d", -0.5, -0.6, -0.4), by="pcri"
    )  # fmt: skip
    assert shown(rows) == {"b": (1, 1), "a": (2, 3), "c": (2, 3), "d": (4, 4)}
    assert [row.model for row in rows] == ["b", "a", "c", "d"]


def test_near_chance_and_null_have_no_index_to_rank_and_are_never_0(tmp_path):
    runs = run("good"), run("chance", None, valid=False, fip=0.26), run("null", None)
    rows, _ = board_of(tmp_path / "a", *runs, by="rci")
    assert shown(rows) == {"good": (1, 1)}
    assert {row.model: row.why for row in rows if not row.place} == {
        "chance": "near chance: FIP 0.26 is below 0.3",
        "null": "FIP is 0",
    }
    rows, _ = board_of(tmp_path / "b", *runs, by="fip")
    assert len(shown(rows)) == 3, "a score near chance is a score"
    rows, _ = board_of(tmp_path / "c", *runs, by="mpp")
    assert shown(rows) == {"good": (1, 1)}, "the best of many guesses is luck"


def test_no_interval_any_place(tmp_path):
    rows, _ = board_of(
        tmp_path, run("a", -0.1, -0.11, -0.09), run("b", -0.3, None, None), run("c", -0.5, -0.51, -0.49), by="pcri"
    )
    assert shown(rows) == {"a": (1, 2), "b": (1, 3), "c": (2, 3)}


def test_the_steady_index_ranks_those_that_have_one(tmp_path):
    steady = [index_task(grids={3: (-0.4, -0.5, -0.3)}, steady=(0.05, 0.0, 0.1), looks=True)]
    rows, _ = board_of(tmp_path, document("a", steady), run("b", 0.05), by="steady")
    assert shown(rows) == {"a": (1, 1)}
    assert [row.model for row in rows if not row.place] == ["b"]


def test_of_a_metric_that_counts_errors_the_lowest_is_first(tmp_path):
    runs = []
    for model, fip in (("a", 0.6), ("b", 0.1)):
        name, values, described = index_task(fip=fip)
        values["patch"]["higher_is_better"] = {"acc": False}
        runs.append(document(model, [(name, values, described)]))
    rows, _ = board_of(tmp_path, *runs)
    assert shown(rows) == {"b": (1, 1), "a": (2, 2)}


def test_grids_stand_apart_whatever_run_they_are_of(tmp_path):
    both = {2: (-0.1, -0.2, 0.0), 3: (-0.3, -0.4, -0.2)}
    rows, _ = board_of(tmp_path, run("a", grids=both), run("b", grids={3: (-0.05, -0.1, 0.0)}))
    assert [(group[0].n, {row.model for row in group}) for group in groups(rows)] == [(2, {"a"}), (3, {"a", "b"})]


def test_rci_and_pcri_are_one_number(tmp_path):
    rows, _ = board_of(tmp_path, run("a", kind="rci"), run("b", kind="pcri"))
    assert len(groups(rows)) == 1


def test_runs_of_full_images_alone_are_ranked_by_the_score(tmp_path):
    runs = [document(model, [index_task("toy", "rci", {}, fip=fip)]) for model, fip in (("a", 0.6), ("b", 0.9))]
    rows, _ = board_of(tmp_path, *runs, by="pcri")
    assert shown(rows) == {"b": (1, 1), "a": (2, 2)}


def test_blind_and_text_only_runs_have_no_rank(tmp_path):
    rows, _ = board_of(
        tmp_path,
        document("m", [index_task(), blind_task(score=0.3)]),
        document("tst_rf", [tst_task(tst=0.5, chance=0.25)]),
    )
    assert {row.kind.way: bool(row.place) for row in rows} == {"index": True, "tst": False, "blind": False}
    (tst,) = (row for row in rows if row.kind.folds)
    assert tst.numbers["tst"].value == 0.5
    assert tst.numbers["tst_over_chance"].value == 0.25
    (blind,) = (row for row in rows if row.kind.name == "blind")
    assert blind.numbers["score"].value == 0.3


# --- what must be the same ------------------------------------------------------------------------

OTHER = {
    "docs": {"made": {"docs": "other"}},
    "number of docs": {"docs": 99},
    "prompts": {"made": {"prompts": "other"}},
    "lmms-eval version": {"made": {"lmms_eval": "0.7.4"}},
    "metric": {"metric": "acc2"},
    "views": {"min_cell": 28},
    "statistics": {"cluster": "image"},
    "limit": {"about": {"config": {"limit": 10}}},
    "few-shot": {"about": {"n-shot": {"toy_pcri3": 2}}},
    "system instruction": {"about": {"system_instruction_sha": "abc"}},
    "generation": {"about": {"config": {"gen_kwargs": "temperature=1"}}},
    "benchmark version": {"about": {"versions": {"toy_pcri3": 2.0}}},
    "images": {"made": {"images": "j"}},
    "image sizes": {"made": {"image_sizes": "t"}},
}


@pytest.mark.parametrize("key", OTHER)
def test_runs_that_differ_in_one_setting_are_never_ranked_together(tmp_path, key):
    rows, (note,) = board_of(tmp_path, run("a"), run("b"), run("c", **OTHER[key]))
    assert [({row.model for row in group}, group[0].group) for group in groups(rows)] == [({"a", "b"}, 1), ({"c"}, 2)]
    assert note.startswith("toy, 3×3, index, group 2 (c) is not comparable with group 1; it differs in: ")
    assert key in note


@pytest.mark.parametrize("key", [key for key in OTHER if key not in NEEDED])
def test_ignored_settings_bring_them_together_and_a_note_says_so(tmp_path, key):
    rows, notes = board_of(tmp_path, run("a"), run("b"), run("c", **OTHER[key]), ignore=[key])
    assert len(groups(rows)) == 1
    assert f"ranked together although they differ in: {key} (" in notes[0]


@pytest.mark.parametrize("key", ["docs", "prompts", "lmms_eval"])
def test_what_one_run_does_not_say_is_not_what_another_says(tmp_path, key):
    rows, notes = board_of(tmp_path, run("a"), run("b"), run("c", made={key: None}), run("d", made={key: None}))
    assert [{row.model for row in group} for group in groups(rows)] == [{"a", "b"}, {"c", "d"}]
    name = {"lmms_eval": "lmms-eval version"}.get(key, key)
    assert any(f"it differs in: {name} (said by one of them alone)" in note for note in notes)
    assert any(note.endswith(f"unknown, and so perhaps not the same in these runs: {name}") for note in notes)


def test_the_same_under_two_filters_stands_apart(tmp_path):
    other = document("b")
    other["results"] = {
        task: {key.replace(",none", ",strict"): value for key, value in values.items()}
        for task, values in other["results"].items()
    }
    rows, _ = board_of(tmp_path, document("a"), other)
    assert len(groups(rows)) == 2


@pytest.mark.parametrize("key", NEEDED)
def test_what_a_number_is_cannot_be_ignored(tmp_path, key):
    with pytest.raises(OptionError, match="cannot be ignored"):
        board_of(tmp_path, run("a"), ignore=[key])


def test_an_unknown_setting_to_ignore(tmp_path):
    with pytest.raises(RecordError, match="no setting 'promt' to ignore; allowed: benchmark, kind"):
        board_of(tmp_path, run("a"), ignore=["promt"])


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ({"judge": "x"}, {"judge": "y"}, "judge"),
        ({"judge": "x"}, {}, "judge"),
        ({}, {"seed": 1}, "boxes shown"),
        ({}, {"docs": "e"}, "docs"),
    ],
)
def test_magic_tasks_are_ranked_by_their_metric_where_judge_seed_and_data_are_one(tmp_path, one, other, differs):
    for name, told in (("a", one), ("b", other)):
        judged = {"short": True, "full": True} if told.get("judge") else {}
        docs = [magic_doc(f"d{k:02}", (1,) if k < 20 else (2,), right=k < 20, **judged) for k in range(40)]
        write_magic(tmp_path / name, {"all": docs}, model=name, **told)
    rows, (note,) = board_of(tmp_path)
    assert [(row.model, row.group, str(row.place)) for row in rows] in (
        [("a", 1, "1"), ("b", 2, "1")],
        [("b", 1, "1"), ("a", 2, "1")],
    )
    assert f"it differs in: {differs}" in note


# --- the newest counts ----------------------------------------------------------------------------


def test_the_newest_counts_and_older_ones_are_counted(tmp_path):
    rows, _ = board_of(
        tmp_path,
        run("a", -0.1, date="20260103_000000"),
        run("a", -0.3, date="20260102_000000"),
        run("a", -0.2, date="2026-01-01T09-00-00.5"),
    )
    (row,) = rows
    assert (row.numbers["index"].value, row.runs, row.entry.result.run.date) == (-0.1, 3, "20260103_000000")


def test_runs_under_other_settings_do_not_replace_it(tmp_path):
    rows, _ = board_of(
        tmp_path, run("a", date="20260101_000000"), run("a", date="20260102_000000", made={"prompts": "new"})
    )
    assert [(row.group, row.runs) for row in rows] == [(1, 1), (2, 1)]


def test_other_arguments_are_another_model(tmp_path):
    rows, _ = board_of(tmp_path, run("m", about={"args": "size=1"}), run("m", about={"args": "size=2"}))
    assert set(shown(rows)) == {"m (size=1)", "m (size=2)"}


def test_names_that_read_alike_are_told_apart(tmp_path):
    rows, _ = board_of(tmp_path, run("m\x00"), run("m\x01"))
    assert len(shown(rows)) == 2
    assert all(name.startswith("m\ufffd #") for name in shown(rows))
    assert len({row.entry.label for row in rows}) == 2


# --- which group is the first ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            [("a", {})],
            [("a", {"about": {"config": {"limit": 90}}}), ("b", {"about": {"config": {"limit": 90}}})],
        ),  # whole before many models
        ([("a", {})], [("a", {"about": {"config": {"offset": 5}}, "docs": 300})]),  # and before many docs
        ([("a", {"docs": 300})], [("a", {}), ("b", {})]),  # docs before models
        (
            [("a", {}), ("b", {})],
            [("a", {"made": {"prompts": "other"}, "date": "20260301_000000"})],
        ),  # models before the date
        ([("a", {"date": "20260301_000000", "made": {"prompts": "other"}})], [("a", {})]),  # then the date
    ],
)
def test_the_order_of_groups(tmp_path, first, second):
    rows, _ = board_of(tmp_path, *(run(model, **more) for model, more in (*second, *first)))
    assert [{row.model for row in group} for group in groups(rows)] == [
        {model for model, _ in side} for side in (first, second)
    ]


@pytest.mark.parametrize("order", [("none", "flex"), ("flex", "none"), ("zz", "aa")])
def test_of_filters_the_task_s_first_comes_first(tmp_path, order):
    made = document("a")
    made["results"] = {
        task: {key.replace(",none", f",{name}"): v for name in order for key, v in own.items()}
        for task, own in made["results"].items()
    }
    for settings in range(3):  # whatever their digests
        made["system_instruction_sha"] = str(settings)
        rows, _ = board_of(tmp_path / str(settings), made)
        assert [row.entry.result.filter for row in rows] == list(order)


def test_a_row_has_every_number_that_the_catalogue_shows_of_its_kind(tmp_path):
    """Of stored runs of every kind; FIP of a kind that shows the full image is its score."""
    names = ("turned", "points", "boxes", "clips", "demo")
    stored = unpack(tmp_path)
    seen = set()
    for entry in labelled(one for run in find([stored / name for name in names]) for one in run.results):
        for row in rows_of(entry):
            there = {id(value) for value in row.numbers.values()}
            known = catalogue.keyed(row.kind, entry.result.grids if row.n is None else [row.n])
            for name, (number, _) in known.items():
                if number.measured and name in entry.result.measures and name != "fip":
                    assert id(entry.result.measures[name]) in there, (row.kind.name, name)
                    seen.add((row.kind.way, number.name))
    expected = {
        ("regions", "regions_mean"),
        ("hidden", "{kind}{key}"),
        ("rotate", "rotate_mean"),
        ("lowres", "drop{key}"),
    }
    assert {*expected, ("index", "mpp{key}"), ("index", "whole{key}"), ("index", "{index}{key}_steady")} <= seen
