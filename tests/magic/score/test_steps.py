"""Steps of a run's log, to be labelled; and what the log is refused for."""

import json
from dataclasses import replace

import pytest

from lmms_patch.app.commands.magic_steps import Steps, text
from lmms_patch.errors import RecordError
from lmms_patch.magic.prompts import ask
from lmms_patch.magic.score import logs, results
from lmms_patch.magic.score.logs import Line
from lmms_patch.magic.score.response import parse
from lmms_patch.magic.score.steps import Chain, chain_of, rows, sample
from tests.making.magic import doc, write_magic_run
from tests.making.magic import record as magic_record


def list_of(path):
    return list(logs.lines(path))


TEXT = "R1 shows a dog. It is brown.\n**Answer**: brown"


@pytest.fixture
def log(tmp_path):
    docs = [doc(f"q{i}", TEXT if i else "", gold="brown", group="g") for i in range(6)]
    write_magic_run(tmp_path, {"all": docs})
    return next(tmp_path.glob("*_samples_*"))


def changed(log, **changes):
    """The log with another first line: keys of the record (or of the line, with a leading underscore)."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for key, value in changes.items():
        (lines[0] if key.startswith("_") else lines[0]["magic"])[key.removeprefix("_")] = value
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return log


def test_a_chain_is_what_the_model_said(log):
    chains = [chain_of(line) for line in list_of(log)]
    assert chains[1].steps == ("R1 shows a dog.", "It is brown.")
    assert (chains[1].item, chains[1].group, chains[1].question, chains[1].gold, chains[1].answer) == (
        "q1",
        "g",
        "What is in q1?",
        "brown",
        "brown",
    )
    assert chains[1].scored == 2
    assert chains[0].steps == ()


def test_sentences_of_the_prompt_that_an_adapter_gives_back_are_no_steps(tmp_path):
    prompt = ask("What is in q1?", 3)
    assert len(parse(prompt).steps) > 8
    docs = [doc("q1", TEXT)]
    write_magic_run(tmp_path, {"all": docs})
    log = next(tmp_path.glob("*_samples_*"))
    changed(log, _input=prompt, _filtered_resps=f"USER: {prompt} ASSISTANT:\n{TEXT}")
    (chain,) = (chain_of(line) for line in list_of(log))
    assert chain.steps[-2:] == ("R1 shows a dog.", "It is brown.")
    assert not any(sentence in step for step in chain.steps for sentence in parse(prompt).steps)
    changed(log, _input=prompt, _filtered_resps=prompt + TEXT)
    (chain,) = (chain_of(line) for line in list_of(log))
    assert (len(chain.steps), chain.scored) == (2, 2)
    changed(log, _input=[prompt])  # a conversation is no text to look for
    (chain,) = (chain_of(line) for line in list_of(log))
    assert len(chain.steps) > 8


def test_a_sample_depends_on_seed_and_ids_alone(log):
    chains = [chain_of(line) for line in list_of(log)]
    three = sample(chains, 3, 1)
    assert three == sample(chains[::-1], 3, 1)
    assert {one.item for one in three} < {one.item for one in sample(chains, 4, 1)}
    assert len({tuple(one.item for one in sample(chains, 3, seed)) for seed in range(20)}) > 3
    assert [one.item for one in sample(chains, None)] == ["q1", "q2", "q3", "q4", "q5"]  # q0 has no step


def test_rows_are_one_a_step(log):
    chains = sample([chain_of(line) for line in list_of(log)], 2)
    empty = rows(chains)
    assert [(row.item, row.step, row.annotator, row.correct, row.source) for row in empty[:2]] == [
        (chains[0].item, 1, "", None, "human"),
        (chains[0].item, 2, "", None, "human"),
    ]
    judged = rows(chains, "m", "judge", {chains[0].item: [True, None], chains[1].item: [False, True]})
    assert [row.correct for row in judged] == [1, None, 0, 1]
    assert {row.annotator for row in judged} == {"m"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 9}, "schema 9; written by another version of lmms-patch"),
        ({"used": [4]}, "with 3 boxes that names box 4"),
        ({"relevant": ["1"]}, r"magic.relevant\[0\] must be a whole number"),
        ({"boxes": True}, "magic.boxes must be a whole number"),
        ({"exact": 1}, "magic.exact must be true or false"),
        ({"variant": "some"}, 'magic.variant must be one of "all", "none", "relevant", "selfheal", not \'some\''),
        ({"item": None}, "magic.item must be a text"),
        ({"answer_found": "yes"}, "magic.answer_found must be true or false"),
        ({"id": "q1"}, "doc 'q1' is there 2 times, others 1 times"),
        ({"_magic": None}, "no 'magic' object; this is not the log of a MAGIC task"),
    ],
)
def test_a_changed_log_is_refused(log, changes, message):
    with pytest.raises(RecordError, match=message):
        list_of(changed(log, **changes))


def test_a_cut_log_is_refused(log):
    log.write_bytes(log.read_bytes()[:-9])
    with pytest.raises(RecordError, match="line 6: cut or not JSON"):
        list_of(log)


def test_a_response_in_any_form_of_the_harness():
    record = results.Record(**magic_record(doc("q", ""), "all"))
    for said in ({"filtered_resps": "a"}, {"filtered_resps": ["a"], "resps": "b"}, {"resps": [["a"]]}):
        assert Line(record, **said).response == "a"
    with pytest.raises(RecordError, match="no response"):
        assert Line(record, filtered_resps=["a", "b"]).response


def test_a_judge_without_any_verdict_leaves_nothing_to_score(tmp_path):
    lines = tuple(rows([Chain("a", "g", "Is it?", "yes", "yes", ("It is.", "So.", "Yes."), 3)], "m", "judge"))
    found = Steps("toy", lines, 1, 1, 0, 0, "m", 3, ("no answer", "malformed", *"abcde"))
    said = text(found, tmp_path / "judge.jsonl")
    assert "3 steps have no verdict (no answer; malformed; a; b; c; and 2 more reasons)" in said
    assert "score them" not in said
    assert said.endswith("there is nothing to score yet")
    assert "score them" in text(replace(found, unjudged=2, errors=("no answer",)), tmp_path / "judge.jsonl")
