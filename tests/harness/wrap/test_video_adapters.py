"""Adapters get the frames that they would take: segments partition the frames of the full clip, which is the original file."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from lmms_eval.tasks import TaskManager

from lmms_patch.errors import OptionError
from lmms_patch.harness.video import cache
from tests.harness import toys
from tests.harness.adapters import first_of_all, per_request, threaded, zip_of_all
from tests.harness.cinema import SHAPES, Watching, WatchingChat, frames_of, said, write, write_videos
from tests.harness.toys import metrics, rows, write_task
from tests.sizes import each

MODELS = {"simple": Watching, "chat": WatchingChat}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two tasks on the same videos, in opposite order, and one on images."""
    where = tmp_path_factory.mktemp("cinema")
    videos = write_videos(where / "videos")
    write(where, "one", videos)
    write(where, "other", videos[::-1])
    write_task(where, "still", rows(4))
    return where


@pytest.fixture(scope="module")
def manager(folder):
    return TaskManager("ERROR", include_path=str(folder), include_defaults=False)


@pytest.fixture(autouse=True)
def _own_files(monkeypatch):
    """A cache of its own for each test, so that another limit counts."""
    cache._cache.cache_clear()
    yield
    cache._cache.cache_clear()


def run(model, manager, tasks, **options):
    return toys.simple_evaluate(
        model=model, tasks=tasks, task_manager=manager, log_samples=True, bootstrap_iters=0, **options
    )


def videos_of(folder, task):
    paths = [folder / "videos" / f"{i}.mp4" for i in range(len(SHAPES))]
    return paths if task.startswith("one") else paths[::-1]


def expected(video, count, k):
    """What the model must say of the full clip and of each of k segments, from the frames of the file alone: frame j of F is in segment i where
    F i / k <= j < F (i + 1) / k, rounded down. A single frame is written twice."""
    whole = frames_of(video, count)
    assert len(whole) == min(count, len(frames_of(video, 1000)))
    bounds = [len(whole) * i // k for i in range(k + 1)]
    parts = [whole[begin:end] for begin, end in pairwise(bounds)]
    assert sum(map(len, parts)) == len(whole)
    return [said(whole), *(said(part if len(part) > 1 else part * 2) for part in parts)]


def answers(results, task):
    return {sample["doc_id"]: [resps[0] for resps in sample["resps"]] for sample in results["samples"][task]}


@pytest.mark.parametrize(
    ("protocol", "fetch"),
    each(list(MODELS), [per_request, first_of_all, zip_of_all, threaded]),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_segments_partition_the_frames_that_the_adapter_takes(folder, manager, protocol, fetch):
    """Batches of 8 hold parts of docs, of two video tasks and of images.

    The frames are those of lmms-eval's own loader.
    """
    model = MODELS[protocol](fetch, in_order=False)
    results = run(model, manager, ["one_trci4", "other_trci3", "still_rci2", "still", "one"])
    for task, k in (("one_trci4", 4), ("other_trci3", 3)):
        found = answers(results, task)
        for doc, video in enumerate(videos_of(folder, task)):
            assert found[doc] == expected(video, model.max_num_frames, k), (task, doc)
    assert all(len(found) == 5 and len(set(found)) > 1 for found in answers(results, "still_rci2").values())
    assert {doc: one[0] for doc, one in answers(results, "one_trci4").items()} == {
        doc: one[0] for doc, one in answers(results, "one").items()
    }


def test_files_are_the_original_for_the_full_clip_and_gone_after_the_run(folder, manager):
    model = Watching(first_of_all)
    run(model, manager, ["one_trci4"])
    originals = {str(path) for path in videos_of(folder, "one")}
    full = [media[0] for _, number, media in model.seen if number % 5 == 0]
    assert sorted(full) == sorted(originals)
    made = [path for path in model.paths if path not in originals]
    assert len(made) == len(set(made)) == 4 * len(SHAPES)
    assert not any(Path(path).exists() for path in made)
    assert all(Path(path).is_file() for path in originals)


def test_the_number_of_frames_is_the_adapters(folder, manager):
    """The same video in clips of 5 and of 20 frames; the option goes before the adapter."""
    for count in (5, 20):
        model = Watching(per_request, frames=count)
        found = answers(run(model, manager, ["one_trci2"], limit=2), "one_trci2")
        assert [found[doc] for doc in range(2)] == [expected(video, count, 2) for video in videos_of(folder, "one")[:2]]


def test_a_full_clip_that_another_doc_shows_is_never_its_own(folder, manager):
    """The null of an index in time: each doc is asked once more, on the whole of one other doc's clip."""
    write(folder / "null", "nulled", videos_of(folder, "one"), metadata={"version": 0.0})
    model = Watching(per_request)
    results = run(
        model, TaskManager("ERROR", include_path=str(folder / "null"), include_defaults=False), ["nulled_trci4"]
    )
    for sample in results["samples"]["nulled_trci4"]:
        said_of = [resps[0] for resps in sample["resps"]]
        wrong = sample["patch"]["wrong_image"]["from"]
        assert wrong != sample["doc_id"]
        own, other = (expected(videos_of(folder, "one")[doc], 8, 4) for doc in (sample["doc_id"], wrong))
        assert said_of == [*own, other[0]]


@pytest.mark.parametrize("text", ["0.0000001", "much"])
def test_a_folder_that_is_too_small_is_one_line(folder, manager, monkeypatch, text):
    monkeypatch.setenv("LMMS_PATCH_VIDEO_CACHE", text)
    with pytest.raises(OptionError, match="LMMS_PATCH_VIDEO_CACHE") as caught:
        run(Watching(per_request), manager, ["one_trci4"])
    assert "\n" not in str(caught.value)


def test_native_numbers_are_those_of_the_base_task(folder, manager):
    """A scorer that is right on odd digests: the full view of each wrapped task earns what the base task earns."""

    class Scored(Watching):
        def watch(self, medium):
            return str(int(super().watch(medium).split()[1], 16) % len(SHAPES))

    results = run(Scored(per_request), manager, ["one", "one_trci4", "one_rci2", "one_trci2"])
    native = metrics(results, "one")["exact_match"]
    assert {metrics(results, name)["exact_match"] for name in ("one_trci4", "one_rci2", "one_trci2")} == {native}


def test_a_doc_is_decoded_once_for_all_views_of_a_portion(folder, manager, monkeypatch):
    """The wrong clip is decoded where it is looked for, and where it is shown: no more than three times each."""
    from lmms_patch.harness.video import reading

    decoded = Counter()

    def counted(medium, sampling=None):
        decoded[Path(medium).name] += 1
        return original(medium, sampling)

    original = reading.read
    monkeypatch.setattr(reading, "read", counted)
    run(Watching(per_request), manager, ["one_trci4"])
    assert np.max(list(decoded.values())) <= 2, decoded
