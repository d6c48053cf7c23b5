"""Check the tables that ``lmms_patch.samples`` and ``results`` return: read by pandas, polars and DuckDB, and shown in a notebook."""

import csv
import json
import re

import pandas as pd
import polars as pl
import pytest

import lmms_patch
from lmms_patch import commands
from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.runs import tabular
from lmms_patch.runs.run import find
from lmms_patch.runs.schema import TYPES
from tests.making.edited import edit
from tests.making.html import Read
from tests.making.runs import magic_doc, mc_run, world_run, write_magic, write_run

HOSTILE = '<script>alert(1)</script> "q" & \x1b[31m\u202ered'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two tasks; the second's model answers with formulas."""
    folder = tmp_path_factory.mktemp("run")
    write_run(
        folder,
        {"toy_rci2": mc_run(40), "toy2_rci2": world_run(lambda stream, gold: ([gold] * 5, ["B"] * 5), 20, base="toy2")},
    )
    said = dict(enumerate(["=1+1", "-2", "@x", "\x1b[31m", "hf_abcdefghijklmnop1234"] * 2))
    answer = pl.col("view").replace_strict(said, return_dtype=pl.String)
    return edit(folder, "toy2_rci2", lambda frame: frame.with_columns(answer=answer))


# --- samples --------------------------------------------------------------------------------------


def test_samples_of_all_tasks_or_one(run):
    every, one = lmms_patch.samples(run), lmms_patch.samples(str(run), "toy_rci2")
    assert (len(every), len(one)) == (40 * 5 + 20 * 10, 40 * 5)
    assert set(one["task"]) == {"toy_rci2"}
    full = one.to_pandas().query("kind == 'full'")
    assert full.score.tolist() == [record["views"][0]["scores"]["acc"] for record in mc_run(40)[1]]
    assert one.columns == every.columns == ["task", *TYPES], "those that no task has are nulls"
    assert lmms_patch.samples(run, columns=["score", "task"]).columns == ["score", "task"]


def test_what_there_is_not_is_one_line(run, tmp_path):
    with pytest.raises(OptionError, match="no task 'toy_rci3'; allowed: toy_rci2, toy2_rci2"):
        lmms_patch.samples(run, "toy_rci3")
    with pytest.raises(OptionError, match="no column 'scoer'; did you mean score"):
        lmms_patch.samples(run, columns=["scoer"])
    with pytest.raises(RecordError, match="no samples tables"):
        lmms_patch.samples(tmp_path)
    with pytest.raises(AttributeError):
        _ = lmms_patch.tables


# --- files ----------------------------------------------------------------------------------------


def exported(run, output, *more):
    assert main(["export", str(run), "--output", str(output), *more]) == 0
    return output


def test_parquet_keeps_the_rows_as_they_are(run, tmp_path, capsys):
    assert pl.read_parquet(exported(run, tmp_path / "a.parquet")).equals(lmms_patch.samples(run))
    assert capsys.readouterr().out == f"written: {tmp_path}/a.parquet, 400 rows\n"


def test_csv_and_json_lines_have_the_same_rows_and_nothing_that_acts(run, tmp_path):
    table = lmms_patch.samples(run)
    with open(exported(run, tmp_path / "a.csv"), newline="", encoding="utf-8") as file:
        head, *cells = csv.reader(file)
    lines = [json.loads(line) for line in exported(run, tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert head == table.columns == list(lines[0])
    assert len(cells) == len(lines) == len(table)
    numbers = [name for name, kind in table.schema.items() if kind.is_numeric()]
    assert [{name: line[name] for name in numbers} for line in lines] == table.select(numbers).to_dicts()
    answers = [row[head.index("answer")] for row in cells if row[head.index("task")] == "toy2_rci2"]
    assert answers[:5] == ["'=1+1", "-2", "'@x", "\ufffd[31m", "..."]
    told = [line["answer"] for line in lines if line["task"] == "toy2_rci2"]
    assert told[:5] == ["=1+1", "-2", "@x", "\ufffd[31m", "..."]
    assert json.loads(cells[0][head.index("options")]) == lines[0]["options"] == ["A", "B", "C", "D"]
    back = pd.read_csv(tmp_path / "a.csv")
    assert back.score.tolist() == table["score"].to_list()


@pytest.mark.parametrize("where", ["another", "nowhere"])
def test_export_never_writes_a_file_of_another_run(run, tmp_path, capsys, where):
    """Nor a new file of such a name, which every reader would take for a table."""
    other = tmp_path / "another"
    write_run(other, {"toy_rci2": mc_run(20)})
    before = {path: path.read_bytes() for path in other.iterdir()}
    assert sorted(path.suffix for path in before) == [".json", ".parquet", ".parquet"]
    for path in before:
        assert main(["export", str(run), "--to", "csv", "--output", str(tmp_path / where / path.name)]) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert "this is how lmms-eval names the files of a run" in line
    assert {path: path.read_bytes() for path in other.iterdir()} == before
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["toy_samples_all.parquet", "samples_2026.jsonl", "results.jsonl"])
def test_export_writes_over_an_earlier_export_whatever_its_name(run, tmp_path, name):
    """These names are nearly those of a run's files."""
    first = exported(run, tmp_path / name).read_bytes()
    with (tmp_path / name).open("ab") as file:
        file.write(b"" if name.endswith("parquet") else b"\n")
    assert exported(run, tmp_path / name).read_bytes() == first


def test_the_default_name_is_in_the_working_folder(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(run), "--task", "toy_rci2", "--to", "csv"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["samples.csv"]


# --- results --------------------------------------------------------------------------------------


def test_results_have_each_number_of_each_task(run, tmp_path):
    found = lmms_patch.results(run)
    assert found.columns == list(tabular.COLUMNS)
    written = json.loads(next(run.glob("*_results.json")).read_text())["results"]
    for result in find([run])[0].results:
        own = {row["measure"]: row for row in found.to_dicts() if row["task"] == result.task}
        told = {key.partition(",")[0]: value for key, value in written[result.task].items()}
        assert (own["fip"]["value"], own["rci2"]["value"]) == (told["acc"], told["rci2"])
        assert (own["rci2"]["low"], own["rci2"]["high"]) == (told["rci2_low"], told["rci2_high"])
        assert (own["rci2"]["grid"], own["gap2"]["grid"], own["fip"]["grid"]) == (2, 2, None)
        assert own["fip"]["gate"] == (None if told["gate"] is None else bool(told["gate"]))
        assert own["fip"]["docs"] == result.docs
    magic = write_magic(tmp_path, {"all": [magic_doc("d")]}, tasks={"all": "toy_magic"})
    assert set(lmms_patch.results([run, magic])["kind"]) == {"rci", "magic"}


# --- notebooks ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    out = []
    for answers, name in enumerate(("one", "two"), 1):
        made = {"toy_rci2": mc_run(40, answers=answers)}
        out.append(write_run(tmp_path_factory.mktemp(name), made, model_name=f"{name} {HOSTILE}"))
    return out


def test_notebooks_show_tables_and_no_name_is_more_than_a_text(hostile):
    for shown in (commands.show(hostile[0]), commands.compare(*hostile)):
        parsed = Read(shown._repr_html_())
        assert "table" in {tag for tag, _ in parsed.elements}
        assert "script" not in {tag for tag, _ in parsed.elements}
        assert not re.search("[\x00-\x08\x1b\u202e]", " ".join(parsed.texts))


def test_a_run_says_in_a_notebook_what_show_says(run, capsys):
    assert main(["show", str(run), "--wide"]) == 0
    sentences = [line[2:] for line in capsys.readouterr().out.split("\n\n")[0].splitlines()]
    assert sentences[0].startswith("What the docs need cannot be told in toy")
    parsed = Read(commands.show(run)._repr_html_())
    assert parsed.texts[: len(sentences)] == sentences
    assert {"ul", "table"} <= {tag for tag, _ in parsed.elements}
