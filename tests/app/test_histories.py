"""What may happen to a finished run before somebody reads it: none of it changes a number, and none is called damage."""

import contextlib
import gzip
import io
import json
import locale
import os
import shutil
import stat
import tarfile
import time
import zipfile

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

import lmms_patch
from lmms_patch.app import cli
from lmms_patch.runs import samples
from tests.making.runs import guesses_on_cells, mc_run, world_run, write_run

TASKS = ("toy_rci2", "other_rci3")
TEXTS = ("answer", "caption", "question", "options")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of two tasks as the harness leaves it, with every text, short fields of docs and the host's own files."""
    out = tmp_path_factory.mktemp("finished") / "out"
    spec, records, made = world_run(guesses_on_cells, n=60, grid=3, base="other", seed=1)
    path = write_run(
        out / "org__model", {TASKS[0]: mc_run(n=60), TASKS[1]: (spec, records, made)}, model_name="org/model"
    )
    for table in tables(out):
        frame, about = samples.frame_of(table), samples.about_of(table)
        text = pl.format("text {} of {}", "view", "doc_id")
        samples.write(
            table, frame.with_columns(answer=text, caption=text, question=text, **{"doc.source": text}), about
        )
        told = [json.dumps({"doc_id": doc, "target": "A"}) for doc in range(60)]
        table.with_suffix(".jsonl").write_text("\n".join(told))
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
    kept(out).unlink()
    return out


@pytest.fixture(scope="module")
def before(finished, tmp_path_factory):
    """Its numbers, and what ``show`` says of them."""
    out = tmp_path_factory.mktemp("before") / "out"
    shutil.copytree(finished, out)
    return numbers(out), seen(out)


def tables(out):
    return sorted(out.rglob("*_samples_*.parquet"))


def kept(out):
    return next(out.rglob("*_numbers.parquet"))


def numbers(out):
    return lmms_patch.results(out).drop("path")


def seen(out):
    """What ``show`` prints, on both ways."""
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()) as told:
        assert cli.main(["show", str(out), "--wide"]) == 0, told.getvalue()
    return said.getvalue(), told.getvalue()


# --- histories: each takes the run's folder, and returns what is read then (None: the same folder) --------------------


def moved_deep(out):
    (out.parent / "a" / "b" / "c").mkdir(parents=True)
    return out.rename(out.parent / "a" / "b" / "c" / "out").parents[2]


def copied_without_times(out):
    for path in tables(out):
        shutil.copyfile(path, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)


def folder_of_the_model_renamed(out):
    next(out.iterdir()).rename(out / "final, do not touch")


def folder_linked(out):
    (out.parent / "link").symlink_to(out, target_is_directory=True)
    return out.parent / "link"


def files_linked(out):
    """As ``git annex`` lays files out."""
    (out.parent / "objects").mkdir()
    for at, path in enumerate(p for p in out.rglob("*") if p.is_file()):
        path.symlink_to(path.rename(out.parent / "objects" / f"{at}"))


def hub(out):
    """As ``huggingface_hub`` lays a snapshot out."""
    root = out.parent / "datasets--me--runs"
    (root / "blobs").mkdir(parents=True)
    snapshot = root / "snapshots" / ("0" * 40)
    for path in sorted(p for p in out.rglob("*") if p.is_file()):
        there = snapshot / path.relative_to(out)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.symlink_to(shutil.move(path, root / "blobs" / samples.digest_of(path)))
    return snapshot


def hard_links(out):
    shutil.copytree(out, out.parent / "linked", copy_function=os.link)
    shutil.rmtree(out)
    return out.parent / "linked"


def results_indented(out):
    path = next(out.rglob("*_results.json"))
    path.write_text(json.dumps(json.loads(path.read_text()), indent=4, sort_keys=True))


def lines_end_as_on_windows(out):
    for path in (*out.rglob("*.json"), *out.rglob("*.jsonl")):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n")


def results_of_another_run(out):
    next(out.rglob("*_results.json")).write_text('{"results": {"gqa": {"acc,none": 1.0}}, "configs": {"gqa": {}}}')


def results_cut(out):
    next(out.rglob("*_results.json")).write_text('{"results": {"toy_r')


def logs_deleted(out):
    for path in out.rglob("*.jsonl"):
        path.unlink()


def logs_gzipped(out):
    for path in list(out.rglob("*.jsonl")):
        with gzip.open(f"{path}.gz", "wb") as file:
            file.write(path.read_bytes())
        path.unlink()


def times_set(out):
    for at, path in enumerate(out.rglob("*")):
        os.utime(path, (at, at))


def in_the_future(out):
    for path in out.rglob("*"):
        os.utime(path, (4e9, 4e9))


def another_time_zone(out):
    os.environ["TZ"] = "Pacific/Kiritimati"
    time.tzset()


def another_locale(out):
    os.environ["LC_ALL"] = os.environ["LANG"] = "de_DE.UTF-8"
    try:
        locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
    except locale.Error:
        locale.setlocale(locale.LC_ALL, "C")


def zipped(out):
    with zipfile.ZipFile(out.parent / "run.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in out.rglob("*"):
            archive.write(path, path.relative_to(out.parent))
    shutil.rmtree(out)
    with zipfile.ZipFile(out.parent / "run.zip") as archive:
        archive.extractall(out.parent)


def tarred(out):
    with tarfile.open(out.parent / "run.tar.gz", "w:gz") as archive:
        archive.add(out, "back")
    shutil.rmtree(out)
    with tarfile.open(out.parent / "run.tar.gz") as archive:
        archive.extractall(out.parent, filter="data")
    return out.parent / "back"


def numbers_made(out):
    numbers(out)


def numbers_stale(out):
    """Those of another run, which lay in the folder before."""
    write_run(out.parent / "another", {TASKS[0]: mc_run(n=60, answers=1), TASKS[1]: mc_run(n=60, answers=2)})
    shutil.copy(kept(out.parent / "another"), next(out.iterdir()))


def numbers_damaged(out):
    numbers(out)
    kept(out).write_bytes(kept(out).read_bytes()[:1000])


def nobody_may_write(out):
    for path in (out, *out.rglob("*")):
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def a_note_beside(out):
    (next(out.iterdir()) / "README.md").write_text("# my run")
    (next(out.iterdir()) / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    (out / "._20260101_samples_toy_rci2.json").write_bytes(b"\0")


def copied_twice(out):
    """The same run in two folders is one run."""
    shutil.copytree(out / "org__model", out / "backup" / "org__model")
    return out / "backup"


def nested(out):
    """A run whose ``--output_path`` was the folder of another, which is older."""
    write_run(out / "org__model" / "older", {TASKS[0]: mc_run(n=60, answers=1)}, date="2025-01-01T00-00-00.000000")
    return next(out.glob("*/*_results.json"))


LONGER = (
    moved_deep, copied_without_times, folder_of_the_model_renamed, folder_linked, files_linked, hub, hard_links,
    results_indented, lines_end_as_on_windows, results_of_another_run, results_cut, logs_deleted, logs_gzipped,
    times_set, in_the_future, another_time_zone, another_locale, zipped, tarred, numbers_made, numbers_stale,
    numbers_damaged, nobody_may_write, a_note_beside, copied_twice, nested,
)  # fmt: skip
HISTORIES = {
    "moved": lambda out: out.rename(out.parent / "elsewhere"),
    "spaces": lambda out: out.rename(out.parent / "my runs of (today)"),
    "not ASCII": lambda out: out.rename(out.parent / "Läufe 実行 😀"),
    "a table named": lambda out: tables(out)[0],
    "the results file named": lambda out: next(out.rglob("*_results.json")),
    "results deleted": lambda out: next(out.rglob("*_results.json")).unlink(),
    "another Parquet file beside": lambda out: pl.DataFrame({"a": [1]}).write_parquet(
        next(out.iterdir()) / "mine_samples_of_dough.parquet"
    ),
    **{one.__name__: one for one in LONGER},
}


@pytest.fixture
def clock_and_tongue():
    """Leave time zone and locale as they were."""
    known, tongue = dict(os.environ), locale.setlocale(locale.LC_ALL)
    yield
    os.environ.clear()
    os.environ.update(known)
    time.tzset()
    locale.setlocale(locale.LC_ALL, tongue)


@pytest.mark.parametrize("history", HISTORIES)
def test_a_history_changes_no_number(finished, before, tmp_path, history, clock_and_tongue):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    there = HISTORIES[history](out) or out
    assert seen(there) == before[1]
    assert_frame_equal(numbers(there), before[0])


# --- the tables themselves written anew -------------------------------------------------------------------------------


def without(*names):
    def rewrite(path):
        frame, about = pl.read_parquet(path), pq.read_metadata(path).metadata[samples.KEY]
        frame.drop(
            [
                name
                for name in frame.columns
                if name in names or name.startswith(names[0] if names[0][-1] == "." else ("\0",))
            ]
        ).write_parquet(path, metadata={"lmms_patch": about.decode()})

    return rewrite


def by_arrow(path, **how):
    pq.write_table(pq.read_table(path), path, **how)


def by_polars(path, change=lambda frame: frame, **how):
    about = pq.read_metadata(path).metadata[samples.KEY].decode()
    change(pl.read_parquet(path)).write_parquet(path, metadata={"lmms_patch": about}, **how)


def by_pandas(path):
    """Through pandas, which has no whole numbers that may be null: so with the types of Arrow."""
    table = pq.read_table(path)
    frame = table.to_pandas(types_mapper=__import__("pandas").ArrowDtype)
    pq.write_table(
        pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(table.schema.metadata), path
    )


def by_duckdb(path, compression="zstd", order="doc_id, view"):
    about = pq.read_metadata(path).metadata[samples.KEY].decode().replace("'", "''")
    duckdb.sql(
        f"copy (select * from '{path}' order by {order}) to '{path}.new' "
        f"(format parquet, compression {compression}, row_group_size 2048, kv_metadata {{lmms_patch: '{about}'}})"
    )
    os.replace(f"{path}.new", path)


REWRITTEN = {
    "an answer is somebody's": without("answer"),
    "nor may the questions be shown": without("question", "options"),
    "no text at all": without(*TEXTS, "judged"),
    "fields of docs dropped": without("doc."),
    "arrow, gzip": lambda path: by_arrow(path, compression="gzip"),
    "arrow, none": lambda path: by_arrow(path, compression="none", row_group_size=7, use_dictionary=False),
    "arrow, version 1": lambda path: by_arrow(path, version="1.0", data_page_version="2.0", compression="snappy"),
    "polars, zstd": lambda path: by_polars(path, compression="zstd", compression_level=22),
    "polars, row groups": lambda path: by_polars(path, compression="uncompressed", row_group_size=50),
    "polars, columns in another order": lambda path: by_polars(path, lambda frame: frame.select(sorted(frame.columns))),
    "polars, a column of one's own": lambda path: by_polars(path, lambda frame: frame.with_columns(mine=pl.lit(1))),
    "polars, shuffled": lambda path: by_polars(path, lambda frame: frame.sample(fraction=1, shuffle=True, seed=1)),
    "pandas": by_pandas,
    "duckdb": by_duckdb,
    "duckdb, gzip, backwards": lambda path: by_duckdb(path, "gzip", "doc_id desc, view desc"),
}


@pytest.mark.parametrize("how", REWRITTEN)
def test_tables_written_anew_by_another_program_give_the_same_numbers(finished, before, tmp_path, how):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    for path in tables(out):
        REWRITTEN[how](path)
    assert seen(out) == before[1]
    assert_frame_equal(numbers(out), before[0])


# --- parts ------------------------------------------------------------------------------------------------------------


def test_a_task_taken_out_leaves_the_numbers_of_the_others(finished, before, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    tables(out)[0].unlink()
    (left,) = tables(out)
    task = samples.about_of(left).task
    assert_frame_equal(numbers(out), before[0].filter(task=task))
    said, told = seen(out)
    assert told == ""
    assert task in said
    assert not any(name in said for name in TASKS if name != task)


def test_all_tables_taken_out_is_one_line(finished, tmp_path, capsys):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    for path in tables(out):
        path.unlink()
    for given in (out, next(out.rglob("*_results.json"))):
        assert cli.main(["show", str(given)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "no samples tables" in line


def test_a_run_of_another_day_in_the_folder_is_told_and_changes_nothing(finished, before, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    write_run(out / "org__model", {TASKS[0]: mc_run(n=60, answers=1)}, date="2025-01-01T00-00-00.000000")
    said, told = seen(out)
    assert said == before[1][0]
    assert "taken as the newest" in told
