"""Verdicts on whole runs: limits, wildcards, the level, the baseline."""

import numpy as np
import pytest

from tests.gate.running import DROP, VALUE, copied, refused
from tests.making import lean
from tests.making.runs import again_run, write_run

# --- limits of the number itself --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "status", "call"),
    [
        ({"metric": "fip", "min": 0.7}, 0, "pass"),
        ({"metric": "fip", "min": 0.9}, 1, "fail"),
        ({"metric": "fip", "min": 0.8}, 3, "inconclusive"),
        ({"metric": "fip", "min": 0.8, "inconclusive": "warn"}, 0, "inconclusive"),
        ({"metric": "fip", "min": 0.8, "margin": 0.1}, 0, "pass"),
        ({"metric": "fip", "min": 0.81, "interval": False}, 1, "fail"),
        ({"metric": "fip", "max": 0.9}, 0, "pass"),
        ({"metric": "fip", "min": 0.7, "max": 0.9}, 0, "pass"),
        ({"metric": "fip", "min": 0.7, "max": 0.71}, 1, "fail"),
        ({"metric": "rci2", "min": 0.1, "max": 0.4}, 0, "pass"),
        ({"metric": "pcri2", "min": 0.5}, 1, "fail"),
        ({"metric": "rci2", "absolute": True, "max": 0.4}, 0, "pass"),
        ({"metric": "gap2", "min": 0.1}, 0, "pass"),
        ({"metric": "ceiling", "min": 0.5}, 3, "inconclusive"),
        ({"metric": "ceiling", "min": 0.5, "interval": False}, 0, "pass"),
        ({"metric": "ceiling", "max": 0.5}, 1, "fail"),
        ({"min_docs": 400}, 0, "pass"),
        ({"min_docs": 401}, 1, "fail"),
        ({"max_excluded": 0}, 0, "pass"),
    ],
)
def test_a_limit(asked, run, rule, status, call):
    ended = asked(run, rule)
    assert (ended.status, ended.calls) == (status, [call])


def test_the_verdict_shows_all_that_it_is_made_of(asked, run, tmp_path):
    one = asked(run, {"name": "n", **DROP}, baseline=copied(run)).of()
    assert (one["rule"], one["task"], one["model"], one["baseline_model"], one["metric"]) == (
        "n",
        "toy_rci2",
        "m",
        "m",
        "fip",
    )
    assert (one["least"], one["most"]) == (-0.02, None)
    assert one["value"]["value"] == one["baseline"]
    assert one["level"] == 0.95
    assert one["difference"]["value"] == 0
    assert one["basis"] == "paired"


def test_an_index_near_chance_fails_with_its_reason(asked, tmp_path):
    lean.write(tmp_path / "run", [lean.task(*lean.scored(200, 0.27, 0.3, 0))])
    ended = asked(tmp_path / "run", {"metric": "rci2", "max": 5, "inconclusive": "warn"})
    assert ended.calls == ["fail"]
    assert "near chance" in ended.of()["reason"]


@pytest.mark.parametrize(("n", "call"), [(40, "inconclusive"), (80, "pass")])
def test_all_right_on_few_docs_is_not_believed(asked, tmp_path, n, call):
    """0.025^(1/40) = 0.912 and 0.025^(1/80) = 0.955."""
    lean.write(tmp_path / "run", [lean.task(np.ones(n), np.ones(n))])
    ended = asked(tmp_path / "run", {"metric": "fip", "min": 0.95})
    assert ended.calls == [call]
    assert ended.of()["value"]["low"] == pytest.approx(0.025 ** (1 / n))


def test_text_only_cross_validation(asked, tmp_path):
    lean.write(tmp_path / "run", [lean.stressed(accuracy=0.35), lean.task(*lean.scored(400, 0.8, 0.6, 0))])
    ended = asked(
        tmp_path / "run",
        {"metric": "tst_over_chance", "max": 0.2},
        {"metric": "tst_over_chance", "max": 0.0},
        {"metric": "tst", "max": 0.5},
    )
    assert ended.calls == ["pass", "fail", "pass"]
    assert "leaves out toy_rci2 of m: no tst_over_chance" in ended.out
    again = asked(
        tmp_path / "run",
        {"metric": "tst_over_chance", "max_rise": 0, "margin": 0.02},
        baseline=copied(tmp_path / "run"),
    )
    assert (again.of()["basis"], again.calls) == ("unpaired", ["pass"])


# --- wildcards and the correction -------------------------------------------------------------------


def test_wildcards_pick_tasks_models_and_metrics(asked, many):
    everything = asked(many, {"metric": "*", "min": -1, "interval": False})
    assert {one["task"] for one in everything.json["verdicts"]} == {"apple_rci2", "pear_rci2"}
    names = [
        one["metric"] for one in everything.json["verdicts"] if (one["task"], one["model"]) == ("apple_rci2", "one")
    ]
    assert names == ["score", "chance", "ceiling", "mpp2", "rci2", "gap2"]  # fip and acc are score, so once
    for rule, expected in (
        ({"task": "apple*"}, {("apple_rci2", "one"), ("apple_rci2", "two")}),
        ({"model": ["two", "three"]}, {("apple_rci2", "two"), ("pear_rci2", "two")}),
        ({"base": "p?ar", "model": "one"}, {("pear_rci2", "one")}),
    ):
        ended = asked(many, {**rule, "metric": "fip", "min": 0.5})
        assert {(one["task"], one["model"]) for one in ended.json["verdicts"]} == expected


def test_the_level_holds_over_all_that_a_rule_matches(asked, many):
    ended = asked(
        many,
        {"metric": "fip", "min": 0.5},
        {"metric": "[fm]*", "min": 0.1, "task": "apple*", "min_docs": 5, "level": 0.9},
    )
    levels = {
        rule: {one["level"] for one in ended.json["verdicts"] if one["rule"] == rule} for rule in ("rule 0", "rule 1")
    }
    assert levels == {"rule 0": {1 - 0.05 / 4}, "rule 1": {1 - 0.1 / 4, None}}


DIFFERENCES = [{"metric": "fip", "max_drop": 0}, {"metric": "rci2", "max_rise": 0}, {"metric": "[gm]*", "max_drop": 0}]


def levels(ended):
    return {(one["metric"], one["primary"]): one["level"] for one in ended.json["verdicts"] if one["difference"]}


def test_one_number_of_a_comparison_carries_the_claim_and_the_others_are_corrected_together(asked, run):
    """fip by itself; rci2, mpp2 and gap2 together, whichever rule they are from; the limit of a number by itself."""
    ended = asked(run, *DIFFERENCES, {"metric": "fip", "min": 0.5}, baseline=copied(run))
    three = pytest.approx(1 - 0.05 / 3)
    assert levels(ended) == {
        ("fip", True): 0.95,
        ("rci2", False): three,
        ("mpp2", False): three,
        ("gap2", False): three,
    }
    assert (ended.of("rule 3")["primary"], ended.of("rule 3")["level"]) == (None, 0.95)
    assert {(one["metric"], one["primary"]) for one in ended.json["verdicts"]} >= {("fip", True), ("rci2", False)}


def test_several_comparisons_share_the_level_of_their_primary_numbers(asked, many):
    """Two tasks of two models: four comparisons, with two other numbers each."""
    rules = [
        *DIFFERENCES[:2],
        {"metric": "mpp2", "max_drop": 0, "level": 0.9},
        {"metric": "fip", "max_drop": 0.1, "level": 0.9},
    ]
    ended = asked(many, *rules, baseline=copied(many))
    found = {one["rule"]: one["level"] for one in ended.json["verdicts"]}
    expected = {
        "rule 0": 1 - 0.05 / 4,
        "rule 1": 1 - 0.05 / 8,
        "rule 2": 1 - 0.1 / 8,
        "rule 3": 1 - 0.1 / 4,
    }
    assert found == {name: pytest.approx(level) for name, level in expected.items()}


def test_the_newest_result_counts(asked, run):
    lean.write(run, [lean.task(*lean.scored(400, 0.5, 0.4, 1))], date="2026-03-01")
    ended = asked(run, {"metric": "fip", "min": 0.7})
    assert ended.status == 1
    assert "1 older results in" in ended.out


# --- the baseline -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 30, 300])
@pytest.mark.parametrize("full", [0.8, 0.25])
def test_the_same_answers_pass_whatever_the_number_of_docs(asked, tmp_path, n, full):
    """Also with 3 docs, which are too few for an interval, and near chance, where the index is not defined in either run."""
    lean.write(tmp_path / "run", [lean.task(*lean.planted(n, full, 0.6))])
    rules = [
        DROP,
        {"metric": "*2*", "max_rise": 0, "max_drop": 0},
        {"metric": "fip", "max_drop": 0, "interval": False},
    ]
    ended = asked(tmp_path / "run", *rules, baseline=copied(tmp_path / "run"))
    assert {one["metric"] for one in ended.json["verdicts"]} == {"fip", "mpp2", "rci2", "gap2"}
    assert set(ended.calls) == {"pass"}
    assert all(one["reason"].startswith("no answer changed") for one in ended.json["verdicts"])


def test_equal_numbers_are_not_the_same_answers(asked, tmp_path):
    """20 of 40 docs turn from right to wrong, 20 others from wrong to right: the number is the same, and nothing is shown."""
    first = np.arange(40) < 20
    for name, full in (("old", first), ("new", ~first)):
        lean.write(tmp_path / name, [lean.task(full, np.ones(40), gate=True)])
    ended = asked(
        tmp_path / "new", {"metric": "fip", "max_drop": 0}, {"metric": "mpp2", "max_drop": 0}, baseline=tmp_path / "old"
    )
    assert ended.calls == ["inconclusive", "pass"]  # the cells' scores are the same


def test_a_drop_and_a_rise(asked, tmp_path):
    for name, full in (("old", 0.8), ("new", 0.6)):
        lean.write(tmp_path / name, [lean.task(*lean.scored(400, full, 0.5, 0))])
    rules = [
        DROP,
        {"metric": "fip", "max_rise": 0},
        {"metric": "fip", "max_drop": 0.3},
        {"metric": "acc", "max_drop": 0.1, "max_rise": 0.1},
    ]
    assert asked(tmp_path / "new", *rules, baseline=tmp_path / "old").calls == ["fail", "pass", "pass", "fail"]
    assert asked(tmp_path / "old", *rules, baseline=tmp_path / "new").calls == ["pass", "fail", "pass", "fail"]


def test_the_steady_index_is_unpaired(asked, tmp_path):
    folder = tmp_path / "real"
    write_run(folder, {"toy_rci2": again_run(("cell", "whole"), n=150)})
    ended = asked(
        folder, {"metric": "rci2_steady", "max_rise": 0.5}, {"metric": "rci2", "max_rise": 0.5}, baseline=copied(folder)
    )
    assert [one["basis"] for one in ended.json["verdicts"]] == ["unpaired", "paired"]


def test_which_result_is_the_baseline(asked, many, tmp_path):
    other = tmp_path / "other"
    lean.write(other, [lean.task(*lean.scored(300, 0.8, 0.6, 0), name="apple_rci2")], model="third")
    refused(
        asked(other, DROP, baseline=many),
        "apple_rci2 of third could be set against several",
        "the baseline has apple_rci2 of one, apple_rci2 of two",
    )
    ended = asked(many, {**DROP, "task": "apple*"}, baseline=other)  # the only other one
    assert {one["baseline_model"] for one in ended.json["verdicts"]} == {"third"}
    same = asked(many, DROP, baseline=copied(many))
    assert all(one["baseline_model"] == one["model"] for one in same.json["verdicts"])
    refused(
        asked(many, DROP, baseline=other),
        "pear_rci2 of one has nothing to be set against; the baseline has apple_rci2 of third",
    )
    ended = asked(other, DROP, baseline=many / "one")
    assert ended.of(metric="complete", task="pear_rci2")["reason"] == "the baseline has this task, this run has not"
    assert ended.status == 1


def test_a_limit_on_a_difference_needs_a_baseline(asked, run, tmp_path):
    refused(asked(run, DROP), "rule 'rule 0' compares with a baseline; give one: --baseline DIR")
    refused(asked(run, DROP, baseline=tmp_path / "nothing"), "no such run")


# --- rules that do not go with the run --------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"task": "toy_rci3", **VALUE}, "task toy_rci3 matches nothing; there is toy_rci2"),
        ({"model": "x", **VALUE}, "model x matches nothing; there is m"),
        ({"base": "gqa*", **VALUE}, "base gqa* matches nothing; there is toy"),
        ({"kind": "tst", **VALUE}, "kind tst matches nothing; there is rci"),
        ({"metric": "fipp", "min": 0}, "fipp matches no number of toy_rci2 or the others; there is score, fip"),
        ({"metric": "rci3", "min": 0}, "rci3 matches no number"),
        ({"metric": "zz*", "min": 0}, "there is score, fip"),
    ],
)
def test_a_rule_that_finds_nothing_is_refused(asked, run, rule, said):
    refused(asked(run, rule), "gates.yaml: rule 'rule 0': ", said)
