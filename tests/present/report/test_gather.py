"""From a run's two files to the entries of a report."""

import copy

import numpy as np
import pytest

from lmms_patch.errors import RecordError
from lmms_patch.present.report import gather as module
from lmms_patch.present.report import run_sheets
from lmms_patch.present.report.gather import gather
from lmms_patch.rci.recompute import load, recompute
from lmms_patch.runs import run as runs
from lmms_patch.runs.details import Made
from tests.making import lean
from tests.making.edited import edit
from tests.making.runs import mc_run, views_run, write_run


@pytest.fixture(scope="module")
def made():
    return mc_run(n=240, seed=2, per_cluster=2)


def entries(*folders, **options):
    return gather(runs.find(folders), **options)


def edited(made, change):
    """A run some of whose docs are changed."""
    spec, records, plan = copy.deepcopy(made)
    for i, record in enumerate(records):
        change(i, record)
    return {"toy_rci2": (spec, records, plan)}


def test_numbers_are_the_runs_own_and_categories_those_of_analyze(tmp_path, made):
    path = write_run(tmp_path, {"toy_rci2": made})
    (entry,), _, warnings = entries(tmp_path)
    assert warnings == []
    assert (entry.base, entry.result.label, entry.kind.name, entry.grids, entry.result.metric) == (
        "toy",
        "toy_rci2",
        "rci",
        (2,),
        "acc",
    )
    run = load(runs.read(path))[0]
    assert entry.whole.measures["rci2"].value == run.result.measures["rci2"].value
    for name, alone in recompute(run, by="category").categories.items():
        part = entry.categories[name]
        assert part.docs == 120
        assert part.measures["rci2"].value == pytest.approx(alone.grids[2].index.value)
        assert part.measures["fip"].value == pytest.approx(alone.fip.value)


def test_the_fip_of_a_category_by_hand(tmp_path, made):
    write_run(tmp_path, {"toy_rci2": made})
    (entry,), _, _ = entries(tmp_path)
    of_a = [record["views"][0]["scores"]["acc"] for record in made[1] if record["fields"]["category"] == "a"]
    assert entry.categories["a"].measures["fip"].value == pytest.approx(np.mean(of_a))


def test_excluded_docs_errors_and_empty_answers_are_counted(tmp_path, made):
    def change(i, record):
        record["views"][0]["answer"] = "" if i < 3 else "A"
        if i in (5, 6):
            record["excluded"] = {"2": "image of 1x1 pixels is too small"}
        if i == 7:
            record["views"][0]["error"] = "ValueError: x"
        if i in (8, 9):
            record["views"][2]["error"] = "no answer"

    write_run(tmp_path, edited(made, change))
    (entry,), _, _ = entries(tmp_path)
    assert entry.excluded == {2: {"image of 1x1 pixels is too small": 2}}
    assert entry.failures == {"views": 240 * 5, "full": 1, "cells": 2, "empty": 3}


def test_only_the_newest_of_each_model_and_task_is_shown(tmp_path, made):
    write_run(tmp_path / "a", {"toy_rci2": made})
    late = write_run(tmp_path / "a", {"toy_rci2": made}, date="2026-05-05T00-00-00.000000")
    found, _, warnings = entries(tmp_path)
    assert [entry.result.run.path for entry in found] == [late]
    assert warnings == ["1 older results of the same model and task are not shown"]


@pytest.mark.parametrize(
    ("options", "shown", "told"),
    [
        ({}, False, "no categories, and no examples without --examples 2, because there are more than 1 results"),
        ({"examples": 1}, True, "no categories, because there are more than 1 results"),
    ],
)
def test_of_many_results_examples_are_there_where_they_are_asked_for(tmp_path, made, monkeypatch, options, shown, told):
    write_run(tmp_path, {"toy_rci2": made, "toy2_rci2": mc_run(n=60)})
    found, picked, warnings = entries(tmp_path, **options)
    assert (found[0].categories == {}, len(picked[0]) > 0, warnings) == (False, True, [])
    monkeypatch.setattr(module, "MANY", 1)
    found, picked, warnings = entries(tmp_path, **options)
    assert (all(picked), [dict(entry.categories) for entry in found], warnings) == (shown, [{}, {}], [told])


def test_too_many_results_for_a_page_are_refused_before_samples_are_read(tmp_path, made, monkeypatch):
    write_run(tmp_path, {"toy_rci2": made, "toy2_rci2": mc_run(n=60)})
    monkeypatch.setattr(module, "MOST", 1)
    monkeypatch.setattr(runs.Result, "frame", lambda *_, **__: pytest.fail("samples were read"))
    with pytest.raises(
        RecordError,
        match="2 results are too many for one page, which has at most 1; give runs of fewer models or benchmarks, or rank",
    ):
        entries(tmp_path)


def test_names_are_unique_and_fit_for_a_page(tmp_path, made):
    for name, model in (("a", "<b>a?</b>"), ("b", "(b) b (b)")):
        write_run(tmp_path / name, {"toy_rci2": made}, model_name=model, config={"model": "x"})
    found, _, _ = entries(tmp_path)
    ids = [entry.label for entry in found]
    assert len(set(ids)) == 2
    assert all(id_.replace("-", "").isalnum() and id_.isascii() for id_ in ids)
    assert found[0].model == "<b>a?</b>"


@pytest.mark.parametrize("docs", [10, 240])
def test_a_blind_run_of_other_docs_is_not_set_beside(tmp_path, made, docs):
    """Half of its docs are right."""
    name = {"model_name": "m", "config": {"model": "m"}}
    write_run(tmp_path / "r" / "run", {"toy_rci2": made}, **name)
    blind = {"toy_blind": views_run("blind", [0.5], docs)}
    # what docs they were is not known but by their number
    edit(write_run(tmp_path / "r" / "blind", blind, date="2026-03-03T00-00-00.000000", **name), made=Made())
    found, _, warnings = entries(tmp_path / "r")
    entry = next(one for one in found if one.kind.name == "rci")
    if docs == 240:
        assert entry.blind.value == 0.5
        return
    assert entry.blind is None
    assert any("blind run was asked other docs (10 and 240)" in line for line in warnings)


def test_what_the_image_adds_is_paired_by_doc(tmp_path):
    """300 of 400 right with the image, 200 of these without: of the 400 differences 100 are 1, so the standard error is √(¼ · ¾ / 400)."""
    full, blind = np.arange(400) < 300, np.arange(400) < 200
    lean.write(tmp_path / "run", [lean.task(full, full), lean.task(blind, name="toy_blind")])
    found, _, _ = entries(tmp_path / "run")
    gain = found[0].gain
    assert (gain.value, gain.n) == (pytest.approx(0.25), 400)
    assert gain.se == pytest.approx(np.sqrt(0.25 * 0.75 / 400), rel=0.05)
    assert gain.high - gain.low == pytest.approx(2 * 1.96 * gain.se, rel=0.1)
    assert next(sheet for sheet in run_sheets.tst(found)).rows[0]["gain"] == gain


def test_docs_without_a_category_are_counted_and_one_called_none_is_a_category(tmp_path, made):
    def change(i, record):
        if record["fields"]["category"] == "b":
            record["fields"]["category"] = "None" if i % 4 == 1 else None

    write_run(tmp_path, edited(made, change))
    (entry,), _, _ = entries(tmp_path)
    assert {name: part.docs for name, part in entry.categories.items()} == {"a": 120, "None": 60}
    assert "60 docs have no category: they are in no category's numbers" in entry.warnings
