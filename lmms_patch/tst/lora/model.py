"""A causal language model under a LoRA adapter: training, probabilities of answers, greedy answers.

Source: TsT paper, 3.2 and Appendix B.1; LoRA: Hu et al., ICLR 2022. Sequences are padded on the left everywhere:
answers then end in the same column, and logits are needed for the last few columns only.

Why no ``transformers.Trainer``: each rank tunes folds of its own, and a Trainer shares every fold among all ranks.
Measured on a tiny Qwen2 (four folds of 240 items, two CPU ranks, preset ``paper``): 24 s with this loop, 50 s with a
Trainer; one fold on one core: 1.0 s against 1.3 s. Accuracies are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from lmms_patch.errors import OptionError, PatchError
from lmms_patch.tst.lora.load import Loaded
from lmms_patch.tst.lora.settings import LoraSettings
from lmms_patch.tst.lora.text import Encoder, Row
from lmms_patch.tst.pretrained import memory_errors

MASKED = -100
"""Label of tokens that are not trained on."""

# largest norm of the gradient
_CLIP = 1.0


class TrainingError(PatchError):
    """Training went wrong: the loss is not finite, or another rank failed."""


@contextmanager
def adapted(model: Loaded, settings: LoraSettings, seed: int) -> Iterator[None]:
    """Put a fresh adapter on the model, in evaluation mode; afterwards restore the model.

    All that torch draws inside depends on ``seed`` alone; the process's own generators are put back.

    Raises:
        OptionError: a layer that is named does not exist.
    """
    from peft import LoraConfig, get_peft_model

    layers = settings.target_modules
    config = LoraConfig(
        task_type="CAUSAL_LM",
        r=settings.r,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules="all-linear" if layers == ("all-linear",) else list(layers),
        modules_to_save=list(settings.modules_to_save) or None,
    )
    before = dict(model.net.named_modules())
    _check_layers(settings, before)
    # The process's own random state is put back, so that a run with or without LoRA draws the same elsewhere.
    with torch.random.fork_rng([model.device] if model.device.type == "cuda" else []):
        torch.manual_seed(seed)
        wrapped = get_peft_model(model.net, config)
        for weight in filter(lambda weight: weight.requires_grad, wrapped.parameters()):
            # peft converts the adapter alone; layers trained in full need float32 too.
            weight.data = weight.data.float()
        wrapped.eval()
        try:
            yield
        finally:
            wrapped.unload()
            # ``unload`` leaves layers that were trained in full as trained.
            for name, module in model.net.named_modules():
                if before.get(name, module) is not module:
                    model.net.set_submodule(name, before[name])
            model.net.requires_grad_(False)
            model.net.eval()


def collate(rows: Sequence[Row], pad: int) -> dict[str, Tensor]:
    """Return rows as a batch, padded on the left: tensors of shape (rows, length).

    ``input_ids``; ``attention_mask``: 1 where a token is, 0 where padding is; ``labels``: the id where the token
    belongs to the answer, else ``MASKED``.
    """
    width = max(map(len, rows))
    return {
        "input_ids": torch.tensor([[pad] * (width - len(row)) + [*row.prompt, *row.answer] for row in rows]),
        "attention_mask": torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows]),
        "labels": torch.tensor([[MASKED] * (width - len(row.answer)) + [*row.answer] for row in rows]),
    }


def answer_logprobs(model: Loaded, rows: Sequence[Row]) -> Tensor:
    """Return the log-probability (nats) of each row's answer after its prompt, summed over its tokens.

    Float32, shape (rows,).
    """
    batch = {key: tensor.to(model.device) for key, tensor in collate(rows, model.pad).items()}
    # A token is predicted by the column before it.
    keep = max(len(row.answer) for row in rows) + 1
    labels = batch.pop("labels")[:, 1 - keep :]
    # Padding is on the left, so positions count from the first real token.
    positions = (batch["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    given = {"position_ids": positions, "logits_to_keep": keep, "use_cache": False}
    with _autocast(model):
        # some architectures do not take all of these
        out = model.net(**batch, **{key: value for key, value in given.items() if key in model.accepts})
    said = labels != MASKED
    logprobs: Tensor = (
        # as float32, since bfloat16 has hardly three digits; and ``gather`` takes no MASKED for a place
        out.logits[:, -keep:-1].float().log_softmax(-1).gather(-1, labels.where(said, 0)[..., None])[..., 0]
    )
    return logprobs.where(said, 0).sum(-1)


def train(model: Loaded, rows: Sequence[Row], settings: LoraSettings, *, seed: int, label: str) -> list[float]:
    """Train the adapter (inside ``adapted``) with AdamW, and return the loss of each step.

    The loss of a step is the mean of -log p (nats) over all answer tokens of its items, whatever the micro-batches.

    Args:
        model: the model, with an adapter.
        rows: what is trained on.
        settings: how.
        seed: of the order of the items.
        label: what the progress bar is called.

    Raises:
        TrainingError: a loss or gradient is not finite.
        OptionError: memory does not suffice.
    """
    from transformers import get_scheduler

    weights = [weight for weight in model.net.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=settings.lr, weight_decay=settings.weight_decay)
    steps = settings.epochs * math.ceil(len(rows) / settings.batch)
    name = "constant_with_warmup" if settings.schedule == "constant" else settings.schedule
    scheduler: Any = get_scheduler(
        name, optimizer, num_warmup_steps=int(settings.warmup * steps), num_training_steps=steps
    )
    losses: list[float] = []
    lower = f"lower micro_batch (it is {settings.micro_batch}) or max_length ({settings.max_length}), or give gradient_checkpointing=true"
    with _training_mode(model, settings), memory_errors("training", lower), tqdm(total=steps, desc=label) as bar:
        for batch in _batches(rows, settings, seed):
            tokens, loss = sum(len(row.answer) for row in batch), 0.0
            for start in range(0, len(batch), settings.micro_batch):
                part = -answer_logprobs(model, batch[start : start + settings.micro_batch]).sum() / tokens
                torch.autograd.backward(part)
                loss += float(part.detach())
            losses.append(loss)
            norm = float(torch.nn.utils.clip_grad_norm_(weights, _CLIP))
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise TrainingError(
                    f"{label}: the loss is {loss:g} and its gradient {norm:g} at step {len(losses)} of {steps}; "
                    f"lower lr (it is {settings.lr:g}), or give dtype=float32"
                )
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            bar.update()
    return losses


def logprobs_of(model: Loaded, rows: Sequence[Row], settings: LoraSettings, label: str) -> list[float]:
    """Return ``answer_logprobs`` of many rows, in their order.

    Raises:
        OptionError: memory does not suffice.
    """
    return _in_batches(rows, lambda part: answer_logprobs(model, part).tolist(), settings, label)


def generate(
    model: Loaded, prompts: Sequence[tuple[int, ...]], encoder: Encoder, settings: LoraSettings, label: str
) -> list[str]:
    """Return the greedy answer to each prompt, in their order.

    Raises:
        OptionError: memory does not suffice.
    """
    how = {
        "do_sample": False,
        "max_new_tokens": settings.max_new_tokens,
        "eos_token_id": encoder.stops,
        "pad_token_id": model.pad,
    }

    def answers(part: Sequence[Row]) -> list[str]:
        batch = {key: tensor.to(model.device) for key, tensor in collate(part, model.pad).items() if key != "labels"}
        with _autocast(model):
            ids = model.net.generate(**batch, **how)
        return [encoder.decode(new) for new in ids[:, batch["input_ids"].shape[1] :].tolist()]

    return _in_batches([Row(prompt, ()) for prompt in prompts], answers, settings, label)


def _autocast(model: Loaded) -> torch.autocast:
    return torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=model.dtype != torch.float32)


def _check_layers(settings: LoraSettings, modules: dict[str, Any]) -> None:
    """Check whether every named layer exists, as peft silently ignores unknown layers beside a known layer.

    Raises:
        OptionError: a layer does not exist.
    """
    for layer in (*settings.target_modules, *settings.modules_to_save):
        if layer != "all-linear" and not any(f".{name}".endswith(f".{layer}") for name in modules):
            kinds = sorted(
                {
                    name.rpartition(".")[2]
                    for name, module in modules.items()
                    if isinstance(module, (torch.nn.Linear, torch.nn.Embedding))
                }
            )
            raise OptionError(f"model={settings.model} has no layer {layer!r}; it has {', '.join(kinds)}")


@contextmanager
def _training_mode(model: Loaded, settings: LoraSettings) -> Iterator[None]:
    """Switch dropout on, and gradient checkpointing where wanted; afterwards both off."""
    wanted = settings.gradient_checkpointing
    checkpointing = model.device.type == "cuda" if wanted == "auto" else wanted
    if checkpointing:
        # the reentrant form passes no gradient on where its inputs are frozen, as they are under an adapter
        model.net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.net.train()
    try:
        yield
    finally:
        model.net.eval()
        if checkpointing:
            model.net.gradient_checkpointing_disable()


def _batches(rows: Sequence[Row], settings: LoraSettings, seed: int) -> Iterator[list[Row]]:
    """Yield the rows of each step, in a new random order each epoch; within a step by length, which saves padding."""
    stream = np.random.default_rng(seed)
    for _ in range(settings.epochs):
        order = stream.permutation(len(rows))
        for start in range(0, len(rows), settings.batch):
            yield sorted((rows[at] for at in order[start : start + settings.batch]), key=len, reverse=True)


def _in_batches(
    rows: Sequence[Row], work: Callable[[Sequence[Row]], list[Any]], settings: LoraSettings, label: str
) -> list[Any]:
    """Return ``work`` of the rows, done in batches of similar length, longest first.

    Results in the order of the rows.
    """
    results: list[Any] = [None] * len(rows)
    # longest first: where memory is too small, that shows at once
    order = sorted(range(len(rows)), key=lambda at: -len(rows[at]))
    lower = f"lower predict_batch (it is {settings.predict_batch}) or max_length ({settings.max_length})"
    with (
        memory_errors("predicting", lower),
        torch.inference_mode(),
        tqdm(total=len(rows), desc=label, disable=not rows) as bar,
    ):
        for start in range(0, len(rows), settings.predict_batch):
            places = order[start : start + settings.predict_batch]
            for at, result in zip(places, work([rows[at] for at in places]), strict=True):
                results[at] = result
            bar.update(len(places))
    return results
