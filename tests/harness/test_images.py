"""Images of docs for people, against what a run recorded of the images that it showed."""

import pytest
from PIL import Image

from lmms_patch.harness.load import image_of
from tests.harness.toys import Model, coded_image, rows, run, write_task


@pytest.fixture
def recorded(tmp_path):
    """A task whose docs show their image, and a second one that is half as large.

    From a run's records to the digests of what it showed.
    """
    (tmp_path / "utils.py").write_text("def shown(doc):\n    return [doc['image'], doc['image'].resize((30, 30))]\n")
    write_task(tmp_path, "toy", rows(3), doc_to_visual="!function utils.shown")
    return [sample["patch"]["images"] for sample in run(Model(), "toy_rci2", tmp_path)["samples"]["toy_rci2"]]


def test_the_digest_of_a_doc_is_the_one_that_a_run_recorded(recorded, tmp_path):
    shown = image_of("toy", tmp_path)
    assert [shown(doc)[1] for doc in range(3)] == recorded
    assert len(set(recorded)) == 3
    assert shown(1)[0].tobytes() == coded_image(1).tobytes()
    assert shown(3) is None


def test_other_images_of_the_same_size_have_another_digest(recorded, tmp_path):
    other = rows(3)
    other[1]["image"] = Image.new("RGB", coded_image(1).size, "red")
    write_task(tmp_path / "changed", "toy", other, doc_to_visual="!function utils.shown")
    (tmp_path / "changed" / "utils.py").write_text((tmp_path / "utils.py").read_text())
    shown = image_of("toy", tmp_path / "changed")
    assert [shown(doc)[1] == recorded[doc] for doc in range(3)] == [True, False, True]


def test_what_cannot_be_compared_has_no_digest(tmp_path):
    """A task that shows chat models its docs in a way of its own; and one whose second image is broken."""
    (tmp_path / "utils.py").write_text(
        "def shown(doc):\n    return [doc['image'], 'no-such-file.png']\n\ndef messages(doc):\n    return []\n"
    )
    write_task(tmp_path, "toy", rows(2), doc_to_visual="!function utils.shown")
    write_task(tmp_path, "own", rows(2), doc_to_messages="!function utils.messages")
    assert [image_of(name, tmp_path)(0)[1] for name in ("toy", "own")] == ["", ""]
