"""A faster vision encoder for the embedded model: the windows of a batch are attended at once, and an image that comes again is not encoded again.

transformers calls its attention once per window on a CPU, which takes most of the encoder's time in a model as small as
ours. Its public doors suffice to do better: a registered attention function, and a hook that tells this function where
the windows end.
"""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha1
from typing import Any

import torch
from transformers import AttentionInterface
from transformers.modeling_outputs import BaseModelOutputWithPooling

from lmms_patch.text import log

ATTENTION = "lmms_patch_windows"
REMEMBERED = 4096
"""How many images' features are kept: 75 MB for images of 168 x 168 pixels."""


def hasten(encoder: Any) -> bool:
    """Make the vision encoder of a Qwen2.5-VL model faster without changing its features.

    A sample is encoded before and after. Where the features differ, or where this version of transformers lacks what is
    replaced, the change is undone, with one line in the log.

    Returns:
        Whether the encoder is faster now.
    """
    undo: list[Callable[[], Any]] = []
    try:
        pixels, grids = _sample(encoder.config)
        with torch.no_grad():
            wanted = encoder(pixels, grid_thw=grids).pooler_output
            _hasten(encoder, undo)
            found = encoder(pixels, grid_thw=grids).pooler_output
        torch.testing.assert_close(found, wanted)
    except Exception as error:
        # whatever another version of transformers does otherwise
        for step in reversed(undo):
            step()
        log().info(f"the embedded model runs at the speed of transformers: {type(error).__name__}: {error}")
        return False
    return True


def _hasten(encoder: Any, undo: list[Callable[[], Any]]) -> None:
    """Replace the encoder's attention and its forward pass; ``undo`` gets what takes this back."""
    AttentionInterface.register(ATTENTION, attend)
    # noted before each change, so that a failure half-way can be undone
    undo.append(functools.partial(encoder.set_attn_implementation, encoder.config._attn_implementation))
    encoder.set_attn_implementation(ATTENTION)
    for block in encoder.blocks:
        undo.append(block.attn.register_forward_pre_hook(_tell_windows, with_kwargs=True).remove)
    undo.append(functools.partial(delattr, encoder, "forward"))
    encoder.forward = Remembering(encoder.forward)


def _sample(config: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the patches and the grids of three images of noise: two sizes, the first and the last image the same."""
    size = config.in_channels * config.temporal_patch_size * config.patch_size**2
    # seeded, so that a model is judged by the same noise each time
    first, second = torch.rand(12 * 12 + 4 * 6, size, generator=torch.Generator().manual_seed(0)).split(
        [12 * 12, 4 * 6]
    )
    return torch.cat([first, second, first]), torch.tensor([[1, 12, 12], [1, 4, 6], [1, 12, 12]])


def _tell_windows(module: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Hand the lengths of all windows on to ``attend``, and make the module see all patches as a single window."""
    ends = kwargs["cu_seqlens"]
    return args, kwargs | {"cu_seqlens": ends[[0, -1]], "windows": ends.diff().tolist()}


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    *,
    windows: list[int],
    scaling: float,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Return the attention within each window. Neighbouring windows of equal length form a batch.

    Args:
        module: unused.
        query: (1, heads, patches, width), as are key and value.
        key: see query.
        value: see query.
        attention_mask: unused: each patch of a window sees each other.
        windows: the lengths of the windows, in patches.
        scaling: multiplies the products of query and key.

    Returns:
        (1, patches, heads, width), and no weights.
    """
    runs = [(length, len(list(run))) for length, run in itertools.groupby(windows)]
    batches = zip(
        *(tensor[0].split([length * count for length, count in runs], dim=1) for tensor in (query, key, value)),
        strict=True,
    )
    seen = [
        torch.nn.functional.scaled_dot_product_attention(
            *(part.unflatten(1, (count, length)).transpose(0, 1) for part in batch), scale=scaling
        )
        for (length, count), batch in zip(runs, batches, strict=True)
    ]
    return torch.cat([part.transpose(1, 2).flatten(0, 1) for part in seen])[None], None


class Remembering:
    """A vision encoder's forward pass which encodes an image once, and keeps the features of the last images."""

    def __init__(self, forward: Callable[..., Any]) -> None:
        self._forward = forward
        self._features: OrderedDict[bytes, torch.Tensor] = OrderedDict()

    def __call__(
        self, hidden_states: torch.Tensor, grid_thw: torch.Tensor, **kwargs: Any
    ) -> BaseModelOutputWithPooling:
        """Return the features of all images in the given order; encode only images not seen before.

        Args:
            hidden_states: the patches of all images, (patches, values).
            grid_thw: the grid of each image, (images, 3).
            kwargs: handed on.
        """
        images = dict[bytes, tuple[torch.Tensor, torch.Tensor]]()
        asked = []
        for patches, grid in zip(hidden_states.split(grid_thw.prod(-1).tolist()), grid_thw, strict=True):
            digest = (
                # some systems refuse SHA-1 unless they are told that no security rests on it
                sha1(patches.contiguous().view(torch.uint8).numpy(), usedforsecurity=False).digest()
                + repr(grid.tolist()).encode()
            )
            asked.append(digest)
            images[digest] = patches, grid
        if new := [digest for digest in images if digest not in self._features]:
            patches, grids = zip(*(images[digest] for digest in new), strict=True)
            features = self._forward(torch.cat(patches), grid_thw=torch.stack(grids), **kwargs).pooler_output
            tokens = [len(one) for one in patches]
            # the encoder merges neighbouring patches, always as many into one feature
            parts = features.split([count * len(features) // sum(tokens) for count in tokens])
            # a clone, or each part would keep the features of the whole batch in memory
            self._features.update(zip(new, (part.clone() for part in parts), strict=True))
        for digest in images:
            self._features.move_to_end(digest)
        found = torch.cat([self._features[digest] for digest in asked])
        # only now, since a batch may hold more images than are remembered
        while len(self._features) > REMEMBERED:
            self._features.popitem(last=False)
        return BaseModelOutputWithPooling(pooler_output=found)
