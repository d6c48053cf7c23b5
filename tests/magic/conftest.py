"""lmms-eval's task files tell Pillow to show cut images as far as they go, for the whole process; here it is as a fresh one has it."""

import pytest
from PIL import ImageFile


@pytest.fixture(autouse=True)
def _cut_images_are_broken(monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", False)
