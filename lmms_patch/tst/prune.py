"""Iterative Bias Pruning (IBP): remove docs that can be answered without looking, diagnose again, repeat. Pure.

Items are identified by their stable key throughout, so that neither their order nor an interruption changes the result.

A round goes only where luck explains less than half of it. What luck gives is known from the same held-out predictions
under golds that are dealt
anew (``diagnosis.deal_golds``): where the text says nothing of the gold, both have the same distribution. That holds
for items with options. An open gold may be typical of its category, and so are dealt golds: that is a shortcut that
pruning is for, and no luck.

Source: TsT paper (https://arxiv.org/abs/2511.04655), 4.1 and Algorithm 1 (Appendix C).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from lmms_patch import files
from lmms_patch.errors import RecordError
from lmms_patch.runs.numbers import ALPHA, REVERSED
from lmms_patch.runs.typed import read_as
from lmms_patch.stats.bounds import Number
from lmms_patch.tst.copies import cluster_of
from lmms_patch.tst.diagnosis import Diagnose, Diagnosis
from lmms_patch.tst.items import Item, Places
from lmms_patch.tst.results import sign_flip_p, withheld
from lmms_patch.tst.selection import PruneError, PruneSettings, Selector, amount

Array = NDArray[np.float64]
S = TypeVar("S", bound="Saved")

SCHEMA = 1
ROUNDS = 5
"""The number of rounds where no batch is given."""


@dataclass(frozen=True)
class Round:
    """A round of pruning.

    Attributes:
        number: from 1.
        kept: number of items before the removal.
        accuracy: text-only accuracy of these items (fraction); None where there was no diagnosis.
        baseline: their frequency baseline (fraction); None likewise.
        p_above: one-sided p-value of the scores above those under golds dealt anew; None where none were dealt.
        p_below: one-sided p-value of accuracy below what an uninformed answer earns; None likewise.
        highest: the highest score among them; None where none is scored.
        removed: key -> score of the items that this round removed.
        innocent: how many of these are expected to be there by luck; None where no golds were dealt anew.
    """

    number: int
    kept: int
    accuracy: Number | None
    baseline: Number | None
    p_above: Number | None
    p_below: Number | None
    highest: Number | None
    removed: Mapping[str, Number] = field(default_factory=dict)
    innocent: Number | None = None


class Saved(Struct, kw_only=True):
    """A file from which an interrupted call continues.

    Attributes:
        fingerprint: what it belongs to.
    """

    schema: int
    fingerprint: str


class History(Saved):
    """The finished rounds of a pruning."""

    rounds: list[Round]


@dataclass(frozen=True)
class Pruned:
    """The result of pruning.

    Attributes:
        kept: places of the kept items.
        removed: places of the removed items, in the order of removal.
        scores: the score of each removed item when it was removed.
        rounds: the history; the last round removed nothing where pruning stopped early.
        stopped: why pruning ended.
        over_pruned: whether the kept set was significantly below chance and the last round was taken back.
    """

    kept: Places
    removed: Places
    scores: tuple[float, ...]
    rounds: tuple[Round, ...]
    stopped: str
    over_pruned: bool = False

    @property
    def innocent(self) -> float | None:
        """How many of the removed items are expected to have gone by luck; None where no golds were dealt anew."""
        known = [done.innocent for done in self.rounds if done.innocent is not None]
        return sum(known) if known else None


def prune(
    items: Sequence[Item],
    settings: PruneSettings,
    diagnose: Diagnose | None,
    *,
    given: Array | None = None,
    copies: Callable[[Places], Sequence[str]] | None = None,
    state: Path | None = None,
    about: str = "",
    fresh: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Pruned:
    """Prune a benchmark round by round.

    Args:
        items: n items with unique keys.
        settings: how to prune.
        diagnose: called every round with the places that are left; None: ``given`` decides in a single pass.
        given: shape (n,), scores; nan: unscored, never removed.
        copies: gives the classes (``copies.CLASSES``) of the docs that are left, where folds deal copies of one text
            apart. Pruning is refused where copies are answered in reverse (``results.withheld``): what it would remove
            is half of each pair, and no shortcut.
        state: file that keeps every finished round; a second call with the same items and settings continues from it.
        about: what else the result depends on (the diagnostic), for the state.
        fresh: whether to start again, whatever the state says.
        tell: called with a line for every round.

    Raises:
        PruneError: keys are not unique, the state belongs to other settings, scores are missing, or copies are answered
            in reverse.
    """
    keys = [item.key for item in items]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise PruneError(f"two docs have the id {twice!r}; name a field with unique values with the option 'key'")
    if (diagnose is None) == (given is None):
        raise PruneError("either a diagnostic or given scores decide what goes, not both")
    if given is not None and len(given) != len(items):
        raise PruneError(f"{len(given)} scores for {len(items)} docs")
    print_ = fingerprint(items, settings, about, given)
    history = [] if state is None or fresh else load_state(state, print_)
    if strange := {key for done in history for key in done.removed} - set(keys):
        raise PruneError(f"{state}: {min(strange)!r} is no doc of this task; type --fresh to begin anew")
    return _Pruning(items, settings, diagnose, given, copies, history, state, print_, tell).run()


@dataclass
class _Pruning:
    """The arguments of ``prune``, and the finished rounds."""

    items: Sequence[Item]
    settings: PruneSettings
    diagnose: Diagnose | None
    given: Array | None
    copies: Callable[[Places], Sequence[str]] | None
    rounds: list[Round]
    state: Path | None
    print: str
    tell: Callable[[str], None]
    _reversed: str = ""

    def __post_init__(self) -> None:
        self.place = {item.key: i for i, item in enumerate(self.items)}
        self.selector = Selector(self.items, self.settings)

    @cached_property
    def clusters(self) -> Places | None:
        """The cluster of each item."""
        return cluster_of(self.items)

    def run(self) -> Pruned:
        budget = self.selector.budget
        if budget < 1:
            raise PruneError(f"a budget of {self.settings.budget:g} is less than one of {len(self.items)} docs")
        batch = (
            budget
            if self.diagnose is None
            else max(1, amount(self.settings.batch, len(self.items)) if self.settings.batch else -(-budget // ROUNDS))
        )
        gone = [key for done in self.rounds for key in done.removed]
        stopped = ""
        while not stopped and len(gone) < budget:
            this_round, known, luck = self._round(gone)
            stopped = self._why_stop(this_round, known) or self._reversed
            # Over-pruned before choosing: the last removal went too far, so it is undone.
            if stopped == OVER_PRUNED:
                return self._taken_back()
            chosen = (
                {}
                if stopped
                else self.selector.choose(known, gone, min(batch, budget - len(gone)), len(self.rounds) + 1)
            )
            if not stopped and not chosen:
                stopped = "no scored item may go any more (floors, budgets by category, or unscored docs)"
            innocent = sum(luck.get(self.place[key], 0.0) for key in chosen) if luck else None
            # A round that luck explains mostly would remove honest items.
            if not stopped and innocent is not None and innocent >= EVEN * len(chosen):
                stopped = f"the next round would remove {len(chosen)} items, and {innocent:.0f} of them are expected to be there by luck"
                chosen, innocent = {}, None
            # Also a round without removals is kept: the report shows where and why pruning stopped.
            self.rounds.append(replace(this_round, removed=chosen, innocent=innocent))
            gone += chosen
            self._save()
            self.tell(_line(self.rounds[-1], len(gone), budget))
        return self._checked(stopped or "the budget is used up")

    def _seeds(self, number: int) -> list[int]:
        # far apart, so that prunings of two seeds have no fold seed in common
        start = 1000 * (self.settings.seed + 1) + number * self.settings.fold_seeds
        return list(range(start, start + self.settings.fold_seeds))

    def _round(self, gone: Sequence[str]) -> tuple[Round, dict[int, float], dict[int, float]]:
        """Diagnose the remaining items.

        Returns:
            The next round without its removal; by place the score of every scored item, and of those with options the
            probability that luck gave it, where golds were dealt anew.
        """
        luck: dict[int, float] = {}
        number, out = len(self.rounds) + 1, set(gone)
        kept = np.array([i for i, item in enumerate(self.items) if item.key not in out], np.intp)
        if self.diagnose is None:
            assert self.given is not None
            scores, told = self.given[kept], Round(number, len(kept), None, None, None, None, None)
        else:
            diagnosis = self.diagnose(kept, self._seeds(number))
            self._check_copies(diagnosis, kept)
            scores = self._score(diagnosis)
            accuracy = diagnosis.accuracy if math.isfinite(diagnosis.accuracy) else None
            baseline, _, below = against_baseline(diagnosis, self._clusters(kept))
            told = Round(number, len(kept), accuracy, baseline, self._above_dealt(diagnosis, kept), below, None)
            if self.settings.near_chance and diagnosis.dealt is not None:
                dealt, weights = diagnosis.dealt
                own = np.array([self.items[i].is_choice for i in kept])
                # The dealt scores are moved as the items' scores were (``_score``), so that both heights compare.
                guessed = by_luck(scores[own], (dealt - (diagnosis.s - scores))[:, own], weights[:, own])
                luck = dict(zip(map(int, kept[own]), guessed.tolist(), strict=True))
        known = {int(i): float(v) for i, v in zip(kept, scores, strict=True) if np.isfinite(v)}
        return replace(told, highest=max(known.values(), default=None)), known, luck

    def _above_dealt(self, found: Diagnosis, kept: Places) -> float | None:
        """Return the one-sided p-value of scores above the mean score under newly dealt golds."""
        if found.dealt is None:
            return None
        more = found.s - np.prod(found.dealt, axis=0).mean(axis=0)
        known, clusters = np.isfinite(more), self._clusters(kept)
        return sign_flip_p(more[known], None if clusters is None else clusters[known]) if known.any() else None

    def _clusters(self, kept: Places) -> Places | None:
        return None if self.clusters is None else self.clusters[kept]

    def _check_copies(self, found: Diagnosis, kept: Places) -> None:
        """Note whether the remaining copies are answered in reverse.

        Refuse the pruning where they are from the start.
        """
        if self.copies is None:
            return
        above = (found.scores - found.baseline).mean(axis=0)
        self._reversed = reversed_copies(above, self.copies(kept), self._clusters(kept))
        if self._reversed and not self.rounds:
            raise PruneError(f"nothing is pruned: {self._reversed}")

    def _score(self, found: Diagnosis) -> Array:
        return found.s if self.settings.by == "s" else found.s - found.chance

    def _why_stop(self, done: Round, known: Mapping[int, float]) -> str:
        s = self.settings
        if not known:
            return "no item has a score"
        # Not in the first round: nothing was removed yet that could have gone too far.
        if s.over_pruned and done.p_below is not None and done.p_below < ALPHA and self.rounds:
            return OVER_PRUNED
        if s.tau is not None and done.highest is not None and done.highest < s.tau:
            return f"the highest score is below tau ({done.highest:.3f} < {s.tau:g})"
        if s.near_chance and done.p_above is not None and done.p_above >= ALPHA:
            return "text-only scores are not significantly above those under golds dealt anew"
        return ""

    def _taken_back(self) -> Pruned:
        """Return the result with the last removal undone."""
        last = self.rounds.pop()
        # Rounds without removals are diagnoses only; the last removing round is what went too far.
        while self.rounds and not last.removed:
            last = self.rounds.pop()
        self.rounds.append(replace(last, removed={}, innocent=None))
        self._save()
        return self._result(OVER_PRUNED, over_pruned=True)

    def _checked(self, stopped: str) -> Pruned:
        """Return the result, with a last diagnosis where the final round removed items."""
        # The accuracy after the last removal is not known yet: it may be over-pruned.
        if self.diagnose is not None and self.rounds and self.rounds[-1].removed:
            last_round, known, _ = self._round([key for done in self.rounds for key in done.removed])
            if self._why_stop(last_round, known) == OVER_PRUNED:
                return self._taken_back()
            self.rounds.append(last_round)
            self._save()
            self.tell(_line(last_round, sum(len(r.removed) for r in self.rounds), self.selector.budget))
        return self._result(stopped)

    def _result(self, stopped: str, over_pruned: bool = False) -> Pruned:
        pairs = [(self.place[key], score) for done in self.rounds for key, score in done.removed.items()]
        removed = np.array([place for place, _ in pairs], np.intp)
        kept = np.setdiff1d(np.arange(len(self.items)), removed)
        return Pruned(kept, removed, tuple(score for _, score in pairs), tuple(self.rounds), stopped, over_pruned)

    def _save(self) -> None:
        if self.state is not None:
            save_json(
                self.state,
                {"schema": SCHEMA, "fingerprint": self.print, "rounds": [asdict(done) for done in self.rounds]},
            )


EVEN = 0.5
"""A round goes where less than this share of it is expected to be there by luck; a doc that is known without the image, where that is more likely."""
OVER_PRUNED = (
    "over-pruned: text-only answers on the kept items fell significantly below chance; the last round was taken back"
)


def by_luck(scores: Array, dealt: Array, weights: Array) -> Array:
    """Return for each score the probability of luck: the expected number of lucky scores at this height, over all.

    This is the local false discovery rate: the ratio of both counts at each height, smoothed so that it only rises as
    scores fall (isotonic regression). It is too high rather than too low, since it takes every item for one that luck
    may have put there.

    Args:
        scores: shape (n,); nan: unscored.
        dealt: the same under golds dealt anew, shape (deals, n).
        weights: of these, likewise (``diagnosis.deal_golds``).

    Returns:
        Shape (n,), 0..1; 1 for unscored items.
    """
    # scikit-learn comes with the extra ``tst``, which a pruning by given scores does not need.
    from sklearn.isotonic import (
        isotonic_regression,
    )

    known = np.isfinite(scores)
    if not known.any():
        return np.ones(len(scores))
    heights, counts = np.unique(-scores[known], return_counts=True)
    lucky = np.isfinite(dealt)
    order = np.argsort(-dealt[lucky])
    # For each dealt score the expected number of lucky scores at least as high.
    above = np.append(0, np.cumsum(weights[lucky][order])) / len(dealt)
    by_height = np.diff(above[np.searchsorted(-dealt[lucky][order], heights, side="right")], prepend=0)
    shares = isotonic_regression(by_height / counts, sample_weight=counts.astype(float), y_max=1)
    out = np.ones(len(scores))
    out[known] = shares[np.searchsorted(heights, -scores[known])]
    return out


def reversed_copies(above: Array, copies: Sequence[str], clusters: Places | None) -> str:
    """Say why a gain over the majority answer is no shortcut for pruning to remove; else empty.

    Empty where it may be one.
    """
    reason = withheld(above, copies, clusters)
    return f"{REVERSED[reason]}; the set is balanced, and the pattern is no shortcut of the language" if reason else ""


def against_baseline(found: Diagnosis, clusters: Places | None) -> tuple[float | None, float | None, float | None]:
    """Return the frequency baseline, and p-values of accuracy above baseline and below an uninformed answer.

    Folds are stratified by gold, so the majority of the training folds is that of the held-out fold too: the baseline
    knows the test set a little. With golds that mean nothing it lies above chance, and honest answers lie below it. So
    "below" means below the lower of baseline and chance, as means over the items.
    """
    scores, baseline, known = found.means
    if not known.any():
        return None, None, None
    own = None if clusters is None else clusters[known]
    low = baseline if baseline[known].mean() < found.floor[known].mean() else found.floor
    above = sign_flip_p((scores - baseline)[known], own)
    return float(baseline[known].mean()), above, sign_flip_p((low - scores)[known], own)


def fingerprint(items: Sequence[Item], settings: PruneSettings, about: str, given: Array | None = None) -> str:
    """Return a digest of what a history belongs to: items, settings, diagnostic and given scores."""
    # Sorted, so that another order of the docs continues the same run.
    rows = sorted(
        (
            item.key,
            item.golds,
            item.prompt,
            item.category,
            item.format,
            item.options,
            repr(item.source),
            repr(item.cluster),
        )
        for item in items
    )
    scores = None if given is None else sorted((item.key, repr(float(v))) for item, v in zip(items, given, strict=True))
    text = json.dumps([rows, asdict(settings), about, scores], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_state(path: Path, print_: str) -> list[Round]:
    """Read the finished rounds of an earlier call; none where there is no file.

    Raises:
        PruneError: the file belongs to other items or settings, or cannot be read.
    """
    rounds = saved.rounds if (saved := load(path, History, print_, "other docs or settings")) else []
    # a round that removed nothing is made again, since the file does not say why it stopped
    return rounds if not rounds or rounds[-1].removed else rounds[:-1]


def load(path: Path, kind: type[S], print_: str, other: str) -> S | None:
    """Read what an earlier call saved; None where there is no file.

    Args:
        path: the file.
        kind: its type.
        print_: the fingerprint that it must have.
        other: what a file with another one is of.

    Raises:
        PruneError: the file has another fingerprint, or cannot be read.
    """
    if not path.exists():
        return None
    try:
        saved = read_as(files.parse_json(path.read_text(encoding="utf-8")), kind)
    except (OSError, ValueError, RecordError) as error:
        why = str(error) if isinstance(error, RecordError) else type(error).__name__
        raise PruneError(f"{path} cannot be read ({why}); delete it, or type --fresh to begin anew") from None
    if saved.schema != SCHEMA or saved.fingerprint != print_:
        raise PruneError(f"{path} is of {other}; give another --output, or type --fresh to begin anew")
    return saved


def save_json(path: Path, value: Any) -> None:
    """Write JSON, whole or not at all."""
    files.write(path, json.dumps(value, indent=1, allow_nan=False))


def _line(done: Round, gone: int, budget: int) -> str:
    accuracy = (
        ""
        if done.accuracy is None or done.baseline is None
        else f", text-only {done.accuracy:.3f} (majority {done.baseline:.3f})"
    )
    luck = "" if done.innocent is None else f" ({done.innocent:.1f} of them expected by luck)"
    return f"round {done.number}: {done.kept} items{accuracy}, {len(done.removed)} removed{luck}; {gone} of {budget} in all"
