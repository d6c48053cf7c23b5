"""The real ``lmms-eval`` command line, with the embedded model: equal answers whatever the batch or the ranks, and runs that were killed."""

from __future__ import annotations

import json
import shutil
import signal

import pytest
import yaml
from lmms_patch.harness.models.mosaic_reader import MosaicReader
from polars.testing import assert_frame_equal

from lmms_patch.app.cli import main
from lmms_patch.present.explore.docs import docs_of
from lmms_patch.runs.run import newest_of
from tests.harness import toys as inprocess
from tests.harness import warm
from tests.harness.command import BIN, answers, environment, lmms_eval, metrics, mosaic_file, results, same_tables
from tests.harness.tst import toys
from tests.places import ROOT
from tests.sizes import DEEP, size

pytestmark = pytest.mark.cli


# --- equality -----------------------------------------------------------------------------------

FEW = size(("local", "larger", "text"), ("local", "count", "larger", "text"))
"""Families of the embedded benchmark: digits, yes or no, and words, so that a batch mixes what tasks ask for."""
BATCHES = size((1, 8), (1, 2, 8))
EACH = 10
"""Docs of each family: ten views each, and the whole of a wrong image, are more than one portion of 64 requests."""
ASKED = EACH * (10 + 1)
WRAPPED = ",".join(f"mosaic_{family}_rci3" for family in FEW)


@pytest.fixture(scope="module")
def equal_runs(tmp_path_factory):
    """One process, some runs: plain tasks; and wrapped ones at each batch size, by an adapter that reads the first

    request's task for a whole batch (``mosaic_vlm`` asks task by task).
    """
    out = tmp_path_factory.mktemp("equal")
    common = {"model": "mosaic_vlm", "limit": EACH, "log_samples": True}
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
        assert [*map(len, first.values())] == [10 + 1] * EACH


CLIPS, DOCS = "mosaic_video_count_trci4", 5
GIGABYTES = 0.0008
"""Of both ranks' clips: half of it holds the last 8, which never go (``video.cache``), but not all clips of a rank."""
NOTING = """
import json, os
from lmms_patch.harness.video import cache

original, noted = cache.Cache.path_of, []

def storing(self, doc, view, make):
    path = original(self, doc, view, make)
    on_disk = sum(file.stat().st_size for file in self.folder.iterdir())
    noted.append({"clip": path.stat().st_size, "on_disk": on_disk, "folder": str(self.folder)})
    with open(os.path.join(os.environ["NOTES"], os.environ["RANK"] + ".json"), "w") as file:
        json.dump(noted, file)
    return path

cache.Cache.path_of = storing
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
    mosaic = {"model": "mosaic_vlm", "batch_size": 2, "tasks": WRAPPED, "limit": EACH}
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
    same_tables(two_ranks / "mosaic", equal_runs / "batch8")


def test_two_ranks_cross_validate_as_one_does(two_ranks):
    same_tables(two_ranks / "tst", two_ranks / "one")
    one, two = (results(two_ranks / name)["toy_tst5"] for name in ("one", "tst"))
    assert one.docs == 49
    assert one.tst.importance == two.tst.importance
    assert one.tst.causes == two.tst.causes
    assert {name: (e.value, e.low, e.high) for name, e in two.measures.items()} == {
        name: pytest.approx((e.value, e.low, e.high), abs=1e-12)  # sums in another order
        for name, e in one.measures.items()
    }


def test_two_ranks_give_the_table_of_one_on_clips(two_ranks, monkeypatch):
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")
    alone = inprocess.run(MosaicReader(), [CLIPS], limit=DOCS)
    own, shared = alone["results"][CLIPS]["patch,none"].frame(), results(two_ranks / "video")[CLIPS].frame()
    assert set(shared["doc_id"]) == set(range(DOCS))
    assert_frame_equal(own.select(shared.columns), shared)


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


TOKENS = ("tokens_in", "tokens_out")
"""Some adapters count them, and the host's cache does not keep them."""


def test_a_killed_run_goes_on(equal_runs, tmp_path):
    """kill -9 after the first portion, and the same command again: what was answered is not asked, and nothing is left over."""
    command = [
        "--model", "mosaic_vlm", "--batch_size", "8", "--tasks", "mosaic_local_rci3", "--limit", EACH, "--output_path",
        tmp_path, "--log_samples",
    ]  # fmt: skip
    plain = environment(LMMS_PATCH_JOURNAL="")
    status, _, said = warm.run(["lmms-eval", *map(str, command)], plain, kill_at=f"64/{ASKED}")
    assert status == -signal.SIGKILL, said[-4000:]
    assert [path.name for path in tmp_path.iterdir()] == ["lmms_patch_journal"]
    assert f"64 of {ASKED} answers are kept from an earlier run of this command" in lmms_eval(
        *command, LMMS_PATCH_JOURNAL=""
    )
    frames = (results(out)["mosaic_local_rci3"].frame().drop(TOKENS) for out in (tmp_path, equal_runs / "batch8"))
    assert_frame_equal(*frames)
    ends = {path.name.rpartition("_")[2] for path in tmp_path.iterdir()}
    assert ends == {"numbers.parquet", "results.json", "rci3.jsonl", "rci3.parquet"}, "and no journal"


def test_a_killed_run_and_the_cache(equal_runs, tmp_path):
    """kill -9 during inference, the same command again, and once more from the cache: equal to an undisturbed run."""
    command = [
        "--model", "mosaic_vlm", "--batch_size", "8", "--tasks", "mosaic_local_rci3", "--limit", EACH, "--output_path",
        tmp_path / "out",
    ]  # fmt: skip
    command += ["--log_samples", "--use_cache", tmp_path / "cache"]
    status, _, said = warm.run(["lmms-eval", *map(str, command)], environment(), kill_at="Model Responding")
    assert status == -signal.SIGKILL, said[-4000:]
    assert not list(tmp_path.rglob("*_results.json"))

    lmms_eval(*command)
    task, first = "mosaic_local_rci3", results(tmp_path / "out")["mosaic_local_rci3"].frame().drop(TOKENS)
    assert_frame_equal(first, results(equal_runs / "batch8")[task].frame().drop(TOKENS))

    printed = lmms_eval("eval", *command, "--verbosity", "INFO")  # the subcommand form
    assert f"{ASKED} hits" in printed
    assert " 0 misses" in printed
    assert_frame_equal(results(tmp_path / "out")[task].frame().drop(TOKENS), first)
    assert metrics(tmp_path / "out", 0) == metrics(tmp_path / "out", -1)


# --- every command on the tables alone ------------------------------------------------------------

RULES = """
schema: 1
rules:
  - {name: full, task: mosaic_local_rci3, metric: fip, min: 0}
"""


@pytest.fixture(scope="module")
def tables(equal_runs, tmp_path_factory):
    """Two runs of which only the samples tables are left: no results file, no log, no numbers."""
    out = tmp_path_factory.mktemp("tables")
    for batch in (BATCHES[0], BATCHES[-1]):
        (out / f"batch{batch}").mkdir()
        for path in (equal_runs / f"batch{batch}").rglob("*_samples_*.parquet"):
            shutil.copy(path, out / f"batch{batch}")
    (out / "rules.yaml").write_text(RULES)
    return out, out / f"batch{BATCHES[0]}", out / f"batch{BATCHES[-1]}"


@pytest.mark.parametrize(
    ("words", "said", "made"),
    [
        ("show ONE", "mosaic_local", None),
        ("analyze ONE", "mosaic_local", None),
        ("compare ONE TWO", "mosaic_local", None),
        ("gate ONE --config OUT/rules.yaml --all", "inconclusive: full", None),
        ("leaderboard ONE TWO --output OUT/board", "models 1", "board/index.html"),
        ("report ONE TWO --output OUT/report", "report", "report/index.html"),
        ("export ONE --output OUT/numbers.csv", "", "numbers.csv"),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) and value else "",
)
def test_every_command_reads_the_tables_alone(tables, words, said, made, capsys):
    out, one, two = tables
    words = [word.replace("ONE", str(one)).replace("TWO", str(two)).replace("OUT", str(out)) for word in words.split()]
    status = main(words)
    printed = capsys.readouterr()
    # ten docs are too few for an interval
    assert status == (3 if words[0] == "gate" else 0), printed.err
    assert said in printed.out + printed.err
    assert made is None or (out / made).exists()


def test_the_explorer_opens_the_tables_alone(tables):
    docs = docs_of(newest_of(tables[1]).run.results[0])
    assert len(docs) == EACH
    assert docs["views"].list.len().min() > 1
