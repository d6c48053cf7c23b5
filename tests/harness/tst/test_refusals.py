"""``_tst<k>`` tasks: what is refused, in one line, and docs that cannot be scored."""

from __future__ import annotations

import pytest

from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness.models.tst import TstLora, TstRf
from tests.harness.toys import ChatModel, Model, rows, run, write_task
from tests.harness.tst.toys import ODD, choices, details, line_of, rf, tst_of, write

BY_SCENE = {"group": "scene", "category": "kind", "choices": "choices", "fold_seeds": 1}


# --- the wrong model, or the wrong task ---------------------------------------------------------------


@pytest.mark.parametrize("model", [Model, ChatModel])
def test_a_vision_model_is_told_what_to_type(tmp_path, model):
    write(tmp_path)
    said = line_of(lambda: run(model(), "toy_tst5", tmp_path), CannotWrapError)
    assert "is not trained on the folds of a test set; allowed models: tst_rf and tst_lora" in said
    assert said.endswith("type --tasks toy_blind")
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("task", ["toy", "toy_rci2", "toy_blind"])
def test_a_diagnostic_answers_nothing_else(tmp_path, task):
    write_task(tmp_path, "toy", rows(4))
    said = line_of(lambda: rf(tmp_path, task), CannotWrapError)
    assert "a text-only diagnostic answers text-only cross-validations; type --tasks toy_tst5" in said


def test_mixed_runs_are_refused_whatever_the_order(tmp_path):
    write_task(tmp_path, "toy", rows(12))
    for tasks in ("toy_tst5,toy", "toy,toy_tst5", "toy_rci2,toy_tst5"):
        assert "type --tasks toy_tst5" in line_of(lambda tasks=tasks: rf(tmp_path, tasks), CannotWrapError)


# --- options ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "given", "says"),
    [
        (TstRf, {"tree": 3}, "unknown option 'tree'; did you mean trees?"),
        (TstRf, {"model": "bad"}, "model must be 'boosting', 'forest' or 'linear', not 'bad'"),
        (TstRf, {"groupings": "bad"}, "groupings must be 'all' or 'headline', not 'bad'"),
        (TstRf, {"trees": 0}, "trees must be a whole number of at least 1, not 0"),
        (TstRf, {"trees": "many"}, "trees must be a whole number of at least 1, not 'many'"),
        (TstRf, {"workers": "many"}, "workers"),
        (
            TstLora,
            {"epoch": 3, "cache": "none"},
            "--model_args of tst_lora: unknown option 'epoch'; did you mean epochs?",
        ),
        (TstLora, {"x": 3}, "unknown option 'x'; allowed: "),
        (TstLora, {"groupings": "bad"}, "groupings must be all or headline, not 'bad'"),
        (TstLora, {"preset": "bad"}, "--model_args of tst_lora: preset 'bad' is not known; allowed: paper, released"),
        (TstLora, {"epochs": 0}, "--model_args of tst_lora: epochs must be a whole number of at least 1, not 0"),
    ],
)
def test_model_arguments(model, given, says):
    said = line_of(lambda: model(**given), OptionError)
    assert "--model_args" in said
    assert says in said


# --- bad input ----------------------------------------------------------------------------------------


def changed(count=48, **columns):
    return [{**row, **{name: make(i, row) for name, make in columns.items()}} for i, row in enumerate(choices(count))]


def test_docs_that_the_scorer_cannot_score_are_left_out_and_counted(tmp_path, capsys):
    """The run ends as it does for any other kind of wrapping: its answers are kept, and a line says what failed."""
    write(
        tmp_path,
        process_results="!function utils.fails",
        metric_list=ODD["metric_list"],
        profile={**BY_SCENE, "grouping": "none"},
    )
    with (tmp_path / "utils.py").open("a") as file:
        file.write(
            '\ndef fails(doc, results):\n    return {"marks": float(results[0] == {"near": doc["answer"]}[doc["kind"]])}\n'
        )
    results = rf(tmp_path)
    found = details(results)
    assert found["tst_details"]["unscored"] == 24
    near = [
        record["scores"]["none"][0]
        for record, row in zip(tst_of(results), choices(48), strict=True)
        if row["kind"] == "near"
    ]
    assert found["tst"] == sum(near) / 24
    assert [
        record["scores"]["none"]
        for record, row in zip(tst_of(results), choices(48), strict=True)
        if row["kind"] == "far"
    ] == [[None]] * 24
    assert "24 of 48 docs could not be scored by toy" in capsys.readouterr().err
