"""The real command line, and what its runs leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from polars.testing import assert_frame_equal

from lmms_patch.resources import folder
from lmms_patch.runs import catalogue
from lmms_patch.runs.run import places, read
from tests.harness import warm
from tests.making.docs import in_table

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
    path = places(folder)[which]
    return {task: flat(values) for task, values in json.loads(path.read_bytes())["results"].items()}


def flat(values):
    """The host's columns of a task by metric, of the last filter pipeline."""
    return {key.partition(",")[0]: value for key, value in values.items() if "," in key and "_stderr" not in key}


def numbers(result):
    """The columns of a wrapped task by name, the primary metric on full images and on best cells among them."""
    analysis = result.analysis
    over_cells = {f"{result.metric}_mpp{n}": grid.mpp.value for n, grid in analysis.grids.items()}
    return {**catalogue.columns(analysis, result.kind), result.metric: analysis.fip.value, **over_cells}


def results(folder):
    """By task, the results of the newest run of a folder."""
    return {result.task: result for result in read(places(folder)[-1]).results}


def same_tables(one, two):
    """Check that the newest runs of two folders left the same tables."""
    first, second = results(one), results(two)
    assert first.keys() == second.keys()
    for task in first:
        assert_frame_equal(first[task].frame(), second[task].frame())


def samples(folder, task):
    """doc id -> line of the host's log, of the newest run of a task, with the doc's record under ``patch``."""
    path = sorted(Path(folder).rglob(f"*_samples_{task}.jsonl"))[-1]
    lines = {line["doc_id"]: line for line in map(json.loads, path.read_text().splitlines())}
    table = path.with_suffix(".parquet")
    wrapped = [one for one in read(table).results if one.task == task and one.kind.suffix] if table.exists() else []
    records = {doc_id: record for one in wrapped for doc_id, record in in_table(one).items()}
    return {doc: line | ({"patch": records[doc]} if doc in records else {}) for doc, line in lines.items()}


def answers(folder, task):
    return {doc_id: line["filtered_resps"] for doc_id, line in samples(folder, task).items()}
