"""Progress: on stderr, only where a person sees it and wants it."""

import sys

from lmms_patch.app.commands.common import examples, progress, tell, teller
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
