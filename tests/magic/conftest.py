"""Settings and fixtures of all tests of MAGIC's data.

lmms-eval's task files tell Pillow to show cut images as far as they go, for the whole process: a cut image must be
found all the same.
"""

import pytest
from PIL import ImageFile

from tests.making.magic_rows import folder

__all__ = ["folder"]


@pytest.fixture(autouse=True)
def _cut_images_are_filled_with_grey(monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
