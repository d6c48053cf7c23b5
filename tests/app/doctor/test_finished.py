"""Runs that are not whole, or lack what their numbers need: each fault is told, with the command that mends it."""

import json

import pytest

from lmms_patch.app.cli import main
from lmms_patch.app.doctor.finished import finished
from tests.making.runs import as_before, one_cell_knows, views_run, world_run, write_run


@pytest.fixture
def run(tmp_path):
    """A run of a grid and of the same benchmark without images; its results file."""
    blind = views_run("blind", [0.4], n=40, base="toy")
    return write_run(
        tmp_path / "out", {"toy_rci2": world_run(one_cell_knows, n=40), "toy_blind": blind}, model_name="org/seven"
    )


def states(path):
    return [(one.about, one.state) for one in finished(path)]


def the(path, state):
    (one,) = [line for line in finished(path) if line.state == state]
    assert one.type
    assert "\n" not in one.said + one.type
    return one


def test_a_whole_run_is_ok(run):
    assert states(run.parent) == [("run", "ok")]
    assert finished(run.parent)[0].said == "toy_rci2, toy_blind: every number is one that the sample log gives"


def test_no_run(tmp_path):
    line = the(tmp_path, "wrong")
    assert "no *_results.json here" in line.said
    assert line.type.endswith("lmms-patch doctor OUT")


def test_a_run_without_a_task_of_ours(tmp_path):
    (tmp_path / "2026_results.json").write_text('{"results": {"gqa": {}}, "configs": {"gqa": {}}}')
    assert "no wrapped task in it" in the(tmp_path, "wrong").said


def test_a_run_without_sample_logs(run):
    for log in run.parent.glob("*.jsonl"):
        log.unlink()
    line = the(run, "warning")
    assert line.said.startswith("no sample log of toy_rci2, toy_blind: ")
    assert "--tasks toy_rci2,toy_blind" in line.type
    assert line.type.endswith("--log_samples")


def test_a_log_that_was_written_and_is_gone(run):
    data = json.loads(run.read_text())
    data["config"] = {**data.get("config", {}), "resolved_cli_args": {"log_samples": True}}
    run.write_text(json.dumps(data))
    next(run.parent.glob("*toy_rci2.jsonl")).unlink()
    line = the(run, "wrong")
    assert "the run wrote a sample log of toy_rci2, which is not there" in line.said
    assert line.type == "put it back beside the results file"


def test_results_that_do_not_match_their_log(run):
    """One answer of the log is turned from wrong to right."""
    log = next(run.parent.glob("*toy_rci2.jsonl"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    wrong = next(one for one in lines if one["patch"]["views"][0]["scores"]["acc"] == 0.0)
    wrong["patch"]["views"][0]["scores"]["acc"] = 1.0
    log.write_text("".join(json.dumps(one) + "\n" for one in lines))
    line = the(run, "wrong")
    assert "toy_rci2" in line.said
    assert "the file was changed" in line.said


def test_a_number_that_was_changed_in_the_results_file(run):
    data = json.loads(run.read_text())
    analysis = data["results"]["toy_rci2"]["patch,none"]["analysis"]
    analysis["fip"]["high"] += 0.01
    run.write_text(json.dumps(data))
    assert "fip" in the(run, "wrong").said


def test_a_run_without_images_is_asked_for(tmp_path):
    path = write_run(tmp_path, {"toy_rci2": world_run(one_cell_knows, n=40)}, model_name="org/seven")
    line = the(path, "warning")
    assert line.said == "no run without images of toy: the gap between seeing and not seeing is not known"
    assert "--tasks toy_blind" in line.type


def test_a_run_whose_docs_were_not_asked_on_wrong_images(run):
    as_before(run)
    found = {one.about: one for one in finished(run)}
    assert found["wrong images"].state == "warning"
    assert "toy_rci2: no doc was asked on a wrong image" in found["wrong images"].said
    assert "--tasks toy_rci2" in found["wrong images"].type


def test_a_part_of_a_benchmark(run):
    data = json.loads(run.read_text())
    data["config"] = {**data.get("config", {}), "limit": 40}
    run.write_text(json.dumps(data))
    found = {one.about: one for one in finished(run)}
    assert found["docs"].state == "warning"
    assert "--limit (40)" in found["docs"].said
    assert "--limit" not in found["docs"].type


def test_the_command_prints_json_of_its_schema(run, capsys):
    import jsonschema

    from lmms_patch.app import api

    status = main(["doctor", str(run), "--format", "json"])
    printed = json.loads(capsys.readouterr().out)
    jsonschema.validate(printed, api.schema("doctor"))
    assert printed["status"] == status == int(any(one["state"] == "wrong" for one in printed["lines"]))
    assert printed["lines"][-1] == {
        "about": "run",
        "state": "ok",
        "said": "toy_rci2, toy_blind: every number is one that the sample log gives",
        "type": "",
    }
