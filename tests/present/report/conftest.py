"""What tests of reports leave out where they show something else."""

import pytest

from lmms_patch.present.report import figures


@pytest.fixture
def without_figures(monkeypatch):
    """Leave the figures of a report out: they take most of its time."""
    monkeypatch.setattr(figures, "figures", lambda *_: ())
