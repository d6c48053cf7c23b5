"""Ranks and the null: what a board goes by, what has no rank, and what stands beside the numbers."""

import csv
import json
import shutil

import jsonschema
import pytest

from lmms_patch.app import schemas
from lmms_patch.present.board.board import board
from lmms_patch.present.board.build import leaderboard
from lmms_patch.present.board.overall import changes, overall
from lmms_patch.present.board.store import NAME, load
from lmms_patch.present.board.tables import flat_sheet, head, overall_note, remarks
from lmms_patch.present.ranking import by_of
from tests.making.boards import board_of, document, index_task, shown
from tests.making.boards import write as write_runs
from tests.making.runs import as_before, guesses_on_cells, never_looks, one_cell_knows, world_run, write_run
from tests.sizes import size


def run(model, index, adj=None, base="toy", **task):
    grids = {3: None if index is None else (index, index - 0.01, index + 0.01)}
    ends = None if adj is None else (adj, adj - 0.01, adj + 0.01)
    return document(model, [index_task(base, grids=grids, adj=ends, looks=task.pop("looks", True), **task)])


NOT_LOOKING = "the answers do not depend on the image (full image 0.6, a wrong image 0.6, 300 docs)"


def refused(model):
    return run(model, None, valid=False, looks=False, why=NOT_LOOKING, fip=0.6)


# --- real records ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A folder of runs: one model never looks, one guesses on cells, one knows from one cell."""
    folder = tmp_path_factory.mktemp("runs")
    for name, model in (("never", never_looks), ("guesses", guesses_on_cells), ("known", one_cell_knows)):
        path = write_run(folder / name, {"toy_rci3": world_run(model, n=size(400, 1000), grid=3)})
        data = json.loads(path.read_text())
        path.write_text(json.dumps({**data, "model_name": name}))
    return folder


def test_a_model_that_never_looks_has_no_rank_and_luck_is_no_merit(real, tmp_path):
    """By the index, -0.1 of pure guessing stands beside 0; luck-corrected it is last, at 1."""
    built = leaderboard([real], tmp_path / "board")
    (group,) = built.board.groups
    assert shown(group) == {"known": (1, 1), "guesses": (2, 2)}
    ((entry, reason),) = group.unranked
    assert entry.model == "never"
    assert reason.startswith("the answers do not depend on the image (full image 0.")
    told = " ".join(remarks(group))
    assert "Ranked by the luck-corrected index: luck is measured on wrong images in every run." in told
    assert "Contradicted: guesses: not luck-corrected -0." in told
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
    assert [rows[name]["null"] for name in ("never", "guesses", "known")] == ["", "measured", "measured"]
    assert {row["ranked_by"] for row in rows.values()} == {"adj"}


def test_cards_say_what_a_number_rests_on(real, tmp_path):
    leaderboard([real], tmp_path / "board")
    assert (
        'name: "RCI, 3×3 cells: 1 - MPP / FIP (contradicted)"'
        in (tmp_path / "board" / "model-index" / "guesses.md").read_text()
    )
    assert "rci3" not in (tmp_path / "board" / "model-index" / "never.md").read_text().replace("toy_rci3", "")
    as_before(
        write_run(
            tmp_path / "old",
            {"toy_rci3": world_run(lambda stream, gold: (one_cell_knows(stream, gold)[0], None), n=100, grid=3)},
        )
    )
    leaderboard([tmp_path / "old"], tmp_path / "before")
    assert (
        'name: "luck-corrected RCI, 3×3 cells (assumed null)"'
        in next((tmp_path / "before" / "model-index").glob("*.md")).read_text()
    )


# --- what it is ranked by -------------------------------------------------------------------------


def test_with_every_null_measured_the_ranks_colours_and_bands_go_by_the_corrected_index(tmp_path):
    """By the index b is nearer 0; luck-corrected a is."""
    found = board_of(tmp_path, run("a", -0.4, 0.05), run("b", 0.05, 0.4), refused("c"))
    (group,) = found.groups
    assert (group.by.key, list(shown(group))) == ("adj", ["a", "b"])
    bands = {row["model"]: (row["band"], row["span"]) for row in flat_sheet(found).rows}
    assert bands == {"a": ("balanced", "balanced"), "b": ("strong global", "strong global"), "c": (None, None)}
    built = leaderboard([tmp_path], tmp_path / "board")
    page = (built.folder / "index.html").read_text()
    assert '<td class="num balanced" data-value="0.05"><span class="v">+0.050' in page  # luck-corrected: coloured
    assert '<td class="num" data-value="0.05"><span class="v">+0.050' in page  # not luck-corrected: not coloured


@pytest.mark.parametrize("null", ["assumed", None])
def test_one_assumed_null_and_the_raw_index_ranks_and_the_board_says_why(tmp_path, null):
    adj = 0.4 if null else None
    (group,) = board_of(tmp_path, run("a", -0.4, 0.05), run("b", 0.05, adj, null=null, looks=None)).groups
    assert (group.by.key, list(shown(group))) == ("pcri", ["b", "a"])
    told = remarks(group)
    assert told[0] == "Ranked by the index, not luck-corrected: luck is not measured in b."
    assert any(
        line.startswith("Not known whether the answers depend on the image") and line.endswith(": b.") for line in told
    )


def test_where_luck_saturates_for_all_the_raw_index_ranks(tmp_path):
    saturated = {"adj": (None, None, None), "looks": True}
    documents = [
        document(name, [index_task(grids={3: (index, index - 0.01, index + 0.01)}, **saturated)])
        for name, index in (("a", -0.2), ("b", 0.1))
    ]
    (group,) = board_of(tmp_path, *documents).groups
    assert (group.by.key, list(shown(group))) == ("pcri", ["b", "a"])
    assert remarks(group)[0].startswith("Ranked by the index, not luck-corrected: there is no luck-corrected one")


def test_where_luck_saturates_for_one_that_one_has_no_rank(tmp_path):
    one = document("a", [index_task(grids={3: (0.0, -0.01, 0.01)}, adj=(None, None, None), looks=True)])
    (group,) = board_of(tmp_path, one, run("b", 0.05, 0.4)).groups
    assert (group.by.key, shown(group)) == ("adj", {"b": (1, 1)})
    assert [entry.model for entry, _ in group.unranked] == ["a"]


def test_an_assumed_null_never_carries_a_rank(tmp_path):
    one = run("a", -0.4, 0.05, null="assumed", looks=None)
    (group,) = board_of(tmp_path, one, by="adj").groups
    assert not group.ranked
    ((_, reason),) = group.unranked
    assert reason.startswith("assumed null: no rank rests on it; run it again with the option 'null'")


def test_asked_for_by_name_the_corrected_index_ranks_those_that_have_a_measured_one(tmp_path):
    (group,) = board_of(tmp_path, run("a", -0.4, 0.05), run("b", 0.05, 0.4, null="assumed"), by="adj").groups
    assert shown(group) == {"a": (1, 1)}
    assert [entry.model for entry, _ in group.unranked] == ["b"]


B_AND_A = (
    "Contradicted: b: not luck-corrected 0.050 (balanced), luck-corrected 0.400 (strong global): the first is mostly luck; "
    "a: not luck-corrected -0.400 (strong local), luck-corrected 0.050 (balanced): the first is mostly luck."
)


def test_other_numbers_rank_as_ever(tmp_path):
    (group,) = board_of(tmp_path, run("a", -0.4, 0.05, fip=0.7), run("b", 0.05, 0.4), by="fip").groups
    assert (group.by.key, list(shown(group)), remarks(group)[:1]) == ("fip", ["b", "a"], [B_AND_A])
    assert [line.partition(" beside")[0] for line in remarks(group)[1:]] == ["b, a: not checked: no sample log"]


def test_the_top_of_the_page_says_that_tables_differ(tmp_path):
    lines = head(board_of(tmp_path, run("a", -0.4, 0.05)))
    assert any("ranked by the luck-corrected index where luck is measured in all its runs" in line for line in lines)


def test_a_marginal_pass_is_marked(tmp_path):
    found = board_of(tmp_path, run("a", -0.4, 0.05, marginal=True))
    assert flat_sheet(found).rows[0]["gate"] == "valid, marginal"
    assert any("one further standard error" in line and line.endswith(": a.") for line in remarks(found.groups[0]))
    page = (leaderboard([tmp_path], tmp_path / "board").folder / "index.html").read_text()
    assert '<span class="mark unknown"><span aria-hidden="true">!</span> valid, marginal</span>' in page


# --- means ----------------------------------------------------------------------------------------


def of(model, adjs, nulls=("measured", "measured")):
    """A run on x and y: the index 0.05 and 0.1; the luck-corrected one as given."""
    tasks = [
        index_task(
            base,
            grids=dict.fromkeys((2, 3), (index, index - 0.01, index + 0.01)),
            adj=(adj, adj - 0.01, adj + 0.01),
            null=null,
            looks=True,
        )
        for base, index, adj, null in zip("xy", (0.05, 0.1), adjs, nulls, strict=True)
    ]
    return document(model, tasks)


def test_means_are_of_the_corrected_index_where_every_null_is_measured(tmp_path):
    """a: |0.2|, |0.4| -> 0.3; b: |-0.1|, |0.1| -> 0.1."""
    found = board_of(tmp_path, of("a", (0.2, 0.4)), of("b", (-0.1, 0.1)))
    for table in overall(found):
        assert [(line.model, round(line.mean_abs.value, 9), str(line.place)) for line in table.lines] == [
            ("b", 0.1, "1"),
            ("a", 0.3, "2"),
        ]
        assert "Of the luck-corrected index: luck is measured on wrong images in every run." in overall_note(table)
    (step,) = changes(found)
    assert {line.model: line.coarse.value for line in step.lines} == pytest.approx({"a": 0.3, "b": 0.0})


def test_one_benchmark_without_and_all_means_are_of_the_raw_index(tmp_path):
    """Means of some corrected and some raw indices would be of nothing."""
    found = board_of(tmp_path, of("a", (0.2, 0.4)), of("b", (-0.1, 0.1), ("measured", "assumed")))
    assert [(group.base, group.by.key) for group in found.groups if group.grid == 3] == [("x", "adj"), ("y", "pcri")]
    for table in overall(found):
        assert {line.model: line.mean_abs.value for line in table.lines} == pytest.approx({"a": 0.075, "b": 0.075})
        assert "Of the index, not luck-corrected: luck is not measured in every run." in overall_note(table)


def test_what_a_model_lacks_says_that_it_does_not_look(tmp_path):
    found = board_of(tmp_path, of("a", (0.2, 0.4)), of("c", (0.1, 0.1)), refused_on_x("b"))
    lacks = {line.model: line.lacks for line in overall(found)[-1].lines}
    assert lacks["b"] == ("x (does not look)", "y (not run)")


def refused_on_x(model):
    return document(
        model, [index_task("x", grids={2: None, 3: None}, valid=False, looks=False, why=NOT_LOOKING, fip=0.6)]
    )


# --- what a board remembers -----------------------------------------------------------------------


def test_a_board_remembers_all_of_it(tmp_path):
    write_runs(tmp_path / "runs", run("a", -0.4, 0.05, marginal=True), refused("b"))
    built = leaderboard([tmp_path / "runs"], tmp_path / "board")
    jsonschema.validate(json.loads((tmp_path / "board" / NAME).read_text()), schemas.load("leaderboard"))
    again = board(load(tmp_path / "board"), by_of("pcri"))
    assert again == built.board


def test_a_board_of_an_earlier_version_opens_and_ranks_by_the_raw_index(tmp_path):
    write_runs(tmp_path / "runs", run("a", -0.4, 0.05), run("b", 0.05, 0.4))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    path = tmp_path / "board" / NAME
    data = json.loads(path.read_text())
    shutil.rmtree(tmp_path / "runs")
    for one in data["runs"]:
        del one["digest"]
        for result in one["results"]:
            del result["looks"], result["marginal"]
            for notes in result["notes"].values():
                del notes["null"]
    path.write_text(json.dumps(data))
    (group,) = leaderboard([], tmp_path / "board").board.groups
    assert (group.by.key, list(shown(group))) == ("pcri", ["b", "a"])
    told = " ".join(remarks(group))
    assert "luck is not measured in a, b" in told
    assert "Not known whether the answers depend on the image" in told
    assert B_AND_A.replace("mostly luck", "mostly luck (assumed null)") in told


def test_an_index_that_is_shown_as_one_counts_as_one_in_a_mean(tmp_path):
    """1.27 [1.11, 1.43] is shown as "1.00, cells mislead": its mean with 0.5 [0.49, 0.51] is 0.75, as unsure as both are."""
    tasks = [
        index_task("a", grids={3: (0.9, 0.89, 0.91)}, adj=(1.27, 1.11, 1.43)),
        index_task("b", grids={3: (0.4, 0.39, 0.41)}, adj=(0.5, 0.49, 0.51)),
    ]
    (line,) = overall(board_of(tmp_path, document("m", tasks)))[0].lines
    assert line.mean.value == line.mean_abs.value == pytest.approx(0.75)
    half = (0.16**2 + 0.01**2) ** 0.5 / 2
    assert (line.mean.low, line.mean.high) == pytest.approx((0.75 - half, 0.75 + half))
