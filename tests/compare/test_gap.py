"""The vision-blind gap: hand-derived numbers, simulated worlds, and finished runs."""

import math

import numpy as np
import pytest

from lmms_patch.app import cli
from lmms_patch.compare.gap import Scores, gap, of_runs, read_subset
from lmms_patch.errors import RecordError
from tests.making import lean
from tests.sizes import size


def scores(full, blind, **more):
    full, blind = np.asarray(full, float), np.asarray(blind, float)
    return Scores(list(range(len(full))), full, blind, **more)


# --- of scores ------------------------------------------------------------------------------------


def test_hand_derived_numbers():
    """Gaps 1, 0, 1, 0: of the 6 pairs of docs one has the gap 1, four 1/2, one 0."""
    found = gap(scores([1, 1, 1, 0], [0, 1, 0, 0]), {0, 2}, controls=2000)
    whole, own, random = found.rows
    assert (whole.gap.n, whole.full, whole.blind, whole.gap.value) == (4, 0.75, 0.25, 0.5)
    assert (own.gap.n, own.full, own.blind, own.gap.value) == (2, 1.0, 0.0, 1.0)
    assert found.widened.value == 0.5
    assert found.p == pytest.approx(1 / 6, abs=0.03)
    assert random.gap.value == pytest.approx(0.5, abs=0.03)
    assert (random.gap.low, random.gap.high) == (0, 1)
    assert not found.claimed  # four docs have no interval


def test_where_lower_is_better_a_positive_gap_still_means_that_looking_helps():
    (row,) = gap(scores([0.25], [0.75], higher=False)).rows
    assert (row.full, row.blind, row.gap.value) == (0.25, 0.75, 0.5)


def test_standard_errors_are_those_of_the_paired_formulas():
    stream = np.random.default_rng(0)
    full, blind = stream.random(2000) < 0.7, stream.random(2000) < 0.4
    kept = np.arange(2000) < 800
    found = gap(scores(full, blind), set(range(800)), draws=4000, controls=20)
    d = full.astype(float) - blind
    assert found.rows[0].gap.se == pytest.approx(d.std() / math.sqrt(2000), rel=0.06)
    # difference of two overlapping means: the mean of the docs' influences
    influence = kept / 0.4 * (d - d[kept].mean()) - (d - d.mean())
    assert found.widened.se == pytest.approx(influence.std() / math.sqrt(2000), rel=0.06)
    assert found.widened.value == pytest.approx(d[kept].mean() - d.mean())


def test_the_clustered_interval_covers_the_true_gap():
    """60 images of 5 docs, easy or hard as a whole; the true gap is 0.3."""
    stream, covered, alone, runs = np.random.default_rng(1), 0, 0, size(100, 300)
    for _ in range(runs):
        easy = np.repeat(stream.random(60) < 0.5, 5)
        full = stream.random(300) < np.where(easy, 0.95, 0.45)
        blind = stream.random(300) < np.where(easy, 0.1, 0.7)
        gaps = [gap(scores(full, blind, clusters=of), draws=300).rows[0].gap for of in (np.arange(300) // 5, None)]
        inside = [one.low <= 0.3 <= one.high for one in gaps]
        covered, alone = covered + inside[0], alone + inside[1]
    assert 0.95 - 3.2 * math.sqrt(0.95 * 0.05 / runs) <= covered / runs <= 0.95 + 2.4 * math.sqrt(0.95 * 0.05 / runs)
    assert alone / runs < 0.85, "docs that are resampled one by one pretend to know more"


def test_random_subsets_keep_the_counts_of_every_group():
    """Every doc of group a has the gap 1, every doc of b 0: with 3 of a and 1 of b each subset has the gap 3/4."""
    groups = ["a" if i < 10 else "b" for i in range(40)]
    found = gap(scores([1.0] * 40, [0.0] * 10 + [1.0] * 30, groups=groups), {0, 1, 2, 39}, controls=50)
    random = found.rows[2].gap
    assert (random.low, random.value, random.high, found.p) == (0.75, 0.75, 0.75, 1)


def test_a_subset_of_easier_groups_is_no_widening():
    groups = ["a" if i < 100 else "b" for i in range(200)]
    stream = np.random.default_rng(0)
    blind = [float(stream.random() < (0.1 if i < 100 else 0.8)) for i in range(200)]
    found = gap(scores([1.0] * 200, blind, groups=groups), set(range(50, 120)))
    assert found.widened.low > 0, "the gap of this subset is wider"
    assert not found.claimed


def test_one_image_is_no_evidence_of_a_widening():
    """12 images of 20 docs: in the first looking helps always, in the others never; the subset has all docs of the first.

    Random subsets of docs hardly ever do; but in a third of the draws of images the first one is not there.
    """
    found = gap(scores([1.0] * 240, [0.0] * 20 + [1.0] * 220, clusters=np.arange(240) // 20), range(120))
    assert found.p < 0.05
    assert found.widened.low <= 0
    assert found.verdict.startswith("no widening is shown: ")


def pruned_world(stream, n=200, of_shortcuts=True):
    """Docs of which 40 % can be answered blindly, and a third of them pruned: mostly those, or any."""
    shortcut = stream.random(n) < 0.4
    full = stream.random(n) < np.where(shortcut, 0.95, 0.75)
    blind = stream.random(n) < np.where(shortcut, 0.95, 0.25)
    doubt = stream.random(n) + (np.where(shortcut, 0, 0.7) if of_shortcuts else 0)
    groups = ["mc4" if i % 3 else "yesno" for i in range(n)]
    return scores(full, blind, groups=groups), set(np.argsort(doubt)[n // 3 :].tolist())


def claims(worlds, **kind):
    stream = np.random.default_rng(7)
    return [gap(*pruned_world(stream, **kind), controls=99, draws=200, seed=i).claimed for i in range(worlds)]


def test_pruning_what_can_be_answered_blindly_widens_the_gap():
    assert np.mean(claims(size(30, 60))) > 0.95


def test_pruning_at_random_is_hardly_ever_called_a_widening():
    runs = size(80, 300)
    assert np.mean(claims(runs, of_shortcuts=False)) <= 0.05 + 1.6 * math.sqrt(0.05 * 0.95 / runs)


def test_verdicts():
    """20 of 20: the low end is 2 · 0.025^(1/20) − 1."""
    assert gap(scores([1] * 20, [0] * 20)).verdict == "looking helps: the gap is +1.000 [+0.663, +1.000]"
    assert gap(scores([0] * 20, [1] * 20)).verdict.startswith("looking hurts")
    assert gap(scores([1, 0] * 10, [0, 1] * 10)).verdict.startswith("no gap is shown")
    assert gap(scores([1], [0])).verdict.startswith(
        "unknown: the gap is +1.000 without an interval (1 docs are too few"
    )
    found, kept = pruned_world(np.random.default_rng(0))
    assert gap(found, kept).verdict.startswith("pruning widened the gap: +0.")
    told = gap(found, kept, circular=True)
    assert (told.claimed, "which is what pruning goes by" in told.verdict) == (False, True)
    with pytest.raises(RecordError, match="none of the 1 doc ids of the subset is scored in both runs"):
        gap(found, {999})
    every = gap(found, set(range(210))).warnings
    assert every == (
        "10 of the 210 docs of the subset are not scored in both runs",
        "the subset has every doc: there is nothing to compare",
    )


# --- of runs --------------------------------------------------------------------------------------


def ran(folder, *kinds, n=60, base="toy", **more):
    """A run: right on 0.8 with the image, on 0.5 without."""
    share = {"rci2": 0.8, "blind": 0.5}
    tasks = [
        lean.stressed(n=n, name=f"{base}_tst5")
        if kind == "tst5"
        else lean.task(*lean.planted(n, share[kind], 0.3)[: 1 + (kind == "rci2")], name=f"{base}_{kind}")
        for kind in kinds
    ]
    lean.write(folder, tasks, **more)
    return folder


def test_a_run_and_its_blind_run(tmp_path, capsys):
    both = ran(tmp_path / "both", "rci2", "blind")
    (row,) = of_runs(both, both).rows
    assert (row.full, row.blind, row.gap.value, row.gap.n) == (0.8, 0.5, pytest.approx(0.3), 60)
    kept = tmp_path / "kept.txt"
    kept.write_text("".join(f"{i}\n" for i in range(30, 60)))  # the blind run is right on docs 0..29
    assert cli.main(["gap", str(both), str(both), "--subset", str(kept)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["docs", "n", "full", "blind", "gap"]
    assert [line.split()[0] for line in lines[2:5]] == ["original", "pruned", "random"]
    assert lines[3].split()[1:5] == ["30", "0.600", "0.000", "+0.600"]
    assert lines[5].startswith("pruning widened the gap: +0.300 [")


def test_which_tasks_are_set_side_by_side(tmp_path):
    full, blind = ran(tmp_path / "full", "rci2"), ran(tmp_path / "blind", "blind", "tst5")
    with pytest.raises(RecordError, match=r"2 pairs of a task and its blind task.*choose with --task"):
        of_runs(full, blind)
    assert of_runs(full, blind, task="toy_blind").rows[0].blind == 0.5
    assert "which is what pruning goes by" in of_runs(full, blind, task="toy_tst5", subset=_ids(tmp_path)).verdict
    with pytest.raises(RecordError, match=r"no task and its blind task: .*gqa_rci3,gqa_blind"):
        of_runs(full, full)
    with pytest.raises(RecordError, match="no task and its blind task"):
        of_runs(full, ran(tmp_path / "other", "blind", base="other"))
    other = of_runs(full, ran(tmp_path / "model", "blind", model="small"), task="toy")
    assert other.warnings[0].startswith("the runs are of two models, m and small")
    newer = ran(tmp_path / "blind", "blind", n=50, date="2027-01-01")
    found = of_runs(full, newer, task="toy_blind")
    assert found.rows[0].gap.n == 50
    assert "left out: 10 docs that only the full run asked, 0 only the blind run, 0 unscored in one" in found.warnings


def _ids(folder):
    (folder / "ids").write_text("1\n2\n3\n")
    return folder / "ids"


@pytest.mark.parametrize(
    ("text", "said"),
    [("1\ntwo", "'two' is no doc id"), ("", "no doc ids"), ("\u0663", "is no doc id"), ("-1", "'-1' is")],
)
def test_bad_subsets_are_one_line(tmp_path, text, said):
    (tmp_path / "ids").write_text(text)
    with pytest.raises(RecordError, match=said):
        read_subset(tmp_path / "ids")
    with pytest.raises(RecordError, match=r"pruned\.json"):
        read_subset(tmp_path)
