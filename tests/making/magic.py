"""Writes the files of a finished run of MAGIC tasks, without a harness: for tests of what reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_patch.magic.score import matching, results
from lmms_patch.magic.score.extract import regions_of_steps
from lmms_patch.magic.score.response import parse
from tests.making.files import write_files

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
        "schema": results.SCHEMA,
        "variant": variant,
        "id": one["item"],
        "item": one["item"],
        "group": one["group"],
        "type": "query",
        "question": f"What is in {one['item']}?",
        "asked": {"doc": "d" + one["item"], "prompt": "p"},
        "boxes": one["boxes"],
        "relevant": one["relevant"],
        "used": sorted(named.used),
        "dismissed": sorted(named.negated),
        "invented": sorted(named.invented),
        "steps": len(parsed.steps),
        "answer": parsed.answer,
        "answer_found": parsed.found,
        "exact": matching.exact(parsed.answer, one["gold"]),
        "synonym": matching.synonym(parsed.answer, one["gold"]),
        **({"judge": {"model": "judge-7b"}, **one["verdicts"]} if one["verdicts"] else {}),
    }


def write_magic_run(
    folder: Path,
    variants: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    model: str = "toy_vlm",
    date: str = "20260101_000000",
    log: bool = True,
) -> Path:
    """The results file and sample logs of some variants: ``{variant: docs}``."""
    tasks = {}
    for variant, docs in variants.items():
        task = TASKS[variant]
        records = [record(one, variant) for one in docs]
        judge = "judge-7b" if any("judge" in one for one in records) else None
        typed = [results.Record(**one) for one in records]
        found = results.numbers(typed, variant, judge is not None, draws=200)
        counts = results.counts(typed, variant, judge is not None)
        about = {
            "schema": 1,
            "variant": variant,
            "dataset": "toy",
            "metric": results.primary(variant, judge is not None),
            "seed": 0,
            "judge": judge,
            "numbers": {name: dataclasses.asdict(one) for name, one in found.items()},
            "by_type": {},
            "counts": counts,
            "warnings": results.warnings(counts, judge is not None),
        }
        flat = {name: one.value for name, one in found.items()}
        told = {
            "schema": results.SCHEMA,
            "base": task,
            "kind": "magic",
            "variant": variant,
            "grids": [],
            "metric": about["metric"],
            "options": {},
        }
        lines = [
            {"doc_id": n, "target": one["gold"], "filtered_resps": one["response"], "magic": made}
            for n, (one, made) in enumerate(zip(docs, records, strict=True))
        ]
        values = {"magic": {"records": len(records), **flat, "made": {}, "magic": about}, **flat}
        tasks[task] = values, {"metadata": {"magic": told}}, lines if log else None
    return write_files(folder, tasks, date=date, model_name=model, config={"model": "toy"})
