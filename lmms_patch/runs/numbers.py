"""The numbers of one task, and how they are written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from lmms_patch.ask.kinds import BESIDE, Key, Kind, end
from lmms_patch.runs import reading
from lmms_patch.runs.failures import Failed
from lmms_patch.runs.scoring import plain
from lmms_patch.stats import gate, spatial
from lmms_patch.stats.bounds import Count, GridSize, Number, Parts, Share, Some
from lmms_patch.stats.chance import Chance
from lmms_patch.stats.resample import Estimate

CopyClass = Literal["agreeing", "conflicting", "single"]


@dataclass(frozen=True)
class Grid:
    """The numbers of a grid or a set of boxes; scores on the metric's scale.

    Not valid: index and gap are None.

    Attributes:
        n: grid size, or the name of the set.
        excluded: docs left out.
        fip, mpp: over the same docs.
        index: 1 − MPP/FIP with its interval.
        gap: FIP − MPP with its interval.
        band: the band of the index; its span over the interval. None of boxes: the papers' bands are of grids.
        shares: where in the image, or when in the clip, the score comes from.
        warnings: what to mind.
        reason: why there is no index; empty otherwise.
        mark: how the index and the steady index contradict each other; empty where they do not.
        full_pass: of a run that left docs out, the index with the interval of what a full pass over the same docs would
            print; None of others.
    """

    n: GridSize | str
    excluded: Count
    fip: Number | None
    mpp: Estimate
    index: Estimate
    gap: Estimate
    band: str | None
    span: str | None
    shares: spatial.CellShares | None
    warnings: tuple[str, ...]
    reason: str
    mark: str = ""
    full_pass: Estimate | None = None


@dataclass(frozen=True)
class Lines:
    """The numbers of windows between the cells of a grid (``Kind.shifted``).

    Attributes:
        mpp: M over each doc's best of cells and windows, on the metric's own scale.
        one: the share of docs that one cell or window answers, 0..1; None where docs are not right or wrong.
    """

    mpp: Estimate
    one: Estimate | None


@dataclass(frozen=True)
class AskedPart:
    """Counts of the views and docs asked in a run with views left out; wrong images are not counted.

    Attributes:
        calls: views that were asked.
        of: views that a full pass asks.
        docs: docs of which anything was asked.
        whole: docs that were asked whole: they say where in the image the score comes from.
        estimated: whether docs were left out, so that the numbers are estimates; else only cells were left out, and the
            numbers are exact.
    """

    calls: Count
    of: Count
    docs: Count
    whole: Count
    estimated: bool


@dataclass(frozen=True)
class Regions:
    """The numbers of the boxes given with each doc; scores on the metric's scale.

    The three differences are relevant minus adversarial, over the docs that have both, and stand whatever the gate
    says.

    Attributes:
        sets: ``relevant`` and ``adversarial``: MPP of the best box of each doc, and the index made of it, as of a grid.
        mean: of each set, M of one box of each doc drawn at random (expected). It does not rise with the number of
        boxes.
        boxes: of each set, how many boxes the used docs have.
        left_out: of each set, why docs are not used for it, and how many.
        both: docs that are used for both.
        best: of the best boxes. A doc with more boxes of a set has more tries.
        even: of the best of equally many boxes: of the larger set as many as the other has, drawn at random (expected).
        average: of the means.
    """

    sets: Mapping[str, Grid]
    mean: Mapping[str, Estimate]
    boxes: Mapping[str, Count]
    left_out: Mapping[str, Mapping[str, Some]]
    both: Count
    best: Estimate
    even: Estimate
    average: Estimate


@dataclass(frozen=True)
class Placed:
    """The score by the place of the gold, for docs with equally many options; on the metric's scale.

    Attributes:
        docs: number of docs.
        scores: M of the answers to the order that shows the gold at the first place, at the second, ...; all over the
        same docs.
        p: permutation p-value of the hypothesis that the place changes nothing; None where nothing scores, or too many
            calls failed.
    """

    docs: Count
    scores: tuple[Estimate, ...]
    p: Share | None


@dataclass(frozen=True)
class Turned:
    """The numbers of docs asked in every cyclic order of their options.

    All over the same docs, on the metric's own scale.

    Attributes:
        docs: docs whose every order has a score.
        left_out: why others are left out, and how many.
        once: M of the answers to the docs' own order.
        mean: M of one order of each doc drawn at random (expected): the mean over orders.
        every: M of each doc's worst order: of right and wrong answers, the share of docs that are right in every order.
        lost: once less every, paired by doc.
        guess: what independent guesses would earn in place of ``every``; None where M is not linear in scores, or too
        many calls failed.
        places: by number of options, the score by the place of the gold.
    """

    docs: Count
    left_out: Mapping[str, Some]
    once: Estimate
    mean: Estimate
    every: Estimate
    lost: Estimate
    guess: Number | None
    places: Mapping[int, Placed]

    @property
    def placed(self) -> Placed | None:
        """The scores of the docs with the commonest number of options (of several, the least).

        None where there are none.
        """
        return min(self.places.values(), key=lambda placed: (-placed.docs, len(placed.scores)), default=None)


@dataclass(frozen=True)
class Hidden:
    """How much more the relevant boxes cost when hidden than the adversarial boxes, and how large both are.

    The score and the drop of each set are in ``Analysis.curve`` and ``Analysis.drops``.

    Attributes:
        both: docs that are used for both sets.
        extra: over these docs, how much further the score falls with the relevant boxes hidden than with the
        adversarial ones.
        share: of each set, what part of the image is hidden: the mean over the docs that are used for it.
        share_of_both: the same over the docs that are used for both.
        left_out: of each set, why docs are not used for it, and how many.
    """

    both: Count
    extra: Estimate
    share: Mapping[str, Share]
    share_of_both: Mapping[str, Share]
    left_out: Mapping[str, Mapping[str, Some]]


@dataclass(frozen=True)
class Necessity:
    """What docs need at a grid: the shares solved by text, by a cell, by the whole image alone, or not at all (``stats.composition``).

    Attributes:
        n: grid size.
        docs: docs that the shares are of.
        again: how many of them were asked again.
        shares: of each class.
        whole: the share that needs the whole image, of what is solved.
        index: the share that needs the whole image, of what is solved with it: the steady index.
        told_apart: whether text and cell are told apart; else only their sum is known.
    """

    n: GridSize
    docs: Count
    again: Count
    shares: Mapping[str, Estimate]
    whole: Estimate
    index: Estimate
    told_apart: bool = True


@dataclass(frozen=True)
class Analysis:
    """The numbers of a task, as its results file holds them.

    Attributes:
        metric: the metric they are of.
        n_docs: docs with this metric.
        clusters: number of clusters; None where docs are independent.
        form: the aggregation's form; None where only its own code can compute it.
        fip: M on full images with its interval.
        chance: the floors.
        ceiling: M of the gold answers; None where unknown.
        gold_below: docs whose gold does not get full marks.
        gate: whether the index may be read, with every term.
        grids: by grid size.
        warnings: what to mind.
        regions: of a task that shows docs' own boxes.
        failed: the calls that gave no answer; None where each gave one.
        asked: what was asked, of a run that left views out; None of others.
        necessity: the necessity map at each grid, the finest first; empty where docs are not right or wrong, or no grid
        was asked.
        curve: of a task that shows few frames or less detail, M by the number of frames or the reduction; of one that
            hides docs' own boxes, M by the set that is hidden; None of others.
        drops: of a task with such numbers that also shows the full image, M on the full image less each of them, over
        the same docs; None likewise.
        turned: of a task that asks docs in every order of their options; None of others.
        hidden: of a task that hides docs' own boxes; None of others.
        lines: of a task that also shows windows between the cells, by grid size; None of others.
        own: the numbers of a method of another package, by name; None of others.
        same: what is the same in all docs, in words.
    """

    metric: str
    n_docs: Count
    clusters: Count | None
    form: str | None
    fip: Estimate
    chance: Chance
    ceiling: Number | None
    gold_below: Count
    gate: gate.Gate
    grids: Mapping[GridSize, Grid] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    regions: Regions | None = None
    failed: Failed | None = None
    asked: AskedPart | None = None
    necessity: tuple[Necessity, ...] = ()
    curve: Mapping[Parts | str, Estimate] | None = None
    drops: Mapping[Parts | str, Estimate] | None = None
    turned: Turned | None = None
    hidden: Hidden | None = None
    lines: Mapping[GridSize, Lines] | None = None
    own: Mapping[str, Estimate] | None = None
    same: tuple[str, ...] = ()

    @property
    def sets(self) -> Mapping[Key, Grid]:
        """The numbers of each set of views: of grids, or of boxes."""
        of_boxes = {} if self.regions is None else self.regions.sets
        return {**dict(self.grids.items()), **dict(of_boxes.items())}


@dataclass(frozen=True)
class Copied:
    """The numbers of the docs in a class of copies.

    Attributes:
        docs: number of docs.
        accuracy: mean TsT accuracy; None where none is scored.
        majority: mean of the frequency baseline; None likewise.
        above: accuracy less majority, paired by doc.
    """

    docs: Count
    accuracy: Number | None
    majority: Number | None
    above: Estimate


@dataclass(frozen=True)
class Grouped:
    """The numbers of a cross-validation, for a single way to group docs into folds.

    Attributes:
        accuracy: TsT accuracy, mean over docs and fold seeds. Its interval resamples docs in their clusters: it covers
            new items from the same sources, given the folds.
        sd: standard deviation over fold seeds; None with one seed.
        seeds: number of fold seeds.
        majority: the frequency baseline of the training folds, mean over docs and seeds.
        above: accuracy less majority, paired by doc.
        p: permutation p-value of ``above`` > 0: signs of whole clusters flipped at random; None with nothing to
        compare.
        copies: by class of copies (docs/tst.md), which share of the number comes from docs whose text stands more than
        once; None where no text does.
        withheld: why ``above`` is no shortcut of the language: docs whose copies have the same gold fall below the
            majority answer (``agreeing``), or only docs whose copies have another gold rise above it (``conflicting``):
            the copies are answered in reverse. None: no such reason.
    """

    accuracy: Estimate
    sd: Number | None
    seeds: Count
    majority: Number | None
    above: Estimate
    p: Share | None
    copies: Mapping[CopyClass, Copied] | None = None
    withheld: Literal["agreeing", "conflicting"] | None = None


@dataclass(frozen=True)
class Category:
    """The headline numbers of a category.

    Attributes:
        docs: number of docs.
        accuracy: mean TsT accuracy (fraction).
        low: lower end of its interval; None where there are too few clusters.
        high: upper end of its interval; None where there are too few clusters.
        majority: mean frequency baseline (fraction).
        chance: mean of what an uninformed guess earns (fraction).
        s: mean bias score (fraction).
    """

    docs: Count
    accuracy: Number | None
    low: Number | None
    high: Number | None
    majority: Number | None
    chance: Number | None
    s: Number | None


@dataclass(frozen=True)
class Null:
    """Compare a text-only cross-validation with golds shuffled within their categories.

    Attributes:
        own: accuracy at the first fold seed.
        shuffled: the same with golds shuffled within their category, one for each shuffle, until it was decided.
        p: of accuracy above the shuffled ones, two-sided, by Student's t; where one of these is as high, (1 + number of
            these) / (1 + shuffles).
    """

    own: Number
    shuffled: tuple[Number, ...]
    p: Share


FOLDS = {
    "source": "folds by source",
    "none": "random folds",
    "text": "folds by text",
    "joined": "folds by source and text",
}
"""What the groupings of a text-only cross-validation are called."""
APART = ("none", "source")
"""The groupings that deal docs of one text to different folds."""
NEAR = 0.8
"""The least similarity of near copies: the cosine of the TF-IDF of character n-grams within words, both of all of them and of the rare ones."""
ALPHA = 0.05
"""The level of the tests of a text-only cross-validation."""
REVERSED = {
    "agreeing": "docs whose copies have the same answer fall below the constant answer: the training copies are answered in reverse",
    "conflicting": "only docs whose copies have another answer rise above the constant answer: the training copies are answered in reverse",
}
"""Why a gain over the constant answer is no shortcut of the language, by ``Grouped.withheld``."""


@dataclass(frozen=True)
class Stress:
    """All numbers of a Test-set Stress-Test.

    Attributes:
        headline: the name of the grouping to which the answers, s(x) and the categories belong.
        by_grouping: numbers for source, none (random folds), text, and joined (source and text together), as far as
        they were computed.
        leakage: accuracy with random folds less accuracy with source-grouped folds, paired by doc: how much a
            diagnostic recognises the source instead of the question; None without both.
        zero_shot: accuracy of the same model before training; None where the diagnostic has none.
        delta: headline accuracy less zero-shot, paired by doc; None without it.
        chance: mean of what an uninformed guess earns, on the metric's own scale.
        s: mean bias score.
        categories: the headline numbers by category.
        unscored: number of docs without a score.
    """

    headline: Literal["source", "none", "text", "joined"]
    by_grouping: Mapping[str, Grouped]
    leakage: Estimate | None
    zero_shot: Estimate | None
    delta: Estimate | None
    chance: Number | None
    s: Number | None
    categories: Mapping[str, Category] = field(default_factory=dict)
    unscored: Count = 0


EXTRA = "drop_extra"
"""How much further the score falls with the relevant boxes hidden than with the adversarial ones."""


def none_used(key: Key) -> str:
    """Return why a set of views without usable docs has no number."""
    return (
        "no doc can be used at this grid"
        if isinstance(key, int)
        else f"no doc has {'a score on that' if key == BESIDE else f'{key} boxes that can be used'}"
    )


def to_mind(analysis: Analysis, kind: Kind) -> list[str]:
    """Return what to mind of a run's numbers: warnings, and why an index is null."""
    out = list(analysis.warnings)
    for key, grid in analysis.sets.items():
        if grid.index.value is None:
            out.append(f"{kind.prefix}{end(key)} is null: {grid.reason}")
            continue
        out += grid.warnings
        if grid.mark:
            out.append(f"{reading.name(str(kind.prefix), key, steady=False)}, {reading.explained(grid.mark)}")
    # grids may repeat a warning
    return list(dict.fromkeys(out))


def to_json(value: Any) -> Any:
    """Convert a value to plain JSON types: dataclasses and Structs to objects, arrays to lists, nan to null."""
    return plain(msgspec.to_builtins(value, str_keys=True, enc_hook=plain))
