"""Which frames of a video an adapter takes, as its attributes and our tables say."""

from pathlib import Path

import lmms_eval
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.harness.video.clip import MOST_AT_A_RATE, READ_BY_QWEN, Sampling, sampling_of

READERS = ("process_vision_info", "fetch_video", "to_openai_messages", "to_qwen3_vl_openai_messages")
"""Functions of ``qwen_vl_utils`` that read videos, and methods of lmms-eval's messages that call them."""


def test_the_tables_name_every_adapter_of_the_host_that_they_must():
    """A new version of the host may add one. Those named here were read by a person: ``chat.qwen3_vl`` is made of the simple
    one, and three give a rate and a number at once."""
    places = sorted((Path(lmms_eval.__file__).parent / "models").glob("[cs][hi]*/*.py"))
    code = {f"{file.parent.name}.{file.stem}": file.read_text(encoding="utf-8") for file in places}
    given = {name for name, text in code.items() if "nframes" in text and any(one in text for one in READERS)}
    assert given | {"chat.qwen3_vl"} == READ_BY_QWEN
    either = {name for name, text in code.items() if '"nframes"' in text and '"fps"' in text}
    assert either - {"chat.llava_onevision1_5", "chat.llava_onevision2", "simple.qwen3_vl"} == set(MOST_AT_A_RATE)


def adapter(module, **attributes):
    """Return an adapter of another package that is made of one of lmms-eval's."""
    base = type("Base", (), {"__module__": f"lmms_eval.models.{module}"})
    return type("Adapter", (base,), attributes)()


@pytest.mark.parametrize(
    ("model", "frames", "told"),
    [
        (adapter("simple.llava"), Sampling(), ""),
        (adapter("simple.llava", max_frames_num=8), Sampling(8), "max_frames_num=8"),
        (adapter("simple.llava", max_frames_num=8, fps=2), Sampling(8, 2.0), "max_frames_num=8, fps=2"),
        (adapter("chat.qwen2_5_vl", max_num_frames=8), Sampling(8, None, "qwen_vl_utils"), "max_num_frames=8"),
        (
            adapter("chat.qwen2_5_vl", max_num_frames=8, fps=1),
            Sampling(768, 1.0, "qwen_vl_utils"),
            "fps=1, in place of max_num_frames",
        ),
        (
            adapter("chat.vllm", nframes=8, fps=1, max_frame_num=16),
            Sampling(16, 1.0, "qwen_vl_utils"),
            "fps=1, max_frame_num=16",
        ),
    ],
)
def test_frames_are_those_that_the_adapter_says(model, frames, told):
    assert sampling_of(model) == (frames, told)
    assert sampling_of(model, 5) == (Sampling(5), "the option frames: 5")


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
