"""The docs of the MAGIC tasks: rows with drawn images and prompts, from a dataset of the MAGIC form (docs/magic.md)."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
from PIL import Image

from lmms_patch.ask.references import digest
from lmms_patch.errors import OptionError, PatchError
from lmms_patch.harness.refuse import Refusal
from lmms_patch.magic import prompts
from lmms_patch.magic.dataset import Dataset, read
from lmms_patch.magic.draw import draw
from lmms_patch.magic.items import MagicItem, shown
from lmms_patch.magic.score.extract import regions_of_steps, renumber
from lmms_patch.magic.score.selfheal import wrong_runs
from lmms_patch.magic.settings import MagicSettings
from lmms_patch.resources import folder
from lmms_patch.text import log

MOSAIC = "mosaic"
"""The name that stands for the embedded dataset, ``tasks/magic/mosaic``."""
_EMBEDDED = str(folder("tasks") / "magic" / MOSAIC)
DRAWN = {"all": "all", "relevant": "relevant", "none": "none", "selfheal": "all"}
"""Which boxes a variant draws (``which`` of ``items.shown``)."""


def settings() -> MagicSettings:
    """Return the settings of the environment.

    They are read each time, since each evaluation of a ``--config`` list may have its own.

    Raises:
        OptionError: a variable has a value that is not allowed.
    """
    return MagicSettings.from_env(os.environ)


def docs(variant: str, data: str = "") -> datasets.Dataset:
    """Return the docs of a variant, one for each item; for ``selfheal`` one for each tested wrong run.

    Columns: id, item (the item's id), image, question, type, answer, full_answer, group, variant, image_digest.
    ``boxes`` (half-open, in pixels of the upright image) and ``relevant`` hold all boxes of the item in their seeded
    order; ``drawn`` holds the number under which each box is drawn, 0 where it is not
    drawn. ``selfheal`` also has first, last, prefix, and ``corrections``: those of its wrong steps that were written.
    Texts name boxes by the numbers drawn.

    Args:
        variant: one of ``results.VARIANTS``.
        data: ``MOSAIC``, a folder, a file or a hub name; "" stands for what MAGIC_DATA names.

    Raises:
        Refusal: the data or a setting cannot be used.
    """
    try:
        # read now, so that a mistake in them is told before a model is asked
        examples(variant)
        dataset, seed = source(data)[0], settings().seed
        rows = [row for item in dataset.items for row in _rows(dataset, item, variant, seed)]
        if not rows:
            raise OptionError(
                f"{dataset.name}: Self-Heal has nothing to inject: no item has a wrong step with a correction after the first and before the last "
                f"two ('lmms-patch magic check' counts the wrong runs)"
            )
        numbered = [{**row, "row": place} for place, row in enumerate(rows)]
        return datasets.Dataset.from_list(numbered).cast_column("image", datasets.Image())
    except PatchError as error:
        # after an ordinary exception the host would load five times more
        raise Refusal(error) from None


def source(data: str = "") -> tuple[Dataset, str]:
    """Return the dataset named by a task or the environment, and its name in results."""
    told = settings()
    if not data and not told.data:
        raise OptionError(
            "the magic tasks need data: set MAGIC_DATA to a folder, a .jsonl or .parquet file, or a dataset of the hub (owner/name) in the form of "
            "docs/magic.md; without data of your own, try --tasks magic_mosaic"
        )
    place = Path(_EMBEDDED if data == MOSAIC else os.path.expanduser(data or told.data))
    name = place.stem if place.is_file() else place.name if place.is_dir() else str(place)
    return _read(str(place), told.split, _stamp(place)), "magic_mosaic" if data == MOSAIC else name


def _stamp(path: Path) -> tuple[Any, ...]:
    """Return name, time of writing and size of a local dataset's files, which tell a running process of new files."""
    files = [file for file in (path, *path.glob("*")) if file.is_file()]
    return tuple(sorted((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@functools.lru_cache(maxsize=8)
def _read(path: str, split: str, stamp: tuple[Any, ...]) -> Dataset:
    """Read a dataset, once for all variants of a run. ``stamp`` makes a changed dataset be read again."""
    dataset = read(path, split=split)
    if dataset.note:
        log().warning(dataset.note)
    return dataset


def _rows(dataset: Dataset, item: MagicItem, variant: str, seed: int) -> list[dict[str, Any]]:
    """Return the docs of an item."""
    every, drawn = (shown(item.boxes, item.id, which, seed) for which in ("all", DRAWN[variant]))
    boxes, picture = [item.boxes[place] for place in every.places], dataset.picture(item)
    stored = isinstance(picture, bytes)
    row = {
        **{name: getattr(item, name) for name in ("id", "question", "type", "answer", "full_answer")},
        "item": item.id,
        "image": {"bytes": picture if stored else None, "path": None if stored else str(picture)},
        "image_digest": _digest_of(picture),
        "group": item.group or "",
        "variant": variant,
        "boxes": [[box.left, box.top, box.right, box.bottom] for box in boxes],
        "relevant": [box.relevant for box in boxes],
        "drawn": [drawn.numbers.get(place + 1, 0) for place in every.places],
        "first": None,
        "last": None,
        "prefix": [],
        "corrections": [],
    }
    if variant != "selfheal":
        return [row]

    def seen(texts: Sequence[str]) -> list[str]:
        """Return texts with boxes named by the numbers drawn."""
        return [renumber(text, drawn.numbers, len(item.boxes)) for text in texts]

    return [
        {
            **row,
            "id": f"{item.id}/{run.first}-{run.last}",
            "first": run.first,
            "last": run.last,
            "prefix": seen(run.prefix),
            "corrections": seen(run.corrections),
        }
        for run in wrong_runs(item.steps).tested
    ]


def _digest_of(picture: Path | bytes) -> str:
    return hashlib.sha256(picture if isinstance(picture, bytes) else picture.read_bytes()).hexdigest()[:16]


# --- in-context examples --------------------------------------------------------------------------


@dataclass(frozen=True)
class Shot:
    """An in-context example.

    Attributes:
        text: the text that is shown.
        image: the image with its boxes drawn.
        key: a digest of the example, the same in every variant.
    """

    text: prompts.Example
    image: Image.Image
    key: str


def examples(variant: str) -> tuple[Shot, ...]:
    """Return the in-context examples of a variant: the first usable items of MAGIC_EXAMPLES, at most MAGIC_SHOTS."""
    told = settings()
    place = Path(told.examples).expanduser()
    if not told.examples:
        return ()
    return _shots(str(place), told.split, told.seed, told.shots, DRAWN[variant], _stamp(place))


@functools.lru_cache(maxsize=8)
def _shots(path: str, split: str, seed: int, most: int, which: str, stamp: tuple[Any, ...]) -> tuple[Shot, ...]:
    """Return the usable items of a dataset as examples: chains with every wrong step replaced by its correction.

    An item without a chain, or with a wrong step that nobody corrected, cannot be an example. Without boxes, only
    chains that name none can be shown; where there are no such chains, nothing is shown.

    Raises:
        OptionError: no item can be an example.
    """
    dataset = read(path, split=split)
    shots = [shot for item in dataset.items if (shot := _shot(dataset, item, which, seed)) is not None][:most]
    if not shots and which == "none":
        log().warning("MAGIC_EXAMPLES: every example names boxes; tasks without boxes are asked without examples")
    elif not shots:
        raise OptionError(
            f"MAGIC_EXAMPLES: no item of {dataset.name} can be an example; needed: steps that name drawn boxes only, a correction for each wrong one"
        )
    return tuple(shots)


def _shot(dataset: Dataset, item: MagicItem, which: str, seed: int) -> Shot | None:
    """Return an item as an example; None where the item cannot be an example."""
    texts = [step.text if step.correct else step.correction for step in item.steps]
    drawn = shown(item.boxes, item.id, which, seed)
    # no chain, an uncorrected wrong step, or a chain that names boxes which are not drawn
    named = regions_of_steps(texts, len(item.boxes)).used
    if not texts or not all(text.strip() for text in texts) or named - set(drawn.numbers):
        return None
    boxes = [item.boxes[place] for place in drawn.places]
    rects = [(box.left, box.top, box.right, box.bottom) for box in boxes]
    chain = tuple(renumber(text, drawn.numbers, len(item.boxes)) for text in texts)
    return Shot(
        prompts.Example(item.question, len(boxes), chain, item.full_answer or item.answer),
        draw(dataset.image(item), rects, list(range(1, len(boxes) + 1))),
        digest([item.id, *texts, _digest_of(dataset.picture(item)), [repr(box) for box in item.boxes]]),
    )


# --- what a doc shows and asks --------------------------------------------------------------------


def visuals(doc: Mapping[str, Any]) -> list[Image.Image]:
    """Return the doc's image with its boxes drawn, after the images of examples where these are asked for."""
    numbered = sorted((number, box) for number, box in zip(doc["drawn"], doc["boxes"], strict=True) if number)
    rects = [(int(left), int(top), int(right), int(bottom)) for _, (left, top, right, bottom) in numbered]
    own = draw(doc["image"], rects, [number for number, _ in numbered])
    # copies, since the examples are kept for the next doc
    return [*(shot.image.copy() for shot in examples(doc["variant"])), own] if settings().example_images else [own]


def prompt(doc: Mapping[str, Any], prefill: str = "prompt") -> str:
    """Return what the doc asks.

    Args:
        doc: a row.
        prefill: where the injected steps of Self-Heal go: ``prompt``, or ``assistant`` for a turn of the model's own
            before its answer.
    """
    shots = [shot.text for shot in examples(doc["variant"])]
    heals = doc["variant"] == "selfheal"
    count = sum(number > 0 for number in doc["drawn"])
    text = prompts.ask(doc["question"], count, shots, images=settings().example_images, correct=heals)
    return prompts.ask_to_go_on(text, doc["prefix"]) if heals and prefill == "prompt" else text


def messages(doc: Mapping[str, Any], prefill: str) -> list[dict[str, Any]]:
    """Return the conversation for a chat model."""
    content: list[dict[str, Any]] = [{"type": "image", "url": image} for image in visuals(doc)]
    content.append({"type": "text", "text": prompt(doc, prefill)})
    turns: list[dict[str, Any]] = [{"role": "user", "content": content}]
    if doc["variant"] == "selfheal" and prefill == "assistant":
        turns.append({"role": "assistant", "content": [{"type": "text", "text": prompts.go_on(doc["prefix"])}]})
    return turns


def asked(doc: Mapping[str, Any]) -> dict[str, str]:
    """Return digests (16 hex digits each) of what a doc is and asks. Two runs with equal digests were asked the same.

    Returns:
        ``data``: the item, whatever the variant and the order of the boxes; ``doc``: the doc; ``prompt``: its text with
            the examples.
    """
    # an item is the same in whatever order its boxes are drawn
    boxes = sorted(
        (list(map(int, box)), bool(relevant)) for box, relevant in zip(doc["boxes"], doc["relevant"], strict=True)
    )
    item = [doc[key] for key in ("item", "question", "answer", "full_answer", "image_digest")]
    shown = [doc[key] for key in ("id", "variant", "boxes", "relevant", "drawn", "corrections")]
    keys = [shot.key for shot in examples(doc["variant"])]
    return {"data": digest([item, boxes]), "doc": digest([item, shown]), "prompt": digest([prompt(doc), keys])}
