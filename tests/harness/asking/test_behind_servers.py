"""lmms-eval's adapters that ask a server, several requests at a time: what goes over the wire, and the numbers that come of it."""

import base64
import importlib
import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from lmms_patch.harness.asking import probe
from tests.harness import cinema, toys
from tests.harness.failing import OPTIONS, answer_of, by_hand, gold, view_of
from tests.harness.magic.judge_server import JudgeServer, Reply
from tests.making.videos import make, number_of

ADAPTERS = {
    "openai": ("openai", {"num_concurrent": 4}),
    "async_openai": ("async_openai", {"num_cpus": 4}),
    "async_openai, adaptive": ("async_openai", {"num_cpus": 4, "adaptive_concurrency": True}),
    "async_openai, for Qwen3-VL": ("async_openai", {"num_cpus": 4, "is_qwen3_vl": True}),
}
EACH = pytest.mark.parametrize("name", ADAPTERS)


def adapter(name, url, **options):
    module, arguments = ADAPTERS[name]
    loaded = importlib.import_module(f"lmms_eval.models.chat.{module}")
    made = {"openai": "OpenAICompatible", "async_openai": "AsyncOpenAIChat"}[module]
    shared = {"model_version": "scripted", "base_url": url, "api_key": "k", "max_retries": 1, "retry_backoff_s": 0}
    return getattr(loaded, made)(**shared, **arguments, **options)


def run(*arguments):
    """Run tasks in a thread of their own: ``async_openai`` starts an event loop, and a browser test leaves one running in the main thread."""
    with ThreadPoolExecutor(1) as own:
        return own.submit(toys.run, *arguments).result()


def images_in(content):
    """Return the images of a message, in order."""
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    return [Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB") for url in urls]


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")


@EACH
def test_each_view_of_an_image_is_answered_for_itself(name, tmp_path):
    docs, asked = 12, []

    def says(content, number):
        (image,) = images_in(content)
        asked.append(view_of(image))
        return Reply(answer_of(*asked[-1]))

    data = toys.rows(docs, answer=gold, choices=lambda i: list(OPTIONS))
    toys.write_task(
        tmp_path, "toy", data, metadata={"lmms_patch": {"format": "mc", "choices": "choices", "null": 0, "probe": 0}}
    )
    with JudgeServer(says) as server:
        results = run(adapter(name, server.url), ["toy_rci2"], tmp_path)
    fip, mpp = by_hand(range(docs), 2)
    found = toys.metrics(results, "toy_rci2")
    assert (found["exact_match"], found["exact_match_mpp2"]) == pytest.approx((fip, mpp))
    assert len(set(asked)) == len(asked) == docs * 5


def uniform(count, taken):
    """Return the places of so many uniform frames, as Qwen's reader chooses them."""
    return np.rint(np.linspace(0, count - 1, taken)).astype(int)


@EACH
def test_each_segment_of_a_clip_goes_over_the_wire(name, tmp_path, monkeypatch):
    """The adapters ask their reader for a fixed number of frames, which is more than a segment has.

    No frame is sent in place of another.
    """
    monkeypatch.setattr(probe, "verdict", lambda *_: probe.Probe())  # asks some requests twice
    shown = []

    def says(content, number):
        shown.append([number_of(image) for image in images_in(content)])
        return Reply("x")

    frames, k = 200, 4
    cinema.write(tmp_path, "toy", [make(tmp_path / "0.mp4", frames, (112, 84))])
    with JudgeServer(says) as server:
        model = adapter(name, server.url)
        results = run(model, ["toy_trci4"], tmp_path)
    assert [[one] for one in "x" * (k + 1)] == results["samples"]["toy_trci4"][0]["resps"]
    most = model.max_frames_num if name == "openai" else model.nframes
    clip = uniform(frames, most)
    parts = [clip[most * i // k : most * (i + 1) // k] for i in range(k)]
    expected = [uniform(frames, most), *(part[uniform(len(part), len(part) // 2 * 2)] for part in parts)]
    assert sorted(shown) == sorted(one.tolist() for one in expected)


def test_a_video_that_is_too_short_fails_as_in_the_base_task(tmp_path):
    """Our clips are cut to what they have; the video's own file is read as the base task reads it."""
    cinema.write(tmp_path, "toy", [make(tmp_path / "0.mp4", 20, (112, 84))])
    with JudgeServer(lambda content, number: Reply("x")) as server:
        samples = run(adapter("async_openai", server.url), ["toy", "toy_trci4"], tmp_path)["samples"]
    native, full = (str(samples[task][0]["resps"][0][0]) for task in ("toy", "toy_trci4"))
    assert native == full
    assert "REQUEST_FAILED" in native
    assert [resps[0] for resps in samples["toy_trci4"][0]["resps"][1:]] == ["x"] * 4


def test_lmms_eval_still_sends_other_frames(tmp_path):
    """The fault of the host that ``plugin._encode`` is for: where this fails, the host is mended, and that function can go."""
    from lmms_eval.protocol import ChatMessages

    encode = ChatMessages.encode_image
    native, cache = getattr(encode, "__wrapped__", encode), {}
    messages = ChatMessages(messages=[])
    sent = [native(messages, Image.new("RGB", (8, 8), (shade, 0, 0)), cache) for shade in range(64)]
    assert len(set(sent)) < 64
