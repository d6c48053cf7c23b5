"""How a run ends on a user's mistake: one line and exit status 2 on the command line, an exception from Python."""

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
    """Return whether this process is lmms-eval's command line: ``lmms-eval`` or ``python -m lmms_eval``.

    ``accelerate launch``, ``torchrun`` and lmms-eval's job server use the second form.
    """
    # set where Python was called with ``-m``
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name.split(".")[0] == "lmms_eval":
        return True
    return os.path.basename(sys.argv[0]).removesuffix(".exe") == "lmms-eval"


class Refusal(BaseException):
    """A user's mistake, on its way through the host's loading of a task's data.

    Why a ``BaseException``: after any ``Exception`` there, the host tries again five times, 2 s apart.

    Attributes:
        error: the mistake.
    """

    def __init__(self, error: PatchError) -> None:
        super().__init__(str(error))
        self.error = error


def refuse(error: PatchError) -> NoReturn:
    """End the run because of a user's mistake.

    Why ``SystemExit``: the host would print the traceback of another exception and end with status 0, while
    ``SystemExit`` passes through its handlers, its retries and its thread pool.

    Raises:
        SystemExit: on the command line, with status 2, after printing one line.
        PatchError: from Python; it is ``error`` itself.
    """
    if not on_command_line():
        raise error
    _print(error)
    raise SystemExit(EXIT_STATUS)


def _print(message: object) -> None:
    """Print a message on a fresh line, even beside a progress bar."""
    from tqdm import tqdm

    sys.stdout.flush()
    tqdm.write(f"lmms-patch: {said(message, sys.stderr.encoding)}", file=sys.stderr)
    sys.stderr.flush()


def fail_at_exit(message: str) -> None:
    """Report a failure found after inference, and end the process with status 2 once the run is written.

    Nothing is raised, because the harness must go on and write the answers that it has.
    """
    global _failed
    _print(message)
    if on_command_line():
        _failed = True


def has_failed() -> bool:
    """Return whether ``fail_at_exit`` was called: the run is written, but needs mending."""
    return _failed


def install_exit_status() -> None:
    """Let ``fail_at_exit`` decide the exit status of the process.

    Registered early, so that it runs after all later handlers.
    """
    # a second call must not register it twice
    atexit.unregister(_end)
    atexit.register(_end)


def _end() -> None:
    if _failed:
        sys.stdout.flush()
        sys.stderr.flush()
        # an exit handler cannot change the status in any other way
        os._exit(EXIT_STATUS)
