"""The columns of the samples table: one Parquet file a task, a row a doc and view; it is the whole record of a run (docs/tables.md).

Null: does not apply, or is not known. A column that is null in every row is left out of the file. Scalars of a doc
stand in each of its rows, lists of a doc in its first row alone (``view == 0``). A *set* of views is a grid (``"3"``),
``windows3``, ``relevant``, ``adversarial``, ``beside`` or ``full``.
"""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from lmms_patch.ask.kinds import MAX_FRAMES, MAX_GRID
from lmms_patch.stats.bounds import LARGEST, MOST

FLAG, TEXT, REAL, WHOLE, PLACE, SMALL = pl.Boolean(), pl.String(), pl.Float64(), pl.Int64(), pl.Int32(), pl.Int16()
TEXTS, PLACES, BOXES = pl.List(TEXT), pl.List(SMALL), pl.List(pl.List(PLACE))


def listed(**fields: Any) -> pl.List:
    """Return the type of a list of structs."""
    return pl.List(pl.Struct(fields))


SIZES = listed(width=PLACE, height=PLACE, frames=PLACE, seconds=REAL)
COLUMNS: Final[tuple[tuple[str, Any, str], ...]] = (
    # --- which view
    ("filter", TEXT, "the harness's filter pipeline, where the task has several"),
    ("doc_id", WHOLE, "row: the doc's row in the base task's eval split"),
    ("view", PLACE, "place: from 0, in the order of asking: the doc's own views, then those on a wrong image"),
    (
        "kind",
        TEXT,
        "full, cell, window, segment, region, hidden, occlude, lowres, blind, blank, caption, shuffle, ...",
    ),
    ("swapped", FLAG, "shown on another doc's image (`wrong_from`)"),
    ("wrong_from", WHOLE, "row: the doc whose image a swapped view shows"),
    ("n", SMALL, "grid size, segments, frames or reduction"),
    ("cell", SMALL, "number: of the cell or segment, row by row from 1"),
    ("row", SMALL, "cells: from 0; of a window in half cells"),
    ("col", SMALL, "cells: from 0; of a window in half cells"),
    ("region", PLACE, "place: of the box in the doc's list, from 1"),
    ("relevant", FLAG, "the box (or the hidden set) is relevant; false: adversarial"),
    ("hidden", REAL, "share: of the image that is hidden, 0 to 1"),
    ("boxes", BOXES, "pixels: [left, top, right, bottom] of regions and hidden boxes; cells follow from `shown`"),
    ("turn", SMALL, "places: by which the options are moved"),
    (
        "repeat",
        SMALL,
        "number of the asking, of a doc that is asked again; null: the first, whose views all numbers but the composition are of",
    ),
    ("gold_at", PLACE, "place: of the gold among the options as this view shows them, from 1; 0: it is none of them"),
    # --- what came back
    ("answer", TEXT, "after the filter; may be left out (licence): no number needs it"),
    ("answer_no", SMALL, "number of the answer among the doc's different ones, of a doc that is asked again, from 0"),
    (
        "as_gold",
        REAL,
        "share of the docs asked alike whose gold the answer is, of a doc without options that is asked again",
    ),
    ("names", PLACE, "place: of the option that the answer names, in the doc's own order from 1; 0: none"),
    ("losses", pl.List(REAL), "nats: of each option, of a task that compares log-likelihoods; the lowest wins"),
    ("score", REAL, "metric: by the primary metric, on its own scale; `score.<metric>` by each other one"),
    ("said_yes", FLAG, "the answer is the positive label (F1 and other counts)"),
    ("gold_yes", FLAG, "the gold is the positive label"),
    ("best", FLAG, "the best of its set by the primary metric (occlude: the worst)"),
    ("failed", TEXT, "what came in place of an answer"),
    ("error", TEXT, "the scorer's or filter's exception"),
    ("unfinished", FLAG, "cut by the token limit"),
    ("denied", FLAG, "reads as the gold, but does not get its marks"),
    ("caption", TEXT, "the description that stood in place of the image"),
    ("judged", TEXT, "what a judge said, as JSON"),
    ("tokens_in", PLACE, "tokens: of the request, where the adapter counts them"),
    ("tokens_out", PLACE, "tokens: of the answer, likewise"),
    # --- the doc
    ("question", TEXT, "the prompt; may be left out"),
    ("prompt_digest", TEXT, "digest: of the prompt, 16 hex digits"),
    ("doc_digest", TEXT, "digest: of golds and options, 16 hex digits"),
    ("gold", TEXT, "the right answer"),
    ("options", TEXTS, "in the doc's own order; first row only; may be left out"),
    ("choices", PLACE, "options: how many options the doc has; 0: none"),
    ("label", TEXT, "answer class: mc4, yesno, number, open, caption"),
    ("category", TEXT, "value of the field that the option `category` names; likewise the next two"),
    ("cluster", TEXT, "docs that are drawn together"),
    ("group", TEXT, "rows of one question (circular)"),
    ("stratum", TEXT, "docs that are alike"),
    ("images", TEXT, "digest: of the images shown, 16 hex digits"),
    # --- lists of the doc: first row only
    ("shown", SIZES, "pixels, s: images, or clips, of the full view"),
    ("wrong_shown", SIZES, "pixels, s: the same of the wrong image"),
    (
        "excluded",
        listed(set=TEXT, why=TEXT),
        "sets that the doc is not used for; `turns`: not asked in other orders",
    ),
    (
        "references",
        listed(answer=TEXT, roles=TEXTS, metric=TEXT, score=REAL, said_yes=FLAG, gold_yes=FLAG),
        "metric: golds and uninformed answers, scored; roles: gold, option, constant, stratum, other",
    ),
    (
        "quick",
        pl.Struct(
            {
                "block": SMALL,
                "steps": SMALL,
                "p_full": REAL,
                "p_cells": REAL,
                "unasked": PLACE,
                "full": REAL,
                "expected": listed(set=TEXT, before=REAL, after=REAL),
            }
        ),
        "metric: how a run that leaves views out asked the doc (docs/quick.md)",
    ),
    (
        "tst",
        pl.Struct(
            {
                "fold": SMALL,
                "source": TEXT,
                "text": WHOLE,
                "copies": TEXT,
                "s": REAL,
                "chance": REAL,
                "s_minus_chance": REAL,
                "delta": REAL,
                "zero_s": REAL,
                "zero_score": REAL,
                "answers": TEXTS,
                "folds": listed(grouping=TEXT, seed=SMALL, score=REAL, baseline=REAL),
            }
        ),
        "metric: held-out answers, from the text alone (docs/tst.md)",
    ),
    (
        "magic",
        pl.Struct(
            {
                "id": TEXT,
                "item": TEXT,
                "type": TEXT,
                "boxes": SMALL,
                "relevant": PLACES,
                "used": PLACES,
                "invented": PLACES,
                "dismissed": PLACES,
                "steps": SMALL,
                "answer": TEXT,
                "found": FLAG,
                "exact": FLAG,
                "synonym": FLAG,
                "short": FLAG,
                "full": FLAG,
                "healed": FLAG,
                "asked": TEXT,
                "first": TEXT,
                "last": TEXT,
            }
        ),
        "boxes that the reasoning names, and verdicts (docs/magic.md)",
    ),
)
"""Name, type and meaning, a unit before the colon."""
TYPES: Final[dict[str, Any]] = {name: kind for name, kind, _ in COLUMNS}
OF_VIEW: Final = tuple(TYPES)[: list(TYPES).index("question")]
"""Columns whose value may differ from view to view."""
LISTS: Final = tuple(name for name, kind in TYPES.items() if kind.is_nested() and name not in ("boxes", "losses"))
"""Columns that are filled in a doc's first row alone."""
OF_DOC: Final = tuple(name for name in TYPES if name not in (*OF_VIEW, *LISTS))
MAY_LACK: Final = ("answer", "caption", "question", "options", "judged")
"""Texts that a licence may forbid to pass on: no number needs them."""
OTHER_METRIC, FIELD = "score.", "doc."
"""The beginnings of the names of columns beside these: scores by another metric, and short fields of the doc."""
RANGES: Final[dict[str, tuple[float, float]]] = {
    "doc_id": (0, 10**15),
    "wrong_from": (0, 10**15),
    "n": (1, MAX_FRAMES),
    "cell": (1, MAX_GRID**2),
    "row": (0, 2 * MAX_GRID),
    "col": (0, 2 * MAX_GRID),
    "hidden": (0, 1),
    "turn": (0, 25),
    "gold_at": (0, MOST),
    "names": (0, MOST),
    "choices": (0, MOST),
    "score": (-LARGEST, LARGEST),
    "tokens_in": (0, MOST),
    "tokens_out": (0, MOST),
}
"""The least and the most of columns of numbers."""
