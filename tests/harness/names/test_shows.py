"""What a ``doc_to_visual`` shows, as a shipped table says that was read from its code: each function here is written so that the answer is known."""

import shutil

import pytest

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.harness import plugin
from lmms_patch.harness.names import configs
from lmms_patch.harness.names.configs import Facts
from lmms_patch.harness.names.shows import MISSING, UNREAD, Media
from lmms_patch.harness.names.shows import shown_by as known_of
from scripts.host.shown import place, returns_nothing, shown_by, table
from tests.places import ROOT

CODE = """
import os
from PIL import Image
from .other import decode, frames_of, elsewhere, where

def path(doc):
    video_path = doc["id"] + ".mp4"
    video_path = os.path.join(ROOT, video_path)
    if not os.path.exists(video_path):
        video_path = video_path.replace("mp4", "mkv")
    return [video_path]

def reassigned(doc):
    video_path = doc["video_name"]
    video_path = os.path.join(cache_dir, video_path)
    return [video_path]

def bare(doc):
    return f"{ROOT}/{doc['video_id']}"

def first_that_exists(doc):
    for ext in ["mp4", "webm"]:
        candidate = os.path.join(ROOT, doc["name"] + "." + ext)
        if os.path.exists(candidate):
            return [candidate]
    return []

def by_type(doc):
    for key in ["file", "path"]:
        return [resolve(doc[key], media_type="video")]

def followed(doc):
    return [where(doc["key"])]

def images(doc):
    return [image.convert("RGB") for image in doc["images"]]

def opened(doc):
    out = []
    for name in doc["video_frames"]:
        out.append(Image.open(name))
    return out

def inner_import(doc):
    from .other import frames_of as frames
    return frames(os.path.join(ROOT, doc["video"]))

def decoded(doc):
    return [decode(doc["picture"])]

def as_it_is(doc):
    return [doc["image"]]

def video_as_it_is(doc):
    return [doc["video"]]

def doc_to_audio(doc):
    return [doc["context"]]

def waveform(doc):
    return [{"array": doc["a"].array, "sampling_rate": 16000}]

def with_sound(doc):
    return [doc["audio"], doc["image"].convert("RGB")]

def audiovisual(doc):
    return [os.path.join(ROOT, doc["audio_visual_path"])]

def stretch(doc):
    return [{"video_path": doc["path"] + ".mp4", "timestep": doc["time"]}]

def reader(doc):
    return [VideoReader(doc["path"] + ".mp4")]

def either(doc):
    if doc["type"] == "image":
        return [Image.open(doc["path"]).convert("RGB")]
    return [doc["path"] + ".mp4"]

def filled_elsewhere(doc):
    out = [Image.open(doc["path"])]
    fill(out, doc)
    return out

def unknown_call(doc):
    return [load(doc)]

def round_and_round(doc):
    return round_and_round(doc)

def twice(doc):
    return [Image.open(doc["path"])]

def twice(doc):
    return [doc["path"] + ".mp4"]

@changed
def decorated(doc):
    return [Image.open(doc["path"])]

def each(doc):
    yield Image.open(doc["path"])

def nothing(doc):
    return []
"""
LONG = (
    "def shows(doc):\n    a0 = doc['x']\n"
    + "".join(f"    a{i + 1} = a{i} + a{i}\n" for i in range(40))
    + "    return [a40]\n"
)
OTHER = """
from PIL import Image as Pictures

def decode(text):
    return Pictures.open(BytesIO(text)).convert("RGB")

def frames_of(path, count=8):
    reader = VideoReader(path)
    return [Image.fromarray(one) for one in reader.get_batch(range(count)).asnumpy()]

def where(key):
    return os.path.join(VIDEOS, key)
"""


@pytest.mark.parametrize(
    ("name", "media", "certain"),
    [
        *(
            (name, "clip", False)
            for name in ("path", "reassigned", "bare", "first_that_exists", "by_type", "followed", "audiovisual")
        ),
        *((name, "image", True) for name in ("images", "opened", "inner_import", "decoded")),
        *((name, "image", False) for name in ("as_it_is", "filled_elsewhere", "decorated", "each")),
        *((name, "sound", False) for name in ("doc_to_audio", "with_sound")),
        ("waveform", "sound", True),
        ("stretch", "stretch", True),
        ("reader", "frames", False),
        ("either", "clip image", False),
        *((name, "unknown", False) for name in ("video_as_it_is", "unknown_call", "round_and_round", "elsewhere")),
        ("nothing", "nothing", True),
        ("not_there", "missing", False),
        ("twice", "clip", False),
    ],
)
def test_what_a_function_shows(tmp_path, name, media, certain):
    (tmp_path / "utils.py").write_text(CODE)
    (tmp_path / "other.py").write_text(OTHER)
    assert shown_by(str(tmp_path / "utils.py"), name) == Media(frozenset(media.split()), certain)


def test_the_table_is_what_the_code_says():
    """Where this fails: ``python scripts/host/shown.py --write`` writes it."""
    assert place().read_text(encoding="utf-8") == table()


def test_the_table_holds_for_every_file_with_the_same_bytes(tmp_path):
    file, name = shutil.copy(ROOT / "tasks" / "mosaic" / "utils.py", tmp_path), "doc_to_visual"
    known = known_of(file, name)
    assert known.media == {"image"}
    assert known_of(file, "another") == MISSING
    with open(file, "a") as changed:
        changed.write("# changed\n")
    assert known_of(file, name) == UNREAD


def test_a_file_that_cannot_be_parsed_is_unknown(tmp_path):
    (tmp_path / "utils.py").write_text("def path(doc:")
    assert shown_by(str(tmp_path / "utils.py"), "path").media == {"unknown"}
    assert shown_by(str(tmp_path / "gone.py"), "path").media == {"unknown"}


SHOWING = """
def empty(doc):
    '''Nothing to show.'''
    return []

def none_at_all(doc, kwargs=None):
    pass

def both(doc):
    if doc["text"]:
        return None
    return list()

def sometimes(doc):
    if doc["image"] is None:
        return []
    return [doc["image"]]

def inside(doc):
    def images():
        return []
    return images()

def around(doc):
    def image():
        return doc["image"]
    return []

def each(doc):
    yield doc["image"]
    return

def fails(doc):
    raise NotImplementedError  # so it does not return nothing

@some.decorator
def decorated(doc):
    return []

if True:
    def twice(doc):
        return []
else:
    def twice(doc):
        return [doc["image"]]

class Shower:
    def __call__(self, doc):
        return []
"""


@pytest.mark.parametrize(
    ("name", "nothing"),
    [("empty", True), ("none_at_all", True), ("both", True), ("around", True), ("fails", False), ("sometimes", False), ("inside", False),
     ("each", False), ("decorated", False), ("twice", False), ("Shower", False), ("unknown", False)],
)  # fmt: skip
def test_a_function_that_never_shows_anything(tmp_path, name, nothing):
    (tmp_path / "utils.py").write_text(SHOWING)
    assert returns_nothing(str(tmp_path / "utils.py"), name) is nothing


def test_code_that_would_take_too_long_is_unknown(tmp_path):
    """Each of 40 lines doubles the work, and no computer counts to 2 to the 40 here."""
    (tmp_path / "utils.py").write_text(LONG)
    assert shown_by(str(tmp_path / "utils.py"), "shows").media == {"unknown"}


TIME = [name for name, kind in KINDS.items() if kind.needs_video]
CELLS = ["rci", "pcri", "blank", "swap", "shuffle", "occlude"]


def facts(media, certain=False):
    return Facts("toy", shows=True, shown=Media(frozenset(media.split()), certain))


def spec(kind):
    return WrapSpec("toy", KINDS[kind], KINDS[kind].default_grids or (4,))


@pytest.mark.parametrize("kind", [*TIME, *CELLS])
def test_only_what_is_certain_is_refused_before_the_data(kind):
    """A guess may be wrong, so it refuses nothing; videos take every kind, images all but those in time, sound none."""
    for media in (
        "clip",
        "image",
        "sound",
        "stretch",
        "frames",
        "unknown",
        "clip image",
        "image unknown",
        "sound unknown",
    ):
        assert configs.why_not(facts(media), spec(kind)) is None
    assert configs.why_not(facts("clip", True), spec(kind)) is None
    assert bool(configs.why_not(facts("image", True), spec(kind))) is (kind in TIME)
    assert "plays sound" in configs.why_not(facts("sound", True), spec(kind))
    assert bool(configs.unfit_media(facts("image"), spec(kind))) is (kind in TIME)
    assert configs.unfit_media(facts("sound"), spec(kind))


@pytest.mark.parametrize("kind", ["blind", "tst"])
def test_what_shows_nothing_takes_all_media(kind):
    for media in ("clip", "image", "sound", "unknown", "unknown unread"):
        assert configs.why_not(facts(media, True), WrapSpec("toy", KINDS[kind])) is None
        assert not configs.unfit_media(facts(media, True), WrapSpec("toy", KINDS[kind]))
        assert not configs.doubt(facts(media), WrapSpec("toy", KINDS[kind]))


@pytest.mark.parametrize(
    ("media", "cells", "time"),
    [
        ("clip", "", ""),
        ("unknown", "", "not known before its docs"),
        ("unknown unread", "not known before its docs", "not known before its docs"),
        ("image unknown", "still images or what its code does not tell", "still images or what its code does not tell"),
        ("clip image", "", "videos or still images"),
        ("clip stretch", "videos or stretches of videos", "videos or stretches of videos"),
    ],
)
def test_a_doubt_is_told_where_it_matters(media, cells, time):
    for kind, said in (("rci", cells), ("trci", time)):
        told = configs.doubt(facts(media), spec(kind))
        assert said in told
        assert bool(told) is bool(said)


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.suffix])
def test_videos_are_left_out_only_where_nothing_is_shown(monkeypatch, kind):
    """A benchmark's videos may be hundreds of gigabytes, and a text-only kind needs none of them.

    Every other kind needs them all.
    """
    for name in ("keep_no_failures", "ask_in_portions", "write_files"):
        monkeypatch.setattr(plugin, name, lambda: None)
    monkeypatch.setattr(configs, "check", lambda *_: None)
    monkeypatch.setattr(configs, "without_videos", lambda *_: {"dataset_kwargs": {}})
    loaded = []

    class Manager:
        pass

    def native(name, update_config, parent_name):
        loaded.append((update_config, manager._lmms_patch_text_only))
        return {}

    manager = Manager()
    plugin._load_wrapped(manager, native, spec(kind) if kind != "tst" else WrapSpec("toy", KINDS[kind]), {})
    assert loaded == [({"dataset_kwargs": {}}, True) if kind in ("blind", "blindguess", "tst") else (None, False)]
