"""Tables in their forms; parsed back by independent readers."""

import csv
import io
import json
import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from lmms_patch.present.sheets import Column, Sheet, shown, table
from lmms_patch.stats.resample import Estimate

COLUMNS = (Column("name", "benchmark"), Column("n", "n"), Column("rci", "RCI", signed=True, help="1 - MPP/FIP"))


def estimate(value, low=None, high=None, reason=""):
    return Estimate(value, None, low, high, 9, 9, 9, reason=reason)


def sheet(*rows):
    return Sheet("t", "A table", COLUMNS, tuple(rows))


SHEET = sheet(
    {"name": "gqa", "n": 3, "rci": estimate(-0.1234, -0.2, -0.05)},
    {"name": "a|b_c", "n": 2, "rci": estimate(None, reason="near chance")},
    {"name": "plain", "n": 2, "rci": 0.5},
)


def test_csv_spreads_intervals_and_reasons():
    rows = list(csv.DictReader(io.StringIO(SHEET.to_csv())))
    assert rows[0] == {
        "name": "gqa",
        "n": "3",
        "rci": "-0.1234",
        "rci_low": "-0.2",
        "rci_high": "-0.05",
        "rci_reason": "",
    }
    assert rows[1]["rci"] == ""
    assert rows[1]["rci_reason"] == "near chance"
    assert rows[2]["rci"] == "0.5"


def test_json_keeps_every_digit_and_null():
    found = json.loads(json.dumps(SHEET.to_json(), allow_nan=False))
    assert found["rows"][0]["rci"]["value"] == -0.1234
    assert found["rows"][1]["rci"]["value"] is None
    assert found["columns"][2] == {"key": "rci", "title": "RCI", "help": "1 - MPP/FIP"}


def test_markdown_has_one_line_a_row_whatever_stands_in_it():
    lines = SHEET.to_markdown().splitlines()
    assert lines[0] == "| benchmark | n | RCI |"
    assert lines[2] == "| gqa | 3 | -0.123 [-0.200, -0.050] |"
    assert lines[3] == "| a\\|b_c | 2 | N/A |"
    hostile = sheet({"name": "<script>alert(1)</script>\n| x | `y`", "n": 1, "rci": None}).to_markdown()
    assert len(hostile.splitlines()) == 3
    assert "<script" not in hostile
    assert "\\[x\\](http:&#8203;//y)" in sheet({"name": "[x](http://y) *z*"}).to_markdown()
    assert "\\*z\\*" in sheet({"name": "[x](http://y) *z*"}).to_markdown()


def test_text_has_numbers_to_the_right_and_words_to_the_left():
    assert SHEET.to_text().splitlines() == [
        "benchmark  n                      RCI",
        "-------------------------------------",
        "gqa        3  -0.123 [-0.200, -0.050]",
        "a|b_c      2                      N/A",
        "plain      2                   +0.500",
    ]


def test_latex_is_escaped_and_booked():
    text = SHEET.to_latex()
    assert text.startswith("\\begin{tabular}{lrr}\n\\toprule\nbenchmark & n & RCI \\\\\n\\midrule\n")
    assert "a|b\\_c & 2 & N/A \\\\" in text
    assert (
        sheet({"name": "50% & $x_1$ \\ {~^#}", "n": 1, "rci": None}).to_latex().count(" & ") == 4
    )  # two in the head, two in the row
    assert re.search(
        r"50\\% \\& \\\$x\\_1\\\$ \\textbackslash\{\} \\\{\\textasciitilde\{\}\\textasciicircum\{\}\\#\\\}",
        sheet({"name": "50% & $x_1$ \\ {~^#}"}).to_latex(),
    )


def test_signs_and_zero():
    column = Column("x", "x", signed=True)
    assert shown(0.25, column) == "+0.250"
    assert shown(-0.0001, column) == "0.000"
    assert shown(3, column) == "+3"
    assert shown(float("nan"), column) == "N/A"
    assert shown(True) == "yes"


def test_a_spreadsheet_runs_nothing():
    rows = list(
        csv.reader(
            io.StringIO(
                sheet(
                    {"name": "=HYPERLINK(1)"}, {"name": "@x"}, {"name": "+1"}, {"name": "-1+2"}, {"name": "-"}
                ).to_csv()
            )
        )
    )
    assert [row[0] for row in rows[1:]] == ["'=HYPERLINK(1)", "'@x", "'+1", "'-1+2", "-"]


@given(st.lists(st.tuples(st.text(), st.floats(allow_nan=True, allow_infinity=True)), max_size=5))
def test_any_text_and_number_can_be_written(rows):
    made = sheet(*({"name": text, "n": 1, "rci": number} for text, number in rows))
    json.dumps(made.to_json(), allow_nan=False)
    assert len(made.to_markdown().splitlines()) == 2 + len(rows)
    assert len(made.to_text().split("\n")) == 2 + len(rows)
    parsed = list(csv.reader(io.StringIO(made.to_csv(), newline="")))
    assert len(parsed) == 1 + len(rows)
    made.to_latex()


@given(
    st.lists(
        st.lists(st.text(st.characters(codec="utf-8", categories=["L", "N"]), max_size=12), min_size=4, max_size=4),
        min_size=1,
        max_size=4,
    ),
    st.integers(20, 60),
)
def test_a_table_in_parts_has_every_cell_once_behind_its_name(rows, width):
    """A wide table is printed in parts. Put side by side, without the repeated names, they have every cell, in order.

    No part is wider than two of its columns need.
    """
    made = table(["name", "a", "b", "c"], [[f"row{place}", *row[1:]] for place, row in enumerate(rows)]).to_text(width)
    heads = [part.splitlines()[0].split() for part in made.split("\n\n")]
    repeated = (
        len(heads[0])
        if len(heads) == 1
        else next(k for k in (3, 2, 1) if len({tuple(head[:k]) for head in heads}) == 1)
    )
    assert [name for i, head in enumerate(heads) for name in head[repeated if i else 0 :]] == ["name", "a", "b", "c"]
    for part, head in zip(made.split("\n\n"), heads, strict=True):
        if len(head) > repeated + 1:
            assert max(map(cell_len, part.splitlines())) <= width


def test_rows_keep_their_names_in_each_part():
    made = table(
        ["task", "boxes", "x", "y"], [["toy", "relevant", 0.5, 0.25], ["toy", "adversarial", 0.5, 0.25]]
    ).to_text(26)
    assert made.split("\n\n")[1].splitlines() == [
        "task  boxes            y",
        "------------------------",
        "toy   relevant     0.250",
        "toy   adversarial  0.250",
    ]
