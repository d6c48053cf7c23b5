"""The region extractor φ: which boxes a text refers to; and the renumbering of boxes in texts. Pure text work.

φ maps a step to the numbers of the boxes it names (MAGIC paper, 4.1); a chain's boxes are the union over its steps. A number outside 1..count is
*invented*: counted, never used. A box that is named only to be dismissed ("R3 is not relevant") counts as used, as φ defines it, and is also listed
separately. ``mentions`` defines what is read as a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lmms_patch.magic.score.mention_patterns import ORDINALS, WORDS
from lmms_patch.magic.score.mentions import Group, Item, groups, same_length

ANOTHER = "another region"
"""The words for a box that is not shown."""

_RELEVANCE = r"(?:relevant|needed|necessary|useful|important|helpful|related|of interest|involved|pertinent|required|of use|to be considered)"
_BE = r"(?:is|are|was|were|be|seems?|appears?|looks?)(?: to be)?"
_DISMISSED_AFTER = re.compile(
    rf"[*_`\"')\]]*(?:\s*\([^()]*\))?,?\s*(?:(?:both|all|also|probably|likely|clearly|just|simply|therefore|thus)\s+)*(?:"
    rf"{_BE}(?: \w+ly)?(?:(?: not|n't)(?: \w+ly| that| very| so)? {_RELEVANCE}| (?:irrelevant|unrelated|unnecessary|unhelpful|unimportant))"
    r"|(?:can|could|may|might|should|will)(?: \w+)? be (?:ignored|skipped|excluded|disregarded|dismissed|ruled out|left out|omitted)"
    r"|(?:do|does|did)(?: not|n't) (?:matter|help|contribute|relate|"
    r"(?:seem|appear|look|need to be)(?: to be)? ?(?:relevant|related|important|useful|considered|examined))"
    r"|(?:has|have|had) nothing to do with|(?:is|are) not(?=\s*[.,;]|\s*$))",
    re.I,
)
_LOOK = r"(?:look at|check|examine|consider|inspect|use|focus on)"
_DISMISSED_BEFORE = re.compile(
    r"(?:\b(?:ignor(?:e|es|ed|ing)|skip(?:s|ped|ping)?|disregard(?:s|ed|ing)?|exclud(?:e|es|ed|ing)|except(?: for)?|instead of|rather than|"
    r"dismiss(?:es|ed|ing)?|rul(?:e|es|ed|ing) out|apart from|other than)"
    rf"|\bno need (?:for|to {_LOOK})|(?:n't|\bnot) need(?: to {_LOOK})?"
    r"|,\s*(?:and |but )?not(?: (?:in|at|on|from|to))?)\s+(?:the\s+|either\s+)*[*_`\"'(\[]*$",
    re.I,
)


@dataclass(frozen=True)
class Mentions:
    """The boxes that a text refers to.

    Attributes:
        used: numbers within 1..count.
        invented: numbers outside 1..count: boxes that do not exist.
        negated: the part of ``used`` that is named only to be dismissed ("ignore R3", "R3 is not relevant").
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
    named_groups = groups(text, count)
    plain = same_length(text)
    named = {number for group in named_groups for number in group.numbers}
    kept = {number for group in named_groups if not _dismissed(plain, group) for number in group.numbers}
    used = frozenset(number for number in named if 1 <= number <= count)
    return Mentions(used, frozenset(named) - used, used - kept)


def regions_of_steps(steps: Iterable[str], count: int) -> Mentions:
    """Return the union of φ over the steps of a chain (paper, 4.1, R̂); a box is negated where every step that names it dismisses it."""
    mentions = [regions(step, count) for step in steps]
    used = frozenset(number for one in mentions for number in one.used)
    kept = {number for one in mentions for number in one.used - one.negated}
    return Mentions(used, frozenset(number for one in mentions for number in one.invented), used - kept)


def _dismissed(text: str, group: Group) -> bool:
    clause = re.split(r"[.!?;\n]", text[max(0, group.start - 80) : group.start])[-1]
    return bool(_DISMISSED_BEFORE.search(clause) or _DISMISSED_AFTER.match(text, group.end))


def renumber(text: str, numbers: Mapping[int, int], count: int | None = None) -> str:
    """Return the text with every box under its new number; a box without a new number becomes "another region".

    Numbers are replaced where they stand. Ranges, and lists with a box that is not shown, are written out.

    Args:
        text: a step or a correction, boxes by their place in the item's list.
        numbers: old number -> new number, for the boxes that are shown (``items.ShownBoxes.numbers``).
        count: number of boxes in the item's list; default: the largest old number. Give it where some boxes are not shown: it decides whether a loose
            form ("area 5", "the fifth box") names a box.

    >>> renumber("Regions 1-3 show dogs, R2 a big one.", {1: 2, 2: 1})
    'Regions R2, R1 and another region show dogs, R1 a big one.'
    """
    out, done = [], 0
    listed = max(numbers, default=0) if count is None else count
    for group in groups(text, listed):
        if all(numbers.get(number) == number for number in group.numbers) and not (group.of_how_many and len(numbers) != listed):
            continue
        start, new = _renumbered(text, group, numbers)
        out += [text[done : max(done, start)], new]
        done = group.end
    return "".join([*out, text[done:]])


def _renumbered(text: str, group: Group, numbers: Mapping[int, int]) -> tuple[int, str]:
    """Return where the new text of a group begins, and the text."""
    if (not group.rigid or group.of_how_many) and all(number in numbers for number in group.numbers):
        new = _exchanged(text, group, numbers)
        return group.start, re.sub(r"\d+$", str(len(numbers)), new) if group.of_how_many else new  # "box 2 of 5"
    kept = [f"R{numbers[number]}" for number in group.numbers if number in numbers]
    start, alone = group.start, not kept
    if len(kept) < len(group.numbers):
        kept.append(ANOTHER)
    joint = " or " if re.search(r"\bor\b", text[group.start : group.end]) else " and "
    new = joint.join(filter(None, [", ".join(kept[:-1]), kept[-1]]))
    ordinal = group.items[0].kind == "ordinal"
    head = (
        re.search(r"[A-Za-z]+$", text[group.start : group.end])
        if ordinal
        else re.match(r"(?:[A-Za-z]{3,}[ -]?)*", text[group.start : group.items[0].start])
    )
    if not alone and head and head[0]:
        return start, f"{head[0].rstrip(' -')} {new}"  # keep the head, as in "regions R2 and R1"
    if article := re.search(r"\b(?:the|that|this)\s+$" if alone else r"\bthe\s+$", text[max(0, start - 20) : start], re.I):
        start = max(0, start - 20) + article.start()  # not "the another region"
    before = text[max(0, start - 20) : start]
    begins = not before.strip("*_`\"'-# \t\n") or re.search(r"[.!?:]\s+$|\n[\s*_#-]*$", before)
    return start, new[0].upper() + new[1:] if alone and begins else new


def _exchanged(text: str, group: Group, numbers: Mapping[int, int]) -> str:
    out, done = [], group.start
    for item in group.items:
        out += [text[done : item.start], _written(text[item.start : item.end], item, numbers[item.numbers[0]])]
        done = item.end
    return "".join([*out, text[done : group.end]])


def _written(old: str, item: Item, number: int) -> str:
    """Write a number in the form of the old one: digits, word or ordinal."""
    if item.kind == "digits":
        return str(number)
    words = WORDS if item.kind == "word" else ORDINALS
    if old[0].isdigit() or number >= len(words):
        return str(number) if item.kind == "word" else f"{number}{_suffix(number)}"
    return words[number].capitalize() if old[0].isupper() else words[number]


def _suffix(number: int) -> str:
    return "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
