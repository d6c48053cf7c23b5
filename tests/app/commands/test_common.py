"""Progress: on stderr, only where a person sees it.

Colours: of indices by the sign of their interval, however a line is broken.
"""

import contextlib
import os
import subprocess
import sys

import pytest

from lmms_patch.app.commands.common import GLOBAL, LOCAL, THREADS, coloured, folded, progress, tell, telling, watching
from tests.making.terminal import Terminal


def test_lines_go_to_stderr_where_the_command_line_runs_a_command(capsys):
    tell("from Python")
    with telling():
        tell("one")
    tell("two")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "one\n")


def test_a_bar_only_on_a_terminal_and_only_from_the_command_line(monkeypatch, capsys):
    with telling():
        assert list(progress([1, 2, 3], "runs")) == [1, 2, 3]
    assert capsys.readouterr().err == ""
    for context, shown in ((contextlib.nullcontext(), False), (telling(), True)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with context:
            assert list(progress([1, 2, 3], "runs")) == [1, 2, 3]
        assert ("runs" in terminal.getvalue()) is shown
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("chosen", "threads"), [({}, 1), ({"OMP_NUM_THREADS": "2"}, 2), ({"OPENBLAS_NUM_THREADS": "2"}, 2)]
)
def test_matrix_products_of_a_command_take_one_thread_unless_the_user_chose(chosen, threads):
    """In a process of its own: as many threads as the environment says, or as the machine has processors, before."""
    code = (
        "import numpy, threadpoolctl; from lmms_patch.app.commands.common import one_thread\n"
        "def threads(): return {one['num_threads'] for one in threadpoolctl.threadpool_info() if one['user_api'] == 'blas'}\n"
        "before = threads()\n"
        "with one_thread(): print(*threads())\n"
        "assert threads() == before"
    )
    env = {name: value for name, value in os.environ.items() if name not in THREADS} | chosen
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == f"{min(threads, os.cpu_count())}\n"


@pytest.mark.parametrize("width", range(20, 81, 4))
@pytest.mark.parametrize(
    ("number", "colour"),
    [
        ("-0.20 [-0.30, -0.10]", LOCAL),
        ("+0.50, 95 % interval [+0.40, +0.60]", GLOBAL),
        ("-0.20, 97.5 % interval [-0.30, -0.10]", LOCAL),
        ("+0.02 [-0.03, +0.07]", None),  # the interval holds 0
    ],
)
def test_an_index_is_coloured_by_the_sign_of_its_interval_wherever_its_line_is_broken(number, colour, width):
    shown = coloured(folded([f"The whole image is needed for mosaic_same (RCI_3 {number}), and so on."], width))
    spans = [(str(span.style), " ".join(shown.plain[span.start : span.end].split())) for span in shown.spans]
    assert spans == ([] if colour is None else [(colour, number)])


def test_where_stderr_is_no_terminal_each_tenth_is_a_line(capsys):
    """A log shows that a run of minutes goes on, in at most eleven lines a bar, and says nothing twice."""
    with telling(), watching() as watch:
        for done in (0, 0, *range(1234)):
            watch("starting lmms-eval", 0, 0) if done == 0 else watch("asking", done, 1233)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == ["starting lmms-eval", "asking: 1 of 1,233", "asking: 124 of 1,233"]
    assert (len(lines), lines[-1]) == (12, "asking: 1,233 of 1,233")
    with watching() as watch:
        watch("asking", 1, 2)
    assert capsys.readouterr().err == ""
