"""What a text-only cross-validation says, in sentences: terminal, page and findings say the same. Pure.

Everything is read from ``tst_details`` (docs/records.md), of which files of earlier versions lack some keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lmms_patch.present.sheets import Column, number, shown
from lmms_patch.runs.numbers import ALPHA, APART, FOLDS, NEAR, REVERSED
from lmms_patch.stats.resample import LEVEL, Estimate

State = Literal["learned", "not learned", "withheld", "copied", "unknown"]


@dataclass(frozen=True)
class Verdict:
    """What the headline number says.

    Attributes:
        state: ``learned``: the text answers more than a guess and more than the constant answer. ``withheld``: it does, by copies in reverse.
            ``copied``: it does, only by copies that may be the same doc twice.
        sentence: the same in words, without the name of the task.
    """

    state: State
    sentence: str


def verdict(details: Mapping[str, Any]) -> Verdict:
    """Return what the headline of a cross-validation says.

    A shortcut is claimed where the score lies above a guess by its interval, and above the constant answer by interval and p. The constant answer
    knows the test set, so nothing is called worse than it. Where shuffled golds were asked (``tst.null``), they take its place.
    """
    head, null = details["by_grouping"][details["headline"]], details.get("shuffled")
    accuracy, above, chance, p = head["accuracy"], head["above"], details.get("chance"), head["p"]
    constant = "the most frequent answer of each category" if len(details.get("categories") or ()) > 1 else "the constant answer"
    if above["low"] is None or p is None:
        return Verdict("unknown", "too few independent docs to say whether it can be answered without looking")
    gets = f"{shown(estimate(accuracy))} where a guess gets {number(chance)} and {constant} {number(head['majority'])}"
    if head.get("withheld"):
        return Verdict("withheld", f"the verdict is withheld ({gets}): {REVERSED[head['withheld']]}, which is no shortcut of the language")
    if chance is not None and accuracy["low"] is not None and accuracy["low"] <= chance:
        return Verdict("not learned", f"no text shortcut: {gets}")
    beyond = null["p"] < ALPHA if null else above["low"] > 0 and p < ALPHA
    if null:
        gets += f"; golds shuffled within the categories get {_span(null['shuffled'])} (p = {null['p']:.3f})"
    only = f"only where a copy of the question is among the training docs ({without_copies(details)})" if _lost(details) else ""
    if beyond and only and "source" not in details["by_grouping"]:
        return Verdict("copied", f"the verdict is withheld ({gets}): {only}, and no source (option 'group') tells whether that is the same doc twice")
    if beyond:
        return Verdict("learned", f"can in part be answered without looking: {gets}{f'; {only}' if only else ''}")
    return Verdict("not learned", f"no text shortcut beyond {'what the category gives away' if null else constant}: {gets}")


def without_copies(details: Mapping[str, Any]) -> str:
    """Return what is scored without copies and near copies in the training folds; empty where there are none, or that is not known."""
    texts, together = details.get("texts") or {}, _together(details)
    return f"{number(together['accuracy']['value'])} without copies" if together and (texts.get("repeated") or texts.get("near")) else ""


def _lost(details: Mapping[str, Any]) -> bool:
    """Return whether a gain needs copies in the training folds."""
    together, apart = _together(details), details["headline"] in APART
    return bool(apart and without_copies(details) and together and together["above"]["low"] is not None and together["above"]["low"] <= 0)


def _together(details: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the numbers of folds that keep copies together; None where there are none."""
    return next((details["by_grouping"][name] for name in ("joined", "text") if name in details["by_grouping"]), None)


def _span(values: Sequence[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def copies(details: Mapping[str, Any]) -> list[str]:
    """Return what copies and near copies do to the numbers, one sentence each; empty where there are none."""
    texts, by_grouping, headline = details.get("texts") or {}, details["by_grouping"], details["headline"]
    if not texts.get("repeated") and not texts.get("near"):
        return []
    together = _together(details)
    apart = next((name for name in (headline, *APART) if name in APART and name in by_grouping), None)
    classes: Mapping[str, Any] = next((one["copies"] for one in by_grouping.values() if one.get("copies")), {})
    docs = sum(one["docs"] for one in classes.values()) or by_grouping[headline]["accuracy"]["n"]
    twice, near = texts["repeated"], texts.get("near")
    told = [f"{_percent(twice, docs)} of the questions stand more than once ({texts['different']} different texts)"] if twice else []
    told += [f"{_percent(texts['conflicting'], docs)} with different answers"] if texts["conflicting"] else []
    told += [f"{_percent(near, docs)} of the questions have a near copy (cosine of n-grams at least {NEAR:g})"] if near else []
    first = ", ".join(told)
    first += f"; without copies of a question in the training folds: {number(together['accuracy']['value'])}" if together else ""
    out = [first]
    if apart is None or not by_grouping[apart].get("copies"):
        return out
    found = by_grouping[apart]
    by_class = [
        f"{name} {number(one['accuracy'])} ({one['docs']} docs, constant answer {number(one['majority'])})"
        for name, one in found["copies"].items()
        if one["docs"]
    ]
    out.append(f"{FOLDS[apart]}, docs by what their copies suggest: {', '.join(by_class)}")
    if apart != headline:
        out += _of_folds_that_part_copies(apart, found)
    return out


def _of_folds_that_part_copies(name: str, found: Mapping[str, Any]) -> list[str]:
    """Return what folds that part copies say where the headline keeps copies together."""
    above, agreeing = found["above"], (found["copies"].get("agreeing") or {}).get("above")
    if found.get("withheld"):
        return [f"{FOLDS[name]} are {said(above)} above the constant answer, which is no finding: {REVERSED[found['withheld']]}"]
    if above["low"] is not None and above["low"] > 0 and agreeing and agreeing["low"] is not None and agreeing["low"] > 0:
        return [
            f"{FOLDS[name]} are {said(above)} above the constant answer, and docs whose copies agree carry it: "
            "a prior of the repeated questions, which folds that keep copies together cannot see"
        ]
    return []


def said(difference: Mapping[str, Any]) -> str:
    """Return a difference with its interval, in a sentence."""
    return shown(estimate(difference), Column("", "", signed=True))


def notes(details: Mapping[str, Any]) -> list[str]:
    """Return what the numbers mean, one sentence each, without the name of the task."""
    out = [verdict(details).sentence]
    out += [f"{FOLDS.get(name, name)}: {why}" for name, why in (details.get("unusable") or {}).items()]
    leak = details.get("leakage")
    if leak is not None and leak["low"] is not None and (leak["low"] > 0 or leak["high"] < 0):
        out.append(
            f"random folds score {said(leak)} against source-grouped ones: "
            "that is recognising the source (source leakage), not a shortcut in the language"
        )
    return out + copies(details)


NEXT = {
    "learned": "'lmms-patch show OUT --causes' says which questions; 'lmms-patch prune {base}' makes the task without them",
    "copied": "name what each question shows with the option 'group', and test again",
}
"""What to do next, by the state of the verdict."""


def next_step(details: Mapping[str, Any], base: str) -> str:
    """Return what to do next, in a sentence."""
    return NEXT.get(verdict(details).state, "ask your own model without images: lmms-eval --tasks {base}_blind").format(base=base)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.0f} %"


def estimate(given: Mapping[str, Any], value: str = "value") -> Estimate:
    """Return an estimate of the results file, as far as tables and sentences show it."""
    return Estimate(given[value], None, given["low"], given["high"], 0, 0, 0, given.get("level", LEVEL))
