"""Finds numbers that name boxes because of where they stand: in a table's column, a list under a heading, brackets, a JSON object. Pure text work."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmms_patch.magic.score.lexer import CIRCLED, LEFT, NOUN
from lmms_patch.magic.score.vocabulary import LETTER, pattern, pieces, words

# characters: no heading is longer, and patterns would be slow on a longer text
_NEAR = 100
_ONE, _IGNORED = "region", "ignored region"
"""What is written before an id, and before the id of a box that the container dismisses."""
_DISMISSES = pattern(words("ignored_kinds"))
_USED = rf"(?:key|important|{pieces('relevant', 'used')})"
_KINDS = rf"(?:{_USED}|{pieces('ignored_kinds')})"
_SIGN = r"(?:#|№|no\.?|nr\.?|num\.?|numbers?|ids?|index|idx|labels?|n[uú]m[eé]ro|n[º°]|编号|番号|번호|номер|numara|số|رقم|नंबर)"
_FRAMES = pieces("frames")
_BOXES = (
    rf"(?:{pieces('boxes', 'areas')}|{_KINDS}[ _]?{_FRAMES}|(?!frame|label|outline|zone|square|crop|marker){_FRAMES}"
)
_BOXES += rf"(?=:|[^.:;!?\n\d]{{0,30}}[ _]{_KINDS}))"
_PLAIN = r"(?:outlined|marked|red|numbered|highlighted|labell?ed|bounding|drawn)"
_HEADING = pattern(
    rf"[*_` ]*(?:{_KINDS}[ _])?(?:{_PLAIN}[ ]){{0,2}}(?!frame|label|outline|square|marker){NOUN}(?:[ _]?{_SIGN})?"
    r"(?:[ ]used)?[*_` ]*"
)
"""The heading of a column of box numbers."""
_SURE = pattern(
    rf"[*_` ]*{_USED}[ _]|.*{_SIGN}[*_` ]*$|(?!area)(?:.*[ *_`])?{pieces('box', 'area', 'frame')}(?:[ ]used)?[*_` ]*$"
)
"""A heading that names a box in whichever column; another one ("Boxes") may count, unless the column is the first."""
_BARE = pattern(rf"[*_` ]*{_SIGN}[*_` ]*")
_JUDGED = pattern(rf"(?!.*{NOUN}).*(?:{words('relevant', 'used', 'uses')}|keep|verdict)[^|]*")
"""The heading of a column that says of each box whether the box counts."""
_DENIED = pattern(rf"[*_` ]*(?:{pieces('denies', 'ignored_kinds')}|n(?=[*_` ]*$))(?![{LETTER}])")
_SKIPPED = pattern(rf"[*_` ]*{pieces('ignored_kinds', 'verdicts')}[*_` ]*")
_NO_BOXES = pattern(
    r"\b(?:steps?|questions?|options?|rank|scores?|players?|teams?|counts?|quantity|prices?|years?|stages?|actions?|thoughts?|reasoning|reasons?|facts?)\b",
)
"""What else stands in the heading of a table whose first column numbers no boxes."""
_CELL = pattern(r"^([ ]*[*_`#]{0,3})(?=\d{1,2}(?:[ ]?(?:,|;|&|-|and)[ ]?#?\d{1,2}){0,20}[*_`]{0,3}[ ]*$)")
_LIST_HEAD = pattern(
    rf"[ \t>#*_\"'-]{{0,20}}(?:[^\W_'-]+(?:[ _]|'s[ ])){{0,6}}(?:{_BOXES}|{pieces('ignored_kinds')}|(?<![^\W_] ){_USED})"
    r"(?:[ _](?!\d)[^\W_]+){0,5}[*_`\"' ]{0,5}[:=][*_` ]{0,5}\[?[ \t]*",
)
"""A line that ends with words on boxes and a colon: the numbers of the lines below are boxes."""
_LIST_ROW = pattern(
    r"^([ \t]*(?:[-*•–+][ \t]+)?[*_`#\"'\[]{0,3}(?:(?:id|index|number|no)[:=.][ ])?)"
    r"(?=\d{1,2}\][ ]|\d{1,2}[*_`\"'\]]{0,3}[ \t]*(?:$|,[ \t]*$|[:=–—-][ \t]|\([^)\d]))"
)

"""A line of such a list. ``1.`` and ``1)`` number the list itself."""
_NAMED_ROW = pattern(rf"^[ \t]*(?:[-*•–+][ \t]+)?[*_`\"']{{0,3}}(?=(?:R[_ ]?\d|{NOUN}[ _#]*\d))")
_HEAD = rf"{LEFT}{_BOXES}(?:[^.:;!?\n\d{LETTER}][^.:;!?\n\d]{{0,40}}?)?(?::|[ ]-)[ ]"
_IN_LINE = pattern(rf"{_HEAD}(?=\d)")
_IN_LINE_ROW = pattern(r"(?:^|(?<=[,;][ ])|(?<=[,;][ ]and[ ]))(\d{1,2})(?=[ ]?(?:[-–:=]|is|shows|contains)[ ]+[a-z])")
"""``The boxes show: 1 - a fork; 2 - a knife``."""
_LISTED_ID = rf"#?(?:\d{{1,2}}(?![\d.%]\d|%)|[{CIRCLED}])(?:[ ]?\([^()\n]{{1,60}}\))?"
_MORE_IDS = rf"(?:\s*(?:[,;&、·]|{words('joins')}){{1,2}}\s*{_LISTED_ID})"
_AFTER_IDS = r"(?=\s*(?:[.;)}\]|。]|,\s*[\"'][a-z_]+[\"']\s*:|$)|[ ]*\n)"
_IDS_FOLLOW = pattern(
    rf"{_HEAD}(?={_LISTED_ID}{_MORE_IDS}{{1,30}}{_AFTER_IDS})"
    rf"|\b(?:among|of|from|in)[ ](?:(?:all|these|those|the)[ ]){{1,2}}(?:[a-z]+[ ]){{0,2}}{_BOXES},[ ]"
    r"(?=\d{1,2}(?:, \d{1,2}){0,20},? and \d{1,2} (?:are|show|contain|have|both|depict|look|cover|seem|appear)\b)",
)
"""``Boxes that matter: 2 and 5.``, ``Among the marked regions, 1 and 3 are chairs``."""
_OBJECT = pattern(r"\{[^{}]{1,800}\}")
_KEY = r"[\"']?\b(?:\w{1,20}_)?"
_ID = pattern(rf"({_KEY}(?:id|index|idx|number|num|no|nr|label)[\"']?\s*[:=]\s*[\"']?)(?=\d{{1,2}}[\"']?\s*[,}}\n])")
_NUMBER_KEY = pattern(r"([\"'])(?=\d{1,2}\1\s*:)")
_OF_BOX = pattern(rf"{_KEY}(?:{NOUN}(?:_\w{{1,20}})?|{_KINDS})[\"']?\s*:")
_NOT_BOX = pattern(r"[\"'](?:option|step|question|answer|choice|player|page|year)s?[\"']\s*:")
_NOT_USED = pattern(
    rf"{_KEY}{_USED}[\"']?\s*:\s*[\"']?(?:{pieces('denies')}|0)\b"
    rf"|{_KEY}{pieces('ignored_kinds')}[\"']?\s*:\s*[\"']?(?:true|yes|1)\b"
)
_IN_LIST = pattern(rf"(?:[a-z_-]{{0,30}}{_BOXES}\w*|[\"']{_KINDS})[\"']?\s*[:=]\s*\[?\s*$")
_ONLY_USED = pattern(
    rf"(?:^|[\n.!?;,|{{(\[。])[\s>#*_\"'`•-]{{0,12}}(?:(?P<sure>(?:[^\W\d_]{{0,6}}[ -]?)?{pieces('relevant')}|"
    r"(?<=[\"'])(?:(?:[a-z]{1,12}_)?evidence|look(?:s|ed|ing)?|focus(?:es|ed)?|targets?|cit(?:ed|es|e)|support(?:ing|s)?|attend(?:ed)?|ground(?:ing|ed)?|"
    r"(?:examin|check|inspect|us|view|visit|consult|keep|kept|select|chos)(?:e|ed|en|ing)?)(?:_(?:box(?:es)?|regions?|areas?|ids?|rois?|objects?|on|in|at|to))?"
    rf"(?=[\"']))|(?<=[\"'])ids(?=[\"'])|{pieces('used', 'ignored_kinds')})"
    rf"[*_`\"' ]{{0,5}}(?:[:=→⇒]|[ ]-)[*_`\"' ]{{0,5}}(?P<listed>[\[{{(])?\s*"
    rf"(?={_LISTED_ID}(?(sure)|(?(listed)|{_MORE_IDS})){_MORE_IDS}{{0,30}}{_AFTER_IDS})"
)
"""``Used: 1 and 4``: words that need no box beside them."""
_CITED = pattern(
    r"(?<=[^\s\[\](){}:.!?=+*/|-] )(?<!box )(?<!boxes )(?<!region )(?<!regions )(?<!area )(?<!zone )(?<!zona )(?<!r[eé]gion )(?<!región )"
    r"(?<!região )(?<!caja )(?<!caixa )(?<!bereich )(?<!riquadro )(?<!область )(?<!рамка )(?<!영역 )(?<!박스 )(?<!상자 )"
    r"\[(?=#?(\d{1,2})\](?:[\s.,;:!?)]|$))|(?<![\[(\d]|[框域格盒枠\]])\[(?=#?\d{1,2}\][ ]?(?:"
    r"[✓✔✅❌✗✘✖]|[号號]?[里裡中内內处處上的可是为為显顯只仅僅有则則也没沒]|[号號][框区]|番|"
    r"では|には?|から|の|は|が|を|も|번|에서?|은|는|이|가|을|를|의|में|का|की|के|को|से))"
)
"""An id in brackets behind a word, or before a particle: ``the car [7]``."""
_NOUN_AND_ID = pattern(rf"{NOUN}[ _]?(?:{_SIGN}[ ]?)?#?\d{{1,2}}\b")
_AGAIN = pattern(
    rf"{words('recalls')}\s+(?=\d{{1,2}}(?:\s+(?:as well|too|also|instead|because|since)\b|\s*[.;!?)—](?!\d)|\s*(?:\n|$)))"
)
"""What stands before the bare number of another box, once a box was named."""
_REFERENCES = pattern(
    r"\b(?:references?|sources?|et al|https?|studies|study|options?|choices|paragraphs?|chapters?|pages?|lines?|figures?|footnotes?|steps?)\b"
    r"|\[\d{3}|=\s*\["
)


def written_out(text: str) -> str:
    r"""Return the text with a region word before every number made a box by its container alone.

    These are the bare numbers in a column headed "Region", in the list below "Relevant regions:", in a line such as
    "The boxes show: 1 - a fork; 2 - a knife" or "Used: 1, 4", ids in brackets behind words, and the id of a JSON object
    that has a box or says whether it is relevant. What says that they are boxes is not in the same sentence, so a step
    would not tell.

    >>> written_out("Relevant regions:\n- 2")
    'Relevant regions:\n- region 2'
    """
    out: list[str] = []
    column: tuple[int, str, int] | None = None
    listed, was_head = "", False
    for line in _recalled(_cited(_objects(_ONLY_USED.sub(_named, text)))).split("\n"):
        separator = "|" if "|" in line else "\t" if "\t" in line.strip() else ""
        cells = line.split(separator) if separator else []
        column = (column or _column(cells, listed)) if cells else None
        head = _LIST_HEAD.fullmatch(line)
        if cells and column and column[1] and cells != out[-1:] and len(cells) > column[0]:
            place, word, judged = column
            if any(_SKIPPED.fullmatch(cell) for cell in cells) or (
                0 <= judged < len(cells) and _DENIED.match(cells[judged])
            ):
                word = _IGNORED
            if word == _IGNORED:
                cells[place] = _NAMED_ROW.sub(r"\g<0>ignored ", cells[place])
            cells[place] = _CELL.sub(rf"\g<1>{word}s ", cells[place]) if len(cells[place]) < 2 * _NEAR else cells[place]
            line = separator.join(cells)
        if head:
            listed = _IGNORED if _DISMISSES.search(line) else _ONE
        elif listed and _LIST_ROW.match(line):
            line = _LIST_ROW.sub(rf"\g<1>{listed} ", line)
        elif listed == _IGNORED and _NAMED_ROW.match(line):
            line = _NAMED_ROW.sub(r"\g<0>ignored ", line)
        # An empty line right below a heading does not end its list.
        elif line.strip() or not was_head:
            listed = ""
        was_head = bool(head)
        out.append(line if cells or listed else _in_line(line))
    return "\n".join(out)


def _objects(text: str) -> str:
    """Return the text with a region word before the ids of boxes in JSON objects."""
    last, word = -1, _ONE

    def written(match: re.Match[str]) -> str:
        nonlocal last, word
        listed = _IN_LIST.search(text[max(0, match.start() - _NEAR) : match.start()])
        if last < 0 or text[last : match.start()].strip(" \t\n,"):
            if not (listed or _OF_BOX.search(match[0])) or _NOT_BOX.search(match[0]):
                return match[0]
            word = _IGNORED if listed and _DISMISSES.search(listed[0]) else _ONE
        last = match.end()
        if not _ID.search(match[0]):
            return _NUMBER_KEY.sub(r"\1region ", match[0])
        return _ID.sub(rf"\g<1>{_IGNORED if _NOT_USED.search(match[0]) else word} ", match[0], count=1)

    return _OBJECT.sub(written, text)


def _named(match: re.Match[str]) -> str:
    return f"{match[0]}{'ignored areas' if _DISMISSES.search(match[0]) else 'areas'} "


def _cited(text: str) -> str:
    """Return the text with a region word before ids in brackets, where the text has several such ids."""
    # a single number in brackets may be anything, and beside references it is a source
    several = len(set(re.findall(r"\[(\d{1,2})\]", text))) > 1 and not _REFERENCES.search(text)
    return _CITED.sub("area [", text) if several else text


def _recalled(text: str) -> str:
    """Return the text with a region word before bare numbers that go on from a box named before: "box 3 ... I looked at 6 as well"."""
    named = _NOUN_AND_ID.search(text)
    return text if named is None else text[: named.end()] + _AGAIN.sub(r"\g<0>area ", text[named.end() :])


def _column(cells: Sequence[str], listed: str) -> tuple[int, str, int]:
    """Return a table's column of box numbers by its first row, the word to write there, and the column with judgements.

    Args:
        cells: of the row.
        listed: what to write by the line above the table.
    """
    short = [cell if len(cell) < _NEAR else "" for cell in cells]
    filled = next((place for place, cell in enumerate(short) if cell.strip()), 0)
    judged = next((place for place, cell in enumerate(short) if _JUDGED.fullmatch(cell)), -1)
    for place, cell in enumerate(short):
        if _HEADING.fullmatch(cell) and (place == filled or _SURE.match(cell)):
            return place, _IGNORED if _DISMISSES.search(cell) else _ONE, judged
    bare = _BARE.fullmatch(short[filled]) and (listed or not any(map(_NO_BOXES.search, short)))
    return filled, (listed or _ONE) if bare else "", judged


def _in_line(line: str) -> str:
    """Return a line with a region word before the ids of a list inside."""
    line = _IDS_FOLLOW.sub(r"\g<0>regions ", line)
    heading = _IN_LINE.search(line)
    if heading is None:
        return line
    rest, stop, more = line[heading.end() : heading.end() + 5 * _NEAR].partition(".")
    numbers = [int(row[1]) for row in _IN_LINE_ROW.finditer(rest)]
    if len(numbers) > 1 and _IN_LINE_ROW.match(rest) and numbers == sorted(set(numbers)):
        rest = _IN_LINE_ROW.sub(r"region \1", rest)
    return line[: heading.end()] + rest + stop + more + line[heading.end() + 5 * _NEAR :]
