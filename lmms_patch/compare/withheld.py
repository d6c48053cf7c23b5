"""Which differences may not be read: a gate fails, or a run withholds the number itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_patch.compare.pair import Pair, PairSide
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.recompute import Logged
from lmms_patch.runs import reading
from lmms_patch.stats.index import SIGNED
from lmms_patch.stats.paired import Difference
from lmms_patch.stats.resample import Bools

WHICH = ("first", "second")


def withhold_refused(pair: Pair, changes: dict[str, Difference]) -> None:
    """Remove differences of curves, hidden boxes and orders where a run gives no value itself."""
    known = [side.run.result.measures for side in pair.sides]
    for name, change in changes.items():
        if name in ("fip", "score", "tst"):
            continue
        refused = [
            one.reason if (one := of_run.get(name)) is not None and one.value is None else "" for of_run in known
        ]
        for which, why in zip(WHICH, refused, strict=True):
            if why:
                changes[name] = _without(change, [not one for one in refused], f"in the {which} run: {why}")
                break


def withhold(pair: Pair, changes: dict[str, Difference], n: int, used: Bools) -> None:
    """Take away the values of index and gap where a gate fails, and of the index where 1 - MPP/FIP has no meaning."""
    index, gap = f"{pair.kind.index}{n}", f"gap{n}"
    gates = [_gate(pair, side, used) for side in pair.sides]
    for which, (valid, why) in zip(WHICH, gates, strict=True):
        if valid is None:
            pair.warnings.append(
                f"the gate of the {which} run is {why or 'unknown'}; whether its index may be read is not known"
            )
        elif not valid:
            reason = f"near chance: the gate of the {which} run does not let it be read"
            for name in (index, gap):
                changes[name] = _without(changes[name], [valid is not False for valid, _ in gates], reason)
            break
    if not pair.higher:
        changes[index] = _without(
            changes[index], [False, False], "the metric is better when lower: 1 - MPP/FIP has no meaning"
        )
    elif any(side.settings.signed or side.table.signed for side in pair.sides):
        changes[index] = _without(changes[index], [False, False], SIGNED)


def _gate(pair: Pair, side: PairSide, used: Bools) -> tuple[bool | None, str]:
    """Return a run's gate and the reason, computed anew where only some of the run's docs are compared."""
    result = side.run.result
    valid = result.metrics.get("gate")
    if valid == 0 or int(used.sum()) == len(side.table):
        return None if valid is None else bool(valid), result.analysis.gate.reason if result.analysis else ""
    part = side.table.of(doc_id for doc_id, keep in zip(pair.ids, used, strict=True) if keep)
    if not len(part) or pair.form is None:
        return None, "no doc is compared"
    gate = analyse(part, Logged(side.run, part, pair.form, whole=False), side.settings).gate
    return gate.valid, gate.reason


def marks(pair: Pair) -> dict[str, tuple[str, ...]]:
    """Name the indices whose luck-corrected value contradicts them in a run (``Compared.marks``)."""
    out = {}
    for n in pair.shared_grids:
        grids = (side.run.result.grid(n) for side in pair.sides)
        said = [reading.explained(reading.mark_of(grid)) for grid in grids]
        if any(said):
            out[f"{pair.kind.index}{n}"] = tuple(
                f"of the {which} run is {mark}" for which, mark in zip(WHICH, said, strict=True) if mark
            )
    return out


def _without(change: Difference, keep: Sequence[bool], reason: str) -> Difference:
    """Return a difference without a value, with a reason, and only with the readable sides."""
    nothing = change.estimate.without(reason)
    return Difference(
        change.first if keep[0] else None, change.second if keep[1] else None, nothing, None, change.differing
    )
