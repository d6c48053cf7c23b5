"""Descriptions of other types are refused before a number is taken from them."""

import copy
import json

import pytest

from lmms_patch.errors import RecordError
from lmms_patch.runs import run
from lmms_patch.runs.details import wrong
from tests.making.runs import mc_run, never_looks, world_run, write_run


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
        (
            put("analysis", "grids", "2", "shares", "score", [0.2, 0.3, None, 0.5]),
            "shares.score must be a list with nothing but numbers, not null",
        ),
        (
            put("analysis", "grids", "2", "shares", "score", "0.5"),
            "shares.score must be a list with nothing but numbers, not '0.5'",
        ),
        (put("analysis", "grids", "x", {}), "a key of analysis.grids must be a whole number, not 'x'"),
        (put("analysis", None), "analysis must be an object, not null"),
        (put("settings", []), "settings must be an object, not a list"),
        (put("made", None), "made must be an object, not null"),
        (put("rci2", "0.9"), "rci2 must be a finite number or null, not '0.9'"),
        (put("gap2_low", float("nan")), "gap2_low must be a finite number, not nan"),
        (put("n_excluded2", {}), "n_excluded2 must be a finite number or null, not an object"),
        (put("acc_mpp2", True), "acc_mpp2 must be a finite number or null, not true"),
    ],
)
def test_what_somebody_changed_is_named(whole, change, said):
    data = copy.deepcopy(whole)
    change(parts(data)[1])
    assert said in wrong(*parts(data))


@pytest.mark.parametrize(
    "path",
    ["analysis.grids", "analysis.warnings", "analysis.chance.floors", "analysis.chance.reason", "analysis.gate.reason"],
)
def test_a_key_that_every_version_writes_is_missed(whole, path):
    data = copy.deepcopy(whole)
    part = parts(data)[1]
    *way, last = path.split(".")
    for key in way:
        part = part[key]
    del part[last]
    assert wrong(*parts(data)) == f"{path} is missing"


@pytest.mark.parametrize("key", ["wanted", "reason", "value", "difference"])
def test_a_comparison_with_wrong_images_is_whole(key, tmp_path):
    data = json.loads(write_run(tmp_path, {"toy_rci2": world_run(never_looks, n=60)}).read_text())
    (look,) = parts(data)[1]["analysis"]["gate"]["looks"]
    del look[key]
    assert wrong(*parts(data)) == f"analysis.gate.looks[0].{key} is missing"


@pytest.mark.parametrize(
    ("key", "value"), [("grids", "23"), ("grids", [1]), ("grids", [True]), ("options", None), ("metric", 3)]
)
def test_a_description_of_another_type_is_named(whole, key, value):
    data = copy.deepcopy(whole)
    parts(data)[0][key] = value
    assert key in wrong(*parts(data))


HOSTILE = "a - at `$.b`"
"""Reads like a place in an error of msgspec."""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"seed": -1, "images": "last"},
            "options: 2 faults: (1) images must be 'all' or 'first', not 'last'; (2) seed must be a whole number of at least 0, not -1",
        ),
        ({"images": HOSTILE}, f"options: images must be 'all' or 'first', not '{HOSTILE}'"),
        ({"of a later version": 1}, ""),
    ],
)
def test_options_are_held_to_what_a_task_file_may_set(whole, change, told):
    data = copy.deepcopy(whole)
    parts(data)[0]["options"] |= change
    assert wrong(*parts(data)) == told


@pytest.mark.parametrize("options", [[], 5, None])
def test_options_of_another_type_are_named_without_the_list_of_all_options(whole, options):
    data = copy.deepcopy(whole)
    parts(data)[0]["options"] = options
    assert wrong(*parts(data)).startswith("options must be an object, not ")


def test_a_text_that_reads_like_a_place_is_no_place(whole):
    data = copy.deepcopy(whole)
    parts(data)[0]["clip"] = {"count": 1, "fps": None, "reader": HOSTILE}
    assert wrong(*parts(data)) == f'clip.reader must be one of "", "qwen_vl_utils", not \'{HOSTILE}\''


def test_a_file_with_it_is_refused_in_one_line(whole, tmp_path):
    data = copy.deepcopy(whole)
    parts(data)[1]["analysis"]["fip"] = "high"
    (tmp_path / "1_results.json").write_text(json.dumps(data))
    with pytest.raises(RecordError, match=r"toy_rci2: analysis\.fip must be an object, not \'high\'"):
        run.read(tmp_path / "1_results.json")


ESTIMATE = {"value": 0.5, "se": 0.1, "low": 0.3, "high": 0.7, "n": 9, "clusters": 9, "draws": 100}
SET = {
    "n": "relevant",
    "band": None,
    "span": None,
    "shares": None,
    "adj": None,
    "luck_ceiling": None,
    "reason": "",
    "fip": 0.6,
    "mpp": ESTIMATE,
    "index": ESTIMATE,
    "gap": ESTIMATE,
    "excluded": 0,
    "warnings": [],
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: None, ""),
        (put("both", "9"), "analysis.regions.both"),
        (put("best", None), "analysis.regions.best"),
        (put("even", "high", 0.1), "analysis.regions.even"),
        (put("sets", "relevant", 5), "analysis.regions.sets.relevant"),
        (put("sets", "adversarial", "mpp", 0.5), "analysis.regions.sets.adversarial.mpp"),
        (put("mean", {}), "analysis.regions.mean has no relevant"),
    ],
)
def test_numbers_of_boxes_that_somebody_changed_are_named(whole, change, said):
    described, details = copy.deepcopy(parts(whole))
    regions = {
        "sets": {"relevant": SET, "adversarial": SET},
        "mean": {"relevant": ESTIMATE, "adversarial": ESTIMATE},
        "both": 9,
        "boxes": {},
        "left_out": {},
    }
    details["analysis"]["regions"] = json.loads(
        json.dumps({**regions, "best": ESTIMATE, "even": ESTIMATE, "average": ESTIMATE})
    )
    change(details["analysis"]["regions"])
    assert said in wrong(described, details)
    assert bool(said) == bool(wrong(described, details))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: None, ""),
        (put("numbers", "acc_exact", 0.5), "magic.numbers"),
        (put("numbers", {}), "magic.numbers has no 'acc_exact'"),
        (put("by_type", {"query": {"acc_exact": {}}}), "magic.by_type.query"),
        (put("warnings", "x"), "magic.warnings"),
        (put("judge", 5), "magic.judge"),
    ],
)
def test_numbers_of_magic_that_somebody_changed_are_named(whole, change, said):
    described = {**copy.deepcopy(parts(whole)[0]), "kind": "magic", "grids": []}
    magic = {
        "variant": "none",
        "metric": "acc_exact",
        "numbers": {"acc_exact": dict(ESTIMATE)},
        "counts": {},
        "warnings": [],
        "judge": None,
    }
    change(magic)
    found = wrong(described, {"records": 9, "magic": magic})
    assert said in found
    assert bool(said) == bool(found)
