"""Check the tables that ``lmms_patch.samples`` and ``results`` return: read by pandas, polars and DuckDB, and shown in a notebook."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lmms_patch
from lmms_patch import commands
from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.runs import rows, tabular
from lmms_patch.runs.run import find
from lmms_patch.runs.samples import write
from tests.making import lean
from tests.making.runs import mc_run, world_run, write_magic, write_run
from tests.places import ROOT

PAGE = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
HOSTILE = '<script>alert(1)</script> "q" & \x1b[31m\u202ered'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two tasks; the second's model answers with formulas."""
    folder = tmp_path_factory.mktemp("run")
    write_run(
        folder,
        {"toy_rci2": mc_run(40), "toy2_rci2": world_run(lambda stream, gold: ([gold] * 5, ["B"] * 5), 20, base="toy2")},
    )
    log = next(folder.glob("*toy2*.jsonl"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text(
        "".join(
            json.dumps({**line, "filtered_resps": ["=1+1", "-2", "@x", "\x1b[31m", "hf_abcdefghijklmnop1234"] * 2})
            + "\n"
            for line in lines
        )
    )
    return folder


# --- samples --------------------------------------------------------------------------------------


def test_samples_of_all_tasks_or_one(run):
    every, one = lmms_patch.samples(run), lmms_patch.samples(str(run), "toy_rci2")
    assert (every.num_rows, one.num_rows) == (40 * 5 + 20 * 10, 40 * 5)
    assert set(one["task"].to_pylist()) == {"toy_rci2"}
    full = one.to_pandas().query("kind == 'full'")
    assert full.score.tolist() == [record["views"][0]["scores"]["acc"] for record in mc_run(40)[1]]
    assert lmms_patch.samples(run, columns=["right", "task"]).column_names == ["right", "task"]


def test_what_there_is_not_is_one_line(run, tmp_path):
    with pytest.raises(OptionError, match="no task 'toy_rci3'; allowed: toy_rci2, toy2_rci2"):
        lmms_patch.samples(run, "toy_rci3")
    with pytest.raises(OptionError, match="no column 'scoer'; did you mean score"):
        lmms_patch.samples(run, columns=["scoer"])
    write_magic(tmp_path, {"all": []}, tasks={"all": "toy_magic"})
    with pytest.raises(RecordError, match="no task whose docs have views"):
        lmms_patch.samples(tmp_path)
    with pytest.raises(AttributeError):
        _ = lmms_patch.tables


# --- files ----------------------------------------------------------------------------------------


def exported(run, output, *more):
    assert main(["export", str(run), "--output", str(output), *more]) == 0
    return output


def test_parquet_keeps_the_rows_as_they_are(run, tmp_path, capsys):
    assert pq.read_table(exported(run, tmp_path / "a.parquet")).equals(lmms_patch.samples(run))
    assert capsys.readouterr().out == f"written: {tmp_path}/a.parquet, 400 rows\n"


def test_csv_and_json_lines_have_the_same_rows_and_nothing_that_acts(run, tmp_path):
    table = lmms_patch.samples(run)
    with open(exported(run, tmp_path / "a.csv"), newline="", encoding="utf-8") as file:
        head, *cells = csv.reader(file)
    lines = [json.loads(line) for line in exported(run, tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert head == table.column_names == list(lines[0])
    assert len(cells) == len(lines) == table.num_rows
    numbers = [
        name
        for name in head
        if not pa.types.is_string(table.schema.field(name).type) and name not in ("answer", "options")
    ]
    assert [{name: line[name] for name in numbers} for line in lines] == table.select(numbers).to_pylist()
    answers = [row[head.index("answer")] for row in cells if row[head.index("task")] == "toy2_rci2"]
    assert answers[:5] == ["'=1+1", "-2", "'@x", "\ufffd[31m", "..."]
    assert [line["answer"] for line in lines if line["task"] == "toy2_rci2"][:5] == [
        "=1+1",
        "-2",
        "@x",
        "\ufffd[31m",
        "...",
    ]
    assert json.loads(cells[0][head.index("options")]) == lines[0]["options"] == ["A", "B", "C", "D"]
    back = pd.read_csv(tmp_path / "a.csv")
    assert back.score.tolist() == table["score"].to_pylist()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--output", "a.xls"], "a table cannot be written as 'xls'; allowed: parquet, csv, jsonl"),
        (["--to", "xls"], "--to must be parquet, csv, jsonl, every-eval-ever or eval-results, not 'xls'"),
        (["--task", "nothing"], "no task 'nothing'; allowed: toy_rci2, toy2_rci2"),
    ],
)
def test_mistakes_of_export_are_one_line(run, arguments, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(run), *arguments]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_export_never_writes_over_the_run(run, capsys):
    before = {path: path.read_bytes() for path in run.iterdir()}
    for path in [*before, next(run.glob("*toy_*.jsonl")).with_suffix(".parquet")]:
        assert main(["export", str(run), "--to", "parquet", "--output", str(path)]) == 2
        assert "this is a file of the run itself" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize("where", ["another", "nowhere"])
def test_export_never_writes_a_file_of_another_run(run, tmp_path, capsys, where):
    """Nor a new file of such a name, which every reader would take for a log."""
    other = tmp_path / "another"
    write(find([write_run(other, {"toy_rci2": mc_run(20)})])[0].results)
    before = {path: path.read_bytes() for path in other.iterdir()}
    assert sorted(path.suffix for path in before) == [".json", ".jsonl", ".parquet"]
    for path in before:
        assert main(["export", str(run), "--to", "csv", "--output", str(tmp_path / where / path.name)]) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert "this is how lmms-eval names the files of a run" in line
    assert {path: path.read_bytes() for path in other.iterdir()} == before
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "name", ["toy_samples_all.parquet", "samples_2026.jsonl", "2026_samples_toy.csv", "results.jsonl"]
)
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
    assert found.column_names == list(tabular.COLUMNS)
    written = json.loads(next(run.glob("*_results.json")).read_text())["results"]
    for result in find([run])[0].results:
        own = {row["measure"]: row for row in found.to_pylist() if row["task"] == result.task}
        stored = written[result.task]["patch,none"]["analysis"]
        assert own["fip"]["value"] == stored["fip"]["value"]
        index = stored["grids"]["2"]["index"]
        assert {key: own["rci2"][key] for key in ("value", "low", "high", "se")} == {
            key: index[key] for key in ("value", "low", "high", "se")
        }
        assert (own["rci2"]["grid"], own["rci2_adj"]["grid"], own["fip"]["grid"]) == (2, 2, None)
        assert own["fip"]["gate"] is (None if stored["gate"]["valid"] is None else stored["gate"]["valid"])
        assert own["fip"]["docs"] == stored["n_docs"]
    magic = write_magic(tmp_path, {"all": []}, tasks={"all": "toy_magic"})
    assert set(lmms_patch.results([run, magic])["kind"].to_pylist()) == {"rci", "magic"}


# --- the page -------------------------------------------------------------------------------------


def columns_of(heading):
    """The columns that a table of the page documents."""
    part = PAGE.split(f"## `{heading}`")[1].split("\n## ")[0]
    return [
        name
        for line in part.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([^`]+)`", line.split("|")[1])
    ]


def test_the_page_documents_every_column():
    assert [name for name in columns_of("samples") if name != "score.<metric>"] == list(rows.COLUMNS)
    assert columns_of("results") == list(tabular.COLUMNS)


def blocks(word):
    """The Python of the page that has a word in it."""
    return [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.S) if word in block]


def test_the_example_in_pandas(run, monkeypatch):
    """Counted again from the records."""
    monkeypatch.chdir(run.parent)
    names = {"lmms_patch": lmms_patch}
    exec(blocks("needs_the_whole_image")[0].replace('"out", "gqa_rci3"', f"{str(run)!r}, 'toy_rci2'"), names)
    scores = {record["doc_id"]: [view["scores"]["acc"] for view in record["views"]] for record in mc_run(40)[1]}
    assert names["needs_the_whole_image"].tolist() == [
        doc for doc, (full, *cells) in scores.items() if full and not any(cells)
    ]


def test_a_thousand_runs_in_duckdb(tmp_path, monkeypatch):
    """Two models of 500 runs each.

    The first query against NumPy over the runs that the gate lets through, the second against a count by hand.
    """
    monkeypatch.chdir(tmp_path)
    expected = {"a": [], "b": []}
    full, best = lean.scored(30, 0.8, 0.6, 7)
    made = lean.task(full, best)
    for number in range(1000):
        model = "ab"[number % 2]
        results, config, records = (
            made if number % 5 else lean.task(*lean.planted(30, 0.9, (number % 7) / 10), gate=True)
        )
        analysis = results["patch,none"]["analysis"]
        path = lean.write(
            Path("runs") / model / f"{number:04}", [(results, config, records)], model=model, logs=number < 10
        )
        index = analysis["grids"]["2"]["index"]["value"]
        if analysis["gate"]["valid"]:
            expected[model].append(index)
        if number < 10:
            write(find([path])[0].results)
    code = (
        blocks("import duckdb")[0]
        .replace('duckdb.sql("""', 'found.append(duckdb.sql("""')
        .replace('""")', '""").fetchall())')
    )
    names = {"lmms_patch": lmms_patch, "found": []}
    exec(code, names)
    by_model, by_category = names["found"]
    assert by_model == [(model, pytest.approx(np.median(values)), len(values)) for model, values in expected.items()]
    right = [lean.planted(30, 0.9, number % 7 / 10)[0] if not number % 5 else full for number in range(10)]
    assert by_category == [(None, pytest.approx(np.mean(right)), 30)]


def test_a_wide_table(run, monkeypatch):
    monkeypatch.chdir(run)
    names = {"lmms_patch": lmms_patch}
    exec(blocks("pivot")[0].replace('"runs"', '"."'), names)
    assert names["wide"].shape[0] == 2


# --- notebooks ------------------------------------------------------------------------------------


class Parsed(HTMLParser):
    """The tags and texts of some HTML."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts, self.attributes = set(), [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    out = []
    for answers, name in enumerate(("one", "two"), 1):
        path = write_run(tmp_path_factory.mktemp(name), {"toy_rci2": mc_run(40, answers=answers)})
        data = json.loads(path.read_text())
        data["model_name"] = f"{name} {HOSTILE}"
        data["results"]["toy_rci2"] = {
            key.replace(",none", f",{HOSTILE}"): value for key, value in data["results"]["toy_rci2"].items()
        }
        path.write_text(json.dumps(data))
        out.append(path)
    return out


def test_notebooks_show_tables_and_no_name_is_more_than_a_text(hostile):
    [run] = find(hostile[:1])
    for shown in (run, run.results[0], commands.show(hostile[0]), commands.compare(*hostile)):
        parsed = Parsed(shown._repr_html_())
        assert parsed.tags <= {"ul", "li", "table", "caption", "thead", "tbody", "tr", "th", "td"}
        assert parsed.attributes == []  # no colour, no script: it looks as the notebook does, light or dark
        text = " ".join(parsed.texts)
        assert "<script>alert(1)</script>" in text
        assert not re.search("[\x00-\x08\x1b\u202e]", text)
        assert re.search(r"\d\.\d{3} \[", text)


def test_a_run_says_in_a_notebook_what_show_says(run, capsys):
    assert main(["show", str(run), "--wide"]) == 0
    sentences = [line[2:] for line in capsys.readouterr().out.split("\n\n")[0].splitlines()]
    assert sentences[0].startswith("Undecided: toy (")
    parsed = Parsed(commands.show(run)._repr_html_())
    assert parsed.texts[: len(sentences)] == sentences
    assert {"ul", "table"} <= parsed.tags


def test_the_table_of_a_run_has_its_numbers(run):
    [one] = find([run])
    cells = Parsed(one._repr_html_()).texts
    result = one.results[0]
    fip = result.measures["fip"]
    assert f"{fip.value:.3f} [{fip.low:.3f}, {fip.high:.3f}]" in cells
    assert any(cell.startswith(f"RCI_2 {result.measures['rci2'].value:.3f} [") for cell in cells)
