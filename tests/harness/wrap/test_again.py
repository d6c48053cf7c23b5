"""Aggregations that remember, write, print, draw, die or hang: what a call again gives, and that nothing of it is left."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from loguru import logger

from lmms_patch.harness.wrap import calls as module
from lmms_patch.harness.wrap.calls import Again, CallError
from lmms_patch.harness.wrap.known import RunState
from tests.harness.toys import Model, metrics, rows, run, write_task


def make(native: Any, args: Any = None, seconds: float = 30) -> Again:
    return Again({"m": native}, RunState(args), seconds)


# --- what an aggregation may hold on to -------------------------------------------------------------

REMEMBER = {
    "a dict of the module": """
        TOTAL = {"sum": 0.0}
        def total(items):
            TOTAL["sum"] += sum(items)
            return TOTAL["sum"]
    """,
    "a number of the module": """
        TOTAL = 0.0
        def total(items):
            global TOTAL
            TOTAL += sum(items)
            return TOTAL
    """,
    "a default argument": """
        def total(items, seen=[]):
            seen.extend(items)
            return sum(seen)
    """,
    "a closure": """
        def make():
            seen = []
            def total(items):
                seen.extend(items)
                return sum(seen)
            return total
        total = make()
    """,
    "an object in another module": """
        import os
        def total(items):
            os.seen = [*getattr(os, "seen", []), *items]
            return sum(os.seen)
    """,
    "a file beside its output": """
        import json, os
        def total(items, args):
            path = os.path.join(args.output_path, "kept.json")
            seen = json.load(open(path)) if os.path.exists(path) else []
            json.dump([*seen, *items], open(path, "w"))
            return sum([*seen, *items])
    """,
}


def load(folder: Path, source: str) -> Any:
    """Return the function ``total`` of a module, loaded as the harness loads it: in no table of modules."""
    (folder / "utils.py").write_text(textwrap.dedent(source))
    spec = importlib.util.spec_from_file_location("utils", folder / "utils.py")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(found := importlib.util.module_from_spec(spec))
    return found.total


REMEMBERS = "it remembers what it was asked before"


def outcome(again: Again, items: list[Any]) -> Any:
    try:
        return again("m", items)
    except CallError as error:
        return str(error)


@pytest.mark.parametrize("where", REMEMBER)
def test_each_call_is_as_the_first_or_there_is_no_number(tmp_path: Path, where: str) -> None:
    """With one item and with several, more calls than are made twice; and a call of the host's in between."""
    total, args = load(tmp_path, REMEMBER[where]), SimpleNamespace(output_path=str(tmp_path))
    again, kept = (
        make(total, args),
        where in ("a dict of the module", "a number of the module", "a file beside its output"),
    )
    for count in range(1, 2 * module._SURE):
        for items in ([float(count)], [count, 1.0, 2.0]):
            assert outcome(again, items) == (sum(items) if kept else REMEMBERS)
        if count == 3:
            assert (total([1, 2], args) if "args" in REMEMBER[where] else total([1, 2])) == 3, "nothing came back"
    if where == "an object in another module":
        del os.seen  # type: ignore[attr-defined]


def test_the_first_calls_are_made_twice(tmp_path: Path) -> None:
    """Of its first eight calls with one item each is made twice; of its later calls none is."""
    path = tmp_path / "calls"

    def counted(items: list[float]) -> float:
        with path.open("a") as file:
            file.write("x")
        return sum(items)

    again = make(counted)
    assert [again("m", [float(i)]) for i in range(20)] == list(range(20))
    assert len(path.read_text()) == 8 + 20


def test_a_memory_that_shows_late_ends_the_calls() -> None:
    """It adds up nothing but zeros at first, so the same calls agree; with several items they do not."""
    seen: list[float] = []

    def total(items: list[float]) -> float:
        seen.extend(items)
        return sum(seen)

    again = make(total)
    assert {again("m", [0.0]) for _ in range(10)} == {0}
    assert again("m", [4.0]) == 4
    assert [outcome(again, [1.0, 2.0]) for _ in range(2)] == [REMEMBERS] * 2


# --- what a call leaves -----------------------------------------------------------------------------


def test_files_go_to_a_folder_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    args = SimpleNamespace(output_path=str(tmp_path / "out"))

    def submit(items: list[float], args: Any) -> float:
        assert not os.listdir(".")
        assert not os.listdir(args.output_path)
        Path("here.json").write_text("{}")
        os.makedirs(f"{args.output_path}/submissions")
        return sum(items)

    again = make(submit, args)
    assert [again("m", [1.0, float(i)]) for i in range(12)] == [1.0 + i for i in range(12)]
    assert not list(tmp_path.iterdir())
    assert args.output_path == str(tmp_path / "out")
    assert os.getcwd() == str(tmp_path)


def test_nothing_is_printed_or_logged(capfd: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    sink = logger.add(lines.append)

    def talk(items: list[float]) -> float:
        print("out")
        print("err", file=sys.stderr)
        os.system("echo program")
        logger.warning("log")
        __import__("logging").warning("log")
        return 1.0

    assert make(talk)("m", [1.0]) == 1
    logger.remove(sink)
    assert capfd.readouterr() == ("", "")
    assert not lines


def test_random_numbers_are_drawn_from_the_callers_state() -> None:
    def draw(items: list[float]) -> float:
        return random.random() + 10 * np.random.random()

    again = make(draw)
    random.seed(1)
    np.random.seed(1)
    expected = random.random() + 10 * np.random.random()
    for _ in range(12):
        random.seed(1)
        np.random.seed(1)
        assert [again("m", [1.0]), again("m", [1.0])] == [expected] * 2, "the caller's state stays"
    assert random.random() + 10 * np.random.random() == expected


# --- calls that fail --------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [lambda: os._exit(3), lambda: os.kill(os.getpid(), 9)])
def test_a_call_that_dies_is_the_last_and_shifts_no_other(end: Any) -> None:
    """Neither at first nor when an aggregation was trusted."""

    def native(items: list[Any]) -> float:
        if items[0] is None:
            end()
        return float(items[0])

    again, died = make(native), "its process died"
    assert [outcome(again, [item]) for item in (0, None, 2)] == [0, died, died]
    trusted = make(native)
    assert [outcome(trusted, [item]) for item in (*range(10), None, 3, 4)] == [*range(10), died, died, died]


def test_a_call_that_raises_says_why() -> None:
    def native(items: list[Any]) -> float:
        if items[0] is None:
            sys.exit("out")
        return 1 / items[0]

    again = make(native)
    expected = ["ZeroDivisionError: division by zero", 0.5, "SystemExit: out", 1]
    assert [outcome(again, [item]) for item in (0, 2, None, 1)] == expected
    assert outcome(again, [lambda: 1]).startswith(
        ("AttributeError: Can't pickle", "PicklingError", "AttributeError: Can't get")
    )
    assert again.of_one("m", 0) is None


def alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}/stat") and ") Z " not in Path(f"/proc/{pid}/stat").read_text()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="it looks processes up as Linux shows them")
def test_a_call_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    def native(items: list[Any]) -> float:
        child = subprocess.Popen(["sleep", "60"])
        (tmp_path / f"{os.getpid()}").write_text(str(child.pid))
        time.sleep(60)
        return 1.0

    again, began = make(native, seconds=1), time.monotonic()
    assert [outcome(again, [1]), outcome(again, [2])] == ["it did not end within 1 s"] * 2
    assert time.monotonic() - began < 10
    started = [int(pid) for path in tmp_path.iterdir() for pid in (path.name, path.read_text())]
    assert len(started) == 2, "the call, and what it started"
    time.sleep(0.2)
    assert not any(map(alive, started))


SCRIPT = """
import os, sys, time
from lmms_patch.harness.wrap.calls import Again
from lmms_patch.harness.wrap.known import RunState
def hang(items):
    if items[0] < 0:
        time.sleep(60)
    return float(items[0])
again = Again({"m": hang}, RunState(), 1)
assert again("m", [1.0]) == 1
print(*(os.listdir(f"/proc/{os.getpid()}/task/{os.getpid()}") and open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()), flush=True)
if sys.argv[1] == "killed":
    again("m", [-1.0])
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="it looks processes up as Linux shows them")
@pytest.mark.parametrize("how", ["ended", "killed"])
def test_no_child_outlives_its_parent(how: str) -> None:
    """Also where the parent is killed while a call hangs: the child's own clock ends it, a second after the limit."""
    with subprocess.Popen([sys.executable, "-c", SCRIPT, how], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = list(map(int, parent.stdout.readline().split()))
        time.sleep(0.3)
        if how == "killed":
            parent.kill()
    assert len(children) == 1
    end = time.monotonic() + 10
    while any(map(alive, children)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(alive, children))


# --- in a run ---------------------------------------------------------------------------------

DOCS = 40
RIGHT_IN_A_CELL = 30


def answer(prompt: str, images: list[Any]) -> str:
    """Right on the full image of docs 0..19, and on the first cell of docs 0..29."""
    red, green, doc = images[0].getpixel((0, 0))
    whole = images[0].width == 60
    right = doc < 20 if whole else doc < RIGHT_IN_A_CELL and (red, green) == (0, 0)
    return str(doc) if right else "?"


def numbers(folder: Path, source: str) -> dict[str, Any]:
    scorer = "def score(doc, results):\n    return {'points': {'score': float(results[0] == doc['answer'])}}\n"
    (folder / "utils.py").write_text(textwrap.dedent(source) + "\n" + scorer)
    entry = {"metric": "points", "aggregation": "!function utils.total", "higher_is_better": True}
    write_task(folder, "toy", rows(DOCS), process_results="!function utils.score", metric_list=[entry])
    return metrics(run(Model(answer), "toy_rci2", folder), "toy_rci2")


def test_the_numbers_of_a_run_are_those_of_first_calls(tmp_path: Path) -> None:
    source = f"""
        SEEN = []
        def total(items):
            SEEN.extend(item["score"] for item in items)
            return sum(SEEN) / {DOCS}
    """
    found = numbers(tmp_path, source)
    fip, mpp = 20 / DOCS, RIGHT_IN_A_CELL / DOCS
    assert (found["points"], found["points_mpp2"]) == (fip, mpp)
    assert found["gate"] == 1
    assert found["rci2"] == pytest.approx(1 - mpp / fip)


def test_an_aggregation_that_draws_at_random_has_no_memory(tmp_path: Path) -> None:
    source = f"""
        import random
        def total(items):
            return sum(item["score"] for item in items) / {DOCS} + random.random() / 1000
    """
    random.seed(3)
    found = numbers(tmp_path, source)
    assert found["rci2"] is not None
    assert found["points_mpp2"] == pytest.approx(RIGHT_IN_A_CELL / DOCS, abs=0.001)
