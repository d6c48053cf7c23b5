"""Strata of docs that are asked alike, and donors: other docs of a stratum whose answers stand in for chance.

NumPy only.

A stratum must not be too wide: then the floor is not that of docs that are asked alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from lmms_patch.stats.resample import Ints, Seed, generator

LEAST_DOCS = 20
"""The fewest docs that make a stratum of their own."""


@dataclass(frozen=True)
class Strata:
    """Groups of docs that are asked alike.

    Attributes:
        labels: for each doc, the finest kind that has enough docs.
        members: for each label, the places of *all* docs of that kind, including docs with a finer label.
    """

    labels: list[tuple[Hashable, ...]]
    members: dict[tuple[Hashable, ...], list[int]]


def strata(kinds: Sequence[Sequence[Hashable]], least: int = LEAST_DOCS) -> Strata:
    """Label each doc with its finest kind that at least ``least`` docs share; where none is, with its coarsest kind.

    Args:
        kinds: for each doc, its kind from coarse to fine (answer format, number of options, option set, question
        skeleton).
        least: the fewest docs of a stratum.

    >>> kinds = [("open", "what")] * 20 + [("open", "why")]
    >>> strata(kinds).labels[0], strata(kinds).labels[-1]
    (('open', 'what'), ('open',))
    """
    members: dict[tuple[Hashable, ...], list[int]] = {}
    for place, kind in enumerate(kinds):
        for depth in range(1, len(kind) + 1):
            members.setdefault(tuple(kind[:depth]), []).append(place)
    labels = []
    for kind in kinds:
        depth = next((d for d in range(len(kind), 1, -1) if len(members[tuple(kind[:d])]) >= least), 1)
        labels.append(tuple(kind[:depth]))
    return Strata(labels, {label: members[label] for label in set(labels)})


def draw(
    found: Strata,
    units: Sequence[Hashable],
    sources: Sequence[Hashable] | None = None,
    *,
    donors: int,
    seed: Seed = 0,
) -> Ints:
    """Draw donors for each doc from its stratum, without replacement; never the doc itself, its cluster or its image.

    Args:
        found: strata of the docs.
        units: cluster of each doc (its own place where docs are independent).
        sources: image of each doc, where it is known.
        donors: P.
        seed: see ``resample.generator``.

    Returns:
        Shape (docs, P), places of docs; −1 where there are fewer than P.
    """
    stream = generator(seed)
    out = np.full((len(units), donors), -1, np.intp)

    def allowed(i: int, d: int) -> bool:
        return d != i and units[d] != units[i] and (sources is None or sources[i] is None or sources[d] != sources[i])

    for i in range(len(units)):
        pool = found.members[found.labels[i]]
        picked: list[int] = []
        # a list of all allowed docs for each doc would take docs² steps, so donors are first tried at random
        for place in stream.integers(0, len(pool), 3 * donors):
            d = pool[place]
            if len(picked) < donors and d not in picked and allowed(i, d):
                picked.append(d)
        if len(picked) < donors:
            rest = [d for d in pool if d not in picked and allowed(i, d)]
            picked += [rest[k] for k in stream.permutation(len(rest))[: donors - len(picked)]]
        out[i, : len(picked)] = picked
    return out


def draw_clusters(
    found: Strata,
    units: Sequence[Hashable],
    sources: Sequence[Hashable] | None = None,
    *,
    donors: int,
    seed: Seed = 0,
) -> Ints:
    """Draw donors where the metric works on clusters (MME's pairs): whole clusters of the same size, their docs in random order.

    The order is random on purpose. MME asks every pair for a yes first and a no second: matched by position, the right
    answers to any pair would be right for every other pair.

    Args:
        found: strata of the docs; the stratum of a cluster is that of its first doc.
        units: cluster of each doc.
        sources: image of each doc, where it is known.
        donors: P.
        seed: see ``resample.generator``.

    Returns:
        Shape (docs, P), places of docs; −1 where there are fewer than P.
    """
    stream = generator(seed)
    members: dict[Hashable, list[int]] = {}
    for place, unit in enumerate(units):
        members.setdefault(unit, []).append(place)
    names = list(members)
    kinds = [(len(members[name]), *found.labels[members[name][0]]) for name in names]
    by_kind = strata(kinds)
    firsts = None if sources is None else [sources[members[name][0]] for name in names]
    exact = {k: [p for p in v if kinds[p][0] == k[0]] for k, v in by_kind.members.items()}
    chosen = draw(Strata(by_kind.labels, exact), names, firsts, donors=donors, seed=stream)
    out = np.full((len(units), donors), -1, np.intp)
    for row, name in enumerate(names):
        for p, donor in enumerate(chosen[row]):
            if donor >= 0:
                out[members[name], p] = stream.permutation(members[names[donor]])
    return out
