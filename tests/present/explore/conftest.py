"""Explorers of finished runs: the stored mosaic run, and a made one."""

import json

import pytest
from PIL import Image

from lmms_patch.errors import PatchError
from lmms_patch.present.explore.folder import write
from lmms_patch.runs.run import newest_of
from tests.making.explored import write_many
from tests.stored import unpack


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    return unpack(tmp_path_factory.mktemp("stored"))


@pytest.fixture(scope="session")
def album(tmp_path_factory):
    """A made run of 420 docs, of which 300 were asked on a wrong image."""
    return write_many(tmp_path_factory.mktemp("album") / "out", 420).parent


def no_images(base):
    raise PatchError(f"{base}: its dataset cannot be loaded here")


def images(base):
    """Images of 300 by 200 pixels for the made run; none for another."""
    if base != "album":
        no_images(base)
    made = lambda doc_id: Image.new("RGB", (300 + (doc_id == 2), 200), (doc_id % 256, 90, 60))  # noqa: E731 - a picture in a line
    return lambda doc_id: None if doc_id == 1 else (made(doc_id), "")


class Written:
    """The folder of an explorer, and what its pieces hand to the page."""

    def __init__(self, folder):
        self.folder = folder

    def piece(self, name):
        text = (self.folder / "data" / f"{name}.js").read_text(encoding="utf-8")
        assert text.startswith(f'arrived("{name}", ')
        assert text.endswith(");\n")
        return json.loads(text.partition(", ")[2][:-3])

    @property
    def about(self):
        return self.piece("about")

    @property
    def tasks(self):
        return [one["name"] for one in self.about["tasks"]]

    def side(self, task=0, model=0):
        return self.piece(task)["sides"][model]

    def doc(self, place, task=0):
        return self.piece(f"{task}-{place // 200}")[place % 200]


@pytest.fixture(scope="session")
def explored(tmp_path_factory):
    """Writes the explorer of runs, each set of them once."""
    known = {}

    def write_once(*paths, open_task=no_images, **more):
        key = (*map(str, paths), open_task, *more.items())
        if key not in known:
            folder = tmp_path_factory.mktemp("explored") / "my docs"
            write([newest_of(path).run for path in paths], folder, open_task, **more)
            known[key] = Written(folder)
        return known[key]

    return write_once
