"""Count what makes the package heavy, and print each count beside its ceiling and its goal: ``python scripts/house.py [FOLDER] [--places]``.

``tests/test_house.py`` holds the package to the ceilings, so a count can only get better. Lower a ceiling when its
count has gone down.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOOSE_MODULES = "loose modules"
READERS = "runs"
"""The package that reads files: elsewhere no value should be looked up by a key that is a text."""
LOOSE = re.compile(r"\b(?:ones?|it|others?|that|own)\b", re.IGNORECASE)
"""Words that make a sentence lean on another sentence."""
NUMBERS = re.compile(r"ANY_INDEX|kind\.index|\b(?:mpp|[pct]?rci)|(?:drop|hidden|lowres)\||_steady|rotate_at|\btst\(")
"""What the source of a pattern has in it that takes names of numbers apart."""
LONG, WORD = 200, re.compile(r"\w+")
"""From how many characters on a text counts by its words, and what a word is."""
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass
class Module:
    """A module of the package.

    Attributes:
        place: its path below the package's folder.
        source: its text.
        nodes: every node of its tree.
        docstrings: line and column where a docstring begins, those of attributes too.
    """

    place: Path
    source: str
    nodes: list[ast.AST] = field(init=False)
    docstrings: set[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = list(ast.walk(ast.parse(self.source)))
        lines = (
            line
            for node in self.nodes
            for line in _block(node)
            if isinstance(line, ast.Expr) and _text(line.value) is not None
        )
        self.docstrings = {(line.lineno, line.col_offset) for line in lines}

    @property
    def package(self) -> str:
        """The package that the module is in; ``LOOSE_MODULES`` where it is in none."""
        return self.place.parts[0] if len(self.place.parts) > 1 else LOOSE_MODULES


@dataclass(frozen=True)
class Figure:
    """A count: what is counted, the places that count, and how they become a number.

    Attributes:
        title: what is counted.
        ceiling: the number that the package must not exceed; of a share of comments the number that it must reach.
        goal: the number to come to.
        places: yields ``(place, weight)`` of a module.
        total: makes one number of all weights.
        more: whether more is better.
    """

    title: str
    ceiling: float
    goal: float
    places: Callable[[Module], Iterator[tuple[str, float]]]
    total: Callable[[list[float]], float] = sum
    more: bool = False

    def kept(self, number: float) -> bool:
        """Return whether a number is no worse than the ceiling."""
        return number >= self.ceiling if self.more else number <= self.ceiling


def count(folder: Path) -> dict[str, tuple[float, list[str]]]:
    """Return by its title each figure's number, and the places that count, for the package in a folder."""
    found: dict[str, list[tuple[str, float]]] = {figure.title: [] for figure in FIGURES}
    for path in sorted(folder.rglob("*.py")):
        module = Module(
            path.relative_to(folder), path.read_text(encoding="utf-8")
        )  # one at a time: all trees together make a million objects
        for figure in FIGURES:
            found[figure.title] += [(f"{module.place}: {place}", weight) for place, weight in figure.places(module)]
    found[TEXT.title] = [
        (f"{path.relative_to(folder)}", path.stat().st_size / 1000)
        for path in sorted(folder.rglob("*"))
        if path.suffix in {".js", ".css", ".html", ".j2", ".yaml"}
    ]
    return {
        figure.title: (
            round(figure.total([weight for _, weight in places]), 1),
            [place for place, weight in places if weight],
        )
        for figure, places in zip(FIGURES, found.values(), strict=True)
    }


def percent(weights: list[float]) -> float:
    """Return the share of weights that are 1, in percent."""
    return 100 * sum(weights) / len(weights) if weights else 0.0


# --- what counts ----------------------------------------------------------------------------------


def tokens(module: Module) -> Iterator[tuple[str, float]]:
    """Count the tokens of code. An f-string is one token, as in Python 3.11 and before.

    A text of more than ``LONG`` characters counts by its words: a pattern or a list of words in one text weighs what it is.
    """
    count = depth = 0
    for token in tokenize.generate_tokens(io.StringIO(module.source).readline):
        name = tokenize.tok_name[token.type]
        depth -= name == "FSTRING_END"
        if not depth and name != "FSTRING_END" and token.type not in NO_CODE and token.start not in module.docstrings:
            long = token.type == tokenize.STRING and len(token.string) > LONG
            count += len(WORD.findall(token.string)) if long else 1
        depth += name == "FSTRING_START"
    yield "tokens", count


def tokens_of(package: str) -> Callable[[Module], Iterator[tuple[str, float]]]:
    """Return what counts the tokens of a package alone."""
    return lambda module: tokens(module) if module.package == package else iter(())


def keys(module: Module) -> Iterator[tuple[str, float]]:
    """Find where a value is looked up by a text: ``found["key"]``, ``found.get("key")``."""
    for node in module.nodes if module.package != READERS else ():
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            key = node.slice if _name(node.value) != "Literal" else None
        else:
            key = (
                next(iter(node.args), None)
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "get"
                else None
            )
        if _text(key) is not None:
            yield _at(node), 1


def or_empty(module: Module) -> Iterator[tuple[str, float]]:
    """Find ``... or {}``."""
    for node in module.nodes:
        if (
            isinstance(node, ast.BoolOp)
            and isinstance(node.op, ast.Or)
            and any(isinstance(one, ast.Dict) and not one.keys for one in node.values)
        ):
            yield _at(node), 1


def results(module: Module) -> Iterator[tuple[str, float]]:
    """Find classes that stand for a result: they hold a ``Result`` or a ``TaskRun``, or say base, kind and metric themselves."""
    for node in module.nodes if module.package != READERS else ():
        if isinstance(node, ast.ClassDef):
            held = {
                _name(line.target): ast.unparse(line.annotation)
                for line in node.body
                if isinstance(line, ast.AnnAssign)
            }
            if {"base", "kind", "metric"} <= held.keys() or any(
                re.fullmatch(r"(\w+\.)?(Result|TaskRun)( \| None)?", one) for one in held.values()
            ):
                yield node.name, 1


def patterns(module: Module) -> Iterator[tuple[str, float]]:
    """Find patterns that take the name of a number apart."""
    for node in module.nodes:
        pattern = (
            next(iter(node.args), None)
            if isinstance(node, ast.Call) and _name(getattr(node.func, "value", node)) == "re"
            else None
        )
        if pattern and NUMBERS.search(said := ast.unparse(pattern)):
            yield f"{pattern.lineno}: {said[:60]}", 1


def kinds(module: Module) -> Iterator[tuple[str, float]]:
    """Find where a row of the table of kinds is looked up."""
    for node in module.nodes:
        if isinstance(node, ast.Subscript) and _name(node.value) == "KINDS":
            yield _at(node), 1


def set_outside(module: Module) -> Iterator[tuple[str, float]]:
    """Find attributes that an object sets on a part that it holds: ``self.part.attribute = ...``.

    Each counts once in a module.
    """
    targets = (node for node in module.nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    deep = (ast.unparse(node) for node in targets if isinstance(node.value, ast.Attribute))
    yield from ((name, 1) for name in sorted({name for name in deep if name.startswith("self.")}))


def classes(module: Module) -> Iterator[tuple[str, float]]:
    """Measure each class in lines."""
    for node in module.nodes:
        if isinstance(node, ast.ClassDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def comments(module: Module) -> Iterator[tuple[str, float]]:
    """Mark which lines are comments alone."""
    yield from (("", float(line.lstrip().startswith("#"))) for line in module.source.splitlines())


def leaning(module: Module) -> Iterator[tuple[str, float]]:
    """Mark which functions have a docstring whose first line has a loose word."""
    for node in module.nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (text := ast.get_docstring(node)):
            yield node.name, float(bool(LOOSE.search(text.splitlines()[0])))


PACKAGES = {
    "present": (56_700, 38_000),
    "harness": (74_700, 62_000),
    "tst": (47_100, 22_000),
    "magic": (48_200, 20_000),
    "runs": (26_900, 22_000),
    "stats": (26_300, 25_000),
    "app": (24_400, 16_000),
    "rci": (19_700, 18_000),
    "ask": (20_700, 19_000),
    "compare": (9_000, 8_000),
    "gate": (8_000, 7_000),
    LOOSE_MODULES: (6_000, 4_000),
}
"""Package -> the ceiling and the goal of its tokens."""
TEXT = Figure("kB of other text: pages, styles, YAML", 243.0, 120.0, lambda module: iter(()))
FIGURES = [
    Figure("tokens of code", 367_200, 260_000, tokens),
    *(Figure(f"tokens of {name}", *bounds, tokens_of(name)) for name, bounds in PACKAGES.items()),
    TEXT,
    Figure("look-ups by a text, outside runs/", 600, 100, keys),
    Figure("or {}", 14, 15, or_empty),
    Figure("classes that stand for a result", 5, 2, results),
    Figure("patterns for names of numbers", 0, 0, patterns),
    Figure("look-ups in KINDS", 9, 16, kinds),
    Figure("attributes set on parts", 0, 0, set_outside),
    Figure("lines of the largest class", 200, 200, classes, lambda weights: max(weights, default=0)),
    Figure("% of lines that are comments", 2.0, 2.0, comments, percent, more=True),
    Figure("% of first lines that lean on a loose word", 12.8, 20.0, leaning, percent),
]


# --- parts of trees -------------------------------------------------------------------------------


def _block(node: ast.AST) -> list[ast.stmt]:
    """Return the statements below a node; none below an expression."""
    body = getattr(node, "body", None)
    return body if isinstance(body, list) else []


def _text(node: ast.AST | None) -> str | None:
    """Return the text that a node is; None for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _name(node: ast.AST) -> str:
    """Return the last part of a name: ``KINDS`` of ``spec.KINDS``; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _at(node: Any) -> str:
    """Return the line and the beginning of an expression."""
    return f"{node.lineno}: {ast.unparse(node)[:60]}"


def main(arguments: list[str]) -> None:
    """Print the table of a checkout, and with ``--places`` where each count comes from."""
    folder = next((Path(one) for one in arguments if not one.startswith("-")), ROOT)
    counted = count(folder / "lmms_patch")
    print(f"{'':45}{'now':>9}{'ceiling':>9}{'goal':>9}")
    for figure in FIGURES:
        number, places = counted[figure.title]
        print(f"{figure.title:45}{number:>9,}{figure.ceiling:>9,}{figure.goal:>9,}")
        if "--places" in arguments and figure.total is sum:
            print(*(f"    {place}" for place in places), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
