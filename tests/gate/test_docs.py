"""What docs/gate.md and action.yml tell people to paste works."""

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import jsonschema
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lmms_patch.app import schemas
from lmms_patch.app.cli import main
from lmms_patch.gate import rules
from tests.making import lean
from tests.places import ROOT
from tests.sizes import size

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


def test_commands_begin_with_the_lines_that_the_page_shows(runs, capsys):
    commands = re.findall(r"^    (lmms-patch gate .*)$", PAGE, re.M)
    assert len(commands) == 2
    for command in commands:
        assert main(command.split()[1:]) == 0
        assert f"```text\n{capsys.readouterr().out.splitlines()[0]}\n```" in PAGE
    assert json.loads((runs / "gate.json").read_text())["status"] == 0
    lean.write(runs / "out" / "new", [lean.task(*lean.planted(400, 0.63, 0.5))], date="2027-01-01T00-00-00.000000")
    assert main(commands[0].split()[1:]) == 1
    said = [block for block in capsys.readouterr().out.strip().split("\n\n") if not block.startswith("note: ")]
    assert "```text\n" + "\n\n".join(said) + "\n```" in PAGE


def test_rules_are_read_and_every_key_is_explained():
    example = BLOCKS[0]
    assert [rule.name for rule in rules.parse(example).rules] == [
        "the score does not drop",
        "the index can be read",
        "one cell does nearly as well",
    ]
    jsonschema.validate(example, schemas.load("gate-config"))
    table = PAGE.partition("| key | default |")[2].partition("\n\n")[0]
    for key in rules.Rule.model_fields:
        assert f"`{key}`" in table
    for name in rules.shipped():
        assert f"`{name}`" in PAGE


WORKFLOWS = [block for block in BLOCKS if "jobs" in block]
assert len(WORKFLOWS) == 2


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_the_workflow_uses_the_action_as_it_is(workflow):
    (step,) = [
        step for step in workflow["jobs"]["gate"]["steps"] if step.get("uses", "").startswith("OWNER/lmms-patch")
    ]
    assert set(step["with"]) <= set(ACTION["inputs"])
    assert {name for name, one in ACTION["inputs"].items() if one.get("required")} <= set(step["with"])


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_each_job_and_artifact_that_the_workflow_needs_is_in_it(workflow):
    """GitHub refuses a workflow that needs a job which it does not have (actionlint: job-needs)."""
    jobs = workflow["jobs"].values()
    assert {job["needs"] for job in jobs if "needs" in job} <= set(workflow["jobs"])
    artifacts = {
        way: [step["with"] for job in jobs for step in job["steps"] if f"/{way}-artifact@" in step.get("uses", "")]
        for way in ("upload", "download")
    }
    assert all(one in artifacts["upload"] for one in artifacts["download"])


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_rules_and_baseline_of_the_workflow_are_those_of_the_base_branch(workflow):
    steps = workflow["jobs"]["gate"]["steps"]
    assert workflow["permissions"] == {"contents": "read"}
    assert not [step for step in steps if "run" in step]
    checkouts = {step["with"]["path"]: step["with"] for step in steps if step["uses"].startswith("actions/checkout")}
    strangers = workflow[True] == ["pull_request_target"]  # YAML reads the key "on" as true
    base = checkouts.pop("base")
    assert base.get("ref") == (
        None if strangers else "${{ github.event.pull_request.base.sha }}"
    )  # None: what started the workflow, the base
    assert set(checkouts) == ({"pr"} if strangers else set())
    assert all(one["persist-credentials"] is False for one in (base, *checkouts.values()))
    given = next(step["with"] for step in steps if step["uses"].startswith("OWNER/lmms-patch"))
    assert {given["config"].partition("/")[0], given["baseline"].partition("/")[0]} == {"base"}


def test_no_input_of_the_action_is_pasted_into_a_script():
    assert ACTION["runs"]["using"] == "composite"
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
        used = set(re.findall(r"\$(?:\{)?([A-Z_]+)", step["run"]))
        assert used - {"RUNNER_TEMP", "GITHUB_OUTPUT", "GITHUB_WORKSPACE"} == set(step["env"])
    named = re.findall(r"inputs\.(\w+)", (ROOT / "action.yml").read_text())
    assert set(named) == set(ACTION["inputs"])


HOSTILE = "import pathlib, sys; pathlib.Path({mark!r}).touch(); print('gate: passed'); sys.exit(0)\n"
"""What a stranger's file does once it is run: leave a mark, and pretend that all is well."""


def run_step(name, folder, inputs):
    """Run a step of the action with bash in a folder, as a runner does."""
    (step,) = [step for step in ACTION["runs"]["steps"] if step["name"] == name]
    assert set(inputs) == set(step["env"])
    env = {**os.environ, **inputs, "RUNNER_TEMP": str(folder.parent / "temp dir"), "GITHUB_WORKSPACE": str(folder)}
    env |= {
        "GITHUB_OUTPUT": str(folder.parent / "output"),
        "PYTHONPATH": ".",
        "PYTHONSTARTUP": "sitecustomize.py",
        "PYTHONWARNINGS": "ignore",
    }
    (folder.parent / "output").unlink(missing_ok=True)
    (folder.parent / "step.sh").write_text(step["run"])
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "../step.sh"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def installed():
    """The modules that the action's first line of pip installs: of the packages on it, and of what they need, as found here."""
    step = next(step["run"] for step in ACTION["runs"]["steps"] if step["name"] == "Install lmms-patch")
    wanted = re.findall(r"[\w.-]+", re.search(r"pip install --quiet (\w.*)", step)[1])
    files, known = [], set()
    while wanted:
        name = canonicalize_name(wanted.pop())
        if name not in known:
            known.add(name)
            package = metadata.distribution(name)
            needed = map(Requirement, package.requires or ())
            wanted += [one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
            files += package.files or ()
    return sorted({file.parts[0].partition(".")[0] for file in files})


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A stranger's checkout, with two runs of which the new one is 17 points worse, and the action's first step done in it.

    Nothing is fetched: the Python that is given makes the virtual environment without pip, and puts a pip there that
    only notes how it was called; ``scripts/action.py`` installs in earnest.
    """
    top = tmp_path_factory.mktemp("runner")
    folder, stubs = top / "checkout", top / "stubs"
    for name, full in (("new", 0.63), ("last", 0.8)):
        lean.write(folder / "out" / name, [lean.task(*lean.planted(400, full, 0.5))])
    (top / "temp dir").mkdir()
    for name in (
        "venv",
        "pip",
        "sitecustomize",
        "usercustomize",
        "numpy",
        "yaml",
        "typer",
        "encodings",
        "lmms_patch/__init__",
        "lmms_patch/cli",
    ):
        file = folder / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(HOSTILE.format(mark=str(top / f"pwned-{file.stem}")))
    (folder / "a.pth").write_text(f"import pathlib; pathlib.Path({str(top / 'pwned-pth')!r}).touch()\n")
    (folder / "pip.conf").write_text("[global]\nindex-url = https://example.invalid\n")
    (folder / "pyvenv.cfg").write_text(f"home = {folder}\n")
    (folder / "model-regression").write_text(
        '{"schema": 1, "rules": [{"name": "a", "metric": "fip", "min": 0.0, "margin": 0.5}]}'
    )
    (stubs / "pip").mkdir(parents=True)
    noted = "import json, os, sys\nwith open({0!r}, 'a') as file:\n    file.write(json.dumps([sys.argv[1:], sys.flags.isolated, os.getcwd()]) + '\\n')\n"
    (stubs / "pip" / "__init__.py").touch()
    (stubs / "pip" / "__main__.py").write_text(noted.format(str(top / "pip.jsonl")))
    python = top / "python"
    python.write_text(
        f"""#!/usr/bin/env bash
set -e
"{sys.executable}" "$@" --without-pip
printf '%s\\n' "{stubs}" "{ROOT}" "{sysconfig.get_path("purelib")}" > "$(echo "${{@: -1}}"/lib/python*/site-packages)/test.pth"
"""
    )
    python.chmod(0o755)
    done = run_step("Install lmms-patch", folder, {"LMMS_PATCH_SOURCE": "/source", "LMMS_PATCH_PYTHON": str(python)})
    assert done.returncode == 0, done.stderr
    return folder


def gate_step(checkout, **inputs):
    """Run the action's second step."""
    given = {
        "OUT": "out/new",
        "CONFIG": "model-regression",
        "BASELINE": "",
        "JSON": "gate.json",
        "JUNIT": "gate.xml",
        **inputs,
    }
    return run_step("Gate", checkout, {f"GATE_{name}": value for name, value in given.items()})


def test_nothing_in_a_hostile_checkout_is_run(checkout):
    done = gate_step(checkout, BASELINE="out/last")
    assert not list(checkout.parent.glob("pwned*"))
    assert done.returncode == 1, done.stdout + done.stderr  # the model is 17 points worse, by the shipped rules
    found = json.loads((checkout / "gate.json").read_text())
    assert found["config"].endswith("model-regression.yaml")
    assert "the score does not drop" in done.stdout


MODULES_OF_THE_GATE = """
import contextlib, io, json, sys
from lmms_patch.app.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    assert main(sys.argv[1:]) == 0
files = [module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "lmms_patch"]
print(json.dumps(files))
"""


def imported(path):
    """The packages that a module imports anywhere, also in a function that seldom runs."""
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


def test_the_action_installs_all_that_modules_of_the_gate_import(runs):
    words = ["gate", "out/new", "--config", "model-regression", "--baseline", "out/last"]
    done = subprocess.run([sys.executable, "-c", MODULES_OF_THE_GATE, *words], capture_output=True, text=True)
    files = json.loads(done.stdout)
    needed = {name for file in files for name in imported(file)} - sys.stdlib_module_names - {"lmms_patch"}
    assert {"numpy", "yaml", "typer"} <= needed
    assert needed <= set(installed())


def test_pip_is_run_apart_from_the_checkout(checkout):
    calls = [json.loads(line) for line in (checkout.parent / "pip.jsonl").read_text().splitlines()]
    assert [given[0] for given, _, _ in calls] == ["install", "install"]
    assert calls[1][0][-2:] == ["--no-deps", "/source"]
    for _, isolated, where in calls:
        assert isolated == 1
        assert Path(where) == checkout.parent / "temp dir" / "lmms-patch" / "work"
        assert not list(Path(where).iterdir())


@pytest.mark.parametrize("python", ["./python", "bin/python"])
def test_a_python_of_the_checkout_is_refused(checkout, python, tmp_path):
    (tmp_path / "checkout").mkdir()
    (tmp_path / "temp dir").mkdir()
    done = run_step(
        "Install lmms-patch", tmp_path / "checkout", {"LMMS_PATCH_SOURCE": "/source", "LMMS_PATCH_PYTHON": python}
    )
    assert done.returncode == 2
    assert done.stdout.startswith("::error title=lmms-patch gate::input python: give a command such as python3")
    assert not list((tmp_path / "temp dir").iterdir())


@pytest.mark.parametrize(("least", "status"), [(0.5, 0), (0.63, 3), *size([], [(0.9, 1), ("x", 2)])])
def test_the_step_of_the_action_ends_as_the_gate_does(checkout, least, status):
    config = "rules $(touch pwned).yaml"
    (checkout / config).write_text(
        yaml.safe_dump({"schema": 1, "rules": [{"name": "a", "metric": "fip", "min": least}]})
    )
    done = gate_step(checkout, CONFIG=config)
    assert done.returncode == status, done.stdout + done.stderr
    assert (checkout.parent / "output").read_text() == f"status={status}\n"
    assert json.loads((checkout / "gate.json").read_text())["status"] == status
    assert not list(checkout.parent.glob("**/pwned*"))
