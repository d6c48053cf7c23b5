"""The tables of a Test-set Stress-Test: from written runs whose numbers are counted by hand, and from single numbers."""

import re

import pytest

from lmms_patch.app.cli import main
from lmms_patch.present import text_only
from lmms_patch.present.terminal.tst import categories, causes, next_steps, notes, stress_table
from lmms_patch.runs.details import TstDetails
from lmms_patch.runs.run import read
from tests.making.analyses import completed
from tests.making.results import cross_validated, result
from tests.making.tst import write_tst

NOTHING = {"value": None, "se": None, "low": None, "high": None, "n": 0, "clusters": 0, "reason": "no docs"}


def estimate(value, low=None, high=None, n=100):
    return {"value": value, "se": None, "low": low, "high": high, "n": n, "clusters": n, "reason": ""}


def grouped(accuracy=0.5, above=None, p=0.5, sd=0.01, majority=0.375):
    accuracy = accuracy if isinstance(accuracy, dict) else estimate(accuracy)
    above = above or estimate(0.125, 0.1, 0.15)
    return {"accuracy": accuracy, "sd": sd, "seeds": 3, "majority": majority, "above": above, "p": p}


def task_of(task="toy_tst5", **found):
    """A task of a results file, with some of its numbers replaced."""
    details = cross_validated(None, None, 0, 0.25, headline="none", by_grouping={"none": grouped()}, unusable={}, s=0.4)
    details |= {"categories": {}, "importance": [], "causes": []}
    details |= {"texts": {"different": 100, "repeated": 0, "conflicting": 0}, **found}
    return result("m", "toy", "tst", task=task, tst_details=completed(TstDetails, details))


def head(above, p=0.001):
    return {"by_grouping": {"none": grouped(above=above, p=p)}}


def column(table, name, row=0):
    """The cell under a header: what overlaps it."""
    header, _, *lines = table.splitlines()
    head = re.search(rf"(?<=  ){re.escape(name)}(?=  |$)", header)
    return next(
        (
            cell[0]
            for cell in re.finditer(r"\S+(?: \S+)*", lines[row])
            if cell.start() < head.end() and head.start() < cell.end()
        ),
        "",
    )


def cells(table, *names):
    """The cells of the first row under some headers."""
    return " | ".join(column(table, name) for name in names)


# --- a written run ------------------------------------------------------------------------------


def test_columns_of_a_written_run(tmp_path):
    """Source-grouped: seed 0 scores 32 of 40, seed 1 30: 31/40 = 0.775, SD (2/40)/√2 = 0.0354.

    Majority 10/40; random folds 39/40.
    """
    (made,) = read(write_tst(tmp_path)).results
    table = stress_table([made])
    assert table.splitlines()[2].split()[0] == "toy_tst5"
    assert cells(table, "metric", "diagnostic", "docs", "folds") == "acc | rf | 40 | 5 by source"
    assert cells(table, "chance", "majority") == "0.250 | 0.250"
    value, low, high = re.fullmatch(r"(0\.775) \[(0\.\d{3}), (0\.\d{3})\]", column(table, "TsT [95 %]")).groups()
    assert float(low) < float(value) < float(high)
    binomial = 2 * 1.96 * (0.775 * 0.225 / 40) ** 0.5
    assert float(high) - float(low) == pytest.approx(binomial, rel=0.25)
    assert cells(table, "SD", "p") == f"0.035 | {1 / 2001:.4f}"  # no flip of 22 gains reaches their sum
    assert cells(table, "random folds", "without copies", "zero-shot", "delta") == "0.975 |  |  | "
    narrow = stress_table([made], 80)
    assert narrow.splitlines()[0].split("  ")[-1].strip() == "without copies"
    assert len(narrow.splitlines()) == 3, "one table of one row"


def test_categories_of_a_written_run(tmp_path):
    """colour: docs 0..19, all right; größe: docs 20..39, of which ten are right and two half."""
    (made,) = read(write_tst(tmp_path)).results
    table = categories(made)
    assert [line.split()[:5] for line in table.splitlines()[2:]] == [
        ["colour", "20", "0.250", "0.500", "1.000"],
        ["größe", "20", "0.250", "0.000", "0.550"],
    ]
    assert re.fullmatch(r"0\.550 \[0\.\d{3}, 0\.\d{3}\]", column(table, "TsT [95 %]", 1))


def test_notes_of_a_written_run(tmp_path):
    """Text answers 31/40, the majority answer 10/40; and random folds 39/40: 0.2 from recognising the source."""
    (made,) = read(write_tst(tmp_path)).results
    verdict, unusable, leak, texts = notes(made)
    assert re.fullmatch(
        r"toy_tst5: can in part be answered without looking: 0\.775 \[0\.\d+, 0\.\d+\] where a guess gets 0\.250 and the most frequent answer of each category 0\.250",
        verdict,
    )
    assert unusable == "toy_tst5: folds by text: no grouping: the text is different for every doc"
    assert leak.startswith("toy_tst5: random folds score +0.200 [+0.")
    assert "source leakage" in leak
    assert (
        texts == "toy_tst5: 5 % of the questions stand more than once (39 different texts), 5 % with different answers"
    )


def test_show_prints_both_kinds_of_tasks(tmp_path, capsys):
    """Each in its own table: a cross-validation has no index, and an index no folds."""
    write_tst(tmp_path, with_rci=True)
    assert main(["show", str(tmp_path), "--wide"]) == 0
    indexed, stressed = capsys.readouterr().out.split("task      docs")
    assert "\ntoy_rci2" in indexed
    assert "\ntoy_tst5" not in indexed
    assert "\ntoy_tst5" in stressed
    assert "toy_tst5: can in part be answered" in stressed
    assert "toy_tst5, category" in stressed
    assert "toy_rci2" not in stressed
    assert "word: lamp" not in stressed


def test_causes_are_printed_when_asked_for(tmp_path, capsys):
    write_tst(tmp_path)
    assert main(["show", str(tmp_path), "--causes"]) == 0
    printed = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert "mc word: lamp 0.750 +0.125" in lines
    assert "lamp colour 1 20 +0.250 größer 0.900" in lines


def test_what_to_do_next_goes_by_the_verdict():
    gain, texts = head(estimate(0.2, 0.1, 0.3))["by_grouping"], {"different": 9, "repeated": 9, "conflicting": 0}
    learned, not_learned = task_of(by_grouping=gain), task_of(**head(estimate(0.0, -0.1, 0.1)))
    copied = task_of(texts=texts, by_grouping={**gain, "text": grouped(above=estimate(0, -1, 1))})
    for task, says in (
        (learned, "'lmms-patch prune toy' makes the task without them"),
        (copied, "the option 'group'"),
        (not_learned, "toy_blind"),
    ):
        (told,) = next_steps([task])
        assert told.startswith("next for toy: ")
        assert says in told
    assert next_steps([not_learned, learned, not_learned])[0].startswith(
        "next for toy, toy: ask your own model without images: lmms-eval --model MODEL --tasks toy_blind,toy_blind "
    ), "one command for all that need it"


# --- what is missing ----------------------------------------------------------------------------


def test_what_was_not_done_is_empty_and_what_has_no_value_is_not_a_number():
    empty = task_of(by_grouping={"none": grouped(NOTHING, NOTHING, None, None, None)}, chance=None)
    table = stress_table([empty])
    assert cells(table, "SD", "p", "without copies", "zero-shot", "delta") == " |  |  |  | "
    known = cells(table, "docs", "chance", "majority", "TsT [95 %]", "random folds")
    assert known == "0 | N/A | N/A | N/A | N/A"
    assert "None" not in table
    assert "nan" not in table


def test_zero_shot_and_delta_of_a_language_model():
    (a, b) = (
        task_of(diagnostic="lora", zero_shot=estimate(0.3), delta=estimate(0.2)),
        task_of("other_tst5", delta=estimate(-0.2)),
    )
    table = stress_table([a, b])
    assert [[column(table, name, row) for name in ("zero-shot", "delta")] for row in (0, 1)] == [
        ["0.300", "+0.200"],
        ["", "-0.200"],
    ]


# --- verdicts -----------------------------------------------------------------------------------

NAMED = {"docs": 50, "chance": 0.25, "majority": 1.0, "accuracy": 1.0, "low": 0.9, "high": 1.0, "s": 0.9}
"""A category that names the gold."""
GETS = "0.500 where a guess gets 0.250 and the constant answer 0.375"


@pytest.mark.parametrize(
    ("found", "more", "says"),
    [
        ((0.5, estimate(0.2), 0.001), {}, "too few independent docs to say"),
        ((0.5, NOTHING, None), {}, "too few independent docs to say"),
        ((0.5, estimate(0.2, 0.1, 0.3), 0.001), {}, f"can in part be answered without looking: {GETS}"),
        ((0.5, estimate(0.2, 0.1, 0.3), 0.05), {}, f"no text shortcut beyond the constant answer: {GETS}"),
        ((0.5, estimate(0.1, 0.0, 0.2), 0.001), {}, f"no text shortcut beyond the constant answer: {GETS}"),
        ((0.5, estimate(-0.2, -0.3, -0.1), 0.99), {}, f"no text shortcut beyond the constant answer: {GETS}"),
        (
            (estimate(1.0, 0.96, 1.0), estimate(0.0, 0.0, 0.0), 1.0, 0.01, 1.0),
            {"categories": {"a": NAMED, "b": NAMED}},
            "no text shortcut beyond the most frequent answer of each category: 1.000 [",
        ),
        ((estimate(0.25, 0.2, 0.3), estimate(0.2, 0.1, 0.3), 0.001, 0.01, 0.05), {}, "no text shortcut: 0.250 ["),
        ((estimate(0.15, 0.1, 0.2), estimate(-0.2, -0.3, -0.1), 0.99, 0.01, 0.35), {}, "no text shortcut: 0.150 ["),
    ],
)
def test_verdicts(found, more, says):
    (told,) = notes(task_of(by_grouping={"none": grouped(*found)}, **more))
    assert told.startswith(f"toy_tst5: {says}")


def test_training_copies_answered_in_reverse_are_no_shortcut_of_the_language():
    group = {**grouped(estimate(0.6, 0.5, 0.7), estimate(0.2, 0.1, 0.3), 0.001), "withheld": "agreeing"}
    found = text_only.shortcut(task_of(by_grouping={"none": group}).tst)
    assert found.state == "withheld"
    assert "answered in reverse" in found.sentence


def test_a_gain_that_needs_copies_is_told():
    """With a source named, copies are of other images; without one they may be the same doc twice."""
    texts = {"different": 60, "repeated": 38, "conflicting": 0}
    beyond, only = (
        grouped(above=estimate(0.2, 0.1, 0.3), p=0.001),
        "only where a copy of the question is among the training docs (0.400 without copies)",
    )
    for name, low, state in (("none", -0.05, "copied"), ("source", -0.05, "learned"), ("none", 0.05, "learned")):
        task = task_of(
            texts=texts, headline=name, by_grouping={name: beyond, "text": grouped(0.4, estimate(0.1, low, 0.3))}
        )
        found = text_only.shortcut(task.tst)
        assert found.state == state
        assert (only in found.sentence) is (low < 0)


def test_with_many_categories_shuffled_golds_are_the_null():
    """The gain over the constant answer is large in one case and small in the other; only the shuffles decide."""
    null = {"own": 0.4, "shuffled": [0.22, 0.31], "p": 0.048}
    groups = {"none": grouped(estimate(0.41, 0.35, 0.47), estimate(0.05, -0.02, 0.12), 0.1, majority=0.36)}
    categories = {f"c{i}": NAMED for i in range(12)}
    found = text_only.shortcut(task_of(shuffled=null, by_grouping=groups, categories=categories).tst)
    assert found.state == "learned"
    assert found.sentence.endswith("golds shuffled within the categories get 0.220 to 0.310 (p = 0.048)")
    groups = {"none": grouped(estimate(0.41, 0.35, 0.47), estimate(0.3, 0.2, 0.4), 0.0005, majority=0.11)}
    found = text_only.shortcut(task_of(shuffled={**null, "p": 0.6}, by_grouping=groups, categories=categories).tst)
    assert found.state == "not learned"
    assert found.sentence.startswith("no text shortcut beyond what the category gives away")


def classes(agreeing, conflicting, single=(0, None, None)):
    """By class: docs, accuracy, gain with its lower end; the constant answer gets 0.5."""
    names = zip(("agreeing", "conflicting", "single"), (agreeing, conflicting, single), strict=True)
    return {
        name: {
            "docs": docs,
            "accuracy": score,
            "majority": None if score is None else 0.5,
            "above": estimate(None if score is None else score - 0.5, low),
        }
        for name, (docs, score, low) in names
    }


@pytest.mark.parametrize(
    ("headline", "parted", "copies", "withheld", "says"),
    [
        ("text", "none", ((0, None, None), (100, 0.7, 0.1)), "conflicting", "answered in reverse"),
        ("joined", "source", ((70, 0.9, 0.3), (30, 0.2, -0.4)), None, "prior of the repeated questions"),
    ],
)
def test_what_folds_that_part_copies_say_where_the_headline_keeps_them_together(
    headline, parted, copies, withheld, says
):
    above = {**grouped(0.7, estimate(0.2, 0.1, 0.3), 0.001), "copies": classes(*copies), "withheld": withheld}
    groups = {headline: grouped(0.5, estimate(0.0, -0.1, 0.1)), parted: above}
    texts = {"different": 50, "repeated": 100, "conflicting": 100}
    told = notes(task_of(texts=texts, headline=headline, by_grouping=groups))[-1]
    assert "+0.200 [+0.100, +0.300] above the constant answer" in told
    assert says in told


# --- importances and causes ---------------------------------------------------------------------


def cause(rank, **more):
    row = {"rank": rank, "category": "c", "words": f"w{rank}", "docs": 9, "s": 0.5, "s_minus_chance": 0.5 - rank / 100}
    return row | {"gold": "yes", "gold_share": 0.5, "mean": None, "sd": None, "cv": None} | more


def test_the_first_causes_and_the_last_ones():
    table = causes(task_of(causes=[cause(rank) for rank in range(1, 31)]), most=3)
    assert [line.split()[2] for line in table.splitlines()[2:]] == ["1", "2", "3", "26", "27", "28", "29", "30"]
    few = causes(task_of(causes=[cause(rank) for rank in range(1, 5)]), most=3)
    assert [line.split()[2] for line in few.splitlines()[2:]] == ["1", "2", "3", "4"]


def test_long_golds_are_cut_and_any_script_is_printed():
    table = causes(task_of(causes=[cause(1, gold="é" * 500), cause(2, gold="是", words="größer 大")]))
    assert column(table, "most frequent gold", 0) == "é" * 39 + "…"
    assert "是" in table.splitlines()[3]
    assert "größer 大" in table
    assert max(map(len, table.splitlines())) < 200


@pytest.mark.parametrize("where", ["gold", "category"])
def test_a_row_is_one_line_whatever_the_texts(where):
    """Golds of caption tasks, categories of free text: a line break in them must not break the table."""
    table = causes(task_of(causes=[cause(1, **{where: "one\ntwo\rthree"}), cause(2)]))
    assert len(table.splitlines()) == 2 + 2


def test_a_category_is_one_line_whatever_its_name():
    row = {"docs": 5, "accuracy": 0.5, "low": 0.1, "high": 0.9, "majority": 0.5, "chance": 0.5, "s": 0.5}
    assert len(categories(task_of(categories={"one\ntwo": row, "three": row})).splitlines()) == 2 + 2
