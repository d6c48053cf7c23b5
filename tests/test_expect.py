"""Descriptions of other types are refused before a number is taken from them."""

import copy
import json

import pytest

from lmms_patch import runs
from lmms_patch.errors import RecordError
from lmms_patch.expect import wrong
from tests.runs import mc_run, write_run


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return json.loads(write_run(tmp_path_factory.mktemp("run"), {"toy_rci2": mc_run(n=60, seed=3)}).read_text())


def parts(data):
    return data["configs"]["toy_rci2"]["lmms_patch"], data["results"]["toy_rci2"]["patch,none"]


def test_what_we_write_is_right(whole):
    assert wrong(*parts(whole)) == ""


def put(*keys):
    *path, last, value = keys

    def change(found):
        for key in path:
            found = found[key]
        found[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("settings", 5), "settings"),
        (put("higher_is_better", [1]), "higher_is_better"),
        (put("records", float("inf")), "records"),
        (put("analysis", "x"), "analysis"),
        (put("analysis", "fip", "high"), "analysis.fip"),
        (put("analysis", "fip", "value", "high"), "analysis.fip"),
        (put("analysis", "fip", "low", 2.0), "analysis.fip"),  # an interval that ends before it starts
        (put("analysis", "warnings", [5]), "analysis.warnings"),
        (put("analysis", "chance", None), "analysis.chance"),
        (put("analysis", "chance", "floors", "uniform", 0.25), "floors"),
        (put("analysis", "gate", "valid", 1), "gate.valid"),
        (put("analysis", "grids", [2]), "analysis.grids"),
        (put("analysis", "grids", "2", "index", None), "grids.2.index"),
        (put("analysis", "grids", "2", "adj", {}), "grids.2.adj"),
        (put("analysis", "grids", "2", "shares", "score", [0.5, 0.5]), "shares are not of 4 cells"),
        (put("analysis", "grids", "2", "shares", "p_cells", None), "shares are not of 4 cells"),
        (put("analysis", "grids", "x", {}), "no grid: 'x'"),
    ],
)
def test_what_somebody_changed_is_named(whole, change, said):
    data = copy.deepcopy(whole)
    change(parts(data)[1])
    assert said in wrong(*parts(data))


@pytest.mark.parametrize(("key", "value"), [("grids", "23"), ("grids", [1]), ("grids", [True]), ("options", None), ("metric", 3)])
def test_a_description_of_another_type_is_named(whole, key, value):
    data = copy.deepcopy(whole)
    parts(data)[0][key] = value
    assert key in wrong(*parts(data))


def test_a_file_with_it_is_refused_in_one_line(whole, tmp_path):
    data = copy.deepcopy(whole)
    parts(data)[1]["analysis"]["fip"] = "high"
    (tmp_path / "1_results.json").write_text(json.dumps(data))
    with pytest.raises(RecordError, match=r"toy_rci2: analysis\.fip is of another type"):
        runs.read(tmp_path / "1_results.json")
