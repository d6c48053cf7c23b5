"""Why a request to a judge failed, in one line, and whether it may go better the next time.

Errors are told apart by their attributes, not their classes: openai, requests and botocore use the same ones, and need
not all be installed.
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
_OF_QUESTION = {400, 413, 422}
"""Statuses that refuse the question: too long, not allowed, not understood. Another question may well be answered."""
_REFUSED = {
    "content_filter",
    "content_policy_violation",
    "ResponsibleAIPolicyViolation",
    "data_inspection_failed",
    "context_length_exceeded",
    "exceed_context_size_error",
    "string_above_max_length",
}
"""Error codes by which servers say, with any status, that they refuse this question: filters of content, and too long a text."""
_LONG = 240
_SECRETS = ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "AZURE_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY")
_NOT_CHAT = (AttributeError, TypeError, KeyError, IndexError, ValueError)
_ADDRESS = {
    "openai": ("OPENAI_API_URL", "https://api.openai.com/v1"),
    "azure": ("AZURE_ENDPOINT", ""),
    "local": ("LLM_JUDGE_URL", "http://localhost:8000/v1/chat/completions"),
    "bedrock": ("AWS_REGION", "us-west-2"),
}
"""The variable that lmms-eval takes the address of a server from, and its default, by kind of server."""
_KEY = {
    "openai": "no key for the judge; type: export OPENAI_API_KEY=... (any word for a server that asks for none)",
    "azure": "no key or address for the judge; type: export AZURE_API_KEY=... AZURE_ENDPOINT=...",
}


class NoTextError(Exception):
    """A reply came without a text."""


class NoProviderError(Exception):
    """Raised where lmms-eval's provider cannot be made: no request can succeed. The message is a single line."""


@dataclass(frozen=True)
class Failure:
    """A failed request to the judge.

    Attributes:
        reason: a word for the cause, the same for all failures of that cause.
        line: the line that the user reads.
        may_pass: whether the same request may succeed later.
        fatal: whether no request at all can succeed.
        of_question: whether the server refused this one question, which says nothing of others.
        retry_after: the seconds that the server asks to wait; None where it asks for none.
    """

    reason: str
    line: str
    may_pass: bool
    fatal: bool = False
    of_question: bool = False
    retry_after: float | None = None


def address_of(api: str, env: Mapping[str, str]) -> str:
    """Return the server's address for requests, without user name, password and query.

    Args:
        api: a value of ``judge_settings.API_TYPES``.
        env: ``os.environ``.
    """
    name, default = _ADDRESS.get(api, ("", ""))
    said = env.get(name, default) if name else default
    parts = urlsplit(said.strip())
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def no_provider(api: str, error: Exception | None) -> NoProviderError:
    """Return the error for a provider without a key, or for a failure to make the provider.

    Args:
        api: a value of ``judge_settings.API_TYPES``.
        error: what making the provider raised; None where it was made, but has no key.
    """
    if api in _KEY and (error is None or "credential" in str(error).lower() or "api_key" in str(error).lower()):
        return NoProviderError(_KEY[api])
    return NoProviderError(f"lmms-eval's {api} judge cannot be made: {type(error).__name__}: {_short(str(error))}")


def failure_of(error: Exception, timeout: float, env: Mapping[str, str]) -> Failure:
    """Return what a failed request means.

    Args:
        error: what the request raised.
        timeout: the seconds that it had.
        env: ``os.environ``; the line shows none of its keys.
    """
    if isinstance(error, NoProviderError):
        return Failure("no provider", str(error), may_pass=False, fatal=True)
    # by name, since the packages of these classes need not be installed
    names = " ".join(cls.__name__ for cls in type(error).__mro__)
    # first, since some time-outs are connection errors too
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
    """Return the failure of a request answered by the server with an error status."""
    said = _short(_message(error), env)
    hint = {
        401: "; check OPENAI_API_KEY",
        403: "; check OPENAI_API_KEY",
        404: "; check MAGIC_JUDGE (the model's name) and OPENAI_API_URL (it ends before /chat/completions)",
    }.get(status, "")
    body = _body(error)
    inner = body.get("innererror")
    codes = {str(code) for code in (getattr(error, "code", None), body.get("code"), body.get("type"))}
    # Azure puts the code of its content filter one level deeper
    codes |= {str(inner.get("code"))} if isinstance(inner, Mapping) else set()
    of_question = status in _OF_QUESTION or bool(codes & _REFUSED)
    # a used-up quota has the status of too many requests, but waiting does not help
    may_pass = (status in _MAY_PASS or status >= 500) and not of_question and "insufficient_quota" not in codes
    return Failure(
        f"status {status}",
        f"status {status}: {said}{hint}",
        may_pass,
        of_question=of_question,
        retry_after=_wait(error),
    )


def filtered(raw: Any) -> Failure | None:
    """Return the failure of a reply with status 200 in which the server refuses the question; None where answered.

    Args:
        raw: the chat completion as the client gives it: an object, a mapping, or None where it is not known.
    """
    choices = _part(raw, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    refusal = _part(_part(choice, "message"), "refusal")
    if _part(choice, "finish_reason") == "content_filter":
        return Failure(
            "filter",
            "the judge's server filtered the question (finish_reason content_filter)",
            may_pass=False,
            of_question=True,
        )
    if isinstance(refusal, str) and refusal.strip():
        return Failure("filter", f"the judge refused the question: {_short(refusal)}", may_pass=False, of_question=True)
    return None


def _part(whole: Any, name: str) -> Any:
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)


def _unreached(error: Exception, env: Mapping[str, str]) -> Failure:
    """Return the failure of a request which reached no server."""
    cause: BaseException = error
    # the client wraps the system's error, which says what is wrong
    while cause.__cause__ is not None:
        cause = cause.__cause__
    said = _short(str(cause) or type(cause).__name__, env)
    no_url = type(cause).__name__ in (
        "UnsupportedProtocol",
        "LocalProtocolError",
        "InvalidURL",
        "MissingSchema",
        "InvalidSchema",
    )
    return Failure("connection", f"no connection to the judge: {said}; check OPENAI_API_URL", may_pass=not no_url)


def _status(error: Exception) -> int | None:
    """Return the status code of an HTTP answer, wherever openai, requests or botocore keep the code; None for no code."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        status = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode")
    else:
        status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    return status if isinstance(status, int) else None


def _body(error: Exception) -> Mapping[str, Any]:
    body = getattr(error, "body", None)
    return body if isinstance(body, Mapping) else {}


def _message(error: Exception) -> str:
    """Return the server's message, or else the error's text."""
    said = _body(error).get("message")
    return said if isinstance(said, str) and said.strip() else str(error)


def _wait(error: Exception) -> float | None:
    """Return the seconds to wait as asked by the server, in a number or a date; None where the server asks for none."""
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


def _short(text: str, env: Mapping[str, str] = {}) -> str:
    """Return a text on a single line of limited length, without keys."""
    for name in _SECRETS:
        secret = env.get(name, "").strip()
        # a server that asks for no key is given any short word, which may stand in a text by chance
        if len(secret) > 5:
            text = text.replace(secret, "***")
    text = line(text)
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."
