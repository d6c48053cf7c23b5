"""The judge, through the real openai client, against a server on loopback."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest
from loguru import logger

from lmms_patch.harness.magic.judge import Judge
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
    for name in ("OPENAI_API_URL", "OPENAI_API_KEY", "MAGIC_JUDGE"):
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
    return JudgeSettings(model="judge-7b", cache=folder, **{"timeout": 20.0, "retries": 0, **more})


def test_right_verdicts_and_what_is_sent(serve, tmp_path):
    def says(prompt, _):
        if "First steps:\n> The cup is blue." in prompt:
            return Reply("Reasoning: it says green.\nFinal judgement: YES")
        if "Steps:\n> Step 1: a" in prompt:
            return Reply("Reasoning: the second is wrong.\nStep 1: Correct\nStep 2: Incorrect")
        return RIGHT if "> a sofa" in prompt else WRONG

    server = serve(says)
    judge = Judge(settings(tmp_path))
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
    again = Judge(settings(tmp_path))
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
    assert judge.counts == {"requests": 5, "unread": 1, "asked": 1}
    assert told == []


NO_VERDICT = {
    "silent": (Reply(after=30.0), {"timeout": 0.3}, "Request timed out.", "failed"),
    "429": (Reply(status=429, message="Slow down."), {}, "Error code: 429", "failed"),
    "500": (Reply(status=500), {}, "Error code: 500", "failed"),
    "401": (Reply(status=401, message="Incorrect key: sk-loopback"), {}, "Error code: 401", "failed"),
    "404": (Reply(status=404, message="no such model"), {}, "Error code: 404", "failed"),
    "a page": (Reply(body=b"<html>hello</html>"), {}, "the server's reply is not a chat completion", "failed"),
    "no choice": (Reply(body=b'{"choices": []}'), {}, "the server's reply is not a chat completion", "failed"),
    "too long": (Reply(status=400, message="maximum context length is 512"), {}, "Error code: 400", "refused"),
    "too large": (Reply(status=413), {}, "Error code: 413", "refused"),
    "not processable": (Reply(status=422), {}, "Error code: 422", "refused"),
    "filter": (Reply("", finish="content_filter"), {}, "the question was refused: the server filtered it", "refused"),
    "filter in the middle": (
        Reply("Correctness: Correct", finish="content_filter"),
        {},
        "the question was refused",
        "refused",
    ),
    "refusal": (Reply("Sorry.", refusal="I cannot help."), {}, "the question was refused: I cannot help.", "refused"),
    "refusal in words": (Reply("I'm sorry, but I can't assist with that."), {}, "malformed: no line", "unread"),
    "thinking": (Reply("<think>It may be Correct, or Incorrect. Let me"), {}, "malformed: ", "unread"),
    "not correct": (Reply("Correctness: Not correct"), {}, "malformed: the verdict reads 'Not correct'", "unread"),
    "both": (Reply("Correctness: Correct. Correctness: Incorrect"), {}, "malformed: ", "unread"),
}
"""Answers without a verdict: the answer, settings, what is said of it, and how the question is counted."""


@pytest.mark.parametrize(("reply", "more", "said", "counted"), NO_VERDICT.values(), ids=NO_VERDICT)
def test_no_failure_becomes_a_verdict_and_the_next_question_is_asked(serve, tmp_path, told, reply, more, said, counted):
    serve(lambda prompt, _: reply if "bad" in prompt else RIGHT)
    judge = Judge(settings(tmp_path, **more))
    verdict = short(judge, "What?", "bad", "couch")
    assert verdict.value is None
    assert verdict.error.startswith(said)
    assert "sk-loopback" not in verdict.error
    assert judge.counts[counted] == 1
    assert short(judge, "What?", "sofa", "couch").value is True
    assert (judge.stopped, told) == ("", [])


def test_a_server_that_is_out_ends_the_asking_and_may_be_back(serve, tmp_path, told):
    """Refusals in between neither count nor end the row of failures: the model behind the server is dead."""
    server = serve(lambda prompt, _: Reply(status=400) if "long" in prompt else Reply(status=500))
    judge = Judge(settings(tmp_path))
    errors = [short(judge, "What?", f"{'long' if n % 2 else 'short'} {n}", "couch").error for n in range(20)]
    assert len(server.asked) == 9
    assert all(error.startswith("not asked: the judge was given up (Error code: 500") for error in errors[9:])
    assert judge.counts == {"requests": 9, "failed": 5, "refused": 4, "skipped": 11}
    assert len(told) == 1
    assert "no more is asked after 5 failures in a row: Error code: 500" in told[0]
    server.says = lambda *_: RIGHT
    back = Judge(settings(tmp_path))
    assert short(back, "What?", "short 0", "couch").value is True
    server.says = lambda *_: Reply(status=500)
    assert short(judge, "What?", "short 0", "couch").cached  # what is kept is served whatever the server does


def test_without_a_key_nothing_is_sent(serve, monkeypatch):
    server = serve(RIGHT)
    monkeypatch.delenv("OPENAI_API_KEY")
    judge = Judge(settings())
    errors = {short(judge, "What?", f"sofa {number}", "couch").error for number in range(3)}
    assert all("OPENAI_API_KEY" in error for error in errors)
    assert server.asked == []


def test_many_at_once_in_order_and_equal_ones_once(serve):
    server = serve(lambda prompt, _: Reply((RIGHT if "> even" in prompt else WRONG).content, after=0.05))
    inquiries = [
        short_inquiry("What?", f"{'odd' if number % 2 else 'even'} {number % 12}", "couch") for number in range(24)
    ]
    ticks: list[int] = []
    verdicts = Judge(settings()).many(inquiries, lambda done, of: ticks.append(of - done))
    assert [verdict.value for (verdict,) in verdicts] == [number % 2 == 0 for number in range(24)]
    assert (len(server.asked), ticks) == (12, list(reversed(range(12))))
    assert 2 <= server.most_at_once <= 8


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


def test_what_is_told_of_the_judge_has_no_credentials(monkeypatch):
    monkeypatch.setenv("OPENAI_API_URL", "https://me:secret@judge.example/v1/?key=secret")
    assert Judge(settings()).described() == {
        "model": "judge-7b",
        "address": "https://judge.example/v1",
        "sampling": {"temperature": 0.0, "max_tokens": 2048},
        "prompts": 1,
    }
