"""The images of some docs, as the base task shows them: for pictures in a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from PIL import Image

from lmms_patch.errors import CannotWrapError
from lmms_patch.harness import catalog, media, names
from lmms_patch.harness.calls import one_line
from lmms_patch.harness.text_only import MODELS
from lmms_patch.spec import WrapSpec


def first_images(base: str, doc_ids: Iterable[int], include_path: str | None = None) -> dict[int, Image.Image]:
    """The first image of each doc of a base task; docs that show none, or one that cannot be read, are left out.

    Args:
        base: a task of the harness (not a group).
        doc_ids: rows of its eval split.
        include_path: a folder with more task files.

    Raises:
        PatchError: the task is unknown, or its dataset cannot be loaded here.
    """
    manager = catalog.task_manager(include_path)
    manager.model_name = MODELS[0]  # a simple model: the base then shows its docs by doc_to_visual
    names.require_base(manager, WrapSpec(base, "rci", (2,)))
    try:
        task = manager.load_task_or_group([base])[base]
        rows = task.eval_docs
        count = len(rows)
    except Exception as error:
        raise CannotWrapError(f"{base}: its dataset cannot be loaded here: {one_line(error)}") from None
    out = {}
    for doc_id in doc_ids:
        if 0 <= doc_id < count and (image := _first(task, rows[doc_id])) is not None:
            out[doc_id] = image
    return out


def _first(task: Any, row: Any) -> Image.Image | None:
    try:
        found = media.images_in(task.doc_to_visual(dict(row)), media.replace_in_visuals)
        return media.decode(found[0]) if found else None
    except Exception:  # a broken file: the grid is drawn without it
        return None
