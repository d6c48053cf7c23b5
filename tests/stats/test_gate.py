"""The gate: FIP >= chance + max(delta, 2 SE of FIP - chance), and answers that depend on the image (RCI paper, eq. 2; DESIGN section 6)."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.stats.gate import DELTA, Gate, Looks, gate, looks, se_at_chance, wanted, with_looks
from lmms_patch.stats.intervals import mean
from lmms_patch.stats.resample import Estimate
from tests.sizes import size

# numbers are eighths, so that sums are exact
CHANCE, DELTA_8 = 0.5, 0.125


@pytest.mark.parametrize(("se", "threshold"), [(0.03125, 0.625), (0.125, 0.75), (0.1875, 0.875), (0.0, 0.625)])
def test_the_larger_margin_counts_and_the_boundary_passes(se, threshold):
    """Delta or 2 SE."""
    at = gate(threshold, CHANCE, se=se, delta=DELTA_8)
    below = gate(math.nextafter(threshold, 0), CHANCE, se=se, delta=DELTA_8)
    assert (at.valid, at.number, at.threshold, at.reason) == (True, 1, threshold, "")
    assert (below.valid, below.number, below.threshold) == (False, 0, threshold)
    assert below.reason.startswith("near chance")
    assert below.reason.endswith("the floor 0.5 and its margin")


def test_every_term_is_kept():
    found = gate(0.75, CHANCE, se=0.0625, se_fip=0.03125, se_chance=0.015625, delta=DELTA_8)
    assert (found.fip, found.chance, found.delta, found.se, found.se_fip, found.se_chance) == (
        0.75,
        CHANCE,
        DELTA_8,
        0.0625,
        0.03125,
        0.015625,
    )


def test_the_default_is_one_point_of_a_fraction():
    assert DELTA == 0.01
    assert gate(0.511, 0.5, se=0.001).valid is True
    assert gate(0.509, 0.5, se=0.001).valid is False


"""Where people read the figure: it cannot refer to the constant there."""


def test_a_model_below_chance_fails():
    assert gate(0.2, 0.5, se=0.01).valid is False


def test_a_pass_by_less_than_one_further_standard_error_is_marginal():
    assert [
        gate(fip, CHANCE, se=0.125, delta=DELTA_8).marginal for fip in (0.75, math.nextafter(0.875, 0), 0.875, 0.7)
    ] == [True, True, False, False]


TERMS = {"fip": "FIP", "chance": "chance", "se": "standard error of FIP - chance", "delta": "scale"}


@pytest.mark.parametrize("missing", [names for k in (1, 2, 4) for names in itertools.combinations(TERMS, k)])
@pytest.mark.parametrize("nothing", [None, math.nan, math.inf])
def test_unknown_terms_make_it_unknown_and_are_named(missing, nothing):
    terms = {"fip": 0.9, "chance": 0.5, "se": 0.01, "delta": 0.01} | dict.fromkeys(missing, nothing)
    found = gate(terms.pop("fip"), terms.pop("chance"), **terms)
    assert (found.valid, found.number, found.threshold) == (None, None, None)
    assert found.reason == "unknown: no " + ", no ".join(said for name, said in TERMS.items() if name in missing)


def test_zero_is_a_number():
    """A floor of 0 and errors of 0 are known."""
    assert gate(0.0, 0.0, se=0.0).valid is False
    assert gate(0.01, 0.0, se=0.0).valid is True


# --- where only a uniform guess is beaten ----------------------------------------------------------------


def near(fip, **uniform):
    """A floor of 1/2 (a constant letter), a uniform guess of 1/4."""
    return gate(fip, CHANCE, se=0.03125, delta=0.125, **uniform)


def test_it_is_said_where_only_a_uniform_guess_is_beaten():
    """1/4 + max(1/8, 2/32) = 3/8 is beaten, 5/8 is not."""
    for fip in (0.375, 0.5, 0.62):
        found = near(fip, uniform=0.25, se_uniform=0.0)
        assert found.valid is False
        assert found.reason.endswith("; it passes only against a uniform guess (0.25)")


finite = st.floats(-10, 10)
errors = st.floats(0, 5)


@given(finite, finite, errors, st.floats(0, 5))
def test_against_the_formula(fip, chance, se, delta):
    found = gate(fip, chance, se=se, delta=delta)
    assert found.valid == (fip >= chance + max(delta, 2 * se))
    assert found.number in (0, 1)


@given(finite, finite, errors, errors)
def test_a_larger_error_never_opens_the_gate(fip, chance, se, more):
    if gate(fip, chance, se=se + more).valid:
        assert gate(fip, chance, se=se).valid


@pytest.mark.parametrize(("p", "together"), [(0.25, 4), (0.5, 4), (0.65, 4), (0.8, 4), (0.8, 1), (0.8, 18)])
def test_a_model_at_a_documented_floor_passes_in_at_most_three_percent(p, together):
    """Thousands of runs of 50 clusters (200 for single docs) whose docs hang together (beta, correlation 0.3), right as often as the floor says."""
    stream, runs = np.random.default_rng(0), size(6_000, 20_000)
    clusters = 200 if together == 1 else 56 if together == 18 else 50
    rate = p if together == 1 else stream.beta(p * 0.7 / 0.3, (1 - p) * 0.7 / 0.3, (runs, clusters))
    scores = stream.binomial(together, rate, (runs, clusters)) / together
    fip, se = scores.mean(axis=1), scores.std(axis=1) / clusters**0.5
    passed = [
        gate(f, p, se=max(s, se_at_chance(s, f, p))).valid for f, s in zip(fip.tolist(), se.tolist(), strict=True)
    ]
    assert np.mean(passed) < 0.03


def test_below_the_floor_no_standard_error_is_needed():
    """Five docs have no standard error; but 0.2 is below a floor of 0.4 whatever it is. At 0.45 nobody knows."""
    found = gate(0.2, 0.4, se=None)
    assert (found.valid, found.threshold) == (False, pytest.approx(0.41))
    assert "near chance" in found.reason
    assert gate(0.45, 0.4, se=None).valid is None
    assert gate(0.405, 0.4, se=None).valid is False


# --- does it look --------------------------------------------------------------------------------


def apart(value, se, docs=300, everyone=1000, high=None):
    """The full image beats the wrong one by so much."""
    ends = (value - 2 * se, value + 2 * se if high is None else high)
    difference = Estimate(value, se, *ends, docs, docs, 1000)
    step = 1 / docs
    return looks(
        difference,
        0.5 + value,
        0.5,
        docs,
        against="wrong images",
        everyone=everyone,
        step=step,
        delta=0.01,
        wanted=wanted(difference, docs, step),
    )


def test_the_difference_less_one_doc_must_exceed_two_standard_errors():
    """300 docs: one weighs 1/300."""
    assert apart(0.1, 0.048).value is True  # (0.1 - 0.0033) / 0.048 = 2.014
    assert apart(0.1, 0.0484).value is False  # 1.998, though 0.1 / 0.0484 = 2.07


def test_a_small_difference_that_is_sure_is_none():
    """Shown to be below five points: the answers do not depend on the image.

    Above, it is only not shown that they do.
    """
    assert (
        apart(0.02, 0.0145, high=0.049).reason
        == "the answers do not depend on the image (full image 0.52, a wrong image 0.5, 300 docs)"
    )
    assert apart(0.02, 0.0145, high=0.051).reason.startswith(
        "not shown that it looks (full image 0.52, a wrong image 0.5, 300 docs); null: "
    )
    assert apart(0.0, 0.0).reason.startswith("the answers do not depend on the image")


def test_how_many_docs_would_settle_it_is_a_power_of_80_percent():
    """Check ``wanted`` by 4,000 runs with as many docs as it says: the difference (0.05, variance 0.38 a doc) exceeds 2 SE in 80 % of them."""
    difference = Estimate(0.05, math.sqrt(0.38 / 300), -0.02, 0.12, 300, 300, 1000)
    docs = int(wanted(difference, 300, 0.0))
    stream = np.random.default_rng(0)
    runs = stream.choice([1.0, 0.0, -1.0], p=[0.21625, 0.6175, 0.16625], size=(4000, docs))  # mean 0.05, variance 0.38
    found = runs.mean(axis=1) > 2 * runs.std(axis=1) / math.sqrt(docs)
    assert 0.78 < found.mean() < 0.83  # rounded up to hundreds of docs
    with_step = int(wanted(difference, 300, 1 / 300))
    assert apart(0.05, math.sqrt(0.38 / 300), everyone=5000).reason.endswith(
        f"300 docs); null: {with_step} would settle it"
    )


def test_how_many_docs_by_hand():
    """A difference of 0.05 at an SE of 0.04 less one doc of 0.01: z = 1, so 300 docs must become 300 · 2.84² = 2419.7, in hundreds 2,500.
    At half the SE z = 2: a quarter of that, 604.9, is 700. No number settles a difference of 0.
    """
    found = [
        wanted(Estimate(value, se, None, None, 300, 300, 0), 300, 0.01)
        for value, se in ((0.05, 0.04), (0.05, 0.02), (0.01, 0.04), (-0.05, 0.04))
    ]
    assert found == [2500, 700, math.inf, math.inf]


def test_where_no_number_of_docs_settles_it_that_is_said():
    assert apart(0.03, 0.03, everyone=600).reason.endswith("; null: 600 asks all docs")
    assert apart(0.03, 0.03, everyone=300).reason.endswith("; all docs were asked")
    assert wanted(Estimate(-0.1, 0.03, -0.16, -0.04, 300, 300, 1000), 300, 1 / 300) == math.inf


@pytest.mark.parametrize("docs", [30, 60, 200, 300])
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_a_model_that_does_not_look_passes_in_at_most_two_and_a_half_percent(docs, rate):
    """Simulated runs: without the image some answers become right and as many wrong.

    The bound is 2.5 % and four standard errors of so many runs.
    """
    stream, passed, runs = np.random.default_rng([docs, int(100 * rate)]), 0, size(150, 400)
    for _ in range(runs):
        flips = stream.choice([1.0, 0.0, -1.0], p=[rate / 2, 1 - rate, rate / 2], size=docs)
        difference = mean(flips, ends=(-1.0, 1.0), draws=400, seed=stream)
        found = looks(
            difference, 0.5, 0.5, docs, against="blind", everyone=docs, step=1 / docs, delta=0.01, wanted=math.inf
        )
        passed += found.value is True
    assert passed / runs <= 0.025 + 4 * math.sqrt(0.025 * 0.975 / runs)


def test_a_gate_fails_with_its_looks_and_keeps_its_own_reason_first():
    open_, near = gate(0.9, 0.5, se=0.02), gate(0.5, 0.5, se=0.02)
    same, unsure = apart(0.0, 0.0), apart(0.03, 0.03)
    seen, unknown = apart(0.3, 0.03), Looks("blind", None, None, None, Estimate(None, None, None, None, 0, 0, 0), 0)
    assert (with_looks(open_, (seen,)).valid, with_looks(open_, (unknown,)).valid) == (True, True)
    assert with_looks(open_, (seen, same)) == Gate(
        **{**vars(open_), "valid": False, "reason": same.reason, "looks": (seen, same)}
    )
    assert with_looks(near, (same,)).reason.startswith("near chance")
    assert with_looks(open_, (unsure,)).valid is False
    assert with_looks(open_, (unsure,), part=True).valid is True, "few docs of a category were asked"
    assert with_looks(open_, (same,), part=True).valid is False
