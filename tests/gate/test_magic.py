"""The gate on MAGIC tasks: numbers by hand, directions, judges, seeds, damaged files."""

import pytest

from lmms_patch.gate import rules
from tests.gate.running import gate, refused
from tests.making.runs import magic_doc, write_magic

F1 = {"metric": "magiscore_f1_macro"}


def docs(good, n=60, used_else=(2,), **more):
    """So many docs that use exactly their one relevant box and are right; the others use box 2 of 3 and are wrong.

    F1 is good / n.
    """
    return [magic_doc(f"doc {i:03}", (1,) if i < good else used_else, right=i < good, **more) for i in range(n)]


@pytest.fixture
def run(tmp_path):
    return write_magic(tmp_path / "run", {"all": docs(45), "none": docs(30)}).parent


def test_a_number_against_limits(asked, run):
    """F1 is 45/60 = 0.75 in one task; the task without boxes has none."""
    found = asked(run, {**F1, "min": 0.5}, {**F1, "min": 0.9})
    assert found.calls == ["pass", "fail"]
    assert found.json["verdicts"][0]["value"]["value"] == pytest.approx(0.75)
    assert "leaves out toy_magic_nobox" in found.out


def test_a_drop_is_paired_by_doc(asked, tmp_path):
    """45 right before, 33 of them now: the drop is 12/60, in 12 docs of one sign.

    Micro F1: TP 45 of 60, FP 15 -> 2·45/(2·45+15+15).
    """
    before, after = (
        write_magic(tmp_path / name, {"all": docs(good)}).parent for name, good in (("before", 45), ("after", 33))
    )
    found = asked(
        after,
        {**F1, "max_drop": 0},
        {"metric": "magiscore_f1_micro", "max_drop": 0.35},
        {"metric": "regions_unused", "max_rise": 0},
        baseline=before,
    )
    drop, micro, unused = found.json["verdicts"]
    assert (drop["verdict"], drop["basis"], drop["difference"]["value"]) == ("fail", "paired", pytest.approx(-0.2))
    assert (micro["basis"], micro["value"]["value"], micro["baseline"]) == (
        "paired",
        pytest.approx(33 / 60),
        pytest.approx(45 / 60),
    )
    assert (
        micro["verdict"] == "pass"
    )  # two numbers that are not primary: Clopper & Pearson at 0.975, 12 of 60: at most 0.341
    assert (unused["verdict"], unused["difference"]["value"]) == ("pass", 0)  # no doc differs in it
    assert unused["reason"].startswith("no answer changed")
    assert unused["difference"]["low"] < 0 < unused["difference"]["high"]  # of other docs up to a few percent may


def test_names_that_are_nearly_right_and_judged_ones_without_a_judge(asked, run):
    refused(asked(run, {"metric": "magiscore_f1_makro", "min": 0.5}), "magiscore_f1_makro matches no number")
    refused(asked(run, {"metric": "acc_short", "min": 0.5}), "acc_short matches no number")
    refused(asked(run, {"require": "valid gate"}), "gate matches no number")


def test_other_seeds_and_judges_are_not_set_against_each_other(asked, tmp_path):
    judged = docs(30, short=True, full=True)
    runs = {
        name: write_magic(tmp_path / name, {"all": judged}, **more).parent
        for name, more in (("a", {"judge": "x"}), ("b", {"judge": "y"}), ("c", {"judge": "x", "seed": 1}))
    }
    rule = {"metric": "acc_short", "max_drop": 0, "margin": 0.2}
    refused(asked(runs["b"], rule, baseline=runs["a"]), "was made otherwise: judge (x ")
    refused(asked(runs["c"], rule, baseline=runs["a"]), "was made otherwise: boxes shown differ")
    refused(
        asked(runs["b"], rule, baseline=runs["a"], ignore=["judge"]),
        "acc_short of toy_magic has another judge in the baseline",
    )
    assert asked(runs["b"], {**rule, "metric": "acc_exact"}, baseline=runs["a"], ignore=["judge"]).status == 0


def test_the_shipped_rules(capsys, tmp_path):
    tasks = {"all": "magic", "selfheal": "magic_selfheal"}

    def write(name, good):
        heal = [
            magic_doc(f"doc {i:03}/3-3", right=i < good, healed=i < good, short=i < good, full=True) for i in range(60)
        ]
        judged = [{**one, "short": one["exact"], "full": True} for one in docs(good)]
        return write_magic(tmp_path / name, {"all": judged, "selfheal": heal}, tasks=tasks, judge="j").parent

    before, same, worse = write("before", 50), write("same", 50), write("worse", 30)
    assert gate(capsys, tmp_path, same, "magic", before).status == 0
    found = gate(capsys, tmp_path, worse, "magic", before)
    failed = {one["rule"] for one in found.json["verdicts"] if one["verdict"] == "fail"}
    assert found.status == 1
    assert failed == {"it still looks at the right boxes", "the answers do not get worse", "it still corrects itself"}
    assert [rule.name for rule in rules.read("magic").rules if rule.of_difference] == [
        "it still looks at the right boxes", "it does not begin to use every box", "the answers do not get worse", "it still corrects itself"
    ]  # fmt: skip
    plain, earlier = (
        write_magic(tmp_path / name, {"all": docs(n), "selfheal": docs(n)}, tasks=tasks).parent
        for name, n in (("plain", 50), ("earlier", 49))
    )
    assert "self_heal matches no number of magic_selfheal" in gate(capsys, tmp_path, plain, "magic", earlier).err


def half_judged(n=60, judged=30):
    """All docs with a verdict are right; the others were too long for the judge, and wrong: the truth is judged / n."""
    return [
        magic_doc(
            f"doc {i:03}", right=i < judged, short=True if i < judged else None, full=True if i < judged else None
        )
        for i in range(n)
    ]


def test_a_number_of_which_the_judge_refused_docs_is_not_known(asked, tmp_path):
    """30 of 60 right and 30 unjudged: 30/60 at least, 60/60 at most."""
    out = write_magic(tmp_path / "run", {"none": half_judged()}, judge="j").parent
    found = asked(
        out, {"metric": "acc_full", "min": 0.36}, {"metric": "score", "max": 0.9}, {"metric": "acc_exact", "min": 0.3}
    )
    assert found.calls == ["inconclusive", "inconclusive", "pass"]
    assert found.json["verdicts"][0]["reason"].startswith("30 of 60 docs have no verdict of the judge")


def verdicts(right, judged, text, n=60):
    """So many docs, of which the first have a verdict, and the first of these are right.

    The response of each doc begins with a text.
    """
    return [
        magic_doc(f"doc {i:03}", short=i < right if i < judged else None, full=True, text=f"{text} {i}")
        for i in range(n)
    ]


def test_a_judge_that_refuses_the_wrong_answers_hides_no_drop(asked, tmp_path):
    """Before: 45 of 60 right.

    Now 40 of 50, and 10 have no verdict: between 40/60 and 50/60, so the change is -5/60 to +5/60.
    """
    before, after = (
        write_magic(tmp_path / name, {"none": docs_}, judge="j").parent
        for name, docs_ in (("before", verdicts(45, 60, "old")), ("after", verdicts(40, 50, "new")))
    )
    rules = [{"metric": "acc_short", "max_drop": 0}, {"metric": "acc_short", "max_rise": 0}]
    assert asked(after, *rules, baseline=before).calls == ["inconclusive"] * 2
    assert asked(before, *rules, baseline=after).calls == ["inconclusive"] * 2


def test_the_same_responses_pass_whatever_the_judge_refused(asked, tmp_path):
    """Half of the docs have no verdict in both runs: the same responses, so no answer changed.

    Other responses, anything may have.
    """
    before, same, other = (
        write_magic(tmp_path / name, {"none": verdicts(20, 30, text)}, judge="j").parent
        for name, text in (("before", "a"), ("same", "a"), ("other", "b"))
    )
    rule = {"metric": "acc_short", "max_drop": 0, "margin": 0.1}
    found = asked(same, rule, baseline=before)
    assert found.calls == ["pass"]
    assert found.json["verdicts"][0]["reason"].startswith("no answer changed")
    assert asked(other, rule, baseline=before).calls == ["inconclusive"]


def test_docs_without_a_gold_answer_are_not_unjudged(asked, tmp_path):
    """A third of the docs has no full gold answer: they are no part of acc_full, and no verdict is missing."""
    none = {"short": {}, "full": {"error": "no gold answer to compare with"}}
    made = [
        magic_doc(
            f"doc {i:03}",
            short=True,
            full=None if i % 3 == 0 else True,
            judge={"model": "j", **(none if i % 3 == 0 else {"short": {}, "full": {}})},
        )
        for i in range(60)
    ]
    out = write_magic(tmp_path / "run", {"none": made}, judge="j").parent
    assert asked(out, {"metric": "acc_full", "min": 0.85}).calls == ["pass"]
