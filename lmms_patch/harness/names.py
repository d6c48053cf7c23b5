"""Which wrapped task a name means, against the names that the harness knows."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from lmms_patch.errors import UnknownNameError, nearest
from lmms_patch.harness import configs
from lmms_patch.spec import WrapSpec, parse

_WILD = "*?["


def resolve(manager: Any, name: str) -> WrapSpec | None:
    """The spec of a name: None where it is a name of the harness, or none of ours.

    A name that the harness knows wins as it is, whatever it ends in; unless its file is an explicit
    task file of ours.

    Raises:
        PatchError: it is ours, and its base is unknown or its grid is not possible.
    """
    if name in manager.all_tasks:
        if manager.task_index[name]["type"] != "python_task":
            return None
        spec = configs.explicit_spec(configs.read(manager, name))
    else:
        spec = parse(name)
    if spec is not None:
        require_base(manager, spec)
    return spec


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
    return list(found.values())
