"""Finished predictions on disk, so that a killed run goes on where it stopped.

Each fold is one JSON file. Its name is a fingerprint of everything that the predictions depend on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lmms_patch import files
from lmms_patch.errors import OptionError
from lmms_patch.text import log
from lmms_patch.tst.items import Item, Prediction
from lmms_patch.tst.lora.settings import LoraSettings

FORMAT = 1
"""Raised whenever the same inputs would give other predictions."""

_ONLY_MACHINE = {"cache", "device", "dtype", "micro_batch", "predict_batch", "gradient_checkpointing"}
_MODEL_FILES = (".json", ".safetensors", ".bin", ".model", ".jinja", ".txt", ".gguf")


def fingerprint(
    settings: LoraSettings, dtype: str, train: Sequence[Item] | None, test: Sequence[Item], seed: int
) -> str:
    """Return 32 hex digits for everything behind the predictions.

    Two things are left out: settings that only fit the work to a machine, so that a run that ran out of memory goes on
    with smaller batches; and the golds of ``test``, which no prediction depends on. For a model on the hub the
    fingerprint holds its name and revision only: give a commit as ``revision`` if the branch may move.

    Args:
        settings: the model and how it is trained.
        dtype: the number format it runs in.
        train: items that it is trained on; None: it is not trained.
        test: items that are predicted.
        seed: fold seed.
    """
    folder = Path(settings.model).expanduser()
    local = sorted(path for path in folder.iterdir() if path.suffix in _MODEL_FILES) if folder.is_dir() else []
    parts = {
        "format": FORMAT,
        "settings": {key: value for key, value in settings.described().items() if key not in _ONLY_MACHINE},
        # size and time in place of the content: to read gigabytes of weights takes minutes
        "model": [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in local],
        "dtype": dtype,
        # of several golds the first alone is trained on
        "train": None if train is None else [[item.prompt, item.golds[:1], _asked(item)] for item in train],
        "test": [[item.prompt, _asked(item)] for item in test],
        "seed": seed,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def usable(folder: str) -> Path | None:
    """Return the cache folder, made if need be; None where no cache is wanted.

    Raises:
        OptionError: it cannot be made.
    """
    if not folder:
        return None
    path = Path(folder).expanduser()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(
            f"cache={folder}: the folder cannot be made ({error.strerror}); give another, or none"
        ) from error
    return path


def read(path: Path, count: int) -> list[Prediction] | None:
    """Return the ``count`` predictions of a file.

    None if there is no such file, or, with a warning, if it is damaged.
    """
    try:
        found = []
        for one in json.loads(path.read_text())["predictions"]:
            answers, probabilities = tuple(one["answers"]), np.array(one["probabilities"], np.float64)
            if not all(isinstance(text, str) for text in (one["answer"], *answers)) or probabilities.shape != (
                len(answers),
            ):
                raise ValueError("not a prediction")
            found.append(Prediction(one["answer"], answers, probabilities))
        if len(found) != count:
            raise ValueError(f"{len(found)} predictions instead of {count}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log().warning(f"{path}: damaged cache file, computed anew ({type(error).__name__}: {error})")
        return None
    return found


def write(path: Path, predictions: Sequence[Prediction]) -> None:
    """Write a file, whole or not at all."""
    found = [
        {"answer": one.answer, "answers": one.answers, "probabilities": one.probabilities.tolist()}
        for one in predictions
    ]
    files.write(path, json.dumps({"format": FORMAT, "predictions": found}))


def _asked(item: Item) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the answers behind an item's probabilities, and the texts said for them.

    None if the answer is generated.
    """
    return (item.answers, item.said) if item.is_choice else None
