"""Reading and checking a dataset: every fault is planted on a line of its own, and must be found there and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lmms_patch.app import schemas
from lmms_patch.errors import RecordError
from lmms_patch.magic.dataset import Dataset, DatasetError, read, write
from lmms_patch.magic.items import Box, MagicItem, Step
from lmms_patch.magic.rows import Fault, Faults, parse, to_row
from tests.magic.faults import check
from tests.making.magic_rows import as_parquet, png, put, row
from tests.sizes import examples


def one_box(box: Any, relevant: Any = True) -> list[dict[str, Any]]:
    return [{"box": box, "relevant": relevant}, {"box": [50, 10, 60, 20], "relevant": False}]


def test_a_good_file_has_no_fault_and_reads_as_written(folder: Path) -> None:
    path = put(folder, row(1), row(2, extra={"a": [1]}))
    assert check(path) == []
    data = read(path)
    assert data.items[0] == MagicItem(
        "q1",
        "images/a.png",
        "What is left of the plate?",
        "query",
        "bottle",
        "A bottle is left of the plate.",
        (Box(0, 0, 40, 30, True, "plate"), Box(50, 10, 60, 20, False)),
        (Step("I look at R1.", True), Step("In R2 there is a cup.", False, "In R1 there is a bottle.")),
        "a",
    )
    assert data.items[1].more == {"extra": {"a": [1]}}
    assert (data.total, data.left_out, data.note) == (2, 0, "")
    assert data.image(data.items[0]).size == (64, 48)


ERRORS: list[tuple[str, Any, str, str]] = [
    # what is planted, the line, the key, a word of the message
    ("not JSON", '{"id": "q1", ', "", "not JSON"),
    ("a list", "[1, 2]", "", "must be a JSON object"),
    ("NaN", '{"id": NaN}', "", "NaN"),
    ("a key twice", '{"id": "q1", "id": "q2"}', "", "twice"),
    ("no id", {k: v for k, v in row().items() if k != "id"}, "id", "missing"),
    ("a number as id", row(id=7), "id", "must be `str`, not `int`"),
    ("empty id", row(id=" "), "id", "empty"),
    ("no question", row(question=None), "question", "null"),
    ("empty question", row(question=""), "question", "empty"),
    ("half a character", row(answer="\ud800"), "answer", "half a character"),
    (
        "half a character in a label",
        row(boxes=[{**row()["boxes"][0], "label": "\ud800"}, row()["boxes"][1]]),
        "boxes[1].label",
        "half a character",
    ),
    ("a control character in the id", row(id="q\x1b[31m1"), "id", "control character"),
    ("a line end in the id", row(id="q\u20281"), "id", "line end"),
    ("an image name longer than file systems take", row(image="a" * 300), "image", "cannot be looked for"),
    ("empty answer", row(answer="  "), "answer", "empty"),
    ("a number as answer", row(answer=3), "answer", "must be `str`, not `int`"),
    ("unknown type", row(question_type="count"), "question_type", "must not be 'count'; allowed: 'verify', 'query'"),
    ("newer schema", row(schema=2), "schema", "allowed: 1"),
    ("no image", {k: v for k, v in row().items() if k != "image"}, "image", "missing"),
    ("image missing", row(image="images/b.png"), "image", "'images/b.png' is missing"),
    ("a folder as image", row(image="images"), "image", "is a folder"),
    ("an address as image", row(image="https://a.org/b.png"), "image", "download"),
    ("truncated image", row(image="images/cut.png"), "image", "cannot be read"),
    ("text as image", row(image="images/text.png"), "image", "not an image in a format that can be read"),
    ("no boxes", row(boxes=None), "boxes", "missing"),
    ("boxes no list", row(boxes={"box": 1}), "boxes", "list of boxes"),
    ("box outside, right", row(boxes=one_box([0, 0, 65, 48])), "boxes[1].box", "64 x 48"),
    ("box outside, bottom", row(boxes=one_box([0, 0, 64, 49])), "boxes[1].box", "64 x 48"),
    ("box outside, left", row(boxes=one_box([-1, 0, 64, 48])), "boxes[1].box", "0 or more"),
    (
        "box outside the upright image",
        row(image="images/turned.jpg", boxes=[{"box": [0, 0, 60, 40], "relevant": True}] * 1),
        "boxes[1].box",
        "48 x 64",
    ),
    ("zero area", row(boxes=one_box([5, 5, 5, 9])), "boxes[1].box", "no area"),
    ("corners swapped", row(boxes=one_box([9, 5, 5, 9])), "boxes[1].box", "no area"),
    ("three corners", row(boxes=one_box([5, 5, 9])), "boxes[1].box", "4 whole numbers"),
    ("half a pixel", row(boxes=one_box([5, 5, 9.5, 9])), "boxes[1].box", "4 whole numbers"),
    ("true as a corner", row(boxes=one_box([True, 5, 9, 9])), "boxes[1].box", "4 whole numbers"),
    ("relevance as text", row(boxes=one_box([1, 1, 9, 9], "yes")), "boxes[1].relevant", "must be `bool`"),
    ("relevance missing", row(boxes=one_box([1, 1, 9, 9], None)), "boxes[1].relevant", "null"),
    ("a box that is a list", row(boxes=[[1, 1, 9, 9]]), "boxes[1]", "must be an object"),
    ("no relevant box", row(boxes=one_box([1, 1, 9, 9], False)), "boxes", "no box is relevant"),
    ("no box at all", row(boxes=[], steps=[]), "boxes", "no box is relevant"),
    ("relevant and not", row(boxes=[*one_box([50, 10, 60, 20])]), "boxes[2]", "once relevant and once not"),
    ("steps no list", row(steps="a"), "steps", "list of steps"),
    ("a step of text", row(steps=["a"]), "steps[1]", "must be an object"),
    ("a step without text", row(steps=[{"correct": True}]), "steps[1].text", "missing"),
    ("a step without a mark", row(steps=[{"text": "a"}]), "steps[1].correct", "missing"),
    ("a step marked 1", row(steps=[{"text": "a", "correct": 1}]), "steps[1].correct", "must be `bool`"),
    ("a correct step names R9", row(steps=[{"text": "See R9.", "correct": True}]), "steps[1].text", "R9"),
    (
        "a correction names R9",
        row(steps=[{"text": "x", "correct": False, "correction": "See R9."}]),
        "steps[1].correction",
        "R1 to R2",
    ),
    ("group a number", row(group=4), "group", "not `int`"),
]

WARNINGS: list[tuple[str, Any, str, str]] = [
    ("no adversarial box", row(boxes=[{"box": [1, 1, 9, 9], "relevant": True}], steps=[]), "boxes", "adversarial"),
    (
        "the same box twice",
        row(boxes=[*one_box([1, 1, 9, 9]), {"box": [1, 1, 9, 9], "relevant": True}]),
        "boxes[3]",
        "same rectangle as boxes[1]",
    ),
    ("no correction", row(steps=[{"text": "x", "correct": False}]), "steps[1].correction", "missing"),
    (
        "a correction too many",
        row(steps=[{"text": "x", "correct": True, "correction": "y"}]),
        "steps[1].correction",
        "not used",
    ),
    (
        "a wrong step names R9",
        row(steps=[{"text": "R9.", "correct": False, "correction": "R1."}]),
        "steps[1].text",
        "R9",
    ),
    ("no full answer", row(full_answer=""), "full_answer", "empty"),
]


@pytest.mark.parametrize(("line", "key", "word"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS])
def test_each_error_is_found_once_and_the_item_left_out(folder: Path, line: Any, key: str, word: str) -> None:
    path = put(folder, row(91), line, row(92))
    errors = [fault for fault in check(path) if fault.level == "error"]
    assert [(fault.line, fault.key) for fault in errors] == [(2, key)]
    assert word in errors[0].message
    assert "\n" not in str(errors[0])
    data = read(path)
    assert [item.id for item in data.items] == ["q91", "q92"]
    assert (data.total, data.left_out) == (3, 1)
    assert "1 of 3 items left out: line 2" in data.note
    assert "\n" not in data.note


@pytest.mark.parametrize(("line", "key", "word"), [case[1:] for case in WARNINGS], ids=[case[0] for case in WARNINGS])
def test_a_warning_leaves_the_item_in(folder: Path, line: Any, key: str, word: str) -> None:
    path = put(folder, line)
    faults = check(path)
    assert [(fault.line, fault.item, fault.key, fault.level) for fault in faults] == [(1, "q1", key, "warning")]
    assert word in faults[0].message
    assert len(read(path).items) == 1


def test_60_boxes_are_a_warning(folder: Path) -> None:
    Image.new("RGB", (1000, 1000)).save(folder / "images" / "large.png")
    corners = [(20 + 100 * column, 60 + 150 * row) for row in range(6) for column in range(10)]
    boxes = [{"box": [x, y, x + 60, y + 60], "relevant": x > 20} for x, y in corners]
    faults = check(put(folder, row(boxes=boxes, image="images/large.png")))
    assert [(fault.key, fault.level, fault.kind) for fault in faults] == [("boxes", "warning", "many boxes")]
    assert "60 boxes" in faults[0].message


def test_a_box_of_which_the_drawing_hides_over_a_tenth_is_named(folder: Path) -> None:
    # An image of 64 x 48 has outlines of 1 pixel, inside a box where the image ends. Numbers find room below or above
    # these boxes.
    hidden = {
        (0, 10, 10, 20): None,  # 10 of 100 pixels: the left column
        (0, 10, 9, 20): "11.1 %",  # 10 of 90
        (0, 0, 10, 10): "19.0 %",  # 10 + 9 of 100
        (0, 0, 20, 20): None,  # 20 + 19 of 400
    }
    many = [
        row(at, boxes=[{"box": box, "relevant": True}, {"box": [40, 20, 60, 46], "relevant": False}], steps=[])
        for at, box in enumerate(hidden)
    ]
    faults = check(put(folder, *many))
    assert [(fault.line, fault.key, fault.level, fault.kind) for fault in faults] == [
        (at, "boxes[1]", "warning", "box hidden") for at in (2, 3)
    ]
    assert [
        f"hide {share}" in fault.message for share, fault in zip(filter(None, hidden.values()), faults, strict=True)
    ] == [True, True]


def test_all_faults_of_a_line_are_told_at_once(folder: Path) -> None:
    line = row(answer="", question_type="count", image="images/b.png", boxes=one_box([0, 0, 0, 9], "no"))
    keys = {fault.key for fault in check(put(folder, line)) if fault.level == "error"}
    assert keys == {"answer", "question_type", "image", "boxes[1].box", "boxes[1].relevant"}
    line = row(answer="", boxes=one_box([0, 0, 99, 9]))  # the image is looked at although the item is unusable already
    assert {fault.key for fault in check(put(folder, line))} == {"answer", "boxes[1].box"}


def test_a_faulty_box_hides_no_fault_of_another(folder: Path) -> None:
    same = {"box": [30, 10, 40, 20], "relevant": False}
    boxes = [
        {"box": [1, 1, 9], "relevant": False},
        {"box": [-4, 0, 90, 9], "relevant": False},
        same,
        {"box": [70, 50, 70, 60], "relevant": 1},
        same,
    ]
    faults = check(put(folder, row(boxes=boxes, steps=[{"text": "R6.", "correct": True}])))
    assert [(fault.key, fault.kind) for fault in faults] == [
        ("boxes[1].box", "box wrong"),
        ("boxes[2].box", "box outside the image"),  # at the left
        ("boxes[4].relevant", "box wrong"),
        ("boxes[4].box", "box without area"),
        ("boxes[5]", "same box twice"),
        ("steps[1].text", "box named that is not there"),  # there are five, faulty ones too
        ("boxes[2].box", "box outside the image"),  # at the right
        ("boxes[4].box", "box outside the image"),
    ]
    boxes[3]["relevant"] = False  # now every mark is known: none is relevant
    assert "no relevant box" in {fault.kind for fault in check(put(folder, row(boxes=boxes)))}


def test_the_edges_of_the_image_are_inside(folder: Path) -> None:
    turned = [*one_box([0, 0, 48, 64])[:1], {"box": [1, 1, 2, 2], "relevant": False}]
    for line in (row(boxes=one_box([0, 0, 64, 48])), row(image="images/turned.jpg", boxes=turned)):
        assert {fault.kind for fault in check(put(folder, line))} == {"box hidden"}  # by its number and its outline
    with pytest.raises(DatasetError, match="48 x 64"):
        read(put(folder, row(image="images/turned.jpg")), decode=False)  # the header alone says so too


def test_duplicate_ids_name_the_first_line(folder: Path) -> None:
    path = put(folder, row(1), "", row(2), row(1))
    (fault,) = check(path)
    assert (fault.line, fault.item, fault.key) == (4, "q1", "id")  # blank lines are no items, but they are lines
    assert "line 1" in fault.message
    assert [item.id for item in read(path).items] == ["q1", "q2"]


def test_bytes_that_are_no_text_and_a_byte_order_mark(folder: Path) -> None:
    path = folder / "items.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(row(1)).encode() + b"\r\n\xff\xfe{}\r\n")
    (fault,) = check(path)
    assert (fault.line, "UTF-8" in fault.message) == (2, True)
    assert [item.id for item in read(path).items] == ["q1"]


def test_nothing_usable_is_one_clear_error(folder: Path) -> None:
    path = put(folder, *(row(n, answer="") for n in range(5)))
    with pytest.raises(
        DatasetError,
        match=r"none of its 5 items can be used: line 1 \(q0\): answer: is empty; .*and 2 more; type 'lmms-patch magic check",
    ):
        read(path)
    path.write_text("\n")
    with pytest.raises(DatasetError, match="holds no item"):
        read(path)
    assert check(path) == [Fault(0, "", "", "holds no item; every line must be one JSON object", "error", "no item")]


def test_paths_that_are_no_dataset(folder: Path) -> None:
    for path, word in (
        (folder / "no.jsonl", "no such file"),
        (folder / "images", "holds no .jsonl or .parquet"),
        (folder / "images" / "a.png", "allowed: .jsonl"),
    ):
        with pytest.raises(DatasetError, match=word):
            read(path)
    put(folder, row()).rename(folder / "a.jsonl")
    assert len(read(folder).items) == 1
    (folder / "b.jsonl").write_text("")
    with pytest.raises(DatasetError, match=r"2 datasets \(a.jsonl, b.jsonl\)"):
        read(folder)


def test_an_image_that_goes_missing_later_is_one_line(folder: Path) -> None:
    data = read(put(folder, row()))
    (folder / "images" / "a.png").unlink()
    with pytest.raises(DatasetError, match=r"line 1 \(q1\): image: 'images/a.png' is missing"):
        data.image(data.items[0])


def test_parquet_gives_the_same_items_as_jsonl(folder: Path) -> None:
    rows = [row(n) for n in range(5)]
    assert read(as_parquet(folder, rows)).items == read(put(folder, *rows)).items


def test_a_schema_column_with_nulls(folder: Path) -> None:
    """pandas stores whole numbers beside nulls as floats."""
    assert len(read(as_parquet(folder, [row(0, schema=1.0), row(1, schema=None)])).items) == 2
    assert read(as_parquet(folder, [row(0, schema=1.0), row(1, schema=2.0)])).left_out == 1


def test_parquet_with_images_in_the_rows(folder: Path) -> None:
    rows = [row(n, image={"bytes": png((64 + n, 48)), "path": "x.png"}) for n in range(5)]
    rows[3]["image"] = {"bytes": b"junk", "path": None}
    data = read(as_parquet(folder, rows))
    assert [data.image(item).size for item in reversed(data.items)] == [
        (68, 48),
        (66, 48),
        (65, 48),
        (64, 48),
    ]  # of any row group, in any order
    assert all(item.image == "" for item in data.items)
    assert "line 4 (q3): image: the image in the row cannot be read" in data.note


def test_damaged_parquet(folder: Path) -> None:
    path = as_parquet(folder, [row(n) for n in range(5)])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DatasetError, match="cannot be read as parquet"):
        read(path)


def test_a_name_on_the_hub_without_a_network(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    import datasets

    def offline(*_: Any, **__: Any) -> Any:
        raise ConnectionError("offline\nmore")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(
        DatasetError, match=r"someone/magic: no such file, and the hub gives no split 'dev' of it \(offline\)"
    ):
        read("someone/magic", split="dev")

    held = datasets.Dataset.from_list([row(n, image={"bytes": png((64, 48)), "path": None}) for n in range(3)])
    held = held.cast_column("image", datasets.Image())
    monkeypatch.setattr(datasets, "load_dataset", lambda name, split: held)
    data = read("someone/magic")
    assert [item.id for item in data.items] == ["q0", "q1", "q2"]
    assert data.image(data.items[2]).size == (64, 48)
    assert check("someone/magic") == []


# the form


def usable(line: Any) -> bool:
    return parse(line, Faults(1)) is not None


def test_the_schema_says_what_the_reader_says() -> None:
    """But for what only the reader can see: see the schema's description."""
    validator = jsonschema.Draft202012Validator(schemas.load("magic-item"))
    validator.check_schema(schemas.load("magic-item"))
    beyond = {"swapped", "zero area", "names R9", "once", "and not", "half a", "control", "line end"}
    for name, line, key, _ in [*ERRORS, *WARNINGS, ("good", row(), "", "")]:
        if (
            isinstance(line, str)
            or key == "image"
            or any(word in name for word in beyond)
            or name.startswith("box outside, ")
            or "upright" in name
        ):
            continue
        assert validator.is_valid(line) == usable(line), name
    assert not validator.is_valid(row(boxes=one_box([-1, 0, 4, 4])))


texts = st.text(min_size=1, max_size=12).filter(str.strip)
ids = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=12).filter(str.strip)


@st.composite
def items(draw: st.DrawFn) -> MagicItem:
    boxes = []
    for place in range(draw(st.integers(1, 4))):
        left, top = draw(st.integers(0, 50)), draw(st.integers(0, 50)) + 100 * place
        boxes.append(
            Box(
                left,
                top,
                left + draw(st.integers(1, 9)),
                top + draw(st.integers(1, 9)),
                place == 0 or draw(st.booleans()),
                draw(st.text(max_size=5)),
            )
        )
    steps = tuple(
        Step(draw(texts), correct, "" if correct else "it is so")
        for correct in draw(st.lists(st.booleans(), max_size=3))
    )
    kind = draw(st.sampled_from(["", "verify", "compare"]))
    return MagicItem(
        draw(ids),
        "a.png",
        draw(texts),
        kind,
        draw(texts),
        draw(st.text(max_size=5)),
        tuple(boxes),
        steps,
        draw(st.text(max_size=3)),
        {"k": [1, "x"]},
    )


@examples(60)
@given(items())
def test_an_item_survives_being_written(item: MagicItem) -> None:
    found = Faults(1)
    again = parse(json.loads(json.dumps(to_row(item))), found)
    named = [fault for fault in found.found if "names R" in fault.message]  # a random text may name a box
    assert again == item or named
    jsonschema.validate(to_row(item), schemas.load("magic-item"))


def test_write_is_whole_or_not_at_all(folder: Path) -> None:
    data = read(put(folder, row(1), row(2)))
    write(folder / "new" / "items.jsonl", [MagicItem(**{**vars(item), "image": "a.png"}) for item in data.items])
    (folder / "new" / "a.png").write_bytes((folder / "images" / "a.png").read_bytes())
    again: Dataset = read(folder / "new")
    assert [item.boxes for item in again.items] == [item.boxes for item in data.items]
    assert sorted(path.name for path in (folder / "new").iterdir()) == ["a.png", "items.jsonl"]
    with pytest.raises(RecordError, match="cannot be written"):
        write(folder / "images" / "a.png" / "items.jsonl", data.items)
