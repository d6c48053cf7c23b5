"""What a terminal is to a test: a stream that says it is one and keeps what is written to it, and how wide a text is."""

import io
import unicodedata


class Terminal(io.StringIO):
    def isatty(self):
        return True


def cells(text):
    """The cells of a terminal that a text takes, by Python's own Unicode tables: two for a wide character, none for an accent."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
