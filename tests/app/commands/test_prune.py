"""What ``lmms-patch prune`` hands on; what comes of it is in tests/harness/tst/test_prune.py."""

import dataclasses
import inspect
from pathlib import Path
from typing import get_args

import pytest

from lmms_patch.app import pruning
from lmms_patch.app.cli import main
from lmms_patch.app.commands import prune
from lmms_patch.errors import OptionError
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
    assert asked == [pruning.Arguments("toy")]
    assert capsys.readouterr().err == "round 1\nlmms-patch: far enough\n"


def test_quiet_tells_no_rounds(asked, capsys):
    assert main(["prune", "toy", "--quiet"]) == 2
    assert capsys.readouterr().err == "lmms-patch: far enough\n"


def test_every_option_reaches_the_work(asked):
    words = "--output o --include-path i --budget 40 --batch 8 --tau 0.5 --no-near-chance-stop --by delta --strategy weighted --allocate a=0.3 "
    words += "--floor 2 --from f --grid 3 --folds 4 --fold-seeds 2 --grouping text --key k --model forest --controls 2 --shuffles 0 --match none "
    words += "--against m --seed 9 --fresh"
    assert main(["prune", "toy", *words.split()]) == 2
    (found,) = asked
    default = pruning.Arguments("toy")
    same = [field.name for field in dataclasses.fields(found) if getattr(found, field.name) == getattr(default, field.name)]
    assert same == ["task"]
    assert (found.output, found.scores_of, found.near_chance_stop) == (Path("o"), Path("f"), False)
    assert (found.budget, found.batch, found.floor, found.grid) == (40, 8, 2, 3)


def test_words_that_are_written_out_are_those_that_are_checked():
    assert get_args(prune.By) == (*BY, "locality")
    assert get_args(prune.Strategy) == STRATEGIES
    assert len(inspect.signature(prune.command).parameters) == len(dataclasses.fields(pruning.Arguments)) + 1, "and --quiet"


@pytest.mark.parametrize(("given", "says"), [({"model": "tree"}, "model must be boosting or forest"), ({"match": "x"}, "match must be category")])
def test_python_is_checked_as_the_command_line_is(given, says):
    with pytest.raises(OptionError, match=says):
        pruning.Arguments("toy", **given).check()
