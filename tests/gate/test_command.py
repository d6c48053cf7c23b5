"""``lmms-patch gate`` from its command line: verdicts, baselines, outputs, and what is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lmms_patch.app.cli import main
from tests.gate.running import VALUE, copied, gate, refused, rules_file
from tests.making import lean
from tests.sizes import each, size

# --- outputs ----------------------------------------------------------------------------------------

HOSTILE = "<b>&\"'|`%0A::error::x\x1b[31m\x00\r\n]]>\u202e\ud800"


def test_hostile_names_stay_text_everywhere(asked, tmp_path, monkeypatch):
    run = tmp_path / "run"
    lean.write(run, [lean.task(*lean.planted(400, 0.8, 0.6))], model=HOSTILE)
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    ended = asked(run, {"name": "r " + HOSTILE[:12], "metric": "fip", "min": 0.99})
    assert ended.status == 1
    for text in (ended.out, summary.read_text()):
        assert not any(character in text for character in "\x1b\x00\r\u202e")
    (annotation,) = [line for line in ended.out.splitlines() if line.startswith("::")]
    assert annotation.startswith("::error title=lmms-patch gate::FAIL toy_rci2: acc ")
    (case,) = ended.junit.findall(".//testcase")
    assert "<b>&\"'|`%0A::error::x" in case.get("name")
    assert "<b>" not in summary.read_text()


def test_junit_counts(asked, run):
    ended = asked(
        run,
        {"metric": "fip", "min": 0.7},
        {"metric": "fip", "min": 0.8},
        {"metric": "fip", "min": 0.9},
        {"metric": "fip", "max": 0.8, "inconclusive": "warn"},
    )
    assert ended.status == 1
    assert (ended.junit.get("tests"), ended.junit.get("failures"), ended.junit.get("skipped")) == ("4", "2", "1")
    assert [one.get("classname") for one in ended.junit.findall(".//testcase")] == [
        f"rule {i}" for i in (2, 1, 3, 0)
    ]  # the worst first


def test_github_is_told_by_itself(asked, run, tmp_path, monkeypatch):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    ended = asked(run, {"metric": "fip", "min": 0.9}, {"metric": "fip", "min": 0.8, "inconclusive": "warn"})
    first, *_, last = ended.out.splitlines()
    assert last == f"::error title=lmms-patch gate::{first.replace('%', '%25')}"
    before, line = summary.read_text().split("\n", 1)
    assert (before, line.count("\n")) == ("before", 2)
    assert line.startswith("FAIL toy")
    assert "of 2 verdicts 1 fail, 1 inconclusive (only warned of)" in line
    warned = asked(run, {"metric": "fip", "min": 0.8, "inconclusive": "warn"})
    assert warned.out.splitlines()[-1].startswith("::warning title=lmms-patch gate::PASS, but warned of toy_rci2: ")
    assert "::" not in asked(run, {"metric": "fip", "min": 0.7}).out


def test_bad_input_leaves_no_earlier_verdict(asked, run):
    assert asked(run, VALUE).status == 0
    ended = asked(run, {"task": "nothing", **VALUE})
    assert (ended.status, ended.json["status"]) == (2, 2)


@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_an_output_that_cannot_be_written_is_bad_input_and_nothing_is_half_written(run, tmp_path, capsys, option):
    config = rules_file(tmp_path, VALUE)
    (tmp_path / "file").write_text("")
    others = {"--json": tmp_path / "o.json", "--junit": tmp_path / "o.xml"}
    for place in (tmp_path / "file" / "x", run):
        argv = [str(part) for name, path in {**others, option: place}.items() for part in (name, path)]
        assert main(["gate", str(run), "--config", str(config), *argv]) == 2
        printed = capsys.readouterr()
        assert printed.err.startswith(f"lmms-patch: {place}: cannot be written: ")
        assert printed.out == ""
        assert not [path for path in tmp_path.iterdir() if path.name.startswith("o.")]


def test_the_shipped_rules_on_whole_runs(capsys, tmp_path):
    full, best = lean.scored(2000, 0.8, 0.7, 0)
    lean.write(
        tmp_path / "run", [lean.task(full, best, name="toy_pcri2", looks=True), lean.stressed(n=2000, accuracy=0.25)]
    )
    assert gate(capsys, tmp_path, tmp_path / "run", "model-regression", copied(tmp_path / "run")).status == 0
    assert gate(capsys, tmp_path, tmp_path / "run", "model-compliance").status == 0
    ended = gate(capsys, tmp_path, tmp_path / "run", "benchmark-release")
    refused(ended, "needs_whole? matches no number of")  # no doc was asked again


def test_junit_is_valid_for_whatever_bytes(tmp_path):
    from lmms_patch.gate import outputs
    from lmms_patch.gate.judge import Judgement

    every = "".join(map(chr, range(0x3000))) + "\ud800\udfff\ufffe\uffff\U0001f600"
    found = Judgement((), (), every, every, every, every)
    ElementTree.fromstring(outputs.junit(found).encode())
    outputs.write(found, json_file=tmp_path / "j", junit_file=tmp_path / "x")
    assert json.loads(Path(tmp_path / "j").read_text())["status"] == 2


# --- no earlier verdict survives ----------------------------------------------------------------------


def passed_before(run, tmp_path):
    """The outputs of a gate that passed, and the arguments that write them."""
    files = [tmp_path / "g.json", tmp_path / "g.xml"]
    argv = [
        "gate",
        str(run),
        "--config",
        str(rules_file(tmp_path, VALUE)),
        "--json",
        str(files[0]),
        f"--junit={files[1]}",
    ]
    assert main(argv) == 0
    assert all('"pass"' in files[0].read_text() for _ in files)
    return argv, files


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyError("x"), 2),
        (MemoryError(), 2),
        (RecursionError("deep"), 2),
        (KeyboardInterrupt(), 130),
        (SystemExit(0), 2),
        (OSError(5, "I/O error"), 2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_gate_that_ends_in_any_error_leaves_no_verdict_of_an_earlier_one(
    run, tmp_path, capsys, monkeypatch, error, status
):
    argv, files = passed_before(run, tmp_path)
    capsys.readouterr()

    def judge(*args, **kwargs):
        raise error

    monkeypatch.setattr("lmms_patch.gate.judge.judge", judge)
    assert main(argv) == status
    assert json.loads(files[0].read_text())["status"] == 2
    assert "<error" in files[1].read_text()
    assert len(capsys.readouterr().err.splitlines()) == 1


# --- stdout ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "wanted"),
    each([">&-", "> /dev/full 2> /dev/full", *size([], ["> /dev/full", ">&- 2>&-"])], [(0.1, 0), (0.99, 1)]),
)
def test_a_stdout_that_cannot_be_written_does_not_change_the_verdict(run, tmp_path, where, wanted):
    least, status = wanted
    if "/dev/full" in where and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    config = rules_file(tmp_path, {"metric": "fip", "min": least})
    line = (
        f"'{sys.executable}' -m lmms_patch.app.cli gate '{run}' --config '{config}' --json '{tmp_path}/g.json' {where}"
    )
    assert subprocess.run(["bash", "-c", line], capture_output=True).returncode == status
    assert json.loads((tmp_path / "g.json").read_text())["status"] == status


# --- bare names -------------------------------------------------------------------------------------------


def test_a_bare_name_is_never_a_file_of_the_working_folder(run, tmp_path, capsys, monkeypatch):
    """In CI the working folder may be a stranger's checkout."""
    monkeypatch.chdir(tmp_path)
    lenient = rules_file(tmp_path, {"metric": "fip", "min": 0})
    for name in ("model-compliance", "mine"):
        (tmp_path / name).write_text(lenient.read_text())
    assert main(["gate", str(run), "--config", "model-compliance"]) != 0  # the shipped one asks more
    assert main(["gate", str(run), "--config", "mine"]) == 2
    assert "give a file, such as ./gates.yaml" in capsys.readouterr().err
    for path in ("./mine", str(tmp_path / "mine"), "./model-compliance", lenient.name):
        assert main(["gate", str(run), "--config", path]) == 0
