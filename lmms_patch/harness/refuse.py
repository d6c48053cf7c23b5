"""How a refusal ends a run: one line and exit status 2 on the command line, an exception from Python."""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn

from lmms_patch.errors import PatchError
from lmms_patch.text import said

EXIT_STATUS = 2

_failed = False


def on_command_line() -> bool:
    """Whether this process is lmms-eval's own command line: ``lmms-eval`` or ``python -m lmms_eval``.

    The job server starts its jobs as the latter, and so do ``accelerate launch`` and ``torchrun``.
    """
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name.split(".")[0] == "lmms_eval":
        return True
    return os.path.basename(sys.argv[0]).removesuffix(".exe") == "lmms-eval"


class Refusal(BaseException):
    """Carries a user's mistake out of the loading of a task's data, which the host tries again five times, 2 s apart, after any ``Exception``.

    Attributes:
        error: the mistake.
    """

    def __init__(self, error: PatchError) -> None:
        super().__init__(str(error))
        self.error = error


def refuse(error: PatchError) -> NoReturn:
    """End the run because of a user's mistake.

    The host prints an exception's traceback and ends with status 0; ``SystemExit`` passes through
    its handlers, its retries and its thread pool.

    Raises:
        SystemExit: with status 2, on the command line, after printing the one line.
        PatchError: ``error`` itself, from Python.
    """
    if not on_command_line():
        raise error
    sys.stdout.flush()
    print(f"lmms-patch: {said(error, sys.stderr.encoding)}", file=sys.stderr, flush=True)
    raise SystemExit(EXIT_STATUS)


def fail_at_exit(message: str) -> None:
    """Report a failure that is found after inference, and end the process with status 2 once the run is written.

    The harness must go on to write the answers it has, so nothing is raised here.
    """
    global _failed
    print(f"lmms-patch: {said(message, sys.stderr.encoding)}", file=sys.stderr, flush=True)
    if on_command_line():
        _failed = True


def install_exit_status() -> None:
    """Let ``fail_at_exit`` decide the exit status. Registered early, so it runs after later-registered handlers."""
    atexit.unregister(_end)
    atexit.register(_end)


def _end() -> None:
    if _failed:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_STATUS)
