"""What stands beside an index in every table."""

import csv
import dataclasses
import io

import pytest

from lmms_patch.present.sheets import Column, Sheet, shown
from lmms_patch.runs import reading, run
from lmms_patch.stats.gate import Gate
from lmms_patch.stats.resample import Estimate
from tests.making.analyses import analysis
from tests.making.runs import again_run, never_looks, world_run, write_run

SIGNED = Column("rci3", "RCI", signed=True)


def estimate(value, low=None, high=None):
    return Estimate(value, None, low, high, 100, 100, 1000)


WORDED = [
    (reading.worded(estimate(0.866, 0.8, 0.9)), "+0.866 [+0.800, +0.900]", ""),
    (reading.worded(estimate(0.866, 0.8, 0.9), marginal=True), "+0.866 [+0.800, +0.900], marginal", "marginal"),
    (reading.worded(estimate(0.866, 0.8, 0.9), sampled=True), "+0.866 [+0.800, +0.900], sampled", "sampled"),
    (
        reading.worded(estimate(-0.085, -0.1, -0.07), mark="from one pass -0.085, ..."),
        "-0.085 [-0.100, -0.070], contradicted",
        "contradicted",
    ),
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


def test_what_is_not_defined_has_no_words():
    nothing = dataclasses.replace(estimate(None), reason="near chance: ...")
    assert reading.worded(nothing, mark="mark", marginal=True) == nothing


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
    nothing = dict.fromkeys(("valid", "fip", "chance", "delta", "se_fip", "se_chance", "threshold"))
    assert reading.gate_word(Gate(**{**nothing, **gate})) == word


@pytest.mark.parametrize(
    ("looks", "known"),
    [([], None), ([True], True), ([True, False], False), ([None], None), ([None, True], True)],
)
def test_whether_it_looks(looks, known):
    assert reading.looks(analysis({"gate": {"looks": [{"value": one} for one in looks]}}).gate) is known


def measured(folder, world):
    return run.read(write_run(folder, {"toy_rci3": world})).results[0].measures


def test_numbers_by_name_bring_their_words(tmp_path):
    """Nine cells that guess look as good as the full image; asked again, they know nothing."""
    found = measured(tmp_path / "a", again_run(("whole", "whole", "whole", "unsolved"), grid=3))
    assert (reading.words(found["rci3"]), reading.words(found["rci3_steady"])) == (("contradicted",), ())
    assert found["rci3"].value < 0.1 < 0.9 < found["rci3_steady"].low
    found = measured(tmp_path / "b", again_run(("cell", "cell", "cell", "unsolved"), grid=3))
    assert (reading.words(found["rci3"]), reading.words(found["rci3_steady"])) == ((), ())
    assert reading.words(measured(tmp_path / "c", world_run(never_looks, grid=3))["rci3"]) == ()


def test_people_go_by_the_steady_index_where_it_is_known():
    one, steady = estimate(-0.085, -0.1, -0.07), estimate(0.866, 0.8, 0.9)
    assert reading.headline(one, steady) is steady
    assert reading.headline(one, estimate(None)) is one
    assert reading.headline(one, None) is one
