import pytest

from lmms_patch.app.cli import main
from tests.making.runs import mc_run, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run"), {"toy_rci2": mc_run(n=100)})


def test_tables_are_printed_as_asked(run, capsys):
    assert main(["show", str(run)]) == 0
    plain = capsys.readouterr().out
    assert main(["show", str(run.parent), "--cells", "--chance"]) == 0
    more = capsys.readouterr()
    assert plain.startswith("- ")
    assert plain.index("toy") < plain.index("task  ")
    assert "published rule" not in plain
    assert "published rule" in more.out
    assert "share of the cells' score" in more.out
    assert "\x1b" not in more.out
    assert more.err == ""


@pytest.mark.parametrize("words", [["show"], ["analyze"]])
def test_no_line_is_wider_than_the_terminal_unless_asked_for(run, capsys, monkeypatch, words):
    """The terminal's width is what the environment says; 80 where nothing does."""
    for columns in (None, "80", "120"):
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns:
            monkeypatch.setenv("COLUMNS", columns)
        assert main([*words, str(run)]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= int(columns or 80)
    assert main([*words, str(run), "--wide"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) > 120


def test_of_several_runs_the_newest_and_it_is_told_on_stderr(run, tmp_path, capsys):
    write_run(tmp_path, {"old_rci2": mc_run(n=40)})
    newest = write_run(tmp_path, {"new_rci2": mc_run(n=40)}, date="2026-02-01T00-00-00.000000")
    assert main(["show", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    said = "taken as the newest of 2 runs here (1 left aside); to take another, give its *_results.json"
    assert printed.err == f"{newest}: {said}\n"
    assert "new_rci2" in printed.out
    assert "old_rci2" not in printed.out


def test_a_newer_run_that_is_cut_is_named_and_not_passed_by(tmp_path, capsys):
    write_run(tmp_path, {"toy_rci2": mc_run(n=40)})
    write_run(tmp_path, {"toy_rci2": mc_run(n=40)}, date="2026-02-01T00-00-00.000000")
    (table,) = tmp_path.glob("2026-02*_samples_*.parquet")
    table.write_bytes(table.read_bytes()[:100])
    for command in ("show", "analyze"):
        assert main([command, str(tmp_path)]) == 2
        assert capsys.readouterr().err.startswith(f"lmms-patch: {table}: cut, or damaged")
