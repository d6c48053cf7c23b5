import csv
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.stats.index import band, disagreement, fragmentation, index, relative_change, span
from tests.places import SHARED

TABLE2 = SHARED / "rci_table2.csv"


@pytest.mark.parametrize(
    ("fip", "mpp", "rci"),
    [  # RCI paper, human study (Table 4): accuracies of people, and 1 − MPP/FIP by hand
        (0.93, 0.66, 1 - 66 / 93),
        (0.80, 0.82, -0.025),
        (0.46, 0.73, 1 - 73 / 46),
    ],
)
def test_human_study(fip, mpp, rci):
    assert index(fip, mpp).value == pytest.approx(rci)
    assert index(fip, mpp).gap == pytest.approx(fip - mpp)


@pytest.mark.parametrize(
    ("fip", "mpp", "says"),
    [
        (0.0, 0.5, "FIP is 0"),
        (None, 0.5, "FIP"),
        (0.5, None, "MPP"),
        (float("nan"), 0.5, "FIP"),
        (0.5, float("inf"), "MPP"),
        (-1.0, 0.5, "below 0"),
        (0.5, -0.1, "below 0"),
    ],
)
def test_no_index_without_a_reason(fip, mpp, says):
    result = index(fip, mpp)
    assert result.value is None
    assert says in result.reason


def test_no_index_of_an_error_rate():
    assert index(0.2, 0.1, higher_is_better=False).value is None


@given(st.floats(0.01, 100), st.floats(0, 100), st.floats(0.01, 100))
def test_the_scale_of_the_metric_does_not_matter(fip, mpp, scale):
    assert index(fip * scale, mpp * scale).value == pytest.approx(index(fip, mpp).value, rel=1e-9, abs=1e-9)


def test_no_index_where_zero_is_arbitrary():
    """A correlation from −1 to 1: shifted to 0..2 (which ranks models alike) it would have another index, 1 − 1.4/1.2, so neither says anything."""
    assert index(0.2, 0.4).value != index(1.2, 1.4).value
    found = index(0.2, 0.4, signed=True)
    assert (found.value, found.gap) == (None, pytest.approx(-0.2))
    assert "no natural zero" in found.reason


# --- bands ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table2():
    """RCI paper, Table 2: (dataset, model, n) -> RCI in thousandths, a whole number (the table has three decimals)."""
    if not TABLE2.is_file():
        pytest.skip(f"no {TABLE2.name}: public numbers that are not part of the repository")
    with open(TABLE2) as lines:
        cells = {
            (row["dataset"], row["model"], int(row["n"])): round(1000 * float(row["rci"]))
            for row in csv.DictReader(lines)
        }
    assert len(cells) == 13 * 3 * 2
    return cells


def band_by_the_text(thousandths):
    """RCI paper, section 3.2, "Guidance for RCI", in whole numbers.

    +0.30 is in two of its bands, and is strong global here.
    """
    if thousandths <= -300:
        return "strong local"
    if -300 < thousandths <= -100:
        return "moderate local"
    if -100 < thousandths <= 100:
        return "balanced"
    return "moderate global" if thousandths < 300 else "strong global"


def test_bands_of_every_cell_of_table_2(table2):
    for cell, thousandths in table2.items():
        assert band(thousandths / 1000) == band_by_the_text(thousandths), cell


def test_bands_of_table_2_as_counted_by_hand(table2):
    """n = 3, read off the printed table: strong local is AI2D (Molmo), BLINK (Qwen, Molmo), GQA (Molmo), HallusionBench (all
    three), MMStar (Qwen, Molmo), RealWorldQA (InternVL, Molmo): 11. Moderate global is ChartQA (three), ScienceQA
    (Qwen),
    TextVQA (three): 7. Moderate local is AI2D (2), BLINK (1), GQA (2), MME (Qwen, Molmo), MMStar (1), RealWorldQA (1),
    VizWiz (InternVL): 10. The other 11 of 39 are balanced.
    """
    found = Counter(band(value / 1000) for (_, _, n), value in table2.items() if n == 3)
    assert found == {"strong local": 11, "moderate local": 10, "balanced": 11, "moderate global": 7}


@pytest.mark.parametrize(
    ("edge", "at", "above"),
    [
        (-0.30, "strong local", "moderate local"),
        (-0.10, "moderate local", "balanced"),
        (0.10, "balanced", "moderate global"),
    ],
)
def test_edges_belong_to_the_lower_band(edge, at, above):
    assert band(edge) == band(edge - 1e-6) == at
    assert band(edge + 1e-6) == above


def test_the_last_edge_belongs_to_the_upper_band():
    assert band(0.30) == band(0.30 + 1e-6) == "strong global"
    assert band(0.30 - 1e-6) == "moderate global"


@given(st.integers(1, 1000), st.sampled_from([1.3, 1.1, 0.9, 0.7]))
def test_bands_are_cut_as_fractions_are_not_as_floats_err(docs, ratio):
    """Of 1,000 · docs right ones MPP has exactly 1.3, 1.1, 0.9 or 0.7 times as many as FIP: −0.30, −0.10, +0.10, +0.30 on the dot."""
    exact = {1.3: "strong local", 1.1: "moderate local", 0.9: "balanced", 0.7: "strong global"}
    fip, mpp = docs / 1000, docs * ratio / 1000
    assert band(index(fip, mpp).value) == exact[ratio]
    assert span(index(fip, mpp).value, index(fip, mpp).value) == exact[ratio]


def test_bands_have_no_ends():
    assert band(-59.0) == "strong local"
    assert band(1.0) == "strong global"


ORDER = ["strong local", "moderate local", "balanced", "moderate global", "strong global"]


@given(st.floats(-3, 1), st.floats(-3, 1))
def test_bands_rise_with_the_index_and_a_span_has_both_ends(one, other):
    low, high = min(one, other), max(one, other)
    assert ORDER.index(band(low)) <= ORDER.index(band(high))
    assert span(low, high).split(" to ") == ([band(low)] if band(low) == band(high) else [band(low), band(high)])


@pytest.mark.parametrize(
    ("raw", "steady", "contradict", "luck"),
    [  # bands: strong local, moderate local, balanced, moderate global, strong global
        (0.2, 0.25, False, False),
        (0.05, 0.2, False, False),  # bands that touch
        (0.05, 0.5, True, True),  # a band between them
        (0.5, 0.05, True, False),
        (
            -0.15,
            0.02,
            False,
            False,
        ),  # a cell of nine tries does better than the whole image, by luck; a share is never below 0
        (-0.5, 0.2, False, False),
        (-0.5, 0.5, True, True),
    ],
)
def test_two_indices_contradict_each_other_across_a_band(raw, steady, contradict, luck):
    said = disagreement(raw, steady)
    assert bool(said) == contradict
    assert said.endswith(": the first is mostly luck") == luck


def test_models_agree_in_table_2(table2):
    """No function of ours computes it; said of the published data alone.

    RCI paper, section 4: r >= 0.91 across architectures.

    All 15 pairs of the six columns (model and n) lie between 0.951 and 0.996; the bands of two models of one cell are
    never more than one apart.
    """
    columns = sorted({(model, n) for _, model, n in table2})
    datasets = sorted({dataset for dataset, _, _ in table2})
    values = np.array([[table2[dataset, model, n] / 1000 for dataset in datasets] for model, n in columns])
    r = [np.corrcoef(values[a], values[b])[0, 1] for a, b in itertools.combinations(range(6), 2)]
    assert round(min(r), 3) == 0.951
    assert round(max(r), 3) == 0.996
    for dataset, n in itertools.product(datasets, (2, 3)):
        places = [ORDER.index(band(value / 1000)) for (d, _, m), value in table2.items() if (d, m) == (dataset, n)]
        assert max(places) - min(places) <= 1


# --- from one grid to the next -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coarse", "fine", "by_hand", "published"),
    [  # PCRI paper, section A.4.6: averages at 2x2 and 3x3, printed with three decimals, and the drop in percent
        (-0.036, -0.079, -43 / 36, 119.6),
        (-0.013, -0.027, -14 / 13, 99.1),
        (-0.492, -0.755, -263 / 492, 53.4),
    ],
)
def test_relative_change_of_the_pcri_paper(coarse, fine, by_hand, published):
    """The published drop lies between the drops of the least and the most that round to the printed values.

    A drop is below 0.
    """
    half = 0.0005
    least, most = relative_change(coarse - half, fine + half), relative_change(coarse + half, fine - half)
    assert most < -published / 100 < least < 0
    assert relative_change(coarse, fine) == pytest.approx(by_hand)


def test_relative_change_by_hand():
    assert relative_change(-0.2, -0.3) == pytest.approx(-0.5)  # half as local again
    assert relative_change(0.2, 0.3) == pytest.approx(0.5)
    assert relative_change(0.2, -0.1) == pytest.approx(-1.5)  # falls by more than all of it
    assert relative_change(-0.2, 0.1) == pytest.approx(1.5)
    assert relative_change(-0.2, -0.2) == 0
    assert relative_change(None, 0.1) is relative_change(0.1, None) is relative_change(0.0, 0.1) is None


@pytest.mark.parametrize("n", range(2, 10))
def test_fragmentation_is_said_from_5_on(n):
    """RCI paper, section A.5.3: "when each patch contains as little as 4% of the original image"."""
    said = fragmentation(n)
    assert bool(said) == (n >= 5)
    if n == 5:
        assert "cells of 4 %" in said


# --- the index itself ---------------------------------------------------------------------------------


@given(st.floats(0.01, 100), st.floats(0, 100))
def test_index_and_gap_have_one_sign_and_the_index_ends_at_1(fip, mpp):
    found = index(fip, mpp)
    assert found.value <= 1
    assert found.gap == fip - mpp
    assert math.copysign(1, found.value) == math.copysign(1, found.gap) or abs(found.value) < 1e-12


def test_a_gap_without_an_index():
    """FIP 0: the ratio has no meaning, the difference has one."""
    assert (index(0.0, 0.5).value, index(0.0, 0.5).gap) == (None, -0.5)
    assert (index(0.2, 0.1, higher_is_better=False).value, index(0.2, 0.1, higher_is_better=False).gap) == (None, 0.1)
    assert (index(None, 0.1).value, index(None, 0.1).gap) == (None, None)


def test_ends_of_the_index():
    assert index(0.5, 0.5).value == 0
    assert index(0.5, 0.0).value == 1
    assert index(0.5, 1.0).value == -1
