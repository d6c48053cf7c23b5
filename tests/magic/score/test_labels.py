"""Files of step labels: every mistake has its line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.magic.score.labels import LabelError, Row, read_labels, to_text
from tests.sizes import examples

GOOD = {"item": "q", "step": 1, "annotator": "ann", "correct": 1}


def put(folder, name, *rows):
    """A file with these lines, each a change of ``GOOD``, or a text as it is."""
    path = folder / name
    path.write_text("".join((one if isinstance(one, str) else json.dumps({**GOOD, **one})) + "\n" for one in rows))
    return path


def test_what_a_file_says(tmp_path):
    found = read_labels([put(tmp_path, "a.jsonl", {"group": "g"}, "", {"step": 2, "correct": 0, "note": "why"})])
    assert [(one.item, one.step, one.annotator, one.correct) for one in found.labels] == [
        ("q", 1, "ann", 1),
        ("q", 2, "ann", 0),
    ]
    assert (found.groups, found.unlabelled, found.open) == ({"q": "g"}, {}, {})


MISTAKES = [
    ([{"correct": 2}], "line 1: correct must not be 2; allowed: 0, 1"), ([{}, {"step": 0}], "line 2: step must be"),
    ([{"step": 1.5}], "line 1: step must be"), ([{"step": True}], "line 1: step must be"),
    ([{"item": ""}], "line 1: item must be"), ([{"annotator": ""}], "line 1: a verdict, but no 'annotator'"),
    ([{}, {"correct": 0}], "line 2: 'ann' labelled step 1 of 'q' in"),
    (
        [{"correct": None}, {"step": 2, "correct": None}],
        "none of the 2 steps is labelled yet; write 1 (correct) or 0",
    ),
    ([], "no labels"), ([{"source": "robot"}], "line 1: source must not be 'robot'; allowed"),
    ([{"group": "g"}, {"step": 2, "group": "h"}], "line 2: item 'q' has another group in"),
    ([{"text": "A dog."}, {"annotator": "b", "text": "A cat."}], "line 2: item 'q' has another text in"),
    ([{}, '{"item"'], "line 2: cut or not JSON"), (["[1]"], "line 1: "),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "message"), MISTAKES)
def test_mistakes_are_one_clear_line(tmp_path, rows, message):
    with pytest.raises(LabelError) as caught:
        read_labels([put(tmp_path, "a.jsonl", *rows)])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path):
    rows = [{"correct": 2}, {}, {"step": 0}, {"correct": 0}]
    with pytest.raises(
        LabelError,
        match=r"a\.jsonl: 3 faults: \(1\) line 1: correct .*\(2\) line 3: step .*\(3\) line 4: 'ann' labelled",
    ):
        read_labels([put(tmp_path, "a.jsonl", *rows)])


def test_mistakes_between_files(tmp_path):
    one = put(tmp_path, "one.jsonl", {"text": "A dog."})
    with pytest.raises(
        LabelError, match=r"two\.jsonl: line 1: 'ann' labelled step 1 of 'q' in .*one\.jsonl, line 1 already"
    ):
        read_labels([one, put(tmp_path, "two.jsonl", {"text": "A dog."})])
    with pytest.raises(LabelError, match="labels of two runs"):
        read_labels([one, put(tmp_path, "other.jsonl", {"annotator": "b", "text": "It is a cat."})])
    with pytest.raises(LabelError, match="cannot be read"):
        read_labels([tmp_path / "none.jsonl"])
    (tmp_path / "latin.jsonl").write_bytes(b'{"item": "\xe9"}')
    with pytest.raises(LabelError, match="cannot be read"):
        read_labels([tmp_path / "latin.jsonl"])


def test_people_and_judges_are_told_apart_and_unlabelled_lines_counted(tmp_path):
    found = read_labels(
        [
            put(
                tmp_path,
                "a.jsonl",
                {"group": "g"},
                {"annotator": "m", "correct": 0, "source": "judge"},
                {"item": "r", "correct": None, "group": "h"},
                {"item": "r", "annotator": "m", "correct": None, "source": "judge"},
            )
        ]
    )
    assert [(one.annotator, one.correct) for one in found.of("human")] == [("ann", 1)]
    assert [(one.annotator, one.correct) for one in found.of("judge")] == [("m", 0)]
    assert found.unlabelled == {"human": 1, "judge": 1}
    assert found.open == {"human": (("r", 1),), "judge": (("r", 1),)}
    assert found.groups == {"q": "g", "r": "h"}


TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)


@examples(100)
@given(st.lists(TEXT, min_size=1, max_size=4), TEXT)
def test_what_is_written_is_read_again(tmp_path_factory, texts, item):
    rows = [
        Row(item=item, step=number, annotator="ann", correct=number % 2, text=text)
        for number, text in enumerate(texts, 1)
    ]
    path = tmp_path_factory.mktemp("labels") / "a.jsonl"
    path.write_text(to_text(rows), encoding="utf-8")
    assert read_labels([path]).labels == tuple(rows)


@pytest.mark.parametrize("key", ["item", "step", "annotator", "correct", "source", "text", "group"])
@pytest.mark.parametrize(
    "value",
    ["9" * 400, '"' + "9" * 5000 + '"', "1e999", "[" * 900 + "]" * 900, "[" * 100_000, '{"a": 1}', '"\\u001b[31m\\n"'],
)
def test_any_value_is_a_label_or_one_short_line(tmp_path, key, value):
    line = json.dumps({**GOOD, "text": "So.", "group": "g", key: "@"}).replace('"@"', value)
    with pytest.raises(LabelError) as caught:  # the label stands twice, so one line is wrong in any case
        read_labels([put(tmp_path, "a.jsonl", {"step": 2}, line, {}, {})])
    said = str(caught.value).replace(str(tmp_path), "")
    assert len(said) < 500
    assert not {"\n", "\x1b"} & set(said)
