"""What a finished run took: calls, tokens and time, as its files have them. Pure.

Nothing is assumed: a number that the files do not have is None. The time is that of the whole run, so it contains
loading and scoring, and the time for one call is lower in a longer run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import msgspec
from msgspec import Struct

from lmms_patch.errors import RecordError
from lmms_patch.runs.results import read_json, samples_file
from lmms_patch.runs.run import Run


class _Counts(Struct):
    """The part of a sample log's line about the cost of its calls."""

    token_counts: list[dict[str, Any] | None] | None = None
    filtered_resps: Any = None


_LINE = msgspec.json.Decoder(_Counts)


@dataclass(frozen=True)
class Cost:
    """What the calls of a run took.

    Attributes:
        path: the results file.
        model: the model.
        tasks: the tasks whose calls tokens are counted of.
        calls: how many calls the whole run made; where the adapter counts tokens, only those that it counted, since
        answers from a cache have none.
        seconds: how long the whole run took, loading and scoring included; None where no time stands for so many calls.
        why: why ``seconds`` is None; else empty.
        input_tokens: of one call, on average; None where the adapter does not say.
        output_tokens: likewise, of its answer.
    """

    path: Path
    model: str
    tasks: tuple[str, ...]
    calls: int
    seconds: float | None
    why: str
    input_tokens: float | None
    output_tokens: float | None


def cost(run: Run, bases: Collection[str] = ()) -> Cost | None:
    """Return what a run took; None for a run without a model's call in a log.

    Args:
        run: the run.
        bases: benchmarks. Tokens are counted of the run's tasks of these; of all its tasks where it has none of them.

    Raises:
        RecordError: a file that cannot be read.
    """
    asked = {one.task: str(one.base) for one in run.results if not one.kind.folds}
    logged = {task: file for task in run.configs if (file := samples_file(run.path, task)) is not None}
    if not set(asked) & set(logged):
        return None
    counted = [task for task in asked if asked[task] in bases and task in logged] or [
        task for task in asked if task in logged
    ]
    answers, calls, out, tokens = 0, 0, 0.0, dict.fromkeys(("input_tokens", "output_tokens"), (0.0, 0))
    for task, file in logged.items():
        for line in _lines(file):
            found = line.token_counts or []
            # a line without token counts has its answers all the same
            answers += max(len(found), _answers(line))
            calls += sum(one is not None for one in found)
            out += sum(value for one in found if one is not None and _is_count(value := one.get("output_tokens")))
            for name, (total, count) in tokens.items() if task in counted else ():
                given = [value for one in found if one is not None and _is_count(value := one.get(name))]
                tokens[name] = (total + sum(given), count + len(given))
    seconds, why = _seconds(run, logged, out)
    # an adapter that counts no tokens leaves its answers to be counted
    calls = calls or answers
    means = {name: total / count if count else None for name, (total, count) in tokens.items()}
    return (
        Cost(run.path, run.model or run.adapter, tuple(counted), calls, seconds if calls else None, why, **means)
        if calls
        else None
    )


def _lines(file: Path) -> Iterator[_Counts]:
    try:
        with open(file, "rb") as lines:
            for number, text in enumerate(lines, 1):
                try:
                    yield _LINE.decode(text)
                except ValueError:
                    raise RecordError(
                        f"{file}, line {number}: cut or not JSON; the run did not finish writing this file"
                    ) from None
    except OSError as error:
        raise RecordError(f"{file}: cannot be read ({error.strerror})") from None


def _answers(line: _Counts) -> int:
    """Return how many answers a line has; lines of earlier versions of lmms-eval have no token counts."""
    return len(line.filtered_resps) if isinstance(line.filtered_resps, list) else 1


def _is_count(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _seconds(run: Run, logged: Mapping[str, Path], out: float) -> tuple[float | None, str]:
    """Return how long a run took; None, with the reason, where the time is not of the calls in its logs.

    Args:
        run: the run.
        logged: its sample logs, by task.
        out: how many tokens the answers in these have.
    """
    data = read_json(run.path)
    config = data.get("config", {})
    told = data.get("n-samples", {})
    if missing := [task for task in told if task not in logged]:
        return None, f"{missing[0]} has no sample log"
    if config.get("use_cache"):
        return None, "it used a response cache (--use_cache), whose answers took no time"
    throughput = data.get("throughput")
    generated = throughput.get("total_gen_tokens") if isinstance(throughput, dict) else None
    # failed calls that were asked again make it a little less or more
    if _is_count(generated) and out > 1.01 * generated:
        return (
            None,
            f"its process made {generated:,.0f} tokens, its logs have {out:,.0f}: a part is from a journal, or from other processes",
        )
    try:
        seconds = float(data.get("total_evaluation_time_seconds") or "nan")
    except (TypeError, ValueError):
        seconds = math.nan
    return (seconds, "") if 0 < seconds < math.inf else (None, "its results file has no time")
