"""lmms-eval's own video benchmarks, wrapped: prompts, scorers and aggregations are theirs, and the full clip earns what the base task earns."""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Dataset, DatasetDict
from lmms_eval.api.task import ConfigurableTask
from lmms_eval.tasks import TaskManager

from tests.harness import toys
from tests.harness.adapters import per_request
from tests.harness.cinema import Watching, WatchingChat
from tests.harness.toys import metrics
from tests.making.videos import make
from tests.sizes import each, size, some

DOCS = size(6, 10)
LETTERS = "ABCDE"


@dataclass(frozen=True)
class Benchmark:
    """A video task that lmms-eval ships, with rows that have the columns of the real ones.

    Attributes:
        task: its name.
        split: the split that it evaluates.
        folder: where it looks for its videos under ``HF_HOME``.
        row: makes a row from its number and the file name of its video.
        menu: the model's answers.
    """

    task: str
    split: str
    folder: str
    row: Callable[[int, str], dict[str, Any]]
    menu: tuple[str, ...] = ("A", "B.", "(C)", "The answer is D", "I cannot tell")


def videomme(i: int, stem: str) -> dict[str, Any]:
    options = ["A. red", "B. green", "C. blue", "D. grey"]
    told = {
        "duration": ["short", "medium"][i % 2],
        "domain": "Knowledge",
        "sub_category": "Astronomy",
        "task_type": "Counting Problem",
    }
    return {
        "video_id": stem,
        "videoID": stem,
        "question_id": f"{i:03}-1",
        "question": f"What is {i}?",
        "options": options,
        "answer": "ABCD"[i % 4],
        **told,
    }


def nextqa(i: int, stem: str) -> dict[str, Any]:
    options = {f"a{j}": f"thing {j}" for j in range(5)}
    return {
        "video": stem,
        "frame_count": 12,
        "width": 64,
        "height": 48,
        "question": f"why {i}",
        "answer": i % 5,
        "qid": i,
        "type": "CW",
        **options,
    }


def egoschema(i: int, stem: str) -> dict[str, Any]:
    options = [f"{letter}. C does {letter * 3}" for letter in LETTERS]
    return {
        "question_idx": str(i),
        "video_idx": stem,
        "question": f"What does C do, {i}?",
        "option": options,
        "answer": str(i % 5),
    }


def mvbench(i: int, stem: str) -> dict[str, Any]:
    return {
        "video": f"{stem}.mp4",
        "question": f"What happens, {i}?",
        "candidates": ["open", "close", "not sure"],
        "answer": ["open", "close"][i % 2],
    }


def tempcompass(i: int, stem: str) -> dict[str, Any]:
    return {
        "video_id": stem,
        "question": f"Is it fast, {i}?",
        "answer": ["yes", "no"][i % 2],
        "dim": ["speed", "order"][i % 2],
    }


def mlvu(i: int, stem: str) -> dict[str, Any]:
    asked = f"What is {i}?\n(A) red\n(B) green\n(C) blue\n(D) grey"
    return {
        "video_name": f"{stem}.mp4",
        "duration": 12.0,
        "question": asked,
        "answer": "ABCD"[i % 4],
        "task_type": ["count", "ego", "order"][i % 3],
    }


def longvideobench(i: int, stem: str) -> dict[str, Any]:
    options = {f"option{j}": f"thing {j}" if j < 4 else "N/A" for j in range(5)}
    told = {
        "id": f"q{i}",
        "video_id": stem,
        "video_path": f"{stem}.mp4",
        "question": f"Which one, {i}?",
        "correct_choice": i % 4,
    }
    return {
        **told,
        **options,
        "duration_group": [15, 60][i % 2],
        "duration": 12.0,
        "question_category": ["S2E", "T3O"][i % 2],
    }


BENCHMARKS = {
    one.task: one
    for one in (
        Benchmark("videomme", "test", "videomme/data", videomme),
        Benchmark("nextqa_mc_test", "test", "nextqa/NExTVideo", nextqa),
        Benchmark("egoschema_subset", "test", "egoschema/videos", egoschema),
        Benchmark(
            "mvbench_action_antonym",
            "train",
            "mvbench_video/ssv2_video_mp4",
            mvbench,
            ("A", "(B)", "B.", "C", "not sure"),
        ),
        Benchmark("tempcompass_yes_no", "test", "tempcompass/videos", tempcompass, ("yes", "no", "Yes, it is.", "No.")),
        Benchmark("mlvu_dev", "test", "mlvu", mlvu),
        Benchmark("longvideobench_val_v", "validation", "datasets/longvideobench/videos", longvideobench),
    )
}
ALLOWED = (
    "{{task: {name}_trci2, class: !function lmms_patch.Wrap, base: {name}, kind: trci, grids: [2], allow_judge: true}}"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """``HF_HOME`` with the clips of all benchmarks; no two docs share one."""
    where = tmp_path_factory.mktemp("home")
    clips = [make(where / f"{i}.mp4", 10 + i, (64, 48)) for i in range(DOCS)]
    for benchmark in BENCHMARKS.values():
        folder = where / benchmark.folder
        folder.mkdir(parents=True)
        for i, clip in enumerate(clips):
            (folder / f"clip{i}.mp4").symlink_to(clip)
    return where


@pytest.fixture(scope="module")
def manager(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "judged.yaml").write_text(ALLOWED.format(name="tempcompass_yes_no"))
    return TaskManager("ERROR", include_path=str(folder))


class Guessing:
    """Answers by a digest of the frames, so that each view has an answer of its own."""

    menu: tuple[str, ...] = ()

    def watch(self, medium):
        return self.menu[hashlib.blake2b(super().watch(medium).encode()).digest()[0] % len(self.menu)]


class Simple(Guessing, Watching):
    pass


class Chat(Guessing, WatchingChat):
    pass


def load(benchmark: Benchmark, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the host find the stand-in rows and the clips."""
    rows = Dataset.from_list([benchmark.row(i, f"clip{i}") for i in range(DOCS)])

    def load_dataset(path: str, name: str | None = None, split: str | None = None, **_: Any) -> Any:
        return DatasetDict({benchmark.split: rows}) if split is None else rows

    def download(self: Any, dataset_kwargs: Any = None) -> None:
        self.dataset = self.dataset_no_image = DatasetDict({benchmark.split: rows})
        if self.config.process_docs is not None:
            for split in self.dataset:
                self.dataset[split] = self.config.process_docs(self.dataset[split])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(ConfigurableTask, "download", download)
    monkeypatch.setenv("HF_HOME", str(home))
    decord = types.ModuleType("decord")  # LongVideoBench imports it, for a way of reading that this task does not take
    decord.__dict__.update(VideoReader=None, cpu=None, __spec__=ModuleSpec("decord", None))
    monkeypatch.setitem(sys.modules, "decord", decord)


def run(model: Any, manager: Any, tasks: list[str], folder: Path) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    return toys.simple_evaluate(
        model=model, tasks=tasks, task_manager=manager, log_samples=True, bootstrap_iters=0, process_docs_parallel=1
    )


@pytest.mark.parametrize(("name", "model"), some(each(list(BENCHMARKS), [Simple, Chat]), 3))
def test_the_full_clip_earns_what_the_base_task_earns(name, model, home, manager, monkeypatch, tmp_path):
    benchmark = BENCHMARKS[name]
    load(benchmark, home, monkeypatch)
    asked = model(per_request)
    asked.menu = benchmark.menu
    results = run(asked, manager, [name, f"{name}_trci2"], tmp_path)
    every, found = metrics(results, name), metrics(results, f"{name}_trci2")
    listed = [one["metric"] for one in results["configs"][name]["metric_list"]]
    native = {
        metric: every[metric] for metric in listed if metric in every
    }  # others are no numbers but submissions, or of no doc here
    assert native
    assert {metric: found[metric] for metric in native} == native
    assert any(value for value in native.values() if isinstance(value, float))
    base, wrapped = (results["samples"][task] for task in (name, f"{name}_trci2"))
    assert [sample["filtered_resps"][0] for sample in wrapped] == [sample["filtered_resps"][0] for sample in base]
    assert all(sample["patch"]["excluded"] == {} for sample in wrapped)
    assert len(wrapped[0]["resps"]) in (3, 4), (
        "the full clip and two halves, and perhaps the whole of another doc's clip"
    )


def test_a_benchmark_that_ends_the_process_where_a_video_is_missing(home, manager, monkeypatch, tmp_path):
    """Video-MME calls ``sys.exit``. Wrapped, the doc is left out and counted, and the run goes on."""
    benchmark = BENCHMARKS["videomme"]
    load(
        Benchmark("videomme", "test", benchmark.folder, lambda i, stem: videomme(i, "gone" if i == 3 else stem)),
        home,
        monkeypatch,
    )
    asked = Simple(per_request)
    asked.menu = benchmark.menu
    results = run(asked, manager, ["videomme_trci2"], tmp_path)
    excluded = [sample["patch"]["excluded"].get("2", "") for sample in results["samples"]["videomme_trci2"]]
    assert [bool(why) for why in excluded] == [i == 3 for i in range(DOCS)]
    assert "does not exist" in excluded[3]
    assert results["results"]["videomme_trci2"]["patch,none"]["n_failed"] == 1
