"""The Parquet file that a run leaves beside each sample log of a wrapped task."""

from argparse import Namespace
from collections import Counter

import pytest
from lmms_eval.loggers.evaluation_tracker import EvaluationTracker
from lmms_eval.utils import make_table
from loguru import logger

from lmms_patch.errors import RecordError
from lmms_patch.harness import plugin
from lmms_patch.harness.asking import portions
from lmms_patch.runs import rows, samples
from lmms_patch.runs.run import find
from tests.harness import toys
from tests.harness.askers import PerRequestK
from tests.harness.toys import write_task

CLI = Namespace(output_path=None, process_with_media=False, reasoning_tags=None, model="m", model_args="", batch_size=1)


def saved(folder, out, names, **options):
    """Run tasks and save what comes as the command line does."""
    tracker = EvaluationTracker(output_path=str(out))
    return save(toys.run(PerRequestK(), names, folder, cli_args=CLI, evaluation_tracker=tracker, **options), tracker, out)


def save(found, tracker, out):
    """Save what a run found as the command line does; the wrapped tasks by name."""
    logged = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=logged, datetime_str="20260101_000000")
    for task in found["configs"]:
        tracker.save_results_samples(task_name=task, samples=logged[task])
    return {result.task: result for run in find([out]) for result in run.results} if list(out.rglob("*_results.json")) else {}


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
    found = toys.run(PerRequestK(), "toy,two,toy_rci,two_rci,toy_blank", tasks, cli_args=CLI, evaluation_tracker=tracker, limit=5)
    printed = make_table({**found, "results": {name: {**values} for name, values in found["results"].items()}})  # it takes names out of these
    return out, save(found, tracker, out), printed


def test_each_wrapped_task_has_one_and_it_is_used(finished, monkeypatch):
    out, results, _ = finished
    wrapped = [f"samples_{name}.{kind}" for name in ("toy_blank", "toy_rci", "two_rci") for kind in ("jsonl", "parquet")]
    assert names_in(out) == sorted(["results.json", "samples_toy.jsonl", "samples_two.jsonl", *wrapped])
    monkeypatch.setattr(samples, "batches", lambda result: pytest.fail("the log was read"))
    assert samples.table(results["toy_rci"]).num_rows == 5 * 2 * 14  # fourteen views, and fourteen on a wrong image
    assert samples.table(results["toy_blank"]).num_rows == 5


def test_the_harness_prints_few_more_rows_of_a_wrapped_task(finished):
    """At most 12 more than of the plain task, at both grids of the papers, with one metric or two; each further metric adds a row for each grid."""
    rows = Counter(line.split("|")[1].strip() for line in finished[2].splitlines())
    assert (rows["toy"], rows["two"]) == (1, 2)
    added = {name: rows[f"{name}_rci"] - rows[name] for name in ("toy", "two")}
    assert 0 < max(added.values()) <= 12
    assert added["two"] == added["toy"] + 2


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
    number = logger.add(lambda message: told.append(message.record["message"]), level="WARNING", filter=lambda record: "Parquet" in record["message"])
    assert set(saved(tasks, tmp_path, "toy_rci2", limit=3)) == {"toy_rci2"}
    logger.remove(number)
    assert names_in(tmp_path) == ["results.json", "samples_toy_rci2.jsonl"]
    assert len(told) == 1
    assert told[0].startswith("toy_rci2: the samples are not written as Parquet; every reader takes the sample log instead: ")


def test_nothing_is_written_where_the_host_writes_nothing(tasks, monkeypatch):
    monkeypatch.setattr(samples, "write", lambda results: pytest.fail("written"))
    tracker = EvaluationTracker()
    plugin.write_tables()
    tracker.save_results_samples(task_name="toy_rci2", samples=[])


def test_views_that_a_quick_run_left_out_have_rows(tasks, tmp_path, monkeypatch):
    """The run counts its calls by itself; every doc has a row for each of its ten views, asked or not."""
    monkeypatch.setattr(portions, "SECONDS", 1e9)
    result = saved(tasks, tmp_path, "toy_rci3_quick")["toy_rci3_quick"]
    found, asked = samples.table(result), result.details["analysis"]["asked"]
    own = found.filter([not swapped for swapped in found["swapped"].to_pylist()])
    assert own.num_rows == 150 * 10
    assert sum(own["asked"].to_pylist()) == asked["calls"] < asked["of"] == 1500
    assert all(answer is None for answer, was in zip(own["answer"].to_pylist(), own["asked"].to_pylist(), strict=True) if not was)
    assert own.filter(own["asked"])["answer"].null_count == 0
    assert found.num_rows == own.num_rows + 20 * 10
    assert found.equals(samples.pa.Table.from_batches(rows.batches(result)))
