"""What the journal costs while the model is asked: wall time with it against without, with an adapter that takes 1 ms a call."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from loguru import logger

from benchmarks import parse
from tests.harness.toys import Model, metrics, run, write_task

TARGET = 1.03


class Slow(Model):
    """Looks at every image, and answers after 1 ms."""

    began = ended = 0.0

    def generate_until(self, requests: list[Any]) -> list[str]:
        self.began = self.began or time.monotonic()
        for request in requests:
            _, _, doc_to_visual, doc_id, task, split = request.args
            doc_to_visual(self.task_dict[task][split][doc_id])
            time.sleep(0.001)
        self.ended = time.monotonic()
        return ["a dog"] * len(requests)


def asking(folder: Path, journal: str) -> float:
    """Return the seconds from the first call to the last, with the journal as ``LMMS_PATCH_JOURNAL`` says.

    Without it there is one portion.
    """
    os.environ["LMMS_PATCH_JOURNAL"] = journal
    model = Slow()
    with tempfile.TemporaryDirectory() as out, contextlib.redirect_stderr(io.StringIO()):
        about = {
            "model": "slow",
            "model_args": "",
            "batch_size": 1,
            "process_with_media": False,
            "reasoning_tags": None,
        }
        found = run(model, "toy_rci3", folder, cli_args=Namespace(output_path=out, **about))
        kept = any("journal" in str(path) for path in Path(out).rglob("*"))
    assert metrics(found, "toy_rci3")["exact_match"] == 1, "every answer is right"
    assert kept == (journal == "keep"), "the journal is written where it is asked for, and nowhere else"
    return model.ended - model.began


def main() -> int:
    """Print the ratio, the least of some interleaved rounds; status 1 where it is above the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parse(parser, docs=4, rounds=1)
    logger.remove()
    stream = np.random.default_rng(0)
    photos = [Image.fromarray(stream.integers(0, 256, (240, 320, 3), np.uint8)) for _ in range(8)]
    docs = [{"image": photos[i % 8], "question": f"What is thing {i}?", "answer": "a dog"} for i in range(given.docs)]
    with tempfile.TemporaryDirectory() as folder:
        write_task(Path(folder), "toy", docs, metadata={"version": 0.0, "lmms_patch": {"null": 0}})
        rounds = [[asking(Path(folder), journal) for journal in ("off", "keep")] for _ in range(given.rounds)]
    without, with_it = (min(column) for column in zip(*rounds, strict=True))
    print(
        f"{10 * given.docs} calls: {without:.1f} s without, {with_it:.1f} s with the journal: {with_it / without:.3f} times (target {TARGET})"
    )
    return int(with_it / without > TARGET and not given.tiny)


if __name__ == "__main__":
    raise SystemExit(main())
