"""A judge model, asked through lmms-eval's own ``llm_judge``: with a cache, time-outs that hold, retries, and an end to hopeless tries.

lmms-eval's provider sends single requests; everything around them is done here. Why: in lmms-eval 0.7 the time-out of
the settings does not reach the OpenAI client (which waits 600 s and retries twice), every error is tried again after 10
s, even a wrong key, and a reply without text raises an ``AttributeError``.

No failure ends a run. The verdict is then None, with the reason. Two kinds of failure are told apart. A server that
refuses one question (too long, filtered) refuses that question alone: the next one is asked. A server that cannot be
reached, or fails, is given up after some questions.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lmms_patch.harness.magic.judge_failures import Failure, NoTextError, address_of, failure_of, filtered, no_provider
from lmms_patch.magic.score.judge_settings import JudgeSettings
from lmms_patch.magic.score.verdict_cache import Kept, VerdictCache, key_of
from lmms_patch.magic.score.verdicts import (
    VERSION,
    Inquiry,
    Verdict,
    full_inquiry,
    heal_inquiry,
    read,
    short_inquiry,
    steps_inquiry,
)
from lmms_patch.text import log

ASKS = 3
"""How often a question is asked, at most, until a reply can be read."""
_LONGEST_PAUSE = 30.0
_LONGEST_RETRY_AFTER = 300.0


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
        stopped: why nothing is asked any more; "" while questions are asked.
    """

    def __init__(self, settings: JudgeSettings) -> None:
        self.settings = settings
        self.counts: Counter[str] = Counter()
        self.stopped = ""
        self._cache = VerdictCache(settings.cache, _warn)
        self._lock = threading.Lock()
        self._over = threading.Event()
        # the reason of the last failures, and how many there were in a row
        self._row: tuple[str, int] = ("", 0)
        # whether the next failure ends the asking again (``resume``)
        self._trying = False
        # whether any reply came so far
        self._answered = False
        # questions that were refused before any reply came
        self._refused = 0
        self._provider: Any = None
        self._address = ""

    # --- what is asked

    def short(self, question: str, answer: str, gold: str) -> Verdict:
        """Judge whether an answer is right by the short gold answer (Acc_short; ``magic.verdicts.short_inquiry``)."""
        return self.ask(short_inquiry(question, answer, gold))[0]

    def full(self, question: str, response: str, gold_full: str) -> Verdict:
        """Judge whether a response is right by the full gold answer (Acc_full; ``magic.verdicts.full_inquiry``)."""
        return self.ask(full_inquiry(question, response, gold_full))[0]

    def heal(self, prefix: Sequence[str] | str, corrections: Sequence[str], continuation: str) -> Verdict:
        """Judge whether a continuation takes an injected mistake back (Self-Heal; ``magic.verdicts.heal_inquiry``)."""
        return self.ask(heal_inquiry(prefix, corrections, continuation))[0]

    def steps(self, question: str, gold: str, steps: Sequence[str]) -> list[Verdict]:
        """Judge whether each step of a chain is right (StepSense; ``magic.verdicts.steps_inquiry``).

        There is one verdict per step, and either all or none of them have a value.
        """
        return list(self.ask(steps_inquiry(question, gold, steps)))

    def many(
        self, inquiries: Sequence[Inquiry], concurrency: int = 8, progress: Callable[[], object] | None = None
    ) -> list[tuple[Verdict, ...]]:
        """Ask several questions at once. Equal questions are asked once.

        Args:
            inquiries: made by the functions of ``magic.verdicts``.
            concurrency: the number of requests under way at once, at least 1.
            progress: called by the threads after each different question.

        Returns:
            The verdicts of each question, in order.
        """

        def one(inquiry: Inquiry) -> tuple[Verdict, ...]:
            answered = self.ask(inquiry)
            if progress is not None:
                progress()
            return answered

        different = list(dict.fromkeys(inquiries))
        pool = ThreadPoolExecutor(max(1, concurrency), thread_name_prefix="magic-judge")
        try:
            verdicts = dict(zip(different, pool.map(one, different), strict=True))
        except BaseException:
            self.stopped = self.stopped or "the run was interrupted"
            # ends the pauses between tries
            self._over.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()
        return [verdicts[inquiry] for inquiry in inquiries]

    def ask(self, inquiry: Inquiry) -> tuple[Verdict, ...]:
        """Ask a question.

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
            return tuple(Verdict(value, kept.reason, "", kept.raw, True, kept.model) for value in kept.values)
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

    def resume(self) -> None:
        """Ask again, where the judge was given up: the server may be back.

        The first question that then fails ends it again.
        """
        with self._lock:
            if self.stopped:
                self.stopped, self._row, self._trying = "", ("", 0), True
                self._over.clear()

    # --- one question

    def _asked(self, inquiry: Inquiry, key: str) -> tuple[Verdict, ...]:
        """Ask until a reply can be read, at most ``ASKS`` times."""
        fault, raw, model = "", "", ""
        for turn in range(ASKS):
            text = inquiry.again(turn) if turn else inquiry.prompt
            try:
                raw, model = self._sent(text)
            except NoTextError:
                raw, model = "", self.settings.model
            except _GivenUpError as error:
                self._count(error.counted)
                said = f"{error}; before that, an unreadable reply: {fault}" if fault else str(error)
                return self._none(inquiry, said, raw, model)
            reading = read(inquiry, raw)
            if reading.values is not None:
                # only what could be read is kept, so that an unreadable reply is asked for again
                self._cache.put(key, inquiry.kind, Kept(reading.values, reading.reason, raw, model))
                self._count("asked")
                return tuple(Verdict(value, reading.reason, "", raw, False, model) for value in reading.values)
            self._count("malformed")
            fault = reading.fault
        self._count("unread")
        return self._none(inquiry, f"malformed: {fault} (asked {ASKS} times)", raw, model)

    def _none(self, inquiry: Inquiry, error: str, raw: str, model: str) -> tuple[Verdict, ...]:
        """Return verdicts without a value for a question, with the reason."""
        return (Verdict(None, "", error, raw, False, model),) * inquiry.count

    def _sent(self, text: str) -> tuple[str, str]:
        """Send a question, with retries, and return the reply and the name of the model that answered.

        Raises:
            _GivenUpError: no reply came, or nothing is asked any more.
            NoTextError: a reply without text came.
        """
        for attempt in range(self.settings.retries + 1):
            if self.stopped:
                raise _GivenUpError(f"not asked: {self.stopped}", "skipped")
            try:
                reply = self._once(text)
            except NoTextError:
                self._went_well()
                raise
            except Exception as error:
                failure = (
                    error.failure
                    if isinstance(error, _FilteredError)
                    else failure_of(error, self.settings.timeout, os.environ)
                )
                if failure.of_question:
                    self._was_refused(failure)
                    raise _GivenUpError(failure.line, "refused") from None
                if failure.fatal or not failure.may_pass or attempt == self.settings.retries:
                    self._went_wrong(failure)
                    tries = f" ({attempt + 1} tries)" if attempt else ""
                    raise _GivenUpError(f"{failure.line}{tries}", "failed") from None
                # an event, so that an interrupted run does not sit out the pause
                self._over.wait(self._pause(attempt, failure))
            else:
                self._went_well()
                return reply
        raise AssertionError("unreachable")

    def _pause(self, attempt: int, failure: Failure) -> float:
        """Return the seconds to wait until the next try: what the server asks for, else a doubling pause."""
        if failure.retry_after is not None:
            return min(failure.retry_after, _LONGEST_RETRY_AFTER)
        return float(min(self.settings.backoff * 2**attempt, _LONGEST_PAUSE))

    def _once(self, text: str) -> tuple[str, str]:
        """Send a single request, and return the reply and the name of the model that answered.

        Raises:
            _FilteredError: the reply refuses the question.
            NoTextError: the reply has no text.
            Exception: whatever the client raises.
        """
        from lmms_eval.llm_judge import Request

        provider = self._get_provider()
        self._count("requests")
        request = Request(messages=[{"role": "user", "content": text}], config=provider.config)
        try:
            response = _within(self.settings.timeout, lambda: _quietly(lambda: provider.evaluate(request)))
        except AttributeError as error:
            # the provider calls strip() on the text of a reply that has none
            if error.name == "strip" and error.obj is None:
                raise NoTextError from None
            raise
        if (refused := filtered(response.raw_response)) is not None:
            raise _FilteredError(refused)
        return str(response.content), str(response.model_used or self.settings.model)

    def _get_provider(self) -> Any:
        """Return lmms-eval's provider, made at the first request."""
        with self._lock:
            if self._provider is None:
                self._provider = _provider(self.settings)
            return self._provider

    # --- what happened

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def _went_well(self) -> None:
        with self._lock:
            self._row, self._trying, self._answered = ("", 0), False, True

    def _was_refused(self, failure: Failure) -> None:
        """Note a refused question; warn once where the server has refused every question so far.

        A refusal neither counts as a failure of the server nor ends a row of such failures: a server may well refuse
        long texts by their length while the model behind it is dead.
        """
        with self._lock:
            self._refused += not self._answered
            tell = self._refused == self.settings.give_up and not self._answered
        if tell:
            _warn(
                f"MAGIC judge {self.settings.model}: refused each of the first {self.settings.give_up} questions, and is asked on: {failure.line}. "
                "What is not judged is counted; if every question is refused, look at the judge's settings"
            )

    def _went_wrong(self, failure: Failure) -> None:
        """Count a failed question, and stop asking after too many failures in a row for the same reason."""
        with self._lock:
            if self.stopped:
                return
            number = self._row[1] + 1 if self._row[0] == failure.reason else 1
            self._row = (failure.reason, number)
            again = self._trying
            # after ``resume`` a single failure is enough
            if not failure.fatal and not again and number < self.settings.give_up:
                return
            self.stopped = f"the judge was given up ({failure.line})"
            self._over.set()
        questions = "" if failure.fatal else ", as before" if again else f" after {number} questions in a row"
        _warn(
            f"MAGIC judge {self.settings.model}: no more is asked{questions}: {failure.line}. "
            "What is not judged is counted; running again asks only for that"
        )


def _provider(settings: JudgeSettings) -> Any:
    """Make lmms-eval's provider for these settings, with our time-out and without the provider's retries.

    Raises:
        NoProviderError: the provider cannot be made, or has no key.
    """
    from lmms_eval.llm_judge import ProviderFactory, ServerConfig

    # a single try without a pause: retries are ours (``_sent``)
    config: Any = ServerConfig(
        model_name=settings.model, temperature=0.0, max_tokens=settings.tokens, num_retries=1, retry_delay=0
    )
    config.timeout = settings.timeout
    try:
        provider = ProviderFactory.create_provider(settings.api, config)
        # not asked of a local server: it would cost a request
        has_key = settings.api not in ("openai", "azure") or provider.is_available()
    except Exception as error:
        raise no_provider(settings.api, error) from None
    if not has_key:
        raise no_provider(settings.api, None)
    # the time-out of the settings does not reach the OpenAI client, which would wait 600 s and retry twice
    if hasattr(getattr(provider, "__dict__", {}).get("client"), "with_options"):
        provider.client = provider.client.with_options(timeout=settings.timeout, max_retries=0)
    return provider


class _GivenUpError(Exception):
    """No reply came: the question failed, was refused, or was no longer asked.

    ``counted`` is the word for it in ``Judge.counts``.
    """

    def __init__(self, line: str, counted: str) -> None:
        super().__init__(line)
        self.counted = counted


class _FilteredError(Exception):
    """A reply came with status 200, and refuses the question."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.line)
        self.failure = failure


def _warn(line: str) -> None:
    log().warning("{}", line)


def _within(seconds: float, work: Callable[[], Any]) -> Any:
    """Return the result of ``work`` if it comes in time; do not wait for a server that sends a little now and then.

    Raises:
        TimeoutError: ``work`` took too long; its thread is left behind.
        Exception: whatever ``work`` raised.
    """
    done: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((True, work()))
        except BaseException as error:
            # handed to the caller, which raises it in its own thread
            done.put((False, error))

    # a daemon: a server that never answers must not keep the process alive
    threading.Thread(target=run, daemon=True, name="magic-judge-request").start()
    try:
        fine, result = done.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if not fine:
        raise result
    return result


_QUIET = "lmms_eval.llm_judge.providers"
_quiet_lock = threading.Lock()
_quiet_users = 0


def _quietly(work: Callable[[], Any]) -> Any:
    """Run ``work`` without the provider's log lines ("All 1 attempts failed"): we tell each failure once."""
    global _quiet_users
    with _quiet_lock:
        # several threads ask at once: the log lines come back with the last of them
        _quiet_users += 1
        log().disable(_QUIET)
    try:
        return work()
    finally:
        with _quiet_lock:
            _quiet_users -= 1
            if not _quiet_users:
                log().enable(_QUIET)


__all__ = ["ASKS", "Judge", "judge_from"]
