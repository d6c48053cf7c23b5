"""Journals are written here, whatever the environment says; and portions are as small as a test's module wants them."""

import pytest

from lmms_patch.harness.asking import in_portions as portions


@pytest.fixture(autouse=True)
def _journal(monkeypatch):
    monkeypatch.delenv("LMMS_PATCH_JOURNAL", raising=False)


@pytest.fixture(autouse=True)
def _small(request, monkeypatch):
    """Portions of ``PORTION`` requests, whatever their speed, where a module names such a number."""
    if (size := getattr(request.module, "PORTION", None)) is not None:
        monkeypatch.setattr(portions, "FIRST", size)
        monkeypatch.setattr(portions, "GROWTH", 1)
        monkeypatch.setattr(portions, "SECONDS", 1e9)
