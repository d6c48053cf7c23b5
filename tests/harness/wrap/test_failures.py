"""Calls that fail: unscored, counted, asked again.

Through the real evaluator, in-process; numbers by hand from answers that are known.
"""

from __future__ import annotations

import gc
import zlib

import numpy as np
import pytest
from lmms_eval.api.instance import GenerationResult
from loguru import logger

from lmms_patch.runs import failures
from tests.harness.failing import OPTIONS, answer_of, by_hand, cells, gold, right, view_of
from tests.harness.toys import ChatModel, Model, metrics, rows, run, write_task

FAILED = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] Error code: 500 - {'error': 'overloaded'}"


class Server(Model):
    """A model of which some calls fail; it notes which (doc, view) it was asked.

    Args:
        fails: (doc, view) -> what comes in place of an answer; "": the answer comes.
    """

    def __init__(self, fails=lambda doc, view: ""):
        super().__init__()
        self.fails, self.asked = fails, []

    def said(self, request):
        _, _, doc_to_visual, doc_id, task, split = request.args
        doc, view = view_of(doc_to_visual(self.task_dict[task][split][doc_id])[0])
        self.asked.append((doc, view))
        said = self.fails(doc, view)
        return answer_of(doc, view) if said == "" else said

    def generate_until(self, requests):
        return [self.said(request) for request in requests]

    def again(self, *arguments, **kwargs):
        """Run once more, without failures; the cache knows a model object by its address."""
        self.fails, self.asked = lambda doc, view: "", []
        # The host opens the shared cache as a file that nobody writes, which holds once the connections of the run
        # before are closed
        gc.collect()
        return run(self, *arguments, **kwargs)


def one_in_20(doc, view):
    return FAILED if zlib.crc32(f"fails {doc} {view}".encode()) % 20 == 0 else ""


@pytest.fixture
def folder(tmp_path):
    choices = {"choices": lambda i: list(OPTIONS)}
    profile = {"lmms_patch": {"format": "mc", "choices": "choices", "null": 0}}
    write_task(
        tmp_path,
        "toy",
        rows(120, answer=gold, **choices),
        metadata=profile,
        generation_kwargs={"max_new_tokens": 4, "temperature": 0},
    )
    return tmp_path


@pytest.fixture
def told():
    lines = []
    handle = logger.add(
        lambda message: lines.append((message.record["level"].name, message.record["message"])), level="INFO"
    )
    yield lines
    logger.remove(handle)


def patches(results, task):
    return {sample["doc_id"]: sample["patch"] for sample in results["samples"][task]}


def details(results, task, name="none"):
    return dict(results["results"][task][f"patch,{name}"])


# --- numbers ------------------------------------------------------------------------------------


def test_a_failed_cell_costs_its_grid_and_a_failed_full_image_everything(folder, told):
    found = run(Server(one_in_20), "toy_rci", folder)
    numbers, patch = details(found, "toy_rci"), patches(found, "toy_rci")
    lost = {doc for doc in range(120) if one_in_20(doc, "full")}
    any_failed = {doc for doc in range(120) if any(one_in_20(doc, view) for view in ["full", *cells(2), *cells(3)])}
    assert 0 < len(lost) < len(any_failed) < 120
    assert numbers["n_failed"] == len(any_failed)
    assert numbers["n_docs"] == 120 - len(lost)
    answered = [doc for doc in range(120) if doc not in lost]
    assert numbers["analysis"]["fip"]["value"] == pytest.approx(np.mean([right(doc, "full") for doc in answered]))
    for n in (2, 3):
        used = [doc for doc in answered if not any(one_in_20(doc, cell) for cell in cells(n))]
        fip, mpp = by_hand(used, n)
        grid = numbers["analysis"]["grids"][str(n)]
        assert numbers[f"n_excluded{n}"] == len(answered) - len(used) == grid["excluded"]
        assert (grid["fip"], grid["mpp"]["value"]) == pytest.approx((fip, mpp))
        assert numbers[f"rci{n}"] == pytest.approx(1 - mpp / fip)
        assert {doc for doc in range(120) if patch[doc]["excluded"].get(str(n)) == failures.REASON} == set(
            range(120)
        ) - set(used)
    calls = sum(one_in_20(doc, view) != "" for doc in range(120) for view in ["full", *cells(2), *cells(3)])
    text = " ".join(FAILED.split())
    assert numbers["analysis"]["failed"] == {
        "docs": len(any_failed), "of": 120, "calls": calls, "asked": 120 * 14, "first": len(lost), "text": text,
    }  # fmt: skip
    said = [line for level, line in told if level == "WARNING" and "have a failed call" in line]
    assert len(said) == 1
    assert f"{len(any_failed)} of 120 docs" in said[0]
    assert "only the failed calls are asked" in said[0]


def test_the_index_is_the_undisturbed_one_within_noise(folder):
    whole = metrics(run(Server(), "toy_rci2", folder), "toy_rci2")
    part = metrics(run(Server(one_in_20), "toy_rci2", folder), "toy_rci2")
    undisturbed, disturbed = (details_of["patch"] for details_of in (whole, part))
    assert undisturbed["n_failed"] == 0
    assert undisturbed["rci2_low"] < disturbed["rci2"] < undisturbed["rci2_high"]


def test_the_native_metric_is_what_the_host_prints(folder, told):
    """The plain task of the same run: failed texts are wrong answers there."""
    found = run(Server(one_in_20), "toy,toy_rci2", folder)
    plain, wrapped = (metrics(found, task)["exact_match"] for task in ("toy", "toy_rci2"))
    lost = sum(one_in_20(doc, "full") != "" for doc in range(120))
    assert (
        plain
        == wrapped
        == pytest.approx(sum(right(doc, "full") for doc in range(120) if not one_in_20(doc, "full")) / 120)
    )
    assert wrapped < details(found, "toy_rci2")["analysis"]["fip"]["value"]
    lines = [line for _, line in told if "the harness's own" in line]
    assert lines == [
        f"toy_rci2: exact_match, the harness's own, counts {lost} failed calls as wrong answers; our numbers leave them out"
    ]


# --- what is a failure --------------------------------------------------------------------------

TEXTS = (FAILED, f"\n  {FAILED}\nagain", "[LMMS_EVAL_BUDGET_EXCEEDED]", "[SAFETY_BLOCKED:finish_reason=SAFETY]", None)
NOT_FAILED = (
    "the log says [LMMS_EVAL_REQUEST_FAILED after 3 retries] Error code: 500", "[BUDGET] LMMS_EVAL_REQUEST_FAILED",
    "[ERROR] disk full", "Can not infer the answer.", "None", "", " ",
)  # fmt: skip


class Results(Server):
    """Answers as the host's chat adapters give them."""

    def said(self, request):
        return GenerationResult(text=super().said(request))


class Chat(Server, ChatModel):
    is_simple = False

    def said(self, request):
        _, doc_to_messages, _, doc_id, task, split = request.args
        (message,) = doc_to_messages(self.task_dict[task][split][doc_id])
        doc, view = view_of(next(part["url"] for part in message["content"] if part["type"] == "image"))
        said = self.fails(doc, view)
        return answer_of(doc, view) if said == "" else said


@pytest.mark.parametrize("adapter", [Server, Results, Chat])
def test_failures_in_every_form_of_an_answer(folder, adapter):
    found = run(
        adapter(lambda doc, view: TEXTS[doc] if doc < len(TEXTS) and view == "full" else ""), "toy_rci2", folder
    )
    for doc, text in enumerate(TEXTS):
        record = patches(found, "toy_rci2")[doc]
        assert record["views"][0]["failed"] == (" ".join(text.split()) if text else "no answer came (None)")
        assert record["views"][0]["scores"] == record["views"][0]["items"] == record["best"] == {}
        assert record["excluded"] == {"2": failures.REASON}
        assert "failed" not in record["views"][1]
    numbers = details(found, "toy_rci2")
    assert (numbers["n_failed"], numbers["n_docs"], numbers["n_excluded2"]) == (len(TEXTS), 120 - len(TEXTS), 0)
    right_ones = sum(right(doc, "full") for doc in range(len(TEXTS), 120))
    assert metrics(found, "toy_rci2")["exact_match"] == pytest.approx(right_ones / 120)
    assert numbers["analysis"]["fip"]["value"] == pytest.approx(right_ones / (120 - len(TEXTS)))


def test_answers_that_look_like_failures_are_answers(folder):
    found = run(
        Server(lambda doc, view: NOT_FAILED[doc % len(NOT_FAILED)] or "\t"), "toy_rci2", folder, limit=len(NOT_FAILED)
    )
    assert details(found, "toy_rci2")["n_failed"] == 0
    assert all(
        view["scores"] == {"exact_match": 0.0}
        for patch in patches(found, "toy_rci2").values()
        for view in patch["views"]
    )


def test_none_is_no_answer_where_none_is_the_gold(tmp_path):
    """The host makes the text "None" of it."""
    write_task(tmp_path, "toy", rows(20, answer=lambda i: "None"))
    found = run(Server(lambda doc, view: None if doc < 4 and view == "full" else "None"), "toy_rci2", tmp_path)
    assert details(found, "toy_rci2")["n_failed"] == 4
    assert details(found, "toy_rci2")["analysis"]["fip"]["value"] == 1.0


def test_answers_that_never_came(folder):
    """A model that stops early, also when it is asked for one answer: nobody knows whose answers came."""

    class Stops(Server):
        def generate_until(self, requests):
            return super().generate_until(requests[:-1])

    found = run(Stops(), "toy_rci2", folder, limit=60)
    numbers = details(found, "toy_rci2")
    assert (numbers["n_failed"], numbers["n_docs"], numbers["rci2"]) == (60, 0, None)
    assert {view["failed"] for view in patches(found, "toy_rci2")[59]["views"]} == {
        "the adapter gave another number of answers than requests"
    }


# --- hard cases ---------------------------------------------------------------------------------


def test_a_filter_that_cannot_read_a_failure_takes_no_answer_along(tmp_path, capsys):
    (tmp_path / "utils.py").write_text(STRICT)
    filters = [{"name": "strict", "filter": [{"function": "!function utils.Strict"}]}]
    write_task(tmp_path, "toy", rows(60, answer=gold), filter_list=filters)
    found = run(Server(lambda doc, view: FAILED if doc == 3 and view == "full" else ""), "toy_rci2", tmp_path)
    assert details(found, "toy_rci2", "strict")["n_failed"] == 1
    assert details(found, "toy_rci2", "strict")["analysis"]["fip"]["value"] == pytest.approx(
        np.mean([right(d, "full") for d in range(60) if d != 3])
    )
    assert (
        found["results"]["toy_rci2"]["exact_match,strict"] is None
    )  # the host has no number either: its filter would have ended the run
    assert "could not be scored" not in capsys.readouterr().err


STRICT = """
class Strict:
    def apply(self, resps, docs):
        assert all(resp[0] in ("ant", "bee", "cat", "dog") for resp in resps)
        return [resp[0] for resp in resps]
"""


def test_log_likelihoods(tmp_path, told, capsys):
    """One choice without a number, and one with a text: the doc has no answer.

    The host has no way to count it as a wrong one.
    """

    class Likelihoods(Server):
        def loglikelihood(self, requests):
            return [self.loss(request) for request in requests]

        def loss(self, request):
            _, choice, doc_to_visual, doc_id, task, split = request.args
            doc, view = view_of(doc_to_visual(self.task_dict[task][split][doc_id])[0])
            if doc < 2 and view == "full" and choice.strip() == OPTIONS[doc]:
                return (None, FAILED)[doc]
            return (float(choice.strip() != answer_of(doc, view)), True)

    choices = {"output_type": "multiple_choice", "doc_to_choice": list(OPTIONS), "generation_kwargs": None}
    metric = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
    write_task(
        tmp_path,
        "toy",
        rows(60, answer=lambda i: OPTIONS.index(gold(i))),
        metric_list=metric,
        doc_to_target="answer",
        **choices,
    )
    found = run(Likelihoods(), "toy_rci2", tmp_path)
    numbers = details(found, "toy_rci2")
    assert (numbers["n_failed"], numbers["n_docs"]) == (2, 58)
    assert [patches(found, "toy_rci2")[doc]["views"][0]["failed"] for doc in (0, 1)] == [
        "no answer came (None)",
        " ".join(FAILED.split()),
    ]
    fip, mpp = by_hand(range(2, 60), 2)
    assert numbers["analysis"]["fip"]["value"] == pytest.approx(fip)
    assert numbers["analysis"]["grids"]["2"]["mpp"]["value"] == pytest.approx(mpp)
    assert metrics(found, "toy_rci2")["acc"] is None
    assert [line for _, line in told if "the harness's own" in line] == [
        "toy_rci2: acc, the harness's own, is null: toy has no score for failed calls; our numbers leave them out"
    ]
    assert "could not be scored" not in capsys.readouterr().err


def test_when_every_call_fails_nothing_is_said_but_that(folder, capsys):
    found = run(Server(lambda doc, view: FAILED), "toy_rci2,toy_blank", folder, limit=40)
    for task in ("toy_rci2", "toy_blank"):
        numbers = details(found, task)
        assert (numbers["n_failed"], numbers["n_docs"]) == (40, 0)
        assert numbers["analysis"]["fip"]["value"] is None
        assert metrics(found, task)["exact_match"] is None, "0.0 would be read as a score"
    numbers = details(found, "toy_rci2")
    assert numbers["rci2"] is numbers["gap2"] is numbers["gate"] is None
    assert numbers["analysis"]["grids"]["2"]["reason"].startswith(
        "40 of 40 calls for the full image failed (more than 5.0%); type the same command again"
    )
    assert capsys.readouterr().err.count("lmms-patch:") == 0


def test_a_grid_whose_calls_fail_leaves_the_other_grid_alone(folder):
    small = set(cells(3))
    found, whole = (
        details(run(Server(fails), "toy_rci", folder), "toy_rci")
        for fails in (lambda doc, view: FAILED if view in small else "", lambda *_: "")
    )
    assert found["rci2"] == whole["rci2"]
    assert found["n_excluded2"] == 0
    assert found["n_excluded3"] == found["n_failed"] == 120
    assert found["rci3"] is found["gap3"] is None
    assert found["analysis"]["grids"]["3"]["reason"].startswith("1080 of 1080 calls for the cells of grid 3 failed")
    assert found["analysis"]["fip"]["value"] == whole["analysis"]["fip"]["value"]


@pytest.mark.parametrize(("few", "index"), [(6, True), (12, False)])
def test_above_5_percent_there_is_no_index(folder, few, index):
    """Of 120 full images: 6 are 5 %; 12 are 10 %, which is more than chance makes of 5 %."""
    found = details(
        run(Server(lambda doc, view: FAILED if doc < few and view == "full" else ""), "toy_rci2", folder), "toy_rci2"
    )
    assert found["n_failed"] == few
    assert (found["rci2"] is not None) is (found["gap2"] is not None) is index
    assert found["gate"] == 1
    if not index:
        assert found["analysis"]["grids"]["2"]["reason"].startswith(
            "12 of 120 calls for the full image failed (more than 5.0%)"
        )


class Numbered(Model):
    """Fails by doc and number of the view.

    Args:
        views: how many each doc has.
        fails: (doc, view) -> whether the call fails.
        said: what it answers else, by the same.
    """

    def __init__(self, views, fails, said):
        super().__init__()
        self.views, self.fails, self.said = views, fails, said

    def generate_until(self, requests):
        places = [divmod(int(request.args[3]), self.views) for request in requests]
        return [FAILED if self.fails(*place) else self.said(*place) for place in places]


@pytest.mark.parametrize("kind", ["blind", "blank", "shuffle3"])
def test_a_doc_with_one_view_leaves_with_it(folder, kind):
    model = Numbered(1, lambda doc, view: doc in (1, 2), lambda doc, view: gold(doc) if doc % 2 else "x")
    found = run(model, f"toy_{kind}", folder, limit=9)
    numbers = details(found, f"toy_{kind}")
    assert (numbers["n_failed"], numbers["n_docs"]) == (2, 7)
    assert numbers["analysis"]["fip"]["value"] == pytest.approx(3 / 7)  # 3, 5, 7 of 0, 3, 4, 5, 6, 7, 8
    assert metrics(found, f"toy_{kind}")["exact_match"] == pytest.approx(3 / 9)
    assert {patch["doc_id"] for patch in patches(found, f"toy_{kind}").values() if "failed" in patch["views"][0]} == {
        1,
        2,
    }


def test_pairs_leave_together(tmp_path):
    """MME's kind of metric: right where both docs of a cluster are. A doc that failed takes its partner along."""
    (tmp_path / "utils.py").write_text(PAIRS)
    metric = [{"metric": "both", "aggregation": "!function utils.both", "higher_is_better": True}]
    profile = {
        "lmms_patch": {
            "cluster": "pair",
            "category": "kind",
            "aggregation": {"both": "mme"},
            "score": "score",
            "null": 0,
        }
    }
    data = rows(40, answer=lambda i: ("yes", "no")[i % 2], pair=lambda i: f"p{i // 2}", kind=lambda i: "existence")
    write_task(tmp_path, "toy", data, metric_list=metric, process_results="!function utils.item", metadata=profile)
    wrong = {7, 12, 30}
    says = lambda doc, view: ("yes", "no")[(doc + (doc in wrong or view > 1)) % 2]  # noqa: E731 - right on the full image and on cell 1
    found = run(Numbered(5, lambda doc, view: (doc, view) in {(2, 0), (21, 3)}, says), "toy_rci2", tmp_path)
    numbers = details(found, "toy_rci2")
    assert (numbers["n_failed"], numbers["n_docs"], numbers["n_excluded2"]) == (2, 38, 2)
    assert numbers["analysis"]["fip"]["value"] == pytest.approx(accuracies(40, wrong, {2, 3}))
    assert numbers["analysis"]["grids"]["2"]["fip"] == pytest.approx(accuracies(40, wrong, {2, 3, 20, 21}))
    assert metrics(found, "toy_rci2")["both"] == pytest.approx(accuracies(40, {*wrong, 2}, set()))


def accuracies(docs, wrong, without):
    """MME's score by hand: percent of docs plus percent of pairs that are right."""
    pairs = [(i, i + 1) for i in range(0, docs, 2) if i not in without]
    return 100 * (
        np.mean([i not in wrong for pair in pairs for i in pair]) + np.mean([not wrong & set(pair) for pair in pairs])
    )


PAIRS = """
from collections import defaultdict

def item(doc, results):
    score = float(results[0] == doc["answer"])
    return {"both": {"question_id": doc["pair"], "category": doc["kind"], "score": score}}

def both(items):
    pairs = defaultdict(list)
    for one in items:
        pairs[one["question_id"]].append(one["score"])
    assert all(len(pair) == 2 for pair in pairs.values())
    scores = [score for pair in pairs.values() for score in pair]
    return 100 * (sum(scores) / len(scores) + sum(min(pair) for pair in pairs.values()) / len(pairs))
"""


# --- asked again --------------------------------------------------------------------------------


def test_the_next_run_asks_exactly_the_failed_calls(folder, tmp_path_factory):
    cache = str(tmp_path_factory.mktemp("cache"))
    model = Server(one_in_20)
    run(model, "toy_rci2", folder, use_cache=cache, limit=40)
    failed = [call for call in model.asked if one_in_20(*call)]
    assert len(model.asked) == 200
    mended = model.again("toy_rci2", folder, use_cache=cache, limit=40)
    assert sorted(model.asked) == sorted(failed)
    assert details(mended, "toy_rci2")["n_failed"] == 0
    again = model.again("toy_rci2", folder, use_cache=cache, limit=40)
    assert model.asked == []
    assert (
        patches(again, "toy_rci2")
        == patches(mended, "toy_rci2")
        == patches(run(Server(), "toy_rci2", folder, limit=40), "toy_rci2")
    )
