"""What leaves for another site: no number without what failed calls make of it."""

import json

import pytest
import yaml

from lmms_patch import commands
from lmms_patch.errors import OptionError
from tests.making.runs import failing, mc_run, write_run

# --- failed calls ---------------------------------------------------------------------------------


def on_the_hub(tmp_path, task, made, printed):
    """Write a run on a dataset of the Hub, with ``printed`` as the number that the harness printed for the task."""
    return write_run(
        tmp_path / "run", {task: made}, change=lambda data: data["results"][task].update({"acc,none": printed})
    )


def test_the_hub_is_told_what_a_score_leaves_out(tmp_path):
    """Docs 0 to 9 of 60 have no answer: the mean of the 50 others, and beside it the mean with ten wrong answers."""
    spec, records, plan = mc_run(n=60)
    answered = [one["views"][0]["scores"]["acc"] for one in records[10:]]
    path = on_the_hub(tmp_path, spec.name, (spec, failing(records, range(10)), plan), sum(answered) / 60)
    commands.export(path, to="eval-results", output=tmp_path / "x.yaml")
    entry = next(one for one in yaml.safe_load((tmp_path / "x.yaml").read_text()) if one["dataset"]["task_id"] == "toy")
    assert entry["value"] == pytest.approx(sum(answered) / 50)
    assert (
        f"the value leaves out 10 of 60 docs, whose call failed; with these as wrong answers it is {sum(answered) / 60:.4g}"
        in entry["notes"]
    )
    commands.export(path, to="every-eval-ever", output=tmp_path / "x.json")
    entries = {
        one["metric_config"]["metric_name"]: one["score_details"]
        for one in json.loads((tmp_path / "x.json").read_text())["evaluation_results"]
    }
    assert "10 of 60 docs have a failed call and are left out of what needs it" in entries["mpp2"]["details"]["note"]


# --- files that are there -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hub_run(tmp_path_factory):
    made = mc_run(n=30)
    return on_the_hub(
        tmp_path_factory.mktemp("hub"), "toy_rci2", made, sum(one["views"][0]["scores"]["acc"] for one in made[1]) / 30
    )


@pytest.mark.parametrize("to", ["parquet", "csv", "jsonl", "every-eval-ever", "eval-results"])
def test_an_earlier_export_is_replaced_and_no_file_of_the_run(hub_run, tmp_path, to):
    file = tmp_path / "x"
    file.write_text("other")
    assert commands.export(hub_run, to=to, output=file).path == file
    assert file.read_bytes() != b"other"
    before = hub_run.read_bytes()
    with pytest.raises(OptionError, match="this is a file of the run itself"):
        commands.export(hub_run, to=to, output=hub_run)
    assert hub_run.read_bytes() == before
