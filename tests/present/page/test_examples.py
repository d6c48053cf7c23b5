"""Which docs are shown: each rule on a doc made by hand."""

import pytest

from lmms_patch.present.page import examples
from lmms_patch.present.page.examples import ANSWER, RULES, cut
from lmms_patch.runs.docs import full_marks
from tests.making.docs import frame_of
from tests.making.results import result


def picked(docs, count=2, task="toy_rci2", **more):
    return examples.picked("e", result("m", "toy", "rci", (2,), task, **more), frame_of(docs), count)


def rule_of(doc):
    """The rule by which a doc is shown; None: it is not."""
    return next(iter(picked([doc])), None)


def example(doc):
    ((made,),) = picked([doc]).values()
    return made


def marks(doc):
    return frame_of([doc]).filter(view=0).select(full_marks("acc")).item()


def line(full, cells, answers=None, doc_id=0, n=2, gold="A", marks=1.0, **more):
    """A doc of 200x100 pixels whose views score so; by default a right answer is the gold and a wrong one "unknown"."""
    scores = [full, *cells]
    said = answers or [gold if score else "unknown" for score in scores]
    views = [{"kind": "full", "scores": {"acc": full}, "answer": said[0]}]
    for i, score in enumerate(cells):
        row, col = divmod(i, n)
        where = {"kind": "cell", "n": n, "cell": i + 1, "row": row, "col": col}
        views.append({**where, "scores": {"acc": score}, "answer": said[i + 1]})
    return {
        "doc_id": doc_id,
        "views": views,
        "image_sizes": [[200, 100]],
        "question": "Which?",
        "target": gold,
        "answer": {"label": "mc4", "gold": gold},
        "baselines": [{"answer": gold, "roles": ["gold"], "scores": {"acc": marks}}],
        **more,
    }


DOCS = [
    (1, [1, 1, 1, 1], None, "any cell"), (1, [0, 0, 0, 0], None, "global only"), (0, [0, 0, 0, 0], None, "unanswered"),
    (1, [0, 1, 0, 0], None, "local"), (0, [0, 1, 0, 0], None, "distracted"), (1, [1, 1, 1, 0], None, "local"),
    (0, [1, 0, 0, 0], ["B", "A", "B", "C", "D"], "luck-like"),  # four cells, four options
    (1, [1, 0, 0, 0], ["A", "A", "B", "C", "D"], "luck-like"),
    (1, [1, 1, 0, 0], ["A", "A", "A", "C", "D"], "local"),  # the right answer is given more often than any other
    (
        0,
        [1, 0, 0, 0],
        ["B", "A", "B", "B", "B"],
        "distracted",
    ),  # most cells agree on one wrong answer: the right one stands out
    (1, [None, 0, 0, 0], None, None), (None, [1, 0, 0, 0], None, None),
]  # fmt: skip


@pytest.mark.parametrize(("full", "cells", "answers", "rule"), DOCS)
def test_each_rule(full, cells, answers, rule):
    assert rule_of(line(full, cells, answers)) == rule
    assert rule is None or rule in RULES


def test_a_doc_left_out_of_a_grid_is_no_example():
    assert rule_of(line(1, [0, 0, 0, 0], excluded={"2": "too small"})) is None


def test_right_is_half_of_what_the_gold_scores():
    assert marks(line(1, [0] * 4, marks=0.9)) == 0.9
    assert rule_of(line(0.5, [0, 0, 0, 0], marks=0.9)) == "global only"
    assert rule_of(line(0.4, [0, 0, 0, 0], marks=0.9)) == "unanswered"
    assert marks(line(1, [0] * 4, marks=0.0)) == 1.0


def test_boxes_are_pixels_of_the_image_and_row_1_column_2_is_the_top_right():
    made = example(line(1, [0, 1, 0, 0]))
    top_right = made.grids["2×2"][1]
    assert (top_right.place, top_right.box) == ("row 1, column 2", (100.0, 0.0, 100.0, 50.0))
    assert top_right.right is True
    assert [cell.right for cell in made.grids["2×2"]] == [False, True, False, False]
    assert made.size == (200, 100)


def test_answers_on_a_wrong_image_are_not_those_on_the_docs_own():
    doc = line(1, [0, 1, 0, 0], answers=[f"own {i}" for i in range(5)])
    lost = [{**view, "swapped": True, "answer": f"wrong {i}"} for i, view in enumerate(doc["views"])]
    doc["wrong_image"] = {"from": 2, "image_sizes": [[200, 100]], "views": lost}
    made = example(doc)
    assert [made.answer, *(cell.answer for cell in made.grids["2×2"])] == [f"own {i}" for i in range(5)]


def test_long_answers_are_cut_and_say_so():
    assert cut("x" * 100_000, ANSWER) == "x" * ANSWER + "… (100,000 characters)"
    assert cut("short", ANSWER) == "short"


@pytest.mark.parametrize(("target", "gold"), [("B", "B"), (None, ""), (0, "0")])
def test_without_a_gold_the_log_says_what_was_to_be_answered(target, gold):
    assert example({**line(1, [0, 1, 0, 0]), "target": target, "answer": {}}).gold == gold


# --- picking --------------------------------------------------------------------------------------


def ids(docs, **more):
    return {rule: [one.doc for one in shown] for rule, shown in picked(docs, **more).items()}


def test_the_choice_depends_on_neither_order_nor_model():
    docs = [line(1, [0, 1, 0, 0], doc_id=i) for i in range(50)]
    found = ids(docs)
    assert found == ids(docs[::-1]) == ids(docs, task="toy_pcri2")
    assert len(found["local"]) == 2
    assert ids(docs, count=3)["local"][:2] == found["local"]
    assert ids(docs, count=0) == {}
    assert ids(docs, higher_is_better={"acc": False}) == {}, "rules need to know right from wrong"


def test_rules_come_in_their_order_and_only_those_that_hold():
    docs = [line(0, [0] * 4, doc_id=0), line(1, [1] * 4, doc_id=1), line(1, [0] * 4, doc_id=2)]
    assert list(ids(docs).items()) == [("any cell", [1]), ("global only", [2]), ("unanswered", [0])]
