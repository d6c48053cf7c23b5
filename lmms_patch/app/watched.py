"""lmms-eval as a command of its own, whose many lines go to a file while one line tells how far it is."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from lmms_patch.errors import PatchError

COMMAND = (sys.executable, "-m", "lmms_eval")
Watch = Callable[[str, int, int], None]
"""Is handed what is being done, how much of it is done, and how much there is (0: not known yet)."""
LOG = "lmms-eval.log"
"""The file in the output folder that keeps what lmms-eval prints."""
_BAR = re.compile(r"^\s*(?P<what>asking|\S+: folds):\s+\d+%\|[^|]*\|\s*(?P<done>\d+)/(?P<of>\d+)")
"""A bar of tqdm that counts what the user waits for; others (images decoded, weights loaded, each batch) only flicker."""

_DRAWN = re.compile(r"\d+%\||\d+it \[\d\d:")
"""A state of any bar; those of a long run would fill its file."""


class RunError(PatchError):
    """The harness ended with an error; its own lines say why."""


def lmms_eval(options: Sequence[str], output: Path, *, quiet: bool = True, watch: Watch = lambda what, done, of: None) -> Path | None:
    """Run lmms-eval.

    Args:
        options: what follows ``lmms-eval``.
        output: the folder that it writes to; what it prints is kept there too, in ``lmms-eval.log``.
        quiet: keep back what it prints; False: it goes to stdout and stderr.
        watch: told of progress, where its lines are kept back.

    Returns:
        The file with its lines; None where they were printed.

    Raises:
        RunError: it ended with an error.
    """
    command, env = [*COMMAND, *options], {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    if not quiet:
        if status := subprocess.run(command, env=env, check=False).returncode:
            raise RunError(f"lmms-eval ended with status {status}; its last lines say why")
        return None
    log = _log(output)
    watch("starting lmms-eval", 0, 0)
    with (
        open(log, "w", encoding="utf-8", errors="replace") as kept,
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
    ):
        assert process.stdout is not None
        for line in _lines(io.TextIOWrapper(process.stdout, encoding="utf-8", errors="replace", newline="")):
            if bar := _BAR.match(line):
                watch(bar["what"], int(bar["done"]), int(bar["of"]))
            elif line.endswith("\n") and not _DRAWN.search(line) and line.replace("\x1b[A", "").strip():
                kept.write(line)
                kept.flush()
    if process.returncode:
        raise RunError(f"lmms-eval ended with status {process.returncode}; {last_line(log)}; all it said: {log}")
    return log


def _log(output: Path) -> Path:
    """Return where lines are kept: in the output folder, or in the system's folder for temporary files where that cannot be written."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        (output / LOG).touch()
        return output / LOG
    except OSError:
        with tempfile.NamedTemporaryFile(prefix="lmms_patch_", suffix=".log", delete=False) as made:
            return Path(made.name)


def _lines(stream: TextIO) -> Iterator[str]:
    """Yield what ends in a line feed or a carriage return (a bar that is drawn anew), as it comes."""
    begun = ""
    while text := stream.read(1):
        begun += text
        if text in "\r\n":
            yield begun
            begun = ""
    if begun:
        yield f"{begun}\n"


def last_line(log: Path | None) -> str:
    """Return what lmms-eval said at last: our own refusal where there is one."""
    text = log.read_text(encoding="utf-8", errors="replace") if log is not None else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line.removeprefix("lmms-patch: ") for line in lines if line.startswith("lmms-patch: ")]
    return f"it said: {(own or lines)[-1]}" if lines else "it said nothing"
