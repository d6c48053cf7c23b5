"""From a run's two files to the entries of a report."""

import json

import numpy as np
import pytest

from lmms_patch.ask.spec import parse
from lmms_patch.errors import RecordError
from lmms_patch.present.report import gather as module
from lmms_patch.present.report import run_sheets
from lmms_patch.present.report.gather import gather
from lmms_patch.rci.recompute import load, recompute
from lmms_patch.runs import run as runs
from tests.making import lean
from tests.making.files import described, write_files
from tests.making.runs import mc_run, write_run


@pytest.fixture(scope="module")
def made():
    return mc_run(n=240, seed=2, per_cluster=2)


def entries(*folders, **options):
    return gather(runs.find(folders), **options)


def edit_log(folder, change):
    log = next(folder.glob("*_samples_*.jsonl"))
    lines = [json.loads(text) for text in log.read_text().splitlines()]
    for i, line in enumerate(lines):
        change(i, line)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))


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
    run = load(path)[0]
    assert entry.whole.measures["rci2"].value == run.result.metrics["rci2"]
    for name, alone in recompute(run, by_category=True).categories.items():
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
    write_run(tmp_path, {"toy_rci2": made})

    def change(i, line):
        line["filtered_resps"] = ["" if i < 3 else "A"] + ["B"] * 4
        if i in (5, 6):
            line["patch"]["excluded"] = {"2": "image of 1x1 pixels is too small"}
        if i == 7:
            line["patch"]["views"][0]["error"] = "ValueError: x"
        if i in (8, 9):
            line["patch"]["views"][2]["error"] = "no answer"

    edit_log(tmp_path, change)
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


def test_too_many_results_for_a_page_are_refused_before_a_log_is_read(tmp_path, made, monkeypatch):
    write_run(tmp_path, {"toy_rci2": made, "toy2_rci2": mc_run(n=60)})
    monkeypatch.setattr(module, "MOST", 1)
    monkeypatch.setattr(runs.Result, "lines", lambda *_, **__: pytest.fail("a log was read"))
    with pytest.raises(
        RecordError,
        match="2 results are too many for one page, which has at most 1; give runs of fewer models or benchmarks, or rank",
    ):
        entries(tmp_path)


def test_without_a_log_the_numbers_stand_and_a_line_says_what_is_missing(tmp_path, made):
    write_run(tmp_path, {"toy_rci2": made})
    next(tmp_path.glob("*.jsonl")).unlink()
    (entry,), (picked,), _ = entries(tmp_path)
    assert entry.whole.measures["rci2"].value is not None
    assert entry.categories == {}
    assert picked == {}
    assert "--log_samples" in entry.warnings[-1]


def test_names_are_unique_and_fit_for_a_page(tmp_path, made):
    for name in ("a", "b"):
        path = write_run(tmp_path / name, {"toy_rci2": made})
        data = json.loads(path.read_text())
        path.write_text(
            json.dumps(
                {**data, "model_name": f"<b>{name}?</b>" if name == "a" else "(b) b (b)", "config": {"model": "x"}}
            )
        )
    found, _, _ = entries(tmp_path)
    ids = [entry.label for entry in found]
    assert len(set(ids)) == 2
    assert all(id_.replace("-", "").isalnum() and id_.isascii() for id_ in ids)
    assert found[0].model == "<b>a?</b>"


def test_nothing_wrapped_is_one_line(tmp_path):
    (tmp_path / "1_results.json").write_text(
        json.dumps({"configs": {"gqa": {}}, "results": {"gqa": {"acc,none": 0.5}}})
    )
    with pytest.raises(RecordError, match="no wrapped task that scored a doc"):
        entries(tmp_path)


def blind_run(folder, docs, date="2026-03-03T00-00-00.000000"):
    """A blind run of the toy task on its first docs, with the score 0.5."""
    patch = {"records": docs, "chance": 0.25, "n_docs": docs, "settings": {}, "higher_is_better": {"acc": True}}
    write_files(folder, {"toy_blind": ({"acc": 0.5, "patch": patch}, described(parse("toy_blind")), None)}, date=date)
    return folder


def test_a_blind_run_of_other_docs_is_not_set_beside(tmp_path, made):
    write_run(tmp_path / "r" / "run", {"toy_rci2": made})
    name = {"model_name": "m", "config": {"model": "m"}}
    for path in [
        *(tmp_path / "r" / "run").glob("*_results.json"),
        *blind_run(tmp_path / "r" / "blind", 10).glob("*_results.json"),
    ]:
        path.write_text(json.dumps({**json.loads(path.read_text()), **name}))
    found, _, warnings = entries(tmp_path / "r")
    entry = next(one for one in found if one.kind.name == "rci")
    assert entry.blind is None
    assert any("blind run was asked other docs (10 and 240)" in line for line in warnings)


def test_a_blind_run_of_the_same_docs_is(tmp_path, made):
    write_run(tmp_path / "r" / "run", {"toy_rci2": made})
    name = {"model_name": "m", "config": {"model": "m"}}
    for path in [
        *(tmp_path / "r" / "run").glob("*_results.json"),
        *blind_run(tmp_path / "r" / "blind", 240).glob("*_results.json"),
    ]:
        path.write_text(json.dumps({**json.loads(path.read_text()), **name}))
    found, _, _ = entries(tmp_path / "r")
    assert next(one for one in found if one.kind.name == "rci").blind.value == 0.5


def test_what_the_image_adds_is_paired_by_doc(tmp_path):
    """300 of 400 right with the image, 200 of these without: of the 400 differences 100 are 1, so the standard error is √(¼ · ¾ / 400).

    As if on other docs it would be √((¾ · ¼ + ½ · ½) / 400), half as wide again. Without the blind run's log nothing
    else is known.
    """
    full, blind = np.arange(400) < 300, np.arange(400) < 200
    lean.write(tmp_path / "run", [lean.task(full, full), lean.task(blind, name="toy_blind")])
    found, _, _ = entries(tmp_path / "run")
    gain = found[0].gain
    assert (gain.value, gain.n) == (pytest.approx(0.25), 400)
    assert gain.se == pytest.approx(np.sqrt(0.25 * 0.75 / 400), rel=0.05)
    assert gain.high - gain.low == pytest.approx(2 * 1.96 * gain.se, rel=0.1)
    assert next(sheet for sheet in run_sheets.tst(found)).rows[0]["gain"] == gain
    next((tmp_path / "run").glob("*samples_toy_blind*")).unlink()
    found, _, _ = entries(tmp_path / "run")
    assert found[0].gain is None
    apart = next(sheet for sheet in run_sheets.tst(found)).rows[0]["gain"]
    assert apart.se == pytest.approx(np.sqrt((0.75 * 0.25 + 0.25) / 400), rel=0.1)


def test_a_metric_that_should_be_low_has_no_examples(tmp_path, made):
    path = write_run(tmp_path, {"toy_rci2": made})
    data = json.loads(path.read_text())
    data["results"]["toy_rci2"]["patch,none"]["higher_is_better"] = {"acc": False}
    path.write_text(json.dumps(data))
    (entry,), (picked,), _ = entries(tmp_path)
    assert entry.result.higher_is_better is False
    assert picked == {}


def test_docs_without_a_category_are_counted_and_one_called_none_is_a_category(tmp_path, made):
    write_run(tmp_path, {"toy_rci2": made})

    def change(i, line):
        if line["patch"]["fields"]["category"] == "b":
            line["patch"]["fields"]["category"] = "None" if i % 4 == 1 else None

    edit_log(tmp_path, change)
    (entry,), _, _ = entries(tmp_path)
    assert {name: part.docs for name, part in entry.categories.items()} == {"a": 120, "None": 60}
    assert "60 docs have no category: they are in no category's numbers" in entry.warnings
