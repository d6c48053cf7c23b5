"""How fast all views of a doc reach an adapter, against ten separate tasks and against the least possible work.

    python benchmarks/views.py [--docs 1000] [--rounds 3]

One doc is a JPEG of 1024×1024 pixels; its views are the full image and the nine cells of 3×3. Three
ways to hand them to an adapter that does nothing but read the pixels:

``wrapped``  the task ``speed_rci3``, built and fetched by the harness's own path
``naive``    ten native tasks, one per view, each of which decodes every image and crops it for itself
``bound``    no harness: decode each image once, show it, and crop it nine times

All of it twice: without wrong images (``null: 0``), and as a task is by default, with 300 docs also asked on the image
of another doc. There each of the ten native tasks decodes and crops that image once more, and the bound does so once.

The ways take turns, ``--rounds`` times, and the least processor time of each counts (other work on the
machine does not). See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import apart, parse

NULL = {"alone": ", lmms_patch: {null: 0}", "speed": ""}
"""The base tasks, without and with wrong images: what their metadata say of them."""
SIDE = 1024
GRID = 3
VIEWS = 1 + GRID * GRID
BATCH = 8
DISTINCT = 20
"""So many different images; the docs repeat them."""

OF_NAIVE, OF_BOUND, GROWTH = 0.35, 1.25, 32.0
OF_BOUND_WITH_WRONG = 2.25
"""Where docs are also asked on a wrong image: both images are decoded once more before anything is asked, to see that they differ."""
"""The targets: the most that ``wrapped`` may take of the other two's time, and may grow (MiB) over a run."""

TASK = """
task: {name}
dataset_path: parquet
dataset_kwargs: {{data_files: {{test: docs.parquet}}}}
test_split: test
output_type: generate_until
doc_to_visual: !function utils.view_{view}
doc_to_text: "{{{{question}}}}"
doc_to_target: answer
generation_kwargs: {{max_new_tokens: 4}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
metadata: {{version: 0.0{null}}}
"""

Sums = dict[tuple[int, int], int]
"""The sum of all pixel values by (doc, number of the view). Views 0 to 9 show the doc's own image, 10 to 19 the same cuts of a wrong one."""
Lent = dict[int, int]
"""Of each doc that is asked on a wrong image too, the doc whose image that is."""


# --- the benchmark's own data -------------------------------------------------------------------


def box(view: int) -> tuple[int, int, int, int]:
    """The rectangle of a view: the whole for 0, else the cell of that number."""
    if view == 0:
        return (0, 0, SIDE, SIDE)
    row, col = divmod(view - 1, GRID)
    return (SIDE * col // GRID, SIDE * row // GRID, SIDE * (col + 1) // GRID, SIDE * (row + 1) // GRID)


def jpeg(seed: int) -> bytes:
    """A photograph-like image: smooth random fields of four scales, and a little noise."""
    stream = np.random.default_rng(seed)
    total = stream.normal(0, 4, (SIDE, SIDE, 3))
    for cells, weight in ((4, 60), (16, 30), (64, 15), (256, 8)):
        field = [Image.fromarray(stream.normal(0, weight, (cells, cells)).astype(np.float32)) for _ in range(3)]
        total += np.stack([np.asarray(band.resize((SIDE, SIDE), Image.Resampling.BICUBIC)) for band in field], axis=-1)
    buffer = io.BytesIO()
    Image.fromarray((128 + total).clip(0, 255).astype(np.uint8)).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def write_tasks(folder: Path, docs: int) -> None:
    """The data, the base task ``speed``, and the ten naive tasks ``naive_0`` (full) to ``naive_9``."""
    import datasets

    images = [jpeg(seed) for seed in range(min(docs, DISTINCT))]
    features = datasets.Features(
        {"image": datasets.Image(), "question": datasets.Value("string"), "answer": datasets.Value("string")}
    )
    columns = {
        "image": [{"bytes": images[doc % len(images)], "path": None} for doc in range(docs)],
        "question": [f"What is there to see in picture {doc}?" for doc in range(docs)],
        "answer": ["nothing"] * docs,
    }
    datasets.Dataset.from_dict(columns, features=features).to_parquet(str(folder / "docs.parquet"))
    crops = [
        f"def view_{view}(doc):\n    return [doc['image'].convert('RGB').crop({box(view)})]\n" for view in range(VIEWS)
    ]
    base = "def view_base(doc):\n    return [doc['image'].convert('RGB')]\n"
    (folder / "utils.py").write_text("\n\n".join([*crops, base]))
    for name, null in NULL.items():
        (folder / f"{name}.yaml").write_text(TASK.format(name=name, view="base", null=null))
    for view in range(VIEWS):
        (folder / f"naive_{view}.yaml").write_text(TASK.format(name=f"naive_{view}", view=view, null=""))


# --- the three ways -----------------------------------------------------------------------------


def read(image: Image.Image) -> int:
    """What the adapter does: nothing but look at every pixel."""
    return int(np.asarray(image).sum())


def batches(requests: list[Any]) -> Iterator[list[Any]]:
    """As most adapters do it: sorted by prompt length, grouped by generation settings."""
    from lmms_eval.utils import Collator

    order = Collator([request.args for request in requests], lambda x: (-len(x[0]), x[0]), grouping=True)
    return order.get_batched(n=BATCH)


def answer(
    requests: list[Any], tables: dict[str, Any], after_batch: Callable[[], None] = lambda: None
) -> Iterator[tuple[int, int]]:
    """The adapter: the sum of the pixels of each request, with its doc id.

    The first function and task serve a batch.
    """
    for batch in batches(requests):
        _, _, show, doc_id, task, split = zip(*batch, strict=True)
        shown = [show[0](tables[task[0]][split[0]][i]) for i in doc_id]
        yield from ((int(i), sum(read(image) for image in images)) for i, images in zip(doc_id, shown, strict=True))
        after_batch()


def load(manager: Any, name: str) -> Any:
    """A task, as the harness loads it for a simple model."""
    from lmms_eval.tasks import get_task_dict

    return get_task_dict([name], manager, "simple")[name]


def wrapped(manager: Any, name: str, after_batch: Callable[[], None] = lambda: None) -> Sums:
    """One wrapped task, ten views per doc, and ten of a wrong image where it asks for them."""
    task = load(manager, f"{name}_rci{GRID}")
    task.build_all_requests()
    pairs, most = (
        answer(task.instances, {task.task_name: task.dataset}, after_batch),
        task.dataset["test"][0].table.most,
    )
    return {divmod(i, most): total for i, total in pairs}


def lent(manager: Any, name: str) -> Lent:
    """Which images the wrapped task lends."""
    task = load(manager, f"{name}_rci{GRID}")
    task.build_all_requests()
    table = task.dataset["test"][0].table
    return {doc: other for doc in range(len(task.eval_docs)) if (other := table.wrong_image_of(doc)) is not None}


def naive(manager: Any, wrong: Lent) -> Sums:
    """Ten native tasks, one after the other."""
    out: Sums = {}
    for view in range(VIEWS):
        task = load(manager, f"naive_{view}")
        task.build_all_requests()
        tables, requests = {f"naive_{view}": task.dataset}, {int(request.doc_id): request for request in task.instances}
        out |= {(doc, view): total for doc, total in answer(task.instances, tables)}
        again = dict(answer([requests[other] for other in wrong.values()], tables))
        out |= {(doc, VIEWS + view): again[other] for doc, other in wrong.items()}
    return out


def bound(manager: Any, wrong: Lent) -> Sums:
    """No harness, but the adapter's batches, so that memory is used alike."""
    rows = load(manager, "speed").eval_docs
    views, out = cut_once(rows, wrong), {}
    while batch := list(itertools.islice(views, BATCH)):
        out |= {key: read(image) for key, image in batch}
    return out


def cut_once(rows: Any, wrong: Lent) -> Iterator[tuple[tuple[int, int], Image.Image]]:
    """All views of all docs, with no more work than it takes."""
    for doc in range(len(rows)):
        for first, shown in ((0, doc), *([(VIEWS, wrong[doc])] if doc in wrong else [])):
            image = rows[shown]["image"].convert("RGB")
            yield (doc, first), image
            for view in range(1, VIEWS):
                yield (doc, first + view), image.crop(box(view))


# --- measuring ----------------------------------------------------------------------------------


def timed(way: Callable[[], Sums]) -> tuple[float, Sums]:
    """Processor seconds that a way takes, and its sums."""
    start = time.process_time()
    sums = way()
    return time.process_time() - start, sums


def resident() -> float:
    """Memory of this process in MiB, without the pages of the dataset's file that the system keeps at hand."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]


def memory(manager: Any, docs: int) -> dict[int, float]:
    """Resident memory (MiB) before one wrapped run, and when a quarter, a half and all of its docs are through."""
    marks = {0: resident(), docs // 4: 0.0, docs // 2: 0.0, docs: 0.0}
    requests = 0

    def look() -> None:
        nonlocal requests
        requests += BATCH
        for mark in marks:
            if requests - BATCH < mark * VIEWS <= requests:  # never so for 0
                marks[mark] = resident()

    wrapped(manager, "alone", look)
    return marks


def table(rows: list[tuple[str, ...]]) -> str:
    """The rows as text, columns aligned."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def verdict(met: bool) -> str:
    """The word in the table."""
    return "met" if met else "MISSED"


def main() -> int:
    """Reads the command line and keeps every file of the run in a temporary folder."""
    parser = argparse.ArgumentParser(description="Speed of the views of a doc; see the head of this file.")
    parser.add_argument("--docs", type=int, default=1000, help="number of images (default 1000)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each way is timed (default 3)")
    arguments = parse(parser, docs=4, rounds=1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "HF_HOME": f"{folder}/hf",
            "HF_HUB_OFFLINE": "1",
            "LMMS_EVAL_HOME": f"{folder}/lmms",
            "TQDM_DISABLE": "1",
        }
        met = measure(Path(folder), arguments.docs, arguments.rounds, arguments.tiny)
        return int(not met and not arguments.tiny)


def measure(folder: Path, docs: int, rounds: int, tiny: bool) -> bool:
    """Prints the tables; whether all targets are met."""
    import datasets
    import lmms_eval.models  # noqa: F401 - loads the plugin
    from lmms_eval.tasks import TaskManager
    from loguru import logger

    logger.remove()
    datasets.disable_progress_bars()
    apart(write_tasks, folder, docs, tiny=tiny)  # so that what it leaves in memory is not counted
    manager = TaskManager("ERROR", include_path=str(folder), include_defaults=False)
    for name in (*NULL, *(f"naive_{view}" for view in range(VIEWS))):
        load(manager, name)  # the first time, the harness reads the parquet file: none of the ways is to pay for it
    marks = memory(manager, docs)

    met = True
    for base in NULL:
        wrong = lent(manager, base)
        met &= compare(manager, base, wrong, docs, rounds)
    growth = max(marks[docs // 2], marks[docs]) - marks[docs // 4]
    met &= growth <= GROWTH
    print("\nresident memory: " + ", ".join(f"{value:.0f} MiB after {mark} docs" for mark, value in marks.items()))
    print(f"it grows by {growth:.1f} MiB, at most {GROWTH:.0f}: {verdict(growth <= GROWTH)}")
    return met


def compare(manager: Any, base: str, wrong: Lent, docs: int, rounds: int) -> bool:
    """Prints the table of a base task; whether its targets are met."""
    ways = {
        "wrapped": lambda: wrapped(manager, base),
        "naive": lambda: naive(manager, wrong),
        "bound": lambda: bound(manager, wrong),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        sums = {}
        for name, way in ways.items():
            spent, sums[name] = timed(way)
            seconds[name].append(spent)
        assert sums["wrapped"] == sums["naive"] == sums["bound"], "the three ways must show the same pixels"
        assert len(sums["wrapped"]) == (docs + len(wrong)) * VIEWS
        assert all(total > 0 for total in sums["wrapped"].values()), "a view is black"

    least = {name: min(times) for name, times in seconds.items()}
    of_naive, of_bound = least["wrapped"] / least["naive"], least["wrapped"] / least["bound"]
    most = OF_BOUND_WITH_WRONG if wrong else OF_BOUND
    asked = f"{len(wrong)} of them also on a wrong image" if wrong else "no wrong images"
    print(f"\n{docs} JPEG images of {SIDE}x{SIDE}, {VIEWS} views each, {asked}; least of {rounds} rounds\n")
    print(
        table(
            [
                ("way", "seconds", "ms per doc"),
                *((name, f"{t:.2f}", f"{1000 * t / docs:.1f}") for name, t in least.items()),
            ]
        )
    )
    print()
    print(
        table(
            [
                ("target", "measured", "at most", ""),
                ("wrapped / naive", f"{of_naive:.3f}", f"{OF_NAIVE}", verdict(of_naive <= OF_NAIVE)),
                ("wrapped / bound", f"{of_bound:.3f}", f"{most}", verdict(of_bound <= most)),
            ]
        )
    )
    return of_naive <= OF_NAIVE and of_bound <= most


if __name__ == "__main__":
    sys.exit(main())
