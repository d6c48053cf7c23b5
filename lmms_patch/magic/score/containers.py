"""Ids that stand for a box by their container alone: a table's column, a list under a heading, a JSON object. Pure text work."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from lmms_patch.magic.score.lexer import LEFT, NOUN
from lmms_patch.magic.score.vocabulary import LETTER, pieces, words

_NEAR = 100
_ONE, _MANY, _IGNORED = "region", "regions", "ignored region"
"""What is written before ids: of one box, of several, and of boxes that their container dismisses."""
_BOXES = pieces("boxes", "areas")
_DISMISSES = re.compile(words("ignored_kinds"), re.I)
_USED = r"(?:relevant|useful|used|key|needed|selected|chosen|important)"
_SIGN = r"(?:#|№|no\.?|nr\.?|num\.?|numbers?|ids?|index|idx|labels?|n[uú]m[eé]ro|n[º°]|编号|番号|번호|номер|numara|số|رقم|नंबर)"
_PLAIN = r"(?:outlined|marked|red|numbered|highlighted|labell?ed|bounding|drawn)"
_HEADING = re.compile(
    rf"[*_` ]*(?:(?:{_USED}|{pieces('ignored_kinds')})[ _])?(?:{_PLAIN}[ ]){{0,2}}(?!frame|label|outline|square|marker){NOUN}(?:[ _]?{_SIGN})?(?:[ ]used)?[*_` ]*",
    re.I,
)
"""The heading of a column of box numbers."""
_SURE = re.compile(rf"[*_` ]*{_USED}[ _]|.*{_SIGN}[*_` ]*$|(?!area)(?:.*[ *_`])?{pieces('box', 'area', 'frame')}(?:[ ]used)?[*_` ]*$", re.I)
"""A heading that names a box in whichever column; another one ("Boxes") may count, unless the column is the first."""
_BARE = re.compile(rf"[*_` ]*{_SIGN}[*_` ]*", re.I)
_NO_BOXES = re.compile(
    r"\b(?:steps?|questions?|options?|rank|scores?|players?|teams?|counts?|quantity|prices?|years?|stages?|actions?|thoughts?|reasoning|reasons?|facts?)\b",
    re.I,
)
"""What else stands in the heading of a table whose first column numbers no boxes."""
_CELL = re.compile(r"[ ]*[*_`#]{0,3}(?=\d)\d{1,2}((?:[ ]?(?:,|;|&|-|and)[ ]?#?\d{1,2}){0,20})[*_`]{0,3}[ ]*", re.I)
_LIST_HEAD = re.compile(
    rf"[ \t>#*_\"'-]{{0,20}}(?:[^\W_'-]+(?:[ _]|'s[ ])){{0,6}}(?:{_BOXES}|{pieces('ignored_kinds')})(?:[ _](?!\d)[^\W_]+){{0,5}}"
    r"[*_`\"' ]{0,5}[:=][*_` ]{0,5}\[?[ \t]*",
    re.I,
)
"""A line that ends with words on boxes and a colon: the numbers of the lines below are boxes."""
_LIST_ROW = re.compile(r"[ \t]*(?:[-*•–+][ \t]+)?[*_`#\"']{0,3}(\d{1,2})[*_`\"']{0,3}(?=[ \t]*(?:$|,[ \t]*$|[:=–—-][ \t]|\([^)\d]))")
"""A line of such a list. ``1.`` and ``1)`` number the list itself."""
_NAMED_ROW = re.compile(rf"[ \t]*(?:[-*•–+][ \t]+)?[*_`\"']{{0,3}}(?=(?:R[_ ]?\d|{NOUN}[ _#]*\d))", re.I)
_IN_LINE = re.compile(rf"{LEFT}{_BOXES}[^.:;!?\n\d{LETTER}][^.:;!?\n\d]{{0,40}}?(?::|[ ]-)[ ](?=\d)|{LEFT}{_BOXES}(?::|[ ]-)[ ](?=\d)", re.I)
_IN_LINE_ROW = re.compile(r"(?:^|[,;][ ](?:and[ ])?)(\d{1,2})(?=[ ]?(?:[-–:=]|is|shows|contains)[ ]+[a-z])", re.I)
"""``The boxes show: 1 - a fork; 2 - a knife``."""
_IN_LINE_IDS = re.compile(rf"\d{{1,2}}(?:\s*(?:[,;&]|{words('joins')})\s*(?:and\s+)?\d{{1,2}}){{1,30}}\s*(?:[.;)]|$)", re.I)
"""``Boxes that matter: 2 and 5.``"""
_AMONG = re.compile(
    rf"\b(?:among|of|from|in)[ ](?:(?:all|these|those|the)[ ]){{1,2}}(?:[a-z]+[ ]){{0,2}}{_BOXES},[ ]"
    r"(?=\d{1,2}(?:, \d{1,2}){0,20},? and \d{1,2} (?:are|show|contain|have|both|depict|look|cover|seem|appear)\b)",
    re.I,
)
"""``Among the marked regions, 1 and 3 are chairs``."""
_OBJECT = re.compile(r"\{[^{}]{1,800}\}")
_KEY = r"[\"']?\b(?:\w{1,20}_)?"
_ID = re.compile(rf"{_KEY}(?:id|index|idx|number|num|no|nr|label)[\"']?\s*[:=]\s*[\"']?(\d{{1,2}})[\"']?\s*(?=[,}}\n])", re.I)
_OF_BOX = re.compile(rf"{_KEY}{NOUN}(?:_\w{{1,20}})?[\"']?\s*:", re.I)
_NOT_USED = re.compile(rf"{_KEY}{_USED}[\"']?\s*:\s*[\"']?(?:false|no|0)\b", re.I)
_IN_LIST = re.compile(rf"{_BOXES}\w*[\"']?\s*[:=]\s*\[?\s*$", re.I)


def written_out(text: str) -> str:
    r"""Return the text with a region word before every number that stands for a box by its container alone.

    These are the bare numbers in a column headed "Region", in the list below "Relevant regions:", in a line such as "The boxes show: 1 - a fork;
    2 - a knife", and the id of a JSON object that has a box. What says that they are boxes is not in the same sentence, so a step would not tell.

    >>> written_out("Relevant regions:\n- 2")
    'Relevant regions:\n- region 2'
    """
    out: list[str] = []
    column: tuple[int, str] | None = None
    listed = ""
    for line in _inserted(text, _objects(text)).split("\n"):
        separator = "|" if "|" in line else "\t" if "\t" in line.strip() else ""
        if separator:
            column, line = _row(line, separator, column)
        else:
            column = None
        heading = _LIST_HEAD.fullmatch(line)
        row = (_LIST_ROW.match(line) or (_NAMED_ROW.match(line) if listed == _IGNORED else None)) if listed else None
        if heading:
            listed = _IGNORED if _DISMISSES.search(line) else _ONE
        elif row:
            line = _inserted(line, [(row.start(1), listed)] if row.re is _LIST_ROW else [(row.end(), "ignored")])
        elif line.strip() or not _LIST_HEAD.fullmatch(out[-1] if out else ""):
            listed = ""
        out.append(line if separator or heading or listed else _inserted(line, _in_line(line)))
    return "\n".join(out)


def _inserted(text: str, places: Sequence[tuple[int, str]]) -> str:
    """Return a text with a word and a space inserted at some places."""
    out, done = [], 0
    for place, word in sorted(places):
        out += [text[done:place], word, " "]
        done = place
    return "".join([*out, text[done:]]) if out else text


def _objects(text: str) -> list[tuple[int, str]]:
    """Return where the ids of boxes stand in JSON objects, each with what to write there."""
    found: list[tuple[int, str]] = []
    last = -1
    for match in _OBJECT.finditer(text):
        number = _ID.search(match[0])
        before = text[max(0, match.start() - _NEAR) : match.start()]
        follows = last >= 0 and not text[last : match.start()].strip(" \t\n,")
        if number and (follows or _OF_BOX.search(match[0]) or _IN_LIST.search(before)):
            last = match.end()
            found.append((match.start() + number.start(1), _IGNORED if _NOT_USED.search(match[0]) else _ONE))
    return found


def _row(line: str, separator: str, column: tuple[int, str] | None) -> tuple[tuple[int, str], str]:
    """Read a row of a table: the column of box numbers (its place, and what to write there; "" where there is none), and the row written out."""
    cells = line.split(separator)
    if column is None:
        return _column(cells), line
    place, word = column
    number = _CELL.fullmatch(cells[place]) if word and place < len(cells) and len(cells[place]) < 2 * _NEAR else None
    if number:
        start = len(number[0]) - len(number[0].lstrip(" *_`#"))
        cells[place] = _inserted(cells[place], [(start, _MANY if number[1] and word == _ONE else word)])
    return column, separator.join(cells)


def _column(cells: Sequence[str]) -> tuple[int, str]:
    """Return the column of box numbers that a table's first row tells, and what to write there; "" where it tells none."""
    short = [cell if len(cell) < _NEAR else "" for cell in cells]
    filled = next((place for place, cell in enumerate(short) if cell.strip()), 0)
    for place, cell in enumerate(short):
        if _HEADING.fullmatch(cell) and (place == filled or _SURE.match(cell)):
            return place, _IGNORED if _DISMISSES.search(cell) else _ONE
    bare = _BARE.fullmatch(short[filled]) and not any(map(_NO_BOXES.search, short)) and len(cells) > 1
    return filled, _ONE if bare else ""


def _in_line(line: str) -> Iterator[tuple[int, str]] | list[tuple[int, str]]:
    """Return where the ids of a list within a line stand, each with what to write there."""
    places: dict[int, str] = {}
    for heading in _IN_LINE.finditer(line):
        rest = re.split(r"[.!?]", line[heading.end() : heading.end() + 5 * _NEAR], maxsplit=1)[0]
        rows = list(_IN_LINE_ROW.finditer(rest))
        if len(rows) > 1 and rows[0].start() == 0 and all(int(a[1]) < int(b[1]) for a, b in itertools.pairwise(rows)):
            places |= {heading.end() + row.start(1): _ONE for row in rows}
        elif _IN_LINE_IDS.match(line, heading.end(), heading.end() + 2 * _NEAR):
            places |= {heading.end(): _MANY}
    return [*places.items(), *((found.end(), _MANY) for found in _AMONG.finditer(line))]
