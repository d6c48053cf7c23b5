"""The numbers of a run for other sites and for experiment trackers: ``lmms-patch export --to``."""

import json
import math

import jsonschema
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from lmms_patch import commands
from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.runs.run import read
from tests.making.runs import mc_run, write_run
from tests.places import ROOT

SCHEMA = json.loads((ROOT / "tests" / "app" / "every_eval_ever-0.3.0.eval.schema.json").read_text(encoding="utf-8"))
"""Every Eval Ever's schema, version 0.3.0, as ``every_eval_ever/schemas/eval.schema.json`` of the package every-eval-ever 0.3.0 on PyPI has it (MIT)."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two tasks: the data of one are on the Hub, those of the other are local files."""

    def change(data):
        data["configs"]["toy_rci2"] |= {"dataset_kwargs": {"revision": "abc"}}
        data["configs"]["toy2_rci2"] |= {"dataset_path": "parquet"}

    made = {"toy_rci2": mc_run(n=60), "toy2_rci2": mc_run(n=30)}
    return write_run(tmp_path_factory.mktemp("run"), made, change=change)


def test_a_log_of_every_eval_ever_is_valid_by_its_own_schema(run, tmp_path, capsys):
    words = ["--to", "every-eval-ever", "--output", str(tmp_path / "x.json"), "--organization", "me"]
    assert main(["export", str(run), *words]) == 0
    made = json.loads((tmp_path / "x.json").read_text())
    assert capsys.readouterr().out == f"written: {tmp_path}/x.json, {len(made['evaluation_results'])} numbers\n"
    jsonschema.Draft7Validator(SCHEMA).validate(made)
    assert made["schema_version"] == SCHEMA["version"]
    assert made["source_metadata"]["source_organization_name"] == "me"
    by_id = {one["evaluation_result_id"]: one for one in made["evaluation_results"]}
    assert len(by_id) == len(made["evaluation_results"])
    scores = [record["views"][0]["scores"]["acc"] for record in mc_run(n=60)[1]]
    best = [max(view["scores"]["acc"] for view in record["views"][1:]) for record in mc_run(n=60)[1]]
    assert by_id["toy_rci2/acc"]["score_details"]["score"] == pytest.approx(sum(scores) / 60)
    assert by_id["toy_rci2/mpp2"]["score_details"]["score"] == pytest.approx(sum(best) / 60)
    gap = by_id["toy_rci2/gap2"]["score_details"]
    mean = sum(a - b for a, b in zip(scores, best, strict=True)) / 60
    assert gap["score"] == pytest.approx(mean)
    spread = math.sqrt(sum((a - b - mean) ** 2 for a, b in zip(scores, best, strict=True)) / 60)
    assert gap["uncertainty"]["standard_error"]["value"] == pytest.approx(spread / math.sqrt(60), rel=0.1)
    assert (
        gap["uncertainty"]["confidence_interval"]["lower"] < mean < gap["uncertainty"]["confidence_interval"]["upper"]
    )
    assert gap["uncertainty"]["num_samples"] == 60
    assert by_id["toy_rci2/acc"]["source_data"] == {
        "dataset_name": "toy", "source_type": "hf_dataset", "hf_repo": "org/toy", "hf_split": "test", "samples_number": 60,
    }  # fmt: skip
    assert by_id["toy2_rci2/acc"]["source_data"] == {"dataset_name": "toy", "source_type": "other"}


def test_results_of_the_hub_read_back_as_its_own_library_reads_them(run, tmp_path, capsys):
    assert main(["export", str(run), "--to", "eval-results", "--output", str(tmp_path / "x.yaml")]) == 0
    assert "left out: toy2_rci2: the data are not on the Hub" in capsys.readouterr().out
    entries = {one.task_id: one for one in parse_eval_result_entries(yaml.safe_load((tmp_path / "x.yaml").read_text()))}
    result = read(run).results[0]
    assert entries["toy"].value == result.measures["acc"].value
    assert ("toy_rci2" in entries) == (result.measures["rci2"].value is not None)
    for one in entries.values():
        assert (one.dataset_id, one.dataset_revision, one.source_name) == ("org/toy", "abc", "lmms-patch")
        assert one.date == "2026-01-01"
        assert "60 docs" in one.notes


def test_a_run_without_data_on_the_hub_has_nothing_for_it(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecordError, match="no number can go to eval-results: toy2_rci2: the data are not on the Hub"):
        commands.export(run, "toy2_rci2", to="eval-results")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--to", "eval-results", "--task", "nothing"], "no task 'nothing'; allowed: toy_rci2, toy2_rci2"),
        (
            ["--to", "every-eval-ever", "--output", "20260101_000000_results.json"],
            "this is how lmms-eval names the files of a run",
        ),
        (["--to", "nowhere"], "--to must be parquet, csv, jsonl, every-eval-ever"),
        (["--output", "a.xls"], "a table cannot be written as 'xls'; allowed: parquet, csv, jsonl"),
    ],
)
def test_mistakes_are_one_line(run, arguments, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(run), *arguments]) == 2
    assert told in (said := capsys.readouterr().err)
    assert len(said.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OptionError, match="--relationship mine: allowed: first_party"):
        commands.export(run, to="every-eval-ever", relationship="mine")


@pytest.mark.parametrize("higher", [True, False])
def test_scores_of_an_error_rate_are_better_when_lower(run, tmp_path, higher, monkeypatch):
    """The score and that of the best cell; an index has no direction of the metric's."""
    monkeypatch.setattr(type(read(run).results[0]), "higher_is_better", property(lambda self: higher))
    commands.export(run, to="every-eval-ever", output=tmp_path / "x.json")
    configs = [one["metric_config"] for one in json.loads((tmp_path / "x.json").read_text())["evaluation_results"]]
    lower = {one["metric_name"]: one["lower_is_better"] for one in configs}
    assert (lower["acc"], lower["mpp2"], lower["rci2"], lower["gap2"]) == (not higher, not higher, False, False)
