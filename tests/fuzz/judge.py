"""A case: a call, its files broken by a seed, what came of it, and what is wrong with that."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import signal
import traceback
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import typer

from lmms_patch.app import cli
from lmms_patch.errors import PatchError
from lmms_patch.runs import cache
from tests.fuzz.calls import KEEPS, STATUSES, Call, drawn
from tests.fuzz.damage import NUMBERS, TEXTS, damage

SECONDS = 20.0
"""Of processor time: what takes longer hangs. What waits for ever is ended by pytest-timeout."""
WRITES = ("output", "json_file", "junit", "export", "write")
"""Options whose value is written to: never outside of the case's own folder."""


@dataclass
class Ended:
    """What came of a case: its damage, what was typed and told, the status (None where the command raised), what is wrong."""

    damage: str
    typed: str
    told: str
    status: int | None
    wrong: list[str]


class OvertimeError(BaseException):
    """The case takes too long."""


def case(number: int, commands: Mapping[str, str], true: Path, folder: Path) -> Ended:
    """Run the case of a number, each of whose random choices is the number's own."""
    stream = Random(number)
    call = drawn(stream, stream.choice(list(commands.values())), true, folder)
    done, draw = [], stream.random()
    if call.inputs and draw < 0.9:
        for path in dict.fromkeys(stream.choices(call.inputs, k=stream.choice((1, 1, 1, 1, 3)))):
            if path.is_file():
                done.append(f"{path.relative_to(call.folder)}: {damage(stream, path)}")
    if not call.inputs or draw > 0.82:
        done.append(_odd_option(stream, call))
    done += [_before(stream, path) for path in call.outputs if stream.random() < 0.35]
    return judged(call, " | ".join(done))


def _odd_option(stream: Random, call: Call) -> str:
    """Type an option of the command with an odd value, or an option that there is not."""
    params = cli.built(*call.command.split()).params
    options = [
        one for one in params if one.param_type_name == "option" and one.name not in ("help", "with_images", "serve")
    ]
    if not options or stream.random() < 0.08:
        call.odd = True
        call.words.append(stream.choice(("--nothing", "-Z", "--", "", "x", "\udcff", "--json", "--help")))
        return "an option that there is not"
    option = stream.choice(options)
    call.words.append(stream.choice([*option.opts, *option.secondary_opts]))
    if getattr(option, "is_flag", False) and stream.random() < 0.95:
        return call.words[-1]
    odd = stream.choice((*map(str, NUMBERS), *TEXTS, "inf", "9" * 5000)).replace("\0", "")
    odd = odd.encode("utf-8", "replace").decode()  # other surrogates than those of a broken name cannot be typed
    if option.name in WRITES:
        odd = str(call.folder / "odd" / (odd.replace("/", "_").replace("..", "_") or "x"))
        call.odd, call.outputs = True, [*call.outputs, call.folder / "odd"]
    call.words.append(odd)
    return f"{option.name} {odd[:40]!r}"


def _before(stream: Random, output: Path) -> str:
    """Put something in the place of an output."""
    how = stream.choice(("older", "older", "folder", "link"))
    if how == "folder" or (how == "older" and not output.suffix):
        output.mkdir()
        (output / "mine.txt").write_text("mine")
    elif how == "link":
        output.symlink_to(output.with_name("elsewhere" + output.suffix))
    else:
        output.write_text("<older/>" if output.suffix == ".xml" else '{"older": true}\n')
    return f"{output.name}: {how}"


def judged(call: Call, damage: str = "") -> Ended:
    """Run a call, and return what came of it."""
    before = _snapshot(call.folder)
    # as a process has them: what UTF-8 cannot write is an error on stdout
    streams = [
        io.TextIOWrapper(io.BytesIO(), "utf-8", errors, write_through=True) for errors in ("strict", "backslashreplace")
    ]
    raised: list[BaseException] = []
    status = None
    with _noted(raised), _limit(), contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            status = cli.main(call.words)
        except BaseException as error:  # also SystemExit: main returns its status
            raised[:] = [error] if isinstance(error, OvertimeError) else raised or [error]
    printed, told = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
    kinds = ["hang" if isinstance(error, OvertimeError) else "traceback" for error in raised]
    wrong = [f"{kind}: {''.join(traceback.format_exception(error))}" for kind, error in zip(kinds, raised, strict=True)]
    wrong += [*_said(call, status, printed, told), *_left(call, status, before)]
    wrong = [line.encode("utf-8", "backslashreplace").decode() for line in wrong]
    return Ended(damage, shlex.join(call.words), told[-300:], status, wrong)


@contextlib.contextmanager
def _noted(raised: list[BaseException]) -> Iterator[None]:
    """Note what a command raises that is no user's mistake, also where ``main`` makes a line of it."""
    inner = cli._run

    def noted(argv: list[str]) -> int:
        try:
            return inner(argv)
        except (PatchError, typer.TyperException, typer.Abort, KeyboardInterrupt, BrokenPipeError):
            raise
        except BaseException as error:
            # that a path cannot be used is a user's mistake too
            if not (isinstance(error, OSError) and error.filename is not None):
                raised.append(error)
            raise

    cli._run = noted
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)  # of whatever the collector happens to free meanwhile
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        cli._run = inner


@contextlib.contextmanager
def _limit() -> Iterator[None]:
    def late(number: int, frame: Any) -> None:
        raise OvertimeError(f"{SECONDS:g} s of computing")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _said(call: Call, status: int | None, printed: str, told: str) -> Iterator[str]:
    """Yield what is wrong with what is said."""
    statuses = STATUSES.get(call.command, (0, 2))
    if status not in statuses and not call.odd:
        yield f"status: {status}; the docs have {statuses}"
    lines = told.split("\n")[:-1]
    errors = [line for line in lines if line.startswith("lmms-patch: ")]
    if status == 2 and (
        len(errors) != 1 or not errors[0].removeprefix("lmms-patch: ").strip() or not told.endswith("\n")
    ):
        yield f"stderr: {len(errors)} lines for a mistake: {told[:300]!r}"
    # scikit-learn's own: while a thread of ours is inside it, the process has no warning filters
    noise = [line for line in lines if line not in errors and "sklearn/utils/parallel.py" not in line]
    if noise := [line for line in noise if re.search(r"Warning|Traceback|Error\b", line)]:
        yield f"stderr: noise: {noise[0][:200]}"
    if status == 2 and printed.strip() and call.command != "gate":
        yield f"stdout: a mistake, but it has {printed[:100]!r}"
    if status != 2 and not printed.strip():
        yield f"silent: status {status}, and nothing is said"


def _left(call: Call, status: int | None, before: dict[str, str]) -> Iterator[str]:
    """Yield what is wrong with the files after a call."""
    after, outputs = _snapshot(call.folder), [str(path.relative_to(call.folder)) for path in call.outputs]
    for name in sorted(name for name in before | after if before.get(name) != after.get(name)):
        if after.get(name) == "folder" and name.startswith("odd"):
            continue  # an empty folder on the way to a file that could not be written
        if name.endswith((".part", ".tmp")) or re.search(r"(^|/)\.", name):
            yield f"output: {name} is left"
        elif name.endswith(cache.NAME) and not _half(call.folder / name):
            continue  # numbers are kept beside tables, for the next reader
        elif not any(name == output or name.startswith(f"{output}/") for output in outputs):
            yield f"input: {name} was changed, which no option names"
        elif status == 2 and call.command != "gate" and call.command not in KEEPS:
            yield f"output: {name} was changed by a call that was refused"
        elif why := _half(call.folder / name):
            yield f"output: {name} is not whole: {why}"
    for name in outputs if status != 2 and not call.odd else []:
        if name not in after or (before.get(name) == after[name] and after[name].startswith("file")):
            yield f"output: {name} was not written"


def _half(path: Path) -> str:
    """Return why a file is not whole; empty where it is."""
    if not path.is_file():
        return ""
    data = path.read_bytes()
    try:
        for text in [data] if path.suffix == ".json" else data.splitlines() if path.suffix == ".jsonl" else []:
            json.loads(text, parse_constant=_no_constant)
        if path.suffix == ".xml":
            ElementTree.fromstring(data)
        if path.suffix in (".csv", ".md", ".tex", ".html", ".svg", ".yaml"):
            return "" if data.decode().strip() or path.suffix == ".csv" else "it is empty"
        return "it is cut" if path.suffix == ".parquet" and data[-4:] != b"PAR1" else ""
    except (ValueError, ElementTree.ParseError) as error:
        return f"{type(error).__name__}: {error}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _snapshot(folder: Path) -> dict[str, str]:
    """Return what lies in a folder, but for Python's caches: by relative path, kind and digest."""
    found = {}
    for place, folders, files in os.walk(folder):
        # Python keeps there what it compiled of a task folder's modules, unless PYTHONDONTWRITEBYTECODE is set
        if "__pycache__" in folders:
            folders.remove("__pycache__")
        for path in (Path(place) / name for name in (*folders, *files)):
            kind = f"link {os.readlink(path)}" if path.is_symlink() else "folder" if path.is_dir() else ""
            found[str(path.relative_to(folder))] = kind or f"file {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return found
