"""A damaged samples table is refused in one line, or gives the numbers of its rows, reckoned here by polars alone.

Case 17 alone: ``pytest tests/fuzz/test_tables.py -k "damaged and 17"``.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random

import polars as pl
import pytest

from lmms_patch.errors import RecordError
from lmms_patch.runs import samples
from lmms_patch.runs.run import find
from tests.fuzz.damage import damage
from tests.making.files import reworked
from tests.sizes import size
from tests.stored import unpack

CELLS = ("rci", "prci", "pcri", "trci")
"""Kinds whose cells are rows with a number: a doc's best cell is the best of these."""


def numbers(folder):
    """Every number of the runs in a folder, by task, filter and name."""
    results = [one for run in find([folder]) for one in run.results]
    return {(one.task, one.filter, name): told for one in results for name, told in one.measures.items()}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return unpack(tmp_path_factory.mktemp("stored"))


@pytest.fixture(scope="module")
def tables(runs, tmp_path_factory):
    """Tables of the stored runs, each alone in a folder, with few draws; and their numbers."""
    out = {}
    for table in sorted(runs.glob("*/*_samples_*")):
        if table.stat().st_size < 40_000:
            alone = Path(shutil.copy(table, tmp_path_factory.mktemp(table.parent.name)))
            reworked(alone, settings=replace(samples.about_of(alone).settings, draws=20))
            out[alone] = numbers(alone.parent)
    return out


def by_hand(table):
    """FIP and MPP as the rows of a table have them, where they are means of rows' scores."""
    told, frame = json.loads(pl.read_parquet_metadata(table)["lmms_patch"]), pl.read_parquet(table)
    asked, out = told["asked"], {}
    for name in told["filters"] if asked["kind"] in CELLS and not told["quick"] else ():
        if told["native"][name]["form"] == "mean":
            rows = frame.filter(pl.col("filter") == name) if len(told["filters"]) > 1 else frame
            found = of_rows(rows, asked["grids"], told["metrics"][asked["metric"]])
            out |= {(told["task"], name, key): value for key, value in found.items()}
    return out


def of_rows(rows, grids, higher):
    full = rows.filter(view=0).drop_nulls("score")
    out = {"fip": full["score"].mean()}
    for n in grids:
        left = full.clear()
        if "excluded" in rows.columns:
            left = rows.filter(pl.col("excluded").list.eval(pl.element().struct.field("set") == str(n)).list.any())
        docs = full.join(left, on="doc_id", how="anti")
        own = ~pl.col("swapped").fill_null(False) if "swapped" in rows.columns else True
        cells = rows.filter(own, n=n).drop_nulls(["cell", "score"]).join(docs, on="doc_id", how="semi")
        best = pl.col("score").max() if higher else pl.col("score").min()
        out[f"mpp{n}"] = cells.group_by("doc_id").agg(best)["score"].mean()
    return out


def test_the_numbers_of_whole_tables_are_those_by_hand(tables):
    hands = {(table, *key): value for table in tables for key, value in by_hand(table).items()}
    assert len(hands) > 30
    assert {key: tables[key[0]][key[1:]].value for key in hands} == pytest.approx(hands)


@pytest.fixture(scope="module")
def read():
    """Damages of tables that were read all the same."""
    return []


@pytest.mark.parametrize("number", range(size(60, 3000)))
def test_a_damaged_table_is_refused_or_gives_the_numbers_of_its_rows(tables, tmp_path, read, number):
    stream = Random(number)
    true = stream.choice(list(tables))
    table = Path(shutil.copy(true, tmp_path))
    if stream.random() < 0.05:
        reworked(table, keep=pl.col("doc_id") % 7 > 0)
        how = "a rank's part is missing"
    else:
        how = damage(stream, table)
    try:
        found = numbers(tmp_path)
    except RecordError as error:
        said = str(error).replace(str(tmp_path), "")
        assert "\n" not in said
        assert len(said) < 800
        return
    read.append(how)
    kind = how.split()[0]
    if kind in ("cell,", "null,", "drop,", "rename,", "type,", "a"):
        right = by_hand(table)
    elif kind in ("bytes:", "lines:", "footer:"):
        # a byte of a page is seen, and a byte of the footer may change what else is told, but no mean of the rows
        right = by_hand(true) if kind != "footer:" else {}
    else:
        right = {key: one.value for key, one in tables[true].items()}
    for key, value in right.items():
        assert found[key].value == pytest.approx(value) or (found[key].value is None and found[key].reason), (how, key)


def test_some_damaged_tables_are_read(read):
    assert len(read) > 10


def test_what_lies_beside_tables_changes_no_number(runs, tmp_path):
    """The host's results file, kept numbers, and the tables of other tasks: damaged or gone."""
    true = {}
    for number in range(size(12, 200)):
        stream, folder = Random(number), tmp_path / str(number)
        name = stream.choice(("demo_b", "f1", "losses", "magic", "turned"))
        shutil.copytree(runs / name, folder)
        if name not in true:
            true[name] = numbers(folder)
        how = damage(stream, next(folder.glob(stream.choice(("*_results.json", "*_numbers.parquet")))))
        if stream.random() < 0.3:
            stream.choice(sorted(folder.glob("*_samples_*"))).unlink()
        found = numbers(folder)
        assert found, how
        assert found.items() <= true[name].items(), how
