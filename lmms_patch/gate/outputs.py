"""What a gate leaves: lines for people, JSON and JUnit XML for machines, a line of a job summary and an annotation for GitHub.

Everywhere the first line is the verdict with the fact that matters most, then come the counts, what did not pass, and
what passed. Names come from files that anybody may have written: ``lmms_patch.text`` makes them harmless for each form.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from lmms_patch import __version__, files
from lmms_patch.ask.kinds import KINDS
from lmms_patch.errors import RecordError
from lmms_patch.gate import limits
from lmms_patch.gate.checks import Verdict
from lmms_patch.gate.formats import Ruling
from lmms_patch.gate.judge import BAD_INPUT, FAILED, INCONCLUSIVE, PASSED, WORDS, Judgement
from lmms_patch.present import sheets
from lmms_patch.present.sheets import number as number_text
from lmms_patch.present.terminal.folding import fold
from lmms_patch.runs import reading
from lmms_patch.text import line, markdown, printed

SCHEMA = 1
CALLS = {PASSED: "PASS", FAILED: "FAIL", BAD_INPUT: "BAD INPUT", INCONCLUSIVE: "INCONCLUSIVE"}
"""The first word of the first line, by exit status."""
LEAST = 40
"""Cells that a line may always take: in a narrower terminal every word would stand alone."""
UNDEFINED = "not defined"
DIGITS = 12
"""The most decimals of a number: limits are held to 1e-12."""
_ORDER = ("fail", "inconclusive", "warned", "pass")
_HELD = {
    "gate": ("the index can be read", "the index cannot be read"),
    "looks": ("the answers depend on the image", "it is not shown that the answers depend on the image"),
    "checked": ("every number agrees with the log", "not every number could be checked"),
}
"""Of requirements: what is said where they hold, and where not."""


def word(one: Verdict) -> str:
    """Return the verdict's word in lists: ``warned`` for a non-blocking inconclusive call, else the call."""
    return "warned" if one.warned else one.call


# --- one verdict ----------------------------------------------------------------------------------


def fact(one: Verdict, judged: Judgement) -> str:
    """Return a verdict's finding in a line.

    For example ``gqa: accuracy 0.690 → 0.607 (-0.083, 95 % -0.151 to -0.016; allowed -0.02)``.
    """
    models = {other.model for other in judged.verdicts}
    tasks = {other.task for other in judged.verdicts if other.base == one.base}
    name = one.base if one.base and len(tasks) == 1 else one.task
    return line(f"{name}{f' of {one.model}' if len(models) > 1 else ''}: {_found(one)}")


def _found(one: Verdict) -> str:
    """Return a verdict's number with interval, baseline and limit, or the state demanded by a rule."""
    number = one.value if one.difference is None else one.difference
    if one.metric in _HELD:
        return ": ".join(filter(None, [KINDS[one.kind].words.say(_HELD[one.metric][number.value != 1]), one.reason]))
    allowed = _allowed(one)
    if number.value is None:
        reason = one.reason or UNDEFINED
        name = {"n_docs": "number of docs", "excluded": "docs left out"}.get(one.metric, one.measure)
        return f"{name}{'' if reason.startswith(UNDEFINED) else ':'} {reason} ({allowed})"
    if one.metric in ("n_docs", "excluded"):
        counted = (
            f"{number.value:,.0f} docs"
            if one.metric == "n_docs"
            else f"{_percent(one, number.value)} of the docs left out"
        )
        return ": ".join(filter(None, [f"{counted} ({allowed})", one.reason]))
    sure = ""
    if number.low is not None and number.high is not None and one.level is not None and reading.shows_interval(number):
        sure = f"{100 * one.level:.4g} % {_say(one, number.low)} to {_say(one, number.high)}"
    change = "" if one.difference is None else _say(one, number.value)
    before = "" if one.difference is None else f"{_say(one, one.baseline, False)} → "
    inside = "; ".join(filter(None, [", ".join(filter(None, [change, sure])), allowed]))
    value = reading.IN_PLACE if reading.misleads(one.value) else _say(one, one.value.value, False)
    noted = ", ".join([value, *reading.words(one.value)])
    return ": ".join(filter(None, [f"{one.measure} {before}{noted} ({inside})", one.reason]))


def _allowed(one: Verdict) -> str:
    """Return the ends of what is allowed: of a difference, as ``allowed -0.02``; of a number, as ``at least 0.65``."""
    ends = [end for end in (one.least, one.most) if end is not None]
    if one.difference is not None and ends == [0]:
        return "no drop allowed" if one.least is not None else "no rise allowed"
    said = [("+" if one.difference is not None and end > 0 else "") + limits.plain(end or 0.0) for end in ends]
    if one.metric == "n_docs":
        said = [f"{end:,.0f}" for end in ends]
    if one.metric == "excluded":
        said = [f"{limits.plain(100 * end)} %" for end in ends]
    start = (
        "allowed" if one.difference is not None or len(ends) > 1 else "at least" if one.least is not None else "at most"
    )
    return f"{start} {' to '.join(said)}"


def _say(one: Verdict, value: float | None, signed: bool | None = None) -> str:
    """Return a number with three decimals, or more where the limit has more or where three would hide a miss."""
    judged = one.value if one.difference is None else one.difference
    numbers = [number for number in (judged.value, judged.low, judged.high) if number is not None]
    written = [len(limits.plain(end).partition(".")[2]) for end in (one.least, one.most) if end is not None]
    signed = one.difference is not None if signed is None else signed
    return number_text(value, signed, _decimals(one, numbers, max([3, *written])))


def _percent(one: Verdict, share: float) -> str:
    """Return a share of docs in percent with four digits, or more where four would hide a miss of the limit."""
    share, most = 100 * share, None if one.most is None or one.call != "fail" else 100 * one.most
    alike = (some for some in range(4, DIGITS) if most is None or limits.plain(share, some) != limits.plain(most, some))
    return f"{limits.plain(share, next(alike, DIGITS))} %"


def _decimals(one: Verdict, numbers: Sequence[float], fewest: int) -> int:
    """Return how many decimals show on which side of its limits each number lies.

    With three decimals 0.69996 reads as 0.700, which keeps "at least 0.7". So decimals are added until no number beyond
    a limit looks kept.
    """
    beyond = [
        (number, one.least)
        for number in numbers
        if one.least is not None and limits.call(number, number, least=one.least) == "fail"
    ]
    beyond += [
        (number, one.most)
        for number in numbers
        if one.most is not None and limits.call(number, number, most=one.most) == "fail"
    ]
    return next(
        (
            some
            for some in range(fewest, DIGITS)
            if all(round(number, some) != round(end, some) for number, end in beyond)
        ),
        DIGITS,
    )


def details(one: Verdict) -> str:
    """Return further facts of a verdict with a limit: the limit as written, the basis, and the power."""
    if one.metric in _HELD or one.metric in ("n_docs", "excluded"):
        return ""
    basis = {
        "paired": f"paired over {one.difference.n if one.difference else 0:,} docs",
        "unpaired": "unpaired: as if on other docs",
        "number": "no interval decides",
    }
    claim = {True: "the primary number", False: "not the primary number", None: ""}[one.primary]
    power = ""
    if one.call == "inconclusive" and one.detectable is not None:
        power = f"fails in 80 % of runs where the truth is {limits.plain(one.detectable, 2)} beyond what is allowed"
    return line("; ".join(filter(None, [f"{one.metric} {one.limit}", claim, basis.get(one.basis, ""), power])))


def ordered(judged: Judgement) -> list[Verdict]:
    """Return the verdicts, worst first.

    Failures come first, then what is inconclusive, warned of, passed; in each the primary numbers of comparisons first,
    then by how far a number lies beyond what is allowed, in half-widths of its interval.
    """
    return sorted(judged.verdicts, key=lambda one: (_ORDER.index(word(one)), one.primary is not True, -_beyond(one)))


def _beyond(one: Verdict) -> float:
    """Return how far a number lies beyond what is allowed, in half-widths of its interval; 0 without an interval.

    −inf where there is no number: what was measured says more, so it stands first.
    """
    number = one.value if one.difference is None else one.difference
    if number.value is None:
        return -math.inf
    if number.low is None or number.high is None:
        return 0.0
    apart = [end - number.value for end in (one.least,) if end is not None] + [
        number.value - end for end in (one.most,) if end is not None
    ]
    beyond, half = max(apart, default=0.0), (number.high - number.low) / 2
    return beyond / half if half > 0 else math.copysign(math.inf, beyond)


def headline(judged: Judgement) -> str:
    """Return the first line of every output: the verdict, which agrees with the exit status, and the main fact."""
    start = CALLS[judged.status]
    if judged.status == BAD_INPUT:
        return line(f"{start}: {judged.error or 'nothing was judged'}")
    worst = ordered(judged)[0]
    alike = sum(word(one) == word(worst) for one in judged.verdicts) - 1
    warned = ", but warned of" if judged.status == PASSED and worst.warned else ""
    return f"{start}{warned} {fact(worst, judged)}{f', and {alike} more' if alike else ''}"


def _listed(judged: Judgement) -> tuple[list[tuple[Verdict, str]], list[tuple[Verdict, str]]]:
    """Return the failed or open verdicts and the passes, each with its fact; the headline's verdict, whose fact stands there, with its task."""
    every = [(one, fact(one, judged) if place else line(one.task)) for place, one in enumerate(ordered(judged))]
    return [pair for pair in every if pair[0].call != "pass"], [pair for pair in every if pair[0].call == "pass"]


# --- for people -----------------------------------------------------------------------------------


def text(judged: Judgement, *, every: bool = False, width: int | None = None) -> str:
    """Return the verdicts for a terminal: the first line, the counts, what did not pass, and the notes.

    Args:
        judged: the judgement.
        every: list what passed, and what the runs show, too.
        width: of the terminal; None: lines are not broken.
    """
    bad, passed = _listed(judged)
    most = None if width is None else max(width, LEAST)
    blocks = [f"{fold(headline(judged), most)}\n{judged.counts}"]
    blocks += ["\n".join(_wrapped(one, said, most) for one, said in (bad + passed if every else bad))]
    blocks += ["\n".join(fold(f"note: {line(note)}", most) for note in judged.notes)]
    if every:
        blocks += ["\n".join(fold(line(one), most) for one in judged.findings)]
    blocks += [f"{len(passed)} pass; --all lists what passed" if passed and not every else ""]
    return "\n\n".join(block for block in blocks if block)


def _wrapped(one: Verdict, said: str, most: int | None) -> str:
    """Return a verdict's rule, with finding and details below, in lines of at most ``most`` cells.

    None: not broken.
    """
    below = [fold(part, most, "  ", "    ") for part in (said, details(one)) if part]
    return "\n".join([fold(f"{word(one)}: {line(one.rule)}", most, rest="    "), *below])


def summary(judged: Judgement) -> str:
    """Return the line of a GitHub job summary, in Markdown."""
    mark = (
        ":white_check_mark:"
        if judged.status == PASSED
        else ":grey_question:"
        if judged.status == INCONCLUSIVE
        else ":x:"
    )
    return f"{mark} {markdown(headline(judged))} ({markdown(judged.counts)})\n\n"


def annotation(judged: Judgement) -> str:
    """Return a GitHub workflow command with the first line; empty where all rules hold."""
    if judged.status == PASSED and not any(one.warned for one in judged.verdicts):
        return ""
    # what GitHub wants escaped (actions/toolkit, command.ts)
    said = printed(headline(judged)).replace("%", "%25")
    return f"::{'warning' if judged.status == PASSED else 'error'} title=lmms-patch gate::{said}"


# --- for machines ---------------------------------------------------------------------------------


def to_json(judged: Judgement) -> dict[str, Any]:
    """Return what ``--json`` writes (schema ``gate``)."""
    keys = [*zip(Ruling.__struct_fields__, Ruling.__struct_encode_fields__, strict=True)]

    def plain(value: Any) -> Any:
        # An estimate goes without its reason, which the verdict has already.
        return line(value) if isinstance(value, str) else sheets.to_json(value, sheets.ESTIMATE)

    return {
        "schema": SCHEMA,
        "status": judged.status,
        "verdict": WORDS[judged.status],
        "sentence": headline(judged),
        "counts": judged.counts,
        "error": line(judged.error) or None,
        "config": line(judged.config),
        "out": line(judged.out),
        "baseline": line(judged.baseline) or None,
        "made": {"lmms_patch": __version__},
        "notes": [line(note) for note in judged.notes],
        "verdicts": [{key: plain(getattr(one, name)) for name, key in keys} for one in judged.verdicts],
    }


def junit(judged: Judgement) -> str:
    """Return JUnit XML: a testcase per verdict, the worst first.

    The message of a failure begins as the first line elsewhere does.
    """
    cases = ordered(judged)
    # JUnit needs at least one test, so bad input makes a case with an error.
    counts = {
        "tests": len(cases) or 1,
        "failures": sum(word(one) in ("fail", "inconclusive") for one in cases),
        "errors": int(judged.status == BAD_INPUT),
        "skipped": sum(one.warned for one in cases),
    }
    numbers = {key: str(value) for key, value in counts.items()}
    root = ElementTree.Element("testsuites", {"name": "lmms-patch gate", **numbers})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "lmms-patch gate", **numbers})
    if judged.status == BAD_INPUT:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "gate", "name": "input", "time": "0"})
        ElementTree.SubElement(case, "error", {"type": WORDS[BAD_INPUT], "message": headline(judged)}).text = headline(
            judged
        )
    for one in cases:
        name = line(f"{one.task} of {one.model}: {one.metric} {one.limit}")
        case = ElementTree.SubElement(suite, "testcase", {"classname": line(one.rule), "name": name, "time": "0"})
        said = f"{one.call.upper()} {fact(one, judged)}"
        more = "\n".join(filter(None, [said, details(one)]))
        if one.warned:
            ElementTree.SubElement(case, "skipped", {"message": said})
        elif one.call != "pass":
            ElementTree.SubElement(case, "failure", {"type": one.call, "message": said}).text = more
        else:
            ElementTree.SubElement(case, "system-out").text = more
    ElementTree.SubElement(suite, "system-out").text = "\n".join(
        [headline(judged), judged.counts, *map(line, judged.notes)]
    )
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


# --- writing --------------------------------------------------------------------------------------


def write(judged: Judgement, json_file: Path | None = None, junit_file: Path | None = None) -> None:
    """Write the files asked for, each whole, or none of them.

    Args:
        judged: the judgement.
        json_file: takes the JSON; replaced where it is there, of a link the link.
        junit_file: takes the JUnit XML; replaced likewise.

    Raises:
        RecordError: one of them cannot be written.
    """
    # NaN is no JSON: better to fail here than to write a file that other readers refuse
    texts = [(json_file, json.dumps(to_json(judged), indent=2, allow_nan=False) + "\n"), (junit_file, junit(judged))]
    wanted = {path: content for path, content in texts if path is not None}
    if json_file is not None and junit_file is not None and os.path.abspath(json_file) == os.path.abspath(junit_file):
        raise RecordError(f"{junit_file}: two outputs cannot go to one file")
    files.write_all(wanted)
