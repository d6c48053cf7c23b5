"""Small real tasks on disk and small models, to run the whole harness in-process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import yaml
from lmms_eval import evaluator, utils
from lmms_eval.api.model import lmms
from lmms_eval.tasks import TaskManager
from msgspec import to_builtins
from PIL import Image

from lmms_patch.harness.magic.tasks import MagicItem
from lmms_patch.harness.wrap.aggregate import Details, PatchItem
from lmms_patch.runs.details import Computed
from lmms_patch.runs.numbers import to_json
from tests.making.docs import as_json

# The host compiles a task's template anew for each doc: a tenth of a run's time
utils.env.from_string = functools.cache(utils.env.from_string)

GENERATE = {
    "test_split": "test",
    "dataset_path": "parquet",
    "output_type": "generate_until",
    "doc_to_visual": "image",
    "doc_to_text": "{{question}}",
    "doc_to_target": "answer",
    "generation_kwargs": {"max_new_tokens": 4},
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    "metadata": {"version": 0.0, "lmms_patch": {"null": 0}},  # wrong images are asked in test_wrong_images
}


STEADY = 0
"""How many docs are asked again where a task does not say so: those of ``asking/test_steady`` and of ``tests.golden`` are."""


def coded_image(doc: int, size: tuple[int, int] = (60, 60), grid: int = 6, task: int = 0) -> Image.Image:
    """An image whose every pixel says where it comes from: red = 10·task + row, green = column of a
    ``grid``×``grid`` partition (times 10), blue = doc."""
    width, height = size
    array = np.zeros((height, width, 3), np.uint8)
    rows = (np.arange(height) * grid // height)[:, None]
    cols = (np.arange(width) * grid // width)[None, :]
    array[..., 0] = task * 100 + rows * 10
    array[..., 1] = cols * 10
    array[..., 2] = doc
    return Image.fromarray(array)


def rows(count: int, task: int = 0, **columns: Callable[[int], Any]) -> list[dict[str, Any]]:
    """Rows with a coded image, a question and an answer; ``columns`` add to them or replace them."""
    out = []
    for i in range(count):
        row = {"image": coded_image(i, task=task), "question": f"question {i % 3}?", "answer": str(i)}
        out.append({**row, **{name: make(i) for name, make in columns.items()}})
    return out


def write_task(
    folder: Path, name: str, data: Sequence[dict[str, Any]], features: dict[str, Any] | None = None, **config: Any
) -> Path:
    """Write ``<name>.yaml`` and its parquet into a folder for ``--include_path``.

    A config value written as ``"!function utils.f"`` becomes that YAML tag; None removes a default.
    """
    folder.mkdir(parents=True, exist_ok=True)
    schema = None
    if features is not None:
        schema = datasets.Features(features)
    elif data and isinstance(data[0].get("image"), Image.Image):
        inferred = datasets.Dataset.from_list([{k: v for k, v in row.items() if k != "image"} for row in data]).features
        schema = datasets.Features({"image": datasets.Image(), **inferred})
    datasets.Dataset.from_list(list(data), features=schema).to_parquet(str(folder / f"{name}.parquet"))
    merged = {"task": name, **GENERATE, "dataset_kwargs": {"data_files": {"test": f"{name}.parquet"}}, **config}
    if "lmms_patch" in (about := merged.get("metadata") or {}):
        merged["metadata"] = {**about, "lmms_patch": {"steady": STEADY, **about["lmms_patch"]}}
    text = yaml.safe_dump({k: v for k, v in merged.items() if v is not None}, sort_keys=False)
    for line in {line for line in text.splitlines() if "!function" in line}:
        text = text.replace(line, line.replace("'", "").replace('"', ""))
    (folder / f"{name}.yaml").write_text(text)
    return folder


class Model(lmms):
    """A simple model that answers by a function of (prompt, images); it notes what it saw.

    ``seen`` holds ``(task, doc id, images, prompt)`` per request, in request order.
    """

    is_simple = True

    def __init__(self, answer: Callable[[str, list[Image.Image]], str] = lambda prompt, images: "x") -> None:
        super().__init__()
        self.answer = answer
        self.seen: list[tuple[str, int, list[Image.Image], str]] = []

    def generate_until(self, requests: list[Any]) -> list[str]:
        out = []
        for request in requests:
            prompt, _, doc_to_visual, doc_id, task, split = request.args
            images = doc_to_visual(self.task_dict[task][split][doc_id])
            self.seen.append((task, int(doc_id), images, prompt))
            out.append(self.answer(prompt, images))
        return out

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        out = []
        for request in requests:
            prompt, continuation, doc_to_visual, doc_id, task, split = request.args
            images = doc_to_visual(self.task_dict[task][split][doc_id])
            self.seen.append((task, int(doc_id), images, prompt + continuation))
            out.append((float(self.answer(prompt + continuation, images)), False))
        return out

    def generate_until_multi_round(self, requests: list[Any]) -> list[str]:
        raise NotImplementedError

    def clean(self) -> None:
        """Nothing to free; the host's collects garbage twice after each run."""


class ChatModel(Model):
    """The same for the chat protocol: images are taken from the messages."""

    is_simple = False

    def generate_until(self, requests: list[Any]) -> list[str]:
        out = []
        for request in requests:
            _, doc_to_messages, _, doc_id, task, split = request.args
            messages = doc_to_messages(self.task_dict[task][split][doc_id])
            parts = [part for message in messages for part in message["content"]]
            images = [part["url"] for part in parts if part["type"] == "image"]
            prompt = "".join(part["text"] for part in parts if part["type"] == "text")
            self.seen.append((task, int(doc_id), images, prompt))
            out.append(self.answer(prompt, images))
        return out


def simple_evaluate(**kwargs: Any) -> dict[str, Any]:
    """The host's function, with what a run keeps in memory laid open."""
    return opened(evaluator.simple_evaluate(**kwargs))


def opened(results: dict[str, Any]) -> dict[str, Any]:
    """Put all that objects of ours hold into them, in plain JSON types: records of docs, and every number of tasks."""
    for values in results["results"].values():
        for one in values.values():
            if isinstance(one, Details) and one.computed != Computed():
                one |= {"analysis": to_json(one.computed.analysis), "higher_is_better": dict(one.about["metrics"])}
                one |= {"settings": to_json(one.about.get("settings")), "made": to_json(one.about.get("made"))}
                one |= {} if one.computed.tst is None else {"tst_details": to_json(one.computed.tst)}
                one |= {} if one.computed.magic is None else {"magic": to_json(one.computed.magic)}
    for task, lines in (results.get("samples") or {}).items():
        described = results["configs"][task].get("lmms_patch", {})
        details = [one for one in results["results"][task].values() if isinstance(one, Details)]
        about = next((one.about.get("tst", {}) for one in details), {})
        for item in [item for line in lines for item in line.values() if isinstance(item, (PatchItem, MagicItem))]:
            magic = isinstance(item, MagicItem)
            record = to_builtins(item.record) if magic else as_json(item.doc, {**described, "task": task}, about)
            item.clear()
            item |= record
    return results


def run(model: lmms, tasks: Sequence[Any] | str, folder: Path | str | None = None, **kwargs: Any) -> dict[str, Any]:
    """``simple_evaluate`` with tasks of an include folder; all other arguments go to it."""
    names = tasks.split(",") if isinstance(tasks, str) else list(tasks)
    manager = TaskManager(verbosity="ERROR", include_path=str(folder) if folder else None)
    return simple_evaluate(
        model=model, tasks=names, task_manager=manager, log_samples=True, bootstrap_iters=0, **kwargs
    )


def metrics(results: dict[str, Any], task: str) -> dict[str, Any]:
    """Metric values of one task, without filter names and standard errors."""
    return {k.split(",")[0]: v for k, v in results["results"][task].items() if "," in k and "_stderr" not in k}
