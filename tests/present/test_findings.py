"""Situations with the sentences that they call for, derived by hand from the rules (the table in ``present.findings``)."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from lmms_patch.present.findings import MOST, NOT_WHICH, case, findings, times_wanted
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.run import find
from lmms_patch.stats.forms import MEAN
from lmms_patch.stats.gate import NOT_SHOWN, SAME
from lmms_patch.stats.luck import Measured, measured
from tests.making.analyses import analysis
from tests.making.cases import ends, indexed, plain
from tests.making.reports import necessity
from tests.making.runs import mc_run, write_run
from tests.sizes import size

NEAR = {"valid": False, "reason": "near chance: FIP 0.26 is below 0.30, the floor 0.25 and its margin", "fip": 0.26}
LOOKS = {"against": "wrong images", "value": False, "full": 0.9, "other": 0.89}
SAME_GATE = {"valid": False, "reason": f"{SAME} (full image 0.9, a wrong image 0.89, 60 docs)", "looks": [LOOKS]}
UNSHOWN = {"valid": False, "reason": f"{NOT_SHOWN}: full image 0.62, a wrong image 0.6, 60 docs; about 900 would tell"}
FULL, WRONG = (3, 0.5, 0.42, 0.58), (3, -0.2, -0.3, -0.1)

WHICH = NOT_WHICH
NEEDED = "The whole image is needed for a (luck-corrected RCI +0.50, 95 % interval [+0.42, +0.58])."
ENOUGH = f"One cell is enough for a (luck-corrected RCI -0.20, 95 % interval [-0.30, -0.10]). {WHICH}"
OF_TWO = "Of 2 tasks, so intervals are read at 97.5 %: at most 5 % of such findings are expected to be false."
OF_FIVE = "Of 5 tasks, so intervals are read at 98 %: at most 5 % of such findings are expected to be false."


def composed(base, text, one, whole, unsolved, index=FULL, **more):
    """A task with an index whose docs were asked again: four shares, each with an interval 0.05 to both sides."""
    case = indexed(base, index, **more)
    shares = zip(("text", "one", "whole", "unsolved"), (text, one, whole, unsolved), strict=True)
    known = {f"{name}3": ends(share, max(share - 0.05, 0), share + 0.05) for name, share in shares}
    return dataclasses.replace(case, measures={**case.measures, **known})


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
        f"({said(30, 30, 30, 10)}, 95 % intervals).",
    ),
    "most of what is solved needs the whole image": (
        [composed("a", 0.1, 0.1, 0.6, 0.2, index=WRONG)],
        f"Most of what is solved needs the whole image in a ({said(10, 10, 60, 20)}, 95 % intervals).",
    ),
    "about a half: not certain": (
        [composed("a", 0.2, 0.2, 0.5, 0.1)],
        f"What most of the solved docs need is not certain in a ({said(20, 20, 50, 10)}, 95 % intervals).",
    ),
    "one cell, for most": (
        [composed("a", 0.05, 0.7, 0.05, 0.2)],
        f"One cell is enough for most of what is solved in a ({said(5, 70, 5, 20)}, 95 % intervals).",
    ),
    "no image, for most, though few docs on wrong images do not show it": (
        [composed("a", 0.9, 0.0, 0.0, 0.1, index=(3, None, None, None), gate=UNSHOWN)],
        f"Most of what is solved needs no image in a ({said(90, 0, 0, 10)}, 95 % intervals).",
    ),
    "answers that do not tell": (
        [refused("a", "repeated guesses cannot be told from knowledge")],
        "What the docs need cannot be told in a (repeated guesses cannot be told from knowledge).",
    ),
    "too few docs asked again: the index counts": ([refused("a", "12 docs", again=12)], NEEDED),
    "one that needs the whole image": ([indexed("a", FULL)], NEEDED),
    "0.30 itself is strong global": (
        [indexed("a", (3, 0.4, 0.3, 0.5))],
        "The whole image is needed for a (luck-corrected RCI +0.40, 95 % interval [+0.30, +0.50]).",
    ),
    "above 0, but not by 0.30": (
        [indexed("a", (3, 0.2, 0.01, 0.39))],
        "One cell is not enough for a (luck-corrected RCI +0.20, 95 % interval [+0.01, +0.39]).",
    ),
    "a negative index": ([indexed("a", WRONG)], ENOUGH),
    "an index that ends at 0": (
        [indexed("a", (3, -0.2, -0.4, 0.0))],
        f"One cell is enough for a (luck-corrected RCI -0.20, 95 % interval [-0.40, 0.00]). {WHICH}",
    ),
    "balanced, and surely so": (
        [indexed("a", (3, 0.02, -0.03, 0.07))],
        f"One cell does as well as the whole image, within 0.10, in a (luck-corrected RCI +0.02, 95 % interval [-0.03, +0.07]). {WHICH}",
    ),
    "above 1: a cell does worse than a wrong image": (
        [indexed("a", (3, 1.2, 1.05, 1.4), mpp=0.0)],
        "More than one cell is needed for a (acc 0.800 on the full image, 0.000 with each doc's best cell), and a single cell misleads: on it the model is right less often than by guessing on a wrong image.",
    ),
    "two grids that agree: the finer one is shown": (
        [indexed("a", (2, -0.1, -0.2, -0.05), WRONG)],
        f"One cell is enough for a (luck-corrected RCI_3 -0.20, 95 % interval [-0.30, -0.10]). {WHICH}",
    ),
    "two grids that do not": (
        [indexed("a", (2, -0.1, -0.2, -0.05), FULL)],
        f"The size of the cells decides in a (luck-corrected RCI_2 -0.10, 95 % interval [-0.20, -0.05], luck-corrected RCI_3 +0.50 [+0.42, +0.58]). {WHICH}",
    ),
    "one grid undecided: it is the one shown": (  # half 0.17, 0 is 0.05 away, 0.10 too: 400 (0.17 / 0.05)^2 = 4,624
        [indexed("a", (2, 0.05, -0.12, 0.22), FULL)],
        "Undecided: a (luck-corrected RCI_2 +0.05, 95 % interval [-0.12, +0.22], about 4,700 docs would settle it, this run has 400).",
    ),
    "more docs than there are": (  # half 0.2, 0 is 0.15 away: 400 (0.2 / 0.15)^2 = 711
        [indexed("a", (3, 0.15, -0.05, 0.35), size=500)],
        "Undecided: a (luck-corrected RCI +0.15, 95 % interval [-0.05, +0.35], settling it takes about 720 docs, more than the 500 there are).",
    ),
    "docs on wrong images have to grow in step": (  # 11.56 times 400 and 300 docs: 4,624 and 3,468
        [indexed("a", (3, 0.05, -0.12, 0.22), wrong=300, size=5000)],
        "Undecided: a (luck-corrected RCI +0.05, 95 % interval [-0.12, +0.22], about 4,700 docs, 3,500 of them on wrong images too (option null), would settle it, "
        "this run has 400 and 300).",
    ),
    # (0.2 / 0.15)^2 = 1.78: 711 docs, or 178 on wrong images
    "fewer docs than in step, but all of them on wrong images, may do": (
        [indexed("a", (3, 0.15, -0.05, 0.35), wrong=100, size=500)],
        "Undecided: a (luck-corrected RCI +0.15, 95 % interval [-0.05, +0.35], all 500 docs on wrong images too (option null) may settle it, this run has 400 docs, "
        "100 of them so).",
    ),
    # 533 on wrong images would be needed if nothing but these gave the interval its width
    "nor would all docs on wrong images do": (
        [indexed("a", (3, 0.15, -0.05, 0.35), wrong=300, size=500)],
        "Undecided: a (luck-corrected RCI +0.15, 95 % interval [-0.05, +0.35], settling it takes about 720 docs, more than the 500 there are).",
    ),
    "a part of the docs": (
        [indexed("a", (3, 0.05, -0.12, 0.22), asked={"estimated": True})],
        "Undecided: a (luck-corrected RCI +0.05, 95 % interval [-0.12, +0.22], sampled, a full run, or more docs, would tell more).",
    ),
    "no interval": (
        [indexed("a", (3, 0.05, None, None, 3, "3 clusters are too few"))],
        "Undecided: a (luck-corrected RCI +0.05, no interval: 3 clusters are too few).",
    ),
    "raw and corrected disagree, measured": (
        [
            indexed(
                "a",
                FULL,
                raw=(-0.09, -0.15, -0.03),
                mark="not luck-corrected -0.090 (balanced), luck-corrected 0.500 (strong global)",
            )
        ],
        NEEDED,
        "The luck-corrected index says something else in a (RCI -0.09, luck-corrected RCI +0.50).",
    ),
    "a low index that luck may explain": (
        [indexed("a", (3, -0.2, -0.3, -0.1), luck=False), indexed("b", (3, 0.4, 0.35, 0.45), luck=False)],
        f"The whole image is needed for b (RCI +0.40, 95 % interval [+0.35, +0.45], luck not measured). {OF_TWO}",
        f"Undecided: a (RCI -0.20 [-0.30, -0.10], luck not measured, and luck alone may make it so low). {OF_TWO}",
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
    "a null that was measured and says nothing": (
        [indexed("a", (3, None, None, None), raw=(-0.2, -0.3, -0.1))],
        "Undecided: a (RCI -0.20, 95 % interval [-0.30, -0.10], luck not measured, and luck alone may make it so low).",
    ),
    "a metric that is better when lower, without its image": (
        [dataclasses.replace(plain("a", "blind", (0.45, 0.4, 0.5)), higher=False)],
        "Shown otherwise: a (no image 0.450, 95 % interval [0.400, 0.500], chance 0.250).",
    ),
    "a marginal pass": (
        [indexed("a", FULL, gate={"marginal": True})],
        "The whole image is needed for a (luck-corrected RCI +0.50, 95 % interval [+0.42, +0.58], marginal).",
    ),
    "two models": (
        [indexed("a", FULL, model="x"), indexed("a", WRONG, model="y")],
        "The whole image is needed for a (x) (luck-corrected RCI +0.50, 95 % interval [+0.42, +0.58]).",
        f"One cell is enough for a (y) (luck-corrected RCI -0.20 [-0.30, -0.10]). {WHICH}",
    ),
    "three models: a benchmark is named once": (
        [
            *(indexed("a", FULL, model=model) for model in "xyz"),
            indexed("b", WRONG, model="x"),
            indexed("b", FULL, model="y"),
            indexed("b", (3, -0.4, -0.5, -0.3), model="z"),
        ],
        "The whole image is needed for a (all 3 models, luck-corrected RCI +0.50) and b (y) (luck-corrected RCI +0.50, 95 % interval [+0.42, +0.58]).",
        f"One cell is enough for b (2 of 3 models, luck-corrected RCI -0.40 to -0.20). {WHICH}",
    ),
    "the clearest first": (
        [
            indexed("a", WRONG),
            indexed("b", (3, -0.4, -0.5, -0.3)),
            indexed("c", FULL),
            indexed("d", (3, 0.7, 0.6, 0.8)),
        ],
        "The whole image is needed for d (luck-corrected RCI +0.70, 95 % interval [+0.60, +0.80]) and c (luck-corrected RCI +0.50 [+0.42, +0.58]).",
        f"One cell is enough for b (luck-corrected RCI -0.40 [-0.50, -0.30]) and a (luck-corrected RCI -0.20 [-0.30, -0.10]). {WHICH}",
    ),
    "six of which three are undecided": (
        [
            indexed("a", FULL),
            indexed("b", WRONG),
            indexed("c", (3, None, None, None), gate=NEAR),
            *(indexed(name, (3, 0.05, -0.12, 0.22)) for name in "def"),
        ],
        f"The whole image is needed for a (luck-corrected RCI +0.50, 95 % interval [+0.42, +0.58]). {OF_FIVE}",
        f"One cell is enough for b (luck-corrected RCI -0.20 [-0.30, -0.10]). {WHICH} {OF_FIVE}",
        "No result for c (acc 0.260, where guesses earn 0.250).",
        "Undecided: d (luck-corrected RCI +0.05 [-0.12, +0.22], about 4,700 docs would settle it, this run has 400), e (luck-corrected RCI +0.05 [-0.12, +0.22], about "
        f"4,700 docs would settle it, this run has 400) and f (luck-corrected RCI +0.05 [-0.12, +0.22], about 4,700 docs would settle it, this run has 400). {OF_FIVE}",
    ),
    "a blind run beside the full image": (
        [indexed("a", FULL), plain("a", "blind", (0.45, 0.4, 0.5))],
        NEEDED,
        "Without the right image there is still a score in a (no image 0.450 [0.400, 0.500], full image 0.800, chance 0.250).",
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
        "A text-only model, trained on other questions of the test set, answers more than a question's category says in a (0.600, "
        "95 % interval [0.500, 0.700], most frequent answers 0.300, chance 0.250); a text-only model is not shown to learn more than a question's category says in b (0.300 [0.200, 0.400], chance 0.250).",
    ),
    "boxes of both signs": (
        [
            plain("a", "regions", (0.8, 0.7, 0.9), regions_mean=(0.2, 0.1, 0.3)),
            plain("b", "regions", (0.8, 0.7, 0.9), regions_mean=(-0.2, -0.3, -0.1)),
            plain("c", "regions", (0.8, 0.7, 0.9), regions_mean=(0.0, -0.1, 0.1)),
        ],
        "A relevant box answers more than an adversarial one in a (+0.200, 95 % interval [+0.100, +0.300]); an adversarial box answers more than a "
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
        "Hiding the relevant boxes costs more than hiding the adversarial ones in a (+0.400, 95 % interval [+0.300, +0.500], full image 0.800, chance "
        "0.250); hiding the adversarial boxes costs more than hiding the relevant ones in b (-0.200 [-0.300, -0.100], full image 0.800, chance 0.250); hiding "
        "the relevant boxes is not shown to cost more than hiding the adversarial ones in c (0.000 [-0.100, +0.100], full image 0.800, chance 0.250); hiding "
        "the relevant boxes costs score, with no adversarial boxes to compare with, in d (+0.500 [+0.400, +0.600], full image 0.800, chance 0.250); hiding "
        "the relevant boxes is not shown to cost score in e (0.000 [-0.100, +0.100], full image 0.800, chance 0.250).",
    ),
    "cells hidden, and shuffled": (
        [plain("a", "occlude", (0.8, 0.7, 0.9), drop3=(0.35,)), plain("b", "shuffle", (0.5, 0.4, 0.6))],
        "Shown otherwise: a (full image 0.800, 95 % interval [0.700, 0.900], 0.350 with the worst of 9 cells hidden, chance 0.250) and b (cells shuffled 0.500 "
        "[0.400, 0.600], chance 0.250).",
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_sentences_of(name):
    cases, *expected = SITUATIONS[name]
    assert [one.text for one in findings(cases)] == expected


def test_of_twenty_tasks_without_an_effect_one_page_in_twenty_says_something():
    """True index 0 in 20 tasks, its estimate normal with the interval's standard error: by arithmetic 1 - 0.95^20 = 64 % without the correction."""
    stream, pages = np.random.default_rng(0), size(80, 2000)
    said = {True: 0, False: 0}
    for _page in range(pages):
        drawn = stream.standard_normal(20) * 0.1
        cases = [
            indexed(f"t{place}", (3, value, value - 0.196, value + 0.196)) for place, value in enumerate(drawn.tolist())
        ]
        for together, some in ((True, [cases]), (False, [[one] for one in cases])):
            said[together] += any(one.kind in ("whole", "cell") for among in some for one in findings(among))
    assert said[True] / pages <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / pages)
    assert said[False] / pages > 0.5


def test_a_clear_task_is_found_among_many():
    """One task far from 0 among 19 without an effect; and where all 20 are clear, each is read at 95 %."""
    nothing = [indexed(f"t{place}", (3, 0.02, -0.2, 0.24)) for place in range(19)]
    [first, *_] = findings([*nothing, indexed("x", (3, 0.6, 0.5, 0.7))])
    assert (first.kind, first.cases) == ("whole", ("m/x_rci",))
    assert "Of 20 tasks, so intervals are read at 99.75 %" in first.text
    clear = [indexed(f"t{place}", (3, 0.04, 0.01, 0.07)) for place in range(20)]
    assert [one.kind for one in findings(clear)] == ["whole"]
    assert "read at" not in findings(clear)[0].text


def test_luck_that_is_not_removed_is_named():
    """Wrong images are answered otherwise: the index that is not luck-corrected is low, and says nothing."""
    unlike = "wrong images are answered otherwise than cells that show nothing"
    one = indexed("a", (3, None, None, None, 3, unlike), raw=(-0.2, -0.3, -0.1))
    assert [told.text for told in findings([one])] == [
        f"Undecided: a (RCI -0.20, 95 % interval [-0.30, -0.10], not luck-corrected, {unlike})."
    ]


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
    assert one.text.endswith("task11 and 8 more.")
    assert len(one.cases) == 20


def test_no_case_no_sentence():
    assert findings([]) == []


def test_hostile_names_stay_on_their_line():
    (one,) = findings([indexed("a\n\x1b[31mb", FULL, model="m\u202e")])
    assert not {"\n", "\x1b"} & set(one.text)


@pytest.mark.parametrize(
    ("value", "low", "high", "docs", "wanted"),
    [
        (0.05, -0.12, 0.22, 400, 4_624),
        (0.15, -0.05, 0.35, 400, 711.1),
        (0.0, -0.2, 0.2, 100, 400),  # has to fit between -0.10 and 0.10: half as wide
        (-0.3, -0.9, 0.3, 50, 200),  # half as wide leaves out 0
        (0.15, 0.05, 0.25, 400, None),  # leaves out 0 already
        (0.1, None, None, 400, None),
        (None, None, None, 400, None),
    ],
)
def test_how_many_docs_would_settle_an_index(value, low, high, docs, wanted):
    """The width of an interval goes with one over the root of the docs: by hand."""
    times = times_wanted(ends(value, low, high, docs))
    assert (times is None) if wanted is None else times * docs == pytest.approx(wanted, rel=1e-4)


def test_an_interval_narrows_in_step_only_where_docs_on_wrong_images_do():
    """Of the corrected index itself, over made answers: four times the docs halve its standard error if four times as many see a wrong image."""

    def error(docs, wrong, seed):
        stream = np.random.default_rng(seed)

        def rows(share):
            return np.column_stack([stream.random(docs) < share, np.ones(docs)]).astype(float)

        asked = np.arange(docs) < wrong
        of_one = np.zeros(docs, np.intp)
        given = Measured(rows(0.8), rows(0.6), rows(1), rows(0.25), rows(0.4), asked, of_one, ("mc4",))
        return measured(given, MEAN.value, draws=400, seed=seed).estimate.se

    few, step, more = (
        np.mean([error(docs, wrong, seed) for seed in range(12)])
        for docs, wrong in ((400, 100), (1600, 400), (1600, 100))
    )
    assert few / step == pytest.approx(2, rel=0.1)
    assert few / more < 1.5


def test_a_written_run_says_what_its_table_says(tmp_path):
    """A model that knows 85 % from one cell and 80 % from the image: the sentence names the task, and the index of the results file."""
    write_run(tmp_path, {"toy_rci2": mc_run()})
    (result,) = find([Path(tmp_path)])[0].results
    (one,) = findings([case(result)])
    index = result.measures["rci2"]
    assert one.cases == (result.label,)
    assert f"{index.value:+.2f}" in one.text


def test_a_name_is_the_tasks_own_where_a_benchmark_is_asked_twice():
    one, other = indexed("a", FULL), indexed("a", WRONG)
    other = type(other)(**{**vars(other), "key": "a_rci, second", "task": "a_rci, second"})
    assert "a_rci, second" in findings([one, other])[1].text
