"""Cases for findings, made up: one task of one model with the numbers that a test names."""

from dataclasses import replace

from lmms_patch.ask.kinds import KINDS
from lmms_patch.present.findings import Case
from lmms_patch.runs import reading
from lmms_patch.stats.resample import Estimate
from tests.making.analyses import analysis

SEEN = {"against": "wrong images", "value": True, "full": 0.8, "other": 0.3}
"""A gate that the answers pass: they depend on the image."""


def ends(value, low=None, high=None, n=400, reason="", level=0.95):
    return Estimate(value, None, low, high, n, n, 1000, level, reason)


def indexed(base, *grids, gate=None, model="m", asked=None, needs=()):
    """A task with an index.

    Args:
        base: the benchmark.
        grids: of each its n, and the index 1 − MPP / FIP (value, low, high, n docs).
        gate: what differs from a gate that lets the index be read.
        model: the model.
        asked: what a run that left docs out tells of it; None: all docs were asked.
        needs: what the docs need at each grid (``reports.necessity``).
    """
    measures = {"score": ends(0.8, 0.75, 0.85), "chance": ends(0.25)}
    measures["fip"] = measures["score"]
    stored = {}
    for n, *numbers in grids:
        of, marginal = ends(*numbers), bool((gate or {}).get("marginal"))
        measures[f"rci{n}"] = reading.worded(of, marginal=marginal, sampled=bool(asked))
        measures[f"mpp{n}"] = ends(0.4)
        stored[n] = {"n": n, "reason": of.reason}
    gate = {"valid": True, "fip": 0.8, "chance": 0.25, "looks": [SEEN], **(gate or {})}
    made = analysis({"grids": stored, "gate": gate, "asked": asked})
    made = replace(made, necessity=tuple(needs))
    return Case(f"{model}/{base}_rci", model, base, f"{base}_rci", KINDS["rci"], "acc", measures, made)


def plain(base, kind, score, chance=0.25, model="m", **measures):
    """A task without an index: its score (value, low, high), and other numbers by name."""
    named = {name: ends(*one) for name, one in measures.items()}
    named |= {"score": ends(*score), "chance": ends(chance)}
    return Case(f"{model}/{base}_{kind}", model, base, f"{base}_{kind}", KINDS[kind], "acc", named, analysis({}))
