"""Loading a causal language model and its tokenizer, from the hub or a folder. What can go wrong is said in one line."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lmms_patch.errors import OptionError
from lmms_patch.tst.lora.settings import LoraSettings
from lmms_patch.tst.lora.text import Encoder


@dataclass(frozen=True)
class Loaded:
    """A model, ready to run.

    Attributes:
        net: the base model; inside ``adapted`` it runs with the adapter.
        device: where it is.
        dtype: what it computes in; below float32 by autocast, the adapter's own weights stay float32.
        accepts: argument names of its forward pass.
        pad: id that fills up batches.
    """

    net: Any
    device: torch.device
    dtype: torch.dtype
    accepts: frozenset[str]
    pad: int


def device_of(settings: LoraSettings) -> torch.device:
    """Return the device that is asked for; ``auto``: accelerate's choice, which is this rank's own GPU where there is one."""
    if settings.device == "auto":
        from accelerate import PartialState

        return torch.device(PartialState().device)
    try:
        return torch.device(settings.device)
    except RuntimeError as error:
        raise OptionError(f"device={settings.device} is not known; give auto, cpu, cuda or cuda:1") from error


def dtype_of(settings: LoraSettings, device: torch.device) -> torch.dtype:
    """Return the number format that is asked for; ``auto``: bfloat16 where the GPU computes in it, else float32."""
    fast = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    name = settings.dtype if settings.dtype != "auto" else "bfloat16" if fast else "float32"
    return {"bfloat16": torch.bfloat16, "float32": torch.float32}[name]


def load_tokenizer(settings: LoraSettings) -> Encoder:
    """Return the model's tokenizer.

    Raises:
        OptionError: there is none, or it cannot be loaded.
    """
    from transformers import AutoTokenizer

    with _load_errors(settings):
        tokenizer = AutoTokenizer.from_pretrained(_source(settings), revision=settings.revision, trust_remote_code=False)
    return Encoder(tokenizer, max_length=settings.max_length, system=settings.system)


def load_model(settings: LoraSettings, device: torch.device, dtype: torch.dtype, pad: int) -> Loaded:
    """Return the model itself, frozen, in evaluation mode.

    Its own generation settings (a repetition penalty, say) are set aside: answers are plainly greedy.

    Raises:
        OptionError: there is none, it is no causal language model, it cannot be loaded, or memory does not suffice.
    """
    from transformers import AutoModelForCausalLM, GenerationConfig

    how = {"revision": settings.revision, "trust_remote_code": False, "dtype": dtype, "device_map": {"": device}}
    with memory_errors("loading the model", "take a smaller model, or give dtype=bfloat16"), _load_errors(settings):
        net: Any = AutoModelForCausalLM.from_pretrained(_source(settings), **how)
    net.generation_config = GenerationConfig()
    net.requires_grad_(False)
    net.eval()
    return Loaded(net, device, dtype, frozenset(inspect.signature(net.forward).parameters), pad)


@contextmanager
def memory_errors(doing: str, remedy: str) -> Iterator[None]:
    """Turn running out of memory into one line that says what to do."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not _is_memory(error):
            raise
        raise OptionError(f"out of memory while {doing}: {remedy}") from error


def _source(settings: LoraSettings) -> str:
    """Return the folder or hub id that transformers is asked for.

    Raises:
        OptionError: a name that can only be a folder, and the folder is missing.
    """
    path = Path(settings.model).expanduser()
    if path.is_dir():
        return str(path)
    if settings.model.startswith((".", "/", "~")) or settings.model.count("/") > 1 or "\\" in settings.model:
        raise OptionError(f"model={settings.model}: there is no such folder; give the folder of a causal language model, or a hub id")
    return settings.model


@contextmanager
def _load_errors(settings: LoraSettings) -> Iterator[None]:
    """Turn whatever transformers raises when it loads into one line; ``memory_errors`` handles a lack of memory."""
    try:
        yield
    except OptionError:
        raise
    except Exception as error:  # its loaders raise anything, and pass on what files and networks raise
        if _is_memory(error):
            raise
        name, why = f"model={settings.model}", f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0].rstrip('.')}"
        if isinstance(error, ValueError) and "Unrecognized configuration class" in str(error):
            said = f"not a causal language model; give one that AutoModelForCausalLM loads, such as {LoraSettings().model}"
        elif Path(settings.model).expanduser().is_dir():
            said = f"the folder holds no model that can be loaded ({why}); give one with config, weights and tokenizer"
        else:
            offline = os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE")
            remedy = "HF_HUB_OFFLINE is set: unset it, or " if offline else ""
            said = f"cannot be had from the hub ({why}); {remedy}give a local folder: model=/path/to/model"
        raise OptionError(f"{name}: {said}") from error


def _is_memory(error: Exception) -> bool:
    signs = ("out of memory", "not enough memory", "can't allocate memory")
    return isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in signs)
