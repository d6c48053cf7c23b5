"""Runs on clips that are killed and started again.

And saved answers, which hold for the frames that the model was shown.
"""

import json
from argparse import Namespace

import pytest

from tests.harness import toys
from tests.harness.adapters import per_request
from tests.harness.askers import Killed, without_kept
from tests.harness.cinema import Watching, write, write_videos
from tests.making.videos import make

PORTION = 8

SHAPES = [(12 + i, (64, 48)) for i in range(6)]
PLANNED = len(SHAPES) * 5


class Dying(Watching):
    """Dies when it is asked for more than ``lives`` answers."""

    def __init__(self, lives=10**9, frames=8):
        super().__init__(per_request, batch_size=1, frames=frames)
        self.lives, self.asked = lives, []

    def answers(self, batch):
        if len(self.asked) >= self.lives:
            raise Killed
        self.asked += [int(one[3]) for one in batch]
        return super().answers(batch)

    def __repr__(self):
        return "a model"  # the host's cache goes by it


@pytest.fixture
def tasks(tmp_path):
    folder = tmp_path / "tasks"
    write(folder, "toy", write_videos(tmp_path / "videos", SHAPES))
    return folder


def asked_in(out, model, tasks, **options):
    """Run as the command line does, into a folder; what comes out."""
    cli = Namespace(
        output_path=str(out), process_with_media=False, reasoning_tags=None, model="Dying", model_args="", batch_size=1
    )
    found = without_kept(toys.run(model, "toy_trci4", tasks, cli_args=cli, **options))
    return json.dumps([found["results"], found["samples"]], sort_keys=True, default=str)


def test_answers_about_other_frames_are_not_taken(tasks, tmp_path):
    """The same command, but the model takes 6 frames of a video in place of 8."""
    with pytest.raises(Killed):
        asked_in(tmp_path / "out", Dying(20), tasks)
    again = asked_in(tmp_path / "out", other := Dying(frames=6), tasks)
    assert len(other.asked) == PLANNED
    assert again == asked_in(tmp_path / "fresh", Dying(frames=6), tasks)


def test_answers_about_another_video_under_the_same_path_are_not_taken(tasks, tmp_path):
    """The second doc's video is another one now: its answers are asked again, and no others."""
    with pytest.raises(Killed):
        asked_in(tmp_path / "out", Dying(20), tasks)
    make(tmp_path / "videos" / "1.mp4", 30, (64, 48))
    asked_in(tmp_path / "out", survivor := Dying(), tasks)
    assert sorted(survivor.asked) == sorted({*range(5, 10), *range(16, PLANNED)})


def test_the_response_cache_keeps_answers_by_view(tasks, tmp_path, monkeypatch):
    """With --use_cache a second run asks nothing; a task with another number of frames asks all."""
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")
    cache = str(tmp_path / "cache")
    whole = asked_in(tmp_path / "first", Dying(), tasks, use_cache=cache)
    assert asked_in(tmp_path / "second", second := Dying(), tasks, use_cache=cache) == whole
    assert not second.asked
    write(
        tasks,
        "toy",
        [tmp_path / "videos" / f"{i}.mp4" for i in range(len(SHAPES))],
        metadata={"lmms_patch": {"null": 0, "frames": 6}},
    )
    asked_in(tmp_path / "third", third := Dying(), tasks, use_cache=cache)
    assert len(third.asked) == PLANNED
