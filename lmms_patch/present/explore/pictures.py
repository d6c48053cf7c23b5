"""The images of docs as files for pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmms_patch.errors import PatchError
from lmms_patch.present import look
from lmms_patch.text import line

LONGEST, QUALITY = 1_600, 88
"""Longest side in pixels of an image that is shown, and its JPEG quality."""
SMALL = 300_000
"""Pixels up to which an image is a PNG, whose pixels are those that the model saw."""
OfDoc = Callable[[int], tuple[Any, str] | None]
"""From a doc id to the doc's first PIL image, and the digest that a record has of what the doc shows (column ``images``;
empty: not known); None: no image."""
OpenTask = Callable[[str], OfDoc]
"""From a base task to the images of its docs; raises PatchError where the task cannot be loaded."""


def opened(open_task: OpenTask, base: str) -> OfDoc | str:
    """Return the images of a base task, or why there are none."""
    try:
        return open_task(base)
    except PatchError as error:
        return line(f"no images: {error}", 400)
    except Exception as error:
        # lmms-eval may raise anything while it loads a task
        return line(f"no images: {base} cannot be loaded here: {error!r}", 400)


def save(
    of_doc: OfDoc, doc_id: int, path: Path, size: tuple[int | None, int | None], digest: str | None
) -> dict[str, str]:
    """Write the image of a doc, and return its ``file``, or ``why`` there is no image, or another than in the run.

    Args:
        of_doc: the images of the task.
        doc_id: whose image it is.
        path: of the file, without its ending.
        size: of the image in the run, in pixels, where known.
        digest: of what the doc showed in the run; None: not known.
    """
    try:
        found = of_doc(doc_id)
    # a broken image, or a dataset that went away: the page shows the doc without it
    except Exception as error:
        return {"why": line(f"its image cannot be read: {error}", 300)}
    if found is None:
        return {"why": "the doc has no image that can be read"}
    image, known = found
    if None not in size and tuple(image.size) != size:
        was, now = (f"{width} × {height}" for width, height in (size, image.size))
        return {"why": f"another image: the one here has {now} pixels, the one in the run had {was}"}
    if digest and known and digest != known:
        return {"why": "another image: its colours are not those of the image in the run"}
    small = look.on_white(image, LONGEST)
    whole = small.width * small.height <= SMALL
    file = path.with_suffix(".png" if whole else ".jpg")
    small.save(file, "PNG" if whole else "JPEG", **({} if whole else {"quality": QUALITY}))
    return {"file": f"{file.parent.name}/{file.name}"}
