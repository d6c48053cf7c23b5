"""Situations with the sentences that they call for, derived by hand from the rules (the table in ``present.findings``)."""

import dataclasses
from pathlib import Path

import polars as pl
import pytest

from lmms_patch.present.findings import ASK_AGAIN, MOST, case, findings
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.run import find
from lmms_patch.stats.gate import NOT_SHOWN, SAME
from tests.making.analyses import analysis
from tests.making.cases import ends, indexed, plain
from tests.making.edited import edit
from tests.making.reports import necessity
from tests.making.runs import again_run, mc_run, write_run
from tests.making.typed import typed
from tests.stored import unpack

NEAR = {"valid": False, "reason": "near chance: FIP 0.26 is below 0.30, the floor 0.25 and its margin", "fip": 0.26}
LOOKS = {"against": "wrong images", "value": False, "full": 0.9, "other": 0.89}
SAME_GATE = {"valid": False, "reason": f"{SAME} (full image 0.9, a wrong image 0.89, 60 docs)", "looks": [LOOKS]}
UNSHOWN = {"valid": False, "reason": f"{NOT_SHOWN}: full image 0.62, a wrong image 0.6, 60 docs; about 900 would tell"}
FULL, WRONG = (3, 0.5, 0.42, 0.58), (3, -0.2, -0.3, -0.1)

NOT_ASKED = "What the docs need was not asked in a (RCI +0.50 [+0.42, +0.58])."


def composed(base, text, one, whole, unsolved, index=FULL, **more):
    """A task with an index whose docs were asked again: four shares, each with an interval 0.05 to both sides."""
    case = indexed(base, index, **more)
    shares = zip(("text", "one", "whole", "unsolved"), (text, one, whole, unsolved), strict=True)
    known = {f"{name}3": ends(share, max(share - 0.05, 0), share + 0.05) for name, share in shares}
    return dataclasses.replace(case, measures={**case.measures, **known})


def lined(base, windows):
    """The same, mostly of the whole image; one cell is enough for 20 %, one cell or window for as many as given."""
    case = composed(base, 0.05, 0.2, 0.65, 0.1)
    return dataclasses.replace(case, measures={**case.measures, "one_windows3": ends(*windows)})


def refused(base, why, again=300):
    """The same, where the answers do not tell what the docs need."""
    case = indexed(base, FULL)
    asked = analysis({"necessity": [to_json(necessity(0.0, 0.0, 1.0, again=again))]}).necessity[0]
    shares = {name: dataclasses.replace(of.without(why)) for name, of in asked.shares.items()}
    made = dataclasses.replace(case.analysis, necessity=(dataclasses.replace(asked, shares=shares),))
    return dataclasses.replace(case, analysis=made)


def said(text, one, whole, unsolved):
    ends = [f"{share} % [{max(share - 5, 0)}, {share + 5}]" for share in (text, one, whole, unsolved)]
    words = ("without its image", "on one cell", "only with the whole image", "not solved")
    return ", ".join(f"{share} {word}" for share, word in zip(ends, words, strict=True))


SITUATIONS = {
    "thirds are a mixture, whatever the index says": (
        [composed("shop", 0.3, 0.3, 0.3, 0.1)],
        "What is solved needs no image, one cell or the whole image, none of them mostly, in shop "
        f"({said(30, 30, 30, 10)}).",
    ),
    "most of what is solved needs the whole image": (
        [composed("a", 0.1, 0.1, 0.6, 0.2, index=WRONG)],
        f"Most of what is solved needs the whole image in a ({said(10, 10, 60, 20)}).",
    ),
    "about a half: not certain": (
        [composed("a", 0.2, 0.2, 0.5, 0.1)],
        f"What most of the solved docs need is not certain in a ({said(20, 20, 50, 10)}).",
    ),
    "one cell, for most": (
        [composed("a", 0.05, 0.7, 0.05, 0.2)],
        f"One cell is enough for most of what is solved in a ({said(5, 70, 5, 20)}).",
    ),
    "no image, for most, though few docs on wrong images do not show it": (
        [composed("a", 0.9, 0.0, 0.0, 0.1, index=(3, None, None, None), gate=UNSHOWN)],
        f"Most of what is solved needs no image in a ({said(90, 0, 0, 10)}).",
    ),
    "answers that do not tell": (
        [refused("a", "repeated guesses cannot be told from knowledge")],
        "What the docs need cannot be told in a (repeated guesses cannot be told from knowledge).",
    ),
    "too few docs asked again to tell": (
        [refused("a", "12 docs were asked again; 30 or more are needed", again=12)],
        "What the docs need cannot be told in a (12 docs were asked again; 30 or more are needed).",
    ),
    "some of it only on a line between cells": (
        [lined("a", (0.4, 0.35, 0.45))],
        f"Most of what is solved needs the whole image in a ({said(5, 20, 65, 10)}); part of what needs more than a cell only "
        "fell on a line between cells in a (a cell or a window between cells is enough for 0.400 [0.350, 0.450], a cell for 0.200 [0.150, 0.250]).",
    ),
    "windows that are not shown to be enough for more": (
        [lined("a", (0.28, 0.23, 0.33))],
        f"Most of what is solved needs the whole image in a ({said(5, 20, 65, 10)}).",
    ),
    "no doc could be asked again": ([indexed("a", FULL)], NOT_ASKED),
    "no doc was asked again, though it could": (
        [indexed("a", FULL, needs=[necessity(0.0, 0.0, 0.0, text=None)])],
        f"{NOT_ASKED} {ASK_AGAIN}",
    ),
    "a low index of one pass, which says no more than a high one": (
        [indexed("a", WRONG)],
        "What the docs need was not asked in a (RCI -0.20 [-0.30, -0.10]).",
    ),
    "two grids": (
        [indexed("a", (2, -0.1, -0.2, -0.05), FULL)],
        "What the docs need was not asked in a (RCI_2 -0.10 [-0.20, -0.05], RCI_3 +0.50 [+0.42, +0.58]).",
    ),
    "a part of the docs": (
        [indexed("a", FULL, asked={"estimated": True})],
        "What the docs need was not asked in a (RCI +0.50 [+0.42, +0.58], sampled).",
    ),
    "a marginal pass": (
        [indexed("a", FULL, gate={"marginal": True})],
        "What the docs need was not asked in a (RCI +0.50 [+0.42, +0.58], marginal).",
    ),
    "nobody checked that it looks": (
        [indexed("a", FULL, gate={"looks": []})],
        "What the docs need was not asked in a (RCI +0.50 [+0.42, +0.58], not checked that it looks).",
    ),
    "no interval": (
        [indexed("a", (3, 0.05, None, None, 3, "3 clusters are too few"))],
        "What the docs need was not asked in a (RCI +0.05).",
    ),
    "near chance": (
        [indexed("a", (3, None, None, None), gate=NEAR)],
        "No result for a (acc 0.260, where guesses earn 0.250).",
    ),
    "answers that do not depend on the image": (
        [indexed("a", (3, None, None, None), gate=SAME_GATE)],
        "No image is needed for a (acc 0.900 with its images, 0.890 with wrong images).",
    ),
    "near chance, with and without the image": (
        [
            indexed("a", (3, None, None, None), gate=NEAR),
            plain("a", "blind", (0.25, 0.2, 0.3)),
            plain("b", "blind", (0.25, 0.2, 0.3)),
        ],
        "Without the right image the model is not shown to do better than guessing in b.",
        "No result for a (acc 0.260, where guesses earn 0.250).",
    ),
    "failed calls with the image, chance without": (
        [indexed("a", (3, None, None, None, 400, "7 % of the calls failed")), plain("a", "blind", (0.25, 0.2, 0.3))],
        "Without the right image the model is not shown to do better than guessing in a.",
        "No result for a (7 % of the calls failed).",
    ),
    "not shown that it looks": (
        [indexed("a", (3, None, None, None), gate=UNSHOWN)],
        f"No result for a ({UNSHOWN['reason']}).",
    ),
    "a metric that is better when lower, without its image": (
        [dataclasses.replace(plain("a", "blind", (0.45, 0.4, 0.5)), higher=False)],
        "Shown otherwise: a (no image 0.450 [0.400, 0.500], chance 0.250).",
    ),
    "two models": (
        [composed("a", 0.1, 0.1, 0.6, 0.2, model="x"), indexed("a", WRONG, model="y")],
        f"Most of what is solved needs the whole image in a (x) ({said(10, 10, 60, 20)}).",
        "What the docs need was not asked in a (y) (RCI -0.20 [-0.30, -0.10]).",
    ),
    "three models: a benchmark is named once": (
        [
            *(composed("a", 0.1, 0.1, 0.6, 0.2, model=model) for model in "xyz"),
            indexed("b", WRONG, model="x"),
            composed("b", 0.05, 0.7, 0.05, 0.2, model="y"),
            indexed("b", (3, -0.4, -0.5, -0.3), model="z"),
            *(indexed("c", FULL, model=model) for model in "xyz"),
        ],
        "Most of what is solved needs the whole image in a (all 3 models).",
        f"One cell is enough for most of what is solved in b (y) ({said(5, 70, 5, 20)}).",
        "What the docs need was not asked in b (2 of 3 models, RCI -0.40 to -0.20) and c (all 3 models, RCI +0.50).",
    ),
    "one of each: what can be told comes first": (
        [
            indexed("a", FULL, needs=[necessity(0.0, 0.0, 0.0, text=None)]),
            indexed("b", (3, None, None, None), gate=NEAR),
            refused("c", "repeated guesses cannot be told from knowledge"),
            composed("d", 0.2, 0.2, 0.5, 0.1),
            composed("e", 0.3, 0.3, 0.3, 0.1),
            composed("f", 0.05, 0.7, 0.05, 0.2),
            composed("g", 0.1, 0.1, 0.6, 0.2),
        ],
        f"Most of what is solved needs the whole image in g ({said(10, 10, 60, 20)}).",
        f"One cell is enough for most of what is solved in f ({said(5, 70, 5, 20)}).",
        f"What is solved needs no image, one cell or the whole image, none of them mostly, in e ({said(30, 30, 30, 10)}).",
        f"What most of the solved docs need is not certain in d ({said(20, 20, 50, 10)}); what the docs need cannot be told in c (repeated guesses "
        f"cannot be told from knowledge); what the docs need was not asked in a (RCI +0.50 [+0.42, +0.58]). {ASK_AGAIN}",
        "No result for b (acc 0.260, where guesses earn 0.250).",
    ),
    "a blind run beside the full image": (
        [indexed("a", FULL), plain("a", "blind", (0.45, 0.4, 0.5))],
        "Without the right image there is still a score in a (no image 0.450 [0.400, 0.500], full image 0.800, chance 0.250).",
        "What the docs need was not asked in a (RCI +0.50 [+0.42, +0.58]).",
    ),
    "a blind run at chance": (
        [plain("a", "blind", (0.26, 0.2, 0.32))],
        "Without the right image the model is not shown to do better than guessing in a.",
    ),
    "a text-only model that learns, and one that does not": (
        [
            plain("a", "tst", (0.6, 0.5, 0.7), tst=(0.6, 0.5, 0.7), tst_above=(0.3, 0.2, 0.4), tst_majority=(0.3,)),
            plain("b", "tst", (0.3, 0.2, 0.4), tst=(0.3, 0.2, 0.4), tst_above=(0.0, -0.1, 0.1)),
        ],
        "A text-only model, trained on other questions of the test set, answers more than a question's category says in a (0.600 "
        "[0.500, 0.700], most frequent answers 0.300, chance 0.250); a text-only model is not shown to learn more than a question's category says in b (0.300 [0.200, 0.400], chance 0.250).",
    ),
    "boxes of both signs": (
        [
            plain("a", "regions", (0.8, 0.7, 0.9), regions_mean=(0.2, 0.1, 0.3)),
            plain("b", "regions", (0.8, 0.7, 0.9), regions_mean=(-0.2, -0.3, -0.1)),
            plain("c", "regions", (0.8, 0.7, 0.9), regions_mean=(0.0, -0.1, 0.1)),
        ],
        "A relevant box answers more than an adversarial one in a (+0.200 [+0.100, +0.300]); an adversarial box answers more than a "
        "relevant one in b (-0.200 [-0.300, -0.100]); neither relevant nor adversarial boxes are clearly worth more in c (0.000 [-0.100, +0.100]).",
    ),
    "boxes hidden": (
        [
            plain("a", "hidden", (0.8, 0.7, 0.9), drop_relevant=(0.5, 0.4, 0.6), drop_extra=(0.4, 0.3, 0.5)),
            plain("b", "hidden", (0.8, 0.7, 0.9), drop_relevant=(0.1, 0.0, 0.2), drop_extra=(-0.2, -0.3, -0.1)),
            plain("c", "hidden", (0.8, 0.7, 0.9), drop_relevant=(0.5, 0.4, 0.6), drop_extra=(0.0, -0.1, 0.1)),
            plain("d", "hidden", (0.8, 0.7, 0.9), drop_relevant=(0.5, 0.4, 0.6), drop_extra=(None,)),
            plain("e", "hidden", (0.8, 0.7, 0.9), drop_relevant=(0.0, -0.1, 0.1), drop_extra=(None,)),
        ],
        "Hiding the relevant boxes costs more than hiding the adversarial ones in a (+0.400 [+0.300, +0.500], full image 0.800, chance "
        "0.250); hiding the adversarial boxes costs more than hiding the relevant ones in b (-0.200 [-0.300, -0.100], full image 0.800, chance 0.250); hiding "
        "the relevant boxes is not shown to cost more than hiding the adversarial ones in c (0.000 [-0.100, +0.100], full image 0.800, chance 0.250); hiding "
        "the relevant boxes costs score, with no adversarial boxes to compare with, in d (+0.500 [+0.400, +0.600], full image 0.800, chance 0.250); hiding "
        "the relevant boxes is not shown to cost score in e (0.000 [-0.100, +0.100], full image 0.800, chance 0.250).",
    ),
    "cells hidden, and shuffled": (
        [plain("a", "occlude", (0.8, 0.7, 0.9), drop3=(0.35,)), plain("b", "shuffle", (0.5, 0.4, 0.6))],
        "Shown otherwise: a (full image 0.800 [0.700, 0.900], 0.350 with the worst of 9 cells hidden, chance 0.250) and b (cells shuffled 0.500 "
        "[0.400, 0.600], chance 0.250).",
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_sentences_of(name):
    """The first sentence with an interval says at its end at which level all are."""
    cases, *expected = SITUATIONS[name]
    for at in [at for at, one in enumerate(expected) if "[" in one][:1]:
        sentence = expected[at].removesuffix(f" {ASK_AGAIN}")
        expected[at] = f"{sentence[:-1]}; 95 % intervals.{expected[at][len(sentence) :]}"
    assert [one.text for one in findings(cases)] == expected


def test_every_task_is_in_a_sentence_and_there_are_few():
    """Of all situations at once: each base gets a name of its own."""
    every = []
    for number, (cases, *_) in enumerate(SITUATIONS.values()):
        every += [
            type(one)(**{**vars(one), "key": f"{number}-{one.key}", "base": f"{one.base}{number}"}) for one in cases
        ]
    told = findings(every)
    assert len(told) == MOST
    assert {key for one in told for key in one.cases} == {one.key for one in every}


def test_many_tasks_are_named_and_then_counted():
    """Numbers of 4, the names of 8 more, and a count of the last 8: 20 tasks."""
    (one,) = findings([indexed(f"task{i:02}", FULL) for i in range(20)])
    assert one.text.count("[+0.42, +0.58]") == 4
    assert one.text.endswith("task11 and 8 more; 95 % intervals.")
    assert len(one.cases) == 20


def test_no_case_no_sentence():
    assert findings([]) == []


def test_hostile_names_stay_on_their_line():
    (one,) = findings([indexed("a\n\x1b[31mb", FULL, model="m\u202e")])
    assert not {"\n", "\x1b"} & set(one.text)


def test_a_written_run_says_what_its_table_says(tmp_path):
    """A model that knows 85 % from one cell and 80 % from the image: the sentence names the task, and the index of the results file."""
    write_run(tmp_path, {"toy_rci2": mc_run()})
    (result,) = find([Path(tmp_path)])[0].results
    (one,) = findings([case(result)])
    index = result.measures["rci2"]
    assert one.cases == (result.label,)
    assert f"RCI {index.value:+.2f}" in one.text
    assert one.text.endswith(ASK_AGAIN)


def test_a_written_run_asked_again_says_what_the_planted_model_needs(tmp_path):
    """Three docs in four need the whole image, one needs its first cell, and every other view guesses anew."""
    write_run(tmp_path, {"toy_rci2": again_run(["whole", "whole", "whole", "cell"])})
    (result,) = find([Path(tmp_path)])[0].results
    (one,) = findings([case(result)])
    shares = {name: result.measures[f"{name}2"].value for name in ("text", "one", "whole", "unsolved")}
    assert shares == pytest.approx({"text": 0, "one": 0.25, "whole": 0.75, "unsolved": 0}, abs=0.06)
    assert one.text.startswith("Most of what is solved needs the whole image in toy (")
    assert f"{100 * shares['whole']:.0f} % [" in one.text


def test_a_name_is_the_tasks_own_where_a_benchmark_is_asked_twice():
    one, other = indexed("a", FULL), indexed("a", WRONG)
    other = type(other)(**{**vars(other), "key": "a_rci, second", "task": "a_rci, second"})
    (told,) = findings([one, other])
    assert told.text.startswith("What the docs need was not asked in a_rci (RCI +0.50 [")
    assert "and a_rci, second (RCI -0.20" in told.text


def test_a_constant_is_told_alike_by_every_door(tmp_path):
    """The gold is option A in all of 90 docs, and all have one prompt: show, the tables of tst and gate say so."""
    spec, records, made = again_run(["cell"], n=90, guesses=False)
    write_run(tmp_path / "rci", {"toy_rci2": (spec, records, made)})
    unpack(tmp_path)
    same = {"gold": pl.lit("A"), "gold_at": pl.lit(1, pl.Int32), "prompt_digest": pl.lit("0" * 16)}
    (tmp_path / "gates.yaml").write_text("schema: 1\nrules: [{name: any, min_docs: 1}]")
    for run, gold, prompt in (("rci", "90 of 90", True), ("runs/tst", "48 of 48", False)):
        edit(tmp_path / run, rows=lambda frame: frame.with_columns(**same))
        shown, gate = (
            " ".join(typed(*line)[1].split())
            for line in (("show", tmp_path / run), ("gate", tmp_path / run, "--config", tmp_path / "gates.yaml"))
        )
        for said in (shown, gate):
            assert f"the gold is option A in {gold} docs" in said
        assert ("all docs have one prompt" in gate) == ("all docs have one prompt" in shown.lower()) == prompt


def test_what_a_sentence_says_can_be_linked_and_has_its_numbers():
    (one,) = findings([composed("a", 0.1, 0.1, 0.6, 0.2)])
    named, aside = (
        [piece for piece in one.pieces if wanted(piece)] for wanted in (lambda p: p.case, lambda p: p.aside)
    )
    assert [(piece.text, piece.case) for piece in named] == [("a", "m/a_rci")]
    assert {name: number.value for name, number in aside[0].numbers.items()} == {
        "text3": 0.1, "one3": 0.1, "whole3": 0.6, "unsolved3": 0.2,
    }  # fmt: skip


@pytest.mark.parametrize(("again", "told"), [(300, True), (1000, False)])
def test_what_is_not_certain_of_a_sample_names_the_task_that_asks_all_docs(again, told):
    """1,000 docs of a full image and nine cells, about twice: 20,000 calls. Of a run that asked all docs again nothing is left to ask."""
    case = composed("shop", 0.2, 0.2, 0.5, 0.1)
    asked = analysis({"necessity": [to_json(necessity(0.2, 0.5, 0.1, 0.2, docs=1000, again=again))]}).necessity
    case = dataclasses.replace(case, analysis=dataclasses.replace(case.analysis, necessity=asked), task="shop_rci3")
    [found] = findings([case])
    assert (" To tell, ask all docs again: shop_rci3_steady, about 20,000 calls." in found.text) is told
