"""What ``show``, ``gate`` and ``compare`` cost on large runs (``lake.py``: how large their tables are).

    python benchmarks/tables.py [--docs 50000]

Makes two runs of docs of 10 views (full image and 3×3 cells, 4 options, two docs an image, ten categories): a table of
some thousand docs, put one after the other under new numbers. Each command is a whole process, imports included;
``show`` runs twice, since the first call keeps the numbers beside the table and the second reads them. See
benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import apart, parse

TARGETS = {
    50_000: {"show": (1.5, 600), "gate": (8.0, 600), "compare": (12.0, 600)},
    200_000: {"gate": (20.0, 2048)},
}
"""By docs, of each command: seconds of processor time, and MiB of peak memory."""
PART = 2000
"""Docs that are made one by one."""
RULES = """
schema: 1
rules:
  - {name: score, metric: fip, min: 0.05, inconclusive: warn}
  - {name: index, metric: rci3, max: 5, inconclusive: warn}
  - {name: docs, max_excluded: 0.5}
"""
DROPS = """
schema: 1
rules:
  - {name: score, metric: fip, max_drop: 0.9, inconclusive: warn}
  - {name: index, metric: rci3, max_rise: 5, inconclusive: warn}
"""


def make(folder: Path, docs: int, know: float) -> None:
    """Make a run of a model that knows a share of the answers."""
    import polars as pl
    from loguru import logger
    from msgspec import structs

    from lmms_patch.runs import samples
    from tests.making.runs import mc_run, write_run

    logger.disable("lmms_patch")
    made = mc_run(n=min(docs, PART), grid=3, per_cluster=2, know_full=know, categories=tuple("abcdefghij"))
    table = samples.path_of(write_run(folder, {"toy_rci3": made}), "toy_rci3")
    frame, about = samples.frame_of(table), samples.about_of(table)
    parts = []
    for first in range(0, docs, PART):
        cluster = (pl.col("cluster").cast(pl.Int64) + first).cast(pl.String)
        parts.append(frame.with_columns(pl.col("doc_id") + first, cluster=cluster))
    host = structs.replace(about.host, original=docs, effective=docs)
    whole = pl.concat(parts).filter(pl.col("doc_id") < docs)
    samples.write(table, whole, structs.replace(about, host=host, run=str(know)))
    next(folder.glob("*_numbers.parquet")).unlink()


def call(*words: str) -> None:
    """Run a command of lmms-patch, whatever its verdict is."""
    from lmms_patch.app.cli import main

    with contextlib.redirect_stdout(io.StringIO()):
        assert main(words) != 2, f"failed: {' '.join(words)}"


def main() -> int:
    """Return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=int, default=50_000)
    args = parse(parser, docs=40)
    missed = False
    with tempfile.TemporaryDirectory() as name:
        one, two, rules, drops = (Path(name) / part for part in ("one", "two", "rules.yaml", "drops.yaml"))
        rules.write_text(RULES, encoding="utf-8")
        drops.write_text(DROPS, encoding="utf-8")
        apart(make, one, args.docs, 0.6, tiny=args.tiny)
        apart(make, two, args.docs, 0.7, tiny=args.tiny)
        print(f"{args.docs:,} docs of 10 views", flush=True)
        calls = {
            "show, first": ["show", str(one)],
            "show": ["show", str(one)],
            "gate": ["gate", str(one), "--config", str(rules)],
            "gate beside a baseline": ["gate", str(one), "--config", str(drops), "--baseline", str(two)],
            "compare": ["compare", str(one), str(two)],
        }
        for what, words in calls.items():
            _, seconds, worked, memory = apart(call, *words, tiny=args.tiny)
            target = TARGETS.get(args.docs, {}).get(what)
            missed |= target is not None and (worked > target[0] or memory > target[1])
            wanted = f" (targets {target[0]} s, {target[1]} MiB)" if target else ""
            print(f"{what}: {worked:.1f} s of processor time ({seconds:.1f} s), {memory:.0f} MiB{wanted}", flush=True)
    print(f"targets: {'MISSED' if missed else 'met'}")
    return int(missed and not args.tiny)


if __name__ == "__main__":
    sys.exit(main())
