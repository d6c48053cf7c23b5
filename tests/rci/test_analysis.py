"""From records to numbers: by hand, or by plain loops."""

import math
import random
import re
import statistics

import numpy as np
import pytest
from lmms_eval.tasks.mme import utils as mme
from lmms_eval.tasks.pope import utils as pope

from lmms_patch.rci.analysis import analyse
from lmms_patch.runs.details import Settings
from lmms_patch.runs.reading import NOT_CHECKED
from tests.making.recordings import METRIC, FakeNative, exact, guesses, mean, record, table

CELLS = {1: [1.0, 0.0, 0.0, 0.0], 4: [0.0, 0.0, 0.0, 1.0], 0: [0.0] * 4}
"""A 2x2 grid of which the numbered cell is right."""


def mc4(gold, stratum="A"):
    return {"answer": ("mc", 4, gold), "baselines": guesses(gold, "ABCD", stratum=stratum)}


def standard(n=200, wrong=6, items=None, scale=1.0, **more):
    """FIP 0.7 (6 of 20 wrong), MPP_2 0.85; of 20 docs 10 are right in cell 1, 7 in cell 4; golds A to D, evenly.

    On a wrong image one of four docs is right on the full image (FIP0 1/4) and two in their best cell (MPP0 1/2).
    """
    docs = []
    for i in range(n):
        right = 1 if i % 20 < 10 else 4 if i % 20 < 17 else 0
        wrong_image = scale * (i % 4 == 0), {2: [scale * (i % 4 < 2), 0.0, 0.0, 0.0]}
        about = (
            mc4("ABCD"[i // 50 % 4])
            | {"wrong_image": wrong_image}
            | {key: value(i) if callable(value) else value for key, value in more.items()}
        )
        if scale != 1.0:
            about["baselines"] = [(answer, roles, scale * score) for answer, roles, score in about["baselines"]]
        docs.append(
            record(i, scale * (i % 20 >= wrong), {2: [scale * score for score in CELLS[right]]}, items=items, **about)
        )
    return docs


def alone(records):
    """The same records, each doc drawn by itself."""
    return [{**one, "fields": {name: of for name, of in one["fields"].items() if name != "cluster"}} for one in records]


def numbers(records, native=None, grids=(2,), blind=(), higher=True, **settings):
    return analyse(
        table(records, higher=higher),
        native or FakeNative(records),
        Settings(**settings),
        grids,
        dict(blind),
    )


def pairs_of(records, n=2):
    """Full and best-cell scalars of the docs that a grid uses."""
    return [
        (r["views"][0]["scores"][METRIC], r["views"][r["best"][str(n)]]["scores"][METRIC])
        for r in records
        if str(n) not in r["excluded"]
    ]


def resampled(values, statistic, clusters=None, draws=3000, seed=1):
    """The bootstrap in a plain loop: standard error, and the 2.5 % and 97.5 % points."""
    stream, groups = random.Random(seed), {}
    for i, value in enumerate(values):
        groups.setdefault(i if clusters is None else clusters[i], []).append(value)
    members = list(groups.values())
    drawn = [statistic([value for _ in members for value in stream.choice(members)]) for _ in range(draws)]
    return statistics.stdev(drawn), *np.quantile(drawn, [0.025, 0.975])


def rci(pairs):
    return 1 - sum(best for _, best in pairs) / sum(full for full, _ in pairs)


def gap(pairs):
    return sum(full - best for full, best in pairs) / len(pairs)


# --- a mean --------------------------------------------------------------------------------------------------


def test_the_index_of_a_plain_task():
    records = standard()
    found = numbers(records)
    grid = found.grids[2]
    assert (found.metric, found.n_docs, found.clusters, found.form, found.warnings) == (
        "acc",
        200,
        None,
        "mean",
        (),
    )
    assert (found.fip.value, grid.fip, grid.mpp.value) == pytest.approx((0.7, 0.7, 0.85))
    assert found.fip.se == pytest.approx(math.sqrt(0.7 * 0.3 / 200), rel=0.1)
    assert grid.mpp.se == pytest.approx(math.sqrt(0.85 * 0.15 / 200), rel=0.1)
    assert (grid.index.value, grid.gap.value) == pytest.approx((1 - 0.85 / 0.7, -0.15))
    for estimate, statistic in ((grid.index, rci), (grid.gap, gap)):
        se, low, high = resampled(pairs_of(records), statistic)
        assert estimate.se == pytest.approx(se, rel=0.1)
        assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.25 * se)
        assert (estimate.n, estimate.clusters, estimate.draws, estimate.reason) == (200, 200, 1000, "")
    assert grid.band == "moderate local"
    assert grid.span.startswith("strong local to ")
    assert (grid.excluded, grid.reason) == (0, "")


def test_the_floors_of_a_plain_task():
    """Golds A, B, C, D evenly: a guess, every constant letter and the stratum's "A" get 1/4. The guess has no error."""
    found = numbers(standard())
    assert (found.ceiling, found.gold_below) == (1.0, 0)
    floors = {name: estimate.value for name, estimate in found.chance.floors.items()}
    assert floors == pytest.approx({"uniform": 0.25, "constant": 0.25, "stratum": 0.25})
    assert found.chance.floors["uniform"].se == pytest.approx(0, abs=1e-9)
    assert found.chance.floors["constant"].se == pytest.approx(math.sqrt(0.25 * 0.75 / 200), rel=0.1)
    assert found.chance.published == pytest.approx(0.25)
    assert (found.gate.valid, found.gate.delta) == (True, pytest.approx(0.01))


def test_the_floor_that_decides_is_the_largest():
    """80 golds of 200 are A: the constant gets 0.4, a guess 0.25, a stratum that always says B 0.2."""
    golds = "A" * 80 + "BCD" * 40
    records = [record(i, float(i % 20 >= 6), {2: CELLS[1]}, **mc4(gold, "B")) for i, gold in enumerate(golds)]
    found = numbers(records)
    assert (found.chance.floor, found.chance.constants) == ("constant", {"mc": "A"})
    assert found.chance.value == pytest.approx(0.4)
    assert found.chance.se == pytest.approx(math.sqrt(0.4 * 0.6 / 200), rel=0.1)
    assert found.chance.floors["stratum"].value == pytest.approx(0.2)
    assert (found.gate.chance, found.gate.se_fip, found.gate.se_chance) == (
        found.chance.value,
        found.fip.se,
        found.chance.se,
    )
    # right answers are as frequent among the As as elsewhere: Var(d) = 0.7 * 0.3 + 0.4 * 0.6
    assert found.gate.se == pytest.approx(math.sqrt(0.45 / 200), rel=0.1)
    assert found.gate.threshold == pytest.approx(0.4 + 2 * found.gate.se)


def test_what_wrong_images_score_in_a_plain_task():
    """One of four docs is right on a wrong image: 0.7 less 0.25, over all docs."""
    found = numbers(standard())
    (look,) = found.gate.looks
    assert (look.against, look.value, look.docs) == ("wrong images", True, 200)
    assert (look.full, look.other, look.difference.value) == pytest.approx((0.7, 0.25, 0.45))
    assert found.grids[2].warnings == ()


def test_where_a_plain_task_looks():
    """Cell 1 is right in 100 docs, cell 4 in 70, of 170 in which a cell is; the middle of a 2x2 grid is nowhere."""
    shares = numbers(standard()).grids[2].shares
    assert shares.score == pytest.approx([10 / 17, 0, 0, 7 / 17])
    assert shares.win == pytest.approx([10 / 17, 0, 0, 7 / 17])
    assert (shares.centre, shares.docs, shares.p) == (None, 200, 0.001)


def test_two_grids():
    """MPP_3 = 0.95: index 1 - 0.95/0.7."""
    records = [
        record(
            i,
            float(i % 20 >= 6),
            {2: CELLS[1 if i % 20 < 17 else 0], 3: [float(i % 20 < 19)] + [0.0] * 8},
            **mc4("ABCD"[i % 4]),
        )
        for i in range(200)
    ]
    found = numbers(records, grids=(2, 3))
    assert found.grids[3].index.value == pytest.approx(-25 / 70)


@pytest.mark.parametrize(
    ("name", "aggregate", "factor"),
    [("percent", lambda items: 100 * mean(items), 100), ("sum", sum, 200)],
    ids=["percent", "sum"],
)
def test_other_linear_aggregations_have_the_same_indices(name, aggregate, factor):
    """100 times the mean, and the sum of 200 docs: the index has no unit, all else has the metric's."""
    records = standard()
    plain, found = numbers(records), numbers(records, FakeNative(records, aggregate))
    one, other = plain.grids[2], found.grids[2]
    assert found.form == name
    assert (found.ceiling, found.fip.value, found.gate.delta) == pytest.approx((factor, 0.7 * factor, 0.01 * factor))
    assert found.gate.threshold == pytest.approx(factor * plain.gate.threshold)
    assert (other.gap.value, other.gap.low) == pytest.approx((factor * one.gap.value, factor * one.gap.low))
    assert (other.index.value, other.index.low) == pytest.approx((one.index.value, one.index.low))
    assert found.chance.published == pytest.approx(0.25 * factor)


def test_scores_that_are_percentages_themselves():
    """Scalars 0 and 100 under a mean."""
    plain, found = numbers(standard()), numbers(standard(scale=100.0))
    assert found.form == "mean"
    assert (found.ceiling, found.fip.value, found.chance.value, found.chance.published) == pytest.approx(
        (100, 70, 25, 25)
    )
    assert found.grids[2].index.value == pytest.approx(plain.grids[2].index.value)


# --- docs that are left out ------------------------------------------------------------------------------------


def test_excluded_docs_count_for_the_metric_but_not_for_the_index():
    """20 wrong docs are too small for the grid: FIP is 140/200 on all docs, 140/180 on the others; MPP 153/180."""
    records = standard(excluded=lambda i: (2,) if i % 20 in (0, 1) else ())
    found = numbers(records)
    grid = found.grids[2]
    assert grid.excluded == 20
    assert found.fip.value == pytest.approx(0.7)
    assert (grid.fip, grid.mpp.value) == pytest.approx((140 / 180, 150 / 180))
    assert grid.index.value == pytest.approx(1 - 150 / 140)
    assert (grid.index.n, grid.mpp.n, found.fip.n) == (180, 180, 200)
    for estimate, statistic in ((grid.index, rci), (grid.gap, gap)):
        se, low, high = resampled(pairs_of(records), statistic)
        assert estimate.se == pytest.approx(se, rel=0.15)
        assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.3 * se)
    assert grid.shares.docs == 180


def test_docs_without_the_metric_are_other_docs():
    """MME: half of the docs have the other metric."""
    records = standard()
    other = [
        {**one, "doc_id": 1000 + k, "views": [{**view, "items": {}, "scores": {}} for view in one["views"]]}
        for k, one in enumerate(records)
    ]
    found = numbers(records + other, FakeNative(records))
    assert (found.n_docs, found.fip.value) == (200, pytest.approx(0.7))


def broken():
    """The scorer failed on the full image of one doc, so that there is no native metric."""
    records = standard()
    records[3] = record(3, None, {2: CELLS[1]}, **mc4("A"))
    return records, FakeNative(records, why="some docs could not be scored")


def test_a_doc_that_could_not_be_scored_leaves_no_index():
    records, native = broken()
    grid = numbers(records, native).grids[2]
    assert (grid.index.value, grid.gap.value, grid.fip) == (None, None, None)
    assert grid.reason == "some docs could not be scored"


# --- the gate --------------------------------------------------------------------------------------------------


def test_a_gate_that_fails_leaves_only_the_native_metrics():
    """FIP 0.25: 15 of 20 wrong."""
    found = numbers(standard(wrong=15))
    grid = found.grids[2]
    assert (found.gate.valid, found.gate.number) == (False, 0)
    assert (grid.fip, grid.mpp.value) == pytest.approx((0.25, 0.85))
    assert grid.mpp.low < 0.85 < grid.mpp.high
    for estimate in (grid.index, grid.gap):
        assert (estimate.value, estimate.se, estimate.low, estimate.high) == (None, None, None, None)
        assert "near chance" in estimate.reason
    assert (grid.band, grid.span) == (None, None)
    assert "near chance" in grid.reason
    assert grid.shares is not None


def test_a_gate_that_is_not_known_is_said_and_the_index_stays():
    """Log of a judge task: no baselines, and no calls."""
    records = standard(baselines=[], wrong_image=None)
    found = numbers(records, FakeNative(records, no_calls="it calls a judge", silent=True))
    grid = found.grids[2]
    assert (found.gate.valid, found.gate.number) == (None, None)
    assert "no chance" in found.gate.reason
    assert "set 'chance'" in found.chance.reason
    assert (found.chance.value, found.ceiling) == (None, None)
    assert grid.index.value == pytest.approx(1 - 0.85 / 0.7)
    assert grid.index.low is not None  # a mean is seen from FIP and MPP alone
    assert any(warning.startswith("the gate is unknown") for warning in grid.warnings)


def test_a_delta_and_a_scale_that_are_given():
    records = standard()
    assert numbers(records, delta=0.5).gate.valid is False  # 0.25 + 0.5 > 0.7
    assert numbers(records, scale=2.0).gate.delta == pytest.approx(0.02)
    assert numbers(records, scale=2.0).chance.published == pytest.approx(0.5)


def test_a_uniform_guess_alone_is_beaten():
    """FIP 0.4, golds 35 % A: the margin of 2 SE (0.07) is kept from a guess, 0.25, but not from the constant A."""
    golds = "A" * 70 + "B" * 50 + "C" * 40 + "D" * 40
    found = numbers([record(i, float(i % 20 >= 12), {2: CELLS[1]}, **mc4(gold)) for i, gold in enumerate(golds)])
    assert found.gate.valid is False
    assert "only against a uniform guess (0.25)" in found.gate.reason


def test_golds_that_do_not_get_full_marks_are_counted():
    def baselines(i):
        return guesses("A", "ABCD", score=lambda answer, gold: exact(answer, gold) * (0.5 if i < 3 else 1.0))

    found = numbers(standard(baselines=baselines, answer=("mc", 4, "A")))
    assert found.gold_below == 3
    assert found.ceiling == pytest.approx(198.5 / 200)
    assert any("3 of 200 docs" in warning for warning in found.warnings)


# --- chance ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("golds", "form", "floor"),
    [
        (["no"] * 120 + ["yes"] * 80, "yesno", 0.6),
        (["no"] * 100 + ["yes"] * 100, "yesno", 0.5),
        (["no"] * 70 + ["yes"] * 65 + ["neither"] * 65, "yesno", 0.5),  # at least 1/2
        (["B"] * 80 + ["A", "C", "D"] * 40, "mc", 0.4),
    ],
)
def test_the_share_of_the_most_frequent_gold(golds, form, floor):
    """RCI paper, Table 3. Nothing is asked of the scorer."""
    records = [record(i, float(i % 20 >= 6), {2: CELLS[1]}, answer=(form, 2, gold)) for i, gold in enumerate(golds)]
    found = numbers(records, FakeNative(records, no_calls="it calls a judge", silent=True), chance="majority")
    share = max(golds.count(gold) for gold in golds) / 200
    assert (found.chance.floor, found.chance.value) == ("majority", pytest.approx(floor))
    assert found.chance.se == pytest.approx(math.sqrt(share * (1 - share) / 200), rel=0.1)
    assert numbers(records, chance="majority", scale=100.0).chance.value == pytest.approx(100 * floor)


def test_the_papers_rule_is_on_the_scale_of_the_metric():
    """Open golds, 120 of 200 "cat": the majority answer gets 60 percent."""
    records = []
    for i in range(200):
        gold = "cat" if i % 5 < 3 else "dog"
        own = [("cat", ["constant", "gold"] if gold == "cat" else ["constant"], exact("cat", gold))]
        own += [] if gold == "cat" else [("dog", ["gold"], 1.0)]
        records.append(record(i, float(i % 20 >= 6), {2: CELLS[1]}, answer=("open", 0, gold), baselines=own))
    assert numbers(records).chance.published == pytest.approx(0.6)
    assert numbers(records, FakeNative(records, lambda items: 100 * mean(items))).chance.published == pytest.approx(60)


# --- an aggregation that only its own code can compute -----------------------------------------------------------


def medians(n=60):
    """Scalars between 0 and 1, of which M takes the median."""
    stream = random.Random(2)
    return [
        record(
            i,
            stream.random(),
            {2: [stream.random() * 0.8 for _ in range(4)]},
            **mc4("ABCD"[i % 4]),
            cluster=i // 3,
            category="xy"[i % 2],
        )
        for i in range(n)
    ]


@pytest.mark.parametrize("cluster", [None, "cluster"])
def test_a_median_is_bootstrapped_by_calls(cluster):
    records = medians(180) if cluster else alone(medians(180))
    found = numbers(records, FakeNative(records, statistics.median), draws=600)
    grid = found.grids[2]
    pairs = pairs_of(records)
    full, best = (statistics.median(pair[k] for pair in pairs) for k in (0, 1))
    assert found.form is None
    assert (found.fip.value, grid.mpp.value, grid.index.value) == pytest.approx((full, best, 1 - best / full))

    def index(drawn):
        return 1 - statistics.median(b for _, b in drawn) / statistics.median(f for f, _ in drawn)

    se, low, high = resampled(pairs, index, None if cluster is None else [i // 3 for i in range(180)])
    assert grid.index.se == pytest.approx(se, rel=0.15)
    assert (grid.index.low, grid.index.high) == pytest.approx((low, high), abs=0.4 * se)
    assert grid.index.draws == 600
    assert (found.ceiling, found.chance.value, found.chance.published) == (
        1.0,
        0.0,
        None,
    )  # the median of 1/4 ones is 0
    assert found.gate.valid is True


def test_the_time_budget_is_kept_and_said():
    records = alone(medians())
    found = numbers(records, FakeNative(records, statistics.median), seconds=0.0)
    grid = found.grids[2]
    assert grid.index.value is not None
    assert grid.index.low is None
    assert grid.index.reason == "time for only 1 of 1000 draws"
    assert found.gate.valid is None
    assert found.gate.reason == "unknown: no standard error of FIP - chance"


def test_what_may_not_be_called_again_is_not_bootstrapped():
    """The aggregation writes a file. It is called once for each floor and each set, never in a draw."""
    records = alone(medians())
    native = FakeNative(records, statistics.median, no_calls="the aggregation writes a file")
    found = numbers(records, native)
    grid = found.grids[2]
    assert native.calls < 20
    assert (found.fip.value, found.fip.low) == (
        pytest.approx(statistics.median(full for full, _ in pairs_of(records))),
        None,
    )
    assert found.fip.reason == "the aggregation writes a file"
    assert grid.index.value is not None
    assert (grid.index.low, grid.index.reason) == (None, "the aggregation writes a file")
    assert found.gate.valid is None


def test_a_mean_by_accident_is_found_out():
    """The mean where all docs are there, 1 otherwise: FIP and MPP fit a mean, random halves do not."""
    records = standard()
    found = numbers(records, FakeNative(records, lambda items: mean(items) if len(items) == 200 else 1.0), draws=200)
    assert found.form is None


def test_a_form_that_is_known_is_not_asked_for():
    """Of a finished run M is no longer at hand."""
    records = standard()
    native = FakeNative(records, form="mean", no_calls="only files are at hand", silent=True)
    found = numbers(records, native)
    assert found.form == "mean"
    assert found.grids[2].index.low is not None


def test_a_declared_form_that_is_wrong_is_said():
    found = numbers(standard(), form="f1")
    assert found.form == "mean"
    assert any("declared as f1" in warning for warning in found.warnings)


# --- F1 ----------------------------------------------------------------------------------------------------------


def judged(gold, right):
    said = gold if right else {"yes": "no", "no": "yes"}[gold]
    return {"question_id": "q", "score": float(right), "prediction": said, "ground_truth": gold}


def f1_records(n=200):
    """Two golds of five are yes; yes docs are right 3 of 4 times on the full image, no docs 4 of 5 times."""
    stream, out = random.Random(6), []
    for i in range(n):
        gold = "yes" if i % 5 < 2 else "no"
        full = float(stream.random() < (0.75 if gold == "yes" else 0.8))
        cells = [float(stream.random() < 0.5) for _ in range(4)]
        own = [
            (one, roles, score, judged(gold, bool(score)))
            for one, roles, score in guesses(gold, ["yes", "no"], stratum="yes")
        ]
        out.append(
            record(
                i,
                full,
                {2: cells},
                items=lambda s, gold=gold: judged(gold, bool(s)),
                answer=("yesno", 2, gold),
                baselines=own,
            )
        )
    return out


def test_f1_against_pope_and_plain_loops():
    records = f1_records()
    native = FakeNative(records, pope.pope_aggregate_f1_score)
    found = numbers(records, native, form="f1")
    grid = found.grids[2]
    items = [(r["views"][0]["items"][METRIC], r["views"][r["best"]["2"]]["items"][METRIC]) for r in records]

    def f1(drawn, k):
        return pope.pope_aggregate_f1_score([pair[k] for pair in drawn])

    assert (found.form, found.warnings) == ("f1", (NOT_CHECKED,))
    assert (found.fip.value, grid.mpp.value) == pytest.approx((f1(items, 0), f1(items, 1)))
    assert grid.index.value == pytest.approx(1 - f1(items, 1) / f1(items, 0))
    se, low, high = resampled(items, lambda drawn: 1 - f1(drawn, 1) / f1(drawn, 0), draws=1500)
    assert grid.index.se == pytest.approx(se, rel=0.12)
    assert (grid.index.low, grid.index.high) == pytest.approx((low, high), abs=0.35 * se)
    # always yes: precision 0.4, recall 1, F1 = 0.8/1.4; always no: 0. A fair coin: precision 0.4, recall 1/2: 0.4/0.9
    assert found.chance.floors["stratum"].value == pytest.approx(0.8 / 1.4)
    assert found.chance.floors["uniform"].value == pytest.approx(0.4 / 0.9, abs=0.03)
    assert (found.ceiling, found.chance.published) == (1.0, None)


# --- MME: pairs of questions ----------------------------------------------------------------------------------------


def mme_records(pairs=60, too_small=()):
    """30 pairs each of OCR and count, a yes and a no question; what is right of ten pairs, first and second question:

    full image both in 20 of 30, else the first; best cell both in 27 of 30, else the first. Two donor pairs: the first
    is right in both questions with its best cell, else they are right in the first question.
    """
    out = []
    for doc in range(2 * pairs):
        pair, second = divmod(doc, 2)
        k, category = pair // 2, ("OCR", "count")[pair % 2]
        full, cell = float(not second or k < 20), float(not second or k < 27)
        gold = ("yes", "no")[second]

        def items(score, pair=pair, category=category):
            return {"question_id": f"{pair}.png", "category": category, "score": score}

        own = [(one, roles, score, items(score)) for one, roles, score in guesses(gold, ["yes", "no"], stratum="yes")]
        wrong_image = float(not second), {2: [0.0, float(not second or k % 2 == 0), 0.0, 0.0]}
        about = {
            "answer": ("yesno", 2, gold),
            "baselines": own,
            "wrong_image": wrong_image,
            "cluster": f"{category} / {pair}",
            "category": category,
        }
        about["excluded"] = (2,) if k in too_small else ()
        out.append(record(doc, full, {2: [0.0, cell, 0.0, 0.0]}, items=items, **about))
    return out


def test_mme_by_hand():
    """Per category: FIP (20 * 200 + 10 * 50) / 30 = 150, MPP (27 * 200 + 3 * 50) / 30 = 185, gold 200, whole wrong images 50.

    Over both: 300, 370, 400, 100. Always yes: 50 per category. A fair coin is right in one of two and, once in four, in both: 50 + 25 per category; 20 guesses of
    60 pairs have a standard error of 4.
    """
    records = mme_records()
    found = numbers(records, FakeNative(records, mme.mme_aggregate_results), form="mme")
    grid = found.grids[2]
    assert (found.form, found.clusters, found.n_docs, found.warnings) == ("mme", 60, 120, ())
    assert (found.fip.value, grid.mpp.value, found.ceiling) == pytest.approx((300, 370, 400))
    assert (grid.index.value, grid.gap.value) == pytest.approx((1 - 370 / 300, -70))
    assert found.chance.floors["constant"].value == pytest.approx(100)
    assert found.chance.floors["stratum"].value == pytest.approx(100)
    assert (found.chance.floor, found.chance.value) == ("uniform", pytest.approx(150, abs=17))
    assert (found.gate.delta, found.chance.published) == (pytest.approx(4.0), None)
    assert [(look.full, look.other) for look in found.gate.looks] == [pytest.approx((300, 100))]
    assert grid.index.clusters == 60


def test_the_interval_of_mme_takes_pairs():
    """A plain loop over pairs, with a question id of its own for each pair that is drawn, as the native aggregation wants."""
    records = mme_records()
    found = numbers(records, FakeNative(records, mme.mme_aggregate_results), form="mme").grids[2].index
    stream, drawn = random.Random(3), []
    for _ in range(1000):
        picked = [stream.randrange(60) for _ in range(60)]
        both = [
            [
                {**records[2 * pair + k]["views"][0 if which == 0 else 2]["items"][METRIC], "question_id": f"{place}"}
                for place, pair in enumerate(picked)
                for k in (0, 1)
            ]
            for which in (0, 1)
        ]
        full, best = map(mme.mme_aggregate_results, both)
        drawn.append(1 - best / full)
    assert found.se == pytest.approx(statistics.stdev(drawn), rel=0.12)
    unseen = (
        1 - (185.25 + 185) / (147.54 + 150) + 70 / 300
    )  # half a pair of 200 points on best cells and none on full images, in one of 30 pairs
    assert (found.low, found.high) == pytest.approx(
        np.quantile(drawn, [0.025, 0.975]), abs=0.35 * found.se - 2 * unseen
    )


def test_pairs_that_the_grid_does_not_use():
    """Five pairs of each category, wrong in one question on the full image and right with the best cell, are left out: FIP over the
    others (20 * 200 + 5 * 50) / 25 = 170, MPP (22 * 200 + 3 * 50) / 25 = 182 per category; FIP of all docs is 300 as
    before.
    """
    records = mme_records(too_small=range(20, 25))
    found = numbers(records, FakeNative(records, mme.mme_aggregate_results), form="mme")
    grid = found.grids[2]
    assert (found.fip.value, grid.fip, grid.mpp.value, grid.excluded) == (
        pytest.approx(300),
        pytest.approx(340),
        pytest.approx(364),
        20,
    )
    assert grid.index.value == pytest.approx(1 - 364 / 340)
    assert grid.index.clusters == 50


def test_half_a_pair_leaves_no_index():
    """One question of ten pairs is too small for the grid: lmms-eval's aggregation stops, and the reason is kept."""
    records = mme_records()
    for doc in range(0, 40, 4):
        records[doc]["excluded"]["2"] = "too small"
        del records[doc]["best"]["2"]
    why = "mme cannot be aggregated without the 10 docs that are left out"
    grid = numbers(records, FakeNative(records, mme.mme_aggregate_results, form="mme", why=why)).grids[2]
    assert (grid.excluded, grid.index.value, grid.gap.value, grid.reason) == (10, None, None, why)


# --- clusters and categories ------------------------------------------------------------------------------------------


def clustered():
    """50 images of four questions that are all right, or all wrong."""
    return [
        record(
            i,
            float(i // 4 % 10 >= 3),
            {2: CELLS[1 if i // 4 % 10 < 9 else 0]},
            **mc4("ABCD"[i % 4]),
            cluster=f"image {i // 4}",
            category="ab"[i % 2],
        )
        for i in range(200)
    ]


def test_clusters_are_resampled_whole():
    """Four equal docs an image: the standard error is that of 50 docs, twice that of 200."""
    records = clustered()
    kept, lost = numbers(records), numbers(alone(records))
    assert (kept.clusters, lost.clusters) == (50, None)
    assert kept.fip.se == pytest.approx(math.sqrt(0.7 * 0.3 / 50), rel=0.1)
    assert lost.fip.se == pytest.approx(math.sqrt(0.7 * 0.3 / 200), rel=0.1)
    assert kept.grids[2].index.se == pytest.approx(2 * lost.grids[2].index.se, rel=0.15)
    assert kept.grids[2].index.value == lost.grids[2].index.value
    assert kept.gate.threshold > lost.gate.threshold
    assert (kept.fip.clusters, kept.fip.n) == (50, 200)


def test_one_category():
    """Every second doc: of 20 docs the odd ones 7, 9, ... 19 are right, 7 of 10."""
    records = standard(category=lambda i: "even" if i % 2 == 0 else "odd")
    odd = [r["doc_id"] for r in records if r["fields"]["category"] == "odd"]
    found = numbers([records[i] for i in odd])
    assert odd == list(range(1, 200, 2))
    assert (found.n_docs, found.fip.value) == (100, pytest.approx(0.7))
    assert found.grids[2].mpp.value == pytest.approx(0.8)  # 1, 3, 5, ... 15
    # on a wrong image only docs 0, 4, 8, ... are right
    assert [look.other for look in found.gate.looks] == [0.0]


# --- a blind run
# --------------------------------------------------------------------------------------------------------


def test_a_blind_run_changes_no_index():
    """It is held against the full image by the gate, and says which docs need no image."""
    without, beside = numbers(standard()), numbers(standard(), blind={i: float(i % 10 < 4) for i in range(200)})
    assert beside.grids[2].index.value == without.grids[2].index.value
    assert beside.grids[2].gap.value == without.grids[2].gap.value
    assert [look.against for look in beside.gate.looks] == ["wrong images", "blind"]


# --- golds that the scorer does not read ---------------------------------------------------------------------


def gold_scores(records, score):
    """The records with another score for the gold of each doc: ``score(doc, native)``."""
    for i, one in enumerate(records):
        for baseline in one["baselines"]:
            if "gold" in baseline["roles"]:
                baseline["scores"][METRIC] = score(i, baseline["scores"][METRIC])
    return records


def guessing(n=400, seed=3):
    """A pure guesser of four options: right on the full image with 1/4, in some cell of 3x3 with 1 - (3/4)^9."""
    stream = random.Random(seed)
    return [
        record(
            i,
            float(stream.random() < 0.25),
            {3: [float(stream.random() < 0.25) for _ in range(9)]},
            **mc4("ABCD"[i % 4]),
        )
        for i in range(n)
    ]


def test_golds_that_score_nothing_leave_no_index():
    """The scorer compares with another field than ``doc_to_target``: no answer that the plan knows scores, so chance is 0 and any guesser passes."""
    records = guessing()
    for one in records:
        for baseline in one["baselines"]:
            baseline["scores"][METRIC] = 0.0
    found = numbers(records, grids=(3,))
    assert (found.ceiling, found.chance.value) == (0.0, 0.0)
    assert found.fip.value > 0.2, "the guesser beats the false floor by far"
    assert (found.gate.valid, found.gate.threshold, found.grids[3].index.value) == (None, None, None)
    assert found.grids[3].index.reason == found.gate.reason.removeprefix("unknown: ")
    assert found.gate.reason == (
        "unknown: the gold answers score 0: the scorer does not compare with them; name the field that it "
        "compares with (metadata: {lmms_patch: {gold: FIELD}} in the task file, or gold: FIELD in a profile)"
    )
    assert found.grids[3].index.reason in found.warnings


@pytest.mark.parametrize(("unread", "known"), [(8, True), (12, False)])
def test_up_to_one_in_twenty_docs_may_have_an_answer_above_its_gold(unread, known):
    """Of the first docs the golds score 0 and some view is right: of 200 docs, 4 % and 6 %."""
    found = numbers(
        gold_scores(standard(), lambda doc, score: score * (doc % 20 >= 10 or doc // 20 * 10 + doc % 20 >= unread))
    )
    assert found.gold_below == unread
    assert (found.gate.valid, found.grids[2].index.value is not None) == ((True, True) if known else (None, False))
    assert known or found.grids[2].index.reason.startswith(
        f"{unread} of 200 docs have an answer that scores above their gold: "
    )


def test_with_documented_chance_and_scale_the_index_stays_and_a_line_says_what_is_wrong():
    found = numbers(gold_scores(standard(), lambda doc, score: 0.0), chance=0.25, scale=1.0)
    assert found.gate.valid is True
    assert found.grids[2].index.value == pytest.approx(1 - 0.85 / 0.7)
    assert any(line.startswith("the gold answers score 0: ") for line in found.warnings)


def test_a_caption_may_beat_its_references():
    docs = [
        record(i, 0.9, {2: [0.9, 0.0, 0.0, 0.0]}, answer=("caption", 0, "a cat"), baselines=[("a cat", ["gold"], 0.6)])
        for i in range(100)
    ]
    assert not any("does not compare" in line for line in numbers(docs).warnings)


def test_docs_of_one_image_are_drawn_together_where_nobody_names_clusters():
    """Four docs an image, as a circular benchmark has them: the interval is that of 50 docs, and a line says so."""
    named, shared = clustered(), alone(clustered())
    shared = [{**one, "images": f"{i // 4:016x}"} for i, one in enumerate(shared)]
    wanted, found = numbers(named), numbers(shared)
    assert (found.clusters, found.fip) == (50, wanted.fip)
    assert found.grids[2].index == wanted.grids[2].index
    (said,) = [line for line in found.warnings if "docs of one image are drawn together" in line]
    apart = numbers(alone(clustered())).fip
    wider = (found.fip.high - found.fip.low) / (apart.high - apart.low)
    assert said.startswith("200 docs show 50 different images")
    told = re.search(r"drawn together: the score's interval is (.*) times as wide \(to draw", said)
    assert float(told.group(1)) == pytest.approx(wider, abs=0.1)
    assert not any("of one image" in line for line in wanted.warnings)
