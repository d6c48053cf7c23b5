"""What ``lmms-patch prune`` hands on; what comes of it is in tests/harness/tst/test_prune.py."""

import inspect
from pathlib import Path
from typing import get_args

import pytest

from lmms_patch import commands
from lmms_patch.app import pruning
from lmms_patch.app.cli import main
from lmms_patch.app.commands import prune
from lmms_patch.ask.spec import Options
from lmms_patch.errors import OptionError
from lmms_patch.tst.controls import CONTROLS, SHUFFLES
from lmms_patch.tst.selection import BY, STRATEGIES


@pytest.fixture
def asked(monkeypatch):
    """The arguments that reach the work."""
    seen = []

    def run(arguments, tell):
        tell("round 1")
        seen.append(arguments)
        raise OptionError("far enough")

    monkeypatch.setattr(pruning, "run", run)
    return seen


def test_left_out_is_the_default_of_the_work(asked, capsys):
    assert main(["prune", "toy"]) == 2
    assert asked == [pruning.Arguments(task="toy")]
    assert capsys.readouterr().err == "round 1\nlmms-patch: far enough\n"


def test_every_option_reaches_the_work(asked):
    words = "--output o --include-path i --budget 40 --batch 8 --tau 0.5 --no-near-chance-stop --by delta --strategy weighted --allocate a=0.3 "
    words += "--from f --folds 4 --fold-seeds 2 --grouping text --key k --model forest --controls 2 --shuffles 0 "
    words += "--fresh --push a/b"
    assert main(["prune", "toy", "r", "--blind", *words.split()]) == 2
    (found,) = asked
    default = pruning.Arguments(task="toy")
    same = [name for name, value in found if value == getattr(default, name)]
    assert same == ["task"]
    assert (found.output, found.scores_of, found.near_chance_stop) == (Path("o"), Path("f"), False)
    assert (found.budget, found.batch) == (40, 8)


def test_words_that_are_written_out_are_those_that_are_checked():
    words = {name: get_args(field.annotation) for name, field in pruning.Arguments.model_fields.items()}
    assert words["by"] == BY
    assert words["strategy"] == STRATEGIES
    assert sorted(words["grouping"]) == sorted(get_args(Options.model_fields["grouping"].annotation))
    default = pruning.Arguments(task="toy")
    assert (default.controls, default.shuffles) == (CONTROLS, SHUFFLES)
    assert len(inspect.signature(prune.prune).parameters) == len(pruning.Arguments.model_fields)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": "tree"}, "model must be 'boosting', 'forest' or 'linear'"),
        ({"allocate": 3}, "allocate must be global, format, category, or budgets by category, such as .*, not 3"),
        ({"allocate": {"a": "much"}}, "allocate must be global"),
        ({"folds": 5.5}, "folds must be a whole number, not 5.5"),
        ({"key": 3}, "key must be a text, not 3"),
        ({"output": 3}, "output must be a path, not 3"),
    ],
)
def test_python_is_checked_as_the_command_line_is(given, says):
    with pytest.raises(OptionError, match=says):
        commands.prune("toy", **given)
