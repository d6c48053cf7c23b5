"""Docs on another doc's image, through the real evaluator, in-process: what is shown, what is asked, what is recorded, what it shows."""

import hashlib

import numpy as np
import pytest
from lmms_eval.tasks import TaskManager
from loguru import logger
from PIL import Image

from lmms_patch.ask.views import cell_box
from tests.harness.toys import ChatModel, Model, metrics, run, write_task
from tests.sizes import size

ASKED = {"version": 0.0}
"""Toy tasks turn the null off; these leave it on."""


@pytest.fixture
def told():
    """Everything that is logged."""
    lines = []
    sink = logger.add(lines.append, level="INFO", format="{message}")
    yield lines
    logger.remove(sink)


def noise(seed):
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (48, 60, 3), dtype=np.uint8))


def pictures(count, **columns):
    every = {"image": noise, "question": lambda i: f"question {i % 3}?", "answer": str, **columns}
    return [{name: make(i) for name, make in every.items()} for i in range(count)]


def of(image):
    return hashlib.sha256(image.tobytes()).hexdigest()


def whose(data, image, n=0):
    """(doc, row, column) of the doc whose image this is, or a cell of; None where it is nobody's."""
    for doc, row in enumerate(data):
        whole = row["image"]
        for r, c in [(r, c) for r in range(n) for c in range(n)] or [(0, 0)]:
            if of(whole.crop(cell_box(whole.size, n, r, c)) if n else whole) == of(image):
                return doc, r, c
    return None


# --- what is shown ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Model, ChatModel])
def test_each_doc_is_asked_on_the_whole_of_one_other_image(tmp_path, kind):
    """12 docs, 5 views, all also on a wrong image, which costs one request. The prompt is the doc's own."""
    data = pictures(12, question=lambda i: f"question {i}?")
    write_task(tmp_path, "toy", data, metadata=ASKED)
    model = kind()
    result = run(model, "toy_rci2", tmp_path, limit=8)
    assert len(model.seen) == 8 * (5 + 1)
    by_prompt = {}
    for _, _, images, prompt in model.seen:
        by_prompt.setdefault(prompt, []).append(images[0])
    for sample in result["samples"]["toy_rci2"]:
        doc, record = sample["doc_id"], sample["patch"]
        shown = by_prompt[f"question {doc}?"]
        assert whose(data, shown[0]) == (doc, 0, 0)
        assert [whose(data, image, 2) for image in shown[1:5]] == [(doc, r, c) for r in (0, 1) for c in (0, 1)]
        donor = record["wrong_image"]["from"]
        assert donor != doc
        assert [whose(data, image) for image in shown[5:]] == [(donor, 0, 0)]
        assert [view["kind"] for view in record["views"]] == ["full"] + ["cell"] * 4, "the doc's own views stand alone"
        assert [(view["kind"], view["swapped"]) for view in record["wrong_image"]["views"]] == [("full", True)]
    assert any(sample["patch"]["wrong_image"]["from"] >= 8 for sample in result["samples"]["toy_rci2"]), (
        "a donor need not be evaluated"
    )


def test_a_wrong_image_costs_one_request_where_too_few_docs_are_asked_again(tmp_path):
    """Of 60 docs, 8 are asked on a wrong image, and asking 8 again would say nothing: 60 x 5 views and 8 requests more."""
    data = pictures(60, question=lambda i: f"question {i}?")
    write_task(tmp_path, "toy", data, metadata={**ASKED, "lmms_patch": {"null": 8, "steady": 300}})
    model = Model()
    result = run(model, "toy_rci2", tmp_path)
    assert len(model.seen) == 60 * 5 + 8
    wrong = [s["patch"]["wrong_image"] for s in result["samples"]["toy_rci2"] if s["patch"].get("wrong_image")]
    assert [len(one["views"]) for one in wrong] == [1] * 8


def test_docs_asked_again_alone_see_the_cells_of_the_wrong_image(tmp_path):
    """Of 40 docs with a wrong image, 30 are asked again.

    A model that always says one thing is asked each of their 5 + 5 views four times, on further wrong images three
    times, and on a grey image four times.
    """
    data = pictures(40, question=lambda i: f"question {i}?")
    write_task(tmp_path, "toy", data, metadata={**ASKED, "lmms_patch": {"null": 40, "steady": 30}})
    model = Model()
    result = run(model, "toy_rci2", tmp_path)
    assert len(model.seen) == 30 * (4 * (5 + 5) + 3 + 4) + 10 * (5 + 1)
    by_prompt = {}
    for _, _, images, prompt in model.seen:
        by_prompt.setdefault(prompt, []).append(images[0])
    cells = [(r, c) for r in (0, 1) for c in (0, 1)]
    seen = []
    for sample in result["samples"]["toy_rci2"]:
        doc, donor = sample["doc_id"], sample["patch"]["wrong_image"]["from"]
        shown = by_prompt[f"question {doc}?"]
        # untrimmed: what is asked for the first time
        whole = [found[0] for image in shown if (found := whose(data, image))]
        parts = [found for image in shown if (found := whose(data, image, 2))]
        assert sorted(whole) == sorted([doc, donor])
        assert sorted(one for one in parts if one[0] == doc) == [(doc, r, c) for r, c in cells]
        seen.append([one for one in parts if one[0] != doc])
        assert seen[-1] in ([], [(donor, r, c) for r, c in cells])
        assert len(shown) == (47 if seen[-1] else 6)
    assert sum(map(bool, seen)) == 30


def test_the_wrong_image_of_a_doc_is_the_same_in_any_order_and_limit(tmp_path):
    """Reversed docs, fewer docs, fewer asked: by question, the donor's question stays the same."""
    data = pictures(20, question=lambda i: f"question {i}?")

    def donors(name, found, **more):
        null = more.pop("null", 300)
        write_task(tmp_path, name, found, metadata={**ASKED, "lmms_patch": {"null": null}})
        samples = run(Model(), f"{name}_rci2", tmp_path, **more)["samples"][f"{name}_rci2"]
        records = [(found[s["doc_id"]]["question"], s["patch"].get("wrong_image")) for s in samples]
        return {question: found[wrong["from"]]["question"] for question, wrong in records if wrong}

    every = donors("all", data)
    assert len(every) == 20
    assert donors("reversed", data[::-1]) == every
    some = donors("limited", data, limit=7)
    assert some == {question: every[question] for question in list(every)[:7]}
    few = donors("few", data, null=6)
    assert len(few) == 6
    assert few.items() <= every.items()


def test_never_the_same_image_cluster_or_number_of_images(tmp_path):
    """Docs 0 to 5 show one picture, 6 to 8 are of one scene, 9 to 11 of another, 12 shows nothing that can be cut."""
    data = pictures(13, scene=lambda i: "one" if 6 <= i < 9 else "two" if 9 <= i < 12 else f"own {i}")
    for row in data[:6]:
        row["image"] = noise(99)
    (tmp_path / "utils.py").write_text(
        "def shown(doc):\n    return [] if doc['scene'] == 'own 12' else [doc['image']]\n"
    )
    write_task(
        tmp_path,
        "toy",
        data,
        doc_to_visual="!function utils.shown",
        metadata={**ASKED, "lmms_patch": {"cluster": "scene"}},
    )
    for sample in run(Model(), "toy_rci2", tmp_path)["samples"]["toy_rci2"]:
        doc, wrong = sample["doc_id"], sample["patch"].get("wrong_image")
        if doc == 12:
            assert wrong is None
            continue
        donor = wrong["from"]
        assert donor != 12
        assert data[doc]["image"].tobytes() != data[donor]["image"].tobytes()
        assert data[doc]["scene"] != data[donor]["scene"]


# --- swap as a task
# ----------------------------------------------------------------------------------------------------


def test_swap_asks_once_or_cell_by_cell(tmp_path):
    data = pictures(6)
    write_task(tmp_path, "toy", data, metadata=ASKED)
    model = Model()
    result = run(model, "toy_swap,toy_swap2", tmp_path)
    assert len(model.seen) == 6 + 6 * 5
    assert set(metrics(result, "toy_swap")) == {"patch", "exact_match", "chance", "n_docs"}
    assert set(metrics(result, "toy_swap2")) == {"patch", "exact_match", "exact_match_mpp2", "chance", "n_docs"}
    one, two = ([s["patch"] for s in result["samples"][name]] for name in ("toy_swap", "toy_swap2"))
    assert [p["wrong_image"]["from"] for p in one] == [p["wrong_image"]["from"] for p in two], (
        "the same wrong image as in any other way of asking"
    )
    assert all(view["swapped"] for p in (*one, *two) for view in p["views"])


def test_a_doc_without_a_wrong_image_is_counted_and_in_no_number_of_swap(tmp_path):
    """Doc 3 alone shows two pictures. What it is answered on its own is no answer on a wrong image."""
    data = pictures(12, answer=lambda i: "x" if i == 3 else "y")
    (tmp_path / "utils.py").write_text(
        "def shown(doc):\n    return [doc['image']] * (2 if doc['answer'] == 'x' else 1)\n"
    )
    write_task(tmp_path, "toy", data, doc_to_visual="!function utils.shown", metadata=ASKED)
    result = run(Model(), "toy_swap2", tmp_path)
    record = result["samples"]["toy_swap2"][3]["patch"]
    assert "wrong_image" not in record
    assert all("no other doc" in view["failed"] and not view["scores"] for view in record["views"])
    details = metrics(result, "toy_swap2")["patch"]
    assert (details["n_failed"], details["analysis"]["fip"]["value"]) == (1, 0.0), (
        "the model says x, which is right of doc 3 alone"
    )


# --- the option ----------------------------------------------------------------------------------------------------


def test_null_0_asks_nothing_more_and_a_larger_null_keeps_the_key_of_the_cache(tmp_path, told):
    data = pictures(9)
    for name, null in (("none", 0), ("some", 4), ("more", 300)):
        write_task(tmp_path / name, "toy", data, metadata={**ASKED, "lmms_patch": {"null": null}})
    seen, keys = {}, {}
    for name in ("none", "some", "more"):
        model = Model()
        run(model, "toy_rci2", tmp_path / name)
        seen[name] = len(model.seen)
        manager = TaskManager(verbosity="ERROR", include_path=str(tmp_path / name), model_name="toy")
        keys[name] = dict(manager.load_task_or_group(["toy_rci2"], "simple")["toy_rci2"].dump_config()["lmms_patch"])
    assert seen == {"none": 45, "some": 45 + 4, "more": 45 + 9}
    assert keys["some"] == keys["more"], "a larger null must find the answers of a smaller one"
    assert "null" not in keys["some"]["options"]
    assert keys["none"] != keys["some"]
    assert any("4 of 9 docs are also asked on another doc's image" in line for line in told)


# --- what it shows --------------------------------------------------------------------------------------------------


def test_a_model_that_never_looks_is_refused(tmp_path, told):
    """It answers from the question alone, right in 60 %: gate 0 with the reason, index and everything made of it null."""
    data = pictures(200, question=lambda i: f"question {i}?", answer=lambda i: "yes" if i % 2 else "no")
    write_task(tmp_path, "toy", data, metadata=ASKED)

    def by_text(prompt, images):
        i = int(prompt.split()[1].rstrip("?"))
        right = "yes" if i % 2 else "no"
        return right if i % 10 < 6 else {"yes": "no", "no": "yes"}[right]

    result = run(Model(by_text), "toy_rci2", tmp_path)
    found = metrics(result, "toy_rci2")
    assert found["exact_match"] == pytest.approx(0.6)
    assert (found["gate"], found["rci2"], found["rci2_steady"], found["gap2"]) == (0, None, None, None)
    details = found["patch"]
    assert (details["n_null"], details["fip0"]) == (200, pytest.approx(0.6))
    judged = details["analysis"]["gate"]
    assert judged["reason"] == "the answers do not depend on the image (full image 0.6, a wrong image 0.6, 200 docs)"
    assert judged["looks"][0]["value"] is False
    assert any("rci2 is null: the answers do not depend on the image" in line for line in told)


def test_scorers_that_guess_get_another_stream_on_a_wrong_image(tmp_path):
    """Else a random answer would be the same on both images, and look like a text prior.

    As many docs as are asked again, so that cells of the wrong image are scored too.
    """
    (tmp_path / "utils.py").write_text(
        "import random\ndef guess(doc, results):\n    return {'acc': float(random.random() < 0.5)}\n"
    )
    metric = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
    write_task(
        tmp_path,
        "toy",
        pictures(size(30, 60)),
        metadata=ASKED,
        process_results="!function utils.guess",
        metric_list=metric,
    )
    records = [s["patch"] for s in run(Model(), "toy_rci2", tmp_path)["samples"]["toy_rci2"]]
    own = [[view["scores"]["acc"] for view in record["views"][:5]] for record in records]
    wrong = [[view["scores"]["acc"] for view in record["wrong_image"]["views"][:5]] for record in records]
    same = np.array(own) == np.array(wrong)
    assert 0.3 < np.mean(same[:, 1:]) < 0.7, "the cells"
    assert 0.1 < np.mean(same[:, 0]) < 0.9, "the whole images"
