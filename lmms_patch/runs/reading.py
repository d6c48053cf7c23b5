"""How an index is read: does its gate let it, does the steady index contradict it? Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lmms_patch.ask.kinds import OF_CLIPS, OF_IMAGES, Key, Kind, Words
from lmms_patch.stats.gate import NOT_SHOWN, SAME, Gate
from lmms_patch.stats.resample import LEVEL, Estimate

if TYPE_CHECKING:
    from lmms_patch.runs.details import Made
    from lmms_patch.runs.numbers import Analysis

CONTRADICTED, MARGINAL = "contradicted", "marginal"
SAMPLED = "sampled"
"""Beside an index that is estimated from a part of the docs."""
VALID, NEAR_CHANCE, DOES_NOT_LOOK, UNKNOWN = "valid", "near chance", "does not look", "unknown"
NOT_CHECKED = "not checked whether the answers depend on the image: no doc was asked on a wrong image (null: 0)"
MARGINAL_PASS = "a marginal pass: FIP beats the floor by less than one further standard error, and the index of such a run is often far off"
MEASURE_IT = "run it again with the option 'null' (300 docs unless it is 0), which asks some docs on a wrong image"
"""Told where no doc was asked on a wrong image: what to do to learn whether the answers depend on the image."""


def words(estimate: Estimate | None) -> tuple[str, ...]:
    """Return the words to show beside a number."""
    return () if estimate is None or estimate.value is None else estimate.words


def contradicted(estimate: Estimate | None) -> bool:
    """Return whether the steady index contradicts a number, which is the index of one pass."""
    return CONTRADICTED in words(estimate)


def noted(estimate: Estimate, *said: str) -> Estimate:
    """Return the number with words to show beside; empty words are left out."""
    kept = tuple(filter(None, said))
    return dataclasses.replace(estimate, words=kept) if kept and estimate.value is not None else estimate


def worded(estimate: Estimate, *, mark: str = "", marginal: bool | None = False, sampled: bool = False) -> Estimate:
    """Return an index with its words.

    Args:
        estimate: the index.
        mark: of 1 − MPP / FIP, how the steady index contradicts it; empty where it does not.
        marginal: whether its gate passes by less than one further standard error.
        sampled: whether it is estimated from a part of the docs.
    """
    return noted(estimate, CONTRADICTED * bool(mark), MARGINAL * bool(marginal), SAMPLED * sampled)


def headline(index: Estimate | None, steady: Estimate | None) -> Estimate | None:
    """Return the index for people to go by: the steady one where docs were asked again, else 1 − MPP / FIP."""
    return steady if steady is not None and steady.value is not None else index


def name(index: str, key: Key | None = None, *, steady: bool) -> str:
    """Return an index's name for people: "RCI" for 1 − MPP / FIP, "steady RCI" for the one that asks again.

    Args:
        index: ``rci``, ``pcri``, ``trci``, or ``index`` where it can be any of these.
        key: the grid, or the set of boxes; None: not said.
        steady: whether it is the steady index.

    >>> name("rci", "relevant", steady=False), name("trci", 4, steady=True), name("index", steady=True)
    ('RCI of relevant boxes', 'steady TRCI_4', 'steady index')
    """
    title = index if index == "index" else index.upper()
    of = "" if key is None else f"_{key}" if isinstance(key, int) else f" of {key} boxes"
    return f"{'steady ' * steady}{title}{of}"


def text(estimate: Estimate, number: Callable[[float], str]) -> str:
    """Return a number as text for people, with its interval and its words.

    Args:
        estimate: the number; not None.
        number: formats the value and each end of the interval.
    """
    assert estimate.value is not None
    value = number(estimate.value)
    if estimate.low is not None and estimate.high is not None:
        value += f" [{number(estimate.low)}, {number(estimate.high)}]"
    return ", ".join([value, *words(estimate)])


# --- of an analysis -------------------------------------------------------------------------------


def p_text(p: float | None) -> str:
    """Return a p-value as text for people; empty for None.

    >>> p_text(0.0004), p_text(0.0421), p_text(None)
    ('<0.001', '0.042', '')
    """
    return "" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def gate_word(gate: Gate | None) -> str:
    """Return what tables say of a gate."""
    if gate is None or gate.valid is None:
        return UNKNOWN
    return (f"{VALID}, {MARGINAL}" if gate.marginal else VALID) if gate.valid else refusal(gate.reason)


def refusal(reason: str) -> str:
    """Return the reason of a failed gate in a word or two.

    >>> refusal("the answers do not depend on the image (full image 0.6, a wrong image 0.6, 300 docs)")
    'does not look'
    """
    # files keep the reason as a sentence, so the beginning of the sentence tells why the gate fails
    for words in (OF_IMAGES, OF_CLIPS):
        for said, short in ((SAME, DOES_NOT_LOOK), (NOT_SHOWN, NOT_SHOWN)):
            if reason.startswith(words.say(said)):
                return words.say(short)
    # any further reason is that FIP does not exceed its floor
    return NEAR_CHANCE


def does_not_look(gate: Gate) -> bool:
    """Return whether a gate fails because the answers are shown not to depend on the image or clip."""
    return gate.valid is False and refusal(gate.reason) in (DOES_NOT_LOOK, OF_CLIPS.say(DOES_NOT_LOOK))


def is_sampled(analysis: Analysis | None) -> bool:
    """Return whether the numbers are estimates because docs were left out."""
    return analysis is not None and analysis.asked is not None and analysis.asked.estimated


def looks(gate: Gate) -> bool | None:
    """Return whether the answers are shown to depend on the image; None where nobody checked."""
    known = [shown.value for shown in gate.looks if shown.value is not None]
    return all(known) if known else None


def unchecked(analysis: Analysis | None) -> bool:
    """Return whether an index is shown although nobody checked whether the model looks."""
    return analysis is not None and analysis.gate.valid is not False and looks(analysis.gate) is None


def why_unchecked(analysis: Analysis, words: Words = OF_IMAGES) -> str:
    """Return why nobody knows whether the model looks, where an index is shown all the same; empty elsewhere.

    Args:
        analysis: the numbers.
        words: what the parts of the task's images or clips are called (``Kind.words``).
    """
    told = (shown.reason for shown in analysis.gate.looks if shown.value is None)
    return words.say(next(filter(None, told), NOT_CHECKED)) if unchecked(analysis) else ""


def explained(mark: str) -> str:
    """Return the line to explain a mark; empty without a mark."""
    return f"{CONTRADICTED}: {mark}" if mark else ""


def full_of_the_same(measures: Mapping[str, Estimate], kind: Kind, size: str) -> float | None:
    """Return M on the full image over the docs with a score at a point of a curve; None where unknown.

    FIP is over all docs, also over those whose image is too small for the point, and these may be the easy docs.

    Args:
        measures: the numbers of a result by name.
        kind: of the result.
        size: the point, as numbers' names write it.
    """
    score, drop = measures.get(f"{kind.name}{size}"), measures.get(f"drop{size}")
    return (
        None if score is None or drop is None or score.value is None or drop.value is None else score.value + drop.value
    )


UNEVEN = 0.01
"""The p-value below which people are told that the place of the gold moves the score."""


def not_turned(left_out: Mapping[str, int]) -> list[str]:
    """Return at most a sentence: how many docs were asked in a single order, and why."""
    told = "; ".join(f"{count} ({why})" for why, count in sorted(left_out.items(), key=lambda item: -item[1]))
    return [f"asked in one order alone, and left out of these numbers: {told}"] if told else []


def asked_in_words(analysis: Analysis, words: Words = OF_IMAGES) -> str:
    """Return what a run with views left out asked, and what a full pass would print; empty for complete runs.

    Args:
        analysis: the numbers.
        words: what the parts of the task's images or clips are called (``Kind.words``).
    """
    asked = analysis.asked
    if asked is None:
        return ""
    share = f"{asked.calls:,} of the {asked.of:,} calls of a full pass ({asked.calls / max(1, asked.of):.0%})"
    if not asked.estimated:
        left_out = f"{words.parts} that could not change a number were left out"
        return f"asked in {share}: {left_out}; heat maps are from the {asked.whole:,} docs asked whole"
    whole = {words.grid(n): grid.full_pass for n, grid in analysis.grids.items() if grid.full_pass is not None}
    ends = [f"{index.low:+.3f} and {index.high:+.3f} ({n})" for n, index in whole.items() if index.low is not None]
    level = next((index.level for index in whole.values()), LEVEL)
    told = f"; a full pass over these docs would print an index between {' or '.join(ends)}, at {100 * level:.3g} %"
    told = told * bool(ends) + "".join(
        f"; no interval of what a full pass over these docs would print ({n}): {index.reason}"
        for n, index in whole.items()
        if index.low is None
    )
    return (
        f"estimated from {share}, of {asked.docs:,} docs{told}; heat maps are from the {asked.whole:,} docs asked whole"
    )


def minds(analysis: Analysis, words: Words = OF_IMAGES) -> list[str]:
    """Return what to mind of an analysis's indices, a line each: what was left out, unchecked, marginal or contradicted.

    Args:
        analysis: the numbers.
        words: what the parts of the task's images or clips are called (``Kind.words``).
    """
    sets = analysis.sets
    out = [asked_in_words(analysis, words)] if analysis.asked else []
    out += [why] if sets and (why := why_unchecked(analysis, words)) else []
    out += [MARGINAL_PASS] if analysis.gate.marginal else []
    return out + [f"{words.size(n, 'x')}, {explained(grid.mark)}" for n, grid in sets.items() if grid.mark]


def kept(made: Made) -> str:
    """Say how many answers of a result an earlier process of the same command had given; "" where none."""
    count = made.kept
    return (
        f"{count:,} answers come from an earlier process of the same command, as its journal had them" if count else ""
    )
