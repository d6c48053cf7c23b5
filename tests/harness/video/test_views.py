"""Views of a clip: which frames they hold, in which order, and at which rate."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lmms_patch.ask.views import View, cut
from lmms_patch.errors import CannotWrapError
from lmms_patch.harness.video.clip import Clip, Sampling, segment, shown


def clip_of(count, size=(6, 4), rate=Fraction(2)):
    """Return a clip whose frame i is filled with i."""
    return Clip(np.tile(np.arange(count, dtype=np.uint8)[:, None, None, None], (1, size[1], size[0], 3)), rate)


def order(clip):
    return clip.frames[:, 0, 0, 0].tolist()


@given(count=st.integers(1, 300), k=st.integers(1, 9))
def test_segments_cover_the_frames_exactly(count, k):
    parts = [list(range(count))[segment(count, k, i)] for i in range(k)]
    assert [frame for part in parts for frame in part] == list(range(count))
    if count >= k:
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
        assert min(map(len, parts)) >= 1


@pytest.mark.parametrize("k", range(2, 10))
def test_a_segment_keeps_the_rate(k):
    clip = clip_of(32)
    parts = [shown(clip, View("segment", k, 0, i)) for i in range(k)]
    assert [frame for part in parts for frame in order(part)] == list(range(32))
    assert {part.rate for part in parts} == {clip.rate}
    assert sum(part.duration for part in parts) == pytest.approx(clip.duration)
    assert all(np.shares_memory(part.frames, clip.frames) for part in parts), "no copy of the frames"


@pytest.mark.parametrize("trim", range(1, 9))
def test_a_clip_asked_again_lacks_the_same_strip_of_every_frame(trim):
    frames = np.random.default_rng(0).integers(0, 256, (8, 64, 128, 3), np.uint8)
    clip = Clip(frames, Fraction(2))
    for view, which in ((View("full", trim=trim), range(8)), (View("segment", 4, 0, 1, trim=trim), range(2, 4))):
        again = shown(clip, view)
        assert (again.rate, again.size) == (clip.rate, clip.size)
        for one, at in zip(again.frames, which, strict=True):
            assert np.array_equal(one, np.asarray(cut(Image.fromarray(frames[at]), View("full", trim=trim))))
            assert not np.array_equal(one, frames[at])


@pytest.mark.parametrize(("count", "middle"), [(1, 0), (2, 1), (3, 1), (32, 16), (33, 16)])
def test_the_middle_frame(count, middle):
    for view in (View("frame"), View("frames", 1)):
        alone = shown(clip_of(count), view)
        assert order(alone) == [middle]
        assert alone.rate == 2


@pytest.mark.parametrize(("k", "expected"), [(2, [0, 31]), (4, [0, 10, 20, 31]), (8, [0, 4, 8, 13, 17, 22, 26, 31])])
def test_uniform_frames_run_over_the_same_duration(k, expected):
    clip = clip_of(32)
    few = shown(clip, View("frames", k))  # 31 i / (k - 1), rounded down
    assert order(few) == expected
    assert few.duration == clip.duration


@pytest.mark.parametrize("k", range(2, 10))
def test_segments_permuted_none_in_its_place(k):
    clip = clip_of(20)
    mixed = shown(clip, View("tshuffle", k), seed="doc 3")
    parts = [order(clip)[segment(20, k, i)] for i in range(k)]
    left, found = order(mixed), []
    while left:  # what begins with the first frame of a segment must hold all of it
        part = next(number for number, one in enumerate(parts) if one[0] == left[0])
        assert left[: len(parts[part])] == parts[part]
        left = left[len(parts[part]) :]
        found.append(part)
    assert sorted(found) == list(range(k))
    assert all(part != place for place, part in enumerate(found))
    assert mixed.rate == clip.rate
    assert order(shown(clip, View("tshuffle", k), seed="doc 3")) == order(mixed)


@pytest.mark.parametrize(
    "view",
    [View("cell", 3, 1, 2), View("shuffle", 2), View("occlude", 2, 0, 1), View("blank"), View("lowres", 4)],
    ids=["cell", "shuffle", "occlude", "blank", "lowres"],
)
def test_views_in_space_are_cut_from_every_frame(view):
    frames = np.random.default_rng(0).integers(0, 256, (4, 31, 41, 3), dtype=np.uint8)
    part = shown(Clip(frames, Fraction(1)), view, min_cell=28, seed="s")
    for frame, source in zip(part.frames, frames, strict=True):
        np.testing.assert_array_equal(frame, np.asarray(cut(Image.fromarray(source), view, min_cell=28, seed="s")))
    assert (part.rate, len(part)) == (1, 4)


@pytest.mark.parametrize("kind", ["segment", "tshuffle", "frames"])
def test_too_few_frames(kind):
    with pytest.raises(CannotWrapError, match=r"^the clip has 3 frames: too few for 4$"):
        shown(clip_of(3), View(kind, 4))
    assert len(shown(clip_of(4), View(kind, 4))) == (1 if kind == "segment" else 4)


@given(
    total=st.integers(1, 5000),
    count=st.integers(1, 64) | st.none(),
    fps=st.floats(0.01, 60) | st.none(),
    rate=st.sampled_from([1, 23.976, 25, 60]),
)
def test_indices_are_those_of_the_host(total, count, fps, rate):
    """The host's own rule (load_video_stream), spelled out."""
    most = min(total, count or total)
    if fps is not None:
        most = max(1, min(most, int(total / rate * fps + 1e-6)))
    indices = Sampling(count, fps).indices(total, total / rate)
    assert indices.tolist() == np.linspace(0, total - 1, most, dtype=int).tolist()
    assert len(set(indices.tolist())) == len(indices)
