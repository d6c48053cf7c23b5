"""A scorer that returns dictionaries without a ``score``, as MMMU's: their scalar is M of the single item, for every kind of view."""

import re

import pytest

from tests.harness.toys import Model, metrics, rows, run, write_task

DOCS = 40
RIGHT = 9
"""How many docs the model gets right: 9/40 = 0.225."""
UTILS = """
def prompt(doc):
    return f"Question {doc['answer']}: which?\\nA. one\\nB. two\\nC. three\\nD. four"

def score(doc, results):
    return {"points": {"id": doc["answer"], "parsed": results[0], "answer": doc["letter"]}}

def rate(items):
    print("a table")
    return round(sum(item["parsed"] == item["answer"] for item in items) / len(items), 5)
"""


def answer(prompt, images):
    """Name the gold letter in the first docs, and the next letter in all others."""
    doc = int(re.search(r"Question (\d+)", prompt)[1])
    return "ABCD"[(doc + (doc >= RIGHT)) % 4]


@pytest.fixture
def folder(tmp_path):
    """Four-way questions with ten golds of each letter."""
    (tmp_path / "utils.py").write_text(UTILS)
    write_task(
        tmp_path,
        "toy",
        rows(DOCS, letter=lambda doc: "ABCD"[doc % 4]),
        doc_to_text="!function utils.prompt",
        doc_to_target="letter",
        process_results="!function utils.score",
        metric_list=[{"metric": "points", "aggregation": "!function utils.rate", "higher_is_better": True}],
        metadata={"lmms_patch": {"null": 0}},
    )
    return tmp_path


@pytest.mark.parametrize("kind", ["rci2", "blind", "blank", "swap", "shuffle2", "lowres2"])
def test_every_kind_has_scalars_and_a_chance(folder, capfd, kind):
    """A constant letter is right in 10 of 40 docs, and so is a uniform guess; the gold is right in all."""
    task = f"toy_{kind}"
    results = run(Model(answer), task, folder)
    analysis = metrics(results, task)["patch"]["analysis"]
    assert (analysis["fip"]["value"], analysis["ceiling"], analysis["form"]) == (RIGHT / DOCS, 1, "mean")
    assert analysis["chance"]["value"] == 0.25
    assert analysis["fip"]["low"] < 0.25 < analysis["fip"]["high"]
    for doc, sample in enumerate(results["samples"][task]):
        assert {view["scores"]["points"] for view in sample["patch"]["views"]} == {float(doc < RIGHT)}
    assert capfd.readouterr().out.count("a table") <= 1, "the harness's own call alone prints"


ODD = """
import numpy as np

def score(doc, results):
    if doc["answer"] == "3":
        WHAT
    return {"points": float(results[0] == doc["letter"]), "listed": [float(results[0] == doc["letter"])]}

def mean(items):
    return float(np.mean(items))
"""


def odd_run(folder, what, task):
    (folder / "utils.py").write_text(ODD.replace("WHAT", what))
    of = {"aggregation": "!function utils.mean", "higher_is_better": True}
    write_task(
        folder,
        "toy",
        rows(DOCS, letter=lambda doc: "ABCD"[doc % 4]),
        doc_to_text="Question {{answer}}: which?\nA. one\nB. two\nC. three\nD. four",
        doc_to_target="letter",
        process_results="!function utils.score",
        metric_list=[{"metric": "points", **of}, {"metric": "listed", **of}],
        metadata={"lmms_patch": {"null": 0}},
    )
    return metrics(run(Model(answer), task, folder), task)


def test_a_score_that_is_nan_of_numpy_is_none(tmp_path):
    analysis = odd_run(tmp_path, "return {'points': np.float32('nan'), 'listed': [0.0]}", "toy_rci2")["patch"][
        "analysis"
    ]
    assert (analysis["n_docs"], analysis["fip"]["n"]) == (DOCS - 1, DOCS - 1)


def test_a_number_of_the_docs_that_could_be_scored_passes_for_none(tmp_path):
    found = odd_run(tmp_path, "raise KeyError('key')", "toy_rci2")
    assert found["patch"]["analysis"]["fip"]["value"] is found["points"] is found["gate"] is None


ORDERED = (
    ODD.replace("WHAT", "pass")
    + """
def prompt(doc):
    return doc["question"] + "\\n" + "\\n".join(f"{x}. {y}" for x, y in zip("ABCD", doc["options"]))
"""
)
