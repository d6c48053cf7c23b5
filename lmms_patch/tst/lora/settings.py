"""Settings of the LLM-based diagnostic, and the two published sets of them. Needs neither torch nor transformers."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmms_patch.errors import OptionError, nearest


@dataclass(frozen=True)
class LoraSettings:
    """How a causal language model is tuned on the training folds, and asked about the held-out one.

    The defaults are the preset ``paper`` (``PRESETS``).

    Attributes:
        model: hub id, or local folder, of a causal language model.
        revision: branch, tag or commit on the hub; a local folder has none.
        r, alpha, dropout: rank, scale (the update is alpha / r times B A) and input dropout (fraction) of LoRA.
        target_modules: layers that get an adapter: ``("all-linear",)``: every linear layer but the output one, else names.
        modules_to_save: layers that are trained in full beside it (``embed_tokens``, ``lm_head``); for models that know little yet.
        lr: peak learning rate of AdamW.
        schedule: ``cosine``, ``linear`` or ``constant``, after a linear warm-up.
        warmup: share of the steps (fraction, rounded down) in which the learning rate rises from 0.
        weight_decay: of AdamW.
        epochs: passes over the training folds.
        batch: items per step.
        micro_batch: items per forward and backward pass; a step adds up the gradients of several. A matter of memory: it
            changes results only by rounding, and by what dropout draws.
        predict_batch: sequences per forward pass when predicting. A matter of memory: it changes results only by rounding.
        max_length: tokens of prompt and answer; longer prompts lose their beginning.
        max_new_tokens: tokens of a generated answer, at most.
        dtype: ``bfloat16``, ``float32`` or ``auto``: bfloat16 on a GPU that has it, else float32.
        gradient_checkpointing: True, False or ``auto``: on a GPU. Less memory, a quarter slower.
        device: ``cpu``, ``cuda``, ``cuda:1``, ... or ``auto``: the GPU of this rank, else the CPU.
        system: system prompt; empty: none is given, and the chat template does what it does then.
        seed: of everything drawn, together with the fold seed.
        cache: folder of finished predictions; empty: none is kept.
    """

    model: str = "Qwen/Qwen2.5-7B-Instruct"
    revision: str = "main"
    r: int = 8
    alpha: float = 16
    dropout: float = 0.1
    target_modules: tuple[str, ...] = ("all-linear",)
    modules_to_save: tuple[str, ...] = ()
    lr: float = 2e-4
    schedule: str = "cosine"
    warmup: float = 0.1
    weight_decay: float = 0.0
    epochs: int = 3
    batch: int = 32
    micro_batch: int = 8
    predict_batch: int = 16
    max_length: int = 2048
    max_new_tokens: int = 32
    dtype: str = "auto"
    gradient_checkpointing: bool | str = "auto"
    device: str = "auto"
    system: str = ""
    seed: int = 0
    cache: str = ""

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], where: str) -> LoraSettings:
        """Settings as a user writes them: any field by its name, and ``preset``, which the others override.

        Args:
            mapping: lists of layers may be written as one text, ``q_proj+v_proj``.
            where: what errors call the place that they were written in.

        Raises:
            OptionError: an unknown key, or a value that is not allowed.
        """
        given = dict(mapping)
        preset = given.pop("preset", "paper")
        if preset not in PRESETS:
            raise OptionError(f"{where}: preset {preset!r} is not known; allowed: {', '.join(PRESETS)}")
        unknown = next((key for key in given if key not in cls.names()), None)
        if unknown is not None:
            close = nearest(str(unknown), cls.names(), 1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise OptionError(f"{where}: unknown option {unknown!r}; {hint}allowed: preset, {', '.join(cls.names())}")
        return dataclasses.replace(PRESETS[preset], **{key: _checked(key, value, where) for key, value in given.items()})

    @classmethod
    def names(cls) -> list[str]:
        """The names of all settings."""
        return [f.name for f in dataclasses.fields(cls)]

    def described(self) -> dict[str, Any]:
        """All settings, in plain JSON types."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in dataclasses.asdict(self).items()}


PRESETS: Mapping[str, LoraSettings] = {
    "paper": LoraSettings(epochs=3, batch=32, schedule="cosine"),
    "released": LoraSettings(r=8, alpha=16, dropout=0.1, lr=2e-4, warmup=0.1, epochs=1, batch=4),
}
"""``paper``: TsT paper, Appendix B.1: model, 3 epochs, batch 32, cosine schedule. The numbers it gives for rank, alpha and
learning rate are lost in the text that we have, and it states no dropout and no warm-up: those are the ones the authors
released. ``released``: the authors' released settings; their schedule, layers, weight decay and lengths are not known to us,
and are as in ``paper``."""

_LEAST = {
    "r": 1,
    "epochs": 1,
    "batch": 1,
    "micro_batch": 1,
    "predict_batch": 1,
    "max_length": 8,
    "max_new_tokens": 1,
    "seed": 0,
}
_ABOVE_0 = ("alpha", "lr")
_FROM_0 = {"dropout": 1.0, "warmup": 1.0, "weight_decay": math.inf}
_ONE_OF: Mapping[str, tuple[Any, ...]] = {
    "schedule": ("cosine", "linear", "constant"),
    "dtype": ("auto", "bfloat16", "float32"),
    "gradient_checkpointing": ("auto", True, False),
}
_LAYERS = ("target_modules", "modules_to_save")
_MAY_BE_EMPTY = ("system", "cache", "modules_to_save")


def _checked(key: str, value: Any, where: str) -> Any:
    """The value in the field's own type.

    Raises:
        OptionError: it is not allowed.
    """
    if key in _LEAST:
        if not _is_number(value) or value != int(value) or value < _LEAST[key]:
            raise OptionError(f"{where}: {key} must be a whole number of at least {_LEAST[key]}, not {value!r}")
        return int(value)
    if key in _ABOVE_0 or key in _FROM_0:
        return _checked_number(key, value, where)
    if key in _ONE_OF:
        if not any(value == allowed and type(value) is type(allowed) for allowed in _ONE_OF[key]):
            allowed = " or ".join(str(one).lower() for one in _ONE_OF[key])
            raise OptionError(f"{where}: {key} must be {allowed}, not {value!r}")
        return value
    return _checked_layers(key, value, where) if key in _LAYERS else _checked_text(key, value, where)


def _checked_number(key: str, value: Any, where: str) -> float:
    if key in _ABOVE_0:
        if not (_is_number(value) and value > 0):
            raise OptionError(f"{where}: {key} must be a number above 0, not {value!r}")
    elif not (_is_number(value) and 0 <= value < _FROM_0[key]):
        below = "" if math.isinf(_FROM_0[key]) else f" and below {_FROM_0[key]:g}"
        raise OptionError(f"{where}: {key} must be a number of at least 0{below}, not {value!r}")
    return float(value)


def _checked_layers(key: str, value: Any, where: str) -> tuple[str, ...]:
    names = re.split(r"[+\s]+", value.strip()) if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise OptionError(f"{where}: {key} must be a list of layer names, or one text such as q_proj+v_proj, not {value!r}")
    layers = tuple(name for name in names if name)
    if not layers and key not in _MAY_BE_EMPTY:
        raise OptionError(f"{where}: {key} must name at least one layer, or be all-linear")
    if "all-linear" in layers and (len(layers) > 1 or key == "modules_to_save"):
        raise OptionError(f"{where}: {key}: all-linear stands alone, and only in target_modules")
    return layers


def _checked_text(key: str, value: Any, where: str) -> str:
    if not isinstance(value, str) or (not value and key not in _MAY_BE_EMPTY):
        raise OptionError(f"{where}: {key} must be a text, not {value!r}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
