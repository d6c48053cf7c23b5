"""Which docs are shown: each rule on a doc made by hand."""

from pathlib import Path

import pytest

from lmms_patch.present.report import examples
from lmms_patch.present.report.examples import ANSWER, RULES, cut, picker
from lmms_patch.runs.run import Result, Run
from tests.making.runs import as_line, as_record


def rule_of(doc, metric):
    return examples.rule_of(as_line(doc), metric)


def answers_of(doc):
    return examples.answers_of(as_line(doc))


def full_marks(patch, metric):
    return examples.full_marks(as_record(patch), metric)


def example(entry, rule, doc, metric):
    return examples.example(entry, rule, as_line(doc), metric)


def line(full, cells, answers=None, doc_id=0, n=2, gold="A", marks=1.0, **more):
    """A doc of 200x100 pixels whose views score so; by default a right answer is the gold and a wrong one "unknown"."""
    scores = [full, *cells]
    views = [{"kind": "full", "scores": {"acc": full}, "items": {}}]
    for i, score in enumerate(cells):
        row, col = divmod(i, n)
        box = [200 * col // n, 100 * row // n, 200 * (col + 1) // n, 100 * (row + 1) // n]
        views.append(
            {
                "kind": "cell",
                "n": n,
                "cell": i + 1,
                "row": row,
                "col": col,
                "boxes": [box],
                "scores": {"acc": score},
                "items": {},
            }
        )
    baselines = [{"answer": gold, "roles": ["gold"], "scores": {"acc": marks}}]
    patch = {
        "doc_id": doc_id,
        "views": views,
        "excluded": {},
        "image_sizes": [[200, 100]],
        "answer": {"gold": gold},
        "baselines": baselines,
        **more,
    }
    return {
        "input": "Which?",
        "target": gold,
        "filtered_resps": answers or [gold if s else "unknown" for s in scores],
        "patch": patch,
    }


@pytest.mark.parametrize(
    ("full", "cells", "answers", "rule"),
    [
        (1, [1, 1, 1, 1], None, "any cell"),
        (1, [0, 0, 0, 0], None, "global only"),
        (0, [0, 0, 0, 0], None, "unanswered"),
        (1, [0, 1, 0, 0], None, "local"),
        (0, [0, 1, 0, 0], None, "distracted"),
        (1, [1, 1, 1, 0], None, "local"),
        (0, [1, 0, 0, 0], ["B", "A", "B", "C", "D"], "luck-like"),  # four cells, four options
        (1, [1, 0, 0, 0], ["A", "A", "B", "C", "D"], "luck-like"),
        (1, [1, 1, 0, 0], ["A", "A", "A", "C", "D"], "local"),  # the right answer is given more often than any other
        (
            0,
            [1, 0, 0, 0],
            ["B", "A", "B", "B", "B"],
            "distracted",
        ),  # most cells agree on one wrong answer: the right one stands out
        (1, [None, 0, 0, 0], None, None),
        (None, [1, 0, 0, 0], None, None),
    ],
)
def test_each_rule(full, cells, answers, rule):
    assert rule_of(line(full, cells, answers), "acc") == rule
    assert rule is None or rule in RULES


def test_a_doc_left_out_of_a_grid_is_no_example():
    assert rule_of(line(1, [0, 0, 0, 0], excluded={"2": "too small"}), "acc") is None


def test_right_is_half_of_what_the_gold_scores():
    assert full_marks(line(1, [0] * 4, marks=0.9)["patch"], "acc") == 0.9
    assert rule_of(line(0.5, [0, 0, 0, 0], marks=0.9), "acc") == "global only"
    assert rule_of(line(0.4, [0, 0, 0, 0], marks=0.9), "acc") == "unanswered"
    assert full_marks(line(1, [0] * 4, marks=0.0)["patch"], "acc") == 1.0


def test_boxes_are_shares_of_the_image_and_row_1_column_2_is_the_top_right():
    made = example("e", "local", line(1, [0, 1, 0, 0]), "acc")
    top_right = made.grids[2][1]
    assert (top_right.row, top_right.col, top_right.box) == (0, 1, (50.0, 0.0, 50.0, 50.0))
    assert top_right.right is True
    assert [cell.right for cell in made.grids[2]] == [False, True, False, False]
    assert made.size == (200, 100)


def test_log_likelihoods_show_the_option_of_the_lowest_loss():
    doc = line(1, [0, 0, 0, 0], answers=["(0.2, True)", "(3.0, False)", *["(2.5, False)", "(0.1, True)"] * 4])
    assert answers_of(doc) == ["option 0", *["option 1"] * 4]


def test_answers_on_a_wrong_image_are_not_those_on_the_docs_own():
    doc = line(1, [0, 1, 0, 0], answers=[f"own {i}" for i in range(5)] + [f"wrong {i}" for i in range(5)])
    doc["patch"]["wrong_image"] = {"from": 2, "image_sizes": [[200, 100]], "views": doc["patch"]["views"]}
    assert answers_of(doc) == [f"own {i}" for i in range(5)]


def test_long_answers_are_cut_and_say_so():
    assert cut("x" * 100_000, ANSWER) == "x" * ANSWER + "… (100,000 characters)"
    assert cut("short", ANSWER) == "short"


@pytest.mark.parametrize(("target", "gold"), [("B", "B"), (None, ""), (0, "0")])
def test_without_a_gold_the_log_says_what_was_to_be_answered(target, gold):
    doc = {**line(1, [0, 1, 0, 0]), "target": target}
    doc["patch"]["answer"] = {}
    assert example("e", "local", doc, "acc").gold == gold


def test_answers_that_do_not_fit_the_views_are_left_empty():
    assert answers_of({**line(1, [0] * 4), "filtered_resps": ["A", "B"]}) == [""] * 5
    assert answers_of({**line(1, [0] * 4), "filtered_resps": "A"}) == [""] * 5


# --- picking --------------------------------------------------------------------------------------


def picked(docs, count=2, task="toy_rci2"):
    result = Result(Run(Path("r")), task, {"base": "toy", "kind": "rci", "metric": "acc"}, {}, "none")
    seen = picker(result, count)
    for doc in docs:
        seen.see(as_line(doc))
    return {rule: [one.record.doc_id for one in lines] for rule, lines in seen.picked().items()}


def test_the_choice_depends_on_neither_order_nor_model():
    docs = [line(1, [0, 1, 0, 0], doc_id=i) for i in range(50)]
    found = picked(docs)
    assert found == picked(docs[::-1]) == picked(docs, task="toy_pcri2")
    assert len(found["local"]) == 2
    assert picked(docs, count=3)["local"][:2] == found["local"]
    assert picked(docs, count=0) == {}


def test_rules_come_in_their_order_and_only_those_that_hold():
    docs = [line(0, [0] * 4, doc_id=0), line(1, [1] * 4, doc_id=1), line(1, [0] * 4, doc_id=2)]
    assert list(picked(docs).items()) == [("any cell", [1]), ("global only", [2]), ("unanswered", [0])]
