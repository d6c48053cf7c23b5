"""Calls native aggregations again in a forked child, where all that they write, print, draw and remember stays."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import pickle
import signal
import stat
import sys
import tempfile
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Mapping
from multiprocessing import Pipe
from types import NoneType
from typing import Any, NamedTuple, NoReturn

from loguru import logger
from threadpoolctl import threadpool_limits

from lmms_patch.harness import compat
from lmms_patch.harness.names.effects import client_of
from lmms_patch.harness.wrap.calls import Aggregation, Draws, call_native, copied, draws, one_line, set_draws
from lmms_patch.harness.wrap.state import RunState
from lmms_patch.runs.scoring import Scalar, scalar

_SURE = 8
"""How many calls are made in both ways before those in a row are trusted."""


class CallError(Exception):
    """An aggregation gave nothing: why, in one line."""


class _Call(NamedTuple):
    """A call: of which metric's aggregation, with which items, from which state of the random generators, for how long."""

    metric: str
    items: list[Any]
    start: Draws
    seconds: float | None


class _Answer(NamedTuple):
    """The number that a call gave; else why it gave none, whether its process died, and whether its time was over."""

    value: Scalar
    error: str = ""
    died: bool = False
    over: bool = False


_DIED = _Answer(None, "its process died", died=True)


class Again:
    """The native aggregations of a task, for repeated calls without a trace.

    Two children are forked before the first call of an aggregation. One forks itself for each call, so that no call
    sees what another has left. The other makes its calls in a row, and sets only the plain values of the aggregation's
    module back after each. With 900 items, where the process has torch and holds 0.9 GB, a fork takes 33 ms and a call
    in a row 3 ms; and a bootstrap makes ten thousand calls. So the first calls are made in both ways, and an
    aggregation that always gives the same is called in a row from then on.

    Args:
        natives: the aggregations, by metric.
        state: holds the host's arguments.
        seconds: a call that takes longer is the last one of its metric.
    """

    def __init__(self, natives: Mapping[str, Aggregation], state: RunState, seconds: float) -> None:
        self._natives, self._state, self._seconds = natives, state, seconds
        self._lock = threading.Lock()
        self._children: list[_Child] = []
        self._tried = Counter[tuple[str, bool]]()
        """Calls made in both ways, by metric, and by whether they had several items."""
        self._apart, self._over = set[str](), dict[str, str]()
        """The metrics whose calls need a fork each; and those that are not called any more, with the reason."""

    def start(self) -> None:
        """Fork the children; called before an aggregation is first called in this process, whose memory they take along."""
        with self._lock:
            if not self._children and hasattr(os, "fork"):
                self._children = [_Child(self._natives, self._state.args, forks) for forks in (True, False)]

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
                answer = self._answer(_Call(metric, items, start or draws(), seconds))
        # items that cannot be sent, too
        except Exception as error:
            raise CallError(one_line(error)) from None
        if answer.error:
            raise CallError(answer.error)
        return answer.value

    def of_one(self, metric: str, item: Any) -> Scalar:
        """Return M of a single item, as the last way to get a scalar; None where M fails."""
        try:
            return self(metric, [item])
        except CallError:
            return None

    def _answer(self, call: _Call) -> _Answer:
        metric, several = call.metric, len(call.items) > 1
        if not self._children:
            return _Answer(None, "this system cannot fork a process in which to call it")
        if metric in self._over:
            return _Answer(None, self._over[metric])
        alone, in_a_row = self._children
        answer = in_a_row.ask(call) if metric not in self._apart else _DIED
        if not answer.over and (answer.died or self._tried[metric, several] < _SURE):
            self._tried[metric, several] += 1
            first, answer = answer, alone.ask(call)
            if answer != first:
                self._apart.add(metric)
            # then calls with one item were trusted already, or those with several
            if answer != first and not first.died and self._tried[metric, not several] >= _SURE:
                answer = _Answer(None, "it remembers what it was asked before", over=True)
        if answer.over:
            self._over[metric] = answer.error
        return answer


class _Child:
    """A forked child that makes calls. It has a process group and a working folder of its own.

    Args:
        natives: the aggregations, by metric.
        args: the host's arguments.
        forks: whether it forks itself for each call.
    """

    def __init__(self, natives: Mapping[str, Aggregation], args: Any, forks: bool) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lmms_patch_", ignore_cleanup_errors=True)
        self._pipe, theirs = Pipe()
        with warnings.catch_warnings():
            # of threads, whose locks the child may find taken: it then runs out of time
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            self._pipe.close()
            _serve(theirs, natives, args, self._folder.name, forks)
        theirs.close()
        self._end = weakref.finalize(self, _kill, pid, os.getpid())

    def ask(self, call: _Call) -> _Answer:
        """Return the answer to a call; where there is none in time, end the child."""
        # no ``send``, which would share a tensor's memory in place of copying it
        data = pickle.dumps(call)
        try:
            self._pipe.send_bytes(data)
            if self._pipe.poll(call.seconds):
                found: _Answer = self._pipe.recv()
                return found
            answer = _Answer(None, f"it did not end within {call.seconds:g} s", over=True)
        except (EOFError, OSError):
            answer = _DIED
        self._pipe.close()
        self._end()
        return answer


def _kill(pid: int, parent: int) -> None:
    """End a child with all processes that it has started; a forked copy of the parent leaves it alone."""
    if os.getpid() == parent:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(pid, 0)


def _serve(pipe: Any, natives: Mapping[str, Aggregation], args: Any, folder: str, forks: bool) -> NoReturn:
    """Make the calls from a pipe until the far end is closed."""
    status = 1
    modules = {metric: getattr(native, "__globals__", {}) for metric, native in natives.items()}
    try:
        _settle(pipe.fileno())
        kept = {metric: _plain(module) for metric, module in modules.items()}
        while True:
            call: _Call = pickle.loads(pipe.recv_bytes())
            if forks and (pid := os.fork()):
                if os.waitpid(pid, 0)[1]:
                    pipe.send(_DIED)
                continue
            # if the parent is killed meanwhile, nobody else ends a call that hangs
            signal.setitimer(signal.ITIMER_REAL, 2 * (call.seconds or 0))
            pipe.send(_called(natives[call.metric], call, args, folder))
            signal.setitimer(signal.ITIMER_REAL, 0)
            if forks:
                break
            modules[call.metric].update(pickle.loads(kept[call.metric]))
        status = 0
    finally:
        # nothing of the parent's may be ended, flushed or removed
        os._exit(status)


def _settle(pipe: int) -> None:
    """Make a forked child silent, a group of its own, and of one thread: pools of threads do not outlive a fork.

    Of all pipes and sockets it keeps one alone, or whoever waits for the end of another would wait for this child.
    """
    os.setpgid(0, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
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


def _called(native: Aggregation, call: _Call, args: Any, folder: str) -> _Answer:
    """Call an aggregation in a new working folder, to which ``args.output_path`` points too."""
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as here:
        os.chdir(here)
        elsewhere = copy.copy(args)
        if hasattr(elsewhere, "output_path"):
            elsewhere.output_path = here
        set_draws(call.start)
        try:
            return _Answer(scalar(call_native(native, call.items, elsewhere)))
        except BaseException as error:
            return _Answer(None, one_line(error))
        finally:
            os.chdir(folder)


def _plain(module: Mapping[str, Any]) -> bytes:
    """Return the plain values among a module's names, pickled; none where some cannot be."""
    plain = {
        name: value
        for name, value in module.items()
        if not name.startswith("__") and isinstance(value, (dict, list, set, int, float, str, NoneType))
    }
    with contextlib.suppress(Exception):
        return pickle.dumps(plain)
    return pickle.dumps({})
