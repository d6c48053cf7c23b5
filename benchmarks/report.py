"""How long the report of one large run takes, and how large its page is.

    python benchmarks/report.py [--docs 100000]

Writes the two files of a made-up run (``tests/making/runs.py``: 4 options, full image and 3×3 cells, ten categories,
two questions an image), then times ``lmms-patch report`` on it as a whole process, imports and figures included. See
benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import apart, command, parse

SECONDS, MEMORY, PAGE = 60.0, 2048.0, 10.0
"""The targets: seconds, MiB of peak memory, MB of the page."""


def make(folder: Path, docs: int) -> None:
    """The two files of a run."""
    from loguru import logger

    from tests.making.runs import mc_run, write_run

    logger.disable("lmms_patch")
    write_run(folder, {"toy_rci3": mc_run(n=docs, grid=3, per_cluster=2, categories=tuple("abcdefghij"))})


def main() -> int:
    """1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=int, default=100_000)
    args = parse(parser, docs=20)
    docs = args.docs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        apart(make, folder / "run", docs, tiny=args.tiny)
        size = sum(file.stat().st_size for file in (folder / "run").iterdir()) / 1e6
        print(f"{docs:,} docs, {size:.0f} MB of files", flush=True)
        _, seconds, _, memory = apart(
            command, "report", str(folder / "run"), "--output", str(folder / "report"), tiny=args.tiny
        )
        text = (folder / "report" / "index.html").read_text(encoding="utf-8")
        assert f"{docs:,} docs" in text, "the report is not of this run"
        page = (folder / "report" / "index.html").stat().st_size / 1e6
    print(
        f"{seconds:.1f} s (target {SECONDS:.0f}), {memory:.0f} MiB at most (target {MEMORY:.0f}), page of {page:.2f} MB (target {PAGE:.0f})"
    )
    return int(not args.tiny and (seconds > SECONDS or memory > MEMORY or page > PAGE))


if __name__ == "__main__":
    sys.exit(main())
