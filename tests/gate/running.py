"""Runs ``lmms-patch gate``; in every call, exit status, printed verdict, JSON and JUnit must agree."""

import contextlib
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import yaml

from lmms_patch.app import cli
from lmms_patch.errors import RecordError
from tests.making.files import reworked

VALUE = {"metric": "fip", "min": 0.1}
DROP = {"metric": "fip", "max_drop": 0, "margin": 0.02}
STATUS = {0: "pass", 1: "fail", 2: "bad input", 3: "inconclusive"}


@dataclass
class Ended:
    status: int
    out: str
    err: str
    json: dict
    junit: ElementTree.Element

    @property
    def calls(self):
        return [one["verdict"] for one in self.json["verdicts"]]

    def of(self, rule=None, metric=None, task=None):
        wanted = {"rule": rule, "metric": metric, "task": task}
        found = [
            one
            for one in self.json["verdicts"]
            if all(value is None or one[key] == value for key, value in wanted.items())
        ]
        assert len(found) == 1, [(one["rule"], one["metric"], one["task"]) for one in self.json["verdicts"]]
        return found[0]


def rules_file(folder: Path, *rules, **defaults):
    """Rules, each a dict; a missing name is made up."""
    path = folder / "gates.yaml"
    named = [{"name": f"rule {i}", **rule} for i, rule in enumerate(rules)]
    path.write_text(yaml.safe_dump({"schema": 1, **({"defaults": defaults} if defaults else {}), "rules": named}))
    return path


def gate(capsys, tmp_path, out, config, baseline=None, *more):
    """Run the command, and check that everything it says agrees."""
    files = [tmp_path / "verdict" / name for name in ("gate.json", "gate.xml")]
    argv = ["gate", str(out), "--config", str(config), "--json", str(files[0]), "--junit", str(files[1]), *more]
    status = cli.main([*argv, *(["--baseline", str(baseline)] if baseline else [])])
    printed = capsys.readouterr()
    data = json.loads(files[0].read_text())
    suite = ElementTree.fromstring(files[1].read_bytes())
    _agree(status, printed, data, suite)
    return Ended(status, printed.out, printed.err, data, suite)


def _agree(status, printed, data, suite):
    assert data["status"] == status
    assert data["verdict"] == STATUS[status]
    warned = any(one["warned"] for one in data["verdicts"])
    begins = {0: "PASS, but warned of " if warned else "PASS ", 1: "FAIL ", 2: "BAD INPUT: ", 3: "INCONCLUSIVE "}
    assert data["sentence"].startswith(begins[status])
    assert data["counts"].endswith(f"(exit status {status})")
    calls = [one["verdict"] for one in data["verdicts"] if not one["warned"]]
    expected = 1 if "fail" in calls else 3 if "inconclusive" in calls else 0
    if status == 2:
        (line,) = printed.err.splitlines()
        assert line == f"lmms-patch: {data['error']}"
        assert not [line for line in printed.out.splitlines() if not line.startswith("::")]
        assert not data["verdicts"]
        assert len(suite.findall(".//error")) == 1
    else:
        assert status == expected
        assert printed.err == ""
        first, second = printed.out.splitlines()[:2]
        assert first == data["sentence"]
        assert second.startswith(data["counts"])
        assert len(suite.findall(".//testcase")) == len(data["verdicts"])
    assert int(suite.get("failures")) == len(suite.findall(".//failure")) == sum(call != "pass" for call in calls)
    assert (
        int(suite.get("skipped")) == len(suite.findall(".//skipped")) == sum(one["warned"] for one in data["verdicts"])
    )
    counted = {
        word: int(n)
        for n, word in re.findall(
            r"(\d+) (fail|inconclusive(?: \(only warned of\))?|pass)", data["counts"].partition("verdict")[2]
        )
    }
    if status != 2:
        assert counted.get("fail", 0) == calls.count("fail")
        assert counted.get("pass", 0) == calls.count("pass")


def refused(ended, *said):
    assert ended.status == 2
    for words in said:
        assert words in ended.err
    return ended


def copied(run, to=None):
    """An earlier run with the same answers, as a baseline: the same files elsewhere, but begun at another time."""
    to = to or run.with_name(run.name + " before")
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(run, to)
    for path in to.rglob("*_samples_*.parquet"):
        with contextlib.suppress(RecordError):  # damaged on purpose
            reworked(path, run="before")
    return to
