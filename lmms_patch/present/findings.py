"""What a reader should know first: at most six sentences, made by rule, each with its numbers. Pure.

A benchmark is a mixture. Where docs were asked again (``stats.composition``), a case (a task of a model) falls under the
rule ``most whole``, ``most cell`` or ``most text`` if the interval of that share lies above half of what is solved, at the
finest grid; under ``mixture`` if those of all three lie below; and else under ``unsure``. The sentence gives all four shares.

| rule | what is so |
|---|---|
| ``no image`` | the gate says that the answers do not depend on the image |
| ``unread`` | the gate refuses the index for another reason, or there is no index |
| ``not told`` | docs were asked again, and their answers do not tell |
| ``not asked`` | no doc was asked again: an index of one pass has luck in it, and is no share of docs |

Tasks without an index (blind, tst, regions, hidden, MAGIC, ...) have rules of their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import line

MOST = 6
"""How many sentences there are at most."""
WITH_NUMBERS, NAMED = 4, 12
"""Of how many cases a sentence gives numbers, and how many it names; the others are counted."""
ASK_AGAIN = "Ask docs again to know what they need (option steady, or a name with _steady at its end)."
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
        higher: whether the primary metric is better when higher.
        tst: what a text-only cross-validation found; None of other tasks, or where only the numbers are known.
    """

    key: str
    model: str
    base: str
    task: str
    kind: Kind
    metric: str
    measures: Mapping[str, Estimate]
    analysis: Analysis | None = None
    higher: bool = True
    tst: TstDetails | None = None

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
        """Return the headline index: the steady one where docs were asked again, else 1 − MPP / FIP."""
        name = f"{self.kind.index}{n}"
        index = self.measures[name]
        return reading.headline(index, self.measures.get(f"{name}_steady")) or index


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
        result.higher_is_better,
        result.tst,
    )


@dataclass(frozen=True)
class Finding:
    """A sentence to read first, with the cases behind the sentence.

    Attributes:
        kind: what it is about: ``whole``, ``cell``, ``mixture``, ``no image``, ``without``, ``unread``, ``undecided``,
            ``boxes``, ``orders`` or ``other``.
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
    "lines": _Rule("whole", "part of what needs more than a cell only fell on a line between cells in {}"),
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
    "unread": _Rule("unread", "no result for {}"),
    "not asked": _Rule("undecided", "what the docs need was not asked in {}"),
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
        by_words: dict[str, list[Case]] = {}
        for one in ruled[name]:
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
        can_ask = any(
            one.analysis and one.analysis.necessity for _, among in parts for one in among if one in ruled["not asked"]
        )
        out.append(Finding(about, f"{said[0].upper()}{said[1:]}.{f' {ASK_AGAIN}' * can_ask}", tuple(keys)))
    return out


def said_of(results: Iterable[Result]) -> list[str]:
    """Return the findings of some results as plain sentences, for places without links."""
    return [one.text for one in findings([case(result) for result in results])]


# --- which rule -----------------------------------------------------------------------------------


def _rules_of(case: Case) -> list[str]:
    """Return the rules of a case: the main rule, then ``lines`` where true."""
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
    if not case.grids or any(case.index(n).value is None for n in case.grids):
        return ["unread"]
    if mostly := _of_shares(case):
        return [mostly, *["lines"] * any(_on_lines(case, n) for n in case.grids)]
    return ["not told" if _not_told(case) else "not asked"]


def _on_lines(case: Case, n: int) -> bool:
    """Return whether a cell or a window is surely enough for more docs than a cell is."""
    cell, window = (case.measures.get(f"{name}{n}") for name in ("one", "one_windows"))
    return cell is not None and window is not None and (window.low or 0.0) > (1.0 if cell.high is None else cell.high)


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
        if rule == "not asked" and with_numbers:
            values = [one.index(one.grids[0]).value or 0.0 for one in cases]
            ends = dict.fromkeys(number(end, True, 2) for end in (min(values), max(values)))
            said.append(f"{reading.name(str(first.kind.index), steady=False)} {' to '.join(ends)}")
        return f"{line(first.base)} ({', '.join(said)})"

    def _numbers(self, rule: str, case: Case) -> str:
        """Return what stands in brackets behind a case's name."""
        measures = case.measures
        if rule in _MOSTLY or rule in ("mixture", "unsure"):
            return self._composed(case)
        if rule == "not told":
            return _short(_not_told(case))
        if rule == "not asked":
            return ", ".join(self._index(case, n) for n in sorted(case.grids))
        if rule == "lines":
            n = case.grids[0]
            both = (self._ends(measures[f"{name}{n}"]) for name in ("one_windows", "one"))
            return "a cell or a window between cells is enough for {}, a cell for {}".format(*both)
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
        if rule == "unread":
            return _why_unread(case)
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

    def _index(self, case: Case, n: int) -> str:
        """Return an index with its interval; with its grid where several are told apart."""
        index = case.index(n)
        name = reading.name(str(case.kind.index), n if len(case.grids) > 1 else None, steady=False)
        words = [word for word in reading.words(index) if word in (reading.MARGINAL, reading.SAMPLED)]
        words += ["not checked that it looks"] if reading.unchecked(case.analysis) else []
        return ", ".join([f"{name} {self._ends(index, signed=True, two=True)}", *words])

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
