"""Detail of a known size is lost where it must be, through the real evaluator; a colour is not."""

import numpy as np
import pytest
from PIL import Image

from tests.harness.toys import Model, metrics, run, write_task

SMALL = 5
"""The id of a doc whose image is 4 pixels wide, which is too small to be shown at 1/8 of its size."""


def sheet(doc: int) -> Image.Image:
    """Stripes of 4 pixels (one light and one dark in 8), upright in odd docs; more red than blue in every third."""
    y, x = np.mgrid[0:64, 0 : 4 if doc == SMALL else 64]
    light = ((y if doc == SMALL or doc % 2 == 0 else x) // 4 % 2) * 60 + 90
    tint = 40 if doc % 3 == 0 else -40
    return Image.fromarray(np.stack([light + tint, light, light - tint], axis=2).astype(np.uint8))


def reads(prompt, images):
    """Say what the pixels show: the way of the stripes, "none" where there is no contrast; or the colour."""
    pixels = np.asarray(images[0].convert("RGB"), float).mean(axis=(0, 1))
    if prompt == "colour?":
        return "red" if pixels[0] > pixels[2] else "blue"
    light = np.asarray(images[0].convert("L"), float)
    down, across = light.mean(axis=1).std(), light.mean(axis=0).std()
    return "none" if max(down, across) < 5 else "upright" if across > down else "level"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("detail")
    way = [
        {"image": sheet(i), "question": "way?", "answer": "level" if i == SMALL or i % 2 == 0 else "upright"}
        for i in range(12)
    ]
    colour = [{**row, "question": "colour?", "answer": "red" if i % 3 == 0 else "blue"} for i, row in enumerate(way)]
    write_task(folder, "way", way)
    write_task(folder, "colour", colour)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_PATCH_JOURNAL", "off")
        model = Model(reads)
        results = run(model, "way_lowres,colour_lowres", folder)
    return model, {name: metrics(results, f"{name}_lowres") for name in ("way", "colour")}


def test_stripes_of_4_pixels_are_read_at_a_quarter_and_lost_at_an_eighth(found):
    way = found[1]["way"]
    assert [way[name] for name in ("exact_match", "lowres2", "lowres4", "lowres8")] == [1, 1, 1, 0]
    assert [way[name] for name in ("drop2", "drop4", "drop8")] == [0, 0, 1]
    assert [way["patch"][f"n_excluded{k}"] for k in (2, 4, 8)] == [0, 0, 1]


def test_a_colour_needs_no_detail(found):
    colour = found[1]["colour"]
    assert [colour[name] for name in ("exact_match", "lowres2", "lowres4", "lowres8", "drop8")] == [1, 1, 1, 1, 0]


def test_every_view_has_the_size_of_the_image_and_each_doc_is_asked_once_in_full(found):
    seen = [(task, doc // 4, images[0].size) for task, doc, images, _ in found[0].seen]
    assert len(seen) == 2 * 12 * 4
    assert {(doc, size) for _, doc, size in seen} == {(doc, (4 if doc == SMALL else 64, 64)) for doc in range(12)}
