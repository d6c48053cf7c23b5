"""What the benchmarks share: a tiny size, at which a test runs each of them, and processes of their own for what is measured."""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any, NamedTuple


def parse(parser: argparse.ArgumentParser, **tiny: Any) -> argparse.Namespace:
    """Read the command line; with ``--tiny`` the defaults are those of ``tiny``, and the script enforces no target."""
    parser.add_argument(
        "--tiny",
        action="store_true",
        help="a size that takes seconds: the code runs, its results are checked, targets are only told",
    )
    given = parser.parse_args()
    if given.tiny:
        parser.set_defaults(**tiny)
        given = parser.parse_args()
    return given


class Here(Executor):
    """Run what is submitted at once, in this process."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return the finished call."""
        future: Future[Any] = Future()
        future.set_result(function(*args, **kwargs))
        return future


def workers(processes: int) -> Executor:
    """Return fresh processes that inherit nothing; with 0 it is this process that works, as a tiny run wants it."""
    return ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) if processes else Here()


class Used(NamedTuple):
    """What a call returned and took: seconds, seconds of processor time, and MiB at most."""

    value: Any
    wall: float
    processor: float
    memory: float


def apart(function: Callable[..., Any], *args: Any, tiny: bool = False) -> Used:
    """Call a function in a process of its own, whose start and imports count.

    In a tiny run in this one, where memory says nothing.

    A process starts with the peak memory of the one that starts it: who measures memory keeps the caller small.
    """
    start = time.perf_counter()
    with workers(0 if tiny else 1) as pool:
        value, processor, memory = pool.submit(_used, function, args, time.process_time() if tiny else 0.0).result()
    return Used(value, time.perf_counter() - start, processor, memory)


def _used(function: Callable[..., Any], args: tuple[Any, ...], before: float) -> tuple[Any, float, float]:
    value = function(*args)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return value, time.process_time() - before, most / (1024 * (1024 if sys.platform == "darwin" else 1))


def command(*arguments: str) -> None:
    """Run a command of lmms-patch; it must succeed."""
    from lmms_patch.app.cli import main

    with contextlib.redirect_stdout(io.StringIO()):
        status = main(arguments)
    assert status == 0, f"failed: {' '.join(arguments)}"
