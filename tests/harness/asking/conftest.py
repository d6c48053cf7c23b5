"""Journals are written here, whatever the environment says."""

import pytest


@pytest.fixture(autouse=True)
def _journal(monkeypatch):
    monkeypatch.delenv("LMMS_PATCH_JOURNAL", raising=False)
