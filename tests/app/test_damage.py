"""Damaged tables, by a thousand ways: one line and status 2, or numbers that the table really has; never a traceback."""

import contextlib
import io
import json
import re
import shutil

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from lmms_patch.app import cli
from lmms_patch.runs import samples
from tests.making.edited import rewrite
from tests.making.runs import mc_run, write_run
from tests.sizes import size

CASES = size(60, 3000)
TASK = "toy_rci2"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run, another of the same model, and what each command says of them."""
    folder = tmp_path_factory.mktemp("whole")
    write_run(folder / "run", {TASK: mc_run(n=40)})
    write_run(folder / "other", {TASK: mc_run(n=40, answers=1)})
    (folder / "rules.yaml").write_text("{schema: 1, rules: [{name: a, metric: fip, min: 0.1}]}")
    return folder, {command: said(folder, folder / "run", command) for command in COMMANDS}


COMMANDS = ("show", "gate", "compare")


def said(folder, run, command):
    """Type a command; its status, the words that it printed without the run's place, and what it told on stderr."""
    more = {"gate": ["--config", str(folder / "rules.yaml")], "compare": [str(folder / "other")], "show": ["--wide"]}
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = cli.main([command, str(run), *more[command]])
    # lines are folded by the length of the path
    return status, " ".join(out.getvalue().replace(str(run), "RUN").split()), err.getvalue()


def is_one_line(ended, table):
    """Whether a command ended with status 2 and one line that names the table, or what is missing."""
    status, out, err = ended
    lines = [line for line in err.splitlines() if line.startswith("lmms-patch: ")]
    assert (status, out, len(lines)) == (2, "", 1), ended
    assert not re.search("unexpected error|Traceback", err), err
    assert len(lines[0].replace(str(table), "")) < 600, err
    return True


def damaged(whole, tmp_path, damage):
    """A run whose table is damaged, and its table."""
    shutil.copytree(whole[0] / "run", tmp_path / "run")
    (path,) = (tmp_path / "run").glob("*_samples_*.parquet")
    damage(path)
    return tmp_path / "run", path


# --- bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(CASES))
def test_bytes_changed_cut_or_put_in(whole, tmp_path, seed):
    """A file with a changed byte is refused, or (in what nobody reads) says what the whole one says."""
    stream = np.random.default_rng(seed)

    def damage(path):
        data = bytearray(path.read_bytes())
        at = int(stream.integers(len(data)))
        for place in range(at, min(at + int(stream.integers(1, 5)), len(data))):
            data[place] = int(stream.integers(256))
        if seed % 4 == 1:
            data = data[:at]
        elif seed % 4 == 2:
            data[at:at] = stream.bytes(int(stream.integers(1, 20)))
        path.write_bytes(data)

    run, table = damaged(whole, tmp_path, damage)
    command = COMMANDS[seed % 3]
    ended = said(whole[0], run, command)
    if ended[:2] != whole[1][command][:2]:
        assert is_one_line(ended, table)


# --- columns, types, ranges, rows -------------------------------------------------------------------------------------

NAMES = [
    "doc_id", "view", "kind", "n", "cell", "row", "col", "score", "best", "gold", "choices", "label", "category",
    "cluster", "stratum", "images", "options", "shown", "references",
]  # fmt: skip
OTHERS = {
    "dropped": lambda name: lambda frame: frame.drop(name),
    "null": lambda name: lambda frame: frame.with_columns(pl.lit(None, frame.schema[name]).alias(name)),
    "text": lambda name: lambda frame: frame.with_columns(pl.lit("x").alias(name)),
    "float": lambda name: lambda frame: frame.with_columns(pl.lit(1.5).alias(name)),
    "list": lambda name: lambda frame: frame.with_columns(pl.lit([1], pl.List(pl.Int64)).alias(name)),
    "large": lambda name: (
        lambda frame: frame.with_columns(
            pl.lit(32_000 if frame.schema[name].is_integer() else 1e300)
            .cast(frame.schema[name], strict=False)
            .alias(name)
        )
    ),
    "negative": lambda name: (
        lambda frame: frame.with_columns(pl.lit(-1).cast(frame.schema[name], strict=False).alias(name))
    ),
    "turned": lambda name: lambda frame: frame.with_columns(pl.col(name).reverse()),
    "the first": lambda name: lambda frame: frame.with_columns(pl.col(name).first()),
}
"""What a column becomes."""
ROWS = {
    "one less": lambda frame: frame.head(-1),
    "one twice": lambda frame: pl.concat([frame, frame.tail(1)]),
    "one in place of another": lambda frame: pl.concat([frame.head(-1), frame.head(1)]),
    "a doc less": lambda frame: frame.filter(pl.col("doc_id") > 0),
    "a doc twice": lambda frame: pl.concat([frame, frame.filter(doc_id=0)]),
    "none": lambda frame: frame.head(0),
    "twice": lambda frame: pl.concat([frame, frame]),
}
EVERY = [(name, how) for name in NAMES for how in OTHERS]


@pytest.mark.parametrize(("name", "how"), EVERY[:: size(3, 1)])
def test_a_column_of_another_kind_is_one_line_or_numbers(whole, tmp_path, name, how):
    def damage(path):
        with contextlib.suppress(pl.exceptions.PolarsError):
            rewrite(path, OTHERS[how](name))

    run, table = damaged(whole, tmp_path, damage)
    for command in COMMANDS:
        ended = said(whole[0], run, command)
        assert not re.search("unexpected error|Traceback", ended[2]), ended[2]
        assert ended[0] in (0, 1, 3) or is_one_line(ended, table)
        assert not re.search(r"\bnan\b|\binf\b", ended[1])


@pytest.mark.parametrize("how", ROWS)
def test_rows_lost_or_doubled_are_one_line(whole, tmp_path, how):
    run, table = damaged(whole, tmp_path, lambda path: rewrite(path, ROWS[how]))
    for command in COMMANDS:
        assert is_one_line(said(whole[0], run, command), table)


# --- the footer -------------------------------------------------------------------------------------------------------


def keys(told, path=()):
    """Every place in the footer."""
    for name, value in told.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from keys(value, (*path, name))


VALUES = (None, -1, 1e300, "x" * 2000, [], {}, [[1]], True, {"a": {"b": 1}}, "\u202e<script>")


@pytest.mark.parametrize("seed", range(CASES))
def test_a_footer_with_a_key_dropped_or_of_another_type(whole, tmp_path, seed):
    stream = np.random.default_rng(seed)

    def footer(told):
        places = list(keys(told))
        *above, last = places[int(stream.integers(len(places)))]
        inside = told
        for name in above:
            inside = inside[name]
        if seed % 3:
            inside[last] = VALUES[int(stream.integers(len(VALUES)))]
        else:
            del inside[last]
        return told

    run, table = damaged(whole, tmp_path, lambda path: rewrite(path, footer=footer))
    for command in COMMANDS:
        ended = said(whole[0], run, command)
        assert not re.search("unexpected error|Traceback", ended[2]), ended[2]
        assert ended[0] in (0, 1, 3) or is_one_line(ended, table)


# --- no table at all --------------------------------------------------------------------------------------------------

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"


def no_footer(path):
    pq.write_table(pq.read_table(path).replace_schema_metadata({}), path)


def folder(path):
    path.unlink()
    path.mkdir()


def no_json(path):
    pq.write_table(pq.read_table(path).replace_schema_metadata({samples.KEY: b"{"}), path)


def deep(path):
    told = json.dumps({"schema": 1, "asked": 0}).replace("0", "[" * 20_000 + "]" * 20_000)
    pq.write_table(pq.read_table(path).replace_schema_metadata({samples.KEY: told}), path)


NONE = {
    "empty": lambda path: path.write_bytes(b""),
    "pointer": lambda path: path.write_bytes(POINTER),
    "text": lambda path: path.write_text("doc_id,score\n1,2\n"),
    "a link to nothing": lambda path: (path.unlink(), path.symlink_to("gone")),
    "a link to itself": lambda path: (path.unlink(), path.symlink_to(path.name)),
    "a folder": folder,
    "no footer": no_footer,
    "no JSON": no_json,
    "deep": deep,
}


@pytest.mark.parametrize("how", NONE)
def test_what_is_no_table_is_one_line(whole, tmp_path, how):
    run, table = damaged(whole, tmp_path, NONE[how])
    for command in COMMANDS:
        assert is_one_line(said(whole[0], run, command), table)
    if how == "pointer":
        assert "git lfs pull" in said(whole[0], run, "show")[2]
