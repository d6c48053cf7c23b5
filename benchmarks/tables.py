"""How much faster a run's Parquet file is than its sample log, as ratios within one run.

    python benchmarks/tables.py [--docs 100000]

Makes a run of docs of 10 views with questions, options and short answers, 300 of them also asked on a wrong image, and
its Parquet file (``lmms_patch.runs.samples``). Then reads two columns from the file and from the log in turn, the least
processor time of three rounds each, and runs ``lmms-patch analyze`` as a whole process with the file and without it.
See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import apart, command, parse

FASTER, SIZE, MEMORY = 20.0, 10.0, 1024.0
"""The targets: two columns from the file against the log; MB of the file; MiB of analyze."""
NULL = 300


def make(folder: Path, docs: int) -> None:
    """The files of a run."""
    from loguru import logger

    from lmms_patch.runs.run import find
    from lmms_patch.runs.samples import write
    from tests.making.runs import mc_run, write_run

    logger.disable("lmms_patch")
    stream = random.Random(0)
    spec, records, plan = mc_run(n=docs, grid=3, per_cluster=2, categories=tuple("abcdefghij"))
    for number, record in enumerate(records):
        record.pop("lent", None)
        if number % max(1, docs // NULL) == 0:
            views = [{**view, "swapped": True, "said": stream.choice("ABCD")} for view in record["views"]]
            for view in views:
                view["scores"] = view["items"] = {"acc": float(stream.random() < 0.25)}
            record["wrong_image"] = {"from": (number + 2) % docs, "image_sizes": [[9, 9]], "views": views}
    path = write_run(folder, {"toy_rci3": (spec, records, plan)})
    log = next(folder.glob("*.jsonl"))
    with open(log, encoding="utf-8") as lines, open(folder / "log", "w", encoding="utf-8") as out:
        for number, line in enumerate(lines):
            found = json.loads(line)
            views = len(found["patch"]["views"]) * (1 + ("wrong_image" in found["patch"]))
            answers = [stream.choice("ABCD") for _ in range(views)]
            out.write(
                json.dumps(
                    {**found, "filtered_resps": answers, "input": f"What is object {number}?\nA. u\nB. v\nC. w\nD. x"}
                )
                + "\n"
            )
    (folder / "log").replace(log)
    write(find([path])[0].results)


def read(folder: Path) -> tuple[float, float]:
    """Processor seconds of two columns from the file, and from the log."""
    from lmms_patch.runs import samples
    from lmms_patch.runs.run import find

    [result] = find([folder])[0].results
    columns, times = ["doc_id", "score"], ([], [])
    for _ in range(3):
        start = time.process_time()
        stored = samples.table(result, columns)
        times[0].append(time.process_time() - start)
        start = time.process_time()
        logged = samples.from_log(result, columns)
        times[1].append(time.process_time() - start)
        assert stored.equals(logged)
    return min(times[0]), min(times[1])


def main() -> int:
    """1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=int, default=100_000)
    args = parse(parser, docs=20)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        apart(make, folder, args.docs, tiny=args.tiny)
        parquet, log = next(folder.glob("*.parquet")), next(folder.glob("*.jsonl"))
        size = parquet.stat().st_size / 1e6
        print(
            f"{args.docs:,} docs: log of {log.stat().st_size / 1e6:.0f} MB, Parquet of {size:.1f} MB (target {SIZE:.0f})",
            flush=True,
        )
        short, long = read(folder)
        print(
            f"two columns: {short:.2f} s from the file, {long:.1f} s from the log: {long / short:.0f} times (target {FASTER:.0f})",
            flush=True,
        )
        written = [str(Path(name) / made) for made in ("from-file.json", "from-log.json")]
        _, _, fast, memory = apart(command, "analyze", str(folder), "--json", written[0], tiny=args.tiny)
        parquet.unlink()
        _, _, slow, more = apart(command, "analyze", str(folder), "--json", written[1], tiny=args.tiny)
        stored, logged = (json.loads(Path(file).read_bytes()) for file in written)
        assert stored == logged, "the log has other numbers than the Parquet file"
    print(
        f"analyze: {fast:.1f} s and {memory:.0f} MiB with the file (target {MEMORY:.0f}), {slow:.1f} s and {more:.0f} MiB without"
    )
    return int(not args.tiny and (long / short < FASTER or size > SIZE * args.docs / 100_000 or memory > MEMORY))


if __name__ == "__main__":
    sys.exit(main())
