"""How long one question to all runs of a lab takes, asked of the files themselves by polars and by DuckDB.

    python benchmarks/lake.py [--models 50] [--tasks 20] [--docs 10000] [--folder FOLDER]

Makes runs of docs of 10 views, laid out ``model=<name>/task=<name>/``, 300 docs of most also
asked on a wrong image. Then asks for the full score and the best cell by model, task and category (docs/tables.md), in a
process of its own for each engine. Both must give what was counted when the runs were made. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import apart, parse, workers

SECONDS, MEMORY, BYTES = 600.0, 2048.0, 12.0
"""The targets, of each engine: seconds of wall time on 2 cores, and MiB; bytes a view without texts."""
WRONG, CATEGORIES, WORDS = 300, 8, 4000
PAGE = Path(__file__).resolve().parents[1] / "docs" / "tables.md"


def make(folder: Path, model: int, tasks: int, docs: int) -> tuple[list[tuple[Any, ...]], int, int, int]:
    """Write the runs of a model.

    Returns:
        By model, task and category: docs that count, their full score, their best cell; rows, bytes of all columns, and of
        all but texts.
    """
    import numpy as np
    import polars as pl
    import pyarrow.parquet as pq

    from lmms_patch.runs import samples, schema
    from lmms_patch.runs.details import About, Model, Of

    rows, views_in_all, size, lean = [], 0, 0, 0
    for task in range(tasks):
        doc, stream = np.random.default_rng([1, task]), np.random.default_rng([2, model, task])
        golds, category = doc.integers(0, 4, docs), doc.integers(0, CATEGORIES, docs)
        words = doc.zipf(1.2, (docs, 12)) % WORDS
        digests = [[f"{number:016x}" for number in doc.integers(0, 2**63, docs)] for _ in range(3)]
        wrong = np.sort(doc.choice(docs, min(WRONG, docs // 2) * ((model + task) % 4 > 0), replace=False))
        known = stream.random((docs, 10)) < np.array([0.3 + 0.5 * stream.random(), *0.3 * stream.random(9)])
        said = np.where(known, golds[:, None], stream.integers(0, 4, (docs, 10)))
        failed = stream.random((docs, 10)) < 0.0005
        score = np.where(failed, np.nan, said == golds[:, None])
        whole = np.isfinite(score).all(axis=1)
        for number in range(CATEGORIES):
            of = score[whole & (category == number)]
            rows.append(
                (f"m{model}", f"t{task}_rci3", f"kind {number}", len(of), of[:, 0].mean(), of[:, 1:].max(axis=1).mean())
            )
        shown = np.concatenate([np.arange(docs).repeat(10), wrong.repeat(10)])
        swapped = np.arange(len(shown)) >= 10 * docs
        blind = stream.integers(0, 4, (len(wrong), 10))
        letters, cells = np.array(list("ABCD")), np.tile(np.arange(10), docs + len(wrong))
        of_doc = pl.DataFrame(
            {
                "doc_id": range(docs),
                "question": [" ".join(f"w{word}" for word in line) for line in words],
                "gold": letters[golds],
                "gold_at": golds + 1,
                "options": [[f"w{word}" for word in line[:4]] for line in words],
                "category": [f"kind {number}" for number in category],
                "cluster": [str(number // 2) for number in range(docs)],
                **dict(zip(("prompt_digest", "doc_digest", "images"), digests, strict=True)),
            },
            schema_overrides={"options": schema.TEXTS},
        )
        views = pl.DataFrame(
            {
                "doc_id": shown,
                "kind": np.where(cells == 0, "full", "cell"),
                "n": np.full(len(shown), 3),
                "cell": cells,
                "swapped": swapped,
                "wrong_from": np.where(swapped, (shown + 1) % docs, -1),
                "answer": letters[np.concatenate([said, blind]).ravel()],
                "names": np.concatenate([said, blind]).ravel() + 1,
                "score": np.concatenate([score, blind == golds[wrong][:, None]]).ravel(),
                "failed": np.concatenate([failed, np.zeros(blind.shape, bool)]).ravel(),
                "tokens_in": 40 + words.sum(axis=1)[shown] % 30 + np.where(cells == 0, 576, 256),
                "tokens_out": stream.integers(1, 4, len(shown)),
            }
        ).with_columns(
            pl.when("swapped").then(pl.col("swapped", "wrong_from")),
            pl.when(kind="cell").then(pl.col("n", "cell")),
            pl.when(~pl.col("failed")).then(pl.col("answer", "names", "score")),
            pl.when("failed").then(pl.lit("no answer")).alias("failed"),
        )
        frame = views.join(of_doc, on="doc_id", maintain_order="left")
        frame = frame.cast({name: schema.TYPES[name] for name in frame.columns})
        frame = frame.sort("doc_id", pl.col("swapped").fill_null(False), pl.col("cell").fill_null(0))
        cell, rivals = pl.col("cell"), ("doc_id", "swapped", "kind")
        wins = pl.int_range(pl.len()).over(rivals) == pl.col("score").arg_max().over(rivals)
        frame = frame.with_columns(
            view=pl.int_range(pl.len(), dtype=pl.Int32).over("doc_id"),
            row=(cell - 1) // 3,
            col=(cell - 1) % 3,
            best=pl.when(wins, cell.is_not_null(), pl.col("swapped").is_null()).then(True),
            choices=pl.lit(4, pl.Int32),
            label=pl.lit("mc4"),
        ).with_columns(pl.when(view=0).then(pl.col("options")))
        asked = {"base": f"t{task}", "kind": "rci", "grids": [3], "metric": "acc", "options": {}}
        about = About(
            schema=1,
            task=f"t{task}_rci3",
            asked=asked,
            metrics={"acc": True},
            native={"none": Of("mean")},
            model=Model(f"m{model}"),
            rows=0,
            docs=0,
            columns=[],
        )
        path = folder / f"model=m{model}" / f"task={about.task}" / f"2026_samples_{about.task}.parquet"
        path.parent.mkdir(parents=True)
        samples.write(path, frame, about)
        views_in_all, size = views_in_all + len(frame), size + path.stat().st_size
        about = pq.read_metadata(path)
        for group, column in itertools.product(range(about.num_row_groups), range(about.num_columns)):
            chunk = about.row_group(group).column(column)
            lean += 0 if chunk.path_in_schema.split(".")[0] in schema.MAY_LACK else chunk.total_compressed_size
    return rows, views_in_all, size, lean


def ask(folder: Path, engine: str) -> list[tuple[Any, ...]]:
    """Run the query that docs/tables.md has for an engine."""
    if engine == "duckdb":
        import duckdb

        duckdb.sql("set threads = 2; set memory_limit = '1500MB'; set preserve_insertion_order = false")
    blocks = re.findall(r"```python\n(import (\w+)[^`]*lake/[^`]*)```", PAGE.read_text(encoding="utf-8"))
    [code] = [block for block, module in blocks if module == engine]
    names: dict[str, Any] = {}
    exec(code.replace('"lake/', f'"{folder}/'), names)
    rows: list[tuple[Any, ...]] = names["table"].rows()
    return rows


def main() -> int:
    """1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--docs", type=int, default=10_000)
    parser.add_argument("--folder", help="where the runs are made, and gone afterwards (1.5 GB)")
    args = parse(parser, models=2, tasks=2, docs=400)
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        with workers(0 if args.tiny else 2) as pool:
            jobs = [pool.submit(make, folder, model, args.tasks, args.docs) for model in range(args.models)]
            made = [job.result() for job in jobs]
        truth = sorted(row for rows, *_ in made for row in rows)
        views, size, lean = (sum(counts) for counts in zip(*(one[1:] for one in made), strict=True))
        print(f"{args.models * args.tasks:,} runs, {views:,} rows: {size / 1e6:,.1f} MB")
        print(f"bytes a view: {size / views:.1f}, without texts {lean / views:.1f} (target {BYTES:.0f})", flush=True)
        missed = lean / views > BYTES
        for engine in ("polars", "duckdb"):
            rows, wall, worked, memory = apart(ask, folder, engine, tiny=args.tiny)
            assert [row[:4] for row in rows] == [row[:4] for row in truth], f"{engine}: other docs"
            off = max(
                abs(a - b)
                for row, true in zip(rows, truth, strict=True)
                for a, b in zip(row[4:], true[4:], strict=True)
            )
            assert off < 1e-9, f"{engine}: off by {off}"
            print(
                f"{engine}: {wall:.1f} s ({worked:.1f} s of processor time), {memory:.0f} MiB (targets {SECONDS:.0f} s, {MEMORY:.0f} MiB)",
                flush=True,
            )
            missed |= wall > SECONDS or memory > MEMORY
    print(f"targets: {'MISSED' if missed else 'met'}, {len(truth):,} rows of {args.models} models")
    return int(missed and not args.tiny)


if __name__ == "__main__":
    sys.exit(main())
