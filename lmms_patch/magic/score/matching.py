"""Matching of answers with golds by their words alone, without a judge.

Neither function is the paper's judged accuracy (4.2), and their numbers must not carry its name. ``exact`` misses every
paraphrase. ``synonym`` knows a small table (synonyms.yaml) and looks for the gold answer inside a longer one. So it
misses what the table lacks, and is fooled where an answer names the gold for another reason. Both are deterministic,
free, and need no network.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import yaml

from lmms_patch.magic.score.mentions import groups
from lmms_patch.magic.score.vocabulary import ENGLISH

_ARTICLES = ("a", "an", "the")
_YES_NO = ("yes", "no")
_NEGATION = re.compile(r"not|no|never|without|neither|nor|cannot|nothing|than")
_INSTEAD = re.compile(r"\b(?:instead of|rather than|unlike|apart from|except)\b")
_BOX = re.compile(r"(?<![a-z])(?:R(?=[\W_]*\d)|(?:bounding[ _-]?|b-?)?box|r[ée]gi[oó]n|areas?\b|rectangle)", re.I)
_REACH = 3
"""How many words a negation reaches."""
_LONGEST = 20
"""How many characters of a word are compared with negations, which are all shorter."""
# without the s these would be other words ("glasses" are not "glass"), or none
_AS_THEY_ARE = re.compile(r"(?:sun|eye)?glasses|jeans|pants|shorts|scissors|gas|lens|christmas|always")
_IRREGULAR = {
    "men": "man",
    "women": "woman",
    "people": "person",
    "children": "child",
    "feet": "foot",
    "teeth": "tooth",
    "mice": "mouse",
    "geese": "goose",
    "knives": "knife",
    "shelves": "shelf",
    "leaves": "leaf",
    "wolves": "wolf",
    "buses": "bus",
    "indoors": "indoors",
    "outdoors": "outdoors",
}


@dataclass(frozen=True)
class _Category:
    """A category of the table: whether members exclude each other, the sets of synonyms, and all members."""

    exclusive: bool
    sets: tuple[frozenset[str], ...]
    members: frozenset[str]


def normalise(text: str) -> str:
    """Return a text in lower case, without articles, punctuation and markdown; number words as digits.

    "isn't" as "is not".

    >>> normalise("**The** two dogs!")
    '2 dogs'
    """
    plain = text.lower().translate(str.maketrans("’‘`“”–—‑", "'' \"\"   "))
    # before the rule for "n't", which would make "wo not" and "ca not" of them
    plain = re.sub(r"\bcan't\b|\bcan not\b", "cannot", re.sub(r"\bwon't\b", "will not", plain))
    plain = re.sub(r"n't\b", " not", plain)
    words = re.findall(r"\d+(?:[.,:]\d+)*|[^\W\d_]+|\d", re.sub(r"'s\b|'", "", plain))
    return " ".join(str(ENGLISH.index(word)) if word in ENGLISH else word for word in words if word not in _ARTICLES)


def exact(answer: str, gold: str) -> bool:
    """Return whether an answer is the gold answer, up to case, articles, punctuation and number words.

    Of yes and no, the leading word counts.

    Args:
        answer: a model's final answer.
        gold: the short gold answer.

    >>> exact("Yes, there is a helmet.", "yes"), exact("It is red.", "red")
    (True, False)
    """
    said, right = normalise(answer), normalise(gold)
    # Yes and no may be explained: only the leading word counts.
    if right in _YES_NO:
        return said.split(" ", 1)[0] == right
    return bool(right) and said == right


def synonym(answer: str, gold: str) -> bool:
    """Return whether an answer contains the gold answer or a synonym, without negation or a contradicting answer.

    Singular and plural count as equal. Yes and no count as the leading word, or standing alone ("so the answer is no").
    A negation reaches three words within its clause ("not really red"). Where the table says that words of a category
    exclude each other (colours, materials, sides; also numbers), naming another one gives False ("red and blue").
    Elsewhere the first named one counts ("the woman next to the man" is the woman), and "a dog or a cat" is neither.
    Named boxes ("in R2") do not count as numbers.

    Args:
        answer: a model's final answer.
        gold: the short gold answer.

    >>> synonym("The couch is beige.", "tan"), synonym("It is not red.", "red")
    (True, False)
    """
    right = normalise(gold)
    if right in _YES_NO:
        return _yes_no(answer) == right
    if not right:
        return False
    gold_words = _singular(right)
    forms = frozenset(
        {gold_words}.union(*(one for known in _table().values() for one in known.sets if gold_words in one))
    )
    clauses = [_singular(normalise(clause)) for clause in _clauses(_without_boxes(answer, gold))]
    # The whole answer first: it may be a form that the named words alone would miss.
    if " ".join(filter(None, clauses)) in forms:
        return True
    names = _names(gold_words, forms)
    said = [word for clause in clauses for word in _named(clause, names)]
    if not any(one in forms for one in said) or any(_either_or(clause, forms) for clause in clauses):
        return False
    # "red and blue" is not red, since colours exclude each other; elsewhere the first named word counts.
    if gold_words.isdigit() or any(category.exclusive for category in _categories(gold_words)):
        return all(one in forms for one in said)
    return said[0] in forms


def _yes_no(answer: str) -> str:
    """Return the yes or no of an answer: the first word, else the only yes or no at the end of a clause.

    "" where there is none.
    """
    first = normalise(answer).split(" ", 1)[0]
    if first in _YES_NO:
        return first
    alone = {word for clause in _clauses(answer) for word in normalise(clause).split()[-1:] if word in _YES_NO}
    return alone.pop() if len(alone) == 1 else ""


def _without_boxes(answer: str, gold: str) -> str:
    """Return the answer without names of boxes, unless the gold answer is a box."""
    # how many boxes the item has is not known here, so any number may name one
    if groups(gold, 99):
        return answer
    out, done = [], 0
    for group in groups(answer, 99):
        if not _BOX.search(answer, group.start, group.end):
            # "label 3" and "#3" may be the answer itself
            continue
        out.append(answer[done : group.start])
        done = group.end
    return " ".join([*out, answer[done:]])


def _clauses(text: str) -> list[str]:
    return re.split(r"[,;:!?()\n]|\.(?!\d)|\bbut\b|—|–| - ", text)


def _singular(text: str) -> str:
    """Return the words in the singular, by rule."""
    return " ".join(_one(word) for word in text.split())


def _one(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    # Words in -ss, -us and -is are singular already.
    # Most words of three letters that end in -s, such as has and yes, are no plurals.
    if _AS_THEY_ARE.fullmatch(word) or len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("ches", "shes", "xes", "sses", "zes", "oes")) else word[:-1]


@functools.cache
def _table() -> dict[str, _Category]:
    data = yaml.safe_load(
        resources.files("lmms_patch.magic.score").joinpath("synonyms.yaml").read_text(encoding="utf-8")
    )
    out = {}
    for name, entry in data.items():
        # the table's words go through the steps of answers, or words such as "dark blue jeans" would not meet
        sets = tuple(frozenset(_singular(normalise(str(word))) for word in one) for one in entry["sets"])
        out[name] = _Category(bool(entry["exclusive"]), sets, frozenset().union(*sets))
    return out


def _categories(gold: str) -> list[_Category]:
    return [category for category in _table().values() if gold in category.members]


def _names(gold: str, forms: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of all members of the gold answer's categories (of all numbers, for a number).

    Longest first.
    """
    known = forms.union(*(category.members for category in _categories(gold)))
    numbers = [r"\d+"] if gold.isdigit() else []
    # longest first, since the first alternative that fits is taken: "silver" would hide "silver colored"
    return re.compile(r"\b(?:" + "|".join([*map(re.escape, sorted(known, key=len, reverse=True)), *numbers]) + r")\b")


def _named(clause: str, names: re.Pattern[str]) -> list[str]:
    """Return what a clause names and does not negate, in order."""
    words = [(match.end(), match[0][:_LONGEST]) for match in re.finditer(r"\S+", clause)]
    return [match[0] for match in names.finditer(clause) if not _negated(words, match.start())]


def _negated(words: Sequence[tuple[int, str]], place: int) -> bool:
    """Return whether a negation is among the last words before a place.

    Args:
        words: the words of the clause, each with the place where it ends.
        place: the place.
    """
    at = bisect.bisect_left(words, (place, ""))
    before = [word for _, word in words[max(0, at - _REACH) : at]]
    return any(map(_NEGATION.fullmatch, before)) or bool(_INSTEAD.search(" ".join(before)))


def _either_or(clause: str, forms: frozenset[str]) -> bool:
    """Return whether a form of the gold answer is offered beside another answer: ``cat or dog``."""
    for match in re.finditer(r"\b(\w+(?: \w+)?) or (\w+(?: \w+)?)", clause):
        left, right = ({side, side.split()[-1], side.split()[0]} for side in match.groups())
        if bool(left & forms) != bool(right & forms):
            return True
    return False
