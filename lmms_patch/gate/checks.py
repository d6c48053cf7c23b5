"""What a rule can ask of a result: each check says which results it is about, and gives the verdict. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from lmms_patch.errors import OptionError
from lmms_patch.gate import limits
from lmms_patch.gate.formats import Ruling
from lmms_patch.gate.intervals import Judged, bounds_of, difference_bounds_of, difference_of, number_of
from lmms_patch.gate.limits import Call
from lmms_patch.gate.rules import Rule
from lmms_patch.gate.sides import Baseline, Subject
from lmms_patch.runs import reading
from lmms_patch.runs.measures import matching
from lmms_patch.stats.resample import Estimate

UNCHANGED = "no answer changed: what the number is made of is the same on every doc"
Ends = tuple[float | None, float | None]
"""A lower and an upper limit; None: there is no such limit."""


class Verdict(Ruling[Estimate], frozen=True, kw_only=True):
    """The verdict of a rule on a number of a result; ``kind``, the task's name in ``ask.kinds.KINDS``, is not written."""

    kind: str = "rci"


@dataclass(frozen=True)
class Check(ABC):
    """A rule's check on a result.

    Attributes:
        rule: the rule.
        one: the result.
        metric: what is judged, as ``Verdict.metric`` has it, without the marks of a distance from 0.
        before: the baseline; None without.
    """

    rule: Rule
    one: Subject
    metric: str
    before: Baseline | None

    @property
    def ends(self) -> Ends:
        """The limits of what is judged, without the margin."""
        return None, None

    @abstractmethod
    def verdict(self, level: float, primary: bool | None) -> Verdict:
        """Return the verdict.

        Args:
            level: of the interval, where an interval decides (``judge.verdicts``).
            primary: as ``Verdict.primary``.
        """

    @property
    def limit(self) -> str:
        """The limits as people write them, without the margin."""
        least, most = self.ends
        return " and ".join(
            f"{sign} {limits.plain(end)}" for sign, end in ((">=", least), ("<=", most)) if end is not None
        )


# --- limits of numbers ------------------------------------------------------------------------------


class Limited(Check):
    """A limit of a number, or of its difference to the baseline's, on which the number's interval decides."""

    of_difference: ClassVar[bool] = False

    @abstractmethod
    def number(self, level: float) -> Judged:
        """Return what is judged, with its interval at a level."""

    def bounds(self, level: float) -> tuple[Judged, Judged] | None:
        """Return the bounds of a judge's number with missing verdicts; else None."""
        return None

    @property
    def named(self) -> str:
        """What is judged: "|rci3|" is a distance from 0."""
        return f"|{self.metric}|" if self.rule.absolute else self.metric

    @property
    def measure(self) -> str:
        """The number's name for people: for ``fip`` and ``score`` the benchmark's metric, and what was shown."""
        if self.metric not in ("fip", "score") or self.rule.absolute:
            return self.named
        result = self.one.result
        return result.metric + (f" {result.kind.where}" if result.kind.view != "full" and not result.kind.full else "")

    @property
    def compared(self) -> list[Subject]:
        """The results from which the number is computed."""
        return [self.one]

    def check_whole(self, source: str) -> None:
        """Refuse a limit of a number itself on a run of only a part of the benchmark.

        Raises:
            OptionError: the run is of a part of it, and the rule does not allow that.
        """
        if self.one.partial and not self.rule.allow_limit:
            raise OptionError(
                f"{source}: rule {self.rule.name!r}: {self.one.task} was run with {self.one.partial}, and the first docs of a benchmark are not the "
                "benchmark; run it whole, or say 'allow_limit: true' in the rule"
            )

    def verdict(self, level: float, primary: bool | None) -> Verdict:
        rule, (least, most) = self.rule, self.ends
        number, bounds = self.number(level), self.bounds(level)
        # Nothing changed on these docs, so the interval could only speak of docs that nobody asked.
        if number.unchanged:
            call, reason = limits.call(0.0, 0.0, least=least, most=most, margin=rule.margin), UNCHANGED
            # A bound is over all docs, while the number lacks the docs without a verdict.
            number = number if bounds is None else bounds[0]
        elif bounds is not None:
            number, call, reason = self._worse(bounds)
        else:
            call, reason = verdict(number.judged, least, most, rule.margin, rule.interval)
        call, reason = self._marked(call, reason)
        if lost := self._lost(number):
            call, reason = "fail", "; ".join(filter(None, [lost, reason]))
        compares = self.before is not None and primary is not None
        return Verdict(
            rule=rule.name,
            task=self.one.task,
            model=self.one.model,
            metric=self.named,
            limit=f"{self.limit}, margin {limits.plain(rule.margin)}" if rule.margin else self.limit,
            value=number.value,
            baseline=number.baseline,
            baseline_model=self.compared[-1].model if compares else None,
            difference=number.judged if compares else None,
            primary=primary,
            level=level if rule.interval else None,
            detectable=limits.smallest(number.judged, level) if rule.interval else None,
            basis=number.basis if rule.interval else "number",
            call=call,
            warned=call == "inconclusive" and not rule.blocks,
            reason=reason,
            base=self.one.result.base,
            measure=self.measure,
            least=None if least is None else least - rule.margin,
            most=None if most is None else most + rule.margin,
        )

    def told(self, number: Judged, word: str, other: Judged, opposite: str) -> str:
        """Say how docs without a verdict count, and the number if they counted the opposite way."""
        value, instead = (_shown(one.value, ".3f") for one in (number, other))
        return f"docs without a verdict count as {word} here ({value}; were they {opposite}, {instead})"

    def _worse(self, bounds: tuple[Judged, Judged]) -> tuple[Judged, Call, str]:
        """Return the less favourable bound of a judge's number, and the verdict on this bound.

        A lower limit must hold were all unjudged docs wrong, and an upper limit were they all right: else a judge that
        refuses the wrong answers would make a model pass. In the baseline of a difference they count the other way
        round.
        """
        (low, high), (least, most), rule = bounds, self.ends, self.rule
        ends = (
            [(low, "wrong", verdict(low.judged, least, None, rule.margin, rule.interval))] if least is not None else []
        )
        ends += (
            [(high, "right", verdict(high.judged, None, most, rule.margin, rule.interval))] if most is not None else []
        )
        number, word, (call, reason) = max(ends, key=lambda end: limits.CALLS.index(end[2][0]))
        other, opposite = (low, "wrong") if number is high else (high, "right")
        return number, call, "; ".join(filter(None, [self.told(number, word, other, opposite), reason]))

    def _marked(self, call: Call, reason: str) -> tuple[Call, str]:
        """Return the verdict, weakened where the luck-corrected index contradicts the index, and the reason.

        The index is then known to be mostly luck, so a pass of it becomes inconclusive.
        """
        grid = self.one.grid(self.metric) if reading.contradicted(self.one.measures.get(self.metric)) else None
        if grid is None:
            return call, reason
        if call == "pass" and not self.of_difference:
            call = "inconclusive"
        return call, "; ".join(filter(None, [reading.explained(grid.mark), reason]))

    def _lost(self, number: Judged) -> str:
        """Say how many docs a number lost, where these are more than the rule allows; else empty.

        A doc is lost to a failed call, or in a comparison when only one run has it. Without this check a model would
        get better by failing on the docs that it answers wrong.
        """
        counts = [_docs_of(one, self.metric) for one in self.compared]
        # With sampling, the two runs ask different docs by design: a doc in one run only is not lost.
        if any(reading.is_sampled(one.result.analysis) for one in self.compared):
            left, lost = max(counts, key=lambda count: count[1] / max(1, sum(count)))
            whole = left + lost
        else:
            left = number.judged.n if number.basis == "paired" else min(docs for docs, _ in counts)
            whole = max(docs + lost for docs, lost in counts)
        most = self.rule.max_lost
        # The slack keeps a share exactly at the limit from failing by rounding.
        if whole <= left or (whole - left) / whole <= most + 1e-12:
            return ""
        return f"{whole - left} of {whole} docs are lost ({(whole - left) / whole:.1%}, more than max_lost {most:.1%})"


class Value(Limited):
    """A limit of a number itself."""

    @property
    def ends(self) -> Ends:
        return self.rule.min, self.rule.max

    def number(self, level: float) -> Judged:
        return number_of(self.one, self.metric, level, self.rule.absolute)

    def bounds(self, level: float) -> tuple[Judged, Judged] | None:
        return bounds_of(self.one, self.metric, level)


class Difference(Limited):
    """A limit of a number less the baseline's."""

    of_difference = True

    @property
    def ends(self) -> Ends:
        return (None if self.rule.max_drop is None else -self.rule.max_drop), self.rule.max_rise

    @property
    def limit(self) -> str:
        known = (("drop <=", self.rule.max_drop), ("rise <=", self.rule.max_rise))
        return " and ".join(f"{sign} {limits.plain(limit)}" for sign, limit in known if limit is not None)

    @property
    def partner(self) -> Subject:
        """The baseline's result."""
        # ``judge`` refuses rules that compare when no baseline is given.
        assert self.before is not None
        return self.before.partner(self.one)

    @property
    def compared(self) -> list[Subject]:
        return [self.one, self.partner]

    def number(self, level: float) -> Judged:
        assert self.before is not None
        return difference_of(self.one, self.metric, self.before, level, self.rule.absolute)

    def bounds(self, level: float) -> tuple[Judged, Judged] | None:
        assert self.before is not None
        return difference_bounds_of(self.one, self.metric, self.before, level)

    def check_whole(self, source: str) -> None:
        """Do nothing: a difference is always over docs in both runs."""

    def told(self, number: Judged, word: str, other: Judged, opposite: str) -> str:
        value, instead = (_shown(one.judged, "+.3f") for one in (number, other))
        return f"docs without a verdict count as {word} here and as {opposite} in the baseline ({value}; the other way round {instead})"


class OfRequirement(Check):
    """A check demanded by a key of a rule, whatever the rule's metric.

    Attributes:
        METRIC: what is judged.
        ASKED: the property of a rule that asks for the check.
        OF: the flag of the kinds whose results have what is judged; empty where all have.
        LEAVES_OUT: why results of other kinds are left out.
    """

    METRIC: ClassVar[str]
    ASKED: ClassVar[str]
    OF: ClassVar[str] = "index"
    LEAVES_OUT: ClassVar[str] = ""

    @classmethod
    def asked(cls, rule: Rule) -> bool:
        """Return whether a rule asks for the check."""
        found = getattr(rule, cls.ASKED)
        return found is not None and found is not False

    @classmethod
    def fits(cls, one: Subject) -> bool:
        """Return whether the check is about a result."""
        return not cls.OF or bool(getattr(one.result.kind, cls.OF))


class TextOnly(OfRequirement, Limited):
    """A limit of what text alone answers beyond chance."""

    METRIC, ASKED = "tst_over_chance", "max_tst_over_chance"
    OF, LEAVES_OUT = "folds", "is no text-only cross-validation (_tst)"

    @property
    def ends(self) -> Ends:
        return None, self.rule.max_tst_over_chance

    @property
    def named(self) -> str:
        return self.metric

    def number(self, level: float) -> Judged:
        return number_of(self.one, self.metric, level, False)


# --- what is kept or not ----------------------------------------------------------------------------


class Kept(OfRequirement):
    """A check on a plain value, without an interval."""

    UNKNOWN: ClassVar[Call] = "fail"
    """The verdict where what is judged is unknown."""

    @abstractmethod
    def found(self) -> tuple[float | None, str]:
        """Return the judged value (None: unknown) and the reason; without limits, 1 passes."""

    def verdict(self, level: float, primary: bool | None) -> Verdict:
        (value, reason), (least, most), one = self.found(), self.ends, self.one
        if value is None:
            call = self.UNKNOWN
        elif self.ends == (None, None):
            call = "pass" if value == 1 else "fail"
        else:
            call = limits.call(value, value, least=least, most=most)
        docs = one.result.docs
        return Verdict(
            rule=self.rule.name,
            task=one.task,
            model=one.model,
            metric=self.metric,
            limit=self.limit,
            value=Estimate(value, None, None, None, docs, docs, 0, reason=reason),
            call=call,
            warned=call == "inconclusive" and not self.rule.blocks,
            reason=reason,
            base=one.result.base,
            kind=one.kind,
            measure=self.metric,
            least=least,
            most=most,
        )


class ValidGate(Kept):
    """Demand a score on full images above chance, and above wrong images where these were asked."""

    METRIC, ASKED, limit = "gate", "valid_gate", "valid"
    LEAVES_OUT = "has no chance gate, as it has no index"

    def found(self) -> tuple[int | None, str]:
        analysis = self.one.result.analysis
        if analysis is None or analysis.gate.valid is None:
            return None, (analysis.gate.reason if analysis else "") or "unknown"
        said = analysis.gate.reason
        return (
            (1, said or reading.why_unchecked(analysis, self.one.result.kind.words))
            if analysis.gate.valid
            else (0, said or "near chance")
        )


class Looks(Kept):
    """Demand evidence of answers depending on the image."""

    METRIC, ASKED, limit = "looks", "looks", "shown"
    LEAVES_OUT = "asks nothing on another doc's image, as it has no index"
    UNKNOWN = "inconclusive"

    def found(self) -> tuple[int | None, str]:
        analysis = self.one.result.analysis
        looks = reading.looks(analysis.gate) if analysis else None
        if looks:
            return 1, ""
        told = [shown.reason for shown in analysis.gate.looks if shown.value is looks] if analysis else []
        unknown = self.one.result.kind.words.say(f"{reading.NOT_CHECKED}; {reading.MEASURE_IT}")
        return None if looks is None else 0, next(filter(None, told), unknown)


class Excluded(Kept):
    """Limit the share of docs left out by any grid."""

    METRIC, ASKED, LEAVES_OUT = "excluded", "max_excluded", "has no grid"

    @property
    def ends(self) -> Ends:
        return None, self.rule.max_excluded

    def found(self) -> tuple[float | None, str]:
        """Return the largest share of docs left out by a grid, 0..1, and name the grid."""
        result = self.one.result
        counts = {n: grid.excluded for n in result.grids if (grid := result.grid(n))}
        docs = result.analysis.n_docs if result.analysis else 0
        if not docs or not counts or len(counts) < len(result.grids):
            return None, "the run does not say how many docs it left out"
        worst = max(counts, key=counts.__getitem__)
        return counts[worst] / docs, f"{counts[worst]} of {docs} docs at {result.kind.words.grid(worst)}"


class Docs(Kept):
    """Demand a least number of docs with the primary metric."""

    METRIC, ASKED, OF = "n_docs", "min_docs", ""

    @property
    def ends(self) -> Ends:
        return self.rule.min_docs, None

    def found(self) -> tuple[int | None, str]:
        result = self.one.result
        asked = result.analysis.asked if result.analysis else None
        if result.kind.name == "magic":
            return result.docs, ""
        if result.analysis is None:
            return None, "the run does not say"
        return asked.docs if asked and asked.estimated else result.analysis.n_docs, ""


REQUIREMENTS: tuple[type[OfRequirement], ...] = (ValidGate, Looks, TextOnly, Excluded, Docs)


# --- shared -----------------------------------------------------------------------------------------


def verdict(
    judged: Estimate, least: float | None, most: float | None, margin: float, interval: bool = True
) -> tuple[Call, str]:
    """Return the verdict on a number with limits, and why.

    Args:
        judged: the number, or the difference, with its interval at the verdict's level.
        least: the lower limit; None: there is none.
        most: the upper limit; None: there is none.
        margin: see ``Rule``.
        interval: whether the interval decides; else the number alone.

    Returns:
        As ``limits.call``; the reason says where the limit is missed for certain, but by less than the margin. Without
        a number: fail. Without an interval: fail where the number alone is beyond limit and margin, else inconclusive.
    """
    if judged.value is None:
        # Fail, not inconclusive: a run must not pass a gate by losing its number.
        return "fail", f"not defined: {judged.reason}" if judged.reason else "not defined"
    alone = limits.call(judged.value, judged.value, least=least, most=most, margin=margin)
    if not interval:
        return alone, "by the number alone, as the rule says"
    if judged.low is None or judged.high is None:
        why = f"no interval ({judged.reason or 'not computed'})"
        return (
            ("fail", f"{why}, and the number alone is beyond the limit") if alone == "fail" else ("inconclusive", why)
        )
    call = limits.call(judged.low, judged.high, least=least, most=most, margin=margin)
    if call == "pass" and limits.call(judged.low, judged.high, least=least, most=most) == "fail":
        return call, "; ".join(filter(None, ["the limit is missed, but by less than the margin", judged.reason]))
    return call, judged.reason


def _shown(number: Estimate, form: str) -> str:
    return "not defined" if number.value is None else format(number.value, form)


def _docs_of(one: Subject, name: str) -> tuple[int, int]:
    """Return the number of docs behind a number, and the number of docs lost to failed calls.

    Docs without a verdict are not lost: they count as wrong, or as right (``Limited._worse``).
    """
    # The luck-corrected index rests on the docs with wrong images alone, which would look like a loss.
    raw = name.partition("_adj")[0]
    match = next(iter(matching(one.measures, raw)), None)
    docs = one.measures[match].n if match is not None else one.result.docs
    if one.kind == "magic":
        bounds, magic = one.bounds(name), one.result.magic
        return docs if bounds is None else bounds.low.n, magic.failed if magic else 0
    if name.startswith("tst"):
        return docs, one.result.tst.unscored if one.result.tst else 0
    analysis = one.result.analysis
    failed = analysis.failed if analysis else None
    without_first = failed.first if failed else 0
    lost = without_first if raw in ("score", "fip", one.result.metric) else failed.docs if failed else 0
    # An estimate stands for all docs, but a doc that was never asked cannot be lost.
    if analysis and analysis.asked and analysis.asked.estimated:
        # ``asked.docs`` leaves out docs whose first call failed.
        docs = analysis.asked.docs - (lost - without_first)
    return docs, lost
