"""What commands share: options, lines and bars of progress on stderr, and examples for their help.

A command is a typed function that returns data and prints nothing. The command line shows its progress on stderr
(``telling``), and hands the data to ``display`` of the command's module.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from lmms_patch.text import printed

if TYPE_CHECKING:
    from rich.text import Text

    from lmms_patch.runs.run import Taken

    Place: TypeAlias = str | Path
    Places: TypeAlias = str | Path | Sequence[str | Path]
# typer knows no unions: it reads a path, and a list of paths
else:
    Place, Places = Path, list[Path]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

IncludePath = Annotated[
    Place | None, typer.Option("--include-path", metavar="DIR", help="A folder with more task files.")
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write everything as JSON; -: to stdout, in place of all else."),
]
Wide = Annotated[bool, typer.Option("--wide", help="All columns, however long the lines.")]
Cells = Annotated[bool, typer.Option("--cells", help="Also where in the image the score comes from.")]


_telling: ContextVar[bool] = ContextVar("telling", default=False)
"""Whether progress is shown: only where the command line runs the command."""


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """Show progress on stderr while a command runs."""
    before = _telling.set(True)
    try:
        yield
    finally:
        _telling.reset(before)


def is_telling() -> bool:
    """Return whether progress is shown."""
    return _telling.get()


THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables by which a user chooses the number of threads."""


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit NumPy's matrix products to a thread, unless the user has chosen a number of threads.

    Why: our matrices are small, and on a busy machine threads that wait for each other cost four times the work.
    """
    if any(os.environ.get(name) for name in THREADS):
        yield
        return
    # threadpoolctl sees only libraries that are loaded
    import numpy  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


def paths(given: Places) -> list[Path]:
    """Return one path, or several, as a list of paths.

    A text becomes a list of one, since ``list("out")`` would give its characters.
    """
    return [Path(one) for one in ([given] if isinstance(given, (str, os.PathLike)) else given)]


def examples(*lines: str) -> Callable[[F], F]:
    """Add examples to the help of a command.

    Args:
        lines: commands that can be pasted, ``# what it does`` on the line before each.
    """

    def marked(function: F) -> F:
        function.epilog = "Examples:\n\n" + "\n".join(lines)  # type: ignore[attr-defined]
        return function

    return marked


def decorated() -> bool:
    """Return whether stdout is a terminal with colours and boxes not switched off (``NO_COLOR``)."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def say(text: str) -> None:
    """Print a result on stdout, safe for terminals and build servers, coloured on a terminal."""
    shown = printed(text, sys.stdout.encoding or "utf-8")
    if not decorated():
        print(shown)
        return
    from rich.console import Console

    # the text is laid out already, and rich must not break its lines again
    Console(soft_wrap=True).print(coloured(shown))


_SIGNED = re.compile(r"[+-]\d+\.\d+(?:,(?:\s+\S+){3})?(?:\s|\n\s+)\[([+-]?\d+\.\d+), ([+-]?\d+\.\d+)\]")
_HEAD = re.compile(r"^.+(?=\n-{3,}$)", re.M)
_RULE = re.compile(r"^-{3,}$", re.M)
_NOTHING = re.compile(r"\b(?:near chance|does not (?:look|watch)|not shown that it (?:looks|watches)|N/A)\b")
LOCAL, GLOBAL = "cyan", "yellow"
"""Colours of an index whose interval lies below 0, and above 0."""


def coloured(shown: str) -> Text:
    """Return text with bold heads of tables, indices in colour where their interval has a sign, and in grey what cannot be read."""
    from rich.text import Text

    out = Text(shown)
    for match in _HEAD.finditer(shown):
        out.stylize("bold", *match.span())
    for pattern in (_RULE, _NOTHING):
        for match in pattern.finditer(shown):
            out.stylize("dim", *match.span())
    for match in _SIGNED.finditer(shown):
        low, high = map(float, match.groups())
        if low > 0 or high < 0:
            out.stylize(LOCAL if high < 0 else GLOBAL, *match.span())
    return out


def width(wide: bool = False) -> int | None:
    """Return the characters of a line: those of the terminal, 80 where there is none.

    None (any) where the whole table is wanted.
    """
    return None if wide else shutil.get_terminal_size((80, 24)).columns


def folded(paragraphs: Iterable[str], most: int | None) -> str:
    """Return paragraphs broken into lines, each paragraph behind a hyphen; a path and an interval are not broken.

    Args:
        paragraphs: texts.
        most: cells of the terminal in a line; None: paragraphs are not broken.
    """
    from lmms_patch.present.terminal.folding import fold

    return "\n".join(fold(one, most, "- ") for one in paragraphs)


def tell(line: str) -> None:
    """Print a line of progress on stderr."""
    if is_telling():
        print(printed(line, sys.stderr.encoding or "utf-8"), file=sys.stderr, flush=True)


def told(taken: Iterable[Taken]) -> None:
    """Say on stderr which run was taken from each folder with several runs."""
    for one in taken:
        if one.said:
            tell(one.said)


def _bars() -> bool:
    """Return whether bars are shown: where stderr is a file, a bar would fill it with control characters."""
    return is_telling() and sys.stderr.isatty()


def progress(items: Collection[T], label: str) -> Iterator[T]:
    """Yield the items, with a bar on stderr while they are worked on, unless there is one alone.

    Args:
        items: what is worked on.
        label: stands before the bar.
    """
    if len(items) < 2 or not _bars():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, label, console=Console(stderr=True), transient=True)


@contextlib.contextmanager
def watching() -> Iterator[Callable[[str, int, int], None]]:
    """Show the progress of an lmms-eval run on a line of stderr.

    Where stderr is not a terminal, write a line at each tenth, and once a minute: a log that stands still looks dead.

    Yields:
        A function to call with what is being done, how much of it is done, and how much there is.
    """
    if not _bars():
        said, begun = ("", 0, 0), 0.0

        def at_tenths(what: str, done: int, of: int) -> None:
            nonlocal said, begun
            now = time.monotonic()
            if what != said[0]:
                begun = now
            # the left side is read before the right side assigns
            if said != (said := (what, 10 * done // max(of, 1), int(now - begun) // 60)):
                left = (
                    f", about {(now - begun) * (of - done) / done / 60:.0f} min left"
                    # too little is done in the first minute to tell the rest from
                    if done and now > begun + 60
                    else ""
                )
                tell(f"{what}: {done:,} of {of:,}{left}" if of else what)

        yield at_tenths
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting lmms-eval", total=None)
        yield lambda what, done, of: bar.update(task, description=what, completed=done, total=of or None)


@contextlib.contextmanager
def counting(label: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar of progress on stderr, where that is a terminal.

    Args:
        label: stands before the bar.

    Yields:
        A function to call with how much is done, and of how much (None: not known).
    """
    if not _bars():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def looking(label: str) -> Iterator[Callable[[Collection[T], str], Iterator[T]]]:
    """Show a line on stderr while reading, then a bar while items are looked at.

    Args:
        label: says what is read.

    Yields:
        A function that passes items on, and shows how many are done, until the last is.
    """
    with counting(label) as tell_count:

        def watch(items: Collection[T], _: str) -> Iterator[T]:
            for done, item in enumerate(items):
                tell_count(done, len(items))
                yield item
            tell_count(len(items), len(items))

        yield watch


def answer(text: Callable[[], str], everything: Callable[[], Any], json_file: Path | None) -> None:
    """Print what a command has to say; where JSON is wanted, write that to a file too, or to stdout alone (``-``).

    Raises:
        RecordError: the file cannot be written.
    """
    made = "" if json_file is None else as_json(everything())
    if json_file == Path("-"):
        print(made)
        return
    lines = [text()]
    if json_file is not None:
        from lmms_patch.files import write

        write(json_file, f"{made}\n")
        lines.append(f"written: {json_file}")
    say("\n".join(lines))


def as_json(value: Any) -> str:
    """Return plain JSON types as the text of a file; every text in them is made harmless."""
    from lmms_patch.text import harmless

    return json.dumps(harmless(value), indent=2, allow_nan=False, ensure_ascii=False)
