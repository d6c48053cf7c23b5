"""What was planted into the embedded benchmark is found in a run of the embedded model.

The run is the demo's own, of all docs, as ``scripts/docs/runs.tar.xz`` keeps it; its numbers are made anew of its
answers. The same command is run here on the first docs of each family: they get the same answers, scores and boxes, and
its numbers follow from them in the same way.
"""

from __future__ import annotations

import json
import re

import polars as pl
import pytest
import yaml
from polars.testing import assert_frame_equal

from lmms_patch.app.cli import main
from lmms_patch.rci.recompute import Changes, load, recompute
from lmms_patch.resources import folder
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.run import find
from lmms_patch.runs.schema import OF_DOC, OF_VIEW
from tests import stored
from tests.harness.command import INSTALLED, lmms_eval, metrics, numbers
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
    [run] = find([planted])
    return {one.result.task: recompute(one).result for one in load(run)}


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
    found = numbers(today[f"mosaic_{family}_rci"])
    assert found["acc"] > 0.5
    assert found["rci2"] < 0
    assert found["rci3"] < 0


@pytest.mark.parametrize("family", ["count", "sum", "same"])
def test_global_questions_need_the_sheet(today, family):
    found = numbers(today[f"mosaic_{family}_rci"])
    assert found["gate"] == 1
    assert found["acc"] > found["chance"] + 0.1
    assert found["rci2"] > 0.3
    assert found["rci3"] > 0.3


def test_one_family_is_near_chance(today):
    """Yes/no with balanced golds: within three standard errors of 0.5."""
    found = numbers(today["mosaic_larger_rci"])
    assert abs(found["acc"] - 0.5) < 3 * 0.5 / found["n_docs"] ** 0.5
    assert found["chance"] == 0.5
    assert found["gate"] == 0
    assert found["rci2"] is found["rci3"] is found["rci3_steady"] is found["gap3"] is None
    assert found["acc_mpp3"] is not None


def test_the_floor_is_the_best_uninformed_answer(today):
    """By hand from golds and strata: the most frequent gold of all docs of a format, or of the other docs that are asked alike."""
    for family in FAMILIES:
        docs = today[f"mosaic_{family}_rci"].frame(["view", "gold", "stratum"]).filter(view=0)
        golds, strata = docs["gold"].to_list(), docs["stratum"].fill_null("").to_list()
        right = 0
        for gold, own in zip(golds, strata, strict=True):
            alike = [g for g, other in zip(golds, strata, strict=True) if f"{other} |".startswith(f"{own} |")]
            alike.remove(gold)  # the doc says nothing of itself
            right += gold == max(sorted(set(alike)), key=alike.count)
        found = numbers(today[f"mosaic_{family}_rci"])
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
def test_local_families_are_local_beyond_doubt_and_luck(today, family):
    """Intervals below 0; and of what is still answered when it is asked again little needs the whole image."""
    found = numbers(today[f"mosaic_{family}_rci"])
    for n in (2, 3):
        assert found[f"rci{n}_low"] < found[f"rci{n}"] < found[f"rci{n}_high"] < 0
        assert found[f"rci{n}_steady_high"] < 0.25
        assert found[f"gap{n}_low"] < found[f"gap{n}"] < found[f"gap{n}_high"] < 0


def test_global_families_are_global_with_luck_removed(today):
    for family in ("count", "sum", "same"):
        assert numbers(today[f"mosaic_{family}_rci"])["rci3_steady_low"] > 0.5


def test_a_family_that_the_text_answers_is_refused_everywhere(planted, today, tmp_path, capsys):
    """It gets every answer right, on every view: the gate, the board and a build must all say that the model does not look."""
    found = today["mosaic_text_rci"]
    assert found.analysis.gate.reason.startswith("the answers do not depend on the image")
    assert [one.other for one in found.analysis.gate.looks if one.against == "wrong images"] == [1.0]
    assert [numbers(found)[name] for name in ("gate", "rci3", "rci3_steady", "gap3")] == [0, None, None, None]

    assert main(["show", str(planted)]) == 0
    printed = capsys.readouterr().out
    assert "No image is needed for mosaic_text (acc 1.000 with its images, 1.000 with wrong images" in " ".join(
        printed.split()
    )
    assert main(["leaderboard", str(planted), "--output", str(tmp_path / "board")]) == 0
    board = json.loads((tmp_path / "board" / "report.json").read_text())
    (result,) = (one for one in board["results"] if one["task"] == "mosaic_text_rci")
    assert result["gate"] == 0
    assert result["measures"]["rci3"]["value"] is None
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


def test_the_middle_is_where_the_center_family_lives(today):
    """Its digit is always in the middle cell of nine; the local family's may be in any."""
    shares = today["mosaic_center_rci"].grid(3).shares
    assert max(range(9), key=lambda c: shares.score[c]) == 4
    assert shares.score[4] > 0.9
    assert shares.centre > 8
    assert shares.p == 0.001
    assert shares.p_cells[4] < 0.01
    assert max(today["mosaic_local_rci"].grid(3).shares.score) < 0.25


def test_a_finished_run_gives_the_same_numbers_again(live):
    [run] = find([live])
    assert len(load(run)) == len(FAMILIES)
    for one in load(run):
        again, own = recompute(one), to_json(one.result.analysis)
        apart = {key for key, value in to_json(again.analysis).items() if value != own[key]}
        assert apart <= {"gate", "necessity"}, "where the blind run beside it counts"
        assert recompute(one, Changes(draws=500)).metrics["chance"] == again.metrics["chance"]


OF_ALL_DOCS = ("names", "answer_no", "as_gold", "wrong_from", "gold_at", "stratum", "category", "cluster")
"""Columns that depend on the run's other docs: which of their golds an answer names, how it fits them."""


def test_each_doc_is_answered_scored_and_recorded_as_in_the_stored_run(planted, live):
    """Which wrong image a doc is asked on, its stratum, and which of its answers are others' too depend on the docs of the run; nothing else does."""
    stored_run, here = ({one.task: one.frame() for run in find([at]) for one in run.results} for at in (planted, live))
    same = [name for name in (*OF_VIEW, *OF_DOC) if name not in OF_ALL_DOCS] + ["shown", "excluded"]
    for task, rows in here.items():
        assert set(rows["doc_id"]) == set(range(DOCS))
        before = stored_run[task].filter(pl.col("doc_id") < DOCS)
        own, theirs = (part.filter(pl.col("swapped").fill_null(False).not_()).select(same) for part in (rows, before))
        assert_frame_equal(own, theirs)


def test_the_last_screen_says_what_was_found_and_what_to_type(live):
    """Few rows a task, the sentences that ``show`` begins with, and the next commands.

    Of a trial run that it works, and what a run would take.
    """
    *_, screen = (live / "printed.txt").read_text(encoding="utf-8").partition("|Filter|")
    rows = [line.split("|")[1].strip() for line in screen.splitlines() if line.startswith("| - mosaic_")]
    assert set(rows) == {f"- mosaic_{family}_{kind}" for family in FAMILIES for kind in ("rci", "blind")}
    assert max(map(rows.count, rows)) <= 6
    found = " ".join(screen.split())
    told = rf"a trial of {DOCS} docs: the pipeline works, and most numbers will change; all 120 docs of each task, about \d+ minutes? at this speed"
    assert re.search(told, found)
    assert f"next: lmms-patch show {live} lmms-patch report {live} lmms-patch explore {live}" in found


def test_a_blind_run_beside_it_says_whether_the_model_looks_too(planted):
    """Blind, the text family is right everywhere, and the others score next to nothing: both conditions agree."""
    [run] = find([planted])
    found = {one.result.base: recompute(one).analysis.gate for one in load(run)}
    for family in ("text", "sum", "local"):
        looks = {one.against: one.value for one in found[f"mosaic_{family}"].looks}
        assert looks == dict.fromkeys(("wrong images", "blind"), family != "text")


def test_blind_only_the_text_family_survives(planted, live):
    """By hand of the stored answers, and the same by the scorer of today."""
    [run], scored = find([planted]), metrics(live)
    found = {one.task: one for one in run.results}
    for family in FAMILIES:
        one = found[f"mosaic_{family}_blind"]
        right = one.frame(["score"])["score"]
        assert right.mean() > 0.9 if family == "text" else right.mean() < 0.15
        assert one.measures["score"].value == pytest.approx(right.mean())
        assert scored[one.task]["acc"] == pytest.approx(right[:DOCS].mean())


@pytest.mark.parametrize("which", ["stored", "live"])
def test_numbers_follow_from_the_answers(today, live, which):
    """FIP, MPP and RCI recomputed from the answers and golds of the table alone."""
    results, indices = today if which == "stored" else {one.task: one for run in find([live]) for one in run.results}, 0
    for family in FAMILIES:
        result = results[f"mosaic_{family}_rci"]
        said = pl.col("answer").str.strip_chars().str.to_lowercase().str.strip_suffix(".")
        rows = result.frame().with_columns(right=said == pl.col("gold").str.to_lowercase())
        rows = rows.filter(pl.col("swapped").fill_null(False).not_())
        fip = rows.filter(kind="full")["right"].mean()
        mpp3 = rows.filter(kind="cell", n=3).group_by("doc_id").agg(pl.any("right"))["right"].mean()
        found = numbers(result)
        assert found["acc"] == pytest.approx(fip)
        assert found["acc_mpp3"] == pytest.approx(mpp3)
        # None where few docs leave it open
        assert found["rci3"] == (pytest.approx(1 - mpp3 / fip) if found["gate"] != 0 else None)
        indices += found["gate"] != 0
    assert indices == len(FAMILIES) - 2 if which == "stored" else indices > 0
