"""What was planted into the embedded benchmark is what a real run of the embedded model finds: one run from the installed command, and its readers."""

from __future__ import annotations

import json
import subprocess

import pytest
import yaml

from lmms_patch.rci.recompute import Changes, load, recompute
from lmms_patch.resources import folder
from lmms_patch.runs.numbers import flat_names
from lmms_patch.runs.results import results_files
from lmms_patch.runs.run import read
from tests.harness.command import BIN, INSTALLED, details, lmms_eval, metrics, samples

FAMILIES = ("local", "center", "count", "sum", "same", "larger", "text")

pytestmark = pytest.mark.cli


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The demo's own run, and the blind one, on the first 60 of the 120 docs of each family: what was planted is far beyond their standard errors."""
    out = tmp_path_factory.mktemp("planted")
    asked = ("--model", "mosaic_vlm", "--batch_size", 32, "--tasks", "mosaic_rci,mosaic_blind", "--limit", 60)
    lmms_eval(*asked, "--output_path", out, "--log_samples", command=INSTALLED)
    return out


@pytest.mark.parametrize("family", ["local", "center"])
def test_one_cell_answers_local_questions_better_than_the_sheet(planted, family):
    found = metrics(planted)[f"mosaic_{family}_rci"]
    assert found["acc"] > 0.5
    assert found["rci2"] < 0
    assert found["rci3"] < 0


@pytest.mark.parametrize("family", ["count", "sum", "same"])
def test_global_questions_need_the_sheet(planted, family):
    found = metrics(planted)[f"mosaic_{family}_rci"]
    assert found["gate"] == 1
    assert found["acc"] > found["chance"] + 0.1
    assert found["rci2"] > 0.3
    assert found["rci3"] > 0.3


def test_one_family_is_near_chance(planted):
    """Yes/no with balanced golds: within three standard errors of 0.5."""
    found = metrics(planted)["mosaic_larger_rci"]
    assert abs(found["acc"] - 0.5) < 3 * 0.5 / found["n_docs"] ** 0.5
    assert found["chance"] == 0.5
    assert found["gate"] == 0
    assert found["rci2"] is found["rci3"] is found["rci3_adj"] is found["gap3"] is None
    assert found["acc_mpp3"] is not None


def test_the_floor_is_the_best_uninformed_answer(planted):
    """By hand from golds and strata: the most frequent gold of all docs of a format, or of the other docs that are asked alike."""
    for family in FAMILIES:
        lines = list(samples(planted, f"mosaic_{family}_rci").values())
        golds = [line["target"] for line in lines]
        strata = [line["patch"]["stratum"] for line in lines]
        right = 0
        for gold, own in zip(golds, strata, strict=True):
            alike = [g for g, other in zip(golds, strata, strict=True) if f"{other} |".startswith(f"{own} |")]
            alike.remove(gold)  # the doc says nothing of itself
            right += gold == max(sorted(set(alike)), key=alike.count)
        found = metrics(planted)[f"mosaic_{family}_rci"]
        formats = ["yesno" if gold in ("yes", "no") else "letter" if gold in "ABCD" else "number" if gold.isdigit() else "word" for gold in golds]
        by_format = [[gold for gold, other in zip(golds, formats, strict=True) if other == kind] for kind in sorted(set(formats))]
        majority = sum(max(map(alike.count, alike)) for alike in by_format) / len(golds)
        assert majority <= found["chance"] == pytest.approx(max(majority, right / len(golds)), abs=0.03)  # ties between golds
        assert found["ceiling"] == 1.0


@pytest.mark.parametrize("family", ["local", "center"])
def test_local_families_are_local_beyond_doubt_and_luck(planted, family):
    """Intervals below 0; and with luck removed: one cell of nine guesses among ten digits, which earns it little."""
    found = metrics(planted)[f"mosaic_{family}_rci"]
    for n in (2, 3):
        assert found[f"rci{n}_low"] < found[f"rci{n}"] < found[f"rci{n}_high"] < 0
        assert found[f"rci{n}_adj_high"] < 0.05
        assert found[f"gap{n}_low"] < found[f"gap{n}"] < found[f"gap{n}_high"] < 0


def test_global_families_are_global_with_luck_removed(planted):
    for family in ("count", "sum", "same"):
        luck = details(planted, f"mosaic_{family}_rci")["analysis"]["grids"]["3"]["adj"]
        assert (luck["null"], luck["estimate"]["low"] > 0.5) == ("measured", True)


def test_a_family_that_the_text_answers_is_refused_everywhere(planted, tmp_path):
    """It gets every answer right, on every view: the gate, the board and a build must all say that the model does not look."""
    found = details(planted, "mosaic_text_rci")
    assert found["fip0"] == 1.0
    assert found["analysis"]["gate"]["reason"].startswith("the answers do not depend on the image")
    assert (found["gate"], found["rci3"], found["rci3_adj"], found["gap3"]) == (0, None, None, None)

    def lmms_patch(*arguments):
        return subprocess.run([str(BIN / "lmms-patch"), *map(str, arguments)], capture_output=True, text=True)

    printed = lmms_patch("show", planted).stdout
    assert "No image is needed for mosaic_text (acc 1.000 with its images, 1.000 with wrong images)" in " ".join(printed.split())
    assert lmms_patch("leaderboard", planted, "--output", tmp_path / "board", "--quiet").returncode == 0
    board = json.loads(next((tmp_path / "board").rglob("*.json")).read_text())
    rows = [row for row in _objects(board) if row.get("benchmark") == "mosaic_text" or row.get("task") == "mosaic_text_rci"]
    assert rows
    assert all(row.get("rank") is None and row.get("rank_first") is None for row in rows)
    rules = yaml.safe_load((folder("configs") / "gates" / "model-compliance.yaml").read_text())
    rules["rules"] = [{**rule, "allow_limit": True} if "metric" in rule else rule for rule in rules["rules"]]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    judged = lmms_patch("gate", planted, "--config", tmp_path / "rules.yaml", "--json", tmp_path / "gate.json")
    assert judged.returncode == 1
    verdicts = [one for one in json.loads((tmp_path / "gate.json").read_text())["verdicts"] if one["task"] == "mosaic_text_rci"]
    assert "fail" in {one["verdict"] for one in verdicts}


def _objects(value):
    """Every object within a JSON value."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return ([value] if isinstance(value, dict) else []) + [found for one in inner for found in _objects(one)]


def test_the_middle_is_where_the_center_family_lives(planted):
    """Its digit is always in the middle cell of nine; the local family's may be in any."""
    results = {r.task: r.details["analysis"]["grids"]["3"]["shares"] for r in read(results_files(planted)[-1]).results if "_rci" in r.task}
    shares = results["mosaic_center_rci"]
    assert max(range(9), key=lambda c: shares["score"][c]) == 4
    assert shares["score"][4] > 0.9
    assert shares["centre"] > 8
    assert shares["p"] == 0.001
    assert shares["p_cells"][4] < 0.01
    assert max(results["mosaic_local_rci"]["score"]) < 0.25


def test_a_finished_run_gives_the_same_numbers_again(planted):
    runs = load(planted)
    assert len(runs) == len(FAMILIES)
    for run in runs:
        names = flat_names("rci", [2, 3])
        again = recompute(run)
        assert {name: again.metrics[name] for name in names} == {name: run.result.metrics[name] for name in names}
        assert recompute(run, Changes(draws=500)).metrics["chance"] == again.metrics["chance"]


def test_a_blind_run_beside_it_says_whether_the_model_looks_too(planted):
    """Blind, the text family is right everywhere, and the others score next to nothing: both conditions agree."""
    found = {run.result.described["base"]: recompute(run).analysis.gate for run in load(planted)}
    for family in ("text", "sum", "local"):
        looks = {one.against: one.value for one in found[f"mosaic_{family}"].looks}
        assert looks == dict.fromkeys(("wrong images", "blind"), family != "text")


def test_blind_only_the_text_family_survives(planted):
    found = metrics(planted)
    assert found["mosaic_text_blind"]["acc"] > 0.9
    for family in set(FAMILIES) - {"text"}:
        assert found[f"mosaic_{family}_blind"]["acc"] < 0.15


def test_numbers_follow_from_the_log(planted):
    """FIP, MPP and RCI recomputed from the answers and golds of the sample log alone."""
    for family in FAMILIES:
        task = f"mosaic_{family}_rci"
        rows = [
            (line["target"].lower(), [a.strip().lower().removesuffix(".") for a in line["filtered_resps"]])
            for line in samples(planted, task).values()
        ]
        fip = sum(got[0] == gold for gold, got in rows) / len(rows)
        mpp3 = sum(gold in got[5:14] for gold, got in rows) / len(rows)  # after the doc's own views: those of a wrong image
        found = metrics(planted)[task]
        assert found["acc"] == pytest.approx(fip)
        assert found["acc_mpp3"] == pytest.approx(mpp3)
        assert found["rci3"] == (pytest.approx(1 - mpp3 / fip) if family not in ("larger", "text") else None)


def test_show_prints_the_table(planted):
    printed = subprocess.run([str(BIN / "lmms-patch"), "show", str(planted)], capture_output=True, text=True, check=True).stdout
    told = " ".join(printed.split())
    assert "mosaic_count_rci" in told
    assert "1.00, cells mislead" in told
    assert "single cells mislead in mosaic_count (" in told
    for family in ("same", "sum"):
        assert f"mosaic_{family} (RCI_3 +1.00" in told.split("The whole image is needed for ")[1].split("single cells")[0]
