"""The verdicts of a gate: every rule on every result that it is about."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmms_patch.compare import alike
from lmms_patch.errors import OptionError, nearest
from lmms_patch.gate import limits, numbers, sides
from lmms_patch.gate.formats import Verdict
from lmms_patch.gate.limits import Call, plain
from lmms_patch.gate.numbers import OVER_CHANCE, Judged
from lmms_patch.gate.rules import Rule, Rules
from lmms_patch.gate.sides import Baseline, Subject
from lmms_patch.runs import failures, reading
from lmms_patch.runs.catalogue import named
from lmms_patch.runs.measures import matching

PASSED, FAILED, BAD_INPUT, INCONCLUSIVE = 0, 1, 2, 3
UNCHANGED = "no answer changed: what the number is made of is the same on every doc"
_TEXT_ONLY = ("tst", "tst_majority", OVER_CHANCE, "tst_above", "tst_zero_shot", "tst_delta", "tst_leakage")
"""Scores of models that only read."""
Ends = tuple[float | None, float | None]
"""A lower and an upper limit; None: there is no such limit."""


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
        words = {
            "fail": "fail",
            "inconclusive": "inconclusive",
            "pass": "pass",
            "warned": "inconclusive (only warned of)",
        }
        counts = {said: sum(one.word == word for one in self.verdicts) for word, said in words.items()}
        parts = ", ".join(f"{count} {said}" for said, count in counts.items() if count)
        total = len(self.verdicts)
        return f"of {total} verdict{'s' * (total > 1)} {parts} (exit status {self.status})"


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
    results, notes = sides.read(out, "the run")
    allowed = [
        key for key in dict.fromkeys(key for one in results for key in one.result.fingerprint) if key not in alike.SAME
    ]
    for key in [key for key in rules.ignore if key not in allowed]:
        close = "".join(f"did you mean {one}? " for one in nearest(key, allowed, 1))
        why = (
            f"two results of other {key} cannot be compared; "
            if key in alike.SAME
            else f"there is no such setting; {close}"
        )
        raise OptionError(f"{rules.source}: defaults: ignore {key!r}: {why}allowed: {', '.join(allowed)}")
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
    notes += [
        f"{one.label} of {one.model}: run with {one.partial}, so not the whole benchmark"
        for one in results
        if one.partial
    ]
    held = {id(check.one): check.one for check in checks}.values()
    notes += [f"{one.label} of {one.model}: {said}" for one in held for said in failures.told_of(one.result.analysis)]
    compared = dict.fromkeys(check.metric for check in checks if check.before)
    # Without any comparing rule the key would have no effect.
    if rules.primary and not matching(compared, rules.primary):
        what = f"compared are {', '.join(compared)}" if compared else "no rule has max_drop or max_rise"
        said = f"{rules.primary!r} is not compared with the baseline by any rule; {what}"
        raise OptionError(f"{rules.source}: defaults: primary {said}")
    made = tuple(verdicts(checks, rules.primary))
    # After the verdicts: their comparisons add notes to the baseline.
    if before is not None:
        notes += list(before.notes) if needed else ["no rule compares with the baseline"]
    return Judgement(made, tuple(dict.fromkeys(notes)), rules.source, str(out), str(baseline or ""))


# --- what is judged -------------------------------------------------------------------------------


def _checks(rule: Rule, results: Sequence[Subject], before: Baseline | None) -> tuple[list[Check], list[str]]:
    """Return the checks of a rule, and notes on the results left out.

    Raises:
        OptionError: no result has what a check asks for.
    """
    checks = list(_complete(rule, results)) if rule.complete else []
    if rule.only_complete:
        return checks, []
    selected, notes = sides.select(rule, results), list[str]()
    gone = [] if before is None else before.gone(rule, selected)
    checks += [_there(rule, one, why) for one, why in gone]
    if rule.metric is not None:
        names = {id(one): _metrics(one, rule.metric) for one in selected}
        if not any(names.values()):
            known = list(dict.fromkeys(name for one in selected for name in one.numbers))
            close = " or ".join(nearest(rule.metric.strip("*"), known))
            hint = f"did you mean {close}?" if close else f"there is {', '.join(known)}"
            raise OptionError(f"metric {rule.metric!r} matches nothing in {selected[0].label} or the others; {hint}")
        for one in selected:
            own = [Check(rule, one, name, (rule.min, rule.max)) for name in names[id(one)] if rule.of_value]
            # the difference to a task whose docs were taken out has no baseline
            if rule.of_difference and not any(one is other for other, _ in gone):
                ends = None if rule.max_drop is None else -rule.max_drop, rule.max_rise
                own += [Check(rule, one, name, ends, before) for name in names[id(one)]]
            checks += own
        notes += _skipped(rule, [one for one in selected if not names[id(one)]], f"has no {rule.metric}")
    for metric, flag, leaves_out, fact, ends in _needs(rule):
        fits = [one for one in selected if not flag or getattr(one.result.kind, flag)]
        if not fits:
            raise OptionError(f"none of its tasks can be judged: {selected[0].label} {leaves_out}")
        checks += [Check(rule, one, metric, ends, fact=fact and fact(one)) for one in fits]
        notes += _skipped(rule, [one for one in selected if one not in fits], leaves_out)
    for check in [check for check in checks if check.fact is None]:
        _check_direction(check)
        if check.before is None and check.one.partial and not rule.allow_limit:
            raise OptionError(
                f"{check.one.label} was run with {check.one.partial}, and the first docs of a benchmark are not the benchmark; "
                "run it whole, or say 'allow_limit: true' in the rule"
            )
    return checks, notes


def _needs(rule: Rule) -> Iterable[tuple[str, str, str, Callable[[Subject], Judged] | None, Ends]]:
    """Yield what a rule demands whatever its metric.

    Yields:
        What is judged; the flag of the kinds that have it (empty: all have); why others are left out; from a result to
        what is known of it (None: it is a number); the limits.
    """
    if "valid gate" in rule.require:
        yield "gate", "index", "has no chance gate, as it has no index", numbers.gate, (1, None)
    if "looks" in rule.require:
        yield "looks", "index", "asks nothing on another doc's image, as it has no index", numbers.looks, (1, None)
    if rule.max_tst_over_chance is not None:
        why = "is no text-only cross-validation; ask for one (_tst)"
        yield OVER_CHANCE, "folds", why, None, (None, rule.max_tst_over_chance)
    if rule.max_excluded is not None:
        yield "excluded", "index", "has no grid", numbers.excluded, (None, rule.max_excluded)
    if rule.min_docs is not None:
        yield "n_docs", "", "", numbers.docs, (rule.min_docs, None)


def _metrics(one: Subject, pattern: str) -> list[str]:
    """Return the names matching a pattern; of several names for a number (score, fip, acc) the first."""
    names: dict[int, str] = {}
    for name in matching(one.numbers, pattern):
        names.setdefault(id(one.numbers[name]), name)
    return list(names.values())


def _skipped(rule: Rule, out: Sequence[Subject], why: str) -> list[str]:
    names = sides.some([f"{one.label} of {one.model}" for one in out], 5)
    return [f"rule {rule.name!r} leaves out {names}: {why}"] if names else []


def _complete(rule: Rule, results: Sequence[Subject]) -> Iterable[Check]:
    """Yield a check of each model and named task: is the task there, and whole?"""
    own = [one for one in results if one.selected(rule, ("model", "base", "kind"))] or list(results)
    for model in {one.model: one for one in own}.values():
        for task in rule.task:
            there = [one for one in own if one.model == model.model and task in (one.label, one.result.task)]
            for one in there or [Subject(model.result, model.model, task)]:
                whole = one.result.docs and (rule.allow_limit or not one.partial)
                why = f"run with {one.partial}" if one.result.docs else "nothing was scored"
                yield _there(rule, one, "the run does not have this task" if not there else "" if whole else why)


def _there(rule: Rule, one: Subject, why: str) -> Check:
    """Return the check of a task for being there as the rule demands; ``why``: why the task is not."""
    return Check(rule, one, "complete", (1, None), fact=numbers.known(one, float(not why), why))


def _check_direction(check: Check) -> None:
    """Refuse a limit only on the improvement of a metric where lower is better.

    ``max_drop`` and ``min`` keep a number from falling. Where lower is better (an error rate) they stop it from getting
    better and let it get as bad as it likes.

    Raises:
        OptionError: the metric is better when lower, and only its improvement is limited.
    """
    rule, one, metric = check.rule, check.one, check.metric
    row = named(one.result.kind, one.result.grids).get(metric)
    # a number without a row is a native metric under its own name, whose direction is known
    of_primary = row is not None or metric in ("score", "fip", *_TEXT_ONLY) or metric.startswith("drop")
    native = one.result.metric if of_primary else metric
    if one.result.kind.method.better(one.result, native) or not (
        row is None or row.better or metric in ("score", "fip")
    ):
        return
    about = f"{native} of {one.label} is better when lower, so"
    if rule.metric is None:
        raise OptionError(
            f"{about} 'max_tst_over_chance' would pass what text alone answers; give 'metric: tst_over_chance' with 'min' (-0.05, say)"
        )
    alone = "or narrow the rule (task) and give this one its own"
    if rule.max_drop is not None and rule.max_rise is None:
        raise OptionError(f"{about} 'max_drop' of {metric} alone would pass any loss; give 'max_rise', {alone}")
    # 'min' on the error rate of a text-only score is meant: it asks that the text alone does not answer
    if rule.min is not None and rule.max is None and metric not in _TEXT_ONLY:
        raise OptionError(f"{about} 'min' of {metric} alone would pass any loss; give 'max', {alone}")


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

    @property
    def absolute(self) -> bool:
        """Whether the number's distance from 0 is judged."""
        return self.rule.absolute and self.fact is None and self.rule.metric is not None

    def family(self, primary: str | None) -> Hashable:
        """Return what the number is judged together with: a rule, or the primary or the further numbers of comparisons.

        That is the named number, or else the task's metric.
        """
        own = self.one.numbers
        names = matching(own, primary) if primary else []
        return self.rule.name if self.before is None else own[self.metric] is own[names[0] if names else "score"]

    def verdict(self, level: float, primary: bool | None) -> Verdict:
        """Return the verdict.

        Args:
            level: of the interval (``verdicts``).
            primary: as ``Verdict.primary``.
        """
        rule, one, before, (least, most) = self.rule, self.one, self.before, self.ends
        margin, by_interval = (rule.margin, rule.interval) if self.fact is None else (0.0, False)
        number, call, why = self._called(level)
        signs = (">=", "<=") if before is None else ("drop <=", "rise <=")
        ends = (least if before is None or least is None else 0.0 - least, most)
        limit = " and ".join(f"{sign} {plain(end)}" for sign, end in zip(signs, ends, strict=True) if end is not None)
        kind, name = one.result.kind, f"|{self.metric}|" if self.absolute else self.metric
        where = f" {kind.where}" * (kind.view != "full" and not kind.full)
        return Verdict(
            rule=rule.name,
            task=one.label,
            model=one.model,
            metric=name,
            limit=f"{limit}, margin {plain(margin)}" if margin else limit,
            value=number.value,
            baseline=number.baseline,
            baseline_model=before.partner(one).model if before else None,
            difference=number.judged if before else None,
            primary=primary,
            level=level if by_interval else None,
            detectable=limits.smallest(number.judged, level) if by_interval else None,
            basis=number.basis if by_interval else "number",
            verdict=call,
            warned=call == "inconclusive" and not rule.blocks,
            reason=why,
            # a task that is not there has none
            base=one.result.base if name != "complete" else "",
            kind=kind.name,
            # the benchmark's metric, and what was shown
            measure=one.result.metric + where if name in ("fip", "score") else name,
            least=None if least is None else least - margin,
            most=None if most is None else most + margin,
        )

    def _called(self, level: float) -> tuple[Judged, Call, str]:
        """Return the number with its interval at a level, the verdict and the reason."""
        rule, one, name, before, (least, most) = self.rule, self.one, self.metric, self.before, self.ends
        if self.fact is not None:
            return self.fact, limits.judged(self.fact.judged, least, most)[0], self.fact.judged.reason
        if before is None:
            number = numbers.number_of(one, name, level, self.absolute)
        else:
            number = numbers.difference_of(one, name, before, level, self.absolute)
        call, why = limits.judged(number.judged, least, most, rule.margin, rule.interval)
        told, bounds = [], number.ends
        if number.unchanged:
            # the interval could only speak of docs that nobody asked; a bound is over all docs, also those unjudged
            call, why = limits.call(0.0, 0.0, least=least, most=most, margin=rule.margin), UNCHANGED
            number = bounds[0] if bounds else number
        elif bounds is not None:
            # A lower limit must hold were all unjudged docs wrong, and an upper limit were they all right: else a judge
            # that refuses the wrong answers would make a model pass. In the baseline they count the other way round.
            tried = [
                (end, limits.judged(bounds[end].judged, *only, rule.margin, rule.interval))
                for end, only in enumerate(((least, None), (None, most)))
                if self.ends[end] is not None
            ]
            end, (call, why) = max(tried, key=lambda one: limits.CALLS.index(one[1][0]))
            number, words = bounds[end], ("wrong", "right")
            shown = ["N/A" if one.judged.value is None else f"{one.judged.value:.3f}" for one in bounds]
            opposite = f", as {words[1 - end]} in the baseline" * (before is not None)
            told.append(
                f"docs without a verdict count as {words[end]} here{opposite} ({shown[end]}; the other way round {shown[1 - end]})"
            )
        # the index is then known to be mostly luck
        grid = one.grid(name) if reading.contradicted(one.numbers.get(name)) else None
        if grid is not None:
            call = "inconclusive" if call == "pass" and before is None else call
            told.insert(0, reading.explained(grid.mark))
        compared = [one] if before is None else [one, before.partner(one)]
        if gone := numbers.lost(number, compared, name, rule.max_lost):
            call, told = "fail", [gone, *told]
        return number, call, "; ".join(filter(None, [*told, why]))


# --- what is judged together ----------------------------------------------------------------------


def verdicts(checks: Sequence[Check], primary: str | None) -> list[Verdict]:
    """Return the verdicts of all checks, with levels of their intervals at which a claim as a whole holds at its rule's level.

    There are three kinds of claim, each with its own Bonferroni correction:

    - "no task got worse": the primary number of every comparison with the baseline. With one comparison its level is
      the rule's level.
    - "nothing else moved": all other numbers of all comparisons of the file together.
    - limits of numbers themselves: all numbers that one rule judges.

    A number that two rules judge counts once, and so does a number with several names. Rules without correction and
    checks without interval do not count.

    Args:
        checks: those of all rules.
        primary: see ``Rules``.
    """
    families: dict[Hashable, set[tuple[int, int]]] = {}
    for check in checks:
        if check.fact is None and check.rule.interval and check.rule.corrected:
            # By the estimate's id, so that a number with several names counts once.
            number = id(check.one), id(check.one.numbers.get(check.metric))
            families.setdefault(check.family(primary), set()).add(number)
    made = []
    for check in checks:
        family = check.family(primary)
        count = len(families.get(family, ())) if check.rule.corrected else 1
        level = limits.corrected(check.rule.level, count)
        made.append(check.verdict(level, bool(family) if check.before else None))
    return made
