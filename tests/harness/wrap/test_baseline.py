"""The harness's own ``--baseline`` on wrapped tasks: its paired test is of the full image, on either side."""

import json

import pytest

from tests.harness.toys import Model, metrics, rows, run, write_task

DOCS = 12
UTILS = """
def process_results(doc, results):
    right = float(results[0] == doc["answer"])
    return {"toy_score": ITEM}


def mean(items):
    return sum(item["score"] if isinstance(item, dict) else item for item in items) / len(items)
"""


def answer_of(known):
    """Right on the full image of some docs, and on the top left cell of every doc."""

    def answer(prompt, images):
        red, green, doc = images[0].getpixel((0, 0))
        whole = images[0].size == (60, 60)
        return str(doc) if (doc in known if whole else (red, green) == (0, 0)) else "no"

    return answer


@pytest.mark.parametrize("item", ["right", '{"score": right, "pred_answer": results[0], "answer": doc["answer"]}'])
def test_the_paired_baseline_is_the_full_image_of_the_other_run(tmp_path, item):
    (tmp_path / "utils.py").write_text(UTILS.replace("ITEM", item))
    listed = [{"metric": "toy_score", "aggregation": "!function utils.mean", "higher_is_better": True}]
    folder = write_task(
        tmp_path, "toy", rows(DOCS), process_results="!function utils.process_results", metric_list=listed
    )
    before = run(Model(answer_of({0, 1, 2})), "toy_rci2", folder)
    assert metrics(before, "toy_rci2")["toy_score_mpp2"] == 1.0
    log = tmp_path / "before.jsonl"
    log.write_text("".join(json.dumps(sample, default=str) + "\n" for sample in before["samples"]["toy_rci2"]))

    after = run(Model(answer_of(set(range(9)))), "toy_rci2", folder, baseline=str(log))

    found = after["results"]["toy_rci2"]
    assert metrics(after, "toy_rci2")["toy_score"] == pytest.approx(9 / DOCS)
    assert found["paired_baseline_score"] == pytest.approx(100 * 3 / DOCS)
    assert found["paired_ci_lower"] < 100 * 6 / DOCS < found["paired_ci_upper"]
    assert found["paired_pvalue"] < 0.05
