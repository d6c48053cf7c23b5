"""Every number under its name: the same as the run wrote, with its interval."""

from types import SimpleNamespace

import numpy as np
import pytest

from lmms_patch.runs import run
from lmms_patch.runs.measures import full_marks, matching
from lmms_patch.stats.index import SIGNED
from tests.making.results import result as made_result
from tests.making.runs import again_run, mc_run, write_run


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    def change(data):
        data["results"]["toy_rci2"]["acc2,none"] = 0.25  # a second native metric
        data["results"]["toy_rci2"]["patch,none"].about["metrics"]["acc2"] = True

    made = {"toy_rci2": mc_run(n=200, seed=5, per_cluster=2)}
    return run.read(write_run(tmp_path_factory.mktemp("run"), made, change=change)).results[0]


def test_fip_is_the_mean_of_the_docs_scores_counted_by_hand(result, tmp_path):
    _, records, _ = mc_run(n=200, seed=5, per_cluster=2)
    full = [record["views"][0]["scores"]["acc"] for record in records]
    best = [max(view["scores"]["acc"] for view in record["views"][1:]) for record in records]
    found = result.measures
    assert found["fip"].value == pytest.approx(np.mean(full))
    assert found["mpp2"].value == pytest.approx(np.mean(best))
    assert found["rci2"].value == pytest.approx(1 - np.mean(best) / np.mean(full))
    assert found["fip"].clusters == 100


def test_other_native_metrics_have_no_interval(result):
    found = result.measures["acc2"]
    assert (found.value, found.low, found.se) == (0.25, None, None)
    assert "no interval" in found.reason


def test_near_chance_keeps_the_reason(tmp_path):
    path = write_run(tmp_path, {"toy_rci2": again_run(("unsolved",))})
    found = run.read(path).results[0].measures
    for name in ("rci2", "rci2_steady"):
        assert found[name].value is None
        assert "near chance" in found[name].reason
    assert found["fip"].value is not None


def test_wildcards_take_rci_and_pcri_for_one():
    names = {"fip": 0, "pcri2": 0, "pcri3": 0, "pcri3_steady": 0, "gap3": 0}
    assert matching(names, "rci3") == ["pcri3"]
    assert matching(names, "pcri?") == ["pcri2", "pcri3"]
    assert matching(names, "*3") == ["pcri3", "gap3"]
    assert matching(names, "rci9") == []


@pytest.mark.parametrize(
    ("analysis", "options", "marks"),
    [
        ({"form": "mean", "ceiling": 1.0}, {}, 1.0),
        ({"form": "percent", "ceiling": 98.0}, {"scale": 100}, 100.0),
        ({"form": "mme", "ceiling": 200.0}, {}, None),
        ({"form": "mean", "ceiling": None}, {}, None),
        ({"form": "mean", "ceiling": 1.0}, {"signed": True}, None),
        ({"form": "mean", "ceiling": 1.0, "grids": {"2": {"reason": SIGNED}}}, {}, None),
        ({"form": "mean", "ceiling": 1.0, "grids": {"2": {"reason": "near chance"}}}, {}, 1.0),
    ],
)
def test_the_scale_of_a_mean_is_from_0_to_full_marks_or_unknown(analysis, options, marks):
    sets = {key: SimpleNamespace(**grid) for key, grid in analysis.get("grids", {}).items()}
    assert (
        full_marks(SimpleNamespace(form=analysis["form"], ceiling=analysis["ceiling"], sets=sets), **options) == marks
    )


def test_text_only_numbers(tmp_path):
    grouped = {
        "accuracy": {"value": 0.5, "se": 0.1, "low": 0.3, "high": 0.7, "n": 90, "clusters": 90, "draws": 1000},
        "majority": 0.4,
        "seeds": 3,
        "sd": None,
        "p": 0.1,
    }
    grouped["above"] = {**grouped["accuracy"], "value": 0.1, "low": -0.1, "high": 0.3}
    details = {
        "headline": "none",
        "by_grouping": {"none": grouped},
        "chance": 0.25,
        "leakage": None,
        "zero_shot": None,
        "delta": None,
        "s": 0.45,
    }
    found = made_result("m", "toy", "tst", task="toy_tst5", tst_details=details, docs=90).measures
    assert found["tst"].value == 0.5
    over = found["tst_over_chance"]
    assert (over.value, over.low, over.high) == pytest.approx((0.25, 0.05, 0.45))
    assert found["tst_above"].value == 0.1
    assert found["tst_s"].value == 0.45
    assert "tst_leakage" not in found
