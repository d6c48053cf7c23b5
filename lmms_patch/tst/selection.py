"""The choice of what a round of pruning removes: budgets, strategies, ties. Pure.

Source: TsT paper (https://arxiv.org/abs/2511.04655), 4.1 and Appendix C (selection strategies).
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_patch.errors import OptionError, PatchError
from lmms_patch.stats.bounds import is_number
from lmms_patch.tst.folds import classes_of
from lmms_patch.tst.items import Item

BY = ("s_minus_chance", "s", "delta")
STRATEGIES = ("top", "weighted", "balanced")
ALLOCATIONS = ("global", "format", "category")


class PruneError(PatchError):
    """A reason why pruning cannot start or continue."""


@dataclass(frozen=True)
class PruneSettings:
    """Settings of a pruning.

    Attributes:
        budget: how many items may be removed: a number, or a share of all (below 1); ignored where ``allocation`` is
        explicit.
        batch: how many are removed per round, likewise; None: a fifth of the budget.
        tau: stop when no remaining score is this high; None: never for that reason.
        near_chance: stop when half of what the next round would remove is expected to be luck, or when all scores
        together may be luck.
        over_pruned: stop, and take the last round back, when they are significantly below chance.
        by: the score that ranks: ``s_minus_chance`` (comparable across formats), ``s``, or ``delta`` (s less
        zero-shot).
        strategy: ``top``: the highest first. ``weighted``: drawn with probability in proportion to the score above the
            lowest. ``balanced``: within a category always from the gold that is most frequent there, its highest score
            first.
        allocation: ``global``; ``format`` or ``category``: budgets in proportion to the size of each; or explicit
        budgets by category.
        seed: of ties, draws and fold seeds.
        fold_seeds: fold seeds per round. Every round takes new seeds, so that no two rounds select on the same folds.
    """

    budget: float = 0.3
    batch: float | None = None
    tau: float | None = None
    near_chance: bool = True
    over_pruned: bool = True
    by: str = "s_minus_chance"
    strategy: str = "top"
    allocation: str | Mapping[str, float] = "global"
    seed: int = 0
    fold_seeds: int = 3

    def __post_init__(self) -> None:
        for name, value in (("budget", self.budget), ("batch", self.batch)):
            if value is not None and not _is_amount(value):
                raise OptionError(
                    f"{name} must be a number of docs (1, 2, ...) or a share between 0 and 1, not {value!r}"
                )
        for name, allowed in (("by", BY), ("strategy", STRATEGIES)):
            if getattr(self, name) not in allowed:
                raise OptionError(f"{name} must be {', '.join(allowed)}, not {getattr(self, name)!r}")
        if isinstance(self.allocation, str) and self.allocation not in ALLOCATIONS:
            raise OptionError(
                f"allocation must be {', '.join(ALLOCATIONS)} or budgets by category (a=0.3,b=20), not {self.allocation!r}"
            )
        if not isinstance(self.allocation, str):
            for category, amount in self.allocation.items():
                if amount != 0 and not _is_amount(amount):
                    raise OptionError(
                        f"the budget of {category!r} must be a number of docs or a share between 0 and 1, not {amount!r}"
                    )
        if self.fold_seeds < 1:
            raise OptionError(f"fold_seeds must be at least 1, not {self.fold_seeds}")


def _is_amount(value: Any) -> bool:
    return is_number(value) and (0 < value < 1 or (value >= 1 and float(value).is_integer()))


def amount(value: float, total: int) -> int:
    """Return a number of docs from a number or a share of ``total`` (below 1); at most ``total``."""
    return min(total, round(value * total) if value < 1 else int(value))


def hashed(seed: int, *parts: object) -> float:
    """Return a number in [0, 1) from seed and parts alone, the same in every process."""
    digest = hashlib.sha256("/".join(map(str, (seed, *parts))).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


class Selector:
    """The choice of what each round removes, within budgets.

    Args:
        items: all items.
        settings: see ``PruneSettings``.

    Raises:
        PruneError: a budget names a category that does not exist.
    """

    def __init__(self, items: Sequence[Item], settings: PruneSettings) -> None:
        self.items, self.settings = items, settings
        self.sizes: dict[str, int] = defaultdict(int)
        for item in items:
            self.sizes[item.category] += 1
        self.golds = classes_of(items)
        self.quotas = self._quotas()
        explicit = self.quotas is not None and not isinstance(settings.allocation, str)
        self.budget = (
            sum(self.quotas.values()) if explicit and self.quotas is not None else amount(settings.budget, len(items))
        )

    def group(self, place: int) -> str:
        """Return the group to whose budget an item belongs."""
        return self.items[place].format if self.settings.allocation == "format" else self.items[place].category

    def _quotas(self) -> dict[str, int] | None:
        """Return the budget of each group; None for a single budget."""
        allocation = self.settings.allocation
        if allocation == "global":
            return None
        sizes: dict[str, int] = defaultdict(int)
        for place in range(len(self.items)):
            sizes[self.group(place)] += 1
        if isinstance(allocation, str):
            return shares(
                {name: float(size) for name, size in sizes.items()}, amount(self.settings.budget, len(self.items))
            )
        unknown = sorted(set(allocation) - set(sizes))
        if unknown:
            raise PruneError(
                f"there is no category {unknown[0]!r} to give a budget to; categories: {', '.join(sorted(sizes))}"
            )
        return {
            name: amount(allocation.get(name, 0), size) if allocation.get(name, 0) else 0
            for name, size in sizes.items()
        }

    def choose(self, scores: Mapping[int, float], gone: Sequence[str], count: int, number: int) -> dict[str, float]:
        """Choose the items to remove in a round.

        Args:
            scores: scores of the remaining scored items, by place.
            gone: keys of the items removed so far.
            count: the most items to remove.
            number: of the round.

        Returns:
            Key -> score, in the order in which they are chosen.
        """
        away = set(gone)
        spent: dict[str, int] = defaultdict(int)
        for place, item in enumerate(self.items):
            if item.key in away:
                spent[self.group(place)] += 1
        rooms = (
            None
            if self.quotas is None
            else {
                # A group may run out of items that can go; its share then passes to the others.
                name: max(0, min(q - spent[name], sum(self.group(place) == name for place in scores)))
                for name, q in self.quotas.items()
            }
        )
        now = None if rooms is None else shares({name: float(room) for name, room in rooms.items()}, count)
        out: dict[str, float] = {}
        for place in self._order(scores, number):
            item, group = self.items[place], self.group(place)
            if len(out) == count:
                break
            if now is not None and now[group] <= 0:
                continue
            out[item.key] = scores[place]
            if now is not None:
                now[group] -= 1
        return out

    def _order(self, scores: Mapping[int, float], number: int) -> list[int]:
        """Return places in the order of removal; ties by a hash of seed and key."""
        # By a hash of the key, so that ties do not depend on the order of the docs.
        tie = {place: hashed(self.settings.seed, self.items[place].key) for place in scores}
        if self.settings.strategy == "weighted":
            lowest = min(scores.values())
            # Efraimidis and Spirakis (2006): items with the largest u^(1/w) are a draw without replacement in
            # proportion to w
            draws = {
                # 1e-300 and 1e-9 keep the logarithm and the division finite.
                p: math.log(max(hashed(self.settings.seed, number, self.items[p].key), 1e-300)) / (s - lowest + 1e-9)
                for p, s in scores.items()
            }
            return sorted(scores, key=lambda p: (-draws[p], tie[p]))
        highest = sorted(scores, key=lambda p: (-scores[p], tie[p]))
        return highest if self.settings.strategy == "top" else self._balanced(highest)

    def _balanced(self, highest: Sequence[int]) -> list[int]:
        """Return the order of removal: next goes an item whose gold is the most frequent of those left in its category.

        Of the items with that gold the one with the highest score goes first.
        """
        waiting: dict[int, list[int]] = defaultdict(list)
        # Lists end with the highest score, since ``pop`` takes from the end.
        for place in reversed(highest):
            waiting[int(self.golds[place])].append(place)
        rank = {place: at for at, place in enumerate(highest)}

        def turn(gold: int) -> tuple[float, int, int]:
            places = waiting[gold]
            return -len(places) / self.sizes[self.items[places[-1]].category], rank[places[-1]], gold

        # a heap, since only the gold whose item went has another rank afterwards
        heap = list(map(turn, waiting))
        heapq.heapify(heap)
        out = []
        while heap:
            _, _, gold = heapq.heappop(heap)
            out.append(waiting[gold].pop())
            if waiting[gold]:
                heapq.heappush(heap, turn(gold))
        return out


def shares(weights: Mapping[str, float], total: int) -> dict[str, int]:
    """Divide ``total`` into whole parts in proportion to the weights, by largest remainders; ties by name."""
    whole = sum(weights.values())
    if whole <= 0:
        return dict.fromkeys(weights, 0)
    exact = {name: min(total, whole) * weight / whole for name, weight in weights.items()}
    out = {name: int(part) for name, part in exact.items()}
    # Largest remainders get what rounding down left, ties by name.
    missing = round(min(total, whole)) - sum(out.values())
    for name in sorted(exact, key=lambda n: (out[n] - exact[n], n))[: max(0, missing)]:
        out[name] += 1
    return out
