"""``lmms-patch prune --from`` and ``lmms-patch gap``: what reads finished runs."""

# ruff: noqa: F401, F811 - fixtures are imported
import json
import shutil
from collections import Counter

import polars as pl
import pytest

from lmms_patch.app.cli import main
from lmms_patch.runs import samples
from tests.harness.tst.pruning import (
    DOCS,
    KINDS,
    command,
    guess,
    ids,
    kind_of,
    knows,
    pruned,
    refused,
    runs,
    scores_of,
    table_of,
    tasks,
)

# --- by the scores of a finished run ------------------------------------------------------------


def changed(runs, tmp_path, **columns):
    """A copy of the cross-validation with other values in some columns of its table."""
    out = shutil.copytree(runs / "tst", tmp_path / "changed")
    path = table_of(out)
    samples.write(path, pl.read_parquet(path).with_columns(**columns), samples.about_of(path))
    return out


def with_test(**fields):
    return pl.col("tst").struct.with_fields(**fields)


@pytest.mark.parametrize("by", ["s_minus_chance", "s"])
def test_a_finished_cross_validation_gives_the_order(runs, tasks, tmp_path, knows, by):
    """The 30 highest scores of its table, in one pass; there is nothing to cross-validate but for the judge."""
    scores = scores_of(runs / "tst", by)
    assert len(scores) == 120
    run = runs / "tst" if by == "s" else next((runs / "tst").rglob("*_results.json"))
    assert command(tasks, tmp_path, "--from", run, "--by", by, "--budget", "30") == 0
    gone = [one["doc_id"] for one in pruned(tmp_path)["removed"]]
    assert len(gone) == 30
    assert [scores[i] for i in gone] == pytest.approx(sorted(scores.values(), reverse=True)[:30])
    assert [len(done["removed"]) for done in json.loads((tmp_path / "history.json").read_text())["rounds"]] == [30]
    assert knows.docs == [120, 90, 90, 90], "the judge: all, the kept, a matched and an unmatched control"
    assert {KINDS[i % 3] for i in gone} == {"planted"}


def test_of_several_runs_the_newest_of_the_task_gives_the_scores(runs, tasks, tmp_path, knows, capsys):
    shutil.copytree(runs / "tst", tmp_path / "all" / "tst")
    shutil.copyfile(table_of(runs / "rci", "toy_rci2"), tmp_path / "all" / "2099_samples_toy_rci2.parquet")
    assert command(tasks, tmp_path / "out", "--from", tmp_path / "all", "--budget", "30") == 0
    own = next((tmp_path / "all" / "tst").rglob("*_results.json"))
    assert f"{own}: taken as the newest with a tst task of toy of 2 runs here (1 left aside)" in capsys.readouterr().err
    assert len(pruned(tmp_path / "out")["removed"]) == 30


def test_unscored_docs_never_go(runs, tasks, tmp_path, knows):
    """Docs 0..19 without a score: of 120 docs 100 can go, as the budget of 110 would have more."""
    without = pl.when(pl.col("doc_id") >= 20).then(pl.col("tst").struct.field("s_minus_chance"))
    run = changed(runs, tmp_path, tst=with_test(s_minus_chance=without))
    assert command(tasks, tmp_path / "out", "--from", run, "--budget", "110") == 0
    assert ids(tmp_path / "out", "kept") == [f"doc-{i:03}" for i in range(20)]


def test_a_run_of_another_version_of_the_docs_is_refused(runs, tasks, tmp_path, knows, capsys):
    gold = pl.when(pl.col("doc_id") == 7).then(pl.lit("something else")).otherwise("gold")
    assert command(tasks, tmp_path / "out", "--from", changed(runs, tmp_path, gold=gold)) == 2
    assert "doc 7 has the gold 'something else' in this run" in refused(capsys)


def test_by_delta_goes_by_what_training_added(runs, tasks, tmp_path, knows):
    """Written into the table as a language model's run has it: the size docs gained most."""
    gained = pl.when(pl.col("doc_id") % 3 == 2).then(0.5).otherwise(0.0)
    run = changed(runs, tmp_path, tst=with_test(delta=gained))
    assert command(tasks, tmp_path / "out", "--from", run, "--by", "delta", "--budget", "40") == 0
    assert Counter(map(kind_of, ids(tmp_path / "out", "removed"))) == {"size": 40}


# --- the gap ------------------------------------------------------------------------------------


def by_hand(places):
    """Docs, and the mean scores with and without images: all but every tenth doc are right.

    A guess says yes to lamps and chairs.
    """
    full = [i % 10 != 0 for i in places]
    blind = [guess(DOCS[i]["question"]) == DOCS[i]["answer"] for i in places]
    return len(places), sum(full) / len(full), sum(blind) / len(blind)


def row_of(n, full, blind):
    return [str(n), f"{full:.3f}", f"{blind:.3f}", f"{full - blind:+.3f}"]


def test_the_gap_before_and_after(runs, tasks, tmp_path, knows, capsys):
    """All 30 removed docs are planted, which a blind guess solves: the gap grows from 108 - 80 of 120 to that of the other 90."""
    assert command(tasks, tmp_path, "--budget", "30", "--batch", "10") == 0
    kept = [int(key.removeprefix("doc-")) for key in ids(tmp_path, "kept")]
    assert by_hand(range(120)) == (120, 108 / 120, 80 / 120)
    capsys.readouterr()
    assert main(["gap", str(runs / "mixed"), str(runs / "mixed"), "--subset", str(tmp_path)]) == 0
    header, _, original, after, verdict, *_ = capsys.readouterr().out.splitlines()
    assert header.split() == ["docs", "n", "full", "blind", "gap"]
    assert original.split()[:5] == ["original", *row_of(*by_hand(range(120)))]
    assert after.split()[:5] == ["pruned", *row_of(*by_hand(kept))]
    (_, full, blind), (_, full_left, blind_left) = by_hand(range(120)), by_hand(kept)
    wider = (full_left - blind_left) - (full - blind)
    assert verdict.startswith(f"the gap is wider on the kept docs: {wider:+.3f} [+")
