"""Docs of a run in plain JSON types, which tests edit, and their rows: the keys are those of the samples table, nested."""

import itertools

from lmms_patch.ask.kinds import KINDS, REGIONS
from lmms_patch.ask.references import digest
from lmms_patch.ask.views import HiddenView, Region, View
from lmms_patch.runs import frames
from lmms_patch.runs.frames import Doc
from lmms_patch.runs.schema import FIELD, OTHER_METRIC
from lmms_patch.runs.scoring import plain

_TOLD = ("answer", "losses", "names", "error", "failed", "unfinished", "denied", "tokens_in", "tokens_out")


def doc(spec, doc_id, sizes, views, best, excluded=None, fields=None, answer=None, stratum="", baselines=(), wrong=None, **more):  # fmt: skip
    """A doc as JSON.

    Args:
        spec: what is asked.
        doc_id: its number.
        sizes: of its images.
        views: those of ``view``.
        best: by set, the place of its best view.
        excluded: by set, why the doc is not used for it.
        fields: cluster, category, group.
        answer: format, label, options, gold.
        stratum: its stratum.
        baselines: those of ``baseline``.
        wrong: whose image it is asked on too, the image's sizes, and the views.
        more: ``images``, ``clips``, ``tst``.
    """
    lost = None
    if wrong is not None:
        source, wrong_sizes, shown = wrong
        lost = {"from": source, "image_sizes": [list(size) for size in wrong_sizes]}
        lost |= {"views": [_boxed(one, wrong_sizes) for one in shown]} if shown else {}
    found = {
        "fields": fields,
        "answer": {"gold": None, "gold_at": None, **answer} if answer else {},
        "stratum": stratum if answer else "",
        "baselines": list(baselines),
        "wrong_image": lost,
        **more,
    }
    return {
        "schema": 1,
        "task": spec.name,
        "base": spec.base,
        "kind": spec.kind.name,
        "grids": list(spec.grids),
        "doc_id": doc_id,
        "image_sizes": [list(size) for size in sizes],
        "views": [_boxed(one, sizes) for one in views],
        "best": {str(key): place for key, place in best.items()},
        "excluded": {str(key): why for key, why in (excluded or {}).items()},
        **{name: value for name, value in found.items() if value},
    }


def view(of, scores=None, items=None, **told):
    """A scored view as JSON; ``told``: the columns of ``_TOLD``."""
    shown = {
        name: value for name, value in {**frames.shown(of), "gold_at": of.gold or None}.items() if value is not None
    }
    kept = shown | {name: value for name, value in told.items() if value}
    scores = scores or {}
    return kept | {"scores": scores, "items": plain(scores if items is None else items)}


def baseline(answer, roles, scores, items=None):
    """An uninformed answer, or the gold, scored, as JSON."""
    own = {name: plain(item) for name, item in (items or {}).items() if plain(item) != scores.get(name)}
    return {"answer": answer, "roles": list(roles), "scores": dict(scores)} | ({"items": own} if own else {})


def _boxed(given, sizes):
    boxes = given.get("boxes") or [list(box) for size in sizes if (box := _view(given).box(size)) is not None]
    return given | ({"boxes": boxes} if boxes else {})


def as_json(made, described, about=None):
    """A scored doc as JSON; what says nothing is left out.

    Args:
        made: the doc.
        described: what the config of its task says of the task (``WrapSpec.described``).
        about: what a text-only diagnostic found out about the task.
    """
    first, metric = made.rows[0], described["metric"]
    sizes = [[one["width"], one["height"]] for one in first.get("shown", ())]
    wrong_sizes = [[one["width"], one["height"]] for one in first.get("wrong_shown", ())]
    cut = slice(1) if described.get("options", {}).get("images") == "first" else slice(None)
    own, wrong, source = [], [], next((row["wrong_from"] for row in made.rows if "wrong_from" in row), None)
    for row, items in zip(made.rows, made.items, strict=True):
        other = row.get("swapped") and KINDS[described["kind"]].name != "swap"
        one = {name: row[name] for name in (*frames.shown(View("full")), *_TOLD) if name in row}
        one |= {"gold_at": row["gold_at"]} if described["kind"] == "rotate" and row.get("gold_at") else {}
        one = _boxed(one, (wrong_sizes if other else sizes)[cut])
        one |= {"scores": _scores(row, metric), "items": plain(dict(items))}
        (wrong if other else own).append(one)
    label = first.get("label", "")
    about_answer = {"format": label.rstrip("0123456789"), "label": label, "options": first["choices"]}
    about_answer |= {"gold": first.get("gold"), "gold_at": first.get("gold_at")}
    clips = [{k: v for k, v in one.items() if k in ("frames", "seconds")} for one in first.get("shown", ())]
    fields = {name: first[name] for name in ("category", "cluster", "group") if name in first}
    found = {
        "images": first.get("images"),
        "clips": [one for one in clips if one],
        "fields": fields | ({"merged": made.merged} if made.merged else {}),
        "answer": about_answer if label else {},
        "stratum": first.get("stratum"),
        "baselines": _baselines(first.get("references", ()), made.references),
        "tst": _test(first["tst"], about or {}) if "tst" in first else {},
        "asked": _asked(first["quick"], metric) if "quick" in first else None,
    }
    if source is not None and described["kind"] == "swap":
        found["wrong_image"] = {"from": source, "image_sizes": wrong_sizes}
    elif source is not None:
        found["wrong_image"] = {"from": source, "image_sizes": wrong_sizes, "views": wrong}
    if "prompt_digest" in first:
        found |= {"question": first.get("question", ""), "target": first.get("gold")}
        found |= {"options": first.get("options", []), "digests": [first["prompt_digest"], first["doc_digest"]]}
    best = {_key_of(row): place for place, row in enumerate(made.rows) if row.get("best")}
    return {
        "schema": 1,
        "task": described.get("task") or KINDS[described["kind"]].name,
        **{name: described[name] for name in ("base", "kind")},
        "grids": list(described["grids"]),
        "doc_id": made.doc_id,
        "image_sizes": sizes,
        "views": own,
        "best": best,
        "excluded": {one["set"]: one["why"] for one in first.get("excluded", ())},
        **{name: value for name, value in found.items() if value},
    }


def _scores(row, metric):
    scores = {metric: row["score"]} if "score" in row else {}
    return scores | {k.removeprefix(OTHER_METRIC): v for k, v in row.items() if k.startswith(OTHER_METRIC)}


def _key_of(row):
    return str(_view(row).set)


def _baselines(references, items):
    out, places = [], itertools.count()
    for (answer, roles), entries in itertools.groupby(references, lambda one: (one["answer"], tuple(one["roles"]))):
        entries = [(one, items[next(places)]) for one in entries]
        scores = {one["metric"]: one["score"] for one, _ in entries}
        out.append(baseline(answer, roles, scores, {one["metric"]: item for one, item in entries}))
    return out


def _asked(quick, metric):
    out = {"metric": metric, "block": quick["block"], "steps": quick["steps"]}
    out |= {"unasked": quick["unasked"]} if quick["unasked"] else {}
    if quick.get("full") is not None:
        out |= {"p": [quick["p_full"], quick["p_cells"]], "full": quick["full"]}
        out |= {when: {one["set"]: one[when] for one in quick["expected"]} for when in ("before", "after")}
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


# --- back -----------------------------------------------------------------------------------------


def as_doc(given, metric="acc"):
    """A doc from some keys of its JSON; what a doc needs beside them is filled in."""
    wrong, asked = given.get("wrong_image") or {}, given.get("asked")
    answer, fields = given.get("answer") or {}, given.get("fields", {})
    own = given.get("views", [{"kind": "full", "scores": {}, "items": {}}])
    more, best = wrong.get("views", []), given.get("best", {}).values()
    rows, items = [], []
    for at, one in enumerate((*own, *more)):
        of, other = _view(one), at >= len(own)
        row = {"doc_id": given.get("doc_id", 0), "view": at, **frames.shown(of)}
        row |= {name: one[name] for name in _TOLD if one.get(name) is not None and one[name] is not False}
        row |= {
            "wrong_from": one.get("wrong_from", wrong.get("from")) if of.swapped else None,
            "gold_at": of.gold or answer.get("gold_at"),
        }
        row |= {"best": True} if at in best and not other else {}
        scores, kept = one.get("scores", {}), {} if one.get("failed") else one.get("items", {})
        row |= {"score" if name == metric else f"{OTHER_METRIC}{name}": score for name, score in scores.items()}
        row |= {"answer": None} if one.get("failed") else {}
        rows.append(row | frames.labels(kept.get(metric)))
        items.append(kept)
    question, options, target = given.get("question"), given.get("options"), given.get("target")
    asks = {}
    if question or options or target:
        asks = {"question": question or None, "prompt_digest": digest([question or ""])}
        asks |= {"doc_digest": digest([None if target is None else str(target), tuple(options or ())])}
    baselines = given.get("baselines", ())
    named = fields.get("choices") if isinstance(fields.get("choices"), list) else None
    entries = [
        ({"answer": one["answer"], "roles": one["roles"], "metric": name, "score": score}, one.get("items", {}).get(name, score))
        for one in baselines
        for name, score in one["scores"].items()
    ]  # fmt: skip
    clips = [*given.get("clips", ()), *[{}] * len(given.get("image_sizes", ()))]
    rows[0] |= {
        **asks,
        **{name: fields.get(name) for name in ("category", "cluster", "group")},
        **{name: value for name, value in fields.items() if name.startswith(FIELD)},
        "gold": target if answer.get("gold") is None else answer["gold"],
        "options": list(map(str, named or options or sorted({one["answer"] for one in baselines if "option" in one["roles"]}))),
        "choices": answer.get("options", 0),
        "label": answer.get("label") or None,
        "stratum": (given.get("stratum") or None) if answer else None,
        "images": given.get("images") or None,
        "shown": [{"width": w, "height": h, **clips[i]} for i, (w, h) in enumerate(given.get("image_sizes", ()))],
        "wrong_shown": [{"width": w, "height": h} for w, h in wrong.get("image_sizes", ())],
        "excluded": [{"set": str(key), "why": why} for key, why in given.get("excluded", {}).items()],
        "references": [entry | frames.labels(item) for entry, item in entries],
        "quick": _quick(asked) if asked else None,
        "tst": _row(given["tst"]) if given.get("tst") else None,
    }  # fmt: skip
    rows = [{name: value for name, value in row.items() if value is not None and value != []} for row in rows]
    return Doc(rows, items, [item for _, item in entries], fields.get("merged"))


def as_docs(given, metric="acc"):
    """Docs from some keys each."""
    return [one if isinstance(one, Doc) else as_doc(one, metric) for one in given]


def frame_of(records, *metrics):
    """The rows of docs in JSON, by ``acc`` where no metric is named."""
    metrics = metrics or ("acc",)
    return frames.frame_of(as_docs(records, metrics[0]), metrics)


def _view(given):
    n, cell = given.get("n") or 0, given.get("cell")
    row, col = given.get("row"), given.get("col")
    if cell and row is None:
        row, col = divmod(cell - 1, n)
    swapped, boxes = bool(given.get("swapped")), tuple(map(tuple, given.get("boxes") or ()))
    if given.get("region"):
        return Region(swapped=swapped, number=given["region"], area=boxes[0], relevant=given["relevant"])
    if given.get("hidden"):
        return HiddenView(swapped=swapped, relevant=given["relevant"], areas=boxes, share=given["hidden"])
    more = {"turn": given.get("turn") or 0, "gold": given.get("gold_at") or 0, "adds": given.get("caption") or ""}
    more |= {"repeat": given.get("repeat") or 0}
    return View(given["kind"], n, row or 0, col or 0, swapped=swapped, **more)


def _quick(asked):
    p_full, p_cells = asked.get("p", (1.0, 1.0))
    before, after = asked.get("before", {}), asked.get("after", {})
    out = {"block": asked["block"], "steps": asked["steps"], "unasked": asked.get("unasked", 0)}
    out |= {"p_full": p_full, "p_cells": p_cells, "full": asked.get("full")}
    return out | {"expected": [{"set": key, "before": one, "after": after.get(key)} for key, one in before.items()]}


def _row(test):
    zero, baseline = test.get("zero_shot") or {}, test.get("baseline", {})
    folds = [
        {"grouping": name, "seed": seed, "score": score, "baseline": baseline[name][seed] if name in baseline else None}
        for name, scores in test["scores"].items()
        for seed, score in enumerate(scores)
    ]
    same = {name: test.get(name) for name in ("source", "text", "copies", "s", "chance", "s_minus_chance", "delta")}
    same["source"] = None if same["source"] is None else str(same["source"])
    zeros = {"zero_s": zero.get("s"), "zero_score": zero.get("score")}
    return {"fold": test.get("fold", 0), "answers": test.get("answers", []), "folds": folds, **same, **zeros}


def in_table(result):
    """The docs of a finished result as JSON by doc id, from its table: items, digests and formats are in no table."""
    out, about = {}, result.about
    names = {"score": next(iter(about.metrics), ""), **{f"score.{name}": name for name in list(about.metrics)[1:]}}
    for (doc_id,), rows in result.frame().group_by("doc_id", maintain_order=True):
        views, (first, *_) = [], (rows := list(rows.sort("view").iter_rows(named=True)))
        for row in rows:
            told = {name: row[name] for name in (*frames.shown(View("full")), *_TOLD, "gold_at")}
            scores = {name: row[column] for column, name in names.items() if row.get(column) is not None}
            views.append({name: value for name, value in told.items() if value is not None} | {"scores": scores})
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
