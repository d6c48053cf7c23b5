"""What the scripts of ``magic_models`` must score on ``magic_mosaic``, derived from the lines of its file alone.

Notation, for item i: r boxes are relevant and a adversarial, n = r + a. Drawn are all n (``all``), the r
(``relevant``), or none.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from lmms_patch.resources import folder
from tests.harness.magic.models import resisted

VARIANTS = {
    "all": "magic_mosaic",
    "relevant": "magic_mosaic_relevant",
    "none": "magic_mosaic_nobox",
    "selfheal": "magic_mosaic_selfheal",
}
"""The task of each variant."""


@functools.cache
def items() -> list[dict[str, Any]]:
    """The lines of the file."""
    return [
        json.loads(line)
        for line in (folder("tasks") / "magic" / "mosaic" / "items.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def number(item: dict[str, Any]) -> int:
    return int(item["id"].removeprefix("mosaic_"))


def counts(item: dict[str, Any]) -> tuple[int, int]:
    """r and a."""
    relevant = sum(box["relevant"] for box in item["boxes"])
    return relevant, len(item["boxes"]) - relevant


def used(script: str, variant: str, item: dict[str, Any]) -> tuple[int, int]:
    """How many relevant and how many adversarial boxes a script names."""
    r, a = counts(item)
    r, a = (r, a) if variant == "all" else (r, 0) if variant == "relevant" else (0, 0)
    if script == "distracted":
        return r, min(a, 0 if resisted(number(item)) else 1)
    return {"right": (r, 0), "wrong": (0, a), "all": (r, a), "none": (0, 0)}[script]


def lost(script: str, variant: str, item: dict[str, Any]) -> bool:
    """Whether the answer is wrong, of the scripts that give one.

    Every item has adversarial boxes, drawn in ``all`` and ``selfheal``.
    """
    return script == "wrong" or (
        script == "distracted" and variant in ("all", "selfheal") and not resisted(number(item))
    )


def chains() -> dict[str, str]:
    """Each item's chain as letters: c correct, w wrong with a correction, u wrong without."""
    return {
        item["id"]: "".join("c" if s["correct"] else "w" if s["correction"] else "u" for s in item["steps"])
        for item in items()
    }


def heals() -> dict[str, list[tuple[int, int]]]:
    """First and last step, from 1, of each run that Self-Heal tests: it begins after step 1 and leaves two steps behind it (paper, 4.3)."""
    return {
        name: [
            (run.start() + 1, run.end())
            for run in re.finditer("[wu]+", chain)
            if run.start() >= 1 and run.end() <= len(chain) - 2 and "w" in run[0]
        ]
        for name, chain in chains().items()
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _ratio(above: float, below: float) -> float | None:
    return above / below if below else None


def region_truth(script: str, variant: str) -> dict[str, float | None]:
    """MagiScore and what stands beside it (paper, 4.1, 5.3), of ``all`` and ``relevant``."""
    rows = [(*used(script, variant, item), counts(item)) for item in items()]
    tp, fp, needed = (sum(row) for row in zip(*((t, f, r) for t, f, (r, _) in rows), strict=True))
    drawn = [r + a if variant == "all" else r for _, _, (r, a) in rows]
    invents = [script == "wrong" and item["question_type"] == "query" for item in items()]
    return {
        "magiscore_precision_micro": _ratio(tp, tp + fp),
        "magiscore_recall_micro": tp / needed,
        "magiscore_f1_micro": 2 * tp / (tp + fp + needed),
        "magiscore_precision_macro": _mean([t / (t + f) if t + f else 0.0 for t, f, _ in rows]),
        "magiscore_recall_macro": _mean([t / r for t, f, (r, _) in rows]),
        "magiscore_f1_macro": _mean([2 * t / (t + f + r) for t, f, (r, _) in rows]),
        "regions_exhaustive": _mean([float(t + f == n) for (t, f, _), n in zip(rows, drawn, strict=True)]),
        "regions_unused": _mean([float(t + f == 0) for t, f, _ in rows]),
        "regions_dismissed": 0.0,
        "regions_invented": _mean([float(one) for one in invents]),
    }


def answer_truth(script: str, variant: str) -> dict[str, float]:
    """Answers by their words. ``exact`` takes a sentence only for yes and no, which stand first in it."""
    docs = [item for item in items() for _ in (heals()[item["id"]] if variant == "selfheal" else [0])]
    answers = script != "none"
    right = [
        answers and not lost(script, variant, item) and not (script == "all" and variant == "selfheal") for item in docs
    ]
    short = [number(item) % 2 == 1 or item["answer"] in ("yes", "no") for item in docs]
    return {
        "acc_exact": _mean([float(a and b) for a, b in zip(right, short, strict=True)]),
        "acc_synonym": _mean([float(one) for one in right]),
        "answer_found": float(answers),
    }


def truth(script: str, variant: str) -> dict[str, float | None]:
    """Every metric of a run without a judge."""
    out: dict[str, float | None] = {**answer_truth(script, variant)}
    if variant == "selfheal":
        return out
    regions = region_truth(script, variant)
    return {**out, **(regions if variant != "none" else {"regions_invented": regions["regions_invented"]})}


def distraction() -> float:
    """What adversarial boxes cost ``distracted``: the share of items on which it does not resist."""
    return _mean([float(not resisted(number(item))) for item in items()])
