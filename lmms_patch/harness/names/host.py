"""The functions of lmms-eval that we replace and call, read from the source of the installed host: nothing of it is imported, which takes seconds."""

from __future__ import annotations

import ast

from lmms_patch.harness import compat
from lmms_patch.harness.names.effects import file_of, parse


def at_odds() -> list[str]:
    """Return how the installed host differs from the functions we replace and call (``compat``), a few words each."""
    said = [
        compat.function_at_odds(owner, name, _parameters(owner, name, module))
        for owner, module in compat.HOMES.items()
        for name in compat.wanted_of(owner)
    ]
    return [one for one in said if one]


def _parameters(owner: str, name: str, module: str) -> tuple[str, ...] | None:
    """Return the parameters of a function of a class, or of a module where the owner is the module itself.

    None where it is not found.

    A function that the module only imports is looked for where it comes from, as ``from ... import`` says.
    """
    file = file_of(module)
    if file is None:
        return None
    body = parse(file).body
    if owner != module:
        body = next((node.body for node in body if isinstance(node, ast.ClassDef) and node.name == owner), [])
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            given = node.args
            return tuple(one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs))
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _parameters(node.module, alias.name, node.module)
    return None
