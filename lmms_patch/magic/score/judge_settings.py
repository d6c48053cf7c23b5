"""How verdicts are asked for: the judge model, its cache, time-outs and retries. Pure; read from the environment.

The judge's address and key are lmms-eval's own variables (``OPENAI_API_URL``, ``OPENAI_API_KEY``, ``API_TYPE``; docs/magic-judge.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lmms_patch.errors import OptionError, nearest

API_TYPES = {
    "openai": "openai",
    "azure": "azure",
    "local": "local",
    "bedrock": "bedrock",
    "dummy": "dummy",
    "async_openai": "openai",
    "async_azure": "azure",
}
"""Values of ``API_TYPE`` -> the provider of lmms-eval that is used: one question at a time needs no asynchronous one."""
NO_CACHE = "off"


@dataclass(frozen=True)
class JudgeSettings:
    """Settings of a judge.

    Attributes:
        model: name of the judge model; "": no judge.
        cache: folder of the verdict cache; None: verdicts are not kept.
        timeout: seconds for an attempt, from sending to the whole reply.
        retries: how often a question is sent again after a failure that may pass (time-out, no connection, status 408, 409, 429, 5xx).
        tokens: most tokens of a reply (for reasoning models: with their thoughts).
        api: the kind of server, a value of ``API_TYPES``.
        backoff: seconds before the first retry; doubles with each, up to 30.
        give_up: after so many questions in a row that failed for the same reason no more are asked.
    """

    model: str = ""
    cache: Path | None = None
    timeout: float = 60.0
    retries: int = 5
    tokens: int = 2048
    api: str = "openai"
    backoff: float = 1.0
    give_up: int = 5

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> JudgeSettings:
        """The settings that environment variables say.

        Args:
            env: ``os.environ``, or any mapping like it. Read: MAGIC_JUDGE, MAGIC_JUDGE_CACHE (a folder, or "off"), MAGIC_JUDGE_TIMEOUT,
                MAGIC_JUDGE_RETRIES, MAGIC_JUDGE_TOKENS, API_TYPE, XDG_CACHE_HOME. Empty ones count as not set.

        Raises:
            OptionError: a value that is not allowed. Without MAGIC_JUDGE nothing else is looked at.

        >>> JudgeSettings.from_env({"MAGIC_JUDGE": "judge-7b", "MAGIC_JUDGE_TIMEOUT": "20"}).timeout
        20.0
        """
        model = env.get("MAGIC_JUDGE", "").strip()
        if not model:
            return cls()
        said = (env.get("API_TYPE", "").strip() or "openai").lower()
        if said not in API_TYPES:
            near = nearest(said, API_TYPES, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise OptionError(f"API_TYPE={said}: no such kind of judge server; allowed: {', '.join(API_TYPES)}{hint}")
        return cls(
            model=model,
            cache=_cache(env),
            timeout=_number(env, "MAGIC_JUDGE_TIMEOUT", cls.timeout, "seconds above 0, at most 86400", lambda value: 0 < value <= 86400),
            retries=int(_number(env, "MAGIC_JUDGE_RETRIES", cls.retries, "a whole number from 0 to 100", lambda value: value in range(101))),
            tokens=int(
                _number(env, "MAGIC_JUDGE_TOKENS", cls.tokens, "a whole number from 16 to 1000000", lambda value: value in range(16, 1_000_001))
            ),
            api=API_TYPES[said],
        )


def _cache(env: Mapping[str, str]) -> Path | None:
    """The cache's folder: as said, else in the user's own folder for caches."""
    said = env.get("MAGIC_JUDGE_CACHE", "").strip()
    if said.lower() == NO_CACHE:
        return None
    try:
        folder = Path(said).expanduser() if said else _user_cache(env) / "lmms-patch" / "magic-judge"
    except RuntimeError:
        raise OptionError(f"MAGIC_JUDGE_CACHE={said}: no home folder is known; name a folder by its whole path, or {NO_CACHE}") from None
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"MAGIC_JUDGE_CACHE={folder}: is a file; name a folder, or {NO_CACHE}")
    return folder


def _user_cache(env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_CACHE_HOME", "").strip() or "~/.cache").expanduser()


def _number(env: Mapping[str, str], name: str, default: float, allowed: str, fits: Callable[[float], bool]) -> float:
    said = env.get(name, "").strip()
    if not said:
        return default
    try:
        value = float(said)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not fits(value):
        raise OptionError(f"{name}={said}: allowed: {allowed}; type: export {name}={default:g}")
    return value
