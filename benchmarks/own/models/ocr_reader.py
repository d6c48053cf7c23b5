"""``ocr_reader``: reads the text in the image and never the question, to tell what a benchmark scores by reading alone.

    pip install rapidocr-onnxruntime
    LMMS_EVAL_PLUGINS=benchmarks.own lmms-eval --model ocr_reader --tasks mosaic_local_rci3 --output_path out --log_samples

The weights are in the package (PP-OCRv4, 15 MB), so no hub is asked. A prompt that lists options is answered with the
letter of the only option whose text stands in the image. Where no option or several stand there, the answer is "".
A prompt without options is answered with all that was read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms
from PIL import Image

OPTION = re.compile(r"^\s*\(?([A-Z])[.):]\s*(.+?)\s*$", re.MULTILINE)
"""Matches a line of a prompt that lists an option, such as "(A) red": the letter, and the text."""

Reads = Callable[[Image.Image], list[str]]
"""Returns the pieces of text in an RGB image, top to bottom."""


def rapidocr() -> Reads:
    """Return a reader that runs RapidOCR on one thread of the CPU.

    Raises:
        SystemExit: the package is missing.
    """
    try:
        from rapidocr_onnxruntime import RapidOCR
    except ImportError as error:
        raise SystemExit(f"ocr_reader needs a package: pip install rapidocr-onnxruntime ({error})") from None
    engine = RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)

    def reads(image: Image.Image) -> list[str]:
        # RapidOCR takes blue before red, as OpenCV does.
        found, _ = engine(np.asarray(image)[:, :, ::-1])
        return [text for _, text, _ in found or []]

    return reads


def answer(prompt: str, pieces: list[str]) -> str:
    """Return what a reader of these pieces answers: a letter where the prompt lists options, else the pieces.

    An option stands in the image where a whole piece is its text; case and blanks at its ends do not count.
    """
    options = OPTION.findall(prompt)
    if len(options) < 2:
        return " ".join(pieces)
    seen = {piece.strip().casefold() for piece in pieces}
    read = [letter for letter, text in options if text.casefold() in seen]
    return read[0] if len(read) == 1 else ""


class OcrReader(lmms):
    """The reader behind lmms-eval's simple interface."""

    def __init__(self, reads: Reads | None = None, **_: Any) -> None:
        super().__init__()
        # Counts of several processes would be gathered here; the reader is one process.
        self.device = torch.device("cpu")
        self._reads = reads or rapidocr()
        # The docs of a sheet share its image, and a caption is followed by the question on the same image.
        self._known: dict[bytes, list[str]] = {}

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """Return the answers in the order of the requests. Without an image nothing is read."""
        return [self._answer(*request.args) for request in requests]

    def _answer(self, prompt: str, _: Any, doc_to_visual: Any, doc_id: int, task: str, split: str) -> str:
        images = doc_to_visual(self.task_dict[task][split][doc_id]) if doc_to_visual else []
        return answer(prompt, [piece for image in images or [] for piece in self._read(image.convert("RGB"))])

    def _read(self, image: Image.Image) -> list[str]:
        """Return the pieces of text in an image. Each image is read once."""
        key = repr(image.size).encode() + image.tobytes()
        if key not in self._known:
            self._known[key] = self._reads(image)
        return self._known[key]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError("ocr_reader answers with a text")

    def generate_until_multi_round(self, requests: list[Instance]) -> list[str]:
        raise NotImplementedError("ocr_reader answers in one round")
