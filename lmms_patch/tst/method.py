"""The Test-set Stress-Test as a method (``ask.methods``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from lmms_patch.ask.methods import Method
from lmms_patch.runs.details import TstDetails
from lmms_patch.runs.numbers import Stress, to_json
from lmms_patch.runs.run import Result
from lmms_patch.runs.typed import read_as
from lmms_patch.tst.results import NEEDED, ROWS, flat, stress


class _Tst(Method):
    rows = ROWS

    def recompute(self, samples: pl.DataFrame, about: Mapping[str, Any], *, seed: int) -> Stress | None:
        return stress(samples, about.get("grouping", "none"), seed=seed)

    def beside(self, result: Result) -> TstDetails | None:
        about = result.about
        found = self.recompute(result.frame(NEEDED), about.tst, seed=about.settings.seed)
        return None if found is None else read_as({**about.tst, **to_json(found)}, TstDetails, f"{result.path}: tst")

    def flat(self, found: Stress | None) -> Mapping[str, float | None]:
        return flat(found)


METHOD = _Tst()
