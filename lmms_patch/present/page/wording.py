"""Numbers as a page shows them: a true minus, the decimals that they can carry, ``N/A`` and a reason. Pure."""

from __future__ import annotations

import math
import re
from typing import Any

from lmms_patch.ask.kinds import OF_CLIPS
from lmms_patch.present import sheets
from lmms_patch.runs import reading
from lmms_patch.stats.index import BANDS, band
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import clean

_NEGATIVE = re.compile(r"(?<![\w.])-(?=\d)")
"""The hyphen of a number below 0; not that of a range or of a name."""


def number(value: float | int | None, signed: bool = False, digits: int = 3, largest: float | None = None) -> str:
    """Return a number with a true minus; ``N/A`` where there is none.

    Args:
        value: the number.
        signed: write a plus before numbers above 0.
        digits: decimals of numbers below 10; larger ones get one.
        largest: the largest number that it stands beside (the end of its interval): all get the same decimals.

    >>> number(-0.15151), number(0.25, signed=True), number(1830.25), number(None)
    ('−0.152', '+0.250', '1,830.2', 'N/A')
    """
    places = digits if max(abs(value or 0.0), abs(largest or 0.0)) < 10 else min(digits, 1)
    return sheets.number(value, signed, places, thousands=True).replace("-", "−")


def in_words(said: str) -> str:
    """Return a sentence with true minus signs before numbers in place of hyphens, as in tables.

    >>> in_words("RCI_3 -0.20 [-0.30, +0.10], 95-100 docs of mme-1")
    'RCI_3 −0.20 [−0.30, +0.10], 95-100 docs of mme-1'
    """
    return _NEGATIVE.sub("−", said)


def value(estimate: Estimate, signed: bool = False, digits: int = 3) -> str:
    """Return the number of an estimate, without its interval and words."""
    return number(estimate.value, signed, digits, max(abs(estimate.low or 0), abs(estimate.high or 0)))


def words(estimate: Estimate | None) -> str:
    """Return the notes beside a number."""
    return ", ".join(reading.words(estimate))


def ends(estimate: Estimate, signed: bool = False, digits: int = 3) -> str:
    """Return the interval; empty where there is none, or none to be shown."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return ""
    largest = max(abs(estimate.low), abs(estimate.high), abs(estimate.value))
    return f"[{number(estimate.low, signed, digits, largest)}, {number(estimate.high, signed, digits, largest)}]"


def said(estimate: Estimate, signed: bool = False, digits: int = 3) -> str:
    """Return the number of an estimate, with the interval where known."""
    return f"{value(estimate, signed, digits)} {ends(estimate, signed, digits)}".rstrip()


def bands() -> list[tuple[str, str]]:
    """Return the bands of the index, from local to global, each with its bound (``stats.index.band``).

    >>> bands()[2:]
    [('balanced', '≤ +0.10'), ('moderate global', '< +0.30'), ('strong global', '≥ +0.30')]
    """
    last, name = BANDS[-1]
    open_end = number(last, True, 2)
    return [
        *((below, f"≤ {number(end, True, 2)}") for end, below in BANDS[:-1]),
        (name, f"< {open_end}"),
        ("strong global", f"≥ {open_end}"),
    ]


def raw(value: Any) -> str:
    """Return what a cell is sorted by; empty: last."""
    if isinstance(value, Estimate):
        value = value.value
    if isinstance(value, (bool, int)):
        return str(int(value))
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    return "" if value is None else str(value)


def percent(value: float | None) -> str:
    """Return a share in percent.

    >>> percent(0.11111)
    '11.1'
    """
    return sheets.number(None if value is None else 100.0 * value, digits=1)


def p_value(p: float | None) -> str:
    """Return a p-value with its name; empty where there is none.

    >>> p_value(0.0321), p_value(0.0004)
    ('p = 0.032', 'p < 0.001')
    """
    return f"p = {reading.p_text(p)}".replace("= <", "< ") if p is not None else ""


def band_class(value: float | None) -> str:
    """Return the style of an index, its band (RCI paper, 3.2); empty without an index."""
    return "" if value is None or not math.isfinite(value) else band(value).replace(" ", "-")


def colour(estimate: Estimate | None) -> str:
    """Return the style of an index by band; empty where the index must not be read as shown."""
    return "" if estimate is None or reading.contradicted(estimate) else band_class(estimate.value)


def short_reason(reason: str) -> str:
    """Return the first words of a reason: enough for a cell of a table.

    >>> short_reason("near chance: FIP 0.3 is below 0.34, the floor 0.28 and its margin")
    'near chance'
    >>> short_reason("the answers do not depend on the image (full image 0.6, a wrong image 0.6, 300 docs)")
    'does not look'
    """
    if (word := reading.refusal(reason)) in (reading.DOES_NOT_LOOK, OF_CLIPS.say(reading.DOES_NOT_LOOK)):
        return word
    return clean(re.split(r"[:;,(]", reason, maxsplit=1)[0].strip(), 48)
