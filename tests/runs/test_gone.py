"""Numbers that are no longer computed: runs of earlier versions that hold them open in every command, which leaves these numbers out."""

import json

import jsonschema
import pytest

from lmms_patch.app import schemas
from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError
from lmms_patch.gate.rules import parse
from lmms_patch.present.board.store import Store, find, load, to_text, update
from lmms_patch.present.ranking import by_of
from lmms_patch.runs.gone import instead, kept
from lmms_patch.runs.run import read
from tests.making.runs import magic_doc, write_magic
from tests.sizes import some
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


NAMES = [
    "analyze world_a",
    "gate world_a",
    "report world_a",
    "compare world",
    "gate world against a baseline",
    "leaderboard world",
]


@pytest.mark.parametrize("name", some(NAMES))
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
    written = "".join(
        path.read_text() for path in tmp_path.rglob("*") if path.suffix in (".json", ".csv", ".html", ".tex")
    )
    assert "adj_blind" not in written + capsys.readouterr().out


def test_show_prints_no_such_number(runs, capsys):
    assert main(["show", str(runs / "world_a")]) == 0
    printed = capsys.readouterr().out
    assert "toy_rci2" in printed
    assert "blind" not in printed


def by_words(data):
    """Make of a run without a judge what earlier versions wrote: Self-Heal by words is what the task is about."""
    task = data["results"]["toy_magic_selfheal"]
    details, about = task["magic,none"], task["magic,none"]["magic"]
    number = {**about["numbers"]["acc_exact"], "value": 0.9, "low": 0.8, "high": 0.95}
    about |= {"metric": "self_heal_words", "numbers": {"self_heal_words": number, **about["numbers"]}}
    about |= {"by_words": {"healed": 0.9, "chance": 0.1, "above": number, "reported": True, "undefined": 0}}
    about |= {
        "by_type": {"query": dict(about["numbers"])},
        "warnings": ["self_heal_words is not reported: 0.9 by words", *about["warnings"]],
    }
    details["self_heal_words"] = task["self_heal_words,none"] = 0.9
    data["configs"]["toy_magic_selfheal"]["metadata"]["magic"]["metric"] = "self_heal_words"


@pytest.fixture(scope="module")
def unjudged(tmp_path_factory):
    """Two runs without a judge, by earlier versions: 30 and 20 of 60 answers are right."""
    folder = tmp_path_factory.mktemp("unjudged")
    for model, good in (("a", 30), ("b", 20)):
        heal = [magic_doc(f"d{k:02}/3-3", right=k < good, kind="verify" if k % 2 else "query") for k in range(60)]
        path = write_magic(folder / model, {"selfheal": heal}, model=model, change=by_words)
        (log,) = path.parent.glob("*.jsonl")
        log.write_text(log.read_text().replace('"magic": {', '"magic": {"healed_words": true, "healed_chance": 0.1, '))
    return folder


def test_a_run_about_self_heal_by_words_is_about_its_answers_now(unjudged, tmp_path, capsys):
    a, b, out = str(unjudged / "a"), str(unjudged / "b"), str(tmp_path)
    (result,) = read(next((unjudged / "a").glob("*_results.json"))).results
    assert (result.described["metric"], result.measures["score"].value) == ("acc_synonym", 0.5)
    (tmp_path / "rules.yaml").write_text(
        "schema: 1\nrules: [{name: a, metric: score, min: 0.3}, {name: b, metric: score, max_drop: 0.5}]"
    )
    for line in (
        ["magic", "show", a, b, "--json", f"{out}/show.json"],
        ["show", a],
        ["report", a, b, "--output", f"{out}/report"],
        ["compare", a, b, "--json", f"{out}/compare.json"],
        ["gate", a, "--baseline", b, "--config", f"{out}/rules.yaml", "--json", f"{out}/gate.json"],
        ["leaderboard", a, b, "--output", f"{out}/board"],
    ):
        assert (main(line) or 0) == 0, line
    written = "".join(
        path.read_text() for path in tmp_path.rglob("*") if path.suffix in (".json", ".csv", ".html", ".tex")
    )
    assert "words" not in capsys.readouterr().out.replace("go by words", "")
    assert "self_heal_words" not in written
    jsonschema.validate(json.loads((tmp_path / "show.json").read_text()), schemas.load("magic-show"))
    compared = json.loads((tmp_path / "compare.json").read_text())["tasks"][0]
    assert (compared["metric"], compared["numbers"][0]["difference"]["value"]) == ("acc_synonym", pytest.approx(-1 / 6))


def test_a_board_of_an_earlier_version_whose_runs_have_gone(unjudged, tmp_path):
    """Its one number per task was Self-Heal by words; the answers were stored beside it."""
    (folder := tmp_path / "board").mkdir()
    store = update(Store(), find([unjudged]), folder).store
    data = json.loads(to_text(store))
    for run in data["runs"]:
        run["files"][0]["path"] = "gone"
        result = run["results"][0]
        result["fingerprint"]["metric"] = result["metric"] = "self_heal_words"
        result["numbers"] |= {
            "self_heal_words": {**result["numbers"]["acc_exact"], "value": 0.9},
            "score": {**result["numbers"]["acc_exact"], "value": 0.9},
        }
    (folder / "leaderboard.json").write_text(json.dumps(data))
    old = load(folder)
    assert [run.results for run in old.runs] == [run.results for run in store.runs]


@pytest.mark.parametrize("name", ["rci3_adj_blind", "pcri?_adj_blind", "*_adj_blind", "self_heal_words"])
def test_a_rule_on_it_is_told_what_took_its_place(name):
    with pytest.raises(OptionError) as told:
        parse({"schema": 1, "rules": [{"name": "a", "metric": name, "max": 0.1}]})
    assert str(told.value) == f"rules: rule 'a': metric: {name!r} is no longer computed: {instead(name)}"
    with pytest.raises(OptionError, match="is no longer computed"):
        parse(
            {
                "schema": 1,
                "defaults": {"primary": "rci3_adj_blind"},
                "rules": [{"name": "a", "metric": "fip", "max_drop": 0.1}],
            }
        )


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
