"""A description in place of the image through the real evaluator: what is asked, what survives in words, and what a kill keeps."""

import re

import pytest
from PIL import Image

from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness import compat
from tests.harness.askers import Killed
from tests.harness.asking.test_seam import asked_in
from tests.harness.toys import ChatModel, Model, metrics, run, write_task

COLOURS = ["red", "green", "blue", "white"]
COUNT = 24


def answers(prompt, images):
    """Describe an image by its colour alone; answer by what is seen, or by what the text says of it."""
    if images:
        colour = COLOURS[[(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)].index(images[0].getpixel((0, 0)))]
        size = str(images[0].width)
    else:
        told = re.match(r"Description of the image: a (\w+) square\n", prompt)
        colour, size = (told[1], "?") if told else ("?", "?")
    if prompt == "Describe this image.":
        return f" a {colour} square "
    return colour if "colour" in prompt else size


@pytest.fixture
def folder(tmp_path):
    rows = [
        {
            "image": Image.new("RGB", (10 + i % 3, 9), COLOURS[i % 4] if i % 4 != 1 else (0, 255, 0)),
            "question": "Which colour?" if i % 2 else "How wide?",
            "answer": COLOURS[i % 4] if i % 2 else str(10 + i % 3),
        }
        for i in range(COUNT)
    ]
    return write_task(tmp_path, "sheets", rows, metadata={"version": 0.0})


@pytest.mark.parametrize("adapter", [Model, ChatModel])
def test_what_a_caption_carries_survives_and_what_it_leaves_out_is_lost(folder, adapter):
    """By construction: captions name the colour, which half of the docs ask for, and no width, which the others ask for."""
    model = adapter(answers)
    found = metrics(run(model, "sheets_caption", folder), "sheets_caption")
    assert (found["exact_match"], found["caption"], found["drop"]) == (1.0, 0.5, 0.5)
    asked = [(len(images), prompt.split("\n")[0]) for _, _, images, prompt in model.seen]
    assert sum(one == (1, "Describe this image.") for one in asked) == COUNT
    assert sum(images == 0 and prompt.startswith("Description of the image: a ") for images, prompt in asked) == COUNT
    assert len(asked) == 3 * COUNT


def test_the_record_has_the_description(folder):
    results = run(Model(answers), "sheets_caption", folder)
    views = [sample["patch"]["views"] for sample in results["samples"]["sheets_caption"]]
    assert all([view["kind"] for view in of_doc] == ["full", "caption"] for of_doc in views)
    assert [of_doc[1]["caption"] for of_doc in views] == [f"a {COLOURS[i % 4]} square" for i in range(COUNT)]
    assert all("caption" not in of_doc[0] for of_doc in views)


def test_a_failed_description_is_a_failed_call_and_no_answer(folder, monkeypatch):
    failing = {"count": 0}

    def some_fail(prompt, images):
        if prompt == "Describe this image." and images[0].width == 10:
            failing["count"] += 1
            return ""
        return answers(prompt, images)

    monkeypatch.setattr(compat, "failure", lambda text, adapter: "empty" if text == "" else "")
    found = metrics(run(Model(some_fail), "sheets_caption", folder), "sheets_caption")
    assert found["patch"]["n_failed"] == failing["count"] == 8
    assert found["exact_match"] == 1.0


def test_log_likelihoods_write_no_description(tmp_path):
    rows = [{"image": Image.new("RGB", (4, 4)), "question": "?", "answer": 0, "choices": ["a", "b"]}]
    write_task(
        tmp_path, "choose", rows, output_type="multiple_choice", doc_to_choice="choices", generation_kwargs=None,
        metric_list=[{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
    )  # fmt: skip
    with pytest.raises(CannotWrapError, match="writes no description"):
        run(Model(), "choose_caption", tmp_path)


def test_descriptions_of_a_run_that_is_not_there_are_asked_for_in_one_line(folder, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "task: mine\nclass: !function lmms_patch.Wrap\nbase: sheets\nkind: caption\ncaptions: nowhere\n"
    )
    with pytest.raises(OptionError, match="nowhere"):
        run(Model(answers), "mine", folder)


class Dying(Model):
    """Answers as ``answers`` does, until it has answered so many requests."""

    def __init__(self, lives=10**6):
        super().__init__(answers)
        self.lives = lives

    def generate_until(self, requests):
        if len(self.seen) + len(requests) > self.lives:
            raise Killed
        return super().generate_until(requests)


def test_a_killed_run_describes_no_image_twice(folder, tmp_path, monkeypatch):
    """Killed after the descriptions, and before all questions are answered; the numbers are those of an undisturbed run."""
    monkeypatch.delenv("LMMS_PATCH_JOURNAL")
    whole = asked_in(tmp_path / "whole", Dying(), folder, "sheets_caption")
    with pytest.raises(Killed):
        asked_in(tmp_path / "killed", dying := Dying(COUNT), folder, "sheets_caption")
    assert {prompt for *_, prompt in dying.seen} == {"Describe this image."}
    assert asked_in(tmp_path / "killed", survivor := Dying(), folder, "sheets_caption") == whole
    assert not [prompt for *_, prompt in survivor.seen if prompt == "Describe this image."]
    assert len(survivor.seen) == 2 * COUNT
