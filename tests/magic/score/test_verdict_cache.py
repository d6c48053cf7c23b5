"""The cache of verdicts: across runs, across processes, and when its file is damaged."""

from __future__ import annotations

import multiprocessing
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from lmms_patch.magic.score.verdict_cache import FILE, Kept, VerdictCache, key_of

YES = Kept((True,), "so it is", "Correctness: Correct", "judge")


@pytest.fixture
def told():
    return []


def test_kept_and_found_again(tmp_path, told):
    cache = VerdictCache(tmp_path / "new" / "folder", told.append)
    assert cache.get("k", "short", 1) is None
    cache.put("k", "short", YES)
    steps = Kept((True, False, True), "", "half a pair: \ud83d", "judge")
    cache.put("s", "steps", steps)
    again = VerdictCache(tmp_path / "new" / "folder", told.append)
    assert again.get("k", "short", 1) == YES
    assert again.get("s", "steps", 3) == Kept((True, False, True), "", "half a pair: ?", "judge")
    assert again.get("k", "full", 1) is None
    assert again.get("k", "short", 2) is None
    assert again.get("other", "short", 1) is None
    assert told == []


def test_without_a_folder_nothing_is_kept(told):
    cache = VerdictCache(None, told.append)
    cache.put("k", "short", YES)
    assert cache.get("k", "short", 1) is None
    assert told == []


def test_the_key_is_all_that_was_asked():
    base = {"model": "a", "address": "b", "sampling": {"temperature": 0.0}, "prompt": "c"}
    keys = {key_of(base), *(key_of({**base, name: "x"}) for name in base), key_of({**base, "more": 1})}
    assert len(keys) == 6
    assert key_of(dict(reversed(base.items()))) == key_of(base)
    # the parts cannot run into each other
    assert key_of({"model": "ab", "address": ""}) != key_of({"model": "a", "address": "b"})


@pytest.mark.parametrize(
    ("name", "why"), [(FILE, "cannot be used (file is not a database)"), ("file", "cannot be used")]
)
def test_a_cache_that_cannot_be_used_is_told_once_and_stays(tmp_path, told, name, why):
    """Its file is damaged, or a file stands in the place of its folder."""
    (tmp_path / name).write_bytes(b"this is not a database, but it is long enough to look like one" * 100)
    before = (tmp_path / name).read_bytes()
    cache = VerdictCache(tmp_path if name == FILE else tmp_path / name / "cache", told.append)
    for number in range(3):
        cache.put(f"k{number}", "short", YES)
        assert cache.get(f"k{number}", "short", 1) is None
    assert [why in line for line in told] == [True]
    assert (tmp_path / name).read_bytes() == before


def test_an_entry_that_makes_no_sense_is_none(tmp_path, told):
    cache = VerdictCache(tmp_path, told.append)
    cache.put("k", "short", YES)
    for answers in ("[1]", "true", "[", '["Correct"]', "[null]"):
        with sqlite3.connect(tmp_path / FILE) as db:
            db.execute("UPDATE verdicts SET answers = ?", (answers,))
        db.close()
        assert cache.get("k", "short", 1) is None
    assert told == []


_WRITER = """
import sys
from pathlib import Path
from lmms_patch.magic.score.verdict_cache import Kept, VerdictCache
me, folder = sys.argv[1:]
cache = VerdictCache(Path(folder), lambda line: sys.exit(line))
for number in range(60):
    cache.put(f"{me}-{number}", "short", Kept((number % 2 == 0,), "", me, ""))
    cache.put("shared", "short", Kept((True,), "", "", ""))
    assert cache.get(f"{me}-{number}", "short", 1).raw == me
"""


def test_several_processes_and_threads_write_at_once(tmp_path, told):
    runs = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(number), str(tmp_path)], stderr=subprocess.PIPE)
        for number in range(3)
    ]
    cache = VerdictCache(tmp_path, told.append)

    def write(number: int) -> None:
        cache.put(f"t-{number}", "short", YES)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(60)))
    for run in runs:
        assert run.communicate(timeout=60) == (None, b"")
        assert run.returncode == 0
    assert told == []
    for me in ("0", "1", "2"):
        assert [cache.get(f"{me}-{number}", "short", 1).values for number in range(60)] == [
            (number % 2 == 0,) for number in range(60)
        ]
    assert all(cache.get(f"t-{number}", "short", 1) == YES for number in range(60))


def test_a_forked_process_opens_the_file_for_itself(tmp_path, told):
    cache = VerdictCache(tmp_path, told.append)
    cache.put("parent", "short", YES)

    def child() -> None:
        cache.put("child", "short", YES)
        sys.exit(0 if cache.get("parent", "short", 1) == YES else 3)

    run = multiprocessing.get_context("fork").Process(target=child)
    run.start()
    run.join(30)
    assert run.exitcode == 0
    assert cache.get("child", "short", 1) == YES
    cache.put("after", "short", YES)
    assert VerdictCache(tmp_path, told.append).get("after", "short", 1) == YES
    assert told == []
