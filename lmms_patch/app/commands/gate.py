"""``lmms-patch gate``."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import decorated, examples
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
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="The --output_path of runs (of each model and task the newest), or one *_results.json."
        ),
    ],
    config: Annotated[
        str,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Rules in YAML, or the name of shipped ones: model-regression, benchmark-release, model-compliance, video-regression, "
            "video-release, magic.",
        ),
    ],
    baseline: Annotated[
        Path | None, typer.Option("--baseline", "-b", metavar="DIR", help="Earlier runs, for max_drop and max_rise.")
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write all verdicts as JSON (lmms-patch config schemas/gate)."),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML: one testcase per verdict.")
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary",
            metavar="FILE",
            help="Append a Markdown summary; default: the file that GITHUB_STEP_SUMMARY names.",
        ),
    ] = None,
    annotations: Annotated[
        bool | None,
        typer.Option(
            "--annotations/--no-annotations", help="Print a GitHub annotation; default: where GITHUB_ACTIONS is true."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also list what passed, and say what the runs show.")] = False,
) -> int:
    """Hold the numbers of finished runs to rules; the exit status says whether they hold.

    0: all pass. 1: a rule failed. 2: bad input. 3: something that blocks is inconclusive. docs/gate.md has every key of
    the rules.
    """
    from lmms_patch.gate import outputs
    from lmms_patch.gate.judge import BAD_INPUT, Judgement, gate

    given = os.environ.get("GITHUB_STEP_SUMMARY")
    summary_file = summary or (Path(given) if given else None)
    told = os.environ.get("GITHUB_ACTIONS") == "true" if annotations is None else annotations
    # Before the gate: a build must not read the verdicts of an earlier gate where this one is killed.
    forget(json_file, junit)
    mistake: BaseException | None = None
    try:
        judgement = gate(out, config, baseline=baseline)
    except BaseException as error:
        # Whatever went wrong, the files must say that nothing was judged.
        mistake = error
        said = (
            str(error)
            if isinstance(error, PatchError)
            else f"ended by {type(error).__name__} before anything was judged: {error}"
        )
        judgement = Judgement((), (), config, str(out), str(baseline or ""), " ".join(said.split()))
    if mistake is None:
        outputs.write(judgement, json_file=json_file, junit_file=junit, summary_file=summary_file)
    else:
        # A second error, from writing, must not hide the first.
        with contextlib.suppress(PatchError):
            outputs.write(judgement, json_file=json_file, junit_file=junit, summary_file=summary_file)
    _print(judgement, every, told, summary_file is not None)
    if mistake is not None:
        raise mistake
    assert judgement.status != BAD_INPUT
    return judgement.status


def forget(*files: Path | None) -> None:
    """Remove an earlier gate's verdicts, which would pass for this gate's if this gate were killed.

    No other file is touched.
    """
    for path in files:
        if path is None:
            continue
        with contextlib.suppress(OSError):
            with open(path, "rb") as start:
                head = start.read(200)
            # Only files that a gate wrote are removed, by their first bytes.
            if head.startswith(b'{\n  "schema": 1,\n  "status":') or b'<testsuites name="lmms-patch gate"' in head:
                os.unlink(path)


def misused(argv: Sequence[str]) -> None:
    """Forget earlier verdicts where the command line cannot be read: nothing is judged then, and nothing written."""
    for option in ("--json", "--junit"):
        for place, word in enumerate(argv):
            name, _, value = word.partition("=")
            if name == option:
                forget(Path(value or next(iter(argv[place + 1 :]), "")))


def _print(judgement: Judgement, every: bool, told: bool, summarised: bool) -> None:
    """Print the verdict in the first line, then the counts and what did not pass; for GitHub an annotation at the end.

    In GitHub Actions the job summary has the facts, and the log only the first of them: each stands once on a page. The
    exit status is the
    verdict: a reader that is gone, a full disk or a closed stdout does not change it.
    """
    from lmms_patch.gate import outputs

    # stdout was closed before we started
    if sys.stdout is None:
        return
    encoding = sys.stdout.encoding or "utf-8"
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = []
    if told and summarised:
        lines = [outputs.headline(judgement), f"{judgement.counts}; the job summary has them all"]
    elif not judgement.error:
        lines = [outputs.text(judgement, every=every, width=width)]
    # coloured last, since ``printed`` takes control characters away
    shown = [] if judgement.error else [_coloured(printed(line, encoding)) for line in lines]
    if told and (annotation := outputs.annotation(judgement, "the job summary" if summarised else "the log")):
        # A character that the encoding lacks must not end the gate.
        shown.append(annotation.encode(encoding, "backslashreplace").decode(encoding))
    try:
        for line in shown:
            print(line)
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            # Python flushes stdout once more at its end, and would fail there with a status of its own
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _coloured(text: str) -> str:
    """Return a text with a coloured first word for a verdict on a terminal."""
    for word, colour in (("FAIL", "red"), ("PASS", "green"), ("INCONCLUSIVE", "yellow")):
        if text.startswith(f"{word} ") and decorated():
            return typer.style(word, fg=colour, bold=True) + text[len(word) :]
    return text
