"""The journal of a run: every answer as it came, a line each, in the output folder until the run is finished.

A run has a folder of its own, named by a digest of the command; each process writes a file of its own there, and reads
what earlier processes of the same command left. So ranks never wait for each other, and another number of ranks may go
on. A journal is a convenience: where it cannot be used the run goes on without it, and says so in one line.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_patch.ask.views import PIXELS
from lmms_patch.errors import RecordError
from lmms_patch.harness import compat
from lmms_patch.harness.names import effects
from lmms_patch.harness.refuse import fail_at_exit, has_failed
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.runs import run
from lmms_patch.runs.samples import NAME
from lmms_patch.text import line, log

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

    from lmms_patch.harness.asking.rounds import Ranks
    from lmms_patch.harness.wrap.docs import VariantDocs
    from lmms_patch.harness.wrap.task import WrappedTask

FOLDER = "lmms_patch_journal"
KEEP = "LMMS_PATCH_JOURNAL"
"""Environment variable: ``keep`` leaves the journal of a finished run, ``off`` writes none."""
WISHES = ("keep", "off")


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
    folder = Path(output) / FOLDER / of_run(cli, tasks)
    try:
        return Journal(folder, ranks, tasks, str(getattr(cli, "batch_size", 1)), remove=wish != "keep")
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
        tasks: the tasks whose tables must be written before a finished run removes the folder.
        batch: the batch size, as it was typed.
        remove: whether a finished run removes the folder.

    Raises:
        OSError: nothing can be written or read there.
    """

    def __init__(
        self, folder: Path, ranks: Ranks, tasks: Sequence[str] = (), batch: str = "1", *, remove: bool = True
    ) -> None:
        self.folder, self._tasks, self._first, self._remove = folder, tasks, ranks.first, remove
        self._began, self._written, self.of_batches = time.time(), 0, False
        folder.mkdir(parents=True, exist_ok=True)
        self._kept: dict[str, Any] = {}
        for file in sorted(folder.glob("*.jsonl")):
            # behind the last line end stands what a kill has cut
            told = [_parsed(text) for text in file.read_text("utf-8", "replace").split("\n")[:-1]]
            answers = {one["key"]: one for one in told if isinstance(one.get("key"), str)}
            self.of_batches |= bool(answers) and told[0] != {"batch": "1"}
            self._kept |= answers
        self._path: Path | None = folder / f"{time.time_ns()}-rank{ranks.number}-{os.getpid()}.jsonl"
        self._path.write_text(json.dumps({"batch": batch}) + "\n")
        if self._kept and ranks.first:
            log().info(f"{len(self._kept):,} answers are kept from an earlier run of this command ({folder})")

    def count(self) -> int:
        """Return how many answers earlier processes left."""
        return len(self._kept)

    def find(self, wanted: Sequence[bytes]) -> dict[bytes, Any]:
        """Return the kept answers by key."""
        found = {key: _answer(self._kept[key.hex()]) for key in wanted if key.hex() in self._kept}
        return {key: answer for key, answer in found.items() if answer is not None}

    def write(self, answers: Iterable[tuple[bytes, Any]]) -> None:
        """Write answers down. After a failure the run goes on without a journal."""
        lines = [json.dumps({"key": key.hex(), **told}) for key, answer in answers if (told := _told(answer))]
        if self._path is None:
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(f"{one}\n" for one in lines)
                file.flush()
                os.fsync(file.fileno())
            self._written += len(lines)
        except OSError as error:
            log().warning(
                f"{self._path} cannot be written any more ({line(error)}): the run goes on, but later answers are lost if it is killed"
            )
            self._path = None

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
        self._path, self._remove, self._kept = None, False, {}
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
        for results in new:
            if set(self._tasks) <= {one.task for one in run.read(results).results}:
                try:
                    # the host catches the exception of a full disk, and goes on
                    json.loads(results.read_bytes())
                except ValueError as error:
                    raise ValueError(f"{results} is cut ({error})") from None
                return True
        return False


def _parsed(text: str) -> dict[str, Any]:
    """Return a line of a journal; empty for a damaged line, whose answer is asked again."""
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


# --- keys -----------------------------------------------------------------------------------------
# A key is a digest of everything that an answer depends on: the model, the request, the doc and its images. A saved answer is used only where
# its key equals that of a request. A doc's row and its images count as the dataset stores them: nothing is decoded. Of a doc with a clip, the
# decoded frames count.

_OF_THE_MODEL = "model model_args gen_kwargs system_instruction apply_chat_template fewshot_as_multiturn num_fewshot force_simple seed launcher_args"
"""The command line's options on which an answer depends. Not among them, for example: batch size, device, limit."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")
"""The address in an object as Python prints it, such as a function. It differs from process to process."""


def of_run(cli: Any, tasks: Sequence[str]) -> str:
    """Return the name of a run's journal: a digest of the model and the tasks, 16 hex digits."""
    return _digest([of_model(cli), *tasks]).hex()[:16]


def of_model(cli: Any) -> str:
    """Return a digest of the model, its arguments, and what else on the command line changes answers.

    A local checkpoint counts with the size and time of its files: training on makes it another model under the same
    path.
    """
    told = {name: getattr(cli, name, None) for name in _OF_THE_MODEL.split()}
    arguments = told["model_args"]
    # any value may be the path of a checkpoint
    values = arguments.values() if isinstance(arguments, Mapping) else re.split(r"[=,]", str(arguments or ""))
    return _digest(
        [told, {str(value): _stamps(str(value)) for value in values if value}, compat.host_version(), PIXELS]
    ).hex()


def _stamps(path: str) -> list[tuple[str, int, int]]:
    """Return name, size (bytes) and time of the last change (ns) of each file in a local folder, or of a local file.

    Return an empty list for a path that is neither, such as the name of a model on a hub.
    """
    try:
        place = Path(path)
        files = sorted(place.iterdir()) if place.is_dir() else [place] if place.is_file() else []
        return [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    except (OSError, ValueError):
        return []


def of_request(model: str, request: Instance, digests: Digests) -> bytes:
    """Return the key of a request; empty where the doc cannot be read: its answer is then not kept.

    Args:
        model: ``of_model``.
        request: a request of a wrapped task.
        digests: the docs of that task.
    """
    shown = digests.of_view(int(request.arguments[3]))
    if not shown:
        return b""
    # the prompt, generation settings, task and split
    plain = [one for one in request.arguments if isinstance(one, (str, dict))]
    return _digest(
        [model, digests.settings, request.request_type, int(request.arguments[3]), request.idx, plain, shown]
    )


class Digests:
    """The digests of a wrapped task's docs, each computed once.

    Args:
        task: the task.
    """

    def __init__(self, task: WrappedTask) -> None:
        self._task = task
        self._known: dict[int, str] = {}
        config = _ADDRESS.sub("", json.dumps(task.dump_config(), sort_keys=True, default=str))
        # the code counts too: a task that shows its docs in another way must not find the earlier answers
        self.settings = _digest([config, *map(effects.code_of, _showing(task.table.base))]).hex()
        self._raw = _undecoded(task.table.rows)

    @property
    def _table(self) -> VariantDocs:
        """The docs of the task; the task makes a new table when nothing can be left out (``WrappedTask``)."""
        return self._task.table

    def of_view(self, view: int) -> list[str]:
        """Return digests of all docs shown in a view, and the view in words; nothing where a doc cannot be read."""
        doc_id, number = divmod(view, self._table.most)
        shown = self._table.views_of(doc_id)[number]
        # a view on a wrong image depends on the donor's images too
        donor = self._table.wrong_image_of(doc_id) if shown.swapped else None
        docs = [self._of(one) for one in (doc_id, donor) if one is not None]
        frames = f" {self._table.shelf.sampling}" if self._table.shelf.shows_clips else ""
        return [] if "" in docs else [*docs, f"{shown!r} {shown.swapped}{frames}"]

    def _of(self, doc_id: int) -> str:
        if doc_id not in self._known:
            try:
                self._known[doc_id] = _digest(self._parts(doc_id)).hex()
            except Exception as error:
                # any dataset, any format: an answer that cannot be kept is asked again
                if "" not in self._known.values():
                    log().warning(
                        f"{self._task.spec.name}: answers are not kept where a doc cannot be read (doc {doc_id}: {one_line(error)})"
                    )
                self._known[doc_id] = ""
        return self._known[doc_id]

    def _parts(self, doc_id: int) -> list[Any]:
        if self._raw is not None and not self._table.shelf.shows_clips:
            return [self._raw[doc_id : doc_id + 1].to_pylist()]
        look = self._table.look(doc_id)
        return [dict(self._task.eval_docs_no_media[doc_id]), None if look is None else look.prints]


def _showing(base: Any) -> list[Callable[..., Any]]:
    """Return the functions behind the images and the prompt of a doc.

    A task in YAML names them in its config; a task that is a Python class has them as methods.
    """
    names = ("doc_to_visual", "doc_to_messages", "doc_to_text")
    functions = (getattr(base.config, name, None) or getattr(type(base), name, None) for name in names)
    return list(filter(callable, functions))


def _undecoded(rows: Any) -> Any:
    """Return a dataset with slices as Arrow tables, images as stored; None where the dataset stores no images.

    A dataset without an image feature holds paths at most, and a file may change behind its path: then the decoded
    images count.
    """
    return rows.with_format("arrow") if "Image(" in repr(getattr(rows, "features", None)) else None


def _digest(parts: Any) -> bytes:
    """Return a digest (16 bytes) of nested lists, mappings and plain values.

    Files that stand for images count with their content.
    """
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, parts)
    return digest.digest()


def _feed(digest: Any, value: Any) -> None:
    """Add a value to a digest, with its kind and length, so different values never read alike."""
    if isinstance(value, Mapping):
        digest.update(b"{%d" % len(value))
        # keys of several types have no order among themselves
        for key in sorted(value, key=str):
            _feed(digest, str(key))
            _feed(digest, value[key])
        # an image stored as a path counts with the content of the file
        if set(value) == {"bytes", "path"} and value["bytes"] is None and value["path"]:
            digest.update(Path(value["path"]).read_bytes())
    elif isinstance(value, (list, tuple)):
        digest.update(b"[%d" % len(value))
        for one in value:
            _feed(digest, one)
    elif isinstance(value, (bytes, bytearray)):
        digest.update(b"b%d" % len(value))
        digest.update(value)
    else:
        shown = repr(value) if isinstance(value, str) else _ADDRESS.sub("", repr(value))
        text = f"{type(value).__name__}:{shown}".encode("utf-8", "surrogatepass")
        digest.update(b"t%d" % len(text))
        digest.update(text)
