"""Building where an earlier run left something, and apart from another dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_patch.app.commands.magic_build import text
from lmms_patch.magic.build.builder import BuildSettings, build
from lmms_patch.magic.build.gqa import BuildError
from tests.magic.worlds import KilledError, World, contents


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


# what an earlier run left


def test_a_smaller_limit_leaves_nothing_of_the_larger(world: World) -> None:
    (world.folder / "out" / "images").mkdir(parents=True)
    (world.folder / "out" / "images" / "mine.txt").write_text("precious")
    world.build(limit=5, previews=True)
    world.build(limit=1, previews=True)
    world.build("fresh", limit=1, previews=True)
    held = contents(world.folder / "out")
    assert held.pop("images/mine.txt") == b"precious"
    assert held == contents(world.folder / "fresh")
    world.build(limit=1, contact=0)
    world.build("bare", limit=1, contact=0)
    (world.folder / "out" / "images" / "mine.txt").unlink()
    assert contents(world.folder / "out") == contents(world.folder / "bare")
    assert not (world.folder / "out" / "previews").exists()


def test_images_of_the_inputs_are_never_removed(world: World) -> None:
    """Where a dataset is built around the folder of its own images."""
    before = contents(world.images)
    for limit in (5, 1):
        build(
            world.folder / "questions.json",
            world.folder / "scenes.json",
            world.images,
            world.folder,
            BuildSettings(weak=True, limit=limit),
        )
        assert contents(world.images) == before
    (world.folder / "linked").mkdir()
    (world.folder / "linked" / "images").symlink_to(world.images)
    for limit in (5, 1):
        world.build("linked", limit=limit)
        assert contents(world.images) == before


def test_an_image_that_was_changed_after_the_build_is_put_back(world: World) -> None:
    world.build()
    before = contents(world.folder / "out")
    Image.new("RGB", (5, 5)).save(world.folder / "out" / "images" / "1.png")
    world.build()
    assert contents(world.folder / "out") == before


@pytest.mark.parametrize("change", ["answer", "steps", "gone", "more"])
def test_items_that_were_changed_after_the_build_are_not_written_over(world: World, change: str) -> None:
    path = world.build().folder / "items.jsonl"
    first, *rest = map(json.loads, path.read_text().splitlines())
    added = {
        "answer": {"answer": "CHANGED"},
        "steps": {"steps": [{"text": "So.", "correct": True, "correction": ""}]},
    }.get(change, {})
    rows = (
        rest
        if change == "gone"
        else [{**first, **added}, *rest, *([{**first, "id": "mine"}] if change == "more" else [])]
    )
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    before = contents(world.folder / "out")
    for _ in range(2):  # the first refusal leaves nothing by which the second would be another
        with pytest.raises(
            BuildError,
            match=r"was changed after it was built \(1 item, such as '(1a|mine)'\), and would be written over",
        ):
            world.build()
        assert contents(world.folder / "out") == before


@pytest.mark.parametrize("limits", [(2, 4), (4, 2), (None, None)])
def test_a_kill_between_the_items_and_the_record(
    world: World, limits: tuple[int | None, int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.build(limit=limits[0])
    world.map("1b_1", (8, 88, 32, 112))

    def kill(*_: Any) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr("lmms_patch.magic.build.builder.write_pictures", kill)
        with pytest.raises(KilledError):
            world.build(limit=limits[1])
    world.build(limit=limits[1])
    world.build("fresh", limit=limits[1])
    assert contents(world.folder / "out") == contents(world.folder / "fresh")


# another dataset, none of whose images is to be used


def apart(world: World, *rows: dict[str, Any]) -> Path:
    path = world.folder / "other.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_apart_from_a_dataset_whose_items_are_faulty(world: World) -> None:
    """The file names image 2 in an item that runs would leave out; image 1 is not named."""
    built = world.build(
        apart_from=apart(world, {"id": "x", "image": "gone/2.png", "question": "?", "boxes": []}, {"id": "y"})
    )
    assert [item.id for item in built.items] == ["1a", "1b", "1c"]
    assert {entry[:2] for entry in built.dropped} == {
        ("2a", "image of the other dataset"),
        ("2b", "image of the other dataset"),
    }
    assert built.counts["rows of the other dataset that name no image"] == 1
    assert "mind: 1 rows of the other dataset" in text(built)


def test_apart_from_a_parquet_that_holds_its_images(world: World) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    image = {"bytes": (world.images / "2.png").read_bytes(), "path": "2.png"}
    box = {"box": [0, 0, 20, 20], "relevant": True}
    pq.write_table(
        pa.Table.from_pylist([{"id": "x", "image": image, "question": "?", "answer": "!", "boxes": [box]}]),
        world.folder / "p.parquet",
    )
    assert {item.group for item in world.build(apart_from=world.folder / "p.parquet").items} == {"1"}


def test_apart_from_a_dataset_that_names_no_image_is_refused(world: World) -> None:
    with pytest.raises(BuildError, match="nothing can be kept apart from it: none of its 2 rows names its image"):
        world.build(apart_from=apart(world, {"id": "x"}, {"id": "y", "image": ""}))
    with pytest.raises(BuildError, match="it holds no row"):
        world.build(apart_from=apart(world))
