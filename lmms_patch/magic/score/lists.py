"""Lists of numbers in a text: what goes on from the first number of a group, as ``1, 3 and 4`` and ``R1–R3``. Pure text work."""

from __future__ import annotations

import re

from lmms_patch.magic.score.lexer import CIRCLED
from lmms_patch.magic.score.numbers import LIST_NUMBER, Group, Item, Text
from lmms_patch.magic.score.vocabulary import LETTER, pattern, pieces, words

_GLOSS = re.compile(r"[mc]{0,2}(?:o[^RoOL/]{1,15}?c|:[^RoOLn#/:,]{1,6}(?=,))")
"""A gloss behind an id: ``(plate)``, ``: plate,``."""
_GLOSSED = re.compile(r"[mc]{0,2}[o:]")
_STEP = re.compile(
    rf"({_GLOSS.pattern})?[mc]{{0,4}}(?:(t|-|,?\.,?)|(,?/?&{{0,2}}))h?(?:(?<=&)t)?[om]{{0,4}}(n[s-]?|s)?[om]{{0,3}}([R#])"
)
"""A gloss, a joint (of a range, or of a list), a head once more, and a number."""
_MOVES = pattern(
    r"\b(?:mov|shift|glanc|gaz|eyes?|attention|look|switch|jump|travel|wander|walk|go(?:es|ing)?|lead|extend|span|zoom|scroll|pass(?!eng)|follow|way|route|track|chang|differ|throw|carr|hand|trajector|view|direct|path|distance|return|turn|sweep|drift|stretch|run|"
    r"reach|compar|pan|proceed|step|line|arrow|transition)\w*\b",
)
"""Words of a gaze or thing that goes from one box to another, and does not dwell on those between."""
_FROM = pattern(rf"{words('from')}\s+(?:{pieces('the')}\s+)?$")
_ALL_FROM = pattern(
    r"\b(?:boxes|regions|areas|rectangles|all|everything|numbered|labell?ed|marked|rang(?:e|es|ing)|sequentially)\W+(?:[a-z]+\W+){0,2}from\s+$",
)
_PAIRS = pattern(
    r"\b(?:compar\w*|connect\w*|link\w*|relat\w*|match\w*|prefer\w*|clos(?:e|er|est)|next|adjacent|near(?:er|est)?|equal|similar|mov\w*|switch\w*|"
    r"return\w*|jump\w*|shift\w*|go|going|turn\w*)\s+(?:the\s+)?$",
)
_MORE = pattern(rf"(?:\s*,\s*\d{{1,2}})*\s*,?\s*(?:&|{words('joins')})\s*\d{{1,2}}\b")
_LIST_ENDS = pattern(r"\s*(?:[.;:)\]]\s*(?!\d)|$)")
_GERMAN = pattern(r"\b(?:und|oder|sowie)\b")
_OPENED = pattern(r"([*_`\"'$]{1,8})(?:R[ _{#-]{0,4})?\n?$")
"""The stars and quotes before the last number of a group, or before its ``R``."""


def read_list(text: Text, start: int, at: int, again: str, strong: bool) -> Group:
    """Read everything joined to the first number of a group.

    Args:
        text: the text.
        start: where the group begins.
        at: the place of its first number.
        again: what a bare number behind a comma needs: "name" after ``R1``; "one" after a region word in the
        singular; "many": nothing more.
        strong: whether numbers beyond the count are kept.
    """
    items = [text.item(at)]
    rigid, ended, last = items[0].kind == "sign", False, items[0].start
    while step := _STEP.match(text.kinds, at + 1):
        item, bare = text.item(step.end() - 1), not step[4] and step[5] == "#"
        joint = _joint(text, step, items[-1], item, again, start, ended and bare and not step[2])
        if not joint or not text.kept(item.numbers[-1], strong):
            break
        at, last = step.end() - 1, item.start
        rigid = rigid or joint in ("range", "pair") or item.kind == "sign"
        # After "1 and 2" only a new "R3" or "region 3" continues the list.
        ended = bare and (ended or joint == "end")
        if joint == "range":
            low = items.pop()
            item = Item(low.start, low.end, tuple(range(low.numbers[-1], item.numbers[0] + 1)), item.kind)
        items.append(item)
    return Group(start, _closed(text, start, text.tokens[at].end, last), tuple(items), rigid)


def _joint(text: Text, step: re.Match[str], before: Item, item: Item, again: str, start: int, ended: bool) -> str:
    """Return what joins two numbers: "range", "pair", "list", "end" (the last of a list), or "" where the second is not of the group.

    Args:
        text: the text.
        step: of ``_STEP``.
        before: the first number.
        item: the second.
        again: as in ``read_list``.
        start: where the group begins.
        ended: whether the list cannot go on with a bare number.
    """
    gloss, to, comma, named, kind = step.groups(default="")
    token, bare, after = text.tokens[step.end() - 1], kind == "#" and not named, text.after(item.end)
    joint = text.whole[before.end : token.start]
    spelt = kind == "#" and item.kind != "digits" and token.text not in CIRCLED
    if spelt and not (text.is_name(token, False) and (named or before.kind in ("word", "sign"))):
        return ""
    if (gloss or ";" in joint) and not bare:
        # The words in between may dismiss the next number, so it begins a group of its own.
        return ""
    if bare and (ended or text.counts(item.end) or after.startswith(" another")):
        return ""
    if to:
        spaced = re.search(r"\s—|—\s", joint) or (bare and again != "many" and re.search(r"\s-|-\s", joint))
        return "" if spaced else _range(text, start, before, item, text.tokens[step.start(2)].text.lower(), again)
    if not comma:
        return "list" if kind == "R" and text.tokens[step.end() - 2].end == token.start else ""
    last = "end" if "&" in comma and re.search(rf"[{LETTER}]", joint) else "list"
    numbered = "/" in comma and LIST_NUMBER.match(text.whole, item.start)
    if not bare or numbered or (_GERMAN.search(joint) and re.match(r" [A-ZÄÖÜ]", after)):
        return "" if bare else last
    sure = (
        last == "end"
        or (again == "many" and ":" not in gloss)
        or "," not in comma
        or (again == "name" and re.fullmatch(r",\d", joint + token.text))
    )
    return last if sure or (gloss and _GLOSSED.match(text.kinds, step.end())) or _goes_on(text, item.end) else ""


def _range(text: Text, start: int, low: Item, high: Item, word: str, again: str) -> str:
    """Return whether "R2 to R4" is a range, two boxes of a list, or a pair."""
    before = text.before(start)
    # "to" may join two boxes ("it moves from R1 to R2"); "through" and "all the way to" always join a range.
    if word in ("to", "until", "up to"):
        clause = "".join(text.clause(start, high.end))
        moves = again != "many" and _FROM.search(before) and not _ALL_FROM.search(before) and _MOVES.search(clause)
        if moves or _PAIRS.search(before):
            return "list"
    ascending = low.numbers[-1] < high.numbers[0] < low.numbers[-1] + 100
    return "range" if ascending and len(low.numbers) == 1 else "pair"


def _goes_on(text: Text, end: int) -> bool:
    """Return whether a list with a singular head (``region 1, 3 and 4``) continues."""
    more = _MORE.match(text.after(end))
    return bool((more and not text.counts(end + more.end())) or _LIST_ENDS.match(text.after(end)))


def _closed(text: Text, start: int, end: int, last: int) -> int:
    """Return the end of a group, moved past the closing stars, quotes and brackets of those opened inside.

    Args:
        text: the text.
        start: start of the group.
        end: end of the group so far.
        last: where its last number begins.
    """
    whole = text.whole
    opened = _OPENED.search(whole[max(start, last - 20) : last])
    if opened and whole.count(opened[1], start, end) % 2 and whole.startswith(opened[1][::-1], end):
        end += len(opened[1])
    for left, right in ("()", "[]", "{}", "<>"):
        if whole.count(left, start, end) > whole.count(right, start, end) and whole.startswith(right, end):
            end += 1
    return end
