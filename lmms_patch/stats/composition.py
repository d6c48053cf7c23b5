"""The composition of a benchmark: the shares of docs answered without their image, by a cell, by the whole image alone, or not at all.

What a view knows it says again when it is asked in another way: with its options moved, or its crop trimmed. What it
guesses it does not. So a view *names* an answer where all its answers were that one, and luck is what is left of it on
wrong images. S are the answers that a set of views V names, H says whether the gold is among them, G how golds of docs
that are asked alike spread:

    N(V) = mean of (1 - H) / (1 - G(S)), what V does not know: misses are weighed, since a wrong guess was as likely right
    K(V) = N(V) / min(1, N'(V) / N'(words)), with N' of wrong images: luck that is left is taken off
    T = 1 - N(words), or 1 - N(grey) where that is more
    C = 1 - T - K(cells), W = K(cells) - K(all), U = the rest; all but U over s, how often what is known is said every time

``words`` is the full image of another doc each time, ``grey`` a uniform image. Cells of a wrong image keep their doc.

Each interval is the hull of four: misses weighed and as they are, with s and without. docs/statistics.md says what
breaks which number, and whether the run tells.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmms_patch.stats.resample import LEVEL, Array, Bools, Estimate, Ints, Seed, generator

NONE = -1
"""The number of an answer that names nothing, or was not asked for."""
GOLD = 0
TEXT, CELL, WHOLE, UNSOLVED = range(4)
DRAWS = 300
KNOWN = 0.95
"""The share of a gold's marks from which an answer is the gold."""
LEAST, LEAST_TIMES = 30, 4
"""How many docs must be asked again, and how often."""
_SURE = 0.005
"""The tail of the draws that a test allows."""
_TESTED = 0.02
"""What an effect must exceed to count."""
_NOTHING = 1e-9
_MOST = 40_000_000
"""How many weights are drawn, docs times draws."""


@dataclass(frozen=True)
class Asked:
    """Answers of docs asked several times.

    Answers are numbers of each doc's own: 0 is the gold, ``NONE`` is no answer.

    Attributes:
        own: shape (docs, views, times); view 0 is the full image, the others are cells.
        wrong: the same on another doc's image, that of one doc every time.
        words: shape (docs, times), the full image of another doc each time.
        grey: shape (docs, times), a uniform image.
        on_wrong: shape (docs,), which docs were asked in these three ways.
        spread: shape (docs, answers), how often each answer is the gold of docs that are asked alike, 0..1.
        options: shape (docs, answers), which answers are options of the doc; none of a doc without options.
        exact: whether the spread is known, as of options; golds of open questions are only counted.
    """

    own: Ints
    wrong: Ints
    words: Ints
    grey: Ints
    on_wrong: Bools
    spread: Array
    options: Bools
    exact: bool = True

    @property
    def times(self) -> int:
        """How often a view is asked at most."""
        return int(self.own.shape[2])

    def where(self, docs: Bools) -> Asked:
        """Return some docs."""
        arrays = {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.name != "exact"}
        return dataclasses.replace(self, **{name: of[docs] for name, of in arrays.items()})


@dataclass(frozen=True)
class Composition:
    """The shares of a benchmark's docs.

    Attributes:
        shares: of the docs answered without their image, by a cell, by the whole image alone, and not at all; 0..1.
        whole: the share that needs the whole image, of all docs that are answered; 0..1.
        index: of the docs that need their image, the share that needs the whole image; 0..1.
        told_apart: whether text and cell are told apart; else only their sum is known.
    """

    shares: tuple[Estimate, ...]
    whole: Estimate
    index: Estimate
    told_apart: bool = True


def steady(said: Ints) -> Ints:
    """Return the answer given by a view every time; ``NONE`` where it gives several, or none.

    Args:
        said: shape (..., times).
    """
    return np.where((said == said[..., :1]).all(-1), said[..., 0], NONE)


def kinds_of(right: NDArray[np.bool_]) -> Ints:
    """Return the kind of each doc by its first answers: whether the full image is right, and how many cells are.

    Args:
        right: shape (docs, views), as ``Asked.own``.
    """
    cells = right[:, 1:]
    return right[:, 0] * 4 + np.where(cells.all(1), 3, np.minimum(cells.sum(1), 2))


def weights_of(kinds: Ints, rows: Ints, clusters: Ints | None, draws: int, seed: Seed) -> tuple[Array, Array]:
    """Return weights of the docs asked again: as drawn, and calibrated to all docs; shape (1 + draws, rows), the first without chance.

    A draw gives each cluster of docs a random weight (Rubin 1981). Calibrated weights make the docs asked again as often
    of each kind as all docs are (Deville & Särndal 1992, section 4).

    Args:
        kinds: shape (docs,), the kind of each doc (``kinds_of``).
        rows: the places of the docs asked again.
        clusters: shape (docs,), numbers of clusters; None: docs are independent.
        draws: how many.
        seed: see ``generator``.
    """
    rng = generator(seed)
    of = np.arange(len(kinds)) if clusters is None else clusters
    drawn, every = np.ones((draws + 1, len(rows))), np.empty((draws + 1, kinds.max() + 1))
    for at in range(draws + 1):
        weights = rng.standard_gamma(1.0, of.max() + 1)[of] if at else np.ones(len(kinds))
        drawn[at], every[at] = weights[rows], np.bincount(kinds, weights, every.shape[1]) / weights.sum()
    return drawn, _calibrated(drawn, kinds[rows], every)


def _calibrated(drawn: Array, kinds: Ints, every: Array) -> Array:
    out = drawn / drawn.sum(1, keepdims=True)
    for kind in range(every.shape[1]):
        mask = kinds == kind
        # the weights of fewer docs would be mostly chance
        if mask.sum() >= 5:
            out[:, mask] *= (every[:, kind] / np.maximum(out[:, mask].sum(1), 1e-12))[:, None]
    return np.asarray(out / out.sum(1, keepdims=True) * drawn.sum(1, keepdims=True))


@np.errstate(all="ignore")
def compose(
    asked: Asked,
    kinds: Ints,
    rows: Ints,
    clusters: Ints | None = None,
    *,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
) -> Composition | str:
    """Return the composition, or why there is none.

    Args:
        asked: what was answered by the docs that were asked again.
        kinds: shape (docs,), the kind of each doc by its first answers.
        rows: the places among all docs of those asked again.
        clusters: shape (docs,), numbers of clusters; None: docs are independent.
        draws: how many.
        level: the intervals' nominal coverage, 0..1.
        seed: see ``generator``.
    """
    if asked.times < LEAST_TIMES:
        return f"views were asked {asked.times} times; {LEAST_TIMES} or more are needed"
    if asked.on_wrong.sum() < LEAST:
        return (
            f"{asked.on_wrong.sum()} docs were asked again on their own and on wrong images; {LEAST} or more are needed"
        )
    rng, draws = generator(seed), max(100, min(draws, _MOST // len(rows)))
    drawn, calibrated = weights_of(kinds, rows, clusters, draws, rng)
    # where every doc was asked again, the weights as drawn are of all docs already
    mine = drawn if len(rows) == len(kinds) else calibrated
    theirs = drawn[:, asked.on_wrong], asked.where(asked.on_wrong)
    if len(rows) == len(kinds):
        every = np.stack([np.bincount(kinds, one, kinds.max() + 1) / one.sum() for one in drawn])
        weights = _calibrated(theirs[0], kinds[rows][asked.on_wrong], every)
    else:
        weights = calibrated[:, asked.on_wrong]
    found = _Work(asked, theirs[1], mine, weights, rng)
    if why := found.refusal():
        return why
    several = None if clusters is None else (len(np.unique(clusters)), len(np.unique(clusters[rows])))
    return found.composition(level, len(kinds), *several or (len(kinds), len(rows)))


class _Losses(NamedTuple):
    """Losses of docs with the answers named by some views.

    Attributes:
        forms: shape (docs,), 1 where the gold is not among the answers; and the same, weighed.
        every: shape (docs,), whether all options are among them.
    """

    forms: tuple[Array, Array]
    every: Bools

    @property
    def plain(self) -> Array:
        """What is lost, misses as they are."""
        return self.forms[0]

    @property
    def weighed(self) -> Array:
        """What is lost, misses weighed."""
        return self.forms[1]


def _losses(docs: Asked, named: Ints) -> _Losses:
    """Return the losses of docs with the answers named by some views."""
    said = np.stack([(named == answer).any(1) for answer in range(docs.spread.shape[1])], 1)
    miss = ~said[:, GOLD]
    share = (said * docs.spread).sum(1)
    return _Losses(
        (miss * 1.0, miss / np.maximum(1 - share, 1 / len(miss))),
        np.asarray((said | ~docs.options).all(1) & docs.options.any(1)),
    )


class _Work:
    """The parts of a composition, on each draw."""

    def __init__(self, asked: Asked, wrong: Asked, mine: Array, theirs: Array, rng: np.random.Generator) -> None:
        self.own_docs, self.wrong_docs, self.mine, self.theirs, self.rng = asked, wrong, mine, theirs, rng
        named = steady(asked.own)
        # of further docs, cells beside one that is right need not be asked again: the tests go by these docs alone
        self.named, self.named_wrong = steady(wrong.own), steady(wrong.wrong)
        self.lost = {
            "cells": _losses(asked, named[:, 1:]),
            "all": _losses(asked, named),
            "full": _losses(asked, named[:, :1]),
            "wrong cells": _losses(wrong, self.named_wrong[:, 1:]),
            "wrong all": _losses(wrong, self.named_wrong),
            "wrong full": _losses(wrong, self.named_wrong[:, :1]),
            "words": _losses(wrong, steady(wrong.words)[:, None]),
            "grey": _losses(wrong, steady(wrong.grey)[:, None]),
        }
        # all cells name one answer: they know it, or they repeat one guess
        self.one, self.one_wrong = (
            (of[:, 1:] == of[:, 1:2]).all(1) & (of[:, 1] != NONE) for of in (self.named, self.named_wrong)
        )
        self.hits, self.hits_wrong = (
            self._hits(named[:, 1], used)
            for named, used in ((self.named, self.one), (self.named_wrong, self.one_wrong))
        )
        # cells that name wrong answers together mislead: then nothing is hit by luck
        self.avoids = _above(self.hits_wrong - self.hits, _TESTED)
        self.tail, self.slip = self._lingering()
        self.again = self._said_again()
        self.parts = {(form, slips): self._shares(form, slips) for form in (0, 1) for slips in (False, True)}

    def _half(self) -> Array:
        return np.append(0.0, self.rng.gamma(0.5, size=len(self.mine) - 1))

    def _mean(self, weights: Array, values: Array) -> Array:
        """Return the mean on each draw; half a doc more of either kind keeps intervals open at the ends."""
        lost, rest = self._half(), self._half()
        return np.asarray((weights @ values + lost) / (weights.sum(1) + lost + rest))

    def _unknown(self, views: str, form: int) -> Array:
        """Return N of a set of views on each draw."""
        return self._mean(self.mine if views in ("cells", "all", "full") else self.theirs, self.lost[views].forms[form])

    def _hits(self, named: Ints, used: Bools) -> Array:
        """Return how often the gold is named, above what the spread of golds gives, on each draw."""
        expected = np.take_along_axis(self.wrong_docs.spread, np.maximum(named, 0)[:, None], 1)[:, 0]
        return np.asarray(self.theirs @ (used * ((named == GOLD) - expected)) / self.theirs.sum(1))

    def _lingering(self) -> tuple[Array | float, Array | None]:
        """Return how many more cells half know than is seen, on each draw; or where cells know but slip, how often they repeat themselves."""
        docs, weights = self.wrong_docs, self.theirs
        change, times = [], docs.times
        odds = docs.spread / np.maximum(1 - docs.spread, 1 / len(docs.own))
        for said in (docs.own, docs.wrong):
            views = [steady(said[:, 1:, :upto]) for upto in (2, times - 1, times)]
            few = (views[0] == GOLD).sum(1) < max(views[0].shape[1] - 1, 2)
            sums = [
                np.where(of == GOLD, 1.0, -np.take_along_axis(odds, np.maximum(of, 0), 1) * (of != NONE)).sum(1) * few
                for of in views
            ]
            change.append([weights @ of / weights.sum(1) for of in (sums[0] - sums[1], sums[1] - sums[2], sums[1])])
        first, last = (own - np.maximum(wrong, 0) for own, wrong in zip(change[0][:2], change[1][:2], strict=True))
        # with one fall more of wrong guesses this is a sign test: resampled alone, two falls would look sure
        if not _above(last - self.rng.standard_gamma(1.0, len(last)) / weights.sum(1), 0):
            return 0.0, None
        # a slow fall is of cells that know; a fast fall, of cells that half know, ends soon
        if last[0] > 0.75 * first[0]:
            return 0.0, np.clip(1 - last / np.maximum(change[0][2], 1e-3), 0.8, 1)
        ratio = np.clip(last / np.maximum(first, 1e-9), 0.1, 0.6)
        return np.maximum(last, 0) * ratio / (1 - ratio), None

    def _said_again(self) -> dict[str, Array]:
        """Return s, how often knowledge is said every time: from the full image, from words, and from grey."""
        out, times = {}, self.own_docs.times
        for name, docs, said in (
            ("full", self.own_docs, self.own_docs.own[:, 0]),
            ("words", self.wrong_docs, self.wrong_docs.words),
            ("grey", self.wrong_docs, self.wrong_docs.grey),
        ):
            before = _losses(docs, steady(said[:, :-1])[:, None]).weighed
            known = 1 - self._mean(self.mine if name == "full" else self.theirs, before)
            out[name] = np.clip((1 - self._unknown(name, 1)) / np.maximum(known, 1e-3), 0.8, 1) ** times
        # words that fall faster than the full image half know
        return {name: np.maximum(of, out["full"]) for name, of in out.items()}

    # --- the shares --------------------------------------------------------------------------------

    def _shares(self, form: int, slips: bool) -> tuple[Array, float]:
        """Return the four shares on each draw, and how many cells half know.

        Args:
            form: 1: misses are weighed.
            slips: whether what is known may go unsaid.
        """
        lost = {views: self._unknown(views, form) for views in self.lost}
        s, of_words, of_grey = (self.again.get(name, 1.0) if slips else 1.0 for name in ("full", "words", "grey"))
        text, exact = (1 - lost["words"]) / of_words, self.own_docs.exact
        luckier = exact and _above(lost["words"] - lost["wrong full"], 0)
        base = 1 - ((1 - lost["wrong full"]) / of_words if luckier else text)
        if exact and _above(lost["words"] - lost["grey"], 0):
            text = (1 - lost["grey"]) / of_grey
        # where words answer all, nothing is left that luck could answer
        left = {
            of: np.ones(len(base))
            if self.avoids and not form
            else np.where(base > _NOTHING, lost[f"wrong {of}"] / base, 1.0)
            for of in ("cells", "all")
        }
        # no more is taken off than nineteen of twenty docs: with less left nothing is said (``refusal``)
        cells, every = (lost[of] / (1.0 if _above(left[of], 1) else np.maximum(left[of], 0.05)) for of in left)
        half_known = cells * np.expm1(np.minimum(self.tail / np.maximum(1 - text, 0.05), 1))
        of_cell = s if self.slip is None or not slips else self.slip**self.own_docs.times
        cell = (1 - text - cells - half_known) / of_cell
        # cells that know but slip leave docs that look whole
        more = np.where(cells > _NOTHING, half_known / cells, 0.0)
        whole = (cells - every) * (1 + more) / s - np.maximum(cell, 0) * (1 - of_cell)
        return np.stack([text, cell, whole, 1 - text - cell - whole]), float(half_known[0]) if slips else 0.0

    def refusal(self) -> str:
        """Say why there are no shares; "" where there are."""
        every, every_wrong = _losses(self.wrong_docs, self.named).every.mean(), self.lost["wrong all"].every.mean()
        apart = abs(_silent(self.named) - _silent(self.named_wrong))
        missed, by_cells = self.lost["words"].plain.sum(), self.lost["wrong cells"].plain.sum()
        # of a handful of docs that words do not answer, cells of wrong images may hit all by chance
        tight = missed >= 10 and by_cells < 0.25 * missed
        if max(every, every_wrong) > (0.1 if apart > 0.1 else 0.5) or tight:
            return "repeated guesses cannot be told from knowledge: what views repeat names nearly every option"
        if self.parts[int(not self.avoids), True][1] > 0.15:
            return "too many cells half know the answer: they would have to be asked more often"
        return ""

    def composition(self, level: float, docs: int, clusters: int, again: int) -> Composition:
        """Return the shares with their intervals.

        Args:
            level: the nominal coverage, 0..1.
            docs: all docs.
            clusters: of all docs.
            again: clusters of the docs asked again.
        """
        best = self.parts[int(not self.avoids), True][0]
        tail = (1 - level) / 2
        # what none of them shows may still be true of so many others (Clopper & Pearson 1934)
        unseen = 1 - tail ** (1 / again)

        def estimate(
            of: Callable[[Array], Array], ends_of: Callable[[Array], Array], low: float = 0.0, high: float = 0.0
        ) -> Estimate:
            values = of(best)
            if not np.isfinite(values[0]):
                return Estimate.nothing(docs, "no doc is answered so", level)
            ends = [np.nanquantile(ends_of(part)[1:], (tail, 1 - tail)) for part, _ in self.parts.values()]
            value = float(values[0])
            bottom = min(1 - unseen, *(end[0] for end in ends)) - low if value > _NOTHING else 0.0
            top = max(unseen, *(end[1] for end in ends)) + high
            bottom, top = np.clip([min(bottom, value), max(top, value)], 0, 1).tolist()
            return Estimate(value, float(np.nanstd(values[1:])), bottom, top, docs, clusters, len(values) - 1, level)

        def share(c: int) -> Estimate:
            # parts as they are, below 0 too: cut on each draw, they would add up to intervals that are too narrow
            return estimate(lambda part: _known(part)[c], lambda part: part[c], *moved.get(c, ()))

        def ratio(first: int) -> Estimate:
            def of(part: Array) -> Array:
                return np.asarray(_known(part)[WHOLE] / _known(part)[first:UNSOLVED].sum(0))

            return estimate(of, of)

        excess = self._unanimous(best)
        split = _above(excess, _TESTED)
        # all cells know it: by words that wrong images hide, or by sight
        hidden = float(np.nan_to_num(np.nanquantile(excess[1:], 1 - tail))) if split else 0.0
        moved = {TEXT: (0.0, hidden), CELL: (hidden, 0.0)}
        shares = [share(c) for c in range(4)]
        # shares add up to 1: where one is surely large, the others are not
        least = [one.low or 0.0 for one in shares]
        shares = [
            dataclasses.replace(one, high=max(one.value or 0.0, min(one.high, 1 - sum(least) + low)))
            if one.high is not None
            else one
            for one, low in zip(shares, least, strict=True)
        ]

        def of_solved(first: int) -> Estimate:
            found, most = ratio(first), shares[WHOLE].high or 0.0
            whole = most + sum(one.low or 0.0 for one in shares[first:WHOLE])
            if found.value is None or found.high is None or not whole:
                return found
            return dataclasses.replace(found, high=max(found.value, min(found.high, most / whole)))

        return Composition(tuple(shares), of_solved(TEXT), of_solved(CELL), not split)

    def _unanimous(self, best: Array) -> Array:
        """Return how many more docs are right on all cells than text and cells account for, on each draw."""
        weighed, same = _losses(self.wrong_docs, self.named[:, 1:]).weighed, (self.wrong_docs.spread**2).sum(1)
        chance = self.theirs @ same / self.theirs.sum(1)
        by_luck = (self.theirs @ (weighed * self.one)) / np.maximum(self.theirs @ weighed, _NOTHING)
        return np.asarray(self.hits / (1 - chance) - best[TEXT] - best[CELL] * chance * by_luck)


def _above(values: Array, least: float) -> bool:
    """Return whether values on draws are surely above a number."""
    return bool(np.nanquantile(values[1:], _SURE) > least)


def _silent(named: Ints) -> float:
    """Return the share of silent views among those of missed docs."""
    missed = named[(named != GOLD).all(1)]
    return float((missed == NONE).mean()) if missed.size else 0.0


def _known(part: Array) -> Array:
    """Return shares from 0 up with the sum 1."""
    positive = np.clip(part, 0, None)
    return np.asarray(positive / positive.sum(0))
