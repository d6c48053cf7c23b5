"""Settings of a run of the MAGIC tasks: environment variables, since the harness's command line has no place for a task's own options. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from lmms_patch.errors import OptionError, must, nearest
from lmms_patch.magic.score.judge_settings import FromEnvironment, JudgeSettings

MOST_SHOTS = 8
LARGEST = 10**9 - 1
_Digits = BeforeValidator(lambda text: text if str(text).isdecimal() else None)
"""Refuses what pydantic reads as a whole number too: 1_0, +7 and 7.0."""


class MagicSettings(FromEnvironment):
    """What the tasks are told."""

    data: str = Field(default="", alias="MAGIC_DATA")
    """The data: a folder, a .jsonl or .parquet file, or a name on the hub (owner/name); "": not said."""
    split: str = Field(default="test", alias="MAGIC_SPLIT")
    """The split, of data on the hub."""
    seed: Annotated[int, Field(ge=0, le=LARGEST), _Digits, must("a whole number of at least 0, such as 7")] = Field(
        default=0, alias="MAGIC_SEED"
    )
    """Seed of the order in which boxes are numbered."""
    examples: str = Field(default="", alias="MAGIC_EXAMPLES")
    """In-context examples: another file, folder or hub name of the same form; "": none."""
    shots: Annotated[int, Field(ge=1, le=LARGEST), _Digits, must("a whole number of at least 1, such as 2")] = Field(
        default=MOST_SHOTS, alias="MAGIC_SHOTS"
    )
    """How many of the examples are shown."""
    example_images: Annotated[
        bool, Field(strict=True), BeforeValidator(lambda text: {"0": False, "1": True}.get(text, text)), must("0 or 1")
    ] = Field(False, alias="MAGIC_EXAMPLE_IMAGES")
    """Whether the examples' images are shown too, before the question's own.

    Off by default: many adapters send the first image alone, which would be an example's.
    """
    prefill: Literal["auto", "prompt", "assistant"] = Field(default="auto", alias="MAGIC_PREFILL")
    """Where Self-Heal puts the steps to go on from.

    ``prompt`` puts them at the end of the prompt (paper, figure 14), ``assistant`` sends them as an unfinished turn of the model's own,
    ``auto`` does the latter for adapters that are known to continue it.
    """

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> MagicSettings:
        """Return the settings from environment variables.

        Raises:
            OptionError: values that are not allowed, or a variable of a misspelt name.
        """
        known = [name.removeprefix("MAGIC_") for name in NAMES]
        for name in env:
            if (
                name.startswith("MAGIC_")
                and name not in NAMES
                and (close := nearest(name.removeprefix("MAGIC_"), known))
            ):
                raise OptionError(
                    f"the environment variable {name} is not known; did you mean MAGIC_{close[0]}? allowed: {', '.join(NAMES)}"
                )
        return cls.read(env)


NAMES = [*MagicSettings.variables(), *JudgeSettings.variables()]
"""Every variable that the MAGIC tasks read."""
