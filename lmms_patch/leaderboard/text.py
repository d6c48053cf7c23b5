"""Names from runs as text that is safe to publish: anybody may have chosen them. Pure."""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
LONGEST = 200
"""Longer names are cut: a name of a megabyte would hide the board."""

_SECRET = re.compile(r"(?i)\b([\w.-]*(?:api[_-]?key|token(?!s\b|iz)|secret|password|passwd|credential|auth(?!or))[\w.-]*)=[^,\s]+")
_LOGIN = re.compile(r"(?<=://)[^/@\s,]+@")
_MARKDOWN = {c: f"&#{ord(c)};" for c in "*_[]~@$#!{}"}
_DEVICES = re.compile(r"(?i)^(con|prn|aux|nul|com\d|lpt\d)(\.|$)")


def clean(text: Any) -> str:
    """A name on one line: control characters, lone surrogates and marks that turn the direction of text become U+FFFD; cut after ``LONGEST``.

    >>> clean("a\\x00b\\u202ec")
    'a\ufffdb\ufffdc'
    """
    return _clean(str(text))


@functools.lru_cache(maxsize=65_536)
def _clean(whole: str) -> str:
    shown = "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cs", "Cf", "Zl", "Zp") else c for c in whole[: LONGEST + 1])
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def redacted(arguments: str) -> str:
    """Model arguments without what must not be published: values of keys, tokens and passwords, logins in addresses.

    >>> redacted("model_version=x,api_key=sk-1,base_url=https://me:pw@host/v1")
    'model_version=x,api_key=...,base_url=https://...@host/v1'
    """
    return _LOGIN.sub("...@", _SECRET.sub(r"\1=...", arguments))


def unique(labels: Mapping[K, str]) -> dict[K, str]:
    """The labels, cleaned; where two then read alike, each gets the first digits of a hash of its key."""
    shown = {key: clean(label) for key, label in labels.items()}
    often = Counter(shown.values())
    return {key: label if often[label] == 1 else f"{label} #{_hash(key)}" for key, label in shown.items()}


def file_names(labels: Mapping[K, str], ending: str) -> dict[K, str]:
    """A file name for each label: letters, digits, ``._-``, unique also where upper and lower case are one.

    >>> file_names({1: "Qwen/Qwen2.5-VL", 2: "../../etc"}, ".md")
    {1: 'Qwen__Qwen2.5-VL.md', 2: '__..__etc.md'}
    """
    stems = {key: _stem(label) for key, label in labels.items()}
    often = Counter(stem.lower() for stem in stems.values())
    return {key: (stem if stem and often[stem.lower()] == 1 else f"{stem or 'model'}-{_hash(key)}") + ending for key, stem in stems.items()}


def _stem(label: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", label.replace("/", "__")).lstrip(".-")[:100].rstrip(".")
    return "" if not safe.strip("._-") or _DEVICES.match(safe) else safe


def _hash(key: Hashable) -> str:
    return hashlib.sha256(repr(key).encode("utf-8", "backslashreplace")).hexdigest()[:8]


def markdown(text: str) -> str:
    """A name that Markdown shows as it is: no markup, link, mention or HTML comes of it. Not for a ``Sheet``'s own escapes (``|``, ``<``).

    >>> markdown("**a** https://b")
    '&#42;&#42;a&#42;&#42; https:&#47;&#47;b'
    """
    escaped = "".join(_MARKDOWN.get(c, c) for c in text.replace("&", "&amp;")) if _plain_markup(text) else text
    return escaped.replace("://", ":&#47;&#47;").replace("www.", "www&#46;")


def _plain_markup(text: str) -> bool:
    """Whether a name holds anything that could be markup; underscores within words are none."""
    return bool(re.search(r"[*\[\]~@$#!{}&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", text))


def heading(text: str) -> str:
    """A name within a heading or paragraph of Markdown."""
    return markdown(text).replace("\\", "&#92;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;").replace("`", "&#96;")
