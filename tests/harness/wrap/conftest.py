"""What is logged while a wrapped task is loaded or run."""

import pytest
from loguru import logger


@pytest.fixture
def warnings():
    """What is logged from warnings up."""
    lines = []
    sink = logger.add(lines.append, level="WARNING")
    yield lines
    logger.remove(sink)


@pytest.fixture(autouse=True)
def _no_journal(monkeypatch):
    """Tests here look at every file of an output folder; tests/harness/asking is about the journal."""
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")
