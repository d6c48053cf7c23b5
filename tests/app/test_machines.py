"""The files that docs/machines.md shows: a shell and a YAML reader take them, and the tasks that they ask for are names that wrap."""

import re
import subprocess

import yaml

from lmms_patch.ask.spec import parse
from tests.places import ROOT

PAGE = (ROOT / "docs" / "machines.md").read_text(encoding="utf-8")
BLOCKS = {language: re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S) for language in ("bash", "yaml")}


def test_a_shell_runs_the_slurm_script_up_to_the_evaluation(tmp_path):
    """Each job of the array asks for its own tasks, into its own folder.

    ``accelerate`` is stood for by a program that notes its words.
    """
    [script] = BLOCKS["bash"]
    (jobs,) = re.findall(r"--array=0-(\d+)", script)
    (tmp_path / "accelerate").write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    (tmp_path / "accelerate").chmod(0o755)
    asked = []
    for job in range(int(jobs) + 1):
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_ARRAY_TASK_ID": str(job)}
        words = subprocess.run(
            ["bash", "-eu", "-c", script], env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        asked.append(words[words.index("--tasks") + 1])
        assert words[words.index("--output_path") + 1] == f"out/{job}"
        assert words[words.index("--main_process_port") + 1] == "0", "two jobs on one node do not ask for one port"
    assert len(set(asked)) == len(asked)
    assert [parse(name).kind.name for names in asked for name in names.split(",")] == ["rci", "blind"] * len(asked)


def test_the_skypilot_file_keeps_answers_outside_of_the_machine():
    [file] = map(yaml.safe_load, BLOCKS["yaml"])
    subprocess.run(["bash", "-n", "-c", file["run"]], check=True)
    [mounted] = [place for place, mount in file["file_mounts"].items() if mount["mode"] == "MOUNT"]
    words = file["run"].replace("\\\n", " ").split()
    assert words[words.index("--output_path") + 1].startswith(mounted + "/")
    assert all(parse(name) for name in words[words.index("--tasks") + 1].split(","))
