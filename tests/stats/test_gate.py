"""The gate: FIP >= chance + max(delta, 2 max(SE_FIP, SE_chance)) (RCI paper, eq. 2; DESIGN section 6)."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.stats.gate import DELTA, gate, se_at_chance

# numbers are eighths, so that sums are exact
CHANCE, DELTA_8 = 0.5, 0.125


@pytest.mark.parametrize(
    ("se_fip", "se_chance", "threshold"),
    [  # which of delta, 2 SE_FIP and 2 SE_chance is the margin
        (0.03125, 0.0, 0.625),
        (0.125, 0.0, 0.75),
        (0.125, 0.0625, 0.75),
        (0.0625, 0.1875, 0.875),
        (0.0, 0.0, 0.625),
    ],
)
def test_the_largest_margin_counts_and_the_boundary_passes(se_fip, se_chance, threshold):
    at = gate(threshold, CHANCE, se_fip=se_fip, se_chance=se_chance, delta=DELTA_8)
    below = gate(math.nextafter(threshold, 0), CHANCE, se_fip=se_fip, se_chance=se_chance, delta=DELTA_8)
    assert (at.valid, at.number, at.threshold, at.reason) == (True, 1, threshold, "")
    assert (below.valid, below.number, below.threshold) == (False, 0, threshold)
    assert below.reason.startswith("near chance")
    assert below.reason.endswith("the floor 0.5 and its margin")


def test_every_term_is_kept():
    found = gate(0.75, CHANCE, se_fip=0.0625, se_chance=0.03125, delta=DELTA_8)
    assert (found.fip, found.chance, found.delta, found.se_fip, found.se_chance) == (0.75, CHANCE, DELTA_8, 0.0625, 0.03125)


def test_defaults_are_one_point_of_a_fraction_and_a_floor_that_is_documented():
    assert DELTA == 0.01
    assert gate(0.511, 0.5, se_fip=0.001).valid is True
    assert gate(0.509, 0.5, se_fip=0.001).valid is False
    assert gate(0.511, 0.5, se_fip=0.001).se_chance == 0


def test_a_model_below_chance_fails():
    assert gate(0.2, 0.5, se_fip=0.01).valid is False


TERMS = {"fip": "FIP", "chance": "chance", "se_fip": "SE of FIP", "se_chance": "SE of chance", "delta": "scale"}


@pytest.mark.parametrize("missing", [names for k in (1, 2, 5) for names in itertools.combinations(TERMS, k)])
@pytest.mark.parametrize("nothing", [None, math.nan, math.inf])
def test_unknown_terms_make_it_unknown_and_are_named(missing, nothing):
    terms = {"fip": 0.9, "chance": 0.5, "se_fip": 0.01, "se_chance": 0.01, "delta": 0.01} | dict.fromkeys(missing, nothing)
    fip, chance = terms.pop("fip"), terms.pop("chance")
    found = gate(fip, chance, **terms)
    assert (found.valid, found.number, found.threshold) == (None, None, None)
    assert found.reason == "unknown: no " + ", no ".join(said for name, said in TERMS.items() if name in missing)


def test_zero_is_a_number():
    """A floor of 0 and errors of 0 are known."""
    assert gate(0.0, 0.0, se_fip=0.0, se_chance=0.0).valid is False
    assert gate(0.01, 0.0, se_fip=0.0, se_chance=0.0).valid is True


# --- where only a uniform guess is beaten ----------------------------------------------------------------


def near(fip, **uniform):
    """A floor of 1/2 (a constant letter), a uniform guess of 1/4."""
    return gate(fip, CHANCE, se_fip=0.03125, delta=0.125, **uniform)


def test_it_is_said_where_only_a_uniform_guess_is_beaten():
    """1/4 + max(1/8, 2/32) = 3/8 is beaten, 5/8 is not."""
    for fip in (0.375, 0.5, 0.62):
        found = near(fip, uniform=0.25, se_uniform=0.0)
        assert found.valid is False
        assert found.reason.endswith("; it passes only against a uniform guess (0.25)")


def test_it_is_not_said_otherwise():
    assert "uniform" not in near(math.nextafter(0.375, 0), uniform=0.25, se_uniform=0.0).reason  # beats neither
    assert near(0.625, uniform=0.25, se_uniform=0.0).reason == ""  # beats both
    assert "uniform" not in near(0.5).reason  # no uniform guess is known
    assert "uniform" not in near(0.5, uniform=0.25).reason  # nor its error
    assert "uniform" not in near(0.5, uniform=0.25, se_uniform=0.25).reason  # 1/4 + 2/4 is not beaten


finite = st.floats(-10, 10)
errors = st.floats(0, 5)


@given(finite, finite, errors, errors, st.floats(0, 5))
def test_against_the_formula(fip, chance, se_fip, se_chance, delta):
    found = gate(fip, chance, se_fip=se_fip, se_chance=se_chance, delta=delta)
    margins = [delta, 2 * se_fip, 2 * se_chance]
    assert found.valid == all(fip >= chance + margin for margin in margins)
    assert found.number in (0, 1)


@given(finite, finite, errors, errors)
def test_a_larger_error_never_opens_the_gate(fip, chance, se, more):
    if gate(fip, chance, se_fip=se + more).valid:
        assert gate(fip, chance, se_fip=se).valid


@pytest.mark.parametrize(("p", "size"), [(0.25, 4), (0.5, 4), (0.65, 4), (0.8, 4), (0.8, 1), (0.8, 18)])
def test_a_model_at_a_documented_floor_passes_in_at_most_three_percent(p, size):
    """20,000 runs of 50 clusters (200 for single docs) whose docs hang together (beta, correlation 0.3), right as often as the floor says."""
    stream, runs = np.random.default_rng(0), 20_000
    clusters = 200 if size == 1 else 56 if size == 18 else 50
    rate = p if size == 1 else stream.beta(p * 0.7 / 0.3, (1 - p) * 0.7 / 0.3, (runs, clusters))
    scores = stream.binomial(size, rate, (runs, clusters)) / size
    fip, se = scores.mean(axis=1), scores.std(axis=1) / clusters**0.5
    passed = [gate(f, p, se_fip=s, se_chance=se_at_chance(s, f, p)).valid for f, s in zip(fip.tolist(), se.tolist(), strict=True)]
    assert np.mean(passed) < 0.03


def test_below_the_floor_no_standard_error_is_needed():
    """Five docs have no standard error; but 0.2 is below a floor of 0.4 whatever it is. At 0.45 nobody knows."""
    found = gate(0.2, 0.4, se_fip=None)
    assert (found.valid, found.threshold) == (False, pytest.approx(0.41))
    assert "near chance" in found.reason
    assert gate(0.45, 0.4, se_fip=None).valid is None
    assert gate(0.405, 0.4, se_fip=0.1, se_chance=None).valid is False
