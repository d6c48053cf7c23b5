"""Readers that refuse a video with fewer frames than they are told to take give a written view whole, and go on to refuse any other."""

from functools import partial

import numpy as np
import pytest

from tests.harness import toys
from tests.harness.adapters import per_request
from tests.harness.cinema import Watching, write
from tests.making.videos import make, numbers_of

pytest.importorskip("decord", reason="lmms-eval's readers take it where torchcodec is missing")


def by_qwen_32(path):
    from qwen_vl_utils import vision_process

    found = vision_process.fetch_video(
        {"type": "video", "video": path, "nframes": 32, "resized_height": 112, "resized_width": 140}
    )
    return found.permute(0, 2, 3, 1).numpy()


def by_internvl_32(path):
    """As lmms-eval's ``internvl_hf`` asks its processor, by which transformers reads a video."""
    from transformers import InternVLVideoProcessor
    from transformers.video_utils import load_video

    choose = partial(InternVLVideoProcessor().sample_frames, num_frames=32)
    return load_video(path, sample_indices_fn=choose, backend="decord")[0]


@pytest.mark.parametrize("read", [by_qwen_32, by_internvl_32])
def test_a_segment_is_read_whole(tmp_path, read):
    class Fixed(Watching):
        def watch(self, medium):
            return " ".join(map(str, numbers_of(read(medium))))

    short, long = (make(tmp_path / f"{frames}.mp4", frames, (140, 112)) for frames in (20, 64))
    with pytest.raises(Exception, match=r"frames|read_video"):
        read(str(short))
    write(tmp_path, "one", [long])
    results = toys.run(Fixed(per_request, frames=32), ["one_trci4"], tmp_path)
    full, *segments = [list(map(int, resps[0].split())) for resps in results["samples"]["one_trci4"][0]["resps"]]
    assert len(full) == 32
    clip = np.linspace(0, 63, 32, dtype=int)
    assert segments == [clip[8 * i : 8 * (i + 1)].tolist() for i in range(4)]
    with pytest.raises(Exception, match=r"frames|read_video"):
        read(str(short))
