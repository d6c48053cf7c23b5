"""Docs of a run in plain JSON types, which tests edit, and back: the keys are those of the samples table, nested."""

from msgspec import convert, to_builtins

from lmms_patch.ask import answers
from lmms_patch.ask.kinds import KINDS, REGIONS
from lmms_patch.ask.references import digest
from lmms_patch.ask.views import HiddenView, Region, View
from lmms_patch.runs import frames
from lmms_patch.runs.schema import FIELD
from lmms_patch.runs.scored import Asked, Baseline, Exchanged, SampleRecord, ScoredView, WrongImage
from lmms_patch.runs.scoring import plain

_KEPT = ("error", "names", "answer", "losses")
_FLAGS = ("failed", "unfinished", "misread")


def as_json(doc, described, about=None):
    """A doc as JSON; what says nothing is left out.

    Args:
        doc: the doc.
        described: what the config of its task says of the task (``WrapSpec.described``).
        about: what a text-only diagnostic found out about the task.
    """
    first = described.get("options", {}).get("images") == "first"
    wrong, asks = doc.wrong_image, doc.asks
    target = None if asks is None or asks.target is None else str(asks.target)
    found = {
        "images": doc.images,
        "clips": [{"frames": frames} | ({} if s is None else {"seconds": s}) for frames, s in doc.clips],
        "fields": plain({name: value for name, value in doc.fields.items() if not name.startswith(FIELD)}),
        "answer": dict.fromkeys(("gold", "gold_at")) | dict(doc.answer) if doc.answer else {},
        "stratum": doc.stratum if doc.answer else "",
        "baselines": [_baseline(one) for one in doc.baselines],
        "exchanged": _columns(doc.exchanged) if doc.exchanged else {},
        "tst": _test(doc.tst, about or {}) if doc.tst else {},
        "wrong_image": {"from": wrong.source, "image_sizes": [list(size) for size in wrong.sizes]} if wrong else {},
        "asked": to_builtins(doc.asked),
    }
    if asks is not None:
        found |= {"question": asks.prompt, "target": target, "options": list(asks.choices)}
        found |= {"digests": [digest([asks.prompt]), digest([target, asks.choices])]}
    if wrong and wrong.views:
        sizes = wrong.sizes[:1] if first else wrong.sizes
        found["wrong_image"]["views"] = [
            _view(one, sizes) | {"said": said} for one, said in zip(wrong.views, wrong.said, strict=True)
        ]
    return {
        "schema": 1,
        "task": described.get("task") or KINDS[described["kind"]].name,
        **{name: described[name] for name in ("base", "kind")},
        "grids": list(described["grids"]),
        "doc_id": int(doc.doc_id),
        "image_sizes": [list(size) for size in doc.sizes],
        "views": [_view(one, doc.sizes[:1] if first else doc.sizes) for one in doc.views],
        "best": {str(key): place for key, place in doc.best.items()},
        "excluded": {str(key): why for key, why in doc.excluded.items()},
        **{name: value for name, value in found.items() if value},
    }


def _view(scored, sizes):
    view, shown = scored.view, frames._shown(scored.view)
    boxes = shown["boxes"] or [list(box) for size in sizes if (box := view.box(size)) is not None]
    told = {name: getattr(scored, name) for name in _KEPT} | {name: getattr(scored, name) or None for name in _FLAGS}
    told |= dict(zip(("tokens_in", "tokens_out"), scored.tokens, strict=True))
    told = {**shown, "gold_at": view.gold or None, "boxes": boxes or None, **told}
    items = {} if scored.failed else plain(scored.items)
    return {k: v for k, v in told.items() if v is not None} | {"scores": dict(scored.scores), "items": items}


def _baseline(one):
    items = {name: plain(item) for name, item in one.items.items() if plain(item) != one.scores.get(name)}
    out = {"answer": one.answer, "roles": list(one.roles), "scores": dict(one.scores)}
    return out | ({"items": items} if items else {})


def _columns(exchanged):
    out = {name: [getattr(one, name) for one in exchanged] for name in ("to", "full", "wrong_full")}
    for name in ("best", "wrong_best"):
        sets = getattr(exchanged[0], name)
        out[name] = {str(key): [getattr(one, name)[key] for one in exchanged] for key in sets}
    return out


def _test(row, about):
    out = {"diagnostic": about.get("diagnostic", ""), "grouping": about.get("grouping", "none")}
    out |= {
        name: row.get(name)
        for name in ("fold", "source", "answers", "s", "chance", "s_minus_chance", "delta", "copies", "text")
    }
    zero = {"s": row.get("zero_s"), "score": row.get("zero_score")}
    out |= {"zero_shot": None if zero == {"s": None, "score": None} else zero, "scores": {}, "baseline": {}}
    for one in row["folds"]:
        out["scores"].setdefault(one["grouping"], []).append(one["score"])
        out["baseline"].setdefault(one["grouping"], []).append(one["baseline"])
    return out


def as_doc(given):
    """A doc from some keys of its JSON; what a doc needs beside them is filled in."""
    wrong, asked, exchanged = given.get("wrong_image"), given.get("asked"), given.get("exchanged")
    asks = None
    if any(given.get(name) for name in ("question", "target", "options")):
        asks = answers.Asked(given.get("question") or "", given.get("target"), tuple(given.get("options") or ()))
    views = given.get("views", [{"kind": "full", "scores": {}, "items": {}}])
    own, more = [_scored(one) for one in views], wrong.get("views", []) if wrong else []
    said = tuple(one.get("said") or "" for one in more)
    return SampleRecord(
        given.get("doc_id", 0),
        _sizes(given.get("image_sizes", [])),
        tuple(own),
        {_key(key): place for key, place in given.get("best", {}).items()},
        {_key(key): why for key, why in given.get("excluded", {}).items()},
        given.get("fields", {}),
        given.get("answer") or {},
        given.get("stratum", ""),
        tuple(
            Baseline(one["answer"], tuple(one["roles"]), one.get("items", {}), one["scores"])
            for one in given.get("baselines", ())
        ),
        _rows(exchanged) if exchanged else (),
        _row(given["tst"]) if given.get("tst") else {},
        WrongImage(wrong["from"], _sizes(wrong.get("image_sizes", [])), tuple(map(_scored, more)), said)
        if wrong
        else None,
        given.get("images") or "",
        convert(asked, Asked) if asked else None,
        tuple((one["frames"], one.get("seconds")) for one in given.get("clips", ())),
        asks,
    )


def as_docs(given):
    """Docs from some keys each."""
    return [one if isinstance(one, SampleRecord) else as_doc(one) for one in given]


def frame_of(records, *metrics):
    """The rows of docs in JSON, by ``acc`` where no metric is named."""
    return frames.frame_of(as_docs(records), metrics or ["acc"])


def _sizes(given):
    return tuple(tuple(size) for size in given)


def _key(text):
    return int(text) if str(text).isdigit() else text


def _scored(given):
    n, cell = given.get("n") or 0, given.get("cell")
    row, col = given.get("row"), given.get("col")
    if cell and row is None:
        row, col = divmod(cell - 1, n)
    swapped, boxes = given.get("swapped", False), tuple(map(tuple, given.get("boxes") or ()))
    if given.get("region"):
        view = Region(swapped=swapped, number=given["region"], area=boxes[0], relevant=given["relevant"])
    elif given.get("hidden"):
        view = HiddenView(swapped=swapped, relevant=given["relevant"], areas=boxes, share=given["hidden"])
    else:
        more = {"turn": given.get("turn") or 0, "gold": given.get("gold_at") or 0, "adds": given.get("caption") or ""}
        view = View(given["kind"], n, row or 0, col or 0, swapped=swapped, **more)
    told = {name: given[name] for name in (*_KEPT, *_FLAGS) if given.get(name) is not None}
    tokens = given.get("tokens_in"), given.get("tokens_out")
    return ScoredView(view, given.get("items", {}), given.get("scores", {}), tokens=tokens, **told)


def _rows(columns):
    return [
        Exchanged(
            to,
            columns["full"][i],
            {key: scores[i] for key, scores in columns["best"].items()},
            columns["wrong_full"][i],
            {key: scores[i] for key, scores in columns["wrong_best"].items()},
        )
        for i, to in enumerate(columns["to"])
    ]


def _row(test):
    zero, baseline = test.get("zero_shot") or {}, test.get("baseline", {})
    folds = [
        {"grouping": name, "seed": seed, "score": score, "baseline": baseline[name][seed] if name in baseline else None}
        for name, scores in test["scores"].items()
        for seed, score in enumerate(scores)
    ]
    same = {name: test.get(name) for name in ("source", "text", "copies", "s", "chance", "s_minus_chance", "delta")}
    zeros = {"zero_s": zero.get("s"), "zero_score": zero.get("score")}
    return {"fold": test.get("fold", 0), "answers": test.get("answers", []), "folds": folds, **same, **zeros}


def in_table(result):
    """The docs of a finished result as JSON by doc id, from its table: items, digests and formats are in no table."""
    out, about = {}, result.about
    names = {"score": next(iter(about.metrics), ""), **{f"score.{name}": name for name in list(about.metrics)[1:]}}
    for (doc_id,), rows in result.frame().group_by("doc_id", maintain_order=True):
        views, (first, *_) = [], (rows := list(rows.sort("view").iter_rows(named=True)))
        for row in rows:
            view = {name: row[name] for name in (*frames._shown(View("full")), *_KEPT, *_FLAGS, "answer_no", "gold_at")}
            scores = {name: row[column] for column, name in names.items() if row.get(column) is not None}
            views.append({name: value for name, value in view.items() if value is not None} | {"scores": scores})
        own = [one for one in views if not one.get("swapped") or about.asked["kind"] == "swap"]
        best = {
            str(row["n"] if row["cell"] else REGIONS[not row["relevant"]]): row["view"] for row in rows if row["best"]
        }
        told = {name: first[name] for name in ("category", "cluster", "group") if first[name] is not None}
        source = next((row["wrong_from"] for row in rows if row["wrong_from"] is not None), None)
        label = {"label": first["label"], "options": first["choices"], "gold": first["gold"]}
        out[doc_id] = {
            **{name: first[name] for name in ("doc_id", "stratum", "images", "question", "options", "references")},
            "image_sizes": [[one["width"], one["height"]] for one in first["shown"] or ()],
            "views": own,
            "best": best,
            "excluded": {one["set"]: one["why"] for one in first["excluded"] or ()},
            "fields": told,
            "answer": label if first["label"] else {},
            "tst": _test(first["tst"], about.tst) if first["tst"] else {},
            "wrong_image": {} if source is None else {"from": source, "views": views[len(own) :]},
        }
    return out
