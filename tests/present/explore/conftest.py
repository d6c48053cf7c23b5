"""Finished runs for the explorer: the stored mosaic run, and a made one."""

import pytest
from PIL import Image

from lmms_patch.errors import PatchError
from lmms_patch.present.explore.explorer import open_runs
from lmms_patch.present.explore.pictures import Pictures
from tests.making.explored import write_many
from tests.stored import unpack


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    return unpack(tmp_path_factory.mktemp("stored"))


@pytest.fixture(scope="session")
def album(tmp_path_factory):
    """A made run of 420 docs, of which 300 were asked on a wrong image."""
    return write_many(tmp_path_factory.mktemp("album") / "out", 420).parent


@pytest.fixture(scope="session")
def loaded():
    """Opens runs and reads their docs."""

    def opener(*paths):
        found = open_runs(paths)
        found.load()
        return found

    return opener


@pytest.fixture
def pictures():
    """Images of 300 by 200 pixels for the made run; none for another."""

    def open_task(base):
        if base != "album":
            raise PatchError(f"{base}: its dataset cannot be loaded here")
        return lambda doc_id: (
            None if doc_id == 1 else (Image.new("RGB", (300 + (doc_id == 2), 200), (doc_id % 256, 90, 60)), "")
        )

    return Pictures(open_task)
