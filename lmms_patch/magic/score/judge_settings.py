"""Settings that come from environment variables, and those of the judge: its model, cache, time-outs and retries. Pure.

The judge's address and key are lmms-eval's own variables (``OPENAI_API_URL``, ``OPENAI_API_KEY``; docs/magic-judge.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from lmms_patch.errors import must, read_as

NO_CACHE = "off"

S = TypeVar("S", bound="FromEnvironment")


class FromEnvironment(BaseModel):
    """Settings whose aliases are environment variables. An empty variable counts as not set."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, use_attribute_docstrings=True)

    @classmethod
    def variables(cls) -> list[str]:
        """Return the names of the environment variables to read."""
        return [field.alias for field in cls.model_fields.values() if field.alias]

    @classmethod
    def read(cls: type[S], env: Mapping[str, str]) -> S:
        """Return the settings from environment variables.

        Raises:
            OptionError: values that are not allowed.
        """
        return read_as(
            cls, {name: text for name in cls.variables() if (text := env.get(name, "").strip())}, "environment"
        )


def _folder(given: Any) -> Path | None:
    """Return the folder of a cache, or None where verdicts are not kept."""
    if given is None or str(given).lower() == NO_CACHE:
        return None
    try:
        folder = Path(given).expanduser()
    except RuntimeError:
        raise ValueError(f"{given}: no home folder is known; name a folder by its whole path, or {NO_CACHE}") from None
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder, or {NO_CACHE}")
    return folder


class JudgeSettings(FromEnvironment):
    """Settings of a judge."""

    model: str = Field(default="", alias="MAGIC_JUDGE")
    """Name of the judge model; "": no judge."""
    cache: Annotated[Path | None, BeforeValidator(_folder)] = Field(default=None, alias="MAGIC_JUDGE_CACHE")
    """Folder of the verdicts that are kept, or ``off``; None: verdicts are not kept."""
    timeout: Annotated[float, Field(gt=0, le=86400), must("seconds above 0, at most 86400")] = Field(
        default=60.0, alias="MAGIC_JUDGE_TIMEOUT"
    )
    """Seconds for an attempt, from sending to the whole reply."""
    retries: Annotated[int, Field(ge=0, le=100), must("a whole number from 0 to 100")] = Field(
        default=5, alias="MAGIC_JUDGE_RETRIES"
    )
    """How often a question is sent again after a failure that may pass (time-out, no connection, status 408, 409, 429, 5xx)."""
    tokens: Annotated[int, Field(ge=16, le=1_000_000), must("a whole number from 16 to 1000000")] = Field(
        default=2048, alias="MAGIC_JUDGE_TOKENS"
    )
    """Most tokens of a reply (for reasoning models: with their thoughts)."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> JudgeSettings:
        """Return the settings from environment variables; without ``MAGIC_JUDGE`` all further variables are ignored.

        Args:
            env: ``os.environ``, or any mapping like it. Without ``MAGIC_JUDGE_CACHE``, the cache lies in the user's
                folder for caches.

        Raises:
            OptionError: values that are not allowed.

        >>> JudgeSettings.from_env({"MAGIC_JUDGE": "judge-7b", "MAGIC_JUDGE_TIMEOUT": "20"}).timeout
        20.0
        """
        if not env.get("MAGIC_JUDGE", "").strip():
            return cls()
        users = Path(env.get("XDG_CACHE_HOME", "").strip() or "~/.cache") / "lmms-patch" / "magic-judge"
        return cls.read({**env, "MAGIC_JUDGE_CACHE": env.get("MAGIC_JUDGE_CACHE", "").strip() or str(users)})
