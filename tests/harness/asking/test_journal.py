"""The journal alone: what is written is read again as it was, and trouble with a file is one line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lmms_eval.api.instance import GenerationResult, TokenCounts
from loguru import logger

from lmms_patch.harness.asking import journal
from lmms_patch.harness.asking.journal import Journal
from lmms_patch.harness.asking.rounds import Ranks

ALONE = Ranks(0, 1)


@pytest.fixture
def lines():
    said = []
    number = logger.add(lambda message: said.append(message.record["message"]), level="WARNING")
    yield said
    logger.remove(number)


def left(folder, pairs):
    """A journal that a killed run left."""
    Journal(folder, ALONE).write(pairs)


texts = st.text(st.characters(exclude_categories=()), max_size=20)
counts = st.none() | st.integers(0, 10**6)
answers = (
    texts
    | st.builds(GenerationResult, texts, st.none() | st.builds(TokenCounts, counts, counts, counts))
    | st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.booleans())
)


@given(answers)
def test_an_answer_is_read_as_it_was_given(answer):
    again = journal._answer(journal._parsed(json.dumps(journal._told(answer))))
    assert again == answer
    assert type(again) is type(answer)


def test_all_earlier_files_are_read(tmp_path):
    """Two ranks, then one."""
    many = {str(i).encode(): str(i) for i in range(1700)}
    left(tmp_path, list(many.items())[:900])
    left(tmp_path, list(many.items())[900:])
    third = Journal(tmp_path, ALONE)
    assert third.count() == 1700
    assert third.find([*many, b"never asked"]) == many


def test_a_run_that_was_killed_while_it_wrote_loses_that_line_alone(tmp_path):
    left(tmp_path, [(b"a", "1"), (b"b", "2")])
    [path] = tmp_path.iterdir()
    path.write_text(path.read_text()[:-3])
    again = Journal(tmp_path, ALONE)
    assert again.find([b"a", b"b"]) == {b"a": "1"}


DAMAGED = ["", "5", "null", "[]", '"x"', '{"words": 1}', "[" * 100_000]
OTHER = ['{"text": ["x"]}', '{"text": null}', '{"text": "x", "counts": {"other": 1}}', '{"loss": "1", "greedy": true}', '{"loss": 1.5}']  # fmt: skip


@pytest.mark.parametrize("text", [*DAMAGED, *OTHER], ids=lambda text: text[:20])
def test_a_damaged_answer_is_asked_again_and_the_others_are_used(tmp_path, text):
    left(tmp_path, [(b"a", "1"), (b"c", "3")])
    [path] = tmp_path.iterdir()
    key = f'{{"key": "{b"b".hex()}", ' if text in OTHER else ""
    first, second, third = path.read_text().splitlines()
    path.write_text("\n".join([first, second, key + text[bool(key) :], third, ""]))
    again = Journal(tmp_path, ALONE)
    assert again.find([b"a", b"b", b"c"]) == {b"a": "1", b"c": "3"}


def test_a_full_disk_is_one_line_and_the_run_goes_on(tmp_path, lines, monkeypatch):
    one = Journal(tmp_path, ALONE)
    one.write([(b"a", "1")])
    monkeypatch.setattr(
        journal.os, "fsync", lambda number: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    one.write([(b"b", "2")])
    monkeypatch.undo()
    one.write([(b"c", "3")])
    assert len(lines) == 1
    assert "cannot be written any more" in lines[0]
    again = Journal(tmp_path, ALONE)
    assert again.find([b"a", b"c"]) == {b"a": "1"}
