"""`mosaic_vlm`: the tiny model that ships with the mosaic benchmark, run by one of lmms-eval's own adapters.

The adapter is used as it is, but three of its limits would spoil the demo, so they are lifted from outside: it drops
samples without an image, it takes the task of a batch's first sample for the whole batch, and its defaults ask for a
GPU.
"""

from __future__ import annotations

from typing import Any

from lmms_eval.api.instance import GenerationResult, Instance
from lmms_eval.models.chat.lfm2_5_vl import LFM2_5_VL
from lmms_eval.protocol import ChatMessages

from lmms_patch.resources import folder

# stands for the image of a sample that has none, so that the adapter keeps the sample
NO_IMAGE = object()


class MosaicVLM(LFM2_5_VL):
    """The shipped model on the CPU, in float32 to keep answers independent of the batch size."""

    def __init__(
        self, pretrained: str = "", device: str = "cpu", dtype: str = "float32", batch_size: int = 8, **kwargs: Any
    ) -> None:
        super().__init__(
            pretrained=pretrained or str(folder("tasks") / "mosaic" / "model"),
            device=device,
            dtype=dtype,
            batch_size=batch_size,
            **kwargs,
        )
        self.processor: Any = ImageOptional(self.processor)

    def generate_until(self, requests: list[Instance]) -> list[GenerationResult]:
        """Return the adapter's answers in the order of the requests. The adapter is asked task by task."""
        # the adapter takes the task of a batch's first sample for the whole batch
        answers: dict[int, GenerationResult] = {}
        for task in {request.task_name for request in requests}:
            places = [place for place, request in enumerate(requests) if request.task_name == task]
            answers |= zip(places, super().generate_until([requests[place] for place in places]), strict=True)
        return [answers[place] for place in range(len(requests))]

    def _process_messages_to_lfm_format(self, chat_messages: ChatMessages) -> tuple[list[Any], list[Any]]:
        """Return the adapter's messages and images. A sample without image gets ``NO_IMAGE``."""
        messages, images = super()._process_messages_to_lfm_format(chat_messages)
        return messages, images or [NO_IMAGE]


class ImageOptional:
    """A processor for samples with and without an image in the same batch.

    It can also continue a turn that the model has begun.
    """

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def __call__(self, images: list[list[Any]], text: list[str], **kwargs: Any) -> Any:
        """Call the wrapped processor. ``images`` has a list per sample, in which NO_IMAGE stands for none."""
        real = [image for sample in images for image in sample if image is not NO_IMAGE]
        return self._processor(images=real or None, text=text, **kwargs)

    def apply_chat_template(self, messages: list[Any], add_generation_prompt: bool = False, **kwargs: Any) -> Any:
        """Return the text of a conversation.

        Where the last turn is the model's own, it is left open (MAGIC's Self-Heal).
        """
        begun = bool(messages) and messages[-1]["role"] == "assistant"
        more = {"continue_final_message": True} if begun else {"add_generation_prompt": add_generation_prompt}
        return self._processor.apply_chat_template(messages, **more, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)
