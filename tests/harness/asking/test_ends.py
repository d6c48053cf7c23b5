"""How a run ends that was stopped, or that could not write: nothing is lost, and one line says where it is."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError
from lmms_patch.harness import plugin
from lmms_patch.harness.asking import journal, seam
from lmms_patch.harness.asking.journal import Journal
from lmms_patch.harness.asking.rounds import Ranks
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


class Broken(PerRequest):
    def one(self, request):
        if len(self.asked) >= 40:
            raise RuntimeError("no kernel image")
        return super().one(request)


@pytest.mark.parametrize(
    ("output", "cached", "kept"),
    [
        (True, False, "32 answers are kept in "),
        (False, False, "no answer is kept: the run has no --output_path"),
        (False, True, "no answer is kept: the run has no --output_path"),
    ],
)
def test_an_exception_of_the_adapter_ends_the_run_with_a_line_that_says_what_is_kept(
    tasks, tmp_path, monkeypatch, output, cached, kept
):
    said = []
    monkeypatch.setattr(seam, "fail_at_exit", said.append)
    folder = tmp_path / "out" if output else ""
    more = {"use_cache": str(tmp_path / "cache")} if cached else {}
    with pytest.raises(RuntimeError, match="no kernel image"):
        found_in(folder, Broken(), tasks, TASK, model="m", run=more)
    [line] = said
    assert line.startswith(f"the run ended: RuntimeError: no kernel image; {kept}")


def test_two_runs_of_one_second_lose_nothing(tmp_path):
    names = [plugin._own_date(tmp_path, "20260101_235959") for _ in range(3)]
    assert names == ["20260101_235959", "20260102_000000", "20260102_000001"]
    (tmp_path / "20260102_000002_samples_toy_rci2.parquet").write_bytes(b"of a run without a results file")
    assert plugin._own_date(tmp_path, "20260102_000002") == "20260102_000003"


def test_a_client_keeps_its_event_loop_from_portion_to_portion(tasks, tmp_path):
    """As ``async_openai``: its client's connections belong to the loop of the first portion."""

    class Looping(PerRequest):
        loops = set()

        def generate_until(self, requests):
            async def run():
                self.loops.add(asyncio.get_running_loop())
                return super(Looping, self).generate_until(requests)

            return asyncio.run(run())

    before, model = asyncio.run, Looping()
    # in a thread of its own: a browser of other tests may keep a loop in this one
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asked_in, tmp_path / "out", model, tasks, TASK, model="m").result()
    assert len(model.asked) == 60 > 2 * PORTION
    [loop] = model.loops
    assert loop.is_closed()
    assert asyncio.run is before
