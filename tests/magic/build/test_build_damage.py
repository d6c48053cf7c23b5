"""The builder on damaged inputs: what is wrong is counted and named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from lmms_patch.errors import OptionError
from lmms_patch.magic.build.builder import BuildSettings
from lmms_patch.magic.build.gqa import BuildError
from tests.magic.faults import check
from tests.magic.worlds import QUESTIONS, SIZE, World, question, scene


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


# damage


@pytest.mark.parametrize("name", ["questions.json", "scenes.json"])
def test_a_key_that_stands_twice_is_refused(world: World, name: str) -> None:
    path = world.folder / name
    key, value = next(iter(json.loads(path.read_text()).items()))
    path.write_text(path.read_text().replace("{", f'{{"{key}": {json.dumps(value)}, ', 1))
    with pytest.raises(BuildError, match=f"{name}: .* the key '{key}' stands twice in one object"):
        world.build()


def test_half_characters_are_dropped_and_named(world: World) -> None:
    scenes = {"1": scene(), "2": scene()}
    scenes["1"]["objects"]["z\ud800"] = {"name": "thing", "x": 128, "y": 88, "w": 24, "h": 24}
    extra = {"a\ud800": question("1", "o1"), "b\x1b": question("1", "o1"), "c": question("1", "o1", "z\ud800")}
    world.put({**QUESTIONS, **extra}, scenes)
    built = world.build(weak=True, adversarial=9, limit=8)
    assert [entry[:2] for entry in built.dropped] == [
        (name, "question damaged") for name in ("a\\ud800", "b\\x1b", "c")
    ]
    assert [item.id for item in built.items] == sorted(QUESTIONS)
    assert not [fault for fault in check(built.folder) if fault.level == "error"]


@pytest.mark.parametrize("side", ["1e400", "1" + "0" * 400, "1e-320", "NaN", "true"])
def test_sizes_that_are_none(world: World, side: str) -> None:
    path = world.folder / "scenes.json"
    path.write_text(path.read_text().replace('"width": 160, "height": 120', f'"width": {side}, "height": {side}', 1))
    assert {entry[:2] for entry in world.build().dropped} == {(qid, "scene damaged") for qid in ("1a", "1b", "1c")}


def test_a_number_that_python_does_not_read(world: World) -> None:
    path = world.folder / "scenes.json"
    path.write_text(path.read_text().replace('"width": 160', '"width": 1' + "0" * 9000, 1))
    with pytest.raises(BuildError, match="the scene graphs cannot be read"):
        world.build()


DAMAGE: list[tuple[str, str, str]] = [
    ("d01", "question without scene", "image 9"), ("d02", "image missing", "7.jpg"),
    ("d03", "image unreadable", "cannot be read"), ("d04", "scene damaged", "no objects"),
    ("d05", "scene damaged", "no size"),
    ("d06", "scene of another image", "the scene is 120 x 160, the image 160 x 120"),
    ("d07", "no relevant box", "x1: object without size"), ("d08", "no relevant box", "x2: object outside the image"),
    ("d09", "no relevant box", "nowhere: object not in the scene"), ("d10", "no relevant box", "no object"),
    ("d11", "question damaged", "question is missing"), ("d12", "question damaged", "answer is missing or empty"),
    ("d13", "question damaged", "no object"), ("d14", "question damaged", "names no image file"),
    ("d15", "question damaged", "names no image file"), ("d16", "question damaged", "answer is no text"),
]  # fmt: skip


def damaged(world: World) -> None:
    (world.images / "3.png").write_bytes((world.images / "1.png").read_bytes()[:900])
    for name in ("4", "5", "6"):
        Image.new("RGB", SIZE).save(world.images / f"{name}.png")
    odd = scene()
    odd["objects"].update(
        x1={"name": "flat", "x": 3, "y": 3, "w": 0, "h": 9},
        x2={"name": "away", "x": 900, "y": 0, "w": 9, "h": 9},
        x3={"name": "bare"},
    )
    scenes = {
        "1": odd,
        "2": scene(),
        "3": scene(),
        "4": {"width": 160, "height": 120},
        "5": {**scene(), "width": None},
        "6": {**scene(), "width": 120, "height": 160},
        "7": scene(),
    }
    extra = {
        "d01": question("9", "o1"), "d02": question("7", "o1"), "d03": question("3", "o1"),
        "d04": question("4", "o1"), "d05": question("5", "o1"), "d06": question("6", "o1"),
        "d07": question("1", "x1"), "d08": question("1", "x2"), "d09": question("1", "nowhere"), "d10": question("1"),
        "d11": question("1", "o1", question=None), "d12": question("1", "o1", answer=" "), "d13": "not an object",
        "d14": question("../1", "o1"), "d15": question("", "o1"), "d16": question("1", "o1", answer=4),
        "e1": question("2", "o0", "x9"),
        "e2": question("1", "o0", "x3", types={"structural": "count"}, fullAnswer=None),
    }  # fmt: skip
    world.put({**QUESTIONS, **extra}, scenes)


def test_damage_is_counted_and_named(world: World) -> None:
    damaged(world)
    built = world.build(weak=True)
    assert [(qid, reason) for qid, reason, _ in built.dropped] == [case[:2] for case in DAMAGE]
    for (_, _, detail), (_, _, word) in zip(built.dropped, DAMAGE, strict=True):
        assert word in detail
    assert [item.id for item in built.items] == [*sorted(QUESTIONS), "e1", "e2"]
    counts = built.counts
    assert (counts["questions"], counts["items"], counts["dropped"]) == (23, 7, 16)
    assert sum(count for name, count in counts.items() if name.startswith("dropped: ")) == 16
    assert counts["dropped: question damaged"] == 6
    assert counts["object not in the scene"] == 1  # of e1
    assert counts["object without size"] == 1  # of e2
    assert counts["items of unknown question type"] == 1
    record = json.loads((built.folder / "build.json").read_text())
    assert record["items"]["e1"]["objects"] == {"x9": "object not in the scene"}
    assert record["counts"] == counts
    assert [one["id"] for one in record["dropped"]] == [case[0] for case in DAMAGE]
    assert not [fault for fault in check(built.folder) if fault.level == "error"]


def test_damaged_saliency(world: World) -> None:
    for t in (0, 1, 2):
        (world.maps / f"1a_{t}.png").unlink()
    (world.maps / "1b_1.png").unlink()
    (world.maps / "1c_0.png").write_bytes(b"junk")
    built = world.build()
    assert built.dropped == (
        ("1a", "no saliency map", "1a_0.png to 1a_2.png"),
        ("1c", "saliency map unreadable", "1c_0.png (UnidentifiedImageError)"),
    )
    assert built.counts["saliency maps missing"] == 1


def test_truncated_files_and_missing_folders_are_one_line(world: World) -> None:
    text = (world.folder / "questions.json").read_text()
    for content, word in (
        (text[:-40], "is the file whole"),
        ("[1]", "must be one JSON object"),
        ("{}", "no item can be built from 0 questions"),
    ):
        (world.folder / "questions.json").write_text(content)
        with pytest.raises(BuildError, match=word):
            world.build()
    (world.folder / "questions.json").write_text(json.dumps({"x": 1, "y": question("1")}))
    with pytest.raises(BuildError, match=r"2 questions \(no relevant box: 1, question damaged: 1\)"):
        world.build(weak=True)
    with pytest.raises(BuildError, match="no such folder of saliency maps"):
        world.build(saliency=world.folder / "nowhere")
    with pytest.raises(OptionError, match="no saliency maps: give --saliency"):
        BuildSettings()
    with pytest.raises(OptionError, match="takes no saliency maps"):
        BuildSettings(weak=True, saliency="maps")


def test_an_image_without_room_gives_fewer_boxes_and_is_counted(world: World) -> None:
    wall = {
        "width": 160,
        "height": 120,
        "objects": {"w": {"name": "wall", "x": 0, "y": 0, "w": 160, "h": 120}, "o1": scene()["objects"]["o1"]},
    }
    world.put({"a": question("1", "w"), "b": question("2", "o1")}, {"1": wall, "2": scene()})
    built = world.build(weak=True, adversarial=3)
    assert [sum(not box.relevant for box in item.boxes) for item in built.items] == [0, 3]
    assert built.counts["items short of adversarial boxes"] == 1


def test_scenes_and_annotations_without_end_are_dropped_in_a_line(world: World) -> None:
    many = {
        "width": 160,
        "height": 120,
        "objects": {f"o{at}": {"name": "x", "x": at % 150, "y": at % 110, "w": 5, "h": 5} for at in range(50_000)},
    }
    tiny = {
        "width": 160,
        "height": 120,
        "objects": {f"o{at}": {"name": "x", "x": at % 40 * 4, "y": at // 40 * 4, "w": 3, "h": 3} for at in range(150)},
    }
    deep: object = "o1"
    for _ in range(900):
        deep = [deep]
    asked = {
        "1a": question("1", "o0"),
        "2a": question("2", *tiny["objects"]),
        "2b": question("2", *(f"none{at}" for at in range(5_000))),
        "2c": {**question("2"), "annotations": {"question": deep}},
        "2d": question("2", "o3"),
    }
    world.put(asked, {"1": many, "2": tiny})
    built = world.build(weak=True)
    assert [item.id for item in built.items if item.id != "2c"] == ["2d"]
    assert {(qid, reason) for qid, reason, _ in built.dropped if qid != "2c"} == {
        ("1a", "scene damaged"),
        ("2a", "too many boxes"),
        ("2b", "no relevant box"),
    }
    assert all(len(detail) < 1_000 for _, _, detail in built.dropped)
