"""The verdict cache: no question is put to a judge twice.

A SQLite file, which several processes and threads may use at once; each verdict is committed by itself, so a killed run
loses nothing. Failures are never stored. Where the file cannot be used, the run continues without it, and says so in a
line.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = "verdicts-1.sqlite"
"""The name of the file; its number is the schema's version."""
_WAIT = 20.0
"""Seconds to wait for another process that writes."""
_TABLE = (
    "CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, kind TEXT NOT NULL, answers TEXT NOT NULL, reason TEXT NOT NULL, "
    "raw TEXT NOT NULL, model TEXT NOT NULL)"
)


@dataclass(frozen=True)
class Kept:
    """The stored part of a reply.

    Attributes:
        values: the verdicts that were read from it.
        reason: the judge's reasons.
        raw: the whole reply.
        model: the model that answered.
    """

    values: tuple[bool, ...]
    reason: str
    raw: str
    model: str


def key_of(asked: Mapping[str, Any]) -> str:
    """Return the key of a question: a digest of everything on which its answer depends.

    Args:
        asked: judge model, server address, sampling settings, version of the prompts, kind and the whole prompt; plain
            JSON values.

    Returns:
        64 hex digits.
    """
    # ASCII, since half a character (a lone surrogate) in a response has no bytes in UTF-8
    return hashlib.sha256(json.dumps(dict(asked), sort_keys=True, ensure_ascii=True).encode()).hexdigest()


class VerdictCache:
    """The verdicts in a folder.

    Args:
        folder: made where it does not exist; None: nothing is stored.
        tell: called with a line, once, where the cache cannot be used.
    """

    def __init__(self, folder: Path | None, tell: Callable[[str], None]) -> None:
        self._file = None if folder is None else folder / FILE
        self._tell = tell

    def get(self, key: str, kind: str, count: int) -> Kept | None:
        """Return what is stored for a key, or None.

        Args:
            key: see ``key_of``.
            kind: the kind of the question; an entry of another kind is ignored.
            count: number of verdicts that the question asks for; an entry with another number is ignored.
        """
        row = self._do("SELECT answers, reason, raw, model FROM verdicts WHERE key = ? AND kind = ?", (key, kind))
        # A row that does not fit is asked again: the cache may only save calls, never change a verdict.
        try:
            values = json.loads(row[0]) if row else None
        except (ValueError, TypeError, RecursionError):
            return None
        if not isinstance(values, list) or len(values) != count or not all(isinstance(value, bool) for value in values):
            return None
        return Kept(tuple(values), *(str(text) for text in row[1:]))

    def put(self, key: str, kind: str, kept: Kept) -> None:
        """Store a readable reply, replacing any existing entry."""
        # SQLite cannot store lone surrogates
        texts = [text.encode("utf-8", "replace").decode() for text in (kept.reason, kept.raw, kept.model)]
        self._do(
            "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?)", (key, kind, json.dumps(kept.values), *texts)
        )

    def _do(self, statement: str, values: tuple[str, ...]) -> Any:
        """Return the first row of a statement; a new connection is safe in any thread and after a fork."""
        if self._file is None:
            return None
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self._file, timeout=_WAIT)) as db, db:
                db.execute(_TABLE)
                return db.execute(statement, values).fetchone()
        except (sqlite3.Error, OSError) as error:
            self._tell(
                f"the verdict cache {self._file} cannot be used ({' '.join(str(error).split())}); verdicts are not kept in this run"
            )
            self._file = None
            return None
