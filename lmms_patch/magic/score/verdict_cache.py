"""The verdict cache: no question is put to a judge twice.

One SQLite file in write-ahead mode, so that several processes and threads may use it at once; each process has its own
connection. A killed run loses
nothing: each verdict is committed by itself. Failures are never stored.

The cache is a convenience: where it cannot be used, the run continues without it, and says so in one line. A damaged
file is renamed and kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

FILE = "verdicts-1.sqlite"
"""The name of the file; its number is the schema's version."""
_WAIT = 20.0
"""Seconds to wait for another process that writes."""
_TABLE = (
    "CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, kind TEXT NOT NULL, answers TEXT NOT NULL, reason TEXT NOT NULL, "
    "raw TEXT NOT NULL, model TEXT NOT NULL)"
)
_INHERITED: list[sqlite3.Connection] = []
"""Connections of a parent process: kept, so that they are not closed here."""
_Result = TypeVar("_Result")


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
        tell: called with a line about trouble with the cache; once for each kind of trouble.
    """

    def __init__(self, folder: Path | None, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._tell = tell
        self._told: set[str] = set()
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._owner = 0

    def get(self, key: str, kind: str, count: int) -> Kept | None:
        """Return what is stored for a key, or None.

        Args:
            key: see ``key_of``.
            kind: the kind of the question; an entry of another kind is ignored.
            count: number of verdicts that the question asks for; an entry with another number is ignored.
        """
        row = self._try(
            lambda db: db.execute(
                "SELECT answers, reason, raw, model FROM verdicts WHERE key = ? AND kind = ?", (key, kind)
            ).fetchone()
        )
        if row is None:
            return None
        # A row that does not fit is asked again: the cache may only save calls, never change a verdict.
        try:
            values = json.loads(row[0])
        except (ValueError, TypeError, RecursionError):
            return None
        if not isinstance(values, list) or len(values) != count or not all(isinstance(value, bool) for value in values):
            return None
        return Kept(tuple(values), *(str(text) for text in row[1:]))

    def put(self, key: str, kind: str, kept: Kept) -> None:
        """Store a readable reply, replacing any existing entry."""
        row = (
            key,
            kind,
            json.dumps(list(kept.values)),
            *(_plain(text) for text in (kept.reason, kept.raw, kept.model)),
        )
        self._try(lambda db: db.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?)", row))

    def _try(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result | None:
        """Do something with the file; set a damaged file aside, and repeat with a new file."""
        if self._folder is None:
            return None
        with self._lock:
            said: Exception | None = None
            # Twice: once with the file as it is, once with a new file after a damaged one was set aside.
            for _ in range(2):
                try:
                    return work(self._opened())
                # Locked, full or read-only: no sign of damage, so the file stays.
                except (sqlite3.OperationalError, OSError) as error:
                    said = error
                    break
                except sqlite3.DatabaseError as error:
                    said = error
                    self._set_aside(error)
            self._close()
            self._say(
                f"the verdict cache in {self._folder} cannot be used ({said}); verdicts that are not kept are asked for again"
            )
        return None

    def _opened(self) -> sqlite3.Connection:
        """Return this process's connection."""
        # SQLite forbids using or closing a connection that was opened before a fork.
        if self._db is not None and self._owner != os.getpid():
            _INHERITED.append(self._db)
            self._db = None
        if self._db is None:
            path = self._file()
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db, self._owner = (
                # threads may share it, since all use is under the lock; no
                # transaction stays open, so each verdict is kept at once
                sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False),
                os.getpid(),
            )
            # WAL lets several runs read while one writes.
            self._db.execute("PRAGMA journal_mode = WAL")
            # in this mode a power cut may lose the last verdicts, but
            # damages nothing, and no verdict waits for the disk
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(_TABLE)
        return self._db

    def _close(self) -> None:
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
            self._db = None

    def _file(self) -> Path:
        assert self._folder is not None
        return self._folder / FILE

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        """Rename a damaged file and SQLite's files beside, unless another process did so meanwhile."""
        path = self._file()
        self._close()
        # Another process may have set the file aside already, and begun a whole one.
        try:
            if self._opened().execute("PRAGMA quick_check").fetchone() == ("ok",):
                return
        except sqlite3.OperationalError:
            return
        except sqlite3.DatabaseError:
            pass
        self._close()
        target = _free(path)
        # SQLite would play the damaged file's write-ahead log into a new file of the same name
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                os.replace(f"{path}{end}", f"{target}{end}")
        self._say(f"the verdict cache {path} is damaged ({error}); it is now {target.name}, and a new one is begun")

    def _say(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._tell(" ".join(line.split()))


def _free(path: Path) -> Path:
    """Return an unused name beside a file."""
    number = 1
    while (target := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return target


def _plain(text: str) -> str:
    """Return text without lone surrogates, which SQLite cannot store."""
    return text.encode("utf-8", "replace").decode("utf-8")
