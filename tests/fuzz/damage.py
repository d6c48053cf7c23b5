"""Ways to break a file: its text, its lines, its tree of values, or what lies in its place.

Each takes a stream of random numbers and the file, changes it where it lies, and says in a word what it did. Trees are
changed at a place that is drawn by its *shape* (``results/*/patch/analysis/fip``), so that the rare key of one object
is met as often as the common one of a hundred.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import yaml

Tree = Any
Step = str | int


class Raw(str):
    """Text that goes into a file as it is, in place of a value."""


DEEP = 3000  # levels: beyond Python's limit of recursion
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    9,
    10,
    -5,
    0.5,
    -0.5,
    1e-9,
    1.5,
    99,
    1e6,
    10**9,
    2**31,
    2**63,
    -(2**63),
    2**64,
    1e300,
    5e-324,
    10**400,
    -(10**400),
    -0.0,
)
RAW_NUMBERS = ("NaN", "Infinity", "-Infinity", "1e400", "1" + "0" * 5000, "-0", "1E+2", "00", "0x10", "1_000", ".5")
TEXTS = (
    "", " ", "x", "0", "1", "nan", "None", "null", "true", "a/b", "../../x", "/etc/passwd", "é", "猫" * 5, "x" * 20_000, "a,b", "=1+1", "'", '"', "\\",
    "a\nb", "a\r\nb", "\t", "\0", "\x1b[31mred\x1b[0m", "\u202egnp.exe", "\u2028", "\ud800", "a\udfffb", "\ufeff", "{{ 7*7 }}", "{x}", "%s%n", "%(x)s",
    "<b>x</b>", "::error::x", "*", "[", "toy_*", "(a+)+$", "2026-13-45", "none", "strict", "1e5", "²", "٣", "１",
)  # fmt: skip
CONTAINERS = (
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"a": 1},
    [0] * 1000,
    ["x"] * 3,
    [1, "x"],
    {"1": {"2": 3}},
    [[0, 0, 9, 9]],
    [True],
)
KEYS = (
    "failed",
    "error",
    "swapped",
    "wrong_image",
    "baselines",
    "lent",
    "tst",
    "excluded",
    "fields",
    "regions",
    "judge",
    "alias",
    "",
    "2",
    "10",
    "x" * 5000,
    "\ud800",
    "é",
    "__class__",
)


def value(stream: Random, old: Any = None) -> Any:
    """Anything in place of a value; half of the time of another type."""
    kind = stream.random()
    if kind < 0.15:
        return stream.choice((None, None, True, False))
    if kind < 0.4:
        return stream.choice(NUMBERS)
    if kind < 0.5:
        return Raw(stream.choice(RAW_NUMBERS))
    if kind < 0.7:
        return stream.choice(TEXTS)
    if kind < 0.85:
        return copy.deepcopy(stream.choice(CONTAINERS))
    if kind < 0.87:
        return Raw("[" * DEEP + "]" * DEEP)
    if kind < 0.89:
        return Raw('{"a":' * DEEP + "1" + "}" * DEEP)
    return _near(stream, old)


def _near(stream: Random, old: Any) -> Any:
    """A value like the old one: another number, the number as text, the text as a number, the one value in a list."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, (int, float)):
        old = old if abs(old) < 1e100 else 1
        return stream.choice((old + 1, -old, old * 2, old / 2, str(old), float(old), [old], old * 1e6, {"value": old}))
    if isinstance(old, str):
        return stream.choice((old.upper(), old + " ", old[:-1], [old], {"name": old}, old * 2, old + "\n"))
    if isinstance(old, list):
        return stream.choice(
            (
                old[:-1],
                old + old,
                old[::-1],
                old + [None],
                {str(i): one for i, one in enumerate(old)},
                [old],
                tuple(old)[:1],
            )
        )
    if isinstance(old, dict):
        return stream.choice((list(old), list(old.values()), {}, [old], str(old)[:100]))
    return stream.choice((0, "", []))


# --- trees ----------------------------------------------------------------------------------------


def places(tree: Tree) -> dict[tuple[Step, ...], list[tuple[Step, ...]]]:
    """The paths of a tree by shape: what differs in its number in a list alone is of one shape."""
    out: dict[tuple[Step, ...], list[tuple[Step, ...]]] = {}
    for path in _paths(tree, ()):
        out.setdefault(tuple("*" if isinstance(step, int) else step for step in path), []).append(path)
    return out


def _paths(tree: Tree, path: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    if isinstance(tree, (dict, list)):
        for step, one in tree.items() if isinstance(tree, dict) else enumerate(tree[:40]):
            yield (*path, step)
            yield from _paths(one, (*path, step))


def drawn(stream: Random, tree: Tree) -> tuple[Step, ...] | None:
    """One path, each shape as likely as the next; None in a tree without one."""
    found = places(tree)
    return stream.choice(found[stream.choice(sorted(found, key=repr))]) if found else None


def at(tree: Tree, path: Sequence[Step]) -> Tree:
    for step in path:
        tree = tree[step]
    return tree


def tree_changed(stream: Random, tree: Tree) -> tuple[Tree, str]:
    """A changed copy of a tree, and what was changed."""
    tree = copy.deepcopy(tree)
    path = drawn(stream, tree)
    if path is None or stream.random() < 0.02:
        return value(stream, tree), "all replaced"
    parent, last = at(tree, path[:-1]), path[-1]
    how = stream.choice(
        ("replace", "replace", "replace", "replace", "delete", "rename", "insert", "swap", "copy", "twice")
    )
    where = "/".join(map(str, path))[:120]
    if how == "replace":
        parent[last] = value(stream, parent[last])
        said = repr(parent[last])[:60]
    elif how == "delete":
        del parent[last]
        said = ""
    elif how == "insert":
        inner = parent[last] if isinstance(parent[last], (dict, list)) else parent
        new = value(stream, None)
        if isinstance(inner, dict):
            inner[stream.choice(KEYS)] = new
        else:
            inner.insert(stream.randint(0, len(inner)), new)
        said = repr(new)[:60]
    elif isinstance(parent, list) or how == "swap" or how == "copy":
        other = drawn(stream, tree) or path
        said = "/".join(map(str, other))[:120]
        inside = other[: len(path)] == path or path[: len(other)] == other
        one, two = copy.deepcopy(parent[last]), copy.deepcopy(at(tree, other))
        if not inside:
            if how != "copy":
                at(tree, other[:-1])[other[-1]] = one
            parent[last] = two
    elif how == "rename":
        new_key = stream.choice((str(last) + " ", str(last).upper(), stream.choice(list(parent)), stream.choice(KEYS)))
        parent[new_key] = parent.pop(last)
        said = repr(new_key)[:40]
    else:
        parent[Twice(last)] = value(stream, parent[last])
        said = ""
    return tree, f"{how} {where} {said}"


class Twice(str):
    """A key that is there already: written a second time."""

    __slots__ = ()

    def __new__(cls, key: Any) -> Twice:
        return super().__new__(cls, f"\1{key}")


def _marked(tree: Tree, raws: list[str]) -> Tree:
    """The tree with a token in place of each raw text."""
    if isinstance(tree, Raw):
        raws.append(str(tree))
        return f"\1RAW{len(raws) - 1}\1"
    if isinstance(tree, dict):
        return {key: _marked(one, raws) for key, one in tree.items()}
    return [_marked(one, raws) for one in tree] if isinstance(tree, (list, tuple)) else tree


def json_text(tree: Tree) -> str:
    """A tree as JSON, with what JSON has no words for."""
    raws: list[str] = []
    text = json.dumps(_marked(tree, raws))
    for i, raw in enumerate(raws):
        text = text.replace(f'"\\u0001RAW{i}\\u0001"', raw)
    return text.replace('"\\u0001', '"')


def yaml_text(tree: Tree) -> str:
    """A tree as YAML, likewise."""
    raws: list[str] = []
    text = yaml.safe_dump(_marked(tree, raws), sort_keys=False, allow_unicode=False)
    for i, raw in enumerate(raws):
        text = text.replace(f'"\\x01RAW{i}\\x01"', raw)
    return text.replace("\\x01", "")


# --- files of each form ---------------------------------------------------------------------------


def _json(stream: Random, path: Path) -> str:
    tree = json.loads(path.read_bytes())
    said = []
    for _ in range(_some(stream)):
        tree, one = tree_changed(stream, tree)
        said.append(one)
        if isinstance(tree, Raw):
            break
    path.write_text(json_text(tree), encoding="utf-8")
    return "; ".join(said)


def _jsonl(stream: Random, path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines:
        return _bytes(stream, path)
    i = stream.randrange(len(lines))
    alike = (
        stream.random() < 0.15
    )  # the same change on every line: two thirds of a reader's checks are of what all have in common
    seed = stream.random()
    said = ""
    for place in range(len(lines)) if alike else (i,):
        own = Random(seed)
        tree = json.loads(lines[place])
        for _ in range(_some(own)):
            if isinstance(tree, Raw):
                break
            tree, said = tree_changed(own, tree)
        lines[place] = json_text(tree)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return f"line {'*' if alike else i + 1}: {said}"


def _yaml(stream: Random, path: Path) -> str:
    if stream.random() < 0.25:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        i = stream.randrange(len(lines)) if lines else 0
        odd = stream.choice(YAML_LINES)
        path.write_text("\n".join([*lines[:i], odd, *lines[i:]]) + "\n", encoding="utf-8")
        return f"line {i + 1}: {odd[:40]!r}"
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    tree, said = tree_changed(stream, tree)
    path.write_text(yaml_text(tree), encoding="utf-8")
    return said


YAML_LINES = (
    "\tx: 1", "x: [", "- 1", "1: 2", "null: 1", "? [a, b]\n: 1", "<<: {a: 1}", "<<: 1", "x: &a [*a]", "x: *nothing", "x: !!python/object:os.system x", "x: !!python/name:os.system",
    "x: !function utils.f", "x: 2026-01-01", "x: 12:30:45", "x: !!binary aGk=", "x: !!set {a, b}", "x: !!timestamp bad", "x: !!int bad", "x: !!float x", "%YAML 9.9", "---", "...", "x: \x07", "rules: []",
    "schema: 1", "lol: &l1 [x,x,x,x,x,x,x,x,x]\nlol2: &l2 [*l1,*l1,*l1,*l1,*l1,*l1,*l1,*l1,*l1]\nlol3: &l3 [*l2,*l2,*l2,*l2,*l2,*l2,*l2,*l2]\nlol4: [*l3,*l3,*l3,*l3,*l3,*l3,*l3,*l3]", "x: " + "[" * 500 + "]" * 500,
)  # fmt: skip


def _csv(stream: Random, path: Path) -> str:
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    i = stream.randrange(len(rows))
    j = stream.randrange(len(rows[i]) or 1)
    how = stream.choice(("cell", "cell", "cell", "cell", "short", "long", "head", "twice", "drop"))
    if how == "cell":
        new = value(stream, rows[i][j])
        rows[i][j] = str(new)[:200_000]
    elif how == "short":
        rows[i] = rows[i][:j]
    elif how == "long":
        rows[i].append("more")
    elif how == "head":
        rows[0][j % len(rows[0])] = stream.choice(("", "ITEM", "item", "model", "n", "x", rows[0][0]))
    elif how == "twice":
        rows.append(rows[i])
    else:
        rows = [row[:j] + row[j + 1 :] for row in rows]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    text = out.getvalue()
    if stream.random() < 0.1:
        text = stream.choice(
            (
                text.replace(",", ";"),
                text.replace("\n", "\r"),
                text + '"',
                text.replace(",", "\0", 1),
                '"' + "x" * 200_000 + text,
                text.replace("\n", "\n\n"),
            )
        )
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return f"{how} {i + 1}:{j + 1} {rows[min(i, len(rows) - 1)][j : j + 1]!r}"[:120]


def _parquet(stream: Random, path: Path) -> str:
    """A column of another type, away or renamed; a cell that is null or another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pq.read_table(path).to_pylist()
    column = stream.choice(sorted(rows[0]))
    how = stream.choice(("null", "column", "column", "drop", "rename", "none"))
    if how == "null":
        stream.choice(rows)[column] = None
    elif how == "column":
        new = stream.choice((1, 1.5, float("nan"), "x", b"\xff", [1], {"a": 1}, None, True, [[1, 2]], 2**62))
        rows = [{**row, column: new} for row in rows]
    elif how == "drop":
        rows = [{key: one for key, one in row.items() if key != column} for row in rows]
    elif how == "rename":
        rows = [{(key + "2" if key == column else key): one for key, one in row.items()} for row in rows]
    else:
        rows = []
    table = pa.Table.from_pylist(rows) if rows else pa.table({"id": pa.array([], pa.string())})
    pq.write_table(table, path)
    return f"{how} {column}"


def _sqlite(stream: Random, path: Path) -> str:
    new = stream.choice(
        (None, 1, 1.5, "", "x", "[", "[1]", "[true]", b"\xff", "\ud800".encode("utf-8", "surrogatepass"))
    )
    column = stream.choice(("answers", "reason", "raw", "model", "kind", "key"))
    with sqlite3.connect(path) as db:
        try:
            db.execute(
                stream.choice(
                    (f"UPDATE verdicts SET {column} = ?", f"UPDATE verdicts SET {column} = ? WHERE rowid = 1")
                ),
                (new,),
            )
        except sqlite3.Error:
            db.execute("DROP TABLE verdicts")
        if stream.random() < 0.2:
            db.execute(
                stream.choice(
                    (
                        "DROP TABLE verdicts",
                        "ALTER TABLE verdicts RENAME TO other",
                        f"ALTER TABLE verdicts RENAME COLUMN {column} TO x",
                    )
                )
            )
    db.close()
    return f"{column} = {new!r}"


def _lines(stream: Random, path: Path) -> str:
    """The order and number of lines."""
    lines = path.read_bytes().splitlines(keepends=True) or [b""]
    i = stream.randrange(len(lines))
    how = stream.choice(("shuffle", "twice", "drop", "cut", "join", "blank", "half", "all twice", "garbage"))
    if how == "shuffle":
        stream.shuffle(lines)
    elif how == "twice":
        lines.insert(i, lines[i])
    elif how == "drop":
        del lines[i]
    elif how == "cut":
        lines[i] = lines[i][: len(lines[i]) // 2] + b"\n"
    elif how == "join":
        lines[i] = lines[i].rstrip(b"\n")
    elif how == "blank":
        lines.insert(
            i,
            stream.choice(
                (
                    b"\n",
                    b"   \n",
                    b"null\n",
                    b"[]\n",
                    b"{}\n",
                    b"1\n",
                    b'"x"\n',
                    b"{\n",
                    b"\x00\n",
                    b"[" * 100_000 + b"\n",
                )
            ),
        )
    elif how == "half":
        lines = lines[: len(lines) // 2]
    elif how == "all twice":
        lines = lines + lines
    else:
        lines.append(stream.randbytes(40))
    path.write_bytes(b"".join(lines))
    return f"{how} at {i + 1}"


def _bytes(stream: Random, path: Path) -> str:
    """Bytes that are no text, another encoding, a file that is cut."""
    data = path.read_bytes()
    i = stream.randrange(len(data) + 1)
    ways: dict[str, Callable[[], bytes]] = {
        "cut": lambda: data[:i],
        "empty": lambda: b"",
        "newline": lambda: b"\n",
        "flip": lambda: data[:i] + bytes([stream.randrange(256)]) + data[i + 1 :],
        "random": lambda: data[:i] + stream.randbytes(20) + data[i:],
        "noise": lambda: stream.randbytes(500),
        "nul": lambda: data[:i] + b"\0" + data[i:],
        "bom": lambda: b"\xef\xbb\xbf" + data,
        "utf-16": lambda: data.decode("utf-8", "replace").encode("utf-16"),
        "utf-32": lambda: data.decode("utf-8", "replace").encode("utf-32"),
        "latin-1": lambda: data[:i] + b"\xe9" + data[i:],
        "crlf": lambda: data.replace(b"\n", b"\r\n"),
        "null": lambda: b"null",
        "list": lambda: b"[]",
        "object": lambda: b"{}",
        "text": lambda: b'"x"',
        "number": lambda: b"1",
        "deep": lambda: b"[" * 100_000,
        "deep object": lambda: b'{"a":' * 50_000,
        "big number": lambda: b"1" * 10_000,
        "surrogate": lambda: data[:i] + b"\xed\xa0\x80" + data[i:],
        "twice": lambda: data + data,
        "backwards": lambda: data[::-1],
        "gzip": lambda: b"\x1f\x8b\x08\x00" + data,
        "digit": lambda: data.replace(
            bytes([d := stream.choice(b"0123456789")]), bytes([stream.choice(b"0123456789")]), 1 + d % 2
        ),
        "quotes": lambda: data.replace(b'"', b"'", 2),
        "spaces": lambda: data.replace(b" ", b"\xc2\xa0", 1),
    }
    how = stream.choice(list(ways))
    path.write_bytes(ways[how]())
    return f"bytes: {how} at {i}"


def _place(stream: Random, path: Path) -> str:
    """Something else where the file was."""
    how = stream.choice(
        ("gone", "folder", "dangling", "loop", "link", "null device", "full folder", "unreadable", "renamed")
    )
    if how == "renamed":
        path.rename(path.with_name(stream.choice(("x", "é", "\udcff", "a\nb", " ", "*", "-x")) + path.name))
        return how
    if how == "unreadable":
        os.chmod(path, 0)
        return how
    data = path.read_bytes()
    path.unlink()
    if how in ("folder", "full folder"):
        path.mkdir()
        if how == "full folder":
            (path / path.name).write_bytes(data)
    elif how == "dangling":
        path.symlink_to(path.parent / "nothing")
    elif how == "loop":
        path.symlink_to(path)
    elif how == "link":
        aside = path.with_name("aside")
        aside.write_bytes(data)
        path.symlink_to(aside)
    elif how == "null device":
        path.symlink_to("/dev/null")
    return how


def _some(stream: Random) -> int:
    return 1 if stream.random() < 0.75 else stream.randint(2, 5)


FORMS: dict[str, Callable[[Random, Path], str]] = {
    ".json": _json, ".jsonl": _jsonl, ".yaml": _yaml, ".csv": _csv, ".parquet": _parquet, ".sqlite": _sqlite,
}  # fmt: skip


def damage(stream: Random, path: Path, others: Sequence[Path] = ()) -> str:
    """Break a file; says how.

    Args:
        stream: of random numbers.
        path: the file.
        others: true files of the same form, whose content may stand in its place.
    """
    draw = stream.random()
    form = FORMS.get(path.suffix)
    try:
        if draw < 0.72 and form is not None:
            return form(stream, path)
        if draw < 0.82:
            return _lines(stream, path)
        if draw < 0.94:
            return _bytes(stream, path)
        if draw < 0.97 and others:
            other = stream.choice(list(others))
            path.write_bytes(other.read_bytes())
            return f"another file: {other.name}"
        return _place(stream, path)
    except (OSError, ValueError, TypeError, KeyError, LookupError, RecursionError, yaml.YAMLError) as error:
        if draw >= 0.72:
            raise
        return f"{_bytes(stream, path)} (as {type(error).__name__} came of the form)"  # it was broken before
