"""The journal alone: what is written is read again as it was, and trouble with a file is one line."""

import json
import os
import shutil
from argparse import Namespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lmms_eval.api.instance import GenerationResult, TokenCounts
from loguru import logger

from lmms_patch.harness.asking import journal
from lmms_patch.harness.asking.journal import Journal, open_for
from lmms_patch.harness.asking.ranks import Ranks

ALONE = Ranks(0, 1)


@pytest.fixture
def lines():
    said = []
    number = logger.add(lambda message: said.append(message.record["message"]), level="WARNING")
    yield said
    logger.remove(number)


def left(folder, pairs):
    """A journal that a killed run left."""
    with Journal(folder, ALONE) as one:
        one.write(pairs)
    return one


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
    with Journal(tmp_path, ALONE) as third:
        assert (third.has_earlier, third.count()) == (True, 1700)
        assert third.find([*many, b"never asked"]) == many


def test_a_run_that_was_killed_while_it_wrote_loses_that_line_alone(tmp_path, lines):
    path = left(tmp_path, [(b"a", "1"), (b"b", "2")])._path
    path.write_text(path.read_text()[:-3])
    with Journal(tmp_path, ALONE) as again:
        assert again.find([b"a", b"b"]) == {b"a": "1"}
    assert lines == []


DAMAGED = ["", "5", "null", "[]", '"x"', '{"words": 1}', "[" * 100_000]
OTHER = ['{"text": ["x"]}', '{"text": null}', '{"text": "x", "counts": {"other": 1}}', '{"loss": "1", "greedy": true}', '{"loss": 1.5}']  # fmt: skip


@pytest.mark.parametrize("text", [*DAMAGED, *OTHER], ids=lambda text: text[:20])
def test_a_damaged_answer_is_asked_again_and_the_others_are_used(tmp_path, lines, text):
    path = left(tmp_path, [(b"a", "1"), (b"c", "3")])._path
    key = f'{{"key": "{b"b".hex()}", ' if text in OTHER else ""
    first, second, third = path.read_text().splitlines()
    path.write_text("\n".join([first, second, key + text[bool(key) :], third, ""]))
    with Journal(tmp_path, ALONE) as again:
        assert again.find([b"a", b"b", b"c"]) == {b"a": "1", b"c": "3"}
    assert [line.split(" answers in ")[0] for line in lines] == ["1"] * (text in DAMAGED)


def test_what_is_no_file_of_answers_is_one_line(tmp_path, lines):
    left(tmp_path, [(b"a", "1")])
    os.mkfifo(tmp_path / "0.jsonl")
    (tmp_path / "1.jsonl").write_bytes(b"\xff\xfe no answers at all\n")
    with Journal(tmp_path, ALONE) as again:
        assert again.find([b"a"]) == {b"a": "1"}
    assert [line.split(" are not used")[0].rpartition("/")[2] for line in lines] == ["0.jsonl", "1.jsonl"]


def wished(out, monkeypatch, wish):
    """What a run with the same command finds in an output folder."""
    monkeypatch.setenv(journal.KEEP, wish)
    with open_for(Namespace(output_path=str(out), model="m"), ["toy_rci3"], ALONE) as one:
        return one.find([b"a"])


def test_answers_of_another_folder_are_believed_only_when_that_is_typed(tmp_path, lines, monkeypatch):
    """Copied by the folder, and by the file; a renamed folder is the same folder."""
    one, other, third = (tmp_path / name for name in ("one", "other", "third"))
    with open_for(Namespace(output_path=str(one), model="m"), ["toy_rci3"], ALONE) as first:
        first.write([(b"a", "1")])
    shutil.copytree(one, other)
    assert wished(third, monkeypatch, "") == {}
    shutil.copy(first._path, next(third.rglob("*.jsonl")).parent)
    for folder in (other, third):
        assert wished(folder, monkeypatch, "") == {}
        assert (
            f"they were given to a run in {first.folder}; if you moved or copied them yourself, put LMMS_PATCH_JOURNAL=moved before"
            in lines.pop()
        )
        with Journal(next(folder.rglob("*.jsonl")).parent, Ranks(1, 2)) as another:
            assert not another.find([b"a"])
        assert lines == [], "the first rank says it for all"
        assert wished(folder, monkeypatch, "moved") == {b"a": "1"}
    assert wished(one, monkeypatch, "") == {b"a": "1"}
    one.rename(tmp_path / "renamed")
    assert wished(tmp_path / "renamed", monkeypatch, "") == {b"a": "1"}
    (tmp_path / "link").symlink_to(tmp_path / "renamed")
    assert wished(tmp_path / "link", monkeypatch, "") == {b"a": "1"}
    assert lines == []


def test_the_file_of_a_run_that_lives_is_left_alone(tmp_path, lines):
    living = Journal(tmp_path, ALONE)
    living.write([(b"a", "1")])
    with Journal(tmp_path, ALONE) as second:
        assert second.find([b"a"]) == {}
    assert len(lines) == 1
    assert "the run that writes it is still alive" in lines[0]
    with Journal(tmp_path, Ranks(1, 2)) as rank:
        assert rank.find([b"a"]) == {}
    assert len(lines) == 1, "of another rank of the same run nothing is said"
    living.write([(b"b", "2")])
    living.__exit__()
    with Journal(tmp_path, ALONE) as third:
        assert third.find([b"a", b"b"]) == {b"a": "1", b"b": "2"}


def test_a_full_disk_is_one_line_and_the_run_goes_on(tmp_path, lines, monkeypatch):
    with Journal(tmp_path, ALONE) as one:
        one.write([(b"a", "1")])
        monkeypatch.setattr(
            journal.os, "fsync", lambda number: (_ for _ in ()).throw(OSError(28, "No space left on device"))
        )
        one.write([(b"b", "2")])
        monkeypatch.undo()
        one.write([(b"c", "3")])
    assert len(lines) == 1
    assert "cannot be written any more" in lines[0]
    with Journal(tmp_path, ALONE) as again:
        assert again.find([b"a", b"c"]) == {b"a": "1"}


def test_answers_are_read_on_a_disk_without_locks(tmp_path, monkeypatch):
    left(tmp_path, [(b"a", "1")])

    def none(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(journal.fcntl, "flock", none)
    with Journal(tmp_path, ALONE) as one:
        assert one.find([b"a"]) == {b"a": "1"}
