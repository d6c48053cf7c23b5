"""A dataset is a stranger's: its rows open no file but images below its own folder, and those of a few formats only."""

from __future__ import annotations

import io
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lmms_patch.magic.build.builder import BuildSettings, build
from lmms_patch.magic.build.choose import maps_of
from lmms_patch.magic.dataset import inspect, read
from lmms_patch.magic.sources import (
    FORMATS,
    MOST_PIXELS,
    DatasetError,
    ImageFaultError,
    decode_image,
    open_source,
    upright_size,
)
from tests.magic.faults import check

SIZE = (64, 48)


def image_bytes(form: str) -> bytes:
    held = io.BytesIO()
    Image.fromarray(np.arange(SIZE[0] * SIZE[1] * 3, dtype=np.uint8).reshape(SIZE[1], SIZE[0], 3)).save(held, form)
    return held.getvalue()


def row(image: Any, name: str = "q1", **changes: Any) -> dict[str, Any]:
    boxes = [{"box": [0, 0, 20, 20], "relevant": True}, {"box": [30, 20, 60, 40], "relevant": False}]
    return {
        "id": name,
        "image": image,
        "question": "What?",
        "answer": "cup",
        "full_answer": "A cup.",
        "boxes": boxes,
        **changes,
    }


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder ``data`` with a good image, beside it one that is nobody's business."""
    (tmp_path / "data" / "images").mkdir(parents=True)
    (tmp_path / "data2").mkdir()
    for place in ("data/images/a.png", "secret.png", "data2/secret.png"):
        (tmp_path / place).write_bytes(image_bytes("PNG"))
    return tmp_path


def faults_of(world: Path, *rows: dict[str, Any]) -> list[str]:
    (world / "data" / "items.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return [fault.message for fault in check(world / "data") if fault.key == "image"]


def test_paths_that_stay_below_the_folder_are_read(world: Path) -> None:
    (world / "data" / "images" / "link.png").symlink_to("a.png")
    (world / "data" / "more").symlink_to("images")
    (world / "elsewhere").symlink_to("data")  # the folder itself may be reached by a link
    names = [
        "images/a.png",
        "./images/../images/a.png",
        "images/link.png",
        "more/a.png",
        str(world / "data" / "images" / "a.png"),
    ]
    assert faults_of(world, *(row(name, f"q{at}") for at, name in enumerate(names))) == []
    assert len(read(world / "elsewhere").items) == len(names)


def test_paths_that_lead_out_of_the_folder_are_refused(world: Path) -> None:
    (world / "data" / "out.png").symlink_to("../secret.png")
    (world / "data" / "up").symlink_to("..")
    (world / "data" / "loop.png").symlink_to("loop.png")
    names = [
        "../secret.png",
        "images/../../secret.png",
        "../data2/secret.png",
        str(world / "secret.png"),
        "out.png",
        "up/secret.png",
    ]
    names += [
        "/dev/zero",
        "/etc/hostname",
        "\\\\server\\share\\a.png",
        "../data/../secret.png",
        "~/../../secret.png",
        "loop.png",
    ]
    found = faults_of(world, *(row(name, f"q{at}") for at, name in enumerate(names)))
    assert len(found) == len(names)
    for name, message in zip(names, found, strict=True):
        assert "leads out of the dataset's folder" in message or name in ("loop.png", "~/../../secret.png"), (
            name,
            message,
        )
    with pytest.raises(DatasetError, match="none of its 12 items"):
        read(world / "data")


def test_what_is_no_file_is_refused_at_once(world: Path) -> None:
    os.mkfifo(world / "data" / "pipe.png")  # to open it waits for ever
    names = ["pipe.png", "images", "nothing.png", "a\0b.png", "file:///etc/hostname", "x" * 5000, "images/a.png/b.png"]
    found = faults_of(world, *(row(name, f"q{at}") for at, name in enumerate(names)))
    assert len(found) == len(names)
    assert "is no file" in found[0]
    assert "is a folder" in found[1]
    assert all("\n" not in message and "\0" not in message and len(message) < 500 for message in found)


def test_a_download_of_the_hub_keeps_its_files_beside_the_folder(world: Path) -> None:
    """As the hub's own client lays it out: a snapshot is a folder of links into ``blobs``; but not elsewhere."""
    home = world / "datasets--owner--name"
    (home / "blobs").mkdir(parents=True)
    (home / "snapshots" / "rev" / "images").mkdir(parents=True)
    (home / "blobs" / "1234").write_bytes(image_bytes("PNG"))
    (home / "blobs" / "5678").write_text(
        json.dumps(row("images/a.png")) + "\n" + json.dumps(row("images/b.png", "q2")) + "\n"
    )
    (home / "snapshots" / "rev" / "items.jsonl").symlink_to("../../blobs/5678")
    (home / "snapshots" / "rev" / "images" / "a.png").symlink_to("../../../blobs/1234")
    (home / "snapshots" / "rev" / "images" / "b.png").symlink_to(world / "secret.png")
    assert [fault.item for fault in check(home / "snapshots" / "rev") if fault.key == "image"] == ["q2"]


def test_paths_of_a_parquet_file_are_held_to_the_same(world: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    cells = [
        {"bytes": None, "path": "images/a.png"},
        {"bytes": None, "path": "../secret.png"},
        {"bytes": image_bytes("PNG"), "path": "/secret.png"},
    ]
    pq.write_table(
        pa.Table.from_pylist([row(cell, f"q{at}") for at, cell in enumerate(cells)]), world / "data" / "a.parquet"
    )
    assert [fault.item for fault in check(world / "data" / "a.parquet") if fault.key == "image"] == ["q1"]


def test_a_dataset_of_the_hub_opens_no_file_of_this_machine(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.chdir(world / "data")
    rows = [row("images/a.png", "q0"), row(str(world / "secret.png"), "q1")]
    monkeypatch.setattr(datasets, "load_dataset", lambda name, split: datasets.Dataset.from_list(rows))
    assert [fault.key for fault in check("owner/name") if fault.key == "image"] == ["image", "image"]
    as_images = datasets.Dataset.from_list([row({"bytes": None, "path": str(world / "secret.png")})]).cast_column(
        "image", datasets.Image(decode=False)
    )
    monkeypatch.setattr(datasets, "load_dataset", lambda name, split: as_images)
    assert "leads out of" in str(check("owner/name")[0])


@pytest.mark.parametrize("form", ["BMP", "GIF", "JPEG", "MPO", "PNG", "PPM", "TIFF", "WEBP"])
def test_formats_that_are_read(world: Path, form: str) -> None:
    (world / "data" / "x").write_bytes(image_bytes(form))
    assert faults_of(world, row("x")) == []


@pytest.mark.parametrize("form", ["EPS", "PDF", "ICNS", "TGA", "JPEG2000", "DDS", "PCX"])
@pytest.mark.parametrize("name", ["x.png", "x.eps"])
def test_other_formats_are_not_whatever_the_file_is_called(
    world: Path, monkeypatch: pytest.MonkeyPatch, form: str, name: str
) -> None:
    from PIL import EpsImagePlugin

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: pytest.fail("another program was called"))
    (world / "data" / name).write_bytes(image_bytes(form))
    (message,) = faults_of(world, row(name))
    assert message.endswith(f"it is not an image in a format that can be read ({', '.join(FORMATS)})")
    for decode in (True, False):
        with pytest.raises(ImageFaultError, match="not an image in a format"):
            upright_size(world / "data" / name, decode)
    with pytest.raises(ImageFaultError):
        decode_image((world / "data" / name).read_bytes())


def test_a_bomb_is_refused_by_its_header_also_where_pillow_was_told_to_read_it(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = 14_000  # 196 million pixels in a few kilobytes
    assert side * side > MOST_PIXELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Image.new("1", (side, side)).save(world / "data" / "bomb.png")
    for most in (Image.MAX_IMAGE_PIXELS, 1_000_000_000, None):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
        (message,) = faults_of(world, row("bomb.png"))
        assert "pixels" in message


def test_a_build_passes_over_pipes_and_opens_no_map_outside_its_folder(world: Path) -> None:
    os.mkfifo(world / "data" / "images" / "b.png")
    question = {"question": "What?", "answer": "cup", "annotations": {"question": {"0": "7"}}}
    scene = {"width": SIZE[0], "height": SIZE[1], "objects": {"7": {"name": "cup", "x": 1, "y": 1, "w": 30, "h": 30}}}
    (world / "questions.json").write_text(
        json.dumps({"1": {**question, "imageId": "a"}, "2": {**question, "imageId": "b"}})
    )
    (world / "scenes.json").write_text(json.dumps({"a": scene, "b": scene}))
    built = build(
        world / "questions.json",
        world / "scenes.json",
        world / "data" / "images",
        world / "out",
        BuildSettings(weak=True),
    )
    assert built.dropped == (("2", "image missing", "b.jpg"),)
    (world / "secret_0.png").write_bytes(image_bytes("PNG"))
    (world / "data" / "in_0.png").write_bytes(image_bytes("PNG"))
    assert maps_of("../secret", world / "data") == {}
    assert maps_of(str(world / "secret"), world / "data") == {}
    assert list(maps_of("in", world / "data")) == [0]


def test_numbers_without_a_place_and_too_many_boxes_are_told(world: Path) -> None:
    small = [{"box": [x, y, x + 6, y + 6], "relevant": True} for y in range(0, 48, 6) for x in range(0, 60, 6)]
    big = [{"box": [0, 0, 32, 48], "relevant": True}, {"box": [32, 0, 64, 48], "relevant": False}]
    rows = [
        row("images/a.png", "q0", boxes=small),
        row("images/a.png", "q1", boxes=big),
        row("images/a.png", "q2", boxes=small + small[:20]),
    ]
    faults_of(world, *rows)
    found = inspect(world / "data").kinds()
    assert ("warning", "number in another box", 80, 1) in found
    assert ("error", "many boxes", 1, 1) in found
    assert len(read(world / "data").items) == 2


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("boxes", "[" + ",".join(['{"box": 1}'] * 100_000) + "]", "100000 boxes; at most 99"),
        ("boxes", '[{"box": [0, 0, 1' + "0" * 400 + ', 9], "relevant": true}]', "leaves the image"),
        ("boxes", '[{"box": [0, 0, 1' + "0" * 5000 + ', 9], "relevant": true}]', "not JSON"),
        ("boxes", '[{"box": [0, 0, 1e999, 9], "relevant": true}]', "4 whole numbers"),
        ("boxes", '[{"box": [0, 0, 1e308, 9], "relevant": true}]', "leaves the image"),
        ("boxes", "[" * 100_000, "not JSON"),
        ("boxes", "[" * 900 + "]" * 900, "must be an object"),
        ("steps", "[" + ",".join(['{"text": "a", "correct": false}'] * 201) + "]", "201 steps; at most 200"),
        ("schema", "1" + "0" * 400, "form that this version does not know"),
        ("question", "[" * 900 + "]" * 900, "must be `str`, not `array`"),
        ("answer", "NaN", "NaN is not a JSON number"),
    ],
)
def test_numbers_and_lists_without_end_are_one_short_line(world: Path, key: str, value: str, said: str) -> None:
    line = json.dumps({**row("images/a.png"), key: "@"}).replace('"@"', value)
    (world / "data" / "items.jsonl").write_text(line + "\n" + json.dumps(row("images/a.png", "q2")) + "\n")
    errors = inspect(world / "data").level("error")
    assert [fault.line for fault in errors if said in fault.message] == [1]
    assert len(errors) < 4
    assert all(len(str(fault)) < 300 and "\n" not in str(fault) for fault in errors)
    assert [item.id for item in read(world / "data").items] == ["q2"]


def test_names_of_datasets_that_cannot_be(tmp_path: Path) -> None:
    for name in ("a\0b", "a\0b/c.jsonl", "x" * 5000):
        with pytest.raises(DatasetError) as caught:
            open_source(name, "test")
        assert not {"\n", "\0"} & set(str(caught.value))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("decode", [False, True])
def test_an_upright_size_is_that_of_the_turned_image(orientation, decode):
    """Pillow turns the image, which is the truth; the header alone must say the same."""
    exif, held = Image.Exif(), io.BytesIO()
    exif[0x0112] = orientation
    Image.new("RGB", SIZE).save(held, "JPEG", exif=exif)
    assert upright_size(held.getvalue(), decode) == (SIZE if orientation < 5 else SIZE[::-1])
