"""Two real processes share a run on clips: the numbers of one process, a bounded folder each, and nothing left at the end."""

import json

import pytest

from lmms_patch.harness.models.mosaic_reader import MosaicReader
from tests.harness import toys
from tests.harness.command import BIN, lmms_eval, metrics, samples

pytestmark = pytest.mark.cli

TASK = "mosaic_video_count_trci4"
LIMIT = 5
"""Docs: the ranks have three and two."""
GIGABYTES = 0.0008
"""Of both ranks: half of it holds the last 8 clips, which never go (``video.cache``), but not all clips of a rank."""
NOTING = """
import json, os, sys
from lmms_eval.cli import dispatch
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
sys.argv[0] = "lmms-eval"
dispatch.main()
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The run's folder, what each rank wrote, and the folder for temporary files."""
    where = tmp_path_factory.mktemp("ranks")
    script, notes, temporary = where / "noting.py", where / "notes", where / "temporary"
    script.write_text(NOTING)
    notes.mkdir()
    temporary.mkdir()
    torchrun = (BIN / "torchrun", "--nproc_per_node", "2", "--master_port", "29537", script)
    run = ["--model", "mosaic_reader", "--tasks", TASK, "--limit", LIMIT, "--output_path", where / "out", "--log_samples"]
    lmms_eval(
        *run,
        command=torchrun,
        ACCELERATE_USE_CPU="true",
        OMP_NUM_THREADS="1",
        LMMS_PATCH_VIDEO_CACHE=str(GIGABYTES),
        NOTES=str(notes),
        TMPDIR=str(temporary),
    )
    return where / "out", [json.loads((notes / f"{rank}.json").read_text()) for rank in (0, 1)], temporary


def test_two_ranks_give_the_numbers_of_one(two, monkeypatch):
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")
    alone, together = toys.run(MosaicReader(), [TASK], limit=LIMIT), metrics(two[0])[TASK]
    one = {sample["doc_id"]: sample for sample in json.loads(json.dumps(alone["samples"][TASK], default=str))}
    shared = samples(two[0], TASK)
    assert set(shared) == set(one) == set(range(LIMIT))
    for doc, sample in one.items():
        assert shared[doc]["filtered_resps"] == sample["filtered_resps"]
        assert shared[doc]["patch"] == sample["patch"]
    numbers = {name: value for name, value in toys.metrics(alone, TASK).items() if isinstance(value, (int, float))}
    assert {"acc", "acc_mpp4"} <= set(numbers)
    assert {name: together[name] for name in numbers} == pytest.approx(numbers)


def test_each_rank_has_a_folder_and_a_half_of_the_disk(two):
    _, (first, second), _ = two
    assert {one["folder"] for one in first}.isdisjoint(one["folder"] for one in second)
    for written in (first, second):
        assert len({one["folder"] for one in written}) == 1
        assert max(one["on_disk"] for one in written) <= GIGABYTES * 1e9 / 2
        assert sum(one["clip"] for one in written) > GIGABYTES * 1e9 / 2, "all clips together would not have fit"


def test_no_clip_is_left(two):
    assert not [path for path in two[2].rglob("*") if path.suffix == ".mp4" or path.name.startswith(".lmms-patch")]
