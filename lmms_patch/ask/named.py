"""Which of a doc's options an answer names. Pure text work.

The native scorer says whether an answer is the gold; it does not say which other option a wrong answer is, or that it
is none. Docs that are asked again need that (``stats.composition``). Reading is careful: a text that names two options, or
none for sure, names none.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from lmms_patch.ask.answers import Answer, plain

_TOLD = re.compile(
    r"(?:\\boxed\s*\{|<answer>|<\|begin_of_box\|>|"
    r"(?:answer|choice|option|antwort|réponse|respuesta|resposta|risposta|ответ)\b[\"']?(?:\s+(?:is|ist|est|es|é|è))?\s*[:=]?|"
    r"(?:答案|答え|正解|选择?|選擇?|정답)(?:是|为|為|は|은)?\s*[:=]?|"
    r"(?<![\w'’])(?=[A-Z]\)?\s+is\s+(?:the\s+)?(?:most\s+)?(?:correct|right|best|answer)\b))\s*",
    re.IGNORECASE,
)
"""What announces an answer; the last one in a text counts, since reasoning comes before it."""
_SHORT = 200
"""Characters of an answer whose place is kept: short answers come again and again; reasons do not, and would fill the memory."""
_LAST = 8
"""How many announcements are looked at: a model that repeats itself writes thousands."""
_MARKS = " \t\n*_`\"'“”‘’([{<"
_LETTER = re.compile(r"([A-Za-z])(?!['’]\w)(?=$|[\s).:,;!\]}<>*_`\"'”’、。，：）-]|[\u3040-\u9fff\uac00-\ud7a3])")
_ALONE = re.compile(r"(?<![A-Za-z'’/])([A-Z])(?=[).:!\]}*]|$)|[(\[{*]([A-Za-z])[)\]}*]")
"""A letter with a mark of its own, or at the end."""
_BOTH = re.compile(
    r"(?<![A-Za-z'’])([A-Z])\W*(?:,|/|&|\+|\b(?:and|or|und|oder|et|ou|y|o)\b|和|或)\W*([A-Z])(?![A-Za-z'’])"
)
_NOT = re.compile(r"\b(?i:not|isn't|neither|nor|nicht)\s+(?:(?i:option)\s+)?[(*]*[A-Z](?![A-Za-z'’])[)*]*")
"""A letter that is ruled out."""
_SILENT = re.compile(
    r"\bno\s+(?:idea|information|way\s+to|(?:image|picture|photo)\s+(?:is|was|has|provided|attached|available))\b",
    re.IGNORECASE,
)
"""Phrases with a "no" that does not answer a yes/no question, such as "no idea"."""
_FIRST = re.compile(r"[\W_]*(yes|no|true|false)[*_]*\s*[,.;:!\n]", re.IGNORECASE)
"""What answers a yes/no question at once; a reason may follow."""
_ARTICLE = re.compile(r"^(?:a|an|the) (?=.)")
_NEGATED = re.compile(r"\b(?:not|isn't|neither|nor|cannot|can't|unable|unclear|unsure|don't)\b", re.IGNORECASE)


def named(text: str, answer: Answer) -> int | None:
    """Return the place of the option named by an answer, from 1; 0 where no option is named.

    None where the doc has fewer than two options.

    Args:
        text: the answer, as the scorer takes it.
        answer: how the doc is to be answered.
    """
    if len(answer.options) < 2:
        return None
    return (_kept if len(text) <= _SHORT else _named)(text, answer.options, answer.texts)


def _named(text: str, options: tuple[str, ...], texts: tuple[str, ...]) -> int:
    """Return the place of the option named by an answer, from 1; 0 where no option is named."""
    # Full-width letters and digits, as Chinese models write them, become plain. What
    # a model thinks aloud names many options, so only what follows counts.
    text = unicodedata.normalize("NFKC", text).rpartition("</think>")[2].strip()
    if place := _whole(text, options, texts):
        return place
    text = _SILENT.sub(" ", _NOT.sub(" ", text))
    if (first := _FIRST.match(text)) and (place := _whole(first[1], options, texts)):
        return place
    announced = [(text[match.end() :], True) for match in list(_TOLD.finditer(text))[-_LAST:]]
    read = (_read(part, options, texts, told=told) for part, told in (*reversed(announced), (text, False)))
    return next((place for place in read if place is not None), 0)


_kept = functools.lru_cache(maxsize=200_000)(_named)


def _whole(text: str, options: tuple[str, ...], texts: tuple[str, ...]) -> int:
    """Return the place of the option that is the whole text, spelled anyhow, if need be without an article.

    0 where none is.
    """
    own = plain(text)
    for known, cut in ((options, ""), (texts, ""), (texts, _ARTICLE)):
        told = re.sub(cut, "", own)
        same = [
            place
            for place, option in enumerate(known, 1)
            if re.sub(cut, "", plain(unicodedata.normalize("NFKC", option))) == told
        ]
        if len(same) == 1 and own:
            return same[0]
    return 0


def _read(text: str, options: tuple[str, ...], texts: tuple[str, ...], *, told: bool) -> int | None:
    """Return the place of the option named by a text, 0 where two are named; None where no option is named.

    Args:
        text: what was answered, or what stands behind "the answer is".
        options: of the doc.
        texts: the options' texts.
        told: whether the text stands behind "the answer is".
    """
    letters = [plain(option) for option in options]
    by_letter = all(len(letter) == 1 and letter.isalpha() for letter in letters)
    if by_letter:
        start = text.lstrip(_MARKS)
        both = [
            match.start() for match in _BOTH.finditer(start) if _place(match[1], letters) and _place(match[2], letters)
        ]
        first = _LETTER.match(start) if 0 not in both else None
        after = start[first.end() :] if first is not None else ""
        bare = first is not None and not after.partition("\n")[0].strip(" \t\n*_`\"'“”‘’)]}>.。")
        if first is not None and (bare or told or not (after[:1].isspace() or after[:1].isalpha())):
            letter = _place(first[1], letters)
            if letter and (bare or first[1].isupper() or after[:1] in ").:"):
                return letter
        if both:
            return 0
    if place := _mentioned(text, texts or (() if by_letter else options)):
        return place
    if by_letter:
        marked = {place for match in _ALONE.finditer(text) if (place := _place(match[1] or match[2], letters))}
        return marked.pop() if len(marked) == 1 else 0 if marked else None
    return place


def _place(letter: str, letters: list[str]) -> int:
    """Return the place of a letter among the letters of the options; 0 for any further letter."""
    return letters.index(letter.casefold()) + 1 if letter.casefold() in letters else 0


def _mentioned(text: str, texts: tuple[str, ...]) -> int | None:
    """Return the place of the one option whose words a text holds; 0 where it holds two, or says "not".

    None where it holds none.
    """
    # with blanks around, or "carpet" would hold "car"
    own = f" {plain(text)} "
    places = [place for place, option in enumerate(texts, 1) if plain(option) and f" {plain(option)} " in own]
    # "red car" holds "car": the longest option that holds all others is meant
    if len(places) > 1:
        longest = max(places, key=lambda place: len(texts[place - 1]))
        held = f" {plain(texts[longest - 1])} "
        places = [longest] if all(f" {plain(texts[place - 1])} " in held for place in places) else places
    if not places:
        return None
    first = own.strip().startswith(plain(texts[places[0] - 1]))
    return places[0] if len(places) == 1 and (first or not _NEGATED.search(text)) else 0
