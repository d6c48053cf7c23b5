"""lmms-eval's own tasks, wrapped: the full-image metric is the base task's, and MPP is its definition."""

from __future__ import annotations

import argparse
import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import pytest
from lmms_eval import evaluator
from lmms_eval.tasks import TaskManager, get_task_dict
from PIL import Image

from tests.harness import toys
from tests.harness.standins import SCORED, SUBMITTED, WIDE, Overlap, StandIn, Verdict, Words, as_is
from tests.harness.toys import ChatModel, Model, metrics
from tests.sizes import size, some

JUDGED = "{task: hallusion_bench_image_rci2, class: !function lmms_patch.Wrap, base: hallusion_bench_image, grids: [2], allow_judge: true}"


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> TaskManager:
    """One for all runs: it reads 1,700 files. A task whose scorer calls a judge needs a file of its own."""
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "judged.yaml").write_text(JUDGED)
    return TaskManager(verbosity="ERROR", include_path=str(folder))


@pytest.fixture(autouse=True)
def no_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java, no judge, and no processes to make GQA's rows with: eight of them start at each load."""
    mapped = datasets.Dataset.map
    monkeypatch.setattr(
        datasets.Dataset, "map", lambda self, *args, **more: mapped(self, *args, **{**more, "num_proc": None})
    )
    monkeypatch.setattr("pycocoevalcap.tokenizer.ptbtokenizer.PTBTokenizer", Words)
    monkeypatch.setattr("pycocoevalcap.eval.Meteor", Overlap)
    monkeypatch.setattr("requests.post", Verdict)


def as_it_was(answer: Any) -> tuple[Any, None]:
    return answer, None


@dataclass
class Bench:
    """Runs tasks on a stand-in, each run in a working folder and an output folder of its own."""

    manager: TaskManager
    monkeypatch: pytest.MonkeyPatch
    folder: Path
    adapter: type[Model] = Model

    def into(self, label: str) -> argparse.Namespace:
        """Go to a fresh working folder; the arguments name a fresh output folder."""
        out = self.folder / label / "out"
        here = self.folder / label / "here"
        out.mkdir(parents=True)
        here.mkdir()
        self.monkeypatch.chdir(here)
        return argparse.Namespace(output_path=str(out), process_with_media=False)

    def run(
        self, standin: StandIn, task: str, label: str, change: Callable[..., Any] = as_is, **kwargs: Any
    ) -> dict[str, Any]:
        """``simple_evaluate`` of one task, one worker, on the stand-in with ``change`` done to its images."""
        with self.monkeypatch.context() as patch:
            patch.setattr(datasets, "load_dataset", standin.loader(change))
            if task == standin.task and not standin.menu:
                # lmms-eval 0.7.3 turns log-likelihoods into text, and its own scorer fails on that; ours reads them
                # back
                patch.setattr(evaluator, "unwrap_generation_output", as_it_was)
            arguments = {
                "model": self.adapter(kwargs.pop("answer", standin.answer)),
                "task_manager": self.manager,
                "cli_args": self.into(label),
                "bootstrap_iters": 0,
                "process_docs_parallel": 1,
            }
            return toys.simple_evaluate(tasks=[task], **{**arguments, **kwargs})

    def load(self, standin: StandIn) -> Any:
        """The base task itself, as the host loads it."""
        with self.monkeypatch.context() as patch:
            patch.setattr(datasets, "load_dataset", standin.loader())
            return get_task_dict([standin.task], self.manager, "simple")[standin.task]

    def files(self, label: str) -> list[tuple[str, bytes]]:
        """All that a run left behind: path, with digits (the time of day) blotted out, and content."""
        root = self.folder / label
        return sorted(
            (re.sub(r"\d", "0", str(path.relative_to(root))), path.read_bytes())
            for path in root.rglob("*")
            if path.is_file()
        )


@pytest.fixture
def bench(manager: TaskManager, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    return Bench(manager, monkeypatch, tmp_path)


# --- the definition, by hand ------------------------------------------------------------------


class ByHand:
    """FIP and MPP from native runs alone: one run on the images, one more on each cell of the images."""

    def __init__(self, bench: Bench, standin: StandIn, base: dict[str, Any], n: int) -> None:
        self.bench, self.standin, self.calls = bench, standin, 0
        self.aggregation = bench.load(standin).aggregation()
        self.used = [i for i in range(len(base["samples"][standin.task])) if i not in standin.excluded]
        self.full = base["samples"][standin.task]
        self.cells = [
            bench.run(standin, standin.task, f"cell {row} {col}", crop(n, row, col))["samples"][standin.task]
            for row in range(n)
            for col in range(n)
        ]

    def aggregate(self, metric: str, items: list[Any]) -> Any:
        """The base task's own aggregation, away from all files.

        Loaded anew for each call, since some remember earlier ones.
        """
        self.calls += 1
        args = self.bench.into(f"by hand {self.calls}")
        function, items = self.bench.load(self.standin).aggregation()[metric], copy.deepcopy(items)
        if "args" in function.__code__.co_varnames[: function.__code__.co_argcount]:
            return function(items, args=args)
        return function(items)

    def fip(self, metric: str) -> Any:
        return self.aggregate(metric, [self.full[i][metric] for i in self.used if metric in self.full[i]])

    def mpp(self, metric: str) -> Any:
        docs = [i for i in self.used if metric in self.full[i]]
        return self.aggregate(metric, [self.cells[self.best(i, metric)][i][metric] for i in docs])

    def best(self, doc: int, metric: str) -> int:
        """The cell with the best scalar, the lowest of equals.

        The first metric of the task falls back on the aggregation of one item; another metric that
        has no scalar goes along with the first.
        """
        first = next(m for m in self.aggregation if m in self.full[doc])
        scores = [value_of(cell[doc][metric]) for cell in self.cells]
        if None in scores and metric == first:
            scores = [self.aggregate(metric, [cell[doc][metric]]) for cell in self.cells]
        if None in scores:
            return self.best(doc, first)
        return scores.index(max(scores))


def value_of(item: Any) -> float | None:
    if isinstance(item, dict):
        item = item.get("score")
    return float(item) if isinstance(item, (int, float)) else None


def crop(n: int, row: int, col: int) -> Callable[[Image.Image], Image.Image]:
    def cell(image: Image.Image) -> Image.Image:
        width, height = image.size
        if min(width, height) < n:
            return image
        return image.crop((width * col // n, height * row // n, width * (col + 1) // n, height * (row + 1) // n))

    return cell


CAPTIONS = "coco2017_cap_val_lite"
ELSEWHERE = size({CAPTIONS, "mmmu_val", "blink_counting"}, {CAPTIONS})
CASES = [(name, 2) for name in SCORED if name not in ELSEWHERE] + [
    (name, 3) for name in size(["mme"], ["mme", "scienceqa_img", "textvqa_val", "mmmu_val"])
]


CASES = CASES[:: size(2, 1)]


@pytest.mark.parametrize(("name", "n"), some(CASES), ids=lambda one: str(one))
def test_wrapping_keeps_the_native_metrics_and_mpp_is_its_definition(bench: Bench, name: str, n: int) -> None:
    check_against_the_definition(bench, name, n)


@pytest.mark.parametrize("name", size(["mmmu_val", "blink_counting"], ["chartqa", "mmmu_val", "blink_counting"]))
def test_the_same_with_a_chat_model(bench: Bench, name: str) -> None:
    """ChartQA's messages are made by lmms-eval; the other two make their own."""
    bench.adapter = ChatModel
    check_against_the_definition(bench, name, 2)


def test_corpus_metrics_have_no_best_cell_by_single_captions(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """BLEU of one caption does not make up BLEU of all: without a profile rather no number than one that looks right."""
    monkeypatch.setattr("lmms_patch.ask.profiles.of", lambda task: None)
    standin = SCORED[CAPTIONS]()
    native = metrics(bench.run(standin, CAPTIONS, "base"), CAPTIONS)
    found = metrics(bench.run(standin, f"{CAPTIONS}_rci2", "wrapped"), f"{CAPTIONS}_rci2")
    assert {m: found[m] for m in native} == native
    assert {found[f"{m}_mpp2"] for m in native} == {None}
    assert found["rci2"] is found["gap2"] is None


def check_against_the_definition(bench: Bench, name: str, n: int) -> None:
    standin = SCORED[name]()
    base = bench.run(standin, name, "base")
    wrapped = bench.run(standin, f"{name}_rci{n}", "wrapped")
    hand = ByHand(bench, standin, base, n)
    native, found = metrics(base, name), metrics(wrapped, f"{name}_rci{n}")

    assert {m: found[m] for m in hand.aggregation} == {m: native[m] for m in hand.aggregation}
    assert {m: found[f"{m}_mpp{n}"] for m in hand.aggregation} == {m: hand.mpp(m) for m in hand.aggregation}

    [results] = wrapped["results"].values()
    analysis = next(value for key, value in results.items() if key.startswith("patch,"))["analysis"]
    primary = analysis["metric"]  # the profile's, or the first
    fip, mpp = hand.fip(primary), hand.mpp(primary)
    assert mpp > fip > 0, "the stand-in shows no difference"
    details = analysis["grids"][str(n)]
    assert (details["fip"], details["mpp"]["value"]) == (pytest.approx(fip, abs=1e-12), pytest.approx(mpp, abs=1e-12))
    if found["gate"] == 0:  # a handful of docs rarely beats chance by two standard errors: then there is no index
        assert found[f"rci{n}"] is found[f"gap{n}"] is None
    else:
        assert found[f"rci{n}"] == pytest.approx(1 - mpp / fip, abs=1e-12)
        assert found[f"gap{n}"] == pytest.approx(fip - mpp, abs=1e-12)


@pytest.mark.parametrize("name", ["scienceqa_img", "realworldqa"])
def test_a_doc_without_cells_is_scored_on_the_full_image_and_left_out_of_the_grid(bench: Bench, name: str) -> None:
    standin = SCORED[name]()
    base = bench.run(standin, name, "base")["samples"][name]
    samples = bench.run(standin, f"{name}_rci2", "wrapped")["samples"][f"{name}_rci2"]

    assert {s["doc_id"] for s in samples if "2" in s["patch"]["excluded"]} == standin.excluded
    assert [s["exact_match"] for s in samples] == [s["exact_match"] for s in base]


@pytest.mark.parametrize("n", [2, 3])
def test_a_scorer_that_guesses_draws_for_the_full_image_what_the_base_draws(bench: Bench, n: int) -> None:
    """MMMU picks a random option where an answer names none: here for every view of every doc."""
    standin, wrapped = SCORED["mmmu_val"](), f"mmmu_val_rci{n}"
    rubbish = {"answer": lambda prompt, images: "no idea", "cli_args": None}
    base = bench.run(standin, "mmmu_val", "base", **rubbish)
    first = bench.run(standin, wrapped, "wrapped", **rubbish)
    again = bench.run(standin, wrapped, "again", **rubbish)

    guesses = [[item["parsed_pred"] for item in column(run, "mmmu_acc")] for run in (base, first, again)]
    assert len({str(guess) for guess in guesses[0]}) > 1
    assert guesses[0] == guesses[1] == guesses[2]
    assert metrics(first, wrapped) == metrics(again, wrapped)


def column(run: dict[str, Any], metric: str) -> list[Any]:
    [samples] = run["samples"].values()
    return [sample[metric] for sample in samples]


def test_without_a_right_answer_on_the_full_image_there_is_no_index(bench: Bench) -> None:
    standin = SCORED["chartqa"]()
    run = bench.run(
        standin, "chartqa_rci2", "wrapped", answer=lambda prompt, images: "zzz" if images[0].width >= WIDE else "Yes"
    )
    found = metrics(run, "chartqa_rci2")

    golds_yes = 2 / 10
    assert (found["relaxed_overall"], found["relaxed_overall_mpp2"]) == (0, golds_yes)
    assert found["gate"] == 0
    assert found["rci2"] is found["gap2"] is None


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["textvqa_val", "coco2017_cap_val_lite", *SUBMITTED])
def test_the_file_to_hand_in_is_the_base_tasks_own_and_the_only_one(bench: Bench, name: str) -> None:
    standin = (SCORED | SUBMITTED)[name]()
    bench.run(standin, name, "base")
    bench.run(standin, f"{name}_rci2", "wrapped")

    files = bench.files("base")
    assert [len(content) > 100 for _, content in files] == [True]
    assert bench.files("wrapped") == files
