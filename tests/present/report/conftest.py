"""What tests of reports leave out where they show something else."""

import pytest

from lmms_patch.present.report import build
from lmms_patch.present.report.figures import canvas


@pytest.fixture
def without_figures(monkeypatch):
    """Leave the figures of a report out: they take most of its time."""
    monkeypatch.setattr(build.figures, "figures", lambda *_: ())


@pytest.fixture
def without_pdfs(monkeypatch):
    """Leave PDFs empty: they take most of the time of writing a figure."""
    real = canvas._bytes
    monkeypatch.setattr(
        canvas, "_bytes", lambda drawing, form, **more: b"" if form == "pdf" else real(drawing, form, **more)
    )
