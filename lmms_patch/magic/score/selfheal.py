"""Self-Heal: does a model recover from wrong steps that are presented as its own? Pure.

The model and the judge are elsewhere.

Of an annotated chain s_1..s_n, the wrong subsequences are the maximal runs [s_i..s_j] of steps marked wrong, with 2 ≤ i
≤ j ≤ n − 2 (MAGIC paper, 4.3). The model is given s_1..s_j and continues. A judge says whether any following step says
what a correction of s_i..s_j says. The score is the fraction of subsequences that are healed.

Left out, and counted: runs that begin with the first step (no context), runs that reach into the last two steps
(nothing left to reason), and runs without any correction (nothing to compare with). A run is never cut to fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lmms_patch.magic.items import Step


@dataclass(frozen=True)
class Subsequence:
    """A tested run of wrong steps.

    Attributes:
        first: i, its first step, from 1.
        last: j, its last step.
        prefix: s_1..s_j, what the model is given.
        corrections: the corrections of s_i..s_j that were written, in order; at least one.
    """

    first: int
    last: int
    prefix: tuple[str, ...]
    corrections: tuple[str, ...]


@dataclass(frozen=True)
class WrongRuns:
    """The wrong runs of a chain.

    Attributes:
        tested: the runs that are tested.
        at_start: number of runs left out because they begin with step 1.
        near_end: number of runs left out because they begin later and end after step n − 2.
        uncorrected: number of runs left out, within the bounds, without any correction.
    """

    tested: tuple[Subsequence, ...]
    at_start: int = 0
    near_end: int = 0
    uncorrected: int = 0


def wrong_runs(steps: Sequence[Step]) -> WrongRuns:
    """Find the wrong subsequences of an annotated chain (paper, 4.3).

    Args:
        steps: the chain, in order.

    >>> chain = [Step("a", True), Step("b", False, "B"), Step("c", True), Step("d", True)]
    >>> [(run.first, run.last, run.corrections) for run in wrong_runs(chain).tested]
    [(2, 2, ('B',))]
    """
    tested: list[Subsequence] = []
    at_start = near_end = uncorrected = 0
    for first, last in _runs(steps):
        run = steps[first - 1 : last]
        corrections = tuple(step.correction for step in run if step.correction.strip())
        if first < 2:
            at_start += 1
        elif last > len(steps) - 2:
            near_end += 1
        elif not corrections:
            uncorrected += 1
        else:
            tested.append(Subsequence(first, last, tuple(step.text for step in steps[:last]), corrections))
    return WrongRuns(tuple(tested), at_start, near_end, uncorrected)


def _runs(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """Return first and last step, from 1, of each maximal run of wrong steps."""
    out: list[tuple[int, int]] = []
    for number, step in enumerate(steps, 1):
        if step.correct:
            continue
        if out and out[-1][1] == number - 1:
            out[-1] = (out[-1][0], number)
        else:
            out.append((number, number))
    return out


def continuation(response: str, prefix: Sequence[str]) -> str:
    """Return what a response adds to the injected steps: some models repeat them before they continue.

    Args:
        response: the text as generated.
        prefix: s_1 .. s_j.

    Returns:
        The response, without the longest run of the last prefix steps that it begins with (all of them, or s_i .. s_j
        for some i), word by word.

    >>> continuation("I see a cat. No, a dog.", ["It is a room.", "I see a cat."])
    'No, a dog.'
    """
    # blanked out rather than removed, so that the places still hold in the response
    said = list(_WORD.finditer(_HEADING.sub(lambda match: " " * len(match[0]), response)))
    repeated = _repeated(
        [match[0].lower() for match in said], [[word.lower() for word in _WORD.findall(step)] for step in prefix]
    )
    if not repeated:
        return response
    # the mark behind the last repeated word ends the repeated step
    return re.sub(r"^[^\w\s]*\s*", "", response[said[repeated - 1].end() :], count=1)


def _repeated(words: Sequence[str], steps: Sequence[Sequence[str]]) -> int:
    """Return how many words at the start of a text repeat the end of some steps, beginning where a step begins.

    The largest such number.

    Uses the failure function of Knuth, Morris and Pratt, so the time is proportional to the length: ``back[n]`` is the
    length of the longest proper start of the text with which its first n words also end.
    """
    given = [word for step in steps for word in step]
    starts, left = set(), len(given)
    for step in steps:
        starts.add(left)
        left -= len(step)
    # a response may be long, but no more can be repeated than was given
    words = words[: len(given)]
    back, length = [0, 0], 0
    for word in words[1:]:
        while length and words[length] != word:
            length = back[length]
        length += words[length] == word
        back.append(length)
    length = 0
    for word in given if words else ():
        # once all words fit, none is left to compare with the next
        while length and (length == len(words) or words[length] != word):
            length = back[length]
        length += words[length] == word
    # a shorter repeat counts where it begins with a step; a few words from the middle of one are chance
    while length and length not in starts:
        length = back[length]
    return length


_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"^[\s#*_]*thought process[*_]*[ ]?[:：][*_]*", re.I)
