"""What all tests of the harness share: the host's models are loaded, its tasks are indexed once.

And MAGIC items on disk.
"""

import json

import pytest
from lmms_eval import models  # noqa: F401 - loads the entry points, as every way of running the host does
from loguru import logger

from tests.harness.magic.items import picture


@pytest.fixture(autouse=True, scope="session")
def _index_once(indexed):
    """Index the host's tasks once for all tests here."""


@pytest.fixture
def told():
    """What is logged from warnings up, a line each."""
    lines = []
    sink = logger.add(lines.append, level="WARNING", format="{message}")
    yield lines
    logger.remove(sink)


@pytest.fixture
def magic_data(tmp_path, monkeypatch):
    """Writes items, and names their folder in MAGIC_DATA."""

    def write(rows, name="items"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        for number in range(len(rows)):
            picture(number).save(folder / f"{number}.png")
        (folder / "items.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
        monkeypatch.setenv("MAGIC_DATA", str(folder))
        return folder

    return write
