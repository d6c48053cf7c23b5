"""Cases of the fuzzer, and that it sees what it is to see."""

import json
import os
import shutil
import sys
from random import Random
from types import SimpleNamespace

import pytest

from lmms_patch.app import cli
from lmms_patch.ask.spec import parse
from lmms_patch.errors import RecordError
from lmms_patch.harness.asking.earlier import earlier_scores
from lmms_patch.harness.asking.settings import REFERENCES
from lmms_patch.runs.run import find
from tests.fuzz import case, pool, scenarios, stock
from tests.fuzz.damage import damage
from tests.harness import warm
from tests.places import ROOT
from tests.sizes import DEEP, size

CASES = size(80, 800)
WITH_HARNESS = size(6, 40)


@pytest.fixture(scope="module")
def true_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stock")
    stock.make(folder)
    return folder


def none_is_wrong(found, count):
    assert len(found) == count
    assert not [one for one in found if one.kind != "ok"], pool.summary(found)
    assert len({one.scenario for one in found}) > 1


def test_damaged_files_and_odd_options(true_files):
    """No traceback, no hang, no half-written output, and the exit statuses of the docs.

    `python -m tests.fuzz` runs more of them.
    """
    found = list(pool.results(range(CASES), 6, made=true_files))
    none_is_wrong(found, CASES)
    statuses = {(one.scenario, one.status) for one in found}
    assert {
        ("show", 0),
        ("analyze", 0),
        ("compare", 0),
        ("gap", 0),
        ("gate", 1),
        ("magic stepsense", 0),
        ("leaderboard", 0),
    } <= statuses
    assert sum(one.status == 2 for one in found) < 0.9 * len(
        found
    )  # most calls must get further than to the first check


def test_a_quick_run_takes_no_harm_from_damaged_references(true_files, tmp_path, monkeypatch):
    """Runs named by LMMS_PATCH_REFERENCES are read before a model is asked: each is used or left aside with a line."""
    result = find([true_files / "runs" / "mc"])[0].results[0]
    spec = parse(result.task)
    views = [SimpleNamespace(n=0, cell=None), *(SimpleNamespace(n=2, cell=cell) for cell in range(1, 5))]
    task = SimpleNamespace(
        spec=spec,
        primary=result.metric,
        table=SimpleNamespace(views=views),
        golds=SimpleNamespace(plan=SimpleNamespace(digests={"docs": result.made.docs})),
    )
    used = 0
    for number in range(size(40, 1500)):
        stream, folder = Random(f"references:{number}"), tmp_path / str(number)
        shutil.copytree(true_files / "runs" / "mc", folder)
        for path in stream.sample(sorted(folder.iterdir()), k=stream.choice((0, 1, 1, 1, 2))):
            damage(stream, path, [])
        monkeypatch.setenv(REFERENCES, str(folder))
        scores = earlier_scores(task, range(result.docs))
        used += scores is not None
        assert scores is None or scores.shape == (1, result.docs, 5)
        shutil.rmtree(folder, ignore_errors=True)
    assert used > 5


# --- does it bite? --------------------------------------------------------------------------------


def seen(true_files, tmp_path, monkeypatch, show):
    """What a case says of a command that does something wrong."""
    monkeypatch.setattr("lmms_patch.app.api.show", show)
    monkeypatch.setattr(case, "SECONDS", 0.5)
    number = next(n for n in range(1000) if case.drawn(0, n, False)[0].name == "show")
    monkeypatch.setattr(case, "_prepare", lambda stream, call, true_files: "")
    return case.run(0, number, true_files, tmp_path)


def raises(folder):
    return {}["nothing"]


def leaves(folder):
    (folder / "new.json").write_text("{")
    raise RecordError("no")


def forgets(folder):
    raise RecordError("")


def spins(folder):
    while True:
        pass


def says_two_lines(folder):
    print("lmms-patch: one", file=sys.stderr)
    raise RecordError("two")


def exits(folder):
    raise SystemExit(7)


@pytest.mark.parametrize(
    ("show", "kind"),
    [
        (raises, "traceback"),
        (leaves, "input"),
        (forgets, "stderr"),
        (spins, "hang"),
        (says_two_lines, "stderr"),
        (exits, "traceback"),
    ],
)
def test_what_a_case_sees(true_files, tmp_path, monkeypatch, show, kind):
    done = seen(true_files, tmp_path, monkeypatch, show)
    assert done.kind == kind
    if kind == "traceback" and show is raises:
        assert done.said == "KeyError: 'nothing'"


def test_a_line_that_main_makes_of_an_unexpected_error_hides_nothing(true_files, tmp_path, monkeypatch):
    inner = cli.main

    def catches_all(argv):
        try:
            return inner(argv)
        except Exception:
            return cli._refused("unexpected")

    monkeypatch.setattr(cli, "main", catches_all)
    assert seen(true_files, tmp_path, monkeypatch, raises).kind == "traceback"


@pytest.mark.parametrize("scenario", [one for one in scenarios.SCENARIOS if not one.harness], ids=lambda one: one.name)
def test_true_files_are_read(scenario, true_files, tmp_path):
    """What is not damaged is not refused: else the cases would try nothing but the first check."""
    ends = []
    for number in range(size(3, 12) if scenario.weight >= 1 else size(1, 3)):
        stream = case.Random(number)
        (tmp_path / str(number)).mkdir()
        done = case.Done(number, scenario.name)
        case._run(scenario.make(stream, true_files, tmp_path / str(number)), scenario, done)
        assert done.kind == "ok", done.said
        ends.append(done.status)
    assert ends.count(2) <= len(ends) / 3 or scenario.name in ("tst", "schema")


FORKED = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.fuzz import pool
with open({told!r}, "w") as told:
    pool.work(range({count}), 0, Path({files!r}), Path({room!r}), True, told)
"""
"""A worker of the fuzzer, in a process that has imported lmms-eval."""


def test_task_files_profiles_and_prunings(true_files, tmp_path):
    """The commands that read through lmms-eval."""
    if DEEP:
        found = list(pool.results(range(WITH_HARNESS), 0, harness=True, made=true_files))
    else:
        files, told = shutil.copytree(true_files, tmp_path / "stock"), tmp_path / "told"
        code = FORKED.format(
            root=str(ROOT), told=str(told), count=WITH_HARNESS, files=str(files), room=str(tmp_path / "room")
        )
        status, _, said = warm.run(["python"], os.environ, first=code)
        assert status == 0, said[-4000:]
        found = [case.Done(**line) for line in map(json.loads, told.read_text().splitlines()) if "begun" not in line]
    none_is_wrong(found, WITH_HARNESS)
