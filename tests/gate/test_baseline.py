"""The baseline: never the run itself, shown over the docs of the difference.

And what would let a number get worse unseen.
"""

import json
import os
import shutil

import numpy as np
import pytest

from lmms_patch.app.commands.gate import gate
from lmms_patch.compare import result
from lmms_patch.runs import run as runs
from tests.gate.running import DROP, VALUE, copied, refused
from tests.making import lean

INDEX = {"metric": "rci2", "max_rise": 0, "margin": 0.05}


def of_rules(*rules):
    return {"schema": 1, "rules": [{"name": f"rule {i}", **rule} for i, rule in enumerate(rules)]}


# --- the run itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize("link", [False, True])
def test_a_run_is_not_its_own_baseline(asked, run, tmp_path, link):
    if link:
        os.symlink(run, tmp_path / "link")
    refused(asked(run, DROP, baseline=tmp_path / "link" if link else run), "the baseline is the run itself")
    refused(asked(run, VALUE, baseline=run), "the baseline is the run itself")
    (results,) = run.glob("*_results.json")
    refused(asked(run, DROP, baseline=results), "the baseline is the run itself")
    refused(asked(results, DROP, baseline=run), "the baseline is the run itself")
    assert asked(run, DROP, baseline=copied(run)).status == 0  # the same answers, but another run


@pytest.mark.parametrize("indent", [None, 1])
def test_a_copy_of_a_run_is_no_baseline_however_it_is_laid_out(asked, run, tmp_path, indent):
    shutil.copytree(run, tmp_path / "copy")
    (results,) = (tmp_path / "copy").glob("*_results.json")
    data = json.loads(results.read_text())
    results.write_text(json.dumps(dict(reversed(data.items())), indent=indent))
    refused(asked(run, DROP, baseline=tmp_path / "copy"), "the baseline is the run itself, or a copy of it")
    lean.write(tmp_path / "copy" / "before", [lean.task(*lean.planted(400, 0.95, 0.6))], date="2025-01-01")
    ended = asked(run, DROP, baseline=tmp_path / "copy")  # set against the earlier one beside the copy
    assert ended.calls == ["fail"]


# --- asked the same way -----------------------------------------------------------------------------


def changed(*path, to):
    """A change of a results file."""

    def change(data):
        at = data
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = to

    return change


CONFIG = ("configs", "toy_rci2")
MADE = ("results", "toy_rci2", "patch,none", "made")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (changed("system_instruction_sha", to="ab12"), "system instruction"),
        (changed("n-shot", "toy_rci2", to=5), "few-shot (5 and 0)"),
        (changed("versions", "toy_rci2", to=2.0), "benchmark version (2.0 and 1.0)"),
        (changed(*CONFIG, "dataset_path", to="org/other"), "dataset (org/other and org/toy)"),
        (changed(*CONFIG, "dataset_name", to="hard"), "dataset (org/toy, hard and org/toy)"),
        (changed(*CONFIG, "dataset_path", to="/home/me/toy"), "dataset (local files and org/toy)"),
        (changed(*CONFIG, "dataset_kwargs", to={"revision": "v2"}), "revision (v2 and none)"),
        (changed(*CONFIG, "test_split", to="train"), "split (train and test)"),
        (changed("config", "limit", to=10), "limit (10 and all)"),
        (changed("config", "gen_kwargs", to="temperature=1"), "generation"),
        (changed(*MADE, "prompts", to="other"), "prompts"),
        (changed(*MADE, "image_sizes", to="0"), "image sizes"),
        (changed(*MADE, "images", to="0"), "images"),
    ],
)
def test_a_baseline_that_was_asked_otherwise_is_refused_unless_that_is_ignored(asked, tmp_path, change, told):
    for name, how in (("old", change), ("new", None)):
        lean.write(tmp_path / name, [lean.task(*lean.planted(100, 0.8, 0.6))], change=how)
    run = tmp_path / "new"
    refused(asked(run, DROP, baseline=tmp_path / "old"), f"was made otherwise: {told} differ")
    ended = asked(run, DROP, baseline=tmp_path / "old", ignore=[told.partition(" (")[0]])
    assert ended.status == 0
    assert f"toy_rci2: differs from the baseline in {told}: ignored" in ended.out


def test_a_baseline_folder_that_holds_the_run_gives_the_one_before(asked, tmp_path):
    """Both below one folder: the newest there is the run itself, which has lost 30 points."""
    for name, full, date in (("last", 0.8, "2026-01-01"), ("new", 0.5, "2026-02-01")):
        lean.write(tmp_path / "out" / name, [lean.task(*lean.planted(400, full, 0.5))], date=date)
    ended = asked(tmp_path / "out" / "new", DROP, baseline=tmp_path / "out")
    assert (ended.calls, ended.of()["baseline"]) == (["fail"], 0.8)
    assert asked(tmp_path / "out", DROP, baseline=tmp_path / "out").calls == [
        "fail"
    ]  # of OUT the newest is judged, too


# --- clusters ---------------------------------------------------------------------------------------


def clustered(tmp_path, changed, groups=60, size=8):
    """Two runs of ``groups`` images with ``size`` questions each.

    On the images ``changed`` all answers turn (+1 to right, -1 to wrong).
    """
    before = np.tile([1.0, 0.0], groups)[:groups]  # by image, right or wrong as a whole
    after = before.copy()
    for i, sign in enumerate(changed):
        place = 2 * i + (sign > 0)
        after[place] = before[place] + sign
    labels = np.repeat(np.arange(groups), size)
    for name, values in (("old", before), ("new", after)):
        scores = np.repeat(values, size)
        lean.write(tmp_path / name, [lean.task(scores, np.repeat(before, size), clusters=labels, gate=True)])
    return tmp_path / "new", tmp_path / "old"


def test_few_clusters_that_differ_are_no_proof_though_their_docs_are_many(asked, tmp_path):
    """6 of 60 images lose all 8 questions: 48 docs, McNemar's p < 1e-13.

    But exchanging runs by image, p = 2 · 2⁻⁶ = 0.031 > 1 − 0.975.
    """
    new, old = clustered(tmp_path, [-1] * 6)
    ended = asked(new, {**DROP, "level": 0.975}, baseline=old)
    one = ended.of("rule 0")
    assert (one["verdict"], one["difference"]["value"]) == ("inconclusive", pytest.approx(-0.1))
    (a,), (b,) = (runs.find([path]) for path in (old, new))
    compared = result.compare(a.results[0], b.results[0], level=0.975).by_name["fip"].difference
    assert one["difference"]["low"] <= compared.low < compared.high <= one["difference"]["high"]
    assert compared.high >= 0


@pytest.mark.parametrize(
    ("changed", "call"), [([-1] * 12, "fail"), ([-1] * 7 + [1], "inconclusive"), ([-1, 1], "inconclusive")]
)
def test_by_cluster_as_the_sign_test_says(asked, tmp_path, changed, call):
    """12 of 12 against: p = 0.0005. 7 of 8: p = 0.070. Docs counted singly, 56 against 8 would be p < 1e-9."""
    new, old = clustered(tmp_path, changed)
    assert asked(new, {"metric": "fip", "max_drop": 0}, baseline=old).calls == [call]


# --- better when lower ------------------------------------------------------------------------------


@pytest.fixture
def errors(tmp_path):
    """An error rate that has got worse, from 0.3 to 0.6."""
    for name, rate in (("old", 0.3), ("new", 0.6)):
        lean.write(tmp_path / name, [lean.task(lean.planted(400, rate, 0)[0], np.zeros(400), gate=True, higher=False)])
    return tmp_path


@pytest.mark.parametrize("metric", ["fip", "score", "acc", "[fm]*", "mpp2", "gap2"])
@pytest.mark.parametrize("level", [{}, {"interval": False}])
def test_a_drop_of_an_error_rate_is_no_limit(asked, errors, metric, level):
    new, old = errors / "new", errors / "old"
    refused(
        asked(new, {"metric": metric, "max_drop": 0, **level}, baseline=old),
        f"rule 'rule 0': {metric} of toy_rci2 is better when lower",
        "'max_rise'",
    )
    refused(
        asked(new, {"metric": metric, "min": 0.1, **level}),
        f"rule 'rule 0': {metric} of toy_rci2 is better when lower",
        "'max'",
    )


def test_a_rise_of_an_error_rate_is(asked, errors):
    new, old = errors / "new", errors / "old"
    rules = [
        {"metric": "fip", "max_rise": 0},
        {"metric": "fip", "max_drop": 0.1, "max_rise": 0.1},
        {"metric": "fip", "max": 0.5},
    ]
    assert asked(new, *rules, baseline=old).calls == ["fail"] * 3
    assert asked(old, *rules, baseline=new).calls == ["pass", "fail", "pass"]
    assert asked(new, {"metric": "fip", "min": 0.5, "max": 0.7}).calls == ["pass"]


def test_the_shipped_rules_do_not_pass_an_error_rate(errors):
    from lmms_patch.errors import OptionError

    with pytest.raises(OptionError, match=r"better when lower: give 'max_rise'"):
        gate(errors / "new", "model-regression", baseline=errors / "old")


# --- shown numbers ----------------------------------------------------------------------------------


def test_value_less_baseline_is_the_difference_where_docs_are_left_out(asked, tmp_path):
    """The baseline leaves out 40 docs of the grid, which the new run uses; by hand over the other 360."""
    (old_full, old_best), (new_full, new_best) = lean.scored(400, 0.7, 0.65, 1), lean.scored(400, 0.8, 0.6, 2)
    new_best[:40] = 0
    lean.write(tmp_path / "old", [lean.task(old_full, old_best, out=range(40))])
    lean.write(tmp_path / "new", [lean.task(new_full, new_best)])
    rules = [
        {"metric": "rci2", "max_rise": 0},
        {**INDEX},
        {"metric": "mpp2", "max_drop": 0},
        {"metric": "gap2", "max_rise": 0},
    ]
    ended = asked(tmp_path / "new", *rules, {"metric": "fip", "max_drop": 0}, baseline=tmp_path / "old")
    index = [1 - best[40:].mean() / full[40:].mean() for full, best in ((old_full, old_best), (new_full, new_best))]
    assert abs(index[1] - (1 - new_best.mean() / new_full.mean())) > 0.01  # over all docs the index is another
    for rule, expected in (
        ("rule 0", index),
        ("rule 1", index),
        ("rule 2", [old_best[40:].mean(), new_best[40:].mean()]),
    ):
        one = ended.of(rule)
        assert (one["baseline"], one["value"]["value"]) == pytest.approx(expected)
        assert one["value"]["low"] is None  # the run's own interval is of other docs
    for one in ended.json["verdicts"]:
        assert one["value"]["value"] - one["baseline"] == pytest.approx(one["difference"]["value"])
        assert one["difference"]["low"] <= one["difference"]["value"] <= one["difference"]["high"]
        assert one["difference"]["n"] == (400 if one["metric"] == "fip" else 360)
    fip = ended.of("rule 4")["value"]  # over all docs, so with the run's own interval
    assert fip["low"] < fip["value"] == new_full.mean()


# --- logs -------------------------------------------------------------------------------------------


# --- as a function ----------------------------------------------------------------------------------


def test_as_a_function(run):
    found = gate(str(run), of_rules({"metric": "fip", "min": 0.7}))
    assert (found.status, [one.verdict for one in found.verdicts]) == (0, ["pass"])
    assert gate(run, of_rules({"metric": "fip", "max_drop": 0, "margin": 0.02}), baseline=str(copied(run))).status == 0
    assert gate(run, "model-regression", baseline=copied(run)).status == 0
