"""Many cases, in processes that may hang or die: each case is then named, and the others go on."""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import io
import json
import os
import resource
import selectors
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from tests.fuzz import case
from tests.fuzz.case import Done, drawn

SILENT = 150
"""Seconds without a word of a worker: it is stopped, and its case counts as one that hangs."""
ADDRESSES = 12 * 2**30
"""Bytes of address space of a worker; what asks for more gets a MemoryError, which is a traceback."""


def work(numbers: Sequence[int], seed: int, true_files: Path, room: Path, harness: bool, say: IO[str]) -> None:
    """Run cases in this process, and write a line of JSON for each: its number before, what came of it after."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    case.preload()
    if harness and (true_files / "tasks").exists():
        small_harness()
    elif harness:  # the only worker makes them itself: it has lmms-eval loaded
        from tests.fuzz import stock

        with contextlib.redirect_stdout(io.StringIO()):
            stock.make_for_harness(true_files)
    for number in numbers:
        print(json.dumps({"begun": number}), file=say, flush=True)
        done = case.run(seed, number, true_files, room, harness)
        print(json.dumps(dataclasses.asdict(done)), file=say, flush=True)


def small_harness() -> None:
    """Let lmms-eval know only the tasks of a case, and not its own 1,700: reading those takes 5 s a call, and none of them is damaged."""
    from lmms_eval import tasks

    from lmms_patch.harness.plugin import install

    install()

    class Small(tasks.TaskManager):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **{**named, "include_defaults": False})

    tasks.TaskManager = Small


def results(
    cases: Sequence[int], seed: int, *, jobs: int = 1, harness: bool = False, made: Path | None = None
) -> Iterator[Done]:
    """What came of some cases, as they end.

    Args:
        cases: their numbers.
        seed: of all of them.
        jobs: processes at once.
        harness: the cases that need lmms-eval, in place of the others.
        made: the true files that need no lmms-eval; None: they are made.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz") as name:
        true_files = Path(name) / "stock"
        if made:
            shutil.copytree(made, true_files)
        else:
            true_files.mkdir()
            _made(true_files, harness and jobs > 1)
        left = [list(cases[i::jobs]) for i in range(jobs)]
        with selectors.DefaultSelector() as waiting:
            for i, numbers in enumerate(left):
                if numbers:
                    _start(waiting, numbers, seed, Path(name), i, harness)
            while waiting.get_map():
                ready = waiting.select(SILENT)
                for key, _ in ready or [(key, 0) for key in list(waiting.get_map().values())]:
                    yield from _heard(waiting, key, not ready, seed, Path(name), harness)


def _made(folder: Path, harness: bool) -> None:
    """The true files, made by a process of its own: it prints, and imports what a worker need not."""
    code = f"from pathlib import Path; from tests.fuzz import stock; stock.make(Path({str(folder)!r}))"
    code += f"; stock.make_for_harness(Path({str(folder)!r}))" if harness else ""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the true files cannot be made: {done.stderr[-2000:]}")


def _start(waiting: selectors.BaseSelector, numbers: list[int], seed: int, folder: Path, i: int, harness: bool) -> None:
    words = [
        sys.executable,
        "-m",
        "tests.fuzz.pool",
        str(seed),
        str(folder / "stock"),
        str(folder / f"room{i}-{numbers[0]}"),
        str(int(harness)),
    ]
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=sys.stderr if os.environ.get("FUZZ_TELL") else subprocess.DEVNULL,
        text=True,
        bufsize=1,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "NO_PROXY": "*"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(numbers) + "\n")
    process.stdin.close()
    waiting.register(process.stdout, selectors.EVENT_READ, {"process": process, "left": numbers, "i": i, "now": None})


def _heard(
    waiting: selectors.BaseSelector, key: selectors.SelectorKey, silent: bool, seed: int, folder: Path, harness: bool
) -> Iterator[Done]:
    """What one worker says; where it died or is silent, its case is named, and another worker goes on."""
    known, process = key.data, key.data["process"]
    line = "" if silent else process.stdout.readline()
    if line:
        said = json.loads(line)
        if "begun" in said:
            known["now"] = said["begun"]
        else:
            known["left"].remove(said["number"])
            known["now"] = None
            yield Done(**said)
        return
    waiting.unregister(key.fileobj)
    process.kill()
    status = process.wait()
    process.stdout.close()
    if known["left"]:
        number = known["now"] if known["now"] is not None else known["left"][0]
        known["left"].remove(number)
        what = f"silent for {SILENT} s" if silent else f"the process died with status {status}"
        yield Done(number, drawn(seed, number, harness)[0].name, kind="hang" if silent else "death", said=what)
        if known["left"]:
            _start(waiting, known["left"], seed, folder, known["i"], harness)


def summary(found: Sequence[Done]) -> str:
    """The counts by command and outcome, and what is wrong, each place once with the numbers of its first cases."""
    lines = [
        f"{len(found)} cases, {sum(one.kind != 'ok' for one in found)} wrong; {sum(one.seconds for one in found):.0f} s of computing"
    ]
    width = max((len(one.scenario) for one in found), default=0)
    for name in sorted({one.scenario for one in found}):
        own = [one for one in found if one.scenario == name]
        statuses = Counter(str(one.status) for one in own)
        kinds = Counter(one.kind for one in own)
        slowest = max(one.seconds for one in own)
        lines.append(
            f"  {name:<{width}}  {len(own):>6}  status {dict(sorted(statuses.items()))}  {dict(kinds)}  slowest {slowest:.1f} s"
        )
    groups: dict[tuple[str, ...], list[Done]] = {}
    for one in found:
        if one.kind != "ok":
            what = one.place if one.place else " ".join(one.said.split())[:100]
            groups.setdefault((one.kind, what), []).append(one)
    for (kind, what), own in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        numbers = ", ".join(str(one.number) for one in own[:4])
        lines.append(
            f"{len(own):>5} {kind}: {what}  [{', '.join(sorted({one.scenario for one in own}))}; cases {numbers}]"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    numbers = json.loads(sys.stdin.readline())
    out = os.fdopen(os.dup(1), "w", buffering=1)
    room = Path(sys.argv[3])
    room.mkdir(parents=True, exist_ok=True)
    work(numbers, int(sys.argv[1]), Path(sys.argv[2]), room, sys.argv[4] == "1", out)
