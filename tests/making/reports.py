"""Entries of a report, made up: what ``gather`` would hand over."""

import numpy as np

from lmms_patch.present.report.data import Entry, Part
from lmms_patch.stats.resample import Estimate
from lmms_patch.stats.spatial import cell_shares


def estimate(value, half=None, n=200, reason=""):
    ends = (None, None) if half is None or value is None else (value - half, value + half)
    return Estimate(value, None if half is None else half / 1.96, *ends, n, n, 1000, reason=reason)


def shares(n, docs=200, seed=0, weights=None):
    """Shares of docs that each cell answers with its own probability."""
    weights = np.full(n * n, 0.4) if weights is None else np.asarray(weights, float)
    scores = (np.random.default_rng(seed).random((docs, n * n)) < weights).astype(float)
    found = cell_shares(scores, permutations=99)
    listed = {key: None if getattr(found, key) is None else np.asarray(getattr(found, key)).tolist() for key in ("score", "win", "p_cells")}
    return {**listed, "centre": found.centre, "p": found.p, "docs": docs}


def entry(base="toy", model="model", grids=(2, 3), fip=0.8, indices=(-0.1, -0.2), half=0.05, gate=1, kind="rci", seed=0, weights=None, **more):
    measures = {"score": estimate(fip, 0.04), "fip": estimate(fip, 0.04), "chance": estimate(0.25, 0.03), "ceiling": estimate(1.0)}
    by_grid = {}
    for n, index in zip(grids, indices, strict=True):
        valid = gate != 0
        measures[f"mpp{n}"] = estimate(fip * (1 - index), 0.04)
        measures[f"{kind}{n}"] = estimate(index, half) if valid else estimate(None, reason="near chance: FIP 0.26, threshold 0.30")
        measures[f"{kind}{n}_adj"] = estimate(index + 0.1, half) if valid else estimate(None, reason="near chance")
        measures[f"gap{n}"] = estimate(fip * index, half) if valid else estimate(None, reason="near chance")
        by_grid[str(n)] = {"fip": fip, "shares": shares(n, seed=seed, weights=weights)}
    name = "".join(c if c.isalnum() else "-" for c in f"e-{base}-{model}".lower())
    whole = Part(200, measures, gate, {"grids": by_grid})
    about = {"type": "", "date": "2026-01-01", "failures": {"full": 0, "cells": 2, "views": 2800, "empty": 1}, **more}
    return Entry(about.pop("id", name), model, base, f"{base}_{kind}", kind, kind, tuple(grids), "acc", True, about.pop("type"), whole, **about)


def tst_entry(base="toy", tst=0.45, chance=0.25, majority=0.3):
    measures = {
        "score": estimate(tst, 0.05),
        "tst": estimate(tst, 0.05),
        "tst_majority": estimate(majority),
        "tst_above": estimate(tst - majority, 0.05),
        "tst_over_chance": estimate(tst - chance, 0.05),
        "tst_s": estimate(0.4),
        "chance": estimate(chance),
        "ceiling": estimate(1.0),
    }
    details = {"headline": "source", "folds": 5, "chance": chance, "by_grouping": {"source": {"p": 0.001}}}
    return Entry(f"e-{base}-tst", "tst_rf", base, f"{base}_tst5", "tst", None, (), "acc", True, "", Part(200, measures, None), tst_details=details)
