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

from lmms_patch.compare import alike
from lmms_patch.compare.formats import Task, numbers_of
from lmms_patch.errors import RecordError
from lmms_patch.magic.method import part, read
from lmms_patch.magic.score import results
from lmms_patch.magic.score.results import Record
from lmms_patch.runs import run as runs
from lmms_patch.runs.run import Labelled, Result
from lmms_patch.runs.unjudged import BY_JUDGE
from lmms_patch.stats import forms, paired
from lmms_patch.stats.paired import Difference, Number
from lmms_patch.stats.resample import LEVEL, Array, cluster_numbers

CONTRASTS = {"distraction": ("all", "relevant"), "boxes": ("none", "all"), "hints": ("none", "relevant")}
"""By name, the variant that is subtracted and the one that it is subtracted from."""
SAME = ("benchmark", "kind", "filter", "views")
_OF_RUN = ("limit", "few-shot", "system instruction", "generation", "benchmark version", "lmms-eval version", "judge")
"""Settings that two variants of one run share."""
_RECALL = ("magiscore_recall_micro", "magiscore_recall_macro")
_FLAGS = (*results.HEALED, *results.REGIONS, *results.JUDGED, *results.ANSWERS, "answer_found")
"""Metrics in which a doc counts 0 or 1."""
_STEM = re.compile(r"_(?:relevant|nobox|selfheal)$")
Docs = Sequence[tuple[Record, Record]]


# --- a metric -------------------------------------------------------------------------------------


def difference(metric: str, docs: Docs, *, both: bool, exact: bool, **how: Any) -> Difference:
    """Return the difference of a metric between two lists of docs.

    Args:
        metric: its name.
        docs: the records of each doc.
        both: only docs that count on both sides; else a doc that counts on one side is part of that side's mean.
        exact: whether the p-value of flags is McNemar's, where all docs count on both sides.
        how: ``draws`` and ``level`` of ``stats.paired.differences``.
    """
    parts = np.array([[part(record, metric) or (np.nan, np.nan) for record in pair] for pair in docs], float)
    return _paired(parts, docs, both=both, exact=exact and metric in _FLAGS, **how)


def _paired(parts: Array, docs: Docs, *, both: bool = True, exact: bool = False, **how: Any) -> Difference:
    """Return the difference of two ratios of sums from each doc's shares, shape (docs, runs, 2); images are drawn whole."""
    counts = np.asarray(np.isfinite(parts).all(axis=2))
    places = np.flatnonzero(counts.all(axis=1) if both else counts.any(axis=1)).tolist()
    test = paired.mcnemar(*parts[places, :, 0].T) if exact and counts[places].all() else None
    labels = cluster_numbers(results.clusters([docs[place][1] for place in places]))
    shares = np.nan_to_num(parts[places])
    sides, tests = (shares[:, 0], shares[:, 1]), {"": test} if test else {}
    return paired.differences(forms.RATIO, {"": sides}, {"": Number(("",))}, labels, exact=tests, **how)[""]


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
    due = [pair for pair in docs if key and all(results.is_due(record, key) for record in pair)]
    verdicts = np.array([[getattr(record, key) for record in pair] for pair in due], float).reshape(-1, 2)
    if not np.isnan(verdicts).any():
        return None
    if asked_alike:
        same = np.array([[bool(one.response) and one.response == other.response] for one, other in due])
        verdicts = np.where(same & np.isnan(verdicts), np.nan_to_num(verdicts).max(axis=1, keepdims=True), verdicts)
    # the missing verdicts of the first and of the second run
    low, high = (np.where(np.isnan(verdicts), missing, verdicts) for missing in ((1.0, 0.0), (0.0, 1.0)))
    ones = np.ones_like(verdicts)
    return _paired(np.stack([low, ones], axis=2), due, **how), _paired(np.stack([high, ones], axis=2), due, **how)


# --- two results ----------------------------------------------------------------------------------


def compare(first: Result, second: Result, *, level: float = LEVEL, draws: int = 0, contrast: str = "") -> Task:
    """Return the differences of all shared numbers of two results, paired by the docs' names (``result.compare``).

    Args:
        first: a result.
        second: the result of the other side.
        level: nominal coverage of the intervals, 0..1.
        draws: bootstrap draws; 0: 10,000.
        contrast: one of ``CONTRASTS``, of which the two are the variants: docs are then paired by item, only docs that
            count on both sides are compared, and the two responses to an item get verdicts of their own.

    Raises:
        RecordError: as ``result.compare``.
    """
    if not contrast:
        alike.check(first, second, SAME)
    prints = first.fingerprint, second.fingerprint
    ours, theirs = (
        {record.item if contrast else record.id: record for record in read(one).values()} for one in (first, second)
    )
    common = sorted(ours.keys() & theirs.keys())
    docs = [(ours[name], theirs[name]) for name in common if ours[name].failed is theirs[name].failed is None]
    if not docs:
        raise RecordError(f"{second.task}: no docs are scored in both runs; both must be asked the same")
    # with other seeds other boxes are shown, so a doc's digest may differ without a change of the data
    shown_alike = prints[0].get("boxes shown") == prints[1].get("boxes shown")
    boxes = "none" not in CONTRASTS.get(contrast, ())
    _check_data(docs, second.task, contrast, boxes, shown_alike)
    variant, draws = docs[0][1].variant, draws or paired.DRAWS
    how: dict[str, Any] = {"draws": draws, "level": level}
    known = (*results.JUDGED, *results.ANSWERS, *_RECALL * boxes) if contrast else results.metrics(variant, judged=True)
    names = [name for name in known if name in first.measures and name in second.measures]
    warnings, judges = [], [one.get("judge") for one in prints]
    # verdicts of different judges differ by the judge as well as by the model
    if judges[0] != judges[1]:
        said = ", ".join(name for name in BY_JUDGE if name in {*first.measures, *second.measures})
        warnings.append(f"{said}: not compared, since the judges differ")
        names = [name for name in names if name not in BY_JUDGE]
    changes, ends = dict[str, Difference](), dict[str, tuple[Difference, Difference]]()
    for name in names:
        both = bool(contrast) or name in BY_JUDGE
        changes[name] = difference(name, docs, both=both, exact=not contrast, **how)
        if found := bounds(name, docs, asked_alike=not contrast, **how):
            ends[name] = found
        if name in BY_JUDGE and (lost := len(docs) - changes[name].estimate.n):
            low, high = (end.estimate.value or 0.0 for end in found) if found else (0.0, 0.0)
            said = f"; the difference is {low:+.3f} to {high:+.3f} with the unjudged" * (high > low)
            warnings.append(
                f"{name}: {lost} of {len(docs)} docs are left out: without a verdict in one of the runs{said}"
            )
    only = tuple(sorted(ours.keys() - theirs.keys())), tuple(sorted(theirs.keys() - ours.keys()))
    clusters = len(set(results.clusters([record for _, record in docs])))
    skip = (*SAME, *(alike.OF_DOCS if any(only) or not shown_alike else ()))
    settings = alike.apart(*prints, [one for one in prints[0] if one not in _OF_RUN] if contrast else skip)
    scored_alike = all(part(one, name) == part(other, name) for one, other in docs for name in names)
    # what the judge left out may differ
    identical = not any(only) and scored_alike and not any(end.estimate.value for one in ends.values() for end in one)
    return Task(
        first=first.label,
        second=second.label,
        metric=second.metric,
        docs=len(docs),
        only_first=only[0],
        only_second=only[1],
        unscored=len(common) - len(docs),
        mcnemar=None,
        settings=tuple(settings),
        warnings=tuple(filter(None, [*warnings, runs.not_compared(*prints)])),
        base=second.base,
        kind="magic",
        index=None,
        higher=results.higher_is_better(second.metric, variant),
        clusters=None if clusters == len(docs) else clusters,
        draws=draws,
        identical=identical,
        numbers=numbers_of(changes, second.metric),
        lower=tuple(name for name in names if not results.higher_is_better(name, variant)),
        bounds=ends,
    )


def _check_data(docs: Docs, task: str, contrast: str, boxes: bool, shown_alike: bool) -> None:
    """Refuse docs with another question, answer, image or boxes in the two runs.

    Raises:
        RecordError: the first such doc.
    """
    of_data = "data" if contrast else "doc" if shown_alike else ""

    def shown(record: Record) -> tuple[Any, ...]:
        return record.target, record.group, boxes and len(record.relevant), not contrast and record.boxes

    for one, other in docs:
        digests = one.asked.get(of_data), other.asked.get(of_data)
        unknown = not contrast and None in digests
        if shown(one) != shown(other) or (digests[0] != digests[1] and not unknown):
            raise RecordError(
                f"{task}: {one.item if contrast else one.id} has another question, answer, image or boxes in the two runs: other data"
            )


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
    found: Task

    @property
    def minds(self) -> list[str]:
        """What to mind, a line each."""
        found, apart = self.found, ", ".join(self.found.settings)
        said = f"{found.first} and {found.second} differ in {apart}: that may be where a difference comes from"
        told = [(len(found.only_first), found.first), (len(found.only_second), found.second)]
        left_out = [f"{count} items only in {task}, left out" for count, task in told if count]
        return [*[said] * bool(apart), *left_out, *found.warnings]


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
    names = runs.labels(one.run for one in newest)
    # variants whose names say that they belong together
    tasks = {
        (names[one.run.identity], _STEM.sub("", one.task), about.variant, about.dataset): one
        for one in newest
        if (about := one.magic)
    }
    if not tasks:
        raise RecordError(
            f"{paths[0]}: no MAGIC task with a score in this run; ask for one, such as --tasks magic_mosaic"
        )
    ordered = sorted(tasks, key=lambda key: (*key[:2], results.VARIANTS.index(key[2])))
    notes = [f"{older} older result{'s' * (older > 1)} of the same tasks left aside"] * bool(older)
    contrasts = []
    for (name, variants), ours, theirs in itertools.product(CONTRASTS.items(), ordered, ordered):
        if (ours[2], theirs[2]) != variants or ours[:2] != theirs[:2]:
            continue
        first, second = tasks[ours], tasks[theirs]
        try:
            if ours[3] != theirs[3]:
                raise RecordError("other data")
            contrasts.append(Contrast(name, ours[0], compare(first, second, contrast=name)))
        except RecordError as error:
            # not where files lie: notes stand in reports
            why = str(error).replace(f"{second.run.path.parent}/", "")
            notes.append(f"{second.task} is not compared with {first.task}: {why}")
    found = tuple(Labelled(tasks[key], key[0], tasks[key].task) for key in ordered)
    return MagicRuns(found, tuple(contrasts), tuple(dict.fromkeys(notes)))
