"""Each fact of DESIGN 2 that asks something of the wrapper (6 to 16), through the real evaluator, in-process."""

from __future__ import annotations

import copy
import pickle
import random
from argparse import Namespace

import datasets
import numpy as np
import pytest
from lmms_eval.tasks import TaskManager
from PIL import Image

from lmms_patch.errors import CannotWrapError, PatchError, UnknownNameError
from lmms_patch.harness import compat
from lmms_patch.harness.wrap.delegate import Delegate
from lmms_patch.harness.wrap.docs import ViewId
from lmms_patch.harness.wrap.task import WrappedTask
from lmms_patch.present.terminal.rci import table
from lmms_patch.present.terminal.rci import warnings as show_warnings
from tests.harness.toys import ChatModel, Model, metrics, rows, run, write_task
from tests.making.analyses import labelled
from tests.places import ROOT

UTILS = '''
import json, os, random
from pathlib import Path

def flaky(doc, results):
    if doc["question"].startswith("question 1"):
        raise KeyError("no such " + "answer")
    return {"acc": float(results[0] == doc["answer"])}

def pairs(doc, results):
    item = {"id": doc["question"], "right": results[0] == doc["answer"]}
    return {"first": item} if int(doc["answer"]) % 2 else {"second": item}

def pops(doc, results):
    return {"acc": float(doc["golds"].pop() == "b")}

def share(items):
    return sum(item["right"] for item in items) / len(items)

def share_of_two(items):
    assert len(items) == 2, "pairs"
    return share(items)

def guess(doc, results):
    return {"acc": float(random.random() < 0.5), "seen": random.random()}

def submit(items, args):
    Path(args.output_path, "submission.json").write_text(json.dumps(items))
    Path("beside.json").write_text(json.dumps(items))
    print("written")
    return sum(items) / len(items)

def as_dict(items):
    return {"mean": sum(items) / len(items)}

def boom(items):
    raise RuntimeError("cannot\\naggregate")

def two(doc, results):
    return {"acc": float(results[0] == doc["answer"]), "other": 0.5}

def judged(doc, results):
    from lmms_eval.llm_judge import get_server
    return {"acc": float(callable(get_server))}

def docs_filter_right(resps, docs):
    return resps

class Paired:
    """A filter that pairs answers and docs by position, as MultiChoiceRegexFilter does."""
    def __init__(self, **kwargs):
        pass
    def apply(self, resps, docs):
        docs = list(docs)
        assert len(resps) == len(docs), (len(resps), len(docs))
        return [f"{doc['answer']}" if resp[0] == "copy the doc" else resp[0] for resp, doc in zip(resps, docs)]

class Broken(Paired):
    def apply(self, resps, docs):
        raise ValueError("broken filter")

def nothing(doc):
    return []

def maybe(doc):
    return [doc["image"]] if doc.get("image") else []

def video(doc):
    return ["clips/" + doc["question"] + ".mp4"]

def choice(doc):
    return ["0", "1", "2"][: 2 + int(doc["answer"]) % 2]
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "utils.py").write_text(UTILS)
    return tmp_path


def mean_of(*names):
    return [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in names]


def by_brightness(prompt, images):
    """An answer that depends on the view: some cells are right, some are not."""
    total = int(sum(np.asarray(image).sum() for image in images))
    return str(total % 5)


# --- requests, ids, scoring (facts 4 to 8) --------------------------------------------------------


def test_one_scored_doc_many_requests(folder):
    write_task(folder, "toy", rows(5))
    model = Model(by_brightness)
    result = run(model, "toy_rci", folder)
    assert len(model.seen) == 5 * 14
    assert [s["doc_id"] for s in result["samples"]["toy_rci"]] == list(range(5))
    assert all(len(s["filtered_resps"]) == 14 for s in result["samples"]["toy_rci"])
    of_grids = {
        f"{name}{n}{end}"
        for n in (2, 3)
        for name, end in (("exact_match_mpp", ""), ("rci", ""), ("rci", "_steady"), ("gap", ""))
    } | {f"{name}{n}" for n in (2, 3) for name in ("text", "one", "whole", "unsolved", "needs_whole")}
    assert metrics(result, "toy_rci").keys() == {"patch", "exact_match", "chance", "gate", "n_docs", *of_grids}


def test_limit_and_offset_count_docs(folder):
    write_task(folder, "toy", rows(9))
    result = run(Model(by_brightness), "toy_rci2", folder, limit=3, offset=4)
    samples = result["samples"]["toy_rci2"]
    assert [s["doc_id"] for s in samples] == [4, 5, 6]
    assert [s["patch"]["doc_id"] for s in samples] == [4, 5, 6]


def test_views_arrive_together_and_order_by_idx(folder):
    write_task(folder, "toy", rows(3))
    model = Model()
    run(model, "toy_rci2", folder)
    assert [doc_id for _, doc_id, _, _ in model.seen] == list(range(15))


def test_the_id_is_a_plain_int_for_everyone_but_its_table(folder):
    write_task(
        folder,
        "toy",
        rows(3),
        doc_to_visual=None,
        process_results="!function utils.guess",
        metric_list=mean_of("acc"),
        doc_to_messages=None,
    )
    write_task(folder, "toy", rows(3))
    task = load(folder, "toy_rci2")
    task.build_all_requests()
    ids = [inst.arguments[3] for inst in task.instances]
    assert all(isinstance(i, ViewId) for i in ids)
    assert ids == list(range(15))
    for cloned in (pickle.loads(pickle.dumps(ids[7])), copy.deepcopy(ids[7])):
        assert type(cloned) is int
        assert task.dataset["test"][cloned].view == 7 % 5
    assert len(pickle.dumps(ids)) < 1000


def load(folder, name, chat=False):
    manager = TaskManager(verbosity="ERROR", include_path=str(folder), model_name="toy_model")
    loaded = manager.load_task_or_group([name], "chat" if chat else "simple")
    return loaded[name]


@pytest.mark.parametrize("option", [{"min_cell": 40}, {"images": "first"}, {"min_side": 3}, {"seed": 5}])
def test_every_option_that_changes_a_view_changes_the_cache_fingerprint(folder, option):
    write_task(folder, "toy", rows(2))
    write_task(folder, "other", rows(2), metadata={"lmms_patch": option})
    plain, changed = (
        load(folder, f"{name}_shuffle3").dump_config()["lmms_patch"]["options"] for name in ("toy", "other")
    )
    assert {k for k in plain if plain[k] != changed[k]} == set(option)


def test_the_response_cache_asks_again_only_what_was_answered_empty(folder, tmp_path_factory):
    """Each view has a key of its own: answers differ by view, and none is handed to another."""
    write_task(folder, "toy", rows(3), generation_kwargs={"max_new_tokens": 4, "temperature": 0, "do_sample": False})
    cache = str(tmp_path_factory.mktemp("cache"))
    model = Model(lambda prompt, images: "" if np.asarray(images[0])[0, 0, 1] else str(np.asarray(images[0]).sum()))
    first = run(model, "toy_rci2", folder, use_cache=cache)
    asked, model.seen = len(model.seen), []
    second = run(model, "toy_rci2", folder, use_cache=cache)
    answers = [sample["filtered_resps"] for sample in first["samples"]["toy_rci2"]]
    assert asked == 15
    assert [doc_id for _, doc_id, _, _ in model.seen] == [
        5 * doc + view for doc in range(3) for view in (2, 4)
    ]  # the right-hand cells
    assert [sample["filtered_resps"] for sample in second["samples"]["toy_rci2"]] == answers
    assert [sample["patch"] for sample in second["samples"]["toy_rci2"]] == [
        sample["patch"] for sample in first["samples"]["toy_rci2"]
    ]
    assert len({answer for doc in answers for answer in doc if answer}) == 9


def test_cache_requests_is_ignored_with_one_line(folder, warnings):
    write_task(folder, "toy", rows(2))
    run(Model(), "toy_rci2", folder, cache_requests=True)
    assert sum("--cache_requests is ignored" in line for line in warnings) == 1


# --- filters (fact 9) ---------------------------------------------------------------------------


def test_filters_that_pair_by_position_see_the_docs_of_exactly_those_answers(folder):
    filters = [{"name": "paired", "filter": [{"function": "!function utils.Paired"}]}]
    write_task(folder, "toy", rows(4), filter_list=filters)
    result = run(Model(lambda *_: "copy the doc"), "toy_rci2", folder, limit=3)
    assert [s["filtered_resps"] for s in result["samples"]["toy_rci2"]] == [[str(i)] * 5 for i in range(3)]
    assert result["results"]["toy_rci2"]["rci2,paired"] == 0.0


def test_two_filters_are_two_runs_of_the_index(folder):
    filters = [
        {"name": "first", "filter": [{"function": "take_first"}]},
        {"name": "copied", "filter": [{"function": "!function utils.Paired"}]},
    ]
    write_task(folder, "toy", rows(5), filter_list=filters)
    result = run(
        Model(lambda prompt, images: "copy the doc" if images[0].size == (60, 60) else "0"), "toy_rci2", folder
    )
    values = result["results"]["toy_rci2"]
    assert values["exact_match,first"] == 0.0
    assert values["rci2,first"] is None
    assert values["exact_match,copied"] == 1.0
    assert values["exact_match_mpp2,copied"] == pytest.approx(1 / 5)  # only doc 0's gold is "0"
    assert values["rci2,copied"] == pytest.approx(0.8)


def test_a_broken_filter_keeps_the_answers_and_names_the_cause(folder, capfd):
    filters = [{"name": "broken", "filter": [{"function": "!function utils.Broken"}]}]
    write_task(folder, "toy", rows(3), filter_list=filters)
    result = run(Model(lambda *_: "1"), "toy_rci2", folder)
    assert result["results"]["toy_rci2"]["rci2,broken"] is None
    assert [str(resp) for resp in result["samples"]["toy_rci2"][0]["filtered_resps"]] == ["1"] * 5
    assert "filter 'broken': ValueError: broken filter" in capfd.readouterr().err


# --- scorers (facts 10 to 12) -------------------------------------------------------------------


def test_a_raising_scorer_is_named_with_its_cause_and_is_not_retried(folder, capfd, monkeypatch):
    write_task(folder, "toy", rows(6), process_results="!function utils.flaky", metric_list=mean_of("acc"))
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("retried"))
    result = run(Model(lambda *_: "0"), "toy_rci2", folder)
    errors = capfd.readouterr().err
    assert "toy_rci2: 2 of 6 docs could not be scored by toy, first doc 1: KeyError: 'no such answer'" in errors
    assert len(result["samples"]["toy_rci2"]) == 6
    assert result["samples"]["toy_rci2"][1]["filtered_resps"] == ["0"] * 5
    assert result["samples"]["toy_rci2"][1]["patch"]["views"][0]["error"] == "KeyError: 'no such answer'"
    assert metrics(result, "toy_rci2")["acc"] is None  # not the metric of the docs that happened to be scored
    assert metrics(result, "toy_rci2")["rci2"] is None


def test_docs_that_lack_a_metric_that_others_have(folder, warnings):
    write_task(
        folder,
        "toy",
        rows(4),
        process_results="!function utils.pairs",
        metric_list=[
            {"metric": m, "aggregation": "!function utils.share_of_two", "higher_is_better": True}
            for m in ("first", "second")
        ],
    )
    write_task(folder, "single", rows(4), process_results="!function utils.pairs", metadata={"lmms_patch": {"score": "right"}},
               metric_list=[{"metric": m, "aggregation": "!function utils.share", "higher_is_better": True} for m in ("first", "second")])  # fmt: skip
    result = run(Model(lambda prompt, images: "1" if images[0].size != (60, 60) else "2"), "single_rci2", folder)
    found = metrics(result, "single_rci2")
    assert (found["first"], found["first_mpp2"], found["second"], found["second_mpp2"]) == (0.0, 0.5, 0.5, 0.0)
    # without a scalar, and with an aggregation that asserts pairs: items are kept, the index is null, and a line says
    # what to set
    result = run(Model(lambda *_: "1"), "toy_rci2", folder)
    assert result["samples"]["toy_rci2"][1]["patch"]["views"][0]["items"] == {
        "first": {"id": "question 1?", "right": True}
    }
    assert metrics(result, "toy_rci2")["first"] == 0.5
    assert metrics(result, "toy_rci2")["rci2"] is None
    assert any("set 'score' to the key" in line for line in warnings)


def test_scorers_that_work_in_place_see_a_fresh_row(folder):
    write_task(
        folder,
        "toy",
        rows(2, golds=lambda i: ["a", "b"]),
        process_results="!function utils.pops",
        metric_list=mean_of("acc"),
    )
    found = metrics(run(Model(), "toy_rci2", folder), "toy_rci2")
    assert (found["acc"], found["acc_mpp2"]) == (1.0, 1.0)


def test_scorers_that_guess_do_not_disturb_each_other(folder):
    """The full view draws what the base task alone would have drawn."""
    write_task(folder, "toy", rows(30), process_results="!function utils.guess", metric_list=mean_of("acc", "seen"))
    plain = run(Model(), "toy", folder, process_docs_parallel=1)
    wrapped = run(Model(), "toy_rci3", folder, process_docs_parallel=1)
    assert metrics(wrapped, "toy_rci3")["seen"] == metrics(plain, "toy")["seen"]
    views = wrapped["samples"]["toy_rci3"][0]["patch"]["views"]
    assert len({view["items"]["seen"] for view in views}) == 10
    again = run(Model(), "toy_rci3", folder, process_docs_parallel=4)
    assert (
        again["samples"]["toy_rci3"][5]["patch"]["views"][1:] == wrapped["samples"]["toy_rci3"][5]["patch"]["views"][1:]
    )


def test_an_aggregation_that_writes_files_writes_only_the_full_run(folder, tmp_path_factory, monkeypatch, capfd):
    write_task(folder, "toy", rows(5), process_results=None,
               metric_list=[{"metric": "exact_match", "aggregation": "!function utils.submit", "higher_is_better": True}])  # fmt: skip
    written = {}
    for name in ("toy", "toy_rci"):
        out = tmp_path_factory.mktemp(name)
        monkeypatch.chdir(out)
        run(
            Model(by_brightness),
            name,
            folder,
            cli_args=Namespace(output_path=str(out), process_with_media=False, reasoning_tags=None),
        )
        written[name] = {path.name: path.read_text() for path in out.iterdir()}
        assert capfd.readouterr().out.count("written") == 1
    assert written["toy"] == written["toy_rci"]
    assert set(written["toy"]) == {"submission.json", "beside.json"}


@pytest.mark.parametrize(("aggregation", "value"), [("as_dict", {"mean": 0.2}), ("boom", None)])
def test_aggregations_that_give_no_number(folder, aggregation, value, capfd):
    write_task(
        folder,
        "toy",
        rows(5),
        metric_list=[
            {"metric": "exact_match", "aggregation": f"!function utils.{aggregation}", "higher_is_better": True}
        ],
    )
    found = metrics(run(Model(lambda *_: "3"), "toy_rci2", folder), "toy_rci2")
    assert found["exact_match"] == value
    assert found["rci2"] is None
    assert ("RuntimeError: cannot" in capfd.readouterr().err) == (value is None)


def test_the_native_function_itself_is_given_where_the_host_has_a_standard_error(folder):
    write_task(folder, "toy", rows(3))
    task = load(folder, "toy_rci2")
    assert task.aggregation()["exact_match"] is task._base.aggregation()["exact_match"]


def test_the_order_of_docs_does_not_decide_the_index(folder):
    """A first doc without an image, or without the primary metric: all numbers are there, and the host counts all docs."""
    data = rows(4)
    data[0]["image"] = None
    (folder / "utils.py").write_text(
        UTILS + "\ndef maybe(doc):\n    return [doc['image'].convert('RGB')] if doc['image'] else []\n"
    )
    write_task(folder, "toy", data, doc_to_visual="!function utils.maybe")
    write_task(folder, "other", rows(1))
    (folder / "family.yaml").write_text(GROUP)
    model = Model(lambda prompt, images: "1" if images else "0")  # right on docs 0 and 1 of toy, wrong on other
    result = run(model, "family,family_rci2", folder)
    found = metrics(result, "toy_rci2")
    assert (found["exact_match"], found["exact_match_mpp2"], found["rci2"]) == (0.5, pytest.approx(1 / 3), 0.0)
    assert (
        result["results"]["family_rci2"]["exact_match,none"]
        == result["results"]["family"]["exact_match,none"]
        == pytest.approx(2 / 5)
    )


def test_fip_and_mpp_are_over_the_same_docs(folder):
    """Docs 2 and 3 are wrong in full and unscored in cells: they may not lower FIP alone."""
    (folder / "utils.py").write_text(
        UTILS
        + "\ndef shy(doc, results):\n    return {'acc': None if results[0] == 'shy' else float(results[0] == doc['answer'])}\n"
    )
    write_task(folder, "toy", rows(4), process_results="!function utils.shy", metric_list=mean_of("acc"))
    result = run(Model(lambda prompt, images: str(np.asarray(images[0])[0, 0, 2]) if np.asarray(images[0])[0, 0, 2] < 2 else "shy" if images[0].width < 60 else "no"), "toy_rci2", folder)  # fmt: skip
    found = metrics(result, "toy_rci2")
    assert (found["acc"], found["acc_mpp2"], found["rci2"], found["gap2"]) == (0.5, 1.0, 0.0, 0.0)


def test_a_metric_that_single_docs_do_not_make_up_has_no_best_cell(folder, warnings):
    """F1 of one negative doc is 0 however right its answer is: it cannot tell cells apart."""
    (folder / "utils.py").write_text(
        UTILS
        + """
def pair(doc, results):
    return {"f1": (int(doc["answer"]) % 2, int(results[0] == doc["answer"]) == int(doc["answer"]) % 2)}

def f1(items):
    hits = sum(g and p for g, p in items)
    return 2 * hits / max(1, sum(g for g, _ in items) + sum(p for _, p in items))
"""
    )
    f1 = [{"metric": "f1", "aggregation": "!function utils.f1", "higher_is_better": True}]
    write_task(folder, "toy", rows(6), process_results="!function utils.pair", metric_list=f1)
    found = metrics(
        run(Model(lambda prompt, images: str(np.asarray(images[0])[0, 0, 2])), "toy_rci2", folder), "toy_rci2"
    )
    assert found["f1"] == 1.0
    assert found["f1_mpp2"] is found["rci2"] is found["gap2"] is None
    assert any("cannot tell which cell is best" in line for line in warnings)


def test_a_scorer_that_fails_on_cells_alone_leaves_no_number_over_cells(folder, capfd):
    (folder / "utils.py").write_text(
        UTILS + "\ndef picky(doc, results):\n    return {'acc': float(int(results[0]) >= 0)}\n"
    )
    write_task(folder, "toy", rows(3), process_results="!function utils.picky", metric_list=mean_of("acc"))
    found = metrics(
        run(Model(lambda prompt, images: "1" if images[0].width == 60 else "?"), "toy_rci2", folder), "toy_rci2"
    )
    assert (found["acc"], found["acc_mpp2"], found["rci2"]) == (1.0, None, None)
    assert "ValueError: invalid literal" in capfd.readouterr().err


def test_filters_that_drop_answers_or_fail_are_told_apart(folder, capfd):
    (folder / "utils.py").write_text(
        UTILS
        + "\nclass Dropping(Paired):\n    def apply(self, resps, docs):\n        return [resp[0] for resp in resps][:-1]\n"
    )
    filters = [
        {"name": "good", "filter": [{"function": "take_first"}]},
        {"name": "dropping", "filter": [{"function": "!function utils.Dropping"}]},
    ]
    write_task(folder, "toy", rows(3), filter_list=filters)
    values = run(Model(lambda *_: "1"), "toy_rci2", folder)["results"]["toy_rci2"]
    assert values["exact_match_mpp2,good"] == values["exact_match,good"]
    assert values["exact_match_mpp2,dropping"] is values["rci2,dropping"] is None
    assert "filter 'dropping' gave no answer" in capfd.readouterr().err


def test_a_metric_that_should_be_low(folder, warnings):
    """Its best cell is the lowest, and it has no index."""
    (folder / "utils.py").write_text(
        UTILS + "\ndef wrong(doc, results):\n    return {'err': float(results[0] != doc['answer'])}\n"
    )
    write_task(
        folder,
        "toy",
        rows(4),
        process_results="!function utils.wrong",
        metric_list=[{"metric": "err", "aggregation": "mean", "higher_is_better": False}],
    )
    found = metrics(
        run(Model(lambda prompt, images: "9" if images[0].width == 60 else "1"), "toy_rci2", folder), "toy_rci2"
    )
    assert (found["err"], found["err_mpp2"], found["rci2"]) == (1.0, 0.75, None)
    assert any("better when lower" in line for line in warnings)


# --- groups and repeats (fact 13) ---------------------------------------------------------------


GROUP = """
group: family
task: [toy, other]
aggregate_metric_list:
  - {metric: exact_match, aggregation: mean, weight_by_size: true}
metadata: {version: 1.0}
"""


def test_a_group_pools_only_what_its_list_names(folder):
    write_task(folder, "toy", rows(4))
    write_task(folder, "other", rows(2))
    (folder / "family.yaml").write_text(GROUP)
    result = run(Model(lambda *_: "1"), "family_rci2", folder)
    assert set(result["results"]) == {"family_rci2", "toy_rci2", "other_rci2"}
    pooled = metrics(result, "family_rci2")
    assert pooled == {"exact_match": pytest.approx(2 / 6)}
    assert metrics(result, "toy_rci2")["exact_match_mpp2"] == metrics(result, "toy_rci2")["exact_match"]


def test_a_group_with_a_member_without_a_number_keeps_the_run(folder):
    """``rci2`` of a member is null (FIP 0), and the group pools it: null, not an exception after inference."""
    write_task(folder, "toy", rows(4))
    write_task(folder, "other", rows(2))
    (folder / "mine.yaml").write_text(
        "group: mine\ntask: [toy_rci2, other_rci2]\naggregate_metric_list:\n"
        "  - {metric: rci2, aggregation: mean, weight_by_size: true}\n  - {metric: exact_match, aggregation: mean, weight_by_size: true}\n"
    )
    result = run(Model(lambda prompt, images: "3"), "mine", folder)
    assert metrics(result, "other_rci2")["rci2"] is None
    assert metrics(result, "mine") == {"rci2": None, "exact_match": pytest.approx(1 / 6)}


def test_a_group_of_wrapped_tasks_is_not_wrapped_again(folder):
    write_task(folder, "toy", rows(2))
    (folder / "suite.yaml").write_text("group: suite\ntask: [toy_rci2]\n")
    with pytest.raises(CannotWrapError, match="is a wrapped task itself"):
        run(Model(), "suite_rci3", folder)


def test_tags_and_nested_groups(folder):
    write_task(folder, "toy", rows(2), tag=["some_tag"])
    write_task(folder, "other", rows(2), tag=["some_tag"])
    (folder / "outer.yaml").write_text("group: outer\ntask:\n  - group: inner\n    task: [toy]\n  - other\n")
    assert set(run(Model(), "some_tag_blind", folder)["results"]) == {"toy_blind", "other_blind"}
    assert set(run(Model(), "outer_rci2", folder)["results"]) >= {"outer_rci2", "inner_rci2", "toy_rci2", "other_rci2"}


def test_repeats_are_refused(folder):
    write_task(folder, "toy", rows(2))
    with pytest.raises(CannotWrapError, match="--repeats above 1"):
        run(Model(), "toy_rci2", folder, repeats=2)


# --- loading ------------------------------------------------------------------------------------


def test_chat_tasks_and_their_own_messages(folder):
    (folder / "utils.py").write_text(
        UTILS
        + """
def messages(doc):
    return [{"role": "user", "content": [{"type": "text", "text": "A"}, {"type": "image", "url": doc["image"]}, {"type": "text", "text": doc["question"]}]}]
"""
    )
    write_task(folder, "toy", rows(3), doc_to_messages="!function utils.messages")
    write_task(folder, "auto", rows(3))
    model = ChatModel(by_brightness)
    run(model, "toy_rci2,auto_blind", folder)
    sizes = {name: [image.size for image in images] for name, doc_id, images, _ in model.seen if doc_id == 1}
    assert sizes == {"toy_rci2": [(30, 30)], "auto_blind": []}
    assert {prompt for name, _, _, prompt in model.seen if name == "toy_rci2"} == {f"Aquestion {i}?" for i in range(3)}


def test_blind_prompts_lose_the_marks_of_images(folder):
    write_task(folder, "toy", rows(2, question=lambda i: f"<image>\nWhat is in <image 1>? {i}"))
    for model in (Model(), ChatModel()):
        run(model, "toy_blind", folder)
        assert [(images, prompt) for _, _, images, prompt in model.seen] == [
            ([], f"What is in <image 1>? {i}") for i in range(2)
        ]


def test_multiple_choice_scores_each_view_by_its_own_log_likelihoods(folder):
    write_task(
        folder,
        "toy",
        rows(4, answer=lambda i: i % 2),
        output_type="multiple_choice",
        generation_kwargs=None,
        doc_to_choice=["zero", "one"],
        metric_list=mean_of("acc"),
    )

    def loss(prompt, images):
        full = images[0].size == (60, 60)
        return 0.0 if prompt.endswith("one") == full else 1.0  # the full image says "one", cells say "zero"

    result = run(Model(loss), "toy_rci2", folder)
    assert metrics(result, "toy_rci2")["acc"] == 0.5
    assert metrics(result, "toy_rci2")["acc_mpp2"] == 0.5
    sample = result["samples"]["toy_rci2"][0]
    assert len(sample["filtered_resps"]) == 5 * 2
    assert [view["scores"]["acc"] for view in sample["patch"]["views"]] == [0.0, 1.0, 1.0, 1.0, 1.0]


def test_multiple_choice_on_a_chat_model_names_both(folder):
    write_task(folder, "toy", rows(2, answer=lambda i: i % 2), output_type="multiple_choice", generation_kwargs=None,
               doc_to_choice=["zero", "one"], metric_list=mean_of("acc"))  # fmt: skip
    with pytest.raises(CannotWrapError) as caught:
        load(folder, "toy_rci2", chat=True)
    assert "toy is multiple_choice" in str(caught.value)
    assert "toy_model" in str(caught.value)


def test_few_shot_process_docs_and_include(folder):
    (folder / "utils.py").write_text(
        UTILS + "\ndef odd(docs):\n    return docs.filter(lambda d: int(d['answer']) % 2)\n"
    )
    write_task(folder, "toy", rows(8), process_docs="!function utils.odd")
    (folder / "child.yaml").write_text(
        "include: toy.yaml\ntask: child\nmetadata: {lmms_patch: {min_cell: 32, 'null': 0}}\n"
    )
    model = Model(lambda *_: "3")
    result = run(model, "child_rci2", folder)
    assert [s["target"] for s in result["samples"]["child_rci2"]] == ["1", "3", "5", "7"]
    sizes = [images[0].size for _, _, images, _ in model.seen]
    assert (sizes.count((60, 60)), sizes.count((32, 32)), len(sizes)) == (4, 16, 20)


@pytest.mark.parametrize("config", [{"reasoning_tags": [["<think>", "</think>"]]}, {"auto_strip_thinking": True}])
def test_reasoning_is_stripped_from_every_view(folder, config):
    write_task(folder, "toy", rows(2), **config)
    result = run(Model(lambda prompt, images: "<think>7</think>1"), "toy_rci2", folder)
    assert result["samples"]["toy_rci2"][1]["filtered_resps"] == ["1"] * 5
    assert metrics(result, "toy_rci2")["exact_match_mpp2"] == 0.5


def test_explicit_task_file(folder):
    write_task(folder, "toy", rows(3))
    (folder / "mine.yaml").write_text(
        "task: mine\nclass: !function lmms_patch.Wrap\nbase: toy\nkind: pcri\ngrids: [2]\nmin_cell: 40\n"
    )
    model = Model(lambda *_: "1")
    result = run(model, "mine", folder)
    assert metrics(result, "mine")["exact_match_mpp2"] == metrics(result, "mine")["exact_match"]
    assert "pcri2" in metrics(result, "mine")
    assert {images[0].size for _, doc_id, images, _ in model.seen if doc_id % 5} == {(40, 40)}
    # the same file, given by its path
    config = {"task": "mine", "class": __import__("lmms_patch").Wrap, "base": "toy", "kind": "pcri", "grids": [2]}
    assert metrics(run(Model(lambda *_: "1"), [config], folder), "mine") == metrics(result, "mine")


def test_python_class_tasks(folder):
    (folder / "utils.py").write_text(
        """
from lmms_eval.api.task import ConfigurableTask
import yaml, pathlib
class Special(ConfigurableTask):
    def __init__(self, config=None):
        here = pathlib.Path(__file__).parent
        base = yaml.safe_load((here / "toy.yaml").read_text())
        base["dataset_kwargs"] = {"data_files": {"test": str(here / "toy.parquet")}}
        super().__init__(config={**base, "task": "special"})
"""
    )
    write_task(folder, "toy", rows(3))
    (folder / "special.yaml").write_text("task: special\nclass: !function utils.Special\n")
    result = run(Model(lambda *_: "1"), "special_rci2,special", folder)
    assert (
        metrics(result, "special_rci2")["exact_match"]
        == metrics(result, "special")["exact_match"]
        == pytest.approx(1 / 3)
    )


def test_native_tasks_of_the_same_run_are_asked_apart(folder):
    """Adapters that take the first request's task for a whole batch would show native docs of the wrong task."""
    write_task(folder, "toy", rows(2))
    write_task(folder, "other", rows(2, task=1))
    calls = []

    class Noting(Model):
        def generate_until(self, requests):
            calls.append({request.task_name for request in requests})
            return super().generate_until(requests)

    run(Noting(), "toy,toy_rci2,other,toy_blind", folder)
    assert calls == [{"toy_blind"}, {"toy", "other"}, {"toy_rci2"}]


def test_predict_only_speaks_of_no_index(folder, warnings, capsys):
    """Two metrics, a doc with a small image, wrong images: with scores each of these has a line."""
    data = rows(3)
    data[1]["image"] = Image.new("RGB", (1, 9))
    write_task(
        folder,
        "toy",
        data,
        process_results="!function utils.two",
        metric_list=mean_of("acc", "other"),
        metadata={"version": 0.0},
    )
    result = run(Model(), "toy_rci2", folder, predict_only=True)
    assert [line for line in warnings if "toy_rci2" in line] == []
    patch = result["results"]["toy_rci2"]["patch,none"]
    shown = labelled("toy_rci2", {"records": 3}, patch["analysis"], metric="bypass")
    assert show_warnings([shown]) == []
    run(Model(), "toy_rci2", folder)
    assert sum("index" in line for line in warnings) >= 2
    assert any("2 metrics; the index is built on the first, 'acc'" in line for line in warnings)


def test_occlude_reports_the_drop_under_the_worst_cell(folder):
    write_task(folder, "toy", rows(4))

    def answer(prompt, images):  # right on all docs, unless the first cell is grey
        pixel = np.asarray(images[0])[0, 0]
        return "x" if tuple(pixel) == (128, 128, 128) else str(np.asarray(images[0])[-1, -1, 2] if tuple(np.asarray(images[0])[-1, -1]) != (128,) * 3 else np.asarray(images[0])[0, 0, 2])  # fmt: skip

    found = metrics(run(Model(answer), "toy_occlude2", folder), "toy_occlude2")
    assert (found["exact_match"], found["exact_match_drop2"]) == (1.0, 1.0)


def test_docs_without_an_image_are_scored_in_full_and_left_out_of_the_index(folder):
    data = rows(4)
    data[2]["image"] = None
    (folder / "utils.py").write_text(
        UTILS + "\ndef maybe(doc):\n    return [doc['image'].convert('RGB')] if doc['image'] else []\n"
    )
    write_task(folder, "toy", data, doc_to_visual="!function utils.maybe")
    result = run(
        Model(lambda prompt, images: "2" if not images else "0" if images[0].size == (60, 60) else "1"),
        "toy_rci2",
        folder,
    )
    found = metrics(result, "toy_rci2")
    assert found["exact_match"] == pytest.approx(2 / 4)  # docs 0 and 2
    assert found["exact_match_mpp2"] == pytest.approx(1 / 3)  # doc 1, of docs 0, 1, 3
    assert found["gap2"] == pytest.approx(1 / 3 - 1 / 3)  # FIP over the same docs
    assert result["samples"]["toy_rci2"][2]["patch"]["excluded"] == {"2": "no image"}
    shown = labelled("toy_rci2", {**found["patch"], **found}, found["patch"]["analysis"], metric="exact_match")
    row = table([shown], 120).splitlines()[-1]
    assert row.endswith("4 (1 left out)")
    assert "0.333  0.333" in row  # FIP and MPP of docs 0, 1, 3
    assert any("over all 4 docs it is 0.500" in line for line in show_warnings([shown]))


def test_inline_profile_copies_the_fields_that_it_names(folder):
    write_task(
        folder,
        "toy",
        rows(3, scene=lambda i: f"s{i}"),
        metadata={"lmms_patch": {"cluster": "scene", "category": "question"}},
    )
    result = run(Model(), "toy_rci2", folder)
    assert result["samples"]["toy_rci2"][1]["patch"]["fields"] == {"cluster": "s1", "category": "question 1?"}


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"doc_to_visual": None}, "text-only"),
        ({"output_type": "generate_until_multi_round"}, "generate_until_multi_round"),
        ({"output_type": "loglikelihood", "generation_kwargs": None}, "loglikelihood"),
        ({"process_results": "!function utils.judged"}, "allow_judge: true"),
    ],
)
def test_what_the_config_shows_is_refused_before_anything_is_loaded(folder, config, says):
    write_task(folder, "toy", rows(2), **config)
    manager = TaskManager(verbosity="ERROR", include_path=str(folder))
    with pytest.raises(CannotWrapError) as caught:
        manager.match_tasks(["toy_rci3"])
    assert says in str(caught.value)
    assert "toy_rci3" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_judge_is_allowed_on_request_and_its_calls_are_counted(folder, warnings):
    write_task(
        folder,
        "toy",
        rows(3),
        process_results="!function utils.judged",
        metric_list=mean_of("acc"),
        metadata={"lmms_patch": {"allow_judge": True}},
    )
    run(Model(), "toy_rci2", folder)
    assert any("3 docs x 5 views, and their wrong images = 18 answers" in line for line in warnings)


@pytest.mark.parametrize(
    ("first", "limit", "says"),
    [
        (
            20,
            None,
            "none of the 20 docs asked shows an image or a video, so there is nothing to look at; if others do, raise --limit; possible for it: toy_tst5",
        ),
        (
            18,
            17,
            "none of the 17 docs asked shows an image or a video, so there is nothing to look at; if others do, raise --limit; possible for it: toy_tst5",
        ),
        (18, None, None),
    ],
)
@pytest.mark.parametrize("kind", ["rci2", "blank"])
def test_a_task_that_shows_nothing_is_refused_and_one_that_shows_something_late_is_not(
    folder, first, limit, says, kind
):
    """Twenty docs, of which the first ones have no image."""
    data = [{**one, "image": None if i < first else one["image"]} for i, one in enumerate(rows(20))]
    features = {"image": datasets.Image(), "question": datasets.Value("string"), "answer": datasets.Value("string")}
    write_task(folder, "toy", data, features, doc_to_visual="!function utils.maybe")
    model = Model()
    if says is None:
        assert len(run(model, f"toy_{kind}", folder, limit=limit)["samples"][f"toy_{kind}"]) == 20
        return
    with pytest.raises(CannotWrapError) as caught:
        run(model, f"toy_{kind}", folder, limit=limit)
    assert str(caught.value).endswith(says)
    assert not model.seen


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tou_rci3", "did you mean toy_rci3"),
        ("zzzzz_rci3", "lmms-patch tasks"),
        ("toy_rci1", "2 to 9"),
        ("toy_rci10", "2 to 9"),
        ("zz*_rci3", "no task, group or tag matches"),
        ("TOY_rci3", "did you mean toy_rci3"),
        ("toy_rcii3", r"did you mean toy_rci3\?$"),
        ("toy_RCI3", r"did you mean toy_rci3\?$"),
        ("toy-rci3", r"did you mean toy_rci3\?$"),
        ("toy_pcr3", r"did you mean toy_pcri3\?$"),
        ("toy_rciabc", r"did you mean toy_rci\?$"),
        ("toy_rci_3", r"did you mean toy_rci3\?$"),
        ("toy_rci3x3", r"did you mean toy_rci3\?$"),
        ("toyrci3", r"did you mean toy_rci3\?$"),
        ("toy_blnd", "did you mean toy_blind or toy_blank"),
        ("toy_shufle", r"did you mean toy_shuffle3\?$"),
        ("toy_tst_5", r"did you mean toy_tst5\?$"),
        ("tooy_rcii3", r"did you mean toy_rci3\?$"),
        ("mosaic_*_rcii3", r"did you mean mosaic_\*_rci3 or"),
    ],
)
def test_wrong_names(folder, name, says):
    write_task(folder, "toy", rows(2))
    manager = TaskManager(verbosity="ERROR", include_path=str(folder))
    with pytest.raises(UnknownNameError, match=says):
        manager.match_tasks([name])


@pytest.mark.parametrize("name", ["toy_rcii3", "toy-rci3", "toy_pcr3"])
def test_a_misspelled_suffix_from_python_and_on_the_command_line(folder, name, monkeypatch, capsys):
    """The same line: as an exception before the model is asked, and on stderr with exit status 2."""
    write_task(folder, "toy", rows(2))
    model = Model()
    with pytest.raises(UnknownNameError) as caught:
        run(model, name, folder)
    assert not model.seen
    assert "\n" not in str(caught.value)
    manager = TaskManager(verbosity="ERROR", include_path=str(folder))
    monkeypatch.setattr("lmms_patch.harness.refuse.on_command_line", lambda: True)
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        manager.match_tasks(["toy", name])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"lmms-patch: {caught.value}\n"


def test_names_wildcards_and_precedence(folder):
    for name in ("toy_a", "toy_b", "toy_b_rci3"):
        write_task(folder, name, rows(2))
    manager = TaskManager(verbosity="ERROR", include_path=str(folder))
    assert manager.match_tasks(["toy_*_rci2"]) == ["toy_a_rci2", "toy_b_rci2", "toy_b_rci3_rci2"]
    assert manager.match_tasks(["toy_b_rci3"]) == ["toy_b_rci3"]
    assert not isinstance(load(folder, "toy_b_rci3"), WrappedTask)  # a name that exists wins as it is
    assert isinstance(load(folder, "toy_a_rci3"), WrappedTask)
    assert manager.match_tasks(["toy_a", "toy_a_blind", "toy_a"]) == ["toy_a", "toy_a_blind"]
    assert "mosaic_local" in manager.all_tasks
    assert "mosaic_local_rci3" not in manager.all_tasks


def test_coordinates_are_refused_for_cells_only():
    manager = TaskManager(verbosity="ERROR")
    with pytest.raises(CannotWrapError, match="a box or a point"):
        manager.match_tasks(["refcoco_bbox_rec_val_rci3"])
    assert manager.match_tasks(["refcoco_bbox_rec_val_blind"]) == ["refcoco_bbox_rec_val_blind"]


# --- the host's interface -----------------------------------------------------------------------


OVERRIDDEN = {
    # what the model is shown
    "dataset", "doc_to_visual", "doc_to_messages", "build_all_requests", "instances",
    # what is scored
    "apply_filters", "process_results", "aggregation", "higher_is_better", "override_metric",
    # the docs that are scored: the rows of the base, each with its number
    "eval_docs", "eval_docs_no_media", "doc_iterator", "test_docs", "validation_docs",
    # the settings
    "config", "set_config", "dump_config", "task_name", "VERSION", "OUTPUT_TYPE", "args",
    # methods that ``Task`` defines, so that they would hide the base's: handed on unchanged
    "download", "training_docs", "fewshot_docs", "has_training_docs", "has_validation_docs", "has_test_docs",
    "fewshot_examples", "fewshot_context", "doc_to_text", "doc_to_target", "doc_to_decontamination_query",
    "construct_requests", "count_bytes", "set_fewshot_seed", "DATASET_PATH", "DATASET_NAME",
}  # fmt: skip
"""Public attributes of a task that a wrapped task defines itself."""

DELEGATED = {
    "CONFIG", "dataset_no_image", "doc_to_choice", "features", "get_config", "model_name", "multiple_input",
    "multiple_target", "sampler", "should_decontaminate", "task_docs", "test_docs_no_media", "validation_docs_no_media",
    "lmms_eval_specific_kwargs", "model_specific_generation_kwargs", "model_specific_target_kwargs", "fewshot_rnd", "all_dataset",
}  # fmt: skip
"""Public attributes of a task that reach the base through ``__getattr__``."""


def test_every_public_attribute_of_a_task_is_overridden_or_delegated(folder):
    write_task(folder, "toy", rows(2))
    for chat in (False, True):
        task = load(folder, "toy_rci2", chat=chat)
        public = {name for name in dir(task._base) if not name.startswith("_")}
        known = OVERRIDDEN | compat.HANDED_ON | DELEGATED
        assert public <= known, f"neither overridden nor delegated: {sorted(public - known)}"
        for name in (OVERRIDDEN - compat.HANDED_ON) & public:
            assert (
                name in WrappedTask.__dict__
                or name in Delegate.__dict__
                or name in task.__dict__
                or name in ("config", "instances")
            ), f"{name} is not overridden"


def test_installing_twice_changes_nothing():
    from lmms_eval import evaluator
    from lmms_eval.caching.response_cache import ResponseCache
    from lmms_eval.loggers.evaluation_tracker import EvaluationTracker
    from lmms_eval.loggers.swanlab_logger import SwanLabLogger
    from lmms_eval.loggers.wandb_logger import WandbLogger
    from lmms_eval.protocol import ChatMessages

    from lmms_patch.harness.plugin import install, patch_runs

    classes = (TaskManager, ResponseCache, EvaluationTracker, WandbLogger, SwanLabLogger, ChatMessages)
    owners = {**{one.__name__: one for one in classes}, "lmms_eval.evaluator": evaluator}
    assert set(owners) == set(compat.PATCHED)
    patch_runs()
    before = {(name, f): getattr(owner, f) for name, owner in owners.items() for f in compat.PATCHED[name]}
    install()
    patch_runs()
    assert {(name, f): getattr(owners[name], f) for name, f in before} == before
    assert all(hasattr(function, "__wrapped__") for function in before.values())


@pytest.mark.parametrize("version", ["0.7.2", "0.7rc3", "0.8.0", "1.0", "unknown"])
def test_another_version_is_used_where_it_has_the_functions(monkeypatch, warnings, version):
    monkeypatch.setattr(compat, "host_version", lambda: version)
    compat._tell_version.cache_clear()
    compat.check_host("TaskManager")
    compat.check_host("TaskManager")
    (line,) = warnings
    assert (
        f"works with lmms-eval from 0.7.3 on, before 0.8; the installed {version} has every function that it needs"
        in line
    )
    assert '"lmms-eval>=0.7.3,<0.8"' in (ROOT / "pyproject.toml").read_text()


def test_a_cache_whose_keys_leave_options_out_is_refused(monkeypatch):
    from lmms_eval.caching import response_cache

    monkeypatch.setattr(response_cache, "compute_cache_key", lambda request_type, task_name: "")
    with pytest.raises(PatchError, match="compute_cache_key has other parameters"):
        compat.check_host(*compat.HOMES)


def test_random_state_is_left_as_it_was():
    from lmms_patch.harness.wrap.scorer import own_stream

    random.seed(1)
    np.random.seed(1)
    expected = random.random(), np.random.random()
    random.seed(1)
    np.random.seed(1)
    with own_stream("x"):
        random.random()
        np.random.random()
    assert (random.random(), np.random.random()) == expected


# --- what was shown, for those who compare runs ---------------------------------------------------


def _shown(data, folder, tasks="toy_rci2,toy_blind", model=None, **more):
    """The digests of images that a run writes, and its results."""
    write_task(folder, "toy", data)
    found = run(model or Model(), tasks, folder, **more)
    return metrics(found, tasks.split(",")[0])["patch"]["made"], found


def test_a_run_says_which_images_it_showed(tmp_path):
    plain = rows(6)
    first, results = _shown(plain, tmp_path / "a")
    assert len({sample["patch"]["images"] for sample in results["samples"]["toy_rci2"]}) == 6
    blind = metrics(results, "toy_blind")["patch"]["made"]
    assert (blind["images"], blind["image_sizes"]) == (None, None)
    assert all(sample["patch"].get("images") is None for sample in results["samples"]["toy_blind"])
    chat, _ = _shown(plain, tmp_path / "b", tasks="toy_rci3", model=ChatModel())
    assert [chat[key] for key in ("image_sizes", "images")] == [
        first[key] for key in ("image_sizes", "images")
    ]  # of the docs, not of their views
    brighter = [{**row, "image": row["image"].point(lambda value: min(255, value + 9))} for row in plain]
    other, _ = _shown(brighter, tmp_path / "c", tasks="toy_rci2")
    assert (other["image_sizes"] == first["image_sizes"], other["images"] == first["images"]) == (True, False)
    larger = [{**row, "image": row["image"].resize((90, 60), 0)} for row in plain]
    other, _ = _shown(larger, tmp_path / "d", tasks="toy_rci2")
    assert (other["image_sizes"] == first["image_sizes"], other["images"] == first["images"]) == (False, False)


# --- scorers that look at the image ---------------------------------------------------------------

LOOKING = """
import copy, pickle

def size(doc, results):
    doc["question"] = "changed"  # in place, as TextVQA and VizWiz do
    return {"sum": sum(doc["image"].size) * (results[0] == "yes")}

def copied(doc, results):
    both = [copy.deepcopy(dict(doc)), pickle.loads(pickle.dumps(doc))]
    return {"sum": sum(one["image"].convert("L").width for one in both) * (results[0] == "yes")}

def total(items):
    return float(sum(items))
"""


@pytest.mark.parametrize("scorer", ["size", "copied"])
@pytest.mark.parametrize("given", [None, Namespace(output_path=None, process_with_media=True, reasoning_tags=None)])
def test_a_scorer_finds_the_image(tmp_path, scorer, given):
    metric = [{"metric": "sum", "aggregation": "!function utils.total", "higher_is_better": True}]
    (tmp_path / "utils.py").write_text(LOOKING)
    write_task(tmp_path, "toy", rows(4), process_results=f"!function utils.{scorer}", metric_list=metric)
    results = run(Model(lambda prompt, images: "yes"), "toy_rci2", tmp_path, cli_args=given)
    assert results["results"]["toy_rci2"]["sum,none"] == 4 * 120
    assert set(results["samples"]["toy_rci2"][0]["doc"]) == {"question", "answer"}
