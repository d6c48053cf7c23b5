"""Reading: the frames that a decoder gives, whatever the file's header claims.

Damaged files are refused in one line.
"""

import base64
import struct
import tracemalloc

import av
import cv2
import numpy as np
import pytest

from lmms_patch.harness.video import reading
from lmms_patch.harness.video.clip import Sampling
from lmms_patch.harness.video.reading import read
from lmms_patch.harness.wrap.media import UnreadableError
from tests.making.videos import make, number_of, numbers_of
from tests.sizes import some

EVERY = Sampling(None)


def uniform(total, count):
    return np.linspace(0, total - 1, min(total, count), dtype=int).tolist()


CONTAINERS = {
    "mp4": ("v.mp4", "libx264", {"bf": "3", "g": "15"}),
    "mp4 with the index first": ("v.mp4", "libx264", {"g": "10", "container": {"movflags": "+faststart"}}),
    "mp4 in fragments": ("v.mp4", "libx264", {"g": "10", "container": {"movflags": "frag_keyframe+empty_moov"}}),
    "mp4, open groups": ("v.mp4", "libx264", {"g": "12", "bf": "2", "x264-params": "open-gop=1:scenecut=0"}),
    "hevc": ("v.mp4", "libx265", {"x265-params": "log-level=none:keyint=12:pools=none"}),
    "mov": ("v.mov", "mpeg4", {"bf": "2"}),
    "mkv": ("v.mkv", "libx264", {"bf": "3"}),
    "mkv without length": ("v.mkv", "libx264", {"container": {"live": "1"}}),
    "webm vp8": ("v.webm", "libvpx", {"g": "20"}),
    "webm vp9 with hidden frames": (
        "v.webm",
        "libvpx-vp9",
        {"deadline": "good", "auto-alt-ref": "1", "lag-in-frames": "16", "g": "20"},
    ),
    "avi": ("v.avi", "mpeg4", {}),
    "avi with b-frames": ("v.avi", "mpeg4", {"bf": "2"}),
    "avi mjpeg": ("v.avi", "mjpeg", {}),
    "gif": ("v.gif", "gif", {}),
    "transport stream": ("v.ts", "libx264", {"bf": "2"}),
    "h264 alone, without times": ("v.h264", "libx264", {"bf": "2"}),
}


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """The path of a video of each container, 60 numbered frames at 10 per second."""
    made = {}

    def path_of(name):
        if name not in made:
            file, codec, options = CONTAINERS[name]
            made[name] = make(tmp_path_factory.mktemp("v") / file, 60, codec=codec, **options)
        return made[name]

    return path_of


@pytest.mark.parametrize("name", some(CONTAINERS))
def test_every_container_gives_its_frames(videos, name):
    path = videos(name)
    whole = read(path, EVERY)
    assert numbers_of(whole.frames) == list(range(60))
    assert len(whole) == 60
    if name != "h264 alone, without times":  # its rate is a guess
        assert float(whole.rate) == pytest.approx(10, rel=1e-3)
    for count in (1, 2, 7, 32, 59, 60, 500):
        clip = read(path, Sampling(count))
        assert numbers_of(clip.frames) == uniform(60, count)
        assert clip.size == (160, 120)
        np.testing.assert_array_equal(clip.frames, whole.frames[uniform(60, count)])
        assert clip.duration == pytest.approx(whole.duration, abs=2e-3)


def remuxed(source, path, change):
    """Write the packets of a video again.

    ``change`` may alter each, given its number and its bytes, and returns the bytes.
    """
    with av.open(str(source)) as coded, av.open(str(path), "w") as out:
        track = out.add_stream_from_template(coded.streams.video[0])
        for number, packet in enumerate(packet for packet in coded.demux(video=0) if packet.size):
            new = av.Packet(change(number, packet, bytes(packet)))
            new.pts, new.dts, new.time_base, new.duration, new.is_keyframe = (
                packet.pts, packet.dts, packet.time_base, packet.duration, packet.is_keyframe,
            )  # fmt: skip
            new.stream = track
            out.mux(new)
    return path


def test_hidden_frames_are_not_counted(videos, tmp_path):
    """VP8 stores frames that are never shown. Bit 4 of a frame's first byte says that it is shown (RFC 6386, 9.1)."""
    hidden = {7, 30, 31, 59}
    path = remuxed(
        videos("webm vp8"),
        tmp_path / "v.webm",
        lambda number, _, data: bytes([data[0] & ~(0x10 * (number in hidden))]) + data[1:],
    )
    left = [number for number in range(60) if number not in hidden]
    assert numbers_of(read(path, EVERY).frames) == left
    assert numbers_of(read(path, Sampling(10)).frames) == [left[i] for i in uniform(56, 10)]


def test_frames_per_second_of_the_adapter(videos):
    for fps, count in ((1, 6), (2.5, 15), (0.01, 1), (100, 60)):
        assert numbers_of(read(videos("mp4"), Sampling(None, fps)).frames) == uniform(60, count)
    assert len(read(videos("mp4"), Sampling(4, 2.0))) == 4


def patched(path, changes):
    """Write other bytes into a file: a list of (mark, offset behind the start of the mark, bytes).

    Every place of the mark is changed.
    """
    data = bytearray(path.read_bytes())
    for mark, offset, new in changes:
        at = data.find(mark)
        assert at >= 0, mark
        while at >= 0:
            data[at + offset : at + offset + len(new)] = new
            at = data.find(mark, at + 1)
    path.write_bytes(data)
    return path


def test_an_edit_list_leaves_frames_out(tmp_path):
    """The list says that the film begins 2 seconds into the coded frames, between two key frames."""
    path = make(tmp_path / "v.mp4", 60, bf="0", g="12")
    elst = path.read_bytes().find(b"elst")
    with av.open(str(path)) as container:
        ticks = int(2 / container.streams.video[0].time_base)
    if elst < 0:
        pytest.skip("this FFmpeg writes no edit list where none is needed")
    patched(path, [(b"elst", 12, struct.pack(">Ii", 4000, ticks))])
    capture, seen = cv2.VideoCapture(str(path)), []
    while (frame := capture.read())[0]:
        seen.append(number_of(frame[1]))
    assert seen == list(range(20, 60)), "what OpenCV shows"
    assert numbers_of(read(path, EVERY).frames) == seen
    assert numbers_of(read(path, Sampling(5)).frames) == [20 + i for i in uniform(40, 5)]


# --- jumping to key frames ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "codec", "options"),
    [
        ("v.mp4", "libx264", {"g": "12", "bf": "3"}),
        ("v.mp4", "libx264", {"g": "12", "bf": "3", "x264-params": "open-gop=1:scenecut=0"}),
        ("v.mkv", "libx264", {"g": "12", "bf": "2"}),
        ("v.mp4", "libx265", {"x265-params": "log-level=none:keyint=12:pools=none:open-gop=1:bframes=3"}),
        ("v.webm", "libvpx-vp9", {"g": "12"}),
    ],
    ids=["mp4", "open groups", "mkv", "hevc", "vp9"],
)
def test_jumping_gives_the_same_frames(tmp_path, monkeypatch, file, codec, options):
    path = str(make(tmp_path / file, 240, codec=codec, **options))
    whole = read(path, EVERY)
    assert numbers_of(whole.frames) == list(range(240))
    monkeypatch.setattr(reading, "_in_order", None)  # to call it is an error
    for count in (1, 2, 3, 5, 8):
        clip = read(path, Sampling(count))
        np.testing.assert_array_equal(clip.frames, whole.frames[uniform(240, count)])
        assert clip.duration == whole.duration
    with reading.opened(path) as (container, track):
        packets, _ = reading.packets_of(container, track)
    stream = np.random.default_rng(1)
    for _ in range(20):
        wanted = sorted(stream.choice(240, 4, replace=False).tolist())
        np.testing.assert_array_equal(reading.by_seeking(path, packets, wanted), whole.frames[wanted])


def test_a_long_video_is_not_held(tmp_path):
    path = make(tmp_path / "v.mp4", 300, size=(320, 240))  # 69 MB of pixels
    tracemalloc.start()
    clip = read(path, Sampling(8))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert numbers_of(clip.frames) == uniform(300, 8)
    assert peak < 2 * clip.frames.nbytes  # 3.7 MB


# --- what can hold a video ---------------------------------------------------------------------------


def test_forms_of_a_medium(videos):
    path = videos("mp4")
    data = path.read_bytes()
    expected = read(path)
    url = "data:video/mp4;base64," + base64.b64encode(data).decode()
    for medium in (
        str(path),
        f"file://{path}",
        data,
        bytearray(data),
        {"path": str(path), "bytes": None},
        {"bytes": data},
        {"video": str(path)},
        url,
    ):
        np.testing.assert_array_equal(read(medium).frames, expected.frames)


def refusal(medium):
    """Return the line that refuses a medium."""
    with pytest.raises(UnreadableError) as caught:
        read(medium)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith("the video")
    return line


def test_no_file(tmp_path):
    assert refusal(str(tmp_path / "none.mp4")) == f"the video {tmp_path}/none.mp4 cannot be read: there is no such file"
    assert "there is no such file" in refusal(str(tmp_path))


WHOLE = ("mp4", "mp4, open groups", "mov", "avi mjpeg")
"""Containers whose index or last frame tells that something is missing. Of others, what there is of them is all there is."""


@pytest.mark.parametrize("part", [0.02, 0.3, 0.55, 0.8, 0.97])
@pytest.mark.parametrize("name", WHOLE)
def test_a_file_that_is_cut_short(videos, tmp_path, name, part):
    path = videos(name)
    data = path.read_bytes()
    short = tmp_path / path.name
    short.write_bytes(data[: int(len(data) * part)])
    assert str(short) in refusal(short)


def test_random_damage_is_a_line_or_a_clip(videos, tmp_path):
    """Damage that a decoder cannot see is read as it is; nothing but one line may come out otherwise."""
    stream = np.random.default_rng(5)
    for name in ("mp4", "mkv", "avi", "gif"):
        path = videos(name)
        for _ in range(15):
            data = bytearray(path.read_bytes())
            for at in stream.integers(0, len(data), 5):
                data[at] = stream.integers(256)
            try:
                line = str(read(bytes(data), Sampling(4)).size)
            except UnreadableError as error:
                line = str(error)
            assert "\n" not in line
