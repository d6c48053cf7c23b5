"""The README.md of a pruned benchmark, from one template: what was removed, by what rule, and what that shows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_patch import __version__
from lmms_patch.present.sheets import Sheet, table
from lmms_patch.text import markdown
from lmms_patch.tst.controls import Judged
from lmms_patch.tst.formats import Blind

_CARD = """---
pretty_name: {task}
tags: [lmms-eval, lmms-patch, pruned-benchmark]
---

# {title}

{kept:,} of the {docs:,} docs of `{base}` of lmms-eval: those that stayed after `lmms-patch prune` ({version}). The folder `task` lists their
ids; questions, answers and images are in the original dataset.

    lmms-eval --include_path task --tasks {task} --model ...

## What was removed

{rule} It ended because: {stopped}.

{categories}

`pruned.json` has the ids of all docs, and `removed.csv` round and score of each removed one.

## What this shows

{shown}

It does not show that the kept docs need the image: a model with more knowledge may still answer some. Other docs are easier or harder:
compare models on the same docs.

## How to cite

Cite the original, and {source}.
"""
_RULES = {
    "blind": "The docs that are more likely known to models without the right image than guessed went.",
}
_BY_TEXT = (
    "Iterative Bias Pruning: a text-only model ({model}) was cross-validated on the questions and options in {folds} folds (grouping: "
    "{grouping}), and the docs with the highest {by} went, round by round (budget {budget:g}, strategy {strategy})."
)


def card(
    base: str,
    settings: Mapping[str, Any],
    stopped: str,
    categories: Sequence[tuple[str, int, int, float, int]],
    judged: Judged | None,
    blind: Blind | None,
) -> str:
    """Return the README.md.

    Args:
        base: the task that was pruned.
        settings: how docs were chosen.
        stopped: why the pruning ended.
        categories: category, docs, removed, percent removed, kept; the last row is the total.
        judged: what the judge says; None where nothing was judged.
        blind: what blind answers of several models say; None where docs did not go by them.
    """
    if blind is not None:
        shown = f"{blind_models(blind).to_markdown()}\n{markdown(of_known(blind))}"
    else:
        shown = "Nothing: no model was trained, so no judge was asked." if judged is None else markdown(judged.sentence)
    *_, (_, docs, _, _, kept) = categories
    return _CARD.format(
        task=f"{base}_pruned",
        title=markdown(f"{base}_pruned"),
        base=base,
        kept=kept,
        docs=docs,
        version=__version__,
        rule=_RULES.get(settings["by"]) or _BY_TEXT.format(**settings),
        stopped=markdown(stopped),
        categories=category_sheet(categories).to_markdown().strip(),
        shown=shown,
        source="the idea: arXiv 2603.21687" if blind else "the method: arXiv 2511.04655",
    )


def category_sheet(categories: Sequence[tuple[str, int, int, float, int]]) -> Sheet:
    """Return the TsT paper's Table 8."""
    rows = [[name, str(a), str(b), f"{c:.1f} %", str(d)] for name, a, b, c, d in categories]
    return table(["question category", "original", "removed", "percent", "final"], rows)


def blind_models(blind: Blind) -> Sheet:
    """Return who was asked without the right image, and whose answers count."""
    rows = [
        [m.model, m.task, f"{m.right:.3f}", f"{m.guess:.3f}", f"{m.p:.4f}", "yes" if m.counts else "no"]
        for m in blind.models
    ]
    return table(["model", "asked as", "right", "by guessing", "p", "counts"], rows)


def of_known(blind: Blind) -> str:
    """Say how many docs are known, and how many independent models the counted models amount to."""
    counting = sum(model.counts for model in blind.models)
    if not counting:
        return (
            "no model is right more often than by guessing with its own answers, so no doc is known without the image"
        )
    return (
        f"of all docs {100 * blind.share:.1f} % are estimated to be known without the image; by the docs that models get wrong together, "
        f"the {counting} that count are taken for {blind.as_many_as:.1f} independent ones"
    )
