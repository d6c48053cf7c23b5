"""The verdicts of a gate: every rule on every result that it is about. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmms_patch.compare.pair import check_log
from lmms_patch.errors import OptionError, RecordError, nearest
from lmms_patch.gate import limits, sides
from lmms_patch.gate.checks import REQUIREMENTS, Check, Difference, Docs, Limited, TextOnly, Value, Verdict
from lmms_patch.gate.rules import Rule, Rules
from lmms_patch.gate.sides import Baseline, Subject
from lmms_patch.present.findings import case, findings
from lmms_patch.runs import failures, reading
from lmms_patch.runs.measures import matching
from lmms_patch.runs.unjudged import BY_JUDGE

PASSED, FAILED, BAD_INPUT, INCONCLUSIVE = 0, 1, 2, 3
WORDS = {PASSED: "passed", FAILED: "failed", BAD_INPUT: "bad input", INCONCLUSIVE: "inconclusive"}
"""The words for the exit statuses."""


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
        counts = {
            call: sum(one.call == call and not one.warned for one in self.verdicts)
            for call in ("fail", "inconclusive", "pass")
        }
        parts = [f"{count} {call}" for call, count in counts.items() if count] + (
            [f"{warned} inconclusive (only warned of)"] if warned else []
        )
        return f"of {len(self.verdicts)} verdict{'s' * (len(self.verdicts) > 1)} {', '.join(parts)} (exit status {self.status})"


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
    checks: list[Check] = []
    for rule in rules.rules:
        selected = sides.select(rule, results, rules.source)
        own, skipped = _checks(rule, selected, before, rules.source)
        notes += skipped
        checks += own
        # Before the verdicts: a lost task or grid would otherwise pass unseen.
        if before is not None and rule.of_difference:
            before.check_complete(rule, [check.one for check in own if isinstance(check, Difference)], rules.source)
        if before is not None:
            before.check_grids(
                rule,
                list({id(one.one): one.one for one in own if not isinstance(one, Docs)}.values()),
                rules.source,
            )
    notes += _check_logs(results)
    notes += [
        f"{one.task} of {one.model}: run with {one.partial}, so not the whole benchmark"
        for one in results
        if one.partial
    ]
    held = {id(check.one): check.one for check in checks}.values()
    notes += [f"{one.task} of {one.model}: {said}" for one in held for said in failures.told_of(one.result.analysis)]
    _check_primary(rules, checks)
    made = tuple(verdicts(checks, rules.primary))
    # After the verdicts: their comparisons add notes to the baseline.
    if before is not None:
        notes += [f"{before.older} older results in {before.path} left aside"] if before.older else []
        notes += list(before.notes) if needed else ["no rule compares with the baseline"]
    given = str(out), "" if baseline is None else str(baseline)
    return Judgement(made, tuple(dict.fromkeys(notes)), rules.source, *given, findings=_findings(results))


def _findings(results: Sequence[Subject]) -> tuple[str, ...]:
    """Return the sentences of ``present.findings`` about some results.

    They are there to be read, and no verdict rests on them. So where a file lacks what a sentence needs there is none,
    and the gate goes on.
    """
    try:
        return tuple(
            one.text for one in findings([case(one.result, one.model, str(place)) for place, one in enumerate(results)])
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def _check_logs(results: Sequence[Subject]) -> list[str]:
    """Hold the score of each result to its sample log, and return what the run kept of earlier answers.

    Raises:
        RecordError: the run wrote a log that is not there, is cut, or is of another run.
    """
    for one in results:
        if one.result.log is None and one.result.docs and one.run.logged:
            raise RecordError(
                f"{one.run.path}: the run wrote a sample log of {one.task}, which is not there; put it back beside the results file"
            )
        if one.result.log is not None and one.result.docs:
            with sides.guarded(one.run.path):
                check_log(one.result) if one.result.kind.suffix else one.result.kind.method.check(one.result)
    return [f"{one.task} of {one.model}: {said}" for one in results if (said := reading.kept(one.result.details))]


# --- what is judged -------------------------------------------------------------------------------


def _checks(
    rule: Rule, selected: Sequence[Subject], before: Baseline | None, source: str
) -> tuple[list[Check], list[str]]:
    """Return the checks of a rule, and notes on the results left out.

    Raises:
        OptionError: no result has what a check asks for.
    """
    checks, notes = _of_metric(rule, selected, before, source) if rule.metric is not None else ([], [])
    for kind in REQUIREMENTS:
        judged = [one for one in selected if kind.fits(one)]
        if not kind.asked(rule):
            continue
        if not judged:
            make = f"; {sides.made_by(selected, ['tst'])}" if kind is TextOnly else ""
            raise OptionError(
                f"{source}: rule {rule.name!r}: none of its tasks can be judged: {selected[0].task} {kind.LEAVES_OUT}{make}"
            )
        new = [kind(rule, one, kind.METRIC, before) for one in judged]
        for check in new:
            if isinstance(check, TextOnly):
                limits.check_text_only(rule, check.one, source)
                check.check_whole(source)
        checks += new
        notes += _skipped(rule, [one for one in selected if one not in judged], kind.LEAVES_OUT)
    return checks, notes


def _of_metric(
    rule: Rule, selected: Sequence[Subject], before: Baseline | None, source: str
) -> tuple[list[Check], list[str]]:
    """Return the checks on the numbers under a rule's limits, and notes on results without such a number."""
    names = {id(one): _metrics(one, str(rule.metric)) for one in selected}
    if not any(names.values()):
        known = list(dict.fromkeys(name for one in selected for name in one.measures))
        close = nearest(str(rule.metric).strip("*"), known)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there is {', '.join(known)}"
        if rule.metric in BY_JUDGE and any(one.kind == "magic" for one in selected):
            hint = "it is a judge's verdict, and these runs had none (set MAGIC_JUDGE in the run)"
        raise OptionError(
            f"{source}: rule {rule.name!r}: metric {rule.metric!r} matches nothing in {selected[0].task} or the others; {hint}"
        )
    kinds = [kind for kind, asked in ((Value, rule.of_value), (Difference, rule.of_difference)) if asked]
    checks: list[Check] = []
    for one in selected:
        for check in [kind(rule, one, name, before) for kind in kinds for name in names[id(one)]]:
            limits.check_direction(rule, one, check.metric, source)
            check.check_whole(source)
            checks.append(check)
    return checks, _skipped(rule, [one for one in selected if not names[id(one)]], f"has no {rule.metric}")


def _metrics(one: Subject, pattern: str) -> list[str]:
    """Return the names matching a pattern; of several names for a number (score, fip, acc) the first."""
    names: list[str] = []
    for name in matching(one.measures, pattern):
        if not any(one.measures[name] is one.measures[other] for other in names):
            names.append(name)
    return names


def _skipped(rule: Rule, out: Sequence[Subject], why: str) -> list[str]:
    names = [f"{one.task} of {one.model}" for one in out]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [f"rule {rule.name!r} leaves out {', '.join(names[:5])}{more}: {why}"] if names else []


# --- what is judged together ------------------------------------------------------------------------


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
        if isinstance(check, Limited) and check.rule.interval and check.rule.corrected:
            # By the estimate's id, so that a number with several names counts once.
            families.setdefault(_family(check, primary), set()).add(
                (id(check.one), id(check.one.measures.get(check.metric)))
            )
    made = []
    for check in checks:
        rule, count = check.rule, len(families.get(_family(check, primary), ()))
        level = limits.corrected(rule.level, count) if rule.corrected else rule.level
        made.append(check.verdict(level, _is_primary(check, primary) if isinstance(check, Difference) else None))
    return made


def _family(check: Check, primary: str | None) -> Hashable:
    return _is_primary(check, primary) if isinstance(check, Difference) else check.rule.name


def _is_primary(check: Check, primary: str | None) -> bool:
    """Return whether a check is on the primary number: the named number, or else the task's metric."""
    own = check.one.measures
    named = matching(own, primary) if primary else []
    return own[check.metric] is own[named[0] if named else "score"]


def _check_primary(rules: Rules, checks: Sequence[Check]) -> None:
    """Refuse a primary number without any comparing rule, since the key would have no effect.

    Raises:
        OptionError: no rule compares it.
    """
    compared = list(dict.fromkeys(check.metric for check in checks if isinstance(check, Difference)))
    if rules.primary and not matching(dict.fromkeys(compared), rules.primary):
        what = f"compared are {', '.join(compared)}" if compared else "no rule has max_drop or max_rise"
        raise OptionError(
            f"{rules.source}: defaults: primary {rules.primary!r} is not compared with the baseline by any rule; {what}"
        )
