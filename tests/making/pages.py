"""Reports made by hand, for tests of the page: every kind of result, hostile strings, numbers that are not defined."""

import base64
import io
import re

from msgspec import to_builtins

from lmms_patch.present.findings import Finding
from lmms_patch.present.report.data import CellAnswer, Entry, Example, Figure, Part, Report
from lmms_patch.present.sheets import Column, Sheet
from lmms_patch.stats.index import span
from lmms_patch.stats.resample import Estimate
from tests.making.analyses import analysis
from tests.making.results import cross_validated, result

SCRIPT = "<script>alert(1)</script>"
IMG = '"><img src=x onerror=alert(2)>'
BIDI = "abc\u202egnp.exe\u2066\u200f"
NUL = "nul\x00 bell\x07 escape\x1b[31m lone \ud800 end"
EMOJI = "👩‍🔬 naïve e\u0301 日本語 עברית"
LONG = "x" * 100_000
TEMPLATE = "{{ 7 * 7 }}{% raw %}"
MODELS = ("mosaic-vlm", "Qwen/Qwen2.5-VL-7B-Instruct")
FAMILIES = {
    "mosaic_local": (0.825, -0.18, -0.15),
    "mosaic_count": (0.867, 0.71, 0.42),
    "mosaic_text": (0.21, None, None),
}
"""Benchmark -> FIP, RCI 3x3 and RCI 2x2 of the first model; the last one is near chance."""
NO_SHARES = {**dict.fromkeys(("score", "win", "centre", "p", "p_cells")), "docs": 120}
DATE = "2026-11-21T20-33-11"
NEAR = "near chance: FIP 0.21 is below 0.2573, the floor 0.15 and its margin"


def estimate(value, half=0.04, n=120, clusters=60, reason="", level=0.95):
    if value is None:
        return Estimate(None, None, None, None, n, clusters, 0, level, reason or "not defined")
    if half is None:
        return Estimate(value, None, None, None, n, clusters, 0, level, reason)
    return Estimate(value, half / 1.96, value - half, value + half, n, clusters, 1000, level, reason)


def shares(n, docs, top=None):
    """Even shares but for one cell, ``top``, that earns twice the even share."""
    even = 1 / (n * n)
    score = [even] * (n * n)
    if top is not None:
        score = [(1 - 2 * even) / (n * n - 1)] * (n * n)
        score[top] = 2 * even
    p = [0.004 if i == top else 1.0 for i in range(n * n)]
    return {
        "score": score,
        "win": score,
        "p_cells": p,
        "centre": 1.0 if n == 3 else None,
        "p": 0.001 if top is not None else 0.591,
        "docs": docs,
    }


def part(fip, indices, index="rci", docs=120, chance=0.15, top=2):
    """A part with an index at each grid; index None: near chance."""
    measures = {"score": estimate(fip, n=docs), "fip": estimate(fip, n=docs), "acc": estimate(fip, n=docs)}
    measures |= {
        "chance": estimate(chance, 0.03, docs),
        "ceiling": estimate(1.0, None, docs, reason="the harness's own number: no interval"),
    }
    grids = {}
    for n, value in indices.items():
        mpp = fip * (1 - value) if value is not None else 0.31
        reason = "" if value is not None else NEAR
        found = estimate(value, 0.09, docs, reason=reason)
        steady = estimate(None if value is None else value * 1.2, 0.15, docs, reason=reason or "")
        gap = estimate(None if value is None else fip - mpp, 0.05, docs, reason=reason)
        measures |= {
            f"mpp{n}": estimate(mpp, n=docs),
            f"{index}{n}": found,
            f"{index}{n}_steady": steady,
            f"gap{n}": gap,
        }
        grids[n] = {
            "n": n,
            "span": span(found.low, found.high) if value is not None else None,
            "fip": fip - 0.001,
            "shares": shares(n, docs, top if n == 3 else None) if value is not None else NO_SHARES,
        }
    valid = fip >= chance + 0.1
    ends = {"delta": 0.01, "se_fip": 0.036, "se_chance": 0.0536, "threshold": chance + 0.1073}
    gate = {"valid": valid, "fip": fip, "chance": chance, "reason": "" if valid else NEAR, **ends}
    floors = {"uniform": (chance, 0.03), "constant": (chance - 0.01, 0.05)}
    floors = {name: to_builtins(estimate(*floor, docs)) for name, floor in floors.items()}
    about = {"floor": "uniform", "floors": floors, "value": chance, "published": 0.25}
    about["constants"] = {"mc": "A", "number": SCRIPT}
    return Part(docs, measures, int(valid), analysis({"grids": grids, "gate": gate, "chance": about}))


def index_entry(name, model, base, fip, indices, kind="rci", **more):
    categories = {
        "left of": part(fip, indices, kind, 40),
        "right of": part(max(0.0, fip - 0.05), indices, kind, 44),
        SCRIPT: part(0.16, dict.fromkeys(indices), kind, 36),
    }
    given = {
        "categories": categories,
        "blind": estimate(0.18),
        "tst": estimate(0.22),
        "excluded": {3: {"cells under 1 pixel": 2}},
        "failures": {"full": 0, "cells": 3, "empty": 1, "views": 120 * 14},
        "warnings": (
            "not checked whether the answers depend on the image: no doc was asked on a wrong image (null: 0)",
        ),
    }
    of = {"path": more.pop("path", f"out/{model}/2026-11-21_results.json"), "date": DATE, "type_": "mcq"}
    return Entry(result(model, base, kind, indices, **of), model, name, part(fip, indices, kind), **{**given, **more})


def blind_entry(name, model, base, value):
    measures = {"score": estimate(value), "acc": estimate(value), "chance": estimate(0.15)}
    found = result(model, base, "blind", date=DATE, type_="mcq", path=f"out/{model}/2026-11-21_results.json")
    return Entry(found, model, name, Part(120, measures, None, part(value, {}).analysis))


def tst_details():
    ends = (to_builtins(estimate(*one)) for one in ((0.45, 0.05), (0.25, 0.04)))
    names = [SCRIPT, *(f"slot value {i}" for i in range(1, 4))]
    important = [{"kind": "number", "feature": name, "gain": 0.5, "permutation": 0.1} for name in names]
    cause = {
        "category": "count",
        "docs": 9,
        "s": 0.6,
        "s_minus_chance": 0.4,
        "gold": "2",
        "gold_share": 0.5,
        "mean": 2.5,
    }
    words = ("how many 0", IMG, "how many 2")
    return cross_validated(
        *ends,
        0.2,
        0.28,
        unusable={"text": f"every doc has the same text {SCRIPT}"},
        leakage=to_builtins(estimate(0.08, 0.03)),
        s=0.41,
        texts={"different": 100, "repeated": 20, "conflicting": 4},
        importance=important,
        causes=[{"rank": i, "words": said, "sd": None, "cv": None, **cause} for i, said in enumerate(words, 1)],
    )


def tst_entry(name, model, base):
    measures = {
        "score": estimate(0.45),
        "tst": estimate(0.45, 0.05),
        "tst_majority": estimate(0.2, None),
        "tst_above": estimate(0.25),
        "tst_over_chance": estimate(0.17, 0.05),
        "chance": estimate(0.28),
    }
    bare = {
        "score": estimate(0.5),
        "tst": estimate(0.5),
        "tst_majority": estimate(0.2, None),
        "chance": estimate(None),
        "tst_s": estimate(0.4, None),
    }
    categories = {"count": Part(60, bare, None), "order": Part(60, bare, None)}
    found = result(model, base, "tst", task=f"{base}_tst5", date="2026-11-22T08-00-00", tst_details=tst_details())
    return Entry(found, model, name, Part(120, measures, None), categories)


def cells(n, right, answer="7"):
    """Cells of a 3:2 image; ``right``: numbers of those that are right, from 0; the last one is unscored."""
    out = []
    for i in range(n * n):
        row, col = divmod(i, n)
        verdict = None if i == n * n - 1 else i in right
        out.append(
            CellAnswer(
                row,
                col,
                (100 * col / n, 100 * row / n, 100 / n, 100 / n),
                answer,
                None if verdict is None else float(verdict),
                verdict,
            )
        )
    return tuple(out)


def picture(width=240, height=160):
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (width, height), "#b8c4cf")
    draw = ImageDraw.Draw(image)
    for i in range(6):
        draw.ellipse((20 + 36 * i, 30 + 14 * i, 52 + 36 * i, 62 + 14 * i), fill=("#345", "#753", "#375")[i % 3])
    out = io.BytesIO()
    image.save(out, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}"


def example(entry, rule, doc_id, **more):
    given = {
        "question": "Which digit is at the top right?\nA. 3\nB. 7\nC. 1\nD. 9",
        "gold": "B",
        "answer": "B",
        "score": 1.0,
        "right": True,
        "size": (600, 400),
        "grids": {2: cells(2, {1}), 3: cells(3, {2})},
        "image": None,
        "alt": f"doc {doc_id}, 600 by 400 pixels",
    }
    return Example(entry, rule, doc_id, **{**given, **more})


def figure(name, section, entries=(), **more):
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 300 120" width="300" height="120">'
        '<defs><clipPath id="c"><rect width="300" height="120"/></clipPath></defs>'
        '<g clip-path="url(#c)"><path id="p" d="M20 100H280M20 100V10" fill="none" stroke="currentColor" stroke-width="1.2"/></g>'
        '<circle cx="150" cy="60" r="6" fill="#0072b2"/><use xlink:href="#p"/>'
        '<text x="150" y="116" font-family="sans-serif" font-size="10px" text-anchor="middle" fill="currentColor">RCI, 3×3</text></svg>'
    )
    return Figure(
        name,
        **{
            "title": f"Figure {name}",
            "caption": "What is drawn; n = 120 docs; 95 % intervals.",
            "alt": "A dot between two axes.",
            "svg": svg,
            "section": section,
            "entries": tuple(entries),
            **more,
        },
    )


def sheet(name="overview", rows=12):
    columns = (
        Column("benchmark", "Benchmark"),
        Column("rci3", "RCI 3×3", signed=True, index=True, help="1 − MPP/FIP on the 3×3 grid; no unit."),
        Column("n", "Docs", help="How many docs."),
        Column("note", "Note"),
    )
    made = []
    for i in range(rows):
        value = estimate(None, reason=NEAR) if i == 3 else estimate(-0.45 + 0.09 * i, 0.05)
        made.append(
            {"benchmark": f"bench {i:02d}", "rci3": value, "n": 1000 - 10 * i, "note": SCRIPT if i == 1 else None}
        )
    return Sheet(name, f"Table {name}", columns, tuple(made), "Read the interval, not the point.")


def report(**more):
    """Three families, two models, every kind; hostile strings wherever a run has a say."""
    entries = []
    for m, model in enumerate(MODELS):
        for base, (fip, three, two) in FAMILIES.items():
            move = 0.07 * m
            grids = {2: None if two is None else two - move, 3: None if three is None else three - move}
            kind = "pcri" if base == "mosaic_count" and m else "rci"
            entries.append(
                index_entry(f"e{m}-{base.replace('_', '-')}", model, base, fip + (move if three else 0), grids, kind)
            )
            entries.append(blind_entry(f"e{m}-{base.replace('_', '-')}-blind", model, base, 0.05 + 0.1 * m))
    entries.append(tst_entry("e-tst", "tst_rf", "mosaic_text"))
    entries.append(
        index_entry(
            "e-hostile",
            f"model {SCRIPT} {BIDI}",
            f"base {IMG}",
            0.9,
            {3: 0.02},
            path=f"/tmp/{NUL}",
            warnings=(SCRIPT, NUL, TEMPLATE),
        )
    )
    local, count, hostile = entries[0].label, entries[2].label, "e-hostile"
    examples = [
        example(local, "local", 3, image=picture()),
        example(local, "distracted", 8, right=False, score=0.0, answer="C"),
        example(
            count,
            "global only",
            5,
            grids={2: cells(2, set()), 3: cells(3, set())},
            image=picture(160, 240),
            size=(160, 240),
        ),
        example(
            hostile,
            "unanswered",
            1,
            question=SCRIPT,
            gold=IMG,
            answer=SCRIPT,
            right=None,
            score=None,
            grids={3: cells(3, {4}, SCRIPT)},
            alt=IMG,
        ),
        example(
            hostile,
            "luck-like",
            2,
            question=f"{NUL} {BIDI} {EMOJI} {TEMPLATE}",
            answer=LONG,
            grids={3: cells(3, {4}, LONG)},
            image="data:text/html,<script>alert(3)</script>",
        ),
    ]
    figures = [figure(f"cells-{entry.label}", "runs", [entry.label]) for entry in entries[:2]]
    figures += [
        figure("headline", "headline", [entry.label for entry in entries]),
        figure("forest", "benchmarks", [entry.label for entry in entries]),
        figure("ranking", "models", [local, count], title=SCRIPT, alt=IMG, caption=SCRIPT),
        figure("dots", "tst"),
    ]
    sheets = {
        "runs": (sheet("runs", 3),),
        "benchmarks": (sheet(), sheet("small", 2)),
        "models": (sheet("ranking", 4),),
        "tst": (sheet("text-only", 3),),
    }
    findings = (
        Finding("whole", "mosaic_count (mosaic-vlm) needs the whole image: RCI +0.71 (95 % +0.62 to +0.80).", (count,)),
        Finding("cell", f"{SCRIPT} One cell is enough for 3 results.", (local, hostile, "not-in-this-report")),
    )
    made = {"lmms-patch": "0.0", "altair": "6.0", "date": "2026-11-22 10:00 UTC"}
    given = {
        "title": "mosaic with 3 models",
        "made": made,
        "entries": tuple(entries),
        "sheets": sheets,
        "figures": tuple(figures),
        "examples": tuple(examples),
        "warnings": ("1 older result is not shown", SCRIPT),
        "findings": findings,
    }
    return Report(**{**given, **more})


def large(results=40):
    """As many results as a big report has, each with categories, examples and a drawing of 600 marks."""
    entries, examples, figures = [], [], []
    dots = "".join(f'<circle cx="{i % 300}" cy="{i % 119}" r="2" fill="#0072b2"/>' for i in range(600))
    for i in range(results):
        many = {f"category {c}": part(0.8, {2: -0.1, 3: 0.2}, docs=30) for c in range(12)}
        entries.append(
            index_entry(f"e-{i}", f"model {i % 8}", f"bench {i // 8}", 0.8, {2: -0.1, 3: 0.2}, categories=many)
        )
        examples += [
            example(f"e-{i}", rule, i, answer=LONG[:400])
            for rule in ("local", "global only", "distracted", "luck-like", "unanswered", "any cell")
        ]
        drawn = figure(f"scores-{i}", "runs", [f"e-{i}"])
        figures.append(figure(f"scores-{i}", "runs", [f"e-{i}"], svg=drawn.svg.replace("</svg>", dots + "</svg>")))
    return report(entries=tuple(entries), examples=tuple(examples), figures=tuple(figures))


def squeezed(text):
    return " ".join(text.split())


def rows_of(html, table):
    body = re.search(rf'<table[^>]*id="{table}".*?<tbody>(.*?)</tbody>', html, re.DOTALL)[1]
    return [
        [squeezed(re.sub(r"<[^>]+>", " ", cell)) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    ]
