"""docs/tables.md: each block of Python is run, on tables whose answers are counted by hand with NumPy."""

import re

import numpy as np
import polars as pl
import pytest

import lmms_patch
from lmms_patch.runs import tabular
from lmms_patch.runs.details import About
from lmms_patch.runs.run import read
from tests.making.docs import frame_of
from tests.making.runs import guesses_on_cells, suite, world_run
from tests.places import ROOT

PAGE = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
DOCS, GRID = 60, 3
LETTERS = np.array(list("ABCD"))


def block(word):
    """The one block of Python of the page that has a word in it."""
    [found] = [code for code in re.findall(r"```python\n(.*?)```", PAGE, re.S) if word in code]
    return found


def run(word, names):
    """Run a block after those before it."""
    exec(block(word), names)
    return names


def by_hand(stream, files):
    """What a model answers to 40 questions on some views: golds and answers, shapes (docs,) and (docs, views), and which are right."""
    golds = stream.integers(0, 4, 40)
    said = np.where(stream.random((40, files)) < 0.4, golds[:, None], stream.integers(0, 4, (40, files)))
    return golds, said, said == golds[:, None]


def rci(right, chosen=slice(None)):
    return 1 - right[chosen, 1:].max(axis=1).mean() / right[chosen, 0].mean()


def test_the_keys_of_the_footer_are_those_of_the_page():
    table = PAGE.partition("| key | what it holds |\n|---|---|\n")[2].partition("\n\n")[0]
    told = [name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert sorted(told) == sorted(About.__struct_fields__)


# --- the questions --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def samples():
    """A world's samples, and their own views' scores, shape (docs, views).

    Every third answer on a cell names no option; tokens are 5 on the full image and 2 on a cell.
    """
    _, records, _ = world_run(guesses_on_cells, n=DOCS, grid=GRID, categories=("a", "b", "c"))
    frame = frame_of(records, "acc")
    is_cell = pl.col("kind") == "cell"
    frame = frame.with_columns(
        names=pl.when(is_cell & (pl.col("doc_id") % 3 == 0)).then(0).otherwise(1),
        tokens_out=pl.when(is_cell).then(2).otherwise(5),
    )
    return frame, np.array([[view["scores"]["acc"] for view in record["views"]] for record in records])


@pytest.fixture
def names(samples, monkeypatch, tmp_path):
    """The names after the first block."""
    found = lmms_patch.results(suite(tmp_path / "runs", models=2, tasks=4, docs=60))
    monkeypatch.setattr(lmms_patch, "samples", lambda *_: samples[0], raising=False)
    monkeypatch.setattr(lmms_patch, "results", lambda _: found, raising=False)
    return run("without views", run("lmms_patch.results([", {}))


def test_which_cell_wins_most(names, samples):
    best, _ = run("wins =", names)["wins"], samples
    expected = np.bincount(samples[1][:, 1:].argmax(axis=1), minlength=GRID**2)
    found = {(row["row"], row["col"]): row["len"] for row in best.to_dicts()}
    assert found == {divmod(cell, GRID): count for cell, count in enumerate(expected.tolist()) if count}
    assert best["len"].is_sorted(descending=True)


def test_right_on_a_cell_and_wrong_on_the_whole_image(names, samples):
    scores = samples[1]
    expected = np.flatnonzero((scores[:, 0] == 0) & (scores[:, 1:].max(axis=1) == 1))
    assert run("misled =", names)["misled"]["doc_id"].to_list() == expected.tolist() != []


def test_rci_by_category(names, samples):
    expected = {name: rci(samples[1], np.arange(DOCS) % 3 == at) for at, name in enumerate("abc")}
    found = run("by_category =", names)["by_category"]
    assert dict(found.select("category", "rci").rows()) == pytest.approx(expected)


def test_rci_by_a_field_of_the_doc(names, samples):
    names["own"] = names["own"].with_columns(pl.format("s{}", pl.col("doc_id") % 2).alias("doc.source"))
    exec(block("by_category =").replace('"category"', '"doc.source"'), names)
    expected = {f"s{at}": rci(samples[1], np.arange(DOCS) % 2 == at) for at in (0, 1)}
    assert dict(names["by_category"].select("doc.source", "rci").rows()) == pytest.approx(expected)


def test_how_often_it_abstains(names):
    found = {row["kind"]: row for row in run("abstains =", names)["abstains"].to_dicts()}
    assert found["cell"]["share"] == pytest.approx(1 / 3)
    assert found["full"]["share"] == 0
    assert (found["full"]["tokens"], found["cell"]["tokens"]) == (5, 2)


def test_which_benchmarks_need_the_whole_image(names):
    """Of the first four of ``suite``: one cell is enough for the first, and the second is never answered from a cell."""
    found = run("whole =", names)["whole"]
    assert found["base"].to_list()[0] == "mmstar"
    assert "gqa" not in found["base"].to_list()
    expected = [
        row
        for row in names["numbers"].to_dicts()
        if row["measure"] == "rci3" and row["gate"] and row["base"] == "mmstar"
    ]
    assert found.row(0) == (
        "mmstar",
        2,
        min(row["low"] for row in expected),
        np.median([row["value"] for row in expected]),
    )
    wide = re.search(r"`(numbers\.pivot\(.*?\))`", PAGE)[1]
    assert len(eval(wide, names)) == names["numbers"].select("model", "task").unique().height


# --- columns --------------------------------------------------------------------------------------


def test_columns_of_the_results():
    part = PAGE.split("## `results`")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    assert re.findall(r"`([^`]+)`", "".join(rows)) == list(tabular.COLUMNS)


# --- other harnesses ------------------------------------------------------------------------------


def test_results_of_vlmevalkit(tmp_path, monkeypatch):
    """Its table: a row a question with index, options, gold, category, prediction, and hit."""
    monkeypatch.chdir(tmp_path)
    golds, said, right = by_hand(np.random.default_rng(1), 10)
    texts = {letter: [f"{letter.lower()}{number}" for number in range(40)] for letter in LETTERS}
    for view in range(10):
        table = pl.DataFrame(
            {"index": range(40), "question": [f"Which, {number}?" for number in range(40)], **texts}
            | {"answer": LETTERS[golds], "category": np.where(np.arange(40) % 2, "count", "read")}
            | {
                "prediction": [f"{letter}. It is" for letter in LETTERS[said[:, view]]],
                "hit": right[:, view].astype(int),
            }
        )
        table.write_csv(f"cell{view}.tsv" if view else "full.tsv", separator="\t")
    run('separator="\\t"', {})
    [result] = read(next(tmp_path.rglob("*_samples_*.parquet"))).results
    frame = result.frame()
    assert (frame["score"].to_numpy().reshape(40, 10) == right).all()
    assert (frame["names"].to_numpy().reshape(40, 10) == said + 1).all()
    first = frame.filter(view=0)
    assert first["options"].to_list() == [list(row) for row in zip(*texts.values(), strict=True)]
    assert (first["gold_at"].to_numpy() == golds + 1).all()
    assert result.measures["fip"].value == pytest.approx(right[:, 0].mean())
    assert result.measures["mpp3"].value == pytest.approx(right[:, 1:].max(axis=1).mean())
    assert result.measures["chance"].value == pytest.approx(np.bincount(golds).max() / 40)
