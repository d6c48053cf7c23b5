"""What ``lmms-patch tasks`` prints of what was found.

What is found is in tests/harness/names/test_catalog.py.
"""

from pathlib import Path
from types import SimpleNamespace

import pytest

from lmms_patch.app.cli import main
from lmms_patch.app.commands import tasks
from lmms_patch.harness import task_files
from lmms_patch.harness.names import catalog
from lmms_patch.harness.names.catalog import Entry

FOUND = [
    Entry("a", "task", "wraps", "", 1200),
    Entry("b", "group", "judge", "its scorer calls a judge", None),
    Entry("c", "task", "no", "a video task", 5),
]


def test_a_line_for_each_with_its_price(tmp_path, monkeypatch, capsys):
    asked = []

    def entries(manager, pattern, kind, watch):
        asked.append((pattern, kind))
        return list(watch(FOUND, "looking"))

    monkeypatch.chdir(tmp_path)

    def index(include_path):
        asked.append(include_path)
        return SimpleNamespace(all_tasks=[])

    monkeypatch.setattr(task_files, "Index", index)
    monkeypatch.setattr(catalog, "entries", entries)
    assert main(["tasks", "x*", "--as", "rci3", "--include-path", "mine"]) == 0
    assert asked == [Path("mine"), ("x*", "rci3")]
    printed = capsys.readouterr()
    assert printed.err == "", "no bar where stderr is no terminal"
    assert printed.out.splitlines() == [
        "a_rci3  [task] wraps, 1,200 docs, 12,000 requests",
        "b_rci3  [group] needs allow_judge: its scorer calls a judge",
        "c  [task] does not wrap, 5 docs, 50 requests: a video task",
        "",
        "No price for b: the data is not on this machine. A run with --limit 20 fetches it; then ask again.",
        "Wraps: 1; needs allow_judge: 1; does not wrap: 1. "
        "As rci3, each doc is asked 10x (times its choices, for multiple_choice).",
    ]


@pytest.mark.parametrize(
    ("kind", "clips", "told"),
    [
        (
            "rci3",
            1,
            "a shows videos, which can also be cut in time: _trci4, _frame, _frames, _tshuffle4, _treverse (add --as trci4 for the price).",
        ),
        ("rci3", 2, "2 of these show videos, which can also be cut in time: _trci4, "),
        ("trci4", 2, None),
        ("rci3", 0, None),
    ],
)
def test_names_that_show_videos_are_told_to_be_possible_in_time(kind, clips, told):
    entries = [
        Entry(name, "task", "wraps", "", None, in_time=("wraps" if i < clips else "no", ""))
        for i, name in enumerate("ab")
    ]
    said = [line for line in tasks.lines(tasks.Catalogue(entries, kind, 10)) if "in time" in line]
    assert len(said) == (told is not None)
    assert all(line.startswith(told) for line in said)


def test_a_quick_run_asks_at_most_so_often_also_where_the_docs_are_not_known():
    entry = Entry("a", "task", "wraps", "", None)
    *_, last = tasks.lines(tasks.Catalogue([entry], "rci3_quick", 10))
    assert last.startswith("Wraps: 1. As rci3_quick, each doc is asked at most 10x, until ")
