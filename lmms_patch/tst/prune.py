"""Iterative Bias Pruning: remove what can be answered without looking, diagnose again, repeat. Pure.

Source: TsT paper, §4.1 and Algorithm 1 (Appendix C). Items are known by their stable key throughout,
so that neither their order nor an interruption changes the result.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch.errors import OptionError, PatchError
from lmms_patch.tst.diagnosis import Diagnose, Diagnosis
from lmms_patch.tst.folds import classes_of
from lmms_patch.tst.items import Item, Places
from lmms_patch.tst.results import sign_flip_p

Array = NDArray[np.float64]

SCHEMA = 1
BY = ("s_minus_chance", "s", "delta")
STRATEGIES = ("top", "weighted", "balanced")
ALLOCATIONS = ("global", "format", "category")
ROUNDS = 5
ALPHA = 0.05


class PruneError(PatchError):
    """Pruning cannot start or go on."""


@dataclass(frozen=True)
class PruneSettings:
    """How to prune.

    Attributes:
        budget: how many items may go: a number, or a share of all (below 1); not read where ``allocation`` is explicit.
        batch: how many go per round, likewise; None: a fifth of the budget.
        tau: stop when no remaining score is this high; None: never for that reason.
        near_chance: stop when text-only answers are no longer significantly above the frequency baseline.
        over_pruned: stop, and take the last round back, when they fall significantly below chance.
        by: the score that ranks: ``s_minus_chance`` (comparable across formats), ``s``, or ``delta`` (s less zero-shot).
        strategy: ``top``: the highest first. ``weighted``: drawn with probability in proportion to the score above the
            lowest. ``balanced``: within a category always from the gold that is most frequent there, its highest score first.
        allocation: ``global``; ``format`` or ``category``: budgets in proportion to the size of each; or explicit budgets by category.
        floor: least number of items that every category keeps, or share of it (below 1).
        seed: of ties, draws and fold seeds.
        fold_seeds: fold seeds per round; every round takes new ones, so that it does not select on the same draw of folds again.
    """

    budget: float = 0.3
    batch: float | None = None
    tau: float | None = None
    near_chance: bool = True
    over_pruned: bool = True
    by: str = "s_minus_chance"
    strategy: str = "top"
    allocation: str | Mapping[str, float] = "global"
    floor: float = 0
    seed: int = 0
    fold_seeds: int = 3

    def __post_init__(self) -> None:
        for name, value in (("budget", self.budget), ("batch", self.batch)):
            if value is not None and not _is_amount(value):
                raise OptionError(f"{name} must be a number of docs (1, 2, ...) or a share between 0 and 1, not {value!r}")
        if self.floor != 0 and not _is_amount(self.floor):
            raise OptionError(f"floor must be a number of docs or a share between 0 and 1, not {self.floor!r}")
        for name, allowed in (("by", BY), ("strategy", STRATEGIES)):
            if getattr(self, name) not in allowed:
                raise OptionError(f"{name} must be {', '.join(allowed)}, not {getattr(self, name)!r}")
        if isinstance(self.allocation, str) and self.allocation not in ALLOCATIONS:
            raise OptionError(f"allocation must be {', '.join(ALLOCATIONS)} or budgets by category (a=0.3,b=20), not {self.allocation!r}")
        if not isinstance(self.allocation, str):
            for category, amount in self.allocation.items():
                if amount != 0 and not _is_amount(amount):
                    raise OptionError(f"the budget of {category!r} must be a number of docs or a share between 0 and 1, not {amount!r}")
        if self.fold_seeds < 1:
            raise OptionError(f"fold_seeds must be at least 1, not {self.fold_seeds}")


def _is_amount(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return number and (0 < value < 1 or (value >= 1 and float(value).is_integer()))


def amount(value: float, total: int) -> int:
    """A number of docs, or a share of ``total`` (below 1), as a number of docs, at most ``total``."""
    return min(total, round(value * total) if value < 1 else int(value))


@dataclass(frozen=True)
class Round:
    """One round.

    Attributes:
        number: from 1.
        kept: items before the removal.
        accuracy, baseline: text-only accuracy and frequency baseline of these (fraction); None where there was no diagnosis.
        p_above: one-sided p-value of accuracy above the baseline; None likewise.
        p_below: one-sided p-value of accuracy below what an uninformed answer earns; None likewise.
        highest: the highest score among them; None where none is scored.
        removed: key -> score of the items that went.
    """

    number: int
    kept: int
    accuracy: float | None
    baseline: float | None
    p_above: float | None
    p_below: float | None
    highest: float | None
    removed: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Pruned:
    """What pruning left.

    Attributes:
        kept, removed: places of items; the removed ones in the order in which they went.
        scores: the score of each removed item when it went.
        rounds: the history; the last one removed nothing where pruning stopped early.
        stopped: why it ended.
        over_pruned: whether the kept set was found significantly below chance and the last round was taken back.
    """

    kept: Places
    removed: Places
    scores: tuple[float, ...]
    rounds: tuple[Round, ...]
    stopped: str
    over_pruned: bool = False


def prune(
    items: Sequence[Item],
    settings: PruneSettings,
    diagnose: Diagnose | None,
    *,
    given: Array | None = None,
    zero_shot: Array | None = None,
    state: Path | None = None,
    about: str = "",
    fresh: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Pruned:
    """Prune.

    Args:
        items: n items with unique keys.
        settings: how.
        diagnose: called every round with the places that are left; None: ``given`` decides in a single pass.
        given: shape (n,), scores; nan: unscored, never removed.
        zero_shot: shape (n,), bias scores of the untrained model, for ``by: delta``.
        state: file in which every finished round is kept; a second call with the same items and settings goes on from it.
        about: what else the result depends on (the diagnostic), for the state.
        fresh: begin anew, whatever the state says.
        tell: told of every round.

    Raises:
        PruneError: keys that are not unique, a state of other settings, or scores that are missing.
    """
    keys = [item.key for item in items]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise PruneError(f"two docs have the id {twice!r}; name a field with unique values with the option 'key'")
    if (diagnose is None) == (given is None):
        raise PruneError("either a diagnostic or given scores decide what goes, not both")
    if settings.by == "delta" and diagnose is not None and zero_shot is None:
        raise PruneError("--by delta needs zero-shot scores, which the rf diagnostic has not; prune --from a tst_lora run")
    if given is not None and len(given) != len(items):
        raise PruneError(f"{len(given)} scores for {len(items)} docs")
    print_ = fingerprint(items, settings, about, given, zero_shot)
    history = [] if state is None or fresh else load_state(state, print_)
    return _Pruning(items, settings, diagnose, given, zero_shot, history, state, print_, tell).run()


class _Pruning:
    def __init__(
        self,
        items: Sequence[Item],
        settings: PruneSettings,
        diagnose: Diagnose | None,
        given: Array | None,
        zero_shot: Array | None,
        history: list[Round],
        state: Path | None,
        print_: str,
        tell: Callable[[str], None],
    ) -> None:
        self.items, self.settings, self.diagnose, self.given, self.zero_shot = items, settings, diagnose, given, zero_shot
        self.rounds, self.state, self.print, self.tell = history, state, print_, tell
        self.place = {item.key: i for i, item in enumerate(items)}
        self.selector = Selector(items, settings)
        self.clusters = cluster_of(items)

    def run(self) -> Pruned:
        budget = self.selector.budget
        if budget < 1:
            raise PruneError(f"a budget of {self.settings.budget:g} is less than one of {len(self.items)} docs")
        batch = (
            budget if self.diagnose is None else max(1, amount(self.settings.batch, len(self.items)) if self.settings.batch else -(-budget // ROUNDS))
        )
        gone = [key for done in self.rounds for key in done.removed]
        stopped = ""
        while not stopped and len(gone) < budget:
            found = self._round(gone)
            stopped = self._why_stop(found[0], found[1])
            if stopped == OVER_PRUNED:
                return self._taken_back()
            chosen = {} if stopped else self.selector.choose(found[1], gone, min(batch, budget - len(gone)), len(self.rounds) + 1)
            if not stopped and not chosen:
                stopped = "no scored item may go any more (floors, budgets by category, or unscored docs)"
            self.rounds.append(Round(**{**asdict(found[0]), "removed": chosen}))
            gone += chosen
            self._save()
            self.tell(_line(self.rounds[-1], len(gone), budget))
        return self._checked(stopped or "the budget is used up")

    def _seeds(self, number: int) -> list[int]:
        start = 1000 * (self.settings.seed + 1) + number * self.settings.fold_seeds
        return list(range(start, start + self.settings.fold_seeds))

    def _round(self, gone: Sequence[str]) -> tuple[Round, dict[int, float]]:
        """The next round without its removal, and the score of every remaining item that has one."""
        number, out = len(self.rounds) + 1, set(gone)
        kept = np.array([i for i, item in enumerate(self.items) if item.key not in out], np.intp)
        if self.diagnose is None:
            assert self.given is not None
            scores, told = self.given[kept], Round(number, len(kept), None, None, None, None, None)
        else:
            found = self.diagnose(kept, self._seeds(number))
            scores = self._score(found, kept)
            accuracy = found.accuracy if math.isfinite(found.accuracy) else None
            told = Round(number, len(kept), accuracy, *self._against(found, kept), None)
        known = {int(i): float(v) for i, v in zip(kept, scores, strict=True) if np.isfinite(v)}
        return Round(**{**asdict(told), "highest": max(known.values(), default=None)}), known

    def _score(self, found: Diagnosis, kept: Places) -> Array:
        if self.settings.by == "s":
            return found.s
        if self.settings.by == "delta":
            assert self.zero_shot is not None
            return np.asarray(found.s - self.zero_shot[kept])
        return np.asarray(found.s - found.chance)

    def _against(self, found: Diagnosis, kept: Places) -> tuple[float | None, float | None, float | None]:
        """Baseline, p-value above it, p-value below chance."""
        return against_baseline(found, None if self.clusters is None else self.clusters[kept])

    def _why_stop(self, done: Round, known: Mapping[int, float]) -> str:
        s = self.settings
        if not known:
            return "no item has a score"
        if s.over_pruned and done.p_below is not None and done.p_below < ALPHA and self.rounds:
            return OVER_PRUNED
        if s.tau is not None and done.highest is not None and done.highest < s.tau:
            return f"the highest score is below tau ({done.highest:.3f} < {s.tau:g})"
        if s.near_chance and done.p_above is not None and done.p_above >= ALPHA:
            return "text-only answers are not significantly above the frequency baseline"
        return ""

    def _taken_back(self) -> Pruned:
        last = self.rounds.pop()
        while self.rounds and not last.removed:
            last = self.rounds.pop()
        self.rounds.append(Round(**{**asdict(last), "removed": {}}))
        self._save()
        return self._result(OVER_PRUNED, over_pruned=True)

    def _checked(self, stopped: str) -> Pruned:
        """The result; the kept set is diagnosed once more where that was not its last diagnosis."""
        if self.diagnose is not None and self.rounds and self.rounds[-1].removed:
            found, known = self._round([key for done in self.rounds for key in done.removed])
            if self._why_stop(found, known) == OVER_PRUNED:
                return self._taken_back()
            self.rounds.append(found)
            self._save()
            self.tell(_line(found, sum(len(r.removed) for r in self.rounds), self.selector.budget))
        return self._result(stopped)

    def _result(self, stopped: str, over_pruned: bool = False) -> Pruned:
        pairs = [(self.place[key], score) for done in self.rounds for key, score in done.removed.items()]
        removed = np.array([place for place, _ in pairs], np.intp)
        kept = np.setdiff1d(np.arange(len(self.items)), removed)
        return Pruned(kept, removed, tuple(score for _, score in pairs), tuple(self.rounds), stopped, over_pruned)

    def _save(self) -> None:
        if self.state is not None:
            save_json(self.state, {"schema": SCHEMA, "fingerprint": self.print, "rounds": [asdict(done) for done in self.rounds]})


OVER_PRUNED = "over-pruned: text-only answers on the kept items fell significantly below chance; the last round was taken back"


def against_baseline(found: Diagnosis, clusters: Places | None) -> tuple[float | None, float | None, float | None]:
    """Frequency baseline; p-value of the accuracy above it; p-value of the accuracy below an uninformed answer.

    Folds are stratified by gold, so the majority of the training folds is that of the held-out fold too, and the
    baseline knows the test set a little: with golds that mean nothing it lies above chance, and honest answers below it.
    So "below" is below the lower of baseline and chance, item by item on average.
    """
    scores, baseline = found.scores.mean(axis=0), found.baseline.mean(axis=0)
    known = np.isfinite(scores) & np.isfinite(baseline) & np.isfinite(found.chance)
    if not known.any():
        return None, None, None
    own = None if clusters is None else clusters[known]
    low = baseline if baseline[known].mean() < found.chance[known].mean() else found.chance
    above = sign_flip_p((scores - baseline)[known], own)
    return float(baseline[known].mean()), above, sign_flip_p((low - scores)[known], own)


def cluster_of(items: Sequence[Item]) -> Places | None:
    """The cluster number of each item (source, else cluster, else itself); None where no item has either."""
    keys = [item.source if item.source is not None else item.cluster for item in items]
    if all(key is None for key in keys):
        return None
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(("own", i) if key is None else ("shared", repr(key)), len(numbers)) for i, key in enumerate(keys)], np.intp)


def hashed(seed: int, *parts: object) -> float:
    """A number in [0, 1) that seed and parts alone decide, the same in every process."""
    digest = hashlib.sha256("/".join(map(str, (seed, *parts))).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


class Selector:
    """Chooses what goes, within budgets and floors.

    Args:
        items: all items.
        settings: see ``PruneSettings``.

    Raises:
        PruneError: a budget for a category that is not there.
    """

    def __init__(self, items: Sequence[Item], settings: PruneSettings) -> None:
        self.items, self.settings = items, settings
        self.sizes: dict[str, int] = defaultdict(int)
        for item in items:
            self.sizes[item.category] += 1
        self.floors = {name: (math.ceil(settings.floor * size) if settings.floor < 1 else int(settings.floor)) for name, size in self.sizes.items()}
        self.golds = classes_of(items)
        self.quotas = self._quotas()
        explicit = self.quotas is not None and not isinstance(settings.allocation, str)
        self.budget = sum(self.quotas.values()) if explicit and self.quotas is not None else amount(settings.budget, len(items))

    def group(self, place: int) -> str:
        """The group that an item's budget is of."""
        return self.items[place].format if self.settings.allocation == "format" else self.items[place].category

    def _quotas(self) -> dict[str, int] | None:
        """The budget of each group; None: one for all."""
        allocation = self.settings.allocation
        if allocation == "global":
            return None
        sizes: dict[str, int] = defaultdict(int)
        for place in range(len(self.items)):
            sizes[self.group(place)] += 1
        if isinstance(allocation, str):
            return shares({name: float(size) for name, size in sizes.items()}, amount(self.settings.budget, len(self.items)))
        unknown = sorted(set(allocation) - set(sizes))
        if unknown:
            raise PruneError(f"there is no category {unknown[0]!r} to give a budget to; categories: {', '.join(sorted(sizes))}")
        return {name: amount(allocation.get(name, 0), size) if allocation.get(name, 0) else 0 for name, size in sizes.items()}

    def choose(self, scores: Mapping[int, float], gone: Sequence[str], count: int, number: int) -> dict[str, float]:
        """The items of one round.

        Args:
            scores: of the items that are left and scored, by place.
            gone: keys of those that are gone.
            count: how many at most.
            number: of the round.

        Returns:
            Key -> score, in the order in which they are chosen.
        """
        left = dict(self.sizes)
        away = set(gone)
        spent: dict[str, int] = defaultdict(int)
        for place, item in enumerate(self.items):
            if item.key in away:
                left[item.category] -= 1
                spent[self.group(place)] += 1
        rooms = (
            None if self.quotas is None else {name: max(0, min(q - spent[name], self._may_go(name, scores, left))) for name, q in self.quotas.items()}
        )
        now = None if rooms is None else shares({name: float(room) for name, room in rooms.items()}, count)
        out: dict[str, float] = {}
        for place in self._order(scores, number):
            item, group = self.items[place], self.group(place)
            if len(out) == count:
                break
            if left[item.category] <= self.floors[item.category] or (now is not None and now[group] <= 0):
                continue
            out[item.key] = scores[place]
            left[item.category] -= 1
            if now is not None:
                now[group] -= 1
        return out

    def _may_go(self, group: str, scores: Mapping[int, float], left: Mapping[str, int]) -> int:
        """How many items of a group are scored and not held back by the floor of their category."""
        scored: dict[str, int] = defaultdict(int)
        for place in scores:
            if self.group(place) == group:
                scored[self.items[place].category] += 1
        return sum(min(count, left[name] - self.floors[name]) for name, count in scored.items() if left[name] > self.floors[name])

    def _order(self, scores: Mapping[int, float], number: int) -> list[int]:
        """Places, the first to go first; ties by a hash of seed and key."""
        tie = {place: hashed(self.settings.seed, self.items[place].key) for place in scores}
        if self.settings.strategy == "weighted":
            lowest = min(scores.values())
            # Efraimidis and Spirakis (2006): the largest u^(1/w) are a draw without replacement in proportion to w
            draws = {p: math.log(max(hashed(self.settings.seed, number, self.items[p].key), 1e-300)) / (s - lowest + 1e-9) for p, s in scores.items()}
            return sorted(scores, key=lambda p: (-draws[p], tie[p]))
        highest = sorted(scores, key=lambda p: (-scores[p], tie[p]))
        return highest if self.settings.strategy == "top" else self._balanced(highest)

    def _balanced(self, highest: Sequence[int]) -> list[int]:
        """In turn from the gold that is most frequent in its category, among what is left; in each gold the highest score first."""
        waiting: dict[int, list[int]] = defaultdict(list)
        for place in reversed(highest):
            waiting[int(self.golds[place])].append(place)
        rank = {place: at for at, place in enumerate(highest)}
        heap = [(-len(places) / self.sizes[self.items[places[-1]].category], rank[places[-1]], gold) for gold, places in waiting.items()]
        heapq.heapify(heap)
        out = []
        while heap:
            _, _, gold = heapq.heappop(heap)
            out.append(waiting[gold].pop())
            if places := waiting[gold]:
                heapq.heappush(heap, (-len(places) / self.sizes[self.items[places[-1]].category], rank[places[-1]], gold))
        return out


def shares(weights: Mapping[str, float], total: int) -> dict[str, int]:
    """``total`` in whole parts in proportion to the weights, by largest remainders; ties by name."""
    whole = sum(weights.values())
    if whole <= 0:
        return dict.fromkeys(weights, 0)
    exact = {name: min(total, whole) * weight / whole for name, weight in weights.items()}
    out = {name: int(part) for name, part in exact.items()}
    missing = round(min(total, whole)) - sum(out.values())
    for name in sorted(exact, key=lambda n: (out[n] - exact[n], n))[: max(0, missing)]:
        out[name] += 1
    return out


def fingerprint(items: Sequence[Item], settings: PruneSettings, about: str, given: Array | None = None, zero_shot: Array | None = None) -> str:
    """What a history belongs to: items, settings, diagnostic, given scores and zero-shot scores."""
    rows = sorted(
        (item.key, item.golds, item.prompt, item.category, item.format, item.options, repr(item.source), repr(item.cluster)) for item in items
    )
    scores = [
        None if values is None else sorted((item.key, repr(float(v))) for item, v in zip(items, values, strict=True)) for values in (given, zero_shot)
    ]
    text = json.dumps([rows, asdict(settings), about, scores], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_state(path: Path, print_: str) -> list[Round]:
    """The finished rounds of an earlier call; none where there is no file.

    Raises:
        PruneError: the file is of other items or settings, or cannot be read.
    """
    if not path.exists():
        return []
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        schema, found, rounds = data["schema"], data["fingerprint"], [Round(**row) for row in data["rounds"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PruneError(f"{path} cannot be read ({type(error).__name__}); delete it, or type --fresh to begin anew") from None
    if schema != SCHEMA or found != print_:
        raise PruneError(f"{path} is of other docs or settings; give another --output, or type --fresh to begin anew")
    return rounds if not rounds or rounds[-1].removed else rounds[:-1]


def save_json(path: Path, value: Any) -> None:
    """Write JSON at once: to a temporary file that then takes the place of the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(path.suffix + ".tmp")
    temporary.write_text(json.dumps(value, indent=1, allow_nan=False), encoding="utf-8")
    temporary.replace(path)


def _line(done: Round, gone: int, budget: int) -> str:
    accuracy = "" if done.accuracy is None or done.baseline is None else f", text-only {done.accuracy:.3f} (majority {done.baseline:.3f})"
    return f"round {done.number}: {done.kept} items{accuracy}, {len(done.removed)} removed; {gone} of {budget} in all"
