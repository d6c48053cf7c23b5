"""The region extractor φ: which boxes a text refers to; and the renumbering of boxes in texts. Pure text work.

φ maps a step to the numbers of the boxes it names (MAGIC paper, 4.1); a chain's boxes are the union over its steps. A
number outside 1..count is *invented*: counted, never used. A box that is named only to be dismissed ("R3 is not
relevant") counts as used, as φ defines it, and is also listed separately. ``mentions`` defines what is read as a name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lmms_patch.magic.score.containers import written_out
from lmms_patch.magic.score.dismissals import dismissed, excepted
from lmms_patch.magic.score.lexer import INVISIBLE, NOUN
from lmms_patch.magic.score.mentions import groups, same_length
from lmms_patch.magic.score.numbers import Group
from lmms_patch.magic.score.response import sentences
from lmms_patch.magic.score.vocabulary import ENGLISH, ENGLISH_NTH, pattern

ANOTHER = "another region"
"""The words for a box that is not shown."""


@dataclass(frozen=True)
class Mentions:
    """The boxes named in a text.

    Attributes:
        used: numbers within 1..count.
        invented: numbers outside 1..count: boxes that do not exist.
        negated: the part of ``used`` whose last mention dismisses it ("ignore R3", "R3 is not relevant", "R3, no, R4").
    """

    used: frozenset[int]
    invented: frozenset[int]
    negated: frozenset[int]


def regions(text: str, count: int) -> Mentions:
    """Return φ of a text: a step, or a whole chain (paper, 4.1).

    Args:
        text: what a model wrote.
        count: number of boxes shown, numbered from 1; 0 where none is.

    >>> regions("R1 and R3 show chairs; region 9 does not exist.", 4)
    Mentions(used=frozenset({1, 3}), invented=frozenset({9}), negated=frozenset())
    """
    plain = written_out(INVISIBLE.sub("", same_length(text)))
    found = groups(plain, count)
    said: dict[int, bool] = {}
    # Patterns are of small letters. A large I with a dot would become two characters.
    plain = plain.replace("İ", "i").lower()
    for group, ruled_out in zip(found, dismissed(plain, found), strict=True):
        # In "all boxes except R2" the other boxes are mentioned, though no number names them.
        others = range(1, count + 1) if excepted(plain, group) else ()
        said |= dict.fromkeys(others, False) | dict.fromkeys(group.numbers, ruled_out)
    used = frozenset(number for number in said if 1 <= number <= count)
    return Mentions(used, frozenset(said) - used, frozenset(number for number in used if said[number]))


def regions_of_steps(steps: Iterable[str], count: int) -> Mentions:
    """Return φ of a chain (paper, 4.1, R̂): the union over its steps.

    A box is negated where the last statement about the box dismisses it.
    """
    return regions("\n".join(steps), count)


def own_steps(steps: Sequence[str], prompt: str, count: int) -> list[str]:
    """Return the steps without repetitions of a sentence in the prompt.

    "On the image, 4 regions are outlined in red and numbered `R1` to `R4`" says nothing about what the model looked at,
    and would use every box. A step repeats a sentence of the prompt where it adds no word to it but those of telling
    ("the image has", "the user says that"), keeps most of its pairs of neighbouring words, and names the same boxes. A
    question is repeated by a question only: the same words in another order are its answer.

    Args:
        steps: of a response (``response.parse``).
        prompt: what the model was asked, as text.
        count: number of boxes shown.
    """
    asked = [
        (sentence.endswith("?"), _word_list(sentence), regions(sentence, count))
        for sentence in sentences(_MARK.sub("", prompt))
    ]
    said = [
        (question, frozenset(words), frozenset(itertools.pairwise(words)), boxes)
        for question, words, boxes in asked
        # A sentence that names no box cannot add one.
        if boxes.used or boxes.invented
    ]
    longest = max((len(words) for _, words, _ in asked), default=0) + _ADDED

    def repeated(step: str) -> bool:
        words = _word_list(step) if len(step) < _LONG_STEP else []
        return _FEW_WORDS <= len(words) <= longest and any(_repeats(step, words, *one, count) for one in said)

    return [step for step in steps if not repeated(step)]


_MARK = re.compile(r"\*\*\w[\w ]{0,20}\*\*:")
"""What marks the question in a prompt; ``sentences`` drops a line that begins so."""
_FEW_WORDS = 6
"""A shorter step is the model's own: "R1 to R4" may be its answer."""
_ADDED = 12
"""How many words of telling a repeated sentence may have before it."""
# characters: no sentence of a prompt is as long, so a longer step need not be taken apart
_LONG_STEP = 2000
_TELLING = re.compile(
    r"an?|the|this|that|these|there|here|in|on|of|at|to|with|is|are|was|were|ha[sd]|have|which|they|it|we|i|you|see|shown|so|ok|okay|let|me|first|well|users?|"
    r"says?|said|prompt|questions?|ask(?:s|ed)|states?|tells?|told|given|according|all|as|also|both|my|your|task|instructions?|now|following"
)


def _word_list(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", same_length(text).casefold())


def _repeats(
    step: str,
    words: list[str],
    question: bool,
    known: frozenset[str],
    pairs: frozenset[tuple[str, str]],
    boxes: Mentions,
    count: int,
) -> bool:
    """Return whether a step repeats a sentence of the prompt.

    Args:
        step: the step.
        words: its words.
        question: whether the sentence is a question.
        known: the sentence's words.
        pairs: its neighbouring words.
        boxes: the boxes that the sentence names.
        count: number of boxes shown.
    """
    if any(word not in known and not _TELLING.fullmatch(word) for word in words) or (
        question and not step.rstrip("*_\"' ").endswith("?")
    ):
        return False
    own = [pair for pair in itertools.pairwise(words) if not all(map(_TELLING.fullmatch, pair))]
    kept = sum(pair in pairs for pair in own)
    named = regions(step, count)
    return kept >= _KEPT * len(own) and (named.used, named.invented) == (boxes.used, boxes.invented)


_KEPT = 0.6
"""The share of neighbouring words that a repeated sentence keeps."""


def renumber(text: str, numbers: Mapping[int, int], count: int | None = None) -> str:
    """Return the text with every box under its new number; a box without a new number becomes "another region".

    Numbers are replaced where they stand. Ranges, and lists with a box that is not shown, are written out.

    Args:
        text: a step or a correction, boxes by their place in the item's list.
        numbers: old number -> new number, for the boxes that are shown (``items.ShownBoxes.numbers``).
        count: number of boxes in the item's list; default: the largest old number. Give it where some boxes are not
            shown: it decides whether a loose form ("area 5", "the fifth box") names a box.

    >>> renumber("Regions 1-3 show dogs, R2 a big one.", {1: 2, 2: 1})
    'Regions R2, R1 and another region show dogs, R1 a big one.'
    """
    out, done, plain = [], 0, text
    listed = max(numbers, default=0) if count is None else count
    # Bare numbers in tables and lists get a region word first, or they would keep their old values.
    text = written_out(INVISIBLE.sub("", text))
    for group in groups(text, listed):
        # Groups that stay the same are left as they are written.
        if not all(numbers.get(number) == number for number in group.numbers) or (
            group.of_how_many and len(numbers) != listed
        ):
            out += [text[done : group.start], _renumbered(text, group, numbers)]
            done = group.end
    return (
        _CAPITAL.sub(rf"\1{ANOTHER.capitalize()}", _ARTICLE.sub(ANOTHER, "".join([*out, text[done:]])))
        # Untouched texts are returned without the words that ``written_out`` put in.
        if done
        else plain
    )


_HEAD = pattern(NOUN)
_ARTICLE = pattern(rf"\b(?:the|that|this)\s+{ANOTHER}")
_CAPITAL = re.compile(rf"(^[*_`\"'\-# \t]*|[.!?:]\s+|\n[\s*_#-]*){ANOTHER}")


def _renumbered(text: str, group: Group, numbers: Mapping[int, int]) -> str:
    """Return the new text of a group."""
    if (not group.rigid or group.of_how_many) and all(number in numbers for number in group.numbers):
        new = _exchanged(text, group, numbers)
        # In "box 2 of 5" the total changes too.
        return re.sub(r"\d+$", str(len(numbers)), new) if group.of_how_many else new
    kept = [f"R{numbers[number]}" for number in group.numbers if number in numbers]
    if not kept:
        return ANOTHER
    if len(kept) < len(group.numbers):
        kept.append(ANOTHER)
    joint = " or " if re.search(r"\bor\b", text[group.start : group.end]) else " and "
    new = joint.join(filter(None, [", ".join(kept[:-1]), kept[-1]]))
    head = _HEAD.search(text, group.start, group.end)
    # A list keeps its head, as in "regions R2 and R1".
    return f"{head[0]} {new}" if head else new


def _exchanged(text: str, group: Group, numbers: Mapping[int, int]) -> str:
    """Return the text of a group with new numbers, each in the form of the old number: digits, word or ordinal."""
    out, done = [], group.start
    for item in group.items:
        old, new = text[item.start : item.end], numbers[item.numbers[0]]
        words = {"word": ENGLISH, "ordinal": ENGLISH_NTH}.get(item.kind, ())
        if not old[0].isdecimal() and new < len(words):
            written = words[new].capitalize() if old[0].isupper() else words[new]
        else:
            written = f"{new}{_suffix(new)}" if item.kind == "ordinal" else str(new)
        out += [text[done : item.start], written]
        done = item.end
    return "".join([*out, text[done : group.end]])


def _suffix(number: int) -> str:
    return "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
