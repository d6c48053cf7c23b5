"""The journal of a run: every answer as it came, a line each, in the output folder until the run is finished.

A run has a folder of its own, named by a digest of the command; each process writes a file of its own there, and reads
what earlier processes of the same command left. So ranks never wait for each other, and another number of ranks may go
on. A journal is a convenience: where it cannot be used the run goes on without it, and says so in one line.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import shutil
import stat
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

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
        return Journal(
            folder,
            ranks,
            remove=wish != "keep",
            moved=wish == "moved",
            tasks=tasks,
            batch=str(getattr(cli, "batch_size", 1)),
        )
    except OSError as error:
        log().warning(
            f"no journal can be written in {folder} ({line(error)}): this run goes on, but if it is killed its answers are lost"
        )
        return None


class Journal:
    """The answers of a run, kept in a folder.

    Attributes:
        folder: the run's own folder.
        of_batches: whether an earlier process got its answers in batches.

    Args:
        folder: made where it does not exist.
        ranks: this process, and how many share the run.
        remove: whether a finished run removes the folder.
        moved: whether files are read that were made in another folder.
        tasks: the tasks whose tables must be written before it does.
        batch: the batch size, as it was typed.

    Raises:
        OSError: nothing can be written there.
    """

    def __init__(
        self,
        folder: Path,
        ranks: Ranks,
        *,
        remove: bool = True,
        moved: bool = False,
        tasks: Sequence[str] = (),
        batch: str = "1",
    ) -> None:
        self._tasks, self._first, self._remove, self._began = tasks, ranks.first, remove, time.time()
        self.folder, self._several = folder, ranks.world > 1
        folder.mkdir(parents=True, exist_ok=True)
        # before this process makes a file there
        earlier = sorted(folder.glob("*.jsonl"))
        self._path = folder / f"{time.time_ns()}-rank{ranks.number}-{os.getpid()}.jsonl"
        self._file: IO[str] | None = self._path.open("x", encoding="utf-8")
        # whoever else finds the file is told that its run is alive
        with contextlib.suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._written = 0
        self._append([{"folder": str(folder.resolve()), "inode": folder.stat().st_ino, "batch": batch}])
        self.of_batches = False
        self._kept: dict[str, str] = {}
        for file in earlier:
            self._kept |= self._read(file, moved)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, however the run ends: in a notebook the next try must be able to read the file."""
        self._close()

    def _read(self, file: Path, moved: bool) -> dict[str, str]:
        """Return the lines of an earlier process's file by their keys; empty, with a warning, where they may not be used."""
        try:
            about = file.stat()
            if not stat.S_ISREG(about.st_mode):
                # reading a pipe would wait for ever
                raise OSError("it is no regular file")
            # of a file of this process, since some network disks change the number
            if about.st_uid != self._path.stat().st_uid:
                raise OSError(
                    f"the file belongs to another user (number {about.st_uid}), who could have written anything"
                )
            with file.open(encoding="utf-8", errors="replace") as opened:
                _is_free(opened)
                # the last line is cut where the run was killed while it wrote
                first, *lines = [text for text in opened if text.endswith("\n")] or [""]
            place = _parsed(first)
            # one of the two is enough: a folder that is renamed keeps its number
            if (
                not moved
                and str(self.folder.resolve()) != place.get("folder")
                and self.folder.stat().st_ino != place.get("inode")
            ):
                raise OSError(
                    f"they were given to a run in {line(str(place.get('folder')))}; if you moved or copied them yourself, put "
                    f"{KEEP}=moved before the same command"
                )
        except BlockingIOError:
            # most likely another rank of this run, which began a moment earlier
            if not self._several:
                log().warning(f"answers in {file} are not used: the run that writes it is still alive")
            return {}
        except OSError as error:
            if self._first:
                log().warning(f"answers in {file} are not used: {line(error)}")
            return {}
        self.of_batches |= bool(lines) and place.get("batch") != "1"
        found = {key: text for text in lines if isinstance(key := _parsed(text).get("key"), str)}
        if len(found) < len(lines):
            log().warning(f"{len(lines) - len(found):,} answers in {file} are damaged: they are asked again")
        return found

    @property
    def has_earlier(self) -> bool:
        """Whether an earlier process of the same command left answers."""
        return bool(self._kept)

    def count(self) -> int:
        """Return how many answers earlier processes left."""
        return len(self._kept)

    def find(self, wanted: Sequence[bytes]) -> dict[bytes, Any]:
        """Return the kept answers by key; failed calls are left out, so they are asked again."""
        found = {key: _answer(_parsed(text)) for key in wanted if (text := self._kept.get(key.hex())) is not None}
        return {key: answer for key, answer in found.items() if answer is not None}

    def write(self, answers: Iterable[tuple[bytes, Any]]) -> None:
        """Write answers down. After a failure the run goes on without a journal."""
        self._append([{"key": key.hex(), **told} for key, answer in answers if (told := _told(answer))])

    def _append(self, lines: Sequence[dict[str, Any]]) -> None:
        if self._file is None:
            return
        try:
            self._file.write("".join(json.dumps(one) + "\n" for one in lines))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._written += sum("key" in one for one in lines)
        except OSError as error:
            log().warning(
                f"{self._path} cannot be written any more ({line(error)}): the run goes on, but later answers are lost if it is killed"
            )
            self._close()

    def told(self) -> str:
        """Say how many answers are kept, and what to do."""
        return f"{self._written + self.count():,} answers are kept in {self.folder}; type the same command to go on"

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
        """Remove all answers at once: batches have garbled them, and no run may find them."""
        self._close()
        self._remove, self._kept = False, {}
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
        if self._file is not None:
            # what a full disk did not take is lost
            with contextlib.suppress(OSError):
                self._file.close()
        self._file = None


def _parsed(text: str) -> dict[str, Any]:
    """Return a line of a journal; empty for a damaged line."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _told(answer: Any) -> dict[str, Any]:
    """Return an answer in plain JSON types, from which ``_answer`` makes the same answer; empty for a kind unknown to adapters."""
    if isinstance(answer, str):
        return {"text": answer}
    if hasattr(answer, "text") and hasattr(answer, "token_counts"):
        counts = answer.token_counts
        return {"text": answer.text, "counts": None if counts is None else vars(counts)}
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], float) and isinstance(answer[1], bool):
        return {"loss": answer[0], "greedy": answer[1]}
    return {}


def _answer(told: dict[str, Any]) -> Any:
    """Return an answer as given by the adapter; None for an unknown form."""
    from lmms_eval.api.instance import GenerationResult, TokenCounts

    match told:
        case {"loss": float(loss), "greedy": bool(greedy)}:
            return loss, greedy
        case {"text": str(answer), "counts": None}:
            return GenerationResult(answer, None)
        case {"text": str(answer), "counts": dict(counts)}:
            # counts that this version of the host does not have
            with contextlib.suppress(TypeError):
                return GenerationResult(answer, TokenCounts(**counts))
        case {"text": str(answer)}:
            return answer
    return None


def _is_free(file: IO[str]) -> None:
    """Raise BlockingIOError where another process holds a file; do nothing on disks without locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        log().debug("this disk has no locks")
