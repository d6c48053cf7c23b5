"""How a run ends that was stopped, or that could not write: nothing is lost, and one line says where it is."""

import os
import time

import pytest

from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError
from lmms_patch.harness.asking import journal, seam
from lmms_patch.harness.asking.journal import Journal
from lmms_patch.harness.asking.ranks import Ranks
from tests.harness.askers import PerRequest, written
from tests.harness.asking.test_seam import asked_in, found_in
from tests.harness.toys import metrics, rows, write_task

TASK = "toy_rci2"


PORTION = 16


@pytest.fixture
def tasks(tmp_path):
    return write_task(tmp_path / "tasks", "toy", rows(12))


@pytest.fixture
def ended(monkeypatch):
    """What is said at the end of the process."""
    lines = []
    monkeypatch.setattr(journal, "fail_at_exit", lines.append)
    monkeypatch.setattr(journal, "has_failed", lambda: False)
    return lines


@pytest.fixture
def run(tasks, tmp_path):
    """What a run found, and its journal, which is older than all files."""
    found = found_in(tmp_path / "asked", PerRequest(), tasks, TASK)
    kept = Journal(tmp_path / "out" / journal.FOLDER / "run", Ranks(0, 1), tasks=[TASK])
    kept.write([(b"key", "answer")])
    kept._began = time.time() - 60
    return found, kept


def test_another_run_of_the_same_process_and_an_earlier_one_say_nothing_of_this_one(run, tmp_path, ended):
    found, kept = run
    kept._tasks = ["other_rci2"]
    [table] = written(found, tmp_path / "out" / "model", TASK).glob("*_samples_*.parquet")
    kept._sweep()
    kept._tasks = [TASK]
    os.utime(table, (1, 1))
    kept._sweep()
    assert kept.folder.is_dir()
    assert ended == []


@pytest.mark.parametrize("cut", [0.0, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("name", ["*_results.json", "*_samples_*.parquet"])
def test_what_a_full_disk_cut_keeps_the_journal(run, tmp_path, ended, name, cut):
    """Or a file that is gone; of a table that could not be written the run itself has said so."""
    found, kept = run
    [file] = written(found, tmp_path / "out" / "model", TASK).glob(name)
    content = file.read_bytes()
    if cut == 1:
        file.unlink()
    else:
        file.write_bytes(content[: int(len(content) * cut)])
    kept._sweep()
    assert kept.folder.is_dir()
    assert bool(ended) == ((name, cut) != ("*_samples_*.parquet", 1.0))
    assert all("the answers stay in" in said and "\n" not in said for said in ended)


def test_an_output_folder_that_cannot_be_written_is_refused_before_the_first_call(tasks, tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(
        OptionError, match=r"^--output_path \S*/out: nothing can be written there \(File exists\); type another folder$"
    ):
        asked_in(tmp_path / "out", model := PerRequest(), tasks, TASK)
    assert model.asked == []


class Interrupted(PerRequest):
    def one(self, request):
        if len(self.asked) >= 40:
            raise KeyboardInterrupt
        return super().one(request)


def test_ctrl_c_is_one_line_that_says_what_is_kept(tasks, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(seam, "on_command_line", lambda: True)
    with pytest.raises(SystemExit) as ended:
        asked_in(tmp_path / "out", Interrupted(), tasks, TASK, model="m")
    assert ended.value.code == 130
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "lmms-patch" in line]
    assert line.startswith("lmms-patch: stopped; 32 answers are kept in ")
    assert line.endswith("; type the same command to go on")
    asked_in(tmp_path / "out", again := PerRequest(), tasks, TASK, model="m")
    assert len(again.asked) == 12 * 5 - 32


def test_a_run_says_how_many_answers_an_earlier_process_gave(tasks, tmp_path, capsys):
    def kept(found):
        return metrics(found, TASK)["patch"]["made"].get("kept")

    assert kept(found_in(tmp_path / "whole", PerRequest(), tasks, TASK, model="m")) is None
    with pytest.raises(KeyboardInterrupt):
        asked_in(tmp_path / "out", Interrupted(), tasks, TASK, model="m")
    found = found_in(tmp_path / "out", PerRequest(), tasks, TASK, model="m")
    assert kept(found) == 32
    folder = written(found, tmp_path / "written", TASK)
    assert main(["show", str(folder)]) == 0
    assert "32 answers come from an earlier process of the same command" in " ".join(capsys.readouterr().out.split())
