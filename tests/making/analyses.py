"""Analyses with the numbers that a test names, and nothing in the place of all others."""

import dataclasses
import functools
import types
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import structs

from lmms_patch.ask.spec import parse
from lmms_patch.runs.numbers import Analysis
from lmms_patch.runs.run import Labelled
from lmms_patch.runs.typed import convert
from tests.making.results import result


def analysis(known: Mapping[str, Any]) -> Analysis:
    """Return an analysis with some numbers, given in plain JSON types."""
    return convert(completed(Analysis, known), Analysis)


def labelled(
    task: str, metrics: Mapping[str, Any], known: Mapping[str, Any] | None = None, name: str = "", metric: str = "acc"
) -> Labelled:
    """Return a task of a run with some of the harness's own numbers, and some of an analysis."""
    spec = parse(task)
    details = {} if known is None else {"analysis": completed(Analysis, known)}
    docs = metrics.get("records", 0)
    found = result("", spec.base, spec.kind.name, spec.grids, task, metric, values=metrics, docs=docs, **details)
    drops = {name.partition("_")[2]: value for name, value in metrics.items() if "_drop" in name}
    found = replace(found, given=replace(found.computed, drops=drops))
    asked = {**spec.described(), "metric": metric}
    found = replace(found, about=structs.replace(found.about, asked=asked))
    return Labelled(found, "model", name or task)


def completed(kind: type, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of an analysis in plain JSON types: what is known of it, and in the place of all that a file must have nothing."""
    hints = _hints(kind)
    wanted = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    found = {name: _completed(wanted[name], value) if name in wanted else value for name, value in known.items()}
    needed = (
        f.name
        for f in dataclasses.fields(kind)
        if f.default is f.default_factory is dataclasses.MISSING and f.name not in found
    )
    return {**found, **{name: _nothing(wanted[name]) for name in needed}}


_hints = functools.cache(get_type_hints)


def _completed(hint: Any, value: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return value if value is None else _completed(get_args(hint)[0], value)
    if dataclasses.is_dataclass(hint):
        return completed(hint, value)
    if isinstance(value, Mapping) and get_args(hint):
        return {str(key): _completed(get_args(hint)[1], inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)) and get_args(hint):
        return [_completed(get_args(hint)[0], inner) for inner in value]
    return value


def _nothing(hint: Any) -> Any:
    if type(None) in get_args(hint):
        return None
    if dataclasses.is_dataclass(hint):
        return completed(hint, {})
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    return {Mapping: {}, tuple: []}.get(
        get_origin(hint), hint() if isinstance(hint, type) and get_origin(hint) is None else None
    )
