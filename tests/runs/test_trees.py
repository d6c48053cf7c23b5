"""Trees that differ in one place that is known by hand."""

import dataclasses

import numpy as np
import pytest

from lmms_patch.runs.details import Details, Made
from lmms_patch.runs.trees import differences, estimates, written_by
from lmms_patch.stats.resample import Estimate
from tests.making.finished import finish
from tests.making.recordings import record


@dataclasses.dataclass
class Leaf:
    value: float | None
    band: str = ""
    warnings: tuple[str, ...] = ()
    reason: str = ""


@dataclasses.dataclass
class Tree:
    LATE = {"later": 2}

    grids: dict[int, Leaf]
    shares: object = None
    later: int | None = None


def found(stored, fresh, version=3):
    return list(differences(stored, fresh, "analysis", version))


@pytest.mark.parametrize(
    ("stored", "fresh", "apart"),
    [
        (Tree({3: Leaf(0.5)}), Tree({3: Leaf(0.5 + 1e-9)}), []),
        (Tree({3: Leaf(0.5)}), Tree({3: Leaf(0.51)}), [("analysis.grids.3.value", 0.5, 0.51)]),
        (Tree({"3": Leaf(None)}), Tree({3: Leaf(float("nan"))}), []),
        (Tree({3: Leaf(0.5)}), Tree({3: Leaf(None)}), [("analysis.grids.3.value", 0.5, None)]),
        (Tree({3: Leaf(1, band="low")}), Tree({3: Leaf(1, band="high")}), [("analysis.grids.3.band", "low", "high")]),
        (Tree({3: Leaf(1, warnings=("few docs",))}), Tree({3: Leaf(1, warnings=("docs are few", "x"))}), []),
        (Tree({3: Leaf(1, reason="too few")}), Tree({3: Leaf(1, reason="few")}), []),
        (Tree({3: Leaf(1, reason="")}), Tree({3: Leaf(1, reason="few")}), [("analysis.grids.3.reason", "", "few")]),
        (Tree({}, [0.5, 0.5]), Tree({}, np.array([0.5, 0.5])), []),
        (Tree({}, [0.5]), Tree({}, np.array([0.5, 0.25])), [("analysis.shares (its length)", 1, 2)]),
        (Tree({}, [0.5, 0.5]), Tree({}, np.array([0.5, 0.25])), [("analysis.shares.1", 0.5, 0.25)]),
    ],
)
def test_a_difference_is_named_by_its_path_with_both_values(stored, fresh, apart):
    assert found(stored, fresh) == apart


def test_an_entry_that_only_one_tree_has_differs():
    one = Leaf(0.5)
    assert found(Tree({3: one}), Tree({})) == [("analysis.grids.3", one, None)]
    assert found(Tree({}), Tree({3: one})) == [("analysis.grids.3", None, one)]


def test_a_field_that_a_version_did_not_write_yet_differs_only_where_it_says_something():
    assert found(Tree({}), Tree({}, later=7), version=1) == []
    assert found(Tree({}), Tree({}, later=7), version=2) == [("analysis.later", None, 7)]
    assert found(Tree({}, later=6), Tree({}, later=7), version=1) == [("analysis.later", 6, 7)]


def test_a_tree_is_as_old_as_its_newest_field():
    assert (written_by(Tree({})), written_by({"a": [Tree({}, later=1)]})) == (0, 2)
    assert (written_by(Details(made=Made())), written_by(Details(made=Made(log="0" * 16)))) == (0, 1)


def test_every_estimate_of_a_result_is_found_with_its_path(tmp_path):
    from lmms_patch.runs.run import read

    made = [record(i, float(i % 3 > 0), {2: [0.0, 1.0, 0.0, 0.0]}) for i in range(30)]
    stored = read(finish(tmp_path, made)).results[0].stored
    known = dict(estimates(stored))
    assert known["analysis.grids.2.mpp"].value == 1.0
    assert all(isinstance(one, Estimate) for one in known.values())
    assert {"analysis.fip", "analysis.grids.2.index", "analysis.grids.2.gap"} <= set(known)
