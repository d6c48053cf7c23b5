"""The journal alone: what is written is read again as it was, and trouble with a file is one line."""

import contextlib
import os
import shutil
import sqlite3
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
    again = journal._read(journal._written(answer))
    assert again == answer
    assert type(again) is type(answer)


@pytest.mark.parametrize("answer", [None, ["round 1", "round 2"], 3, (1, True), ("x", {})])
def test_other_answers_are_not_kept(tmp_path, answer):
    left(tmp_path, [(b"k", answer), (b"other", "x")])
    assert Journal(tmp_path, ALONE).find([b"k", b"other"]) == {b"other": "x"}


def test_all_earlier_files_are_read(tmp_path):
    """Two ranks, then one; more keys than one query takes."""
    many = {str(i).encode(): str(i) for i in range(1700)}
    left(tmp_path, list(many.items())[:900])
    left(tmp_path, list(many.items())[900:])
    with Journal(tmp_path, ALONE) as third:
        assert third.has_earlier
        assert third.find([*many, b"never asked"]) == many


def test_a_broken_file_is_one_line(tmp_path, lines):
    left(tmp_path, [(b"a", "1")])
    (tmp_path / "0.sqlite").write_bytes(b"no database at all, and longer than a header of SQLite would be" * 20)
    (tmp_path / "1.sqlite").write_bytes(b"")
    with Journal(tmp_path, ALONE) as again:
        assert again.find([b"a"]) == {b"a": "1"}
    assert [line.split(" are not used")[0].rpartition("/")[2] for line in lines] == ["0.sqlite", "1.sqlite"]
    assert not any("\n" in line for line in lines)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT CAST(i AS BLOB)"


@pytest.mark.parametrize(
    "made",
    [
        f"CREATE VIEW answers (key, answer) AS {ENDLESS}, 'x' FROM n WHERE i < 0",
        "CREATE TABLE answers (key BLOB, answer TEXT AS (hex(zeroblob(100000000))))",
        "CREATE VIRTUAL TABLE answers USING fts5(key, answer)",
    ],
    ids=["view", "column", "virtual"],
)
def test_a_file_that_computes_its_answers_is_not_read(tmp_path, lines, made):
    """A view of an endless query has no row for any key, and never says so."""
    left(tmp_path, [(b"a", "1")])
    with contextlib.closing(sqlite3.connect(tmp_path / "0.sqlite")) as other:
        other.execute(made)
        other.commit()
    with Journal(tmp_path, ALONE) as again:
        assert (again.find([b"a", b"b"]), again.count()) == ({b"a": "1"}, 1)
    assert [line.split(" are not used")[0].rpartition("/")[2] for line in lines] == ["0.sqlite"]


DAMAGED = ["", "5", "null", "[]", '"x"', '{"words": 1}', '{"text": ["x"]}', '{"text": null}', '{"text": "x", "counts": 5}', '{"text": "x", "counts": {"input_tokens": "1"}}',
           '{"text": "x", "counts": {"other": 1}}', '{"text": "x", "more": 1}', '{"loss": "1", "greedy": true}', '{"loss": 1.5, "greedy": 1}', '{"loss": 1.5}', b"\xff\xfe", 7,
           "[" * 100_000]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED, ids=lambda text: str(text)[:20])
def test_a_damaged_answer_is_asked_again_and_the_others_are_used(tmp_path, lines, text):
    left(tmp_path, [(b"a", "1")])
    with contextlib.closing(sqlite3.connect(tmp_path / "0.sqlite")) as other:
        other.execute("CREATE TABLE answers (key BLOB, answer TEXT)")
        other.executemany("INSERT INTO answers VALUES (?, ?)", [(b"b", text), (b"c", '{"text": "3"}')])
        other.commit()
    with Journal(tmp_path, ALONE) as again:
        assert again.find([b"a", b"b", b"c"]) == {b"a": "1", b"c": "3"}
    assert [line.split(" answers in ")[0] for line in lines] == ["1"]


@pytest.mark.skipif(not hasattr(os, "mkfifo") or os.getuid() != 0, reason="only root can give a file to another user")
def test_what_another_user_wrote_and_what_is_no_file_are_not_read(tmp_path, lines):
    left(tmp_path, [(b"a", "1")])
    (file,) = tmp_path.glob("*.sqlite")
    os.chown(file, 12345, -1)
    os.mkfifo(tmp_path / "pipe.sqlite")
    with Journal(tmp_path, ALONE) as again:
        assert not again.has_earlier
        assert again.find([b"a"]) == {}
    assert ["another user" in line for line in lines] == [True, False]


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
    shutil.copy(first._own, next(third.rglob("*.sqlite")).parent)
    for folder in (other, third):
        assert wished(folder, monkeypatch, "") == {}
        assert (
            f"they were given to a run in {first.folder}; if you moved or copied them yourself, put LMMS_PATCH_JOURNAL=moved before"
            in lines.pop()
        )
        with Journal(next(folder.rglob("*.sqlite")).parent, Ranks(1, 2)) as another:
            assert not another.find([b"a"])
        assert lines == [], "the first rank says it for all"
        assert wished(folder, monkeypatch, "moved") == {b"a": "1"}
    assert wished(one, monkeypatch, "") == {b"a": "1"}
    one.rename(tmp_path / "renamed")
    assert wished(tmp_path / "renamed", monkeypatch, "") == {b"a": "1"}
    (tmp_path / "link").symlink_to(tmp_path / "renamed")
    assert wished(tmp_path / "link", monkeypatch, "") == {b"a": "1"}
    assert lines == []


def test_a_journal_of_an_earlier_version_is_read_wherever_it_is(tmp_path, lines):
    left(tmp_path / "one", [(b"a", "1")])
    (file,) = (tmp_path / "one").glob("*.sqlite")
    with contextlib.closing(sqlite3.connect(file)) as old:
        old.execute("DROP TABLE place")
    (tmp_path / "other").mkdir()
    shutil.copy(file, tmp_path / "other")
    with Journal(tmp_path / "other", ALONE) as again:
        assert again.find([b"a"]) == {b"a": "1"}
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


def test_a_full_disk_is_one_line_and_the_run_goes_on(tmp_path, lines):
    with Journal(tmp_path, ALONE) as one:
        one.write([(b"a", "1")])
        one._db.execute("PRAGMA max_page_count = 10")
        one.write([(b"b", "x" * 10**6)])
        one.write([(b"c", "3")])
    assert len(lines) == 1
    assert "cannot be written any more" in lines[0]
    assert "full" in lines[0]
    with Journal(tmp_path, ALONE) as again:
        assert again.find([b"a", b"b", b"c"]) == {b"a": "1"}


def test_a_place_that_cannot_be_written_is_one_line(tmp_path, lines):
    (tmp_path / "out").write_text("a file")
    cli = Namespace(output_path=str(tmp_path / "out"), model="m")
    assert open_for(cli, ["toy_rci3"], ALONE) is None
    assert len(lines) == 1
    assert "no journal can be written" in lines[0]


def test_an_unknown_wish_is_one_line(tmp_path, lines, monkeypatch):
    monkeypatch.setenv(journal.KEEP, "yes")
    cli = Namespace(output_path=str(tmp_path), model="m")
    with open_for(cli, ["toy_rci3"], ALONE):
        pass
    assert lines == ["LMMS_PATCH_JOURNAL='yes' is not known; allowed: keep, off, moved"]


@pytest.mark.parametrize("cli", [None, Namespace(output_path=None), Namespace(output_path="")])
def test_without_an_output_folder_there_is_none(cli):
    assert open_for(cli, ["toy_rci3"], ALONE) is None
