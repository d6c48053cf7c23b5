"""Stable ids of docs.

The code is in ``pruned_filter``, which is copied into the task folder of a pruned benchmark: a doc has the same id
there and here.
"""

from __future__ import annotations

from typing import Any

from lmms_patch.errors import OptionError
from lmms_patch.tst import pruned_filter

KeysError = pruned_filter.KeysError


def keys_of(rows: Any, field: str | None = None) -> list[str]:
    """Return the stable ids of docs, without repeats; see ``pruned_filter.keys_of``.

    Args:
        rows: a ``datasets.Dataset`` (its media are not decoded) or a list of dicts.
        field: a field with a different value for every doc; default: a hash of the doc's texts.

    Raises:
        OptionError: no ids can be made; one line that names a doc and what to do.

    >>> keys_of([{"id": 7, "q": "Why?"}, {"id": 9, "q": "Why?"}], field="id")
    ['7', '9']
    """
    try:
        return pruned_filter.keys_of(rows, field)
    except KeysError as error:
        raise OptionError(str(error)) from None
