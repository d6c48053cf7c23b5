"""A finished run of many docs, written fast: each line is a template with the doc's own numbers put in."""

import json
import re
import webbrowser

import numpy as np
import pyarrow as pa

from lmms_patch.ask import kinds
from lmms_patch.ask.spec import Options, WrapSpec
from lmms_patch.ask.views import views_of
from lmms_patch.runs.run import find
from tests.making.files import DATE, described, write_files

KINDS = ("one cell", "whole image", "unsolved", "text")
"""What the docs need, in turn; text only where the doc is asked on a wrong image."""


def _template(spec, kind, wrong, category):
    """A line whose doc id is 7777777 and whose question is numbered 8888888."""

    def views(score, **more):
        out = []
        for view in views_of(spec):
            plain = {"kind": view.kind, "scores": {"acc": score(view)}, "items": {"acc": score(view)}, **more}
            if view.cell is not None:
                plain |= {"n": view.n, "cell": view.cell, "row": view.row, "col": view.col, "boxes": [[0, 0, 9, 9]]}
            out.append(plain)
        return out

    full, cell = float(kind in ("one cell", "whole image", "text")), float(kind in ("one cell", "text"))
    own = views(lambda view: full if view.cell is None else cell if view.cell == 5 else 0.0)
    patch = {"schema": 1, "task": spec.name, "base": spec.base, "kind": spec.kind.name, "grids": list(spec.grids), "doc_id": 7777777, "image_sizes": [[300, 200]],
             "views": own, "best": {str(n): 5 for n in spec.grids}, "excluded": {}, "fields": {"category": category},
             "answer": {"format": "mc", "label": "mc4", "options": 4, "gold": "B"}, "stratum": "all"}  # fmt: skip
    answers = ["B" if view["scores"]["acc"] else "C" for view in own]
    if wrong:
        lost = views(lambda view: float(kind == "text"), swapped=True, said="B" if kind == "text" else "C")
        patch["wrong_image"] = {"from": 3, "image_sizes": [[300, 200]], "views": lost}
        answers += ["B" if kind == "text" else "C"] * len(lost)
    line = {"doc_id": 7777777, "input": "Which animal is on picture 8888888 of the album?\nA. a cat\nB. a dog\nC. a hen\nD. a cow", "target": "B",
            "filtered_resps": answers, "patch": patch}  # fmt: skip
    return json.dumps(line)


def kind_of(doc):
    """What a doc needs: text only among the first 300, which are asked on wrong images."""
    kind = KINDS[doc % 4]
    return kind if doc < 300 else "one cell" if kind == "text" else kind


def write_many(
    folder, docs, *, base="album", grid=3, categories=("indoor", "outdoor", "other"), blind=None, logged=None
):
    """Write a run of so many docs; its results file.

    ``blind`` tells which docs are right in a blind run beside it; None: there is none. ``logged``: how many docs the
    log has; None: all.
    """
    spec = WrapSpec(base, kinds.KINDS["rci"], (grid,), Options(category="kind"))
    lines = {
        (kind, wrong, category): _template(spec, kind, wrong, category)
        for kind in KINDS for wrong in (False, True) for category in categories
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{DATE}_samples_{spec.name}.jsonl", "w", encoding="utf-8") as log:
        for doc in range(docs if logged is None else logged):
            line = lines[kind_of(doc), doc < 300, categories[doc % len(categories)]]
            log.write(line.replace("7777777", str(doc)).replace("8888888", str(doc * 7919 % 1000003)) + "\n")
    full = float(np.mean([kind_of(doc) != "unsolved" for doc in range(docs)]))
    patch = {"records": docs, "higher_is_better": {"acc": True}}
    data = {
        "results": {spec.name: {"acc,none": full, "patch,none": patch}},
        "configs": {spec.name: described(spec)},
        "group_subtasks": {},
        "date": DATE,
        "config": {"model": "vlm"},
        "model_name": "org/vlm",
    }
    if blind is not None:
        spec = WrapSpec(base, kinds.KINDS["blind"])
        scores = {doc: float(blind(doc)) for doc in range(docs)}
        data["results"][spec.name] = {"acc,none": sum(scores.values()) / docs, "patch,none": patch}
        data["configs"][spec.name] = described(spec)
        with open(folder / f"{DATE}_samples_{spec.name}.jsonl", "w", encoding="utf-8") as log:
            for doc, score in scores.items():
                record = {"schema": 1, "task": spec.name, "base": base, "kind": "blind", "grids": [], "doc_id": doc, "image_sizes": [], "best": {}, "excluded": {},
                          "views": [{"kind": "blind", "scores": {"acc": score}, "items": {"acc": score}}]}  # fmt: skip
                log.write(
                    json.dumps({"doc_id": doc, "filtered_resps": ["by heart" if score else "no idea"], "patch": record})
                    + "\n"
                )
    path = folder / f"{DATE}_results.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def grown(small, docs):
    """Return the table of so many docs from that of the first 600 of ``write_many``: docs from 300 on come again, with ids and questions of their own.

    Kinds and categories come again after 12 docs, so each doc is what ``write_many`` would make of it.
    """
    per_doc = np.flatnonzero(np.r_[True, np.diff(small.column("doc_id").to_numpy()) != 0, True])
    source = np.r_[0:300, 300 + np.arange(docs - 300) % 300]
    counts = np.diff(per_doc)[source]
    rows = np.repeat(per_doc[source], counts) + np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    out = small.take(pa.array(rows))
    of_row = pa.array(np.repeat(np.arange(docs), counts))
    questions = small.column("question").to_pylist()
    texts = [
        re.sub(r"picture \d+", f"picture {doc * 7919 % 1000003}", questions[per_doc[one]])
        for doc, one in enumerate(source.tolist())
    ]
    for name, column in (("doc_id", of_row), ("question", pa.array(texts).take(of_row))):
        out = out.set_column(out.column_names.index(name), name, column)
    return out


def serve_grown(folder, docs):
    """Serve the explorer of a run of so many docs until Ctrl-C, as the command does.

    Their table is made, not read: reading a log is not its part.
    """
    from lmms_patch.app.serving import pictures_of, serve
    from lmms_patch.present.explore import explorer

    read = explorer.samples.table
    result = find([write_many(folder / "small", 600)])[0].results[0]
    small = read(result, explorer.columns_of(result))
    explorer.samples.table = lambda result, columns: grown(small, docs)
    webbrowser.open = lambda address: True
    serve(explorer.open_runs([write_many(folder / "large", docs, logged=600)]), pictures_of(None))


def write_swap(folder, docs=4, base="album", source=lambda doc: (doc + 1) % 4):
    """Write a run of a ``_swap`` task of grid 2: each doc is asked on the image of doc ``source(doc)``.

    Its log's lines.

    Doc ``d`` is right on the full image where d is even, and on cell 1 + d; ``source`` gives None where no other doc's
    image fits.
    """
    spec = WrapSpec(base, kinds.KINDS["swap"], (2,), Options())
    lines = []
    for doc in range(docs):
        other = source(doc)
        answers = ["B" if right else "C" for right in (doc % 2 == 0, *(cell == doc for cell in range(4)))]
        views = []
        for view, answer in zip(views_of(spec), answers, strict=True):
            score = {"acc": float(answer == "B")}
            views.append({"kind": view.kind, "swapped": True, "scores": score, "items": score})
            if view.cell is not None:
                views[-1] |= {"n": view.n, "cell": view.cell, "row": view.row, "col": view.col, "boxes": [[0, 0, 9, 9]]}
            if other is None:
                views[-1] |= {"scores": {}, "items": {}, "failed": "no other doc's image fits"}
        record = {"schema": 1, "task": spec.name, "base": base, "kind": "swap", "grids": [2], "doc_id": doc, "image_sizes": [[100 * (doc + 1), 100]],
                  "views": views, "best": {"2": 1}, "excluded": {}}  # fmt: skip
        if other is not None:
            record["wrong_image"] = {"from": other, "image_sizes": [[100 * (other + 1), 100]]}
        lines.append(
            {"doc_id": doc, "input": f"question {doc}", "target": "B", "filtered_resps": answers, "patch": record}
        )
    patch = {"records": docs, "higher_is_better": {"acc": True}}
    write_files(
        folder,
        {spec.name: ({"acc": 0.5, "patch": patch}, described(spec), lines)},
        config={"model": "vlm"},
        model_name="org/vlm",
    )
    return lines


HOSTILE = [
    '<script>window.hit = 1</script><img src=x onerror="window.hit = 1">',
    "</script><svg onload=window.hit=1>",
    "javascript:alert(1)",
    "\u202egnp.exe\u2066 \x1b[31mred\x07",
    '{{7*7}} ${7*7} `window.hit = 1` " onmouseover="window.hit=1" x="',
    "http://evil.example/" + "long" * 300,
]


def write_hostile(folder):
    """Write a run whose every text is hostile; its results file."""
    path = write_many(folder, 12, categories=tuple(HOSTILE[:3]))
    [log] = folder.glob("*.jsonl")
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines):
        text = HOSTILE[number % len(HOSTILE)]
        line["input"], line["target"] = f"{text}\nA. {text}\nB. {text} again", text
        line["filtered_resps"] = [text] * len(line["filtered_resps"])
        line["patch"]["answer"]["gold"] = text
        line["patch"]["fields"]["cluster"] = text
        line["patch"]["views"][2] |= {"failed": text, "scores": {}, "items": {}}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    data = json.loads(path.read_text(encoding="utf-8")) | {"model_name": HOSTILE[0]}
    data["config"] = {"model": HOSTILE[4], "model_args": "pretrained=" + HOSTILE[1]}
    path.write_text(json.dumps(data), encoding="utf-8")
    return path
