"""A judge model, asked through the openai client, with a cache; the client has time-outs, retries and back-off.

No failure ends a run. The verdict is then None, with the reason.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from lmms_patch.magic.score.judge_settings import JudgeSettings
from lmms_patch.magic.score.verdict_cache import Kept, VerdictCache, key_of
from lmms_patch.magic.score.verdicts import VERSION, Inquiry, JudgeVerdict, read
from lmms_patch.text import line, log

ASKS = 3
"""How often a question is asked, at most, until a reply can be read."""
GIVE_UP = 5
"""After so many failed questions in a row no more are asked."""
_OF_QUESTION = {400, 413, 422}
"""Statuses that refuse the question: too long, not allowed, not understood. Another question may well be answered."""
_HINTS = {401: "OPENAI_API_KEY", 403: "OPENAI_API_KEY", 404: "MAGIC_JUDGE and OPENAI_API_URL"}
_LONG = 240
_NO_KEY = "no key for the judge; type: export OPENAI_API_KEY=... (any word for a server that asks for none)"


def judge_from(settings: JudgeSettings) -> Judge | None:
    """Return the judge of these settings; None where they name no model."""
    return Judge(settings) if settings.model else None


class NoReplyError(Exception):
    """No reply came; ``counted`` is the word for that in ``Judge.counts``."""

    def __init__(self, why: str, counted: str) -> None:
        super().__init__(why)
        self.counted = counted


class Judge:
    """A judge model. Several threads may ask the judge at once.

    Args:
        settings: the settings of the judge; they name a model.

    Attributes:
        settings: as given.
        counts: how many ``requests`` were sent, and how many replies were ``malformed``; of the questions, how many
            were ``asked`` and judged, ``cached``, ``known`` without asking, ``unread`` (no reply could be read),
            ``refused`` (this one question), ``failed`` (no reply came) and ``skipped`` (no longer asked).
        stopped: why nothing is sent any more; "" while questions are sent.
    """

    def __init__(self, settings: JudgeSettings) -> None:
        self.settings = settings
        self.counts: Counter[str] = Counter()
        self.stopped = ""
        self._failed = 0
        self._cache = VerdictCache(settings.cache, _warn)
        self._lock = threading.Lock()

    def many(
        self, inquiries: Sequence[Inquiry], concurrency: int = 8, progress: Callable[[], object] | None = None
    ) -> list[tuple[JudgeVerdict, ...]]:
        """Ask several questions at once. Equal questions are asked once.

        Args:
            inquiries: made by the functions of ``magic.score.verdicts``.
            concurrency: the number of requests under way at once, at least 1.
            progress: called by the threads after each different question.

        Returns:
            The verdicts of each question, in order.
        """

        def one(inquiry: Inquiry) -> tuple[JudgeVerdict, ...]:
            verdicts = self.ask(inquiry)
            if progress is not None:
                progress()
            return verdicts

        different = list(dict.fromkeys(inquiries))
        pool = ThreadPoolExecutor(max(1, concurrency), thread_name_prefix="magic-judge")
        try:
            verdicts = dict(zip(different, pool.map(one, different), strict=True))
        except BaseException:
            # questions under way end by themselves
            self.stopped = self.stopped or "the run was interrupted"
            raise
        finally:
            pool.shutdown(wait=not self.stopped, cancel_futures=True)
        return [verdicts[inquiry] for inquiry in inquiries]

    def ask(self, inquiry: Inquiry) -> tuple[JudgeVerdict, ...]:
        """Ask a question.

        Args:
            inquiry: made by a function of ``magic.score.verdicts``.

        Returns:
            As many verdicts as the question asks for. A verdict without a value says why.
        """
        if inquiry.known or not inquiry.count:
            self._count("known")
            return inquiry.known
        key = key_of({**self.described(), "kind": inquiry.kind, "prompt": inquiry.prompt})
        kept = self._cache.get(key, inquiry.kind, inquiry.count)
        if kept is not None:
            self._count("cached")
            return tuple(JudgeVerdict(value, kept.reason, "", kept.raw, True, kept.model) for value in kept.values)
        fault, raw, model = "", "", ""
        for turn in range(ASKS):
            try:
                raw, model = self._reply(inquiry.again(turn) if turn else inquiry.prompt)
            except NoReplyError as error:
                self._count(error.counted)
                why = f"{error}; before that, an unreadable reply: {fault}" if fault else str(error)
                break
            reading = read(inquiry, raw)
            if reading.values is not None:
                # only what could be read is kept, so that an unreadable reply is asked for again
                self._cache.put(key, inquiry.kind, Kept(reading.values, reading.reason, raw, model))
                self._count("asked")
                return tuple(JudgeVerdict(value, reading.reason, "", raw, False, model) for value in reading.values)
            self._count("malformed")
            fault = reading.fault
        else:
            self._count("unread")
            why = f"malformed: {fault} (asked {ASKS} times)"
        return (JudgeVerdict(None, "", why, raw, False, model),) * inquiry.count

    def described(self) -> dict[str, Any]:
        """Return what a verdict depends on beside its prompt: model, server (without credentials), sampling, version of the prompts."""
        parts = urlsplit(os.environ.get("OPENAI_API_URL", "").strip() or "https://api.openai.com/v1")
        address = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
        return {
            "model": self.settings.model,
            "address": address,
            "sampling": {"temperature": 0.0, "max_tokens": self.settings.tokens},
            "prompts": VERSION,
        }

    def resume(self) -> None:
        """Send again, where the server was given up: the server may be back."""
        self.stopped, self._failed = "", 0

    @cached_property
    def _client(self) -> Any:
        from openai import OpenAI

        return OpenAI(
            base_url=os.environ.get("OPENAI_API_URL", "").strip() or None,
            timeout=self.settings.timeout,
            max_retries=self.settings.retries,
        )

    def _reply(self, text: str) -> tuple[str, str]:
        """Send a question, and return the reply and the answering model's name.

        Raises:
            NoReplyError: none came, the question was refused, or nothing is asked any more.
        """
        from openai import OpenAIError

        if not os.environ.get("OPENAI_API_KEY", "").strip():
            self.stopped = self.stopped or _NO_KEY
        if self.stopped:
            raise NoReplyError(f"not asked: {self.stopped}", "skipped")
        self._count("requests")
        asked = {"model": self.settings.model, "temperature": 0.0, "max_tokens": self.settings.tokens}
        try:
            reply = self._client.chat.completions.create(messages=[{"role": "user", "content": text}], **asked)
            choice = reply.choices[0]
        except OpenAIError as error:
            status = getattr(error, "status_code", None)
            why = self._why(error, status)
            if status in _OF_QUESTION:
                raise NoReplyError(why, "refused") from None
            self._went_wrong(why)
            raise NoReplyError(why, "failed") from None
        except (AttributeError, IndexError, TypeError, ValueError):
            self._went_wrong(why := "the server's reply is not a chat completion")
            raise NoReplyError(why, "failed") from None
        self._failed = 0
        if choice.message.refusal or choice.finish_reason == "content_filter":
            refused = choice.message.refusal or "the server filtered it"
            raise NoReplyError(f"the question was refused: {line(refused)[:_LONG]}", "refused")
        return choice.message.content or "", str(reply.model or self.settings.model)

    def _why(self, error: Exception, status: int | None) -> str:
        """Return why a request failed, in a line without the key."""
        from openai import APIConnectionError, APITimeoutError

        if isinstance(error, APITimeoutError):
            return f"no answer within {self.settings.timeout:g} s ({self.settings.retries + 1} tries)"
        if isinstance(error, APIConnectionError):
            return f"no connection to the judge: {line(error.__cause__ or error)[:_LONG]}; check OPENAI_API_URL"
        said = line(error).replace(os.environ["OPENAI_API_KEY"].strip(), "***")[:_LONG]
        return f"{said}; check {_HINTS[status]}" if status in _HINTS else said

    def _went_wrong(self, why: str) -> None:
        """Count a failed question; after ``GIVE_UP`` in a row ask nothing more."""
        with self._lock:
            self._failed += 1
            if self._failed < GIVE_UP or self.stopped:
                return
            self.stopped = f"the judge was given up ({why})"
        _warn(
            f"MAGIC judge {self.settings.model}: no more is asked after {GIVE_UP} failures in a row: {why}. "
            "What is not judged is counted; running again asks only for that"
        )

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1


def _warn(said: str) -> None:
    """Log a line, whatever braces are in the line."""
    log().warning("{}", said)
