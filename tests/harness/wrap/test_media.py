"""Images are found in every form that base tasks hand out; what is not a still image is refused."""

import base64
import io
from collections.abc import Mapping

import numpy as np
import pytest
from PIL import Image

from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.wrap import media

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 17, 3), np.uint8)
"""What every form below must decode to."""


def png() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(PIXELS).save(buffer, "PNG")
    return buffer.getvalue()


def encoded() -> str:
    return base64.b64encode(png()).decode()


@pytest.fixture
def path(tmp_path) -> str:
    (tmp_path / "scan.png").write_bytes(png())
    return str(tmp_path / "scan.png")


FORMS = {
    "PIL": lambda path: Image.fromarray(PIXELS),
    "unloaded PIL": lambda path: Image.open(path),
    "bytes": lambda path: png(),
    "bytearray": lambda path: bytearray(png()),
    "dict with bytes": lambda path: {"bytes": png(), "path": None},
    "dict with bytes and the name of a file that is gone": lambda path: {"bytes": png(), "path": "gone.png"},
    "dict with path": lambda path: {"bytes": None, "path": path},
    "dict with a data URL": lambda path: {"url": "data:image/png;base64," + encoded()},
    "path": lambda path: path,
    "file URL": lambda path: "file://" + path,
    "data URL": lambda path: "data:image/png;base64," + encoded(),
    "data URL with line breaks": lambda path: "data:image/png;base64,\r\n" + base64.encodebytes(png()).decode(),
    "base64": lambda path: encoded(),
}
"""Makers of the same image in every form."""

forms = pytest.mark.parametrize("form", FORMS)


def walked(walk, payload, replace=lambda medium, index: index):
    """The payload with each image replaced, by default by its number."""
    return walk(payload, replace)


@forms
def test_every_form_is_found_and_decodes_to_the_same_pixels(form, path):
    (found,) = media.images_in([FORMS[form](path)], media.replace_in_visuals)
    image = media.decode(found)
    assert image.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(image), PIXELS)


def test_decoding_keeps_mode_and_orientation():
    exif = Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    Image.new("L", (20, 10)).save(buffer, "JPEG", exif=exif)
    image = media.decode(buffer.getvalue())
    assert (image.mode, image.size, image.getexif()[0x0112]) == ("L", (20, 10), 6)


# --- lists of doc_to_visual ---------------------------------------------------------------------

IMAGE = Image.new("RGB", (4, 4))


@pytest.mark.parametrize(
    ("visuals", "want"),
    [
        (None, []),
        ([], []),
        ([None], []),
        ((), []),
        (IMAGE, [0]),
        ([IMAGE], [0]),
        ((IMAGE, IMAGE), [0, 1]),
        ([IMAGE, None, IMAGE], [0, 1]),
        ([[IMAGE, IMAGE], [IMAGE]], [[0, 1], [2]]),
        ([[IMAGE], [], [[IMAGE]]], [[0], [], [[1]]]),
    ],
)
def test_lists_keep_their_nesting_and_order(visuals, want):
    assert walked(media.replace_in_visuals, visuals) == want


# --- chat messages ------------------------------------------------------------------------------


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def messages(*images: dict) -> list[dict]:
    """A system message, and a user's with the images between words."""
    parts = [part for number, image in enumerate(images) for part in (text(f"before {number}"), image)]
    return [{"role": "system", "content": [text("be brief")]}, {"role": "user", "content": [*parts, text("after")]}]


SHAPES = {
    "lmms-eval's own": lambda medium: {"type": "image", "url": medium},
    "Hugging Face's": lambda medium: {"type": "image", "image": medium},
    "image_url": lambda medium: {"type": "image_url", "image_url": medium},
    "image_url, nested": lambda medium: {"type": "image_url", "image_url": {"url": medium}},
}
"""Makers of an image part around a medium."""

shapes = pytest.mark.parametrize("shape", SHAPES)


@forms
@shapes
def test_every_form_is_found_in_every_shape_of_message(shape, form, path):
    given = messages(SHAPES[shape](FORMS[form](path)))
    (found,) = media.images_in(given, media.replace_in_messages)
    np.testing.assert_array_equal(np.asarray(media.decode(found)), PIXELS)


@shapes
def test_messages_keep_texts_roles_and_order(shape):
    make = SHAPES[shape]
    given = messages(make(IMAGE), make(IMAGE))
    assert walked(media.replace_in_messages, given, lambda medium, index: f"view {index}") == messages(
        make("view 0"), make("view 1")
    )
    assert given == messages(make(IMAGE), make(IMAGE)), "the messages given are not changed"


def test_other_keys_of_a_part_are_kept():
    part = {"type": "image", "url": IMAGE, "max_pixels": 99}
    (message,) = walked(media.replace_in_messages, [{"role": "user", "content": [part], "name": "x"}])
    assert message == {"role": "user", "content": [{"type": "image", "url": 0, "max_pixels": 99}], "name": "x"}


@pytest.mark.parametrize(
    "given",
    [None, [], [{"role": "user", "content": "plain text"}], [{"role": "user", "content": None}], [{"role": "user"}]],
)
def test_messages_without_parts_stay_as_they_are(given):
    assert walked(media.replace_in_messages, given) == (given or [])
    assert media.images_in(given, media.replace_in_messages) == []


def test_an_image_part_without_an_image_is_left_out():
    assert walked(
        media.replace_in_messages, [{"role": "user", "content": [{"type": "image", "url": None}, text("a")]}]
    ) == [{"role": "user", "content": [text("a")]}]


@pytest.mark.parametrize("shape", ["list", "message"])
def test_changes_to_what_comes_out_do_not_reach_what_went_in(shape):
    """The payload of a doc is walked again for its next view."""
    walk, given = {
        "list": (media.replace_in_visuals, [[IMAGE]]),
        "message": (
            media.replace_in_messages,
            messages({"type": "image", "url": IMAGE}) + [{"role": "user", "content": "words"}],
        ),
    }[shape]
    before = repr(given)
    _spoil(walked(walk, given))
    assert repr(given) == before


def _spoil(thing) -> None:
    """Empty every list and overwrite every value of nested lists and dicts."""
    if isinstance(thing, list):
        for item in thing:
            _spoil(item)
        thing.clear()
    elif isinstance(thing, Mapping):
        for key, value in list(thing.items()):
            _spoil(value)
            thing[key] = "spoilt"


# --- videos, and what is neither -----------------------------------------------------------------

VIDEOS = {
    "path": "/data/clips/1.mp4",
    "path in capitals": "CLIP.MKV",
    "URL": "https://example.org/1.webm?size=big",
    "data URL": "data:video/mp4;base64,AAAA",
    "dict": {"type": "video", "video": "1"},
    "dict without a type": {"video": "1.mp4"},
    "dict with a path": {"bytes": None, "path": "a/1.avi"},
}
NEITHER = {
    "audio path": "speech.wav",
    "audio dict": {"array": np.zeros(8), "sampling_rate": 16_000},
    "audio dict with a path": {"path": "a.wav", "array": np.zeros(8), "sampling_rate": 16_000},
    "unknown dict": {"caption": "a cat"},
    "dict with nothing in it": {"bytes": None, "path": None},
    "array": PIXELS,
    "number": 7,
    "words": "what is in the picture?",
    "empty string": "",
    "not quite base64": "not base64, " * 8,
}


@pytest.mark.parametrize("name", NEITHER)
@pytest.mark.parametrize("shape", ["list", "message"])
def test_what_is_neither_image_nor_video_is_refused_in_one_line(name, shape):
    walk, payload = {
        "list": (media.replace_in_visuals, [NEITHER[name]]),
        "message": (media.replace_in_messages, messages({"type": "image", "url": NEITHER[name]})),
    }[shape]
    with pytest.raises(
        CannotWrapError,
        match=r"only images and videos have parts to show|neither an image nor a video|in place of an image",
    ) as error:
        walked(walk, payload)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("name", VIDEOS)
def test_a_video_is_replaced_where_it_stands_and_is_no_image(name):
    medium = VIDEOS[name]
    assert media.is_video(medium)
    assert media.replace_in_visuals([medium], lambda found, _: ("new", found)) == [("new", medium)]
    with pytest.raises(CannotWrapError, match="holds a video, not an image"):
        media.decode(medium)


@pytest.mark.parametrize("key", ["url", "video", "path"])
@pytest.mark.parametrize("ending", [".mp4", ""])
def test_a_video_part_keeps_its_form(key, ending):
    part = {"type": "video", key: f"clip{ending}", "fps": 2}
    assert replaced(part, lambda medium: medium) == part
    assert replaced(part, lambda _: "part.mp4") == {**part, key: "part.mp4"}
    assert replaced(part, lambda _: media.stand_in())["type"] == "image", (
        "an adapter would decode a grey image as a video"
    )


def replaced(part, new):
    """The part after its video was replaced."""
    [_, message] = media.replace_in_messages(messages(part), lambda medium, _: new(medium))
    return message["content"][1]


@pytest.mark.parametrize("times", [{"start_time": 1.0}, {"end_time": 2.0}, {"start_time": 0.0, "end_time": 5.0}])
def test_a_stretch_of_a_video_is_refused(times):
    with pytest.raises(CannotWrapError, match="a stretch of a video"):
        walked(media.replace_in_messages, messages({"type": "video", "url": "clip.mp4", **times}))


@pytest.mark.parametrize(
    ("medium", "reason"),
    [
        (b"\x00\x00\x00\x18ftypmp42" + bytes(64), "an image cannot be read"),
        (b"", "an image cannot be read"),
        ("data:image/png;base64,AAAA", "an image cannot be read"),
        ("data:image/png;base64," + "???A" * 8, "an image cannot be read: "),
        ("/gone/scan.png", "an image cannot be read: .*/gone/scan.png"),
        ({"bytes": None, "path": "/gone/scan.png"}, "an image cannot be read: .*/gone/scan.png"),
        ("https://example.org/scan.png", "is a web address; download it first"),
    ],
)
def test_an_image_that_cannot_be_read_is_refused_in_one_line(medium, reason):
    (found,) = media.images_in([medium], media.replace_in_visuals)
    with pytest.raises(CannotWrapError, match=reason) as error:
        media.decode(found)
    assert "\n" not in str(error.value)
