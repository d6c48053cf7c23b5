"""Results as the Hub reads them: ``model-index`` in the front matter of a model's card. Pure."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_patch.ask.kinds import Kind
from lmms_patch.present.board.board import Entry
from lmms_patch.present.report import magic_words
from lmms_patch.runs import catalogue, reading
from lmms_patch.text import clean, markdown

FOLDER = "model-index"
SOURCE = "lmms-patch"
URL = "https://pypi.org/project/lmms-patch/"
_SETTINGS = ("limit", "few-shot", "filter", "judge", "benchmark version", "lmms-eval version")
_CARD = """---
model-index:
- name: {model}
  results:
{results}
---

# {title}

Measured with lmms-patch. Copy `model-index` into the front matter of the model's card.
"""
_RESULT = """  - task: {task}
    dataset: {dataset}
    source: {source}
    metrics:
{metrics}"""


def card(model: str, entries: Sequence[Entry]) -> str:
    """Return a model's numbers as the front matter of a card; empty for a model without any.

    Each result has the settings in ``dataset.args``; each metric has its interval, level and docs in ``args``. Numbers
    are rounded to four digits, so that no YAML reader takes ``1e-05`` for a text. Numbers that are not defined (near
    chance, ...) are left out: the Hub has no place for a reason.
    """
    by_result: dict[int, list[Entry]] = {}
    for entry in entries:
        by_result.setdefault(id(entry.result), []).append(entry)
    results = []
    for same in by_result.values():
        metrics = {name: metric for entry in same for name, metric in _metrics(entry)}
        if metrics:
            about = {
                "task": {"type": "image-text-to-text", "name": clean(same[0].result.task)},
                "dataset": _dataset(same[0]),
                "source": {"name": SOURCE, "url": URL},
            }
            shown = {key: json.dumps(value, ensure_ascii=False) for key, value in about.items()}
            lines = "\n".join(f"    - {json.dumps(metric, ensure_ascii=False)}" for metric in metrics.values())
            results.append(_RESULT.format(**shown, metrics=lines))
    return (
        _CARD.format(model=json.dumps(model, ensure_ascii=False), title=markdown(model), results="\n".join(results))
        if results
        else ""
    )


def _dataset(entry: Entry) -> dict[str, Any]:
    """Return the data and settings of an entry."""
    result, base = entry.result, clean(entry.result.base)
    host = result.about.host
    split = None if host.split == "none" else host.split
    named: Mapping[str, Any] = {"config": host.config if result.hub else None, "split": split}
    told = {key: entry.settings[key] for key in _SETTINGS if entry.settings.get(key) is not None}
    return {
        "type": clean(result.hub) if result.hub else base,
        "name": base,
        **{key: clean(value) for key, value in named.items() if value},
        "args": {**{key: clean(value) for key, value in told.items()}, "fingerprint": entry.id},
    }


def _metrics(entry: Entry) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the numbers of an entry by name, as metrics of a model card."""
    metric, measures = clean(entry.result.metric), entry.result.measures
    for name, title in titles(entry.kind, entry.grid).items():
        number = measures.get(name)
        if number is None or number.value is None or (name == "score" and "fip" in measures):
            continue
        ends = (
            {}
            if number.low is None or number.high is None
            else {"low": round(number.low, 4), "high": round(number.high, 4), "level": number.level}
        )
        yield (
            name,
            {
                "type": metric if name in ("fip", "score") else f"{metric}_{name}" if name.startswith("mpp") else name,
                "name": title + "".join(f" ({word})" for word in reading.words(number)),
                "value": round(number.value, 4),
                "args": {**ends, "docs": number.n, "date": clean(entry.date)},
            },
        )


@functools.cache
def titles(kind: Kind, grid: int) -> Mapping[str, str]:
    """Return what the numbers of a kind at a grid are called, by name."""
    known = catalogue.keyed(kind, [grid] if grid else [])
    ours = {name: row.called(kind, key) for name, (row, key) in known.items() if row.measured and name != "ceiling"}
    tst = {"tst": "Text-only cross-validation", "tst_over_chance": "The same, over chance"} if kind.folds else {}
    return {**ours, **tst, **({name: said for name, (said, _) in magic_words.WORDS.items()} if not kind.suffix else {})}
