"""lmms-eval as a command of its own, whose many lines go to a file while one line tells how far it is."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TextIO

from lmms_patch.errors import PatchError

COMMAND = (sys.executable, "-m", "lmms_eval")
Watch = Callable[[str, int, int], None]
"""Is handed what is being done, how much of it is done, and how much there is (0: not known yet)."""
LOG = Path("lmms-eval.log")
"""The name, in the output folder, of the file with what lmms-eval printed; later runs into the same folder count on: ``lmms-eval-2.log``."""
_BAR = re.compile(r"^\s*(?P<what>asking|\S+: folds):\s+\d+%\|[^|]*\|\s*(?P<done>\d+)/(?P<of>\d+)")
"""A bar of tqdm that counts what the user waits for; others (images decoded, weights loaded, each batch) only flicker."""

_DRAWN = re.compile(r"\d+%\||\d+it \[\d\d:")
"""A state of any bar; those of a long run would fill its file."""


class RunError(PatchError):
    """An error of the harness; the log's lines say why."""


def lmms_eval(options: Sequence[str], output: Path, watch: Watch) -> Path:
    """Run lmms-eval as a separate process, wait for the end, and return the file with what it printed.

    Args:
        options: what follows ``lmms-eval``.
        output: the folder that it writes to; what it prints is kept there too, in a new ``lmms-eval.log`` or
        ``lmms-eval-<number>.log``.
        watch: told of progress.

    Raises:
        RunError: it ended with an error.
    """
    # Without this setting tokenizers warns whenever a process forks.
    command, env = [*COMMAND, *options], {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    watch("starting lmms-eval", 0, 0)
    with (
        _new_log(output) as kept,
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
    ):
        assert process.stdout is not None
        # newlines stay as they are, since a carriage return tells the state of a bar from a line
        for line in _lines(io.TextIOWrapper(process.stdout, encoding="utf-8", errors="replace", newline="")):
            if bar := _BAR.match(line):
                watch(bar["what"], int(bar["done"]), int(bar["of"]))
            # tqdm moves the cursor up from bar to bar, which leaves lines of nothing but that
            elif line.endswith("\n") and not _DRAWN.search(line) and line.replace("\x1b[A", "").strip():
                kept.write(line)
                # Flushed line by line, so that the log of a killed run has its last words.
                kept.flush()
    log = Path(kept.name)
    if process.returncode:
        raise RunError(f"lmms-eval ended with status {process.returncode}; {last_line(log)}; all it said: {log}")
    return log


def _new_log(output: Path) -> IO[str]:
    """Create and open a file for lmms-eval's output.

    Neither an earlier log nor what a link of its name leads to is touched.

    The file is in the output folder, or in the system's folder for temporary files where the output folder cannot be
    written.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            # "x" never writes over a file, also where two runs begin at once.
            with contextlib.suppress(FileExistsError):
                return open(
                    output / (LOG if number == 1 else f"{LOG.stem}-{number}{LOG.suffix}"),
                    "x",
                    encoding="utf-8",
                    errors="replace",
                )
    except OSError:
        pass
    # Where the folder cannot be written, lmms-eval's lines must still lie somewhere.
    return tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", errors="replace", prefix="lmms_patch_", suffix=LOG.suffix, delete=False
    )


def _lines(stream: TextIO) -> Iterator[str]:
    r"""Split a program's output into lines, ending in ``\n``, and states of progress bars, ending in ``\r``.

    A bar's next state begins where the one before began, after a carriage return. Carriage returns before a line feed
    are part of the line's end, so the character after them decides.
    """
    begun = ""
    # a character at a time: a bar's state must be told before the next one comes
    while char := stream.read(1):
        if begun.endswith("\r") and char not in "\r\n":
            yield begun
            begun = ""
        begun += char
        if char == "\n":
            yield begun.rstrip("\r\n") + "\n"
            begun = ""
    if begun:
        yield begun.rstrip("\r") + "\n"


def last_line(log: Path) -> str:
    """Return the last line of a log, or lmms-patch's last refusal in the log, as words for an error message."""
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line.removeprefix("lmms-patch: ") for line in lines if line.startswith("lmms-patch: ")]
    return f"it said: {(own or lines)[-1]}" if lines else "it said nothing"
