"""What the numbers of MAGIC tasks are called, for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lmms_patch.present.sheets import Column

SHARE = "a fraction, 0..1"
WORDS: dict[str, tuple[str, str]] = {
    "acc_full": ("Acc, full", "response judged against the full gold answer, by a judge (MAGIC paper, 4.2)"),
    "acc_short": ("Acc, short", "final answer judged against the short gold answer, by a judge (MAGIC paper, 4.2)"),
    "acc_exact": ("Acc, exact", "final answer is the short gold answer word for word; no judge"),
    "acc_synonym": ("Acc, synonym", "final answer is the short gold answer or a listed synonym; no judge"),
    "magiscore_precision_macro": (
        "P macro",
        "of the boxes used, the share that is relevant; mean over docs (MAGIC paper, 4.1)",
    ),
    "magiscore_recall_macro": ("R macro", "of the relevant boxes, the share that is used; mean over docs"),
    "magiscore_f1_macro": ("F1 macro", "2 TP / (2 TP + FP + FN) of each doc; mean over docs"),
    "magiscore_precision_micro": ("P micro", "relevant boxes used over boxes used, both summed over docs"),
    "magiscore_recall_micro": ("R micro", "relevant boxes used over relevant boxes, both summed over docs"),
    "magiscore_f1_micro": ("F1 micro", "2 TP / (2 TP + FP + FN), summed over docs"),
    "self_heal": (
        "Self-Heal",
        "share of injected wrong runs of steps that the continuation corrects, by a judge (MAGIC paper, 4.3)",
    ),
    "regions_exhaustive": (
        "all used",
        "share of docs with a box on which every box is used; where adversarial boxes are drawn, lower is better (MAGIC paper, 5.3)",
    ),
    "regions_unused": ("none used", "share of docs with a box on which no box is used; lower is better"),
    "regions_dismissed": (
        "dismissed",
        "share of docs with a box on which a box is named only to be ruled out; such boxes count as used, as in the MAGIC paper, 4.1",
    ),
    "regions_invented": ("invented", "share of docs on which a box is named that does not exist; lower is better"),
    "answer_found": ("answer marked", "share of responses that mark an answer"),
}
"""By metric, in the order of the MAGIC paper's Table 2: its title and what it is."""
VARIANTS = {
    "all": "relevant and adversarial boxes",
    "relevant": "relevant boxes only",
    "none": "no boxes",
    "selfheal": "all boxes, after wrong steps",
}
"""What a task shows."""
COUNTS = {
    "docs": "docs",
    "answer_not_found": "responses that mark no answer",
    "no_box": "docs without a box",
    "no_relevant_box": "docs without a relevant box: no part of recall and F1",
    "precision_zero": "docs with a relevant box on which none was used: their precision counts 0",
    "boxes_invented": "boxes named that do not exist",
    "unjudged_acc_short": "responses without a verdict on the short answer",
    "unjudged_acc_full": "responses without a verdict on the full answer",
    "unjudged_self_heal": "continuations without a verdict",
    "without_gold_acc_full": "of those without a verdict on the full answer, docs without a full gold answer",
}
"""``magic.counts``, in words."""
CONTRASTS = {
    "distraction": ("cost of distraction", "relevant boxes − all boxes: what the adversarial boxes cost"),
    "boxes": ("gain from boxes", "all boxes − no boxes: what the drawn boxes give, adversarial ones included"),
    "hints": ("gain from hints", "relevant boxes − no boxes: what the relevant boxes alone give"),
}
"""``magic.contrast.CONTRASTS``, in words."""


def columns(metrics: Iterable[str]) -> tuple[Column, ...]:
    """Return a column for each of these metrics, in the order of ``WORDS``."""
    there = set(metrics)
    return tuple(
        Column(name, title, help=f"{words}; {SHARE}") for name, (title, words) in WORDS.items() if name in there
    )


def order(metrics: Iterable[str]) -> list[str]:
    """Return these metrics in the order of ``WORDS``."""
    there = set(metrics)
    return [name for name in WORDS if name in there]
