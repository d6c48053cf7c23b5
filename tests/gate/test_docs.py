"""What docs/gate.md and action.yml tell people to paste works."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from lmms_patch import schemas
from lmms_patch.cli import main
from lmms_patch.gate import rules
from tests.gate import lean

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.S)]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """``out/new`` and ``out/last`` below the current folder."""
    for name in ("new", "last"):
        lean.write(tmp_path / "out" / name, [lean.task(*lean.planted(400, 0.8, 0.6))])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_end_with_the_line_that_the_page_shows(runs, capsys):
    commands = re.findall(r"^    (lmms-patch gate .*)$", PAGE, re.M)
    assert len(commands) == 2
    for command in commands:
        assert main(command.split()[1:]) == 0
        assert f"    {capsys.readouterr().out.splitlines()[-1]}\n" in PAGE
    assert json.loads((runs / "gate.json").read_text())["status"] == 0


def test_rules_are_read_and_every_key_is_explained():
    example = BLOCKS[0]
    assert [rule.name for rule in rules.parse(example).rules] == ["the score does not drop", "the index can be read"]
    jsonschema.validate(example, schemas.load("gate-config"))
    table = PAGE.partition("| key | type |")[2].partition("\n\n")[0]
    for key in rules.RULE:
        assert f"`{key}`" in table
    for name in rules.shipped():
        assert f"`{name}`" in PAGE


def test_the_workflow_uses_the_action_as_it_is():
    (step,) = [step for step in BLOCKS[1]["jobs"]["gate"]["steps"] if step.get("uses", "").startswith("OWNER/lmms-patch")]
    assert set(step["with"]) <= set(ACTION["inputs"])
    assert {name for name, one in ACTION["inputs"].items() if one.get("required")} <= set(step["with"])


def test_no_input_of_the_action_is_pasted_into_a_script():
    assert ACTION["runs"]["using"] == "composite"
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
        used = set(re.findall(r"\$(?:\{)?([A-Z_]+)", step["run"]))
        assert used - {"RUNNER_TEMP", "GITHUB_OUTPUT"} == set(step["env"])
    named = re.findall(r"inputs\.(\w+)", (ROOT / "action.yml").read_text())
    assert set(named) == set(ACTION["inputs"])


@pytest.mark.parametrize(("least", "status"), [(0.7, 0), (0.9, 1), (0.8, 3), ("x", 2)])
def test_the_step_of_the_action_ends_as_the_gate_does(runs, least, status):
    (step,) = [step for step in ACTION["runs"]["steps"] if step.get("id") == "gate"]
    program = runs / "temp dir" / "lmms-patch" / "bin" / "lmms-patch"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/usr/bin/env bash\nexec "{sys.executable}" -m lmms_patch.cli "$@"\n')
    program.chmod(0o755)
    config = "rules $(touch pwned).yaml"
    (runs / config).write_text(yaml.safe_dump({"schema": 1, "rules": [{"name": "a", "metric": "fip", "min": least}]}))
    inputs = {"GATE_OUT": "out/new", "GATE_CONFIG": config, "GATE_BASELINE": "", "GATE_JSON": "gate.json", "GATE_JUNIT": "gate.xml"}
    assert set(inputs) == set(step["env"])
    env = {**os.environ, **inputs, "RUNNER_TEMP": str(runs / "temp dir"), "GITHUB_OUTPUT": str(runs / "output"), "PYTHONPATH": str(ROOT)}
    (runs / "step.sh").write_text(step["run"])
    done = subprocess.run(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "step.sh"], cwd=runs, env=env, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert (runs / "output").read_text() == f"status={status}\n"
    assert json.loads((runs / "gate.json").read_text())["status"] == status
    assert not (runs / "pwned").exists()
