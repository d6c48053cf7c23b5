"""Damaged files and odd options are refused in a line; and the cases see what they are to see."""

import sys
from pathlib import Path
from random import Random

import pytest

from lmms_patch.app import cli
from lmms_patch.errors import RecordError
from tests.fuzz import calls, judge
from tests.sizes import size


@pytest.fixture(scope="module")
def true(tmp_path_factory):
    folder = tmp_path_factory.mktemp("true")
    calls.write_files(folder)
    return folder


@pytest.fixture(scope="module")
def true_tasks(true):
    """Task files beside the true files, for an lmms-eval that has not read its own 1,700: that takes 5 s a call."""
    from lmms_eval import tasks

    from lmms_patch.harness.plugin import install

    install()

    class Small(tasks.TaskManager):
        def __init__(self, *given, **named):
            super().__init__(*given, **{**named, "include_defaults": False})

    calls.write_tasks(true)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "TaskManager", Small)
        yield true


@pytest.fixture(scope="module")
def statuses():
    """Exit statuses of the cases so far."""
    return []


@pytest.mark.parametrize("number", range(size(80, 800)))
def test_case(true, tmp_path, statuses, number):
    ended = judge.case(number, calls.COMMANDS, true, tmp_path)
    assert not ended.wrong, ended
    statuses.append(ended.status)


def test_most_cases_get_further_than_the_first_check(statuses):
    assert statuses.count(2) <= max(0.85 * len(statuses), 20)


@pytest.mark.parametrize("number", range(size(6, 40)))
def test_case_with_the_harness(true_tasks, tmp_path, monkeypatch, number):
    monkeypatch.setenv("LMMS_PATCH_PROFILES", str(tmp_path / "tasks" / "profiles"))
    ended = judge.case(number, calls.WITH_HARNESS, true_tasks, tmp_path)
    assert not ended.wrong, ended


@pytest.mark.parametrize("name", [*calls.COMMANDS, *calls.WITH_HARNESS])
def test_true_files_are_read(request, name, tmp_path):
    """What is not damaged is not refused: else the cases would try nothing but the first check."""
    true, refused = request.getfixturevalue("true_tasks" if name in calls.WITH_HARNESS else "true"), []
    for number in range(turns := size(2, 12)):
        (tmp_path / str(number)).mkdir()
        template = {**calls.COMMANDS, **calls.WITH_HARNESS}[name]
        ended = judge.judged(calls.drawn(Random(number), template, true, tmp_path / str(number)))
        assert not ended.wrong, ended
        refused += [ended.told] * (ended.status == 2)
    assert len(refused) <= turns / 2 or name == "tst"


# --- does it bite? --------------------------------------------------------------------------------


def raises(folder):
    return {}["nothing"]


def leaves(folder: Path):
    (folder / "new.json").write_text("{")
    raise RecordError("no")


def leaves_a_part(folder: Path):
    (folder / ".out.part").write_text("{")
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


def seen(true, folder, monkeypatch, show):
    """Return what a case says of a command that does something wrong."""
    monkeypatch.setattr("lmms_patch.app.commands.show.show", show)
    monkeypatch.setattr(judge, "SECONDS", 0.5)
    return judge.judged(calls.drawn(Random(0), "show IN:runs/f1", true, folder)).wrong[0]


@pytest.mark.parametrize(
    ("show", "kind"),
    [
        (raises, "traceback"),
        (leaves, "input"),
        (leaves_a_part, "output"),
        (forgets, "stderr"),
        (spins, "hang"),
        (says_two_lines, "stderr"),
        (exits, "traceback"),
    ],
)
def test_what_a_case_sees(true, tmp_path, monkeypatch, show, kind):
    assert seen(true, tmp_path, monkeypatch, show).startswith(f"{kind}: ")


def test_a_line_that_main_makes_of_an_unexpected_error_hides_nothing(true, tmp_path, monkeypatch):
    inner = cli.main

    def catches_all(argv):
        try:
            return inner(argv)
        except Exception:
            return cli._refused("unexpected")

    monkeypatch.setattr(cli, "main", catches_all)
    assert "KeyError: 'nothing'" in seen(true, tmp_path, monkeypatch, raises)
