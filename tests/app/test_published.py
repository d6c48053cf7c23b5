"""The numbers of a run for other sites and for experiment trackers: ``lmms-patch export --to``."""

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from lmms_patch.app import api
from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError, PatchError, RecordError
from lmms_patch.runs.columns import tracked
from lmms_patch.runs.run import read
from tests.making.runs import mc_run, write_run
from tests.places import ROOT

SCHEMA = json.loads((ROOT / "tests" / "app" / "every_eval_ever-0.3.0.eval.schema.json").read_text(encoding="utf-8"))
"""Every Eval Ever's schema, version 0.3.0, as ``every_eval_ever/schemas/eval.schema.json`` of the package every-eval-ever 0.3.0 on PyPI has it (MIT)."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two tasks: the data of one are on the Hub, those of the other are local files."""
    path = write_run(tmp_path_factory.mktemp("run"), {"toy_rci2": mc_run(n=60), "toy2_rci2": mc_run(n=30)})
    data = json.loads(path.read_text())
    data["configs"]["toy_rci2"] |= {"dataset_path": "org/toy", "dataset_kwargs": {"revision": "abc"}, "test_split": "test"}
    data["configs"]["toy2_rci2"] |= {"dataset_path": "parquet"}
    path.write_text(json.dumps(data))
    return path


def test_a_log_of_every_eval_ever_is_valid_by_its_own_schema(run, tmp_path, capsys):
    assert main(["export", str(run), "--to", "every-eval-ever", "--output", str(tmp_path / "x.json"), "--organization", "me"]) == 0
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
    assert gap["uncertainty"]["confidence_interval"]["lower"] < mean < gap["uncertainty"]["confidence_interval"]["upper"]
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
    shown = [name for name in ("rci2", "rci2_adj") if result.measures[name].value is not None]
    assert ("toy_rci2" in entries) == bool(shown)
    for one in entries.values():
        assert (one.dataset_id, one.dataset_revision, one.source_name) == ("org/toy", "abc", "lmms-patch")
        assert one.date == "2026-01-01"
        assert "60 docs" in one.notes


def test_a_run_without_data_on_the_hub_has_nothing_for_it(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecordError, match="no number can go to eval-results: toy2_rci2: the data are not on the Hub"):
        api.publish(run, "eval-results", "toy2_rci2")
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_its_log_contradicts_goes_nowhere(run, tmp_path):
    data = json.loads(run.read_text())
    data["results"]["toy_rci2"]["patch,none"]["analysis"]["fip"]["value"] += 0.1
    for path in run.parent.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / run.name).write_text(json.dumps(data))
    with pytest.raises(RecordError, match=r"toy_rci2: "):
        api.publish(tmp_path, "every-eval-ever", output=tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--to", "mlflow", "--output", "x"], "--output x: mlflow takes no file"),
        (["--to", "eval-results", "--task", "nothing"], "no task 'nothing'; allowed: toy_rci2, toy2_rci2"),
        (["--to", "every-eval-ever", "--output", "20260101_000000_patch.json"], "this is how lmms-eval names the files of a run"),
        (["--to", "nowhere"], "--to must be parquet, csv, jsonl, every-eval-ever"),
    ],
)
def test_mistakes_are_one_line(run, arguments, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(run), *arguments]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OptionError, match="--relationship mine: allowed: first_party"):
        api.publish(run, "every-eval-ever", relationship="mine")


# --- trackers -------------------------------------------------------------------------------------


def test_the_numbers_of_a_tracker_are_few_and_those_of_the_run(run):
    result = read(run).results[0]
    numbers = tracked(result)
    assert len(numbers) <= 20
    assert {"acc", "n_docs", "gate", "chance", "rci2", "acc_mpp2"} <= set(numbers) | {name for name, value in result.metrics.items() if value is None}
    for name, value in numbers.items():
        known = name.removesuffix("_stderr").removesuffix("_low").removesuffix("_high").removeprefix("acc_") if name != "acc" else name
        estimate = result.measures.get(known)
        side = next((end for end in ("low", "high") if name.endswith(f"_{end}")), "se" if name.endswith("_stderr") else "value")
        assert value == (60 if name == "n_docs" else result.metrics["gate"] if name == "gate" else getattr(estimate, side))
    for most in range(1, 20):  # the most important come first, and an interval is whole or not there
        few = tracked(result, most)
        assert len(few) <= most
        assert {name.removesuffix("_low") for name in few if name.endswith("_low")} == {
            name.removesuffix("_high") for name in few if name.endswith("_high")
        }
        assert next(iter(few)) == "acc"


@pytest.mark.parametrize("to", ["trackio", "wandb"])
def test_a_tracker_like_wandb_gets_numbers_and_findings(run, monkeypatch, to):
    told = {}
    stand_in = SimpleNamespace(init=lambda **given: told.update(given), log=lambda numbers: told.update(log=numbers), finish=lambda: None)
    monkeypatch.setitem(sys.modules, to, stand_in)
    done = api.publish(run, to, project="mine")
    assert (told["project"], told["config"]["model"], done.numbers) == ("mine", read(run).model, len(told["log"]))
    assert told["log"]["toy_rci2/acc"] == read(run).results[0].metrics["acc"]
    assert "toy" in told["config"]["findings"]


def test_a_tracker_that_is_missing_or_refuses_is_one_line(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(PatchError, match=r"^trackio is not installed; type: pip install trackio$"):
        api.publish(run, "trackio")

    def refuses(**given):
        raise ConnectionError("no\nnetwork")

    monkeypatch.setitem(sys.modules, "trackio", SimpleNamespace(init=refuses))
    with pytest.raises(PatchError) as said:
        api.publish(run, "trackio")
    assert str(said.value).startswith("trackio did not take the run: ConnectionError: no")
    assert "\n" not in str(said.value)


def test_wandb_has_the_run_on_disk(run, tmp_path, monkeypatch):
    """What ``wandb sync`` would send: read from the file of an offline run."""
    wandb = pytest.importorskip("wandb", reason="lmms-eval installs it")
    from wandb.proto.wandb_internal_pb2 import Record
    from wandb.sdk.internal.datastore import DataStore

    for name, value in {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "WANDB_SILENT": "true"}.items():
        monkeypatch.setenv(name, value)
    done = api.publish(run, "wandb", project="toys")
    wandb.teardown()
    [file] = tmp_path.rglob("run-*.wandb")
    store, records = DataStore(), []
    store.open_for_scan(str(file))
    while (data := store.scan_data()) is not None:
        records.append(Record.FromString(bytes(data)))
    [logged] = [one.run for one in records if one.WhichOneof("record_type") == "run"]
    [step] = [one.history for one in records if one.WhichOneof("record_type") == "history"]
    numbers = {"".join(one.nested_key) or one.key: json.loads(one.value_json) for one in step.item}
    ours = {name: value for name, value in numbers.items() if not name.startswith("_")}
    assert len(ours) == done.numbers
    assert ours["toy_rci2/acc"] == read(run).results[0].metrics["acc"]
    config = {one.key: json.loads(one.value_json) for one in logged.config.update}
    assert (logged.project, config["model"]) == ("toys", read(run).model)
    assert "toy" in config["findings"]


@pytest.fixture
def needs(request):
    """A tracker that `make setup` installs: elsewhere its test is skipped, or fails where LMMS_PATCH_TRACKERS is ``required``."""
    if importlib.util.find_spec(request.param) is None:
        if os.environ.get("LMMS_PATCH_TRACKERS") == "required":
            pytest.fail(f"{request.param} is not installed, but LMMS_PATCH_TRACKERS is required", pytrace=False)
        pytest.skip(f"{request.param} is not installed; type: make setup")


@pytest.mark.parametrize("needs", ["mlflow"], indirect=True)
def test_mlflow_has_the_run_on_disk(needs, run, tmp_path, monkeypatch):
    import mlflow

    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    done = api.publish(run, "mlflow", project="toys")
    [logged] = mlflow.search_runs(experiment_names=["toys"], output_format="list")
    assert len(logged.data.metrics) == done.numbers
    assert logged.data.metrics["toy_rci2/acc"] == read(run).results[0].metrics["acc"]
    assert logged.data.params["model"] == read(run).model
    assert "toy" in logged.data.tags["mlflow.note.content"]
    client = mlflow.MlflowClient()
    assert {one.path for one in client.list_artifacts(logged.info.run_id)} == {"findings.md", run.name}
    assert Path(client.download_artifacts(logged.info.run_id, run.name, str(tmp_path))).read_bytes() == run.read_bytes()


@pytest.mark.parametrize("needs", ["trackio"], indirect=True)
def test_trackio_has_the_run_on_disk(needs, run, tmp_path):
    """In processes of their own, because trackio reads its folder when it is imported; read back by trackio's own command line."""
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def typed(module, *arguments):
        command = [sys.executable, "-c", f"import sys; from {module} import main; sys.exit(main())", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "logged to trackio: " in typed("lmms_patch.app.cli", "export", str(run), "--to", "trackio", "--project", "toys")
    [name] = json.loads(typed("trackio.cli", "list", "runs", "--project", "toys", "--json"))["runs"]
    assert read(run).date in name
    kept = json.loads(typed("trackio.cli", "get", "run", "--project", "toys", "--run", name, "--json"))
    wanted = {f"{result.label}/{metric}" for result in read(run).results for metric in tracked(result)}
    assert set(kept["metrics"]) == wanted
    assert kept["config"]["model"] == read(run).model
    assert "toy" in kept["config"]["findings"]
    metric = json.loads(typed("trackio.cli", "get", "metric", "--project", "toys", "--run", name, "--metric", "toy_rci2/acc", "--json"))
    assert [one["value"] for one in metric["values"]] == [read(run).results[0].metrics["acc"]]
