"""Says where a value is not of the types that a schema gives it: readers refuse such a file before a number is taken from it.

What a schema requires, forbids besides, or demands of a text's form is not checked here: files of earlier versions lack keys, those of later
ones have more, and each reader knows which it cannot do without.
"""

from __future__ import annotations

import functools
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lmms_patch.runs.schemas import load
from lmms_patch.stats.bounds import is_number, is_whole

Fault = tuple[str, str]
"""Where (a path from the value) and what it must be."""
Check = Callable[[Any], Fault | None]

WHOLE = 2**63 - 1
"""The largest whole number that an array holds."""
_WORDS = {
    "null": "null",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a finite number",
    "string": "a text",
    "object": "an object",
    "array": "a list",
}


def fault(name: str, value: Any, where: str = "") -> str:
    """Say what is wrong with a value by the schema of this name; empty where nothing is.

    Args:
        name: of the schema.
        value: as read from JSON.
        where: the value's own place, which stands before the path of what is wrong.
    """
    found = _check_of(name)(value)
    return "" if found is None else f"{(where + found[0]).removeprefix('.') or 'it'} must be {found[1]}"


def shown(value: Any) -> str:
    """What a value is, in a few words that fit in a line."""
    if isinstance(value, (Mapping, Sequence)) and not isinstance(value, str):
        return "an object" if isinstance(value, Mapping) else "a list"
    if type(value) is int and abs(value) > WHOLE:
        return "a number that is too large"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else reprlib.repr(value)


@functools.cache
def _check_of(name: str) -> Check:
    schema = load(name)
    return _compiled(schema, schema, {})


def _compiled(schema: Mapping[str, Any], top: Mapping[str, Any], known: dict[str, Check]) -> Check:
    """A schema as a function; ``known`` has those of the parts that are referred to."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in known:
            known[name] = lambda value: known[name](value)  # for a part that has itself in it
            known[name] = _compiled(top["$defs"][name], top, known)
        return known[name]
    if "anyOf" in schema:
        return _any_of([_compiled(one, top, known) for one in schema["anyOf"]])
    if "const" in schema or "enum" in schema:
        return _one_of(schema["enum"] if "enum" in schema else [schema["const"]])
    if "type" not in schema:
        return lambda value: None
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return _of_types(types, schema, _inner(schema, top, known))


def _any_of(checks: Sequence[Check]) -> Check:
    def check(value: Any) -> Fault | None:
        found = [one(value) for one in checks]
        if None in found:
            return None
        inside = [one for one in found if one is not None and one[0]]
        return inside[0] if inside else ("", " or ".join(one[1].partition(", not ")[0] for one in found if one is not None) + f", not {shown(value)}")

    return check


def _one_of(allowed: Sequence[Any]) -> Check:
    words = ", ".join(shown(one) for one in allowed)

    def check(value: Any) -> Fault | None:
        if any(value is one or (type(value) is type(one) and value == one) for one in allowed):
            return None
        return "", f"{'one of ' if len(allowed) > 1 else ''}{words}, not {shown(value)}"

    return check


def _of_types(types: Sequence[str], schema: Mapping[str, Any], inner: Check | None) -> Check:
    """The check of a value's own type and range, and then of what is in it."""
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    below = "below " if "exclusiveMaximum" in schema else ""
    ends = f" from {low} to {below}{high}" if low is not None and high is not None else f" of at least {low}" if low is not None else ""
    words = " or ".join(_WORDS[one] for one in types) + ends

    def in_range(value: float) -> bool:
        open_low, open_high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        return (
            (low is None or value >= low)
            and (high is None or value <= high)
            and (open_low is None or value > open_low)
            and (open_high is None or value < open_high)
        )

    def is_one(value: Any) -> bool:
        if value is None or isinstance(value, bool):
            return ("null" if value is None else "boolean") in types
        if isinstance(value, str):
            return "string" in types
        if isinstance(value, dict):
            return "object" in types
        if isinstance(value, list):
            return "array" in types
        return (("integer" in types and is_whole(value, -WHOLE, WHOLE)) or ("number" in types and is_number(value))) and in_range(value)

    def check(value: Any) -> Fault | None:
        if not is_one(value):
            return "", f"{words}, not {shown(value)}"
        return inner(value) if inner is not None and isinstance(value, (dict, list)) else None

    return check


def _inner(schema: Mapping[str, Any], top: Mapping[str, Any], known: dict[str, Check]) -> Check | None:
    """The check of the values in an object or a list; None where the schema says nothing of them."""
    properties = {key: _compiled(one, top, known) for key, one in schema.get("properties", {}).items()}
    others = schema.get("additionalProperties")
    rest = _compiled(others, top, known) if isinstance(others, Mapping) else None
    items = _compiled(schema["items"], top, known) if isinstance(schema.get("items"), Mapping) else None
    least, most = schema.get("minItems", 0), schema.get("maxItems", WHOLE)
    if not (properties or rest or items or least or most < WHOLE):
        return None

    def check(value: Any) -> Fault | None:
        places: Iterable[tuple[str, Check | None, Any]]
        if isinstance(value, list):
            if not least <= len(value) <= most:
                return "", f"a list of {least if least == most else f'at least {least}'}, not of {len(value)}"
            places = ((f"[{i}]", items, one) for i, one in enumerate(value))
        else:
            places = ((f".{_key(key)}", properties.get(key, rest), one) for key, one in value.items())
        for place, of, one in places:
            found = of(one) if of is not None else None
            if found is not None:
                return place + found[0], found[1]
        return None

    return check


def _key(key: str) -> str:
    """A key in a path: as it is where it is a plain name."""
    return key if re.fullmatch(r"[\w-]{1,60}", key, re.ASCII) else reprlib.repr(key)
