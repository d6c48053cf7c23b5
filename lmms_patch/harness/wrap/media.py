"""Finds the images and videos in what a base task hands to a model, and replaces them by views.

Two shapes occur: the list of ``doc_to_visual`` (simple adapters) and the messages of ``doc_to_messages`` (chat
adapters). An image is a PIL image, a dict with ``bytes`` or ``path``, a data URL, base64 text, or the path of an image
file. A video is a path, a data URL, or a dict that says so. Other media are refused.
"""

from __future__ import annotations

import base64
import copy
import io
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from PIL import Image

from lmms_patch.ask.views import View
from lmms_patch.errors import CannotWrapError


class UnreadableError(CannotWrapError):
    """An image that cannot be loaded: its file is missing, truncated, or not an image."""


Replace = Callable[[Any, int], Any]
"""Takes a medium as the base gave it, and its number among the doc's images; returns the replacement."""

_IMAGE = re.compile(r"[^?]+\.(jpe?g|png|bmp|gif|tiff?|webp|ppm)(\?|\Z)", re.IGNORECASE)
_VIDEO = re.compile(r"[^?]+\.(mp4|m4v|mov|avi|mkv|webm|flv|wmv|mpe?g|ts|3gp|ogv)(\?|\Z)", re.IGNORECASE)
_STRETCH = ("start_time", "end_time", "video_start", "video_end")
_SOUND = frozenset({"audio", "audio_url", "array", "sampling_rate"})
_PARTS = ("url", "image", "image_url", "video", "video_url", "path", "bytes")
"""Where a part of a message holds its image or video; the first that is set counts."""
_NO_SOUND = "it holds audio; only images and videos have parts to show"


def replace_in_visuals(visuals: Any, replace: Replace) -> list[Any]:
    """Return the list of ``doc_to_visual`` with each image and video replaced. Nested lists keep their nesting.

    Raises:
        CannotWrapError: something in it is neither.
    """
    # images are numbered over all nested lists, so all of them share a counter
    counter = itertools.count()

    def walk(item: Any) -> Any:
        if isinstance(item, (list, tuple)):
            return [walk(inner) for inner in item if inner is not None]
        return replace(_medium(item), next(counter))

    listed = visuals if isinstance(visuals, (list, tuple)) else [visuals]
    return list(walk(listed))


def replace_in_messages(messages: Any, replace: Replace) -> list[dict[str, Any]]:
    """Return new chat messages with the image or video of each such part replaced; everything else is a copy.

    Raises:
        CannotWrapError: a part is audio, or a stretch of a video, or an image part holds something else.
    """
    out, counter = [], itertools.count()
    for message in messages or []:
        message = {**message}
        if isinstance(message.get("content"), (list, tuple)):
            parts = [_replace_in_part(part, replace, counter) for part in message["content"]]
            message["content"] = [part for part in parts if part is not None]
        out.append(message)
    return out


def _replace_in_part(part: Any, replace: Replace, counter: Iterator[int]) -> Any:
    """Return a part of a message with its image or video replaced; None for an image part without an image."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in ("audio", "audio_url"):
        raise CannotWrapError(_NO_SOUND)
    if kind not in ("image", "image_url", "video", "video_url"):
        # a copy, because adapters write into parts, and the next view is made from the same ones
        return copy.deepcopy(part)
    _refuse_stretch(part)
    key = next((key for key in _PARTS if part.get(key) is not None), None)
    if key is None:
        return None
    source = part[key]
    # OpenAI's form: ``{"image_url": {"url": ...}}``
    nested = kind in ("image_url", "video_url") and isinstance(source, Mapping) and "url" in source
    medium = source["url"] if nested else source
    video = kind.startswith("video")
    # the message's word counts where the medium shows no sign of a video
    new = replace(Video(medium) if video and not is_video(medium) else _medium(medium), next(counter))
    if video and isinstance(new, Image.Image):
        # the grey image in place of a video that cannot be read
        return {"type": "image", "url": new}
    new = new.medium if isinstance(new, Video) else new
    return {**part, key: {**source, "url": new} if nested else new}


def without_media(payload: Any) -> list[Any]:
    """Return a payload without images, videos and sounds: no visuals at all, or messages with their text alone."""
    if not isinstance(payload, list) or not all(isinstance(one, Mapping) and "role" in one for one in payload):
        return []
    out = []
    for message in payload:
        content = message.get("content")
        if isinstance(content, (list, tuple)):
            content = [
                {**part, "text": without_placeholders(part["text"])}
                for part in content
                if isinstance(part, Mapping) and part.get("type") == "text"
            ]
        elif isinstance(content, str):
            content = without_placeholders(content)
        out.append({**message, "content": content})
    return out


CAPTION = "Description of the image: "


def without_placeholders(text: str) -> str:
    """Return a prompt without ``<image>`` marks, since adapters would look for as many images."""
    return text.replace("<image>\n", "").replace("<image>", "")


def blind_prompt(text: str, view: View) -> str:
    """Return the prompt of a view without image, with the view's text added."""
    text = without_placeholders(text)
    if view.kind == "caption" and view.adds:
        return f"{CAPTION}{view.adds}\n{text}"
    return f"{text}\n{view.adds}" if view.adds else text


def with_text(messages: list[Any], view: View) -> list[Any]:
    """Return chat messages without media, with the view's text added: a line at the end of the user's words, or a caption before.

    Without a message of a user, nothing is added.
    """
    # the question stands in the user's last message
    last = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=None)
    if not view.adds or last is None:
        return messages
    content = messages[last].get("content")
    if isinstance(content, str):
        more: Any = blind_prompt(content, view)
    elif view.kind == "caption":
        more = [{"type": "text", "text": f"{CAPTION}{view.adds}"}, *content]
    else:
        more = [*content, {"type": "text", "text": view.adds}]
    return [*messages[:last], {**messages[last], "content": more}, *messages[last + 1 :]]


def to_describe(messages: list[Any], prompt: str) -> list[Any]:
    """Return a single chat message with the media of some messages, in their order, and a request for a description."""
    parts = [
        part
        for message in messages
        if isinstance(content := message.get("content"), (list, tuple))
        for part in content
        if isinstance(part, Mapping) and part.get("type") != "text"
    ]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": prompt}]}]


@dataclass(frozen=True)
class Video:
    """A medium that a message calls a video, though nothing in it says so: bytes, or a path with an unusual ending."""

    medium: Any


def is_video(medium: Any) -> bool:
    """Return whether a medium is a video, as far as its type, its keys or the ending of its path say."""
    if isinstance(medium, Mapping):
        says = medium.get("type") == "video" or any(medium.get(key) is not None for key in ("video", "video_url"))
        return says or any(is_video(medium.get(key)) for key in ("path", "url"))
    if isinstance(medium, (str, os.PathLike)):
        return str(medium).startswith("data:video/") or bool(_VIDEO.match(str(medium)))
    return isinstance(medium, Video)


def _medium(medium: Any) -> Any:
    """Return an image or a video in any form unchanged, and refuse everything else.

    Raises:
        CannotWrapError: it is audio, or something unknown.
    """
    if isinstance(medium, Mapping):
        _refuse_stretch(medium)
    if isinstance(medium, (Image.Image, bytes, bytearray)) or is_video(medium):
        return medium
    if isinstance(medium, Mapping):
        if medium.get("type") == "audio" or _SOUND & medium.keys():
            raise CannotWrapError(_NO_SOUND)
        if any(medium.get(key) is not None for key in ("bytes", "path", "url")):
            return medium
    if isinstance(medium, str):
        if medium.startswith("data:image/") or _IMAGE.match(medium) or _base64(medium) is not None:
            return medium
        raise CannotWrapError(f"the doc holds {medium[:80]!r}, which is neither an image nor a video (an audio path?)")
    raise CannotWrapError(f"the doc holds a {type(medium).__name__} in place of an image or a video")


def _refuse_stretch(medium: Mapping[str, Any]) -> None:
    if any(medium.get(key) is not None for key in _STRETCH):
        named = ", ".join(key for key in _STRETCH if key in medium)
        raise CannotWrapError(f"it shows a stretch of a video ({named}); views are made of whole videos")


def _base64(text: str) -> bytes | None:
    """Return the bytes of a base64 text long enough for an image; None for a text of another kind."""
    try:
        return base64.b64decode(text, validate=True) if len(text) >= 64 else None
    except ValueError:
        return None


def of_data_url(url: str) -> bytes:
    """Return the bytes of an image or a video in a data URL. Line breaks are ignored.

    Raises:
        ValueError: it is not base64.
    """
    return base64.b64decode("".join(url.partition(",")[2].split()), validate=True)


def decode(medium: Any) -> Image.Image:
    """Return a medium as a loaded PIL image, in the mode and orientation of its file.

    Raises:
        UnreadableError: the bytes are not an image, or the file is missing.
        CannotWrapError: the medium is a web address, or a video.
    """
    if is_video(medium):
        raise CannotWrapError("the doc holds a video, not an image")
    if isinstance(medium, Mapping):
        return decode(next(medium[key] for key in ("bytes", "path", "url") if medium.get(key) is not None))
    try:
        image = medium if isinstance(medium, Image.Image) else Image.open(_file_of(medium))
        # ``open`` reads the header alone; a truncated file shows only now
        image.load()
    except CannotWrapError:
        raise
    except Exception as error:
        # a damaged file makes Pillow's readers raise nearly anything
        raise UnreadableError(f"an image cannot be read: {' '.join(str(error).split())}") from None
    return image


def stand_in() -> Image.Image:
    """Return a grey image, shown in place of an image that cannot be loaded.

    Why not show nothing: many adapters crash without an image.
    """
    return Image.new("RGB", (224, 224), (128, 128, 128))


def _file_of(medium: bytes | str) -> Any:
    """Return what Pillow opens for a medium: a path, or a file in memory."""
    if isinstance(medium, (bytes, bytearray)):
        return io.BytesIO(medium)
    if medium.startswith("data:"):
        return io.BytesIO(of_data_url(medium))
    if medium.startswith(("http://", "https://")):
        raise CannotWrapError(f"the image {medium[:80]!r} is a web address; download it first")
    # a path of letters and digits alone could pass for base64
    encoded = None if _IMAGE.match(medium) else _base64(medium)
    return io.BytesIO(encoded) if encoded is not None else medium.removeprefix("file://")


def images_in(payload: Any, walk: Callable[[Any, Replace], Any]) -> list[Any]:
    """Return the media of a payload in order, as the base gave them.

    Args:
        payload: what ``doc_to_visual`` or ``doc_to_messages`` returned.
        walk: ``replace_in_visuals`` or ``replace_in_messages``.
    """
    media: list[Any] = []
    walk(payload, lambda medium, _: media.append(medium))
    return media
