"""How long the report of one large run takes, and how large its page is.

    python benchmarks/report.py [--docs 100000]

Writes the two files of a made-up run (``tests/making/runs.py``: 4 options, full image and 3×3 cells, ten categories, two questions an image),
then times ``lmms-patch report`` on it as a whole process, imports and figures included. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS, MEMORY, PAGE = 60.0, 2048.0, 10.0
"""The targets: seconds, MiB of peak memory, MB of the page."""


def make(folder: Path, docs: int) -> None:
    """The two files of a run."""
    sys.path.insert(0, str(ROOT))
    from loguru import logger

    from tests.making.runs import mc_run, write_run

    logger.disable("lmms_patch")
    write_run(folder, {"toy_rci3": mc_run(n=docs, grid=3, per_cluster=2, categories=tuple("abcdefghij"))})


def main() -> int:
    """1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=int, default=100_000)
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    docs = args.docs
    if args.make:  # in a process of its own: a child's peak memory starts from its parent's
        make(args.make, docs)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, __file__, "--docs", str(docs), "--make", str(folder / "run")], check=True)
        size = sum(file.stat().st_size for file in (folder / "run").iterdir()) / 1e6
        print(f"{docs:,} docs, {size:.0f} MB of files", flush=True)
        start = time.perf_counter()
        command = [sys.executable, "-m", "lmms_patch.app.cli", "report", str(folder / "run"), "--output", str(folder / "report"), "--quiet"]
        _, status, used = os.wait4(subprocess.Popen(command, cwd=ROOT).pid, 0)
        seconds, memory = time.perf_counter() - start, used.ru_maxrss / 1024
        if status:
            return 1
        page = (folder / "report" / "index.html").stat().st_size / 1e6
    print(f"{seconds:.1f} s (target {SECONDS:.0f}), {memory:.0f} MiB at most (target {MEMORY:.0f}), page of {page:.2f} MB (target {PAGE:.0f})")
    return int(seconds > SECONDS or memory > MEMORY or page > PAGE)


if __name__ == "__main__":
    sys.exit(main())
