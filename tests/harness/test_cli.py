"""The real ``lmms-eval`` command line, with the embedded model. Few and meant: each run starts in about 20 s."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from lmms_patch.outcome import flat_names
from lmms_patch.recompute import Changes, load, recompute
from lmms_patch.records import read_results, read_samples, results_files

BIN = Path(sys.executable).parent
SHARED = Path(__file__).parents[3] / "shared" / "data"
FAMILIES = ("local", "center", "count", "sum", "same", "larger", "text")

pytestmark = pytest.mark.cli


def environment(**extra):
    return {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1", **extra}


def lmms_eval(*arguments, status=0, cwd=None, command=None, **extra):
    """Run the command line; returns what it printed (both streams)."""
    command = command or [str(BIN / "lmms-eval")]
    done = subprocess.run([*command, *map(str, arguments)], env=environment(**extra), cwd=cwd, capture_output=True, text=True, timeout=900)
    printed = done.stdout + done.stderr
    assert done.returncode == status, printed[-4000:]
    return printed


def metrics(folder, which=-1):
    """Task -> metrics of one run of a folder, oldest first."""
    return {r.task: r.metrics for r in read_results(results_files(folder)[which])}


def samples(folder, task):
    """doc id -> sample line, of the newest run of a task."""
    path = sorted(Path(folder).rglob(f"*_samples_{task}.jsonl"))[-1]
    return {line["doc_id"]: line for line in map(json.loads, path.read_text().splitlines())}


def answers(folder, task):
    return {doc_id: line["filtered_resps"] for doc_id, line in samples(folder, task).items()}


# --- the planted truth --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The demo's own run, and the blind one, on every doc."""
    out = tmp_path_factory.mktemp("planted")
    lmms_eval("--model", "mosaic_vlm", "--batch_size", 32, "--tasks", "mosaic_rci,mosaic_blind", "--output_path", out, "--log_samples")
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
    """By hand from golds and strata: the most frequent gold of all docs, or of the docs that are asked alike."""
    for family in FAMILIES:
        lines = list(samples(planted, f"mosaic_{family}_rci").values())
        golds = [line["target"] for line in lines]
        strata = [line["patch"]["stratum"] for line in lines]
        right = 0
        for gold, own in zip(golds, strata, strict=True):
            alike = [g for g, other in zip(golds, strata, strict=True) if f"{other} |".startswith(f"{own} |")]
            right += gold == max(sorted(set(alike)), key=alike.count)
        found = metrics(planted)[f"mosaic_{family}_rci"]
        majority = max(map(golds.count, golds)) / len(golds)
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
        assert metrics(planted)[f"mosaic_{family}_rci"]["rci3_adj_low"] > 0.5


def test_the_middle_is_where_the_center_family_lives(planted):
    """Its digit is always in the middle cell of nine; the local family's may be in any."""
    results = {r.task: r.details["analysis"]["grids"]["3"]["shares"] for r in read_results(results_files(planted)[-1]) if "_rci" in r.task}
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


def test_a_blind_run_beside_it_removes_text_priors(planted):
    """Blind, the text family is right everywhere: no signal is left. Of the others nothing changes: blind, they score 0."""
    found = {run.result.described["base"]: recompute(run).metrics for run in load(planted)}
    assert found["mosaic_text"]["rci3_adj_blind"] is None
    assert found["mosaic_sum"]["rci3_adj_blind"] == pytest.approx(found["mosaic_sum"]["rci3_adj"])


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
        mpp3 = sum(gold in got[5:] for gold, got in rows) / len(rows)
        found = metrics(planted)[task]
        assert found["acc"] == pytest.approx(fip)
        assert found["acc_mpp3"] == pytest.approx(mpp3)
        assert found["rci3"] == (pytest.approx(1 - mpp3 / fip) if family != "larger" else None)


def test_show_prints_the_table(planted):
    printed = subprocess.run([str(BIN / "lmms-patch"), "show", str(planted)], capture_output=True, text=True, check=True).stdout
    assert "mosaic_count_rci" in printed
    assert "only the whole image answers mosaic_count" in printed


# --- equality -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def equal_runs(tmp_path_factory):
    """One process, four runs: plain tasks; and wrapped ones at batch size 1, 2 and 8, by an adapter that reads the first

    request's task for a whole batch (``mosaic_vlm`` asks task by task).
    """
    out = tmp_path_factory.mktemp("equal")
    common = {"model": "mosaic_vlm", "limit": 7, "log_samples": True}
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
        assert all(len(got) == 10 for got in first.values())


def test_two_ranks_equal_one(equal_runs, tmp_path):
    """``mosaic`` has a ``!function`` doc_to_visual, which an id that drags its task along could not be gathered with."""
    torchrun = [str(BIN / "torchrun"), "--nproc_per_node", "2", "--master_port", "29531", "-m", "lmms_eval"]
    lmms_eval("--model", "mosaic_vlm", "--batch_size", 2, "--tasks", "mosaic_rci3", "--limit", 7, "--output_path", tmp_path, "--log_samples",
              command=torchrun, ACCELERATE_USE_CPU="true", OMP_NUM_THREADS="1")  # fmt: skip
    assert metrics(tmp_path) == metrics(equal_runs / "batch2")
    for family in FAMILIES:
        task = f"mosaic_{family}_rci3"
        one, two = (samples(folder, task) for folder in (equal_runs / "batch2", tmp_path))
        assert {d: (s["filtered_resps"], s["patch"]) for d, s in one.items()} == {d: (s["filtered_resps"], s["patch"]) for d, s in two.items()}


# --- the response cache, and a killed run ---------------------------------------------------------


def test_a_killed_run_and_the_cache(equal_runs, tmp_path):
    """kill -9 during inference, the same command again, and once more from the cache: equal to an undisturbed run."""
    command = ["--model", "mosaic_vlm", "--batch_size", "8", "--tasks", "mosaic_local_rci3", "--limit", "7", "--output_path", tmp_path / "out"]
    command += ["--log_samples", "--use_cache", tmp_path / "cache"]
    killed = subprocess.Popen(
        [str(BIN / "python"), "-m", "lmms_eval", *map(str, command)], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    deadline, seen = time.monotonic() + 300, ""
    while "Model Responding" not in seen and time.monotonic() < deadline:
        seen += killed.stderr.read(1)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert "Model Responding" in seen
    assert not list(tmp_path.rglob("*_results.json"))

    lmms_eval(*command, command=[str(BIN / "python"), "-m", "lmms_eval"])
    task = "mosaic_local_rci3"
    undisturbed = answers(equal_runs / "batch8", task)
    assert answers(tmp_path / "out", task) == undisturbed
    first = samples(tmp_path / "out", task)

    printed = lmms_eval("eval", *command, "--verbosity", "INFO")  # the subcommand form
    assert "70 hits" in printed
    assert " 0 misses" in printed
    again = samples(tmp_path / "out", task)
    assert {d: (s["filtered_resps"], s["patch"]) for d, s in again.items()} == {d: (s["filtered_resps"], s["patch"]) for d, s in first.items()}
    assert metrics(tmp_path / "out", 0) == metrics(tmp_path / "out", -1)


# --- real input -----------------------------------------------------------------------------------


@pytest.mark.skipif(not SHARED.exists(), reason="the real data is not beside this checkout")
def test_real_images_as_tasks_of_an_include_folder(tmp_path):
    """NLVR (400x100, RGBA) and PuzzleVQA (512 square, multiple choice by letter)."""
    for name in ("nlvr", "puzzlevqa"):
        rows = [row for row in map(json.loads, (SHARED / f"{name}.jsonl").read_text().splitlines()) if row.get("image")][:12]
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(json.dumps({**row, "image": str(SHARED / row["image"]), "meta": None}) + "\n" for row in rows)
        )
        task = {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": f"{name}.jsonl"}},
            "test_split": "test",
            "output_type": "generate_until",
            "doc_to_visual": "DOC_TO_VISUAL",
            "doc_to_text": "{{question}}"
            if name == "nlvr"
            else "{{question}}\n{% for c in choices %}{{ 'ABCDEFGH'[loop.index0] }}. {{c}}\n{% endfor %}",
            "doc_to_target": "answer",
            "generation_kwargs": {"max_new_tokens": 4, "temperature": 0, "do_sample": False},
            "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True, "ignore_case": True}],
            "metadata": {"version": 1.0, "lmms_patch": {"cluster": "group"}},
        }
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(task).replace("DOC_TO_VISUAL", "!function utils.image"))
    (tmp_path / "utils.py").write_text("from PIL import Image\ndef image(doc):\n    return [Image.open(doc['image'])]\n")
    out = tmp_path / "out"
    lmms_eval(
        "--model",
        "mosaic_vlm",
        "--batch_size",
        8,
        "--tasks",
        "nlvr_rci3,puzzlevqa_rci2",
        "--include_path",
        tmp_path,
        "--output_path",
        out,
        "--log_samples",
    )
    assert set(metrics(out)) == {"nlvr_rci3", "puzzlevqa_rci2"}
    for task, cells, size in (("nlvr_rci3", 9, [400, 100]), ("puzzlevqa_rci2", 4, [512, 512])):
        records = list(read_samples(next(out.rglob(f"*_samples_{task}.jsonl"))))
        assert len(records) == 12
        for record in records:
            boxes = [view["boxes"][0] for view in record["views"][1:]]
            assert len(boxes) == cells
            assert record["image_sizes"] == [size]
            assert sum((right - left) * (bottom - top) for left, top, right, bottom in boxes) == size[0] * size[1]
            assert record["fields"]["cluster"]


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        ("gqaa_rci3", "did you mean gqa_rci3"),
        ("mosaic_local,mosaic_sum_rci10", "grid size 10"),
        ("videomme_rci3", "video task"),
        ("mathvista_testmini_cot_rci3", "allow_judge: true"),
    ],
)
def test_refusals_before_the_model_is_loaded(tasks, says, tmp_path):
    printed = lmms_eval("--model", "no_such_model", "--tasks", tasks, "--output_path", tmp_path, status=2)
    refusal = [line for line in printed.splitlines() if line.startswith("lmms-patch: ")]
    assert len(refusal) == 1
    assert says in refusal[0]
    assert "Traceback" not in printed


def test_failures_that_only_a_run_shows(tmp_path):
    """``--repeats 2``, and a scorer that raises: answers kept, its cause named, status 2."""
    printed = lmms_eval("--model", "mosaic_vlm", "--tasks", "mosaic_sum_rci2", "--limit", 2, "--repeats", 2, status=2)
    assert "lmms-patch: mosaic_sum_rci2: --repeats above 1 is not possible" in printed

    (tmp_path / "bad.yaml").write_text(
        "include: BASE\ntask: bad\nprocess_results: !function scorer.score\n".replace("BASE", str(mosaic_file("mosaic_sum.yaml")))
    )
    (tmp_path / "scorer.py").write_text("def score(doc, results):\n    return {'acc': 1 / len(doc['no such column'])}\n")
    out = tmp_path / "out"
    printed = lmms_eval(
        "--model", "mosaic_vlm", "--tasks", "bad_rci2", "--include_path", tmp_path, "--limit", 3, "--output_path", out, "--log_samples", status=2
    )
    assert "lmms-patch: bad_rci2: 3 of 3 docs could not be scored by bad, first doc 0: KeyError: 'no such column'" in printed
    assert metrics(out)["bad_rci2"]["rci2"] is None
    assert all(len(got) == 5 for got in answers(out, "bad_rci2").values())


def mosaic_file(name):
    from lmms_patch.resources import folder

    return folder("tasks") / "mosaic" / name


def test_wandb_takes_the_results(tmp_path):
    out = tmp_path / "out"
    printed = lmms_eval(
        "--model", "mosaic_vlm", "--tasks", "mosaic_sum_rci2", "--limit", 3, "--output_path", out, "--log_samples", "--wandb_args", "project=test,mode=offline",
        "--verbosity", "INFO", cwd=tmp_path, WANDB_MODE="offline",
    )  # fmt: skip
    assert "Logging to Weights and Biases failed" not in printed
    assert list(tmp_path.rglob("*.wandb"))
