"""The builder of a MAGIC dataset from questions and scene graphs in GQA's form (Algorithm 1): it writes a folder that ``dataset.read`` takes.

The folder holds ``items.jsonl``; ``images/``, undrawn; ``contact.png``, a sample of items to look at; ``build.json``,
the settings and everything that was dropped, with the reason; and ``previews/`` where asked. While a build runs,
``build.journal.jsonl`` keeps what is finished.

The same inputs, settings and seed give the same bytes, whatever the order of the files' keys, and whether the build ran
through, was killed and resumed, or started from what a run with another limit left. A finished item is not made again
unless its image or saliency maps have changed; dropped questions are tried again. An ``items.jsonl`` that was edited by
hand is not overwritten.

Source: MAGIC paper, 3.1, 3.4, appendix E.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.errors import OptionError, require
from lmms_patch.magic.build import gqa
from lmms_patch.magic.build.choose import Inputs, choose, maps_of
from lmms_patch.magic.build.contact_sheet import CONTACT, PREVIEWS, preview_of, write_pictures
from lmms_patch.magic.build.gqa import BuildError, DropError
from lmms_patch.magic.build.journal import JOURNAL, SCHEMA, Done, clear, resume
from lmms_patch.magic.build.saliency import RegionSettings
from lmms_patch.magic.dataset import image_names, write
from lmms_patch.magic.items import MagicItem
from lmms_patch.magic.rows import is_writable, printable
from lmms_patch.magic.sources import ImageFaultError, upright_size

PLACING = ("copy", "link")
UNNAMED = "rows of the other dataset that name no image"
QUOTA = 3
"""The number of adversarial boxes of an item (paper, 3.1)."""
_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")


@dataclass(frozen=True)
class BuildSettings:
    """Settings of a build.

    Attributes:
        seed: of the choice of adversarial boxes, of the sample under ``limit``, and of the contact sheet.
        saliency: folder with maps ``<qid>_<t>.png``, t = 0, 1, 2; None: only for a ``weak`` build.
        weak: whether to build the weakly supervised split (paper, 3.4): its relevant boxes are only the objects of the
        question's annotations.
        adversarial: number of adversarial boxes that an item should have; None: 3, and none in a weak build (paper,
        3.1, 3.4).
        apart_from: another dataset, none of whose images is used (paper, 3.4: the weak split shares none with the test
        set); None: all are.
        limit: the most items, a seeded sample of those that can be built; None: all.
        placing: how images get into the folder: ``copy``, or ``link`` for hard links, which need no space (a symbolic
            link would lead out of the folder, and no image is read there).
        previews: whether to also write each item with its boxes drawn.
        contact: number of items on the contact sheet; 0: no sheet.
        regions: thresholds.
    """

    seed: int = 0
    saliency: str | Path | None = None
    weak: bool = False
    adversarial: int | None = None
    apart_from: str | Path | None = None
    limit: int | None = None
    placing: str = "copy"
    previews: bool = False
    contact: int = 24
    regions: RegionSettings = field(default_factory=RegionSettings)

    def __post_init__(self) -> None:
        if self.saliency is None and not self.weak:
            raise OptionError(
                "no saliency maps: give --saliency, their folder (<qid>_0.png to <qid>_2.png), or --weak: the weakly supervised split"
            )
        if self.saliency is not None and self.weak:
            raise OptionError("the weakly supervised split takes no saliency maps: leave out --saliency, or --weak")
        for name, value in (("adversarial", self.quota), ("contact", self.contact)):
            if value < 0:
                raise OptionError(f"{name} is {value}; allowed: 0 or more")
        if self.limit is not None and self.limit < 1:
            raise OptionError(f"limit is {self.limit}; allowed: 1 or more")
        if self.placing not in PLACING:
            raise OptionError(f"placing is {self.placing!r}; allowed: {', '.join(PLACING)}")

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
        outcome: ``made``, ``kept`` (finished by an earlier run), or why it was dropped.
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
    """Build a dataset, or resume a build.

    Args:
        questions: JSON file in GQA's form (``gqa``).
        scenes: JSON file in GQA's form (``gqa``).
        images: folder with ``<imageId>.jpg`` (or another suffix).
        out: folder to write.
        settings: how to build.
        tell: called after each question.

    Raises:
        BuildError: an input cannot be read, ``out`` holds something else, or not one item can be built.
        PatchError: OpenCV is missing.
    """
    if settings.saliency is not None:
        # Checked before anything is read, not in the middle of a build.
        require("magic")
    inputs, unnamed = _inputs(questions, scenes, images, settings)
    out = Path(out)
    print_ = _fingerprint(inputs.questions, inputs.scenes, settings, inputs.used_elsewhere)
    finished = resume(out, print_)
    try:
        done, dropped, considered = _all(inputs, out, settings, finished, tell)
    except OSError as error:
        raise BuildError(
            f"{out / JOURNAL}: cannot be written: {error.strerror}; the same command goes on where this one stopped"
        ) from None
    if not done:
        reasons = Counter(reason for _, reason, _ in dropped)
        what = (
            ", ".join(f"{reason}: {count}" for reason, count in sorted(reasons.items())) or "the file holds no question"
        )
        raise BuildError(f"no item can be built from {considered} questions ({what})")
    items = tuple(one.item for one in done)
    counts = {
        **_counts(done, dropped, len(inputs.questions), considered, settings),
        **({UNNAMED: unnamed} if unnamed else {}),
    }
    # The items first, then ``build.json``: the journal goes last, so that a kill at any point can be resumed.
    write(out / "items.jsonl", items)
    write_pictures(items, out, settings.contact, settings.seed, settings.previews)
    _clear(inputs, Path(images), out, settings, items, finished)
    record = {
        "schema": SCHEMA,
        "fingerprint": print_,
        "settings": {**settings.made(), "limit": settings.limit, "images_left_out": len(inputs.used_elsewhere)},
        "counts": dict(sorted(counts.items())),
        "dropped": [{"id": qid, "reason": reason, "detail": detail} for qid, reason, detail in dropped],
        "items": {one.item.id: one.entry()["notes"] for one in done},
    }
    files.write(out / "build.json", json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    (out / JOURNAL).unlink(missing_ok=True)
    return Built(out, items, counts, tuple(dropped))


def _inputs(
    questions: str | Path, scenes: str | Path, images: str | Path, settings: BuildSettings
) -> tuple[Inputs, int]:
    """Read the inputs of a build; also count the rows without an image in the dataset to keep apart.

    Raises:
        BuildError: an input cannot be read.
    """
    asked, graphs = gqa.load_json(questions, "questions"), gqa.load_json(scenes, "scene graphs")
    for folder, what in ((images, "images"), (settings.saliency, "saliency maps")):
        if folder is not None and not Path(folder).is_dir():
            raise BuildError(f"{folder}: no such folder of {what}")
    used, unnamed = _images_of(settings.apart_from)
    saliency = Path(settings.saliency) if settings.saliency else None
    return Inputs(asked, graphs, _files(Path(images)), saliency, _others(asked), used), unnamed


def _all(
    inputs: Inputs,
    out: Path,
    settings: BuildSettings,
    finished: Mapping[str, Done],
    tell: Callable[[Progress], None] | None,
) -> tuple[list[Done], list[tuple[str, str, str]], int]:
    """Return every item, by id; what was dropped, by id; and the number of questions processed."""
    order = sorted(inputs.questions)
    if settings.limit is not None:
        # By a hash, so that a smaller limit gives a subset of a larger one.
        order.sort(key=lambda qid: _digest(f"{settings.seed}/limit/{qid}"))
    done: dict[str, Done] = {}
    dropped: list[tuple[str, str, str]] = []
    sizes: dict[str, tuple[int, int] | str] = {}
    with (out / JOURNAL).open("a", encoding="utf-8") as journal:
        for number, qid in enumerate(order, 1):
            try:
                made, outcome = _one(qid, inputs, out, settings, finished.get(qid), sizes)
                done[qid] = made
                if outcome == "made":
                    # Flushed for each item, so that a killed build loses at most the item at work.
                    journal.write(json.dumps(made.entry(), ensure_ascii=False) + "\n")
                    journal.flush()
            except DropError as drop:
                dropped.append((printable(qid), drop.reason, printable(drop.detail)))
                outcome = drop.reason
            if tell is not None:
                tell(Progress(number, len(order), len(done), printable(qid), outcome))
            if settings.limit is not None and len(done) == settings.limit:
                break
    return [done[qid] for qid in sorted(done)], sorted(dropped), len(done) + len(dropped)


def _one(
    qid: str,
    inputs: Inputs,
    out: Path,
    settings: BuildSettings,
    before: Done | None,
    sizes: dict[str, tuple[int, int] | str],
) -> tuple[Done, str]:
    """Return a question's item, with ``made`` or ``kept``.

    Raises:
        DropError: the question gives no item.
    """
    question = gqa.question(qid, inputs.questions[qid])
    if question.image in inputs.used_elsewhere:
        raise DropError("image of the other dataset", question.image)
    if question.image not in inputs.scenes:
        raise DropError("question without scene", f"image {question.image}")
    file = inputs.images.get(question.image)
    if file is None:
        raise DropError("image missing", f"{question.image}.jpg")
    try:
        size = _size_of(file, sizes)
    except ImageFaultError as error:
        raise DropError("image unreadable", str(error)) from None
    try:
        stamp = _stamp([file, *maps_of(qid, inputs.saliency).values()])
    except OSError as error:
        raise DropError("file unreadable", f"{Path(error.filename or file).name}: {error.strerror}") from None
    target = out / "images" / file.name
    if (
        before is not None
        # Kept only where no input changed since, by the stamp of its files.
        and before.notes.get("inputs") == stamp
        and before.item.image == f"images/{file.name}"
        and _is_copy(target, file)
    ):
        return before, "kept"
    boxes, sources, notes = choose(question, inputs, size, settings)
    _place(file, target, settings.placing)
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
    return Done(item, {"inputs": stamp, **notes}), "made"


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


def _images_of(data: str | Path | None) -> tuple[frozenset[str], int]:
    """Return the ids of a dataset's images (the groups of its rows, and its file names), and the number of rows without a name.

    Raises:
        BuildError: no row has a name, so nothing could be kept apart.
    """
    if data is None:
        return frozenset(), 0
    names, unnamed, total = image_names(data)
    if not names:
        why = f"none of its {total} rows names its image (group, or the image's path)" if total else "it holds no row"
        raise BuildError(f"{data}: nothing can be kept apart from it: {why}")
    return names, unnamed


def _is_copy(target: Path, file: Path) -> bool:
    """Return whether the folder holds an image as an exact copy of the input."""
    try:
        # by content, since a copy has another time than its original
        return filecmp.cmp(file, target, shallow=False) and not _is_old_link(target, file)
    except OSError:
        return False


def _is_old_link(target: Path, file: Path) -> bool:
    """Return whether an image is a symbolic link, as an earlier version's ``--link`` made them: links lead out of the folder, where none is read."""
    return target.is_symlink() and not target.parent.samefile(file.parent)


def _clear(
    inputs: Inputs,
    images: Path,
    out: Path,
    settings: BuildSettings,
    items: tuple[MagicItem, ...],
    finished: Mapping[str, Done],
) -> None:
    """Remove images, previews and contact sheet of an earlier run, unless made by this run."""
    placed = {file.name for file in inputs.images.values()} | {Path(one.item.image).name for one in finished.values()}
    clear(out / "images", placed, {Path(item.image).name for item in items}, images)
    # no name can be made from half a character
    every = {preview_of(qid) for qid in inputs.questions if is_writable(qid)} | {preview_of(qid) for qid in finished}
    clear(out / PREVIEWS, every, {preview_of(item.id) for item in items} if settings.previews else (), images)
    if not settings.contact:
        clear(out, {CONTACT}, (), images)


def _place(file: Path, target: Path, placing: str) -> None:
    """Copy or link an image into the folder, whole or not at all."""
    # The input lies at the target already: a link there would point to itself.
    if target.exists() and target.samefile(file) and not _is_old_link(target, file):
        return
    with files.replacing(target) as part:
        if placing == "link":
            try:
                # resolved, since some systems would link to a link itself
                os.link(file.resolve(), part)
            except OSError as error:
                raise BuildError(
                    f"{target}: cannot be written: {error.strerror} (links need one disk; leave out --link to copy)"
                ) from None
        else:
            shutil.copyfile(file, part)


def _digest(text: str | bytes) -> str:
    # the id of a question may hold half a character: such questions are dropped only later
    return hashlib.sha256(text.encode(errors="surrogatepass") if isinstance(text, str) else text).hexdigest()


def _stamp(files: list[Path]) -> str:
    """Return a digest of the names and contents of files."""
    return _digest("".join(f"{file.name}:{_digest(file.read_bytes())}\n" for file in files))[:16]


def _fingerprint(
    questions: Mapping[str, Any], scenes: Mapping[str, Any], settings: BuildSettings, used: frozenset[str]
) -> str:
    """Return a digest of what decides a build's items, except images and maps; the order of keys does not matter."""
    return _digest(json.dumps([SCHEMA, settings.made(), questions, scenes, sorted(used)], sort_keys=True))[:32]


# what is written at the end


def _counts(
    done: list[Done], dropped: list[tuple[str, str, str]], questions: int, considered: int, settings: BuildSettings
) -> dict[str, int]:
    """Return all counts of a build by name."""
    counts: Counter[str] = Counter(
        {"questions": questions, "considered": considered, "items": len(done), "dropped": len(dropped)}
    )
    counts.update(f"dropped: {reason}" for _, reason, _ in dropped)
    counts["images"] = len({one.item.image for one in done})
    counts["relevant boxes"] = sum(box.relevant for one in done for box in one.item.boxes)
    counts["adversarial boxes"] = sum(not box.relevant for one in done for box in one.item.boxes)
    counts["synthetic boxes"] = sum(list(one.item.more["sources"]).count("synthetic") for one in done)
    counts["items short of adversarial boxes"] = sum(
        sum(not box.relevant for box in one.item.boxes) < settings.quota for one in done
    )
    counts["items of unknown question type"] = sum(not one.item.type for one in done)
    for one in done:
        counts.update(reason for reason in one.notes.get("objects", {}).values())
        counts.update(
            {
                name: one.notes[name]
                for name in ("hotspots merged", "boxes overlapping", "saliency maps missing")
                if name in one.notes
            }
        )
    return dict(sorted(counts.items()))
