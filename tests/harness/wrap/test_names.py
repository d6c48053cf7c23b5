"""Which option each view's answer names, in the records of whole runs: by what the model was told to say."""

from tests.harness.toys import Model, rows, run, write_task

OPTIONS = "\nA. a cat\nB. a dog\nC. a car"


def names_of(result, task):
    """Of each doc the names of its five views, and of the five of its wrong image: the views asked for the first time."""
    docs = [sample["patch"] for sample in result["samples"][task]]
    return (
        [[view.get("names") for view in doc["views"][:5]] for doc in docs],
        [[view.get("names") for view in doc.get("wrong_image", {"views": []})["views"][:5]] for doc in docs],
        [doc["answer"] for doc in docs],
    )


def place(images):
    """0 for the full image, else the number of the cell of a 2x2 grid, from the colours of a coded image."""
    if images[0].size == (60, 60):
        return 0
    red, green, _ = images[0].getpixel((0, 0))
    return 1 + (2 if red % 100 >= 30 else 0) + (1 if green >= 30 else 0)


SAID = ["A", "B", "C", "I cannot tell", "A"]
AGAIN = {"version": 0.0, "lmms_patch": {"null": 1000, "steady": 1000}}
DOCS = 30
"""As many as are asked again: only these see cells of a wrong image."""


def test_letters(tmp_path):
    data = rows(DOCS, question=lambda i: f"What is it ({i})?{OPTIONS}", answer=lambda i: "ABC"[i % 3])
    write_task(tmp_path, "toy", data, metadata=AGAIN)
    result = run(Model(lambda prompt, images: SAID[place(images)]), "toy_rci2", tmp_path)
    own, wrong, answers = names_of(result, "toy_rci2")
    assert own == [[1, 2, 3, 0, 1]] * DOCS
    assert wrong == own
    assert [(one["options"], one["gold_at"]) for one in answers] == [(3, 1 + i % 3) for i in range(DOCS)]


def test_log_likelihoods(tmp_path):
    """Losses of three choices: the full image prefers the last, cell k (from 1) the choice k modulo 3."""
    data = rows(DOCS, answer=lambda i: i % 3)
    task = {"output_type": "multiple_choice", "generation_kwargs": None, "doc_to_choice": ["zero", "one", "two"]}
    metrics = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
    write_task(tmp_path, "toy", data, metric_list=metrics, metadata=AGAIN, **task)

    def loss(prompt, images):
        at = place(images)
        return 0.0 if prompt.endswith(["zero", "one", "two"][at % 3 if at else 2]) else 1.0

    own, wrong, answers = names_of(run(Model(loss), "toy_rci2", tmp_path), "toy_rci2")
    assert own == wrong == [[3, 2, 3, 1, 2]] * DOCS
    assert [(one["options"], one["gold_at"]) for one in answers] == [(3, 1 + i % 3) for i in range(DOCS)]


SCORER = """
def score(doc, results):
    said = results[0].strip().lower()
    return {"acc": float(doc["answer"].lower() in said.split())}
"""


def test_the_scorer_decides_what_is_the_gold(tmp_path):
    """A scorer that looks for the gold as a word: what has full marks names it, whatever the text looks like.

    What has none does not.
    """
    (tmp_path / "utils.py").write_text(SCORER)
    data = rows(6, question=lambda i: f"Is it a cat ({i})?", answer=lambda i: "Yes" if i % 2 else "No")
    told = ["Yes", "no", "yes or no", "I cannot tell", "No, I am sure."]
    metrics = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
    metadata = {"version": 0.0, "lmms_patch": {"null": 0}}
    write_task(tmp_path, "toy", data, process_results="!function utils.score", metric_list=metrics, metadata=metadata)
    result = run(Model(lambda prompt, images: told[place(images)]), "toy_rci2", tmp_path)
    own, _, answers = names_of(result, "toy_rci2")
    assert own[1] == [1, 2, 1, 0, 2], "gold yes: the scorer takes 'yes or no' as right"
    assert own[0] == [1, 2, 2, 0, 0], "gold no: 'No,' is no word of its own to the scorer, so it is not the gold"
    assert {one["options"] for one in answers} == {2}
