"""``lmms-patch tst``."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
import yaml

from lmms_patch.app.commands import show
from lmms_patch.app.commands.common import IncludePath, JsonFile, Place, Wide, examples, watching
from lmms_patch.ask.spec import MAX_FOLDS, MIN_FOLDS, Options
from lmms_patch.errors import OptionError, require

if TYPE_CHECKING:
    from lmms_patch.app.commands.show import Run

Grouping = Literal["auto", "source", "text", "joined", "none"]


@examples(
    "# the embedded benchmark, one family of which can be answered without looking",
    "lmms-patch tst mosaic",
    "# ten folds, and first a check that nothing leaks",
    "lmms-patch tst mosaic_text --folds 10 --check",
    "# a small language model in place of features and trees",
    "lmms-patch tst mosaic_text --diagnostic lora --model-args model=Qwen/Qwen2.5-0.5B-Instruct",
)
def tst(
    task: Annotated[str, typer.Argument(metavar="TASK", help="A base task, group or tag, such as gqa.")],
    diagnostic: Annotated[
        Literal["rf", "lora"],
        typer.Option("--diagnostic", help="rf: features and trees, on the CPU; lora: a language model."),
    ] = "rf",
    folds: Annotated[int, typer.Option("--folds", metavar="K", help="Number of folds, 2 to 50.")] = 5,
    grouping: Annotated[
        Grouping | None,
        typer.Option("--grouping", help="What stays in one fold; auto if left out: the source, where it is known."),
    ] = None,
    model_args: Annotated[
        str,
        typer.Option(
            "--model-args", metavar="K=V,...", help="Arguments of the diagnostic, such as model=forest,trees=300."
        ),
    ] = "",
    check: Annotated[
        bool, typer.Option("--check", help="First see on these docs that nothing leaks from held-out ones (rf only).")
    ] = False,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="The first N docs only.")] = None,
    include_path: IncludePath = None,
    output: Annotated[Place, typer.Option("--output", metavar="OUT", help="Folder for results and sample log.")] = Path(
        "out/tst"
    ),
) -> Run:
    """Test-set Stress-Test: can a text-only model, cross-validated on the test set, answer without looking?"""
    from lmms_patch.app.watched import RunError, last_line, lmms_eval

    # lmms-eval takes long to start: what is missing is said before
    require("tst" if diagnostic == "rf" else "lora")
    if check and diagnostic != "rf":
        raise OptionError("--check: a language model has no features to check; it is for --diagnostic rf")
    if not MIN_FOLDS <= folds <= MAX_FOLDS:
        raise OptionError(f"--folds must be {MIN_FOLDS} to {MAX_FOLDS}, not {folds}")
    name = f"{task}_tst{folds}"
    given = {} if grouping is None else {"grouping": grouping}
    Options.from_mapping(given, "lmms-patch tst")
    before = set(_results(output := Path(output)))
    with tempfile.TemporaryDirectory(prefix="lmms_patch_") as folder, watching() as watch:
        places = [str(include_path)] if include_path else []
        if given:
            config = {"task": name, "base": task, "kind": "tst", "folds": folds, **given}
            text = f"class: !function lmms_patch.Wrap\n{yaml.safe_dump(config, sort_keys=False)}"
            Path(folder, f"{name}.yaml").write_text(text, encoding="utf-8")
            places.append(folder)
        options = ["--model", f"tst_{diagnostic}", "--tasks", name, "--output_path", str(output)]
        arguments = ",".join(part for part in (model_args, "check=True" if check else "") if part)
        options += ["--model_args", arguments] if arguments else []
        options += ["--limit", str(limit)] if limit is not None else []
        options += ["--include_path", os.pathsep.join(places)] if places else []
        log = lmms_eval(options, output, watch)
    new = [path for path in _results(output) if path not in before]
    if not new:
        raise RunError(f"{output}: no samples tables here from this run; {last_line(log)}; all it said: {log}")
    return show.show(new[-1])


def _results(folder: Path) -> list[Path]:
    from lmms_patch.runs.run import places

    return places(folder) if any(folder.rglob("*_samples_*.parquet")) else []


def display(run: Run, json_file: JsonFile = None, wide: Wide = False) -> None:
    """Print what ``lmms-patch show`` prints."""
    show.display(run, json_file=json_file, wide=wide)
