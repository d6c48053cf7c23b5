"""Self-Heal: does a model recover from wrong steps that are presented as its own? Pure; the model and the judge are elsewhere.

Of an annotated chain s_1..s_n, the wrong subsequences are the maximal runs [s_i..s_j] of steps marked wrong, with 2 ≤ i ≤ j ≤ n − 2 (MAGIC paper,
4.3). The model is given s_1..s_j and continues. A judge says whether any following step says what a correction of s_i..s_j says. The score is the
fraction of subsequences that are healed.

Left out, and counted: runs that begin with the first step (no context), runs that reach into the last two steps (nothing left to reason), and runs
without any correction (nothing to compare with). A run is never cut to fit.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from lmms_patch.magic.items import Step
from lmms_patch.magic.score.mentions import groups
from lmms_patch.magic.score.response import sentences
from lmms_patch.stats import intervals
from lmms_patch.stats.resample import DRAWS, LEVEL, Estimate, Seed, cluster_numbers


@dataclass(frozen=True)
class Subsequence:
    """A run of wrong steps that is tested.

    Attributes:
        first: i, its first step, from 1.
        last: j, its last step.
        prefix: s_1..s_j, what the model is given.
        wrong: s_i..s_j.
        corrections: the corrections of s_i..s_j that were written, in order; at least one.
    """

    first: int
    last: int
    prefix: tuple[str, ...]
    wrong: tuple[str, ...]
    corrections: tuple[str, ...]


@dataclass(frozen=True)
class WrongRuns:
    """The wrong runs of one chain.

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


@dataclass(frozen=True)
class SelfHeal:
    """The Self-Heal score of a model.

    Attributes:
        score: fraction of judged subsequences that are healed, in 0..1; its n is the number of judged subsequences.
        judged: number of subsequences with a verdict.
        unjudged: number of subsequences without a verdict; they are no part of the score.
        at_start: number of runs left out (``WrongRuns``).
        near_end: number of runs left out (``WrongRuns``).
        uncorrected: number of runs left out (``WrongRuns``).
    """

    score: Estimate
    judged: int
    unjudged: int
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
            tested.append(Subsequence(first, last, tuple(step.text for step in steps[:last]), tuple(step.text for step in run), corrections))
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


def self_heal(
    healed: Sequence[bool | None],
    clusters: Sequence[Hashable] | None = None,
    runs: Iterable[WrongRuns] = (),
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: Seed = 0,
) -> SelfHeal:
    """Compute the fraction of subsequences that are healed (paper, 4.3), with its clustered bootstrap interval.

    Args:
        healed: a verdict for each subsequence; None where the judge failed: counted, but no part of the score.
        clusters: for each subsequence, what it is resampled with (its image, or at least its item: a chain may have several); None: each alone.
        runs: those of all chains, for the counts of what is left out.
        draws: B.
        level: nominal coverage in 0..1.
        seed: see ``stats.resample.generator``.
    """
    if clusters is not None and len(clusters) != len(healed):
        raise ValueError(f"{len(clusters)} clusters for {len(healed)} subsequences")
    kept = [place for place, verdict in enumerate(healed) if verdict is not None]
    labels = None if clusters is None or not kept else cluster_numbers([clusters[place] for place in kept])
    score = intervals.mean([float(bool(healed[place])) for place in kept], labels, draws=draws, level=level, seed=seed)
    all_runs = list(runs)
    counts = [sum(getattr(run, name) for run in all_runs) for name in ("at_start", "near_end", "uncorrected")]
    return SelfHeal(score, len(kept), len(healed) - len(kept), *counts)


def continuation(response: str, prefix: Sequence[str]) -> str:
    """Return what a response adds to the injected steps: some models repeat them before they continue.

    Args:
        response: the text as generated.
        prefix: s_1 .. s_j.

    Returns:
        The response, without the longest run of the last prefix steps that it begins with (all of them, or s_i .. s_j for some i), word by word.

    >>> continuation("I see a cat. No, a dog.", ["It is a room.", "I see a cat."])
    'No, a dog.'
    """
    said = list(_WORD.finditer(_HEADING.sub(lambda match: " " * len(match[0]), response)))
    repeated = _repeated([match[0].lower() for match in said], [[word.lower() for word in _WORD.findall(step)] for step in prefix])
    if not repeated:
        return response
    return re.sub(r"^[^\w\s]*\s*", "", response[said[repeated - 1].end() :], count=1)


def _repeated(words: Sequence[str], steps: Sequence[Sequence[str]]) -> int:
    """Return how many words at the start of a text repeat the end of some steps, beginning where a step begins; the largest such number.

    Uses the failure function of Knuth, Morris and Pratt, so the time is proportional to the length: ``back[n]`` is the length of the longest proper
    start of the text with which its first n words also end.
    """
    given = [word for step in steps for word in step]
    starts, left = set(), len(given)
    for step in steps:
        starts.add(left)
        left -= len(step)
    words = words[: len(given)]
    back, length = [0, 0], 0
    for word in words[1:]:
        while length and words[length] != word:
            length = back[length]
        length += words[length] == word
        back.append(length)
    length = 0
    for word in given if words else ():
        while length and (length == len(words) or words[length] != word):
            length = back[length]
        length += words[length] == word
    while length and length not in starts:
        length = back[length]
    return length


_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"^[\s#*_]*thought process[*_]*[ ]?[:：][*_]*", re.I)


# --- without a judge

_STOP = re.compile(
    r"a|an|the|and|or|but|so|of|in|on|at|to|for|from|with|by|as|is|are|was|were|be|been|being|am|it|its|this|that|these|those|there|here|i|you|he|she|"
    r"they|we|my|me|let|s|t|now|then|also|just|very|really|can|could|would|should|will|do|does|did|has|have|had|see|looks?|looking|think|which|who|"
    r"what|where|when|how|some|any|thus|therefore|okay|ok|well|appears|seems|shows?|showing"
)
_CUE = re.compile(
    r"\b(?:not|no longer|actually|instead|rather|wait|correct(?:ion|ing)?|mistake\w*|wrong|sorry|earlier|previously|however)\b|n't\b", re.I
)
_ENOUGH = 0.5


def mentions_correction(continuation: str, correction: str, wrong: str) -> bool:
    """Return whether a continuation says what distinguishes the correction from the wrong step; without a judge, by counting words.

    The content words of the correction that the wrong step lacks (a box counts as a word) count for it; those of the wrong step that the correction
    lacks count against it. A sentence supports a side where it has at least half of that side's words and a larger share of them than of the other's.
    Where the shares are equal, it supports the correction if it also has a word such as "actually" or "not". The last sentence that supports a side
    decides.

    Limits: it does not understand. Paraphrases ("the floor" for "the ground") are missed; a correction that only omits words of the wrong step cannot
    be seen (False); a negated correction ("it is not on the ground") counts as one. Good for scripted models and as a sanity check, not a replacement
    for the judge's Self-Heal.

    Args:
        continuation: what the model wrote after the injected steps.
        correction: what an annotator wrote for the wrong step.
        wrong: the wrong step.

    >>> mentions_correction("Wait, the pot is on the ground.", "There is a pot on the ground.", "There is a pot on the table.")
    True
    """
    right, false = _content(correction), _content(wrong)
    new, old = right - false, false - right
    verdict = False
    for sentence in sentences(continuation):
        words = _content(sentence)
        for_it = len(new & words) / len(new) if new else 0.0
        against = len(old & words) / len(old) if old else 0.0
        if for_it >= _ENOUGH and (for_it > against or (for_it == against and _CUE.search(sentence))):
            verdict = True
        elif against >= _ENOUGH and against > for_it:
            verdict = False
    return verdict


def _content(text: str) -> frozenset[str]:
    """Return the content words in lower case, without plural s; boxes as ``#2``."""
    boxes, rest, done = set(), [], 0
    for group in groups(text, 99):
        boxes |= {f"#{number}" for number in group.numbers}
        rest.append(text[done : group.start])
        done = group.end
    words = re.findall(r"[a-z0-9]+", " ".join([*rest, text[done:]]).lower())
    return frozenset(boxes | {re.sub(r"(?<=[a-z]{2}[^s])s$", "", word) for word in words if not _STOP.fullmatch(word)})
