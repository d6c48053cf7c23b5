"""Golds that the scorer does not compare with are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def test_golds_that_the_scorer_does_not_read_are_named(tmp_path: Path) -> None:
    found = toy(tmp_path)
    assert found["exact_match"] == 32 / DOCS
    assert found["gate"] is found["rci2"] is found["rci2_steady"] is None
    gate = found["patch"]["analysis"]["gate"]
    assert "the gold answers score 0: the scorer does not compare with them; name the field" in gate["reason"]
