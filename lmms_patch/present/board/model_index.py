"""Results as the Hub reads them: metadata of a model's card, ``model-index``.

One file for each model, to paste from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lmms_patch import __version__
from lmms_patch.ask.kinds import end
from lmms_patch.ask.references import digest
from lmms_patch.present.board.board import Board, Entry
from lmms_patch.present.report import magic_words
from lmms_patch.runs import reading
from lmms_patch.text import clean, file_names, markdown

FOLDER = "model-index"
SOURCE = "lmms-patch"
URL = "https://pypi.org/project/lmms-patch/"
TASK = "image-text-to-text"
"""The Hub's name for what such models do."""
FORM = 4
"""Of a card: raised where a card of the same numbers comes out otherwise, so that a board writes its cards again."""
_SETTINGS = ("limit", "few-shot", "filter", "judge", "benchmark version", "lmms-eval version")
_HOW = "Measured with lmms-patch. Copy `model-index` into the front matter of the model's card."


def wanted(board: Board) -> dict[str, tuple[str, list[Entry], str]]:
    """Return a file for each model: its path in the board's folder -> the model, its entries, and a digest of what the file is made of."""
    named = file_names(board.models, ".md")
    by_model: dict[tuple[str, str, str], list[Entry]] = {}
    for group in board.groups:
        for entry in group.entries:
            if not entry.result.nonsense:
                by_model.setdefault(entry.identity, []).append(entry)
    return {
        f"{FOLDER}/{named[identity]}": (board.models[identity], entries, _digest(board.models[identity], entries))
        for identity, entries in by_model.items()
    }


def _digest(model: str, entries: Sequence[Entry]) -> str:
    return digest(
        [
            __version__,
            FORM,
            model,
            sorted([entry.run, entry.result.task, entry.result.filter, entry.grid] for entry in entries),
        ]
    )


def card(model: str, entries: Sequence[Entry]) -> str:
    """Return a model's metadata as the front matter of a card, or a note where the model has no number."""
    index = model_index(model, entries)
    front = "\n".join(yaml_lines({"model-index": index} if index else {}))
    body = _HOW if index else "None of its numbers is defined: there is nothing to put into a card."
    return f"---\n{front}\n---\n\n# {markdown(model)}\n\n{body}\n"


def model_index(model: str, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return the ``model-index`` of a model; empty for a model without numbers.

    A result each for benchmark and settings; ``dataset.args`` has the settings, ``args`` of a metric its interval,
    level and the number of docs that it rests on; of an index and a gap that leave out docs also FIP over the others.
    Numbers that are not defined (near chance, ...) are left out: the Hub has no place for a reason.
    """
    from huggingface_hub.repocard_data import EvalResult, eval_results_to_model_index

    by_result: dict[tuple[str, str, str, str], list[Entry]] = {}
    for entry in entries:
        by_result.setdefault((entry.result.base, entry.result.kind, entry.result.filter, entry.id), []).append(entry)
    results: list[Any] = []
    for _, same in sorted(by_result.items()):
        common = _common(same[0])
        metrics = {(one["metric_type"], repr(one["metric_args"])): one for entry in same for one in _metrics(entry)}
        # One call for each: the function merges results on a dataset, whatever their settings.
        if metrics:
            results += eval_results_to_model_index(
                model, [EvalResult(**common, **metric) for metric in metrics.values()]
            )[0]["results"]
    return [{"name": model, "results": results}] if results else []


def _common(entry: Entry) -> dict[str, Any]:
    """Return what all numbers of an entry have in common in a model card: task, dataset and settings."""
    result, base = entry.result, clean(entry.result.base)
    path, name, split = (None if value is None else clean(value) for value in msgspec.structs.astuple(result.dataset))
    shared: Mapping[str, Any] = result.fingerprint
    told = {
        key: clean(value) if isinstance(value := shared[key], str) else value
        for key in _SETTINGS
        if shared.get(key) is not None
    }
    return {
        "task_type": TASK,
        "task_name": clean(result.task),
        "dataset_type": path or base,
        "dataset_name": base,
        "dataset_config": name,
        "dataset_split": split,
        "dataset_args": {**told, "fingerprint": entry.id},
        "source_name": SOURCE,
        "source_url": URL,
    }


def _metrics(entry: Entry) -> Iterator[dict[str, Any]]:
    """Yield the numbers of an entry as metrics of a model card, each with its interval, level, docs and date."""
    result = entry.result
    of_grid = {f"{result.index}{entry.grid}": "index", f"{result.index}{entry.grid}_adj": "adj"}
    for measure, kind, words in _wanted(entry):
        number = entry.number(of_grid[measure]) if measure in of_grid else result.numbers.get(measure)
        if number is not None and number.value is not None:
            ends = {} if number.low is None else {"low": number.low, "high": number.high, "level": number.level}
            args = {**ends, "docs": number.n, "date": clean(entry.date), **_beside(entry, measure)}
            said = "".join(f" ({word})" for word in reading.words(number))
            yield {"metric_type": kind, "metric_name": words + said, "metric_value": number.value, "metric_args": args}


def _beside(entry: Entry, measure: str) -> dict[str, Any]:
    """Return FIP over the used docs where a grid leaves docs out: index and gap can only be checked with this FIP."""
    rests = measure in (f"{entry.result.index}{entry.grid}", f"gap{entry.grid}")
    return {"fip": entry.notes.fip} if rests and entry.notes.excluded and entry.notes.fip is not None else {}


def _wanted(entry: Entry) -> list[tuple[str, str, str]]:
    """Return which numbers go into a card: measure, type and name of the metric."""
    result, n = entry.result, entry.grid
    metric, index = clean(result.metric), result.index
    if index:
        words = result.asked.words
        grid = words.size(n) if words.instead else f"{words.size(n)} cells"
        return [
            ("fip", metric, f"{metric}, {result.asked.shows} (FIP)"),
            (f"mpp{n}", f"{metric}_mpp{n}", f"{metric}, best of {grid} (MPP)"),
            (f"{index}{n}", f"{index}{n}", f"{reading.name(index, corrected=False)}, {grid}: 1 - MPP / FIP"),
            (f"{index}{n}_adj", f"{index}{n}_adj", f"{reading.name(index, corrected=True)}, {grid}"),
            (f"gap{n}", f"gap{n}", f"Gap, {grid}: FIP - MPP"),
            ("chance", "chance", "Chance floor"),
        ]
    if result.kind == "tst":
        return [
            ("tst", "tst", "Text-only cross-validation"),
            ("tst_over_chance", "tst_over_chance", "The same, over chance"),
        ]
    if result.kind == "magic":
        return [(name, name, magic_words.WORDS[name][0]) for name in magic_words.order(result.numbers)]
    shown = f"{result.kind}{n or ''}"
    if result.asked.turns:
        return [
            ("fip", metric, f"{metric}, full image"),
            ("rotate_every", "rotate_every", f"{metric}, right in every order of the options"),
        ]
    if result.asked.has_points and not result.asked.curve:
        told = " boxes hidden" * result.asked.hides
        points = [(f"{result.kind}{end(key)}", f"{result.asked.called(key)}{told}") for key in result.asked.points(())]
        return [
            ("fip", metric, f"{metric}, full image"),
            *((name, f"{metric}_{name}", f"{metric}, {words}") for name, words in points),
        ]
    own = (f"{result.kind}{n}" if result.asked.curve else "score", f"{metric}_{shown}", f"{metric}, {shown} view")
    return (
        [own]
        if result.kind != "occlude"
        else [("fip", metric, f"{metric}, full image"), (f"drop{n}", f"drop{n}", "Drop")]
    )


# --- YAML -----------------------------------------------------------------------------------------


def yaml_lines(value: Any, indent: str = "") -> list[str]:
    """Return plain JSON types as YAML, a line each.

    Ten times as fast as PyYAML, which a board of many models waits for.

    Texts are quoted as in JSON: that is YAML too where they hold no control characters or lone surrogates
    (``text.clean``).
    """
    if isinstance(value, Mapping):
        return (
            _entries(((f"{_scalar(str(key))}:", one) for key, one in value.items()), indent)
            if value
            else [f"{indent}{{}}"]
        )
    if isinstance(value, (list, tuple)):
        return _entries((("-", one) for one in value), indent) if value else [f"{indent}[]"]
    return [indent + _scalar(value)]


def _entries(pairs: Any, indent: str) -> list[str]:
    """Return the lines of a mapping, or of a list whose heads are hyphens, at an indent."""
    out = []
    for head, value in pairs:
        lines = yaml_lines(value, indent + "  ")
        inline = not isinstance(value, (Mapping, list, tuple)) or not value or head == "-"
        out += [f"{indent}{head} {lines[0].lstrip()}", *lines[1:]] if inline else [f"{indent}{head}", *lines]
    return out


def _scalar(value: Any) -> str:
    """Return a number, text, truth value or null as YAML.

    A text without quotes only where no reader takes it for something else.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no place in a card")
        text = repr(value)
        # YAML 1.1 takes 1e-05 for a text.
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    if (
        isinstance(value, str)
        and value.replace("-", "").replace("_", "").isalpha()
        and value.isascii()
        and value.lower() not in _WORDS
    ):
        return value
    return json.dumps(value, ensure_ascii=False)


_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
"""What YAML 1.1 takes for something other than a text."""
