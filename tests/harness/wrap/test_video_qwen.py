"""lmms-eval's own adapters for Qwen2.5-VL, with the embedded weights, on clips of ours: what their reader and their model are given, by pixels."""

import importlib
import importlib.util
import shutil

import av
import numpy as np
import pytest
from lmms_eval.models.model_utils.load_video import load_video_stream

from lmms_patch.harness.video import cache
from lmms_patch.resources import folder
from tests.harness import toys
from tests.harness.cinema import write
from tests.making.videos import make, numbers_of

if importlib.util.find_spec("decord") is None:
    pytest.skip(
        "decord is not installed (it has wheels for Linux on x86-64 alone), and lmms-eval's adapter qwen2_5_vl imports it",
        allow_module_level=True,
    )
vision = pytest.importorskip(
    "qwen_vl_utils.vision_process", reason="qwen-vl-utils is not installed, and lmms-eval's adapter qwen2_5_vl takes it"
)

SIZE = (112, 84)
"""Multiples of the 28 pixels of a merged patch: frames of this size are not scaled."""
VIDEOS = [
    (120, 10, "libx264"),
    (40, 4, "libx264rgb"),
    (33, 3, "libx264rgb"),
    (11, 2, "libx264rgb"),
    (4, 1, "libx264rgb"),
]
"""Frames, frames per second and encoder of each doc's video. Its four segments last 3 s, 2.5 s, 2.75 s, 1 to 1.5 s and 1 s."""
MOST, K = 32, 4
TEMPLATE = "{%- if part['type'] == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>"
VIDEO = "{%- elif part['type'] == 'video' -%}<|vision_start|><|video_pad|><|vision_end|>"


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """The embedded model, whose template of messages shows videos too."""
    where = tmp_path_factory.mktemp("qwen") / "model"
    shutil.copytree(folder("tasks") / "mosaic" / "model", where)
    template = (where / "chat_template.jinja").read_text(encoding="utf-8")
    assert TEMPLATE in template
    (where / "chat_template.jinja").write_text(template.replace(TEMPLATE, TEMPLATE + VIDEO), encoding="utf-8")
    return str(where)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    where = tmp_path_factory.mktemp("cinema")
    write(
        where,
        "toy",
        [make(where / f"{i}.mp4", frames, SIZE, rate, codec) for i, (frames, rate, codec) in enumerate(VIDEOS)],
    )
    return where


def given(weights, tasks, monkeypatch, protocol, names, reader="decord", **options):
    """Run lmms-eval's adapter. Return for each video that it opens, in order: its path, which view of which doc it is (None: the doc's own file), the
    frames that the reader gave, and those that the processor of the model was handed; and what the run found."""
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")
    monkeypatch.setattr(vision, "FORCE_QWENVL_VIDEO_READER", reader)
    vision.get_video_reader_backend.cache_clear()
    model = importlib.import_module(f"lmms_eval.models.{protocol}.qwen2_5_vl").Qwen2_5_VL(
        pretrained=weights,
        device="cpu",
        device_map="cpu",
        min_pixels=784,
        max_pixels=200704,
        max_num_frames=MOST,
        **options,
    )
    views, opened, handed = {}, [], []
    write_view, read_video, process = cache.written, vision.VIDEO_READER_BACKENDS[reader], model.processor

    def writing(owner, key, clip, view, **rest):
        path = write_view(owner, key, clip, view, **rest)
        views[path] = (key[0], view)
        return path

    def reading(asked):
        found = read_video(asked)
        opened.append((asked["video"], found[0].permute(0, 2, 3, 1).numpy()))
        return found

    class Processor:
        def __getattr__(self, name):
            return getattr(process, name)

        def __call__(self, **inputs):
            handed.extend(video.permute(0, 2, 3, 1).numpy() for video in inputs["videos"])
            return process(**inputs)

    monkeypatch.setattr("lmms_patch.harness.video.cache.written", writing)
    monkeypatch.setitem(vision.VIDEO_READER_BACKENDS, reader, reading)
    model.processor = Processor()
    results = toys.run(model, names, tasks)
    vision.get_video_reader_backend.cache_clear()
    assert len(opened) == len(handed)
    return [(path, views.get(path), read, shown) for (path, read), shown in zip(opened, handed, strict=True)], results


def clip_of(video, most=MOST, protocol="simple"):
    """Return at most so many uniform frames of a video, from the file alone, by lmms-eval's own loader.

    Of the chat adapter, an even number, rounded.
    """
    with av.open(str(video)) as container:
        if protocol == "simple":
            return np.stack([frame.to_ndarray(format="rgb24") for frame in load_video_stream(container, most)])
        frames = np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])
        return frames[np.rint(np.linspace(0, len(frames) - 1, min(most, len(frames)) // 2 * 2)).astype(int)]


def taken(count, seconds, protocol):
    """Return which of ``count`` frames the adapter takes, as it and qwen-vl-utils say.

    An even number, evenly spaced. The chat adapter asks for as many as it finds, up to ``max_num_frames``; the simple
    one for two per second, at least four, and takes ``max_num_frames`` of them.
    """
    wanted = min(count, MOST) if protocol == "chat" else min(max(2 * seconds, 4), count)
    places = np.rint(np.linspace(0, count - 1, int(wanted + 1e-9) // 2 * 2)).astype(int)
    return places[np.linspace(0, len(places) - 1, min(MOST, len(places)), dtype=int)]


@pytest.mark.parametrize("protocol", ["simple", "chat"])
def test_the_reader_of_qwen_gives_the_frames_of_each_segment(weights, tasks, monkeypatch, protocol):
    found, results = given(weights, tasks, monkeypatch, protocol, ["toy_trci4"])
    assert all(resps[0] for sample in results["samples"]["toy_trci4"] for resps in sample["resps"]), (
        "the model has answered"
    )
    segments = {(doc, view.col): (read, shown) for _, (doc, view), read, shown in (one for one in found if one[1])}
    assert len(segments) == K * len(VIDEOS)
    for doc, (frames, rate, _) in enumerate(VIDEOS):
        clip, seconds = clip_of(tasks / f"{doc}.mp4", protocol=protocol), frames / rate
        count = len(clip)
        assert count == (min(MOST, frames) if protocol == "simple" else min(MOST, frames) // 2 * 2)
        for i in range(K):
            part = clip[count * i // K : count * (i + 1) // K]
            part = part if len(part) > 1 else np.concatenate([part, part])
            expected = part[taken(len(part), len(part) * seconds / count, protocol)]
            read, shown = segments[doc, i]
            np.testing.assert_array_equal(shown, expected)
            if protocol == "chat":
                np.testing.assert_array_equal(read, expected)
        full = next(shown for path, _, _, shown in found if path == str(tasks / f"{doc}.mp4"))
        assert numbers_of(full) == taken(frames, seconds, protocol).tolist()
        if protocol == "chat":
            np.testing.assert_array_equal(full, clip)
        np.testing.assert_array_equal(full, clip_of(tasks / f"{doc}.mp4", frames)[taken(frames, seconds, protocol)])


def test_a_rate_goes_in_place_of_the_number_of_frames(weights, tasks, monkeypatch):
    """The chat adapter gives its reader ``fps`` alone: of 12 s at 4 frames a second 48 reach the model, though ``max_num_frames`` is 32."""
    found, results = given(weights, tasks, monkeypatch, "chat", ["toy_trci4"], fps=4.0)
    clip = results["configs"]["toy_trci4"]["lmms_patch"]["clip"]
    assert clip == {"count": vision.FPS_MAX_FRAMES, "fps": 4.0, "reader": "qwen_vl_utils"}
    full = next(shown for path, _, _, shown in found if path == str(tasks / "0.mp4"))
    segments = [shown for _, of, _, shown in found if of is not None and of[0] == 0 and of[1].kind == "segment"]
    assert (len(full), [len(one) for one in segments]) == (48, [12] * 4)
    part_of = np.rint(np.linspace(0, 119, 48)).astype(int)
    assert numbers_of(full) == part_of.tolist()
    assert [numbers_of(one) for one in segments] == [part_of[12 * i : 12 * (i + 1)].tolist() for i in range(4)]
