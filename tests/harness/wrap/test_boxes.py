"""``<base>_regions``: each doc's own boxes as views, through the real evaluator, in-process."""

import itertools

import datasets
import numpy as np
import pytest
from lmms_eval.tasks import TaskManager
from PIL import Image

from lmms_patch.errors import OptionError
from tests.harness import toys
from tests.harness.adapters import ADAPTERS, PATTERNS, SIZES, Likelihood, first_of_all, picture
from tests.harness.adapters import _say as say
from tests.harness.toys import Model, metrics, rows, run, write_task
from tests.sizes import each

UTILS = '''
def messages(doc):
    return [{"role": "user", "content": [
        {"type": "image", "url": doc["image"]}, {"type": "text", "text": doc["question"]}, {"type": "image", "url": doc["second"]}]}]

def both(doc):
    return [doc["image"], doc["second"]]

def smaller(doc):
    return [doc["image"].resize((30, 30))]

def empty(doc):
    return []

def flaky(doc, results):
    if results[0] == "?":
        raise ValueError("no answer")
    return {"acc": float(results[0] == doc["answer"])}

class Paired:
    """Pairs answers and docs by position."""
    def __init__(self, **kwargs):
        pass
    def apply(self, resps, docs):
        docs = list(docs)
        assert len(resps) == len(docs), (len(resps), len(docs))
        return [doc["answer"] if resp[0] == "copy the doc" else resp[0] for resp, doc in zip(resps, docs)]
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "utils.py").write_text(UTILS)
    return tmp_path


# --- each request gets its own box ----------------------------------------------------------------

BOXES = {
    0: [(2, 3, 30, 20), (40, 10, 61, 47)],
    1: [],
    2: [(0, 0, 9, 83), (10, 10, 50, 40), (7, 50, 8, 51)],
    3: [(5, 6, 20, 64)],
}
"""Boxes of each doc of ``test_adapters.SIZES``: of 4, 1, 3 and 2 views."""
RELEVANT = {0: [True, False], 1: [], 2: [False, False, True], 3: [False]}


def wanted(code, doc, second=False):
    """What ``test_adapters.read`` must say for each view of a doc: the full image, then each box.

    A second image is always whole.
    """
    whole = (0, 0, *SIZES[doc])
    return [
        " ".join([say(code, doc, *box), *([say(code + 5, doc, *whole)] if second else [])])
        for box in ([whole, *BOXES[doc]])
    ]


@pytest.fixture(scope="module")
def manager(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "utils.py").write_text(UTILS)
    image, text = datasets.Image(), datasets.Value("string")
    columns = {"image": image, "second": image, "question": text, "answer": text,
               "boxes": datasets.List(datasets.List(datasets.Value("int32"))), "relevant": datasets.List(datasets.Value("bool"))}  # fmt: skip
    for name, code in (("a", 0), ("b", 1)):
        data = [
            {"image": picture(code, doc), "second": picture(code + 5, doc), "question": "what" + "?" * (doc % 3), "answer": wanted(code, doc)[-1],
             "boxes": BOXES[doc], "relevant": RELEVANT[doc]}
            for doc in range(4)
        ]  # fmt: skip
        other = {"doc_to_messages": "!function utils.messages"} if name == "b" else {}
        toys.write_task(folder, name, data, columns, **other)
    return TaskManager("ERROR", include_path=str(folder), include_defaults=False)


@pytest.mark.parametrize(
    ("protocol", "fetch"), each(["simple", "chat"], PATTERNS), ids=lambda value: getattr(value, "__name__", None)
)
def test_every_request_gets_its_own_box(protocol, fetch, manager):
    """Also where a batch holds docs with other numbers of boxes, of two tasks, and another kind of views beside them."""
    model = ADAPTERS[protocol](fetch, False, 3)
    asked = ["a_regions", "b_regions", "a_rci2"]
    samples = toys.simple_evaluate(model=model, tasks=asked, task_manager=manager, log_samples=True, bootstrap_iters=0)[
        "samples"
    ]
    for name, code in (("a", 0), ("b", 1)):
        second = name == "b" and protocol == "chat"
        for sample in samples[f"{name}_regions"]:
            doc = sample["doc_id"]
            assert [resps[0] for resps in sample["resps"]] == wanted(code, doc, second)
            views = sample["patch"]["views"]
            assert [view["kind"] for view in views] == ["full"] + ["region"] * len(BOXES[doc])
            assert [view["boxes"] for view in views[1:]] == [[list(box)] for box in BOXES[doc]]
            assert [(view["region"], view["relevant"]) for view in views[1:]] == list(enumerate(RELEVANT[doc], 1))
            if not second:  # the answer is what the last view shows
                last = len(BOXES[doc])
                assert [view["scores"]["exact_match"] for view in views] == [0.0] * last + [1.0]
    assert len(samples["a_rci2"][0]["resps"]) == 5


def test_an_id_between_the_views_of_two_docs_is_of_none(manager):
    table = manager.load_task_or_group(["a_regions"], "simple")["a_regions"].dataset["test"]
    assert len(table) == 4 * 4
    assert [(doc.doc_id, doc.view) for doc in table] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (2, 0),
        (2, 1),
        (2, 2),
        (2, 3),
        (3, 0),
        (3, 1),
    ]
    with pytest.raises(IndexError, match="doc 0 has 3 views; there is no view 3"):
        table[3]


def test_choices_are_asked_for_each_box(tmp_path):
    data = [
        {"image": picture(0, doc), "question": "which", "choices": [wanted(0, doc)[-1], "nothing of it"], "answer": 0,
         "boxes": [list(box) for box in BOXES[doc]] or [[0, 0, 5, 5]], "relevant": RELEVANT[doc] or [True]}
        for doc in (0, 2, 3)
    ]  # fmt: skip
    accuracy = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
    toys.write_task(
        tmp_path,
        "a",
        data,
        output_type="multiple_choice",
        doc_to_choice="choices",
        generation_kwargs=None,
        metric_list=accuracy,
    )
    manager = TaskManager("ERROR", include_path=str(tmp_path), include_defaults=False)
    found = toys.simple_evaluate(
        model=Likelihood(first_of_all), tasks=["a_regions"], task_manager=manager, log_samples=True, bootstrap_iters=0
    )
    for sample, doc in zip(found["samples"]["a_regions"], (0, 2, 3), strict=True):
        losses = [resps[0][0] for resps in sample["resps"]]
        assert losses == [1.0, 1.0] * len(BOXES[doc]) + [0.0, 1.0]


# --- numbers --------------------------------------------------------------------------------------

CORNERS = [[0, 0, 20, 20], [30, 0, 50, 20], [0, 30, 20, 50], [30, 30, 60, 60], [10, 10, 40, 40]]


def boxes_of(doc):
    return CORNERS[: doc % 6]


def relevant_of(doc):
    return [(doc // 6 + place) % 2 == 0 for place in range(doc % 6)]


def looks(full, seen):
    """A model that is right on some full images, and on boxes where ``seen(doc, relevant, place)``.

    It knows the doc by its blue.
    """

    def answer(prompt, images):
        array = np.asarray(images[0])
        doc, corner = int(array[0, 0, 2]), (int(array[0, 0, 1]) // 10, int(array[0, 0, 0]) // 10)
        if images[0].size == (60, 60):
            return str(doc) if full(doc) else "no"
        place = next(i for i, (left, top, right, bottom) in enumerate(CORNERS)
                     if (left // 10, top // 10) == corner and images[0].size == (right - left, bottom - top))  # fmt: skip
        return str(doc) if seen(doc, relevant_of(doc)[place], place) else "no"

    return Model(answer)


def mean(values):
    return sum(values) / len(values) if values else None


def brute(count, full, seen):
    """The numbers from the plan alone: by set, FIP, MPP and the mean; and the three differences."""
    out, sides = {}, {}
    for name, relevant in (("relevant", True), ("adversarial", False)):
        own = {
            doc: [float(seen(doc, relevant, place)) for place, flag in enumerate(relevant_of(doc)) if flag is relevant]
            for doc in range(count)
        }
        own = sides[name] = {doc: scores for doc, scores in own.items() if scores}
        out[name] = (
            mean([float(full(doc)) for doc in own]),
            mean([max(s) for s in own.values()]),
            mean([mean(s) for s in own.values()]),
        )
    pairs = [
        (sides["relevant"][doc], sides["adversarial"][doc]) for doc in sides["relevant"] if doc in sides["adversarial"]
    ]

    def even(own, other):
        return mean([max(some) for some in itertools.combinations(own, min(len(own), len(other)))])

    out["best"] = mean([max(r) - max(a) for r, a in pairs])
    out["even"] = mean([even(r, a) - even(a, r) for r, a in pairs])
    out["mean"] = mean([mean(r) - mean(a) for r, a in pairs])
    return out, len(pairs)


SCRIPTS = {
    "right only on relevant boxes": lambda doc, relevant, place: relevant,
    "right only on adversarial boxes": lambda doc, relevant, place: not relevant,
    "right on the first box": lambda doc, relevant, place: place == 0,
    "right here and there": lambda doc, relevant, place: (7 * doc + 3 * place) % 5 < 2 + relevant,
}


def known(doc):
    return doc % 5 != 0


@pytest.mark.parametrize("seen", SCRIPTS.values(), ids=SCRIPTS)
def test_planted_scores_come_out_as_planted(folder, seen, warnings):
    write_task(folder, "toy", rows(48, boxes=boxes_of, relevant=relevant_of))
    model = looks(known, seen)
    result = run(model, "toy_regions", folder)
    found, (truth, both) = metrics(result, "toy_regions"), brute(48, known, seen)
    assert len(model.seen) == sum(1 + doc % 6 for doc in range(48))
    assert found["exact_match"] == pytest.approx(mean([float(known(doc)) for doc in range(48)]))
    regions = found["patch"]["analysis"]["regions"]
    for key in ("relevant", "adversarial"):
        fip, mpp, average = truth[key]
        assert found[f"exact_match_mpp_{key}"] == pytest.approx(mpp)
        assert found[f"rci_{key}"] == pytest.approx(1 - mpp / fip)
        assert found[f"gap_{key}"] == pytest.approx(fip - mpp)
        assert found[f"mean_{key}"] == pytest.approx(average)
        assert regions["sets"][key]["fip"] == pytest.approx(fip)
        assert found["patch"][f"rci_{key}_low"] <= found[f"rci_{key}"] <= found["patch"][f"rci_{key}_high"]
    for name in ("best", "even", "mean"):
        assert found[f"regions_{name}"] == pytest.approx(truth[name])
    assert (found["gate"], found["patch"]["n_both"]) == (1, both)
    without = {key: sum(not any(flag is relevant for flag in relevant_of(doc)) for doc in range(48)) for key, relevant in (("relevant", True), ("adversarial", False))}  # fmt: skip
    assert {key: regions["sets"][key]["excluded"] for key in without} == without
    assert regions["left_out"]["relevant"] == {"no box": 8, "no relevant box": without["relevant"] - 8}
    assert any(
        f"{without['relevant']} of 48 docs are left out of MPP and the index of relevant boxes (first: no box)" in line
        for line in warnings
    )


# --- docs that cannot be used, and options --------------------------------------------------------


def small(**columns):
    given = {"boxes": lambda i: [[0, 0, 20, 20], [30, 30, 60, 60]], "relevant": lambda i: [True, False]}
    return rows(12, **{**given, **columns})


def test_docs_with_wrong_boxes_are_left_out_and_named(folder, warnings):
    """Doc 0: a box without area, found in the row. Doc 1: one that leaves the image, found when that is seen.

    Only their full views are asked.
    """
    bad = {0: [[5, 5, 5, 9], [0, 0, 9, 9]], 1: [[0, 0, 61, 20], [0, 0, 9, 9]]}
    write_task(folder, "toy", small(boxes=lambda i: bad.get(i, [[0, 0, 20, 20], [30, 30, 60, 60]])))
    model = Model(lambda prompt, images: str(np.asarray(images[0])[0, 0, 2]))
    result = run(model, "toy_regions", folder)
    assert [doc_id for _, doc_id, _, _ in model.seen] == [0, 3, *range(6, 36)]
    assert {images[0].size for _, doc_id, images, _ in model.seen if doc_id == 3} == {(60, 60)}
    records = [sample["patch"] for sample in result["samples"]["toy_regions"]]
    assert records[0]["excluded"] == dict.fromkeys(
        ("relevant", "adversarial"), "a box without area: box 1 is [5, 5, 5, 9]"
    )
    assert records[1]["excluded"]["relevant"].startswith(
        "a box that leaves the image: box 1 is [0, 0, 61, 20], the image has 60x60"
    )
    assert records[1]["best"] == {}
    left = metrics(result, "toy_regions")["patch"]["analysis"]["regions"]["left_out"]["relevant"]
    assert left == {"a box without area": 1, "a box that leaves the image": 1}
    assert metrics(result, "toy_regions")["exact_match"] == 1.0
    assert any(
        "2 of 12 docs are left out of MPP and the index of relevant boxes (first: a box without area" in line
        for line in warnings
    )


def test_a_base_that_shows_another_size_than_the_doc_has(folder):
    """Boxes are in pixels of the doc's image: on the shown one they would lie elsewhere, some of them within it."""
    write_task(
        folder,
        "toy",
        small(boxes=lambda i: [[0, 0, 20, 20], [10, 10, 30, 30]]),
        doc_to_visual="!function utils.smaller",
    )
    result = run(Model(lambda prompt, images: "1"), "toy_regions", folder)
    why = result["samples"]["toy_regions"][0]["patch"]["excluded"]["relevant"]
    assert (
        why
        == "an image that is shown in another size than the doc has it, so that its boxes are elsewhere: 30x30 pixels, not 60x60"
    )
    assert metrics(result, "toy_regions")["exact_match_mpp_relevant"] is None


def test_boxes_are_of_the_first_image_and_the_others_stay_whole(folder):
    data = small(second=lambda i: Image.new("RGB", (33, 22), (9, 9, 9)))
    image = datasets.Image()
    columns = {"image": image, "second": image, "question": datasets.Value("string"), "answer": datasets.Value("string"),
               "boxes": datasets.List(datasets.List(datasets.Value("int32"))), "relevant": datasets.List(datasets.Value("bool"))}  # fmt: skip
    write_task(folder, "toy", data, columns, doc_to_visual="!function utils.both")
    model = Model()
    result = run(model, "toy_regions", folder)
    assert [[image.size for image in images] for *_, images, _ in model.seen[:3]] == [
        [(60, 60), (33, 22)],
        [(20, 20), (33, 22)],
        [(30, 30), (33, 22)],
    ]
    (folder / "mine.yaml").write_text(
        "task: mine\nclass: !function lmms_patch.Wrap\nbase: toy\nkind: regions\nbox_image: last\n"
    )
    model.seen = []
    why = run(model, "mine", folder)["samples"]["mine"][0]["patch"]["excluded"]["relevant"]
    assert why == "a box that leaves the image: box 2 is [30, 30, 60, 60], the image has 33x22 pixels"
    write_task(
        folder,
        "toy",
        [{**row, "boxes": [[1, 2, 11, 22], [0, 0, 33, 1]]} for row in data],
        columns,
        doc_to_visual="!function utils.both",
    )
    run(model, "mine", folder)
    assert [[image.size for image in images] for *_, images, _ in model.seen[-2:]] == [
        [(60, 60), (10, 20)],
        [(60, 60), (33, 1)],
    ]
    record = result["samples"]["toy_regions"][0]["patch"]
    assert (record["image_sizes"], record["views"][1]["boxes"]) == ([[60, 60], [33, 22]], [[0, 0, 20, 20]])


def test_options_say_where_the_boxes_are_and_what_they_are(folder):
    data = rows(
        12,
        objects=lambda i: [
            {"bbox": [30, 0, 20, 20], "adversarial": False},
            {"bbox": [0, 0, 10, 10], "adversarial": True},
        ],
    )
    write_task(folder, "toy", data, metadata={"lmms_patch": {"boxes": "objects", "box_form": "ltwh", "null": 0}})
    write_task(folder, "other", small())
    (folder / "mine.yaml").write_text(
        "task: mine\nclass: !function lmms_patch.Wrap\nbase: other\nkind: regions\nmin_cell: 25\nmin_side: 20\n"
    )
    model = Model()
    result = run(model, "toy_regions,mine", folder)
    sizes = {
        name: [images[0].size for task, _, images, _ in model.seen if task == name][:3]
        for name in ("toy_regions", "mine")
    }
    assert sizes == {"toy_regions": [(60, 60), (20, 20), (10, 10)], "mine": [(60, 60), (25, 25), (30, 30)]}
    assert [view["boxes"] for view in result["samples"]["toy_regions"][0]["patch"]["views"][1:]] == [
        [[30, 0, 50, 20]],
        [[0, 0, 10, 10]],
    ]
    (folder / "mine.yaml").write_text(
        "task: mine\nclass: !function lmms_patch.Wrap\nbase: other\nkind: regions\nmin_side: 21\n"
    )
    why = run(Model(), "mine", folder)["samples"]["mine"][0]["patch"]["excluded"]["adversarial"]
    assert why == "a box that is too small: box 1 has 20x20 pixels, min_side is 21"
    (folder / "mine.yaml").write_text(
        "task: mine\nclass: !function lmms_patch.Wrap\nbase: other\nkind: regions\nbox_form: coco\n"
    )
    with pytest.raises(OptionError, match="box_form must be 'ltrb' or 'ltwh', not 'coco'"):
        run(Model(), "mine", folder)


# --- everything else that goes with a wrapped task ------------------------------------------------


def test_filters_that_pair_by_position_see_the_docs_of_exactly_those_answers(folder):
    """Docs have 1 to 6 views: the answers to view 4 are of some docs only."""
    filters = [{"name": "paired", "filter": [{"function": "!function utils.Paired"}]}]
    write_task(folder, "toy", rows(13, boxes=boxes_of, relevant=relevant_of), filter_list=filters)
    result = run(Model(lambda *_: "copy the doc"), "toy_regions", folder, limit=7, offset=4)
    samples = result["samples"]["toy_regions"]
    assert [s["doc_id"] for s in samples] == list(range(4, 11))
    assert [s["filtered_resps"] for s in samples] == [[str(doc)] * (1 + doc % 6) for doc in range(4, 11)]


def test_a_box_that_cannot_be_scored_leaves_no_number_of_boxes(folder, capfd):
    accuracy = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
    write_task(folder, "toy", small(), process_results="!function utils.flaky", metric_list=accuracy)
    found = metrics(
        run(Model(lambda prompt, images: "?" if images[0].size == (30, 30) else "1"), "toy_regions", folder),
        "toy_regions",
    )
    assert found["acc"] == pytest.approx(1 / 12)
    for name in (
        "acc_mpp_relevant",
        "acc_mpp_adversarial",
        "rci_relevant",
        "mean_relevant",
        "regions_best",
        "regions_even",
        "regions_mean",
    ):
        assert found[name] is None, name
    assert "ValueError: no answer" in capfd.readouterr().err
