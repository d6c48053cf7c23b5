"""Going on with a build: what an earlier run of it has finished, by the folder's ``build.json`` and journal.

The journal is a JSONL file that is appended to as items are finished; its last line may be cut by a kill.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_patch.magic.gqa import BuildError
from lmms_patch.magic.items import MagicItem
from lmms_patch.magic.rows import Faults, parse
from lmms_patch.magic.sources import write_bytes

SCHEMA = 1
"""Of ``build.json`` and of the journal."""
JOURNAL = "build.journal.jsonl"


@dataclass(frozen=True)
class Done:
    """A finished item.

    Attributes:
        item: the item.
        notes: what is noted of it: ``inputs`` (a digest of its image and maps), and what was left out on the way.
    """

    item: MagicItem
    notes: Mapping[str, Any]


def resume(out: Path, print_: str) -> dict[str, Done]:
    """What an earlier run finished; leaves a journal to append to.

    Args:
        out: the folder of the build.
        print_: what decides the items, as a digest: a build of other questions or settings is not gone on with.

    Raises:
        BuildError: the folder holds something else.
    """
    record, journal = out / "build.json", out / JOURNAL
    finished: dict[str, Done] = {}
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"{out}: cannot be written: {'it is a file' if out.is_file() else error.strerror}; give another folder") from None
    try:
        if record.is_file():
            held = json.loads(record.read_text(encoding="utf-8"))
            _require_same(held, print_, record)
            rows = [json.loads(line) for line in (out / "items.jsonl").read_bytes().splitlines()]
            finished.update(_read({"row": row, "notes": held["items"][row["id"]]} for row in rows if row["id"] in held["items"]))
        elif (out / "items.jsonl").exists() and not journal.exists():
            raise BuildError(f"{out} holds an items.jsonl that no build wrote; give another folder")
        lines = journal.read_bytes().splitlines(keepends=True) if journal.is_file() else []
        whole = [json.loads(line) for line in lines if line.endswith(b"\n")]  # a kill may have cut the last one
        if len(whole) > 1:
            _require_same(whole[0], print_, journal)
            finished.update(_read(whole[1:]))
        write_bytes(journal, b"".join(line for line in lines if line.endswith(b"\n")) if len(whole) > 1 else _head(print_))
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise BuildError(f"{out}: what an earlier build left cannot be read ({type(error).__name__}); delete it, or give another folder") from None
    return finished


def _head(print_: str) -> bytes:
    return (json.dumps({"schema": SCHEMA, "fingerprint": print_}) + "\n").encode()


def _require_same(held: Any, print_: str, path: Path) -> None:
    if held["schema"] != SCHEMA or held["fingerprint"] != print_:
        raise BuildError(f"{path} is of other questions, scenes or settings; give another folder, or delete that one")


def _read(entries: Any) -> Iterator[tuple[str, Done]]:
    for entry in entries:
        item = parse(entry["row"], Faults(0))
        if item is not None:
            yield item.id, Done(item, entry["notes"])
