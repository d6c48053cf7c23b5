import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lmms_patch.present.board.overall import changes, overall
from lmms_patch.present.board.tables import changes_sheet, overall_note, overall_sheet
from lmms_patch.present.ranking import mean_index, mean_size, shared_benchmarks
from lmms_patch.present.report import models
from lmms_patch.present.report.points import Point
from lmms_patch.stats.resample import Estimate
from tests.making.boards import board_of, document, index_task


def run(model, indices, grid=3, half=0.01, **task):
    """A run with an index on each benchmark; None: near chance."""
    tasks = [
        index_task(base, grids={grid: None if v is None else (v, v - half, v + half)}, valid=v is not None, **task)
        for base, v in indices.items()
    ]
    return document(model, tasks)


def by_model(table):
    return {line.model: line for line in table.lines}


def test_the_score_stands_beside_each_index_and_its_mean_beside_theirs(tmp_path):
    """By hand: (0.8 + 0.6) / 2, each with the standard error 0.05 / 1.96.

    A score of 60 of 100 is no fraction, so it has no mean with one of 0.8.
    """
    tasks = [
        index_task("x", "rci", {3: (0.1, 0.0, 0.2)}, fip=0.8),
        index_task("y", "rci", {3: (0.3, 0.2, 0.4)}, fip=0.6),
    ]
    refused = index_task("x", "rci", {3: None}, fip=0.26, valid=False)
    (table,) = overall(
        board_of(
            tmp_path / "fractions", document("a", tasks), document("b", [refused, tasks[1]]), document("c", tasks[:1])
        ),
        over=["x", "y"],
    )
    line = by_model(table)["a"]
    assert (line.score.value, line.score.n) == (pytest.approx(0.7), 200)
    half = math.hypot(0.05, 0.05) / 2
    assert (line.score.low, line.score.high) == pytest.approx((0.7 - half, 0.7 + half))
    sheet = overall_sheet(table)
    assert [column.title for column in sheet.columns] == [
        *(
            "Rank",
            "Model",
            "Mean |RCI|, nearer 0 is better",
            "Mean RCI",
            "Mean FIP",
            "x",
            "x, FIP",
            "y",
            "y, FIP",
            "Lacks",
        )
    ]
    rows = {row["model"]: row for row in sheet.rows}
    assert (rows["a"]["on:y"].value, rows["a"]["fip:y"].value) == (0.3, 0.6)
    assert (rows["b"]["on:x"].value, rows["b"]["on:x"].reason, rows["b"]["fip:x"].value) == (None, "near chance", 0.26)
    assert (rows["c"]["on:y"].value, rows["c"]["on:y"].reason, rows["c"].get("fip:y")) == (None, "not run", None)
    assert [rows[model]["score"] is None for model in "abc"] == [False, True, True]
    (mixed,) = overall(board_of(tmp_path / "mixed", document("a", [tasks[0], index_task("y", "rci", fip=60.0)])))
    assert mixed.lines[0].score is None
    assert "score" not in [column.key for column in overall_sheet(mixed).columns]


@pytest.mark.parametrize(("kinds", "name"), [(["rci", "rci", "pcri"], "RCI"), (["rci", "pcri"], "PCRI")])
def test_an_index_is_called_as_most_of_its_runs_call_it(tmp_path, kinds, name):
    runs = [document(f"m{i}", [index_task("x", kind, {3: (0.1, 0.0, 0.2)})]) for i, kind in enumerate(kinds)]
    found = board_of(tmp_path, *runs)
    (table,) = overall(found)
    assert found.groups[0].index == table.index == name
    assert overall_sheet(table).columns[3].title == f"Mean {name}"


def test_means_by_hand_and_only_over_shared_benchmarks(tmp_path):
    """a: |-0.1|, |0.3| -> 0.2, signed 0.1. b: 0.05, 0.05 -> 0.05, signed -0.05. z is b's alone: in no mean. c lacks y, d is near chance on it."""
    found = board_of(
        tmp_path,
        run("a", {"x": -0.1, "y": 0.3}),
        run("b", {"x": -0.05, "y": -0.05, "z": 0.9}),
        run("c", {"x": 0.0}),
        run("d", {"x": 0.0, "y": None}),
    )
    (table,) = overall(found)
    assert (table.benchmarks, table.shared) == (("x", "y", "z"), ("x",))
    (table,) = overall(found, over=["x", "y"])
    lines = by_model(table)
    assert list(lines) == ["b", "a", "c", "d"]
    assert lines["a"].mean_abs.value == pytest.approx(0.2)
    assert lines["a"].mean.value == pytest.approx(0.1)
    half = math.hypot(0.01, 0.01) / 2
    assert (lines["a"].mean_abs.low, lines["a"].mean_abs.high) == pytest.approx((0.2 - half, 0.2 + half))
    assert lines["b"].mean_abs.value == pytest.approx(0.05)
    assert [str(lines[name].place) for name in ("a", "b", "c", "d")] == ["2", "1", "None", "None"]
    assert lines["c"].mean_abs is None
    assert (lines["c"].lacks, lines["d"].lacks) == (("y (not run)",), ("y (near chance)",))
    assert (
        overall_note(table)
        == "Means over 2 of 3 benchmarks, which every ranked model has (2): x, y. Without a rank, because they lack some of these: 2."
        " Of the index of one pass: docs were not asked again in every run. Ranked by the mean distance from 0, nearer 0 is better."
        " FIP is the score on full images. From whole runs: x (100 docs), y (100 docs), z (100 docs)."
    )


def test_an_index_under_other_settings_is_not_in_the_table(tmp_path):
    found = board_of(
        tmp_path,
        run("a", {"x": 0.1, "y": 0.1}),
        run("b", {"x": 0.1, "y": 0.1}),
        run("c", {"x": 0.1}),
        run("c", {"y": 0.0}, made={"prompts": "o"}),
    )
    (table,) = overall(found, over=["x", "y"])
    line = by_model(table)["c"]
    assert set(line.cells) == {"x"}
    assert line.lacks == ("y (only with other settings)",)


def test_the_interval_of_a_mean_of_distances_by_hand(tmp_path):
    """0.25 give or take 0.15 and -0.5 give or take 0.2: sqrt(0.0225 + 0.04) / 2 = 0.125.

    The signed mean -0.125, the distances 0.375; below.
    that what noise adds to a distance of 0.1 (se 0.15 / 1.96) and of 0.3 (se 0.2 / 1.96), each at the end of its interval that is nearest 0."""
    tasks = [index_task("x", grids={3: (0.25, 0.1, 0.4)}), index_task("y", grids={3: (-0.5, -0.7, -0.3)})]
    (table,) = overall(board_of(tmp_path, document("m", tasks)))
    signed, size = table.lines[0].mean, table.lines[0].mean_abs
    assert (signed.value, signed.low, signed.high) == pytest.approx((-0.125, -0.25, 0.0))
    assert (size.value, size.high) == pytest.approx((0.375, 0.5))
    added = [
        stats.foldnorm.mean(near / se, scale=se) - near for near, se in ((0.1, 0.15 / 1.959964), (0.3, 0.2 / 1.959964))
    ]
    assert size.low == pytest.approx(0.25 - sum(added) / 2, abs=1e-6)
    assert size.n == 200


def test_a_board_and_a_report_give_one_interval(tmp_path):
    """The same numbers, once from results files and once as a report has them."""
    made = {
        "a": {"x": (-0.1, -0.2, 0.05), "y": (0.3, 0.2, 0.5)},
        "b": {"x": (0.01, -0.03, 0.04), "y": (-0.4, -0.45, -0.3)},
    }
    documents = [
        document(model, [index_task(base, grids={3: one}) for base, one in numbers.items()])
        for model, numbers in made.items()
    ]
    (table,) = overall(board_of(tmp_path, *documents))
    points = [
        Point(base, model, 3, *one, 100, "", True, "")
        for model, numbers in made.items()
        for base, one in numbers.items()
    ]
    standings = {one.model: one for one in models.standings(points, 3)}
    for line in table.lines:
        theirs = standings[line.model]
        assert (line.mean_abs.value, line.mean_abs.low, line.mean_abs.high) == (
            theirs.size.value,
            theirs.size.low,
            theirs.size.high,
        )
        assert (line.mean.value, line.mean.low, line.mean.high) == (
            theirs.signed.value,
            theirs.signed.low,
            theirs.signed.high,
        )
        assert (line.place.first, line.place.last) == (theirs.place.first, theirs.place.last)


@pytest.mark.parametrize("truths", [[0.0] * 12, [0.0] * 3, [0.1, -0.1, 0.3, 0.0], [-0.02, 0.02], [0.3, -0.3], [0.1]])
@pytest.mark.parametrize("skew", [0.0, 0.4])
def test_the_intervals_of_means_cover_the_truth(truths, skew):
    """By simulation, independent benchmarks: at least 95 % of 1500, less three standard errors (0.017).

    Also where intervals are lopsided.
    Means of folded ends would not: with twelve truths of 0 they hold 0.55 of the time. Lopsided: x = truth + g(z), g(z)
    = 0.05 · (e^(kz) - 1) / k
    less its mean, whose exact interval is [x - g(1.96), x - g(-1.96)]."""
    stream = np.random.default_rng(1)
    held = {mean_size: 0, mean_index: 0}

    def g(z):
        return 0.05 * (z if not skew else np.expm1(skew * z) / skew)

    centre = 0.05 * (np.exp(skew**2 / 2) - 1) / skew if skew else 0.0
    for noise in g(stream.normal(0, 1, (1500, len(truths)))) - centre:
        values = np.asarray(truths) + noise
        ends = [(float(v - g(1.959964) + centre), float(v - g(-1.959964) + centre)) for v in values]
        seen = [Estimate(float(v), None, *pair, 9, 9, 0) for v, pair in zip(values, ends, strict=True)]
        for mean, truth in ((mean_size, np.abs(truths).mean()), (mean_index, np.mean(truths))):
            found = mean(seen)
            held[mean] += found.low <= truth <= found.high
    assert min(held.values()) / 1500 > 0.933


# --- which runs a headline rests on ---


def limited(model, index, date, docs=20, limit=20):
    task = index_task("x", grids={3: (index, index - 0.01, index + 0.01)}, docs=docs, made={"docs": f"d{docs}"})
    return document(model, [task], date, config={"limit": limit})


def test_later_tries_with_a_limit_never_become_the_headline(tmp_path):
    """Whole runs a 0.01 and b 0.25 in January; tries of 20 docs in March: three models, newer, and of other numbers."""
    whole = [run("a", {"x": 0.01}), run("b", {"x": 0.25})]
    tries = [limited(model, 0.9, "20260301_000000") for model in "abc"]
    found = board_of(tmp_path, *whole, *tries)
    assert [(group.number, group.limits, len(group.entries)) for group in found.groups] == [
        (1, ("all",), 2),
        (2, ("20",), 3),
    ]
    (table,) = overall(found)
    assert {name: line.mean_abs and line.mean_abs.value for name, line in by_model(table).items()} == pytest.approx(
        {"a": 0.01, "b": 0.25, "c": None}
    )
    assert "From whole runs: x (100 docs)." in overall_note(table)
    assert "limit" not in overall_note(table)


def test_where_there_are_only_tries_the_headline_says_so(tmp_path):
    found = board_of(tmp_path, limited("a", 0.1, "20260301_000000"), run("a", {"y": 0.2}))
    (table,) = overall(found)
    assert "From whole runs: y (100 docs)." in overall_note(table)
    assert "From runs with a limit, which say little of the whole benchmark: x (20 docs, limit 20)." in overall_note(
        table
    )
    assert [column.title for column in overall_sheet(table).columns if column.key.startswith("on:")] == [
        "x (limit 20)",
        "y",
    ]


def test_a_mixed_limit_is_told_where_it_is_ignored(tmp_path):
    runs = limited("a", 0.1, "20260301_000000", docs=100), run("b", {"x": 0.2}, made={"docs": "d100"})
    found = board_of(tmp_path, *runs, ignore=["limit"])
    (table,) = overall(found)
    assert "x (100 docs, limit 20 or none)" in overall_note(table)


@pytest.mark.parametrize(
    ("have", "expected"),
    [
        ({"a": "xy", "b": "xy", "c": "x"}, "xy"),  # 2 models x 2 = 4 numbers against 3 x 1
        ({"a": "xyz", "b": "x"}, "x"),  # a ranking of one model is none, however many numbers it has
        ({"a": "xyz"}, "xyz"),
        ({"a": "ac", "b": "ac", "c": "bd", "d": "bd", "e": "bd"}, "bd"),
        ({"a": "", "b": ""}, ""),
        ({}, ""),
    ],
)
def test_which_benchmarks_means_are_over(have, expected):
    assert "".join(shared_benchmarks({model: list(names) for model, names in have.items()})) == expected


@given(st.dictionaries(st.integers(0, 9), st.sets(st.sampled_from("abcdef")), max_size=8))
def test_somebody_has_all_of_them(have):
    chosen = set(shared_benchmarks(have))
    assert bool(chosen) == any(have.values())
    if chosen:
        assert any(chosen <= names for names in have.values())


def test_task_types_have_tables_of_their_own(tmp_path):
    tasks = [index_task("x", type="mcq"), index_task("y", type="caption", grids={3: (-0.6, -0.7, -0.5)})]
    tables = overall(board_of(tmp_path, document("m", tasks)))
    assert [(one.type, one.benchmarks) for one in tables] == [("", ("x", "y")), ("caption", ("y",)), ("mcq", ("x",))]
    assert tables[1].lines[0].mean_abs.value == pytest.approx(0.6)


def test_one_type_needs_no_table_of_its_own(tmp_path):
    assert (
        len(overall(board_of(tmp_path, document("m", [index_task("x", type="mcq"), index_task("y", type="mcq")])))) == 1
    )


# --- 2x2 against 3x3 ---


def two_grids(base, coarse, fine, **task):
    return index_task(
        base, grids={2: (coarse, coarse - 0.001, coarse + 0.001), 3: (fine, fine - 0.01, fine + 0.01)}, **task
    )


def test_the_relative_change_is_the_papers(tmp_path):
    """PCRI paper, A.4.6: -0.036 at 2x2 to -0.079 at 3x3 is a relative drop of 119 % (119.6 % before rounding)."""
    (found,) = changes(board_of(tmp_path, document("InternVL2.5-26B", [two_grids("mcq", -0.036, -0.079)])))
    (line,) = found.lines
    assert line.change.value == pytest.approx(-1.194, abs=0.001)
    assert line.cells["mcq"].value == pytest.approx(-1.194, abs=0.001)


def test_the_change_of_means_by_hand(tmp_path):
    """x -0.1 to -0.2, y 0.2 to 0.3: means 0.05 to 0.05, no change; the two benchmarks by themselves -1 and +0.5."""
    found = board_of(
        tmp_path,
        document("m", [two_grids("x", -0.1, -0.2), two_grids("y", 0.2, 0.3)]),
        document("n", [two_grids("x", -0.1, -0.1)]),
    )
    (table,) = changes(found, over=["x", "y"])
    first, second = table.lines
    assert (first.coarse.value, first.fine.value, first.change.value) == pytest.approx((0.05, 0.05, 0.0))
    assert {base: one.value for base, one in first.cells.items()} == pytest.approx({"x": -1.0, "y": 0.5})
    assert (second.coarse, second.change, second.lacks) == (None, None, ("y",))
    assert changes_sheet(table).rows[1]["lacks"] == "y"


def test_grids_of_runs_under_other_settings_are_not_set_against_each_other(tmp_path):
    coarse, fine = (
        index_task("x", grids={2: (0.1, 0.0, 0.2)}),
        index_task("x", grids={3: (0.2, 0.1, 0.3)}, made={"prompts": "other"}),
    )
    assert changes(board_of(tmp_path, document("m", [coarse]), document("m", [fine]))) == []


def test_many_models_are_as_the_definition_says(tmp_path):
    """Brute force over random boards: means, and ranges of places, from the numbers in the files."""
    stream = np.random.default_rng(3)
    made = {
        f"m{i}": {
            f"b{j}": (float(v := stream.normal(0, 0.2)), float(v - h), float(v + h))
            for j, h in enumerate(stream.uniform(0, 0.05, 3))
        }
        for i in range(8)
    }
    documents = [
        document(model, [index_task(base, grids={3: one}) for base, one in numbers.items()])
        for model, numbers in made.items()
    ]
    (table,) = overall(board_of(tmp_path, *documents))
    assert table.shared == ("b0", "b1", "b2")

    spans = {}
    for model, numbers in made.items():
        mean, halves = (
            np.mean([abs(one[0]) for one in numbers.values()]),
            np.array([one[2] - one[0] for one in numbers.values()]),
        )
        nearest = np.maximum(0, np.abs([one[0] for one in numbers.values()]) - halves)
        surplus = stats.foldnorm.mean(nearest / (halves / 1.959964), scale=halves / 1.959964) - nearest
        half = np.sqrt((halves**2).sum()) / 3
        spans[model] = (max(0, mean - half - surplus.mean()), mean + half)
    for line in table.lines:
        assert line.mean_abs.value == pytest.approx(np.mean([abs(one[0]) for one in made[line.model].values()]))
        low, high = spans[line.model]
        assert line.place.first == 1 + sum(other[1] < low for other in spans.values())
        assert line.place.last == len(made) - sum(other[0] > high for other in spans.values())
    values = [line.mean_abs.value for line in table.lines]
    assert values == sorted(values)
    assert not any(math.isnan(value) for value in values)
    assert len(overall_sheet(table).rows) == 8


def test_benchmarks_that_were_chosen_but_not_asked_at_a_grid_leave_it_without_ranks(tmp_path):
    """x is asked on 2x2 alone, y on 3x3 alone: over x there is a mean at 2x2, and at 3x3 every model lacks x."""
    tasks = [index_task("x", grids={2: (0.1, 0.05, 0.15)}), index_task("y", grids={3: (0.2, 0.15, 0.25)})]
    found = board_of(tmp_path, document("a", tasks))
    coarse, fine = overall(found, ["x"])
    assert [line.mean_abs.value for line in coarse.lines] == [pytest.approx(0.1)]
    assert [(line.mean_abs, line.lacks) for line in fine.lines] == [(None, ("x (not run)",))]
    assert overall_note(fine).startswith(
        "Means over 1 of 2 benchmarks, which every ranked model has (0): x. Without a rank, because they lack some"
    )
    assert changes(found, ["x"]) == []
