"""Lessons as tensors, with all questions on an image packed behind it in one row.

A row is  <|im_start|> <|vision_start|> image tokens, then for each question
<|vision_end|> question <|im_end|> <|im_start|> answer <|im_end|>.
Every question sees the image and itself, none sees another (`attention_mask`), and its positions start right behind
the image: each reads exactly as it does when the chat template asks it alone.
"""

from typing import NamedTuple

import numpy as np
import torch
from lessons import Lesson
from questions import Question
from scans import TILE
from transformers import PreTrainedTokenizerFast
from vlm import PATCH

MASKED = -1e4


class Batch(NamedTuple):
    """R rows of T tokens with Q questions each; the image is k x k tokens (k = 0: no image).

    patches: (R·k·k·4, 588) floats; tiles: (2, R·k·k) digit and ink labels; both None without image.
    ids: (R, T); positions: (3, R, T) as M-RoPE counts them; segments: (R, T) 0 image, 1..Q question, -1 padding.
    asked: (R, 2·Q) where each answer and its end are predicted; answers: (R·Q, 2) their ids.
    """

    across: int
    patches: torch.Tensor | None
    tiles: torch.Tensor | None
    ids: torch.Tensor
    positions: torch.Tensor
    segments: torch.Tensor
    asked: torch.Tensor
    answers: torch.Tensor


class Packer:
    """Turns lessons into batches."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self.tokenizer = tokenizer
        self.known: dict[str, list[int]] = {}

    def images(self, lessons: list[Lesson]) -> Batch:
        """Return a batch of lessons that have the same width."""
        values, inks = (np.stack([getattr(lesson, name) for lesson in lessons]) for name in ("values", "inks"))
        tiles = torch.from_numpy(np.stack([values.ravel(), inks.ravel()]))
        patches = to_patches(np.stack([lesson.pixels for lesson in lessons]))
        return Batch(
            values.shape[1], patches, tiles, *self.pack([lesson.questions for lesson in lessons], values.shape[1])
        )

    def text(self, groups: list[list[Question]]) -> Batch:
        """Return a batch of questions without image."""
        return Batch(0, None, None, *self.pack(groups, 0))

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, remembered."""
        if text not in self.known:
            self.known[text] = self.tokenizer(text, add_special_tokens=False).input_ids
        return self.known[text]

    def pack(self, groups: list[list[Question]], across: int) -> list[torch.Tensor]:
        """ids, positions, segments, asked and answers of a Batch."""
        start, end, v_start, v_end, image = map(
            self.tokenizer.convert_tokens_to_ids,
            ("<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>"),
        )
        head = [start, v_start, *[image] * across**2] if across else [start]
        opening = [v_end] if across else []
        rows = [
            [[*opening, *self.encode(q.text), end, start, *self.encode(q.answer), end] for q in group]
            for group in groups
        ]
        shape = len(rows), len(head) + max(sum(map(len, row)) for row in rows)
        ids, segments = np.full(shape, self.tokenizer.pad_token_id), np.full(shape, -1)
        positions = np.zeros((3, *shape), int)
        ids[:, : len(head)], segments[:, : len(head)] = head, 0
        positions[:, :, : len(head)] = head_positions(across)[:, None]
        after = 2 + across if across else 1
        asked = np.zeros((len(rows), len(rows[0]), 2), int)
        for row, pieces in enumerate(rows):
            at = len(head)
            for number, piece in enumerate(pieces):
                stop = at + len(piece)
                ids[row, at:stop], segments[row, at:stop] = piece, number + 1
                positions[:, row, at:stop] = after + np.arange(len(piece))
                asked[row, number] = stop - 3, stop - 2
                at = stop
        answers = [piece[-2:] for row in rows for piece in row]
        return [
            torch.from_numpy(np.asarray(array))
            for array in (ids, positions, segments, asked.reshape(len(rows), -1), answers)
        ]


def head_positions(across: int) -> np.ndarray:
    """M-RoPE positions (time, row, column) of the head of a row, (3, length): start, vision start, image tokens."""
    if not across:
        return np.zeros((3, 1), int)
    index = np.arange(across**2)
    image = np.stack([np.full(across**2, 2), 2 + index // across, 2 + index % across])
    return np.concatenate([np.zeros((3, 1), int), np.ones((3, 1), int), image], axis=1)


def to_patches(pixels: np.ndarray) -> torch.Tensor:
    """Return views (B, H, H, 3) uint8 as the processor's patches in [-1, 1], (B·tokens·4, 588), one frame only."""
    across = pixels.shape[1] // TILE
    grid = pixels.reshape(-1, across, 2, PATCH, across, 2, PATCH, 3).transpose(0, 1, 4, 2, 5, 7, 3, 6)
    return torch.from_numpy(grid.reshape(-1, 3 * PATCH * PATCH).astype(np.float32)).div_(127.5).sub_(1)


def attention_mask(segments: torch.Tensor) -> torch.Tensor:
    """(R, 1, T, T) additive mask: causal, and each question sees only the image and itself."""
    length = segments.shape[1]
    allowed = (segments[:, :, None] == segments[:, None]) | (segments[:, None] == 0)
    allowed &= torch.ones(length, length, dtype=torch.bool).tril()
    return torch.zeros(allowed.shape).masked_fill_(~allowed, MASKED)[:, None]
