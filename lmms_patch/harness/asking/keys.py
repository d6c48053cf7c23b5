"""The keys of saved answers.

A key is a digest of everything that an answer depends on: the model, the request, the doc and its images.

A saved answer is used only where its key equals that of a request. A doc's row and its images count as the dataset
stores them: nothing is decoded. Of a doc with a clip, the decoded frames count.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_patch.ask.views import PIXELS
from lmms_patch.harness import compat
from lmms_patch.harness.names import effects
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.text import log

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

    from lmms_patch.harness.wrap.docs import VariantDocs
    from lmms_patch.harness.wrap.task import WrappedTask

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
