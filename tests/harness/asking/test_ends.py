"""How a run ends that was stopped, or that could not write: nothing is lost, and one line says where it is."""

import json
import os
import time

import pytest

from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError
from lmms_patch.files import read
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


def finished(out, docs=12):
    """Write what the host writes; the results file and the log."""
    stamp = out / "model" / "20260101_000000"
    stamp.parent.mkdir(parents=True)
    results, log = (stamp.with_name(f"{stamp.name}_{end}") for end in ("results.json", f"samples_{TASK}.jsonl"))
    results.write_text(json.dumps({"results": {TASK: {}}, "n-samples": {TASK: {"original": docs, "effective": docs}}}))
    log.write_text("".join(json.dumps({"doc_id": i, "text": "x" * 100}) + "\n" for i in range(docs)))
    return results, log


def journal_of(out):
    one = Journal(out / journal.FOLDER / "run", Ranks(0, 1), tasks=[TASK], logged=True)
    one.write([(b"key", "answer")])
    one._began = time.time() - 60
    return one


def test_a_whole_run_leaves_no_journal(tmp_path, ended):
    one = journal_of(tmp_path)
    finished(tmp_path)
    one._sweep()
    assert not (tmp_path / journal.FOLDER).exists()
    assert ended == []


def test_results_of_another_run_of_the_same_process_say_nothing_of_this_one(tmp_path, ended):
    one = journal_of(tmp_path)
    results, log = finished(tmp_path)
    results.write_text(results.read_text().replace(TASK, "other_rci2"))
    log.unlink()
    one._sweep()
    assert (tmp_path / journal.FOLDER / "run").is_dir()
    assert ended == []


CUTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99, "last line break")


@pytest.mark.parametrize(("which", "cut"), [*((0, cut) for cut in CUTS), *((1, cut) for cut in (*CUTS, "gone"))])
def test_what_a_full_disk_cut_keeps_the_journal(tmp_path, ended, which, cut):
    one = journal_of(tmp_path)
    file = finished(tmp_path)[which]
    content = file.read_bytes()
    if cut == "gone":
        file.unlink()
    else:
        file.write_bytes(content[:-1] if cut == "last line break" else content[: int(len(content) * cut)])
    one._sweep()
    assert (tmp_path / journal.FOLDER / "run").is_dir()
    (said,) = ended
    assert "the answers stay in" in said
    assert "\n" not in said


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


def test_ctrl_c_in_python_is_an_exception(tasks, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        asked_in(tmp_path / "out", Interrupted(), tasks, TASK)


class Broken(PerRequest):
    def one(self, request):
        super().one(request)
        return "half a sign: \ud83d"


def test_half_a_sign_can_be_written(tasks, tmp_path):
    found = json.loads(asked_in(tmp_path / "out", Broken(), tasks, TASK))
    answers = {one[0] for sample in found[1][TASK] for one in sample["resps"]}
    assert answers == {"half a sign: \ufffd"}
    json.dumps(found, ensure_ascii=False).encode()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "20260101_000000_results.json")
    with pytest.raises(OSError, match="no regular file"):
        read(tmp_path / "20260101_000000_results.json")


def test_a_run_says_how_many_answers_an_earlier_process_gave(tasks, tmp_path, capsys):
    def kept(found):
        return metrics(found, TASK)["patch"]["made"].get("kept")

    assert kept(found_in(tmp_path / "whole", PerRequest(), tasks, TASK, model="m")) is None
    with pytest.raises(KeyboardInterrupt):
        asked_in(tmp_path / "out", Interrupted(), tasks, TASK, model="m")
    found = found_in(tmp_path / "out", PerRequest(), tasks, TASK, model="m")
    assert kept(found) == 32
    sentence = "32 answers come from an earlier process of the same command"
    folder = written(found, tmp_path / "written", TASK)
    assert main(["show", str(folder)]) == 0
    assert sentence in " ".join(capsys.readouterr().out.split())
    (tmp_path / "rules.yaml").write_text("schema: 1\nrules:\n  - {name: looks, require: looks}\n")
    main(["gate", str(folder), "--config", str(tmp_path / "rules.yaml")])
    assert sentence in " ".join("".join(capsys.readouterr()).split())
