"""Cells in every order of the options through the real evaluator: what is asked, how it is scored, and what counts."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.harness.toys import ChatModel, Model, metrics, run
from tests.harness.wrap.test_rotate import COUNT, gold, options, task

WITH_NULL = {"version": 0.0}
"""Without the profile by which toys ask no wrong images."""


def doc_of(prompt):
    return int(re.search(r"Which is (\d+)", prompt)[1])


def letter(prompt, text):
    """The letter that stands before a text in the prompt."""
    return f"({re.search(rf'[(]([A-D])[)] {text}$', prompt, re.MULTILINE)[1]})"


def part(image):
    """``full``, or the cell of the 2×2 grid, from the colours that code a pixel's place."""
    (top, left, _), (bottom, right, _) = image.getpixel((0, 0)), image.getpixel((image.width - 1, image.height - 1))
    return "full" if (bottom, right) == (50, 50) and (top, left) == (0, 0) else 1 + 2 * (top >= 30) + (left >= 30)


def shown(image):
    """The doc whose image it is."""
    return image.getpixel((0, 0))[2]


def sees(cells, otherwise=lambda prompt: "(A)"):
    """A model that knows the right text on some parts of the doc's own image, and else answers by the prompt alone."""

    def answer(prompt, images):
        doc, (image,) = doc_of(prompt), images
        known = shown(image) == doc and part(image) in cells(doc)
        return letter(prompt, options(doc)[gold(doc)]) if known else otherwise(prompt)

    return answer


@pytest.fixture(autouse=True)
def no_journal(monkeypatch):
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")


@pytest.mark.parametrize("adapter", [Model, ChatModel])
def test_each_view_is_asked_once_in_each_order(tmp_path, adapter):
    model = adapter(sees(lambda doc: {"full", 4} if doc % 2 else {"full"}))
    found = metrics(run(model, "toy_crci2", task(tmp_path)), "toy_crci2")
    asked = Counter((prompt, part(images[0]), shown(images[0])) for _, _, images, prompt in model.seen)
    assert set(asked.values()) == {1}
    assert len(asked) == sum(5 * len(options(doc)) for doc in range(COUNT))
    assert all(shown(images[0]) == doc_of(prompt) for _, _, images, prompt in model.seen)
    # every second doc has a cell that is right in every order; a model that takes A elsewhere is right there in one
    # order alone
    assert (
        found["exact_match"],
        found["rotate_every"],
        found["exact_match_mpp2"],
        found["patch"]["analysis"]["grids"]["2"]["index"]["value"],
    ) == (1, 1, 0.5, 0.5)


def test_one_order_does_not_make_a_cell_right(tmp_path):
    """By hand: every cell is answered A.

    In the docs' own order that is right where the gold stands first; in every order never.
    """
    model = Model(sees(lambda doc: {"full"}))
    here = task(tmp_path)
    once = metrics(run(model, "toy_rci2", here), "toy_rci2")
    every = metrics(run(model, "toy_crci2", here), "toy_crci2")
    assert once["exact_match_mpp2"] == sum(gold(doc) == 0 for doc in range(COUNT)) / COUNT > 0
    assert every["exact_match_mpp2"] == 0
    assert every["patch"]["analysis"]["grids"]["2"]["index"]["value"] == 1


def test_the_best_cell_is_chosen_over_all_orders(tmp_path):
    """Cell 1 is right in the docs' own order alone, cell 3 in all: cell 3 is kept, in whichever order decides."""

    def answer(prompt, images):
        doc, (image,) = doc_of(prompt), images
        own = prompt.index(options(doc)[0]) < prompt.index(options(doc)[1])  # the first option stands before the second
        first = re.search(r"\(A\) (.*)$", prompt, re.MULTILINE)[1] == options(doc)[0] and own
        return (
            letter(prompt, options(doc)[gold(doc)])
            if part(image) in ("full", 3) or (part(image) == 1 and first)
            else "(Z)"
        )

    results = run(Model(answer), "toy_crci2", task(tmp_path))
    for line in results["samples"]["toy_crci2"]:
        patch = line["patch"]
        assert patch["views"][patch["best"]["2"]]["cell"] == 3
    assert metrics(results, "toy_crci2")["exact_match_mpp2"] == 1


def test_wrong_images_are_asked_in_every_order_too(tmp_path):
    """A model that knows the right text by the question alone: right on every view, also of wrong images.

    The gate refuses it.
    """
    model = Model(lambda prompt, images: letter(prompt, options(doc_of(prompt))[gold(doc_of(prompt))]))
    found = metrics(run(model, "toy_crci2", task(tmp_path, count=24, metadata=WITH_NULL)), "toy_crci2")["patch"]
    other = Counter(shown(images[0]) != doc_of(prompt) for *_, images, prompt in model.seen)
    assert other[True] == other[False] == sum(5 * len(options(doc)) for doc in range(24))
    assert (found["n_null"], found["fip0"], found["gate"]) == (24, 1, 0)
    assert found["crci2"] is None


def test_docs_whose_options_stay_are_asked_on_their_image_alone_and_do_not_count(tmp_path):
    columns = {"choices": lambda i: ["a cat", "a cat"] if i == 3 else options(i)}
    model = Model(sees(lambda doc: {"full", 2}, otherwise=lambda prompt: "(A)" if "Which is 3" in prompt else "(Z)"))
    results = run(model, "toy_crci2", task(tmp_path, columns=columns, metadata=WITH_NULL))
    found = metrics(results, "toy_crci2")
    mine = [(part(images[0]), shown(images[0])) for *_, images, prompt in model.seen if doc_of(prompt) == 3]
    assert mine == [("full", 3)]
    (line,) = (one for one in results["samples"]["toy_crci2"] if one["doc_id"] == 3)
    assert set(line["patch"]["excluded"]) == {"turns", "2"}
    patch = found["patch"]
    assert (patch["n_docs"], patch["n_rotated"], patch["records"], patch["n_null"]) == (
        COUNT - 1,
        COUNT - 1,
        COUNT,
        COUNT - 1,
    )
    assert (found["exact_match_mpp2"], found["rotate_every"], patch["analysis"]["fip"]["value"]) == (1, 1, 1)


def test_a_failed_call_of_one_order_costs_the_doc_its_cells(tmp_path):
    def fails(prompt, images):
        broken = doc_of(prompt) == 2 and part(images[0]) == 4 and prompt.index("an ox") < prompt.index("a pig")
        return (
            "[LMMS_EVAL_REQUEST_FAILED after 3 retries] timeout"
            if broken
            else sees(lambda doc: {"full", 1})(prompt, images)
        )

    found = metrics(run(Model(fails), "toy_crci2", task(tmp_path)), "toy_crci2")["patch"]
    assert (found["n_docs"], found["n_excluded2"]) == (COUNT, 1)
    assert found["analysis"]["grids"]["2"]["mpp"]["n"] == COUNT - 1


def test_uninformed_answers_are_scored_in_every_order(tmp_path):
    """No letter is right in every order, so the floor is that of guesses: the mean of (1/k)^k over docs with 2, 3 and 4 options."""
    model = Model(sees(lambda doc: {"full"}))
    found = metrics(run(model, "toy_crci2", task(tmp_path)), "toy_crci2")["patch"]
    expected = sum(len(options(doc)) ** -len(options(doc)) for doc in range(COUNT)) / COUNT
    assert found["chance"] == pytest.approx(expected)
    floors = found["analysis"]["chance"]["floors"]
    assert (floors["constant"]["value"], floors["stratum"]["value"], found["ceiling"]) == (0, 0, 1)
    assert found["analysis"]["chance"]["published"] is None  # that rule is of one order


def test_a_constant_text_is_right_in_every_order(tmp_path):
    """Where golds are texts, the most frequent text keeps its rate in every order: by hand, of 8 docs 3 have "a cat" for gold."""
    columns = {"answer": lambda i: options(i)[gold(i)]}
    said = {"a cat": 0}
    for doc in range(COUNT):
        said[options(doc)[gold(doc)]] = said.get(options(doc)[gold(doc)], 0) + 1

    def answer(prompt, images):
        return options(doc_of(prompt))[gold(doc_of(prompt))] if part(images[0]) == "full" else "nothing"

    found = metrics(run(Model(answer), "toy_crci2", task(tmp_path, columns=columns)), "toy_crci2")["patch"]
    assert found["analysis"]["chance"]["floors"]["constant"]["value"] == pytest.approx(max(said.values()) / COUNT)
