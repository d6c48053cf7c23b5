"""Rules made from a run at hand: its own numbers, with room for noise, become the limits of the runs that follow. Pure.

A limit is the end of the number's 95 % interval, and the margin is the distance from the number to that end, 1.96
standard errors. Two runs of one model whose answers are drawn anew differ by √2 standard errors, so the second passes a
limit on one side with probability Φ(1.96 / √2) = 0.92. It fails where its whole interval lies beyond limit and margin,
which takes a difference of three such distances; between the two it is inconclusive.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_patch.errors import RecordError
from lmms_patch.gate import sides
from lmms_patch.gate.judge import judge
from lmms_patch.gate.rules import LOST, SCHEMA, parse
from lmms_patch.gate.sides import Subject
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import clean


@dataclass(frozen=True)
class Derived:
    """A file of rules made from a run.

    Attributes:
        results: what they were made from, the newest of each model and task.
        text: the file, in YAML with comments; ``lmms-patch gate`` passes the run by it.
        rules: how many rules it has.
        left_out: rules that the run itself does not pass, in words.
    """

    results: tuple[Subject, ...]
    text: str
    rules: int
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class _Candidate:
    """A rule, and what its comment says."""

    rule: dict[str, Any]
    why: str


def derive(run: Path) -> Derived:
    """Return rules that the run itself passes, with limits from the run's numbers.

    Args:
        run: the ``--output_path`` of runs (of each model and task the newest counts), or one results file.

    Raises:
        RecordError: there is no such run, its files contradict each other, or none of its numbers can be a limit.
    """
    results, _, _ = sides.read(run, "the run")
    models = {one.model for one in results}
    candidates = [rule for one in results if one.result.docs for rule in _candidates(one, several=len(models) > 1)]
    if not candidates:
        raise RecordError(f"{run}: no number with an interval, so there is nothing to set limits by; run more docs")
    partial = any(one.partial for one in results)
    shared = {"allow_limit": True} if partial else {}
    rules = [one.rule for one in candidates]
    # A rule that the run itself fails would also stop later runs that are no worse.
    verdicts = judge(run, parse({"schema": SCHEMA, "defaults": shared, "rules": rules})).verdicts
    failed = {one.rule: one.reason or one.call for one in verdicts if one.call != "pass"}
    kept = [one for one in candidates if one.rule["name"] not in failed]
    if not kept:
        raise RecordError(f"{run}: the run passes no rule about itself: {next(iter(failed.values()))}")
    left_out = tuple(f"{name}: {reason}" for name, reason in failed.items())
    return Derived(tuple(results), _file(run, kept, left_out, partial=partial), len(kept), left_out)


def _candidates(one: Subject, *, several: bool) -> Iterator[_Candidate]:
    """Yield rules about a result, not yet tried on the run.

    Args:
        one: the result.
        several: whether the folder has runs of several models, so that a rule has to name its own.
    """
    kind, metric = one.result.kind, str(one.result.metric)
    about: dict[str, Any] = {"task": one.result.task, **({"model": one.run.model} if several else {})}
    head = f"{one.task} of {one.model}" if several else one.task
    first = {"fip": kind.full, "tst": bool(kind.folds), metric: kind.name == "magic"}
    for name in (name for name, holds in first.items() if holds):
        # For a text-only model, a higher score is the worse news.
        better = one.higher != bool(kind.folds)
        if (limits := _limits(one.measures.get(name), low=better, high=not better)) is not None:
            yield _Candidate(
                {"name": f"{head}: {metric if name == 'fip' else name}", **about, "metric": name, **limits[0]},
                limits[1],
            )
    for grid in one.result.grids if kind.index else ():
        name = f"{kind.index}{grid}"
        if (limits := _limits(one.measures.get(name), low=True, high=True)) is not None:
            yield _Candidate({"name": f"{head}: {name}", **about, "metric": name, **limits[0]}, limits[1])
    if kind.index:
        for needed, why in (
            ("valid gate", "the full image beats chance"),
            ("looks", "the answers depend on the image"),
        ):
            yield _Candidate({"name": f"{head}: {why}", **about, "require": needed}, "")
    asked = _asked(one)
    # The slack keeps 1 % of 100 docs from becoming 0 by rounding.
    least = max(1, asked - math.floor(asked * LOST + 1e-9))
    why = f"{asked} docs were asked; as many may be lost to failed calls as any number may lose, {LOST:.0%}"
    yield _Candidate({"name": f"{head}: no fewer docs", **about, "min_docs": least}, why)


def _asked(one: Subject) -> int:
    """Return how many docs a result asked, those with a failed call among them."""
    analysis = one.result.analysis
    if analysis and analysis.asked and analysis.asked.estimated:
        return analysis.asked.docs
    failed = analysis.failed.first if analysis and analysis.failed else 0
    return one.result.docs if one.result.kind.name == "magic" else one.measures["score"].n + failed


def _limits(found: Estimate | None, *, low: bool, high: bool) -> tuple[dict[str, float], str] | None:
    """Return the limits and margin from a number's interval, and a comment; None for a number without interval.

    Args:
        found: the number.
        low: whether it gets a lower limit.
        high: whether it gets an upper limit.
    """
    if found is None or found.value is None or found.low is None or found.high is None:
        return None
    reach = max(found.value - found.low if low else 0.0, found.high - found.value if high else 0.0)
    # Two significant digits of the reach: further digits are noise.
    step = 10.0 ** (math.floor(math.log10(reach)) - 1) if reach > 0 else 0.001
    ends = {
        **({"min": _outwards(found.low, step, -1)} if low else {}),
        **({"max": _outwards(found.high, step, 1)} if high else {}),
    }
    said = f"{found.value:.4g}, 95 % from {found.low:.4g} to {found.high:.4g}"
    return {**ends, "margin": _outwards(reach, step, 1)}, said


def _outwards(value: float, step: float, sign: int) -> float:
    """Return a value rounded to whole steps, away from the number within the bounds."""
    count = math.floor(value / step) if sign < 0 else math.ceil(value / step)
    # a product such as 3 * 0.1 has digits of its own, far beyond the step
    return round(count * step, max(0, -round(math.log10(step))))


_HEAD = """# What the runs that follow are held to, made from {run} by 'lmms-patch init gate'.
#
#   lmms-patch gate OUT --config gates.yaml
#
# A limit is the end of the number's interval in that run. The margin is the distance from the number to that end: so much noise
# is tolerated. A run that is worse by more than one margin is warned of, one that is worse by some three margins fails.
# Numbers are on the metric's own scale.
# To compare with an earlier run, doc by doc, which finds smaller drops: --config model-regression --baseline EARLIER.
# docs/gate.md explains every key.
schema: {schema}

defaults:
  level: 0.95
  inconclusive: warn    # an interval that reaches over the limit is told, but does not stop a build; 'block' would
{limited}
rules:
"""
_LIMITED = "  allow_limit: true     # that run was of a part of the benchmark (--limit)\n"


def _file(run: Path, kept: Sequence[_Candidate], left_out: Sequence[str], *, partial: bool) -> str:
    """Return the rules as a file, each with what its limits were made from."""
    lines = [_HEAD.format(run=clean(run), schema=SCHEMA, limited=_LIMITED if partial else "")]
    for one in kept:
        lines.append(f"  # {clean(one.why)}\n" if one.why else "")
        # what JSON writes is YAML as well, and in ASCII no character is invisible
        body = [f"{key}: {json.dumps(value, ensure_ascii=True)}" for key, value in one.rule.items()]
        lines.append(f"  - {body[0]}\n" + "".join(f"    {line}\n" for line in body[1:]) + "\n")
    lines += [f"# left out, because that run does not pass it: {clean(line)}\n" for line in left_out]
    return "".join(lines).rstrip("\n") + "\n"
