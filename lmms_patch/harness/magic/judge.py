"""A judge model, asked through lmms-eval's own ``llm_judge``, with a cache (``judge_sender`` sends).

No failure ends a run. The verdict is then None, with the reason.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lmms_patch.harness.magic.judge_failures import NoTextError, address_of
from lmms_patch.harness.magic.judge_sender import GivenUpError, Sender, warn
from lmms_patch.magic.score.judge_settings import JudgeSettings
from lmms_patch.magic.score.verdict_cache import Kept, VerdictCache, key_of
from lmms_patch.magic.score.verdicts import VERSION, Inquiry, JudgeVerdict, read

ASKS = 3
"""How often a question is asked, at most, until a reply can be read."""


def judge_from(settings: JudgeSettings) -> Judge | None:
    """Return the judge of these settings; None where they name no model."""
    return Judge(settings) if settings.model else None


class Judge:
    """A judge model. Several threads may ask the judge at once.

    Args:
        settings: the settings of the judge; they name a model.

    Attributes:
        settings: as given.
        counts: how many ``requests`` were sent, and how many replies were ``malformed``; of the questions, how many
            were ``asked`` and judged, ``cached``, ``known`` without asking, ``unread`` (no reply could be read),
            ``refused`` (by the server, this one question), ``failed`` (no reply came) and ``skipped`` (no longer
            asked).
        sender: sends the questions.
    """

    def __init__(self, settings: JudgeSettings) -> None:
        self.settings = settings
        self.counts: Counter[str] = Counter()
        self.sender = Sender(settings, self._count)
        self._cache = VerdictCache(settings.cache, warn)
        self._lock = threading.Lock()
        self._address = ""

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
            answered = self.ask(inquiry)
            if progress is not None:
                progress()
            return answered

        different = list(dict.fromkeys(inquiries))
        pool = ThreadPoolExecutor(max(1, concurrency), thread_name_prefix="magic-judge")
        try:
            verdicts = dict(zip(different, pool.map(one, different), strict=True))
        except BaseException:
            self.sender.interrupt()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()
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
        return self._asked(inquiry, key)

    def described(self) -> dict[str, Any]:
        """Return what a verdict depends on beside its prompt: model, server (without credentials), sampling, version of the prompts."""
        if not self._address:
            import lmms_eval.llm_judge  # noqa: F401 - the import reads a .env file, which may name the server

            self._address = address_of(self.settings.api, os.environ)
        return {
            "model": self.settings.model,
            "api": self.settings.api,
            "address": self._address,
            "sampling": {"temperature": 0.0, "max_tokens": self.settings.tokens},
            "prompts": VERSION,
        }

    def _asked(self, inquiry: Inquiry, key: str) -> tuple[JudgeVerdict, ...]:
        """Ask until a reply can be read, at most ``ASKS`` times."""
        fault, raw, model = "", "", ""
        for turn in range(ASKS):
            text = inquiry.again(turn) if turn else inquiry.prompt
            try:
                raw, model = self.sender.send(text)
            except NoTextError:
                raw, model = "", self.settings.model
            except GivenUpError as error:
                self._count(error.counted)
                said = f"{error}; before that, an unreadable reply: {fault}" if fault else str(error)
                return self._none(inquiry, said, raw, model)
            reading = read(inquiry, raw)
            if reading.values is not None:
                # only what could be read is kept, so that an unreadable reply is asked for again
                self._cache.put(key, inquiry.kind, Kept(reading.values, reading.reason, raw, model))
                self._count("asked")
                return tuple(JudgeVerdict(value, reading.reason, "", raw, False, model) for value in reading.values)
            self._count("malformed")
            fault = reading.fault
        self._count("unread")
        return self._none(inquiry, f"malformed: {fault} (asked {ASKS} times)", raw, model)

    def _none(self, inquiry: Inquiry, error: str, raw: str, model: str) -> tuple[JudgeVerdict, ...]:
        """Return verdicts without a value for a question, with the reason."""
        return (JudgeVerdict(None, "", error, raw, False, model),) * inquiry.count

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1
