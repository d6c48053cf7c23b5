"""What is missing never becomes a pass: no verdicts, numbers without a value, intervals with one end or none."""

import itertools
import math

import numpy as np
import pytest

from lmms_patch.gate import outputs, sides
from lmms_patch.gate.checks import Verdict, verdict
from lmms_patch.gate.intervals import _over_pairs
from lmms_patch.gate.judge import BAD_INPUT, FAILED, INCONCLUSIVE, PASSED, Judgement
from lmms_patch.stats.paired import Difference
from lmms_patch.stats.resample import Estimate
from tests.making import lean


def estimate(value, low=None, high=None, se=0.01, n=100, clusters=100):
    return Estimate(value, se, low, high, n, clusters, 1000)


def judged(*calls, error=""):
    """A judgement with a verdict of each call; "warned" is an inconclusive one that does not block."""
    number = estimate(0.5, 0.4, 0.6)
    made = tuple(
        Verdict(
            rule="r",
            task="t",
            model="m",
            metric="fip",
            limit="",
            value=number,
            level=0.95,
            basis="interval",
            call="inconclusive" if call == "warned" else call,
            warned=call == "warned",
        )
        for call in calls
    )
    return Judgement(made, (), "rules", "out", "", error)


@pytest.mark.parametrize(
    ("calls", "error", "status"),
    [  # bad input outranks failure, failure outranks inconclusive
        ((), "", BAD_INPUT),
        ((), "cut", BAD_INPUT),
        (("pass",), "cut", BAD_INPUT),
        (("fail",), "cut", BAD_INPUT),
        (("pass",), "", PASSED),
        (("pass", "warned"), "", PASSED),
        (("warned",), "", PASSED),
        (("pass", "inconclusive", "warned"), "", INCONCLUSIVE),
        (("inconclusive", "fail", "pass"), "", FAILED),
    ],
)
def test_the_status_of_a_judgement(calls, error, status):
    found = judged(*calls, error=error)
    assert found.status == status
    assert f"(exit status {status})" in found.counts
    first = outputs.headline(found)
    assert first.startswith(
        {PASSED: "PASS", FAILED: "FAIL", INCONCLUSIVE: "INCONCLUSIVE", BAD_INPUT: "BAD INPUT"}[status]
    )


def test_nothing_judged_is_said():
    assert outputs.headline(judged()) == "BAD INPUT: nothing was judged"
    assert outputs.headline(judged("pass", error="the log is cut")) == "BAD INPUT: the log is cut"


ENDS = [(None, None), (0.1, None), (None, 0.3)]


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_an_interval_with_an_end_missing_passes_no_limit(low, high):
    """0.2 keeps the limit 0.15, but nothing says how sure that is; 0.1 breaks it by the number alone."""
    assert verdict(estimate(0.2, low, high), 0.15, None, 0.0)[0] == "inconclusive"
    assert verdict(estimate(0.1, low, high), 0.15, None, 0.0)[0] == "fail"
    assert verdict(estimate(0.2, low, high), None, 0.3, 0.0)[0] == "inconclusive"


@pytest.mark.parametrize(("low", "high"), [*ENDS, (math.nan, 0.3), (0.1, math.inf)])
def test_a_file_with_one_end_has_none(low, high):
    found = sides.checked(estimate(0.2, low, high))
    assert (found.value, found.low, found.high) == (0.2, None, None)


def test_a_file_without_a_value_has_no_interval():
    for value in (None, math.nan, -math.inf):
        found = sides.checked(estimate(value, 0.1, 0.3, se=math.nan))
        assert (found.value, found.se, found.low, found.high) == (None, None, None, None)


# --- a side of a paired difference ----------------------------------------------------------------------

PAIRED = Difference(0.5, 0.6, estimate(0.1, 0.05, 0.15, n=80, clusters=40), 0.01, 20)


def test_a_side_over_all_docs_is_the_runs_own_number():
    own = estimate(0.5, 0.4, 0.6)
    assert _over_pairs(own, 0.5, 0.0, PAIRED) == (own, own)
    assert _over_pairs(own, 0.7, 0.2, PAIRED) == (own, own), "chance is taken off first"


def test_a_side_over_some_docs_moves_the_runs_interval_and_does_not_show_it():
    reckon, show = _over_pairs(estimate(0.5, 0.4, 0.65), 0.6, 0.0, PAIRED)
    assert (reckon.value, reckon.low, reckon.high) == pytest.approx((0.6, 0.5, 0.75))
    assert (show.value, show.low, show.high) == (0.6, None, None)
    assert (reckon.n, reckon.clusters, show.n, show.clusters) == (80, 40, 80, 40)
    assert show.reason == "over the 80 docs that are paired"


@pytest.mark.parametrize(
    "stored",
    [
        estimate(None, 0.4, 0.6),
        *(estimate(0.5, low, high) for low, high in itertools.product((None, 0.4), (None, 0.6))),
    ][:-1],
)
def test_a_side_whose_run_has_no_interval_gets_none(stored):
    for found in _over_pairs(stored, 0.6, 0.0, PAIRED):
        assert (found.value, found.se, found.low, found.high) == (0.6, None, None, None)


def test_a_side_that_is_not_defined_on_the_pairs():
    for found in _over_pairs(estimate(0.5, 0.4, 0.6), None, 0.0, PAIRED):
        assert (found.value, found.se, found.low, found.high) == (None, None, None, None)


# --- what a verdict is shown with -----------------------------------------------------------------------


def test_what_can_be_detected_is_told_where_an_interval_decides(asked, run):
    """80 % of 400 docs: an SE of about 0.02, times 1.96 + 0.84."""
    found = asked(run, {"metric": "fip", "min": 0.7}, {"metric": "fip", "min": 0.7, "interval": False})
    assert found.of(rule="rule 0")["detectable"] == pytest.approx(math.sqrt(0.8 * 0.2 / 400) * 2.8016, rel=0.1)
    assert found.of(rule="rule 1")["detectable"] is None


def test_a_share_near_its_end_at_the_level_of_several_rules_is_exact(asked, tmp_path):
    """All of 80 docs right, two rules' worth of numbers: each interval at 97.5 %, whose lower end is 0.0125^(1/80) and not below."""
    lean.write(tmp_path / "run", [lean.task(np.ones(80), np.ones(80))])
    found = asked(tmp_path / "run", {"metric": "[fm]*", "min": 0.5})
    assert {one["level"] for one in found.json["verdicts"]} == {0.975}
    for one in found.json["verdicts"]:
        assert (one["value"]["low"], one["value"]["high"]) == (pytest.approx(0.0125 ** (1 / 80), rel=1e-3), 1.0)


@pytest.mark.parametrize(("model", "status"), [("m", 2), ("another", 0)])
def test_what_the_baseline_of_a_judged_model_has_is_asked_again(asked, tmp_path, model, status):
    """The run has apple alone.

    The baseline also has pear: of the same model that is a loss that no rule would see, of another it is none.
    """
    apple, pear = (lean.task(*lean.planted(200, 0.8, 0.6), name=f"{name}_rci2") for name in ("apple", "pear"))
    lean.write(tmp_path / "run", [apple])
    lean.write(tmp_path / "before", [apple], date="2025-01-01T00-00-00.000000")
    lean.write(tmp_path / "before", [pear], model=model, date="2025-01-02T00-00-00.000000")
    ended = asked(tmp_path / "run", {"metric": "fip", "max_drop": 0, "margin": 0.2}, baseline=tmp_path / "before")
    assert ended.status == status
    if status == 2:
        assert "the baseline has pear_rci2, this run has not; run it too, or narrow the rule" in ended.err


@pytest.mark.parametrize(("accuracy", "over"), [(1.0, 0.75), (0.0, -0.25)])
def test_text_only_accuracy_over_chance_at_the_level_of_two_numbers_stays_on_its_scale(asked, tmp_path, accuracy, over):
    """All or none of 80 docs right, chance 0.25: the scale is -0.25 to 0.75, and at 97.5 % the open end lies 1 - 0.0125^(1/80) inside."""
    for name in ("apple", "pear"):
        lean.write(
            tmp_path / "run",
            [lean.stressed(n=80, accuracy=accuracy, name=f"{name}_tst5")],
            model=name,
            date=f"2026-01-01T00-00-0{len(name)}.0",
        )
    found = asked(tmp_path / "run", {"metric": "tst_over_chance", "max": 0.9})
    width = 1 - 0.0125 ** (1 / 80)
    ends = (over - width, over) if accuracy else (over, over + width)
    for one in found.json["verdicts"]:
        assert one["level"] == 0.975
        assert (one["value"]["low"], one["value"]["high"]) == pytest.approx(ends, abs=1e-3)
