"""A board's file that somebody edited: its numbers are compared with the runs' files where these are at hand, and else the board says so."""

import json
import shutil

import pytest

from lmms_patch.app.commands.leaderboard import notes
from lmms_patch.errors import RecordError
from lmms_patch.present.board import store
from lmms_patch.present.board.build import leaderboard
from tests.making.runs import mc_run, write_run

TRUE = "rci2"


@pytest.fixture
def board(tmp_path):
    """A board of two runs, with their files at hand."""
    for model, answers in (("a", 0), ("b", 1)):
        write_run(tmp_path / "runs" / model, {"toy_rci2": mc_run(60, answers=answers)}, model_name=model)
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    return tmp_path / "board"


def edited(board, change, *, forged=False):
    """Change the file of a board; where forged, with the digest that the changed run would have."""
    path = board / store.NAME
    data = json.loads(path.read_text())
    change(data["runs"][0])
    if forged:
        data["runs"][0]["digest"] = store._digest(data["runs"][0])
    path.write_text(json.dumps(data))


def index_of_987(run):
    run["results"][0]["numbers"][TRUE] |= {"value": 0.987, "low": 0.97, "high": 0.99}


def of_another_model(run):
    run["model"] = "somebody else's"


def written(board):
    return {
        path.name: path.read_bytes() for path in board.rglob("*") if path.is_file() and path.name != ".leaderboard.lock"
    }


@pytest.mark.parametrize("forged", [False, True])
@pytest.mark.parametrize("change", [index_of_987, of_another_model], ids=lambda change: change.__name__)
def test_edited_numbers_are_those_of_the_files_again(board, change, forged):
    before = written(board)
    edited(board, change, forged=forged)
    built = leaderboard([], board)
    assert written(board) == before
    assert built.update.mended == (not forged)
    assert any("the board had been edited (runs: 1)" in line for line in notes(built)) != forged
    assert leaderboard([], board).written == ()


@pytest.mark.parametrize("change", [index_of_987, of_another_model], ids=lambda change: change.__name__)
def test_edited_numbers_are_refused_where_no_file_can_say_what_they_were(board, change):
    edited(board, change)
    shutil.rmtree(board.parent / "runs")
    before = written(board)
    with pytest.raises(RecordError, match="are not those that this board wrote, and the run's files are not at hand"):
        leaderboard([], board)
    assert written(board) == before


def test_numbers_whose_files_are_not_at_hand_are_told_on_every_page(board):
    shutil.rmtree(board.parent / "runs" / "a")
    leaderboard([], board)
    said = "Not compared with their files, which are not at hand or too many to read again: 1 of the runs."
    assert said in (board / "leaderboard.md").read_text()
    assert said in (board / "index.html").read_text()
    assert json.loads((board / "board.json").read_text())["remembered"] == 1


def test_a_board_of_many_results_says_how_many_were_not_compared(board, monkeypatch):
    """The newest are; an edited one is always compared."""
    monkeypatch.setattr(store, "RECHECKED", 1)
    assert leaderboard([], board).board.remembered == 1
    before = (board / store.NAME).read_bytes()
    for place in (0, 1):
        path = board / store.NAME
        data = json.loads(path.read_text())
        index_of_987(data["runs"][place])
        path.write_text(json.dumps(data))
        leaderboard([], board)
        assert path.read_bytes() == before


def test_a_run_whose_files_were_changed_after_it_was_read_is_refused(board):
    """Its results file is as it was, but its log no longer gives the numbers of that file."""
    edited(board, index_of_987)
    for log in board.parent.rglob("*.jsonl"):
        log.write_text(log.read_text().replace('"acc": 0.0', '"acc": 1.0', 1))
    with pytest.raises(RecordError, match="log"):
        leaderboard([], board)


def spoiled(**changes):
    return lambda run: run["results"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (spoiled(numbers={}), ": numbers have no score"),
        (lambda run: run["results"][0]["numbers"].pop("gap2"), ": numbers have no gap2"),
        (lambda run: run["results"][0]["numbers"]["score"].update(low=None), ": score: an interval with one end"),
        (
            lambda run: run["results"][0]["numbers"]["score"].update(low=0.9, high=0.1),
            "low end 0.9 is above its high end 0.1",
        ),
        (
            lambda run: run["results"][0]["numbers"]["score"].update(value="x"),
            r"runs[0].results[0].numbers.score.value must be",
        ),
        (lambda run: run["results"][0]["fingerprint"].update(docs={}), r"runs[0].results[0].fingerprint.docs must be"),
        (spoiled(numbers=[]), r"runs[0].results[0].numbers must be an object, not a list"),
        (spoiled(grids=[20]), ": grids must be whole numbers from 2 to 9, not 20"),
        (spoiled(kind="rci\n"), ": grids are of an unknown kind"),
        (spoiled(docs=-1), r"runs[0].results[0].docs must be a whole number >= 0, not -1"),
        (spoiled(dataset={"path": 1}), r"runs[0].results[0].dataset.path must be a text or null, not 1"),
        (spoiled(details=None), r"runs[0].results[0].details must be an object, not null"),
    ],
)
def test_a_board_that_cannot_be_is_refused_in_one_line_and_stays_as_it_was(board, change, told):
    edited(board, change)
    before = written(board)
    with pytest.raises(RecordError) as caught:
        leaderboard([], board)
    assert told in str(caught.value)
    assert "the board was changed or is damaged; give another --output" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert written(board) == before
