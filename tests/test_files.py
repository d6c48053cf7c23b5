"""Whole files or none; never through a link; nothing of a killed process stays."""

import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lmms_patch import files
from lmms_patch.errors import RecordError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_files_are_written_all_or_none(tmp_path):
    (tmp_path / "file").write_text("")
    good, bad = tmp_path / "good.json", tmp_path / "file" / "bad.csv"
    with pytest.raises(RecordError, match=r"bad\.csv: cannot be written: Not a directory"):
        files.write_all({good: "1", bad: "2"})
    with pytest.raises(RecordError, match="cannot be written: it is a folder"):
        files.write_all({good: "1", tmp_path: "2"})
    assert names(tmp_path) == ["file"]
    files.write_all({good: "1\n", tmp_path / "new" / "other.csv": b"2"})
    assert (good.read_bytes(), (tmp_path / "new" / "other.csv").read_bytes()) == (b"1\n", b"2")
    assert names(tmp_path) == ["file", "good.json", "new"]


def test_where_the_block_raises_no_file_takes_its_place(tmp_path):
    (tmp_path / "a").write_text("before")
    with pytest.raises(KeyError), files.staged({tmp_path / "a": "after", tmp_path / "b": "after"}):
        raise KeyError
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "before"


def test_a_new_file_has_the_rights_of_any_other(tmp_path):
    (tmp_path / "plain").touch()
    files.write(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_the_place_of_a_file_is_replaced(tmp_path, there):
    victim = tmp_path / "victim"
    if there:
        victim.write_text("precious")
    (tmp_path / "gate.json").symlink_to(victim)
    files.write(tmp_path / "gate.json", "ours")
    assert not (tmp_path / "gate.json").is_symlink()
    assert (tmp_path / "gate.json").read_text() == "ours"
    assert victim.exists() == there
    assert not there or victim.read_text() == "precious"


def test_no_link_that_could_have_been_put_there_is_written_through(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("gate.json.part", "gate.json.tmp", ".gate.json"):
        (tmp_path / name).symlink_to(victim)
    files.write(tmp_path / "gate.json", "ours")
    assert victim.read_text() == "precious"


def test_what_is_no_plain_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/null")
    for name in ("pipe", "device"):
        with pytest.raises(RecordError, match="it is not a plain file"):
            files.write(tmp_path / name, "x")
    assert names(tmp_path) == ["device", "pipe"]


def _write_often(path, text):
    for _ in range(150):
        files.write_all({path: text * 20_000})


def test_two_writers_of_one_file_do_not_collide(tmp_path):
    """With one temporary name for both, one takes the other's file away, or half of it is of the other."""
    target = tmp_path / "gate.json"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_often, args=(target, text)) for text in "ab"]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        if target.exists():
            seen.add(target.read_text())
        time.sleep(0.002)
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert seen | {target.read_text()} <= {"a" * 20_000, "b" * 20_000}
    assert names(tmp_path) == ["gate.json"]


# --- what killed processes leave ------------------------------------------------------------------


def ended_process():
    """The number of a process that has ended."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def left(folder, process=None, end=".part"):
    """A temporary name as another process would choose it."""
    own = files.temporary(folder, end)
    return own if process is None else own.with_name(own.name.replace(f"-{os.getpid()}-", f"-{process}-"))


def test_only_what_killed_processes_of_ours_left_is_removed(tmp_path):
    gone = ended_process()
    left(tmp_path, gone).write_text("half")
    folder = left(tmp_path, gone, "")
    (folder / "figures").mkdir(parents=True)
    stays = [
        left(tmp_path),
        left(tmp_path, os.getppid()),
        left(tmp_path, gone, ".old"),
        left(tmp_path, gone).with_name(".lmms-patch-x.part"),
    ]
    elsewhere = left(tmp_path, gone)
    stays.append(
        elsewhere.with_name(elsewhere.name.replace(files._host(), "0" * 8))
    )  # of another machine: nobody knows whether it runs
    stays += [tmp_path / name for name in ("gate.json.part", ".r.abcdefgh", "mine")]
    for path in stays:
        path.write_text("")
    assert len({path.name for path in stays}) == 8
    files.sweep(tmp_path)
    assert names(tmp_path) == sorted(path.name for path in stays)


def test_what_is_a_day_old_is_left_over_whoever_made_it(tmp_path):
    for path, age in (
        (left(tmp_path), 25),
        (left(tmp_path), 23),
        (left(tmp_path, end=".old"), 25),
        (tmp_path / "mine.part", 1000),
    ):
        path.write_text(str(age))
        os.utime(path, (time.time() - age * 3600,) * 2)
    files.sweep(tmp_path)
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["1000", "23"]


def test_a_link_that_is_left_over_goes_and_not_what_it_names(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("precious")
    left(tmp_path, ended_process(), "").symlink_to(tmp_path / "mine")
    files.sweep(tmp_path)
    assert names(tmp_path) == ["mine"]
    assert (tmp_path / "mine" / "file").read_text() == "precious"


def test_no_file_is_written_in_another_way():
    """Every door goes through ``files``: nothing else renames into place, or opens a file to write it whole."""
    own = {"files.py", "build.py", "builder.py", "verdict_cache.py"}  # folders renamed whole; a database
    found = {
        path.name
        for path in Path(files.__file__).parent.rglob("*.py")
        if any(
            word in path.read_text(encoding="utf-8")
            for word in ("os.replace(", '.part"', '.tmp"', "mkstemp", "mkdtemp", "copyfile(")
        )
    }
    assert found <= own


@pytest.mark.parametrize(("levels", "whole"), [(100, True), (101, False), (5000, False), (200_000, False)])
def test_json_is_read_to_a_bounded_depth(levels, whole):
    text = "[" * levels + "1" + "]" * levels
    mixed = '{"a":[' * (levels // 2) + "1" + "]}" * (levels // 2)
    for one in (text, mixed if levels > 1000 else text):
        if whole:
            assert json.dumps(files.parse_json(one)) == one
        else:
            with pytest.raises(ValueError, match="nested too deeply"):
                files.parse_json(one)
    assert files.parse_json("[" + "[1]," * 5000 + "{}]")[-1] == {}
