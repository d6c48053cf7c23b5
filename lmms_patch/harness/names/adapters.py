"""How an adapter of lmms-eval fetches the docs that it shows, read from its source.

Nothing is imported or run, and no weights are loaded.

A view of a doc travels in the number by which the adapter fetches the doc (``wrap/docs.ViewId``). So each view reaches
the model where the adapter looks docs up by that number and has ``doc_to_visual`` or ``doc_to_messages`` show what it
finds. An adapter that computes another number, or reads the image out of the doc itself, shows something else, and its
numbers would look right all the same.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lmms_patch.harness.names import effects

Way = Literal["by number", "otherwise", "past the view", "unknown"]

_OURS = "lmms_patch."
_TABLES = "task_dict"
"""The attribute of a model by which adapters find docs: by task, split and number."""
_MEDIA = ("image", "images", "video", "videos", "visual", "frames")
"""Fields of a doc that hold what a view is cut from."""
_HOST = "lmms_eval"

_QWEN = {"process_vision_info", "fetch_video", "to_openai_messages", "to_qwen3_vl_openai_messages"}
"""Functions of ``qwen_vl_utils`` that read videos, and methods of lmms-eval's messages that call them."""

_BLIND = "it fails without an image: use _swap or _blank in place of _blind"

KNOWN = {
    "cogvlm2": "where a call fails it returns the previous answer again, which cannot be told from an answer",
    "idefics2": _BLIND,
    "instructblip": _BLIND,
    "lfm2_5_vl": "it drops requests without an image: use _swap or _blank in place of _blind",
    "llava_hf": _BLIND,
    "minicpm_v": "it fails without an image (use _swap or _blank in place of _blind), and where a call fails it returns the previous answer again",
    "minimonkey": "where a call fails it returns the previous answer again, which cannot be told from an answer",
    "mistral3_vl": "it clamps doc numbers to the length of the first task of a batch",
}
"""What is known of an adapter beside how it fetches docs (docs/footguns.md)."""


@dataclass(frozen=True)
class Adapter:
    """What the source of an adapter tells.

    Attributes:
        path: the class, with its module.
        way: how docs are fetched: ``by number`` is safe; ``otherwise``: the number is computed, or the whole table is
            taken; ``past the view``: the image is read from the doc itself; ``unknown``: no line that fetches a doc was
            found.
        where: file and line of what ``way`` rests on; empty where it is ``unknown``, and for our own models.
        missing: packages that its modules import and that are not installed.
    """

    path: str
    way: Way
    where: str = ""
    missing: tuple[str, ...] = ()


def read(path: str) -> Adapter:
    """Return what the source of an adapter tells.

    Args:
        path: the class, with its module, such as ``lmms_eval.models.chat.qwen2_5_vl.Qwen2_5_VL``.
    """
    if path.startswith(_OURS):
        return Adapter(path, "by number")
    module, _, name = path.rpartition(".")
    found: list[tuple[Way, str]] = []
    for file, node in _classes(module, name, set()):
        found += ((way, f"{file.name}:{line}") for way, line in _fetches(node))
    # an adapter is only as safe as its least safe line
    order: tuple[Way, ...] = ("past the view", "otherwise", "by number")
    way, where = min(found, key=lambda one: order.index(one[0]), default=("unknown", ""))
    return Adapter(path, way, where, tuple(sorted(_missing(module, set()))))


def decodes_sound(path: str) -> str:
    """Return where an adapter's module decodes sound itself without asking for a sample format; "" where it does not.

    Why it matters: PyAV gives the samples as the file holds them. In most videos (AAC) these are fractions, channel by
    channel. In the clips that we write (FLAC, without loss) they are whole numbers up to 32,768, and the channels
    alternate.

    Args:
        path: as for ``read``.
    """
    module, _, name = path.rpartition(".")
    for file in dict.fromkeys(file for file, _ in _classes(module, name, set())):
        attributes = [node for node in ast.walk(parsed(file)) if isinstance(node, ast.Attribute)]
        # a resampler turns all samples into a single format
        if any(node.attr == "AudioResampler" for node in attributes):
            continue
        for node in attributes:
            if node.attr == "audio" and isinstance(node.value, ast.Attribute) and node.value.attr == "streams":
                return f"{file.name}:{node.lineno}"
    return ""


def limit_of_rate(path: str) -> str | None:
    """Return the attribute that limits how many frames an adapter takes at a rate.

    "" where nothing limits them; None where the adapter does not choose between a rate and a number, in code such as
    ``if self.fps is not None: kwargs["fps"] = self.fps``, ``else: kwargs["nframes"] = self.nframes``. It may give
    ``max_frames`` beside these.

    Args:
        path: as for ``read``.
    """
    for method in _methods(path):
        branches = [one for one in ast.walk(method) if isinstance(one, ast.If)]
        if any("fps" in _keys(branch.body) and "nframes" in _keys(branch.orelse) for branch in branches):
            given = (value for key, value in _entries(method.body) if key == "max_frames")
            return next((value.attr for value in given if isinstance(value, ast.Attribute)), "")
    return None


def reads_as_qwen(path: str) -> bool:
    """Return whether an adapter lets ``qwen_vl_utils`` choose the frames of a video, given a number or a rate.

    Args:
        path: as for ``read``.
    """
    methods = _methods(path)
    called = [one.func for method in methods for one in ast.walk(method) if isinstance(one, ast.Call)]
    names = {one.id for one in called if isinstance(one, ast.Name)} | {
        one.attr for one in called if isinstance(one, ast.Attribute)
    }
    return bool(names & _QWEN) and any("nframes" in _keys(method.body) for method in methods)


def _methods(path: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the methods of an adapter, with the inherited methods that it does not override."""
    module, _, name = path.rpartition(".")
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for _, node in _classes(module, name, set()):
        for one in node.body:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                # a class comes before its bases, so the first method of a name is the one that runs
                found.setdefault(one.name, one)
    return list(found.values())


def _keys(statements: list[ast.stmt]) -> set[str]:
    """Return the keys under which statements put something into a mapping."""
    return {key for key, _ in _entries(statements)}


def _entries(statements: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Yield what statements put into mappings: the key, and the expression."""
    for one in (one for statement in statements for one in ast.walk(statement)):
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(one, ast.Dict):
            pairs = list(zip(one.keys, one.values, strict=True))
        elif isinstance(one, ast.Assign):
            pairs = [(target.slice, one.value) for target in one.targets if isinstance(target, ast.Subscript)]
        yield from (
            (key.value, value) for key, value in pairs if isinstance(key, ast.Constant) and isinstance(key.value, str)
        )


# --- the classes of an adapter ----------------------------------------------------------------------


def _classes(module: str, name: str, seen: set[tuple[str, str]]) -> Iterator[tuple[Path, ast.ClassDef]]:
    """Yield the class of a name and its base classes, as far as their source files are found."""
    if (module, name) in seen or (file := file_of(module)) is None:
        return
    seen.add((module, name))
    tree = parsed(file)
    imported = {alias.asname or alias.name: (where, alias.name) for where, alias in _imported(tree, module)}
    node = next((one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name), None)
    if node is None:
        if name in imported:
            yield from _classes(*imported[name], seen)
        return
    yield file, node
    for base in node.bases:
        # a base of another form, such as ``module.Class``, is not followed
        if isinstance(base, ast.Name):
            yield from _classes(*imported.get(base.id, (module, base.id)), seen)


def _imported(tree: ast.Module, module: str) -> Iterator[tuple[str, ast.alias]]:
    """Yield the names that a module imports with ``from``, each with the module that it comes from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((_origin(node, module), alias) for alias in node.names)


def _origin(node: ast.ImportFrom, module: str) -> str:
    """Return the module named by a ``from``, with leading dots resolved."""
    above = module.split(".")[: -node.level] if node.level else []
    return ".".join([*above, *filter(None, [node.module])])


@functools.lru_cache(maxsize=1024)
def file_of(module: str) -> Path | None:
    """Return the file of a module, without importing the module or the packages above; None without a file."""
    top, *rest = module.split(".")
    try:
        # looking for a module inside a package would import the package
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin else None
    # a package may be spread over several folders
    for folder in spec.submodule_search_locations or ():
        place = Path(folder).joinpath(*rest)
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return file
    return None


@functools.lru_cache(maxsize=1024)
def parsed(file: Path) -> ast.Module:
    """Return the syntax tree of a file; empty where the file cannot be parsed."""
    return effects.parse(str(file))


# --- how a class fetches docs -----------------------------------------------------------------------


def _fetches(node: ast.ClassDef) -> Iterator[tuple[Way, int]]:
    """Yield how each method fetches docs, with the line."""
    for function in ast.walk(node):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _fetches_of(function)


def _fetches_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[Way, int]]:
    docs = {
        name
        for name, value in _assigned(function)
        if _depth(value) == 3 or (isinstance(value, ast.Attribute) and value.attr == "doc")
    }
    # a table is taken whole only where no doc is fetched from it in the same expression
    inside = {id(one.value) for one in ast.walk(function) if isinstance(one, ast.Subscript)}
    for one in ast.walk(function):
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load) and (depth := _depth(one)):
            # ``task_dict[task][split][doc_id]``
            if depth == 3:
                yield ("by number" if _is_number(one.slice) else "otherwise"), one.lineno
            elif depth == 2 and id(one) not in inside:
                yield "otherwise", one.lineno
        if _field(one, docs) in _MEDIA:
            yield "past the view", getattr(one, "lineno", 0)


def _assigned(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield each assigned name with its value."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))


def _depth(node: ast.expr) -> int:
    """Return how many subscripts an expression applies to the tables of docs: 3 for a doc, 2 for a table.

    0 for any other expression.
    """
    depth = 0
    while isinstance(node, ast.Subscript):
        node, depth = node.value, depth + 1
    return depth if isinstance(node, ast.Attribute) and node.attr == _TABLES else 0


def _is_number(key: ast.expr) -> bool:
    """Return whether a subscript is a doc's number as given, or the first number of a batch: not computed."""
    if isinstance(key, ast.Subscript):
        key = key.value
    return isinstance(key, ast.Name)


def _field(node: ast.AST, docs: set[str]) -> str:
    """Return the field of a doc read by an expression; "" where the expression reads no doc."""
    if isinstance(node, ast.Subscript):
        whole, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        whole, key = node.func.value, node.args[0]
    else:
        return ""
    is_doc = (isinstance(whole, ast.Name) and whole.id in docs) or _depth(whole) == 3
    return key.value if is_doc and isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


# --- what it imports --------------------------------------------------------------------------------


def _missing(module: str, seen: set[str]) -> set[str]:
    """Return the packages without which a module of the host cannot be imported, and which are not installed.

    Imports of the host's modules are followed.
    """
    if module in seen or (file := file_of(module)) is None:
        return set()
    seen.add(module)
    out: set[str] = set()
    for name in _needed(parsed(file), module):
        top = name.partition(".")[0]
        if top == _HOST:
            out |= _missing(name, seen)
        elif not _is_installed(top):
            out.add(top)
    return out


def _needed(tree: ast.Module, module: str) -> Iterator[str]:
    """Yield the modules imported by a module at its top level, outside of ``try``, ``if`` and functions."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            where = _origin(node, module)
            yield where
            if where.partition(".")[0] == _HOST:
                # ``from package import name`` may import a module, whose imports count too
                yield from (inner for alias in node.names if file_of(inner := f"{where}.{alias.name}") is not None)


@functools.lru_cache(maxsize=1024)
def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
