"""What ``lmms-patch tasks`` and ``coverage`` print of what was found; what is found is in tests/harness/names/test_catalog.py."""

import pytest

from lmms_patch.app import api
from lmms_patch.app.cli import main
from lmms_patch.harness.names.catalog import Entry

FOUND = [
    Entry("a", "task", "wraps", "", 1200, "f"),
    Entry("b", "group", "judge", "its scorer calls a judge", None, "f"),
    Entry("c", "task", "no", "a video task", 5, "f"),
]


def test_a_line_for_each_with_its_price(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(api, "tasks", lambda *words, **more: asked.append((words, more)) or api.Catalogue(FOUND, "rci3", 10))
    assert main(["tasks", "x*", "--as", "rci3", "--include-path", "mine"]) == 0
    assert asked == [(("x*", "rci3"), {"include_path": "mine"})]
    assert capsys.readouterr().out.splitlines() == [
        "a_rci3  [task] wraps, 1,200 docs, 12,000 requests",
        "b_rci3  [group] needs allow_judge: its scorer calls a judge",
        "c  [task] does not wrap, 5 docs, 50 requests: a video task",
        "",
        "1 wrap, 1 wrap with allow_judge, 0 are decided by the first doc, 1 do not wrap. "
        "As rci3, each doc is asked 10x (times its choices, for multiple_choice).",
    ]


@pytest.fixture
def covered(monkeypatch):
    monkeypatch.setattr(api, "coverage", lambda: FOUND)


def test_the_coverage_is_counted_and_written(covered, tmp_path, capsys):
    assert main(["coverage"]) == 0
    counted = "3 tasks: 1 wrap, 1 wrap with allow_judge, 0 are decided by the first doc, 1 do not wrap.\n"
    assert capsys.readouterr().out == counted
    page = tmp_path / "page.md"
    assert main(["coverage", "--write", str(page)]) == 0
    assert capsys.readouterr().out == f"{counted}written: {page}\n"
    assert "| all | 3 |" in page.read_text()


def test_a_page_that_cannot_be_written_is_one_line(covered, tmp_path, capsys):
    (tmp_path / "no").touch()
    assert main(["coverage", "--write", str(tmp_path / "no" / "page.md")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be written: Not a directory" in line
