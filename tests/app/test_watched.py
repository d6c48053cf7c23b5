"""lmms-eval as a command of its own: a small program stands in for it."""

import sys

import pytest

from lmms_patch.app import watched
from lmms_patch.app.watched import RunError, lmms_eval

BARS = """
import sys
from tqdm import tqdm
print("first line")
for _ in tqdm(range(3), desc="loading", mininterval=0, ascii=True):
    pass
for i in tqdm(range(4), desc="asking", mininterval=0, unit=" answers"):
    for _ in tqdm(range(2), desc="Model Responding", position=1, mininterval=0):
        pass
print("last line \u5927")
"""


def unseen(what, done, of):
    """Progress that nobody sees."""


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Make a program that runs in place of lmms-eval."""

    def make(source):
        file = tmp_path / "program.py"
        file.write_text(source, encoding="utf-8")
        monkeypatch.setattr(watched, "COMMAND", (sys.executable, str(file)))
        monkeypatch.setenv("PYTHONIOENCODING", "utf-8")

    return make


def test_progress_is_told_and_lines_are_kept_without_bars(program, tmp_path, capfd):
    """Real bars of tqdm, one inside another; only what the user waits for is told."""
    program(BARS)
    told = []
    log = lmms_eval([], tmp_path / "out", watch=lambda *one: told.append(one))
    assert told[0] == ("starting lmms-eval", 0, 0)
    assert list(dict.fromkeys(told[1:])) == [("asking", done, 4) for done in range(5)]
    assert log.read_text(encoding="utf-8").splitlines() == ["first line", "last line \u5927"]
    assert log == tmp_path / "out" / "lmms-eval.log"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("prints", "says"),
    [
        ("loading\nlmms-patch: nosuch: no such task\nbye\n", "it said: nosuch: no such task"),
        ("loading\nKilled\n", "it said: Killed"),
        ("cut", "it said: cut"),
        ("", "it said nothing"),
    ],
)
def test_a_failure_says_why_and_where_all_of_it_is(program, tmp_path, prints, says):
    program(f"import sys; print({prints!r}, end=''); sys.exit(3)")
    with pytest.raises(RunError) as failed:
        lmms_eval([], tmp_path, unseen)
    assert str(failed.value) == f"lmms-eval ended with status 3; {says}; all it said: {tmp_path / 'lmms-eval.log'}"


def test_a_killed_program_is_a_failure(program, tmp_path):
    program("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(RunError, match="status -9"):
        lmms_eval([], tmp_path, unseen)


def test_lines_are_kept_elsewhere_where_the_folder_cannot_be_written(program, tmp_path):
    program("print('here')")
    (tmp_path / "out").write_text("a file, not a folder")
    log = lmms_eval([], tmp_path / "out", unseen)
    assert log.read_text() == "here\n"
    log.unlink()


# --- what is kept, and where ----------------------------------------------------------------------


def test_an_earlier_log_of_the_folder_is_kept(program, tmp_path):
    """Each run has a file of its own, so that what one said is never taken for what another said."""
    program("print('one')")
    first = lmms_eval([], tmp_path, unseen)
    program("print('two')")
    second = lmms_eval([], tmp_path, unseen)
    program("import sys; sys.exit(1)")
    with pytest.raises(RunError, match=r"it said nothing; all it said: .*lmms-eval-3\.log"):
        lmms_eval([], tmp_path, unseen)
    assert [path.name for path in (first, second)] == ["lmms-eval.log", "lmms-eval-2.log"]
    assert [path.read_text() for path in (first, second)] == ["one\n", "two\n"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_not_followed(program, tmp_path, there):
    """Neither one to somebody's file, nor one to nothing, which opening for writing would create."""
    precious = tmp_path / "precious"
    if there:
        precious.write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "lmms-eval.log").symlink_to(precious)
    program("print('here')")
    log = lmms_eval([], tmp_path / "out", unseen)
    assert log.name == "lmms-eval-2.log"
    assert log.read_text() == "here\n"
    assert not log.is_symlink()
    assert precious.exists() is there
    assert not there or precious.read_text() == "mine"


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ("one\r\ntwo\r\n", ["one", "two"]),  # as Windows ends lines
        ("one\r\r\ntwo\n", ["one", "two"]),  # as Windows does to lines that end so already
        ("drawn\rdrawn anew\rlast\n", ["last"]),  # what a terminal shows in the end
        ("one\n\r\ntwo", ["one", "two"]),
        ("drawn\rcut\r", ["cut"]),
    ],
)
def test_ends_of_lines_of_every_kind(program, tmp_path, printed, kept):
    program(f"import sys; sys.stdout.buffer.write({printed.encode()!r})")
    assert lmms_eval([], tmp_path, unseen).read_text().splitlines() == kept
