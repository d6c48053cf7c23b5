"""Which metric the index is built on, where a task has several: the one over all docs. YAML files and scorers are lmms-eval's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets import Image as Picture
from datasets import List

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import Options, WrapSpec
from lmms_patch.harness.wrap.task import WrappedTask
from tests.harness.standins import TEXT, WHOLE, StandIn, noise
from tests.harness.told import load, run_told

CATEGORIES = ("Motion (Cam.)", "Attribute (Appr.)", "MSR")


def mmsi_bench() -> StandIn:
    rows = [
        {
            "id": i,
            "images": [noise(i)],
            "question": f"What is at {i}? A. cup B. dog",
            "answer": "AB"[i % 2],
            "question_type": CATEGORIES[i % 3],
        }
        for i in range(9)
    ]
    columns = {"id": WHOLE, "images": List(Picture()), "question": TEXT, "answer": TEXT, "question_type": TEXT}
    key = ("RunsenXu/MMSI-Bench", None)
    return StandIn("mmsi_bench", {key: {"test": rows}}, {key: columns})


def test_mmsi_bench_is_scored_over_all_its_docs(tmp_path: Path) -> None:
    """The first of its twelve metrics is that of a category which none of these docs has."""
    standin = mmsi_bench()
    [splits] = standin.data.values()
    rows = splits["test"]
    # on the full image six of nine are right; a cell answers the first doc alone
    right = {0: range(6), 1: range(1)}
    run = run_told(
        standin,
        "mmsi_bench_rci2",
        rows,
        lambda doc, view: rows[doc]["answer"] if doc in right.get(view, ()) else "F",
        tmp_path,
    )
    assert run.analysis["metric"] == "average"
    assert run.analysis["n_docs"] == 9
    assert run.grid["fip"] == run.metrics["average"] == pytest.approx(6 / 9)
    assert run.metrics["average_mpp2"] == pytest.approx(1 / 9)


@pytest.mark.parametrize(
    ("task", "key", "split", "metric"),
    [
        ("seedbench_2", ("lmms-lab-encoder/SEED-Bench-2", None), "test", "seed_all"),
        ("hrbench4k", ("DreamMr/HR-Bench", "hrbench_version_split"), "hrbench_4k", "average"),
    ],
)
def test_a_metric_over_all_docs_is_known_by_its_name(
    task: str, key: tuple[str, str | None], split: str, metric: str
) -> None:
    """These docs cannot be scored: they lack what the scorers look at."""
    doc = dict.fromkeys(("question", "choice_a", "choice_b", "choice_c", "choice_d", "data_type"), "?")
    standin = StandIn(task, {key: {split: [doc]}}, {key: dict.fromkeys(doc, TEXT)})
    spec = WrapSpec(task, KINDS["rci"], (2,), Options(allow_judge=True))
    # SEED-Bench-2 has a prompt for some models alone
    assert WrappedTask(load(standin, task, "llava"), spec).session.known.primary == metric


METRICS = ("submission", "easy", "hard", "right")
KINDS_OF_DOCS = """
def by_kind(doc, results):
    right = float(results[0] == doc["answer"])
    return {doc["kind"]: right, "right": right}
"""
