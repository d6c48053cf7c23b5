"""Pictures for a report: the images of some docs, as the base task shows them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from PIL import Image

from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.magic import docs, tasks
from lmms_patch.harness.names import catalog, configs, lookup
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.calls import one_line


def first_images(base: str, doc_ids: Iterable[Any], include_path: str | os.PathLike[str] | None = None) -> dict[Any, Image.Image]:
    """Return the first image of each doc of a base task. Docs without an image, or with an unreadable one, are left out.

    For a MAGIC task it is the doc's own image with its boxes drawn. Its docs are named by a digest of what they show (``asked.doc`` of a
    record), so other data or another seed than in the run give no image instead of a wrong one.

    Args:
        base: a task of the harness (not a group).
        doc_ids: rows of its eval split; digests for a MAGIC task.
        include_path: a folder with more task files.

    Raises:
        PatchError: the task is unknown, or its dataset cannot be loaded here.
    """
    task = _loaded(base, include_path)
    if tasks.is_magic(task):
        return _drawn(base, task.eval_docs, set(doc_ids))
    first = _by_row(task)
    found = ((doc_id, first(doc_id)) for doc_id in doc_ids)
    return {doc_id: image for doc_id, image in found if image is not None}


def image_of(base: str, include_path: str | os.PathLike[str] | None = None) -> Callable[[int], Image.Image | None]:
    """Load a base task, and return a function from a row of its eval split to the doc's first image; None where there is none that can be read.

    Raises:
        PatchError: as ``first_images``.
    """
    return _by_row(_loaded(base, include_path))


def _loaded(base: str, include_path: str | os.PathLike[str] | None) -> Any:
    """Return a base task with its dataset."""
    manager = catalog.task_manager(include_path)
    manager.model_name = configs.TEXT_ONLY_MODELS[0]  # the name of a simple model makes the base show its docs by doc_to_visual
    lookup.require_base(manager, WrapSpec(base, "rci", (2,)))
    try:
        task = manager.load_task_or_group([base])[base]
        len(task.eval_docs)
    except (Exception, SystemExit) as error:  # a MAGIC task without its data refuses to load
        raise CannotWrapError(f"{base}: its dataset cannot be loaded here: {one_line(error)}") from None
    return task


def _by_row(task: Any) -> Callable[[int], Image.Image | None]:
    rows = task.eval_docs
    count = len(rows)
    return lambda row: _first(task, rows[row]) if 0 <= row < count else None


def _drawn(base: str, rows: Iterable[Mapping[str, Any]], wanted: set[Any]) -> dict[Any, Image.Image]:
    """Return the images of MAGIC docs with their boxes drawn, by the digest of the doc."""
    out = {}
    for row in rows:
        digest = docs.asked(row)["doc"]
        if digest in wanted and digest not in out:
            try:
                out[digest] = media.decode(docs.visuals(row)[-1])  # the last image: those of in-context examples come first
            except Exception:  # a broken file: the doc is shown without it
                continue
    if wanted and not out:
        raise CannotWrapError(f"{base}: the docs here are not those of the run; set MAGIC_DATA, MAGIC_SPLIT and MAGIC_SEED as they were in the run")
    return out


def _first(task: Any, row: Any) -> Image.Image | None:
    try:
        images = media.images_in(task.doc_to_visual(dict(row)), media.replace_in_visuals)
        return media.decode(images[0]) if images else None
    except Exception:  # a broken file: the grid is drawn without it
        return None
