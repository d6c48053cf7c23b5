"""A ``_tst<k>`` task of a real benchmark on the real ``lmms-eval`` command line. Two ranks: ``test_cli.py``."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from tests.harness.command import lmms_eval, results, samples
from tests.places import SHARED
from tests.sizes import DEEP, size

SEEDS, TREES, EVERY = size(1, 3), size(20, 40), size(16, 4)
VSI = SHARED / "vsi_bench.jsonl"

pytestmark = pytest.mark.cli


VSI_UTILS = '''
def ask(doc, lmms_eval_specific_kwargs=None):
    lines = [doc["question"], *(f"{chr(65 + i)}. {text}" for i, text in enumerate(doc["choices"] or []))]
    return "\\n".join([*lines, "Answer with the option's letter." if doc["choices"] else "Answer with a number."])

def show(doc):
    raise FileNotFoundError("the videos are not here")

def score(doc, results):
    """Accuracy, or mean relative accuracy over the thresholds 0.50, 0.55 ... 0.95."""
    answer = results[0].strip()
    if doc["choices"]:
        return {"marks": float(answer[:1] == doc["answer"])}
    try:
        error = abs(float(answer) - float(doc["answer"])) / float(doc["answer"])
    except ValueError:
        return {"marks": 0.0}
    return {"marks": sum(error <= 1 - threshold / 100 + 1e-9 for threshold in range(50, 100, 5)) / 10}
'''


def write_vsi(folder):
    """Every ``EVERY``-th scene; returns its rows."""
    rows = [json.loads(line) for line in VSI.read_text(encoding="utf-8").splitlines()]
    scenes = {scene: i for i, scene in enumerate(dict.fromkeys(row["meta"]["video"] for row in rows))}
    rows = [row for row in rows if scenes[row["meta"]["video"]] % EVERY == 0]
    (folder / VSI.name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "utils.py").write_text(VSI_UTILS)
    task = {
        "task": "vsi",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": VSI.name}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_visual": "FUNCTION utils.show",
        "doc_to_text": "FUNCTION utils.ask",
        "doc_to_target": "answer",
        "process_results": "FUNCTION utils.score",
        "generation_kwargs": {"max_new_tokens": 8},
        "metric_list": [{"metric": "marks", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {
            "version": 1.0,
            "lmms_patch": {"group": "meta.video", "category": "category", "choices": "choices", "fold_seeds": SEEDS},
        },
    }
    (folder / "vsi.yaml").write_text(yaml.safe_dump(task).replace("FUNCTION", "!function"))
    return rows


@pytest.mark.skipif(not VSI.exists(), reason="the real data is not beside this checkout")
def test_vsi_bench(tmp_path):
    """A quarter of the scenes and few trees reach what they do on the whole (``tests/tst/test_tst_real.py``); of fewer only the files are looked at.

    The authors' hand-written features reach 0.388 with folds grouped by scene and 0.430 with random ones
    (../shared/data/README.md).
    """
    rows = write_vsi(tmp_path)
    asked = ("--model", "tst_rf", "--model_args", f"trees={TREES}", "--tasks", "vsi_tst5", "--include_path", tmp_path)
    lmms_eval(*asked, "--output_path", tmp_path / "out", "--log_samples")
    result, lines = results(tmp_path / "out")["vsi_tst5"], samples(tmp_path / "out", "vsi_tst5")
    found = {name: one.value for name, one in result.measures.items()}
    source, random = (result.tst.by_grouping[name].accuracy.value for name in ("source", "none"))
    assert len(lines) == len(rows)
    assert 0.28 < found["tst_majority"] < 0.38  # authors: 0.340, with random folds
    assert source > found["tst_majority"]
    if DEEP:
        assert len(rows) == 1251
        assert source >= 0.39
        assert random >= 0.48
        assert result.tst.leakage.low > 0
        assert result.measures["tst_above"].low > 0.03

    records = [lines[doc_id]["patch"]["tst"] for doc_id in range(len(rows))]
    assert np.mean([record["scores"]["source"] for record in records]) == pytest.approx(found["tst"])
    assert np.mean([record["scores"]["none"] for record in records]) == pytest.approx(random)
    assert [len(record["scores"]["source"]) for record in records] == [SEEDS] * len(rows)
    assert [record["source"] for record in records] == [row["meta"]["video"] for row in rows]
    assert (
        len({(record["source"], record["fold"]) for record in records})
        == len({record["source"] for record in records})
        == size(18, 72)
    )
    assert np.mean([lines[doc_id]["marks"] for doc_id in range(len(rows))]) == pytest.approx(
        np.mean([record["scores"]["source"][0] for record in records])
    )
    right = [record["answers"][0] == row["answer"] for record, row in zip(records, rows, strict=True) if row["choices"]]
    assert right == [
        record["scores"]["source"][0] == 1 for record, row in zip(records, rows, strict=True) if row["choices"]
    ]
