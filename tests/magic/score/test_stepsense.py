import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from lmms_patch import commands
from lmms_patch.magic.score.labels import LabelError, Row, to_text
from lmms_patch.magic.score.stepsense import across, kappa, stepsense
from lmms_patch.present.terminal.stepsense import text
from tests.sizes import examples


def labels(item, verdicts, annotator="a", source="human"):
    return [label(item, step, annotator, verdict, source) for step, verdict in enumerate(verdicts, 1)]


def label(item, step, annotator, correct, source="human"):
    return Row(item=item, step=step, annotator=annotator, correct=correct, source=source)


def test_scores_by_hand():
    # x: 3 of 4 steps correct; y: 0 of 1
    score = stepsense(labels("x", [1, 1, 0, 1]) + labels("y", [0]))
    assert score.micro.value == pytest.approx(3 / 5)
    assert score.macro.value == pytest.approx((3 / 4 + 0) / 2)
    assert (score.items, score.steps, score.annotators, score.disputed, score.source) == (2, 5, ("a",), 0, "human")
    assert score.pairs == ()
    assert score.agreement is None
    assert score.micro.low is None  # two items


def test_a_step_counts_once_however_often_it_is_labelled():
    # step 1: a 1, b 0 -> 1/2; step 2: a 1 -> 1
    score = stepsense([*labels("x", [1, 1]), label("x", 1, "b", 0)])
    assert score.micro.value == pytest.approx(1.5 / 2)
    assert score.disputed == 1
    assert score.steps == 2


def test_kappa_by_hand():
    # 50 steps: both no 20, both yes 15, a no b yes 5, a yes b no 10: p_o 0.7, p_e 0.5*0.4 + 0.5*0.6 = 0.5, kappa 0.4
    verdicts = [(0, 0)] * 20 + [(0, 1)] * 5 + [(1, 0)] * 10 + [(1, 1)] * 15
    found = stepsense(labels("x", [a for a, _ in verdicts]) + labels("x", [b for _, b in verdicts], "b"))
    (pair,) = found.pairs
    assert pair.annotators == ("a", "b")
    assert pair.kappa.value == pytest.approx(0.4)
    assert pair.agreed.value == pytest.approx(0.7)
    assert pair.steps == 50
    assert found.agreement.kappa.value == pytest.approx(0.4)


def test_undefined_kappa():
    found = stepsense(labels("x", [1, 1, 1]) + labels("x", [1, 1, 1], "b"))
    assert found.pairs[0].kappa.value is None
    assert "not defined" in found.pairs[0].kappa.reason
    assert found.pairs[0].agreed.value == 1
    assert math.isnan(kappa(np.zeros(4)))
    nothing_shared = stepsense(labels("x", [1, 0]) + labels("y", [1, 0], "b"))
    assert nothing_shared.pairs == ()
    assert nothing_shared.agreement is None
    # one annotator constant, the other not: no better than chance
    assert stepsense(labels("x", [1, 1, 1]) + labels("x", [1, 0, 1], "b")).pairs[0].kappa.value == pytest.approx(0)


PAIRS = st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), min_size=2, max_size=40)


@examples(100)
@given(PAIRS)
def test_against_scikit_learn(rows):
    mine = []
    for step, (item, a, b) in enumerate(rows, 1):
        mine += [label(str(item), step, "a", int(a)), label(str(item), step, "b", int(b))]
    value = stepsense(mine, draws=2).pairs[0].kappa.value
    first, second = [a for _, a, _ in rows], [b for _, _, b in rows]
    if set(first) == set(second) and len(set(first)) == 1:
        assert value is None
    else:
        assert value == pytest.approx(cohen_kappa_score(first, second))


def test_three_annotators_pooled_by_hand():
    # a-b: 4 steps, tables (0,0) 1, (1,1) 3: p_o 1, p_e (3/4)^2 + (1/4)^2 = 0.625
    # a-c and b-c: c labels only steps 1, 2 with 1, 0 where a and b said 0, 1: p_o 0, p_e 1/2 on 2 steps each
    # pooled: p_o 4/8, p_e (4*0.625 + 2*0.5 + 2*0.5)/8 = 0.5625, kappa (0.5 - 0.5625)/0.4375 = -1/7
    found = stepsense(labels("x", [0, 1, 1, 1]) + labels("x", [0, 1, 1, 1], "b") + labels("x", [1, 0], "c"))
    assert {pair.annotators: pair.kappa.value for pair in found.pairs} == {
        ("a", "b"): 1,
        ("a", "c"): -1,
        ("b", "c"): -1,
    }
    assert found.agreement.kappa.value == pytest.approx(-1 / 7)
    assert found.agreement.steps == 8


def test_clusters_widen_the_interval():
    rng = np.random.default_rng(0)
    mine, images = [], {}
    for image in range(50):
        verdicts = rng.random(6) < rng.random()
        for question in range(4):  # four items on one image, labelled alike
            mine += labels(f"{image}-{question}", verdicts)
            images[f"{image}-{question}"] = image
    clustered, free = stepsense(mine, images), stepsense(mine)
    assert clustered.micro.clusters == 50
    assert free.micro.clusters == 200
    assert clustered.micro.se / free.micro.se == pytest.approx(2, rel=0.15)
    assert stepsense(mine, images) == clustered
    assert stepsense(mine[::-1], images).micro == clustered.micro


def test_kappa_interval_covers_the_truth():
    # truth t ~ B(1/2); each annotator flips with probability 0.1: p_o = 0.82, p_e = 0.5, kappa = 0.64
    rng = np.random.default_rng(2)
    hits, runs = 0, 60
    for _ in range(runs):
        mine = []
        for item in range(60):
            truth = rng.random(5) < 0.5
            for name in "ab":
                mine += labels(str(item), truth ^ (rng.random(5) < 0.1), name)
        estimate = stepsense(mine, draws=200).pairs[0].kappa
        hits += estimate.low <= 0.64 <= estimate.high
    assert hits / runs >= 0.86  # 0.95 less three standard errors of 60 runs


def test_judge_and_human_labels_are_never_mixed():
    with pytest.raises(LabelError, match="several sources"):
        stepsense(labels("x", [1]) + labels("x", [1], "gpt", "judge"))
    assert stepsense(labels("x", [1], "gpt", "judge")).source == "judge"


def test_other_mistakes():
    with pytest.raises(LabelError, match="no step labels"):
        stepsense([])
    with pytest.raises(LabelError, match="twice"):
        stepsense([*labels("x", [1]), *labels("x", [1])])


def test_agreement_of_people_with_a_judge_by_hand():
    # a and the judge: (0,0) 1, (1,1) 2, (1,0) 1: p_o 3/4, p_e (3/4)(2/4) + (1/4)(2/4) = 1/2, kappa 1/2; b shares one
    # step
    human = [*labels("x", [0, 1, 1, 1]), label("x", 2, "b", 1)]
    judged = labels("x", [0, 1, 1, 0], "a", "judge")  # a judge of the same name as a person
    first, second = across(human, judged, draws=200)
    assert (first.annotators, first.steps, first.kappa.value, first.agreed.value) == (
        ("a", "a"),
        4,
        pytest.approx(0.5),
        0.75,
    )
    assert (second.annotators, second.steps, second.kappa.value) == (("b", "a"), 1, None)
    assert across(human, labels("y", [1], "m", "judge")) == ()


def test_what_has_no_interval_is_said_with_the_reason(tmp_path):
    (tmp_path / "a.jsonl").write_text(to_text(label(f"q{n}", 1, who, 1) for n in range(3) for who in ("Ann", "ann")))
    lines = text(commands.magic_stepsense(tmp_path / "a.jsonl")).splitlines()
    (few,) = [line for line in lines if "no interval: 3 items are too few for an interval" in line]
    assert few.startswith(
        "mind: StepSense (micro) (human, Ann, ann), macro (human, Ann, ann), equal labels (human, Ann, ann): "
    )
    assert "mind: Cohen's kappa (human, Ann, ann): not defined on these items" in lines
    (tmp_path / "b.jsonl").write_text(to_text(label(f"q{n}", 1, "ann", n % 2) for n in range(60)))
    assert not [
        line for line in text(commands.magic_stepsense(tmp_path / "b.jsonl")).splitlines() if "interval:" in line
    ]


def test_a_crowd_has_a_score_and_no_agreement(tmp_path):
    rows = [label(f"q{n % 7}", 1, f"worker{n}", int(n % 7 == 0)) for n in range(400)]  # all pairs would take 83 GiB
    (tmp_path / "a.jsonl").write_text(to_text(rows))
    found = commands.magic_stepsense(tmp_path / "a.jsonl")
    assert found.scores[0].micro.value == pytest.approx(1 / 7)
    assert (found.scores[0].pairs, found.scores[0].agreement) == ((), None)
    said = text(found)
    assert "mind: 400 annotators: how far they agree is computed for at most 20" in said
    assert "worker17" not in said
    crowd = [label("q", 1, f"w{n}", 1) for n in range(21)]
    assert across(crowd, labels("q", [1], "m", "judge"), draws=200) == ()


def test_a_judge_that_gave_no_verdict_on_some_steps_has_bounds(tmp_path):
    """a: 1 1 0 and one open step; b: two open steps.

    Micro 2/3, between 2/6 and 5/6; macro 2/3, between (2/4 + 0) / 2 and (3/4 + 1) / 2.
    """
    judged = [*labels("a", [1, 1, 0, None], "j", "judge"), *labels("b", [None, None], "j", "judge")]
    (tmp_path / "judge.jsonl").write_text(to_text(judged))
    (tmp_path / "ann.jsonl").write_text(to_text(labels("a", [1, None], "ann")))
    found = commands.magic_stepsense([tmp_path / "ann.jsonl", tmp_path / "judge.jsonl"])
    human, judge = found.scores
    assert human.bounds is None  # what people have not labelled yet is no refusal
    assert (judge.micro.value, judge.macro.value) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert dataclasses.asdict(judge.bounds) == {
        "micro_low": pytest.approx(2 / 6),
        "micro_high": pytest.approx(5 / 6),
        "macro_low": pytest.approx((2 / 4 + 0) / 2),
        "macro_high": pytest.approx((3 / 4 + 1) / 2),
        "unjudged": 3,
    }
    assert "0.333 to 0.833 with the unjudged" in text(found)


def test_a_step_that_another_judge_labelled_is_not_open(tmp_path):
    both = [*labels("a", [1, None], "j", "judge"), label("a", 2, "k", 0, "judge")]
    (tmp_path / "judge.jsonl").write_text(to_text(both))
    assert commands.magic_stepsense(tmp_path / "judge.jsonl").scores[0].bounds is None
