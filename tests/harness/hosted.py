"""The adapters of the host as classes, whatever packages of theirs are missing here."""

import contextlib
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import lmms_eval


def classes(*words: str) -> Iterator[tuple[str, type]]:
    """Yield the classes in the files of adapters that hold one of some words, each with a name such as ``chat/qwen3_vl``.

    Files with an error of their own, such as a name that is not defined, are left out.
    """
    before = set(sys.modules)
    for file in sorted((Path(lmms_eval.__file__).parent / "models").glob("[cs][hi]*/*.py")):
        if any(word in file.read_text(encoding="utf-8") for word in words):
            with contextlib.suppress(Exception):
                module = imported(f"lmms_eval.models.{file.parent.name}.{file.stem}")
                for _, found in inspect.getmembers(module, inspect.isclass):
                    if found.__module__ == module.__name__:
                        yield f"{file.parent.name}/{file.stem}", found
    # a module with stand-ins must not be found by another test
    for name in set(sys.modules) - before:
        if name.startswith("lmms_eval.models."):
            del sys.modules[name]


def imported(name):
    """Import a module, with stand-ins for missing packages while it is imported."""
    stand_ins = {}
    try:
        while True:
            try:
                return importlib.import_module(name)
            except ModuleNotFoundError as error:
                if error.name in stand_ins:
                    raise
                sys.modules[error.name] = stand_ins[error.name] = mock.MagicMock(__spec__=None)
    finally:
        for one in stand_ins:
            del sys.modules[one]
