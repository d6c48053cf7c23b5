"""The folder of a report: whole or not at all, and nothing in it that a run could have slipped in."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from lmms_patch import commands, files
from lmms_patch.app.cli import main
from lmms_patch.errors import CannotWrapError, OptionError, RecordError
from lmms_patch.present.report import build
from lmms_patch.runs import samples
from tests.making.html import Read
from tests.making.runs import mc_run, write_run

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def made():
    return mc_run(n=120, seed=2, per_cluster=2)


@pytest.fixture
def run(tmp_path, made):
    write_run(tmp_path / "run", {"toy_rci2": made})
    [table] = (tmp_path / "run").glob("*_samples_*.parquet")
    said = pl.col("view").replace_strict({0: HOSTILE, 1: "x" * 100_000}, default="b")
    frame = samples.frame_of(table).with_columns(question=pl.lit(f"Which? {HOSTILE}"), answer=said)
    samples.write(table, frame, samples.about_of(table))
    return tmp_path / "run"


undrawn = pytest.mark.usefixtures("without_figures")


def test_a_report_has_a_page_figures_and_tables_in_every_form(run, tmp_path):
    out = tmp_path / "report"
    found = commands.report([run], out)
    page = Read((out / "index.html").read_text())
    assert "toy" in page.text
    assert found.figures
    for figure in found.figures:
        assert (out / "figures" / f"{figure.name}.svg").stat().st_size > 500
        assert (out / "figures" / f"{figure.name}.png").read_bytes().startswith(b"\x89PNG")
        assert any((out / "figures" / name).read_bytes().startswith(b"%PDF") for name in figure.files)
    for sheets in found.sheets.values():
        for sheet in sheets:
            assert {path.suffix for path in (out / "tables").glob(f"{sheet.name}.*")} == {
                ".csv",
                ".json",
                ".md",
                ".tex",
            }
    data = json.loads((out / "report.json").read_text())
    rci = data["results"][0]["measures"]["rci2"]["value"]
    assert [one["cases"] for one in data["findings"]] == [[data["results"][0]["id"]]]
    assert " ".join(data["findings"][0]["text"].split()[:3]) in page.text
    with open(out / "tables" / "runs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert any(value == repr(rci) for row in rows for value in row.values())


@undrawn
def test_what_a_model_said_stays_text(run, tmp_path):
    commands.report([run], tmp_path / "report", examples=1)
    text = (tmp_path / "report" / "index.html").read_text()
    page = Read(text)
    assert "alert(1)" not in "".join(page.sources["script"])
    assert HOSTILE in page.text  # as text
    assert "(100,000 characters)" in text
    assert "x" * 1000 not in text
    assert not [tag for tag, attrs in page.elements if any(name.startswith("on") for name in attrs)]
    assert not [attrs for _, attrs in page.elements if str(attrs.get("src") or "").startswith("http")]


@undrawn
def test_an_earlier_report_is_replaced_and_nothing_else_is(run, tmp_path):
    out = tmp_path / "report"
    commands.report([run], out)
    (out / "stale").write_text("")
    commands.report([run], out)
    assert not (out / "stale").exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("x")
    with pytest.raises(OptionError, match="other files in it"):
        commands.report([run], other)
    assert (other / "thesis.txt").read_text() == "x"
    with pytest.raises(OptionError, match="a file is there"):
        commands.report([run], other / "thesis.txt")


@undrawn
def test_a_report_that_fails_leaves_the_earlier_one_and_no_rest(run, tmp_path, monkeypatch):
    out = tmp_path / "reports" / "one"
    commands.report([run], out)
    before = (out / "index.html").read_text()
    monkeypatch.setattr(build.page, "page", lambda report: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        commands.report([run], out)
    assert (out / "index.html").read_text() == before
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["one"]


def test_a_published_table_alone_is_a_report(tmp_path):
    table = tmp_path / "published.csv"
    table.write_text("dataset,model,n,rci\nGQA,M1,2,0.1\nPOPE,M1,2,-0.2\nGQA,M1,3,0.3\nPOPE,M1,3,-0.4\n")
    found = commands.report([], tmp_path / "report", from_csv=[table])
    assert found.entries == ()
    assert "benchmarks" in found.sheets
    assert "-0.400" in (tmp_path / "report" / "index.html").read_text().replace("\u2212", "-")


def test_nothing_to_report_is_refused(tmp_path):
    with pytest.raises(RecordError, match="nothing to report"):
        commands.report([], tmp_path / "report")


# --- images ---------------------------------------------------------------------------------------


def built(run, tmp_path, images):
    return build.build([run], tmp_path / "report", images=images)


@undrawn
def test_images_are_put_into_the_page_where_they_fit(run, tmp_path):
    asked = []

    def images(base, ids):
        asked.append((base, list(ids)))
        return {doc_id: Image.new("RGBA", (9, 9), (0, 0, 255, 128)) for doc_id in ids}

    found = built(run, tmp_path, images)
    assert asked == [("toy", sorted({one.doc_id for one in found.examples}))]
    assert all(one.image.startswith("data:image/jpeg;base64,") for one in found.examples)


@undrawn
def test_an_image_of_another_size_is_not_of_this_run(run, tmp_path):
    found = built(run, tmp_path, lambda base, ids: {doc_id: Image.new("RGB", (10, 9)) for doc_id in ids})
    assert [one.image for one in found.examples] == [None] * len(found.examples)


@undrawn
def test_a_dataset_that_cannot_be_reached_is_told(run, tmp_path):
    def images(base, ids):
        raise CannotWrapError("toy: its dataset cannot be loaded here: offline")

    found = built(run, tmp_path, images)
    assert found.warnings == ("examples of toy have no images: toy: its dataset cannot be loaded here: offline",)
    assert all(one.image is None for one in found.examples)


# --- prunings -------------------------------------------------------------------------------------


@undrawn
@pytest.mark.parametrize("beside", ["below", "apart"])
def test_a_pruning_beside_the_run_is_shown(run, tmp_path, beside):
    folder = (run if beside == "below" else tmp_path) / "pruned" / "toy"
    folder.mkdir(parents=True)
    ids = [{"key": str(i), "doc_id": i} for i in range(3)]
    (folder / "pruned.json").write_text(
        json.dumps(
            {
                "schema": 1,
                "base": "toy",
                "settings": {},
                "stopped": "budget",
                "over_pruned": False,
                "judged": {"sentence": "fell"},
                "kept": ids,
                "removed": ids[:1],
            }
        )
    )
    found = commands.report([run] if beside == "below" else [run, folder], tmp_path / "report")
    (row,) = next(sheet for sheet in found.sheets["tst"] if sheet.name == "prunings").rows
    assert (row["docs"], row["removed"], row["kept"], row["verdict"]) == (4, 1, 3, "fell")


# --- damaged input --------------------------------------------------------------------------------


def refused(capsys, *arguments):
    status = main(["report", *map(str, arguments)])
    told = capsys.readouterr().err.strip().splitlines()
    assert status == 2
    lines = [line for line in told if line.startswith("lmms-patch: ")]
    assert len(lines) == 1
    assert "Traceback" not in "\n".join(told)
    return lines[0]


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "dataset,model,n,rci\nGQA,M,2,high\n", "dataset,model,n,rci\nGQA,M,99,0.1\n", "\x00"]
)
def test_a_damaged_table_is_one_line(tmp_path, capsys, text):
    (tmp_path / "t.csv").write_text(text)
    assert "t.csv" in refused(capsys, "--from-csv", tmp_path / "t.csv", "--output", tmp_path / "report")


def test_a_damaged_run_is_one_line_and_leaves_nothing(run, tmp_path, capsys):
    [table] = run.glob("*_samples_*.parquet")
    table.write_bytes(table.read_bytes()[:-400])
    refused(capsys, run, "--output", tmp_path / "report")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


@undrawn
def test_paths_of_any_letters_and_a_place_that_cannot_be_written(run, tmp_path, capsys):
    strange = run.rename(tmp_path / "Läufe – 実行 'x' & <b>")
    assert main(["report", str(strange), "--output", str(tmp_path / "bericht ü")]) == 0
    capsys.readouterr()
    (tmp_path / "file").write_text("")
    assert "file" in refused(capsys, strange, "--output", tmp_path / "file" / "report")
    refused(capsys, strange, "--output", "/proc/report")


def test_what_a_killed_report_left_is_removed_and_a_linked_folder_is_let_alone(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    rest = files.temporary(tmp_path)
    rest = rest.with_name(rest.name.replace(f"-{os.getpid()}-", f"-{gone.pid}-"))
    (rest / "figures").mkdir(parents=True)
    (tmp_path / ".r.abcdefgh").mkdir()  # not known to be ours
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / build.MARK).write_text("{}")
    (tmp_path / "r").symlink_to(tmp_path / "mine")
    with files.folder(tmp_path / "r", "--output") as folder:
        (folder / "index.html").write_text("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".r.abcdefgh", "mine", "r"]
    assert not (tmp_path / "r").is_symlink()
    assert (tmp_path / "r" / "index.html").read_text() == "new"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == [build.MARK]


def test_where_the_new_report_cannot_take_its_place_the_earlier_one_is_back(tmp_path, monkeypatch):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "index.html").write_text("before")
    real = Path.rename

    def rename(self, target):
        if Path(target) == tmp_path / "r" and not self.name.endswith(".old"):
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with (
        pytest.raises(OptionError, match="No space left on device"),
        files.folder(tmp_path / "r", "--output") as folder,
    ):
        (folder / "index.html").write_text("new")
    assert (tmp_path / "r" / "index.html").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
