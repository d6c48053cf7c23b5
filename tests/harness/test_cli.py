"""The real ``lmms-eval`` command line, with the embedded model: equal answers whatever the batch or the ranks, and runs that were killed."""

from __future__ import annotations

import json
import signal

import pytest
import yaml
from lmms_patch.harness.models.mosaic_reader import MosaicReader

from tests.harness import toys as inprocess
from tests.harness import warm
from tests.harness.command import BIN, answers, details, environment, lmms_eval, metrics, mosaic_file, samples
from tests.harness.tst import toys
from tests.places import ROOT
from tests.sizes import DEEP, size

pytestmark = pytest.mark.cli


# --- equality -----------------------------------------------------------------------------------

FEW = size(("local", "larger", "text"), ("local", "count", "larger", "text"))
"""Families of the embedded benchmark: digits, yes or no, and words, so that a batch mixes what tasks ask for."""
BATCHES = size((1, 8), (1, 2, 8))
WRAPPED = ",".join(f"mosaic_{family}_rci3" for family in FEW)


@pytest.fixture(scope="module")
def equal_runs(tmp_path_factory):
    """One process, some runs: plain tasks; and wrapped ones at each batch size, by an adapter that reads the first

    request's task for a whole batch (``mosaic_vlm`` asks task by task).
    """
    out = tmp_path_factory.mktemp("equal")
    common = {"model": "mosaic_vlm", "limit": 5, "log_samples": True}
    runs = [
        {
            **common,
            "tasks": ",".join(f"mosaic_{family}" for family in FEW),
            "batch_size": 1,
            "output_path": str(out / "plain"),
        }
    ]
    adapter = {
        "model": "lfm2_5_vl",
        "model_args": f"pretrained={mosaic_file('model')},device=cpu,dtype=float32",
    }  # mixes tasks in a batch
    runs += [
        {**common, **adapter, "tasks": WRAPPED, "batch_size": batch, "output_path": str(out / f"batch{batch}")}
        for batch in BATCHES
    ]
    (out / "runs.yaml").write_text(yaml.safe_dump(runs))
    lmms_eval("--config", out / "runs.yaml")
    return out


def test_full_answers_are_those_of_the_plain_tasks(equal_runs):
    for family in FEW:
        plain = answers(equal_runs / "plain", f"mosaic_{family}")
        wrapped = answers(equal_runs / "batch1", f"mosaic_{family}_rci3")
        assert {doc: got[0] for doc, got in wrapped.items()} == {
            doc: got[0] if isinstance(got, list) else got for doc, got in plain.items()
        }


def test_batch_size_changes_no_answer(equal_runs):
    for family in FEW:
        first, *others = (answers(equal_runs / f"batch{batch}", f"mosaic_{family}_rci3") for batch in BATCHES)
        assert all(other == first for other in others)
        assert all(len(got) == 20 for got in first.values())  # the doc's own views, and a wrong image's


CLIPS, DOCS = "mosaic_video_count_trci4", 5
GIGABYTES = 0.0008
"""Of both ranks' clips: half of it holds the last 8, which never go (``video.cache``), but not all clips of a rank."""
NOTING = """
import json, os
from lmms_patch.harness.video import cache

original, noted = cache.Cache._store, []

def storing(self, key, data):
    path = original(self, key, data)
    on_disk = sum(file.stat().st_size for file in self.folder.iterdir())
    noted.append({"clip": len(data), "on_disk": on_disk, "folder": str(self.folder)})
    with open(os.path.join(os.environ["NOTES"], os.environ["RANK"] + ".json"), "w") as file:
        json.dump(noted, file)
    return path

cache.Cache._store = storing
"""
"""Notes what each rank wrote of clips."""
LAUNCHED = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})  # in front: packages bring folders "tests" of their own
{NOTING}
from lmms_eval.cli import dispatch
from tests.harness.warm import index_once
index_once()
sys.argv[0] = "lmms-eval"
dispatch.main()
"""
"""The command of lmms-eval with these notes. It reads the host's 1,700 task files once for all runs."""


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory):
    """One start of two processes, three runs: the embedded benchmark.

    A cross-validation of 49 docs, so that the ranks have 25 and 24; and clips of 5.
    docs, so that they have 3 and 2."""
    out = tmp_path_factory.mktemp("ranks")
    toys.write(out / "tasks", rows=toys.choices(49, purity=0.7, options=("bed", "rug", "lamp")), **toys.ODD)
    mosaic = {"model": "mosaic_vlm", "batch_size": 2, "tasks": WRAPPED, "limit": 5}
    tst = {"model": "tst_rf", "model_args": "trees=5", "tasks": "toy_tst5", "include_path": str(out / "tasks")}
    video = {"model": "mosaic_reader", "tasks": CLIPS, "limit": DOCS}
    runs = [
        {**run, "log_samples": True, "output_path": str(out / name)}
        for name, run in (("mosaic", mosaic), ("tst", tst), ("video", video))
    ]
    (out / "runs.yaml").write_text(yaml.safe_dump(runs))
    for name in ("notes", "temporary"):
        (out / name).mkdir()
    places = {"LMMS_PATCH_VIDEO_CACHE": str(GIGABYTES), "NOTES": str(out / "notes"), "TMPDIR": str(out / "temporary")}
    several = {**places, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    if DEEP:  # by the real launcher, from nothing
        (out / "noting.py").write_text(LAUNCHED)
        launcher = (BIN / "torchrun", "--nproc_per_node", "2", "--master_port", "29531", out / "noting.py")
        lmms_eval("--config", out / "runs.yaml", command=launcher, **several)
    else:
        status, *printed = warm.run(
            ["lmms-eval", "--config", str(out / "runs.yaml")], environment(**several), ranks=2, first=NOTING
        )
        assert status == 0, "".join(printed)[-4000:]
    (out / "one.yaml").write_text(yaml.safe_dump({**runs[1], "output_path": str(out / "one")}))
    lmms_eval("--config", out / "one.yaml")
    return out


def test_two_ranks_equal_one(equal_runs, two_ranks):
    """Also in batches of 2.

    ``mosaic`` has a ``!function`` doc_to_visual, which an id that drags its task along could not be gathered with.
    """
    assert metrics(two_ranks / "mosaic") == metrics(equal_runs / "batch8")
    for family in FEW:
        task = f"mosaic_{family}_rci3"
        one, two = (samples(folder, task) for folder in (equal_runs / "batch8", two_ranks / "mosaic"))
        assert {d: (s["filtered_resps"], s["patch"]) for d, s in one.items()} == {
            d: (s["filtered_resps"], s["patch"]) for d, s in two.items()
        }


def test_two_ranks_cross_validate_as_one_does(two_ranks):
    def numbers(found):
        return {name: value for name, value in found.items() if name.startswith("tst") and isinstance(value, float)}

    task = "toy_tst5"
    one, two = (samples(two_ranks / name, task) for name in ("one", "tst"))
    assert len(one) == 49
    assert {d: json.dumps(line["patch"]["tst"]) for d, line in two.items()} == {
        d: json.dumps(line["patch"]["tst"]) for d, line in one.items()
    }
    assert answers(two_ranks / "tst", task) == answers(two_ranks / "one", task)
    one, two = (details(two_ranks / name, task) for name in ("one", "tst"))
    assert numbers(two) == pytest.approx(numbers(one), abs=1e-12)  # sums in another order
    assert all(
        two["tst_details"][key] == one["tst_details"][key]
        for key in ("importance", "causes", "texts", "settings", "unusable")
    )


def test_two_ranks_give_the_numbers_of_one_on_clips(two_ranks, monkeypatch):
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")
    alone, together = inprocess.run(MosaicReader(), [CLIPS], limit=DOCS), metrics(two_ranks / "video")[CLIPS]
    one = {sample["doc_id"]: sample for sample in json.loads(json.dumps(alone["samples"][CLIPS], default=str))}
    shared = samples(two_ranks / "video", CLIPS)
    assert set(shared) == set(one) == set(range(DOCS))
    for doc, sample in one.items():
        assert shared[doc]["filtered_resps"] == sample["filtered_resps"]
        assert shared[doc]["patch"] == sample["patch"]
    numbers = {
        name: value for name, value in inprocess.metrics(alone, CLIPS).items() if isinstance(value, (int, float))
    }
    assert {"acc", "acc_mpp4"} <= set(numbers)
    assert {name: together[name] for name in numbers} == pytest.approx(numbers)


def test_each_rank_has_a_folder_and_a_half_of_the_disk(two_ranks):
    first, second = (json.loads((two_ranks / "notes" / f"{rank}.json").read_text()) for rank in (0, 1))
    assert {one["folder"] for one in first}.isdisjoint(one["folder"] for one in second)
    for written in (first, second):
        assert len({one["folder"] for one in written}) == 1
        assert max(one["on_disk"] for one in written) <= GIGABYTES * 1e9 / 2
        assert sum(one["clip"] for one in written) > GIGABYTES * 1e9 / 2, "all clips together would not have fit"


def test_no_clip_is_left(two_ranks):
    assert not [
        path
        for path in (two_ranks / "temporary").rglob("*")
        if path.suffix == ".mp4" or path.name.startswith(".lmms-patch")
    ]


# --- the response cache, and a killed run ---------------------------------------------------------


def test_a_killed_run_goes_on(equal_runs, tmp_path):
    """kill -9 after the first portion, and the same command again: what was answered is not asked, and nothing is left over."""
    command = [
        "--model", "mosaic_vlm", "--batch_size", "8", "--tasks", "mosaic_local_rci3", "--limit", "5", "--output_path",
        tmp_path, "--log_samples",
    ]  # fmt: skip
    plain = environment(LMMS_PATCH_JOURNAL="")
    status, _, said = warm.run(["lmms-eval", *map(str, command)], plain, kill_at="64/100")
    assert status == -signal.SIGKILL, said[-4000:]
    assert [path.name for path in tmp_path.iterdir()] == ["lmms_patch_journal"]
    assert "64 of 100 answers are kept from an earlier run of this command" in lmms_eval(
        *command, LMMS_PATCH_JOURNAL=""
    )
    task = "mosaic_local_rci3"
    assert answers(tmp_path, task) == answers(equal_runs / "batch8", task)
    whole, again = (samples(folder, task) for folder in (equal_runs / "batch8", tmp_path))
    assert {d: s["patch"] for d, s in again.items()} == {d: s["patch"] for d, s in whole.items()}
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".json", ".jsonl", ".parquet"]


QUICK = size(34, 40)
"""Docs of a run that leaves views out."""


@pytest.mark.skipif(not DEEP, reason="asking/test_quick.py shows it in this process; make test-deep has this test")
def test_a_quick_run_that_is_killed_decides_as_one_that_is_not(tmp_path):
    """kill -9 after the pilot, and the same command with another batch size: the same views asked, the same numbers, none asked twice."""
    task, quick = (
        "mosaic_local_rci3_quick",
        {
            "LMMS_PATCH_PILOT": str(QUICK * 3 // 10),
            "LMMS_PATCH_PRECISION": "0.3",
            "LMMS_PATCH_JOURNAL": "",
            "OMP_NUM_THREADS": "1",
        },
    )
    command = ["--model", "mosaic_vlm", "--tasks", task, "--limit", str(QUICK), "--log_samples"]
    printed = lmms_eval(
        *command, "--batch_size", "8", "--output_path", tmp_path / "whole", "--verbosity", "INFO", **quick
    )
    assert (
        f"{task}: a full pass is {QUICK}0 calls; {QUICK}0 more on wrong images; asked until the 95 % interval of RCI is ± 0.3 or less"
        in printed
    )
    assert f"{task} (estimates)" in printed
    killed = ["lmms-eval", *command, "--batch_size", "8", "--output_path", str(tmp_path / "killed")]
    status, _, said = warm.run(killed, environment(**quick), kill_at="RCI3 ")
    assert status == -signal.SIGKILL, said[-4000:]
    again = lmms_eval(
        *command, "--batch_size", "4", "--output_path", tmp_path / "killed", "--verbosity", "INFO", **quick
    )
    assert "answers are kept from an earlier run of this command" in again
    one, two = ({d: s["patch"] for d, s in samples(tmp_path / name, task).items()} for name in ("whole", "killed"))
    assert one == two
    assert len(one) == QUICK
    assert sum(patch["asked"].get("unasked", 0) for patch in one.values()) > 2.5 * QUICK


def test_a_killed_run_and_the_cache(equal_runs, tmp_path):
    """kill -9 during inference, the same command again, and once more from the cache: equal to an undisturbed run."""
    command = [
        "--model", "mosaic_vlm", "--batch_size", "8", "--tasks", "mosaic_local_rci3", "--limit", "5", "--output_path",
        tmp_path / "out",
    ]  # fmt: skip
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
    assert {d: (s["filtered_resps"], s["patch"]) for d, s in again.items()} == {
        d: (s["filtered_resps"], s["patch"]) for d, s in first.items()
    }
    assert metrics(tmp_path / "out", 0) == metrics(tmp_path / "out", -1)
