"""The real command lines of the harness and of lmms-patch without the 10 s of their start: a process that has imported the harness is forked for each.

A forked process is one of its own: it reads its arguments, environment and folder as the command does, and ends with
the command's exit status. What it cannot show is the start itself; ``tests/harness/test_planted.py`` and
``test_readme.py`` have runs of the installed commands for that.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import math
import os
import pickle
import select
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from unittest import mock

from loguru import logger

from tests.places import ROOT

BIN = Path(sys.executable).parent

LATER = (
    "lmms_patch.harness.asking.seam", "lmms_patch.harness.magic.tasks", "lmms_patch.harness.models.mosaic_vlm",
    "lmms_patch.harness.names.catalog", "lmms_patch.harness.wrap.task", "lmms_patch.runs.samples", "nltk",
    "pytablewriter", "sklearn.ensemble", "transformers.models.qwen2_5_vl.modeling_qwen2_5_vl",
)  # fmt: skip
"""What nearly every run imports after its start: a forked process that finds them imported saves a second of processor time."""


class Server(NamedTuple):
    """The process that is forked for each command."""

    pid: int
    requests: TextIO
    answers: TextIO


_server: list[Server] = []

LIGHTER = """
import sys, types
for name, words in {"evaluation_suite": "EvaluationSuite", "evaluator": "AudioClassificationEvaluator AutomaticSpeechRecognitionEvaluator Evaluator "
    "ImageClassificationEvaluator QuestionAnsweringEvaluator SummarizationEvaluator Text2TextGenerationEvaluator TextClassificationEvaluator "
    "TextGenerationEvaluator TokenClassificationEvaluator TranslationEvaluator evaluator"}.items():
    sys.modules["evaluate." + name] = module = types.ModuleType(name)
    vars(module).update(dict.fromkeys(words.split()))
"""
"""Code for a process that imports the harness from nothing: half of that time goes into pipelines of transformers, which ``evaluate`` imports and the
harness never uses."""


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path | str | None = None,
    timeout: float = 900,
    kill_at: str = "",
    kill_after: float = math.inf,
    ranks: int = 1,
    first: str = "",
) -> tuple[int, str, str]:
    """Run one command line of ``lmms-eval`` or ``lmms-patch`` in a forked process.

    ``python`` runs only the code ``first``.

    Args:
        command: the name of the command, and its arguments.
        environment: its environment variables.
        cwd: the folder it runs in.
        timeout: seconds, after which it is ended.
        kill_at: a text; as soon as it stands on stderr, the process is killed (SIGKILL).
        kill_after: after so many seconds it is killed likewise.
        ranks: how many processes run the command, each with the variables that ``torchrun`` gives it.
        first: Python code that each process runs before the command.

    Returns:
        The exit status (that of a killed process is -9), and what was printed on stdout and on stderr.
    """
    server = _started()
    _wait_for_another_second(command)
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("stdout", "stderr")]
        pid = Path(folder, "pid")
        request = {
            "argv": list(command),
            "environment": dict(environment),
            "cwd": str(cwd or Path.cwd()),
            "streams": [str(path) for path in streams],
        }
        server.requests.write(json.dumps({**request, "pid": str(pid), "ranks": ranks, "first": first}) + "\n")
        server.requests.flush()
        started = time.monotonic()
        deadline, ended = started + timeout, []
        while not ended and time.monotonic() < deadline:
            told = kill_at and streams[1].exists() and kill_at in streams[1].read_text("utf-8", "replace")
            if told or (time.monotonic() > started + kill_after and pid.exists()):
                os.kill(int(pid.read_text()), signal.SIGKILL)
                kill_at, kill_after = "", math.inf
            soon = kill_at or kill_after < math.inf
            ended = select.select([server.answers], [], [], 0.01 if soon else 1)[0]
        if not ended:
            _stop()
        printed = [path.read_text(encoding="utf-8", errors="replace") if path.exists() else "" for path in streams]
        if not ended:
            raise TimeoutError(f"{' '.join(command)}: more than {timeout} s; {printed[1][-4000:]}")
        if "--output_path" in command:
            _wrote[command[command.index("--output_path") + 1]] = int(time.time())
        return int(server.answers.readline()), printed[0], printed[1]


_wrote: dict[str, int] = {}
"""By output folder, the second in which a run may last have written into it."""


def _wait_for_another_second(command: Sequence[str]) -> None:
    """Wait until the names of files in the output folder differ from those of the last run: the host makes them of the time in seconds."""
    if "--output_path" in command:
        out = command[command.index("--output_path") + 1]
        if _wrote.get(out) == int(time.time()):
            time.sleep(1 - time.time() % 1)


def _started() -> Server:
    """Return the server; start a process for it, if none was forked by ``prepare``."""
    if not _server:
        start = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.harness import warm; warm.become_server(0, 1)"
        )
        (theirs, requests), (answers, ours) = os.pipe(), os.pipe()
        streams = [(os.POSIX_SPAWN_DUP2, theirs, 0), (os.POSIX_SPAWN_DUP2, ours, 1)]
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-c", start],
            {**os.environ, "PYTHONUNBUFFERED": "1"},
            file_actions=streams,
            setsid=True,
        )
        _keep(pid, requests, answers, theirs, ours)
    return _server[0]


def prepare() -> None:
    """Import the harness, and fork the server from this process: early, before tests have changed anything, so that it is imported once for both."""
    with (
        contextlib.redirect_stdout(sys.__stdout__),
        contextlib.redirect_stderr(sys.__stderr__),
    ):  # handlers keep what they find at their import
        _import()
    (theirs, requests), (answers, ours) = os.pipe(), os.pipe()
    if pid := os.fork():
        _keep(pid, requests, answers, theirs, ours)
        return
    try:
        os.setsid()
        os.close(requests)
        os.close(answers)
        _forget_pytest()
        become_server(theirs, ours)
    finally:
        os._exit(1)


def _forget_pytest() -> None:
    """Undo what pytest has changed in this process so far, and what ``conftest`` has."""
    for name in ("stdout", "stderr"):
        setattr(sys, name, getattr(sys, f"__{name}__"))
        getattr(sys, name).reconfigure(line_buffering=True)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("_pytest")]
    gc.enable()


def _keep(pid: int, requests: int, answers: int, *theirs: int) -> None:
    for one in theirs:
        os.close(one)
    _server.append(Server(pid, os.fdopen(requests, "w"), os.fdopen(answers)))
    atexit.register(_stop, os.getpid())


def _stop(owner: int = 0) -> None:
    """End the server, and the run that it waits for; not where a copy of its owner ends."""
    if _server and owner in (0, os.getpid()):
        server = _server.pop()
        os.killpg(server.pid, signal.SIGKILL)
        os.waitpid(server.pid, 0)
        server.requests.close()
        server.answers.close()


def index_once() -> Callable[[], None]:
    """Let this process list the host's 1,700 task files once, and ask once which commit it runs from: the host does both whenever it evaluates.

    Returns:
        What undoes it.
    """
    from lmms_eval import utils
    from lmms_eval.tasks import TaskManager

    from lmms_patch.harness.plugin import install

    install()
    read, known = TaskManager._get_task_and_group, dict[str, bytes]()

    @functools.wraps(read)
    def cached(self: Any, task_dir: Any) -> Any:
        task_dir = str(task_dir)
        if "site-packages" not in task_dir and not task_dir.endswith("/tasks"):
            return read(self, task_dir)
        if task_dir not in known:
            known[task_dir] = pickle.dumps(read(self, task_dir))
        return pickle.loads(known[task_dir])

    patches = contextlib.ExitStack()
    patches.enter_context(mock.patch.object(TaskManager, "_get_task_and_group", cached))
    patches.enter_context(mock.patch.object(utils, "_git_output", functools.cache(utils._git_output)))
    return patches.close


@functools.cache
def _import() -> None:
    """Import what takes long, and let the host compile a task's template once, not for each doc."""
    import lmms_eval.__main__  # noqa: F401 - imported once here, so that each forked command finds it loaded
    from lmms_eval import utils

    from lmms_patch.app import cli  # noqa: F401 - likewise

    utils.env.from_string = functools.lru_cache(utils.env.from_string)


def become_server(requests: int, answers: int) -> None:
    """Fork for each request that comes on one descriptor, and answer on the other with its exit status."""
    asked, answer = os.fdopen(os.dup(requests)), os.fdopen(os.dup(answers), "w")
    os.dup2(2, 1)  # the answers' stream is for them alone
    library = next(
        at for at, path in enumerate(sys.path) if path.endswith(".zip")
    )  # before it is what this process was given
    sys.path[:library] = [
        str(BIN),
        *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)),
    ]  # as the commands have it
    for line in asked:
        _warm()
        request = json.loads(line)
        ranks, port, children = request.pop("ranks"), _free_port(), list[int]()
        for rank in range(ranks):
            children.append(os.fork())
            if not children[-1]:
                launcher = _of_rank(rank, ranks, port) if ranks > 1 else {}
                os._exit(_ended(functools.partial(_run_command, **request, launcher=launcher)))
        ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        answer.write(f"{next(filter(None, ended), 0)}\n")
        answer.flush()


@functools.cache
def _warm() -> None:
    """Do once what every run would do after its start."""
    _import()
    from lmms_eval.tasks import TaskManager
    from transformers import conversion_mapping

    logger.remove()
    index_once()
    TaskManager("ERROR")
    logger.add(sys.stderr)
    for module in LATER:
        importlib.import_module(module)
    conversion_mapping.get_checkpoint_conversion_mapping(
        "any"
    )  # compiles patterns for every model that transformers knows, once
    gc.freeze()  # garbage collections of forked processes would copy all the memory that they share with this one
    atexit.register(gc.unfreeze)  # C extensions report what is alive at the end as leaks


def _run_command(first: str, **request: Any) -> Any:
    from lmms_eval.cli import dispatch

    from lmms_patch.app import cli

    _become(**request)
    exec(first, {})
    return {"lmms-eval": dispatch.main, "lmms-patch": cli.main, "python": lambda: 0}[sys.argv[0]]()


def _of_rank(rank: int, ranks: int, port: int) -> dict[str, str]:
    """Return the environment variables that ``torchrun`` would set for one of several processes on this machine."""
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_PORT": port}
    return {"MASTER_ADDR": "127.0.0.1", **{name: str(value) for name, value in places.items()}}


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _ended(main: Callable[[], Any]) -> int:
    """Run a command and all that a process does at its end, but for freeing its memory: that takes 2 s, for copies of what it shares with the server.

    Returns:
        The exit status.
    """
    try:
        sys.exit(main())
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    # Private, but there is no other way to wait for all threads as the interpreter does at its end
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _become(
    argv: list[str], environment: dict[str, str], cwd: str, streams: list[str], pid: str, launcher: dict[str, str]
) -> None:
    import torch

    Path(pid).write_text(str(os.getpid()))
    sys.argv = argv
    os.environ.clear()
    os.environ.update({**environment, **launcher})
    os.chdir(cwd)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for at, path in enumerate(streams, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), at)
    if threads := os.environ.get("OMP_NUM_THREADS"):  # read when torch was imported, which is done
        torch.set_num_threads(int(threads))
