"""A causal language model under a LoRA adapter: training, probabilities of answers, greedy answers.

Source: TsT paper, 3.2 and Appendix B.1; LoRA: Hu et al., ICLR 2022. Sequences are padded on the left
everywhere: answers then end in the same column, and logits are needed for the last few columns only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from lmms_patch.errors import OptionError, PatchError
from lmms_patch.tst.lora.load import Loaded, memory_errors
from lmms_patch.tst.lora.settings import LoraSettings
from lmms_patch.tst.lora.text import Encoder, Row

MASKED = -100
"""Label of tokens that are not trained on."""

_CLIP = 1.0  # largest norm of the gradient


class TrainingError(PatchError):
    """Training went wrong: the loss is not finite, or another rank failed."""


@dataclass(frozen=True)
class Batch:
    """Sequences padded on the left to one length; each tensor has the shape (rows, length).

    Attributes:
        ids: token ids.
        mask: 1 where a token is, 0 where padding is.
        labels: the id where the token belongs to the answer, else ``MASKED``.
    """

    ids: Tensor
    mask: Tensor
    labels: Tensor


@contextmanager
def adapted(model: Loaded, settings: LoraSettings, seed: int) -> Iterator[None]:
    """The model with a fresh adapter, in evaluation mode; afterwards without, and as it was.

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
    with torch.random.fork_rng([model.device] if model.device.type == "cuda" else []):
        torch.manual_seed(seed)
        wrapped = get_peft_model(model.net, config)
        for weight in filter(lambda weight: weight.requires_grad, wrapped.parameters()):
            weight.data = weight.data.float()  # layers that are trained in full; peft itself only sees to the adapter
        wrapped.eval()
        try:
            yield
        finally:
            wrapped.unload()
            _put_back(model.net, before)
            model.net.requires_grad_(False)
            model.net.eval()


def collate(rows: Sequence[Row], pad: int) -> Batch:
    """A batch of the rows, padded on the left."""
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), pad)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    labels = torch.full((len(rows), width), MASKED)
    for at, row in enumerate(rows):
        ids[at, width - len(row) :] = torch.tensor(row.prompt + row.answer)
        mask[at, width - len(row) :] = 1
        labels[at, width - len(row.answer) :] = torch.tensor(row.answer)
    return Batch(ids, mask, labels)


def answer_logprobs(model: Loaded, rows: Sequence[Row]) -> Tensor:
    """Log-probability (nats) of each row's answer after its prompt, summed over the answer's tokens; float32, shape (rows,)."""
    batch = collate(rows, model.pad)
    mask = batch.mask.to(model.device)
    keep = max(len(row.answer) for row in rows) + 1  # a token is predicted by the column before it
    given = {"position_ids": (mask.cumsum(-1) - 1).clamp(min=0), "logits_to_keep": keep, "use_cache": False}
    with torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=model.dtype != torch.float32):
        out = model.net(
            input_ids=batch.ids.to(model.device),
            attention_mask=mask,
            **{key: value for key, value in given.items() if key in model.accepts},
        )
    logprobs = out.logits[:, -keep:-1].float().log_softmax(-1)
    labels = batch.labels.to(model.device)[:, 1 - keep :]
    said = labels != MASKED
    of_labels: Tensor = logprobs.gather(-1, labels.where(said, 0)[..., None])[..., 0]
    return of_labels.where(said, 0).sum(-1)


def train(model: Loaded, rows: Sequence[Row], settings: LoraSettings, *, seed: int, label: str) -> list[float]:
    """Trains the adapter (inside ``adapted``) with AdamW.

    The loss of a step is the mean of -log p (nats) over all answer tokens of its items, whatever the micro-batches.

    Args:
        model: the model, with an adapter.
        rows: what is trained on.
        settings: see there.
        seed: of the order of the items.
        label: what the progress bar is called.

    Returns:
        The loss of each step.

    Raises:
        TrainingError: a loss or gradient is not finite.
        OptionError: memory does not suffice.
    """
    from transformers import get_scheduler

    weights = [weight for weight in model.net.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=settings.lr, weight_decay=settings.weight_decay)
    steps = settings.epochs * math.ceil(len(rows) / settings.batch)
    name = "constant_with_warmup" if settings.schedule == "constant" else settings.schedule
    scheduler: Any = get_scheduler(name, optimizer, num_warmup_steps=int(settings.warmup * steps), num_training_steps=steps)
    losses: list[float] = []
    lower = f"lower micro_batch (it is {settings.micro_batch}) or max_length ({settings.max_length}), or give gradient_checkpointing=true"
    with _training_mode(model, settings), memory_errors("training", lower), tqdm(total=steps, desc=label) as bar:
        for batch in _batches(rows, settings, seed):
            losses.append(_gradient(model, batch, settings.micro_batch))
            norm = torch.nn.utils.clip_grad_norm_(weights, _CLIP)
            if not (math.isfinite(losses[-1]) and bool(norm.isfinite())):
                raise TrainingError(
                    f"{label}: the loss is {losses[-1]:g} and its gradient {float(norm):g} at step {len(losses)} of {steps}; "
                    f"lower lr (it is {settings.lr:g}), or give dtype=float32"
                )
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
            bar.update()
    return losses


def logprobs_of(model: Loaded, rows: Sequence[Row], settings: LoraSettings, label: str) -> list[float]:
    """``answer_logprobs`` of many rows, in their order.

    Raises:
        OptionError: memory does not suffice.
    """
    return _in_batches(rows, lambda part: answer_logprobs(model, part).tolist(), settings, label)


def generate(model: Loaded, prompts: Sequence[tuple[int, ...]], encoder: Encoder, settings: LoraSettings, label: str) -> list[str]:
    """The greedy answer to each prompt, in their order.

    Raises:
        OptionError: memory does not suffice.
    """

    def answers(part: Sequence[Row]) -> list[str]:
        batch = collate(part, model.pad)
        with torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=model.dtype != torch.float32):
            ids = model.net.generate(
                input_ids=batch.ids.to(model.device),
                attention_mask=batch.mask.to(model.device),
                do_sample=False,
                max_new_tokens=settings.max_new_tokens,
                eos_token_id=encoder.stops,
                pad_token_id=model.pad,
            )
        return [encoder.decode(new) for new in ids[:, batch.ids.shape[1] :].tolist()]

    return _in_batches([Row(prompt, ()) for prompt in prompts], answers, settings, label)


def _check_layers(settings: LoraSettings, modules: dict[str, Any]) -> None:
    """Every layer that is named must exist: peft itself passes over all but the first kind.

    Raises:
        OptionError: one does not.
    """
    ends = {name.rpartition(".")[2] for name in modules if name} | set(modules)
    for layer in (*settings.target_modules, *settings.modules_to_save):
        if layer != "all-linear" and layer not in ends and not any(name.endswith(f".{layer}") for name in modules):
            kinds = sorted({name.rpartition(".")[2] for name, module in modules.items() if isinstance(module, (torch.nn.Linear, torch.nn.Embedding))})
            raise OptionError(f"model={settings.model} has no layer {layer!r}; it has {', '.join(kinds)}")


def _put_back(net: Any, before: dict[str, Any]) -> None:
    """Undoes what ``unload`` leaves: layers that were trained in full stay in the model as trained."""
    for name, module in net.named_modules():
        if name in before and before[name] is not module:
            net.set_submodule(name, before[name])


@contextmanager
def _training_mode(model: Loaded, settings: LoraSettings) -> Iterator[None]:
    """Dropout on, and gradient checkpointing where it is wanted; afterwards off."""
    wanted = settings.gradient_checkpointing
    checkpointing = model.device.type == "cuda" if wanted == "auto" else bool(wanted)
    if checkpointing:
        model.net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.net.train()
    try:
        yield
    finally:
        model.net.eval()
        if checkpointing:
            model.net.gradient_checkpointing_disable()


def _batches(rows: Sequence[Row], settings: LoraSettings, seed: int) -> Iterator[list[Row]]:
    """The rows of each step, in a new random order each epoch; within a step by length, which saves padding."""
    stream = np.random.default_rng(seed)
    for _ in range(settings.epochs):
        order = stream.permutation(len(rows))
        for start in range(0, len(rows), settings.batch):
            yield sorted((rows[at] for at in order[start : start + settings.batch]), key=len, reverse=True)


def _gradient(model: Loaded, batch: Sequence[Row], micro_batch: int) -> float:
    """Adds up the gradient of a step's loss; returns the loss."""
    tokens = sum(len(row.answer) for row in batch)
    total = 0.0
    for start in range(0, len(batch), micro_batch):
        loss = -answer_logprobs(model, batch[start : start + micro_batch]).sum() / tokens
        torch.autograd.backward(loss)
        total += float(loss.detach())
    return total


def _in_batches(rows: Sequence[Row], work: Callable[[Sequence[Row]], list[Any]], settings: LoraSettings, label: str) -> list[Any]:
    """``work`` on batches of similar length, longest first; its results in the order of the rows."""
    results: list[Any] = [None] * len(rows)
    order = sorted(range(len(rows)), key=lambda at: -len(rows[at]))
    lower = f"lower predict_batch (it is {settings.predict_batch}) or max_length ({settings.max_length})"
    with memory_errors("predicting", lower), torch.inference_mode(), tqdm(total=len(rows), desc=label) as bar:
        for start in range(0, len(rows), settings.predict_batch):
            places = order[start : start + settings.predict_batch]
            for at, result in zip(places, work([rows[at] for at in places]), strict=True):
                results[at] = result
            bar.update(len(places))
    return results
