"""The README's "Three uses", line by line in a newcomer's folder.

Lines that need the harness are read as a shell reads them, and run without its start (``warm``): the installed
``lmms-eval`` has a run in ``test_planted.py``. All others are pasted into a shell. The section runs the same tasks
twice, and the second run takes its answers from the harness's response cache: that a model answers alike twice is seen
in ``test_cli.py``. In ``make test`` the two tasks are asked about their first docs only.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import warm
from tests.places import ROOT
from tests.sizes import size

DOCS = size(20, None)
README = ROOT / "README.md"

pytestmark = pytest.mark.cli


def commands():
    """The indented lines of the section, in their order."""
    section = README.read_text(encoding="utf-8").split("## Three uses\n")[1].split("\n## ")[0]
    return [line.strip() for line in section.splitlines() if line.startswith("    ")]


@pytest.fixture(scope="module")
def pasted(tmp_path_factory):
    """What each command printed, and the folder it was typed in."""
    folder = tmp_path_factory.mktemp("newcomer")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    printed, more = (
        {},
        {"lmms-eval": ["--use_cache", "cache", *(["--limit", str(DOCS)] if DOCS else [])], "lmms-patch report": []},
    )
    for line in commands():
        if start := next((start for start in more if line.startswith(f"{start} ")), ""):
            status, printed[line], said = warm.run([*shlex.split(line), *more[start]], environment, folder)
        else:
            done = subprocess.run(
                ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
            )
            status, printed[line], said = done.returncode, done.stdout, done.stderr
        assert status == (1 if DOCS and " gate " in line else 0), f"{line}\n{printed[line][-2000:]}{said[-2000:]}"
    return folder, printed


def said(printed, start):
    return next(text for line, text in printed.items() if line.startswith(start))


def test_the_section_has_the_three_uses():
    names = [" ".join(line.split()[:2]) for line in commands()]
    assert [name for name in names if name.startswith("lmms-patch")] == [
        "lmms-patch show", "lmms-patch report", "lmms-patch leaderboard", "lmms-patch gate", "lmms-patch compare",
    ]  # fmt: skip


def test_a_harness_run_gives_a_table_and_a_page(pasted):
    folder, printed = pasted
    # too few docs of a small run are asked again
    needed = "What the docs need cannot be told in" if DOCS else "One cell is enough for most of what is solved in"
    assert f"{needed} mosaic_" in " ".join(said(printed, "lmms-patch show").split())
    data = json.loads((folder / "report" / "report.json").read_text())
    assert {one["base"] for one in data["results"]} == {"mosaic_local", "mosaic_count"}
    assert (folder / "report" / "index.html").read_text().count(
        "data:image/jpeg"
    ) > 5  # the examples' images, through the harness


def test_the_board_has_the_run(pasted):
    folder, _ = pasted
    assert "mosaic_vlm" in (folder / "board" / "tables" / "results.csv").read_text()
    assert (folder / "board" / "index.html").is_file()


def test_the_gate_passes_a_run_of_the_same_model(pasted):
    _, printed = pasted
    told = said(printed, "lmms-patch gate")
    if DOCS:  # the rules want 100 docs, and fail nothing else
        assert "2 fail, 2 pass" in told
        assert told.count("fail: enough docs") == 2
    else:
        assert told.startswith("PASS ")


def test_compare_sees_that_nothing_changed(pasted):
    _, printed = pasted
    assert "score the same on every doc and view" in said(printed, "lmms-patch compare")
