"""Recognition of how the docs of a task are answered: format, options, golds. Pure text work.

Uninformed answers, donors' answers and text-only models must know what an answer looks like. lmms-eval does not say it,
so ``recognise`` infers it from golds and prompts.
"""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

FORMATS = ("mc", "yesno", "number", "open", "caption")
"""The answer formats; ``mc`` is multiple choice."""

_FROM_A = "".join(map(chr, range(ord("A"), ord("A") + 200)))
"""The letters of options; of a doc with more than 26 the characters behind Z."""
_LETTER = re.compile(r"^(\W*)([A-Z])(\W*)$")
_MARK = re.compile(r"(?:(?<=^)|(?<=[\s,;]))\(?([A-Z])(?:\)|[.:])(?=\s|$)\s*")
_BINARY = (("yes", "no"), ("true", "false"))
_YES_OR_NO = re.compile(r"\byes\b\W{0,3}(?:or\W{0,3})?\bno\b|\bno\b\W{0,3}(?:or\W{0,3})?\byes\b", re.IGNORECASE)


@dataclass(frozen=True)
class Asked:
    """What is known of a doc before its format is recognised.

    Attributes:
        prompt: the prompt as the base task builds it.
        target: the gold as the base task (or the profile's field) gives it: a text, a list of texts, or an index into
        the choices.
        choices: the option texts, where a field or the task names them.
        by_index: whether an answer is the index of a choice (tasks scored by log-likelihoods).
    """

    prompt: str
    target: Any
    choices: tuple[str, ...] = ()
    by_index: bool = False


@dataclass(frozen=True)
class Answer:
    """The answer format of a doc, with its golds and options.

    Attributes:
        format: one of ``FORMATS``.
        golds: the gold answers, most frequent first; empty where there is none.
        options: every possible answer, spelled as the gold is; empty for open formats.
        texts: the option texts, where they are known.
    """

    format: str
    golds: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def gold(self) -> str | None:
        """The most frequent gold answer; None where there is none."""
        return self.golds[0] if self.golds else None

    @property
    def label(self) -> str:
        """The answer class: the format, with the number of options for multiple choice, as in ``mc4``."""
        return f"{self.format}{len(self.options)}" if self.format == "mc" else self.format


def recognise(docs: Sequence[Asked], declared: str | None = None) -> list[Answer]:
    """Recognise the answer format of every doc of a task.

    The first rule that fits a doc decides:

    1. an index into its choices (log-likelihood tasks): ``mc``, answered by index;
    2. a gold that is yes or no, true or false: ``yesno``. So are golds 1 and 0, where nine in ten docs have the options
       yes and no, or ask for them;
    3. a gold that is one letter, with the options in a field, or listed in the prompt ("A. ...", "(A) ...", "A: ..."):
       ``mc``, answered by letters;
    4. a gold that is one of the option texts: ``mc``, answered by texts;
    5. a gold that is one letter, where at least nine in ten golds of the task are letters from A on: ``mc``, with the
       letters of the golds;
    6. a gold that is a number: ``number``;
    7. several golds of five words or more: ``caption``;
    8. anything else: ``open``.

    Where ``mc`` is declared and the prompt lists the options by letters, a gold that is an option's place (from 0) or
    text counts as its letter.

    Args:
        docs: all docs of the task.
        declared: the profile's format. It wins over the recognised format; the options are still the recognised ones.
    """
    golds = [_by_letter(doc, _golds(doc)) if declared == "mc" else _golds(doc) for doc in docs]
    golds = _in_words(docs, golds, declared)
    letters = _letters_of_task(golds)
    return [_recognise(doc, own, letters, declared) for doc, own in zip(docs, golds, strict=True)]


def _recognise(doc: Asked, golds: tuple[str, ...], letters: str, declared: str | None) -> Answer:
    found = _by_rules(doc, golds, letters)
    if declared in (None, found.format):
        return found
    options = ("Yes", "No") if declared == "yesno" else found.options if declared == "mc" else ()
    return Answer(declared, golds, options, found.texts)


def _by_rules(doc: Asked, golds: tuple[str, ...], letters: str) -> Answer:
    gold = golds[0] if golds else ""
    if doc.by_index:
        return Answer("mc", golds, tuple(map(str, range(len(doc.choices)))), doc.choices)
    if binary := _binary(gold):
        return Answer("yesno", golds, binary)
    spelled = _LETTER.match(gold)
    texts = doc.choices or options_in(doc.prompt)
    if spelled and spelled[2] in _FROM_A[: len(texts)]:
        return Answer("mc", golds, _spelled(spelled, _FROM_A[: len(texts)]), without_letters(texts))
    if len(texts) > 1 and gold in texts:
        return Answer("mc", golds, texts, texts)
    if spelled and letters:
        return Answer("mc", golds, _spelled(spelled, letters))
    if gold and as_number(gold) is not None:
        return Answer("number", golds)
    if len(golds) > 1 and min(len(g.split()) for g in golds) >= 5:
        return Answer("caption", golds)
    return Answer("open", golds)


def _golds(doc: Asked) -> tuple[str, ...]:
    target = doc.target
    if is_missing(target):
        return ()
    if doc.by_index:
        place = _index(target, doc.choices)
        return () if place is None else (str(place),)
    given = target if isinstance(target, (list, tuple)) else [target]
    counts = Counter(text for one in given if not is_missing(one) and (text := str(one).strip()))
    return tuple(text for text, _ in counts.most_common())


def _in_words(docs: Sequence[Asked], golds: list[tuple[str, ...]], declared: str | None) -> list[tuple[str, ...]]:
    """Return golds 0 and 1 as the words yes and no, for tasks of yes/no questions; else the golds unchanged.

    Where a doc's options are yes and no, the gold is the place of one of them. Without such options 1 is yes and 0 is
    no: the task is then declared as ``yesno``, or nine in ten prompts ask for yes or no.
    """
    options = [doc.choices if sorted(map(str.lower, doc.choices)) == ["no", "yes"] else ("No", "Yes") for doc in docs]
    asked = [
        bool(doc.choices) if doc.choices == own else _YES_OR_NO.search(doc.prompt)
        for doc, own in zip(docs, options, strict=True)
    ]
    places = {gold for own in golds for gold in own} <= {"0", "1"} and not any(doc.by_index for doc in docs)
    if not places or (declared != "yesno" and sum(map(bool, asked)) < 0.9 * len(docs)):
        return golds
    return [tuple(own[int(gold)] for gold in given) for own, given in zip(options, golds, strict=True)]


def _by_letter(doc: Asked, golds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the option letter of a gold given as an option's place or text, if the prompt lists options by letters.

    Else return the golds unchanged.
    """
    listed = options_in(doc.prompt)
    texts = without_letters(doc.choices) or listed
    if doc.by_index or len(golds) != 1 or not listed or len(texts) != len(listed):
        return golds
    (gold,) = golds
    marked = _MARK.match(gold)
    if gold not in texts and marked is not None and gold[marked.end() :].strip() in texts:
        return (marked[1],)
    if gold not in texts and _LETTER.match(gold):
        return golds
    place = _index(doc.target if isinstance(doc.target, int) else gold, texts)
    return golds if place is None else (_FROM_A[place],)


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, or nan of any library, which tables write for None."""
    return value is None or (isinstance(value, numbers.Real) and bool(value != value))


def _index(target: Any, choices: Sequence[str]) -> int | None:
    """Return the place of the gold among the choices, from its text or its number in any type.

    None where it names none.
    """
    if isinstance(target, str) and target in choices:
        return choices.index(target)
    place = as_number(str(int(target) if isinstance(target, bool) else target))
    return int(place) if place is not None and place == int(place) and 0 <= place < len(choices) else None


def _letters_of_task(golds: Sequence[tuple[str, ...]]) -> str:
    """Return the answer letters of a task, such as ``ABCD``; empty where its golds are not letters.

    At least nine in ten golds must be letters, of two kinds or more and none beyond J.
    """
    given = [match[2] for own in golds if own and (match := _LETTER.match(own[0]))]
    if len(given) < 2 or len(given) < 0.9 * len(golds) or len(set(given)) < 2:
        return ""
    # letters beyond J, such as T and F for true and false, are no letters of options
    return _FROM_A[: _FROM_A.index(max(given)) + 1] if max(given) <= "J" else ""


def _spelled(gold: re.Match[str], letters: str) -> tuple[str, ...]:
    """Return letters with the same marks around each as around the gold's letter: ``(A)``, ``(B)``."""
    return tuple(f"{gold[1]}{letter}{gold[3]}" for letter in letters)


def _binary(gold: str) -> tuple[str, ...]:
    """Return both answers of a yes/no (true/false) question, spelled as the gold is; empty for a gold of another kind."""
    shape = gold.strip().rstrip(".")
    end = gold.strip()[len(shape) :]
    pair = next((pair for pair in _BINARY if shape.lower() in pair), ())
    style = str.upper if shape.isupper() else str.capitalize if shape[:1].isupper() else str.lower
    return tuple(style(word) + end for word in pair)


def as_number(text: str) -> float | None:
    """Return the finite number a text spells, ignoring thousands commas, % and $; None for a text without a number."""
    try:
        value = float(text.replace(",", "").strip("%$ "))
    except ValueError:
        return None
    # float() reads the words "nan" and "infinity", too
    return value if math.isfinite(value) else None


def same_answer(text: str) -> str:
    """Return a text equal for all spellings of an answer: a number by its value, words stripped and in lower case.

    >>> same_answer("1,000") == same_answer("1000.0")
    True
    """
    value = as_number(text)
    # so few digits that float error makes no new answer
    return f"{value:.12g}" if value is not None else text.strip().lower()


def counted(texts: Iterable[str]) -> list[tuple[str, int]]:
    """Return the different answers among texts, the most frequent first, with how often each occurs.

    Spellings of one answer (``same_answer``) count together, and the answer comes in the most frequent of them. Ties go
    by the alphabet.

    >>> counted(["2", "blue", "Blue", "2.0", "blue", "red"])
    [('blue', 3), ('2', 2), ('red', 1)]
    """
    spellings: dict[str, Counter[str]] = defaultdict(Counter)
    for text, count in Counter(texts).items():
        spellings[same_answer(text)][text] += count
    often = sorted(spellings.items(), key=lambda pair: (-pair[1].total(), pair[0]))
    return [(min(own, key=lambda text: (-own[text], text)), own.total()) for _, own in often]


def options_in(prompt: str) -> tuple[str, ...]:
    r"""Return the option texts listed in a prompt as A, B, C, ...; empty for a prompt without a list.

    The options are the longest run of marks that starts at A and has no gap; among equally long runs the last.

    >>> options_in("Which one?\nA. a cat\nB. a dog\nAnswer with a letter.")
    ('a cat', 'a dog')
    >>> options_in("Choose: (A) red, (B) green")
    ('red', 'green')
    """
    run = _listed(prompt)
    if len(run) < 2:
        return ()
    ends = [mark.start() for mark in run[1:]] + [len(prompt)]
    return tuple(_one_line(prompt[mark.end() : end]) for mark, end in zip(run, ends, strict=True))


_STOPS = tuple(".?!。？！")
_GOES_ON = re.compile(r"[.?!:]\s+\S|[。？！：]\s*\S")
_OR = re.compile(r"[\s,;]+(?:or|and|oder|ou)$|[\s,;，；]*(?:或者?|还是|還是)$")
_INSTRUCTION = re.compile(
    r"(?<=.)(?:(?i:\b(?:answer|choose|select|respond|reply|please|output)\b)|\b(?:Pick|Give|Return|Write|Provide|State|Think)\s+(?:the|your|only|one|me|a|step)\b|[:：]$|请|請|回答|答案|选择|選擇|"
    r"答え|ください|답|선택|(?i:\b(?:respond[ae]|contest[ae]|elij[ae]|escolha|répond|choisis|antworte|wähle|rispondi|scegli|trả\s+lời|ответьте|выберите)\b))",
    re.DOTALL,
)
"""What tells an instruction that stands behind an option on its line. At its beginning it is the option: "Answer the phone"."""


def listed_options(text: str) -> tuple[str, ...]:
    r"""Return the options that a text lists as A, B, C, ...; empty where the end of some option is unclear.

    An option ends before the mark of the next one, the last with its line. It cannot be told where an option has
    several lines, or where another sentence or an instruction follows the last option on its line. A full stop or
    question mark after all options on one line is no part of the last, an "or" before the last none of the one before.

    >>> listed_options("Is it: A. red, B. green?")
    ('red', 'green')
    >>> listed_options("A. red, B. green. Answer with a letter.")
    ()
    """
    run = _listed(text)
    if len(run) < 2:
        return ()
    line_end = text.find("\n", run[-1].end())
    ends = [*(mark.start() for mark in run[1:]), line_end if line_end >= 0 else len(text)]
    on_one_line = "\n" not in text[run[0].end() : run[-1].start()]
    *firsts, last = [text[mark.end() : end].rstrip(" \t\n,;") for mark, end in zip(run, ends, strict=True)]
    if on_one_line:
        firsts[-1] = _OR.sub("", firsts[-1])
        if last[-1:] in _STOPS and not any(body[-1:] in _STOPS for body in firsts):
            last = last[:-1]
    # what stands on one line may go on in another sentence
    unclear = any("\n" in body or _MARK.match(body) for body in (*firsts, last)) or (
        on_one_line and _GOES_ON.search(last)
    )
    told, before = _told(last), {word for body in firsts for word in _told(body)}
    return () if unclear or told - before else (*firsts, last)


def _told(text: str) -> set[str]:
    """Return a text's instruction words, such as "answer" or "choose", in lower case."""
    return {match[0].casefold() for match in _INSTRUCTION.finditer(text)}


def plain(text: str) -> str:
    """Return a text without case and punctuation, to compare options from different fields.

    A text of marks alone stays as it is.
    """
    return " ".join(re.findall(r"\w+", text)).casefold() or text


def without_letters(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Strip the letters A, B, C, ... from option texts, if every text begins with the letter of its place.

    Otherwise return them unchanged.

    >>> without_letters(("A. a cat", "B. a dog"))
    ('a cat', 'a dog')
    >>> without_letters(("A. a cat", "a dog"))
    ('A. a cat', 'a dog')
    """
    marks = [_MARK.match(text) for text in texts]
    bodies = [text[mark.end() :].strip() for text, mark in zip(texts, marks, strict=True) if mark]
    return tuple(bodies) if "".join(mark[1] for mark in marks if mark) == _FROM_A[: len(texts)] else texts


def without_options(question: str) -> str:
    r"""Cut a question before its listed options; a question without options, or with nothing before them, stays whole.

    >>> without_options("Which one?\nA. a cat\nB. a dog")
    'Which one?'
    """
    run = _listed(question)
    return question[: run[0].start()].strip() or question if len(run) > 1 else question


def without_listed(text: str) -> str:
    r"""Remove listed options from a text; an option ends with its line.

    >>> without_listed("Which one?\nA. a cat\nB. a dog\nHint: it barks.")
    'Which one?\n\n\nHint: it barks.'
    """
    run = _listed(text)
    if len(run) < 2:
        return text
    out, at = "", 0
    for mark, after in zip(run, [*(mark.start() for mark in run[1:]), len(text)], strict=True):
        out += text[at : mark.start()]
        at = end if (end := text.find("\n", mark.end(), after)) >= 0 else after
    return out + text[at:]


def _listed(prompt: str) -> list[re.Match[str]]:
    """Return the marks A, B, C, ... of the options listed in a prompt.

    Marks at the beginning of a line are preferred.
    """
    marks = list(_MARK.finditer(prompt))
    starts = {blanks.end() for blanks in re.finditer(r"^[^\S\n]*", prompt, re.MULTILINE)}
    run = _longest_run([mark for mark in marks if mark.start() in starts])
    return run if len(run) > 1 else _longest_run(marks)


def _longest_run(marks: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    runs: list[list[re.Match[str]]] = [[]]
    for mark in marks:
        if mark[1] == "A":
            runs.append([mark])
        elif runs[-1] and ord(mark[1]) == ord(runs[-1][-1][1]) + 1:
            runs[-1].append(mark)
    # of equal runs the last, since a list in the question comes before the options
    return max(reversed(runs), key=len)


def _one_line(text: str) -> str:
    return text.strip().split("\n")[0].strip(" \t,;")


def first_words(question: str) -> str:
    """Return a question's first two words in lower case with digits as #, its skeleton.

    >>> first_words("How many 3s are there?")
    'how many'
    """
    words = re.findall(r"[^\W_]+", question.lower())
    return " ".join(re.sub(r"\d+", "#", word) for word in words[:2])
