"""What is only a part never passes as whole: docs without answers, grids that are gone, --limit, a rank's docs."""

import re

import polars as pl
import pytest
from msgspec import structs

from lmms_patch.errors import OptionError
from lmms_patch.gate import rules
from lmms_patch.runs import samples
from tests.gate.running import DROP, VALUE, copied
from tests.making import lean

# --- docs that are lost -----------------------------------------------------------------------------


def lost(tmp_path, count, docs=400):
    """The baseline is right on 0.7; the new run gives no answer on some docs that it would get wrong."""
    full, best = lean.planted(docs, 0.7, 0.6)
    lean.write(tmp_path / "old", [lean.task(full, best)])
    lean.write(tmp_path / "new", [lean.task(full, best, unscored=range(docs - count, docs))])
    return tmp_path / "new", tmp_path / "old"


@pytest.mark.parametrize(
    "rule", [{"metric": "fip", "max_drop": 0.5}, {"metric": "rci2", "max_rise": 5, "inconclusive": "warn"}, VALUE]
)
def test_wrong_answers_that_are_turned_into_no_answer_fail(asked, tmp_path, rule):
    new, old = lost(tmp_path, 120)
    ended = asked(new, rule, baseline=old)
    assert ended.status == 1
    assert ended.of(metric="complete")["reason"] == "120 of 400 docs are lost to failed calls"


@pytest.mark.parametrize(("count", "calls"), [(4, ["pass"]), (5, ["fail", "pass"])])
def test_one_doc_of_a_hundred_may_be_lost(asked, tmp_path, count, calls):
    new, old = lost(tmp_path, count)
    assert asked(new, {"metric": "fip", "max_drop": 0.5}, baseline=old).calls == [calls[0]] * len(calls)
    assert asked(new, VALUE).calls == calls


def test_docs_that_the_new_run_leaves_out_are_lost_to_it(asked, tmp_path):
    """Without a failed call: the scorer, or a grid, has nothing of them. The new run answers them wrongly."""
    full, best = lean.planted(400, 0.7, 0.6)
    lean.write(tmp_path / "old", [lean.task(full, best)])
    lean.write(tmp_path / "new", [lean.task(full, best, out=range(300, 400))])
    rules = {"metric": "fip", "max_drop": 0.5}, {"metric": "mpp2", "max_drop": 0.5}
    assert asked(tmp_path / "new", *rules, baseline=tmp_path / "old").calls == ["pass", "fail"]


@pytest.mark.parametrize("metric", ["gate", "looks"])
def test_what_is_known_of_a_run_has_no_difference(asked, tmp_path, metric):
    """A run that sank to chance must not pass because it is no more than the limit of a drop."""
    lean.write(tmp_path / "run", [lean.task(*lean.planted(400, 0.8, 0.6))])
    ended = asked(tmp_path / "run", {"metric": metric, "max_drop": 0}, baseline=copied(tmp_path / "run"))
    assert ended.status == 2
    assert f"{metric} has no difference to a baseline" in ended.err


def test_a_misspelt_setting_to_ignore_is_told(asked, tmp_path):
    lean.write(tmp_path / "run", [lean.task(*lean.planted(400, 0.8, 0.6))])
    ended = asked(tmp_path / "run", VALUE, ignore=["promts"])
    assert ended.status == 2
    assert "no setting 'promts' to ignore" in ended.err


# --- grids that are gone ------------------------------------------------------------------------------


# --- a part of the benchmark ----------------------------------------------------------------------------


@pytest.mark.parametrize("config", [{"limit": 400}, {"limit": 0.5}, {"offset": 10}])
def test_limits_of_numbers_do_not_pass_on_a_part(asked, tmp_path, config):
    lean.write(tmp_path / "run", [lean.task(*lean.planted(400, 0.8, 0.6))], **config)
    ended = asked(tmp_path / "run", VALUE)
    assert (ended.status, ended.calls) == (3, ["inconclusive"])
    assert "not the whole benchmark (allow_limit: true lets it pass)" in ended.out
    assert asked(tmp_path / "run", {**VALUE, "min": 0.95}).calls == ["fail"]
    assert asked(tmp_path / "run", {**VALUE, "allow_limit": True}).status == 0
    assert asked(tmp_path / "run", VALUE, allow_limit=True).status == 0
    assert asked(tmp_path / "run", {"require": "complete", "task": "toy_rci2"}).status == 1


@pytest.mark.parametrize("limit", [None, -1])
def test_a_run_of_all_docs_has_no_limit(asked, tmp_path, limit):
    lean.write(tmp_path / "run", [lean.task(*lean.planted(400, 0.8, 0.6))], limit=limit)
    assert asked(tmp_path / "run", VALUE).status == 0


# --- docs that were never asked ----------------------------------------------------------------------------


# --- what was taken out -------------------------------------------------------------------------------


COMPLETE = {"require": "complete", "task": ["apple_rci2", "pear_rci2"]}


def two_tasks(folder, names=("apple_rci2", "pear_rci2"), docs=300, **more):
    """A run of some tasks, the last of which answers a fifth on the full image."""
    shares = [0.8] * (len(names) - 1) + [0.2]
    tasks = [lean.task(*lean.planted(docs, s, 0.1), name=name) for s, name in zip(shares, names, strict=True)]
    lean.write(folder, tasks, **more)
    return folder


def test_each_task_that_is_named_must_be_there(asked, tmp_path):
    """The cheapest way to pass is to withdraw the task that fails, or to rename it out of a wildcard."""
    whole = two_tasks(tmp_path / "whole")
    score = {"task": "*_rci2", "metric": "fip", "min": 0.5}
    assert asked(whole, score, COMPLETE).calls == ["pass", "fail", "pass", "pass"]
    for names in (["apple_rci2", "pear_rci2"][:1], ["apple_rci2", "pear_pcri2"]):
        cut = tmp_path / "-".join(names)
        lean.write(cut, [lean.task(*lean.planted(300, 0.8, 0.1), name=name) for name in names])
        assert asked(cut, score).status == 0
        ended = asked(cut, score, COMPLETE)
        assert ended.status == 1
        assert ended.of(metric="complete", task="pear_rci2")["reason"] == "the run does not have this task"
        assert ended.out.startswith("FAIL pear_rci2: it is there, whole: no: the run does not have this task")


def test_a_model_without_any_named_task_is_asked_for_it(asked, tmp_path):
    """It has another task, so that no selector finds it."""
    for day, (model, name) in enumerate((("one", "apple_rci2"), ("two", "plum_rci2")), 1):
        made = [lean.task(*lean.planted(300, 0.8, 0.1), name=name)]
        lean.write(tmp_path / "runs" / model, made, model=model, date=f"2026-01-0{day}")
    ended = asked(tmp_path / "runs", {"require": "complete", "task": "apple_rci2"})
    assert (ended.status, sorted(ended.calls)) == (1, ["fail", "pass"])


def test_each_model_must_have_them_whole(asked, many, tmp_path):
    assert len(asked(many, COMPLETE).calls) == 4
    part = two_tasks(tmp_path / "part", limit=300)
    ended = asked(part, COMPLETE)
    assert (ended.status, ended.calls) == (1, ["fail", "fail"])
    assert ended.json["verdicts"][0]["reason"] == "run with limit 300"
    assert asked(many, {**COMPLETE, "require": ["complete"], "min_docs": 5}).status == 0


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"require": "complete"}, "'require: complete' needs the names of tasks under 'task'"),
        ({"require": ["valid gate", "complete"], "task": "gqa_*"}, "needs the names of tasks"),
        (
            {"require": "complet", "task": "a"},
            "require must be 'valid gate', 'looks', 'complete', or several in a list",
        ),
        ({"require": "complete", "tasks": ["a"]}, "unknown option 'tasks'; did you mean task?"),
    ],
)
def test_a_rule_without_names_of_tasks_is_refused(rule, said):
    with pytest.raises(OptionError, match=re.escape(said)):
        rules.parse({"schema": 1, "rules": [{"name": "a", **rule}]})


def test_what_the_baseline_has_must_be_there(asked, tmp_path):
    """A task, its docs or its grids that are gone fail under any rule that was about them."""
    before = two_tasks(tmp_path / "before", date="2025-01-01")
    cut = two_tasks(tmp_path / "cut", ["apple_rci2"])
    for rule in (VALUE, DROP, {"min_docs": 5}, {"max_excluded": 0.5}):
        ended = asked(cut, {**rule, "task": "*_rci2"}, baseline=before)
        assert ended.of(metric="complete")["reason"] == "the baseline has this task, this run has not"
        assert ended.status == 1
        assert (
            asked(cut, {**rule, "task": "apple_rci2"}, baseline=two_tasks(tmp_path / "one", ["apple_rci2"])).status == 0
        )
    fewer = two_tasks(tmp_path / "fewer", docs=280)
    for rule in (VALUE, DROP):
        ended = asked(fewer, {**rule, "task": "apple_rci2"}, baseline=before)
        assert ended.of(metric="complete")["reason"] == "280 docs, of 300 in the baseline"
        assert ended.status == 1
    assert asked(fewer, {**VALUE, "task": "apple*"}, baseline=before, ignore=["docs"]).status == 0


def test_a_grid_that_the_baseline_has_must_be_there(asked, run):
    """The baseline was asked two grids; what the new one leaves out might be the one that fails."""
    before = copied(run)
    path = next(before.glob("*_samples_*.parquet"))
    frame, about = samples.frame_of(path), samples.about_of(path)
    place = pl.col("cell") - 1
    more = frame.filter(n=2).with_columns(n=pl.lit(3, pl.Int16), view=pl.col("view") + 4, row=place // 3, col=place % 3)
    # no doc has all nine cells, so none is used: the grid is one of the task all the same
    asked_more = structs.replace(about, asked={**about.asked, "grids": [2, 3]})
    samples.write(path, pl.concat([frame, more]).sort("doc_id", "view"), asked_more)
    for rule in ({"metric": "rci?", "max": 5}, {"max_excluded": 0.5}):
        ended = asked(run, rule, baseline=before)
        assert ended.of(metric="complete")["reason"] == "the baseline has rci3, this run has not"
    assert asked(run, VALUE, baseline=before).status == 0  # a rule that is about no grid
