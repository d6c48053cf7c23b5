"""What ``lmms-patch tasks`` and ``coverage`` print of what was found; what is found is in tests/harness/names/test_catalog.py."""

import sys

import pytest

from lmms_patch.app import api
from lmms_patch.app.cli import main
from lmms_patch.app.commands import tasks
from lmms_patch.harness.names.catalog import Entry
from tests.making.terminal import Terminal

FOUND = [
    Entry("a", "task", "wraps", "", 1200, "f"),
    Entry("b", "group", "judge", "its scorer calls a judge", None, "f"),
    Entry("c", "task", "no", "a video task", 5, "f"),
]


def test_a_line_for_each_with_its_price(monkeypatch, capsys):
    asked = []

    def tasks(*words, quiet, watch, **more):
        asked.append((words, more))
        return api.Catalogue(list(watch(FOUND, "looking")), "rci3", 10)

    monkeypatch.setattr(api, "tasks", tasks)
    assert main(["tasks", "x*", "--as", "rci3", "--include-path", "mine"]) == 0
    assert asked == [(("x*", "rci3"), {"include_path": "mine"})]
    printed = capsys.readouterr()
    assert printed.err == "", "no bar where stderr is no terminal"
    assert printed.out.splitlines() == [
        "a_rci3  [task] wraps, 1,200 docs, 12,000 requests",
        "b_rci3  [group] needs allow_judge: its scorer calls a judge",
        "c  [task] does not wrap, 5 docs, 50 requests: a video task",
        "",
        "1 wrap, 1 wrap with allow_judge, 0 are decided by the first doc, 1 do not wrap. "
        "As rci3, each doc is asked 10x (times its choices, for multiple_choice).",
    ]


@pytest.mark.parametrize(
    ("kind", "clips", "told"),
    [
        ("rci3", 1, "a shows videos, which can also be cut in time: _trci4, _frame, _frames, _tshuffle4, _treverse (add --as trci4 for the price)."),
        ("rci3", 2, "2 of these show videos, which can also be cut in time: _trci4, "),
        ("trci4", 2, None),
        ("rci3", 0, None),
    ],
)
def test_names_that_show_videos_are_told_to_be_possible_in_time(kind, clips, told):
    entries = [Entry(name, "task", "wraps", "", None, "f", in_time=("wraps" if i < clips else "no", "")) for i, name in enumerate("ab")]
    said = [line for line in tasks.lines(api.Catalogue(entries, kind, 10)) if "in time" in line]
    assert len(said) == (told is not None)
    assert all(line.startswith(told) for line in said)


@pytest.fixture
def covered(monkeypatch):
    """Notes whether lmms-eval is kept quiet; lmms-eval prints a line where it is not."""
    told = []

    def coverage(*, quiet, watch):
        told.append(quiet)
        if not quiet:
            print("INFO of lmms-eval", file=sys.stderr)
        return list(watch(FOUND, "looking"))

    monkeypatch.setattr(api, "coverage", coverage)
    return told


def test_the_coverage_is_counted_and_written(covered, tmp_path, capsys):
    assert main(["coverage"]) == 0
    counted = "3 tasks: 1 wrap, 1 wrap with allow_judge, 0 are decided by the first doc, 1 do not wrap.\n"
    assert capsys.readouterr().out == counted
    page = tmp_path / "page.md"
    assert main(["coverage", "--write", str(page)]) == 0
    assert capsys.readouterr().out == f"{counted}written: {page}\n"
    assert "| all | 3 | 3 |" in page.read_text()


@pytest.mark.parametrize(("words", "bar", "quiet"), [([], True, True), (["--quiet"], False, True), (["--verbose"], False, False)])
def test_a_terminal_shows_how_far_it_is_and_the_answer_comes_last(covered, monkeypatch, capsys, words, bar, quiet):
    """A bar that counts the tasks, or the harness's own lines, but never both; nothing of either is on stdout."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["coverage", *words]) == 0
    shown = terminal.getvalue()
    assert ("reading all tasks of lmms-eval" in shown) is bar
    assert ("3/3" in shown) is bar
    assert ("INFO of lmms-eval" in shown) is not quiet
    assert covered == [quiet]
    assert capsys.readouterr().out.splitlines()[-1].startswith("3 tasks: 1 wrap, ")


def test_a_page_that_cannot_be_written_is_one_line(covered, tmp_path, capsys):
    (tmp_path / "no").touch()
    assert main(["coverage", "--write", str(tmp_path / "no" / "page.md")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be written: Not a directory" in line
