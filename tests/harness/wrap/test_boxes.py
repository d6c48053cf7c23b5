"""``<base>_regions``: each doc's own boxes as views, through the real evaluator, in-process."""

import itertools
import json
from argparse import Namespace

import datasets
import numpy as np
import pytest
from jsonschema import Draft202012Validator
from lmms_eval.tasks import TaskManager
from PIL import Image

from lmms_patch import commands
from lmms_patch.app import schemas
from lmms_patch.app.commands.tasks import Catalogue, lines
from lmms_patch.ask.spec import parse
from lmms_patch.ask.views import asked_per_doc
from lmms_patch.errors import CannotWrapError, OptionError, UnknownNameError
from lmms_patch.harness.names import catalog, lookup
from lmms_patch.present.terminal import rci
from lmms_patch.rci import recompute
from lmms_patch.rci.recompute import Changes
from tests.harness import toys
from tests.harness.adapters import ADAPTERS, PATTERNS, SIZES, Likelihood, by_deepcopy, by_pickle, first_of_all, picture
from tests.harness.adapters import _say as say
from tests.harness.toys import ChatModel, Model, metrics, rows, run, write_task
from tests.making.files import DATE, write_files
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


def load(folder, name):
    return TaskManager(verbosity="ERROR", include_path=str(folder), model_name="toy_model").load_task_or_group(
        [name], "simple"
    )[name]


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


@pytest.mark.parametrize("change", [by_pickle, by_deepcopy], ids=lambda f: f.__name__)
def test_ids_that_became_plain_numbers_serve_with_one_task(change, manager):
    model = ADAPTERS["simple"](
        lambda docs, show, doc_id, task, split: first_of_all(docs, show, change(doc_id), task, split), False
    )
    samples = toys.simple_evaluate(
        model=model, tasks=["a_regions"], task_manager=manager, log_samples=True, bootstrap_iters=0
    )["samples"]
    assert {s["doc_id"]: [r[0] for r in s["resps"]] for s in samples["a_regions"]} == {
        doc: wanted(0, doc) for doc in range(4)
    }


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


def test_ranks_ask_the_same_views(folder):
    data = rows(5, boxes=lambda i: [[0, 0, 9, 9]] * (i % 3), relevant=lambda i: [True] * (i % 3))
    write_task(folder, "toy", data)
    seen = []
    for rank in range(2):
        task = load(folder, "toy_regions")
        task.build_all_requests(rank=rank, world_size=2)
        seen += [(inst.doc_id, inst.idx, int(inst.arguments[3])) for inst in task.instances]
    assert sorted(seen) == [(doc, view, 3 * doc + view) for doc in range(5) for view in range(1 + doc % 3)]


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


def test_near_chance_no_index_but_the_differences(folder):
    write_task(folder, "toy", rows(48, boxes=boxes_of, relevant=relevant_of))
    found = metrics(
        run(looks(lambda doc: False, SCRIPTS["right only on relevant boxes"]), "toy_regions", folder), "toy_regions"
    )
    assert (found["gate"], found["rci_relevant"], found["gap_relevant"]) == (0, None, None)
    assert (found["exact_match_mpp_relevant"], found["regions_best"]) == (1.0, 1.0)


def test_what_a_run_leaves_is_valid_and_gives_its_numbers_again(folder, tmp_path_factory, capsys):
    """show and analyze on the files; other settings; each category; what has no meaning for boxes is said."""
    data = rows(48, boxes=boxes_of, relevant=relevant_of, kind=lambda i: "ab"[i % 2])
    write_task(folder, "toy", data, metadata={"lmms_patch": {"category": "kind", "null": 0}})
    result = run(looks(known, SCRIPTS["right here and there"]), "toy_regions", folder)
    out = tmp_path_factory.mktemp("out")
    write(out, result)
    patch = metrics(result, "toy_regions")["patch"]
    Draft202012Validator(schemas.load("details")).validate(plain(dict(patch.items())))
    Draft202012Validator(schemas.load("task-config")).validate(result["configs"]["toy_regions"]["lmms_patch"])
    for sample in result["samples"]["toy_regions"]:
        Draft202012Validator(schemas.load("patch")).validate(json.loads(json.dumps(sample["patch"])))
    (loaded,) = recompute.load(out)
    again = recompute.recompute(loaded)
    assert {name: patch[name] for name in again.metrics} == pytest.approx(again.metrics)
    assert {"rci_relevant", "mean_adversarial_low", "regions_even_high", "n_both"} <= set(again.metrics)
    narrow = recompute.recompute(loaded, Changes(level=0.5), by_category=True)
    assert narrow.metrics["regions_best_low"] > again.metrics["regions_best_low"]
    assert set(narrow.categories) == {"a", "b"}
    assert narrow.categories["a"].regions.both + narrow.categories["b"].regions.both == again.metrics["n_both"]
    shown = rci.load(recompute.one_run(out).path)
    text = rci.table(shown)
    assert f"{patch['rci_relevant']:+.3f}" in text
    assert f"{patch['regions_even']:+.3f}" in text
    assert "one box, on average" in text
    assert "toy_regions: no shares of cells" in rci.cell_tables(shown)
    assert "docs left out of the numbers of relevant boxes: " in "\n".join(rci.warnings(shown))
    assert rci.table(rci.recomputed([again])) == text
    assert "b " in rci.category_table(narrow)
    second = tmp_path_factory.mktemp("second")
    write(second, result, "2026-01-02T00-00-00.000000")
    found = commands.analyze([out, second])
    assert found.averaged[0].metrics["regions_mean"] == pytest.approx(patch["regions_mean"])
    Draft202012Validator(schemas.load("analysis")).validate(json.loads(json.dumps(found.to_json())))


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def write(out, result, date=DATE):
    """The results file and the sample logs, as far as they are read again."""
    logs = {
        task: [{"doc_id": one["doc_id"], "target": str(one["target"]), "patch": plain(one["patch"])} for one in samples]
        for task, samples in result["samples"].items()
    }
    tasks = {
        task: (values, plain(result["configs"].get(task)), logs.get(task))
        for task, values in plain(result["results"]).items()
    }
    write_files(out, tasks, date=date)


def test_in_words_where_boxes_differ(folder, tmp_path_factory):
    write_task(folder, "toy", rows(48, boxes=boxes_of, relevant=relevant_of))
    for name, says in (
        ("right only on relevant boxes", "A relevant box answers more than an adversarial one in toy (+"),
        ("right only on adversarial boxes", "An adversarial box answers more than a relevant one in toy (-"),
    ):
        out = tmp_path_factory.mktemp("out")
        write(out, run(looks(known, SCRIPTS[name]), "toy_regions", folder))
        (said,) = commands.show(out).findings
        assert said.text.startswith(says)


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


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({}, "the docs of toy have no boxes in their field 'boxes'; each needs a list of .left, top, right, bottom."),
        (
            {"boxes": lambda i: [[0, 0, 9, 9]]},
            "12 of 12 have boxes of which it is not known whether they are relevant: .* option 'relevant', or set relevant: all .doc 0",
        ),
        (
            {"boxes": lambda i: [[9, 0, 9, 9]], "relevant": lambda i: [True]},
            "12 of 12 have a box without area: box 1 is .9, 0, 9, 9. .doc 0",
        ),
        (
            {"boxes": lambda i: [[0.5, 0.5, 0.9, 1.0]], "relevant": lambda i: [True]},
            "12 of 12 have boxes that are not in pixels",
        ),
    ],
)
def test_docs_that_carry_no_boxes_are_refused_with_what_to_type(folder, columns, says):
    write_task(folder, "toy", rows(12, **columns))
    model = Model()
    with pytest.raises(CannotWrapError, match=says) as caught:
        run(model, "toy_regions", folder)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("toy_regions: ")
    assert model.seen == []


def test_a_limit_that_leaves_no_doc_with_boxes(folder):
    write_task(folder, "toy", rows(12, boxes=lambda i: [[0, 0, 9, 9]] * (i > 5), relevant=lambda i: [True] * (i > 5)))
    with pytest.raises(
        CannotWrapError, match="none of the 6 docs asked has boxes that can be used, others of toy have; raise --limit"
    ):
        run(Model(), "toy_regions", folder, limit=6)
    task = load(folder, "toy_regions")
    task.build_all_requests(rank=0, world_size=2, limit=7)  # this rank's share decides nothing: doc 6 is another rank's
    task.build_all_requests(rank=1, world_size=2, limit=7)
    assert [inst.idx for inst in task.instances] == [0, 0, 0]


def test_names_that_are_no_regions(folder):
    write_task(folder, "toy", small())
    with pytest.raises(UnknownNameError, match="'regions' takes no grid size"):
        run(Model(), "toy_regions3", folder)
    write_task(folder, "text", small(), doc_to_visual=None)
    with pytest.raises(CannotWrapError, match="text-only"):
        run(Model(), "text_regions", folder)


# --- everything else that goes with a wrapped task ------------------------------------------------


def test_wildcards_groups_and_the_catalogue(folder):
    write_task(folder, "toy", small())
    write_task(folder, "toil", small())
    (folder / "family.yaml").write_text(
        "group: family\ntask: [toy, toil]\naggregate_metric_list:\n  - {metric: exact_match, aggregation: mean, weight_by_size: true}\n"
    )
    manager = TaskManager(verbosity="ERROR", include_path=str(folder))
    assert [spec.name for spec in lookup.expand(manager, ["to?*_regions"]) if spec.base in ("toy", "toil")] == [
        "toil_regions",
        "toy_regions",
    ]
    result = run(Model(lambda *_: "1"), "family_regions", folder)
    assert set(result["results"]) == {"family_regions", "toy_regions", "toil_regions"}
    assert metrics(result, "family_regions") == {"exact_match": pytest.approx(1 / 12)}
    spec = parse("toy_regions")
    assert asked_per_doc(spec) is None
    assert (catalog.entry(manager, "toy", spec).verdict, catalog.entry(manager, "toy", spec).reason) == ("data", "its docs must carry boxes (docs/regions.md)")  # fmt: skip
    said = lines(Catalogue([catalog.entry(manager, "toy", spec)], "regions", None))
    assert said[0].startswith("toy_regions  [task] the data decides")
    assert said[-1].endswith(
        "As regions, each doc is asked once, and once more per box of its own (times its choices, for multiple_choice)."
    )
    spec = parse("toy_hidden")
    assert catalog.entry(manager, "toy", spec).verdict == "data"
    said = lines(Catalogue([catalog.entry(manager, "toy", spec)], "hidden", asked_per_doc(spec)))
    assert said[-1].endswith("As hidden, each doc is asked at most 3x (times its choices, for multiple_choice).")


def test_filters_that_pair_by_position_see_the_docs_of_exactly_those_answers(folder):
    """Docs have 1 to 6 views: the answers to view 4 are of some docs only."""
    filters = [{"name": "paired", "filter": [{"function": "!function utils.Paired"}]}]
    write_task(folder, "toy", rows(13, boxes=boxes_of, relevant=relevant_of), filter_list=filters)
    result = run(Model(lambda *_: "copy the doc"), "toy_regions", folder, limit=7, offset=4)
    samples = result["samples"]["toy_regions"]
    assert [s["doc_id"] for s in samples] == list(range(4, 11))
    assert [s["filtered_resps"] for s in samples] == [[str(doc)] * (1 + doc % 6) for doc in range(4, 11)]


def test_other_boxes_are_asked_again_and_the_same_ones_are_not(folder, tmp_path_factory):
    """The response cache keys on what the task's config says; the boxes lie in the data."""
    cache = str(tmp_path_factory.mktemp("cache"))
    settings = {"generation_kwargs": {"max_new_tokens": 4, "temperature": 0, "do_sample": False}}
    model = Model(lambda prompt, images: str(images[0].size))  # one model: the key holds its name in memory

    def ask(boxes):
        write_task(folder, "toy", small(boxes=lambda i: boxes), **settings)
        model.seen = []
        samples = run(model, "toy_regions", folder, use_cache=cache)["samples"]["toy_regions"]
        return len(model.seen), samples[5]["filtered_resps"]

    assert ask([[0, 0, 20, 20], [30, 30, 60, 60]]) == (36, ["(60, 60)", "(20, 20)", "(30, 30)"])
    assert ask([[0, 0, 20, 20], [30, 30, 60, 60]]) == (0, ["(60, 60)", "(20, 20)", "(30, 30)"])
    assert ask([[0, 0, 20, 20], [30, 30, 50, 60]]) == (36, ["(60, 60)", "(20, 20)", "(20, 30)"])


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


def test_predict_only_and_the_host_s_arguments(folder):
    write_task(folder, "toy", small())
    result = run(ChatModel(lambda *_: "1"), "toy_regions", folder, predict_only=True)
    assert [view["items"] for view in result["samples"]["toy_regions"][0]["patch"]["views"]] == [{}] * 3
    with_media = Namespace(process_with_media=True, reasoning_tags=None, output_path=None)
    assert metrics(run(Model(lambda *_: "1"), "toy_regions", folder, cli_args=with_media), "toy_regions")[
        "exact_match"
    ] == pytest.approx(1 / 12)
