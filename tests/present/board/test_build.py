"""The board's folder: what is read again, what stays, what is written, and that nothing is half-written."""

import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import jsonschema
import pytest

from lmms_patch.app import schemas
from lmms_patch.errors import OptionError, PatchError, RecordError
from lmms_patch.present.board import store, write
from lmms_patch.present.board.build import leaderboard
from tests.making.boards import blind_task, document, index_task, tst_task  # fmt: skip
from tests.making.boards import write as write_runs
from tests.making.runs import mc_run, write_run

FILES = {
    write.LOCK,
    "board.json",
    "index.html",
    "leaderboard.csv",
    "leaderboard.json",
    "leaderboard.md",
    "model-index",
    "models",
}


@pytest.fixture
def reads(monkeypatch):
    """The results files that are read with their logs, in order."""
    found = []
    real = store.remember
    monkeypatch.setattr(store, "remember", lambda run: found.append(run.path) or real(run))
    return found


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def models(built):
    return {entry.model for group in built.board.groups for entry in group.entries}


def test_a_folder_is_made(tmp_path):
    (path,) = write_runs(tmp_path / "runs", document("org/m"))
    built = leaderboard([tmp_path / "runs"], tmp_path / "new" / "board")
    board = tmp_path / "new" / "board"
    assert {one.name for one in board.iterdir()} == FILES
    assert (board / "model-index" / "org__m.md").is_file()
    assert (board / "models" / "org__m.html").is_file()
    assert built.update.read == 1
    assert built.update.gone == 0
    (run,) = json.loads((board / "leaderboard.json").read_text())["runs"]
    assert run["files"][0]["path"] == "../../runs/run0/20260101_000000_results.json"
    assert run["files"][0]["size"] == path.stat().st_size


def test_real_numbers_arrive_unchanged(tmp_path):
    """The board shows what the results file has: nothing is computed anew."""
    path = write_run(tmp_path / "run", {"toy_rci2": mc_run(n=60)})
    leaderboard([tmp_path / "run"], tmp_path / "board")
    values = json.loads(path.read_text())["results"]["toy_rci2"]
    (group,) = json.loads((tmp_path / "board" / "board.json").read_text())["groups"]
    (row,) = group["table"]["rows"]
    analysis = values["patch,none"]["analysis"]
    assert row["index"]["value"] == values["rci2,none"]
    assert row["index"]["low"] == values["rci2_low,none"]
    assert row["fip"]["value"] == values["acc,none"]
    assert row["mpp"]["value"] == pytest.approx(values["acc_mpp2,none"])
    assert row["adj"]["value"] == values["rci2_adj,none"]
    assert row["chance"]["value"] == values["chance,none"]
    assert row["span"] == analysis["grids"]["2"]["span"]


def test_the_store_is_as_its_schema_says(tmp_path):
    write_runs(
        tmp_path / "runs",
        document("a", [index_task(), blind_task()]),
        document("b", [tst_task()]),
        document("c", [index_task(grids={2: None, 3: None})]),
    )
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    jsonschema.Draft202012Validator(schemas.load("leaderboard")).validate(
        json.loads((tmp_path / "board" / "leaderboard.json").read_text())
    )


def test_a_second_time_nothing_is_read_and_nothing_changes(tmp_path, reads):
    write_runs(tmp_path / "runs", *(document(f"m{i}") for i in range(3)))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    made = [
        path for path in (tmp_path / "board").rglob("*") if path.name != ".leaderboard.lock"
    ]  # some versions of filelock touch their file
    before, times = contents(tmp_path / "board"), {path: path.stat().st_mtime_ns for path in made}
    assert len(reads) == 3
    again = leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert len(reads) == 3
    assert again.written == ()
    assert contents(tmp_path / "board") == before
    assert {path: path.stat().st_mtime_ns for path in made} == times


def test_both_pages_say_the_state_of_the_board(tmp_path):
    """A killed run may leave pages of two states; the state is another where a number is."""

    def states(folder):
        pages = [(folder / name).read_text() for name in ("leaderboard.md", "index.html")]
        return {found for page in pages for found in re.findall(r"State: ([0-9a-f]{8})\b", page)}

    write_runs(tmp_path / "runs", document("a"))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    [before] = states(tmp_path / "board")
    write_runs(tmp_path / "more", document("b"))
    leaderboard([tmp_path / "more"], tmp_path / "board")
    [after] = states(tmp_path / "board")
    assert before != after


def test_the_order_of_adding_changes_nothing(tmp_path):
    one, two, three = write_runs(
        tmp_path / "runs", *(document(f"m{i}", date=f"2026010{i + 1}_000000") for i in range(3))
    )
    leaderboard([tmp_path / "runs"], tmp_path / "whole")
    for path in (three, one, two):
        leaderboard([path], tmp_path / "steps")
    assert contents(tmp_path / "steps") == contents(tmp_path / "whole")


def test_one_more_run_is_the_only_one_read(tmp_path, reads):
    write_runs(tmp_path / "runs", *(document(f"m{i}") for i in range(3)))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    del reads[:]
    (new,) = write_runs(tmp_path / "runs" / "more", document("new"))
    built = leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert reads == [new]
    assert models(built) == {"m0", "m1", "m2", "new"}
    assert not {name for name in built.written if name.startswith("model") and "new" not in name}


def test_a_touched_file_is_not_read_a_changed_one_is(tmp_path, reads):
    (path,) = write_runs(tmp_path / "runs", document("m"))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    os.utime(path, ns=(1, 1))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert len(reads) == 1
    write_runs(tmp_path / "runs", document("other"))
    built = leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert len(reads) == 2
    assert models(built) == {"other"}
    assert [one.name for one in (tmp_path / "board" / "model-index").iterdir()] == ["other.md"]
    assert [one.name for one in (tmp_path / "board" / "models").iterdir()] == ["other.html"]


def test_runs_that_have_gone_stay_until_the_board_is_made_fresh(tmp_path):
    one, _ = write_runs(tmp_path / "runs", document("gone"), document("here"))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    shutil.rmtree(one.parent)
    built = leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert models(built) == {"gone", "here"}
    assert built.update.gone == 1
    fresh = leaderboard([tmp_path / "runs"], tmp_path / "board", fresh=True)
    assert models(fresh) == {"here"}
    assert [one.name for one in (tmp_path / "board" / "model-index").iterdir()] == ["here.md"]


def test_without_runs_the_board_is_written_again(tmp_path):
    write_runs(tmp_path / "runs", document("m"))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    shutil.rmtree(tmp_path / "runs")
    assert leaderboard([], tmp_path / "board", by="fip").board.by.key == "fip"
    with pytest.raises(RecordError, match="no board here yet, and no runs were given"):
        leaderboard([], tmp_path / "other")


def test_copies_of_one_file_are_one_run(tmp_path):
    write_runs(tmp_path / "runs", document("m"))
    shutil.copytree(tmp_path / "runs", tmp_path / "copy")
    built = leaderboard([tmp_path / "runs", tmp_path / "copy"], tmp_path / "board")
    assert built.board.groups[0].entries[0].runs == 1
    shutil.rmtree(tmp_path / "runs")
    again = leaderboard([tmp_path / "copy"], tmp_path / "board")
    assert (again.update.read, again.update.gone, again.board.runs) == (0, 0, 1)


def test_a_moved_board_and_moved_runs_know_each_other(tmp_path, reads):
    write_runs(tmp_path / "all" / "runs", document("m"))
    leaderboard([tmp_path / "all" / "runs"], tmp_path / "all" / "board")
    os.rename(tmp_path / "all", tmp_path / "elsewhere")
    assert leaderboard([tmp_path / "elsewhere" / "runs"], tmp_path / "elsewhere" / "board").update.read == 0
    assert len(reads) == 1


def test_other_files_in_the_folder_stay(tmp_path):
    board = tmp_path / "board"
    (board / "model-index").mkdir(parents=True)
    (board / "README.md").write_text("mine")
    (board / "model-index" / "mine.md").write_text("mine")
    (board / "models").mkdir()
    (board / "models" / "mine.html").write_text("mine")
    write_runs(tmp_path / "runs", document("m"))
    leaderboard([tmp_path / "runs"], board)
    leaderboard([tmp_path / "runs"], board, fresh=True)
    assert {(board / name).read_text() for name in ("README.md", "model-index/mine.md", "models/mine.html")} == {"mine"}


def test_a_store_cannot_have_other_files_removed(tmp_path):
    write_runs(tmp_path / "runs", document("m"))
    board = tmp_path / "board"
    leaderboard([tmp_path / "runs"], board)
    (tmp_path / "precious.md").write_text("x")
    (board / "README.md").write_text("x")
    data = json.loads((board / "leaderboard.json").read_text())
    data["written"] |= {
        "../precious.md": "1",
        "README.md": "1",
        "model-index/../../precious.md": "1",
        "models/../README.md": "1",
    }
    (board / "leaderboard.json").write_text(json.dumps(data))
    leaderboard([tmp_path / "runs"], board)
    assert (tmp_path / "precious.md").exists()
    assert (board / "README.md").exists()


# --- what is damaged ---


def bad_value(change):
    found = document()
    change(found["results"]["toy_pcri3"]["patch,none"]["analysis"])
    return json.dumps(found)


DAMAGED = {
    "cut": json.dumps(document())[:-400],
    "empty": "",
    "binary": b"\x80\x81\x00\xff",
    "a list": "[]",
    "another schema": json.dumps(document()).replace('"schema": 2', '"schema": 99'),
    "unknown kind": json.dumps(document()).replace('"kind": "pcri"', '"kind": "new"'),
    "a text for a number": bad_value(lambda a: a["grids"]["3"]["index"].update(value="1")),
    "NaN": bad_value(lambda a: a["grids"]["3"]["index"].update(value=float("nan"))),
    "ends in the wrong order": bad_value(lambda a: a["grids"]["3"]["index"].update(low=0.5, high=-0.5)),
    "half an interval": bad_value(lambda a: a["grids"]["3"]["index"].update(low=None)),
    "no gap": bad_value(lambda a: a["grids"]["3"].pop("gap")),
    "no chance": bad_value(lambda a: a.pop("chance")),
    "grids a list": bad_value(lambda a: a.update(grids=[])),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_results_file_is_one_line_and_the_board_stays(tmp_path, damage):
    write_runs(tmp_path / "runs", document("m"))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    before = contents(tmp_path / "board")
    bad = tmp_path / "runs" / "20260202_000000_results.json"
    data = DAMAGED[damage]
    bad.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(RecordError) as caught:
        leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert str(bad) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert contents(tmp_path / "board") == before
    with pytest.raises(RecordError):
        leaderboard([tmp_path / "runs"], tmp_path / "never")
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[:-30], "not a whole board"),
        (lambda text: "", "not a whole board"),
        (lambda text: "[]", "not a whole board"),
        (
            lambda text: text.replace('"schema":1', '"schema":2', 1),
            "schema 2; this version of lmms-patch reads schema 1",
        ),
        (lambda text: text.replace('"sha256"', '"sha"'), "changed or is damaged"),
        (lambda text: text.replace('"kind":"pcri"', '"kind":"x"'), "changed or is damaged"),
        (lambda text: text.replace('"value":0.25', '"value":"0.25"'), "changed or is damaged"),
        (lambda text: text.replace('"runs":[', '"runs":[7,'), "changed or is damaged"),
    ],
)
def test_a_damaged_store_is_one_line_that_names_the_way_out(tmp_path, damage, words):
    write_runs(tmp_path / "runs", document("m"))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    path = tmp_path / "board" / "leaderboard.json"
    text = path.read_text()
    assert damage(text) != text
    path.write_text(damage(text))
    before = contents(tmp_path / "board")
    with pytest.raises(RecordError, match=words) as caught:
        leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert "--fresh" in str(caught.value)
    assert contents(tmp_path / "board") == before
    leaderboard([tmp_path / "runs"], tmp_path / "board", fresh=True)
    assert path.read_text() == text


def test_folders_without_runs(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordError, match="give the folder that was --output_path of a run"):
        leaderboard([tmp_path / "empty"], tmp_path / "board")
    with pytest.raises(RecordError, match="no-such"):
        leaderboard([tmp_path / "no-such"], tmp_path / "board")
    assert not (tmp_path / "board").exists()


def test_options_that_are_not_possible(tmp_path):
    write_runs(tmp_path / "runs", document("m"))
    with pytest.raises(OptionError, match=r"no benchmark 'toi'.*did you mean toy\?"):
        leaderboard([tmp_path / "runs"], tmp_path / "board", over=["toi"])
    (tmp_path / "file").write_text("")
    with pytest.raises(PatchError, match="not a folder"):
        leaderboard([tmp_path / "runs"], tmp_path / "file")
    assert not (tmp_path / "board").exists()


# --- writing ---


@pytest.mark.parametrize("fails_at", range(8))
def test_an_interrupted_write_leaves_the_old_board(tmp_path, monkeypatch, fails_at):
    write_runs(tmp_path / "runs", document("old"))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    before = contents(tmp_path / "board")
    write_runs(tmp_path / "runs" / "more", document("new"))
    real, calls = os.replace, []

    def replace(source, target):
        calls.append(target)  # those after the failure put back what was there
        if len(calls) == fails_at + 1:
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    if fails_at < 7:  # five files of the board, and a card and a page of the new model
        with pytest.raises(PatchError, match="No space left on device"):
            leaderboard([tmp_path / "runs"], tmp_path / "board")
        assert contents(tmp_path / "board") == before
    else:
        leaderboard([tmp_path / "runs"], tmp_path / "board")
        assert contents(tmp_path / "board") != before


def test_a_board_that_cannot_be_written_is_not_begun(tmp_path, monkeypatch):
    write_runs(tmp_path / "runs", document("m"))

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(write.files, "temporary", refuse)
    with pytest.raises(PatchError, match=r"cannot be written \(Permission denied\)"):
        leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert not (tmp_path / "board").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder(tmp_path):
    write_runs(tmp_path / "runs", document("m"))
    (tmp_path / "board").mkdir(mode=0o555)
    with pytest.raises(PatchError, match="Permission denied"):
        leaderboard([tmp_path / "runs"], tmp_path / "board")


def test_a_folder_in_the_place_of_a_file(tmp_path):
    write_runs(tmp_path / "runs", document("m"))
    (tmp_path / "board" / "index.html").mkdir(parents=True)
    with pytest.raises(PatchError, match="cannot be written"):
        leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert set(contents(tmp_path / "board")) == {write.LOCK}


def test_unicode_paths_and_names(tmp_path):
    write_runs(tmp_path / "läufe 测试", document("模型 🦙", [index_task("бенчмарк")]))
    built = leaderboard([tmp_path / "läufe 测试"], tmp_path / "tafel ü")
    assert models(built) == {"模型 🦙"}
    assert "模型 🦙" in (tmp_path / "tafel ü" / "index.html").read_text(encoding="utf-8")
    assert "бенчмарк" in (tmp_path / "tafel ü" / "leaderboard.md").read_text(encoding="utf-8")
    assert leaderboard([tmp_path / "läufe 测试"], tmp_path / "tafel ü").written == ()


def test_what_must_stay_secret_is_not_stored(tmp_path):
    write_runs(
        tmp_path / "runs", document("m", args="model_version=gpt,api_key=sk-SECRET,base_url=https://me:SECRET@host/v1")
    )
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert b"SECRET" not in b"".join(contents(tmp_path / "board").values())
    (run,) = store.load(tmp_path / "board").runs
    assert run.model_args == "model_version=gpt,api_key=...,base_url=https://...@host/v1"


def test_folders_of_cards_that_are_links_are_not_written_through(tmp_path):
    write_runs(tmp_path / "runs", document("m"))
    (tmp_path / "board").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "board" / "model-index").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PatchError, match="model-index is a link"):
        leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert not list((tmp_path / "elsewhere").iterdir())


# --- two updates at once ---


def test_an_update_waits_for_another_and_loses_nothing_of_it(tmp_path, monkeypatch):
    """One has read the board and not written it yet when the other begins: both runs must be on it."""
    for name in ("one", "two"):
        write_runs(tmp_path / name, document(name))
    has_read, told, real = threading.Event(), [], store.update

    def slow(*arguments):
        found = real(*arguments)
        if threading.current_thread() is first:
            has_read.set()
            time.sleep(0.3)
        return found

    monkeypatch.setattr(store, "update", slow)
    first = threading.Thread(target=leaderboard, args=([tmp_path / "one"], tmp_path / "board"))
    first.start()
    assert has_read.wait(20)
    leaderboard([tmp_path / "two"], tmp_path / "board", tell=told.append)
    first.join()
    assert {run.model for run in store.load(tmp_path / "board").runs} == {"one", "two"}
    assert told == [f"{tmp_path / 'board'}: waiting for another update of this board"]


def test_many_processes_at_once(tmp_path):
    for i in range(4):
        write_runs(tmp_path / f"runs{i}", document(f"m{i}"))
    context = multiprocessing.get_context("fork")
    updates = [
        context.Process(target=leaderboard, args=([tmp_path / f"runs{i}"], tmp_path / "board")) for i in range(4)
    ]
    for one in updates:
        one.start()
    for one in updates:
        one.join()
    assert [one.exitcode for one in updates] == [0] * 4
    assert {run.model for run in store.load(tmp_path / "board").runs} == {"m0", "m1", "m2", "m3"}
    assert {one.name for one in (tmp_path / "board").iterdir()} == FILES


def test_an_update_that_never_ends_is_told(tmp_path, monkeypatch):
    write_runs(tmp_path / "runs", document("m"))
    monkeypatch.setattr(write, "PATIENCE", 0.05)
    with (
        write.locked(tmp_path / "board", print),
        pytest.raises(PatchError, match="another update of this board has not ended for 0 s"),
    ):
        leaderboard([tmp_path / "runs"], tmp_path / "board")


def test_what_a_killed_update_left_is_removed(tmp_path):
    write_runs(tmp_path / "runs", document("m"))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "board").mkdir()
    rest = write.files.temporary(tmp_path / "board")
    rest = rest.with_name(rest.name.replace(f"-{os.getpid()}-", f"-{gone.pid}-"))
    (rest / "new").mkdir(parents=True)
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert {one.name for one in (tmp_path / "board").iterdir()} == FILES


# --- what earlier versions did not know of runs, and copies ---


def _forget(path, *keys):
    """Make of a board's file what an earlier version wrote, which did not know of these settings."""
    data = json.loads(path.read_text())
    for run in data["runs"]:
        del run["digest"]
        for result in run["results"]:
            for key in keys:
                result["fingerprint"].pop(key)
    path.write_text(json.dumps(data))


def test_runs_that_an_earlier_version_read_are_read_again_where_they_still_lie(tmp_path, reads):
    write_runs(tmp_path / "old", document("a"), document("b"))
    write_runs(tmp_path / "new", document("c"))
    leaderboard([tmp_path / "old"], tmp_path / "board")
    _forget(tmp_path / "board" / "leaderboard.json", "dataset", "images")
    reads.clear()
    built = leaderboard([tmp_path / "new"], tmp_path / "board")
    assert len(reads) == 3
    assert (built.update.read, built.update.known) == (3, 0)
    (group,) = built.board.groups  # all three say the same of their data
    assert {entry.model for entry in group.entries} == {"a", "b", "c"}
    assert "images" not in group.unknown
    reads.clear()
    assert leaderboard([], tmp_path / "board").written == ()
    assert reads == []


def test_runs_of_an_earlier_version_whose_files_have_gone_stand_apart_and_it_is_told(tmp_path):
    write_runs(tmp_path / "old", document("a"))
    leaderboard([tmp_path / "old"], tmp_path / "board")
    _forget(tmp_path / "board" / "leaderboard.json", "image sizes", "images")
    shutil.rmtree(tmp_path / "old")
    write_runs(tmp_path / "new", document("c"))
    built = leaderboard([tmp_path / "new"], tmp_path / "board")
    assert models(built) == {"a", "c"}
    _, second = built.board.groups
    told = " ".join(second.differs)
    assert "image sizes (unknown" in told
    assert "images (unknown" in told
    merged = leaderboard([], tmp_path / "board", ignore=["images", "image sizes"])
    assert len(merged.board.groups) == 1


def test_what_lies_now_in_the_place_of_a_run_of_an_earlier_version_is_not_taken_for_it(tmp_path):
    (path,) = write_runs(tmp_path / "old", document("a"))
    leaderboard([tmp_path / "old"], tmp_path / "board")
    _forget(tmp_path / "board" / "leaderboard.json", "images")
    path.write_text(json.dumps(document("somebody else")))
    write_runs(tmp_path / "new", document("c"))
    assert models(leaderboard([tmp_path / "new"], tmp_path / "board")) == {"a", "c"}


def test_a_copy_that_is_laid_out_otherwise_is_no_second_run(tmp_path):
    (path,) = write_runs(tmp_path / "runs", document("m"))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / path.name).write_text(json.dumps(json.loads(path.read_text()), indent=2))
    built = leaderboard([tmp_path / "copy"], tmp_path / "board")
    assert built.board.runs == 1
    assert [entry.runs for group in built.board.groups for entry in group.entries] == [1]
    both = leaderboard([tmp_path / "copy", tmp_path / "runs"], tmp_path / "fresh")
    assert both.board.runs == 1
    write_runs(tmp_path / "later", document("m", date="20260102_000000"))
    assert leaderboard([tmp_path / "later"], tmp_path / "board").board.runs == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"system_instruction_sha": "ab"}, "system instruction"),
        ({"configs": {"dataset_path": "org/other"}}, "dataset (org/toy and org/other)"),
        ({"configs": {"dataset_kwargs": {"revision": "v2"}}}, "revision (none and v2)"),
        ({"configs": {"test_split": "train"}}, "split (test and train)"),
        ({"made": {"images": "j"}}, "images (i and j)"),
        ({"made": {"image_sizes": "t"}}, "image sizes (s and t)"),
    ],
)
def test_what_was_asked_otherwise_is_not_ranked_together(tmp_path, change, told):
    other = document(
        "b",
        [index_task(made=change.get("made"))],
        **{key: one for key, one in change.items() if key not in ("made", "configs")},
    )
    other["configs"]["toy_pcri3"] |= change.get("configs", {})
    write_runs(tmp_path / "runs", document("a"), other)
    groups = leaderboard([tmp_path / "runs"], tmp_path / "board").board.groups
    assert len(groups) == 2
    assert told.partition(" (")[0] in [one.partition(" (")[0] for one in groups[1].differs]
    assert len(groups[1].differs) == 1
