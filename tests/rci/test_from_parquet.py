"""Numbers computed from the table are those that the run computed from its docs in memory, to the last bit, for runs of every kind."""

import math

import pytest

from lmms_patch.rci.recompute import analysed
from lmms_patch.runs import cache
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.run import find
from tests.making.finished import finish
from tests.making.recordings import guesses, record
from tests.making.runs import (
    guesses_on_cells,
    mc_run,
    misled_by_cells,
    never_looks,
    quick,
    turned_run,
    views_run,
    world_run,
    write_run,
)


def failed_and_raised(folder):
    """One call in ten failed, one scorer in twenty raised; two grids, clusters, items that are more than a number."""
    docs = [
        record(i, i % 2 / 2, {2: [0.0, 1.0, 0.5, 0.0], 3: [i % 3 / 2] * 9}, items=lambda score: {"score": score}, cluster=i // 3, category="ab"[i % 2],
               answer=("mc", 4, "A"), baselines=guesses("A", "ABCD"))
        for i in range(80)
    ]  # fmt: skip
    for i, one in enumerate(docs):
        if i % 10 == 0:
            one["views"][i % 14] |= {"scores": {}, "items": {}, "failed": "lost"}
            one["excluded"], one["best"] = {"2": "a call failed", "3": "a call failed"}, {}
        if i % 20 == 5:
            one["views"][3] |= {"scores": {}, "items": {}, "error": "raised"}
    finish(folder, docs, lambda items: sum(item["score"] for item in items) / len(items), options={"cluster": "image"})


def worlds(folder):
    runs = {"toy_rci3": (guesses_on_cells, 3), "toy2_rci2": (misled_by_cells, 2), "toy3_rci2": (never_looks, 2)}
    made = {
        name: world_run(say, 60, grid, per_cluster=2, base=name.partition("_")[0]) for name, (say, grid) in runs.items()
    }
    write_run(folder, made)


def asked_in_part(folder):
    spec, records, made = mc_run(60)
    write_run(folder, {"toy_rci2": (spec, quick(records, range(30), range(30, 45)), made)})


def other_kinds(folder):
    choose = lambda doc, *more: more[-3].index(more[-2]) if more[-1].random() < 0.7 else 0  # noqa: E731
    runs = {"toy_rotate": turned_run(choose, n=30)}
    runs["toy_frames4"] = views_run("frames", [0.3, 0.6], n=40, grids=(1, 4), short=(3,))
    write_run(folder, runs)


@pytest.mark.parametrize(
    "make", [worlds, asked_in_part, failed_and_raised, other_kinds], ids=lambda make: make.__name__
)
def test_the_numbers_are_the_same_bit_for_bit(make, tmp_path):
    make(tmp_path)
    [run] = find([tmp_path])
    for result in run.results:
        kept = cache.computed(result)
        assert to_json(analysed(result)) == to_json(kept.analysis)
        assert to_json(cache.compute(result)) == to_json(kept)


def test_scores_keep_every_bit(tmp_path):
    scores = [0.1 + 0.2, 1e-300, math.pi, 1, -0.0, 2**49]
    docs = [record(i, score, {2: [score, 0.0, None, 1.0]}) for i, score in enumerate(scores)]
    finish(tmp_path, docs, lambda items: 0.5)
    [result] = find([tmp_path])[0].results
    found = result.frame(["view", "score"]).filter(view=0)["score"].to_list()
    assert [score.hex() for score in found] == [float(score).hex() for score in scores]
