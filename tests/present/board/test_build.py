"""The board's folder: what stays, what is written, and that nothing is half-written."""

import json
import os
import shutil

import pytest

from lmms_patch import files
from lmms_patch.errors import OptionError, PatchError, RecordError
from lmms_patch.present.board.build import leaderboard
from lmms_patch.runs.run import read
from tests.making.boards import document, index_task  # fmt: skip
from tests.making.boards import write as write_runs
from tests.making.runs import again_run, write_run

FILES = {
    "board.json", "index.html", "leaderboard.csv", "leaderboard.md", "model-index", "models",
}  # fmt: skip


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def models(built):
    return {entry.model for group in built.board.groups for entry in group.entries}


def test_a_folder_is_made(tmp_path):
    write_runs(tmp_path / "runs", document("org/m"))
    leaderboard([tmp_path / "runs"], tmp_path / "new" / "board")
    board = tmp_path / "new" / "board"
    assert {one.name for one in board.iterdir()} == FILES
    assert (board / "model-index" / "org__m.md").is_file()
    assert (board / "models" / "org__m.html").is_file()
    assert "../../runs/run0/20260101_000000_results.json" in (board / "models" / "org__m.html").read_text()


def test_real_numbers_arrive_unchanged(tmp_path):
    """The board shows what the run has told the host."""
    path = write_run(tmp_path / "run", {"toy_rci2": again_run(["whole", "cell"], n=60)})
    leaderboard([tmp_path / "run"], tmp_path / "board")
    values = json.loads(path.read_text())["results"]["toy_rci2"]
    (result,) = read(path).results
    (group,) = json.loads((tmp_path / "board" / "board.json").read_text())["groups"]
    (row,) = group["table"]["rows"]
    assert row["index"]["value"] == values["rci2,none"]
    assert row["index"]["low"] == result.measures["rci2"].low
    assert row["fip"]["value"] == values["acc,none"]
    assert row["mpp"]["value"] == pytest.approx(values["acc_mpp2,none"])
    assert row["steady"]["value"] == values["rci2_steady,none"]
    assert row["steady"]["low"] == result.measures["rci2_steady"].low
    assert row["chance"]["value"] == values["chance,none"]
    assert row["span"] == "strong global"  # of 0.5, surely


def test_copies_of_one_file_are_one_run(tmp_path):
    write_runs(tmp_path / "runs", document("m"))
    shutil.copytree(tmp_path / "runs", tmp_path / "copy")
    built = leaderboard([tmp_path / "runs", tmp_path / "copy"], tmp_path / "board")
    assert built.board.groups[0].entries[0].runs == 1
    assert len(built.board.runs) == 1
    write_runs(tmp_path / "later", document("m", date="20260102_000000"))
    assert len(leaderboard([tmp_path / "later", tmp_path / "runs"], tmp_path / "board").board.runs) == 2


def test_other_files_in_the_folder_stay(tmp_path):
    board = tmp_path / "board"
    (board / "model-index").mkdir(parents=True)
    (board / "README.md").write_text("mine")
    (board / "model-index" / "mine.md").write_text("mine")
    (board / "models").mkdir()
    (board / "models" / "mine.html").write_text("mine")
    write_runs(tmp_path / "runs", document("m"))
    leaderboard([tmp_path / "runs"], board)
    leaderboard([tmp_path / "runs"], board)
    assert {(board / name).read_text() for name in ("README.md", "model-index/mine.md", "models/mine.html")} == {"mine"}


def test_pages_of_models_that_are_no_longer_on_the_board_go(tmp_path):
    write_runs(tmp_path / "a", document("one"))
    write_runs(tmp_path / "b", document("two"))
    leaderboard([tmp_path / "a", tmp_path / "b"], tmp_path / "board")
    assert models(leaderboard([tmp_path / "b"], tmp_path / "board")) == {"two"}
    assert [path.name for path in (tmp_path / "board" / "model-index").iterdir()] == ["two.md"]
    assert [path.name for path in (tmp_path / "board" / "models").iterdir()] == ["two.html"]


def test_a_board_cannot_have_other_files_removed(tmp_path):
    write_runs(tmp_path / "runs", document("m"))
    board = tmp_path / "board"
    leaderboard([tmp_path / "runs"], board)
    (tmp_path / "precious.md").write_text("x")
    (board / "README.md").write_text("x")
    data = json.loads((board / "board.json").read_text())
    data["pages"] += ["../precious.md", "README.md", "model-index/../../precious.md", "models/../README.md"]
    (board / "board.json").write_text(json.dumps(data))
    leaderboard([tmp_path / "runs"], board)
    assert (tmp_path / "precious.md").exists()
    assert (board / "README.md").exists()


# --- what is damaged ---


def test_a_damaged_table_is_one_line_and_the_board_stays(tmp_path):
    (path,) = write_runs(tmp_path / "runs", document("m"))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    before = contents(tmp_path / "board")
    (table,) = path.parent.glob("*_samples_*.parquet")
    bad = table.with_name("20260202_000000_samples_toy_pcri3.parquet")
    bad.write_bytes(table.read_bytes()[:-400])
    with pytest.raises(RecordError) as caught:
        leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert str(bad) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert contents(tmp_path / "board") == before
    with pytest.raises(RecordError):
        leaderboard([tmp_path / "runs"], tmp_path / "never")
    assert not (tmp_path / "never").exists()


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


@pytest.mark.parametrize("fails_at", range(9))
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
    if fails_at < 8:  # four files of the board, and a card and a page of each model
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

    monkeypatch.setattr(files, "temporary", refuse)
    with pytest.raises(PatchError, match="Permission denied"):
        leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert contents(tmp_path / "board") == {}


def test_unicode_paths_and_names(tmp_path):
    write_runs(tmp_path / "läufe 测试", document("模型 🦙", [index_task("бенчмарк")]))
    built = leaderboard([tmp_path / "läufe 测试"], tmp_path / "tafel ü")
    assert models(built) == {"模型 🦙"}
    assert "模型 🦙" in (tmp_path / "tafel ü" / "index.html").read_text(encoding="utf-8")
    assert "бенчмарк" in (tmp_path / "tafel ü" / "leaderboard.md").read_text(encoding="utf-8")


def test_what_must_stay_secret_is_not_stored(tmp_path):
    write_runs(
        tmp_path / "runs", document("m", args="model_version=gpt,api_key=sk-SECRET,base_url=https://me:SECRET@host/v1")
    )
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert b"SECRET" not in b"".join(contents(tmp_path / "board").values())
    page = (tmp_path / "board" / "models" / "m.html").read_text()
    assert "model_version=gpt,api_key=...,base_url=https://...@host/v1" in page


# --- copies ---


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
