"""The grammar of named boxes, under ``extract``: where a text names numbered boxes. Pure text work.

A *group* is one stretch of text that names boxes together: ``R2``, ``regions 1, 3 and 4``, ``R1–R3``, ``the second box``. It is read from its first
word on: a head (``R`` with a number, a region word, an ordinal before a region word), then further numbers as long as they are joined by commas,
"and", dashes and the like. Each rule says what is no group, and why.

Rules:

* Region words: box, bounding box, bbox, region are strong; area, rectangle are weak. ``R2`` is strong; ``R 2``, ordinals, and a bare lower-case
``r2`` are weak.
* A number beyond the count is kept (the caller calls it invented) only from a strong form, and only with one or two digits: "room R101", "Area 51"
and "box 360" name no box.
* A bare number after a comma, "and" or a dash belongs to the list unless it counts something ("in region 2, 3 people").
* A descending pair (``R3-R1``) is two boxes, no range; so is "from R1 to R3" of a gaze that moves, and "compare R1 to R3".
* Ordinals need a region word immediately or after a colour word ("the first red box"). They are not read where they stand for an order of looking or
a thing on a shelf ("the first region I look at", "the second box of cereal", "a second box").
* Of a list of ordinals ("first, second and third box") the last 41 are read.
* Not read: roman numerals ("Region II"), "the last box", "both boxes", "all regions", "#2" or "the one labelled 2" by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lmms_patch.magic.score.mention_patterns import (
    ALL_FROM,
    BARE_R,
    COUNTED,
    FROM,
    HEAD,
    INSIDE,
    ITEM_N,
    ITEM_R,
    LIST,
    LOOKED_AT,
    NO_NOUN,
    NOT_ORDINAL_AFTER,
    NOT_ORDINAL_BEFORE,
    NTH,
    ORDINAL,
    ORDINALS,
    PAIRS,
    PRONOUN,
    RANGE,
    RELEVANT,
    SAME,
    WORDS,
)

_NEAR = 100
"""How many characters around a mention can count for or against it."""


@dataclass(frozen=True)
class Item:
    """A number, or range, of a group.

    Attributes:
        start: where its digits or word begin (those of a range's first number): the part that a new number replaces.
        end: where they end.
        numbers: the boxes, from 1; more than one for a range.
        kind: digits, word or ordinal: how the number is written.
    """

    start: int
    end: int
    numbers: tuple[int, ...]
    kind: str


@dataclass(frozen=True)
class Group:
    """A stretch of text that names boxes together.

    Attributes:
        start: where it begins, including the region word before the numbers.
        end: where it ends.
        items: what it names, in order; at least one.
        rigid: whether numbers cannot be replaced one by one: ranges, pairs joined by a dash, "box 2 of 5".
    """

    start: int
    end: int
    items: tuple[Item, ...]
    rigid: bool

    @property
    def numbers(self) -> tuple[int, ...]:
        """The boxes, each once, in order."""
        return tuple(dict.fromkeys(number for item in self.items for number in item.numbers))

    @property
    def of_how_many(self) -> bool:
        """Whether it ends with the number of boxes: ``box 2 of 5``."""
        return self.rigid and len(self.items) == 1 and len(self.items[0].numbers) == 1


def same_length(text: str) -> str:
    """Return the text with plain dashes, quotes, spaces, subscripts and full-width forms; every place stays the same."""
    return text.translate(SAME)


def groups(text: str, count: int) -> list[Group]:
    """Return the groups of a text, from left to right; they do not overlap.

    Args:
        text: what a model or an annotator wrote.
        count: number of boxes: beyond it only strong forms name a box (module docstring).
    """
    return list(_scan(same_length(text), count))


def _scan(text: str, count: int) -> Iterator[Group]:
    heads = [(HEAD, _from_word), (BARE_R, _from_r), (ORDINAL, _from_ordinal)]
    matches = sorted(
        ((m.start(), place, m) for place, (pattern, _) in enumerate(heads) for m in _overlapping(pattern, text)), key=lambda one: one[:2]
    )
    done = 0
    for start, place, match in matches:
        if start < done:
            continue
        group = heads[place][1](text, match, count)
        if group is not None:
            done = group.end
            yield group


def _overlapping(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield all matches, also those that begin inside another match."""
    place = 0
    while (match := pattern.search(text, place)) is not None:
        yield match
        place = match.start() + 1


def _before(text: str, place: int) -> str:
    return text[max(0, place - _NEAR) : place]


def _allowed(number: int, count: int, strong: bool) -> bool:
    return 1 <= number <= count or (strong and number < 100)


def _r_number(match: re.Match[str]) -> tuple[int, int, int]:
    """Return start, end and value of the digits of an R-form."""
    name = next(name for name in ("braced", "tight", "loose") if match[name] is not None)
    return match.start(name), match.end(name), int(match[name])


def _from_r(text: str, match: re.Match[str], count: int) -> Group | None:
    """Read a group that begins with ``R2``."""
    start, end, number = _r_number(match)
    strong = match["loose"] is None and (match["letter"] == "R" or text[max(0, match.start() - 1) : match.start()] in ("`", "*"))
    if number > count and re.match(r"[ ](?:bus|train|tram|line|route|road|engine|model)\b", text[match.end() : match.end() + _NEAR]):
        return None
    if re.search(r"\b(?:room|route|highway|suite|vitamin|toys)\s+$", _before(text, match.start()), re.I) or not _allowed(number, count, strong):
        return None
    return _collect(text, match.start(), match.end(), Item(start, end, (number,), "digits"), count, head="R")


def _from_word(text: str, match: re.Match[str], count: int) -> Group | None:
    """Read a group that begins with a region word."""
    word, before = match["word"].lower(), _before(text, match.start())
    plural, strong = word.endswith(("s", ")")), not word.startswith(("area", "rect"))
    relevant = bool(match["used"] or RELEVANT.search(before))
    if re.search(r"(?:\banother|\bp\.?[ ]?o\.?)\s+$", before, re.I) or (match["verb"] and not relevant):
        return None
    if "[" in match["open"] or "(" in match["open"]:
        if _coordinates(text, match.end("open"), plural, count):
            return None
        plural = True
    if match["plain"] is None and match["spelt"] is None:
        inner = ITEM_R.match(text, match.end("open"))
        if inner is None:
            return None
        start, end, number = _r_number(inner)
        first, stop, again = Item(start, end, (number,), "digits"), inner.end(), "R"
    else:
        item = _first_number(text, match, count, plural and not relevant)
        if item is None:
            return None
        first, stop, again = item, match.end(), "plural" if plural else "singular"
    if not _allowed(first.numbers[0], count, strong):
        return None
    group = _collect(text, match.start(), stop, first, count, head=again, strong=strong)
    alone = len(group.numbers) == 1 and match["plain"] is not None
    if alone and match["colon"] and match["word"].lower().endswith(("s", ")")) and not relevant and "[" not in match["open"]:
        return None  # "Bounding boxes: 4" says how many there are
    return _of_how_many(text, group, word, count) if again == "singular" and alone else group


def _first_number(text: str, match: re.Match[str], count: int, plain_plural: bool) -> Item | None:
    """Return the number after a region word, or None where it counts something else."""
    name = "plain" if match["plain"] is not None else "spelt"
    end = match.end(name)
    spelt = name == "spelt"
    if (spelt or match["open"].strip("*_`\"'$") or match["colon"] or match["verb"]) and _counts(text, end):
        return None
    if spelt:
        if PRONOUN.match(text, end):
            return None
        known = re.search(r"\b(?:the|this|that|each|every|an?|same|which)\s+(?:\w+\s+)?$", _before(text, match.start()), re.I)
        if known and not re.match(r"\s*(?:[.,;:)]|$|(?:is|shows|contains|has|and)\b)", text[end : end + _NEAR]):
            return None
    number = WORDS.index(match[name].lower()) if spelt else int(match[name])
    return Item(match.start(name), end, (number,), "word" if spelt else "digits")


def _coordinates(text: str, place: int, plural: bool, count: int) -> bool:
    """Return whether the bracket that ends before ``place`` holds coordinates, not box numbers."""
    inside = re.match(r"[^()\[\]{}<>]*", text[place : place + 2 * _NEAR])
    content = inside[0] if inside else ""
    numbers = re.findall(r"(?<![A-Za-z])\d+(?:\.\d+)?", content)
    if any("." in number for number in numbers):
        return True
    beyond = any(int(number) > count for number in numbers)
    far = any(int(number) > max(count, 99) for number in numbers)
    return far or (len(numbers) == 4 and (not plural or beyond)) or (len(numbers) in (2, 3) and not plural and beyond)


def _of_how_many(text: str, group: Group, word: str, count: int) -> Group | None:
    """Extend ``region 2`` to ``region 2 of 4``.

    Boxes also stand on shelves, so ``box 2 of 6`` is dropped (None) unless there are as many boxes.
    """
    total = re.match(r"[ ](?:out[ ])?of[ ](\d{1,3})\b", text[group.end : group.end + _NEAR])
    if total is None:
        return group
    if "box" in word and int(total[1]) != count:
        return None
    return Group(group.start, group.end + total.end(), group.items, True)


def _counts(text: str, end: int) -> bool:
    """Return whether a number that ends here counts what follows: ``3 people``, ``2 red cups``."""
    noun = re.match(r"[*_`\"']*[ ]([A-Za-z'-]+)", text[end : end + _NEAR])
    if noun is None:
        return False
    word = noun[1].lower()
    return bool(COUNTED.fullmatch(word)) or (len(word) > 2 and word.endswith("s") and not word.endswith("'s") and not NO_NOUN.fullmatch(word))


def _collect(text: str, start: int, end: int, first: Item, count: int, *, head: str, strong: bool = True) -> Group:
    """Read everything that is joined to the first number of a group."""
    items, rigid, ended, last = [first], False, False, first.start
    while True:
        step = _range_step(text, start, end, items, head, count) or _list_step(text, end, items, head, ended)
        if step is None:
            break
        item, end_of_item, joint, bare = step
        if not _allowed(item.numbers[-1], count, strong):
            break
        rigid, end, last = rigid or joint in ("range", "pair"), end_of_item, item.start
        ended = bare and (ended or joint == "end")  # after "1 and 2" only a new "R3" or "region 3" continues the list
        if joint == "range":
            item = Item(items[-1].start, items[-1].end, tuple(range(items[-1].numbers[-1], item.numbers[0] + 1)), item.kind)
            items.pop()
        items.append(item)
    return Group(start, _closed(text, start, end, last), tuple(items), rigid)


def _closed(text: str, start: int, end: int, last: int) -> int:
    """Return the end of a group, moved past the marks that close the stars, quotes and brackets opened in it.

    Args:
        text: the text.
        start: start of the group.
        end: end of the group so far.
        last: where its last number begins.
    """
    marks = _opened(text[start:last])
    if marks and text.count(marks, start, end) % 2 and text.startswith(marks[::-1], end):
        end += len(marks)
    for left, right in ("()", "[]", "{}", "<>"):
        if text.count(left, start, end) > text.count(right, start, end) and text.startswith(right, end):
            end += 1
    return end


def _opened(text: str) -> str:
    """Return the stars and quotes that a text ends with, with or without an ``R`` after them."""
    text = text.removesuffix("\n")
    inner = text.rstrip(" _{#-")
    if inner[-1:] in ("R", "r") and inner[:-1] != (before := inner[:-1].rstrip(_MARKS)):
        return inner[len(before) : -1]
    return text[len(text.rstrip(_MARKS)) :]


_MARKS = "*_`\"'$"
_Step = tuple[Item, int, str, bool]


def _range_step(text: str, start: int, end: int, items: list[Item], head: str, count: int) -> _Step | None:
    """Read the other end of a range, where one follows: item, where it stops, "range", "pair" or "list", whether it is a bare number."""
    joint = RANGE.match(text, end)
    if joint is None:
        return None
    following = _item(text, joint.end(), items, head)
    if following is None:
        return None
    item, stop, bare = following
    if bare and (
        (joint["dash"] and joint["dash"] != joint["dash"].strip() and head != "plural")
        or _counts(text, item.end)
        or text.startswith(" another", item.end)
    ):
        return None
    before, low, high = _before(text, start), items[-1].numbers[-1], item.numbers[0]
    to = (joint["to"] or "").lower() in ("to", "until", "up to")  # "through" and "all the way to" are ranges
    moves = (FROM.search(before) and not ALL_FROM.search(before)) or PAIRS.search(before)
    if to and moves and (head != "plural" or PAIRS.search(before)):
        return item, stop, "list", bare
    return item, stop, "range" if low < high < low + 100 and len(items[-1].numbers) == 1 else "pair", bare


def _list_step(text: str, end: int, items: list[Item], head: str, ended: bool) -> _Step | None:
    """Read the next number of a list, where one follows: item, where it stops, "list" or "end", whether it is a bare number."""
    joint = LIST.match(text, end)
    if joint is None:
        return None
    following = _item(text, joint.end(), items, head)
    if following is None:
        return None
    item, stop, bare = following
    last = bool(joint["end1"] or joint["end2"])
    if bare and (ended or _counts(text, item.end) or text.startswith(" another", item.end)):
        return None
    if bare and joint["comma"] and not last and head != "plural" and not _goes_on(text, item.end):
        return None
    return item, stop, "end" if last else "list", bare


def _goes_on(text: str, end: int) -> bool:
    """Return whether a list that began in the singular (``region 1, 3 and 4``) really continues."""
    rest = text[end : end + _NEAR]
    more = re.match(r"(?:\s*,\s*\d{1,2})*\s*,?\s*(?:and|or|&)\s+(\d{1,2})\b", rest)
    return bool(more and not _counts(text, end + more.end())) or bool(re.match(r"\s*(?:[.;:)\]]\s*(?!\d)|$)", rest))


def _item(text: str, place: int, items: list[Item], head: str) -> tuple[Item, int, bool] | None:
    """Read the item at a place, an R-form or a number; with where it stops, and whether it is a bare number."""
    named = ITEM_R.match(text, place)
    if named is not None:
        start, end, number = _r_number(named)
        return Item(start, end, (number,), "digits"), named.end(), False
    match = ITEM_N.match(text, place)
    if match is None:
        return None
    spelt = match["plain"] is None
    again = bool(match["again"])
    if spelt and not again and items[-1].kind != "word":
        return None
    name = "spelt" if spelt else "plain"
    number = WORDS.index(match[name].lower()) if spelt else int(match[name])
    if spelt and (PRONOUN.match(text, match.end()) or _counts(text, match.end())):
        return None
    return Item(match.start(name), match.end(name), (number,), "word" if spelt else "digits"), match.end(), not again


def _from_ordinal(text: str, match: re.Match[str], count: int) -> Group | None:
    """Read a group such as ``second box`` or ``first two boxes``."""
    before = _before(text, match.start())
    if NOT_ORDINAL_AFTER.match(text, match.end()) or NOT_ORDINAL_BEFORE.search(before):
        return None
    if LOOKED_AT.match(text, match.end()) and not INSIDE.search(before):
        return None  # "the first box I look at"
    places = [nth.span() for nth in re.finditer(NTH, text[match.start() : match.end("more")], re.I)]
    words = [(match.start() + a, match.start() + b) for a, b in places]
    numbers = [_nth(text[a:b].lower()) for a, b in words]
    several, plural = match["several"], match["noun"].lower().endswith(("s", "es"))
    if (bool(several) or len(numbers) > 1) != plural or (several and numbers != [1]):
        return None
    last = max(numbers) if not several else WORDS.index(several.lower()) if several.lower() in WORDS else int(several)
    if not 1 <= min(numbers) <= last <= count:
        return None
    if several:
        return Group(match.start(), match.end(), (Item(*words[0], tuple(range(1, last + 1)), "ordinal"),), True)
    return Group(match.start(), match.end(), tuple(Item(a, b, (number,), "ordinal") for (a, b), number in zip(words, numbers, strict=True)), False)


def _nth(word: str) -> int:
    """Return the number of ``second`` or ``2nd``."""
    return ORDINALS.index(word) if word in ORDINALS else int(re.sub(r"\D", "", word))
