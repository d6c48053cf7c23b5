"""Published tables: both layouts, and one clear line for each mistake."""

import pytest

from lmms_patch.errors import RecordError
from lmms_patch.present.page import published, tables
from lmms_patch.runs import reading
from tests.making.reports import NEAR, entry, rows
from tests.places import SHARED

TABLE_2, TABLES_5_TO_8 = SHARED / "rci_table2.csv", SHARED / "pcri_tables5to8.csv"


def table(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def plain(found):
    out = []
    for one in found:
        index = one.numbers["index"]
        ends = index.value, index.low, index.high, index.reason, reading.contradicted(index)
        out.append((one.benchmark, one.model, one.n, one.kind.index, *ends))
    return sorted(out, key=str)


def test_one_index_a_row_columns_in_any_case_and_order(tmp_path):
    path = table(tmp_path, "N,Model,DATASET,PCRI\n3,m,GQA_TestDev_Balanced,-0.25\n\n2,m,toy,\n2,m,other,n/a\n")
    first, second = published.read(path)
    assert plain([first]) == [("GQA_TestDev_Balanced", "m", 3, "rci", -0.25, None, None, "", False)]
    assert (first.type, first.source, first.docs) == ("vqa", "table.csv", None)
    assert second.benchmark == "other", "an empty cell: this model was not asked"
    assert "no number" in second.numbers["index"].reason


def test_everything_that_a_table_may_say(tmp_path):
    path = table(
        tmp_path, "benchmark,model,n,rci,rci_low,rci_high,docs,type\ntoy,m,2,0.5,0.4,0.6,1000,yes/no\n", "a.csv"
    )
    (one,) = published.read(path)
    assert plain([one]) == [("toy", "m", 2, "rci", 0.5, 0.4, 0.6, "", False)]
    assert (one.docs, one.type, one.source, one.numbers["index"].n) == (1000, "yesno", "a.csv", 1000)


def test_a_mark_of_byte_order_and_windows_lines_are_fine(tmp_path):
    path = tmp_path / "windows.csv"
    path.write_bytes("\ufeffdataset,model,n,rci\r\nä,m,2,-0.1\r\n".encode())
    assert published.read(path)[0].benchmark == "ä"


HEAD = "dataset,model,n,rci\n"


MISTAKES = [
    ("", "an empty table"), ("\n\n", "an empty table"),
    ("dataset,rci\na,0.1\n", "its columns are dataset, rci; expected"), ("dataset,model,n\na,m,2\n", "its columns are"),
    ("dataset,model,n,rci,pcri\na,m,2,0,0\n", "its columns are"), ("model,n,rci\nm,2,0\n", "its columns are"),
    ("dataset,benchmark,model,n,rci\na,a,m,2,0\n", "its columns are"),
    ("dataset,Model,model,n,rci\na,m,m,2,0\n", "the column 'model' comes twice"), (HEAD, "no row with an index"),
    (HEAD + "a,m,2\n", "line 2: 3 cells, but the head has 4"),
    (HEAD + "a,m,2,0.1\n\na,m,1,0.1\n", "line 4: n is '1'; expected a grid size from 2 to 9"),
    (HEAD + "a,m,3x3,0.1\n", "line 2: n is '3x3'"), (HEAD + "a,m,²,0.1\n", "line 2: n is '²'"),
    (HEAD + "a,m,2,high\n", "line 2: an index is 'high'"), (HEAD + "a,m,2,inf\n", "line 2: an index is 'inf'"),
    (HEAD + "a,m,2,-17.1\nb,m,2,20.2\n", "line 3: an index above 1: 1 - MPP/FIP is at most 1; is it in percent?"),
    (HEAD + ",m,2,0.1\n", "line 2: no benchmark or no model"), (HEAD + "a,,2,0.1\n", "line 2: no benchmark or no model"),
    (HEAD + "a,m,2,0.1\na,m,2,0.2\n", "line 3: a with m at n=2 comes twice"),
    (HEAD + 'a,"m,2,0.1\n', "line 2: not CSV"),
    ("dataset,model,n,rci,rci_low,rci_high\na,m,2,0.5,0.6,0.7\n", "line 2: an index outside of its interval"),
    ("dataset,model,n,rci,rci_low,rci_high\na,m,2,0.5,0.4,\n", "line 2: one end of an interval without the other"),
    ("dataset,model,n,rci,docs\na,m,2,0.5,many\n", "line 2: docs is 'many'"),
    ("dataset,model,n,rci,type\na,m,2,0.5,essay\n", "line 2: type is 'essay'; allowed: mcq, yesno, vqa, caption"),
    ("a\0b,c\n", "not a text file"), ('dataset,"m, n=12"\na,0.1\n', "line 2: n is '12'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_a_mistake_is_one_line_that_says_where(tmp_path, text, said):
    with pytest.raises(RecordError) as error:
        published.read(table(tmp_path, text))
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert "table.csv" in str(error.value)


def test_files_that_are_no_tables(tmp_path):
    binary = tmp_path / "b.csv"
    binary.write_bytes(bytes(range(256)))
    with pytest.raises(RecordError, match="not a text file"):
        published.read(binary)
    with pytest.raises(RecordError, match="cannot be read"):
        published.read(tmp_path / "none.csv")
    with pytest.raises(RecordError, match="cannot be read"):
        published.read(tmp_path)


@pytest.mark.parametrize("name", ["results", "rci"])
@pytest.mark.parametrize("kind", ["rci", "trci"])
def test_tables_of_our_own_come_back(tmp_path, name, kind):
    own = rows(
        [
            entry("=toy", "m, n", indices=(-0.1, 1 / 3), kind=kind, steady=(0.9, 0.3)),
            entry("b|c", "other", refused=NEAR, kind=kind),
            entry("d", "other", kind=kind),
        ]
    )
    sheets = tables.results(own) if name == "results" else tables.benchmarks(own)
    text = next(one for one in sheets if name in one.name).to_csv()
    if (name, kind) == ("rci", "trci"):  # its columns say no grid: they are not taken for cells
        with pytest.raises(RecordError, match="its columns are"):
            published.read(table(tmp_path, text))
    else:
        assert plain(published.read(table(tmp_path, text))) == plain(own)


@pytest.mark.skipif(not TABLE_2.is_file(), reason="the published tables are not here")
def test_the_papers_tables_are_read():
    found, more = published.read(TABLE_2), published.read(TABLES_5_TO_8)
    assert len(found) == 13 * 3 * 2
    assert len(more) == 2 * (17 * 6 + 19 * 4 + 19 * 4 + 16)  # models x benchmarks of the four tables
    assert {one.type for one in [*found, *more]} == {"mcq", "yesno", "vqa", "caption"}
    assert sum(one.type == "mcq" for one in found) == 5 * 6
    assert all(one.index for one in [*found, *more])
