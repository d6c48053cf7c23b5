"""What was planted into the embedded benchmark is found in a run of the embedded model.

The run is the demo's own, of all docs, as ``scripts/docs/runs.tar.xz`` keeps it; its numbers are made anew of its
answers. The same command is run here on the first docs of each family: they get the same answers, scores and boxes, and
its numbers follow from them in the same way.
"""

from __future__ import annotations

import json
import re

import pytest
import yaml

from lmms_patch.app.cli import main
from lmms_patch.rci.recompute import Changes, load, recompute
from lmms_patch.resources import folder
from lmms_patch.runs import catalogue
from tests import stored
from tests.harness.command import INSTALLED, answers, lmms_eval, metrics, samples
from tests.sizes import size

FAMILIES = ("local", "center", "count", "sum", "same", "larger", "text")
DOCS = size(2, 60)
"""Of each family's 120."""

pytestmark = pytest.mark.cli


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The folder of the stored run."""
    return stored.demo(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def today(planted):
    """By task, the results that this version makes of the answers of the stored run."""
    return {run.result.task: recompute(run).result for run in load(planted)}


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """The demo's command, installed and started from nothing, on the first docs of each family."""
    out = tmp_path_factory.mktemp("live")
    asked = ("--model", "mosaic_vlm", "--batch_size", 32, "--tasks", "mosaic_rci,mosaic_blind", "--limit", DOCS)
    printed = lmms_eval(*asked, "--output_path", out, "--log_samples", command=INSTALLED)
    (out / "printed.txt").write_text(printed, encoding="utf-8")
    return out


@pytest.mark.parametrize("family", ["local", "center"])
def test_one_cell_answers_local_questions_better_than_the_sheet(today, family):
    found = today[f"mosaic_{family}_rci"].metrics
    assert found["acc"] > 0.5
    assert found["rci2"] < 0
    assert found["rci3"] < 0


@pytest.mark.parametrize("family", ["count", "sum", "same"])
def test_global_questions_need_the_sheet(today, family):
    found = today[f"mosaic_{family}_rci"].metrics
    assert found["gate"] == 1
    assert found["acc"] > found["chance"] + 0.1
    assert found["rci2"] > 0.3
    assert found["rci3"] > 0.3


def test_one_family_is_near_chance(today):
    """Yes/no with balanced golds: within three standard errors of 0.5."""
    found = today["mosaic_larger_rci"].metrics
    assert abs(found["acc"] - 0.5) < 3 * 0.5 / found["n_docs"] ** 0.5
    assert found["chance"] == 0.5
    assert found["gate"] == 0
    assert found["rci2"] is found["rci3"] is found["rci3_adj"] is found["gap3"] is None
    assert found["acc_mpp3"] is not None


def test_the_floor_is_the_best_uninformed_answer(planted, today):
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
        found = today[f"mosaic_{family}_rci"].metrics
        formats = [
            "yesno" if gold in ("yes", "no") else "letter" if gold in "ABCD" else "number" if gold.isdigit() else "word"
            for gold in golds
        ]
        by_format = [
            [gold for gold, other in zip(golds, formats, strict=True) if other == kind] for kind in sorted(set(formats))
        ]
        majority = sum(max(map(alike.count, alike)) for alike in by_format) / len(golds)
        assert (
            majority <= found["chance"] == pytest.approx(max(majority, right / len(golds)), abs=0.03)
        )  # ties between golds
        assert found["ceiling"] == 1.0


@pytest.mark.parametrize("family", ["local", "center"])
def test_local_families_are_local_beyond_doubt_and_luck(planted, family):
    """Intervals below 0; and luck-corrected: one cell of nine guesses among ten digits, which earns it little."""
    found = metrics(planted)[f"mosaic_{family}_rci"]
    for n in (2, 3):
        assert found[f"rci{n}_low"] < found[f"rci{n}"] < found[f"rci{n}_high"] < 0
        assert found[f"rci{n}_adj_high"] < 0.05
        assert found[f"gap{n}_low"] < found[f"gap{n}"] < found[f"gap{n}_high"] < 0


def test_global_families_are_global_with_luck_removed(today):
    for family in ("count", "sum", "same"):
        luck = today[f"mosaic_{family}_rci"].details["analysis"]["grids"]["3"]["adj"]
        assert luck["estimate"]["low"] > 0.5


def test_a_family_that_the_text_answers_is_refused_everywhere(planted, today, tmp_path, capsys):
    """It gets every answer right, on every view: the gate, the board and a build must all say that the model does not look."""
    found = today["mosaic_text_rci"]
    assert found.details["analysis"]["gate"]["reason"].startswith("the answers do not depend on the image")
    assert found.metrics["fip0"] == 1.0
    assert [found.metrics[name] for name in ("gate", "rci3", "rci3_adj", "gap3")] == [0, None, None, None]

    assert main(["show", str(planted)]) == 0
    printed = capsys.readouterr().out
    assert "No image is needed for mosaic_text (acc 1.000 with its images, 1.000 with wrong images" in " ".join(
        printed.split()
    )
    assert main(["leaderboard", str(planted), "--output", str(tmp_path / "board")]) == 0
    board = json.loads(next((tmp_path / "board").rglob("*.json")).read_text())
    rows = [
        row for row in _objects(board) if row.get("benchmark") == "mosaic_text" or row.get("task") == "mosaic_text_rci"
    ]
    assert rows
    assert all(row.get("rank") is None and row.get("rank_first") is None for row in rows)
    rules = yaml.safe_load((folder("configs") / "gates" / "model-compliance.yaml").read_text())
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    assert (
        main(["gate", str(planted), "--config", str(tmp_path / "rules.yaml"), "--json", str(tmp_path / "gate.json")])
        == 1
    )
    verdicts = [
        one for one in json.loads((tmp_path / "gate.json").read_text())["verdicts"] if one["task"] == "mosaic_text_rci"
    ]
    assert "fail" in {one["verdict"] for one in verdicts}


def _objects(value):
    """Every object within a JSON value."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return ([value] if isinstance(value, dict) else []) + [found for one in inner for found in _objects(one)]


def test_the_middle_is_where_the_center_family_lives(today):
    """Its digit is always in the middle cell of nine; the local family's may be in any."""
    results = {task: result.details["analysis"]["grids"]["3"]["shares"] for task, result in today.items()}
    shares = results["mosaic_center_rci"]
    assert max(range(9), key=lambda c: shares["score"][c]) == 4
    assert shares["score"][4] > 0.9
    assert shares["centre"] > 8
    assert shares["p"] == 0.001
    assert shares["p_cells"][4] < 0.01
    assert max(results["mosaic_local_rci"]["score"]) < 0.25


def test_a_finished_run_gives_the_same_numbers_again(live):
    runs = load(live)
    assert len(runs) == len(FAMILIES)
    for run in runs:
        names = catalogue.columns(run.result.analysis, run.result.kind)
        again = recompute(run)
        assert {name: again.metrics[name] for name in names} == {name: run.result.metrics[name] for name in names}
        one, two = again.to_json()["analysis"], run.result.details["analysis"]
        assert {key for key in one.keys() | two.keys() if one.get(key) != two.get(key)} <= {"gate", "necessity"}, (
            "where the blind run beside it counts"
        )
        assert recompute(run, Changes(draws=500)).metrics["chance"] == again.metrics["chance"]


def apart(value):
    """Return a part of a record without what depends on the run's other docs: which of their golds an answer names, how it fits them."""
    if isinstance(value, list):
        return [apart(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        key: apart(part)
        for key, part in value.items()
        if key not in ("names", "misread", "candidates", "gold_at", "exchanged")
    }


def test_each_doc_is_answered_scored_and_recorded_as_in_the_stored_run(planted, live):
    """Which wrong image a doc is asked on, its stratum, and which of its answers are others' too depend on the docs of the run; nothing else does."""
    own = (
        "image_sizes", "images", "views", "best", "excluded", "fields", "answer", "doc_id", "grids", "kind", "base",
        "task",
    )  # fmt: skip
    for family in FAMILIES:
        old, new = (samples(run, f"mosaic_{family}_rci") for run in (planted, live))
        assert set(new) == set(range(DOCS))
        for doc, line in new.items():
            before, views = old[doc], 1 + 4 + 9
            assert apart({key: line["patch"][key] for key in own}) == apart({key: before["patch"][key] for key in own})
            assert [line[key] for key in ("input", "target", "acc", "doc_hash")] == [
                before[key] for key in ("input", "target", "acc", "doc_hash")
            ]
            assert line["filtered_resps"][:views] == before["filtered_resps"][:views]
            assert len(line["filtered_resps"]) == views * (1 + ("wrong_image" in line["patch"]))
        blind = f"mosaic_{family}_blind"
        assert answers(live, blind).items() <= answers(planted, blind).items()


def test_the_last_screen_says_what_was_found_and_what_to_type(live):
    """Few rows a task, the sentences that ``show`` begins with, and the next commands.

    Of a trial run that it works, and what a run would take.
    """
    *_, screen = (live / "printed.txt").read_text(encoding="utf-8").partition("|Filter|")
    rows = [line.split("|")[1].strip() for line in screen.splitlines() if line.startswith("| - mosaic_")]
    assert set(rows) == {f"- mosaic_{family}_{kind}" for family in FAMILIES for kind in ("rci", "blind")}
    assert max(map(rows.count, rows)) <= 6
    found = " ".join(screen.split())
    assert (
        f"a trial of {DOCS} docs: the pipeline works, and most numbers will change; ask all 120 docs of each task, about "
        in found
    )
    assert re.search(r"at this speed \((RCI|a score) ± 0.05 would take about [\d,]+\)", found)
    assert f"next: lmms-patch show {live} lmms-patch report {live} lmms-patch explore {live}" in found


def test_a_blind_run_beside_it_says_whether_the_model_looks_too(planted):
    """Blind, the text family is right everywhere, and the others score next to nothing: both conditions agree."""
    found = {run.result.described["base"]: recompute(run).analysis.gate for run in load(planted)}
    for family in ("text", "sum", "local"):
        looks = {one.against: one.value for one in found[f"mosaic_{family}"].looks}
        assert looks == dict.fromkeys(("wrong images", "blind"), family != "text")


def test_blind_only_the_text_family_survives(planted, live):
    """By hand of the stored answers, and the same by the scorer of today."""
    found, scored = metrics(planted), metrics(live)
    assert found["mosaic_text_blind"]["acc"] > 0.9
    for family in set(FAMILIES) - {"text"}:
        assert found[f"mosaic_{family}_blind"]["acc"] < 0.15
    for family in FAMILIES:
        lines = list(samples(planted, f"mosaic_{family}_blind").values())
        right = [line["acc"] for line in sorted(lines, key=lambda line: line["doc_id"])]
        assert found[f"mosaic_{family}_blind"]["acc"] == pytest.approx(sum(right) / len(right))
        assert scored[f"mosaic_{family}_blind"]["acc"] == pytest.approx(sum(right[:DOCS]) / DOCS)


@pytest.mark.parametrize("which", ["stored", "live"])
def test_numbers_follow_from_the_log(planted, today, live, which):
    """FIP, MPP and RCI recomputed from the answers and golds of the sample log alone."""
    run, numbers = (
        (planted, {task: result.metrics for task, result in today.items()})
        if which == "stored"
        else (live, metrics(live))
    )
    indices = 0
    for family in FAMILIES:
        task = f"mosaic_{family}_rci"
        rows = [
            (line["target"].lower(), [a.strip().lower().removesuffix(".") for a in line["filtered_resps"]])
            for line in samples(run, task).values()
        ]
        fip = sum(got[0] == gold for gold, got in rows) / len(rows)
        mpp3 = sum(gold in got[5:14] for gold, got in rows) / len(
            rows
        )  # after the doc's own views: those of a wrong image
        found = numbers[task]
        assert found["acc"] == pytest.approx(fip)
        assert found["acc_mpp3"] == pytest.approx(mpp3)
        assert found["rci3"] == (
            pytest.approx(1 - mpp3 / fip) if found["gate"] != 0 else None
        )  # None where few docs leave it open
        indices += found["gate"] != 0
    assert indices == len(FAMILIES) - 2 if which == "stored" else indices > 0


def test_show_prints_the_table(planted, capsys):
    assert main(["show", str(planted)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "mosaic_count_rci" in told
    assert "1.00, cells mislead" in told
    assert "more than one cell is needed for mosaic_count (" in told
    for family in ("same", "sum"):
        assert (
            f"mosaic_{family} (luck-corrected RCI_3 +1.00"
            in told.split("The whole image is needed for ")[1].split("single cells")[0]
        )
