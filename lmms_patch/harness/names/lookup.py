"""Which wrapped task a name means, against the names that the harness knows."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from lmms_patch.ask.spec import SUFFIXES, WrapSpec, parse
from lmms_patch.errors import UnknownNameError, nearest
from lmms_patch.harness.names import configs

_WILD = "*?["
_BETWEEN = "_-. "


def resolve(manager: Any, name: str) -> WrapSpec | None:
    """The spec of a name: None where it is a name of the harness, or none of ours.

    A name that the harness knows wins as it is, whatever it ends in; unless its file is an explicit
    task file of ours.

    Raises:
        PatchError: it is ours, and its base is unknown or its grid is not possible; or it looks more like one of ours than of the harness.
    """
    if name in manager.all_tasks:
        if manager.task_index[name]["type"] != "python_task":
            return None
        spec = configs.explicit_spec(configs.read(manager, name))
    else:
        spec = parse(name)
        if spec is None:
            refuse_misspelled(manager, name)
    if spec is not None:
        require_base(manager, spec)
    return spec


def refuse_misspelled(manager: Any, name: str) -> None:
    """Refuse a name that ends nearly as wrapped names do, such as ``gqa_rcii3`` or ``gqa-rci3``.

    The harness itself would only log that it knows no such task, and end with status 0. What looks more like one of its own names, and
    what may be a file, is left to it.

    Raises:
        UnknownNameError: with the nearest names.
    """
    if os.sep in name or name.endswith((".yaml", ".yml")) or os.path.exists(name):
        return
    found = meant(manager.all_tasks, name)
    if found:
        raise UnknownNameError(f"{name}: no such task; did you mean {' or '.join(found)}?")


def meant(known: Sequence[str], name: str) -> list[str]:
    """Return the wrapped names that a name may be a misspelling of, nearest first, at most three; none where a known name is nearer.

    Args:
        known: the names of the harness.
        name: a name that is not known; its base may be a wildcard.
    """
    low, every = name.lower(), {one.lower(): one for one in known}
    found: dict[str, float] = {}
    for end in range(1, len(name)):
        head, tail = low[:end], low[end:].lstrip(_BETWEEN)
        whole = head in every or (any(sign in head for sign in _WILD) and any(fnmatchcase(one, head) for one in every))
        if not tail or not (whole or low[end] in _BETWEEN):
            continue
        suffixes = _suffixes_like(tail)
        bases = ([every.get(head, name[:end])] if whole else nearest(head, known, count=1)) if suffixes else []
        for full in (f"{base}_{suffix}" for base in bases for suffix in suffixes):
            found[full] = difflib.SequenceMatcher(None, full.lower(), low).ratio()
    native = max((difflib.SequenceMatcher(None, one.lower(), low).ratio() for one in nearest(name, known, count=1)), default=0.0)
    return [full for full in sorted(found, key=lambda one: -found[one]) if found[full] > native][:3]


def _suffixes_like(tail: str) -> list[str]:
    """Return the suffixes that the end of a name may be meant for, one of each kind, with the number that it has where the kind takes it.

    >>> _suffixes_like("rcii3"), _suffixes_like("pcr"), _suffixes_like("shufle"), _suffixes_like("lite")
    (['rci3'], ['pcri'], ['shuffle3'], [])
    """
    letters, number = re.sub(r"[^a-z]", "", tail), next(iter(re.findall(r"\d+", tail)), "")
    return [f"{kind}{next(n for n in (number, '', '3') if _is_suffix(f'{kind}{n}'))}" for kind in nearest(letters, SUFFIXES)]


def _is_suffix(text: str) -> bool:
    try:
        return parse(f"x_{text}") is not None
    except UnknownNameError:
        return False


def require_base(manager: Any, spec: WrapSpec) -> None:
    """Check that the base of a spec is a native name of the harness.

    Raises:
        UnknownNameError: it is unknown, or wrapped itself; with what to type instead.
    """
    if spec.base in manager.all_tasks:
        if manager.task_index[spec.base]["type"] == "python_task" and configs.explicit_spec(configs.read(manager, spec.base)):
            raise UnknownNameError(f"{spec.name}: {spec.base!r} is a wrapped task itself; name the native task that it wraps")
        return
    close = [f"{base}_{spec.suffix}" for base in nearest(spec.base, manager.all_tasks)]
    hint = f"did you mean {' or '.join(close)}?" if close else "type 'lmms-patch tasks' for what can be wrapped"
    raise UnknownNameError(f"{spec.name}: lmms-eval knows no task, group or tag {spec.base!r}; {hint}")


def expand(manager: Any, patterns: Iterable[str]) -> list[WrapSpec]:
    """The wrapped tasks that a list of names and wildcards asks for, in order, each once.

    A wildcard before the suffix expands over base tasks: ``mosaic_*_rci3``. Names and wildcards
    that mean native tasks are left to the harness.

    Raises:
        PatchError: a name that is ours and wrong, or a wildcard that matches no base.
    """
    found: dict[str, WrapSpec] = {}
    for pattern in patterns:
        if not any(sign in pattern for sign in _WILD):
            spec = resolve(manager, pattern)
            if spec is not None:
                found[spec.name] = spec
            continue
        if any(fnmatchcase(name, pattern) for name in manager.all_tasks):
            found |= {spec.name: spec for name in manager.all_tasks if fnmatchcase(name, pattern) and (spec := resolve(manager, name))}
            continue
        spec = parse(pattern)
        if spec is not None:
            bases = [name for name in manager.all_tasks if fnmatchcase(name, spec.base) and resolve(manager, name) is None]
            if not bases:
                raise UnknownNameError(f"{pattern}: no task, group or tag matches {spec.base!r}; type 'lmms-patch tasks' for what can be wrapped")
            found |= {wrapped.name: wrapped for wrapped in map(spec.of, bases)}
        else:
            refuse_misspelled(manager, pattern)
    return list(found.values())
