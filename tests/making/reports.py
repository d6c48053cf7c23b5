"""Entries of a report, made up: what ``gather`` would hand over."""

import numpy as np
from msgspec import to_builtins

from lmms_patch.ask.kinds import KINDS
from lmms_patch.present.report.data import Entry, Figure, Part
from lmms_patch.runs import reading
from lmms_patch.runs.numbers import Necessity
from lmms_patch.stats.gate import SAME
from lmms_patch.stats.resample import Estimate
from lmms_patch.stats.spatial import cell_shares
from tests.making.analyses import analysis
from tests.making.results import cross_validated, result


def undrawn(drawing, folder):
    """Stand for ``figures.write`` in tests of what a report says: all that it says of a figure, without the time of drawing it."""
    svg = "<svg xmlns='http://www.w3.org/2000/svg'/>"
    (folder / f"{drawing.name}.svg").write_text(svg, encoding="utf-8")
    words = drawing.title, drawing.caption, "; ".join(drawing.tips)
    return Figure(drawing.name, *words, svg, drawing.section, drawing.entries, (f"{drawing.name}.svg",))


def estimate(value, half=None, n=200, reason=""):
    ends = (None, None) if half is None or value is None else (value - half, value + half)
    return Estimate(value, None if half is None else half / 1.96, *ends, n, n, 1000, reason=reason)


def shares(n, docs=200, seed=0, weights=None, kind="rci"):
    """Shares of docs that each cell, or segment, answers with its own probability."""
    cells = KINDS[kind].cells(n)
    weights = np.full(cells, 0.4) if weights is None else np.asarray(weights, float)
    scores = (np.random.default_rng(seed).random((docs, cells)) < weights).astype(float)
    found = cell_shares(scores, permutations=99)
    listed = {
        key: None if getattr(found, key) is None else np.asarray(getattr(found, key)).tolist()
        for key in ("score", "win", "p_cells")
    }
    return {**listed, "centre": found.centre, "p": found.p, "docs": docs}


def entry(base="toy", model="model", grids=(2, 3), fip=0.8, indices=(-0.1, -0.2), half=0.05, gate=1,
          kind="rci", seed=0, weights=None, steady=False, **more):  # fmt: skip
    measures = {
        "score": estimate(fip, 0.04),
        "fip": estimate(fip, 0.04),
        "chance": estimate(0.25, 0.03),
        "ceiling": estimate(1.0),
    }
    by_grid = {}
    for n, index in zip(grids, indices, strict=True):
        valid = gate != 0
        measures[f"mpp{n}"] = estimate(fip * (1 - index), 0.04)
        measures[f"{kind}{n}"] = (
            estimate(index, half) if valid else estimate(None, reason="near chance: FIP 0.26, threshold 0.30")
        )
        if steady:
            measures[f"{kind}{n}_steady"] = (
                estimate(index + 0.1, half) if valid else estimate(None, reason="near chance")
            )
        measures[f"gap{n}"] = estimate(fip * index, half) if valid else estimate(None, reason="near chance")
        by_grid[n] = {
            "n": n,
            "fip": fip,
            "shares": shares(n, seed=seed, weights=weights, kind=kind),
        }
    name = "".join(c if c.isalnum() else "-" for c in f"e-{base}-{model}".lower())
    whole = Part(200, measures, gate, analysis({"grids": by_grid}))
    about = {"failures": {"full": 0, "cells": 2, "views": 2800, "empty": 1}, **more}
    of = {
        name: about.pop(name)
        for name in ("task", "metric", "type_", "path", "magic", "higher_is_better")
        if name in about
    }
    return Entry(result(model, base, kind, grids, **of), model, about.pop("label", name), whole, **about)


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
    ends = [to_builtins(estimate(value, 0.05)) for value in (tst, tst - majority)]
    details = cross_validated(*ends, majority, chance)
    found = result("tst_rf", base, "tst", task=f"{base}_tst5", tst_details=details)
    return Entry(found, "tst_rf", f"e-{base}-tst", Part(200, measures, None))


def necessity(one_cell, whole_image, unsolved, text=0.0, n=3, docs=200, again=50):
    """What docs need: shares of the classes; ``text`` None: no doc was asked again."""
    asked = text is not None
    shares = {"text": text, "one cell": one_cell, "whole image": whole_image, "unsolved": unsolved}
    known = {name: estimate(share if asked else None, 0.03 if asked else None, docs) for name, share in shares.items()}
    solved = one_cell + whole_image
    of_solved = [
        estimate(whole_image / of if asked and of else None, 0.03 if asked and of else None, docs)
        for of in ((text or 0) + solved, solved)
    ]
    return Necessity(n, docs, again if asked else 0, known, *of_solved)


NAMES = (
    "GQA", "MMBench-EN", "chartqa",
    "a benchmark with a name of more than sixty characters, as task files may well have", "中文视觉问答基准测试集合二零二六年版本",
    "اختبار الأسئلة المرئية", "POPE", "MME-RealWorld", "hallusion_bench_image", "DocVQA",
)  # fmt: skip
MODELS = (
    "Qwen/Qwen2.5-VL-7B-Instruct",
    "OpenGVLab/InternVL3-8B",
    "llava-hf/llava-onevision-qwen2-7b-ov-chat-hf",
    "gpt-4o-2024-11-20",
    "google/gemma-3-27b-it with a name of its own that goes on and on and on",
)


def situations(benchmarks=5, models=1):
    """Results of every sort that a figure must show: asked again or not, refused for both reasons, contradicted, marginal, sampled, far out.

    The index and the steady one of each are drawn from a fixed stream; every number can be read back from
    ``whole.measures``.
    """
    stream = np.random.default_rng(7)
    out = []
    for b in range(benchmarks):
        name = NAMES[b % len(NAMES)] + (f" {b // len(NAMES) + 1}" if b >= len(NAMES) else "")
        for m in range(models):
            kind = (b + 3 * m) % 9
            middle = -0.5 + b / max(1, benchmarks - 1) + float(stream.normal(0, 0.08))
            indices = (middle + 0.05, middle)
            gate = 0 if kind in (4, 7) else 1
            more = {
                "blind": estimate(0.28, 0.05) if b % 2 else None,
                "tst": estimate(0.35, 0.04) if b % 3 else None,
                "type_": ("mcq", "yesno", "vqa")[b % 3],
                "steady": kind != 2,
            }
            half, fip = float(stream.uniform(0.03, 0.12)), 0.3 + 0.03 * b % 0.6
            made = entry(
                name,
                MODELS[m] if m < len(MODELS) else f"org/model-{m}",
                indices=indices,
                half=half,
                gate=gate,
                seed=10 * b + m,
                fip=fip,
                **more,
            )
            out.append(_situation(made, kind, indices))
    return out


def _situation(made, kind, indices):
    measures = made.whole.measures
    for n, value in zip((2, 3), indices, strict=True):
        if made.whole.gate == 0:
            if kind == 7:
                measures[f"rci{n}"] = estimate(None, reason=f"{SAME} (full image 0.6, a wrong image 0.6, 300 docs)")
            continue
        far = {3: 0.45, 5: 1.6}.get(kind, 0.12)
        share = min(max(value + far, 0.0), 1.0)
        steady = Estimate(share, 0.025, max(share - 0.05, 0.0), min(share + 0.05, 1.0), 300, 300, 1000)
        how = {"marginal": kind == 1, "sampled": kind == 6}
        measures[f"rci{n}"] = reading.worded(
            measures[f"rci{n}"], mark="a band that does not touch" * (kind == 3), **how
        )
        if f"rci{n}_steady" in measures:
            measures[f"rci{n}_steady"] = reading.worded(steady, **how)
    return made


def region_entries(models):
    """Results of a MAGIC task by so many models, with every number that its figures show."""
    stream = np.random.default_rng(3)
    names = (
        "magiscore_recall_micro",
        "magiscore_precision_micro",
        "magiscore_recall_macro",
        "magiscore_precision_macro",
        "magiscore_f1_macro",
    )
    out = []
    for m in range(models):
        found = {
            "variant": "all",
            "metric": "acc_short",
            "judge": None,
            "numbers": {"acc_short": to_builtins(estimate(0.5))},
            "counts": {},
            "warnings": [],
        }
        name = MODELS[m % len(MODELS)] + (f" v{m}" if m >= len(MODELS) else "")
        made = entry("magic", name, kind="magic", grids=(), indices=(), magic=found)
        made.whole.measures.update(
            {name: estimate(float(stream.uniform(0.3, 0.9)), 0.05) for name in (*names, "acc_short", "acc_synonym")}
        )
        out.append(made)
    return out
