"""May an index be read? The gate of all docs, and that of the docs that one grid uses."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import polars as pl

from lmms_patch.ask.kinds import Key
from lmms_patch.rci.draws import minus
from lmms_patch.rci.work import Work
from lmms_patch.runs.reading import NOT_CHECKED
from lmms_patch.stats import gate, intervals
from lmms_patch.stats.chance import FLOORS, Chance, decide, floors_for
from lmms_patch.stats.composition import KNOWN
from lmms_patch.stats.index import band
from lmms_patch.stats.resample import Bools, Estimate


def of_all(work: Work, unread: str, fip: Estimate, chance: Chance, scale: float | None) -> tuple[gate.Gate, list[str]]:
    """Judge whether an index may be read; return the gate and the cautions.

    Args:
        work: the analysis in progress.
        unread: the evidence that the scorer does not compare with the golds; empty where there is none.
        fip: FIP of all docs.
        chance: the floor.
        scale: the metric's scale; None: unknown.
    """
    delta = (
        work.settings.delta if work.settings.delta is not None else None if scale is None else gate.DELTA * abs(scale)
    )
    uniform = chance.floors.get("uniform")
    judged = gate.gate(
        work.fip,
        chance.value,
        se=_se_above(work, chance, fip, "fip", "", scale or 1.0, None),
        se_fip=fip.se,
        se_chance=chance.se,
        delta=delta,
        uniform=uniform.value if uniform else None,
        se_uniform=work.draws.estimate_of(minus, ("fip", "uniform")).se if uniform else None,
    )
    if judged.valid is None and chance.reason:
        judged = dataclasses.replace(judged, reason=f"{judged.reason} ({chance.reason})")
    judged = gate.with_looks(judged, _looks(work, scale or 1.0, delta or 0.0), part=work.part)
    looks = tuple(dataclasses.replace(one, reason=work.say(one.reason)) for one in judged.looks)
    judged = dataclasses.replace(judged, reason=work.say(judged.reason), looks=looks)
    # A pass would rest on a floor made of golds that the scorer does not use; a refusal stands.
    if unread and not work.without_golds and judged.valid is not False:
        judged = dataclasses.replace(judged, valid=None, threshold=None, marginal=False, reason=f"unknown: {unread}")
    if not work.table.higher:
        return dataclasses.replace(judged, valid=None, reason="unknown: the metric is better when lower"), [unread]
    unchecked = work.say(NOT_CHECKED) if work.cells and not judged.looks else ""
    return judged, [unread, unchecked]


def of_set(work: Work, n: Key, judged: gate.Gate) -> gate.Gate:
    """Return the gate over the docs of a grid with left-out docs, as the used docs may be the easy docs."""
    used = work.used[n]
    if judged.valid is not True or used.all() or not used.any():
        return judged
    fip = work.draws.estimate(f"full{n}", work.cells[n][0], used)
    # A documented chance holds for any docs; an estimated floor is taken over the used docs.
    chance = Chance(judged.chance, judged.se_chance, "documented")
    if work.settings.chance is None:
        formats = work.table.references.uninformed.formats[used]
        floors = {name: work.draws.estimate(f"{name}{n}", used=used) for name in FLOORS}
        name, floor = decide(floors, floors_for(formats))
        chance = Chance(None, None, None) if floor is None else Chance(floor.value, floor.se, name)
    se = _se_above(work, chance, fip, f"full{n}", str(n), work.settings.scale or work.ceiling or 1.0, used)
    own = gate.gate(fip.value, chance.value, se=se, se_fip=fip.se, se_chance=chance.se, delta=judged.delta)
    own = dataclasses.replace(own, looks=judged.looks)
    return (
        own
        if own.valid is True
        else dataclasses.replace(own, reason=f"of the {int(used.sum())} docs that {_named(work, n)} uses: {own.reason}")
    )


def refusal(work: Work, n: Key, judged: gate.Gate, unread: str) -> str:
    """Say why no index of a set may be read; "" where it may.

    Args:
        work: the analysis in progress.
        n: the set.
        judged: the gate of the docs that the set uses (``of_set``).
        unread: the evidence that the scorer does not compare with the golds; empty where there is none.
    """
    # With a documented floor and scale, a scorer that ignores the golds does no harm.
    ignored = "" if work.without_golds else unread
    return work.too_many[n] or (judged.reason if judged.valid is False else ignored)


_FORMS = {
    "denied": ("name the gold without its marks", "give a shorter prompt, or a filter"),
    "unfinished": ("are cut by the token limit", "allow more tokens (--gen_kwargs max_new_tokens=N)"),
}
"""Answers scored as wrong, perhaps wrongly, by their column."""
_MOVED, _APART = 0.1, 0.05
"""By how much such answers must move the index to be told, and how far apart the shares of cut answers must lie."""


def unlike(work: Work, n: Key) -> str:
    """Explain why the scores of full images and of cells cannot be compared; return "" where they can, as far as is known.

    An answer that names the gold without its marks is right in another form: the index is made again with its marks. Of
    a cut answer nobody knows, so only those count that the one side has more of.
    """
    table = work.table
    # of the docs of a quick run only those asked whole have all their answers
    used = work.used[n] & table.sampling.pilot
    if not table.higher or table.references.captions or not used.any():
        return ""
    views, marks = table.views, table.marks
    inside = views.in_set(n) & used[views.docs]
    full, best = (np.nan_to_num(of.scores / marks)[used] for of in (table.full_seen, table.best_seen(n)))
    for name, (what, mend) in _FORMS.items():
        lost = views.where(pl.col(name)) & (views.scores < KNOWN * marks[views.docs])
        first, some = lost[views.starts], views.per_doc(lost & inside)
        shares = float(first[used].mean()), float(lost[inside].mean()) if inside.any() else 0.0
        more = [float(((1 - of) * which[used]).mean()) for of, which in ((full, first), (best, some > 0))]
        if name == "unfinished":
            more = [of * (own > other + _APART) for of, own, other in zip(more, shares, shares[::-1], strict=True)]
        fip, mpp = full.mean() + more[0], best.mean() + more[1]
        if not full.mean() or not any(more):
            continue
        index, moved = 1 - best.mean() / full.mean(), 1 - mpp / fip
        if abs(moved - index) > _MOVED and band(moved) != band(index):
            counts = f"{int(first[used].sum()):,} of {int(used.sum()):,} and {int(lost[inside].sum()):,} of {int(inside.sum()):,} answers"
            return work.say(
                f"full images and cells are answered in other forms ({counts} {what}): taken as right these make the index {moved:+.2f} "
                f"in place of {index:+.2f}; {mend}"
            )
    return ""


def _se_above(
    work: Work, chance: Chance, fip: Estimate, name: str, end: str, scale: float, used: Bools | None
) -> float | None:
    """Return the standard error of FIP − floor, paired by doc where the floor is an answer to each doc.

    Args:
        work: the analysis in progress.
        chance: the floor.
        fip: FIP over the docs at hand.
        name: name of their set of full images.
        end: suffix in the names of the floors' sets over these docs.
        scale: the metric's scale.
        used: shape (docs,), the docs at hand; None: all.
    """
    if chance.floor in FLOORS:
        se = work.draws.estimate_of(minus, (name, f"{chance.floor}{end}"), None, used).se
    else:
        se = None if chance.se is None or fip.se is None else math.hypot(fip.se, chance.se)
    # A floor without a standard error: a lucky model has a smaller standard error than the one it had to beat.
    return se if se is None or chance.se else max(se, gate.se_at_chance(fip.se, fip.value, chance.value, scale))


def _looks(work: Work, scale: float, delta: float) -> tuple[gate.Looks, ...]:
    """Judge whether the full image beats a wrong image, and no image where there is a blind run; paired by doc."""
    out = []
    sorts: tuple[tuple[gate.Against, str], ...] = (("wrong images", "wrong"), ("blind", "blind"))
    for against, name in sorts:
        if f"{name}_full" not in work.draws.sets:
            continue
        used = np.isfinite(work.draws.sets[f"{name}_full"][0].scores)
        docs = int(used.sum())
        whole, difference = f"{name}_full", work.draws.estimate_of(minus, (f"{name}_full", name), None, used)
        wanted = gate.wanted(difference, docs, step := abs(scale) / max(1, docs))
        # FIP over all docs is more precise than FIP over the used docs.
        if not used.all() and difference.se and (difference.effective or 0) >= intervals.FEW_CLUSTERS:
            of_all = work.draws.estimate_of(minus, ("fip", name))
            if of_all.se is not None and of_all.se < difference.se:
                whole, difference = "fip", of_all
        full, other = (
            work.draws.estimate(whole, used=used if whole != "fip" else None).value,
            work.draws.estimate(name, used=used).value,
        )
        everyone = len(work.table)
        out.append(
            gate.looks(
                difference,
                full,
                other,
                docs,
                against=against,
                everyone=everyone,
                step=step,
                delta=delta,
                wanted=wanted,
            )
        )
    return tuple(out)


def _named(work: Work, n: Key) -> str:
    return work.table.kind.words.grid(n) if isinstance(n, int) else f"the set of {n} boxes"
