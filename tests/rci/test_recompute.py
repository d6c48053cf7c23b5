import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from lmms_patch.app import cli
from lmms_patch.ask.spec import parse
from lmms_patch.errors import RecordError
from lmms_patch.present.terminal import rci
from lmms_patch.rci import pooling
from lmms_patch.rci.recompute import Changes, load, recompute
from lmms_patch.runs import catalogue
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.run import find
from tests.making.runs import mc_run, quick, write_run


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    write_run(folder, {"toy_rci2": mc_run()})
    return folder


def tasks(path):
    """The tasks of the run under a path."""
    return load(find([path])[0])


def numbers(path, **changes):
    return recompute(tasks(path)[0], Changes(**changes)).metrics


def test_the_same_settings_give_the_same_numbers(run_folder):
    (run,) = tasks(run_folder)
    again = recompute(run)
    assert dict(again.metrics) == catalogue.columns(run.result.analysis, run.result.kind)
    assert again.metrics["gate"] == 1
    assert again.to_json()["analysis"] == to_json(run.result.analysis)


def test_other_settings(run_folder):
    """A 90 % interval lies within the 95 % one; another number of draws moves the ends, not the value.

    A floor of 0.79 + 2 SE is above FIP.
    """
    usual, narrow, other = numbers(run_folder), numbers(run_folder, level=0.9), numbers(run_folder, draws=300)
    assert usual["rci2_low"] < narrow["rci2_low"] < narrow["rci2_high"] < usual["rci2_high"]
    assert usual["rci2"] == narrow["rci2"] == other["rci2"]
    assert other["rci2_low"] != usual["rci2_low"]
    failed = numbers(run_folder, chance=0.84)
    assert (failed["chance"], failed["gate"], failed["rci2"], failed["gap2"]) == (0.84, 0, None, None)
    assert numbers(run_folder, delta=0.9)["gate"] == 0


def test_majority_as_chance(run_folder):
    golds = tasks(run_folder)[0].samples.filter(view=0)["gold"].to_list()
    assert numbers(run_folder, chance="majority")["chance"] == max(map(golds.count, golds)) / len(golds)


def test_clusters(tmp_path):
    """Docs of a cluster are copies of one: 60 clusters of 5 are 60 observations, so the interval is √5 times as wide."""
    spec, records, made = mc_run(n=60)
    copies = []
    for r in records:
        for k in range(5):
            copies.append(
                {
                    **r,
                    "doc_id": 5 * r["doc_id"] + k,
                    "fields": {**r["fields"], "cluster": r["doc_id"]},
                }
            )
    write_run(tmp_path, {"toy_rci2": (spec, copies, made)})
    loose = [{**r, "fields": {"category": "a"}, "images": None} for r in copies]
    write_run(tmp_path / "loose", {"toy_rci2": (parse("toy_rci2"), loose, made)})
    wide, narrow = numbers(next(tmp_path.glob("*_results.json"))), numbers(tmp_path / "loose")
    ratio = (wide["gap2_high"] - wide["gap2_low"]) / (narrow["gap2_high"] - narrow["gap2_low"])
    assert ratio == pytest.approx(5**0.5, rel=0.15)


def test_a_metric_that_is_not_there(run_folder):
    with pytest.raises(RecordError, match=r"no metric 'f1' in its table; allowed: acc"):
        numbers(run_folder, metric="f1")


def test_an_aggregation_without_a_form_keeps_the_numbers_of_the_run(tmp_path):
    """The square of the mean is no mean: only the run could resample it."""
    write_run(tmp_path, {"toy_rci2": mc_run(n=60)}, aggregate=lambda items: float(np.mean(items)) ** 2)
    (run,) = tasks(tmp_path)
    assert run.result.analysis.form is None
    again = recompute(run, Changes(draws=300))
    assert again.analysis is None
    assert dict(again.metrics) == catalogue.columns(run.result.analysis, run.result.kind)
    assert again.metrics["rci2_low"] is not None
    assert "can only be computed in the run" in again.note


def test_the_pooled_index_of_a_group_is_not_a_mean_of_ratios(tmp_path):
    one, two = mc_run(n=100, know_cell=0.2, seed=1), mc_run(n=300, know_cell=0.9, seed=2)
    path = write_run(tmp_path, {"a_rci2": one, "b_rci2": two}, groups={"g_rci2": ["a_rci2", "b_rci2"]})
    analyzed = [recompute(run) for run in tasks(path)]
    (pooled,) = pooling.groups(analyzed)
    full = [r["views"][0]["scores"]["acc"] for _, records, _ in (one, two) for r in records]
    best = [max(v["scores"]["acc"] for v in r["views"][1:]) for _, records, _ in (one, two) for r in records]
    assert pooled.index.value == pytest.approx(1 - sum(best) / sum(full))
    assert pooled.index.n == 400
    assert pooled.index.low < pooled.index.value < pooled.index.high
    assert pooled.index.value != pytest.approx(np.mean([a.metrics["rci2"] for a in analyzed]), abs=0.02)
    assert pooled.gate.valid


def test_a_group_below_its_floor_has_no_index(tmp_path):
    path = write_run(
        tmp_path,
        {name: mc_run(n=100, know_full=0.0, seed=s) for s, name in enumerate(("a_rci2", "b_rci2"))},
        groups={"g": ["a_rci2", "b_rci2"]},
    )
    (pooled,) = pooling.groups([recompute(run) for run in tasks(path)])
    assert pooled.index.value is None
    assert "near chance" in pooled.index.reason


def test_runs_are_averaged_with_their_spread(tmp_path):
    """Three runs: mean and SD (n − 1) by hand; the interval of the mean is narrower than that of one run."""
    folders = [tmp_path / str(k) for k in range(3)]
    spec, first, made = mc_run(seed=0)
    for k, folder in enumerate(folders):
        records = [{**a, "views": b["views"], "best": b["best"]} for a, b in zip(first, mc_run(seed=0)[1], strict=True)]
        stream = np.random.default_rng(k)
        for r in records:
            r["views"] = [dict(v) for v in r["views"]]
            if stream.random() < 0.3:
                score = float(stream.random() < 0.5)
                r["views"][0] = {**r["views"][0], "scores": {"acc": score}, "items": {"acc": score}}
        write_run(folder, {"toy_rci2": (spec, records, made)})
    runs = [[recompute(run) for run in tasks(folder)] for folder in folders]
    (found,) = pooling.average(runs)
    values = [run[0].metrics["rci2"] for run in runs]
    assert found.runs == 3
    assert found.metrics["rci2"] == pytest.approx(np.mean(values))
    assert found.spread["rci2"] == pytest.approx(np.std(values, ddof=1))
    assert found.intervals["rci2"].value == pytest.approx(np.mean(values))
    widths = [run[0].metrics["rci2_high"] - run[0].metrics["rci2_low"] for run in runs]
    assert found.intervals["rci2"].high - found.intervals["rci2"].low < max(widths)


def test_the_cell_chosen_on_one_run_is_scored_on_another(tmp_path):
    """Against plain loops over the six ordered pairs of three runs; a run against itself has nothing to split."""
    folders = [tmp_path / str(k) for k in range(3)]
    for k, folder in enumerate(folders):
        write_run(folder, {"toy_rci2": mc_run(seed=0, answers=k)})
    runs = [[recompute(run) for run in tasks(folder)] for folder in folders]
    (found,) = pooling.average(runs)
    scores = [own_scores(run[0].run) for run in runs]
    values = []
    for a in range(3):
        for b in range(3):
            if a != b:
                chosen = [scores[b][i, 1 + int(np.argmax(row[1:]))] for i, row in enumerate(scores[a])]
                values.append(1 - np.mean(chosen) / scores[b][:, 0].mean())
    assert found.split["rci2"].value == pytest.approx(np.mean(values))
    assert found.split["rci2"].low < np.mean(values) < found.split["rci2"].high
    assert found.split["rci2"].value > found.intervals["rci2"].value, "guesses that won by luck do not win again"
    assert "cell chosen on another run" in rci.averaged_table([found])
    assert pooling.average([runs[0], runs[0]])[0].split == {}


def test_only_runs_of_the_same_are_averaged(tmp_path, run_folder):
    write_run(tmp_path / "fewer", {"toy_rci2": mc_run(n=100)})
    write_run(tmp_path / "other", {"toys_rci2": mc_run(n=100)})
    one = [recompute(run) for run in tasks(run_folder)]
    with pytest.raises(RecordError, match="different docs"):
        pooling.average([one, [recompute(run) for run in tasks(tmp_path / "fewer")]])
    with pytest.raises(RecordError, match=r"no task is in all 2 runs; nearest: toys_rci2"):
        pooling.average([one, [recompute(run) for run in tasks(tmp_path / "other")]])


# --- the command --------------------------------------------------------------------------------


def analyze(*arguments):
    return cli.main(["analyze", *map(str, arguments)])


def test_it_needs_neither_torch_nor_the_harness(run_folder):
    code = f"import sys; from lmms_patch.app import cli; cli.main(['analyze', {str(run_folder)!r}]); print({{'lmms_eval', 'torch', 'scipy.stats'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


# --- categories of a quick run ------------------------------------------------------------------------

CATEGORIES = {
    "enough": (range(12), range(200, 232, 4), range(100, 130)),
    "few": (range(12, 31), (), range(130, 195)),
    "few drawn": ((), range(300, 376, 4), range(195, 200)),
}
"""Of each category: docs that were asked whole, docs that were drawn with probability 1/4, docs that were not asked: 20 of 50, 19 of 84, 19 of 24."""


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    """A quick run of 400 docs: 100 asked whole, every fourth of those from 200 on drawn.

    Docs of no category above are of "rest".
    """
    folder = tmp_path_factory.mktemp("quick")
    spec, records, made = mc_run(n=400)
    named = {i: name for name, parts in CATEGORIES.items() for part in parts for i in part}
    records = [{**one, "fields": {**one["fields"], "category": named.get(one["doc_id"], "rest")}} for one in records]
    write_run(folder, {"toy_rci2": (spec, quick(records, range(100), range(200, 400, 4)), made)})
    (run,) = tasks(folder)
    return run


def own_scores(run):
    """Scores of the docs' own views, shape (docs, views)."""
    own = run.samples.filter(pl.col("swapped").is_null())
    return np.array(own.group_by("doc_id", maintain_order=True).agg("score")["score"].to_list())


def asked_of(run, category):
    """Steps, probabilities and scores of the docs of a category that were asked."""
    own = run.samples.filter(pl.col("swapped").is_null(), pl.col("category") == category)
    docs = own.group_by("doc_id").agg(pl.col("quick").first(), "score").unnest("quick")
    return docs.filter(pl.col("steps") > 0), len(docs)


def test_a_category_of_which_few_docs_were_asked_has_no_numbers(quick_run):
    assert {name: len(asked_of(quick_run, name)[0]) for name in CATEGORIES} == {
        "enough": 20,
        "few": 19,
        "few drawn": 19,
    }
    found = recompute(quick_run, by="category")
    assert set(found.categories) == {"enough", "rest"}
    assert found.note == "toy_rci2: no numbers of categories of which fewer than 20 docs were asked: few, few drawn"


def test_the_numbers_of_a_category_are_estimates_over_all_its_docs(quick_run):
    """A doc that was asked whole counts once, a drawn one four times, one that was not asked as nothing.

    Divided by all docs of the category.
    """
    part, docs = asked_of(quick_run, "enough")
    full = sum(scores[0] / p for scores, p in part.select("score", "p_full").iter_rows()) / docs
    best = sum(max(scores[1:]) / p for scores, p in part.select("score", "p_cells").iter_rows()) / docs
    assert 0 < full < 1, "else it is moved to the end of the scale"
    assert 0 < best < 1
    analysis = recompute(quick_run, by="category").categories["enough"]
    assert (analysis.n_docs, analysis.asked.docs) == (docs, 20)
    assert analysis.fip.value == pytest.approx(full)
    assert analysis.grids[2].mpp.value == pytest.approx(best)
