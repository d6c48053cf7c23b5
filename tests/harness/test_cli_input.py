"""What the real ``lmms-eval`` command line is given: real images, mistakes, scorers that fail, another logger."""

from __future__ import annotations

import json

import polars as pl
import pytest
import yaml

from lmms_patch.runs.run import find
from tests.harness.command import INSTALLED, answers, lmms_eval, metrics, mosaic_file
from tests.places import SHARED
from tests.sizes import size

pytestmark = pytest.mark.cli
DOCS = size(4, 12)
"""Of each real data set."""


# --- real input -----------------------------------------------------------------------------------


@pytest.mark.skipif(not SHARED.exists(), reason="the real data is not beside this checkout")
def test_real_images_as_tasks_of_an_include_folder(tmp_path):
    """NLVR (400x100, RGBA) and PuzzleVQA (512 square, multiple choice by letter)."""
    for name in ("nlvr", "puzzlevqa"):
        rows = [
            row for row in map(json.loads, (SHARED / f"{name}.jsonl").read_text().splitlines()) if row.get("image")
        ][:DOCS]
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(json.dumps({**row, "image": str(SHARED / row["image"]), "meta": None}) + "\n" for row in rows)
        )
        task = {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": f"{name}.jsonl"}},
            "test_split": "test",
            "output_type": "generate_until",
            "doc_to_visual": "DOC_TO_VISUAL",
            "doc_to_text": "{{question}}"
            if name == "nlvr"
            else "{{question}}\n{% for c in choices %}{{ 'ABCDEFGH'[loop.index0] }}. {{c}}\n{% endfor %}",
            "doc_to_target": "answer",
            "generation_kwargs": {"max_new_tokens": 4, "temperature": 0, "do_sample": False},
            "metric_list": [
                {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True, "ignore_case": True}
            ],
            "metadata": {"version": 1.0, "lmms_patch": {"cluster": "group"}},
        }
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(task).replace("DOC_TO_VISUAL", "!function utils.image"))
    (tmp_path / "utils.py").write_text(
        "from PIL import Image\ndef image(doc):\n    return [Image.open(doc['image'])]\n"
    )
    out = tmp_path / "out"
    lmms_eval(
        "--model",
        "mosaic_vlm",
        "--batch_size",
        8,
        "--tasks",
        "nlvr_rci3,puzzlevqa_rci2",
        "--include_path",
        tmp_path,
        "--output_path",
        out,
        "--log_samples",
    )
    [run] = find([out])
    frames = {result.task: result.frame() for result in run.results}
    for task, cells, sheet in (("nlvr_rci3", 9, (400, 100)), ("puzzlevqa_rci2", 4, (512, 512))):
        docs = frames.pop(task).filter(pl.col("swapped").fill_null(False).not_()).sort("doc_id", "view")
        assert len(docs) == DOCS * (1 + cells)
        assert docs["cluster"].null_count() == 0
        assert {(one["width"], one["height"]) for [one] in docs["shown"].drop_nulls()} == {sheet}
    assert not frames


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "says", "command"),
    [
        ("gqaa_rci3", "did you mean gqa_rci3", size(None, INSTALLED)),
        ("mosaic_local,mosaic_sum_rci10", "grid size 10", None),
        ("gqa_trci4", "only whole videos can be cut in time", None),
        ("mathvista_testmini_cot_rci3", "allow_judge: true", None),
    ],
)
def test_refusals_before_the_model_is_loaded(tasks, says, command, tmp_path):
    printed = lmms_eval(
        "--model", "no_such_model", "--tasks", tasks, "--output_path", tmp_path, status=2, command=command
    )
    refusal = [line for line in printed.splitlines() if line.startswith("lmms-patch: ")]
    assert len(refusal) == 1
    assert says in refusal[0]
    assert "Traceback" not in printed


def test_failures_that_only_a_run_shows(tmp_path):
    """``--repeats 2``, and a scorer that raises: answers kept, its cause named, status 2."""
    printed = lmms_eval("--model", "mosaic_vlm", "--tasks", "mosaic_sum_rci2", "--limit", 2, "--repeats", 2, status=2)
    assert "lmms-patch: mosaic_sum_rci2: --repeats above 1 is not possible" in printed

    (tmp_path / "bad.yaml").write_text(
        "include: BASE\ntask: bad\nprocess_results: !function scorer.score\n".replace(
            "BASE", str(mosaic_file("mosaic_sum.yaml"))
        )
    )
    (tmp_path / "scorer.py").write_text(
        "def score(doc, results):\n    return {'acc': 1 / len(doc['no such column'])}\n"
    )
    out = tmp_path / "out"
    printed = lmms_eval(
        "--model",
        "mosaic_vlm",
        "--tasks",
        "bad_rci2",
        "--include_path",
        tmp_path,
        "--limit",
        3,
        "--output_path",
        out,
        "--log_samples",
        status=2,
    )
    assert (
        "lmms-patch: bad_rci2: 3 of 3 docs could not be scored by bad, first doc 0: KeyError: 'no such column'"
        in printed
    )
    assert metrics(out)["bad_rci2"]["rci2"] is None
    assert all(len(got) == 5 + 1 for got in answers(out, "bad_rci2").values())  # five views, and a wrong image


def test_wandb_takes_the_results(tmp_path):
    out = tmp_path / "out"
    printed = lmms_eval(
        "--model", "mosaic_vlm", "--tasks", "mosaic_sum_rci2", "--limit", 3, "--output_path", out, "--log_samples", "--wandb_args", "project=test,mode=offline",
        "--verbosity", "INFO", cwd=tmp_path, WANDB_MODE="offline",
    )  # fmt: skip
    assert "Logging to Weights and Biases failed" not in printed
    assert list(tmp_path.rglob("*.wandb"))
