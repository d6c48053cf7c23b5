"""Which wrapped task a name means, beside the names that the harness knows."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import SUFFIXES, WrapSpec, parse
from lmms_patch.errors import UnknownNameError, nearest
from lmms_patch.harness.names import configs, facts

_WILD = "*?["
_BETWEEN = "_-. "


def resolve(manager: Any, name: str) -> WrapSpec | None:
    """Return the spec meant by a name; None for a name of the harness, and for a name not wrapped.

    A name that the harness knows is native, whatever it ends in, unless its file is an explicit task file of ours.

    Raises:
        PatchError: the name is ours, and its base is unknown or its grid is not possible; or it looks like a misspelled
            wrapped name.
    """
    if name in manager.all_tasks:
        # to the harness, a task file of ours is a Python class
        if manager.task_index[name]["type"] != "python_task":
            return None
        spec = configs.explicit_spec(facts.read(manager, name))
    else:
        spec = parse(name)
        if spec is None:
            refuse_misspelled(manager, name)
    if spec is not None:
        require_base(manager, spec)
    return spec


def refuse_misspelled(manager: Any, name: str) -> None:
    """Refuse names like misspelled wrapped names, such as ``gqa_rcii3`` or ``gqa-rci3``.

    Why: the harness would only log that it knows no such task, and end with status 0. What may be a file, and what
    looks more like a native name, is left to the harness.

    Raises:
        UnknownNameError: the name looks like a wrapped one; the message gives the nearest names.
    """
    if os.sep in name or name.endswith((".yaml", ".yml")) or os.path.exists(name):
        return
    close = meant(manager.all_tasks, name)
    if close:
        raise UnknownNameError(f"{name}: no such task; did you mean {' or '.join(close)}?")


def meant(known: Sequence[str], name: str) -> list[str]:
    """Return up to three wrapped names perhaps meant by a misspelled name, nearest first.

    Where a name of the harness is nearer than all of them, return none.

    Args:
        known: the names of the harness.
        name: a name that the harness does not know; its base may be a wildcard.
    """
    low, every, found = name.lower(), {one.lower(): one for one in known}, list[str]()

    def likeness(full: str) -> float:
        return difflib.SequenceMatcher(None, full.lower(), low).ratio()

    for end in range(1, len(name)):
        head, tail = low[:end], low[end:].lstrip(_BETWEEN)
        whole = head in every or (any(sign in head for sign in _WILD) and any(fnmatchcase(one, head) for one in every))
        if tail and (whole or low[end] in _BETWEEN) and (suffixes := _suffixes_like(tail)):
            bases = [every.get(head, name[:end])] if whole else nearest(head, known, count=1)
            found += [f"{base}_{suffix}" for base in bases for suffix in suffixes]
    # where a native name is at least as near, that was meant more likely
    native = max(map(likeness, nearest(name, known, count=1)), default=0.0)
    nearer = [full for full in dict.fromkeys(found) if likeness(full) > native]
    return sorted(nearer, key=likeness, reverse=True)[:3]


def _suffixes_like(tail: str) -> list[str]:
    """Return the suffixes perhaps meant by the end of a misspelled name, at most one of each kind.

    A suffix keeps the number of the name where its kind takes one. The kinds of time, such as ``trci``,
    are meant only where their first letter is there.

    >>> _suffixes_like("rcii3"), _suffixes_like("pcr"), _suffixes_like("shufle"), _suffixes_like("lite")
    (['rci3'], ['pcri'], ['shuffle3'], [])
    """
    letters, number = re.sub(r"[^a-z]", "", tail), next(iter(re.findall(r"\d+", tail)), "")
    special = {kind.name for kind in KINDS.values() if kind.needs_video}
    known = [kind for kind in SUFFIXES if kind not in special or letters.startswith(kind[0])]
    return [
        f"{kind}{next(n for n in (number, '', '3') if _is_suffix(f'{kind}{n}'))}" for kind in nearest(letters, known)
    ]


def _is_suffix(text: str) -> bool:
    try:
        return parse(f"x_{text}") is not None
    except UnknownNameError:
        return False


def require_base(manager: Any, spec: WrapSpec) -> None:
    """Refuse a spec unless its base is a native name of the harness.

    Raises:
        UnknownNameError: the base is unknown, or a wrapped task itself; the message says what to type instead.
    """
    if spec.base in manager.all_tasks:
        if manager.task_index[spec.base]["type"] == "python_task" and configs.explicit_spec(
            facts.read(manager, spec.base)
        ):
            raise UnknownNameError(
                f"{spec.name}: {spec.base!r} is a wrapped task itself; name the native task that it wraps"
            )
        return
    close = [f"{base}_{spec.suffix}" for base in nearest(spec.base, manager.all_tasks)]
    hint = f"did you mean {' or '.join(close)}?" if close else "type 'lmms-patch tasks' for what can be wrapped"
    raise UnknownNameError(f"{spec.name}: lmms-eval knows no task, group or tag {spec.base!r}; {hint}")


def expand(manager: Any, patterns: Iterable[str]) -> list[WrapSpec]:
    """Return the wrapped tasks for a list of names and wildcards, in order, each once.

    A wildcard before the suffix expands over base tasks: ``mosaic_*_rci3``. Native names, and wildcards that match
    some, are left to the harness.

    Raises:
        PatchError: a wrapped name is wrong, or a wildcard matches no base.
    """
    specs: dict[str, WrapSpec] = {}
    for pattern in patterns:
        wild = any(sign in pattern for sign in _WILD)
        # a wildcard may match task files of ours among the native names
        names = [name for name in manager.all_tasks if fnmatchcase(name, pattern)] if wild else [pattern]
        if names:
            found = (resolve(manager, name) for name in names)
            specs |= {spec.name: spec for spec in found if spec is not None}
            continue
        spec = parse(pattern)
        if spec is not None:
            bases = [
                name for name in manager.all_tasks if fnmatchcase(name, spec.base) and resolve(manager, name) is None
            ]
            if not bases:
                raise UnknownNameError(
                    f"{pattern}: no task, group or tag matches {spec.base!r}; type 'lmms-patch tasks' for what can be wrapped"
                )
            specs |= {wrapped.name: wrapped for wrapped in map(spec.of, bases)}
        else:
            refuse_misspelled(manager, pattern)
    return list(specs.values())
