"""The language model that a user names, a folder or a hub id, and what can go wrong with it, said in one line.

Without torch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lmms_patch.errors import OptionError


@dataclass(frozen=True)
class Pretrained:
    """A causal language model for transformers to load.

    Attributes:
        name: what the user gave.
        example: a model of this kind.
    """

    name: str
    example: str

    @property
    def is_folder(self) -> bool:
        """Whether the name is an existing folder."""
        return Path(self.name).expanduser().is_dir()

    @property
    def source(self) -> str:
        """The folder or hub id for transformers to load.

        Raises:
            OptionError: a name that can only be a folder, and the folder is missing.
        """
        if self.is_folder:
            return str(Path(self.name).expanduser())
        # a hub id has at most one slash
        if self.name.startswith((".", "/", "~")) or self.name.count("/") > 1 or "\\" in self.name:
            raise OptionError(
                f"model={self.name}: there is no such folder; give the folder of a causal language model, or a hub id"
            )
        return self.name

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise OptionError, in one line, for an error of transformers while a model loads; leave a lack of memory to ``memory_errors``."""
        try:
            yield
        except OptionError:
            raise
        except Exception as error:
            # The loaders raise anything, and pass on errors of files and networks.
            if _is_memory(error):
                raise
            raise OptionError(f"model={self.name}: {self._said(error)}") from error

    def _said(self, error: Exception) -> str:
        """Return what a failed loading means, and what to do."""
        why = f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0].rstrip('.')}"
        if isinstance(error, ValueError) and "Unrecognized configuration class" in str(error):
            return f"not a causal language model; give another, such as {self.example}"
        if self.is_folder:
            return f"the folder holds no model that can be loaded ({why}); give one with config, weights and tokenizer"
        # read as huggingface_hub reads it
        offline = os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE")
        remedy = "HF_HUB_OFFLINE is set: unset it, or " if offline else ""
        return f"cannot be had from the hub ({why}); {remedy}give a local folder: model=/path/to/model"


@contextmanager
def memory_errors(doing: str, remedy: str) -> Iterator[None]:
    """Raise OptionError where the memory runs out, in one line that says what to change."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not _is_memory(error):
            raise
        raise OptionError(f"out of memory while {doing}: {remedy}") from error


def _is_memory(error: Exception) -> bool:
    # without a GPU torch has no class of its own for this: it raises RuntimeError with such a text
    signs = ("out of memory", "not enough memory", "can't allocate memory")
    return isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in signs)
