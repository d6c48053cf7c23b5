"""How an adapter of lmms-eval fetches docs and reads videos, by the source of its class and base classes.

No weights are loaded.

A view of a doc travels in the number by which the adapter fetches the doc (``wrap/docs.ViewId``). So each view reaches
the model where the adapter looks docs up by that number and has ``doc_to_visual`` or ``doc_to_messages`` show what it
finds. An adapter that computes another number, or reads the image out of the doc itself, shows something else, and its
numbers would look right all the same.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from lmms_patch.harness.names.effects import called, parse

Way = Literal["by number", "otherwise", "past the view", "unknown"]

_OURS = "lmms_patch."
_TABLES = "task_dict"
"""The attribute of a model by which adapters find docs: by task, split and number."""
_MEDIA = ("image", "images", "video", "videos", "visual", "frames")
"""Fields of a doc that hold what a view is cut from."""

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


def read(adapter: type) -> tuple[Way, str]:
    """Return how an adapter fetches docs, and on what that rests.

    Returns:
        The way: ``by number`` is safe; ``otherwise``: the number is computed, or the whole table is taken; ``past the
        view``: the image is read from the doc itself; ``unknown``: no line that fetches a doc was found. And file and
        line, "" where the way is ``unknown``, and for our own models.
    """
    if adapter.__module__.startswith(_OURS):
        return "by number", ""
    found = [(way, f"{file.name}:{line}") for file, node in _classes(adapter) for way, line in _fetches(node)]
    # an adapter is only as safe as its least safe line
    order: tuple[Way, ...] = ("past the view", "otherwise", "by number")
    return min(found, key=lambda one: order.index(one[0]), default=("unknown", ""))


def decodes_sound(adapter: type) -> str:
    """Return where an adapter's module decodes sound itself without asking for a sample format; "" where it does not.

    Why it matters: PyAV gives the samples as the file holds them. In most videos (AAC) these are fractions, channel by
    channel. In the clips that we write (FLAC, without loss) they are whole numbers up to 32,768, and the channels
    alternate.
    """
    for file in dict.fromkeys(file for file, _ in _classes(adapter)):
        attributes = [node for node in ast.walk(parse(str(file))) if isinstance(node, ast.Attribute)]
        # a resampler turns all samples into a single format
        if any(node.attr == "AudioResampler" for node in attributes):
            continue
        for node in attributes:
            if node.attr == "audio" and isinstance(node.value, ast.Attribute) and node.value.attr == "streams":
                return f"{file.name}:{node.lineno}"
    return ""


def limit_of_rate(adapter: type) -> str | None:
    """Return the attribute that limits how many frames an adapter takes at a rate.

    "" where nothing limits them; None where the adapter does not choose between a rate and a number, in code such as
    ``if self.fps is not None: kwargs["fps"] = self.fps``, ``else: kwargs["nframes"] = self.nframes``. It may give
    ``max_frames`` beside these.
    """
    for method in _methods(adapter):
        branches = [one for one in ast.walk(method) if isinstance(one, ast.If)]
        if any("fps" in _keys(branch.body) and "nframes" in _keys(branch.orelse) for branch in branches):
            given = (value for key, value in _entries(method.body) if key == "max_frames")
            return next((value.attr for value in given if isinstance(value, ast.Attribute)), "")
    return None


def reads_as_qwen(adapter: type) -> bool:
    """Return whether an adapter lets ``qwen_vl_utils`` choose the frames of a video, given a number or a rate."""
    methods = _methods(adapter)
    calls = {called(one) for method in methods for one in ast.walk(method) if isinstance(one, ast.Call)}
    return bool(calls & _QWEN) and any("nframes" in _keys(method.body) for method in methods)


@functools.lru_cache(maxsize=64)
def _methods(adapter: type) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the methods of an adapter, with the inherited methods that it does not override."""
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for _, node in _classes(adapter):
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


def _classes(adapter: type) -> Iterator[tuple[Path, ast.ClassDef]]:
    """Yield the source of a class and its base classes, each with its file; what has no source is left out."""
    for one in adapter.__mro__:
        try:
            lines, first = inspect.getsourcelines(one)
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (OSError, SyntaxError, TypeError):
            continue
        node = ast.increment_lineno(tree, first - 1).body[0]
        if isinstance(node, ast.ClassDef):
            yield Path(inspect.getfile(one)), node


def _fetches(node: ast.ClassDef) -> Iterator[tuple[Way, int]]:
    """Yield how a class fetches docs, with the line."""
    nodes = list(ast.walk(node))
    docs = {
        target.id
        for one in nodes
        if isinstance(one, ast.Assign)
        and (_depth(one.value) == 3 or (isinstance(one.value, ast.Attribute) and one.value.attr == "doc"))
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    # a table is taken whole only where no doc is fetched from it in the same expression
    inside = {id(one.value) for one in nodes if isinstance(one, ast.Subscript)}
    for one in nodes:
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load) and (depth := _depth(one)):
            # ``task_dict[task][split][doc_id]``
            if depth == 3:
                yield ("by number" if _is_number(one.slice) else "otherwise"), one.lineno
            elif depth == 2 and id(one) not in inside:
                yield "otherwise", one.lineno
        if _field(one, docs) in _MEDIA:
            yield "past the view", getattr(one, "lineno", 0)


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
