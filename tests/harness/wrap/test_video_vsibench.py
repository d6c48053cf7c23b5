"""VSI-Bench through its own task file, prompts and scorer, on stand-in clips: a mean over kinds of questions, some of which a small run lacks."""

from __future__ import annotations

import hashlib
import random
import statistics
from collections import defaultdict
from typing import Any

import datasets
import pytest
from datasets import Dataset, DatasetDict
from lmms_eval.api.task import ConfigurableTask
from lmms_eval.tasks import TaskManager

from tests.harness import toys
from tests.harness.adapters import per_request
from tests.harness.cinema import Watching, WatchingChat
from tests.harness.toys import metrics
from tests.making.videos import make
from tests.sizes import size

DIRECTIONS = [f"object_rel_direction_{level}" for level in ("easy", "medium", "hard")]
CHOICES = [*DIRECTIONS, "object_rel_distance", "route_planning", "obj_appearance_order"]
NUMBERS = ["object_abs_distance", "object_counting", "object_size_estimation", "room_size_estimation"]
MENU = ("A", "B. the door", "c", "I see 2", "three", "4.4", "twenty-one", "no idea")
SCENES = 12


def row(i: int, kind: str) -> dict[str, Any]:
    """Return a row with the columns of the real data."""
    place = {
        "id": i,
        "dataset": ["scannet", "arkitscenes"][i % 2],
        "scene_name": f"scene{i // 2 % SCENES}",
        "question_type": kind,
        "pruned": False,
    }
    if kind in CHOICES:
        return {
            **place,
            "question": f"Which one, {i}?",
            "options": [f"{letter}. thing {i}" for letter in "ABCD"],
            "ground_truth": "ABCD"[i % 4],
        }
    return {**place, "question": f"How many, {i}?", "options": None, "ground_truth": str(2 + i % 3)}


class Guessing:
    """Answers by a digest of the frames and of the question, so that each view of each doc has an answer of its own."""

    def answers(self, batch):
        watched = super().answers(batch)
        return [
            MENU[hashlib.blake2b(f"{seen} {one[0]}".encode()).digest()[0] % len(MENU)]
            for one, seen in zip(batch, watched, strict=True)
        ]


class Simple(Guessing, Watching):
    pass


class Chat(Guessing, WatchingChat):
    pass


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    where = tmp_path_factory.mktemp("home")
    for number, source in enumerate(("scannet", "arkitscenes")):
        (where / "vsibench" / source).mkdir(parents=True)
        for scene in range(SCENES):
            make(where / "vsibench" / source / f"scene{scene}.mp4", 8 + SCENES * number + scene, (64, 48))
    return where


@pytest.fixture(scope="module")
def manager():
    return TaskManager("ERROR")


@pytest.fixture
def run(home, manager, monkeypatch):
    """Runs tasks on rows of these kinds of questions."""
    monkeypatch.setenv("HF_HOME", str(home))

    def on(kinds, tasks, model=Simple):
        rows = Dataset.from_list([row(i, kind) for i, kind in enumerate(kinds)])

        def download(self: Any, dataset_kwargs: Any = None) -> None:
            self.dataset = self.dataset_no_image = DatasetDict({"test": rows})

        monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: DatasetDict({"test": rows}))
        monkeypatch.setattr(ConfigurableTask, "download", download)
        return toys.simple_evaluate(
            model=model(per_request), tasks=tasks, task_manager=manager, log_samples=True, bootstrap_iters=0
        )

    return on


def score(doc: dict[str, Any], answer: str) -> float:
    """Return what an answer of ``MENU`` earns: right or wrong, or the share of the thresholds 0.50, 0.55, ..., 0.95 that the relative error is within."""
    if doc["question_type"] in CHOICES:
        return float(answer.split(" ")[0].rstrip(".").lower() == doc["ground_truth"].lower())
    number = {"I see 2": 2, "three": 3, "4.4": 4.4, "twenty-one": 21}.get(answer)
    gold = float(doc["ground_truth"])
    return (
        0.0
        if number is None
        else sum(abs(number - gold) / gold <= 1 - (50 + 5 * i) / 100 + 1e-9 for i in range(10)) / 10
    )


def overall(scores: list[tuple[str, float]]) -> float:
    """Return the mean over eight kinds: the three of directions count as one, their mean."""
    by_kind = defaultdict(list)
    for kind, value in scores:
        by_kind[kind].append(value)
    means = {kind: sum(values) / len(values) for kind, values in by_kind.items()}
    directions = sum(means.pop(kind) for kind in DIRECTIONS) / 3
    return sum([*means.values(), directions]) / (len(means) + 1)


@pytest.mark.parametrize("model", [Simple, Chat])
def test_all_kinds_of_questions(run, model):
    """The full clip earns what the base task earns, kind by kind; and the best segments what the definition says."""
    results = run([*CHOICES, *NUMBERS] * size(2, 4), ["vsibench", "vsibench_trci2"], model)
    base, found = metrics(results, "vsibench"), metrics(results, "vsibench_trci2")
    listed = [one["metric"] for one in results["configs"]["vsibench"]["metric_list"]]
    assert len(listed) == 9
    assert {name: found[name] for name in listed} == {name: base[name] for name in listed}
    samples = results["samples"]["vsibench_trci2"]
    views = [[score(sample["doc"], resps[0]) for resps in sample["resps"][:3]] for sample in samples]
    kinds = [sample["doc"]["question_type"] for sample in samples]
    assert found["vsibench_overall"] == pytest.approx(
        overall([(kind, full) for kind, (full, *_) in zip(kinds, views, strict=True)]), abs=1e-6
    )
    assert found["vsibench_overall_mpp2"] == pytest.approx(
        overall([(kind, max(a, b)) for kind, (_, a, b) in zip(kinds, views, strict=True)]), abs=1e-6
    )
    assert len({tuple(one) for one in views}) > 4, "views of a doc earn different scores"


def test_the_interval_is_that_of_resampled_scenes(run, told):
    """Scenes are drawn with replacement and their docs averaged by the definition: in plain Python, its spread and ends are those of the run."""
    kinds = [*CHOICES, *NUMBERS] * size(6, 8)
    results = run(kinds, ["vsibench_trci2"])
    fip = metrics(results, "vsibench_trci2")["patch"]["analysis"]["fip"]
    assert metrics(results, "vsibench_trci2")["patch"]["analysis"]["form"] == "macro"
    assert not any("cannot be aggregated" in line for line in told)
    scenes = defaultdict(list)
    for sample in results["samples"]["vsibench_trci2"]:
        doc = sample["doc"]
        scenes[doc["dataset"], doc["scene_name"]].append((doc["question_type"], score(doc, sample["resps"][0][0])))
    stream = random.Random(3)
    drawn = []
    while len(drawn) < 500:
        docs = [one for scene in stream.choices(list(scenes.values()), k=len(scenes)) for one in scene]
        if {kind for kind, _ in docs} >= set(DIRECTIONS):
            drawn.append(overall(docs))
    assert fip["value"] == pytest.approx(overall([one for scene in scenes.values() for one in scene]), abs=1e-6)
    assert fip["se"] == pytest.approx(statistics.stdev(drawn), rel=0.2)
    assert fip["draws"] > 900
    assert (fip["high"] - fip["low"]) / fip["se"] == pytest.approx(2 * 1.96, rel=0.2)


def test_a_kind_of_question_that_is_missing(run, told, capsys):
    """The base task ends in a KeyError, and all answers are lost.

    Wrapped, the answers are written, what failed is null, and each metric has one line.
    """
    kinds = [kind for kind in [*CHOICES, *NUMBERS] * 2 if kind != DIRECTIONS[0]]
    with pytest.raises(KeyError, match=DIRECTIONS[0]):
        run(kinds, ["vsibench"])
    capsys.readouterr()
    results = run(kinds, ["vsibench_trci2"])
    found = metrics(results, "vsibench_trci2")
    assert all(
        found[name] is None
        for name in ("vsibench_overall", "vsibench_overall_mpp2", "object_counting_mra", "trci2", "trci2_steady")
    )
    assert len(results["samples"]["vsibench_trci2"]) == len(kinds)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("lmms-patch: ")]
    assert (
        lines[0]
        == f"lmms-patch: vsibench_trci2: the aggregation of vsibench_overall failed: KeyError: '{DIRECTIONS[0]}_accuracy'"
    )
    assert len(lines) == len(set(lines)) == 9, "one for each native metric"
    unread, null, _ = (line.strip() for line in told)
    assert unread.startswith("vsibench_trci2: answers that name none of the options: 7 of 10 to the first view"), (
        "few answers of MENU are options"
    )
    assert null == "vsibench_trci2: trci2 is null: the aggregation of vsibench_overall failed, or gave no number"
