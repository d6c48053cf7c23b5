"""The first line of a gate: the verdict with the fact that matters, the same in terminal, job summary and JUnit.

Nothing is said twice.
"""

import pytest

from lmms_patch.gate import outputs
from lmms_patch.gate.formats import Verdict
from lmms_patch.gate.judge import Judgement
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import printed
from tests.making.terminal import cells


def number(value, low=None, high=None, n=400):
    return Estimate(value, 0.01, low, high, n, n, 1000)


def verdict(call, **about):
    """A paired verdict on GQA's accuracy: 0.690 before, 0.607 now, and a drop of 0.02 allowed."""
    given = {
        "rule": "the score does not drop",
        "task": "gqa_rci3",
        "model": "m",
        "metric": "fip",
        "limit": "drop <= 0, margin 0.02",
        "value": number(0.607, 0.55, 0.66),
        "baseline": 0.69,
        "difference": number(-0.083, -0.151, -0.016, 398),
        "primary": True,
        "level": 0.95,
        "basis": "paired",
        "base": "gqa",
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
        (verdict("fail"), "FAIL gqa: accuracy 0.690 → 0.607 (-0.083, 95 % -0.151 to -0.016; allowed -0.02)"),
        (
            verdict("inconclusive", value=number(0.68), difference=number(-0.01, -0.051, 0.031)),
            "INCONCLUSIVE gqa: accuracy 0.690 → 0.680 (-0.010, 95 % -0.051 to +0.031; allowed -0.02)",
        ),
        (
            verdict("pass", value=number(0.7), difference=number(0.01, -0.001, 0.021)),
            "PASS gqa: accuracy 0.690 → 0.700 (+0.010, 95 % -0.001 to +0.021; allowed -0.02)",
        ),
        (  # both ends
            verdict("fail", least=-0.02, most=0.5, level=1 - 0.05 / 4),
            "FAIL gqa: accuracy 0.690 → 0.607 (-0.083, 98.75 % -0.151 to -0.016; allowed -0.02 to +0.5)",
        ),
        (  # a scale to 100, and no drop at all allowed
            verdict("fail", value=number(60.7), baseline=69.0, difference=number(-8.3, -15.1, -1.6), least=-0.0),
            "FAIL gqa: accuracy 69.000 → 60.700 (-8.300, 95 % -15.100 to -1.600; no drop allowed)",
        ),
        (  # a limit finer than three decimals
            verdict("fail", value=number(0.6892), difference=number(-0.0008, -0.0009, -0.0007), least=-0.0005),
            "FAIL gqa: accuracy 0.6900 → 0.6892 (-0.0008, 95 % -0.0009 to -0.0007; allowed -0.0005)",
        ),
        (verdict("fail", **OF_VALUE, least=0.7), "FAIL gqa: accuracy 0.607 (95 % 0.550 to 0.660; at least 0.7)"),
        (
            verdict("fail", **OF_VALUE, measure="rci3", least=None, most=-0.3),
            "FAIL gqa: rci3 0.607 (95 % 0.550 to 0.660; at most -0.3)",
        ),
        (
            verdict(
                "inconclusive", **OF_VALUE, value=number(0.607), least=0.5, most=0.7, reason="no interval (3 clusters)"
            ),
            "INCONCLUSIVE gqa: accuracy 0.607 (allowed 0.5 to 0.7): no interval (3 clusters)",
        ),
        (
            verdict(
                "fail",
                **OF_VALUE,
                measure="rci3",
                value=number(None),
                least=None,
                most=0.3,
                reason="not defined: near chance",
            ),
            "FAIL gqa: rci3: not defined: near chance (at most 0.3)",
        ),
        (
            verdict("fail", reason="12 of 400 docs are lost (3.0%, more than max_lost 1.0%)"),
            "FAIL gqa: accuracy 0.690 → 0.607 (-0.083, 95 % -0.151 to -0.016; allowed -0.02): "
            "12 of 400 docs are lost (3.0%, more than max_lost 1.0%)",
        ),
        (
            verdict("fail", **{**COUNT, "least": 1000}, metric="n_docs", value=number(400)),
            "FAIL gqa: 400 docs (at least 1000)",
        ),
        (
            verdict(
                "fail", **COUNT, most=0.05, metric="excluded", value=number(0.125), reason="50 of 400 docs at grid 3"
            ),
            "FAIL gqa: share of the docs left out 0.125 (at most 0.05): 50 of 400 docs at grid 3",
        ),
        (
            verdict("fail", **COUNT, metric="gate", value=number(0), reason="near chance"),
            "FAIL gqa: the index cannot be read: near chance",
        ),
        (  # three decimals would read as kept: 0.69996 as 0.700, an upper end of 0.6999996 as 0.700000
            verdict("fail", **{**COUNT, "least": 0.7, "metric": "rci3"}, measure="rci3", value=number(0.69996)),
            "FAIL gqa: rci3 0.69996 (at least 0.7)",
        ),
        (
            verdict("fail", **OF_VALUE, value=number(0.6, 0.55, 0.6999996), least=0.7),
            "FAIL gqa: accuracy 0.6000000 (95 % 0.5500000 to 0.6999996; at least 0.7)",
        ),
        (
            verdict("inconclusive", value=number(0.68), difference=number(-0.01, -0.0204, 0.0004)),
            "INCONCLUSIVE gqa: accuracy 0.6900 → 0.6800 (-0.0100, 95 % -0.0204 to +0.0004; allowed -0.02)",
        ),
        (  # kept, and it reads as kept
            verdict("pass", **OF_VALUE, value=number(0.75, 0.70004, 0.8), least=0.7),
            "PASS gqa: accuracy 0.750 (95 % 0.700 to 0.800; at least 0.7)",
        ),
        (
            verdict("fail", **COUNT, most=0.125, metric="excluded", value=number(0.12500125)),
            "FAIL gqa: share of the docs left out 0.125001 (at most 0.125)",
        ),
        (  # a limit in plain digits, however small, also where limit and margin leave float error: 0.3 - 0.1
            verdict("fail", **OF_VALUE, value=number(0.00003, 0.00002, 0.00004), least=None, most=0.00001),
            "FAIL gqa: accuracy 0.00003 (95 % 0.00002 to 0.00004; at most 0.00001)",
        ),
        (
            verdict("fail", **OF_VALUE, value=number(0.1, 0.05, 0.15), least=0.3 - 0.1),
            "FAIL gqa: accuracy 0.100 (95 % 0.050 to 0.150; at least 0.2)",
        ),
        (
            verdict("fail", **OF_VALUE, value=number(None), reason="12 of 400 docs are lost", least=0.5),
            "FAIL gqa: accuracy: 12 of 400 docs are lost (at least 0.5)",
        ),
        (
            verdict(
                "fail", **{**COUNT, "least": 100}, metric="n_docs", value=number(None), reason="the run does not say"
            ),
            "FAIL gqa: docs: the run does not say (at least 100)",
        ),
        (verdict("pass", **COUNT, metric="looks", value=number(1)), "PASS gqa: the answers depend on the image"),
    ],
)
def test_the_first_line(one, said):
    made = judged(one)
    assert outputs.headline(made) == said
    assert outputs.text(made).splitlines()[0] == said
    assert outputs.summary(made).partition(": ")[2].startswith((said, said.replace("|", "\\|")))
    assert (f'message="{said}"' in outputs.junit(made)) == (one.verdict != "pass")
    assert f"<system-out>{said}\n" in outputs.junit(made)


def test_a_warning_does_not_read_as_if_the_limit_were_kept():
    made = judged(
        verdict("inconclusive", warned=True, difference=number(-0.06, -0.13, 0.01)), verdict("pass", base="pope")
    )
    said = outputs.headline(made)
    assert said == "PASS, but warned of gqa: accuracy 0.690 → 0.607 (-0.060, 95 % -0.130 to +0.010; allowed -0.02)"


def test_without_unicode_it_is_said_in_ascii():
    said = "FAIL gqa: accuracy 0.690 -> 0.607 (-0.083, 95 % -0.151 to -0.016; allowed -0.02)"
    assert printed(outputs.headline(judged(verdict("fail"))), "ascii") == said
    assert printed(outputs.headline(judged(verdict("fail"))), "cp1252") == said


def far(half_widths, **about):
    """A verdict whose difference lies this many half-widths of its interval below what is allowed."""
    middle = -0.02 - 0.01 * half_widths
    return verdict("fail", difference=number(middle, middle - 0.01, middle + 0.01), **about)


def test_of_several_the_worst_comes_first():
    """Fails before the inconclusive, the primary numbers of comparisons first, then by how far beyond, in half-widths."""
    made = judged(
        verdict("pass", task="a"),
        verdict("inconclusive", task="b", warned=True),
        verdict("inconclusive", task="c"),
        far(9, task="d", primary=False),
        far(2, task="e"),
        far(3, task="f"),
        verdict("fail", **COUNT, metric="gate", value=number(0), task="g"),
    )
    assert [one.task for one in outputs.ordered(made)] == ["f", "e", "d", "g", "c", "b", "a"]
    assert outputs.headline(made).startswith("FAIL f: accuracy")
    assert outputs.headline(made).endswith("; allowed -0.02), and 3 more")


def test_a_benchmark_is_named_where_that_is_enough_and_a_model_where_there_are_several():
    made = judged(
        verdict("fail"), verdict("fail", task="gqa_blind", model="n"), verdict("fail", task="pope_rci3", base="pope")
    )
    assert [outputs.fact(one, made).partition(":")[0] for one in made.verdicts] == [
        "gqa_rci3 of m",
        "gqa_blind of n",
        "pope of m",
    ]


def test_counts_then_what_failed():
    other = verdict(
        "fail", rule="it needs the image", measure="rci3", metric="rci3", limit=">= 0.1", **OF_VALUE, least=0.7
    )
    made = judged(verdict("pass", rule="passes"), verdict("fail"), other)
    fact = "gqa: rci3 0.607 (95 % 0.550 to 0.660; at least 0.7)"
    assert outputs.text(made) == (
        "FAIL gqa: accuracy 0.690 → 0.607 (-0.083, 95 % -0.151 to -0.016; allowed -0.02), and 1 more\n"
        "of 3 verdicts 2 fail, 1 pass (exit status 1)\n\n"
        "fail: the score does not drop\n  gqa_rci3\n  fip drop <= 0, margin 0.02; the primary number; paired over 398 docs\n"
        f"fail: it needs the image\n  {fact}\n  rci3 >= 0.1\n\n"
        "1 pass; --all lists what passed"
    )
    assert "pass: passes" in outputs.text(made, every=True)
    assert max(map(len, outputs.text(made, width=60).splitlines())) <= 60


def test_wide_characters_fit_the_terminal():
    """Each of these characters takes two cells: counted as one, a line of 60 characters is up to 120 cells wide."""
    name = "这个模型不需要整张图片就能回答一半以上的问题因此它的分数不能说明它看了图"
    held = Judgement(
        (verdict("fail", base=name, rule=f"规则 {name}"), verdict("pass", rule=name)),
        (),
        "rules",
        "out",
        f"说明{name}",
        "",
    )
    shown = outputs.text(held, every=True, width=60)
    assert max(map(cells, shown.splitlines())) <= 60
    assert "".join(shown.split()) == "".join(outputs.text(held, every=True).split())
    narrow = outputs.text(held, width=5)  # no terminal is so narrow that each word has to stand alone
    assert max(map(cells, narrow.splitlines())) > 30
