"""The ``import`` commands from Python, such as ``api.import_.vlmevalkit``; they return data and print nothing.

A user's mistake raises ``lmms_patch.errors.PatchError``, whose message is one line.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_patch.errors import OptionError

if TYPE_CHECKING:
    from lmms_patch.rci.imported import Imported


def vlmevalkit(
    paths: str | Path | Sequence[str | Path],
    *,
    output: str | Path = "out/imported",
    model: str | None = None,
    crop: str | None = None,
    score: str | None = None,
    judge: str | None = None,
    cluster: str | None = None,
    category: str = "category",
    chance: float | None = None,
    scale: float = 1.0,
    trust_pickle: bool = False,
) -> list[Imported]:
    """Read results of VLMEvalKit as finished runs, and write these.

    Args:
        paths: folders or files that VLMEvalKit wrote.
        output: the folder for the runs, one folder for each model.
        model: the model, with which files' names begin; None: the name of a folder above them.
        crop: how datasets of cells are named, such as ``{dataset}_patch_{n}_{row}_{col}``; None: usual forms
        (``runs.vlmevalkit.CROPS``).
        score: the column of scores; None: the first of ``runs.vlmevalkit.SCORES``.
        judge: whose scores, where a dataset has several.
        cluster: the column whose equal values make docs one cluster.
        category: the column of categories.
        chance: what an uninformed answer scores, on the metric's own scale.
        scale: full marks of a score.
        trust_pickle: read pickles, which can run any code.

    Raises:
        PatchError: files that cannot be read, do not fit together or have no scores.
    """
    from lmms_patch.rci import imported
    from lmms_patch.runs import vlmevalkit as kit
    from lmms_patch.stats.bounds import LARGEST

    if not 0 < scale <= LARGEST:
        raise OptionError(f"--scale {scale:g}: full marks must be a number above 0, and at most {LARGEST:g}")
    if chance is not None and not 0 <= chance <= scale:
        raise OptionError(f"--chance {chance:g}: must lie between 0 and the full marks, {scale:g}")
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = kit.find([Path(one) for one in given], kit.Asked(model, crop, score, judge, trust_pickle))
    return imported.write(found, imported.Stated(cluster, category, chance, scale), Path(output))
