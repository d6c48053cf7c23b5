"""Pictures for a report: the images of some docs, as the base task shows them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from PIL import Image

from lmms_patch.ask.kinds import RCI
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.names import catalog, configs, effects, lookup
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.swap import sight


def first_images(
    base: str, doc_ids: Iterable[Any], include_path: str | os.PathLike[str] | None = None
) -> dict[Any, Image.Image]:
    """Return the first image of each doc of a base task.

    Docs without an image, or with an unreadable one, are left out.

    For a MAGIC task it is the doc's own image with its boxes drawn. Its docs are named by a digest of what they show
    (``asked.doc`` of a record), so other data or another seed than in the run give no image instead of a wrong one.

    Args:
        base: a task of the harness (not a group).
        doc_ids: rows of its eval split; digests for a MAGIC task.
        include_path: a folder with more task files.

    Raises:
        PatchError: the task is unknown, or its dataset cannot be loaded here.
    """
    task = _loaded(base, include_path)
    if effects.is_magic(task):
        return _drawn(base, task.eval_docs, set(doc_ids))
    found = ((doc_id, next(_images(task, doc_id), None)) for doc_id in doc_ids)
    return {doc_id: image for doc_id, image in found if image is not None}


def image_of(
    base: str, include_path: str | os.PathLike[str] | None = None
) -> Callable[[int], tuple[Image.Image, str] | None]:
    """Load a base task, and return a function to show its docs.

    The function takes a row of the task's eval split. It returns the doc's first image, and the digest of all its
    images as a record has it (``wrap.swap.sight``); None where no image can be read. The digest is empty where it may
    differ though the images are the same: where one of them cannot be read, and where the task shows chat models its
    docs in a way of its own.

    Raises:
        PatchError: as ``first_images``.
    """
    task = _loaded(base, include_path)
    own_way = getattr(task.config, "doc_to_messages", None) is not None

    def shown(row: int) -> tuple[Image.Image, str] | None:
        images = list(_images(task, row))
        read = [image for image in images if image is not None]
        if not images or images[0] is None:
            return None
        return images[0], "" if own_way or len(read) < len(images) else sight(read)

    return shown


def _loaded(base: str, include_path: str | os.PathLike[str] | None) -> Any:
    """Return a base task with its dataset."""
    manager = catalog.task_manager(include_path)
    # the name of a simple model makes the base show its docs by doc_to_visual
    manager.model_name = configs.TEXT_ONLY_MODELS[0]
    lookup.require_base(manager, WrapSpec(base, RCI, (2,)))
    try:
        task = manager.load_task_or_group([base])[base]
        # asked for now, so that data that cannot be loaded fail here
        len(task.eval_docs)
    except (Exception, SystemExit) as error:
        # a MAGIC task without its data refuses to load
        raise CannotWrapError(f"{base}: its dataset cannot be loaded here: {one_line(error)}") from None
    return task


def _images(task: Any, row: int) -> Iterator[Image.Image | None]:
    """Yield the images of a doc, by its row; None for an unreadable image, and nothing where the task cannot show the doc."""
    shown: list[Any] = []
    # a broken file: the grid is drawn without it
    with contextlib.suppress(Exception):
        if 0 <= row < len(task.eval_docs):
            shown = list(media.images_in(task.doc_to_visual(dict(task.eval_docs[row])), media.replace_in_visuals))
    yield from map(_decoded, shown)


def _decoded(medium: Any) -> Image.Image | None:
    with contextlib.suppress(Exception):
        return media.decode(medium)
    return None


def _drawn(base: str, rows: Iterable[Mapping[str, Any]], wanted: set[Any]) -> dict[Any, Image.Image]:
    """Return the images of MAGIC docs with their boxes drawn, by the digest of the doc."""
    from lmms_patch.harness.magic import docs

    found = {}
    for row in rows:
        if (digest := docs.asked(row)["doc"]) in wanted and digest not in found:
            # a broken file: the doc is shown without it
            with contextlib.suppress(Exception):
                # the last image: those of in-context examples come first
                found[digest] = media.decode(docs.visuals(row)[-1])
    if wanted and not found:
        raise CannotWrapError(
            f"{base}: the docs here are not those of the run; set MAGIC_DATA, MAGIC_SPLIT and MAGIC_SEED as they were in the run"
        )
    return found
