"""Images of a dataset that are decoded when somebody looks at them.

The harness and many scorers walk over the fields of a doc and touch no image; to decode them all is a large part of
what scoring costs.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import Any

import datasets
from PIL import Image


class LateImage(Image.Image):
    """An image decoded at the first look at any of its parts.

    From then on it is the decoded image, of that image's class.

    To ask whether it is an image decodes nothing. Unlike the decoded image, it is not yet of the class of its format
    (``PngImageFile``).

    Args:
        decode: returns the decoded image.
    """

    def __init__(self, decode: Callable[[], Image.Image]) -> None:
        object.__setattr__(self, "_decode", decode)

    def __getattribute__(self, name: str) -> Any:
        # ``isinstance`` asks for the class
        return LateImage if name == "__class__" else getattr(_decoded(self), name)

    def __repr__(self) -> str:
        return repr(_decoded(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image.Image) and bool(_decoded(self) == _decoded(other))


def _decoded(image: Image.Image) -> Image.Image:
    """Turn an image into the decoded image, if not yet decoded, and return the result."""
    own = object.__getattribute__(image, "__dict__")
    if decode := own.get("_decode"):
        found = decode()
        # first of all, since another thread may ask meanwhile: whatever it finds is whole
        own.update(vars(found))
        object.__setattr__(image, "__class__", type(found))
        own.pop("_decode", None)
    return image


class _LateImages(datasets.Image):
    """The feature of images decoded only when looked at."""

    def decode_example(self, value: Any, token_per_repo_id: Any = None) -> Any:
        return LateImage(lambda: datasets.Image.decode_example(self, value, token_per_repo_id))


_late: weakref.WeakKeyDictionary[datasets.Dataset, datasets.Dataset] = weakref.WeakKeyDictionary()


def late(rows: Any) -> Any:
    """Return the rows of a dataset with images decoded only when looked at.

    Rows of any other kind as they are.
    """
    if not isinstance(rows, datasets.Dataset):
        return rows
    if rows not in _late:
        # but for its data, which are shared
        made = copy.deepcopy(rows)
        made.info.features = datasets.Features({name: _made_late(feature) for name, feature in rows.features.items()})
        _late[rows] = made
    return _late[rows]


def _made_late(feature: Any) -> Any:
    """Return a copy of a dataset's feature in which each image is a ``LateImage``, also an image inside a list or a nested field."""
    # a feature that is not decoded gives paths and bytes, and stays as it is
    if type(feature) is datasets.Image and feature.decode:
        return _LateImages(mode=feature.mode)
    if isinstance(feature, dict):
        return {name: _made_late(inner) for name, inner in feature.items()}
    if isinstance(feature, list):
        return [_made_late(inner) for inner in feature]
    if not hasattr(feature, "feature"):
        return feature
    of_late = copy.copy(feature)
    of_late.feature = _made_late(feature.feature)
    return of_late
