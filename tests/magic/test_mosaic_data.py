"""The embedded items, ``tasks/magic/mosaic``: their answers, boxes and steps, checked against the digits and the pixels by other means."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from lmms_patch.magic import dataset
from lmms_patch.magic.items import MagicItem
from lmms_patch.magic.score import extract, selfheal
from lmms_patch.resources import folder
from tests.places import ROOT
from tests.sizes import size

HERE = folder("tasks") / "magic" / "mosaic"
SCRIPTS = ROOT / "scripts" / "mosaic"
COLOURS = ("red", "green", "blue")
DATA = dataset.read(HERE)
ITEMS = DATA.items
every_item = pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)


def digits(item: MagicItem) -> dict[str, int]:
    """Colour -> value of the coloured digits that have a box."""
    return {colour: int(value) for colour, value in (box.label.split() for box in item.boxes) if colour != "grey"}


# --- the set ------------------------------------------------------------------------------------


def test_the_only_faults_are_the_planted_missing_corrections():
    found = list(dataset.inspect(HERE).faults)
    assert [(fault.level, fault.key.split(".")[-1]) for fault in found] == [("warning", "correction")] * 2
    bare = {item.id for item in ITEMS if any(not step.correct and not step.correction for step in item.steps)}
    assert {fault.item for fault in found} == bare


def test_types_golds_and_groups_are_balanced():
    assert len(ITEMS) == 60
    assert set(Counter(item.type for item in ITEMS).values()) == {12}
    for kind in ("verify", "logical"):
        assert Counter(item.answer for item in ITEMS if item.type == kind) == {"yes": 6, "no": 6}
    groups = Counter(item.group for item in ITEMS)
    assert Counter(groups.values()) == {2: 24, 1: 12}
    assert {(item.group, item.image) for item in ITEMS} == {(group, f"images/{group}.png") for group in groups}


def test_it_is_small_and_nothing_lies_there_unused():
    files = [path for path in HERE.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 500_000
    assert {path.relative_to(HERE).as_posix() for path in files} == {
        "items.jsonl",
        "README.md",
        *(item.image for item in ITEMS),
    }


# --- answers, from the labels of the relevant boxes alone ------------------------------------------


def solve(question: str, digit: dict[str, int]) -> str:
    """The answer to a question, by its words."""
    named = re.findall("|".join(COLOURS), question)
    numbers = [int(n) for n in re.findall(r"\d+", question)]
    values = [digit[colour] for colour in named if colour in digit]
    if question.startswith(("What colour", "Is the " + str(numbers[0] if numbers else "-"))):
        return next(colour for colour, value in digit.items() if value == numbers[0])
    if "sum" in question:
        return str(sum(values))
    if "largest" in question or "larger, the" in question:
        return max(named, key=lambda colour: digit[colour])
    if "even" in question:
        (even,) = [colour for colour in named if digit[colour] % 2 == 0]
        return even
    if question.startswith(("What digit", "Which digit")):
        return str(values[0])
    if "all odd" in question:
        truth = all(value % 2 for value in values)
    elif "same number" in question:
        truth = values[0] == values[1]
    elif "larger than" in question:
        truth = values[0] > values[1]
    else:
        truth = (any if " or " in question else all)(
            value == number for value, number in zip(values, numbers, strict=True)
        )
    return "yes" if truth else "no"


@every_item
def test_the_relevant_boxes_and_they_alone_give_the_answer(item):
    needed = {
        colour: value
        for colour, value in digits(item).items()
        if any(box.relevant and box.label == f"{colour} {value}" for box in item.boxes)
    }
    assert len(needed) == sum(box.relevant for box in item.boxes) >= 1
    assert solve(item.question, needed) == item.answer
    colours = set(re.findall("|".join(COLOURS), item.question))
    if item.question.startswith(("What colour", "Is the ")) and re.match(r"(What colour is|Is) the \d", item.question):
        assert len(needed) == 1  # the digit with that value; colours named beside it are what is asked
        assert [box.label.split()[1] for box in item.boxes].count(str(*needed.values())) == 1
    else:
        assert set(needed) == colours


@every_item
def test_the_full_answer_says_the_short_one(item):
    words = re.findall(r"\w+", item.full_answer.lower())
    assert words[0] == item.answer if item.answer in ("yes", "no") else item.answer in words
    assert item.full_answer.endswith(".")
    told = re.findall(r"(red|green|blue) digit (?:on the sheet )?is an? (\d)", item.full_answer)
    told += [(colour, value) for value, colour in re.findall(r"The (\d) is (red|green|blue)", item.full_answer)]
    assert all(digits(item)[colour] == int(value) for colour, value in told)


# --- boxes, from the pixels ------------------------------------------------------------------------


@every_item
def test_boxes_are_apart_and_hold_ink_of_their_colour(item):
    boxes = [(box.left, box.top, box.right, box.bottom) for box in item.boxes]
    for first, a in enumerate(boxes):
        for b in boxes[first + 1 :]:
            assert min(a[2], b[2]) <= max(a[0], b[0]) or min(a[3], b[3]) <= max(a[1], b[1])
    assert sum(not box.relevant for box in item.boxes) >= 3
    pixels = np.asarray(DATA.image(item).convert("RGB")).astype(int)
    assert pixels.shape == (504, 504, 3)
    paper = np.median(pixels.reshape(-1, 3), axis=0)
    for box, (left, top, right, bottom) in zip(item.boxes, boxes, strict=True):
        part = pixels[top:bottom, left:right].reshape(-1, 3)
        far = np.abs(part - paper).sum(axis=1)
        red, green, blue = part[far > 0.8 * far.max()].mean(axis=0)
        strongest = (
            "grey"
            if max(red, green, blue) - min(red, green, blue) < 45
            else COLOURS[int(np.argmax([red, green, blue]))]
        )
        assert strongest == box.label.split()[0]


def _shape(coverage: np.ndarray) -> np.ndarray:
    """What is inked, cut out and brought to 12x12."""
    rows, columns = np.flatnonzero(coverage.any(axis=1)), np.flatnonzero(coverage.any(axis=0))
    cut = coverage[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return (
        np.asarray(Image.fromarray(cut.astype(np.uint8)).resize((12, 12), Image.Resampling.BILINEAR))
        .astype(float)
        .ravel()
    )


def test_boxes_hold_the_digit_of_their_label():
    """Read by the scans that are most alike: cut to its ink, nearly every digit is the labelled one."""
    scans = load_digits()
    known = np.stack([_shape(np.where(scan > 4, 255, 0)) for scan in scans.images])
    seen = {(item.image, box.left, box.top): (item, box) for item in ITEMS for box in item.boxes}
    right = 0
    for item, box in seen.values():
        part = np.asarray(DATA.image(item).convert("RGB"))[box.top : box.bottom, box.left : box.right].astype(int)
        far = np.abs(part - part[0, 0]).sum(axis=2)
        shape = _shape(np.where(far > 0.35 * far.max(), 255, 0))
        nearest = np.argsort(((known - shape) ** 2).sum(axis=1))[:5]
        right += Counter(scans.target[nearest].tolist()).most_common(1)[0][0] == int(box.label.split()[1])
    assert right / len(seen) > 0.97


# --- steps -----------------------------------------------------------------------------------------


def facts(text: str, item: MagicItem) -> bool:
    """Whether what a sentence says of a box is true; True where it says nothing of one."""
    labels = {place: box.label.split() for place, box in enumerate(item.boxes, 1)}
    told = [(int(box), colour, value) for box, colour, value in re.findall(r"R(\d) marks a (\w+) (\d)", text)]
    told += [
        (int(box), colour, value)
        for colour, value, box in re.findall(r"(?:There is|notice) a (\w+) (\d) in R(\d)", text)
    ]
    told += [
        (int(box), colour, None) for colour, box in re.findall(r"(red|green|blue) digit (?:stands |is )?in R(\d)", text)
    ]
    told += [(int(box), None, value) for value, box in re.findall(r"[tT]he (\d) (?:stands |is )?in R(\d)", text)]
    told += [
        (int(box), None, value) for box, value in re.findall(r"R(\d),? (?:I read|I see|make|and it is) an? (\d)", text)
    ]
    told += [(int(box), None, value) for box, value in re.findall(r"R(\d), and it is an? (\d)", text)]
    told += [
        (int(box), c, None)
        for box, c in re.findall(r"R(\d),? (?:the ink is|I see|are|and it is) (red|green|blue|grey)", text)
    ]
    told += [(int(box), c, None) for box, c in re.findall(r"R(\d), and it is (red|green|blue)", text)]
    assert told or not re.search(r"\bR\d", text), text
    return all(colour in (None, labels[box][0]) and value in (None, labels[box][1]) for box, colour, value in told)


@every_item
def test_steps_marked_correct_are_true_and_corrections_too(item):
    assert 6 <= len(item.steps) <= 12
    for step in item.steps:
        assert facts(step.text if step.correct else step.correction, item)
        if step.correct:
            assert re.findall(r"The answer is (\w+)\.", step.text) in ([], [item.answer])
            follows = (
                re.findall(r"(red|green|blue) digit (?:on the sheet )?is an? (\d)", step.text)
                if step.text.startswith("So ")
                else []
            )
            assert all(digits(item)[colour] == int(value) for colour, value in follows)
        else:
            assert step.correction != step.text


@every_item
def test_wrong_steps_are_false_or_about_another_box(item):
    """A misread value, or the wrong digit taken for the one that is asked; what is read there may be true of it."""
    for before, step in zip((None, *item.steps), item.steps, strict=False):
        if step.correct or not re.search(r"\bR\d", step.text):
            continue
        misplaced = (
            before is not None
            and not before.correct
            and re.findall(r"R\d", before.text) == re.findall(r"R\d", step.text)
        )
        assert not facts(step.text, item) or misplaced


@every_item
def test_the_extractor_reads_every_step(item):
    for text in (text for step in item.steps for text in (step.text, step.correction)):
        found = extract.regions(text, len(item.boxes))
        assert found.used == {int(box) for box in re.findall(r"\bR(\d+)\b", text)}
        assert not found.invented


def test_wrong_runs_of_every_kind():
    """By the flags alone: a run of wrong steps is tested if it begins after step 1, ends before the last two, and has a correction."""
    tested, out = 0, Counter()
    for item in ITEMS:
        flags = "".join("c" if step.correct else "w" if step.correction else "u" for step in item.steps)
        for run in re.finditer("[wu]+", flags):
            why = (
                "start"
                if run.start() == 0
                else "end"
                if run.end() > len(flags) - 2
                else "bare"
                if "w" not in run[0]
                else "tested"
            )
            out[why] += 1
        tested += len(selfheal.wrong_runs(item.steps).tested)
    assert out == {"tested": 45, "start": 3, "end": 6, "bare": 2}
    assert tested == 45
    wrong = [item for item in ITEMS if not all(step.correct for step in item.steps)]
    assert len(wrong) == 41
    assert {run.last - run.first + 1 for item in ITEMS for run in selfheal.wrong_runs(item.steps).tested} == {1, 2}


# --- made by code ----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", size([12], [0, 12, 35]))
def test_the_builder_makes_the_same_items(number, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import build_magic

    picture, built = build_magic.build_sheet(number, build_magic.firsts()[number])
    dataset.write(tmp_path / "items.jsonl", built)
    lines = {json.loads(line)["id"]: line for line in (HERE / "items.jsonl").read_text(encoding="utf-8").splitlines()}
    assert (tmp_path / "items.jsonl").read_text(encoding="utf-8").splitlines() == [lines[item.id] for item in built]
    (tmp_path / "sheet.png").write_bytes(picture)
    same = [np.asarray(Image.open(path).convert("RGB")) for path in (tmp_path / "sheet.png", HERE / built[0].image)]
    assert (same[0] == same[1]).all()
    assert build_magic.build_sheet(number, build_magic.firsts()[number])[0] == picture
