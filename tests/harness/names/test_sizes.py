"""How many docs a local table has, in each form that the datasets library reads: as many as are written into it."""

import json

import datasets
import pytest

from lmms_patch.app.cli import main
from lmms_patch.harness.names.facts import docs_of
from tests.harness import toys

ROWS = [{"question": f"question {i}?", "answer": str(i % 2)} for i in range(7)]


def as_csv(path, mark=","):
    path.write_text("".join(f"{mark.join(row)}\n" for row in (ROWS[0].keys(), *(row.values() for row in ROWS))))


FORMS = {
    "a.csv": ("csv", as_csv, {}),
    "a.tsv": ("csv", lambda path: as_csv(path, "\t"), {"sep": "\t"}),
    "array.json": ("json", lambda path: path.write_text(json.dumps(ROWS)), {}),
    "field.json": ("json", lambda path: path.write_text(json.dumps({"data": ROWS})), {"field": "data"}),
    "lines.json": ("json", lambda path: path.write_text("\n".join(map(json.dumps, ROWS))), {}),
    "a.jsonl": ("json", lambda path: path.write_text("\n".join(map(json.dumps, ROWS)) + "\n\n"), {}),
    "a.parquet": ("parquet", lambda path: datasets.Dataset.from_list(ROWS).to_parquet(str(path)), {}),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_docs_of_a_file(tmp_path, name):
    builder, write, more = FORMS[name]
    write(tmp_path / name)

    def count(files, split="test"):
        return docs_of({"dataset_path": builder, "test_split": split, "dataset_kwargs": {"data_files": files, **more}})

    file = str(tmp_path / name)
    assert count({"test": file}) == count({"test": [file]}) == 7
    assert count({"test": str(tmp_path / "*")}) == 7
    assert count(file, "train") == 7, "the library's name of the only split"
    assert count({"test": file}, "validation") is None
    assert count({"test": str(tmp_path / "nothing")}) is None
    (tmp_path / name).write_text("{")
    assert count({"test": file}) is None or name.endswith("sv")


def test_the_docs_of_a_folder(tmp_path):
    (tmp_path / "hub" / "data").mkdir(parents=True)
    datasets.Dataset.from_list(ROWS).to_parquet(str(tmp_path / "hub" / "data" / "test-00000-of-00001.parquet"))
    assert docs_of({"dataset_path": str(tmp_path / "hub"), "test_split": "test"}) == 7
    given = {"data_dir": str(tmp_path / "hub" / "data")}
    assert docs_of({"dataset_path": "parquet", "test_split": "test", "dataset_kwargs": given}) == 7
    datasets.DatasetDict({"test": datasets.Dataset.from_list(ROWS[:5])}).save_to_disk(str(tmp_path / "saved"))
    saved = {"dataset_path": str(tmp_path / "saved"), "test_split": "test", "dataset_kwargs": {"load_from_disk": True}}
    assert docs_of(saved) == 5


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize("name", ["a.csv", "array.json", "a.jsonl"])
def test_the_command_prices_a_local_table(tmp_path, monkeypatch, capsys, name):
    """Each doc is asked on the full image and nine cells."""
    builder, write, more = FORMS[name]
    toys.write_task(
        tmp_path, "table", ROWS, dataset_path=builder, dataset_kwargs={"data_files": {"test": name}, **more}
    )
    write(tmp_path / name)
    monkeypatch.chdir(tmp_path)  # a run in the folder ``out`` would tell what calls cost
    assert main(["tasks", "table", "--include-path", str(tmp_path)]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "table_rci3  [task] wraps, 7 docs, 70 requests"
    assert "not on this machine" not in "\n".join(rest)
