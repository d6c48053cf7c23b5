"""The folder of clips: never above its limit, what was read least recently goes first, what may still be opened stays, nothing is left behind."""

import contextlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch import files
from lmms_patch.errors import OptionError
from lmms_patch.harness.video.cache import Cache


def on_disk(cache):
    """Return the bytes of all files in the folder, unfinished ones too."""
    total = 0
    for path in cache.folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another thread has just renamed or removed it
            total += path.stat().st_size
    return total


@pytest.fixture
def cache(tmp_path):
    return Cache(100, tmp_path, held=0)


def test_a_clip_is_made_once(cache):
    calls = []
    paths = [cache.path_of("doc", "full", lambda: calls.append(1) or b"x" * 10) for _ in range(3)]
    assert len(calls) == 1
    assert len(set(paths)) == 1
    assert paths[0].read_bytes() == b"x" * 10
    assert paths[0].suffix == ".mp4"
    assert cache.path_of("doc", "blank", lambda: b"y") != paths[0] != cache.path_of("other", "full", lambda: b"z")


def test_of_those_that_were_read_the_least_recently_used_goes_first(cache):
    a, b, c = (cache.path_of("doc", name, lambda: bytes(30)) for name in "abc")
    assert {len(path.read_bytes()) for path in (a, b, c)} == {30}
    assert cache.path_of("doc", "a", lambda: 1 / 0) == a  # asked for again: b is the oldest now
    d = cache.path_of("doc", "d", lambda: bytes(30))
    assert [path.exists() for path in (a, b, c, d)] == [True, False, True, True]
    again = cache.path_of("doc", "b", lambda: bytes(30))
    assert again != b, "a path that once held other bytes is not used again"
    assert not c.exists()


def test_what_was_not_read_stays(cache):
    """A batch of four clips of 30 bytes, of which three fit: the adapter opens them once it has all paths."""
    paths = [cache.path_of("doc", name, lambda: bytes(30)) for name in "abc"]
    paths[1].read_bytes()
    fourth = cache.path_of("doc", "d", lambda: bytes(30))
    assert [path.exists() for path in (*paths, fourth)] == [True, False, True, True]
    with pytest.raises(
        OptionError,
        match=r"set the environment variable LMMS_PATCH_VIDEO_CACHE to more gigabytes .*, or lower --batch_size",
    ) as caught:
        cache.path_of("doc", "e", lambda: bytes(30))
    assert "\n" not in str(caught.value)
    assert all(path.exists() for path in (paths[0], paths[2], fourth))
    assert cache.used == on_disk(cache) == 90
    cache.drop("doc")
    assert cache.path_of("doc", "e", lambda: bytes(90)).exists(), "the failure is not kept"


def test_a_doc_is_dropped(cache):
    kept = cache.path_of(1, "a", lambda: bytes(10))
    gone = [cache.path_of(2, name, lambda: bytes(10)) for name in "ab"]
    cache.drop(2)
    cache.drop(3)
    assert kept.exists()
    assert not any(path.exists() for path in gone)
    assert cache.used == on_disk(cache) == 10


@given(
    asked=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 60), st.booleans()), max_size=40),
    held=st.integers(0, 3),
)
def test_never_above_the_limit(tmp_path_factory, asked, held):
    """Against a plain list of what was asked for last, and of what was read since it was written."""
    cache = Cache(100, tmp_path_factory.mktemp("cache"), held=held)
    recent = []  # [doc, view, size, whether it was read], oldest first
    for doc, view, size, reads in asked:
        if size == 60:
            cache.drop(doc)
            recent = [one for one in recent if one[0] != doc]
            continue
        known = next((one for one in recent if one[:2] == [doc, view]), None)
        added, full = known or [doc, view, size, False], False
        recent = [one for one in recent if one is not known]
        while known is None and sum(one[2] for one in recent) + size > 100 and not full:
            spare = next((one for one in recent[: len(recent) - held if held < len(recent) else 0] if one[3]), None)
            full = spare is None
            recent = [one for one in recent if one is not spare]
        if full:
            with pytest.raises(OptionError, match="LMMS_PATCH_VIDEO_CACHE"):
                cache.path_of(doc, view, lambda size=size: bytes(size))
        else:
            path = cache.path_of(doc, view, lambda size=size: bytes(size))
            assert path.stat().st_size == added[2]
            recent.append(added)
            added[3] |= reads and bool(path.read_bytes())
        assert on_disk(cache) == cache.used == sum(one[2] for one in recent) <= 100


def test_threads_make_a_clip_once_and_stay_below_the_limit(tmp_path):
    cache, made, most = Cache(1000, tmp_path), [], []
    both = threading.Barrier(8)

    def work(number):
        both.wait()
        for i in range(60):
            key = (number + i) % 12
            path = cache.path_of(key, "full", lambda key=key: made.append(key) or bytes([key]) * 50)
            assert path.read_bytes() == bytes([key]) * 50
            most.append(on_disk(cache))

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, number) for number in range(8)]:
            done.result()
    assert sorted(made) == list(range(12)), "12 clips of 50 bytes have room: each is made once"
    assert max(most) <= 600


SCRIPT = """
import sys
from pathlib import Path
from lmms_patch.harness.video.cache import Cache
cache = Cache(100, Path(sys.argv[1]))
cache.path_of(1, "a", lambda: b"x")
print(cache.folder, flush=True)
{end}
"""


@pytest.mark.parametrize(
    "end",
    [
        "",
        "raise RuntimeError",
        "sys.exit(3)",
        "import os\nif os.fork() == 0: sys.exit()\nos.wait(); assert cache.folder.exists()",
    ],
)
def test_nothing_is_left_at_the_end(tmp_path, end):
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(end=end), str(tmp_path)], capture_output=True, text=True)
    assert str(tmp_path) in done.stdout
    assert "AssertionError" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path):
    end = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(end=end), str(tmp_path)], capture_output=True, text=True)
    left = done.stdout.strip()
    assert os.path.isdir(left)
    (tmp_path / "mine").mkdir()
    alive = files.temporary(tmp_path)
    alive.mkdir()
    cache = Cache(100, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"mine", alive.name, cache.folder.name}
