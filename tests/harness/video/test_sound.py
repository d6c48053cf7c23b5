"""The sound of a clip: a tone whose pitch says which second of the source it is."""

from fractions import Fraction

import av
import numpy as np
import pytest

from lmms_patch.ask.views import View
from lmms_patch.harness.video import writing
from lmms_patch.harness.video.clip import Sampling, shown
from lmms_patch.harness.video.reading import read
from tests.making.videos import LOWEST, RATE, STEP, make, numbered, pitch, tone

SECONDS = 12


@pytest.fixture(scope="module", params=[("v.mp4", "aac", 1), ("v.mkv", "libopus", 2), ("v.mkv", "pcm_s16le", 2)], ids=["aac", "opus", "pcm"])
def clip(request, tmp_path_factory):
    file, sound, channels = request.param
    return read(make(tmp_path_factory.mktemp("s") / file, 10 * SECONDS, rate=10, sound=sound, channels=channels), Sampling(24))


def heard(view_of_clip, tmp_path):
    """Return the sound of a clip after writing and reading, shape (channels, samples), and its rate."""
    path = tmp_path / "v.mp4"
    assert writing.write(view_of_clip, path) is None
    blocks = []
    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        for frame in container.decode(stream):
            blocks.append(frame.to_ndarray()[:, max(0, -frame.pts) :])
        return np.concatenate(blocks, axis=1), stream.rate


def seconds_of(sound, rate):
    """Return which second of the source is heard in each second, by the pitch in the middle of it."""
    found = []
    for second in range(round(sound.shape[1] / rate)):
        middle = sound[0, int((second + 0.2) * rate) : int((second + 0.8) * rate)]
        found.append(round((pitch(middle, rate) - LOWEST) / STEP, 1))
    return found


def test_the_full_clip_has_all_of_it(clip, tmp_path):
    assert clip.sound
    sound, rate = heard(clip, tmp_path)
    assert seconds_of(sound, rate) == list(range(SECONDS))
    assert sound.shape[1] / rate == pytest.approx(SECONDS, abs=0.05)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_segment_has_its_own(clip, tmp_path, k):
    for i in range(k):
        part = shown(clip, View("segment", k, 0, i))
        sound, rate = heard(part, tmp_path)
        assert seconds_of(sound, rate) == list(range(SECONDS * i // k, SECONDS * (i + 1) // k))
        assert sound.shape[1] / rate == pytest.approx(SECONDS / k, abs=0.05)
        with av.open(str(tmp_path / "v.mp4")) as container:
            assert container.streams.video[0].average_rate == 2


def test_borders_are_exact(clip, tmp_path):
    """Segment 2 of 3 is seconds 4 to 8: no pitch of second 3 or 8 within, right up to its ends."""
    sound, rate = heard(shown(clip, View("segment", 3, 0, 1)), tmp_path)
    edge = int(0.12 * rate)
    assert pitch(sound[0, :edge], rate) == pytest.approx(LOWEST + 4 * STEP, abs=12)
    assert pitch(sound[0, 4 * rate - edge : 4 * rate], rate) == pytest.approx(LOWEST + 7 * STEP, abs=12)


def test_shuffled_as_the_frames_are(clip, tmp_path):
    mixed = shown(clip, View("tshuffle", 4), seed="x")
    expected = [int(begin) for begin in mixed.times[::2] + 0.3]  # 2 frames per second; frame 2 s is at second s or just before
    sound, rate = heard(mixed, tmp_path)
    assert seconds_of(sound, rate) == expected
    assert expected != list(range(SECONDS))
    assert sorted(expected) == list(range(SECONDS))


def test_reversed(clip, tmp_path):
    sound, rate = heard(shown(clip, View("treverse")), tmp_path)
    assert seconds_of(sound, rate) == list(range(SECONDS))[::-1]
    samples = np.concatenate(list(writing._heard(shown(clip, View("treverse"))).pieces), axis=1)
    np.testing.assert_array_equal(samples[:, ::-1], np.concatenate(list(writing._heard(clip).pieces), axis=1))


@pytest.mark.parametrize("view", [View("frame"), View("frames", 4)], ids=["frame", "frames"])
def test_stills_are_silent(clip, tmp_path, view):
    writing.write(shown(clip, view), tmp_path / "v.mp4")
    with av.open(str(tmp_path / "v.mp4")) as container:
        assert not container.streams.audio


def test_pieces_of_a_long_sound_join_without_a_seam(clip, monkeypatch):
    whole = np.concatenate(list(writing._heard(clip).pieces), axis=1)
    monkeypatch.setattr(writing, "_PIECE", 1.7)
    pieces = list(writing._heard(clip).pieces)
    assert len(pieces) == 8
    np.testing.assert_allclose(np.concatenate(pieces, axis=1)[:, : whole.shape[1]], whole[:, : sum(p.shape[1] for p in pieces)], atol=0.01)


def test_a_sound_that_begins_late_stays_late(tmp_path):
    """Half the video is silent: the tone of second 0 is heard from second 2 on."""
    with av.open(str(tmp_path / "v.mkv"), "w") as out:
        video, audio = out.add_stream("libx264", rate=10), out.add_stream("pcm_s16le", rate=RATE, layout="mono")
        video.width, video.height, video.pix_fmt = 160, 120, "yuv420p"
        for i in range(40):
            frame = av.VideoFrame.from_ndarray(numbered(i), format="rgb24")
            frame.pts, frame.time_base = i, Fraction(1, 10)
            out.mux(video.encode(frame))
        out.mux(video.encode())
        samples = av.AudioFrame.from_ndarray(tone(2), format="fltp", layout="mono")
        samples.sample_rate, samples.pts, samples.time_base = RATE, 2 * RATE, Fraction(1, RATE)
        out.mux(audio.encode(samples))
        out.mux(audio.encode())
    full = read(tmp_path / "v.mkv", Sampling(8))
    sound, rate = heard(full, tmp_path)
    assert np.abs(sound[0, : int(1.95 * rate)]).max() < 0.01
    assert pitch(sound[0, int(2.2 * rate) : int(2.8 * rate)], rate) == pytest.approx(LOWEST, abs=3)
    sound, rate = heard(shown(full, View("segment", 2, 0, 1)), tmp_path)
    assert pitch(sound[0, int(0.2 * rate) : int(0.8 * rate)], rate) == pytest.approx(LOWEST, abs=3)


def test_a_damaged_sound_is_left_out_with_a_word(clip, tmp_path, monkeypatch):
    def broken(*_):
        raise av.error.InvalidDataError(1, "Invalid data found")

    monkeypatch.setattr(writing, "_samples", broken)
    encoded = writing.encode(clip)
    assert encoded.lost == "the sound cannot be decoded: Invalid data found"
    (tmp_path / "v.mp4").write_bytes(encoded.data)
    np.testing.assert_array_equal(read(tmp_path / "v.mp4", Sampling(None)).frames, clip.frames)


def test_no_sound_is_not_lost(tmp_path):
    full = read(make(tmp_path / "v.mp4", 10))
    assert not full.sound
    assert writing.encode(full).lost is None
