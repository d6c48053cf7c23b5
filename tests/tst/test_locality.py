"""Locality of docs: hand-derived cases, and worlds in which it is known which docs a cell solves."""

import math

import numpy as np
import pytest

from lmms_patch.errors import RecordError
from lmms_patch.rci.recompute import load
from lmms_patch.tst import locality as module
from tests.making.runs import as_records, mc_run, write_run


def locality(records, *arguments, **options):
    return module.locality(as_records(records), *arguments, **options)


def scores(records, *arguments):
    return dict(module.locality(as_records(records), *arguments).scores)


def record(doc_id, cells, lent=(), *, kind="rci", excluded=False, grids=(2,), metrics=("acc",)):
    """A doc with the scores of its cells at grid 2, and what its best cell's answer scores for others: ``(to, score)``."""
    views = [{"kind": "full", "scores": dict.fromkeys(metrics, 1.0), "items": {}}]
    views += [
        {
            "kind": "cell",
            "n": 2,
            "cell": i + 1,
            "row": i // 2,
            "col": i % 2,
            "scores": dict.fromkeys(metrics, s),
            "items": {},
        }
        for i, s in enumerate(cells)
    ]
    scored = [s for s in cells if s is not None]
    best = {} if excluded or not scored else {"2": 1 + cells.index(max(scored))}
    loans = {
        "to": [to for to, _ in lent],
        "p": list(range(len(lent))),
        "full": [0.0 for _ in lent],
        "best": {"2": [score for _, score in lent]},
    }
    out = {
        "schema": 2,
        "task": f"toy_{kind}2",
        "kind": kind,
        "grids": list(grids),
        "doc_id": doc_id,
        "views": views,
        "best": best,
    }
    return {**out, "excluded": {"2": "too small"} if excluded else {}, **({"lent": loans} if lent else {})}


def test_hand_derived_scores():
    records = [
        record(10, [0.0, 1.0, 0.0, 0.0], [(11, 1.0), (12, 0.0)]),
        record(11, [0.0, 0.0, 0.0, 0.0], [(10, 0.0), (12, 1.0)]),
        record(12, [1.0, 1.0, 1.0, 1.0], [(10, 1.0), (11, 1.0), (10, 0.0), (10, 0.0)]),
    ]
    # 10: solved; its donors score 0, 1, 0, 0. 11: not solved; 1, 1. 12: solved; 0, 1
    assert scores(records, 2) == {10: 0.75, 11: -1.0, 12: 0.5}
    assert locality(records, 2).warnings == ()


def test_what_is_not_known_is_nan_and_counted():
    records = [
        record(0, [1.0, 0.0, 0.0, 0.0], [(1, 0.0), (2, 0.0), (3, None)]),
        record(1, [0.0, 0.0, 0.0, 0.0], excluded=True),
        record(2, [None, None, None, None]),
        record(3, [1.0, 0.0, 0.0, 0.0]),
    ]
    found = locality(records, 2)
    assert all(math.isnan(score) for score in found.scores.values())
    assert (found.unusable, found.without_donor) == (2, 2)
    assert found.warnings[0] == "2 of 4 docs have no locality: they could not be used at grid 2"
    assert found.warnings[1].startswith("2 of 4 docs have no locality: no other doc")


def test_where_lower_is_better_the_sign_is_turned():
    records = [record(0, [0.25, 0.5, 1.0, 1.0], [(1, 1.0)]), record(1, [1.0] * 4, [(0, 0.75)])]
    records[0]["best"] = {"2": 1}  # the run chose the lowest
    assert locality(records, 2, higher=False).scores == {0: 0.5, 1: 0.0}


def test_the_default_is_the_finest_grid():
    spec, records, _ = mc_run(n=60, grid=3)
    assert locality(records).grid == 3
    assert scores(records) == scores(records, 3)
    assert spec.grids == (3,)


LUCK = 1 - 0.75**4
"""What four cells that guess, or a donor's four cells, score on four options."""


def test_docs_that_a_cell_solves_are_above_those_that_are_guessed():
    """Cell 1 knows 40 % of the docs; in the rest all four cells guess, as well as a donor's do."""
    values = np.concatenate([list(scores(mc_run(n=400, know_cell=0.4, seed=s)[1], 2).values()) for s in range(3)])
    assert (np.abs(values) <= 1).all()
    assert np.mean(values) == pytest.approx(0.4 * (1 - LUCK), abs=0.03)


def test_where_all_cells_guess_locality_is_zero_on_average():
    values = np.concatenate([list(scores(mc_run(n=400, know_cell=0.0, seed=s)[1], 2).values()) for s in range(4)])
    assert np.mean(values) == pytest.approx(0, abs=0.03)


def test_from_a_finished_run(tmp_path):
    made = mc_run(n=60)
    write_run(tmp_path, {"toy_rci2": made})
    (run,) = load(tmp_path)
    found = locality(run.records, metric=run.result.described["metric"])
    assert (found.grid, found.metric, len(found.scores)) == (2, "acc", 60)
    assert dict(found.scores) == scores(made[1])


def test_permuting_docs_changes_nothing():
    _, records, _ = mc_run(n=60)
    assert scores(records) == scores(records[::-1])


def test_a_pcri_run_will_do():
    _, records, _ = mc_run(n=40)
    assert scores([{**r, "kind": "pcri"} for r in records]) == scores(records)


@pytest.mark.parametrize(
    ("records", "n", "metric", "says"),
    [
        ([], 2, None, "no docs: locality needs the records of an rci or pcri run"),
        (
            [record(0, [1.0] * 4, kind="occlude")],
            2,
            None,
            "toy_occlude2: a run of kind occlude; locality needs one of kind rci or pcri",
        ),
        ([record(0, [1.0] * 4)], 3, None, "toy_rci2: no grid 3 in this run; allowed: 2"),
        ([record(0, [1.0] * 4)], 2, "f1", "toy_rci2: no metric 'f1' in the log; allowed: acc"),
        (
            [record(0, [1.0] * 4, metrics=("acc", "f1"))],
            2,
            None,
            "several metrics; say which is the primary one: acc, f1",
        ),
        ([record(0, [1.0] * 4, metrics=())], 2, None, "allowed: none (nothing was scored)"),
    ],
)
def test_bad_input_is_one_line(records, n, metric, says):
    with pytest.raises(RecordError) as error:
        locality(records, n, metric)
    assert says in str(error.value)
    assert "\n" not in str(error.value)
