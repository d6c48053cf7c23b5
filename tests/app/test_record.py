"""The samples table is the record of a run: every command works on it alone, and on nothing beside it."""

import csv
import json
import re
import shutil

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from lmms_patch.app import cli
from lmms_patch.runs import samples
from tests.making.runs import mc_run, write_run

DOCS = 200
RULES = "{schema: 1, rules: [{name: score, metric: fip, min: 0.7}, {name: drop, metric: fip, max_drop: 0.05}]}"


def typed(capsys, *words):
    """Type a command; its status, and what it printed."""
    status = cli.main([str(word) for word in words])
    told = capsys.readouterr()
    return status, told.out, told.err


# --- results of another harness ---------------------------------------------------------------------------------------


def asked(seed, known):
    """Whether each of 200 docs is right on the full image and on four cells, shape (docs, 5); a wrong image earns a quarter."""
    stream = np.random.default_rng(seed)
    right = stream.random((DOCS, 5)) < 0.1
    right[:, 0] = np.arange(DOCS) < known * DOCS
    return right


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """Runs of two models with a table that polars wrote, and nothing else: the scores of each."""
    folder, scores = tmp_path_factory.mktemp("foreign"), {}
    for at, known in enumerate((0.9, 0.75)):
        right = scores[f"org/m{at}"] = asked(at, known)
        view, place = pl.col("view"), pl.Int16
        frame = pl.DataFrame(
            {
                "doc_id": np.repeat(np.arange(DOCS), 5),
                "view": np.tile(np.arange(5, dtype=np.int32), DOCS),
                "kind": ["full", *["cell"] * 4] * DOCS,
                "score": right.ravel().astype(float),
                "category": np.repeat(np.where(np.arange(DOCS) % 2, "odd", "even"), 5),
            }
        )
        cells = {"n": pl.lit(2, place), "cell": view.cast(place), "row": ((view - 1) // 2).cast(place)}
        cells["col"] = ((view - 1) % 2).cast(place)
        frame = frame.with_columns(pl.when(view > 0).then(value).alias(name) for name, value in cells.items())
        wrapped = {"base": "toy", "kind": "rci", "grids": [2], "metric": "acc", "options": {"category": "category"}}
        about = {"schema": 1, "task": "toy_rci2", "asked": wrapped, "metrics": {"acc": True}}
        about |= {"native": {"none": {"form": "mean"}}, "settings": {"chance": 0.25, "scale": 1.0}}
        about |= {"model": {"name": f"org/m{at}"}, "rows": len(frame), "docs": DOCS, "columns": frame.columns}
        (folder / f"m{at}").mkdir()
        path = folder / f"m{at}" / "2026_samples_toy_rci2.parquet"
        frame.write_parquet(path, metadata={"lmms_patch": json.dumps(about)})
    return folder, scores


def test_show_and_analyze(foreign, capsys):
    folder, scores = foreign
    right = scores["org/m0"]
    fip, mpp = right[:, 0].mean(), right[:, 1:].max(axis=1).mean()
    status, out, err = typed(capsys, "show", folder / "m0", "--wide")
    assert (status, err) == (0, "")
    for number in (f"{fip:.3f}", f"{mpp:.3f}", f"{1 - mpp / fip:+.3f}"):
        assert number in out
    status, out, err = typed(capsys, "analyze", folder / "m0", "--by-category")
    assert status == 0, err
    odd = right[1::2]
    assert f"{1 - odd[:, 1:].max(axis=1).mean() / odd[:, 0].mean():+.3f}" in out


def test_compare(foreign, capsys, tmp_path):
    folder, scores = foreign
    status, out, err = typed(capsys, "compare", folder / "m0", folder / "m1", "--json", tmp_path / "found.json")
    assert status == 0, err
    one, two = (scores[f"org/m{at}"][:, 0] for at in (0, 1))
    assert f"right in A only: {(one & ~two).sum()} docs, in B only: {(two & ~one).sum()}" in out
    assert f"{two.mean() - one.mean():.3f}" in out


def test_gate(foreign, capsys, tmp_path):
    (tmp_path / "rules.yaml").write_text(RULES)
    folder, _ = foreign
    words = ("--config", tmp_path / "rules.yaml", "--baseline")
    assert typed(capsys, "gate", folder / "m0", *words, folder / "m1")[0] == 0
    status, out, _ = typed(capsys, "gate", folder / "m1", *words, folder / "m0")
    assert status == 1
    assert "0.900 → 0.750 (-0.150" in out


def test_report_and_leaderboard(foreign, capsys, tmp_path):
    folder, scores = foreign
    for command in ("report", "leaderboard"):
        assert typed(capsys, command, folder, "--output", tmp_path / command)[0] == 0
    (row,) = [
        row
        for row in csv.DictReader((tmp_path / "leaderboard" / "tables" / "results.csv").open())
        if row["model"] == "org/m1"
    ]
    mpp = scores["org/m1"][:, 1:].max(axis=1).mean()
    assert [float(row[name]) for name in ("score", "mpp", "index")] == pytest.approx([0.75, mpp, 1 - mpp / 0.75])
    (one,) = [
        one
        for one in json.loads((tmp_path / "report" / "report.json").read_text())["results"]
        if one["model"] == "org/m1"
    ]
    assert one["measures"]["mpp2"]["value"] == pytest.approx(mpp)


def test_export_and_explore(foreign, capsys, tmp_path):
    folder, scores = foreign
    assert typed(capsys, "export", folder / "m0", "--output", tmp_path / "m0.csv")[0] == 0
    assert pl.read_csv(tmp_path / "m0.csv")["score"].to_list() == scores["org/m0"].ravel().tolist()
    assert typed(capsys, "explore", folder / "m0", "--export", tmp_path / "docs")[0] == 0
    assert sorted(path.suffix for path in folder.rglob("*") if path.is_file()) == [".parquet"] * 4, "tables and numbers"


# --- numbers that nobody reads back -------------------------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path):
    """Runs of two models, of two tasks each."""
    folder = tmp_path
    for at in (1, 2):
        run = {"toy_rci2": mc_run(n=100, answers=at), "more_rci2": mc_run(n=60, answers=at + 2)}
        write_run(folder / "runs" / f"m{at}", run, model_name=f"m{at}")
    return folder / "runs"


def everything(capsys, runs, out):
    """What gate, show, compare, report and board say."""
    (out / "rules.yaml").write_text(RULES)
    first, second = runs / "m1", runs / "m2"
    said = [
        typed(capsys, "show", first, "--wide", "--cells", "--chance"),
        typed(capsys, "compare", first, second),
        typed(capsys, "gate", first, "--config", out / "rules.yaml", "--baseline", second, "--json", out / "gate.json"),
    ]
    assert typed(capsys, "report", runs, "--output", out / "report")[0] == 0
    assert typed(capsys, "leaderboard", runs, "--output", out / "board")[0] == 0
    tables = [*sorted((out / "report" / "tables").glob("*")), *sorted((out / "board" / "tables").glob("*"))]
    verdicts = json.loads((out / "gate.json").read_text())
    return (
        said,
        verdicts["verdicts"],
        {str(path.relative_to(out)): path.read_text().replace(str(out), "") for path in tables},
    )


def test_a_number_changed_in_a_results_file_changes_nothing(runs, capsys, tmp_path):
    (tmp_path / "before").mkdir()
    before = everything(capsys, runs, tmp_path / "before")
    for path in runs.rglob("*_results.json"):
        data = json.loads(path.read_text())
        for values in data["results"].values():
            values |= {key: 0.123 for key, value in values.items() if isinstance(value, float)}
        path.write_text(json.dumps({**data, "model_name": "another"}))
    (tmp_path / "changed").mkdir()
    assert everything(capsys, runs, tmp_path / "changed") == before
    for path in runs.rglob("*_results.json"):
        path.unlink()
    (tmp_path / "deleted").mkdir()
    assert everything(capsys, runs, tmp_path / "deleted") == before


def test_kept_numbers_that_were_changed_are_never_taken(runs, capsys, tmp_path):
    """A number changed in the file of numbers changes nothing that is said: a gate computes, and its key no longer fits."""
    run = runs / "m1"
    (tmp_path / "rules.yaml").write_text(RULES)
    words = (
        "gate",
        run,
        "--config",
        tmp_path / "rules.yaml",
        "--baseline",
        runs / "m2",
        "--json",
        tmp_path / "gate.json",
    )
    before, shown = typed(capsys, *words), typed(capsys, "show", run)
    (kept,) = run.glob("*_numbers.parquet")
    table = pq.read_table(kept)
    told = json.loads(table.schema.metadata[samples.KEY])
    for one in told["tasks"].values():
        one["numbers"]["analysis"]["grids"]["2"]["mpp"]["value"] = 0.111
        one["numbers"]["analysis"]["fip"]["value"] = 0.111
    pq.write_table(table.replace_schema_metadata({samples.KEY: json.dumps(told)}), kept)
    assert typed(capsys, *words) == before
    assert typed(capsys, "show", run) == shown


# --- rows changed, missing, doubled -------------------------------------------------------------------------------------


def test_a_changed_score_gives_the_number_that_the_table_then_has(foreign, tmp_path, capsys):
    folder, scores = foreign
    shutil.copytree(folder / "m0", tmp_path / "run")
    assert typed(capsys, "show", tmp_path / "run")[0] == 0, "numbers are kept, of the table as it was"
    (path,) = (tmp_path / "run").glob("*_samples_*.parquet")
    about = pq.read_metadata(path).metadata[samples.KEY].decode()
    changed = pl.when((pl.col("kind") == "full") & (pl.col("doc_id") < 50)).then(0.0).otherwise("score")
    pl.read_parquet(path).with_columns(score=changed).write_parquet(path, metadata={"lmms_patch": about})
    status, out, _ = typed(capsys, "show", tmp_path / "run", "--wide")
    assert status == 0
    assert f"  {scores['org/m0'][50:, 0].sum() / DOCS:.3f}  " in re.search(r"^toy_rci2  .*", out, re.M)[0]
