"""How many frames of a video an adapter takes, as its attributes say, and where these contradict each other its code."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import sys
import textwrap
from collections.abc import Iterator
from typing import Any, Literal, TypeGuard

from lmms_patch.harness.video.clip import Sampling

_COUNTS = (
    "max_num_frames",
    "max_frames_num",
    "nframes",
    "num_frames",
    "max_frames",
    "num_video_frames",
    "video_max_frames",
    "num_segments",
)
_RATES = ("fps", "video_fps", "target_fps")
"""The names that adapters of lmms-eval give to the number of frames that they take, and to the frames per second that they take at most."""

_QWEN = {"process_vision_info", "fetch_video", "to_openai_messages", "to_qwen3_vl_openai_messages"}
"""Functions of ``qwen_vl_utils`` that read videos, and methods of lmms-eval's messages that call them."""


def sampling_of(model: Any, frames: int | None = None) -> tuple[Sampling, str]:
    """Return which frames of a video an adapter takes, and what tells us so.

    Args:
        model: the host's model.
        frames: what the task's option ``frames`` says; it goes before everything else.

    Returns:
        The frames; and a text such as ``max_num_frames=32``, or "" where nothing says so and 32 frames are assumed.
    """
    if frames is not None:
        return Sampling(frames), f"the option frames: {frames}"
    counts = {name: value for name in _COUNTS if _is_count(value := getattr(model, name, None))}
    rates = {name: value for name in _RATES if _is_rate(value := getattr(model, name, None))}
    if not counts and not rates:
        return Sampling(), ""
    told = ", ".join(f"{name}={value}" for name, value in [*list(counts.items())[:1], *list(rates.items())[:1]])
    count, rate = next(iter(counts.values()), None), next((float(rate) for rate in rates.values()), None)
    reader: Literal["", "qwen_vl_utils"] = "qwen_vl_utils" if reads_as_qwen(type(model)) else ""
    if counts and rates and (limit := limit_of_rate(type(model))) is not None:
        most = getattr(model, limit, None) if limit else None
        # at a rate, this limit holds in place of the number of frames
        count = most if _is_count(most) else _most_of_qwen()
        told = f"{next(iter(rates))}={rate:g}, {f'{limit}={most}' if _is_count(most) else f'in place of {next(iter(counts))}'}"
    return Sampling(count, rate, reader), told


def _most_of_qwen() -> int:
    """Return how many frames ``qwen_vl_utils`` takes at most where a rate is given."""
    # nothing is imported for this; 768 is the package's default
    return int(getattr(sys.modules.get("qwen_vl_utils.vision_process"), "FPS_MAX_FRAMES", 768))


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_rate(value: object) -> TypeGuard[float]:
    # no clip has more frames a second; NaN and infinity are no rates either
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1000


def limit_of_rate(adapter: type) -> str | None:
    """Return the attribute that limits how many frames an adapter takes at a rate.

    "" where nothing limits them; None where the adapter does not choose between a rate and a number, in code such as
    ``if self.fps is not None: kwargs["fps"] = self.fps``, ``else: kwargs["nframes"] = self.nframes``. It may give
    ``max_frames`` beside these.
    """
    for method in _methods(adapter):
        branches = [one for one in ast.walk(method) if isinstance(one, ast.If)]
        if any("fps" in _keys(branch.body) and "nframes" in _keys(branch.orelse) for branch in branches):
            given = (value for key, value in _entries(method.body) if key == "max_frames")
            return next((value.attr for value in given if isinstance(value, ast.Attribute)), "")
    return None


def reads_as_qwen(adapter: type) -> bool:
    """Return whether an adapter lets ``qwen_vl_utils`` choose the frames of a video, given a number or a rate."""
    methods = _methods(adapter)
    called = {
        node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        for method in methods
        for node in ast.walk(method)
        if isinstance(node, ast.Call)
    }
    return bool(called & _QWEN) and any("nframes" in _keys(method.body) for method in methods)


@functools.lru_cache(maxsize=64)
def _methods(adapter: type) -> list[ast.Module]:
    """Return the source of an adapter's methods, inherited ones included; nothing is run, and no weights are loaded."""
    found = []
    for _, method in inspect.getmembers(adapter, inspect.isfunction):
        with contextlib.suppress(OSError, SyntaxError):
            found.append(ast.parse(textwrap.dedent(inspect.getsource(method))))
    return found


def _keys(statements: list[ast.stmt]) -> set[str]:
    """Return the keys under which statements put something into a mapping."""
    return {key for key, _ in _entries(statements)}


def _entries(statements: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Yield what statements put into mappings: the key, and the expression."""
    for one in (one for statement in statements for one in ast.walk(statement)):
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(one, ast.Dict):
            pairs = list(zip(one.keys, one.values, strict=True))
        elif isinstance(one, ast.Assign):
            pairs = [(target.slice, one.value) for target in one.targets if isinstance(target, ast.Subscript)]
        yield from (
            (key.value, value) for key, value in pairs if isinstance(key, ast.Constant) and isinstance(key.value, str)
        )
