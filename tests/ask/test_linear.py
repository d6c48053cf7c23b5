"""Readers of texts that models and strangers write take time in proportion to the text: a quadratic one takes sixteen times as long for four times as much."""

import time

import pytest

from lmms_patch.ask import mentions
from tests.sizes import size

READERS = {
    "options named in a question": lambda text: mentions.in_question(text, 4),
    "options named in options": lambda text: mentions.in_options([text, text]),
}
UNITS = ("1", "\n", " \n", "(A)x", "(A),1", "at (A)", "option A (A)", ",", "。", " ,", "  ")


def took(reader, text):
    """Return the processor seconds of the faster of two readings."""
    times = []
    for _ in range(2):
        began = time.process_time()
        reader(text)
        times.append(time.process_time() - began)
    return min(times)


KNOWN = [
    *(("options named in a question", unit) for unit in ("(A)x", "(A),1", "at (A)")),
    *(("options named in options", unit) for unit in (",", "。")),
]
"""Those that took quadratic time."""


@pytest.mark.parametrize(("name", "unit"), size(KNOWN, [(name, unit) for name in READERS for unit in UNITS]), ids=ascii)
def test_four_times_the_text_takes_about_four_times_as_long(name, unit):
    short, long = (took(READERS[name], (unit * length)[:length]) for length in (4_000, 16_000))
    assert long < 9 * short + 0.02
