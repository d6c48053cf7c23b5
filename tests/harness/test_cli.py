"""The real ``lmms-eval`` command line, with the embedded model. Few and meant: a run that starts from nothing does so in 10 to 20 s."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest
import yaml

from lmms_patch.rci.recompute import Changes, load, recompute
from lmms_patch.runs.numbers import flat_names
from lmms_patch.runs.results import results_files
from lmms_patch.runs.run import read
from tests.harness import warm
from tests.harness.command import BIN, INSTALLED, answers, details, environment, lmms_eval, metrics, mosaic_file, samples
from tests.harness.tst import toys

FAMILIES = ("local", "center", "count", "sum", "same", "larger", "text")

pytestmark = pytest.mark.cli


# --- the planted truth --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The demo's own run, and the blind one, on every doc."""
    out = tmp_path_factory.mktemp("planted")
    asked = ("--model", "mosaic_vlm", "--batch_size", 32, "--tasks", "mosaic_rci,mosaic_blind")
    lmms_eval(*asked, "--output_path", out, "--log_samples", command=INSTALLED)
    return out


@pytest.mark.parametrize("family", ["local", "center"])
def test_one_cell_answers_local_questions_better_than_the_sheet(planted, family):
    found = metrics(planted)[f"mosaic_{family}_rci"]
    assert found["acc"] > 0.5
    assert found["rci2"] < 0
    assert found["rci3"] < 0


@pytest.mark.parametrize("family", ["count", "sum", "same"])
def test_global_questions_need_the_sheet(planted, family):
    found = metrics(planted)[f"mosaic_{family}_rci"]
    assert found["gate"] == 1
    assert found["acc"] > found["chance"] + 0.1
    assert found["rci2"] > 0.3
    assert found["rci3"] > 0.3


def test_one_family_is_near_chance(planted):
    """Yes/no with balanced golds: within three standard errors of 0.5."""
    found = metrics(planted)["mosaic_larger_rci"]
    assert abs(found["acc"] - 0.5) < 3 * 0.5 / found["n_docs"] ** 0.5
    assert found["chance"] == 0.5
    assert found["gate"] == 0
    assert found["rci2"] is found["rci3"] is found["rci3_adj"] is found["gap3"] is None
    assert found["acc_mpp3"] is not None


def test_the_floor_is_the_best_uninformed_answer(planted):
    """By hand from golds and strata: the most frequent gold of all docs of a format, or of the other docs that are asked alike."""
    for family in FAMILIES:
        lines = list(samples(planted, f"mosaic_{family}_rci").values())
        golds = [line["target"] for line in lines]
        strata = [line["patch"]["stratum"] for line in lines]
        right = 0
        for gold, own in zip(golds, strata, strict=True):
            alike = [g for g, other in zip(golds, strata, strict=True) if f"{other} |".startswith(f"{own} |")]
            alike.remove(gold)  # the doc says nothing of itself
            right += gold == max(sorted(set(alike)), key=alike.count)
        found = metrics(planted)[f"mosaic_{family}_rci"]
        formats = ["yesno" if gold in ("yes", "no") else "letter" if gold in "ABCD" else "number" if gold.isdigit() else "word" for gold in golds]
        by_format = [[gold for gold, other in zip(golds, formats, strict=True) if other == kind] for kind in sorted(set(formats))]
        majority = sum(max(map(alike.count, alike)) for alike in by_format) / len(golds)
        assert majority <= found["chance"] == pytest.approx(max(majority, right / len(golds)), abs=0.03)  # ties between golds
        assert found["ceiling"] == 1.0


@pytest.mark.parametrize("family", ["local", "center"])
def test_local_families_are_local_beyond_doubt_and_luck(planted, family):
    """Intervals below 0; and with luck removed: one cell of nine guesses among ten digits, which earns it little."""
    found = metrics(planted)[f"mosaic_{family}_rci"]
    for n in (2, 3):
        assert found[f"rci{n}_low"] < found[f"rci{n}"] < found[f"rci{n}_high"] < 0
        assert found[f"rci{n}_adj_high"] < 0.05
        assert found[f"gap{n}_low"] < found[f"gap{n}"] < found[f"gap{n}_high"] < 0


def test_global_families_are_global_with_luck_removed(planted):
    for family in ("count", "sum", "same"):
        luck = details(planted, f"mosaic_{family}_rci")["analysis"]["grids"]["3"]["adj"]
        assert (luck["null"], luck["estimate"]["low"] > 0.5) == ("measured", True)


def test_a_family_that_the_text_answers_is_refused_everywhere(planted, tmp_path):
    """It gets every answer right, on every view: the gate, the board and a build must all say that the model does not look."""
    found = details(planted, "mosaic_text_rci")
    assert found["fip0"] == 1.0
    assert found["analysis"]["gate"]["reason"].startswith("the answers do not depend on the image")
    assert (found["gate"], found["rci3"], found["rci3_adj"], found["gap3"]) == (0, None, None, None)

    def lmms_patch(*arguments):
        return subprocess.run([str(BIN / "lmms-patch"), *map(str, arguments)], capture_output=True, text=True)

    printed = lmms_patch("show", planted).stdout
    assert "No image is needed for mosaic_text (acc 1.000 with its images, 1.000 with wrong images)" in " ".join(printed.split())
    assert lmms_patch("leaderboard", planted, "--output", tmp_path / "board", "--quiet").returncode == 0
    board = json.loads(next((tmp_path / "board").rglob("*.json")).read_text())
    rows = [row for row in _objects(board) if row.get("benchmark") == "mosaic_text" or row.get("task") == "mosaic_text_rci"]
    assert rows
    assert all(row.get("rank") is None and row.get("rank_first") is None for row in rows)
    judged = lmms_patch("gate", planted, "--config", "model-compliance", "--json", tmp_path / "gate.json")
    assert judged.returncode == 1
    verdicts = [one for one in json.loads((tmp_path / "gate.json").read_text())["verdicts"] if one["task"] == "mosaic_text_rci"]
    assert "fail" in {one["verdict"] for one in verdicts}


def _objects(value):
    """Every object within a JSON value."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return ([value] if isinstance(value, dict) else []) + [found for one in inner for found in _objects(one)]


def test_the_middle_is_where_the_center_family_lives(planted):
    """Its digit is always in the middle cell of nine; the local family's may be in any."""
    results = {r.task: r.details["analysis"]["grids"]["3"]["shares"] for r in read(results_files(planted)[-1]).results if "_rci" in r.task}
    shares = results["mosaic_center_rci"]
    assert max(range(9), key=lambda c: shares["score"][c]) == 4
    assert shares["score"][4] > 0.9
    assert shares["centre"] > 8
    assert shares["p"] == 0.001
    assert shares["p_cells"][4] < 0.01
    assert max(results["mosaic_local_rci"]["score"]) < 0.25


def test_a_finished_run_gives_the_same_numbers_again(planted):
    runs = load(planted)
    assert len(runs) == len(FAMILIES)
    for run in runs:
        names = flat_names("rci", [2, 3])
        again = recompute(run)
        assert {name: again.metrics[name] for name in names} == {name: run.result.metrics[name] for name in names}
        assert recompute(run, Changes(draws=500)).metrics["chance"] == again.metrics["chance"]


def test_a_blind_run_beside_it_says_whether_the_model_looks_too(planted):
    """Blind, the text family is right everywhere, and the others score next to nothing: both conditions agree."""
    found = {run.result.described["base"]: recompute(run).analysis.gate for run in load(planted)}
    for family in ("text", "sum", "local"):
        looks = {one.against: one.value for one in found[f"mosaic_{family}"].looks}
        assert looks == dict.fromkeys(("wrong images", "blind"), family != "text")


def test_blind_only_the_text_family_survives(planted):
    found = metrics(planted)
    assert found["mosaic_text_blind"]["acc"] > 0.9
    for family in set(FAMILIES) - {"text"}:
        assert found[f"mosaic_{family}_blind"]["acc"] < 0.15


def test_numbers_follow_from_the_log(planted):
    """FIP, MPP and RCI recomputed from the answers and golds of the sample log alone."""
    for family in FAMILIES:
        task = f"mosaic_{family}_rci"
        rows = [
            (line["target"].lower(), [a.strip().lower().removesuffix(".") for a in line["filtered_resps"]])
            for line in samples(planted, task).values()
        ]
        fip = sum(got[0] == gold for gold, got in rows) / len(rows)
        mpp3 = sum(gold in got[5:14] for gold, got in rows) / len(rows)  # after the doc's own views: those of a wrong image
        found = metrics(planted)[task]
        assert found["acc"] == pytest.approx(fip)
        assert found["acc_mpp3"] == pytest.approx(mpp3)
        assert found["rci3"] == (pytest.approx(1 - mpp3 / fip) if family not in ("larger", "text") else None)


def test_show_prints_the_table(planted):
    printed = subprocess.run([str(BIN / "lmms-patch"), "show", str(planted)], capture_output=True, text=True, check=True).stdout
    told = " ".join(printed.split())
    assert "mosaic_count_rci" in told
    assert "1.00, cells mislead" in told
    assert "single cells mislead in mosaic_count (" in told
    for family in ("same", "sum"):
        assert f"mosaic_{family} (RCI_3 +1.00" in told.split("The whole image is needed for ")[1].split("single cells")[0]


# --- equality -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def equal_runs(tmp_path_factory):
    """One process, four runs: plain tasks; and wrapped ones at batch size 1, 2 and 8, by an adapter that reads the first

    request's task for a whole batch (``mosaic_vlm`` asks task by task).
    """
    out = tmp_path_factory.mktemp("equal")
    common = {"model": "mosaic_vlm", "limit": 5, "log_samples": True}
    runs = [{**common, "tasks": "mosaic", "batch_size": 1, "output_path": str(out / "plain")}]
    adapter = {"model": "lfm2_5_vl", "model_args": f"pretrained={mosaic_file('model')},device=cpu,dtype=float32"}  # mixes tasks in a batch
    runs += [{**common, **adapter, "tasks": "mosaic_rci3", "batch_size": size, "output_path": str(out / f"batch{size}")} for size in (1, 2, 8)]
    (out / "runs.yaml").write_text(yaml.safe_dump(runs))
    lmms_eval("--config", out / "runs.yaml")
    return out


def test_full_answers_are_those_of_the_plain_tasks(equal_runs):
    for family in FAMILIES:
        plain = answers(equal_runs / "plain", f"mosaic_{family}")
        wrapped = answers(equal_runs / "batch1", f"mosaic_{family}_rci3")
        assert {doc: got[0] for doc, got in wrapped.items()} == {doc: got[0] if isinstance(got, list) else got for doc, got in plain.items()}


def test_batch_size_changes_no_answer(equal_runs):
    for family in FAMILIES:
        first, *others = (answers(equal_runs / f"batch{size}", f"mosaic_{family}_rci3") for size in (1, 2, 8))
        assert all(other == first for other in others)
        assert all(len(got) == 20 for got in first.values())  # the doc's own views, and a wrong image's


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory):
    """One start of two processes, two runs: the embedded benchmark, and a cross-validation of 49 docs, so that the ranks have 25 and 24."""
    out = tmp_path_factory.mktemp("ranks")
    toys.write(out / "tasks", rows=toys.choices(49, purity=0.7, options=("bed", "rug", "lamp")), **toys.ODD)
    mosaic = {"model": "mosaic_vlm", "batch_size": 2, "tasks": "mosaic_rci3", "limit": 5}
    tst = {"model": "tst_rf", "model_args": "trees=5", "tasks": "toy_tst5", "include_path": str(out / "tasks")}
    runs = [{**run, "log_samples": True, "output_path": str(out / name)} for name, run in (("mosaic", mosaic), ("tst", tst))]
    (out / "runs.yaml").write_text(yaml.safe_dump(runs))
    torchrun = (BIN / "torchrun", "--nproc_per_node", "2", "--master_port", "29531", "-m", "lmms_eval")
    lmms_eval("--config", out / "runs.yaml", command=torchrun, ACCELERATE_USE_CPU="true", OMP_NUM_THREADS="1")
    (out / "one.yaml").write_text(yaml.safe_dump({**runs[1], "output_path": str(out / "one")}))
    lmms_eval("--config", out / "one.yaml")
    return out


def test_two_ranks_equal_one(equal_runs, two_ranks):
    """``mosaic`` has a ``!function`` doc_to_visual, which an id that drags its task along could not be gathered with."""
    assert metrics(two_ranks / "mosaic") == metrics(equal_runs / "batch2")
    for family in FAMILIES:
        task = f"mosaic_{family}_rci3"
        one, two = (samples(folder, task) for folder in (equal_runs / "batch2", two_ranks / "mosaic"))
        assert {d: (s["filtered_resps"], s["patch"]) for d, s in one.items()} == {d: (s["filtered_resps"], s["patch"]) for d, s in two.items()}


def test_two_ranks_cross_validate_as_one_does(two_ranks):
    def numbers(found):
        return {name: value for name, value in found.items() if name.startswith("tst") and isinstance(value, float)}

    task = "toy_tst5"
    one, two = (samples(two_ranks / name, task) for name in ("one", "tst"))
    assert len(one) == 49
    assert {d: json.dumps(line["patch"]["tst"]) for d, line in two.items()} == {d: json.dumps(line["patch"]["tst"]) for d, line in one.items()}
    assert answers(two_ranks / "tst", task) == answers(two_ranks / "one", task)
    one, two = (details(two_ranks / name, task) for name in ("one", "tst"))
    assert numbers(two) == pytest.approx(numbers(one), abs=1e-12)  # sums in another order
    assert all(two["tst_details"][key] == one["tst_details"][key] for key in ("importance", "causes", "texts", "settings", "unusable"))


# --- the response cache, and a killed run ---------------------------------------------------------


def test_a_killed_run_goes_on(equal_runs, tmp_path):
    """kill -9 after the first portion, and the same command again: what was answered is not asked, and nothing is left over."""
    command = [
        "--model",
        "mosaic_vlm",
        "--batch_size",
        "8",
        "--tasks",
        "mosaic_local_rci3",
        "--limit",
        "5",
        "--output_path",
        tmp_path,
        "--log_samples",
    ]
    plain = environment(LMMS_PATCH_JOURNAL="")
    status, _, said = warm.run(["lmms-eval", *map(str, command)], plain, kill_at="64/100")
    assert status == -signal.SIGKILL, said[-4000:]
    assert [path.name for path in tmp_path.iterdir()] == ["lmms_patch_journal"]
    assert "64 of 100 answers are kept from an earlier run of this command" in lmms_eval(*command, LMMS_PATCH_JOURNAL="")
    task = "mosaic_local_rci3"
    assert answers(tmp_path, task) == answers(equal_runs / "batch8", task)
    whole, again = (samples(folder, task) for folder in (equal_runs / "batch8", tmp_path))
    assert {d: s["patch"] for d, s in again.items()} == {d: s["patch"] for d, s in whole.items()}
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".jsonl", ".parquet"]


def test_a_quick_run_that_is_killed_decides_as_one_that_is_not(tmp_path):
    """kill -9 after the pilot, and the same command with another batch size: the same views asked, the same numbers, none asked twice."""
    task, quick = (
        "mosaic_local_rci3_quick",
        {"LMMS_PATCH_PILOT": "12", "LMMS_PATCH_PRECISION": "0.3", "LMMS_PATCH_JOURNAL": "", "OMP_NUM_THREADS": "1"},
    )
    command = ["--model", "mosaic_vlm", "--tasks", task, "--limit", "40", "--log_samples"]
    printed = lmms_eval(*command, "--batch_size", "8", "--output_path", tmp_path / "whole", "--verbosity", "INFO", **quick)
    assert f"{task}: a full pass is 400 calls; 400 more on wrong images; asked until the 95 % interval of RCI is ± 0.3 or less" in printed
    assert f"{task} (estimates)" in printed
    killed = ["lmms-eval", *command, "--batch_size", "8", "--output_path", str(tmp_path / "killed")]
    status, _, said = warm.run(killed, environment(**quick), kill_at="RCI3 ")
    assert status == -signal.SIGKILL, said[-4000:]
    again = lmms_eval(*command, "--batch_size", "1", "--output_path", tmp_path / "killed", "--verbosity", "INFO", **quick)
    assert "answers are kept from an earlier run of this command" in again
    one, two = ({d: s["patch"] for d, s in samples(tmp_path / name, task).items()} for name in ("whole", "killed"))
    assert one == two
    assert len(one) == 40
    assert sum(patch["asked"].get("unasked", 0) for patch in one.values()) > 100


def test_a_killed_run_and_the_cache(equal_runs, tmp_path):
    """kill -9 during inference, the same command again, and once more from the cache: equal to an undisturbed run."""
    command = ["--model", "mosaic_vlm", "--batch_size", "8", "--tasks", "mosaic_local_rci3", "--limit", "5", "--output_path", tmp_path / "out"]
    command += ["--log_samples", "--use_cache", tmp_path / "cache"]
    status, _, said = warm.run(["lmms-eval", *map(str, command)], environment(), kill_at="Model Responding")
    assert status == -signal.SIGKILL, said[-4000:]
    assert not list(tmp_path.rglob("*_results.json"))

    lmms_eval(*command)
    task = "mosaic_local_rci3"
    undisturbed = answers(equal_runs / "batch8", task)
    assert answers(tmp_path / "out", task) == undisturbed
    first = samples(tmp_path / "out", task)

    printed = lmms_eval("eval", *command, "--verbosity", "INFO")  # the subcommand form
    assert "100 hits" in printed
    assert " 0 misses" in printed
    again = samples(tmp_path / "out", task)
    assert {d: (s["filtered_resps"], s["patch"]) for d, s in again.items()} == {d: (s["filtered_resps"], s["patch"]) for d, s in first.items()}
    assert metrics(tmp_path / "out", 0) == metrics(tmp_path / "out", -1)
