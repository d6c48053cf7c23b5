"""Train the mosaic model from nothing on one CPU core and write it to tasks/mosaic/model.

    python scripts/mosaic/train.py

Three stages, each with its own share of steps: text drills (without them multiple choice never leaves chance),
then the vision part alone (it names what each tile shows, in the words of the language part), then both together.
"""

import argparse
import math
import queue
import threading
import time
from pathlib import Path
from types import MethodType

import torch
from batches import Batch, Packer, attention_mask
from lessons import Teacher
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import apply_rotary_pos_emb_vision
from vlm import DIGIT_NAMES, TILE_INKS, build_model, build_processor

MODEL_DIR = Path(__file__).resolve().parents[2] / "tasks" / "mosaic" / "model"
TEXT_STEPS, VISION_STEPS, JOINT_STEPS = 450, 400, 4200
TEXT_ROWS, VISION_ROWS, JOINT_ROWS = 32, 48, 16
TEXT_EVERY = 10  # joint stage: one batch in so many is text only
PEAK_RATE, WARM_UP = 1.5e-3, 100
EMPTY_WEIGHT = {"blank": 0.1, "mark": 0.3, "none": 0.1}  # most tiles are empty: count them less


class TileNamer(nn.Module):
    """Names a vision token by its likeness to word embeddings, so that pictures and words share one space."""

    def __init__(self, words: list[str], model: Qwen2_5_VLForConditionalGeneration, tokenizer):
        super().__init__()
        self.ids = tokenizer.convert_tokens_to_ids(words)
        self.embeddings = [model.get_input_embeddings()]  # in a list: these weights belong to the model
        self.bias = nn.Parameter(torch.zeros(len(words)))
        self.weights = torch.tensor([EMPTY_WEIGHT.get(word, 1.0) for word in words])

    def loss(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of tokens (N, width) against labels (N,)."""
        scores = functional.linear(tokens.float(), 3 * self.embeddings[0].weight[self.ids], self.bias)
        return functional.cross_entropy(scores, labels, weight=self.weights)


class Student(nn.Module):
    """The model with the two tile namers (digit and ink) that only training needs."""

    def __init__(self, tokenizer):
        super().__init__()
        AttentionInterface.register("packed", attend_packed)
        self.vlm = build_model(tokenizer, attention="packed")
        speed_up_vision(self.vlm.model.visual)
        self.digit_namer = TileNamer(DIGIT_NAMES, self.vlm, tokenizer)
        self.ink_namer = TileNamer(TILE_INKS, self.vlm, tokenizer)

    def see(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Vision tokens (R·k·k, width) and the loss of naming them."""
        grid = torch.tensor([[1, 2 * batch.across, 2 * batch.across]] * len(batch.ids))
        tokens = self.vlm.model.visual(batch.patches, grid_thw=grid).pooler_output
        return tokens, self.digit_namer.loss(tokens, batch.tiles[0]) + self.ink_namer.loss(tokens, batch.tiles[1])

    def read(self, batch: Batch, tokens: torch.Tensor | None) -> tuple[torch.Tensor, float]:
        """Loss of the answers, and the share of right ones."""
        rows = len(batch.ids)
        inputs = self.vlm.get_input_embeddings()(batch.ids)
        if tokens is not None:
            image = slice(2, 2 + batch.across**2)
            inputs[:, image] = tokens.view(rows, batch.across**2, -1).to(inputs.dtype)
        mask = {"full_attention": attention_mask(batch.segments)}
        states = self.vlm.model.language_model(
            inputs_embeds=inputs, position_ids=batch.positions, attention_mask=mask, use_cache=False
        ).last_hidden_state
        asked = states[torch.arange(rows)[:, None], batch.asked]
        scores = self.vlm.lm_head(asked).float().view(len(batch.answers), 2, -1)
        answer = functional.cross_entropy(scores[:, 0], batch.answers[:, 0])
        end = functional.cross_entropy(scores[:, 1], batch.answers[:, 1])
        right = (scores[:, 0].argmax(-1) == batch.answers[:, 0]).float().mean().item()
        return answer + 0.1 * end, right


def attend_packed(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor,
    scaling: float,
    **_,
):
    """Return the language part's attention (R, heads, T, width) in the value's precision: bfloat16 is 1.5 times faster here."""
    query, key = query.to(value.dtype), key.to(value.dtype)
    share = ((query * scaling) @ key.transpose(-1, -2) + mask.to(value.dtype)).softmax(-1)
    return (share @ value).transpose(1, 2).contiguous(), None


def speed_up_vision(visual: nn.Module) -> None:
    """Training only: all chunks of a batch have one length, so attend in one product, and embed one frame, not two."""
    visual.patch_embed.forward = MethodType(embed_frame, visual.patch_embed)
    for block in visual.blocks:
        block.attn.forward = MethodType(attend_in_one, block.attn)


def embed_frame(self, patches: torch.Tensor) -> torch.Tensor:
    """Patches (N, 588) of a still image: both frames of the video kernel see the same picture."""
    return functional.linear(patches, self.proj.weight.sum(2).flatten(1))


def attend_in_one(
    self, hidden_states: torch.Tensor, cu_seqlens: torch.Tensor, position_embeddings=None, **_
) -> torch.Tensor:
    """Return the vision attention of equally long chunks, (N, width) to (N, width)."""
    total, length = len(hidden_states), int(cu_seqlens[1] - cu_seqlens[0])
    query, key, value = self.qkv(hidden_states).reshape(total, 3, self.num_heads, -1).permute(1, 0, 2, 3).unbind(0)
    query, key = apply_rotary_pos_emb_vision(query, key, *position_embeddings)
    query, key, value = (
        x.reshape(total // length, length, self.num_heads, -1).transpose(1, 2).to(value.dtype)
        for x in (query, key, value)
    )
    share = ((query * self.scaling) @ key.transpose(-1, -2)).softmax(-1)
    return self.proj((share @ value).transpose(1, 2).reshape(total, -1))


def stage_of(step: int) -> str:
    """text, then vision, then joint (which now and then goes back to text)."""
    if step < TEXT_STEPS:
        return "text"
    if step < TEXT_STEPS + VISION_STEPS:
        return "vision"
    return "joint" if step % TEXT_EVERY else "text"


def feed(teacher: Teacher, packer: Packer, steps: int, batches: queue.Queue) -> None:
    """Make the batch of every step, ahead of the training loop."""
    for step in range(steps):
        stage = stage_of(step)
        if stage == "text":
            batch = packer.text(teacher.text(TEXT_ROWS))
        else:
            batch = packer.images(teacher.images(VISION_ROWS if stage == "vision" else JOINT_ROWS))
        batches.put((stage, batch))


def rate_at(step: int, steps: int) -> float:
    """Learning rate: warm-up, then a cosine down to 3 % of the peak."""
    cosine = 0.5 * (1 + math.cos(math.pi * step / steps))
    return PEAK_RATE * min(1, (step + 1) / WARM_UP) * (0.97 * cosine + 0.03)


def optimiser(student: Student) -> torch.optim.Optimizer:
    """AdamW that decays matrices only."""
    parameters = list(student.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.05},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.98), fused=True)


def losses(student: Student, stage: str, batch: Batch) -> tuple[torch.Tensor, float | None]:
    """Return what one step minimises, and the share of right answers if any were asked."""
    tokens, naming = (None, 0.0) if stage == "text" else student.see(batch)
    if stage == "vision":
        return naming, None
    answering, right = student.read(batch, tokens)
    return answering + 0.3 * naming, right


def train(steps: int, seed: int) -> Student:
    """Return the trained student. One thread, so a seed gives the same weights on the same machine and libraries."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    tokenizer = build_processor().tokenizer
    student = Student(tokenizer).train()
    batches: queue.Queue = queue.Queue(maxsize=6)
    threading.Thread(target=feed, args=(Teacher(seed + 10), Packer(tokenizer), steps, batches), daemon=True).start()
    adam, recent, began = optimiser(student), {}, time.monotonic()
    for step in range(steps):
        for group in adam.param_groups:
            group["lr"] = rate_at(step, steps)
        stage, batch = batches.get()
        with torch.autocast("cpu", torch.bfloat16):
            loss, right = losses(student, stage, batch)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        adam.step()
        recent.setdefault(batch.across, []).append(loss.item() if right is None else right)
        if (step + 1) % 200 == 0:
            report(step + 1, steps, stage, recent, began)
            recent = {}
    return student


def report(step: int, steps: int, stage: str, recent: dict[int, list[float]], began: float) -> None:
    """One line: progress, and per view width the share of right answers (vision stage: the loss)."""
    spent = time.monotonic() - began
    numbers = "  ".join(
        f"{across}x{across}: {sum(values) / len(values):.3f}" for across, values in sorted(recent.items())
    )
    print(
        f"step {step}/{steps} ({stage})  {spent:.0f} s, {spent / step * (steps - step):.0f} s to go  {numbers}",
        flush=True,
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=MODEL_DIR)
    parser.add_argument("--steps", type=int, default=TEXT_STEPS + VISION_STEPS + JOINT_STEPS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    student = train(options.steps, options.seed)
    student.vlm.eval().to(torch.bfloat16).save_pretrained(options.out)
    build_processor().save_pretrained(options.out)
    print(f"saved {options.out}: {sum(p.numel() for p in student.vlm.parameters()):,} weights")


if __name__ == "__main__":
    main()
