"""The studies of benchmarks/calibration.py with few runs: limits are its targets, widened by four standard errors of the runs."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "calibration.py"


def load():
    spec = importlib.util.spec_from_file_location("calibration", FILE)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


c = load()


def repeat(once, runs, **arguments):
    return [once(np.random.default_rng([7, run]), **arguments) for run in range(runs)]


def shares(found, column):
    return [one[column] for one in found if not math.isnan(one[column])]


def within(found, column, low, high):
    """Whether a share lies in low..high, but for four standard errors at the limit."""
    values = shares(found, column)
    assert len(values) > len(found) / 2
    share = np.mean(values)
    below, above = (4 * math.sqrt(p * (1 - p) / len(values)) for p in (low, high))
    return low - below <= share <= high + above


# --- the made-up answers themselves -----------------------------------------------------------


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("size", [1, 5, "uneven"])
def test_means_are_those_that_were_asked_for(graded, size):
    """40 samples of 2000 docs; the standard error from the samples themselves."""
    means = []
    for run in range(40):
        stream = np.random.default_rng(run)
        scores = c.two_scores(stream, 2000, 0.6, 0.75, c.cluster_labels(stream, 2000, size), graded=graded)
        means.append(scores.mean(axis=0))
    error = np.std(means, axis=0, ddof=1) / math.sqrt(40)
    assert (np.abs(np.mean(means, axis=0) - [0.6, 0.75]) < 4 * error).all()
    assert np.corrcoef(scores.T)[0, 1] > 0.2  # views of a doc go together
    assert set(np.round(np.unique(scores), 9)) <= ({0.0, 0.3, 0.6, 0.9, 1.0} if graded else {0.0, 1.0})


def test_docs_of_a_cluster_go_together():
    stream = np.random.default_rng(0)
    scores = c.two_scores(stream, 20_000, 0.6, 0.75, c.cluster_labels(stream, 20_000, 2))[:, 0].reshape(-1, 2)
    assert np.corrcoef(scores.T)[0, 1] > 0.1


def test_a_world_does_what_it_says():
    """Full image: 0.8 + 0.2/4; one cell knows 0.4, all guess on the rest: 1 − 0.6 · (3/4)^9."""
    fip, mpp = c.world(np.random.default_rng(0), 20_000, cell=0.4).pairs.mean(axis=0)
    assert fip == pytest.approx(0.85, abs=4 * math.sqrt(0.85 * 0.15 / 20_000))
    assert mpp == pytest.approx(1 - 0.6 * 0.75**9, abs=4 * math.sqrt(0.05 / 20_000))


# --- the index --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("docs", "size", "fip", "mpp"), [(200, 1, 0.3, 0.375), (1000, 2, 0.6, 0.36), (1000, 5, 0.9, 0.97), (1000, 18, 0.6, 0.75), (5000, 1, 0.9, 0.54)]
)
def test_interval_of_rci(docs, size, fip, mpp):
    assert within(repeat(c.rci_once, 400, docs=docs, size=size, fip=fip, mpp=mpp), c.HOLDS, 0.93, 0.97)


def test_interval_of_rci_with_graded_scores():
    assert within(repeat(c.rci_once, 400, docs=300, size="uneven", fip=0.6, mpp=0.75, graded=True), c.HOLDS, 0.93, 0.97)


@pytest.mark.parametrize(("groups", "size"), [(10, 5), (20, 18), (49, 5)])
def test_interval_of_rci_with_few_clusters(groups, size):
    assert within(repeat(c.rci_once, 300, docs=groups * size, size=size, fip=0.6, mpp=0.36), c.HOLDS, 0.91, 1)


@pytest.mark.parametrize("size", [5, 18])
def test_ignoring_clusters_is_too_sure(size):
    """The same draws: fewer intervals hold the truth, and for clusters of 18 under 80 %."""
    ignored, together = (
        np.mean(shares(repeat(c.rci_once, 300, docs=1000, size=size, fip=0.6, mpp=0.75, ignore=way), c.HOLDS)) for way in (True, False)
    )
    assert ignored < together
    assert ignored < {5: 0.93, 18: 0.80}[size]


@pytest.mark.parametrize(("options", "n"), [(4, 3), (2, 2)])
def test_an_index_of_guesses_is_what_theory_says(options, n):
    found = repeat(c.guess_once, 200, docs=1000, options=options, n=n)
    p = 1 / options
    values = [one["mean RCI"] for one in found]
    assert np.mean(values) == pytest.approx(
        1 - (1 - (1 - p) ** (n * n)) / p, abs=4 * np.std(values) / math.sqrt(200) + 0.02
    )  # a ratio is not without bias
    assert within(found, c.HOLDS, 0.93, 0.97)


# --- the gate ---------------------------------------------------------------------------------


@pytest.mark.parametrize("golds", range(len(c.GOLDS)))
@pytest.mark.parametrize("model", ["prior", "documented"])
def test_a_model_that_does_not_look_does_not_pass(golds, model):
    assert within(repeat(c.gate_once, 120, docs=200, prior=c.GOLDS[golds][1], model=model, size=1 + 3 * (golds % 2)), c.PASSES, 0, 0.03)


@pytest.mark.parametrize("model", ["letter", "majority"])
def test_an_answer_that_fits_the_golds_best_never_passes(model):
    for _, prior in c.GOLDS[3:]:
        assert not any(one[c.PASSES] for one in repeat(c.gate_once, 20, docs=200, prior=prior, model=model, size=4))


@pytest.mark.parametrize("model", ["prior", "letter", "majority"])
def test_neither_by_way_of_records(model):
    """And then the index is null."""
    prior = dict(c.GOLDS)["yes/no, 0.8 yes in one type of question, 0.2 in the other"]
    found = repeat(c.whole_once, 15, make=lambda stream: c.uninformed(stream, 200, prior, model, size=4))
    assert sum(one[c.PASSES] for one in found) <= (0 if model != "prior" else 2)
    assert all(one["RCI is null, %"] == 1 - one[c.PASSES] for one in found)


# --- luck -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "truth", "arguments"), c.WORLDS)
def test_interval_of_the_index_without_luck(name, truth, arguments):
    assert within(repeat(c.adj_once, 120, docs=300, truth=truth, draws=300, options=5, n=2, **arguments), c.HOLDS, 0.93, 0.97)


def test_interval_of_the_index_without_luck_with_clusters_and_grades():
    assert within(repeat(c.adj_once, 120, docs=300, truth=0.5, draws=300, n=2, cell=0.4, graded=True, size=5), c.HOLDS, 0.93, 0.97)


def test_luck_saturates_with_nine_guesses_at_yes_or_no():
    assert all(one["luck saturates, %"] for one in repeat(c.adj_once, 20, docs=300, truth=None, draws=100, options=2))


@pytest.mark.parametrize(("options", "n"), [(4, 3), (2, 2), (5, 2)])
@pytest.mark.parametrize("cell", [0.0, 0.4, 0.85])
def test_the_forms_of_the_index(options, n, cell):
    """RCI and the difference form against their formulas, RCI_adj against the truth (20,000 docs, m options, n² cells)."""
    found = c.forms_once(np.random.default_rng(3), options=options, n=n, cell=cell)
    fip, wrong = 0.8 + 0.2 / options, (1 - 1 / options) ** (n * n)
    mpp, mpp0 = 1 - (1 - cell) * wrong, 1 - wrong
    assert found["RCI"] == pytest.approx(1 - mpp / fip, abs=0.02)
    assert found["difference form"] == pytest.approx(1 - (mpp - mpp0) / (fip - 1 / options), abs=0.03)
    assert found["RCI_adj"] == pytest.approx(1 - cell / 0.8, abs=0.1)


def test_graded_scores_and_constant_cells():
    assert c.forms_once(np.random.default_rng(3), graded=True, n=2, cell=0.4)["RCI_adj"] == pytest.approx(0.5, abs=0.1)
    constant = c.forms_once(np.random.default_rng(3), cell=0.85, rest="constant")
    assert constant["RCI_adj"] == pytest.approx(1 - 0.85 / 0.8, abs=0.05)
    assert constant["difference form"] == pytest.approx(0.20, abs=0.05)


@pytest.mark.parametrize("place", range(4))
def test_donors_of_the_same_type_and_a_blind_run(place):
    """Types of question with their own answers; cells that repeat what the text gives: wrong without, right with."""
    (one,) = c.outcomes("strata", place, [0])
    setting = c.STUDIES["strata"].settings()[place]
    assert not c.missed(setting, one)


def test_blind_run_by_way_of_records():
    found = repeat(c.whole_once, 4, make=lambda stream: c.world(stream, 300, options=12, rest="blind", types=2), truth=1.0, blind=True)
    assert all(one[c.PASSES] and one[c.HOLDS] for one in found)


# --- the script -------------------------------------------------------------------------------


def test_a_table_says_what_is_missed():
    def setting(value):
        return c.Setting({"case": value}, lambda stream: {c.HOLDS: value}, c.Target(c.HOLDS, 0.93, 0.97))

    rows = [(one, c.averages([one.once(None)])) for one in (setting(0.95), setting(0.9))]
    assert [c.missed(*row) for row in rows] == [False, True]
    assert c.markdown(c.Study("Title", list), rows).splitlines()[-2:] == [
        "| 0.95 | 95.0 | 93 % to 97 %: met |",
        "| 0.9 | 90.0 | 93 % to 97 %: MISSED |",
    ]
