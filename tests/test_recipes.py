"""The recipe of CONTRIBUTING.md for a number, done: its changes in a copy of the tree, and what it says in a process that sees only the copy."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from lmms_patch.runs.catalogue import documented
from tests.places import ROOT
from tests.sizes import DEEP

RECIPE = re.compile(r"^\*\*A new number\*\*.*?^```diff\n(.*?)^```$", re.M | re.S)
MOST_FILES = 3
DO = """
import contextlib, io, json, sys
from pathlib import Path

from lmms_patch.app.cli import main
from lmms_patch.present.report.figures import canvas
from lmms_patch.runs.run import read
from lmms_patch.runs.tabular import numbers_of
from tests import stored
from tests.making.reports import undrawn
from tests.making.runs import mc_run, write_run

out, deep = Path(sys.argv[1]), bool(int(sys.argv[2]))
if not deep:
    canvas.write = undrawn

def typed(*line):
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            status = main(list(map(str, line))) or 0
        except SystemExit as end:
            status = end.code or 0
    return [status, printed.getvalue() + errors.getvalue()]

run = mc_run(n=120)
path = write_run(out / "run", {"toy_rci2": run})
(out / "few.yaml").write_text("schema: 1\\nrules:\\n  - {name: few, metric: 'only_cell*', max: 0.4}\\n")
runs = stored.unpack(out / "stored")
made = stored.numbers(runs, out, main) if deep else {}
names = ("mosaic", "clips")
for name, line, file in () if deep else stored.commands(runs, out):
    if name in [f"gate {one}" for one in names] + ["analyze world_a"]:
        status, _ = typed(*line)
        made[name] = {"status": status, "wrote": stored.steady(json.loads(file.read_text().replace(str(runs), "runs").replace(str(out), "out")))}
told = {
    "records": [[[view.scores["acc"] for view in record.views] for record in read(path).results[0].records()]],
    "show": typed("show", path.parent, "--wide"),
    "gate": typed("gate", path.parent, "--config", out / "few.yaml"),
    "report": typed("report", path.parent, "--quiet", "--output", out / "page"),
    "page": "only_cell2" in (out / "page" / "index.html").read_text(),
    "rows": [row for row in numbers_of([read(path)]).to_pylist() if row["measure"] == "only_cell2"],
    "differences": list(stored.differences({name: one for name, one in stored.stored().items() if name in made}, made)),
    "known": sorted(made),
}
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def recipe():
    found = RECIPE.search((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert found is not None, "CONTRIBUTING.md shows the changes as a diff"
    return found[1]


@pytest.fixture(scope="module")
def tree(recipe, tmp_path_factory):
    """A copy of the tree with the recipe's changes."""
    copy = tmp_path_factory.mktemp("tree")
    for name in ("lmms_patch", "tests", "scripts", "docs"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.mp4", "*.parquet"))
    for name in ("configs", "tasks"):
        (copy / name).symlink_to(ROOT / name)
    done = subprocess.run(
        ["git", "apply", "--recount", "--whitespace=nowarn", "-"],
        input=recipe,
        text=True,
        cwd=copy,
        capture_output=True,
    )
    assert done.returncode == 0, (
        f"the change that CONTRIBUTING.md shows no longer fits the files; write it anew: {done.stderr}"
    )
    return copy


def done(tree, *line):
    """What a process that sees only the copy prints."""
    ran = subprocess.run(
        [sys.executable, *line],
        cwd=tree,
        env={"PYTHONPATH": str(tree), "PATH": "", "OMP_NUM_THREADS": "1"},
        text=True,
        capture_output=True,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


@pytest.fixture(scope="module")
def told(tree, tmp_path_factory):
    (tree / "do.py").write_text(DO, encoding="utf-8")
    return json.loads(done(tree, "do.py", str(tmp_path_factory.mktemp("out")), str(int(DEEP))).splitlines()[-1])


def test_the_recipe_touches_three_files_at_most(recipe):
    assert 1 < len(re.findall(r"^\+\+\+ ", recipe, re.M)) <= MOST_FILES


def test_the_number_stands_everywhere(told):
    """The share by its definition, from the records: no full marks on the full image, some on a cell."""
    (records,) = told["records"]
    only = sum(max(cells) == 1 and full < 1 for full, *cells in records) / len(records)
    assert 0.05 < only < 0.4
    assert "only cell_2" in told["show"][1]
    assert f"{only:.3f}" in told["show"][1]
    assert told["gate"][0] == 0, told["gate"][1]
    assert told["report"][0] == 0
    assert told["page"]
    (row,) = told["rows"]
    assert row["value"] == pytest.approx(only)
    assert row["low"] < only < row["high"]
    assert row["grid"] == 2


def test_earlier_runs_keep_their_numbers_and_pass_their_gates(told):
    """Nothing differs but the new number: no run of an earlier version was "changed", as one that lacks it was once."""
    assert len(told["known"]) >= 3
    odd = [one for one in told["differences"] if "only_cell" not in one]
    assert odd == []
    assert any("only_cell" in one for one in told["differences"]), "analyze computes it for an earlier run"


def test_the_docs_have_it(tree):
    done(tree, "scripts/docs/catalogue.py", "--write")
    page = (tree / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert "| `only_cell<n>`; `_low`, `_high` | share of docs that only the best cell solves |" in page
    assert "`only_cell<n>`; `_low`, `_high`" not in documented(), "the tree itself has no such number"
