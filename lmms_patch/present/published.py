"""Results in the forms that other sites read: Every Eval Ever's schema, and the Hub's ``.eval_results/*.yaml``. Pure.

A number that is not defined (near chance, ...) is left out: neither form has a place for a reason. Words that stand
beside a number (``contradicted``, ...) go with it. So does what failed calls make of it: our numbers leave these docs
out, and a reader who knows the benchmark's metric expects them to count as wrong answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lmms_patch import __version__
from lmms_patch.present.findings import case
from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.run import Result, Run
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import clean

SOURCE, URL = "lmms-patch", "https://pypi.org/project/lmms-patch/"
EVERY_EVAL_EVER = "0.3.0"
"""The version of Every Eval Ever's schema that is written."""
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")


def every_eval_ever(
    run: Run, results: Sequence[Result], *, organization: str, relationship: str, retrieved: int
) -> dict[str, Any]:
    """Return a run's results as an evaluation log of Every Eval Ever (https://github.com/evaleval/every_eval_ever).

    Args:
        run: the run.
        results: those of its results that are wanted.
        organization: who ran the evaluation.
        relationship: of that organization to the model; one of ``RELATIONSHIPS``.
        retrieved: when the log is made, in seconds since 1970.
    """
    model = clean(run.model or run.adapter or "unknown")
    versions = sorted({str(version) for result in results if (version := result.made.lmms_eval)})
    about = {"adapter": clean(run.adapter), "model_args": clean(run.model_args)}
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
            "name": "lmms-eval",
            "version": clean(versions[0]) if len(versions) == 1 else "unknown",
            "additional_details": {"plugin": f"{SOURCE} {__version__}"},
        },
        "model_info": {
            "name": model,
            "id": model,
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown", **about},
        },
        "evaluation_results": [
            _entry(result, name, one)
            for result in results
            for name, one in result.measures.items()
            # ``score`` and ``fip`` repeat the primary metric
            if one.value is not None and name not in ("score", "fip")
        ],
    }


def _entry(result: Result, name: str, one: Estimate) -> dict[str, Any]:
    """Return a number as an entry of ``evaluation_results``."""
    rows = catalogue.keyed(result.kind, result.grids)
    of_scores = name == result.metric or name.startswith("mpp")
    note = "; ".join((*reading.words(one), *_of_failures(result, name)))
    split = None if result.about.host.split == "none" else result.about.host.split
    data = {"source_type": "hf_dataset", "hf_repo": clean(result.hub or ""), "samples_number": result.docs}
    uncertainty: dict[str, Any] = {"num_samples": one.n}
    if one.se is not None:
        uncertainty["standard_error"] = {"value": one.se, "method": "bootstrap"}
    if one.low is not None and one.high is not None:
        uncertainty["confidence_interval"] = {"lower": one.low, "upper": one.high, "confidence_level": one.level}
    return {
        "evaluation_result_id": clean(f"{result.label}/{name}"),
        "evaluation_name": clean(result.label),
        "source_data": {
            "dataset_name": clean(result.base),
            **({**data, **({"hf_split": clean(split)} if split else {})} if result.hub else {"source_type": "other"}),
        },
        "metric_config": {
            "metric_id": clean(name if name == result.metric else f"{SOURCE}.{name}"),
            "metric_name": clean(name),
            "evaluation_description": rows[name][0].help if name in rows else f"{clean(name)} of {clean(result.label)}",
            "lower_is_better": of_scores and not result.higher_is_better,
            "score_type": "continuous",
            # null in this schema means that the end is not known
            "min_score": None,
            "max_score": None,
        },
        "score_details": {
            "score": one.value,
            "details": {"docs": str(one.n), **({"note": note} if note else {}), **_settings(result)},
            **({"uncertainty": uncertainty} if len(uncertainty) > 1 else {}),
        },
    }


def eval_results(run: Run, results: Iterable[Result]) -> tuple[list[Any], list[str]]:
    """Return results as entries of the Hub's ``.eval_results/*.yaml``, and the tasks whose data are not on the Hub.

    Each result gives the native metric on full images under the base task's name, and each index that people should go
    by under the wrapped task's name with the grid.
    """
    from huggingface_hub import EvalResultEntry

    out: dict[tuple[str, str, str], Any] = {}
    away = []
    for result in results:
        if result.hub is None:
            away.append(result.label)
            continue
        for name, task, one in _for_hub(result):
            level = one.level
            ends = [] if one.low is None else [f"{level:.0%} interval {one.low:.3f} to {one.high:.3f}"]
            notes = [
                f"{name} of {result.label}",
                *ends,
                *_of_failures(result, name),
                *reading.words(one),
                f"{one.n} docs",
            ]
            notes += [f"{key} {said}" for key, said in _settings(result).items()]
            entry = EvalResultEntry(
                dataset_id=clean(result.hub),
                task_id=clean(task),
                value=one.value,
                dataset_revision=clean(result.revision) if result.revision else None,
                date=_day(run.date) or None,
                source_url=URL,
                source_name=SOURCE,
                notes=clean(", ".join(notes), 400),
            )
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
        name, index = f"{result.kind.index}{n}", one.index(n)
        steady = index is one.measures.get(f"{name}_steady")
        if index.value is not None:
            yield f"{name}{'_steady' * steady}", f"{base}_{name}", index
    if not result.kind.full and not one.grids and score.value is not None:
        yield metric, result.task, score


def _of_failures(result: Result, name: str) -> list[str]:
    """Say what a number makes of failed calls, and what the native metric is with these docs; nothing where none failed."""
    failed, metric = result.analysis.failed if result.analysis else None, result.metric
    if failed is None:
        lost = result.magic.counts.get("failed") if result.magic else None
        return [f"{lost} of {result.docs} docs have a failed call and are left out"] if lost else []
    ours = name not in result.about.metrics or name == metric
    if not ours and failed.first:
        return [f"counts {failed.first} failed calls as wrong answers"]
    native = result.native.values.get(metric)
    if name != metric or native is None or not failed.first or reading.is_sampled(result.analysis):
        return [f"{failed.docs} of {result.docs} docs have a failed call and are left out of what needs it"]
    return [
        f"the value leaves out {failed.first} of {result.docs} docs, whose call failed; with these as wrong answers it is {native:.4g}"
    ]


def _settings(result: Result) -> dict[str, str]:
    """Return the settings needed to read a single number: docs, number of examples, filter pipeline."""
    known = result.fingerprint
    return {
        key: clean(known[key])
        for key in ("limit", "few-shot", "filter")
        if known.get(key) not in (None, "all", 0, "none")
    }


def _day(date: str) -> str:
    """Return the day of a run in ISO 8601; empty for a date in another form than the harness's."""
    found = re.match(r"(\d{4})-?(\d{2})-?(\d{2})", date)
    return "-".join(found.groups()) if found else ""


def json_text(made: dict[str, Any]) -> str:
    """Return an evaluation log as the text of its file."""
    return json.dumps(made, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
