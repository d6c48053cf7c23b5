"""``_tst<k>`` tasks: options, task files, groups, several tasks, ``--limit``, tasks with videos."""

from __future__ import annotations

import numpy as np
import pytest
from lmms_eval.api import task as host
from lmms_eval.tasks import TaskManager

from tests.harness.toys import ChatModel, Model, metrics, run
from tests.harness.tst.toys import ODD, Rf, choices, details, rf, samples_of, tst_of, write
from tests.sizes import size

BY_SCENE = {"group": "scene", "category": "kind", "choices": "choices", "fold_seeds": 1}


def nested(rows):
    """Everything but the question in a struct; what stands in its place is wrong."""
    return [
        {
            "question": row["question"],
            "choices": row["choices"],
            "answer": "A",
            "meta": {**row, "options": row["choices"]},
        }
        for row in rows
    ]


# --- fields -------------------------------------------------------------------------------------------


def test_fields_may_be_inside_others(tmp_path):
    rows = choices(48, purity=0.8)
    profile = {
        "group": "meta.scene",
        "category": "meta.kind",
        "choices": "meta.options",
        "gold": "meta.answer",
        "fold_seeds": 1,
    }
    scored = {"process_results": "!function utils.by_meta", "metric_list": ODD["metric_list"]}
    write(tmp_path, rows=nested(rows), profile=profile, **scored)
    with (tmp_path / "utils.py").open("a") as file:
        file.write('\ndef by_meta(doc, results):\n    return {"marks": float(results[0] == doc["meta"]["answer"])}\n')
    inside = rf(tmp_path)
    assert [line["patch"]["fields"]["group"] for line in samples_of(inside, "toy_tst5")] == [
        row["scene"] for row in rows
    ]
    assert [line["patch"]["answer"]["gold"] for line in samples_of(inside, "toy_tst5")] == [
        row["answer"] for row in rows
    ]
    assert details(inside)["tst_details"]["categories"].keys() == {"far", "near"}

    write(tmp_path / "flat", rows=rows)
    assert tst_of(inside) == tst_of(rf(tmp_path / "flat"))


def numbers_and_choices(n):
    """Every other doc asks for a number, which its word gives away."""
    rows = choices(n)
    for i, row in enumerate(rows):
        if i % 2:
            word = row["question"].removesuffix("?").split()[-1]
            row |= {"question": f"How long is the {word}?", "choices": [], "answer": str(10 * len(word))}
    return rows


def test_a_score_of_two_names(tmp_path):
    """Items hold ``accuracy`` for choices and ``MRA`` for numbers, as VSI-Bench's do in lmms-eval.

    Their aggregation is no mean of numbers.
    """
    rows = numbers_and_choices(160)
    metric = {"metric": "marks", "aggregation": "!function utils.mean_of_items", "higher_is_better": True}
    profile = {**BY_SCENE, "score": ["accuracy", "MRA"]}
    write(tmp_path, rows=rows, profile=profile, process_results="!function utils.two_scales", metric_list=[metric])
    results = rf(tmp_path)
    by_hand = []
    for row, record, line in zip(rows, tst_of(results), samples_of(results, "toy_tst5"), strict=True):
        right = record["answers"][0] == row["answer"]
        by_hand.append(1.0 if right else 0.0 if row["choices"] else 0.6)
        assert line["patch"]["answer"]["format"] == ("mc" if row["choices"] else "number")
    assert [record["scores"]["source"][0] for record in tst_of(results)] == by_hand
    assert metrics(results, "toy_tst5")["marks"] == pytest.approx(np.mean(by_hand))
    assert {row["kind"] for row in details(results)["tst_details"]["importance"]} == {"options", "numbers"}


HINTS = """
def hint(row):
    return {"hint": 2 * float(row["answer"]), "colour": "red" if row["kind"] == "near" else "blue"}
"""


def test_a_function_adds_features(tmp_path, monkeypatch):
    """Numbers at random, but a feature knows them."""
    (tmp_path / "hints_of_toy.py").write_text(HINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    golds = np.random.default_rng(0).integers(1, 5, size(120, 240))
    rows = [{**row, "choices": [], "answer": str(gold)} for row, gold in zip(choices(len(golds)), golds, strict=True)]
    write(tmp_path, rows=rows)
    without = details(run(Rf(trees=size(20, 40)), "toy_tst5", tmp_path))
    write(tmp_path, rows=rows, profile={**BY_SCENE, "features": "hints_of_toy.hint"})
    found = details(run(Rf(trees=size(20, 40)), "toy_tst5", tmp_path))
    assert without["tst"] < 0.45 < 0.9 < found["tst"]
    assert found["tst_details"]["importance"][0]["feature"] == "extra.hint"
    assert not [row for row in without["tst_details"]["importance"] if "extra" in row["feature"]]


# --- other ways to ask --------------------------------------------------------------------------------


def test_a_task_file(tmp_path):
    write(tmp_path)
    (tmp_path / "mine.yaml").write_text(
        "task: mine\nclass: !function lmms_patch.Wrap\nbase: toy\nkind: tst\nfolds: 4\nfold_seed: 2\ngrouping: none\n"
    )
    mine = rf(tmp_path, "mine")
    write(tmp_path, profile={**BY_SCENE, "fold_seed": 2, "grouping": "none"})
    assert tst_of(mine, "mine") == tst_of(rf(tmp_path, "toy_tst4"), "toy_tst4")


def test_limit_tests_the_docs_that_are_left(tmp_path):
    """As a task of these docs alone: no other doc is trained on."""
    rows = choices(60, purity=0.7)
    write(tmp_path, rows=rows)
    limited = rf(tmp_path, limit=36)
    write(tmp_path / "short", rows=rows[:36])
    assert len(tst_of(limited)) == 36
    assert tst_of(limited) == tst_of(rf(tmp_path / "short"))
    assert details(limited)["records"] == 36


def test_the_response_cache_asks_again(tmp_path):
    """Its answers would come without what is known of them."""
    write(tmp_path)
    first, second = (rf(tmp_path, use_cache=str(tmp_path / "cache")) for _ in range(2))
    assert tst_of(first) == tst_of(second)
    assert details(first)["tst"] == details(second)["tst"] is not None


def test_members_of_a_group_are_tested_apart(tmp_path):
    write(tmp_path)
    write(tmp_path, "other", choices(40, seed=5, purity=0.5))
    metric = "{metric: exact_match, aggregation: mean, weight_by_size: true}"
    (tmp_path / "pair.yaml").write_text(
        f"group: pair\ntask: [toy, other]\naggregate_metric_list: [{metric}]\nmetadata: {{version: 1}}\n"
    )
    results = rf(tmp_path, "pair_tst3")
    assert set(results["results"]) == {"pair_tst3", "toy_tst3", "other_tst3"}
    right = 0.0
    for task in ("toy_tst3", "other_tst3"):
        assert tst_of(results, task) == tst_of(rf(tmp_path, task), task)
        right += sum(line["exact_match"] for line in samples_of(results, task))
    assert metrics(results, "pair_tst3")["exact_match"] == pytest.approx(right / 88)


# --- tasks with videos --------------------------------------------------------------------------------


@pytest.fixture
def videos(tmp_path, monkeypatch):
    """Two tasks whose videos are to be fetched from a hub; fetching is noted."""
    fetched = []

    def fetch(**kwargs):
        fetched.append(kwargs)
        return str(tmp_path)

    monkeypatch.setattr(host, "snapshot_download", fetch)
    for name in ("toy", "other"):
        files = {"data_files": {"test": f"{name}.parquet"}}
        write(
            tmp_path,
            name,
            dataset_kwargs={**files, "video": True, "cache_dir": f"{tmp_path}/{name}_videos", "create_link": True},
        )
    (tmp_path / "pair.yaml").write_text("group: pair\ntask: [toy, other]\n")
    return fetched


def test_videos_are_not_fetched_for_what_shows_none(tmp_path, videos):
    for model, tasks in (
        (Rf(), "pair_tst3,toy_tst5"),
        (Model(), "pair_blind,toy_blind"),
        (ChatModel(), "pair_blind,toy_blind"),
    ):
        results = run(model, tasks, tmp_path)
        assert {"toy", "other"} == {name.rpartition("_")[0] for name in results["samples"]}
        assert {len(lines) for lines in results["samples"].values()} == {48}
    assert videos == []
    assert not (tmp_path / "asked").exists()


def test_else_they_are_fetched(tmp_path, videos):
    TaskManager(verbosity="ERROR", include_path=str(tmp_path)).load_task_or_group(["toy"])
    assert len(videos) == 1
