"""The Test-set Stress-Test as a method (``ask.methods``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lmms_patch.ask.methods import Method
from lmms_patch.runs.numbers import Stress
from lmms_patch.runs.record import Record
from lmms_patch.tst.results import ROWS, flat, stress


class _Tst(Method):
    rows = ROWS

    def recompute(self, records: Sequence[Record], *, seed: int) -> Stress | None:
        return stress(records, seed=seed)

    def flat(self, found: Stress | None) -> Mapping[str, float | None]:
        return flat(found)


METHOD = _Tst()
