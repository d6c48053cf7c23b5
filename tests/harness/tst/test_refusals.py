"""``_tst<k>`` tasks: what is refused, in one line; and bad input, which gives a documented number or one line."""

from __future__ import annotations

import math

import pytest
from lmms_eval.tasks import TaskManager

from lmms_patch.errors import CannotWrapError, OptionError, UnknownNameError
from lmms_patch.harness.models.tst import TstLora, TstRf
from tests.harness.toys import ChatModel, Model, rows, run, write_task
from tests.harness.tst.toys import ODD, WORDS, Rf, choices, details, line_of, rf, tst_of, write
from tests.sizes import size, some

BY_SCENE = {"group": "scene", "category": "kind", "choices": "choices", "fold_seeds": 1}


# --- the wrong model, or the wrong task ---------------------------------------------------------------


@pytest.mark.parametrize("model", [Model, ChatModel])
def test_a_vision_model_is_told_what_to_type(tmp_path, model):
    write(tmp_path)
    said = line_of(lambda: run(model(), "toy_tst5", tmp_path), CannotWrapError)
    assert "is not trained on the folds of a test set; allowed models: tst_rf and tst_lora" in said
    assert said.endswith("type --tasks toy_blind")
    assert not (tmp_path / "asked").exists()


def test_the_command_line_knows_it_before_the_model_is_loaded(tmp_path):
    write_task(tmp_path, "toy", rows(4))

    def match(model, *tasks):
        return TaskManager(verbosity="ERROR", include_path=str(tmp_path), model_name=model).match_tasks(list(tasks))

    assert "llava_hf is not trained on the folds" in line_of(lambda: match("llava_hf", "toy_tst5"), CannotWrapError)
    for name in ("toy_rci2", "toy_blind"):
        said = line_of(lambda name=name: match("tst_rf", name), CannotWrapError)
        assert said == f"{name}: tst_rf answers text-only cross-validations; type --tasks toy_tst5"
    assert match("tst_rf", "toy_tst5") == ["toy_tst5"]
    assert match("tst_lora", "toy_tst") == ["toy_tst"]
    assert match("llava_hf", "toy_rci2") == ["toy_rci2"]


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
        (
            TstRf,
            {"tree": 3},
            "'tree' is not known; allowed: check, depth, embeddings, groupings, model, shuffles, trees, workers",
        ),
        (TstRf, {"model": "bad"}, "model 'bad' is not known; allowed: boosting, forest"),
        (TstRf, {"groupings": "bad"}, "groupings='bad' is not possible; allowed: all, headline"),
        (TstRf, {"trees": 0}, "trees must be a whole number of at least 1, not 0"),
        (TstRf, {"trees": "many"}, "trees must be a whole number of at least 1, not 'many'"),
        (TstRf, {"workers": "many"}, "workers"),
        (
            TstRf,
            {"embeddings": "/no/such/folder"},
            "embeddings=/no/such/folder: there is no such folder; give the folder of a text-embedding model",
        ),
        (
            TstLora,
            {"epoch": 3, "cache": "none"},
            "--model_args of tst_lora: unknown option 'epoch'; did you mean epochs?",
        ),
        (TstLora, {"grouping": "all"}, "--model_args of tst_lora: unknown option 'grouping'; did you mean groupings?"),
        (TstLora, {"x": 3}, "unknown option 'x'; allowed: groupings, preset, model, "),
        (TstLora, {"groupings": "bad"}, "groupings='bad' is not possible; allowed: all, headline"),
        (TstLora, {"preset": "bad"}, "--model_args of tst_lora: preset 'bad' is not known; allowed: paper, released"),
        (TstLora, {"epochs": 0}, "--model_args of tst_lora: epochs must be a whole number of at least 1, not 0"),
    ],
)
def test_model_arguments(model, given, says):
    said = line_of(lambda: model(**given), OptionError)
    assert "--model_args" in said
    assert says in said


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        ({"grouping": "scene"}, "grouping must be 'auto', 'source', 'none', 'text' or 'joined', not 'scene'"),
        ({"fold_seeds": 0}, "fold_seeds must be a whole number of at least 1, and at most 1000, not 0"),
        ({"fold_seed": -1}, "fold_seed must be a whole number of at least 0, not -1"),
        (
            {"group": "place"},
            "option group names the field 'place', which its docs do not have; allowed: question, choices",
        ),
        (
            {"category": "meta.kind"},
            "option category names the field 'meta.kind', which its docs do not have; allowed: question, choices",
        ),
        (
            {"gold": "truth"},
            "option gold names the field 'truth', which its docs do not have; allowed: question, choices",
        ),
        ({"fold": 3}, "unknown option 'fold'"),
    ],
)
def test_profiles(tmp_path, profile, says):
    write(tmp_path, profile=profile)
    assert says in line_of(lambda: rf(tmp_path))


@pytest.mark.parametrize("number", ["1", "51", "05", "0"])
def test_numbers_of_folds(tmp_path, number):
    write(tmp_path)
    said = line_of(
        lambda: TaskManager(verbosity="ERROR", include_path=str(tmp_path)).match_tasks([f"toy_tst{number}"]),
        UnknownNameError,
    )
    assert "2 to 50" in said


# --- sources that group nothing -----------------------------------------------------------------------

NO_SOURCE = {
    "constant": ("the source is the same for all docs", lambda i: "one"),
    "of its own": ("the source is different for every doc", str),
    "null": ("no source is known (option 'group' names the field of the image, scene or video)", lambda i: None),
}


@pytest.mark.parametrize("name", NO_SOURCE)
def test_a_source_that_groups_nothing(tmp_path, name):
    """Random folds, with the reason; a line where grouping by source was asked for."""
    reason, scene = NO_SOURCE[name]
    data = [{**row, "scene": scene(i)} for i, row in enumerate(choices(48))]
    write(tmp_path, rows=data)
    found = details(run(Rf(groupings="all"), "toy_tst5", tmp_path))["tst_details"]
    assert found["headline"] == "none"
    assert found["unusable"] == {"source": f"no grouping: {reason}"}
    assert set(found["by_grouping"]) == {"none", "text"}
    assert found["leakage"] is None

    write(tmp_path, rows=data, profile={**BY_SCENE, "grouping": "source"})
    assert (
        line_of(lambda: rf(tmp_path), OptionError)
        == f"toy_tst5: grouping source: no grouping: {reason}; allowed: auto, none"
    )


def test_fewer_sources_than_folds(tmp_path):
    """A line that says so: whether folds or grouping are to change is the user's choice."""
    write(tmp_path, rows=[{**row, "scene": f"scene {i % 3}"} for i, row in enumerate(choices(48))])
    said = line_of(lambda: rf(tmp_path), OptionError)
    assert said.startswith("toy_tst5: ")
    assert "3 groups of docs cannot be dealt to 5 folds; use fewer folds, or group by a field with more values" in said
    assert details(rf(tmp_path, "toy_tst3"), "toy_tst3")["tst_details"]["headline"] == "source"


def test_docs_without_a_source_are_by_themselves(tmp_path):
    """A missing number comes from a data frame as NaN, a missing text as null."""
    for missing, name in ((None, str), (float("nan"), float)):
        write(
            tmp_path,
            rows=[{**row, "scene": missing if i % 3 == 0 else name(i // 4)} for i, row in enumerate(choices(48))],
        )
        results = rf(tmp_path)
        found = tst_of(results)
        assert details(results)["tst_details"]["headline"] == "source"
        assert [record["source"] is None for record in found] == [i % 3 == 0 for i in range(48)]
        assert len({record["fold"] for record in found if record["source"] is None}) > 1


# --- bad input ----------------------------------------------------------------------------------------


def changed(count=48, **columns):
    return [{**row, **{name: make(i, row) for name, make in columns.items()}} for i, row in enumerate(choices(count))]


def word(row):
    """The word that gives the answer away."""
    return row["question"].removesuffix("?").split()[-1]


def many_options():
    """50 options, answered by their text; the right one is what the question names."""
    return [
        {
            "question": f"Where is thing {i % 5}?",
            "choices": [f"place{j}" for j in range(50)],
            "answer": f"place{i % 5}",
            "scene": f"s{i // 4}",
            "kind": "",
        }
        for i in range(40)
    ]


def rare_class():
    """Two golds of a third kind: in fewer folds than there are."""
    return changed(
        choices=lambda i, row: ["bed", "rug", "lamp"],
        answer=lambda i, row: "C" if i in (7, 30) else "AB"[WORDS.index(word(row)) % 2],
    )


def untrainable():
    """Each category is in one fold alone: no gold of it is ever trained on."""
    return changed(kind=lambda i, row: row["scene"], choices=lambda i, row: [], answer=lambda i, row: f"word{i}")


BAD_INPUT = {
    "one distinct answer": (
        changed(answer=lambda i, row: "A"),
        lambda found: found["tst"] == found["tst_majority"] == 1,
    ),
    "a class smaller than the number of folds": (rare_class(), lambda found: found["tst"] > 0.5),
    "empty questions": (changed(question=lambda i, row: ""), lambda found: 0 <= found["tst"] <= 1),
    "blank questions": (changed(question=lambda i, row: " \n\t"), lambda found: 0 <= found["tst"] <= 1),
    "no text at all": (
        changed(question=lambda i, row: "", choices=lambda i, row: ["", ""]),
        lambda found: 0 <= found["tst"] <= 1,
    ),
    "questions in Japanese": (
        changed(question=lambda i, row: f"どちらが{'机椅扉風棚炉'[WORDS.index(word(row))]}に近いですか"),
        lambda found: found["tst"] > 0.9,
    ),
    "questions in Arabic and emoji": (
        changed(question=lambda i, row: f"أيهما أقرب 🛏️ {word(row)}؟"),
        lambda found: found["tst"] > 0.9,
    ),
    "50 options": (many_options(), lambda found: abs(found["tst_chance"] - 1 / 50) < 1e-9 and found["tst"] > 0.5),
    "duplicate docs": (choices(12) * 4, lambda found: found["tst"] > 0.9),
    "one doc many times": (choices(1) * 48, lambda found: found["tst"] == 1),
    "some docs without a gold": (
        changed(answer=lambda i, row: "" if i % 4 == 0 else row["answer"]),
        lambda found: found["tst_details"]["unscored"] == 12,
    ),
    "golds that are no option, so open": (
        changed(answer=lambda i, row: "Z" if i % 4 == 0 else row["answer"]),
        lambda found: found["tst"] > 0.9,
    ),
    "open answers that never recur": (untrainable(), lambda found: found["tst"] == 0),
    "very long questions": (
        changed(question=lambda i, row: row["question"] + " really" * size(1000, 5000)),
        lambda found: found["tst"] > 0.9,
    ),
    "numbers with words among them": (
        changed(choices=lambda i, row: [], answer=lambda i, row: "many" if i % 6 == 0 else str(i % 5)),
        lambda found: 0 <= found["tst"] <= 1,
    ),
    "numbers too large for a float": (
        changed(choices=lambda i, row: [], answer=lambda i, row: "1" + "0" * (400 if i % 6 == 0 else i % 3)),
        lambda found: 0 <= found["tst"] <= 1,
    ),
    "categories that are null": (
        changed(kind=lambda i, row: None if i % 2 else "near"),
        lambda found: set(found["tst_details"]["categories"]) == {"", "near"},
    ),
    "a category for each doc": (
        changed(kind=lambda i, row: f"kind {i}"),
        lambda found: len(found["tst_details"]["categories"]) == 48,
    ),
    "no docs with a gold": (
        changed(answer=lambda i, row: ""),
        "no doc of toy has a gold answer, so nothing can be learned from them; name its field with 'gold'",
    ),
    "fewer docs than folds": (choices(4), "4 docs cannot be dealt to 5 folds; use fewer folds"),
    "one doc": (choices(1), "1 docs cannot be dealt to 5 folds"),
}


@pytest.mark.parametrize("name", some(BAD_INPUT))
def test_bad_input_gives_a_number_or_one_line(tmp_path, name):
    data, expected = BAD_INPUT[name]
    write(tmp_path, rows=data, profile={**BY_SCENE, "grouping": "none"})
    if isinstance(expected, str):
        said = line_of(lambda: rf(tmp_path))
        assert said.startswith("toy_tst5: ")
        assert expected in said
        return
    results = rf(tmp_path)
    found = details(results)
    assert all(math.isfinite(found[key]) for key in ("tst", "tst_majority", "tst_chance", "tst_s", "tst_p"))
    assert expected(found)
    for record in tst_of(results):
        assert all(
            value is None or math.isfinite(value)
            for value in (record["s"], *record["scores"]["none"], *record["baseline"]["none"])
        )


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
