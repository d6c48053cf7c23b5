"""What each command says of a run that left docs out: estimates, marked as such, and nothing read from what was not asked."""

import json
import math
import shutil
from argparse import Namespace

import polars as pl
import pytest
from msgspec import structs

from lmms_patch.app.cli import main
from lmms_patch.harness.asking import in_portions as portions
from lmms_patch.rci.grids import NO_ENDS
from lmms_patch.runs import samples
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.reading import asked_in_words
from lmms_patch.runs.run import find
from tests.harness import toys
from tests.harness.askers import PerRequestK, written
from tests.harness.toys import rows, write_task
from tests.making.analyses import analysis

DOCS = 150


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of each: a full run, a quick run, and a run with early exit."""
    folder, out = tmp_path_factory.mktemp("tasks"), tmp_path_factory.mktemp("runs")
    options = {"null": 20, "pilot": 30, "precision": 0.12, "category": "part", "seed": 1}
    write_task(folder, "toy", rows(DOCS, part=lambda i: "even" if i % 2 else "odd"), metadata={"lmms_patch": options})
    (folder / "toy_exit.yaml").write_text(
        "task: toy_exit\nbase: toy\ngrids: [3]\nexit: true\nclass: !function lmms_patch.Wrap\n"
    )
    patch = pytest.MonkeyPatch()
    patch.setattr(portions, "SECONDS", 1e9)
    cli = Namespace(
        output_path=None, process_with_media=False, reasoning_tags=None, model="m", model_args="", batch_size=1
    )
    for name in ("toy_rci3", "toy_rci3_quick", "toy_exit"):
        written(toys.run(PerRequestK(), name, folder, cli_args=cli), out / name, name)
    patch.undo()
    return out


def result_of(runs, name):
    return find([runs / name])[0].results[0]


def plans(runs, name):
    """How each doc was asked, with the scores of its full image and of its best cell; null where it was not."""
    rows = result_of(runs, name).frame().filter(pl.col("swapped").fill_null(False).not_())
    best = pl.col("score").filter(pl.col("view") > 0).max().alias("best")
    docs = rows.group_by("doc_id", maintain_order=True).agg(pl.col("score", "quick").first(), best)
    return docs.with_columns(pl.col("quick").struct.unnest())


def copied(runs, tmp_path, **about):
    """A copy of the quick run whose footer says something else."""
    [path] = shutil.copytree(runs / "toy_rci3_quick", tmp_path / "copy").glob("*_samples_*.parquet")
    samples.write(path, pl.read_parquet(path), structs.replace(samples.about_of(path), **about))
    return tmp_path / "copy"


def said(capsys, *command, status=0):
    assert main([str(part) for part in command]) == status
    return capsys.readouterr().out


def test_the_numbers_are_those_of_the_formulas_in_the_docs(runs):
    """docs/tables.md, by hand: each doc stands for as many as its probability says."""
    whole, best, docs = [], [], plans(runs, "toy_rci3_quick")
    for doc in docs.iter_rows(named=True):
        expected = doc["full"] or 0.0
        [plan] = [one for one in doc["expected"] or () if one["set"] == "3"] or [{"before": 0.0, "after": 0.0}]
        before, after = plan["before"] or 0.0, plan["after"] or 0.0
        full, cells = expected, before
        if doc["steps"] >= 1:
            full += (doc["score"] - expected) / doc["p_full"]
            cells += (after - before) / doc["p_full"]
        if doc["steps"] == 2:
            cells += (doc["best"] - after) / doc["p_cells"]
        whole.append(full)
        best.append(cells)
    found = result_of(runs, "toy_rci3_quick").analysis
    grid = found.grids[3]
    assert len(whole) == DOCS
    assert found.fip.value == pytest.approx(sum(whole) / DOCS)
    assert grid.mpp.value == pytest.approx(sum(best) / DOCS)
    assert grid.index.value == pytest.approx(1 - sum(best) / sum(whole))
    assert grid.shares.docs == docs.filter(block=0).height == 30


@pytest.mark.parametrize("name", ["toy_rci3_quick", "toy_exit"])
def test_analyze_gives_the_run_s_own_numbers_again(runs, name, capsys, tmp_path):
    said(capsys, "analyze", runs / name, "--by-category", "--json", tmp_path / "out.json")
    (task,) = json.loads((tmp_path / "out.json").read_text())["runs"][0]["tasks"]
    stored = result_of(runs, name).analysis
    assert task["analysis"] == to_json(stored)
    parts = task["categories"]
    assert set(parts) == {"even", "odd"}
    own = [(parts[part]["fip"]["value"], parts[part]["n_docs"]) for part in parts]
    assert sum(value * docs for value, docs in own) / DOCS == pytest.approx(stored.fip.value, abs=0.02)


def test_compare_finds_no_difference_to_the_full_run(runs, capsys, tmp_path):
    told = said(capsys, "compare", runs / "toy_rci3", runs / "toy_rci3_quick", "--json", tmp_path / "out.json")
    assert "cannot be told apart on toy" in told
    (task,) = json.loads((tmp_path / "out.json").read_text())["tasks"]
    found = {number["name"]: number["difference"] for number in task["numbers"]}
    for name in ("fip", "mpp3", "rci3"):
        one = found[name]
        assert one["low"] <= 0 <= one["high"]
        assert one["high"] - one["low"] > 0.02, "docs that were not asked are not known"


def test_a_board_sets_quick_and_full_runs_side_by_side_by_their_intervals(runs, capsys, tmp_path):
    other = copied(runs, tmp_path, model=structs.replace(result_of(runs, "toy_rci3_quick").about.model, name="other"))
    told = said(capsys, "leaderboard", runs, other, "--output", tmp_path / "board")
    assert "not comparable" not in told
    page = (tmp_path / "board" / "tables" / "results.md").read_text()
    line = {row.split("|")[2].strip(): row for row in page.splitlines()}
    assert "sampled" in line["other"]
    assert "sampled" not in line["toy"], "a whole run of the same model goes before one that left docs out"


def test_what_needs_every_cell_of_every_doc_is_refused(runs, capsys, tmp_path):
    again = copied(runs, tmp_path, run="another")
    assert main(["analyze", str(runs / "toy_rci3_quick"), str(again)]) == 2
    assert "a run that left views out cannot be taken together with others" in capsys.readouterr().err


def test_no_interval_is_sharper_than_that_of_the_docs_asked(runs):
    """FIP of a quick run against that of as many docs as were asked: its interval is no narrower than theirs would be at best."""
    fip = result_of(runs, "toy_rci3_quick").analysis.fip
    assert fip.high - fip.low > 2 * 1.96 * math.sqrt(fip.value * (1 - fip.value) / DOCS)
    assert plans(runs, "toy_rci3_quick").filter(pl.col("steps") > 0).height < DOCS


def test_a_quick_run_without_an_interval_of_the_full_pass_says_why_and_what_to_type():
    asked = {"calls": 500, "of": 1000, "docs": 80, "whole": 30, "estimated": True}
    lines = asked_in_words(
        analysis({"asked": asked, "grids": {3: {"n": 3, "full_pass": {"level": 0.95, "reason": NO_ENDS}}}})
    )
    assert (
        "no interval of what a full pass over these docs would print (grid 3): the few docs that are right decide"
        in lines
    )
    assert "without _quick" in lines
    assert "between" not in lines
