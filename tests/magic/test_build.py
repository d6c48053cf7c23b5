"""The builder on small worlds whose boxes, questions and damage are known."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lmms_patch.errors import OptionError
from lmms_patch.magic import gqa
from lmms_patch.magic.build import JOURNAL, BuildSettings, Built, Progress, build
from lmms_patch.magic.choose import Inputs, choose
from lmms_patch.magic.dataset import check, read
from lmms_patch.magic.gqa import BuildError, DropError

SIZE = (160, 120)
LATTICE = {f"o{place}": (8 + 40 * (place % 4), 8 + 40 * (place // 4)) for place in range(12)}  # corners of 12 objects of 24 x 24, none near another


def scene() -> dict[str, Any]:
    objects = {key: {"name": f"thing {key}", "x": x, "y": y, "w": 24, "h": 24} for key, (x, y) in LATTICE.items()}
    return {"width": SIZE[0], "height": SIZE[1], "objects": objects}


def question(image: str, *objects: str, **changes: Any) -> dict[str, Any]:
    spans = {str(place): key for place, key in enumerate(objects[:-1])}
    return {
        "imageId": image,
        "question": f"Where is {objects[0] if objects else 'it'}?",
        "answer": "left",
        "fullAnswer": "It is left.",
        "types": {"structural": "query"},
        "annotations": {"question": spans, "answer": {}, "fullAnswer": {"0": objects[-1]} if objects else {}},
        **changes,
    }


QUESTIONS = {
    "1a": question("1", "o0", "o1"),
    "1b": question("1", "o2", "o3", "o4"),
    "1c": question("1", "o5", "o6"),
    "2a": question("2", "o0"),
    "2b": question("2", "o1"),
}


class World:
    """Inputs of a build in a folder."""

    def __init__(self, folder: Path, questions: Any = None, scenes: Any = None):
        self.folder = folder
        self.images, self.maps = folder / "images", folder / "maps"
        self.images.mkdir(parents=True)
        self.maps.mkdir()
        for number in (1, 2):
            noise = np.random.default_rng(number).integers(60, 190, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
            Image.fromarray(noise).save(self.images / f"{number}.png")
        self.put(QUESTIONS if questions is None else questions, {"1": scene(), "2": scene()} if scenes is None else scenes)
        for qid in QUESTIONS:
            for t in (0, 1, 2):
                self.map(f"{qid}_{t}")

    def put(self, questions: Any, scenes: Any) -> None:
        (self.folder / "questions.json").write_text(json.dumps(questions))
        (self.folder / "scenes.json").write_text(json.dumps(scenes))

    def map(self, name: str, rect: tuple[int, int, int, int] = (128, 88, 152, 112)) -> None:
        values = np.zeros((SIZE[1], SIZE[0]), np.uint8)
        values[rect[1] : rect[3], rect[0] : rect[2]] = 255
        Image.fromarray(values).save(self.maps / f"{name}.png")

    def build(self, out: str = "out", tell: Callable[[Progress], None] | None = None, **changes: Any) -> Built:
        options = {"saliency": self.maps, "contact": 4, **changes}
        if options.get("weak"):
            options["saliency"] = None
        return build(self.folder / "questions.json", self.folder / "scenes.json", self.images, self.folder / out, BuildSettings(**options), tell)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def corners(key: str) -> tuple[int, int, int, int]:
    x, y = LATTICE[key]
    return (x, y, x + 24, y + 24)


def rects(built: Built, qid: str, relevant: bool) -> list[tuple[int, int, int, int]]:
    (item,) = [item for item in built.items if item.id == qid]
    return [(b.left, b.top, b.right, b.bottom) for b in item.boxes if b.relevant == relevant]


def test_what_is_relevant_and_what_is_adversarial(world: World) -> None:
    built = world.build()
    assert [item.id for item in built.items] == sorted(QUESTIONS)
    # 1a: its two objects, and the hotspot of its maps, which is object o11 to the pixel but for rounded corners, and is no object of the question
    objects, (spot,) = rects(built, "1a", True)[:2], rects(built, "1a", True)[2:]
    assert objects == [corners("o0"), corners("o1")]
    assert max(abs(a - b) for a, b in zip(spot, corners("o11"), strict=True)) <= 1
    # adversarial: three of the five objects that 1b and 1c name
    assert len(rects(built, "1a", False)) == 3
    assert set(rects(built, "1a", False)) <= {corners(key) for key in ("o2", "o3", "o4", "o5", "o6")}
    # 2a: only 2b names other objects, and only one; two are synthetic
    (item,) = [item for item in built.items if item.id == "2a"]
    assert item.more["sources"] == ["object:o0", "saliency:0", "object:o1", "synthetic", "synthetic"]
    assert (item.group, item.type, item.boxes[0].label, item.full_answer) == ("2", "query", "thing o0", "It is left.")
    assert built.counts["synthetic boxes"] == 4
    assert built.counts["items short of adversarial boxes"] == 0
    assert built.counts["adversarial boxes"] == 15


def test_what_is_built_can_be_read_and_has_no_fault(world: World) -> None:
    built = world.build(previews=True)
    assert check(built.folder) == []
    assert read(built.folder).items == built.items
    assert sorted(contents(built.folder)) == [
        "build.json",
        "contact.png",
        "images/1.png",
        "images/2.png",
        "items.jsonl",
        *(f"previews/{qid}.png" for qid in sorted(QUESTIONS)),
    ]
    assert contents(built.folder)["images/1.png"] == (world.images / "1.png").read_bytes()  # undrawn
    with Image.open(built.folder / "previews" / "1a.png") as image:
        assert image.size == SIZE
    assert str(world.folder) not in (built.folder / "build.json").read_text()


def test_the_weakly_supervised_split(world: World) -> None:
    built = world.build(weak=True)
    assert rects(built, "1b", True) == [corners("o2"), corners("o3"), corners("o4")]
    assert built.counts["adversarial boxes"] == 0
    assert all(len(item.boxes) == len(QUESTIONS[item.id]["annotations"]["question"]) + 1 for item in built.items)
    assert {fault.level for fault in check(built.folder)} == {"warning"}
    assert world.build("weak3", weak=True, adversarial=3).counts["adversarial boxes"] == 15


def test_same_seed_same_bytes_other_seed_other_choice(world: World) -> None:
    first = world.build("a")
    world.build("b")
    assert contents(world.folder / "a") == contents(world.folder / "b")
    other = world.build("c", seed=1)
    assert [rects(first, qid, True) for qid in QUESTIONS] == [rects(other, qid, True) for qid in QUESTIONS]
    assert [rects(first, qid, False) for qid in QUESTIONS] != [rects(other, qid, False) for qid in QUESTIONS]


def shuffled(value: Any, seed: int) -> Any:
    """The same JSON with the keys of every object in another order."""
    if not isinstance(value, dict):
        return value
    keys = list(value)
    random.Random(seed).shuffle(keys)
    return {key: shuffled(value[key], seed + 1) for key in keys}


def test_the_order_of_keys_changes_no_byte(tmp_path: Path) -> None:
    scenes = {"1": scene(), "2": scene()}
    plain = World(tmp_path / "plain")
    mixed = World(tmp_path / "mixed", shuffled(QUESTIONS, 3), shuffled(scenes, 4))
    plain.build()
    mixed.build()
    assert contents(plain.folder / "out") == contents(mixed.folder / "out")


def test_a_question_keeps_its_boxes_whatever_other_images_are_asked_about(world: World) -> None:
    full = world.build("full")
    world.put({qid: one for qid, one in QUESTIONS.items() if qid.startswith("1")}, {"1": scene()})
    part = world.build("part")
    assert [item for item in full.items if item.group == "1"] == list(part.items)


class KilledError(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("at", range(1, len(QUESTIONS) + 1))
@pytest.mark.parametrize("cut", [False, True])
def test_a_build_that_is_killed_goes_on_to_the_same_bytes(world: World, at: int, cut: bool) -> None:
    world.build("whole")

    def kill(progress: Progress) -> None:
        if progress.done == at:
            raise KilledError

    with pytest.raises(KilledError):
        world.build(tell=kill)
    journal = world.folder / "out" / JOURNAL
    if cut:  # in the middle of a line
        journal.write_bytes(journal.read_bytes()[:-30])
    told: list[Progress] = []
    world.build(tell=told.append)
    assert [one.outcome for one in told].count("kept") == (at - 1 if cut else at)  # finished items are not made again
    assert [(one.done, one.total, one.kept) for one in told] == [(n, 5, n) for n in range(1, 6)]
    assert contents(world.folder / "out") == contents(world.folder / "whole")


def test_killed_again_and_again(world: World) -> None:
    world.build("whole")
    for at in range(1, 6):

        def kill(progress: Progress, at: int = at) -> None:
            if progress.outcome == "made" or progress.done == at:
                raise KilledError

        with pytest.raises(KilledError):
            world.build(tell=kill)
    world.build()
    assert contents(world.folder / "out") == contents(world.folder / "whole")


def test_a_finished_build_is_not_made_again_but_what_changed_is(world: World) -> None:
    (world.images / "2.png").rename(world.folder / "away.png")
    first = world.build()
    assert [entry[:2] for entry in first.dropped] == [("2a", "image missing"), ("2b", "image missing")]
    (world.folder / "away.png").rename(world.images / "2.png")
    world.map("1b_1", (8, 88, 32, 112))  # a map has changed
    told: list[Progress] = []
    world.build(tell=told.append)
    assert [one.outcome for one in told] == ["kept", "made", "kept", "made", "made"]
    world.build("fresh")
    assert contents(world.folder / "out") == contents(world.folder / "fresh")
    (world.folder / "out" / "images" / "2.png").unlink()
    told.clear()
    world.build(tell=told.append)
    assert [one.outcome for one in told] == ["kept", "kept", "kept", "made", "kept"]
    assert contents(world.folder / "out") == contents(world.folder / "fresh")


def test_texts_with_separators_and_other_scripts_survive_a_resume(world: World) -> None:
    text = "左の\u2028猫\x85は\x1e何色?\r\n"
    world.put({qid: {**one, "question": text} for qid, one in QUESTIONS.items()}, {"1": scene(), "2": scene()})
    world.build()
    told: list[Progress] = []
    built = world.build(tell=told.append)
    assert {one.outcome for one in told} == {"kept"}
    assert {item.question for item in read(built.folder).items} == {text}


def test_a_folder_of_another_build_is_refused(world: World) -> None:
    world.build()
    before = contents(world.folder / "out")
    with pytest.raises(BuildError, match="other questions, scenes or settings; give another folder"):
        world.build(seed=5)
    assert contents(world.folder / "out") == before
    (world.folder / "mine").mkdir()
    (world.folder / "mine" / "items.jsonl").write_text("precious")
    with pytest.raises(BuildError, match="that no build wrote"):
        world.build("mine")
    (world.folder / "out" / "build.json").write_text("{")
    with pytest.raises(BuildError, match="cannot be read"):
        world.build()


def test_a_limit_takes_a_seeded_sample_and_can_be_raised(world: World) -> None:
    two = world.build(limit=2)
    assert len(two.items) == 2
    told: list[Progress] = []
    four = world.build(limit=4, tell=told.append)
    assert {item.id for item in two.items} < {item.id for item in four.items}
    assert [one.outcome for one in told] == ["kept", "kept", "made", "made"]
    samples = {tuple(item.id for item in world.build(f"s{seed}", limit=2, seed=seed, contact=0).items) for seed in range(8)}
    assert len(samples) > 2
    assert "contact.png" not in contents(world.folder / "s0")


def test_links_in_place_of_copies(world: World) -> None:
    built = world.build(placing="link")
    assert (built.folder / "images" / "1.png").is_symlink()
    assert check(built.folder) == []


# damage

DAMAGE: list[tuple[str, str, str]] = [
    # the question, its reason, a word of its detail
    ("d01", "question without scene", "image 9"),
    ("d02", "image missing", "7.jpg"),
    ("d03", "image unreadable", "cannot be read"),
    ("d04", "scene damaged", "no objects"),
    ("d05", "scene damaged", "no size"),
    ("d06", "scene of another image", "the scene is 120 x 160, the image 160 x 120"),
    ("d07", "no relevant box", "x1: object without size"),
    ("d08", "no relevant box", "x2: object outside the image"),
    ("d09", "no relevant box", "nowhere: object not in the scene"),
    ("d10", "no relevant box", "no object"),
    ("d11", "question damaged", "question is missing"),
    ("d12", "question damaged", "answer is missing or empty"),
    ("d13", "question damaged", "no object"),
    ("d14", "question damaged", "names no image file"),
    ("d15", "question damaged", "names no image file"),
    ("d16", "question damaged", "answer is no text"),
]


def damaged(world: World) -> None:
    (world.images / "3.png").write_bytes((world.images / "1.png").read_bytes()[:900])
    for name in ("4", "5", "6"):
        Image.new("RGB", SIZE).save(world.images / f"{name}.png")
    odd = scene()
    odd["objects"].update(
        x1={"name": "flat", "x": 3, "y": 3, "w": 0, "h": 9}, x2={"name": "away", "x": 900, "y": 0, "w": 9, "h": 9}, x3={"name": "bare"}
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
        "d01": question("9", "o1"),
        "d02": question("7", "o1"),
        "d03": question("3", "o1"),
        "d04": question("4", "o1"),
        "d05": question("5", "o1"),
        "d06": question("6", "o1"),
        "d07": question("1", "x1"),
        "d08": question("1", "x2"),
        "d09": question("1", "nowhere"),
        "d10": question("1"),
        "d11": question("1", "o1", question=None),
        "d12": question("1", "o1", answer=" "),
        "d13": "not an object",
        "d14": question("../1", "o1"),
        "d15": question("", "o1"),
        "d16": question("1", "o1", answer=4),
        "e1": question("2", "o0", "x9"),
        "e2": question("1", "o0", "x3", types={"structural": "count"}, fullAnswer=None),
    }
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
    for content, word in ((text[:-40], "is the file whole"), ("[1]", "must be one JSON object"), ("{}", "not one item can be built of 0 questions")):
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
    wall = {"width": 160, "height": 120, "objects": {"w": {"name": "wall", "x": 0, "y": 0, "w": 160, "h": 120}, "o1": scene()["objects"]["o1"]}}
    world.put({"a": question("1", "w"), "b": question("2", "o1")}, {"1": wall, "2": scene()})
    built = world.build(weak=True, adversarial=3)
    assert [len(rects(built, qid, False)) for qid in ("a", "b")] == [0, 3]
    assert built.counts["items short of adversarial boxes"] == 1


# many worlds


def test_scenes_are_scaled_to_smaller_copies_of_their_image() -> None:
    half = gqa.scene(
        {"width": 320, "height": 240, "objects": {"a": {"x": 10, "y": 21, "w": 20, "h": 20}, "b": {"x": 300, "y": 0, "w": 99, "h": 9}}}, SIZE
    )
    assert half.boxes == {"a": (5, 10, 15, 21), "b": (150, 0, 160, 5)}  # halved, rounded outwards, clipped
    assert gqa.scene({"width": 1024, "height": 681, "objects": {}}, (500, 332)).boxes == {}  # sides are rounded
    with pytest.raises(DropError):
        gqa.scene({"width": 1024, "height": 681, "objects": {}}, (500, 350))


boxes = st.tuples(st.integers(-5, 90), st.integers(-5, 70), st.integers(0, 50), st.integers(0, 50))


@settings(max_examples=80, deadline=None)
@given(st.lists(boxes, min_size=1, max_size=10), st.integers(1, 4), st.integers(0, 10**6), st.integers(0, 5))
def test_no_adversarial_box_meets_a_relevant_one(placed: list[tuple[int, int, int, int]], own: int, seed: int, quota: int) -> None:
    size = (100, 80)
    objects = {f"o{place}": dict(zip("xywh", box, strict=True), name="thing") for place, box in enumerate(placed)}
    keys = sorted(objects)
    asked = gqa.question("q", question("1", *keys[:own]))
    graph = {"1": {"width": 100, "height": 80, "objects": objects}}
    inputs = Inputs({}, graph, {}, None, {"1": [("other", tuple(keys)), ("q", tuple(keys[:own]))]})
    options = BuildSettings(seed=seed, weak=True, adversarial=quota)

    def grid(box: tuple[int, int, int, int]) -> np.ndarray:
        out = np.zeros((80, 100), bool)
        out[max(0, box[1]) : max(0, box[3]), max(0, box[0]) : max(0, box[2])] = True
        return out

    relevant = np.zeros((80, 100), bool)  # of every object that the question names, chosen or not
    for key in asked.objects:
        x, y, w, h = (objects[key][side] for side in "xywh")
        relevant |= grid((x, y, x + w, y + h))
    if not relevant.any():
        with pytest.raises(DropError):
            choose(asked, inputs, size, options)
        return
    found, sources, _ = choose(asked, inputs, size, options)
    taken = relevant.copy()
    adversarial = [(box, source) for box, source in zip(found, sources, strict=True) if not box.relevant]
    for box, source in adversarial:
        area = grid((box.left, box.top, box.right, box.bottom))
        assert area.any()
        assert not (area & relevant).any()
        if source == "synthetic":
            assert not (area & taken).any()
        taken |= area
    assert len(adversarial) <= quota
    if len(adversarial) < quota:  # then there is really no room of 8 x 8, the smallest box
        free = ~taken
        assert not any(free[y : y + 8, x : x + 8].all() for y in range(73) for x in range(93))
    assert any(box.relevant for box in found)
    assert (found, sources) == choose(asked, inputs, size, options)[:2]
