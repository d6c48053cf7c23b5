"""The journal of a run: every answer as it came, in the output folder, until the run is finished.

A run has a folder of its own, named by a digest of the command; each process writes a file of its own there, and reads
what earlier processes of the same command left. So ranks never wait for each other, and another number of ranks may go
on. A journal is a convenience: where it cannot be used the run goes on without it, and says so in one line.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lmms_patch.errors import RecordError
from lmms_patch.harness.asking import keys
from lmms_patch.harness.refuse import fail_at_exit, has_failed
from lmms_patch.runs import run
from lmms_patch.runs.samples import NAME
from lmms_patch.text import line, log

if TYPE_CHECKING:
    from lmms_patch.harness.asking.ranks import Ranks

FOLDER = "lmms_patch_journal"
KEEP = "LMMS_PATCH_JOURNAL"
"""Environment variable: ``keep`` leaves the journal of a finished run, ``off`` writes none, ``moved`` believes one that was made in another place."""
WISHES = ("keep", "off", "moved")
_TABLE = "CREATE TABLE answers (key BLOB PRIMARY KEY, answer TEXT NOT NULL)"
_PLACE = "CREATE TABLE place (folder TEXT NOT NULL, inode TEXT NOT NULL)"
"""The folder that a file was made in, and its number on the disk, which stays where the folder is renamed."""
_COMPUTED = (
    "SELECT name FROM sqlite_master WHERE name IN ('answers', 'place') AND sql NOT LIKE 'CREATE TABLE %' "
    "UNION ALL SELECT name FROM pragma_table_xinfo('answers') WHERE hidden"
)
"""Finds views, virtual tables and columns that are computed."""
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
    if wish not in ("", *WISHES):
        log().warning(f"{KEEP}={wish!r} is not known; allowed: {', '.join(WISHES)}")
    folder = Path(output) / FOLDER / keys.of_run(cli, tasks)
    try:
        return Journal(folder, ranks, remove=wish != "keep", moved=wish == "moved", tasks=tasks)
    except (OSError, sqlite3.Error) as error:
        log().warning(
            f"no journal can be written in {folder} ({line(error)}): this run goes on, but if it is killed its answers are lost"
        )
        return None


def _is_of(file: Path, user: int) -> bool:
    """Return whether a journal's answers may be used: only those of a regular file of this user.

    Another user's file is refused, since its answers may be made up. A pipe is refused, since reading it would wait for
    ever.

    Args:
        file: a file of an earlier process.
        user: the number of the user whom a file belongs to that this process makes; some network disks change it.
    """
    try:
        found = file.stat()
    except OSError:
        return False
    if not stat.S_ISREG(found.st_mode):
        log().warning(f"answers in {file} are not used: it is no regular file")
        return False
    if found.st_uid != user:
        log().warning(
            f"answers in {file} are not used: the file belongs to another user (number {found.st_uid}), who could have written anything"
        )
        return False
    return True


def _place_of(folder: Path) -> tuple[str, str]:
    """Return what a journal's file notes of its folder: the path without links, and the folder's number on the disk."""
    return str(folder.resolve()), str(folder.stat().st_ino)


class Journal:
    """The answers of a run, kept in a folder.

    Args:
        folder: the run's own folder; made where it does not exist.
        ranks: this process, and how many share the run.
        remove: whether a finished run removes the folder.
        moved: whether files are read that were made in another folder.
        tasks: the tasks whose tables must be written before it does.

    Raises:
        OSError, sqlite3.Error: nothing can be written there.
    """

    def __init__(
        self,
        folder: Path,
        ranks: Ranks,
        *,
        remove: bool = True,
        moved: bool = False,
        tasks: Sequence[str] = (),
    ) -> None:
        self._tasks = tasks
        self.folder, self._first, self._world, self._remove = folder, ranks.first, ranks.world, remove
        folder.mkdir(parents=True, exist_ok=True)
        # before this process makes a file there
        earlier = sorted(folder.glob("*.sqlite"))
        self._began = time.time()
        self._own = folder / f"{time.time_ns()}-rank{ranks.number}-{os.getpid()}.sqlite"
        # no transaction begins by itself: ``write`` begins its own
        self._db: sqlite3.Connection | None = sqlite3.connect(self._own, isolation_level=None, check_same_thread=False)
        # whoever else finds the file is told that its run is alive
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute(_TABLE)
        self._db.execute(_PLACE)
        self._db.execute("INSERT INTO place VALUES (?, ?)", _place_of(folder))
        self._earlier = [
            file for file in earlier if _is_of(file, self._own.stat().st_uid) and (moved or self._is_at_home(file))
        ]

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, however the run ends: in a notebook the next try must be able to read the file."""
        self._close()

    @property
    def has_earlier(self) -> bool:
        """Whether an earlier process of the same command left answers."""
        return bool(self._earlier)

    def count(self) -> int:
        """Return how many answers earlier processes left.

        A file that cannot be read counts for none (``find`` names it).
        """
        total = 0
        for file in self._earlier:
            with contextlib.suppress(sqlite3.Error, OSError), contextlib.closing(self._open(file)) as db:
                total += int(db.execute("SELECT COUNT(*) FROM answers").fetchone()[0])
        return total

    @staticmethod
    def _open(file: Path, wait: float = 1) -> sqlite3.Connection:
        """Open a journal file for reading.

        Raises:
            sqlite3.Error: it cannot be read, or what has the names of our tables is computed when it is read (a view
                may compute for ever).
        """
        # read only, or SQLite would make a file that is missing
        db = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True, timeout=wait)
        try:
            if db.execute(_COMPUTED).fetchone():
                raise sqlite3.DatabaseError("its tables are not those of a journal")
        except BaseException:
            db.close()
            raise
        return db

    def _is_at_home(self, file: Path) -> bool:
        """Return whether a journal file still lies in the folder that it was made in.

        True where the file does not say, or cannot be read (``find`` names it).
        """
        try:
            with contextlib.closing(self._open(file, 0)) as db:
                told = db.execute("SELECT folder, inode FROM place").fetchone()
        except (sqlite3.Error, OSError):
            # damaged, or of a run that is alive
            return True
        # one of the two is enough: a folder that is renamed keeps its number
        if told is None or any(one == own for one, own in zip(told, _place_of(self.folder), strict=True)):
            return True
        if self._first:
            log().warning(
                f"answers in {file} are not used: they were given to a run in {line(str(told[0]))}; if you moved or copied them yourself, put "
                f"{KEEP}=moved before the same command"
            )
        return False

    def find(self, wanted: Sequence[bytes]) -> dict[bytes, Any]:
        """Return the kept answers by key. An unreadable file is named in a line, and passed over."""
        found: dict[bytes, Any] = {}
        for file in self._earlier:
            bad = 0
            try:
                with contextlib.closing(self._open(file)) as db:
                    for start in range(0, len(wanted), _AT_ONCE):
                        some = wanted[start : start + _AT_ONCE]
                        rows = db.execute(
                            f"SELECT key, answer FROM answers WHERE key IN ({','.join('?' * len(some))})", some
                        )
                        read = {key: _read(answer) for key, answer in rows}
                        bad += sum(answer is None for answer in read.values())
                        found |= {key: answer for key, answer in read.items() if answer is not None}
            except (sqlite3.Error, OSError) as error:
                busy = "locked" in str(error)
                # most likely another rank of this run, which began a moment earlier
                if busy and self._world > 1:
                    continue
                why = "the run that writes it is still alive" if busy else f"it cannot be read: {line(error)}"
                log().warning(f"answers in {file} are not used: {why}")
            if bad:
                log().warning(f"{bad:,} answers in {file} are damaged: they are asked again")
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
            log().warning(
                f"{self._own} cannot be written any more ({line(error)}): the run goes on, but later answers are lost if it is killed"
            )
            self._close()

    def told(self) -> str:
        """Say how many answers are kept, and what to do."""
        with contextlib.suppress(sqlite3.Error):
            own = 0 if self._db is None else int(self._db.execute("SELECT COUNT(*) FROM answers").fetchone()[0])
            return f"{own + self.count():,} answers are kept in {self.folder}; type the same command to go on"
        return f"its answers are in {self.folder}"

    def keep(self) -> None:
        """Do not remove the journal at the end of the run.

        Call it when calls failed: the same command then asks only for these.
        """
        if self._remove and self._first:
            log().info(
                f"some calls failed: the other answers stay in {self.folder}, so that the same command asks for these alone"
            )
        self._remove = False

    def forget(self) -> None:
        """Remove all answers at once: batches have garbled them, so that no run may find them."""
        self._close()
        self._remove, self._earlier = False, []
        if self._first:
            shutil.rmtree(self.folder, ignore_errors=True)

    def done(self) -> None:
        """Have the journal's folder removed when the process ends, if the results are written by then and nothing failed.

        Call it when every request is answered. Why not remove the folder at once: the host writes the results later.
        """
        if self._remove and self._first:
            atexit.register(self._sweep)

    def _sweep(self) -> None:
        """Remove the journal's folder if the run's files are whole.

        Where they are not, say so, and end with status 2: the host ends with 0.
        """
        # a scorer that raised is mended, and the same command typed again
        if has_failed():
            return
        try:
            whole = self._is_written()
        except (OSError, ValueError, RecordError) as error:
            fail_at_exit(
                f"{line(error)}; the answers stay in {self.folder}, and the same command writes the results again without asking"
            )
            return
        if whole:
            shutil.rmtree(self.folder, ignore_errors=True)
            # fails where another run has its journal
            with contextlib.suppress(OSError):
                self.folder.parent.rmdir()

    def _is_written(self) -> bool:
        """Return whether the tables of all tasks, and the host's results file beside them, were written since this run began.

        Raises:
            OSError, ValueError, RecordError: a file is cut, or lacks docs.
        """
        tables = self.folder.parents[1].rglob(f"*{NAME}*.parquet")
        # earlier runs, and others of this process (--config), lie in the same folder
        new = {run.place_of(table) for table in tables if table.stat().st_mtime >= self._began}
        written = [results for results in new if set(self._tasks) <= {one.task for one in run.read(results).results}]
        for results in written:
            try:
                # the host catches the exception of a full disk, and goes on
                json.loads(results.read_bytes())
            except ValueError as error:
                raise ValueError(f"{results} is cut ({error})") from None
        return bool(written)

    def _close(self) -> None:
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
        self._db = None


def _written(answer: Any) -> str | None:
    """Return an answer as JSON for ``_read`` to turn back into the same answer.

    None for an answer of a kind that no adapter gives.
    """
    if isinstance(answer, str):
        return json.dumps({"text": answer})
    if hasattr(answer, "text") and hasattr(answer, "token_counts"):
        counts = answer.token_counts
        return json.dumps({"text": answer.text, "counts": None if counts is None else vars(counts)})
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], float) and isinstance(answer[1], bool):
        return json.dumps({"loss": answer[0], "greedy": answer[1]})
    return None


def _read(text: Any) -> Any:
    """Return an answer as given by the adapter.

    None for a text of another form, so that the request is asked again.
    """
    from lmms_eval.api.instance import GenerationResult, TokenCounts

    try:
        match json.loads(text):
            case {"loss": float(loss), "greedy": bool(greedy)}:
                return loss, greedy
            case {"text": str(answer), "counts": None}:
                return GenerationResult(answer, None)
            # not ``isinstance``, to which true would be a number
            case {"text": str(answer), "counts": dict(counts)} if all(
                count is None or type(count) is int for count in counts.values()
            ):
                return GenerationResult(answer, TokenCounts(**counts))
            case {"text": str(answer), **more} if not more:
                return answer
    except (ValueError, TypeError, RecursionError):
        # no JSON, or counts that this version of the host does not have
        pass
    return None
