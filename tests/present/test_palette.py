"""Tests that readers can tell our colours apart, colour-blind ones too (simulated), and can read texts on light and on dark ground."""

import itertools

import numpy as np
import pytest

from lmms_patch.present import palette

# Machado, Oliveira & Fernandes 2009, "A Physiologically-based Model for Simulation of Color Vision Deficiency", table
# 1, severity 1.0: matrices for linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}


def linear(colour):
    """Linear RGB (IEC 61966-2-1)."""
    c = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE L*a*b* of linear RGB, D65."""
    xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    ) @ np.clip(rgb, 0, 1)
    f = np.array(
        [
            t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116
            for t in xyz / np.array([0.95047, 1.0, 1.08883])
        ]
    )
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(a, b, sight):
    """ΔE*ab of two colours as somebody sees them: 2.3 is just noticed."""
    return float(np.linalg.norm(lab(SIGHT[sight] @ linear(a)) - lab(SIGHT[sight] @ linear(b))))


def contrast(a, b):
    """WCAG 2."""
    light = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in map(linear, (a, b)))
    return (light[1] + 0.05) / (light[0] + 0.05)


def over(colour, ground, alpha):
    """A colour painted over a ground with some transparency."""
    parts = [round(alpha * int(colour[i : i + 2], 16) + (1 - alpha) * int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{one:02x}" for one in parts)


GROUNDS = [
    (palette.LIGHT, palette.SERIES_LIGHT, palette.BAND_LIGHT),
    (palette.DARK, palette.SERIES_DARK, palette.BAND_DARK),
]


def test_the_simulation_knows_red_from_green_and_its_loss():
    assert lab(linear("#ffffff")) == pytest.approx([100, 0, 0], abs=0.02)
    assert lab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)  # published value of sRGB red
    assert distance("#c0504d", "#6b8e23", "deuteranopia") < 0.4 * distance("#c0504d", "#6b8e23", "normal")


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize(("ground", "series", "bands"), GROUNDS)
def test_models_are_told_apart(ground, series, bands, sight):
    assert min(distance(a, b, sight) for a, b in itertools.combinations(series, 2)) > 18


@pytest.mark.parametrize(("ground", "series", "bands"), GROUNDS)
def test_marks_stand_out_from_the_ground_and_from_the_bands(ground, series, bands):
    assert min(contrast(one, ground) for one in series) >= 3
    tints = [over(band, ground, 0.5) for band in bands]
    assert (
        min(contrast(one, tint) for one, tint in itertools.product(series, tints)) > 2.2
    )  # each mark has a shape and an outline of its own


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize(("ground", "series", "bands"), GROUNDS)
def test_neighbouring_bands_and_both_ends_are_told_apart(ground, series, bands, sight):
    for shown in (bands, [over(band, ground, 0.5) for band in bands]):
        assert min(distance(a, b, sight) for a, b in itertools.pairwise(shown)) > 4
        assert distance(shown[0], shown[4], sight) > 25


@pytest.mark.parametrize("sight", SIGHT)
def test_shares_below_and_above_even_are_told_apart(sight):
    assert min(distance(a, b, sight) for a, b in itertools.pairwise(palette.SHARES)) > 6
    assert min(distance(palette.SHARES[4 - k], palette.SHARES[4 + k], sight) for k in (1, 2, 3, 4)) > 10


def test_texts_are_read_on_every_colour():
    assert min(contrast(palette.TEXT_LIGHT, one) for one in palette.BAND_LIGHT) >= 4.5
    assert min(contrast(palette.TEXT_DARK, one) for one in palette.BAND_DARK) >= 4.5
    assert min(contrast(palette.on(one), one) for one in (*palette.SHARES, *palette.BAND_LIGHT)) >= 4.5
