"""The ``magic`` commands from Python, such as ``api.magic.check``; they return data and print nothing.

Numbers are fractions in 0..1; what is not defined is None, with the reason. A user's mistake raises
``lmms_patch.errors.PatchError``, whose message is one line. What a function needs is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_patch.errors import OptionError, RecordError
from lmms_patch.stats.bounds import check_bootstrap

if TYPE_CHECKING:
    from lmms_patch.compare.variants import MagicRuns
    from lmms_patch.magic.build.builder import Built, Progress
    from lmms_patch.magic.dataset import Checked
    from lmms_patch.magic.score.steps import Chain
    from lmms_patch.magic.score.stepsense import StepSenses
    from lmms_patch.magic.score.verdicts import JudgeVerdict


def check(data: str | Path, *, split: str = "test", tell: Callable[[int], None] | None = None) -> Checked:
    """List everything that is wrong with a MAGIC dataset, and count what is in it.

    Args:
        data: a .jsonl or .parquet file, a folder with one, or a name on the hub (docs/magic.md).
        split: of a hub dataset.
        tell: is called after each line, with the number of lines so far.

    Raises:
        PatchError: there is no such dataset, or it cannot be read.
    """
    from lmms_patch.magic import dataset

    return dataset.inspect(data, split=split, tell=tell)


def build(
    questions: str | Path,
    scenes: str | Path,
    images: str | Path,
    output: str | Path,
    *,
    tell: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Built:
    """Make a MAGIC dataset from questions and scene graphs in GQA's form (Algorithm 1 of the paper), or go on with one that was begun.

    Args:
        questions: JSON file of questions in GQA's form.
        scenes: JSON file of scene graphs in GQA's form.
        images: folder with ``<imageId>.jpg`` (or another suffix).
        output: folder to write.
        tell: is called after each question.
        options: the fields of ``magic.build.BuildSettings``, and of its ``regions`` by their own names
            (``threshold=0.4``).

    Raises:
        PatchError: an option out of range, an input that cannot be read, a folder that holds something else, or not one
            item can be built.
    """
    from dataclasses import fields

    from lmms_patch.magic.build.builder import BuildSettings
    from lmms_patch.magic.build.builder import build as made
    from lmms_patch.magic.build.saliency import RegionSettings

    own = {one.name for one in fields(RegionSettings)}
    regions = RegionSettings(**{name: value for name, value in options.items() if name in own})
    settings = BuildSettings(regions=regions, **{name: value for name, value in options.items() if name not in own})
    return made(questions, scenes, images, output, settings, tell)


def show(
    folders: str | Path | Sequence[str | Path], *, draws: int = 10_000, level: float = 0.95, seed: int = 0
) -> MagicRuns:
    """Read the numbers of the MAGIC tasks of finished runs.

    Where a run has several variants, compare them item by item.

    Args:
        folders: of one run or several: ``--output_path``, or a results file. Of each model and task the newest result
        counts.
        draws: bootstrap draws of the contrasts; the tasks' own numbers are those of the run.
        level: coverage of the contrasts' intervals.
        seed: of the contrasts' bootstrap.

    Raises:
        PatchError: an option out of range, no run, a file that cannot be read, or no MAGIC task.
    """
    from lmms_patch.compare import variants

    check_bootstrap(draws, level, seed)
    paths = [folders] if isinstance(folders, (str, Path)) else list(folders)
    return variants.gather(paths, draws=draws, level=level, seed=seed)


@dataclass(frozen=True)
class Steps:
    """Reasoning steps of a run, to be labelled or labelled by a judge.

    Attributes:
        task: the MAGIC task.
        rows: one per step, with the columns ``magic.labels.FIELDS``.
        items: how many items are in them.
        of: how many items with a step the run has.
        without: items whose response has no step: they cannot be sampled.
        otherwise: items that are split into another number of steps than when the run was scored (by another version).
        judge: the judge; "": none.
        unjudged: steps that the judge gave no verdict on.
        errors: why, each reason once.
    """

    task: str
    rows: tuple[Mapping[str, Any], ...]
    items: int
    of: int
    without: int
    otherwise: int
    judge: str = ""
    unjudged: int = 0
    errors: tuple[str, ...] = ()

    def to_text(self, form: str) -> str:
        """Return the rows as the content of a ``.csv`` or ``.jsonl`` file."""
        from lmms_patch.magic.score import labels

        return labels.to_jsonl(self.rows) if form == ".jsonl" else labels.to_csv(self.rows)


def steps(
    folder: str | Path,
    *,
    task: str | None = None,
    items: int | None = None,
    seed: int = 0,
    annotator: str = "",
    judge: str = "",
    tell: Callable[[int, int], None] | None = None,
) -> Steps:
    """List the reasoning steps of a finished run's responses, one row each: for people to label, or labelled by a judge.

    Args:
        folder: ``--output_path`` of a run (of several the newest), or its results file.
        task: the MAGIC task; None: the only one that has chains of its own, with all boxes before other variants.
        items: at most so many: a seeded sample; None: all.
        seed: of the sample.
        annotator: who is to label them, written into each row.
        judge: a judge model that labels them (docs/magic-judge.md); its rows are of the source "judge".
        tell: is called after each item that is judged, with their number and of how many.

    Raises:
        PatchError: an option out of range, no such run or task, or a log that is missing or not whole.
    """
    from lmms_patch.compare.variants import lines_of
    from lmms_patch.magic.score import steps as stepping

    if items is not None and items < 1:
        raise OptionError(f"items is {items}; allowed: 1 or more")
    if annotator and judge:
        raise OptionError("annotator and judge exclude each other: a judge's labels bear its own name")
    name, lines = lines_of(Path(folder), task)
    chains = [stepping.chain_of(line) for line in lines]
    chosen = stepping.sample(chains, items, seed)
    if not chosen:
        raise RecordError(f"{folder}: no response of {name} has a reasoning step; there is nothing to label")
    some = len(chosen), sum(bool(chain.steps) for chain in chains)
    counts = (*some, len(chains) - some[1], sum(len(chain.steps) != chain.scored for chain in chosen))
    if not judge:
        return Steps(name, tuple(stepping.rows(chosen, annotator)), *counts)
    verdicts = _judged(chosen, judge, tell)
    labelled = {item: [one.value for one in said] for item, said in verdicts.items()}
    missing = [one for said in verdicts.values() for one in said if one.value is None]
    why = tuple(dict.fromkeys(one.error for one in missing))
    return Steps(name, tuple(stepping.rows(chosen, judge, "judge", labelled)), *counts, judge, len(missing), why)


def _judged(
    chains: Sequence[Chain], model: str, tell: Callable[[int, int], None] | None
) -> dict[str, Sequence[JudgeVerdict]]:
    """Return the judge's verdict on each step, by item; verdicts that are in its cache are not asked again."""
    import itertools
    import os

    from lmms_patch.harness.magic.judge import judge_from
    from lmms_patch.magic.score.judge_settings import JudgeSettings
    from lmms_patch.magic.score.verdicts import steps_inquiry

    if missing := [chain.item for chain in chains if not chain.question]:
        raise RecordError(f"the log has no question of item {missing[0]}; a judge needs it")
    asked = [steps_inquiry(chain.question, chain.gold, chain.steps) for chain in chains]
    judge = judge_from(JudgeSettings.from_env({**os.environ, "MAGIC_JUDGE": model}))
    assert judge is not None
    done = itertools.count(1)
    said = judge.many(asked, progress=None if tell is None else lambda: tell(next(done), len(set(asked))))
    return {chain.item: verdicts for chain, verdicts in zip(chains, said, strict=True)}


def stepsense(
    files: str | Path | Sequence[str | Path], *, draws: int = 1000, level: float = 0.95, seed: int = 0
) -> StepSenses:
    """Compute StepSense of step labels: the share of correct steps, and how far annotators agree.

    People and judges apart.

    Args:
        files: ``.csv`` or ``.jsonl`` files of labels (docs/magic.md), of one annotator or several.
        draws: bootstrap draws; the bootstrap keeps images together, where the files name them.
        level: coverage of the intervals.
        seed: of the bootstrap.

    Raises:
        PatchError: an option out of range, a file that cannot be read, or labels that contradict each other.
    """
    from lmms_patch.magic.score.labels import SOURCES, read_labels
    from lmms_patch.magic.score.stepsense import MOST_ANNOTATORS, StepSenses, across
    from lmms_patch.magic.score.stepsense import stepsense as score

    check_bootstrap(draws, level, seed)
    labelled = read_labels([files] if isinstance(files, (str, Path)) else files)
    bounds: dict[str, Any] = {"clusters": labelled.groups or None, "draws": draws, "level": level, "seed": seed}
    scores = tuple(
        score(labels, **bounds, unjudged=labelled.open.get(source, ()))
        for source in SOURCES
        if (labels := labelled.of(source))
    )
    between = across(labelled.of("human"), labelled.of("judge"), **bounds) if len(scores) > 1 else ()
    many = max(len(one.annotators) for one in scores)
    crowd = (
        (f"{many} annotators: how far they agree is computed for at most {MOST_ANNOTATORS}",)
        if many > MOST_ANNOTATORS
        else ()
    )
    return StepSenses(scores, between, dict(labelled.unlabelled), bool(labelled.groups), (*labelled.notes, *crowd))
