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
from typing import Any

import numpy as np

from lmms_patch.magic.items import Step
from lmms_patch.magic.score.mentions import groups
from lmms_patch.magic.score.response import sentences
from lmms_patch.stats import intervals
from lmms_patch.stats.resample import DRAWS, LEVEL, Estimate, Seed, cluster_numbers, generator


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
LONGEST = 1000
"""Characters that are read of a sentence: nobody writes a longer one, and the search for denials takes time with the square of the length."""
BORROWED = 200
"""How many corrections of other docs a response is held against, at most."""


@dataclass(frozen=True)
class Claim:
    """What a correction says and neither the wrong step nor the question does, in content words; a box counts as a word (``#2``).

    Attributes:
        right: content words of the correction alone; at least one.
        wrong: content words of the wrong step that the correction lacks.
    """

    right: frozenset[str]
    wrong: frozenset[str]

    @property
    def kind(self) -> tuple[bool, bool, bool]:
        """Whether ``right`` has boxes, numbers, and other words: what a model can tell from the wrong step alone."""
        boxes = any(word[0] == "#" for word in self.right)
        return boxes, any(word.isdigit() for word in self.right), any(word[0] != "#" and not word.isdigit() for word in self.right)


@dataclass(frozen=True)
class Sentence:
    """What a sentence says, in content words.

    Attributes:
        affirmed: the words that it says and does not deny.
        denied: the words within the reach of a denial ("not on the table", "it is false that ...", "... is wrong").
        cue: whether it has a word such as "actually" or "not".
        denies: whether all that it does is to deny the sentence before it ("No.", "That is not true.").
    """

    affirmed: frozenset[str]
    denied: frozenset[str]
    cue: bool
    denies: bool = False


def claims(corrections: Sequence[str], wrong: Sequence[str], question: str = "") -> tuple[Claim, ...]:
    """Return, for each correction, the words that show that a response took it up: those that neither the wrong step nor the question has.

    A correction without such words is left out. The question's words do not count, because a response that only repeats the question would else
    heal: "Is the digit a 5?" holds the correction "The digit is a 5".

    Args:
        corrections: what annotators wrote.
        wrong: the step that each of them corrects.
        question: as asked.
    """
    asked = _content(question)
    found = []
    for right, false in zip(map(_content, corrections), map(_content, wrong), strict=True):
        if right - false - asked:
            found.append(Claim(right - false - asked, false - right))
    return tuple(found)


def read_sentences(continuation: str) -> tuple[Sentence, ...]:
    """Return what each sentence of a continuation affirms and denies."""
    out = []
    for sentence in sentences(continuation):
        text = sentence[:LONGEST].replace("\u2019", "'")
        affirmed, denied = _words(text, _denied_spans(text))
        out.append(Sentence(affirmed - denied, denied, bool(_CUE.search(text)), bool(_DENIES.fullmatch(text))))
    return tuple(out)


def says(said: Sequence[Sentence], claim: Claim) -> bool:
    """Return whether sentences come to what a claim says, and not to what it is said against.

    A sentence supports the correction where it affirms at least half of ``right`` and a larger share of it than of ``wrong``; where the shares are
    equal, it must have a cue. It speaks against the correction where it affirms at least half of ``wrong`` and a larger share than of ``right``, or
    where it denies at least half of ``right`` and a larger share than it affirms. The last sentence that does either decides; a sentence that only
    denies the one before takes back what that one supported.
    """
    verdict = before = False
    for sentence in said:
        held = before
        for_it = len(claim.right & sentence.affirmed) / len(claim.right)
        denied = len(claim.right & sentence.denied) / len(claim.right)
        against = len(claim.wrong & sentence.affirmed) / len(claim.wrong) if claim.wrong else 0.0
        before = False
        if denied >= _ENOUGH and denied > for_it:
            verdict = False
        elif for_it >= _ENOUGH and (for_it > against or (for_it == against and sentence.cue)):
            verdict = before = True
        elif (against >= _ENOUGH and against > for_it) or (sentence.denies and held):
            verdict = False
    return verdict


def healed_by_words(said: Sequence[Sentence], own: Sequence[Claim]) -> bool | None:
    """Return whether sentences say one of the claims; None where there is none, so that words cannot tell."""
    return any(says(said, claim) for claim in own) if own else None


def chance_by_words(
    said: Sequence[Sentence], own: Sequence[Claim], others: Sequence[Claim], question: str, boxes: int, seed: Seed = 0
) -> float | None:
    """Return how often sentences would "heal" by chance: the share of borrowed corrections that they say, in 0..1.

    Each of ``BORROWED`` draws puts a correction of another doc in the place of each own one, and keeps the own wrong step. Only what could have been
    the correction here is borrowed: of the same kind (``Claim.kind``; where there is none, any), without a word of the wrong step or the question,
    and with its boxes replaced by random ones of those that are drawn here. So a text that holds every digit, every colour or every box gets
    the same share with borrowed corrections as with its own.

    Args:
        said: what the model wrote.
        own: the doc's claims.
        others: claims of the docs of other images.
        question: as asked.
        boxes: how many boxes are drawn.
        seed: of the draws; another one for each doc.

    Returns:
        None where there are no own claims. 1 where nothing can be borrowed: without a comparison no response can be told from luck.
    """
    if not own:
        return None
    stream = generator(seed)
    asked = _content(question)
    pools = []
    for claim in own:
        able = [other for other in others if not (_plain_words(other.right) & (claim.wrong | asked))]
        pools.append([other for other in able if other.kind == claim.kind] or able)
    if not all(pools):
        return 1.0
    known: dict[tuple[int, frozenset[str]], bool] = {}
    hits = 0
    for _ in range(BORROWED):
        healed = False
        for place, (claim, pool) in enumerate(zip(own, pools, strict=True)):
            right = _moved(pool[int(stream.integers(len(pool)))].right, claim.wrong, boxes, stream)
            if (place, right) not in known:
                known[place, right] = bool(right) and says(said, Claim(right, claim.wrong))
            healed = healed or known[place, right]
        hits += healed
    return hits / BORROWED


def above_chance(healed: Sequence[bool], chances: Sequence[float], clusters: Sequence[Hashable] | None = None, **options: Any) -> Estimate:
    """Compute how far Self-Heal by words is above chance: the mean over docs of healed − chance, with its clustered bootstrap interval.

    It beats chance where the whole interval is above 0 (at level 0.95: a one-sided test at 2.5 %).

    Args:
        healed: of each doc.
        chances: of each doc (``chance_by_words``).
        clusters: as in ``self_heal``.
        options: ``draws``, ``level`` and ``seed`` of the bootstrap.
    """
    labels = cluster_numbers(clusters) if clusters is not None and len(clusters) else None
    return intervals.mean([hit - chance for hit, chance in zip(healed, chances, strict=True)], labels, ends=(-1.0, 1.0), **options)


def mentions_correction(continuation: str, correction: str, wrong: str, question: str = "") -> bool:
    """Return whether a continuation says what distinguishes the correction from the wrong step; without a judge, by counting words (``says``).

    Limits: it does not understand. Paraphrases ("the floor" for "the ground") are missed; a correction that only omits words of the wrong step, or
    adds only words of the question, cannot be seen (False); denials are known by a list of phrases. Good for scripted models and as a sanity check,
    not a replacement for the judge's Self-Heal.

    Args:
        continuation: what the model wrote after the injected steps.
        correction: what an annotator wrote for the wrong step.
        wrong: the wrong step.
        question: as asked; its words do not count.

    >>> mentions_correction("Wait, the pot is on the ground.", "There is a pot on the ground.", "There is a pot on the table.")
    True
    >>> mentions_correction("The pot is not on the ground.", "There is a pot on the ground.", "There is a pot on the table.")
    False
    """
    return bool(healed_by_words(read_sentences(continuation), claims([correction], [wrong], question)))


def _moved(right: frozenset[str], wrong: frozenset[str], boxes: int, stream: np.random.Generator) -> frozenset[str]:
    """Return a borrowed correction's words with other boxes: random ones of those that are drawn and that the wrong step does not name."""
    plain = _plain_words(right)
    free = [name for name in (f"#{number}" for number in range(1, boxes + 1)) if name not in wrong]
    wanted = min(len(right) - len(plain), len(free))
    return plain | {free[int(place)] for place in stream.permutation(len(free))[:wanted]}


def _plain_words(words: frozenset[str]) -> frozenset[str]:
    """Return the words that are no boxes."""
    return frozenset(word for word in words if word[0] != "#")


_EDGE = r"[,;:?!()\u2013\u2014]| - |--|\b(?:but|because|since|so|while|whereas|although|though)\b|\band(?=\s+(?:it|there|this|that|the|i|in|r\d))"
"""Where the reach of "not" ends."""
_NOT = re.compile(
    r"(?:\b(?:not(?!\s+(?:only|just)\b)|never|no(?!\s+(?:doubt|question|wonder)\b)|nor|neither"
    r"|without(?!\s+(?:a\s+)?doubt)|cannot|hardly|rather than|instead of)\b"
    r"|\b\w+n't\b)(?!\s*(?:[,;:?!.]|$))",
    re.I,
)
"""A word that denies what follows it, to the next ``_EDGE``. A "No" before a comma or full stop denies what was said before."""
_ALL = re.compile(
    r"\b(?:(?:not|never|cannot|hardly|\w+n't)\s+(?:\w+\s+){0,2}?(?:true|right|correct|so|the case|think|believe|say|agree|accept|claim)\s+(?![,;:.])"
    r"|(?:false|untrue|wrong|incorrect|mistaken|mistake|error|lie|myth)\s+(?:that|to)\b"
    r"|den(?:y|ies|ied|ying)\b|(?<!no )(?<!without a )doubt(?:s|ed|ful)?\b|dispute\w*|reject\w*|disagree\w*|contrary to\b|opposite of\b|far from\b)",
    re.I,
)
"""Words that deny all that follows, to the next contrast."""
_CONTRAST = re.compile(r";|\b(?:but|instead|rather|in fact|actually)\b|,\s*(?=(?:it|there|this|the)\b.*\b(?:is|are|shows?|has)\b)", re.I)
_AFTER = re.compile(
    r"(?:^|[,;:\u2014]|\b(?:and|but)\b)(?P<what>[^,;:\u2014]*?)\b(?:is|are|'s|would be)\s+(?:simply\s+|clearly\s+|just\s+)?"
    r"(?:false|untrue|wrong|incorrect|mistaken|a mistake|an error|(?:not|n't)\s+(?:true|right|correct|so|the case))\W*$|"
    r"(?:^|[,;:\u2014]|\b(?:and|but)\b)(?P<that>[^,;:\u2014]*?)\b(?:is|are)n't\s+(?:true|right|correct|so|the case)\W*$",
    re.I,
)
"""A sentence that ends by denying its own subject."""
_DENIES = re.compile(
    r"\W*(?:(?:but|and|yet|oh)\W+)*(?:no|nope|not at all|not so|not true|false|"
    r"(?:that|this|it)(?:'s| is)(?:\s+(?:simply|just|clearly))?\s+(?:not (?:true|right|correct|so|the case)|false|untrue|wrong|incorrect)|"
    r"(?:that|this|it) isn't (?:true|right|correct|so|the case))\W*",
    re.I,
)
_BACK = re.compile(r"\W*(?:(?:but|and|yet)\b\W*)?(?:that|this|it|which)?\W*", re.I)
"""A subject that stands for all that the sentence said before."""
_CLAIM = re.compile(r"\W*(?:(?:the|this|a|any)\s+\w+\s+)?that\b(?!\s+(?:is|was|'s|one)\b)", re.I)
"""How a sentence begins whose subject is a clause: "The claim that ...", "That ..."."""


def _denied_spans(text: str) -> list[tuple[int, int]]:
    """Return where a sentence denies: from and to, in characters."""
    spans = []
    for match in _NOT.finditer(text):
        edge = re.compile(_EDGE, re.I).search(text, match.end())
        spans.append((match.end(), edge.start() if edge else len(text)))
    for match in _ALL.finditer(text):
        contrast = _CONTRAST.search(text, match.end())
        spans.append((match.end(), contrast.start() if contrast else len(text)))
    if after := _AFTER.search(text):
        name = "what" if after["what"] is not None else "that"
        whole = _BACK.fullmatch(after[name]) is not None or _CLAIM.match(text) is not None
        spans.append((0 if whole else after.start(name), after.end(name)))
    return spans


def _content(text: str) -> frozenset[str]:
    """Return the content words in lower case, without plural s; boxes as ``#2``."""
    return _words(text, [])[0]


def _words(text: str, spans: Sequence[tuple[int, int]]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the content words outside and within some spans of a text."""
    found: list[tuple[int, str]] = []
    rest = text
    for group in groups(text, 99):
        found += [(group.start, f"#{number}") for number in group.numbers]
        rest = rest[: group.start] + " " * (group.end - group.start) + rest[group.end :]
    for match in re.finditer(r"[A-Za-z0-9]+", rest):
        word = match[0].lower()
        if not _STOP.fullmatch(word):
            found.append((match.start(), re.sub(r"(?<=[a-z]{2}[^s])s$", "", word)))
    within = frozenset(word for place, word in found if any(start <= place < end for start, end in spans))
    return frozenset(word for place, word in found if not any(start <= place < end for start, end in spans)), within
