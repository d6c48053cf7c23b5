"""What a user can get wrong: one line each, saying what was wrong, what is allowed, what to type."""

from __future__ import annotations

import difflib
import importlib.util
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel, WrapValidator

    M = TypeVar("M", bound=BaseModel)

OTHER_VERSION = "written by another version of lmms-patch; run it again, or read it with that version"
"""What is said of a file of another schema."""
MOST_FAULTS = 5
"""Faults of one file that a line names."""


class PatchError(Exception):
    """A user's mistake, or an input we refuse. The message is one line, without a traceback."""


def message(error: Exception) -> str:
    """Return an error's message; for an error not meant for people, its type too."""
    return str(error) if isinstance(error, PatchError) else f"{type(error).__name__}: {error}"


class UnknownNameError(PatchError):
    """A wrapped name that cannot be read, or whose base does not exist."""


class OptionError(PatchError):
    """An option that is unknown, or has a value that is not allowed."""


class CannotWrapError(PatchError):
    """A base task that a view kind cannot be applied to, with the reason."""


class HostError(PatchError):
    """The installed lmms-eval is not as expected."""


class RecordError(PatchError):
    """A run's files cannot be read: truncated, of another schema, or not ours."""


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the known names that look most like ``name``, in any case of letters, best first (at most ``count``).

    None for a name so long that comparing would take minutes.
    """
    lower = {one.lower(): one for one in known}
    return (
        []
        if len(name) > 200
        else [lower[close] for close in difflib.get_close_matches(name.lower(), lower, n=count, cutoff=0.6)]
    )


EXTRAS = {
    "lora": ("peft",),
    "magic": ("cv2",),
    "report": ("altair", "vl_convert"),
    "tst": ("lightgbm", "sklearn"),
}
"""The modules that each optional part imports, by the name of the part in ``pip install 'lmms-patch[...]'``."""


def require(extra: str) -> None:
    """Check that the modules of an optional part are installed.

    Args:
        extra: the part, of ``EXTRAS``.

    Raises:
        PatchError: a module is missing; the message says what to type.
    """
    for module in EXTRAS[extra]:
        if importlib.util.find_spec(module) is None:
            raise PatchError(f"{module} is not installed; type: pip install 'lmms-patch[{extra}]'")


# --- faults of a pydantic model -------------------------------------------------------------------
# pydantic is imported inside functions: nearly every module imports this one for its errors, and few read a model.


@dataclass(frozen=True)
class _Must:
    """The validator of a field, and what it says of every fault."""

    what: str

    def __call__(self, value: Any, check: Any) -> Any:
        from pydantic import ValidationError
        from pydantic_core import PydanticCustomError

        try:
            return check(value)
        except ValidationError:
            raise PydanticCustomError(
                "must", "must be {what}, not {given}", {"what": self.what, "given": shown(value)}
            ) from None


def must(what: str) -> WrapValidator:
    """Return a validator that words every fault of a field as "<field> must be ``what``, not <value>"."""
    from pydantic import WrapValidator

    return WrapValidator(_Must(what))


def read_as(model: type[M], data: Any, where: str, refuse: type[PatchError] = OptionError) -> M:
    """Return ``data`` as an object of a pydantic model.

    Args:
        model: its fields say what is allowed; unknown keys are faults where its config says ``extra="forbid"``.
        data: what a file holds.
        where: the file or option, as users know it.
        refuse: the error to raise.

    Raises:
        PatchError: ``refuse``, with all faults in one line.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False)
    raise refuse(listed(where, [_fault(one, model, data) for one in found]))


def listed(where: str, faults: Sequence[str]) -> str:
    """Return the faults of one file as a line."""
    if len(faults) == 1:
        return f"{where}: {faults[0]}"
    more = f"; and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
    return f"{where}: {len(faults)} faults: {'; '.join(f'({number}) {one}' for number, one in enumerate(faults[:MOST_FAULTS], 1))}{more}"


def shown(value: Any) -> str:
    """Return a value as a message can hold it: short, and with None as "nothing"."""
    try:
        return "nothing" if value is None else reprlib.repr(value)
    except ValueError:  # Python prints no whole number of more than 4,300 digits
        return "a number of thousands of digits"


def unknown(option: Any, known: Sequence[str]) -> str:
    """Say that there is no such option, and which are like it, or else which there are."""
    close = nearest(option, known) if isinstance(option, str) else []
    return f"unknown option {shown(option)}; " + (
        f"did you mean {' or '.join(close)}?" if close else f"allowed: {', '.join(known)}"
    )


_WORDS = {
    "bool_type": "must be true or false, not {given}",
    "literal_error": "must be {expected}, not {given}",
    "list_type": "must be a list, not {given}",
    "string_type": "must be a text, not {given}",
    "path_type": "must be a path, not {given}",
    "int_from_float": "must be a whole number, not {given}",
    "too_short": "must have at least {min_length} entry, not {given}",
}


def _fault(error: Any, model: type[BaseModel], data: Any) -> str:
    """Return one error of pydantic in our words, with its place: ``rule 'a': min must be ...``."""
    kind, value, path = error["type"], shown(error["input"]), list(error["loc"])
    unknown_key = path.pop() if kind in ("extra_forbidden", "invalid_key") else None
    places: list[str] = []
    fields, field = _fields(model), None
    for part in path:
        # a union says which of its types it tried, which is no key of the data
        is_inside = (
            isinstance(data, (list, tuple)) if isinstance(part, int) else isinstance(data, Mapping) and part in data
        )
        data = data[part] if is_inside else None
        if isinstance(part, int):  # an entry of a list is known by its name
            name = data.get("name") if isinstance(data, dict) else None
            places.append(f"{places.pop().removesuffix('s')} {shown(name) if isinstance(name, str) else part + 1}")
        else:
            places.append(part)
            field = fields.get(part)
            fields = _fields(field.annotation if field else None) or fields
    where = "".join(f"{place}: " for place in places)
    if unknown_key is not None:
        return where + unknown(unknown_key, list(fields))
    if kind == "value_error":
        return where + str(error["ctx"]["error"])
    if kind in ("model_type", "dict_type"):
        return f"{where}must be keys and values, not {value}; keys: {', '.join(fields)}"
    if kind == "missing":
        return f"{where.removesuffix(': ')} is missing" + "".join(
            f"; it must be {one.func.what}"
            for one in getattr(field, "metadata", ())
            if isinstance(getattr(one, "func", None), _Must)
        )
    if (
        kind == "literal_error"
        and isinstance(error["input"], str)
        and (close := nearest(error["input"], re.findall("'([^']+)'", error["ctx"]["expected"])))
    ):
        value += f"; did you mean {' or '.join(close)}?"
    words = _WORDS.get(kind)
    told = (
        error["msg"].replace("Input should be", "must be")
        if words is None
        else words.format(**error.get("ctx", {}), given=value)
    )
    return f"{where.removesuffix(': ')} {told}"


def _fields(annotation: Any) -> dict[str, Any]:
    """Return the fields of the pydantic model in a type, by the names that a file gives them."""
    inside = [fields for part in get_args(annotation) if (fields := _fields(part))]
    own = getattr(annotation, "model_fields", {})
    return inside[0] if inside else {field.alias or name: field for name, field in own.items()}
