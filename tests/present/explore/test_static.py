"""The explorer as a folder: what is in it, and what is refused."""

import json
import re

import pytest

from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError
from lmms_patch.present.explore.explorer import open_runs
from lmms_patch.present.explore.pictures import Pictures
from lmms_patch.present.explore.static import MARK, MOST, write
from tests.making.explored import write_many


def data_of(folder):
    page = (folder / "index.html").read_text(encoding="utf-8")
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return page, json.loads(data)


def test_all_docs_are_in_the_page_and_their_images_beside_it(album, pictures, tmp_path):
    assert write(open_runs([album]), pictures, tmp_path / "docs") == 420
    page, data = data_of(tmp_path / "docs")
    assert [len(docs) for docs in data["docs"]] == [420]
    assert data["docs"][0][7]["sides"][0]["views"][0]["state"] == "right"
    assert data["images"][0][7] == {"file": "images/0-7.png", "why": ""}
    assert data["images"][0][1]["why"] == "the doc has no image that can be read"
    assert len(list((tmp_path / "docs" / "images").iterdir())) == 418
    assert "src=" not in page.split("<body>")[0]  # nothing is taken from elsewhere
    assert "unsafe" not in page.split("<body>")[0]


def test_it_takes_the_place_of_an_earlier_export_and_of_nothing_else(pictures, tmp_path):
    album = write_many(tmp_path / "out", 4)
    write(open_runs([album]), pictures, tmp_path / "docs")
    write(open_runs([album]), pictures, tmp_path / "docs")
    assert sorted(path.name for path in (tmp_path / "docs").iterdir()) == [MARK, "images", "index.html"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(
        OptionError, match="this folder has other files in it; name a new folder, or that of an earlier export"
    ):
        write(open_runs([album]), pictures, tmp_path / "mine")


@pytest.mark.parametrize(
    "change", ["thesis.tex", "images/holiday.jpg", "images/more/0-0.png", "another program's", "not JSON"]
)
def test_a_folder_with_the_mark_of_an_export_is_replaced_only_if_it_is_one(pictures, tmp_path, change):
    run, docs = write_many(tmp_path / "out", 4), tmp_path / "docs"
    write(open_runs([run]), pictures, docs)
    content = {"another program's": '{"schema": 1, "docs": 4}', "not JSON": "explore!"}
    path = docs / (MARK if change in content else change)
    path.parent.mkdir(exist_ok=True)
    path.write_text(content.get(change, "mine"))
    with pytest.raises(OptionError, match=r"is not (that )?of an earlier export"):
        write(open_runs([run]), pictures, docs)
    assert path.read_text() == content.get(change, "mine")


def test_too_many_docs_are_one_line(pictures, tmp_path):
    many = write_many(tmp_path / "out", MOST + 1)
    with pytest.raises(OptionError, match="2,001 docs are more than 2,000"):
        write(open_runs([many]), pictures, tmp_path / "docs")
    assert not (tmp_path / "docs").exists()


def test_the_command_writes_it(album, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("lmms_patch.app.serving.pictures_of", lambda include_path: Pictures(None, "none in this test"))
    assert main(["explore", str(album), "--export", str(tmp_path / "docs")]) == 0
    assert capsys.readouterr().out == f"420 docs; written: {tmp_path / 'docs' / 'index.html'}\n"
    assert data_of(tmp_path / "docs")[1]["images"][0][0] == {"file": "", "why": "none in this test"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-run"], "no-such-run: no such run"),
        (["a", "b", "c"], "explore shows one run, or two side by side, not 3"),
    ],
)
def test_mistakes_are_one_line(arguments, said, capsys):
    assert main(["explore", *arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line
