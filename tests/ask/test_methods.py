"""A method of another package: an entry point brings a kind of view, a number and a sentence, without a change in ours."""

import json
import os
import subprocess
import sys

import pytest

from tests.places import ROOT

UPSIDE = """
def kinds():
    from lmms_patch.ask.kinds import Kind

    return [Kind("upside", "full image, and the image upside down", full=True, view="upside", beside="upside down")]


def cut(image, view):
    return image.rotate(180)


def numbers():
    from lmms_patch.runs.catalogue import Number, without_interval

    def kept(analysis, key):
        return without_interval(analysis.curve["beside"].value / analysis.fip.value, analysis.fip.n)

    of = lambda kind, keys: [None] * (kind.name == "upside")
    return [Number("kept", "share of the score that stays upside down", of, kept, measured=True, label="Kept upside down")]


def finding(case):
    return f"{'most' if case.measures['kept'].value > 0.5 else 'little'} of the score stays upside down in {{}}"
"""
DO = """
import contextlib, io, json, sys
from pathlib import Path

from PIL import Image
from lmms_patch.app.cli import main
from lmms_patch.ask.spec import parse
from lmms_patch.ask.views import cut, views_of
from tests.making.runs import views_run, write_run

def typed(*line):
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()) as errors:
        status = main(list(map(str, line)))
    return [status, printed.getvalue() + errors.getvalue()]

out = Path(sys.argv[1])
run = write_run(out / "run", {"toy_upside": views_run("upside", (0.9, 0.6))}).parent
(out / "few.yaml").write_text("schema: 1\\nrules:\\n  - {name: few, metric: kept, max: 0.4}\\n")
image = Image.new("RGB", (2, 1))
image.putpixel((0, 0), (9, 9, 9))
print(json.dumps({
    "pixel": cut(image, views_of(parse("toy_upside"))[1]).getpixel((1, 0)),
    "show": typed("show", run, "--wide"),
    "gate": typed("gate", run, "--config", out / "few.yaml"),
    "board": [*typed("leaderboard", run, "--output", out / "board"), (out / "board" / "leaderboard.csv").read_text()],
    "report": [*typed("report", run, "--quiet", "--output", out / "page"), (out / "page" / "report.json").read_text()],
}))
"""


def installed(folder, name, code):
    """Put a package with an entry point of the group of methods into a folder, as pip does."""
    (folder / f"{name}.py").write_text(code)
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[lmms_patch.methods]\n{name} = {name}\n")


def ran(folder, *line):
    """Run Python in a process that sees the packages in a folder."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}
    return subprocess.run([sys.executable, *line], env=env, capture_output=True, text=True, check=True, cwd=ROOT)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    installed(folder, "upside", UPSIDE)
    return json.loads(ran(folder, "-c", DO, str(tmp_path_factory.mktemp("out"))).stdout.splitlines()[-1])


def test_its_kind_shows_its_pixels(told):
    assert told["pixel"] == [9, 9, 9]


def test_its_sentence_is_a_finding_and_its_view_has_a_table(told):
    status, printed = told["show"]
    assert status == 0
    assert printed.startswith(
        "- Most of the score stays upside down in toy (full image 0.900, upside down 0.600, chance 0.250)."
    )
    assert "+0.300 [+0.250, +0.350]" in printed


def test_its_number_is_in_gates_boards_and_reports(told):
    """0.6 / 0.9 is above 0.4."""
    assert told["gate"][0] == 1
    assert "FAIL toy: kept 0.667 (at most 0.4)" in told["gate"][1]
    for place in ("board", "report"):
        assert told[place][0] == 0, told[place]
        assert "kept" in told[place][-1].lower(), place


def test_a_method_that_raises_is_left_out_with_a_line(tmp_path):
    installed(tmp_path, "broken", "raise RuntimeError('no luck')")
    installed(
        tmp_path, "half", UPSIDE.replace("def numbers():", "def numbers():\n    raise KeyError('x')\n\ndef more():")
    )
    done = ran(
        tmp_path, "-c", "import lmms_patch.runs.catalogue as c, lmms_patch.ask.kinds as k; print('upside' in k.KINDS)"
    )
    assert done.stdout == "True\n"
    assert done.stderr.splitlines() == [
        "lmms-patch: the method broken is left out: RuntimeError: no luck",
        "lmms-patch: the method half is left out: KeyError: 'x'",
    ]


def test_a_kind_of_ours_is_never_replaced(tmp_path):
    installed(tmp_path, "same", UPSIDE.replace('Kind("upside"', 'Kind("rci"'))
    done = ran(tmp_path, "-c", "import lmms_patch.ask.kinds as k; print(k.KINDS['rci'].index)")
    assert done.stdout == "rci\n"
    assert done.stderr.startswith("lmms-patch: a kind 'rci' is there already")
