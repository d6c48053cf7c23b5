"""The numbers of a task: what each is called, what it says, and where it stands in the analysis. Pure.

Columns of a results file, tables, comparisons, gates and docs/metrics.md ask these rows. CONTRIBUTING.md
shows what a new number takes.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from lmms_patch.ask.kinds import KINDS, MAX_GRID, MIN_GRID, PCRI, RCI, Key, Kind, end
from lmms_patch.ask.orders import MOST
from lmms_patch.runs import reading
from lmms_patch.runs.numbers import Analysis
from lmms_patch.stats.resample import Estimate

ABSENT: Any = object()
"""Marks a number as absent from a task, where null says: not defined."""
Value = Estimate | float | int | None


@dataclass(frozen=True)
class Keys:
    """The sets, points and places of a task: the keys of its numbers. A number without a key is of the whole task.

    Attributes:
        sets: grids, or sets of boxes, that have an index.
        points: what has a score of its own beside the first view (``Kind.points``).
        places: places of the gold among the options, from 1.
    """

    sets: Sequence[Key] = ()
    points: Sequence[Key] = ()
    places: Sequence[int] = ()

    @classmethod
    def asked(cls, kind: Kind, grids: Iterable[int], places: Sequence[int] = ()) -> Keys:
        """Return the keys of a task by its kind and grids."""
        return cls(kind.sets(grids), kind.points(grids), places)


@dataclass(frozen=True)
class Number:
    """A number of a task, such as FIP; or a family of numbers, such as the RCI of each grid.

    Attributes:
        name: what it is called; ``{index}``, ``{kind}`` and ``{key}`` stand for the names of the task's index and kind,
        and for the key.
        help: what it is, in one sentence (docs/metrics.md).
        of: which keys of a task it has (``sets``, ``points`` or ``places``; empty: it is a single number), and which flag
            the kind must have, or which name; empty: every kind has the number.
        where: where it stands in an analysis, ``*`` for its key, or what takes it from one: an estimate, or a value where
            there is no interval.
        ends: whether the ends of its interval are flat numbers (``columns``).
        columns: whether it is a flat number itself.
        listed: whether lmms-eval's own table has a row of it.
        measured: whether tables, comparisons and gates show it.
        scale: what it is on: the metric's own scale (intervals near the ends of a mean of scores are exact), a
            difference of two such, or the scale of an index, of counts or of p-values.
        better: whether it is better when the metric is: a score of the model, or a difference of two.
        words: which words of ``reading`` stand beside it.
        title: the head of its column in ``lmms-patch show --wide``; empty where its tables have words for it.
        label: what pages call it, with places for the key in words (``key``), the key as a letter (``letter``), what is
            asked alone (``part``) and what the first view shows (``shows``); of an index empty, since pages say its
            name.
    """

    name: str
    help: str
    of: tuple[str, str]
    where: str | Callable[[Analysis, Key], Value]
    _: dataclasses.KW_ONLY
    ends: bool = False
    columns: bool = True
    listed: bool = False
    measured: bool = False
    scale: Literal["metric", "difference", "index", "count", "p"] = "metric"
    better: bool = False
    words: Literal["", "raw", "steady"] = ""
    title: str = ""
    label: str = ""

    def keys(self, kind: Kind, keys: Keys) -> Sequence[Key | None]:
        """Return the keys of the family, of a task's; one None for a single number; nothing if the kind lacks the number."""
        of, flag = self.of
        if flag and not getattr(kind, flag, kind.name == flag):
            return ()
        return getattr(keys, of) if of else (None,)

    def get(self, analysis: Analysis, key: Key | None) -> Value:
        """Return the number of a key; ``ABSENT`` where the analysis has no such part."""
        if callable(self.where):
            return self.where(analysis, cast(Key, key))
        value: Any = analysis
        for name in self.where.split("."):
            if value is None:
                return cast(Value, ABSENT)
            at = key if name == "*" else name
            # as read from a file, keys are texts
            value = value.get(at, value.get(str(at))) if isinstance(value, Mapping) else getattr(value, str(at))
        return cast(Value, value)

    @property
    def signed(self) -> bool:
        """Whether the number has a sign: an index, or a difference."""
        return self.scale in ("index", "difference")

    def called(self, kind: Kind, key: Key | None) -> str:
        """Return what pages call the number of a key; its name where nobody has words for the number."""
        size, letter = (
            (kind.words.size(key), chr(ord("A") + key - 1))
            if isinstance(key, int)
            else (kind.beside or f"{key} boxes{' hidden' * kind.hides}", "")
        )
        if self.words:
            index = self.index(kind)
            return f"{index[0].upper()}{index[1:]}{', ' if kind.needs_video or kind.regions else ' '}{size}"
        shows = f"{kind.shows}{' (FIP)' * (kind.shows in ('full image', 'full clip'))}"
        part = "box" if kind.regions else kind.words.part
        return (
            self.label.format(key=size, letter=letter, part=part, shows=shows)
            or self.title.format(key=key)
            or self.named(kind, key)
        )

    def index(self, kind: Kind, key: Key | None = None) -> str:
        """Return an index's name for people, of a key or of any key (``reading.name``)."""
        return reading.name(str(kind.prefix), key, steady=self.words == "steady")

    def named(self, kind: Kind, key: Key | None) -> str:
        """Return the name of the number of a key."""
        return self.name.format(index=kind.prefix, kind=kind.name, key="" if key is None else end(key))


_ALWAYS = ("", "")
_SETS, _SHIFTED, _BOXES, _AGAIN = (("sets", flag) for flag in ("prefix", "shifted", "regions", "asks_again"))
_POINTS, _DROPS, _PLACES = ("points", ""), ("points", "full"), ("places", "turns")


def _need(part: str) -> Callable[[Analysis, Key], Value]:
    """Return what takes a number of ``Necessity`` from an analysis: a class of docs, or an attribute."""

    def get(analysis: Analysis, key: Key) -> Value:
        found = next((one for one in analysis.necessity if one.n == key and one.again), None)
        if found is None:
            return cast(Value, ABSENT)
        return found.shares[part] if part in found.shares else cast(Value, getattr(found, part))

    return get


def _wrong(analysis: Analysis, what: str, otherwise: Value = None) -> Value:
    """Return what a gate knows of the docs asked on wrong images; ``otherwise`` without such docs."""
    return next((getattr(look, what) for look in analysis.gate.looks if look.against == "wrong images"), otherwise)


def _chance(analysis: Analysis) -> Estimate:
    """Return the chance floor, with an interval where the floor was estimated."""
    chance = analysis.chance
    floor = chance.floors.get(chance.floor or "")
    if floor is not None and floor.value == chance.value:
        return floor
    docs = analysis.fip.n
    return Estimate(chance.value, None, None, None, docs, docs, 0, reason=chance.reason or NO_INTERVAL)


def _left_out(analysis: Analysis, key: Key) -> Any:
    points = analysis.curve
    return ABSENT if points is None else analysis.n_docs - points[key if key in points else str(key)].n


def _at_place(analysis: Analysis, key: Key) -> Any:
    known = analysis.turned.placed if analysis.turned else None
    return ABSENT if known is None or int(key) > len(known.scores) else known.scores[int(key) - 1]


def _p(analysis: Analysis, key: Key) -> Any:
    turned = analysis.turned
    return ABSENT if turned is None else turned.placed and turned.placed.p


NO_INTERVAL = "the harness's own number: no interval"
_Shown = functools.partial(Number, ends=True, measured=True)
_Count = functools.partial(Number, scale="count")
NUMBERS = (
    Number(
        "score",
        "the primary metric of the task's own first view",
        _ALWAYS,
        "fip",
        columns=False,
        measured=True,
        better=True,
        label="Score, {shows}",
    ),
    Number(
        "fip",
        "Full Image Performance: the same on full images",
        ("", "full"),
        "fip",
        columns=False,
        measured=True,
        better=True,
    ),
    Number(
        "chance",
        "what the best uninformed answer scores",
        _ALWAYS,
        lambda a, k: _chance(a),
        measured=True,
        listed=True,
        label="Chance",
    ),
    Number(
        "ceiling",
        "what the gold answers score",
        _ALWAYS,
        lambda a, k: without_interval(a.ceiling, a.fip.n),
        measured=True,
        label="Ceiling",
    ),
    _Count(
        "gate",
        "1: the index may be read; 0: it may not, the reason says why; null: unknown",
        ("", "has_index"),
        "gate.number",
        listed=True,
    ),
    _Count(
        "n_docs",
        "docs with the primary metric and an answer to their first view",
        _ALWAYS,
        "n_docs",
    ),
    _Count(
        "n_failed",
        "docs with a failed call, of all that were asked",
        _ALWAYS,
        lambda a, k: a.failed.docs if a.failed else 0,
    ),
    _Count(
        "n_null",
        "docs that were also asked on another doc's image",
        ("", "has_index"),
        lambda a, k: _wrong(a, "docs", 0),
    ),
    Number(
        "fip0",
        "the native metric of the answers to whole wrong images",
        ("", "has_index"),
        lambda a, k: _wrong(a, "other"),
    ),
    Number(
        "mpp{key}",
        "Maximum Patch Performance: the native metric over each doc's best cell, segment or box",
        _SETS,
        "sets.*.mpp",
        columns=False,
        measured=True,
        better=True,
        label="MPP, best {part}, {key}",
    ),
    _Shown(
        "{index}{key}",
        "1 − MPP / FIP of the primary metric; null where the gate fails",
        _SETS,
        "sets.*.index",
        scale="index",
        words="raw",
    ),
    Number(
        "{index}{key}_full_pass",
        "of a quick run: the index of a full pass",
        _SETS,
        lambda a, k: ABSENT if a.sets[k].full_pass is None else a.sets[k].full_pass,
        ends=True,
        columns=False,
        scale="index",
    ),
    _Shown(
        "gap{key}",
        "FIP − MPP, which stays stable where FIP is near 0 and the ratio does not",
        _SETS,
        "sets.*.gap",
        scale="difference",
        better=True,
        label="Gap, FIP less MPP, {key}",
    ),
    _Shown(
        "mpp_windows{key}",
        "the same as `mpp<n>` with the windows between the cells among those of which the best counts",
        _SHIFTED,
        "lines.*.mpp",
        better=True,
        label="Best of cells and windows, {key}",
    ),
    _Shown(
        "one_windows{key}",
        "the same as `one<n>` with the windows between the cells",
        _SHIFTED,
        "lines.*.one",
        title="one with windows {key}",
        label="One cell or window is enough, {key}",
    ),
    *(
        _Shown(
            f"{name}{{key}}", f"share of docs {told}, luck removed by asking again", _AGAIN, _need(need), label=label
        )
        for name, told, need, label in (
            ("text", "that are answered without their image", "text", "By text, {key}"),
            ("one", "that one cell or segment answers", "one cell", "By one {part}, {key}"),
            ("whole", "that the whole image alone answers", "whole image", "By the whole, {key}"),
            ("unsolved", "that the model does not answer", "unsolved", "Unsolved, {key}"),
            (
                "needs_whole",
                "that the whole image alone answers, of those answered",
                "whole",
                "Whole of solved, {key}",
            ),
        )
    ),
    _Shown(
        "{index}{key}_steady",
        "docs that the whole image alone answers, of those answered with their image",
        _AGAIN,
        _need("index"),
        scale="index",
        words="steady",
    ),
    _Count(
        "n_excluded{key}",
        "docs that the other numbers of this `<n>` leave out",
        _SETS,
        "sets.*.excluded",
    ),
    _Shown(
        "mean{key}",
        "the metric of one box of each doc drawn at random; it does not rise with the number of boxes",
        _BOXES,
        "regions.mean.*",
        better=True,
        label="One box drawn at random, {key}",
    ),
    _Shown(
        "regions_best",
        "best relevant less best adversarial box, over docs with both",
        ("", "regions"),
        "regions.best",
        scale="difference",
        label="Best relevant less best adversarial box",
    ),
    _Shown(
        "regions_even",
        "the best of equally many boxes of each set, likewise",
        ("", "regions"),
        "regions.even",
        scale="difference",
        label="Best of equally many boxes, relevant less adversarial",
    ),
    _Shown(
        "regions_mean",
        "one box of each set drawn at random, likewise",
        ("", "regions"),
        "regions.average",
        scale="difference",
        label="One box drawn at random, relevant less adversarial",
    ),
    _Count("n_both", "docs with usable boxes of both sets", ("", "regions"), "regions.both"),
    _Shown(
        "rotate_every",
        "the circular score: the metric over each doc's worst order of its options",
        ("", "turns"),
        "turned.every",
        better=True,
        label="Right in every order of the options",
    ),
    _Shown(
        "rotate_once",
        "the metric in the docs' own order, over the docs of `rotate_every`",
        ("", "turns"),
        "turned.once",
        better=True,
        label="Asked once, the same docs",
    ),
    _Shown(
        "rotate_mean",
        "the mean over all orders, over the same docs",
        ("", "turns"),
        "turned.mean",
        better=True,
        label="Mean over the orders",
    ),
    _Shown(
        "rotate_lost",
        "`rotate_once` less `rotate_every`, paired by doc",
        ("", "turns"),
        "turned.lost",
        scale="difference",
        better=True,
        label="Asked once less every order",
    ),
    _Shown(
        "rotate_at{key}",
        "the metric where the gold stands at that place, of the docs with the commonest number of options",
        _PLACES,
        _at_place,
        better=True,
        label="Gold at place {letter}",
    ),
    Number(
        "rotate_guess",
        "what independent guesses would earn in place of `rotate_every`",
        ("", "turns"),
        "turned.guess",
        listed=True,
    ),
    Number(
        "rotate_p",
        'permutation p-value of "the place of the gold changes nothing"',
        ("", "turns"),
        _p,
        scale="p",
        listed=True,
    ),
    _Count(
        "n_rotated",
        "docs that are asked in every order, each with a score",
        ("", "turns"),
        "turned.docs",
        listed=True,
    ),
    _Shown(
        "{kind}{key}",
        "the metric at so many frames, that reduction, with boxes hidden, or on the view beside",
        _POINTS,
        "curve.*",
        better=True,
        label="Score, {key}",
    ),
    _Count("n_excluded{key}", "docs that the other numbers of this `<n>` leave out", _POINTS, _left_out),
    _Shown(
        "drop{key}",
        "how far the full image is above that, over the same docs",
        _DROPS,
        "drops.*",
        scale="difference",
        better=True,
        label="FIP less the score, {key}",
    ),
    _Shown(
        "drop_extra",
        "how much further the metric falls with the relevant boxes hidden than with the adversarial ones, over docs with both",
        ("", "hides"),
        "hidden.extra",
        scale="difference",
        better=True,
        label="Drop of the relevant boxes less that of the adversarial ones",
    ),
    _Count("n_both", "docs with usable boxes of both sets", ("", "hides"), "hidden.both"),
    *(
        _Shown(own.name, own.help, ("", name), f"own.{own.name}", scale=own.scale, title=own.title)
        for name, kind in KINDS.items()
        for own in kind.own
    ),
)
"""All numbers of an analysis, in the order in which tables show them."""


def keys_of(analysis: Analysis) -> Keys:
    """Return the keys of an analysis: its sets of views, points and places."""
    known = analysis.turned.placed if analysis.turned else None
    # in a file, the keys of a curve are texts
    points = [int(key) if str(key).isdigit() else key for key in analysis.curve or ()]
    return Keys(list(analysis.sets), points, range(1, len(known.scores) + 1) if known else ())


def rows(kind: Kind, keys: Keys) -> Iterator[tuple[Number, Key | None]]:
    """Yield the numbers of a task with their keys, all numbers of a set of views together."""
    # numbers of boxes and of windows have sets as keys too, and belong beside the remaining numbers of their set
    for _, group in itertools.groupby(
        NUMBERS, lambda number: number.of if number.of not in (_BOXES, _SHIFTED) else _SETS
    ):
        numbers = list(group)
        for key in dict.fromkeys(key for number in numbers for key in number.keys(kind, keys)):
            yield from ((number, key) for number in numbers if key in number.keys(kind, keys))


def columns(analysis: Analysis, kind: Kind) -> dict[str, float | int | None]:
    """Return the numbers of a task flat, by name.

    ``rci3`` is followed by ``rci3_low`` and ``rci3_high``.

    Args:
        analysis: the numbers.
        kind: of the task.
    """
    out: dict[str, float | int | None] = {}
    for name, number, _, value in _held(analysis, kind):
        if number.columns:
            out[name] = value.value if isinstance(value, Estimate) else value
        if number.ends:
            out |= {f"{name}_{side}": getattr(value, side, None) for side in ("low", "high")}
    return out


def _held(analysis: Analysis, kind: Kind) -> Iterator[tuple[str, Number, Key | None, Value]]:
    """Yield the numbers of an analysis: name, row, key and value."""
    for number, key in rows(kind, keys_of(analysis)):
        if (value := number.get(analysis, key)) is not ABSENT:
            yield number.named(kind, key), number, key, value


def listed(kind: Kind, grids: Iterable[int]) -> list[str]:
    """Return the names of our rows in lmms-eval's table; places of the gold are not known before docs are."""
    keys = Keys.asked(kind, grids)
    return [
        number.named(kind, key) for number, key in rows(kind, keys) if number.listed or (number.columns and number.ends)
    ]


def keyed(kind: Kind, grids: Iterable[int]) -> dict[str, tuple[Number, Key | None]]:
    """Return every possible number of a task with its key, by its name."""
    # how many places the gold takes is not known before docs are, so all possible places are named
    return {
        number.named(kind, key): (number, key)
        for number, key in rows(kind, Keys.asked(kind, grids, range(1, MOST + 1)))
    }


@functools.cache
def indices() -> dict[str, Kind]:
    """Return by its name the kind of every possible index, raw and steady; of several kinds the first."""
    return {
        name: kind
        for kind in reversed(KINDS.values())
        if kind.index
        for name, (number, _) in keyed(kind, range(kind.sizes[0], kind.sizes[1] + 1)).items()
        if number.words
    }


@functools.cache
def spellings() -> dict[str, str]:
    """Return for the name of each number of ``rci`` tasks the name under ``pcri``, and the reverse."""
    own, other = (list(keyed(kind, range(MIN_GRID, MAX_GRID + 1))) for kind in (RCI, PCRI))
    return dict(zip(own + other, other + own, strict=True))


def grids_of(kind: Kind, grids: Sequence[int]) -> dict[str, int]:
    """Return the grid, number of parts or reduction of each number of a task, by the number's name."""
    known = {name: key for name, (number, key) in keyed(kind, grids).items() if number.of is not _PLACES}
    of_cells = {f"drop{n}": n for n in grids if kind.per_cell and not kind.prefix}
    return {name: key for name, key in known.items() if isinstance(key, int)} | of_cells


def estimates(analysis: Analysis, kind: Kind) -> dict[str, Estimate]:
    """Return the numbers of a task for tables, comparisons and gates, by name, each with an interval.

    Args:
        analysis: the numbers.
        kind: of the task.
    """
    return {
        name: _with_words(value, number, analysis, kind, key)
        for name, number, key, value in _held(analysis, kind)
        if number.measured and isinstance(value, Estimate)
    }


def _with_words(found: Estimate, number: Number, analysis: Analysis, kind: Kind, key: Key | None) -> Estimate:
    """Return an index with its words (``reading``)."""
    if not number.words or key is None:
        return found
    mark = analysis.sets[key].mark * (number.words == "raw")
    return reading.worded(found, mark=mark, marginal=analysis.gate.marginal, sampled=reading.is_sampled(analysis))


def without_interval(value: float | None, docs: int, reason: str = "") -> Estimate:
    """Return a number without an interval, with the reason for the lack."""
    return Estimate(
        value, None, None, None, docs, docs, 0, reason=reason or ("not defined" if value is None else NO_INTERVAL)
    )
