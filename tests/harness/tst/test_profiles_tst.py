"""Profiles of benchmarks without still images: the host's own tasks, with only the loading of their data replaced."""

import json

import datasets
import numpy as np
import pytest
from datasets import List

from lmms_patch.harness.load import text_only
from lmms_patch.tst.diagnosis import in_threads
from lmms_patch.tst.folds import grouping
from lmms_patch.tst.tree_diagnostic import RfDiagnostic
from lmms_patch.tst.trees import ModelSettings
from tests.harness.standins import TEXT, StandIn
from tests.places import SHARED
from tests.sizes import DEEP, size
from tests.tst.worlds import mra

DATA = SHARED


def lines(name):
    path = DATA / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is missing")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def lettered(row):
    return (
        None
        if row["choices"] is None
        else [f"{letter}. {text}" for letter, text in zip("ABCDEFGH", row["choices"], strict=False)]
    )


def vsibench(every=1):
    """VSI-Bench with the columns of the hub's data set."""
    rows = [
        {
            "dataset": row["meta"]["video"].split("/")[0],
            "scene_name": row["meta"]["video"].split("/")[1],
            "question_type": row["category"],
            "question": row["question"],
            "ground_truth": str(row["answer"]),
            "options": lettered(row),
        }
        for row in lines("vsi_bench")[::every]
    ]
    columns = dict.fromkeys(rows[0], TEXT) | {"options": List(TEXT)}
    return StandIn(
        "vsibench", {("nyu-visionx/VSI-Bench", "full"): {"test": rows}}, {("nyu-visionx/VSI-Bench", "full"): columns}
    )


def videomme(every=1):
    rows = [
        {
            "videoID": row["group"],
            "question_id": row["id"],
            "duration": row["meta"]["duration"],
            "domain": row["meta"]["domain"],
            "sub_category": row["meta"]["sub_category"],
            "task_type": row["category"],
            "question": row["question"],
            "options": lettered(row),
            "answer": row["answer"],
        }
        for row in lines("videomme")[::every]
    ]
    columns = dict.fromkeys(rows[0], TEXT) | {"options": List(TEXT)}
    path = ("lmms-eval/Video-MME", None)
    return StandIn("videomme", {path: {"test": rows}}, {path: columns})


def opened(standin, monkeypatch):
    monkeypatch.setattr(datasets, "load_dataset", standin.loader())
    ((rows, *_), *_) = [list(splits.values()) for splits in standin.data.values()]
    return text_only(standin.task), rows


def test_vsibench_is_read_as_it_is(monkeypatch):
    task, rows = opened(vsibench(40), monkeypatch)
    for item, row in zip(task.items, rows, strict=True):
        assert item.golds == (row["ground_truth"],)
        assert item.category == row["question_type"]
        assert item.format == ("number" if row["options"] is None else "mc")
        assert item.options == tuple(text[3:] for text in row["options"] or ())
        assert row["question"] in item.question
    scenes = {(row["dataset"], row["scene_name"]) for row in rows}
    assert int(grouping(task.items, "source").groups.max()) + 1 == len(scenes)
    assert task.headline.name == "source"  # a chain of scenes and near copies of a text connects nearly all docs


def test_vsibench_scores_are_those_of_its_definition(monkeypatch):
    task, rows = opened(vsibench(40), monkeypatch)
    stream = np.random.default_rng(0)
    for place, row in enumerate(rows):
        if row["options"] is None:
            answer = f"{float(row['ground_truth']) * stream.uniform(0.4, 1.6):.2f}"
            assert task.score(place, answer) == pytest.approx(
                mra(answer, row["ground_truth"]), abs=0.11
            )  # thresholds on the edge
        else:
            assert [task.score(place, letter) for letter in "ABCD"] == [
                float(letter == row["ground_truth"]) for letter in "ABCD"
            ]


def test_videomme_is_read_as_it_is(monkeypatch):
    task, rows = opened(videomme(30), monkeypatch)
    for item, row in zip(task.items, rows, strict=True):
        assert (item.golds, item.category, item.format) == ((row["answer"],), row["task_type"], "mc")
        assert item.options == tuple(text[3:] for text in row["options"])
        assert item.source == row["videoID"]


def test_vsibench_by_its_own_task(monkeypatch):
    """A sixth of the scenes, or fewer: numbers about those of the whole benchmark (docs/tst.md), from the host's prompts and scorer."""
    standin = vsibench()
    scenes = {
        key: i
        for i, key in enumerate(
            dict.fromkeys(
                (r["dataset"], r["scene_name"]) for r in standin.data["nyu-visionx/VSI-Bench", "full"]["test"]
            )
        )
    }
    ((_, splits),) = standin.data.items()
    splits["test"][:] = [row for row in splits["test"] if scenes[row["dataset"], row["scene_name"]] % size(18, 6) == 0]
    task, rows = opened(standin, monkeypatch)
    found = task.diagnose(
        RfDiagnostic(ModelSettings(trees=size(20, 40), beside=DEEP)), {}, in_threads(1), everything=False
    )
    head = found.by_grouping[found.headline]
    assert len(head.s) == len(rows) > size(240, 700)
    assert size(0.33, 0.37) < head.accuracy < size(0.5, 0.47)
    assert head.accuracy > head.baseline.mean() + size(0.02, 0.04)
