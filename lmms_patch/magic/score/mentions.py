"""The grammar of named boxes, under ``extract``: where a text names numbered boxes. Pure text work.

A *group* is one stretch of text that names boxes together: ``R2``, ``regions 1, 3 and 4``, ``R1–R3``, ``the second box``. It is a *head* and a
*list of ids*. A head is an R with a number, a region word before a number (``box no. 2``) or behind an ordinal (``the last box``), or a sign
(``#2``); the words are those of fourteen languages (``regions.yaml``). A list goes on through commas, "and", dashes, and glosses in brackets
("boxes 1 (plate), 3 (cup)"). ``containers`` writes a region word before ids that a table, list or JSON object numbers.

Rules:

* Region words are strong (box, region), weak (area), or often another thing (frame). A number beyond the count is kept (the caller calls it
  invented) only behind a strong word or ``R``, and only with one or two digits: "room R101", "Area 51" and "box 360" name no box. ``R 2``,
  ``R (2)``, ``(R)2``, ``#2``, ordinals, a bare lower-case ``r2``, circled digits, tags, ``R[1-3]`` and a number behind a clause are weak.
* ``#2`` is read where the words around it speak of a place ("in #2", "#2 shows"), and not of a rank or a player.
* A number behind a clause is read where the clause says where the box is, not what it holds: "the box with cups (3)" counts cups.
* A bare number after a comma, "and" or a dash belongs to the list unless it counts something ("in region 2, 3 people").
* A descending pair (``R3-R1``) is two boxes, no range; so is "from R1 to R3" of a gaze or path that moves, and "compare R1 to R3". Without a word of
  moving, "from R2 to R4" is a range.
* Ordinals are not read where they stand for an order of looking or a thing on a shelf ("the first region I look at", "the second box of cereal",
  "a second box").
* Of a list of ordinals ("first, second and third box") the last 41 are read.
* Not read: roman numerals ("Region II"), "all regions" without their number; coordinates, fractions, years, option letters, "(R) 4",
  "Pentium(R)4", "(L)1 and (R)2".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmms_patch.magic.score.lexer import CIRCLED, END, HAN, INVISIBLE, NOUN, SAME, Token, digits, place, tokens, value
from lmms_patch.magic.score.vocabulary import ENGLISH, ENGLISH_NTH, pieces, words

_BRIDGE = ("mark", "sign", "labelled", "verb", "colon", "open", "close", "line", "used", "dash", "from")
"""The kinds of tokens that may stand between a region word and its number."""
_MANY = re.compile(pieces("boxes", "areas", "frames"), re.I)
_PLURAL = re.compile(r".*(?:s|\))", re.I)
"""A region word that is certainly not of one box."""
_STRONG = re.compile(pieces("box", "boxes"), re.I)
_FRAME = re.compile(pieces("frame", "frames"), re.I)
_NO_NTH = re.compile(r"(?:frame|label|outline|marker|crop|square)s?", re.I)
"""What is no box behind an ordinal: "the first label"."""
_STOP = re.compile(r"[.!?;\n]")
_SENTENCE = re.compile(r"(?:^|[.!?;。]\s|\n)(?:And |Then |Next, )?[*_`]{0,3}$", re.I)
"""What stands before the start of a sentence."""
_LIST_NUMBER = re.compile(r"\s*\d+[.)](?:\s|$)")
_ANOTHER = re.compile(r"(?:\banother|\bp\.?[ ]?o\.?|\bnumber of(?: the)?)\s+$", re.I)
_ROUTE = re.compile(r"\b(?:room|route|highway|suite|vitamin|toys)\s+$", re.I)
_BUS = re.compile(r"[ ](?:bus|train|tram|line|route|road|engine|model)\b")
_SIDES = re.compile(r"\(L\)|\b[A-QS-Z] ?\(\d")
"""What stands beside ``(R)2`` and ``R (2)`` where the letter is one of several: left and right, the tiles of a game."""
_OTHER_FRAME = re.compile(
    r"\b(?:picture|photo|window|door|video|time|key|bed|bike|wooden|glasses|price|name|shipping|food|warning|wine|address|black|war|comfort|A|town|"
    r"city|market|magic)[ -]+$",
    re.I,
)
"""What stands before a frame, label or square that is no region."""
_TAG = re.compile(r"(?:[ ][^<>]{0,40})?>[ ]*(?:#|R)?\d{1,2}(?=(?:[ ]*(?:,|;|&|-|and)[ ]*(?:#|R)?\d{1,2}){0,20}[ ]*</)", re.I)
_KNOWN = re.compile(r"\b(?:the|this|that|each|every|an?|same|which)\s+(?:\w+\s+)?$", re.I)
_ENDS_THERE = re.compile(r"\s*(?:[.,;:)]|$|(?:is|shows|contains|has|and)\b)")
_SHOWS = (
    r"(?:shows?|contains?|depicts?|highlights?|encloses?|covers?|marks?|outlines?|surrounds?|displays?|captures?|features?|holds?|includes?|"
    r"focuses|encompasses)"
)
_SAYS = rf"(?:{_SHOWS}|is|are|was|has|have|had|looks|seems|appears|lies|sits|does|can|could|might|may|gives)"
_SHOWS_NEXT = re.compile(rf"[ ]{_SHOWS}\b", re.I)
_AFTER_SPELT = re.compile(rf"\s*(?:[.,;:!?)]|$|{words('verbs', 'joins', 'shows')})", re.I)
_HASH_BEFORE = re.compile(
    r"(?:\b(?:in|inside|within|at|see|check|consider|examine|of|from|and|or|both|than|with|to|but|while|whereas|then)[ ]|\(|^|[.!?:;\n][ ]|\n)[*_`]{0,3}$", re.I
)
_HASH_AFTER = re.compile(
    rf"[*_`]{{0,3}}(?=[ ]*(?:[.,;:!?)\]|]|$|\n)|[ ](?:and|or|but|while|whereas|both|all|only|there|I|we|a|an|the|to|with|{_SAYS})\b|'s\b)", re.I
)
_NO_HASH = re.compile(
    r"\b(?:player|runner|rank\w*|jersey|shirt|uniform|racer|rider|horse|driver|car|seed\w*|number|wear\w*|team|bib|best\w*|question|option|step|choice|"
    r"answer|issue|episode|chapter|page|image|figure|example|route|track|platform|apartment|room|spot|place|world|charts?|list|hits?|top|hole|size)\b",
    re.I,
)
_CIRCLE_SAID = re.compile(r"(?:\b(?:in|inside|within|at|see|numbers?|labell?ed|marked|and|or|of)[ ]|[(,][ ]?|[在看和与、])[*_`]{0,3}$", re.I)
_CIRCLE_AFTER = re.compile(rf"[*_`]{{0,3}}(?:[ ]?(?:{_SAYS}\b|[),.]|and[ ]|or[ ]|mark|[和与是中里内有显、])|$)", re.I)
"""What follows a circled digit that is said to show something; before other text it numbers a list."""
_NOUN = re.compile(NOUN, re.I)
_BEHIND_CLAUSE = re.compile(
    r"(?:[ ]\((?:#|no\.[ ]?|number[ ])?|,[ ](?:number[ ]|no\.[ ]?|#)?|((?:,|[ ]and|[ ]is|[ ]are|[ ]\()[ ]?(?:labell?ed|marked|numbered|tagged)[ ]"
    r"(?:(?:as|by|with)[ ])?(?:(?:an?|the)[ ])?(?:number[ ])?|[ ]is[ ](?:(?:box|region)[ ])?number[ ]))[*_`\"'#]{0,3}$",
    re.I,
)
"""What stands before a number behind a clause on a region: ``(3)``, ``, 4,``; and, as its group, ``, labeled 2``, ``is number 1``."""
_AROUND = re.compile(
    rf"{NOUN}[ ](around|on|at|in|near|over|along|by|beside|behind|above|below|under|between|next[ ]to|to[ ]the|of|with|for|from|containing|covering|"
    r"surrounding|enclosing|outlining|highlighting|marking|(?:that|which)[ ](?:surrounds?|encloses?|covers?|outlines?|marks?|highlights?|is|are)|"
    r"outlined|highlighted|drawn|marked|is|are|was|placed|located)\b"
    r"(?:(?!\b(?:has|have|had|contains?|holds?|shows?|displays?|depicts?|features?|includes?|reads?|says?|reveals?|see|sees|wears?|counts?|there|"
    r"numbers?|about|total(?:s|ling)?)\b)[^.;:!?\n]){0,60}$",
    re.I,
)
"""A region word and what tells where the region is: ``the box around the dog``."""
_HOLDS = re.compile(r"\b(?:with|of|containing|for)\b[^,]*s$", re.I)
"""A clause whose bracketed number counts what stands before it: ``the box with cups (3)``."""
_CONTRAST = re.compile(
    rf"[\s,;:()—–*-]*(?:but |and )?(?:{pieces('not')}|{pieces('instead')}|{pieces('ignoring')})[\s,;:—-]*(?:{pieces('filler')}[\s,]*){{0,2}}[*`]*", re.I
)
"""What stands between a box and the bare number of another, of which only one counts: ``box 3, not 4``."""
_MOVES = re.compile(
    r"\b(?:mov|shift|glanc|gaz|eyes?|attention|look|switch|jump|travel|wander|walk|go(?:es|ing)?|lead|extend|span|zoom|scroll|pass|follow|way|route|track|chang|differ|throw|carr|hand|trajector|view|direct|path|distance|return|turn|sweep|drift|stretch|run|"
    r"reach|compar|pan|proceed|step|line|arrow|transition)\w*\b",
    re.I,
)
"""Words of a gaze or thing that goes from one box to another, and does not dwell on those between."""
_NO_NTH_AFTER = re.compile(
    r"\s+(?:to|from|on)\b|\s+of\b(?! the (?:image|picture|photo))|\s+(?:(?:#|number\s)\s*)?\d"
    r"|\s*(?:[,(:—-]\s*)?(?:(?:is|was|labell?ed|marked|namely|called|i\.e\.,?|being|as)\s+)*[*_`\"'(\[]*(?:the\s+)?"
    r"(?:R[ _#-]?\d|(?:(?:bounding[ -]?|b)?box|region|area|rectangle)[ _-]?[#R]?\d|another region\b)",
    re.I,
)
_LOOKED_AT = re.compile(r"\s+(?:(?:that|which)\s+)?(?:I|we|you|he|she|they|it|one|my|the person)\b", re.I)
_INSIDE = re.compile(r"\b(?:in|inside|within|at)\s+(?:the\s+)?$", re.I)
_NO_NTH_BEFORE = re.compile(r"\b(?:my|his|her|their|our|a|an|another|every|each|no)\s+$", re.I)
_AND_THE = r"[^.;!?\n]*\b(?:and|or|than)\s+the\s+"
_COUNTED = re.compile(
    r"people|person|persons|man|men|woman|women|child|children|feet|mice|sheep|fish|geese|other|others|more|"
    r"different|additional|extra|separate|similar|distinct|identical|small|large|big|little|tall|short|young|old|"
    r"red|blue|green|yellow|black|white|brown|gray|grey|orange|pink|purple|wooden|metal|glass|empty|open|round|"
    r"main|adult|smaller|larger|whole|full|half|half-full|of"
)
_NOT_COUNTED = re.compile(
    r"is|was|has|does|this|its|as|us|thus|plus|less|versus|vs|across|towards|besides|perhaps|always|sometimes|"
    r"afterwards|regards|alas|yes|shows|contains|appears|seems|looks|depicts|includes|holds|features|covers|overlaps|"
    r"reveals|displays|captures|lies|sits|stands|focuses|highlights|matches|represents|corresponds|provides|gives|"
    r"helps|makes|needs|encloses|surrounds|marks|outlines|frames|encompasses|indicates|suggests|confirms|remains|"
    r"belongs|dans|sous|sans|vers|tous|nous|ils|mais|las|los|es|más|además|entonces|aus|bis|als|das|des|les|depicts|encloses|highlights|"
    r"hosts|houses|presents|catches|touches|reads|says|sees|excels|results|looks|zeigt|muestras?|respectives?|plays|has|tells|goes|adds|offers|"
    r"comes|gets|takes|deals|serves|points|leads|falls|rests|hangs|leans|faces|fits|wins|counts|matters|alors|puis|nos|nas|dos|das|os|às|após|depois|"
    r"apenas|entonces|tras|unas|unos|dies|diese?s|etwas|nichts|bereits|jedoch|mostrams|is|los|also|lies|rules|answers|contrasts|resembles|features"
)
_PRONOUN = re.compile(r"\s+(?:can|could|may|might|would|should|must|sees?|finds?|notices?|has to|who|that|of)\b", re.I)
_FROM = re.compile(rf"{words('from')}\s+(?:{pieces('the')}\s+)?$", re.I)
_ALL_FROM = re.compile(
    r"\b(?:boxes|regions|areas|rectangles|all|everything|numbered|labell?ed|marked|rang(?:e|es|ing)|sequentially)\W+(?:[a-z]+\W+){0,2}from\s+$", re.I
)
_PAIRS = re.compile(
    r"\b(?:compar\w*|connect\w*|link\w*|relat\w*|match\w*|prefer\w*|clos(?:e|er|est)|next|adjacent|near(?:er|est)?|equal|similar|mov\w*|switch\w*|"
    r"return\w*|jump\w*|shift\w*|go|going|turn\w*)\s+(?:the\s+)?$",
    re.I,
)
_RELEVANT = re.compile(r"\b(?:relevant|useful|key|correct|right|important|necessary|used|needed|chosen|selected)[ _]+(?:bounding )?$", re.I)
_DISMISSED_KIND = re.compile(rf"{pieces('ignored_kinds')}[ _]+$", re.I)
_MORE = re.compile(rf"(?:\s*,\s*\d{{1,2}})*\s*,?\s*(?:&|{words('joins')})\s*\d{{1,2}}\b", re.I)
_MARKS = "*_`\"'$"
_NEAR = 100
"""How many characters around a mention can count for or against it."""
_CHAIN = 40
"""How many ordinals may stand before the last of a list."""


@dataclass(frozen=True)
class Item:
    """A number, or range, of a group.

    Attributes:
        start: where its digits or word begin (those of a range's first number): the part that a new number replaces.
        end: where they end.
        numbers: the boxes, from 1; more than one for a range.
        kind: digits, word, ordinal, or sign (a circled digit, a word of another language): how the number is written.
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
        return self.rigid and len(self.items) == 1 and len(self.items[0].numbers) == 1 and self.items[0].kind == "digits"


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
        return list(_Reader(plain, count).groups())
    kept = [at for at, char in enumerate(plain) if not INVISIBLE.match(char)]
    return [_moved(group, kept) for group in _Reader("".join(plain[at] for at in kept), count).groups()]


def _moved(group: Group, places: Sequence[int]) -> Group:
    """Return a group of the text without invisible characters, with its places in the whole text."""

    def span(start: int, end: int) -> tuple[int, int]:
        return places[start], places[end - 1] + 1

    items = tuple(Item(*span(item.start, item.end), item.numbers, item.kind) for item in group.items)
    return Group(*span(group.start, group.end), items, group.rigid)


@dataclass(frozen=True)
class _Head:
    """What begins a list of ids.

    Attributes:
        start: where it begins.
        again: what a bare number behind a comma needs: "name" after ``R1``; "one" after a region word in the singular; "many" otherwise.
        strong: whether numbers beyond the count are kept.
    """

    start: int
    again: str
    strong: bool


class _Reader:
    """Reads the groups of one text.

    Args:
        text: from ``same_length``.
        count: number of boxes.
    """

    def __init__(self, text: str, count: int) -> None:
        self.text = text
        self.count = count
        self.tokens = list(tokens(text))
        self.last: Group | None = None

    def groups(self) -> Iterator[Group]:
        """Yield the groups, from left to right."""
        heads = {
            "name": self._name,
            "noun": self._noun,
            "thing": self._noun,
            "nth": self._ordinal,
            "both": self._all,
            "all": self._all,
            "letter": self._letter,
            "sign": self._sign,
            "number": self._number,
        }
        done = 0
        for at, token in enumerate(self.tokens):
            read = heads.get(token.kind)
            if read is not None and token.start >= done and (group := read(at, token)) is not None:
                self.last, done = group, group.end
                yield group

    # --- what stands around

    def _token(self, at: int) -> Token:
        return self.tokens[at] if at < len(self.tokens) else END

    def _skip(self, at: int, *kinds: str) -> int:
        """Return the first place from ``at`` on where no token of these kinds stands."""
        while self._token(at).kind in kinds:
            at += 1
        return at

    def _before(self, start: int) -> str:
        return self.text[max(0, start - _NEAR) : start]

    def _after(self, end: int) -> str:
        return self.text[end : end + _NEAR]

    def _clause(self, start: int, end: int) -> str:
        """Return the rest of the sentence around a stretch of text."""
        return _STOP.split(self._before(start))[-1] + _STOP.split(self._after(end), maxsplit=1)[0]

    def _kept(self, number: int, strong: bool) -> bool:
        return 1 <= number <= self.count or (strong and number < 100)

    def _counts(self, end: int) -> bool:
        """Return whether a number that ends here counts what follows: ``3 people``, ``2 red cups``."""
        counted = re.match(r"[*_`\"']*[ ]([A-Za-z'-]+)", self._after(end))
        word = counted[1].lower() if counted else ""
        plural = len(word) > 2 and word.endswith("s") and not word.endswith("'s") and not _NOT_COUNTED.fullmatch(word)
        return plural or bool(_COUNTED.fullmatch(word))

    # --- heads

    def _name(self, at: int, token: Token) -> Group | None:
        """Read a group that begins with ``R2``."""
        before, after, item = self._before(token.start), self._after(token.end), self._item_of(token)
        weak = " " in token.text or token.text[1] == ")"
        if re.search(r"[A-Za-z0-9]-$", before) or (weak and "(" in before[-1:] + token.text and _SIDES.search(before + after)):
            return None
        number = item.numbers[0]
        joined = re.match(r"R[\dR]*", self.text[token.start : token.start + 30]) if after[:1] == "R" else None
        plate = joined and any(int(digits) > self.count for digits in re.findall(r"\d+", joined[0]))
        if plate or _ROUTE.search(before) or (number > self.count and _BUS.match(after)):
            return None
        strong = not weak and (token.text[0] == "R" or before[-1:] in ("`", "*"))
        return self._list(_Head(token.start, "name", strong), at, item) if self._kept(number, strong) else None

    def _noun(self, at: int, token: Token) -> Group | None:
        """Read a group that begins with a region word."""
        word, before = token.text, self._before(token.start)
        tag = _TAG.match(self.text, token.end) if before[-1:] == "<" else None
        if tag:
            return self._tag(at, token, tag.end())
        first, bridge = self._bridge(at)
        number, kinds = self._token(first), {token.kind for token in bridge}
        if number.kind == "behind":
            return self._ordinals(token.start, first, token)
        many, strong = bool(_MANY.fullmatch(word)), bool(_STRONG.fullmatch(word))
        relevant = "used" in kinds or bool(_RELEVANT.search(before))
        if number.kind not in ("number", "name") or _ANOTHER.search(before) or ("verb" in kinds and not relevant):
            return None
        if token.kind != "noun" and not ("labelled" in kinds and kinds <= {"labelled", "sign", "mark"}):
            return None
        joint = self.text[token.end : number.start]
        if _FRAME.fullmatch(word) and self._another_frame(token, number, joint, kinds):
            return None
        if bracket := re.search(r"[\[(]", joint):
            if self._coordinates(token.end + bracket.end(), many):
                return None
        many = many or bool(bracket) or "from" in kinds
        if number.kind == "number":
            certain = bool(re.search(r"[({\[<:=]", joint)) or "verb" in kinds
            known = number.text.isalpha() and _KNOWN.search(before) and not _ENDS_THERE.match(self._after(number.end))
            if known or not self._is_name(number, certain):
                return None
        item = self._item_of(number)
        if not self._kept(item.numbers[0], strong):
            return None
        again = "name" if number.kind == "name" else "many" if many else "one"
        group = self._list(_Head(token.start, again, strong), first, item)
        if len(group.numbers) > 1 or item.kind != "digits" or number.kind == "name":
            return group
        if "colon" in kinds and _PLURAL.fullmatch(word) and not relevant and "[" not in joint and not _DISMISSED_KIND.search(before):
            return None  # "Bounding boxes: 4" says how many there are
        return self._of_how_many(group, word) if again == "one" else group

    def _bridge(self, at: int) -> tuple[int, list[Token]]:
        """Return the place of the number that a region word may have, and the tokens between: "box labelled no.", "boxes: [", "regions are"."""
        place, bridge, once = at + 1, list[Token](), {"verb", "colon", "line", "used", "dash", "from", "labelled"}
        while (token := self._token(place)).kind in _BRIDGE and len(bridge) < _NEAR:
            if token.kind in once:
                once.discard(token.kind)
            elif token.kind in ("verb", "colon", "line", "used", "dash", "from", "labelled"):
                break
            if (token.kind == "dash" and self._token(place + 1).start != token.end) or (token.kind == "close" and token.text != "}"):
                break
            if token.kind == "from" and [self._token(place + step).kind for step in (1, 2, 3)] != ["number", "to", "number"]:
                break
            if token.kind == "line" and _LIST_NUMBER.match(self.text, token.end):
                break
            bridge.append(token)
            place += 1
        return place, bridge

    def _another_frame(self, token: Token, number: Token, joint: str, kinds: set[str]) -> bool:
        """Return whether a word such as frame or label, with a number, names something else than a box: ``label: 3 g``, ``frame_2.png``."""
        if kinds & {"colon", "verb"} or "(" in joint or _OTHER_FRAME.search(self._before(token.start)):
            return True
        counts = number.text.isdigit() and (self._counts(number.end) or re.match(r"-[a-z]", self._after(number.end)))
        return bool(counts) or (token.text[0].isascii() and not re.search(r"\s", joint))

    def _is_name(self, number: Token, certain: bool) -> bool:
        """Return whether a number behind a region word names it, and counts nothing else.

        Args:
            number: the number.
            certain: whether a bracket, colon or verb stands before it.
        """
        word, after = number.text.lower(), self._after(number.end)
        if word.isdigit() or word in CIRCLED or word in HAN:
            return not (certain and self._counts(number.end))
        if self._counts(number.end) or _PRONOUN.match(after):
            return False
        if word not in ENGLISH:
            return bool(_AFTER_SPELT.match(after))
        return True

    def _coordinates(self, start: int, many: bool) -> bool:
        """Return whether the bracket that opens before ``start`` holds coordinates, not box numbers."""
        inside = re.match(r"[^()\[\]{}<>]*", self.text[start : start + 2 * _NEAR])
        numbers = re.findall(r"(?<![A-Za-z])\d+(?:\.\d+)?", inside[0] if inside else "")
        if any("." in number for number in numbers):
            return True
        largest = max(map(int, numbers), default=0)
        beyond = largest > self.count
        return largest > max(self.count, 99) or (len(numbers) == 4 and (not many or beyond)) or (len(numbers) in (2, 3) and not many and beyond)

    def _of_how_many(self, group: Group, word: str) -> Group | None:
        """Extend ``region 2`` to ``region 2 of 4``.

        Boxes also stand on shelves, so ``box 2 of 6`` is dropped (None) unless there are as many boxes.
        """
        total = re.match(r"[ ](?:out[ ])?of[ ](\d{1,3})\b", self._after(group.end))
        if total is None:
            return group
        if "box" in word.lower() and int(total[1]) != self.count:
            return None
        return Group(group.start, group.end + total.end(), group.items, True)

    def _tag(self, at: int, token: Token, start: int) -> Group | None:
        """Read ``<regions>1, 3</regions>``."""
        first = next(place for place in range(at, len(self.tokens)) if self.tokens[place].kind in ("number", "name") and self.tokens[place].end >= start)
        return self._weak_list(token.start, first, bool(_MANY.fullmatch(token.text)))

    def _letter(self, at: int, token: Token) -> Group | None:
        """Read ``R[1-3]`` and ``R_{1,2}``."""
        return self._weak_list(token.start, at + 1, True)

    def _weak_list(self, start: int, first: int, many: bool) -> Group | None:
        """Read the list of a tag or of brackets, which holds no number beyond the count."""
        item = self._item_of(self._token(first))
        if not self._kept(item.numbers[0], False) or self._coordinates(item.start, many):
            return None
        return self._list(_Head(start, "many", False), first, item)

    def _ordinal(self, at: int, token: Token) -> Group | None:
        """Read a group such as ``second box`` or ``first two boxes``."""
        before = self._before(token.start)
        if _NO_NTH_BEFORE.search(before):
            return None
        chain, noun = self._chain(at)
        several = self._token(noun)
        if several.kind == "number" and several.text.lower() != "one":
            noun += 1
        noun = self._skip(noun, "adjective", "labelled")
        word = self._token(noun)
        lone = word.text.lower() == "one" and self.last is not None and re.fullmatch(_AND_THE, self.text[self.last.end : token.start][-2 * _NEAR :])
        if several is word and lone:
            pass
        elif word.kind != "noun" or (word.text.isascii() and _NO_NTH.fullmatch(word.text)):
            return None
        after = self._after(word.end)
        if _NO_NTH_AFTER.match(after) or (_LOOKED_AT.match(after) and not _INSIDE.search(before)):
            return None  # "the first box I look at"
        numbers = [place(one, self.count) for one in chain]
        plural = bool(_PLURAL.fullmatch(word.text))
        if several.kind != "number" or several is word:
            if plural and len(numbers) == 1:
                return None
            return self._ordinal_group(token.start, word.end, chain, numbers)
        how_many = value(several.text)
        begin = {1: 1, self.count: self.count - how_many + 1}.get(numbers[0], 0) if len(numbers) == 1 and plural else 0
        if not 1 <= begin <= begin + how_many - 1 <= self.count:
            return None
        return self._together(token.start, word.end, chain[0], range(begin, begin + how_many))

    def _chain(self, at: int) -> tuple[list[Token], int]:
        """Return the ordinals of "the first, second and third", and the place behind them."""
        chain, behind = [self.tokens[at]], at + 1
        while len(chain) <= _CHAIN:
            following = self._skip(behind, "comma", "and", "the", "to")
            if not behind < following <= behind + 3 or self._token(following).kind != chain[0].kind or self._token(behind).kind == "the":
                break
            chain.append(self._token(following))
            behind = following + 1
        return chain, behind

    def _ordinals(self, start: int, at: int, noun: Token) -> Group | None:
        """Read a group such as ``vùng thứ hai``, where the ordinal stands behind the region word."""
        chain, _ = self._chain(at)
        return self._ordinal_group(start, chain[-1].end, chain, [place(one, self.count) for one in chain])

    def _ordinal_group(self, start: int, end: int, chain: Sequence[Token], numbers: Sequence[int]) -> Group | None:
        items = tuple(_nth_item(one, number) for one, number in zip(chain, numbers, strict=True))
        if not all(1 <= number <= self.count for number in numbers):
            return None
        return Group(start, end, items, any(item.kind == "sign" for item in items))

    def _all(self, at: int, token: Token) -> Group | None:
        """Read "both boxes" and "all four boxes", where there are as many boxes."""
        after = self._skip(at + 1, "the")
        number = self._token(after)
        how_many = 2 if token.kind == "both" else value(number.text) if number.kind == "number" else 0
        noun = self._token(self._skip(after + (token.kind == "all"), "adjective", "labelled", "mark"))
        several = noun.kind == "noun" and _MANY.fullmatch(noun.text)
        if how_many != self.count or not several or self._token(self._bridge(self.tokens.index(noun, at))[0]).kind in ("number", "name"):
            return None
        return self._together(token.start, noun.end, token, range(1, how_many + 1))

    def _together(self, start: int, end: int, word: Token, numbers: range) -> Group:
        """Return a group of some boxes that one word names."""
        return Group(start, end, (Item(word.start, word.end, tuple(numbers), "ordinal"),), True)

    def _sign(self, at: int, token: Token) -> Group | None:
        """Read ``#2`` where it stands for a place, not for a rank or a player, and "Number 2 shows"."""
        number = self._token(at + 1)
        if number.kind != "number" or not number.text.isdecimal():
            return None
        before, after = self._before(token.start), self._after(number.end)
        if token.text == "#":
            read = token.end == number.start and _HASH_BEFORE.search(before) and _HASH_AFTER.match(after)
            read = read and not _NO_HASH.search(self._clause(token.start, number.end))
        else:
            read = _SENTENCE.search(before) and _SHOWS_NEXT.match(after)
        return self._alone(number) if read else None

    def _number(self, at: int, token: Token) -> Group | None:
        """Read a number by itself: a circled digit, ``the box around the dog (3)``, and "box 3, not 4"."""
        before, after = self._before(token.start), self._after(token.end)
        if token.text.lower() == "one":
            return self._noun(at, token)
        if token.text in CIRCLED:
            said = re.search(_CIRCLE_SAID, before) or (_SENTENCE.search(before) or re.search(r"[:;,]\s?$", before))
            return self._alone(token) if said and _CIRCLE_AFTER.match(after) else None
        if not token.text.isdecimal() or len(token.text) > 2 or self._counts(token.end) and not before.endswith("("):
            return None
        if self.last is not None and token.start - self.last.end < _NEAR and _CONTRAST.fullmatch(self.text[self.last.end : token.start]):
            return self._alone(token)
        label = _BEHIND_CLAUSE.search(before)
        if label is None or re.match(r"\.\d|[ ]?[%°x×]|/\d", after):
            return None
        bracket = "(" in label[0] and not label[1]
        if (bracket and not after.startswith(")")) or (label[0].startswith(",") and not label[1] and not re.match(r",[ ]\D", after)):
            return None
        clause = _AROUND.search(before[: label.start()])
        counts = clause and (bracket or clause[1] == "of") and _HOLDS.search(clause[0])
        return self._alone(token) if clause and not counts else None

    def _alone(self, token: Token) -> Group | None:
        """Return a group of one number by itself."""
        item = self._item_of(token)
        return Group(item.start, item.end, (item,), item.kind == "sign") if self._kept(item.numbers[0], False) else None

    def _item_of(self, token: Token) -> Item:
        start, end = digits(token)
        written = self.text[start:end]
        kind = "digits" if written.isdecimal() else "word" if written.lower() in ENGLISH else "sign"
        return Item(start, end, (value(written),), kind)

    # --- lists

    def _list(self, head: _Head, at: int, first: Item) -> Group:
        """Read everything that is joined to the first number of a group, which stands at a place."""
        items, rigid, ended, glossed = [first], first.kind == "sign", False, False
        end, last = self._token(at).end, first.start
        while True:
            behind, gloss = self._gloss(at + 1)
            step = self._range(head, behind, items) or self._next(head, behind, items, ended, gloss and (glossed or len(items) == 1))
            if step is None:
                break
            at, item, joint, bare = step
            if not self._kept(item.numbers[-1], head.strong):
                break
            glossed, rigid, end, last = gloss, rigid or joint in ("range", "pair") or item.kind == "sign", self._token(at).end, item.start
            ended = bare and (ended or joint == "end")  # after "1 and 2" only a new "R3" or "region 3" continues the list
            if joint == "range":
                item = Item(items[-1].start, items[-1].end, tuple(range(items[-1].numbers[-1], item.numbers[0] + 1)), item.kind)
                items.pop()
            items.append(item)
        return Group(head.start, self._closed(head.start, end, last), tuple(items), rigid)

    def _gloss(self, at: int) -> tuple[int, bool]:
        """Return the place behind "(plate)", where one stands here, and whether it does."""
        start = self._skip(at, "mark", "close")
        if self._token(start).text not in ("(", "["):
            return at, False
        for place in range(start + 1, start + 16):
            kind = self._token(place).kind
            if kind == "close":
                return place + 1, place > start + 1
            if kind in ("open", "line", "name", "end"):
                break
        return at, False

    def _range(self, head: _Head, at: int, items: list[Item]) -> tuple[int, Item, str, bool] | None:
        """Read the other end of a range, where one follows: its place, the item, "range", "pair" or "list", whether it is a bare number."""
        start = self._skip(at, "mark", "close")
        joint = self._token(self._skip(start, "comma"))
        if joint.kind not in ("dash", "dots", "to") or (joint.kind != "dots" and joint is not self._token(start)):
            return None
        behind = self._skip(self._skip(start, "comma", "dots", "mark"), *([joint.kind] if joint.kind != "dots" else []), "comma")
        following = self._following(head, behind, items)
        if following is None:
            return None
        place, item, bare = following
        spaced = joint.kind == "dash" and joint.text == "-" and " " in self.text[joint.start - 1 : joint.end + 1]
        if bare and ((spaced and head.again != "many") or self._counts(item.end) or self.text.startswith(" another", item.end)):
            return None
        before, low, high = self._before(head.start), items[-1].numbers[-1], item.numbers[0]
        pairs = bool(_PAIRS.search(before))
        moves = pairs or (_FROM.search(before) and not _ALL_FROM.search(before) and _MOVES.search(self._clause(head.start, self._token(place).end)))
        if joint.text.lower() in ("to", "until", "up to") and moves and (head.again != "many" or pairs):
            return place, item, "list", bare  # "through" and "all the way to" are ranges
        return place, item, "range" if low < high < low + 100 and len(items[-1].numbers) == 1 else "pair", bare

    def _next(self, head: _Head, at: int, items: list[Item], ended: bool, gloss: bool) -> tuple[int, Item, str, bool] | None:
        """Read the next number of a list, where one follows: its place, the item, "list" or "end", whether it is a bare number."""
        start = self._skip(at, "mark", "close")
        joint = self._token(start)
        comma = joint.kind == "comma"
        behind = start + comma
        line = self._token(behind).kind == "line" and (not comma or not _LIST_NUMBER.match(self.text, self._token(behind).end))
        conjunction = self._token(behind + line)
        last = conjunction.kind == "and" and conjunction.text.isalpha()
        if conjunction.kind == "and":
            behind += line + 1
        elif comma:
            behind += line
        elif not (joint.kind == "name" and joint.start == self._token(at - 1).end):
            return None
        if re.match(r"also\b", self._token(behind).text):
            behind += 1
        following = self._following(head, behind, items)
        if following is None:
            return None
        place, item, bare = following
        if not bare:
            return place, item, "end" if last else "list", bare
        if ended or self._counts(item.end) or self.text.startswith(" another", item.end) or self._german(conjunction, item):
            return None
        tight = head.again == "name" and re.match(r",[1-9](?!\d)", self.text[joint.start : joint.start + 3])  # "R1,2", but not "R1,000"
        if comma and not (last or tight) and head.again != "many" and not (gloss and self._gloss(place + 1)[1]) and not self._goes_on(item.end):
            return None
        return place, item, "end" if last else "list", bare

    def _german(self, conjunction: Token, item: Item) -> bool:
        """Return whether a German noun follows, which the number counts."""
        return conjunction.text.lower() in ("und", "oder", "sowie") and bool(re.match(r" [A-ZÄÖÜ]", self._after(item.end)))

    def _goes_on(self, end: int) -> bool:
        """Return whether a list that began in the singular (``region 1, 3 and 4``) really continues."""
        rest = re.sub(r"\([^()]*\)", lambda match: " " * len(match[0]), self._after(end))
        more = _MORE.match(rest)
        return bool(more and not self._counts(end + more.end())) or bool(re.match(r"\s*(?:[.;:)\]]\s*(?!\d)|$)", rest))

    def _following(self, head: _Head, at: int, items: list[Item]) -> tuple[int, Item, bool] | None:
        """Read the item at a place, an R-form or a number, with its place, and whether it is a bare number."""
        start = self._skip(at, "open", "mark")
        named = self._token(start).kind == "noun"
        place = self._skip(start + named, "sign", "open", "mark", "dash") if named else self._skip(start, "sign", "open", "mark")
        token, again = self._token(place), named or self._token(place - 1).kind == "sign" and place > at
        if named and re.search(r"[-\s]\s*-|-\s|\n|[:=]", self.text[self._token(start).end : token.start]):
            return None
        if token.kind == "name":
            return place, self._item_of(token), False
        if token.kind != "number":
            return None
        item = self._item_of(token)
        spelt = not token.text.isdecimal() and token.text not in CIRCLED
        if spelt and ((not again and items[-1].kind not in ("word", "sign")) or not self._is_name(token, False)):
            return None
        return place, item, not again

    def _closed(self, start: int, end: int, last: int) -> int:
        """Return the end of a group, moved past the marks that close the stars, quotes and brackets opened in it.

        Args:
            start: start of the group.
            end: end of the group so far.
            last: where its last number begins.
        """
        text = self.text
        marks = _opened(text[start:last])
        if marks and text.count(marks, start, end) % 2 and text.startswith(marks[::-1], end):
            end += len(marks)
        for left, right in ("()", "[]", "{}", "<>"):
            if text.count(left, start, end) > text.count(right, start, end) and text.startswith(right, end):
                end += 1
        return end


def _nth_item(token: Token, number: int) -> Item:
    """Return the item of an ordinal, of which a new number replaces the word, or the digits alone in other languages than English."""
    word = token.text.lower()
    if word in ENGLISH_NTH or re.fullmatch(r"last|final|\d+(?:st|nd|rd|th)", word):
        return Item(token.start, token.end, (number,), "ordinal")
    return Item(*digits(token), (number,), "digits" if re.search(r"\d", word) else "sign")


def _opened(text: str) -> str:
    """Return the stars and quotes that a text ends with, with or without an ``R`` after them."""
    text = text.removesuffix("\n")
    inner = text.rstrip(" _{#-")
    if inner[-1:] in ("R", "r") and inner[:-1] != (before := inner[:-1].rstrip(_MARKS)):
        return inner[len(before) : -1]
    return text[len(text.rstrip(_MARKS)) :]
