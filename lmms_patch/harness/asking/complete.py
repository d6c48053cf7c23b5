"""Checks what an adapter gives back: as many answers as requests, texts, and none that stands for a failed call.

The host pairs answers and requests by their place, so a list that lacks its fourth answer gives all later requests the
answer of their neighbour. And three in four adapters catch an exception of their model, write it to the log, and answer
"", the answer before, or a text of their own (``compat`` has the table).
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import lmms_eval.models
from loguru import logger

from lmms_patch.errors import PatchError
from lmms_patch.harness import compat
from lmms_patch.harness.asking.rounds import Ranks
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.text import log

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance

TRIED = 8
"""Calls that are repeated one by one before a portion is given up in which all of them failed again."""
_KINDS = ("generate_until", "loglikelihood")
_MODELS = os.path.dirname(lmms_eval.models.__file__)
_UNEQUAL = "the adapter gave another number of answers than requests"


class Complete:
    """Wraps a model and repairs its returns: an answer for each request, and ``compat.Lost`` for each failed call.

    Args:
        model: the host's model. All of its attributes are reached through this object.
        adapter: ``compat.adapter_of`` the model.
        ranks: this process, and how many share the run. Nothing is asked again where there are several: a sharded model
        would wait for the others.
        told: the kinds of faults that were said; one set for the whole run.
        knows: says whether a text may be the answer to a request, though adapters write it where a call failed.
        catches: whether the calls of a portion that raises are failed calls. Else the exception ends the run.
    """

    def __init__(
        self,
        model: Any,
        adapter: str,
        ranks: Ranks,
        told: set[str],
        knows: Callable[[Instance, str], bool],
        *,
        catches: bool = False,
    ) -> None:
        self._model, self._adapter, self._alone, self._told = model, adapter, ranks.world == 1, told
        self._knows, self._last, self._met = knows, "", dict[str, Any]()
        self._foreign = not type(model).__module__.startswith("lmms_eval.")
        self._catches, self._given_up, self._answered = catches, "", False

    def __getattr__(self, name: str) -> Any:
        return self._ask if name in _KINDS else getattr(self._model, name)

    def _call(self, requests: Sequence[Instance]) -> list[Any]:
        """Return what the model gives for requests of a kind."""
        return list(getattr(self._model, requests[0].request_type)(requests)) if requests else []

    def _ask(self, requests: Sequence[Instance]) -> list[Any]:
        """Ask the model, and return an answer for each request; ``compat.Lost`` for a failed call."""
        if self._given_up:
            return [compat.Lost(self._given_up)] * len(requests)
        try:
            answers = self._complete(requests)
        except Exception as error:
            # a mistake of the user ends the run: it is no failed call
            if not self._catches or isinstance(error, PatchError):
                raise
            answers = self._one_by_one(requests, one_line(error))
            # where all of them fail, the adapter most likely raises on every such request
            if not self._answered and all(map(_is_lost, answers)):
                self._given_up = one_line(error)
        self._answered |= not all(map(_is_lost, answers))
        return answers

    def _complete(self, requests: Sequence[Instance]) -> list[Any]:
        """Ask the model; ask again after too few or too many answers, or after empty answers in place of an error."""
        with self._swallowed() as errors:
            answers = self._call(requests)
        if len(answers) != len(requests):
            why = f"{len(answers):,} answers came to {len(requests):,} requests, and which answer belongs to which request is not known"
            self._say("length", why)
            return self._one_by_one(requests, _UNEQUAL)
        answers = list(map(self._checked, requests, answers))
        texts = [self._last, *map(compat.text_of, answers)]
        # two answers that differ are enough
        for request, text in zip(requests, texts[1:], strict=True):
            if text and len(self._met) < 2:
                self._met.setdefault(text, request)
        self._last = texts[-1]
        if not errors:
            return answers
        # an adapter that is known to repeat its last answer leaves no answer of the portion to trust
        every = self._adapter in compat.REPEATS
        empty = [place for place, answer in enumerate(answers) if _is_empty(answer) and not every]
        repeated = [
            place
            for place, (before, text) in enumerate(itertools.pairwise(texts))
            if every or (self._foreign and errors.caught and text == before and place not in empty)
        ]
        for doubtful, told in ((empty, "an empty answer"), (repeated, "the answer before")):
            if doubtful:
                self._say("swallowed", f"{errors[0]}: the adapter went on with {told}")
                again = self._one_by_one([requests[place] for place in doubtful], errors[0])
                for place, answer in zip(doubtful, again, strict=True):
                    answers[place] = answer
        return answers

    def _checked(self, request: Instance, given: Any) -> Any:
        """Return an answer, or ``compat.Lost`` in place of a value or a text standing for a failed call."""
        answer = compat.checked(given, request.request_type)
        text = compat.text_of(answer)
        doubtful = isinstance(text, str) and compat.DOUBTFUL.fullmatch(text.strip())
        lost = doubtful and not self._knows(request, text)
        return compat.Lost(" ".join(text.split())[: compat.LONGEST_FAILURE]) if lost else answer

    def _one_by_one(self, requests: Sequence[Instance], why: str) -> list[Any]:
        """Ask each request alone. If the first ``TRIED`` fail again, leave the rest unasked.

        Returns:
            The answers; ``compat.Lost`` for those that failed again, and with ``why`` for those that were not asked.
        """
        answers: list[Any] = [compat.Lost(why)] * len(requests)
        for place, request in enumerate(requests if self._alone else ()):
            if place == TRIED and all(map(_is_lost, answers[:place])):
                break
            answers[place] = self._one(request)
        return answers

    def _one(self, request: Instance) -> Any:
        try:
            with self._swallowed() as errors:
                answers = self._call([request])
        except Exception as error:
            # some adapters hand on what another request left, and fail where there was none
            return compat.Lost(one_line(error))
        if len(answers) != 1:
            return compat.Lost(_UNEQUAL)
        answer, before = self._checked(request, answers[0]), self._last
        self._last = compat.text_of(answer)
        repeats = errors.caught and self._foreign and self._last == before
        lost = bool(errors) and (_is_empty(answer) or (repeats and self._is_repeated(request)))
        return compat.Lost(errors[0]) if lost else answer

    def _is_repeated(self, request: Instance) -> bool:
        """Return whether a failed call gives the answer to the request before: asked after another, it gives that one's.

        An adapter that tries again, and tells of it, gives equal answers to many requests rightly.
        """
        other = next((met for text, met in self._met.items() if text != self._last), None)
        if other is None:
            return False
        first, second = (compat.text_of(next(iter(self._call([one])), "")) for one in (other, request))
        told, self._last = self._last, second
        return bool(first == second and first != told)

    def _say(self, about: str, why: str) -> None:
        """Say each kind of fault once in a run."""
        if about not in self._told:
            self._told.add(about)
            then = "they are asked again one by one" if self._alone else "they count as failed calls"
            log().warning(f"{type(self._model).__name__}: {why}; {then}")

    @contextlib.contextmanager
    def _swallowed(self) -> Iterator[_Errors]:
        """Collect what the adapter logs as an error, or logs while handling an exception, on a line each.

        The sink is called by the thread that logs, so the exception that this thread handles can be seen there.
        """
        found = _Errors()
        folder = os.path.dirname(str(getattr(sys.modules.get(type(self._model).__module__), "__file__", "") or "?"))

        def note(path: str, level: int, text: str, caught: bool) -> None:
            if (level >= logging.ERROR or caught) and os.path.dirname(path).startswith((folder, _MODELS)):
                found.append(" ".join(text.split())[: compat.LONGEST_FAILURE])
                found.caught |= caught

        def note_loguru(told: str) -> None:
            path, level, text = told.split("\t", 2)
            note(path, int(level), text, sys.exc_info()[0] is not None)

        class Noting(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                caught = bool(record.exc_info) or sys.exc_info()[0] is not None
                note(record.pathname, record.levelno, record.getMessage(), caught)

        handler = Noting()
        # level 0, since adapters log exceptions at any level
        sink = logger.add(note_loguru, level=0, format="{file.path}\t{level.no}\t{message}")
        logging.getLogger().addHandler(handler)
        try:
            yield found
        finally:
            logger.remove(sink)
            logging.getLogger().removeHandler(handler)


class _Errors(list[str]):
    """What an adapter logged of errors, a line each.

    Attributes:
        caught: whether it handled an exception at any of them.
    """

    caught = False


def _is_lost(answer: Any) -> bool:
    return isinstance(answer, compat.Lost)


def _is_empty(answer: Any) -> bool:
    text = compat.text_of(answer)
    return isinstance(text, str) and not text.strip() and not _is_lost(text)
