"""Install the gate by ``action.yml`` in an empty environment, as GitHub does, and judge a stored run: ``python scripts/action.py``.

Ends with status 1 where the installed gate does not pass a rule that holds, or passes a rule that does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
STEPS = {step["name"]: step for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]}
RULE = "schema: 1\nrules:\n- {{name: the score, task: mosaic_local_rci3, metric: score, min: {least}, allow_limit: true}}\n"
"""The stored run scores 0.733."""
WANTED = {"0.5": 0, "0.999": 1}
"""The least score of a rule -> the status that the action must end with."""


def step(name: str, folder: Path, **inputs: str) -> int:
    """Run a step with bash in a folder, with nothing of this environment but the path, and return its exit status."""
    assert inputs.keys() == STEPS[name]["env"].keys(), f"the step {name!r} takes other inputs: {STEPS[name]['env']}"
    places = {"RUNNER_TEMP": f"{folder}/temp", "GITHUB_WORKSPACE": str(folder), "GITHUB_OUTPUT": f"{folder}/output"}
    kept = {name: value for name, value in os.environ.items() if name == "HOME" or name.startswith(("PIP_", "SSL_"))}
    env = {**kept, "PATH": os.defpath, **places, **inputs}
    return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", STEPS[name]["run"]], cwd=folder, env=env).returncode


def main() -> int:
    """Install, and judge the run by a rule that holds and by a rule that does not."""
    from tests.stored import unpack

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "temp").mkdir()
        unpack(folder)
        python = str(Path(sys.executable).resolve())
        if step("Install lmms-patch", folder, LMMS_PATCH_SOURCE=str(ROOT), LMMS_PATCH_PYTHON=python):
            return 1
        found = {}
        for least in WANTED:
            (folder / "rules.yaml").write_text(RULE.format(least=least))
            given = {"CONFIG": "./rules.yaml", "OUT": "runs/demo", "BASELINE": "", "JSON": "g.json", "JUNIT": "g.xml"}
            found[least] = step("Gate", folder, **{f"GATE_{name}": value for name, value in given.items()})
        print(f"the action: status {found}, wanted {WANTED}")
        return int(found != WANTED)


if __name__ == "__main__":
    sys.exit(main())
