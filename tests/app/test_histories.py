"""What may happen to a finished run before somebody reads it: none of it changes a number, and none is called damage."""

import contextlib
import io
import json
import os
import shutil
import stat

import duckdb
import polars as pl
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


def folder_linked(out):
    (out.parent / "link").symlink_to(out, target_is_directory=True)
    return out.parent / "link"


def files_linked(out):
    """As ``git annex`` lays files out."""
    (out.parent / "objects").mkdir()
    for at, path in enumerate(p for p in out.rglob("*") if p.is_file()):
        path.symlink_to(path.rename(out.parent / "objects" / f"{at}"))


def results_of_another_run(out):
    next(out.rglob("*_results.json")).write_text('{"results": {"gqa": {"acc,none": 1.0}}, "configs": {"gqa": {}}}')


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
    *(folder_linked, files_linked, results_of_another_run, numbers_made, numbers_stale, numbers_damaged),
    *(nobody_may_write, a_note_beside, copied_twice, nested),
)
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


@pytest.mark.parametrize("history", HISTORIES)
def test_a_history_changes_no_number(finished, before, tmp_path, history):
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
    "arrow, none": lambda path: by_arrow(path, compression="none", row_group_size=7, use_dictionary=False),
    "arrow, version 1": lambda path: by_arrow(path, version="1.0", data_page_version="2.0", compression="snappy"),
    "polars, columns in another order": lambda path: by_polars(path, lambda frame: frame.select(sorted(frame.columns))),
    "polars, a column of one's own": lambda path: by_polars(path, lambda frame: frame.with_columns(mine=pl.lit(1))),
    "polars, shuffled": lambda path: by_polars(path, lambda frame: frame.sample(fraction=1, shuffle=True, seed=1)),
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
