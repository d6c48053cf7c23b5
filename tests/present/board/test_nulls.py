"""Ranks and luck: what a board goes by, what has no rank, and what stands beside the numbers."""

import csv

import pytest

from lmms_patch.present.board.build import leaderboard
from lmms_patch.present.board.overall import changes, overall
from lmms_patch.present.board.tables import flat_sheet, overall_note, remarks
from tests.making.boards import board_of, document, index_task, shown
from tests.making.runs import again_run, write_run


def run(model, index, steady=None, base="toy", **task):
    grids = {3: None if index is None else (index, index - 0.01, index + 0.01)}
    ends = None if steady is None else (steady, steady - 0.01, steady + 0.01)
    return document(model, [index_task(base, grids=grids, steady=ends, looks=task.pop("looks", True), **task)])


NOT_LOOKING = "the answers do not depend on the image (full image 0.6, a wrong image 0.6, 300 docs)"


def refused(model):
    return run(model, None, valid=False, looks=False, why=NOT_LOOKING, fip=0.6)


# --- real records ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A folder of runs, asked again: one model never looks, one guesses on cells, one knows from one cell."""
    folder, docs = tmp_path_factory.mktemp("runs"), {"n": 300, "grid": 3}
    made = {
        "never": again_run(["text", "text", "text", "unsolved", "unsolved"], guesses=False, **docs),
        "guesses": again_run([*["whole"] * 4, "unsolved"], **docs),
        "known": again_run(["cell"], **docs),
    }
    for name, one in made.items():
        write_run(folder / name, {"toy_rci3": one}, model_name=name)
    return folder


def test_a_model_that_never_looks_has_no_rank_and_luck_is_no_merit(real, tmp_path):
    """By the index of one pass, -0.1 of pure guessing stands beside 0; asked again it is last, at 1."""
    built = leaderboard([real], tmp_path / "board")
    (group,) = built.board.groups
    assert shown(group) == {"known": (1, 1), "guesses": (2, 2)}
    ((entry, reason),) = group.unranked
    assert entry.model == "never"
    assert reason.startswith("the answers do not depend on the image (full image 0.")
    told = " ".join(remarks(group))
    assert "Ranked by the steady index: docs were asked again in every run." in told
    assert "Contradicted: guesses: from one pass -0." in told
    text, page = ((tmp_path / "board" / name).read_text() for name in ("leaderboard.md", "index.html"))
    for said in (text, page):
        assert "does not look" in said
        assert "near chance |" not in said
        assert ", contradicted" in said or ">contradicted<" in said
        assert "the first is mostly luck" in said
    rows = {row["model"]: row for row in csv.DictReader((tmp_path / "board" / "leaderboard.csv").open())}
    assert (rows["never"]["gate"], rows["never"]["rank_first"], rows["never"]["reason"]) == (
        "does not look",
        "",
        reason,
    )
    assert rows["guesses"]["index_note"] == "contradicted"
    assert rows["guesses"]["band"] == "strong global"
    assert {row["ranked_by"] for row in rows.values()} == {"steady"}


def test_cards_say_what_a_number_rests_on(real, tmp_path):
    leaderboard([real], tmp_path / "board")
    assert '"name": "RCI 3×3 (contradicted)"' in (tmp_path / "board" / "model-index" / "guesses.md").read_text()
    assert "rci3" not in (tmp_path / "board" / "model-index" / "never.md").read_text().replace("toy_rci3", "")


# --- what it is ranked by -------------------------------------------------------------------------


def test_with_every_run_asked_again_the_ranks_colours_and_bands_go_by_the_steady_index(tmp_path):
    """By the index of one pass b is nearer 0; by the steady one a is."""
    found = board_of(tmp_path, run("a", -0.4, 0.05), run("b", 0.05, 0.4), refused("c"))
    (group,) = found.groups
    assert (group.by.key, list(shown(group))) == ("steady", ["a", "b"])
    bands = {row["model"]: (row["band"], row["span"]) for row in flat_sheet(found).rows}
    assert bands == {"a": ("balanced", "balanced"), "b": ("strong global", "strong global"), "c": (None, None)}
    built = leaderboard([tmp_path], tmp_path / "board")
    page = (built.folder / "index.html").read_text()
    assert '<td class="num balanced" data-value="0.05"><span class="v">+0.050' in page  # steady: coloured
    assert '<td class="num" data-value="0.05"><span class="v">+0.050' in page  # of one pass: not coloured


def test_an_index_below_0_beside_a_steady_one_of_0_is_not_called_contradicted(tmp_path):
    """A share is never below 0; that cells do better than the whole image, the steady index does not say."""
    (group,) = board_of(tmp_path, run("a", -0.5, 0.02), run("b", -0.5, 0.35)).groups
    assert {entry.model: bool(entry.mark) for entry in group.entries} == {"a": False, "b": True}


def test_one_whose_answers_do_not_tell_and_the_index_of_one_pass_ranks_all(tmp_path):
    one = document("a", [index_task(grids={3: (0.0, -0.01, 0.01)}, steady=(None, None, None), looks=True)])
    (group,) = board_of(tmp_path, one, run("b", 0.05, 0.4)).groups
    assert (group.by.key, list(shown(group))) == ("pcri", ["a", "b"])
    assert remarks(group)[0] == "Ranked by the index of one pass: there is no steady one of a."


def test_one_that_was_not_asked_again_and_the_index_of_one_pass_ranks_and_the_board_says_why(tmp_path):
    (group,) = board_of(tmp_path, run("a", -0.4, 0.05), run("b", 0.05, looks=None)).groups
    assert (group.by.key, list(shown(group))) == ("pcri", ["b", "a"])
    told = remarks(group)
    assert told[0] == "Ranked by the index of one pass: there is no steady one of b."
    assert any(
        line.startswith("Not known whether the answers depend on the image") and line.endswith(": b.") for line in told
    )


def test_asked_for_by_name_the_steady_index_ranks_those_that_have_one(tmp_path):
    (group,) = board_of(tmp_path, run("a", -0.4, 0.05), run("b", 0.05), by="steady").groups
    assert shown(group) == {"a": (1, 1)}
    assert [entry.model for entry, _ in group.unranked] == ["b"]


# --- means ----------------------------------------------------------------------------------------


def of(model, steadies):
    """A run on x and y: the index 0.05 and 0.1; the steady one as given."""
    tasks = [
        index_task(
            base,
            grids=dict.fromkeys((2, 3), (index, index - 0.01, index + 0.01)),
            steady=None if steady is None else (steady, max(steady - 0.01, 0), steady + 0.01),
            looks=True,
        )
        for base, index, steady in zip("xy", (0.05, 0.1), steadies, strict=True)
    ]
    return document(model, tasks)


def test_means_are_of_the_steady_index_where_every_run_was_asked_again(tmp_path):
    """a: 0.2, 0.4 -> 0.3; b: 0, 0.2 -> 0.1."""
    found = board_of(tmp_path, of("a", (0.2, 0.4)), of("b", (0.0, 0.2)))
    for table in overall(found):
        assert [(line.model, round(line.mean_abs.value, 9), str(line.place)) for line in table.lines] == [
            ("b", 0.1, "1"),
            ("a", 0.3, "2"),
        ]
        assert "Of the steady index: docs were asked again in every run." in overall_note(table)
    (step,) = changes(found)
    assert {line.model: line.coarse.value for line in step.lines} == pytest.approx({"a": 0.3, "b": 0.1})


def test_one_benchmark_without_and_all_means_are_of_one_pass(tmp_path):
    """Means of some steady indices and some of one pass would be of nothing."""
    found = board_of(tmp_path, of("a", (0.2, 0.4)), of("b", (0.1, None)))
    assert [(group.base, group.by.key) for group in found.groups if group.grid == 3] == [("x", "steady"), ("y", "pcri")]
    for table in overall(found):
        assert {line.model: line.mean_abs.value for line in table.lines} == pytest.approx({"a": 0.075, "b": 0.075})
        assert "Of the index of one pass: docs were not asked again in every run." in overall_note(table)


def test_what_a_model_lacks_says_that_it_does_not_look(tmp_path):
    found = board_of(tmp_path, of("a", (0.2, 0.4)), of("c", (0.1, 0.1)), refused_on_x("b"))
    lacks = {line.model: line.lacks for line in overall(found)[-1].lines}
    assert lacks["b"] == ("x (does not look)", "y (not run)")


def refused_on_x(model):
    return document(
        model, [index_task("x", grids={2: None, 3: None}, valid=False, looks=False, why=NOT_LOOKING, fip=0.6)]
    )
