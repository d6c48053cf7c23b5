"""The functions of the ``lmms-patch init`` commands: files to start from, made of what is there.

``lmms_patch.api`` has them as ``api.init``.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lmms_patch
from lmms_patch import files
from lmms_patch.errors import CannotWrapError, OptionError, UnknownNameError

if TYPE_CHECKING:
    from lmms_patch.ask.spec import WrapSpec
    from lmms_patch.gate.derive import Derived
    from lmms_patch.runs.run import Run

GATES, WORKFLOW, TASKS = "gates.yaml", Path(".github", "workflows", "lmms-patch.yml"), Path("my_tasks")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
GATE_NEEDS = "loguru msgspec numpy pillow pyarrow pydantic pyyaml rich scipy typer"
"""Packages that the gate imports, as ``action.yml`` installs them: some 350 MB, while torch and all else that lmms-patch needs are gigabytes."""
_ACTION = re.compile(r"[\w.-]+/[\w.-]+@[\w./-]+")
_EXPRESSION = "${{"
"""What GitHub would replace, wherever in a workflow it stands."""


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes:
        files: their paths.
        type: what to type next, one command each.
        notes: what else to know, one line each.
    """

    files: tuple[Path, ...]
    type: tuple[str, ...]
    notes: tuple[str, ...] = ()


def _write(contents: Mapping[Path, str], force: bool) -> None:
    """Write new files, all or none.

    Raises:
        OptionError: one is there already, and ``force`` was not given.
        RecordError: one cannot be written.
    """
    there = [str(path) for path in contents if path.exists()]
    if there and not force:
        raise OptionError(
            f"{' and '.join(there)}: there already, and may have been changed; type --force to replace what is there"
        )
    for path in contents:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(
                f"{path}: cannot be written: {error.strerror}; give a folder that can be made: --output DIR"
            ) from None
    files.write_all(contents)


# --- gate -------------------------------------------------------------------------------------------


def gate(
    run: str | Path,
    *,
    output: str | Path = ".",
    action: str | None = None,
    runner: str = "ubuntu-latest",
    force: bool = False,
) -> Written:
    """Write rules for a gate with limits from a run, and a GitHub workflow that makes such a run and holds it to them.

    Args:
        run: the ``--output_path`` of runs, or one results file.
        output: the root of a repository; ``gates.yaml`` and ``.github/workflows/lmms-patch.yml`` are written below it.
        action: this repository on GitHub, with a tag or commit: ``OWNER/lmms-patch@TAG``; None: what the installation
            was made from, where it says, be it a repository on GitHub or a package index.
        runner: the label of the machine that evaluates, which needs a GPU where the model does.
        force: replace files that are there.

    Raises:
        OptionError: files that are there, or an action that is no such name.
        RecordError: there is no such run, or none of its numbers can be a limit.
    """
    from lmms_patch.gate.derive import derive

    if action is not None and not _ACTION.fullmatch(action):
        raise OptionError(
            f"--action {action}: must be a repository on GitHub with a tag or a commit, such as OWNER/lmms-patch@v{lmms_patch.__version__}"
        )
    source = action or installed_from()
    made = derive(Path(run))
    root = Path(output)
    contents = {root / GATES: made.text}
    notes = [f"left out, because the run itself does not pass it: {line}" for line in made.left_out]
    if source:
        contents[root / WORKFLOW] = workflow(made, source, runner)
        notes.append(
            "commit both files to the default branch before a pull request is judged: the rules are taken from there"
        )
    else:
        again = shlex.join(
            [
                "lmms-patch",
                "init",
                "gate",
                str(run),
                "--action",
                f"OWNER/lmms-patch@v{lmms_patch.__version__}",
                "--force",
            ]
        )
        notes.append(f"no workflow: no workflow could install lmms-patch from where this one came from; type: {again}")
    _write(contents, force)
    return Written(
        tuple(contents), (shlex.join(["lmms-patch", "gate", str(run), "--config", str(root / GATES)]),), tuple(notes)
    )


def installed_from() -> str | None:
    """Return from where a workflow can install this lmms-patch; None where nothing says.

    Returns:
        ``lmms-patch==VERSION`` of an install from a package index: pip then notes no place (PEP 610).
        ``OWNER/lmms-patch@COMMIT``, as a workflow names an action, of an install from GitHub, which pip notes. Of an
        editable install its checkout says it, where a remote branch has the commit.
    """
    try:
        noted = metadata.distribution("lmms-patch").read_text("direct_url.json")
        about = json.loads(noted) if noted else {}
    except (metadata.PackageNotFoundError, ValueError):
        return None
    # pip notes an address only of what came from no package index (PEP 610)
    if not noted:
        return f"lmms-patch=={lmms_patch.__version__}"
    if commit := about.get("vcs_info", {}).get("commit_id"):
        return _on_github(str(about.get("url", "")), str(commit))
    # a file or folder of this machine, which no workflow can reach
    if not about.get("dir_info", {}).get("editable"):
        return None
    folder = Path(lmms_patch.__file__).parent.parent
    url, commit = _git(folder, "remote", "get-url", "origin"), _git(folder, "rev-parse", "HEAD")
    # GitHub has a commit only once it was pushed
    return _on_github(url, commit) if _git(folder, "branch", "--remotes", "--contains", "HEAD") else None


def _on_github(url: str, commit: str) -> str | None:
    found = re.search(r"github\.com[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?$", url)
    return f"{found[1]}@{commit}" if found and re.fullmatch(r"[0-9a-f]{40}", commit) else None


def _git(folder: Path, *words: str) -> str:
    """Return what a git command prints; "" where it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


_JOBS = """# Made by 'lmms-patch init gate': evaluates as the run at hand was made, and holds the numbers to gates.yaml. docs/gate.md explains both.
# The rules are those of the branch that a pull request goes to. This is no protection against strangers (docs/gate.md).
name: lmms-patch
on:
  pull_request:
  workflow_dispatch:
permissions:
  contents: read
jobs:
  evaluate:
    runs-on: {runner}
    steps:
      - uses: actions/setup-python@v5
        with:
          python-version: "3.11"
      - uses: actions/checkout@v4
        with:
          persist-credentials: false
      - run: {install}
{commands}
      - uses: actions/upload-artifact@v4
        with:
          name: runs
          path: out/new
  gate:
    needs: evaluate
    runs-on: ubuntu-latest
    steps:
      - uses: actions/setup-python@v5  # before anything is checked out
        with:
          python-version: "3.11"
{before}      - uses: actions/checkout@v4
        with:
          ref: ${{{{ github.event.pull_request.base.sha || github.sha }}}}
          path: base
          persist-credentials: false
      - uses: actions/download-artifact@v4
        with:
          name: runs
          path: out/new
{gate}
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: gate
          path: |
            gate.json
            gate.xml
"""


_BY_ACTION = """\
      - uses: {action}
        with:
          out: out/new
          config: base/gates.yaml"""
_INSTALLED = """\
      - run: |
          python3 -I -m venv "$RUNNER_TEMP/lmms-patch"
          "$RUNNER_TEMP/lmms-patch/bin/python" -I -m pip install --quiet {needs}
          "$RUNNER_TEMP/lmms-patch/bin/python" -I -m pip install --quiet --no-deps {requirement}
"""
_BY_COMMAND = """\
      - run: >-
          "$RUNNER_TEMP/lmms-patch/bin/python" -I -m lmms_patch.app.cli gate out/new
          --config base/gates.yaml --json gate.json --junit gate.xml"""


def workflow(made: Derived, source: str, runner: str) -> str:
    """Return a GitHub workflow that makes the runs again that rules were derived from, and holds the new ones to the rules.

    Args:
        made: the rules, with the results that they are from.
        source: where lmms-patch is installed from: ``OWNER/lmms-patch@TAG`` on GitHub, or ``lmms-patch==VERSION`` of a
        package index.
        runner: the label of the machine that evaluates.

    Raises:
        OptionError: a word of the run that GitHub would replace by a value of its own.
    """
    runs: dict[Path, Run] = {one.run.path: one.run for one in made.results}
    commands = list(
        dict.fromkeys(
            _command(run, [one.result.task for one in made.results if one.run is run]) for run in runs.values()
        )
    )
    steps = "\n".join(f"      - run: {_scalar(command)}" for command in commands)
    repository, at, tag = source.partition("@")
    if at:
        whole, before = f"lmms-patch[all] @ git+https://github.com/{repository}@{tag}", ""
        gate = _BY_ACTION.format(action=_scalar(source))
    else:
        whole, before = source.replace("==", "[all]=="), _INSTALLED.format(needs=GATE_NEEDS, requirement=source)
        gate = _BY_COMMAND
    return _JOBS.format(
        runner=_scalar(runner), install=_scalar(f"pip install '{whole}'"), commands=steps, before=before, gate=gate
    )


def _scalar(text: str) -> str:
    """Return a text quoted for YAML, on one line.

    Raises:
        OptionError: GitHub would replace a part of it.
    """
    if _EXPRESSION in text:
        raise OptionError(
            f"{text[:80]!r}: '{_EXPRESSION}' in the settings of a run cannot be written into a workflow; GitHub would replace it"
        )
    # a string of JSON is one of YAML too, whatever it holds
    return json.dumps(text)


_KEPT = (
    "batch_size",
    "num_fewshot",
    "gen_kwargs",
    "system_instruction",
    "include_path",
    "apply_chat_template",
    "force_simple",
)
"""Options of lmms-eval that change what a model is asked or how fast; others are left out, or ``runs.run.command`` has them."""


def _command(run: Run, tasks: Sequence[str]) -> str:
    """Return the command that makes a run again, into ``out/new``. Secrets in its model arguments are left out."""
    from lmms_patch.runs import run as runs

    asked = run.about["typed"]
    limit = next(str(one.fingerprint["limit"]) for one in run.results if one.task in tasks)
    words = shlex.split(runs.command(run.adapter, run.model_args, _asked(asked.get("tasks"), tasks), limit))
    words[words.index("--output_path") + 1] = "out/new"
    for name in _KEPT:
        value = asked.get(name)
        if value not in (None, "", False):
            words += [f"--{name}", *([] if value is True else [str(value)])]
    return shlex.join(words)


def _asked(typed: Any, tasks: Sequence[str]) -> list[str]:
    """Return the tasks as they were typed, where the run says so; a group's name stands for its members."""
    return (
        [name for name in typed.split(",") if name] if isinstance(typed, str) and typed else list(dict.fromkeys(tasks))
    )


# --- task -------------------------------------------------------------------------------------------


def task(
    name: str,
    *,
    called: str | None = None,
    output: str | Path = TASKS,
    include_path: str | Path | None = None,
    force: bool = False,
) -> Written:
    """Write a task file for a way of wrapping, with every option that it takes, to be changed.

    Args:
        name: a wrapped name, such as ``gqa_rci3``: the base and the way of wrapping.
        called: the name of the new task; None: ``my_`` and the wrapped name.
        output: the folder of task files, for ``--include_path``.
        include_path: a folder with more task files, where the base is one of them.
        force: replace a file that is there.

    Raises:
        PatchError: no such wrapped name, a base that cannot be wrapped so, a file that is there, or an output outside
            ``include_path``.
    """
    from lmms_patch.ask.spec import parse
    from lmms_patch.harness.names import catalog, configs, lookup

    own = _checked(called or f"my_{name}", "--name")
    if include_path is not None and not Path(output).resolve().is_relative_to(Path(include_path).resolve()):
        raise OptionError(
            f"--output {output}: must be in --include-path, since lmms-eval reads one such folder; type --output {shlex.quote(str(include_path))}"
        )
    with catalog.quietly():
        manager = catalog.task_manager(include_path)
        spec = parse(name)
        if spec is None or name in manager.all_tasks:
            close = lookup.meant(manager.all_tasks, name)
            hint = f"did you mean {' or '.join(close)}?" if close else f"add a way of wrapping, such as {name}_rci3"
            raise UnknownNameError(f"{name}: not a wrapped name; {hint}")
        lookup.require_base(manager, spec)
        judged = any(facts.judge for facts in configs.leaves(manager, spec.base))
        # the file to be written allows the judge, so a judge is no reason to refuse here
        spec = replace(spec, options=spec.options.model_copy(update={"allow_judge": judged}))
        configs.check(manager, spec)
        known = _given(manager, spec)
        if (found := catalog.entry(manager, spec.base, spec)).verdict == "no":
            raise CannotWrapError(f"{name}: {spec.base} cannot be wrapped: {found.reason}")
        _check_free(manager, own, "--name", Path(output) / f"{own}.yaml")
    path = Path(output) / f"{own}.yaml"
    _write({path: _task_file(own, spec, known)}, force)
    folder = shlex.quote(str(include_path or output))
    return Written(
        (path,), (f"lmms-eval --model MODEL --include_path {folder} --tasks {own} --output_path out --log_samples",)
    )


def _checked(name: str, option: str) -> str:
    """Check a name that the user gives a new task, and return it.

    Raises:
        OptionError: the name holds a character that task names cannot have.
    """
    if not _NAME.fullmatch(name):
        raise OptionError(f"{option} {name!r}: must be letters, digits, '_', '-' and '.', such as my_gqa_rci3")
    return name


def _check_free(manager: Any, name: str, option: str, path: Path) -> None:
    """Refuse the name of a task that is there, unless the new file takes its place: the older one would win, and the new file never be read."""
    row = manager.task_index.get(name)
    if row is not None and Path(str(row["yaml_path"])).resolve() != path.resolve():
        raise OptionError(
            f"{option} {name}: lmms-eval has a task, group or tag of this name, which would win; give another"
        )


_OF_KIND = {
    "regions": ("boxes", "relevant", "box_form", "box_image"),
    "folds": ("grouping", "fold_seed", "fold_seeds", "features"),
    "clips": ("timeline",),
    "asked": ("exit", "quick", "precision", "budget", "target", "pilot", "reference"),
    "images": ("images", "min_side", "min_cell"),
}
"""Options that only some ways of wrapping take; all others belong to each."""


def _takes(spec: WrapSpec) -> set[str]:
    """Return the options that a way of wrapping takes."""
    from lmms_patch.ask.spec import Options

    kind = spec.kind
    holds = {
        "regions": kind.own_boxes,
        "folds": bool(kind.folds),
        "clips": kind.needs_video,
        "asked": bool(kind.index),
        "images": kind.needs_image and not kind.needs_video,
    }
    out = set(Options.model_fields) - {name for group, names in _OF_KIND.items() if not holds[group] for name in names}
    return out if kind.takes_null else out - {"null"}


def _given(manager: Any, spec: WrapSpec) -> dict[str, Any]:
    """Return the options that a single base already has, from its own file or a profile."""
    from lmms_patch.harness.names import configs

    leaves = list(configs.leaves(manager, spec.base))
    # the members of a group may differ in their options, and the file has one value for all
    if len(leaves) != 1:
        return {}
    options = configs.options_over(leaves[0].metadata, spec, leaves[0].name)
    return {
        name: getattr(options, name)
        for name in type(options).model_fields
        if getattr(options, name) != getattr(spec.options, name)
    }


def _task_file(name: str, spec: WrapSpec, known: Mapping[str, Any]) -> str:
    """Return the text of a task file: what is wrapped and how, then each option with its value, as a comment."""
    numbers = list(spec.grids) or list(spec.kind.default_grids)
    shape = [f"folds: {spec.folds}"] if spec.kind.folds else [f"grids: {json.dumps(numbers)}"] if numbers else []
    judge = ["allow_judge: true  # its scorer calls a judge model, once per view"] if spec.options.allow_judge else []
    quick = ["quick: true"] if spec.options.quick else []
    head = [
        f"# {spec.name}, with options of your own. Each has a value that serves: take away the '#' of those that you change.",
        "# docs/options.md says more of each.",
        f"task: {name}",
        "class: !function lmms_patch.Wrap",
        f"base: {spec.base}",
        f"kind: {spec.kind.name}",
        *shape,
        *quick,
        *judge,
    ]
    return "\n".join([*head, "", *_option_lines(spec, known)]) + "\n"


def _option_lines(spec: WrapSpec, known: Mapping[str, Any]) -> Iterator[str]:
    """Yield two lines for each option that a way of wrapping takes: what it is, and its value."""
    from lmms_patch.ask.spec import Options

    for name, field in Options.model_fields.items():
        # what is true stands above
        if name not in _takes(spec) or getattr(spec.options, name) is True:
            continue
        said = " ".join((field.description or "").partition("\n\n")[0].replace("``", "").split())
        value = known.get(name, getattr(spec.options, name))
        shown = "" if value is None else " " + json.dumps(list(value) if isinstance(value, tuple) else value)
        yield f"# {said}"
        yield f"#{json.dumps(name) if name == 'null' else name}:{shown}{'  # of the base itself, or of its profile' if name in known else ''}"
