"""Our judge-free HallusionBench, from its own file through the host's loader, on a stand-in dataset."""

import datasets
import pytest
from PIL import Image

from tests.harness.toys import Model, metrics, run

# category, subcategory, set, figure, question, gold, answer
DOCS = [
    ("VD", "illusion", "0", "0", "0", "1", "Yes."),
    ("VD", "illusion", "0", "1", "0", "0", "Yes"),
    ("VD", "illusion", "0", "1", "1", "0", "No, it is not"),
    ("VS", "chart", "0", "1", "0", "0", "There is no such bar"),
    ("VS", "chart", "1", "1", "0", "1", "I cannot tell"),
]


@pytest.fixture
def ask(monkeypatch):
    """Run a task name on the stand-in."""
    columns = ("category", "subcategory", "set_id", "figure_id", "question_id", "gt_answer")
    rows = [
        dict(zip(columns, doc[:6], strict=True), question=f"question {i}?", image=Image.new("RGB", (30, 20)))
        for i, doc in enumerate(DOCS)
    ]
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "question": datasets.Value("string"),
            **{c: datasets.Value("string") for c in columns},
        }
    )
    stand_in = datasets.DatasetDict({"image": datasets.Dataset.from_list(rows, features=features)})
    asked = []
    monkeypatch.setattr("datasets.load_dataset", lambda **kwargs: asked.append(kwargs["path"]) or stand_in)
    answers = {f"question {i}?\nPlease answer yes or no.": doc[6] for i, doc in enumerate(DOCS)}
    yield lambda name: run(Model(lambda prompt, images: answers[prompt]), name)
    assert asked == ["lmms-lab-encoder/HallusionBench"]


def test_scores_by_hand(ask):
    """Golds yes no no no yes; read yes yes no no unclear: right are the 1st, 3rd and 4th, so aAcc 3/5.

    Questions (joined over figures): illusion 0 has docs 1 and 2, one wrong; illusion 1, doc 3, right; chart set 0,
    right; chart set 1, wrong. So qAcc 2/4. Figures: illusion 0 right; illusion 1 has docs 2 and 3, one wrong; chart set
    0 right; chart set 1 wrong. So fAcc 2/4.
    """
    results = ask("hallusion_bench_yesno")
    found = metrics(results, "hallusion_bench_yesno")
    assert found == pytest.approx({"aAcc": 3 / 5, "qAcc": 2 / 4, "fAcc": 2 / 4, "unclear": 1 / 5})
    assert [sample["target"] for sample in results["samples"]["hallusion_bench_yesno"]] == [
        "yes",
        "no",
        "no",
        "no",
        "yes",
    ]


def test_wrapped_it_needs_no_judge(ask):
    """The model does not look, so each cell gives the same answer and MPP equals FIP in all three accuracies."""
    found = metrics(ask("hallusion_bench_yesno_rci2"), "hallusion_bench_yesno_rci2")
    assert [found[f"{name}_mpp2"] for name in ("aAcc", "qAcc", "fAcc")] == pytest.approx([3 / 5, 2 / 4, 2 / 4])
    assert found["gate"] == 0  # nor does it beat a constant answer: no index
    assert found["gap2"] is None
