"""Adapters that hear: what of a clip's sound reaches them with the full clip and with its segments, and what a run says where it is lost.

Each adapter of lmms-eval that hears a video takes the sound from the path that it is handed (ola, qwen2_5_omni,
qwen3_omni, omnivinci, uni_moe_2_omni, gemini, aero_realtime_vllm).
"""

import ast
import importlib
import sys
from pathlib import Path

import av
import numpy as np
import pytest
from lmms_eval.tasks import TaskManager
from loguru import logger

from lmms_patch.harness.names.adapters import decodes_sound
from lmms_patch.harness.names.effects import file_of
from lmms_patch.harness.video.sound import Sound
from lmms_patch.runs.details import FramesRead
from lmms_patch.runs.typed import fault
from tests.harness import hosted, toys
from tests.harness.adapters import per_request
from tests.harness.cinema import Watching, write
from tests.making.videos import LOWEST, RATE, STEP, make, pitch

SECONDS = 4
HOST = "lmms_eval.models.chat.aero_realtime_vllm"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("heard")
    for name, sound, channels in (("mono", "aac", 1), ("stereo", "aac", 2), ("mute", "", 1)):
        video = make(where / f"{name}.mp4", 10 * SECONDS, (64, 48), sound=sound, channels=channels)
        write(where, name, [video], metadata={"version": 0.0, "lmms_patch": {"null": 0}})
    strange = make(where / "strange.mkv", 10 * SECONDS, (64, 48), sound="aac")
    assert strange.read_bytes().count(b"A_AAC") == 1
    strange.write_bytes(strange.read_bytes().replace(b"A_AAC", b"A_QQQ"))
    write(where, "strange", [strange], metadata={"version": 0.0, "lmms_patch": {"null": 0}})
    return where


class Hearing(Watching):
    """Takes the sound from the file that it is handed, as FFmpeg gives it: which seconds of the source are heard."""

    def watch(self, medium):
        convert = av.AudioResampler("fltp", "mono", RATE)
        with av.open(medium) as container:
            if not container.streams.audio or container.streams.audio[0].codec_context is None:
                return "silence"
            frames = [one.to_ndarray()[0] for frame in container.decode(audio=0) for one in convert.resample(frame)]
        sound = np.concatenate(frames)
        middles = [sound[int((s + 0.2) * RATE) : int((s + 0.8) * RATE)] for s in range(round(len(sound) / RATE))]
        return " ".join(f"{round((pitch(one) - LOWEST) / STEP)}" for one in middles)


def run(model, folder, task):
    """Run a task; return the answers to the full clip and its segments, what the results file says of the sound, and the warnings about it."""
    lines = []
    sink = logger.add(lambda line: lines.append(line.strip()), level="WARNING", format="{message}")
    try:
        manager = TaskManager("ERROR", include_path=str(folder), include_defaults=False)
        results = toys.simple_evaluate(
            model=model, tasks=[task], task_manager=manager, log_samples=True, bootstrap_iters=0
        )
    finally:
        logger.remove(sink)
    found = dict(results["results"][task]["patch,none"].items()).get("frames_read")
    assert not fault(found, FramesRead)
    answers = [said[0] for said in results["samples"][task][0]["resps"]]
    return (
        answers,
        {name: value for name, value in found.items() if name.startswith("sound")},
        [line for line in lines if "sound" in line],
    )


@pytest.mark.parametrize("name", ["mono", "stereo"])
def test_each_segment_has_its_own_seconds(folder, name):
    answers, said, lines = run(Hearing(per_request), folder, f"{name}_trci2")
    assert answers == ["0 1 2 3", "0 1", "2 3"]
    assert (said, lines) == ({}, [])


def test_a_clip_without_sound_has_lost_none(folder):
    assert run(Hearing(per_request), folder, "mute_trci2") == (["silence"] * 3, {}, [])


def test_a_damaged_sound_is_told_once(folder, monkeypatch):
    """The full clip's own file keeps its sound, so the run must say that its segments are silent."""

    def broken(*_):
        raise av.error.InvalidDataError(1, "Invalid data found")

    monkeypatch.setattr(Sound, "_decode_from", broken)
    answers, said, lines = run(Hearing(per_request), folder, "mono_trci2")
    assert answers == ["0 1 2 3", "silence", "silence"]
    why = "the sound cannot be decoded: Invalid data found"
    assert said == {"sound_lost": why}
    assert lines == [
        f"mono_trci2: segments and other views have lost the sound of a clip ({why}), which the full clip's own file keeps"
    ]


def test_a_sound_of_an_unknown_format_is_told(folder):
    answers, said, lines = run(Hearing(per_request), folder, "strange_trci2")
    assert answers == ["silence"] * 3
    assert said == {"sound_lost": "the sound cannot be decoded: FFmpeg does not know its format"}
    assert len(lines) == 1


# --- an adapter that decodes by itself --------------------------------------------------------------


@pytest.fixture
def realtime(tmp_path, monkeypatch):
    """An adapter with the host's own function that loads the sound of a video, which needs vLLM to import.

    It answers with length and level.
    """
    text = Path(file_of(HOST)).read_text(encoding="utf-8")
    function = next(
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == "_load_audio_or_silence"
    )
    source = [
        "from typing import Optional",
        "import numpy as np",
        "from loguru import logger as eval_logger",
        "from tests.harness.cinema import Watching",
        f"SAMPLE_RATE = {RATE}  # that of the clips, so that nothing is resampled",
        ast.get_source_segment(text, function),
        "class Realtime(Watching):",
        "    def watch(self, medium):",
        "        sound = _load_audio_or_silence(medium, 8, 8.0)",
        "        return f'{round(len(sound) / SAMPLE_RATE)} s, level {(sound.astype(float) ** 2).mean() ** 0.5:.2f}'",
    ]
    (tmp_path / "made_realtime.py").write_text("\n".join(source), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("made_realtime").Realtime
    del sys.modules["made_realtime"]


@pytest.mark.parametrize(("name", "part"), [("mono", "2 s"), ("stereo", "4 s")])
def test_an_adapter_that_takes_whole_numbers_for_fractions(folder, realtime, name, part):
    """A tone of amplitude 0.5 has a level of 0.35.

    Segments reach the model 32,768 times as loud, and two channels in turn last twice as long.
    """
    answers, said, lines = run(realtime(per_request), folder, f"{name}_trci2")
    assert answers[0] == "4 s, level 0.35"
    for answer in answers[1:]:
        length, level = answer.split(", level ")
        assert length == part
        assert float(level) == pytest.approx(0.5 * 32768 / 2**0.5, rel=0.03)
    assert list(said) == ["sound_decoder"]
    assert said["sound_decoder"].startswith("made_realtime.py:")
    assert len(lines) == 1
    assert lines[0].startswith(f"{name}_trci2: the adapter (made_realtime.py:")


def test_without_sound_such_an_adapter_is_not_told_of(folder, realtime):
    assert run(realtime(per_request), folder, "mute_trci2")[1:] == ({}, [])


def test_one_adapter_of_the_host_decodes_sound_by_itself():
    """Every class of lmms-eval's models whose file says ``.audio``: no other asks PyAV for a file's sound."""
    found = {name for name, adapter in hosted.classes(".audio") if decodes_sound(adapter)}
    assert found == {"chat/aero_realtime_vllm"}
