"""The folder of a report: whole or not at all, and nothing in it that a run could have slipped in."""

import base64
import copy
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

import lmms_patch
from lmms_patch import commands, files
from lmms_patch.app.cli import main
from lmms_patch.errors import CannotWrapError, OptionError, PatchError, RecordError
from lmms_patch.present.page import figures, html
from lmms_patch.present.page import report as module
from lmms_patch.rci.recompute import load, recompute
from lmms_patch.runs import run as runs
from lmms_patch.runs import samples
from lmms_patch.runs.details import Made
from tests.making import lean
from tests.making.boards import blind_task, document, index_task, tst_task
from tests.making.boards import write as write_documents
from tests.making.edited import edit
from tests.making.html import Read
from tests.making.runs import mc_run, views_run, write_run
from tests.stored import unpack

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
        assert (out / "figures" / f"{figure.name}.pdf").read_bytes().startswith(b"%PDF")
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
    with open(out / "tables" / "results.csv", newline="") as file:
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
    monkeypatch.setattr(html, "page", lambda report: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        commands.report([run], out)
    assert (out / "index.html").read_text() == before
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["one"]


def test_a_published_table_alone_is_a_report(tmp_path):
    table = tmp_path / "published.csv"
    table.write_text("dataset,model,n,rci\nGQA,M1,2,0.1\nPOPE,M1,2,-0.2\nGQA,M1,3,0.3\nPOPE,M1,3,-0.4\n")
    found = commands.report([], tmp_path / "report", from_csv=[table])
    assert found.entries == ()
    assert "results" in found.sheets
    assert "-0.400" in (tmp_path / "report" / "index.html").read_text().replace("\u2212", "-")


def test_nothing_to_report_is_refused(tmp_path):
    with pytest.raises(RecordError, match="nothing to report"):
        commands.report([], tmp_path / "report")


# --- images ---------------------------------------------------------------------------------------


def built(run, tmp_path, images):
    return module.build([run], tmp_path / "report", images=images)


@undrawn
def test_images_are_put_into_the_page_where_they_fit(run, tmp_path):
    asked = []

    def images(base, ids):
        asked.append((base, list(ids)))
        return {doc_id: Image.new("RGBA", (9, 9), (0, 0, 255, 128)) for doc_id in ids}

    found = built(run, tmp_path, images)
    assert asked == [("toy", sorted({one.doc for one in found.examples}))]
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
    (row,) = next(sheet for sheet in found.sheets["text"] if sheet.name == "prunings").rows
    assert (row["before"], row["removed"], row["kept"], row["verdict"]) == (4, 1, 3, "fell")


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
    (tmp_path / "mine" / module.MARK).write_text("{}")
    (tmp_path / "r").symlink_to(tmp_path / "mine")
    with files.folder(tmp_path / "r", "--output") as folder:
        (folder / "index.html").write_text("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".r.abcdefgh", "mine", "r"]
    assert not (tmp_path / "r").is_symlink()
    assert (tmp_path / "r" / "index.html").read_text() == "new"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == [module.MARK]


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


# --- what is shown --------------------------------------------------------------------------------


def of(*folders, **options):
    """The page of some runs, without its figures."""
    return module.build(list(folders), folders[0].parent / "page", **options)


def edited(made, change):
    """A run some of whose docs are changed."""
    spec, records, plan = copy.deepcopy(made)
    for i, record in enumerate(records):
        change(i, record)
    return {"toy_rci2": (spec, records, plan)}


@undrawn
def test_numbers_are_the_runs_own_and_categories_those_of_analyze(tmp_path):
    made = mc_run(n=240, seed=2, per_cluster=2)
    path = write_run(tmp_path / "run", {"toy_rci2": made})
    found = of(tmp_path / "run")
    (entry,), (row,) = found.entries, found.rows
    assert found.warnings == ()
    run = load(runs.read(path))[0]
    assert row.numbers["index"].value == run.result.measures["rci2"].value
    for name, alone in recompute(run, by="category").categories.items():
        part = entry.categories[name]
        assert part.docs == 120
        assert part.measures["rci2"].value == pytest.approx(alone.grids[2].index.value)
    of_a = [record["views"][0]["scores"]["acc"] for record in made[1] if record["fields"]["category"] == "a"]
    assert entry.categories["a"].measures["fip"].value == pytest.approx(np.mean(of_a))
    lines = {line["category"]: line for line in found.sheets["results"][1].rows}
    assert lines["a"]["score"] == entry.categories["a"].measures["fip"]


@undrawn
def test_what_is_left_out_and_failed_is_said(tmp_path, made):
    def change(i, record):
        if i in (5, 6):
            record["excluded"] = {"2": "image of 1x1 pixels is too small"}
        if i in (8, 9, 10, 11):
            record["views"][0]["failed"] = "no answer"

    write_run(tmp_path / "run", edited(made, change))
    (entry,) = of(tmp_path / "run").entries
    assert "2 docs are not used at 2×2: image of 1x1 pixels is too small" in entry.notes
    assert any(note.startswith("4 of 120 docs have a failed call") for note in entry.notes)


@undrawn
def test_docs_without_a_category_are_counted_and_one_called_none_is_a_category(tmp_path, made):
    def change(i, record):
        if record["fields"]["category"] == "b":
            record["fields"]["category"] = "None" if i % 4 == 1 else None

    write_run(tmp_path / "run", edited(made, change))
    (entry,) = of(tmp_path / "run").entries
    assert {name: part.docs for name, part in entry.categories.items()} == {"a": 60, "None": 30}
    assert "30 docs have no category: they are in no category's numbers" in entry.notes


@undrawn
def test_a_report_shows_the_newest_of_each_model_and_task_and_a_board_each_setting(tmp_path, made):
    write_run(tmp_path / "a", {"toy_rci2": made})
    late = write_run(tmp_path / "a", {"toy_rci2": made}, date="2026-05-05T00-00-00.000000")
    found = of(tmp_path / "a")
    assert [entry.result.run.path for entry in found.entries] == [late]
    assert found.warnings == ("1 older results of the same model and task are not shown",)
    other = write_run(tmp_path / "a", {"toy_rci2": mc_run(n=60)}, date="2026-06-06T00-00-00.000000")
    board = of(tmp_path / "a", every_setting=True)
    assert {entry.result.run.path for entry in board.entries} == {late, other}
    assert [(row.group, row.runs) for row in board.rows] == [(1, 2), (2, 1)]
    assert len(board.notes) == 1


@undrawn
def test_copies_of_one_run_are_one(tmp_path, made):
    write_run(tmp_path / "a", {"toy_rci2": made})
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    found = of(tmp_path / "a", tmp_path / "b", every_setting=True)
    assert (found.runs, [row.runs for row in found.rows]) == (1, [1])


@undrawn
def test_of_many_results_no_docs_are_read(tmp_path, made, monkeypatch):
    write_run(tmp_path / "run", {"toy_rci2": made, "toy2_rci2": mc_run(n=60)})
    monkeypatch.setattr(module, "MANY", 1)
    monkeypatch.setattr(runs.Result, "frame", lambda *_, **__: pytest.fail("samples were read"))
    found = of(tmp_path / "run")
    assert "no details, categories and examples" in found.warnings[0]
    assert len(found.rows) == 2


@undrawn
@pytest.mark.parametrize("docs", [10, 120])
def test_a_blind_run_of_other_docs_is_not_set_beside(tmp_path, made, docs):
    """Half of its docs are right."""
    name = {"model_name": "m", "config": {"model": "m"}}
    write_run(tmp_path / "r" / "run", {"toy_rci2": made}, **name)
    blind = {"toy_blind": views_run("blind", [0.5], docs)}
    # what docs they were is not known but by their number
    edit(write_run(tmp_path / "r" / "blind", blind, date="2026-03-03T00-00-00.000000", **name), made=Made())
    found = of(tmp_path / "r")
    entry = next(one for one in found.entries if one.kind.name == "rci")
    assert (entry.blind and entry.blind.value) == (0.5 if docs == 120 else None)
    assert any("blind run was asked other docs (10 and 120)" in line for line in found.warnings) == (docs == 10)


@undrawn
def test_what_the_image_adds_is_paired_by_doc(tmp_path):
    """300 of 400 right with the image, 200 of these without: of the 400 differences 100 are 1, so the standard error is √(¼ · ¾ / 400)."""
    full, blind = np.arange(400) < 300, np.arange(400) < 200
    lean.write(tmp_path / "run", [lean.task(full, full), lean.task(blind, name="toy_blind")])
    found = of(tmp_path / "run")
    gain = found.entries[0].gain
    assert (gain.value, gain.n) == (pytest.approx(0.25), 400)
    assert gain.se == pytest.approx(np.sqrt(0.25 * 0.75 / 400), rel=0.05)
    assert next(sheet for sheet in found.sheets["text"] if sheet.name == "without_image").rows[0]["gain"] == gain


@undrawn
def test_what_must_stay_secret_is_not_stored(tmp_path):
    args = "model_version=gpt,api_key=sk-SECRET,base_url=https://me:SECRET@host/v1"
    write_documents(tmp_path / "runs", document("m", args=args))
    of(tmp_path / "runs")
    written = b"".join(path.read_bytes() for path in (tmp_path / "page").rglob("*") if path.is_file())
    assert b"SECRET" not in written
    assert b"model_version=gpt,api_key=...,base_url=https://...@host/v1" in written


@undrawn
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"by": "pcr"}, "cannot be ranked by 'pcr'; did you mean 'pcri'"),
        ({"over": ["toi"]}, "no benchmark 'toi' with an index on this board; did you mean toy"),
        ({"ignore": ["promt"]}, "no setting 'promt' to ignore"),
    ],
)
def test_options_that_are_not_possible(run, tmp_path, options, told):
    with pytest.raises(PatchError, match=re.escape(told)):
        of(run, **options)
    assert not (tmp_path / "page").exists()


# --- one page says what every door says -----------------------------------------------------------


@undrawn
def test_every_kind_of_run_has_a_page_with_the_numbers_of_every_other_door(tmp_path):
    """Of stored runs: each number in report.json is the one of ``lmms_patch.results``, and findings are those of ``show``."""
    for folder in sorted(unpack(tmp_path).iterdir()):
        made = commands.report(folder, tmp_path / "page")
        data = json.loads((tmp_path / "page" / "report.json").read_text())
        known = lmms_patch.results(folder)
        for result in data["results"]:
            own = known.filter(
                pl.col("task") == result["task"].partition(", ")[0], pl.col("model") == made.entries[0].result.run.model
            )
            values = {(one["measure"], one["value"]) for one in own.iter_rows(named=True)}
            for name, one in result["measures"].items():
                if name in {measure for measure, _ in values}:
                    assert (name, one["value"]) in values, (folder.name, name)
        page = Read((tmp_path / "page" / "index.html").read_text()).text
        if len(made.entries) == len(runs.newest_of(folder).run.results):
            told = [one.text for one in commands.show(folder).findings]
            assert [one["text"] for one in data["findings"]] == told, folder.name
            assert all(" ".join(text.split())[:60] in " ".join(page.split()) for text in told)


# --- hostile names --------------------------------------------------------------------------------

NAMES = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "=cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "+1", "@SUM(1)",
    "**bold** [a](javascript:alert(1)) ![x](http://evil/x.png)", "a|b\\|c`d`", "../../etc/passwd", "..", "", "CON", "a/b", "x\ny", "yes",
    "# heading", "&amp; &lt;b&gt;", "{{ 7*7 }}", "{% raw %}", "\x00\x1b[31m", "\u202egnp.exe", "a\u2028b", "🦙" * 300, "x" * 100_000,
]  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    root = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        # the host names its own files by the task, and could not write these
        real = samples.path_of
        patch.setattr(samples, "path_of", lambda path, task: real(path, f"{len(task)}_{task[-6:]}"))
        tasks = [[index_task(name or "toy"), blind_task(name or "toy"), tst_task(name or "toy")] for name in NAMES]
        write_documents(root / "runs", *map(document, NAMES, tasks))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "drawings", lambda *_: ())
        commands.leaderboard([root / "runs"], root / "page")
    return root / "page"


def test_hostile_names_stay_text_on_the_page(hostile):
    text = (hostile / "index.html").read_text(encoding="utf-8")
    page = Read(text)
    assert sum(tag == "script" for tag, _ in page.elements) == 1
    assert not {tag for tag, _ in page.elements} & {"img", "iframe", "object", "embed", "link", "form"}
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on") or name == "style"]
    assert len(page.ids()) == len(set(page.ids()))
    assert "<script>alert" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", text)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{ 7*7 }}" in text
    links = {attrs["href"] for tag, attrs in page.elements if tag == "a"}
    assert all(
        re.fullmatch(r"#[\w-]+|(tables|figures)/[\w.%-]+\.(csv|md|json|tex|svg|pdf|png)|report\.json", link)
        for link in links
    )
    assert {link[1:] for link in links if link[0] == "#"} <= set(page.ids())
    assert all((hostile / link).is_file() for link in links if link[0] != "#")


def test_hostile_names_stay_text_in_csv_and_markdown(hostile):
    for path in (hostile / "tables").glob("*.csv"):
        lines = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
        assert len({len(line) for line in lines}) == 1
        for cell in (cell for line in lines[1:] for cell in line):
            assert not re.match(r"[=+@\t\r]|-(?!\d+(\.\d+)?(e-?\d+)?$)", cell), cell
    for path in (hostile / "tables").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()}) == 1
        assert "<script" not in text
        assert "://" not in text
        assert not re.search(r"(?<!\\)\]\(", text)
    models = {result["model"] for result in json.loads((hostile / "report.json").read_text())["results"]}
    assert len(models) == len(NAMES)
    assert max(map(len, models)) < 230


def test_the_policy_allows_this_style_and_script_and_nothing_else(hostile):
    page = Read((hostile / "index.html").read_text(encoding="utf-8"))
    (policy,) = (attrs["content"] for _, attrs in page.elements if attrs.get("http-equiv"))
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    assert allowed["default-src"] == "'none'"
    for name, kind in (("style", "style-src"), ("script", "script-src")):
        (source,) = page.sources[name]
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert allowed[kind] == f"'sha256-{digest}'"
    assert allowed["img-src"] == "data:"


def test_escaping_is_never_switched_off():
    for path in (Path(html.__file__).parent / "templates").glob("*.j2"):
        assert "|safe" not in path.read_text().replace(" ", "")
        assert "autoescape" not in path.read_text()
