"""Settings of the LLM-based diagnostic, and the two published sets of them. Needs neither torch nor transformers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictStr, field_validator

from lmms_patch.errors import OptionError, must, read_as


def _only_number(value: Any) -> Any:
    # Pydantic also reads True as 1 and "8" as 8.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("not a number")
    return value


_Number = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(_only_number)]
_Count = Annotated[int, Field(ge=1), BeforeValidator(_only_number), must("a whole number of at least 1")]
_Positive = Annotated[_Number, Field(gt=0), must("a number above 0")]
_Share = Annotated[_Number, Field(ge=0, lt=1), must("a number of at least 0 and below 1")]
_Text = Annotated[StrictStr, must("a text")]
_Name = Annotated[StrictStr, Field(min_length=1), must("a text")]
_Layers = Annotated[tuple[StrictStr, ...], must("a list of layer names, or one text such as q_proj+v_proj")]


class LoraSettings(BaseModel):
    """How a causal language model is tuned on the training folds, and asked about the held-out fold.

    The defaults are the preset ``paper`` (``PRESETS``).

    Attributes:
        model: hub id, or local folder, of a causal language model.
        revision: branch, tag or commit on the hub; ignored for a local folder.
        r, alpha, dropout: rank, scale (the update is alpha / r times B A) and input dropout (fraction) of LoRA.
        target_modules: layers that get an adapter: ``("all-linear",)``: every linear layer but the output layer, else
        names.
        modules_to_save: layers that are trained in full as well (``embed_tokens``, ``lm_head``); for models that know
        little yet.
        lr: peak learning rate of AdamW.
        schedule: ``cosine``, ``linear`` or ``constant``, after a linear warm-up.
        warmup: share of the steps (fraction, rounded down) in which the learning rate rises from 0.
        weight_decay: of AdamW.
        epochs: passes over the training folds.
        batch: items per step.
        micro_batch: items per forward and backward pass; the gradients of a step are summed over several. Limits
            memory; results change only by rounding and by the random numbers of dropout.
        predict_batch: sequences per forward pass when predicting. Limits memory; results change only by rounding.
        max_length: tokens of prompt and answer; longer prompts lose their beginning.
        max_new_tokens: tokens of a generated answer, at most.
        dtype: ``bfloat16``, ``float32`` or ``auto``: bfloat16 on a GPU that has it, else float32.
        gradient_checkpointing: True, False or ``auto``: on a GPU. Less memory, a quarter slower.
        device: ``cpu``, ``cuda``, ``cuda:1``, ... or ``auto``: the GPU of this rank, else the CPU.
        system: system prompt; empty: none is given, and the chat template decides.
        seed: of everything drawn, together with the fold seed.
        cache: folder of finished predictions; empty: none is kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: _Name = "Qwen/Qwen2.5-7B-Instruct"
    revision: _Name = "main"
    r: _Count = 8
    alpha: _Positive = 16
    dropout: _Share = 0.1
    target_modules: _Layers = ("all-linear",)
    modules_to_save: _Layers = ()
    lr: _Positive = 2e-4
    schedule: Annotated[Literal["cosine", "linear", "constant"], must("cosine or linear or constant")] = "cosine"
    warmup: _Share = 0.1
    weight_decay: Annotated[_Number, Field(ge=0), must("a number of at least 0")] = 0.0
    epochs: _Count = 3
    batch: _Count = 32
    micro_batch: _Count = 8
    predict_batch: _Count = 16
    max_length: Annotated[_Count, Field(ge=8), must("a whole number of at least 8")] = 2048
    max_new_tokens: _Count = 32
    dtype: Annotated[Literal["auto", "bfloat16", "float32"], must("auto or bfloat16 or float32")] = "auto"
    gradient_checkpointing: Annotated[Literal["auto"] | StrictBool, must("auto or true or false")] = "auto"
    device: _Name = "auto"
    system: _Text = ""
    seed: Annotated[int, Field(ge=0), BeforeValidator(_only_number), must("a whole number of at least 0")] = 0
    cache: _Text = ""

    @field_validator("target_modules", "modules_to_save", mode="before")
    @classmethod
    def _split(cls, layers: Any) -> Any:
        names = re.split(r"[+\s]+", layers) if isinstance(layers, str) else layers
        return [name for name in names if name != ""] if isinstance(names, (list, tuple)) else names

    @field_validator("target_modules", "modules_to_save")
    @classmethod
    def _check_layers(cls, layers: tuple[str, ...], info: Any) -> tuple[str, ...]:
        if not layers and info.field_name == "target_modules":
            raise ValueError("must name at least one layer, or be all-linear")
        if "all-linear" in layers and (len(layers) > 1 or info.field_name == "modules_to_save"):
            raise ValueError("all-linear stands alone, and only in target_modules")
        return layers

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], where: str) -> LoraSettings:
        """Return settings in a user's form: any field by name, and ``preset``, overridden by further keys.

        Args:
            mapping: lists of layers may be written as one text, ``q_proj+v_proj``.
            where: what errors call the place that they were written in.

        Raises:
            OptionError: an unknown key, or a value that is not allowed.
        """
        given = dict(mapping)
        preset = given.pop("preset", "paper")
        if preset not in list(PRESETS):
            raise OptionError(f"{where}: preset {preset!r} is not known; allowed: {', '.join(PRESETS)}")
        return read_as(cls, {**PRESETS[preset], **given}, where)

    def described(self) -> dict[str, Any]:
        """Return all settings in plain JSON types."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in self}


PRESETS: Mapping[str, Mapping[str, Any]] = {"paper": {}, "released": {"epochs": 1, "batch": 4}}
"""``paper``: TsT paper, Appendix B.1: model, 3 epochs, batch 32, cosine schedule. The numbers it gives for rank, alpha and
learning rate are lost in the text that we have, and it states no dropout and no warm-up: those are the ones the authors
released. ``released``: the authors' released settings; their schedule, layers, weight decay and lengths are not known to us,
and are as in ``paper``."""
