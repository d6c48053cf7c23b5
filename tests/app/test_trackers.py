"""What leaves for a tracker: no secret that stands in a results file."""

import json
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from lmms_patch.app import api
from lmms_patch.runs.run import read
from tests.making.runs import mc_run, write_run

SECRETS = ("sk-ABCDEF0123456789abcd", "hunter2secret", "hf_abcdefghijklmnopqrstuvwx")


@pytest.fixture
def uploaded(monkeypatch):
    """A stand-in for MLflow: what it was given, by name."""
    out = {}
    mlflow = SimpleNamespace(
        set_experiment=lambda name: None,
        start_run=lambda **given: nullcontext(),
        log_params=lambda given: out.update(params=json.dumps(given)),
        log_metrics=lambda given: out.update(metrics=json.dumps(given)),
        log_text=lambda text, name: out.update({name: text}),
        log_artifact=lambda path: pytest.fail(f"{path} went out as it lies on the disk"),
    )
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    return out


@pytest.mark.parametrize(
    "arguments",
    [
        f"model_version=m,api_key={SECRETS[0]},base_url=https://me:{SECRETS[1]}@host/v1,hf_token={SECRETS[2]}",
        {"model_version": "m", "api_key": SECRETS[0], "nested": [{"password": SECRETS[1]}], "note": f"with {SECRETS[2]}"},
    ],
)
def test_secrets_of_a_results_file_stay_here(tmp_path, uploaded, arguments):
    path = write_run(tmp_path, {"toy_rci2": mc_run(n=30)})
    data = json.loads(path.read_text())
    data["config"] = {"model": "openai", "model_args": arguments, "resolved_cli_args": {"model_args": arguments, "verbosity": "INFO"}}
    path.write_text(json.dumps(data))
    api.publish(path, "mlflow")
    for name, text in uploaded.items():
        assert not any(secret in text for secret in SECRETS), name
    sent = json.loads(uploaded[path.name])
    assert "model_version" in json.dumps(sent["config"]["model_args"])
    assert sent["results"] == data["results"]
    assert sent["configs"] == data["configs"]


def test_a_file_without_secrets_goes_out_as_it_is(tmp_path, uploaded):
    path = write_run(tmp_path, {"toy_rci2": mc_run(n=30)})
    api.publish(path, "mlflow")
    assert uploaded[path.name] == path.read_text()
    assert read(path).results[0].metrics["acc"] == json.loads(uploaded["metrics"])["toy_rci2/acc"]
