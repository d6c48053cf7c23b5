"""What a reader should know first: at most six sentences, made by rule, each with its numbers. Pure.

A benchmark is a mixture. Where docs were asked again (``stats.composition``), a case (a task of a model) falls under the
rule ``most whole``, ``most cell`` or ``most text`` if the interval of that share lies above half of what is solved, at the
finest grid; under ``mixture`` if those of all three lie below; and else under ``unsure``. The sentence gives all four shares.

Each other case falls under one rule by the index that people should go by: the luck-corrected one where its null is
measured, else 1 − MPP / FIP. A sentence calls each by its own name (``reading.name``).

| rule | what is so, at every grid |
|---|---|
| ``whole`` | the interval of the index lies at 0.30 or above ("strong global" in the RCI paper, §3.2) |
| ``mislead`` | it lies above 1: a single cell does worse than a wrong image |
| ``more`` | it lies above 0 |
| ``cell`` | it lies at 0 or below, and its null is measured |
| ``even`` | it lies between -0.10 and 0.10 ("balanced" in the paper), and its null is measured |
| ``mixed`` | each grid falls under one of these rules, but not under the same |
| ``no image`` | the gate says that the answers do not depend on the image |
| ``unread`` | the gate refuses the index for another reason, or there is no index |
| ``undecided`` | none of these: the interval is too wide, or no null was measured and the index is low, or contradicts the corrected one |

Over several tasks the false discovery rate of the first five is held at 5 % (Benjamini & Hochberg 1995): of 20 tasks
without any effect one in twenty pages says something of one. An interval is read at the level that goes with it
(Benjamini & Yekutieli 2005), ``Case.level``.

Why a low index needs a measured null, and a high one does not: the best of n² tries rises by luck alone, which lowers
the index.

Tasks without an index (blind, tst, regions, hidden, MAGIC, ...) have rules of their own. ``contradicted`` is
said beside the first rule of a case.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lmms_patch.ask.kinds import OF_CLIPS, Kind, Words
from lmms_patch.present import text_only
from lmms_patch.present.sheets import ends_in_percent, number
from lmms_patch.runs import reading
from lmms_patch.runs.details import TstDetails
from lmms_patch.runs.numbers import EXTRA, Analysis, Grid
from lmms_patch.runs.run import Result
from lmms_patch.stats.composition import LEAST
from lmms_patch.stats.gate import Gate
from lmms_patch.stats.index import BANDS
from lmms_patch.stats.intervals import at_level
from lmms_patch.stats.resample import LEVEL, Estimate
from lmms_patch.text import line

MOST = 6
"""How many sentences there are at most."""
WITH_NUMBERS, NAMED = 4, 12
"""Of how many cases a sentence gives numbers, and how many it names; the others are counted."""
EVEN, WHOLE = BANDS[2][0], BANDS[3][0]
NOT_WHICH = "It may be another cell in each image; before you publish this, ask docs again (option steady, or a name with _steady at its end)."
_INDEXED = ("whole", "cell", "undecided")
_NEEDED = {
    "text": "without its image",
    "one": "on one cell",
    "whole": "only with the whole image",
    "unsolved": "not solved",
}
"""What is said of the docs of each share."""
REASON = 110
"""The most characters of a reason that a sentence quotes."""


@dataclass(frozen=True)
class Case:
    """A task of a model as the rules of findings read the task.

    Attributes:
        key: by which the place that shows findings links to the task's numbers.
        model: the model's name as it is shown.
        base: the benchmark.
        task: the wrapped task's name, with its filter where it has several.
        kind: the kind of task.
        metric: the primary metric.
        measures: every number by its name (``lmms_patch.runs.measures``), on the metric's own scale.
        analysis: what they are made of; None for a kind without one.
        size: how many docs the benchmark has; None where that is not known.
        higher: whether the primary metric is better when higher.
        tst: what a text-only cross-validation found; None of other tasks, or where only the numbers are known.
        level: at which the interval of an index is read (``_held_together``); intervals are shown at their own.
    """

    key: str
    model: str
    base: str
    task: str
    kind: Kind
    metric: str
    measures: Mapping[str, Estimate]
    analysis: Analysis | None = None
    size: int | None = None
    higher: bool = True
    tst: TstDetails | None = None
    level: float = LEVEL

    @property
    def grids(self) -> list[int]:
        """The grids with an index, the finest first."""
        stem = self.kind.index
        grids = self.analysis.grids if stem and self.analysis else ()
        return sorted((n for n in grids if f"{stem}{n}" in self.measures), reverse=True)

    def grid(self, n: int) -> Grid:
        """Return the numbers of a grid."""
        assert self.analysis is not None
        return self.analysis.grids[n]

    @property
    def gate(self) -> Gate | None:
        """The gate; None for tasks without a gate."""
        return self.analysis.gate if self.analysis else None

    def index(self, n: int) -> Estimate:
        """Return the headline index: luck-corrected where its null is measured, else 1 − MPP / FIP."""
        name = f"{self.kind.index}{n}"
        index = self.measures[name]
        return reading.headline(index, self.measures.get(f"{name}_adj")) or index


def case(result: Result, model: str = "", key: str = "") -> Case:
    """Return a result of a finished run as a case; its key is the task's label unless another is given."""
    return Case(
        key or result.label,
        model or result.run.model,
        result.base,
        result.label,
        result.kind,
        result.metric,
        result.measures,
        result.analysis,
        result.size,
        result.higher_is_better,
        result.tst,
    )


@dataclass(frozen=True)
class Finding:
    """A sentence to read first, with the cases behind the sentence.

    Attributes:
        kind: what it is about: ``whole``, ``cell``, ``no image``, ``contradicted``, ``unread``,
            ``undecided``, ``boxes``, ``orders`` or ``other``.
        text: the sentence, with its numbers and intervals; plain text.
        cases: keys of the cases that it is about, in the order of the sentence.
    """

    kind: str
    text: str
    cases: tuple[str, ...]


@dataclass(frozen=True)
class _Rule:
    """What is said of the cases of a rule.

    Attributes:
        about: ``Finding.kind``.
        words: the sentence with a place for the cases.
    """

    about: str
    words: str


_RULES = {
    "most whole": _Rule("whole", "most of what is solved needs the whole image in {}"),
    "most cell": _Rule("cell", "one cell is enough for most of what is solved in {}"),
    "most text": _Rule("no image", "most of what is solved needs no image in {}"),
    "mixture": _Rule(
        "mixture", "what is solved needs no image, one cell or the whole image, none of them mostly, in {}"
    ),
    "unsure": _Rule("undecided", "what most of the solved docs need is not certain in {}"),
    "not told": _Rule("undecided", "what the docs need cannot be told in {}"),
    "whole": _Rule("whole", "the whole image is needed for {}"),
    "more": _Rule("whole", "one cell is not enough for {}"),
    "lines": _Rule("whole", "part of what seemed to need the whole image only fell on a line between cells in {}"),
    "mislead": _Rule(
        "whole",
        "more than one cell is needed for {}, and a single cell misleads: on it the model is right less often than by guessing on a wrong image",
    ),
    "cell": _Rule("cell", "one cell is enough for {}"),
    "even": _Rule("cell", f"one cell does as well as the whole image, within {EVEN:.2f}, in {{}}"),
    "mixed": _Rule("cell", "the size of the cells decides in {}"),
    "no image": _Rule("no image", "no image is needed for {}"),
    "without": _Rule("no image", "without the right image there is still a score in {}"),
    "learned": _Rule(
        "no image",
        "a text-only model, trained on other questions of the test set, answers more than a question's category says in {}",
    ),
    "not without": _Rule("without", "without the right image the model is not shown to do better than guessing in {}"),
    "not learned": _Rule(
        "no image", "a text-only model is not shown to learn more than a question's category says in {}"
    ),
    "withheld": _Rule(
        "undecided",
        "a text-only model answers copies of a question in reverse, which is no shortcut of the language, in {}",
    ),
    "copied": _Rule("undecided", "a text-only model answers only questions of which it was trained on a copy in {}"),
    "contradicted": _Rule("contradicted", "the luck-corrected index says something else in {}"),
    "unread": _Rule("unread", "no result for {}"),
    "undecided": _Rule("undecided", "undecided: {}"),
    "relevant": _Rule("boxes", "a relevant box answers more than an adversarial one in {}"),
    "adversarial": _Rule("boxes", "an adversarial box answers more than a relevant one in {}"),
    "boxes alike": _Rule("boxes", "neither relevant nor adversarial boxes are clearly worth more in {}"),
    "evidence": _Rule("boxes", "hiding the relevant boxes costs more than hiding the adversarial ones in {}"),
    "decoys": _Rule("boxes", "hiding the adversarial boxes costs more than hiding the relevant ones in {}"),
    "hidden alike": _Rule(
        "boxes", "hiding the relevant boxes is not shown to cost more than hiding the adversarial ones in {}"
    ),
    "falls": _Rule("boxes", "hiding the relevant boxes costs score, with no adversarial boxes to compare with, in {}"),
    "stays": _Rule("boxes", "hiding the relevant boxes is not shown to cost score in {}"),
    "magic": _Rule("boxes", "reasoning names regions in {}"),
    "orders": _Rule("orders", "right in every order of the options: {}"),
    "other": _Rule("other", "shown otherwise: {}"),
}
"""The rules in the order in which they are said."""


def findings(cases: Sequence[Case]) -> list[Finding]:
    """Return the sentences to read first on some tasks, most important first, with every task in some sentence."""
    cases, family = _held_together(cases)
    teller = _Teller(cases)
    ruled: dict[str, list[Case]] = {name: [] for name in _RULES}
    for one in cases:
        for name in _rules_of(one):
            ruled[name].append(one)
    # "No image is needed" says already what a blind run of the same benchmark shows; and where a model guesses with its
    # images, that it does so without them says nothing of the benchmark.
    silent: dict[str, list[Case]] = {}
    for name, about in (("without", "no image"), ("not without", "unread")):
        told = {(one.model, one.base) for one in ruled[about] if one.gate and one.gate.valid is False}
        silent[about] = [one for one in ruled[name] if (one.model, one.base) in told]
        ruled[name] = [one for one in ruled[name] if one not in silent[about]]
    clauses: dict[str, list[tuple[str, list[Case]]]] = {}
    for name, rule in _RULES.items():
        ordered = sorted(ruled[name], key=_ORDERS.get(name, lambda one: 0.0))
        by_words: dict[str, list[Case]] = {}
        for one in ordered:
            words = one.kind.brought.sentence if name == "other" and one.kind.brought else rule.words
            by_words.setdefault(teller.words(one).say(words), []).append(one)
        for words, among in by_words.items():
            clauses.setdefault(rule.about, []).append(
                (words.format(teller.listed(name, among)), [*among, *silent.get(name, ())])
            )
    sentences = list(clauses.items())
    # The last rules of ``_RULES`` are the least important: merge from the end.
    while len(sentences) > MOST:
        (_, first), (_, second) = sentences[-2:]
        sentences[-2:] = [("other", [*first, *second])]
    out = []
    for about, parts in sentences:
        said = "; ".join(words for words, _ in parts)
        keys = dict.fromkeys(one.key for _, among in parts for one in among)
        out.append(Finding(about, f"{said[0].upper()}{said[1:]}.", tuple(keys)))
    return _with_notes(out, cases, family)


def _with_notes(said: list[Finding], cases: Sequence[Case], family: int) -> list[Finding]:
    """Add the limits of a single run and of many tasks to findings."""
    by_key = {one.key: one for one in cases}
    out = []
    for one in said:
        notes = []
        once = [by_key[key] for key in one.cases if one.kind == "cell" and not _shares(by_key[key])]
        notes += [once[0].kind.words.say(NOT_WHICH)] if once else []
        if one.kind in _INDEXED and (level := max((by_key[key].level for key in one.cases), default=LEVEL)) > LEVEL:
            notes.append(
                f"Of {family} tasks, so intervals are read at {100 * level:.4g} %: at most 5 % of such findings are expected to be false."
            )
        out.append(dataclasses.replace(one, text=" ".join([one.text, *notes])))
    return out


def said_of(results: Iterable[Result]) -> list[str]:
    """Return the findings of some results as plain sentences, for places without links."""
    return [one.text for one in findings([case(result) for result in results])]


# --- which rule -----------------------------------------------------------------------------------


def _held_together(cases: Sequence[Case]) -> tuple[list[Case], int]:
    """Return the cases with the level at which each index is read, and how many have an index to read.

    The level is 1 − 0.05 R / m: of m cases with an index, R is the most that say something each at that level.
    """
    places = [
        place
        for place, one in enumerate(cases)
        if one.kind.index
        and one.analysis
        and _of_index(one)[0] not in ("unread", "no image", *_MOSTLY, "mixture", "unsure", "not told")
    ]
    out, family = list(cases), len(places)
    # Benjamini and Hochberg's step-up: the largest R at whose level R cases still say something. At the level of a
    # smaller R no more cases do, so every R between R and their number fails too.
    said = family
    while family:
        level = 1 - (1 - LEVEL) * said / family
        for place in places:
            out[place] = dataclasses.replace(cases[place], level=level)
        still = sum(_of_index(out[place])[0] != "undecided" for place in places)
        if still >= said or said == 1:
            break
        said = max(still, 1)
    return out, family


def _rules_of(case: Case) -> list[str]:
    """Return the rules of a case: the main rule, then ``contradicted`` and ``lines`` where true."""
    kind = case.kind
    if not case.analysis and case.measures["score"].value is None:
        return ["unread"]
    if case.metric == "bypass":  # the host's mark of --predict_only
        return ["unread"]
    if kind.brought:
        return ["other"]
    if kind.regions:
        ends = case.measures.get("regions_mean")
        return ["unread" if ends is None else _by_sign(ends, "relevant", "adversarial", "boxes alike")]
    if kind.hides:
        return [_of_hidden(case)]
    if kind.index:
        return _of_index(case)
    if kind.turns:
        every = case.measures.get("rotate_every")
        return [
            "orders"
            if every is not None and every.value is not None
            else "unread"
            if every is not None and every.reason
            else "other"
        ]
    if kind.folds:
        return [_of_tst(case)]
    if kind.view in ("blind", "blank", "swap") and case.higher:
        return ["without" if _beats_chance(case) else "not without"]
    return ["magic" if kind.name == "magic" else "other"]


def _of_hidden(case: Case) -> str:
    """Return the rule of a task with hidden boxes: by the extra drop, else by the relevant boxes' drop."""
    extra, drop = (case.measures.get(name) for name in (EXTRA, "drop_relevant"))
    if extra is None or drop is None or (case.gate and case.gate.valid is False):
        return "unread"
    if extra.value is None and drop.value is None:
        return "unread"
    above, below = ("falls", "stays") if extra.value is None else ("evidence", "decoys")
    if not case.higher:  # errors rise where evidence is missed
        above, below = below, above
    return (
        _by_sign(drop, above, below, "stays") if extra.value is None else _by_sign(extra, above, below, "hidden alike")
    )


def _of_tst(case: Case) -> str:
    """Return the rule of a text-only cross-validation: its verdict, or where only its numbers are known what these say."""
    if case.tst:
        state = text_only.shortcut(case.tst).state
        return state if state in ("learned", "withheld", "copied") else "not learned"
    return (
        _by_sign(case.measures["tst_above"], "learned", "not learned", "not learned")
        if "tst_above" in case.measures
        else "unread"
    )


def _of_index(case: Case) -> list[str]:
    """Return the rules under which a case with an index falls."""
    # First: where the gate fails no index may be read, whatever its value.
    if case.gate and case.gate.valid is False:
        no_image = "most text" if _of_shares(case) == "most text" else "unread"
        return ["no image" if reading.does_not_look(case.gate) else no_image]
    if mostly := _of_shares(case):
        return [mostly]
    if _not_told(case):
        return ["not told"]
    if not case.grids or any(case.index(n).value is None for n in case.grids):
        return ["unread"]
    marked = any(case.grid(n).mark for n in case.grids)
    rule = _together({_of_grid(case, n) for n in case.grids})
    # The sentence on an undecided case tells of the contradiction already.
    beside = ["contradicted"] if marked and rule != "undecided" else []
    on_lines = [one.low for n in case.grids if (one := case.measures.get(f"on_lines{n}")) and one.low is not None]
    beside += ["lines"] if any(low > 0 for low in on_lines) else []
    return [rule, *beside]


_MOSTLY = {"most whole": "whole", "most cell": "one", "most text": "text"}
"""The share of docs that each rule is of."""


def _shares(case: Case) -> Mapping[str, Estimate]:
    """Return the shares of what the docs need, at the finest grid; empty where there are none."""
    for n in case.grids:
        found = {name: case.measures.get(f"{name}{n}") for name in ("text", "one", "whole", "unsolved")}
        known = {name: one for name, one in found.items() if one is not None and one.value is not None}
        if len(known) == len(found):
            return known
    return {}


def _of_shares(case: Case) -> str:
    """Return the rule of a case by what its docs need; "" where that is not known."""
    shares = _shares(case)
    if not shares:
        return ""
    # of what is solved at most; with fewer docs solved the share would be larger
    solved = 1 - (shares["unsolved"].low or 0.0)
    least = {rule: shares[name].low or 0.0 for rule, name in _MOSTLY.items()}
    if mostly := next((rule for rule, low in least.items() if low > solved / 2), ""):
        return mostly
    return "mixture" if all((shares[name].high or 0.0) <= solved / 2 for name in _MOSTLY.values()) else "unsure"


def _not_told(case: Case) -> str:
    """Return why enough docs asked again do not tell what the docs need; "" where they do, or were not asked again."""
    maps = case.analysis.necessity if case.analysis else ()
    return next((one.shares["text"].reason for one in maps if one.again >= LEAST), "")


def _of_grid(case: Case, n: int) -> str:
    """Return the rule of a grid."""
    index = at_level(case.index(n), max(case.level, case.index(n).level))
    low, high = index.low, index.high
    measured = _is_measured(case, n)
    if low is None or high is None:
        return "undecided"
    if low > 1:
        return "mislead"
    # The slack is for rounding: an end on the edge of the band counts as within.
    if low >= WHOLE - 1e-9:
        return "whole"
    if low > 0:
        return "more"
    # The best of n² tries rises by luck alone, so a low index that is not corrected may be luck.
    if not measured:
        return "undecided"
    return "cell" if high <= 0 else "even" if low >= -EVEN and high <= EVEN else "undecided"


def _is_measured(case: Case, n: int) -> bool:
    """Return whether the headline index is luck-corrected."""
    adj = case.measures.get(f"{case.kind.index}{n}_adj")
    return adj is not None and adj.value is not None


def _together(rules: set[str]) -> str:
    """Return the rule of a case from those of its grids."""
    if len(rules) == 1:
        return next(iter(rules))
    # Before mixing: an undecided grid leaves the case undecided, whatever the rest says.
    if "undecided" in rules:
        return "undecided"
    if rules <= {"whole", "more", "mislead"}:
        return "more" if "more" in rules else "whole"
    return "even" if rules == {"cell", "even"} else "mixed"


def _by_sign(estimate: Estimate, above: str, below: str, neither: str) -> str:
    """Return which of three words an interval calls for: wholly above 0, wholly below, or neither."""
    if estimate.low is not None and estimate.low > 0:
        return above
    return below if estimate.high is not None and estimate.high < 0 else neither


def _beats_chance(case: Case) -> bool:
    """Return whether the lower end of a score lies above the chance floor, or above 0 where no floor is known."""
    score, chance = case.measures["score"], case.measures.get("chance")
    floor = 0.0 if chance is None or chance.value is None else chance.value
    return score.low is not None and score.low > floor


def _value(case: Case) -> float:
    return case.index(case.grids[0]).value or 0.0


_ORDERS: Mapping[str, Callable[[Case], float]] = {
    **dict.fromkeys(("whole", "more", "mislead"), lambda one: -_value(one)),
    **dict.fromkeys(("cell", "even"), _value),
}
"""The order of the cases of a rule: the clearest first. Those of other rules keep the order in which they were given."""
_WITH_RANGE = ("whole", "more", "cell", "even", "undecided")
"""The rules that go by one index a case, so that those of several models have a range."""


# --- what is said ---------------------------------------------------------------------------------


def names(cases: Sequence[Case]) -> dict[str, str]:
    """Return what sentences call each case, by its key.

    That is the benchmark, where that is not enough the task, and the model where there are several.
    """
    models = {one.model for one in cases}
    short = Counter((one.model, one.base, one.kind.way) for one in cases)
    out = {}
    for one in cases:
        name = one.task if short[one.model, one.base, one.kind.way] > 1 else one.base
        out[one.key] = line(f"{name} ({one.model})" if len(models) > 1 else name)
    return out


class _Teller:
    """Names cases, and says their numbers; the first interval of all is spelled out.

    Args:
        cases: all of them; a name must tell each from every other.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self._names = names(cases)
        known = {(one.model, one.base, one.kind.name): one for one in cases}
        # Where a model was asked a benchmark's kind twice, only the tasks' names tell results apart.
        asked_once = len(known) == len(cases)
        self._models = Counter((base, kind) for _, base, kind in known) if asked_once else Counter[tuple[str, str]]()
        self._full = {(one.model, one.base): one for one in cases if "fip" in one.measures and one.kind.index}
        self._of_clips = {one.base for one in cases if one.kind.needs_video}
        self._spelled = False

    def words(self, case: Case) -> Words:
        """Return what the parts of a case are called.

        Without its image, a benchmark that is also asked in time has no clip.
        """
        kind = case.kind
        return OF_CLIPS if case.base in self._of_clips and kind.view in ("blind", "blank", "swap") else kind.words

    def listed(self, rule: str, cases: Sequence[Case]) -> str:
        """Return cases as a list in words: the first few with their numbers.

        A benchmark of which it holds for several models is named once.
        """
        groups: dict[tuple[str, str], list[Case]] = {}
        for one in cases:
            groups.setdefault(
                (one.base, one.kind.name) if self._models[one.base, one.kind.name] > 1 else (one.key, ""), []
            ).append(one)
        told = [
            self._group(rule, some, at < WITH_NUMBERS) if len(some) > 1 else self._one(rule, some[0], at < WITH_NUMBERS)
            for at, some in enumerate(list(groups.values())[:NAMED])
        ]
        rest = sum(len(some) for some in list(groups.values())[NAMED:])
        return in_words([*told, *([f"{rest} more"] if rest else [])])

    def _one(self, rule: str, case: Case, with_numbers: bool) -> str:
        """Return the name of a case, with its numbers."""
        numbers = self.words(case).say(self._numbers(rule, case)) if with_numbers else ""
        return f"{self._names[case.key]} ({numbers})" if numbers else self._names[case.key]

    def _group(self, rule: str, cases: Sequence[Case], with_numbers: bool) -> str:
        """Return the name of a benchmark, for how many models its rule holds, and from where to where their indices go."""
        first, of = cases[0], self._models[cases[0].base, cases[0].kind.name]
        said = [f"all {of} models" if len(cases) == of else f"{len(cases)} of {of} models"]
        values: dict[bool, list[float]] = {True: [], False: []}
        for one in cases if with_numbers and rule in _WITH_RANGE else ():
            if one.grids and (value := one.index(n := _telling(one, rule)).value) is not None:
                values[_is_measured(one, n)].append(value)
        for corrected, known in values.items():
            ends = dict.fromkeys(number(end, True, 2) for end in (min(known), max(known))) if known else {}
            said += [f"{reading.name(str(first.kind.index), corrected=corrected)} {' to '.join(ends)}"] if ends else []
        return f"{line(first.base)} ({', '.join(said)})"

    def _numbers(self, rule: str, case: Case) -> str:
        """Return what stands in brackets behind a case's name."""
        measures = case.measures
        if rule in _MOSTLY or rule in ("mixture", "unsure"):
            return self._composed(case)
        if rule == "not told":
            return _short(_not_told(case))
        if rule in ("whole", "more", "cell", "even"):
            return self._index(case, _telling(case, rule)) if case.grids else "no index"
        # An index above 1 misleads readers, so FIP and MPP stand in its place.
        if rule == "mislead":
            best = measures.get(f"mpp{case.grids[0]}")
            told = f"{number(measures['fip'].value)} on the full image, {number(best.value if best else None)} with each doc's best cell"
            return f"{case.metric} {case.kind.words.say(told)}"
        if rule == "lines":
            return f"{self._ends(measures[f'on_lines{case.grids[0]}'])} of it"
        if rule == "mixed":
            return ", ".join(self._index(case, n, grid=True) for n in sorted(case.grids))
        if rule == "no image":
            looked = next((looks for looks in (case.gate.looks if case.gate else ()) if looks.value is False), None)
            if looked is None:
                return ""
            other = "with wrong images" if looked.against == "wrong images" else "without images"
            most = looked.difference.high
            more = f"; the right image adds {number(most)} at most" if most is not None and most > 0 else ""
            return f"{case.metric} {number(looked.full)} with its images, {number(looked.other)} {other}{more}"
        if rule == "not without":
            return ""
        if rule == "without":
            return ", ".join([f"{case.kind.shows} {self._ends(measures['score'])}", *self._beside(case)])
        if rule in ("learned", "copied", "not learned"):
            scored = [self._ends(measures["tst"])] if "tst" in measures else []
            alone = text_only.without_copies(case.tst) if case.tst else ""
            return ", ".join([*scored, *([alone] if alone else []), *self._constant(case)])
        if rule == "withheld":
            return f"{self._ends(measures['tst_above'], signed=True)} above the most frequent answers"
        if rule == "contradicted":
            return self._both(case, next(n for n in case.grids if case.grid(n).mark))
        if rule == "unread":
            return _why_unread(case)
        if rule == "undecided":
            return self._undecided(case)
        if rule in ("relevant", "adversarial", "boxes alike"):
            return self._ends(measures["regions_mean"], signed=True)
        if rule == "orders":
            return ", ".join(
                [
                    self._ends(measures["rotate_every"]),
                    f"of {number(measures['rotate_once'].value)} asked once",
                    *_places(case),
                ]
            )
        if case.kind.hides:
            lost = self._ends(measures["drop_relevant" if rule in ("falls", "stays") else EXTRA], signed=True)
            return ", ".join([lost, f"full image {number(measures['score'].value)}", *self._chance(case)])
        if rule == "magic":
            name = next(
                (name for name in ("magiscore_f1_micro", "acc_short", "acc_synonym", "acc_exact") if name in measures),
                "",
            )
            return f"{name} {self._ends(measures[name])}" if name else ""
        own = [f"{one.title} {self._ends(measures[one.name])}" for one in case.kind.own]
        if case.kind.has_points:
            return ", ".join(
                [*self._curve(case), *own, *(self._chance(case) if case.kind.full else self._beside(case))]
            )
        return ", ".join(
            [f"{case.kind.shows} {self._ends(measures['score'])}", *own, *self._drops(case), *self._beside(case)]
        )

    def _composed(self, case: Case) -> str:
        """Return the share of docs of each class, in percent."""
        shares = _shares(case)
        level = "" if self._spelled else f", {100 * shares['text'].level:.3g} % intervals"
        self._spelled = True
        said = [f"{100 * (one.value or 0):.0f} %{ends_in_percent(one)} {_NEEDED[name]}" for name, one in shares.items()]
        return f"{', '.join(said)}{level}"

    def _index(self, case: Case, n: int, *, grid: bool = False) -> str:
        """Return an index with its interval; with its grid where several are told apart."""
        index, kind = case.index(n), case.kind
        name = reading.name(
            str(kind.index), n if grid or len(case.grids) > 1 else None, corrected=_is_measured(case, n)
        )
        words = [word for word in reading.words(index) if word in (reading.MARGINAL, reading.SAMPLED)]
        words += (
            [] if _is_measured(case, n) else ["not luck-corrected" if _not_corrected(case, n) else "luck not measured"]
        )
        words += ["not checked that it looks"] if reading.unchecked(case.analysis) else []
        return ", ".join([f"{name} {self._ends(index, signed=True, two=True)}", *words])

    def _both(self, case: Case, n: int) -> str:
        """Return both indices of a grid, without intervals."""
        index = str(case.kind.index)
        both = [case.measures.get(f"{index}{n}{ending}") for ending in ("", "_adj")]
        values = [number(None if one is None else one.value, True, 2) for one in both]
        return ", ".join(f"{reading.name(index, corrected=bool(place))} {value}" for place, value in enumerate(values))

    def _ends(self, estimate: Estimate, *, signed: bool = False, two: bool = False) -> str:
        """Return a number with its interval; the first interval of all is spelled out."""
        digits = 2 if two else 3
        value = number(estimate.value, signed, digits)
        if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
            return value
        ends = f"[{number(estimate.low, signed, digits)}, {number(estimate.high, signed, digits)}]"
        if self._spelled:
            return f"{value} {ends}"
        self._spelled = True
        return f"{value}, {100 * estimate.level:.3g} % interval {ends}"

    def _beside(self, case: Case) -> list[str]:
        """Return what a score without the right image is to be held against."""
        full = self._full.get((case.model, case.base))
        known = [] if full is None or full.measures["fip"].value is None else [full]
        return [*(f"{one.kind.shows} {number(one.measures['fip'].value)}" for one in known), *self._chance(case)]

    def _chance(self, case: Case) -> list[str]:
        chance = case.measures.get("chance")
        return [] if chance is None or chance.value is None else [f"chance {number(chance.value)}"]

    def _constant(self, case: Case) -> list[str]:
        """Return what a text-only score is to be held against."""
        majority = case.measures.get("tst_majority")
        known = (
            [] if majority is None or majority.value is None else [f"most frequent answers {number(majority.value)}"]
        )
        return [*known, *self._chance(case)]

    def _curve(self, case: Case) -> list[str]:
        """Return the scores along a curve in order, the full image first where asked.

        A score that is of fewer docs stands beside the full image of the same docs, or where no full image is asked
        with the number of its docs.
        """
        kind, measures = case.kind, case.measures
        whole = number(measures["fip"].value) if kind.full else ""
        others = {one.name for one in kind.own}
        known = {
            name.removeprefix(kind.name): one
            for name, one in measures.items()
            if name.startswith(kind.name) and name not in others
        }
        most = max((one.n for one in known.values()), default=0)
        out = [f"full image {whole}"] if kind.full else []
        for size, one in known.items():
            at = kind.words.size(size) if size else kind.beside
            if one.value is None:
                out.append(f"{at} not known: {_short(one.reason)}")
                continue
            full = number(reading.full_of_the_same(measures, kind, size)) if kind.full else ""
            beside = (
                f" (full image of the same docs {full})"
                if full != whole
                else f" ({one.n} of {most} docs)"
                if one.n < most and not kind.full
                else ""
            )
            out.append(f"{at} {number(one.value)}{beside}")
        return out

    def _drops(self, case: Case) -> list[str]:
        """Return what the score falls to with the worst cell hidden."""
        drops = {name: one for name, one in case.measures.items() if name.startswith("drop") and one.value is not None}
        return [
            f"{number(one.value)} with the worst of {int(name[4:]) ** 2} cells hidden" for name, one in drops.items()
        ]

    def _undecided(self, case: Case) -> str:
        """Return the index of an undecided case and what would settle the question."""
        n = _telling(case, "undecided")
        index = case.index(n)
        said = [self._index(case, n)]
        if index.low is None or index.high is None:
            return f"{said[0]}, no interval: {_short(index.reason or 'none was computed')}"
        if why := _not_corrected(case, n):
            return f"{said[0]}, {why}"
        if not _is_measured(case, n) and index.high <= EVEN:
            return f"{said[0]}, and luck alone may make it so low"
        times = times_wanted(index)
        if reading.is_sampled(case.analysis):
            said.append("a full run, or more docs, would tell more")
        elif times is not None:
            said.append(_settles(times, index.n, self._on_wrong_images(case, n), case.size))
        return ", ".join(said)

    def _on_wrong_images(self, case: Case, n: int) -> int:
        """Return the number of docs asked on wrong images for the headline index; 0 where it is not luck-corrected."""
        adj = case.grid(n).adj
        return adj.asked if adj and _is_measured(case, n) else 0


def _places(case: Case) -> list[str]:
    """Say at which place the gold is found most and least often.

    Say nothing where a permutation test shows no difference.
    """
    placed = case.analysis.turned.placed if case.analysis and case.analysis.turned else None
    if placed is None or placed.p is None or placed.p >= reading.UNEVEN:
        return []
    values = [-math.inf if score.value is None else score.value for score in placed.scores]
    best, worst = (choose(range(len(values)), key=values.__getitem__) for choose in (max, min))
    ends = " and ".join(f"{number(values[place])} at {chr(ord('A') + place)}" for place in (best, worst))
    return [f"by the place of the gold between {ends}"]


def _not_corrected(case: Case, n: int) -> str:
    """Return the reason why wrong images gave no luck-corrected index; else empty."""
    adj = case.measures.get(f"{case.kind.index}{n}_adj")
    return _short(adj.reason) if case.grid(n).adj is not None and adj is not None and adj.value is None else ""


def _telling(case: Case, rule: str) -> int:
    """Return the grid with a case's rule at its clearest: the finest grid under the rule, else the finest grid."""
    return next((n for n in case.grids if _of_grid(case, n) == rule), case.grids[0])


def _settles(times: float, docs: int, wrong: int, size: int | None) -> str:
    """Return in words how many docs would settle an index.

    With n docs, m of them on wrong images too, the variance of the luck-corrected index is A / n + B / m: multiplying n
    and m by k divides it by k. A run does not tell A from B. So where k n docs are more than there are, more wrong
    images alone may still be enough. With every doc on a wrong image the variance would be (A + B) / size. For A above
    0 that is at least m / size times the variance of this run: too large where k m exceeds size.

    Args:
        times: k, above 1.
        docs: n.
        wrong: m; 0 where no wrong image counts for the index.
        size: how many docs the benchmark has; None where that is not known.
    """
    wanted, also = _two_digits(times * docs), _two_digits(times * wrong)
    if size is not None and times * docs > size:
        if 0 < times * wrong <= size:
            return f"all {size:,} docs on wrong images too (option null) may settle it, this run has {docs:,} docs, {wrong:,} of them so"
        return f"settling it takes about {wanted:,} docs, more than the {size:,} there are"
    if not wrong:
        return f"about {wanted:,} docs would settle it, this run has {docs:,}"
    if wrong == docs:
        return f"about {wanted:,} docs, all of them on wrong images too (option null), would settle it, this run has {docs:,}"
    return f"about {wanted:,} docs, {also:,} of them on wrong images too (option null), would settle it, this run has {docs:,} and {wrong:,}"


def times_wanted(index: Estimate) -> float | None:
    """Return how many times its docs would settle an index; None where its interval is not known, or is narrow enough.

    The width of an interval falls with the root of the number of docs. An interval settles the index once it leaves out
    0, or fits between -0.10 and 0.10, whichever takes fewer docs, with the value as it is now.
    """
    if index.value is None or index.low is None or index.high is None or not index.n:
        return None
    half = (index.high - index.low) / 2
    times = (half / max(abs(index.value), EVEN - abs(index.value))) ** 2
    return times if math.isfinite(times) and times > 1 else None


def _two_digits(docs: float) -> int:
    """Return a number of docs rounded up to two digits.

    >>> _two_digits(711.1), _two_digits(4624)
    (720, 4700)
    """
    unit: int = 10 ** max(0, math.floor(math.log10(max(docs, 1))) - 1)
    return math.ceil(docs / unit) * unit


def _why_unread(case: Case) -> str:
    """Return in a few words why there is no index."""
    gate = case.gate
    if case.metric == "bypass":
        return "answers were written and not scored: --predict_only"
    if (every := case.measures.get("rotate_every")) is not None and not case.kind.index:
        return _short(every.reason)
    if not case.grids and not case.kind.has_points and case.measures["score"].value is not None:
        return "only full images were asked"
    if gate and gate.valid is False:
        if reading.refusal(gate.reason) == reading.NEAR_CHANCE:
            return f"{case.metric} {number(gate.fip)}, where guesses earn {number(gate.chance)}"
        return _short(gate.reason)
    reasons = (case.grid(n).reason or case.index(n).reason for n in case.grids)
    return _short(next(filter(None, reasons), case.measures["score"].reason or "nothing was scored"))


def _short(reason: str) -> str:
    return line(reason, REASON)


def in_words(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> in_words(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
