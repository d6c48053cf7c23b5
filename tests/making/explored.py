"""Finished runs of any number of docs, written as the columns of their tables."""

import polars as pl

from lmms_patch.ask import kinds
from lmms_patch.ask.spec import Options, WrapSpec
from lmms_patch.ask.views import views_of
from lmms_patch.runs import samples
from lmms_patch.runs.details import About, Model, Of
from lmms_patch.runs.schema import LISTS, TYPES
from tests.making.files import DATE

KINDS = ("one cell", "whole image", "unsolved", "text")
"""What the docs need, in turn; text only where the doc is asked on a wrong image."""
OPTIONS = ["a cat", "a dog", "a hen", "a cow"]
SIZE = {"width": 300, "height": 200, "frames": None, "seconds": None}
VLM = Model("org/vlm", "vlm", date=DATE)


def kind_of(doc):
    """What a doc needs: text only among the first 300, which are asked on wrong images."""
    kind = KINDS[doc % 4]
    return kind if doc < 300 else "one cell" if kind == "text" else kind


def write_task(folder, spec, frame, place=0, model=VLM, metric="acc", **more):
    """Write the table of a task from some of its columns; the place of its run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{DATE}_results.json"
    asked = {**spec.described(), "metric": metric}
    about = About(
        schema=1, task=spec.name, asked=asked, native={"none": Of("mean")}, model=model, place=place,
        rows=0, docs=0, columns=[], **{"metrics": {"acc": True}, **more},
    )  # fmt: skip
    absent = [pl.lit(None, kind).alias(name) for name, kind in TYPES.items() if name not in frame.columns]
    frame = frame.with_columns(absent).cast({name: TYPES[name] for name in TYPES}).select(*TYPES)
    frame = frame.with_columns(pl.when(view=0).then(pl.col(LISTS)))
    samples.write(samples.path_of(path, spec.name), frame, about)
    return path


def write_many(folder, docs, *, base="album", grid=3, categories=("indoor", "outdoor", "other"),
               blind=None, change=lambda frame: frame, **about):  # fmt: skip
    """Write a run of so many docs; the place of its results file.

    ``blind`` tells which docs are right in a blind task beside it; None: there is none. ``change`` may alter the rows;
    ``about`` is more of what the table says of itself.
    """
    spec = WrapSpec(base, kinds.KINDS["rci"], (grid,), Options(category="kind"))
    asked = [
        {"kind": one.kind, "n": one.n or None, "cell": one.cell, "row": one.row, "col": one.col}
        for one in views_of(spec)
    ]
    own = pl.DataFrame(asked, schema={"kind": pl.String, **dict.fromkeys(("n", "cell", "row", "col"), pl.Int16)})
    views = pl.concat([own.with_columns(swapped=pl.lit(None, pl.Boolean)), own.with_columns(swapped=True)])
    of_docs = pl.DataFrame(
        {
            "doc_id": range(docs),
            "needs": [kind_of(doc) for doc in range(docs)],
            "category": [categories[doc % len(categories)] for doc in range(docs)],
            "question": [f"Which animal is on picture {doc * 7919 % 1000003} of the album?" for doc in range(docs)],
        }
    )
    rows = of_docs.join(views.with_row_index("view"), how="cross", maintain_order="left_right")
    swapped = pl.col("swapped").fill_null(False)
    full, cell = ~pl.col("needs").eq("unsolved"), pl.col("needs").is_in(["one cell", "text"]) & (pl.col("cell") == 5)
    right = pl.when(swapped).then(pl.col("needs") == "text").when(kind="full").then(full).otherwise(cell)
    rows = rows.filter(~swapped | (pl.col("doc_id") < 300)).with_columns(score=right.cast(pl.Float64))
    said = pl.when(right).then(pl.lit("B")).otherwise(pl.lit("C"))
    frame = rows.with_columns(
        answer=said, names=pl.when(right).then(2).otherwise(3), answer_no=pl.when(swapped).then(0),
        wrong_from=pl.when(swapped).then(3), best=pl.when(~swapped & (pl.col("cell") == 5)).then(True),
        gold=pl.lit("B"), gold_at=2, choices=4, label=pl.lit("mc4"), stratum=pl.lit("all"),
        options=pl.lit(OPTIONS, pl.List(pl.String)), shown=pl.lit([SIZE], TYPES["shown"]),
    ).drop("needs")  # fmt: skip
    frame = frame.with_columns(wrong_shown=pl.when(pl.col("doc_id") < 300).then("shown"))
    path = write_task(folder, spec, change(frame), **about)
    if blind is not None:
        scores = [float(blind(doc)) for doc in range(docs)]
        frame = pl.DataFrame({"doc_id": range(docs), "score": scores, "kind": "blind", "view": 0, "label": "mc4"})
        frame = frame.with_columns(answer=pl.when(score=1).then(pl.lit("by heart")).otherwise(pl.lit("no idea")))
        write_task(folder, WrapSpec(base, kinds.KINDS["blind"]), frame, place=1)
    return path


def write_swap(folder, docs=4, base="album", source=lambda doc: (doc + 1) % 4):
    """Write a run of a ``_swap`` task of grid 2: each doc is asked on the image of doc ``source(doc)``.

    Doc ``d`` is right on the full image where d is even, and on cell 1 + d; ``source`` gives None where no other doc's
    image fits.
    """
    spec = WrapSpec(base, kinds.KINDS["swap"], (2,), Options())
    rows = []
    for doc in range(docs):
        other = source(doc)
        for at, view in enumerate(views_of(spec)):
            right = doc % 2 == 0 if view.cell is None else at - 1 == doc
            sizes = {"shown": [_size(doc)], "wrong_shown": None if other is None else [_size(other)]}
            where = {"n": view.n or None, "cell": view.cell, "row": view.row, "col": view.col}
            came = {"answer": "B" if right else "C", "score": float(right)}
            lost = {"failed": "no other doc's image fits"}
            rows.append(
                {"doc_id": doc, "view": at, "kind": view.kind, "swapped": True, "wrong_from": other, "gold": "B"}
                | {
                    "question": f"question {doc}",
                    "best": at == 1,
                    **sizes,
                    **where,
                    **(lost if other is None else came),
                }
            )
    known = {name: kind for name, kind in TYPES.items() if any(name in row for row in rows)}
    write_task(folder, spec, pl.DataFrame(rows, schema=known))


def _size(doc):
    return {"width": 100 * (doc + 1), "height": 100, "frames": None, "seconds": None}


HOSTILE = [
    '<script>window.hit = 1</script><img src=x onerror="window.hit = 1">',
    "</script><svg onload=window.hit=1>",
    "javascript:alert(1)",
    "\u202egnp.exe\u2066 \x1b[31mred\x07",
    '{{7*7}} ${7*7} `window.hit = 1` " onmouseover="window.hit=1" x="',
    "http://evil.example/" + "long" * 300,
]


def write_hostile(folder):
    """Write a run whose every text is hostile; the place of its results file."""

    def change(frame):
        text = pl.col("doc_id").map_elements(lambda doc: HOSTILE[doc % len(HOSTILE)], pl.String)
        lost = pl.col("view") == 2
        return frame.with_columns(
            pl.when(~lost).then("score"),
            question=text,
            gold=text,
            answer=pl.when(~lost).then(text),
            cluster=text,
            failed=pl.when(lost).then(text),
            options=pl.concat_list(text, text + pl.lit(" again")),
            choices=2,
            names=None,
        )

    model = Model(HOSTILE[0], HOSTILE[4], "pretrained=" + HOSTILE[1], DATE)
    return write_many(folder, 12, categories=tuple(HOSTILE[:3]), change=change, model=model)
