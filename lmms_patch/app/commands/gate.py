"""``lmms-patch gate``."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from lmms_patch.app.commands.common import Place, as_json, decorated, examples, width
from lmms_patch.errors import PatchError
from lmms_patch.text import line, printed

if TYPE_CHECKING:
    from lmms_patch.gate.judge import Judgement

    Config: TypeAlias = str | Path | Mapping[str, Any]
# typer knows no unions
else:
    Config = str


@examples(
    "# is the new checkpoint worse than the last one? (a rules file that comes with lmms-patch)",
    "lmms-patch gate out/new --config model-regression --baseline out/last",
    "# your own rules, and files for a build server",
    "lmms-patch gate out --config gates.yaml --json gate.json --junit gate.xml",
    "# is a benchmark fit to be released?",
    "lmms-patch gate out --config benchmark-release",
)
def gate(
    out: Annotated[
        Place,
        typer.Argument(
            metavar="OUT", help="The --output_path of runs (of each model and task the newest), or one *_results.json."
        ),
    ],
    config: Annotated[
        Config,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Rules in YAML, or the name of shipped ones: model-regression, benchmark-release, model-compliance, video-regression, "
            "video-release, magic.",
        ),
    ],
    baseline: Annotated[
        Place | None, typer.Option("--baseline", "-b", metavar="DIR", help="Earlier runs, for max_drop and max_rise.")
    ] = None,
    json_file: Annotated[
        Place | None,
        typer.Option("--json", metavar="FILE", help="Write all verdicts as JSON; -: to stdout, in place of the text."),
    ] = None,
    junit: Annotated[
        Place | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML: one testcase per verdict.")
    ] = None,
) -> Judgement:
    """Hold the numbers of finished runs to rules; the exit status says whether they hold.

    0: all pass. 1: a rule failed. 2: bad input. 3: something that blocks is inconclusive. docs/gate.md has every key of
    the rules.
    """
    from lmms_patch.gate import outputs
    from lmms_patch.gate.judge import Judgement, judge
    from lmms_patch.gate.rules import parse, read

    # JSON on stdout is printed in place of the text (``display``)
    wanted = [None if path in (None, "-", Path("-")) else Path(path) for path in (json_file, junit)]
    try:
        rules = parse(config) if isinstance(config, Mapping) else read(config)
        judged = judge(Path(out), rules, None if baseline is None else Path(baseline))
    # whatever went wrong, the files must say that nothing was judged
    except BaseException as error:
        said = str(error) if isinstance(error, PatchError) else f"ended by {type(error).__name__}: {error}"
        nothing = Judgement((), (), str(config), str(out), str(baseline or ""), " ".join(said.split()))
        # a second error, from writing, must not hide the first
        with contextlib.suppress(PatchError):
            outputs.write(nothing, *wanted)
        raise
    outputs.write(judged, *wanted)
    return judged


def display(
    judged: Judgement,
    every: Annotated[bool, typer.Option("--all", help="Also list what passed.")] = False,
    json_file: Place | None = None,
) -> int:
    """Print the verdict in the first line, then the counts and what did not pass, and return the exit status.

    For GitHub an annotation follows, and the job summary gets a line. The exit status is the verdict: a reader that is
    gone, a full disk or a closed stdout does not change it.
    """
    from lmms_patch.gate import outputs

    if given := os.environ.get("GITHUB_STEP_SUMMARY"):
        with contextlib.suppress(OSError), open(given, "a", encoding="utf-8", errors="replace") as file:
            file.write(outputs.summary(judged))
    # stdout was closed before we started
    if sys.stdout is None:
        return judged.status
    encoding = sys.stdout.encoding or "utf-8"
    # coloured last, since ``printed`` takes control characters away
    most = width() if sys.stdout.isatty() else None
    shown = [_coloured(printed(text(judged, every=every, most=most), encoding))]
    if json_file == Path("-"):
        shown = [as_json(outputs.to_json(judged))]
    if os.environ.get("GITHUB_ACTIONS") == "true" and (annotation := outputs.annotation(judged)):
        # a character that the encoding lacks must not end the gate
        shown.append(annotation.encode(encoding, "backslashreplace").decode(encoding))
    try:
        for said in shown:
            print(said)
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            # Python flushes stdout once more at its end, and would fail there with a status of its own
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return judged.status


def text(judged: Judgement, *, every: bool = False, most: int | None = None) -> str:
    """Lay out the verdicts for a terminal: the first line, the counts, what did not pass, and the notes.

    Args:
        judged: the judgement.
        every: list what passed, too.
        most: characters in a line; None: any, as in the log of a build server, where lines are searched.
    """
    from lmms_patch.gate import outputs
    from lmms_patch.present.terminal.folding import fold

    listed = [one for one in outputs.ordered(judged) if every or one.verdict != "pass"]
    passed = len(judged.verdicts) - len(listed)
    told = [(f"{one.word}: {line(one.rule)}", outputs.fact(one, judged)) for one in listed]
    blocks = (
        [outputs.headline(judged), judged.counts],
        [f"{fold(rule, most)}\n{fold(fact, most, '  ', '    ')}" for rule, fact in told],
        [f"note: {line(note)}" for note in judged.notes],
        [f"{passed} pass; --all lists what passed"] * bool(passed),
    )
    return "\n\n".join(
        "\n".join(said if "\n" in said else fold(said, most) for said in block) for block in blocks if block
    )


def _coloured(text: str) -> str:
    """Return a text with a coloured first word for a verdict on a terminal."""
    for word, colour in (("FAIL", "red"), ("PASS", "green"), ("INCONCLUSIVE", "yellow")):
        if text.startswith(f"{word} ") and decorated():
            return typer.style(word, fg=colour, bold=True) + text[len(word) :]
    return text
