"""What a reader should know first: at most six sentences, each made by a rule from the numbers of the tasks that it is true of. Pure.

A benchmark is a mixture. Where docs were asked again (``stats.composition``), a case (a task of a model) falls under the
rule ``most whole``, ``most cell`` or ``most text`` if the interval of that share lies above half of what is solved, at the
finest grid; under ``mixture`` if those of all three lie below; and else under ``unsure``. The sentence gives all four shares.
Otherwise: ``no image`` (the gate says that the answers do not depend on the image), ``unread`` (the gate refuses the index
for another reason, or there is none), ``not told`` (docs were asked again, and their answers do not tell), ``not asked`` (no
doc was asked again: an index of one pass has luck in it, and is no share of docs).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lmms_patch.ask.kinds import OF_CLIPS, Kind
from lmms_patch.ask.spec import parse
from lmms_patch.present import text_only
from lmms_patch.present.sheets import Column, ends_in_percent, number, shown
from lmms_patch.rci.necessity import NOT_ASKED
from lmms_patch.runs import reading
from lmms_patch.runs.details import TstDetails
from lmms_patch.runs.numbers import EXTRA, Analysis
from lmms_patch.runs.run import Result
from lmms_patch.stats.gate import Gate
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import line

MOST = 6
"""How many sentences there are at most."""
WITH_NUMBERS, NAMED = 4, 12
"""Of how many cases a sentence gives numbers, and how many it names; the others are counted."""
ASK_AGAIN = "Ask docs again to know what they need (option steady, or a name with _steady at its end)."
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
        grids = self.analysis.grids if self.kind.index and self.analysis else ()
        return sorted((n for n in grids if f"{self.kind.index}{n}" in self.measures), reverse=True)

    @property
    def gate(self) -> Gate | None:
        """The gate; None for tasks without a gate."""
        return self.analysis.gate if self.analysis else None

    @property
    def refused(self) -> bool:
        """Whether the gate fails."""
        return self.gate is not None and self.gate.valid is False

    def index(self, n: int) -> Estimate:
        """Return the headline index: the steady one where docs were asked again, else 1 − MPP / FIP."""
        name = f"{self.kind.index}{n}"
        index = self.measures[name]
        return reading.headline(index, self.measures.get(f"{name}_steady")) or index

    def at_finest(self, name: str) -> str:
        """Return ``whole_n`` as the name of the number at the finest grid, and any other name as it is."""
        return f"{name[:-2]}{self.grids[0]}" if name.endswith("_n") and self.grids else name

    def get(self, name: str) -> Estimate | None:
        """Return a number (``at_finest``); None where not defined."""
        found = self.measures.get(self.at_finest(name))
        return None if found is None or found.value is None else found


def case(result: Result, model: str = "", key: str = "") -> Case:
    """Return a result of a finished run as a case; its key is the task's label unless another is given."""
    model, key = model or result.run.model, key or result.label
    about = (result.measures, result.analysis, result.higher_is_better, result.tst)
    return Case(key, model, result.base, result.label, result.kind, result.metric, *about)


@dataclass(frozen=True)
class Piece:
    """A part of a finding's sentence.

    Attributes:
        text: as it is written.
        case: the key of the case that it names; empty: it names none.
        aside: whether it stands in brackets behind a name: numbers, or a reason.
        numbers: by name, the numbers that it gives.
    """

    text: str
    case: str = ""
    aside: bool = False
    numbers: Mapping[str, Estimate] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """A sentence to read first, with the cases behind the sentence.

    Attributes:
        kind: what it is about: ``whole``, ``cell``, ``mixture``, ``no image``, ``without``, ``unread``, ``undecided``,
            ``boxes``, ``orders``, ``constant`` or ``other``.
        text: the sentence, with its numbers and intervals; plain text.
        cases: keys of the cases that it is about, in the order of the sentence.
        pieces: the sentence in parts, for places with links.
    """

    kind: str
    text: str
    cases: tuple[str, ...]
    pieces: tuple[Piece, ...] = ()


# --- the rules ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """What is said of the cases that a rule is true of.

    Attributes:
        about: ``Finding.kind``.
        words: the sentence with a place for the cases.
        numbers: what stands in brackets behind each case, with places for numbers by name (``Case.get``): ``:+`` signed,
            ``:%`` a share in percent, ``:.`` without its interval. A part (between ``|``) whose number is not defined is
            left out.
    """

    about: str
    words: str
    numbers: str = ""


_COMPOSED = (
    "{text_n:%} without its image|{one_n:%} on one cell|{whole_n:%} only with the whole image|{unsolved_n:%} not solved"
)
_TEXT = "{tst}|{copies}|most frequent answers {tst_majority:.}|chance {chance:.}"
_HIDDEN = "{%s:+}|full image {score:.}|chance {chance:.}"
RULES = {
    "most whole": Rule("whole", "most of what is solved needs the whole image in {}", _COMPOSED),
    "most cell": Rule("cell", "one cell is enough for most of what is solved in {}", _COMPOSED),
    "most text": Rule("no image", "most of what is solved needs no image in {}", _COMPOSED),
    "mixture": Rule(
        "mixture", "what is solved needs no image, one cell or the whole image, none of them mostly, in {}", _COMPOSED
    ),
    "unsure": Rule("undecided", "what most of the solved docs need is not certain in {}", _COMPOSED),
    "not told": Rule("undecided", "what the docs need cannot be told in {}", "{why}"),
    "lines": Rule(
        "whole",
        "part of what needs more than a cell only fell on a line between cells in {}",
        "a cell or a window between cells is enough for {one_windows_n}, a cell for {one_n}",
    ),
    "no image": Rule("no image", "no image is needed for {}", "{looks}"),
    "without": Rule(
        "no image",
        "without the right image there is still a score in {}",
        "{shows} {score}|full image {full:.}|chance {chance:.}",
    ),
    "learned": Rule(
        "no image",
        "a text-only model, trained on other questions of the test set, answers more than a question's category says in {}",
        _TEXT,
    ),
    "not without": Rule("without", "without the right image the model is not shown to do better than guessing in {}"),
    "not learned": Rule(
        "no image", "a text-only model is not shown to learn more than a question's category says in {}", _TEXT
    ),
    "withheld": Rule(
        "undecided",
        "a text-only model answers copies of a question in reverse, which is no shortcut of the language, in {}",
        "{tst_above:+} above the most frequent answers",
    ),
    "copied": Rule(
        "undecided", "a text-only model answers only questions of which it was trained on a copy in {}", _TEXT
    ),
    "one answer": Rule("constant", "one answer is right in every doc of {}", "{tst}|chance {chance:.}"),
    "same": Rule("constant", "in {} the same is true of all docs"),
    "unread": Rule("unread", "no result for {}", "{why}"),
    "not asked": Rule("undecided", "what the docs need was not asked in {}", "{indices}"),
    "relevant": Rule("boxes", "a relevant box answers more than an adversarial one in {}", "{regions_mean:+}"),
    "adversarial": Rule("boxes", "an adversarial box answers more than a relevant one in {}", "{regions_mean:+}"),
    "boxes alike": Rule(
        "boxes", "neither relevant nor adversarial boxes are clearly worth more in {}", "{regions_mean:+}"
    ),
    "evidence": Rule(
        "boxes", "hiding the relevant boxes costs more than hiding the adversarial ones in {}", _HIDDEN % EXTRA
    ),
    "decoys": Rule(
        "boxes", "hiding the adversarial boxes costs more than hiding the relevant ones in {}", _HIDDEN % EXTRA
    ),
    "hidden alike": Rule(
        "boxes",
        "hiding the relevant boxes is not shown to cost more than hiding the adversarial ones in {}",
        _HIDDEN % EXTRA,
    ),
    "falls": Rule(
        "boxes",
        "hiding the relevant boxes costs score, with no adversarial boxes to compare with, in {}",
        _HIDDEN % "drop_relevant",
    ),
    "stays": Rule("boxes", "hiding the relevant boxes is not shown to cost score in {}", _HIDDEN % "drop_relevant"),
    "magic": Rule(
        "boxes", "reasoning names regions in {}", "MagiScore {magiscore_f1_micro}|answers right {acc_synonym}"
    ),
    "orders": Rule(
        "orders", "right in every order of the options: {}", "{rotate_every}|of {rotate_once:.} asked once|{places}"
    ),
    "other": Rule("other", "shown otherwise: {}", "{views}|{drops}|full image {full:.}|chance {chance:.}"),
}
"""The rules in the order in which they are said."""


def _main(case: Case) -> list[str]:
    """Return the rule of a case by its kind; of an index ``lines`` too, where true."""
    kind = case.kind
    # the second: the host's mark of --predict_only
    if (not case.analysis and case.measures["score"].value is None) or case.metric == "bypass":
        return ["unread"]
    if kind.brought:
        return ["other"]
    if kind.regions:
        mean = case.measures.get("regions_mean")
        return ["unread" if mean is None else _by_sign(mean, "relevant", "adversarial", "boxes alike")]
    if kind.hides:
        return [_of_hidden(case)]
    if kind.index:
        return _of_index(case)
    if kind.turns:
        every = case.measures.get("rotate_every")
        return ["orders" if case.get("rotate_every") else "unread" if every and every.reason else "other"]
    if kind.folds:
        return [_of_tst(case)]
    if kind.view in _WITHOUT and case.higher:
        score, chance = case.measures["score"], case.get("chance")
        floor = (chance and chance.value) or 0.0
        return ["without" if score.low is not None and score.low > floor else "not without"]
    return ["magic" if kind.name == "magic" else "other"]


def _of_hidden(case: Case) -> str:
    """Return the rule of a task with hidden boxes: by the extra drop, else by the relevant boxes' drop."""
    extra, drop = case.get(EXTRA), case.get("drop_relevant")
    if case.refused or not (extra or drop):
        return "unread"
    above, below = ("evidence", "decoys") if extra else ("falls", "stays")
    if not case.higher:  # errors rise where evidence is missed
        above, below = below, above
    return _by_sign(extra or drop, above, below, "hidden alike" if extra else "stays")


def _of_tst(case: Case) -> str:
    """Return the rule of a text-only cross-validation: its verdict, or where only its numbers are known what these say."""
    if case.tst:
        state = text_only.shortcut(case.tst).state
        return state if state in RULES else "not learned"
    above = case.measures.get("tst_above")
    return _by_sign(above, "learned", "not learned", "not learned") if above else "unread"


def _of_index(case: Case) -> list[str]:
    """Return the rules of a case with an index."""
    mostly = _of_shares(case)
    # first: where the gate fails no index may be read, whatever its value
    if case.gate and case.refused:
        no_image = "most text" if mostly == "most text" else "unread"
        return ["no image" if reading.does_not_look(case.gate) else no_image]
    if not case.grids or any(case.index(n).value is None for n in case.grids):
        return ["unread"]
    if not mostly:
        return ["not told" if _not_told(case) else "not asked"]
    # whether a cell or a window is surely enough for more docs than a cell is
    cell, window = case.get("one_n"), case.get("one_windows_n")
    on_lines = cell and window and (window.low or 0.0) > (1.0 if cell.high is None else cell.high)
    return [mostly, *["lines"] * bool(on_lines)]


def _of_shares(case: Case) -> str:
    """Return the rule of a case by what its docs need; "" where not known."""
    text, one, whole, unsolved = (case.get(f"{name}_n") for name in ("text", "one", "whole", "unsolved"))
    if not (text and one and whole and unsolved):
        return ""
    # of what is solved at most; with fewer docs solved the share would be larger
    half = (1 - (unsolved.low or 0.0)) / 2
    shares = {"most whole": whole, "most cell": one, "most text": text}
    if mostly := next((rule for rule, share in shares.items() if (share.low or 0.0) > half), ""):
        return mostly
    return "mixture" if all((share.high or 0.0) <= half for share in shares.values()) else "unsure"


def _not_told(case: Case) -> str:
    """Return why docs asked again do not tell what the docs need; "" where they do, or none was asked again."""
    maps = case.analysis.necessity if case.analysis else ()
    return next((why for one in maps if (why := one.shares["text"].reason) and why != NOT_ASKED), "")


def _by_sign(estimate: Estimate | None, above: str, below: str, neither: str) -> str:
    """Return which of three words an interval calls for: wholly above 0, wholly below, or neither."""
    if estimate and estimate.low is not None and estimate.low > 0:
        return above
    return below if estimate and estimate.high is not None and estimate.high < 0 else neither


Clauses = list[tuple[list[Piece], list[Case], str]]
"""Parts of a sentence, each with the cases that it is about, and how to ask these again."""
_WITHOUT = ("blind", "blank", "swap")
"""Views without a doc's own image."""


# --- the sentences --------------------------------------------------------------------------------


def findings(cases: Sequence[Case]) -> list[Finding]:
    """Return the sentences to read first on some tasks, most important first, with every task in some sentence."""
    refused = {(one.model, one.base) for one in cases if one.kind.index and one.refused}
    # where no index may be read, that says already what a run of the same benchmark without its images shows
    quiet = [one for one in cases if one.kind.view in _WITHOUT and (one.model, one.base) in refused]
    teller = _Teller(cases)
    clauses: dict[str, Clauses] = {}
    by_words: dict[str, dict[str, list[Case]]] = {name: {} for name in RULES}
    for one in (one for one in cases if one not in quiet):
        brought = {"other": one.kind.brought.sentence} if one.kind.brought else {}
        said = [(name, brought.get(name, RULES[name].words)) for name in _main(one)]
        said += [("same", f"in {{}} {told}") for told in (one.analysis.same if one.analysis else ())]
        for name, words in said:
            by_words[name].setdefault(teller.say(one, words), []).append(one)
    for name, rule in RULES.items():
        for words, among in by_words[name].items():
            before, _, after = words.partition("{}")
            clause = [Piece(before), *teller.listed(name, among), Piece(after)]
            beside = [one for one in quiet if (one.model, one.base) in {(each.model, each.base) for each in among}]
            told = any(one.analysis and one.analysis.necessity for one in among)
            ask = ASK_AGAIN * (name == "not asked" and told) or _to_confirm(among) * (name == "unsure")
            clauses.setdefault(rule.about, []).append((clause, [*among, *beside], ask))
    sentences = list(clauses.items())
    # the last rules are the least important: merged from the end
    while len(sentences) > MOST:
        (_, first), (_, second) = sentences[-2:]
        sentences[-2:] = [("other", [*first, *second])]
    out: list[Finding] = []
    for about, parts in sentences:
        # the level of all intervals is said once
        level = "" if any("[" in one.text for one in out) else _level(parts)
        out.append(_finding(about, parts, level))
    return out


def _to_confirm(cases: Sequence[Case]) -> str:
    """Name a task that asks all docs again, where only some were; "" where all were, or no name asks so."""
    for one in cases:
        needs = one.analysis.necessity[0] if one.analysis and one.analysis.necessity else None
        if needs and needs.again < needs.docs and parse(name := f"{one.task}_steady"):
            # most often about two passes (docs/statistics.md)
            calls = 2 * needs.docs * (1 + sum(map(one.kind.cells, one.grids)))
            return f"To tell, ask all docs again: {name}, about {calls:,} calls."
    return ""


def said_of(results: Iterable[Result]) -> list[str]:
    """Return the findings of some results as plain sentences, for places without links."""
    return [one.text for one in findings([case(result) for result in results])]


def _finding(about: str, parts: Clauses, level: str) -> Finding:
    first, *rest = [piece for clause, *_ in parts for piece in (Piece("; "), *clause)][1:]
    ask = "".join(dict.fromkeys(f" {ask}" for *_, ask in parts if ask))
    begin, end = Piece(f"{first.text[:1].upper()}{first.text[1:]}"), Piece(f"{level}.{ask}")
    pieces = (begin, *rest, end)
    cases = dict.fromkeys(one.key for _, some, _ in parts for one in some)
    return Finding(about, "".join(piece.text for piece in pieces), tuple(cases), pieces)


def _level(parts: Clauses) -> str:
    """Return at which level the intervals of a sentence are; "" without intervals."""
    cases = [one for clause, some, _ in parts if any("[" in piece.text for piece in clause) for one in some]
    return f"; {100 * cases[0].measures['score'].level:.3g} % intervals" if cases else ""


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
    """Names cases, and says their numbers.

    Args:
        cases: all of them; a name must tell each from every other.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self._names, self._models = names(cases), Counter(one.task for one in cases)
        self._full = {(one.model, one.base): one for one in cases if "fip" in one.measures and one.kind.index}
        self._of_clips = {one.base for one in cases if one.kind.needs_video}

    def say(self, case: Case, sentence: str) -> str:
        """Return a sentence in the words of a case's medium.

        Without its image, a benchmark that is also asked in time has no clip.
        """
        clips = case.base in self._of_clips and case.kind.view in _WITHOUT
        return (OF_CLIPS if clips else case.kind.words).say(sentence)

    def listed(self, rule: str, cases: Sequence[Case]) -> list[Piece]:
        """Return cases as a list in words: the first few with their numbers; a task of several models is named once."""
        groups: dict[str, list[Case]] = {}
        for one in cases:
            groups.setdefault(one.task, []).append(one)
        told = [self._told(rule, some, at < WITH_NUMBERS) for at, some in enumerate(list(groups.values())[:NAMED])]
        if rest := sum(len(some) for some in list(groups.values())[NAMED:]):
            told.append([Piece(f"{rest} more")])
        between = [", "] * (len(told) - 2) + [" and "] * (len(told) > 1) + [""]
        return [piece for some, then in zip(told, between, strict=True) for piece in (*some, Piece(then))]

    def _told(self, rule: str, cases: Sequence[Case], with_numbers: bool) -> list[Piece]:
        """Return the name of a case with its numbers; of several models for how many of them the rule is true."""
        first, of = cases[0], self._models[cases[0].task]
        if len(cases) > 1:
            said = f"all {of} models" if len(cases) == of else f"{len(cases)} of {of} models"
            if rule == "not asked":
                ends = sorted(one.index(one.grids[0]).value or 0 for one in cases)
                span = " to ".join(dict.fromkeys(number(end, True, 2) for end in (ends[0], ends[-1])))
                said = f"{said}, {reading.name(str(first.kind.index), steady=False)} {span}"
            return [Piece(line(first.base), first.key), Piece(f" ({said})", aside=True)]
        values = _Values(first, self._full.get((first.model, first.base)))
        parts = values.filled(RULES[rule].numbers) if with_numbers else ""
        numbers = [Piece(f" ({self.say(first, parts)})", aside=True, numbers=values.used)] if parts else []
        return [Piece(self._names[first.key], first.key), *numbers]


class _UndefinedError(Exception):
    """There is no number for a place."""


class _Values:
    """What fills the places of ``Rule.numbers``, for a case beside the case with the same benchmark's full image.

    Attributes:
        used: the numbers that filled a place, by name.
    """

    def __init__(self, case: Case, full: Case | None) -> None:
        self._case, self._full, self.used = case, full, dict[str, Estimate]()

    def filled(self, parts: str) -> str:
        """Return the parts whose every place can be filled."""
        told = []
        for part in parts.split("|"):
            with contextlib.suppress(_UndefinedError):
                told.append(part.format_map(self))
        return ", ".join(filter(None, told))

    def __getitem__(self, name: str) -> str | _Number:
        if name == "indices":
            self.used |= {f"{self._case.kind.index}{n}": self._case.index(n) for n in self._case.grids}
        if name in _TEXTS:
            return _TEXTS[name](self._case)
        of = self._full if name == "full" and "fip" not in self._case.measures else self._case
        found = of.get("fip" if name == "full" and of is self._full else name) if of else None
        if found is None:
            raise _UndefinedError
        self.used[self._case.at_finest(name)] = found
        return _Number(found)


@dataclass(frozen=True)
class _Number:
    """A number that writes itself as ``Rule.numbers`` wants it."""

    one: Estimate

    def __format__(self, spec: str) -> str:
        if spec == "%":
            return f"{100 * (self.one.value or 0):.0f} %{ends_in_percent(self.one)}"
        return number(self.one.value) if spec == "." else shown(self.one, Column("", signed=spec == "+"))


# --- what is no number ----------------------------------------------------------------------------


def _why(case: Case) -> str:
    """Return in a few words why there is no number."""
    gate = case.gate
    if case.metric == "bypass":
        return "answers were written and not scored: --predict_only"
    if told := not case.refused and _not_told(case):
        return _short(told)
    if (every := case.measures.get("rotate_every")) is not None and not case.kind.index:
        return _short(every.reason)
    if not case.grids and not case.kind.has_points and case.measures["score"].value is not None:
        return "only full images were asked"
    if gate and case.refused:
        if reading.refusal(gate.reason) == reading.NEAR_CHANCE:
            return f"{case.metric} {number(gate.fip)}, where guesses earn {number(gate.chance)}"
        return _short(gate.reason)
    grids = case.analysis.grids if case.analysis else {}
    reasons = (grids[n].reason or case.index(n).reason for n in case.grids)
    return _short(next(filter(None, reasons), case.measures["score"].reason or "nothing was scored"))


def _short(reason: str) -> str:
    return line(reason, REASON)


def _looks(case: Case) -> str:
    """Say what the model scores with its images and with other images."""
    looked = next((looks for looks in (case.gate.looks if case.gate else ()) if looks.value is False), None)
    if looked is None:
        return ""
    other = "with wrong images" if looked.against == "wrong images" else "without images"
    most = looked.difference.high or 0
    more = f"; the right image adds {number(most)} at most" * (most > 0)
    return f"{case.metric} {number(looked.full)} with its images, {number(looked.other)} {other}{more}"


def _indices(case: Case) -> str:
    """Return the index of each grid with its interval and words; with its grid where there are several."""
    told = []
    for n in sorted(case.grids):
        name = reading.name(str(case.kind.index), n if len(case.grids) > 1 else None, steady=False)
        told.append(f"{name} {shown(case.index(n), Column('', signed=True, digits=2))}")
    return ", ".join([*told, *["not checked that it looks"] * reading.unchecked(case.analysis)])


def _places(case: Case) -> str:
    """Say at which place the gold is found most and least often; nothing where a permutation test shows no difference."""
    placed = case.analysis.turned.placed if case.analysis and case.analysis.turned else None
    if placed is None or placed.p is None or placed.p >= reading.UNEVEN:
        return ""
    scores = [(one.value, chr(ord("A") + place)) for place, one in enumerate(placed.scores) if one.value is not None]
    # of equal places the first
    (best, top), (worst, low) = max(scores, key=lambda one: one[0]), min(scores, key=lambda one: one[0])
    return f"by the place of the gold between {number(best)} at {top} and {number(worst)} at {low}"


def _points(case: Case) -> str:
    """Return the scores along a curve, the full image first where asked, and what a method of another package adds.

    A score of fewer docs stands beside the full image of the same docs, or where that is not asked beside their number.
    """
    kind, own = case.kind, {one.name: one.title for one in case.kind.own}
    whole = number(fip.value) if (fip := case.get("fip")) else ""
    sizes = [name.removeprefix(kind.name) for name in case.measures if name.startswith(kind.name) and name not in own]
    points = {size: one for size in sizes if (one := case.get(f"{kind.name}{size}"))}
    most = max((one.n for one in points.values()), default=0)
    told = [f"full {kind.words.medium} {whole}"] * bool(whole) if points else []
    for size, one in points.items():
        full = number(reading.full_of_the_same(case.measures, kind, size)) if whole else ""
        fewer = f" ({one.n} of {most} docs)" * (one.n < most)
        beside = fewer if full == whole else f" (full {kind.words.medium} of the same docs {full})"
        told.append(f"{kind.words.size(size) if size else kind.beside} {number(one.value)}{beside}")
    return ", ".join([*told, *(f"{title} {shown(one)}" for name, title in own.items() if (one := case.get(name)))])


def _drops(case: Case) -> str:
    """Return what the score falls to with the worst cell hidden."""
    drops = {name: case.get(name) for name in case.measures if name.startswith("drop") and not case.kind.has_points}
    return ", ".join(
        f"{number(one.value)} with the worst of {int(name[4:]) ** 2} cells hidden" for name, one in drops.items() if one
    )


_TEXTS: dict[str, Callable[[Case], str]] = {
    "why": _why,
    "looks": _looks,
    "indices": _indices,
    "places": _places,
    "drops": _drops,
    "shows": lambda case: case.kind.shows,
    "copies": lambda case: text_only.without_copies(case.tst) if case.tst else "",
    "views": lambda case: _points(case) or f"{case.kind.shows} {shown(case.measures['score'])}",
}
"""The places in ``Rule.numbers`` that hold no number of the catalogue."""


def in_words(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> in_words(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
