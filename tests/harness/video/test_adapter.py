"""Which frames of a video an adapter takes, as its attributes and its code say."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.harness.video.adapter import limit_of_rate, reads_as_qwen
from lmms_patch.harness.video.clip import Sampling
from tests.harness import hosted

WORDS = ("nframes", "process_vision_info", "fetch_video")
"""One of these stands in each file that can matter; scanning all files takes seconds."""


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        (lambda adapter: limit_of_rate(adapter) == "", {"chat/qwen2_5_vl", "chat/thyme", "chat/openai"}),
        (lambda adapter: limit_of_rate(adapter) == "max_frames", {"chat/async_openai"}),
        (lambda adapter: limit_of_rate(adapter) == "max_frame_num", {"chat/vllm", "chat/vllm_generate", "chat/sglang"}),
        (
            reads_as_qwen,
            {
                "chat/async_openai",
                "chat/openai",
                "chat/vllm",
                "chat/llava_onevision2",
                "chat/qwen2_5_vl",
                "chat/thyme",
                "chat/qwen3_vl",
                "chat/llava_onevision1_5",
                "chat/vllm_generate",
                "simple/qwen3_vl",
            },
        ),
    ],
)
def test_which_adapters_of_the_host_leave_frames_to_qwens_reader(says, expected):
    """Each of those named was read by a person; ``qwen3_vl`` gives a rate and ``max_frames``, and no number."""
    found = {name for name, adapter in hosted.classes(*WORDS) if says(adapter)}
    assert found == expected


@given(
    total=st.integers(2, 3000),
    seconds=st.integers(1, 200),
    rate=st.sampled_from([None, 0.5, 1.0, 2.0, 4.0]),
    most=st.integers(1, 60),
)
def test_frames_are_those_of_qwens_reader(total, seconds, rate, most):
    """Against the package's own function: a rate alone, and a number that the adapter has made even and no more than there are."""
    vision = pytest.importorskip("qwen_vl_utils.vision_process", reason="qwen-vl-utils is not installed")
    if rate is None:
        sampling, asked = Sampling(most, None, "qwen_vl_utils"), {"nframes": max(2, min(most, total) // 2 * 2)}
    else:
        sampling, asked = Sampling(vision.FPS_MAX_FRAMES, rate, "qwen_vl_utils"), {"fps": rate}
    count = vision.smart_nframes(asked, total, total / seconds)
    taken = torch.linspace(0, total - 1, count).round().long().tolist()
    found = sampling.indices(total, seconds).tolist()
    assert found == (taken if min(total, most if rate is None else 768) > 1 else [0])
