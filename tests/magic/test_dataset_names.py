"""What items and their images are called: ids that cannot be shown, ids that are alike, images of another dataset."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from lmms_patch.magic.dataset import DatasetError, read
from tests.magic.faults import check
from tests.making.magic_rows import put, row


def picture(folder: Path) -> None:
    (folder / "images").mkdir()
    Image.effect_noise((64, 48), 60).convert("RGB").save(folder / "images" / "a.png")


def test_an_id_that_no_file_can_hold_is_shown_escaped(tmp_path: Path) -> None:
    picture(tmp_path)
    path = put(tmp_path, row(id="a\ud800b\x07"), row(id="ok"))
    faults = check(path)
    assert {fault.item for fault in faults} == {"a\\ud800b\\x07"}
    "\n".join([read(path).note, *map(str, faults)]).encode()  # can be printed
    assert r"line 1 (a\ud800b\x07)" in read(path).note


def test_ids_that_differ_by_white_space_alone(tmp_path: Path) -> None:
    picture(tmp_path)
    path = put(tmp_path, row(id="a b"), row(id="ab"), row(id="a  b"), row(id="a b "), row(id="a b"))
    assert [(fault.line, fault.level, fault.kind) for fault in check(path)] == [
        (3, "warning", "ids alike"),
        (4, "warning", "ids alike"),
        (5, "error", "id twice"),
    ]


def test_a_path_that_is_too_long() -> None:
    with pytest.raises(DatasetError, match="cannot be read: File name too long"):
        read("a" * 300 + ".jsonl")
