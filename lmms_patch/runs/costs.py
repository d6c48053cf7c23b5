"""What a finished run took: calls, tokens and time, as its files have them. Pure.

Nothing is assumed: a number that the files do not have is None. The time is that of the whole run, so it contains
loading and scoring, and the time for one call is lower in a longer run.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from lmms_patch.runs.run import Result, Run


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
    """Return what a run took; None for a run without a model's call.

    Args:
        run: the run.
        bases: benchmarks. Tokens are counted of the run's tasks of these; of all its tasks where it has none of them.

    Raises:
        RecordError: a table that cannot be read.
    """
    tasks = {one.task: one for one in run.results if not one.kind.folds and not one.place}
    if not tasks:
        return None
    counted = [name for name, one in tasks.items() if one.base in bases] or list(tasks)
    rows = pl.concat(_calls(one) for one in tasks.values())
    answers, given = len(rows), rows.filter(pl.col("tokens_out").is_not_null())
    some = rows.filter(pl.col("task").is_in(counted))
    seconds, why = _seconds(next(iter(tasks.values())), float(given["tokens_out"].sum() or 0))
    # an adapter that counts no tokens leaves its answers to be counted
    calls = len(given) or answers
    means = {f"{way}put_tokens": some[f"tokens_{way}"].mean() for way in ("in", "out")}
    name = run.model or run.adapter
    return Cost(run.path, name, tuple(counted), calls, seconds, why, **means) if calls else None  # type: ignore[arg-type]


def _calls(result: Result) -> pl.DataFrame:
    """Return the tokens of each call of a task; what was not asked is no call."""
    frame = result.frame(["doc_id", "quick", "score", "failed", "tokens_in", "tokens_out"])
    steps = pl.col("quick").struct.field("steps").first().over("doc_id").fill_null(2)
    return frame.filter(steps > 0).select(pl.lit(result.task).alias("task"), "tokens_in", "tokens_out")


def _seconds(result: Result, out: float) -> tuple[float | None, str]:
    """Return how long a run took; None, with the reason, where the time is not of the calls in its tables.

    Args:
        result: one of its tasks.
        out: how many tokens the answers in the run's tables have.
    """
    host = result.about.host
    if host.cached:
        return None, "it used a response cache (--use_cache), whose answers took no time"
    # failed calls that were asked again make it a little less or more
    if host.generated is not None and out > 1.01 * host.generated:
        said = f"its process made {host.generated:,.0f} tokens, its tables have {out:,.0f}"
        return None, f"{said}: a part is from a journal, or from other processes"
    return (host.seconds, "") if host.seconds else (None, "the run does not say how long it took")
