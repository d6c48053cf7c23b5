"""The numbers of a text that may name boxes, and what stands around them. Pure text work."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lmms_patch.magic.score.lexer import CIRCLED, HAN, Token, digits, of_one_language, tokens, value
from lmms_patch.magic.score.vocabulary import ENGLISH, pattern, words

_STOP = pattern(r"[.!?;\n。！？।؟]")
LIST_NUMBER = pattern(r"\s*\d+[.)](?:\s|$)")
_AFTER_SPELT = pattern(rf"\s*(?:[.,;:!?)]|$|{words('verbs', 'joins', 'shows', 'to')})")
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
NEAR = 100
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


class Text:
    """A text in which boxes may be named, cut into tokens.

    Args:
        text: from ``mentions.same_length``.
        count: number of boxes.

    Attributes:
        whole: the text.
        count: number of boxes.
        tokens: its words and marks.
        kinds: a letter for the kind of each token.
    """

    def __init__(self, text: str, count: int) -> None:
        self.whole, self.count = text, count
        self.tokens = list(tokens(text))
        self.kinds = "".join(token.kind for token in self.tokens)

    def before(self, start: int) -> str:
        """Return the ``NEAR`` characters before a place."""
        return self.whole[max(0, start - NEAR) : start]

    def after(self, end: int) -> str:
        """Return the ``NEAR`` characters behind a place."""
        return self.whole[end : end + NEAR]

    def clause(self, start: int, end: int) -> tuple[str, str]:
        """Return the rest of the clause around a stretch of text: the part before the stretch, and the part behind."""
        return _STOP.split(self.before(start))[-1], _STOP.split(self.after(end), maxsplit=1)[0]

    def kept(self, number: int, strong: bool) -> bool:
        """Return whether a number may be a box: beyond the count only a number in a strong form may."""
        return 1 <= number <= self.count or (strong and number < 100)

    def counts(self, end: int) -> bool:
        """Return whether a number ending here counts the words after: ``3 people``, ``2 red cups``."""
        return _COUNTS.match(self.after(end)) is not None

    def item(self, at: int) -> Item:
        """Return the number at a place as an item."""
        start, end = digits(self.tokens[at])
        written = self.whole[start:end]
        kind = "digits" if written.isdecimal() else "word" if written.lower() in ENGLISH else "sign"
        return Item(start, end, (value(written),), kind)

    def is_name(self, number: Token, certain: object, noun: str = "") -> bool:
        """Return whether a number after a region word names the box, rather than counting things.

        Args:
            number: the number.
            certain: whether a bracket, colon or verb stands before it; then digits may count, too.
            noun: the region word right before it; "" in a list.
        """
        word, after = number.text.lower(), self.after(number.end)
        if word.isdecimal() or word in CIRCLED or word in HAN:
            return not (certain and self.counts(number.end))
        if self.counts(number.end) or _PRONOUN.match(after) or (noun and not of_one_language(noun, word)):
            return False
        return word in ENGLISH or bool(_AFTER_SPELT.match(after))

    def coordinates(self, start: int, many: bool) -> bool:
        """Return whether the bracket opened before ``start`` holds coordinates rather than box numbers."""
        inside = re.split(r"[()\[\]{}<>]", self.whole[start : start + 2 * NEAR], maxsplit=1)[0]
        numbers = re.findall(r"(?<![A-Za-z])\d+(?:\.\d+)?", inside)
        far = any("." in number or int(number) > max(self.count, 99) for number in numbers)
        beyond = far or any(int(number) > self.count for number in numbers)
        return far or (len(numbers) == 4 and not many) or (beyond and len(numbers) in ((4,) if many else (2, 3, 4)))
