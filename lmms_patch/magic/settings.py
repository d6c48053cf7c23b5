"""What a run of the MAGIC tasks is told: environment variables, since the harness's command line has no place for a task's own options. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lmms_patch.errors import OptionError, nearest

PREFILLS = ("auto", "prompt", "assistant")
NAMES = {
    "MAGIC_DATA": "the data: a folder, a .jsonl or .parquet file, or a name on the hub (owner/name)",
    "MAGIC_SPLIT": "the split, of data on the hub; default: test",
    "MAGIC_SEED": "seed of the order in which boxes are numbered; default: 0",
    "MAGIC_EXAMPLES": "in-context examples: another file, folder or hub name of the same form; default: none",
    "MAGIC_SHOTS": "how many of them; default: all, at most 8",
    "MAGIC_EXAMPLE_IMAGES": "1: also show their images, before the question's own; only for models that take several images; default: 0",
    "MAGIC_PREFILL": f"where Self-Heal puts the steps to go on from: {', '.join(PREFILLS)}; default: auto",
    "MAGIC_JUDGE": "the judge model; default: no judge",
    "MAGIC_JUDGE_CACHE": "folder of the verdicts that are kept, or off",
    "MAGIC_JUDGE_TIMEOUT": "seconds per attempt",
    "MAGIC_JUDGE_RETRIES": "how often a question is sent again",
    "MAGIC_JUDGE_TOKENS": "most tokens of a reply",
}
"""Every variable that the MAGIC tasks read (those of the judge: ``magic.judge_settings``)."""

MOST_SHOTS = 8


@dataclass(frozen=True)
class MagicSettings:
    """What the tasks are told.

    Attributes:
        data: where the data lie; "" where it is not said.
        split: of hub data.
        seed: of the order of boxes.
        examples: where in-context examples lie; "": none.
        shots: how many of them are shown, at least 1.
        example_images: whether their images are shown too. Off by default: many adapters send the first image alone, which would be an example's.
        prefill: one of ``PREFILLS``: ``prompt`` puts the injected steps at the end of the prompt (paper, figure 14), ``assistant`` sends them as
            an unfinished turn of the model's own, ``auto`` does the latter for adapters that are known to continue it.
    """

    data: str = ""
    split: str = "test"
    seed: int = 0
    examples: str = ""
    shots: int = MOST_SHOTS
    example_images: bool = False
    prefill: str = "auto"

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> MagicSettings:
        """The settings that environment variables give.

        Raises:
            OptionError: a value that is not allowed, or a variable of a misspelt name.
        """
        known = [name.removeprefix("MAGIC_") for name in NAMES]
        for name in env:
            if name.startswith("MAGIC_") and name not in NAMES and (close := nearest(name.removeprefix("MAGIC_"), known)):
                raise OptionError(f"the environment variable {name} is not known; did you mean MAGIC_{close[0]}? allowed: {', '.join(NAMES)}")
        prefill = env.get("MAGIC_PREFILL") or "auto"
        if prefill not in PREFILLS:
            raise OptionError(f"MAGIC_PREFILL is {prefill!r}; allowed: {', '.join(PREFILLS)}")
        return cls(
            env.get("MAGIC_DATA", "").strip(),
            env.get("MAGIC_SPLIT", "").strip() or "test",
            _whole(env, "MAGIC_SEED", 0, 0),
            env.get("MAGIC_EXAMPLES", "").strip(),
            _whole(env, "MAGIC_SHOTS", MOST_SHOTS, 1),
            _flag(env, "MAGIC_EXAMPLE_IMAGES"),
            prefill,
        )


def _whole(env: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = env.get(name, "").strip()
    if not text:
        return default
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < least:
        raise OptionError(f"{name} is {text!r}; it must be a whole number of at least {least}, such as {name}={max(least, default)}")
    return int(text)


def _flag(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name, "").strip()
    if text not in ("", "0", "1"):
        raise OptionError(f"{name} is {text!r}; allowed: 0, 1")
    return text == "1"
