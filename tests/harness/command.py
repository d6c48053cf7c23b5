"""The real command line, and what its runs leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from lmms_patch.resources import folder
from lmms_patch.runs.results import results_files
from lmms_patch.runs.run import read
from tests.harness import warm

BIN = Path(sys.executable).parent


def environment(**extra):
    return {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1", **extra}


INSTALLED = (BIN / "lmms-eval",)
"""The command as it was installed, started from nothing."""


def lmms_eval(*arguments, status=0, cwd=None, command=None, first="", **extra):
    """Run the command line, warm (and ``first`` that code) or by the ``command`` that is given.

    Returns what it printed (both streams).
    """
    if command is None:
        found, *streams = warm.run(["lmms-eval", *map(str, arguments)], environment(**extra), cwd, first=first)
        printed = "".join(streams)
    else:
        done = subprocess.run(
            [*map(str, (*command, *arguments))],
            env=environment(**extra),
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=900,
        )
        found, printed = done.returncode, done.stdout + done.stderr
    assert found == status, printed[-4000:]
    return printed


def mosaic_file(name):
    return folder("tasks") / "mosaic" / name


def metrics(folder, which=-1):
    """Task -> metrics of one run of a folder, oldest first."""
    return {r.task: r.metrics for r in read(results_files(folder)[which]).results}


def details(folder, task):
    """All that the results file has of a task, of the newest run."""
    return next(r.details for r in read(results_files(folder)[-1]).results if r.task == task)


def samples(folder, task):
    """doc id -> sample line, of the newest run of a task."""
    path = sorted(Path(folder).rglob(f"*_samples_{task}.jsonl"))[-1]
    return {line["doc_id"]: line for line in map(json.loads, path.read_text().splitlines())}


def answers(folder, task):
    return {doc_id: line["filtered_resps"] for doc_id, line in samples(folder, task).items()}
