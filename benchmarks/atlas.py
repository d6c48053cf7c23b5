"""One table of models × benchmarks: what the image is worth, how much of it one cell holds, and what survives in words.

    python benchmarks/atlas.py benchmarks/data/atlas.yaml            # prints what it would ask, and how often
    python benchmarks/atlas.py benchmarks/data/atlas.yaml --go       # asks; start it again after a kill, it goes on

A plan names models and benchmarks of lmms-eval. Each model is asked each benchmark as ``_rci3_quick`` (a part of the
cells), ``_blind`` and ``_caption``, by one lmms-eval command into ``OUTPUT/<model>``; a model whose results are there
is not asked again. At the end stand ``OUTPUT/atlas.md`` (the table), ``atlas.parquet`` (every number with its interval)
and ``OUTPUT/board``. benchmarks/README.md says what was run so far, and on what.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import pyarrow.parquet as pq

from benchmarks import parse
from lmms_patch.app import api
from lmms_patch.errors import OptionError, PatchError

KINDS = ("rci3_quick", "blind", "caption")
COLUMNS = {
    ("rci", "fip"): "full image",
    ("blind", "score"): "no image",
    ("caption", "caption"): "its caption",
    ("rci", "rci3"): "RCI_3",
    ("rci", "rci3_adj"): "luck-corrected RCI_3",
}
"""By kind and number, the columns of the table."""
TINY = "models: [{name: mosaic, model: mosaic_vlm}]\nbenchmarks: [mosaic_local]\nlimit: 8\n"


class Model(msgspec.Struct, forbid_unknown_fields=True):
    """A model as lmms-eval's command line names it; its ``limit`` stands in place of the plan's."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[\w.-]+$")]
    model: str
    args: str = ""
    limit: int | None = None


class Plan(msgspec.Struct, forbid_unknown_fields=True):
    """The models and benchmarks of the table.

    With ``limit``, only the first docs of each benchmark are asked, for a trial. ``plugin`` is a package with ``models``
    and ``tasks`` of your own, as lmms-eval takes it (``LMMS_EVAL_PLUGINS``).
    """

    models: list[Model]
    benchmarks: list[str]
    limit: int | None = None
    plugin: str | None = None


def main() -> int:
    """Print the costs; with ``--go`` ask what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", nargs="?", help="a YAML file: models (name, model, args), benchmarks, limit")
    parser.add_argument("--output", type=Path, default=Path("out/atlas"))
    parser.add_argument("--go", action="store_true", help="ask the models; without it, only the costs are printed")
    given = parse(parser, go=True)
    text = TINY if given.tiny and given.plan is None else Path(given.plan or parser.error("name a plan")).read_text()
    try:
        plan = msgspec.yaml.decode(text, type=Plan)
        print(costs(plan))
    except (msgspec.ValidationError, PatchError) as error:
        parser.error(str(error))
    if not given.go:
        print("nothing was asked; add --go to ask")
        return 0
    failed = [model.name for model in plan.models if not asked(model, plan, given.output)]
    write(plan, given.output)
    if failed:
        print(f"without results: {', '.join(failed)}; their last lines stand above, start again to go on")
    return 1 if failed else 0


def costs(plan: Plan) -> str:
    """Return how many docs and at most how many requests each benchmark has, a line each.

    Raises:
        PatchError: lmms-eval does not know a benchmark, or it cannot be wrapped.
    """
    lines = []
    for benchmark in plan.benchmarks:
        for entry in api.tasks(benchmark, "rci3", include_path=_tasks(plan)).entries:
            docs = min(entry.docs or 0, plan.limit or sys.maxsize)
            lines.append(f"{entry.name}: {docs:,} docs, at most {14 * docs:,} requests a model, and wrong images")
    return "\n".join(lines)


def asked(model: Model, plan: Plan, output: Path) -> bool:
    """Ask a model what is missing; return whether its results are there afterwards."""
    folder = output / model.name
    tasks = [f"{benchmark}_{kind}" for benchmark in plan.benchmarks for kind in KINDS]
    if not _done(folder, tasks):
        command = ["lmms-eval", "--model", model.model, "--tasks", ",".join(tasks), "--output_path", str(folder)]
        command += ["--log_samples", *(["--model_args", model.args] if model.args else [])]
        limit = model.limit or plan.limit
        command += ["--limit", str(limit)] if limit else []
        more = {}
        if plan.plugin and (own := _tasks(plan)):
            # lmms-eval 0.7.3 adds the tasks of a plugin after it has listed the tasks: without this it finds none of them.
            command += ["--include_path", own]
            # A script's process finds packages beside the script, not those of the checkout.
            places = [str(Path(own).parents[len(plan.plugin.split("."))]), os.environ.get("PYTHONPATH", "")]
            more = {"LMMS_EVAL_PLUGINS": plan.plugin, "PYTHONPATH": os.pathsep.join(filter(None, places))}
        print(" ".join(command), flush=True)
        # The lmms-eval beside this Python: the folder of a virtual environment need not be on PATH.
        program = Path(sys.executable).with_name(command[0])
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, check=False, env={**os.environ, **more}
        )
        if done.returncode:
            print("\n".join(done.stderr.splitlines()[-5:]))
    return _done(folder, tasks)


def _tasks(plan: Plan) -> str | None:
    """Return the folder of the plugin's tasks."""
    if plan.plugin is None:
        return None
    try:
        return str(Path(str(importlib.import_module(f"{plan.plugin}.tasks").__file__)).parent)
    except ImportError as error:
        raise OptionError(f"plugin: {error}") from error


def _done(folder: Path, tasks: Sequence[str]) -> bool:
    """Return whether a folder has results of all these tasks."""
    try:
        known = {row["task"] for row in api.results([folder]).to_pylist()}
    except PatchError:
        return False
    return known >= set(tasks)


def write(plan: Plan, output: Path) -> None:
    """Write the table, the numbers and the board of the models that have results."""
    folders = [folder for model in plan.models if (folder := output / model.name).is_dir()]
    if not folders:
        return
    numbers = api.results(folders)
    pq.write_table(numbers, output / "atlas.parquet")
    api.leaderboard(folders, output=output / "board")
    rows = [{**row, "model": Path(row["path"]).relative_to(output).parts[0]} for row in numbers.to_pylist()]
    (output / "atlas.md").write_text(table(plan, rows))
    print((output / "atlas.md").read_text())


def table(plan: Plan, rows: Sequence[dict[str, object]]) -> str:
    """Return a Markdown table: a row for each benchmark and model, numbers with their 95 % intervals, or why there is none.

    A model is called as the plan does, which is its folder.
    """
    of = {(row["model"], row["base"], row["kind"], row["measure"]): row for row in rows}
    named = {row["model"] for row in rows}
    names = [model.name for model in plan.models if model.name in named]
    lines = [
        "| benchmark | model | docs | " + " | ".join(COLUMNS.values()) + " |",
        "|---|---|---|" + "---|" * len(COLUMNS),
    ]
    for benchmark in plan.benchmarks:
        for name in names:
            own = [of.get((name, benchmark, kind, measure)) for kind, measure in COLUMNS]
            docs = next((row["docs"] for row in own if row is not None), "")
            lines.append(f"| {benchmark} | {name} | {docs} | " + " | ".join(map(_cell, own)) + " |")
    return "\n".join(lines) + "\n"


def _cell(row: dict[str, object] | None) -> str:
    """Return a number with its interval."""
    if row is None:
        return "not asked"
    value, low, high = (row[name] for name in ("value", "low", "high"))
    if not isinstance(value, float):
        return re.split(r"[:;,(]", str(row["reason"] or "not defined"))[0].strip()
    return f"{value:.2f}" + (f" [{low:.2f}, {high:.2f}]" if isinstance(low, float) and isinstance(high, float) else "")


if __name__ == "__main__":
    sys.exit(main())
