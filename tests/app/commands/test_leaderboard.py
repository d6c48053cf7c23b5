"""``lmms-patch leaderboard``: what is printed, and the exit status."""

import json
import os
import subprocess
import sys

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


def test_a_narrow_table_has_the_mean_score_beside_the_mean_index(tmp_path, capsys):
    write(tmp_path / "runs", document("a", [index_task(grids={3: (0.6, 0.5, 0.7)}, fip=0.7)]))
    assert cli.main(["leaderboard", str(tmp_path / "runs"), "--output", str(tmp_path / "board")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split("  ")[-1] == "Mean FIP"
    assert lines[3] == "1     a      0.600 [0.500, 0.700]  0.700 [0.650, 0.750]"
    assert "nearer 0 is better" in " ".join(lines)


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--by", "nothing"], "cannot be ranked by 'nothing'"),
        (["--ignore", "nothing"], "no setting 'nothing' to ignore"),
        (["--ignore", "benchmark"], "'benchmark' cannot be ignored"),
        (["--over", "nothing"], "no benchmark 'nothing'"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(runs, tmp_path, capsys, arguments, words):
    assert cli.main(["leaderboard", str(runs), "--output", str(tmp_path / "board"), *arguments]) == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert err[-1].startswith("lmms-patch: ")
    assert words in err[-1]
    assert not (tmp_path / "board").exists()


def test_a_damaged_run_is_status_2_and_the_board_stays(runs, tmp_path, capsys):
    board = tmp_path / "board"
    cli.main(["leaderboard", str(runs), "--output", str(board)])
    before = {path: path.read_bytes() for path in board.rglob("*") if path.is_file()}
    capsys.readouterr()
    (runs / "20260303_000000_samples_toy_pcri3.parquet").write_bytes(b"PAR1")
    assert cli.main(["leaderboard", str(runs), "--output", str(board)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert {path: path.read_bytes() for path in board.rglob("*") if path.is_file()} == before


def test_the_command_needs_neither_torch_nor_the_harness_nor_a_drawing_library(runs, tmp_path):
    code = (
        "import sys; from lmms_patch.app import cli; status = cli.main(sys.argv[1:]);"
        "print(status, sorted({'torch', 'lmms_eval', 'matplotlib', 'transformers', 'pandas', 'datasets'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, "leaderboard", str(runs), "--output", str(tmp_path / "board")]
    found = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"}
    )
    assert found.stdout.splitlines()[-1] == "0 []"
