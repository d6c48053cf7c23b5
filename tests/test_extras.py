"""What a plain installation can do: every optional part is hidden, and whatever needs one says what to type."""

import json
import subprocess
import sys

import pytest

from lmms_patch.app.cli import main
from lmms_patch.errors import EXTRAS, PatchError, require
from tests.harness.warm import LIGHTER
from tests.making.runs import mc_run, write_run
from tests.places import ROOT

PARTS = {
    "lora": ["peft"],
    "magic": ["cv2"],
    "report": ["altair", "vl_convert"],
    "tst": ["lightgbm", "sklearn"],
}
HIDDEN = [name for names in PARTS.values() for name in names]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return [
        str(write_run(tmp_path_factory.mktemp(name), {"toy_rci2": mc_run(n=120)}).parent) for name in ("old", "new")
    ]


CODE = """
import json
import sys
for name in HIDDEN: sys.modules[name] = None
from pathlib import Path
from lmms_patch.app.cli import main
old, new, folder = sys.argv[1:]
for line in (["show", new], ["compare", old, new], ["gate", new, "--config", "model-regression", "--baseline", old], ["report", new, "--output", folder]):
    print("STATUS", main([*line]))
print("PAGE", Path(folder).exists())
LIGHTER
from tests.harness.toys import Model, metrics, rows, run, write_task
from tests.harness.warm import index_once
index_once()
folder = Path(folder)
write_task(folder, "toy", rows(4))
print(json.dumps(sorted(metrics(run(Model(), "toy_rci3", folder), "toy_rci3"))))
"""


@pytest.fixture(scope="module")
def plain(finished, tmp_path_factory):
    """A process in which no optional part can be imported, hidden before anything else is: the commands, then a run of the harness."""
    code = CODE.replace("HIDDEN", repr(HIDDEN)).replace("LIGHTER", LIGHTER)
    line = [sys.executable, "-c", code, *finished, str(tmp_path_factory.mktemp("plain") / "page")]
    return subprocess.run(line, capture_output=True, text=True, cwd=ROOT, timeout=300)


def test_show_compare_and_gate_need_no_optional_part_and_report_says_which(plain):
    told = [line for line in plain.stdout.splitlines() if line.startswith(("STATUS", "PAGE"))]
    assert told == ["STATUS 0"] * 3 + ["STATUS 2", "PAGE False"], plain.stderr
    assert "lmms-patch: altair is not installed; type: pip install 'lmms-patch[report]'" in plain.stderr.splitlines()


def test_a_wrapped_task_needs_no_optional_part(plain):
    """``sklearn`` and the like stay hidden from the host too: it does without them where its task does."""
    assert plain.returncode == 0, plain.stderr[-2000:]
    assert "rci3" in json.loads(plain.stdout.splitlines()[-1])


def without(monkeypatch, *names):
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)


def test_the_line_of_each_part(monkeypatch, tmp_path, capsys):
    from lmms_patch.tst.lora.diagnostic import LoraDiagnostic
    from lmms_patch.tst.tree_diagnostic import RfDiagnostic

    without(monkeypatch, "lightgbm", "peft", "cv2")
    for part, module, work in (("tst", "lightgbm", RfDiagnostic), ("lora", "peft", LoraDiagnostic)):
        with pytest.raises(PatchError) as error:
            work()
        assert str(error.value) == f"{module} is not installed; type: pip install 'lmms-patch[{part}]'"
    assert (
        main(
            [
                "magic",
                "build",
                "questions.json",
                "scenes.json",
                "images",
                "--saliency",
                "maps",
                "--output",
                str(tmp_path),
            ]
        )
        == 2
    )
    assert capsys.readouterr().err == "lmms-patch: cv2 is not installed; type: pip install 'lmms-patch[magic]'\n"


def test_what_is_there_is_not_asked_for():
    for extra in EXTRAS:
        require(extra)
