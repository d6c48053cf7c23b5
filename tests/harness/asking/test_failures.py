"""What adapters give in place of an answer where a call failed: a state, and never a number; and what only looks like that."""

import logging

import pytest
from lmms_eval.api.instance import GenerationResult
from loguru import logger

from tests.harness import toys
from tests.harness.askers import PerRequest
from tests.harness.asking.test_seam import found_in
from tests.harness.toys import metrics, rows, write_task

DOCS = 12
FAILED = [doc for doc in range(DOCS) if doc % 4 == 0]


class Failing(PerRequest):
    """Fails on every view of every fourth doc, in its own way."""

    def __init__(self, fail):
        super().__init__()
        self.fail, self.before = fail, ""

    def one(self, request):
        answer = super().one(request)
        self.before = self.fail(self, answer) if request.doc_id in FAILED else answer
        return self.before


def caught(say, then):
    """Handle an exception as adapters do: say it, and go on with something."""

    def fail(model, answer):
        try:
            raise RuntimeError("no kernel image")
        except RuntimeError as error:
            say(error)
            return then(model)

    return fail


package = logging.getLogger(__name__)
EMPTY = {
    "loguru's error": lambda error: logger.error(error),
    "logging's error": lambda error: package.error(error),
    "logging's warning with the exception": lambda error: package.warning("failed", exc_info=error),
    "logging's root": lambda error: logging.error("failed: %s", error),
}
VALUES = {
    "None": None,
    "a result without text": GenerationResult(None),
    "a dict": {"error": "busy"},
    "an int": 0,
    "a bool": False,
    "a tuple": ("1", "2"),
    "bytes": b"1",
    "a list": ["1", "2", "3"],
    "an object": object(),
    "lmms-eval's text": "[LMMS_EVAL_REQUEST_FAILED after 5 retries] busy",
    "lmms-eval's budget": "[LMMS_EVAL_BUDGET_EXCEEDED]",
    "a blocked call": "[SAFETY_BLOCKED: HATE]",
    "an error": "Error: CUDA out of memory",
    "an error with its code": "Error code: 500 - busy",
}
WAYS = {
    **{name: (lambda model, answer, value=value: value) for name, value in VALUES.items()},
    **{f"an empty text, {name}": caught(say, lambda model: "") for name, say in EMPTY.items()},
    "the answer before": caught(logger.error, lambda model: model.before),
}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    write_task(folder, "toy", rows(DOCS))
    return write_task(
        folder, "named", rows(DOCS, answer=lambda i: "n/a" if i == 5 else "Error: 4" if i == 6 else str(i))
    )


def views(found, task="toy_rci2"):
    return {item["doc_id"]: item["patch"]["views"] for item in found["samples"][task]}


@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_failed_is_a_state_and_never_a_number(tasks, tmp_path, way):
    found = found_in(tmp_path, Failing(WAYS[way]), tasks, "toy_rci2")
    told = {(doc, "failed" in view, bool(view["scores"])) for doc, of_doc in views(found).items() for view in of_doc}
    assert told == {(doc, doc in FAILED, doc not in FAILED) for doc in range(DOCS)}
    assert metrics(found, "toy_rci2")["patch"]["n_failed"] == len(FAILED)


@pytest.mark.parametrize("text", ["Error: 4", ""])
def test_a_text_that_the_task_knows_or_that_no_error_stands_behind_is_an_answer(tasks, tmp_path, text):
    found = found_in(tmp_path, Failing(lambda model, answer: text), tasks, "named_rci2")
    assert not any("failed" in view for of_doc in views(found, "named_rci2").values() for view in of_doc)


class Retrying(PerRequest):
    """Has every second call fail at first, tells of it while the exception is handled, and tries again: no answer is wrong."""

    def one(self, request):
        answer = "no" if request.doc_id % 3 else super().one(request)
        if request.doc_id % 2:
            try:
                raise ConnectionError("busy")
            except ConnectionError:
                logger.warning("trying again")
        return answer


def test_an_adapter_that_tries_again_loses_no_answer(tasks, tmp_path):
    """Most of its answers are that to the request before."""
    found = found_in(tmp_path, Retrying(), tasks, "toy_rci2")
    assert not any("failed" in view for of_doc in views(found).values() for view in of_doc)


def test_an_answer_that_comes_again_and_again_is_told_and_counts(tasks, tmp_path, caplog):
    """An honest model may say N/A where a cell does not show the thing."""
    lines = []
    number = logger.add(lambda message: lines.append(message.record["message"]), level="WARNING")
    found = found_in(tmp_path, Failing(lambda model, answer: "N/A"), tasks, "toy_rci2")
    logger.remove(number)
    assert not any("failed" in view for of_doc in views(found).values() for view in of_doc)
    assert any("an answer comes again and again, 'N/A': 15 of 60" in line for line in lines)


def test_a_log_likelihood_that_is_none_is_a_state(tmp_path):
    words = {"options": lambda i: ["red", "blue"], "answer": lambda i: i % 2}
    write_task(tmp_path / "tasks", "choice", rows(DOCS, **words), output_type="multiple_choice", doc_to_choice="options", generation_kwargs=None,
               metric_list=[{"metric": "acc", "aggregation": "mean", "higher_is_better": True}])  # fmt: skip

    class Losing(toys.Model):
        def loglikelihood(self, requests):
            return [None if one.doc_id in FAILED else (1.0 + one.idx % 2, True) for one in requests]

    found = found_in(tmp_path / "out", Losing(), tmp_path / "tasks", "choice_rci2")
    assert {
        doc for doc, of_doc in views(found, "choice_rci2").items() if any("failed" in view for view in of_doc)
    } == set(FAILED)


@pytest.mark.parametrize(("answer", "said"), [("I see nothing.", True), ("7", False)])
def test_an_answer_that_comes_again_and_again_is_told_unless_it_is_a_gold(tmp_path, told, answer, said):
    write_task(tmp_path / "tasks", "toy", rows(DOCS))
    model = PerRequest()
    model.answer = lambda prompt, images: answer if len(model.asked) % 5 == 0 else f"{len(model.asked)} trees"
    toys.run(model, "toy_rci2", tmp_path / "tasks")
    lines = [line.strip() for line in told if "again and again" in line]
    assert bool(lines) == said
    assert lines in (
        [],
        [
            f"toy_rci2: an answer comes again and again, {answer!r}: 12 of 60; if no model would say so, it stands for failed calls, "
            "which are scored as wrong answers"
        ],
    )
