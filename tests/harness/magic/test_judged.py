"""MAGIC tasks with a judge: runs in-process against an OpenAI-compatible server on loopback, through lmms-eval's own client."""

import pytest

from tests.harness.magic.items import row
from tests.harness.magic.judge_server import JudgeServer, Reply
from tests.harness.toys import Model, run


@pytest.fixture
def judged(monkeypatch, tmp_path):
    """Names a judge at a server's address."""

    def at(server, **more):
        for name, value in {
            "MAGIC_JUDGE": "judge-1",
            "MAGIC_JUDGE_CACHE": str(tmp_path / "verdicts"),
            "MAGIC_JUDGE_TIMEOUT": "5",
            "MAGIC_JUDGE_RETRIES": "0",
            "OPENAI_API_URL": server.url,
            "OPENAI_API_KEY": "key",
            **more,
        }.items():
            monkeypatch.setenv(name, value)

    return at


def material(prompt):
    """What is judged: the last part of the prompt."""
    return prompt.rsplit("Now judge this one.", 1)[1]


def verdicts(prompt, number):
    """Right where the text says red; healed where it says so."""
    said = material(prompt)
    if "Final judgement" in prompt:
        return Reply(f"Reasoning: so.\nFinal judgement: {'YES' if '> Wait' in said else 'NO'}")
    output = said.split("Correct answer:")[0]
    return Reply(f"Reasoning: so.\nCorrectness: {'Correct' if 'red' in output else 'Incorrect'}")


def says(prompt, images):
    return "Wait, that thing is red. Answer: red" if "picture 0" in prompt else "Nothing to add. Answer: blue"


def test_accuracies_and_self_heal_are_the_judges(magic_data, judged):
    magic_data([row(0), row(1), row(2)])
    with JudgeServer(verdicts) as server:
        judged(server)
        found = run(Model(says), "magic,magic_selfheal")
        sent = len(server.asked)
        again = run(Model(says), "magic,magic_selfheal")
        assert len(server.asked) == sent  # every verdict is kept
    for result in (found, again):
        numbers = result["results"]["magic"]["magic,none"]["magic"]["numbers"]
        assert numbers["acc_short"]["value"] == pytest.approx(1 / 3)
        assert numbers["acc_full"]["value"] == pytest.approx(1 / 3)
        assert numbers["acc_exact"]["value"] == pytest.approx(1 / 3)
        heal = result["results"]["magic_selfheal"]["magic,none"]["magic"]
        assert heal["numbers"]["self_heal"]["value"] == pytest.approx(1 / 3)
        assert (heal["metric"], heal["judge"]) == ("self_heal", "judge-1")
        assert "no judge" not in " ".join(heal["warnings"])


def test_a_malformed_verdict_is_no_verdict_and_is_asked_again_next_time(magic_data, judged):
    magic_data([row(0), row(1), row(2)])
    broken = True

    def judge(prompt, number):
        return (
            Reply("I would rather not say.") if broken and "picture 2" in material(prompt) else verdicts(prompt, number)
        )

    with JudgeServer(judge) as server:
        judged(server)
        details = run(Model(says), "magic")["results"]["magic"]["magic,none"]["magic"]
        assert details["numbers"]["acc_short"]["value"] == pytest.approx(1 / 2)
        assert details["numbers"]["acc_short"]["n"] == 2
        assert details["counts"]["unjudged_acc_short"] == 1
        assert any("acc_short is computed over the 2 docs with a verdict" in line for line in details["warnings"])
        broken, before = False, len(server.asked)
        details = run(Model(says), "magic")["results"]["magic"]["magic,none"]["magic"]
        assert len(server.asked) - before == 2  # short and full of the one doc
        assert all("picture 2" in asked.prompt for asked in server.asked[before:])
        assert details["numbers"]["acc_short"]["value"] == pytest.approx(1 / 3)
        assert details["counts"]["unjudged_acc_short"] == 0


def test_a_dead_judge_costs_no_run(magic_data, judged):
    magic_data([row(0), row(1)])
    with JudgeServer(verdicts) as server:
        judged(server)
    result = run(Model(says), "magic")["results"]["magic"]
    details = result["magic,none"]["magic"]
    assert details["numbers"]["acc_short"]["value"] is None
    assert details["counts"]["unjudged_acc_full"] == 2
    assert result["acc_exact,none"] == 0.5


def test_an_empty_answer_is_wrong_without_asking(magic_data, judged):
    magic_data([row(0), row(1, full_answer="")])
    with JudgeServer(verdicts) as server:
        judged(server)
        details = run(Model(lambda prompt, images: ""), "magic")["results"]["magic"]["magic,none"]["magic"]
        assert not server.asked
    assert details["numbers"]["acc_short"]["value"] == 0.0
    assert (details["numbers"]["acc_full"]["value"], details["numbers"]["acc_full"]["n"]) == (0.0, 1)
    assert details["counts"]["unjudged_acc_full"] == 1
