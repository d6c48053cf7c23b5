"""Why a request to a judge failed, in one line, and whether it may go better the next time.

Told by shape, not by class: the errors of openai, requests and botocore carry the same things, and not all of these libraries need be installed.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from lmms_patch.text import line

_MAY_PASS = {408, 409, 425, 429}
_LONG = 240
_SECRETS = ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "AZURE_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY")
_NOT_CHAT = (AttributeError, TypeError, KeyError, IndexError, ValueError)
_ADDRESS = {
    "openai": ("OPENAI_API_URL", "https://api.openai.com/v1"),
    "azure": ("AZURE_ENDPOINT", ""),
    "local": ("LLM_JUDGE_URL", "http://localhost:8000/v1/chat/completions"),
    "bedrock": ("AWS_REGION", "us-west-2"),
}
"""For each kind of server, the variable that lmms-eval takes its address from, and lmms-eval's default."""
_KEY = {
    "openai": "no key for the judge; type: export OPENAI_API_KEY=... (any word for a server that asks for none)",
    "azure": "no key or address for the judge; type: export AZURE_API_KEY=... AZURE_ENDPOINT=...",
}


class NoTextError(Exception):
    """A reply came, and has no text."""


class NoProviderError(Exception):
    """lmms-eval's provider cannot be made: no request can succeed. The message is one line."""


@dataclass(frozen=True)
class Failure:
    """One failed request.

    Attributes:
        reason: what failures of the same cause have in common.
        line: what is told, on one line.
        may_pass: whether the same request may succeed later.
        fatal: whether no request at all can succeed.
        retry_after: seconds that the server asks to wait; None where it says nothing.
    """

    reason: str
    line: str
    may_pass: bool
    fatal: bool = False
    retry_after: float | None = None


def address_of(api: str, env: Mapping[str, str]) -> str:
    """Where the requests go, without user name, password and query.

    Args:
        api: a value of ``judge_settings.API_TYPES``.
        env: ``os.environ``.
    """
    name, default = _ADDRESS.get(api, ("", ""))
    said = env.get(name, default) if name else default
    parts = urlsplit(said.strip())
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def no_provider(api: str, error: Exception | None) -> NoProviderError:
    """What to tell where the provider cannot be made, or has no key (``error`` None, or openai's own)."""
    if api in _KEY and (error is None or "credential" in str(error).lower() or "api_key" in str(error).lower()):
        return NoProviderError(_KEY[api])
    return NoProviderError(f"lmms-eval's {api} judge cannot be made: {type(error).__name__}: {_short(str(error))}")


def failure_of(error: Exception, timeout: float, env: Mapping[str, str]) -> Failure:
    """What a failed request means.

    Args:
        error: what it raised.
        timeout: seconds that it had.
        env: ``os.environ``; the keys in it are struck out of what is told.
    """
    if isinstance(error, NoProviderError):
        return Failure("no provider", str(error), may_pass=False, fatal=True)
    names = " ".join(cls.__name__ for cls in type(error).__mro__)
    if "Timeout" in names:
        return Failure("timeout", f"no answer within {timeout:g} s", may_pass=True)
    status = _status(error)
    if status is not None:
        return _refused(error, status, env)
    if "Connection" in names or isinstance(error, OSError):
        return _unreached(error, env)
    if isinstance(error, _NOT_CHAT) or "Validation" in names:
        return Failure("reply", "the server's reply is not a chat completion", may_pass=True)
    return Failure(type(error).__name__, f"{type(error).__name__}: {_short(str(error), env)}", may_pass=True)


def _refused(error: Exception, status: int, env: Mapping[str, str]) -> Failure:
    """An answer with an error status."""
    said = _short(_message(error), env)
    hint = {
        401: "; check OPENAI_API_KEY",
        403: "; check OPENAI_API_KEY",
        404: "; check MAGIC_JUDGE (the model's name) and OPENAI_API_URL (it ends before /chat/completions)",
    }.get(status, "")
    spent = "insufficient_quota" in (getattr(error, "code", None), _body(error).get("code"), _body(error).get("type"))
    return Failure(
        f"status {status}", f"status {status}: {said}{hint}", (status in _MAY_PASS or status >= 500) and not spent, retry_after=_wait(error)
    )


def _unreached(error: Exception, env: Mapping[str, str]) -> Failure:
    """No server was reached."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    said = _short(str(cause) or type(cause).__name__, env)
    no_url = type(cause).__name__ in ("UnsupportedProtocol", "LocalProtocolError", "InvalidURL", "MissingSchema", "InvalidSchema")
    return Failure("connection", f"no connection to the judge: {said}; check OPENAI_API_URL", may_pass=not no_url)


def _status(error: Exception) -> int | None:
    """The status code of an HTTP answer, as openai, requests and botocore keep it."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        response = response.get("ResponseMetadata") or {}
        found = response.get("HTTPStatusCode")
    else:
        found = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    return found if isinstance(found, int) else None


def _body(error: Exception) -> Mapping[str, Any]:
    body = getattr(error, "body", None)
    return body if isinstance(body, Mapping) else {}


def _message(error: Exception) -> str:
    said = _body(error).get("message")
    return said if isinstance(said, str) and said.strip() else str(error)


def _wait(error: Exception) -> float | None:
    """Seconds that the server asks to wait: a number, or a date."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        said = str(headers.get(name) or headers.get(name.title()) or "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d*)?", said):
            return float(said) * unit
        if said and name == "retry-after":
            try:
                return max(0.0, email.utils.parsedate_to_datetime(said).timestamp() - time.time())
            except (ValueError, TypeError):
                return None
    return None


def _short(text: str, env: Mapping[str, str] | None = None) -> str:
    """One line of limited length without keys."""
    for name in _SECRETS:
        secret = (env or {}).get(name, "").strip()
        if len(secret) > 5:
            text = text.replace(secret, "***")
    found = line(text)
    return found if len(found) <= _LONG else f"{found[:_LONG]}..."
