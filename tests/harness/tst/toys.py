"""Small text-only worlds as harness tasks: questions whose answer the wording gives away, or does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_patch.errors import PatchError
from lmms_patch.harness.models.tst import TstLora, TstRf
from tests.harness.toys import run, write_task
from tests.sizes import size

WORDS = ("desk", "sofa", "door", "bath", "shelf", "stove")
PER_SCENE = 4

UTILS = '''
from pathlib import Path

HERE = Path(__file__).parent

def never(doc):
    """No image may be asked for; it is noted, since a caller could swallow the error."""
    with (HERE / "asked").open("a") as file:
        file.write(doc["question"])
    raise FileNotFoundError("there is no image")

def ask(doc, lmms_eval_specific_kwargs=None):
    return "\\n".join([doc["question"], *(f"{chr(65 + i)}. {text}" for i, text in enumerate(doc["choices"])), "Answer with the letter."])

def odd(doc, results):
    """Full marks, 0.3 for a neighbouring letter, else nothing."""
    return {"marks": {0: 1.0, 1: 0.3}.get(abs(ord(results[0].strip() or "Z") - ord(doc["answer"])), 0.0)}

def two_scales(doc, results):
    right = results[0].strip() == doc["answer"]
    if doc["choices"]:
        return {"marks": {"id": doc["question"], "accuracy": float(right)}}
    return {"marks": {"id": doc["question"], "MRA": 1.0 if right else 0.6 if results[0].strip() else 0.0}}

def mean_of_items(items):
    return sum(item.get("accuracy", item.get("MRA")) for item in items) / len(items)
'''

ODD = {
    "process_results": "!function utils.odd",
    "metric_list": [{"metric": "marks", "aggregation": "mean", "higher_is_better": True}],
}


class Rf(TstRf):
    """``tst_rf``, small."""

    def __init__(self, trees: int = 5, groupings: str = "headline", shuffles: int = size(3, 20), **other: Any) -> None:
        super().__init__(trees=trees, groupings=groupings, shuffles=shuffles, workers=2, **other)

    def clean(self) -> None:
        """The host's collects garbage for half a second after each run."""


class Lora(TstLora):
    """``tst_lora``, on the CPU."""

    def clean(self) -> None:
        """As above."""


def choices(
    n: int, seed: int = 0, *, purity: float = 1.0, options: Sequence[str] = ("bed", "rug")
) -> list[dict[str, Any]]:
    """The word asked for says which option is right in ``purity`` of the docs, else any is.

    Where the options stand is random.
    """
    stream = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        word = int(stream.integers(len(WORDS)))
        order = stream.permutation(len(options))
        right = word % len(options) if stream.random() < purity else int(stream.integers(len(options)))
        rows.append(
            {
                "question": f"Which is closer to the {WORDS[word]}?",
                "choices": [options[place] for place in order],
                "answer": "ABCDEFGHIJ"[order.tolist().index(right)],
                "scene": f"scene {i // PER_SCENE}",
                "kind": ("near", "far")[i % 2],
            }
        )
    return rows


def write(
    folder: Path, name: str = "toy", rows: Sequence[dict[str, Any]] | None = None, profile: Any = None, **config: Any
) -> Path:
    """Write a task that shows nothing; by default 48 docs of ``choices``, known by scene and kind."""
    folder.mkdir(exist_ok=True)
    (folder / "utils.py").write_text(UTILS)
    profile = (
        {"group": "scene", "category": "kind", "choices": "choices", "fold_seeds": 1} if profile is None else profile
    )
    defaults = {
        "doc_to_visual": "!function utils.never",
        "doc_to_text": "!function utils.ask",
        "metadata": {"lmms_patch": profile},
    }
    return write_task(folder, name, choices(48) if rows is None else rows, **{**defaults, **config})


def samples_of(results: dict[str, Any], task: str) -> list[dict[str, Any]]:
    """The lines of the sample log, by doc."""
    return sorted(results["samples"][task], key=lambda sample: sample["doc_id"])


def tst_of(results: dict[str, Any], task: str = "toy_tst5") -> list[dict[str, Any]]:
    """The object ``tst`` of every doc."""
    return [sample["patch"]["tst"] for sample in samples_of(results, task)]


def details(results: dict[str, Any], task: str = "toy_tst5") -> dict[str, Any]:
    """All numbers of a task in the results."""
    return next(value for name, value in results["results"][task].items() if name.startswith("patch,"))


def rf(folder: Path, tasks: str = "toy_tst5", **kwargs: Any) -> dict[str, Any]:
    """Run tasks of a folder with a small ``tst_rf``."""
    return run(Rf(), tasks, folder, **kwargs)


def line_of(work, kind=PatchError):
    """The one line of a refusal."""
    with pytest.raises(kind) as caught:
        work()
    assert "\n" not in str(caught.value)
    return str(caught.value)
