"""The grammar of named boxes, under ``extract``: where a text names numbered boxes. Pure text work.

A *group* is one stretch of text that names boxes together: ``R2``, ``regions 1, 3 and 4``, ``R1–R3``, ``the second
box``. It is a *head* and a *list of ids*. A head is an R with a number, a region word before a number (``box no. 2``)
or behind an ordinal (``the last box``), or a sign (``#2``); the words are those of fourteen languages
(``regions.yaml``). A list goes on through commas, "and", dashes, and glosses in brackets ("boxes 1 (plate), 3 (cup)").
``containers`` writes a region word before ids that a table, list or JSON object numbers.

Rules:

* Region words are strong (box, region), weak (area), or often another thing (frame). A number beyond the count is kept
  (the caller calls it invented) only behind a strong word or ``R``, and only with one or two digits: "room R101", "Area
  51" and "box 360" name no box. ``R 2``, ``R (2)``, ``(R)2``, ``#2``, ordinals, a bare lower-case ``r2``, circled
  digits, tags, ``R[1-3]`` and a number behind a clause are weak.
* ``#2`` is read where the words around it speak of a place ("in #2", "#2 shows"), and not of a rank or a player.
* "Object 3" is read, "item 3" is not, and neither is "object 1": it may begin a list of the text's own.
* A number behind a clause is read where the clause says where the box is, not what it holds: "the box with cups (3)"
  counts cups.
* A bare number after a comma, "and" or a dash belongs to the list unless it counts something ("in region 2, 3 people").
* A descending pair (``R3-R1``) is two boxes, no range; so is "from R1 to R3" of a gaze or path that moves, and "compare
  R1 to R3". Without a word of moving, "from R2 to R4" is a range.
* Ordinals are not read where they stand for an order of looking or a thing on a shelf ("the first region I look at",
  "the second box of cereal", "a second box").
* Of a list of ordinals ("first, second and third box") the last 41 are read.
* "All boxes" and "every box" are read where the clause says that they are used or needed: "all boxes are red" names
  none.
* An ordinal without a noun goes on from a box with an ordinal: "the second box shows a cook, the fifth a pan".
* Not read: roman numerals ("Region II"); coordinates, fractions, years, option letters, "(R) 4",
  "Pentium(R)4", "(L)1 and (R)2".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmms_patch.magic.score.lexer import CIRCLED, HAN, NOUN, SAME, Token, digits, of_one_language, place, tokens, value
from lmms_patch.magic.score.vocabulary import ENGLISH, ENGLISH_NTH, LETTER, pattern, pieces, words

_BRIDGE = re.compile(
    r"[msoOc]{0,5}u?[msoOc]{0,3}l?[msoOc]{0,4}v?m?:?[msoO]{0,4}/{0,2}[msoOl]{0,4}[-f]?[ht]?[msoO]{0,4}"
)
"""The kinds of tokens that may stand between a region word and its number: "box labelled no.", "boxes: [", "the relevant regions are"."""
_NO_BRIDGE = pattern(r"-\s|[)\]>]")
_LABELLED = re.compile("l?[msc]*u?v?l[ms]*|l[ms]*")
_OBJECT = pattern(r"(?!item|one|part|thing|spot|patch|ding|[eé]l[eé]ment)[^\d\n]{1,20}(?!1\b)\d")
"""A noun and number that name a box although no "labelled" stands between: "object 3". "Object 1" is none: it often begins a list of objects."""
_CHAIN = re.compile(r"N(?:(?:o[^RoOL/]{1,15}?c)?[,&][,&ht]{0,2}N){0,40}")
_BEHIND = re.compile(r"B(?:[,&]{1,2}B){0,40}")
_NTH_NOUN = re.compile(rf"({_CHAIN.pattern})j?([#b]?)[jl]{{0,4}}(?:n|(?<=N)#)")
"""Ordinals, how many, and their noun."""
_ALL_OF = re.compile(r"(?:b|ah?(#)?)[jlm]{0,4}n(?![msocO:vl]{0,6}[#R])")
_GLOSS = re.compile(r"[mc]{0,2}(?:o[^RoOL/]{1,15}?c|:[^RoOLn#/:,]{1,6}(?=,))")
"""A gloss behind an id: ``(plate)``, ``: plate,``."""
_GLOSSED = re.compile(r"[mc]{0,2}[o:]")
_STEP = re.compile(
    rf"({_GLOSS.pattern})?[mc]{{0,4}}(?:(t|-|,?\.,?)|(,?/?&{{0,2}}))h?(?:(?<=&)t)?[om]{{0,4}}(n[s-]?|s)?[om]{{0,3}}([R#])"
)
"""A gloss, a joint (of a range, or of a list), a head once more, and a number."""
_MANY = pattern(pieces("boxes", "areas", "frames"))
_PLURAL = pattern(r".*(?:s|\))")
"""A region word that is certainly not of one box."""
_STRONG = pattern(pieces("box", "boxes"))
_FRAME = pattern(pieces("frame", "frames"))
_NO_NTH = pattern(r"(?:frame|label|outline|marker|crop|square)s?")
"""What is no box behind an ordinal: "the first label"."""
_STOP = pattern(r"[.!?;\n。！？।؟]")
_LIST_NUMBER = pattern(r"\s*\d+[.)](?:\s|$)")
_ANOTHER = pattern(r"(?:\banother|\bp\.?[ ]?o\.?|\bnumber of(?: the)?)\s+$")
_NO_NAME = pattern(r"\b(?:room|route|highway|suite|vitamin|toys)\s+$|[A-Za-z0-9]-$")
_BUS = pattern(r"[ ](?:bus|train|tram|line|route|road|engine|model)\b")
_SIDES = re.compile(r"\(L\)|\b[A-QS-Z] ?\(\d")
"""What stands beside ``(R)2`` and ``R (2)`` where the letter is one of several: left and right, the tiles of a game."""
_OTHER_FRAME = pattern(
    r"\b(?:picture|photo|window|door|video|time|key|bed|bike|wooden|glasses|price|name|shipping|food|warning|wine|address|black|war|comfort|town|"
    r"city|market|magic)[ -]+$|\bA-$",
)
"""What stands before a frame, label or square that is no region."""
_KNOWN = pattern(r"\b(?:the|this|that|each|every|an?|same|which)\s+(?:\w+\s+)?$")
_ENDS_THERE = pattern(r"\s*(?:[.,;:)]|$|(?:is|shows|contains|has|and)\b)")
_SHOWS = (
    r"(?:shows?|contains?|depicts?|highlights?|encloses?|covers?|marks?|outlines?|surrounds?|displays?|captures?|features?|holds?|includes?|"
    r"focuses|encompasses)"
)
_SAYS = rf"(?:{_SHOWS}|is|are|was|has|have|had|looks|seems|appears|lies|sits|does|can|could|might|may|gives)"
_AFTER_SPELT = pattern(rf"\s*(?:[.,;:!?)]|$|{words('verbs', 'joins', 'shows', 'to')})")
_LABELS = [
    (
        pattern(
            r"(?:\b(?:in|inside|within|at|see|check|consider|examine|of|from|and|or|both|than|with|to|but|while|whereas|then)[ ]|"
            r"\b(?:on|us(?:e|ed|ing))[ ]|,[ ]|\(|^|[.!?:;\n][ ]|\n)[*_`]{0,3}#$",
        ),
        pattern(
            r"[*_`]{0,3}(?=[ ]*(?:[.,;:!?)\]|]|$|\n|\((?!\d))|"
            rf"[ ](?:and|or|but|while|whereas|both|all|only|there|I|we|a|an|the|to|with|marked|flagged|listed|drawn|{_SAYS})\b|'s\b)",
        ),
    ),
    (pattern(r"(?:^|[.!?;。]\s|\n)(?:And |Then |Next, )?(?:number|no\.) $"), pattern(rf"[ ]{_SHOWS}\b")),
    (
        pattern(r"(?:^|[\s(\[*_`])#$"),
        pattern(rf"[*_`]{{0,3}}[ ](?!(?:box|label|frame)[ -](?:office|score|set|store|seat)){NOUN}(?![ ]?[#\d])"),
    ),
]
"""What stands before and behind a number that is a box's label: "in #2", "Number 2 shows"."""
_NO_HASH = pattern(
    r"\b(?:player|runner|rank\w*|jersey|shirt|uniform|racer|rider|horse|driver|car|seed\w*|number|wear\w*|team|bib|best\w*|(?<!the )question|option|"
    r"step|choice|(?<!the )answer|issue|episode|chapter|page|image|figure|example|"
    r"route|track|platform|apartment|room|spot|place|world|charts?|list|hits?|top|hole|size)\b",
)
_CIRCLE = [
    (
        pattern(
            r"(?:\b(?:in|inside|within|at|see|numbers?|labell?ed|marked|and|or|of)[ ]|[(,][ ]?|[在看和与、]|^|[.!?:;,。]\s|[\n。,;])[*_`]{0,3}$",
        ),
        pattern(rf"[*_`]{{0,3}}(?:[ ]?(?:{_SAYS}\b|[),.]|and[ ]|or[ ]|mark|[和与是中里内有显、])|$)"),
    ),
    (pattern(r"\b(?:in|inside|within) $"), pattern("")),
]
"""What stands before and behind a circled digit that is said to show something; before other text it numbers a list."""
_NO_FRACTION = r"(?!\.\d|[ ]?[%°x×]|/\d)"
_BEHIND_CLAUSE = [
    (pattern(r"[ ]\((?:#|no\.[ ]?|number[ ])?[*_`\"'#]{0,3}$"), pattern(r"\)")),
    (pattern(r",[ ](?:number[ ]|no\.[ ]?|#)?[*_`\"'#]{0,3}$"), pattern(r",[ ]\D")),
    (
        pattern(
            r"(?:(?:,|[ ]and|[ ]is|[ ]are|[ ]\()[ ]?(?:labell?ed|marked|numbered|tagged)[ ](?:(?:as|by|with)[ ])?(?:(?:an?|the)[ ])?(?:number[ ])?"
            r"|[ ]is[ ](?:(?:box|region)[ ])?number[ ])[*_`\"'#]{0,3}$",
        ),
        pattern(_NO_FRACTION),
    ),
]
"""What stands before and behind a number behind a clause on a region: ``(3)``, ``, 4,``, ``, labeled 2``, ``is number 1``."""
_AROUND = pattern(
    rf"{NOUN}[ ](around|on|at|in|near|over|along|by|beside|behind|above|below|under|between|next[ ]to|to[ ]the|of|with|for|from|containing|covering|"
    r"surrounding|enclosing|outlining|highlighting|marking|(?:that|which)[ ](?:surrounds?|encloses?|covers?|outlines?|marks?|highlights?|is|are)|"
    r"outlined|highlighted|drawn|marked|is|are|was|placed|located)\b"
    r"(?:(?!\b(?:has|have|had|contains?|holds?|shows?|displays?|depicts?|features?|includes?|reads?|says?|reveals?|see|sees|wears?|counts?|there|"
    r"numbers?|about|total(?:s|ling)?)\b)[^.;:!?\n]){0,60}$",
)
"""A region word and what tells where the region is: ``the box around the dog``."""
_HOLDS = pattern(r"\b(?:with|of|containing|for)\b[^,]*s$")
"""A clause whose bracketed number counts what stands before it: ``the box with cups (3)``."""
_CONTRAST = pattern(
    rf"[\s,;:()—–*-]*(?:but |and )?(?:{pieces('not')}|{pieces('instead')}|{pieces('ignoring')})[\s,;:—-]*(?:{pieces('filler')}[\s,]*){{0,2}}[*`]*",
)
"""What stands between a box and the bare number of another, of which only one counts: ``box 3, not 4``."""
_MOVES = pattern(
    r"\b(?:mov|shift|glanc|gaz|eyes?|attention|look|switch|jump|travel|wander|walk|go(?:es|ing)?|lead|extend|span|zoom|scroll|pass(?!eng)|follow|way|route|track|chang|differ|throw|carr|hand|trajector|view|direct|path|distance|return|turn|sweep|drift|stretch|run|"
    r"reach|compar|pan|proceed|step|line|arrow|transition)\w*\b",
)
"""Words of a gaze or thing that goes from one box to another, and does not dwell on those between."""
_NO_NTH_AFTER = pattern(
    r"\s+(?:to|from|on)\b|\s+of\b(?! the (?:image|picture|photo))|\s+(?:(?:#|number\s)\s*)?\d"
    r"|\s*(?:[,(:—-]\s*)?(?:(?:is|was|labell?ed|marked|namely|called|i\.e\.,?|being|as)\s+)*[*_`\"'(\[]*(?:the\s+)?"
    r"(?:R[ _#-]?\d|(?:(?:bounding[ -]?|b)?box|region|area|rectangle)[ _-]?[#R]?\d|another region\b)",
)
_LOOKED_AT = pattern(r"\s+(?:(?:that|which)\s+)?(?:I|we|you|he|she|they|it|one|my|the person)\b")
_INSIDE = pattern(r"\b(?:in|inside|within|at)\s+(?:the\s+)?$")
_NO_NTH_BEFORE = pattern(r"\b(?:my|his|her|their|our|a|an|another|every|each|no)\s+$")
_ARTICLE = r"(?:the|an?|de[rmn]|die|das|eine?[nmrs]?|l[aeo]s?|el|il|gli|un[aeo]?|uma?|os?|as?|i)"
_AND_THE_NTH = pattern(
    rf"(?:(?!{words('numbers')})[^.!?\n\d。])*"
    rf"(?:[,;—、]|{words('joins', 'but')}|\b(?:while|whereas|während|mientras|tandis que|mentre|enquanto|than))"
    rf"\s*(?:(?:{pieces('the')}\s+)+|(?=\d*[^!-~\s\d]))"
)
_IN_SERIES = pattern(
    r"\s*(?:[.,;:!()—-]|$|입니다|です|"
    rf"(?:one|{_ARTICLE}|{_SAYS}|{pieces('verbs', 'shows')})(?![{LETTER}])(?! (?:the )?(?:same|only|one|first|last|time|place)\b))",
)
"""What stands before and behind an ordinal without a noun that goes on from ``the second box``."""
_USES_THEM = pattern(rf"{words('uses')}\W+(?:\w+\W+)?$")
_ARE_USED = pattern(rf"[^.;!?\n,|:]{{0,25}}?{words('relevant', 'uses')}")
_NOT_ALL = pattern(
    rf"{words('none', 'denies', 'except')}|n't|\b(?:only|but|however|if|whether|should|would|could|might|which|you|your)\b"
)
"""What stands before or behind all boxes that are used, and what in a clause that does not use them all."""
_EXCEPT = pattern(
    rf"(?:{words('every', 'all')}[^.;!?\n]*{NOUN}(?! of )[^.;!?\n]*{pieces('except')}"
    rf"|\b(?:all|every)(?: of)?(?: the)? {NOUN} but(?: for)?)\s*(?:{pieces('the')}\s+)?#?$",
)
_COUNTED = (
    r"people|person|persons|man|men|woman|women|child|children|feet|mice|sheep|fish|geese|other|others|more|"
    r"different|additional|extra|separate|similar|distinct|identical|small|large|big|little|tall|short|young|old|"
    r"red|blue|green|yellow|black|white|brown|gray|grey|orange|pink|purple|wooden|metal|glass|empty|open|round|"
    r"main|adult|smaller|larger|whole|full|half|half-full|of|in (?:the )?(?:box|region|R)[ _]?\d?"
)
_NOT_COUNTED = (
    r"is|was|has|does|this|its|as|us|thus|plus|less|versus|vs|across|towards|besides|perhaps|always|sometimes|"
    r"afterwards|regards|alas|yes|shows|contains|appears|seems|looks|depicts|includes|holds|features|covers|overlaps|"
    r"reveals|displays|captures|lies|sits|stands|focuses|highlights|matches|represents|corresponds|provides|gives|"
    r"helps|makes|needs|encloses|surrounds|marks|outlines|frames|encompasses|indicates|suggests|confirms|remains|"
    r"belongs|dans|sous|sans|vers|tous|nous|ils|mais|las|los|es|más|además|entonces|aus|bis|als|das|des|les|depicts|encloses|highlights|"
    r"hosts|houses|presents|catches|touches|reads|says|sees|excels|results|looks|zeigt|muestras?|respectives?|plays|has|tells|goes|adds|offers|"
    r"comes|gets|takes|deals|serves|points|leads|falls|rests|hangs|leans|faces|fits|wins|counts|matters|alors|puis|nos|nas|dos|das|os|às|após|depois|"
    r"apenas|entonces|tras|unas|unos|dies|diese?s|etwas|nichts|bereits|jedoch|mostrams|is|los|also|lies|rules|answers|contrasts|resembles|features"
)
_COUNTS = pattern(
    rf"[*_`\"']*[ ](?:(?:{_COUNTED})|(?!(?:{_NOT_COUNTED})(?![A-Za-z'-]))[A-Za-z'-]{{2,}}s(?<!'s))(?![A-Za-z'-])"
)
_PRONOUN = pattern(r"\s+(?:can|could|may|might|would|should|must|sees?|finds?|notices?|has to|who|that|of)\b")
_FROM = pattern(rf"{words('from')}\s+(?:{pieces('the')}\s+)?$")
_ALL_FROM = pattern(
    r"\b(?:boxes|regions|areas|rectangles|all|everything|numbered|labell?ed|marked|rang(?:e|es|ing)|sequentially)\W+(?:[a-z]+\W+){0,2}from\s+$",
)
_PAIRS = pattern(
    r"\b(?:compar\w*|connect\w*|link\w*|relat\w*|match\w*|prefer\w*|clos(?:e|er|est)|next|adjacent|near(?:er|est)?|equal|similar|mov\w*|switch\w*|"
    r"return\w*|jump\w*|shift\w*|go|going|turn\w*)\s+(?:the\s+)?$",
)
_RELEVANT = pattern(
    rf"(?<![{LETTER}])(?:key|correct|right|important|necessary|evidence|supporting|target|answer|{pieces('relevant', 'used')})[ _]*(?:bounding )?$",
)
_DISMISSED_KIND = pattern(rf"{pieces('ignored_kinds')}[ _]+$")
_MORE = pattern(rf"(?:\s*,\s*\d{{1,2}})*\s*,?\s*(?:&|{words('joins')})\s*\d{{1,2}}\b")
_LIST_ENDS = pattern(r"\s*(?:[.;:)\]]\s*(?!\d)|$)")
_GERMAN = pattern(r"\b(?:und|oder|sowie)\b")
_FRAME_JOINT = pattern(rf"(?:\s+|(?<=[^!-~]))(?:{pieces('signs', 'labelled', 'from')}\s*){{0,2}}[#'\"*_`\[]*")
"""What stands between a word such as frame or label and its number; ``label: 3 g`` and ``frame_2.png`` name no box."""
_OF_TOTAL = pattern(r"[ ](?:out[ ])?of[ ](\d{1,3})\b")
_OPENED = pattern(r"([*_`\"'$]{1,8})(?:R[ _{#-]{0,4})?\n?$")
"""The stars and quotes before the last number of a group, or before its ``R``."""
_NEAR = 100
"""How many characters around a mention can count for or against it."""


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
    """A stretch of text with the box numbers named there.

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
        """Whether the group states the total as well: ``box 2 of 5``."""
        return (
            self.rigid and len(self.items) == 1 and len(self.items[0].numbers) == 1 and self.items[0].kind == "digits"
        )


def same_length(text: str) -> str:
    """Return the text with plain dashes, quotes, spaces, subscripts and full-width forms.

    Every place stays the same.
    """
    return text.translate(SAME)


def groups(text: str, count: int) -> list[Group]:
    """Return the groups of a text, from left to right; they do not overlap.

    Args:
        text: what a model or an annotator wrote, without invisible characters (``lexer.INVISIBLE``).
        count: number of boxes: beyond it only strong forms name a box (module docstring).
    """
    return list(_Reader(same_length(text), count).groups())


class _Reader:
    """Reads the groups of a text.

    Args:
        text: from ``same_length``.
        count: number of boxes.
    """

    def __init__(self, text: str, count: int) -> None:
        self.text = text
        self.count = count
        self.tokens = list(tokens(text))
        self.kinds = "".join(token.kind for token in self.tokens)
        self.last: Group | None = None

    def groups(self) -> Iterator[Group]:
        """Yield the groups, from left to right."""
        heads = {
            "R": self._name,
            "n": self._noun,
            "g": self._noun,
            "N": self._ordinal,
            "b": self._all,
            "a": self._all,
            "L": self._bracketed,
        }
        heads["#"] = self._number
        done = 0
        for at, token in enumerate(self.tokens):
            read = heads.get(token.kind)
            # A token inside the group before is read already.
            if read is None or token.start < done:
                continue
            group = read(at, token, self.text[max(0, token.start - _NEAR) : token.start], self._after(token.end))
            if group is not None:
                self.last, done = group, group.end
                yield group

    # --- what stands around

    def _after(self, end: int) -> str:
        return self.text[end : end + _NEAR]

    def _kept(self, number: int, strong: bool) -> bool:
        return 1 <= number <= self.count or (strong and number < 100)

    def _counts(self, end: int) -> bool:
        """Return whether a number ending here counts the words after: ``3 people``, ``2 red cups``."""
        return _COUNTS.match(self._after(end)) is not None

    def _item(self, at: int) -> Item:
        """Return the number at a place as an item."""
        start, end = digits(self.tokens[at])
        written = self.text[start:end]
        kind = "digits" if written.isdecimal() else "word" if written.lower() in ENGLISH else "sign"
        return Item(start, end, (value(written),), kind)

    # --- heads

    def _name(self, at: int, token: Token, before: str, after: str) -> Group | None:
        """Read a group beginning with ``R2``."""
        (number,), weak = self._item(at).numbers, " " in token.text or token.text[1] == ")"
        plate = after[:1] == "R" and any(
            int(one) > self.count for one in re.findall(r"\d+", (token.text + after).split(" ")[0])
        )
        sided = weak and "(" in before[-1:] + token.text and _SIDES.search(before + after)
        if plate or sided or _NO_NAME.search(before) or (number > self.count and _BUS.match(after)):
            return None
        strong = not weak and (token.text[0] == "R" or before[-1:] in ("`", "*"))
        return self._list(token.start, at, "name", strong) if self._kept(number, strong) else None

    def _noun(self, at: int, token: Token, before: str, after: str) -> Group | None:
        """Read a group beginning with a region word."""
        bridge = _BRIDGE.match(self.kinds, at + 1)
        first, kinds = (bridge.end(), bridge[0]) if bridge else (at + 1, "")
        relevant = "u" in kinds or _RELEVANT.search(before)
        behind = _BEHIND.match(self.kinds, first) or (_CHAIN.match(self.kinds, first) if relevant else None)
        if behind and (behind.re is _BEHIND or _IN_SERIES.match(self._after(self.tokens[behind.end() - 1].end))):
            return self._ordinals(token.start, self.tokens[first : behind.end()])
        if not self.kinds.startswith(("#", "R"), first) or (
            token.kind != "n" and not _LABELLED.fullmatch("l" * bool(_OBJECT.match(self.text, token.start)) + kinds)
        ):
            return None
        number, word, many = self.tokens[first], token.text, bool(_MANY.fullmatch(token.text))
        joint, behind_it = self.text[token.end : number.start], self._after(number.end)
        if (
            _NO_BRIDGE.search(joint)
            or ("/" in kinds and _LIST_NUMBER.match(self.text, number.start))
            or _ANOTHER.search(before)
        ):
            return None
        frame = _FRAME.fullmatch(word)
        if frame and (
            not (relevant or _FRAME_JOINT.fullmatch(self.text, token.end, number.start)) or _OTHER_FRAME.search(before)
        ):
            return None
        if ("f" in kinds and not self.kinds.startswith(("#t#", "#th#"), first)) or ("v" in kinds and not relevant):
            return None
        bracket = re.search(r"[\[(]", joint)
        if bracket and self._coordinates(token.end + bracket.end(), many):
            return None
        item, strong, digits_alone = self._item(first), bool(_STRONG.fullmatch(word)), number.kind == "#"
        if digits_alone and not self._is_name(number, frame or re.search(r"[({\[<:=→⇒]", joint) or "v" in kinds, word):
            return None
        if not self._kept(item.numbers[0], strong) or (
            number.text.isalpha() and _KNOWN.search(before) and not _ENDS_THERE.match(behind_it)
        ):
            return None
        again = "many" if many or bracket or re.search("[f:]", kinds) else "one"
        group = self._list(token.start, first, again if digits_alone else "name", strong)
        if len(group.numbers) > 1 or item.kind != "digits" or not digits_alone:
            return group
        if (
            ":" in kinds
            and _PLURAL.fullmatch(word)
            and not relevant
            and "[" not in joint
            and not _DISMISSED_KIND.search(before)
        ):
            return None  # "Bounding boxes: 4" says how many there are
        total = _OF_TOTAL.match(behind_it) if again == "one" else None
        if total is None:
            # Other boxes than the item's may be meant where the total differs.
            return group
        if "box" in word.lower() and int(total[1]) != self.count:
            return None  # boxes also stand on shelves: "box 2 of 6"
        return Group(group.start, group.end + total.end(), group.items, True)

    def _is_name(self, number: Token, certain: object, noun: str = "") -> bool:
        """Return whether a number after a region word names the box, rather than counting things.

        Args:
            number: the number.
            certain: whether a bracket, colon or verb stands before it; then digits may count, too.
            noun: the region word right before it; "" in a list.
        """
        word, after = number.text.lower(), self._after(number.end)
        if word.isdecimal() or word in CIRCLED or word in HAN:
            return not (certain and self._counts(number.end))
        if self._counts(number.end) or _PRONOUN.match(after) or (noun and not of_one_language(noun, word)):
            return False
        return word in ENGLISH or bool(_AFTER_SPELT.match(after))

    def _coordinates(self, start: int, many: bool) -> bool:
        """Return whether the bracket opened before ``start`` holds coordinates rather than box numbers."""
        inside = re.split(r"[()\[\]{}<>]", self.text[start : start + 2 * _NEAR], maxsplit=1)[0]
        numbers = re.findall(r"(?<![A-Za-z])\d+(?:\.\d+)?", inside)
        far = any("." in number or int(number) > max(self.count, 99) for number in numbers)
        beyond = far or any(int(number) > self.count for number in numbers)
        return far or (len(numbers) == 4 and not many) or (beyond and len(numbers) in ((4,) if many else (2, 3, 4)))

    def _bracketed(self, at: int, token: Token, before: str, after: str) -> Group | None:
        """Read ``R[1-3]``, ``R_{1,2}`` and ``<regions>1, 3</regions>``."""
        return (
            self._list(token.start, at + 1, "many", False) if self._kept(self._item(at + 1).numbers[0], False) else None
        )

    def _ordinal(self, at: int, token: Token, before: str, after: str) -> Group | None:
        """Read a group such as ``second box`` or ``first two boxes``."""
        match = _NTH_NOUN.match(self.kinds, at)
        if _EXCEPT.search(before):
            return self._ordinals(token.start, [token])
        if match is None or self.kinds[match.end() - 1] == "#":
            return self._in_series(token, after)
        if _nth_item(token, 0).kind == "ordinal" and _NO_NTH_BEFORE.search(before):
            return None
        noun = self.tokens[match.end() - 1]
        behind, no_box = self._after(noun.end), noun.text.isascii() and _NO_NTH.fullmatch(noun.text)
        if no_box or _NO_NTH_AFTER.match(behind) or (_LOOKED_AT.match(behind) and not _INSIDE.search(before)):
            return None  # "the first box I look at"
        plural, chain = bool(_PLURAL.fullmatch(noun.text)), self.tokens[at : at + len(match[1])]
        number = match.start(2) if match[2] else at - 1
        if not match[2] and (self.kinds[number:at] not in ("#", "b") or not (plural or _MANY.fullmatch(noun.text))):
            return self._ordinals(token.start, chain, noun.end) if len(chain) > 1 or not plural else None
        how_many, first = self._how_many(number), place(token, self.count)
        begin = 1 if first == 1 else first - how_many + 1
        return self._several(token, noun, begin, how_many) if len(chain) == 1 and first in (1, self.count) else None

    def _how_many(self, at: int) -> int:
        return 2 if self.kinds[at] == "b" else value(self.tokens[at].text)

    def _in_series(self, token: Token, after: str) -> Group | None:
        """Read an ordinal without a noun behind a box with an ordinal: ``the second box shows a cook, the fifth a pan``."""
        if self.last is None or token.start > self.last.end + 2 * _NEAR or not _IN_SERIES.match(after):
            return None
        first, between = self.last.items[0], self.text[self.last.end : token.start]
        alike = (
            first.kind in ("ordinal", "sign") or first.start == self.last.start or after.startswith(" one")
        ) and _AND_THE_NTH.match(between + token.text)
        return self._ordinals(token.start, [token]) if alike and alike.end() == len(between) else None

    def _ordinals(self, start: int, chain: Sequence[Token], end: int = 0) -> Group | None:
        """Read the ordinals of "the first, second and third", or of ``vùng thứ hai``, where they stand behind the region word."""
        items = tuple(_nth_item(one, place(one, self.count)) for one in chain if one.kind in "NB")
        kept = all(1 <= item.numbers[0] <= self.count for item in items)
        return Group(start, end or chain[-1].end, items, any(item.kind == "sign" for item in items)) if kept else None

    def _all(self, at: int, token: Token, before: str, after: str) -> Group | None:
        """Read "both boxes" and "all four boxes", where there are as many boxes."""
        match = _ALL_OF.match(self.kinds, at)
        if match is None:
            return None
        if token.kind == "a" and not match[1]:
            noun, clause = (
                self.tokens[match.end() - 1],
                _STOP.split(before)[-1] + token.text + _STOP.split(after, maxsplit=1)[0],
            )
            used = (_USES_THEM.search(before) or _ARE_USED.match(self._after(noun.end))) and not _NOT_ALL.search(clause)
            return self._several(token, noun, 1, self.count) if used else None
        how_many = self._how_many(match.start(1)) if match[1] else 2
        return self._several(token, self.tokens[match.end() - 1], 1, how_many) if how_many == self.count else None

    def _several(self, word: Token, noun: Token, first: int, how_many: int) -> Group | None:
        """Return the group of several consecutive boxes named by a word; None where the item has fewer boxes."""
        numbers = tuple(range(first, first + how_many))
        if not 1 <= first <= numbers[-1] <= self.count:
            return None
        return Group(word.start, noun.end, (Item(word.start, word.end, numbers, "ordinal"),), True)

    def _number(self, at: int, token: Token, before: str, after: str) -> Group | None:
        """Read a number by itself: ``#2``, a circled digit, ``the box around the dog (3)``, and "box 3, not 4"."""
        item = self._item(at)
        if token.text.lower() == "one":
            return self._noun(at, token, before, after)
        counts = self._counts(token.end) and before[-1:] != "("
        if item.kind == "word" or len(token.text) > 2 or counts or not self._kept(item.numbers[0], False):
            return None
        contrast = (
            self.last is not None
            and token.start - self.last.end < _NEAR
            and _CONTRAST.fullmatch(self.text[self.last.end : token.start])
        )
        alone = any(
            said.search(before) and follows.match(after)
            for said, follows in (_CIRCLE if token.text in CIRCLED else _LABELS)
        )
        hashed = before.endswith("#") and _NO_HASH.search(_STOP.split(before)[-1] + _STOP.split(after, maxsplit=1)[0])
        if _EXCEPT.search(before):
            return self._list(item.start, at, "many", False)
        if not contrast and (hashed or not (alone or self._behind_clause(before, after))):
            return None
        return Group(item.start, item.end, (item,), item.kind == "sign")

    def _behind_clause(self, before: str, after: str) -> bool:
        """Return whether a number follows a clause on where a box is: ``the box around the dog (3)``."""
        label = next(
            (
                label
                for pattern, follows in _BEHIND_CLAUSE
                if (label := pattern.search(before)) and follows.match(after)
            ),
            None,
        )
        clause = _AROUND.search(before[: label.start()]) if label else None
        return bool(clause and label and not ((label[0][:2] == " (" or clause[1] == "of") and _HOLDS.search(clause[0])))

    # --- lists

    def _list(self, start: int, at: int, again: str, strong: bool) -> Group:
        """Read everything joined to the first number of a group.

        Args:
            start: where the group begins.
            at: the place of its first number.
            again: what a bare number behind a comma needs: "name" after ``R1``; "one" after a region word in the
            singular; "many": nothing more.
            strong: whether numbers beyond the count are kept.
        """
        items = [self._item(at)]
        rigid, ended, last = items[0].kind == "sign", False, items[0].start
        while step := _STEP.match(self.kinds, at + 1):
            item, bare = self._item(step.end() - 1), not step[4] and step[5] == "#"
            joint = self._joint(step, items[-1], item, again, start, ended and bare and not step[2])
            if not joint or not self._kept(item.numbers[-1], strong):
                break
            at, last = step.end() - 1, item.start
            rigid = rigid or joint in ("range", "pair") or item.kind == "sign"
            # After "1 and 2" only a new "R3" or "region 3" continues the list.
            ended = bare and (ended or joint == "end")
            if joint == "range":
                low = items.pop()
                item = Item(low.start, low.end, tuple(range(low.numbers[-1], item.numbers[0] + 1)), item.kind)
            items.append(item)
        return Group(start, self._closed(start, self.tokens[at].end, last), tuple(items), rigid)

    def _joint(self, step: re.Match[str], before: Item, item: Item, again: str, start: int, ended: bool) -> str:
        """Return what joins two numbers: "range", "pair", "list", "end" (the last of a list), or "" where the second is not of the group.

        Args:
            step: of ``_STEP``.
            before: the first number.
            item: the second.
            again: as in ``_list``.
            start: where the group begins.
            ended: whether the list cannot go on with a bare number.
        """
        gloss, to, comma, named, kind = step.groups(default="")
        token, bare, after = self.tokens[step.end() - 1], kind == "#" and not named, self._after(item.end)
        joint = self.text[before.end : token.start]
        spelt = kind == "#" and item.kind != "digits" and token.text not in CIRCLED
        if spelt and not (self._is_name(token, False) and (named or before.kind in ("word", "sign"))):
            return ""
        if (gloss or ";" in joint) and not bare:
            # The words in between may dismiss the next number, so it begins a group of its own.
            return ""
        if bare and (ended or self._counts(item.end) or after.startswith(" another")):
            return ""
        if to:
            spaced = re.search(r"\s—|—\s", joint) or (bare and again != "many" and re.search(r"\s-|-\s", joint))
            return "" if spaced else self._range(start, before, item, self.tokens[step.start(2)].text.lower(), again)
        if not comma:
            return "list" if kind == "R" and self.tokens[step.end() - 2].end == token.start else ""
        last = "end" if "&" in comma and re.search(rf"[{LETTER}]", joint) else "list"
        numbered = "/" in comma and _LIST_NUMBER.match(self.text, item.start)
        if not bare or numbered or (_GERMAN.search(joint) and re.match(r" [A-ZÄÖÜ]", after)):
            return "" if bare else last
        sure = (
            last == "end"
            or (again == "many" and ":" not in gloss)
            or "," not in comma
            or (again == "name" and re.fullmatch(r",\d", joint + token.text))
        )
        return last if sure or (gloss and _GLOSSED.match(self.kinds, step.end())) or self._goes_on(item.end) else ""

    def _range(self, start: int, low: Item, high: Item, word: str, again: str) -> str:
        """Return whether "R2 to R4" is a range, two boxes of a list, or a pair."""
        before = self.text[max(0, start - _NEAR) : start]
        # "to" may join two boxes ("it moves from R1 to R2"); "through" and "all the way to" always join a range.
        if word in ("to", "until", "up to"):
            clause = _STOP.split(before)[-1] + _STOP.split(self._after(high.end), maxsplit=1)[0]
            moves = again != "many" and _FROM.search(before) and not _ALL_FROM.search(before) and _MOVES.search(clause)
            if moves or _PAIRS.search(before):
                return "list"
        ascending = low.numbers[-1] < high.numbers[0] < low.numbers[-1] + 100
        return "range" if ascending and len(low.numbers) == 1 else "pair"

    def _goes_on(self, end: int) -> bool:
        """Return whether a list with a singular head (``region 1, 3 and 4``) continues."""
        more = _MORE.match(self._after(end))
        return bool((more and not self._counts(end + more.end())) or _LIST_ENDS.match(self._after(end)))

    def _closed(self, start: int, end: int, last: int) -> int:
        """Return the end of a group, moved past the closing stars, quotes and brackets of those opened inside.

        Args:
            start: start of the group.
            end: end of the group so far.
            last: where its last number begins.
        """
        text, opened = self.text, _OPENED.search(self.text[max(start, last - 20) : last])
        if opened and text.count(opened[1], start, end) % 2 and text.startswith(opened[1][::-1], end):
            end += len(opened[1])
        for left, right in ("()", "[]", "{}", "<>"):
            if text.count(left, start, end) > text.count(right, start, end) and text.startswith(right, end):
                end += 1
        return end


def _nth_item(token: Token, number: int) -> Item:
    """Return the item of an ordinal: the whole word in English, the digits alone in other languages."""
    word = token.text.lower()
    if word in ENGLISH_NTH or re.fullmatch(r"last|final|\d+(?:st|nd|rd|th)", word):
        return Item(token.start, token.end, (number,), "ordinal")
    return Item(*digits(token), (number,), "digits" if re.search(r"\d", word) else "sign")
