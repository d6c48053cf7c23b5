"""The builder on small worlds whose boxes and questions are known."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.magic.build import gqa
from lmms_patch.magic.build.builder import BuildSettings, Built, Progress, build
from lmms_patch.magic.build.choose import Inputs, choose
from lmms_patch.magic.build.gqa import BuildError, DropError
from lmms_patch.magic.dataset import read
from tests.magic.faults import check
from tests.magic.worlds import LATTICE, QUESTIONS, SIZE, KilledError, World, contents, question, scene
from tests.sizes import examples


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


def corners(key: str) -> tuple[int, int, int, int]:
    x, y = LATTICE[key]
    return (x, y, x + 24, y + 24)


def rects(built: Built, qid: str, relevant: bool) -> list[tuple[int, int, int, int]]:
    (item,) = [item for item in built.items if item.id == qid]
    return [(b.left, b.top, b.right, b.bottom) for b in item.boxes if b.relevant == relevant]


def test_what_is_relevant_and_what_is_adversarial(world: World) -> None:
    built = world.build()
    assert [item.id for item in built.items] == sorted(QUESTIONS)
    # 1a: its two objects, and the hotspot of its maps, which is object o11 to the pixel but for rounded corners, and is
    # no object of the question
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
    built = world.build()
    assert check(built.folder) == []
    assert read(built.folder).items == built.items
    assert sorted(contents(built.folder)) == ["build.json", "images/1.png", "images/2.png", "items.jsonl"]
    assert contents(built.folder)["images/1.png"] == (world.images / "1.png").read_bytes()  # undrawn
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


@pytest.mark.parametrize("at", range(1, len(QUESTIONS) + 1))
def test_a_build_that_was_killed_is_made_again_to_the_same_bytes(world: World, at: int) -> None:
    world.build("whole")

    def kill(progress: Progress) -> None:
        if progress.done == at:
            raise KilledError

    with pytest.raises(KilledError):
        world.build(tell=kill)
    assert not (world.folder / "out" / "items.jsonl").exists()
    told: list[Progress] = []
    world.build(tell=told.append)
    assert [(one.done, one.total, one.kept, one.outcome) for one in told] == [(n, 5, n, "made") for n in range(1, 6)]
    assert contents(world.folder / "out") == contents(world.folder / "whole")


def test_items_that_are_there_are_never_written_over(world: World) -> None:
    """Annotators may have written steps into them."""
    before = contents(world.build().folder)
    for changes in ({}, {"seed": 5}):
        with pytest.raises(BuildError, match=r"items\.jsonl is there already; give another --output, or delete it"):
            world.build(**changes)
    assert contents(world.folder / "out") == before


def test_images_of_the_inputs_may_lie_in_the_folder_itself(world: World) -> None:
    before = contents(world.images)
    build(
        world.folder / "questions.json",
        world.folder / "scenes.json",
        world.images,
        world.folder,
        BuildSettings(weak=True),
    )
    assert contents(world.images) == before


def test_texts_with_separators_and_other_scripts_are_read_again(world: World) -> None:
    text = "左の\u2028猫\x85は\x1e何色?\r\n"
    world.put({qid: {**one, "question": text} for qid, one in QUESTIONS.items()}, {"1": scene(), "2": scene()})
    assert {item.question for item in read(world.build().folder).items} == {text}


def test_a_limit_takes_a_seeded_sample(world: World) -> None:
    two, four = world.build("two", limit=2), world.build("four", limit=4)
    assert len(two.items) == 2
    assert {item.id for item in two.items} < {item.id for item in four.items}
    samples = {tuple(item.id for item in world.build(f"s{seed}", limit=2, seed=seed).items) for seed in range(8)}
    assert len(samples) > 2


# many worlds


def test_scenes_are_scaled_to_smaller_copies_of_their_image() -> None:
    half = gqa.scene(
        {
            "width": 320,
            "height": 240,
            "objects": {"a": {"x": 10, "y": 21, "w": 20, "h": 20}, "b": {"x": 300, "y": 0, "w": 99, "h": 9}},
        },
        SIZE,
    )
    assert half.boxes == {"a": (5, 10, 15, 21), "b": (150, 0, 160, 5)}  # halved, rounded outwards, clipped
    assert gqa.scene({"width": 1024, "height": 681, "objects": {}}, (500, 332)).boxes == {}  # sides are rounded
    with pytest.raises(DropError):
        gqa.scene({"width": 1024, "height": 681, "objects": {}}, (500, 350))


boxes = st.tuples(st.integers(-5, 90), st.integers(-5, 70), st.integers(0, 50), st.integers(0, 50))


@examples(80)
@given(st.lists(boxes, min_size=1, max_size=10), st.integers(1, 4), st.integers(0, 10**6), st.integers(0, 5))
def test_no_adversarial_box_meets_a_relevant_one(
    placed: list[tuple[int, int, int, int]], own: int, seed: int, quota: int
) -> None:
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
