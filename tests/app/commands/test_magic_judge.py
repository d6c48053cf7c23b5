"""``lmms-patch magic steps --judge`` against a server on loopback, through lmms-eval's own client."""

import json
import re

import pytest

from lmms_patch.app.cli import main
from tests.harness.magic.judge_server import JudgeServer, Reply
from tests.making.magic import doc, write_magic_run

RESPONSE = "R1 has a dog. There is a cat. It is big.\n**Answer**: dog"


def labelled(prompt):
    """Steps that speak of a cat are wrong."""
    steps = re.findall(r"^> Step (\d+): (.*)$", prompt[prompt.rindex("Steps:") :], re.M)
    return Reply("\n".join(f"Step {number}: {'Incorrect' if 'cat' in text else 'Correct'}" for number, text in steps))


@pytest.fixture
def server(monkeypatch, tmp_path):
    for name, value in {
        "NO_PROXY": "127.0.0.1",
        "OPENAI_API_KEY": "k",
        "MAGIC_JUDGE_CACHE": str(tmp_path / "cache"),
        "MAGIC_JUDGE_RETRIES": "0",
    }.items():
        monkeypatch.setenv(name, value)
    with JudgeServer(lambda prompt, number: labelled(prompt)) as found:
        monkeypatch.setenv("OPENAI_API_URL", found.url)
        yield found


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_judge_labels_the_steps_and_what_it_does_not_is_asked_again(capsys, server, tmp_path):
    write_magic_run(tmp_path / "run", {"all": [doc(f"q{i}", RESPONSE) for i in range(3)]})
    path = tmp_path / "judge.jsonl"
    command = ["magic", "steps", str(tmp_path / "run"), "--judge", "m", "--output", str(path)]
    server.says = lambda prompt, number: Reply("I cannot say.") if "in q1?" in prompt else labelled(prompt)
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "labelled by m: 6 steps" in printed
    assert "mind: 3 steps have no verdict (malformed: no line like" in printed
    found = rows(path)
    assert [row["correct"] for row in found] == [1, 0, 1, None, None, None, 1, 0, 1]
    assert {(row["source"], row["annotator"]) for row in found} == {("judge", "m")}
    assert sum("What is in q0?" in one.prompt for one in server.asked) == 1

    asked = len(server.asked)
    server.says = lambda prompt, number: labelled(prompt)
    path.unlink()
    assert main(command) == 0
    assert len(server.asked) == asked + 1  # the two others are remembered
    assert [row["correct"] for row in rows(path)] == [1, 0, 1] * 3
    capsys.readouterr()

    # a person who finds every step right: StepSense 1, the judge 2/3; the two are never mixed
    person = tmp_path / "ann.jsonl"
    labels = [{"item": f"q{i}", "step": n, "annotator": "ann", "correct": 1} for i in range(3) for n in (1, 2, 3)]
    person.write_text("".join(json.dumps(one) + "\n" for one in labels))
    assert main(["magic", "stepsense", str(person), str(path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["human", "ann", "3", "9", "1.000", "1.000"] in lines
    assert ["judge", "m", "3", "9", "0.667", "0.667"] in lines
    assert ["human", "and", "judge", "ann", "and", "m", "3", "9", "0.667", "0.000"] in lines


def test_a_judge_that_is_not_there_leaves_the_steps_unlabelled(capsys, server, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_URL", "http://127.0.0.1:9/v1")
    write_magic_run(tmp_path / "run", {"all": [doc("q0", RESPONSE)]})
    path = tmp_path / "judge.jsonl"
    assert main(["magic", "steps", str(tmp_path / "run"), "--judge", "m", "--output", str(path)]) == 1
    assert "mind: 3 steps have no verdict" in capsys.readouterr().out
    assert [row["correct"] for row in rows(path)] == [None, None, None]
