"""The words of a text as ``mentions`` reads them: region words, numbers, ordinals, joints and brackets. Pure text work.

Texts have any length and any author, so the time to read one must grow at most in proportion to the text. Here each
place is looked at once, and a repeated part of a pattern is followed by ``(?!...)`` of the same characters where the
next part could match them too (``tests/magic/score/test_cost.py``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lmms_patch.magic.score.vocabulary import LANGUAGES, LETTER, pattern, pieces, words

SAME = str.maketrans(
    "‐‑‒–−﹣－―“”„‟«»‘’‚′\u00a0\u2007\u2009\u202f\u3000₀₁₂₃₄₅₆₇₈₉０１２３４５６７８９Ｒ（）［］，；：＃،؛",
    '-------—""""""\'\'\'\'     01234567890123456789R()[],;:#,;',
)
"""Replacements of one character by one, so that places in the text stay the same."""
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufe0f\ufeff]")
"""Characters without width, which some models write between a letter and its number."""
HAN = "零一二三四五六七八九十"
"""Chinese numerals; their place is their value."""
CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳❶❷❸❹❺❻❼❽❾❿➀➁➂➃➄➅➆➇➈➉➊➋➌➍➎➏➐➑➒➓"
LEFT, RIGHT = rf"(?<![{LETTER}0-9])", rf"(?![{LETTER}0-9²³])"
NOUNS = ("box", "boxes", "area", "areas", "frame", "frames")
_NOUNS = pieces(*NOUNS)
NOUN = rf"(?<![{LETTER}]){_NOUNS}(?![{LETTER}])"
UNIT = (
    r"(?:feet|foot|ft|inch(?:es)?|met(?:er|re)s?|cm|mm|m|km|miles?|pixels?|px|times|years?|days?|weeks?|hours?|minutes?|seconds?|pounds|lbs?|kg|"
    r"percent|dollars|o'clock|[ap]\.?m\.?|degrees|ohms?|grams?|g|ml|rows|metern?|zentimetern?|sekunden|jahren?|mal|m[eè]tres|metros|secondes|segundos|"
    r"ans|años|fois|veces|euros?|anos|vezes|metri|anni|volte)"
)
_COUNTER = (
    r"(?![ ]?(?:只(?![有是显能看])|[个個名人隻张張把條条辆輛岁歳米点點次种種位件块塊本台棵匹頭头つ枚冊月年日時分円步歩开개명대년월살권잔])|"
    r"[ ]?마리|[ ]?사람)"
)
"""No number of a box stands before these counting words of Chinese, Japanese and Korean."""
# R2-D2, R2 = 0.9 (a statistic), R1 = 10 kΩ (a resistor) and the R2 button (of a gamepad) are no boxes
_NO_BOX = (
    r"(?!\.\d)(?!\^)(?![- ]D2)(?!-(?!R?\d)[A-Za-z]+\d)(?![ ]*[=≈~][ ]*\d*\.\d)(?![ ]*=[ ]*\d+[ ]?[kM]?(?:Ω|Ω|ohm))"
    r"(?![ ](?:scores?|coefficients?|statistics?|buttons?|triggers?|shoulder)\b)"
)
# names may be written without a space between them: R1R2R3
_TIGHT = rf"\}}?[_#-]?\d{{1,3}}(?:{RIGHT}|(?=(?:(?-i:R)\d{{1,2}}){{1,9}}{RIGHT}))"
_INSIDE = rf"(?<=(?-i:R))(?:(?:\.|_?\()\d{{1,2}}(?:(?<=\.\d)|(?<=\.\d\d)|\)){RIGHT}|[ ]?\([ ]?\d{{1,2}}[ ]?\){RIGHT}|[ ]\d{{1,2}}{RIGHT}"
_INSIDE += rf"(?![ ]?[%°]|[ ]{UNIT}\b|[ ](?-i:[A-Z])\b))"
_BEHIND = rf"(?<=\((?-i:R))(?<![A-Za-z0-9]\(R)\)\d{{1,2}}{RIGHT}(?![ ]?[%°]|[ ]{UNIT}\b)"
_NAME = rf"(?:{LEFT}|(?<=R\d)|(?<=R\d\d))R(?:\}}?_?\{{\d{{1,3}}\}}|{_TIGHT}|{_INSIDE}|{_BEHIND}){_NO_BOX}"
_NUMBER = rf"\d{{1,3}}{RIGHT}(?!\.\d)(?![ ]?[%°ΩΩ]|'{{2}})(?![ ]?[x×][ ]?\d)(?![ -]?{UNIT}\b){_COUNTER}|[{CIRCLED}]"
# Chinese numerals begin many other words (一起, together), so what may follow one is listed
_AFTER_HAN = r"(?=\s|[到至是中里裡内內有和与與或、,。;:的为為在显顯包也都则則]|$)"
_SPELT = rf"{LEFT}{pieces('numbers')}{RIGHT}(?!-[a-z])|(?<=[框域盒])[一二三四五六七八九十]{_AFTER_HAN}"
_IDS = r"\d{1,2}(?:[ ]*(?:[,;&-]|and|\.{2,3})[ ]*[#R]?\d{1,2})"
"""An id of several in brackets or a tag."""
_TAG = rf"(?:[ ][^<>]{{0,40}})?>[ ]*#?(?=R?{_IDS}"
_N = rf"(?:\d{{1,2}}|[{HAN[1:]}])"


def _ordinals(spelt: str, last: str, with_number: str) -> str:
    return (
        # not behind a hyphen: "twenty-first" is not the first
        rf"(?<![-\d{LETTER}])(?:{pieces(spelt)}|{pieces(last)}|{pieces(with_number).replace('{n}', _N)})(?![{LETTER}])"
    )


_KINDS = {
    # several numbers behind one letter: R[1-3]
    "L": rf"{LEFT}R_?[\[{{(](?={_IDS}{{1,20}}[ ]?[\]}})])"
    rf"|<(?:[a-z]{{1,20}}_)?(?:{_NOUNS}{_TAG}{{0,1}}[ ]*</)|{pieces('boxes', 'areas', 'frames')}{_TAG}{{0,20}}[ ]*</))",
    "R": _NAME,
    "N": _ordinals("nth", "last", "nth_of"),
    "B": _ordinals("nth_behind", "last_behind", "nth_of_behind"),
    "n": rf"(?<![{LETTER}]){_NOUNS}(?:(?![{LETTER}])|(?=(?-i:R)[_ ]?\d))",
    "#": rf"{_NUMBER}|{_SPELT}",
    "g": words("things"),
    "t": rf"{words('to')}(?!-)",
    "b": words("both"),
    "a": words("all"),
    "l": words("labelled"),
    "s": words("signs"),
    ":": r"[:=]|(?<![\d)\]}])(?<![\d)\]}] )[→⇒]",
    "&": rf"{words('joins')}|[/&+∪∩→]|\\c[ua]p(?![a-z])",
    "v": words("verbs"),
    "f": words("from"),
    "j": words("adjectives"),
    "h": rf"{words('the')}|\bl'",
    "u": rf"(?:I (?:have )?)?(?:chose|{pieces('relevant', 'used', 'ignored_kinds')})(?![{LETTER}])"
    r"|of interest\b",
    # one tilde stands for "to", two strike a text out in Markdown
    ".": r"\.{2,3}|…|\\[lc]?dots[a-z]?|(?<!~)[~〜～](?!~)",
    "-": "[-—]",
    ",": "[,;、·]",
    "m": r"(?:\\boxed(?![a-z])|[*_`\"'$\\])+",
    "o": r"[(\[]",
    "O": r"[{<]",
    "c": r"[)}\]>]",
    "/": r"\n",
    "x": rf"\d+(?:[.,:]\d+)*|[{LETTER}]+|[^ \t]",
}
"""How each kind of token is written. The first that fits counts. The kinds of a text's tokens, one letter each, are what ``mentions`` reads."""
_LEXER = pattern("|".join(f"({pattern})" for pattern in _KINDS.values()))
_LETTERS = "".join(_KINDS)
_LAST = pattern(pieces("last", "last_behind"))


class Token(NamedTuple):
    """A word or mark of a text.

    Attributes:
        kind: one of ``_KINDS``.
        start: where it begins.
        end: where it ends.
        text: as written.
    """

    kind: str
    start: int
    end: int
    text: str


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text; spaces are none."""
    for match in _LEXER.finditer(text):
        yield Token(_LETTERS[(match.lastindex or 0) - 1], match.start(), match.end(), match[0])


def digits(token: Token) -> tuple[int, int]:
    """Return where the digits of a token stand: of an R-form or an ordinal with a number.

    The whole token where it has none.
    """
    whole = token.kind == "#" or _LAST.fullmatch(token.text)
    found = None if whole else re.search(rf"\d+|[{HAN[1:]}]", token.text)
    return (token.start + found.start(), token.start + found.end()) if found else (token.start, token.end)


def value(written: str) -> int:
    """Return the value of digits, a circled digit, a Chinese numeral or a number word."""
    if written in CIRCLED:
        return int(unicodedata.numeric(written))
    return int(written) if written.isdecimal() else HAN.index(written) if written in HAN else _spelt(_NUMBERS, written)


def place(token: Token, count: int) -> int:
    """Return which box an ordinal stands for, from 1; of ``last`` the number of boxes."""
    start, end = digits(token)
    number = token.text[start - token.start : end - token.start]
    return value(number) if number.isdecimal() or number in HAN else _spelt(_NTH, number) or count


def of_one_language(noun: str, number: str) -> bool:
    """Return whether some language has both words: "on" is ten behind a Turkish noun alone."""
    return any(nouns.fullmatch(noun) and numbers.fullmatch(number) for nouns, numbers in _BY_LANGUAGE)


def _spelt(known: Sequence[tuple[re.Pattern[str], int]], word: str) -> int:
    """Return the value of a word; 0 where there is none."""
    return next((number for pattern, number in known if pattern.fullmatch(word)), 0)


def _numbered(*entries: str) -> list[tuple[re.Pattern[str], int]]:
    """Return each piece of some entries as a pattern, with its place in its list, from 1."""
    found = (language.get(entry, ()) for language in LANGUAGES.values() for entry in entries)
    return [(pattern(piece), number) for listed in found for number, piece in enumerate(listed, 1)]


_BY_LANGUAGE = [(pattern(pieces(*NOUNS, "things", of=name)), pattern(pieces("numbers", of=name))) for name in LANGUAGES]
_NUMBERS, _NTH = _numbered("numbers"), _numbered("nth", "nth_behind")
