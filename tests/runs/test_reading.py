"""What stands beside an index in every table."""

import csv
import dataclasses
import io

import pytest

from lmms_patch.ask.kinds import OF_CLIPS
from lmms_patch.present.sheets import Column, Sheet, shown
from lmms_patch.runs import numbers, reading, run
from lmms_patch.stats.resample import Estimate
from tests.making.analyses import analysis
from tests.making.runs import guesses_on_cells, misled_by_cells, never_looks, world_run, write_run

SIGNED = Column("rci3", "RCI", signed=True)


def estimate(value, low=None, high=None):
    return Estimate(value, None, low, high, 100, 100, 1000)


WORDED = [
    (reading.worded(estimate(0.866, 0.8, 0.9), parts="cells"), "+0.866 [+0.800, +0.900]", ""),
    (
        reading.worded(estimate(0.866, 0.8, 0.9), parts="cells", marginal=True),
        "+0.866 [+0.800, +0.900], marginal",
        "marginal",
    ),
    (reading.worded(estimate(1.11, 1.04, 1.2), parts="cells"), "1.00, cells mislead", "cells mislead"),
    (reading.worded(estimate(1.11, 1.04, 1.2), parts="boxes"), "1.00, boxes mislead", "boxes mislead"),
    (reading.worded(estimate(1.11, 0.99, 1.2), parts="cells"), "+1.110 [+0.990, +1.200]", ""),
    (reading.worded(estimate(1.11, 1.0, 1.2), parts="cells"), "+1.110 [+1.000, +1.200]", ""),
    (
        reading.worded(estimate(-0.085, -0.1, -0.07), mark="not luck-corrected -0.085, ..."),
        "-0.085 [-0.100, -0.070], contradicted",
        "contradicted",
    ),
    (reading.worded(estimate(-0.085, -0.1, -0.07)), "-0.085 [-0.100, -0.070]", ""),
]


@pytest.mark.parametrize(("found", "text", "note"), WORDED)
def test_every_form_of_a_table_has_the_words_and_data_keeps_the_number(found, text, note):
    sheet = Sheet("a", "A", (SIGNED,), ({"rci3": found},))
    assert shown(found, SIGNED) == text
    assert text in sheet.to_text()
    assert text in sheet.to_markdown()
    assert text.replace("[", "{[}") in sheet.to_latex()
    (row,) = csv.DictReader(io.StringIO(sheet.to_csv()))
    assert {key: float(row[key]) for key in ("rci3", "rci3_low", "rci3_high")} == {
        "rci3": found.value,
        "rci3_low": found.low,
        "rci3_high": found.high,
    }
    assert row.get("rci3_note", "") == note
    (data,) = sheet.to_json()["rows"]
    assert (data["rci3"]["value"], data["rci3"]["low"], data["rci3"].get("note", "")) == (found.value, found.low, note)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.9, 1.0, ""),
        (-0.2, 0.3, ""),
        (None, None, ""),
        (0.97, 1.06, "noise of a ratio"),
        (1.01, 1.2, "a cell does worse than a wrong image"),
    ],
)
def test_an_interval_above_1_says_why(low, high, said):
    told = reading.above_one(low, high)
    assert said in told
    assert bool(told) == bool(said)
    assert "cell" not in reading.above_one(low, high, OF_CLIPS)


def test_what_is_not_defined_has_no_words():
    nothing = dataclasses.replace(estimate(None), reason="near chance: ...")
    assert reading.worded(nothing, mark="mark", marginal=True) == nothing


def test_words_are_not_written_into_files_of_numbers():
    assert numbers.to_json(WORDED[1][0]) == numbers.to_json(estimate(0.866, 0.8, 0.9))


@pytest.mark.parametrize(
    ("gate", "word"),
    [
        ({"valid": True}, "valid"),
        ({"valid": True, "marginal": True}, "valid, marginal"),
        ({"valid": None, "reason": "unknown: no SE"}, "unknown"),
        ({}, "unknown"),
        ({"valid": False, "reason": "near chance: FIP 0.2 is below 0.3"}, "near chance"),
        ({"valid": False, "reason": "of the 60 docs that grid 3 uses: near chance"}, "near chance"),
        ({"valid": False}, "near chance"),
        ({"valid": False, "reason": "the answers do not depend on the image (9 docs)"}, "does not look"),
        (
            {"valid": False, "reason": "not shown that it looks (9 docs); all docs were asked"},
            "not shown that it looks",
        ),
    ],
)
def test_a_gate_in_a_word(gate, word):
    assert reading.verdict_word(**{"valid": None, **gate}) == word


@pytest.mark.parametrize(
    ("looks", "known"),
    [([], None), ([True], True), ([True, False], False), ([None], None), ([None, True], True)],
)
def test_whether_it_looks(looks, known):
    assert reading.looks(analysis({"gate": {"looks": [{"value": one} for one in looks]}}).gate) is known


def measured(folder, model, docs=300):
    path = write_run(folder, {"toy_rci3": world_run(model, n=docs, grid=3)})
    return run.read(path).results[0].measures


def test_numbers_by_name_bring_their_words(tmp_path):
    found = measured(tmp_path / "a", guesses_on_cells, 1000)
    assert (reading.words(found["rci3"]), reading.words(found["rci3_adj"])) == (("contradicted",), ())
    assert reading.words(measured(tmp_path / "b", misled_by_cells)["rci3_adj"]) == ("cells mislead",)
    assert reading.words(measured(tmp_path / "c", never_looks)["rci3"]) == ()
