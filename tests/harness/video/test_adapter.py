"""Which frames of a video an adapter takes, as its attributes and its code say."""

import ast
import importlib
import sys
from pathlib import Path

import pytest

from lmms_patch.harness.names import adapters
from lmms_patch.harness.names.adapters import file_of, rate_alone
from lmms_patch.harness.video.adapter import sampling_of
from lmms_patch.harness.video.clip import Sampling

CODE = """
class Alone:
    max_num_frames, fps = 16, 2.0

    def ask(self):
        kwargs = {"max_pixels": 5}
        if self.fps is not None:
            kwargs["fps"] = self.fps
        else:
            kwargs["nframes"] = self.max_num_frames

class Capped(Alone):
    def ask(self):
        kwargs = {"max_frames": self.max_num_frames}
        if self.fps is not None:
            kwargs["fps"] = self.fps
        else:
            kwargs["nframes"] = self.max_num_frames

class Heir(Alone):
    pass

class Mute(Alone):
    fps = None

class Apart:
    max_num_frames, fps = 16, 2.0

    def ask(self):
        kwargs = {"fps": self.fps, "max_frames": self.max_num_frames}
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    (tmp_path / "made_rates.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    adapters.file_of.cache_clear()
    yield importlib.import_module("made_rates")
    del sys.modules["made_rates"]
    adapters.file_of.cache_clear()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Alone", Sampling(768, 2.0)),
        ("Heir", Sampling(768, 2.0)),
        ("Capped", Sampling(16, 2.0)),
        ("Mute", Sampling(16)),
        ("Apart", Sampling(16, 2.0)),
    ],
)
def test_a_number_beside_a_rate(made, name, expected):
    """A number of frames limits a rate only where the code gives the reader both."""
    assert sampling_of(getattr(made, name)())[0] == expected
    assert sampling_of(getattr(made, name)(), frames=5)[0] == Sampling(5)


def test_which_adapters_of_the_host_give_a_rate_alone():
    """Each of those named was read by a person; ``vllm``, ``sglang`` and ``qwen3_vl`` give ``max_frames`` beside the rate."""
    where = Path(file_of("lmms_eval.models.chat.qwen2_5_vl")).parents[1]
    found = set()
    for file in where.glob("*/*.py"):
        text = file.read_text(encoding="utf-8")
        for node in ast.parse(text).body if "nframes" in text or "qwen2_5_vl import" in text else ():
            if isinstance(node, ast.ClassDef) and rate_alone(f"lmms_eval.models.{file.parent.name}.{file.stem}.{node.name}"):
                found.add(f"{file.parent.name}/{file.stem}")
    assert found == {"chat/qwen2_5_vl", "chat/thyme"}
