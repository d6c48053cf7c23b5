"""What the profiles say of native scorers, asked of the scorers themselves (no data needed)."""

import pytest
from lmms_eval.utils import load_yaml_config

from lmms_patch.ask import profiles
from lmms_patch.harness.names import catalog


@pytest.fixture(scope="module")
def native():
    """The full config of a task, its functions imported."""
    index = catalog.task_manager().task_index
    return lambda name: load_yaml_config(index[name]["yaml_path"])


def aggregation(config, metric):
    return next(entry["aggregation"] for entry in config["metric_list"] if entry["metric"] == metric)


def vqa(*answers):
    return {"question_id": "1", "answers": [answer for answer, times in answers for _ in range(times)]}


SCALARS = [
    # task, doc, answer, scalar of the primary metric's item
    ("blink_counting", {"idx": "1", "sub_task": "Counting", "choices": ["1", "2"], "answer": "(B)"}, "(B)", 1),
    ("blink_counting", {"idx": "1", "sub_task": "Counting", "choices": ["1", "2"], "answer": "(B)"}, "A", 0),
    ("mmstar", {"index": 0, "category": "math", "l2_category": "geometry", "answer": "C"}, "C", 1),
    ("realworldqa", {"answer": "B"}, "B", 1),
    ("realworldqa", {"answer": "Yes"}, "yes.", 1),
    ("scienceqa_img", {"choices": ["x", "y", "z"], "answer": 1}, "B", 1),
    ("pope", {"question_id": "1", "answer": "yes"}, "Yes", 1),
    ("pope", {"question_id": "1", "answer": "yes"}, "Yes.", 0),
    ("chartqa", {"type": "human_test", "answer": "100"}, "104", 1),
    ("chartqa", {"type": "augmented_test", "answer": "100"}, "106", 0),
    # consensus: leave one person out; of the others, three who agree are enough
    ("textvqa_val", vqa(("stop", 3), ("go", 7)), "go", 1),
    ("textvqa_val", vqa(("stop", 3), ("go", 7)), "stop", 0.9),  # (3 · 2/3 + 7 · 1) / 10
    ("vizwiz_vqa_val", vqa(("red", 1), ("unanswerable", 9)), "red", 0.3),  # (0 + 9 · 1/3) / 10
    ("mme", {"question_id": "ocr/1.png", "category": "OCR", "answer": "No"}, "no, it is", 1),
]


@pytest.mark.parametrize(("task", "doc", "answer", "expected"), SCALARS)
def test_items_hold_the_scalar_where_the_profile_says(native, task, doc, answer, expected):
    options = profiles.of(task)
    item = native(task)["process_results"](doc, [answer])[options.metric]
    scalar = item if isinstance(item, (int, float)) else item[options.score or "score"]
    assert scalar == pytest.approx(expected)


def test_mmmu_items_have_no_score_but_can_be_aggregated_alone(native):
    config = native("mmmu_val")
    doc = {"id": "validation_Accounting_1", "question_type": "multiple-choice", "options": "['1', '2']", "answer": "B"}
    item = config["process_results"](doc, ["B"])["mmmu_acc"]
    assert "score" not in item
    assert aggregation(config, "mmmu_acc")([item]) == 1
    assert aggregation(config, "mmmu_acc")([config["process_results"](doc, ["A"])["mmmu_acc"]]) == 0


def test_mmstar_average_is_a_mean_of_means(native):
    """Two right answers of one kind and one wrong of another: 1/2, not 2/3."""
    config = native("mmstar")
    docs = [
        ({"index": i, "category": "math", "l2_category": kind, "answer": "A"}, answer)
        for i, (kind, answer) in enumerate(["xA", "xA", "yB"])
    ]
    items = [config["process_results"](doc, [answer]) for doc, answer in docs]
    assert set(items[0]) == {"math", "average"}
    assert aggregation(config, "average")([item["average"] for item in items]) == 0.5


def test_mme_sums_categories_and_wants_pairs(native):
    """OCR: one pair, both right: 100 + 100. Count: one pair, one right: 50 + 0. Sum 250.

    Code reasoning is cognition.
    """
    config = native("mme")

    def item(category, place, gold, answer):
        return config["process_results"]({"question_id": place, "category": category, "answer": gold}, [answer])

    items = [
        item("OCR", "1", "Yes", "Yes"),
        item("OCR", "1", "No", "No"),
        item("count", "1", "Yes", "Yes"),
        item("count", "1", "No", "Yes"),
    ]
    score = aggregation(config, "mme_perception_score")
    assert score([i["mme_perception_score"] for i in items]) == 250
    assert set(item("code_reasoning", "1", "Yes", "Yes")) == {"mme_cognition_score"}
    with pytest.raises(AssertionError, match="pairwise"):
        score([items[0]["mme_perception_score"]])


def test_pope_recall_does_not_count_an_unclear_answer_as_a_miss(native):
    config = native("pope")
    items = [config["process_results"]({"question_id": "1", "answer": "yes"}, [answer]) for answer in ("yes", "maybe")]
    assert aggregation(config, "pope_recall")([item["pope_recall"] for item in items]) == 1
    assert {"prediction", "ground_truth", "score"} <= set(items[0]["pope_f1_score"])
    assert aggregation(config, "pope_yes_ratio")([item["pope_yes_ratio"] for item in items]) == 1


def test_chartqa_splits_are_metrics_of_some_docs(native):
    scorer = native("chartqa")["process_results"]
    assert set(scorer({"type": "human_test", "answer": "1"}, ["1"])) == {"relaxed_overall", "relaxed_human_split"}
    assert set(scorer({"type": "augmented_test", "answer": "1"}, ["1"])) == {
        "relaxed_overall",
        "relaxed_augmented_split",
    }


def test_golds_that_the_profiles_take_from_a_field(native):
    """``doc_to_target`` names a field ``answer`` that these docs do not have."""
    for task in ("textvqa_val", "vizwiz_vqa_val"):
        assert native(task)["doc_to_target"] == "answer"
        assert profiles.of(task).gold == "answers"
    assert native("ai2d")["doc_to_target"]({"options": ["x", "y"], "answer": "1"}, "mcq") == "B"
    assert native("scienceqa_img")["doc_to_target"]({"choices": ["x", "y"], "answer": 1}) == "B"


def test_hallusion_bench_items_have_no_verdict_before_the_judge(native):
    config = native("hallusion_bench_image")
    doc = {"question": "Is it?", "gt_answer": "1", "gt_answer_details": "It is.", "category": "VD", "image": None}
    item = config["process_results"](doc, ["Yes"])["aAcc"]
    assert item == {
        "question": "Is it?",
        "gt_answer": "1",
        "gt_answer_details": "It is.",
        "category": "VD",
        "model_prediction": "Yes",
    }


def test_coco_items_hold_references_and_caption(native):
    pytest.importorskip("pycocoevalcap")
    doc = {"question_id": "COCO_val2017_000000000139.jpg", "id": 0, "answer": ["a room", "a living room"]}
    item = native("coco2017_cap_val")["process_results"](doc, ["a room"])["coco_CIDEr"]
    assert item["answer"] == ["a room", "a living room"]
    assert item["pred"] == "a room"
