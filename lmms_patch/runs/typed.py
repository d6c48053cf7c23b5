"""What a file holds as the type that says so: msgspec checks, and its own words say what is wrong, and where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from lmms_patch.ask.spec import Options
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.stats.bounds import Number
from lmms_patch.text import line

T = TypeVar("T")
_WORDS = (("Expected ", "must be "), (", got ", ", not "), ("Invalid enum value", "must not be"))
"""What msgspec says, and what we say in its place."""
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def convert(value: Any, kind: type[T]) -> T:
    """Return plain JSON types as a type.

    Raises:
        msgspec.ValidationError: the value is not of this type.
    """
    # keys in JSON are always texts, and types of ours have numbers as keys
    return msgspec.convert(value, kind, str_keys=True, dec_hook=_other)


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
        said, _, path = str(error).partition(" - at `$")
        for msgspecs, ours in _WORDS:
            said = said.replace(msgspecs, ours)
        allowed = ", ".join(map(repr, _choices(kind, path)))
        rest = f"; allowed: {allowed}" if "enum" in str(error) and allowed else ""
        return f"{(where + path.rstrip('`')).lstrip('.') or 'it'} {line(said, 200)}{rest}"
    except RecursionError:
        return f"{where or 'it'} is nested too deeply"
    except UnicodeEncodeError:
        # half of a surrogate pair
        return f"{where or 'it'} must be of texts that UTF-8 can hold"
    return ""


def _choices(kind: Any, path: str) -> Iterator[Any]:
    """Yield the values that a type allows at a path, where it lists them."""
    for name in re.findall(r"[a-z_]\w*", path):
        kind = get_type_hints(kind).get(name) if hasattr(kind, "__struct_fields__") else None
    if get_origin(kind) is Literal:
        yield from get_args(kind)
    for inner in get_args(kind) if get_origin(kind) is not Literal else ():
        yield from _choices(inner, "")


def read_as(value: Any, kind: type[T], where: str = "") -> T:
    """Return plain JSON types as a type; ``where`` is the value's place in the file.

    Raises:
        RecordError: the value is not of this type; the message says what is wrong, and where.
    """
    try:
        return convert(value, kind)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError):
        raise RecordError(fault(value, kind, where)) from None


def schema_of(name: str, kind: Any) -> Mapping[str, Any]:
    """Return the JSON schema of a file that people write."""
    return {"$schema": DRAFT, "title": name, **msgspec.json.schema(kind)}


def _other(kind: Any, value: Any) -> Any:
    """Return a value of a type unknown to msgspec: options, or a list of numbers as an array."""
    if kind is Options:
        try:
            return Options.of_file(value, "")
        except OptionError as error:
            raise ValueError(str(error)) from None
    return np.asarray(msgspec.convert(value, list[Number]), float)
