"""What a task's functions do, read from their source: whether a scorer calls a judge or the network, whether an aggregation writes files.

Nothing is run. ``code_of`` also gives the code itself, so that the journal can tell whether a task shows its docs in
another way than before.

A wrapped task scores V answers per doc, so a scorer that pays per call would pay V times. We walk the code that a
scorer can reach, in its own module and in the task modules that it imports, and look for names that come from a client
library.
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
    """Return the judge or client library called by the scorer of a loaded task; None where there is none.

    It looks at ``process_results`` and the aggregations of the task's config.
    """
    config = task.config
    if (named := magic_judge(config.metadata)) is not None:
        return named
    aggregations = [entry.get("aggregation") for entry in config.metric_list or [] if isinstance(entry, dict)]
    return next(filter(None, map(client_of, filter(callable, [config.process_results, *aggregations]))), None)


def magic_judge(metadata: Any) -> str | None:
    """Return the judge of a MAGIC task (docs/magic-judge.md); None without a judge, and for tasks of another kind."""
    return judge_model() if is_magic(metadata) else None


def is_magic(metadata: Any) -> bool:
    """Return whether a task is a MAGIC task, by the metadata of its config."""
    magic = metadata.get("magic") if isinstance(metadata, Mapping) else None
    return isinstance(magic, Mapping) and magic.get("kind") == "magic"


def judge_model() -> str | None:
    """Return the judge of MAGIC tasks named by the environment (``MAGIC_JUDGE``); None without a name."""
    return os.environ.get("MAGIC_JUDGE", "").strip() or None


def client_of(function: Callable[..., Any]) -> str | None:
    """Return the client library that a function can reach; None where there is none."""
    place = _source_of(function)
    return judge_in(*place) if place else None


def effects(function: Callable[..., Any]) -> str | None:
    """Return why an aggregation must not be called repeatedly (network, files, programs); None where calls do no harm."""
    place = _source_of(function)
    if place is None:
        return None
    client = judge_in(*place)
    return f"the aggregation calls the network ({client})" if client else _writes_in(*place)


def code_of(function: Callable[..., Any]) -> str:
    """Return the code that a function can reach, in its module and in the task modules imported there.

    "" where it has no source.

    Comments and line breaks do not count.
    """
    place = _source_of(function)
    return "" if place is None else _code_in(*place)


@functools.lru_cache(maxsize=4096)
def _code_in(path: str, name: str) -> str:
    """Return the code that a top-level name of a module can reach; kept, because the tasks of a suite share most of theirs."""
    return "\n".join(ast.unparse(node) for _, node in _reached(path, name))


def _reached(path: str, name: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the definitions that a module's name can reach, each with its file."""
    for file, reached in sorted(_Reach(path, name).seen):
        yield from ((file, node) for node in Module.of(file).defined.get(reached, ()))


# Calls, by their last name, that write files or start programs.
_WRITES = {
    "open",
    "dump",
    "makedirs",
    "mkdir",
    "write",
    "write_text",
    "to_csv",
    "to_json",
    "generate_submission_file",
    "run",
    "Popen",
    "check_call",
}


@functools.lru_cache(maxsize=4096)
def _writes_in(path: str, name: str) -> str | None:
    """Return the first call within a function's reach that writes files or starts programs; None where there is none."""
    for file, node in _reached(path, name):
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and (writes := called(call)) in _WRITES:
                return f"the aggregation uses files or programs ({writes} in {Path(file).name})"
    return None


def called(call: ast.Call) -> str:
    """Return the last name of a call's function, such as ``open``; "" where there is no name."""
    function = call.func
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _source_of(function: Callable[..., Any]) -> tuple[str, str] | None:
    """Return the file and the top-level name of a function's source; None without a source file."""
    # look behind partials and decorators: their source is another file, or none
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    try:
        path = inspect.getsourcefile(function)
    except TypeError:
        return None
    # of a method the class, whose further methods may be reached too
    return (path, function.__qualname__.split(".")[0]) if path else None


@functools.lru_cache(maxsize=4096)
def judge_in(path: str, name: str) -> str | None:
    """Return the client library that a module's top-level name can reach; None where there is none.

    Args:
        path: the module's file.
        name: a function or class of it.
    """
    return next(iter(_Reach(path, name).clients), None)


class _Reach:
    """Finds the definitions and client libraries that the code under a module's name can call.

    Attributes:
        clients: client libraries, in the order in which they are met.
        seen: each visited name, with its file.
    """

    def __init__(self, path: str, name: str) -> None:
        self.clients: list[str] = []
        self.seen: set[tuple[str, str]] = set()
        self._visit(path, name, _DEPTH)

    def _visit(self, path: str, name: str, depth: int) -> None:
        # modules may import each other
        if depth < 0 or (path, name) in self.seen:
            return
        self.seen.add((path, name))
        module = Module.of(path)
        if name in module.imported:
            self._follow(module, module.imported[name], depth)
        for node in module.defined.get(name, ()):
            # imports inside a function come before the module's imports of the same name
            local = dict(_imports(ast.walk(node)))
            # sorted, so that the same client is told every time
            for used in sorted(_names_in(node)):
                source = local.get(used) or module.imported.get(used, "")
                if source and (used not in module.defined or _CLIENTS.search(source)):
                    self._follow(module, source, depth)
                elif used != name and used in module.defined:
                    self._visit(path, used, depth)

    def _follow(self, module: Module, source: str, depth: int) -> None:
        """Follow an imported name into a task's module. Libraries are not opened."""
        package, _, attribute = source.rpartition(".")
        if _CLIENTS.search(source):
            self.clients.append(source)
        elif attribute and (file := module.find(package)):
            self._visit(file, attribute, depth - 1)


def parse(path: str) -> ast.Module:
    """Return the syntax tree of a source file; an empty module where the file cannot be parsed.

    Warnings of the parser are hidden.
    """
    try:
        # the time of the last change is part of the key: a file edited since is parsed again
        return _parsed(path, os.stat(path).st_mtime_ns)
    except OSError:
        return ast.Module([], [])


@functools.lru_cache(
    maxsize=16
)  # several questions about a file follow each other; all trees of the host would take much memory
def _parsed(path: str, _: int) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(Path(path).read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError):
            return ast.Module([], [])


def _names_in(node: ast.AST) -> Iterable[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield the local name and the dotted source of each import. Relative sources start with a dot."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname or alias.name.split(".")[0]), alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield (alias.asname or alias.name), f"{'.' * node.level}{node.module or ''}.{alias.name}"


class Module:
    """The names defined and imported at the top level of a source file."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.defined: dict[str, list[ast.AST]] = {}
        self.imported: dict[str, str] = {}
        for node in _top_level(parse(path).body):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                # which of several definitions holds is known only when the module runs
                self.defined.setdefault(node.name, []).append(node)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imported.update(_imports([node]))
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name in _names_in(target):
                        self.defined.setdefault(name, []).append(node)

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def of(path: str) -> Module:
        return Module(path)

    def may_have(self, name: str) -> bool:
        """Return whether the module may have a name, as by ``import *``; a file that defines nothing may not have been read."""
        known = {*self.defined, *self.imported}
        return not known or bool(known & {name, "*"})

    def find(self, dotted: str) -> str | None:
        """Return the file of a task's module by its dotted name: beside this module, relative, or below lmms_eval.tasks."""
        if dotted.startswith("."):
            inside = dotted.lstrip(".")
            base = self.path.parents[len(dotted) - len(inside) - 1]
            return _python_file(base / Path(*inside.split("."))) if inside else None
        if dotted.startswith("lmms_eval.tasks."):
            return file_of(dotted)
        return _python_file(self.path.parent / Path(*dotted.split("."))) if dotted else None


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the top-level statements of a module, including those under ``try`` and ``if``."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            handled = [one for handler in getattr(node, "handlers", ()) for one in handler.body]
            yield from _top_level([*node.body, *node.orelse, *getattr(node, "finalbody", ()), *handled])
        else:
            yield node


def file_of(module: str) -> str | None:
    """Return the file of a module of lmms-eval, without importing the module; None without a file."""
    top, *rest = module.split(".")
    # looking for a module inside the package would import the package
    spec = find_spec(top) if top == "lmms_eval" else None
    return _python_file(Path(spec.origin).parent.joinpath(*rest)) if spec and spec.origin else None


def _python_file(stem: Path) -> str | None:
    for candidate in (stem.with_suffix(".py"), stem / "__init__.py"):
        if candidate.is_file():
            return str(candidate)
    return None
