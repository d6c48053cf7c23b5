"""Files as types: what a file holds is written down once, as a type.

Its JSON schema and the check of what is read follow from it.

A key's description is what its class says under ``Attributes:``. A key that we leave out where it says nothing has the
default ``UNSET``, or is of a class with ``omit_defaults``.
"""

from __future__ import annotations

import dataclasses
import json
import re
import reprlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from lmms_patch.ask.spec import Options
from lmms_patch.errors import OptionError, RecordError, shown
from lmms_patch.stats.bounds import LARGEST, MOST, Number, is_number

T = TypeVar("T")
DRAFT = "https://json-schema.org/draft/2020-12/schema"
Digest = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^[0-9a-f]{16}$"})]
"""A digest as we write it; readers only compare digests, so they take any text."""
_WORDS = (
    ("^Expected ", ""),
    (r"^(Integer value|Number) out of range$", "a finite number"),
    (rf" (>= -|<= ){re.escape(repr(LARGEST))}", ""),
    ("`int`|int", "a whole number"),
    ("float", "a finite number"),
    (r"\bstr\b", "a text"),
    (r"\bbool\b", "true or false"),
    (r"\bobject\b", "an object"),
    (r"\barray\b", "a list"),
    (r" \| ", " or "),
    ("`", ""),
)
"""What msgspec calls types, in words."""
_NUMBERS = "Expected `array` with nothing but numbers"
_OPTIONS = "Expected `object`"
_PLAIN = re.compile(r"[\w-]{1,60}", re.ASCII)
_PLACE = re.compile(r" - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`$")


class Open(msgspec.Struct):
    """A part of a file; may hold more keys than named here.

    Attributes:
        MORE: JSON schema of their values.
    """

    MORE: ClassVar[Any] = True


# --- what is read ---------------------------------------------------------------------------------


def fault(value: Any, kind: Any, where: str = "") -> str:
    """Say what is wrong with a value as a type, and where; empty where nothing is wrong.

    Args:
        value: in plain JSON types.
        kind: the type.
        where: the value's own place, which stands before the path of what is wrong.
    """
    try:
        convert(value, kind)
    except msgspec.ValidationError as error:
        return _told(str(error), value, kind, where)
    except RecursionError:
        return f"{where or 'it'} is nested too deeply"
    except UnicodeEncodeError:
        # half of a surrogate pair
        return f"{where or 'it'} must be of texts that UTF-8 can hold"
    return ""


def read_as(value: Any, kind: type[T], where: str = "") -> T:
    """Return plain JSON types as a type; ``where`` is the value's place in the file.

    Raises:
        RecordError: the value is not of this type; the message says what is wrong, and where.
    """
    try:
        return convert(value, kind)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError):
        raise RecordError(fault(value, kind, where)) from None


def known(value: T | UnsetType) -> T | None:
    """Return a value of a file; None where the file lacks its key."""
    return None if value is UNSET else value


def convert(value: Any, kind: type[T]) -> T:
    """Return plain JSON types as a type.

    Raises:
        msgspec.ValidationError: the value is not of this type.
    """
    # keys in JSON are always texts, and types of ours have numbers as keys
    return msgspec.convert(value, kind, str_keys=True, dec_hook=_other)


def _other(kind: Any, value: Any) -> Any:
    """Return a value of a type unknown to msgspec: options, or a list of numbers as an array.

    Errors name the value, not a place inside.
    """
    if kind is Options:
        try:
            return Options.of_file(value, "")
        except OptionError:
            raise ValueError(_OPTIONS) from None
    try:
        return np.asarray(msgspec.convert(value, list[Number]), float)
    except msgspec.ValidationError:
        # the place in this error is within the list; msgspec adds the place of the list to an error of another type
        raise ValueError(_NUMBERS) from None


def _told(error: str, value: Any, kind: Any, where: str) -> str:
    """Return an error of msgspec as a single line: the place, what is allowed there, and what is there."""
    matched = _PLACE.search(error)
    said, steps = (error[: matched.start()], _steps(value, kind, matched["path"], error)) if matched else (error, [])
    place = (where + "".join(map(_step, steps))).removeprefix(".") or "it"
    if match := re.fullmatch(r"Object missing required field `(.*)`", said):
        return f"{place}.{match[1]} is missing".removeprefix("it.")
    given = value
    for step in steps:
        given = given[step]
    if matched and matched["key"]:
        place, given = f"a key of {place}", _wrong_key(value, steps, given, kind, error)
    # msgspec does not say what is allowed
    if said.startswith("Invalid enum value"):
        return f"{place} must be one of {', '.join(_allowed(kind, steps))}, not {_given(given)}"
    if said == _OPTIONS and isinstance(given, Mapping):
        return _of_options(given, place)
    if said == _NUMBERS and isinstance(given, list):
        given = next((one for one in given if not is_number(one)), given)
    said = said.partition(", got ")[0]
    for words, plain in _WORDS:
        said = re.sub(words, plain, said)
    return f"{place} must be {said}, not {f'of {len(given)}' if ' of length ' in said else _given(given)}"


def _of_options(value: Any, place: str) -> str:
    """Say what is wrong with options."""
    try:
        Options.of_file(value, place)
    except OptionError as error:
        return str(error)
    return ""


def _given(value: Any) -> str:
    """Return what stands in a file, in a few words."""
    if isinstance(value, (Mapping, list)):
        return "an object" if isinstance(value, Mapping) else "a list"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else shown(value)


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return "." + (step if _PLAIN.fullmatch(step) else reprlib.repr(step))


def _steps(value: Any, kind: Any, path: str, error: str) -> list[str | int]:
    """Return the way from a value to the fault inside.

    Msgspec does not name the keys of a mapping, so they are looked for.
    """
    out: list[str | int] = []
    for step in re.findall(r"\[\d+\]|\[\.\.\.\]|[^.\[]+", path):
        if step == "[...]":
            inner = value
            for known in out:
                inner = inner[known]
            wrong = _wrong_key(value, out, inner, kind, error)
            if wrong is None:
                break
            # drop the sound keys, so that the rest of the search sees this fault alone
            value = _only(value, out, wrong)
            out.append(wrong)
        else:
            out.append(int(step[1:-1]) if step[0] == "[" else step)
    return out


def _wrong_key(value: Any, steps: list[str | int], inner: Any, kind: Any, error: str) -> str | None:
    """Return the first key of a mapping behind an error of msgspec; None where there is none.

    Args:
        value: the whole value.
        steps: the way to the mapping.
        inner: the mapping.
        kind: the type of the whole value.
        error: the error; it does not name the key. Another key may seem wrong where something after the mapping is
            wrong too, with another error.
    """
    return (
        next((key for key in inner if _error(_only(value, steps, key), kind) == error), None)
        if isinstance(inner, Mapping)
        else None
    )


def _only(value: Any, steps: list[str | int], key: str) -> Any:
    """Return a copy of a value in which the mapping at a place keeps a single key."""
    if not steps:
        return {key: value[key]}
    out = value.copy()
    out[steps[0]] = _only(value[steps[0]], steps[1:], key)
    return out


def _error(value: Any, kind: Any) -> str:
    """Return what msgspec says of a value as a type; empty where nothing is wrong."""
    try:
        convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        return str(error)
    return ""


def _allowed(kind: Any, steps: list[str | int]) -> list[str]:
    """Return the values allowed by an enumeration, by its place in a value."""
    top = msgspec.json.schema(kind, schema_hook=_of_other)
    nodes = list(_choices([top], top))
    for step in steps:
        named = (
            node.get("properties", {}).get(step)
            or node.get("items" if isinstance(step, int) else "additionalProperties")
            for node in nodes
        )
        nodes = list(_choices([node for node in named if isinstance(node, dict)], top))
    return [json.dumps(one) for node in nodes for one in node.get("enum", ())]


def _choices(nodes: list[Any], top: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the possible schemas behind some nodes, with references and ``anyOf`` resolved."""
    for node in nodes:
        if "$ref" in node:
            yield from _choices([top["$defs"][node["$ref"].rpartition("/")[2]]], top)
        elif "anyOf" in node:
            yield from _choices(node["anyOf"], top)
        else:
            yield node


# --- the schema of a type -------------------------------------------------------------------------


def schema_of(name: str, kind: Any, *, ours: bool = True) -> dict[str, Any]:
    """Return the JSON schema of a file.

    Args:
        name: of the schema.
        kind: the type of the file.
        ours: we write the file: it has all keys that have a default in the type, and no other keys. Else people write
            it.
    """
    classes = {one.__name__: one for one in _classes(kind, set())}
    by_pattern = [other for one in classes.values() for other in getattr(one, "PATTERNS", {}).values()]
    (made, *_), parts = msgspec.json.schema_components(
        [kind, *by_pattern], schema_hook=_of_other, ref_template="#/$defs/{name}"
    )
    if Options in classes.values():
        parts["Options"] = Options.json_schema()
    for part, found in parts.items():
        _finish(found, classes.get(part), ours)
    top = parts.pop(made.pop("$ref").rpartition("/")[2])
    head = {"$schema": DRAFT, "title": name, **{key: value for key, value in top.items() if key != "title"}}
    for part in parts.values():
        part.pop("title", None)
    whole: dict[str, Any] = _plain({**head, **({"$defs": dict(sorted(parts.items()))} if parts else {})})
    return whole


def _of_other(kind: Any) -> dict[str, Any]:
    """Return the schema of a type unknown to msgspec; empty for an array, whose constraint has the schema."""
    return {"$ref": "#/$defs/Options"} if kind is Options else {}


def _finish(found: dict[str, Any], kind: Any, ours: bool) -> None:
    """Give the keys in an object's schema their descriptions, and list the required keys."""
    first, _, rest = found.get("description", "").partition("Attributes:")
    if first:
        found["description"] = " ".join(first.split())
    # a line at the left edge of the list names keys; deeper lines continue the description
    for names, said in re.findall(r"^ {4,8}(\w[\w, ]*): (.*(?:\n {9,}.*)*)", rest, re.M):
        for one in names.split(", "):
            if one.rstrip("_") in found.get("properties", {}):
                inner = found["properties"][one.rstrip("_")]
                inner["description"] = " ".join(said.split())
    if "properties" not in found or kind is None:
        return
    if ours:
        omits = getattr(getattr(kind, "__struct_config__", None), "omit_defaults", False)
        late = getattr(kind, "LEFT_OUT", ())
        found["required"] = [
            key
            for key, one in found["properties"].items()
            if key in found.get("required", ()) or ("default" in one and not omits and key not in late)
        ]
        for one in found["properties"].values():
            # left out, never null
            if "default" in one and one.pop("default") is None and omits:
                one |= next(choice for choice in one.pop("anyOf", ({},)) if choice.get("type") != "null")
        found["additionalProperties"] = getattr(kind, "MORE", False)
    if patterns := getattr(kind, "PATTERNS", {}):
        found["patternProperties"] = {
            pattern: {"$ref": f"#/$defs/{other.__name__}"} for pattern, other in patterns.items()
        }
    found |= getattr(kind, "RULES", {})


def _plain(node: Any) -> Any:
    """Shorten a schema: nullable types as a list, no bounds common to all numbers, None written as null."""
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("description"), str):
        node["description"] = re.sub(
            r"\b(None|True|False)\b", lambda word: {"None": "null"}.get(word[0], word[0].lower()), node["description"]
        )
    if (
        [*node.get("anyOf", ())][1:] == [{"type": "null"}]
        and isinstance(node["anyOf"][0].get("type"), str)
        and not {"enum", "const"} & node["anyOf"][0].keys()
    ):
        first = node.pop("anyOf")[0]
        node = {**first, **node, "type": [first["type"], "null"]}
    numeric = node.get("type")
    bounds = {"minimum": -LARGEST, "maximum": LARGEST} if numeric in ("number", ["number", "null"]) else {}
    bounds = {"maximum": MOST} if numeric in ("integer", ["integer", "null"]) else bounds
    return {key: _plain(one) for key, one in node.items() if not (key in bounds and one == bounds[key])}


def _classes(kind: Any, seen: set[Any]) -> Iterator[type]:
    """Yield every class inside a type."""
    if isinstance(kind, type) and (
        kind is Options or issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)
    ):
        if kind in seen:
            return
        seen.add(kind)
        yield kind
        hints, bases = get_type_hints(kind, include_extras=True), getattr(kind, "__orig_bases__", ())
        for inner in (*hints.values(), *bases, *getattr(kind, "PATTERNS", {}).values()):
            yield from _classes(inner, seen)
    elif get_origin(kind) is not Literal:
        for inner in get_args(kind):
            yield from _classes(inner, seen)
