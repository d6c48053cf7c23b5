"""A doc's options in every cyclic order: where its row holds them, and the row with its options moved and its gold moved along.

No benchmark says where its options stand. So we try what a row offers, and keep only what the base task confirms: its
prompt lists the same texts in the new order and differs in nothing else, its target is the same text, and its scorer
gives every option the marks it had. A doc for which no such row is found has a reason in place of its orders; it is
never asked in a guessed form.

Source of the orders: CircularEval, in MMBench (https://arxiv.org/abs/2307.06281).
"""

from __future__ import annotations

import ast
import copy
import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_patch.ask.answers import Answer, is_missing, option_spans, options_in, plain
from lmms_patch.ask.mentions import in_options, in_question

MOST = 26
"""Options that a doc may have: there are so many letters."""
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
    """One order of a doc's options.

    Attributes:
        changes: the fields of the row that differ from the doc's own, with their values.
        gold: the place of the gold among the options, from 1.
        prompt: gives what the base task's prompt is then; it is kept in parts, which the orders share.
    """

    changes: Row
    gold: int
    prompt: Callable[[], str]


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


def orders(row: Row, base: Base, answer: Answer, named: str | None = None) -> Orders:
    """Return the k rows of a doc whose k options are moved in a circle, each with its gold and prompt.

    Or why there are none.

    Turn t shows at place p, from 0, the option of place (p + t) mod k. So the gold comes to each place once.

    Args:
        row: the doc.
        base: what the base task makes of rows.
        answer: how the doc is to be answered (``answers.recognise``).
        named: the field that holds the options, where the option ``choices`` names it; None: any field may.
    """
    try:
        return Orders(tuple(_orders(row, base, answer, named)))
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


def _orders(row: Row, base: Base, answer: Answer, named: str | None) -> list[Order]:
    gold, count = _gold(answer)
    prompt = base.prompt(row)
    if not isinstance(prompt, str) or not prompt:
        raise _NotMovedError("its prompt is no text")
    shown = _shown(row, base, prompt, count, named)
    _check_texts(shown.texts)
    if in_question(shown.question, count):
        raise _NotMovedError("its question names options by their letters or numbers")
    continuations = [] if base.continuations is None else list(base.continuations(row))
    labels = [_label(text) for text in (continuations or answer.options)]
    if all(labels) and not shown.labelled(labels):
        raise _NotMovedError("its prompt does not label the options as its gold does")
    if not all(labels) and not continuations and [text.strip() for text in answer.options] != list(shown.texts):
        # "A. a cat" would be wrong where the cat stands at B
        raise _NotMovedError("its gold names an option otherwise than by its text")
    turns = [[(place + turn) % count for place in range(count)] for turn in range(count)]
    moves = [shown.moved(turn) for turn in turns]
    if base.continuations is not None:
        for changes, turn in zip(moves, turns, strict=True):
            asked = list(base.continuations(changed(row, changes)))
            if asked not in (continuations, [continuations[i] for i in turn]):
                raise _NotMovedError("the texts whose likelihood is asked do not follow the order of its options")
    return _with_gold(row, base, answer, shown, gold, turns, moves)


def _gold(answer: Answer) -> tuple[int, int]:
    """Return the place of a doc's gold, from 0, and how many options it has."""
    if answer.format != "mc":
        raise _NotMovedError(f"its answer is no option of a list ({answer.format})")
    if not answer.golds:
        raise _NotMovedError("it has no gold")
    if len(answer.golds) > 1:
        raise _NotMovedError("it has several golds")
    if answer.golds[0] not in answer.options:
        raise _NotMovedError("its gold is none of its options")
    if not 1 < len(answer.options) <= MOST:
        raise _NotMovedError(f"it has {len(answer.options)} options; possible: 2 to {MOST}")
    return answer.options.index(answer.golds[0]), len(answer.options)


def _check_texts(texts: Sequence[str]) -> None:
    """Refuse options whose meaning depends on their order or their letters, and options that cannot be told apart."""
    if not all(texts):
        raise _NotMovedError("it has an option without text")
    if any("<image" in text for text in texts):
        raise _NotMovedError("an option is an image")
    if len(set(texts)) < len(texts):
        raise _NotMovedError("two of its options are the same")
    if why := in_options(texts):
        raise _NotMovedError(why)


# --- where the options stand ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Holder:
    """A part of a row that holds option texts.

    Attributes:
        name: its field; of columns, that of the first.
        bodies: the options in their order, without their letters.
        write: returns the changed fields that hold other options in their place.
    """

    name: str
    bodies: tuple[Any, ...]
    write: Callable[[Sequence[Any]], dict[str, Any]]

    @property
    def texts(self) -> tuple[str, ...]:
        """The options as texts."""
        return tuple(str(body).strip() for body in self.bodies)


@dataclass(frozen=True)
class _Shown:
    """The options of a row as its prompt shows them.

    Attributes:
        holders: the parts of the row that hold them: all are moved together.
        literals: what stands between the options of the prompt, one more than ``places``.
        places: which options the prompt shows: (number of the holder, place in it).
    """

    holders: Sequence[_Holder]
    literals: Sequence[str]
    places: Sequence[tuple[int, int]]

    @property
    def texts(self) -> tuple[str, ...]:
        """The options."""
        return self.holders[self.places[0][0]].texts

    @property
    def question(self) -> str:
        """What stands around the options in the prompt, without their letters."""
        return (
            "\n".join(re.sub(r"(?:^|(?<=[\s,;(\[]))[A-Za-z]\W*$", "", literal) for literal in self.literals[:-1])
            + f"\n{self.literals[-1]}"
        )

    def filled(self, turn: Sequence[int]) -> str:
        """Return the prompt with the options in another order."""
        parts = [str(self.holders[holder].bodies[turn[place]]) for holder, place in self.places]
        return "".join(itertools.chain.from_iterable(zip(self.literals, [*parts, ""], strict=True)))

    def moved(self, turn: Sequence[int]) -> dict[str, Any]:
        """Return the fields of the row with the options in another order; none for their own order."""
        if list(turn) == sorted(turn):
            return {}
        return _together(holder.write([holder.bodies[i] for i in turn]) for holder in self.holders)

    def labelled(self, labels: Sequence[str]) -> bool:
        """Return whether the prompt sets a label before each option."""
        ends = [re.search(r"([A-Za-z])\W*$", literal) for literal in self.literals[: len(labels)]]
        return [end[1].upper() if end else "" for end in ends] == list(labels)


def _shown(row: Row, base: Base, prompt: str, count: int, named: str | None) -> _Shown:
    """Find the options shown by the prompt.

    Each option of a candidate is replaced by a mark. The prompt of that row says where options stand, and between which
    words: with the doc's own options in place of the marks it must be the doc's prompt.
    """
    found: dict[tuple[str, ...], list[_Holder]] = {}
    for holder in _holders(row):
        if len(holder.bodies) == count:
            found.setdefault(tuple(map(plain, holder.texts)), []).append(holder)
    own = None if named is None else named.partition(".")[0]
    for holders in found.values():
        # two parts of one field cannot both be written: the second change would undo the first
        if len({holder.name for holder in holders}) < len(holders) or (
            own is not None and all(holder.name != own for holder in holders)
        ):
            continue
        # marks of letters and digits survive whatever a task does to texts: lower case, stripping, quoting
        marked = _together(
            holder.write([f"zqx{number}x{place}xqz" for place in range(count)]) for number, holder in enumerate(holders)
        )
        try:
            pieces = re.split(r"zqx(\d+)x(\d+)xqz", base.prompt(changed(row, marked)))
        # a prompt that cannot be made of marks does not show these options as they are
        except Exception:
            continue
        shown = _Shown(
            holders,
            pieces[::3],
            [(int(number), int(place)) for number, place in zip(pieces[1::3], pieces[2::3], strict=True)],
        )
        # a prompt may list the options more than once
        in_order = [place for _, place in shown.places] == list(range(count)) * (len(shown.places) // count)
        if shown.places and in_order and shown.filled(range(count)) == prompt:
            return shown
    holders = [holder for group in found.values() for holder in group]
    listed = [value for value in row.values() if isinstance(value, str) and len(options_in(value)) == count]
    if any(not option_spans(value, [holder.texts for holder in holders]) for value in listed):
        raise _NotMovedError("where each of its listed options ends cannot be told")
    if own is not None and own in row and not found:
        raise _NotMovedError(f"its field {named!r} does not hold its {count} options")
    raise _NotMovedError(
        f"no field holds its {count} options as its prompt lists them"
        if found
        else f"no field holds its {count} options"
    )


def _together(changes: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for one in changes for name, value in one.items()}


def _holders(row: Row) -> Iterator[_Holder]:
    """Yield the places in a row, such as a list or columns by letter, where the texts of the options may stand."""
    apart = list(_columns(row))
    for name, value in row.items():
        apart += _within(name, value, lambda new, name=name: {name: new})  # type: ignore[misc] # a default binds the loop's value
    # before the texts, since what other fields hold tells where the last option of a text ends
    yield from apart
    known = [holder.texts for holder in apart]
    yield from (
        holder for name, value in row.items() if isinstance(value, str) and (holder := _listing(name, value, known))
    )


def _within(name: str, value: Any, put: Callable[[Any], dict[str, Any]]) -> Iterator[_Holder]:
    """Yield what a field may hold of options: a list, a mapping, or the text of either.

    Args:
        name: the field.
        value: its value, or a part of it.
        put: returns the changed field with another value, or another part.
    """
    if isinstance(value, list):
        marks, bodies = _without_labels(value)
        if _are_options(bodies):
            yield _Holder(
                name,
                tuple(bodies),
                lambda new: put([f"{mark}{body}" if mark else body for mark, body in zip(marks, new, strict=True)]),
            )
    elif isinstance(value, Mapping):
        keys = [key for key, inner in value.items() if not _nothing(inner)]
        if _are_labels(keys) and _are_options([value[key] for key in keys]):
            yield _Holder(
                name, tuple(value[key] for key in keys), lambda new: put({**value, **dict(zip(keys, new, strict=True))})
            )
        for key, inner in value.items():
            if isinstance(inner, list):
                yield from _within(name, inner, lambda new, key=key: put({**value, key: new}))  # type: ignore[misc] # the same
    elif isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        # JSON first: a list that is both would be written back with quotes that JSON cannot read
        for read, written in ((json.loads, json.dumps), (ast.literal_eval, str)):
            try:
                inside = read(value)
            # the last two for a text with brackets within brackets without end
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
            if isinstance(inside, (list, dict)):
                yield from _within(name, inside, lambda new, written=written: put(written(new)))  # type: ignore[misc] # the same
            return


def _listing(name: str, text: str, known: Iterable[Sequence[str]]) -> _Holder | None:
    """Return the options listed by a text; None without options to tell apart.

    Args:
        name: the field of the text.
        text: the text.
        known: texts that other parts of the row hold, and that may be these options (``option_spans``).
    """
    spans = option_spans(text, known)
    bodies = [text[start:end] for start, end in spans]
    if not _are_options(bodies):
        return None
    ends = [0, *(end for _, end in spans)]
    between = [text[end:start] for end, (start, _) in zip(ends, spans, strict=False)]
    return _Holder(
        name,
        tuple(bodies),
        lambda new: {name: "".join(a + b for a, b in zip(between, map(str, new), strict=True)) + text[ends[-1] :]},
    )


_COLUMN = re.compile(r"^(.*?)([A-Za-z]|\d)$", re.DOTALL)


def _columns(row: Row) -> Iterator[_Holder]:
    """Yield columns whose names end in consecutive letters or digits.

    So many of the first as may be meant, since the last may be empty or "N/A".
    """
    families: dict[tuple[str, str], dict[str, str]] = {}
    for name in row:
        if match := _COLUMN.match(name):
            sort = "0" if match[2].isdigit() else "A" if match[2].isupper() else "a"
            families.setdefault((match[1], sort), {})[match[2]] = name
    for family in families.values():
        for count in range(2, len(family) + 1):
            ends = sorted(family)[:count]
            names = [family[one] for one in ends]
            if _are_labels(ends) and _are_options([row[name] for name in names]):
                bodies = tuple(row[name] for name in names)
                yield _Holder(names[0], bodies, lambda new, names=names: dict(zip(names, new, strict=True)))  # type: ignore[misc] # the same


def _nothing(value: Any) -> bool:
    """Return whether a column for an option is empty: None, nan as tables write it, or an empty text."""
    return is_missing(value) or (isinstance(value, str) and value.strip() in ("", "nan"))


def _are_options(values: Sequence[Any]) -> bool:
    """Return whether values can be options: at least two texts or numbers that are not the letters of options."""
    plain = all(isinstance(value, (str, int, float)) and not isinstance(value, bool) for value in values)
    return len(values) > 1 and plain and not (_are_labels(values) and str(values[0]).isalpha())


def _are_labels(values: Sequence[Any]) -> bool:
    """Return whether values are A, B, C, ... or a, b, c, ..., or numbers from 0 or 1."""
    texts = [str(value) for value in values]
    if len(texts) < 2 or len(texts[0]) != 1 or texts[0] not in "Aa01":
        return False
    return all(
        text == (str(int(texts[0]) + i) if texts[0].isdigit() else chr(ord(texts[0]) + i))
        for i, text in enumerate(texts)
    )


_LABEL = re.compile(r"^\W*(?:([A-Za-z])\s*[.:)\]、．]|(\d{1,2})\s*[.:)\]](?=\s)|([A-Za-z])\s+[-–]\s)\s*")


def _without_labels(values: Sequence[Any]) -> tuple[list[str], list[Any]]:
    """Split the label, such as "A. ", off each option: return the labels, and the options without them.

    Where some begin like a label, but not each with the next one, there are no options: nobody knows whether the labels
    stay or move along.
    """
    found = [_LABEL.match(value) if isinstance(value, str) else None for value in values]
    labels = [next(filter(None, match.groups())) if match else "" for match in found]
    if _are_labels(labels):
        return [match[0] for match in found if match], [
            value[match.end() :] for value, match in zip(values, found, strict=True) if match
        ]
    if any(label and label.upper() in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(values)] for label in labels):
        return [], []
    return [""] * len(values), list(values)


def _label(text: str) -> str:
    """Return an answer of a single letter or digit; "" for a longer answer."""
    inner = re.sub(r"\W", "", text)
    return inner.upper() if len(inner) == 1 and inner.isalpha() else ""


# --- where the gold stands ------------------------------------------------------------------------


def _with_gold(
    row: Row,
    base: Base,
    answer: Answer,
    shown: _Shown,
    gold: int,
    turns: Sequence[Sequence[int]],
    moves: Sequence[dict[str, Any]],
) -> list[Order]:
    """Return the orders, with the gold moved along in every field that says its place.

    Which fields these are is found by trial, the fewest first: with them moved, target, scorer and prompt must follow
    in every order. Of a target that is a letter or a number the place must follow; of one that is a text, nothing may
    change.
    """
    texts, by_letter = shown.texts, bool(_label(answer.options[gold]))
    places = [turn.index(gold) for turn in turns]
    marks = [] if base.score is None else [base.score(row, one) for one in answer.options]
    if None in marks:
        raise _NotMovedError("the scorer gives an option no score")
    # equal marks cannot tell whether the gold moved along
    if marks and marks.count(marks[gold]) > 1:
        raise _NotMovedError("the scorer gives a wrong option as much as the gold")
    target = base.target(row)
    moved, by_place = (
        [_moved(target, gold, place, texts) for place in places],
        by_letter or base.continuations is not None,
    )
    wanted = [moved] if by_place and None not in moved else []
    # a text names the gold wherever the option stands
    wanted += [] if by_letter and target != texts[gold] else [[target] * len(turns)]
    held = {name for changes in moves for name in changes}
    fields = [name for name, value in row.items() if name not in held and _moved(value, gold, gold, texts) is not None]
    why = "its target does not follow the order of its options"
    for names in itertools.chain.from_iterable(
        itertools.combinations(fields, size) for size in range(_GOLD_FIELDS + 1)
    ):
        made = [
            {**changes, **{name: _moved(row[name], gold, place, texts) for name in names if place != gold}}
            for changes, place in zip(moves, places, strict=True)
        ]
        rows = [changed(row, changes) for changes in made]
        if not any(
            all(base.target(one) == said for one, said in zip(rows, of_rows, strict=True)) for of_rows in wanted
        ):
            continue
        if base.score is not None and not _scores_follow(
            rows, base.score, answer, gold, turns, marks, by_place=by_place
        ):
            why = "its scorer does not follow the order of its options"
            continue
        if base.score is not None and base.continuations is None:
            spellings = dict.fromkeys(
                [shown.texts, *(holder.texts for holder in _holders(row) if len(holder.bodies) == len(turns))]
            )
            if not all(_words_follow(rows, base.score, spelled, fields, gold, turns) for spelled in spellings):
                raise _NotMovedError(
                    "its scorer reads answers in words by a field in which the options do not move along"
                )
        if any(base.prompt(one) != shown.filled(turn) for one, turn in zip(rows[1:], turns[1:], strict=True)):
            why = "its prompt does not follow the order of the field that holds its options"
            continue
        if by_letter and any(isinstance(row[name], str) and row[name].strip() in texts for name in names):
            raise _NotMovedError("its gold may be a letter, or the text of an option")
        return [
            Order(changes, place + 1, functools.partial(shown.filled, turn))
            for changes, place, turn in zip(made, places, turns, strict=True)
        ]
    raise _NotMovedError(why)


def _scores_follow(
    rows: Sequence[Row],
    score: Callable[[Row, str], float | None],
    answer: Answer,
    gold: int,
    turns: Sequence[Sequence[int]],
    marks: Sequence[float | None],
    *,
    by_place: bool,
) -> bool:
    """Return whether the scorer gives the gold, and the option in the gold's old place, the marks in every order that they have in the doc's own."""
    for row, turn in zip(rows, turns, strict=True):
        for option in (gold, turn[gold]):
            said = answer.options[turn.index(option) if by_place else option]
            if score(row, said) != marks[option]:
                return False
    return True


def _words_follow(
    rows: Sequence[Row],
    score: Callable[[Row, str], float | None],
    texts: Sequence[str],
    kept: Sequence[str],
    gold: int,
    turns: Sequence[Sequence[int]],
) -> bool:
    """Return whether the scorer gives answers in words the same marks in every order.

    Some scorers look words up in a field that stays behind. Others take letters out of words whatever the row holds,
    "C" out of "Candles": they say nothing of the order. The two are told apart by rows without these words: only what
    is looked up earns something else there.

    Args:
        rows: the rows, the doc's own first.
        score: the scorer.
        texts: the options in one spelling, in the doc's own order.
        kept: the fields that may say the gold's place.
        gold: the place of the gold.
        turns: the order of the options in each row.
    """
    own = [score(rows[0], text) for text in texts]
    # texts that all earn the same are not read by the scorer
    if len(set(own)) == 1:
        return True
    for row, turn in zip(rows[1:], turns[1:], strict=True):
        for option in (gold, turn[gold]):
            said = texts[option]
            pairs = [(rows[0], own[option]), (row, score(row, said))]
            if (
                pairs[0][1] != pairs[1][1]
                and not _label(said)
                and any(score(_without(said, one, kept), said) != earned for one, earned in pairs)
            ):
                return False
    return True


def _without(text: str, row: Row, kept: Sequence[str]) -> Any:
    """Return a row in which the words of a text are replaced wherever they stand, but for some fields.

    Single letters stay, since they are labels.
    """
    words = {word.casefold() for word in re.findall(r"\w+", text) if not (len(word) == 1 and word.isalpha())}

    # zqz and -977: a word and a number that hardly any row holds
    def replaced(value: Any) -> Any:
        if isinstance(value, str):
            return (
                "zqz"
                if value.strip() == text
                else re.sub(r"\w+", lambda word: "zqz" if word[0].casefold() in words else word[0], value)
            )
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return -977 if str(value) in words else value
        if isinstance(value, (list, tuple)):
            return type(value)(map(replaced, value))
        return {key: replaced(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value

    return changed(row, {name: replaced(value) for name, value in row.items() if name not in kept})


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
    if isinstance(value, int) and not isinstance(value, bool) and value in (gold, gold + 1):
        return value - gold + place
    if not isinstance(value, str):
        return None
    if value.strip().isdecimal() and int(value) in (gold, gold + 1):
        return str(int(value) - gold + place)
    match = re.match(r"^(\W*)([A-Za-z])(\W*)$", value) or (
        re.match(r"^(\W*)([A-Za-z])(\W.*)$", value, re.DOTALL) if value.strip().endswith(texts[gold]) else None
    )
    if match is None or ord(match[2].upper()) - ord("A") != gold:
        return None
    return f"{match[1]}{chr(ord(match[2]) - gold + place)}{match[3]}"
