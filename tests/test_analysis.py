"""From records to numbers: by hand, or by plain loops."""

import math
import random
import statistics

import numpy as np
import pytest
from lmms_eval.tasks.mme import utils as mme
from lmms_eval.tasks.pope import utils as pope

from lmms_patch.analysis import analyse
from lmms_patch.draws import Settings
from lmms_patch.errors import RecordError
from lmms_patch.tables import only
from tests.recordings import FakeNative, exact, guesses, record, table

CELLS = {4: [0, 0, 0, 1.0], 1: [1.0, 0, 0, 0], 0: [0.0] * 4}
"""Cells of a 2x2 grid of which the numbered one is right."""


def mc4(gold):
    return {"answer": ("mc", 4, gold), "baselines": guesses(gold, "ABCD")}


def standard(n=200, **more):
    """FIP 0.7, MPP_2 0.85; of 20 docs 14 are right on the full image, 10 in cell 1, 7 in cell 4; golds A to D, evenly.

    Each doc has four donors of the same kind: one is right on the full image (FIP0 1/4), two in their best cell (MPP0 1/2).
    """
    docs = []
    for i in range(n):
        lent = [((i - 1 - p) % n, p, float(p == 0), {2: float(p < 2)}) for p in range(4)]
        right = 1 if i % 20 < 10 else 4 if i % 20 < 17 else 0
        options = {"lent": lent, **mc4("ABCD"[i // 20 % 4]), **more}
        docs.append(record(i, float(i % 20 >= 6), {2: CELLS[right]}, **options))
    return docs


def numbers(records, native=None, grids=(2,), blind=None, cluster="cluster", higher=True, **settings):
    return analyse(table(records, cluster=cluster, higher=higher), native or FakeNative(records), Settings(**settings), grids, blind)


def resampled(values, statistic, clusters=None, draws=4000, seed=1):
    """The bootstrap in a plain loop: standard error and 2.5 % and 97.5 % points; ``values`` are (full, best) of each doc."""
    stream = random.Random(seed)
    groups = {}
    for i, value in enumerate(values):
        groups.setdefault(i if clusters is None else clusters[i], []).append(value)
    members = list(groups.values())
    drawn = []
    for _ in range(draws):
        picked = [value for _ in members for value in stream.choice(members)]
        drawn.append(statistic(picked))
    return statistics.stdev(drawn), *np.quantile(drawn, [0.025, 0.975])


def rci(picked):
    return 1 - sum(best for _, best in picked) / sum(full for full, _ in picked)


def pairs_of(records, n=2):
    return [(r["views"][0]["scores"]["acc"], r["views"][r["best"][str(n)]]["scores"]["acc"]) for r in records if str(n) not in r["excluded"]]


# --- a mean --------------------------------------------------------------------------------------------------


def test_the_numbers_of_a_plain_task():
    records = standard()
    found = numbers(records)
    grid = found.grids[2]
    assert (found.metric, found.n_docs, found.clusters, found.form, found.warnings) == ("acc", 200, None, "mean", ())
    assert (found.fip.value, grid.fip, grid.mpp.value) == pytest.approx((0.7, 0.7, 0.85))
    assert found.fip.se == pytest.approx(math.sqrt(0.7 * 0.3 / 200), rel=0.1)
    assert grid.mpp.se == pytest.approx(math.sqrt(0.85 * 0.15 / 200), rel=0.1)
    assert grid.index.value == pytest.approx(1 - 0.85 / 0.7)
    assert grid.gap.value == pytest.approx(-0.15)
    se, low, high = resampled(pairs_of(records), rci)
    assert grid.index.se == pytest.approx(se, rel=0.1)
    assert (grid.index.low, grid.index.high) == pytest.approx((low, high), abs=0.25 * se)
    se, low, high = resampled(pairs_of(records), lambda picked: sum(full - best for full, best in picked) / len(picked))
    assert (grid.gap.low, grid.gap.high) == pytest.approx((low, high), abs=0.25 * se)
    assert (grid.band, grid.excluded, grid.reason) == ("moderate local", 0, "")
    assert grid.span.startswith("strong local")
    assert found.relative_change is None


def test_chance_ceiling_and_gate_of_a_plain_task():
    """Golds A, B, C, D evenly: every letter gets 1/4. So the guess decides, without any error; 0.25 + 2 SE is far below 0.7."""
    found = numbers(standard())
    assert found.ceiling == 1.0
    assert found.gold_below == 0
    assert found.chance.floors["uniform"].value == pytest.approx(0.25)
    assert found.chance.floors["uniform"].se == pytest.approx(0, abs=1e-9)
    assert found.chance.floors["constant"].value == pytest.approx(0.25)
    assert found.chance.floors["stratum"].value == 1.0  # these docs say that each is a stratum of its own
    assert found.chance.published == pytest.approx(0.25)


def test_the_floor_that_decides_is_the_largest():
    """The stratum's majority "A" is right for 50 of 200 golds, the constant "A" too: 0.25 is tied; with 80 golds A it is 0.4."""
    golds = "A" * 80 + "BCD" * 40
    records = [
        record(i, float(i % 20 >= 6), {2: CELLS[1]}, answer=("mc", 4, gold), baselines=guesses(gold, "ABCD", stratum="B"))
        for i, gold in enumerate(golds)
    ]
    found = numbers(records)
    assert (found.chance.floor, found.chance.constants) == ("constant", {"mc": "A"})
    assert found.chance.value == pytest.approx(0.4)
    assert found.chance.se == pytest.approx(math.sqrt(0.4 * 0.6 / 200), rel=0.1)
    assert found.chance.floors["stratum"].value == pytest.approx(0.2)
    gate = found.gate
    assert (gate.valid, gate.fip, gate.chance, gate.delta) == (True, pytest.approx(0.7), found.chance.value, pytest.approx(0.01))
    assert (gate.se_fip, gate.se_chance) == (found.fip.se, found.chance.se)
    assert gate.threshold == pytest.approx(0.4 + 2 * max(found.fip.se, found.chance.se))


def test_luck_of_a_plain_task():
    """kappa_FIP = (0.7 - 1/4) / (3/4) = 0.6, kappa_MPP = (0.85 - 1/2) / (1/2) = 0.7."""
    luck = numbers(standard(chance_free=None)).grids[2].adj if False else numbers(with_low_floor(standard())).grids[2].adj
    assert (luck.fip0, luck.mpp0) == pytest.approx((0.25, 0.5))
    assert (luck.kappa_full, luck.kappa_best) == pytest.approx((0.6, 0.7))
    assert luck.estimate.value == pytest.approx(1 - 0.7 / 0.6)
    assert luck.estimate.low < luck.estimate.value < luck.estimate.high
    (only_class,) = luck.classes
    assert (only_class.label, only_class.docs, only_class.state) == ("mc4", 200, "used")
    assert luck.without_donor == 0


def with_low_floor(records):
    return records
