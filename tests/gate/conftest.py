"""A run to judge, and the gate as a function."""

import pytest

from tests.gate.running import gate, rules_file
from tests.making import lean


@pytest.fixture
def run(tmp_path):
    """A run of 400 docs: 0.8 on full images, 0.6 on the best cell, and so an index of 0.25."""
    lean.write(tmp_path / "run", [lean.task(*lean.planted(400, 0.8, 0.6))])
    return tmp_path / "run"


@pytest.fixture
def asked(capsys, tmp_path):
    """Run the gate with some rules."""

    def ask(out, *given, baseline=None, more=(), **defaults):
        return gate(capsys, tmp_path, out, rules_file(tmp_path, *given, **defaults), baseline, *more)

    return ask


@pytest.fixture
def many(tmp_path):
    """Two models on two tasks."""
    for k, model in enumerate(("one", "two")):
        tasks = [
            lean.task(*lean.scored(300, 0.8, 0.6, j), name=name) for j, name in enumerate(("apple_rci2", "pear_rci2"))
        ]
        lean.write(tmp_path / "many" / model, tasks, model=model, date=f"2026-01-0{k + 1}")
    return tmp_path / "many"
