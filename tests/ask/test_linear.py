"""Readers of texts that models and strangers write take time in proportion to the text: a quadratic one takes sixteen times as long for four times as much."""

import time

import pytest

from lmms_patch.ask import mentions, subtitles, timeline
from tests.sizes import size

READERS = {
    "points into the clip": lambda text: timeline.points_into_clip(text, [text, text]),
    "questions": lambda text: timeline.questions_in([text, text]),
    "subtitles": lambda text: subtitles.with_subtitles([text, f"{text}x"], ["who?", "who?"]),
    "options named in a question": lambda text: mentions.in_question(text, 4),
    "options named in options": lambda text: mentions.in_options([text, text]),
}
UNITS = (
    "1",
    "一1",
    "\n",
    " \n",
    "*\n",
    "subtitles:\n",
    "(A)x",
    "(A),1",
    "at (A)",
    "option A (A)",
    ",",
    "。",
    " ,",
    "the video ",
    "  ",
)


def took(reader, text):
    """Return the processor seconds of the faster of two readings."""
    times = []
    for _ in range(2):
        began = time.process_time()
        reader(text)
        times.append(time.process_time() - began)
    return min(times)


KNOWN = [
    *(("points into the clip", unit) for unit in ("1", "一1")),
    *(("subtitles", unit) for unit in ("\n", " \n", "*\n")),
    *(("options named in a question", unit) for unit in ("(A)x", "(A),1", "at (A)")),
    *(("options named in options", unit) for unit in (",", "。")),
    *(("questions", unit) for unit in (" \n", "  ")),
]
"""Those that took quadratic time."""


@pytest.mark.parametrize(("name", "unit"), size(KNOWN, [(name, unit) for name in READERS for unit in UNITS]), ids=ascii)
def test_four_times_the_text_takes_about_four_times_as_long(name, unit):
    short, long = (took(READERS[name], (unit * length)[:length]) for length in (4_000, 16_000))
    assert long < 9 * short + 0.02
