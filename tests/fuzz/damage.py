"""Ways to break a file: its bytes, its lines, its tree of values, or what lies in its place.

Each takes a stream of random numbers and the file, changes it where it lies, and returns what it did. Trees are changed
at a place that is drawn by its *shape* (``results/*/patch/analysis/fip``), so that the rare key of one object is met as
often as the common one of a hundred.
"""

from __future__ import annotations

import contextlib
import copy
import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from lmms_patch.runs.samples import KEY

Step = str | int


class Raw(str):
    """Text that goes into a file as it is, in place of a value."""


DEEP = 3000  # levels: beyond Python's limit of recursion
NUMBERS = (
    0, 1, -1, 2, 3, 10, -5, 0.5, 1e-9, 1.5, 99, 10**9, 2**31, 2**63, -(2**63), 2**64, 1e300, 5e-324, 10**400, -0.0,
)  # fmt: skip
RAWS = (
    "NaN", "Infinity", "-Infinity", "1e400", "1" + "0" * 5000, "-0", "1E+2", "00", "0x10", "1_000", ".5", "[" * DEEP + "]" * DEEP,
    '{"a":' * DEEP + "1" + "}" * DEEP,
)  # fmt: skip
TEXTS = (
    "", " ", "x", "0", "1", "nan", "null", "true", "a/b", "../../x", "/etc/passwd", "é", "猫" * 5, "x" * 20_000, "a,b", "=1+1", "'", '"', "\\", "a\r\nb",
    "\t", "\0", "\x1b[31mred\x1b[0m", "\u202egnp.exe", "\u2028", "\ud800", "a\udfffb", "\ufeff", "{{ 7*7 }}", "{x}", "%s%n", "<b>x</b>", "::error::x",
    "*", "[", "toy_*", "(a+)+$", "2026-13-45", "none", "1e5", "²", "１",
)  # fmt: skip
HOLDERS = (
    [], {}, [None], [[]], {"": None}, {"a": 1}, [0] * 1000, ["x"] * 3, [1, "x"], {"1": {"2": 3}}, [[0, 0, 9, 9]], [True], None, True, False,
)  # fmt: skip
KEYS = (
    "failed", "error", "swapped", "baselines", "tst", "excluded", "fields", "regions", "", "2", "x" * 5000, "\ud800", "é", "__class__",
)  # fmt: skip
YAML_LINES = (
    "\tx: 1", "x: [", "- 1", "1: 2", "null: 1", "? [a, b]\n: 1", "<<: 1", "x: &a [*a]", "x: *nothing", "x: !!python/object:os.system x", "x: !function utils.f",
    "x: 2026-01-01", "x: 12:30:45", "x: !!binary aGk=", "x: !!set {a, b}", "x: !!timestamp bad", "x: !!int bad", "%YAML 9.9", "---", "...", "x: \x07", "rules: []",
    "schema: 1", "x: " + "[" * 500 + "]" * 500, "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c]",
)  # fmt: skip
LINES = (b"\n", b"   \n", b"null\n", b"[]\n", b"{}\n", b"1\n", b'"x"\n', b"{\n", b"\x00\n", b"[" * 100_000 + b"\n")
WHOLE = (
    b"", b"\n", b"null", b"[]", b"{}", b'"x"', b"1", b"[" * 100_000, b'{"a":' * 50_000, b"1" * 10_000,
    b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n",
)  # fmt: skip


def value(stream: Random, old: Any) -> Any:
    """Return anything in place of a value: of any type, or like the old one."""
    anything = stream.choice((NUMBERS, TEXTS, HOLDERS, RAWS, None))
    if anything is RAWS:
        return Raw(stream.choice(RAWS))
    return _near(stream, old) if anything is None else copy.deepcopy(stream.choice(anything))


def _near(stream: Random, old: Any) -> Any:
    """Return another number, the number as text, the text in a list, a list without its last value."""
    near: tuple[Any, ...] = ([old], str(old)[:100], {"value": old})
    if isinstance(old, (int, float)) and abs(old) < 1e100:
        near += (old + 1, -old, old * 2, old / 2, not old, float(old), old * 1e6)
    elif isinstance(old, str):
        near += (old.upper(), old + " ", old[:-1], old * 2, old + "\n")
    elif isinstance(old, list):
        near += (old[:-1], old + old, old[::-1], [*old, None])
    elif isinstance(old, dict):
        near += (list(old), list(old.values()))
    return stream.choice(near)


# --- trees ----------------------------------------------------------------------------------------


def _paths(tree: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    if isinstance(tree, (dict, list)):
        for step, inner in tree.items() if isinstance(tree, dict) else enumerate(tree[:40]):
            yield (*path, step)
            yield from _paths(inner, (*path, step))


def drawn(stream: Random, tree: Any) -> tuple[Step, ...] | None:
    """Return the path of a value, each shape as likely as the next; None in a tree without values."""
    shapes = defaultdict(list)
    for path in _paths(tree):
        shapes[tuple("*" if isinstance(step, int) else step for step in path)].append(path)
    return stream.choice(shapes[stream.choice(sorted(shapes, key=repr))]) if shapes else None


def _at(tree: Any, path: tuple[Step, ...]) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def tree_changed(stream: Random, tree: Any) -> tuple[Any, str]:
    """Return a changed copy of a tree, and what was changed."""
    tree = copy.deepcopy(tree)
    path = drawn(stream, tree)
    if path is None or stream.random() < 0.02:
        return value(stream, tree), "all replaced"
    parent, last = _at(tree, path[:-1]), path[-1]
    how = stream.choice(("replace",) * 4 + ("delete", "insert", "exchange", "copy", "rename", "twice"))
    if how == "delete":
        del parent[last]
    elif how == "insert":
        holder = parent[last] if isinstance(parent[last], (dict, list)) else parent
        if isinstance(holder, dict):
            holder[stream.choice(KEYS)] = value(stream, None)
        else:
            holder.insert(stream.randint(0, len(holder)), value(stream, None))
    elif how in ("exchange", "copy"):
        second = drawn(stream, tree) or path
        if second[: len(path)] != path and path[: len(second)] != second:  # neither lies in the other
            first = copy.deepcopy(parent[last])
            parent[last] = copy.deepcopy(_at(tree, second))
            if how == "exchange":
                _at(tree, second[:-1])[second[-1]] = first
    elif how == "rename" and isinstance(parent, dict):
        parent[stream.choice((f"{last} ", str(last).upper(), *parent, *KEYS))] = parent.pop(last)
    elif how == "twice" and isinstance(parent, dict):
        parent[f"\1{last}"] = value(stream, parent[last])  # the key is written a second time: see ``_filled``
    else:
        parent[last] = value(stream, parent[last])
    return tree, f"{how} {'/'.join(map(str, path))[:120]}"


def _marked(tree: Any, raws: list[str]) -> Any:
    """Return the tree with a token in place of each raw text."""
    if isinstance(tree, Raw):
        raws.append(str(tree))
        return f"\1RAW{len(raws) - 1}\1"
    if isinstance(tree, dict):
        return {key: _marked(inner, raws) for key, inner in tree.items()}
    return [_marked(inner, raws) for inner in tree] if isinstance(tree, list) else tree


def _filled(text: str, raws: list[str], mark: str) -> str:
    """Return the text with raw texts in place of their tokens, and doubled keys as they were."""
    for place, raw in enumerate(raws):
        text = text.replace(f'"{mark}RAW{place}{mark}"', raw)
    return text.replace(mark, "")


def json_text(tree: Any) -> str:
    """Return a tree as JSON, with what JSON has no words for."""
    raws: list[str] = []
    return _filled(json.dumps(_marked(tree, raws)), raws, "\\u0001")


def yaml_text(tree: Any) -> str:
    """Return a tree as YAML, likewise."""
    raws: list[str] = []
    return _filled(yaml.safe_dump(_marked(tree, raws), sort_keys=False), raws, "\\x01")


def _changes(stream: Random, tree: Any) -> tuple[Any, str]:
    """Return a tree changed at a place, seldom at several."""
    done = []
    for _ in range(stream.choice((1, 1, 1, 3))):
        if not isinstance(tree, Raw):
            tree, how = tree_changed(stream, tree)
            done.append(how)
    return tree, "; ".join(done)


# --- files of each form ---------------------------------------------------------------------------


def _json(stream: Random, path: Path) -> str:
    tree, how = _changes(stream, json.loads(path.read_bytes()))
    path.write_text(json_text(tree), encoding="utf-8")
    return how


def _jsonl(stream: Random, path: Path) -> str:
    """Change a line; seldom each line alike, since a reader checks what all have in common."""
    lines = path.read_text(encoding="utf-8").splitlines()
    own, places = stream.random(), [stream.randrange(len(lines))] if stream.random() < 0.85 else range(len(lines))
    for place in places:
        tree, how = _changes(Random(own), json.loads(lines[place]))
        lines[place] = json_text(tree)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return f"{len(places)} lines to {place + 1}: {how}"


def _yaml(stream: Random, path: Path) -> str:
    if stream.random() < 0.25:
        lines, odd = path.read_text(encoding="utf-8").splitlines(), stream.choice(YAML_LINES)
        lines.insert(stream.randint(0, len(lines)), odd)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return f"line {odd[:40]!r}"
    tree, how = _changes(stream, yaml.safe_load(path.read_text(encoding="utf-8")))
    path.write_text(yaml_text(tree), encoding="utf-8")
    return how


def _csv(stream: Random, path: Path) -> str:
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    i = stream.randrange(len(rows))
    j = stream.randrange(len(rows[i]))
    how = stream.choice(("cell", "cell", "cell", "short", "long", "head", "twice", "drop", "mark"))
    if how == "drop":
        rows = [row[:j] + row[j + 1 :] for row in rows]
    elif how == "head":
        rows[0][j] = stream.choice(("", "ITEM", "item", "model", "n", "x", rows[0][0]))
    else:
        cell = [*rows[i][:j], str(value(stream, rows[i][j]))[:200_000], *rows[i][j + 1 :]]
        ways = {"cell": [cell], "short": [rows[i][:j]], "long": [[*rows[i], "more"]], "twice": [rows[i], rows[i]]}
        rows[i : i + 1] = ways.get(how, [rows[i]])
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    marks = ((",", ";"), ("\n", "\r"), ("\n", "\n\n"), (",", '"'), (",", "\0")) if how == "mark" else (("", ""),)
    path.write_bytes(written.getvalue().replace(*stream.choice(marks)).encode("utf-8", "surrogatepass"))
    return f"{how} {i + 1}:{j + 1}"


def _parquet(stream: Random, path: Path) -> str:
    """Change a column, a cell, the rows, or what the footer says; checksums are of what is written then."""
    table = pq.read_table(path)
    place = stream.randrange(table.num_columns)
    name, column = table.column_names[place], table.column(place)
    how = stream.choice(("cell",) * 4 + ("footer",) * 3 + ("rows",) * 3 + ("type", "type", "drop", "rename", "null"))
    if how == "footer" and table.schema.metadata and KEY in table.schema.metadata:
        tree, done = _changes(stream, json.loads(table.schema.metadata[KEY]))
        table = table.replace_schema_metadata({KEY: json_text(tree)})
        how += f": {done}"
    elif how == "rows":
        rows = list(range(table.num_rows))
        i = stream.randrange(len(rows))
        ways = (
            *([*rows, i], [*rows, *rows], rows[:i] + rows[i + 1 :], rows[:i], [], rows[::-1]),
            *(stream.sample(rows, len(rows)), [i if one == i + 1 else one for one in rows]),
        )
        table = table.take(pa.array(ways[stream.randrange(len(ways))], pa.int64()))
    elif how == "drop":
        table = table.drop_columns([name])
    elif how == "rename":
        table = table.rename_columns([f"{one}2" if one == name else one for one in table.column_names])
    elif how == "type":
        new = stream.choice((1, 1.5, float("nan"), "x", b"\xff", [1], {"a": 1}, None, True, [[1, 2]], 2**62))
        table = table.set_column(place, name, pa.array([new] * table.num_rows))
    else:
        table = table.set_column(place, name, _cells(stream, column, how == "null"))
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)
    return f"{how}, {name}"


def _cells(stream: Random, column: pa.ChunkedArray, empty: bool) -> pa.Array:
    """Return a column with another value in a row, seldom in each."""
    values, each = column.to_pylist(), stream.random() < 0.15
    full = [i for i, one in enumerate(values) if one is not None] or [0]
    i = stream.choice(full)
    for _ in range(20):
        old = values[i]
        new = None if empty else tree_changed(stream, old)[0] if isinstance(old, (dict, list)) else value(stream, old)
        if isinstance(old, float) and stream.random() < 0.2:
            new = stream.choice((float("nan"), float("inf"), -float("inf")))
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return pa.array([new if each or at == i else one for at, one in enumerate(values)], column.type)
    return pa.array(values[::-1], column.type)


# --- bytes, lines, places -------------------------------------------------------------------------


def _lines(stream: Random, path: Path) -> str:
    """Change the order and the number of lines."""
    lines = path.read_bytes().splitlines(keepends=True) or [b""]
    i = stream.randrange(len(lines))
    before, line, after = lines[:i], lines[i], lines[i + 1 :]
    ways = [
        *([*before, line, line, *after], before + after, before, lines + lines, stream.sample(lines, len(lines))),
        *([*before, line[: len(line) // 2] + b"\n", *after], [*before, line.rstrip(b"\n"), *after]),
        *([*before, stream.choice(LINES), line, *after], [*lines, stream.randbytes(40)]),
    ]
    how = stream.randrange(len(ways))
    path.write_bytes(b"".join(ways[how]))
    return f"lines: way {how} at {i + 1}"


def _bytes(stream: Random, path: Path) -> str:
    """Write bytes that are no text, another encoding, a part of the file, or something else than the file."""
    data = path.read_bytes()
    i = stream.randrange(len(data) + 1)
    digit, new = (bytes([one]) for one in stream.sample(b"0123456789", 2))
    ways = [
        *(data[:i] + some + data[i:] for some in (b"\0", b"\xe9", b"\xed\xa0\x80", stream.randbytes(20))),
        *(data[:i], data[:i] + stream.randbytes(1) + data[i + 1 :], data + data, data[::-1], stream.randbytes(500)),
        *(b"\xef\xbb\xbf" + data, b"\x1f\x8b\x08\x00" + data, data.decode("utf-8", "replace").encode("utf-16")),
        *(data.replace(old, other, 1) for old, other in ((digit, new), (b'"', b"'"), (b" ", b"\xc2\xa0"))),
        *(data.replace(b"\n", b"\r\n"), *WHOLE),
    ]
    how = stream.randrange(len(ways))
    path.write_bytes(ways[how])
    return f"bytes: way {how} at {i}"


def _place(stream: Random, path: Path) -> str:
    """Put something else where the file was."""
    aside = path.with_name(stream.choice(("x", "é", "\udcff", "a\nb", " ", "*", "-x")) + path.name)
    links = {"dangling": "nothing", "loop": path, "link": aside, "device": "/dev/null"}
    how = stream.choice(("gone", "renamed", "unreadable", "folder", "full folder", *links))
    if how == "unreadable":
        path.chmod(0)
        return how
    path.rename(aside)
    if "folder" in how:
        path.mkdir()
    if how == "full folder":
        aside.rename(path / path.name)
    elif how not in ("renamed", "link"):
        aside.unlink()
    if how in links:
        path.symlink_to(links[how])
    return how


FORMS = {".json": _json, ".jsonl": _jsonl, ".yaml": _yaml, ".csv": _csv, ".parquet": _parquet}


def damage(stream: Random, path: Path) -> str:
    """Break a file, and return how."""
    ways = [FORMS.get(path.suffix, _bytes)] * 7 + [_lines, _bytes, _bytes, _place]
    try:
        return stream.choice(ways)(stream, path)
    except (ValueError, TypeError, LookupError, RecursionError, OSError, yaml.YAMLError) as error:
        return f"{_bytes(stream, path)} (as {type(error).__name__} came of the form)"  # it was broken before
