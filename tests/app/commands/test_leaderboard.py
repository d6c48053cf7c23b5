"""``lmms-patch leaderboard``: what is printed, and the exit status."""

import json

import pytest

from lmms_patch.app import cli
from tests.making.boards import document, index_task, write


@pytest.fixture
def runs(tmp_path):
    write(
        tmp_path / "runs",
        document("a"),
        document("b", [index_task(grids={3: (-0.5, -0.6, -0.4)})]),
        document("c", [index_task(made={"prompts": "o"})]),
    )
    return tmp_path / "runs"


def test_it_prints_the_table_and_says_what_it_did(runs, tmp_path, capsys):
    assert cli.main(["leaderboard", str(runs), "--output", str(tmp_path / "board"), "--by", "pcri"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "Models over benchmarks"
    assert lines[1].split() == ["Model", "Grid", "n", "Rank", "Mean", "score", "Mean", "index"]
    assert set(lines[2]) == {"-"}
    assert lines[3].startswith("a           3     1  0.800 [0.750, 0.850]  -0.100 [-0.200, -0.050]")
    assert lines[4].startswith("b           3     2 ")
    assert lines[-1] == f"written: {tmp_path / 'board' / 'index.html'}"
    assert max(map(len, lines[:-1])) <= 80
    assert cli.main(["leaderboard", str(runs), "--output", str(tmp_path / "board"), "--wide"]) == 0
    assert "Mean |index|" in capsys.readouterr().out.splitlines()[1]
    assert "runs 3, models 3" in err
    assert "toy, 3×3, index, group 2 (c) is not comparable with group 1; it differs in: prompts (p and o)" in err


def test_options_arrive(runs, tmp_path, capsys):
    board = tmp_path / "board"
    options = ["--by", "fip", "--ignore", "prompts", "--ignore", "limit", "--over", "toy"]
    assert cli.main(["leaderboard", str(runs), "--output", str(board), *options]) == 0
    data = json.loads((board / "report.json").read_text())
    assert {(rank["group"], *rank["rank"]) for one in data["results"] for rank in one["ranks"]} == {(1, 1, 3)}
    note = "ranked together although they differ in: prompts (o, p)"
    assert note in (board / "index.html").read_text(encoding="utf-8")
    assert note in capsys.readouterr().err


def test_a_folder_with_other_files_is_let_alone(runs, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    assert cli.main(["leaderboard", str(runs), "--output", str(tmp_path / "mine")]) == 2
    assert "other files in it" in capsys.readouterr().err
