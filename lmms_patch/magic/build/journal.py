"""Resuming a build: what an earlier run has finished, from the folder's ``build.json`` and journal.

The journal is a JSONL file; finished items are appended to it, and a kill may have cut its last line.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.magic.build.gqa import BuildError
from lmms_patch.magic.items import MagicItem
from lmms_patch.magic.rows import Faults, parse, to_row

SCHEMA = 1
"""The schema of ``build.json`` and of the journal."""
JOURNAL = "build.journal.jsonl"


@dataclass(frozen=True)
class Done:
    """A finished item.

    Attributes:
        item: the item.
        notes: notes on it: ``inputs`` (a digest of its image and maps), and what was left out on the way.
    """

    item: MagicItem
    notes: Mapping[str, Any]

    def entry(self) -> dict[str, Any]:
        """Return the item as a line of the journal.

        Its notes include a digest of the rest, which shows later changes.
        """
        row = to_row(self.item)
        return {"row": row, "notes": {**self.notes, "digest": _digest(row, self.notes)}}


def resume(out: Path, print_: str) -> dict[str, Done]:
    """Return what an earlier run finished, and prepare a journal to append to.

    Args:
        out: the folder of the build.
        print_: a digest of what decides the items: a build with another digest is not resumed.

    Raises:
        BuildError: the folder holds something else, or items that were edited by hand (annotators' steps, say), which
            must not be overwritten.
    """
    record, journal = out / "build.json", out / JOURNAL
    finished: dict[str, Done] = {}
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(
            f"{out}: cannot be written: {'it is a file' if out.is_file() else error.strerror}; give another folder"
        ) from None
    try:
        lines = journal.read_bytes().splitlines(keepends=True) if journal.is_file() else []
        # A killed run may have cut the last line.
        whole = [json.loads(line) for line in lines if line.endswith(b"\n")]
        # without an item behind its head a journal holds nothing to lose, so it may be of any build
        if len(whole) > 1:
            _require_same(whole[0], print_, journal)
        since = [one for one in whole[1:] if _is_whole(one["row"], one["notes"])]
        if record.is_file():
            held = json.loads(record.read_text(encoding="utf-8"))
            _require_same(held, print_, record)
            rows = [json.loads(line) for line in (out / "items.jsonl").read_bytes().splitlines()]
            # Before anything is written over: edits by hand would be lost.
            _require_unchanged(rows, held["items"], since, out / "items.jsonl", bool(lines))
            finished.update(
                _read(
                    {"row": row, "notes": held["items"][row["id"]]}
                    for row in rows
                    if _is_whole(row, held["items"].get(row["id"]))
                )
            )
        elif (out / "items.jsonl").exists() and not journal.exists():
            raise BuildError(f"{out} holds an items.jsonl that no build wrote; give another folder")
        finished.update(_read(since))
        # A cut last line is dropped, or the next entry would be glued to it.
        files.write(
            journal, b"".join(line for line in lines if line.endswith(b"\n")) if len(whole) > 1 else _head(print_)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError) as error:
        raise BuildError(
            f"{out}: what an earlier build left cannot be read ({type(error).__name__}); delete it, or give another folder"
        ) from None
    return finished


def clear(folder: Path, ours: Collection[str], stay: Collection[str], inputs: Path | None = None) -> None:
    """Remove an earlier run's files from a folder of a build, except files of this run.

    Leave everything else.

    Args:
        folder: the folder; it may be missing.
        ours: names of files that a build may have written there.
        stay: the names among them that this run made.
        inputs: a folder of inputs: where it is the same folder, nothing is removed.

    Raises:
        BuildError: a file cannot be removed.
    """
    try:
        # Where images lie in the output folder itself, the inputs must not be removed.
        if not folder.is_dir() or (inputs is not None and folder.samefile(inputs)):
            return
        for path in sorted(folder.iterdir()):
            if path.name in ours and path.name not in stay and (path.is_file() or path.is_symlink()):
                path.unlink()
        files.sweep(folder)
        if not stay:
            # A folder with anybody else's files stays.
            with contextlib.suppress(OSError):
                folder.rmdir()
    except OSError as error:
        raise BuildError(
            f"{error.filename or folder}: left by an earlier build, and cannot be removed: {error.strerror}"
        ) from None


def _digest(row: Mapping[str, Any], notes: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in notes.items() if key != "digest"}
    return hashlib.sha256(json.dumps([row, rest], sort_keys=True).encode()).hexdigest()[:16]


def _is_whole(row: Mapping[str, Any], notes: Mapping[str, Any] | None) -> bool:
    """Return whether a row and its notes are as they were written."""
    return notes is not None and notes.get("digest") == _digest(row, notes)


def _head(print_: str) -> bytes:
    return (json.dumps({"schema": SCHEMA, "fingerprint": print_}) + "\n").encode()


def _require_same(held: Any, print_: str, path: Path) -> None:
    if held["schema"] != SCHEMA or held["fingerprint"] != print_:
        raise BuildError(f"{path} is of other questions, scenes or settings; give another folder, or delete that one")


def _require_unchanged(rows: list[Any], noted: Mapping[str, Any], since: list[Any], path: Path, stopped: bool) -> None:
    """Raise on items edited by hand: rows in neither ``build.json`` nor the journal, or missing rows.

    Args:
        rows: rows of the file of items.
        noted: id -> notes, of ``build.json``.
        since: entries of the journal.
        path: path of the file.
        stopped: whether a run was stopped: it may have written the items but not ``build.json``.

    Raises:
        BuildError: they were.
    """
    newer = {one["row"]["id"]: one["row"] for one in since}
    changed = [row["id"] for row in rows if not _is_whole(row, noted.get(row["id"])) and newer.get(row["id"]) != row]
    # a stopped build may have written fewer items than the older build.json names
    if not stopped:
        changed += sorted(set(noted) - {row["id"] for row in rows})
    if changed:
        some = f"{len(changed)} item{'' if len(changed) == 1 else 's'}, such as {changed[0]!r:.60}"
        raise BuildError(
            f"{path} was changed after it was built ({some}), and would be written over; give another folder, or delete that file and build.json"
        )


def _read(entries: Any) -> Iterator[tuple[str, Done]]:
    for entry in entries:
        item = parse(entry["row"], Faults(0))
        if item is not None:
            yield item.id, Done(item, {key: value for key, value in entry["notes"].items() if key != "digest"})
