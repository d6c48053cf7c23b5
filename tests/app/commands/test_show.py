import json
import shutil

import polars as pl
import pytest

from lmms_patch import commands
from lmms_patch.app.cli import main
from lmms_patch.app.commands import show
from tests.making.edited import edit
from tests.making.runs import mc_run, write_run
from tests.making.typed import typed
from tests.stored import unpack


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


# --- JSON, and parts of a run ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return unpack(tmp_path_factory.mktemp("stored"))


@pytest.mark.parametrize("run", ["demo", "tst", "magic", "boxes", "clips", "turned", "points"])
def test_json_on_stdout_has_every_number_and_sentence_and_nothing_else(stored, run):
    status, printed = typed("show", stored / run, "--json", "-")
    told = json.loads(printed)
    found = commands.show(stored / run)
    assert status == 0
    assert [one["text"] for one in told["findings"]] == [one.text for one in found.findings]
    for task, result in zip(told["tasks"], found.taken.run.results, strict=True):
        assert task["numbers"].keys() == result.measures.keys()
        for name, one in result.measures.items():
            assert [task["numbers"][name][key] for key in ("value", "low", "high", "reason")] == [
                one.value, one.low, one.high, one.reason,
            ]  # fmt: skip


def test_json_goes_to_a_file_beside_the_text(stored, tmp_path):
    status, printed = typed("show", stored / "demo", "--json", tmp_path / "show.json")
    assert status == 0
    assert printed.splitlines()[-1] == f"written: {tmp_path / 'show.json'}"
    assert json.loads((tmp_path / "show.json").read_text())["model"] == commands.show(stored / "demo").taken.run.model


def test_numbers_by_category_and_by_any_column_of_the_samples(stored, tmp_path):
    run = shutil.copytree(stored / "demo", tmp_path / "run")
    field = pl.when(pl.col("doc_id") % 3 == 0).then(pl.lit("first")).otherwise(pl.lit("rest"))
    edit(run, rows=lambda frame: frame.with_columns(field.alias("doc.half")))
    found = commands.show(run, by="doc.half")
    assert {one.run.name for one in found.parts} == {one.label for one in found.shown}
    for one in found.parts:
        scores = one.run.result.frame(["doc_id", "view", "score"]).filter(view=0)
        for name, wanted in (("first", scores["doc_id"] % 3 == 0), ("rest", scores["doc_id"] % 3 > 0)):
            assert one.categories[name].fip.value == pytest.approx(scores.filter(wanted)["score"].mean())
    printed = show.text(found, most=80)
    assert "mosaic_count_rci3, by category" in printed
    assert commands.show(run, by_category=True).parts[0].categories.keys() == {
        "center_mc",
        "center_open",
        "center_yesno",
    }
    assert commands.show(run, by="doc.none").parts == []
