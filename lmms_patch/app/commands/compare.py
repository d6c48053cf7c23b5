"""``lmms-patch compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app.commands.common import Quiet, examples, progress, say


@examples(
    "# two models on the same tasks, each in a folder of its own",
    "lmms-patch compare out/model_a out/model_b",
    "# only tasks of GQA, everything into files",
    "lmms-patch compare out/model_a out/model_b --task 'gqa*' --json compare.json --sheet compare.md",
    "# two runs of one folder: give their files",
    "lmms-patch compare out/m/20260101_120000_results.json out/m/20260201_120000_results.json",
)
def command(
    first: Annotated[Path, typer.Argument(metavar="A", help="The --output_path of a run, a folder of runs of one model, or one *_results.json.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The other; differences are B less A.")],
    task: Annotated[
        str | None, typer.Option("--task", metavar="GLOB", help="Only tasks, or base tasks, of this name; * and ? are wildcards.")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Coverage of the intervals, from 0.5 to below 1.")] = 0.95,
    draws: Annotated[
        int, typer.Option("--draws", metavar="N", help="Bootstrap draws, 200 to 100,000; 0: 10,000, and 2,000 for more than 20,000 docs.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Of the bootstrap.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write everything as JSON.")] = None,
    sheet_file: Annotated[
        Path | None, typer.Option("--sheet", metavar="FILE", help="Write the table: .csv, .md, .tex or .json, by the file's ending.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Two models, or two versions, on the same docs: which is better, and is that more than noise?"""
    import json

    from lmms_patch.app import api
    from lmms_patch.errors import OptionError
    from lmms_patch.files import write_all
    from lmms_patch.present.sheets import FORMS
    from lmms_patch.present.terminal import compare
    from lmms_patch.text import harmless

    form = None if sheet_file is None else FORMS.get(sheet_file.suffix.removeprefix(".").lower())
    if sheet_file is not None and form is None:
        raise OptionError(f"--sheet {sheet_file}: a table cannot be written as {sheet_file.suffix or 'a file without ending'!r}; {_allowed(FORMS)}")
    if sheet_file is not None and sheet_file == json_file:
        raise OptionError(f"--json and --sheet name the same file, {json_file}; give each its own")
    found = api.compare(first, second, task=task, level=level, draws=draws, seed=seed, watch=lambda pairs, label: progress(pairs, label, quiet))
    files: dict[Path, str] = {}
    if json_file is not None:
        files[json_file] = json.dumps(harmless(found.to_json()), indent=2, allow_nan=False) + "\n"
    if sheet_file is not None and form is not None:
        made = getattr(compare.sheet(found), form)()
        files[sheet_file] = made if isinstance(made, str) else json.dumps(made, indent=2, allow_nan=False) + "\n"
    write_all(files)
    say(compare.text(found))
    for path in files:
        say(f"written: {path}")


def _allowed(forms: dict[str, str]) -> str:
    return f"allowed: {', '.join('.' + ending for ending in forms)}"
