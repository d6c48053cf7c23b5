"""A doc's options in every cyclic order: its row with the options moved, and the gold moved along.

The row names its options (a list, a mapping, columns by letter), or a text of it lists them by letters; and its prompt
shows the same texts in the same order. An order counts only where the base task confirms it: its prompt shows the moved
options and differs in nothing else, its target is the same option, and its scorer gives the gold the marks it had. A
doc for which that does not hold has a reason in place of its orders; it is never asked in a guessed form.

Source of the orders: CircularEval, in MMBench (https://arxiv.org/abs/2307.06281).
"""

from __future__ import annotations

import ast
import contextlib
import copy
import itertools
import json
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_patch.ask.answers import Answer, is_missing, listed_options, plain, without_letters
from lmms_patch.ask.mentions import in_options, in_question

LETTERS = string.ascii_uppercase
MOST = len(LETTERS)
"""The largest number of options of a doc: more than there are letters cannot be told apart."""
FORMS = "a list, a dict or columns by letter (A, B, ...; choice_a, choice_b, ...), or a text that lists them as A, B, C, ..."
"""Where options are looked for."""
_GOLD_FIELDS = 2
"""How many fields are moved along with the options, at most: a letter, and beside it an index."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Base:
    """What the base task makes of a row.

    Attributes:
        prompt: the prompt, or all texts of the messages.
        target: the gold.
        score: what an answer earns by the primary metric, None where it has no score; None where the scorer must not be
        called.
        continuations: of a log-likelihood task, the texts whose likelihood is asked; None for other tasks.
    """

    prompt: Callable[[Row], Any]
    target: Callable[[Row], Any]
    score: Callable[[Row, str], float | None] | None
    continuations: Callable[[Row], Sequence[str]] | None = None


@dataclass(frozen=True)
class Order:
    """An order of a doc's options.

    Attributes:
        changes: the fields of the row that differ from the doc's own, with their values.
        gold: the place of the gold among the options, from 1.
    """

    changes: Row
    gold: int


@dataclass(frozen=True)
class Orders:
    """The orders of a doc's options.

    Attributes:
        orders: in the order of asking; the first is the doc's own. Empty where the options cannot be moved.
        fault: why they cannot; "" where they can.
    """

    orders: tuple[Order, ...] = ()
    fault: str = ""


class _NotMovedError(Exception):
    """The options of a doc cannot be moved; its text says why."""


def orders(row: Row, base: Base, answer: Answer) -> Orders:
    """Return the k rows of a doc whose k options are moved in a circle, each with its gold; or why there are none.

    Turn t shows at place p, from 0, the option of place (p + t) mod k. So the gold comes to each place once.

    Args:
        row: the doc.
        base: what the base task makes of rows.
        answer: how the doc is to be answered (``answers.recognise``).
    """
    try:
        return Orders(tuple(_orders(row, base, answer)))
    except _NotMovedError as why:
        return Orders(fault=str(why))


def changed(row: Any, changes: Row) -> Any:
    """Return a row with some fields changed, of the same type as the row."""
    if not changes:
        return row
    # shallow, since rows may hold images
    out = copy.copy(row)
    out.update(changes)
    return out


def _orders(row: Row, base: Base, answer: Answer) -> list[Order]:
    gold, count = _gold(answer)
    prompt = base.prompt(row)
    if not isinstance(prompt, str) or not prompt:
        raise _NotMovedError("its prompt is no text")
    texts, around, holders = _shown(row, prompt, count)
    if why := _why_fixed(texts, around):
        raise _NotMovedError(why)
    continuations = [] if base.continuations is None else list(base.continuations(row))
    labels = [_letter(text) for text in (continuations or answer.options)]
    if all(labels) and not _labelled(around, labels):
        raise _NotMovedError("its prompt does not label the options as its gold does")
    if not all(labels) and not continuations and [text.strip() for text in answer.options] != list(texts):
        # "A. a cat" would be wrong where the cat stands at B
        raise _NotMovedError("its gold names an option otherwise than by its text")
    turns = [[(place + turn) % count for place in range(count)] for turn in range(count)]
    moves: list[dict[str, Any]] = [{}]
    for turn in turns[1:]:
        moves.append({name: new for holder in holders for name, new in holder.moved(turn).items()})
        moved = changed(row, moves[-1])
        if base.prompt(moved) != _joined(around, [texts[i] for i in turn]):
            raise _NotMovedError("its prompt does not follow the order of the field that holds its options")
        if continuations and list(base.continuations(moved)) not in (continuations, [continuations[i] for i in turn]):  # type: ignore[misc] # mypy forgets that `continuations` is given here
            raise _NotMovedError("the texts whose likelihood is asked do not follow the order of its options")
    return _with_gold(row, base, answer, texts, gold, turns, moves)


def _gold(answer: Answer) -> tuple[int, int]:
    """Return the place of a doc's gold, from 0, and how many options it has."""
    if answer.format != "mc":
        raise _NotMovedError(f"its answer is no option of a list ({answer.format})")
    if not 1 < len(answer.options) <= MOST:
        raise _NotMovedError(f"it has {len(answer.options)} options; possible: 2 to {MOST}")
    if len(answer.golds) != 1 or answer.golds[0] not in answer.options:
        raise _NotMovedError("it has no gold, several golds, or a gold that is no option")
    return answer.options.index(answer.golds[0]), len(answer.options)


def _why_fixed(texts: Sequence[str], around: Sequence[str]) -> str:
    """Say why options have their meaning by their order or their letters, or cannot be told apart; "" where they may be moved."""
    if not all(map(str.strip, texts)):
        return "it has an option without text"
    if any("<image" in text for text in texts):
        return "an option is an image"
    if len(set(texts)) < len(texts):
        return "two of its options are the same"
    # the letter before an option is no word of the question
    question = [re.sub(r"(?:^|(?<=[\s,;(\[]))[A-Za-z]\W*$", "", literal) for literal in around[:-1]]
    if in_question("\n".join([*question, around[-1]]), len(texts)):
        return "its question names options by their letters or numbers"
    return in_options(texts)


# --- where the options stand ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Holder:
    """A part of a row that holds option texts.

    Attributes:
        name: its field; of columns, that of the first.
        texts: the options in their order, without their letters.
        moved: returns the changed fields with the options in another order.
    """

    name: str
    texts: tuple[str, ...]
    moved: Callable[[Sequence[int]], dict[str, Any]]


def _shown(row: Row, prompt: str, count: int) -> tuple[tuple[str, ...], list[str], Sequence[_Holder]]:
    """Return the options that a prompt shows, what stands around them in it, and all that holds them in the row."""
    lists = [one for one in _lists(row, count) if list(one.texts) != list(LETTERS[:count])]
    fitting = (one.texts for one in lists if _around(prompt, one.texts))
    # of a text alone its letters and lines must tell where each option ends
    texts = next(fitting, None) or listed_options(prompt)
    around = _around(prompt, texts) if len(texts) == count else []
    holders = [one for one in lists if around and _alike(one.texts, texts)]
    texts_of_row = ((name, value) for name, value in row.items() if around and isinstance(value, str))
    parts = {name: _around(value, texts) for name, value in texts_of_row}
    holders += [_in_text(name, of, texts) for name, of in parts.items() if _labelled(of, LETTERS[:count])]
    if not holders:
        raise _NotMovedError(f"no field holds its {count} options as its prompt lists them")
    return texts, around, holders


def _in_text(name: str, around: Sequence[str], texts: tuple[str, ...]) -> _Holder:
    return _Holder(name, texts, lambda turn: {name: _joined(around, [texts[i] for i in turn])})


def _around(text: str, parts: Sequence[str]) -> list[str]:
    """Return what stands before, between and behind the last words of a text that are these parts in their order; empty where they are not there.

    A part behind its letter is preferred: an option "a" is no word of "answer with a letter".
    """
    out: list[str] = []
    for letter, part in reversed(list(zip(LETTERS, parts, strict=False))):
        words = rf"({re.escape(part)})(?!\w)"
        found = [*re.finditer(rf"(?<!\w){words}", text), *re.finditer(rf"\b{letter}\W{{1,4}}{words}", text)]
        if not found:
            return []
        out.append(text[found[-1].end() :])
        text = text[: found[-1].start(1)]
    return [text, *reversed(out)]


def _joined(around: Sequence[str], parts: Sequence[str]) -> str:
    return "".join(itertools.chain.from_iterable(zip(around, [*parts, ""], strict=True)))


def _labelled(around: Sequence[str], labels: Sequence[str]) -> bool:
    """Return whether each option has its own label before it."""
    ends = [re.search(r"([A-Za-z])\W*$", literal) for literal in around[:-1]]
    return bool(ends) and [end[1].upper() if end else "" for end in ends] == list(labels)


def _alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether lists hold the same options, perhaps in longer words: a scorer may look an answer up in either."""
    pairs = [(plain(a), plain(b)) for a, b in zip(one, other, strict=True)]
    return all(a == b or (not a.isdigit() and not b.isdigit() and (a in b or b in a)) for a, b in pairs)


def _lists(row: Row, count: int) -> Iterator[_Holder]:
    """Yield the lists, mappings and columns of a row that hold so many texts or numbers."""
    for name in row:
        if name[-1:] in ("A", "a", "0", "1"):
            names = [f"{name[:-1]}{chr(ord(name[-1]) + i)}" for i in range(count)]
            values = [row[one] for one in names if one in row]
            yield from _inside(name, values, count, lambda new, n=names: dict(zip(n, new, strict=True)))  # type: ignore[misc] # mypy cannot type a default that binds the loop's value
    for name, value in row.items():
        yield from _inside(name, value, count, lambda new, n=name: {n: new})  # type: ignore[misc] # mypy cannot type a default that binds the loop's value


def _inside(name: str, value: Any, count: int, put: Callable[[Any], dict[str, Any]]) -> Iterator[_Holder]:
    """Yield what a field may hold of options: a list, a mapping, or the text of either.

    Args:
        name: the field.
        value: its value, or a part of it.
        count: how many options there are.
        put: returns the changed field with another value, or another part.
    """
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        # JSON first: a list that is both would be written back with quotes that JSON cannot read
        for read, written in ((json.loads, json.dumps), (ast.literal_eval, str)):
            # the last two for a text with brackets within brackets without end
            with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                yield from _inside(name, read(value), count, lambda new, w=written: put(w(new)))  # type: ignore[misc] # mypy cannot type a default that binds the loop's value
                return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, list):
                yield from _inside(name, inner, count, lambda new, k=key: put({**value, k: new}))  # type: ignore[misc] # mypy cannot type a default that binds the loop's value
        keys = [key for key, inner in value.items() if not is_missing(inner) and inner != ""]
        values = [value[key] for key in keys]
        yield from _inside(name, values, count, lambda new: put({**value, **dict(zip(keys, new, strict=True))}))
    if isinstance(value, list) and len(value) == count and all(type(one) in (str, int, float) for one in value):
        told = tuple(map(str, value))
        texts = without_letters(told)
        # letters stay where they are
        marks = ["" if a == b else a[: a.rindex(b)] for a, b in zip(told, texts, strict=True)]
        bodies = texts if any(marks) else value
        yield _Holder(
            name,
            texts,
            lambda turn: put(
                [f"{mark}{bodies[i]}" if mark else bodies[i] for mark, i in zip(marks, turn, strict=True)]
            ),
        )


def _letter(text: str) -> str:
    """Return the letter that an answer is; "" for a longer answer."""
    inner = re.sub(r"\W", "", text)
    return inner.upper() if len(inner) == 1 and inner.isalpha() else ""


# --- where the gold stands ------------------------------------------------------------------------


def _with_gold(
    row: Row,
    base: Base,
    answer: Answer,
    texts: Sequence[str],
    gold: int,
    turns: Sequence[Sequence[int]],
    moves: Sequence[dict[str, Any]],
) -> list[Order]:
    """Return the orders, with the gold moved along in every field that says its place.

    Which fields these are is found by trial, the fewest first: with them moved, target and scorer must follow in every
    order. Of a target that is a letter or a number the place must follow; of one that is a text, nothing may change.
    """
    by_letter, places = bool(_letter(answer.options[gold])), [turn.index(gold) for turn in turns]
    by_place = by_letter or base.continuations is not None
    marks = [base.score(row, one) for one in answer.options] if base.score else []
    if None in marks:
        raise _NotMovedError("the scorer gives an option no score")
    # equal marks cannot tell whether the gold moved along
    if marks and marks.count(marks[gold]) > 1:
        raise _NotMovedError("the scorer gives a wrong option as much as the gold")
    target = base.target(row)
    moved = [_moved(target, gold, place, texts) for place in places]
    wanted = [moved] if by_place and None not in moved else []
    # a text names the gold wherever the option stands
    wanted += [] if by_letter and target != texts[gold] else [[target] * len(turns)]
    held = {name for changes in moves for name in changes}
    fields = [name for name, value in row.items() if name not in held and _moved(value, gold, gold, texts) is not None]
    why = "its target does not follow the order of its options"
    for names in (some for size in range(_GOLD_FIELDS + 1) for some in itertools.combinations(fields, size)):
        made = [
            {**changes, **{name: _moved(row[name], gold, place, texts) for name in names if place != gold}}
            for changes, place in zip(moves, places, strict=True)
        ]
        rows = [changed(row, changes) for changes in made]
        if [base.target(one) for one in rows] not in wanted:
            continue
        # the gold, and the option in the gold's old place, earn what they earned
        tried = [(one, turn, option) for one, turn in zip(rows, turns, strict=True) for option in (gold, turn[gold])]
        if base.score and any(
            base.score(one, answer.options[turn.index(option) if by_place else option]) != marks[option]
            for one, turn, option in tried
        ):
            why = "its scorer does not follow the order of its options"
            continue
        if by_letter and any(str(row[name]).strip() in texts for name in names):
            raise _NotMovedError("its gold may be a letter, or the text of an option")
        return [Order(changes, place + 1) for changes, place in zip(made, places, strict=True)]
    raise _NotMovedError(why)


def _moved(value: Any, gold: int, place: int, texts: Sequence[str]) -> Any:
    """Return a value that says that the gold is in another place; None where the value does not say the gold's place.

    A place is said by a letter ("B", "(b)"), by a letter with the option's text ("B. a dog"), or by a number from 0 or
    from 1.

    Args:
        value: the value.
        gold: the place that it must say, from 0.
        place: the place to say, from 0.
        texts: the options.
    """
    if isinstance(value, list) and len(value) == 1:
        inner = _moved(value[0], gold, place, texts)
        return None if inner is None else [inner]
    if isinstance(value, int) and not isinstance(value, bool):
        return value - gold + place if value in (gold, gold + 1) else None
    if not isinstance(value, str):
        return None
    if value.strip().isdecimal():
        return str(moved) if (moved := _moved(int(value), gold, place, texts)) is not None else None
    match = re.fullmatch(r"(\W*)([A-Za-z])(\W.*)?", value, re.DOTALL)
    alone = match and (not re.search(r"\w", match[3] or "") or value.strip().endswith(texts[gold]))
    if match is None or not alone or match[2].upper() != LETTERS[gold]:
        return None
    return f"{match[1]}{chr(ord(match[2]) - gold + place)}{match[3] or ''}"
