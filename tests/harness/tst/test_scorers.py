"""``_tst<k>`` tasks and what native scorers do: other scales, weights of docs, metrics without scores of docs."""

import numpy as np
import pytest

from lmms_patch.errors import CannotWrapError
from tests.harness.toys import metrics
from tests.harness.tst.toys import UTILS, choices, details, line_of, rf, tst_of, write

SCORERS = """
def weighted(doc, results):
    return {"marks": doc["points"] * (results[0].strip() == doc["answer"])}

def percent(doc, results):
    return {"marks": 100.0 if results[0].strip() == doc["answer"] else -20.0}

def pooled(doc, results):
    return {"marks": {"said": results[0], "gold": doc["answer"]}}

def pool(items):
    return sum(item["said"] == item["gold"] for item in items) / len(items)

def pairs(items):
    assert len(items) > 1
    return pool(items)

def nothing(doc, results):
    return {"marks": 0.0}
"""


def scored_by(folder, name, rows, aggregation="mean", higher=True, **config):
    metric = [{"metric": "marks", "aggregation": aggregation, "higher_is_better": higher}]
    write(folder, rows=rows, process_results=f"!function utils.{name}", metric_list=metric, **config)
    (folder / "utils.py").write_text(UTILS + SCORERS)


def test_each_doc_is_scored_by_its_own_scorer(tmp_path):
    """Half of the docs count three times: the first seed's mean is the native metric, and every score is the doc's own."""
    rows = [{**row, "points": 3.0 if i % 2 else 1.0} for i, row in enumerate(choices(60, purity=0.8))]
    scored_by(tmp_path, "weighted", rows)
    results = rf(tmp_path)
    first = [record["scores"]["source"][0] for record in tst_of(results)]
    assert first == [
        row["points"] * (record["answers"][0] == row["answer"])
        for row, record in zip(rows, tst_of(results), strict=True)
    ]
    assert metrics(results, "toy_tst5")["marks"] == pytest.approx(np.mean(first))
    assert details(results)["tst_chance"] == pytest.approx(np.mean([row["points"] / 2 for row in rows]))


def test_chance_is_on_the_scale_of_the_metric_and_s_is_not(tmp_path):
    """100 for the right one of two options, -20 for the other: a guess earns 40."""
    scored_by(tmp_path, "percent", choices(60))
    results = rf(tmp_path)
    assert details(results)["tst_chance"] == pytest.approx(40)
    assert details(results)["tst"] > 80
    for record in tst_of(results):
        assert 0 <= record["s"] <= 1
        assert record["s_minus_chance"] == pytest.approx(record["s"] - 0.5)


def test_docs_of_a_category_of_their_own_have_a_baseline(tmp_path):
    """Every third doc is alone in its category: the majority letter of all stands in, and all numbers are of all docs."""
    rows = [{**row, "kind": f"own {i}" if i % 3 == 0 else "common"} for i, row in enumerate(choices(60))]
    write(tmp_path, rows=rows)
    found = details(rf(tmp_path))
    head = found["tst_details"]["by_grouping"]["source"]
    assert head["above"]["value"] == pytest.approx(head["accuracy"]["value"] - head["majority"])
    assert head["above"]["n"] == head["accuracy"]["n"] == 60


def test_where_items_have_no_score_it_is_the_aggregation_of_a_single_item(tmp_path):
    rows = choices(60, purity=0.8)
    scored_by(tmp_path, "pooled", rows, "!function utils.pool")
    scores = [(record["scores"]["source"][0], record["answers"][0]) for record in tst_of(rf(tmp_path))]
    assert scores == [(float(said == row["answer"]), said) for row, (_, said) in zip(rows, scores, strict=True)]
    assert {score for score, _ in scores} == {0.0, 1.0}


@pytest.mark.parametrize(
    ("scorer", "more", "says"),
    [
        (
            "pooled",
            {"aggregation": "!function utils.pairs"},
            "no doc of toy has a score of its own; name the key of its items that holds one with 'score'",
        ),
        ("nothing", {}, "the scorer of toy gives golds no more than any other answer (doc 0: gold "),
        (
            "weighted",
            {"higher": False},
            "lower marks is better, and a text-only diagnostic chooses what scores highest",
        ),
    ],
)
def test_scorers_that_would_give_wrong_numbers_are_refused(tmp_path, scorer, more, says):
    scored_by(tmp_path, scorer, [{**row, "points": 1.0} for row in choices(20)], **more)
    assert says in line_of(lambda: rf(tmp_path), CannotWrapError)
