"""Sends questions to a judge's server through lmms-eval's provider: with time-outs that hold, retries, and an end to hopeless tries.

lmms-eval's provider sends single requests; everything around them is done here. Why: in lmms-eval 0.7 the time-out of
the settings does not reach the OpenAI client (which waits 600 s and retries twice), every error is tried again after 10
s, even a wrong key, and a reply without text raises an ``AttributeError``.

Two kinds of failure are told apart. A server that refuses one question (too long, filtered) refuses that question
alone: the next one is asked. A server that cannot be reached, or fails, is given up after some questions.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from lmms_patch.harness.magic.judge_failures import Failure, NoTextError, failure_of, filtered, no_provider
from lmms_patch.magic.score.judge_settings import JudgeSettings
from lmms_patch.text import log

_LONGEST_PAUSE = 30.0
_LONGEST_RETRY_AFTER = 300.0


class Sender:
    """Sends questions to the server of a judge, until the server is given up. Several threads may send at once.

    Args:
        settings: the settings of the judge; they name a model.
        count: counts what happens (``Judge.counts``).

    Attributes:
        stopped: why nothing is sent any more; "" while questions are sent.
    """

    def __init__(self, settings: JudgeSettings, count: Callable[[str], None]) -> None:
        self._settings, self._count = settings, count
        self.stopped = ""
        self._lock = threading.Lock()
        self._over = threading.Event()
        # the reason of the last failures, and how many there were in a row
        self._row: tuple[str, int] = ("", 0)
        # whether the next failure ends the sending again (``resume``)
        self._trying = False
        # whether any reply came so far
        self._answered = False
        # questions that were refused before any reply came
        self._refused = 0
        self._provider: Any = None

    def send(self, text: str) -> tuple[str, str]:
        """Send a question, with retries, and return the reply and the name of the model that answered.

        Raises:
            GivenUpError: no reply came, or nothing is asked any more.
            NoTextError: a reply without text came.
        """
        for attempt in range(self._settings.retries + 1):
            if self.stopped:
                raise GivenUpError(f"not asked: {self.stopped}", "skipped")
            try:
                reply = self._once(text)
            except NoTextError:
                self._went_well()
                raise
            except Exception as error:
                failure = (
                    error.failure
                    if isinstance(error, _FilteredError)
                    else failure_of(error, self._settings.timeout, os.environ)
                )
                if failure.of_question:
                    self._was_refused(failure)
                    raise GivenUpError(failure.line, "refused") from None
                if failure.fatal or not failure.may_pass or attempt == self._settings.retries:
                    self._went_wrong(failure)
                    tries = f" ({attempt + 1} tries)" if attempt else ""
                    raise GivenUpError(f"{failure.line}{tries}", "failed") from None
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
        return float(min(self._settings.backoff * 2**attempt, _LONGEST_PAUSE))

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
            response = _within(self._settings.timeout, lambda: _quietly(lambda: provider.evaluate(request)))
        except AttributeError as error:
            # the provider calls strip() on the text of a reply that has none
            if error.name == "strip" and error.obj is None:
                raise NoTextError from None
            raise
        if (refused := filtered(response.raw_response)) is not None:
            raise _FilteredError(refused)
        return str(response.content), str(response.model_used or self._settings.model)

    def _get_provider(self) -> Any:
        """Return lmms-eval's provider, made at the first request."""
        with self._lock:
            if self._provider is None:
                self._provider = _provider(self._settings)
            return self._provider

    def interrupt(self) -> None:
        """Send nothing any more, since the run was interrupted."""
        self.stopped = self.stopped or "the run was interrupted"
        # ends the pauses between tries
        self._over.set()

    def resume(self) -> None:
        """Send again, where the server was given up, since the server may be back.

        The first question that then fails ends the sending again.
        """
        with self._lock:
            if self.stopped:
                self.stopped, self._row, self._trying = "", ("", 0), True
                self._over.clear()

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
            tell = self._refused == self._settings.give_up and not self._answered
        if tell:
            warn(
                f"MAGIC judge {self._settings.model}: refused each of the first {self._settings.give_up} questions, and is asked on: {failure.line}. "
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
            if not failure.fatal and not again and number < self._settings.give_up:
                return
            self.stopped = f"the judge was given up ({failure.line})"
            self._over.set()
        questions = "" if failure.fatal else ", as before" if again else f" after {number} questions in a row"
        warn(
            f"MAGIC judge {self._settings.model}: no more is asked{questions}: {failure.line}. "
            "What is not judged is counted; running again asks only for that"
        )


def _provider(settings: JudgeSettings) -> Any:
    """Make lmms-eval's provider for these settings, with our time-out and without the provider's retries.

    Raises:
        NoProviderError: the provider cannot be made, or has no key.
    """
    from lmms_eval.llm_judge import ProviderFactory, ServerConfig

    # a single try without a pause: retries are ours (``Sender.send``)
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


class GivenUpError(Exception):
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


def warn(line: str) -> None:
    """Log a line, whatever braces are in the line."""
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
