"""Calls of native aggregations: as the host makes them, and again in a forked child, where all that they write, print, draw and remember stays."""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
import os
import pickle
import random
import signal
import stat
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import Pipe
from types import NoneType
from typing import Any, NamedTuple, NoReturn

import numpy as np
from loguru import logger
from threadpoolctl import threadpool_limits

from lmms_patch.harness import compat
from lmms_patch.harness.names.effects import client_of
from lmms_patch.runs.scoring import Scalar, scalar
from lmms_patch.text import line

Aggregation = Callable[[list[Any]], Any]
Draws = tuple[Any, Any]
"""A state of the process's random generators: Python's, and NumPy's global one."""
_SURE = 8
"""How many calls are made twice before an aggregation is held to remember nothing."""


def one_line(error: BaseException) -> str:
    """Return an exception as a single line; of the host's ``RetryError``, the exception that it hides."""
    attempt = getattr(error, "last_attempt", None)
    error = (attempt.exception() if attempt is not None else None) or error
    return line(f"{type(error).__name__}: {error}")


def copied(items: list[Any]) -> list[Any]:
    """Return a copy of the items for a single call: some aggregations change their items.

    The items themselves where they cannot be copied.
    """
    try:
        return copy.deepcopy(items)
    except Exception:
        return list(items)


def takes_args(native: Aggregation) -> bool:
    """Return whether the host hands its command-line arguments to this aggregation."""
    return "args" in inspect.signature(native).parameters


def call_native(native: Aggregation, items: list[Any], args: Any) -> Any:
    """Call a native aggregation as the host does."""
    return native(items, args=args) if takes_args(native) else native(items)  # type: ignore[call-arg]


# --- random numbers -------------------------------------------------------------------------------


def draws() -> Draws:
    """Return the state of the process's random generators."""
    return random.getstate(), np.random.get_state()


def set_draws(to: Draws) -> None:
    """Set the state of the process's random generators."""
    random.setstate(to[0])
    np.random.set_state(to[1])


def same_draws(one: Draws, other: Draws) -> bool:
    """Return whether no random number was drawn between two states."""
    # the second part of NumPy's state is an array, which ``==`` alone does not compare
    (python, (_, *numpy)), (python_then, (_, *numpy_then)) = one, other
    return python == python_then and numpy[1:] == numpy_then[1:] and bool((numpy[0] == numpy_then[0]).all())


@contextlib.contextmanager
def undrawn() -> Iterator[None]:
    """Restore the process's random generators afterwards."""
    before = draws()
    try:
        yield
    finally:
        set_draws(before)


# --- again ----------------------------------------------------------------------------------------


class CallError(Exception):
    """An aggregation gave nothing: why, in one line."""


class _Call(NamedTuple):
    """A call: of which metric's aggregation, with which items, from which state of the random generators, for how long."""

    metric: str
    items: list[Any]
    start: Draws
    seconds: float | None


_Answer = tuple[Scalar, str]
"""The number that a call gave, and why it gave none."""


class Again:
    """The native aggregations of a task, for repeated calls without a trace.

    A child is forked before the first call of an aggregation. It makes all calls in a row, and sets the plain values of
    the aggregation's module back after each. An aggregation that gives another number the second time it is asked the
    same is not called any more. Why not a fork for each call: where the process has torch and holds 0.9 GB, it takes
    33 ms, a call in a row 3 ms, and a bootstrap makes ten thousand calls.

    Args:
        natives: the aggregations, by metric.
        state: holds the host's arguments (``known.RunState``).
        seconds: a call that takes longer is the last one.
    """

    def __init__(self, natives: Mapping[str, Aggregation], state: Any, seconds: float) -> None:
        self._natives, self._state, self._seconds = natives, state, seconds
        self._lock = threading.Lock()
        self._pipe: Any = None
        self._ended = ""
        """Why the child makes no more calls; "" while it does."""
        self._tried = Counter[tuple[str, bool]]()
        """Calls made twice, by metric, and by whether they had several items."""
        self._remembers = set[str]()

    def start(self) -> None:
        """Fork the child; called before an aggregation is first called in this process, whose memory it takes along."""
        with self._lock:
            if self._pipe is not None:
                return
            self._pipe, theirs = Pipe()
            with warnings.catch_warnings():
                # of threads, whose locks the child may find taken: it then runs out of time
                warnings.simplefilter("ignore", DeprecationWarning)
                self._child = os.fork()
            if not self._child:
                self._pipe.close()
                _serve(theirs, self._natives, self._state.args)
            theirs.close()

    def __call__(self, metric: str, items: list[Any], start: Draws | None = None) -> Scalar:
        """Return M of some items, as a number.

        Args:
            metric: the metric.
            items: its native items; they are not changed.
            start: the state from which random numbers are drawn; None: the present one.

        Raises:
            CallError: M raised, died, or took too long.
        """
        native = self._natives[metric]
        try:
            # the host's own functions leave nothing anywhere
            if compat.has_stderr(native):
                return scalar(call_native(native, copied(items), None))
            self.start()
            # a judge may take its time
            seconds = None if client_of(native) else self._seconds
            with self._lock:
                value, why = self._asked(_Call(metric, items, start or draws(), seconds), len(items) > 1)
        # items that cannot be sent, too
        except Exception as error:
            raise CallError(one_line(error)) from None
        if why:
            raise CallError(why)
        return value

    def of_one(self, metric: str, item: Any) -> Scalar:
        """Return M of a single item, as the last way to get a scalar; None where M fails."""
        try:
            return self(metric, [item])
        except CallError:
            return None

    def _asked(self, call: _Call, several: bool) -> _Answer:
        answer = self._answer(call)
        # a judge, for which there is no limit, is paid once
        if call.seconds is not None and self._tried[call.metric, several] < _SURE:
            self._tried[call.metric, several] += 1
            # calls with several items may show what those with one did not
            if self._answer(call) != answer:
                self._remembers.add(call.metric)
        return (None, "it remembers what it was asked before") if call.metric in self._remembers else answer

    def _answer(self, call: _Call) -> _Answer:
        """Return the child's answer to a call; where there is none in time, end the child."""
        if self._ended:
            return None, self._ended
        # no ``send``, which would share a tensor's memory in place of copying it
        data = pickle.dumps(call)
        try:
            self._pipe.send_bytes(data)
            if self._pipe.poll(call.seconds):
                found: _Answer = self._pipe.recv()
                return found
            self._ended = f"it did not end within {call.seconds:g} s"
        except (EOFError, OSError):
            self._ended = "its process died"
        # with all that it has started
        with contextlib.suppress(OSError):
            os.killpg(self._child, signal.SIGKILL)
        return None, self._ended


def _serve(pipe: Any, natives: Mapping[str, Aggregation], args: Any) -> NoReturn:
    """Make the calls from a pipe until the far end is closed."""
    modules = {metric: getattr(native, "__globals__", {}) for metric, native in natives.items()}
    try:
        _settle(pipe.fileno())
        kept = {metric: _plain(module) for metric, module in modules.items()}
        while True:
            call: _Call = pickle.loads(pipe.recv_bytes())
            # if the parent is killed meanwhile, nobody else ends a call that hangs
            signal.setitimer(signal.ITIMER_REAL, 2 * (call.seconds or 0))
            pipe.send(_called(natives[call.metric], call, args))
            signal.setitimer(signal.ITIMER_REAL, 0)
            modules[call.metric].update(pickle.loads(kept[call.metric]))
    finally:
        # at once, with all that was started: nothing of the parent's may be flushed or removed
        with contextlib.suppress(OSError):
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(1)


def _settle(pipe: int) -> None:
    """Make a forked child silent, a group of its own, and of one thread: pools of threads do not outlive a fork.

    Of all pipes and sockets it keeps one alone, or whoever waits for the end of another would wait for this child.
    """
    os.setpgid(0, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the child ends
    for number in (1, 2, *map(int, os.listdir("/dev/fd"))):
        # the folder's own number is free again
        with contextlib.suppress(OSError):
            mode = os.fstat(number).st_mode
            if number in (1, 2) or (number != pipe and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))):
                os.dup2(sys.stdout.fileno(), number)
    logger.disable("")
    logging.disable()
    threadpool_limits(1)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _called(native: Aggregation, call: _Call, args: Any) -> _Answer:
    """Call an aggregation in a new working folder, to which ``args.output_path`` points too."""
    with tempfile.TemporaryDirectory(prefix="lmms_patch_", ignore_cleanup_errors=True) as here:
        os.chdir(here)
        elsewhere = copy.copy(args)
        if hasattr(elsewhere, "output_path"):
            elsewhere.output_path = here
        set_draws(call.start)
        try:
            return scalar(call_native(native, call.items, elsewhere)), ""
        except BaseException as error:
            return None, one_line(error)
        finally:
            os.chdir("/")


def _plain(module: Mapping[str, Any]) -> bytes:
    """Return the plain values among a module's names, pickled; none where some cannot be."""
    plain = {
        name: value
        for name, value in module.items()
        if not name.startswith("__") and isinstance(value, (dict, list, set, int, float, str, NoneType))
    }
    try:
        return pickle.dumps(plain)
    except Exception:
        return pickle.dumps({})
