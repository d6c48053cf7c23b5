"""The judge, through lmms-eval's own provider and the real openai client, against a server on loopback."""

from __future__ import annotations

import email.utils
import multiprocessing
import os
import signal
import socket
import time
import types
from pathlib import Path

import pytest
from loguru import logger

from lmms_patch.harness.magic.judge import Judge, judge_from
from lmms_patch.harness.magic.judge_failures import failure_of
from lmms_patch.magic.score.judge_settings import JudgeSettings
from lmms_patch.magic.score.verdicts import heal_inquiry, short_inquiry
from tests.harness.magic.asked import full, heal, short, steps
from tests.harness.magic.judge_server import JudgeServer, Reply

RIGHT = Reply("Reasoning: the same.\nCorrectness: Correct")
WRONG = Reply("Reasoning: another thing.\nCorrectness: Incorrect")


@pytest.fixture
def told():
    """The lines that are logged."""
    lines: list[str] = []
    handle = logger.add(
        lambda line: lines.append(str(line).strip()), format="{level} {name} {message}", level="WARNING"
    )
    yield lines
    logger.remove(handle)


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    for name in (
        "OPENAI_API_URL",
        "OPENAI_API_KEY",
        "OPENAI_ADMIN_KEY",
        "API_TYPE",
        "MAGIC_JUDGE",
        "LLM_JUDGE_URL",
        "AZURE_API_KEY",
        "AZURE_ENDPOINT",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def serve(monkeypatch):
    """Starts a server, and names it as lmms-eval's judge."""
    open_ones = []

    def start(says) -> JudgeServer:
        server = JudgeServer(says if callable(says) else lambda *_: says).__enter__()
        open_ones.append(server)
        monkeypatch.setenv("OPENAI_API_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")
        return server

    yield start
    for server in open_ones:
        server.__exit__()


def settings(folder: Path | None = None, **more) -> JudgeSettings:
    return JudgeSettings(model="judge-7b", cache=folder, **{"timeout": 20.0, "retries": 1, "backoff": 0.01, **more})


def test_no_model_no_judge():
    assert judge_from(JudgeSettings()) is None


def test_right_verdicts_and_what_is_sent(serve, tmp_path):
    def says(prompt, _):
        if "First steps:\n> The cup is blue." in prompt:
            return Reply("Reasoning: it says green.\nFinal judgement: YES")
        if "Steps:\n> Step 1: a" in prompt:
            return Reply("Reasoning: the second is wrong.\nStep 1: Correct\nStep 2: Incorrect")
        return RIGHT if "> a sofa" in prompt else WRONG

    server = serve(says)
    judge = judge_from(settings(tmp_path))
    right = short(judge, "What is it?", "a sofa", "couch")
    assert (right.value, right.reason, right.error, right.cached, right.model) == (
        True,
        "the same.",
        "",
        False,
        "judge-7b-2024-01-01",
    )
    assert right.raw == RIGHT.content
    assert full(judge, "What is it?", "R1 shows a chair.\nAnswer: a chair", "It is a couch.").value is False
    assert heal(judge, ["The cup is blue."], ["The cup is green."], "No, it is green.").value is True
    assert [one.value for one in steps(judge, "What?", "x", ["a", "b"])] == [True, False]
    assert steps(judge, "What?", "x", []) == []
    assert short(judge, "What is it?", "  ", "couch").value is False
    assert len(server.asked) == 4
    first = server.asked[0]
    assert first.path == "/v1/chat/completions"
    assert first.headers["authorization"] == "Bearer sk-loopback"
    assert {key: value for key, value in first.payload.items() if key != "messages"} == {
        "model": "judge-7b",
        "max_tokens": 2048,
        "temperature": 0.0,
    }
    assert [message["role"] for message in first.payload["messages"]] == ["user"]
    again = judge_from(settings(tmp_path))
    kept = short(again, "What is it?", "a sofa", "couch")
    assert (kept.value, kept.reason, kept.raw, kept.cached, kept.model) == (
        True,
        right.reason,
        right.raw,
        True,
        right.model,
    )
    assert [one.value for one in steps(again, "What?", "x", ["a", "b"])] == [True, False]
    assert len(server.asked) == 4
    assert again.counts == {"cached": 2}


MALFORMED = {
    "none at all": Reply("I think the answer is fine."),
    "both words": Reply("Correctness: Correct\nCorrectness: Incorrect"),
    "another language": Reply("Begründung: dasselbe.\nKorrektheit: Richtig"),
    "empty": Reply(""),
    "null": Reply(None),
}


@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_verdict_is_asked_for_again_and_never_guessed(serve, tmp_path, reply, told):
    server = serve(lambda prompt, number: RIGHT if number == 5 else reply)
    judge = Judge(settings(tmp_path, retries=3))
    verdict = short(judge, "What is it?", "sofa", "couch")
    assert verdict.value is None
    assert verdict.error.startswith("malformed: ")
    assert verdict.error.endswith("(asked 3 times)")
    assert verdict.raw == (reply.content or "")
    prompts = [asked.prompt for asked in server.asked]
    assert len(set(prompts)) == 3  # not the same question thrice: greedy decoding would answer the same
    assert all(prompt.startswith(prompts[0]) for prompt in prompts)
    assert 'one line that reads "Correctness: Correct"' in prompts[1]
    later = short(judge, "What is it?", "sofa", "couch")  # nothing was kept; the fifth reply can be read
    assert (later.value, later.cached, len(server.asked)) == (True, False, 5)
    assert judge.counts == {"requests": 5, "malformed": 4, "unread": 1, "asked": 1}
    assert told == []


@pytest.mark.parametrize("reply", [Reply(after=30.0), Reply(drip=0.05)], ids=["silent", "a byte now and then"])
def test_a_slow_answer_is_not_waited_for(serve, reply, told):
    server = serve(reply)
    judge = Judge(settings(timeout=0.3))
    started = time.monotonic()
    verdict = short(judge, "What?", "sofa", "couch")
    assert verdict.value is None
    assert verdict.error == "no answer within 0.3 s (2 tries)"
    assert 0.6 <= time.monotonic() - started < 3
    assert len(server.asked) == 2  # and none of the client's own retries
    assert told == []  # nor the provider's own lines


def test_429_waits_as_the_server_says(serve):
    server = serve(lambda _, number: Reply(status=429, headers={"Retry-After": "1"}) if number == 1 else WRONG)
    started = time.monotonic()
    assert short(Judge(settings()), "What?", "sofa", "couch").value is False
    assert time.monotonic() - started >= 1
    assert len(server.asked) == 2


def test_spent_quota_is_not_tried_again(serve):
    server = serve(Reply(status=429, code="insufficient_quota", message="You have no money."))
    assert short(Judge(settings()), "What?", "sofa", "couch").error == "status 429: You have no money."
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "broken", [Reply(status=500), Reply(status=503), Reply(body=b"<html>hello</html>"), Reply(body=b'{"choices": []}')]
)
def test_a_server_that_recovers(serve, broken):
    server = serve(lambda _, number: broken if number == 1 else RIGHT)
    assert short(Judge(settings()), "What?", "sofa", "couch").value is True
    assert len(server.asked) == 2


def test_a_page_in_place_of_an_answer(serve):
    serve(Reply(body=b"<html>hello</html>"))
    assert (
        short(Judge(settings(retries=0)), "What?", "sofa", "couch").error
        == "the server's reply is not a chat completion"
    )


def test_connection_refused_ends_soon(monkeypatch, told, tmp_path):
    with socket.socket() as taken:  # bound and not listening: refuses
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENAI_API_URL", f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        judge = Judge(settings(tmp_path))
        verdicts = [short(judge, "What?", f"sofa {number}", "couch") for number in range(50)]
    assert {verdict.value for verdict in verdicts} == {None}
    assert verdicts[0].error.startswith("no connection to the judge: ")
    assert "refused" in verdicts[0].error
    assert verdicts[49].error.startswith("not asked: the judge was given up (no connection")
    assert judge.counts == {"requests": 10, "failed": 5, "skipped": 45}
    assert len(told) == 1
    assert "after 5 questions in a row: no connection" in told[0]


@pytest.mark.parametrize(
    ("reply", "hint"),
    [
        (
            Reply(status=401, message="Incorrect API key provided: sk-loopback"),
            "status 401: Incorrect API key provided: ***; check OPENAI_API_KEY",
        ),
        (Reply(status=404, message="no such model"), "status 404: no such model; check MAGIC_JUDGE"),
    ],
)
def test_a_wrong_key_or_model_costs_five_requests(serve, told, reply, hint):
    server = serve(reply)
    judge = Judge(settings(retries=5))
    verdicts = judge.many([short_inquiry("What?", f"sofa {number}", "couch") for number in range(100)], concurrency=1)
    assert [verdict.value for (verdict,) in verdicts] == [None] * 100
    assert verdicts[0][0].error.startswith(hint)
    assert len(server.asked) == 5
    assert len(told) == 1
    assert "sk-loopback" not in told[0]


def test_without_a_key_nothing_is_sent(serve, told, monkeypatch):
    server = serve(RIGHT)
    monkeypatch.delenv("OPENAI_API_KEY")
    judge = Judge(settings())
    errors = [short(judge, "What?", f"sofa {number}", "couch").error for number in range(3)]
    assert errors[0].startswith("no key for the judge; type: export OPENAI_API_KEY=")
    assert all(error.startswith("not asked: ") for error in errors[1:])
    assert server.asked == []
    assert len(told) == 1


def test_failures_now_and_then_do_not_end_it(serve, told):
    serve(lambda prompt, _: Reply(status=404, message="no such model") if "bad" in prompt else RIGHT)
    judge = Judge(settings(give_up=3))
    answers = ["bad 1", "bad 2", "good", "bad 3", "bad 4", "fine"]
    assert [short(judge, "What?", answer, "couch").value for answer in answers] == [None, None, True, None, None, True]
    assert (judge.sender.stopped, told) == ("", [])


REFUSALS = {
    "too long": (
        Reply(status=400, message="This model's maximum context length is 512 tokens"),
        "status 400: This model's maximum",
        1,
    ),
    "too large": (Reply(status=413), "status 413: ", 1),
    "not processable": (Reply(status=422), "status 422: ", 1),
    "filter as an error": (Reply(status=403, code="content_filter", message="filtered"), "status 403: filtered", 1),
    "length as a server error": (
        Reply(status=500, code="context_length_exceeded", message="long"),
        "status 500: long",
        1,
    ),
    "filter as a reply": (
        Reply("", finish="content_filter"),
        "the judge's server filtered the question (finish_reason content_filter)",
        1,
    ),
    "filter in the middle": (
        Reply("Correctness: Correct", finish="content_filter"),
        "the judge's server filtered the question",
        1,
    ),
    "refusal beside a text": (
        Reply("Sorry.", refusal="I cannot help with that."),
        "the judge refused the question: I cannot help with that.",
        1,
    ),
    "nothing": (Reply(None, finish="content_filter"), "malformed: the reply is empty", 3),
    "refusal in words": (Reply("I'm sorry, but I can't assist with that."), "malformed: no line", 3),
}
"""Answers that refuse a question: the answer, what is said of it, and how often such a question is sent."""


@pytest.mark.parametrize(("refusal", "said", "sent"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_is_of_one_question_alone(serve, refusal, said, sent):
    """Twelve in a row are refused; a judge whose server were out would be given up after five."""
    server = serve(lambda prompt, _: refusal if "bad" in prompt else RIGHT)
    judge = Judge(settings(retries=5))
    verdicts = [
        short(judge, "What?", answer, "couch") for answer in [*(f"bad {number}" for number in range(12)), "good"]
    ]
    assert [verdict.value for verdict in verdicts] == [None] * 12 + [True]
    assert {verdict.error[: len(said)] for verdict in verdicts[:12]} == {said}
    assert (judge.sender.stopped, len(server.asked)) == ("", 12 * sent + 1)
    assert judge.counts["refused" if sent == 1 else "unread"] == 12


def test_a_judge_that_refuses_everything_is_told_once(serve, told):
    serve(Reply(status=400, message="unknown parameter: max_tokens"))
    judge = Judge(settings())
    for number in range(12):
        assert short(judge, "What?", f"sofa {number}", "couch").value is None
    assert (judge.sender.stopped, judge.counts) == ("", {"requests": 12, "refused": 12})
    assert len(told) == 1
    assert "refused each of the first 5 questions, and is asked on: status 400: unknown parameter" in told[0]


def test_refusals_do_not_hide_an_outage(serve):
    """Servers refuse long texts by their length alone, while the model behind them is dead: five failures are in a row across refusals."""
    server = serve(lambda prompt, _: Reply(status=400) if "long" in prompt else Reply(status=500))
    judge = Judge(settings(retries=0))
    errors = [
        short(judge, "What?", f"{'long' if number % 2 else 'short'} {number}", "couch").error for number in range(20)
    ]
    assert len(server.asked) == 9
    assert all(error.startswith("not asked: the judge was given up (status 500") for error in errors[9:])


@pytest.mark.parametrize(
    "outage", [Reply(status=500), Reply(status=429), Reply(after=30.0)], ids=["500", "429", "stalled"]
)
def test_a_judge_that_was_given_up_may_be_back(serve, tmp_path, told, outage):
    server = serve(outage)
    judge = Judge(settings(tmp_path, retries=1, timeout=0.2))
    judge.many([short_inquiry("What?", f"first {number}", "couch") for number in range(10)], concurrency=1)
    assert judge.sender.stopped
    assert len(server.asked) == 5 * 2
    judge.sender.resume()  # still out: one question, with its retry, shows it
    judge.many([short_inquiry("What?", f"second {number}", "couch") for number in range(10)], concurrency=1)
    assert judge.sender.stopped
    assert len(server.asked) == 5 * 2 + 2
    assert [line.partition(": no more is asked")[2].partition(":")[0] for line in told] == [
        " after 5 questions in a row",
        ", as before",
    ]
    server.says = lambda *_: RIGHT
    judge.sender.resume()
    assert [
        one.value
        for (one,) in judge.many(
            [short_inquiry("What?", f"third {number}", "couch") for number in range(10)], concurrency=2
        )
    ] == [True] * 10
    server.says = lambda _, number: outage if number % 2 else RIGHT  # and then it takes five in a row again
    assert all(
        one.value
        for (one,) in judge.many(
            [short_inquiry("What?", f"fourth {number}", "couch") for number in range(3)], concurrency=1
        )
    )


def test_what_is_kept_is_served_after_the_end(serve, tmp_path):
    server = serve(RIGHT)
    short(Judge(settings(tmp_path)), "What?", "sofa", "couch")
    server.says = lambda *_: Reply(status=401)
    judge = Judge(settings(tmp_path, give_up=1))
    assert short(judge, "What?", "chair", "couch").value is None
    assert judge.sender.stopped
    assert short(judge, "What?", "sofa", "couch").value is True


def test_many_at_once_in_order_and_equal_ones_once(serve):
    server = serve(lambda prompt, _: Reply((RIGHT if "> even" in prompt else WRONG).content, after=0.05))
    inquiries = [
        short_inquiry("What?", f"{'odd' if number % 2 else 'even'} {number % 12}", "couch") for number in range(24)
    ]
    ticks: list[int] = []
    verdicts = Judge(settings()).many(inquiries, concurrency=4, progress=lambda: ticks.append(1))
    assert [verdict.value for (verdict,) in verdicts] == [number % 2 == 0 for number in range(24)]
    assert (len(server.asked), len(ticks)) == (12, 12)
    assert 2 <= server.most_at_once <= 4


def _ask_all(url: str, folder: Path) -> None:
    os.environ.update(OPENAI_API_URL=url, OPENAI_API_KEY="x")
    judge = Judge(settings(folder))
    for number in range(30):
        heal(judge, ["It is blue."], ["It is green."], f"It is green, {number}.")


def test_a_killed_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    stop = multiprocessing.get_context("fork").Event()

    def says(prompt, number):
        if number == 12:
            stop.set()
            return Reply(after=30.0)
        return Reply(f"Final judgement: {'YES' if number % 2 else 'NO'}")

    server = JudgeServer(says)
    run = multiprocessing.get_context("fork").Process(target=_ask_all, args=(server.url, tmp_path))
    run.start()
    with server:
        assert stop.wait(20)
        os.kill(run.pid, signal.SIGKILL)
        run.join(10)
        assert run.exitcode == -signal.SIGKILL
        assert len(server.asked) == 12
        server.says = lambda *_: Reply("Final judgement: NO")
        monkeypatch.setenv("OPENAI_API_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "another key")
        judge = Judge(settings(tmp_path))
        inquiries = [heal_inquiry(["It is blue."], ["It is green."], f"It is green, {number}.") for number in range(30)]
        verdicts = [verdict for (verdict,) in judge.many(inquiries)]
        assert len(server.asked) == 12 + 19  # eleven were judged before the end
        assert [verdict.cached for verdict in verdicts] == [True] * 11 + [False] * 19
        assert [verdict.value for verdict in verdicts] == [True, False] * 5 + [True] + [False] * 19
        Judge(settings(tmp_path)).many(inquiries)
        assert len(server.asked) == 31


@pytest.mark.parametrize("change", ["model", "tokens", "address", "prompt"])
def test_another_judge_or_prompt_is_asked_anew(serve, tmp_path, change, monkeypatch):
    server = serve(RIGHT)
    short(Judge(settings(tmp_path)), "What?", "sofa", "couch")
    more = {"model": {"model": "judge-72b"}, "tokens": {"tokens": 99}}.get(change, {})
    if change == "address":
        monkeypatch.setenv("OPENAI_API_URL", server.url + "/")
        assert short(Judge(settings(tmp_path)), "What?", "sofa", "couch").cached  # the same place
        monkeypatch.setenv("OPENAI_API_URL", server.url.replace("127.0.0.1", "localhost"))
    judge = Judge(JudgeSettings(**{"model": "judge-7b", "cache": tmp_path, "retries": 0, **more}))
    assert not short(judge, "What?" if change != "prompt" else "Which?", "sofa", "couch").cached
    assert len(server.asked) == 2


@pytest.mark.parametrize("api", ["local", "azure"])
def test_other_servers(serve, monkeypatch, api):
    server = serve(RIGHT)
    monkeypatch.setenv("LLM_JUDGE_URL", f"{server.url}/chat/completions")
    monkeypatch.setenv("AZURE_ENDPOINT", server.url.removesuffix("/v1"))
    monkeypatch.setenv("AZURE_API_KEY", "x")
    judge = Judge(settings(api=api, timeout=2.0))
    assert short(judge, "What?", "sofa", "couch").value is True
    assert judge.described()["address"].startswith("http://127.0.0.1:")
    server.says = lambda *_: Reply(status=400, message="no")
    assert short(judge, "What?", "chair", "couch").error.startswith("status 400: ")
    server.says = lambda *_: Reply(after=30.0)
    assert (
        short(Judge(settings(api=api, timeout=0.2, retries=0)), "What?", "stool", "couch").error
        == "no answer within 0.2 s"
    )


def test_what_is_told_of_the_judge_has_no_credentials(monkeypatch):
    monkeypatch.setenv("OPENAI_API_URL", "https://me:secret@judge.example/v1/?key=secret")
    assert Judge(settings()).described() == {
        "model": "judge-7b",
        "api": "openai",
        "address": "https://judge.example/v1",
        "sampling": {"temperature": 0.0, "max_tokens": 2048},
        "prompts": 1,
    }


@pytest.mark.parametrize(
    ("said", "low", "high"),
    [
        ("0.5", 0.5, 0.5),
        ("7", 7, 7),
        ("soon", None, None),
        ("", None, None),
        ("date", 25, 30),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 0),
    ],
)
def test_how_long_a_server_asks_to_wait(said, low, high):
    if said == "date":
        said = email.utils.formatdate(time.time() + 30, usegmt=True)
    response = types.SimpleNamespace(status_code=429, headers={"retry-after": said})
    error = RuntimeError("slow down")
    error.response = response
    failure = failure_of(error, 60, {})
    assert (failure.reason, failure.may_pass) == ("status 429", True)
    assert failure.retry_after is None if low is None else low <= failure.retry_after <= high


def test_an_address_that_is_none_is_not_tried_again(monkeypatch):
    monkeypatch.setenv("OPENAI_API_URL", "127.0.0.1:8000/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    judge = Judge(settings(retries=5))
    assert "check OPENAI_API_URL" in short(judge, "What?", "sofa", "couch").error
    assert judge.counts == {"requests": 1, "failed": 1}
