"""The first line of a gate: the verdict with the fact that matters, the same in terminal, job summary and JUnit.

Nothing is said twice.
"""

import pytest

from lmms_patch.app.commands.gate import text
from lmms_patch.gate import outputs
from lmms_patch.gate.formats import Verdict
from lmms_patch.gate.judge import Judgement
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import printed


def number(value, low=None, high=None, n=400):
    return Estimate(value, 0.01, low, high, n, n, 1000)


def verdict(call, **about):
    """A paired verdict on GQA's accuracy: 0.690 before, 0.607 now, and a drop of 0.02 allowed."""
    given = {
        "rule": "the score does not drop",
        "task": "gqa",
        "model": "m",
        "metric": "fip",
        "value": number(0.607, 0.55, 0.66),
        "baseline": 0.69,
        "difference": number(-0.083, -0.151, -0.016, 398),
        "primary": True,
        "level": 0.95,
        "basis": "paired",
        "measure": "accuracy",
        "least": -0.02,
    }
    return Verdict(**{**given, "verdict": call, **about})


def judged(*verdicts, error=""):
    return Judgement(verdicts, (), "rules", "out", "", error)


OF_VALUE = {"difference": None, "baseline": None, "primary": None, "basis": "interval"}
COUNT = {**OF_VALUE, "level": None, "basis": "number", "least": None}


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (verdict("fail"), "FAIL gqa: accuracy 0.690 → 0.607 (-0.083, 95 % -0.151 to -0.016; allowed >= -0.02)"),
        (
            verdict("inconclusive", value=number(0.68), difference=number(-0.01, -0.051, 0.031)),
            "INCONCLUSIVE gqa: accuracy 0.690 → 0.680 (-0.010, 95 % -0.051 to +0.031; allowed >= -0.02)",
        ),
        (  # both ends
            verdict("fail", least=-0.02, most=0.5, level=1 - 0.05 / 4),
            "FAIL gqa: accuracy 0.690 → 0.607 (-0.083, 98.75 % -0.151 to -0.016; allowed >= -0.02 and <= 0.5)",
        ),
        (verdict("fail", **OF_VALUE, least=0.7), "FAIL gqa: accuracy 0.607 (95 % 0.550 to 0.660; allowed >= 0.7)"),
        (
            verdict("inconclusive", **OF_VALUE, value=number(0.607), least=0.5, reason="no interval (3 clusters)"),
            "INCONCLUSIVE gqa: accuracy 0.607 (allowed >= 0.5): no interval (3 clusters)",
        ),
        (
            verdict("fail", **OF_VALUE, measure="rci3", value=number(None), least=None, most=0.3, reason="near chance"),
            "FAIL gqa: rci3: near chance (allowed <= 0.3)",
        ),
        (
            verdict("fail", **{**COUNT, "least": 1000}, metric="n_docs", measure="n_docs", value=number(400)),
            "FAIL gqa: n_docs 400 (allowed >= 1000)",
        ),
        (
            verdict("fail", **COUNT, metric="gate", value=number(0), reason="near chance"),
            "FAIL gqa: the index can be read: no: near chance",
        ),
        (  # three decimals would read as kept: 0.69996 as 0.700, an upper end of 0.6999996 as 0.700000
            verdict("fail", **{**COUNT, "least": 0.7, "metric": "rci3"}, measure="rci3", value=number(0.69996)),
            "FAIL gqa: rci3 0.69996 (allowed >= 0.7)",
        ),
        (
            verdict("fail", **OF_VALUE, value=number(0.6, 0.55, 0.6999996), least=0.7),
            "FAIL gqa: accuracy 0.6000000 (95 % 0.5500000 to 0.6999996; allowed >= 0.7)",
        ),
        (
            verdict("inconclusive", value=number(0.68), difference=number(-0.01, -0.0204, 0.0004)),
            "INCONCLUSIVE gqa: accuracy 0.6900 → 0.6800 (-0.0100, 95 % -0.0204 to +0.0004; allowed >= -0.02)",
        ),
        (  # float error of limit and margin: 0.3 - 0.1
            verdict("fail", **OF_VALUE, value=number(0.1, 0.05, 0.15), least=0.3 - 0.1),
            "FAIL gqa: accuracy 0.100 (95 % 0.050 to 0.150; allowed >= 0.2)",
        ),
        (
            verdict("pass", **COUNT, metric="looks", value=number(1)),
            "PASS gqa: the answers depend on what is shown: yes",
        ),
    ],
)
def test_the_first_line(one, said):
    made = judged(one)
    assert outputs.headline(made) == said
    assert text(made).splitlines()[0] == said
    assert outputs.summary(made).replace("\\", "").replace("&gt;", ">").replace("&lt;", "<").startswith(said)


def test_a_warning_does_not_read_as_if_the_limit_were_kept():
    made = judged(verdict("inconclusive", warned=True, difference=number(-0.06, -0.13, 0.01)), verdict("pass"))
    said = outputs.headline(made)
    assert said == "PASS, but warned of gqa: accuracy 0.690 → 0.607 (-0.060, 95 % -0.130 to +0.010; allowed >= -0.02)"


def test_without_unicode_it_is_said_in_ascii():
    said = "FAIL gqa: accuracy 0.690 -> 0.607 (-0.083, 95 % -0.151 to -0.016; allowed >= -0.02)"
    assert printed(outputs.headline(judged(verdict("fail"))), "ascii") == said
    assert printed(outputs.headline(judged(verdict("fail"))), "cp1252") == said


def test_of_several_the_worst_comes_first():
    """Fails before the inconclusive, the primary numbers of comparisons first."""
    made = judged(
        verdict("pass", task="a"),
        verdict("inconclusive", task="b", warned=True),
        verdict("inconclusive", task="c"),
        verdict("fail", task="d", primary=False),
        verdict("fail", task="e"),
        verdict("fail", **COUNT, metric="gate", value=number(0), task="g"),
    )
    assert [one.task for one in outputs.ordered(made)] == ["e", "d", "g", "c", "b", "a"]
    assert outputs.headline(made).startswith("FAIL e: accuracy")
    assert outputs.headline(made).endswith("; allowed >= -0.02), and 2 more")


def test_a_model_is_named_where_there_are_several():
    made = judged(verdict("fail"), verdict("fail", model="n"))
    assert [outputs.fact(one, made).partition(":")[0] for one in made.verdicts] == ["gqa of m", "gqa of n"]


def test_counts_then_what_failed():
    other = verdict("fail", rule="it needs the image", measure="rci3", metric="rci3", **OF_VALUE, least=0.7)
    made = judged(verdict("pass", rule="passes"), verdict("fail"), other)
    first = "gqa: accuracy 0.690 → 0.607 (-0.083, 95 % -0.151 to -0.016; allowed >= -0.02)"
    assert text(made) == (
        f"FAIL {first}, and 1 more\n"
        "of 3 verdicts 2 fail, 1 pass (exit status 1)\n\n"
        f"fail: the score does not drop\n  {first}\n"
        "fail: it needs the image\n  gqa: rci3 0.607 (95 % 0.550 to 0.660; allowed >= 0.7)\n\n"
        "1 pass; --all lists what passed"
    )
    assert "pass: passes" in text(made, every=True)
