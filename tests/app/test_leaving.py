"""What leaves for another site: no number without what failed calls make of it."""

import json

import pytest
import yaml

from lmms_patch.app import api
from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError
from lmms_patch.runs.columns import tracked
from lmms_patch.runs.run import read
from tests.making.runs import crci_run, failing, mc_run, write_run

# --- failed calls ---------------------------------------------------------------------------------


def on_the_hub(tmp_path, task, made, printed):
    """Write a run on a dataset of the Hub, with ``printed`` as the number that the harness printed for the task."""
    path = write_run(tmp_path / "run", {task: made})
    data = json.loads(path.read_text())
    data["configs"][task] |= {"dataset_path": "org/toy", "test_split": "test"}
    data["results"][task]["acc,none"] = printed
    path.write_text(json.dumps(data))
    return path


def test_the_hub_is_told_what_a_score_leaves_out(tmp_path):
    """Docs 0 to 9 of 60 have no answer: the mean of the 50 others, and beside it the mean with ten wrong answers."""
    spec, records, plan = mc_run(n=60)
    answered = [one["views"][0]["scores"]["acc"] for one in records[10:]]
    path = on_the_hub(tmp_path, spec.name, (spec, failing(records, range(10)), plan), sum(answered) / 60)
    api.publish(path, "eval-results", output=tmp_path / "x.yaml")
    entry = next(one for one in yaml.safe_load((tmp_path / "x.yaml").read_text()) if one["dataset"]["task_id"] == "toy")
    assert entry["value"] == pytest.approx(sum(answered) / 50)
    assert (
        f"the value leaves out 10 of 60 docs, whose call failed; with these as wrong answers it is {sum(answered) / 60:.4g}"
        in entry["notes"]
    )
    api.publish(path, "every-eval-ever", output=tmp_path / "x.json")
    entries = {
        one["metric_config"]["metric_name"]: one["score_details"]
        for one in json.loads((tmp_path / "x.json").read_text())["evaluation_results"]
    }
    assert "10 of 60 docs have a failed call and are left out of what needs it" in entries["mpp2"]["details"]["note"]


def test_the_plain_name_on_the_hub_is_not_that_of_every_order(tmp_path):
    """A model is right of docs 0, 4, ... in every order, of docs 1, 5, ... in the first alone: its acc is 0.5, of every order 0.25."""

    def choose(doc, view, order, gold, stream):
        right = doc % 4 == 0 or (doc % 4 == 1 and order[0] == 0)
        return (order.index(gold) + (not right)) % 4

    spec, records, plan = crci_run(choose, n=40, grid=2)
    printed = sum(one["views"][0]["scores"]["acc"] for one in records) / 40
    path = on_the_hub(tmp_path, spec.name, (spec, records, plan), printed)
    result = read(path).results[0]
    assert (result.measures["fip"].value, printed) == (0.25, 0.5)
    api.publish(path, "eval-results", output=tmp_path / "x.yaml")
    entry = next(
        one for one in yaml.safe_load((tmp_path / "x.yaml").read_text()) if one["dataset"]["task_id"] == "sheet"
    )
    assert entry["value"] == printed


# --- files that are there -------------------------------------------------------------------------

FORMS = ("parquet", "csv", "jsonl", "every-eval-ever", "eval-results")


def exported(path, to, output, **more):
    return (api.publish if "-" in to else api.export)(path, to=to, output=output, **more)


@pytest.fixture(scope="module")
def hub_run(tmp_path_factory):
    made = mc_run(n=30)
    return on_the_hub(
        tmp_path_factory.mktemp("hub"), "toy_rci2", made, sum(one["views"][0]["scores"]["acc"] for one in made[1]) / 30
    )


@pytest.mark.parametrize("to", FORMS)
def test_an_earlier_export_is_replaced_and_nothing_else(hub_run, tmp_path, to):
    file = tmp_path / "x"
    exported(hub_run, to, file)
    before = file.read_bytes()
    exported(hub_run, FORMS[(FORMS.index(to) + 1) % 5], file)
    exported(hub_run, to, file)
    assert to == "every-eval-ever" or file.read_bytes() == before
    for theirs in (
        "# My notes\n",
        "",
        "task,filter\n1,2\n",
        '{"task": 1}\n',
        '{\n "a": 1}',
        "- a: 1\n",
        "- [\n",
        "PAR1",
        "\x00",
    ):
        file.write_text(theirs)
        with pytest.raises(
            OptionError,
            match=r"there already, and no earlier export; type --force to replace it, or --output with another",
        ):
            exported(hub_run, to, file)
        assert file.read_text() == theirs
    exported(hub_run, to, file, force=True)
    assert to == "every-eval-ever" or file.read_bytes() == before


def test_the_command_says_what_to_type(hub_run, tmp_path, capsys):
    file = tmp_path / "thesis.csv"
    file.write_text("mine")
    assert main(["export", str(hub_run), "--output", str(file)]) == 2
    assert "type --force" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert main(["export", str(hub_run), "--output", str(file), "--force"]) == 0
    assert main(["export", str(hub_run), "--output", str(file)]) == 0


def test_a_standard_error_that_was_edited_is_not_sent(hub_run, tmp_path):
    """The column beside a value is no part of what is checked: the tracker gets the one of the analysis."""
    data = json.loads(hub_run.read_text())
    data["results"]["toy_rci2"]["acc_stderr,none"] = 1e-6
    for path in hub_run.parent.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / hub_run.name).write_text(json.dumps(data))
    sent = tracked(read(tmp_path / hub_run.name).results[0])
    assert sent["acc_stderr"] == read(hub_run).results[0].measures["acc"].se > 0.01
