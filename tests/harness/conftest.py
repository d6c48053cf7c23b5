"""Indexing the host's 1,700 task files takes seconds: done once for all in-process tests."""

import pytest
from lmms_eval import models  # noqa: F401 - loads the entry points, as every way of running the host does

from tests.harness.warm import index_once


@pytest.fixture(autouse=True, scope="session")
def _index_once():
    undo = index_once()
    yield
    undo()
