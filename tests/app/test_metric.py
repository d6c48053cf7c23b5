import numpy as np
import pytest

from lmms_patch.app.metric import RCI
from lmms_patch.rci.recompute import load, recompute
from lmms_patch.runs.run import read
from tests.making.runs import mc_run, write_run


@pytest.fixture
def rci(tmp_path):
    return RCI(cache_dir=str(tmp_path))


def test_by_hand(rci):
    """FIP 3/4, MPP 2/4 over 100 items: RCI 1/3. Cell 1 earns 50, cell 4 25: shares 2/3 and 1/3."""
    full, cells = [1, 1, 1, 0] * 25, [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1]] * 25
    found = rci.compute(full_scores=full, cell_scores=cells, chance=0.25)
    assert found["rci2"] == pytest.approx(1 / 3)
    assert found["rci2_low"] < 1 / 3 < found["rci2_high"]
    assert [found[name] for name in ("fip", "mpp2", "gap2", "n", "gate", "reason")] == [0.75, 0.5, 0.25, 100, 1, ""]
    assert found["cells"]["score"] == pytest.approx([2 / 3, 0, 0, 1 / 3])
    assert found["cells"]["win"] == pytest.approx([0.75, 0, 0, 0.25])


def test_near_chance_there_is_no_index(rci):
    found = rci.compute(full_scores=[1, 0, 0, 0] * 50, cell_scores=[[1, 1, 1, 1]] * 200, chance=0.25)
    assert found["rci2"] is found["gap2"] is None
    assert found["gate"] == 0
    assert "near chance" in found["reason"]
    unknown = rci.compute(full_scores=[1, 0, 0, 0] * 50, cell_scores=[[1, 1, 1, 1]] * 200)
    assert (unknown["gate"], unknown["rci2"]) == (None, -3.0)
    assert any("no chance" in line for line in unknown["warnings"])


def test_clusters_and_unscored_items(rci):
    """20 clusters of 10 copies: as wide as 20 items widened for few clusters, so wider than 200 independent ones."""
    full = np.repeat(np.random.default_rng(0).random(20) < 0.7, 10).astype(float).tolist()
    cells = [[score, 0, 0, 0] if i % 3 else [0, 0, 0, 0] for i, score in enumerate(full)]
    alone = rci.compute(full_scores=full, cell_scores=cells, chance=0.1)
    images = [f"image {i // 10}" for i in range(200)]
    together = rci.compute(full_scores=full, cell_scores=cells, chance=0.1, clusters=images)
    assert together["rci2"] == alone["rci2"]
    assert together["fip_high"] - together["fip_low"] > 2 * (alone["fip_high"] - alone["fip_low"])
    missing = rci.compute(full_scores=[*full, float("nan")], cell_scores=[*cells, [1, 1, 1, 1]], chance=0.1)
    assert (missing["rci2"], missing["n"]) == (alone["rci2"], 200)


def test_the_numbers_of_a_run(rci, tmp_path):
    (run,) = load(read(write_run(tmp_path / "run", {"toy_rci2": mc_run()})))
    frame = run.result.frame(["doc_id", "view", "score", "cluster"])
    scores = frame["score"].to_numpy().reshape(-1, 5)
    ours = recompute(run).metrics
    found = rci.compute(
        full_scores=[full for full, *_ in scores],
        cell_scores=[cells for _, *cells in scores],
        chance=ours["chance"],
        clusters=frame.filter(view=0)["cluster"].to_list(),
    )
    for name in ("gate", "rci2", "gap2"):
        assert found[name] == pytest.approx(ours[name]), name
    for name in ("rci2_low", "rci2_high", "gap2_low"):  # other draws
        assert found[name] == pytest.approx(ours[name], abs=0.02), name


def test_segments_of_a_clip_are_as_many_as_one_likes(rci):
    """Of 100 clips the whole is right on 80, segment 1 on 60, segment 5 on 20 others: MPP 0.8, the index 0."""
    full = [float(i < 80) for i in range(100)]
    segments = [[float(i < 60), 0, 0, 0, float(i >= 80)] for i in range(100)]
    found = rci.compute(full_scores=full, cell_scores=segments, chance=0.25, in_time=True)
    assert (found["fip"], found["mpp5"], found["trci5"]) == (0.8, 0.8, 0.0)
    assert found["cells"]["score"] == pytest.approx([0.75, 0, 0, 0, 0.25])
    with pytest.raises(ValueError, match="must have n\\*n cells"):
        rci.compute(full_scores=full, cell_scores=segments, chance=0.25)
    with pytest.raises(ValueError, match="2 segments or more, not 1"):
        rci.compute(full_scores=[1.0], cell_scores=[[1.0]], in_time=True)
