"""Names from runs are anybody's: in CSV, Markdown, HTML, YAML and file names they stay text."""

import csv
import io
import json
import re

import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.present.board.build import leaderboard
from lmms_patch.runs import samples
from lmms_patch.runs.samples import path_of
from lmms_patch.text import clean, file_names, unique
from tests.making.boards import blind_task, document, index_task, tst_task, write
from tests.making.html import Read

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "+1", "@SUM(1)",
    "**bold** [a](javascript:alert(1)) ![x](http://evil/x.png)",
    "a|b\\|c`d`",
    "../../etc/passwd", "..", ".", "", "CON", "con", "a/b", "a__b", "A/B",
    "x\ny", "x\r\n---\n", "--- {a: 1}", "yes", "null", "1e5", "0x1f", "~", "2026-01-01", "- item", "# heading", "&amp; &lt;b&gt;", "{{ 7*7 }}", "{% raw %}",
    "\x00\x1b[31m", "\u202egnp.exe", "a\u2028b", "🦙" * 300, "x" * 100_000,
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("hostile")
    # the host names its own files by the task, and could not write these
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(samples, "path_of", lambda path, task: path_of(path, f"{len(task)}_{task[-6:]}"))
    write(
        root / "runs",
        *(
            document(name, [index_task(name or "toy"), blind_task(name or "toy"), tst_task(name or "toy")])
            for name in HOSTILE
        ),
    )
    monkeypatch.undo()
    leaderboard([root / "runs"], root / "board")
    return root / "board"


OURS = (
    "html head meta title style script body a header div h1 h2 h3 fieldset legend label input span main section p table "
    "caption thead tbody tr th td details summary output footer strong button dl dt dd nav ul li svg path circle line "
    "text tfoot pre code wbr"
)


def seen(file):
    """The text of a page and its tags; it has our elements only, and nothing that runs."""
    text = file.read_text(encoding="utf-8")
    page = Read(text)
    assert {tag for tag, _ in page.elements} <= set(OURS.split())
    assert sum(tag == "script" for tag, _ in page.elements) == 1
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on") or name == "style"]
    assert len(page.ids()) == len(set(page.ids()))
    assert "<script>alert" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", text)
    return text, {attrs["href"] for tag, attrs in page.elements if tag == "a"}


def test_the_page_has_our_elements_only(folder):
    text, links = seen(folder / "index.html")
    pages = {link for link in links if link.startswith("models/")}
    assert all(re.fullmatch(r"#[\w-]+|leaderboard\.(csv|md)|board\.json|models/[\w.-]+\.html", link) for link in links)
    assert len(pages) == len(HOSTILE), "a page for each model"
    assert all((folder / link).is_file() for link in pages)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{ 7*7 }}" in text


def test_so_has_the_page_of_each_model(folder):
    pages = sorted((folder / "models").iterdir())
    assert len(pages) == len(HOSTILE)
    for file in pages:
        _, links = seen(file)
        assert links == {"#content", "../index.html"}


def test_no_cell_of_the_csv_is_a_formula(folder):
    rows = list(csv.reader(io.StringIO((folder / "leaderboard.csv").read_text(encoding="utf-8"), newline="")))
    assert len({len(row) for row in rows}) == 1
    assert len(rows) == 1 + 3 * len(HOSTILE)
    for row in rows[1:]:
        for cell in row:
            assert not re.match(r"[=+@\t\r]|-(?!\d+(\.\d+)?(e-?\d+)?$)", cell), cell


def test_markdown_tables_keep_their_columns_and_hold_no_markup(folder):
    text = (folder / "leaderboard.md").read_text(encoding="utf-8")
    table = []
    for line in [*text.split("\n"), ""]:
        if line.startswith("|"):
            table.append(len(re.findall(r"(?<!\\)\|", line)))
        else:
            assert len(set(table)) <= 1
            table = []
    assert "<script" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "**" not in text
    assert "://" not in text
    assert text.startswith("# Leaderboard\n")


def test_cards_are_read_back_by_the_hub_s_own_code(folder):
    files = sorted((folder / "model-index").iterdir())
    assert len(files) == len(HOSTILE)
    assert len({path.name.lower() for path in files}) == len(files)
    models = set(json.loads((folder / "board.json").read_text())["models"])
    read = set()
    for path in files:
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.md", path.name)
        card = ModelCard(path.read_text(encoding="utf-8"))
        assert card.data.eval_results
        read.add(card.data.model_name)
    assert read == models


def test_every_model_has_its_own_name(folder):
    models = json.loads((folder / "board.json").read_text())["models"]
    assert len(models) == len(set(models)) == len(HOSTILE)
    assert max(map(len, models)) < 230


# --- the parts ---


@given(st.lists(st.text(max_size=12), min_size=1, max_size=8, unique=True))
def test_file_names_are_safe_and_unique(labels):
    found = list(file_names(dict(enumerate(labels)), ".md").values())
    assert len({name.lower() for name in found}) == len(labels)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.md", name) for name in found)


@given(st.lists(st.text(max_size=6), min_size=1, max_size=8, unique=True))
def test_names_stay_apart(labels):
    found = list(unique(dict(enumerate(labels))).values())
    assert len(set(found)) == len(labels)


@given(st.text())
def test_a_clean_name_is_one_line_and_can_be_written(text):
    found = clean(text)
    assert len(found.splitlines()) <= 1
    found.encode("utf-8")
    assert clean(found) == found


# --- metadata for cards ---


def test_a_card_by_hand(tmp_path):
    """What the Hub reads: dataset and split of the task, the metric with its interval, the source."""
    runs = [document("org/m", [index_task("toy", grids={2: None, 3: (-0.25, -0.3, -0.2)})])]
    write(tmp_path / "runs", *runs)
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    card = ModelCard((tmp_path / "board" / "model-index" / "org__m.md").read_text(encoding="utf-8"))
    found = {one.metric_type: one for one in card.data.eval_results}
    assert set(found) == {
        "acc",
        "acc_mpp3",
        "pcri3",
        "gap3",
        "chance",
    }  # the index at 2x2 is null: not there, and not 0
    index = found["pcri3"]
    assert (index.metric_value, index.metric_args["low"], index.metric_args["high"], index.metric_args["level"]) == (
        -0.25,
        -0.3,
        -0.2,
        0.95,
    )
    assert (index.dataset_type, index.dataset_name, index.dataset_split, index.task_type) == (
        "org/toy",
        "toy",
        "test",
        "image-text-to-text",
    )
    assert index.source_name == "lmms-patch"
    assert found["acc_mpp3"].metric_value == pytest.approx(0.8 * 1.25)
    assert index.dataset_args["lmms-eval version"] == "0.7.3"


def test_benchmarks_on_one_dataset_keep_their_names(tmp_path):
    """The Hub's function puts all results on one dataset under the first one's name; ours are made one by one."""
    write(
        tmp_path / "runs",
        document(
            "m", [index_task("toy_en", grids={3: (0.1, 0.0, 0.2)}), index_task("toy_cn", grids={3: (0.5, 0.4, 0.6)})]
        ),
    )
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    text = (tmp_path / "board" / "model-index" / "m.md").read_text(encoding="utf-8")
    name, results = model_index_to_eval_results(yaml.safe_load(text.split("---")[1])["model-index"])
    assert name == "m"
    assert {one.dataset_name: one.metric_value for one in results if one.metric_type == "pcri3"} == {
        "toy_en": 0.1,
        "toy_cn": 0.5,
    }


@pytest.mark.parametrize("path", ["/home/me/data", "parquet", "C:\\data", "../data", "a/b/c", None, 7])
def test_data_on_somebody_s_disk_is_not_named(tmp_path, path):
    found = document()
    found["configs"]["toy_pcri3"]["dataset_path"] = path
    write(tmp_path / "runs", found)
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    card = ModelCard((tmp_path / "board" / "model-index" / "m.md").read_text(encoding="utf-8"))
    assert card.data.eval_results[0].dataset_type == "toy"


def test_each_number_of_a_card_says_on_how_many_docs_it_rests(tmp_path):
    """60 of 200 docs are left out: FIP and chance are over all, MPP, index and gap over 140."""
    task = index_task("toy", grids={3: (-0.25, -0.3, -0.2)}, docs=200, excluded=60, fip_all=0.9)
    write(tmp_path / "runs", document("m", [task]))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    card = ModelCard((tmp_path / "board" / "model-index" / "m.md").read_text(encoding="utf-8"))
    found = {one.metric_type: one for one in card.data.eval_results}
    assert {name: one.metric_args["docs"] for name, one in found.items() if name != "chance"} == {
        "acc": 200,
        "acc_mpp3": 140,
        "pcri3": 140,
        "gap3": 140,
    }


def test_small_numbers_are_numbers(tmp_path):
    tiny = document("m", [index_task("toy", grids={3: (0.00001, -0.00002, 0.00003)})])
    write(tmp_path / "runs", tiny)
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    card = ModelCard((tmp_path / "board" / "model-index" / "m.md").read_text(encoding="utf-8"))
    assert {type(one.metric_value) for one in card.data.eval_results} == {float}
