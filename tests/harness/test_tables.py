"""The files that a run leaves beside those of the harness: the long objects of its wrapped tasks, and a Parquet file beside each sample log.

Also what stands in the harness's own results file, and what experiment trackers get.
"""

import json
import math
import re
from argparse import Namespace
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from lmms_eval.loggers import WandbLogger
from lmms_eval.loggers.evaluation_tracker import EvaluationTracker
from lmms_eval.utils import make_table
from loguru import logger

from lmms_patch import files
from lmms_patch.app import schemas
from lmms_patch.errors import RecordError
from lmms_patch.harness import plugin, written
from lmms_patch.harness.asking import portions
from lmms_patch.runs import rows, samples
from lmms_patch.runs.results import objects_file, results_files
from lmms_patch.runs.run import find, read
from tests.harness import toys
from tests.harness.askers import PerRequestK
from tests.harness.toys import write_task

CLI = Namespace(output_path=None, process_with_media=False, reasoning_tags=None, model="m", model_args="", batch_size=1)


def saved(folder, out, names, **options):
    """Run tasks and save what comes as the command line does."""
    tracker = EvaluationTracker(output_path=str(out))
    return save(
        toys.run(PerRequestK(), names, folder, cli_args=CLI, evaluation_tracker=tracker, **options), tracker, out
    )


def save(found, tracker, out):
    """Save what a run found as the command line does; the wrapped tasks by name."""
    logged = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=logged, datetime_str="20260101_000000")
    for task in found["configs"]:
        tracker.save_results_samples(task_name=task, samples=logged[task])
    return (
        {result.task: result for run in find([out]) for result in run.results}
        if list(out.rglob("*_results.json"))
        else {}
    )


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    options = {"null": 20, "pilot": 30, "precision": 0.12, "seed": 1}
    write_task(folder, "toy", toys.rows(150), metadata={"lmms_patch": options})
    both = [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in ("exact_match", "anls")]
    write_task(folder, "two", toys.rows(5), metadata={"lmms_patch": options}, metric_list=both)
    return folder


def names_in(out):
    return sorted(path.name.removeprefix("20260101_000000_") for path in out.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def finished(tasks, tmp_path_factory):
    """A run of plain and wrapped tasks, of one metric and of two: its folder, its wrapped results, and the table that the harness prints."""
    out = tmp_path_factory.mktemp("finished")
    tracker = EvaluationTracker(output_path=str(out))
    found = toys.run(
        PerRequestK(), "toy,two,toy_rci,two_rci,toy_blank", tasks, cli_args=CLI, evaluation_tracker=tracker, limit=5
    )
    cli = {"limit": 5, "output_path": "my runs", "log_samples": True}
    here = {
        **found,
        "results": {name: {**values} for name, values in found["results"].items()},
    }  # the harness takes names out of these
    printed = plugin._last_screen(make_table, {**here, "config": {**found["config"], "resolved_cli_args": cli}})
    saved_as = save(found, tracker, out)
    tracker_of_runs = WandbLogger.__new__(WandbLogger)
    tracker_of_runs.post_init(found)
    return out, saved_as, printed, found, tracker_of_runs


def test_each_wrapped_task_has_one_and_it_is_used(finished, monkeypatch, small_tables):
    out, results, *_ = finished
    wrapped = [
        f"samples_{name}.{kind}" for name in ("toy_blank", "toy_rci", "two_rci") for kind in ("jsonl", "parquet")
    ]
    assert names_in(out) == sorted(["patch.json", "results.json", "samples_toy.jsonl", "samples_two.jsonl", *wrapped])
    monkeypatch.setattr(samples, "batches", lambda result: pytest.fail("the log was read"))
    assert samples.table(results["toy_rci"]).num_rows == 5 * 2 * 14  # fourteen views, and fourteen on a wrong image
    assert samples.table(results["toy_blank"]).num_rows == 5


def test_the_harness_prints_few_more_rows_of_a_wrapped_task(finished):
    """At most six, at both grids of the papers; those of a plain task stay. What has no value has no row."""
    rows = [[cell.strip() for cell in line.split("|")] for line in finished[2].splitlines() if line.startswith("|")]
    count = Counter(row[1] for row in rows)
    assert (count["toy"], count["two"]) == (1, 2)
    assert max(count[name] for name in ("toy_rci", "two_rci", "toy_blank")) <= 6
    shown = {row[4]: float(row[6]) for row in rows if row[1] == "toy_rci"}
    result = finished[1]["toy_rci"]
    assert {"exact_match", "exact_match_mpp3", "n_docs"} <= set(shown)
    assert shown == {name: pytest.approx(result.metrics[name], abs=5e-5) for name in shown}


def test_below_the_table_stands_what_was_found_and_what_to_type(finished):
    *_, below = finished[2].rpartition("|\n")
    lines = below.strip().splitlines()
    assert lines[0].startswith("- a trial of 5 docs: the pipeline works, and most numbers will change;")
    assert sum(line.startswith("- ") for line in lines) >= 2
    assert lines[-3:] == [
        "next: lmms-patch show 'my runs'",
        "      lmms-patch report 'my runs'",
        "      lmms-patch explore 'my runs'",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "the same command with --output_path OUT --log_samples: "),
        ({"output_path": "out"}, "lmms-patch show out; for report and explore run"),
    ],
)
def test_what_to_type_where_files_are_missing(finished, given, said):
    found = {**finished[3], "config": {**finished[3]["config"], "resolved_cli_args": given}}
    blank, first, following = written.ending(found, lambda results: ["found."]).splitlines()
    assert (blank, first) == ("", "- found.")
    assert following.startswith(f"next: {said}")


def test_a_run_of_plain_tasks_ends_as_it_did(finished):
    found = {
        **finished[3],
        "results": {"toy": finished[3]["results"]["toy"]},
        "configs": {"toy": finished[3]["configs"]["toy"]},
    }
    assert written.for_screen(found) is found
    assert written.ending(found, lambda results: pytest.fail("nothing is ours")) == ""


def test_answers_alone_have_one_without_scores(tasks, tmp_path):
    [result] = saved(tasks, tmp_path, "toy_rci2", limit=5, predict_only=True).values()
    assert names_in(tmp_path)[-1] == "samples_toy_rci2.parquet"
    found = samples.table(result)
    assert found["score"].null_count == len(found)
    assert found["answer"].null_count == 0


@pytest.mark.parametrize("error", [RecordError("no space"), MemoryError("no memory")])
def test_a_run_that_cannot_write_it_keeps_its_results(tasks, tmp_path, monkeypatch, error):
    def fails(results):
        raise error

    told = []
    monkeypatch.setattr(samples, "write", fails)
    number = logger.add(
        lambda message: told.append(message.record["message"]),
        level="WARNING",
        filter=lambda record: "Parquet" in record["message"],
    )
    assert set(saved(tasks, tmp_path, "toy_rci2", limit=3)) == {"toy_rci2"}
    logger.remove(number)
    assert names_in(tmp_path) == ["patch.json", "results.json", "samples_toy_rci2.jsonl"]
    assert len(told) == 1
    assert told[0].startswith(
        "toy_rci2: the samples are not written as Parquet; every reader takes the sample log instead: "
    )


def test_nothing_is_written_where_the_host_writes_nothing(tasks, monkeypatch):
    monkeypatch.setattr(samples, "write", lambda results: pytest.fail("written"))
    tracker = EvaluationTracker()
    plugin.write_files()
    tracker.save_results_samples(task_name="toy_rci2", samples=[])


def test_views_that_a_quick_run_left_out_have_rows(tasks, tmp_path, monkeypatch):
    """The run counts its calls by itself; every doc has a row for each of its ten views, asked or not."""
    monkeypatch.setattr(portions, "SECONDS", 1e9)
    result = saved(tasks, tmp_path, "toy_rci3_quick")["toy_rci3_quick"]
    found, asked = samples.table(result), result.details["analysis"]["asked"]
    own = found.filter([not swapped for swapped in found["swapped"].to_pylist()])
    assert own.num_rows == 150 * 10
    assert sum(own["asked"].to_pylist()) == asked["calls"] < asked["of"] == 1500
    assert all(
        answer is None
        for answer, was in zip(own["answer"].to_pylist(), own["asked"].to_pylist(), strict=True)
        if not was
    )
    assert own.filter(own["asked"])["answer"].null_count == 0
    assert found.num_rows == own.num_rows + 20 * 10
    assert found.equals(samples.pa.Table.from_batches(rows.batches(result)))


# --- the results file and the objects beside it ---------------------------------------------------


def filed(out):
    """The results file as the harness wrote it."""
    return json.loads(results_files(out)[-1].read_text())


def test_a_results_file_has_numbers_alone_with_standard_errors_in_the_columns_of_the_harness(finished):
    out, results, *_ = finished
    for task in ("toy_rci", "two_rci", "toy_blank"):
        values = filed(out)["results"][task]
        own = re.compile(r"alias|(exact_match|anls)_stderr\w*,none")
        assert {
            name: value
            for name, value in values.items()
            if not isinstance(value, (int, float, type(None))) and not own.fullmatch(name)
        } == {}
    values, grid = filed(out)["results"]["toy_rci"], results["toy_rci"].details["analysis"]["grids"]["3"]
    for name, estimate in {
        "exact_match_mpp3": grid["mpp"],
        "rci3": grid["index"],
        "rci3_adj": grid["adj"]["estimate"],
        "gap3": grid["gap"],
    }.items():
        assert values[f"{name},none"] == estimate["value"]
        assert values.get(f"{name}_stderr,none") == estimate["se"]
        if not name.endswith("mpp3"):
            assert (values[f"{name}_low,none"], values[f"{name}_high,none"]) == (estimate["low"], estimate["high"])
    assert values["n_docs,none"] == 5
    plain = filed(out)["results"]["toy"]  # of a task that is not wrapped nothing changes
    assert list(plain) == [
        "alias",
        *(f"exact_match{end},none" for end in ("", "_stderr", "_stderr_clt", "_stderr_clustered")),
    ]


def test_a_standard_error_is_that_of_the_docs(tasks, tmp_path):
    """The gap is a mean of differences of scores, so its standard error is their standard deviation (of n) by the root of n; of B = 1000 draws."""
    tracker = EvaluationTracker(output_path=str(tmp_path))
    found = toys.run(PerRequestK(), "toy_rci2", tasks, cli_args=CLI, evaluation_tracker=tracker)
    row = next(
        line
        for line in make_table({**found, "results": {"toy_rci2": {**found["results"]["toy_rci2"]}}}).splitlines()
        if "|gap2 " in line
    )
    result = save(found, tracker, tmp_path)["toy_rci2"]
    scores = [[view.scores["exact_match"] for view in record.views] for record in result.records()]
    gaps = np.array([full - max(cells) for full, *cells in scores])
    assert gaps.std() > 0.1
    error = filed(tmp_path)["results"]["toy_rci2"]["gap2_stderr,none"]
    assert error == pytest.approx(gaps.std() / math.sqrt(len(gaps)), rel=0.1)
    assert f"±  |{error:.4f}" in row


def test_each_filter_pipeline_has_its_own_columns_and_object(tmp_path):
    filters = [{"name": name, "filter": [{"function": "take_first"}]} for name in ("b", "a")]
    write_task(tmp_path / "tasks", "toy", toys.rows(60), filter_list=filters)
    tracker = EvaluationTracker(output_path=str(tmp_path / "out"))
    save(
        toys.run(PerRequestK(), "toy_rci2", tmp_path / "tasks", cli_args=CLI, evaluation_tracker=tracker),
        tracker,
        tmp_path / "out",
    )
    both = read(results_files(tmp_path / "out")[0]).results
    assert [(result.filter, result.place, result.docs) for result in both] == [("b", 0, 60), ("a", 1, 60)]
    values = filed(tmp_path / "out")["results"]["toy_rci2"]
    assert values["gap2_stderr,a"] == values["gap2_stderr,b"] == both[0].measures["gap2"].se > 0


def copied(out, folder):
    """Copy a run; its results file there."""
    for path in out.rglob("*"):
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    return results_files(folder)[0]


def test_the_file_of_objects_is_as_its_schema_says(finished):
    written = json.loads(objects_file(results_files(finished[0])[0]).read_text())
    assert sorted(written["results"]) == ["toy_blank", "toy_rci", "two_rci"]
    Draft202012Validator(schemas.load("objects")).validate(written)


def test_a_results_file_alone_says_what_is_missing(finished, tmp_path):
    results = copied(finished[0], tmp_path)
    objects_file(results).unlink()
    with pytest.raises(RecordError) as said:
        read(results)
    assert (
        str(said.value)
        == f"{results}: {objects_file(results).name}, which has the intervals of its tasks, is not beside it; copy it there too"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not a whole file of lmms-patch"),
        ("[]", "not a whole file of lmms-patch"),
        ('{"schema": 1}', "not a whole file of lmms-patch"),
        ('{"schema": 1, "results": {"toy_rci": 3}}', "not a whole file of lmms-patch"),
        ('{"schema": 2, "results": {}}', "of schema 2; written by another version of lmms-patch"),
    ],
)
def test_a_damaged_file_of_objects_is_one_line(finished, tmp_path, content, said):
    results = copied(finished[0], tmp_path)
    objects_file(results).write_text(content)
    with pytest.raises(RecordError, match=f"_patch.json: {said}"):
        read(results)


def test_objects_stay_in_the_results_where_they_cannot_be_written_beside(tasks, tmp_path, monkeypatch):
    def fails(path, content):
        raise RecordError(f"{path}: no space")

    monkeypatch.setattr(files, "write", fails)
    result = saved(tasks, tmp_path, "toy_rci2", limit=3)["toy_rci2"]
    assert "patch.json" not in names_in(tmp_path)
    assert filed(tmp_path)["results"]["toy_rci2"]["patch,none"] == result.details != {}


def test_no_results_file_lacks_its_objects_wherever_the_run_is_killed(finished, tmp_path, monkeypatch):
    """The run dies while the harness writes the results: their objects are there, whole, and do no harm to whoever reads the folder."""
    tracker = EvaluationTracker(output_path=str(tmp_path))
    tracker.general_config_tracker.model_name_sanitized = "m"
    monkeypatch.setattr(
        "lmms_eval.loggers.evaluation_tracker.asdict", lambda about: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        tracker.save_results_aggregated(results={**finished[3]}, samples=None, datetime_str="20260101_000000")
    assert names_in(tmp_path) == ["patch.json"]
    known = json.loads(next(tmp_path.rglob("*_patch.json")).read_text())["results"]
    assert {task: objects["patch,none"] for task, objects in known.items()} == {
        task: result.details for task, result in finished[1].items()
    }
    with pytest.raises(RecordError, match=r"no \*_results.json here"):
        find([tmp_path])


def test_without_an_output_path_the_objects_stay_in_memory(finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = finished[3]
    EvaluationTracker().save_results_aggregated(results=found, samples=None, datetime_str="20260101_000000")
    assert found["results"]["toy_rci"]["patch,none"]["records"] == 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fails", [False, True])
def test_the_objects_are_pushed_where_the_results_are(finished, tmp_path, fails):
    pushed = []

    def upload_file(path_or_fileobj, path_in_repo, repo_id, **more):
        pushed.append((path_in_repo, repo_id))
        if fails:
            raise OSError("no network")

    tracker = EvaluationTracker(output_path=str(tmp_path), hub_results_org="org")
    tracker.api, tracker.push_results_to_hub = (
        SimpleNamespace(create_repo=lambda **more: None, upload_file=upload_file),
        True,
    )
    tracker.general_config_tracker.model_name, tracker.general_config_tracker.model_name_sanitized = "a/m", "a__m"
    tracker.save_results_aggregated(results={**finished[3]}, samples=None, datetime_str="20260101_000000")
    repo = "org/lmms-eval-results-private"
    assert pushed == [("a/m/20260101_000000_results.json", repo), ("a/m/20260101_000000_patch.json", repo)]


# --- trackers -------------------------------------------------------------------------------------


def test_a_tracker_gets_few_numbers_and_the_findings(finished):
    """As the harness's wandb logger flattens them: a key for each number, and texts into the summary."""
    found, logger_of_runs = finished[3], finished[4]
    texts, numbers = logger_of_runs._sanitize_results_dict()
    of = {
        task: {key.partition("/")[2]: value for key, value in numbers.items() if key.startswith(f"{task}/")}
        for task in found["results"]
    }
    for task in ("toy_rci", "two_rci", "toy_blank"):
        assert 3 <= len(of[task]) <= 20
        assert all(isinstance(value, (int, float)) for value in of[task].values())
        assert texts[f"{task}/findings"].endswith(".")
    values = filed(finished[0])["results"]["toy_rci"]
    assert of["toy_rci"] == {
        name: values[f"{name},none"] for name in of["toy_rci"]
    }  # the names and numbers of the results file
    assert {"exact_match", "exact_match_mpp2", "exact_match_mpp3", "chance", "n_docs"} <= set(of["toy_rci"])
    assert of["toy"] == {
        name: value for name, value in of["toy"].items() if name.startswith("exact_match")
    }  # as it was
    assert "toy/findings" not in texts
    assert len(found["results"]["toy_rci"]["patch,none"]["made"]) > 2  # the run's own results stay as they are


def test_the_web_ui_of_the_harness_shows_wrapped_tasks_and_their_samples(finished):
    """``lmms-eval-ui`` reads the folder of runs; here its endpoints are asked in this process."""
    from fastapi.testclient import TestClient
    from lmms_eval.tui.server import app

    ui, logs = TestClient(app), {"logs_path": str(finished[0])}
    [run] = ui.get("/logs/runs", params=logs).json()
    assert {"toy_rci", "two_rci", "toy_blank"} <= set(run["tasks"])
    assert run["metrics"]["toy_rci"]["gap3,none"] == finished[1]["toy_rci"].measures["gap3"].value
    assert not any(isinstance(value, (dict, list)) for value in run["metrics"]["toy_rci"].values())
    page = ui.get(f"/logs/runs/{run['run_id']}/samples/toy_rci", params={**logs, "offset": 1, "limit": 2}).json()
    assert (page["total"], [line["doc_id"] for line in page["samples"]]) == (5, [1, 2])
    assert page["samples"][0]["patch"]["views"][0]["scores"] == next(
        record.views[0].scores for record in finished[1]["toy_rci"].records() if record.doc_id == 1
    )
