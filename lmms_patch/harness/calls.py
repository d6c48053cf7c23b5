"""Calls of native aggregations: as the host makes them, and once more without a trace."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

from loguru import logger

from lmms_patch.harness.judge import effects
from lmms_patch.text import line

Aggregation = Callable[[list[Any]], Any]


def one_line(error: BaseException) -> str:
    """An exception in one line: under the host's ``RetryError``, the one that a scorer raised."""
    attempt = getattr(error, "last_attempt", None)
    error = (attempt.exception() if attempt is not None else None) or error
    return line(f"{type(error).__name__}: {error}")


def with_signature_of(native: Aggregation, function: Aggregation) -> Aggregation:
    """``function`` as the host sees ``native``: with ``args`` if it takes them."""
    if not takes_args(native):
        return function

    def aggregation_with_args(items: list[Any], args: Any) -> Any:
        return function(items)

    return aggregation_with_args  # type: ignore[return-value]


def copied(items: list[Any]) -> list[Any]:
    """The items for one call: some aggregations work on them in place."""
    try:
        return copy.deepcopy(items)
    except Exception:
        return list(items)


def takes_args(native: Aggregation) -> bool:
    """Whether the host hands this aggregation its command-line arguments."""
    return "args" in inspect.signature(native).parameters


def call_native(native: Aggregation, items: list[Any], args: Any) -> Any:
    """Call a native aggregation the way the host does."""
    return native(items, args=args) if takes_args(native) else native(items)  # type: ignore[call-arg]


_one_aside = threading.RLock()
"""The working directory and the standard streams are the whole process's: one at a time."""


@contextlib.contextmanager
def aside(args: Any, native: Aggregation) -> Iterator[Any]:
    """Run a native aggregation again without overwriting what it wrote the first time.

    Submission files go to ``args.output_path``, or to the working directory: both are a temporary
    folder here, for an aggregation that uses files; and what is printed or logged is swallowed.

    Yields:
        The arguments to hand to the aggregation.
    """
    writes = effects(native) is not None
    with _one_aside, tempfile.TemporaryDirectory(prefix="lmms_patch_") if writes else contextlib.nullcontext("") as folder:
        here = os.getcwd()
        elsewhere = copy.copy(args)
        if folder and elsewhere is not None and hasattr(elsewhere, "output_path"):
            elsewhere.output_path = folder
        if folder:
            os.chdir(folder)
        try:
            _log_of_tasks(logger.disable)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                yield elsewhere
        finally:
            _log_of_tasks(logger.enable)
            if folder:
                os.chdir(here)


def _log_of_tasks(switch: Callable[[str], None]) -> None:
    """Task modules log under their own name, or that of the package."""
    for name in ("utils", "lmms_eval.tasks"):
        switch(name)


def single_item(native: Aggregation, args: Callable[[], Any]) -> Callable[[Any], Any]:
    """M on one item, aside: the last way to a scalar. None where M fails on it."""

    def of(item: Any) -> Any:
        try:
            with aside(args(), native) as elsewhere:
                return call_native(native, copied([item]), elsewhere)
        except Exception:
            return None

    return of
