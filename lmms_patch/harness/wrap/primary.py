"""Chooses the native metric that the index is built on."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness import compat
from lmms_patch.harness.wrap.scorer import own_stream

_OVER_ALL = re.compile(r"(^|[\W_])(average|overall|all)([\W_](acc|accuracy|score))*$", re.IGNORECASE)
"""What a metric over all docs is called among metrics over categories: ``average``, ``seed_all``, ``overall_accuracy``."""
_ONLY_A_FILE = "submission"
"""What lmms-eval calls a metric that writes the answers into a file and gives no number."""
_DOCS = 50
"""How many docs are scored to see which metrics every doc has."""


def primary_of(
    spec: WrapSpec, native: list[str], base: Any, rows: Callable[[], Any], *, silent: bool
) -> tuple[str, str]:
    """Return the metric behind the index, and a line on the choice; "" where there was none.

    It is the option's. Else it is the first in the task's list that its name says is over all docs; else the first that
    every doc has, as far as an empty answer tells; else the first.

    Args:
        spec: what was asked.
        native: the base's metrics, in the order of its list.
        base: the native task.
        rows: gives the docs as the host hands them to scorers.
        silent: whether the scorer must not be called, since it calls a judge or the network.

    Raises:
        CannotWrapError: there is no metric.
        OptionError: a task file names a metric that is not there.
    """
    wanted, about = spec.options.metric, ""
    if not native:
        raise CannotWrapError(f"{spec.name}: {spec.base} reports no metric")
    # under --predict_only the host leaves a single metric, whatever was asked
    if wanted is not None and native != [compat.OUTPUT_ONLY]:
        # only what a user wrote is refused; a shipped profile gives way
        if wanted not in native and "metric" in spec.options.given:
            raise OptionError(f"{spec.name}: {spec.base} has no metric {wanted!r}; allowed: {', '.join(native)}")
        if wanted in native:
            return wanted, ""
        about = f"its profile's metric {wanted!r} is not there; "
    numbers = [name for name in native if name != _ONLY_A_FILE] or native
    chosen, why = numbers[0], "the first,"
    if named := next(filter(_OVER_ALL.search, numbers), None):
        chosen, why = named, "the one over all docs by its name,"
    elif len(numbers) > 1 and not silent and (every := _of_every_doc(base, rows)) and chosen not in every:
        chosen, why = next((name for name in numbers if name in every), chosen), "the first that every doc has,"
    if len(native) > 1 and spec.sets:
        about += f"{len(native)} metrics; the index is built on {why} {chosen!r} (option 'metric' chooses another)"
    return chosen, about.removesuffix("; ")


def _of_every_doc(base: Any, rows: Callable[[], Any]) -> set[str]:
    """Return the metrics shared by docs from the whole split; empty where none of these can be scored."""
    score, of_docs = base.process_results, list[set[str]]()
    if (plain := compat.without_retries(score)) is not score:
        score = functools.partial(plain, base)
    # an unreadable doc or a faulty scorer is told when the model's answers are scored
    with contextlib.suppress(Exception):
        docs = rows()
        for doc_id in np.unique(np.linspace(0, len(docs) - 1, _DOCS).astype(int)).tolist():
            with own_stream(f"{doc_id}/metrics"):
                of_docs.append(set(score(dict(docs[doc_id]), [""])))
    return set.intersection(*of_docs) if of_docs else set()
