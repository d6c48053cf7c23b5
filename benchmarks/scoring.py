"""What a wrapped task costs the processor beside the model: a run of ten views against the host's own ten tasks, as a ratio."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from loguru import logger

from benchmarks import parse
from tests.harness.toys import Model, coded_image, run, write_task

TARGET = 1.6
VIEWS = 10
ANSWERS = ("yes", "no", "left", "dog", "a dog")


class Quick(Model):
    """Answers at once; it looks at every image, as a model does."""

    def generate_until(self, requests: list[Any]) -> list[str]:
        super().generate_until(requests)
        self.seen.clear()
        return [ANSWERS[(i * 7919 + i // 13) % len(ANSWERS)] for i in range(len(requests))]


def whole_run(names: str, folder: Path, threads: int) -> float:
    """Return the processor seconds of a run from loading its tasks to its end, which scores with so many threads."""
    start = time.process_time()
    with contextlib.redirect_stderr(io.StringIO()):
        run(Quick(), names, folder, process_docs_parallel=threads)
    return time.process_time() - start


def main() -> int:
    """Print the ratios, the least of some interleaved rounds; status 1 where one is above the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parse(parser, docs=20, rounds=1)
    logger.remove()
    docs = [
        {"image": coded_image(i % 8), "question": f"Is thing {i} there? Answer with a word.", "answer": ANSWERS[i % 4]}
        for i in range(given.docs)
    ]
    with tempfile.TemporaryDirectory() as folder:
        natives = [f"toy{number}" for number in range(VIEWS)]
        for name in ("toy", *natives):
            # nine cells and the full image, and nothing on wrong images: ten views a doc
            write_task(Path(folder), name, docs, metadata={"version": 0.0, "lmms_patch": {"null": 0}})
        missed = False
        for threads in (4, 1):  # 4 is the host's default; its threads wait for each other
            rounds = [
                [whole_run(names, Path(folder), threads) for names in (",".join(natives), "toy_rci3")]
                for _ in range(given.rounds)
            ]
            native, wrapped = (min(column) for column in zip(*rounds, strict=True))
            ratio = f"{wrapped / native:.1f} times (target {TARGET}); by round {', '.join(f'{b / a:.2f}' for a, b in rounds)}"
            print(
                f"{given.docs} docs, {threads} threads: ten native tasks {native:.1f} s, _rci3 {wrapped:.1f} s of processor: {ratio}"
            )
            missed |= wrapped > TARGET * native
    return missed and not given.tiny


if __name__ == "__main__":
    sys.exit(main())
