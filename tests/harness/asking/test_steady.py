"""Docs that are asked again, through the real evaluator: what is asked, and that the composition is the one that was planted."""

from __future__ import annotations

import hashlib
from argparse import Namespace

import numpy as np
import pytest

from lmms_patch.ask.spec import parse
from tests.harness import toys
from tests.harness.askers import Killed
from tests.harness.toys import Model, rows, write_task
from tests.sizes import size

DOCS = size(96, 240)
NEEDS = ("text", "one cell", "whole image", "unsolved")
MIX = {"text": 1 / 4, "one cell": 1 / 4, "whole image": 3 / 8, "unsolved": 1 / 8}
"""The share of docs of each class, by ``need``."""
WORDS = ("ant", "bee", "cat", "dog")


def need(doc):
    return (*("text",) * 2, *("one cell",) * 2, *("whole image",) * 3, "unsolved")[doc % 8]


def gold(doc, words=WORDS):
    return words[int(hashlib.md5(str(doc).encode()).hexdigest(), 16) % len(words)]


def known(doc, images):
    """Whether a model that solves docs by what they need knows the gold of a doc from what it sees."""
    array = np.asarray(images[0]) if images else np.full((1, 1, 3), 128, np.uint8)
    own, whole = (array[..., 2] == doc).all(), np.ptp(array[..., 0]) > 30
    top_left = own and not whole and array[0, 0, 0] < 25 and array[0, 0, 1] < 25
    return need(doc) == "text" or (
        own and ((whole and need(doc) != "unsolved") or (top_left and need(doc) == "one cell"))
    )


def drawn(prompt, images, among):
    """A guess: drawn anew for each request that differs in anything."""
    seen = hashlib.md5(
        prompt.encode() + b"".join(one.tobytes() + repr(one.size).encode() for one in images)
    ).hexdigest()
    return among[int(seen, 16) % len(among)]


def by_letter(prompt, images):
    """Answer a question with four options listed."""
    doc = int(prompt.split("?")[0].split()[-1])
    listed = {line[3:]: line[0] for line in prompt.splitlines() if line[1:3] == ". "}
    return listed[gold(doc)] if known(doc, images) else drawn(prompt, images, list("ABCD"))


def by_word(prompt, images):
    """Answer an open question, one of six values."""
    doc = int(prompt.split("?")[0].split()[-1])
    values = ("3", "4", "5", "6", "7", "8")
    return gold(doc, values) if known(doc, images) else drawn(prompt, images, values)


def by_yes(prompt, images):
    doc = int(prompt.split("?")[0].split()[-1])
    return gold(doc, ("yes", "no")) if known(doc, images) else drawn(prompt, images, ("yes", "no"))


class Asked(Model):
    """Notes each request, and dies when it is asked for more than ``lives`` answers."""

    def __init__(self, answer, lives=10**9):
        super().__init__(answer)
        self.lives, self.asked = lives, []

    def __repr__(self):
        return "a model"

    def generate_until(self, requests):
        out = []
        for request in requests:
            if len(self.asked) >= self.lives:
                raise Killed
            out += super().generate_until([request])
            self.asked.append(
                (request.task_name, int(request.doc_id), request.metadata["view"], self.seen[-1][2:], out[-1])
            )
        return out


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    options = {"lmms_patch": {"null": 300, "steady": 300}}
    letters = "{{question}}\n{% for option in options %}{{'ABCD'[loop.index0]}}. {{option}}\n{% endfor %}"
    made = rows(
        DOCS,
        question=lambda i: f"Which is it in {i}?",
        options=lambda i: [*WORDS],
        answer=lambda i: "ABCD"[WORDS.index(gold(i))],
    )
    write_task(folder, "letters", made, doc_to_text=letters, metadata=options)
    write_task(
        folder, "sampled", made, doc_to_text=letters, metadata={"lmms_patch": {"null": DOCS // 2, "steady": 300}}
    )
    values = ("3", "4", "5", "6", "7", "8")
    asks = {"question": lambda i: f"How many in {i}?", "answer": lambda i: gold(i, values)}
    write_task(folder, "words", rows(DOCS, **asks), metadata=options)
    yes = {"question": lambda i: f"Is it in {i}?", "answer": lambda i: gold(i, ("yes", "no"))}
    write_task(folder, "yes", rows(DOCS, **yes), metadata=options)
    return folder


def run(tasks, names, answer, folder, lives=10**9, **options):
    cli = Namespace(
        output_path=str(folder),
        process_with_media=False,
        reasoning_tags=None,
        model="Asked",
        model_args="",
        batch_size=1,
    )
    vars(cli).update(options)
    model = Asked(answer, lives)
    return toys.run(model, names, tasks, cli_args=cli), model


def composition(found, task):
    return found["results"][task]["patch,none"]["analysis"]["necessity"][0]


@pytest.fixture(scope="module")
def letters(tasks, tmp_path_factory):
    return run(tasks, "letters_rci2", by_letter, tmp_path_factory.mktemp("letters"))


@pytest.mark.parametrize(("name", "answer"), [("letters", by_letter), ("words", by_word), ("yes", by_yes)])
def test_what_was_planted_is_found(tasks, tmp_path, name, answer):
    found, _ = run(tasks, f"{name}_rci2", answer, tmp_path)
    made = composition(found, f"{name}_rci2")
    assert made["again"] == made["docs"] == DOCS
    for of in NEEDS:
        share = made["shares"][of]
        assert share["value"] == pytest.approx(MIX[of], abs=0.06), made["shares"]
        assert share["low"] <= MIX[of] <= share["high"]
    # of the docs solved with their image, what needs all of it
    assert made["index"]["value"] == pytest.approx(0.6, abs=0.08)


def test_a_sample_says_the_same_with_wider_intervals(tasks, letters, tmp_path):
    every = composition(letters[0], "letters_rci2")
    sample = composition(run(tasks, "sampled_rci2", by_letter, tmp_path)[0], "sampled_rci2")
    assert sample["again"] == DOCS // 2
    assert sample["docs"] == DOCS
    for of in NEEDS:
        one, two = every["shares"][of], sample["shares"][of]
        assert two["low"] <= MIX[of] <= two["high"]
        assert two["high"] - two["low"] > one["high"] - one["low"]


def test_steady_asks_every_doc_again_and_steady_0_none(tasks, tmp_path):
    found, model = run(tasks, "sampled_rci2_steady", by_letter, tmp_path / "all")
    made = composition(found, "sampled_rci2_steady")
    assert made["again"] == made["docs"] == DOCS
    assert made["shares"]["whole image"]["value"] == pytest.approx(MIX["whole image"], abs=0.06)
    check_that_right_cells_come_first(model)
    (tasks / "none.yaml").write_text(
        "task: none_rci2\nbase: letters\ngrids: [2]\nsteady: 0\nclass: !function lmms_patch.Wrap\n"
    )
    found, model = run(tasks, "none_rci2", by_letter, tmp_path / "none")
    assert len(model.asked) == DOCS * (5 + 1)
    made = composition(found, "none_rci2")
    assert made["shares"]["text"]["value"] is None
    assert made["shares"]["text"]["reason"].startswith("no doc was asked again")


def check_that_right_cells_come_first(model):
    """Of docs on their own image alone: a cell that is right every time ends the doc, and without one all are asked on."""
    answers, elsewhere = {}, set()
    for _, doc, _, (images, prompt), answer in model.asked:
        array = np.asarray(images[0])
        if (array == 128).all() or array[0, 0, 2] != doc:
            elsewhere.add(doc)
        words = {line[0]: line[3:] for line in prompt.splitlines() if line[1:3] == ". "}
        view = (images[0].size, *map(int, array[0, 0, :2]))
        answers.setdefault(doc, {}).setdefault(view, []).append(
            (words[answer] == gold(doc) and "gold") or words[answer]
        )
    alone = {doc: of for doc, of in answers.items() if doc not in elsewhere}
    assert len(alone) == DOCS - DOCS // 2
    for doc, of in alone.items():
        cells = {view: said for view, said in of.items() if view[0] != (60, 60)}
        right = [view for view in sorted(cells) if cells[view][0] == "gold"]
        ended = [view for view in right if cells[view] == ["gold"] * 4]
        assert bool(ended) or need(doc) not in ("text", "one cell")
        for view, said in cells.items():
            started = len(said) > 1
            if ended and view not in ended:
                assert not started or view in right
            if not ended:
                assert len(said) == 4 or len(set(said)) == 2
        assert not ended or need(doc) != "text" or len(ended) == 1
    # each view in every order would be four passes
    assert sum(map(len, (said for of in alone.values() for said in of.values()))) < 2.6 * 5 * len(alone)


def test_nothing_else_changes(tasks, letters, tmp_path):
    """The first answers are those of a run that asks once, and so is every number but those of docs asked again."""
    (tasks / "once.yaml").write_text(
        "task: once_rci2\nbase: letters\ngrids: [2]\nsteady: 0\nclass: !function lmms_patch.Wrap\n"
    )
    once, _ = run(tasks, "once_rci2", by_letter, tmp_path)
    ours, theirs = letters[0]["results"]["letters_rci2"], once["results"]["once_rci2"]
    ours, theirs = (dict(of["patch,none"]["analysis"]) for of in (ours, theirs))
    for analysis in (ours, theirs):
        del analysis["necessity"]
        grids = analysis.pop("grids")
        analysis["2"] = {**grids["2"], "mark": ""}  # whether the composition contradicts the index
    assert ours == theirs


def test_a_quick_run_asks_the_docs_again_that_it_asks_whole(tasks, tmp_path):
    """The composition is of these docs, and every other number is that of a quick run that asks nothing again."""
    made, numbers = {}, {}
    for name, steady in (("part", 300), ("part_once", 0)):
        options = f"quick: true\npilot: {DOCS // 2}\nprecision: 0.3\nsteady: {steady}"
        (tasks / f"{name}.yaml").write_text(
            f"task: {name}\nbase: sampled\nkind: rci\ngrids: [2]\n{options}\nclass: !function lmms_patch.Wrap\n"
        )
        found, model = run(tasks, name, by_letter, tmp_path / name)
        analysis = dict(found["results"][name]["patch,none"]["analysis"])
        (made[name],), grids = analysis.pop("necessity"), analysis.pop("grids")
        numbers[name] = analysis | {"2": {**grids["2"], "mark": ""}}
        again = [one for one in model.asked if one[2] >= 10]
        assert bool(again) == bool(steady)
        assert len({one[1] for one in model.asked}) < DOCS, "some docs are left out"
        assert len({one[:3] for one in model.asked}) == len(model.asked), "nothing is asked twice"
    assert numbers["part"] == numbers["part_once"]
    assert made["part"]["again"] == made["part"]["docs"] == DOCS // 2, made["part"]
    assert made["part"]["index"]["value"], made["part"]["shares"]["text"]["reason"]
    for of in NEEDS:
        share = made["part"]["shares"][of]
        assert share["low"] <= MIX[of] <= share["high"]
    assert made["part"]["shares"]["whole image"]["low"] > 0.15
    assert made["part_once"]["shares"]["text"]["reason"].startswith("no doc was asked again")


def test_a_view_is_asked_again_only_while_it_says_one_thing(letters):
    """By hand: the answers to a view name one word until the last."""
    _, model = letters
    listed = {}
    for _, doc, _, (images, prompt), answer in model.asked:
        words = {line[0]: line[3:] for line in prompt.splitlines() if line[1:3] == ". "}
        array = np.asarray(images[0])
        grey = (array == 127).all() or (array == 128).all()
        shown = "grey" if grey else (int(array[0, 0, 2]), images[0].size, *map(int, array[0, 0, :2]))
        listed.setdefault((doc, shown), []).append((words[answer], prompt, images[0].tobytes()))
    repeated = [one for (doc, shown), one in listed.items() if len(one) > 1]
    assert len(repeated) > DOCS
    for answers in repeated:
        said = [word for word, _, _ in answers]
        assert len(set(said[:-1])) == 1
        assert len(said) <= 4
        # every asking is another request
        assert len({(prompt, pixels) for _, prompt, pixels in answers}) == len(answers)
    assert len(model.asked) < 3.5 * DOCS * 10


def test_the_wrong_image_changes_for_the_full_view_alone(letters):
    """Of each doc, on cells of a wrong image always one other doc is seen; on full wrong images another one each time."""
    _, model = letters
    cells, fulls = {}, {}
    for _, doc, _, (images, _), _ in model.asked:
        shown = np.asarray(images[0])
        if (shown == 128).all() or shown[0, 0, 2] == doc:
            continue
        (fulls if images[0].size == (60, 60) else cells).setdefault(doc, []).append(int(shown[0, 0, 2]))
    assert set(cells) == set(fulls) == set(range(DOCS))
    assert all(len(set(donors)) == 1 for donors in cells.values())
    assert max(len(set(donors)) for donors in fulls.values()) == 4
    # asked on the first wrong image, and on others only while all say one thing
    assert all(donors[0] == cells[doc][0] for doc, donors in fulls.items())


def test_crops_of_open_questions_are_trimmed_at_their_size(tasks, tmp_path):
    """Each asking of a view shows other pixels in the same number."""
    _, model = run(tasks, "words_rci2", by_word, tmp_path)
    sizes = {images[0].size for _, doc, _, (images, _), _ in model.asked if np.ptp(np.asarray(images[0])[..., :2])}
    assert sizes == {(60, 60), (30, 30)}
    shown = [
        (doc, prompt, images[0].tobytes())
        for _, doc, _, (images, prompt), _ in model.asked
        if np.ptp(np.asarray(images[0])[..., :2])
    ]
    assert len(set(shown)) == len(shown)


def test_a_killed_run_goes_on_to_the_same_numbers(tasks, letters, tmp_path):
    whole, every = letters
    for _ in range(2):
        with pytest.raises(Killed):
            run(tasks, "letters_rci2", by_letter, tmp_path, lives=len(every.asked) // 3)
    found, model = run(tasks, "letters_rci2", by_letter, tmp_path)
    assert len(model.asked) < 0.6 * len(every.asked)
    assert composition(found, "letters_rci2") == composition(whole, "letters_rci2")


def test_names():
    spec = parse("gqa_rci3_steady")
    assert (spec.base, spec.options.steady, spec.suffix) == ("gqa", "all", "rci3_steady")
    assert parse("gqa_rci_steady").suffix == "rci_steady"
    assert parse("clips_trci4_steady").suffix == "trci4_steady"
