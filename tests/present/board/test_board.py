import pytest

from lmms_patch.errors import OptionError, RecordError
from lmms_patch.present.board.board import NEEDED, board
from lmms_patch.present.board.build import leaderboard
from lmms_patch.present.board.overall import changes, overall
from lmms_patch.present.board.tables import flat_sheet, group_sheet, remarks
from lmms_patch.present.ranking import by_of
from lmms_patch.runs import catalogue
from lmms_patch.runs.run import find
from lmms_patch.stats.resample import Estimate
from tests.making.boards import blind_task, board_of, document, index_task, shown, tst_task
from tests.stored import unpack


def run(model, index=-0.1, low=-0.2, high=-0.05, date="20260101_000000", about=None, grids=None, **task):
    ends = (low, high) if index is None or low is None else (min(low, index), max(high, index))
    grids = {3: None if index is None else (index, *ends)} if grids is None else grids
    return document(model, [index_task(grids=grids, **task)], date, **(about or {}))


def test_ranks_by_the_distance_from_0(tmp_path):
    """|index|: b 0.02 in [0, 0.04] (it straddles 0), a 0.10 in [0.05, 0.15], c 0.12 in [0.11, 0.13], d 0.5 in [0.4, 0.6].
    b is surely before all; a and c overlap; d is last."""
    found = board_of(
        tmp_path, run("a", -0.1, -0.15, -0.05), run("b", 0.02, -0.01, 0.04), run("c", 0.12, 0.11, 0.13), run("d", -0.5, -0.6, -0.4)
    )  # fmt: skip
    (group,) = found.groups
    assert shown(group) == {"b": (1, 1), "a": (2, 3), "c": (2, 3), "d": (4, 4)}
    assert list(shown(group)) == ["b", "a", "c", "d"]


def test_near_chance_and_null_have_no_rank_and_are_never_0(tmp_path):
    found = board_of(tmp_path, run("good"), run("chance", None, valid=False, fip=0.26), run("null", None))
    (group,) = found.groups
    assert shown(group) == {"good": (1, 1)}
    assert {entry.model: reason for entry, reason in group.unranked} == {
        "chance": "near chance: FIP 0.26 is below 0.3",
        "null": "FIP is 0",
    }
    rows = {row["model"]: row for row in flat_sheet(found).rows}
    assert rows["chance"]["rank_first"] is None
    assert rows["chance"]["index"].value is None
    assert rows["chance"]["gate"] == "near chance"
    assert rows["chance"]["fip"].value == 0.26


def test_a_score_near_chance_is_ranked_as_a_score_but_its_mpp_is_luck(tmp_path):
    runs = run("good", fip=0.8), run("chance", None, valid=False, fip=0.26)
    assert shown(board_of(tmp_path / "a", *runs, by="fip").groups[0]) == {"good": (1, 1), "chance": (2, 2)}
    assert shown(board_of(tmp_path / "b", *runs, by="mpp").groups[0]) == {"good": (1, 1)}


def test_no_interval_any_place(tmp_path):
    (group,) = board_of(
        tmp_path, run("a", -0.1, -0.11, -0.09), run("b", -0.3, None, None), run("c", -0.5, -0.51, -0.49)
    ).groups
    assert shown(group) == {"a": (1, 2), "b": (1, 3), "c": (2, 3)}


def test_rci_and_pcri_are_one_number(tmp_path):
    (group,) = board_of(tmp_path, run("a", kind="rci"), run("b", kind="pcri")).groups
    assert set(shown(group)) == {"a", "b"}


def test_grids_stand_apart_whatever_run_they_are_of(tmp_path):
    both = {2: (-0.1, -0.2, 0.0), 3: (-0.3, -0.4, -0.2)}
    found = board_of(tmp_path, run("a", grids=both), run("b", grids={3: (-0.05, -0.1, 0.0)}))
    assert [(group.grid, list(shown(group))) for group in found.groups] == [(2, ["a"]), (3, ["b", "a"])]


# --- what must be the same ---

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
}


@pytest.mark.parametrize("key", OTHER)
def test_runs_that_differ_in_one_setting_are_never_ranked_together(tmp_path, key):
    found = board_of(tmp_path, run("a"), run("b"), run("c", **OTHER[key]))
    assert [(set(shown(group)), group.number) for group in found.groups] == [({"a", "b"}, 1), ({"c"}, 2)]
    assert shown(found.groups[1]) == {"c": (1, 1)}
    (words,) = [one for one in found.groups[1].differs if one.startswith(key)]
    assert words in remarks(found.groups[1])[0]


@pytest.mark.parametrize("key", [key for key in OTHER if key not in NEEDED])
def test_ignored_settings_bring_them_together_and_the_page_says_so(tmp_path, key):
    found = board_of(tmp_path, run("a"), run("b"), run("c", **OTHER[key]), ignore=[key])
    (group,) = found.groups
    assert set(shown(group)) == {"a", "b", "c"}
    assert group.merged
    assert group.merged[0].startswith(key)
    assert key in remarks(group)[0]
    assert key not in group.fingerprint


@pytest.mark.parametrize("key", ["docs", "prompts", "lmms_eval"])
def test_what_one_run_does_not_say_is_not_what_another_says(tmp_path, key):
    found = board_of(tmp_path, run("a"), run("b"), run("c", made={key: None}))
    assert [set(shown(group)) for group in found.groups] == [{"a", "b"}, {"c"}]
    name = {"lmms_eval": "lmms-eval version"}.get(key, key)
    assert found.groups[1].differs == (f"{name} (unknown here)",)
    assert found.groups[1].unknown == (name,)
    assert "Unknown" in " ".join(remarks(found.groups[1]))


def test_a_version_that_is_not_said_is_unknown(tmp_path):
    found = board_of(tmp_path, run("a"), run("b"), run("c", about={"versions": {}}))
    assert found.groups[1].differs == ("benchmark version (unknown here)",)


def test_the_same_under_two_filters_stands_apart(tmp_path):
    other = document("b")
    other["results"] = {
        task: {key.replace(",none", ",strict"): value for key, value in values.items()}
        for task, values in other["results"].items()
    }
    found = board_of(tmp_path, document("a"), other)
    assert [set(shown(group)) for group in found.groups] in ([{"a"}, {"b"}], [{"b"}, {"a"}])


@pytest.mark.parametrize("key", NEEDED)
def test_what_a_number_is_cannot_be_ignored(tmp_path, key):
    with pytest.raises(OptionError, match="cannot be ignored"):
        board_of(tmp_path, run("a"), ignore=[key])


def test_an_unknown_setting_to_ignore(tmp_path):
    with pytest.raises(RecordError, match="no setting 'promt' to ignore; allowed: benchmark, kind"):
        board_of(tmp_path, run("a"), ignore=["promt"])


# --- the newest counts ---


def test_the_newest_counts_and_older_ones_are_counted(tmp_path):
    found = board_of(
        tmp_path,
        run("a", -0.1, date="20260103_000000"),
        run("a", -0.3, date="20260102_000000"),
        run("a", -0.2, date="2026-01-01T09-00-00.5"),
    )
    (group,) = found.groups
    ((_, entry),) = group.ranked
    assert (entry.number("index").value, entry.runs, entry.date) == (-0.1, 3, "20260103_000000")


def test_runs_under_other_settings_do_not_replace_it(tmp_path):
    found = board_of(
        tmp_path, run("a", date="20260101_000000"), run("a", date="20260102_000000", made={"prompts": "new"})
    )
    assert [(len(group.entries), group.entries[0].runs) for group in found.groups] == [(1, 1), (1, 1)]


def test_other_arguments_are_another_model(tmp_path):
    (group,) = board_of(tmp_path, run("m", about={"args": "size=1"}), run("m", about={"args": "size=2"})).groups
    assert set(shown(group)) == {"m (size=1)", "m (size=2)"}


def test_names_that_read_alike_are_told_apart(tmp_path):
    (group,) = board_of(tmp_path, run("m\x00"), run("m\x01")).groups
    assert len(shown(group)) == 2
    assert all(name.startswith("m\ufffd #") for name in shown(group))


# --- other kinds ---


def test_blind_and_text_only_runs_have_tables_of_their_own(tmp_path):
    found = board_of(
        tmp_path,
        document("m", [index_task(), blind_task(score=0.3)]),
        document("tst_rf", [tst_task(tst=0.5, chance=0.25)]),
    )
    assert [(group.kind, len(group.ranked), len(group.unranked)) for group in found.groups] == [
        ("index", 1, 0),
        ("tst", 0, 1),
        ("blind", 0, 1),
    ]
    (row,) = group_sheet(found.of("tst")[0], False).rows
    assert row["tst"].value == 0.5
    assert row["tst_over_chance"].value == 0.25
    assert row["diagnostic"] == "rf"
    (row,) = group_sheet(found.of("blind")[0], False).rows
    assert row["score"].value == 0.3


def test_the_chance_that_is_shown_is_the_one_that_is_subtracted(tmp_path):
    """The floor of the gate here is 0.25; the text-only diagnostic counts chance as 0.1485."""
    found = board_of(tmp_path, document("tst_rf", [tst_task(tst=0.575, chance=0.1485)]))
    (row,) = group_sheet(found.of("tst")[0], False).rows
    (flat,) = flat_sheet(found).rows
    for one in (row, flat):
        assert one["chance"].value == 0.1485
        assert one["tst"].value - one["chance"].value == pytest.approx(one["tst_over_chance"].value)


# --- which group is the first ---


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
    found = board_of(tmp_path, *(run(model, **more) for model, more in (*second, *first)))
    assert [{entry.model for entry in group.entries} for group in found.groups] == [
        {model for model, _ in side} for side in (first, second)
    ]
    assert [len(group.entries) for group in found.groups] == [len(first), len(second)]


@pytest.mark.parametrize("order", [("none", "flex"), ("flex", "none"), ("zz", "aa")])
def test_of_filters_the_task_s_first_comes_first(tmp_path, order):
    made = document("a")
    made["results"] = {
        task: {key.replace(",none", f",{name}"): v for name in order for key, v in own.items()}
        for task, own in made["results"].items()
    }
    for settings in range(3):  # whatever their digests
        made["system_instruction_sha"] = str(settings)
        found = board_of(tmp_path / str(settings), made)
        assert [group.entries[0].result.filter for group in found.groups] == list(order)


# --- docs that are left out ---


def test_an_index_can_be_checked_from_its_row(tmp_path):
    """60 of 200 docs are left out: FIP 0.9 over all, 0.8 over the others.

    Index -0.1, so MPP is 0.88 and 1 - 0.88 / 0.9 is not it.
    """
    made = board_of(tmp_path, run("a", docs=200, excluded=60, fip_all=0.9), run("b", docs=200))
    rows = {row["model"]: row for row in flat_sheet(made).rows}
    assert (rows["a"]["docs"], rows["a"]["docs_used"], rows["a"]["excluded"], rows["b"]["docs_used"]) == (
        200,
        140,
        60,
        200,
    )
    assert rows["a"]["fip"].value == 0.9
    for row in rows.values():
        assert 1 - row["mpp"].value / row["fip_used"] == pytest.approx(row["index"].value)
    assert {"fip_used", "docs_used"} <= {column.key for column in group_sheet(made.groups[0], False).columns}


def test_a_table_has_every_number_that_the_catalogue_shows_of_its_kind(tmp_path):
    """Of stored runs of every kind.

    An index stands under names of its own, and FIP of a kind that shows the full image is its score.
    """
    names = ("turned", "points", "boxes", "clips", "demo")
    runs = unpack(tmp_path)
    found = board(find([runs / name for name in names]), by_of("pcri"))
    seen = set()
    for group in found.groups:
        row = group_sheet(group, False).rows[0]
        entry, kind = group.entries[0], group.entries[0].kind
        shown = {id(value) for value in row.values() if isinstance(value, Estimate)}
        for name, (number, _) in catalogue.keyed(kind, [group.grid] if group.grid else []).items():
            if (
                number.measured
                and name in entry.result.measures
                and not number.words
                and name not in ("score", "ceiling")
            ):
                assert id(entry.result.measures[name]) in shown, (group.kind, name)
                seen.add((group.kind, number.name))
    assert {
        ("regions", "regions_mean"),
        ("hidden", "{kind}{key}"),
        ("rotate", "rotate_mean"),
        ("lowres", "drop{key}"),
        ("index", "mpp{key}"),
    } <= seen


def test_runs_of_full_images_alone_are_ranked_by_fip(tmp_path):
    """Of 0.9, 0.8 and 0.6, each ± 0.05, no grid was asked: no index, no mean over benchmarks, and no table of size 0x0."""
    runs = [
        document(model, [index_task("toy", "rci", {}, fip=fip)]) for model, fip in (("a", 0.6), ("b", 0.9), ("c", 0.8))
    ]
    found = board_of(tmp_path, *runs)
    (group,) = found.groups
    assert shown(group) == {"b": (1, 2), "c": (1, 2), "a": (3, 3)}
    sheet = group_sheet(group, False)
    assert sheet.title == "toy, full image"
    assert [(row["rank"], row["model"], row["fip"].value) for row in sheet.rows] == [
        ("1–2", "b", 0.9),
        ("1–2", "c", 0.8),
        ("3", "a", 0.6),
    ]
    assert {"rank", "model", "fip", "chance"} <= {column.key for column in sheet.columns}
    assert "Ranked by FIP: nothing but full images was asked, so there is no index." in sheet.note
    assert (overall(found), changes(found)) == ([], [])
    page = (leaderboard([tmp_path], tmp_path / "board").folder / "index.html").read_text()
    assert "0×0" not in page
    assert "0.900" in page
    assert overall(board_of(tmp_path / "mixed", *runs, document("d", [index_task("toy", "rci")])))[0].grid == 3
