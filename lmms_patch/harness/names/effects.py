"""Whether a task's scorer calls a judge or the network, read from its source; nothing is run.

A wrapped task scores V answers per doc, so a scorer that pays per call would pay V times. We walk the code that a
scorer can reach, in its own module and in the task modules that it imports, and look for names that come from a client
library: of 313 task files with a judge 81 show none in their own module, and text alone would refuse 52 others.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_CLIENTS = re.compile(
    r"(^|\.)(openai|anthropic|requests|httpx|aiohttp|litellm|dashscope|zhipuai|llm_judge|google\.generativeai|google\.genai|genai|"
    r"azure|together|urllib\.request|sglang|vllm)(\.|$)"
)
"""Modules whose use means a call to a judge or the network."""
_DEPTH = 4
"""How many modules deep imports are followed."""


def calls_judge(task: Any) -> str | None:
    """Return the judge or client library called by the scorer or an aggregation of a loaded task; None where there is none."""
    config = task.config
    if named := magic_judge(config.metadata):
        return named
    aggregations = [entry.get("aggregation") for entry in config.metric_list or [] if isinstance(entry, dict)]
    return next(filter(None, map(client_of, filter(callable, [config.process_results, *aggregations]))), None)


def magic_judge(metadata: Any) -> str | None:
    """Return the judge of a MAGIC task (docs/magic-judge.md); None without a judge, and for tasks of another kind."""
    return judge_model() if _is_magic(metadata) else None


def is_magic(task: Any) -> bool:
    """Return whether a loaded task is a MAGIC task."""
    return _is_magic(getattr(getattr(task, "config", None), "metadata", None))


def _is_magic(metadata: Any) -> bool:
    magic = metadata.get("magic") if isinstance(metadata, Mapping) else None
    return isinstance(magic, Mapping) and magic.get("kind") == "magic"


def judge_model() -> str | None:
    """Return the judge of MAGIC tasks named by the environment (``MAGIC_JUDGE``); None without a name."""
    return os.environ.get("MAGIC_JUDGE", "").strip() or None


def client_of(function: Callable[..., Any]) -> str | None:
    """Return the client library that a function can reach; None where there is none."""
    place = _source_of(function)
    return judge_in(*place) if place else None


def code_of(function: Callable[..., Any]) -> str:
    """Return the code that a function can reach, without comments; "" where it has no source.

    By it the journal tells whether a task shows its docs in another way than before.
    """
    place = _source_of(function)
    definitions = _reach(*place)[1] if place else {}
    return "\n".join(ast.unparse(node) for _, nodes in sorted(definitions.items()) for node in nodes)


def judge_in(path: str, name: str) -> str | None:
    """Return the client library that a top-level name of a module's file can reach; None where there is none."""
    return next(iter(_reach(path, name)[0]), None)


def _source_of(function: Callable[..., Any]) -> tuple[str, str] | None:
    """Return the file and the top-level name of a function's source; None without a source file."""
    # behind partials and decorators, whose source is another file
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    try:
        path = inspect.getsourcefile(function)
    except TypeError:
        return None
    # of a method the class, whose further methods may be reached too
    return (path, function.__qualname__.split(".")[0]) if path else None


_Place = tuple[str, str]
"""The file of a module, and a name at its top level."""


@functools.lru_cache(maxsize=4096)
def _reach(path: str, name: str) -> tuple[list[str], dict[_Place, list[ast.AST]]]:
    """Return the client libraries and the definitions in reach of a top-level name of a module."""
    clients: list[str] = []
    reached: dict[_Place, list[ast.AST]] = {}

    def walk(path: str, name: str, depth: int) -> None:
        """Follow a name into what its code uses, through task modules, so many modules deep."""
        if (path, name) in reached:
            return
        module = Module.of(path)
        definitions = reached[path, name] = module.defined.get(name, [])
        # sorted, so that the same client is told every time
        for used in sorted({name, *_names(node for one in definitions for node in ast.walk(one))}):
            source = module.imported.get(used, "")
            package, _, attribute = source.rpartition(".")
            if _CLIENTS.search(source):
                clients.append(source)
            elif used in module.defined:
                walk(path, used, depth)
            # libraries are not opened
            elif depth and package and (file := module.find(package)):
                walk(file, attribute, depth - 1)

    walk(path, name, _DEPTH)
    return clients, reached


class Module:
    """The names defined at the top level of a source file, and those imported anywhere in it; of a file that cannot be read none."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.defined: dict[str, list[ast.AST]] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                tree = ast.parse(self.path.read_text(encoding="utf-8"))
            except (OSError, SyntaxError, ValueError):
                tree = ast.Module([], [])
        self.imported = {
            alias.asname or alias.name.split(".")[0]: alias.name
            if isinstance(node, ast.Import)
            # relative sources start with a dot
            else f"{'.' * node.level}{node.module or ''}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        for node in _top_level(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.defined.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name in _names(ast.walk(target)):
                        self.defined.setdefault(name, []).append(node)

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def of(path: str) -> Module:
        return Module(path)

    def find(self, dotted: str) -> str | None:
        """Return the file of a task's module by its dotted name: beside this module, relative, or below lmms_eval.tasks."""
        inside = dotted.lstrip(".")
        if inside.startswith("lmms_eval.tasks."):
            return file_of(dotted)
        beside = self.path.parents[max(len(dotted) - len(inside) - 1, 0)]
        return _python_file(beside.joinpath(*inside.split("."))) if inside else None


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _top_level(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the top-level statements of a module, including those under ``try`` and ``if``."""
    for inner in ast.iter_child_nodes(node):
        yield inner
        if isinstance(inner, ast.If | ast.Try | ast.ExceptHandler):
            yield from _top_level(inner)


def file_of(module: str) -> str | None:
    """Return the file of a module of lmms-eval, without importing the module; None without a file."""
    top, *rest = module.split(".")
    # looking for a module inside the package would import the package
    spec = find_spec(top) if top == "lmms_eval" else None
    return _python_file(Path(spec.origin).parent.joinpath(*rest)) if spec and spec.origin else None


def _python_file(stem: Path) -> str | None:
    return next((str(one) for one in (stem.with_suffix(".py"), stem / "__init__.py") if one.is_file()), None)
