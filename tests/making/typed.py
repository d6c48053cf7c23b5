"""A command line of lmms-patch typed in this process."""

import contextlib
import io

from lmms_patch.app.cli import main


def typed(*line):
    """Return the exit status of a command, and what it printed, errors last."""
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            status = main(list(map(str, line))) or 0
        except SystemExit as end:
            status = end.code or 0
    return [status, printed.getvalue() + errors.getvalue()]
