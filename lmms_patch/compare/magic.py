"""MAGIC tasks, doc by doc: the numbers of one sample log, and what differs between two. Pure.

Every metric is a ratio of sums over docs (``forms.RATIO``). A doc of a mean adds what it counts over 1; a doc of a
micro metric adds its own counts (docs/magic.md). The same random draws of images serve both sides, so what a doc is
like cancels out of the difference. A doc without a verdict of the judge in one of the runs is left out of that metric
on both sides, and the difference then has bounds (``bounds``). A doc may also have no value because of what a model
did, such as a precision where it used no box and none is relevant. Such a doc is no part of that side's mean, as in the
run itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from lmms_patch.compare.checks import in_words
from lmms_patch.compare.engine import Compared, fingerprints
from lmms_patch.errors import RecordError
from lmms_patch.magic.method import Part, part, read, stored
from lmms_patch.magic.score import results
from lmms_patch.magic.score.logs import Line
from lmms_patch.magic.score.results import Record
from lmms_patch.runs.run import Result, differences, not_compared
from lmms_patch.runs.unjudged import A_POINT, BY_JUDGE
from lmms_patch.stats import forms, paired
from lmms_patch.stats.paired import Difference, McNemar, Number
from lmms_patch.stats.resample import LEVEL, Seed, cluster_numbers

SAME = ("benchmark", "kind", "filter", "views")
_OF_DOCS = ("docs", "prompts", "number of docs", "limit")
"""Settings that differ anyway where the docs do."""
NO_JUDGE = "none"
"""What ``Result.fingerprint`` says of a run without a judge."""
_FLAGS = (*results.HEALED, *results.REGIONS, *results.JUDGED, *results.ANSWERS, "answer_found")
"""Metrics in which a doc counts 0 or 1."""
_NOTHING: Part = (0.0, 0.0)


# --- two lists of records -------------------------------------------------------------------------


def difference(
    metric: str,
    pairs: Sequence[tuple[Record, Record]],
    *,
    both: bool,
    exact: bool,
    draws: int,
    level: float,
    seed: Seed,
) -> Difference:
    """Return the difference of a metric between two runs.

    Args:
        metric: its name.
        pairs: the records of each doc.
        both: only docs that count on both sides; else a doc that counts on one side is part of that side's mean alone.
        exact: whether the p-value of flags is McNemar's, where docs are independent and all count on both sides.
        draws: of the bootstrap.
        level: nominal coverage of the interval, 0..1.
        seed: of the bootstrap.
    """
    parts = [(pair, part(pair[0], metric), part(pair[1], metric)) for pair in pairs]
    kept = [
        (pair, one, two) for pair, one, two in parts if (None not in (one, two) if both else (one, two) != (None, None))
    ]
    # reshaped, since an array of no docs has no second axis
    first, second = (np.array([doc[side] or _NOTHING for doc in kept], float).reshape(-1, 2) for side in (1, 2))
    labels = cluster_numbers(results.clusters([pair[1] for pair, _, _ in kept])) if kept else np.zeros(0, int)
    tests = {}
    # The exact test only where docs are independent and all of them count on both sides.
    if (
        exact
        and metric in _FLAGS
        and kept
        and all(None not in doc for doc in kept)
        and (test := paired.mcnemar(first[:, 0], second[:, 0]))
    ):
        tests[metric] = test
    numbers = {metric: Number(("docs",))}
    return paired.differences(
        forms.RATIO, {"docs": (first, second)}, numbers, labels, draws=draws, level=level, seed=seed, exact=tests
    )[metric]


def bounds(
    metric: str, pairs: Sequence[tuple[Record, Record]], alike: Sequence[bool], *, draws: int, level: float, seed: Seed
) -> tuple[Difference, Difference] | None:
    """Return the least and the greatest difference under any values for a judge's missing verdicts.

    None where no verdict is missing.

    The difference is the mean over docs of the second verdict less the first. Each missing verdict adds to it on its
    own. So it is least where those missing in the second run are all wrong and those missing in the first all right,
    and greatest the other way round: both values are exact. Their intervals are those of these two cases. One response
    gets one verdict: where both runs gave the same one, a verdict that is missing in one run is the other's, and two
    that are missing are equal, so that the doc adds nothing.

    Args:
        metric: one of ``BY_JUDGE``.
        pairs: the records of each doc.
        alike: of each doc, whether both runs gave the same response.
        draws: as in ``difference``.
        level: as in ``difference``.
        seed: as in ``difference``.
    """
    key = BY_JUDGE[metric]
    due = [
        (*pair, same)
        for pair, same in zip(pairs, alike, strict=True)
        if all(results.is_due(record, key) for record in pair)
    ]
    if all(getattr(record, key) is not None for one, other, _ in due for record in (one, other)):
        return None
    ends = [[_with_verdicts(*doc, key, end) for doc in due] for end in (True, False)]
    low, high = (difference(metric, end, both=True, exact=False, draws=draws, level=level, seed=seed) for end in ends)
    return low, high


def _with_verdicts(first: Record, second: Record, same: bool, key: str, first_right: bool) -> tuple[Record, Record]:
    """Return a doc's two records with missing verdicts filled in: right in the first run, or right in the second."""
    one, other = getattr(first, key), getattr(second, key)
    if same:
        # The same response gets the same verdict, so a missing verdict is the other run's.
        known = other if one is None else one
        values = (False, False) if known is None else (known, known if other is None else other)
    else:
        values = first_right if one is None else one, not first_right if other is None else other
    return replace(first, **{key: values[0]}), replace(second, **{key: values[1]})


# --- two results ----------------------------------------------------------------------------------


def compare(first: Result, second: Result, *, level: float = LEVEL, draws: int = 0, seed: int = 0) -> Compared:
    """Return the differences of all shared numbers of two results, paired by the docs' names.

    Args:
        first: a result.
        second: the result of the other side.
        level: nominal coverage of the intervals, 0..1.
        draws: bootstrap draws; 0: 10,000.
        seed: of the bootstrap.

    Raises:
        RecordError: results of different benchmarks; a log that is missing, cut or of another run; other data under the
            same name.
    """
    prints = fingerprints(first, second, SAME)
    ours, theirs = read(first), read(second)
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        raise RecordError(f"{second.task}: the two runs have no doc in common; both must be asked the same docs")
    ids = [name for name in common if not any(side[name].record.failed is not None for side in (ours, theirs))]
    if not ids:
        raise RecordError(f"{second.task}: no doc is scored in both runs")
    # With other seeds other boxes are shown, so a doc's digest may differ without a change of the data.
    shown_alike = prints[0].get("boxes shown") == prints[1].get("boxes shown")
    for name in ids:
        _check_doc(second.task, name, ours[name], theirs[name], shown_alike)
    pairs = [(ours[name].record, theirs[name].record) for name in ids]
    variant = pairs[0][1].variant
    names, warnings = _shared(first, second)
    draws = draws or paired.DRAWS
    alike = [_same_response(ours[name], theirs[name]) for name in ids]
    changes, ends = {}, {}
    for name in names:
        by_judge = name in BY_JUDGE
        changes[name] = difference(name, pairs, both=by_judge, exact=True, draws=draws, level=level, seed=seed)
        found = bounds(name, pairs, alike, draws=draws, level=level, seed=seed) if by_judge else None
        if found is not None:
            ends[name] = found
        if by_judge and changes[name].estimate.n < len(pairs):
            left_out = len(pairs) - changes[name].estimate.n
            more = said_bounds(found)
            warnings.append(
                f"{name}: {left_out} of {len(pairs)} docs are left out: without a verdict in one of the runs{more and f'; {more}'}"
            )
    lower = tuple(name for name in names if not results.higher_is_better(name, variant))
    only = tuple(sorted(ours.keys() - theirs.keys())), tuple(sorted(theirs.keys() - ours.keys()))
    other_docs = bool(only[0] or only[1])
    clusters = len(set(results.clusters([record for _, record in pairs])))
    primary = second.metric
    return Compared(
        first=first.label,
        second=second.label,
        metric=primary,
        docs=len(ids),
        only_first=only[0],
        only_second=only[1],
        unscored=len(common) - len(ids),
        differences=changes,
        mcnemar=None,
        settings=tuple(in_words(differences(*prints, (*SAME, *(_OF_DOCS if other_docs or not shown_alike else ()))))),
        warnings=tuple(filter(None, [*warnings, not_compared(*prints)])),
        base=second.base,
        kind="magic",
        index=None,
        higher=primary not in lower,
        clusters=None if clusters == len(ids) else clusters,
        draws=draws,
        identical=not other_docs and all(_alike(*pair) for pair in pairs),
        tests=_tests(names, pairs, lower),
        lower=lower,
        unchanged=() if other_docs else _unchanged(names, primary, pairs, alike),
        bounds=ends,
    )


def said_bounds(ends: tuple[Difference, Difference] | None) -> str:
    """Say what range the difference has with the unjudged docs; empty where the range is within a point."""
    low, high = (None, None) if ends is None else (end.estimate.value for end in ends)
    if low is None or high is None or high - low <= A_POINT + 1e-12:
        return ""
    return f"the difference is {low:+.3f} to {high:+.3f} with the unjudged"


def _same_response(first: Line, second: Line) -> bool:
    """Return whether two lines hold the same response; False without any response."""
    said = [line.resps if line.filtered_resps is None else line.filtered_resps for line in (first, second)]
    return said[0] is not None and said[0] == said[1]


def _check_doc(task: str, name: str, first: Line, second: Line, shown_alike: bool) -> None:
    """Check whether a name stands for the same doc in both runs.

    Where other boxes are shown (another seed), as far as that can be seen.
    """
    seen = [(line.target, line.record.group, line.record.boxes, len(line.record.relevant)) for line in (first, second)]
    asked = [line.record.asked.get("doc") for line in (first, second)]
    if seen[0] != seen[1] or (shown_alike and None not in asked and asked[0] != asked[1]):
        raise RecordError(
            f"{task}: doc {name} is another in the two runs (its image, boxes or answer): the data have changed"
        )


def _shared(first: Result, second: Result) -> tuple[list[str], list[str]]:
    """Return the comparable metrics of both runs, and warnings.

    Metrics from a judge's verdicts can be compared only where one judge judged both runs.
    """
    ours, theirs = stored(first).numbers, stored(second).numbers
    names = [name for name in ours if name in theirs]
    judges = [side.fingerprint.get("judge") for side in (first, second)]
    # Verdicts of different judges differ by the judge as well as by the model.
    if judges[0] == judges[1]:
        return names, []
    said = ["by nobody" if judge in (None, NO_JUDGE) else f"by {judge}" for judge in judges]
    judged = [name for name in (*ours, *theirs) if name in BY_JUDGE]
    line = f"{', '.join(dict.fromkeys(judged))}: not compared, since the first run was judged {said[0]} and the second {said[1]}"
    return [name for name in names if name not in BY_JUDGE], [line]


def _tests(names: Sequence[str], pairs: Sequence[tuple[Record, Record]], lower: Sequence[str]) -> dict[str, McNemar]:
    """Return McNemar's test of each metric of flags; where lower is better, 0 is right."""
    out = {}
    for name in names:
        scores = (
            [(results.score(one, name), results.score(other, name)) for one, other in pairs] if name in _FLAGS else []
        )
        sides = np.array([pair for pair in scores if None not in pair], float).reshape(-1, 2).T
        if (test := paired.mcnemar(*(1 - sides if name in lower else sides))) is not None:
            out[name] = test
    return out


def _unchanged(
    names: Sequence[str], primary: str, pairs: Sequence[tuple[Record, Record]], alike: Sequence[bool]
) -> tuple[str, ...]:
    """Return the metrics in which each doc counts the same in both; ``score`` is the primary metric.

    Two docs without a verdict count the same only where the responses are the same (``alike``).
    """
    out = []
    for name in names:
        parts = [(part(one, name), part(other, name)) for one, other in pairs]
        open_ones = [name in BY_JUDGE and sums == (None, None) for sums in parts]
        if all(one == other for one, other in parts) and all(
            same for same, is_open in zip(alike, open_ones, strict=True) if is_open
        ):
            out.append(name)
    return (*out, *(["score"] if primary in out else []))


def _alike(one: Record, other: Record) -> bool:
    """Return whether two records count the same in everything."""
    keys = (
        "boxes",
        "relevant",
        "used",
        "invented",
        "answer_found",
        *results.ANSWERS.values(),
        *results.JUDGED.values(),
        *results.HEALED.values(),
    )
    return all(getattr(one, key) == getattr(other, key) for key in keys)
