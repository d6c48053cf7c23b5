"""The sound of a clip: a tone whose pitch says which second of the source it is."""

import dataclasses
from fractions import Fraction

import av
import numpy as np
import pytest

from lmms_patch.ask.views import View
from lmms_patch.harness.video import sound as sound_module
from lmms_patch.harness.video import writing
from lmms_patch.harness.video.clip import Sampling, shown
from lmms_patch.harness.video.reading import read
from lmms_patch.harness.video.sound import Sound
from tests.harness.video.written import write
from tests.making.videos import LOWEST, RATE, STEP, make, numbered, pitch, tone

SECONDS = 12


@pytest.fixture(
    scope="module",
    params=[("v.mp4", "aac", 1), ("v.mkv", "libopus", 2), ("v.mkv", "pcm_s16le", 2)],
    ids=["aac", "opus", "pcm"],
)
def clip(request, tmp_path_factory):
    file, sound, channels = request.param
    return read(
        make(tmp_path_factory.mktemp("s") / file, 10 * SECONDS, rate=10, sound=sound, channels=channels), Sampling(24)
    )


def heard(view_of_clip, tmp_path):
    """Return the sound of a clip after writing and reading, shape (channels, samples), and its rate."""
    path = tmp_path / "v.mp4"
    assert write(view_of_clip, path) is None
    blocks = []
    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        for frame in container.decode(stream):
            packed = frame.to_ndarray()  # (1, samples x channels)
            blocks.append(packed.reshape(-1, stream.channels).T / 32768)
        return np.concatenate(blocks, axis=1), stream.rate


def seconds_of(sound, rate):
    """Return which second of the source is heard in each second, by the pitch in the middle of it."""
    found = []
    for second in range(round(sound.shape[1] / rate)):
        middle = sound[0, int((second + 0.2) * rate) : int((second + 0.8) * rate)]
        found.append(round((pitch(middle, rate) - LOWEST) / STEP, 1))
    return found


def test_the_full_clip_has_all_of_it(clip, tmp_path):
    assert clip.sound is not None
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
    expected = [
        int(begin) for begin in mixed.times[::2] + 0.3
    ]  # 2 frames per second; frame 2 s is at second s or just before
    sound, rate = heard(mixed, tmp_path)
    assert seconds_of(sound, rate) == expected
    assert expected != list(range(SECONDS))
    assert sorted(expected) == list(range(SECONDS))


def test_reversed(clip, tmp_path):
    sound, rate = heard(shown(clip, View("treverse")), tmp_path)
    assert seconds_of(sound, rate) == list(range(SECONDS))[::-1]
    forward = np.concatenate(list(clip.sound.between(0, SECONDS)))
    np.testing.assert_array_equal(np.concatenate(list(clip.sound.between(SECONDS, 0))), forward[::-1])


def test_stretches_that_touch_share_nothing(clip):
    """Borders between samples, and more of them than blocks."""
    borders = np.sort(np.random.default_rng(2).uniform(0, SECONDS, 30))
    parts = [
        piece
        for low, high in zip([0, *borders], [*borders, SECONDS], strict=True)
        for piece in clip.sound.between(low, high)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), np.concatenate(list(clip.sound.between(0, SECONDS))))


@pytest.mark.parametrize("view", [View("frame"), View("frames", 4)], ids=["frame", "frames"])
def test_stills_are_silent(clip, tmp_path, view):
    write(shown(clip, view), tmp_path / "v.mp4")
    with av.open(str(tmp_path / "v.mp4")) as container:
        assert not container.streams.audio


def test_every_sample_comes_back(tmp_path):
    full = read(make(tmp_path / "source.mkv", 30, rate=10, sound="pcm_s16le"), Sampling(6))
    expected = np.round(tone(3) * 32768)
    sound, _ = heard(full, tmp_path)
    np.testing.assert_allclose(sound * 32768, expected, atol=1)
    for i in range(3):
        sound, _ = heard(shown(full, View("segment", 3, 0, i)), tmp_path)
        np.testing.assert_allclose(sound * 32768, expected[:, i * RATE : (i + 1) * RATE], atol=1)


def test_times_that_are_rounded_leave_no_gaps(tmp_path):
    """AAC holds 1,024 samples in a packet, 23.2 ms; Matroska rounds each time to 1 ms.

    A sine without a break has no jump between two samples.
    """
    full = read(make(tmp_path / "source.mkv", 10, rate=10, sound="aac"), Sampling(4))  # 1 s, 400 Hz
    (sound,) = full.sound.between(0, 1)
    inside = sound[3000:-3000].astype(int)
    steepest = 0.5 * 32768 * 2 * np.pi * LOWEST / RATE
    assert np.abs(np.diff(inside[:, 0])).max() < 1.1 * steepest


def test_blocks_of_a_long_sound_join_without_a_seam(clip, monkeypatch):
    """AAC fills noise in at random, hence a tolerance of 1 % of full scale.

    Matroska rounds times to 1 ms: blocks may be 1 ms (48 samples) apart.
    """
    whole = np.concatenate(list(clip.sound.between(0, SECONDS)))
    monkeypatch.setattr(sound_module, "BLOCK", 2)
    again = Sound(clip.sound._source, clip.sound._start, clip.sound.rate, whole.shape[1])
    pieces = list(again.between(0.5, SECONDS - 0.5))
    assert len(pieces) == 6
    half = clip.sound.rate // 2
    joined, expected = np.concatenate(pieces).astype(int), whole[half : len(whole) - half].astype(int)
    assert len(joined) == len(expected)
    done = 0
    for piece in pieces:
        inside = slice(done + 100, done + len(piece) - 100)
        lags = [
            np.abs(joined[inside] - expected[inside.start + lag : inside.stop + lag]).max() for lag in range(-50, 51)
        ]
        assert min(lags) <= 330
        done += len(piece)
    backwards = list(again.between(SECONDS - 0.5, 0.5))
    np.testing.assert_allclose(np.concatenate(backwards)[::-1].astype(int), joined, atol=330)


def test_views_of_a_short_clip_decode_its_sound_once(clip, monkeypatch):
    calls = []
    opened = sound_module.opened
    monkeypatch.setattr(sound_module, "opened", lambda source: calls.append(source) or opened(source))
    fresh = dataclasses.replace(clip, sound=Sound(clip.sound._source, 0, clip.sound.rate, 1))
    for view in (View("full"), *(View("segment", 4, 0, i) for i in range(4))):
        writing.encode(shown(fresh, view))
    assert len(calls) == 1


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

    monkeypatch.setattr(Sound, "_decode_from", broken)
    clip = dataclasses.replace(clip, sound=Sound(clip.sound._source, 0, clip.sound.rate, 1))
    encoded = writing.encode(clip)
    assert encoded.lost == "the sound cannot be decoded: Invalid data found"
    (tmp_path / "v.mp4").write_bytes(encoded.data)
    np.testing.assert_array_equal(read(tmp_path / "v.mp4", Sampling(None)).frames, clip.frames)


def test_no_sound_is_not_lost(tmp_path):
    full = read(make(tmp_path / "v.mp4", 10))
    assert full.sound is None
    assert writing.encode(full).lost is None
