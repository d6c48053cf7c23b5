"""Progress: on stderr, only where a person sees it and wants it.

Colours: of indices by the sign of their interval, however a line is broken.
"""

import sys

import pytest

from lmms_patch.app.commands.common import GLOBAL, LOCAL, coloured, examples, folded, progress, tell, teller, watching
from tests.making.terminal import Terminal


def test_lines_go_to_stderr_unless_quiet(capsys):
    tell("one")
    teller(False)("two")
    tell("three", quiet=True)
    teller(True)("four")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "one\ntwo\n")


def test_a_bar_only_on_a_terminal_and_only_if_wanted(monkeypatch, capsys):
    assert list(progress([1, 2, 3], "runs")) == [1, 2, 3]
    assert capsys.readouterr().err == ""
    for quiet, shown in ((True, False), (False, True)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        assert list(progress([1, 2, 3], "runs", quiet)) == [1, 2, 3]
        assert ("runs" in terminal.getvalue()) is shown
    assert capsys.readouterr().out == ""


def test_examples_are_kept_with_the_function():
    @examples("# why", "lmms-patch x")
    def command():
        return 3

    assert command() == 3
    assert command.epilog == "Examples:\n\n# why\nlmms-patch x"


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
    with watching() as watch:
        for done in (0, 0, *range(1234)):
            watch("starting lmms-eval", 0, 0) if done == 0 else watch("asking", done, 1233)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == ["starting lmms-eval", "asking: 1 of 1,233", "asking: 124 of 1,233"]
    assert (len(lines), lines[-1]) == (12, "asking: 1,233 of 1,233")
    with watching(quiet=True) as watch:
        watch("asking", 1, 2)
    assert capsys.readouterr().err == ""
