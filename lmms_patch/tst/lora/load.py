"""Loading a causal language model and its tokenizer, from the hub or a folder.

What can go wrong is said in one line.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch

from lmms_patch.errors import OptionError
from lmms_patch.tst.lora.settings import LoraSettings
from lmms_patch.tst.lora.text import Encoder
from lmms_patch.tst.pretrained import Pretrained, memory_errors


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
    """Return the chosen device.

    ``auto``: accelerate's choice, which is this rank's own GPU where there is one.
    """
    if settings.device == "auto":
        from accelerate import PartialState

        return torch.device(PartialState().device)
    try:
        return torch.device(settings.device)
    except RuntimeError as error:
        raise OptionError(f"device={settings.device} is not known; give auto, cpu, cuda or cuda:1") from error


def dtype_of(settings: LoraSettings, device: torch.device) -> torch.dtype:
    """Return the chosen number format; ``auto`` means bfloat16 on GPUs with bfloat16 arithmetic, else float32."""
    # older GPUs emulate bfloat16, which is slower than float32
    fast = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    name = settings.dtype if settings.dtype != "auto" else "bfloat16" if fast else "float32"
    return {"bfloat16": torch.bfloat16, "float32": torch.float32}[name]


def load_tokenizer(settings: LoraSettings) -> Encoder:
    """Return the model's tokenizer.

    Raises:
        OptionError: there is none, or it cannot be loaded.
    """
    from transformers import AutoTokenizer

    with _named(settings).errors():
        tokenizer = AutoTokenizer.from_pretrained(
            _named(settings).source, revision=settings.revision, trust_remote_code=False
        )
    return Encoder(tokenizer, max_length=settings.max_length, system=settings.system)


def load_model(settings: LoraSettings, device: torch.device, dtype: torch.dtype, pad: int) -> Loaded:
    """Return the model itself, frozen, in evaluation mode.

    Its own generation settings (a repetition penalty, say) are set aside: answers are plainly greedy.

    Raises:
        OptionError: there is none, it is no causal language model, it cannot be loaded, or memory does not suffice.
    """
    from transformers import AutoModelForCausalLM, GenerationConfig

    # no code from a model's repository is run
    how = {"revision": settings.revision, "trust_remote_code": False, "dtype": dtype, "device_map": {"": device}}
    with memory_errors("loading the model", "take a smaller model, or give dtype=bfloat16"), _named(settings).errors():
        net: Any = AutoModelForCausalLM.from_pretrained(_named(settings).source, **how)
    net.generation_config = GenerationConfig()
    net.requires_grad_(False)
    net.eval()
    return Loaded(net, device, dtype, frozenset(inspect.signature(net.forward).parameters), pad)


def _named(settings: LoraSettings) -> Pretrained:
    return Pretrained(settings.model, LoraSettings().model)
