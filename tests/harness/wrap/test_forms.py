"""Answers in another form on full images than on cells: a scorer that reads the one alone must make no index."""

import re

import pytest

from tests.harness.toys import Model, metrics, rows, run, write_task
from tests.harness.wrap.test_names import place

DOCS = 96
OPTIONS = "\nA. a cat\nB. a dog\nC. a car\nD. a hat"


def gold(doc):
    return "ABCD"[doc * 7 % 4]


def asked(folder, full, cell, knows=lambda doc, at: doc % 6 != 5 and at < 2):
    """The numbers of a model that knows five of six docs from the full image and, as ``knows`` says, from the first cell.

    Args:
        folder: of the run.
        full: what it says on a full image, by doc, letter, and whether it knows the doc; the scorer takes a bare letter alone.
        cell: the same of a cell.
        knows: by doc and place, whether it knows the doc there.
    """
    data = rows(DOCS, question=lambda i: f"What is in picture {i}?{OPTIONS}", answer=gold)
    write_task(folder, "toy", data, metadata={"version": 0.0, "lmms_patch": {"null": 96, "steady": 0}})

    def answer(prompt, images):
        doc, at = int(re.search(r"picture (\d+)", prompt)[1]), place(images)
        own = images[0].getpixel((0, 0))[2] == doc
        right = own and knows(doc, at)
        letter = gold(doc) if right else "ABCD"[(doc + at) % 4]
        return (cell if at else full)(doc, letter, right)

    return metrics(run(Model(answer), "toy_rci2", folder), "toy_rci2")


def letter(doc, letter, knows):
    return letter


def sentences(doc, letter, knows):
    return f"The answer is ({letter}), as far as I can see." if doc % 5 < 2 else letter


def cautious(doc, letter, knows):
    """Abstain in words of the doc's own, which is no answer in another form."""
    return letter if knows else f"I cannot tell what animal number {doc} is from such a part."


@pytest.mark.parametrize(("full", "cell"), [(sentences, letter), (letter, sentences)])
def test_sentences_on_one_side_make_no_index(tmp_path, full, cell):
    """One cell is as good as the full image, by construction; two fifths of one side are not read by the scorer."""
    found = asked(tmp_path, full, cell)
    grid = found["patch"]["analysis"]["grids"]["2"]
    assert (found["exact_match"] if full is not letter else found["exact_match_mpp2"]) < 0.8
    assert found["rci2"] is None
    assert grid["reason"].startswith("full images and cells are answered in other forms (")
    # 80 docs are known on either side: read as meant, the index is below 0 by what cells earn by luck
    assert "name the gold without its marks" in grid["reason"]
    moved, index = map(float, re.findall(r"([+-]\d\.\d\d)", grid["reason"]))
    assert -0.25 <= moved <= 0
    assert abs(index - moved) > 0.15


@pytest.mark.parametrize(("full", "cell"), [(letter, letter), (sentences, sentences), (letter, cautious)])
def test_the_same_form_on_both_sides_or_no_answer_at_all_leaves_the_index(tmp_path, full, cell):
    found = asked(tmp_path, full, cell)
    assert found["rci2"] is not None
    assert found["rci2"] < 0.1


def test_a_model_that_abstains_in_its_own_words_needs_the_whole_image(tmp_path):
    found = asked(tmp_path, letter, cautious, lambda doc, at: doc % 6 != 5 and at == 0)
    assert found["rci2"] == 1
