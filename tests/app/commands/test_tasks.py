"""What ``lmms-patch tasks`` prints of what was found.

What is found is in tests/harness/names/test_catalog.py.
"""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmms_patch.app.cli import main
from lmms_patch.app.commands import tasks
from lmms_patch.errors import RecordError
from lmms_patch.harness import task_files
from lmms_patch.harness.names import catalog
from lmms_patch.harness.names.catalog import Entry
from lmms_patch.runs.costs import Cost
from tests.making.runs import one_cell_knows, world_run, write_run

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


COST = Cost(Path("out/x_results.json"), "org/seven", ("a_rci3",), 1000, 600.0, "", 300.0, 2.5)


def test_a_finished_run_gives_time_and_tokens():
    """12,000 calls at 0.6 s, 300 tokens in and 2.5 out: 7,200 s, 3.6 million and 30,000."""
    first, second, third, *_ = said = tasks.lines(tasks.Catalogue(FOUND, "rci3", 10, COST))
    assert (
        first
        == "a_rci3  [task] wraps, 1,200 docs, 12,000 requests, by that run 2.0 h, 3,600,000 tokens in, 30,000 tokens out"
    )
    assert "by that run" not in second + third, "not known, or not possible"
    assert said[-3:-1] == [
        "That run: out/x_results.json (org/seven), 1,000 calls in 10 min, loading included.",
        "Tokens are those of a_rci3. The same machine and settings are taken for granted.",
    ]


def test_a_quick_run_is_priced_from_to():
    entry = Entry("a", "task", "wraps", "", 1200, on_wrong_images=100, expected=(2000, 5000))
    (line, *_) = tasks.lines(tasks.Catalogue([entry], "rci3_quick", 10, COST))
    assert line.endswith(", by that run 30 min to 60 min, 900,000 to 1,800,000 tokens in, 7,500 to 15,000 tokens out")


def test_a_quick_run_asks_at_most_so_often_also_where_the_docs_are_not_known():
    entry = Entry("a", "task", "wraps", "", None)
    *_, last = tasks.lines(tasks.Catalogue([entry], "rci3_quick", 10))
    assert last.startswith("Wraps: 1. As rci3_quick, each doc is asked at most 10x, until ")


def test_what_a_run_does_not_say_is_not_said():
    bare = dataclasses.replace(COST, seconds=None, why="gqa has no sample log", input_tokens=None)
    first, *_, measured, tokens, _ = tasks.lines(tasks.Catalogue(FOUND, "rci3", 10, bare))
    assert first.endswith(", by that run 30,000 tokens out")
    assert measured.endswith("1,000 calls; no time is taken from it: gqa has no sample log.")
    assert tokens.startswith("Tokens are those of a_rci3; it counted none in. ")
    nothing = dataclasses.replace(bare, output_tokens=None)
    assert "It counted no tokens." in tasks.lines(tasks.Catalogue(FOUND, "rci3", 10, nothing))[-2]


def test_the_run_is_the_newest_that_asked_the_benchmark(tmp_path, monkeypatch):
    """``out`` serves where there is one; a run that was named must be there."""

    def finished(folder, base, date):
        made = {f"{base}_rci2": world_run(one_cell_knows, n=20, base=base)}
        return write_run(tmp_path / "out" / folder, made, date=date, total_evaluation_time_seconds="60")

    monkeypatch.chdir(tmp_path)
    assert tasks._cost(None, {"toy"}) is None
    toy = finished("a", "toy", "2026-01-01T00-00-00.000000")
    other = finished("b", "other", "2026-02-01T00-00-00.000000")
    assert tasks._cost(None, {"toy"}).path.resolve() == toy
    assert tasks._cost(None, {"third"}).path.resolve() == other
    assert tasks._cost(other, {"toy"}).path == other
    with pytest.raises(RecordError, match="no such run"):
        tasks._cost(tmp_path / "nowhere", {"toy"})
    next(other.parent.glob("*_samples_*")).write_text("{")
    assert tasks._cost(None, {"toy"}) is None, "a broken file in out is not what was asked about"
