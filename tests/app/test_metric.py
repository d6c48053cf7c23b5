import numpy as np
import pytest

from lmms_patch.app.metric import RCI
from lmms_patch.rci.recompute import load, recompute
from tests.making.runs import mc_run, write_run


@pytest.fixture
def rci(tmp_path):
    return RCI(cache_dir=str(tmp_path))


def test_by_hand(rci):
    """FIP 3/4, MPP 2/4 over 100 items: RCI 1/3. Cell 1 earns 50, cell 4 25: shares 2/3 and 1/3."""
    full, cells = [1, 1, 1, 0] * 25, [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1]] * 25
    found = rci.compute(full_scores=full, cell_scores=cells, chance=0.25)
    assert found["rci"] == pytest.approx(1 / 3)
    assert found["rci_low"] < 1 / 3 < found["rci_high"]
    assert (found["fip"], found["mpp"], found["gap"], found["n"], found["n_docs"], found["n_clusters"]) == (
        0.75,
        0.5,
        0.25,
        2,
        100,
        100,
    )
    assert found["score_share"] == pytest.approx([2 / 3, 0, 0, 1 / 3])
    assert found["win_share"] == pytest.approx([0.75, 0, 0, 0.25])
    assert (found["gate"], found["band"]) == (1, "strong global")


def test_near_chance_there_is_no_index(rci):
    found = rci.compute(full_scores=[1, 0, 0, 0] * 50, cell_scores=[[1, 1, 1, 1]] * 200, chance=0.25)
    assert found["rci"] is found["gap"] is None
    assert found["gate"] == 0
    assert "near chance" in found["reason"]
    unknown = rci.compute(full_scores=[1, 0, 0, 0] * 50, cell_scores=[[1, 1, 1, 1]] * 200)
    assert unknown["gate"] is None
    assert unknown["rci"] == -3.0
    assert any("no chance" in line for line in unknown["warnings"])


def test_clusters_and_unscored_items(rci):
    """20 clusters of 10 copies: as wide as 20 items widened for few clusters, so wider than 200 independent ones."""
    full = np.repeat(np.random.default_rng(0).random(20) < 0.7, 10).astype(float).tolist()
    cells = [[score, 0, 0, 0] if i % 3 else [0, 0, 0, 0] for i, score in enumerate(full)]
    alone = rci.compute(full_scores=full, cell_scores=cells, chance=0.1)
    together = rci.compute(
        full_scores=full, cell_scores=cells, chance=0.1, clusters=[f"image {i // 10}" for i in range(200)]
    )
    assert (alone["n_clusters"], together["n_clusters"]) == (200, 20)
    assert any("20 clusters are few" in line for line in together["warnings"])
    assert together["rci"] == alone["rci"]
    missing = rci.compute(full_scores=[*full, float("nan")], cell_scores=[*cells, [1, 1, 1, 1]], chance=0.1)
    assert (missing["rci"], missing["n_docs"], missing["n_excluded"]) == (alone["rci"], 200, 1)


def test_the_numbers_of_a_run(rci, tmp_path):
    (run,) = load(write_run(tmp_path / "run", {"toy_rci2": mc_run()}))
    full = [r.views[0].scores["acc"] for r in run.records]
    cells = [[v.scores["acc"] for v in r.views[1:]] for r in run.records]
    ours = recompute(run).metrics
    found = rci.compute(full_scores=full, cell_scores=cells, chance=ours["chance"])
    assert found["rci"] == pytest.approx(ours["rci2"])
    assert (found["rci_low"], found["rci_high"]) == pytest.approx(
        (ours["rci2_low"], ours["rci2_high"]), abs=0.02
    )  # other draws
    assert found["gate"] == ours["gate"]


@pytest.mark.parametrize(
    ("cells", "clusters", "says"),
    [
        ([[1, 0, 0]], None, "n\\*n cells"),
        ([[1, 0, 0, 0], [1]], None, "same number"),
        ([[1, 0, 0, 0]], ["a", "b"], "one label for each of the 1"),
    ],
)
def test_bad_input(rci, cells, clusters, says):
    with pytest.raises(ValueError, match=says):
        rci.compute(full_scores=[1.0] * len(cells), cell_scores=cells, chance=0.1, clusters=clusters)


def test_the_card_says_what_goes_in_and_out():
    card = RCI().inputs_description
    for name in ("full_scores", "cell_scores", "chance", "clusters", "rci_low", "win_share"):
        assert name in card


def test_segments_of_a_clip_are_as_many_as_one_likes(rci):
    """Of 100 clips the whole is right on 80, segment 1 on 60, segment 5 on 20 others: MPP 0.8, the index 0."""
    full = [float(i < 80) for i in range(100)]
    segments = [[float(i < 60), 0, 0, 0, float(i >= 80)] for i in range(100)]
    found = rci.compute(full_scores=full, cell_scores=segments, chance=0.25, in_time=True)
    assert (found["n"], found["fip"], found["mpp"], found["rci"]) == (5, 0.8, 0.8, 0.0)
    assert found["score_share"] == pytest.approx([0.75, 0, 0, 0, 0.25])
    assert not found["warnings"]
    with pytest.raises(ValueError, match="must have n\\*n cells"):
        rci.compute(full_scores=full, cell_scores=segments, chance=0.25)
    with pytest.raises(ValueError, match="at least 2 segments, not 1"):
        rci.compute(full_scores=[1.0], cell_scores=[[1.0]], in_time=True)
