"""The Parquet file beside a sample log: it says what the log says, and is used only where it is whole and of that very log."""

import json
import shutil

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loguru import logger

from lmms_patch import files
from lmms_patch.errors import RecordError
from lmms_patch.runs import rows, samples
from lmms_patch.runs.run import find
from lmms_patch.runs.samples import table, write
from tests.making.runs import guesses_on_cells, mc_run, world_run, write_run
from tests.sizes import size
from tests.stored import unpack

pytestmark = pytest.mark.usefixtures("small_tables")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two tasks of one run, each with its Parquet file."""
    folder = tmp_path_factory.mktemp("run")
    run = write_run(
        folder, {"toy_rci2": mc_run(40), "toy2_pcri3": world_run(guesses_on_cells, 30, 3, base="toy2", kind="pcri")}
    )
    for result in find([run])[0].results:
        write([result])
    return folder


@pytest.fixture
def run(made, tmp_path):
    """A copy, which a test may change."""
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


def result_of(folder, task="toy_rci2"):
    return next(result for result in find([folder])[0].results if result.task == task)


def parquet(folder, task="toy_rci2"):
    return next(folder.glob(f"*_samples_{task}.parquet"))


def from_log(result):
    return pa.Table.from_batches(rows.batches(result))


@pytest.fixture
def said():
    """What is told while a test runs."""
    lines = []
    number = logger.add(lambda message: lines.append(message.record["message"]), level="WARNING")
    yield lines
    logger.remove(number)


def used(folder, monkeypatch, task="toy_rci2"):
    """Whether the table of a task comes from its Parquet file; it must be the log's in any case."""
    result = result_of(folder, task)
    expected = from_log(result)
    with monkeypatch.context() as patch:
        patch.setattr(samples, "batches", lambda result: pytest.fail("the log was read"))
        try:
            found, was_used = table(result), True
        except pytest.fail.Exception:
            found, was_used = None, False
    assert (table(result) if found is None else found).equals(expected)
    return was_used


@pytest.mark.parametrize("batch", size([50], [50, 4096]))
def test_stored_runs_of_every_kind_come_back_equal(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(rows, "BATCH", batch)
    monkeypatch.setattr(samples, "BATCH", batch)
    folder = unpack(tmp_path)
    runs = [one for name in ("boxes", "grids", "tst") for one in find([folder / name])]
    for result in (result for run in runs for result in run.results):
        write([result])
        assert used(result.run.path.parent, monkeypatch, result.task)
        assert table(result, ["score", "answer", "n"]).equals(from_log(result).select(["score", "answer", "n"]))


def test_several_filters_share_a_file(tmp_path, monkeypatch):
    """Docs 0 to 9, a line for each filter; the answers tell which."""
    spec, records, plan = mc_run(10)
    path = write_run(tmp_path, {"toy_rci2": (spec, records, plan)})
    data = json.loads(path.read_text())
    values = data["results"]["toy_rci2"]
    data["results"]["toy_rci2"] = {
        key.replace(",none", f",{name}"): value for name in ("strict", "loose") for key, value in values.items()
    }
    path.write_text(json.dumps(data))
    log = next(tmp_path.glob("*.jsonl"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text(
        "".join(
            json.dumps({**line, "filtered_resps": [name] * 5}) + "\n" for line in lines for name in ("strict", "loose")
        )
    )
    results = find([path])[0].results
    assert write(results) == parquet(tmp_path)
    for result in results:
        found = table(result)
        assert found.equals(from_log(result))
        assert set(found["filter"].to_pylist()) == set(found["answer"].to_pylist()) == {result.filter}
    assert set(pq.read_table(parquet(tmp_path))["filter"].to_pylist()) == {"strict", "loose"}


def test_pandas_polars_and_duckdb_read_it(run):
    """Round trips: from each back to Arrow, the same rows.

    And each reads the file itself.
    """
    path, found = parquet(run, "toy2_pcri3"), table(result_of(run, "toy2_pcri3"))
    plain = found.cast(
        pa.schema(
            [(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type) for field in found.schema]
        )
    )
    back = pa.Table.from_pandas(found.to_pandas(types_mapper=pd.ArrowDtype), schema=plain.schema, preserve_index=False)
    assert back.equals(plain)
    assert pl.from_arrow(found).to_arrow().cast(plain.schema).equals(plain)
    assert pl.read_parquet(path, columns=found.column_names).to_arrow().cast(plain.schema).equals(plain)
    assert pa.Table.from_pandas(
        pd.read_parquet(path, columns=found.column_names, dtype_backend="pyarrow"),
        schema=plain.schema,
        preserve_index=False,
    ).equals(plain)
    assert duckdb.sql(f"select count(*), sum(score), max(doc_id), any_value(task) from '{path}'").fetchall() == [
        (found.num_rows, float(np.nansum(found["score"].to_numpy())), 29, "toy2_pcri3")
    ]


# --- files that must not be used ------------------------------------------------------------------


def test_it_is_used_where_nothing_is_wrong(run, monkeypatch, said):
    assert used(run, monkeypatch)
    assert said == []
    parquet(run).unlink()
    assert not used(run, monkeypatch)
    assert said == []  # older runs have none


def edit_log(run):
    log = next(run.glob("*_samples_toy_rci2.jsonl"))
    log.write_text(log.read_text().replace('"acc": 1.0', '"acc": 0.5', 1))


def swap_lines(run):
    """The same bytes in another order: the size is the same."""
    log = next(run.glob("*_samples_toy_rci2.jsonl"))
    log.write_text("".join(reversed(log.read_text().splitlines(keepends=True))))


def of_another_task(run):
    shutil.copy(parquet(run, "toy2_pcri3"), parquet(run))


def rewritten(run, change, about=None):
    """Write the file anew, as another version may."""
    path = parquet(run)
    found = pq.read_table(path)
    told = {**json.loads(found.schema.metadata[b"lmms_patch"]), **(about or {})}
    pq.write_table(change(found).replace_schema_metadata({b"lmms_patch": json.dumps(told)}), path)


def newer(run):
    rewritten(run, lambda found: found, {"schema": samples.SCHEMA + 1})


def other_types(run):
    rewritten(
        run,
        lambda found: found.set_column(found.column_names.index("score"), "score", found["score"].cast(pa.float32())),
    )


def a_column_less(run):
    rewritten(run, lambda found: found.drop_columns(["need"]))


def without_words(run):
    pq.write_table(pq.read_table(parquet(run)).replace_schema_metadata(None), parquet(run))


def empty(run):
    parquet(run).write_bytes(b"")


def a_text(run):
    parquet(run).write_text("=1+1\n" * 100)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (edit_log, "the sample log was changed after it was written"),
        (swap_lines, "the sample log was changed after it was written"),
        (of_another_task, "it is of the task toy2_pcri3"),
        (
            newer,
            "it is of schema 2; written by another version of lmms-patch; run it again, or read it with that version",
        ),
        (other_types, "its columns are not those of this version of lmms-patch"),
        (a_column_less, "its columns are not those of this version of lmms-patch"),
        (without_words, "it cannot be read (KeyError)"),
        (empty, "it cannot be read (ArrowInvalid)"),
        (a_text, "it cannot be read (ArrowInvalid)"),
    ],
)
def test_the_log_is_read_in_place_of_a_file_that_does_not_fit(run, monkeypatch, said, damage, why):
    damage(run)
    assert not used(run, monkeypatch)
    assert set(said) == {f"{parquet(run)}: not used, the sample log is read instead: {why}"}


def test_a_file_that_is_cut_anywhere_is_not_used(run, monkeypatch):
    whole = parquet(run).read_bytes()
    for length in [*range(1, 60), *range(60, len(whole), 997), *range(len(whole) - 60, len(whole))]:
        parquet(run).write_bytes(whole[:length])
        assert samples._stored(result_of(run), ["score"]) is None, length


def test_a_changed_byte_of_a_page_is_noticed(run):
    """Pages have checksums: no such file gives other rows."""
    result, path = result_of(run), parquet(run)
    whole, expected = path.read_bytes(), from_log(result)
    for place in range(4, len(whole) - 2000, 53):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        found = samples._stored(result, expected.column_names)
        assert found is None or found.equals(expected), place


# --- writing --------------------------------------------------------------------------------------


def test_a_log_that_cannot_be_read_leaves_the_file_that_was_there(run):
    before = parquet(run).read_bytes()
    log = next(run.glob("*_samples_toy_rci2.jsonl"))
    log.write_text("\n".join(log.read_text().splitlines()[:-1]))
    with pytest.raises(RecordError, match="39 docs, but the run scored 40"):
        write([result_of(run)])
    assert parquet(run).read_bytes() == before
    assert len(list(run.iterdir())) == 5


def test_a_link_is_replaced_and_never_followed(run, tmp_path):
    """Whoever can place a link must not make us write elsewhere."""
    (tmp_path / "elsewhere").write_text("mine")
    parquet(run).unlink()
    link = next(run.glob("*_samples_toy_rci2.jsonl")).with_suffix(".parquet")
    link.symlink_to(tmp_path / "elsewhere")
    write([result_of(run)])
    assert (tmp_path / "elsewhere").read_text() == "mine"
    assert not parquet(run).is_symlink()


def test_a_full_disk_is_one_line(run, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_check_place", full)
    with pytest.raises(RecordError, match="cannot be written: No space left on device"):
        write([result_of(run)])
