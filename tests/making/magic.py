"""Writes the files of a finished run of MAGIC tasks, without a harness: for tests of what reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_patch.magic.score import matching, results
from lmms_patch.magic.score.extract import regions_of_steps
from lmms_patch.magic.score.response import parse
from tests.making.runs import write_magic

TASKS = {"all": "toy", "relevant": "toy_relevant", "none": "toy_nobox", "selfheal": "toy_selfheal"}


def doc(
    item: str,
    response: str,
    *,
    gold: str = "dog",
    boxes: int = 3,
    relevant: Sequence[int] = (1,),
    group: str = "",
    **verdicts: Any,
) -> dict[str, Any]:
    """What was asked and answered on one item; boxes and relevant ones by the numbers drawn."""
    return {
        "item": item,
        "response": response,
        "gold": gold,
        "boxes": boxes,
        "relevant": list(relevant),
        "group": group or item,
        "verdicts": verdicts,
    }


def record(one: Mapping[str, Any], variant: str) -> dict[str, Any]:
    """The ``magic`` object of a doc."""
    parsed = parse(one["response"])
    named = regions_of_steps(parsed.steps, one["boxes"])
    return {
        "schema": results.SCHEMA, "variant": variant, "id": one["item"], "item": one["item"], "group": one["group"],
        "type": "query", "question": f"What is in {one['item']}?", "asked": {"doc": "d" + one["item"], "prompt": "p"},
        "boxes": one["boxes"], "relevant": one["relevant"], "used": sorted(named.used),
        "dismissed": sorted(named.negated), "invented": sorted(named.invented), "steps": len(parsed.steps),
        "answer": parsed.answer, "answer_found": parsed.found, "exact": matching.exact(parsed.answer, one["gold"]),
        "synonym": matching.synonym(parsed.answer, one["gold"]), **one["verdicts"],
    }  # fmt: skip


def write_magic_run(
    folder: Path,
    variants: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    model: str = "toy_vlm",
    date: str = "20260101_000000",
    log: bool = True,
) -> Path:
    """The results file and sample logs of some variants: ``{variant: docs}``."""
    made = {
        variant: [{**record(one, variant), "gold": one["gold"], "text": one["response"]} for one in docs]
        for variant, docs in variants.items()
    }
    judge = "judge-7b" if any(one["verdicts"] for docs in variants.values() for one in docs) else None
    return write_magic(folder, made, model=model, judge=judge, date=date, log=log, tasks=TASKS)
