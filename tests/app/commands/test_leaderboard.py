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
    assert cli.main(["leaderboard", str(runs), "--output", str(tmp_path / "board")]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "All benchmarks, 3×3"
    assert lines[1].split() == ["Rank", "Model", "Mean", "|PCRI|", "Mean", "PCRI"]
    assert set(lines[2]) == {"-"}
    assert lines[3].startswith("1     a      0.100 [0.038, 0.200]  -0.100 [-0.200, -0.050]")
    assert lines[4].startswith("2     b      0.500 [0.400, 0.600]")
    assert lines[5].startswith("      c")
    assert lines[-1] == f"written: {tmp_path / 'board' / 'index.html'}"
    assert max(map(len, lines[:-1])) <= 80
    assert cli.main(["leaderboard", str(runs), "--output", str(tmp_path / "board"), "--wide"]) == 0
    wide = "Rank  Model  Mean |PCRI|, nearer 0 is better  Mean PCRI  toy  toy, FIP  Lacks"
    assert capsys.readouterr().out.splitlines()[1].split() == wide.split()
    assert "runs 3, models 3" in err
    assert "toy 3×3: group 2 (1 of the models) stands apart; it differs in prompts (p and o)" in err


def test_options_arrive(runs, tmp_path):
    board = tmp_path / "board"
    options = ["--by", "fip", "--ignore", "prompts", "--ignore", "limit", "--over", "toy"]
    assert cli.main(["leaderboard", str(runs), "--output", str(board), *options]) == 0
    data = json.loads((board / "board.json").read_text())
    assert (data["ranked_by"], data["ignored"]) == ("fip", ["prompts", "limit"])
    (group,) = data["groups"]
    assert group["merged"] == ["prompts (o, p)"]
    page = (board / "index.html").read_text(encoding="utf-8")
    assert "Differences in these settings are ignored on this board: prompts, limit." in page
