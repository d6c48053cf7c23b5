"""The recipes of CONTRIBUTING.md, done: their changes in a copy of the tree, and what it says in a process that sees only the copy."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from lmms_patch.runs.run import read
from lmms_patch.runs.tabular import rows_of
from scripts.docs.catalogue import numbers
from tests.making.runs import mc_run, write_run
from tests.places import ROOT
from tests.sizes import DEEP

MOST_FILES = 3
DO = """
import json, sys
from pathlib import Path

from lmms_patch.present.report import figures
from lmms_patch.runs.run import read
from lmms_patch.runs.tabular import rows_of
from tests.making.reports import undrawn
from scripts.docs.catalogue import numbers
from tests.making.runs import mc_run, write_run
from tests.making.typed import typed

earlier, out, deep = Path(sys.argv[1]), Path(sys.argv[2]), bool(int(sys.argv[3]))
if not deep:
    figures.write = undrawn

path = write_run(out / "run", {"toy_rci2": mc_run(n=120)})
(out / "few.yaml").write_text("schema: 1\\nrules:\\n  - {name: few, metric: 'only_cell*', max: 0.4}\\n")
(out / "fip.yaml").write_text("schema: 1\\nrules:\\n  - {name: score, metric: fip, min: 0.1}\\n")
told = {
    "records": [read(path).results[0].frame(["doc_id", "score"]).group_by("doc_id", maintain_order=True).agg("score")["score"].to_list()],
    "show": typed("show", path.parent, "--wide"),
    "gate": typed("gate", path.parent, "--config", out / "few.yaml"),
    "report": typed("report", path.parent, "--output", out / "page"),
    "page": "only_cell2" in (out / "page" / "index.html").read_text(),
    "rows": rows_of(read(path).results).to_dicts(),
    "earlier": rows_of(read(earlier).results).to_dicts(),
    "earlier_gate": typed("gate", earlier.parent, "--config", out / "fip.yaml"),
    "again": typed("analyze", earlier.parent, "--json", out / "again.json"),
    "metrics": json.loads((out / "again.json").read_text())["runs"][0]["tasks"][0]["metrics"],
}
print(json.dumps(told))
"""


def recipe(what):
    """The changes of one recipe, as CONTRIBUTING.md shows them."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(rf"^\*\*A new {what}\*\*.*?^```diff\n(.*?)^```$", text, re.M | re.S)
    assert found is not None, f"CONTRIBUTING.md shows the changes of a new {what} as a diff"
    return found[1]


def changed(copy, copied, *recipes):
    """Make a copy of the tree with the changes of some recipes; of folders that they do not touch, links."""
    for name in ("lmms_patch", "tests", "scripts", "docs", "configs", "tasks"):
        if name in copied:
            shutil.copytree(
                ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.mp4", "*.parquet")
            )
        else:
            (copy / name).symlink_to(ROOT / name)
    for one in recipes:
        done = subprocess.run(
            ["git", "apply", "--recount", "--whitespace=nowarn", "-"],
            input=one,
            text=True,
            cwd=copy,
            capture_output=True,
        )
        assert done.returncode == 0, (
            f"the change that CONTRIBUTING.md shows no longer fits the files; write it anew: {done.stderr}"
        )
    return copy


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the tree with a new number."""
    return changed(tmp_path_factory.mktemp("tree"), ("lmms_patch", "tests", "scripts", "docs"), recipe("number"))


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
def earlier(tmp_path_factory):
    """The results file of a run without the new number, of the same docs as the run with it."""
    return write_run(tmp_path_factory.mktemp("earlier"), {"toy_rci2": mc_run(n=120)})


@pytest.fixture(scope="module")
def told(tree, earlier, tmp_path_factory):
    (tree / "do.py").write_text(DO, encoding="utf-8")
    return json.loads(
        done(tree, "do.py", str(earlier), str(tmp_path_factory.mktemp("out")), str(int(DEEP))).splitlines()[-1]
    )


@pytest.mark.parametrize("what", ["number", "command", "kind of view with a number"])
def test_a_recipe_touches_three_files_at_most(what):
    assert 1 < len(re.findall(r"^\+\+\+ ", recipe(what), re.M)) <= MOST_FILES


def test_the_number_stands_everywhere(told):
    """The share by its definition, from the records: no full marks on the full image, some on a cell."""
    (records,) = told["records"]
    only = sum(max(cells) == 1 and full < 1 for full, *cells in records) / len(records)
    assert 0.05 < only < 0.4
    assert "only cell" in told["show"][1]
    assert f"{only:.3f}" in told["show"][1]
    assert told["gate"][0] == 0, told["gate"][1]
    assert told["report"][0] == 0
    assert told["page"]
    (row,) = (row for row in told["rows"] if row["measure"] == "only_cell2")
    assert row["value"] == pytest.approx(only)
    assert row["low"] < only < row["high"]
    assert row["grid"] == 2


def test_earlier_runs_keep_their_numbers_and_pass_their_gates(told, earlier):
    """An earlier run lacks the new number until ``analyze`` computes it."""
    before = rows_of(read(earlier).results).to_dicts()
    assert len(before) >= 8
    assert [row for row in told["earlier"] if row["measure"] != "only_cell2"] == json.loads(json.dumps(before))
    assert all(row["value"] is None for row in told["earlier"] if row["measure"] == "only_cell2")
    assert told["earlier_gate"][0] == told["again"][0] == 0, told["earlier_gate"][1]
    (new,) = (row["value"] for row in told["rows"] if row["measure"] == "only_cell2")
    assert told["metrics"]["only_cell2"] == pytest.approx(new)


def test_the_docs_have_it(tree):
    done(tree, "scripts/docs/catalogue.py", "--write")
    page = (tree / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert "| `only_cell<n>`; `_low`, `_high` | share of docs that only the best cell solves |" in page
    assert "`only_cell<n>`; `_low`, `_high`" not in dict(numbers()), "the tree itself has no such number"


GRAY = """
import json, sys
from pathlib import Path

from PIL import Image
from lmms_patch.ask.spec import parse
from lmms_patch.ask.views import cut, views_of
from lmms_patch.runs.run import read
from lmms_patch.runs.tabular import rows_of
from tests.making.runs import views_run, write_run
from tests.making.typed import typed

out, deep = Path(sys.argv[1]), bool(int(sys.argv[2]))

better, worse = (write_run(out / name, {"toy_gray": views_run("gray", shares)}) for name, shares in {"a": (0.9, 0.6), "b": (0.9, 0.3)}.items())
image = Image.new("RGB", (4, 2), (200, 0, 0))
(out / "few.yaml").write_text("schema: 1\\nrules:\\n  - {name: few, metric: drop, max: 0.4}\\n")
print(json.dumps({
    "views": [view.kind for view in views_of(parse("toy_gray"))],
    "modes": {mode: cut(Image.new("RGBA", (4, 2), (200, 0, 0, 90)).convert(mode), views_of(parse("toy_gray"))[1]).convert("RGBA").getpixel((0, 0)) for mode in ("RGB", "RGBA", "LA", "L", "P", "1", "CMYK")},
    "pixels": [list(cut(image, view).getdata())[0] for view in views_of(parse("toy_gray"))],
    "show": typed("show", better.parent),
    "compare": typed("compare", better.parent, worse.parent),
    "gate": [typed("gate", one.parent, "--config", out / "few.yaml") for one in (better, worse)],
    "analyze": typed("analyze", better.parent, "--draws", "200"),
    "board": typed("leaderboard", better.parent, "--output", out / "board"),
    "page": not deep or [typed("report", better.parent, "--output", out / "page")[0], "without colour" in (out / "page" / "index.html").read_text()] == [0, True],
    "rows": {row["measure"]: [row["value"], row["low"], row["high"]] for row in rows_of(read(better).results).to_dicts()},
    "unsolved": typed("unsolved", better.parent),
    "wrong": read(better).results[0].frame(["doc_id", "score"]).group_by("doc_id", maintain_order=True).max().filter(score=0)["doc_id"].to_list(),
}))
"""


@pytest.fixture(scope="module")
def kind_told(tmp_path_factory):
    """What a tree with a new kind and a new command says of runs whose model knows 90 % of the docs, and 60 % or 30 % without colour."""
    tree = changed(
        tmp_path_factory.mktemp("gray"), ("lmms_patch",), recipe("kind of view with a number"), recipe("command")
    )
    (tree / "do.py").write_text(GRAY, encoding="utf-8")
    return json.loads(done(tree, "do.py", str(tmp_path_factory.mktemp("out")), str(int(DEEP))).splitlines()[-1])


def test_a_new_kind_has_its_score_and_its_drop_everywhere(kind_told):
    """90 % of the docs are right on the full image, 60 % of all without colour as well: 30 % are lost."""
    assert kind_told["views"] == ["full", "gray"]
    full, gray = kind_told["pixels"]
    assert full == [200, 0, 0]
    assert gray == [round(0.299 * 200)] * 3, "the luma of red"
    for mode, (red, green, blue, alpha) in kind_told["modes"].items():
        assert red == green == blue, mode
        assert alpha == (90 if mode in ("RGBA", "LA", "P") else 255), mode
    for name, value in {"fip": 0.9, "gray": 0.6, "drop": 0.3, "gray_kept": 2 / 3}.items():
        found, low, high = kind_told["rows"][name]
        assert found == pytest.approx(value)
        assert low < value < high
    for command in ("show", "analyze"):
        status, printed = kind_told[command]
        assert status == 0, printed
        assert re.search(r"without colour +0\.900 +0\.250 +0\.600 \[", printed), printed
        assert re.search(r"without colour +\+0\.300 \[", printed), printed
    status, printed = kind_told["compare"]
    assert status == 0
    assert "gray" in printed
    assert "0.600" in printed
    assert re.search(r"^kept +0\.667 +0\.333 +-0\.333 \[", printed.replace("\N{MINUS SIGN}", "-"), re.M), printed
    assert [status for status, _ in kind_told["gate"]] == [0, 1]
    assert kind_told["board"][0] == 0, kind_told["board"]
    assert kind_told["page"]


def test_a_new_command_says_what_the_records_say(kind_told):
    docs = ", ".join(map(str, kind_told["wrong"]))
    assert len(kind_told["wrong"]) == 30
    assert kind_told["unsolved"] == [0, f"toy_gray: 30 docs: {docs}\n"]
