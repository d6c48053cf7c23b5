"""``lmms-patch prune TASK --blind RUN...``: from runs of several models to the docs that are known without the image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from lmms_patch.app.options import PruneArguments
from lmms_patch.errors import OptionError, PatchError, RecordError
from lmms_patch.runs.docs import full_marks
from lmms_patch.runs.run import Result, find, labels, newest
from lmms_patch.text import clean
from lmms_patch.tst.copies import cluster_of
from lmms_patch.tst.formats import Blind, BlindModel
from lmms_patch.tst.items import Item
from lmms_patch.tst.known import Array, guess_rates, known
from lmms_patch.tst.prune import EVEN, Pruned, Round

WAYS = ("blind", "blindguess", "swap", "blank")
"""Kinds that show no right image. Of a model that was asked in several of these ways the first counts: asked as if an image were there, models answer
more than when they are told to guess (https://arxiv.org/abs/2603.21687)."""
USED = {"task", "runs", "blind", "output", "include_path", "key", "push"}
"""The options that mean something beside --blind."""
CheckGolds = Callable[[Path, pl.DataFrame, Sequence[Item]], None]
"""Refuses a run whose golds, the columns ``GOLDS``, are not those of the docs."""
GOLDS = ("doc_id", "gold", "label")


def check(arguments: PruneArguments) -> None:
    """Refuse options in conflict with --blind, or with its absence.

    Raises:
        OptionError: RUN... without --blind or the reverse, or an option of another way to prune.
    """
    if bool(arguments.runs) != arguments.blind:
        raise OptionError("--blind and RUN... go together: lmms-patch prune TASK --blind RUN1 RUN2 ...")
    other = [
        name
        for name, field in type(arguments).model_fields.items()
        if name not in USED and getattr(arguments, name) != field.default
    ]
    if arguments.blind and other:
        raise OptionError(
            f"{other[0]} is of pruning by a text-only model, and says nothing of blind answers; leave it out beside --blind"
        )


def pruned(
    arguments: PruneArguments, items: Sequence[Item], check_golds: CheckGolds, tell: Callable[[str], None]
) -> tuple[Pruned, Blind]:
    """Return which docs are pruned, and what the models' answers without the image say of each doc.

    Args:
        arguments: what was asked.
        items: the docs of the task.
        check_golds: refuses a run whose golds are not those of the docs.
        tell: told what was read.

    Raises:
        RecordError: there are no such runs of two models (by a metric that is better when higher), or a log is not of
            these docs.
    """
    results = [
        one
        for run in find(arguments.runs)
        for one in run.results
        if one.base == arguments.task and not one.place and one.higher_is_better
    ]
    latest, earlier = newest(results)
    # reversed, so that of a model's ways the first is written last, and stays
    asked = {one.run.identity: one for way in reversed(WAYS) for one in latest if one.kind.name == way}
    if len(asked) < 2:
        raise RecordError(
            f"{', '.join(map(str, arguments.runs))}: {len(asked)} models were asked {arguments.task} without its image (_{', _'.join(WAYS)}); "
            "answers of two or more are needed"
        )
    if earlier:
        tell(f"of {earlier} results there are later ones, which are taken")
    names = labels([one.run for one in latest])
    read = {who: _answers(one, items, check_golds) for who, one in asked.items()}
    alike = [(item.category, item.format, len(item.answers)) for item in items]
    right = np.array([marks for marks, _ in read.values()])
    rights = _rights(items, [answers for _, answers in read.values()], right)
    # an open question counts as one with a choice of all different golds
    options = [len(item.answers) or len({item.golds[0] for item in items if item.golds}) for item in items]
    guess = np.array([guess_rates(answers, rights, alike, options) for _, answers in read.values()])
    clusters = cluster_of(items)
    told = known(right, guess, clusters)
    # ties by the stable id, so that the order of the docs changes nothing
    goes = sorted(map(int, np.flatnonzero(told.posterior > EVEN)), key=lambda i: (-told.posterior[i], items[i].key))
    removed = np.array(goes, np.intp)
    if len(goes) == len(items):
        raise PatchError(
            f"{arguments.task}: each doc is more likely known without the image than not, so no doc would be left"
        )
    stopped = "no doc that is left is more likely known without the image than not"
    scores = {items[i].key: float(told.posterior[i]) for i in goes}
    once = Round(
        1,
        len(items),
        None,
        None,
        None,
        None,
        float(told.posterior.max()),
        scores,
        float((1 - told.posterior[removed]).sum()),
    )
    found = Pruned(np.setdiff1d(np.arange(len(items)), removed), removed, tuple(scores.values()), (once,), stopped)
    models = [
        BlindModel(
            model=names[who],
            task=one.task,
            right=_mean(marks),
            # over the docs that this model was asked, like ``right``
            guess=_mean(np.where(np.isfinite(marks), rate, np.nan)),
            p=p,
            counts=counts,
        )
        for (who, one), marks, rate, p, counts in zip(asked.items(), right, guess, told.p, told.counts, strict=True)
    ]
    return found, Blind(models=models, share=told.share, as_many_as=told.as_many_as)


def _mean(values: Array) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else 0.0


def _answers(result: Result, items: Sequence[Item], check_golds: CheckGolds) -> tuple[Array, list[object]]:
    """Return whether a model is right about each item (nan: not asked or not scored), and its answers (None likewise)."""
    docs = result.frame([*GOLDS, "view", "score", "answer", "names", "references"]).filter(view=0)
    check_golds(result.path or result.run.path, docs, items)
    told = docs.select("doc_id", "score", full_marks(result.metric).alias("marks"), "answer", "names")
    rows = {doc_id: rest for doc_id, *rest in told.filter(pl.col("score").is_not_null()).iter_rows()}
    right: Array = np.full(len(items), np.nan)
    answers: list[object] = [None] * len(items)
    for at, item in enumerate(items):
        if item.doc_id in rows:
            score, marks, answer, names = rows[item.doc_id]
            right[at] = score >= marks / 2
            answers[at] = _plain(answer) if names is None else names
    return right, answers


def _plain(answer: object) -> str:
    return clean(str(answer)).strip(" .").casefold()


def _rights(items: Sequence[Item], answers: Sequence[Sequence[object]], right: Array) -> list[set[object]]:
    """Return each item's right answers: places of the gold among options, else golds and answers scored as right."""
    by_gold = [
        {place + 1 for place in item.rights} if item.is_choice else set(map(_plain, item.golds)) for item in items
    ]
    return [
        gold | {own[at] for own, marks in zip(answers, right, strict=True) if marks[at] == 1}
        for at, gold in enumerate(by_gold)
    ]
