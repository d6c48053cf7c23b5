"""Chooses the native metric that the index is built on."""

from __future__ import annotations

import re

from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness import compat

_OVER_ALL = re.compile(r"(^|[\W_])(average|overall|all)([\W_](acc|accuracy|score))*$", re.IGNORECASE)
"""What a metric over all docs is called among metrics over categories: ``average``, ``seed_all``, ``overall_accuracy``."""
_ONLY_A_FILE = "submission"
"""What lmms-eval calls a metric that writes the answers into a file and gives no number."""


def primary_of(spec: WrapSpec, native: list[str]) -> tuple[str, str]:
    """Return the metric behind the index, and a line on the choice; "" where there was none.

    It is the option's. Else it is the first in the task's list that its name says is over all docs; else the first. No
    scorer is called to find out: some write files.

    Args:
        spec: what was asked.
        native: the base's metrics, in the order of its list.

    Raises:
        CannotWrapError: there is no metric.
        OptionError: a task file names a metric that is not there.
    """
    wanted, about = spec.options.metric, ""
    if not native:
        raise CannotWrapError(f"{spec.name}: {spec.base} reports no metric")
    # under --predict_only the host leaves a single metric, whatever was asked
    if wanted is not None and native != [compat.OUTPUT_ONLY]:
        # only what a user wrote is refused; a shipped profile gives way
        if wanted not in native and "metric" in spec.options.given:
            raise OptionError(f"{spec.name}: {spec.base} has no metric {wanted!r}; allowed: {', '.join(native)}")
        if wanted in native:
            return wanted, ""
        about = f"its profile's metric {wanted!r} is not there; "
    numbers = [name for name in native if name != _ONLY_A_FILE] or native
    chosen, why = numbers[0], "the first,"
    if named := next(filter(_OVER_ALL.search, numbers), None):
        chosen, why = named, "the one over all docs by its name,"
    if len(native) > 1 and spec.sets:
        about += f"{len(native)} metrics; the index is built on {why} {chosen!r} (option 'metric' chooses another)"
    return chosen, about.removesuffix("; ")
