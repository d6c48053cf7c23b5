"""``lmms-patch gate``."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.commands.common import examples
from lmms_patch.errors import PatchError
from lmms_patch.text import printed

if TYPE_CHECKING:
    from lmms_patch.gate.judge import Judgement


@examples(
    "# is the new checkpoint worse than the last one? (a rules file that comes with lmms-patch)",
    "lmms-patch gate out/new --config model-regression --baseline out/last",
    "# your own rules, and files for a build server",
    "lmms-patch gate out --config gates.yaml --json gate.json --junit gate.xml",
    "# is a benchmark fit to be released?",
    "lmms-patch gate out --config benchmark-release",
)
def command(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The --output_path of runs (of each model and task the newest), or one *_results.json.")],
    config: Annotated[
        str,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Rules in YAML, or the name of shipped ones: model-regression, benchmark-release, model-compliance, magic.",
        ),
    ],
    baseline: Annotated[Path | None, typer.Option("--baseline", "-b", metavar="DIR", help="Earlier runs, for max_drop and max_rise.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all verdicts as JSON (lmms-patch schema gate).")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML: one testcase per verdict.")] = None,
    summary: Annotated[
        Path | None, typer.Option("--summary", metavar="FILE", help="Append a Markdown summary; default: the file that GITHUB_STEP_SUMMARY names.")
    ] = None,
    annotations: Annotated[
        bool | None, typer.Option("--annotations/--no-annotations", help="Print GitHub annotations; default: where GITHUB_ACTIONS is true.")
    ] = None,
) -> int:
    """Hold the numbers of finished runs to rules; the exit status says whether they hold.

    0: all pass. 1: a rule failed. 2: bad input. 3: something that blocks is inconclusive. docs/gate.md has every key of the rules.
    """
    from lmms_patch.gate import outputs
    from lmms_patch.gate.judge import BAD_INPUT, Judgement, gate

    given = os.environ.get("GITHUB_STEP_SUMMARY")
    summary_file = summary or (Path(given) if given else None)
    told = os.environ.get("GITHUB_ACTIONS") == "true" if annotations is None else annotations
    mistake: PatchError | None = None
    try:
        found = gate(out, config, baseline=baseline)
    except PatchError as error:
        mistake = error
        found = Judgement((), (), config, str(out), str(baseline or ""), " ".join(str(error).split()))
    if mistake is None:
        outputs.write(found, json_file=json_file, junit_file=junit, summary_file=summary_file)
    else:
        with contextlib.suppress(PatchError):  # the first mistake is the one to tell; no earlier verdict may stay in its place
            outputs.write(found, json_file=json_file, junit_file=junit, summary_file=summary_file)
    _print(found, told)
    if mistake is not None:
        raise mistake
    assert found.status != BAD_INPUT
    return found.status


def _print(found: Judgement, told: bool) -> None:
    """Annotations, the table, and the verdict in the last line; a reader that is gone does not change the verdict."""
    from lmms_patch.gate import outputs

    encoding = sys.stdout.encoding or "utf-8"
    lines = [*(outputs.workflow_commands(found) if told else []), *([printed(outputs.text(found))] if not found.error else [])]
    try:
        for line in lines:
            print(line.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
