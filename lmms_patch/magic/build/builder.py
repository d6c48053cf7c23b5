"""The builder of a MAGIC dataset from questions and scene graphs in GQA's form (Algorithm 1): it writes a folder that ``dataset.read`` takes.

The folder holds ``items.jsonl``; ``images/``, undrawn; and ``build.json``, the settings and everything that was dropped,
with the reason. Every file is written whole, and ``items.jsonl`` last but one: the command that made a folder without it
was stopped, and is typed again. An ``items.jsonl`` that is there is never written over: annotators may have worked on it.

The same inputs, settings and seed give the same bytes, whatever the order of the files' keys.

Source: MAGIC paper, 3.1, 3.4, appendix E.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.errors import OptionError, require
from lmms_patch.magic.build import gqa
from lmms_patch.magic.build.choose import Inputs, choose
from lmms_patch.magic.build.gqa import BuildError, DropError
from lmms_patch.magic.build.saliency import RegionSettings
from lmms_patch.magic.dataset import write
from lmms_patch.magic.items import MagicItem
from lmms_patch.magic.rows import printable
from lmms_patch.magic.sources import ImageFaultError, upright_size

SCHEMA = 1
"""The schema of ``build.json``."""
QUOTA = 3
"""The number of adversarial boxes of an item (paper, 3.1)."""
_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")


@dataclass(frozen=True)
class BuildSettings:
    """Settings of a build.

    Attributes:
        seed: of the choice of adversarial boxes, and of the sample under ``limit``.
        saliency: folder with maps ``<qid>_<t>.png``, t = 0, 1, 2; None: only for a ``weak`` build.
        weak: whether to build the weakly supervised split (paper, 3.4): its relevant boxes are only the objects of the
        question's annotations.
        adversarial: number of adversarial boxes that an item should have; None: 3, and none in a weak build (paper,
        3.1, 3.4).
        limit: the most items, a seeded sample of those that can be built; None: all.
        regions: thresholds.
    """

    seed: int = 0
    saliency: str | Path | None = None
    weak: bool = False
    adversarial: int | None = None
    limit: int | None = None
    regions: RegionSettings = field(default_factory=RegionSettings)

    def __post_init__(self) -> None:
        if self.saliency is None and not self.weak:
            raise OptionError(
                "no saliency maps: give --saliency, their folder (<qid>_0.png to <qid>_2.png), or --weak: the weakly supervised split"
            )
        if self.saliency is not None and self.weak:
            raise OptionError("the weakly supervised split takes no saliency maps: leave out --saliency, or --weak")
        if self.quota < 0:
            raise OptionError(f"adversarial is {self.quota}; allowed: 0 or more")
        if self.limit is not None and self.limit < 1:
            raise OptionError(f"limit is {self.limit}; allowed: 1 or more")

    @property
    def quota(self) -> int:
        """Wanted number of adversarial boxes in an item."""
        return self.adversarial if self.adversarial is not None else 0 if self.weak else QUOTA

    def made(self) -> dict[str, Any]:
        """Return the settings with influence on items, in plain JSON types and without paths."""
        return {
            "seed": self.seed,
            "weak": self.weak,
            "saliency": self.saliency is not None,
            "adversarial": self.quota,
            "regions": asdict(self.regions),
        }


@dataclass(frozen=True)
class Progress:
    """The state of a build after a question.

    Attributes:
        done: number of questions processed.
        total: the most questions to process.
        kept: number of items so far.
        id: the question.
        outcome: ``made``, or why it was dropped.
    """

    done: int
    total: int
    kept: int
    id: str
    outcome: str


@dataclass(frozen=True)
class Built:
    """A finished build.

    Attributes:
        folder: where it was written.
        items: ordered by id.
        counts: name -> number.
        dropped: (question, reason, detail), ordered by question.
    """

    folder: Path
    items: tuple[MagicItem, ...]
    counts: Mapping[str, int]
    dropped: tuple[tuple[str, str, str], ...]


def build(
    questions: str | Path,
    scenes: str | Path,
    images: str | Path,
    out: str | Path,
    settings: BuildSettings,
    tell: Callable[[Progress], None] | None = None,
) -> Built:
    """Build a dataset.

    Args:
        questions: JSON file in GQA's form (``gqa``).
        scenes: JSON file in GQA's form (``gqa``).
        images: folder with ``<imageId>.jpg`` (or another suffix).
        out: folder to write.
        settings: how to build.
        tell: called after each question.

    Raises:
        BuildError: an input cannot be read, ``out`` holds items already, or not one item can be built.
        RecordError: a file cannot be written.
        PatchError: OpenCV is missing.
    """
    if settings.saliency is not None:
        # Checked before anything is read, not in the middle of a build.
        require("magic")
    out = Path(out)
    if (out / "items.jsonl").exists():
        raise BuildError(f"{out / 'items.jsonl'} is there already; give another --output, or delete it")
    inputs = _inputs(questions, scenes, images, settings)
    items, notes, dropped = _all(inputs, out, settings, tell)
    considered = len(items) + len(dropped)
    if not items:
        reasons = Counter(reason for _, reason, _ in dropped)
        what = (
            ", ".join(f"{reason}: {count}" for reason, count in sorted(reasons.items())) or "the file holds no question"
        )
        raise BuildError(f"no item can be built from {considered} questions ({what})")
    counts = _counts(items, notes, dropped, len(inputs.questions), settings)
    write(out / "items.jsonl", items)
    record = {
        "schema": SCHEMA,
        "settings": {**settings.made(), "limit": settings.limit},
        "counts": counts,
        "dropped": [{"id": qid, "reason": reason, "detail": detail} for qid, reason, detail in dropped],
        "items": notes,
    }
    files.write(out / "build.json", json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return Built(out, items, counts, dropped)


def _inputs(questions: str | Path, scenes: str | Path, images: str | Path, settings: BuildSettings) -> Inputs:
    """Read the inputs of a build.

    Raises:
        BuildError: an input cannot be read.
    """
    asked, graphs = gqa.load_json(questions, "questions"), gqa.load_json(scenes, "scene graphs")
    for folder, what in ((images, "images"), (settings.saliency, "saliency maps")):
        if folder is not None and not Path(folder).is_dir():
            raise BuildError(f"{folder}: no such folder of {what}")
    saliency = Path(settings.saliency) if settings.saliency else None
    return Inputs(asked, graphs, _files(Path(images)), saliency, _others(asked))


def _all(
    inputs: Inputs, out: Path, settings: BuildSettings, tell: Callable[[Progress], None] | None
) -> tuple[tuple[MagicItem, ...], dict[str, dict[str, Any]], tuple[tuple[str, str, str], ...]]:
    """Return every item, the notes of each, and what was dropped, all by id."""
    order = sorted(inputs.questions)
    if settings.limit is not None:
        # By a hash, so that a smaller limit gives a subset of a larger one.
        order.sort(key=lambda qid: _digest(f"{settings.seed}/limit/{qid}"))
    done: dict[str, tuple[MagicItem, dict[str, Any]]] = {}
    dropped: list[tuple[str, str, str]] = []
    sizes: dict[str, tuple[int, int] | str] = {}
    for number, qid in enumerate(order, 1):
        try:
            done[qid], outcome = _one(qid, inputs, out, settings, sizes), "made"
        except DropError as drop:
            dropped.append((printable(qid), drop.reason, printable(drop.detail)))
            outcome = drop.reason
        if tell is not None:
            tell(Progress(number, len(order), len(done), printable(qid), outcome))
        if settings.limit is not None and len(done) == settings.limit:
            break
    ids = sorted(done)
    return tuple(done[qid][0] for qid in ids), {qid: done[qid][1] for qid in ids}, tuple(sorted(dropped))


def _one(
    qid: str, inputs: Inputs, out: Path, settings: BuildSettings, sizes: dict[str, tuple[int, int] | str]
) -> tuple[MagicItem, dict[str, Any]]:
    """Put a question's image into the folder, and return the item with notes.

    Raises:
        DropError: the question gives no item.
    """
    question = gqa.question(qid, inputs.questions[qid])
    if question.image not in inputs.scenes:
        raise DropError("question without scene", f"image {question.image}")
    file = inputs.images.get(question.image)
    if file is None:
        raise DropError("image missing", f"{question.image}.jpg")
    try:
        size = _size_of(file, sizes)
    except ImageFaultError as error:
        raise DropError("image unreadable", str(error)) from None
    boxes, sources, notes = choose(question, inputs, size, settings)
    _place(file, out / "images" / file.name)
    item = MagicItem(
        id=qid,
        image=f"images/{file.name}",
        question=question.text,
        type=question.type,
        answer=question.answer,
        full_answer=question.full_answer,
        boxes=boxes,
        group=question.image,
        more={"sources": list(sources)},
    )
    return item, notes


def _size_of(file: Path, sizes: dict[str, tuple[int, int] | str]) -> tuple[int, int]:
    """Return the upright size of a fully decodable image; each file is decoded once.

    Raises:
        ImageFaultError: it does not.
    """
    if file.name not in sizes:
        try:
            sizes[file.name] = upright_size(file, decode=True)
        except ImageFaultError as error:
            sizes[file.name] = str(error)
    size = sizes[file.name]
    if isinstance(size, str):
        raise ImageFaultError(size)
    return size


def _files(folder: Path) -> dict[str, Path]:
    """Return image id -> file.

    Of several suffixes the first in the order of ``_SUFFIXES`` counts. Entries that are no files (pipes, folders) are
    ignored.
    """
    files_by_id: dict[str, Path] = {}
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        rank = _SUFFIXES.index(path.suffix.lower()) if path.suffix.lower() in _SUFFIXES else None
        if (
            rank is not None
            and path.is_file()
            # With several files of an image, the first suffix in ``_SUFFIXES`` wins.
            and (path.stem not in files_by_id or rank < _SUFFIXES.index(files_by_id[path.stem].suffix.lower()))
        ):
            files_by_id[path.stem] = path
    return files_by_id


def _others(questions: Mapping[str, Any]) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Return by image id the questions and their objects, from which adversarial boxes are chosen."""
    by_image: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for qid in sorted(questions):
        image = gqa.image_id(questions[qid])
        if image is not None:
            by_image.setdefault(image, []).append((qid, gqa.object_ids(questions[qid].get("annotations"))))
    return by_image


def _place(file: Path, target: Path) -> None:
    """Copy an image into the folder, whole or not at all; an input in this place stays."""
    if target.exists() and target.samefile(file):
        return
    with files.replacing(target) as part:
        shutil.copyfile(file, part)


def _digest(text: str) -> str:
    # the id of a question may hold half a character: such questions are dropped only later
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _counts(
    items: tuple[MagicItem, ...],
    notes: Mapping[str, Mapping[str, Any]],
    dropped: tuple[tuple[str, str, str], ...],
    questions: int,
    settings: BuildSettings,
) -> dict[str, int]:
    """Return all counts of a build by name."""
    boxes = [box for item in items for box in item.boxes]
    counts: Counter[str] = Counter(
        {
            "questions": questions,
            "considered": len(items) + len(dropped),
            "items": len(items),
            "dropped": len(dropped),
            "images": len({item.image for item in items}),
            "relevant boxes": sum(box.relevant for box in boxes),
            "adversarial boxes": sum(not box.relevant for box in boxes),
            "synthetic boxes": sum(list(item.more["sources"]).count("synthetic") for item in items),
            "items short of adversarial boxes": sum(
                sum(not box.relevant for box in item.boxes) < settings.quota for item in items
            ),
            "items of unknown question type": sum(not item.type for item in items),
        }
    )
    counts.update(f"dropped: {reason}" for _, reason, _ in dropped)
    for noted in notes.values():
        counts.update(noted.get("objects", {}).values())
        counts.update({name: count for name, count in noted.items() if name != "objects"})
    return dict(sorted(counts.items()))
