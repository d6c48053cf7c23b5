"""Check the model on the mosaic data, in this process and without lmms-eval.

    python scripts/mosaic/evaluate.py

Prints one line per family: accuracy on the full image (FIP), with the best cell (MPP_n) and RCI_n = 1 - MPP_n/FIP
for n = 2 and 3, then on a grey image of the same size and without any image. `--batch-sizes 1 2 8` also checks that
the answers are the same at each size.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from PIL import Image
from scenes import cut
from transformers import AutoModelForImageTextToText, AutoProcessor

TASK_DIR = Path(__file__).resolve().parents[2] / "tasks" / "mosaic"
COLUMNS = ("FIP", "MPP_2", "MPP_3", "RCI_2", "RCI_3", "blank", "blind", "unknown")
View = Callable[[Image.Image], Image.Image | None]


def views() -> dict[str, list[View]]:
    """Return the views of a sheet, in groups: the full image, the cells of each grid, a grey image, none at all."""
    grids = {f"grid{n}": [lambda image, n=n, at=at: cut(image, n)[at] for at in range(n * n)] for n in (2, 3)}
    return {
        "full": [lambda image: image],
        **grids,
        "blank": [lambda image: Image.new("RGB", image.size, (128, 128, 128))],
        "blind": [lambda image: None],
    }


class Reader:
    """The model behind its own processor, greedy, as the harness runs it."""

    def __init__(self, folder: Path):
        self.processor = AutoProcessor.from_pretrained(folder)
        self.processor.tokenizer.padding_side = "left"
        self.model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()

    def answer(self, questions: list[str], images: list[Image.Image | None], batch_size: int) -> list[str]:
        """One word per question."""
        words = []
        for start in range(0, len(questions), batch_size):
            batch = slice(start, start + batch_size)
            words += self.answer_batch(questions[batch], images[batch])
        return words

    @torch.inference_mode()
    def answer_batch(self, questions: list[str], images: list[Image.Image | None]) -> list[str]:
        """Return the same for one batch."""
        texts = [self.prompt(question, image is not None) for question, image in zip(questions, images, strict=True)]
        shown = [image for image in images if image is not None]
        inputs = self.processor(text=texts, images=shown or None, padding=True, return_tensors="pt")
        output = self.model.generate(**inputs, max_new_tokens=4)[:, inputs["input_ids"].shape[1] :]
        return [text.strip() for text in self.processor.batch_decode(output, skip_special_tokens=True)]

    def prompt(self, question: str, with_image: bool) -> str:
        """Return the chat template around a question."""
        content = [{"type": "image"}] * with_image + [{"type": "text", "text": question}]
        return self.processor.apply_chat_template(
            [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
        )


def read_family(reader: Reader, docs: Dataset, batch_size: int) -> dict[str, np.ndarray]:
    """Per group of views, the answers (docs, views)."""
    sheets = [doc["image"].convert("RGB") for doc in docs]
    questions = list(docs["question"])
    answers = {}
    for name, group in views().items():
        columns = [reader.answer(questions, [view(sheet) for sheet in sheets], batch_size) for view in group]
        answers[name] = np.array(columns).T
    return answers


def summary(answers: dict[str, np.ndarray], golds: np.ndarray) -> dict[str, float]:
    """Return the numbers of one family, by COLUMNS; `unknown` is the share of 3x3 cells that abstain."""
    best = {name: float((words == golds[:, None]).any(1).mean()) for name, words in answers.items()}
    full = best["full"]
    rci = [1 - best[f"grid{n}"] / full if full else float("nan") for n in (2, 3)]
    abstained = float((answers["grid3"] == "unknown").mean())
    return dict(
        zip(COLUMNS, (full, best["grid2"], best["grid3"], *rci, best["blank"], best["blind"], abstained), strict=True)
    )


def check_family(reader: Reader, path: Path, batch_sizes: list[int]) -> None:
    """Print one line per batch size."""
    docs = Dataset.from_parquet(str(path))
    golds, first = np.array(docs["answer"]), None
    for size in batch_sizes:
        began = time.monotonic()
        answers = read_family(reader, docs, size)
        spent = 1000 * (time.monotonic() - began) / sum(words.size for words in answers.values())
        first = first or answers
        same = all((answers[name] == first[name]).all() for name in answers)
        numbers = "".join(f"{value:9.3f}" for value in summary(answers, golds).values())
        print(f"{path.stem:15}{numbers}{size:7}{spent:9.1f}  {'yes' if same else 'NO'}", flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=TASK_DIR / "model")
    parser.add_argument("--data", type=Path, default=TASK_DIR / "data")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[8])
    options = parser.parse_args()
    torch.set_num_threads(1)
    reader = Reader(options.model)
    print(f"{'family':15}" + "".join(f"{name:>9}" for name in COLUMNS) + f"{'batch':>7}{'ms each':>9}  same answers")
    for path in sorted(options.data.glob("*.parquet")):
        check_family(reader, path, options.batch_sizes)


if __name__ == "__main__":
    main()
