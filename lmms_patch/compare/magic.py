"""MAGIC tasks, doc by doc: what differs between two runs, and what other boxes on the image change.

Every metric is a ratio of sums over docs (``forms.RATIO``). A doc of a mean adds what it counts over 1; a doc of a
micro metric adds its own counts (docs/magic.md). The same random draws of images serve both sides, so what a doc is
like cancels out of the difference. A doc without a verdict of the judge in one of the runs is left out of that metric
on both sides, and the difference then has bounds (``bounds``). A doc may also have no value because of what a model
did, such as a precision where it used no box and none is relevant. Such a doc is no part of that side's mean, as in the
run itself.

| contrast | difference | what |
|---|---|---|
| ``distraction`` | relevant − all | what the adversarial boxes cost: above 0, the model does better without them |
| ``boxes`` | all − none | what the drawn boxes give, adversarial ones included |
| ``hints`` | relevant − none | what the relevant boxes alone give |

Contrasted are accuracies and, where both variants have boxes, recall. Precision and F1 are left out: without adversarial
boxes no box can be used wrongly, so they would rise by construction.

Source: MAGIC paper, 3.1 (adversarial regions), 5.3 (exhaustive use); the contrasts are ours.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from lmms_patch.compare import alike
from lmms_patch.compare.formats import Compared
from lmms_patch.errors import RecordError
from lmms_patch.magic.method import part, read
from lmms_patch.magic.score import results
from lmms_patch.magic.score.results import Record
from lmms_patch.runs import run as runs
from lmms_patch.runs.details import MagicNumbers
from lmms_patch.runs.run import Labelled, Result
from lmms_patch.runs.unjudged import A_POINT, BY_JUDGE, Bounds
from lmms_patch.stats import forms, paired
from lmms_patch.stats.paired import Difference, Number
from lmms_patch.stats.resample import LEVEL, cluster_numbers

CONTRASTS = {"distraction": ("all", "relevant"), "boxes": ("none", "all"), "hints": ("none", "relevant")}
"""By name, the variant that is subtracted and the one that it is subtracted from."""
SAME = ("benchmark", "kind", "filter", "views")
_OF_DOCS = ("docs", "prompts", "number of docs", "limit")
"""Settings that differ anyway where the docs do."""
_OF_RUN = ("limit", "few-shot", "system instruction", "generation", "benchmark version", "lmms-eval version", "judge")
"""Settings that two variants of one run share."""
_RECALL = ("magiscore_recall_micro", "magiscore_recall_macro")
_FLAGS = (*results.HEALED, *results.REGIONS, *results.JUDGED, *results.ANSWERS, "answer_found")
"""Metrics in which a doc counts 0 or 1."""
_STEM = re.compile(r"_(?:relevant|nobox|selfheal)$")
Docs = Sequence[tuple[Record, Record]]
Records = Sequence[tuple[Record, Record]]


# --- the docs of a result: the one place that knows where they are stored -------------------------


def lines(result: Result) -> dict[str, Record]:
    """Return the docs of a result by name."""
    return read(result)


def bounds_of(result: Result) -> dict[str, Bounds]:
    """Return a judge's numbers with docs without a verdict counted as wrong, and as right; only where there is such a doc."""
    records = results.answered(list(lines(result).values()))
    return results.bounds(records, records[0].variant) if records else {}


# --- a metric -------------------------------------------------------------------------------------


def difference(metric: str, pairs: Records, *, both: bool, exact: bool, **how: Any) -> Difference:
    """Return the difference of a metric between two lists of docs.

    Args:
        metric: its name.
        pairs: the records of each doc.
        both: only docs that count on both sides; else a doc that counts on one side is part of that side's mean.
        exact: whether the p-value of flags is McNemar's, where all docs count on both sides.
        how: ``draws``, ``level`` and ``seed`` of ``stats.paired.differences``.
    """
    parts = [(part(one, metric), part(other, metric)) for one, other in pairs]
    kept = [k for k, own in enumerate(parts) if (None not in own if both else own != (None, None))]
    first, second = (np.array([parts[k][s] or (0.0, 0.0) for k in kept], float).reshape(-1, 2) for s in (0, 1))
    labels = cluster_numbers(results.clusters([pairs[k][1] for k in kept])) if kept else np.zeros(0, int)
    whole = exact and metric in _FLAGS and kept and all(None not in parts[k] for k in kept)
    test = paired.mcnemar(first[:, 0], second[:, 0]) if whole else None
    sets, numbers, tests = {"": (first, second)}, {"": Number(("",))}, {"": test} if test else {}
    return paired.differences(forms.RATIO, sets, numbers, labels, exact=tests, **how)[""]


def bounds(metric: str, docs: Docs, *, asked_alike: bool, **how: Any) -> tuple[Difference, Difference] | None:
    """Return the least and the greatest difference under any values for a judge's missing verdicts.

    None where no verdict is missing, and for other metrics.

    The difference is the mean over docs of the second verdict less the first. Each missing verdict adds to it on its
    own. So it is least where those missing in the second run are all wrong and those missing in the first all right,
    and greatest the other way round: both values are exact. Their intervals are those of these two cases. One response
    gets one verdict: where both runs gave the same one, a verdict that is missing in one run is the other's, and two
    that are missing are equal, so that the doc adds nothing.

    Args:
        metric: its name.
        docs: of both sides.
        asked_alike: whether equal responses get equal verdicts.
        how: as of ``difference``.
    """
    key = BY_JUDGE.get(metric, "")
    due = [one for one in docs if key and all(results.is_due(line, key) for line in one)]
    if all(getattr(line, key) is not None for one in due for line in one):
        return None

    def filled(pair: tuple[Record, Record], first_right: bool) -> tuple[Record, Record]:
        verdicts = [getattr(line, key) for line in pair]
        if asked_alike and same_response(pair):
            known = bool(next((one for one in verdicts if one is not None), False))
            verdicts = [known if one is None else one for one in verdicts]
        one, other = (
            end if verdict is None else verdict
            for verdict, end in zip(verdicts, (first_right, not first_right), strict=True)
        )
        return replace(pair[0], **{key: one}), replace(pair[1], **{key: other})

    low, high = (
        difference(metric, [filled(pair, end) for pair in due], both=True, exact=False, **how) for end in (True, False)
    )
    return low, high


def same_response(pair: tuple[Record, Record]) -> bool:
    """Return whether two docs have the same response; False without any."""
    return bool(pair[0].response) and pair[0].response == pair[1].response


def said_bounds(ends: tuple[Difference, Difference] | None) -> str:
    """Say what range the difference has with the unjudged docs; empty where the range is within a point."""
    low, high = (None, None) if ends is None else (end.estimate.value for end in ends)
    if low is None or high is None or high - low <= A_POINT + 1e-12:
        return ""
    return f"the difference is {low:+.3f} to {high:+.3f} with the unjudged"


# --- two results ----------------------------------------------------------------------------------


def compare(
    first: Result, second: Result, *, level: float = LEVEL, draws: int = 0, seed: int = 0, contrast: str = ""
) -> Compared:
    """Return the differences of all shared numbers of two results, paired by the docs' names (``result.compare``).

    Args:
        first: a result.
        second: the result of the other side.
        level: nominal coverage of the intervals, 0..1.
        draws: bootstrap draws; 0: 10,000.
        seed: of the bootstrap.
        contrast: one of ``CONTRASTS``, of which the two are the variants: docs are then paired by item, only docs that
            count on both sides are compared, and the two responses to an item get verdicts of their own.

    Raises:
        RecordError: as ``result.compare``.
    """
    if not contrast:
        alike.check(first, second, SAME)
    prints, key = (first.fingerprint, second.fingerprint), "item" if contrast else "id"
    ours, theirs = ({getattr(line, key): line for line in lines(one).values()} for one in (first, second))
    common = sorted(ours.keys() & theirs.keys())
    docs = [(ours[name], theirs[name]) for name in common]
    docs = [pair for pair in docs if all(line.failed is None for line in pair)]
    if not docs:
        what = "are scored in both" if common else "are in both; both must be asked the same"
        raise RecordError(f"{second.task}: no docs {what}")
    # With other seeds other boxes are shown, so a doc's digest may differ without a change of the data.
    shown_alike = prints[0].get("boxes shown") == prints[1].get("boxes shown")
    boxes = "none" not in CONTRASTS.get(contrast, ())
    of_data = "data" if contrast else "doc" if shown_alike else ""
    for pair in docs:
        of = list(pair)
        facts = [(one.group, boxes and len(one.relevant), not contrast and one.boxes) for one in of]
        digests = [one.asked.get(of_data) for one in of]
        if (
            pair[0].target != pair[1].target
            or facts[0] != facts[1]
            or ((contrast or None not in digests) and digests[0] != digests[1])
        ):
            raise RecordError(
                f"{second.task}: {key} {getattr(pair[0], key)} has another question, answer, image or boxes in the two runs: other data"
            )
    pairs = [(one, other) for one, other in docs]
    variant, draws = pairs[0][1].variant, draws or paired.DRAWS
    how: dict[str, Any] = {"draws": draws, "level": level, "seed": seed}
    known = (*results.JUDGED, *results.ANSWERS, *_RECALL * boxes) if contrast else results.metrics(variant, judged=True)
    names = [name for name in known if name in first.measures and name in second.measures]
    warnings, judges = [], [one.get("judge") for one in prints]
    # Verdicts of different judges differ by the judge as well as by the model.
    if judges[0] != judges[1]:
        said = ", ".join(name for name in BY_JUDGE if name in {*first.measures, *second.measures})
        who = [f"by {one}" if one not in (None, "none") else "by nobody" for one in judges]
        warnings.append(f"{said}: not compared, since the first run was judged {who[0]} and the second {who[1]}")
        names = [name for name in names if name not in BY_JUDGE]
    both = {name: bool(contrast) or name in BY_JUDGE for name in names}
    changes = {name: difference(name, pairs, both=both[name], exact=not contrast, **how) for name in names}
    ends = {name: found for name in names if (found := bounds(name, docs, asked_alike=not contrast, **how)) is not None}
    for name in [name for name in names if name in BY_JUDGE and changes[name].estimate.n < len(docs)]:
        left_out = f"{len(docs) - changes[name].estimate.n} of {len(docs)} docs are left out"
        told = f"{name}: {left_out}: without a verdict in one of the runs"
        warnings.append("; ".join(filter(None, [told, said_bounds(ends.get(name))])))
    only = tuple(sorted(ours.keys() - theirs.keys())), tuple(sorted(theirs.keys() - ours.keys()))
    clusters = len(set(results.clusters([record for _, record in pairs])))
    skip = (*SAME, *(_OF_DOCS if any(only) or not shown_alike else ()))
    if contrast:
        skip = tuple(one for one in prints[0] if one not in _OF_RUN)
    settings = alike.apart(*prints, skip)
    if contrast and first.magic and second.magic and first.magic.seed != second.magic.seed:
        settings.append("the numbering of boxes")
    same = [name for name in names if not any(only) and _unchanged(name, docs)]
    return Compared(
        first=first.label,
        second=second.label,
        metric=second.metric,
        docs=len(docs),
        only_first=only[0],
        only_second=only[1],
        unscored=len(common) - len(docs),
        differences=changes,
        mcnemar=None,
        settings=tuple(settings),
        warnings=tuple(filter(None, [*warnings, runs.not_compared(*prints)])),
        base=second.base,
        kind="magic",
        index=None,
        higher=results.higher_is_better(second.metric, variant),
        clusters=None if clusters == len(docs) else clusters,
        draws=draws,
        identical=same == names,
        lower=tuple(name for name in names if not results.higher_is_better(name, variant)),
        unchanged=(*same, *(["score"] * (second.metric in same))),
        bounds=ends,
    )


def _unchanged(name: str, docs: Docs) -> bool:
    """Return whether each doc counts the same on both sides; two without a verdict do where the responses are the same."""
    for pair in docs:
        ours, theirs = (part(line, name) for line in pair)
        if ours != theirs or (ours is None and name in BY_JUDGE and not same_response(pair)):
            return False
    return True


# --- variants -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contrast:
    """Two variants of a model.

    Attributes:
        name: one of ``CONTRASTS``.
        model: a name for the model, told apart from the others shown.
        found: their differences, paired by item.
    """

    name: str
    model: str
    found: Compared

    @property
    def minds(self) -> list[str]:
        """What to mind, a line each."""
        found, apart = self.found, ", ".join(self.found.settings)
        told = [(len(found.only_first), found.first), (len(found.only_second), found.second)]
        out = [f"{found.first} and {found.second} differ in {apart}: that may be where a difference comes from"] * bool(
            apart
        )
        return [*out, *(f"{count} items only in {task}, left out" for count, task in told if count), *found.warnings]


@dataclass(frozen=True)
class MagicRuns:
    """What finished runs say of MAGIC.

    Attributes:
        tasks: of each model and task the newest result; by model, data and variant.
        contrasts: where a model has two variants of the same data.
        notes: what was left aside, and why; one line each.
    """

    tasks: tuple[Labelled, ...]
    contrasts: tuple[Contrast, ...]
    notes: tuple[str, ...]


def gather(paths: Sequence[str | Path]) -> MagicRuns:
    """Return the MAGIC tasks of some runs, and the contrasts between their variants.

    Args:
        paths: folders of runs (``--output_path``), or results files.

    Raises:
        RecordError: no run, a file that cannot be read, or no MAGIC task.
    """
    newest, older = runs.newest(result for run in runs.find([Path(path) for path in paths]) for result in run.results)
    scored = {id(one): one.magic for one in newest if one.magic}
    names = runs.labels(one.run for one in newest)
    tasks = [Labelled(one, names[one.run.identity], one.task) for one in newest if id(one) in scored]
    if not tasks:
        named = ", ".join(map(str, paths))
        raise RecordError(f"{named}: no MAGIC task with a score in this run; ask for one, such as --tasks magic_mosaic")

    def about(one: Labelled) -> MagicNumbers:
        return scored[id(one.result)]

    tasks.sort(key=lambda one: (one.model, _STEM.sub("", one.label), results.VARIANTS.index(about(one).variant)))
    notes = [f"{older} older result{'s' * (older > 1)} of the same tasks left aside"] * bool(older)
    contrasts = []
    for name, variants in CONTRASTS.items():
        for first, other in itertools.product(tasks, tasks):
            both = about(first), about(other)
            # variants whose names say that they belong together
            stems = [_STEM.sub("", one.label) for one in (first, other)]
            if (both[0].variant, both[1].variant) != variants or first.model != other.model or stems[0] != stems[1]:
                continue
            try:
                if both[0].dataset != both[1].dataset:
                    raise RecordError("other data")
                contrasts.append(Contrast(name, first.model, compare(first.result, other.result, contrast=name)))
            except RecordError as error:
                # not where files lie: notes stand in reports
                why = str(error).replace(f"{other.result.run.path.parent}/", "")
                notes.append(f"{other.label} is not compared with {first.label}: {why}")
    return MagicRuns(tuple(tasks), tuple(contrasts), tuple(dict.fromkeys(notes)))
