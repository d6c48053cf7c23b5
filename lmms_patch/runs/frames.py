"""The docs of a run as rows of the samples table (``runs.schema``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from lmms_patch.ask.answers import is_missing, options_in
from lmms_patch.ask.references import digest
from lmms_patch.ask.views import HiddenView, Region, View
from lmms_patch.runs.schema import FIELD, LISTS, OF_DOC, OF_VIEW, OTHER_METRIC, REAL, TYPES
from lmms_patch.runs.scored import Asked, Baseline, Exchanged, SampleRecord
from lmms_patch.runs.views import Items
from lmms_patch.text import whole


def frame_of(docs: Sequence[SampleRecord], metrics: Sequence[str]) -> pl.DataFrame:
    """Return the rows of some docs, by doc and view.

    Args:
        docs: the docs.
        metrics: the native metrics, the primary one first.
    """
    docs = sorted(docs, key=lambda doc: doc.doc_id)
    rows = [(doc, at, view) for doc in docs for at, view in enumerate(doc.every_view)]
    views = [view for _, _, view in rows]
    # docs have the same views, as a rule: each is turned into columns once
    distinct = {id(one.view): one.view for one in views}
    places = {key: place for place, key in enumerate(distinct)}
    shown = [_shown(view) for view in distinct.values()]
    of_views = pl.DataFrame([_series(name, [one[name] for one in shown]) for name in _shown(View("full"))])
    labels = [_labels(one.items.get(metrics[0])) for one in views]
    columns: dict[str, Any] = {
        **of_views[[places[id(one.view)] for one in views]].to_dict(),
        **{name: [getattr(one, name) for one in views] for name in ("names", "error", "losses")},
        **{name: [getattr(one, name) or None for one in views] for name in ("failed", "unfinished", "misread")},
        "doc_id": [doc.doc_id for doc, _, _ in rows],
        "view": [at for _, at, _ in rows],
        "wrong_from": [doc.wrong_image.source if one.view.swapped and doc.wrong_image else None for doc, _, one in rows],
        "gold_at": [one.view.gold or doc.answer.get("gold_at") for doc, _, one in rows],
        "answer": [None if one.failed else one.answer for one in views],
        "answer_no": [number for doc in docs for number in _numbers_of_answers(doc)],
        "best": [(at < len(doc.views) and at in doc.best.values()) or None for doc, at, _ in rows],
        "said_yes": [said for said, _ in labels],
        "gold_yes": [gold for _, gold in labels],
        "score": [one.scores.get(metrics[0]) for one in views],
        "tokens_in": [one.tokens[0] for one in views],
        "tokens_out": [one.tokens[1] for one in views],
    }  # fmt: skip
    others = [
        pl.Series(f"{OTHER_METRIC}{whole(name)}", [one.scores.get(name) for one in views], REAL) for name in metrics[1:]
    ]
    frame = pl.DataFrame([_series(name, columns.get(name, [None] * len(rows))) for name in OF_VIEW] + others)
    told = [_doc(doc) for doc in docs]
    of_docs = pl.DataFrame([_series(name, [one.get(name) for one in told]) for name in ("doc_id", *OF_DOC, *LISTS)])
    named = sorted({name for doc in docs for name in doc.fields if name.startswith(FIELD)})
    fields = [pl.Series(whole(name), _alike([one.fields.get(name) for one in docs])) for name in named]
    of_docs = of_docs.with_columns(fields)
    frame = frame.join(of_docs.drop(LISTS), on="doc_id", maintain_order="left")
    lists = of_docs.select("doc_id", *LISTS, view=pl.lit(0, TYPES["view"]))
    return frame.join(lists, on=["doc_id", "view"], how="left", maintain_order="left")


def _alike(values: list[Any]) -> list[Any]:
    """Return the values of a field in one type: texts where some doc has a text; numbers, with yes as 1, where types mix."""
    kinds = {type(value) for value in values if value is not None}
    make = _text if str in kinds else float if len(kinds) > 1 else None
    return [value if value is None else make(value) for value in values] if make else values


def items_of(docs: Sequence[SampleRecord], metric: str) -> Items:
    """Return the native items of the rows of ``frame_of``, by a metric."""
    docs = sorted(docs, key=lambda doc: doc.doc_id)
    views = [one.items.get(metric) for doc in docs for one in doc.every_view]
    references = {
        doc.doc_id: [one.items.get(metric, one.scores.get(metric)) for one in doc.baselines for _ in one.scores]
        for doc in docs
    }
    return Items([None if is_missing(item) else item for item in views], references)


def merged_of(docs: Sequence[SampleRecord]) -> dict[str, str]:
    """Return what categories count in, where several count as a single category."""
    return {
        str(doc.fields.get("category")): str(name) for doc in docs if (name := doc.fields.get("merged")) is not None
    }


def _series(name: str, values: Any) -> pl.Series:
    """Return a column of the schema; texts are made whole."""
    text = TYPES[name] == pl.String and not isinstance(values, pl.Series)
    return pl.Series(name, [_text(value) for value in values] if text else values, TYPES[name])


def _text(value: Any) -> str | None:
    """Return a value as a text for UTF-8."""
    return None if value is None else whole(value if isinstance(value, str) else str(value))


def _labels(item: Any) -> tuple[bool | None, bool | None]:
    """Return whether an item's answer, and its gold, is the positive label; None where it has no labels."""
    if not isinstance(item, Mapping) or not {"prediction", "ground_truth"} <= item.keys():
        return None, None
    said, gold = (str(item[key]).strip().lower() == "yes" for key in ("prediction", "ground_truth"))
    return said, gold


def _shown(view: View) -> dict[str, Any]:
    """Return the columns to tell a view; 0 is null."""
    placed = view.cell is not None or view.kind == "window"
    areas = [view.area] if isinstance(view, Region) else view.areas if isinstance(view, HiddenView) else ()
    return {
        "kind": view.kind,
        "swapped": view.swapped or None,
        "n": view.n or None,
        "cell": view.cell,
        "row": view.row if placed else None,
        "col": view.col if placed else None,
        "region": view.number if isinstance(view, Region) else None,
        "relevant": view.relevant if isinstance(view, Region | HiddenView) else None,
        "hidden": view.share if isinstance(view, HiddenView) else None,
        "boxes": [list(area) for area in areas] or None,
        "turn": view.turn or None,
        "caption": view.adds if view.kind == "caption" else None,
    }


def _numbers_of_answers(doc: SampleRecord) -> list[int | None]:
    """Return for each view of a doc which of its different answers on the wrong image it has."""
    said = () if doc.wrong_image is None else doc.wrong_image.said
    different = {answer: number for number, answer in enumerate(dict.fromkeys(said))}
    return [None] * len(doc.views) + [different[answer] for answer in said]


def _doc(doc: SampleRecord) -> dict[str, Any]:
    """Return the columns of a doc beside those of its views."""
    target = None if doc.asks is None or doc.asks.target is None else str(doc.asks.target)
    gold, clips = doc.answer.get("gold"), [*doc.clips, *[(None, None)] * (len(doc.sizes) - len(doc.clips))]
    asked = {} if doc.asks is None else {
        "question": doc.asks.prompt or None,
        "prompt_digest": digest([doc.asks.prompt]),
        "doc_digest": digest([target, doc.asks.choices]),
    }  # fmt: skip
    return {
        **asked,
        **{name: doc.fields.get(name) for name in ("category", "cluster", "group")},
        "doc_id": doc.doc_id,
        "gold": target if gold is None else gold,
        "options": [_text(one) for one in _options(doc)] or None,
        "choices": doc.answer.get("options", 0),
        "label": doc.answer.get("label") or None,
        "stratum": doc.stratum if doc.answer and doc.stratum else None,
        "images": doc.images or None,
        "shown": [
            {"width": width, "height": height, "frames": frames, "seconds": seconds}
            for (width, height), (frames, seconds) in zip(doc.sizes, clips, strict=True)
        ]
        or None,
        "wrong_shown": [{"width": w, "height": h} for w, h in doc.wrong_image.sizes] or None if doc.wrong_image else None,
        "excluded": [{"set": str(key), "why": why} for key, why in doc.excluded.items()] or None,
        "references": [row for one in doc.baselines for row in _reference(one)] or None,
        "exchanged": [row for one in doc.exchanged for row in _exchanged(one)] or None,
        "quick": None if doc.asked is None else _quick(doc.asked),
        "tst": _tst(doc.tst) if doc.tst else None,
    }  # fmt: skip


def _options(doc: SampleRecord) -> Sequence[Any]:
    """Return a doc's options: of the field ``choices``, else as listed in the prompt, else the answers scored as options, sorted."""
    named, asks = doc.fields.get("choices"), doc.asks
    if isinstance(named, list):
        return named
    choice = doc.answer.get("format", "") in ("mc", "")
    listed = options_in(asks.prompt) if asks and asks.prompt and choice else ()
    return (asks and asks.choices) or listed or sorted(one.answer for one in doc.baselines if "option" in one.roles)


def _reference(one: Baseline) -> list[dict[str, Any]]:
    about = {"answer": _text(one.answer), "roles": one.roles}
    labels = {name: _labels(one.items.get(name)) for name in one.scores}
    return [
        {**about, "metric": name, "score": score, "said_yes": labels[name][0], "gold_yes": labels[name][1]}
        for name, score in one.scores.items()
    ]


def _exchanged(one: Exchanged) -> list[dict[str, Any]]:
    own, wrong = {"full": one.full, **one.best}, {"full": one.wrong_full, **one.wrong_best}
    return [{"to": one.to, "set": str(key), "score": own[key], "wrong": wrong[key]} for key in own]


def _tst(found: Mapping[str, Any]) -> dict[str, Any]:
    return {**found, "source": _text(found["source"]), "answers": [_text(one) for one in found["answers"]]}


def _quick(asked: Asked) -> dict[str, Any]:
    return {
        **{name: getattr(asked, name) for name in ("block", "steps", "unasked", "full")},
        "p_full": asked.p[0],
        "p_cells": asked.p[1],
        "expected": [{"set": key, "before": one, "after": asked.after.get(key)} for key, one in asked.before.items()],
    }
