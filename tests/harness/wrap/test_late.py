"""Images that are decoded when they are looked at: a row is a plain dict, an untouched image costs nothing, and a touched one is the very
image that the dataset gives."""

from __future__ import annotations

import copy
import io
import json
import pickle
import threading

import datasets
import numpy as np
import pytest
from lmms_eval.evaluator import _collect_input_media
from lmms_eval.utils import is_multimodal_content
from PIL import ExifTags, Image, ImageChops, UnidentifiedImageError

from lmms_patch.harness.wrap.late import late
from lmms_patch.harness.wrap.scorer import _fresh
from tests.harness.toys import Model, coded_image, run, write_task


def encoded(form: str, **how) -> dict:
    """A picture without symmetry, as bytes of a file."""
    buffer = io.BytesIO()
    coded_image(3, (31, 17)).save(buffer, form, **how)
    return {"bytes": buffer.getvalue(), "path": f"it.{form.lower()}"}


def turned() -> dict:
    """A photo whose pixels lie on their side, as cameras write it."""
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    return encoded("JPEG", exif=exif)


def frames() -> dict:
    return encoded("GIF", save_all=True, append_images=[coded_image(4, (31, 17))])


PICTURES = {"png": encoded("PNG"), "jpeg": encoded("JPEG"), "turned": turned(), "gif": frames()}
BROKEN = {"bytes": b"no picture", "path": None}


def rows(*pictures, features=None, **columns) -> datasets.Dataset:
    """A dataset with an image between two other fields."""
    made = {
        "question": [f"which {i}?" for i in range(len(pictures))],
        "image": list(pictures),
        "choices": [["a", "b"] for _ in pictures],
        **columns,
    }
    shape = {
        "question": datasets.Value("string"),
        "image": datasets.Image(),
        "choices": datasets.List(datasets.Value("string")),
        **(features or {}),
    }
    return datasets.Dataset.from_dict(made, features=datasets.Features(shape))


@pytest.fixture
def decoded(monkeypatch):
    """What was decoded so far."""
    found = []
    original = datasets.Image.decode_example
    monkeypatch.setattr(
        datasets.Image, "decode_example", lambda *args, **kwargs: found.append(1) or original(*args, **kwargs)
    )
    return found


# --- an untouched image costs nothing, and its row is a dict ------------------------------------------

UNTOUCHED = {
    "type": lambda doc: type(doc) is dict,
    "keys": lambda doc: list(doc) == ["question", "image", "choices"],
    "in": lambda doc: "image" in doc,
    "get": lambda doc: doc.get("image") is doc["image"] and doc.get("none", 7) == 7,
    "dict": lambda doc: dict(doc)["image"] is doc["image"] and {**doc}.keys() == doc.keys(),
    "items": lambda doc: [key for key, value in doc.items() if isinstance(value, Image.Image)] == ["image"],
    "values": lambda doc: sum(isinstance(value, Image.Image) for value in doc.values()) == 1,
    "no dict": lambda doc: not isinstance(doc["image"], (dict, str, bytes, np.ndarray)),
    "copy": lambda doc: copy.copy(doc)["image"] is doc["image"],
    "fresh": lambda doc: _fresh(doc)["image"] is doc["image"] and _fresh(doc)["choices"] is not doc["choices"],
    "change": lambda doc: (
        doc.update(question="other", more=1) is None and doc.pop("choices") == ["a", "b"] and len(doc) == 3
    ),
    "del": lambda doc: (
        doc.pop("image") is not None and json.loads(json.dumps(doc)) == {"question": "which 0?", "choices": ["a", "b"]}
    ),
    "host's log": lambda doc: [key for key in doc if not is_multimodal_content(doc[key])] == ["question", "choices"],
    "host's media": lambda doc: _collect_input_media(doc, []) == [],
}


@pytest.mark.parametrize("what", UNTOUCHED)
def test_what_is_asked_of_a_row_decodes_no_image(what, decoded):
    doc = late(rows(PICTURES["png"]))[0]
    assert UNTOUCHED[what](doc)
    assert decoded == []


# --- a touched image is the one that the dataset gives -------------------------------------------------


def alike(one: Image.Image, other: Image.Image) -> bool:
    """Whether two images are the same to whoever looks."""
    about = [
        (i.mode, type(i), i.size, i.format, sorted(map(str, i.info)), dict(i.getexif()), i.tobytes())
        for i in (one, other)
    ]
    return about[0] == about[1]


TOUCHES = {
    "size": lambda image: image.size,
    "width": lambda image: image.width,
    "load": lambda image: image.load(),
    "convert": lambda image: image.convert("L"),
    "unbound": Image.Image.copy,
    "array": np.asarray,
    "save": lambda image: image.save(io.BytesIO(), "PNG"),
    "bytes": lambda image: image.tobytes(),
    "format": lambda image: image.format,
    "repr": repr,
    "equal": lambda image: image == image.copy(),
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "chops": lambda image: ImageChops.difference(image.convert("RGB"), image.convert("RGB")),
    "frames": lambda image: getattr(image, "n_frames", 1),
    "with": lambda image: image.__enter__(),
    "hasattr": lambda image: hasattr(image, "filename"),
}


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("touch", TOUCHES)
def test_an_image_that_is_touched_is_the_datasets_own(touch, picture, decoded):
    own = rows(PICTURES[picture])
    image = late(own)[0]["image"]
    TOUCHES[touch](image)
    assert decoded == [1]
    assert "_decode" not in vars(image)
    assert alike(image, own[0]["image"])


def test_what_images_say_of_themselves_is_the_same():
    own = rows(PICTURES["gif"])
    image, other = late(own)[0]["image"], own[0]["image"]
    assert repr(image).split(" at ")[0] == repr(other).split(" at ")[0]
    first, second = late(own)[0]["image"], late(own)[0]["image"]
    assert first == second
    assert late(own)[0]["image"] == other
    assert late(own)[0]["image"] != coded_image(1)
    assert late(own)[0]["image"] != {"bytes": b""}
    image.seek(1)
    other.seek(1)
    assert image.tobytes() == other.tobytes()


def test_threads_that_look_at_the_same_time_see_the_same():
    own = rows(PICTURES["png"])
    expected = own[0]["image"].tobytes()
    for _ in range(20):
        image, barrier, seen = late(own)[0]["image"], threading.Barrier(8), []

        def look(image=image, barrier=barrier, seen=seen):
            barrier.wait()
            seen.append(image.tobytes())

        threads = [threading.Thread(target=look) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [expected] * 8


# --- where images stand ---------------------------------------------------------------------------------


def test_images_in_lists_and_in_fields_of_fields(decoded):
    picture, features = PICTURES["png"], {
        "several": datasets.List(datasets.Image()),
        "many": datasets.LargeList(datasets.Image()),
        "deep": {"left": datasets.Image(), "name": datasets.Value("string")},
        "listed": datasets.List({"image": datasets.Image(), "n": datasets.Value("int64")}),
        "stored": datasets.Image(decode=False),
    }  # fmt: skip
    columns = {
        "several": [[picture, None, picture], []],
        "many": [[picture], None],
        "deep": [{"left": picture, "name": "x"}, {"left": None, "name": "y"}],
        "listed": [[{"image": picture, "n": 1}], []],
        "stored": [picture, None],
    }
    own = rows(picture, None, features=features, **columns)
    first, second = (late(own)[i] for i in range(2))
    assert decoded == []
    assert (second["image"], second["several"], second["many"], second["deep"]["left"], second["listed"]) == (
        None,
        [],
        None,
        None,
        [],
    )
    assert first["several"][1] is None
    found = [
        first["image"],
        first["several"][0],
        first["several"][2],
        first["many"][0],
        first["deep"]["left"],
        first["listed"][0]["image"],
    ]
    assert all(alike(one, own[0]["image"]) for one in found)
    assert first["stored"] == own[0]["stored"] == picture
    assert first.keys() == own[0].keys()


def test_a_damaged_image_fails_when_it_is_looked_at():
    own = rows(BROKEN)
    with pytest.raises(UnidentifiedImageError):
        own[0]
    image = late(own)[0]["image"]
    for _ in range(2):
        with pytest.raises(UnidentifiedImageError):
            _ = image.size


def test_chosen_rows_stay_chosen():
    own = rows(PICTURES["png"], PICTURES["jpeg"], PICTURES["gif"]).select([2, 0])
    assert [doc["question"] for doc in late(own)] == ["which 2?", "which 0?"]
    assert alike(late(own)[0]["image"], own[0]["image"])


# --- in a run ---------------------------------------------------------------------------------------------

SCORERS = """
import copy, pickle

def size(doc, results):
    doc["question"] = "changed"  # in place, as TextVQA and VizWiz do
    return {"sum": sum(doc["image"].size) * (results[0] == "yes")}

def copied(doc, results):
    both = [copy.deepcopy(dict(doc)), pickle.loads(pickle.dumps(doc))]
    return {"sum": sum(one["image"].convert("L").width for one in both) * (results[0] == "yes")}

def blind(doc, results):
    return {"sum": len(doc["question"]) * (results[0] == "yes")}

def total(items):
    return float(sum(items))
"""


@pytest.mark.parametrize(
    ("scorer", "images", "earned"), [("size", True, 120), ("copied", True, 120), ("blind", False, len("question 0?"))]
)
def test_a_scorer_finds_the_image_and_one_that_does_not_look_decodes_nothing(
    tmp_path, monkeypatch, scorer, images, earned
):
    data = [{"image": coded_image(i), "question": "question 0?", "answer": "yes"} for i in range(4)]
    metric = [{"metric": "sum", "aggregation": "!function utils.total", "higher_is_better": True}]
    (tmp_path / "utils.py").write_text(SCORERS)
    write_task(tmp_path, "toy", data, process_results=f"!function utils.{scorer}", metric_list=metric)
    found = []

    class Done(Model):
        def generate_until(self, requests):
            answers = super().generate_until(requests)
            original = datasets.Image.decode_example
            monkeypatch.setattr(
                datasets.Image, "decode_example", lambda *args, **kwargs: found.append(1) or original(*args, **kwargs)
            )
            return answers

    results = run(Done(lambda prompt, images: "yes"), "toy_rci2", tmp_path)
    assert results["results"]["toy_rci2"]["sum,none"] == 4 * earned
    assert results["samples"]["toy_rci2"][0]["doc"] == {"question": "question 0?", "answer": "yes"}
    assert bool(found) is images
