"""Numbers that are no longer computed: runs of earlier versions that hold them open in every command, which leaves these numbers out."""

import json

import pytest

from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError
from lmms_patch.gate.rules import parse
from lmms_patch.present.ranking import by_of
from lmms_patch.runs.gone import instead, kept
from tests.stored import commands, differences, steady, stored, unpack


def with_adj_blind(file):
    """Put the number where earlier versions had it: in each grid, and among the flat numbers."""
    data = json.loads(file.read_text())
    for task, values in data["results"].items():
        for n, grid in values["patch,none"]["analysis"]["grids"].items():
            grid["adj_blind"] = grid["adj"] or {"estimate": grid["index"]}
            name = f"{'pcri' if 'pcri' in task else 'rci'}{n}_adj_blind"
            flat = {name: 0.123, f"{name}_low": 0.1, f"{name}_high": 0.2}
            values["patch,none"] |= flat
            values |= {f"{key},none": value for key, value in flat.items()}
    file.write_text(json.dumps(data))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    runs = unpack(tmp_path_factory.mktemp("old"))
    for file in runs.glob("world_?/*_results.json"):
        with_adj_blind(file)
    return runs


NAMES = ["analyze world_a", "gate world_a", "report world_a", "compare world", "gate world against a baseline", "leaderboard world"]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_says_the_same_with_and_without_it(runs, tmp_path, capsys, name):
    """The numbers are those of the same runs without it."""
    arguments, file = next((line, file) for one, line, file in commands(runs, tmp_path) if one == name)
    before = stored()[name]
    assert (main(arguments) or 0) == before["status"]
    wrote = steady(json.loads(file.read_text().replace(str(runs), "runs").replace(str(tmp_path), "out")))
    if name.startswith("leaderboard"):  # runs of one date stand in the order of the digests of their files
        for one in (wrote, before["wrote"]):
            one["runs"].sort(key=lambda run: run["model"])
    apart = [one for one in differences(before["wrote"], wrote) if ".sha256" not in one]
    assert not apart
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.suffix in (".json", ".csv", ".html", ".tex"))
    assert "adj_blind" not in written + capsys.readouterr().out


def test_show_prints_no_such_number(runs, capsys):
    assert main(["show", str(runs / "world_a")]) == 0
    printed = capsys.readouterr().out
    assert "toy_rci2" in printed
    assert "blind" not in printed


@pytest.mark.parametrize("name", ["rci3_adj_blind", "pcri?_adj_blind", "*_adj_blind"])
def test_a_rule_on_it_is_told_what_took_its_place(name):
    with pytest.raises(OptionError) as told:
        parse({"schema": 1, "rules": [{"name": "a", "metric": name, "max": 0.1}]})
    assert str(told.value) == f"rules: rule 'a': metric: {name!r} is no longer computed: {instead(name)}"
    with pytest.raises(OptionError, match="is no longer computed"):
        parse({"schema": 1, "defaults": {"primary": "rci3_adj_blind"}, "rules": [{"name": "a", "metric": "fip", "max_drop": 0.1}]})


def test_a_board_is_told_what_took_its_place(capsys, runs):
    with pytest.raises(OptionError, match=r"'adj_blind': use \.\.\._adj, which rests on answers on wrong images"):
        by_of("adj_blind")
    assert main(["leaderboard", str(runs / "world_a"), "--by", "adj_blind", "--output", str(runs / "board")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_names_that_are_computed_are_kept():
    assert kept({"rci3": 0, "rci3_adj": 1, "rci3_adj_low": 2, "rci3_adj_blind": 3, "rci3_adj_blind_low": 4}) == {
        "rci3": 0,
        "rci3_adj": 1,
        "rci3_adj_low": 2,
    }
