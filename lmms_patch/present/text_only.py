"""What a text-only cross-validation says, in sentences: terminal, page and findings say the same. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lmms_patch.present.sheets import number, shown, signed
from lmms_patch.runs.details import TstDetails
from lmms_patch.runs.numbers import ALPHA, APART, FOLDS, NEAR, REVERSED, Grouped

State = Literal["learned", "not learned", "withheld", "copied", "one answer", "unknown"]


@dataclass(frozen=True)
class Shortcut:
    """Whether a text-only model finds a shortcut: what the headline number says.

    Attributes:
        state: ``learned``: the text answers more than a guess and more than the constant answer. ``withheld``: it does,
            by copies in reverse. ``copied``: it does, only by copies that may be the same doc twice. ``one answer``: the
            constant answer is right in every doc, so nothing else can be learned.
        sentence: the same in words, without the name of the task.
    """

    state: State
    sentence: str


def shortcut(found: TstDetails) -> Shortcut:
    """Return what the headline of a cross-validation says.

    A shortcut is claimed where the score lies above a guess by its interval, and above the constant answer by interval
    and p. The constant answer knows the test set, so nothing is called worse than it. Where shuffled golds were asked
    (``tst.null``), they take its place.
    """
    head, null = found.by_grouping[found.headline], found.shuffled
    constant = "the most frequent answer of each category" if len(found.categories) > 1 else "the constant answer"
    if head.above.low is None or head.p is None:
        return Shortcut("unknown", "too few independent docs to say whether it can be answered without looking")
    gets = f"{shown(head.accuracy)} where a guess gets {number(found.chance)} and {constant} {number(head.majority)}"
    if head.withheld:
        return Shortcut(
            "withheld",
            f"the verdict is withheld ({gets}): {REVERSED[head.withheld]}, which is no shortcut of the language",
        )
    if head.majority is not None and head.majority >= 1 and len(found.categories) <= 1:
        return Shortcut("one answer", f"one answer is right in every doc: {gets}")
    if found.chance is not None and head.accuracy.low is not None and head.accuracy.low <= found.chance:
        return Shortcut("not learned", f"no text shortcut: {gets}")
    beyond = null.p < ALPHA if null else head.above.low > 0 and head.p < ALPHA
    if null:
        gets += f"; golds shuffled within the categories get {_span(null.shuffled)} (p = {null.p:.3f})"
    only = (
        f"only where a copy of the question is among the training docs ({without_copies(found)})"
        if _lost(found)
        else ""
    )
    if beyond and only and "source" not in found.by_grouping:
        return Shortcut(
            "copied",
            f"the verdict is withheld ({gets}): {only}, and no source (option 'group') tells whether that is the same doc twice",
        )
    if beyond:
        return Shortcut("learned", f"can in part be answered without looking: {gets}{f'; {only}' if only else ''}")
    return Shortcut(
        "not learned", f"no text shortcut beyond {'what the category gives away' if null else constant}: {gets}"
    )


def without_copies(found: TstDetails) -> str:
    """Return what is scored without copies and near copies in the training folds.

    Empty where there are none, or that is not known.
    """
    texts, kept = found.texts, together(found)
    return f"{number(kept.accuracy.value)} without copies" if texts and kept and (texts.repeated or texts.near) else ""


def _lost(found: TstDetails) -> bool:
    """Return whether a gain needs copies in the training folds."""
    above = kept.above.low if (kept := together(found)) else None
    return found.headline in APART and bool(without_copies(found)) and above is not None and above <= 0


def together(found: TstDetails) -> Grouped | None:
    """Return the numbers under folds with copies kept together; None without such folds."""
    return next((found.by_grouping[name] for name in ("joined", "text") if name in found.by_grouping), None)


def _span(values: Sequence[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def copies(found: TstDetails) -> list[str]:
    """Return the effects of copies and near copies on the numbers, a sentence each; empty without copies."""
    texts, by_grouping = found.texts, found.by_grouping
    near = texts.near if texts else None
    if texts is None or not (texts.repeated or near):
        return []
    kept = together(found)
    apart = next((name for name in (found.headline, *APART) if name in APART and name in by_grouping), None)
    classes = next((grouped.copies for grouped in by_grouping.values() if grouped.copies), {})
    docs = sum(copied.docs for copied in classes.values()) or by_grouping[found.headline].accuracy.n
    told = (
        [f"{_percent(texts.repeated, docs)} of the questions stand more than once ({texts.different} different texts)"]
        if texts.repeated
        else []
    )
    told += [f"{_percent(texts.conflicting, docs)} with different answers"] if texts.conflicting else []
    told += (
        [f"{_percent(near, docs)} of the questions have a near copy (cosine of n-grams at least {NEAR:g})"]
        if near
        else []
    )
    out = [
        ", ".join(told)
        + (f"; without copies of a question in the training folds: {number(kept.accuracy.value)}" if kept else "")
    ]
    if apart is None or not (parted := by_grouping[apart]).copies:
        return out
    by_class = [
        f"{name} {number(copied.accuracy)} ({copied.docs} docs, constant answer {number(copied.majority)})"
        for name, copied in parted.copies.items()
        if copied.docs
    ]
    out.append(f"{FOLDS[apart]}, docs by what their copies suggest: {', '.join(by_class)}")
    return out + ([] if apart == found.headline else _of_folds_that_part_copies(FOLDS[apart], parted))


def _of_folds_that_part_copies(folds: str, parted: Grouped) -> list[str]:
    """Return the findings under folds that part copies, where the headline keeps copies together."""
    beyond = f"{folds} are {signed(parted.above)} above the constant answer"
    if parted.withheld:
        return [f"{beyond}, which is no finding: {REVERSED[parted.withheld]}"]
    agreeing = parted.copies.get("agreeing") if parted.copies else None
    if agreeing and all(above.low is not None and above.low > 0 for above in (parted.above, agreeing.above)):
        why = "a prior of the repeated questions, which folds that keep copies together cannot see"
        return [f"{beyond}, and docs whose copies agree carry it: {why}"]
    return []


def notes(found: TstDetails) -> list[str]:
    """Return the meaning of the numbers, a sentence each, without the task's name."""
    out = [shortcut(found).sentence]
    out += [f"{FOLDS.get(name, name)}: {why}" for name, why in (found.unusable or {}).items()]
    leak = found.leakage
    if leak is not None and leak.low is not None and leak.high is not None and (leak.low > 0 or leak.high < 0):
        out.append(
            f"random folds score {signed(leak)} against source-grouped ones: "
            "that is recognising the source (source leakage), not a shortcut in the language"
        )
    return out + copies(found)


NEXT = {
    "learned": "'lmms-patch show OUT --causes' says which questions; 'lmms-patch prune {task}' makes the task without them",
    "copied": "name what each question shows with the option 'group', and test again",
}
"""What to do next, by the state of the shortcut."""


ASK_BLIND = "ask your own model without images: lmms-eval --model MODEL --tasks {blind} --output_path OUT"


def next_steps(found: Sequence[tuple[str, TstDetails]]) -> list[str]:
    """Return what to do next, a sentence for all tasks of which the same is to be said.

    Args:
        found: each base task, and what its cross-validation found.
    """
    bases: dict[str, list[str]] = {}
    for base, of in found:
        bases.setdefault(NEXT.get(shortcut(of).state, ASK_BLIND), []).append(base)
    return [
        f"next for {', '.join(of)}: "
        + step.format(task=of[0] if len(of) == 1 else "TASK", blind=",".join(f"{base}_blind" for base in of))
        for step, of in bases.items()
    ]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.0f} %"
