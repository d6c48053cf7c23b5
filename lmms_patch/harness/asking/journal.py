"""The journal of a run: every answer as it came, in the output folder, until the run is finished.

A run has a folder of its own, named by a digest of the command; each process writes a file of its own there, and reads what earlier processes of
the same command left. So ranks never wait for each other, and another number of ranks may go on. A journal is a convenience: where it cannot be
used the run goes on without it, and says so in one line.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lmms_patch.harness.asking import keys
from lmms_patch.harness.refuse import has_failed
from lmms_patch.text import line, log

if TYPE_CHECKING:
    from lmms_patch.harness.asking.ranks import Ranks

FOLDER = "lmms_patch_journal"
KEEP = "LMMS_PATCH_JOURNAL"
"""Environment variable: ``keep`` leaves the journal of a finished run, ``off`` writes none."""
_TABLE = "CREATE TABLE answers (key BLOB PRIMARY KEY, answer TEXT NOT NULL)"
_AT_ONCE = 500
"""Keys of one query; SQLite takes some 32,000."""


def open_for(cli: Any, tasks: Sequence[str], ranks: Ranks) -> Journal | None:
    """Open the journal of a run; None where the run has no output folder, none is wanted, or none can be written.

    Args:
        cli: the host's command-line arguments; None where it was called from Python.
        tasks: the names of the run's wrapped tasks.
        ranks: the process at hand.
    """
    output, wish = getattr(cli, "output_path", None), os.environ.get(KEEP, "")
    if not output or wish == "off":
        return None
    if wish not in ("", "keep"):
        log().warning(f"{KEEP}={wish!r} is not known; allowed: keep, off")
    folder = Path(output) / FOLDER / keys.of_run(cli, tasks)
    try:
        return Journal(folder, ranks, remove=wish != "keep")
    except (OSError, sqlite3.Error) as error:
        log().warning(f"no journal can be written in {folder} ({line(error)}): this run goes on, but if it is killed its answers are lost")
        return None


class Journal:
    """The answers of one run, kept in a folder.

    Args:
        folder: the run's own folder; made where it does not exist.
        ranks: this process, and how many share the run.
        remove: whether a finished run removes the folder.

    Raises:
        OSError, sqlite3.Error: nothing can be written there.
    """

    def __init__(self, folder: Path, ranks: Ranks, *, remove: bool = True) -> None:
        self.folder, self._first, self._world, self._remove = folder, ranks.first, ranks.world, remove
        folder.mkdir(parents=True, exist_ok=True)
        self._earlier = sorted(folder.glob("*.sqlite"))
        self._began = time.time()
        self._own = folder / f"{time.time_ns()}-rank{ranks.number}-{os.getpid()}.sqlite"
        self._db: sqlite3.Connection | None = sqlite3.connect(self._own, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")  # whoever else finds the file is told that its run is alive
        self._db.execute(_TABLE)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, however the run ends: in a notebook the next try must be able to read it."""
        self._close()

    @property
    def has_earlier(self) -> bool:
        """Whether an earlier process of the same command left answers."""
        return bool(self._earlier)

    def count(self) -> int:
        """Return how many answers earlier processes left; a file that cannot be read counts for none (``find`` names it)."""
        total = 0
        for file in self._earlier:
            with contextlib.suppress(sqlite3.Error, OSError), contextlib.closing(self._open(file)) as db:
                total += int(db.execute("SELECT COUNT(*) FROM answers").fetchone()[0])
        return total

    @staticmethod
    def _open(file: Path) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True, timeout=1)

    def find(self, wanted: Sequence[bytes]) -> dict[bytes, Any]:
        """Return the kept answers by key. A file that cannot be read is named in one line, and passed over."""
        found: dict[bytes, Any] = {}
        for file in self._earlier:
            try:
                with contextlib.closing(self._open(file)) as db:
                    for start in range(0, len(wanted), _AT_ONCE):
                        some = wanted[start : start + _AT_ONCE]
                        rows = db.execute(f"SELECT key, answer FROM answers WHERE key IN ({','.join('?' * len(some))})", some)
                        found |= {key: _read(answer) for key, answer in rows}
            except (sqlite3.Error, OSError, ValueError, KeyError, TypeError) as error:
                busy = "locked" in str(error)
                if busy and self._world > 1:  # most likely another rank of this run, which began a moment earlier
                    continue
                why = "the run that writes it is still alive" if busy else f"it cannot be read: {line(error)}"
                log().warning(f"answers in {file} are not used: {why}")
        return found

    def write(self, answers: Iterable[tuple[bytes, Any]]) -> None:
        """Write answers down, all or none. After a failure the run goes on without a journal."""
        if self._db is None:
            return
        rows = [(key, text) for key, answer in answers if (text := _written(answer)) is not None]
        try:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", rows)
            self._db.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            log().warning(f"{self._own} cannot be written any more ({line(error)}): the run goes on, but later answers are lost if it is killed")
            self._close()

    def keep(self) -> None:
        """Do not remove the journal at the end of the run. Call it when calls failed: the same command then asks only for these."""
        if self._remove and self._first:
            log().info(f"some calls failed: the other answers stay in {self.folder}, so that the same command asks for these alone")
        self._remove = False

    def done(self) -> None:
        """Have the journal's folder removed when the process ends, if the results are written by then and nothing failed.

        Call it when every request is answered. Why not remove the folder at once: the host writes the results later.
        """
        if self._remove and self._first:
            atexit.register(self._sweep)

    def _sweep(self) -> None:
        written = (path.stat().st_mtime for path in self.folder.parents[1].rglob("*_results.json"))
        with contextlib.suppress(OSError):
            if any(when >= self._began for when in written) and not has_failed():  # a scorer that raised is mended, and the same command typed again
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder.parent.rmdir()  # fails where another run has its journal

    def _close(self) -> None:
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
        self._db = None


def _written(answer: Any) -> str | None:
    """Return an answer as JSON that ``_read`` turns into the same answer; None for one of a kind that no adapter gives."""
    if isinstance(answer, str):
        return json.dumps({"text": answer})
    if hasattr(answer, "text") and hasattr(answer, "token_counts"):
        counts = answer.token_counts
        return json.dumps({"text": answer.text, "counts": None if counts is None else vars(counts)})
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], float) and isinstance(answer[1], bool):
        return json.dumps({"loss": answer[0], "greedy": answer[1]})
    return None


def _read(text: str) -> Any:
    """Return an answer as the adapter gave it.

    Raises:
        ValueError, KeyError, TypeError: the text is not one of ours.
    """
    from lmms_eval.api.instance import GenerationResult, TokenCounts

    stored: Mapping[str, Any] = json.loads(text)
    if "loss" in stored:
        return stored["loss"], stored["greedy"]
    if "counts" in stored:
        return GenerationResult(stored["text"], None if stored["counts"] is None else TokenCounts(**stored["counts"]))
    return stored["text"]
