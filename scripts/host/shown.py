"""The table of what each ``doc_to_visual`` of the installed lmms-eval hands to a model: ``python scripts/host/shown.py --write`` writes it.

What is shown (videos, still images, sound) is read from the source; nothing is run. We follow each returned value back
through assignments, loops and calls into the task's own modules. Branches are not told apart: a variable may be
whatever is assigned to it anywhere in its function. A path is what its ending or the words around it say, so it is a
good guess. What PIL makes is certainly an image.
"""

from __future__ import annotations

import ast
import csv
import dataclasses
import io
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from lmms_patch.harness import compat
from lmms_patch.harness.names import catalog, facts
from lmms_patch.harness.names.effects import Module
from lmms_patch.harness.names.facts import UNKNOWN, UNREAD, Media, digest

ROOT = Path(__file__).parents[2]

_DEPTH = 6
"""How many calls deep functions are followed."""
_STEPS = 50_000
"""After how many expressions we give up: no task of lmms-eval 0.7.3 needs more than 1,000."""


class _TooLongError(Exception):
    """The code is too long to follow."""


@dataclass(frozen=True)
class _Value:
    """What an expression may be.

    Attributes:
        media: the media that it is or holds.
        words: names and texts that a path or a field was made of.
        text: whether it may be a path; ``words`` then tell of what.
        field: whether it may be a field of the doc as the dataset gives it.
        doc: whether it is the doc itself.
        certain: whether ``media`` are certain.
    """

    media: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    text: bool = False
    field: bool = False
    doc: bool = False
    certain: bool = True

    def path(self) -> _Value:
        """Return a path made of this value."""
        return _Value(words=self.words, text=True, certain=False)

    def shown(self) -> Media:
        """Return the media that the value stands for."""
        guessed = {_medium_named(self.words)} if self.text or self.field else set()
        if not self.text and "clip" in guessed:
            # a field that is handed over as it is: the dataset may have decoded the video
            guessed = {"unknown"}
        media = self.media | guessed
        return Media(media, self.certain and not guessed and "unknown" not in media)


_UNKNOWN = _Value(media=frozenset({"unknown"}), certain=False)
_IMAGE = _Value(media=frozenset({"image"}))
_SOUND = _Value(media=frozenset({"sound"}))
_STRETCH = _Value(media=frozenset({"stretch"}))
_FRAMES = _Value(media=frozenset({"frames"}), certain=False)

_ENDINGS = {
    "clip": re.compile(r"(?<!\w)(mp4|mkv|webm|avi|mov)\b", re.I),
    "sound": re.compile(r"(?<!\w)(wav|mp3|flac|ogg|m4a)\b", re.I),
    "image": re.compile(r"(?<!\w)(png|jpe?g|bmp|webp)\b", re.I),
}
_NAMES = {
    "clip": re.compile("video|clip|movie|audio_?visual", re.I),
    "sound": re.compile("audio(?!_?visual)|wav|speech|sound", re.I),
    "image": re.compile("image|img|picture|photo|frame", re.I),
}
_SPAN = {"timestep", "start_time", "end_time", "video_start", "video_end", "start", "end"}
_PIL = {"open", "new", "fromarray", "frombytes", "merge", "fromstring"}
_ALTERED = {"copy", "resize", "crop", "rotate", "thumbnail", "transpose", "values", "items", "pop", "tolist", "to"}
_TEXT = {
    *(
        "strip",
        "lstrip",
        "rstrip",
        "replace",
        "format",
        "lower",
        "upper",
        "removeprefix",
        "removesuffix",
        "split",
        "join",
        "str",
    ),
    *(
        "joinpath",
        "with_suffix",
        "with_name",
        "expanduser",
        "expandvars",
        "resolve",
        "absolute",
        "as_posix",
        "glob",
        "rglob",
        "Path",
        "PurePath",
    ),
    *(
        "abspath",
        "normpath",
        "realpath",
        "fspath",
        "iglob",
        "listdir",
        "basename",
        "dirname",
        "splitext",
        "getenv",
        "hf_hub_download",
    ),
}
_SAME = {
    "list",
    "tuple",
    "sorted",
    "reversed",
    "set",
    "next",
    "iter",
    "zip",
    "enumerate",
    "filter",
    "deepcopy",
    "chain",
}
_READERS = {
    "VideoReader",
    "VideoCapture",
    "VideoFileClip",
    "get_batch",
    "asnumpy",
    "stack",
    "array",
    "asarray",
    "from_numpy",
}
_HARMLESS = {
    "append",
    "extend",
    "insert",
    "sort",
    "reverse",
    "print",
    "debug",
    "info",
    "warning",
    "error",
    "makedirs",
    "mkdir",
    "close",
    "release",
    "exit",
}


def _medium_named(words: Iterable[str]) -> str:
    """Return the medium named by the words of a path or field; "unknown" where they name several or none.

    An ending goes before a name.
    """
    words = sorted(words)
    for signs in (_ENDINGS, _NAMES):
        named = {medium for medium, sign in signs.items() if any(sign.search(word) for word in words)}
        if named:
            return named.pop() if len(named) == 1 else "unknown"
    return "unknown"


def _union(values: Iterable[_Value]) -> _Value:
    out = _Value()
    for one in values:
        certain = out.certain and one.certain
        out = _Value(
            out.media | one.media,
            out.words | one.words,
            out.text or one.text,
            out.field or one.field,
            out.doc or one.doc,
            certain,
        )
    return out


def shown_by(path: str, name: str) -> Media:
    """Return what a function of a module may show, read from its source.

    Args:
        path: the module's file.
        name: a function that takes a doc and returns the list of what is shown; its name may be imported.
    """
    found = _definition(path, name)
    if found is None:
        module = Module.of(path)
        # as by ``import *``; a file that defines nothing may not have been read
        known = {*module.defined, *module.imported}
        return UNKNOWN if not known or known & {name, "*"} else Media(frozenset({"missing"}))
    if returns_nothing(path, name):
        return Media(frozenset({"nothing"}), certain=True)
    module, function, single = found
    arguments = [*function.args.posonlyargs, *function.args.args]
    bound = {one.arg: _Value(doc=True) if i == 0 else _UNKNOWN for i, one in enumerate(arguments)}
    try:
        shown = [
            _named_by(function.name, value)
            for value in _Scope(module, function, bound, _DEPTH, iter(range(_STEPS))).returns()
        ]
    except (_TooLongError, RecursionError):
        return UNKNOWN
    media = frozenset[str]().union(*(one.media for one in shown))
    return Media(media or frozenset({"unknown"}), single and bool(media) and all(one.certain for one in shown))


def returns_nothing(path: str, name: str) -> bool:
    """Return whether a function visibly returns only None or an empty list, as ``return []`` does.

    The answer is no for a generator, a function that raises, one that is defined twice, and a name without a ``def`` at
    the top of the file.

    Args:
        path: the module's file.
        name: a function of it.
    """
    definitions = Module.of(path).defined.get(name, [])
    # a second definition or a decorator may change what is returned
    if len(definitions) != 1 or not isinstance(definitions[0], ast.FunctionDef) or definitions[0].decorator_list:
        return False
    body = list(_own_nodes(definitions[0]))
    if any(isinstance(node, (ast.Yield, ast.YieldFrom, ast.Raise)) for node in body):
        return False
    return all(node.value is None or _is_empty(node.value) for node in body if isinstance(node, ast.Return))


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, but not the bodies of functions inside."""
    left: list[ast.AST] = [*function.body]
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            left += ast.iter_child_nodes(node)


def _is_empty(value: ast.expr) -> bool:
    """Return whether an expression is None, ``[]``, ``()``, ``list()`` or ``tuple()``."""
    if isinstance(value, ast.Constant):
        return value.value is None
    if isinstance(value, (ast.List, ast.Tuple)):
        return not value.elts
    return isinstance(value, ast.Call) and not value.args and not value.keywords and called(value) in ("list", "tuple")


def _named_by(function: str, value: _Value) -> Media:
    """Return what a returned value stands for.

    Where it does not tell itself, the function's name may: ``doc_to_audio``.
    """
    shown = value.shown()
    if "unknown" in shown.media and _medium_named([function]) == "sound":
        return Media(shown.media - {"unknown"} | {"sound"})
    silent = value.text and not any(
        sign.search(word) for sign in (*_ENDINGS.values(), *_NAMES.values()) for word in value.words
    )
    return dataclasses.replace(value, words=value.words | {function}).shown() if silent else shown


def _definition(path: str, name: str, depth: int = _DEPTH) -> tuple[Module, ast.FunctionDef, bool] | None:
    """Return the function of a name, the module of its definition, and whether nothing else has the name.

    Imports are followed.
    """
    module = Module.of(path)
    nodes = module.defined.get(name, [])
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    if functions:
        # a second definition or a decorator may change what the function returns
        plain = len(nodes) == 1 and not functions[-1].decorator_list and name not in module.imported
        return module, functions[-1], plain
    if name not in module.imported or not depth:
        return None
    package, _, attribute = module.imported[name].rpartition(".")
    file = module.find(package) if package else None
    return _definition(file, attribute, depth - 1) if file else None


def called(call: ast.Call) -> str:
    """Return the last name of a call's function, such as ``open``; "" where there is no name."""
    function = call.func
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


class _Scope:
    """A call of a function: its variables, and what they may be."""

    def __init__(
        self, module: Module, function: ast.FunctionDef, bound: Mapping[str, _Value], depth: int, steps: Iterator[int]
    ) -> None:
        self._module, self._function, self._depth, self._steps = module, function, depth, steps
        self._known = dict(bound)
        self._made: dict[str, list[ast.expr]] = {}
        self._touched: set[str] = set()
        self._open: set[str] = set()
        for node in _own_nodes(function):
            self._note(node)

    def returns(self) -> Iterator[_Value]:
        """Yield what each ``return`` gives; for a generator, each ``yield``."""
        for node in _own_nodes(self._function):
            if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and node.value is not None:
                value = self.value(node.value)
                yield value if isinstance(node, ast.Return) else _union([value, _Value(certain=False)])

    def _note(self, node: ast.AST) -> None:
        """Note what a statement makes of a variable."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
            self._bind(node.target, node.value)
        elif isinstance(node, (ast.For, ast.comprehension)):
            self._bind(node.target, node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._bind(node.optional_vars, node.context_expr)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "extend", "insert")
            and node.args
        ):
            self._bind(node.func.value, node.args[-1])
        # a call whose result is dropped may change its arguments in place
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value) not in _HARMLESS:
            self._touched |= {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._made.setdefault(target.id, []).append(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = (
                value.elts
                if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
                else itertools.repeat(value)
            )
            for one, part in zip(target.elts, parts, strict=False):
                self._bind(one, part)
        # ``x[0] = y`` puts y into x
        elif isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
            self._bind(target.value, value)

    def value(self, node: ast.expr | None) -> _Value:
        """Return what an expression may be.

        Raises:
            _TooLongError: so many expressions were looked at that the answer would take too long.
        """
        if next(self._steps, None) is None:
            raise _TooLongError
        if node is None or isinstance(node, ast.Constant):
            text = node.value if node is not None and isinstance(node.value, str) else ""
            return _Value(words=frozenset({text}), text=True, certain=False) if text else _Value()
        if isinstance(node, ast.Name):
            return self._named(node.id)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return self._together([self.value(one) for one in node.elts])
        if isinstance(node, ast.Starred):
            return self.value(node.value)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return self.value(node.elt)
        if isinstance(node, ast.IfExp):
            return _union([self.value(node.body), self.value(node.orelse)])
        if isinstance(node, ast.BoolOp):
            return _union(map(self.value, node.values))
        if isinstance(node, ast.NamedExpr):
            return self.value(node.value)
        return self._made_of(node)

    def _made_of(self, node: ast.expr) -> _Value:
        """Return what an expression may be that is built of parts, such as a sum, a call or a dictionary."""
        if isinstance(node, ast.BinOp):
            both = _union([self.value(node.left), self.value(node.right)])
            of_text = any(
                isinstance(one, (ast.Constant, ast.JoinedStr)) for one in (node.left, node.right)
            ) or isinstance(node.op, (ast.Div, ast.Mod))
            # ``a + b`` of texts is a path, of lists a list
            return both.path() if of_text else both
        if isinstance(node, ast.JoinedStr):
            parts = [self.value(one.value if isinstance(one, ast.FormattedValue) else one) for one in node.values]
            return _union(parts).path()
        if isinstance(node, ast.Dict):
            return self._of_dict(node)
        if isinstance(node, ast.Subscript):
            return self._part(self.value(node.value), node.slice)
        if isinstance(node, ast.Attribute):
            return _union([_UNKNOWN, _Value(words=self.value(node.value).words | {node.attr})])
        return self._of_call(node) if isinstance(node, ast.Call) else _UNKNOWN

    def _together(self, values: list[_Value]) -> _Value:
        """Return a list of values as a single value. A list with sound cannot be cut, whatever else is in the list."""
        sound = next((one for one in values if one.shown().media == {"sound"}), None)
        return _union(values) if sound is None else _Value(media=frozenset({"sound"}), certain=sound.shown().certain)

    def _named(self, name: str) -> _Value:
        """Return what a variable may be; its name becomes a word of the value."""
        # a variable made of itself (``x = f(x)``) adds nothing new, and must not be followed for ever
        if name in self._open:
            return _Value()
        if name not in self._made:
            known = self._known.get(name)
            return _Value(_UNKNOWN.media, frozenset({name}), certain=False) if known is None else known
        self._open.add(name)
        value = _union([*map(self.value, self._made[name]), *([self._known[name]] if name in self._known else [])])
        self._open.discard(name)
        words = value.words | {name} if value.words or value.text or value.field else value.words
        return _Value(
            value.media, words, value.text, value.field, value.doc, value.certain and name not in self._touched
        )

    def _of_dict(self, node: ast.Dict) -> _Value:
        entries = {
            key.value: value for key, value in zip(node.keys, node.values, strict=True) if isinstance(key, ast.Constant)
        }
        kind = entries.get("type")
        if {"array", "sampling_rate"} <= set(entries) or (
            isinstance(kind, ast.Constant) and str(kind.value).startswith("audio")
        ):
            return _SOUND
        return _STRETCH if _SPAN & set(entries) else _union([*map(self.value, node.values), _Value(certain=False)])

    def _part(self, whole: _Value, key: ast.expr) -> _Value:
        """Return an element of a value, or a field of the doc."""
        words = self.value(key).words
        if whole.doc:
            return _Value(words=words, field=True, certain=False)
        return _Value(whole.media, whole.words | words, whole.text, whole.field, certain=whole.certain)

    def _of_call(self, node: ast.Call) -> _Value:
        name, given = called(node), [*node.args, *(one.value for one in node.keywords)]
        medium = next(
            (
                one.value.value
                for one in node.keywords
                if one.arg == "media_type" and isinstance(one.value, ast.Constant)
            ),
            None,
        )
        if medium is not None:
            return _union([_Value(words=frozenset({str(medium)}), text=True, certain=False)])
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if (
            name in _PIL
            and owner is not None
            # PIL's module goes by names such as Image or PILImage
            and any("image" in one.id.lower() for one in ast.walk(owner) if isinstance(one, ast.Name))
        ):
            return _IMAGE
        if (
            name == "convert"
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and node.args[0].value in ("RGB", "L", "RGBA")
        ):
            return _IMAGE
        if name in ("get", "getattr") and given:
            whole, key = (
                (owner, given[0]) if owner is not None else (given[0], given[1] if len(given) > 1 else given[0])
            )
            return self._part(self.value(whole), key)
        if name in _READERS:
            return _FRAMES
        if name in _TEXT:
            return _union(
                self.value(one) for one in [*given, *([owner] if owner is not None and name != "listdir" else [])]
            ).path()
        if name in _ALTERED and owner is not None:
            return self.value(owner)
        if name in _SAME and owner is None:
            return _union(map(self.value, given))
        return self._of_function(node, name)

    def _of_function(self, node: ast.Call, name: str) -> _Value:
        """Return what a call of another function may give: a function of the task's modules is followed."""
        # an import inside the function comes before the names of the module
        imported = self._local_import(name)
        found = _definition(*imported) if imported else _definition(str(self._module.path), name)
        if not isinstance(node.func, ast.Name) or found is None or not self._depth:
            words = frozenset({name}).union(*(self.value(one).words for one in node.args))
            return _Value(_UNKNOWN.media, words, certain=False)
        module, function, single = found
        arguments = [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
        bound = dict.fromkeys(arguments, _UNKNOWN)
        bound |= dict(zip(arguments, map(self.value, node.args), strict=False))
        bound |= {one.arg: self.value(one.value) for one in node.keywords if one.arg in bound}
        # the steps are shared, so that all calls together stay within the limit
        value = _union(_Scope(module, function, bound, self._depth - 1, self._steps).returns())
        words = value.words | {name} if value.text or value.field else value.words
        return _Value(value.media, words, value.text, value.field, certain=value.certain and single)

    def _local_import(self, name: str) -> tuple[str, str] | None:
        """Return the file and the original name of a name imported inside this function; None where it is not."""
        for node in _own_nodes(self._function):
            if isinstance(node, ast.ImportFrom):
                alias = next((one for one in node.names if (one.asname or one.name) == name), None)
                file = self._module.find(f"{'.' * node.level}{node.module or ''}") if alias else None
                if alias and file:
                    return file, alias.name
        return None


def table() -> str:
    """Return the table for the installed host and our tasks: a row for each function that a task names."""
    manager, asked = catalog.task_manager(), set()

    def noted(path: str, name: str) -> Media:
        asked.add((path, name))
        return UNREAD

    with catalog.quietly(), mock.patch.object(facts, "shown_by", noted):
        for name in manager.all_tasks:
            list(facts.leaves(manager, name))
    rows = []
    for path, name in asked:
        shown = shown_by(path, name)
        media = shown.media | ({"clip"} if shown == UNKNOWN and _speaks_of_video(path, name) else set())
        file = path.replace("\\", "/").rpartition("/tasks/")[2]
        rows.append((file, name, digest(path), " ".join(sorted(media)), "certain" if shown.certain else ""))
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write(("file", "function", "digest", "media", "certain"))
    for row in sorted(rows):
        write(row)
    return text.getvalue()


def _speaks_of_video(path: str, name: str) -> bool:
    """Return whether the source of a function has the word, where the code does not tell what is shown."""
    nodes = Module.of(path).defined.get(name, ())
    return any("video" in ast.unparse(node).lower() or ".mp4" in ast.unparse(node) for node in nodes)


def place() -> Path:
    """Return the file of the table for the installed host."""
    return ROOT / "configs" / f"host-{compat.host_version()}.csv"


if __name__ == "__main__":
    made = table()
    same = place().is_file() and place().read_text(encoding="utf-8") == made
    if "--write" in sys.argv:
        place().write_text(made, encoding="utf-8")
    print(
        "the table is as the code has it"
        if same
        else "written"
        if "--write" in sys.argv
        else "the table differs; --write writes it"
    )
