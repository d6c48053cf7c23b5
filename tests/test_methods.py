"""A method of another package: a file and an entry point bring a kind, a number, a sentence and a table, without a change in ours."""

import json
import re
import subprocess
import sys
import types

import pytest

from tests.places import ROOT

METHOD = re.search(r"^```python\n(.*?)^```$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M | re.S)[1]
DO = """
import json, sys
from pathlib import Path

from PIL import Image
from lmms_patch.ask.spec import parse
from lmms_patch.ask.views import cut, views_of
from lmms_patch.present.report import figures
from lmms_patch.runs.run import read
from lmms_patch.runs.tabular import rows_of
from tests.making.reports import undrawn
from tests.making.runs import views_run, write_run
from tests.making.typed import typed

out = Path(sys.argv[1])
figures.write = undrawn

spec = parse("toy_upside")
better, worse = (write_run(out / name, {"toy_upside": views_run("upside", shares)}) for name, shares in {"a": (0.6, 0.9), "b": (0.3, 0.5)}.items())
image = Image.new("RGB", (1, 2), (200, 0, 0))
image.putpixel((0, 1), (0, 0, 200))
(out / "few.yaml").write_text("schema: 1\\nrules:\\n  - {name: few, metric: upside_only, max: 0.25}\\n")
(out / "base.yaml").write_text("schema: 1\\nrules:\\n  - {name: base, kind: upside, metric: upside_only, max_rise: 0.05}\\n")
records = read(better).results[0].frame(["doc_id", "score"]).group_by("doc_id", maintain_order=True).agg("score")["score"].to_list()
said = {
    "views": [view.kind for view in views_of(spec)],
    "pixels": [cut(image, views_of(spec)[1]).getpixel((0, y)) for y in (0, 1)],
    "records": records,
    "rows": {row["measure"]: [row["value"], row["low"], row["high"]] for row in rows_of(read(better).results).to_dicts()},
    "show": typed("show", better.parent, "--wide"),
    "analyze": typed("analyze", better.parent, "--draws", "200"),
    "compare": typed("compare", worse.parent, better.parent),
    "gate": [typed("gate", one.parent, "--config", out / "few.yaml") for one in (worse, better)],
    "baseline": typed("gate", better.parent, "--config", out / "base.yaml", "--baseline", worse.parent),
    "report": typed("report", better.parent, "--output", out / "page"),
    "data": json.loads((out / "page" / "report.json").read_text()),
    "board": typed("leaderboard", better.parent, "--output", out / "board"),
    "leaderboard": (out / "board" / "leaderboard.csv").read_text(),
}
print(json.dumps(said))
"""


def ran(tmp_path, source, code, *more, value="turned:UPSIDE"):
    """What a process prints that sees a package of one file, installed with an entry point."""
    site = tmp_path / "site"
    info = site / "turned-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (site / "turned.py").write_text(source, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: turned\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[lmms_patch.methods]\nturned = {value}\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", code, *more],
        cwd=ROOT,
        env={"PYTHONPATH": f"{site}:{ROOT}", "PATH": "", "OMP_NUM_THREADS": "1"},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What every reader says of a model that knows 60 % of the docs on the whole image, and 90 % with the image upside down."""
    folder = tmp_path_factory.mktemp("method")
    return json.loads(ran(folder, METHOD, DO, str(folder)).stdout.splitlines()[-1])


def test_its_kind_asks_its_view(said):
    assert said["views"] == ["full", "upside"]
    assert said["pixels"] == [[0, 0, 200], [200, 0, 0]], "the image of a red and a blue pixel, upside down"


def test_its_number_is_that_of_the_records(said):
    """The share by its definition; compare pairs it doc by doc."""
    only = sum(full < 1 and upside == 1 for full, upside in said["records"]) / len(said["records"])
    assert only == pytest.approx(0.3)
    value, low, high = said["rows"]["upside_only"]
    assert value == pytest.approx(only)
    assert low < only < high
    assert said["rows"]["upside"][0] == pytest.approx(0.9)
    assert said["rows"]["drop"][0] == pytest.approx(-0.3)


@pytest.mark.parametrize("command", ["show", "analyze"])
def test_show_has_its_sentence_its_column_and_its_table(said, command):
    status, printed = said[command]
    assert status == 0, printed
    sentence, *_ = printed.split("\n\n")
    assert "Turned upside down, an image may answer more: toy (" in sentence
    assert "only upside down 0.300" in " ".join(sentence.split())
    assert "_only" not in sentence, "a number of the method is no point of the kind's curve"
    assert re.search(r"^task +only upside down\n-+\ntoy_upside +0\.300 \[0\.2\d\d, 0\.3\d\d\]$", printed, re.M)
    if command == "show":
        assert re.search(r"lost \[95 %\] .*only upside down", printed), "with --wide it stands in the kind's own table"


def test_compare_and_a_gate_judge_its_number(said):
    status, printed = said["compare"]
    assert status == 0, printed
    assert re.search(r"^only upside down +0\.200 +0\.300 +\+0\.100 \[\+0\.0", printed, re.M)
    assert [status for status, _ in said["gate"]] == [0, 3]
    assert "upside_only 0.200 → 0.300 (+0.100" in said["baseline"][1]


def test_report_and_board_have_it(said):
    assert said["report"][0] == 0, said["report"]
    (finding,) = said["data"]["findings"]
    assert finding["text"].startswith("Turned upside down, an image may answer more: toy (")
    (result,) = said["data"]["results"]
    assert result["measures"]["upside_only"]["value"] == pytest.approx(0.3)
    assert "upside" in [sheet["name"] for sheet in said["data"]["tables"]["runs"]]
    assert said["board"][0] == 0, said["board"]
    head, row = said["leaderboard"].splitlines()
    assert float(dict(zip(head.split(","), row.split(","), strict=True))["upside_only"]) == pytest.approx(0.3)


KNOWN = "from lmms_patch.ask.kinds import KINDS\nprint(sorted(KINDS)[-3:], len(KINDS))"


@pytest.mark.parametrize(
    ("source", "value", "said"),
    [
        ("raise ImportError('no torch')", "turned:UPSIDE", "ImportError: no torch"),
        ("", "turned:UPSIDE", "AttributeError: module 'turned' has no attribute 'UPSIDE'"),
        (METHOD.replace('Kind("upside"', 'Kind("rci"'), "turned:UPSIDE", "the kind rci is taken"),
        (
            METHOD.replace('Kind("upside"', 'Kind("up2"'),
            "turned:UPSIDE",
            "the kind up2 is taken, or not of letters alone",
        ),
        (
            METHOD.replace("full=True", "full=True, suffix=False"),
            "turned:UPSIDE",
            "the kind upside has folds or no suffix",
        ),
        ("class UPSIDE:\n    pass", "turned:UPSIDE", "TypeError: not a lmms_patch.ask.methods.Method"),
        (
            METHOD.replace("yield Own(", "yield None.name("),
            "turned:UPSIDE",
            "'NoneType' object has no attribute 'name'",
        ),
    ],
)
def test_a_method_that_cannot_be_used_is_left_out_and_said(tmp_path, source, value, said):
    from lmms_patch.ask.kinds import KINDS

    done = ran(tmp_path, source, KNOWN, value=value)
    assert done.stdout == f"{sorted(KINDS)[-3:]} {len(KINDS)}\n"
    (line,) = done.stderr.splitlines()
    assert f"the method turned ({value}) is left out: " in line
    assert said in line


OF_NO_METHOD = [
    *(f"compare/{name}.py" for name in ("checks", "engine", "result", "tasks")),
    *(f"present/{name}.py" for name in ("findings", "report/gather", "report/across", "report/run_sheets")),
    *(f"{folder}/*.py" for folder in ("gate", "present/board", "runs")),
]


@pytest.mark.parametrize("pattern", OF_NO_METHOD)
def test_what_reads_every_result_imports_no_method_by_name(pattern):
    """But ``rci``, which makes the analysis of every wrapped task, whatever its method."""
    for path in (ROOT / "lmms_patch").glob(pattern):
        found = re.findall(r"^ *(?:from|import) lmms_patch\.(?:tst|magic)\b.*", path.read_text(encoding="utf-8"), re.M)
        assert found == [], path


def test_a_gate_on_runs_without_magic_loads_none_of_it():
    code = "import sys, lmms_patch.gate.judge\nprint([one for one in sys.modules if one.startswith(('lmms_patch.magic', 'lmms_patch.tst'))])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        text=True,
        capture_output=True,
    )
    assert done.stdout == "[]\n", done.stderr


def test_each_kind_of_ours_has_its_method():
    from lmms_patch.ask.kinds import KINDS
    from lmms_patch.magic.score.results import LOWER_IS_BETTER

    assert {name: kind.home for name, kind in KINDS.items() if kind.home != "rci"} == {"tst": "tst", "magic": "magic"}
    assert KINDS["rci"].method.recompute(None, {}, seed=0) is None
    assert [
        KINDS["magic"].method.better(types.SimpleNamespace(about=types.SimpleNamespace(magic={})), name)
        for name in LOWER_IS_BETTER
    ] == [False] * 3
