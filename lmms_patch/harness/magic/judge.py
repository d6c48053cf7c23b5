"""A judge model, asked through the openai client, with a cache; the client has time-outs, retries, back-off and messages.

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
AT_ONCE = 8
"""How many requests are under way at once."""
_OF_QUESTION = {400, 413, 422}
"""Statuses that refuse the question: too long, not allowed, not understood. Another question may well be answered."""
_LONG = 240


class NoReplyError(Exception):
    """No reply came; ``counted`` is the word for that in ``Judge.counts``."""

    def __init__(self, why: Any, counted: str) -> None:
        # a server may repeat the key
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        super().__init__(line(str(why).replace(key, "***") if key else why)[:_LONG])
        self.counted = counted


class Judge:
    """A judge model. Several threads may ask the judge at once.

    Args:
        settings: the settings of the judge; they name a model.

    Attributes:
        settings: as given.
        counts: how many ``requests`` were sent; of the questions, how many were ``asked`` and judged, ``cached``,
            ``unread`` (no reply could be read), ``refused`` (this one question), ``failed`` (no reply came) and
            ``skipped`` (no longer asked).
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
        self, inquiries: Sequence[Inquiry], tell: Callable[[int, int], object] | None = None
    ) -> list[tuple[JudgeVerdict, ...]]:
        """Ask several questions at once, equal ones once.

        Args:
            inquiries: made by the functions of ``magic.score.verdicts``.
            tell: called after each different question with the number of those done, and of all.

        Returns:
            The verdicts of each question, in order.
        """
        verdicts: dict[Inquiry, tuple[JudgeVerdict, ...]] = dict.fromkeys(inquiries, ())
        pool = ThreadPoolExecutor(AT_ONCE)
        try:
            for done, (inquiry, found) in enumerate(zip(verdicts, pool.map(self.ask, list(verdicts)), strict=True), 1):
                verdicts[inquiry] = found
                if tell is not None:
                    tell(done, len(verdicts))
        finally:
            pool.shutdown(cancel_futures=True)
        return [verdicts[inquiry] for inquiry in inquiries]

    def ask(self, inquiry: Inquiry) -> tuple[JudgeVerdict, ...]:
        """Ask a question.

        Args:
            inquiry: made by a function of ``magic.score.verdicts``.

        Returns:
            As many verdicts as the question asks for. A verdict without a value says why.
        """
        if inquiry.known or not inquiry.count:
            return inquiry.known
        key = key_of({**self.described(), "kind": inquiry.kind, "prompt": inquiry.prompt})
        kept, cached = self._cache.get(key, inquiry.kind, inquiry.count), True
        fault, raw, model, why = "", "", "", ""
        for turn in range(ASKS) if kept is None else ():
            try:
                raw, model = self._reply(inquiry.again(turn) if turn else inquiry.prompt)
            except NoReplyError as error:
                self._count(error.counted)
                why = f"{error}; before that, an unreadable reply: {fault}" if fault else str(error)
                break
            reading = read(inquiry, raw)
            if reading.values is not None:
                # only what could be read is kept, so that an unreadable reply is asked for again
                kept, cached = Kept(reading.values, reading.reason, raw, model), False
                self._cache.put(key, inquiry.kind, kept)
                break
            fault = reading.fault
        if kept is not None:
            self._count("cached" if cached else "asked")
            return tuple(JudgeVerdict(value, kept.reason, "", kept.raw, cached, kept.model) for value in kept.values)
        if not why:
            self._count("unread")
            why = f"malformed: {fault} (asked {ASKS} times)"
        return (JudgeVerdict(None, "", why, raw, False, model),) * inquiry.count

    def described(self) -> dict[str, Any]:
        """Return what a verdict depends on beside its prompt: model, server (without credentials), sampling, version of the prompts."""
        parts = urlsplit(os.environ.get("OPENAI_API_URL", "").strip() or "https://api.openai.com/v1")
        address = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
        sampling = {"temperature": 0.0, "max_tokens": self.settings.tokens}
        return {"model": self.settings.model, "address": address, "sampling": sampling, "prompts": VERSION}

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

        if self.stopped:
            raise NoReplyError(f"not asked: {self.stopped}", "skipped")
        self._count("requests")
        asked = {"model": self.settings.model, "temperature": 0.0, "max_tokens": self.settings.tokens}
        try:
            reply = self._client.chat.completions.create(messages=[{"role": "user", "content": text}], **asked)
            choice = reply.choices[0]
        except OpenAIError as error:
            if getattr(error, "status_code", None) in _OF_QUESTION:
                raise NoReplyError(error, "refused") from None
            raise self._failure(error) from None
        except (AttributeError, IndexError, TypeError, ValueError):
            raise self._failure("the server's reply is not a chat completion") from None
        self._failed = 0
        if choice.message.refusal or choice.finish_reason == "content_filter":
            refused = choice.message.refusal or "the server filtered it"
            raise NoReplyError(f"the question was refused: {refused}", "refused")
        return choice.message.content or "", str(reply.model or self.settings.model)

    def _failure(self, why: Any) -> NoReplyError:
        """Count a failed question; after ``GIVE_UP`` in a row ask nothing more."""
        error = NoReplyError(why, "failed")
        with self._lock:
            self._failed += 1
            if self._failed < GIVE_UP or self.stopped:
                return error
            self.stopped = f"the judge was given up ({error})"
        _warn(
            f"MAGIC judge {self.settings.model}: no more is asked after {GIVE_UP} failures in a row: {error}. "
            "What is not judged is counted; running again asks only for that"
        )
        return error

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1


def _warn(told: str) -> None:
    """Log a line, whatever braces are in the line."""
    log().warning("{}", told)
