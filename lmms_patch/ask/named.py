"""Which of a doc's options an answer names. Pure text work.

The native scorer says whether an answer is the gold; it does not say which other option a wrong answer is, or that it is none. Luck needs that
(``stats.habits``). Reading is careful: a text that names two options, or none for sure, names none.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from lmms_patch.ask.answers import Answer, plain

_TOLD = re.compile(
    r"(?:\\boxed\s*\{|<answer>|(?:answer|choice|option|antwort|réponse|respuesta|resposta|risposta|ответ)\b(?:\s+(?:is|ist|est|es|é|è))?\s*[:=]?|"
    r"(?:答案|答え|选择?|選擇?|정답)(?:是|は|은)?\s*[:=]?)\s*",
    re.IGNORECASE,
)
"""What announces an answer; the last one in a text counts, since reasoning comes before it."""
_MARKS = " \t\n*_`\"'“”‘’([{<"
_LETTER = re.compile(r"([A-Za-z])(?!['’]\w)(?=$|[\s).:,;\]}<>*_`\"'”’、。，：）-])")
_ALONE = re.compile(r"(?<![A-Za-z'’])([A-Z])(?=[).:\]}*]|$)|[(\[{*]([A-Za-z])[)\]}*]")
"""A letter with a mark of its own, or at the end."""
_BOTH = re.compile(r"(?<![A-Za-z'’])([A-Z])\W*(?:,|/|&|\+|\b(?:and|or|und|oder|et|ou|y|o)\b|和|或)\W*([A-Z])(?![A-Za-z'’])")
_NEGATED = re.compile(r"\b(?:not|isn't|neither|nor|cannot|can't|unable|unclear|unsure|don't)\b", re.IGNORECASE)


def named(text: str, answer: Answer) -> int | None:
    """Return the place of the option that an answer names, from 1; 0 where it names none; None where the doc has fewer than two options.

    Args:
        text: the answer, as the scorer takes it.
        answer: how the doc is to be answered.
    """
    return _named(text, answer.options, answer.texts) if len(answer.options) > 1 else None


@functools.lru_cache(maxsize=200_000)
def _named(text: str, options: tuple[str, ...], texts: tuple[str, ...]) -> int:
    text = unicodedata.normalize("NFKC", text).strip()
    if place := _whole(text, options, texts):
        return place
    announced = [(text[match.end() :], True) for match in _TOLD.finditer(text)]
    read = (_read(part, options, texts, told=told) for part, told in (*reversed(announced), (text, False)))
    return next((place for place in read if place is not None), 0)


def _whole(text: str, options: tuple[str, ...], texts: tuple[str, ...]) -> int:
    """Return the place of the option that is the whole text, spelled anyhow; 0 where none is."""
    own = plain(text)
    for known in (options, texts):
        same = [place for place, option in enumerate(known, 1) if plain(unicodedata.normalize("NFKC", option)) == own]
        if len(same) == 1 and own:
            return same[0]
    return 0


def _read(text: str, options: tuple[str, ...], texts: tuple[str, ...], *, told: bool) -> int | None:
    """Return the place of the option that a text names, 0 where it names two; None where it names none.

    Args:
        text: what was answered, or what stands behind "the answer is".
        options: of the doc.
        texts: the options' texts.
        told: whether the text stands behind "the answer is".
    """
    letters = [plain(option) for option in options]
    by_letter = all(len(letter) == 1 and letter.isalpha() for letter in letters)
    if by_letter:
        if any(_place(match[1], letters) and _place(match[2], letters) for match in _BOTH.finditer(text)):
            return 0
        start = text.lstrip(_MARKS)
        first = _LETTER.match(start)
        bare = first is not None and not start[first.end() :].partition("\n")[0].strip(" \t\n*_`\"'“”‘’)]}>.。")
        if first is not None and (bare or told or not start[first.end() :][:1].isspace()):
            letter = _place(first[1], letters)
            if letter and (bare or first[1].isupper() or start[first.end() :][:1] in ").:"):
                return letter
    if place := _mentioned(text, texts or (() if by_letter else options)):
        return place
    if by_letter:
        marked = {place for match in _ALONE.finditer(text) if (place := _place(match[1] or match[2], letters))}
        return marked.pop() if len(marked) == 1 else 0 if marked else None
    return place


def _place(letter: str, letters: list[str]) -> int:
    """Return the place of a letter among those of the options; 0 where it is none of them."""
    return letters.index(letter.casefold()) + 1 if letter.casefold() in letters else 0


def _mentioned(text: str, texts: tuple[str, ...]) -> int | None:
    """Return the place of the one option whose words a text holds; 0 where it holds two, or says "not"; None where it holds none."""
    own = f" {plain(text)} "
    places = [place for place, option in enumerate(texts, 1) if plain(option) and f" {plain(option)} " in own]
    if len(places) > 1:  # "red car" holds "car": the longest option that holds all others is meant
        longest = max(places, key=lambda place: len(texts[place - 1]))
        held = f" {plain(texts[longest - 1])} "
        places = [longest] if all(f" {plain(texts[place - 1])} " in held for place in places) else places
    if not places:
        return None
    first = own.strip().startswith(plain(texts[places[0] - 1]))
    return places[0] if len(places) == 1 and (first or not _NEGATED.search(text)) else 0
