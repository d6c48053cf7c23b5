"""The AMBER task on a stand-in folder in the authors' layout, through the host's own loader."""

import json

import pytest
from PIL import Image

from lmms_patch.errors import PatchError
from lmms_patch.harness.names import catalog
from tests.harness.toys import Model, metrics, run

# id, image, question, annotated type, truth, what the model says
QUESTIONS = [
    (1005, "AMBER_1.jpg", "Is the sky sunny in this image?", "discriminative-attribute-state", "yes", "Yes"),
    (1006, "AMBER_1.jpg", "Is the sky gloomy in this image?", "discriminative-attribute-state", "no", "No."),
    (1007, "AMBER_1.jpg", "Are there three people in this image?", "discriminative-attribute-number", "yes", "no"),
    (1008, "AMBER_2.jpg", "Does the man sit in this image?", "discriminative-attribute-action", "no", "Yes, he sits."),
    (
        8633,
        "AMBER_1.jpg",
        "Is there a cloud in this image?",
        "discriminative-hallucination",
        "no",
        "There is no cloud.",
    ),
    (8634, "AMBER_2.jpg", "Is there a sun in this image?", "discriminative-hallucination", "no", "I cannot tell"),
    (
        13557,
        "AMBER_1.jpg",
        "Is there direct contact between the person and grass?",
        "discriminative-relation",
        "yes",
        "Yes",
    ),
    (13558, "AMBER_2.jpg", "Is there direct contact between the man and lake?", "relation", "no", "No"),
]
COLOURS = {"AMBER_1.jpg": (200, 0, 0), "AMBER_2.jpg": (0, 0, 200)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Annotations in another order than the questions, and with generative ones between: joined by id, not by place."""
    (tmp_path / "data/query").mkdir(parents=True)
    (tmp_path / "image").mkdir()
    queries = [{"id": i, "image": image, "query": question} for i, image, question, *_ in QUESTIONS]
    (tmp_path / "data/query/query_discriminative.json").write_text(json.dumps(queries))
    annotations = [{"id": i, "type": kind, "truth": truth} for i, _, _, kind, truth, _ in reversed(QUESTIONS)]
    generative = {"id": 1, "type": "generative", "truth": ["sky"], "hallu": ["cloud"]}
    (tmp_path / "data/annotations.json").write_text(json.dumps([generative, *annotations]))
    for name, colour in COLOURS.items():
        Image.new("RGB", (40, 30), colour).save(tmp_path / "image" / name, quality=95)
    monkeypatch.setenv("AMBER_DIR", str(tmp_path))
    monkeypatch.delenv("AMBER_HUB", raising=False)
    return tmp_path


@pytest.fixture
def model():
    answers = {question: answer for _, _, question, _, _, answer in QUESTIONS}
    return Model(lambda prompt, images: answers[prompt.split("\n")[0]])


def test_scores_by_hand(folder, model):
    """All eight answers read: yes no no yes no unclear yes no; truths: yes no yes no no no yes no.

    Right: the 1st, 2nd, 5th, 7th and 8th, so 5/8. Answered "no": four (2nd, 3rd, 5th, 8th), of which three rightly:
    precision 3/4. Truth "no": five (2nd, 4th, 5th, 6th, 8th), three found: recall 3/5. F1 = 2 · 3/4 · 3/5 / (3/4 + 3/5)
    = 2/3. Unclear: one of eight.
    """
    found = metrics(run(model, "amber_discriminative"), "amber_discriminative")
    assert found == pytest.approx(
        {
            "amber_accuracy": 5 / 8,
            "amber_precision": 3 / 4,
            "amber_recall": 3 / 5,
            "amber_f1": 2 / 3,
            "amber_unclear": 1 / 8,
        }
    )


def test_dimensions_and_group_by_hand(folder, model):
    """Existence: one of two found, so accuracy and recall 1/2, precision 1.

    Attribute: two of four right; "no" said twice, once rightly;.
    truth "no" twice, found once. Relation: both right. The group's accuracy is that of all eight: (2 · 1/2 + 4 · 1/2 + 2 · 1) / 8 = 5/8."""
    results = run(model, "amber")
    existence, attribute, relation = (
        metrics(results, f"amber_{name}") for name in ("existence", "attribute", "relation")
    )
    assert [existence[f"amber_{m}"] for m in ("accuracy", "precision", "recall")] == [0.5, 1, 0.5]
    assert existence["amber_f1"] == pytest.approx(2 / 3)
    assert [attribute[f"amber_{m}"] for m in ("accuracy", "precision", "recall", "f1")] == [0.5, 0.5, 0.5, 0.5]
    assert [relation[f"amber_{m}"] for m in ("accuracy", "precision", "recall", "f1")] == [1, 1, 1, 1]
    assert results["groups"]["amber"]["amber_accuracy,none"] == pytest.approx(5 / 8)


def test_prompt_image_and_docs(folder, model):
    results = run(model, "amber_discriminative")
    _, _, images, prompt = model.seen[3]
    assert prompt == "Does the man sit in this image?\nPlease answer yes or no."
    assert len(images) == 1
    assert images[0].mode == "RGB"
    assert images[0].size == (40, 30)
    assert max(abs(a - b) for a, b in zip(images[0].getpixel((5, 5)), COLOURS["AMBER_2.jpg"], strict=True)) < 12
    sample = results["samples"]["amber_discriminative"][3]
    assert sample["target"] == "no"
    item = sample["amber_f1"]
    assert item == {
        "question_id": 1008,
        "dimension": "attribute-action",
        "prediction": "yes",
        "ground_truth": "no",
        "score": 0.0,
    }


def test_the_type_that_tells_the_answer_is_not_in_the_docs(folder, model):
    """The authors call a relation question "relation" where the truth is "no", and "discriminative-relation" where it is "yes"."""
    items = [sample["amber_accuracy"] for sample in run(model, "amber_relation")["samples"]["amber_relation"]]
    assert {item["ground_truth"] for item in items} == {"yes", "no"}
    assert {item["dimension"] for item in items} == {"relation"}


def test_wrapped(folder, model):
    """The model never looks at the image, so every cell says the same: MPP is FIP.

    It always says the same, too: near chance, no index.
    """
    found = metrics(run(model, "amber_discriminative_rci2"), "amber_discriminative_rci2")
    assert found["amber_accuracy"] == found["amber_accuracy_mpp2"] == 5 / 8
    assert found["amber_f1_mpp2"] == pytest.approx(2 / 3)
    assert found["gate"] == 0
    assert found["gap2"] is None
    assert len(model.seen) == 8 * (5 + 1)  # all eight docs are also asked on a wrong image


@pytest.fixture(scope="module")
def utils():
    import lmms_eval.utils as host

    manager = catalog.task_manager()
    config = host.load_yaml_config(manager.task_index["amber_discriminative"]["yaml_path"])
    return config["process_results"].__globals__


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("Yes", "yes"),
        ("no.", "no"),
        (" YES, it is", "yes"),
        ("No, yes was wrong", "no"),
        ("There is no dog", "no"),
        ("I know nothing", "unclear"),
        ("It could be yes or no", "unclear"),
        ("", "unclear"),
    ],
)
def test_reading_answers(utils, answer, read):
    assert utils["said"](answer) == read


def test_shares_of_nothing_are_zero(utils):
    items = [{"prediction": "yes", "ground_truth": "yes", "score": 1.0}]
    assert [utils[name](items) for name in ("accuracy", "precision", "recall", "f1")] == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda folder, env: env.delenv("AMBER_DIR"), "set AMBER_DIR"),
        (lambda folder, env: env.setenv("AMBER_DIR", str(folder / "nothing")), "cannot be read"),
        (lambda folder, env: (folder / "image/AMBER_2.jpg").unlink(), "1 images are missing"),
        (
            lambda folder, env: (folder / "data/annotations.json").write_text('[{"id": 1, "type": "generative"}]'),
            "question 1005",
        ),
    ],
)
def test_what_is_missing_is_said_in_one_line(folder, utils, monkeypatch, spoil, says):
    spoil(folder, monkeypatch)
    with pytest.raises(PatchError, match=says) as error:
        utils["discriminative"](None)
    assert "\n" not in str(error.value)


def test_no_name_of_the_host_is_hidden():
    """A built-in name would win over ours."""
    index = catalog.task_manager().task_index
    for name in ("amber", "amber_existence", "amber_attribute", "amber_relation", "amber_discriminative"):
        assert "/amber/" in index[name]["yaml_path"]
        assert "site-packages" not in index[name]["yaml_path"] or "lmms_patch" in index[name]["yaml_path"]
    assert "amber_g" in index


def test_a_dataset_of_the_hub_is_used_where_no_folder_is_named(folder, utils, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda *args, **kwargs: asked.append((args, kwargs)) or str(folder)
    )
    monkeypatch.setenv("AMBER_HUB", "someone/amber")
    assert len(utils["existence"](None)) == 2
    assert asked == []
    monkeypatch.delenv("AMBER_DIR")
    assert len(utils["relation"](None)) == 2
    assert asked == [(("someone/amber",), {"repo_type": "dataset"})]
