"""Files of step labels: every mistake has its line, and what a spreadsheet does to a file is understood."""

import csv
import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.magic.score.labels import FIELDS, LabelError, StepLabel, read_labels, to_csv, to_jsonl
from tests.sizes import examples

HEAD = "item,step,annotator,correct"


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_csv_and_jsonl_say_the_same(tmp_path):
    table = put(tmp_path, "a.csv", f"{HEAD},note\nq1,1,ann,1,\nq1,2,ann,0,why\n")
    expected = (StepLabel("q1", 1, "ann", True), StepLabel("q1", 2, "ann", False))
    found = read_labels([table])
    assert (found.labels, found.groups, found.unlabelled) == (expected, {}, {})
    rows = [{"item": one.item, "step": one.step, "annotator": "ann", "correct": one.correct} for one in expected]
    assert read_labels([put(tmp_path, "a.jsonl", "\n\n".join(map(json.dumps, rows)) + "\n")]).labels == expected


def test_what_spreadsheets_do_is_understood(tmp_path):
    expected = (StepLabel("q1", 1, "ann", True), StepLabel("q1", 2, "ann", False))
    for name, content in {
        "semicolons.csv": f"{HEAD}\nq1,1,ann,TRUE\nq1,2,ann,FALSE\n".replace(",", ";"),
        "tabs.csv": f"{HEAD}\nq1,1,ann,1\nq1,2,ann,0\n".replace(",", "\t"),
        "mark.csv": f"\ufeff{HEAD}\r\nq1,1,ann,1\r\nq1,2,ann,0\r\n",
        "blank.csv": f"{HEAD}\nq1,1,ann,1\n,,,\nq1,2, ann ,0\n\n",
        "order.csv": "correct,annotator,step,item\n1,ann,1,q1\n0,ann,2,q1\n",
    }.items():
        assert read_labels([put(tmp_path, name, content)]).labels == expected, name


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "item,step,correct\nq,1,1\n", "line 1: no column 'annotator'"),
        ("a.csv", f"{HEAD}\nq,1,a,2\n", "line 2: correct must be 1, 0, or empty where it is not labelled yet, not '2'"),
        ("a.csv", f"{HEAD}\nq,1,a,1\nq,0,a,1\n", "line 3: step must be a whole number from 1, not '0'"),
        ("a.csv", f"{HEAD}\nq,1.5,a,1\n", "line 2: step must be a whole number from 1, not '1.5'"),
        ("a.csv", f"{HEAD}\n,1,a,1\n", "line 2: item must be the id of an item, not ''"),
        ("a.csv", f"{HEAD}\nq,1,,1\n", "line 2: a verdict, but no 'annotator'"),
        ("a.csv", f"{HEAD}\nq,1,a,1\nq,1,a,0\n", "line 3: a labelled step 1 of q in line 2 already"),
        (
            "a.csv",
            f"{HEAD}\nq,1,a,\nq,2,,\n",
            "none of the 2 steps is labelled yet; write 1 (correct) or 0 in the column 'correct'",
        ),
        ("a.csv", f"{HEAD}\n", "no labels"),
        ("a.csv", "", "line 1: no column 'item'"),
        ("a.csv", f'{HEAD}\nq,1,a,"1\n', "not CSV"),
        ("a.csv", HEAD.encode() + b"\nq,1,\xe9,1\n", "not UTF-8"),
        ("a.csv", f"{HEAD},source\nq,1,a,1,robot\n", "line 2: source must be 'human' or 'judge', not 'robot'"),
        ("a.csv", f"{HEAD},group\nq,1,a,1,g\nq,2,a,1,h\n", "line 3: q has another group in"),
        ("a.csv", f"{HEAD},text\nq,1,a,1,A dog.\nq,1,b,1,A cat.\n", "line 3: step 1 of q has another text in"),
        (
            "a.jsonl",
            '{"item": "q", "step": 1, "annotator": "a", "correct": 1}\n{"item"',
            "line 2: cut or not a JSON object",
        ),
        (
            "a.jsonl",
            '{"item": "q", "step": true, "annotator": "a", "correct": 1}',
            "line 1: step must be a whole number from 1, not True",
        ),
        (
            "a.jsonl",
            '{"item": "q", "step": 1, "annotator": "a", "correct": 1, "correct": 0}',
            "line 1: the key 'correct' stands twice",
        ),
        (
            "a.jsonl",
            r'{"item": "q", "step": 1, "annotator": "a\ud800", "correct": 1}',
            "line 1: annotator holds half a character",
        ),
        ("a.csv", f"{HEAD},correct\nq,1,a,1,0\n", "line 1: several columns 'correct'"),
        ("a.jsonl", "[1]", "line 1: cut or not a JSON object"),
        ("a.txt", "x", "read from .csv or .jsonl"),
    ],
)
def test_mistakes_are_one_clear_line(tmp_path, name, content, message):
    with pytest.raises(LabelError) as caught:
        read_labels([put(tmp_path, name, content)])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path):
    with pytest.raises(
        LabelError,
        match=r"a\.csv: 3 faults: \(1\) line 2: correct must be .*\(2\) line 4: step must be .*\(3\) line 5: a labelled step 1 of q in line 3 already",
    ):
        read_labels([put(tmp_path, "a.csv", f"{HEAD}\nq,1,a,2\nq,1,a,1\nq,0,a,1\nq,1,a,0\n")])


def test_mistakes_between_files(tmp_path):
    one = put(tmp_path, "one.csv", f"{HEAD},text\nq,1,a,1,A dog.\n")
    two = put(tmp_path, "two.csv", f"{HEAD},text\nq,1,a,1,A dog.\n")
    with pytest.raises(LabelError, match=r"two\.csv: line 2: a labelled step 1 of q in .*one\.csv, line 2 already"):
        read_labels([one, two])
    other_run = put(tmp_path, "other.csv", f"{HEAD},text\nq,1,b,1,It is a cat.\n")
    with pytest.raises(LabelError, match="labels of two runs"):
        read_labels([one, other_run])
    with pytest.raises(LabelError, match="cannot be read"):
        read_labels([tmp_path / "none.csv"])
    # what is not a letter may change on the way through a spreadsheet
    assert len(read_labels([one, put(tmp_path, "b.csv", f"{HEAD},text\nq,1,b,0,“A   dog”.\n")]).labels) == 2


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("图中有一只猫", "天空是蓝色的"),
        ("Это кошка", "Небо синее"),
        ("की", "का"),
        ("\u2460", "\u2461"),
        ("→ 🐈", "→ 🐕"),
        ("R1 猫", "R1 犬"),
        ("é", "è"),
    ],
)
def test_runs_are_told_apart_in_any_script(tmp_path, text, other):
    one = put(tmp_path, "one.csv", f"{HEAD},text\nq,1,a,1,{text}\n")
    with pytest.raises(LabelError, match="labels of two runs"):
        read_labels([one, put(tmp_path, "two.csv", f"{HEAD},text\nq,1,b,0,{other}\n")])
    for number, form in enumerate(("NFC", "NFD", "NFKC", "NFKD")):  # as other programs may write it
        again = put(
            tmp_path, f"again{number}.csv", f"{HEAD},text\nq,1,b{number},0, {unicodedata.normalize(form, text)} \n"
        )
        assert len(read_labels([one, again]).labels) == 2


def test_names_that_are_nearly_the_same_are_told(tmp_path):
    rows = [
        {"item": item, "step": 1, "annotator": who, "correct": 1}
        for item, who in (("a  b", "Ann"), ("a b", "ann"), ("ab", "bob"))
    ]
    found = read_labels([put(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))])
    assert [note.partition(" differ")[0] for note in found.notes] == [
        "items 'a  b' and 'a b'",
        "annotators 'Ann' and 'ann'",
    ]
    assert len(found.labels) == 3
    assert read_labels([put(tmp_path, "b.jsonl", json.dumps(rows[0]))]).notes == ()


def test_people_and_judges_are_told_apart_and_empty_lines_counted(tmp_path):
    path = put(tmp_path, "a.csv", f"{HEAD},source,group\nq,1,a,1,human,g\nq,1,m,0,judge,g\nr,1,a,,,h\nr,1,m,,judge,\n")
    found = read_labels([path])
    assert found.of("human") == [StepLabel("q", 1, "a", True)]
    assert found.of("judge") == [StepLabel("q", 1, "m", False, "judge")]
    assert found.unlabelled == {"human": 1, "judge": 1}
    assert found.groups == {"q": "g", "r": "h"}


TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(lambda text: text.strip())


@examples(100)
@given(st.lists(TEXT, min_size=1, max_size=4), TEXT)
def test_what_is_written_is_read_again(tmp_path_factory, texts, item):
    rows = [
        {
            "item": " ".join(item.replace("\0", " ").split()) or "q",
            "step": number,
            "annotator": "ann",
            "correct": number % 2,
            "text": text,
        }
        for number, text in enumerate(texts, 1)
    ]
    folder = tmp_path_factory.mktemp("labels")
    for name, content in (("a.csv", to_csv(rows)), ("a.jsonl", to_jsonl(rows))):
        found = read_labels([put(folder, name, content)])
        assert found.labels == tuple(StepLabel(row["item"], row["step"], "ann", bool(row["correct"])) for row in rows)


def test_a_spreadsheet_runs_nothing():
    rows = [{"item": "q", "step": 1, "text": text} for text in ("=1+1", "+1", "-1", "@x", "\t=1", "plain")]
    cells = list(csv.DictReader(io.StringIO(to_csv(rows).removeprefix("\ufeff"))))
    assert list(cells[0]) == list(FIELDS)
    assert [cell["text"] for cell in cells] == ["'=1+1", "'+1", "'-1", "'@x", "'=1", "plain"]


@pytest.mark.parametrize("key", ["item", "step", "annotator", "correct", "source", "text", "group"])
@pytest.mark.parametrize(
    "value",
    [
        "9" * 400,
        '"' + "9" * 5000 + '"',
        "1e999",
        "[" * 900 + "]" * 900,
        "[" * 100_000,
        '{"a": 1}',
        '"\\u001b[31m\\n' + "x" * 5000 + '"',
    ],
)
def test_any_value_is_a_label_or_one_short_line(tmp_path, key, value):
    good = {"item": "q", "step": 1, "annotator": "ann", "correct": 1, "source": "human", "text": "So.", "group": "g"}
    line = json.dumps({**good, key: "@"}).replace('"@"', value) + "\n"
    try:
        read_labels(
            [
                put(
                    tmp_path,
                    "a.jsonl",
                    json.dumps({**good, "step": 2}) + "\n" + line + json.dumps(good) + "\n" + json.dumps(good) + "\n",
                )
            ]
        )
    except LabelError as error:
        said = str(error).replace(str(tmp_path), "")
        assert len(said) < 300
        assert not {"\n", "\x1b"} & set(said)
        assert "line 2" in said or "line 3" in said or "line 4" in said
    else:
        raise AssertionError("the label stands twice, so one line is wrong in any case")
