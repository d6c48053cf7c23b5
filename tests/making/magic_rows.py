"""Rows of a MAGIC dataset, and files of them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image


def row(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A row without a fault."""
    good = {
        "schema": 1, "id": f"q{number}", "image": "images/a.png", "question": "What is left of the plate?",
        "question_type": "query", "answer": "bottle", "full_answer": "A bottle is left of the plate.",
        "boxes": [{"box": [0, 0, 40, 30], "relevant": True, "label": "plate"}, {"box": [50, 10, 60, 20], "relevant": False, "label": ""}],
        "steps": [{"text": "I look at R1.", "correct": True, "correction": ""}, {"text": "In R2 there is a cup.", "correct": False, "correction": "In R1 there is a bottle."}],
        "group": "a",
    }  # fmt: skip
    return {**good, **changes}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an image of 64 x 48, one that is turned (upright 48 x 64), a truncated one and one that is text."""
    (tmp_path / "images").mkdir()
    image = Image.effect_noise((64, 48), 60).convert("RGB")
    image.save(tmp_path / "images" / "a.png")
    exif = Image.Exif()
    exif[0x0112] = 6
    image.save(tmp_path / "images" / "turned.jpg", exif=exif)
    whole = (tmp_path / "images" / "a.png").read_bytes()
    (tmp_path / "images" / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "images" / "text.png").write_text("not an image")
    return tmp_path


def put(folder: Path, *lines: Any) -> Path:
    path = folder / "items.jsonl"
    path.write_text(
        "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), encoding="utf-8"
    )
    return path


def as_parquet(folder: Path, rows: list[dict[str, Any]], group: int = 2) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "data.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=group)
    return path


def png(size: tuple[int, int]) -> bytes:
    held = io.BytesIO()
    Image.new("RGB", size, (1, 2, 3)).save(held, "PNG")
    return held.getvalue()
