"""Golds that the scorer does not compare with: named, with the field that it does compare with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import List

from lmms_patch.ask import profiles
from tests.harness.standins import TEXT, StandIn, images, noise, one
from tests.harness.told import Outcome, run_told
from tests.harness.toys import Model, metrics, rows, run, write_task

DOCS = 40


def right(prompt: str, seen: list[Any]) -> str:
    """Right on the full image of all docs but every fifth, and on the first cell of every other doc."""
    red, green, doc = seen[0].getpixel((0, 0))
    sure = doc % 5 if seen[0].width == 60 else doc % 2 == 0 and (red, green) == (0, 0)
    return "ABCD"[doc % 4] if sure else "?"


def toy(folder: Path, **more: Any) -> dict[str, Any]:
    """A task whose ``doc_to_target`` is an explanation, while its scorer compares with the field ``letter``."""
    folder.mkdir(exist_ok=True)
    (folder / "utils.py").write_text(
        "def score(doc, results):\n    return {'exact_match': float(results[0].strip() == doc['letter'])}\n"
    )
    columns = {
        "answer": lambda i: f"because of {i}",
        "letter": lambda i: "ABCD"[i % 4],
        "choices": lambda i: list("ABCD"),
    }
    metadata = {"version": 0.0, "lmms_patch": {"null": 0, **more}}
    write_task(folder, "toy", rows(DOCS, **columns), process_results="!function utils.score", metadata=metadata)
    return metrics(run(Model(right), "toy_rci2", folder), "toy_rci2")


def test_a_gold_that_the_scorer_does_not_read_is_named_with_the_field_that_it_reads(tmp_path: Path) -> None:
    found = toy(tmp_path)
    assert found["exact_match"] == 32 / DOCS
    assert found["gate"] is found["rci2"] is found["rci2_adj"] is None
    gate = found["patch"]["analysis"]["gate"]
    assert (
        "the gold answers score 0: the scorer does not compare with doc_to_target, 'answer', but with the field 'letter'"
        in gate["reason"]
    )


def test_the_line_can_be_followed(tmp_path: Path) -> None:
    found = toy(tmp_path, gold="letter", choices="choices")
    assert (found["gate"], found["chance"], found["patch"]["ceiling"]) == (1, 0.25, 1)
    assert found["rci2"] == pytest.approx(1 - (20 / DOCS) / (32 / DOCS))


# --- tasks of the harness -----------------------------------------------------------------------


def livexiv() -> StandIn:
    docs = [
        {
            "question": f"What does curve {i} show?",
            **{f"option_{letter}": f"thing {i} {letter}" for letter in "abcd"},
            "gt": "ABCD"[i % 4],
            "answer": f"thing {i} {'abcd'[i % 4]}",
            "image": noise(900 + i, (60, 40)),
        }
        for i in range(DOCS)
    ]
    columns = images(question=TEXT, gt=TEXT, answer=TEXT, **{f"option_{letter}": TEXT for letter in "abcd"})
    return one("livexiv_vqa_v6", "LiveXiv/LiveXiv", "v6-VQA", "test", columns, docs)


def mindcube() -> StandIn:
    docs = [
        {
            "id": f"around_{i}",
            "question": f"Where is thing {i}?",
            "input_prompt": f"<image> Where is thing {i}? A. left B. right C. above D. below",
            "grounded_output": f"<CogMap>thing {i} is seen from the side</CogMap>",
            "gt_answer": "ABCD"[i % 4],
            "images": [noise(950 + i, (60, 40)).convert("RGB")],
        }
        for i in range(DOCS)
    ]
    columns = {
        "id": TEXT,
        "question": TEXT,
        "input_prompt": TEXT,
        "grounded_output": TEXT,
        "gt_answer": TEXT,
        "images": List(datasets.Image()),
    }
    return one("mindcube_tiny", "oscarqjh/MindCube_lmmseval", "tiny", "combined", columns, docs)


def asked(standin: StandIn, folder: Path) -> Outcome:
    [docs] = [found for splits in standin.data.values() for found in splits.values()]
    return run_told(
        standin,
        f"{standin.task}_rci2",
        docs,
        lambda doc, view: "ABCD"[doc % 4] if view in (0, 2) and doc % 5 else "E",
        folder,
    )


@pytest.mark.parametrize(
    ("make", "target", "field"), [(livexiv, "answer", "gt"), (mindcube, "grounded_output", "gt_answer")]
)
def test_tasks_of_the_harness_whose_golds_are_not_read(
    make: Any, target: str, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(profiles, "of", lambda task: None)
        without = asked(make(), tmp_path)
    assert without.grid["fip"] == 0.8
    assert (without.details["gate"], without.grid["index"]["value"]) == (None, None)
    assert (
        f"does not compare with doc_to_target, {target!r}, but with the field {field!r}"
        in without.grid["index"]["reason"]
    )

    known = asked(make(), tmp_path)
    assert (known.details["gate"], known.details["ceiling"]) == (1, 1)
    assert known.grid["index"]["value"] == pytest.approx(0)
