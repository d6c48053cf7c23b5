"""The verdicts of a gate: every rule on every result that it is about. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_patch.ask.spec import KINDS
from lmms_patch.errors import OptionError, RecordError, nearest
from lmms_patch.gate import limits, sides
from lmms_patch.gate.intervals import Judged, bounds_of, difference_bounds_of, difference_of, number_of
from lmms_patch.gate.limits import Call
from lmms_patch.gate.rules import Rule, Rules, parse, read
from lmms_patch.gate.sides import Baseline, Result
from lmms_patch.present.findings import case, findings
from lmms_patch.runs import failures, reading
from lmms_patch.runs.measures import matching
from lmms_patch.runs.unjudged import BY_JUDGE
from lmms_patch.stats.resample import Estimate

PASSED, FAILED, BAD_INPUT, INCONCLUSIVE = 0, 1, 2, 3
WORDS = {PASSED: "passed", FAILED: "failed", BAD_INPUT: "bad input", INCONCLUSIVE: "inconclusive"}
"""The words for the exit statuses."""
UNCHANGED = "no answer changed: what the number is made of is the same on every doc"


@dataclass(frozen=True)
class Verdict:
    """The verdict of one rule on one number of one result.

    Attributes:
        rule: the rule's name.
        task, model: the result's.
        metric: what is judged: a name of ``measures``, ``gate``, ``looks``, ``checked``, ``excluded`` or ``n_docs``; "|rci3|" is a distance from 0.
        limit: in words, with the margin.
        value: the number, with its interval at ``level``.
        baseline: the baseline's number; None without a baseline or where not defined.
        baseline_model: the model of the baseline.
        difference: number − baseline, with its interval at ``level``; None where the number itself is judged.
        primary: whether it is the primary number of its comparison, which carries the claim; None where the number itself is judged.
        level: of this one interval, after the correction; None where the number alone decides.
        detectable: how far beyond limit and margin the truth must be to fail in 80 % of runs; None where nothing varies, or no interval decides.
        basis: ``paired``, ``unpaired``, ``interval`` (the number's own) or ``number`` (no interval decides).
        call: pass, fail or inconclusive.
        warned: whether it is inconclusive and its rule says that this does not block.
        reason: why, in one line; may be empty.
        base: the benchmark.
        kind: of the task (``spec.KINDS``).
        measure: the number as people know it: the benchmark's own metric in place of ``fip`` and ``score``.
        least, most: the ends of what is allowed, limit and margin together; None: there is no such end.
    """

    rule: str
    task: str
    model: str
    metric: str
    limit: str
    value: Estimate
    baseline: float | None = None
    baseline_model: str = ""
    difference: Estimate | None = None
    primary: bool | None = None
    level: float | None = None
    detectable: float | None = None
    basis: str = "number"
    call: Call = "fail"
    warned: bool = False
    reason: str = ""
    base: str = ""
    kind: str = "rci"
    measure: str = ""
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Judgement:
    """All verdicts of a gate.

    Attributes:
        verdicts: in the order of the rules.
        notes: what a reader must know, one line each.
        config, out, baseline: the files and folders that were given.
        error: why nothing could be judged, in one line; else empty.
        findings: what to know of the judged runs, a sentence each (``present.findings``).
    """

    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]
    config: str
    out: str
    baseline: str
    error: str = ""
    findings: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The exit status: bad input (2) outranks failure (1), failure outranks inconclusive (3), and a verdict with a warning does not block."""
        if self.error or not self.verdicts:
            return BAD_INPUT
        calls = {one.call for one in self.verdicts if not one.warned}
        return FAILED if "fail" in calls else INCONCLUSIVE if "inconclusive" in calls else PASSED

    @property
    def counts(self) -> str:
        """How many verdicts there are of each kind, in words, and the exit status."""
        if self.status == BAD_INPUT:
            return f"nothing was judged (exit status {self.status})"
        warned = sum(one.warned for one in self.verdicts)
        counts = {call: sum(one.call == call and not one.warned for one in self.verdicts) for call in ("fail", "inconclusive", "pass")}
        parts = [f"{count} {call}" for call, count in counts.items() if count] + ([f"{warned} inconclusive (only warned of)"] if warned else [])
        return f"of {len(self.verdicts)} verdict{'s' * (len(self.verdicts) > 1)} {', '.join(parts)} (exit status {self.status})"


@dataclass(frozen=True)
class Item:
    """One thing to judge: a number of a result, and the kind of check."""

    one: Result
    check: str
    metric: str


def gate(out: str | Path, config: str | Path | Mapping[str, Any], *, baseline: str | Path | None = None) -> Judgement:
    """Hold the numbers of finished runs to rules, as ``lmms-patch gate`` does, without writing or printing.

    Args:
        out: the ``--output_path`` of runs (of each model and task the newest counts), or one results file.
        config: a YAML file of rules, the name of a shipped one (``model-regression``), or the rules themselves as a mapping.
        baseline: earlier runs; needed for ``max_drop`` and ``max_rise``.

    Returns:
        All verdicts; ``status`` is the exit status of the command: 0, 1 or 3, as bad input raises.

    Raises:
        PatchError: bad input (the command's exit status 2), as ``judge`` and ``rules.read``.
    """
    rules = parse(config) if isinstance(config, Mapping) else read(config)
    return judge(Path(out), rules, None if baseline is None else Path(baseline))


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
    results, older, _ = sides.read(out, "the run")
    sides.check_ignored(rules.ignore, dict.fromkeys(key for one in results for key in one.fingerprint), rules.source)
    needed = [rule for rule in rules.rules if rule.of_difference]
    if needed and baseline is None:
        raise OptionError(f"{rules.source}: rule {needed[0].name!r} compares with a baseline; give one: --baseline DIR")
    before = None if baseline is None else Baseline(baseline, rules.ignore, results)
    notes = [f"{older} older results in {out} left aside: of each model and task the newest counts"] if older else []
    plans = []
    for rule in rules.rules:
        selected = sides.select(rule, results, rules.source)
        items, skipped = _items(rule, selected, rules.source)
        notes += skipped
        plans.append((rule, items))
        if before is not None and rule.of_difference:
            before.check_complete(rule, [item.one for item in items if item.check == "difference"], rules.source)
        if before is not None:
            before.check_grids(rule, list({id(item.one): item.one for item in items if item.check not in ("docs", "checked")}.values()), rules.source)
    notes += _check_numbers(results, plans, before)
    notes += [f"{one.task} of {one.model}: run with {one.partial}, so not the whole benchmark" for one in results if one.partial]
    notes += [f"{one.task} of {one.model}: {said}" for one in results for said in failures.told_of(one.result.analysis)]
    _check_primary(rules, plans)
    level = levels(plans, rules.primary)
    verdicts = tuple(of_item(rule, item, before, level(rule, item), rules.primary) for rule, items in plans for item in items)
    if before is not None:
        notes += [f"{before.older} older results in {before.path} left aside"] if before.older else []
        notes += list(before.notes) if needed else ["no rule compares with the baseline"]
    given = str(out), "" if baseline is None else str(baseline)
    return Judgement(verdicts, tuple(dict.fromkeys(notes)), rules.source, *given, findings=_findings(results))


def _findings(results: Sequence[Result]) -> tuple[str, ...]:
    """Return the sentences of ``present.findings`` about some results.

    They are there to be read, and no verdict rests on them. So where a file lacks what a sentence needs there is none, and the gate goes on.
    """
    try:
        return tuple(one.text for one in findings([case(one.result, one.model, str(place)) for place, one in enumerate(results)]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def _check_numbers(results: Sequence[Result], plans: Sequence[tuple[Rule, Sequence[Item]]], before: Baseline | None) -> list[str]:
    """Check the numbers of every result, and of the baseline's results that are compared with; return what could not be checked.

    Raises:
        RecordError: a number is wrong; or the run wrote a log that is not there (the log of a baseline may be left out to save space).
    """
    for one in results:
        if one.result.log is None and one.result.docs and one.run.about.get("log_samples"):
            raise RecordError(f"{one.run.path}: the run wrote a sample log of {one.task}, which is not there; put it back beside the results file")
    compared = {id(item.one) for _, items in plans for item in items if item.check == "difference"}
    sides_of = [("", one) for one in results]
    sides_of += [("the baseline of ", before.partner(one)) for one in results if before is not None and id(one) in compared]
    told = [f"{which}{one.task} of {one.model}, not checked: {'; '.join(one.unchecked)}" for which, one in sides_of if one.unchecked]
    return told + [f"{which}{one.task} of {one.model}: {said}" for which, one in sides_of if (said := reading.kept(one.result.details))]


# --- what is judged -------------------------------------------------------------------------------


def _items(rule: Rule, selected: Sequence[Result], source: str) -> tuple[list[Item], list[str]]:
    """Return what a rule judges, and notes on results that it leaves out.

    Raises:
        OptionError: no result has what a check asks for.
    """
    items, notes = _of_metric(rule, selected, source) if rule.metric is not None else ([], [])
    with_index = [one for one in selected if KINDS[one.kind].index]
    text_only = [one for one in selected if KINDS[one.kind].folds]
    for check, asked, judged, why, metric in (
        ("gate", rule.valid_gate, with_index, "has no chance gate, as it has no index", "gate"),
        ("looks", rule.looks, with_index, "asks nothing on another doc's image, as it has no index", "looks"),
        ("tst", rule.max_tst_over_chance is not None, text_only, "is no text-only cross-validation (_tst)", "tst_over_chance"),
        ("excluded", rule.max_excluded is not None, with_index, "has no grid", "excluded"),
        ("docs", rule.min_docs is not None, selected, "", "n_docs"),
        ("checked", rule.checked, selected, "", "checked"),
    ):
        if not asked:
            continue
        if not judged:
            make = f"; {sides.made_by(selected, ['tst'])}" if check == "tst" else ""
            raise OptionError(f"{source}: rule {rule.name!r}: none of its tasks can be judged: {selected[0].task} {why}{make}")
        new = [Item(one, check, metric) for one in judged]
        for item in new if check == "tst" else ():
            limits.check_text_only(rule, item.one, source)
            _check_whole(rule, item, source)
        items += new
        notes += _skipped(rule, [one for one in selected if one not in judged], why)
    return items, notes


def _of_metric(rule: Rule, selected: Sequence[Result], source: str) -> tuple[list[Item], list[str]]:
    """Return the numbers with limits that a rule judges, and notes on results without such a number."""
    names = {id(one): _metrics(one, str(rule.metric)) for one in selected}
    if not any(names.values()):
        known = list(dict.fromkeys(name for one in selected for name in one.measures))
        close = nearest(str(rule.metric).strip("*"), known)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there is {', '.join(known)}"
        if rule.metric in BY_JUDGE and any(one.kind == "magic" for one in selected):
            hint = "it is a judge's verdict, and these runs had none (set MAGIC_JUDGE in the run)"
        raise OptionError(f"{source}: rule {rule.name!r}: metric {rule.metric!r} matches nothing in {selected[0].task} or the others; {hint}")
    checks = [check for check, asked in (("value", rule.of_value), ("difference", rule.of_difference)) if asked]
    items = [Item(one, check, name) for one in selected for check in checks for name in names[id(one)]]
    for item in items:
        limits.check_direction(rule, item.one, item.metric, source)
        _check_null(rule, item, source)
        _check_whole(rule, item, source)
    return items, _skipped(rule, [one for one in selected if not names[id(one)]], f"has no {rule.metric}")


def _metrics(one: Result, pattern: str) -> list[str]:
    """Return the numbers that a pattern means; of several names for one number (score, fip, acc) the first."""
    names: list[str] = []
    for name in matching(one.measures, pattern):
        if not any(one.measures[name] is one.measures[other] for other in names):
            names.append(name)
    return names


def _skipped(rule: Rule, out: Sequence[Result], why: str) -> list[str]:
    names = [f"{one.task} of {one.model}" for one in out]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [f"rule {rule.name!r} leaves out {', '.join(names[:5])}{more}: {why}"] if names else []


# --- what is judged together ------------------------------------------------------------------------


def levels(plans: Sequence[tuple[Rule, Sequence[Item]]], primary: str | None) -> Callable[[Rule, Item], float]:
    """Return the function that gives the level of each interval. With these levels a claim as a whole holds at its rule's level.

    There are three kinds of claim, each with its own Bonferroni correction:

    - "no task got worse": the primary number of every comparison with the baseline. With one comparison its level is the rule's level.
    - "nothing else moved": all other numbers of all comparisons of the file together.
    - limits of numbers themselves: all numbers that one rule judges.

    A number that two rules judge counts once, and so does a number with several names. Rules without correction and checks without
    interval do not count.

    Args:
        plans: the rules, each with what it judges.
        primary: see ``Rules``.
    """
    families: dict[Hashable, set[tuple[int, int]]] = {}
    for rule, items in plans:
        for item in items if rule.interval and rule.corrected else ():
            if item.check in ("value", "difference", "tst"):
                families.setdefault(_family(rule, item, primary), set()).add((id(item.one), id(item.one.measures.get(item.metric))))

    def level(rule: Rule, item: Item) -> float:
        count = len(families.get(_family(rule, item, primary), ()))
        return limits.corrected(rule.level, count) if rule.corrected else rule.level

    return level


def _family(rule: Rule, item: Item, primary: str | None) -> Hashable:
    return _is_primary(item, primary) if item.check == "difference" else rule.name


def _is_primary(item: Item, primary: str | None) -> bool:
    """Return whether a number is the primary number of its result: the named number if the result has it, else the task's own metric."""
    own = item.one.measures
    named = matching(own, primary) if primary else []
    return own[item.metric] is own[named[0] if named else "score"]


def _check_primary(rules: Rules, plans: Sequence[tuple[Rule, Sequence[Item]]]) -> None:
    """Refuse a primary number that no rule compares: the key would have no effect.

    Raises:
        OptionError: no rule compares it.
    """
    compared = list(dict.fromkeys(item.metric for _, items in plans for item in items if item.check == "difference"))
    if rules.primary and not matching(dict.fromkeys(compared), rules.primary):
        what = f"compared are {', '.join(compared)}" if compared else "no rule has max_drop or max_rise"
        raise OptionError(f"{rules.source}: defaults: primary {rules.primary!r} is not compared with the baseline by any rule; {what}")


# --- verdicts -------------------------------------------------------------------------------------


def of_item(rule: Rule, item: Item, before: Baseline | None, level: float, primary: str | None) -> Verdict:
    """Return the verdict of a rule on one thing that it judges, at a level (``levels``)."""
    if item.check == "difference":
        assert before is not None
        return _of_limit(rule, item, difference_of(item.one, item.metric, before, level, rule.absolute), level, before, _is_primary(item, primary))
    if item.check in ("value", "tst"):
        return _of_limit(rule, item, number_of(item.one, item.metric, level, rule.absolute and item.check == "value"), level, None, None)
    return _of_count(rule, item, before)


def _of_limit(rule: Rule, item: Item, number: Judged, level: float, before: Baseline | None, primary: bool | None) -> Verdict:
    """Return the verdict on a number, or a difference, with limits."""
    least, most = _ends(rule, item.check)
    bounds = _bounds(item, before, level)
    if number.unchanged:  # the difference is 0 on these docs; its interval is about docs that nobody asked
        call, reason = limits.call(0.0, 0.0, least=least, most=most, margin=rule.margin), UNCHANGED
        number = number if bounds is None else bounds[0]  # of all docs, also those without a verdict
    elif bounds is not None:
        number, call, reason = _of_bounds(rule, item.check, bounds, least, most)
    else:
        call, reason = verdict(number.judged, least, most, rule.margin, rule.interval)
    call, reason = _marked(item, call, reason)
    if lost := _lost(rule, item, number, before):
        call, reason = "fail", "; ".join(filter(None, [lost, reason]))
    return Verdict(
        rule=rule.name,
        task=item.one.task,
        model=item.one.model,
        metric=_metric(rule, item),
        limit=_words(rule, item.check),
        value=number.value,
        baseline=number.baseline,
        baseline_model="" if before is None else before.partner(item.one).model,
        difference=number.judged if item.check == "difference" else None,
        primary=primary,
        level=level if rule.interval else None,
        detectable=limits.smallest(number.judged, level) if rule.interval else None,
        basis=number.basis if rule.interval else "number",
        call=call,
        warned=call == "inconclusive" and not rule.blocks,
        reason=reason,
        base=str(item.one.result.base),
        measure=_measure(rule, item),
        least=None if least is None else least - rule.margin,
        most=None if most is None else most + rule.margin,
    )


_WORST: tuple[Call, ...] = ("pass", "inconclusive", "fail")


def _bounds(item: Item, before: Baseline | None, level: float) -> tuple[Judged, Judged] | None:
    """Return the bounds of a number, or a difference, by a judge that lacks verdicts; None for others."""
    if item.check == "difference" and before is not None:
        return difference_bounds_of(item.one, item.metric, before, level)
    return bounds_of(item.one, item.metric, level) if item.check == "value" else None


def _of_bounds(rule: Rule, check: str, bounds: tuple[Judged, Judged], least: float | None, most: float | None) -> tuple[Judged, Call, str]:
    """Return the verdict on a number, or a difference, by a judge that lacks verdicts, by its worse end, and that end.

    A lower limit must hold were all unjudged docs wrong, and an upper limit were they all right: else a judge that refuses the wrong answers would
    make a model pass. In the baseline of a difference they count the other way round.
    """
    low, high = bounds
    ends = [(low, "wrong", verdict(low.judged, least, None, rule.margin, rule.interval))] if least is not None else []
    ends += [(high, "right", verdict(high.judged, None, most, rule.margin, rule.interval))] if most is not None else []
    number, word, (call, reason) = max(ends, key=lambda end: _WORST.index(end[2][0]))
    other, opposite = (low, "wrong") if number is high else (high, "right")
    if check == "difference":
        said = (
            f"docs without a verdict count as {word} here and as {opposite} in the baseline ({_change(number)}; the other way round {_change(other)})"
        )
    else:
        said = f"docs without a verdict count as {word} here ({_shown(number)}; were they {opposite}, {_shown(other)})"
    return number, call, "; ".join(filter(None, [said, reason]))


def _shown(number: Judged) -> str:
    return "not defined" if number.value.value is None else f"{number.value.value:.3f}"


def _change(number: Judged) -> str:
    return "not defined" if number.judged.value is None else f"{number.judged.value:+.3f}"


def verdict(judged: Estimate, least: float | None, most: float | None, margin: float, interval: bool = True) -> tuple[Call, str]:
    """Return the verdict on a number with limits, and why.

    Args:
        judged: the number, or the difference, with its interval at the verdict's level.
        least: the lower limit; None: there is none.
        most: the upper limit; None: there is none.
        margin: see ``Rule``.
        interval: whether the interval decides; else the number alone.

    Returns:
        As ``limits.call``; the reason says where the limit is missed for certain, but by less than the margin.
        Without a number: fail. Without an interval: fail where the number alone is beyond limit and margin, else inconclusive.
    """
    if judged.value is None:
        return "fail", f"not defined: {judged.reason}" if judged.reason else "not defined"
    alone = limits.call(judged.value, judged.value, least=least, most=most, margin=margin)
    if not interval:
        return alone, "by the number alone, as the rule says"
    if judged.low is None or judged.high is None:
        why = f"no interval ({judged.reason or 'not computed'})"
        return ("fail", f"{why}, and the number alone is beyond the limit") if alone == "fail" else ("inconclusive", why)
    call = limits.call(judged.low, judged.high, least=least, most=most, margin=margin)
    if call == "pass" and limits.call(judged.low, judged.high, least=least, most=most) == "fail":
        return call, "; ".join(filter(None, ["the limit is missed, but by less than the margin", judged.reason]))
    return call, judged.reason


def _metric(rule: Rule, item: Item) -> str:
    return f"|{item.metric}|" if rule.absolute and item.check != "tst" else item.metric


def _measure(rule: Rule, item: Item) -> str:
    """Return a number's name for people: ``fip`` and ``score`` are the benchmark's own metric, with what was shown if not the full image."""
    if item.metric not in ("fip", "score") or rule.absolute:
        return _metric(rule, item)
    kind = KINDS[item.one.kind]
    return str(item.one.result.metric) + (f" {kind.where}" if kind.view != "full" and not kind.full else "")


def _ends(rule: Rule, check: str) -> tuple[float | None, float | None]:
    """Return the limits of the number, or of number − baseline."""
    if check == "tst":
        return None, rule.max_tst_over_chance
    if check == "value":
        return rule.min, rule.max
    return (None if rule.max_drop is None else -rule.max_drop), rule.max_rise


def _words(rule: Rule, check: str) -> str:
    """Return the limits of a rule, and its margin, as people write them."""
    named = {
        "tst": (("<=", rule.max_tst_over_chance),),
        "value": ((">=", rule.min), ("<=", rule.max)),
        "difference": (("drop <=", rule.max_drop), ("rise <=", rule.max_rise)),
    }
    words = " and ".join(f"{sign} {limits.plain(limit)}" for sign, limit in named[check] if limit is not None)
    return f"{words}, margin {limits.plain(rule.margin)}" if rule.margin else words


def _check_null(rule: Rule, item: Item, source: str) -> None:
    """Check that a rule does not rest on an assumed null.

    Raises:
        OptionError: it does.
    """
    if reading.assumed(item.one.measures[item.metric]):
        raise OptionError(
            f"{source}: rule {rule.name!r}: {item.metric} of {item.one.task} rests on an assumed null, and no rule may; {reading.MEASURE_IT}, "
            f"or judge {item.metric.partition('_adj')[0]}"
        )


def _check_whole(rule: Rule, item: Item, source: str) -> None:
    """Check that limits of a number itself are applied to a whole benchmark.

    Raises:
        OptionError: the run is of a part of it, and the rule does not allow that.
    """
    if item.check != "difference" and item.one.partial and not rule.allow_limit:
        raise OptionError(
            f"{source}: rule {rule.name!r}: {item.one.task} was run with {item.one.partial}, and the first docs of a benchmark are not the "
            "benchmark; run it whole, or say 'allow_limit: true' in the rule"
        )


def _lost(rule: Rule, item: Item, number: Judged, before: Baseline | None) -> str:
    """Say that a number lost more docs than the rule allows; empty where it did not.

    A doc is lost to a failed call, or in a comparison when only one run has it. Without this check a model would get better by failing
    on the docs that it answers wrong.
    """
    compared = [item.one, *([before.partner(item.one)] if before is not None and item.check == "difference" else [])]
    counts = [_docs_of(one, item.metric) for one in compared]
    if any(reading.is_sampled(one.result.analysis) for one in compared):  # a doc that one run did not ask is not lost
        left, lost = max(counts, key=lambda count: count[1] / max(1, sum(count)))
        whole = left + lost
    else:
        left = number.judged.n if number.basis == "paired" else min(docs for docs, _ in counts)
        whole = max(docs + lost for docs, lost in counts)
    if whole <= left or (whole - left) / whole <= rule.max_lost + 1e-12:
        return ""
    return f"{whole - left} of {whole} docs are lost ({(whole - left) / whole:.1%}, more than max_lost {rule.max_lost:.1%})"


def _docs_of(one: Result, name: str) -> tuple[int, int]:
    """Return how many docs a number is made of, and how many it lost because a call failed or a judge gave no verdict.

    Docs without a verdict are not lost: they count as wrong, or as right (``_of_bounds``).
    """
    raw = name.partition("_adj")[0]  # the luck-corrected index asks only some docs on a wrong image
    match = next(iter(matching(one.measures, raw)), None)
    docs = one.measures[match].n if match is not None else one.result.docs
    details = one.result.details
    if one.kind == "magic":
        counts = (details.get("magic") or {}).get("counts") or {}
        without, bounds = int(counts.get("failed") or 0), one.bounds(name)
        return docs if bounds is None else bounds.low.n, without
    if name.startswith("tst"):
        return docs, int((details.get("tst_details") or {}).get("unscored") or 0)
    analysis = one.result.analysis
    failed = analysis.failed if analysis else None
    without_first = failed.first if failed else 0
    lost = without_first if raw in ("score", "fip", one.result.metric) else failed.docs if failed else 0
    if analysis and analysis.asked and analysis.asked.estimated:  # the number is of all docs, but a doc that was not asked cannot be lost
        docs = analysis.asked.docs - (lost - without_first)  # those whose first call failed are not among them
    return docs, lost


def _marked(item: Item, call: Call, reason: str) -> tuple[Call, str]:
    """Return the verdict on an index that the luck-corrected index contradicts, and why; other verdicts as they are.

    Where the null is measured the index is known to be mostly luck, so a pass of it becomes inconclusive.
    """
    grid = item.one.grid(item.metric) if reading.contradicted(item.one.measures.get(item.metric)) else None
    if grid is None:
        return call, reason
    null = reading.null_of(grid)
    if call == "pass" and item.check == "value" and null == reading.MEASURED:
        call = "inconclusive"
    return call, "; ".join(filter(None, [reading.explained(grid.mark, null), reason]))


# --- verdicts without an interval -------------------------------------------------------------------


def _of_count(rule: Rule, item: Item, before: Baseline | None) -> Verdict:
    """Return the verdict of a check that is kept or not, without an interval.

    Such checks are: a valid gate, a model that looks, numbers that agree with the log, enough docs, few excluded docs.
    """
    one = item.one
    value: float | None
    least = most = None
    if item.check == "gate":
        limit, (value, reason) = "valid", _gate(one)
        kept = value == 1
    elif item.check == "looks":
        limit, (value, reason) = "shown", _looks(one)
        kept = value == 1
    elif item.check == "checked":
        limit, (value, reason) = "every number", _checked(one, before)
        kept = value == 1
    elif item.check == "docs":
        assert rule.min_docs is not None
        analysis = one.result.analysis
        scored = None if analysis is None else analysis.asked.docs if analysis.asked and analysis.asked.estimated else analysis.n_docs
        known = one.result.docs if one.kind == "magic" else scored
        value, reason = known, "the run does not say" if known is None else ""
        least, limit, kept = rule.min_docs, f">= {rule.min_docs}", value is not None and value >= rule.min_docs
    else:
        assert rule.max_excluded is not None
        value, reason = _excluded(one)
        most, limit, kept = rule.max_excluded, f"<= {limits.plain(rule.max_excluded)}", value is not None and value <= rule.max_excluded + 1e-12
    call: Call = "pass" if kept else "inconclusive" if value is None and item.check == "looks" else "fail"
    warned, docs = call == "inconclusive" and not rule.blocks, one.result.docs
    number = Estimate(value, None, None, None, docs, docs, 0, reason=reason)
    return Verdict(
        rule=rule.name,
        task=one.task,
        model=one.model,
        metric=item.metric,
        limit=limit,
        value=number,
        call=call,
        warned=warned,
        reason=reason,
        base=str(one.result.base),
        kind=one.kind,
        measure=item.metric,
        least=least,
        most=most,
    )


def _gate(one: Result) -> tuple[int | None, str]:
    """Return 1 where the gate is valid, 0 where it is not, None where that is unknown; and why."""
    analysis = one.result.analysis
    if analysis is None or analysis.gate.valid is None:
        return None, (analysis.gate.reason if analysis else "") or "unknown"
    said = analysis.gate.reason
    return (1, said or reading.why_unchecked(analysis, KINDS[one.kind].words)) if analysis.gate.valid else (0, said or "near chance")


def _looks(one: Result) -> tuple[int | None, str]:
    """Return 1 where the answers depend on the image, 0 where that is not shown, None where nobody asked; and why."""
    analysis = one.result.analysis
    looks = reading.looks(analysis.gate) if analysis else None
    if looks:
        return 1, ""
    told = [shown.reason for shown in analysis.gate.looks if shown.value is looks] if analysis else []
    unknown = KINDS[one.kind].words.say(f"{reading.NOT_CHECKED}; {reading.MEASURE_IT}")
    return None if looks is None else 0, next(filter(None, told), unknown)


def _checked(one: Result, before: Baseline | None) -> tuple[int, str]:
    """Return whether the sample logs give every number of a result and of the baseline's, and what they do not give, in words."""
    missing = list(one.unchecked)
    with contextlib.suppress(RecordError):  # without a partner nothing is compared with the baseline
        missing += [] if before is None else [f"the baseline: {what}" for what in before.partner(one).unchecked]
    aside = f"but for what no rule goes by and only the run could compute: {', '.join(one.audit.aside)}" if one.audit.aside else ""
    return int(not missing), "; ".join(missing) or aside


def _excluded(one: Result) -> tuple[float | None, str]:
    """Return the largest share of docs that any grid leaves out, 0..1, and which grid that is."""
    analysis = one.result.analysis
    counts = {n: grid.excluded for n in one.result.grids if (grid := one.result.grid(n))}
    if analysis is None or not analysis.n_docs or not counts or len(counts) < len(one.result.grids):
        return None, "the run does not say how many docs it left out"
    worst = max(counts, key=counts.__getitem__)
    return counts[worst] / analysis.n_docs, f"{counts[worst]} of {analysis.n_docs} docs at {KINDS[one.kind].words.grid(worst)}"
