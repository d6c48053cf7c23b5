"""Boards and reports read the Parquet file beside a log: the same numbers, and nothing that the log would refuse."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_patch.app import api
from lmms_patch.compare import audit, audit_records
from lmms_patch.errors import RecordError
from lmms_patch.runs import samples
from lmms_patch.runs.run import read
from tests.making.runs import crci_run, knows, world_run, write_run

pytestmark = pytest.mark.usefixtures("small_tables")


def of(folder):
    return read(next(folder.glob("*_results.json"))).results[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two models on one benchmark, each with its Parquet file."""
    folder = tmp_path_factory.mktemp("tables")
    for name, full in {"a": 0.9, "b": 0.6}.items():
        path = write_run(folder / name, {"toy_rci2": world_run(knows(full, 0.4), n=80)}, model_name=f"org/{name}")
        samples.write(read(path).results)
    return folder


@pytest.fixture
def runs(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "runs")
    return tmp_path / "runs"


def test_board_and_report_are_those_of_the_logs(runs, tmp_path, monkeypatch):
    """Every file of both, byte for byte; and from Parquet no line of a log is read by the audit."""
    lines = []
    monkeypatch.setattr(
        audit_records,
        "read_lines",
        lambda *given, ask=audit_records.read_lines, **more: lines.append(given) or ask(*given, **more),
    )
    api.leaderboard([runs], tmp_path / "board_tables")
    assert not lines
    for path in runs.rglob("*.parquet"):
        path.unlink()
    api.leaderboard([runs], tmp_path / "board_logs")
    assert len(lines) == 2
    made = sorted(
        path.relative_to(tmp_path / "board_logs") for path in (tmp_path / "board_logs").rglob("*") if path.is_file()
    )
    assert made
    for name in made:
        one, two = ((tmp_path / folder / name).read_bytes() for folder in ("board_tables", "board_logs"))
        assert one == two or name.suffix in (".sqlite", ".db")


def test_the_records_are_those_of_the_log(runs):
    for name in "ab":
        result = of(runs / name)
        assert samples.checked(result) == list(result.records())


def test_a_changed_log_is_read_and_refused(runs):
    (log,) = (runs / "a").glob("*.jsonl")
    first, *rest = log.read_text().splitlines()
    line = json.loads(first)
    for name in ("scores", "items"):
        line["patch"]["views"][0][name]["acc"] = 1 - line["patch"]["views"][0][name]["acc"]
    log.write_text("\n".join([json.dumps(line), *rest]) + "\n")
    assert samples.checked(of(runs / "a")) is None
    with pytest.raises(RecordError):
        audit.check(of(runs / "a"), stored=True)


def test_a_changed_result_is_refused_by_the_table(runs):
    (path,) = (runs / "a").glob("*_results.json")
    data = json.loads(path.read_text())
    numbers = data["results"]["toy_rci2"]
    key = next(name for name in numbers if name.startswith("acc_mpp2"))
    numbers[key] += 0.1
    path.write_text(json.dumps(data))
    with pytest.raises(RecordError, match="acc_mpp2"):
        audit.check(of(runs / "a"), stored=True)


def test_a_table_of_another_run_or_of_an_earlier_version_is_not_taken(runs, monkeypatch):
    ours, theirs = (next((runs / name).glob("*.parquet")) for name in "ab")
    mine = ours.read_bytes()
    ours.write_bytes(theirs.read_bytes())
    assert samples.checked(of(runs / "a")) is None
    ours.write_bytes(mine[:-100])
    assert samples.checked(of(runs / "a")) is None
    result = of(runs / "a")
    monkeypatch.setattr(samples, "json", Without())
    samples.write([result])
    monkeypatch.undo()
    assert samples.checked(result) is None
    audit.check(result, stored=True)


class Without:
    """The module json, as a version wrote what a file says of itself that did not compare records."""

    loads = staticmethod(json.loads)

    @staticmethod
    def dumps(about):
        for one in about["filters"]:
            del one["checked"]
        return json.dumps(about)


def test_a_table_of_a_log_of_another_run_is_not_taken(runs):
    """The run's own digest decides: the file says that it was not found, and the log is read, and refused."""
    logs = [next((runs / name).glob("*.jsonl")) for name in "ab"]
    result = of(runs / "a")
    logs[0].write_bytes(logs[1].read_bytes())
    samples.write([result])
    assert samples.checked(result) is None
    assert len(samples.records(result)) == 80
    with pytest.raises(RecordError, match="not the log that the run wrote"):
        audit.check(result, stored=True)


def test_cells_in_every_order_come_back_from_the_table(tmp_path):
    def choose(doc, view, order, gold, stream):
        return order.index(gold) if doc % 3 else int(stream.integers(len(order)))

    path = write_run(tmp_path, {"sheet_crci2": crci_run(choose, n=30, grid=2, left_out=(3,), failed=((7, 2, 1),))})
    result = read(path).results[0]
    samples.write([result])
    assert samples.checked(result) == list(result.records())
    audit.check(result, stored=True)


@pytest.mark.parametrize("column", ["answer", "score", "question", "record.own"])
def test_rows_that_were_forged_and_sealed_anew_are_not_taken(runs, column):
    """The seal takes no key: whoever forges rows can write it. Rows of a few docs are held to the log each time."""
    path, result = next((runs / "a").glob("*.parquet")), of(runs / "a")
    assert samples.checked(result) is not None
    table, about = pq.read_table(path), pq.read_schema(path).metadata
    at = table.schema.get_field_index(column)
    values = table[column].to_pylist()
    forged = {
        "answer": lambda value: "forged",
        "score": lambda value: 1.0,
        "question": lambda value: "What else?",
        "record.own": lambda value: None if value is None else value.replace('"doc_id":7,', '"doc_id":8,'),
    }[column]
    changed = pa.array(list(map(forged, values)), table.schema.field(at).type)
    assert changed.to_pylist() != values
    with pq.ParquetWriter(path, table.schema.with_metadata(about)) as out:
        out.write_table(table.set_column(at, table.schema.field(at), changed).replace_schema_metadata(about))
    samples._seal(path)
    with pytest.raises(samples._UnfitError, match="not those of the sample log"):
        samples._read(path, result, [column])
    assert samples.table(result, ["answer"]).equals(samples.from_log(result, ["answer"]))
    if column.startswith("record"):
        assert samples.checked(result) is None
