"""MAGIC tasks with a judge: runs in-process against an OpenAI-compatible server on loopback, through lmms-eval's own client."""

import json

import pytest
from jsonschema import Draft202012Validator

from lmms_patch.app import schemas
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
        for task in ("magic", "magic_selfheal"):
            Draft202012Validator(schemas.load("magic-details")).validate(
                json.loads(json.dumps(result["results"][task]["magic,none"]))
            )
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


def test_a_wrong_setting_of_the_judge_is_said_before_the_model_runs(magic_data, judged):
    from lmms_patch.errors import PatchError

    magic_data([row(0)])
    with JudgeServer(verdicts) as server:
        judged(server, MAGIC_JUDGE_TIMEOUT="soon")
        with pytest.raises(PatchError, match=r"MAGIC_JUDGE_TIMEOUT must be seconds above 0, .* not 'soon'"):
            run(Model(says), "magic")


def test_a_judge_that_refuses_long_answers_stalls_and_recovers(magic_data, judged):
    """Pictures 0 to 2 are right. 3 to 8 are wrong, and too long for the judge.

    At picture 9 the judge stalls; 10 and 11 are wrong and judged.

    Truth: 3 of 12. Verdicts: 3 right of 5. Unjudged: 7. So 3/12 were they all wrong, and 10/12 were they all right.
    """
    magic_data([row(number) for number in range(12)])
    well = False

    def judge(prompt, number):
        said = material(prompt)
        if well:
            return verdicts(prompt, number)
        if len(said) > 600:
            return Reply(status=400, message="This model's maximum context length is 200 tokens.")
        return Reply(after=30.0) if "picture 9?" in said else verdicts(prompt, number)

    def says(prompt, images):
        number = int(prompt.rsplit("picture ", 1)[1].partition("?")[0].partition("\n")[0])
        if 3 <= number < 9:
            return f"{'I look, and look again. ' * 60}Answer: blue{' and very blue' * 60}"
        return f"It is so. Answer: {'red' if number < 3 else 'blue'}"

    with JudgeServer(judge) as server:
        judged(server, MAGIC_JUDGE_CACHE="off", MAGIC_JUDGE_TIMEOUT="0.5")
        details = run(Model(says), "magic")["results"]["magic"]["magic,none"]["magic"]
        for name in ("acc_short", "acc_full"):
            assert details["numbers"][name]["value"] == pytest.approx(3 / 5)
            bounds = details["bounds"][name]
            assert (bounds["low"]["value"], bounds["high"]["value"], bounds["unjudged"]) == (
                pytest.approx(3 / 12),
                pytest.approx(10 / 12),
                7,
            )
            assert bounds["low"]["n"] == 12
            assert any(
                f"{name} is computed over the 5 docs with a verdict; 7 of 12 have none" in line
                and line.endswith("were all unjudged wrong it would be 0.250, were all right 0.833")
                for line in details["warnings"]
            )
        well = True
        next_model = run(Model(lambda prompt, images: "It is so. Answer: red"), "magic")["results"]["magic"][
            "magic,none"
        ]["magic"]
        assert (next_model["numbers"]["acc_full"]["value"], next_model["numbers"]["acc_full"]["n"]) == (1.0, 12)
        assert next_model["bounds"] == {}


def test_an_outage_ends_the_judging_and_the_next_model_is_judged_again(magic_data, judged):
    magic_data([row(number) for number in range(20)])
    out = True

    def judge(prompt, number):
        return Reply(status=500) if out else verdicts(prompt, number)

    with JudgeServer(judge) as server:
        judged(server)
        details = run(Model(says), "magic")["results"]["magic"]["magic,none"]["magic"]
        assert details["numbers"]["acc_full"]["value"] is None
        assert [details["bounds"]["acc_full"][end]["value"] for end in ("low", "high")] == [0.0, 1.0]
        assert 5 <= len(server.asked) <= 8  # of 40 questions; four are under way at once
        out = False
        again = run(Model(says), "magic")["results"]["magic"]["magic,none"][
            "magic"
        ]  # the same process, and the same judge
        assert (again["numbers"]["acc_full"]["n"], again["counts"]["unjudged_acc_full"]) == (20, 0)
