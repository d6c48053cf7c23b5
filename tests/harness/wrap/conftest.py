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
