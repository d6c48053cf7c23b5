"""The MAGIC tasks of tasks/magic: what is scored of each response, and the numbers of a task.

They are plain task files, so any model of the harness runs them and any wrapped name can wrap them. Two things are
known only when a task is loaded, and added then (``bind``): its data and settings, which go into its config, so that
the harness's response cache never gives an answer to other data; and its metrics.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_patch.ask.references import digest
from lmms_patch.harness import compat
from lmms_patch.harness.magic import docs
from lmms_patch.harness.magic.judge import Judge
from lmms_patch.harness.names.effects import judge_model
from lmms_patch.harness.refuse import fail_at_exit
from lmms_patch.harness.wrap.aggregate import Details
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.magic import draw, prompts
from lmms_patch.magic.method import numbers_of
from lmms_patch.magic.score import matching, results, rows, selfheal
from lmms_patch.magic.score.extract import own_steps, regions_of_steps
from lmms_patch.magic.score.judge_settings import JudgeSettings
from lmms_patch.magic.score.response import Response, parse
from lmms_patch.magic.score.verdicts import full_inquiry, heal_inquiry, short_inquiry
from lmms_patch.runs.details import Computed, Made
from lmms_patch.text import log

CONTINUES = ("mosaic_vlm",)
"""Adapters that continue an unfinished turn of the model. The others of lmms-eval 0.7 close it and begin a new one."""


# --- when a task is loaded ------------------------------------------------------------------------


def bind(task: Any) -> None:
    """Write data and settings into a loaded task's config, and give the task its metrics.

    A second call changes nothing.

    Raises:
        OptionError: a setting, of the task or the judge, has a value that is not allowed.
    """
    # read for its errors, before a model is asked
    judged = bool(JudgeSettings.from_env(os.environ).model)
    # a judge that was given up while another model was scored may be back
    _judge_of.cache_clear()
    told, about, own = docs.settings(), dict(task.config.metadata["magic"]), str(task.config.task)
    variant = str(about["variant"])
    prefill = told.prefill if told.prefill != "auto" else "assistant" if task.model_name in CONTINUES else "prompt"
    dataset, name = docs.source(str(about.get("data") or ""))
    about |= {
        "schema": results.SCHEMA,
        "base": own,
        "grids": [],
        "metric": results.primary(variant, judged=False),
        "options": {},
        "pixels": draw.PIXELS,
        "prompts": prompts.VERSION,
        "seed": told.seed,
        # in their order, since the response cache knows a doc by its place
        "docs": digest(docs.asked(row)["doc"] for row in task.eval_docs_no_media),
        "examples": [shot.key for shot in docs.examples(variant)],
        **({"prefill": prefill} if variant == "selfheal" else {}),
    }
    task.config.metadata = {**task.config.metadata, "magic": about}
    task.lmms_eval_specific_kwargs = {**(task.lmms_eval_specific_kwargs or {}), "prefill": prefill}
    of_data = {"dataset": name, "left_out": {"items": dataset.left_out}}

    def aggregation(items: list[Any]) -> Details:
        """Return the numbers of a task as the value of its metric ``magic``; raise nothing, because the run's answers must be written."""
        try:
            return details(own, {**about, **of_data}, [one.record for one in items if one is not None])
        except Exception as error:
            fail_at_exit(f"{own}: the statistics failed: {one_line(error)}; the other metrics are whole")
            return Details(records=len(items))

    names = results.metrics(variant, judged)
    task._aggregation_list = {"magic": aggregation, **{name: task._aggregation_list[name] for name in names}}
    task._higher_is_better = {name: results.higher_is_better(name, variant) for name in names}


class MagicItem(dict[str, Any]):
    """The ``magic`` object of a doc in the harness's log, for people alone; ``record`` holds the doc."""

    def __init__(self, record: results.Record) -> None:
        super().__init__({name: getattr(record, name) for name in ("id", "relevant", "used", "invented", "synonym")})
        self.record = record

    def __reduce__(self) -> Any:
        # ranks exchange items by pickle, and a plain dictionary would lose the attribute
        return MagicItem, (self.record,)


# --- what is scored of a response -----------------------------------------------------------------


def process_results(doc: Mapping[str, Any], answered: Sequence[str]) -> dict[str, Any]:
    """Return a doc's record under ``magic``, and the doc's item in each metric (None where the doc does not count).

    Args:
        doc: a row of ``docs.docs``, with or without its image.
        answered: the model's response, as a list of one.
    """
    failed = compat.failure(answered[0] if answered else None)
    # of a failed call nothing is counted, and no judge is asked; an adapter may give the prompt back
    response = "" if failed else answered[0].replace(docs.prompt(doc), "\n")
    # the injected steps go where the model wrote them down again
    own = selfheal.continuation(response, doc["prefix"]) if doc["variant"] == "selfheal" else response
    parsed = parse(own, doc["question"])
    judged = {} if failed or judge_model() is None else _verdicts(doc, own, parsed)
    record = results.Record(**record_of(doc, parsed), **judged, response=response, failed=failed or None)
    names = results.metrics(doc["variant"], judge_model() is not None)
    return {"magic": MagicItem(record), **{name: None if failed else item(record, name) for name in names}}


def item(record: results.Record, metric: str) -> Any:
    """Return a doc's item in a metric: a number, the parts of a ratio, or None.

    A wrapped task takes the number under ``score`` for the doc's.
    """
    if metric.startswith("magiscore_") and metric.endswith("_micro"):
        one = results.item_score(record)
        return {"tp": one.tp, "fp": one.fp, "fn": one.fn}
    return results.score(record, metric)


def record_of(doc: Mapping[str, Any], parsed: Response) -> dict[str, Any]:
    """Return the fields of a doc's record (docs/magic.md), without a judge's verdicts."""
    drawn = dict(zip(doc["drawn"], doc["relevant"], strict=True))
    drawn.pop(0, None)
    named = regions_of_steps(own_steps(parsed.steps, docs.prompt(doc, "assistant"), len(drawn)), len(drawn))
    return {
        "schema": results.SCHEMA,
        **{name: doc[name] for name in ("variant", "id", "item", "group", "type", "question")},
        **{name: doc[name] for name in ("first", "last") if doc["variant"] == "selfheal"},
        "asked": docs.asked(doc),
        "boxes": len(drawn),
        "relevant": sorted(number for number, relevant in drawn.items() if relevant),
        "used": sorted(named.used),
        "dismissed": sorted(named.negated),
        "invented": sorted(named.invented),
        "steps": len(parsed.steps),
        "answer": parsed.answer,
        "answer_found": parsed.found,
        "exact": matching.exact(parsed.answer, doc["answer"]),
        "synonym": matching.synonym(parsed.answer, doc["answer"]),
        "doc_id": int(doc["row"]),
        "target": str(doc["answer"]),
    }


def _verdicts(doc: Mapping[str, Any], own: str, parsed: Response) -> dict[str, Any]:
    """Return what the judge says of a doc. A missing verdict is null, with the reason."""
    judge = _judge()
    inquiries = {
        "short": short_inquiry(doc["question"], parsed.answer, doc["answer"]),
        # a response without an answer is wrong, whatever else is in it
        "full": full_inquiry(doc["question"], own if parsed.answer.strip() else "", doc["full_answer"]),
    }
    if doc["variant"] == "selfheal":
        inquiries["healed"] = heal_inquiry(doc["prefix"], doc["corrections"], parsed.reasoning)
    verdicts = {name: judge.ask(inquiry)[0] for name, inquiry in inquiries.items()}
    why = {
        name: {key: text for key, text in (("reason", one.reason), ("error", one.error)) if text}
        for name, one in verdicts.items()
    }
    return {**{name: one.value for name, one in verdicts.items()}, "judge": {"model": judge_model(), **why}}


def _judge() -> Judge:
    """Return the judge of this process, with its cache and its count of failures."""
    # part of the key: another server is another judge
    server = tuple(os.environ.get(name, "") for name in ("OPENAI_API_URL", "OPENAI_API_KEY"))
    with _one_judge:
        return _judge_of(JudgeSettings.from_env(os.environ), server)


_one_judge = threading.Lock()
"""Scorers run in several threads, and must share one judge."""


@functools.lru_cache(maxsize=4)
def _judge_of(settings: JudgeSettings, server: tuple[str, ...]) -> Judge:
    return Judge(settings)


# --- the numbers ----------------------------------------------------------------------------------


def mean(items: list[Any]) -> float | None:
    """Return the mean of the counting items; None where no item counts."""
    known = [float(one) for one in items if one is not None]
    return math.fsum(known) / len(known) if known else None


def _ratio(items: list[Any], **weights: int) -> float | None:
    """Return 2 TP by twice TP plus weighted errors, of the sums over the counting items; None where that is 0 by 0."""
    hits = 2 * sum(one["tp"] for one in items if one is not None)
    errors = sum(weight * one[key] for one in items if one is not None for key, weight in weights.items())
    return hits / (hits + errors) if hits + errors else None


def micro_precision(items: list[Any]) -> float | None:
    """Compute TP / (TP + FP) of the sums over docs (paper, 4.1)."""
    return _ratio(items, fp=2)


def micro_recall(items: list[Any]) -> float | None:
    """Compute TP / (TP + FN) of the sums over docs (paper, 4.1)."""
    return _ratio(items, fn=2)


def micro_f1(items: list[Any]) -> float | None:
    """Compute 2 TP / (2 TP + FP + FN) of the sums over docs (paper, 4.1)."""
    return _ratio(items, fp=1, fn=1)


def unbound(items: list[Any]) -> None:
    """Do nothing: keep a place in the task file for the aggregation that ``bind`` puts there."""


def details(task: str, about: Mapping[str, Any], every: Sequence[results.Record]) -> Details:
    """Return all numbers of a task, with all that its table is to say."""
    models = {record.judge["model"] for record in results.answered(every) if record.judge}
    shown = ("variant", "dataset", "seed", "examples", "prefill", "pixels", "prompts", "left_out")
    magic = {**{key: about[key] for key in shown if key in about}, "judge": min(models, default=None)}
    if models:
        judge = _judge()
        magic["judged_by"] = judge.described()
        counted = ", ".join(f"{n} {what}" for what, n in judge.counts.items())
        log().info("{}: judge {}, in this process so far: {}", task, min(models), counted)
    found = numbers_of(every, magic)
    for line in found.warnings:
        log().warning("{}: {}", task, line)
    # sorted, since several ranks bring the docs in another order than one
    asked = sorted((record.id, record.asked["doc"], record.asked["prompt"]) for record in every)
    out = Details({"records": len(every), **{name: one.value for name, one in found.numbers.items()}})
    out.computed = Computed(magic=found)
    out.about = {
        "metrics": {name: results.higher_is_better(name, found.variant) for name in found.numbers},
        "made": Made(
            **compat.versions(),  # type: ignore[arg-type] # both are texts
            docs=digest((name, doc) for name, doc, _ in asked),
            prompts=digest([[about.get("prefill", ""), *((name, text) for name, _, text in asked)]]),
        ),
        "magic": {**magic, "metric": found.metric},
    }
    out.frame = functools.partial(rows.frame_of, every)
    return out
