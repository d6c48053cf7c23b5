"""Sentences in lines of a terminal; how many cells a character takes is asked of Python's own Unicode tables."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.present.terminal.folding import fold
from tests.making.terminal import cells

CHINESE = "这个模型不需要整张图片就能回答一半以上的问题，因此它的分数不能说明它看了图。"


@pytest.mark.parametrize(
    "text", [CHINESE, f"mmbench_cn ({CHINESE})", "a " + "한국어 " * 40, "日本語" * 30 + " and words after it"]
)
def test_wide_characters_fit_the_line(text):
    """38 characters of two cells each are 76 cells: with the hyphen and names before them they would not fit."""
    lines = fold(text, 40, "- ").splitlines()
    assert max(map(cells, lines)) <= 40
    assert all(cells(line) > 30 for line in lines[:-1])  # and no line is left half empty
    assert "".join(lines).removeprefix("- ").replace(" ", "") == text.replace(" ", "")


@given(st.lists(st.text("abcdefgh-/.", min_size=1, max_size=30), min_size=1, max_size=20), st.integers(20, 90))
def test_narrow_text_is_broken_as_the_standard_library_does(words, most):
    text = " ".join(words)
    assert fold(text, most, "- ") == textwrap.fill(
        text, most, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


@given(st.lists(st.text("ab大語한e\u0301", max_size=30).map("e".__add__), min_size=1, max_size=20), st.integers(4, 40))
def test_nothing_is_lost_and_only_a_narrow_word_is_longer_than_the_line(words, most):
    text = " ".join(words)
    lines = fold(text, most, rest="").split("\n")
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    for line in lines:
        assert cells(line) <= most or not any(char in line for char in " 大語한")
    assert not any(line[:1] == "\u0301" for line in lines[1:])  # an accent stays with its letter


def test_a_narrow_word_after_wide_characters_begins_a_line():
    assert fold("語語語abcdef", 8, rest="") == "語語語\nabcdef"
    assert fold("abcdef語語語", 8, rest="") == "abcdef語\n語語"


def test_paths_and_intervals_are_not_broken():
    path = "/a/very/long/path/with some/of-its-words"
    assert fold(f"{path} RCI -0.20 [-0.30, -0.10], x", 20).splitlines() == [
        "/a/very/long/path/with",
        "  some/of-its-words",
        "  RCI -0.20",
        "  [-0.30, -0.10], x",
    ]
    assert fold("a b", None, "- ") == "- a b"
