"""What is said of an answer in each state, over one scripted run.

And the table of rules in docs/metrics.md, held against what runs do.
"""

import math
import re
from pathlib import Path

import pytest
from lmms_eval.api.instance import GenerationResult, TokenCounts

from lmms_patch.runs.run import find
from tests.harness.askers import written
from tests.harness.toys import Model, metrics, rows, run, write_task

DOCS, LIMIT = 60, 16
SCORER = """
def mean(items):
    return sum(items) / len(items) if items else 0.0

def score(doc, results):
    if results[0] == "refuse":
        return NONE
    return {"acc": float(results[0] == doc["answer"])}
"""
FAILED = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error code: 500"
PLAN = {
    (1, 0): "failed", (2, 3): "failed", (2, 4): "failed",
    (3, 0): "unscored", (4, 2): "unscored",
    (6, 0): "unfinished", (8, 1): "unfinished", (9, 0): "unfinished",
}  # fmt: skip
"""The state of some answers by (doc, view); view 0 is the full image. All others are answered."""


def right(doc, view):
    return doc % 5 != 0 if view == 0 else doc % 7 == 0


class Scripted(Model):
    """Gives each answer the state that a plan says.

    Unfinished answers have the text of whole ones, and as many tokens as are allowed.
    """

    def __init__(self, plan):
        super().__init__()
        self.plan = plan

    def generate_until(self, requests):
        super().generate_until(requests)
        return [self.said(images[0]) for _, _, images, _ in self.seen[-len(requests) :]]

    def said(self, image):
        row, column, doc = image.getpixel((0, 0))
        view = 0 if image.width == 60 else 1 + 2 * (row >= 30) + (column >= 30)
        state = self.plan.get((doc, view), "answered")
        plain = str(doc) if right(doc, view) else "no"
        text = {"failed": FAILED, "unscored": "refuse"}.get(state, plain)
        return GenerationResult(text, TokenCounts(3, LIMIT if state == "unfinished" else 2))


def scripted(folder, plan, none="{}"):
    """Run a plan. ``none`` is what the scorer returns where it has no value."""
    (folder / "utils.py").write_text(SCORER.replace("NONE", none))
    metric = [{"metric": "acc", "aggregation": "!function utils.mean", "higher_is_better": True}]
    made = {
        "process_results": "!function utils.score",
        "metric_list": metric,
        "generation_kwargs": {"max_new_tokens": LIMIT},
    }
    return run(Scripted(plan), "toy_rci2", write_task(folder, "toy", rows(DOCS), **made))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    return written(scripted(folder, PLAN), folder / "out", "toy_rci2")


def test_the_table_tells_the_states_apart(finished):
    told = {}
    for row in find([finished])[0].results[0].frame().iter_rows(named=True):
        state = (
            "failed"
            if row["failed"] is not None
            else "unscored"
            if row["score"] is None
            else "unfinished"
            if row["unfinished"]
            else "answered"
        )
        told[row["doc_id"], row["view"]] = state
        assert (row["failed"], row["answer"]) == (FAILED, None) if state == "failed" else row["failed"] is None
    assert {place: state for place, state in told.items() if state != "answered"} == PLAN
    assert len(told) == DOCS * 5


# --- the table of rules -----------------------------------------------------------------------------


def rules():
    """The rows of the table in docs/metrics.md, by state."""
    text = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    lines = re.search(r"### What an answer can be\n\n((?:\|.*\n)+)", text).group(1).splitlines()
    head, *table = ([cell.strip() for cell in line.strip("|").split("|")] for line in [lines[0], *lines[2:]])
    return {row[0]: dict(zip(head, row, strict=True)) for row in table}


STATES_OF_THE_TABLE = ("answered", "failed", "unscored", "unfinished")
OF_EVERY_RUN = "not checked whether the answers depend on the image"
FULL, CELL = 1, 7
"""Docs whose full image, or whose first cell, gets an answer in the state; without it both answers would be right."""


UNSCORED = ("{}", "{'acc': None}", "{'acc': float('nan')}")


@pytest.mark.parametrize(
    ("state", "none"),
    [*((state, "{}") for state in STATES_OF_THE_TABLE), *(("unscored", none) for none in UNSCORED[1:])],
)
def test_the_table_of_rules_says_what_happens(tmp_path, state, none):
    found = scripted(tmp_path, {(FULL, 0): state, (CELL, 1): state}, none)
    numbers, records = metrics(found, "toy_rci2"), {one["doc_id"]: one["patch"] for one in found["samples"]["toy_rci2"]}
    patch, row = numbers["patch"], rules()[state]
    score, in_cell = (records[doc]["views"][view]["scores"].get("acc") for doc, view in ((FULL, 0), (CELL, 1)))
    assert score == in_cell
    assert {None: "none", 1.0: "the scorer's"}[score] == row["score"]
    others = sum(right(doc, 0) for doc in range(DOCS) if doc != FULL)
    native = {(others + 1) / DOCS: "counts", others / DOCS: "counts as wrong", others / (DOCS - 1): "left out"}
    said = "NaN for NaN" if math.isnan(numbers["acc"]) else native[numbers["acc"]]
    assert said in row["the harness's `m`"].split(", or ")
    assert math.isnan(numbers["acc"]) is ("nan" in none)
    fip = patch["analysis"]["fip"]
    of_full = {((others + 1) / DOCS, DOCS): "in", (others / (DOCS - 1), DOCS - 1): "out of all numbers"}
    assert of_full[fip["value"], fip["n"]] == row["its doc, for a full image"]
    assert patch["n_docs"] == fip["n"]
    best = {
        doc: right(doc, 1) for doc in range(DOCS) if doc != FULL or fip["n"] == DOCS
    }  # all cells of a doc are right or none is
    without = {doc: hit for doc, hit in best.items() if doc != CELL}
    mpp = patch["analysis"]["grids"]["2"]["mpp"]
    of_cell = {
        (sum(known.values()) / len(known), len(known)): said
        for known, said in ((best, "in"), (without, "out of the grid"))
    }
    assert of_cell[mpp["value"], mpp["n"]] == row["its doc, for a cell"]
    counts = {
        "`n_failed`": patch["n_failed"] == 2,
        "`analysis.failed`": (patch["analysis"]["failed"] or {}).get("calls") == 2,
        "`n_excluded<n>`": patch["n_excluded2"] == 1,
        "a warning": any(not line.startswith(OF_EVERY_RUN) for line in patch["analysis"]["warnings"]),
    }
    assert {name for name, holds in counts.items() if holds} == {
        re.sub(r" \(.*", "", one) for one in row["counted by"].split(", ") if one
    }


def test_an_answer_that_names_no_option_is_unread(tmp_path):
    """Yes/no questions; of 60 docs the full image gets "I cannot tell." in 6, and in another run in 3 (5 %).

    The scorer takes it as it is.

    Of the cells, 20 docs get "??" on all four; 10 docs whose gold is no get "No, I think", which the scorer does not
    take for "no": 120 are unread.
    """
    wanted = [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}]
    data = rows(DOCS, answer=lambda doc: "yes" if doc % 2 else "no")
    row = rules()["unread"]
    for silent in (6, 3):

        def said(prompt, images, silent=silent):
            doc = images[0].getpixel((0, 0))[2]
            whole = images[0].width == 60
            return (
                "I cannot tell."
                if whole and doc < silent
                else ("yes" if doc % 2 else "no")
                if whole
                else ("yes", "No, I think", "??")[doc % 3]
            )

        found = run(Model(said), "toy_rci2", write_task(tmp_path / str(silent), "toy", data, metric_list=wanted))
        numbers, records = (
            metrics(found, "toy_rci2"),
            {one["doc_id"]: one["patch"] for one in found["samples"]["toy_rci2"]},
        )
        assert [records[doc]["views"][0]["names"] for doc in (0, 6, 7)] == [0, 2, 1]
        assert [records[doc]["views"][1]["names"] for doc in (0, 1, 2)] == [1, 2, 0]
        assert {records[doc]["views"][0]["scores"]["exact_match"] for doc in range(silent)} == {0.0}, row["score"]
        assert (numbers["exact_match"], numbers["patch"]["analysis"]["fip"]["value"]) == (
            (DOCS - silent) / DOCS,
        ) * 2, row["the harness's `m`"]
        said_of = [line for line in numbers["patch"]["analysis"]["warnings"] if "none of the options" in line]
        assert said_of == [
            "answers that name none of the options: 6 of 60 to the first view, 120 of 240 to other views; they are scored as they are, mostly as wrong"
        ] * (silent == 6)


def test_a_run_without_such_answers_says_nothing_of_them(tmp_path):
    patch = metrics(scripted(tmp_path, {}), "toy_rci2")["patch"]
    assert [line for line in patch["analysis"]["warnings"] if not line.startswith(OF_EVERY_RUN)] == []
