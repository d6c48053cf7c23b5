"""Every script of benchmarks/ at its tiny size: its code runs, what it checks of its own results holds, and it prints its tables.

Of those that take long, ``make test`` imports the code and reads the options.
"""

import importlib
import os
import re
import sys
from pathlib import Path
from unittest import mock

import pytest
from loguru import logger

import benchmarks
from tests.places import ROOT, SHARED
from tests.sizes import DEEP

SCRIPTS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if path.name != "__init__.py"
)
LINES = {
    "video": 4,
    "phrases": 8,
    "many": 4,
    "report": 2,
    "tables": 5,
    "lake": 5,
    "scoring": 2,
    "journal": 1,
}
"""Lines with numbers that a script prints at least; others print tables of 7 rows and more."""
LONG = {"tst", "phrases", "views", "null", "intervals", "gate", "rules"}
LEFT = re.compile(r"\b(nan|inf|None)\b")


@pytest.fixture(autouse=True)
def _nothing_stays_changed(monkeypatch):
    """A script is a process of its own: it silences logs and sets variables, for good."""
    monkeypatch.setattr(logger, "remove", lambda *_: None)
    monkeypatch.setattr(logger, "disable", lambda *_: None)
    with mock.patch.dict(os.environ):
        yield


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.usefixtures("indexed")
def test_a_tiny_run_prints_its_numbers(name, capsys, monkeypatch):
    if name.endswith(".tst") and not SHARED.is_dir():
        pytest.skip(f"{SHARED} is missing: real data, which CI has beside the project")
    script = importlib.import_module(name)
    if name.split(".")[-1] in LONG and not DEEP:
        monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
        with pytest.raises(SystemExit, match="0"):
            script.main()
        assert "--tiny" in capsys.readouterr().out
        return
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--tiny"])
    assert script.main() == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if re.search(r"\d", line)]
    assert len(lines) >= LINES.get(name.split(".")[-1], 7), lines
    assert not [line for line in lines if LEFT.search(line)]
    for row in (line for line in lines if line.startswith("|")):
        assert row.endswith("|") or "missed" in row, row


def test_a_call_apart_is_a_process_of_its_own():
    """``apart`` tells the processor time of the new process alone.

    The peak memory of a new process starts from that of its parent.
    """
    value, wall, processor, memory = benchmarks.apart(os.getpid)
    assert value != os.getpid()
    assert 0 < processor <= wall + 0.1
    assert memory > 5
    assert benchmarks.apart(os.getpid, tiny=True).value == os.getpid()


def test_a_command_that_fails_is_no_measurement(tmp_path: Path):
    with pytest.raises(AssertionError, match="failed: report"):
        benchmarks.command("report", str(tmp_path / "nothing"))
