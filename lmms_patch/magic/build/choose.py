"""The choice of a question's boxes: relevant ones from saliency and objects, adversarial ones from other questions (Algorithm 1).

Source: MAGIC paper, 3.1, 3.4, appendix E.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lmms_patch.magic.build import gqa
from lmms_patch.magic.build.gqa import DropError, Question, Scene
from lmms_patch.magic.build.saliency import (
    MOST_COVERED,
    MOST_IOU,
    SAME,
    Rect,
    RegionSettings,
    candidates,
    hotspots,
    load_saliency,
    merge,
    remove_overlap,
    sample,
    synthesise,
)
from lmms_patch.magic.items import Box
from lmms_patch.magic.rows import ALL_BOXES
from lmms_patch.magic.sources import below

MAPS = (0, 1, 2)
"""Numbers t of a question's saliency maps ``<qid>_<t>.png`` (Algorithm 1)."""
# the most objects that the reason of a drop names
_NAMED = 20


class ChooseSettings(Protocol):
    """The part of ``BuildSettings`` needed here."""

    @property
    def seed(self) -> int: ...
    @property
    def weak(self) -> bool: ...
    @property
    def quota(self) -> int: ...
    @property
    def regions(self) -> RegionSettings: ...


@dataclass(frozen=True)
class Inputs:
    """The inputs of a dataset.

    Attributes:
        questions: the JSON file of questions.
        scenes: the JSON file of scenes.
        images: image id -> file.
        saliency: folder of the maps, or None.
        others: image id -> (question, ids of the objects it names), by question.
    """

    questions: Mapping[str, Any]
    scenes: Mapping[str, Any]
    images: Mapping[str, Path]
    saliency: Path | None
    others: Mapping[str, Sequence[tuple[str, tuple[str, ...]]]]


@dataclass(frozen=True)
class _Found:
    """A candidate box: place, shown object, and source."""

    rect: Rect
    label: str
    source: str


def maps_of(qid: str, folder: Path | None) -> dict[int, Path]:
    """Return the existing saliency maps of a question: number -> file.

    The path is checked, so that a question's id cannot name a file outside the folder.
    """
    paths = {t: folder / f"{qid}_{t}.png" for t in MAPS} if folder is not None else {}
    return {
        t: path
        for t, path in paths.items()
        if folder is not None and path.is_file() and below(path.parent, folder.resolve())
    }


def choose(
    question: Question, inputs: Inputs, size: tuple[int, int], settings: ChooseSettings
) -> tuple[tuple[Box, ...], tuple[str, ...], dict[str, Any]]:
    """Choose a question's boxes: relevant boxes (objects by id, hotspots by map), then adversarial boxes as drawn.

    The draw depends on the seed, the question's id, and the sets of objects and boxes; not on the order of questions.

    Args:
        question: the question.
        inputs: scenes, maps and other questions.
        size: width and height of the image (pixels), upright.
        settings: seed, quota, thresholds.

    Returns:
        The boxes; the source of each (``object:<id>``, ``saliency:<t>`` or ``synthetic``); and notes for
        ``build.json``.

    Raises:
        DropError: the question gives no item; holds the reason.
    """
    scene = gqa.scene(inputs.scenes[question.image], size)
    notes: dict[str, Any] = {}
    relevant, off_limits = _relevant(question, scene, inputs, size, settings, notes)
    taken = [found.rect for found in relevant]
    adversarial = (
        _adversarial(question, scene, inputs, [*taken, *off_limits], taken, size, settings) if settings.quota else []
    )
    every = [*relevant, *adversarial]
    if len(every) > ALL_BOXES:
        raise DropError("too many boxes", f"{len(every)}; at most {ALL_BOXES} can be drawn with their numbers")
    boxes = tuple(
        Box(*found.rect, relevant=place < len(relevant), label=found.label) for place, found in enumerate(every)
    )
    return boxes, tuple(found.source for found in every), notes


def _relevant(
    question: Question,
    scene: Scene,
    inputs: Inputs,
    size: tuple[int, int],
    settings: ChooseSettings,
    notes: dict[str, Any],
) -> tuple[list[_Found], list[Rect]]:
    """Return the relevant boxes, and the boxes merged or pruned away, which adversarial boxes must avoid too."""
    rules = settings.regions
    faults = {
        key: scene.faults.get(key, "object not in the scene") for key in question.objects if key not in scene.boxes
    }
    if faults:
        notes["objects"] = faults
    objects = [
        _Found(scene.boxes[key], scene.names[key], f"object:{key}") for key in question.objects if key in scene.boxes
    ]
    spots = [] if settings.weak else _spots(question.id, inputs, size, rules, notes)
    # A hotspot on an object would show the same region twice.
    fresh = merge([one.rect for one in objects], [one.rect for one in spots], SAME)
    boxes = [*objects, *(spots[at] for at in fresh)]
    staying = remove_overlap([one.rect for one in boxes], MOST_IOU, MOST_COVERED)
    if not staying:
        why = "no object of its annotations has a box" + ("" if settings.weak else ", and its maps have no hotspot")
        some = ", ".join(f"{key:.60}: {what}" for key, what in list(faults.items())[:_NAMED]) + (
            ", ..." if len(faults) > _NAMED else ""
        )
        raise DropError("no relevant box", why + (f" ({some})" if faults else ""))
    for name, count in (("hotspots merged", len(spots) - len(fresh)), ("boxes overlapping", len(boxes) - len(staying))):
        if count:
            notes[name] = count
    kept = [boxes[at] for at in staying]
    # Adversarial boxes must avoid these too: they show what is relevant.
    gone = [boxes[at].rect for at in range(len(boxes)) if at not in set(staying)]
    return kept, gone + [spots[at].rect for at in range(len(spots)) if at not in set(fresh)]


def _spots(
    qid: str, inputs: Inputs, size: tuple[int, int], rules: RegionSettings, notes: dict[str, Any]
) -> list[_Found]:
    """Return the hotspots of all maps of a question, each box once.

    Raises:
        DropError: there is no map, or a map cannot be read.
    """
    maps = maps_of(qid, inputs.saliency)
    if not maps:
        raise DropError("no saliency map", f"{qid}_0.png to {qid}_{MAPS[-1]}.png")
    if len(maps) < len(MAPS):
        notes["saliency maps missing"] = len(MAPS) - len(maps)
    spots: dict[Rect, _Found] = {}
    for t, path in maps.items():
        try:
            saliency = load_saliency(path, size)
        except Exception as error:
            # Pillow's decoders raise almost any exception on damaged files.
            raise DropError("saliency map unreadable", f"{path.name} ({type(error).__name__})") from None
        for rect in hotspots(saliency, rules):
            spots.setdefault(rect, _Found(rect, "", f"saliency:{t}"))
    return list(spots.values())


def _adversarial(
    question: Question,
    scene: Scene,
    inputs: Inputs,
    off_limits: list[Rect],
    like: list[Rect],
    size: tuple[int, int],
    settings: ChooseSettings,
) -> list[_Found]:
    """Choose adversarial boxes up to the quota: objects of different questions on the image, then synthetic boxes."""
    # Seeded by the question, so that the order or number of questions changes nothing.
    seed = hashlib.sha256(f"{settings.seed}/boxes/{question.id}".encode()).hexdigest()[:16]
    stream = np.random.default_rng(int(seed, 16))
    named = {key for qid, keys in inputs.others.get(question.image, ()) if qid != question.id for key in keys}
    # Sorted, since the order of a set differs between processes.
    keys = sorted(key for key in named - set(question.objects) if key in scene.boxes)
    fit = [keys[at] for at in candidates([scene.boxes[key] for key in keys], off_limits, size, settings.regions)]
    drawn = [fit[at] for at in sample([scene.boxes[key] for key in fit], settings.quota, stream)]
    chosen = [_Found(scene.boxes[key], scene.names[key], f"object:{key}") for key in drawn]
    like = [*like, *(one.rect for one in chosen)]
    while len(chosen) < settings.quota:
        rect = synthesise([*off_limits, *(one.rect for one in chosen)], like, size, settings.regions, stream)
        if rect is None:
            break
        chosen.append(_Found(rect, "", "synthetic"))
    return chosen
