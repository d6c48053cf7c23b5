"""A text-embedding model as a function from texts to vectors, for ``tst_rf``. PyTorch and transformers."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from numpy.typing import NDArray

from lmms_patch.errors import OptionError
from lmms_patch.tst.pretrained import Pretrained, memory_errors

BATCH = 64
"""Texts in one pass of the model."""
_POOLING_FILE = "1_Pooling/config.json"
POOLINGS = {
    "mean": "mean",
    "mean_tokens": "mean",
    "mean_sqrt_len_tokens": "mean",
    "cls": "cls",
    "cls_token": "cls",
    "max": "max",
    "max_tokens": "max",
}
"""The names of poolings in that file. The two means differ in length alone, and vectors get length 1."""
_MOST_TOKENS = 100_000
"""Tokenizers without a limit name a greater number than this."""


class Embedder:
    """A text-embedding model; called with texts, returns their vectors. Each distinct text is computed once.

    Args:
        name: a folder with a transformers model and its tokenizer, or a hub id. The pooling is that of
            ``1_Pooling/config.json`` where there is such a file, else the mean over the tokens. Layers after the
            pooling are left out.

    Attributes:
        described: the last part of its name, its pooling, and the first 16 hexadecimal digits of a digest of its
            weights.

    Raises:
        OptionError: there is no such folder, it cannot be loaded, or it pools in another way.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise OptionError(f"embeddings must be the folder of a text-embedding model, or a hub id, not {name!r}")
        self._asked = Pretrained(name, "embeddings", "a text-embedding model", "sentence-transformers/all-MiniLM-L6-v2")
        with memory_errors("loading the text-embedding model", "give a smaller one"), self._asked.errors():
            self._tokenizer, self._net = _load(self._asked)
            self._pooling = _pooling_of(self._asked)
            self._most = _most_tokens(self._tokenizer, self._net.config)
            # a model of another kind fails here
            self._dimensions = self._pass([self._tokenizer("a")["input_ids"]]).shape[1]
        self.described = {
            "name": Path(self._asked.source).absolute().name,
            "pooling": self._pooling,
            "sha256": _digest(self._net),
        }
        self._known: dict[str, NDArray[np.float32]] = {}
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, shape (texts, dimensions), each of length 1.

        Of length 0 for a text without tokens.

        Raises:
            OptionError: a vector that is not finite, or too little memory.
        """
        # folds run in threads
        with self._lock:
            new = [text for text in dict.fromkeys(texts) if text not in self._known]
            if new:
                self._known |= dict(zip(new, self._computed(new), strict=True))
            return np.array([self._known[text] for text in texts], np.float32).reshape(len(texts), self._dimensions)

    def _computed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of distinct texts.

        Texts of about the same length share a batch, so that little is padded.
        """
        tokens = self._tokenizer(list(texts), truncation=True, max_length=self._most, padding=False)["input_ids"]
        # a text without tokens keeps its vector of zeros
        order = sorted((i for i in range(len(texts)) if tokens[i]), key=lambda i: len(tokens[i]))
        out = np.zeros((len(texts), self._dimensions), np.float32)
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            with memory_errors("embedding texts", "give a smaller text-embedding model"):
                out[places] = self._pass([tokens[i] for i in places])
        if not np.isfinite(out).all():
            where = texts[int(np.argmin(np.isfinite(out).all(axis=1)))]
            raise OptionError(
                f"embeddings={self._asked.name}: the model gives numbers that are not finite, for {where[:60]!r}; give another model"
            )
        return out

    def _pass(self, tokens: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Embed a batch of texts, given as token ids: return a vector of length 1 for each text, shape (texts, dimensions)."""
        batch = self._tokenizer.pad({"input_ids": list(tokens)}, return_tensors="pt").to(self._net.device)
        with torch.inference_mode():
            pooled = pool(self._net(**batch).last_hidden_state, batch["attention_mask"], self._pooling)
        return np.asarray(torch.nn.functional.normalize(pooled, dim=1).cpu().numpy())


def pool(hidden: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Return a vector for each text.

    Args:
        hidden: shape (texts, tokens, dimensions).
        mask: shape (texts, tokens), 0 where a text is filled up; texts are filled up on the right.
        pooling: one of ``POOLINGS``.

    Returns:
        Shape (texts, dimensions).
    """
    if pooling == "cls":
        return hidden[:, 0]
    kept = mask[:, :, None].bool()
    if pooling == "max":
        return hidden.masked_fill(~kept, -torch.inf).amax(dim=1)
    return hidden.masked_fill(~kept, 0).sum(dim=1) / kept.sum(dim=1)


def _load(asked: Pretrained) -> tuple[Any, Any]:
    """Return the tokenizer, and the model in evaluation mode on this process's device.

    Raises:
        OptionError: what transformers lets pass: no vocabulary, nothing to fill up a batch with, or missing weights,
            which it draws at random.
    """
    from transformers import AutoModel, AutoTokenizer

    # Padded on the right, since the pooling ``cls`` takes the first
    # place of a text. Code of a model's own repository is not run.
    tokenizer: Any = AutoTokenizer.from_pretrained(asked.source, trust_remote_code=False, padding_side="right")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    # without a vocabulary, transformers makes a tokenizer of special tokens alone
    if len(tokenizer) <= len(tokenizer.all_special_ids) or tokenizer.pad_token is None:
        raise OptionError(
            f"embeddings={asked.name}: there is no tokenizer, or it has no padding token and no end token; "
            "give a folder with config, weights and tokenizer"
        )
    net, report = AutoModel.from_pretrained(
        asked.source, trust_remote_code=False, dtype=torch.float32, output_loading_info=True
    )
    # missing weights of a pooler do no harm: it is not used
    if lacking := sorted(key for key in report["missing_keys"] if "pooler" not in key):
        raise OptionError(
            f"embeddings={asked.name}: {len(lacking)} weights are missing, such as {lacking[0]}; give a folder with all weights"
        )
    return tokenizer, net.requires_grad_(False).eval().to(PartialState().device)


def _pooling_of(asked: Pretrained) -> str:
    """Return the pooling named by the model, in the form of sentence-transformers before or since version 5; else the mean.

    Raises:
        OptionError: it is none of ``POOLINGS``.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    try:
        file = asked.source if asked.is_folder else hf_hub_download(asked.source, _POOLING_FILE)
        told = json.loads((Path(file, _POOLING_FILE) if asked.is_folder else Path(file)).read_text(encoding="utf-8"))
    except (FileNotFoundError, EntryNotFoundError):
        return "mean"
    older = [mode.removeprefix("pooling_mode_") for mode in told if "pooling_mode_" in mode and told[mode] is True]
    named = told.get("pooling_mode", older)
    modes = [named] if isinstance(named, str) else named
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise OptionError(
            f"embeddings={asked.name}: the pooling of {_POOLING_FILE} is {' and '.join(modes) or 'none'}; "
            "allowed: mean, cls, max"
        )
    return POOLINGS[modes[0]]


def _most_tokens(tokenizer: Any, config: Any) -> int:
    """Return how many tokens a text may have: the tokenizer's limit, else the number of the model's positions."""
    if tokenizer.model_max_length < _MOST_TOKENS:
        return int(tokenizer.model_max_length)
    # some models count positions from 2
    return int(getattr(config, "max_position_embeddings", 514)) - 2


def _digest(net: Any) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of all weights, by name."""
    digest = hashlib.sha256()
    for name, weights in sorted(net.state_dict().items()):
        # name and shape too: the same bytes may be other weights
        digest.update(f"{name} {tuple(weights.shape)} ".encode())
        digest.update(np.ascontiguousarray(weights.cpu().numpy()).tobytes())
    return digest.hexdigest()[:16]
