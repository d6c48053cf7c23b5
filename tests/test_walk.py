"""The walks of docs/architecture.md: their stops are there, and about as much code runs on them as the page says."""

import importlib
import re
import subprocess
import sys

import pytest

from scripts.walk import counts, functions
from tests.places import ROOT
from tests.sizes import DEEP

PAGE = (
    (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("## A newcomer's walk\n")[1].split("\n## ")[0]
)
WALKS = PAGE.split("\n### ")[1:]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.splitlines()[0])
def test_a_walk_has_at_most_eight_stops_and_each_name_is_in_the_code(walk):
    stops = re.findall(r"^(\d+)\. ", walk, re.M)
    assert stops == [str(at + 1) for at in range(len(stops))]
    assert 5 <= len(stops) <= 8
    named = re.findall(r"`((?:[a-z_]+/)*[a-z_]+)(?:\.([A-Za-z_.]+))?`", walk)
    found = [(path, names) for path, names in named if (ROOT / "lmms_patch" / f"{path}.py").is_file()]
    assert len(found) >= len(stops)
    for path, names in found:
        at = importlib.import_module(f"lmms_patch.{path.replace('/', '.')}")
        for name in filter(None, names.split(".")):
            at = getattr(at, name)


def test_functions_that_run_are_counted_and_no_others(tmp_path):
    from lmms_patch import errors

    found = functions(lambda: errors.nearest("rci", ["rcj"]))
    assert ("errors.py", "nearest") in found
    assert ("errors.py", "shown") not in found
    assert counts({("a.py", "f"), ("a.py", "C.g"), ("b/c.py", "f")}) == (2, 3)


@pytest.mark.skipif(not DEEP, reason="two commands under a profiler take half a minute; make test-deep has this test")
def test_as_much_runs_as_the_page_says():
    """Within a twentieth: a function more is no reason to rewrite the page."""
    done = subprocess.run([sys.executable, "-m", "scripts.walk"], cwd=ROOT, capture_output=True, text=True, check=True)
    measured = [
        tuple(map(int, one)) for one in re.findall(r"^one \w+: (\d+) modules, (\d+) functions$", done.stdout, re.M)
    ]
    said = [
        tuple(int(one.replace(",", "")) for one in pair)
        for pair in re.findall(r"([\d,]+) modules and ([\d,]+) functions", PAGE)
    ]
    assert len(measured) == len(said) == 2
    for ours, theirs in zip(measured, said, strict=True):
        assert ours == pytest.approx(theirs, rel=0.05)
