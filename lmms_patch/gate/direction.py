"""Limits that would let a number get worse: of metrics that are better when lower, an error rate say. Pure.

``max_drop`` and ``min`` keep a number from falling. Where lower is better that keeps it from getting better, and lets it get as bad as
it likes: a gate that passes what it is there to stop. Such a rule is refused, unless the other end has a limit too.
"""

from __future__ import annotations

import re

from lmms_patch.errors import OptionError
from lmms_patch.gate.rules import Rule
from lmms_patch.gate.sides import Result

_OF_MODEL = re.compile(r"^(score|fip|mpp\d+|gap\d+|drop\d+)$")
_TEXT_ONLY = re.compile(r"^tst(_majority|_over_chance|_above|_zero_shot|_delta|_leakage)?$")


def check(rule: Rule, one: Result, metric: str, source: str) -> None:
    """Whether a rule keeps a number of a result from getting worse.

    Args:
        rule: with its limits.
        one: the result.
        metric: a name of its ``measures``.
        source: the file of rules, as it is named to people.

    Raises:
        OptionError: it is of a metric that is better when lower, and only its improvement is limited.
    """
    primary = one.result.described["metric"]
    native = metric if metric in one.result.details.get("higher_is_better", {}) or (one.kind == "magic" and metric != "score") else primary
    text_only = bool(_TEXT_ONLY.match(metric))
    if one.better(native) or not (text_only or _OF_MODEL.match(metric) or metric in (native, primary)):
        return
    about = f"{source}: rule {rule.name!r}: {native} of {one.task} is better when lower"
    alone = "or narrow the rule (task) and give this one its own"
    if rule.max_drop is not None and rule.max_rise is None:
        raise OptionError(f"{about}, so 'max_drop' of {metric} alone would pass any loss; give 'max_rise', {alone}")
    # of a text-only score, 'min' on an error rate is what asks that the text alone does not answer
    if rule.min is not None and rule.max is None and not text_only:
        raise OptionError(f"{about}, so 'min' of {metric} alone would pass any loss; give 'max', {alone}")


def check_text_only(rule: Rule, one: Result, source: str) -> None:
    """Whether ``max_tst_over_chance`` can fail on a result.

    Raises:
        OptionError: its metric is better when lower: text alone that answers well is then far *below* chance.
    """
    if not one.higher:
        about = f"{source}: rule {rule.name!r}: {one.result.described['metric']} of {one.task} is better when lower"
        raise OptionError(
            f"{about}, so 'max_tst_over_chance' would pass what text alone answers; "
            "give 'metric: tst_over_chance' with 'min' (-0.05, say), or narrow the rule (task)"
        )
