"""Cases for findings, made up: one task of one model with the numbers that a test names."""

from lmms_patch.ask.kinds import KINDS
from lmms_patch.present.findings import Case
from lmms_patch.runs import reading
from lmms_patch.stats.resample import Estimate
from tests.making.analyses import analysis

SEEN = {"against": "wrong images", "value": True, "full": 0.8, "other": 0.3}
"""A gate that the answers pass: they depend on the image."""


def ends(value, low=None, high=None, n=400, reason="", level=0.95):
    return Estimate(value, None, low, high, n, n, 1000, level, reason)


def indexed(base, *grids, luck=True, gate=None, size=None, model="m", kind="rci", asked=None, mark="",
            raw=None, wrong=0, **scores):  # fmt: skip
    """A task with an index.

    Args:
        base: the benchmark.
        grids: of each its n, and the index that people should go by (value, low, high, n docs).
        luck: whether luck was measured; else ``grids`` are of the index that is not luck-corrected.
        gate: what differs from a gate that lets the index be read.
        raw: the index that is not luck-corrected, where it differs from the luck-corrected one.
        wrong: how many docs were also asked on a wrong image.
    """
    measures = {"score": ends(scores.get("fip", 0.8), 0.75, 0.85), "chance": ends(0.25)}
    measures["fip"] = measures["score"]
    stored = {}
    for n, *numbers in grids:
        of, name = ends(*numbers), f"{kind}{n}"
        published = of if raw is None else ends(*raw)
        marginal = bool((gate or {}).get("marginal"))
        measures[name] = reading.worded(published, mark=mark, marginal=marginal, sampled=bool(asked))
        measures[f"mpp{n}"] = ends(scores.get("mpp", 0.4))
        stored[n] = {"n": n, "mark": mark, "reason": of.reason}
        if luck:
            measures[f"{name}_adj"] = reading.worded(of, parts="cells", marginal=marginal, sampled=bool(asked))
            stored[n]["adj"] = {"asked": wrong, "estimate": {"value": of.value, "low": of.low}}
    gate = {"valid": True, "fip": 0.8, "chance": 0.25, "looks": [SEEN], **(gate or {})}
    made = analysis({"grids": stored, "gate": gate, "asked": asked})
    return Case(f"{model}/{base}_{kind}", model, base, f"{base}_{kind}", KINDS[kind], "acc", measures, made, size)


def plain(base, kind, score, chance=0.25, model="m", **measures):
    """A task without an index: its score (value, low, high), and other numbers by name."""
    named = {name: ends(*one) for name, one in measures.items()}
    named |= {"score": ends(*score), "chance": ends(chance)}
    return Case(f"{model}/{base}_{kind}", model, base, f"{base}_{kind}", KINDS[kind], "acc", named, analysis({}))
