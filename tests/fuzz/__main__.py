"""``python -m tests.fuzz``: many cases with a summary, or one case with everything that is known of it."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from pathlib import Path

from tests.fuzz import case, pool


def one(seed: int, number: int, harness: bool, keep: bool) -> int:
    """Run one case in this process, and tell everything of it."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz"))
    pool._made(folder, harness)
    case.preload()
    if harness:
        pool.small_harness()
    done = case.run(seed, number, folder, folder / "room", harness, keep=True)
    print(
        f"case {number}: {done.scenario}\ndamage: {done.damage}\ntyped: lmms-patch {shlex.join(done.words)!s}".encode(
            "utf-8", "backslashreplace"
        ).decode()
    )
    print(
        f"status {done.status}, {done.seconds:.2f} s: {done.kind}: {done.said}".encode(
            "utf-8", "backslashreplace"
        ).decode()
    )
    print(done.place, done.trace.encode("utf-8", "backslashreplace").decode(), sep="\n")
    print(f"its files: {folder / 'room'}" if keep else "")
    return int(done.kind != "ok")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--harness", action="store_true", help="the cases that need lmms-eval, in place of the others")
    parser.add_argument("--case", type=int, help="one case again")
    given = parser.parse_args()
    if given.case is not None:
        return one(given.seed, given.case, given.harness, True)
    found = []
    for done in pool.results(
        range(given.first, given.first + given.cases), given.seed, jobs=given.jobs, harness=given.harness
    ):
        found.append(done)
        if done.kind != "ok":
            print(
                f"case {done.number} ({done.scenario}): {done.kind}: {done.place} {done.said}"[:300]
                .encode("utf-8", "backslashreplace")
                .decode(),
                file=sys.stderr,
                flush=True,
            )
        if len(found) % 500 == 0:
            print(f"{len(found)} cases, {sum(one.kind != 'ok' for one in found)} wrong", file=sys.stderr, flush=True)
    print(pool.summary(found).encode("utf-8", "backslashreplace").decode())
    return int(any(one.kind != "ok" for one in found))


if __name__ == "__main__":
    sys.exit(main())
