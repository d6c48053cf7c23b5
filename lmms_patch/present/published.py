"""Results in the forms that other sites read: Every Eval Ever's schema, and the Hub's ``.eval_results/*.yaml``. Pure.

A number that is not defined (near chance, ...) is left out: neither form has a place for a reason. Words that stand
beside a number (``contradicted``, ``assumed null``, ...) go with it. So does what failed calls make of it: our numbers
leave these docs out, and a reader who knows the benchmark's metric expects them to count as wrong answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lmms_patch import __version__
from lmms_patch.present.board.model_index import SOURCE, URL
from lmms_patch.present.findings import case
from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.measures import full_marks
from lmms_patch.runs.results import IMPORTED
from lmms_patch.runs.run import Result, Run, split_of
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import clean

EVERY_EVAL_EVER = "0.3.0"
"""The version of Every Eval Ever's schema that is written."""
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")


def every_eval_ever(
    run: Run, results: Iterable[Result], *, organization: str, relationship: str, retrieved: int
) -> dict[str, Any]:
    """Return a run's results as an evaluation log of Every Eval Ever (https://github.com/evaleval/every_eval_ever).

    Args:
        run: the run.
        results: those of its results that are wanted.
        organization: who ran the evaluation.
        relationship: of that organization to the model; one of ``RELATIONSHIPS``.
        retrieved: when the log is made, in seconds since 1970.
    """
    results = list(results)
    model = clean(run.model or run.adapter or "unknown")
    about = {"adapter": run.adapter, "model_args": run.model_args}
    entries = [entry for result in results for entry in _eee_entries(result)]
    versions = sorted({str(version) for result in results if (version := result.made.lmms_eval)})
    return {
        "schema_version": EVERY_EVAL_EVER,
        "evaluation_id": f"{SOURCE}/{model}/{retrieved}",
        "evaluation_timestamp": _day(run.date),
        "retrieved_timestamp": str(retrieved),
        "source_metadata": {
            "source_name": SOURCE,
            "source_type": "evaluation_run",
            "source_organization_name": clean(organization),
            "evaluator_relationship": relationship,
        },
        "eval_library": {
            "name": _harness(run),
            "version": clean(versions[0]) if len(versions) == 1 else "unknown",
            "additional_details": {"plugin": f"{SOURCE} {__version__}"},
        },
        "model_info": {
            "name": model,
            "id": model,
            **({"developer": model.partition("/")[0]} if "/" in model else {}),
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                **{name: clean(value) for name, value in about.items() if value},
            },
        },
        "evaluation_results": entries,
    }


def _eee_entries(result: Result) -> Iterator[dict[str, Any]]:
    """Yield the numbers of a result as entries of ``evaluation_results``."""
    top = full_marks(result.analysis, result.described["options"].get("scale"))
    metric, rows = result.metric, catalogue.keyed(result.kind, result.grids)
    for name, one in result.measures.items():
        # ``score`` and ``fip`` repeat the primary metric.
        if one.value is None or name in ("score", "fip"):
            continue
        of_scores = name == metric or name.startswith("mpp")
        words = rows[name][0].words if name in rows else ""
        # null in this schema means that the end is not known.
        low, high = (
            ("-Infinity", None if words == "corrected" else 1.0)
            if words
            else (0.0, top)
            if of_scores and top
            else (None, None)
        )
        said = "; ".join(filter(None, (*reading.words(one), _of_failures(result, name))))
        yield {
            "evaluation_result_id": clean(f"{result.label}/{name}"),
            "evaluation_name": clean(result.label),
            "source_data": _eee_source(result),
            "metric_config": {
                "metric_id": clean(name if name == metric else f"{SOURCE}.{name}"),
                "metric_name": clean(name),
                "evaluation_description": _meaning(result, name, words),
                "lower_is_better": of_scores and not result.higher_is_better,
                "score_type": "continuous",
                "min_score": low,
                "max_score": high,
            },
            "score_details": {
                "score": float(one.value),
                "details": {"docs": str(one.n), **({"note": said} if said else {}), **_settings(result)},
                **_eee_uncertainty(one),
            },
        }


def _eee_uncertainty(one: Estimate) -> dict[str, Any]:
    """Return the standard error and interval of a number; empty without both."""
    out: dict[str, Any] = {}
    if one.se is not None:
        out["standard_error"] = {"value": one.se, "method": "bootstrap"}
    if one.low is not None and one.high is not None:
        out["confidence_interval"] = {"lower": one.low, "upper": one.high, "confidence_level": one.level}
    if out:
        out |= {"num_samples": one.n, **({"num_bootstrap_samples": one.draws} if one.draws else {})}
    return {"uncertainty": out} if out else {}


def _eee_source(result: Result) -> dict[str, Any]:
    """Return the dataset of a result under Every Eval Ever's keys."""
    base = clean(result.base)
    if result.hub is None:
        return {"dataset_name": base, "source_type": "other"}
    split = split_of(result.run.configs[result.task])
    return {
        "dataset_name": base,
        "source_type": "hf_dataset",
        "hf_repo": clean(result.hub),
        **({"hf_split": clean(split)} if split else {}),
        "samples_number": result.docs,
    }


def eval_results(run: Run, results: Iterable[Result]) -> tuple[list[Any], list[str]]:
    """Return results as entries of the Hub's ``.eval_results/*.yaml``, and the tasks whose data are not on the Hub.

    Each result gives the native metric on full images under the base task's name, and each index that people should go
    by under the wrapped task's name with the grid.

    Args:
        run: the run.
        results: those of its results that are wanted.
    """
    from huggingface_hub import EvalResultEntry

    out: dict[tuple[str, str, str], Any] = {}
    away = []
    for result in results:
        if result.hub is None:
            away.append(result.label)
            continue
        common: dict[str, Any] = {
            "dataset_id": clean(result.hub),
            "dataset_revision": clean(result.revision) if result.revision else None,
            "date": _day(run.date) or None,
            "source_url": URL,
            "source_name": SOURCE,
        }
        for name, task, one in _for_hub(result):
            notes = [
                f"{name} of {result.label}",
                *reading.words(one),
                f"{one.n} docs",
                *(f"{key} {said}" for key, said in _settings(result).items()),
            ]
            notes.insert(1, _of_failures(result, name))
            if one.low is not None and one.high is not None:
                notes.insert(1, f"{one.level:.0%} interval {one.low:.3f} to {one.high:.3f}")
            notes = [note for note in notes if note]
            entry = EvalResultEntry(task_id=clean(task), value=one.value, notes=clean(", ".join(notes), 400), **common)
            out.setdefault((entry.dataset_id, task, result.filter), entry)
    return list(out.values()), away


def _for_hub(result: Result) -> Iterator[tuple[str, str, Estimate]]:
    """Yield the numbers of a result for the Hub: name, id of the task, estimate."""
    base, metric = result.base, result.metric
    score = result.measures["score"]
    # The metric's own number is of a single order, while ``score`` may be of every order.
    native = result.measures.get(metric, score)
    if result.kind.full and native.value is not None:
        yield metric, base, native
    one = case(result)
    for n in one.grids:
        index = one.index(n)
        if index.value is not None:
            yield f"{result.kind.index}{n}", f"{base}_{result.kind.index}{n}", index
    if not result.kind.full and not one.grids and score.value is not None:
        yield metric, result.task, score


def _meaning(result: Result, name: str, index: str) -> str:
    """Describe a number in a few words; for an index, say whether ``raw`` or ``corrected``."""
    if name == result.metric:
        return (
            f"{clean(name)}, {_harness(result.run)}'s own metric"
            if result.kind.full
            else f"{clean(name)} of a {result.kind.name} run"
        )
    words = {"chance": "what an uninformed answer scores", "ceiling": "what the gold answers score"}
    starts = {
        "mpp": "the metric where each doc keeps the answer of its best cell",
        "gap": "the metric on full images minus that on best cells",
    }
    if index:
        less = (
            "luck-corrected: both less what answers to wrong images or other docs' golds earn; "
            if index == "corrected"
            else ""
        )
        return f"{less}1 - (metric on best cells / metric on full images): how much of the image the answers need; neither high nor low is better"
    return words.get(name) or next(
        (said for start, said in starts.items() if name.startswith(start)), f"{clean(name)} of lmms-patch"
    )


def _harness(run: Run) -> str:
    """Return the name of the program behind the run: lmms-eval or VLMEvalKit."""
    return "VLMEvalKit" if run.adapter == IMPORTED else "lmms-eval"


def _of_failures(result: Result, name: str) -> str:
    """Say what a number makes of failed calls, and what the native metric is with these docs.

    "" where no call failed.
    """
    failed, metric = result.analysis.failed if result.analysis else None, result.metric
    if failed is None:
        lost = result.magic.counts.get("failed") if result.magic else None
        return f"{lost} of {result.docs} docs have a failed call and are left out" if lost else ""
    ours = name not in result.stored.higher_is_better or (name == metric and not result.kind.every_order)
    if not ours and failed.first:
        return f"counts {failed.first} failed calls as wrong answers"
    said = f"{failed.docs} of {result.docs} docs have a failed call and are left out of what needs it"
    native = result.metrics.get(metric)
    if name != metric or native is None or not failed.first or reading.is_sampled(result.analysis):
        return said
    return f"the value leaves out {failed.first} of {result.docs} docs, whose call failed; with these as wrong answers it is {native:.4g}"


def _settings(result: Result) -> dict[str, str]:
    """Return the settings needed to read a single number: docs, number of examples, filter pipeline."""
    known: Mapping[str, Any] = result.fingerprint
    return {
        key: clean(known[key])
        for key in ("limit", "few-shot", "filter")
        if known.get(key) not in (None, "all", 0, "none")
    }


def _day(date: str) -> str:
    """Return the day of a run in ISO 8601; empty for a date in another form than the harness's."""
    found = re.match(r"(\d{4})-?(\d{2})-?(\d{2})", date)
    return "-".join(found.groups()) if found else ""


def json_text(log: Mapping[str, Any]) -> str:
    """Return an evaluation log as the text of its file."""
    return json.dumps(log, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
