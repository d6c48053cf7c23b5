"""Aggregations that remember earlier calls: each call of ours is as the first."""

from __future__ import annotations

import ast
import functools
import importlib.util
import random
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from lmms_patch.harness.wrap.memory import Memory
from tests.harness.toys import Model, metrics, rows, run, write_task

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
    "a name that appears with the first call": """
        SEEN = None
        def total(items):
            global SEEN
            SEEN = [*(SEEN or []), *items]
            return sum(SEEN)
    """,
    "a list that another function of the module fills": """
        SEEN = []
        def add(item):
            SEEN.append(item)
        def total(items):
            for item in items:
                add(item)
            return sum(SEEN)
    """,
    "a default argument": """
        def total(items, seen=[]):
            seen.extend(items)
            return sum(seen)
    """,
    "a closure": """
        def make():
            seen = []
            count = 0.0
            def total(items):
                nonlocal count
                seen.extend(items)
                count = sum(seen)
                return count
            return total
        total = make()
    """,
    "an attribute of the function": """
        def total(items):
            total.seen = total.seen + list(items)
            return sum(total.seen)
        total.seen = []
    """,
    "an attribute of a class": """
        class Meter:
            seen = []
            @classmethod
            def add(cls, items):
                cls.seen.extend(items)
        def total(items):
            Meter.add(items)
            return sum(Meter.seen)
    """,
    "an object": """
        class Meter:
            def __init__(self):
                self.sum = 0.0
            def add(self, items):
                self.sum += sum(items)
                return self.sum
        METER = Meter()
        def total(items):
            return METER.add(items)
    """,
    "a bound method": """
        class Meter:
            def __init__(self):
                self.sum = 0.0
            def __call__(self, items):
                self.sum += sum(items)
                return self.sum
            def add(self, items):
                return self(items)
        total = Meter().add
    """,
    "a wrapped function": """
        import functools
        def counted(function):
            seen = []
            @functools.wraps(function)
            def inner(items):
                seen.extend(items)
                return function(seen)
            return inner
        @counted
        def total(items):
            return sum(items)
    """,
    "two names for one list": """
        FIRST = []
        SECOND = FIRST
        def total(items):
            FIRST.extend(items)
            return sum(SECOND)
    """,
    "another module of the task": """
        import beside_the_task
        def total(items):
            beside_the_task.SEEN.extend(items)
            return sum(beside_the_task.SEEN)
    """,
    "a table of functions": """
        SEEN = []
        def add(items):
            SEEN.extend(items)
            return sum(SEEN)
        BY_NAME = {"sum": add}
        def total(items):
            return BY_NAME["sum"](items)
    """,
}


def load(folder: Path, source: str, name: str = "utils") -> Any:
    """The function ``total`` of a module, loaded as the harness loads it."""
    lines = source.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    (folder / f"{name}.py").write_text("\n".join(line[indent:] for line in lines) + "\n")
    return loaded(folder / f"{name}.py", name).total


def loaded(file: Path, name: str) -> Any:
    """A module as the harness loads it for a task file: anew each time, and in no table of modules."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    return module


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beside_the_task.py").write_text("SEEN = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "beside_the_task", raising=False)


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize("where", REMEMBER)
def test_a_fresh_call_neither_sees_nor_leaves_anything(tmp_path: Path, where: str) -> None:
    total = load(tmp_path, REMEMBER[where])
    memory = Memory(total)

    def fresh(items: list[float]) -> float:
        with memory.fresh():
            return float(total(items))

    assert [fresh([1, 2]), fresh([1, 2]), fresh([5])] == [3, 3, 5]
    assert total([1, 2]) == 3, "what the fresh calls did shows in a plain one"
    assert total([4]) == 7, "a plain call lost its memory"
    assert fresh([5]) == 5
    assert total([1]) == 8
    assert not memory.uncopied


def test_a_call_that_raises_leaves_nothing_either(tmp_path: Path) -> None:
    total = load(tmp_path, "SEEN = []\ndef total(items):\n    SEEN.extend(items)\n    return sum(SEEN) / len(items)\n")
    memory = Memory(total)
    with pytest.raises(TypeError), memory.fresh():
        total([1, "x"])
    assert total([2]) == 2


def test_only_what_can_change_is_kept(tmp_path: Path) -> None:
    """A plain mean over named constants has nothing to remember, and costs nothing."""
    source = "import math\nimport random\nfrom collections import Counter\nN = 3\nNAMES = ('a', 'b')\ndef total(items):\n    Counter(NAMES)\n"
    total = load(tmp_path, source + "    random.random()\n    return math.fsum(items) * N\n")
    memory = Memory(functools.partial(total))
    assert memory.names == memory.uncopied == []


def test_what_cannot_be_copied_is_named(tmp_path: Path) -> None:
    total = load(
        tmp_path,
        "import threading\nLOCK = threading.Lock()\ndef total(items):\n    with LOCK:\n        return sum(items)\n",
    )
    memory = Memory(total)
    assert memory.uncopied == ["LOCK"]
    with memory.fresh():
        assert total([1, 2]) == 3


# --- in a run ---------------------------------------------------------------------------------

DOCS = 40
RIGHT_IN_A_CELL = 30


def answer(prompt: str, images: list[Any]) -> str:
    """Right on the full image of docs 0..19, and on the first cell of docs 0..29."""
    red, green, doc = images[0].getpixel((0, 0))
    whole = images[0].width == 60
    right = doc < 20 if whole else doc < RIGHT_IN_A_CELL and (red, green) == (0, 0)
    return str(doc) if right else "?"


def numbers(folder: Path, source: str, **more: Any) -> dict[str, Any]:
    lines = source.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    scorer = "def score(doc, results):\n    return {'points': {'score': float(results[0] == doc['answer'])}}\n"
    (folder / "utils.py").write_text("\n".join(line[indent:] for line in lines) + "\n" + scorer)
    entry = {"metric": "points", "aggregation": "!function utils.total", "higher_is_better": True}
    write_task(folder, "toy", rows(DOCS), process_results="!function utils.score", metric_list=[entry])
    return metrics(run(Model(answer), "toy_rci2", folder, **more), "toy_rci2")


SUMS = """
    SEEN = []
    def total(items):
        SEEN.extend(item["score"] for item in items)
        return sum(SEEN) / {docs}
"""


def test_the_numbers_of_a_run_are_those_of_first_calls(tmp_path: Path) -> None:
    found = numbers(tmp_path, SUMS.replace("{docs}", str(DOCS)))
    fip, mpp = 20 / DOCS, RIGHT_IN_A_CELL / DOCS
    assert (found["points"], found["points_mpp2"]) == (fip, mpp)
    assert found["gate"] == 1
    assert found["rci2"] == pytest.approx(1 - mpp / fip)


def test_a_memory_that_cannot_be_set_back_leaves_no_index(tmp_path: Path) -> None:
    """The sums lie in a file, where no copy reaches them."""
    source = f"""
        import json
        import os
        KEPT = {str(tmp_path / "kept.json")!r}
        def total(items):
            seen = json.load(open(KEPT)) if os.path.exists(KEPT) else []
            seen += [item["score"] for item in items]
            json.dump(seen, open(KEPT, "w"))
            return sum(seen) / {DOCS}
    """
    found = numbers(tmp_path, source)
    assert found["points"] == 20 / DOCS, "the harness's own number stands"
    assert found["points_mpp2"] is found["rci2"] is found["gap2"] is None
    reason = found["patch"]["analysis"]["grids"]["2"]["index"]["reason"]
    assert (
        reason == "the aggregation of points remembers what it was asked before: of the same docs it gave 0.5, then 1"
    )


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


# --- the installed harness --------------------------------------------------------------------


CHANGES = {"append", "extend", "update", "add", "setdefault", "insert", "pop", "remove", "clear", "popitem"}


def test_every_aggregation_of_the_harness_that_writes_to_its_module_can_be_set_back() -> None:
    """Such aggregations are found by reading sources, apart from ``Memory``."""
    import lmms_eval.tasks

    root = Path(next(iter(lmms_eval.tasks.__path__)))
    named = aggregations_of(root)
    assert sum(map(len, named.values())) > 300
    writing = {
        (file, name): written for file, names in named.items() for name in names if (written := writes(file, name))
    }
    assert {f"{file.parent.name}/{name}" for file, name in writing} >= {
        "ocrbench/ocrbench_aggregate_accuracy",
        "spatialtreebench/spatialtreebench_aggregate_results",
    }
    for (file, name), written in writing.items():
        try:
            function = getattr(loaded(file, "utils"), name)
        except ImportError:
            continue  # needs a package that is not installed: the task cannot be loaded either
        memory = Memory(function)
        assert written <= set(memory.names), (str(file), name, memory.uncopied)


def aggregations_of(root: Path) -> dict[Path, set[str]]:
    """By source file, the functions that task files name as aggregations."""
    found: dict[Path, set[str]] = {}
    for path in [*root.rglob("*.yaml"), *root.rglob("*_yaml")]:
        for module, name in re.findall(
            r"aggregation:\s*!function\s+[\"']?([\w.]+)\.(\w+)", path.read_text(errors="replace")
        ):
            file = path.parent / f"{module}.py"
            if file.is_file():
                found.setdefault(file, set()).add(name)
    return found


def writes(file: Path, name: str) -> set[str]:
    """The names of a module that a function of it writes to, itself or through functions of the module that it calls."""
    tree = parsed(file)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assigned = {
        t.id for node in tree.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)
    }
    todo, seen, out = [name], set(), set()
    while todo:
        if (here := todo.pop()) in seen or here not in functions:
            continue
        seen.add(here)
        nodes = list(ast.walk(functions[here]))
        stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        shared = {one for node in nodes if isinstance(node, ast.Global) for one in node.names}
        out |= shared & stored
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AugAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                out |= {base(target) for target in targets if not isinstance(target, ast.Name)} & (
                    assigned - (stored - shared)
                )
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
                out |= {base(node.func)} & (assigned - (stored - shared))
            elif isinstance(node, ast.Name):
                todo.append(node.id)
    return out


@functools.cache
def parsed(file: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(file.read_text())


def base(node: ast.AST) -> str:
    """``a`` of ``a.b[c].d``."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
