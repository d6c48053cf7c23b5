"""Chance, and what golds say: the floor that an index is held against, and whether the scorer compares with the golds at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from lmms_patch.rci.work import Work
from lmms_patch.stats import intervals
from lmms_patch.stats.chance import FLOORS, Chance, decide, floors_for, majority_share, published
from lmms_patch.stats.resample import Estimate

GOLDS_BEATEN = 0.05
"""The share of docs with an answer above their gold from which on the scorer is assumed to compare with something other than the golds."""


def chance_of(work: Work) -> Chance:
    """Return the chance floor: a documented floor, the most frequent gold, or the best uninformed answer."""
    given = work.settings.chance
    every = {name: work.draws.estimate(name) for name in FLOORS}
    floors = {name: estimate for name, estimate in every.items() if estimate.value is not None}
    rule = _rule(work)
    if isinstance(given, str):
        return _majority(work, floors, rule)
    if given is not None:
        return Chance(float(given), 0.0, "documented", floors, rule, work.constants)
    name, floor = decide(floors, floors_for(work.table.references.uninformed.formats))
    if floor is None or name is None:
        why = (
            "no doc has a gold answer"
            if not any(work.table.references.uninformed.golds)
            else "the scorer may not be asked for chance; set 'chance' in a profile"
        )
        return Chance(None, None, None, floors, rule, work.constants, why)
    return Chance(floor.value, floor.se, name, floors, rule, work.constants)


def _rule(work: Work) -> float | None:
    """Return the published chance rule on the metric's own scale.

    None where the metric is not a mean.
    """
    of = work.table.references.uninformed
    if not len(work.table) or work.form is None or not work.form.plain:
        return None
    # The factor turns a mean of scores into the metric's own scale.
    factor = {"percent": 100.0, "sum": float(len(work.table))}.get(work.form.name, 1.0)
    full = work.settings.scale or work.ceiling
    rule = published(of, full / factor if full else 1.0)
    return None if rule is None else factor * rule


def _majority(work: Work, floors: Mapping[str, Estimate], rule: float | None) -> Chance:
    """Return the share of the most frequent gold as the chance floor; at least 1/2 for yes/no."""
    of = work.table.references.uninformed
    golds = [gold for gold in of.golds if gold is not None]
    if not golds:
        return Chance(None, None, None, floors, rule, work.constants, "no doc has a gold answer")
    scale = work.settings.scale or work.ceiling or 1.0
    # sorted, so that a tie does not depend on the order of the docs
    often = Counter(golds)
    typical = max(sorted(often), key=lambda gold: often[gold])
    # cluster numbers are of all docs, so they fit only where each of them has a gold
    clusters, s = work.table.groups.clusters if len(golds) == len(work.table) else None, work.settings
    se = intervals.mean([gold == typical for gold in golds], clusters, **s.how).se
    share = majority_share(often)
    value = max(share, 0.5) if (of.formats == "yesno").all() else share
    return Chance(scale * value, None if se is None else scale * se, "majority", floors, rule, {"": typical})


def unread(work: Work) -> str:
    """Describe evidence for a scorer that ignores the golds, and the remedy.

    Empty where there is none.

    Chance and scale are computed from golds: where the scorer does not use them, a pure guesser passes the gate.
    """
    golds, ceiling = work.table.references.ceiling, work.ceiling
    if golds is None or not work.table.higher or work.table.references.captions:
        return ""
    # float error alone must not put the model above the golds
    tiny = 1e-9 * max(1.0, abs(work.fip or 0.0))
    # ``fmax`` ignores nan: a doc counts with the best of its known scores.
    best = np.fmax.reduce([work.table.full_seen.scores, *(work.table.best_seen(n).scores for n in work.best)])
    beaten = int((best > golds.scores + 1e-9).sum())
    if ceiling is not None and ceiling <= 0:
        shown = "the gold answers score 0"
    elif ceiling is not None and work.fip is not None and ceiling < work.fip - tiny:
        shown = f"the gold answers score {ceiling:.4g}, less than the model ({work.fip:.4g})"
    elif beaten > GOLDS_BEATEN * len(golds.scores) and not work.part:
        shown = f"{beaten} of {len(golds.scores)} docs have an answer that scores above their gold"
    else:
        return ""
    mend = "metadata: {lmms_patch: {gold: FIELD}} in the task file, or gold: FIELD in a profile"
    return f"{shown}: the scorer does not compare with them; name the field that it compares with ({mend})"


def gold_below(work: Work) -> tuple[int, str]:
    """Return how many docs' golds do not get full marks, and a line about them."""
    golds = work.table.references.ceiling
    if golds is None or not len(golds.scores) or work.table.references.captions:
        return 0, ""
    # full marks may come out a trace lower in some docs
    below = int((golds.scores < golds.scores.max() - 1e-9).sum())
    told = f"the scorer does not give full marks to the gold answer of {below} of {len(golds.scores)} docs"
    return below, told if below else ""
