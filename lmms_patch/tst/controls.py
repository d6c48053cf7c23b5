"""The judge of a pruning: does it show a reduction of shortcuts, or selection noise? Pure.

Selection feeds on noise: the items that were predictable by chance are removed first, so the accuracy of the same model
falls even where golds mean nothing. Therefore three precautions: the kept set is judged by another model class, on
other features and fold seeds; its fall is counted against random removal; and that fall is compared with the falls of
the same pruning under shuffled golds.

There are two kinds of random removal. One keeps the counts of each category: it sees what selection does within
categories, and is blind to a pruning that removes whole categories. The other keeps nothing: it sees both, and takes a
category that is merely easier for a shortcut. A reduction is claimed only where the fall is beyond noise against both.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from lmms_patch.runs.numbers import ALPHA
from lmms_patch.stats.bounds import Number
from lmms_patch.stats.resample import Seed, generator
from lmms_patch.tst.copies import cluster_of
from lmms_patch.tst.diagnosis import Diagnose, Diagnosis
from lmms_patch.tst.items import Item, Places
from lmms_patch.tst.prune import SCHEMA, Saved, against_baseline, load, save_json
from lmms_patch.tst.selection import PruneError

# of fewer shuffles than 20 no p-value falls below 5 %
CONTROLS, SHUFFLES = 5, 20

World = Callable[[int], tuple[Places, Diagnose]]
"""A function from a seed to a world of shuffled golds: what the same pruning removes there, and the judge there."""


@dataclass(frozen=True)
class Control:
    """The comparison with a kind of random removal.

    Attributes:
        match: what the random removals keep (``group_keys``).
        controls: the judge's accuracy after each random removal.
        fall: mean of ``controls`` less that on the kept items: how much more than random removal the pruning lowered
        the accuracy.
        shuffled: the same fall under shuffled golds, one for each shuffle.
        p: (1 + number of shuffled falls at least as large) / (1 + shuffles); None without shuffles.
    """

    match: str
    controls: tuple[float, ...]
    fall: float
    shuffled: tuple[float, ...]
    p: float | None

    @property
    def shows(self) -> bool:
        """Whether the fall is more than selection on noise explains."""
        return self.fall > 0 and self.p is not None and self.p < ALPHA

    @property
    def sentence(self) -> str:
        """The numbers in words."""
        kept = "unmatched" if self.match == "none" else f"matched by {self.match}"
        span = (
            f"shuffled golds give falls of {min(self.shuffled):+.3f} to {max(self.shuffled):+.3f}"
            if self.shuffled
            else "no golds were shuffled"
        )
        p = "" if self.p is None else f" (p = {self.p:.3f})"
        return f"{np.mean(self.controls):.3f} after random removal {kept} (fall {self.fall:+.3f}; {span}{p})"


@dataclass(frozen=True)
class Judged:
    """The verdict of an independent judge on a pruning.

    Attributes:
        original: the judge's text-only accuracy on all items (fraction).
        kept: its accuracy on the kept items.
        compared: the comparisons with random removal: matched, and unmatched where that is another one.
        baseline: the frequency baseline of the kept items (``prune.against_baseline``).
        p_above: p-value of their accuracy above the baseline.
        p_below: p-value of their accuracy below an uninformed answer.
        verdict: ``reduction``, ``selection noise`` (no more than noise gives: small sets hide real reductions),
            ``controls disagree`` (more than noise against one kind of random removal), ``over-pruned``, or ``unknown``.
        sentence: the verdict in plain words.
    """

    original: float
    kept: float
    compared: tuple[Control, ...]
    baseline: float | None
    p_above: float | None
    p_below: float | None
    verdict: str
    sentence: str


def group_keys(items: Sequence[Item], match: str = "category") -> list[Hashable]:
    """Return the group of each item; matched-random removals keep the counts of these groups.

    With ``category`` (format and category) the judge sees selection within categories only. With ``format`` or ``none``
    it also sees which categories were removed.
    """
    return [matched_part((item.format, item.category), match) for item in items]


def matched_part(group: tuple[str, str], match: str) -> Hashable:
    """Return the part of (format, category) used by a matching."""
    return {"category": group, "format": group[0], "none": ""}[match]


def matched_random(groups: Sequence[Hashable], removed: Places, seed: Seed) -> Places:
    """Draw as many items of every group as ``removed`` has, at random from all items.

    Args:
        groups: group of each of n items.
        removed: places of the removed items.
        seed: see ``stats.resample.generator``.

    Returns:
        Places, ascending.
    """
    stream = generator(seed)
    members: dict[Hashable, list[int]] = defaultdict(list)
    counts: dict[Hashable, int] = defaultdict(int)
    for place, group in enumerate(groups):
        members[group].append(place)
    for place in removed:
        counts[groups[int(place)]] += 1
    drawn = [stream.choice(members[group], counts[group], replace=False) for group in members if counts[group]]
    return np.sort(np.concatenate(drawn)).astype(np.intp) if drawn else np.empty(0, np.intp)


def judge(
    items: Sequence[Item],
    removed: Places,
    judged_by: Diagnose,
    world: World,
    *,
    controls: int = CONTROLS,
    shuffles: int = SHUFFLES,
    match: str = "category",
    seed: int = 0,
    state: Path | None = None,
    fingerprint: str = "",
    tell: Callable[[str], None] = lambda line: None,
) -> Judged:
    """Judge whether a pruning reduced shortcuts.

    Args:
        items: all n items.
        removed: places of the removed items.
        judged_by: a diagnostic of another model class than the one that selected, on other features.
        world: the same pruning and judge under shuffled golds.
        controls: number of random removals of each kind.
        shuffles: number of shuffles; with fewer than 20 nothing can be called a reduction (p is at least 1 / (shuffles
        + 1)).
        match: what the matched ones are matched by, see ``group_keys``; ``none``: the category. Unmatched ones stand
        beside them.
        seed: of the controls and fold seeds.
        state: file that keeps every finished number, so that an interrupted call continues.
        fingerprint: what these numbers belong to.
        tell: called with a line for every number.

    Raises:
        PruneError: the state belongs to another pruning.
    """
    if controls < 1:
        raise PruneError("at least one matched-random removal is needed to compare with (--controls 5)")
    gone = hashlib.sha256("/".join(sorted(items[int(i)].key for i in removed)).encode()).hexdigest()[:16]
    # The removed set is part of the fingerprint: the state of another pruning must not continue this one.
    known = _Known(state, f"{fingerprint}/{gone}/{match}/{seed}", tell)
    groups = {
        name: group_keys(items, name) for name in dict.fromkeys([match if match != "none" else "category", "none"])
    }
    # With a single category and format, matching changes nothing.
    if len(set(next(iter(groups.values())))) == 1:
        groups = {"none": groups["none"]}
    everyone = np.arange(len(items))
    kept = np.setdiff1d(everyone, removed)
    # Far from the seeds of the selection (``prune``), so that the judge deals other folds.
    seeds = [900_000 + 1000 * seed + i for i in range(3)]
    whole = known.number("original", lambda: judged_by(everyone, seeds).accuracy)
    left = known.values("kept", 4, lambda: _of_kept(judged_by(kept, seeds), cluster_of(items), kept))

    def after(name: str, c: int) -> float:
        # far apart, so that no two seeds share a removal
        return judged_by(np.setdiff1d(everyone, matched_random(groups[name], removed, seed * 7919 + c)), seeds).accuracy

    random = {
        name: [known.number(f"control {name} {c}", partial(after, name, c)) for c in range(controls)] for name in groups
    }
    falls = [
        known.values(
            f"shuffle {s}",
            len(groups),
            partial(_shuffled_falls, world, list(groups.values()), everyone, seed, s, seeds[:1]),
        )
        for s in range(shuffles)
    ]
    compared = []
    for at, name in enumerate(groups):
        fall, shuffled = float(np.mean(random[name]) - left[0]), tuple(float(one[at]) for one in falls)
        # The observed fall counts as one of its own shuffles, so p is never 0.
        p = (1 + sum(other >= fall for other in shuffled)) / (1 + shuffles) if shuffled else None
        compared.append(Control(name, tuple(random[name]), fall, shuffled, p))
    return _verdict(whole, left, tuple(compared))


def _of_kept(found: Diagnosis, clusters: Places | None, kept: Places) -> list[float | None]:
    """Return accuracy, baseline, p above and p below of the kept items, by the clusters of all items."""
    return [found.accuracy, *against_baseline(found, None if clusters is None else clusters[kept])]


def _shuffled_falls(
    world: World, groups: Sequence[Sequence[Hashable]], everyone: Places, seed: int, shuffle: int, seeds: Sequence[int]
) -> list[float]:
    """Return the fall under a shuffle of the golds against each kind of random removal."""
    # far apart, so that two seeds share no world
    removed, judged_by = world(seed * 104_729 + shuffle)
    kept = judged_by(np.setdiff1d(everyone, removed), seeds).accuracy
    # 1000 on, so that these are not the random removals of the golds as they are
    random = [np.setdiff1d(everyone, matched_random(own, removed, seed * 7919 + 1000 + shuffle)) for own in groups]
    return [float(judged_by(places, seeds).accuracy - kept) for places in random]


def _verdict(whole: float, left: Sequence[Any], compared: tuple[Control, ...]) -> Judged:
    kept, baseline, above, below = left
    shown = [one.shows for one in compared]
    if below is not None and below < ALPHA:
        verdict, says = (
            "over-pruned",
            "the kept items are answered worse than by guessing: what is left goes against the patterns that were removed",
        )
    elif compared[0].p is None:
        verdict, says = "unknown", "without shuffles nothing says how much of this is selection noise"
    elif all(shown):
        verdict, says = "reduction", "more than selection on noise explains: a reduction of text-only shortcuts"
    elif any(shown):
        verdict, says = "controls disagree", _disagreement(compared)
    else:
        least = " and ".join(f"{max(one.shuffled):+.3f}" for one in compared)
        needed = (
            f"only a fall above {least} could have been called one"
            if len(compared[0].shuffled) >= 20
            else "20 shuffles or more are needed"
        )
        verdict, says = (
            "selection noise",
            f"no reduction is shown, which does not mean that there is no shortcut: on a set of this size {needed}",
        )
    told = ", and ".join(one.sentence for one in compared)
    return Judged(
        whole,
        kept,
        compared,
        baseline,
        above,
        below,
        verdict,
        f"{verdict}: an independent judge scores {kept:.3f} on the kept items, {told}: {says}",
    )


def _disagreement(compared: Sequence[Control]) -> str:
    """Say what either kind of random removal shows."""
    said = []
    for one in compared:
        kept = (
            "counts per category kept"
            if one.match == "category"
            else "counts per format kept"
            if one.match == "format"
            else "nothing kept"
        )
        said.append(
            f"with {kept} {'more than selection on noise explains' if one.shows else 'no more than selection on noise explains'}"
        )
    return f"{'; '.join(said)}; a reduction is claimed only where both show it"


class _Numbers(Saved):
    """The numbers of the judge by their names.

    Of the kept items four, of a shuffle one for each kind of random removal.
    """

    found: dict[str, Number | Annotated[list[Number | None], Meta(min_length=1, max_length=4)]]


class _Known:
    """Finished numbers by name, saved to a file as each is computed."""

    def __init__(self, path: Path | None, fingerprint: str, tell: Callable[[str], None]) -> None:
        self.path, self.fingerprint, self.tell = path, fingerprint, tell
        saved = None if path is None else load(path, _Numbers, fingerprint, "another pruning")
        self.found: dict[str, Any] = saved.found if saved else {}

    def values(self, name: str, count: int, make: Callable[[], list[Any]]) -> list[Any]:
        """Return the saved numbers under a name; where the file lacks them, or has other than ``count``, compute and save them.

        Only the first two must be numbers: p-values, which come after them, may be missing.
        """
        saved = self.found.get(name)
        fits = isinstance(saved, list) and len(saved) == count and None not in saved[:2]
        return list(self._saved(name, fits, make))

    def number(self, name: str, make: Callable[[], float]) -> float:
        return float(self._saved(name, isinstance(self.found.get(name), (int, float)), make))

    def _saved(self, name: str, fits: bool, make: Callable[[], Any]) -> Any:
        if not fits:
            self.found[name] = make()
            if self.path is not None:
                save_json(self.path, {"schema": SCHEMA, "fingerprint": self.fingerprint, "found": self.found})
            self.tell(f"{name}: {_short(self.found[name])}")
        return self.found[name]


def _short(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value[0]:.3f}"
