"""What an aggregation remembers from one call to the next, and how to call it as if for the first time.

Some aggregations add to a dict of their module (``ocrbench_aggregate_accuracy``), so every further call counts the
earlier docs again. The harness calls each aggregation once, but we call it again for best cells, golds and floors. So
each of our calls gets copies of everything that the function can write to, as it was when the task was loaded.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import dis
import functools
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

_COPIED = ("builtins", "collections", "numpy", "array", "types")
"""Libraries whose objects are copied. Objects of others (a tokenizer, a logger) are shared, since a copy may take minutes."""
_MANY = 10_000
"""In a larger container we do not look for functions; it is copied all the same."""
_IMMUTABLE = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, frozenset)
_LIBRARIES = tuple({str(Path(sysconfig.get_paths()[name])) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class Memory:
    """The places where an aggregation, and functions called in its modules, can keep something between two calls.

    These are globals, closure cells, default arguments and attributes of functions and classes that hold something
    mutable, and globals that a function rebinds. We assume that code of libraries keeps nothing.

    Args:
        function: the aggregation, as the harness loaded it, before its first call.

    Attributes:
        uncopied: names of places that cannot be copied, so that all calls share them.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.uncopied: list[str] = []
        self._places: dict[tuple[int, str], tuple[Any, str]] = {}
        self._seen: set[int] = set()
        self._visit(function)
        self._kept = [(owner, name, _read(owner, name)) for owner, name in self._places.values()]
        self._kept = [place for place in self._kept if self._can_copy(place)]
        self._first = copy.deepcopy([value for _, _, value in self._kept])
        """What the places held at first. One copy of all, so that an object which two places share stays shared."""

    @contextlib.contextmanager
    def fresh(self) -> Iterator[None]:
        """Give the function its first memory during a call, and put its present memory back afterwards."""
        if not self._kept:
            yield
            return
        now = [(owner, name, _read(owner, name)) for owner, name, _ in self._kept]
        # a copy, since the call may change it and the next call needs the first memory too
        for (owner, name, _), value in zip(self._kept, copy.deepcopy(self._first), strict=True):
            _write(owner, name, value)
        try:
            yield
        finally:
            for owner, name, value in now:
                _write(owner, name, value)

    @property
    def names(self) -> list[str]:
        return [name for _, name, _ in self._kept]

    # --- finding the places -----------------------------------------------------------------------

    def _visit(self, value: Any) -> None:
        """Note every place that a function, class, bound method or object can write to."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, functools.partial):
            self._visit_all([value.func, *value.args, *value.keywords.values()])
        elif inspect.ismethod(value):
            self._visit_all([value.__func__, value.__self__])
        elif isinstance(value, FunctionType):
            self._visit_function(value)
        elif callable(wrapped := getattr(value, "__wrapped__", None)):
            self._visit(wrapped)
        elif isinstance(value, type):
            if not _of_library(sys.modules.get(value.__module__)) and value.__module__ != builtins.__name__:
                for name, inner in list(vars(value).items()):
                    if not name.startswith("__"):
                        # an attribute of a class can be rebound, so numbers and texts count too
                        self._note(value, name, inner, always=isinstance(inner, _IMMUTABLE))
        elif isinstance(value, (list, tuple, dict)):
            if len(value) <= _MANY:
                self._visit_all(value.values() if isinstance(value, dict) else value)
        elif not isinstance(value, (*_IMMUTABLE, ModuleType)) and not _of_library(
            sys.modules.get(type(value).__module__)
        ):
            self._visit(type(value))
            if isinstance(attributes := getattr(value, "__dict__", None), dict):
                self._note(value, "__dict__", attributes)

    def _visit_all(self, values: Any) -> None:
        for value in values:
            self._visit(value)

    def _visit_function(self, function: FunctionType) -> None:
        """Note where a function can write: its defaults, closure and attributes, and its globals, read or rebound."""
        if _in_library(function.__code__.co_filename):
            return
        self._visit(getattr(function, "__wrapped__", None))
        for owner, name in ((function, "__defaults__"), (function, "__kwdefaults__")):
            self._note(owner, name, getattr(owner, name))
        for cell in function.__closure__ or ():
            # the cell is empty
            with contextlib.suppress(ValueError):
                self._note(cell, "cell_contents", cell.cell_contents, always=isinstance(cell.cell_contents, _IMMUTABLE))
        read, written = _globals_of(function.__code__)
        # a function that names itself may keep something in its attributes
        if vars(function) or function.__name__ in read:
            self._note(function, "__dict__", vars(function))
        for name in sorted(read | written):
            if name in function.__globals__:
                self._note(function.__globals__, name, function.__globals__[name], always=name in written)

    def _note(self, owner: Any, name: str, value: Any, always: bool = False) -> None:
        """Note a place with something changeable inside, and look into its content."""
        if isinstance(value, ModuleType):
            self._visit_module(value)
        elif (
            isinstance(value, (FunctionType, type, functools.partial))
            or inspect.ismethod(value)
            or hasattr(value, "__wrapped__")
        ):
            self._visit(value)
            if not always:
                return
        else:
            self._visit(value)
        if always or _can_change(value):
            self._places.setdefault((id(owner), name), (owner, name))

    def _visit_module(self, module: ModuleType) -> None:
        """Note all globals of a task's module.

        Which of them a function reads through the module is not known.
        """
        if id(module) in self._seen or _of_library(module) or getattr(module, "__file__", None) is None:
            return
        self._seen.add(id(module))
        for name, value in list(vars(module).items()):
            if not name.startswith("__"):
                self._note(vars(module), name, value)

    def _can_copy(self, place: tuple[Any, str, Any]) -> bool:
        """Return whether a place can be copied and written back; else list the place under ``uncopied``."""
        owner, name, value = place
        kind = type(value).__module__
        if kind.partition(".")[0] not in _COPIED and _of_library(sys.modules.get(kind)):
            self.uncopied.append(name)
            return False
        try:
            # tried now, so that no later call fails half-way
            copy.deepcopy(value)
            _write(owner, name, value)
        except Exception:
            self.uncopied.append(name)
            return False
        return True


def _can_change(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_can_change(inner) for inner in value)
    return not isinstance(
        value, (*_IMMUTABLE, FunctionType, ModuleType, type, property, staticmethod, classmethod)
    ) and not inspect.isroutine(value)


def _globals_of(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the names of all globals read by code, and of all rebound, in inner functions too."""
    read, written = set(), set()
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            read.add(str(step.argval))
        elif step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            written.add(str(step.argval))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more = _globals_of(inner)
            read, written = read | more[0], written | more[1]
    return read, written


def _of_library(module: ModuleType | None) -> bool:
    """Return whether a module belongs to a library.

    Modules that the harness loads for a task file are not in ``sys.modules``: None stands for them, and they do not
    belong to one.
    """
    return module is not None and _in_library(getattr(module, "__file__", None) or "")


def _in_library(file: str) -> bool:
    """Return whether a source file belongs to Python, or to an installed package except for the harness's tasks."""
    return (
        not file
        or file.startswith("<frozen")
        or (file.startswith(_LIBRARIES) and "/lmms_eval/tasks/" not in Path(file).as_posix())
    )


def _read(owner: Any, name: str) -> Any:
    # ``vars`` first, since ``getattr`` would bind a method or call a property
    return (
        owner[name]
        if isinstance(owner, dict)
        else vars(owner)[name]
        if name in getattr(owner, "__dict__", ())
        else getattr(owner, name)
    )


def _write(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, dict):
        owner[name] = value
    else:
        setattr(owner, name, value)
