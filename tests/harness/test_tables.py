"""What a run leaves beside the harness's files: a table of samples for each wrapped task, and their numbers.

Also what stands in the harness's own results file and on its last screen, and what experiment trackers get.
"""

import json
import math
import re
from argparse import Namespace
from collections import Counter

import numpy as np
import polars as pl
import pytest
from lmms_eval import evaluator
from lmms_eval.loggers import WandbLogger
from lmms_eval.loggers.evaluation_tracker import EvaluationTracker
from lmms_eval.tasks import TaskManager
from lmms_eval.utils import make_table

from lmms_patch.errors import RecordError
from lmms_patch.harness import plugin, written
from lmms_patch.harness.asking import in_portions as portions
from lmms_patch.harness.wrap.known import short
from lmms_patch.runs import cache, samples
from lmms_patch.runs.run import find
from lmms_patch.runs.schema import TYPES
from tests.harness import toys
from tests.harness.askers import CountingK, Likelihood, PerRequestK
from tests.harness.toys import write_task

DATE = "20260101_000000"
CLI = Namespace(output_path=None, process_with_media=False, reasoning_tags=None, model="m", model_args="", batch_size=1)


def asked(folder, out, names, model=None, **options):
    """Ask tasks as the command line does: what it found, and what saves it."""
    tracker = EvaluationTracker(output_path=out and str(out))
    manager = TaskManager(verbosity="ERROR", include_path=str(folder))
    found = evaluator.simple_evaluate(
        model=model or PerRequestK(), tasks=names.split(","), task_manager=manager, log_samples=True, bootstrap_iters=0,
        cli_args=CLI, evaluation_tracker=tracker, **options,
    )  # fmt: skip
    return found, tracker


def save(found, tracker):
    """Save what a run found as the command line does."""
    logged = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=logged, datetime_str=DATE)
    for task in found["configs"]:
        tracker.save_results_samples(task_name=task, samples=logged[task])


def saved(folder, out, names, model=None, **options):
    """Ask tasks, save what comes, and read it: the results by task."""
    save(*asked(folder, out, names, model, **options))
    return by_task(out)


def by_task(out):
    return {result.task: result for run in find([out]) for result in run.results}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    options = {"null": 20, "pilot": 30, "precision": 0.12, "seed": 1}
    write_task(folder, "toy", toys.rows(150), metadata={"lmms_patch": options})
    both = [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in ("exact_match", "anls")]
    of_docs = {"scene": lambda i: f"scene {i // 2}", "kind": lambda i: "ab"[i % 2]}
    fields = {**options, "cluster": "scene", "category": "kind"}
    write_task(folder, "two", toys.rows(6, **of_docs), metadata={"lmms_patch": fields}, metric_list=both)
    words = {"options": lambda i: ["red", "blue"], "answer": lambda i: i % 2}
    write_task(folder, "choice", toys.rows(6, **words), output_type="multiple_choice", doc_to_choice="options", generation_kwargs=None,
               metric_list=[{"metric": "acc", "aggregation": "mean", "higher_is_better": True}], metadata={"lmms_patch": {"null": 0}})  # fmt: skip
    return folder


def names_in(out):
    return sorted(path.name.removeprefix(f"{DATE}_") for path in out.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def finished(tasks, tmp_path_factory):
    """A run of plain and wrapped tasks, of one metric and of two: its folder, its results, and the table that the harness prints."""
    out = tmp_path_factory.mktemp("finished")
    found, tracker = asked(tasks, out, "toy,two,toy_rci,two_rci,toy_blank", limit=5)
    cli = {"limit": 5, "output_path": "my runs", "log_samples": True}
    # the harness takes names out of these
    here = {**found, "results": {name: {**values} for name, values in found["results"].items()}}
    printed = plugin._last_screen(make_table, {**here, "config": {**found["config"], "resolved_cli_args": cli}})
    save(found, tracker)
    tracker_of_runs = WandbLogger.__new__(WandbLogger)
    tracker_of_runs.post_init(found)
    return out, by_task(out), printed, found, tracker_of_runs


# --- tables of samples, and of numbers ------------------------------------------------------------


def test_short_fields_of_the_docs_are_columns_unless_an_option_leaves_them_out(finished, tasks, tmp_path):
    """By them any finished run can be split; an image, a long text and a list are none."""
    _, results, *_ = finished
    frame = results["two_rci"].frame().filter(view=0)
    assert frame["doc.scene"].to_list() == [f"scene {i // 2}" for i in range(5)]
    assert frame["doc.kind"].to_list() == frame["category"].to_list()
    assert "doc.image" not in frame.columns
    odd = {
        "long": lambda i: "x" * 65,
        "few": lambda i: [i],
        "share": lambda i: i / 2 if i else None,
    }
    for name, kept in (("odd", True), ("bare", False)):
        write_task(tmp_path, name, toys.rows(3, **odd), metadata={"lmms_patch": {"null": 0, "doc_fields": kept}})
    found = saved(tmp_path, tmp_path / "out", "odd_blind,bare_blind")
    assert found["odd_blind"].frame(["doc.share"]).to_series().to_list() == [None, 0.5, 1.0]
    assert {name for name in found["odd_blind"].frame().columns if name.startswith("doc.")} >= {
        "doc.share",
        "doc.question",
    }
    assert not {"doc.long", "doc.few", "doc.image"} & set(found["odd_blind"].frame().columns)
    assert [name for name in found["bare_blind"].frame().columns if name.startswith("doc.")] == []
    assert short({"hash": 2**63, "id": 2**63 - 1}) == {"doc.id": 2**63 - 1}  # what a column of whole numbers holds


def test_each_wrapped_task_has_a_table(finished):
    out, results, *_ = finished
    wrapped = ("toy_blank", "toy_rci", "two_rci")
    logs = [f"samples_{name}.jsonl" for name in ("toy", "two", *wrapped)]
    tables = [f"samples_{name}.parquet" for name in wrapped]
    assert names_in(out) == sorted(["numbers.parquet", "results.json", *logs, *tables])
    # fourteen views, and the whole of a wrong image
    assert [(name, len(results[name].frame())) for name in wrapped] == [("toy_blank", 5), ("toy_rci", 5 * 15), ("two_rci", 5 * 15)]  # fmt: skip


def test_its_footer_says_what_was_asked_and_its_columns_what_came(finished):
    _, results, _, found, _ = finished
    result, frame = results["two_rci"], results["two_rci"].frame()
    about, there = result.about, set(pl.read_parquet_schema(result.path))
    assert [about.task, *(about.asked[name] for name in ("base", "kind", "grids"))] == ["two_rci", "two", "rci", [2, 3]]
    assert about.metrics == {"exact_match": True, "anls": True}
    assert (about.rows, about.docs, set(about.columns)) == (5 * 15, 5, there)
    assert (about.host.limit, about.host.original, about.host.effective) == (5, 6, 5)
    assert about.native["none"].form == "mean"
    values = found["results"]["two_rci"]
    assert about.native["none"].values == {
        name: values[f"{name},none"]
        for name in ("exact_match", "anls", *(f"{m}_mpp{n}" for m in ("exact_match", "anls") for n in (2, 3)))
    }
    assert {column.name for column in frame if column.null_count() == len(column)} == set(frame.columns) - there
    assert there <= {*TYPES, "score.anls"} | {name for name in there if name.startswith("doc.")}
    by_view = frame.filter(pl.col("doc_id") == 3).sort("view")
    assert by_view["kind"].to_list() == ["full"] + ["cell"] * 13 + ["full"]
    assert by_view["swapped"].fill_null(False).to_list() == [False] * 14 + [True]
    assert set(by_view["gold"]) == {"3"}
    assert (set(by_view["cluster"]), set(by_view["category"])) == ({"scene 1"}, {"b"})
    assert [(one["width"], one["height"]) for one in by_view["shown"][0]] == [(60, 60)]
    full = frame.filter(view=0)
    assert (full["score"].mean(), full["score.anls"].mean()) == (values["exact_match,none"], values["anls,none"])


def test_the_answers_of_the_table_are_those_of_the_log(finished):
    out, results, *_ = finished
    [log] = out.rglob("*_samples_toy_rci.jsonl")
    answers = results["toy_rci"].frame().sort("doc_id", "view").group_by("doc_id", maintain_order=True).agg("answer")
    logged = {line["doc_id"]: line["filtered_resps"] for line in map(json.loads, log.read_text().splitlines())}
    assert dict(answers.iter_rows()) == logged


def test_tokens_and_losses_have_columns(tasks, tmp_path):
    counted = saved(tasks, tmp_path / "tokens", "toy_rci2", CountingK(), limit=3)["toy_rci2"].frame()
    assert (set(counted["tokens_in"]), set(counted["tokens_out"])) == ({3}, {len("question 0?")})
    compared = saved(tasks, tmp_path / "losses", "choice_rci2", Likelihood())["choice_rci2"].frame()
    assert set(compared["losses"].list.len()) == {2}
    assert compared["options"].drop_nulls().to_list() == [["red", "blue"]] * 6
    # the score by hand: the lower loss is the answer, and doc i's gold is option i mod 2
    right = [float(np.argmin(row["losses"]) == row["doc_id"] % 2) for row in compared.iter_rows(named=True)]
    assert compared["score"].to_list() == right


def test_numbers_are_taken_from_the_file_beside_where_it_fits_and_computed_where_it_does_not(finished, tmp_path, monkeypatch):  # fmt: skip
    for path in finished[0].rglob("*.parquet"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    rows = pl.read_parquet(tmp_path / f"{DATE}_numbers.parquet")
    with monkeypatch.context() as patch:
        patch.setattr(cache, "compute", lambda result: pytest.fail("the numbers are there"))
        kept = {task: result.measures for task, result in by_task(tmp_path).items()}
    assert {task: dict(zip(of["measure"], of["value"], strict=True)) for (task,), of in rows.group_by("task")} == {
        task: {name: one.value for name, one in measures.items()} for task, measures in kept.items()
    }
    (tmp_path / f"{DATE}_numbers.parquet").unlink()
    again = {task: result.measures for task, result in by_task(tmp_path).items()}
    for task, measures in kept.items():
        values = {name: (one.value, one.low, one.high) for name, one in measures.items()}
        assert {name: (one.value, one.low, one.high) for name, one in again[task].items()} == {
            name: pytest.approx(ends, abs=1e-9) for name, ends in values.items()
        }
    assert (tmp_path / f"{DATE}_numbers.parquet").exists(), "for the next reader"


def test_a_quick_run_has_a_row_for_each_view_that_was_asked(tasks, tmp_path, monkeypatch):
    """And says of each doc how many were not; the run counts its calls by itself."""
    monkeypatch.setattr(portions, "SECONDS", 1e9)
    result = saved(tasks, tmp_path, "toy_rci3_quick")["toy_rci3_quick"]
    own, counted = result.frame().filter(pl.col("swapped").fill_null(False).not_()), result.analysis.asked
    quick = own.filter(view=0)["quick"].struct
    assert (len(quick.field("unasked")), counted.of) == (150, 1500)
    assert own["answer"].count() == own["score"].count() == counted.calls < 1500
    assert quick.field("unasked").sum() == 1500 - counted.calls
    assert len(result.frame()) == len(own) + 20


def test_each_filter_pipeline_has_rows_and_columns_of_its_own(tmp_path):
    filters = [{"name": name, "filter": [{"function": "take_first"}]} for name in ("b", "a")]
    write_task(tmp_path / "tasks", "toy", toys.rows(60), filter_list=filters)
    save(*asked(tmp_path / "tasks", tmp_path / "out", "toy_rci2"))
    [run] = find([tmp_path / "out"])
    assert [(result.filter, result.place, result.docs) for result in run.results] == [("b", 0, 60), ("a", 1, 60)]
    first, second = (result.frame().drop("filter") for result in run.results)
    assert first.equals(second)
    assert len(first) == 60 * 5
    values = filed(tmp_path / "out")["results"]["toy_rci2"]
    assert values["gap2_stderr,a"] == values["gap2_stderr,b"] == run.results[0].measures["gap2"].se > 0


@pytest.mark.parametrize("error", [RecordError("no space"), MemoryError("no memory")])
def test_a_table_that_cannot_be_written_is_one_line_and_the_others_are(tasks, tmp_path, monkeypatch, error):
    """The process ends with status 2, and the harness's own files are as they were."""
    write, told = samples.write, []

    def fails(path, frame, about):
        if about.task == "toy_rci2":
            raise error
        return write(path, frame, about)

    monkeypatch.setattr(samples, "write", fails)
    monkeypatch.setattr(written, "fail_at_exit", told.append)
    assert set(saved(tasks, tmp_path, "toy_rci2,two_rci2", limit=3)) == {"two_rci2"}
    assert {"results.json", "samples_toy_rci2.jsonl", "samples_two_rci2.parquet"} <= set(names_in(tmp_path))
    [said] = told
    assert "_samples_toy_rci2.parquet is not written, so nothing can be said of toy_rci2: " in said
    assert str(error) in said


def test_a_run_of_which_no_number_can_be_made_ends_with_a_line(tasks, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(written, "about_of", lambda *of: {}["no such key"])
    found, tracker = asked(tasks, tmp_path, "toy_rci2", limit=3)
    save(found, tracker)
    assert names_in(tmp_path) == ["results.json", "samples_toy_rci2.jsonl"]
    assert "no table is written of toy_rci2, so nothing can be said of these tasks" in capsys.readouterr().err


def test_a_run_that_is_killed_while_the_harness_writes_has_its_tables(finished, tmp_path, monkeypatch):
    tracker = EvaluationTracker(output_path=str(tmp_path))
    tracker.general_config_tracker.model_name_sanitized = "m"
    monkeypatch.setattr(
        "lmms_eval.loggers.evaluation_tracker.asdict", lambda about: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        tracker.save_results_aggregated(results={**finished[3]}, samples=None, datetime_str=DATE)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size} == {".parquet"}
    assert {task: result.measures for task, result in by_task(tmp_path).items()} == {
        task: result.measures for task, result in finished[1].items()
    }


# --- the harness's results file, and its last screen ----------------------------------------------


def filed(out):
    """The results file as the harness wrote it."""
    [path] = out.rglob("*_results.json")
    return json.loads(path.read_text())


def test_a_results_file_has_numbers_alone_with_standard_errors_in_the_columns_of_the_harness(finished):
    out, results, *_ = finished
    own = re.compile(r"alias|(exact_match|anls)_stderr\w*,none")
    for task in ("toy_rci", "two_rci", "toy_blank"):
        others = {name: one for name, one in filed(out)["results"][task].items() if not own.fullmatch(name)}
        assert all(isinstance(value, (int, float, type(None))) for value in others.values())
    values, grid = filed(out)["results"]["toy_rci"], results["toy_rci"].grid(3)
    for name, one in {
        "exact_match_mpp3": grid.mpp,
        "rci3": grid.index,
        "rci3_steady": results["toy_rci"].analysis.necessity[0].index,
        "gap3": grid.gap,
    }.items():
        assert values[f"{name},none"] == one.value
        assert values.get(f"{name}_stderr,none") == one.se
    assert values["n_docs,none"] == 5
    plain = filed(out)["results"]["toy"]  # of a task that is not wrapped nothing changes
    ends = ("", "_stderr", "_stderr_clt", "_stderr_clustered")
    assert list(plain) == ["alias", *(f"exact_match{end},none" for end in ends)]


def test_a_standard_error_is_that_of_the_docs(tasks, tmp_path):
    """The gap is a mean of differences of scores, so its standard error is their standard deviation (of n) by the root of n; of B = 1000 draws."""
    found, tracker = asked(tasks, tmp_path, "toy_rci2")
    printed = make_table({**found, "results": {"toy_rci2": {**found["results"]["toy_rci2"]}}})
    save(found, tracker)
    frame = by_task(tmp_path)["toy_rci2"].frame().filter(pl.col("swapped").fill_null(False).not_()).sort("doc_id", "view")  # fmt: skip
    gaps = np.array([full - max(cells) for full, *cells in frame["score"].to_numpy().reshape(-1, 5)])
    assert gaps.std() > 0.1
    error = filed(tmp_path)["results"]["toy_rci2"]["gap2_stderr,none"]
    assert error == pytest.approx(gaps.std() / math.sqrt(len(gaps)), rel=0.1)
    assert f"±  |{error:.4f}" in next(line for line in printed.splitlines() if "|gap2 " in line)


def test_the_harness_prints_few_more_rows_of_a_wrapped_task(finished):
    """At most six, at both grids of the papers; those of a plain task stay. What has no value has no row."""
    rows = [[cell.strip() for cell in line.split("|")] for line in finished[2].splitlines() if line.startswith("|")]
    count = Counter(row[1] for row in rows)
    assert (count["toy"], count["two"]) == (1, 2)
    assert max(count[name] for name in ("toy_rci", "two_rci", "toy_blank")) <= 6
    shown = {row[4]: float(row[6]) for row in rows if row[1] == "toy_rci"}
    assert {"exact_match", "exact_match_mpp3", "n_docs"} <= set(shown)
    values = filed(finished[0])["results"]["toy_rci"]
    assert shown == {name: pytest.approx(values[f"{name},none"], abs=5e-5) for name in shown}


def test_a_tracker_gets_few_numbers_and_the_findings(finished):
    """As the harness's wandb logger flattens them: a key for each number, and texts into the summary."""
    found = finished[3]
    texts, numbers = finished[4]._sanitize_results_dict()
    of = {
        task: {key.partition("/")[2]: value for key, value in numbers.items() if key.startswith(f"{task}/")}
        for task in found["results"]
    }
    for task in ("toy_rci", "two_rci", "toy_blank"):
        assert 3 <= len(of[task]) <= 20
        assert all(isinstance(value, (int, float)) for value in of[task].values())
        assert texts[f"{task}/findings"].endswith(".")
    values = filed(finished[0])["results"]["toy_rci"]
    assert of["toy_rci"] == {name: values[f"{name},none"] for name in of["toy_rci"]}
    assert {"exact_match", "exact_match_mpp3", "chance", "n_docs"} <= set(of["toy_rci"])
    assert all(name.startswith("exact_match") for name in of["toy"]), "as it was"
    assert "toy/findings" not in texts
