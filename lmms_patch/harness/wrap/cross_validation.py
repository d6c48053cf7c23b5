"""What a text-only diagnostic is asked of a ``_tst<k>`` task: by grouping, without training, and on shuffled golds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.runs.numbers import FOLDS, Null
from lmms_patch.text import log
from lmms_patch.tst.checks import leaks
from lmms_patch.tst.copies import cluster_of
from lmms_patch.tst.diagnosis import Diagnosis, Job, Runner, diagnose, fold_seeds, scored
from lmms_patch.tst.folds import Grouping, grouping
from lmms_patch.tst.items import Diagnostic, Item
from lmms_patch.tst.null import has_many_categories, p_beyond_kinds, shuffled_null
from lmms_patch.tst.rewards import Rewards
from lmms_patch.tst.target_encoding import Array


@dataclass(frozen=True)
class CrossValidation:
    """Trains a diagnostic on all folds of a task but one, and asks about that fold, for each fold.

    Attributes:
        spec: what was asked.
        items: the evaluated docs.
        rewards: their native scores.
        headline: the grouping of the headline number.
        jobs: the folds of the headline at the first fold seed.
        diagnostic: the text-only model class.
        runner: trains and predicts the folds.
    """

    spec: WrapSpec
    items: Sequence[Item]
    rewards: Rewards
    headline: Grouping
    jobs: Sequence[Job]
    diagnostic: Diagnostic
    runner: Runner

    @cached_property
    def _prepared(self) -> Any:
        """The diagnostic with the items read."""
        return self.diagnostic.prepare(self.items, self.rewards)

    def check(self) -> None:
        """Check on the first fold whether features tell the golds, or the texts, of held-out docs.

        Raises:
            CannotWrapError: they do.
        """

        def prepare(items: Sequence[Item]) -> Any:
            return self.diagnostic.prepare(items, self.rewards.regold(items))

        train, held, seed = self.jobs[0]
        assert train is not None
        moved = leaks(self.items, prepare, train, held, seed, self.headline.groups)
        if moved:
            more = f" (and {len(moved) - 1} more)" if len(moved) > 1 else ""
            raise CannotWrapError(
                f"{self.spec.name}: leak: {moved[0]}{more}; no number of this diagnostic can be trusted"
            )
        log().info(
            f"{self.spec.name}: no leak: golds of held-out docs change no feature, and their texts change no feature of a training doc"
        )

    def by_grouping(self, others: Sequence[str]) -> tuple[dict[str, Diagnosis], dict[str, str]]:
        """Return the cross-validations by grouping, the headline's first, and why a grouping was left out.

        Args:
            others: the groupings beside the headline's.

        Raises:
            OptionError: the docs cannot be dealt to the folds of the headline.
        """
        options, done, unusable = self.spec.options, {}, {}
        seeds = range(options.fold_seed, options.fold_seed + (options.fold_seeds or fold_seeds(len(self.items))))
        for name in dict.fromkeys([self.headline.name, *others]):
            groups = grouping(self.items, name)
            if not groups.usable:
                unusable[name] = groups.reason
                continue
            try:
                done[name] = diagnose(
                    self._prepared,
                    self.items,
                    self.rewards,
                    np.arange(len(self.items)),
                    groups,
                    k=self.spec.folds,
                    seeds=seeds,
                    seed=options.seed,
                    runner=self.runner,
                )
                log().info(f"{self.spec.name}, {FOLDS[name]}: {done[name].accuracy:.3f}")
            except OptionError as error:
                # without the headline there is no number; any further grouping may be missing
                if name == self.headline.name:
                    raise OptionError(f"{self.spec.name}: {error}") from None
                unusable[name] = str(error)
        return done, unusable

    def zero_shot(self) -> tuple[Array, Array] | None:
        """Return bias scores and native scores of the untrained model, shape (n,) each; None for a diagnostic without zero-shot answers."""
        if not hasattr(self._prepared, "zero_shot"):
            return None
        # nothing is held out from a model without training: the parts only share the work
        everyone = np.arange(len(self.items))
        jobs = [(None, part, 0) for part in np.array_split(everyone, self.spec.folds)]
        parts = self.runner(self._prepared, jobs, self.headline.groups)
        return scored(self.items, self.rewards, everyone, [one for part in parts for one in part])

    def importance(self) -> list[Mapping[str, Any]]:
        """Return rows of ``tree_diagnostic.Importance`` over the headline's folds; none where there are no features."""
        explain = getattr(self._prepared, "explain", lambda jobs, groups: ())
        return [dataclasses.asdict(row) for row in explain(self.jobs, self.headline.groups)]

    def null(self, found: Diagnosis, shuffles: int) -> Null | None:
        """Return what the diagnostic scores on shuffled golds; None where these decide nothing.

        Args:
            found: the headline's cross-validation.
            shuffles: the most sets of shuffled golds.
        """
        asked: list[Null] = []

        def null() -> Null:
            log().info(
                f"{self.spec.name}: the golds are shuffled and cross-validated, at most {shuffles} times, each as long as one fold seed"
            )
            asked.append(
                shuffled_null(
                    self.diagnostic,
                    self.items,
                    self.rewards,
                    self.headline,
                    found,
                    k=self.spec.folds,
                    fold_seed=self.spec.options.fold_seed,
                    seed=self.spec.options.seed,
                    shuffles=shuffles,
                    runner=self.runner,
                )
            )
            return asked[0]

        # the golds are shuffled only if the test comes to need them
        if shuffles:
            p_beyond_kinds(found, cluster_of(self.items), has_many_categories(self.items), null)
        return next(iter(asked), None)
