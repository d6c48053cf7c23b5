"""The grammar of named boxes, under ``extract``: where a text names numbered boxes. Pure text work.

A *group* is one stretch of text that names boxes together: ``R2``, ``regions 1, 3 and 4``, ``R1–R3``, ``the second box``. It is read from its first
word on: a head (``R`` with a number, a region word, an ordinal before a region word), then further numbers as long as they are joined by commas,
"and", dashes and the like. Each rule says what is no group, and why.

Rules:

* Region words: box, bounding box, bbox, region, RoI and the Chinese, Japanese and Korean words for region are strong; area, rectangle, frame, label,
outline and the words of other languages are weak. ``R2`` and ``R(2)`` are strong; ``R 2``, ``R (2)``, ``(R)2``, ``#2``, ordinals, a bare lower-case
``r2``, circled digits, tags, ``R[1-3]`` and a number behind a clause ("the box around the dog (3)") are weak.
* ``#2`` is read where the words around it speak of a place ("in #2", "#2 shows"), and not of a rank or a player.
* A number behind a clause is read where the clause says where the box is, not what it holds: "the box with cups (3)" counts cups.
* Numbers in a column or list under a heading of regions are read by ``written_out``; ``1.`` and ``1)`` number the list itself.
* A number beyond the count is kept (the caller calls it invented) only from a strong form, and only with one or two digits: "room R101", "Area 51"
and "box 360" name no box.
* A bare number after a comma, "and" or a dash belongs to the list unless it counts something ("in region 2, 3 people").
* A descending pair (``R3-R1``) is two boxes, no range; so is "from R1 to R3" of a gaze or path that moves, and "compare R1 to R3". Without a word of
moving, "from R2 to R4" is a range.
* Ordinals need a region word immediately or after a colour word ("the first red box"). They are not read where they stand for an order of looking or
a thing on a shelf ("the first region I look at", "the second box of cereal", "a second box").
* Of a list of ordinals ("first, second and third box") the last 41 are read.
* Not read: roman numerals ("Region II"), "the last box", "both boxes", "all regions" or "the one labelled 2" by itself; coordinates, fractions,
years, option letters, "(R) 4", "Pentium(R)4", "(L)1 and (R)2".
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmms_patch.magic.score.mention_patterns import (
    AFTER_CLAUSE,
    ALL_FROM,
    AMBIGUOUS,
    AMONG,
    BARE_R,
    BRACKETED,
    CELL,
    CIRCLE,
    CIRCLED,
    CLAUSE,
    COLUMN,
    COUNTED,
    COUNTS_IN,
    FOREIGN_NTH,
    FOREIGN_ORDINAL,
    FROM,
    HAN,
    HASHED,
    HEAD,
    IN_LINE,
    IN_LINE_ROW,
    INSIDE,
    INVISIBLE,
    ITEM_N,
    ITEM_R,
    LIST,
    LIST_HEAD,
    LIST_ROW,
    LOOKED_AT,
    MOVES,
    NO_HASH,
    NO_LETTER,
    NO_NOUN,
    NOT_ORDINAL_AFTER,
    NOT_ORDINAL_BEFORE,
    NTH,
    NUMBERED,
    ORDINAL,
    ORDINALS,
    OTHER_FRAME,
    PAIRS,
    PLURAL,
    PRONOUN,
    RANGE,
    RELEVANT,
    SAME,
    STRONG,
    TAGGED,
    WORD,
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
        kind: digits, word, ordinal, or sign (a circled digit, an ordinal of another language): how the number is written.
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
        rigid: whether numbers cannot be replaced one by one: ranges, pairs joined by a dash, "box 2 of 5", signs.
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
        return self.rigid and len(self.items) == 1 and len(self.items[0].numbers) == 1 and self.items[0].kind != "sign"


def same_length(text: str) -> str:
    """Return the text with plain dashes, quotes, spaces, subscripts and full-width forms; every place stays the same."""
    return text.translate(SAME)


def groups(text: str, count: int) -> list[Group]:
    """Return the groups of a text, from left to right; they do not overlap.

    Args:
        text: what a model or an annotator wrote.
        count: number of boxes: beyond it only strong forms name a box (module docstring).
    """
    plain = same_length(text)
    if not INVISIBLE.search(plain):
        return list(_scan(plain, count))
    kept = [place for place, char in enumerate(plain) if not INVISIBLE.match(char)]
    return [_moved(group, kept) for group in _scan("".join(plain[place] for place in kept), count)]


def _moved(group: Group, places: Sequence[int]) -> Group:
    """Return a group of the text without invisible characters, with its places in the whole text."""

    def span(start: int, end: int) -> tuple[int, int]:
        return places[start], places[end - 1] + 1

    items = tuple(Item(*span(item.start, item.end), item.numbers, item.kind) for item in group.items)
    return Group(*span(group.start, group.end), items, group.rigid)


def written_out(text: str) -> str:
    r"""Return the text with a region word before every number that stands for a box by its heading alone.

    These are the bare numbers in a column headed "Region", in the list below "Relevant regions:", and in a line such as "The boxes show: 1 - a fork;
    2 - a knife". Their heading is not in the same sentence, so a step would not tell what they number.

    >>> written_out("Relevant regions:\n- 2")
    'Relevant regions:\n- region 2'
    """
    out: list[str] = []
    column: tuple[int, str, bool] | None = None
    listed = ""
    for line in text.split("\n"):
        separator = "|" if "|" in line else "\t" if "\t" in line.strip() else ""
        if separator:
            column, line = _row(line, separator, column)
        else:
            column = None
        heading = LIST_HEAD.fullmatch(line)
        if heading:
            listed = heading["word"]
        elif listed and (row := LIST_ROW.match(line)):
            line = f"{line[: row.start('first')]}{_one(listed)} {line[row.start('first') :]}"
        elif line.strip() or not LIST_HEAD.fullmatch(out[-1] if out else ""):
            listed = ""
        out.append(line if separator or heading or listed else _in_line(line))
    return "\n".join(out)


def _row(line: str, separator: str, column: tuple[int, str, bool] | None) -> tuple[tuple[int, str, bool], str]:
    """Read a row of a table: the column of box numbers (place, heading's word, or "" where there is none), and the row written out."""
    cells = line.split(separator)
    if column is None:
        filled = next((place for place, cell in enumerate(cells) if cell.strip()), 0)
        for place, cell in enumerate(cells):
            heading = COLUMN.fullmatch(cell) if len(cell) < _NEAR else None
            plain = heading and not PLURAL.fullmatch(heading["word"]) and not heading["word"].lower().startswith("area")
            if heading and (heading["sure"] or heading["number"] or plain or place == filled):
                return (place, _one(heading["word"]), bool(heading["sure"])), line
        return (0, "", False), line
    place, word, _ = column
    number = CELL.fullmatch(cells[place]) if word and place < len(cells) and len(cells[place]) < 2 * _NEAR else None
    if number:
        at = number.start("first")
        cells[place] = f"{cells[place][:at]}{'regions' if number['more'] else word} {cells[place][at:]}"
    return column, separator.join(cells)


def _in_line(line: str) -> str:
    """Write out the numbers of a list within a line."""
    places: dict[int, str] = {}
    for heading in IN_LINE.finditer(line):
        rest = re.split(r"[.!?]", line[heading.end() : heading.end() + 5 * _NEAR], maxsplit=1)[0]
        rows = list(IN_LINE_ROW.finditer(rest))
        numbers = [int(row["first"]) for row in rows]
        if len(rows) > 1 and rows[0].start() == 0 and all(a < b for a, b in itertools.pairwise(numbers)):
            places |= {heading.end() + row.start("first"): _one(heading["word"]) for row in rows}
    places |= {found.end(): found["word"] for found in AMONG.finditer(line)}
    out, done = [], 0
    for place, word in sorted(places.items()):
        out += [line[done:place], word, " "]
        done = place
    return "".join([*out, line[done:]])


def _one(word: str) -> str:
    """Return an English region word in the singular."""
    return re.sub(r"(?<=x)(?:es|\(es\))$|\(s\)$|(?<!e)s$|(?<=[ae])s$", "", word, flags=re.I)


def _scan(text: str, count: int) -> Iterator[Group]:
    heads = [
        (HEAD, _from_word),
        (BARE_R, _from_r),
        (ORDINAL, _from_ordinal),
        (TAGGED, _from_brackets),
        (BRACKETED, _from_brackets),
        (FOREIGN_ORDINAL, _from_foreign_ordinal),
        (HASHED, _from_hash),
        (NUMBERED, _from_label),
        (CIRCLE, _from_label),
        (AFTER_CLAUSE, _from_clause),
    ]
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


def _value(digits: str) -> int:
    """Return the value of digits, a circled digit, a Chinese numeral or an English number word."""
    word = digits.lower()
    return (
        WORDS.index(word) if word in WORDS else HAN.index(word) if word in HAN else int(unicodedata.numeric(word)) if word in CIRCLED else int(word)
    )


def _digits(match: re.Match[str]) -> Item:
    """Return the group ``number`` of a match as an item."""
    return Item(match.start("number"), match.end("number"), (_value(match["number"]),), "digits")


def _allowed(number: int, count: int, strong: bool) -> bool:
    return 1 <= number <= count or (strong and number < 100)


def _r_number(match: re.Match[str]) -> tuple[int, int, int]:
    """Return start, end and value of the digits of an R-form."""
    name = next(name for name in ("braced", "tight", "dotted", "loose", "inside", "behind") if match[name] is not None)
    return match.start(name), match.end(name), int(match[name])


def _from_r(text: str, match: re.Match[str], count: int) -> Group | None:
    """Read a group that begins with ``R2``."""
    start, end, number = _r_number(match)
    bracketed = match["inside"] is not None or match["behind"] is not None
    if bracketed and NO_LETTER.search(_before(text, match.start()) + text[match.end() : match.end() + _NEAR]):
        return None
    strong = match["loose"] is None and not bracketed and (match["letter"] == "R" or text[max(0, match.start() - 1) : match.start()] in ("`", "*"))
    if number > count and re.match(r"[ ](?:bus|train|tram|line|route|road|engine|model)\b", text[match.end() : match.end() + _NEAR]):
        return None
    joined = re.match(r"R\d", text[match.end() : match.end() + 2])
    if joined and any(int(digits) > count for digits in re.findall(r"\d+", text[match.start() : match.end() + 30].split(" ")[0])):
        return None  # "R1R2", but no licence plate
    if re.search(r"\b(?:room|route|highway|suite|vitamin|toys)\s+$", _before(text, match.start()), re.I) or not _allowed(number, count, strong):
        return None
    return _collect(text, match.start(), match.end(), Item(start, end, (number,), "digits"), count, head="R")


def _from_word(text: str, match: re.Match[str], count: int) -> Group | None:
    """Read a group that begins with a region word."""
    word, before = match["word"].lower(), _before(text, match.start())
    plural, strong = bool(PLURAL.fullmatch(word)), bool(STRONG.match(word))
    relevant = bool(match["used"] or RELEVANT.search(before))
    if re.search(r"(?:\banother|\bp\.?[ ]?o\.?)\s+$", before, re.I) or (match["verb"] and not relevant):
        return None
    if re.search(r"\bnumber of (?:the )?$", before, re.I) or (AMBIGUOUS.match(word) and _another_frame(text, match)):
        return None
    if match["from"]:
        plural = True
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
        item = _first_number(text, match)
        if item is None:
            return None
        first, stop, again = item, match.end(), "plural" if plural else "singular"
    if not _allowed(first.numbers[0], count, strong):
        return None
    group = _collect(text, match.start(), stop, first, count, head=again, strong=strong)
    alone = len(group.numbers) == 1 and match["plain"] is not None
    if alone and match["colon"] and PLURAL.fullmatch(word) and not relevant and "[" not in match["open"]:
        return None  # "Bounding boxes: 4" says how many there are
    return _of_how_many(text, group, word, count) if again == "singular" and alone else group


def _another_frame(text: str, match: re.Match[str]) -> bool:
    """Return whether a word such as frame or label, with a number, names something else than a box: ``label: 3 g``, ``frame_2.png``."""
    joint = text[match.end("word") : match.end("open")]
    if match["colon"] or match["verb"] or "(" in match["open"] or OTHER_FRAME.search(_before(text, match.start())):
        return True
    counts = match["plain"] is not None and (_counts(text, match.end()) or re.match(r"-[a-z]", text[match.end() : match.end() + 2]))
    return bool(counts) or (match["word"][0].isascii() and not re.search(r"\s", joint))


def _first_number(text: str, match: re.Match[str]) -> Item | None:
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
    return Item(match.start(name), end, (_value(match[name]),), "word" if spelt and match[name].isascii() else "digits")


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
    moves = (FROM.search(before) and not ALL_FROM.search(before) and _moves(text, before, stop)) or PAIRS.search(before)
    if to and moves and (head != "plural" or PAIRS.search(before)):
        return item, stop, "list", bare
    return item, stop, "range" if low < high < low + 100 and len(items[-1].numbers) == 1 else "pair", bare


def _moves(text: str, before: str, stop: int) -> bool:
    """Return whether the sentence of "from R2 to R4" is of something that goes from one to the other."""
    after = re.split(r"[.!?;\n]", text[stop : stop + _NEAR], maxsplit=1)[0]
    return bool(MOVES.search(re.split(r"[.!?;\n]", before)[-1]) or MOVES.search(after))


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
    if bare and (joint["end2"] or "").lower() in ("und", "oder", "sowie") and re.match(r" [A-ZÄÖÜ]", text[item.end : item.end + 2]):
        return None  # German nouns, which the number counts
    tight = head == "R" and re.match(r",[1-9](?!\d)", text[end : end + 3])  # "R1,2", but not "R1,000"
    if bare and joint["comma"] and not (last or tight) and head != "plural" and not _goes_on(text, item.end):
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
    number = _value(match[name])
    if spelt and (PRONOUN.match(text, match.end()) or _counts(text, match.end())):
        return None
    kind = "word" if spelt and match[name].isascii() else "digits"
    return Item(match.start(name), match.end(name), (number,), kind), match.end(), not again


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
    if (plural and not several and len(numbers) == 1) or (several and (not plural or numbers != [1])):
        return None
    if match["noun"].lower() == "one" and not re.search(rf"{NTH}[^.;!?\n]*{WORD}[^.;!?\n]*\b(?:and|or|than)\s+the\s+$", before, re.I):
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


def _from_foreign_ordinal(text: str, match: re.Match[str], count: int) -> Group | None:
    """Read ``第二个框``, ``3番目の枠``, ``두 번째 영역``, ``der dritte Kasten`` and their like."""
    name = next(name for name in ("chinese", "chinese_too", "named", "counted", "korean", "latin", "latin_too") if match[name] is not None)
    words = (number for pattern, number in FOREIGN_NTH if pattern.match(match[name]))
    number = _value(match[name]) if match[name] in HAN or match[name].isdecimal() else next(words)
    if not 1 <= number <= count:
        return None
    kind, digits = "digits" if match[name].isdecimal() else "sign", match.span(name)
    return Group(match.start(), match.end(), (Item(*digits, (number,), kind),), kind == "sign")


def _from_brackets(text: str, match: re.Match[str], count: int) -> Group | None:
    """Read numbers that brackets or tags hold together: ``R[1-3]``, ``<regions>1, 3</regions>``."""
    tag = "word" in match.re.groupindex
    item = _digits(match)
    if not 1 <= item.numbers[0] <= count or (tag and _coordinates(text, item.start, bool(PLURAL.fullmatch(match["word"])), count)):
        return None
    return _collect(text, match.start(), match.end(), item, count, head="plural", strong=False)


def _from_hash(text: str, match: re.Match[str], count: int) -> Group | None:
    """Read ``#2`` where it stands for a place, not for a rank or a player."""
    around = re.split(r"[.!?;\n]", _before(text, match.start()))[-1] + re.split(r"[.!?;\n]", text[match.end() : match.end() + _NEAR], maxsplit=1)[0]
    return None if NO_HASH.search(around) else _from_label(text, match, count)


def _from_label(text: str, match: re.Match[str], count: int) -> Group | None:
    """Read one number by itself, as the label of a box."""
    item = _digits(match)
    if match["number"] in CIRCLED:
        item = Item(item.start, item.end, item.numbers, "sign")
    return Group(item.start, item.end, (item,), item.kind == "sign") if 1 <= item.numbers[0] <= count else None


def _from_clause(text: str, match: re.Match[str], count: int) -> Group | None:
    """Read the number behind a clause on a region: ``the box around the dog (3)``."""
    clause = CLAUSE.search(_before(text, match.start()))
    if clause is None or ((match["bracket"] or clause["around"] == "of") and COUNTS_IN.search(clause[0])):
        return None
    return _from_label(text, match, count)
