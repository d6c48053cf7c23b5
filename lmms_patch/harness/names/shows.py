"""What a task's ``doc_to_visual`` hands to a model, as far as the shipped tables know: videos, still images, sound.

``scripts/host/shown.py`` makes ``configs/host-VERSION.csv`` of the code of a version's tasks. A row holds for every file
with the same bytes, whatever the version and the folder; files that it imports are not compared. Of all other code
nothing is known before the first docs.
"""

from __future__ import annotations

import csv
import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path

from lmms_patch import resources
from lmms_patch.harness.names.effects import Module


@dataclass(frozen=True)
class Media:
    """What a function may show, over all docs.

    Attributes:
        media: any of ``clip``, ``image``, ``sound``, ``stretch`` (a video with a time span), ``frames`` (arrays or a
            video reader), ``nothing``, ``missing`` (there is no such function), ``unknown``, and ``unread`` beside
            ``unknown`` where no table knows the code.
        certain: whether the code leaves no doubt, as where PIL makes every image.
    """

    media: frozenset[str]
    certain: bool = False


UNKNOWN = Media(frozenset({"unknown"}))
UNREAD = Media(frozenset({"unknown", "unread"}))
MISSING = Media(frozenset({"missing"}))


def shown_by(path: str, name: str) -> Media:
    """Return what a function of a file may show.

    Args:
        path: the module's file.
        name: a function that takes a doc and returns the list of what is shown.
    """
    return _table().get((digest(path), name)) or (UNREAD if Module.of(path).may_have(name) else MISSING)


def digest(path: str) -> str:
    """Return the digest by which the tables know a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


@functools.cache
def _table() -> dict[tuple[str, str], Media]:
    """Return what functions show, by the digest of the file and the name of the function."""
    rows = (
        row
        for file in resources.folder("configs").glob("host-*.csv")
        for row in csv.reader(file.read_text(encoding="utf-8").splitlines())
    )
    return {
        (file, name): Media(frozenset(media.split()), certain == "certain") for _, name, file, media, certain in rows
    }
