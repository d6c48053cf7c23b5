"""What tests of pages leave out where they show something else."""

import pytest

from lmms_patch.present.page import figures


@pytest.fixture
def without_figures(monkeypatch):
    """Leave the figures of a page out: they take most of its time."""
    monkeypatch.setattr(figures, "drawings", lambda *_: ())
