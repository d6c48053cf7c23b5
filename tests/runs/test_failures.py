"""Failed calls in the records of a finished run: counted by hand, and left out by every reader."""

import copy
import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from lmms_patch.compare import result
from lmms_patch.rci.recompute import Changes, load, recompute
from lmms_patch.runs import failures
from lmms_patch.runs.catalogue import columns
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.run import find, newest, read
from tests.making.files import described, lines_of, write_files
from tests.making.recordings import table
from tests.making.runs import Native, details, mc_run
from tests.sizes import size

TEXT = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] overloaded"
N = 200
VIEW = {"kind": "full", "scores": {}, "items": {}}


def disturbed(records, failed):
    """The records as the harness writes them where some (doc, view) failed."""
    out = copy.deepcopy(records)
    for doc, view in failed:
        out[doc]["views"][view] |= {"scores": {}, "items": {}, "failed": TEXT}
        out[doc]["excluded"], out[doc]["best"] = {"2": failures.REASON}, {}
    return out


def finish(folder, made, failed=(), name="toy_rci2", date="2026-01-01T00-00-00.000000"):
    """The two files of a run of which some calls failed; the harness's own metric counts them as wrong."""
    spec, whole, plan = made
    records = disturbed(whole, failed)
    answered = [r for r in records if "failed" not in r["views"][0]]
    used = [r for r in answered if "2" in r["best"]]

    def mean(docs, place):
        return float(np.mean([r["views"][place(r)]["items"]["acc"] for r in docs])) if docs else None

    def over_cells(n):
        return (
            mean(used, lambda r: 0),
            mean(used, lambda r: r["best"]["2"]),
            "" if used else "no doc can be used at this grid",
        )

    native = Native(lambda: mean(answered, lambda r: 0), over_cells, lambda items: float(np.mean(items)))
    found = details(spec, records, native, plan)
    lost = {doc for doc, view in failed if view == 0}
    own = float(np.mean([0.0 if i in lost else r["views"][0]["items"]["acc"] for i, r in enumerate(whole)]))
    values = {"acc": own, "acc_mpp2": over_cells(2)[1], "patch": found}
    return write_files(folder, {name: (values, described(spec), lines_of(records))}, date=date)


@pytest.fixture(scope="module")
def made():
    return mc_run(N)


FEW = [(3, 0), (3, 2), (10, 0), (20, 1), (21, 4), (21, 3)]
"""Docs 3 and 10 lose everything, docs 20 and 21 the grid: six calls of four docs."""


@pytest.fixture(scope="module")
def run(made, tmp_path_factory):
    return finish(tmp_path_factory.mktemp("run"), made, FEW)


def tasks(path):
    return load(read(path))


def by_hand(made, without):
    records = [r for i, r in enumerate(made[1]) if i not in without]
    full = np.mean([r["views"][0]["scores"]["acc"] for r in records])
    return full, np.mean([max(view["scores"]["acc"] for view in r["views"][1:]) for r in records])


# --- counted --------------------------------------------------------------------------------------


def test_calls_and_docs_are_counted(made):
    assert failures.count(table(made[1])) is None
    found = failures.count(table(disturbed(made[1], FEW)))
    assert found == failures.Failed(docs=4, of=N, calls=6, asked=5 * N, first=2, text=TEXT)
    assert found.many
    assert not failures.count(table(disturbed(made[1], FEW[3:4]))).many
    assert found.sentence.startswith(
        f"4 of {N} docs have a failed call and are left out of what needs it (6 of {5 * N} calls, 2 of them of the first"
    )
    assert (
        f"2 of them of the first view; most often: {TEXT}); type the same command again: with --output_path or"
        in found.sentence
    )
    images = dataclasses.replace(found, text=f"{failures._NO_IMAGE[0]}: gone", first=0)
    assert f"0 of them of the first view; most often: {images.text}); put the image right and " in images.sentence
    assert (images.native("acc"), found.native("acc")[:52]) == (
        "",
        "acc as the harness prints it counts 2 failed calls a",
    )


@pytest.mark.parametrize("asked", [50, 200, 1000, *size([], [9000])])
def test_a_server_that_fails_5_percent_keeps_its_index_and_one_that_fails_10_does_not(asked):
    """From n = 200 on; the chance that more than 5 % n + 2 SE of n calls fail, by the binomial distribution."""

    def refused(count):
        """Whether so many failed calls of docs with a view each are too many."""
        bad = [{"doc_id": i, "views": [{**VIEW, **({"failed": "lost"} if i < count else {})}]} for i in range(asked)]
        return bool(failures.too_many(table(bad), 2))

    most = math.floor(0.05 * asked + 2 * math.sqrt(0.05 * 0.95 * asked))
    assert (refused(most), refused(most + 1)) == (False, True)
    assert stats.binom.sf(most, asked, 0.05) < 0.04
    if asked >= 200:
        assert stats.binom.sf(most, asked, 0.1) > 0.75


def test_the_cells_of_a_grid_count_for_that_grid_alone():
    cells = [{**VIEW, "kind": "cell", "n": n, "cell": 1, **failed} for n, failed in ((2, {}), (3, {"failed": TEXT}))]
    docs = table([{"doc_id": i, "views": [VIEW, *cells]} for i in range(40)])
    assert failures.too_many(docs, 2) == ""
    assert failures.too_many(docs, 3).startswith(
        "40 of 40 calls for the cells of grid 3 failed (more than 5.0%); type the same command again"
    )


def test_a_doc_of_which_every_call_failed_is_counted(made):
    records = disturbed(made[1], [(3, view) for view in range(5)])
    docs = table(records)
    assert len(docs) == N - 1
    assert failures.count(docs).docs == 1


# --- the numbers of a finished run ----------------------------------------------------------------


def test_the_files_give_the_numbers_by_hand(made, run):
    (task,) = tasks(run)
    again = recompute(task)
    assert again.metrics == columns(task.result.analysis, task.result.kind)
    assert (again.metrics["n_failed"], again.metrics["n_docs"], again.metrics["n_excluded2"]) == (4, N - 2, 2)
    fip, mpp = by_hand(made, {3, 10, 20, 21})
    assert again.metrics["rci2"] == pytest.approx(1 - mpp / fip)
    assert again.analysis.fip.value == pytest.approx(by_hand(made, {3, 10})[0])
    assert again.to_json()["analysis"] == to_json(task.result.analysis)


def test_other_settings_and_categories(made, run):
    (task,) = tasks(run)
    found = recompute(task, Changes(draws=300), by="category")
    assert found.metrics["rci2"] == task.result.measures["rci2"].value
    assert sum(one.failed.docs for one in found.categories.values() if one.failed) == 4
    parts = {name: [i for i, r in enumerate(made[1]) if r["fields"]["category"] == name] for name in "ab"}
    for name, docs in parts.items():
        fip, mpp = by_hand(made, set(range(N)) - set(docs) | {3, 10, 20, 21})
        assert found.categories[name].grids[2].index.value == pytest.approx(1 - mpp / fip)


def test_too_many_failures_leave_no_index(made, tmp_path):
    (task,) = tasks(finish(tmp_path, made, [(i, 0) for i in range(20)]))
    again = recompute(task)
    grid = again.analysis.grids[2]
    assert grid.index.value is grid.gap.value is None
    assert grid.reason.startswith(f"20 of {N} calls for the full image failed (more than 5.0%)")
    assert again.metrics["gate"] == 1
    assert grid.mpp.value == pytest.approx(by_hand(made, set(range(20)))[1])


# --- readers --------------------------------------------------------------------------------------


def test_two_runs_are_compared_over_docs_that_both_answered(made, run, tmp_path):
    (other,), _ = newest(find([finish(tmp_path, made, [(50, 0), (51, 3)])])[0].results)
    (one,), _ = newest(find([run])[0].results)
    found = result.compare(one, other, draws=400)
    assert (found.docs, found.unscored) == (N - 3, 3)
    fip, mpp = by_hand(made, {3, 10, 20, 21, 50, 51})
    assert found.by_name["rci2"].first == pytest.approx(1 - mpp / fip)
    assert found.by_name["rci2"].difference.value == 0
    assert found.by_name["fip"].first == pytest.approx(by_hand(made, {3, 10, 50})[0])
