"""The vision-blind gap of finished runs: numbers by hand, what a pruning widens, and which tasks are set side by side."""

import json

import numpy as np
import pytest

from lmms_patch.app import cli
from lmms_patch.compare.gap import of_runs
from lmms_patch.errors import RecordError
from tests.making import lean


def ran(folder, full=None, blind=None, base="toy", **more):
    """A run with these scores with the image, and without; all of either side may be left out."""
    about = {key: more.pop(key) for key in ("higher", "clusters") if key in more}
    tasks = [lean.task(full, np.zeros(len(full)), name=f"{base}_rci2", **about)] if full is not None else []
    tasks += [lean.task(blind, name=f"{base}_blind", **about)] if blind is not None else []
    lean.write(folder, tasks, **more)
    return folder


def share(n, right):
    return (np.arange(n) < right * n).astype(float)


FULL, BLIND = share(60, 0.8), share(60, 0.5)


def pruning(folder, kept, **more):
    folder.mkdir()
    about = {"schema": 1, "base": "toy", "kept": [{"key": f"k{i}", "doc_id": int(i)} for i in kept], **more}
    (folder / "pruned.json").write_text(json.dumps(about))
    return folder


def test_a_run_and_its_blind_run_before_and_after_pruning(tmp_path, capsys):
    """The blind run is right on docs 0..29: those went."""
    both, kept = ran(tmp_path / "both", FULL, BLIND), pruning(tmp_path / "pruned", range(30, 60))
    (row,) = of_runs(both, both).rows
    assert (row.docs, row.full, row.blind, row.gap.value) == (60, 0.8, 0.5, pytest.approx(0.3))
    assert cli.main(["gap", str(both), str(both), "--subset", str(kept)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["docs", "n", "full", "blind", "gap"]
    assert [line.split()[:5] for line in lines[2:4]] == [
        ["original", "60", "0.800", "0.500", "+0.300"],
        ["pruned", "30", "0.600", "0.000", "+0.600"],
    ]
    assert lines[4].startswith("the gap is wider on the kept docs: +0.300 [+0.")


def test_docs_that_went_by_chance_widen_nothing(tmp_path):
    both = ran(tmp_path / "both", FULL, BLIND)
    found = of_runs(both, both, pruning(tmp_path / "pruned", range(0, 60, 2)))
    assert found.widened.low <= 0 <= found.widened.high
    assert found.verdict.startswith("no wider gap is shown on the kept docs: ")


def test_its_standard_errors_are_those_of_the_paired_formulas(tmp_path):
    stream = np.random.default_rng(0)
    full, blind = ((stream.random(2000) < right).astype(float) for right in (0.7, 0.4))
    kept, d = np.arange(2000) < 800, full - blind
    both = ran(tmp_path / "both", full, blind)
    found = of_runs(both, both, pruning(tmp_path / "pruned", range(800)))
    assert found.rows[0].gap.se == pytest.approx(d.std() / np.sqrt(2000), rel=0.06)
    # difference of two overlapping means: the mean of the docs' influences
    influence = kept / 0.4 * (d - d[kept].mean()) - (d - d.mean())
    assert found.widened.se == pytest.approx(influence.std() / np.sqrt(2000), rel=0.06)
    assert found.widened.value == pytest.approx(d[kept].mean() - d.mean())


def test_one_image_is_no_evidence_of_a_widening(tmp_path):
    """12 images of 20 docs: in the first looking helps always, in the others never; the kept docs are those of the first."""
    both = ran(tmp_path / "both", np.ones(240), (np.arange(240) >= 20) * 1.0, clusters=np.arange(240) // 20)
    found = of_runs(both, both, pruning(tmp_path / "pruned", range(20)))
    assert found.widened.low is None or found.widened.low <= 0


def test_where_lower_is_better_a_positive_gap_still_means_that_looking_helps(tmp_path):
    both = ran(tmp_path / "both", 1 - FULL, 1 - BLIND, higher=False)
    (row,) = of_runs(both, both).rows
    assert (row.full, row.blind, row.gap.value) == pytest.approx((0.2, 0.5, 0.3))


@pytest.mark.parametrize(
    ("full", "blind", "said"),
    [
        (np.ones(20), np.zeros(20), "looking helps: the gap is +1.000 [+0."),
        (np.zeros(20), np.ones(20), "looking hurts: -1.000 ["),
        (np.arange(20) % 2, 1 - np.arange(20) % 2, "no gap is shown: 0.000 ["),
        (np.ones(1), np.zeros(1), "unknown: the gap is +1.000 without an interval (1 docs are too few"),
    ],
)
def test_verdicts(tmp_path, full, blind, said):
    both = ran(tmp_path / "both", full, blind)
    assert of_runs(both, both).verdict.replace("+0.000", "0.000").startswith(said)


def test_which_tasks_are_set_side_by_side(tmp_path):
    full, blind = ran(tmp_path / "full", FULL), ran(tmp_path / "blind", blind=BLIND)
    with pytest.raises(
        RecordError, match=r"no task and its blind task; ask for both, such as gqa_rci3,gqa_blind.*there is toy_rci2"
    ):
        of_runs(full, full)
    with pytest.raises(RecordError, match="no task and its blind task"):
        of_runs(full, ran(tmp_path / "other", blind=BLIND, base="other"))
    lean.write(tmp_path / "more", [lean.task(BLIND, name=f"{base}_blind") for base in ("toy", "pear")])
    both = [ran(tmp_path / "pair", FULL), ran(tmp_path / "pair", FULL, base="pear", date="2027-01-01")]
    with pytest.raises(RecordError, match=r"2 pairs of a task and its blind task.*choose with --task"):
        of_runs(both[0], tmp_path / "more")
    assert of_runs(both[0], tmp_path / "more", task="pear").rows[0].blind == 0.5
    other = of_runs(full, ran(tmp_path / "model", blind=BLIND, model="small"), task="toy")
    assert other.warnings[0].startswith("the runs are of two models, m and small")
    newer = of_runs(full, ran(tmp_path / "blind", blind=share(50, 0.5), date="2027-01-01"))
    assert newer.rows[0].docs == 50
    assert "left out: 10 docs that only the full run asked, 0 only the blind run, 0 unscored in one" in newer.warnings
    with pytest.raises(RecordError, match="a pruning of pear, but the runs are of toy"):
        of_runs(full, blind, pruning(tmp_path / "pruned", range(9), base="pear"))
    with pytest.raises(RecordError, match="none of the kept docs is scored in both runs"):
        of_runs(full, blind, pruning(tmp_path / "gone", [999]))
