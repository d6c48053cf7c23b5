"""Runs of wrapped tasks on stand-ins with a model that is told what to say, doc by doc and view by view."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import pytest
from lmms_eval.tasks import TaskManager, get_task_dict
from PIL import Image

from lmms_patch.ask.spec import parse
from tests.harness.standins import Rows, StandIn
from tests.harness.toys import Model, simple_evaluate

Says = Callable[[int, int], str]
"""What the model says: (doc, view) -> answer; view 0 is the full image, 1 to 4 are the cells of a 2x2 grid."""


def with_rows(standin: StandIn, rows: Rows) -> StandIn:
    """The same stand-in with other docs; it has one data set of one split."""
    ((key, splits),) = standin.data.items()
    (split,) = splits
    return StandIn(standin.task, {key: {split: rows}}, standin.features, standin.menu)


def rows_of(standin: StandIn) -> Rows:
    """The docs, each with its image: GQA keeps images apart."""
    (docs, *pictures) = [rows for splits in standin.data.values() for rows in splits.values()]
    known = {row["id"]: row["image"] for rows in pictures for row in rows}
    return [{**row, "image": known[row["imageId"]]} if known else row for row in docs]


def images_in(value: Any) -> list[Image.Image]:
    if isinstance(value, Mapping):
        value = list(value.values())
    return (
        [value]
        if isinstance(value, Image.Image)
        else [image for inner in value for image in images_in(inner)]
        if isinstance(value, list)
        else []
    )


def cells(image: Image.Image) -> list[Image.Image]:
    width, height = image.size
    columns, lines = (0, width // 2, width), (0, height // 2, height)
    return (
        [image.crop((columns[c], lines[r], columns[c + 1], lines[r + 1])) for r in (0, 1) for c in (0, 1)]
        if min(width, height) > 1
        else []
    )


class ToldModel(Model):
    """Knows each doc by its question, and each view by the pixels of the doc's first image."""

    def __init__(self, rows: Rows, says: Says) -> None:
        super().__init__(self._answer)
        self.says, self.known = says, {}
        self.questions = [str(row.get("question")).strip().split("?")[0].lower() for row in rows]
        for doc, row in enumerate(rows):
            for image in images_in(row)[:1]:
                whole = image.convert("RGB")
                for view, shown in enumerate([whole, *cells(whole)]):
                    self.known.setdefault((shown.size, shown.tobytes()), []).append((doc, view))

    def _answer(self, prompt: str, images: list[Image.Image]) -> str:
        found = (
            self.known[images[0].size, images[0].tobytes()]
            if images
            else [(doc, 0) for doc in range(len(self.questions))]
        )
        if len(found) > 1:
            found = [(doc, view) for doc, view in found if self.questions[doc] in prompt.lower()]
        [(doc, view)] = found
        return self.says(doc, view)


@dataclass(frozen=True)
class Outcome:
    """One finished run of one wrapped task.

    Attributes:
        metrics: the metrics of the results table, without filters and standard errors.
        details: the metric ``patch``.
        samples: the sample log.
    """

    metrics: dict[str, Any]
    details: dict[str, Any]
    samples: list[dict[str, Any]]

    @property
    def analysis(self) -> dict[str, Any]:
        return self.details["analysis"]

    @property
    def grid(self) -> dict[str, Any]:
        [grid] = self.analysis["grids"].values()
        return grid

    @property
    def records(self) -> list[dict[str, Any]]:
        return [sample["patch"] for sample in self.samples]

    def baselines(self, doc: int) -> dict[str, tuple[set[str], float]]:
        """What a doc's uninformed answers stand for, and what they score."""
        metric = self.analysis["metric"]
        return {one["answer"]: (set(one["roles"]), one["scores"][metric]) for one in self.records[doc]["baselines"]}


def run_told(
    standin: StandIn | None,
    task: str,
    rows: Sequence[dict[str, Any]],
    says: Says,
    folder: Path,
    manager: TaskManager | None = None,
) -> Outcome:
    """Run a wrapped task, without wrong images but for a ``manager``'s own.

    ``standin`` None: the task reads its data itself.
    """
    spec = parse(task)
    if manager is None and spec is not None:
        tasks = folder / "tasks"
        tasks.mkdir(exist_ok=True)
        (tasks / "told.yaml").write_text(
            f"{{task: {task}, class: !function lmms_patch.Wrap, base: {spec.base}, grids: [{spec.grids[0]}], null: 0}}"
        )
        manager = TaskManager(verbosity="ERROR", include_path=str(tasks))
    with pytest.MonkeyPatch.context() as patch:
        if standin is not None:
            patch.setattr(datasets, "load_dataset", standin.loader())
        results = simple_evaluate(
            model=ToldModel(list(rows), says),
            tasks=[task],
            task_manager=manager or TaskManager(verbosity="ERROR"),
            cli_args=argparse.Namespace(output_path=str(folder), process_with_media=False),
            log_samples=True,
            bootstrap_iters=0,
            process_docs_parallel=1,
        )
    found = {
        key.split(",")[0]: value
        for key, value in results["results"][task].items()
        if "," in key and "_stderr" not in key
    }
    return Outcome(found, found.pop("patch"), results["samples"][task])


def load(standin: StandIn, task: str, model: str | None = None) -> Any:
    """A task as the host loads it for a model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "load_dataset", standin.loader())
        return get_task_dict([task], TaskManager(verbosity="ERROR", model_name=model), "simple")[task]
