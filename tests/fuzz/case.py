"""One case: a true run, broken by a seed, a command over it, and what is wrong with what came of it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any
from xml.etree import ElementTree

import typer

from lmms_patch.app import cli
from lmms_patch.errors import PatchError
from tests.fuzz.damage import NUMBERS, TEXTS, damage
from tests.fuzz.scenarios import SCENARIOS, Call, Scenario

SECONDS = 20.0
"""Of CPU time: what takes longer hangs."""
WALL = 60
"""Seconds of the clock: for what hangs without computing."""
MEMORY = 700_000
"""Kilobytes that one case may add to what was the most before: the files have some 40 kB."""


@dataclass
class Done:
    """What came of a case.

    Attributes:
        number, scenario, damage, words: which case it was; ``damage`` in words.
        status: the exit status; None where the command raised.
        kind: ``ok``, or what is wrong, in a word: ``traceback``, ``hang``, ``memory``, ``status``, ``output``,
        ``stderr``, ``silent``, ``input``.
        said: what is wrong, in a sentence; else the last line of stderr.
        place: of a traceback, file, line and function of ours that were innermost.
        seconds: of CPU time.
    """

    number: int
    scenario: str
    damage: str = ""
    words: list[str] = field(default_factory=list)
    status: int | None = None
    kind: str = "ok"
    said: str = ""
    place: str = ""
    seconds: float = 0.0
    trace: str = ""


class OvertimeError(BaseException):
    """The case takes too long."""


def drawn(seed: int, number: int, harness: bool) -> tuple[Scenario, Random]:
    """The scenario of a case, and its stream of random numbers."""
    stream = Random(f"{seed}:{number}:{harness}")
    those = [one for one in SCENARIOS if one.harness == harness]
    return stream.choices(those, [one.weight for one in those])[0], stream


def run(seed: int, number: int, stock: Path, room: Path, harness: bool = False, keep: bool = False) -> Done:
    """Run one case.

    Args:
        seed, number, harness: which.
        stock: folder of true files.
        room: folder for the case's own; removed afterwards.
        keep: do not remove it.
    """
    scenario, stream = drawn(seed, number, harness)
    folder = room / f"case{number}"  # another one each time: what a process remembers of a path is not of this case
    folder.mkdir(parents=True)
    done = Done(number, scenario.name)
    try:
        call = scenario.make(stream, stock, folder)
        done.damage = _prepare(stream, call, stock)
        done.words = call.words
        _run(call, scenario, done)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return done


def _prepare(stream: Random, call: Call, stock: Path) -> str:
    """Break files and options of a call; says what was done."""
    said = []
    draw = stream.random()
    if call.inputs and draw < 0.9:
        for path in dict.fromkeys(stream.choices(call.inputs, k=1 if stream.random() < 0.8 else 3)):
            if path.is_file() and not path.is_symlink():
                same = [
                    one
                    for one in sorted(stock.rglob(f"*{path.suffix}"))
                    if one.name.endswith(path.name.rpartition("_")[2])
                ]
                said.append(f"{path.relative_to(call.folder)}: {damage(stream, path, same)}{_agreed(stream, path)}")
    if not call.inputs or draw > 0.82:
        said.append(_odd_option(stream, call))
    for output in call.outputs:
        if stream.random() < 0.35 and not output.exists():
            said.append(_before(stream, output))
    return " | ".join(one for one in said if one)


def _agreed(stream: Random, path: Path) -> str:
    """Have a results file name the digest of the broken file beside it, in half of the cases: else the audit would refuse each by its digest."""
    if (
        not path.name.endswith("_patch.json")
        or not path.is_file()
        or not os.access(path, os.R_OK)
        or stream.random() < 0.5
    ):
        return ""
    results = path.with_name(path.name.replace("_patch.json", "_results.json"))
    try:
        data = json.loads(results.read_text(encoding="utf-8"))
        data["lmms_patch"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError, KeyError, TypeError):  # it was broken too
        return ""
    results.write_text(json.dumps(data), encoding="utf-8")
    return ", and the results file agrees"


def _odd_option(stream: Random, call: Call) -> str:
    """One option of the command with an odd value, or one that there is not."""
    named = call.words[:2] if call.words[0] in ("import", "init", "magic") else call.words[:1]
    params = [
        one
        for one in cli.built(*named).params
        if one.param_type_name == "option" and one.name not in ("help", "with_images", "images")
    ]
    if not params or stream.random() < 0.08:
        call.odd = True
        call.words.append(stream.choice(("--nothing", "-Z", "--", "", "x", "\udcff", "--json", "--help")))
        return "an option that there is not"
    param = stream.choice(params)
    flag = stream.choice([*param.opts, *param.secondary_opts])
    call.words.append(flag)
    if not getattr(param, "is_flag", False) or stream.random() < 0.05:
        odd = stream.choice((*(str(one) for one in NUMBERS), *TEXTS, "inf", "nan", "1e400", "9" * 5000))
        odd = (
            odd.replace("\0", "")
            .encode("utf-8", "surrogateescape" if "\udfff" not in odd and "\ud800" not in odd else "replace")
            .decode("utf-8", "surrogateescape")
        )
        if param.name in (
            "output",
            "json_file",
            "junit",
            "summary",
            "sheet_file",
            "export",
            "write",
        ):  # never outside of the case's own folder
            odd = str(call.folder / "odd" / (odd.replace("/", "_").replace("..", "_") or "x"))
            call.outputs.append(call.folder / "odd")
            call.odd = True
        call.words.append(odd)
        return f"{flag} {odd[:40]!r}"
    return flag


def _before(stream: Random, output: Path) -> str:
    """What was in the place of an output before."""
    how = stream.choice(("older", "older", "older", "folder", "link"))
    if how == "older":
        if output.suffix:
            output.write_text(
                {".json": '{"older": true}', ".jsonl": '{"older": true}\n', ".xml": "<older/>"}.get(
                    output.suffix, "older\n"
                )
            )
            return f"{output.name} was there"
        return ""
    if how == "folder":
        output.mkdir()
        (output / "mine.txt").write_text("mine")
        return f"{output.name} was a folder"
    output.symlink_to(output.with_name("elsewhere" + output.suffix))
    return f"{output.name} was a link to nothing"


# --- running --------------------------------------------------------------------------------------


def _run(call: Call, scenario: Scenario, done: Done) -> None:
    before = _snapshot(call.folder)
    out, err = _stream("strict"), _stream("backslashreplace")
    peak, start = _peak(), time.process_time()
    unexpected: list[BaseException] = []
    with (
        _watched(unexpected),
        _limits(),
        _environment(call.env),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            done.status = cli.main(call.words)
        except OvertimeError as error:
            unexpected[:] = [error]
        except BaseException as error:  # also SystemExit: main returns its status
            unexpected[:] = unexpected or [error]
    done.seconds = time.process_time() - start
    said, printed = _text(err), _text(out)
    done.said = said.strip().splitlines()[-1] if said.strip() else ""
    for kind, wrong in _faults(call, scenario, done, unexpected, before, printed, said, _peak() - peak):
        done.kind, done.said = kind, wrong
        break
    if unexpected:
        done.place, done.trace = _where(unexpected[0]), "".join(traceback.format_exception(unexpected[0]))


def _faults(
    call: Call,
    scenario: Scenario,
    done: Done,
    unexpected: list[BaseException],
    before: dict[str, str],
    printed: str,
    said: str,
    grown: int,
) -> Iterator[tuple[str, str]]:
    """What is wrong, worst first."""
    if unexpected:
        one = unexpected[0]
        yield "hang" if isinstance(one, OvertimeError) else "traceback", f"{type(one).__name__}: {str(one)[:200]}"
    if done.seconds > SECONDS:
        yield "hang", f"{done.seconds:.1f} s"
    if grown > MEMORY:
        yield "memory", f"{grown // 1000} MB"
    if done.status not in scenario.statuses and not call.odd:
        yield "status", f"{done.status}; the docs have {scenario.statuses}"
    lines = [line for line in said.split("\n")[:-1] if line.startswith("lmms-patch: ")]
    others = [line for line in said.split("\n")[:-1] if not line.startswith("lmms-patch: ")]
    if done.status == 2 and (
        len(lines) != 1 or not lines[0].removeprefix("lmms-patch: ").strip() or said.count("\n") != len(others) + 1
    ):
        yield "stderr", f"{len(lines)} lines for a mistake: {said[:300]!r}"
    # scikit-learn's own: while one thread of ours is inside it, the process has no warning filters, and it warns
    # another thread of that
    others = [line for line in others if "sklearn/utils/parallel.py" not in line]
    if noise := next((line for line in others if re.search(r"Warning|Traceback|Error\b", line)), ""):
        yield "stderr", f"noise: {noise[:200]}"
    if done.status == 2 and printed.strip() and scenario.name != "gate":
        yield "stderr", f"a mistake, but stdout has {printed[:100]!r}"
    if done.status != 2 and not printed.strip():
        yield "silent", f"status {done.status}, and nothing is said"
    yield from _files(call, scenario, done, before)


def _files(call: Call, scenario: Scenario, done: Done, before: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What is wrong with the files after a call."""
    after = _snapshot(call.folder)
    outputs = [str(path.relative_to(call.folder)) for path in call.outputs]
    keeps = [str(path.relative_to(call.folder)) for path in call.keeps]
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    for name in changed:
        if after.get(name) == "folder" and name.startswith("odd"):
            continue  # an empty folder on the way to a file that could not be written
        inside = [one for one in outputs if name == one or name.startswith(f"{one}/")]
        if done.status == 0 and name.endswith("/.leaderboard.lock"):
            continue  # a new board's: it stays, since removing it would let two updates hold it
        if name.endswith((".part", ".tmp")) or re.search(r"(^|/)\.(?!github(/|$))", name):
            yield "output", f"{name} is left"
        elif not inside:
            yield "input", f"{name} was changed, which no option names"
        elif done.status == 2 and scenario.name != "gate" and not any(name.startswith(one) for one in keeps):
            yield "output", f"{name} was changed by a call that was refused"
        elif after.get(name, "").startswith("file") and (wrong := _half(call.folder / name)):
            yield "output", f"{name} is not whole: {wrong}"
    if done.status != 2 and not call.odd:
        for name in outputs:
            if name not in after and name != "odd":
                yield "output", f"{name} was not written"
            elif (
                name in before
                and after.get(name) == before[name]
                and before[name].startswith("file")
                and name.startswith("out")
            ):
                yield "output", f"{name} is as it was"


def _half(path: Path) -> str:
    """Why a file is not whole; empty where it is."""
    try:
        data = path.read_bytes()
        if path.suffix == ".json":
            json.loads(data, parse_constant=_no_constant)
        elif path.suffix == ".jsonl":
            [json.loads(line, parse_constant=_no_constant) for line in data.splitlines() if line.strip()]
        elif path.suffix == ".xml":
            ElementTree.fromstring(data)
        elif path.suffix in (".csv", ".md", ".tex", ".html", ".svg"):
            data.decode("utf-8")
            return "" if data.strip() or path.suffix == ".csv" else "it is empty"
    except (ValueError, ElementTree.ParseError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _snapshot(folder: Path) -> dict[str, str]:
    """What lies in a folder: by relative path, kind and digest."""
    out = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            shown = os.path.relpath(path, folder)
            if path.is_symlink():
                out[shown] = f"link {os.readlink(path)}"
            elif path.is_dir():
                out[shown] = "folder"
            elif path.is_file():
                out[shown] = f"file {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return out


def _stream(errors: str) -> io.TextIOWrapper:
    """As a process has it: what UTF-8 cannot write is an error on stdout."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined]


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@contextlib.contextmanager
def _watched(seen: list[BaseException]) -> Iterator[None]:
    """Notes what a command raises that is no user's mistake, also where ``main`` makes a line of it."""
    inner = cli._run

    def noted(argv: list[str]) -> int:
        try:
            return inner(argv)
        except (PatchError, typer.TyperException, typer.Abort, KeyboardInterrupt, BrokenPipeError):
            raise
        except BaseException as error:
            if not (
                isinstance(error, OSError) and error.filename is not None
            ):  # that a path cannot be used is a user's mistake too
                seen.append(error)
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
def _limits() -> Iterator[None]:
    def late(number: int, frame: FrameType | None) -> None:
        raise OvertimeError(f"{SECONDS:g} s of computing" if number == signal.SIGPROF else f"{WALL} s of the clock")

    before = {number: signal.signal(number, late) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, SECONDS + 1)
    left, every = signal.setitimer(signal.ITIMER_REAL, WALL)  # pytest-timeout has one running
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.setitimer(signal.ITIMER_REAL, left, every)


@contextlib.contextmanager
def _environment(more: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        os.environ.pop(name, None)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _where(error: BaseException) -> str:
    """The innermost line of ours in a traceback, and the error."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}lmms_patch{os.sep}" in frame.filename]
    if not ours:
        return f"? {type(error).__name__}"
    last = ours[-1]
    return f"{last.filename.rpartition(f'{os.sep}lmms_patch{os.sep}')[2]}:{last.lineno} {last.name} ({type(error).__name__})"


def preload() -> None:
    """Import what the commands import when they are first called, so that no case pays for it."""
    import matplotlib

    matplotlib.use("agg")
    for name in ("scipy.stats", "scipy.special", "matplotlib.pyplot", "pyarrow.parquet", "cv2"):
        with contextlib.suppress(ImportError):
            __import__(name)
    sys.set_int_max_str_digits(4300)
