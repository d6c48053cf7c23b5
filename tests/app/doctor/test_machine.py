"""Broken machines: folders that cannot be written, full disks, wrong variables, a hub that is switched off."""

import re
import shutil
from collections import namedtuple

import pytest

from lmms_patch.app import api
from lmms_patch.app.cli import main
from lmms_patch.app.doctor import machine
from lmms_patch.app.doctor.lines import Line, check
from tests.places import ROOT

Usage = namedtuple("Usage", "total used free")


def only(found, state):
    (one,) = [line for line in found if line.state != "ok"]
    assert one.state == state
    assert one.type
    assert "\n" not in one.said + one.type
    return one


def test_caches_that_can_be_written_or_made(tmp_path):
    env = {"HF_HOME": str(tmp_path / "not" / "yet"), "XDG_CACHE_HOME": str(tmp_path)}
    (line,) = machine.caches(env)
    assert line.state == "ok"
    assert str(tmp_path / "not" / "yet" / "hub") in line.said
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_cache_folder_that_cannot_be_written(tmp_path):
    """A file stands where the folder should be: nobody can write there, not even the superuser."""
    (tmp_path / "home").touch()
    env = {
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_CACHE": str(tmp_path),
        "HF_DATASETS_CACHE": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    line = only(machine.caches(env), "wrong")
    assert line.said == f"{tmp_path / 'home'} (HF_HOME) cannot be written: Not a directory"
    assert line.type == "HF_HOME=FOLDER, a folder that you may write to"


def free(monkeypatch, count):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 0, count))


def test_a_full_disk(monkeypatch, tmp_path):
    free(monkeypatch, 3_000_000)
    lines = machine.disk(tmp_path / "out", {"LMMS_PATCH_VIDEO_CACHE": "0.001"})
    line = only(lines, "wrong")
    assert line.said == f"3 MB free in {tmp_path}: no room for logs"
    free(monkeypatch, 500_000_000)
    assert (
        only(machine.disk(tmp_path, {"LMMS_PATCH_VIDEO_CACHE": "0.001"}), "warning").said
        == f"0.5 GB free in {tmp_path}: little room for logs"
    )


def test_clips_that_may_take_more_than_there_is(monkeypatch, tmp_path):
    free(monkeypatch, 4_000_000_000)
    line = only(machine.disk(tmp_path, {}), "warning")
    assert line.said.startswith("clips may take 5.0 GB, and ")
    assert line.type.startswith("LMMS_PATCH_VIDEO_CACHE=2.0, or ")
    assert [one.state for one in machine.disk(tmp_path, {"LMMS_PATCH_VIDEO_CACHE": "3"})] == ["ok"]


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (
            {"LMMS_PATCH_VIDEO_CACHE": "lots"},
            "LMMS_PATCH_VIDEO_CACHE must be a number of gigabytes above 0, not 'lots'",
        ),
        ({"LMMS_PATCH_PRECISION": "-1"}, "LMMS_PATCH_PRECISION"),
        ({"LMMS_PATCH_JOURNAL": "yes"}, "LMMS_PATCH_JOURNAL must be keep, off or moved, not 'yes'"),
        (
            {"LMMS_PATCH_REFERENCES": "/no/such/folder"},
            "LMMS_PATCH_REFERENCES names /no/such/folder, which is not there",
        ),
        ({"LMMS_PATCH_BUDGETS": "9"}, "LMMS_PATCH_BUDGETS is not known; did you mean LMMS_PATCH_BUDGET?"),
        ({"MAGIC_SEED": "seven"}, "MAGIC_SEED must be a whole number"),
        ({"MAGIC_SEDE": "7"}, "MAGIC_SEDE is not known; did you mean MAGIC_SEED?"),
    ],
)
def test_variables_that_say_what_is_not_allowed(env, said):
    assert said in only(machine.variables(env), "wrong").said


def test_profiles_that_are_not_there(monkeypatch):
    monkeypatch.setenv("LMMS_PATCH_PROFILES", "/no/such/folder")
    assert "LMMS_PATCH_PROFILES=/no/such/folder: no such folder" in only(machine.variables({}), "wrong").said


def test_every_variable_that_the_code_reads_is_known():
    texts = (
        path.read_text(encoding="utf-8") for path in (ROOT / "lmms_patch").rglob("*.py") if "doctor" not in path.parts
    )
    named = {name for text in texts for name in re.findall(r"""(?<![_\w])["'](LMMS_PATCH_[A-Z_]*[A-Z])["']""", text)}
    assert {"LMMS_PATCH_VIDEO_CACHE", "LMMS_PATCH_TRACEBACK", "LMMS_PATCH_JOURNAL"} <= named
    assert named <= set(machine.known_variables())


def test_variables_that_are_valid():
    env = {
        "LMMS_PATCH_VIDEO_CACHE": "2",
        "LMMS_PATCH_PRECISION": "0.05",
        "MAGIC_SEED": "7",
        "LMMS_PATCH_JOURNAL": "keep",
        "HOME": "/x",
    }
    (line,) = machine.variables(env)
    assert (line.state, line.said) == (
        "ok",
        "valid: LMMS_PATCH_JOURNAL, LMMS_PATCH_PRECISION, LMMS_PATCH_VIDEO_CACHE, MAGIC_SEED",
    )


def test_the_hub(tmp_path):
    env = {"HF_HOME": str(tmp_path)}
    assert only(machine.hub(env), "warning").type == "hf auth login"
    assert only(machine.hub({**env, "HF_HUB_OFFLINE": "1"}), "warning").said.startswith("HF_HUB_OFFLINE is set")
    assert [one.state for one in machine.hub({**env, "HF_TOKEN": "hf_Secret"})] == ["ok"]
    (tmp_path / "token").write_text("hf_Secret")
    (line,) = machine.hub({**env, "HF_HUB_OFFLINE": "0"})
    assert line.state == "ok"
    assert "Secret" not in line.said


def test_a_check_that_fails_is_a_line_and_the_others_go_on():
    @check("thing")
    def odd():
        yield Line("thing", "ok", "first")
        raise RuntimeError("no\nway")

    assert odd() == [
        Line("thing", "ok", "first"),
        Line("thing", "wrong", "could not be looked at (RuntimeError: no way)", "see what the other lines say first"),
    ]


# --- the command ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "status"), [("ok", 0), ("warning", 0), ("wrong", 1)])
def test_the_exit_status_says_whether_something_is_wrong(state, status, monkeypatch, capsys):
    asked = []
    found = [Line("a", "ok", "fine"), Line("b", state, "said", "" if state == "ok" else "this")]
    monkeypatch.setattr(api, "doctor", lambda run, *, model: asked.append((run, model)) or found)
    assert main(["doctor", "--model", "m"]) == status
    assert asked == [(None, "m")]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "ok       a: fine"
    assert ("         type: this" in printed) is (state != "ok")
    counts = {"ok": 1, "warning": 0, "wrong": 0}
    counts[state] += 1
    plural = "s" * (counts["warning"] != 1)
    assert printed[-1] == f"{counts['ok']} ok, {counts['warning']} warning{plural}, {counts['wrong']} wrong"
