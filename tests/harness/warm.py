"""The real command lines of the harness and of lmms-patch without the 10 s of their start: a process that has imported the harness is forked for each.

A forked process is one of its own: it reads its arguments, environment and folder as the command does, and ends with the command's exit status.
What it cannot show is the start itself; ``tests/harness/test_planted.py`` and ``test_readme.py`` have runs of the installed commands for that.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from tests.places import ROOT

BIN = Path(sys.executable).parent

LATER = ("lmms_patch.harness.models.mosaic_vlm", "lmms_patch.harness.wrap.task", "nltk", "pytablewriter", "sklearn.ensemble")
"""What nearly every run imports after its start: a forked process that finds them imported saves a second of processor time."""

_server: list[subprocess.Popen[str]] = []


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path | str | None = None,
    timeout: float = 900,
    kill_at: str = "",
    ranks: int = 1,
    first: str = "",
) -> tuple[int, str, str]:
    """Run one command line of ``lmms-eval`` or ``lmms-patch``.

    Args:
        command: the name of the command, and its arguments.
        environment: its environment variables.
        cwd: the folder it runs in.
        timeout: seconds, after which it is ended.
        kill_at: a text; as soon as it stands on stderr, the process is killed (SIGKILL).
        ranks: how many processes run the command, each with the variables that ``torchrun`` gives it.
        first: Python code that each process runs before the command.

    Returns:
        The exit status (that of a killed process is -9), and what was printed on stdout and on stderr.
    """
    server = _started()
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("stdout", "stderr")]
        pid = Path(folder, "pid")
        request = {"argv": list(command), "environment": dict(environment), "cwd": str(cwd or Path.cwd()), "streams": [str(path) for path in streams]}
        server.stdin.write(json.dumps({**request, "pid": str(pid), "ranks": ranks, "first": first}) + "\n")
        server.stdin.flush()
        deadline, ended = time.monotonic() + timeout, []
        while not ended and time.monotonic() < deadline:
            if kill_at and streams[1].exists() and kill_at in streams[1].read_text(encoding="utf-8", errors="replace"):
                os.kill(int(pid.read_text()), signal.SIGKILL)
                kill_at = ""
            ended = select.select([server.stdout], [], [], 0.01 if kill_at else 1)[0]
        if not ended:
            _stop()
        printed = [path.read_text(encoding="utf-8", errors="replace") if path.exists() else "" for path in streams]
        if not ended:
            raise TimeoutError(f"{' '.join(command)}: more than {timeout} s; {printed[1][-4000:]}")
        return int(server.stdout.readline()), printed[0], printed[1]


def _started() -> subprocess.Popen[str]:
    if not _server:
        start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.harness import warm; warm.serve()"
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        made = subprocess.Popen(
            [sys.executable, "-c", start], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        _server.append(made)
        atexit.register(_stop)
    return _server[0]


def _stop() -> None:
    """End the server, and the run that it waits for."""
    if _server:
        server = _server.pop()
        if server.poll() is None:
            os.killpg(server.pid, 9)
        server.communicate()


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


def serve() -> None:
    """Fork for each request, and answer with its exit status."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the answers' stream is for them alone
    sys.path[:2] = [str(BIN)]  # as the commands have it; in front were this checkout and the current folder
    import lmms_eval.__main__  # noqa: F401 - what takes long
    from lmms_eval.cli import dispatch
    from lmms_eval.tasks import TaskManager
    from transformers import conversion_mapping

    from lmms_patch.app import cli

    index_once()
    TaskManager("ERROR")
    for module in LATER:
        importlib.import_module(module)
    conversion_mapping.get_checkpoint_conversion_mapping("any")  # compiles patterns for every model that transformers knows, once
    gc.freeze()  # garbage collections of forked processes would copy all the memory that they share with this one
    atexit.register(gc.unfreeze)  # C extensions report what is alive at the end as leaks
    for line in sys.stdin:
        request = json.loads(line)
        ranks, port, children = request.pop("ranks"), _free_port(), list[int]()
        for rank in range(ranks):
            children.append(os.fork())
            if not children[-1]:
                _become(**request, launcher=_of_rank(rank, ranks, port) if ranks > 1 else {})
                os._exit(_ended({"lmms-eval": dispatch.main, "lmms-patch": cli.main}[sys.argv[0]]))
        ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        answers.write(f"{next(filter(None, ended), 0)}\n")
        answers.flush()


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
    threading._shutdown()  # private, but there is no other way to wait for all threads as the interpreter does at its end
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _become(argv: list[str], environment: dict[str, str], cwd: str, streams: list[str], pid: str, first: str, launcher: dict[str, str]) -> None:
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
    exec(first, {})
