"""Loads one task outside a run of the harness: for text-only work, and for pictures of its docs. Says which dataset cannot be loaded, and why."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from typing import Any

from PIL import Image

from lmms_patch import Wrap
from lmms_patch.ask.kinds import RCI
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.names import catalog, configs, effects
from lmms_patch.harness.names.configs import TEXT_ONLY_MODELS
from lmms_patch.harness.wrap import media
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.shelf import sight
from lmms_patch.harness.wrap.text_only import TextOnly


def text_only(
    base: str, *, folds: int = 5, include_path: str | os.PathLike[str] | None = None, **options: Any
) -> TextOnly:
    """Load the text-only side of a task: what a ``_tst<k>`` task of a run has.

    Args:
        base: a task of the harness. A group is refused, since its members have different scorers.
        folds: number of folds.
        include_path: a folder with more task files.
        options: any of ``spec.Options``; they override the base's profile.

    Raises:
        PatchError: the task is unknown, a group, or cannot be read.
    """
    manager = catalog.task_manager(include_path)
    manager.model_name = TEXT_ONLY_MODELS[0]
    if manager.task_index.get(base, {}).get("type") in ("group", "tag"):
        raise CannotWrapError(f"{base} is a group of tasks; name one of its members")
    name = f"{base}_tst{folds}"
    asked = {"task": name, "class": Wrap, "base": base, "kind": "tst", "folds": folds, **options}
    found: TextOnly = manager.load_task_or_group([asked])[name].session.text_only
    found.check()
    return found


# --- pictures -------------------------------------------------------------------------------------

Shown = Callable[[Any], tuple[Image.Image, str] | None]


def first_images(
    base: str, doc_ids: Iterable[Any], include_path: str | os.PathLike[str] | None = None
) -> dict[Any, Image.Image]:
    """Return the first image of each doc of a base task (``image_of``); docs without a readable image are left out."""
    shown, ids = image_of(base, include_path), list(doc_ids)
    found = {doc_id: image[0] for doc_id in ids if (image := shown(doc_id)) is not None}
    if ids and not found and isinstance(ids[0], str):
        raise CannotWrapError(
            f"{base}: the docs here are not those of the run; set MAGIC_DATA, MAGIC_SPLIT and MAGIC_SEED as they were in the run"
        )
    return found


def image_of(base: str, include_path: str | os.PathLike[str] | None = None) -> Shown:
    """Load a base task, and return a function to show its docs.

    The function takes a row of the task's eval split. It returns the doc's first image, and the digest of all its
    images as a record has it (``wrap.shelf.sight``); None where no image can be read. The digest is empty where it may
    differ though the images are the same: where one of them cannot be read, and where the task shows chat models its
    docs in a way of its own.

    The docs of a MAGIC task are named by a digest of what they show (``asked.doc`` of a record), so other data or another
    seed than in the run give no image instead of a wrong one; each is shown with its boxes drawn.

    Args:
        base: a task of the harness (not a group).
        include_path: a folder with more task files.

    Raises:
        PatchError: the task is unknown, or its dataset cannot be loaded here.
    """
    manager = catalog.task_manager(include_path)
    # the name of a simple model makes the base show its docs by doc_to_visual
    manager.model_name = TEXT_ONLY_MODELS[0]
    configs.require_base(manager, WrapSpec(base, RCI, (2,)))
    try:
        task = manager.load_task_or_group([base])[base]
        docs = task.eval_docs
        # asked for now, so that data that cannot be loaded fail here
        count = len(docs)
    except (Exception, SystemExit) as error:
        # a MAGIC task without its data refuses to load
        raise CannotWrapError(f"{base}: its dataset cannot be loaded here: {one_line(error)}") from None
    if effects.is_magic(task):
        return _of_magic(docs)
    own_way = getattr(task.config, "doc_to_messages", None) is not None

    def shown(row: int) -> tuple[Image.Image, str] | None:
        images: list[Image.Image | None] = []
        # a broken file: the doc is shown without it
        with contextlib.suppress(Exception):
            if 0 <= row < count:
                every = media.images_in(task.doc_to_visual(dict(docs[row])), media.replace_in_visuals)
                images = list(map(_decoded, every))
        if not images or images[0] is None:
            return None
        read = [image for image in images if image is not None]
        return images[0], "" if own_way or len(read) < len(images) else sight(read)

    return shown


def _of_magic(rows: Any) -> Shown:
    """Return how the docs of a MAGIC task are shown, by their digests."""
    from lmms_patch.harness.magic import docs

    places = {docs.asked(row)["doc"]: place for place, row in enumerate(rows)}

    def shown(digest: str) -> tuple[Image.Image, str] | None:
        # no such doc, or a broken file
        with contextlib.suppress(Exception):
            # the last image: those of in-context examples come first
            return media.decode(docs.visuals(rows[places[digest]])[-1]), ""
        return None

    return shown


def _decoded(medium: Any) -> Image.Image | None:
    with contextlib.suppress(Exception):
        return media.decode(medium)
    return None
