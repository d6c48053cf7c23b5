"""The verdicts of a gate: every rule on every result in question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lmms_patch.errors import OptionError
from lmms_patch.gate import limits, numbers, sides
from lmms_patch.gate.formats import Verdict
from lmms_patch.gate.limits import Call, Ends
from lmms_patch.gate.numbers import Judged
from lmms_patch.gate.rules import Rule, Rules
from lmms_patch.gate.sides import Baseline, Subject
from lmms_patch.runs import reading
from lmms_patch.runs.catalogue import grids_of, keyed
from lmms_patch.runs.measures import matching
from lmms_patch.runs.run import check_keys

PASSED, FAILED, BAD_INPUT, INCONCLUSIVE = 0, 1, 2, 3
LOST = 0.01
"""Share of docs with a failed call above which no number holds: a model could get better by failing on what it answers wrong."""


@dataclass(frozen=True)
class Judgement:
    """All verdicts of a gate.

    Attributes:
        verdicts: in the order of the rules.
        notes: what a reader must know, one line each.
        config, out, baseline: the files and folders that were given.
        error: why nothing could be judged, in one line; else empty.
    """

    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]
    config: str
    out: str
    baseline: str
    error: str = ""

    @property
    def status(self) -> int:
        """The exit status: bad input (2) outranks failure (1), failure outranks inconclusive (3), and a verdict with a warning does not block."""
        if self.error or not self.verdicts:
            return BAD_INPUT
        calls = {one.word for one in self.verdicts}
        return FAILED if "fail" in calls else INCONCLUSIVE if "inconclusive" in calls else PASSED

    @property
    def counts(self) -> str:
        """How many verdicts there are of each kind, in words, and the exit status."""
        if self.status == BAD_INPUT:
            return f"nothing was judged (exit status {self.status})"
        words = [one.word for one in self.verdicts]
        said = {"warned": "inconclusive (only warned of)"}
        parts = [f"{words.count(word)} {said.get(word, word)}" for word in limits.ORDER if word in words]
        return f"of {len(words)} verdict{'s' * (len(words) > 1)} {', '.join(parts)} (exit status {self.status})"


def judge(out: Path, rules: Rules, baseline: Path | None = None) -> Judgement:
    """Return the verdicts of some rules on the newest results of a folder.

    Args:
        out: the ``--output_path`` of runs, or one results file.
        rules: the rules.
        baseline: a folder of earlier runs; needed for limits on differences.

    Raises:
        OptionError: rules that do not go with what is there.
        RecordError: files that are not whole, an empty run, or a baseline of other settings.
    """
    results, notes = sides.read(out)
    check_keys(rules.ignore, results[0].result.fingerprint)
    needed = [rule for rule in rules.rules if rule.of_difference]
    if needed and baseline is None:
        raise OptionError(f"{rules.source}: rule {needed[0].name!r} compares with a baseline; give one: --baseline DIR")
    before = None if baseline is None else Baseline(baseline, rules.ignore, results)
    checks: list[Check] = []
    for rule in rules.rules:
        try:
            own, skipped = _checks(rule, results, before)
        except OptionError as error:
            raise OptionError(f"{rules.source}: rule {rule.name!r}: {error}") from None
        checks, notes = checks + own, notes + skipped
    made = tuple(verdicts(checks))
    # after the verdicts: their comparisons add notes to the baseline
    notes += before.notes if before else []
    return Judgement(made, tuple(dict.fromkeys(notes)), rules.source, str(out), str(baseline or ""))


# --- what is judged -------------------------------------------------------------------------------


def _checks(rule: Rule, results: Sequence[Subject], before: Baseline | None) -> tuple[list[Check], list[str]]:
    """Return the checks of a rule, and notes on the results left out.

    Raises:
        OptionError: no result has what a check asks for.
    """
    selected, notes = sides.select(rule, results), list[str]()
    gone = [] if before is None else before.gone(rule, selected)
    checks = [_there(rule, one, why) for one, why in gone]
    checks += _complete(rule, results) if "complete" in rule.require else []
    if rule.metric is not None:
        lost = [one for one in selected if one.result.failed > LOST * one.result.docs]
        checks += [
            _there(rule, one, f"{one.result.failed} of {one.result.docs} docs are lost to failed calls") for one in lost
        ]
    judged: list[tuple[str, Ends, Baseline | None]] = [
        (name, (least, most), None) for name, least, most in rule.demands
    ]
    if rule.of_difference:
        if rule.metric in numbers.FACTS:
            raise OptionError(f"{rule.metric} has no difference to a baseline; give 'require', 'min' or 'max'")
        judged.append((str(rule.metric), (None if rule.max_drop is None else -rule.max_drop, rule.max_rise), before))
    for pattern, ends, against in judged:
        names = {id(one): _names(one, pattern) for one in selected}
        # of a difference, what neither run asked (docs asked again, say) is told below
        could = against and any(matching(keyed(one.result.kind, one.result.grids), pattern) for one in selected)
        if not any(names.values()) and not could:
            known = dict.fromkeys(name for one in selected for name in one.numbers)
            raise OptionError(
                f"{pattern} matches no number of {selected[0].label} or the others; there is {', '.join(known)}"
            )
        # the difference to a task whose docs were taken out has no baseline
        of = [one for one in selected if against is None or not any(one is other for other, _ in gone)]
        own = [Check(rule, one, name, ends, against) for one in of for name in names[id(one)]]
        for one in (check.one for check in own if check.follows):
            if ends[1] is None and not one.result.higher_is_better:
                raise OptionError(f"{pattern} of {one.label} is better when lower: give 'max_rise' or 'max'")
        checks += own
        if without := [f"{one.label} of {one.model}" for one in selected if not names[id(one)]]:
            notes.append(f"rule {rule.name!r} leaves out {', '.join(without)}: no {pattern}")
    return checks, notes


def _names(one: Subject, pattern: str) -> list[str]:
    """Return the names matching a pattern; of several names for a number (score, fip, acc) the first."""
    if pattern in numbers.FACTS:
        return [pattern] * bool(getattr(one.result.kind, numbers.FACTS[pattern][0]))
    names: dict[int, str] = {}
    for name in matching(one.numbers, pattern):
        names.setdefault(id(one.numbers[name]), name)
    return list(names.values())


def _complete(rule: Rule, results: Sequence[Subject]) -> Iterable[Check]:
    """Yield a check of each model and named task: is the task there, and whole?"""
    selected = [one for one in results if one.selected(rule, ("model", "base", "kind"))]
    for model in {one.model: one for one in selected}.values():
        for task in rule.task:
            there = [one for one in selected if one.model == model.model and task in (one.label, one.result.task)]
            for one in there or [Subject(model.result, model.model, task)]:
                why = f"run with {one.partial}" if one.partial else "" if one.result.docs else "nothing was scored"
                yield _there(rule, one, why if there else "the run does not have this task")


def _there(rule: Rule, one: Subject, why: str) -> Check:
    """Return the check of a task for being there as the rule demands; ``why``: why the task is not."""
    return Check(rule, one, "complete", (1, None), fact=numbers.known(one, float(not why), why))


# --- one verdict ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """A limit of a number, of its difference to the baseline's, or of something else that is known of a result.

    Attributes:
        rule: the rule.
        one: the result.
        metric: the name of what is judged.
        ends: the limits, without the margin.
        before: the baseline; None: the number itself has the limits.
        fact: what is known, in place of a number.
    """

    rule: Rule
    one: Subject
    metric: str
    ends: Ends
    before: Baseline | None = None
    fact: Judged | None = None

    @cached_property
    def known(self) -> Judged | None:
        """The fact that is judged in place of a number, such as whether the gate passes; None where a number is."""
        return numbers.FACTS[self.metric][1](self.one) if self.metric in numbers.FACTS else self.fact

    @property
    def by_interval(self) -> bool:
        """Whether an interval decides."""
        return self.rule.interval and self.known is None

    @property
    def allowed(self) -> Ends:
        """The limits, each moved outwards by the margin."""
        margin, (least, most) = 0.0 if self.known else self.rule.margin, self.ends
        return None if least is None else least - margin, None if most is None else most + margin

    @property
    def is_score(self) -> bool:
        """Whether the task's primary metric is judged."""
        return self.one.numbers.get(self.metric) is self.one.numbers["score"]

    @property
    def follows(self) -> bool:
        """Whether what is judged is better when the task's metric is."""
        row = keyed(self.one.result.kind, self.one.result.grids).get(self.metric)
        return self.is_score or (row is not None and row[0].better)

    @property
    def family(self) -> Hashable:
        """What the number is judged together with: a rule, or the primary or the further numbers of comparisons."""
        return id(self.rule) if self.before is None else self.is_score

    def verdict(self, level: float) -> Verdict:
        """Return the verdict with an interval at a level (``verdicts``)."""
        rule, one, before, (least, most) = self.rule, self.one, self.before, self.allowed
        number, call, why = self._called(level)
        name = f"|{self.metric}|" if rule.absolute and not self.known else self.metric
        return Verdict(
            rule=rule.name,
            task=one.label,
            model=one.model,
            metric=name,
            value=number.value,
            baseline=number.baseline,
            baseline_model=before.partner(one).model if before else None,
            difference=number.judged if before else None,
            primary=self.is_score if before else None,
            level=level if self.by_interval else None,
            basis=number.basis if self.by_interval else "number",
            verdict=call,
            warned=call == "inconclusive" and rule.inconclusive == "warn",
            reason=why,
            measure=one.result.metric if name in ("fip", "score") else name,
            least=least,
            most=most,
        )

    def _called(self, level: float) -> tuple[Judged, Call, str]:
        """Return the number with its interval at a level, the verdict and the reason."""
        rule, one, name, before, allowed = self.rule, self.one, self.metric, self.before, self.allowed
        if fact := self.known:
            return fact, *limits.judged(fact.judged, allowed)
        number = (
            numbers.number_of(one, name, level, rule.absolute)
            if before is None
            else numbers.difference_of(one, name, before, level)
        )
        call, why = limits.judged(number.judged, allowed, rule.interval)
        told = list[str]()
        unjudged = max(side.unjudged(name) for side in ([one, before.partner(one)] if before else [one]))
        if number.unchanged:
            # the interval could only speak of docs that nobody asked
            call, why = limits.call(0.0, 0.0, allowed), "no answer changed: the same scores on every doc"
        elif unjudged > LOST * one.result.docs:
            # a judge that refuses the wrong answers must not make a model pass
            call = "inconclusive" if call == "pass" else call
            told.append(f"{unjudged} of {one.result.docs} docs have no verdict of the judge")
        # but for rounding
        elif number.lost > LOST + 1e-9:
            call, why = "fail", f"{number.lost:.1%} of the docs are lost to one of the runs"
        elif call == "inconclusive" and self.by_interval and (size := limits.smallest(number.judged, level)):
            told.append(f"fails in 80 % of runs where the truth is {size:.2g} beyond what is allowed")
        # the index is then known to be mostly luck
        n = grids_of(one.result.kind, one.result.grids).get(name)
        grid = one.result.grid(n) if n is not None and reading.contradicted(one.numbers[name]) else None
        if grid is not None:
            call = "inconclusive" if call == "pass" and before is None else call
            told.insert(0, reading.explained(grid.mark))
        if before is None and one.partial and not rule.allow_limit:
            call = "inconclusive" if call == "pass" else call
            told.insert(0, f"run with {one.partial}, not the whole benchmark (allow_limit: true lets it pass)")
        return number, call, "; ".join(filter(None, [*told, why]))


# --- what is judged together ----------------------------------------------------------------------


def verdicts(checks: Sequence[Check]) -> list[Verdict]:
    """Return the verdicts of all checks, with levels of their intervals at which a claim as a whole holds at its rule's level.

    There are three kinds of claim, each with its own Bonferroni correction:

    - "no task got worse": the primary number of every comparison with the baseline. With one comparison its level is
      the rule's level.
    - "nothing else moved": all other numbers of all comparisons of the file together.
    - limits of numbers themselves: all numbers that one rule judges.

    A number that two rules judge counts once, and so does a number with several names. Checks without interval do not
    count.
    """
    # by the estimate's id, so that a number with several names counts once
    judged = {(one.family, one.one, id(one.one.numbers[one.metric])) for one in checks if one.by_interval}
    counts = Counter(family for family, *_ in judged)
    return [one.verdict(1 - (1 - one.rule.level) / (counts[one.family] if one.by_interval else 1)) for one in checks]
