"""What commands share: ``--quiet``, lines and bars of progress on stderr, and examples for their help."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from lmms_patch.app.options import INCLUDE_PATH
from lmms_patch.text import printed

if TYPE_CHECKING:
    from lmms_patch.runs.results import Taken

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress lines; the result is still printed.")]
IncludePath = Annotated[str | None, INCLUDE_PATH]
Cells = Annotated[bool, typer.Option("--cells", help="Also where in the image the score comes from.")]


def examples(*lines: str) -> Callable[[F], F]:
    """Say in a command's help how it is typed.

    Args:
        lines: commands that can be pasted, ``# what it does`` on the line before each.
    """

    def marked(function: F) -> F:
        function.epilog = "Examples:\n\n" + "\n".join(lines)  # type: ignore[attr-defined]
        return function

    return marked


def say(text: str) -> None:
    """Print a result on stdout, made harmless for terminals and build servers."""
    print(printed(text, sys.stdout.encoding or "utf-8"))


def tell(line: str, quiet: bool = False) -> None:
    """Print a line of progress on stderr."""
    if not quiet:
        print(printed(line, sys.stderr.encoding or "utf-8"), file=sys.stderr, flush=True)


def told(taken: Iterable[Taken], quiet: bool = False) -> None:
    """Say of every folder with several runs which one was taken, on stderr."""
    for one in taken:
        if one.said:
            tell(one.said, quiet)


def teller(quiet: bool) -> Callable[[str], None]:
    """Return ``tell`` as a function of the line alone."""
    return lambda line: tell(line, quiet)


def progress(items: Collection[T], label: str, quiet: bool = False) -> Iterator[T]:
    """Yield the items, with a bar on stderr while they are worked on.

    Args:
        items: what is worked on.
        label: stands before the bar.
        quiet: no bar. There is none either where stderr is not a terminal, or one item is all there is.
    """
    if quiet or len(items) < 2 or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, label, console=Console(stderr=True), transient=True)


@contextlib.contextmanager
def counting(label: str, quiet: bool = False) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar on stderr for work that tells how far it is.

    Args:
        label: stands before the bar.
        quiet: no bar; there is none either where stderr is not a terminal.

    Yields:
        A function to call with how much is done, and of how much (None: not known).
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
