"""The rows of a small log, as they were when the version of the Parquet files was last raised.

A Parquet file beside a log keeps what ``runs.need`` and ``ask.answers.options_in`` once said of its docs. Where these
rules change, files with rows of the old rules must no longer be used, so ``samples.SCHEMA`` has to go up. After that,
``python -m tests.runs.test_frozen_rows`` writes the rows anew.
"""

import json
import shutil
from pathlib import Path

import pytest

from lmms_patch.runs import samples
from lmms_patch.runs.rows import batches
from lmms_patch.runs.run import find
from lmms_patch.runs.samples import SCHEMA

pytestmark = pytest.mark.usefixtures("small_tables")

FOLDER = Path(__file__).parent / "frozen"
ROWS = FOLDER / "rows.json"


def rows():
    """Every column of the log, those of ``runs.packed`` too, with the type of each."""
    [batch] = batches(find([FOLDER])[0].results[0], packed=True)
    return {f"{field.name}: {field.type}": batch.column(field.name).to_pylist() for field in batch.schema}


def told(schema, frozen, now):
    """What a change of the rows calls for; empty where nothing has changed."""
    changed = sorted(name for name in frozen.keys() | now.keys() if frozen.get(name) != now.get(name))
    if changed and schema == SCHEMA:
        return f"raise SCHEMA in lmms_patch/runs/samples.py: these columns of a log are made otherwise than before: {', '.join(changed)}"
    return "SCHEMA was raised: type 'python -m tests.runs.test_frozen_rows'" if schema != SCHEMA else ""


def test_rows_that_are_made_otherwise_raise_the_version():
    frozen = json.loads(ROWS.read_text(encoding="utf-8"))
    assert told(frozen["schema"], frozen["columns"], rows()) == ""


def test_the_parquet_file_has_these_rows(tmp_path, monkeypatch):
    """Written beside the log, and read back without the log."""
    folder = shutil.copytree(FOLDER, tmp_path / "run")
    [result] = find([folder])[0].results
    assert samples.write([result]).name == "2026_samples_toy_rci2.parquet"
    monkeypatch.setattr(samples, "batches", lambda result: pytest.fail("the log was read"))
    frozen = {
        name.partition(":")[0]: values
        for name, values in json.loads(ROWS.read_text(encoding="utf-8"))["columns"].items()
    }
    assert samples.table(result).to_pydict() == {
        name: values for name, values in frozen.items() if not name.startswith("record.")
    }
    assert samples.records(result) == list(result.records())


def test_the_frozen_rows_are_right():
    """By hand: right is half of what the gold scores, so 0.5 of 1 and 0.4 of 0.8 are, and 0.49 and 0.39 are not."""
    columns = {
        name.partition(":")[0]: values
        for name, values in json.loads(ROWS.read_text(encoding="utf-8"))["columns"].items()
    }
    first = {doc: columns["doc_id"].index(doc) for doc in columns["doc_id"]}
    assert {doc: columns["need"][row] for doc, row in first.items()} == {
        0: "text",  # right on the wrong image, as on its own
        1: "one cell",  # wrong on the full image; that a cell of a wrong image is right does not count
        2: "whole image",
        3: "unsolved",
        4: None,  # was not asked without its image
        5: "one cell",
        6: None,  # a cell has no score, and no other is right
        7: None,  # likewise not asked without its image
        8: None,  # is excluded from this grid
        9: "one cell",  # though another cell has no score
    }
    assert {doc: columns["options"][row] for doc, row in first.items()} == {
        0: ["a cat", "a dog"],
        1: ["red", "green"],
        2: ["one", "two"],
        3: ["blue", "red"],  # the prompt lists none: those that were scored as options
        4: ["c1", "2"],  # of the field, not of the prompt
        5: None,  # the answer is a number, whatever the prompt lists
        6: None,
        7: None,
        8: None,
        9: ["u", "v"],
    }


def test_what_is_told():
    assert told(SCHEMA, {"need: string": ["text"]}, {"need: string": ["one cell"]}).startswith(
        "raise SCHEMA in lmms_patch/runs/samples.py"
    )
    assert told(SCHEMA, {"need: string": []}, {"need: int8": []}).endswith(": need: int8, need: string")
    assert told(SCHEMA - 1, {"need: string": ["text"]}, {"need: string": ["one cell"]}).startswith("SCHEMA was raised")


def write():
    """Write the rows anew, but not where they have changed and the version has not."""
    found = rows()
    if ROWS.exists():
        frozen = json.loads(ROWS.read_text(encoding="utf-8"))
        if frozen["schema"] == SCHEMA and (why := told(SCHEMA, frozen["columns"], found)):
            raise SystemExit(why)
    columns = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(values, ensure_ascii=False)}" for name, values in found.items()
    )
    ROWS.write_text(f'{{"schema": {SCHEMA}, "columns": {{\n{columns}\n}}}}\n', encoding="utf-8")


if __name__ == "__main__":
    write()
