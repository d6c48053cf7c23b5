"""Does a number keep a limit? The verdict, the level of several intervals together, and limits that would let a number get worse. Pure.

Source: Piaggio et al. (2012, JAMA 308: 2594), non-inferiority by an interval. ``stats.intervals`` makes the intervals.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from lmms_patch.errors import OptionError
from lmms_patch.gate.rules import Rule
from lmms_patch.gate.sides import Subject
from lmms_patch.runs.catalogue import named
from lmms_patch.stats.paired import detectable
from lmms_patch.stats.resample import Estimate

Call = Literal["pass", "fail", "inconclusive"]
Basis = Literal["paired", "unpaired", "interval", "number"]
"""What a verdict rests on: a paired or unpaired difference, the number's own interval, or the number alone."""
CALLS: tuple[Call, ...] = ("pass", "inconclusive", "fail")
"""From best to worst."""
_TOLERANCE = 1e-12
_TEXT_ONLY = ("tst", "tst_majority", "tst_over_chance", "tst_above", "tst_zero_shot", "tst_delta", "tst_leakage")
"""Scores of models that only read."""


def call(
    low: float, high: float, *, least: float | None = None, most: float | None = None, margin: float = 0.0
) -> Call:
    """Return the verdict on a number between ``low`` and ``high``.

    The margin moves a limit outwards, and the moved limit B alone decides (non-inferiority). For a lower limit, B = L −
    margin: pass where low ≥ B, fail where high < B, else inconclusive. An upper limit is its mirror image. With both
    limits the worse verdict counts.

    >>> call(0.48, 0.55, least=0.5, margin=0.02), call(0.40, 0.47, least=0.5), call(0.47, 0.49, least=0.5, margin=0.02)
    ('pass', 'fail', 'inconclusive')
    """
    calls: list[Call] = []
    if least is not None:
        calls.append(_above(low, high, least - margin))
    if most is not None:
        calls.append(_above(-high, -low, -most - margin))
    if not calls:
        raise ValueError("no limit")
    return max(calls, key=CALLS.index)


def _above(low: float, high: float, bound: float) -> Call:
    """Return pass for an interval above a bound, fail for an interval below, else inconclusive."""
    # Adding the margin may change the last digit of the bound.
    slack = _TOLERANCE * max(1.0, abs(bound))
    if low >= bound - slack:
        return "pass"
    return "fail" if high < bound - slack else "inconclusive"


def plain(value: float, digits: int = 12) -> str:
    """Return a limit, or another number of a rule, with up to so many significant digits and without an exponent.

    Below 1e-9 there is an exponent after all: so many zeros cannot be counted.

    >>> plain(-0.02), plain(0.3 - 0.1), plain(1e-05), plain(2e-12)
    ('-0.02', '0.2', '0.00001', '2e-12')
    """
    text = f"{value:.{digits}g}"
    return text if 0 < abs(value) < 1e-9 else format(Decimal(text), "f")


def corrected(level: float, count: int) -> float:
    """Return the level of each of ``count`` intervals at which all of them hold at ``level`` together (Bonferroni).

    >>> round(corrected(0.95, 5), 3)
    0.99
    """
    return 1 - (1 - level) / max(1, count)


def smallest(number: Estimate, level: float) -> float | None:
    """Return the minimum detectable effect: how far beyond limit and margin the truth must be for 80 % of runs to fail.

    If the truth is as far inside, 80 % of runs pass. None where nothing varies.
    """
    clusters = number.clusters if number.effective is None else number.effective
    return detectable(number.se, clusters, level=level) if number.se else None


# --- limits that would let a number get worse -------------------------------------------------------


def check_direction(rule: Rule, one: Subject, metric: str, source: str) -> None:
    """Refuse a rule with a limit only on the improvement of a metric where lower is better.

    ``max_drop`` and ``min`` keep a number from falling. Where lower is better (an error rate) they stop it from getting
    better and let it get as bad as it likes. Such a rule is refused, unless the other end has a limit too.

    Args:
        rule: with its limits.
        one: the result.
        metric: a name of its ``measures``.
        source: the file of rules, as it is named to people.

    Raises:
        OptionError: the metric is better when lower, and only its improvement is limited.
    """
    primary = one.result.metric
    native = (
        metric
        if metric in one.result.details.get("higher_is_better", {}) or (one.kind == "magic" and metric != "score")
        else primary
    )
    text_only, known = metric in _TEXT_ONLY, named(one.result.kind, one.result.grids).get(metric)
    of_model = metric.startswith("drop") or (known is not None and known.better)
    if one.better(native) or not (text_only or of_model or metric in (native, primary)):
        return
    about = f"{source}: rule {rule.name!r}: {native} of {one.task} is better when lower"
    alone = "or narrow the rule (task) and give this one its own"
    if rule.max_drop is not None and rule.max_rise is None:
        raise OptionError(f"{about}, so 'max_drop' of {metric} alone would pass any loss; give 'max_rise', {alone}")
    # 'min' on the error rate of a text-only score is meant: it asks that the text alone does not answer
    if rule.min is not None and rule.max is None and not text_only:
        raise OptionError(f"{about}, so 'min' of {metric} alone would pass any loss; give 'max', {alone}")


def check_text_only(rule: Rule, one: Subject, source: str) -> None:
    """Refuse ``max_tst_over_chance`` on a metric that is better when lower: such a check cannot fail.

    Raises:
        OptionError: its metric is better when lower: text alone that answers well is then far *below* chance.
    """
    if not one.higher:
        about = f"{source}: rule {rule.name!r}: {one.result.described['metric']} of {one.task} is better when lower"
        raise OptionError(
            f"{about}, so 'max_tst_over_chance' would pass what text alone answers; "
            "give 'metric: tst_over_chance' with 'min' (-0.05, say), or narrow the rule (task)"
        )
